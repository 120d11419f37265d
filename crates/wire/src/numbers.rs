//! Assigned numbers that code asks for by name: EtherTypes and IP protocols. What each announces stands in
//! [`crate::proto::numbers`].

/// EtherTypes (IEEE 802 numbers, IANA "ieee-802-numbers").
pub mod ethertype {
    /// IPv4.
    pub const IPV4: u16 = 0x0800;
    /// ARP.
    pub const ARP: u16 = 0x0806;
    /// IPv6.
    pub const IPV6: u16 = 0x86dd;
    /// A whole Ethernet frame (transparent bridging, RFC 1701).
    pub const BRIDGING: u16 = 0x6558;
    /// IEEE 802.1Q customer tag.
    pub const VLAN: u16 = 0x8100;
    /// IEEE 802.1ad service tag.
    pub const QINQ: u16 = 0x88a8;
    /// Pre-standard service tag.
    pub const QINQ_OLD: u16 = 0x9100;
    /// MPLS.
    pub const MPLS: u16 = 0x8847;
    /// MPLS with upstream-assigned label (RFC 5332).
    pub const MPLS_UPSTREAM: u16 = 0x8848;
    /// PPPoE session stage (RFC 2516).
    pub const PPPOE_SESSION: u16 = 0x8864;
    /// IEEE 802.1ah backbone service instance tag.
    pub const PBB: u16 = 0x88e7;
    /// Values below are IEEE 802.3 lengths, not types.
    pub const FIRST: u16 = 0x0600;
}

/// IP protocols (IANA "protocol-numbers"): transports, and the extension headers of IPv6.
pub mod protocol {
    /// IPv6 hop-by-hop options.
    pub const HOP_BY_HOP: u8 = 0;
    /// ICMP.
    pub const ICMP: u8 = 1;
    /// IPv4 in IP.
    pub const IPV4: u8 = 4;
    /// TCP.
    pub const TCP: u8 = 6;
    /// UDP.
    pub const UDP: u8 = 17;
    /// DCCP.
    pub const DCCP: u8 = 33;
    /// IPv6 in IP.
    pub const IPV6: u8 = 41;
    /// IPv6 routing header.
    pub const ROUTING: u8 = 43;
    /// IPv6 fragment header.
    pub const FRAGMENT: u8 = 44;
    /// GRE.
    pub const GRE: u8 = 47;
    /// Encapsulating security payload: what follows is encrypted.
    pub const ESP: u8 = 50;
    /// Authentication header.
    pub const AUTHENTICATION: u8 = 51;
    /// ICMPv6.
    pub const ICMPV6: u8 = 58;
    /// IPv6 "no next header" (RFC 8200 section 4.7).
    pub const NO_NEXT_HEADER: u8 = 59;
    /// IPv6 destination options.
    pub const DESTINATION: u8 = 60;
    /// SCTP.
    pub const SCTP: u8 = 132;
    /// Mobility header.
    pub const MOBILITY: u8 = 135;
    /// UDP-Lite.
    pub const UDPLITE: u8 = 136;
    /// MPLS in IP.
    pub const MPLS: u8 = 137;
    /// Host identity protocol.
    pub const HIP: u8 = 139;
    /// Shim6.
    pub const SHIM6: u8 = 140;
    /// Ethernet in IP.
    pub const ETHERNET: u8 = 143;
}

/// Ports by which tunnels are recognised (IANA "service-names-port-numbers").
pub mod port {
    /// DNS.
    pub const DNS: u16 = 53;
    /// DHCP, the server's.
    pub const DHCP_SERVER: u16 = 67;
    /// DHCP, the client's.
    pub const DHCP_CLIENT: u16 = 68;
    /// HTTP.
    pub const HTTP: u16 = 80;
    /// NTP.
    pub const NTP: u16 = 123;
    /// GTP-U (3GPP TS 29.281).
    pub const GTPU: u16 = 2152;
    /// VXLAN (RFC 7348).
    pub const VXLAN: u16 = 4789;
}
