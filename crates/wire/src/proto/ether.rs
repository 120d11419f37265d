//! Ethernet II (IEEE Std 802.3 clause 3). The frame check sequence is not part of a frame in a buffer.

use super::{Auto, Carries, Field, Kind, Next, Protocol, Spec, Variable, get, numbers};

pub(super) static SPEC: Spec = Spec {
    protocol: Protocol::Ether,
    name: "ether",
    aliases: &["eth", "ethernet"],
    title: "Ethernet",
    doc: "Ethernet II. Put in front by itself when an expression does not start with it.",
    min_len: 14,
    fields: &[
        Field::new("dst", 0, 48, Kind::Mac, "Destination address.").default(0x0200_0000_0002),
        Field::new("src", 48, 48, Kind::Mac, "Source address.").default(0x0200_0000_0001),
        Field::new("type", 96, 16, Kind::Hex, "EtherType of what follows; below 0x0600 an 802.3 length.")
            .or(&["ethertype"])
            .auto(Auto::Next),
    ],
    carries: Carries::EtherTypes,
    variable: Variable::None,
    header_len: |bytes| (bytes.len() >= 14).then_some(14),
    next: |header, _| get(header, 96, 16).map_or(Next::Payload, numbers::after_ethertype),
};

#[cfg(test)]
mod tests {
    use super::super::{Next, Protocol, testing};

    #[test]
    fn a_literal_packet() {
        let packet = [0x02, 0, 0, 0, 0, 2, 0x02, 0, 0, 0, 0, 1, 0x08, 0x00, 0x45];
        testing::reads(
            Protocol::Ether,
            &packet,
            &[("dst", 0x0200_0000_0002), ("src", 0x0200_0000_0001), ("type", 0x800)],
        );
        testing::follows(Protocol::Ether, &packet, 14, Next::Layer(Protocol::Ipv4));
    }
}
