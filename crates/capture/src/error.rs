//! Everything that can be wrong with a capture, each told once: which file, which record, which byte, what was found
//! and what to do.

use std::io;

/// The reader of standard output closed it (`... -w - | head`). Stands in the error of the system, so that whoever wraps that in
/// errors of his own can still tell.
#[derive(Debug, thiserror::Error)]
#[error("Broken pipe: the reader of standard output closed it")]
pub struct ReaderLeft;

/// Why a capture could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The file could not be opened.
    #[error("{file} cannot be opened: {source}")]
    Open {
        /// The file.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// Reading failed in the system, not in the capture.
    #[error("{file}: reading failed at byte {offset}: {source}")]
    Read {
        /// The file.
        file: String,
        /// Bytes read before it.
        offset: u64,
        /// What the system said.
        source: io::Error,
    },
    /// It kept its reader waiting until that was told to wait no longer ([`Patience`](crate::Patience)).
    #[error("{file}: nothing more was waited for")]
    GivenUp {
        /// The file.
        file: String,
        /// By its flag; else its time was over.
        stopped: bool,
    },
    /// There is nothing in it.
    #[error("{file} is empty (0 bytes): even a capture without packets has a header; was its disk full?")]
    Empty {
        /// The file.
        file: String,
    },
    /// It is something else.
    #[error("{file} is not a capture: {looks}")]
    NotACapture {
        /// The file.
        file: String,
        /// What it looks like, and the mend where there is one.
        looks: String,
    },
    /// A header or record is wrong.
    #[error("{file}, {place} at byte {offset}{}: {fault}{}", unpacked(*.packed), sound(.place))]
    Malformed {
        /// The file.
        file: String,
        /// Where in the file.
        place: Place,
        /// Bytes before the header or record.
        offset: u64,
        /// Whether the file is compressed, so that the offset counts unpacked data.
        packed: bool,
        /// What is wrong.
        fault: Fault,
    },
    /// It can be read only once.
    #[error("{file} cannot be read a second time: {why}; save it to a file first, or preload it")]
    NotRewindable {
        /// The file.
        file: String,
        /// What it is.
        why: String,
    },
    /// Writing failed.
    #[error("{file} cannot be written: {source}")]
    Write {
        /// The file.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// A packet does not fit the file format.
    #[error("{file}: packet {record} cannot be written: {what}")]
    Unwritable {
        /// The file.
        file: String,
        /// Its number, from 1.
        record: u64,
        /// Why.
        what: String,
    },
}

impl CaptureError {
    /// Writing `file` failed by this. Of standard output it may be that its reader left.
    pub(crate) fn writing(file: String, source: io::Error) -> CaptureError {
        let left = file == "-" && source.kind() == io::ErrorKind::BrokenPipe;
        let source = if left { io::Error::new(io::ErrorKind::BrokenPipe, ReaderLeft) } else { source };
        CaptureError::Write { file, source }
    }

    /// Standard output took it until its reader closed that (`... -w - | head`).
    pub fn reader_left(&self) -> bool {
        let left = |source: &io::Error| source.get_ref().is_some_and(|inner| inner.is::<ReaderLeft>());
        matches!(self, CaptureError::Write { source, .. } if left(source))
    }

    /// What is wrong, without what to do about it: for who does that already.
    pub fn without_mend(&self) -> String {
        match self {
            CaptureError::Malformed { file, place, offset, packed, fault } => {
                format!("{file}, {place} at byte {offset}{}: {fault}", unpacked(*packed))
            }
            other => other.to_string(),
        }
    }
}

/// The part of a capture that an error is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Place {
    /// The file's own header.
    #[error("file header")]
    Header,
    /// A packet record, numbered from 1 as Wireshark does.
    #[error("record {0}")]
    Record(u64),
    /// Another pcapng block.
    #[error("{name} after record {after}")]
    Block {
        /// What kind.
        name: &'static str,
        /// Records before it.
        after: u64,
    },
}

/// What is wrong with a header or record.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The file ends inside it.
    #[error("the file ends after {got} of its {wanted} bytes; the capture was cut off")]
    Truncated {
        /// Bytes that should be there.
        wanted: u64,
        /// Bytes that are there.
        got: u64,
    },
    /// The compressed stream ends before its own end.
    #[error("the {compression} stream ends before its end; the file was cut off")]
    TruncatedStream {
        /// "gzip" or "zstd".
        compression: &'static str,
    },
    /// The compressed stream does not decode.
    #[error("the {compression} stream is corrupt ({detail}); fetch the file again")]
    CorruptStream {
        /// "gzip" or "zstd".
        compression: &'static str,
        /// What the decoder said.
        detail: String,
    },
    /// More bytes captured than any capture holds.
    #[error(
        "claims {length} captured bytes, more than the {limit} that a record may have; the file is corrupt here"
    )]
    TooLong {
        /// What it claims.
        length: u32,
        /// [`crate::MAX_CAPTURED`].
        limit: u32,
    },
    /// A pcap version that nobody writes.
    #[error("version {major}.{minor} is not known (pcap is 2.4, pcapng 1.0); the file may be corrupt")]
    Version {
        /// Before the dot.
        major: u16,
        /// Behind the dot.
        minor: u16,
    },
    /// pcapng: length not a multiple of four, or too small for the block.
    #[error(
        "a block of length {length} cannot be (multiples of 4, at least {least}); the file is corrupt here"
    )]
    BlockLength {
        /// What it claims.
        length: u32,
        /// The least that this block type needs.
        least: u32,
    },
    /// pcapng: a block that must be read as a whole is absurdly long.
    #[error("a block of {length} bytes is longer than the {limit} allowed; the file is corrupt here")]
    BlockTooLong {
        /// What it claims.
        length: u32,
        /// The most for this block type.
        limit: u32,
    },
    /// pcapng: the two lengths of a block differ.
    #[error("the block's length is {head} at its head and {tail} at its tail; the file is corrupt here")]
    BlockTail {
        /// At the head.
        head: u32,
        /// At the tail.
        tail: u32,
    },
    /// pcapng: the packet data does not fit its block.
    #[error("claims {length} captured bytes in a block with room for {room}; the file is corrupt here")]
    DataBeyondBlock {
        /// What it claims.
        length: u32,
        /// What the block holds.
        room: u32,
    },
    /// pcapng: a packet of an interface that was not described.
    #[error("names interface {interface}, but the section describes {known}; the file is corrupt here")]
    UnknownInterface {
        /// The one named.
        interface: u32,
        /// How many there are.
        known: u32,
    },
    /// pcapng: the byte order is not known.
    #[error(
        "the section header's byte order mark is {0:#010x} (1a2b3c4d in either order is right); the file is corrupt here"
    )]
    ByteOrder(u32),
    /// pcapng: more interfaces than we keep.
    #[error("more than {0} interfaces are described; split the file")]
    TooManyInterfaces(usize),
}

/// The mend, for a capture that is sound up to `place`.
fn sound(place: &Place) -> String {
    match place {
        Place::Header => String::new(),
        Place::Record(0 | 1) | Place::Block { after: 0, .. } => ". No record before it is sound".into(),
        Place::Record(2) | Place::Block { after: 1, .. } => {
            ". The record before it is sound; `.skip_corrupt` keeps it".into()
        }
        Place::Record(n) => {
            format!(". The {} records before it are sound; `.skip_corrupt` keeps them", n - 1)
        }
        Place::Block { after, .. } => {
            format!(". The {after} records before it are sound; `.skip_corrupt` keeps them")
        }
    }
}

fn unpacked(packed: bool) -> &'static str {
    if packed { " of the unpacked data" } else { "" }
}
