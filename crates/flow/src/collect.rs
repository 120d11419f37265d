//! Reads messages: NetFlow v5 and v9, IPFIX, sFlow v5.
//!
//! A [`Session`] is what is known of one exporter (address and port): templates, numbers that are expected, sampling, of each
//! of its domains. Everything read is taken for hostile: what a message can make grow is bounded, and nothing panics.

use crate::element::{self, Kind, Number};
use crate::packet::{self, Choice, Walk};
use crate::record::{Format, Other, OtherWay, Record, unsigned};
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

mod asides;
#[cfg(test)]
mod cases;
mod elements;
mod room;
mod samplers;
mod sequence;
mod sflow;
#[cfg(test)]
mod tests;
mod times;
mod totals;
mod waiting;

pub use asides::Asides;
pub use room::{MOST_EXPORTERS, Room};

use elements::{Beside, other_place, place};
use room::Lent;
use samplers::{Known, Note};
use sequence::{Holds, MOST_MESSAGE, NEVER, Sequence, Stamp, Tally, Verdict};
use times::Uptime;
use totals::{Totals, When};
use waiting::{MOST_WAITING, Set, Waiting};

/// Templates of a domain; an exporter has some.
const MOST_TEMPLATES: usize = 2048;
/// Fields of a template. IANA knows some 500 elements.
const MOST_FIELDS: usize = 1024;
/// Domains of an exporter.
const MOST_DOMAINS: usize = 1024;
/// A template that was neither sent again nor used for so long is forgotten: four times what exporters leave between two (30 minutes).
const TEMPLATE_S: u32 = 7_200;
/// So is a domain that says nothing.
const DOMAIN_S: u32 = 7_200;
/// What a domain takes at first, about.
const DOMAIN: usize = 2 * size_of::<Domain>() + Sequence::BYTES;

/// What was read of an exporter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Records of flows.
    pub records: u64,
    /// Of these, ones of both directions that are handed on as two.
    pub two_way_records: u64,
    /// Records of options.
    pub options: u64,
    /// Templates, each as often as it came.
    pub templates: u64,
    /// Messages that could not be read to their end.
    pub malformed: u64,
    /// Sets without a template: they wait for it, within bounds,
    pub waiting_sets: u64,
    /// and of those, sets that were given up.
    pub lost_sets: u64,
    /// By the exporters' numbers, what did not arrive: flows (v5), records (IPFIX),
    pub missing_records: u64,
    /// or messages (v9, sFlow).
    pub missing_messages: u64,
    /// Records (IPFIX) that did not arrive, or arrived in sets that could not be read: which of the two nobody knows.
    pub uncounted_records: u64,
    /// Messages that came behind later ones; what they hold is not missing.
    pub late_messages: u64,
    /// Messages whose numbers had come already,
    pub duplicate_messages: u64,
    /// and records of flows in them, which are among `records`.
    pub duplicate_records: u64,
    /// Exporters that began to count anew. What was lost around it is not known.
    pub restarts: u64,
    /// Templates and domains that had no room.
    pub refused: u64,
    /// Records, packets and bytes that the exporters say they did not send (`notSent...TotalCount`), since they were listened to.
    pub unsent: [u64; 3],
    /// Packets that they say they did not meter (`ignoredPacketTotalCount`), since then.
    pub ignored_packets: u64,
    /// What else is to be known of what came.
    pub asides: Asides,
}

impl Counters {
    /// Those of two exporters together.
    pub fn plus(&self, other: &Counters) -> Counters {
        self.with(other, u64::saturating_add)
    }

    /// What came since `earlier`.
    pub fn since(&self, earlier: &Counters) -> Counters {
        self.with(earlier, u64::saturating_sub)
    }

    fn with(&self, other: &Counters, of: impl Fn(u64, u64) -> u64) -> Counters {
        let (a, b) = (self, other);
        Counters {
            messages: of(a.messages, b.messages),
            bytes: of(a.bytes, b.bytes),
            records: of(a.records, b.records),
            two_way_records: of(a.two_way_records, b.two_way_records),
            options: of(a.options, b.options),
            templates: of(a.templates, b.templates),
            malformed: of(a.malformed, b.malformed),
            waiting_sets: of(a.waiting_sets, b.waiting_sets),
            lost_sets: of(a.lost_sets, b.lost_sets),
            missing_records: of(a.missing_records, b.missing_records),
            missing_messages: of(a.missing_messages, b.missing_messages),
            uncounted_records: of(a.uncounted_records, b.uncounted_records),
            late_messages: of(a.late_messages, b.late_messages),
            duplicate_messages: of(a.duplicate_messages, b.duplicate_messages),
            duplicate_records: of(a.duplicate_records, b.duplicate_records),
            restarts: of(a.restarts, b.restarts),
            refused: of(a.refused, b.refused),
            unsent: [0, 1, 2].map(|at: usize| of(a.unsent[at], b.unsent[at])),
            ignored_packets: of(a.ignored_packets, b.ignored_packets),
            asides: a.asides.with(&b.asides, of),
        }
    }
}

impl Counters {
    /// What numbers say now in place of what they said before.
    fn numbers(&mut self, format: Format, before: Tally, now: Tally) {
        let put =
            |sum: &mut u64, before: u64, now: u64| *sum = sum.saturating_add(now).saturating_sub(before);
        let missing = match format {
            Format::V5 | Format::Ipfix => &mut self.missing_records,
            Format::V9 | Format::Sflow => &mut self.missing_messages,
        };
        put(missing, before.missing, now.missing);
        put(&mut self.uncounted_records, before.uncounted, now.uncounted);
        put(&mut self.late_messages, before.late, now.late);
        put(&mut self.duplicate_messages, before.duplicates, now.duplicates);
        put(&mut self.duplicate_records, before.duplicate_records, now.duplicate_records);
        put(&mut self.restarts, before.restarts, now.restarts);
    }
}

/// What is known of an exporter.
#[derive(Debug)]
pub struct Session {
    domains: HashMap<(Format, u32), Domain, foldhash::fast::RandomState>,
    counters: Counters,
    walk: Option<Box<Walk>>,
    /// What it has taken of the room, which it has while it reads a message.
    room: Lent,
    /// Bytes of sets that wait, with what keeping them costs.
    waiting: usize,
    /// The message that is read.
    current: Current,
    /// When that came, and the first one, by [`Session::at`]; 0: nobody says it.
    now_ns: u64,
    began_ns: u64,
    /// Its messages come over a connection: none is lost, none overtakes another.
    connection: bool,
    /// Fields without a place in the record, in the order of the template.
    keeps_others: bool,
    /// What agents of sFlow number and lose.
    sources: sflow::Sources,
}

/// What is known of the message that is read.
#[derive(Debug, Clone, Copy, Default)]
struct Current {
    /// Tells it from others of the session.
    message: u32,
    /// Its own number.
    number: u32,
    /// What tells its content from others'.
    print: u32,
    /// Its domain, and that it had come already.
    followed: Option<((Format, u32), Verdict)>,
    /// Records of flows and of options that were read meanwhile, and came in messages before it.
    waited: [u64; 2],
    /// Some of its sets were given up at once.
    spoiled: bool,
    /// Its sets, and those of reserved numbers among them.
    sets: u64,
    reserved: u64,
    /// Its counts and lengths disagree with what it holds.
    disagrees: bool,
}

#[derive(Debug, Default)]
struct Domain {
    templates: BTreeMap<u16, Kept>,
    sequence: Sequence,
    known: Known,
    waiting: Waiting,
    totals: Totals,
    /// When the message that came last was sent.
    sent: Stamp,
    /// When its latest message came, in seconds.
    heard_s: u32,
}

/// A template, and when it was sent or used last, in seconds.
#[derive(Debug)]
struct Kept {
    template: Template,
    used_s: u32,
}

/// What a message says ahead of its records.
#[derive(Debug, Clone, Copy)]
struct Head {
    format: Format,
    domain: u32,
    exported_ns: u64,
    uptime: Uptime,
}

#[derive(Debug, Clone)]
struct Template {
    fields: Vec<Field>,
    /// Bytes of a record, those of varying fields as one each.
    least: usize,
    varies: bool,
    /// Each field stands at a place of its own, and is a number that eight bytes hold, or taken as bytes.
    is_fixed: bool,
    /// It is fixed, and of records of one direction.
    is_plain: bool,
    /// All of its fields have a place in a record.
    tells_all: bool,
    /// Its records are of both directions (RFC 5103).
    both_ways: bool,
    /// Some of its fields could be meant for the same, or depend on others: see [`elements`].
    is_careful: bool,
    /// Its records are options, and so many of their fields say whose they are.
    is_options: bool,
    scopes: usize,
    /// They say what records are read by: see [`samplers`].
    is_heeded: bool,
}

#[derive(Debug, Clone, Copy)]
struct Field {
    number: Number,
    length: u16,
    kind: Kind,
    to: Place,
    /// Of a template that is fixed: where it stands in a record, and by how much eight bytes from there are too many, in bits.
    at: u16,
    shift: u8,
}

/// Where a field goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Address(u8),
    Port(u8),
    Protocol,
    Tos,
    Flags,
    Packets,
    Octets,
    Uptime(u8),
    Time(u8),
    /// Before the message was sent.
    Delta(u8),
    /// Between first and last, where one of them is not said.
    Duration,
    /// When the exporter began.
    Init,
    Interface(u8),
    System(u8),
    Prefix(u8),
    NextHop,
    Vlan(u8),
    Mac(u8),
    EndReason,
    /// Whether packets arrived or left.
    Direction,
    /// One packet in how many was looked at, and by which sampler.
    Rate,
    Sampler,
    /// Type and code of ICMP and ICMPv6.
    Icmp(u8),
    IcmpType(u8),
    IcmpCode(u8),
    /// Octets and packets as they left, where what came in is said, too.
    Left(u8),
    /// Of the other direction.
    OtherPackets,
    OtherOctets,
    OtherTime(u8),
    OtherUptime(u8),
    OtherFlags,
    /// When a packet or an event was observed.
    Observed,
    /// The beginning of a packet (PSAMP), and how much of the field that is.
    Section,
    SectionLength,
    /// The addresses say it (`ipVersion`).
    Implied,
    Elsewhere,
}

/// What stands wrong in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Malformed;

/// Reads from the beginning of what is left.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn u8(&mut self) -> Result<u8, Malformed> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn u16(&mut self) -> Result<u16, Malformed> {
        self.take(2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn u32(&mut self) -> Result<u32, Malformed> {
        self.take(4).map(|bytes| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }
}

impl Session {
    /// Nothing is known yet. With `keeps_others` fields that have no place in a record are handed out, too.
    pub fn new(keeps_others: bool) -> Session {
        Session {
            domains: HashMap::default(),
            counters: Counters::default(),
            walk: None,
            room: Lent::none(),
            waiting: 0,
            current: Current::default(),
            now_ns: 0,
            began_ns: 0,
            connection: false,
            keeps_others,
            sources: sflow::Sources::default(),
        }
    }

    /// The same of an exporter whose messages come over a connection, which this is known for.
    pub fn connection(keeps_others: bool) -> Session {
        Session { connection: true, ..Session::new(keeps_others) }
    }

    /// What came was no message: it is counted as one that could not be read.
    pub fn malformed(&mut self) {
        self.counters.malformed += 1;
    }

    /// It is now so many nanoseconds since any moment, by a clock that only goes on: templates and what waits for them have ages, and totals a
    /// beginning. (Where the time of day was set, all templates would be too old at once.) Without it nothing is too old.
    pub fn at(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
        if self.began_ns == 0 {
            self.began_ns = now_ns;
        }
    }

    fn now_s(&self) -> u32 {
        u32::try_from(self.now_ns / 1_000_000_000).unwrap_or(u32::MAX)
    }

    /// Forgets the exporter, and gives back the room that it took.
    pub fn end(self, room: &mut Room) {
        room.give_back(self.room.taken);
    }

    /// What it has taken of the room, in bytes.
    pub fn taken(&self) -> usize {
        self.room.taken
    }

    /// What was read so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Has something done with the room, which is lent for it.
    fn lend<T>(&mut self, room: &mut Room, work: impl FnOnce(&mut Session) -> T) -> T {
        self.room.room = std::mem::replace(room, Room::none());
        let done = work(self);
        *room = std::mem::replace(&mut self.room.room, Room::none());
        done
    }

    /// Reads a message; each record goes to `each`, one of both directions as a record each. What is kept
    /// of it takes of `room`.
    pub fn message(&mut self, bytes: &[u8], room: &mut Room, each: &mut impl FnMut(&Record, &[Other<'_>])) {
        self.lend(room, |session| session.read(bytes, each));
    }

    /// Forgets what is too old by the time that [`Session::at`] said: to be called each minute or so.
    pub fn age(&mut self, room: &mut Room) {
        self.lend(room, Session::forget_old);
    }

    /// Forgets all that it keeps of the exporter, because others have no room; what goes is counted.
    pub fn give_way(&mut self, room: &mut Room) {
        self.lend(room, |session| {
            let domains = std::mem::take(&mut session.domains);
            for domain in domains.values() {
                session.counters.refused += 1 + domain.templates.len() as u64;
                session.forget(domain);
            }
            session.sources.forget_all(&mut session.room);
        });
    }

    fn forget_old(&mut self) {
        let now_s = self.now_s();
        // Over a connection templates hold until they are withdrawn.
        let is_old = |since_s: u32, most: u32| !self.connection && now_s.saturating_sub(since_s) >= most;
        let mut gone = Vec::new();
        for (key, domain) in &mut self.domains {
            if is_old(domain.heard_s, DOMAIN_S) {
                gone.push(*key);
                continue;
            }
            let room = &mut self.room;
            domain.templates.retain(|_, known| {
                let stays = !is_old(known.used_s, TEMPLATE_S);
                if !stays {
                    room.give_back(known.template.bytes());
                }
                stays
            });
            for bytes in domain.waiting.age(now_s) {
                room.give_back(bytes);
                self.waiting = self.waiting.saturating_sub(bytes);
                self.counters.waiting_sets = self.counters.waiting_sets.saturating_sub(1);
                self.counters.lost_sets += 1;
            }
        }
        for key in gone {
            if let Some(domain) = self.domains.remove(&key) {
                self.forget(&domain);
            }
            if key.0 == Format::Sflow {
                self.sources.forget(key.1, &mut self.room);
            }
        }
    }

    /// Gives back what a domain took.
    fn forget(&mut self, domain: &Domain) {
        let (waiting, sets) = domain.waiting.all();
        self.waiting = self.waiting.saturating_sub(waiting);
        self.counters.waiting_sets = self.counters.waiting_sets.saturating_sub(sets);
        self.counters.lost_sets += sets;
        let templates: usize = domain.templates.values().map(|known| known.template.bytes()).sum();
        let said = domain.known.bytes() + domain.totals.bytes();
        self.room.give_back(DOMAIN + waiting + templates + said + domain.sequence.charged);
    }

    fn read(&mut self, bytes: &[u8], each: &mut impl FnMut(&Record, &[Other<'_>])) {
        self.counters.messages += 1;
        self.counters.bytes += bytes.len() as u64;
        let message = if self.current.message >= MOST_MESSAGE { 1 } else { self.current.message + 1 };
        self.current = Current { message, print: print(bytes), ..Current::default() };
        let records = self.counters.records;
        let version = bytes.first_chunk::<2>().map(|two| u16::from_be_bytes(*two));
        let read = match version {
            Some(5) => self.v5(bytes, each),
            Some(9) => self.v9(bytes, each),
            Some(10) => self.ipfix(bytes, each),
            // sFlow's version has four bytes.
            Some(0) => self.sflow(bytes, each),
            _ => Err(Malformed),
        };
        if read.is_err() {
            self.counters.malformed += 1;
        } else {
            self.counters.asides.miscounted_messages += u64::from(self.current.disagrees);
        }
        if let Some((key, Verdict::Duplicate)) = self.current.followed {
            self.twice(key, self.counters.records - records);
        }
    }

    /// The message had come already, and so had what it held.
    fn twice(&mut self, (format, number): (Format, u32), records: u64) {
        let Some(domain) = self.domains.get_mut(&(format, number)) else { return };
        let before = domain.sequence.tally();
        domain.sequence.held(records.saturating_sub(self.current.waited[0]));
        domain.waiting.twice(self.current.message);
        self.counters.numbers(format, before, domain.sequence.tally());
    }

    fn domain(&mut self, key: (Format, u32)) -> Option<&mut Domain> {
        if !self.domains.contains_key(&key) && (self.domains.len() >= MOST_DOMAINS || !self.room.take(DOMAIN))
        {
            self.counters.refused += 1;
            return None;
        }
        Some(self.domains.entry(key).or_default())
    }

    /// Compares a message's number with the one that was expected.
    fn follow(&mut self, key: (Format, u32), number: u32, mut holds: Holds) {
        // Only differences of it are looked at: it may wrap.
        holds.stamp.arrived_ms = (self.now_ns != 0).then_some((self.now_ns / 1_000_000) as u32);
        let (now_s, print) = (self.now_s(), self.current.print);
        let Some(domain) = self.domain(key) else { return };
        domain.heard_s = now_s;
        let before = domain.sequence.tally();
        let verdict = domain.sequence.arrive(number, &Holds { print, ..holds }, key.0 == Format::Ipfix);
        let sent = std::mem::replace(&mut domain.sent, holds.stamp);
        self.current.followed = Some((key, verdict));
        if verdict == Verdict::Anew {
            match key.0 {
                Format::V9 if holds.stamp.began_after(sent) => self.forget_what_was_said(key),
                Format::Sflow => self.sources.forget(key.1, &mut self.room),
                _ => {}
            }
        }
        let Some(domain) = self.domains.get_mut(&key) else { return };
        let now = domain.sequence.tally();
        if now == before {
            return;
        }
        self.counters.numbers(key.0, before, now);
        // What is remembered of holes takes room, and without it they are forgotten.
        let charged = domain.sequence.charged;
        let mut bytes = domain.sequence.bytes();
        if bytes > charged && !self.room.take(bytes - charged) {
            domain.sequence.shrink();
            bytes = domain.sequence.bytes().min(charged);
        }
        self.room.give_back(charged.saturating_sub(bytes));
        domain.sequence.charged = bytes;
    }

    /// Its exporter restarted, and may use the numbers of templates and samplers for others now (RFC 3954, 7): nothing is read by what
    /// they meant before. Only a message that proves it by uptime is taken for that, because exporters whose processes share a domain
    /// restart by each of their messages, as far as numbers tell.
    fn forget_what_was_said(&mut self, key: (Format, u32)) {
        let Some(domain) = self.domains.get_mut(&key) else { return };
        let (waiting, sets) = domain.waiting.all();
        let templates: usize = domain.templates.values().map(|known| known.template.bytes()).sum();
        self.room.give_back(waiting + templates + domain.known.bytes());
        self.waiting = self.waiting.saturating_sub(waiting);
        self.counters.waiting_sets = self.counters.waiting_sets.saturating_sub(sets);
        self.counters.lost_sets += sets;
        domain.templates.clear();
        (domain.known, domain.waiting) = (Known::default(), Waiting::default());
    }

    fn v5(&mut self, bytes: &[u8], each: &mut impl FnMut(&Record, &[Other<'_>])) -> Result<(), Malformed> {
        let mut cursor = Cursor(bytes);
        let (_, count) = (cursor.u16()?, cursor.u16()?);
        let (uptime, seconds, ns, number) = (cursor.u32()?, cursor.u32()?, cursor.u32()?, cursor.u32()?);
        let (kind, engine, sampling) = (cursor.u8()?, cursor.u8()?, cursor.u16()?);
        let domain = u32::from(u16::from_be_bytes([kind, engine]));
        if !(1..=30).contains(&count) {
            return Err(Malformed);
        }
        self.follow((Format::V5, domain), number, Holds::of(count.into()).up(uptime).exported(seconds));
        let exported_ns = u64::from(seconds) * 1_000_000_000 + u64::from(ns.min(999_999_999));
        let uptime = Uptime::At { exported_ms: exported_ns / 1_000_000, uptime_ms: uptime };
        // Zero is what exporters write who do not know of sampling.
        let sampling = u32::from(sampling & 0x3fff);
        for _ in 0..count {
            let record: &[u8; 48] = cursor.take(48)?.first_chunk().ok_or(Malformed)?;
            let u16_at = |at: usize| u16::from_be_bytes([record[at], record[at + 1]]);
            let u32_at =
                |at: usize| u32::from_be_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]]);
            let address = |at: usize| Some(IpAddr::V4(Ipv4Addr::from_bits(u32_at(at))));
            let time = |at: usize| uptime.at(u32_at(at).into());
            let record = Record {
                addresses: [address(0), address(4)],
                next_hop: address(8).filter(|hop| !hop.is_unspecified()),
                interfaces: [u16_at(12).into(), u16_at(14).into()],
                packets: u32_at(16).into(),
                octets: u32_at(20).into(),
                times_ns: [time(24), time(28)],
                ports: [u16_at(32), u16_at(34)],
                tcp_flags: record[37].into(),
                protocol: record[38],
                tos: record[39],
                systems: [u16_at(40).into(), u16_at(42).into()],
                prefixes: [record[44], record[45]],
                ..Record::blank(Format::V5, domain, exported_ns, sampling)
            };
            self.counters.records += 1;
            self.counters.asides.unknown_sampling += u64::from(sampling == 0);
            each(&record, &[]);
        }
        // More records than it says it has.
        if cursor.0.len() >= 48 { Err(Malformed) } else { Ok(()) }
    }

    fn v9(&mut self, bytes: &[u8], each: &mut impl FnMut(&Record, &[Other<'_>])) -> Result<(), Malformed> {
        let mut cursor = Cursor(bytes);
        let (_, count) = (cursor.u16()?, cursor.u16()?);
        let (uptime, seconds, number, domain) = (cursor.u32()?, cursor.u32()?, cursor.u32()?, cursor.u32()?);
        self.current.number = number;
        self.follow((Format::V9, domain), number, Holds::of(1).up(uptime).exported(seconds));
        let exported_ns = u64::from(seconds) * 1_000_000_000;
        let head = Head {
            format: Format::V9,
            domain,
            exported_ns,
            uptime: Uptime::At { exported_ms: u64::from(seconds) * 1000, uptime_ms: uptime },
        };
        let before = self.counters;
        self.sets(cursor, head, each)?;
        self.current.disagrees |= !self.is_count(domain, count.into(), &before);
        Ok(())
    }

    /// Does the count in the head of a message of v9 agree with what was read of the message? It counts records of all kinds, templates
    /// among them (RFC 3954, 5.1); some exporters leave out templates, others options as well (softflowd), others count sets. Of a
    /// message with sets that nobody can count there is nothing to compare.
    fn is_count(&mut self, domain: u32, count: u64, before: &Counters) -> bool {
        let Current { message, waited, sets, reserved, spoiled, .. } = self.current;
        let Some(domain) = self.domains.get_mut(&(Format::V9, domain)) else { return true };
        if reserved > 0 || domain.waiting.rest_of(message, spoiled) != 0 {
            return true;
        }
        let now = &self.counters;
        let flows = now.records - before.records - waited[0];
        let records = flows + now.options - before.options - waited[1];
        let templates = now.templates - before.templates;
        [records + templates, records, flows, sets].contains(&count)
    }

    fn ipfix(&mut self, bytes: &[u8], each: &mut impl FnMut(&Record, &[Other<'_>])) -> Result<(), Malformed> {
        let mut cursor = Cursor(bytes);
        let (_, length) = (cursor.u16()?, cursor.u16()?);
        let (seconds, number, domain) = (cursor.u32()?, cursor.u32()?, cursor.u32()?);
        let body = usize::from(length).checked_sub(16).ok_or(Malformed)?;
        let rest = Cursor(cursor.take(body)?);
        // A datagram is one message (RFC 7011, 10.3.3): another behind it is not read.
        let has_more = cursor.0.len() >= 16;
        let head = Head {
            format: Format::Ipfix,
            domain,
            exported_ns: u64::from(seconds) * 1_000_000_000,
            uptime: Uptime::Unknown,
        };
        let before = [self.counters.records, self.counters.options];
        self.current.number = number;
        let read = self.sets(rest, head, each);
        // What had waited, and was read meanwhile, is of other messages.
        let [flows, options] = [
            self.counters.records - before[0] - self.current.waited[0],
            self.counters.options - before[1] - self.current.waited[1],
        ]
        .map(|count| count as u32);
        let key = (Format::Ipfix, domain);
        let (message, spoiled) = (self.current.message, self.current.spoiled || read.is_err());
        let unread = match self.domains.get_mut(&key) {
            Some(domain) => domain.waiting.rest_of(message, spoiled),
            None if spoiled => NEVER,
            None => 0,
        };
        let holds = Holds { flows, unread, ..Holds::of(flows + options) };
        self.follow(key, number, holds.exported(seconds));
        if has_more { Err(Malformed) } else { read }
    }

    /// Reads sets.
    fn sets(
        &mut self,
        mut cursor: Cursor<'_>,
        head: Head,
        each: &mut impl FnMut(&Record, &[Other<'_>]),
    ) -> Result<(), Malformed> {
        // What is left may be padding.
        while cursor.0.len() >= 4 {
            let (number, length) = (cursor.u16()?, cursor.u16()?);
            let body = usize::from(length).checked_sub(4).ok_or(Malformed)?;
            let body = cursor.take(body)?;
            self.current.sets += 1;
            match (head.format, number) {
                (Format::V9, 0) | (Format::Ipfix, 2) => self.templates(body, head, false, each)?,
                (Format::V9, 1) | (Format::Ipfix, 3) => self.templates(body, head, true, each)?,
                (_, 256..) => self.data(number, body, head, each)?,
                // Reserved (RFC 3954, 5.1, and RFC 7011, 3.3.2): what stands in it nobody knows, but where the next set begins.
                _ => {
                    self.current.reserved += 1;
                    self.counters.asides.reserved_sets += 1;
                }
            }
        }
        Ok(())
    }

    fn templates(
        &mut self,
        body: &[u8],
        head: Head,
        options: bool,
        each: &mut impl FnMut(&Record, &[Other<'_>]),
    ) -> Result<(), Malformed> {
        let mut cursor = Cursor(body);
        while cursor.0.len() >= 4 {
            let (number, count) = (cursor.u16()?, usize::from(cursor.u16()?));
            // All templates of a kind are withdrawn under the number of its sets (RFC 7011, 8.1).
            let all = head.format == Format::Ipfix && count == 0 && number == if options { 3 } else { 2 };
            if all {
                self.withdraw_all(head, options);
                continue;
            }
            if number < 256 {
                // Padding, or nonsense.
                return if number == 0 { Ok(()) } else { Err(Malformed) };
            }
            let (fields, scopes) = match (options, head.format) {
                (false, _) => (count, 0),
                // In bytes: of the scope (which was read as `count`), and of the rest.
                (true, Format::V9) => {
                    let scope = count / 4;
                    (scope + usize::from(cursor.u16()?) / 4, scope)
                }
                (true, _) if count == 0 => (0, 0),
                (true, _) => (count, usize::from(cursor.u16()?)),
            };
            let template = Template::read(&mut cursor, fields, options.then_some(scopes), head.format)?;
            self.counters.templates += 1;
            self.keep(number, template, head, each);
        }
        Ok(())
    }

    fn withdraw_all(&mut self, head: Head, options: bool) {
        let domain = self.domains.get_mut(&(head.format, head.domain)).filter(|_| self.connection);
        let Some(domain) = domain else { return };
        let room = &mut self.room;
        domain.templates.retain(|_, known| {
            let stays = known.template.is_options != options;
            if !stays {
                room.give_back(known.template.bytes());
            }
            stays
        });
    }

    /// Keeps a template, and reads what has waited for it.
    fn keep(
        &mut self,
        number: u16,
        template: Option<Template>,
        head: Head,
        each: &mut impl FnMut(&Record, &[Other<'_>]),
    ) {
        let (key, used_s) = ((head.format, head.domain), self.now_s());
        if self.domain(key).is_none() {
            return;
        }
        let Some(domain) = self.domains.get_mut(&key) else { return };
        let Some(template) = template else {
            // A withdrawal (RFC 7011, 8.1) means nothing over UDP, where messages may overtake each other (8.4).
            if self.connection
                && let Some(known) = domain.templates.remove(&number)
            {
                self.room.give_back(known.template.bytes());
            }
            return;
        };
        let before = domain.templates.get(&number).map(|known| known.template.bytes());
        self.room.give_back(before.unwrap_or(0));
        let full = before.is_none() && domain.templates.len() >= MOST_TEMPLATES;
        if full || !self.room.take(template.bytes()) {
            self.counters.refused += 1;
            // The one that was there is of another kind now.
            domain.templates.remove(&number);
            return;
        }
        domain.templates.insert(number, Kept { template, used_s });
        for set in domain.waiting.take(number) {
            self.read_late(number, &set, each);
        }
    }

    /// Reads a set that has waited for its template, which is there now.
    fn read_late(&mut self, number: u16, set: &Set, each: &mut impl FnMut(&Record, &[Other<'_>])) {
        let bytes = Set::bytes(set.body.len());
        self.room.give_back(bytes);
        self.waiting = self.waiting.saturating_sub(bytes);
        self.counters.waiting_sets = self.counters.waiting_sets.saturating_sub(1);
        let before = [self.counters.records, self.counters.options];
        let read = self.data(number, &set.body, set.head, each);
        if read.is_err() {
            // It is the message that it came in that cannot be read to its end.
            self.counters.malformed += 1;
        }
        let key = (set.head.format, set.head.domain);
        let [flows, options] = [self.counters.records - before[0], self.counters.options - before[1]];
        let is_of_another = set.message != self.current.message;
        if is_of_another {
            self.current.waited[0] += flows;
            self.current.waited[1] += options;
        } else {
            self.current.spoiled |= read.is_err();
        }
        let Some(domain) = self.domains.get_mut(&key) else { return };
        let is_last = domain.waiting.is_last(set.message, read.is_ok());
        if !is_of_another {
            return;
        }
        let told = domain.sequence.tally();
        if set.twice {
            domain.sequence.held_twice(flows);
        }
        // Messages of v9 are counted themselves, not what they hold.
        if key.0 == Format::Ipfix {
            let holds = Holds { flows: flows as u32, ..Holds::of((flows + options) as u32) };
            domain.sequence.counted(set.message, &holds, is_last);
        }
        self.counters.numbers(key.0, told, domain.sequence.tally());
    }

    /// Has a set wait for its template, if there is room for it.
    fn wait(&mut self, number: u16, body: &[u8], head: Head) {
        let (bytes, now_s, message) = (Set::bytes(body.len()), self.now_s(), self.current.message);
        let domain = self.domains.get_mut(&(head.format, head.domain));
        match domain.filter(|_| self.waiting + bytes <= MOST_WAITING && self.room.take(bytes)) {
            Some(domain) => {
                self.waiting += bytes;
                domain.waiting.push(number, head, body, message, now_s);
                self.counters.waiting_sets += 1;
            }
            None => {
                self.current.spoiled = true;
                self.counters.lost_sets += 1;
            }
        }
    }

    /// Reads records; those whose template is not known wait for it.
    fn data(
        &mut self,
        number: u16,
        body: &[u8],
        head: Head,
        each: &mut impl FnMut(&Record, &[Other<'_>]),
    ) -> Result<(), Malformed> {
        let key = (head.format, head.domain);
        let keeps_others = self.keeps_others;
        let now_s = self.now_s();
        if self.domain(key).is_none() {
            self.counters.lost_sets += 1;
            return Ok(());
        }
        let Some(domain) = self.domains.get_mut(&key) else { return Ok(()) };
        let Some(known) = domain.templates.get_mut(&number) else {
            self.wait(number, body, head);
            return Ok(());
        };
        known.used_s = now_s;
        let template = &known.template;
        // Its numbers are those of all that it sent, if the first one that came is the first of all.
        let is_new = !self.connection && domain.sequence.first().unwrap_or(self.current.number) == 0;
        let when =
            When { exported_ns: head.exported_ns, is_new, now_ns: self.now_ns, began_ns: self.began_ns };
        let tells_totals = Totals::are_in(template);
        let mut cursor = Cursor(body);
        let (mut records, mut options) = (0, 0);
        let mut notes: Vec<Note> = Vec::new();
        let head = domain.known.head(head);
        let beside = Beside { head, known: &domain.known, template: number };
        let sampling = domain.known.one_in(number, None, [0; 2]);
        let blank = Record::blank(head.format, head.domain, head.exported_ns, sampling);
        let is_careful = template.is_careful || !template.is_options && domain.known.by_interface();
        let mut unknown_sampling = 0;
        let mut others = Vec::new();
        let mut read = Ok(());
        if template.is_plain && !is_careful && (template.tells_all || !keeps_others) {
            let mut block = [blank; BLOCK];
            while let Some(rest) = template.columns(cursor.0, head, &mut block) {
                cursor.0 = rest;
                records += BLOCK as u64;
                unknown_sampling += if sampling == 0 { BLOCK as u64 } else { 0 };
                for record in &mut block {
                    each(record, &[]);
                    *record = blank;
                }
            }
        }
        // What is shorter than a record is padding.
        while cursor.0.len() >= template.least {
            if template.is_options {
                let from = cursor.0;
                notes.extend(template.note(Cursor(from), head.format));
                match template.options(&mut cursor) {
                    Ok(()) => {
                        options += 1;
                        if tells_totals {
                            let room = |bytes| self.room.take(bytes);
                            let refused = domain.totals.read(template, from, when, &mut self.counters, room);
                            self.counters.refused += u64::from(refused);
                        }
                    }
                    Err(wrong) => {
                        read = Err(wrong);
                        break;
                    }
                }
                continue;
            }
            let (mut record, mut other_way) = (blank, OtherWay::default());
            others.clear();
            let mut kept = keeps_others.then_some(&mut others);
            let into = (&mut record, &mut other_way);
            let one = match is_careful {
                true => template.careful(&mut cursor, beside, into, &mut kept),
                false => template.record(&mut cursor, head, into, kept),
            };
            if let Err(wrong) = one {
                read = Err(wrong);
                break;
            }
            records += 1;
            unknown_sampling += u64::from(record.sampling == 0);
            each(&record, &others);
            if template.both_ways
                && let Some(record) = record.other_way(&other_way)
            {
                self.counters.two_way_records += 1;
                each(&record, &[]);
            }
        }
        // Padding fills words of four bytes or of eight (RFC 7011, 3.3.1): more is what the template does not know of.
        self.current.disagrees |= read.is_ok() && cursor.0.len() >= 8;
        self.counters.refused += u64::from(!domain.known.learn(&notes, &mut self.room));
        self.counters.asides.unknown_sampling += unknown_sampling;
        self.counters.records += records;
        self.counters.options += options;
        read
    }
}

impl Template {
    /// What it takes, about.
    fn bytes(&self) -> usize {
        size_of::<Template>() + 32 + self.fields.capacity() * size_of::<Field>()
    }

    /// `None`: it is withdrawn.
    fn read(
        cursor: &mut Cursor<'_>,
        count: usize,
        options: Option<usize>,
        format: Format,
    ) -> Result<Option<Template>, Malformed> {
        let (is_options, scopes) = (options.is_some(), options.unwrap_or(0));
        if count == 0 {
            return Ok(None);
        }
        if count > MOST_FIELDS || scopes > count {
            return Err(Malformed);
        }
        let mut fields = Vec::with_capacity(count.min(64));
        let (mut least, mut varies, mut both_ways) = (0usize, false, false);
        for at in 0..count {
            let (id, length) = (cursor.u16()?, cursor.u16()?);
            let own = format == Format::Ipfix && id & 0x8000 != 0;
            let enterprise = if own { cursor.u32()? } else { 0 };
            let number = Number { enterprise, id: if own { id & 0x7fff } else { id } };
            // Scopes of v9 have numbers of their own.
            let known = element::of_number(number).filter(|_| format == Format::Ipfix || at >= scopes);
            let reverse = element::reverse_of(number);
            both_ways |= reverse.is_some();
            let kind = known.or(reverse).map_or(Kind::Octets, |element| element.kind);
            let to = match (known, reverse) {
                (Some(element), _) if element.number.enterprise == 0 => place(element.number.id),
                (_, Some(element)) => other_place(element.number.id),
                _ => Place::Elsewhere,
            };
            // RFC 3954 does not know of it; exporters of v9 do.
            let is_varying = length == element::VARIES;
            varies |= is_varying;
            // A record that is longer than a message is never read.
            let (at, shift) = (u16::try_from(least).unwrap_or(u16::MAX), 64 - 8 * length.min(8) as u8);
            least += if is_varying { 1 } else { usize::from(length) };
            fields.push(Field { number, length, kind, to, at, shift: shift.min(63) });
        }
        // Records of no length would be without number.
        if least == 0 {
            return Err(Malformed);
        }
        let mut is_careful = false;
        if !is_options {
            let arranged = elements::arrange(&mut fields, format);
            is_careful = arranged.is_careful || varies;
            both_ways |= arranged.both_ways;
            if !varies {
                fields.sort_by_key(elements::rank);
            }
        }
        let is_heeded = is_options
            && fields.iter().any(|field| {
                let id = field.number.id;
                field.number.enterprise == 0 && (samplers::is_rate(id) || id == samplers::INIT)
            });
        let fits = |field: &Field| match field.to {
            Place::Address(_) | Place::NextHop if matches!(field.length, 4 | 16) => true,
            Place::Mac(_) | Place::Section | Place::Elsewhere => true,
            _ => (1..=8).contains(&field.length),
        };
        let is_fixed = !varies && least + 8 <= usize::from(u16::MAX) && fields.iter().all(fits);
        let is_plain = is_fixed && !both_ways && !is_options && least >= 8;
        let tells_all = fields.iter().all(|field| field.to != Place::Elsewhere);
        Ok(Some(Template {
            fields,
            least,
            varies,
            is_fixed,
            is_plain,
            tells_all,
            both_ways,
            is_careful,
            is_options,
            scopes,
            is_heeded,
        }))
    }

    /// The bytes of a field.
    #[inline]
    fn field<'a>(&self, cursor: &mut Cursor<'a>, field: &Field) -> Result<&'a [u8], Malformed> {
        if !self.varies || field.length != element::VARIES {
            return cursor.take(field.length.into());
        }
        let length = match cursor.u8()? {
            255 => usize::from(cursor.u16()?),
            short => short.into(),
        };
        cursor.take(length)
    }

    /// Passes over a record of options.
    fn options(&self, cursor: &mut Cursor<'_>) -> Result<(), Malformed> {
        self.fields.iter().try_for_each(|field| self.field(cursor, field).map(|_| ()))
    }

    #[inline]
    fn record<'a>(
        &self,
        cursor: &mut Cursor<'a>,
        head: Head,
        (record, other_way): (&mut Record, &mut OtherWay),
        mut others: Option<&mut Vec<Other<'a>>>,
    ) -> Result<(), Malformed> {
        if let Some(rest) = self.fixed_record(cursor.0, head, (record, other_way), &mut others) {
            cursor.0 = rest;
            return Ok(());
        }
        // Of templates whose fields vary records are read with care.
        let whole = cursor.take(self.least)?;
        for field in &self.fields {
            let bytes = field.of(whole);
            field.put(unsigned(bytes), || bytes, head, (record, other_way), &mut others);
        }
        Ok(())
    }

    /// The same of a template that is fixed, if there are eight bytes behind the record: a number is what they begin with, however
    /// short it is, and nothing waits for the field before. What stands behind the record.
    #[inline]
    fn fixed_record<'a>(
        &self,
        bytes: &'a [u8],
        head: Head,
        (record, other_way): (&mut Record, &mut OtherWay),
        others: &mut Option<&mut Vec<Other<'a>>>,
    ) -> Option<&'a [u8]> {
        if !self.is_fixed || bytes.len() < self.least + 8 {
            return None;
        }
        for field in &self.fields {
            let from = bytes.get(usize::from(field.at)..)?;
            let value = u64::from_be_bytes(*from.first_chunk()?) >> field.shift;
            let of = || from.get(..usize::from(field.length)).unwrap_or_default();
            field.put(value, of, head, (record, other_way), others);
        }
        bytes.get(self.least..)
    }
}

/// Records that are read together.
const BLOCK: usize = 8;

impl Template {
    /// Reads records of a plain template together: of all the first field, then of all the second. Which member a field goes to
    /// is asked once for each, not once for each record, which takes half of the time (`scripts/bench-collect`). What stands
    /// behind them; `None`: there are not so many, with eight bytes behind the last.
    #[inline(never)]
    fn columns<'a>(&self, bytes: &'a [u8], head: Head, block: &mut [Record; BLOCK]) -> Option<&'a [u8]> {
        let (all, rest) = bytes.split_at_checked(self.least * BLOCK)?;
        let bytes = bytes.get(..all.len() + 8).filter(|_| rest.len() >= 8)?;
        for field in &self.fields {
            let from = bytes.get(usize::from(field.at)..)?;
            let four = field.length == 4;
            // Each kind of field has a loop of its own.
            macro_rules! each {
                (|$record:ident, $value:ident| $put:expr) => {
                    for ($record, from) in block.iter_mut().zip(from.chunks(self.least)) {
                        let Some(eight) = from.first_chunk() else { break };
                        let $value = u64::from_be_bytes(*eight) >> field.shift;
                        $put;
                    }
                };
            }
            match field.to {
                Place::Address(0) if four => each!(|record, value| record.addresses[0] = v4(value)),
                Place::Address(_) if four => each!(|record, value| record.addresses[1] = v4(value)),
                Place::Port(0) => each!(|record, value| record.ports[0] = value as u16),
                Place::Port(_) => each!(|record, value| record.ports[1] = value as u16),
                Place::Protocol => each!(|record, value| record.protocol = value as u8),
                Place::Tos => each!(|record, value| record.tos = value as u8),
                Place::Flags => each!(|record, value| record.tcp_flags = value as u16),
                Place::Packets => each!(|record, value| record.packets = value),
                Place::Octets => each!(|record, value| record.octets = value),
                Place::Interface(which) => {
                    each!(|record, value| record.interfaces[usize::from(which & 1)] = value as u32);
                }
                Place::EndReason => each!(|record, value| record.end_reason = value as u8),
                Place::Implied => {}
                _ => {
                    for (record, from) in block.iter_mut().zip(from.chunks(self.least)) {
                        let value = u64::from_be_bytes(*from.first_chunk()?) >> field.shift;
                        let of = || from.get(..usize::from(field.length)).unwrap_or_default();
                        field.put(value, of, head, (record, &mut OtherWay::default()), &mut None);
                    }
                }
            }
        }
        Some(rest)
    }
}

impl Field {
    /// Puts what it says where it goes: a number, and the bytes for what is none.
    #[inline(always)]
    fn put<'a>(
        &self,
        value: u64,
        bytes: impl FnOnce() -> &'a [u8],
        head: Head,
        (record, other_way): (&mut Record, &mut OtherWay),
        others: &mut Option<&mut Vec<Other<'a>>>,
    ) {
        match self.to {
            Place::Address(which) => record.addresses[usize::from(which & 1)] = address(bytes()),
            Place::Port(which) => record.ports[usize::from(which & 1)] = value as u16,
            Place::Protocol => record.protocol = value as u8,
            Place::Tos => record.tos = value as u8,
            Place::Flags => record.tcp_flags = value as u16,
            Place::Packets => record.packets = value,
            Place::Octets => record.octets = value,
            Place::Uptime(which) => record.times_ns[usize::from(which & 1)] = head.uptime.at(value),
            Place::Time(which) => {
                record.times_ns[usize::from(which & 1)] = times::absolute(self.kind, value, bytes);
            }
            Place::Delta(which) => {
                record.times_ns[usize::from(which & 1)] = times::delta(head.exported_ns, value);
            }
            Place::Interface(which) => record.interfaces[usize::from(which & 1)] = value as u32,
            Place::System(which) => record.systems[usize::from(which & 1)] = value as u32,
            Place::Prefix(which) => record.prefixes[usize::from(which & 1)] = value as u8,
            Place::NextHop => record.next_hop = address(bytes()).filter(|hop| !hop.is_unspecified()),
            Place::Vlan(which) => record.vlans[usize::from(which & 1)] = value as u16,
            Place::Mac(which) => {
                if let Some(mac) = bytes().first_chunk() {
                    record.macs[usize::from(which & 1)] = *mac;
                }
            }
            Place::EndReason => record.end_reason = value as u8,
            Place::Direction => record.direction = value as u8,
            // Where ports are said, too, those of ICMP are this. It is read behind them.
            Place::Icmp(_) => {
                if value as u16 != 0 && elements::is_icmp(record) {
                    record.ports[1] = value as u16;
                }
            }
            Place::OtherPackets => other_way.packets = value,
            Place::OtherOctets => other_way.octets = value,
            Place::OtherFlags => other_way.tcp_flags = value as u16,
            Place::OtherUptime(which) => other_way.times_ns[usize::from(which & 1)] = head.uptime.at(value),
            Place::OtherTime(which) => {
                other_way.times_ns[usize::from(which & 1)] = times::absolute(self.kind, value, bytes);
            }
            // Templates with these are read with care ([`elements`]).
            Place::Rate | Place::Sampler | Place::IcmpType(_) | Place::IcmpCode(_) | Place::Left(_) => {}
            Place::Observed | Place::Section | Place::SectionLength => {}
            Place::Duration | Place::Init | Place::Implied => {}
            Place::Elsewhere => {
                if let Some(others) = others {
                    others.push(Other { number: self.number, bytes: bytes() });
                }
            }
        }
    }

    /// Its bytes in a record, where none of the fields varies.
    fn of<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        let from = usize::from(self.at);
        record.get(from..from + usize::from(self.length)).unwrap_or_default()
    }
}

fn v4(value: u64) -> Option<IpAddr> {
    Some(Ipv4Addr::from_bits(value as u32).into())
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => Some(Ipv4Addr::from_bits(unsigned(bytes) as u32).into()),
        16 => bytes.first_chunk::<16>().map(|bytes| Ipv6Addr::from(*bytes).into()),
        _ => None,
    }
}

/// A record of one packet that sFlow sampled.
fn sampled(walk: &mut Walk, frame: &packet::Frame<'_>, blank: Record) -> Option<Record> {
    let packet = walk.packet(frame).ok()?;
    let parts = packet.key.parts();
    Some(Record {
        addresses: parts.addresses.map(Some),
        ports: parts.ports,
        protocol: parts.protocol,
        tos: parts.tos,
        tcp_flags: packet.tcp_flags,
        packets: 1,
        octets: packet.octets,
        vlans: [parts.vlan.unwrap_or(0), 0],
        macs: packet.macs,
        ..blank
    })
}

fn walk() -> Box<Walk> {
    Box::new(Walk::new(Choice { samples: true, ..Choice::default() }))
}

/// What tells messages of the same number from each other, as far as is needed: how long each is, and what it begins and ends with.
fn print(bytes: &[u8]) -> u32 {
    let word = |at: usize| bytes.get(at..at + 8).map_or(0, unsigned);
    let words = [word(24), word(32), word(40), word(bytes.len().saturating_sub(8)), bytes.len() as u64];
    let mixed = words
        .into_iter()
        .fold(0u64, |sum, word| (sum ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29));
    // 0 is none.
    (mixed >> 32) as u32 | 1
}

/// Whether bytes begin as a message of one of the protocols does: who sends something else is no exporter.
pub fn is_message(bytes: &[u8]) -> bool {
    let word = |at: usize| bytes.get(at..at + 2).map(|two| unsigned(two) as usize);
    match word(0) {
        Some(5) => word(2).is_some_and(|count| (1..=30).contains(&count) && bytes.len() >= 24 + 48 * count),
        Some(9) => bytes.len() >= 20,
        Some(10) => word(2).is_some_and(|length| (16..=bytes.len()).contains(&length)),
        Some(0) => word(2) == Some(5) && bytes.len() >= 28,
        _ => false,
    }
}
