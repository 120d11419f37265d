//! Reading a capture, record by record, whatever its format. Callers: replay, `info`, the demo, tests, fuzzing.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::ops::Range;
use std::os::fd::AsFd;
use std::path::Path;

use serde::Serialize;
use wire::LinkType;

use crate::error::{CaptureError, Fault, Place};
use crate::input::Input;
use crate::patience::{Patience, given_up};
use crate::pcap::{self, Pcap};
use crate::pcapng::{self, Pcapng};
use crate::sniff::looks_like;
use crate::{Format, Interface};

/// A packet of a capture. `data` stays valid until the next record is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// Nanoseconds since 1970. Times outside 1970 to 2554 are held to that range and counted
    /// ([`Notes::odd_times`]); a packet without a time stamp has that of the one before it.
    pub time_ns: u64,
    /// The captured bytes, without a frame check sequence that the file says it has, and no more than the packet had.
    pub data: &'a [u8],
    /// How many bytes the packet had on the wire, without its frame check sequence. May be more than were captured.
    pub wire_len: u32,
    /// What was captured of the frame check sequence, in files that have it.
    pub fcs: &'a [u8],
    /// Its length on the wire; 0 in files that do not say that they have it.
    pub fcs_len: usize,
    /// What stands at its first byte.
    pub link: LinkType,
    /// Index into [`Reader::interfaces`].
    pub interface: u32,
    /// Its number, from 1, as Wireshark counts.
    pub number: u64,
}

/// What is odd about a capture without being an error. All counts of records unless said otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Notes {
    /// Without a single byte.
    pub zero_length: u64,
    /// Fewer bytes captured than were on the wire.
    pub truncated: u64,
    /// More bytes captured than were on the wire: what is beyond is left out.
    pub longer_than_wire: u64,
    /// More bytes captured than the file's snap length allows.
    pub over_snaplen: u64,
    /// Earlier than the record before.
    pub time_backwards: u64,
    /// A time beyond what can be shown, or a fraction of a second that is a whole one.
    pub odd_times: u64,
    /// Without a time stamp (pcapng simple packets).
    pub untimed: u64,
    /// pcapng blocks that were skipped because their type is not known here.
    pub unknown_blocks: u64,
    /// Packets that the capturing program says it lost (pcapng interface statistics).
    pub lost_in_capture: u64,
    /// Lenient reading: why the file was left before its end.
    pub cut_short: Option<String>,
}

/// A record as the formats find it.
pub(crate) struct Raw {
    /// `None` where the format has no time for it.
    pub(crate) time_ns: Option<u64>,
    /// Where the packet is in the input's buffer.
    pub(crate) data: Range<usize>,
    pub(crate) wire_len: u32,
    pub(crate) interface: u32,
    /// The length of this packet's frame check sequence, where it says so itself.
    pub(crate) fcs_len: Option<u8>,
}

enum Decoder {
    Pcap(Pcap),
    Pcapng(Pcapng),
}

/// A capture being read: pcap or pcapng, plain, gzip or zstd.
///
/// ```no_run
/// # fn main() -> Result<(), netdyno_capture::CaptureError> {
/// let mut reader = netdyno_capture::Reader::open("big.pcapng.gz".as_ref())?;
/// while let Some(record) = reader.next_record()? {
///     println!("{} ns: {} bytes of {}", record.time_ns, record.data.len(), record.link);
/// }
/// # Ok(())
/// # }
/// ```
pub struct Reader {
    name: String,
    input: Input,
    decoder: Decoder,
    format: Format,
    interfaces: Vec<Interface>,
    notes: Notes,
    number: u64,
    last_time: u64,
    lenient: bool,
    finished: bool,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader")
            .field("name", &self.name)
            .field("format", &self.format)
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

impl Reader {
    /// Opens a file; `-` is standard input.
    ///
    /// # Errors
    /// The file cannot be read, or is no capture.
    pub fn open(path: &Path) -> Result<Reader, CaptureError> {
        if path.as_os_str() == "-" {
            let name = "standard input".to_owned();
            // The descriptor itself: what the library's own buffer held would be waited for in vain.
            let stdin = io::stdin().as_fd().try_clone_to_owned();
            return match stdin.and_then(|stdin| Input::waiting(File::from(stdin))) {
                Ok(input) => Reader::start(input, name),
                Err(source) => Err(CaptureError::Open { file: name, source }),
            };
        }
        let name = path.display().to_string();
        let opened = File::open(path).and_then(|file| {
            if file.metadata()?.is_dir() {
                Err(ErrorKind::IsADirectory.into())
            } else {
                Input::from_file(file)
            }
        });
        match opened {
            Ok(input) => Reader::start(input, name),
            Err(source) => Err(CaptureError::Open { file: name, source }),
        }
    }

    /// Reads from anything; `name` is for messages.
    ///
    /// # Errors
    /// It cannot be read, or is no capture.
    pub fn from_read(source: Box<dyn Read + Send>, name: &str) -> Result<Reader, CaptureError> {
        match Input::from_read(source) {
            Ok(input) => Reader::start(input, name.to_owned()),
            Err(source) => Err(CaptureError::Open { file: name.to_owned(), source }),
        }
    }

    /// How long it is waited for; `None` for files, which keep nobody waiting.
    pub fn patience(&self) -> Option<Patience> {
        self.input.patience.clone()
    }

    /// Takes a capture that is cut off or corrupt as sound up to there: reading ends without an error, and
    /// [`Notes::cut_short`] says why.
    pub fn lenient(mut self) -> Reader {
        self.lenient = true;
        self
    }

    fn start(mut input: Input, name: String) -> Result<Reader, CaptureError> {
        let (format, decoder) = Reader::header(&mut input, &name)?;
        let interfaces = match &decoder {
            Decoder::Pcap(pcap) => vec![pcap.interface.clone()],
            Decoder::Pcapng(_) => vec![],
        };
        Ok(Reader {
            name,
            input,
            decoder,
            format,
            interfaces,
            notes: Notes::default(),
            number: 0,
            last_time: 0,
            lenient: false,
            finished: false,
        })
    }

    fn header(input: &mut Input, name: &str) -> Result<(Format, Decoder), CaptureError> {
        let file = || name.to_owned();
        input.have(64);
        let magic = input.peek().first_chunk::<4>().copied();
        let compression = input.compression;
        if magic.is_none()
            && let Some(error) = input.failure()
        {
            return Err(stream_error(error, input, file(), Place::Header));
        }
        if input.peek().is_empty() && compression.is_none() {
            return Err(CaptureError::Empty { file: file() });
        }
        let recognised = magic.and_then(|magic| pcap::recognise(magic).or(pcapng::recognise(magic)));
        let Some(mut format) = recognised else {
            return Err(CaptureError::NotACapture {
                file: file(),
                looks: looks_like(input.peek(), compression),
            });
        };
        format.compression = compression;
        let offset = input.offset();
        let opened = match format.container {
            crate::Container::Pcapng => Pcapng::open(input).map(|pcapng| {
                format.big_endian = pcapng.big_endian();
                Decoder::Pcapng(pcapng)
            }),
            _ => Pcap::open(&format, input).map(Decoder::Pcap),
        };
        match opened {
            Ok(decoder) => Ok((format, decoder)),
            Err(fault) => match input.failure() {
                Some(error) => Err(stream_error(error, input, file(), Place::Header)),
                None => Err(CaptureError::Malformed {
                    file: file(),
                    place: Place::Header,
                    offset,
                    packed: compression.is_some(),
                    fault,
                }),
            },
        }
    }

    /// The next record, or `None` behind the last. After an error, too, there are no more.
    ///
    /// # Errors
    /// The file cannot be read on, or is damaged: record and byte are named. Of a lenient reader damage is an end and a note.
    #[inline]
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, CaptureError> {
        if self.finished {
            return Ok(None);
        }
        let found = match &mut self.decoder {
            Decoder::Pcap(pcap) => pcap.next(&mut self.input, &mut self.notes),
            Decoder::Pcapng(pcapng) => pcapng.next(&mut self.input, &mut self.interfaces, &mut self.notes),
        };
        let raw = match found {
            Ok(Some(raw)) => raw,
            Ok(None) => return self.end(None).map(|()| None),
            Err(fault) => return self.end(Some(fault)).map(|()| None),
        };
        let data = self.input.consumed(raw.data);
        let Some(interface) = self.interfaces.get(raw.interface as usize) else { return Ok(None) };
        self.number += 1;
        let notes = &mut self.notes;
        let time_ns = raw.time_ns.unwrap_or(self.last_time);
        notes.time_backwards += u64::from(time_ns < self.last_time);
        self.last_time = time_ns;
        // Some writers leave the length on the wire empty.
        let wire_len = if raw.wire_len == 0 { data.len() as u32 } else { raw.wire_len };
        notes.truncated += u64::from(data.len() < wire_len as usize);
        notes.longer_than_wire += u64::from(data.len() > wire_len as usize);
        let data = data.get(..wire_len as usize).unwrap_or(data);
        // What receivers of 802.11 say of a check sequence stands in front of each frame, and is read there.
        let fcs_len = match interface.link.is_wifi() {
            true => 0,
            false => usize::from(raw.fcs_len.unwrap_or(interface.fcs_len)).min(wire_len as usize),
        };
        let wire_len = wire_len - fcs_len as u32;
        let (data, fcs) = data.split_at(data.len().min(wire_len as usize));
        notes.zero_length += u64::from(data.is_empty());
        Ok(Some(Record {
            time_ns,
            data,
            wire_len,
            fcs,
            fcs_len,
            link: interface.link,
            interface: raw.interface,
            number: self.number,
        }))
    }

    /// Behind the last record or at a fault: was it a proper end?
    #[cold]
    fn end(&mut self, fault: Option<Fault>) -> Result<(), CaptureError> {
        self.finished = true;
        let place = match (&self.decoder, self.number) {
            (Decoder::Pcap(_), number) => Place::Record(number + 1),
            (Decoder::Pcapng(pcapng), number) => pcapng.place(number),
        };
        // A failing stream ends records, too: then it is the stream's fault, not theirs.
        let error = match (self.input.failure(), fault) {
            (Some(error), _) => stream_error(error, &self.input, self.name.clone(), place),
            (None, None) => return Ok(()),
            (None, Some(fault)) => CaptureError::Malformed {
                file: self.name.clone(),
                place,
                offset: match &self.decoder {
                    Decoder::Pcap(_) => self.input.offset(),
                    Decoder::Pcapng(pcapng) => pcapng.block_offset(),
                },
                packed: self.format.compression.is_some(),
                fault,
            },
        };
        if self.lenient && matches!(error, CaptureError::Malformed { .. }) {
            self.notes.cut_short = Some(error.without_mend());
            return Ok(());
        }
        Err(error)
    }

    /// Starts again at the first record, for loops; notes start again, too. Only files can.
    ///
    /// # Errors
    /// It cannot be read from its beginning: a pipe, or a file that has changed.
    pub fn rewind(&mut self) -> Result<(), CaptureError> {
        let again =
            self.input.rewind().map_err(|source| CaptureError::Open { file: self.name.clone(), source })?;
        if !again {
            let why = "it is a pipe or stream".to_owned();
            return Err(CaptureError::NotRewindable { file: self.name.clone(), why });
        }
        (self.format, self.decoder) = Reader::header(&mut self.input, &self.name)?;
        self.interfaces = match &self.decoder {
            Decoder::Pcap(pcap) => vec![pcap.interface.clone()],
            Decoder::Pcapng(_) => vec![],
        };
        self.notes = Notes::default();
        (self.number, self.last_time, self.finished) = (0, 0, false);
        Ok(())
    }

    /// The file's name, for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What kind of file it is.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The interfaces described so far: in pcapng more may come with later records.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// What was odd so far.
    pub fn notes(&self) -> &Notes {
        &self.notes
    }

    /// Length of the file on the disk (compressed, if it is), for progress and for sizing buffers.
    pub fn file_len(&self) -> Option<u64> {
        self.input.file_len()
    }

    /// Bytes read so far, unpacked.
    pub fn offset(&self) -> u64 {
        self.input.offset()
    }
}

/// What a failed read means: a fault of the compressed stream, or of the system.
fn stream_error(error: io::Error, input: &Input, file: String, place: Place) -> CaptureError {
    if let Some(given_up) = given_up(&error) {
        return CaptureError::GivenUp { file, stopped: given_up.stopped };
    }
    let offset = input.offset();
    let Some(compression) = input.compression.filter(|_| error.raw_os_error().is_none()) else {
        return CaptureError::Read { file, offset, source: error };
    };
    let compression = compression.name();
    let fault = match error.kind() {
        ErrorKind::UnexpectedEof => Fault::TruncatedStream { compression },
        _ => Fault::CorruptStream { compression, detail: error.to_string() },
    };
    CaptureError::Malformed { file, place, offset, packed: true, fault }
}
