//! The table of flows: what arrived of each since its record began, and when a record is over.
//!
//! ```text
//!   packet --hash--> index (a tag and a number, 12 bytes) --> entry (112 bytes) --> wheel: when to look again
//! ```
//!
//! An entry stands in one slot of a wheel of times. A packet does not move it: when its slot comes, its end is reckoned anew,
//! and it stands in a later slot or is over. So a packet costs a look-up, and the wheel a visit for each idle timeout. Work
//! that is due is done in pieces of a size that the caller gives, so that who receives is never kept from it.

use crate::key::Key;
use crate::packet::Packet;
use std::collections::VecDeque;
use std::hash::BuildHasher;
use wire::numbers::protocol;

/// When a record is over, and how many flows are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Flows at once. When there are more, the one whose end is nearest is over: lack of resources.
    pub flows: u32,
    /// After the first packet, although more come.
    pub active_ns: u64,
    /// After the last packet.
    pub idle_ns: u64,
    /// After a TCP segment with FIN or RST; `None`: as any other flow.
    pub ended_ns: Option<u64>,
    /// Before it has more bytes than this, which its counters could not say. Packets are fewer.
    pub octets: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            flows: 1 << 20,
            active_ns: 120_000_000_000,
            idle_ns: 30_000_000_000,
            ended_ns: Some(1_000_000_000),
            octets: u64::MAX,
        }
    }
}

/// The most flows that a table can have: their numbers have 31 bits.
pub const MOST_FLOWS: u32 = 1 << 30;

/// Bytes that each of `flows` takes at most, in a table made for as many.
pub fn bytes_per_flow(flows: u32) -> f64 {
    let flows = flows.max(1);
    size_of::<Entry>() as f64 + (slots(flows) * size_of::<u64>()) as f64 / f64::from(flows)
}

/// The same of flows of both directions.
pub fn bytes_per_flow_both_ways(flows: u32) -> f64 {
    bytes_per_flow(flows) + size_of::<Back>() as f64
}

/// What test signatures add to either.
pub fn bytes_of_signatures() -> f64 {
    size_of::<Signs>() as f64
}

/// Why a record is over (`flowEndReason`, RFC 5102).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Ended {
    /// No packet came for the idle timeout.
    Idle = 1,
    /// It lasted for the active timeout; what comes after is another record.
    Active = 2,
    /// TCP's FIN or RST was seen.
    Closed = 3,
    /// The meter ends.
    Forced = 4,
    /// There was no room for another flow.
    NoRoom = 5,
    /// Another packet would be more than its counters can say.
    Full = 6,
}

impl Ended {
    /// As records have it (`flowEndReason`): that counters are too small is a lack of resources.
    pub(crate) fn number(self) -> u8 {
        match self {
            Ended::Full => Ended::NoRoom as u8,
            other => other as u8,
        }
    }
}

/// What was counted of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// The flow.
    pub key: Key,
    /// Packets.
    pub packets: u64,
    /// Bytes of IP: headers and payload.
    pub octets: u64,
    /// When the first and the last packet arrived, in nanoseconds since 1970.
    pub times_ns: [u64; 2],
    /// TCP's flags, of all segments together.
    pub tcp_flags: u16,
    /// The least and the greatest time to live.
    pub ttl: [u8; 2],
    /// The shortest and the longest packet.
    pub lengths: [u16; 2],
    /// Of the first packet: source and destination.
    pub macs: [[u8; 6]; 2],
    /// Of the first packet: the uppermost MPLS label stack entry without its time to live.
    pub mpls: [u8; 3],
    /// Its first packet left by the interface; else it arrived there.
    pub egress: bool,
}

/// A flow that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Over {
    /// What was counted.
    pub flow: Flow,
    /// Why it is over.
    pub why: Ended,
    /// Of both directions in one record: the other one.
    pub back: Option<Back>,
    /// What test signatures said, where they are looked for and there was one.
    pub signs: Option<Signs>,
}

/// What the test signatures of a flow's packets said. They are of one stream: of a flow of several it is the first one's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Signs {
    /// The stream.
    pub stream: u32,
    /// Packets that had a signature of this stream; without any the rest means nothing.
    pub packets: u64,
    /// The least and the greatest number within the stream.
    pub sequences: [u64; 2],
}

impl Signs {
    fn count(&mut self, (stream, sequence): (u32, u64)) {
        if self.packets == 0 {
            *self = Signs { stream, packets: 1, sequences: [sequence; 2] };
        } else if stream == self.stream {
            self.packets += 1;
            self.sequences = [self.sequences[0].min(sequence), self.sequences[1].max(sequence)];
        }
    }
}

impl Over {
    /// The other direction as a flow of its own, if packets of it came.
    pub fn other_way(&self) -> Option<Flow> {
        let back = self.back.filter(|back| back.packets > 0)?;
        let [source, destination] = self.flow.macs;
        Some(Flow {
            key: self.flow.key.reversed(),
            packets: back.packets,
            octets: back.octets,
            times_ns: back.times_ns,
            tcp_flags: back.tcp_flags,
            ttl: back.ttl,
            lengths: back.lengths,
            macs: [destination, source],
            mpls: [0; 3],
            egress: self.flow.egress,
        })
    }
}

/// What was counted of a flow's other direction (RFC 5103). The direction of the first packet is the flow's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Back {
    /// Packets.
    pub packets: u64,
    /// Bytes of IP.
    pub octets: u64,
    /// When the first and the last packet of the other direction arrived, in nanoseconds since 1970.
    pub times_ns: [u64; 2],
    /// The same of the flow's direction: an entry of the table has those of both together.
    forward_ns: [u64; 2],
    /// TCP's flags, of all segments together.
    pub tcp_flags: u16,
    /// The least and the greatest time to live.
    pub ttl: [u8; 2],
    /// The shortest and the longest packet.
    pub lengths: [u16; 2],
    /// Who began (`biflowDirection`).
    pub began: Began,
    /// TCP's handshake says who began; else it is who sent the first packet.
    is_sure: bool,
}

/// Which end of a flow of both directions began it (`biflowDirection`, RFC 5103, 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Began {
    /// The source.
    Source = 1,
    /// The destination.
    Destination = 2,
}

impl Back {
    /// Nothing came back yet.
    fn of(packet: &Packet) -> Back {
        let (began, is_sure) = match packet.tcp_flags & (SYN | ACK) {
            _ if packet.key.protocol() != protocol::TCP => (Began::Source, false),
            SYN => (Began::Source, true),
            // The answer to a segment that was not seen.
            both if both == SYN | ACK => (Began::Destination, true),
            _ => (Began::Source, false),
        };
        Back {
            packets: 0,
            octets: 0,
            times_ns: [u64::MAX, 0],
            forward_ns: [packet.at_ns; 2],
            tcp_flags: 0,
            ttl: [u8::MAX, 0],
            lengths: [u16::MAX, 0],
            began,
            is_sure,
        }
    }

    fn count(&mut self, packet: &Packet) {
        self.packets += u64::from(packet.packets);
        self.octets += packet.octets;
        self.times_ns = [self.times_ns[0].min(packet.at_ns), self.times_ns[1].max(packet.at_ns)];
        self.tcp_flags |= packet.tcp_flags;
        self.ttl = [self.ttl[0].min(packet.ttl), self.ttl[1].max(packet.ttl)];
        let length = length(packet);
        self.lengths = [self.lengths[0].min(length), self.lengths[1].max(length)];
        if !self.is_sure && packet.tcp_flags & (SYN | ACK) == SYN && packet.key.protocol() == protocol::TCP {
            (self.began, self.is_sure) = (Began::Destination, true);
        }
    }
}

/// What the table did so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that were added.
    pub packets: u64,
    /// Records that began.
    pub begun: u64,
    /// Records that are over, by [`Ended`]: entry 0 is that of idle ones.
    pub over: [u64; 6],
    /// The most flows that were under way at once.
    pub most: u64,
    /// The longest search for a flow, in steps.
    pub longest_search: u32,
}

impl Counters {
    /// Records that are over.
    pub fn ended(&self) -> u64 {
        self.over.iter().sum()
    }
}

/// Not an entry.
const NONE: u32 = u32::MAX;

const FIN: u16 = 0x01;
const SYN: u16 = 0x02;
const RST: u16 = 0x04;
const ACK: u16 = 0x10;
const ENDING: u16 = FIN | RST;

#[derive(Debug, Clone)]
struct Entry {
    flow: Flow,
    /// The next in the same slot of the wheel, or the next free one.
    next: u32,
    /// The one before it in the slot; of the first, none.
    before: u32,
    /// How often the entry was used, so that an end that was foreseen is not another flow's.
    uses: u16,
    /// The slot of the wheel it stands in, [`LIVE`] and [`CLOSED`].
    state: u16,
}

const LIVE: u16 = 1 << 15;
/// FIN or RST was seen.
const CLOSED: u16 = 1 << 14;
const SLOT: u16 = WHEEL as u16 - 1;

impl Entry {
    fn is_live(&self) -> bool {
        self.state & LIVE != 0
    }
}

/// Slots of the wheel.
const WHEEL: usize = 1024;
/// Slots of an idle timeout, about.
const PER_TIMEOUT: u64 = 256;
/// Entries that are looked at for one that can make room.
const TRIES: usize = 8;

/// Flows that are under way.
#[derive(Debug)]
pub struct Table {
    limits: Limits,
    /// The upper half of a hash above the entry's number plus one; zero is free. A search ends at a free one.
    index: Vec<u64>,
    entries: Vec<Entry>,
    /// Of flows of both directions: what was counted of the other one, by the entry's number.
    backs: Option<Vec<Back>>,
    /// Where test signatures are looked for: what they said, by the entry's number.
    signs: Option<Vec<Signs>>,
    free: u32,
    live: u32,
    wheel: Vec<u32>,
    tick_ns: u64,
    /// The first tick whose slot was not done.
    tick: u64,
    /// Where the last one was found that made room.
    room: u64,
    /// The first entry that a flush has not looked at.
    flushed: u32,
    /// Closed flows, in the order of their ends: entry, its uses, end.
    closed: VecDeque<(u32, u16, u64)>,
    counters: Counters,
    hasher: foldhash::fast::RandomState,
}

/// Slots of the index for so many flows: a third of them is always free.
fn slots(flows: u32) -> usize {
    (flows as usize * 3 / 2).max(16)
}

impl Table {
    /// An empty table. Its memory is set aside and taken as flows come: it is never moved, which would take time.
    pub fn new(limits: Limits) -> Table {
        Table::with(limits, false)
    }

    /// The same for flows of both directions: packets of a key and of its reverse belong to one flow (RFC 5103).
    pub fn both_ways(limits: Limits) -> Table {
        Table::with(limits, true)
    }

    fn with(limits: Limits, both_ways: bool) -> Table {
        let flows = limits.flows.clamp(1, MOST_FLOWS);
        let slots = slots(flows);
        let shortest = limits.idle_ns.min(limits.active_ns).min(limits.ended_ns.unwrap_or(u64::MAX));
        Table {
            limits: Limits { flows, ..limits },
            index: vec![0; slots],
            entries: Vec::with_capacity(flows as usize),
            backs: both_ways.then(|| Vec::with_capacity(flows as usize)),
            signs: None,
            free: NONE,
            live: 0,
            wheel: vec![NONE; WHEEL],
            tick_ns: (shortest / PER_TIMEOUT).clamp(1_000_000, 100_000_000),
            tick: 0,
            room: 0,
            flushed: 0,
            closed: VecDeque::new(),
            counters: Counters::default(),
            hasher: foldhash::fast::RandomState::default(),
        }
    }

    /// The same, with what test signatures say.
    pub fn with_signatures(self) -> Table {
        let signs = Some(Vec::with_capacity(self.limits.flows as usize));
        Table { signs, ..self }
    }

    /// Flows that are under way.
    pub fn len(&self) -> usize {
        self.live as usize
    }

    /// Is none?
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// What it did so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Bytes of memory that flows have taken, the index with them.
    pub fn bytes(&self) -> usize {
        let backs = self.backs.as_ref().map_or(0, Vec::len) * size_of::<Back>();
        let signs = self.signs.as_ref().map_or(0, Vec::len) * size_of::<Signs>();
        self.entries.len() * size_of::<Entry>() + self.index.len() * size_of::<u64>() + backs + signs
    }

    /// Where its large pieces of memory stand, and how many bytes each has, what is only set aside among them: for who can tell
    /// the kernel how they are used. They stay there as long as the table lives.
    pub fn memory(&self) -> impl Iterator<Item = (usize, usize)> {
        fn piece<T>(of: &Vec<T>) -> (usize, usize) {
            (of.as_ptr().addr(), of.capacity() * size_of::<T>())
        }
        let more = [self.backs.as_ref().map(piece), self.signs.as_ref().map(piece)];
        [piece(&self.index), piece(&self.entries)].into_iter().chain(more.into_iter().flatten())
    }

    /// Counts a packet. What has to make room for it goes to `over`.
    #[inline]
    pub fn add(&mut self, packet: &Packet, over: &mut impl FnMut(&Over)) {
        let hash = self.hash(&packet.key);
        self.add_hashed(hash, packet, over);
    }

    #[inline]
    fn add_hashed(&mut self, hash: u32, packet: &Packet, over: &mut impl FnMut(&Over)) {
        self.counters.packets += u64::from(packet.packets);
        if self.closed.front().is_some_and(|(_, _, end)| *end <= packet.at_ns) {
            self.end_closed(packet.at_ns, usize::MAX, over);
        }
        if self.backs.is_some() {
            return self.add_either_way(hash, packet, over);
        }
        if let Some((slot, at)) = self.find(hash, |key| *key == packet.key) {
            // Of a record whose time is over no more packets are counted, however late the wheel comes.
            let entry = self.entries.get(at as usize);
            let why = entry.and_then(|entry| over_for(entry, &self.limits, packet, entry.flow.octets));
            match why {
                None => return self.count(at, packet),
                Some(why) => self.end(slot, at, why, over),
            }
        }
        if self.live >= self.limits.flows {
            self.make_room(over);
        }
        self.begin(hash, packet);
    }

    /// The same of flows of both directions. It is not in the way of the others.
    #[inline(never)]
    fn add_either_way(&mut self, hash: u32, packet: &Packet, over: &mut impl FnMut(&Over)) {
        let (key, reversed) = (packet.key, packet.key.reversed());
        if let Some((slot, at)) = self.find(hash, |one| *one == key || *one == reversed) {
            let back =
                self.backs.as_ref().and_then(|backs| backs.get(at as usize)).map_or(0, |back| back.octets);
            let octets = |entry: &Entry| if entry.flow.key == key { entry.flow.octets } else { back };
            let entry = self.entries.get(at as usize);
            let why = entry.and_then(|entry| over_for(entry, &self.limits, packet, octets(entry)));
            match why {
                None => return self.count_either_way(at, packet),
                Some(why) => self.end(slot, at, why, over),
            }
        }
        if self.live >= self.limits.flows {
            self.make_room(over);
        }
        self.begin(hash, packet);
    }

    fn count_either_way(&mut self, at: u32, packet: &Packet) {
        let Some(entry) = self.entries.get_mut(at as usize) else { return };
        let back = self.backs.as_mut().and_then(|backs| backs.get_mut(at as usize));
        let Some(back) = back else { return };
        let forward = entry.flow.key == packet.key;
        if !forward {
            back.count(packet);
            // Timeouts are those of both directions.
            let [first, last] = entry.flow.times_ns;
            entry.flow.times_ns = [first.min(packet.at_ns), last.max(packet.at_ns)];
        } else {
            let [first, last] = back.forward_ns;
            back.forward_ns = [first.min(packet.at_ns), last.max(packet.at_ns)];
        }
        let other_flags = if forward { back.tcp_flags } else { entry.flow.tcp_flags };
        if forward {
            self.sum_up(at, packet);
        }
        // A connection is over when both ends have said so, or one cuts it off.
        if is_end(packet) && (packet.tcp_flags & RST != 0 || other_flags & FIN != 0) {
            self.foresee_end(at, packet);
        }
    }

    /// Of flows of both directions it is the same for both.
    #[inline]
    fn hash(&self, key: &Key) -> u32 {
        let hash = match &self.backs {
            None => self.hasher.hash_one(key),
            Some(_) => self.hasher.hash_one(key.canonical()),
        };
        (hash >> 32) as u32
    }

    /// The slot of the index that a search begins at.
    #[inline]
    fn home(&self, hash: u32) -> u32 {
        ((u64::from(hash) * self.index.len() as u64) >> 32) as u32
    }

    #[inline]
    fn after(&self, slot: u32) -> u32 {
        if slot as usize + 1 == self.index.len() { 0 } else { slot + 1 }
    }

    /// How far it is from a slot on to another one.
    fn far(&self, from: u32, to: u32) -> u32 {
        if to >= from { to - from } else { to + self.index.len() as u32 - from }
    }

    /// Where a flow stands in the index, and its entry.
    #[inline]
    fn find(&mut self, hash: u32, is: impl Fn(&Key) -> bool) -> Option<(u32, u32)> {
        let mut slot = self.home(hash);
        let mut steps = 0;
        loop {
            let word = *self.index.get(slot as usize)?;
            if word == 0 {
                return None;
            }
            let at = (word as u32).wrapping_sub(1);
            if (word >> 32) as u32 == hash && is(&self.entries.get(at as usize)?.flow.key) {
                return Some((slot, at));
            }
            slot = self.after(slot);
            steps += 1;
            if steps > self.counters.longest_search {
                self.counters.longest_search = steps;
            }
        }
    }

    #[inline]
    fn count(&mut self, at: u32, packet: &Packet) {
        self.sum_up(at, packet);
        if is_end(packet) {
            self.foresee_end(at, packet);
        }
    }

    #[inline]
    fn sum_up(&mut self, at: u32, packet: &Packet) {
        let Some(entry) = self.entries.get_mut(at as usize) else { return };
        let flow = &mut entry.flow;
        flow.packets += u64::from(packet.packets);
        flow.octets += packet.octets;
        // Several queues are not in the order of their times.
        flow.times_ns = [flow.times_ns[0].min(packet.at_ns), flow.times_ns[1].max(packet.at_ns)];
        flow.tcp_flags |= packet.tcp_flags;
        flow.ttl = [flow.ttl[0].min(packet.ttl), flow.ttl[1].max(packet.ttl)];
        let length = length(packet);
        flow.lengths = [flow.lengths[0].min(length), flow.lengths[1].max(length)];
        if let Some(sign) = packet.sign
            && let Some(signs) = self.signs.as_mut().and_then(|signs| signs.get_mut(at as usize))
        {
            signs.count(sign);
        }
    }

    /// A flow whose connection was closed ends soon.
    fn foresee_end(&mut self, at: u32, packet: &Packet) {
        let Some(entry) = self.entries.get_mut(at as usize) else { return };
        if let Some(ended_ns) = self.limits.ended_ns
            && entry.state & CLOSED == 0
        {
            entry.state |= CLOSED;
            let uses = entry.uses;
            self.close(at, uses, packet.at_ns.saturating_add(ended_ns));
        }
    }

    fn begin(&mut self, hash: u32, packet: &Packet) {
        let length = length(packet);
        let flow = Flow {
            key: packet.key,
            packets: packet.packets.into(),
            octets: packet.octets,
            times_ns: [packet.at_ns; 2],
            tcp_flags: packet.tcp_flags,
            ttl: [packet.ttl; 2],
            lengths: [length; 2],
            macs: packet.macs,
            mpls: packet.mpls,
            egress: packet.egress,
        };
        // Of both directions the other end has not closed yet.
        let ends = is_end(packet) && (self.backs.is_none() || packet.tcp_flags & RST != 0);
        let closed = self.limits.ended_ns.filter(|_| ends);
        let state = if closed.is_some() { LIVE | CLOSED } else { LIVE };
        let new = Entry { flow, next: NONE, before: NONE, uses: 0, state };
        let (at, uses) = match self.entries.get_mut(self.free as usize) {
            Some(entry) => {
                let (at, uses) = (self.free, entry.uses.wrapping_add(1));
                self.free = entry.next;
                *entry = Entry { uses, ..new };
                (at, uses)
            }
            None => {
                self.entries.push(new);
                ((self.entries.len() - 1) as u32, 0)
            }
        };
        if let Some(backs) = &mut self.backs {
            match backs.get_mut(at as usize) {
                Some(back) => *back = Back::of(packet),
                None => backs.push(Back::of(packet)),
            }
        }
        if let Some(signs) = &mut self.signs {
            let mut new = Signs::default();
            packet.sign.into_iter().for_each(|sign| new.count(sign));
            match signs.get_mut(at as usize) {
                Some(place) => *place = new,
                None => signs.push(new),
            }
        }
        let mut slot = self.home(hash);
        while self.index.get(slot as usize).is_some_and(|word| *word != 0) {
            slot = self.after(slot);
        }
        if let Some(word) = self.index.get_mut(slot as usize) {
            *word = u64::from(hash) << 32 | u64::from(at + 1);
        }
        self.live += 1;
        self.counters.begun += 1;
        self.counters.most = self.counters.most.max(self.live.into());
        if let Some(ended_ns) = closed {
            self.close(at, uses, packet.at_ns.saturating_add(ended_ns));
        }
        if self.live == 1 {
            // The wheel is empty: nothing is passed over.
            self.tick = self.tick.max(packet.at_ns / self.tick_ns);
        }
        self.stand(at);
    }

    /// Foresees the end of a flow that was closed.
    fn close(&mut self, at: u32, uses: u16, end_ns: u64) {
        // Those that ended otherwise before are forgotten now and then.
        if self.closed.len() > 2 * self.limits.flows as usize + 1024 {
            let entries = &self.entries;
            self.closed.retain(|(at, uses, _)| is_closed(entries, *at, *uses));
        }
        self.closed.push_back((at, uses, end_ns));
    }

    /// Puts an entry where it is to be looked at again: not before its end, and as near to it as the wheel reaches.
    fn stand(&mut self, at: u32) {
        let Some(entry) = self.entries.get_mut(at as usize) else { return };
        let [first, last] = entry.flow.times_ns;
        let end = last.saturating_add(self.limits.idle_ns).min(first.saturating_add(self.limits.active_ns));
        let tick = (end / self.tick_ns + 1).clamp(self.tick + 1, self.tick + WHEEL as u64 - 1);
        let slot = tick as usize % WHEEL;
        let Some(head) = self.wheel.get_mut(slot) else { return };
        let second = std::mem::replace(head, at);
        (entry.next, entry.before) = (second, NONE);
        entry.state = entry.state & !SLOT | slot as u16;
        if let Some(second) = self.entries.get_mut(second as usize) {
            second.before = at;
        }
    }

    /// Takes an entry out of the wheel.
    fn step_out(&mut self, at: u32) {
        let Some(entry) = self.entries.get(at as usize) else { return };
        let (next, before, slot) = (entry.next, entry.before, entry.state & SLOT);
        match self.entries.get_mut(before as usize) {
            Some(before) => before.next = next,
            None => {
                if let Some(head) = self.wheel.get_mut(usize::from(slot)) {
                    *head = next;
                }
            }
        }
        if let Some(next) = self.entries.get_mut(next as usize) {
            next.before = before;
        }
    }

    /// Ends records whose time is over at `now_ns`, at most `most` entries being looked at. True: there is more to do.
    pub fn expire(&mut self, now_ns: u64, most: usize, over: &mut impl FnMut(&Over)) -> bool {
        let mut left = most.saturating_sub(self.end_closed(now_ns, most, over));
        let until = now_ns / self.tick_ns;
        if self.is_empty() {
            self.tick = self.tick.max(until);
        }
        while self.tick < until {
            // After a pause longer than the wheel each slot is done once.
            self.tick = self.tick.max(until.saturating_sub(WHEEL as u64));
            let slot = self.tick as usize % WHEEL;
            while let Some(at) = self.wheel.get(slot).copied().filter(|at| *at != NONE) {
                if left == 0 {
                    return true;
                }
                left -= 1;
                match self.entries.get(at as usize).and_then(|entry| due(entry, &self.limits, now_ns)) {
                    Some(why) => self.leave(at, why, over),
                    None => {
                        self.step_out(at);
                        self.stand(at);
                    }
                }
            }
            self.tick += 1;
        }
        left == 0
    }

    /// Ends what was closed long enough ago; how many were looked at.
    fn end_closed(&mut self, now_ns: u64, most: usize, over: &mut impl FnMut(&Over)) -> usize {
        let mut done = 0;
        while let Some(&(at, uses, _)) =
            self.closed.front().filter(|(_, _, end)| *end <= now_ns && done < most)
        {
            done += 1;
            self.closed.pop_front();
            if is_closed(&self.entries, at, uses) {
                self.leave(at, Ended::Closed, over);
            }
        }
        done
    }

    /// Ends the record of an entry.
    fn leave(&mut self, at: u32, why: Ended, over: &mut impl FnMut(&Over)) {
        let Some(key) = self.entries.get(at as usize).map(|entry| entry.flow.key) else { return };
        let hash = self.hash(&key);
        if let Some((slot, at)) = self.find(hash, |one| *one == key) {
            self.end(slot, at, why, over);
        }
    }

    fn end(&mut self, slot: u32, at: u32, why: Ended, over: &mut impl FnMut(&Over)) {
        self.step_out(at);
        let Some(entry) = self.entries.get_mut(at as usize) else { return };
        let back = self.backs.as_ref().and_then(|backs| backs.get(at as usize)).copied();
        let times_ns = back.map_or(entry.flow.times_ns, |back| back.forward_ns);
        let signs = self.signs.as_ref().and_then(|signs| signs.get(at as usize)).copied();
        let signs = signs.filter(|signs| signs.packets > 0);
        over(&Over { flow: Flow { times_ns, ..entry.flow }, why, back, signs });
        (entry.state, entry.next) = (0, self.free);
        self.free = at;
        self.live -= 1;
        if let Some(count) = self.counters.over.get_mut(why as usize - 1) {
            *count += 1;
        }
        self.take_out(slot);
    }

    /// Makes a slot of the index free, and moves up what was put behind it.
    fn take_out(&mut self, mut hole: u32) {
        let mut at = hole;
        loop {
            at = self.after(at);
            let word = self.index.get(at as usize).copied().unwrap_or_default();
            if word == 0 {
                break;
            }
            let home = self.home((word >> 32) as u32);
            // Does it stand as far from its home as from the hole, or farther?
            if self.far(home, at) >= self.far(hole, at) {
                if let Some(free) = self.index.get_mut(hole as usize) {
                    *free = word;
                }
                hole = at;
            }
        }
        if let Some(free) = self.index.get_mut(hole as usize) {
            *free = 0;
        }
    }

    /// Ends the flow whose end is nearest, of those that are found quickly.
    fn make_room(&mut self, over: &mut impl FnMut(&Over)) {
        let mut nearest: Option<(u64, u32)> = None;
        let mut seen = 0;
        let from = self.room.max(self.tick);
        // Those before the place where the last one was found are fewer than a slot's, but for active timeouts.
        for tick in (from..self.tick + WHEEL as u64).chain(self.tick..from) {
            let mut at = self.wheel.get(tick as usize % WHEEL).copied().unwrap_or(NONE);
            while let Some(entry) = self.entries.get(at as usize).filter(|_| seen < TRIES) {
                seen += 1;
                let last = entry.flow.times_ns[1];
                if nearest.is_none_or(|(best, _)| last < best) {
                    nearest = Some((last, at));
                }
                at = entry.next;
            }
            if seen > 0 {
                self.room = tick;
                break;
            }
        }
        if let Some((_, at)) = nearest {
            self.leave(at, Ended::NoRoom, over);
        }
    }

    /// Ends all records, at most `most` at once. True: there are more.
    pub fn flush(&mut self, most: usize, over: &mut impl FnMut(&Over)) -> bool {
        let mut left = most;
        while !self.is_empty() {
            let at = self.flushed;
            match self.entries.get(at as usize) {
                Some(entry) if entry.is_live() => {
                    if left == 0 {
                        return true;
                    }
                    left -= 1;
                    self.leave(at, Ended::Forced, over);
                }
                Some(_) => {}
                // Others began since.
                None => self.flushed = 0,
            }
            if at == self.flushed {
                self.flushed += 1;
            }
        }
        self.flushed = 0;
        false
    }
}

/// Is this the flow that was closed, and is it still under way?
fn is_closed(entries: &[Entry], at: u32, uses: u16) -> bool {
    let same = |entry: &Entry| entry.uses == uses && entry.state & (LIVE | CLOSED) == LIVE | CLOSED;
    entries.get(at as usize).is_some_and(same)
}

/// Why its record is over at this time, if it is.
#[inline]
fn due(entry: &Entry, limits: &Limits, now_ns: u64) -> Option<Ended> {
    let [first, last] = entry.flow.times_ns;
    if now_ns >= last.saturating_add(limits.idle_ns) {
        return Some(Ended::Idle);
    }
    (now_ns >= first.saturating_add(limits.active_ns)).then_some(Ended::Active)
}

/// Why its record is over for this packet, if it is: of its direction it has so many octets.
#[inline]
fn over_for(entry: &Entry, limits: &Limits, packet: &Packet, octets: u64) -> Option<Ended> {
    let is_full = octets.saturating_add(packet.octets) > limits.octets;
    due(entry, limits, packet.at_ns).or(is_full.then_some(Ended::Full))
}

#[inline]
fn is_end(packet: &Packet) -> bool {
    packet.tcp_flags & ENDING != 0 && packet.key.protocol() == protocol::TCP
}

/// Of one packet; of several that were joined, of an average one.
#[inline]
fn length(packet: &Packet) -> u16 {
    u16::try_from(packet.octets / u64::from(packet.packets.max(1))).unwrap_or(u16::MAX)
}

mod batch;
#[cfg(test)]
mod tests;
