//! What a flow is: the five-tuple of a frame, in one direction.
//!
//! A to B and B to A are two flows, as tcpreplay and NetFlow count them; [`FlowKey::conversation`] joins them. The
//! VLAN does not count. Used wherever flows are counted; the table itself is the user's ([`FlowSet`], [`FlowMap`]).

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::layers::{Fragment, L3, Layers};
use crate::numbers::protocol;

/// Hashes keys with a seed of its own for each process, so that no capture can be made to collide.
pub type FlowHasher = foldhash::fast::RandomState;
/// A set of flows.
pub type FlowSet = HashSet<FlowKey, FlowHasher>;
/// Something for each flow.
pub type FlowMap<V> = HashMap<FlowKey, V, FlowHasher>;

/// A unidirectional flow: addresses, ports, protocol. 40 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowKey {
    /// Addresses as two big-endian halves, so that comparing and hashing take whole words. An IPv4 address fills
    /// the last four bytes; `version` tells it from the IPv6 address ::a.b.c.d.
    source: [u64; 2],
    destination: [u64; 2],
    source_port: u16,
    destination_port: u16,
    protocol: u8,
    version: u8,
}

/// Which flow a frame belongs to, or why none can be named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowOf {
    /// The flow.
    Flow(FlowKey),
    /// A later fragment: its ports were in the first one. Reading them from the payload would invent flows.
    Fragment,
    /// IP, but the frame ends before the ports, or the extension headers do not lead to a transport.
    Cut,
    /// Not IP.
    NonIp,
}

impl FlowOf {
    /// The flow, if one could be named.
    pub fn key(self) -> Option<FlowKey> {
        match self {
            FlowOf::Flow(key) => Some(key),
            _ => None,
        }
    }
}

impl FlowKey {
    /// A key from its parts; `None` if one address is IPv4 and the other IPv6.
    pub fn new(
        source: IpAddr,
        destination: IpAddr,
        protocol: u8,
        source_port: u16,
        destination_port: u16,
    ) -> Option<FlowKey> {
        let (version, source, destination) = match (source, destination) {
            (IpAddr::V4(a), IpAddr::V4(b)) => (4, [0, u64::from(a.to_bits())], [0, u64::from(b.to_bits())]),
            (IpAddr::V6(a), IpAddr::V6(b)) => (6, halves(a), halves(b)),
            _ => return None,
        };
        Some(FlowKey { source, destination, source_port, destination_port, protocol, version })
    }

    /// The flow of `frame`, whose headers are at `layers`. Ports are those of TCP, UDP, UDP-Lite, SCTP and DCCP;
    /// for ICMP and ICMPv6 they are type and code; for other protocols zero.
    #[inline]
    pub fn of(layers: &Layers, frame: &[u8]) -> FlowOf {
        let Some(packet) = frame.get(layers.l3_offset..) else { return FlowOf::NonIp };
        let (version, source, destination) = match layers.l3 {
            L3::V4 => {
                let Some(header) = packet.first_chunk::<20>() else { return FlowOf::NonIp };
                let word = |at: usize| {
                    let bytes = [header[at], header[at + 1], header[at + 2], header[at + 3]];
                    [0, u64::from(u32::from_be_bytes(bytes))]
                };
                (4, word(12), word(16))
            }
            L3::V6 => {
                let Some(header) = packet.first_chunk::<40>() else { return FlowOf::NonIp };
                // 40 bytes are five words: lengths, source (two), destination (two).
                let &[_, a, b, c, d] = header.as_chunks::<8>().0 else { return FlowOf::NonIp };
                (6, [a, b].map(u64::from_be_bytes), [c, d].map(u64::from_be_bytes))
            }
            _ => return FlowOf::NonIp,
        };
        if layers.fragment == Fragment::Later {
            return FlowOf::Fragment;
        }
        let (Some(protocol), Some(at)) = (layers.ip_protocol, layers.l4_offset) else {
            return FlowOf::Cut;
        };
        // Bytes behind the packet's own end are padding, not ports.
        let transport = frame.get(at..layers.l3_end.max(at)).unwrap_or(&[]);
        let (source_port, destination_port) = match protocol {
            protocol::TCP | protocol::UDP | protocol::SCTP | protocol::UDPLITE | protocol::DCCP => {
                let Some(&[a, b, c, d]) = transport.first_chunk() else { return FlowOf::Cut };
                (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]))
            }
            protocol::ICMP | protocol::ICMPV6 => {
                let Some(&[kind, code]) = transport.first_chunk() else { return FlowOf::Cut };
                (u16::from(kind), u16::from(code))
            }
            _ => (0, 0),
        };
        FlowOf::Flow(FlowKey { source, destination, source_port, destination_port, protocol, version })
    }

    /// The flow in the other direction. For ICMP, whose "ports" are type and code, only the addresses change.
    pub fn reversed(self) -> FlowKey {
        let ports = match self.protocol {
            protocol::ICMP | protocol::ICMPV6 => (self.source_port, self.destination_port),
            _ => (self.destination_port, self.source_port),
        };
        FlowKey {
            source: self.destination,
            destination: self.source,
            source_port: ports.0,
            destination_port: ports.1,
            ..self
        }
    }

    /// One key for both directions: the smaller of this and [`reversed`](Self::reversed).
    pub fn conversation(self) -> FlowKey {
        self.min(self.reversed())
    }

    /// Source address.
    pub fn source(&self) -> IpAddr {
        self.address(self.source)
    }

    /// Destination address.
    pub fn destination(&self) -> IpAddr {
        self.address(self.destination)
    }

    /// Source port, or ICMP type.
    pub fn source_port(&self) -> u16 {
        self.source_port
    }

    /// Destination port, or ICMP code.
    pub fn destination_port(&self) -> u16 {
        self.destination_port
    }

    /// IP protocol number.
    pub fn protocol(&self) -> u8 {
        self.protocol
    }

    /// True for IPv6.
    pub fn is_v6(&self) -> bool {
        self.version == 6
    }

    fn address(&self, halves: [u64; 2]) -> IpAddr {
        if self.version == 4 {
            Ipv4Addr::from_bits(halves[1] as u32).into()
        } else {
            Ipv6Addr::from_bits(u128::from(halves[0]) << 64 | u128::from(halves[1])).into()
        }
    }
}

fn halves(address: Ipv6Addr) -> [u64; 2] {
    let bits = address.to_bits();
    [(bits >> 64) as u64, bits as u64]
}

impl Hash for FlowKey {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Four words for addresses, one for all else.
        for word in [self.source, self.destination].as_flattened() {
            state.write_u64(*word);
        }
        state.write_u64(
            u64::from(self.source_port) << 48
                | u64::from(self.destination_port) << 32
                | u64::from(self.protocol) << 8
                | u64::from(self.version),
        );
    }
}

impl fmt::Display for FlowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (source, destination) = (self.source(), self.destination());
        let (sport, dport) = (self.source_port, self.destination_port);
        match self.protocol {
            protocol::ICMP | protocol::ICMPV6 => {
                let name = if self.protocol == protocol::ICMP { "icmp" } else { "icmpv6" };
                write!(f, "{name} {source} > {destination} type {sport} code {dport}")
            }
            number => {
                match number {
                    protocol::TCP => write!(f, "tcp ")?,
                    protocol::UDP => write!(f, "udp ")?,
                    _ => write!(f, "protocol {number} ")?,
                }
                let bracket = |address| match address {
                    IpAddr::V6(_) => format!("[{address}]"),
                    IpAddr::V4(_) => address.to_string(),
                };
                write!(f, "{}:{sport} > {}:{dport}", bracket(source), bracket(destination))
            }
        }
    }
}

impl fmt::Debug for FlowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FlowKey({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LinkType;
    use proptest::prelude::*;

    fn of(link: LinkType, frame: &[u8]) -> FlowOf {
        FlowKey::of(&Layers::parse(link, frame), frame)
    }

    fn v4(protocol: u8, fragment: u16, transport: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x45, 0];
        packet.extend((20 + transport.len() as u16).to_be_bytes());
        packet.extend([0, 0]);
        packet.extend(fragment.to_be_bytes());
        packet.extend([64, protocol, 0, 0, 10, 0, 0, 1, 192, 0, 2, 9]);
        packet.extend(transport);
        packet
    }

    fn key(text: [&str; 2], protocol: u8, ports: [u16; 2]) -> FlowKey {
        FlowKey::new(text[0].parse().unwrap(), text[1].parse().unwrap(), protocol, ports[0], ports[1])
            .unwrap()
    }

    #[test]
    fn keys_stay_small() {
        assert_eq!(size_of::<FlowKey>(), 40);
    }

    #[test]
    fn ports_come_from_transports_that_have_them() {
        let ends = ["10.0.0.1", "192.0.2.9"];
        for protocol in [6, 17, 33, 132, 136] {
            let frame = v4(protocol, 0, &[0x04, 0xd2, 0, 53, 0, 8, 0, 0]);
            assert_eq!(of(LinkType::RAW, &frame), FlowOf::Flow(key(ends, protocol, [1234, 53])));
        }
        assert_eq!(of(LinkType::RAW, &v4(1, 0, &[8, 3, 0, 0])), FlowOf::Flow(key(ends, 1, [8, 3])));
        assert_eq!(of(LinkType::RAW, &v4(47, 0, &[1, 2, 3, 4])), FlowOf::Flow(key(ends, 47, [0, 0])));

        let mut frame = vec![0x60, 0, 0, 0, 0, 8, 17, 64];
        frame.extend("2001:db8::1".parse::<Ipv6Addr>().unwrap().octets());
        frame.extend("2001:db8::2".parse::<Ipv6Addr>().unwrap().octets());
        frame.extend([0x04, 0xd2, 0, 53, 0, 8, 0, 0]);
        let expected = key(["2001:db8::1", "2001:db8::2"], 17, [1234, 53]);
        assert_eq!(of(LinkType::RAW, &frame), FlowOf::Flow(expected));
        assert_eq!(expected.to_string(), "udp [2001:db8::1]:1234 > [2001:db8::2]:53");
        assert!(expected.is_v6());
    }

    #[test]
    fn no_flow_is_invented_where_ports_are_not_there() {
        let ports = [0x04, 0xd2, 0, 53];
        assert_eq!(
            of(LinkType::RAW, &v4(17, 0x2000, &ports)).key(),
            Some(key(["10.0.0.1", "192.0.2.9"], 17, [1234, 53]))
        );
        assert_eq!(of(LinkType::RAW, &v4(17, 0x00b9, &ports)), FlowOf::Fragment);
        assert_eq!(of(LinkType::RAW, &v4(17, 0, &ports[..3])), FlowOf::Cut);
        assert_eq!(of(LinkType::ETHERNET, &[0; 60]), FlowOf::NonIp);
        // Ethernet padding behind an IP packet without payload is not a port.
        let mut padded = v4(17, 0, &[]);
        padded.extend(ports);
        assert_eq!(of(LinkType::RAW, &padded), FlowOf::Cut);
    }

    #[test]
    fn an_ipv4_flow_is_never_the_ipv6_flow_with_the_same_bits() {
        assert_ne!(key(["10.0.0.1", "10.0.0.2"], 17, [1, 2]), key(["::10.0.0.1", "::10.0.0.2"], 17, [1, 2]));
        assert_eq!(FlowKey::new("10.0.0.1".parse().unwrap(), "::1".parse().unwrap(), 17, 1, 2), None);
    }

    proptest! {
        #[test]
        fn both_directions_are_one_conversation(
            a in any::<u128>(), b in any::<u128>(), protocol in 0u8..60, ports in any::<[u16; 2]>(),
        ) {
            let (a, b) = (Ipv6Addr::from_bits(a).into(), Ipv6Addr::from_bits(b).into());
            let key = FlowKey::new(a, b, protocol, ports[0], ports[1]).unwrap();
            prop_assert_eq!(key.reversed().reversed(), key);
            prop_assert_eq!(key.reversed().conversation(), key.conversation());
            prop_assert_eq!((key.source(), key.destination()), (a, b));
        }
    }
}
