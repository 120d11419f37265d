//! Link types: what stands at the first byte of a captured frame.

use std::fmt;

/// A link-layer header type, by its number in pcap files (the tcpdump group's LINKTYPE registry).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkType(pub u16);

impl LinkType {
    /// BSD loopback: a 4-byte address family in the capturing host's byte order.
    pub const NULL: LinkType = LinkType(0);
    /// Ethernet.
    pub const ETHERNET: LinkType = LinkType(1);
    /// IPv4 or IPv6 without a link header.
    pub const RAW: LinkType = LinkType(101);
    /// Cisco HDLC.
    pub const C_HDLC: LinkType = LinkType(104);
    /// IEEE 802.11 without radio information.
    pub const IEEE802_11: LinkType = LinkType(105);
    /// OpenBSD loopback: as NULL, big-endian.
    pub const LOOP: LinkType = LinkType(108);
    /// Linux "cooked" capture.
    pub const LINUX_SLL: LinkType = LinkType(113);
    /// IEEE 802.11 behind the header of Prism cards.
    pub const PRISM: LinkType = LinkType(119);
    /// IEEE 802.11 behind a radiotap header.
    pub const IEEE802_11_RADIOTAP: LinkType = LinkType(127);
    /// IEEE 802.11 behind an AVS header.
    pub const IEEE802_11_AVS: LinkType = LinkType(163);
    /// Ethernet behind Juniper's header.
    pub const JUNIPER_ETHERNET: LinkType = LinkType(178);
    /// Per-Packet Information before any link type.
    pub const PPI: LinkType = LinkType(192);
    /// PPP, with or without HDLC-like framing.
    pub const PPP: LinkType = LinkType(9);
    /// PPP in HDLC-like framing (RFC 1662).
    pub const PPP_SERIAL: LinkType = LinkType(50);
    /// IPv4 without a link header.
    pub const IPV4: LinkType = LinkType(228);
    /// IPv6 without a link header.
    pub const IPV6: LinkType = LinkType(229);
    /// Linux "cooked" capture, version 2.
    pub const LINUX_SLL2: LinkType = LinkType(276);

    /// The registry's name, where we know it.
    pub fn name(self) -> Option<&'static str> {
        Some(match self.0 {
            0 => "NULL",
            1 => "Ethernet",
            9 => "PPP",
            12 | 14 | 101 => "raw IP",
            50 => "PPP serial",
            104 => "Cisco HDLC",
            105 => "802.11",
            108 => "LOOP",
            113 => "Linux cooked",
            119 => "802.11 Prism",
            127 => "802.11 radiotap",
            163 => "802.11 AVS",
            178 => "Juniper Ethernet",
            192 => "PPI",
            228 => "raw IPv4",
            229 => "raw IPv6",
            276 => "Linux cooked v2",
            _ => return None,
        })
    }
}

impl fmt::Display for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name}"),
            None => write!(f, "link type {}", self.0),
        }
    }
}
