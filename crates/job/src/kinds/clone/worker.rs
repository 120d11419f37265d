//! A thread that copies: frames of a ring or of captures go to `clone::table`, what comes of them to `copies`. Each thread has
//! sessions of its own; the kernel shares out an interface's frames by connection, and of captures each thread reads all and takes
//! its share.

use super::ceiling::{Ceiling, Order, cpu_time};
use super::copies::{Copies, RING, Side, now_real};
use super::listen::{Batch, Inlet};
use anyhow::{Context, Result};
use capture::Reader;
use clone::exchange::Comparison;
use clone::fragments::Fragments;
use clone::funnel::{Frames, Funnel};
use clone::packet::{NoSegment, read};
use clone::remote::record::{self, Record};
use clone::sample::{self, siphash};
use clone::table::{Event, Table};
use port::rx::{Kind, Rx};
use rustix::event::epoll;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use traffic::schedule::Speed;
use wire::LinkType;
use wire::flow::FlowKey;

/// The longest that nothing is looked at.
const PATIENCE: Duration = Duration::from_millis(20);
/// After some frames it rests for a moment: what comes meanwhile is taken together, and waking up for each would cost more than all
/// else. It is a part of the delay.
const NAP: Duration = Duration::from_micros(40);
/// With more than these at once there is no rest.
const FEW: usize = 64;
/// Batches of captures on other hosts that are taken before copies are looked at.
const AT_ONCE: usize = 16;
/// How long what was captured before the end may take, at most.
const LAST: Duration = Duration::from_millis(500);
const TICK_NS: u64 = 10_000_000;
const TOLD_NS: u64 = 50_000_000;
const SWEEP_NS: u64 = 10_000_000_000;
/// When nothing more is captured, copies have so long to say the rest and hear the answers.
pub const DRAIN_NS: u64 = 3_000_000_000;
/// The same of captures, which are to be said whole.
pub const DRAIN_CAPTURE_NS: u64 = 15_000_000_000;

/// How a thread stands.
#[derive(Debug, Clone, Copy, Default)]
pub struct Standing {
    pub funnel: Funnel,
    pub dropped: u64,
    pub open: u64,
    pub compared: u64,
    pub different: u64,
}

/// What a thread found.
#[derive(Debug, Default)]
pub struct Done {
    pub funnel: Funnel,
    pub dropped: u64,
    pub comparison: Comparison,
    /// Of the second target.
    pub noise: Comparison,
    pub cpu_ns: u64,
    pub fault: Option<String>,
    /// Sessions that captures on other hosts said they did not forward, where it listens for such.
    pub not_forwarded: Option<u64>,
    /// Connections of captures on other hosts that were not let in,
    pub turned_away: u64,
    /// and what of all of them does not add up.
    pub contradiction: Option<String>,
    /// It was told to end before its captures were read.
    pub unread: bool,
}

impl Done {
    /// What it had counted is lost with it.
    pub fn panicked() -> Done {
        let said =
            "a thread that copied panicked, and what it had counted is lost: this is a defect of netdyno";
        Done { fault: Some(said.to_owned()), ..Done::default() }
    }
}

/// What a thread shares with who watches it.
#[derive(Debug, Clone, Default)]
pub struct Shared {
    pub standing: Arc<Mutex<Standing>>,
    pub over: Arc<AtomicBool>,
    /// It has nothing more to do.
    pub done: Arc<AtomicBool>,
    /// The target is out of reach: nothing more is said to it.
    pub lost: Arc<AtomicBool>,
}

/// Which sessions are whose, where a program shares them out by their hash. Pieces of packets all go to the first, because they have no
/// ports.
#[derive(Debug, Clone, Copy)]
pub struct Share {
    /// The server's.
    pub port: u16,
    pub seed: u64,
    pub lane: u64,
    pub lanes: u64,
}

impl Share {
    fn has(&self, flow: &FlowKey) -> bool {
        let client = if flow.destination_port() == self.port { *flow } else { flow.reversed() };
        sample::lane(sample::session(self.seed, &client), self.lanes) == self.lane
    }
}

#[derive(Debug)]
pub struct Worker {
    table: Table,
    copies: Copies,
    frames: Frames,
    fragments: Fragments,
    shared: Shared,
    ceiling: Ceiling,
    share: Option<Share>,
    told_ns: u64,
    looked_ns: u64,
    swept_ns: u64,
    dropped: u64,
    /// Frames are counted by who captures them.
    remote: bool,
}

/// The end of whoever takes what was captured before he was told to end: a busy machine is behind.
#[derive(Debug, Default)]
pub(super) struct Ending(Option<Instant>);

impl Ending {
    /// Told to end: has it taken long enough since it was told first?
    pub(super) fn is_due(&mut self) -> bool {
        let now = Instant::now();
        now >= *self.0.get_or_insert(now + LAST)
    }

    pub(super) fn has_begun(&self) -> bool {
        self.0.is_some()
    }
}

impl Worker {
    pub fn new(table: Table, copies: Copies, shared: Shared, ceiling: Ceiling) -> Worker {
        Worker {
            table,
            copies,
            frames: Frames::default(),
            fragments: Fragments::default(),
            shared,
            ceiling,
            share: None,
            told_ns: 0,
            looked_ns: 0,
            swept_ns: now_real(),
            dropped: 0,
            remote: false,
        }
    }

    /// A frame of those that are this thread's.
    fn frame(&mut self, link: LinkType, bytes: &[u8], length: usize, now_ns: u64) {
        self.frames.captured += 1;
        match read(link, bytes, length) {
            Ok(segment) => {
                let Worker { table, copies, .. } = self;
                table.segment(&segment, now_ns, &mut |id, event| copies.event(id, event, now_ns));
            }
            Err(NoSegment::Other) => self.frames.other_protocols += 1,
            Err(NoSegment::Fragment) => self.fragment(link, bytes, now_ns),
            Err(NoSegment::Malformed) => self.frames.malformed += 1,
        }
    }

    /// A piece of a packet: once all are there, the packet is read as if it had come in one frame.
    fn fragment(&mut self, link: LinkType, bytes: &[u8], now_ns: u64) {
        self.frames.fragments += 1;
        let Some(whole) = self.fragments.take(link, bytes, now_ns) else { return };
        let read = read(LinkType::ETHERNET, &whole.frame, whole.frame.len());
        if let (Some(share), Ok(segment)) = (&self.share, &read)
            && !share.has(&segment.flow)
        {
            // Another thread has its session, and lacks this.
            return;
        }
        self.frames.fragments -= whole.frames;
        self.frames.joined += whole.frames - 1;
        match read {
            Ok(segment) => {
                let Worker { table, copies, .. } = self;
                table.segment(&segment, now_ns, &mut |id, event| copies.event(id, event, now_ns));
            }
            Err(_) => self.frames.malformed += 1,
        }
    }

    fn funnel(&self) -> Funnel {
        let Frames { captured, other_protocols, fragments, joined, malformed, .. } = self.frames;
        let [first, second] = &self.copies.sides;
        let frames = Frames { captured, other_protocols, fragments, joined, malformed, ..self.table.frames };
        // The captures' own account has the rest.
        let urgent = Frames { urgent: self.table.frames.urgent, ..Frames::default() };
        Funnel {
            frames: if self.remote { urgent } else { frames },
            sessions: self.table.counts,
            bytes: self.table.bytes,
            copies: first.counted,
            said: first.said,
            second_copies: second.counted,
            second_said: second.said,
        }
    }

    fn tell(&mut self, now_ns: u64) {
        self.told_ns = now_ns;
        let [Side { comparison: of, .. }, _] = &self.copies.sides;
        let standing = Standing {
            funnel: self.funnel(),
            dropped: self.dropped,
            open: self.table.open() as u64,
            compared: of.compared,
            different: of.different(),
        };
        *self.shared.standing.lock().unwrap_or_else(PoisonError::into_inner) = standing;
    }

    /// What is due by `now_ns`, which is the capture's time; copies have this host's.
    fn tick(&mut self, now_ns: u64) {
        let Worker { table, copies, .. } = self;
        if now_ns.saturating_sub(self.looked_ns) >= TICK_NS {
            self.looked_ns = now_ns;
            table.look(now_ns, &mut |id, event| copies.event(id, event, now_ns));
            if let Some(order) = self.ceiling.look() {
                table.hold_back(order != Order::Go);
                if order == Order::Shed {
                    let count = table.open().div_ceil(10);
                    table.shed(count, &mut |id, event| copies.event(id, event, now_ns));
                }
            }
        }
        if now_ns.saturating_sub(self.swept_ns) >= SWEEP_NS {
            self.swept_ns = now_ns;
            table.sweep(now_ns, &mut |id, event| copies.event(id, event, now_ns));
        }
        if now_ns.saturating_sub(self.told_ns) >= TOLD_NS {
            self.tell(now_ns);
        }
    }

    /// How long it may wait for something to happen.
    fn patience(&mut self, now_ns: u64) -> Duration {
        let next = self.copies.timers(now_ns);
        next.map_or(PATIENCE, |at| Duration::from_nanos(at.saturating_sub(now_ns)).min(PATIENCE))
    }

    /// Copies what a ring has, until it is over. Frames of a loopback come twice: as they leave they are passed over. `share`: which of
    /// the sessions with fragments are this thread's; without it all that it sees.
    pub fn live(mut self, mut ring: impl Rx, loopback: bool, share: Option<Share>) -> Done {
        self.share = share;
        let mut fault = None;
        let events = &mut room();
        let data = epoll::EventData::new_u64(RING);
        let mut deaf = epoll::add(self.copies.epoll(), &ring, data, epoll::EventFlags::IN).is_err();
        let mut counted_ns = 0;
        let mut woken = false;
        let mut ending = Ending::default();
        loop {
            // What came before the end is copied, unless nothing may be.
            if self.shared.over.load(Relaxed) && (ending.is_due() || deaf || self.shared.lost.load(Relaxed)) {
                break;
            }
            // A ring that is ready and has nothing has an error (the interface went down), which is taken by waiting for it; else
            // it would be ready for ever.
            let patience = if deaf || woken { Duration::from_millis(1) } else { Duration::ZERO };
            let count = match ring.advance(patience) {
                Ok(count) => count,
                Err(error) => {
                    fault.get_or_insert_with(|| error.to_string());
                    // It may come back.
                    deaf = true;
                    std::thread::sleep(PATIENCE);
                    0
                }
            };
            for frame in ring.frames() {
                if !(loopback && frame.kind == Kind::Outgoing) {
                    self.frame(LinkType::ETHERNET, frame.bytes, frame.length, frame.stamp.ns);
                }
            }
            ring.give_back();
            if count == 0 && ending.has_begun() {
                break;
            }
            let now_ns = now_real();
            self.tick(now_ns);
            if now_ns.saturating_sub(counted_ns) > TOLD_NS {
                counted_ns = now_ns;
                self.dropped = ring.counters().dropped;
            }
            let patience = self.patience(now_ns);
            if count == 0 {
                woken = self.copies.wait(events, patience);
            } else {
                woken = self.copies.wait(events, Duration::ZERO);
                if count < FEW {
                    std::thread::sleep(NAP);
                }
            }
        }
        self.dropped = ring.counters().dropped;
        let _ = epoll::delete(self.copies.epoll(), &ring);
        drop(ring);
        self.finish(DRAIN_NS, fault)
    }

    /// Copies what captures on other hosts say, until it is over.
    pub fn remote(mut self, inlet: &Inlet) -> Done {
        self.remote = true;
        let events = &mut room();
        let data = epoll::EventData::new_u64(RING);
        let heard = epoll::add(self.copies.epoll(), &inlet.bell, data, epoll::EventFlags::IN);
        let fault = heard.err().map(|errno| errno.to_string());
        while !self.shared.over.load(Relaxed) {
            inlet.quiet();
            let mut count = 0;
            while count < AT_ONCE && self.batch(inlet) {
                count += 1;
            }
            let now_ns = now_real();
            self.tick(now_ns);
            let patience = self.patience(now_ns);
            self.copies.wait(events, if count == AT_ONCE { Duration::ZERO } else { patience });
        }
        // What has come before the end counts.
        while self.batch(inlet) {}
        let _ = epoll::delete(self.copies.epoll(), &inlet.bell);
        self.finish(DRAIN_NS, fault)
    }

    /// Takes what a capture said, if there is something.
    fn batch(&mut self, inlet: &Inlet) -> bool {
        let Some(batch) = inlet.take() else { return false };
        let Worker { table, copies, .. } = self;
        let now_ns = now_real();
        let emit = &mut |id, event: Event<'_>| copies.event(id, event, now_ns);
        match batch {
            Batch::Records { origin, shift, bytes } => {
                table.comes_from(origin);
                let mut reader = record::Reader(&bytes);
                while let Ok(Some(record)) = reader.record() {
                    match record {
                        Record::Segment { at_ns, segment } => {
                            let at_ns = at_ns.wrapping_add(shift).min(now_ns);
                            let emit = &mut |id, event: Event<'_>| copies.event(id, event, at_ns);
                            table.segment(&segment, at_ns, emit);
                        }
                        Record::Shed(flow) => {
                            table.abandon(&flow, now_ns, &mut |id, event| copies.event(id, event, now_ns));
                        }
                        _ => {}
                    }
                }
            }
            Batch::Lost(origin) => table.abandon_all(origin, now_ns, emit),
            Batch::Ended(origin) => table.finish_from(origin, emit),
        }
        true
    }

    /// It cannot begin.
    pub fn fail(self, fault: String) -> Done {
        self.finish(0, Some(fault))
    }

    /// Copies what captures have, at their own time or faster; of their connections the `lane`th of `lanes` shares.
    pub fn captures(mut self, readers: Vec<Reader>, speed: Speed, (lane, lanes): (u64, u64)) -> Done {
        let start_ns = now_real();
        let mut first_ns = None;
        let (mut fault, mut unread) = (None, false);
        for mut reader in readers {
            match self.capture(&mut reader, speed, (lane, lanes), start_ns, &mut first_ns) {
                Ok(read) => unread |= !read,
                Err(error) => {
                    fault.get_or_insert_with(|| format!("{error:#}"));
                }
            }
        }
        Done { unread, ..self.finish(DRAIN_CAPTURE_NS, fault) }
    }

    /// False: it was told to end before the capture did.
    fn capture(
        &mut self,
        reader: &mut Reader,
        speed: Speed,
        (lane, lanes): (u64, u64),
        start_ns: u64,
        first_ns: &mut Option<u64>,
    ) -> Result<bool> {
        let events = &mut room();
        while let Some(record) = reader.next_record().context("reading the capture")? {
            let first = *first_ns.get_or_insert(record.time_ns);
            let passed = u128::from(record.time_ns.saturating_sub(first));
            let due = passed * u128::from(speed.denominator) / u128::from(speed.numerator.max(1));
            let due_ns = start_ns.saturating_add(u64::try_from(due).unwrap_or(u64::MAX));
            loop {
                let now_ns = now_real();
                if self.shared.over.load(Relaxed) {
                    return Ok(false);
                }
                let left = Duration::from_nanos(due_ns.saturating_sub(now_ns));
                let patience = self.patience(now_ns).min(left);
                self.copies.wait(events, patience);
                if left.is_zero() {
                    break;
                }
                self.tick(now_ns);
            }
            if mine(record.link, record.data, lane, lanes) {
                self.frame(record.link, record.data, record.wire_len as usize, due_ns);
            }
            self.tick(due_ns);
        }
        Ok(true)
    }

    /// Nothing more is captured: sessions end as they stand, and their copies say what is left.
    fn finish(mut self, drain_ns: u64, fault: Option<String>) -> Done {
        let start_ns = now_real();
        let events = &mut room();
        let Worker { table, copies, .. } = &mut self;
        table.finish(start_ns, &mut |id, event| copies.event(id, event, start_ns));
        loop {
            let now_ns = now_real();
            let is_late = now_ns.saturating_sub(start_ns) > drain_ns;
            if self.copies.len() == 0 || is_late || self.shared.lost.load(Relaxed) {
                break;
            }
            let patience = self.patience(now_ns);
            self.copies.wait(events, patience);
            if now_ns.saturating_sub(self.told_ns) >= TOLD_NS {
                self.tell(now_ns);
            }
        }
        self.copies.end();
        self.tell(now_real());
        let cpu_ns = cpu_time().as_nanos() as u64;
        let funnel = self.funnel();
        self.shared.done.store(true, Relaxed);
        let [first, second] = self.copies.sides;
        let noise = second.comparison;
        let (dropped, comparison) = (self.dropped, first.comparison);
        Done { funnel, dropped, comparison, noise, cpu_ns, fault, ..Done::default() }
    }
}

/// For events that are reported at once.
fn room() -> Vec<epoll::Event> {
    Vec::with_capacity(512)
}

/// Both directions of a connection are the same thread's; what is no connection is the first one's.
fn mine(link: LinkType, frame: &[u8], lane: u64, lanes: u64) -> bool {
    if lanes == 1 {
        return true;
    }
    let layers = wire::layers::Layers::parse(link, frame);
    let Some(flow) = wire::flow::FlowKey::of(&layers, frame).key() else { return lane == 0 };
    lane_of(&flow, lanes) == lane
}

/// Whose a connection is.
pub fn lane_of(flow: &FlowKey, lanes: u64) -> u64 {
    let flow = flow.conversation();
    let ports = [flow.source_port().to_be_bytes(), flow.destination_port().to_be_bytes()].concat();
    let addresses = format!("{} {}", flow.source(), flow.destination());
    siphash([7, 7], &[ports, addresses.into_bytes()].concat()) % lanes.max(1)
}
