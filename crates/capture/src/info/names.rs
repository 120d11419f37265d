//! Names of the protocols and services that a summary shows. Numbers without a name here are shown as numbers.

use wire::numbers::ethertype as numbers;

/// EtherType names (IEEE registry).
pub(super) fn ethertype(kind: u16) -> Option<&'static str> {
    Some(match kind {
        numbers::IPV4 => "IPv4",
        numbers::ARP => "ARP",
        0x0842 => "Wake-on-LAN",
        0x22f0 => "AVTP",
        0x22f3 => "TRILL",
        0x8035 => "RARP",
        0x809b => "AppleTalk",
        0x80f3 => "AppleTalk ARP",
        0x8137 => "IPX",
        numbers::IPV6 => "IPv6",
        0x8808 => "Ethernet flow control",
        0x8809 => "LACP and slow protocols",
        0x8863 => "PPPoE discovery",
        0x888e => "EAPOL",
        0x8892 => "PROFINET",
        0x88a2 => "ATA over Ethernet",
        0x88a4 => "EtherCAT",
        0x88b8 => "GOOSE",
        0x88ba => "IEC 61850 sampled values",
        0x88cc => "LLDP",
        0x88e5 => "MACsec",
        0x88f7 => "PTP",
        0x8902 => "Ethernet OAM (CFM)",
        0x8906 => "FCoE",
        0x8915 => "RoCE",
        0x9000 => "Ethernet loopback",
        _ => return None,
    })
}

/// IP protocol names (IANA "protocol-numbers").
pub(super) fn ip_protocol(number: u8) -> Option<&'static str> {
    Some(match number {
        0 => "IPv6 hop-by-hop",
        1 => "ICMP",
        2 => "IGMP",
        4 => "IPv4 in IP",
        6 => "TCP",
        17 => "UDP",
        33 => "DCCP",
        41 => "IPv6 in IP",
        43 => "IPv6 routing",
        46 => "RSVP",
        47 => "GRE",
        50 => "ESP",
        51 => "AH",
        58 => "ICMPv6",
        59 => "no next header",
        60 => "IPv6 destination options",
        88 => "EIGRP",
        89 => "OSPF",
        97 => "EtherIP",
        103 => "PIM",
        112 => "VRRP",
        115 => "L2TPv3",
        132 => "SCTP",
        135 => "IPv6 mobility",
        136 => "UDP-Lite",
        137 => "MPLS in IP",
        139 => "HIP",
        140 => "Shim6",
        _ => return None,
    })
}

/// Services by port (IANA "service-names-port-numbers" and general use), whatever the transport.
pub(super) fn service(port: u16) -> Option<&'static str> {
    SERVICES
        .binary_search_by_key(&port, |(port, _)| *port)
        .ok()
        .and_then(|at| SERVICES.get(at))
        .map(|(_, name)| *name)
}

/// Ordered by port.
const SERVICES: &[(u16, &str)] = &[
    (20, "ftp-data"),
    (21, "ftp"),
    (22, "ssh"),
    (23, "telnet"),
    (25, "smtp"),
    (53, "dns"),
    (67, "dhcp"),
    (68, "dhcp"),
    (69, "tftp"),
    (80, "http"),
    (88, "kerberos"),
    (110, "pop3"),
    (111, "sunrpc"),
    (119, "nntp"),
    (123, "ntp"),
    (135, "msrpc"),
    (137, "netbios-ns"),
    (138, "netbios-dgm"),
    (139, "netbios-ssn"),
    (143, "imap"),
    (161, "snmp"),
    (162, "snmp-trap"),
    (179, "bgp"),
    (319, "ptp-event"),
    (320, "ptp-general"),
    (389, "ldap"),
    (443, "https"),
    (445, "smb"),
    (465, "smtps"),
    (500, "ike"),
    (502, "modbus"),
    (514, "syslog"),
    (520, "rip"),
    (546, "dhcpv6"),
    (547, "dhcpv6"),
    (554, "rtsp"),
    (587, "submission"),
    (631, "ipp"),
    (636, "ldaps"),
    (646, "ldp"),
    (853, "dns-over-tls"),
    (873, "rsync"),
    (989, "ftps-data"),
    (990, "ftps"),
    (993, "imaps"),
    (995, "pop3s"),
    (1080, "socks"),
    (1194, "openvpn"),
    (1433, "mssql"),
    (1521, "oracle"),
    (1701, "l2tp"),
    (1723, "pptp"),
    (1812, "radius"),
    (1813, "radius-acct"),
    (1883, "mqtt"),
    (1900, "ssdp"),
    (1935, "rtmp"),
    (2049, "nfs"),
    (2055, "netflow"),
    (2123, "gtp-c"),
    (2152, "gtp-u"),
    (3260, "iscsi"),
    (3306, "mysql"),
    (3389, "rdp"),
    (3478, "stun"),
    (3784, "bfd"),
    (3868, "diameter"),
    (4500, "ipsec-nat-t"),
    (4739, "ipfix"),
    (4789, "vxlan"),
    (5060, "sip"),
    (5061, "sips"),
    (5201, "iperf3"),
    (5222, "xmpp"),
    (5353, "mdns"),
    (5355, "llmnr"),
    (5432, "postgresql"),
    (5672, "amqp"),
    (5900, "vnc"),
    (6081, "geneve"),
    (6343, "sflow"),
    (6379, "redis"),
    (6633, "openflow"),
    (6653, "openflow"),
    (6881, "bittorrent"),
    (7000, "afs-fileserver"),
    (7001, "afs-callback"),
    (7003, "afs-vlserver"),
    (8080, "http-alt"),
    (8443, "https-alt"),
    (8883, "mqtts"),
    (9092, "kafka"),
    (9200, "elasticsearch"),
    (11211, "memcached"),
    (12865, "netperf"),
    (27017, "mongodb"),
    (51820, "wireguard"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_in_order_so_that_searching_finds_all() {
        assert!(SERVICES.is_sorted_by(|a, b| a.0 < b.0));
        assert_eq!(
            (service(20), service(53), service(51820)),
            (Some("ftp-data"), Some("dns"), Some("wireguard"))
        );
        assert_eq!(service(54), None);
    }
}
