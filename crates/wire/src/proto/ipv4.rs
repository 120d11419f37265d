//! IPv4 (RFC 791), with the differentiated services field (RFC 2474) and ECN (RFC 3168).

use super::options::{Layout, OptionSpec, option};
use super::{Auto, Carries, Field, Kind, Next, Protocol, Spec, Variable, get, numbers};

/// RFC 791 section 3.1, RFC 2113 (router alert). The copied flag and class are part of the number.
pub(super) const OPTIONS: &[OptionSpec] = &[
    option("eol", &["end"], 0, Layout::Bare, "end of the list"),
    option("nop", &[], 1, Layout::Bare, "no operation"),
    option("rr", &["record_route"], 7, Layout::Route, "record route: empty slots or addresses"),
    option("ts", &["timestamp"], 68, Layout::TimeStamps, "time stamps: empty slots"),
    option("lsrr", &[], 131, Layout::Route, "loose source route"),
    option("ssrr", &[], 137, Layout::Route, "strict source route"),
    option("ra", &["router_alert"], 148, Layout::Fixed(&[2]), "router alert"),
];

pub(super) static SPEC: Spec = Spec {
    protocol: Protocol::Ipv4,
    name: "ipv4",
    aliases: &["ip"],
    title: "IPv4",
    doc: "Internet protocol, version 4.",
    min_len: 20,
    fields: &[
        Field::new("version", 0, 4, Kind::Uint, "Version.").default(4),
        Field::new("ihl", 4, 4, Kind::Uint, "Header length in 32-bit words.").auto(Auto::HeaderWords),
        Field::new("tos", 8, 8, Kind::Hex, "Type of service: DSCP and ECN together."),
        Field::new("dscp", 8, 6, Kind::Uint, "Differentiated services code point.").view(),
        Field::new("ecn", 14, 2, Kind::Uint, "Explicit congestion notification.").view(),
        Field::new("len", 16, 16, Kind::Uint, "Header and payload in bytes.")
            .or(&["length"])
            .auto(Auto::Length),
        Field::new("id", 32, 16, Kind::Uint, "Identification.").default(1),
        Field::new("flags", 48, 3, Kind::Flags(&["MF", "DF", "evil"]), "Fragmentation flags."),
        Field::new("frag", 51, 13, Kind::Uint, "Fragment offset in 8-byte units.").or(&["offset"]),
        Field::new("ttl", 64, 8, Kind::Uint, "Time to live.").default(64),
        Field::new("proto", 72, 8, Kind::Uint, "Protocol of what follows.")
            .or(&["protocol"])
            .auto(Auto::Next),
        Field::new("chksum", 80, 16, Kind::Hex, "Header checksum.")
            .or(&["checksum"])
            .auto(Auto::HeaderChecksum),
        Field::new("src", 96, 32, Kind::Ipv4, "Source address.").default(0xc612_0001),
        Field::new("dst", 128, 32, Kind::Ipv4, "Destination address.").default(0xc613_0001),
    ],
    carries: Carries::IpNumbers {
        but: &[
            Protocol::HopOpts,
            Protocol::DstOpts,
            Protocol::Routing,
            Protocol::Fragment,
            Protocol::Srv6,
            Protocol::Icmpv6,
        ],
    },
    variable: Variable::Options { table: OPTIONS, align: 4 },
    header_len: |bytes| {
        let length = get(bytes, 4, 4)? as usize * 4;
        (length >= 20 && length <= bytes.len()).then_some(length)
    },
    next: |header, rest| match (get(header, 51, 13), get(header, 72, 8)) {
        (Some(0), Some(number)) => numbers::after_ip(number, rest),
        _ => Next::Payload,
    },
};

/// Where the address stands that transport checksums cover as the destination: the end of a source route that is
/// not yet used up (RFC 791 section 3.1, RFC 1122 section 4.1.3.4), else the destination field.
pub fn final_destination(header: &[u8]) -> usize {
    let mut at = 20;
    while let Some(kind) = header.get(at) {
        let length = match (kind, header.get(at + 1)) {
            (0, _) => break,
            (1, _) => 1,
            (_, Some(length @ 2..)) => usize::from(*length),
            _ => break,
        };
        if matches!(kind, 131 | 137) && length >= 7 && at + length <= header.len() {
            let pointer = header.get(at + 2).map_or(0, |pointer| usize::from(*pointer));
            return if pointer < length { at + length - 4 } else { 16 };
        }
        at += length;
    }
    16
}

#[cfg(test)]
mod tests {
    use super::super::{Next, Protocol, testing};

    #[test]
    fn a_literal_packet() {
        let packet = [
            0x46, 0xb8, 0, 24, 0, 1, 0x40, 0, 64, 17, 0x12, 0x34, 198, 18, 0, 1, 198, 19, 0, 1, 148, 4, 0, 0,
        ];
        testing::reads(
            Protocol::Ipv4,
            &packet,
            &[
                ("ihl", 6),
                ("dscp", 46),
                ("len", 24),
                ("flags", 2),
                ("ttl", 64),
                ("checksum", 0x1234),
                ("dst", 0xc613_0001),
            ],
        );
        testing::follows(Protocol::Ipv4, &packet, 24, Next::Layer(Protocol::Udp));
    }

    #[test]
    fn a_source_route_ends_at_the_final_destination() {
        let mut header = vec![0; 20];
        header.extend([1, 131, 11, 4, 10, 0, 0, 1, 10, 0, 0, 2]);
        assert_eq!(super::final_destination(&header), 28);
        header[23] = 12;
        assert_eq!(super::final_destination(&header), 16, "the route is used up");
        assert_eq!(super::final_destination(&header[..24]), 16);
    }

    #[test]
    fn a_later_fragment_has_payload_only() {
        let packet = [0x45, 0, 0, 20, 0, 1, 0, 5, 64, 17, 0, 0, 198, 18, 0, 1, 198, 19, 0, 1];
        testing::follows(Protocol::Ipv4, &packet, 20, Next::Payload);
    }
}
