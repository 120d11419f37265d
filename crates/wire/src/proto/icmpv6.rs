//! ICMPv6 (RFC 4443), neighbour discovery (RFC 4861) and multicast listeners (RFC 2710).

use super::options::{Layout, OptionSpec, option};
use super::{Auto, Carries, Field, Kind, Next, Protocol, Spec, Variable, get};

/// RFC 4861 section 4.6. Their length is counted in 8-byte units; `Layout::Eights` says so.
pub(super) const OPTIONS: &[OptionSpec] = &[
    option("slla", &[], 1, Layout::Eights(&[6]), "source link-layer address"),
    option("tlla", &[], 2, Layout::Eights(&[6]), "target link-layer address"),
    option("mtu", &[], 5, Layout::Eights(&[2, 4]), "reserved, MTU"),
];

/// Neighbour solicitation and advertisement, redirect, multicast listener: an address at the eighth byte.
fn target(header: &[u8]) -> Option<usize> {
    matches!(header.first(), Some(130..=132 | 135..=137)).then_some(64)
}

fn echo(header: &[u8]) -> bool {
    matches!(header.first(), Some(128 | 129))
}

pub(super) static SPEC: Spec = Spec {
    protocol: Protocol::Icmpv6,
    name: "icmpv6",
    aliases: &["icmp6"],
    title: "ICMPv6",
    doc: "ICMP for IPv6, with neighbour discovery (types 133 to 137). After an error type the quoted `ipv6` may follow.",
    min_len: 8,
    fields: &[
        Field::new("type", 0, 8, Kind::Uint, "Type.").default(128).names(&[
            ("unreachable", 1),
            ("too-big", 2),
            ("time-exceeded", 3),
            ("echo-request", 128),
            ("echo-reply", 129),
            ("router-solicit", 133),
            ("router-advert", 134),
            ("neighbor-solicit", 135),
            ("neighbor-advert", 136),
        ]),
        Field::new("code", 8, 8, Kind::Uint, "Code."),
        Field::new("cksum", 16, 16, Kind::Hex, "Checksum.")
            .or(&["chksum", "checksum"])
            .auto(Auto::PseudoChecksum),
        Field::new("rest", 32, 32, Kind::Hex, "The second word, whatever the type.").or(&["flags"]),
        Field::new("id", 32, 16, Kind::Uint, "Identifier (types 128, 129).")
            .at(|h| echo(h).then_some(32))
            .default(1),
        Field::new("seq", 48, 16, Kind::Uint, "Sequence number (types 128, 129).")
            .at(|h| echo(h).then_some(48))
            .default(1),
        Field::new("mtu", 32, 32, Kind::Uint, "MTU (type 2).").at(|h| (h.first() == Some(&2)).then_some(32)),
        Field::new("ptr", 32, 32, Kind::Uint, "Pointer (type 4).")
            .at(|h| (h.first() == Some(&4)).then_some(32)),
        Field::new(
            "target",
            64,
            128,
            Kind::Ipv6,
            "Target or multicast address (types 130 to 132, 135 to 137).",
        )
        .or(&["tgt", "mladdr"])
        .at(target)
        .default(0x2001_0002_0000_0001_0000_0000_0000_0001),
        Field::new("dst", 192, 128, Kind::Ipv6, "Redirected destination (type 137).")
            .at(|h| (h.first() == Some(&137)).then_some(192)),
        Field::new("reachable", 64, 32, Kind::Uint, "Reachable time in ms (type 134).")
            .at(|h| (h.first() == Some(&134)).then_some(64)),
        Field::new("retrans", 96, 32, Kind::Uint, "Retransmission timer in ms (type 134).")
            .at(|h| (h.first() == Some(&134)).then_some(96)),
    ],
    carries: Carries::Only(&[Protocol::Ipv6]),
    variable: Variable::Options { table: OPTIONS, align: 8 },
    header_len: |bytes| {
        let fixed = fixed_len(*bytes.first()?);
        // Neighbour discovery's options run to the end of the message.
        let length = if matches!(bytes.first(), Some(133..=137)) { bytes.len() } else { fixed };
        (bytes.len() >= fixed).then_some(length)
    },
    next: |header, rest| match header.first() {
        Some(1..=4) if get(rest, 0, 4) == Some(6) => Next::Layer(Protocol::Ipv6),
        _ => Next::Payload,
    },
};

/// Bytes of a message of this type before its options or payload.
pub fn fixed_len(kind: u8) -> usize {
    match kind {
        130..=132 | 135 | 136 => 24,
        134 => 16,
        137 => 40,
        _ => 8,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Next, Protocol, testing};

    #[test]
    fn literal_packets() {
        let echo = [128, 0, 0xab, 0xcd, 0, 7, 0, 9, b'x'];
        testing::reads(Protocol::Icmpv6, &echo, &[("type", 128), ("chksum", 0xabcd), ("id", 7), ("seq", 9)]);
        testing::follows(Protocol::Icmpv6, &echo, 8, Next::Payload);
        let mut solicit = vec![135, 0, 0, 0, 0, 0, 0, 0];
        solicit.extend(1u128.to_be_bytes());
        solicit.extend([1, 1, 2, 0, 0, 0, 0, 1]);
        testing::reads(Protocol::Icmpv6, &solicit, &[("target", 1)]);
        testing::follows(Protocol::Icmpv6, &solicit, 32, Next::Payload);
    }
}
