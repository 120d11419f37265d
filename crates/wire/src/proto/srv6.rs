//! The segment routing header (RFC 8754 section 2).
//!
//! Segment List[0] is the last segment of the path: the list stands in reverse order of travel.

use super::{Auto, Carries, Field, Kind, Protocol, Spec, Variable, ext};

pub(super) static SPEC: Spec = Spec {
    protocol: Protocol::Srv6,
    name: "srv6",
    aliases: &["srh", "ipv6exthdrsegmentrouting"],
    title: "Segment routing header",
    doc: "Segment routing header. `segments[0]` is the path's last segment, as it stands on the wire.",
    min_len: 8,
    fields: &[
        Field::new("nh", 0, 8, Kind::Uint, "Next header.").or(&["next"]).auto(Auto::Next),
        Field::new("len", 8, 8, Kind::Uint, "Length in 8-byte units, not counting the first.")
            .or(&["length"])
            .auto(Auto::HeaderEights),
        Field::new("type", 16, 8, Kind::Uint, "Routing type.").default(4),
        Field::new("segleft", 24, 8, Kind::Uint, "Segments left; the highest index unless given.")
            .or(&["left"])
            .auto(Auto::Derived),
        Field::new("lastentry", 32, 8, Kind::Uint, "Index of the last entry of the list.")
            .or(&["last"])
            .auto(Auto::Derived),
        Field::new("flags", 40, 8, Kind::Hex, "Flags."),
        Field::new("tag", 48, 16, Kind::Uint, "Tag."),
    ],
    carries: Carries::IpNumbers { but: &[Protocol::Icmp, Protocol::HopOpts] },
    variable: Variable::Segments,
    header_len: ext::eights,
    next: ext::next,
};

#[cfg(test)]
mod tests {
    use super::super::{Next, Protocol, testing};

    #[test]
    fn a_literal_packet() {
        let mut packet = vec![41, 4, 4, 1, 1, 0, 0, 9];
        packet.extend([0x20; 32]);
        testing::reads(Protocol::Srv6, &packet, &[("left", 1), ("last", 1), ("tag", 9)]);
        testing::follows(Protocol::Srv6, &packet, 40, Next::Layer(Protocol::Ipv6));
    }
}
