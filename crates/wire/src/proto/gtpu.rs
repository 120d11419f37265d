//! GTP-U, version 1 (3GPP TS 29.281 section 5): the user plane of mobile networks.
//!
//! If any of the flags E, S, PN is set, sequence number, N-PDU number and next extension type are all present;
//! those whose own flag is clear mean nothing.

use super::{Auto, Carries, Field, Kind, Next, Protocol, Spec, Variable, get, numbers};

/// Whether the four optional bytes are there.
fn optional(header: &[u8], bit: usize) -> Option<usize> {
    (get(header, 5, 3)? != 0).then_some(bit)
}

pub(super) static SPEC: Spec = Spec {
    protocol: Protocol::Gtpu,
    name: "gtpu",
    aliases: &["gtp_u", "gtp", "gtp_u_header"],
    title: "GTP-U",
    doc: "GTP user plane over `udp`; `ipv4` or `ipv6` follows.",
    min_len: 8,
    fields: &[
        Field::new("version", 0, 3, Kind::Uint, "Version.").default(1),
        Field::new("pt", 3, 1, Kind::Uint, "Protocol type; 1 is GTP.").default(1),
        Field::new("reserved", 4, 1, Kind::Uint, "Reserved."),
        Field::new("e", 5, 1, Kind::Uint, "Extension header present; set by `ext`.").auto(Auto::Derived),
        Field::new("s", 6, 1, Kind::Uint, "Sequence number present."),
        Field::new("pn", 7, 1, Kind::Uint, "N-PDU number present."),
        Field::new("type", 8, 8, Kind::Uint, "Message type; 255 carries a user packet.")
            .or(&["gtp_type"])
            .default(255),
        Field::new("len", 16, 16, Kind::Uint, "Bytes after the first eight.")
            .or(&["length"])
            .auto(Auto::PayloadLength),
        Field::new("teid", 32, 32, Kind::Uint, "Tunnel endpoint identifier.").default(1),
        Field::new("seq", 64, 16, Kind::Uint, "Sequence number.").at(|h| optional(h, 64)).needs("s"),
        Field::new("npdu", 80, 8, Kind::Uint, "N-PDU number.").at(|h| optional(h, 80)).needs("pn"),
        Field::new("next_ex", 88, 8, Kind::Hex, "Type of the first extension header.")
            .at(|h| optional(h, 88))
            .auto(Auto::Derived)
            .needs("e"),
    ],
    carries: Carries::Only(&[Protocol::Ipv4, Protocol::Ipv6]),
    variable: Variable::GtpuExtensions,
    header_len: |bytes| {
        if get(bytes, 5, 3)? == 0 {
            return (bytes.len() >= 8).then_some(8);
        }
        let mut length = 12;
        let mut kind = *bytes.get(11)?;
        while kind != 0 && get(bytes, 5, 1)? == 1 {
            let units = usize::from(*bytes.get(length)?);
            if units == 0 {
                return None;
            }
            length += units * 4;
            kind = *bytes.get(length - 1)?;
        }
        (length <= bytes.len()).then_some(length)
    },
    next: |header, rest| match get(header, 8, 8) {
        Some(255) => numbers::by_version(rest),
        _ => Next::Payload,
    },
};

#[cfg(test)]
mod tests {
    use super::super::{Next, Protocol, testing};

    #[test]
    fn a_literal_packet() {
        let plain = [0x30, 255, 0, 1, 0, 0, 0, 7, 0x45];
        testing::reads(Protocol::Gtpu, &plain, &[("version", 1), ("type", 255), ("len", 1), ("teid", 7)]);
        testing::follows(Protocol::Gtpu, &plain, 8, Next::Layer(Protocol::Ipv4));
        // A PDU session container: one unit of four bytes, uplink, QFI 9, nothing after it.
        let extended = [0x36, 255, 0, 9, 0, 0, 0, 7, 0, 5, 0, 0x85, 1, 0x10, 9, 0, 0x60];
        testing::reads(Protocol::Gtpu, &extended, &[("e", 1), ("seq", 5), ("next_ex", 0x85)]);
        testing::follows(Protocol::Gtpu, &extended, 16, Next::Layer(Protocol::Ipv6));
        assert_eq!(
            (Protocol::Gtpu.spec().header_len)(&[0x34, 255, 0, 4, 0, 0, 0, 7, 0, 0, 0, 0x85, 0]),
            None
        );
    }
}
