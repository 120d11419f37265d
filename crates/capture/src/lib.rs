//! Capture files: reading and writing pcap and pcapng, and what a capture holds.
//!
//! ```text
//!  file, pipe --> input (gzip, zstd) --> pcap | pcapng --> Reader --> Record --> info::summarise
//!  Record --> Writer (pcap | pcapng, gzip, zstd) --> AtomicFile
//! ```
//!
//! Reading streams: memory is one buffer that grows to the largest record, never to what a file claims. Everything
//! read is taken for hostile: each fault is one [`CaptureError`], nothing panics, and a fuzz target needs no more
//! than [`Reader::from_read`] over a cursor. This crate knows frames as bytes with a time; what is in them is asked
//! of `wire`, and only by [`info`].

#![deny(missing_docs, clippy::missing_errors_doc)]

mod atomic;
mod error;
pub mod info;
mod input;
mod ongoing;
mod patience;
mod pcap;
mod pcapng;
mod reader;
mod sniff;
mod writer;
#[cfg(feature = "zstd")]
mod zst;
#[cfg(not(feature = "zstd"))]
#[path = "zst/absent.rs"]
mod zst;

use std::fmt;

use wire::LinkType;

pub use atomic::AtomicFile;
pub use error::{CaptureError, Fault, Place, ReaderLeft};
pub use ongoing::{Ongoing, Plan};
pub use patience::Patience;
pub use reader::{Notes, Reader, Record};
pub use writer::{FileFormat, FileWriter, Output, Section, Statistics, Writer};

/// The most bytes of a packet that a record may hold: libpcap's own limit, and more than any frame but jumbograms.
pub const MAX_CAPTURED: u32 = 256 * 1024;

/// How a file or pipe is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// RFC 1952.
    Gzip,
    /// RFC 8878.
    Zstd,
}

impl Compression {
    /// "gzip" or "zstd".
    pub fn name(self) -> &'static str {
        match self {
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
        }
    }
}

/// Which file format, before any compression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Container {
    /// Classic pcap.
    Pcap {
        /// Times in nanoseconds rather than microseconds.
        nanoseconds: bool,
    },
    /// Classic pcap with Alexey Kuznetzov's longer records.
    Kuznetzov,
    /// pcapng; each interface has its own resolution of time.
    Pcapng,
}

/// What a capture file is, as its first bytes say. `Display` gives "pcap, little-endian, microseconds, gzip".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    /// The file format.
    pub container: Container,
    /// Byte order; of the first section in pcapng.
    pub big_endian: bool,
    /// How it is packed.
    pub compression: Option<Compression>,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, resolution) = match self.container {
            Container::Pcap { nanoseconds: false } => ("pcap", ", microseconds"),
            Container::Pcap { nanoseconds: true } => ("pcap", ", nanoseconds"),
            Container::Kuznetzov => ("pcap modified by Kuznetzov", ", microseconds"),
            Container::Pcapng => ("pcapng", ""),
        };
        let order = if self.big_endian { "big-endian" } else { "little-endian" };
        write!(f, "{name}, {order}{resolution}")?;
        match self.compression {
            Some(compression) => write!(f, ", {}", compression.name()),
            None => Ok(()),
        }
    }
}

/// An interface that packets were captured on. A pcap file has one, without a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// What stands at the first byte of its packets.
    pub link: LinkType,
    /// The most bytes captured of a packet; 0 for no limit.
    pub snaplen: u32,
    /// Its name, at most 255 bytes of it.
    pub name: Option<String>,
    /// Its speed in bits per second.
    pub speed_bps: Option<u64>,
    /// Bytes of frame check sequence at the end of each packet; 0 where there is none or none is given.
    pub fcs_len: u8,
    /// Time stamps count units of this many to the second; `None` if that is beyond a u64.
    pub ticks_per_second: Option<u64>,
}

impl Default for Interface {
    fn default() -> Interface {
        Interface {
            link: LinkType::ETHERNET,
            snaplen: 0,
            name: None,
            speed_bps: None,
            fcs_len: 0,
            ticks_per_second: Some(1_000_000),
        }
    }
}
