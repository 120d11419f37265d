//! What a plan's maps found in a capture: how often each entry held something, and which hosts became one.
//!
//! For who edits a file and wants to be told. Senders edit without it: it remembers addresses.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wire::LinkType;
use wire::numbers::ethertype::{ARP, IPV4, IPV6};
use wire::numbers::protocol::{SCTP, TCP, UDP};

use super::bytes::{be16, be32, be128};
use super::ip::{self, Packet};
use super::link;
use super::plan::{AddressMap, Plan, Side};

/// Addresses that are remembered, at most: of a capture with more it is not known which became one.
const MOST_REMEMBERED: usize = 200_000;

/// Places of addresses that were seen just before.
const RECENT: usize = 4096;

/// What was found. It grows with the addresses of a capture, to a bound.
#[derive(Debug, Clone, Default)]
pub struct Uses {
    /// Of each entry of `Plan::map_source`, how many addresses it held.
    pub source: Vec<u64>,
    /// The same of `Plan::map_destination`.
    pub destination: Vec<u64>,
    /// The same of `Plan::map_client`.
    pub client: Vec<u64>,
    /// The same of `Plan::map_server`.
    pub server: Vec<u64>,
    /// How often each port stood there; empty, or an entry for each port.
    ports: Vec<u64>,
    /// What each address became.
    became: HashMap<IpAddr, IpAddr>,
    /// Some of those, each at its place: most frames are of hosts that were seen just before, and looking them up in the map would take
    /// as long as the edit does.
    recent: Vec<Option<IpAddr>>,
    /// There were more addresses than are remembered.
    more: bool,
}

/// The addresses and ports of a frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ends {
    source: IpAddr,
    destination: IpAddr,
    ports: Option<[u16; 2]>,
    /// It is of ARP, whose addresses are mapped by sides only.
    arp: bool,
    /// It is an ARP request, whose sender counts for the far side.
    request: bool,
}

impl Ends {
    pub(super) fn of(link: LinkType, frame: &[u8]) -> Option<Ends> {
        let link = link::decode(link, frame)?;
        let bytes = frame.get(link.header..)?;
        let v4 = |at| Some(IpAddr::V4(Ipv4Addr::from(be32(bytes, at)?)));
        let v6 = |at| Some(IpAddr::V6(Ipv6Addr::from(be128(bytes, at)?)));
        match link.protocol {
            IPV4 => {
                let packet = Packet::v4(bytes)?;
                Some(Ends {
                    source: v4(12)?,
                    destination: v4(16)?,
                    ports: ports(bytes, &packet),
                    arp: false,
                    request: false,
                })
            }
            IPV6 => {
                let packet = Packet::v6(bytes)?;
                Some(Ends {
                    source: v6(8)?,
                    destination: v6(24)?,
                    ports: ports(bytes, &packet),
                    arp: false,
                    request: false,
                })
            }
            ARP => {
                let [sender, target] = ip::arp_addresses(bytes)?;
                let request = be16(bytes, 6) == Some(1);
                Some(Ends { source: v4(sender)?, destination: v4(target)?, ports: None, arp: true, request })
            }
            _ => None,
        }
    }
}

fn ports(bytes: &[u8], packet: &Packet) -> Option<[u16; 2]> {
    let has = matches!(packet.upper, Some(TCP | UDP | SCTP));
    let upper = bytes.get(packet.header..).filter(|_| has)?;
    Some([be16(upper, 0)?, be16(upper, 2)?])
}

impl Uses {
    /// A frame: how it was, and how it is now, which is looked at only if its addresses are new.
    pub(super) fn count(
        &mut self,
        plan: &Plan,
        side: Side,
        before: Ends,
        after: impl FnOnce() -> Option<Ends>,
    ) {
        // As `ip::addresses` and `ip::arp` have it.
        let near = if (side == Side::Client) != before.request { Side::Client } else { Side::Server };
        let (source, destination) = match near {
            Side::Client => ((&plan.map_client, &mut self.client), (&plan.map_server, &mut self.server)),
            Side::Server => ((&plan.map_server, &mut self.server), (&plan.map_client, &mut self.client)),
        };
        held(source.0, source.1, before.source, plan);
        held(destination.0, destination.1, before.destination, plan);
        if !before.arp {
            held(&plan.map_source, &mut self.source, before.source, plan);
            held(&plan.map_destination, &mut self.destination, before.destination, plan);
        }
        if !plan.ports.is_empty() {
            self.ports.resize(1 << 16, 0);
            for port in before.ports.into_iter().flatten() {
                if let Some(count) = self.ports.get_mut(usize::from(port)) {
                    *count += 1;
                }
            }
        }
        let known = self.is_recent(before.source) & self.is_recent(before.destination);
        let Some(after) = (!known).then(after).flatten() else { return };
        for (old, new) in [(before.source, after.source), (before.destination, after.destination)] {
            if self.became.len() < MOST_REMEMBERED || self.became.contains_key(&old) {
                self.became.insert(old, new);
            } else {
                self.more = true;
            }
        }
    }

    /// Whether an address was seen just before. From now on it was.
    fn is_recent(&mut self, address: IpAddr) -> bool {
        self.recent.resize(RECENT, None);
        let bits = match address {
            IpAddr::V4(address) => address.to_bits(),
            IpAddr::V6(address) => address.to_bits() as u32 ^ (address.to_bits() >> 64) as u32,
        };
        let place = (bits ^ bits >> 12 ^ bits >> 24) as usize % RECENT;
        self.recent.get_mut(place).is_some_and(|known| known.replace(address) == Some(address))
    }

    /// How many of these ports there were.
    pub fn ports(&self, wanted: impl Fn(u16) -> bool) -> u64 {
        (0..=u16::MAX).zip(&self.ports).filter(|(port, _)| wanted(*port)).map(|(_, count)| count).sum()
    }

    /// Addresses that others became, too, with those that became them; `None` if there were too many to know.
    pub fn merged(&self) -> Option<Vec<(IpAddr, Vec<IpAddr>)>> {
        if self.more {
            return None;
        }
        let mut seen = HashSet::new();
        let shared: BTreeSet<IpAddr> =
            self.became.values().copied().filter(|new| !seen.insert(*new)).collect();
        Some(
            shared
                .into_iter()
                .map(|new| {
                    let mut old: Vec<IpAddr> =
                        self.became.iter().filter(|(_, to)| **to == new).map(|(old, _)| *old).collect();
                    old.sort_unstable();
                    (new, old)
                })
                .collect(),
        )
    }
}

/// Counts an address for the first entry that holds it.
fn held(map: &AddressMap, counts: &mut Vec<u64>, address: IpAddr, plan: &Plan) {
    counts.resize(map.len(), 0);
    if plan.skip_broadcast && address.is_multicast() {
        return;
    }
    if let Some(count) = map.first_that_holds(address).and_then(|entry| counts.get_mut(entry)) {
        *count += 1;
    }
}
