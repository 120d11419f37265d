//! IPv6 (RFC 8200 section 3). Extension headers are layers of their own.

use super::{Auto, Carries, Field, Kind, Next, Protocol, Spec, Variable, get, numbers};

pub(super) static SPEC: Spec = Spec {
    protocol: Protocol::Ipv6,
    name: "ipv6",
    aliases: &["ip6"],
    title: "IPv6",
    doc: "Internet protocol, version 6.",
    min_len: 40,
    fields: &[
        Field::new("version", 0, 4, Kind::Uint, "Version.").default(6),
        Field::new("tc", 4, 8, Kind::Hex, "Traffic class: DSCP and ECN together.").or(&["tos"]),
        Field::new("dscp", 4, 6, Kind::Uint, "Differentiated services code point.").view(),
        Field::new("ecn", 10, 2, Kind::Uint, "Explicit congestion notification.").view(),
        Field::new("fl", 12, 20, Kind::Uint, "Flow label.").or(&["flowlabel"]),
        Field::new("plen", 32, 16, Kind::Uint, "Bytes after this header.")
            .or(&["len", "length"])
            .auto(Auto::PayloadLength),
        Field::new("nh", 48, 8, Kind::Uint, "Next header.").or(&["next", "proto"]).auto(Auto::Next),
        Field::new("hlim", 56, 8, Kind::Uint, "Hop limit.").or(&["hoplimit", "ttl"]).default(64),
        Field::new("src", 64, 128, Kind::Ipv6, "Source address.")
            .default(0x2001_0002_0000_0000_0000_0000_0000_0001),
        Field::new("dst", 192, 128, Kind::Ipv6, "Destination address; with `srv6` the active segment.")
            .default(0x2001_0002_0000_0001_0000_0000_0000_0001),
    ],
    carries: Carries::IpNumbers { but: &[Protocol::Icmp] },
    variable: Variable::None,
    header_len: |bytes| (bytes.len() >= 40).then_some(40),
    next: |header, rest| get(header, 48, 8).map_or(Next::Payload, |number| numbers::after_ip(number, rest)),
};

#[cfg(test)]
mod tests {
    use super::super::{Next, Protocol, testing};

    #[test]
    fn a_literal_packet() {
        let mut packet = vec![0x6b, 0x81, 0x23, 0x45, 0, 8, 6, 64];
        packet.extend([0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        packet.extend([0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
        testing::reads(
            Protocol::Ipv6,
            &packet,
            &[
                ("dscp", 46),
                ("fl", 0x12345),
                ("plen", 8),
                ("hlim", 64),
                ("dst", 0x2001_0db8_0000_0000_0000_0000_0000_0002),
            ],
        );
        testing::follows(Protocol::Ipv6, &packet, 40, Next::Layer(Protocol::Tcp));
    }
}
