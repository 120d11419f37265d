//! Telling clients from servers by what they do.
//!
//! A host is known by its address. Each packet it sends may give it away: who opens a TCP connection or asks a name
//! server is a client, who answers is a server. What counts in the end is which it did more often, by a ratio. The
//! table is pure: addresses and roles go in, sides come out.

use capture::Reader;
use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use wire::flow::FlowHasher;
use wire::numbers::protocol;

use super::{ClassifyError, Looked, Packet, Rules};
use crate::cache::{Cache, Way};

/// What becomes of hosts that did nothing that gives them away, and what counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Auto {
    /// They are secondary. (tcpprep's manual says that it gives up; it does this.)
    Bridge,
    /// They are primary, or secondary together with `nonip_primary`. (tcpprep's manual speaks of networks known to
    /// hold servers; none of its versions gets to asking them.)
    Router,
    /// They are primary.
    Client,
    /// They are secondary.
    Server,
    /// Not deeds count, but who was first seen sending (a client) or being sent to (a server).
    First,
}

/// What a packet gives away about its sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Client,
    Server,
}

/// How often a host was seen in each role.
#[derive(Debug, Clone, Copy, Default)]
struct Deeds {
    client: u64,
    server: u64,
}

/// Stand for packets that need no host.
const SKIP: u32 = u32::MAX;
const NOT_IP: u32 = u32::MAX - 1;
const MAX_HOSTS: u32 = u32::MAX - 2;

pub(super) fn classify(reader: &mut Reader, rules: &Rules, kind: Auto) -> Result<Cache, ClassifyError> {
    let mut hosts = Hosts { one_v6: rules.one_ipv6_host, ..Hosts::default() };
    let mut senders: Vec<u32> = Vec::new();
    while let Some(record) = reader.next_record()? {
        if !record.link.is_readable() {
            let (packet, link) = (record.number, record.link);
            return Err(super::unreadable(reader, packet, link));
        }
        let sender = match rules.look(&record) {
            Looked::Decided(Way::Skip) => SKIP,
            Looked::Decided(_) => NOT_IP,
            Looked::Ip(packet) if kind == Auto::First => {
                let sender = hosts.seen_first(packet.source, Role::Client);
                hosts.seen_first(packet.destination, Role::Server);
                sender
            }
            Looked::Ip(packet) => hosts.seen(packet.source, role(&packet)),
        };
        senders.push(sender);
        if hosts.deeds.len() >= MAX_HOSTS as usize {
            return Err(ClassifyError::TooManyHosts { file: reader.name().to_owned(), limit: MAX_HOSTS });
        }
    }
    let unknown = match kind {
        Auto::Client => Way::Primary,
        Auto::Router if !rules.nonip_primary => Way::Primary,
        Auto::Bridge | Auto::Router | Auto::Server | Auto::First => Way::Secondary,
    };
    let ways: Vec<Way> = hosts.deeds.iter().map(|deeds| deeds.way(rules.ratio).unwrap_or(unknown)).collect();
    let mut cache = Cache::new();
    for sender in senders {
        cache.push(match sender {
            SKIP => Way::Skip,
            NOT_IP => rules.nonip(),
            host => ways.get(host as usize).copied().unwrap_or(unknown),
        });
    }
    Ok(cache)
}

impl Deeds {
    fn count(&mut self, role: Role, times: u64) {
        match role {
            Role::Client => self.client += times,
            Role::Server => self.server += times,
        }
    }

    /// Where what the host sends goes; `None` if it did nothing that gives it away.
    fn way(&self, ratio: f64) -> Option<Way> {
        if self.client == 0 && self.server == 0 {
            return None;
        }
        Some(if self.server as f64 >= self.client as f64 * ratio { Way::Secondary } else { Way::Primary })
    }
}

/// What hosts did, by a number for each.
#[derive(Debug, Default)]
struct Hosts {
    v4: HashMap<u32, u32, FlowHasher>,
    v6: HashMap<u128, u32, FlowHasher>,
    deeds: Vec<Deeds>,
    /// All IPv6 addresses are one.
    one_v6: bool,
}

impl Hosts {
    /// The host's number, and whether it is new.
    #[inline]
    fn number(&mut self, address: IpAddr) -> (u32, bool) {
        fn look<K: Hash + Eq>(table: &mut HashMap<K, u32, FlowHasher>, key: K, next: u32) -> (u32, bool) {
            let number = *table.entry(key).or_insert(next);
            (number, number == next)
        }
        let next = self.deeds.len() as u32;
        let (number, new) = match address {
            IpAddr::V4(address) => look(&mut self.v4, address.to_bits(), next),
            IpAddr::V6(_) if self.one_v6 => look(&mut self.v6, 0, next),
            IpAddr::V6(address) => look(&mut self.v6, address.to_bits(), next),
        };
        if new {
            self.deeds.push(Deeds::default());
        }
        (number, new)
    }

    /// A packet from this host, which says this about it.
    #[inline]
    fn seen(&mut self, address: IpAddr, role: Option<Role>) -> u32 {
        let (number, _) = self.number(address);
        if let (Some(role), Some(deeds)) = (role, self.deeds.get_mut(number as usize)) {
            deeds.count(role, 1);
        }
        number
    }

    /// A packet from or to this host: the first one decides.
    fn seen_first(&mut self, address: IpAddr, role: Role) -> u32 {
        let (number, new) = self.number(address);
        if new && let Some(deeds) = self.deeds.get_mut(number as usize) {
            // Enough to outweigh any ratio but zero, which makes all hosts servers: tcpprep's figure.
            deeds.count(role, 1000);
        }
        number
    }
}

const FTP_DATA: u16 = 20;
const DNS: u16 = 53;
const SYN: u8 = 0x02;
const SYN_ACK: u8 = 0x12;

/// What a packet says about who sent it. A header that is cut short says nothing (tcpprep ends there).
#[inline]
fn role(packet: &Packet) -> Option<Role> {
    let transport = packet.transport?;
    let bytes = transport.bytes;
    match transport.protocol {
        protocol::TCP => {
            let header = bytes.first_chunk::<20>()?;
            // In active FTP the server opens the data connection.
            if u16::from_be_bytes([header[0], header[1]]) == FTP_DATA {
                return None;
            }
            // Exactly these flags: with ECN's (RFC 3168) it says nothing, as tcpprep has it.
            match header[13] {
                SYN => Some(Role::Client),
                SYN_ACK => Some(Role::Server),
                _ => None,
            }
        }
        protocol::UDP => {
            let header = bytes.first_chunk::<8>()?;
            let [from, to] = [[header[0], header[1]], [header[2], header[3]]].map(u16::from_be_bytes);
            if from != DNS && to != DNS {
                return None;
            }
            // tcpprep means to look at the bit that tells responses from queries, but looks four bytes into the
            // message, at the number of questions. So what goes to port 53 is a client's and what comes from there a
            // server's, unless that number is absurd; the same is done here, to come to the same cache.
            let questions = [*bytes.get(12)?, *bytes.get(13)?];
            bytes.get(19)?;
            let server = if to == DNS { questions[1] & 0x80 != 0 } else { questions != [0, 0x80] };
            Some(if server { Role::Server } else { Role::Client })
        }
        // Port unreachable comes from where somebody looked for a service.
        protocol::ICMP if packet.source.is_ipv4() => (bytes.get(..4)?[..2] == [3, 3]).then_some(Role::Server),
        _ => None,
    }
}
