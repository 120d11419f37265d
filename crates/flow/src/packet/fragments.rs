//! The ports of fragmented packets: only the first fragment has them, so they are remembered for the later ones.
//!
//! Entries are compared by all that the fragments of a packet share, and the oldest one makes room for the newest: which flow a
//! fragment counts for depends on the packets alone, and is the same in every run.

use crate::key::Key;
use std::collections::HashMap;

/// First fragments that are remembered. The oldest one makes room for another.
pub const MOST: usize = 1 << 16;

/// After this a fragment is of another packet (RFC 791 and 8200: a packet is put together within a minute).
const LONGEST_NS: u64 = 60_000_000_000;

/// What the fragments of a packet share, and its identification.
type Whose = (Key, u32);

#[derive(Debug, Clone, Copy)]
struct First {
    key: Key,
    at_ns: u64,
    /// The place in the order that it stands in.
    place: usize,
}

/// First fragments that were seen.
#[derive(Debug, Default)]
pub(crate) struct Fragments {
    known: HashMap<Whose, First, foldhash::fast::RandomState>,
    /// In the order of their arrival, as a ring of [`MOST`] places.
    order: Vec<Whose>,
    /// The place that is used next.
    next: usize,
    unattributed: u64,
}

impl Fragments {
    /// Later fragments for which no first one is known.
    pub(crate) fn unattributed(&self) -> u64 {
        self.unattributed
    }

    /// Remembers a first fragment. Its key is its own.
    #[inline(never)]
    pub(crate) fn first(&mut self, key: Key, identification: u32, at_ns: u64) -> Key {
        let (whose, place) = ((key.of_fragments(), identification), self.next);
        match self.order.get_mut(place) {
            Some(oldest) => {
                let oldest = std::mem::replace(oldest, whose);
                // One that came again since stands at another place.
                if self.known.get(&oldest).is_some_and(|first| first.place == place) {
                    self.known.remove(&oldest);
                }
            }
            None => self.order.push(whose),
        }
        self.next = if place + 1 < MOST { place + 1 } else { 0 };
        self.known.insert(whose, First { key, at_ns, place });
        key
    }

    /// The key of a later fragment: with the transport of its packet's first one, if that is known.
    #[inline(never)]
    pub(crate) fn later(&mut self, key: Key, identification: u32, at_ns: u64) -> Key {
        match self.known.get(&(key.of_fragments(), identification)) {
            Some(first) if at_ns.abs_diff(first.at_ns) < LONGEST_NS => key.with_transport_of(&first.key),
            _ => {
                self.unattributed += 1;
                key
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Parts;
    use std::net::IpAddr;

    fn key(source: &str, ports: [u16; 2], protocol: u8, tos: u8) -> Key {
        let destination = if source.contains(':') { "2001:db8::2" } else { "192.0.2.2" };
        let addresses = [source, destination].map(|text| text.parse::<IpAddr>().expect("an address"));
        Key::new(Parts { addresses, ports, protocol, tos, vlan: None }).expect("one version")
    }

    #[test]
    fn a_later_fragment_counts_for_the_flow_of_its_first_one_whatever_else_differs() {
        let mut fragments = Fragments::default();
        // Congestion was marked on the way, in one of them.
        let (first, later) = (key("192.0.2.1", [7, 9], 17, 2), key("192.0.2.1", [0; 2], 17, 3));
        assert_eq!(fragments.first(first, 5, 0), first);
        assert_eq!(fragments.later(later, 5, 1), key("192.0.2.1", [7, 9], 17, 3));
        // In IPv6 the later one's next header is that of options, which stand in the first one.
        let (first, later) = (key("2001:db8::1", [7, 9], 17, 0), key("2001:db8::1", [0; 2], 60, 0));
        fragments.first(first, 5, 0);
        assert_eq!(fragments.later(later, 5, 1), first);
        assert_eq!(fragments.unattributed(), 0);
    }

    #[test]
    fn a_fragment_of_another_packet_is_not_attributed() {
        let mut fragments = Fragments::default();
        let later = key("192.0.2.1", [0; 2], 17, 0);
        assert_eq!(fragments.later(later, 5, 0), later);
        fragments.first(key("192.0.2.1", [7, 9], 17, 0), 5, 1);
        let of_others = [(key("192.0.2.1", [0; 2], 6, 0), 5, 1), (key("192.0.2.9", [0; 2], 17, 0), 5, 1)];
        let same_number = (later, 5, 1 + LONGEST_NS);
        for (key, number, at_ns) in of_others.into_iter().chain([(later, 6, 1), same_number]) {
            assert_eq!(fragments.later(key, number, at_ns), key);
        }
        assert_eq!(fragments.unattributed(), 5);
    }

    #[test]
    fn beyond_the_bound_the_oldest_are_forgotten_and_what_that_costs_is_counted_the_same_in_each_run() {
        let run = || {
            let mut fragments = Fragments::default();
            let later = key("192.0.2.1", [0; 2], 17, 0);
            let most = MOST as u32;
            for number in 0..most + 100 {
                fragments.first(key("192.0.2.1", [1 + (number % 1000) as u16, 9], 17, 0), number, 0);
            }
            // One of those that are left comes again, and then is the newest one.
            fragments.first(key("192.0.2.1", [5, 9], 17, 0), 5000, 0);
            (0..most + 100).map(|number| fragments.later(later, number, 1).ports()[0]).collect::<Vec<_>>()
        };
        let ports = run();
        let unattributed = ports.iter().filter(|port| **port == 0).count();
        // The hundred that were too many, and the one that made room for the one that came again.
        assert_eq!((unattributed, ports[99], ports[100], ports[101], ports[5000]), (101, 0, 0, 102, 5));
        assert_eq!(run(), ports);
    }

    #[test]
    fn memory_is_that_of_the_bound() {
        let mut fragments = Fragments::default();
        for number in 0..3 * MOST as u32 {
            fragments.first(key("192.0.2.1", [7, 9], 17, 0), number / 2, 0);
        }
        assert!(fragments.order.len() == MOST && fragments.known.len() <= MOST);
    }
}
