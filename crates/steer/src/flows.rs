//! What the programs share with user space, as they have it: learned flows, the lease, counts.

use crate::programs::Maps;
use libbpf_rs::{MapCore, MapFlags};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A learned flow, in its key's bytes: client 16, server 16, ports of both, in network order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Flow(pub [u8; 36]);

impl Flow {
    /// Of these ends.
    pub fn new(client: SocketAddr, server: SocketAddr) -> Flow {
        let mut key = [0; 36];
        let mut put = |at: usize, bytes: &[u8]| {
            if let Some(field) = key.get_mut(at..at + bytes.len()) {
                field.copy_from_slice(bytes);
            }
        };
        for (at, end) in [(0, client), (16, server)] {
            match end.ip().to_canonical() {
                IpAddr::V4(address) => put(at + 12, &address.octets()),
                IpAddr::V6(address) => put(at, &address.octets()),
            }
        }
        put(32, &client.port().to_be_bytes());
        put(34, &server.port().to_be_bytes());
        Flow(key)
    }

    /// The client's end and the server's.
    pub fn ends(&self) -> (SocketAddr, SocketAddr) {
        let address = |at: usize| {
            let mut bytes = [0; 16];
            bytes.copy_from_slice(&self.0[at..at + 16]);
            match bytes {
                // No copy comes from ::/96.
                [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d] => IpAddr::V4(Ipv4Addr::new(a, b, c, d)),
                other => IpAddr::V6(Ipv6Addr::from(other)),
            }
        };
        let port = |at: usize| u16::from_be_bytes([self.0[at], self.0[at + 1]]);
        (SocketAddr::new(address(0), port(32)), SocketAddr::new(address(16), port(34)))
    }
}

/// No interface has this number.
const ELSEWHERE: u32 = u32::MAX;
/// It is about to be forgotten: `FORGOTTEN` of the program, which then lets none of its packets in.
const FORGOTTEN: u32 = 8;

/// What is known of a flow, in the program's layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    in_ns: u64,
    out_ns: u64,
    flags: u32,
    unused: u32,
}

impl State {
    fn read(bytes: &[u8]) -> Option<State> {
        let word = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let half = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        Some(State { in_ns: word(0)?, out_ns: word(8)?, flags: half(16)?, unused: half(20)? })
    }

    fn bytes(self) -> [u8; 24] {
        let mut bytes = [0; 24];
        bytes[..8].copy_from_slice(&self.in_ns.to_ne_bytes());
        bytes[8..16].copy_from_slice(&self.out_ns.to_ne_bytes());
        bytes[16..20].copy_from_slice(&self.flags.to_ne_bytes());
        bytes
    }

    /// When it last had a packet, either way.
    pub fn last_ns(self) -> u64 {
        self.in_ns.max(self.out_ns)
    }

    /// It was reset, or both sides have finished.
    pub fn is_closed(self) -> bool {
        self.flags & 4 != 0 || self.flags & 3 == 3
    }

    /// The server said something.
    pub fn was_answered(self) -> bool {
        self.out_ns > 0
    }

    /// None of its packets is let in.
    pub fn is_forgotten(self) -> bool {
        self.flags & FORGOTTEN != 0
    }
}

/// What the programs counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// When the engine last asked whether anybody is here, by CLOCK_MONOTONIC; 0: never.
    pub heard_ns: u64,
    /// Packets of the tunnel that went up the stack.
    pub decapsulated: u64,
    /// Answers that went into the tunnel.
    pub steered: u64,
    /// Heartbeats that were sent back.
    pub reflected: u64,
    /// Flows learned.
    pub learned: u64,
    /// SYNs that were dropped because there was no room for another flow.
    pub full: u64,
    /// Packets of the tunnel that were dropped because their flow was not learned.
    pub unlearned: u64,
    /// Packets of the tunnel that were dropped because the agent did not renew its lease.
    pub leaseless: u64,
    /// Packets of the tunnel that were dropped because they are none for the server.
    pub malformed: u64,
    /// Packets with a learned flow's addresses and ports that came by another way, and were dropped.
    pub foreign: u64,
    /// ICMP errors about learned flows' packets, taken away.
    pub stolen_icmp: u64,
    /// Fragments of TCP segments from the server, taken away.
    pub stolen_fragments: u64,
    /// Answers that could not be put into the tunnel, taken away.
    pub stolen_answers: u64,
}

impl Maps {
    /// What was counted.
    pub fn read_counts(&self) -> Counts {
        let value = |number: u32| {
            let bytes = self.counts.lookup(&number.to_ne_bytes(), MapFlags::ANY).ok().flatten();
            bytes.and_then(|bytes| Some(u64::from_ne_bytes(bytes.try_into().ok()?))).unwrap_or(0)
        };
        Counts {
            heard_ns: value(0),
            decapsulated: value(1),
            steered: value(2),
            reflected: value(3),
            learned: value(4),
            full: value(5),
            unlearned: value(6),
            leaseless: value(7),
            malformed: value(8),
            foreign: value(9),
            stolen_icmp: value(10),
            stolen_fragments: value(11),
            stolen_answers: value(12),
        }
    }

    /// Flows are learned until then.
    pub fn set_lease(&self, until_ns: u64) -> io::Result<()> {
        let set = self.lease.update(&0u32.to_ne_bytes(), &until_ns.to_ne_bytes(), MapFlags::ANY);
        set.map_err(|error| io::Error::other(error.to_string()))
    }

    /// All learned flows. One that comes or goes meanwhile may be missing or there twice.
    pub fn learned(&self) -> Vec<(Flow, State)> {
        let read = |key: Vec<u8>, value: Vec<u8>| Some((Flow(key.try_into().ok()?), State::read(&value)?));
        match self.flows.lookup_batch(4096, MapFlags::ANY, MapFlags::ANY) {
            Ok(all) => all.filter_map(|(key, value)| read(key, value)).collect(),
            Err(_) => Vec::new(),
        }
    }

    /// From now on none of its packets is let in; or they are again.
    pub fn mark(&self, flow: &Flow, state: State, forgotten: bool) {
        let flags = if forgotten { state.flags | FORGOTTEN } else { state.flags & !FORGOTTEN };
        // One that is gone need not be marked.
        let _ = self.flows.update(&flow.0, &State { flags, ..state }.bytes(), MapFlags::EXIST);
    }

    /// Forgets one.
    pub fn forget(&self, flow: &Flow) {
        let _ = self.flows.delete(&flow.0);
    }

    /// An interface's clsact qdisc was made for these programs.
    pub fn note_made(&self, index: u32) {
        let _ = self.made.update(&index.to_ne_bytes(), &1u32.to_ne_bytes(), MapFlags::ANY);
    }

    /// Sockets of learned flows are in another network namespace.
    pub fn note_elsewhere(&self) {
        self.note_made(ELSEWHERE);
    }

    /// Are they?
    pub fn is_elsewhere(&self) -> bool {
        self.was_made(ELSEWHERE)
    }

    /// Was it?
    pub fn was_made(&self, index: u32) -> bool {
        self.made.lookup(&index.to_ne_bytes(), MapFlags::ANY).is_ok_and(|found| found.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_is_read_back_as_it_was_written() {
        for (client, server) in [("10.77.1.2:4000", "10.77.2.2:80"), ("[fd00::1]:5", "[fd00::2]:443")] {
            let ends = (client.parse().expect("an end"), server.parse().expect("an end"));
            assert_eq!(Flow::new(ends.0, ends.1).ends(), ends);
        }
        let mapped = Flow::new(
            "[::ffff:10.0.0.1]:1".parse().expect("an end"),
            "[::ffff:10.0.0.2]:80".parse().expect("an end"),
        );
        assert_eq!(mapped.ends().0, "10.0.0.1:1".parse().expect("an end"));
    }

    #[test]
    fn a_flow_is_closed_by_a_reset_or_by_both_sides() {
        let of = |flags| State { in_ns: 1, out_ns: 2, flags, unused: 0 };
        let closed: Vec<bool> = [0, 1, 2, 3, 4, 12].iter().map(|flags| of(*flags).is_closed()).collect();
        assert_eq!(closed, [false, false, false, true, true, true]);
        assert_eq!(State::read(&of(12).bytes()), Some(of(12)));
        assert!(of(12).is_forgotten() && !of(7).is_forgotten());
    }
}
