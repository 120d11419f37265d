//! Keys (addresses, ports, protocol) of the flows of a profile, so that none comes twice.
//!
//! Flow *k* of a class (flows with the same protocol, packets and duration) has the source address, the destination
//! address and the source port at place *k* of three orders that repeat after 2^s, 2^d and an odd number p of flows. So
//! the pair of source address and port repeats after 2^s * p flows, and the triple, where the destination takes its next
//! address only when the source has gone through all of its own, after 2^(s+d) * p. Classes of one protocol have ports
//! (ICMP: addresses) of their own.

use super::error::{Fault, Outcome, Place};
use super::profile::{Addresses, PortRange, Transport};

/// What makes the flows of one class differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Keys {
    source: Addresses,
    destination: Addresses,
    /// The destination takes its next address after so many flows.
    every: u64,
    /// None for ICMP.
    ports: Option<PortRange>,
    /// Flows until the first key comes again.
    pub different: u128,
}

impl Keys {
    /// As the fields of an IP header.
    pub fn addresses(&self) -> String {
        let every = match self.every {
            1 => String::new(),
            every => format!(" every={every}"),
        };
        format!("src={}, dst={}{every}", self.source.expression(), self.destination.expression())
    }

    /// As a value of `sport`.
    pub fn source_port(&self) -> String {
        match self.ports {
            Some(PortRange { first, last }) if first == last => first.to_string(),
            Some(PortRange { first, last }) => format!("{first}..{last}"),
            None => String::new(),
        }
    }
}

/// Where a profile's keys come from.
pub(super) struct Space {
    pub source: Addresses,
    pub destination: Addresses,
    pub ports: PortRange,
    /// To blame when there are too few.
    pub place: Place,
}

impl Space {
    /// The keys of each class of a protocol, of `classes` with their shares and, where known, numbers of flows.
    pub fn divide(&self, transport: Transport, classes: &[(u32, Option<u64>)]) -> Outcome<Vec<Keys>> {
        let count = classes.len() as u64;
        if transport == Transport::Icmp {
            let bits = count.next_power_of_two().trailing_zeros() as u8;
            let part = |n: usize| {
                let n = n as u128;
                match (self.source.part(n, bits), self.destination.part(n, bits)) {
                    (Some(source), _) => Some((source, self.destination)),
                    (None, Some(destination)) => Some((self.source, destination)),
                    (None, None) => None,
                }
            };
            let too_few = || {
                self.fault(format!(
                    "ICMP has no ports, and these addresses are too few to give {count} kinds of flows their own: give shorter prefixes"
                ))
            };
            let keys = |(n, (_, flows)): (usize, &(u32, Option<u64>))| {
                let (source, destination) = part(n).ok_or_else(too_few)?;
                Ok(keys(source, destination, None, *flows))
            };
            return classes.iter().enumerate().map(keys).collect();
        }
        let all = u64::from(self.ports.last - self.ports.first) + 1;
        let shares: u64 = classes.iter().map(|(share, _)| u64::from(*share)).sum();
        let Some(rest) = all.checked_sub(count) else {
            return Err(self.fault(format!(
                "{count} kinds of {} flows need as many source ports at least, and there are {all}: give a wider `source_port`",
                transport.name()
            )));
        };
        let mut first = u64::from(self.ports.first);
        let mut divided = Vec::with_capacity(classes.len());
        for (share, flows) in classes {
            let own = 1 + rest * u64::from(*share) / shares.max(1);
            // An odd number has no factor in common with a power of two.
            let odd = own - u64::from(own.is_multiple_of(2));
            let last = first + odd - 1;
            let ports = PortRange {
                first: u16::try_from(first).unwrap_or(u16::MAX),
                last: u16::try_from(last).unwrap_or(u16::MAX),
            };
            divided.push(keys(self.source, self.destination, Some(ports), *flows));
            first += own;
        }
        Ok(divided)
    }

    pub fn fault(&self, message: String) -> Fault {
        Fault { place: self.place, message }
    }

    /// May a flow of this have the same addresses and ports as one of the other?
    pub fn meets(&self, other: &Space) -> bool {
        let meet = |a: Addresses, b: Addresses| {
            let ((from, to), (start, end)) = (a.span(), b.span());
            a.first.is_ipv4() == b.first.is_ipv4() && from <= end && start <= to
        };
        meet(self.source, other.source) && meet(self.destination, other.destination)
    }

    /// The same of source ports.
    pub fn shares_ports(&self, other: &Space) -> bool {
        self.ports.first <= other.ports.last && other.ports.first <= self.ports.last
    }
}

fn keys(source: Addresses, destination: Addresses, ports: Option<PortRange>, flows: Option<u64>) -> Keys {
    let count = ports.map_or(1, |ports| u128::from(ports.last - ports.first) + 1);
    let beside = (1u128 << source.bits.max(destination.bits)) * count;
    // Both addresses change with each flow, where that is enough.
    let enough = flows.is_none_or(|flows| u128::from(flows) <= beside);
    let nested = !enough && source.bits > 0 && destination.bits > 0;
    let (every, different) = match nested {
        true => (1u64 << source.bits, (1u128 << (source.bits + destination.bits)) * count),
        false => (1, beside),
    };
    Keys { source, destination, every, ports, different }
}
