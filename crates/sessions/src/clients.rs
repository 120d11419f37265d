//! The clients as their users see them: attach, find the way out, run a load, look at the counts, finish.

use crate::SessionsError;
use crate::attach::{Attached, attach};
use crate::layout::{Counts, LISTED, control};
use crate::loader::{self, LoadedClients};
use crate::sweep::{Slot, Task, ticks};
use bpf::{Program, Run};
use histogram::Histogram;
use rustix::io::Errno;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use xdp::spare::{self, Known};
use xdp::way::Way;

/// Who connects where, and what is said.
#[derive(Debug, Clone)]
pub struct Options {
    /// All that is sent goes there.
    pub server: SocketAddrV4,
    /// The interface's own Ethernet address.
    pub own: [u8; 6],
    /// The interface's own address, for which the host itself answers ARP.
    pub host: Ipv4Addr,
    /// The clients' first address.
    pub first_address: Ipv4Addr,
    /// How many of them there are.
    pub addresses: u32,
    /// The first of their ports; each address has those that the slots need.
    pub first_port: u16,
    /// Connections that can be remembered at a time, each with a tuple of its own.
    pub slots: u32,
    /// What each connection asks, up to 1,460 bytes.
    pub request: Vec<u8>,
    /// The longest segment that the server may send.
    pub mss: u16,
    /// What is not answered is sent again after this time, then after twice that, and so on.
    pub retransmit_after: Duration,
    /// A connection that is not over after this time has failed.
    pub timeout: Duration,
    /// Attach in the kernel's receive path although the driver can do better.
    pub generic: bool,
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
    /// No more than so many at a time.
    pub in_flight: Option<u64>,
}

/// Where a running load is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Course {
    /// Connections are opened.
    Opening,
    /// None is opened any more; those that were go on.
    Draining,
    /// All that are left are ended.
    Abandoning,
}

/// What a run came to beside the counts.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ran {
    /// When it began, by CLOCK_MONOTONIC, and how long connections were opened.
    pub started_ns: u64,
    /// See `started_ns`.
    pub opening_ns: u64,
    /// Until all were over.
    pub duration_ns: u64,
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
/// No longer than this, since a request may be deferred meanwhile.
const NAP: Duration = Duration::from_millis(1);
/// The slots are looked through at least so rarely, and so many times as rarely as it takes.
const SWEEP_NS: u64 = 10_000_000;
const SWEEP_SHARE: u64 = 20;
/// Who is told to stop lets connections finish for so long.
const GRACE_NS: u64 = 500_000_000;
const LOOK_AT_LINK_NS: u64 = 100_000_000;

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
        Ok(Clients { attached, _known: known, options })
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
    /// and must end there. When `stop` is set it ends in order: what does not finish soon is closed by a RST.
    ///
    /// # Errors
    /// That the interface went, or the kernel no longer runs the program.
    pub fn run(&self, way: &Way, load: &Load, stop: &AtomicBool) -> Result<Ran, SessionsError> {
        way.enter()
            .map_err(|error| SessionsError::System { what: "entering the network namespace", error })?;
        Sender::new(self, way, *load).run(stop)
    }
}

/// The thread that sends.
struct Sender<'a> {
    clients: &'a Clients,
    way: &'a Way,
    load: Load,
    course: Course,
    ran: Ran,
    next_sweep_ns: u64,
    /// Where the next sweep goes on, if there was more than can be listed.
    sweep_from: usize,
    stopped_ns: Option<u64>,
    frame: Vec<u8>,
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
            next_sweep_ns: 0,
            sweep_from: 0,
            stopped_ns: None,
            frame: vec![0; FRAME],
        }
    }

    fn word(&self, at: usize) -> u64 {
        self.clients.attached.loaded.control.load(at)
    }

    fn put(&self, at: usize, value: u64) {
        self.clients.attached.loaded.control.store(at, value);
    }

    fn run(mut self, stop: &AtomicBool) -> Result<Ran, SessionsError> {
        let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        self.begin();
        let mut looked_ns = self.ran.started_ns;
        loop {
            let now = clock();
            self.follow(now, stop.load(Relaxed));
            if self.course != Course::Opening && self.word(control::ENDED) >= self.word(control::OPENED) {
                break;
            }
            if now >= looked_ns + LOOK_AT_LINK_NS {
                looked_ns = now;
                if self.way.is_up() != Some(true) || !self.clients.is_attached() {
                    return Err(SessionsError::Gone(self.way.target.name.clone()));
                }
            }
            if now >= self.next_sweep_ns {
                self.sweep(now)?;
            }
            self.send(now)?;
        }
        let after = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        let ns = |time: rustix::time::Timespec| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
        self.ran.cpu_ns = ns(after).saturating_sub(ns(cpu));
        self.ran.duration_ns = clock().saturating_sub(self.ran.started_ns);
        (self.ran.late, self.ran.busy) = (self.word(control::LATE), self.word(control::BUSY));
        Ok(self.ran)
    }

    fn begin(&mut self) {
        self.ran.started_ns = clock();
        let [a, b, c, d, e, f] = self.load.next_hop;
        self.put(control::NEXT_MAC, u64::from_ne_bytes([a, b, c, d, e, f, 0, 0]));
        self.put(control::IN_FLIGHT, self.load.in_flight.unwrap_or(0));
        if let Some(rate) = self.load.rate.filter(|rate| *rate > 0) {
            self.put(control::GAP_NS, 1_000_000_000 / rate);
            self.put(control::GAP_PART, 1_000_000_000 % rate);
            self.put(control::GAP_PARTS, rate);
        }
        self.put(control::DUE_NS, self.ran.started_ns);
        self.put(control::LIMIT, self.limit());
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
                self.course = Course::Draining;
                self.ran.opening_ns = since;
            }
        }
        if stop && self.stopped_ns.is_none() {
            self.stopped_ns = Some(now);
            self.ran.stopped = true;
        }
        if self.course == Course::Draining && self.stopped_ns.is_some_and(|stopped| now >= stopped + GRACE_NS)
        {
            self.course = Course::Abandoning;
            self.next_sweep_ns = now;
        }
    }

    /// A schedule that a stall made late may be caught up with for so long after its end.
    fn patience(&self) -> u64 {
        if self.load.rate.is_some() { 100_000_000 } else { 0 }
    }

    /// Lists what is to be sent again or ended, and has that done.
    fn sweep(&mut self, now: u64) -> Result<(), SessionsError> {
        let began = clock();
        let slots = &self.clients.attached.loaded.slots;
        // Slots are used one after the other.
        let used =
            usize::try_from(self.word(control::OPENED) + self.word(control::BUSY)).unwrap_or(usize::MAX);
        let used = used.min(slots.len());
        let timeout = ticks(self.clients.options.timeout.as_nanos() as u64);
        let (mut count, mut at) = (0, self.sweep_from.min(used));
        while at < used && count < LISTED {
            if let Some(slot) = Slot::read(|word| slots.word(at, word).unwrap_or(0)) {
                let task = match self.course {
                    Course::Abandoning => Some(Task::Abandon),
                    _ => slot.task(ticks(now), timeout),
                };
                if let Some(task) = task {
                    self.put(control::LISTED + 8 * count, at as u64 | (task as u64) << 32);
                    count += 1;
                }
            }
            at += 1;
        }
        self.sweep_from = if at < used { at } else { 0 };
        let took = clock().saturating_sub(began);
        // The rest is looked at next.
        self.next_sweep_ns = if at < used { now } else { clock() + SWEEP_NS.max(took * SWEEP_SHARE) };
        if count > 0 {
            self.put(control::LISTED_AT, 0);
            self.put(control::LISTED_COUNT, count as u64);
            while self.word(control::LISTED_AT) < count as u64 {
                self.call((count as u32).next_multiple_of(BATCH))?;
            }
            self.put(control::LISTED_COUNT, 0);
            self.put(control::LISTED_AT, 0);
        }
        Ok(())
    }

    /// Runs the program for some time, or sleeps until there is something to do.
    fn send(&self, now: u64) -> Result<(), SessionsError> {
        let deferred = self.word(control::DEFERRED_END) != self.word(control::DEFERRED_AT);
        let opens = self.course == Course::Opening;
        let due = match (opens, self.load.rate) {
            (true, Some(_)) => self.word(control::DUE_NS),
            (true, None) => now,
            (false, _) => u64::MAX,
        };
        if deferred || due < now + WORTH_SLEEPING_NS {
            return self.call(RUNS);
        }
        let until = due.saturating_sub(now + MARGIN_NS).min(NAP.as_nanos() as u64);
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
