//! The classic pcap format (draft-ietf-opsawg-pcap): a 24-byte header, then records of 16 bytes and the packet.
//!
//! Both byte orders, micro- and nanoseconds, and Kuznetzov's variant of the nineties, whose records have 8 more
//! bytes. Fed by `reader`, which owns the input and turns faults into errors.

use wire::LinkType;

use crate::error::Fault;
use crate::input::Input;
use crate::reader::{Notes, Raw};
use crate::{Container, Format, Interface, MAX_CAPTURED};

pub(crate) const MICROSECONDS: u32 = 0xa1b2_c3d4;
pub(crate) const NANOSECONDS: u32 = 0xa1b2_3c4d;
const KUZNETZOV: u32 = 0xa1b2_cd34;
pub(crate) const HEADER: usize = 24;
/// In the link type's upper half: the length of the frame check sequence is given, in 16-bit words from bit 28 on.
pub(crate) const HAS_FCS: u32 = 0x0400_0000;
pub(crate) const RECORD: usize = 16;
/// Kuznetzov's records add interface index (4), protocol (2), packet type (1) and a byte of padding.
const KUZNETZOV_RECORD: usize = 24;

pub(crate) struct Pcap {
    big_endian: bool,
    record_header: usize,
    /// What a unit of the fraction is worth.
    fraction_ns: u64,
    snaplen: u32,
    /// Before version 2.4 some writers had the two lengths in the other order.
    maybe_swapped: bool,
    /// The interface's FCS length and link type are the header's.
    pub(crate) interface: Interface,
}

/// The container that a file's first four bytes announce.
pub(crate) fn recognise(magic: [u8; 4]) -> Option<Format> {
    for (big_endian, magic) in [(false, u32::from_le_bytes(magic)), (true, u32::from_be_bytes(magic))] {
        let container = match magic {
            MICROSECONDS => Container::Pcap { nanoseconds: false },
            NANOSECONDS => Container::Pcap { nanoseconds: true },
            KUZNETZOV => Container::Kuznetzov,
            _ => continue,
        };
        return Some(Format { container, big_endian, compression: None });
    }
    None
}

impl Pcap {
    /// Reads the file header, of which `recognise` has seen the magic.
    pub(crate) fn open(format: &Format, input: &mut Input) -> Result<Pcap, Fault> {
        if !input.have(HEADER) {
            return Err(Fault::Truncated { wanted: HEADER as u64, got: input.peek().len() as u64 });
        }
        let big_endian = format.big_endian;
        let range = input.consume(HEADER);
        let header = input.consumed(range);
        let (major, minor) = (u16_at(header, 4, big_endian), u16_at(header, 6, big_endian));
        if major != 2 || minor > 4 {
            return Err(Fault::Version { major, minor });
        }
        let link = u32_at(header, 20, big_endian);
        let snaplen = u32_at(header, 16, big_endian);
        Ok(Pcap {
            big_endian,
            record_header: match format.container {
                Container::Kuznetzov => KUZNETZOV_RECORD,
                _ => RECORD,
            },
            fraction_ns: match format.container {
                Container::Pcap { nanoseconds: true } => 1,
                _ => 1000,
            },
            snaplen: if snaplen == 0 { u32::MAX } else { snaplen },
            maybe_swapped: minor < 4,
            interface: Interface {
                // The upper half says whether frames carry their FCS: bit 26, its length in 16-bit words above.
                link: LinkType(link as u16),
                fcs_len: if link & HAS_FCS != 0 { (link >> 28) as u8 * 2 } else { 0 },
                snaplen,
                ..Interface::default()
            },
        })
    }

    /// The next record; `Ok(None)` at the end of the stream.
    #[inline]
    pub(crate) fn next(&self, input: &mut Input, notes: &mut Notes) -> Result<Option<Raw>, Fault> {
        if !input.have(self.record_header) {
            return match input.peek().len() as u64 {
                0 => Ok(None),
                got => Err(Fault::Truncated { wanted: self.record_header as u64, got }),
            };
        }
        let Some(head) = input.peek().first_chunk::<RECORD>() else { return Ok(None) };
        let word = |at: usize| {
            let word = u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
            if self.big_endian { word.swap_bytes() } else { word }
        };
        let (seconds, fraction, mut captured, mut wire_len) = (word(0), word(4), word(8), word(12));
        if self.maybe_swapped && captured > wire_len {
            (captured, wire_len) = (wire_len, captured);
        }
        if captured > MAX_CAPTURED {
            return Err(Fault::TooLong { length: captured, limit: MAX_CAPTURED });
        }
        notes.over_snaplen += u64::from(captured > self.snaplen);
        let whole = self.record_header + captured as usize;
        if !input.have(whole) {
            let got = input.peek().len() as u64;
            return Err(Fault::Truncated { wanted: whole as u64, got });
        }
        let mut data = input.consume(whole);
        data.start += self.record_header;
        let fraction = u64::from(fraction) * self.fraction_ns;
        notes.odd_times += u64::from(fraction >= 1_000_000_000);
        // No overflow: 2^32 s are 4.3e18 ns, and the fraction adds at most 4.3e12.
        Ok(Some(Raw {
            time_ns: Some(u64::from(seconds) * 1_000_000_000 + fraction),
            data,
            wire_len,
            interface: 0,
            fcs_len: None,
        }))
    }
}

/// A 32-bit number of a header whose length was checked; zero beyond its end.
#[inline]
pub(crate) fn u32_at(bytes: &[u8], at: usize, big_endian: bool) -> u32 {
    match bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        Some(word) if big_endian => u32::from_be_bytes(*word),
        Some(word) => u32::from_le_bytes(*word),
        None => 0,
    }
}

/// A 16-bit number likewise.
#[inline]
pub(crate) fn u16_at(bytes: &[u8], at: usize, big_endian: bool) -> u16 {
    match bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        Some(word) if big_endian => u16::from_be_bytes(*word),
        Some(word) => u16::from_le_bytes(*word),
        None => 0,
    }
}
