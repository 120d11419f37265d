//! VLAN tags (IEEE Std 802.1Q clause 9): customer tags (C-TAG, EtherType 0x8100) and service tags (S-TAG, 0x88a8).
//!
//! The EtherType that announces a tag stands in the header before it; a tag's own last field is the next one.

use super::{Auto, Carries, Field, Kind, Next, Protocol, Spec, Variable, get, numbers};

const FIELDS: &[Field] = &[
    Field::new("prio", 0, 3, Kind::Uint, "Priority code point.").or(&["pcp"]),
    Field::new("dei", 3, 1, Kind::Uint, "Drop eligible indicator.").or(&["cfi"]),
    Field::new("id", 4, 12, Kind::Uint, "VLAN identifier.").or(&["vlan", "vid"]).default(1),
    Field::new("type", 16, 16, Kind::Hex, "EtherType of what follows.").or(&["ethertype"]).auto(Auto::Next),
];

pub(super) static VLAN: Spec = Spec {
    protocol: Protocol::Vlan,
    name: "vlan",
    aliases: &["dot1q"],
    title: "VLAN",
    doc: "802.1Q tag; announced by EtherType 0x8100. Stack it for more tags.",
    min_len: 4,
    fields: FIELDS,
    carries: Carries::EtherTypes,
    variable: Variable::None,
    header_len: |bytes| (bytes.len() >= 4).then_some(4),
    next: |header, _| get(header, 16, 16).map_or(Next::Payload, numbers::after_ethertype),
};

pub(super) static QINQ: Spec = Spec {
    protocol: Protocol::Qinq,
    name: "qinq",
    aliases: &["dot1ad", "svlan"],
    title: "VLAN (802.1ad)",
    doc: "802.1ad service tag; announced by EtherType 0x88a8. `qinq(id=100)/vlan(id=5)` is QinQ.",
    min_len: 4,
    fields: FIELDS,
    carries: Carries::EtherTypes,
    variable: Variable::None,
    header_len: |bytes| (bytes.len() >= 4).then_some(4),
    next: |header, _| get(header, 16, 16).map_or(Next::Payload, numbers::after_ethertype),
};

#[cfg(test)]
mod tests {
    use super::super::{Next, Protocol, testing};

    #[test]
    fn a_literal_packet() {
        let packet = [0xb0, 0x05, 0x86, 0xdd, 0x60];
        testing::reads(Protocol::Vlan, &packet, &[("prio", 5), ("dei", 1), ("vid", 5), ("type", 0x86dd)]);
        testing::follows(Protocol::Vlan, &packet, 4, Next::Layer(Protocol::Ipv6));
        testing::follows(Protocol::Qinq, &[0, 100, 0x81, 0x00], 4, Next::Layer(Protocol::Vlan));
    }
}
