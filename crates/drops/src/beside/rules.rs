//! Rules of nftables that drop frames, and what their counters say, read over netlink. Nothing is changed: no rule, no trace.
//!
//! A rule is read as far as it matters here: does it end in a drop, and where does its counter stand? One behind all conditions counts
//! what the rule dropped; one in front of a condition counts what came to it, which is at least as much. `linux/netfilter/nf_tables.h` has the
//! numbers; those in messages are in network byte order.

use port::netlink::{Attributes, DUMP, Message, NetlinkError, Socket, text};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};

const NFTABLES: u16 = 10;
const GET_TABLE: u16 = 1;
const GET_CHAIN: u16 = 4;
const GET_RULE: u16 = 7;
const GET_ELEMENTS: u16 = 13;
const GET_GENERATION: u16 = 16;
const GET_OBJECT: u16 = 19;
/// struct nfgenmsg: family, version, resource.
const HEADER: usize = 4;
const OBJECT_COUNTER: u32 = 1;
const VERDICT_REGISTER: u32 = 0;
const DROP: u32 = 0;
/// A ruleset that changes while it is read is read again, so often at most.
const TRIES: usize = 5;
/// Verdict maps that are looked through; of further ones it is not known whether they drop.
const MAPS: usize = 64;

/// Where a rule stands: what tells it apart from all others of a network namespace, for good.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// `NFPROTO_*`: 1 of inet.
    pub family: u8,
    /// Its table.
    pub table: String,
    /// Numbers are not given twice, so that a table that was made anew is another one. 0: this kernel gives none.
    table_handle: u64,
    /// Its chain.
    pub chain: String,
    /// Its handle; `None`: it is the chain's policy.
    pub handle: Option<u64>,
}

/// A rule, or a chain's policy, that drops.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Dropping {
    counter: Option<Counter>,
    /// Interfaces that the chain hangs at; empty: at all.
    devices: Vec<String>,
}

/// What a counter said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counter {
    packets: u64,
    /// It counts what was dropped there and nothing else.
    exact: bool,
}

/// The rules of a network namespace that drop.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ruleset {
    dropping: BTreeMap<Place, Dropping>,
}

/// A rule that can have dropped frames meanwhile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspect {
    /// Where it stands.
    pub place: Place,
    /// By so much its counter rose; `None`: it has none, or it was not to be compared.
    pub rise: Option<u64>,
    /// The rise is what it dropped; else it is the most that it can have dropped.
    pub exact: bool,
    /// Interfaces that its chain hangs at; empty: at all.
    pub devices: Vec<String>,
    /// It was removed meanwhile.
    pub is_gone: bool,
}

impl Place {
    /// One for the tests of those who judge by it.
    pub fn told(family: u8, table: &str, chain: &str, handle: Option<u64>) -> Place {
        Place { family, table: table.to_owned(), table_handle: 0, chain: chain.to_owned(), handle }
    }

    /// `inet`, as nft has it.
    pub fn family_name(&self) -> &'static str {
        match self.family {
            1 => "inet",
            2 => "ip",
            3 => "arp",
            5 => "netdev",
            7 => "bridge",
            10 => "ip6",
            _ => "unknown",
        }
    }

    /// Whether rules there see frames of this EtherType; 0: it is not known.
    pub fn sees(&self, ethertype: u16) -> bool {
        match (self.family, ethertype) {
            (_, 0) => true,
            (2, of) => of == 0x0800,
            (3, of) => of == 0x0806,
            (10, of) => of == 0x86dd,
            (1, of) => of == 0x0800 || of == 0x86dd,
            _ => true,
        }
    }
}

impl Ruleset {
    /// Reads those that there are now, by a socket that was opened in their namespace.
    ///
    /// # Errors
    /// This needs CAP_NET_ADMIN. A kernel without nftables has no rules.
    pub fn read(socket: &mut Socket) -> Result<Ruleset, NetlinkError> {
        let mut last = Err(NetlinkError::Refused(Errno::AGAIN));
        for _ in 0..TRIES {
            let before = generation(socket)?;
            last = Ruleset::once(socket);
            if last.is_ok() && generation(socket)? == before {
                break;
            }
        }
        last
    }

    fn once(socket: &mut Socket) -> Result<Ruleset, NetlinkError> {
        let tables = tables(&dump(socket, GET_TABLE)?);
        let chains = dump(socket, GET_CHAIN)?;
        let rules = dump(socket, GET_RULE)?;
        let mut found = Ruleset::default();
        let mut devices = BTreeMap::new();
        for chain in &chains {
            found.add_chain(chain, &tables, &mut devices);
        }
        let (mut objects, mut maps) = (None, BTreeMap::new());
        for rule in &rules {
            let Some((place, Ends { counter, map })) = ends(rule, &tables) else { continue };
            if let Some(map) = map {
                let key = (place.family, place.table.clone(), map);
                if maps.len() < MAPS && !maps.contains_key(&key) {
                    let drops = map_drops(socket, &key);
                    maps.insert(key.clone(), drops);
                }
                if maps.get(&key) == Some(&false) {
                    continue;
                }
            }
            let counter = match counter {
                None => None,
                Some(Tally::Own(counter)) => Some(counter),
                Some(Tally::Named { name, exact }) => {
                    let all = match &mut objects {
                        Some(all) => all,
                        none => none.insert(counters(&dump(socket, GET_OBJECT)?)),
                    };
                    let named = all.get(&(place.family, place.table.clone(), name));
                    // What several rules count together is the most that each of them can have dropped.
                    named.map(|&(packets, users)| Counter { packets, exact: exact && users <= 1 })
                }
            };
            let key = (place.family, place.table.clone(), place.chain.clone());
            let devices = devices.get(&key).cloned().unwrap_or_default();
            found.dropping.insert(place, Dropping { counter, devices });
        }
        Ok(found)
    }

    /// A base chain can drop by its policy.
    fn add_chain(
        &mut self,
        chain: &[u8],
        tables: &BTreeMap<(u8, String), u64>,
        devices: &mut BTreeMap<(u8, String, String), Vec<String>>,
    ) {
        let attributes = Attributes::after(chain, HEADER);
        let (Some(&family), Some(table), Some(name)) = (chain.first(), attributes.str(1), attributes.str(3))
        else {
            return;
        };
        let hook = attributes.nested(4);
        let several = hook.nested(4).map(|(_, name)| text(name));
        let at: Vec<String> = several.chain(hook.get(3).map(text)).collect();
        if !at.is_empty() {
            devices.insert((family, table.clone(), name.clone()), at.clone());
        }
        if attributes.get(4).is_some() && attributes.be_u32(5) == Some(DROP) {
            let packets = attributes.nested(8).be_u64(2);
            let counter = packets.map(|packets| Counter { packets, exact: true });
            let table_handle = tables.get(&(family, table.clone())).copied().unwrap_or(0);
            let place = Place { family, table, table_handle, chain: name, handle: None };
            self.dropping.insert(place, Dropping { counter, devices: at });
        }
    }

    /// Which of them can have dropped anything since `earlier`: all but those of which a counter says that nothing came to them.
    pub fn since(&self, earlier: &Ruleset) -> Vec<Suspect> {
        let mut found = Vec::new();
        for (place, now) in &self.dropping {
            let then = earlier.dropping.get(place);
            let (rise, exact) = match (now.counter, then) {
                (None, _) => (None, false),
                // It may have been made with a count.
                (Some(now), None) => (Some(now.packets), false),
                (Some(now), Some(Dropping { counter: Some(then), .. })) => {
                    (now.packets.checked_sub(then.packets), now.exact && then.exact)
                }
                (Some(_), Some(Dropping { counter: None, .. })) => (None, false),
            };
            if rise == Some(0) {
                continue;
            }
            let (place, devices) = (place.clone(), now.devices.clone());
            found.push(Suspect { place, rise, exact: exact && rise.is_some(), devices, is_gone: false });
        }
        for (place, then) in earlier.dropping.iter().filter(|(place, _)| !self.dropping.contains_key(place)) {
            let (place, devices) = (place.clone(), then.devices.clone());
            found.push(Suspect { place, rise: None, exact: false, devices, is_gone: true });
        }
        found
    }
}

/// How a rule ends that drops.
#[derive(Debug, PartialEq, Eq)]
struct Ends {
    counter: Option<Tally>,
    /// A map decides.
    map: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
enum Tally {
    Own(Counter),
    Named { name: String, exact: bool },
}

impl Tally {
    /// A condition follows it.
    fn blur(&mut self) {
        match self {
            Tally::Own(Counter { exact, .. }) | Tally::Named { exact, .. } => *exact = false,
        }
    }
}

/// A rule that drops, or can; `None`: it does something else.
fn ends(rule: &[u8], tables: &BTreeMap<(u8, String), u64>) -> Option<(Place, Ends)> {
    let attributes = Attributes::after(rule, HEADER);
    let (family, table) = (*rule.first()?, attributes.str(1)?);
    let table_handle = tables.get(&(family, table.clone())).copied().unwrap_or(0);
    let handle = Some(attributes.be_u64(3)?);
    let place = Place { family, table, table_handle, chain: attributes.str(2)?, handle };
    let mut counter: Option<Tally> = None;
    let blur = |counter: &mut Option<Tally>| counter.iter_mut().for_each(Tally::blur);
    for (_, expression) in attributes.nested(4) {
        let expression = Attributes(expression);
        let (name, data) = (expression.str(1)?, expression.nested(2));
        match name.as_str() {
            "counter" => {
                counter = data.be_u64(2).map(|packets| Tally::Own(Counter { packets, exact: true }));
            }
            "objref" if data.be_u32(1) == Some(OBJECT_COUNTER) => {
                counter = data.str(2).map(|name| Tally::Named { name, exact: true });
            }
            "log" | "last" | "notrack" => {}
            "immediate" if data.be_u32(1) == Some(VERDICT_REGISTER) => {
                let code = data.nested(2).nested(2).be_u32(1)?;
                return (code == DROP).then_some((place, Ends { counter, map: None }));
            }
            "immediate" => {}
            "reject" => return Some((place, Ends { counter, map: None })),
            // Of iptables-nft.
            "target" if data.str(1).as_deref() == Some("REJECT") => {
                return Some((place, Ends { counter, map: None }));
            }
            "target" => {}
            "lookup" if data.be_u32(3) == Some(VERDICT_REGISTER) => {
                blur(&mut counter);
                return Some((place, Ends { counter, map: data.str(1) }));
            }
            "synproxy" => {
                blur(&mut counter);
                return Some((place, Ends { counter, map: None }));
            }
            _ => blur(&mut counter),
        }
    }
    None
}

/// Whether a verdict map has an element that drops. What cannot be read may.
fn map_drops(socket: &mut Socket, (family, table, name): &(u8, String, String)) -> bool {
    let ask = ask(GET_ELEMENTS, DUMP, *family).attr_str(1, table).attr_str(2, name);
    let Ok(answers) = socket.request(ask) else { return true };
    answers.iter().any(|answer| {
        Attributes::after(answer, HEADER).nested(3).any(|(_, element)| {
            let verdict = Attributes(element).nested(2).nested(2).be_u32(1);
            verdict == Some(DROP)
        })
    })
}

fn ask(what: u16, flags: u16, family: u8) -> Message {
    Message::new(NFTABLES << 8 | what, flags).fixed(&[family, 0, 0, 0])
}

/// Everything of a kind; a kernel without nftables has nothing.
fn dump(socket: &mut Socket, what: u16) -> Result<Vec<Vec<u8>>, NetlinkError> {
    match socket.request(ask(what, DUMP, 0)) {
        Err(NetlinkError::Refused(Errno::INVAL | Errno::OPNOTSUPP)) => Ok(Vec::new()),
        other => other,
    }
}

/// The number of the ruleset, which rises with each change.
fn generation(socket: &mut Socket) -> Result<Option<u32>, NetlinkError> {
    let ask = ask(GET_GENERATION, port::netlink::REQUEST, 0);
    match socket.request(ask) {
        Err(NetlinkError::Refused(Errno::INVAL | Errno::OPNOTSUPP)) => Ok(None),
        other => Ok(other?.first().and_then(|answer| Attributes::after(answer, HEADER).be_u32(1))),
    }
}

fn tables(answers: &[Vec<u8>]) -> BTreeMap<(u8, String), u64> {
    let handle = |table: &Vec<u8>| {
        let attributes = Attributes::after(table, HEADER);
        let handle = attributes.be_u64(4).unwrap_or(0);
        Some(((*table.first()?, attributes.str(1)?), handle))
    };
    answers.iter().filter_map(handle).collect()
}

/// Counters that have names: packets, and how many rules use each.
fn counters(answers: &[Vec<u8>]) -> BTreeMap<(u8, String, String), (u64, u32)> {
    let one = |object: &Vec<u8>| {
        let attributes = Attributes::after(object, HEADER);
        let is_counter = attributes.be_u32(3) == Some(OBJECT_COUNTER);
        let packets = attributes.nested(4).be_u64(2).filter(|_| is_counter)?;
        let users = attributes.be_u32(5).unwrap_or(u32::MAX);
        Some(((*object.first()?, attributes.str(1)?, attributes.str(2)?), (packets, users)))
    };
    answers.iter().filter_map(one).collect()
}

/// The words of rules by family, table and handle, out of what `nft --handle list ruleset` prints.
pub fn words(listed: &str) -> BTreeMap<(String, String, u64), String> {
    let mut found = BTreeMap::new();
    let mut table: Option<(String, String)> = None;
    for line in listed.lines() {
        let Some((said, handle)) = line.rsplit_once(" # handle ") else { continue };
        let (said, Ok(handle)) = (said.trim(), handle.trim().parse::<u64>()) else { continue };
        let is_head = said.ends_with('{');
        let mut words = said.split_whitespace();
        match (is_head && !line.starts_with(char::is_whitespace), words.next()) {
            (true, Some("table")) => {
                table = words.next().map(str::to_owned).zip(words.next().map(str::to_owned))
            }
            _ if is_head => {}
            _ => {
                if let Some((family, name)) = &table {
                    found.insert((family.clone(), name.clone(), handle), said.to_owned());
                }
            }
        }
    }
    found
}

/// Tables of legacy iptables that are in use in the calling thread's namespace: "ip filter".
pub fn legacy() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for family in ["ip", "ip6", "arp"] {
        let names = std::fs::read_to_string(format!("/proc/thread-self/net/{family}_tables_names"));
        found.extend(names.unwrap_or_default().lines().map(|name| format!("{family} {name}")));
    }
    found
}
