//! Who talks to whom, when and in how many frames: the conversations of a look-alike.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv6Addr};

use wire::flow::{FlowHasher, FlowKey};
use wire::numbers::protocol;

use super::distribution::Deck;
use super::profile::{Blocks, FlowProfile, Hosts, IPV4_BLOCKS, Kind};
use crate::hosts::NOT_FOR_CLIENTS;
use crate::random::{For, Key};

/// A conversation to come. 56 bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Talk {
    pub start_ns: u64,
    pub duration_ns: u64,
    pub frames: [u32; 2],
    pub kind: u16,
    pub client: u32,
    pub server: u32,
    pub client_port: u16,
    pub server_port: u16,
    pub vlan: u16,
    pub server_first: bool,
    pub opened: bool,
    pub finished: bool,
    pub reset: bool,
}

/// Addresses by a host's number.
#[derive(Debug, Clone)]
pub(super) struct Addresses {
    blocks: Blocks,
    v4_mask: u32,
}

impl Addresses {
    pub fn new(blocks: &Blocks) -> Addresses {
        let bits = IPV4_BLOCKS.iter().find(|(block, _)| *block == blocks.ipv4).map_or(24, |(_, bits)| *bits);
        Addresses { blocks: blocks.clone(), v4_mask: (1 << bits) - 1 }
    }

    /// Neither a network's nor a broadcast's address, as long as there are enough.
    pub fn v4(&self, host: u32) -> [u8; 4] {
        (self.blocks.ipv4.to_bits() | ((host / 254 * 256 + host % 254 + 1) & self.v4_mask)).to_be_bytes()
    }

    pub fn v6(&self, host: u32) -> [u8; 16] {
        Ipv6Addr::from_bits(self.blocks.ipv6.to_bits() | (u128::from(host) + 1)).octets()
    }

    pub fn mac(&self, host: u32, v6: bool) -> [u8; 6] {
        // Captures have fewer hosts than 2^23 of each version (`CONVERSATIONS`).
        let [_, b, c, d] = host.to_be_bytes();
        [self.blocks.mac, b'N', b'D', b | if v6 { 0x80 } else { 0 }, c, d]
    }

    fn ip(&self, host: u32, v6: bool) -> IpAddr {
        if v6 { self.v6(host).into() } else { self.v4(host).into() }
    }
}

/// All conversations, in the order of their beginning.
pub(super) fn plan(profile: &FlowProfile, key: Key) -> Vec<Talk> {
    let mut talks = Vec::with_capacity(profile.bounds().conversations as usize);
    for (number, kind) in profile.kinds.iter().enumerate() {
        shapes(kind, number as u16, key, &mut talks);
    }
    starts(profile, key, &mut talks);
    talks.sort_by_key(|talk| talk.start_ns);
    let addresses = Addresses::new(&profile.blocks);
    let mut used = HashSet::default();
    for (v6, hosts) in [(false, &profile.ipv4), (true, &profile.ipv6)] {
        let version = if v6 { 6 } else { 4 };
        let is_of = |talk: &&mut Talk| {
            profile.kinds.get(usize::from(talk.kind)).is_some_and(|kind| kind.ip == version)
        };
        let mut own: Vec<&mut Talk> = talks.iter_mut().filter(is_of).collect();
        let mut roles = Roles::new(hosts, &own, key, v6);
        for talk in &mut own {
            let Some(kind) = profile.kinds.get(usize::from(talk.kind)) else { continue };
            talk.vlan = (100 + key.bits(For::Vlan, roles.taken) % profile.vlans.max(1)) as u16 & 0xfff;
            roles.take(talk, kind, &addresses, &mut used);
        }
    }
    talks
}

/// Conversations of a kind: how many frames each has, and how long it lasts.
fn shapes(kind: &Kind, number: u16, key: Key, talks: &mut Vec<Talk>) {
    for shape in &kind.shapes {
        let mut decks = [&shape.client, &shape.server, &shape.duration_ns].map(Deck::new);
        // Facts that some of them have are dealt out by selection sampling: exactly as many, each equally likely.
        let mut facts = [shape.server_first, shape.opened, shape.finished, shape.reset];
        for n in 0..shape.conversations {
            let draw = talks.len() as u64;
            let [client, server, duration] = [0, 1, 2].map(|which: usize| {
                let bits = key.bits(For::Weight, draw << 2 | which as u64);
                decks.get_mut(which).and_then(|deck| deck.deal(bits)).unwrap_or(0)
            });
            let left = shape.conversations - n;
            let mut fact = [false; 4];
            for (which, (fact, count)) in fact.iter_mut().zip(&mut facts).enumerate() {
                *fact = key.bits(For::Traits, draw << 2 | which as u64) % left < *count;
                *count -= u64::from(*fact).min(*count);
            }
            let frames = [client as u32, server as u32];
            let several = client + server > 1;
            talks.push(Talk {
                start_ns: 0,
                duration_ns: if several { duration } else { 0 },
                frames,
                kind: number,
                client: 0,
                server: 0,
                client_port: 0,
                server_port: 0,
                vlan: 0,
                server_first: client == 0 || server > 0 && fact[0],
                opened: client > 0 && fact[1],
                finished: fact[2],
                reset: fact[3],
            });
        }
    }
}

/// Gives each conversation its beginning: the longest first, because they have the least choice.
fn starts(profile: &FlowProfile, key: Key, talks: &mut [Talk]) {
    let duration = profile.duration_ns;
    let mut left: Vec<u64> = profile.intervals.iter().map(|interval| interval.starts_ns.count()).collect();
    let mut order: Vec<u32> = (0..talks.len() as u32).collect();
    order.sort_by_key(|&n| {
        let talk = talks.get(n as usize).map_or(0, |talk| talk.duration_ns);
        (std::cmp::Reverse(talk), key.bits(For::Start, u64::from(n)))
    });
    for n in order {
        let Some(talk) = talks.get_mut(n as usize) else { continue };
        let latest = duration.saturating_sub(talk.duration_ns);
        let within = key.unit(For::Start, 1 << 40 | u64::from(n));
        let choices = latest / profile.interval_ns.max(1) + 1;
        let choices = usize::try_from(choices).unwrap_or(usize::MAX).min(left.len());
        let total: u64 = left.iter().take(choices).sum();
        let mut place = if total > 0 { key.bits(For::Start, 1 << 41 | u64::from(n)) % total } else { 0 };
        let chosen = left.iter_mut().take(choices).position(|count| {
            if place < *count {
                *count -= 1;
                return true;
            }
            place -= *count;
            false
        });
        let (from, span) = match chosen {
            Some(interval) => (interval as u64 * profile.interval_ns, profile.interval_ns),
            None => (0, latest),
        };
        talk.start_ns = from.saturating_add((within * span as f64) as u64).min(latest);
    }
}

/// Deals hosts out: every one in its role, new ones evenly over the conversations, known ones by a Pareto law.
///
/// Numbers of hosts, so that as many send and as many receive as in the profile:
///
/// ```text
///   clients:  unanswered | answered, or both |
///   servers:                          both   | answering | silent
/// ```
struct Roles {
    key: Key,
    v6: bool,
    hosts: Hosts,
    taken: u64,
    /// Of conversations with an answer and of those without: how many there are, and how many have their hosts.
    conversations: [Progress; 2],
    /// Clients and servers of either.
    pools: [[Progress; 2]; 2],
    next_port: Vec<u16>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    all: u64,
    over: u64,
}

/// Client ports: the dynamic ones (RFC 6335 section 6), but those that servers without a fixed port have here.
const CLIENT_PORTS: std::ops::RangeInclusive<u16> = 57_344..=65_535;

impl Roles {
    fn new(hosts: &Hosts, talks: &[&mut Talk], key: Key, v6: bool) -> Roles {
        let all = |all| Progress { all, over: 0 };
        let answered = talks.iter().filter(|talk| !talk.frames.contains(&0)).count() as u64;
        // Who is both may take part in one role without an answer.
        let split = |count: u64, without: u64| {
            let with = count.saturating_sub(without).min(answered);
            [all(with), all(count - with)]
        };
        Roles {
            key,
            v6,
            hosts: hosts.clone(),
            taken: 0,
            conversations: [all(answered), all(talks.len() as u64 - answered)],
            pools: [split(hosts.clients, hosts.unanswered), split(hosts.servers, hosts.silent)],
            next_port: Vec::new(),
        }
    }

    /// A host's place in a pool of `role`, and the pool: one that is due to come in, or one that is known.
    fn pick(&mut self, role: usize, pool: usize, attempt: u64) -> (usize, u64) {
        let Progress { all: steps, over: step } = self.conversations[pool];
        // Where none is of this kind, one of the other will do.
        let pool = if self.pools[role][pool].all == 0 { 1 - pool } else { pool };
        let hosts = &mut self.pools[role][pool];
        let due = (u128::from(step + 1) * u128::from(hosts.all)).div_ceil(u128::from(steps.max(1)));
        if attempt == 0 && u128::from(hosts.over) < due.min(hosts.all.into()) {
            hosts.over += 1;
            return (pool, hosts.over - 1);
        }
        // After many attempts with known hosts, one more.
        if attempt % 64 == 63 {
            hosts.over += 1;
        }
        let known = u32::try_from(hosts.over.max(1)).unwrap_or(u32::MAX);
        let purpose = if role == 0 { For::Client } else { For::Server };
        (pool, self.key.skewed(purpose, self.taken << 12 | attempt & 0xfff, known).into())
    }

    /// The number of a client.
    fn client(&self, (pool, place): (usize, u64)) -> u32 {
        let Hosts { unanswered, .. } = self.hosts;
        let number = match pool {
            0 => unanswered + place,
            _ if place < unanswered => place,
            _ => place + self.pools[0][0].all,
        };
        number as u32
    }

    /// The number of a server.
    fn server(&self, (pool, place): (usize, u64)) -> u32 {
        let Hosts { clients, servers, both, silent, .. } = self.hosts;
        let place = if pool == 0 { place } else { place + self.pools[1][0].all };
        // Answering ones that are no clients come first, because each of them must answer.
        let speaking = servers.saturating_sub(silent);
        let alone = speaking.saturating_sub(both);
        let number = if place < alone {
            clients + place
        } else if place < speaking {
            clients - both + (place - alone)
        } else {
            clients + place - both
        };
        number as u32
    }

    /// Both hosts and ports of a conversation, which no other has.
    fn take(
        &mut self,
        talk: &mut Talk,
        kind: &Kind,
        addresses: &Addresses,
        used: &mut HashSet<u64, FlowHasher>,
    ) {
        let pool = usize::from(talk.frames.contains(&0));
        let port = self.server_port(kind);
        // A host that talks to itself does so where there is no other.
        let alone = self.hosts.both == 1 && self.hosts.clients.max(self.hosts.servers) == 1;
        let mut picked = [(0, 0); 2];
        for attempt in 0..4096 {
            // Ports tell conversations of the same hosts apart, mostly.
            if attempt == 0 || !kind.has_ports() || attempt % 8 == 0 || talk.client == talk.server {
                picked = [0, 1].map(|role| self.pick(role, pool, attempt));
            }
            let hosts = [self.client(picked[0]), self.server(picked[1])];
            // Whoever sends first may be at the server's port.
            [talk.client, talk.server] = if talk.server_first { [hosts[1], hosts[0]] } else { hosts };
            talk.server_port = port;
            talk.client_port = if kind.has_ports() { self.client_port(talk.client) } else { 0 };
            if (talk.client != talk.server || alone) && used.insert(self.identity(talk, kind, addresses)) {
                break;
            }
        }
        self.taken += 1;
        self.conversations[pool].over += 1;
    }

    /// What tells the conversation from others, both directions alike.
    fn identity(&self, talk: &Talk, kind: &Kind, addresses: &Addresses) -> u64 {
        let (client, server) = (addresses.ip(talk.client, self.v6), addresses.ip(talk.server, self.v6));
        let (source, destination) = match kind.protocol {
            protocol::ICMP | protocol::ICMPV6 => (talk.server_port >> 8, talk.server_port & 0xff),
            _ => (talk.client_port, talk.server_port),
        };
        let key = FlowKey::new(client, server, kind.protocol, source, destination).map(FlowKey::conversation);
        let Some(key) = key else { return 0 };
        let words = |address: IpAddr| match address {
            IpAddr::V4(address) => u64::from(address.to_bits()),
            IpAddr::V6(address) => address.to_bits() as u64,
        };
        let ports = u64::from(key.source_port()) << 16 | u64::from(key.destination_port());
        let more = ports << 16 | u64::from(key.protocol()) << 8 | u64::from(self.v6);
        // A hash without a random key, so that a seed means the same frames.
        Key::new(words(key.source()))
            .bits(For::Client, Key::new(words(key.destination())).bits(For::Server, more))
    }

    fn server_port(&self, kind: &Kind) -> u16 {
        match (kind.port, kind.ports) {
            (Some(port), _) => port,
            (None, Some([least, most, count])) => {
                let count = u64::from(count.max(1));
                // Dynamic ones below the clients', so that the lower port is the server's.
                let most = if least >= 49152 { most.min(*CLIENT_PORTS.start() - 1) } else { most };
                let room = u64::from(most.saturating_sub(least)) + 1;
                let draw = self.key.bits(For::Application, self.taken);
                // Evenly over the range.
                least.saturating_add((draw % count.min(room) * room / count.min(room)) as u16)
            }
            (None, None) => 0,
        }
    }

    fn client_port(&mut self, client: u32) -> u16 {
        let index = client as usize;
        if self.next_port.len() <= index {
            self.next_port.resize(index + 1, 0);
        }
        let Some(next) = self.next_port.get_mut(index) else { return *CLIENT_PORTS.end() };
        loop {
            *next = match *next {
                0 => {
                    let span = u64::from(CLIENT_PORTS.end() - CLIENT_PORTS.start()) + 1;
                    CLIENT_PORTS.start() + (self.key.bits(For::ClientPort, u64::from(client)) % span) as u16
                }
                port if port == *CLIENT_PORTS.end() => *CLIENT_PORTS.start(),
                port => port + 1,
            };
            if !NOT_FOR_CLIENTS.contains(next) {
                return *next;
            }
        }
    }
}
