//! Which test packets are for this host: those to its addresses, if the interface has one.

use port::local;
use std::collections::BTreeSet;
use std::net::IpAddr;

/// The addresses of this host, and whether only packets to these are for it: of each version, if the interface has an address of it
/// that other networks reach. One without is a port that tests are made with, and takes packets to any address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Own {
    /// Those of all interfaces.
    pub addresses: BTreeSet<IpAddr>,
    pub v4_only: bool,
    pub v6_only: bool,
}

impl Own {
    /// Looks, in the calling thread's network namespace. `None` if the kernel does not say.
    pub fn look(ifindex: u32) -> Option<Own> {
        Some(Own::of(ifindex, &local::owners().ok()?))
    }

    fn of(ifindex: u32, owners: &[(u32, IpAddr)]) -> Own {
        let has = |v4: bool| {
            owners
                .iter()
                .any(|(index, address)| *index == ifindex && address.is_ipv4() == v4 && is_global(*address))
        };
        Own {
            addresses: owners.iter().map(|(_, address)| *address).collect(),
            v4_only: has(true),
            v6_only: has(false),
        }
    }
}

fn is_global(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !address.is_link_local() && !address.is_loopback(),
        IpAddr::V6(address) => !address.is_unicast_link_local() && !address.is_loopback(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_without_an_address_of_a_version_takes_packets_to_any_of_it() {
        let address = |text: &str| text.parse::<IpAddr>().expect("an address");
        let owners = [
            (1, address("127.0.0.1")),
            (2, address("198.18.0.2")),
            (3, address("fe80::2")),
            (3, address("2001:db8::2")),
        ];
        let flags = |index| {
            let own = Own::of(index, &owners);
            assert_eq!(own.addresses.len(), 4);
            (own.v4_only, own.v6_only)
        };
        assert_eq!([1, 2, 3, 4].map(flags), [(false, false), (true, false), (false, true), (false, false)]);
        assert_eq!(
            Own::of(3, &owners[..3]),
            Own {
                v6_only: false,
                addresses: owners[..3].iter().map(|(_, a)| *a).collect(),
                ..Own::default()
            }
        );
    }
}
