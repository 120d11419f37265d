//! Assigned numbers: EtherTypes (IEEE), IP protocols and ICMP types (IANA), ports of the tunnels we know.

use super::{Next, Protocol};

/// For EtherType fields: IEEE Std 802 local experimental EtherType 1, for payload that is no protocol.
pub const ETHERTYPE_EXPERIMENTAL: u16 = 0x88b5;
/// IANA "use for experimentation and testing" (RFC 3692), for payload that is no protocol.
pub const IP_EXPERIMENTAL: u8 = 253;
/// IPv6 "no next header" (RFC 8200 section 4.7).
pub const IP_NO_NEXT: u8 = 59;
/// IANA port of VXLAN (RFC 7348).
pub const PORT_VXLAN: u16 = 4789;
/// IANA port of GTP-U (3GPP TS 29.281).
pub const PORT_GTPU: u16 = 2152;

/// The EtherType that announces `protocol`.
pub fn ethertype_of(protocol: Protocol) -> Option<u16> {
    Some(match protocol {
        Protocol::Ipv4 => 0x0800,
        Protocol::Arp => 0x0806,
        Protocol::Ether => 0x6558,
        Protocol::Vlan => 0x8100,
        Protocol::Ipv6 => 0x86dd,
        Protocol::Mpls => 0x8847,
        Protocol::Qinq => 0x88a8,
        _ => return None,
    })
}

/// What an EtherType announces.
pub fn after_ethertype(number: u128) -> Next {
    Next::Layer(match number {
        0x0800 => Protocol::Ipv4,
        0x0806 => Protocol::Arp,
        0x6558 => Protocol::Ether,
        0x8100 | 0x9100 => Protocol::Vlan,
        0x86dd => Protocol::Ipv6,
        0x8847 | 0x8848 => Protocol::Mpls,
        0x88a8 => Protocol::Qinq,
        _ => return Next::Payload,
    })
}

/// The IP protocol number that announces `protocol`.
pub fn ip_number_of(protocol: Protocol) -> Option<u8> {
    Some(match protocol {
        Protocol::HopOpts => 0,
        Protocol::Icmp => 1,
        Protocol::Ipv4 => 4,
        Protocol::Tcp => 6,
        Protocol::Udp => 17,
        Protocol::Ipv6 => 41,
        Protocol::Routing | Protocol::Srv6 => 43,
        Protocol::Fragment => 44,
        Protocol::Gre => 47,
        Protocol::Icmpv6 => 58,
        Protocol::DstOpts => 60,
        Protocol::Sctp => 132,
        Protocol::Mpls => 137,
        Protocol::Ether => 143,
        _ => return None,
    })
}

/// What an IP protocol number announces; `rest` tells a segment routing header from another routing header.
pub fn after_ip(number: u128, rest: &[u8]) -> Next {
    Next::Layer(match number {
        0 => Protocol::HopOpts,
        1 => Protocol::Icmp,
        4 => Protocol::Ipv4,
        6 => Protocol::Tcp,
        17 => Protocol::Udp,
        41 => Protocol::Ipv6,
        43 if rest.get(2) == Some(&4) => Protocol::Srv6,
        43 => Protocol::Routing,
        44 => Protocol::Fragment,
        47 => Protocol::Gre,
        58 => Protocol::Icmpv6,
        60 => Protocol::DstOpts,
        132 => Protocol::Sctp,
        137 => Protocol::Mpls,
        143 => Protocol::Ether,
        _ => return Next::Payload,
    })
}

/// IPv4 or IPv6 by the version nibble, for the tunnels that say nothing else.
pub fn by_version(rest: &[u8]) -> Next {
    match rest.first().map(|byte| byte >> 4) {
        Some(4) => Next::Layer(Protocol::Ipv4),
        Some(6) => Next::Layer(Protocol::Ipv6),
        _ => Next::Payload,
    }
}

/// A name to print beside an EtherType.
pub fn ethertype_name(number: u128) -> Option<&'static str> {
    Some(match number {
        0x0800 => "IPv4",
        0x0806 => "ARP",
        0x6558 => "Ethernet bridging",
        0x8035 => "RARP",
        0x8100 => "VLAN",
        0x86dd => "IPv6",
        0x8808 => "Ethernet flow control",
        0x8847 => "MPLS",
        0x8848 => "MPLS multicast",
        0x8863 => "PPPoE discovery",
        0x8864 => "PPPoE session",
        0x888e => "802.1X",
        0x88a2 => "AoE",
        0x88a8 => "802.1ad",
        0x88b5 => "experimental",
        0x88cc => "LLDP",
        0x88e7 => "802.1ah",
        0x88f7 => "PTP",
        0x9100 => "VLAN, old QinQ",
        _ => return None,
    })
}

/// A name to print beside an IP protocol number.
pub fn ip_name(number: u128) -> Option<&'static str> {
    Some(match number {
        0 => "hop-by-hop options",
        1 => "ICMP",
        2 => "IGMP",
        4 => "IPv4",
        6 => "TCP",
        17 => "UDP",
        41 => "IPv6",
        43 => "routing header",
        44 => "fragment",
        47 => "GRE",
        50 => "ESP",
        51 => "AH",
        58 => "ICMPv6",
        59 => "nothing",
        60 => "destination options",
        88 => "EIGRP",
        89 => "OSPF",
        103 => "PIM",
        112 => "VRRP",
        132 => "SCTP",
        137 => "MPLS",
        143 => "Ethernet",
        253 | 254 => "experimental",
        _ => return None,
    })
}
