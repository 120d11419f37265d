//! IPv6 extension headers (RFC 8200 section 4): hop-by-hop options, destination options, routing, fragment.
//! The segment routing header has its own file.

use super::options::{Layout, OptionSpec, option};
use super::{Auto, Carries, Field, Kind, Next, Protocol, Spec, Variable, get, numbers};

/// RFC 8200 section 4.2, RFC 2711 (router alert), RFC 2675 (jumbo), RFC 2473 (tunnel limit), RFC 6275 (home).
pub(super) const OPTIONS: &[OptionSpec] = &[
    option("pad1", &[], 0, Layout::Bare, "one byte of padding"),
    option("padn", &[], 1, Layout::Zeros, "padding with that many zero bytes"),
    option("tunnel_limit", &[], 4, Layout::Fixed(&[1]), "tunnel encapsulation limit"),
    option("ra", &["router_alert"], 5, Layout::Fixed(&[2]), "router alert"),
    option("jumbo", &[], 0xc2, Layout::Fixed(&[4]), "jumbo payload"),
    option("home", &["hao"], 0xc9, Layout::Fixed(&[16]), "home address"),
];

const NEXT: Field = Field::new("nh", 0, 8, Kind::Uint, "Next header.").or(&["next"]).auto(Auto::Next);
const LENGTH: Field = Field::new("len", 8, 8, Kind::Uint, "Length in 8-byte units, not counting the first.")
    .or(&["length"])
    .auto(Auto::HeaderEights);

/// Length of a header with [`LENGTH`].
pub(super) fn eights(bytes: &[u8]) -> Option<usize> {
    let length = (get(bytes, 8, 8)? as usize + 1) * 8;
    (length <= bytes.len()).then_some(length)
}

/// What [`NEXT`] announces.
pub(super) fn next(header: &[u8], rest: &[u8]) -> Next {
    get(header, 0, 8).map_or(Next::Payload, |number| numbers::after_ip(number, rest))
}

/// Where a home address stands in a destination options header: transport checksums cover it as the source
/// (RFC 6275 section 11.3.1).
pub fn home_address(header: &[u8]) -> Option<usize> {
    let mut at = 2;
    loop {
        at += match (header.get(at)?, header.get(at + 1)) {
            (0, _) => 1,
            (0xc9, Some(16)) => return (at + 18 <= header.len()).then_some(at + 2),
            (_, length) => 2 + usize::from(*length?),
        };
    }
}

pub(super) static HOP_BY_HOP: Spec = Spec {
    protocol: Protocol::HopOpts,
    name: "hopopts",
    aliases: &["hbh", "ipv6exthdrhopbyhop"],
    title: "IPv6 hop-by-hop options",
    doc: "Hop-by-hop options header; only directly after `ipv6`. Padded to 8 bytes.",
    min_len: 2,
    fields: &[NEXT, LENGTH],
    carries: Carries::IpNumbers { but: &[Protocol::Icmp, Protocol::HopOpts] },
    variable: Variable::Options { table: OPTIONS, align: 8 },
    header_len: eights,
    next,
};

pub(super) static DESTINATION: Spec = Spec {
    protocol: Protocol::DstOpts,
    name: "dstopts",
    aliases: &["ipv6exthdrdestopt"],
    title: "IPv6 destination options",
    doc: "Destination options header. Padded to 8 bytes.",
    min_len: 2,
    fields: &[NEXT, LENGTH],
    carries: Carries::IpNumbers { but: &[Protocol::Icmp, Protocol::HopOpts] },
    variable: Variable::Options { table: OPTIONS, align: 8 },
    header_len: eights,
    next,
};

pub(super) static ROUTING: Spec = Spec {
    protocol: Protocol::Routing,
    name: "routing",
    aliases: &["rh", "ipv6exthdrrouting"],
    title: "IPv6 routing header",
    doc: "Routing header of any type but 4 (that is `srv6`), with a list of addresses.",
    min_len: 8,
    fields: &[
        NEXT,
        LENGTH,
        Field::new("type", 16, 8, Kind::Uint, "Routing type; 2 is mobile IPv6 (RFC 6275).").default(2),
        Field::new("segleft", 24, 8, Kind::Uint, "Segments left; the number of addresses unless given.")
            .or(&["left"])
            .auto(Auto::Derived),
        Field::new("reserved", 32, 32, Kind::Hex, "Reserved."),
    ],
    carries: Carries::IpNumbers { but: &[Protocol::Icmp, Protocol::HopOpts] },
    variable: Variable::Segments,
    header_len: eights,
    next,
};

pub(super) static FRAGMENT: Spec = Spec {
    protocol: Protocol::Fragment,
    name: "frag",
    aliases: &["fragment", "ipv6exthdrfragment"],
    title: "IPv6 fragment",
    doc: "Fragment header. What follows is sent as written: no reassembly is implied.",
    min_len: 8,
    fields: &[
        NEXT,
        Field::new("res1", 8, 8, Kind::Hex, "Reserved."),
        Field::new("offset", 16, 13, Kind::Uint, "Fragment offset in 8-byte units."),
        Field::new("res2", 29, 2, Kind::Uint, "Reserved."),
        Field::new("m", 31, 1, Kind::Uint, "More fragments follow.").or(&["more"]),
        Field::new("id", 32, 32, Kind::Uint, "Identification.").default(1),
    ],
    carries: Carries::IpNumbers { but: &[Protocol::Icmp, Protocol::HopOpts] },
    variable: Variable::None,
    header_len: |bytes| (bytes.len() >= 8).then_some(8),
    next: |header, rest| match get(header, 16, 13) {
        Some(0) => next(header, rest),
        _ => Next::Payload,
    },
};

#[cfg(test)]
mod tests {
    use super::super::{Next, Protocol, testing};

    #[test]
    fn literal_packets() {
        let hop = [17, 0, 5, 2, 0, 0, 1, 0, 0x04];
        testing::reads(Protocol::HopOpts, &hop, &[("nh", 17), ("len", 0)]);
        testing::follows(Protocol::HopOpts, &hop, 8, Next::Layer(Protocol::Udp));
        let fragment = [6, 0, 0, 0x29, 0, 0, 0, 7];
        testing::reads(Protocol::Fragment, &fragment, &[("offset", 5), ("more", 1), ("id", 7)]);
        testing::follows(Protocol::Fragment, &fragment, 8, Next::Payload);
        let mut routing = vec![58, 2, 2, 1, 0, 0, 0, 0];
        routing.extend([0x20; 16]);
        testing::reads(Protocol::Routing, &routing, &[("type", 2), ("left", 1)]);
        testing::follows(Protocol::Routing, &routing, 24, Next::Layer(Protocol::Icmpv6));
    }
}
