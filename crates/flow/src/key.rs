//! What makes packets belong to one flow.

use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Addresses, ports, protocol, type of service and VLAN of one direction. 40 bytes: five words, compared and hashed as such.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// Source (two words), destination (two words); the last has ports, protocol, type of service, IP version and VLAN.
    words: [u64; 5],
}

/// The bit of the last word that tells IPv6 from IPv4.
const V6: u64 = 1 << 15;
/// The bit of the last word that tells packets that leave from those that arrive, where these are flows of their own.
const EGRESS: u64 = 1 << 14;
/// A frame without a tag, in the twelve bits of its VLAN; 802.1Q reserves this number.
const UNTAGGED: u16 = 0xfff;

/// What a key is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    /// Source and destination, of one IP version.
    pub addresses: [IpAddr; 2],
    /// Source and destination port. Of ICMP the second is type * 256 + code, as NetFlow has it; zero where there are none.
    pub ports: [u16; 2],
    /// The transport's number.
    pub protocol: u8,
    /// Type of service, or traffic class.
    pub tos: u8,
    /// The outermost VLAN.
    pub vlan: Option<u16>,
}

impl Key {
    /// Of addresses that are two big-endian words each; of IPv4 the last four bytes.
    #[inline]
    pub(crate) fn of_words(
        addresses: [[u64; 2]; 2],
        v6: bool,
        ports: [u16; 2],
        (protocol, tos): (u8, u8),
        vlan: Option<u16>,
    ) -> Key {
        let [[a, b], [c, d]] = addresses;
        let last = u64::from(ports[0]) << 48
            | u64::from(ports[1]) << 32
            | u64::from(protocol) << 24
            | u64::from(tos) << 16
            | if v6 { V6 } else { 0 }
            | u64::from(vlan.unwrap_or(UNTAGGED) & 0xfff);
        Key { words: [a, b, c, d, last] }
    }

    /// A key of its parts; `None` if one address is IPv4 and the other IPv6.
    pub fn new(parts: Parts) -> Option<Key> {
        let v6 = match parts.addresses {
            [IpAddr::V4(_), IpAddr::V4(_)] => false,
            [IpAddr::V6(_), IpAddr::V6(_)] => true,
            _ => return None,
        };
        let words = parts.addresses.map(|address| match address {
            IpAddr::V4(v4) => [0, u64::from(v4.to_bits())],
            IpAddr::V6(v6) => [(v6.to_bits() >> 64) as u64, v6.to_bits() as u64],
        });
        Some(Key::of_words(words, v6, parts.ports, (parts.protocol, parts.tos), parts.vlan))
    }

    /// What it is made of.
    pub fn parts(&self) -> Parts {
        Parts {
            addresses: [self.address(0), self.address(1)],
            ports: self.ports(),
            protocol: self.protocol(),
            tos: self.tos(),
            vlan: self.vlan(),
        }
    }

    pub(crate) fn words(&self) -> [u64; 5] {
        self.words
    }

    /// The key of the same packets, where they leave by the interface: never that of packets that arrive.
    #[inline]
    pub(crate) fn leaving(self) -> Key {
        let mut words = self.words;
        words[4] |= EGRESS;
        Key { words }
    }

    /// The key of the same packets, whether they arrive or leave.
    pub(crate) fn either_direction(self) -> Key {
        let mut words = self.words;
        words[4] &= !EGRESS;
        Key { words }
    }

    /// The words of the source (0) or destination (1).
    pub(crate) fn address_words(&self, which: usize) -> [u64; 2] {
        match which {
            0 => [self.words[0], self.words[1]],
            _ => [self.words[2], self.words[3]],
        }
    }

    fn address(&self, which: usize) -> IpAddr {
        let [hi, lo] = self.address_words(which);
        match self.is_v6() {
            true => Ipv6Addr::from_bits(u128::from(hi) << 64 | u128::from(lo)).into(),
            false => Ipv4Addr::from_bits(lo as u32).into(),
        }
    }

    /// Is it of IPv6?
    pub fn is_v6(&self) -> bool {
        self.words[4] & V6 != 0
    }

    /// Source and destination port.
    pub fn ports(&self) -> [u16; 2] {
        [(self.words[4] >> 48) as u16, (self.words[4] >> 32) as u16]
    }

    /// The transport's number.
    pub fn protocol(&self) -> u8 {
        (self.words[4] >> 24) as u8
    }

    /// Type of service, or traffic class.
    pub fn tos(&self) -> u8 {
        (self.words[4] >> 16) as u8
    }

    /// The outermost VLAN.
    pub fn vlan(&self) -> Option<u16> {
        Some(self.words[4] as u16 & 0xfff).filter(|vlan| *vlan != UNTAGGED)
    }

    /// The key with the ports and the protocol of another one: a later fragment's, which has none of its own.
    pub(crate) fn with_transport_of(self, other: &Key) -> Key {
        const PROTOCOL: u64 = 0xff << 24;
        let mut words = self.words;
        words[4] = words[4] & !PROTOCOL | other.words[4] & PROTOCOL;
        Key { words }.with_ports(other.ports())
    }

    /// What the fragments of one packet have in common: all but ports and type of service, in which marks of congestion may
    /// differ, and in IPv6 but the protocol, too: a header of options may stand before the transport's, in the first fragment
    /// alone (RFC 8200, 4.5).
    pub(crate) fn of_fragments(self) -> Key {
        let mut words = self.words;
        words[4] &= if self.is_v6() { 0xffff } else { 0xff << 24 | 0xffff };
        Key { words }
    }

    /// The key with other ports.
    pub(crate) fn with_ports(self, ports: [u16; 2]) -> Key {
        let mut words = self.words;
        words[4] = words[4] & 0xffff_ffff | u64::from(ports[0]) << 48 | u64::from(ports[1]) << 32;
        Key { words }
    }

    /// The same for both directions: the key whose words are the smaller ones.
    #[inline]
    pub(crate) fn canonical(self) -> Key {
        let other = self.reversed();
        if other.words < self.words { other } else { self }
    }

    /// The other direction's. Of ICMP only the addresses change: its second port is type and code.
    pub fn reversed(self) -> Key {
        use wire::numbers::protocol::{ICMP, ICMPV6};
        let [a, b, c, d, last] = self.words;
        let turned = Key { words: [c, d, a, b, last] };
        match self.protocol() {
            ICMP | ICMPV6 => turned,
            _ => turned.with_ports([self.ports()[1], self.ports()[0]]),
        }
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for word in self.words {
            state.write_u64(word);
        }
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.parts().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parts() -> impl Strategy<Value = Parts> {
        let pair = prop_oneof![
            any::<[u32; 2]>().prop_map(|a| a.map(|bits| IpAddr::V4(Ipv4Addr::from_bits(bits)))),
            any::<[u128; 2]>().prop_map(|a| a.map(|bits| IpAddr::V6(Ipv6Addr::from_bits(bits)))),
        ];
        (pair, any::<[u16; 2]>(), any::<u8>(), any::<u8>(), proptest::option::of(0u16..0xfff)).prop_map(
            |(addresses, ports, protocol, tos, vlan)| Parts { addresses, ports, protocol, tos, vlan },
        )
    }

    proptest! {
        #[test]
        fn a_key_keeps_its_parts(parts in parts()) {
            let key = Key::new(parts).expect("one version");
            prop_assert_eq!(key.parts(), parts);
            prop_assert_eq!(key.reversed().reversed(), key);
            prop_assert_eq!(key.reversed().canonical(), key.canonical());
        }

        #[test]
        fn keys_of_different_parts_differ(a in parts(), b in parts()) {
            prop_assert_eq!(Key::new(a) == Key::new(b), a == b);
        }
    }

    #[test]
    fn packets_that_leave_have_a_key_of_their_own_with_the_same_parts() {
        let addresses = [Ipv4Addr::LOCALHOST.into(), Ipv4Addr::BROADCAST.into()];
        for vlan in [None, Some(0), Some(4094)] {
            let parts = Parts { addresses, ports: [1, 2], protocol: 6, tos: 255, vlan };
            let key = Key::new(parts).expect("one version");
            assert_ne!(key.leaving(), key);
            assert_eq!((key.leaving().parts(), key.leaving().is_v6()), (parts, false));
            assert_eq!([key.leaving().either_direction(), key.either_direction()], [key; 2]);
        }
    }

    #[test]
    fn a_mapped_address_is_not_the_ipv4_address() {
        let of = |text: &str| {
            let address: IpAddr = text.parse().expect("an address");
            Key::new(Parts { addresses: [address; 2], ports: [0; 2], protocol: 6, tos: 0, vlan: None })
        };
        assert_ne!(of("10.0.0.1"), of("::10.0.0.1"));
        assert!(
            Key::new(Parts {
                addresses: ["10.0.0.1".parse().expect("v4"), "::1".parse().expect("v6")],
                ports: [0; 2],
                protocol: 6,
                tos: 0,
                vlan: None
            })
            .is_none()
        );
    }
}
