//! tcpprep's cache files: for each packet of a capture whether and out of which interface it is to be sent.
//!
//! ```text
//!  0        8      12        20      22      24
//!  "tcpprep\0" "04\0\0" packets  per byte  comment's  comment, then two bits a packet, four packets a byte,
//!                        u64     u16 (4)   length u16 the first in the lowest bits: 1 primary, 2 send
//! ```
//!
//! Numbers are big-endian. The format is that of tcpreplay 3 to 4.6; there is no other description of it than what
//! tcpprep writes. Files are taken for hostile: no length in them is believed before the bytes are there. Written by
//! [`classify`](crate::classify), read by all that takes `--cachefile`.

use std::fmt;
use std::io::{self, Read, Write};
use std::path::Path;

/// The first 12 bytes: name and version.
const MAGIC: &[u8; 8] = b"tcpprep\0";
const VERSION: &[u8; 4] = b"04\0\0";
const HEADER: usize = 24;
const PER_BYTE: u16 = 4;

/// The longest comment that tcpprep itself reads back.
pub const MAX_COMMENT: usize = 65_534;

/// What becomes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Way {
    /// It is not sent.
    Skip,
    /// Out of the second interface: from server to client.
    Secondary,
    /// Out of the first interface: from client to server.
    Primary,
}

impl Way {
    fn bits(self) -> u8 {
        match self {
            Way::Skip => 0,
            Way::Secondary => 2,
            Way::Primary => 3,
        }
    }

    fn from_bits(bits: u8) -> Way {
        match bits & 3 {
            0 | 1 => Way::Skip,
            2 => Way::Secondary,
            _ => Way::Primary,
        }
    }
}

/// Why a cache file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// It could not be opened, or reading failed.
    #[error("{file}: {source}")]
    Read {
        /// The file's name.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// It begins with something else.
    #[error("{file} is not a cache file of tcpprep: it does not begin with `tcpprep` and a zero byte")]
    NotACache {
        /// The file's name.
        file: String,
    },
    /// It is of a version that nobody has described.
    #[error(
        "{file} is a cache file of version `{version}`; only version 4 is known: make it anew with tcpprep"
    )]
    Version {
        /// The file's name.
        file: String,
        /// What it says.
        version: String,
    },
    /// A number in the header cannot be.
    #[error("{file}: the header (byte {offset}) says {what}: the file is damaged, make it anew with tcpprep")]
    Header {
        /// The file's name.
        file: String,
        /// Where.
        offset: usize,
        /// What cannot be.
        what: String,
    },
    /// It ends early.
    #[error("{file} is cut off: its {part} should have {wanted} bytes and has {got}")]
    Short {
        /// The file's name.
        file: String,
        /// Which part.
        part: &'static str,
        /// How many bytes it should have.
        wanted: u64,
        /// How many there are.
        got: u64,
    },
}

/// How many packets go which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Out of the first interface.
    pub primary: u64,
    /// Out of the second.
    pub secondary: u64,
    /// Not sent.
    pub skipped: u64,
}

/// A cache: a way for each packet of a capture, and a comment.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Cache {
    comment: Vec<u8>,
    packets: u64,
    bits: Vec<u8>,
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").field("packets", &self.packets).finish_non_exhaustive()
    }
}

impl Cache {
    /// One without packets.
    pub fn new() -> Cache {
        Cache::default()
    }

    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or is no cache file.
    pub fn open(path: &Path) -> Result<Cache, CacheError> {
        let file = path.display().to_string();
        match std::fs::File::open(path) {
            Ok(opened) => Cache::read(opened, &file),
            Err(source) => Err(CacheError::Read { file, source }),
        }
    }

    /// Reads from anything; `name` is for messages. What follows the last packet is left alone, as tcpprep does.
    ///
    /// # Errors
    /// It cannot be read, or is no cache file.
    pub fn read(mut source: impl Read, name: &str) -> Result<Cache, CacheError> {
        let file = || name.to_owned();
        let mut part = |part, wanted: u64| {
            let mut bytes = Vec::new();
            let read = source.by_ref().take(wanted).read_to_end(&mut bytes);
            match read {
                Ok(got) if got as u64 == wanted => Ok(bytes),
                // A beginning that is not a cache file's is not one that is cut off.
                Ok(_) if part == "header" && !bytes.starts_with(MAGIC) => {
                    Err(CacheError::NotACache { file: file() })
                }
                Ok(got) => Err(CacheError::Short { file: file(), part, wanted, got: got as u64 }),
                Err(source) => Err(CacheError::Read { file: file(), source }),
            }
        };
        let header = part("header", HEADER as u64)?;
        let (magic, version) = (&header[..8], &header[8..12]);
        if magic != MAGIC {
            return Err(CacheError::NotACache { file: file() });
        }
        if version != VERSION {
            let version: String =
                version.iter().filter(|byte| byte.is_ascii_graphic()).map(|byte| char::from(*byte)).collect();
            return Err(CacheError::Version { file: file(), version });
        }
        let number = |at: usize, len: usize| {
            header[at..at + len].iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte))
        };
        let (packets, per_byte, comment_len) = (number(12, 8), number(20, 2), number(22, 2));
        if per_byte != u64::from(PER_BYTE) {
            let what = format!("{per_byte} packets a byte rather than {PER_BYTE}");
            return Err(CacheError::Header { file: file(), offset: 20, what });
        }
        if comment_len > MAX_COMMENT as u64 {
            let what = format!("its comment has {comment_len} bytes, more than {MAX_COMMENT}");
            return Err(CacheError::Header { file: file(), offset: 22, what });
        }
        let comment = part("comment", comment_len)?;
        let bits = part("list of packets", packets.div_ceil(u64::from(PER_BYTE)))?;
        Ok(Cache { comment, packets, bits })
    }

    /// Writes it as tcpprep would, byte for byte. A comment of more than [`MAX_COMMENT`] bytes is cut there.
    ///
    /// # Errors
    /// What `to` says.
    pub fn write(&self, mut to: impl Write) -> io::Result<()> {
        let comment = &self.comment[..self.comment.len().min(MAX_COMMENT)];
        to.write_all(MAGIC)?;
        to.write_all(VERSION)?;
        to.write_all(&self.packets.to_be_bytes())?;
        to.write_all(&PER_BYTE.to_be_bytes())?;
        to.write_all(&(comment.len() as u16).to_be_bytes())?;
        to.write_all(comment)?;
        to.write_all(&self.bits)
    }

    /// The comment, of any bytes.
    pub fn comment(&self) -> &[u8] {
        &self.comment
    }

    /// Gives it a comment.
    pub fn set_comment(&mut self, comment: Vec<u8>) {
        self.comment = comment;
    }

    /// Of how many packets it knows.
    pub fn len(&self) -> u64 {
        self.packets
    }

    /// Whether it knows of none.
    pub fn is_empty(&self) -> bool {
        self.packets == 0
    }

    /// Adds the next packet.
    #[inline]
    pub fn push(&mut self, way: Way) {
        let shift = self.packets % 4 * 2;
        match self.bits.last_mut() {
            Some(last) if shift > 0 => *last |= way.bits() << shift,
            _ => self.bits.push(way.bits()),
        }
        self.packets += 1;
    }

    /// The way of packet `number`, counted from 1; `None` beyond the last.
    #[inline]
    pub fn way(&self, number: u64) -> Option<Way> {
        let index = number.checked_sub(1).filter(|index| *index < self.packets)?;
        let byte = self.bits.get(usize::try_from(index / 4).ok()?)?;
        Some(Way::from_bits(byte >> (index % 4 * 2)))
    }

    /// The ways of all packets in order.
    pub fn ways(&self) -> impl Iterator<Item = Way> + '_ {
        (1..=self.packets).map_while(|number| self.way(number))
    }

    /// How many packets go which way.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for way in self.ways() {
            match way {
                Way::Primary => totals.primary += 1,
                Way::Secondary => totals.secondary += 1,
                Way::Skip => totals.skipped += 1,
            }
        }
        totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WAYS: [Way; 3] = [Way::Skip, Way::Secondary, Way::Primary];

    fn bytes(cache: &Cache) -> Vec<u8> {
        let mut bytes = Vec::new();
        cache.write(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn the_layout_is_tcppreps() {
        let mut cache = Cache::new();
        cache.set_comment(b"-p".to_vec());
        for way in [Way::Primary, Way::Skip, Way::Secondary, Way::Primary, Way::Secondary] {
            cache.push(way);
        }
        let expected = b"tcpprep\x0004\0\0\0\0\0\0\0\0\0\x05\0\x04\0\x02-p\xe3\x02";
        assert_eq!(bytes(&cache), expected);
        assert_eq!(cache.totals(), Totals { primary: 2, secondary: 2, skipped: 1 });
        assert_eq!([cache.way(0), cache.way(2), cache.way(6)], [None, Some(Way::Skip), None]);
    }

    #[test]
    fn damage_is_named() {
        let sound = b"tcpprep\x0004\0\0\0\0\0\0\0\0\0\x05\0\x04\0\x02-p\xe3\x02".to_vec();
        let told = |at: usize, byte: u8| {
            let mut bytes = sound.clone();
            bytes[at] = byte;
            Cache::read(&bytes[..], "x").unwrap_err().to_string()
        };
        assert!(told(0, b'T').contains("not a cache file"), "{}", told(0, b'T'));
        assert!(told(9, b'3').contains("version `03`"), "{}", told(9, b'3'));
        assert!(told(21, 0).contains("0 packets a byte"), "{}", told(21, 0));
        assert!(told(12, 0xff).contains("cut off: its list of packets"), "{}", told(12, 0xff));
        assert!(told(22, 0xff).contains("comment should have 65282 bytes"), "{}", told(22, 0xff));
        for end in 0..sound.len() {
            assert!(Cache::read(&sound[..end], "x").is_err(), "{end} bytes");
        }
        // As tcpprep, which leaves alone what follows.
        assert!(Cache::read(&[&sound[..], b"more"].concat()[..], "x").is_ok());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(
            ways in prop::collection::vec(0usize..3, 0..200),
            comment in prop::collection::vec(any::<u8>(), 0..50),
        ) {
            let mut cache = Cache::new();
            cache.set_comment(comment);
            for way in &ways {
                cache.push(WAYS[*way]);
            }
            let again = Cache::read(&bytes(&cache)[..], "x").unwrap();
            prop_assert_eq!(&again, &cache);
            let listed: Vec<Way> = again.ways().collect();
            prop_assert_eq!(listed, ways.iter().map(|way| WAYS[*way]).collect::<Vec<_>>());
        }

        #[test]
        fn any_bytes_end_in_a_cache_or_an_error(
            head in prop::collection::vec(any::<u8>(), 0..80), magic in any::<bool>(),
        ) {
            let bytes = if magic { [&b"tcpprep\x0004\0\0"[..], &head].concat() } else { head };
            if let Ok(cache) = Cache::read(&bytes[..], "x") {
                prop_assert!(cache.len() <= bytes.len() as u64 * 4);
                prop_assert_eq!(cache.ways().count() as u64, cache.len());
            }
        }
    }
}
