//! Runs what is to be sent: sources, pacing, the sending loop, and the engines frames leave through.
//!
//! ```text
//!   Program (expression, preloaded capture) --.
//!   capture file, streamed --------------------+-- Frames --> worker loop --> port::Tx   packet socket, ring
//!   whatever else yields frames --------------'       ^          |        `-> NullTx     nowhere, for measuring us
//!                                                   Pacer     Progress    `-> FileTx     a capture file
//! ```
//!
//! Callers know [`Engine`] only. An engine takes a [`Job`] whole, because an engine that runs the program in the
//! kernel must see all of it; those that run it here share one loop, [`worker`], over the small trait
//! [`port::tx::Tx`].

#![deny(missing_docs, clippy::missing_errors_doc)]

mod awake;
pub mod clock;
mod departures;
mod gate;
pub mod memory;
mod merge;
pub mod null;
pub mod pacer;
pub mod priority;
pub mod record;
pub mod source;
pub mod throttle;
pub mod worker;

pub use crate::awake::Awake;
pub use crate::departures::Departures;
pub use crate::gate::{Begins, Gate, Hold, await_start};
pub use crate::merge::{Merged, Share};
pub use crate::pacer::CatchUp;
pub use crate::priority::{Had, Priority};
use crate::source::{Source, SourceError};
pub use crate::throttle::{Course, Reach, Throttle};
use histogram::Histogram;
use port::tx::{Tx, TxCounters, TxError};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What is to be sent, and how much of it.
#[derive(Debug)]
pub struct Job {
    /// The frames.
    pub source: Source,
    /// Frames to send at most.
    pub count: Option<u64>,
    /// Time to send for at most.
    pub duration: Option<Duration>,
    /// How frames are kept to their times.
    pub pacing: Pacing,
    /// The clock whose times signatures carry: that of whoever measures them.
    pub stamps: clock::Clock,
}

/// How frames are kept to their times.
#[derive(Debug, Clone, Copy)]
pub struct Pacing {
    /// How to catch up after a stall.
    pub catch_up: CatchUp,
    /// Never sleep while waiting.
    pub spin: bool,
}

impl Default for Pacing {
    fn default() -> Pacing {
        Pacing { catch_up: CATCH_UP, spin: false }
    }
}

impl Pacing {
    /// Of one of so many workers, who catch up together as one would.
    pub fn among(self, workers: usize) -> Pacing {
        Pacing { catch_up: self.catch_up.among(workers), ..self }
    }
}

/// How a stall is caught up with where nobody asks for something else, over a link whose speed nobody knows.
pub const CATCH_UP: CatchUp = CatchUp::Link(pacer::UNKNOWN_LINK / 2);

impl Job {
    /// All of `source`, once.
    pub fn of(source: impl Into<Source>) -> Job {
        Job {
            source: source.into(),
            count: None,
            duration: None,
            pacing: Pacing::default(),
            stamps: clock::Clock::Monotonic,
        }
    }

    /// Sends `source` as this job sends its own, but for so many frames.
    pub fn share(&self, source: impl Into<Source>, count: Option<u64>) -> Job {
        let Job { source: _, count: _, duration, pacing, stamps } = *self;
        Job { source: source.into(), count, duration, pacing, stamps }
    }

    /// All of `program`, once.
    pub fn program(program: impl Into<Arc<traffic::Program>>) -> Job {
        let program: Arc<traffic::Program> = program.into();
        Job::of(program)
    }
}

/// Seen by others while a job runs, and the way to stop it. Each worker of a run has its own; they share `stop` and
/// `gate`.
#[derive(Debug, Default)]
pub struct Control {
    /// Set to end the run in an orderly way.
    pub stop: Arc<AtomicBool>,
    /// An engine passes it when it is ready for its first frame, and counts all times of the job from what it returns.
    pub gate: Arc<Gate>,
    /// CLOCK_MONOTONIC nanoseconds of the run's start; 0 before it.
    pub started: AtomicU64,
    /// Frames accepted so far.
    pub frames: AtomicU64,
    /// Bytes of those.
    pub bytes: AtomicU64,
    /// Frames that left more than [`LATE_NS`] after their time.
    pub late: AtomicU64,
    /// Pauses the run and changes its rate; one for all workers.
    pub throttle: Arc<Throttle>,
    /// Kernel's number of the thread that sends; 0 before it does.
    pub thread: Arc<AtomicU64>,
    /// How late frames have left, when somebody asks.
    pub lateness: HistogramOnDemand,
    /// Of the sending thread.
    pub priority: Priority,
}

/// A histogram that is copied for an onlooker when he asks for it, because keeping it where both can see it would cost
/// the one who counts something with each frame.
#[derive(Debug, Default)]
pub struct HistogramOnDemand {
    wanted: AtomicBool,
    copy: Mutex<Option<Histogram>>,
}

impl HistogramOnDemand {
    /// The latest copy, and asks for the next.
    pub fn look(&self) -> Option<Histogram> {
        let copy = self.copy.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // Not before the lock is free: who counts would come for it at once.
        self.wanted.store(true, Ordering::Relaxed);
        copy
    }

    /// Makes a copy if one was asked for.
    pub fn answer(&self, histogram: impl FnOnce() -> Histogram) {
        // Who counts never waits for who looks on.
        if self.wanted.load(Ordering::Relaxed)
            && let Ok(mut copy) = self.copy.try_lock()
        {
            self.wanted.store(false, Ordering::Relaxed);
            *copy = Some(histogram());
        }
    }
}

impl Control {
    /// One for each of so many workers.
    pub fn several(workers: usize, stop: &Arc<AtomicBool>) -> Vec<Control> {
        Control::beginning(workers, stop, Begins::AtOnce)
    }

    /// The same, for a run that begins when it is said.
    pub fn beginning(workers: usize, stop: &Arc<AtomicBool>, begins: Begins) -> Vec<Control> {
        let (gate, throttle) = (Arc::new(Gate::at(workers, begins)), Arc::new(Throttle::default()));
        let one = || Control {
            stop: Arc::clone(stop),
            gate: Arc::clone(&gate),
            throttle: Arc::clone(&throttle),
            ..Control::default()
        };
        (0..workers).map(|_| one()).collect()
    }

    /// Was the run asked to stop?
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// A frame that leaves this much after its time counts as late.
pub const LATE_NS: u64 = 100_000;

/// A run that is told how long to last, and is behind when that time is over, may still send for so long: a stall near
/// the end then costs no frames. What is overdue by more was due and not sent.
pub const GRACE_NS: u64 = 20_000_000;

/// Frames that a source reads on for at most, to count those that were due ([`Sent::overdue`]).
pub const MOST_OVERDUE: u64 = 20_000_000;

/// And for so long: who ends a run does not wait for a slow disk, or for millions of frames.
const READ_ON: std::time::Duration = std::time::Duration::from_secs(1);

/// Frames that were due and not taken, as far as the source read on to count them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Overdue {
    /// How many were seen.
    pub frames: u64,
    /// There may be more: it was not read to the last that was due.
    pub at_least: bool,
}

impl std::iter::Sum for Overdue {
    fn sum<I: Iterator<Item = Overdue>>(all: I) -> Overdue {
        all.fold(Overdue::default(), |sum, one| Overdue {
            frames: sum.frames.saturating_add(one.frames),
            at_least: sum.at_least || one.at_least,
        })
    }
}

/// Why a run ended.
#[derive(Debug)]
pub enum Ended {
    /// All was sent that was to be sent.
    Done,
    /// It was asked to stop.
    Stopped,
    /// The engine could not go on; what was sent until then counts.
    Fault(TxError),
    /// The source could not go on.
    SourceFault(SourceError),
}

/// How the schedule was kept.
#[derive(Debug, Default)]
pub struct Punctuality {
    /// How long after its time each frame was handed over.
    pub lateness: Histogram,
    /// Frames later than [`LATE_NS`].
    pub late: u64,
    /// Of the first frame.
    pub first_late_ns: Option<u64>,
    /// Of the last frame.
    pub last_late_ns: u64,
    /// Times that nothing left for more than [`LATE_NS`] although a frame was due, and nothing kept it on purpose: the thread
    /// did not run, or the interface took nothing. How late frames are is something else: it adds up over stalls.
    pub stalls: u64,
    /// The longest of those.
    pub longest_stall_ns: u64,
    /// Frames that left while the run was behind its schedule.
    pub catch_up_frames: u64,
    /// The most frames that left within any millisecond; `None`: nobody looked.
    pub most_in_1ms: Option<u64>,
    /// The least that a sending thread had of priority, at its end.
    pub had: Had,
    /// How often its core was taken away, as far as the thread noticed.
    pub taken: u64,
    /// CPU time spent waiting for frames' times.
    pub spun_ns: u64,
    /// Time in which the thread was ready to run and others had its CPU; `None`: the kernel does not count it.
    pub others_ns: Option<u64>,
    /// How the sender waited, where it can say.
    pub waits: Option<Waits>,
    /// By how much the schedule was put off in all, where nothing is caught up.
    pub put_off_ns: u64,
    /// For how long a source that may yet have had more was waited for in vain, until the run's time was over.
    pub starved_ns: u64,
}

/// How a sender that can both sleep and spin waited for its frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Waits {
    /// Times that it slept in a gap; 0: it kept its core busy with waiting.
    pub slept: u64,
    /// How late the machine woke it in 99 of 100 trials before the start; `None`: not tried, because no gap would be
    /// long enough.
    pub wake_up_p99_ns: Option<u64>,
}

/// What a run did.
#[derive(Debug)]
pub struct Sent {
    /// Frames and bytes, and what was refused.
    pub counters: TxCounters,
    /// Those of each port, where there are several.
    pub ports: Vec<TxCounters>,
    /// CLOCK_MONOTONIC nanoseconds of the start: the time that all departures count from.
    pub started_ns: u64,
    /// From the start to the end of the last frame's time: where frame n + 1 would be due, or later if the run was.
    pub duration_ns: u64,
    /// Frames taken from the source.
    pub taken: u64,
    /// How far the schedule was carried out: when the first frame that was not taken was due, or where the source
    /// ended; at most the time the job had. `None` at top speed.
    pub scheduled_ns: Option<u64>,
    /// All was taken that there was to take.
    pub exhausted: bool,
    /// From the start to when the schedule was looked at last: what was due by then could have left.
    pub looked_ns: u64,
    /// Frames due by then, less [`GRACE_NS`] or at the end of the time that the job had, that were not taken, where only
    /// the source knows.
    pub overdue: Option<Overdue>,
    /// How the schedule was kept; `None` at top speed.
    pub punctuality: Option<Punctuality>,
    /// When frames really left, where that was asked for.
    pub departures: Option<Departures>,
    /// CPU time the sending thread used.
    pub cpu_ns: u64,
    /// Why it ended.
    pub ended: Ended,
}

/// What an engine's counts are worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counts {
    /// The kernel said of each frame whether it was taken, and why not.
    Accepted,
    /// Frames were handed to the driver, which tells nobody what it drops: the interface's own counter knows better.
    HandedOver,
    /// The driver gave back the memory of each frame when it was done with it.
    Completed,
}

/// Something that can run a job.
pub trait Engine: Send {
    /// Its name, as in `--engine`.
    fn name(&self) -> &'static str;

    /// What it knows of the frames it says were sent.
    fn counts(&self) -> Counts {
        Counts::Accepted
    }

    /// What [`Control::throttle`] does to it.
    fn reach(&self) -> Reach {
        Reach::Rate
    }

    /// Runs the job on the calling thread until it is done, stopped or cannot go on.
    fn run(&mut self, job: &mut Job, control: &Control) -> Sent;
}

/// An engine of the shared loop over some sender.
#[derive(Debug)]
pub struct Userspace<T> {
    name: &'static str,
    tx: T,
    /// Those of the ports behind the first.
    others: Vec<T>,
    /// Frames have times, but nobody waits for them (files).
    wait: bool,
    counts: Counts,
}

impl<T: Tx + Send> Userspace<T> {
    /// An engine that waits for each frame's time.
    pub fn new(name: &'static str, tx: T) -> Userspace<T> {
        Userspace { name, tx, others: Vec::new(), wait: true, counts: Counts::Accepted }
    }

    /// An engine that sends the frames of each port through a sender of its own, in one order and each at its time. `None`
    /// of no senders.
    pub fn over(name: &'static str, senders: Vec<T>) -> Option<Userspace<T>> {
        let mut senders = senders.into_iter();
        let first = Userspace::new(name, senders.next()?);
        Some(Userspace { others: senders.collect(), ..first })
    }

    /// An engine that notes times instead of waiting for them.
    pub fn without_waiting(name: &'static str, tx: T) -> Userspace<T> {
        Userspace { wait: false, ..Userspace::new(name, tx) }
    }

    /// Whose senders know more of their frames, or less, than that they were accepted.
    pub fn counting(self, counts: Counts) -> Userspace<T> {
        Userspace { counts, ..self }
    }

    /// The sender, when all is done.
    pub fn into_inner(self) -> T {
        self.tx
    }
}

impl<T: Tx + Send> Engine for Userspace<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn counts(&self) -> Counts {
        self.counts
    }

    fn run(&mut self, job: &mut Job, control: &Control) -> Sent {
        let mut senders: Vec<&mut T> = std::iter::once(&mut self.tx).chain(&mut self.others).collect();
        worker::run(&mut senders, job, control, self.wait)
    }
}
