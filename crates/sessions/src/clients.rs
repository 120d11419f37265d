//! The clients as their users see them: attach, find the way out, run a load, look at the counts, finish.

use crate::SessionsError;
use crate::attach::{Attached, attach, groups};
use crate::layout::{Counts, LISTED, control};
use crate::loader::{self, LoadedClients};
use crate::sweep::{Slot, Task, ticks};
use crate::turn::Turn;
use bpf::{Program, Run};
use engine::{Had, Priority};
use histogram::Histogram;
use rustix::io::Errno;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use xdp::spare::{self, Known};
use xdp::way::Way;

/// Who connects where, and what is said.
#[derive(Debug, Clone)]
pub struct Options {
    /// All that is sent goes there.
    pub server: SocketAddr,
    /// The interface's own Ethernet address.
    pub own: [u8; 6],
    /// The interface's own address, for which the host itself answers ARP or neighbour solicitations.
    pub host: Option<IpAddr>,
    /// The clients' first address, of the server's family. Of IPv6 they differ in the last 32 bits.
    pub first_address: IpAddr,
    /// How many of them there are.
    pub addresses: u32,
    /// The first of their ports; each address has those that the slots need.
    pub first_port: u16,
    /// Connections that can be remembered at a time, each with a tuple of its own.
    pub slots: u32,
    /// Datagrams of UDP instead of TCP connections: the request is one, see [`crate::datagram`].
    pub udp: bool,
    /// Of UDP: when all are used again, the server sends to each what it is asked for through another session.
    pub from_server: bool,
    /// What each connection asks, up to 1,460 bytes.
    pub request: Vec<u8>,
    /// And how often, one request after the answer to the last.
    pub requests: u32,
    /// Between an answer and the next request.
    pub think: Duration,
    /// Who closes when all is answered.
    pub close: Close,
    /// When all is answered, connections are held open.
    pub holds: bool,
    /// The longest segment that the server may send.
    pub mss: u16,
    /// The control word of the VLAN tag of all frames, if they have one. Frames of other VLANs are left to the host.
    pub tag: Option<u16>,
    /// What is not answered is sent again after this time, then after twice that, and so on.
    pub retransmit_after: Duration,
    /// A connection that is not over after this time has failed.
    pub timeout: Duration,
    /// Attach in the kernel's receive path although the driver can do better.
    pub generic: bool,
}

/// Who closes a connection, and how (`enum session_close`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Close {
    /// The server, as it is asked to.
    #[default]
    Server = 0,
    /// The client, by a FIN.
    Fin = 1,
    /// The client, by a RST.
    Rst = 2,
}

/// How many connections are opened, and when.
#[derive(Debug, Clone, Copy, Default)]
pub struct Load {
    /// The Ethernet address of the next hop to the server. It is found out when answers can arrive already.
    pub next_hop: [u8; 6],
    /// Connections a second, open loop; `None`: as fast as it goes.
    pub rate: Option<u64>,
    /// In all.
    pub count: Option<u64>,
    /// Opened for so long.
    pub duration: Option<Duration>,
    /// No more than so many at a time; of connections that are held: that are opened, used again or closed at a time.
    pub in_flight: Option<u64>,
    /// Connections are held for so long once all are open; `None`: until it is told to stop.
    pub hold: Option<Duration>,
    /// After that each is asked once more.
    pub use_again: bool,
    /// Before whom the sending thread goes.
    pub priority: Priority,
}

/// Where a running load is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Course {
    /// Connections are opened.
    Opening,
    /// All were opened, and not all are held.
    Settling,
    /// All that did not fail are held.
    Holding,
    /// Each is asked once more.
    Using,
    /// They are closed.
    Closing,
    /// None is opened any more; those that were go on.
    Draining,
    /// All that are left are ended.
    Abandoning,
}

/// What a run came to beside the counts.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ran {
    /// When it began, by CLOCK_MONOTONIC, and how long connections were opened; by a schedule, until the one after the last would have been
    /// due, because ten connections of 10 a second are a second's, and the last of them is opened after 0.9 s.
    pub started_ns: u64,
    /// See `started_ns`.
    pub opening_ns: u64,
    /// Until all were over.
    pub duration_ns: u64,
    /// Connections that were held when all had been opened, and how long that took.
    pub held: u64,
    /// See `held`.
    pub settled_ns: u64,
    /// Of those, sessions whose answers had no cookie: their server sends no relays, and none of all was used again.
    pub without_cookie: u64,
    /// How long it took to use all again.
    pub using_ns: u64,
    /// How long it took to close all that were held.
    pub closing_ns: u64,
    /// Before whom the thread that sent went, at the most.
    pub had: Had,
    /// CPU time of the thread that sent, with what arrived and was answered on its core.
    pub cpu_ns: u64,
    /// Connections opened more than a millisecond after they were due.
    pub late: u64,
    /// Times that the next tuple was passed over because its last connection was not over.
    pub busy: u64,
    /// It was told to stop before its end.
    pub stopped: bool,
}

/// Clients on an interface. Nothing of them outlives this or its process.
#[derive(Debug)]
pub struct Clients {
    attached: Attached<LoadedClients>,
    /// Keeps an interface taking solicitations for the clients' addresses, which go to groups.
    _groups: Option<OwnedFd>,
    /// The program that sends, known to the kernel's dispatcher.
    _known: Known,
    options: Options,
}

/// Frames of a call that are handed to the driver together.
const BATCH: u32 = 64;
/// Longer than any frame that is sent, so that each is cut: the kernel looks at a page's length only if the program changed it, and who
/// answers in place leaves another one.
const FRAME: usize = 2048;
/// Runs of a call at top speed, and where the next connection is awaited: some hundred microseconds.
const RUNS: u32 = 4096;
/// A gap longer than this is slept in, until so long before its end.
const WORTH_SLEEPING_NS: u64 = 400_000;
const MARGIN_NS: u64 = 200_000;
/// The same of a thread that goes before others, which is woken in time and leaves them what it can, and the runs of its calls, where there
/// are gaps to leave: 50,000 connections/s with calls as short were late four times of five.
const SPARSE: u64 = 5_000;
const WORTH_SLEEPING_THERE_NS: u64 = 100_000;
const MARGIN_THERE_NS: u64 = 50_000;
const RUNS_THERE: u32 = 1024;
/// No longer than this, since a request may be deferred meanwhile.
const NAP: Duration = Duration::from_millis(1);
/// The slots are looked through at least so rarely, and so many times as rarely as it takes.
const SWEEP_NS: u64 = 10_000_000;
const SWEEP_SHARE: u64 = 20;
/// Who is told to stop lets connections finish for so long.
const GRACE_NS: u64 = 500_000_000;
/// And closes what it holds for so long.
const CLOSING_NS: u64 = 1_200_000_000;
/// Held connections that are asked or closed at a time where nothing else was said: a veth has room for 256 frames.
const AT_ONCE: u64 = 100;
/// By a schedule no more at a time, so that a delay is not made good at once.
const BURST: u64 = 64;
const LOOK_AT_LINK: Duration = Duration::from_millis(100);

impl Clients {
    /// Attaches the program that takes answers on `interface` of the calling thread's network namespace.
    ///
    /// # Errors
    /// That the kernel does not load or attach the programs, or the interface is not there.
    pub fn attach(interface: &str, options: Options) -> Result<Clients, SessionsError> {
        let load = |redirect_to| loader::clients(&options, redirect_to);
        let attached =
            attach(interface, "open sessions", options.generic, load, |loaded: &LoadedClients| {
                &loaded.client
            })?;
        let known = spare::attach(&attached.loaded.open)?;
        let groups = if options.server.is_ipv6() { groups(interface)? } else { None };
        Ok(Clients { attached, _groups: groups, _known: known, options })
    }

    /// The loaded programs and their memory, for test runs.
    #[cfg(test)]
    pub(crate) fn loaded(&self) -> &LoadedClients {
        &self.attached.loaded
    }

    /// Whether answers are taken in the driver.
    pub fn is_native(&self) -> bool {
        self.attached.native
    }

    /// How answers are taken and why not in a better way, for a person.
    pub fn reason(&self) -> &str {
        &self.attached.reason
    }

    /// False once the interface was removed, or somebody detached the program by force.
    pub fn is_attached(&self) -> bool {
        self.attached.link.is_attached()
    }

    /// The sums up to now.
    pub fn counts(&self) -> Counts {
        Counts::over(&self.attached.loaded.counts)
    }

    /// Connections that are neither over nor free, as their slots say.
    pub fn open(&self) -> u64 {
        let slots = &self.attached.loaded.slots;
        let open =
            (0..slots.len()).filter(|at| Slot::read(|word| slots.word(*at, word).unwrap_or(0)).is_some());
        open.count() as u64
    }

    /// Slots that were used or passed over in all runs, one after the other.
    pub fn passed(&self) -> u64 {
        let control = &self.attached.loaded.control;
        control.load(control::OPENED).saturating_add(control.load(control::BUSY))
    }

    /// Passes over so many tuples, before the first run: a device may know them still.
    pub fn skip(&self, tuples: u64) {
        let control = &self.attached.loaded.control;
        control.store(control::SLOT, tuples % u64::from(self.options.slots.max(1)));
        control.store(control::BUSY, tuples);
    }

    /// Times until connections stood, and from their requests to the ends of their answers.
    pub fn times(&self) -> [Histogram; 2] {
        [0, 1].map(|which| {
            let times = &self.attached.loaded.times;
            let mut all = Histogram::new();
            for cpu in 0..times.len() / 2 {
                let Some(kept) = times.get_boxed(2 * cpu + which) else { continue };
                let counted = Histogram::from_counts(&kept.buckets, kept.sum.into(), 0, u64::MAX);
                // The least is known to the width of its bucket.
                let least = counted.buckets().next().map_or(0, |bucket| bucket.from);
                all.merge(&Histogram::from_counts(&kept.buckets, kept.sum.into(), least, kept.max));
            }
            all
        })
    }

    /// Opens connections as `load` says and carries them to their ends, in the calling thread, which moves to where the interface is
    /// and must end there. When `stop` is set it ends in order: what does not finish soon is closed by a RST. Run again, tuples go on where those of
    /// the last run ended, and [`Clients::counts`] are of all runs.
    ///
    /// # Errors
    /// That the interface went, or the kernel no longer runs the program.
    pub fn run(&self, way: &Way, load: &Load, stop: &AtomicBool) -> Result<Ran, SessionsError> {
        let (gone, over) = (AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let watch = scope.spawn(|| self.watch(way, &gone, &over));
            let ran = way
                .enter()
                .map_err(|error| SessionsError::System { what: "entering the network namespace", error })
                .and_then(|()| Sender::new(self, way, *load).run(stop, &gone));
            over.store(true, Relaxed);
            watch.thread().unpark();
            ran
        })
    }

    /// Looks now and then whether the interface is there and up, and the program attached. In a thread of its own: whoever asks for a link waits
    /// for all that is done with any link of the machine, and connections would be late for it.
    fn watch(&self, way: &Way, gone: &AtomicBool, over: &AtomicBool) {
        loop {
            std::thread::park_timeout(LOOK_AT_LINK);
            if over.load(Relaxed) {
                return;
            }
            if way.is_up() != Some(true) || !self.is_attached() {
                gone.store(true, Relaxed);
                return;
            }
        }
    }
}

/// The thread that sends.
struct Sender<'a> {
    clients: &'a Clients,
    way: &'a Way,
    load: Load,
    course: Course,
    ran: Ran,
    /// Connections that earlier runs opened.
    before: u64,
    /// Slots that they used or passed over, and the first of this run.
    passed_before: u64,
    first: usize,
    next_sweep_ns: u64,
    /// Where the next sweep goes on, if there was more than can be listed.
    sweep_from: usize,
    stopped_ns: Option<u64>,
    walk: Walk,
    frame: Vec<u8>,
}

/// Through all that are held, which are asked again or closed.
#[derive(Debug, Default)]
struct Walk {
    /// When it began.
    since_ns: u64,
    /// The next slot.
    at: usize,
    /// How many were listed in all, and since the first slot.
    listed: u64,
    of_pass: u64,
    /// When the first slot is looked at again.
    next_ns: u64,
}

fn clock() -> u64 {
    clocks::monotonic()
}

impl<'a> Sender<'a> {
    fn new(clients: &'a Clients, way: &'a Way, load: Load) -> Sender<'a> {
        Sender {
            clients,
            way,
            load,
            course: Course::Opening,
            ran: Ran::default(),
            before: 0,
            passed_before: 0,
            first: 0,
            next_sweep_ns: 0,
            sweep_from: 0,
            stopped_ns: None,
            walk: Walk::default(),
            frame: vec![0; FRAME],
        }
    }

    fn word(&self, at: usize) -> u64 {
        self.clients.attached.loaded.control.load(at)
    }

    fn put(&self, at: usize, value: u64) {
        self.clients.attached.loaded.control.store(at, value);
    }

    fn run(mut self, stop: &AtomicBool, gone: &AtomicBool) -> Result<Ran, SessionsError> {
        let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        let mut turn = Turn::take(self.load.priority);
        // Of earlier runs.
        let (late, busy) = (self.word(control::LATE), self.word(control::BUSY));
        self.begin();
        loop {
            turn.look(clock());
            let now = clock();
            self.follow(now, stop.load(Relaxed));
            if self.course != Course::Opening && self.word(control::ENDED) >= self.word(control::OPENED) {
                break;
            }
            if gone.load(Relaxed) {
                return Err(SessionsError::Gone(self.way.target.name.clone()));
            }
            if now >= self.next_sweep_ns {
                self.sweep(now)?;
            }
            if !self.walks(now)? {
                self.send(now, turn.had() == Had::RealTime)?;
            }
        }
        if self.course == Course::Closing {
            self.end_walk(clock());
        }
        let after = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        let ns = |time: rustix::time::Timespec| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
        self.ran.cpu_ns = ns(after).saturating_sub(ns(cpu));
        self.ran.had = turn.had();
        self.ran.duration_ns = clock().saturating_sub(self.ran.started_ns);
        self.ran.late = self.word(control::LATE).saturating_sub(late);
        self.ran.busy = self.word(control::BUSY).saturating_sub(busy);
        Ok(self.ran)
    }

    fn begin(&mut self) {
        self.ran.started_ns = clock();
        let [a, b, c, d, e, f] = self.load.next_hop;
        self.put(control::NEXT_MAC, u64::from_ne_bytes([a, b, c, d, e, f, 0, 0]));
        self.put(control::IN_FLIGHT, self.load.in_flight.unwrap_or(0));
        // Without a rate there is no gap, whatever an earlier run had.
        let (gap, rest, parts) = match self.load.rate.filter(|rate| *rate > 0) {
            Some(rate) => (1_000_000_000 / rate, 1_000_000_000 % rate, rate),
            None => (0, 0, 0),
        };
        self.put(control::GAP_NS, gap);
        self.put(control::GAP_PART, rest);
        self.put(control::GAP_PARTS, parts);
        self.put(control::DUE_NS, self.ran.started_ns);
        // Counted from the first run on.
        self.before = self.word(control::OPENED);
        self.passed_before = self.clients.passed();
        self.first = usize::try_from(self.word(control::SLOT)).unwrap_or(0);
        self.put(control::LIMIT, self.before.saturating_add(self.limit()));
    }

    /// Connections that are opened at most: by count, and of a schedule those that are due within the time.
    fn limit(&self) -> u64 {
        let due = self.load.rate.zip(self.load.duration).map(|(rate, time)| {
            let due = (u128::from(rate) * time.as_nanos()).div_ceil(1_000_000_000);
            u64::try_from(due).unwrap_or(u64::MAX)
        });
        self.load.count.into_iter().chain(due).min().unwrap_or(u64::MAX)
    }

    /// Goes from opening to draining, and from there to ending what is left.
    fn follow(&mut self, now: u64, stop: bool) {
        let since = now.saturating_sub(self.ran.started_ns);
        if self.course == Course::Opening {
            let over =
                self.load.duration.is_some_and(|time| since >= time.as_nanos() as u64 + self.patience());
            let all = self.word(control::OPENED) >= self.word(control::LIMIT);
            if stop || over || all {
                self.put(control::LIMIT, 0);
                self.course = if self.holds() { Course::Settling } else { Course::Draining };
                self.ran.opening_ns = since.max(self.scheduled_ns());
            }
        }
        if self.holds() {
            self.follow_held(now, since, stop);
        }
        if stop && self.stopped_ns.is_none() {
            self.stopped_ns = Some(now);
            self.ran.stopped = true;
        }
        let grace = if self.holds() { CLOSING_NS } else { GRACE_NS };
        let ends = matches!(self.course, Course::Closing | Course::Draining);
        if ends && self.stopped_ns.is_some_and(|stopped| now >= stopped + grace) {
            self.course = Course::Abandoning;
            self.next_sweep_ns = now;
        }
    }

    /// The time that the schedule has for the connections that were opened.
    fn scheduled_ns(&self) -> u64 {
        let opened = u128::from(self.word(control::OPENED).saturating_sub(self.before));
        let rate = self.load.rate.filter(|rate| *rate > 0);
        rate.map_or(0, |rate| u64::try_from(opened * 1_000_000_000 / u128::from(rate)).unwrap_or(u64::MAX))
    }

    fn holds(&self) -> bool {
        self.clients.options.holds
    }

    /// Connections on their way.
    fn in_flight(&self) -> u64 {
        let still = self.word(control::ENDED) + self.word(control::HELD);
        self.word(control::OPENED).saturating_sub(still)
    }

    /// Goes on from opening by way of holding and using again to closing.
    fn follow_held(&mut self, now: u64, since: u64, stop: bool) {
        let thinks = !self.clients.options.think.is_zero();
        if self.course == Course::Settling && (thinks || self.in_flight() == 0) {
            self.ran.held = self.word(control::OPENED).saturating_sub(self.word(control::ENDED));
            self.ran.settled_ns = since;
            self.course = Course::Holding;
        }
        let held_ns = since.saturating_sub(self.ran.settled_ns);
        let long_enough = self.load.hold.is_some_and(|hold| u128::from(held_ns) >= hold.as_nanos());
        let next = match self.course {
            Course::Settling | Course::Holding | Course::Using if stop => Course::Closing,
            Course::Holding if long_enough && self.load.use_again => Course::Using,
            Course::Holding if long_enough => Course::Closing,
            _ => return,
        };
        self.begin_walk(next, now);
    }

    fn begin_walk(&mut self, course: Course, now: u64) {
        self.course = course;
        if course == Course::Using && self.clients.options.from_server {
            self.ran.without_cookie = self.without_cookie();
            if self.ran.without_cookie > 0 {
                self.course = Course::Closing;
            }
            let [via, other] = self.newest_held();
            self.put(control::VIA, via);
            self.put(control::VIA + 8, other);
        }
        self.walk = Walk { since_ns: now, ..Walk::default() };
    }

    /// How many may be listed now: as many as are missing in flight, and by a schedule no more than are due.
    fn room(&self, now: u64) -> u64 {
        let most =
            self.load.in_flight.unwrap_or(if self.load.rate.is_some() { LISTED as u64 } else { AT_ONCE });
        let room = most.saturating_sub(self.in_flight()).min(LISTED as u64);
        let Some(rate) = self.load.rate else { return room };
        let due = u128::from(rate) * u128::from(now.saturating_sub(self.walk.since_ns)) / 1_000_000_000 + 1;
        let due = u64::try_from(due).unwrap_or(u64::MAX).saturating_sub(self.walk.listed);
        room.min(due).min(BURST)
    }

    /// Has the next of those that are held ask or close; false if there is nothing to do at the moment.
    fn walks(&mut self, now: u64) -> Result<bool, SessionsError> {
        let task = match self.course {
            Course::Using => Task::UseAgain,
            Course::Closing => Task::Close,
            _ => return Ok(false),
        };
        let room = if now >= self.walk.next_ns { self.room(now) } else { 0 };
        if room == 0 {
            return Ok(false);
        }
        let slots = &self.clients.attached.loaded.slots;
        let (used, mut count) = (self.used(), 0);
        self.walk.at = self.walk.at.max(used.start);
        while self.walk.at < used.end && count < room {
            let at = self.walk.at;
            self.walk.at += 1;
            let Some(slot) = Slot::read(|word| slots.word(at, word).unwrap_or(0)) else { continue };
            let is_next = if task == Task::Close { slot.is_held() } else { slot.is_unused() };
            if is_next {
                self.list(count as usize, at, task);
                count += 1;
            }
        }
        self.walk.listed += count;
        self.walk.of_pass += count;
        if self.walk.at >= used.end {
            let over = self.walk.of_pass == 0 && self.in_flight() == 0;
            (self.walk.at, self.walk.of_pass, self.walk.next_ns) = (0, 0, now + NAP.as_nanos() as u64);
            if over {
                self.end_walk(now);
            }
        }
        self.carry_out(count as usize)?;
        Ok(count > 0)
    }

    /// Sessions that are held and that the server gave no cookie.
    fn without_cookie(&self) -> u64 {
        let slots = &self.clients.attached.loaded.slots;
        let held = self.used().filter_map(|at| Slot::read(|word| slots.word(at, word).unwrap_or(0)));
        held.filter(|slot| slot.is_held() && !slot.has_cookie()).count() as u64
    }

    /// The two slots that are held since last: a device that forgets the oldest knows these.
    fn newest_held(&self) -> [u64; 2] {
        let slots = &self.clients.attached.loaded.slots;
        let (all, next) = (slots.len(), usize::try_from(self.word(control::SLOT)).unwrap_or(0));
        let held =
            |at: &usize| Slot::read(|word| slots.word(*at, word).unwrap_or(0)).is_some_and(Slot::is_held);
        let mut found = (1..=all).map(|back| (next + all - back) % all).filter(held);
        let newest = found.next().unwrap_or(0);
        [newest, found.next().unwrap_or(newest)].map(|at| at as u64)
    }

    fn end_walk(&mut self, now: u64) {
        let took = now.saturating_sub(self.walk.since_ns);
        if self.course == Course::Using {
            self.ran.using_ns = took;
            self.begin_walk(Course::Closing, now);
        } else {
            self.ran.closing_ns = took;
            self.course = Course::Draining;
        }
    }

    /// Slots that this run used, one after the other: those of earlier runs are over. Once it went past the last one, all.
    fn used(&self) -> Range<usize> {
        let all = self.clients.attached.loaded.slots.len();
        let passed =
            usize::try_from(self.clients.passed().saturating_sub(self.passed_before)).unwrap_or(usize::MAX);
        match self.first.checked_add(passed) {
            Some(end) if end <= all => self.first..end,
            _ => 0..all,
        }
    }

    fn list(&self, count: usize, at: usize, task: Task) {
        self.put(control::LISTED + 8 * count, at as u64 | (task as u64) << 32);
    }

    /// Has the program do what was listed.
    fn carry_out(&self, count: usize) -> Result<(), SessionsError> {
        if count == 0 {
            return Ok(());
        }
        self.put(control::LISTED_AT, 0);
        self.put(control::LISTED_COUNT, count as u64);
        while self.word(control::LISTED_AT) < count as u64 {
            // One more, so that what was deferred is not kept waiting.
            self.call((count as u32 + 1).next_multiple_of(BATCH))?;
        }
        self.put(control::LISTED_COUNT, 0);
        self.put(control::LISTED_AT, 0);
        Ok(())
    }

    /// Who has thought may ask, until all that are held are to be used again or closed.
    fn may_ask(&self) -> bool {
        let before = matches!(self.course, Course::Opening | Course::Settling | Course::Holding);
        !self.clients.options.think.is_zero() && (before || self.course == Course::Draining && !self.holds())
    }

    /// A schedule that a stall made late may be caught up with for so long after its end.
    fn patience(&self) -> u64 {
        if self.load.rate.is_some() { 100_000_000 } else { 0 }
    }

    /// Lists what is to be sent again or ended, and has that done.
    fn sweep(&mut self, now: u64) -> Result<(), SessionsError> {
        let began = clock();
        let slots = &self.clients.attached.loaded.slots;
        let used = self.used();
        let timeout = ticks(self.clients.options.timeout.as_nanos() as u64);
        let may_ask = self.may_ask();
        let (mut count, mut at) = (0, self.sweep_from.max(used.start).min(used.end));
        while at < used.end && count < LISTED {
            if let Some(slot) = Slot::read(|word| slots.word(at, word).unwrap_or(0)) {
                let task = match self.course {
                    Course::Abandoning => Some(Task::Abandon),
                    _ if may_ask && slot.has_thought(ticks(now)) => Some(Task::Ask),
                    _ => slot.task(ticks(now), timeout),
                };
                if let Some(task) = task {
                    self.list(count, at, task);
                    count += 1;
                }
            }
            at += 1;
        }
        self.sweep_from = if at < used.end { at } else { 0 };
        let took = clock().saturating_sub(began);
        // The rest is looked at next.
        self.next_sweep_ns = if at < used.end { now } else { clock() + SWEEP_NS.max(took * SWEEP_SHARE) };
        self.carry_out(count)
    }

    /// Runs the program for some time, or sleeps until there is something to do.
    fn send(&self, now: u64, goes_first: bool) -> Result<(), SessionsError> {
        let deferred = self.word(control::DEFERRED_END) != self.word(control::DEFERRED_AT);
        let opens = self.course == Course::Opening;
        let due = match (opens, self.load.rate) {
            (true, Some(_)) => self.word(control::DUE_NS),
            (true, None) => now,
            (false, _) => u64::MAX,
        };
        let (worth, margin, runs) = match goes_first && self.load.rate.is_some_and(|rate| rate <= SPARSE) {
            true => (WORTH_SLEEPING_THERE_NS, MARGIN_THERE_NS, RUNS_THERE),
            false => (WORTH_SLEEPING_NS, MARGIN_NS, RUNS),
        };
        if deferred || due < now + worth {
            return self.call(runs);
        }
        let until = due.saturating_sub(now + margin).min(NAP.as_nanos() as u64);
        std::thread::sleep(Duration::from_nanos(until));
        Ok(())
    }

    fn call(&self, repeat: u32) -> Result<(), SessionsError> {
        let run = Run { repeat, live: Some(BATCH), ingress: self.way.ingress(), ..Run::on(&self.frame) };
        match self.program().run(run) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(Errno::NODEV | Errno::NETDOWN) => Err(SessionsError::Gone(self.way.target.name.clone())),
            Err(error) => Err(SessionsError::System { what: "running live frames", error }),
        }
    }

    fn program(&self) -> &Program {
        &self.clients.attached.loaded.open
    }
}
