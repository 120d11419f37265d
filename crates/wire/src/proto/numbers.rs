//! Assigned numbers: EtherTypes (IEEE), IP protocols and ICMP types (IANA), ports of the tunnels we know.

use super::{Next, Protocol};
use crate::numbers::{ethertype, port, protocol};

/// For EtherType fields: IEEE Std 802 local experimental EtherType 1, for payload that is no protocol.
pub const ETHERTYPE_EXPERIMENTAL: u16 = 0x88b5;
/// IANA "use for experimentation and testing" (RFC 3692), for payload that is no protocol.
pub const IP_EXPERIMENTAL: u8 = 253;
/// IPv6 "no next header" (RFC 8200 section 4.7).
pub const IP_NO_NEXT: u8 = protocol::NO_NEXT_HEADER;
/// EtherTypes: what each announces, where that has a table here, and its name. Of several that announce the same the first
/// is written, the others are read.
const ETHERTYPES: &[(u16, Option<Protocol>, &str)] = &[
    (ethertype::IPV4, Some(Protocol::Ipv4), "IPv4"),
    (ethertype::ARP, Some(Protocol::Arp), "ARP"),
    (ethertype::BRIDGING, Some(Protocol::Ether), "Ethernet bridging"),
    (0x8035, None, "RARP"),
    (ethertype::VLAN, Some(Protocol::Vlan), "VLAN"),
    (ethertype::IPV6, Some(Protocol::Ipv6), "IPv6"),
    (0x8808, None, "Ethernet flow control"),
    (ethertype::MPLS, Some(Protocol::Mpls), "MPLS"),
    (ethertype::MPLS_UPSTREAM, Some(Protocol::Mpls), "MPLS multicast"),
    (0x8863, None, "PPPoE discovery"),
    (ethertype::PPPOE_SESSION, None, "PPPoE session"),
    (0x888e, None, "802.1X"),
    (0x88a2, None, "AoE"),
    (ethertype::QINQ, Some(Protocol::Qinq), "802.1ad"),
    (ETHERTYPE_EXPERIMENTAL, None, "experimental"),
    (0x88cc, None, "LLDP"),
    (ethertype::PBB, None, "802.1ah"),
    (0x88f7, None, "PTP"),
    (ethertype::QINQ_OLD, Some(Protocol::Vlan), "VLAN, old QinQ"),
];

/// As [`ETHERTYPES`], of IP protocol numbers.
const IP_PROTOCOLS: &[(u8, Option<Protocol>, &str)] = &[
    (protocol::HOP_BY_HOP, Some(Protocol::HopOpts), "hop-by-hop options"),
    (protocol::ICMP, Some(Protocol::Icmp), "ICMP"),
    (2, Some(Protocol::Igmp), "IGMP"),
    (protocol::IPV4, Some(Protocol::Ipv4), "IPv4"),
    (protocol::TCP, Some(Protocol::Tcp), "TCP"),
    (protocol::UDP, Some(Protocol::Udp), "UDP"),
    (protocol::IPV6, Some(Protocol::Ipv6), "IPv6"),
    (protocol::ROUTING, Some(Protocol::Routing), "routing header"),
    (protocol::FRAGMENT, Some(Protocol::Fragment), "fragment"),
    (protocol::GRE, Some(Protocol::Gre), "GRE"),
    (protocol::ESP, None, "ESP"),
    (protocol::AUTHENTICATION, None, "AH"),
    (protocol::ICMPV6, Some(Protocol::Icmpv6), "ICMPv6"),
    (protocol::NO_NEXT_HEADER, None, "nothing"),
    (protocol::DESTINATION, Some(Protocol::DstOpts), "destination options"),
    (88, None, "EIGRP"),
    (89, None, "OSPF"),
    (103, None, "PIM"),
    (112, None, "VRRP"),
    (protocol::SCTP, Some(Protocol::Sctp), "SCTP"),
    (protocol::MPLS, Some(Protocol::Mpls), "MPLS"),
    (protocol::ETHERNET, Some(Protocol::Ether), "Ethernet"),
    (IP_EXPERIMENTAL, None, "experimental"),
    (254, None, "experimental"),
];

/// Ports of UDP, by IANA: what each announces. Of several that announce the same the first is written.
const UDP_PORTS: &[(u16, Protocol)] = &[
    (port::VXLAN, Protocol::Vxlan),
    (port::GTPU, Protocol::Gtpu),
    (port::DNS, Protocol::Dns),
    (5353, Protocol::Dns),
    (port::DHCP_SERVER, Protocol::Dhcp),
    (port::DHCP_CLIENT, Protocol::Dhcp),
    (port::NTP, Protocol::Ntp),
];

/// The EtherType that announces `protocol`.
pub fn ethertype_of(protocol: Protocol) -> Option<u16> {
    ETHERTYPES.iter().find(|row| row.1 == Some(protocol)).map(|row| row.0)
}

/// What an EtherType announces.
pub fn after_ethertype(number: u128) -> Next {
    let row = ETHERTYPES.iter().find(|row| u128::from(row.0) == number);
    row.and_then(|row| row.1).map_or(Next::Payload, Next::Layer)
}

/// The IP protocol number that announces `protocol`.
pub fn ip_number_of(protocol: Protocol) -> Option<u8> {
    let announced = match protocol {
        // A segment routing header is a routing header (RFC 8754 section 2).
        Protocol::Srv6 => Protocol::Routing,
        Protocol::Igmpv3 => Protocol::Igmp,
        other => other,
    };
    IP_PROTOCOLS.iter().find(|row| row.1 == Some(announced)).map(|row| row.0)
}

/// What an IP protocol number announces; `rest` tells a segment routing header from another routing header, and version 3
/// of IGMP from version 2 (RFC 3376 section 7.1).
pub fn after_ip(number: u128, rest: &[u8]) -> Next {
    let row = IP_PROTOCOLS.iter().find(|row| u128::from(row.0) == number);
    match row.and_then(|row| row.1) {
        Some(Protocol::Routing) if rest.get(2) == Some(&4) => Next::Layer(Protocol::Srv6),
        Some(Protocol::Igmp) if sound(Protocol::Igmpv3, rest) && igmp_version_3(rest) => {
            Next::Layer(Protocol::Igmpv3)
        }
        Some(protocol) => Next::Layer(protocol),
        None => Next::Payload,
    }
}

fn igmp_version_3(rest: &[u8]) -> bool {
    match rest.first() {
        Some(&super::igmpv3::REPORT) => true,
        Some(&super::igmpv3::QUERY) => rest.len() >= super::igmpv3::fixed_len(super::igmpv3::QUERY),
        _ => false,
    }
}

/// Whether these bytes begin with a whole header of that protocol.
pub(super) fn sound(protocol: Protocol, bytes: &[u8]) -> bool {
    (protocol.spec().header_len)(bytes).is_some()
}

/// The UDP port that announces `protocol`.
pub fn udp_port_of(protocol: Protocol) -> Option<u16> {
    UDP_PORTS.iter().find(|row| row.1 == protocol).map(|row| row.0)
}

/// What a UDP port announces.
pub fn after_udp(port: u128) -> Option<Protocol> {
    UDP_PORTS.iter().find(|row| u128::from(row.0) == port).map(|row| row.1)
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
    ETHERTYPES.iter().find(|row| u128::from(row.0) == number).map(|row| row.2)
}

/// A name to print beside an IP protocol number.
pub fn ip_name(number: u128) -> Option<&'static str> {
    IP_PROTOCOLS.iter().find(|row| u128::from(row.0) == number).map(|row| row.2)
}
