//! IGMP, version 2 (RFC 2236): what hosts tell multicast routers. Version 1 has the same header, version 3 is [`super::igmpv3`].

use super::{Auto, Carries, Field, Kind, Next, Protocol, Spec, Variable};

pub(super) static SPEC: Spec = Spec {
    protocol: Protocol::Igmp,
    name: "igmp",
    aliases: &[],
    title: "IGMP",
    doc: "Internet group management protocol, version 2, over `ipv4`.",
    min_len: 8,
    fields: &[
        Field::new("type", 0, 8, Kind::Hex, "Type.").default(0x16).names(&[
            ("query", 0x11),
            ("report-v1", 0x12),
            ("report", 0x16),
            ("leave", 0x17),
        ]),
        Field::new(
            "maxresp",
            8,
            8,
            Kind::Uint,
            "Longest time to an answer, in tenths of a second (queries).",
        ),
        Field::new("chksum", 16, 16, Kind::Hex, "Checksum.").or(&["checksum"]).auto(Auto::Checksum),
        Field::new("group", 32, 32, Kind::Ipv4, "Group address; 0 in a query is all groups.")
            .or(&["gaddr"])
            .default(0xefff_0001),
    ],
    carries: Carries::Only(&[]),
    variable: Variable::None,
    header_len: |bytes| (bytes.len() >= 8).then_some(8),
    next: |_, _| Next::Payload,
};

#[cfg(test)]
mod tests {
    use super::super::{Next, Protocol, testing};

    #[test]
    fn a_literal_packet() {
        let packet = [0x17, 0, 0xf8, 0xfc, 239, 255, 0, 2];
        testing::reads(
            Protocol::Igmp,
            &packet,
            &[("type", 0x17), ("maxresp", 0), ("chksum", 0xf8fc), ("group", 0xefff_0002)],
        );
        testing::follows(Protocol::Igmp, &packet, 8, Next::Payload);
    }
}
