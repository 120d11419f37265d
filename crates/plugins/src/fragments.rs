//! IP fragments that are hard to put together, at one's own equipment (RFC 1858, RFC 3128, RFC 5722). netdyno refuses other
//! destinations than private and benchmarking addresses.

use crate::common::*;
use plugin_sdk::options::Addresses;
use plugin_sdk::packet::{Packet, frag, ipv4, ipv6, udp};
use plugin_sdk::payload::{Payload, bytes};
use plugin_sdk::{Compile, Example, Fault, Run, Scenario, Stream};

choices! {
    /// What is wrong with a datagram's fragments.
    Kind {
        /// Nothing: three fragments in order.
        Whole = "whole",
        /// The last fragment comes first.
        Reversed = "reversed",
        /// The first one only: it is waited for the rest.
        FirstOnly = "first_only",
        /// The middle is missing.
        Gap = "gap",
        /// The second one overlaps the first.
        Overlap = "overlap",
        /// The second one comes twice.
        Duplicate = "duplicate",
        /// The first has 8 bytes: ports, and no more.
        Tiny = "tiny",
        /// The last one ends beyond 65,535 bytes.
        Beyond = "beyond",
    }
}

options! {
    /// Options of fragments.
    {
        /// Source addresses (IPv4 or IPv6).
        src_ip: Addresses = addresses("10.0.0.0/16"),
        /// The equipment under test: private or benchmarking addresses only.
        dst_ip: Addresses = addresses("198.18.0.1"),
        /// What is wrong with the fragments; several take turns.
        #[schemars(length(min = 1, max = 8))]
        kinds: Vec<Kind> = vec![Kind::FirstOnly],
        /// Bytes of a fragment's data, a multiple of 8.
        #[schemars(range(min = 16, max = 1440), extend("multipleOf" = 8))]
        size: u16 = 512,
        /// Source port of the datagrams, UDP.
        src_port: u16 = 4000,
        /// Destination port of the datagrams.
        dst_port: u16 = 9,
    }
}

/// Hard fragments.
#[derive(Debug)]
pub struct Fragments;

impl Compile for Fragments {
    type Options = Options;
    const NAME: &'static str = "fragments";
    const VERSION: &'static str = VERSION;
    const ABOUT: &'static str = "A stress profile for one's own equipment: fragments of UDP datagrams that overlap, are missing, tiny, doubled or too long. Destinations are private or benchmarking addresses.";
    const RESTRICTED: bool = true;

    fn examples() -> Vec<Example> {
        vec![
            example!("Datagrams that are never completed: a full table of reassembly", {}),
            example!("Everything that can be wrong, in turn", {
                "kinds": ["whole", "reversed", "gap", "overlap", "duplicate", "tiny", "beyond"]
            }),
            example!("Overlaps over IPv6, where they are forbidden", {
                "src_ip": "2001:2::/112", "dst_ip": "2001:2:0:1::1", "kinds": ["overlap", "first_only"], "size": 1024
            }),
        ]
    }

    fn compile(o: Options, _: &Run) -> Result<Scenario, Fault> {
        if !o.dst_ip.are_private() {
            return Err(Fault::at(
                "/dst_ip",
                "a private or benchmarking address (10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 198.18.0.0/15, fc00::/7, 2001:2::/48)",
            ));
        }
        if o.src_ip.is_ipv6() != o.dst_ip.is_ipv6() {
            return Err(Fault::at("/dst_ip", "of the same IP version as `src_ip`"));
        }
        if !o.size.is_multiple_of(8) {
            return Err(Fault::at("/size", "a multiple of 8: offsets count in 8 bytes"));
        }
        let mut streams = Vec::new();
        for (number, kind) in o.kinds.iter().enumerate() {
            let size = o.size;
            // Offset in bytes, length, whether more follow; in the order of sending.
            let parts: Vec<(u16, u16, bool)> = match kind {
                Kind::Whole => vec![(0, size, true), (size, size, true), (2 * size, size, false)],
                Kind::Reversed => vec![(2 * size, size, false), (size, size, true), (0, size, true)],
                Kind::FirstOnly => vec![(0, size, true)],
                Kind::Gap => vec![(0, size, true), (2 * size, size, false)],
                Kind::Overlap => vec![(0, size, true), (size - 8, size, true), (2 * size - 8, size, false)],
                Kind::Duplicate => {
                    vec![(0, size, true), (size, size, true), (size, size, true), (2 * size, size, false)]
                }
                Kind::Tiny => vec![(0, 8, true), (8, size, false)],
                Kind::Beyond => vec![(0, size, true), (65_528, size, false)],
            };
            let ends = parts.iter().map(|(offset, length, _)| u32::from(*offset) + u32::from(*length));
            // What the first fragment alone is waited for is two more like it.
            let more = if *kind == Kind::FirstOnly { 3 * u32::from(size) } else { 0 };
            let end = ends.max().unwrap_or(0).max(more);
            for (at, (offset, length, more)) in parts.iter().enumerate() {
                let packet = fragment(&o, number as u32, *offset, *length, *more, end);
                streams.push(Stream::new(packet).named(format!("{kind:?} {}", at + 1).to_lowercase()));
            }
        }
        // Equal shares: fragments of a datagram leave one after the other, and have the same identification.
        Ok(Scenario::new(streams))
    }
}

/// One fragment of a datagram of `end` bytes.
fn fragment(o: &Options, kind: u32, offset: u16, length: u16, more: bool, end: u32) -> Packet {
    let total = u16::try_from(end).unwrap_or(u16::MAX);
    // Each kind has identifications of its own, so that two kinds' datagrams never mix.
    if o.src_ip.is_ipv6() {
        let first = u64::from(kind) << 28;
        let id = plugin_sdk::value::counted(first, 1 << 28);
        let header =
            ipv6().src(&o.src_ip).dst(&o.dst_ip) / frag().nh(17).offset(offset / 8).m(u8::from(more)).id(id);
        if offset > 0 {
            return header / bytes().put(&rest(o, offset, length, end));
        }
        // Over IPv6 there must be a checksum (RFC 8200 section 8.1). netdyno reckons it over this fragment, and what follows adds
        // nothing to it.
        let packet = header / udp().sport(o.src_port).dport(o.dst_port).length(total);
        match usize::from(length.saturating_sub(UDP)) {
            0 => packet,
            data => packet / bytes().put(&vec![FILL; data]),
        }
    } else {
        let data: Payload = if offset == 0 {
            // Over IPv4 none is needed.
            let header = bytes().u16(o.src_port).u16(o.dst_port).u16(total).u16(0);
            header.put(&vec![FILL; usize::from(length.saturating_sub(UDP))])
        } else {
            bytes().put(&vec![FILL; usize::from(length)])
        };
        let first = u64::from(kind) << 13;
        let id = plugin_sdk::value::counted(first, 1 << 13);
        let header = ipv4().src(&o.src_ip).dst(&o.dst_ip).proto(17).id(id).frag(offset / 8);
        (if more { header.flags("MF") } else { header }) / data
    }
}

/// The data of a later fragment. A datagram over IPv6 ends with two bytes that take back, in one's complement, what the bytes behind its
/// first fragment add to its checksum, and the difference between the length of the datagram, which the checksum covers, and
/// that of the first fragment, which netdyno takes for it.
fn rest(o: &Options, offset: u16, length: u16, end: u32) -> Vec<u8> {
    let mut data = vec![FILL; usize::from(length)];
    // One that is longer than a datagram can be has no checksum.
    if u32::from(offset) + u32::from(length) == end && end <= u32::from(u16::MAX) {
        let first = if end == 8 + u32::from(o.size) { 8 } else { u32::from(o.size) };
        let words = u64::from(end - first) / 2 - 1;
        let sum = (u64::from(end - first) + words * u64::from(u16::from_be_bytes([FILL; 2]))) % 0xffff;
        let last = data.len().saturating_sub(2);
        data.truncate(last);
        data.extend((0xffff - sum as u16).to_be_bytes());
    }
    data
}

/// Bytes of UDP's header.
const UDP: u16 = 8;
/// What datagrams are filled with.
const FILL: u8 = b'f';
