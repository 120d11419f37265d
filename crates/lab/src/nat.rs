//! The device as a NAT: a router that gives what leaves for the receiver an address and a port of its own (Linux's masquerade), with a
//! limit of connections where one is asked for. The rules are those of nftables, over netlink:
//!
//! ```text
//!   table ip lab
//!     forward:      ct state invalid counter drop
//!                   ct state new limit rate over N/second counter drop      (if a rate is given)
//!                   ct state new ct count over N counter drop               (if a number is given)
//!     postrouting:  oifname dut1 counter masquerade                         (sees the first packet of a connection)
//! ```
//!
//! What they count, and what the kernel's connection tracking does, is read back by [`tracked`]: it is the device's own word, beside a
//! tester's.

use port::netlink::{Attributes, DUMP, Message, NetlinkError, REQUEST, Socket};

use crate::device::DEVICE_FAR;
use crate::nft::{
    BATCH_BEGIN, BATCH_END, GET_RULE, HEADER, NEW_CHAIN, NEW_RULE, NEW_TABLE, NFTABLES, counted, drop_it,
    expression, expressions, header, number, tally,
};
use crate::{Host, LabError, Namespace};

/// What a NAT takes, of all protocols together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// The most connections at once. Those that are closed no longer count.
    pub connections: Option<u32>,
    /// The most new connections a second: a token bucket that holds what comes in 20 ms.
    pub per_second: Option<u32>,
}

/// What a NAT says of itself. Counts are since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tracked {
    /// Entries in its table now, with those of closed connections that it keeps, and those that are out of date and not collected yet.
    pub entries: u64,
    /// Connections that were given an address and a port.
    pub translated: u64,
    /// Packets that would have begun one connection more than it holds.
    pub over_connections: u64,
    /// Packets that would have begun more connections a second than it takes.
    pub over_rate: u64,
    /// Packets that belong to no connection and begin none.
    pub invalid: u64,
    /// Connections that found no free place, as where no port is left.
    pub insert_failed: u64,
    /// Packets dropped because the table was full, or there was no memory.
    pub dropped: u64,
    /// Entries that a full table gave up for new ones.
    pub early_dropped: u64,
    /// Rules of it that these counts are of.
    pub rules: u64,
}

const TABLE: &str = "lab";
const FORWARD: &str = "forward";
const POSTROUTING: &str = "postrouting";
const FAMILY_IPV4: u8 = 2;
const HOOK_FORWARD: u32 = 2;
const HOOK_POSTROUTING: u32 = 4;
/// After everything else that filters, and where sources are translated (`linux/netfilter_ipv4.h`).
const LATE: u32 = 10;
const TRANSLATES_SOURCES: u32 = 100;

const REGISTER: u32 = 1;
const CT_STATE: u32 = 0;
/// `NF_CT_STATE_INVALID_BIT` and that of `IP_CT_NEW`; the register has them in the machine's byte order.
const INVALID: u32 = 1;
const NEW: u32 = 8;
const META_OIFNAME: u32 = 7;
const EQUAL: u32 = 0;
const INVERTED: u32 = 1;
const ONE_SECOND: u64 = 1;
/// A limit saves up what comes in a fiftieth of a second.
const SAVES: u32 = 50;
const IFNAMSIZ: usize = 16;

/// Connection tracking in `linux/netfilter/nfnetlink_conntrack.h`.
const CONNTRACK: u16 = 1;
const DELETE: u16 = 2;
const STATS_OF_CPUS: u16 = 4;
const STATS: u16 = 5;

/// A rule that begins by looking at the state of a packet's connection.
fn of_state(list: Message, state: u32) -> Message {
    let looked = expression(list, "ct", |data| number(number(data, 1, REGISTER), 2, CT_STATE));
    expression(looked, "cmp", |data| {
        number(number(data, 1, REGISTER), 2, EQUAL).nest(3, |value| value.attr(1, &state.to_ne_bytes()))
    })
}

fn leaves_by(list: Message, interface: &str) -> Message {
    let mut name = [0; IFNAMSIZ];
    name.iter_mut().zip(interface.bytes()).for_each(|(at, byte)| *at = byte);
    let looked = expression(list, "meta", |data| number(number(data, 1, REGISTER), 2, META_OIFNAME));
    expression(looked, "cmp", |data| {
        number(number(data, 1, REGISTER), 2, EQUAL).nest(3, |value| value.attr(1, &name))
    })
}

/// Makes the router of `port` translate what leaves for the receiver, within these limits.
pub(crate) fn translate(port: &Host, limits: Limits) -> Result<(), LabError> {
    let plain = libc::NLM_F_REQUEST as u16;
    let create = plain | libc::NLM_F_CREATE as u16;
    let append = create | libc::NLM_F_APPEND as u16;
    let end = |kind| Message::new(kind, plain).fixed(&header(0, NFTABLES));
    let new = |what: u16, flags| {
        Message::new(NFTABLES << 8 | what, flags).fixed(&header(FAMILY_IPV4, 0)).attr_str(1, TABLE)
    };
    let chain = |name, kind, hook, priority| {
        new(NEW_CHAIN, create)
            .attr_str(3, name)
            .nest(4, |at| number(number(at, 1, hook), 2, priority))
            .attr_str(7, kind)
    };
    let rule = |chain, flags, fill: &dyn Fn(Message) -> Message| {
        new(NEW_RULE, append | flags).attr_str(2, chain).nest(4, fill)
    };
    let mut messages = vec![
        end(BATCH_BEGIN),
        new(NEW_TABLE, create),
        chain(FORWARD, "filter", HOOK_FORWARD, LATE),
        chain(POSTROUTING, "nat", HOOK_POSTROUTING, TRANSLATES_SOURCES),
        rule(FORWARD, 0, &|list| drop_it(tally(of_state(list, INVALID)))),
    ];
    if let Some(rate) = limits.per_second {
        messages.push(rule(FORWARD, 0, &|list| {
            drop_it(tally(expression(of_state(list, NEW), "limit", |data| {
                let data = data.attr(1, &u64::from(rate).to_be_bytes()).attr(2, &ONE_SECOND.to_be_bytes());
                number(number(data, 3, saved(rate)), 5, INVERTED)
            })))
        }));
    }
    if let Some(most) = limits.connections {
        messages.push(rule(FORWARD, 0, &|list| {
            drop_it(tally(expression(of_state(list, NEW), "connlimit", |data| {
                number(number(data, 1, most), 2, INVERTED)
            })))
        }));
    }
    let last = rule(POSTROUTING, REQUEST, &|list| {
        expression(tally(leaves_by(list, DEVICE_FAR)), "masq", |data| data)
    });
    let failed = |source| LabError::Netlink {
        doing: "make the device translate addresses (nftables)".to_owned(),
        source,
    };
    let mut socket = port.namespace.run_in(Socket::netfilter)?.map_err(failed)?;
    socket.batch(messages, last, end(BATCH_END)).map_err(failed)
}

/// Connections that a limit of so many a second lets through at once.
fn saved(rate: u32) -> u32 {
    (rate / SAVES).max(1)
}

/// What the NAT in this namespace says of itself; `None`: there is none.
///
/// # Errors
/// That the kernel does not answer.
pub fn tracked(namespace: &Namespace) -> Result<Option<Tracked>, LabError> {
    let failed = |source| LabError::Netlink { doing: "read what the device counts".to_owned(), source };
    let mut socket = namespace.run_in(Socket::netfilter)?.map_err(failed)?;
    let ask = |subsystem: u16, what: u16, flags, family| {
        Message::new(subsystem << 8 | what, flags).fixed(&header(family, 0))
    };
    let rules = socket.request(ask(NFTABLES, GET_RULE, DUMP, FAMILY_IPV4)).map_err(failed)?;
    let mut told = Tracked::default();
    let translating = rules.iter().filter(|rule| told.add_rule(Attributes::after(rule, HEADER))).count();
    if translating == 0 {
        return Ok(None);
    }
    let all = socket.request(ask(CONNTRACK, STATS, REQUEST, 0)).map_err(failed)?;
    let entries = all.iter().find_map(|answer| Attributes::after(answer, HEADER).be_u32(1));
    let silent = || failed(NetlinkError::Malformed("it has no number of entries"));
    told.entries = entries.ok_or_else(silent)?.into();
    for cpu in socket.request(ask(CONNTRACK, STATS_OF_CPUS, DUMP, 0)).map_err(failed)? {
        let counts = Attributes::after(&cpu, HEADER);
        for (kind, sum) in
            [(9, &mut told.insert_failed), (10, &mut told.dropped), (11, &mut told.early_dropped)]
        {
            *sum += u64::from(counts.be_u32(kind).unwrap_or(0));
        }
    }
    Ok(Some(told))
}

/// Empties its table.
///
/// # Errors
/// That the kernel does not.
pub fn forget(namespace: &Namespace) -> Result<(), LabError> {
    let failed =
        |source: NetlinkError| LabError::Netlink { doing: "empty the device's table".to_owned(), source };
    let mut socket = namespace.run_in(Socket::netfilter)?.map_err(failed)?;
    let ask = Message::new(CONNTRACK << 8 | DELETE, REQUEST).fixed(&header(0, 0));
    socket.request(ask).map(|_| ()).map_err(failed)
}

impl Tracked {
    /// Adds what a rule of this table has counted. True: it is the one that translates.
    fn add_rule(&mut self, rule: Attributes<'_>) -> bool {
        if rule.str(1).as_deref() != Some(TABLE) {
            return false;
        }
        let has = |name: &str| expressions(rule).any(|(found, _)| found == name);
        let translates = has("masq");
        let count = match () {
            () if translates => &mut self.translated,
            () if has("connlimit") => &mut self.over_connections,
            () if has("limit") => &mut self.over_rate,
            () => &mut self.invalid,
        };
        *count += counted(rule).unwrap_or(0);
        self.rules += 1;
        translates
    }

    /// What was counted since `before`; entries are those of now. `None`: rules were removed or made anew, and what they had counted is
    /// gone with them.
    pub fn since(&self, before: &Tracked) -> Option<Tracked> {
        let rise = |of: fn(&Tracked) -> u64| of(self).checked_sub(of(before));
        rise(|told| told.rules)?;
        Some(Tracked {
            entries: self.entries,
            translated: rise(|told| told.translated)?,
            over_connections: rise(|told| told.over_connections)?,
            over_rate: rise(|told| told.over_rate)?,
            invalid: rise(|told| told.invalid)?,
            insert_failed: rise(|told| told.insert_failed)?,
            dropped: rise(|told| told.dropped)?,
            early_dropped: rise(|told| told.early_dropped)?,
            rules: self.rules,
        })
    }
}
