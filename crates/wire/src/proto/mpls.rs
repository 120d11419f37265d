//! An MPLS label stack entry (RFC 3032 section 2.1). What follows the bottom of the stack is nowhere said; like
//! everyone, we look at the first nibble (RFC 4928 section 2) and take the rest for an Ethernet pseudo wire.

use super::{Auto, Carries, Field, Kind, Next, Protocol, Spec, Variable, get, numbers};

pub(super) static SPEC: Spec = Spec {
    protocol: Protocol::Mpls,
    name: "mpls",
    aliases: &[],
    title: "MPLS",
    doc: "A label stack entry; stack them as `mpls(label=16)/mpls(label=17)/ipv4`.",
    min_len: 4,
    fields: &[
        Field::new("label", 0, 20, Kind::Uint, "Label value.").default(16),
        Field::new("tc", 20, 3, Kind::Uint, "Traffic class.").or(&["cos", "exp"]),
        Field::new("s", 23, 1, Kind::Uint, "Bottom of stack: 1 unless another entry follows.")
            .or(&["bos"])
            .auto(Auto::Derived),
        Field::new("ttl", 24, 8, Kind::Uint, "Time to live.").default(64),
    ],
    carries: Carries::Only(&[Protocol::Mpls, Protocol::Ipv4, Protocol::Ipv6, Protocol::Ether]),
    variable: Variable::None,
    header_len: |bytes| (bytes.len() >= 4).then_some(4),
    next: |header, rest| match get(header, 23, 1) {
        Some(0) => Next::Layer(Protocol::Mpls),
        _ => match numbers::by_version(rest) {
            // A zero nibble is a control word (RFC 4385), which the tables do not have.
            Next::Payload if rest.len() >= 14 && rest.first().is_some_and(|byte| byte >> 4 != 0) => {
                Next::Layer(Protocol::Ether)
            }
            // Locally administered addresses such as 02:... begin with a zero nibble as well: a known EtherType
            // twelve bytes on settles it.
            Next::Payload => match get(rest, 96, 16).map(numbers::after_ethertype) {
                Some(Next::Layer(_)) => Next::Layer(Protocol::Ether),
                _ => Next::Payload,
            },
            layer => layer,
        },
    },
};

#[cfg(test)]
mod tests {
    use super::super::{Next, Protocol, testing};

    #[test]
    fn a_literal_packet() {
        let packet = [0x00, 0x01, 0x0b, 0x40, 0x45];
        testing::reads(Protocol::Mpls, &packet, &[("label", 16), ("tc", 5), ("s", 1), ("ttl", 64)]);
        testing::follows(Protocol::Mpls, &packet, 4, Next::Layer(Protocol::Ipv4));
        testing::follows(Protocol::Mpls, &[0, 1, 0, 64, 0, 1, 1, 64], 4, Next::Layer(Protocol::Mpls));
    }
}
