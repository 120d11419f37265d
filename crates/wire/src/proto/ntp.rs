//! NTP, versions 3 and 4 (RFC 5905 section 7.3), without extension fields.

use super::{Carries, Field, Kind, Next, Protocol, Spec, Variable};

pub(super) static SPEC: Spec = Spec {
    protocol: Protocol::Ntp,
    name: "ntp",
    aliases: &[],
    title: "NTP",
    doc: "Network time protocol over `udp`; a client's request unless fields say otherwise.",
    min_len: 48,
    fields: &[
        Field::new("leap", 0, 2, Kind::Uint, "Leap second indicator; 3 is not synchronised."),
        Field::new("version", 2, 3, Kind::Uint, "Version.").default(4),
        Field::new("mode", 5, 3, Kind::Uint, "Mode.").default(3).names(&[
            ("active", 1),
            ("passive", 2),
            ("client", 3),
            ("server", 4),
            ("broadcast", 5),
            ("control", 6),
            ("private", 7),
        ]),
        Field::new("stratum", 8, 8, Kind::Uint, "Distance from a reference clock."),
        Field::new("poll", 16, 8, Kind::Uint, "Poll interval, as a power of two seconds.").default(6),
        Field::new("precision", 24, 8, Kind::Hex, "Precision, as a power of two seconds, signed.")
            .default(0xe9),
        Field::new("delay", 32, 32, Kind::Hex, "Root delay, 16.16 bits of seconds."),
        Field::new("dispersion", 64, 32, Kind::Hex, "Root dispersion, 16.16 bits of seconds."),
        Field::new("refid", 96, 32, Kind::Hex, "Reference identifier.").or(&["id"]),
        Field::new(
            "ref",
            128,
            64,
            Kind::Hex,
            "When the clock was last set, 32.32 bits of seconds since 1900.",
        ),
        Field::new("orig", 192, 64, Kind::Hex, "When the request left, by the client."),
        Field::new("recv", 256, 64, Kind::Hex, "When the request came, by the server."),
        Field::new("sent", 320, 64, Kind::Hex, "When this left."),
    ],
    carries: Carries::Only(&[]),
    variable: Variable::None,
    header_len: |bytes| (bytes.len() >= 48).then_some(48),
    next: |_, _| Next::Payload,
};

#[cfg(test)]
mod tests {
    use super::super::{Next, Protocol, testing};

    #[test]
    fn a_literal_packet() {
        let mut packet = vec![0x24, 2, 6, 0xe9, 0, 0, 1, 0, 0, 0, 2, 0, 10, 0, 0, 1];
        packet.resize(47, 0);
        packet.push(9);
        testing::reads(
            Protocol::Ntp,
            &packet,
            &[
                ("version", 4),
                ("mode", 4),
                ("stratum", 2),
                ("precision", 0xe9),
                ("refid", 0x0a00_0001),
                ("sent", 9),
            ],
        );
        testing::follows(Protocol::Ntp, &packet, 48, Next::Payload);
    }
}
