//! Addresses and ports of a prefix of our own for copies: each pair is used once at a time, so that no copy takes another's place.
//! A client keeps its port, and copies of one client have the same address as long as that is free.

use crate::sample::siphash;
use std::collections::HashSet;
use std::net::IpAddr;

/// Addresses of a prefix that are used, at most.
const MOST: u32 = 1 << 24;
/// Addresses that are looked at for a port, and ports that are looked at after that.
const LOOKS: u32 = 4096;
/// Ports that are taken where a client's own is not free.
const PORTS: std::ops::Range<u16> = 1024..65_535;

/// An address of the prefix, by its number, and a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Taken {
    address: u32,
    /// The port.
    pub port: u16,
}

/// A share of a prefix: several threads have one each.
#[derive(Debug)]
pub struct Addresses {
    first: IpAddr,
    hosts: u32,
    lane: u32,
    lanes: u32,
    used: HashSet<Taken>,
}

impl Addresses {
    /// Of the prefix `first`/`bits`, whose bits behind it are zero, the `lane`th of `lanes` shares. `None` if it has not an address
    /// for each.
    pub fn new(first: IpAddr, bits: u8, lane: u32, lanes: u32) -> Option<Addresses> {
        let width = if first.is_ipv4() { 32 } else { 128u8 };
        let free = u32::from(width.checked_sub(bits)?);
        let all = if free >= 24 { MOST } else { 1 << free };
        // The first and the last address of an IPv4 prefix are the network's and its broadcast address.
        let hosts = if all > 2 { all - 2 } else { all };
        (lanes > 0 && lane < lanes && hosts >= lanes).then(|| Addresses {
            first,
            hosts,
            lane,
            lanes,
            used: HashSet::new(),
        })
    }

    /// How many pairs are in use.
    pub fn used(&self) -> usize {
        self.used.len()
    }

    /// Takes a pair for a copy of a client: the client's port, if any address has it free.
    pub fn take(&mut self, client: IpAddr, port: u16, copy: u32) -> Option<Taken> {
        let mut bytes = [0; 20];
        let (address, number) = bytes.split_at_mut(16);
        address.copy_from_slice(&match client {
            IpAddr::V4(client) => client.to_ipv6_mapped().octets(),
            IpAddr::V6(client) => client.octets(),
        });
        number.copy_from_slice(&copy.to_be_bytes());
        let own = (self.hosts - self.lane).div_ceil(self.lanes);
        let preferred = (siphash([0, 0], &bytes) % u64::from(own)) as u32;
        let address = |nth: u32| self.lane + self.lanes * ((preferred + nth) % own);
        let ports = u32::from(PORTS.end - PORTS.start);
        let start = u32::from(port).wrapping_mul(40_503);
        let kept = (0..own.min(LOOKS)).map(|nth| Taken { address: address(nth), port });
        let moved = (0..LOOKS).map(|nth| Taken {
            address: address(nth),
            port: PORTS.start + (start.wrapping_add(nth.wrapping_mul(7919)) % ports) as u16,
        });
        let free = kept.chain(moved).find(|taken| !self.used.contains(taken))?;
        self.used.insert(free);
        Some(free)
    }

    /// The address of a pair.
    pub fn address(&self, taken: Taken) -> IpAddr {
        let number = taken.address + u32::from(self.hosts > 2);
        match self.first {
            IpAddr::V4(first) => IpAddr::from((first.to_bits() | number).to_be_bytes()),
            IpAddr::V6(first) => IpAddr::from((first.to_bits() | u128::from(number)).to_be_bytes()),
        }
    }

    /// It is free again.
    pub fn give_back(&mut self, taken: Taken) {
        self.used.remove(&taken);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn no_pair_is_used_twice_and_ports_are_kept_while_there_are_addresses() {
        let mut lanes: Vec<_> =
            (0..3).map(|lane| Addresses::new(ip("10.99.0.0"), 24, lane, 3).unwrap()).collect();
        let mut pairs = HashSet::new();
        for client in 0..50u8 {
            for port in 40_000..40_010u16 {
                for copy in 0..10 {
                    let lane = usize::from(port) % 3;
                    let taken = lanes[lane].take(IpAddr::from([10, 1, 0, client]), port, copy).unwrap();
                    let address = lanes[lane].address(taken);
                    assert!(pairs.insert((address, taken.port)), "{address}:{}", taken.port);
                    assert!(address > ip("10.99.0.0") && address < ip("10.99.0.255"), "{address}");
                }
            }
        }
        assert_eq!(pairs.len(), 5000);
        // A port has 500 copies, and a share of the prefix 84 or 85 addresses, each of which has it once.
        for port in 40_000..40_010 {
            let kept = pairs.iter().filter(|(_, kept)| *kept == port).count();
            assert!(kept >= 84, "{port}: {kept}");
        }
    }

    #[test]
    fn a_prefix_without_room_says_so_and_what_is_given_back_is_free() {
        let mut one = Addresses::new(ip("fd00::"), 127, 1, 2).unwrap();
        let taken = one.take(ip("10.0.0.1"), 4000, 0).unwrap();
        assert_eq!(one.address(taken), ip("fd00::1"));
        let other = one.take(ip("10.0.0.1"), 4000, 1).unwrap();
        assert_ne!(other.port, 4000);
        one.give_back(taken);
        assert_eq!((one.used(), one.take(ip("10.0.0.1"), 4000, 2)), (1, Some(taken)));
        assert!(Addresses::new(ip("10.0.0.1"), 32, 0, 2).is_none());
        assert!(Addresses::new(ip("10.0.0.1"), 33, 0, 1).is_none());
    }
}
