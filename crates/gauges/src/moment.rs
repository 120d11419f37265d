//! How a run stands at one moment. All counts are since its start; rates are what lies between two moments.

use histogram::Histogram;
use std::sync::Arc;

/// What does not change while a run goes on.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Title {
    /// The verb: `send`, `replay`, ...
    pub command: String,
    pub version: String,
    pub engine: Option<String>,
    pub meter: Option<String>,
    /// Where frames leave.
    pub tx: Option<String>,
    /// Where they are measured.
    pub rx: Option<String>,
    pub hands: Hands,
}

/// What can be done to the run by hand; why not, where it cannot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hands {
    pub no_pause: Option<String>,
    pub no_rate: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Phase {
    #[default]
    Running,
    Paused,
    /// All was sent; frames may still arrive.
    Settling,
    Ended,
}

impl Phase {
    pub const ALL: [Phase; 4] = [Phase::Running, Phase::Paused, Phase::Settling, Phase::Ended];

    pub fn name(self) -> &'static str {
        match self {
            Phase::Running => "running",
            Phase::Paused => "paused",
            Phase::Settling => "settling",
            Phase::Ended => "ended",
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    pub frames: u64,
    /// Layer 2 without FCS.
    pub bytes: u64,
}

/// A sending thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Worker {
    pub cpu: Option<usize>,
    pub sent: Count,
    /// CPU time of its thread, where the kernel says.
    pub cpu_ns: Option<u64>,
}

/// What a core did since the machine was started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Core {
    pub number: usize,
    pub total_ticks: u64,
    pub idle_ticks: u64,
    /// In interrupts, where frames arrive.
    pub interrupt_ticks: u64,
}

/// What an interface's driver has put through one of its queues since the run's start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Queue {
    pub interface: String,
    /// Of those that receive; else of those that send.
    pub receives: bool,
    pub number: u32,
    pub packets: u64,
}

/// Frames taken from one interface to another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Passage {
    pub from: String,
    pub to: String,
    pub received: Count,
    pub forwarded: Count,
}

/// Connections that are played.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Connections {
    pub waiting: u64,
    pub open: u64,
    pub over: u64,
    /// Of those that are over: not to their end.
    pub broken: u64,
    pub retransmitted: u64,
    /// Bytes that the servers have acknowledged, and that they have said.
    pub said: u64,
    pub heard: u64,
}

/// How far a search has come.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Search {
    /// What is searched for now: `throughput`, `latency`, ...
    pub part: String,
    pub frame_size: String,
    /// Which of the frame sizes, from 1, and how many there are; (0, 0) if nobody knows.
    pub size: (usize, usize),
    /// A load is frames per second, else a count of something.
    pub of_rate: bool,
    /// What is tried now, for how long, and since when (from the start of all).
    pub load: f64,
    pub trial_ns: u64,
    pub trial_began_ns: u64,
    /// Trials that are over, and how many of these passed.
    pub trials: u64,
    pub passed: u64,
    pub bounds: Vec<Bound>,
    /// What else is known, for a person.
    pub known: String,
    /// The latest trials, the newest first.
    pub rows: Vec<Trial>,
}

/// Between which loads the answer lies.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bound {
    pub goal: String,
    /// The highest that passed.
    pub lower: Option<f64>,
    /// The lowest above it that failed.
    pub upper: Option<f64>,
}

/// A trial that is over.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trial {
    pub number: u64,
    pub load: f64,
    pub duration_ns: u64,
    pub loss_ratio: f64,
    pub p99_ns: Option<u64>,
    pub verdict: String,
}

/// What arrived of one stream.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stream {
    pub number: u32,
    pub name: Option<Arc<str>>,
    pub received: Count,
    pub lost: u64,
    pub duplicated: u64,
    pub reordered: u64,
    pub mean_latency_ns: Option<f64>,
    pub max_latency_ns: Option<u64>,
}

/// A counter that rose and tells where frames went.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counter {
    pub place: String,
    pub source: String,
    pub name: String,
    pub rise: u64,
    pub explains: String,
}

#[derive(Debug, Clone, Default)]
pub struct Moment {
    pub title: Arc<Title>,
    pub phase: Phase,
    /// Since the start.
    pub at_ns: u64,
    pub remaining_ns: Option<u64>,
    /// How fast the schedule passes, in percent of what was asked for.
    pub percent: u32,
    /// Frames that the schedule had due; `None` at top speed.
    pub offered: Option<u64>,
    pub tx: Option<Count>,
    pub rx: Option<Count>,
    /// Frames that have not arrived although they had time to; fewer, if they still do.
    pub lost: Option<u64>,
    /// Only of signed frames.
    pub duplicated: Option<u64>,
    pub reordered: Option<u64>,
    pub latency: Option<Arc<Histogram>>,
    /// How late frames left.
    pub lateness: Option<Arc<Histogram>>,
    pub late: Option<u64>,
    pub workers: Vec<Worker>,
    pub cores: Arc<[Core]>,
    pub streams: Arc<[Stream]>,
    /// When the streams were looked at, which is done less often.
    pub streams_at_ns: u64,
    /// Streams that were not looked at, because there are too many.
    pub streams_beyond: u64,
    pub counters: Arc<[Counter]>,
    pub queues: Arc<[Queue]>,
    /// When counters and queues were looked at, which is done seldom.
    pub counters_at_ns: u64,
    pub passages: Vec<Passage>,
    pub connections: Option<Connections>,
    pub search: Option<Arc<Search>>,
    pub warnings: Arc<[String]>,
}
