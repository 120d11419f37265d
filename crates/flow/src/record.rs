//! A record as a collector has it, whichever protocol brought it.

use crate::element::{Kind, Number};
use crate::template::NTP_TO_UNIX;
use std::net::IpAddr;

/// What brought a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Format {
    /// NetFlow v5.
    V5,
    /// NetFlow v9.
    V9,
    /// IPFIX.
    Ipfix,
    /// sFlow v5.
    Sflow,
}

impl Format {
    /// `v5`, `v9`, `ipfix`, `sflow`.
    pub fn name(self) -> &'static str {
        match self {
            Format::V5 => "v5",
            Format::V9 => "v9",
            Format::Ipfix => "ipfix",
            Format::Sflow => "sflow",
        }
    }
}

/// What a record says. Of what it does not say numbers are zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Record {
    /// What brought it.
    pub format: Format,
    /// The observation domain, source or engine.
    pub domain: u32,
    /// When the message says it was sent, in nanoseconds since 1970.
    pub exported_ns: u64,
    /// Source and destination.
    pub addresses: [Option<IpAddr>; 2],
    /// Source and destination. Of ICMP the second is type * 256 + code.
    pub ports: [u16; 2],
    /// The transport's number.
    pub protocol: u8,
    /// Type of service, or traffic class.
    pub tos: u8,
    /// TCP's flags.
    pub tcp_flags: u16,
    /// Packets.
    pub packets: u64,
    /// Bytes of IP.
    pub octets: u64,
    /// When the first and the last packet came, in nanoseconds since 1970; zero if that was not said.
    pub times_ns: [u64; 2],
    /// ifIndex of where packets came in and left.
    pub interfaces: [u32; 2],
    /// Of the source and the destination.
    pub systems: [u32; 2],
    /// Lengths of the networks' prefixes.
    pub prefixes: [u8; 2],
    /// Where packets went next.
    pub next_hop: Option<IpAddr>,
    /// VLANs at the source and the destination.
    pub vlans: [u16; 2],
    /// Ethernet addresses of the source and the destination.
    pub macs: [[u8; 6]; 2],
    /// Why it ended (`flowEndReason`).
    pub end_reason: u8,
    /// Packets arrived (0) or left (1) where they were seen (`flowDirection`).
    pub direction: u8,
    /// One packet in so many was looked at; zero: the exporter did not say. Counts are not multiplied by it.
    pub sampling: u32,
}

impl Record {
    /// One that says nothing yet.
    pub(crate) fn blank(format: Format, domain: u32, exported_ns: u64, sampling: u32) -> Record {
        Record {
            format,
            domain,
            exported_ns,
            addresses: [None; 2],
            ports: [0; 2],
            protocol: 0,
            tos: 0,
            tcp_flags: 0,
            packets: 0,
            octets: 0,
            times_ns: [0; 2],
            interfaces: [0; 2],
            systems: [0; 2],
            prefixes: [0; 2],
            next_hop: None,
            vlans: [0; 2],
            macs: [[0; 6]; 2],
            end_reason: 0,
            direction: 0,
            sampling,
        }
    }
}

/// What a record of both directions says of the other one (RFC 5103).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OtherWay {
    pub(crate) packets: u64,
    pub(crate) octets: u64,
    pub(crate) times_ns: [u64; 2],
    pub(crate) tcp_flags: u16,
}

impl Record {
    /// The other direction as a record of its own; `None` if nothing came that way.
    pub(crate) fn other_way(&self, other: &OtherWay) -> Option<Record> {
        use wire::numbers::protocol::{ICMP, ICMPV6};
        if other.packets == 0 && other.octets == 0 {
            return None;
        }
        let turned = |[a, b]: [u32; 2]| [b, a];
        let [source, destination] = self.addresses;
        // Of ICMP these are type and code.
        let ports =
            if matches!(self.protocol, ICMP | ICMPV6) { self.ports } else { [self.ports[1], self.ports[0]] };
        let times_ns = if other.times_ns == [0; 2] { self.times_ns } else { other.times_ns };
        Some(Record {
            addresses: [destination, source],
            ports,
            tcp_flags: other.tcp_flags,
            packets: other.packets,
            octets: other.octets,
            times_ns,
            interfaces: turned(self.interfaces),
            systems: turned(self.systems),
            prefixes: [self.prefixes[1], self.prefixes[0]],
            next_hop: None,
            macs: [self.macs[1], self.macs[0]],
            // Of the other one nothing says it: a probe that sees a copy of the traffic has both as arrivals.
            direction: 0,
            ..*self
        })
    }
}

/// A field that [`Record`] has no place for, as its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Other<'a> {
    /// Which element.
    pub number: Number,
    /// Its value.
    pub bytes: &'a [u8],
}

impl Other<'_> {
    /// Its value as a number.
    pub fn unsigned(&self) -> u64 {
        unsigned(self.bytes)
    }
}

/// A big-endian number of at most eight bytes; of longer ones the last eight.
#[inline]
pub(crate) fn unsigned(bytes: &[u8]) -> u64 {
    match *bytes {
        [a] => a.into(),
        [a, b] => u16::from_be_bytes([a, b]).into(),
        [a, b, c, d] => u32::from_be_bytes([a, b, c, d]).into(),
        [a, b, c, d, e, f, g, h] => u64::from_be_bytes([a, b, c, d, e, f, g, h]),
        _ => bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
    }
}

/// A time of this kind, in nanoseconds since 1970. `None` where it is none, or before 1970.
pub(crate) fn time_ns(kind: Kind, bytes: &[u8]) -> Option<u64> {
    match kind {
        Kind::Seconds => unsigned(bytes).checked_mul(1_000_000_000),
        Kind::Milliseconds => unsigned(bytes).checked_mul(1_000_000),
        Kind::Microseconds | Kind::Nanoseconds => {
            // Some exporters write 16 bytes (pmacct 1.7.7): seconds and microseconds of 1970 as two words.
            if let Some(both) = bytes.first_chunk::<16>().filter(|_| bytes.len() == 16) {
                let (seconds, rest) = both.split_at(8);
                let rest = unsigned(rest).checked_mul(if kind == Kind::Microseconds { 1000 } else { 1 })?;
                return unsigned(seconds).checked_mul(1_000_000_000)?.checked_add(rest);
            }
            let both = unsigned(bytes);
            let seconds = (both >> 32).checked_sub(NTP_TO_UNIX)?;
            Some(seconds * 1_000_000_000 + (((both & 0xffff_ffff) * 1_000_000_000) >> 32))
        }
        _ => None,
    }
}
