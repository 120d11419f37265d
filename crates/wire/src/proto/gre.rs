//! GRE (RFC 2784), with key and sequence number (RFC 2890).

use super::{Auto, Carries, Field, Kind, Next, Protocol, Spec, Variable, get, numbers};

/// The checksum, key and sequence words stand in this order, each only if its flag is set.
fn word(header: &[u8], flag: usize, before: &[usize]) -> Option<usize> {
    let set = |bit: usize| get(header, bit, 1) == Some(1);
    set(flag).then(|| 32 + 32 * before.iter().filter(|bit| set(**bit)).count())
}

pub(super) static SPEC: Spec = Spec {
    protocol: Protocol::Gre,
    name: "gre",
    aliases: &[],
    title: "GRE",
    doc: "Generic routing encapsulation, of anything with an EtherType or of `ether`.",
    min_len: 4,
    fields: &[
        Field::new("chksum_present", 0, 1, Kind::Uint, "Checksum present.").or(&["c"]),
        Field::new(
            "routing_present",
            1,
            1,
            Kind::Uint,
            "Routing present (RFC 1701; its words are not sent).",
        )
        .or(&["r"]),
        Field::new("key_present", 2, 1, Kind::Uint, "Key present.").or(&["k"]),
        Field::new("seq_present", 3, 1, Kind::Uint, "Sequence number present.").or(&["s", "seqnum_present"]),
        Field::new("reserved", 4, 9, Kind::Hex, "Reserved."),
        Field::new("version", 13, 3, Kind::Uint, "Version."),
        Field::new("proto", 16, 16, Kind::Hex, "EtherType of what follows.")
            .or(&["type", "protocol"])
            .auto(Auto::Next),
        Field::new("chksum", 32, 16, Kind::Hex, "Checksum; `chksum_present=1` fills it in.")
            .or(&["checksum"])
            .auto(Auto::Checksum)
            .at(|h| word(h, 0, &[]))
            .needs("chksum_present"),
        Field::new("key", 32, 32, Kind::Uint, "Key.").at(|h| word(h, 2, &[0])).needs("key_present"),
        Field::new("seq", 32, 32, Kind::Uint, "Sequence number.")
            .or(&["seqence_number", "sequence"])
            .at(|h| word(h, 3, &[0, 2]))
            .needs("seq_present"),
    ],
    carries: Carries::EtherTypes,
    variable: Variable::None,
    header_len: |bytes| {
        let words = [0, 2, 3].iter().filter(|bit| get(bytes, **bit, 1) == Some(1)).count();
        let length = 4 + 4 * words;
        (length <= bytes.len()).then_some(length)
    },
    next: |header, _| match (get(header, 13, 3), get(header, 16, 16)) {
        (Some(0), Some(number)) => numbers::after_ethertype(number),
        _ => Next::Payload,
    },
};

#[cfg(test)]
mod tests {
    use super::super::{Next, Protocol, testing};

    #[test]
    fn a_literal_packet() {
        let packet = [0xb0, 0, 8, 0, 0xab, 0xcd, 0, 0, 0, 0, 0, 7, 0, 0, 0, 9, 0x45];
        testing::reads(Protocol::Gre, &packet, &[("chksum", 0xabcd), ("key", 7), ("seq", 9)]);
        testing::follows(Protocol::Gre, &packet, 16, Next::Layer(Protocol::Ipv4));
        let short = [0x20, 0, 0x65, 0x58, 0, 0, 0, 7];
        testing::reads(Protocol::Gre, &short, &[("key", 7)]);
        testing::follows(Protocol::Gre, &short, 8, Next::Layer(Protocol::Ether));
    }
}
