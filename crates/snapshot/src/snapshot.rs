//! How a job stands at one moment. All counts are since its start; rates are what lies between two moments.
//!
//! As JSON (docs/snapshot.schema.json) members are named as in a report, and what is not known is left out.

use histogram::Histogram;
use report::Distribution;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::sync::Arc;

/// What a snapshot's members mean; raised when one changes its meaning or goes.
pub const SCHEMA: &str = "netdyno.snapshot/1";

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Snapshot")]
struct Line<'a> {
    /// `netdyno.snapshot/1`. The last line is the report, which has another.
    schema: &'static str,
    #[serde(flatten)]
    snapshot: &'a Snapshot,
}

/// A snapshot as one line of JSON, which it ends.
pub fn line(snapshot: &Snapshot) -> String {
    report::json::line(&Line { schema: SCHEMA, snapshot })
}

/// The JSON Schema of such a line.
pub fn schema() -> String {
    report::pretty_schema(&schemars::schema_for!(Line<'_>))
}

/// Of a histogram what a line has room for.
fn summary<S: Serializer>(histogram: &Option<Arc<Histogram>>, serializer: S) -> Result<S::Ok, S::Error> {
    histogram.as_deref().and_then(Distribution::summary).serialize(serializer)
}

/// What does not change while a run goes on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Title {
    /// The verb: `send`, `replay`, ...
    pub command: String,
    #[serde(rename = "netdyno_version")]
    pub version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meter: Option<String>,
    /// Where frames leave.
    #[serde(rename = "sends_on", skip_serializing_if = "Option::is_none")]
    pub tx: Option<String>,
    /// Where they are measured.
    #[serde(rename = "measures_on", skip_serializing_if = "Option::is_none")]
    pub rx: Option<String>,
    /// For a person at a screen.
    #[serde(skip)]
    pub hands: Hands,
}

/// What can be done to the run by hand; why not, where it cannot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Hands {
    pub no_pause: Option<String>,
    pub no_rate: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
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

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Count {
    pub frames: u64,
    /// Layer 2 without FCS.
    pub bytes: u64,
}

/// A sending thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Worker {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<usize>,
    #[serde(flatten)]
    pub sent: Count,
    /// CPU time of its thread, where the kernel says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_ns: Option<u64>,
}

/// What a core did since the machine was started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Core {
    pub number: usize,
    pub total_ticks: u64,
    pub idle_ticks: u64,
    /// In interrupts, where frames arrive.
    pub interrupt_ticks: u64,
}

/// What an interface's driver has put through one of its queues since the run's start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Queue {
    pub interface: String,
    /// Of those that receive; else of those that send.
    pub receives: bool,
    pub number: u32,
    pub packets: u64,
}

/// Frames taken from one interface to another.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Passage {
    pub from: String,
    pub to: String,
    pub received: Count,
    pub forwarded: Count,
}

/// Connections that are played.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
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
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
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
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Bound {
    pub goal: String,
    /// The highest that passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lower: Option<f64>,
    /// The lowest above it that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upper: Option<f64>,
}

/// A trial that is over.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Trial {
    pub number: u64,
    pub load: f64,
    pub duration_ns: u64,
    pub loss_ratio: f64,
    #[serde(rename = "latency_p99_ns", skip_serializing_if = "Option::is_none")]
    pub p99_ns: Option<u64>,
    pub verdict: String,
}

/// What arrived of one stream.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Stream {
    #[serde(rename = "stream")]
    pub number: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Arc<str>>,
    pub received: Count,
    #[serde(rename = "lost_frames")]
    pub lost: u64,
    #[serde(rename = "duplicated_frames")]
    pub duplicated: u64,
    #[serde(rename = "reordered_frames")]
    pub reordered: u64,
    #[serde(rename = "latency_mean_ns", skip_serializing_if = "Option::is_none")]
    pub mean_latency_ns: Option<f64>,
    #[serde(rename = "latency_max_ns", skip_serializing_if = "Option::is_none")]
    pub max_latency_ns: Option<u64>,
}

/// A counter that rose and tells where frames went.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Counter {
    pub place: String,
    pub source: String,
    pub name: String,
    pub rise: u64,
    pub explains: String,
}

#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct Snapshot {
    #[serde(rename = "run")]
    pub title: Arc<Title>,
    pub phase: Phase,
    /// Since the start.
    #[serde(rename = "elapsed_ns")]
    pub at_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remaining_ns: Option<u64>,
    /// How fast the schedule passes, in percent of what was asked for.
    #[serde(rename = "rate_percent")]
    pub percent: u32,
    /// Frames that the schedule had due; `None` at top speed.
    #[serde(rename = "offered_frames", skip_serializing_if = "Option::is_none")]
    pub offered: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx: Option<Count>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rx: Option<Count>,
    /// Frames that have not arrived although they had time to; fewer, if they still do.
    #[serde(rename = "lost_frames", skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    /// Not every frame was signed, so that frames of others may stand in for some that were lost. Left out when false.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    pub lost_by_count_only: bool,
    /// Only of signed frames.
    #[serde(rename = "duplicated_frames", skip_serializing_if = "Option::is_none")]
    pub duplicated: Option<u64>,
    #[serde(rename = "reordered_frames", skip_serializing_if = "Option::is_none")]
    pub reordered: Option<u64>,
    #[serde(rename = "latency_ns", serialize_with = "summary", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Distribution>")]
    pub latency: Option<Arc<Histogram>>,
    /// How late frames left.
    #[serde(rename = "lateness_ns", serialize_with = "summary", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Distribution>")]
    pub lateness: Option<Arc<Histogram>>,
    #[serde(rename = "late_frames", skip_serializing_if = "Option::is_none")]
    pub late: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub workers: Vec<Worker>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schemars(default)]
    pub cores: Arc<[Core]>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schemars(default)]
    pub streams: Arc<[Stream]>,
    /// When the streams were looked at, which is done less often.
    #[serde(rename = "streams_elapsed_ns")]
    pub streams_at_ns: u64,
    /// Streams that were not looked at, because there are too many.
    pub streams_beyond: u64,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schemars(default)]
    pub counters: Arc<[Counter]>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schemars(default)]
    pub queues: Arc<[Queue]>,
    /// When counters and queues were looked at, which is done seldom.
    #[serde(rename = "counters_elapsed_ns")]
    pub counters_at_ns: u64,
    /// Of a bridge and a reflector.
    #[serde(rename = "forwarding", skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub passages: Vec<Passage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections: Option<Connections>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<Arc<Search>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schemars(default)]
    pub warnings: Arc<[String]>,
}
