//! ICMP (RFC 792). The second 32-bit word means something else for each type.

use super::{Auto, Carries, Field, Kind, Next, Protocol, Spec, Variable, get};

/// Echo, time stamp, information, address mask, router solicitation: identifier and sequence number.
fn query(header: &[u8]) -> bool {
    matches!(header.first(), Some(0 | 8 | 10 | 13..=18))
}

pub(super) static SPEC: Spec = Spec {
    protocol: Protocol::Icmp,
    name: "icmp",
    aliases: &[],
    title: "ICMP",
    doc: "Internet control message protocol. After an error type the quoted `ipv4` may follow.",
    min_len: 8,
    fields: &[
        Field::new("type", 0, 8, Kind::Uint, "Type.").default(8).names(&[
            ("echo-reply", 0),
            ("unreachable", 3),
            ("redirect", 5),
            ("echo-request", 8),
            ("time-exceeded", 11),
        ]),
        Field::new("code", 8, 8, Kind::Uint, "Code."),
        Field::new("chksum", 16, 16, Kind::Hex, "Checksum.").or(&["checksum"]).auto(Auto::Checksum),
        Field::new("rest", 32, 32, Kind::Hex, "The second word, whatever the type."),
        Field::new("id", 32, 16, Kind::Uint, "Identifier (echo, time stamp).")
            .at(|h| query(h).then_some(32))
            .default(1),
        Field::new("seq", 48, 16, Kind::Uint, "Sequence number (echo, time stamp).")
            .at(|h| query(h).then_some(48))
            .default(1),
        Field::new("gw", 32, 32, Kind::Ipv4, "Gateway (type 5).")
            .at(|h| (h.first() == Some(&5)).then_some(32)),
        Field::new("ptr", 32, 8, Kind::Uint, "Pointer (type 12).")
            .at(|h| (h.first() == Some(&12)).then_some(32)),
        Field::new("mtu", 48, 16, Kind::Uint, "Next hop's MTU (type 3, code 4).")
            .or(&["nexthopmtu"])
            .at(|h| (h.first() == Some(&3) && h.get(1) == Some(&4)).then_some(48)),
    ],
    carries: Carries::Only(&[Protocol::Ipv4]),
    variable: Variable::None,
    header_len: |bytes| (bytes.len() >= 8).then_some(8),
    next: |header, rest| match header.first() {
        Some(3 | 4 | 5 | 11 | 12) if get(rest, 0, 4) == Some(4) => Next::Layer(Protocol::Ipv4),
        _ => Next::Payload,
    },
};

#[cfg(test)]
mod tests {
    use super::super::{Next, Protocol, testing};

    #[test]
    fn a_literal_packet() {
        let packet = [8, 0, 0xab, 0xcd, 0, 7, 0, 9];
        testing::reads(Protocol::Icmp, &packet, &[("type", 8), ("chksum", 0xabcd), ("id", 7), ("seq", 9)]);
        testing::follows(Protocol::Icmp, &packet, 8, Next::Payload);
        testing::follows(Protocol::Icmp, &[3, 1, 0, 0, 0, 0, 0, 0, 0x45], 8, Next::Layer(Protocol::Ipv4));
        assert_eq!(Protocol::Icmp.spec().field("gw").unwrap().read(&packet), None);
    }
}
