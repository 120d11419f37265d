//! The protocol tables: one file for each protocol, all in the same order: its fields, how long its header is,
//! what comes next, its options, tests with a literal packet.
//!
//! One table drives three readers: the expression language (names, defaults, what is filled in), the layered
//! dump of [`crate::show`], and the field tables of `docs/expressions.md` ([`reference()`]). The flow keys do not
//! come this way: [`crate::layers`] is the fast walk.
//!
//! A header is addressed in bits from its own first byte, most significant bit first, as RFCs draw it.
//! Nothing here panics on any bytes: every access goes through [`get`] and [`put`], which check.

mod arp;
pub mod dhcp;
pub mod dns;
mod ether;
pub mod ext;
mod gre;
mod gtpu;
pub mod http;
mod icmp;
pub mod icmpv6;
mod igmp;
pub mod igmpv3;
pub mod ipv4;
mod ipv6;
mod message;
mod mpls;
mod ntp;
pub mod numbers;
pub mod options;
mod raw;
pub mod sctp;
mod srv6;
mod tcp;
mod udp;
mod vlan;
mod vxlan;

use std::fmt::Write;

pub use message::{Lines, Part};
pub use options::{Layout, OptionSpec};

/// A protocol of the expression language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Protocol {
    /// Ethernet (IEEE 802.3).
    Ether,
    /// VLAN tag (IEEE 802.1Q).
    Vlan,
    /// Provider's VLAN tag (IEEE 802.1ad).
    Qinq,
    /// MPLS label (RFC 3032).
    Mpls,
    /// ARP (RFC 826).
    Arp,
    /// IPv4 (RFC 791).
    Ipv4,
    /// IPv6 (RFC 8200).
    Ipv6,
    /// IPv6 hop-by-hop options (RFC 8200).
    HopOpts,
    /// IPv6 destination options (RFC 8200).
    DstOpts,
    /// IPv6 routing header (RFC 8200).
    Routing,
    /// IPv6 fragment header (RFC 8200).
    Fragment,
    /// Segment routing header (RFC 8754).
    Srv6,
    /// TCP (RFC 9293).
    Tcp,
    /// UDP (RFC 768).
    Udp,
    /// SCTP common header (RFC 9260).
    Sctp,
    /// SCTP DATA chunk (RFC 9260).
    SctpData,
    /// ICMP (RFC 792).
    Icmp,
    /// ICMPv6 (RFC 4443).
    Icmpv6,
    /// IGMP, version 2 (RFC 2236).
    Igmp,
    /// IGMP, version 3 (RFC 3376).
    Igmpv3,
    /// GRE (RFC 2784, RFC 2890).
    Gre,
    /// VXLAN (RFC 7348).
    Vxlan,
    /// GTP-U (3GPP TS 29.281).
    Gtpu,
    /// DNS (RFC 1035).
    Dns,
    /// DHCP for IPv4 (RFC 2131).
    Dhcp,
    /// NTP (RFC 5905).
    Ntp,
    /// HTTP/1.1 (RFC 9112).
    Http,
    /// Bytes of no protocol.
    Raw,
}

impl Protocol {
    /// Every protocol, in the order of the reference.
    pub const ALL: [Protocol; 28] = [
        Protocol::Ether,
        Protocol::Vlan,
        Protocol::Qinq,
        Protocol::Mpls,
        Protocol::Arp,
        Protocol::Ipv4,
        Protocol::Ipv6,
        Protocol::HopOpts,
        Protocol::DstOpts,
        Protocol::Routing,
        Protocol::Fragment,
        Protocol::Srv6,
        Protocol::Tcp,
        Protocol::Udp,
        Protocol::Sctp,
        Protocol::SctpData,
        Protocol::Icmp,
        Protocol::Icmpv6,
        Protocol::Igmp,
        Protocol::Igmpv3,
        Protocol::Gre,
        Protocol::Vxlan,
        Protocol::Gtpu,
        Protocol::Dns,
        Protocol::Dhcp,
        Protocol::Ntp,
        Protocol::Http,
        Protocol::Raw,
    ];

    /// The protocol's table.
    pub fn spec(self) -> &'static Spec {
        match self {
            Protocol::Ether => &ether::SPEC,
            Protocol::Vlan => &vlan::VLAN,
            Protocol::Qinq => &vlan::QINQ,
            Protocol::Mpls => &mpls::SPEC,
            Protocol::Arp => &arp::SPEC,
            Protocol::Ipv4 => &ipv4::SPEC,
            Protocol::Ipv6 => &ipv6::SPEC,
            Protocol::HopOpts => &ext::HOP_BY_HOP,
            Protocol::DstOpts => &ext::DESTINATION,
            Protocol::Routing => &ext::ROUTING,
            Protocol::Fragment => &ext::FRAGMENT,
            Protocol::Srv6 => &srv6::SPEC,
            Protocol::Tcp => &tcp::SPEC,
            Protocol::Udp => &udp::SPEC,
            Protocol::Sctp => &sctp::SPEC,
            Protocol::SctpData => &sctp::DATA,
            Protocol::Icmp => &icmp::SPEC,
            Protocol::Icmpv6 => &icmpv6::SPEC,
            Protocol::Igmp => &igmp::SPEC,
            Protocol::Igmpv3 => &igmpv3::SPEC,
            Protocol::Gre => &gre::SPEC,
            Protocol::Vxlan => &vxlan::SPEC,
            Protocol::Gtpu => &gtpu::SPEC,
            Protocol::Dns => &dns::SPEC,
            Protocol::Dhcp => &dhcp::SPEC,
            Protocol::Ntp => &ntp::SPEC,
            Protocol::Http => &http::SPEC,
            Protocol::Raw => &raw::SPEC,
        }
    }

    /// The protocol of that name or alias, in any case.
    pub fn by_name(name: &str) -> Option<Protocol> {
        Protocol::ALL.into_iter().find(|p| {
            let spec = p.spec();
            spec.name.eq_ignore_ascii_case(name)
                || spec.aliases.iter().any(|alias| alias.eq_ignore_ascii_case(name))
        })
    }

    /// Whether the header is an IPv6 extension header (RFC 8200 section 4).
    pub fn is_ipv6_extension(self) -> bool {
        matches!(
            self,
            Protocol::HopOpts | Protocol::DstOpts | Protocol::Routing | Protocol::Fragment | Protocol::Srv6
        )
    }
}

/// How a field's value is written and read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An unsigned number, decimal.
    Uint,
    /// An unsigned number, hexadecimal.
    Hex,
    /// An Ethernet address (48 bits).
    Mac,
    /// An IPv4 address (32 bits).
    Ipv4,
    /// An IPv6 address (128 bits).
    Ipv6,
    /// Single bits with names, least significant first. One-letter names are written together (`SA`),
    /// longer ones joined by `+` (`DF+MF`).
    Flags(&'static [&'static str]),
}

/// What the compiler fills in when the user does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Auto {
    /// Nothing: the default stands.
    No,
    /// Bytes of this layer's header and payload together.
    Length,
    /// Bytes after this header's fixed part.
    PayloadLength,
    /// The Internet checksum over this header alone.
    HeaderChecksum,
    /// The Internet checksum over this header and its payload, without pseudo header.
    Checksum,
    /// The Internet checksum over the IP pseudo header, this header and its payload.
    PseudoChecksum,
    /// As `PseudoChecksum`; a value of zero on the wire means "none" (RFC 768).
    UdpChecksum,
    /// The CRC-32C over this header and its payload, least significant byte first (RFC 9260 section 6.8).
    Crc32c,
    /// Names the layer that follows.
    Next,
    /// This header's length, in 32-bit words.
    HeaderWords,
    /// This header's length in 8-byte units, not counting the first (RFC 8200 section 4).
    HeaderEights,
    /// Follows from the header's other parts, as the field's line says.
    Derived,
}

/// Finds a field's first bit in a header; `None` where the header does not have it.
pub type Place = fn(&[u8]) -> Option<usize>;

/// One field of a header.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// The name that is printed.
    pub name: &'static str,
    /// Other accepted names.
    pub aliases: &'static [&'static str],
    /// First bit, counted from the header's first byte, where it does not depend on other fields.
    pub bit: u16,
    /// Width, 1 to 128.
    pub bits: u8,
    /// How its value is written and printed.
    pub kind: Kind,
    /// Its value where none is given.
    pub default: u128,
    /// What is filled in where no value is given.
    pub auto: Auto,
    /// One line for the reference.
    pub doc: &'static str,
    /// Set where the field's presence or place depends on the header: its first bit, if it is there.
    pub at: Option<Place>,
    /// The one-bit field that says this one is present; giving a value to this one sets it.
    pub needs: Option<&'static str>,
    /// Another name for bits that are already in the table: not dumped.
    pub view: bool,
    /// Names for some of the values.
    pub names: &'static [(&'static str, u128)],
}

impl Field {
    /// A field at a fixed place, with the default 0.
    pub const fn new(name: &'static str, bit: u16, bits: u8, kind: Kind, doc: &'static str) -> Field {
        Field {
            name,
            aliases: &[],
            bit,
            bits,
            kind,
            default: 0,
            auto: Auto::No,
            doc,
            at: None,
            needs: None,
            view: false,
            names: &[],
        }
    }

    pub(crate) const fn or(mut self, aliases: &'static [&'static str]) -> Field {
        self.aliases = aliases;
        self
    }

    pub(crate) const fn default(mut self, value: u128) -> Field {
        self.default = value;
        self
    }

    pub(crate) const fn auto(mut self, auto: Auto) -> Field {
        self.auto = auto;
        self
    }

    pub(crate) const fn at(mut self, at: Place) -> Field {
        self.at = Some(at);
        self
    }

    pub(crate) const fn needs(mut self, flag: &'static str) -> Field {
        self.needs = Some(flag);
        self
    }

    /// The same field, with names for some of its values.
    #[must_use]
    pub const fn names(mut self, names: &'static [(&'static str, u128)]) -> Field {
        self.names = names;
        self
    }

    pub(crate) const fn view(mut self) -> Field {
        self.view = true;
        self
    }

    /// Whether `name` means this field.
    pub fn is_called(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
            || self.aliases.iter().any(|alias| alias.eq_ignore_ascii_case(name))
    }

    /// The field's first bit in this header, if the header has it.
    pub fn place(&self, header: &[u8]) -> Option<usize> {
        match self.at {
            Some(at) => at(header),
            None => Some(usize::from(self.bit)),
        }
    }

    /// The field's value, if the header has it and is long enough.
    pub fn read(&self, header: &[u8]) -> Option<u128> {
        get(header, self.place(header)?, usize::from(self.bits))
    }

    /// The largest value that fits.
    pub fn max(&self) -> u128 {
        u128::MAX >> (128 - u32::from(self.bits))
    }
}

/// What stands after a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// A header of the tables.
    Layer(Protocol),
    /// Bytes that the tables do not explain.
    Payload,
}

/// What an expression may put behind a header without saying which number announces it.
#[derive(Debug, Clone, Copy)]
pub enum Carries {
    /// All that has an EtherType.
    EtherTypes,
    /// All that has an IP protocol number, but these.
    IpNumbers {
        /// Those that may not.
        but: &'static [Protocol],
    },
    /// All that has a port of UDP.
    UdpPorts,
    /// These.
    Only(&'static [Protocol]),
    /// All.
    Anything,
}

/// The part of a header whose length is up to its sender.
#[derive(Debug, Clone, Copy)]
pub enum Variable {
    /// No such part.
    None,
    /// Type-length-value options, in the expression's `options=[...]`; padded to a multiple of `align` bytes.
    Options {
        /// The options that have a name.
        table: &'static [OptionSpec],
        /// In bytes.
        align: usize,
    },
    /// IPv6 addresses, in the expression's `segments=[...]`.
    Segments,
    /// GTP-U extension headers, in the expression's `ext=[...]`.
    GtpuExtensions,
    /// The rest of an application's message, in parts that have names.
    Message {
        /// What an expression may give.
        parts: &'static [Part],
        /// What a dump says of it, from the whole message.
        describe: fn(&[u8]) -> Lines,
    },
}

/// A protocol's table.
#[derive(Debug)]
pub struct Spec {
    /// Whose table it is.
    pub protocol: Protocol,
    /// As written in expressions.
    pub name: &'static str,
    /// Other accepted names.
    pub aliases: &'static [&'static str],
    /// As printed in a dump.
    pub title: &'static str,
    /// One line for the reference.
    pub doc: &'static str,
    /// Bytes of the header without anything optional.
    pub min_len: usize,
    /// Its fields.
    pub fields: &'static [Field],
    /// What may stand behind it.
    pub carries: Carries,
    /// Its part of variable length.
    pub variable: Variable,
    /// The header's length, from the bytes at its start to the end of the data; `None` where they are too few
    /// or contradict themselves.
    pub header_len: fn(&[u8]) -> Option<usize>,
    /// What follows, from the header and all that stands after it.
    pub next: fn(&[u8], &[u8]) -> Next,
}

impl Spec {
    /// The field of that name or alias, in any case.
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.is_called(name))
    }

    /// Whether `child` may stand behind this header; payload always may.
    pub fn carries(&self, child: Protocol) -> bool {
        let listed = match self.carries {
            Carries::EtherTypes => numbers::ethertype_of(child).is_some(),
            Carries::IpNumbers { but } => numbers::ip_number_of(child).is_some() && !but.contains(&child),
            Carries::UdpPorts => numbers::udp_port_of(child).is_some(),
            Carries::Only(these) => these.contains(&child),
            Carries::Anything => true,
        };
        listed || child == Protocol::Raw
    }

    /// The first field with that role.
    pub fn auto(&self, role: Auto) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.auto == role)
    }

    /// Where the variable part starts in a header of this protocol; the header's end where there is none.
    pub fn variable_start(&self, header: &[u8]) -> usize {
        match (self.variable, self.protocol) {
            (Variable::None | Variable::Message { .. }, _) => header.len(),
            (Variable::GtpuExtensions, _) if get(header, 5, 3) == Some(0) => header.len(),
            (Variable::GtpuExtensions, _) => 12,
            (_, Protocol::Icmpv6) => icmpv6::fixed_len(header.first().copied().unwrap_or(0)),
            _ => self.min_len,
        }
    }

    /// The name of the list in the expression that fills the variable part, if there is one.
    pub fn list_names(&self) -> &'static [&'static str] {
        match self.variable {
            Variable::None | Variable::Message { .. } => &[],
            Variable::Options { .. } => &["options", "opts"],
            Variable::Segments => &["segments", "addresses"],
            Variable::GtpuExtensions => &["ext", "extensions"],
        }
    }

    /// The parts of a message that an expression gives by name.
    pub fn parts(&self) -> &'static [Part] {
        match self.variable {
            Variable::Message { parts, .. } => parts,
            _ => &[],
        }
    }
}

/// The `width` bits (at most 128) that start at bit `at`, if all of them are inside `bytes`.
pub fn get(bytes: &[u8], at: usize, width: usize) -> Option<u128> {
    if width == 0 || width > 128 {
        return None;
    }
    let end = at.checked_add(width)?;
    let covering = bytes.get(at / 8..end.div_ceil(8))?;
    // 128 bits at an odd place cover 17 bytes: the first byte's leading bits fall off the top as they should.
    let mut value = 0u128;
    for &byte in covering.get(..covering.len() - 1)? {
        value = value << 8 | u128::from(byte);
    }
    let tail = (end - 1) % 8 + 1;
    value = value << tail | u128::from(*covering.last()?) >> (8 - tail);
    Some(value & (u128::MAX >> (128 - width)))
}

/// Writes the low `width` bits of `value` at bit `at`; false, and nothing written, where they do not fit.
pub fn put(bytes: &mut [u8], at: usize, width: usize, value: u128) -> bool {
    if width == 0 || width > 128 || at.checked_add(width).is_none_or(|end| end > bytes.len() * 8) {
        return false;
    }
    for i in 0..width {
        let bit = at + i;
        let mask = 0x80 >> (bit % 8);
        if let Some(byte) = bytes.get_mut(bit / 8) {
            if value >> (width - 1 - i) & 1 == 1 {
                *byte |= mask;
            } else {
                *byte &= !mask;
            }
        }
    }
    true
}

/// A value as its kind is written.
pub fn format_value(kind: Kind, bits: u8, value: u128) -> String {
    match kind {
        Kind::Uint => value.to_string(),
        Kind::Hex => format!("0x{value:0width$x}", width = usize::from(bits).div_ceil(4)),
        Kind::Mac => {
            let bytes = (value as u64).to_be_bytes();
            crate::Mac([bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7]]).to_string()
        }
        Kind::Ipv4 => std::net::Ipv4Addr::from(value as u32).to_string(),
        Kind::Ipv6 => std::net::Ipv6Addr::from(value).to_string(),
        Kind::Flags(names) => {
            let set: Vec<&str> = names
                .iter()
                .enumerate()
                .filter(|(i, _)| value >> i & 1 == 1)
                .map(|(_, name)| *name)
                .collect();
            let joint = if names.iter().all(|name| name.len() == 1) { "" } else { "+" };
            if set.is_empty() { "0".into() } else { set.join(joint) }
        }
    }
}

/// The field tables as Markdown, for `docs/expressions.md`.
pub fn reference() -> String {
    let mut out = String::new();
    for protocol in Protocol::ALL {
        let spec = protocol.spec();
        let _ = write!(out, "### {}\n\n{}", spec.name, spec.doc);
        if !spec.aliases.is_empty() {
            let _ = write!(out, " Also written `{}`.", spec.aliases.join("`, `"));
        }
        out.push_str("\n\n");
        if !spec.fields.is_empty() {
            out.push_str("| Field | Also | Bits | Default | Meaning |\n|---|---|---|---|---|\n");
        }
        for field in spec.fields {
            let also = field.aliases.iter().map(|a| format!("`{a}`")).collect::<Vec<_>>().join(", ");
            let default = if field.needs.is_some() || (field.at.is_some() && field.default == 0) {
                "absent".into()
            } else if field.auto != Auto::No {
                "filled in".into()
            } else {
                format!("`{}`", format_value(field.kind, field.bits, field.default))
            };
            let _ =
                writeln!(out, "| `{}` | {also} | {} | {default} | {} |", field.name, field.bits, field.doc);
        }
        match spec.variable {
            Variable::None => {}
            Variable::Message { parts, .. } => {
                out.push_str("\n| Part | Also | Default | Meaning |\n|---|---|---|---|\n");
                for part in parts {
                    let also = part.aliases.iter().map(|a| format!("`{a}`")).collect::<Vec<_>>().join(", ");
                    let _ = writeln!(out, "| `{}` | {also} | {} | {} |", part.name, part.default, part.doc);
                }
            }
            Variable::Options { table, .. } => {
                out.push_str("\nIn `options=[...]`: ");
                let list: Vec<String> =
                    table.iter().map(|o| format!("`{}{}` ({})", o.name, o.layout.arguments(), o.doc)).collect();
                let _ = writeln!(
                    out,
                    "{}, `opt(KIND, hex=\"..\")` (any other). Or all of it as `options=hex(\"..\")`.",
                    list.join(", ")
                );
            }
            Variable::Segments => out.push_str("\n`segments=[a, b, c]` (also `addresses`): IPv6 addresses in the order they stand in the header.\n"),
            Variable::GtpuExtensions => out.push_str("\n`ext=[...]`: `psc(TYPE, QFI)` (PDU session container, type 0 is downlink, 1 uplink), `pdcp(NUMBER)`, `udp_port(PORT)`, `opt(TYPE, hex=\"..\")`.\n"),
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// Checks `field = value` pairs of a literal header.
    pub fn reads(protocol: Protocol, header: &[u8], expected: &[(&str, u128)]) {
        for (name, value) in expected {
            let field = protocol.spec().field(name).unwrap_or_else(|| panic!("no field {name}"));
            assert_eq!(field.read(header), Some(*value), "{name}");
        }
    }

    /// Length and successor of a literal packet.
    pub fn follows(protocol: Protocol, packet: &[u8], length: usize, next: Next) {
        assert_eq!((protocol.spec().header_len)(packet), Some(length));
        assert_eq!((protocol.spec().next)(&packet[..length], &packet[length..]), next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_table_is_sound() {
        let mut names = std::collections::HashSet::new();
        for protocol in Protocol::ALL {
            let spec = protocol.spec();
            assert_eq!(spec.protocol, protocol);
            for name in [spec.name].iter().chain(spec.aliases) {
                assert!(names.insert(name.to_ascii_lowercase()), "two protocols called {name}");
                assert_eq!(Protocol::by_name(&name.to_uppercase()), Some(protocol));
            }
            let mut fields = std::collections::HashSet::new();
            let mut covered = vec![false; spec.min_len * 8];
            for field in spec.fields {
                for name in [field.name].iter().chain(field.aliases).chain(spec.list_names()) {
                    assert!(
                        fields.insert(*name) || spec.list_names().contains(name),
                        "{}.{name} twice",
                        spec.name
                    );
                }
                assert!((1..=128).contains(&field.bits), "{}.{}", spec.name, field.name);
                assert!(field.default <= field.max(), "{}.{}", spec.name, field.name);
                assert!(!field.doc.is_empty() && field.doc.ends_with('.'), "{}.{}", spec.name, field.name);
                if field.at.is_none() {
                    for bit in field.bit..field.bit + u16::from(field.bits) {
                        let seen = &mut covered[usize::from(bit)];
                        assert!(field.view || !*seen, "{}.{} overlaps", spec.name, field.name);
                        *seen = true;
                    }
                }
            }
            for part in spec.parts() {
                for name in [part.name].iter().chain(part.aliases) {
                    assert!(fields.insert(*name), "{}.{name} twice", spec.name);
                }
                assert!(part.doc.ends_with('.'), "{}.{}", spec.name, part.name);
            }
            assert!(covered.iter().all(|bit| *bit), "{} has bits without a field", spec.name);
        }
    }

    #[test]
    fn bits_straddle_bytes() {
        let bytes = [0x12, 0x34, 0x56, 0x78];
        assert_eq!(get(&bytes, 4, 12), Some(0x234));
        assert_eq!(get(&bytes, 0, 32), Some(0x1234_5678));
        assert_eq!(get(&bytes, 31, 1), Some(0));
        assert_eq!(get(&bytes, 31, 2), None);
        assert_eq!(get(&bytes, usize::MAX, 8), None);
    }

    proptest! {
        #[test]
        fn what_is_put_is_got(mut bytes in proptest::collection::vec(any::<u8>(), 0..24), at in 0usize..200, width in 0usize..140, value: u128) {
            let before = bytes.clone();
            if put(&mut bytes, at, width, value) {
                prop_assert_eq!(get(&bytes, at, width), Some(value & (u128::MAX >> (128 - width))));
                let old = get(&before, at, width).unwrap();
                put(&mut bytes, at, width, old);
            } else {
                prop_assert_eq!(get(&bytes, at, width), None);
            }
            prop_assert_eq!(bytes, before);
        }

        #[test]
        fn no_bytes_upset_a_table(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            for protocol in Protocol::ALL {
                let spec = protocol.spec();
                for field in spec.fields {
                    field.read(&bytes);
                }
                if let Some(length) = (spec.header_len)(&bytes) {
                    prop_assert!(length >= spec.min_len && length <= bytes.len());
                    (spec.next)(&bytes[..length], &bytes[length..]);
                }
                if let Variable::Message { describe, .. } = spec.variable {
                    describe(&bytes);
                }
            }
        }
    }
}
