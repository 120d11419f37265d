//! ARP for IPv4 over Ethernet (RFC 826).

use super::{Carries, Field, Kind, Next, Protocol, Spec, Variable};

pub(super) static SPEC: Spec = Spec {
    protocol: Protocol::Arp,
    name: "arp",
    aliases: &[],
    title: "ARP",
    doc: "Address resolution of IPv4 over Ethernet.",
    min_len: 28,
    fields: &[
        Field::new("hwtype", 0, 16, Kind::Uint, "Hardware type; 1 is Ethernet.").default(1),
        Field::new("ptype", 16, 16, Kind::Hex, "Protocol type.").default(0x0800),
        Field::new("hwlen", 32, 8, Kind::Uint, "Length of a hardware address.").default(6),
        Field::new("plen", 40, 8, Kind::Uint, "Length of a protocol address.").default(4),
        Field::new("op", 48, 16, Kind::Uint, "Operation.").default(1).names(&[("who-has", 1), ("is-at", 2)]),
        Field::new("hwsrc", 64, 48, Kind::Mac, "Sender's Ethernet address.")
            .or(&["sha"])
            .default(0x0200_0000_0001),
        Field::new("psrc", 112, 32, Kind::Ipv4, "Sender's IPv4 address.").or(&["spa"]).default(0xc612_0001),
        Field::new("hwdst", 144, 48, Kind::Mac, "Target's Ethernet address.").or(&["tha"]),
        Field::new("pdst", 192, 32, Kind::Ipv4, "Target's IPv4 address.").or(&["tpa"]).default(0xc613_0001),
    ],
    carries: Carries::Only(&[]),
    variable: Variable::None,
    header_len: |bytes| (bytes.len() >= 28).then_some(28),
    next: |_, _| Next::Payload,
};

#[cfg(test)]
mod tests {
    use super::super::{Next, Protocol, testing};

    #[test]
    fn a_literal_packet() {
        let packet =
            [0, 1, 8, 0, 6, 4, 0, 2, 2, 0, 0, 0, 0, 1, 198, 18, 0, 1, 2, 0, 0, 0, 0, 2, 198, 19, 0, 1];
        testing::reads(
            Protocol::Arp,
            &packet,
            &[
                ("op", 2),
                ("hwsrc", 0x0200_0000_0001),
                ("psrc", 0xc612_0001),
                ("hwdst", 0x0200_0000_0002),
                ("pdst", 0xc613_0001),
            ],
        );
        testing::follows(Protocol::Arp, &packet, 28, Next::Payload);
    }
}
