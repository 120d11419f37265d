//! UDP (RFC 768). What it carries is known by its ports.

use super::{Auto, Carries, Field, Kind, Next, Protocol, Spec, Variable, get, numbers};

pub(super) static SPEC: Spec = Spec {
    protocol: Protocol::Udp,
    name: "udp",
    aliases: &[],
    title: "UDP",
    doc: "User datagram protocol. `chksum=0` sends none.",
    min_len: 8,
    fields: &[
        Field::new("sport", 0, 16, Kind::Uint, "Source port.").or(&["srcport"]).default(1024),
        Field::new(
            "dport",
            16,
            16,
            Kind::Uint,
            "Destination port; before vxlan, gtpu, dns, dhcp and ntp theirs.",
        )
        .or(&["dstport"])
        .default(9),
        Field::new("len", 32, 16, Kind::Uint, "Header and payload in bytes.")
            .or(&["length"])
            .auto(Auto::Length),
        Field::new("chksum", 48, 16, Kind::Hex, "Checksum.").or(&["checksum"]).auto(Auto::UdpChecksum),
    ],
    carries: Carries::UdpPorts,
    variable: Variable::None,
    header_len: |bytes| (bytes.len() >= 8).then_some(8),
    next: |header, rest| {
        let ports = [16, 0].into_iter().filter_map(|bit| get(header, bit, 16));
        match ports.filter_map(numbers::after_udp).next() {
            // Version 1 and protocol type GTP; anything else on this port is not GTP-U.
            Some(Protocol::Gtpu) if rest.first().is_none_or(|byte| byte >> 4 != 3) => Next::Payload,
            // Anyone may use these ports: what is no message of theirs is payload.
            Some(protocol @ (Protocol::Dns | Protocol::Dhcp | Protocol::Ntp))
                if !numbers::sound(protocol, rest) =>
            {
                Next::Payload
            }
            Some(protocol) => Next::Layer(protocol),
            None => Next::Payload,
        }
    },
};

#[cfg(test)]
mod tests {
    use super::super::{Next, Protocol, testing};

    #[test]
    fn a_literal_packet() {
        let packet = [4, 0, 0, 53, 0, 8, 0xab, 0xcd];
        testing::reads(
            Protocol::Udp,
            &packet,
            &[("sport", 1024), ("dport", 53), ("len", 8), ("chksum", 0xabcd)],
        );
        testing::follows(Protocol::Udp, &packet, 8, Next::Payload);
        testing::follows(Protocol::Udp, &[4, 0, 0x12, 0xb5, 0, 8, 0, 0], 8, Next::Layer(Protocol::Vxlan));
    }
}
