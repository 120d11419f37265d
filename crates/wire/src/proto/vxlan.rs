//! VXLAN (RFC 7348 section 5).

use super::{Carries, Field, Kind, Next, Protocol, Spec, Variable};

pub(super) static SPEC: Spec = Spec {
    protocol: Protocol::Vxlan,
    name: "vxlan",
    aliases: &[],
    title: "VXLAN",
    doc: "Virtual extensible LAN over `udp`; `ether` follows.",
    min_len: 8,
    fields: &[
        Field::new("flags", 0, 8, Kind::Hex, "Flags; 0x08 says the VNI is valid.").default(8),
        Field::new("reserved1", 8, 24, Kind::Hex, "Reserved."),
        Field::new("vni", 32, 24, Kind::Uint, "Network identifier.").default(1),
        Field::new("reserved2", 56, 8, Kind::Hex, "Reserved."),
    ],
    carries: Carries::Only(&[Protocol::Ether]),
    variable: Variable::None,
    header_len: |bytes| (bytes.len() >= 8).then_some(8),
    next: |_, _| Next::Layer(Protocol::Ether),
};

#[cfg(test)]
mod tests {
    use super::super::{Next, Protocol, testing};

    #[test]
    fn a_literal_packet() {
        let packet = [8, 0, 0, 0, 0, 0x12, 0x34, 0];
        testing::reads(Protocol::Vxlan, &packet, &[("flags", 8), ("vni", 0x1234)]);
        testing::follows(Protocol::Vxlan, &packet, 8, Next::Layer(Protocol::Ether));
    }
}
