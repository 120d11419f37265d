//! How a job stands at one moment. All counts are since its start; rates are what lies between two moments.
//!
//! As JSON (docs/snapshot.schema.json) members are named as in a report, and what is not known is left out.

use histogram::Histogram;
use report::{Distribution, Words};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::borrow::Cow;
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
#[cfg(not(feature = "without-schemas"))]
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
    /// Version of netdyno.
    #[serde(rename = "netdyno_version")]
    pub version: String,
    /// How frames leave: `xdp`, `afxdp`, `packet`, ...
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// How they are measured: `xdp`, `xdp-generic`, `packet`.
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
    pub manual: ManualControl,
}

/// What can be done to the run by hand; why not, where it cannot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ManualControl {
    /// Why it cannot be paused; left out if it can.
    pub no_pause: Option<String>,
    /// Why its rate cannot be changed; left out if it can.
    pub no_rate: Option<String>,
}

/// Where a job is between its start and its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// It does what it is for.
    #[default]
    Running,
    /// It sends nothing until it is resumed.
    Paused,
    /// All was sent; frames may still arrive.
    Settling,
    /// It is over.
    Ended,
}

impl Phase {
    /// All of them, in this order.
    pub const ALL: [Phase; 4] = [Phase::Running, Phase::Paused, Phase::Settling, Phase::Ended];

    /// As it is written: `running`, `paused`, ...
    pub fn name(self) -> &'static str {
        match self {
            Phase::Running => "running",
            Phase::Paused => "paused",
            Phase::Settling => "settling",
            Phase::Ended => "ended",
        }
    }
}

/// Frames and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Count {
    /// Frames.
    pub frames: u64,
    /// Layer 2 without FCS.
    pub bytes: u64,
}

/// A sending thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Worker {
    /// CPU that it runs on, if it is bound to one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<usize>,
    /// What it sent.
    #[serde(flatten)]
    pub sent: Count,
    /// CPU time of its thread, where the kernel says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_ns: Option<u64>,
}

/// What a core did since the machine was started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Core {
    /// Number of the core, from 0.
    pub number: usize,
    /// Time in the kernel's ticks.
    pub total_ticks: u64,
    /// Of this, idle.
    pub idle_ticks: u64,
    /// In interrupts, where frames arrive.
    pub interrupt_ticks: u64,
}

/// What an interface's driver has put through one of its queues since the run's start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Queue {
    /// The interface.
    pub interface: String,
    /// Of those that receive; else of those that send.
    pub receives: bool,
    /// Number of the queue, from 0.
    pub number: u32,
    /// Packets.
    pub packets: u64,
}

/// Frames taken from one interface to another.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Passage {
    /// The interface by which they came.
    pub from: String,
    /// The interface by which they left.
    pub to: String,
    /// Frames that came.
    pub received: Count,
    /// Of these, frames that left.
    pub forwarded: Count,
}

/// Connections that are played.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Connections {
    /// Connections that have not begun.
    pub waiting: u64,
    /// Connections under way.
    pub open: u64,
    /// Connections that are over.
    pub over: u64,
    /// Of those that are over: not to their end.
    pub broken: u64,
    /// Segments that were sent again.
    pub retransmitted: u64,
    /// Bytes that the servers have acknowledged, and that they have said.
    pub said: u64,
    /// Bytes that the servers have said.
    pub heard: u64,
}

/// Flows of a probe.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Flows {
    /// Flows under way.
    pub active: u64,
    /// Records that ended.
    pub ended: u64,
    /// Records that were sent to a collector.
    pub sent: u64,
    /// Records that ended and were not sent.
    pub unsent: u64,
    /// Frames that the kernel lost because the probe was slower.
    pub dropped: u64,
}

/// What a flow collector received.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Collected {
    /// Flow records.
    pub records: u64,
    /// Messages that they came in.
    pub messages: u64,
    /// Exporters.
    pub exporters: u64,
    /// Records that did not arrive, by the exporters' numbers.
    pub missing_records: u64,
    /// Messages that did not arrive, by their numbers.
    pub missing_messages: u64,
    /// Messages that this collector lost.
    pub dropped_messages: u64,
    /// Records that were not written.
    pub unwritten_records: u64,
}

/// A clone of sessions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Cloned {
    /// Frames that were captured.
    pub frames: u64,
    /// Frames that were lost before they could be looked at.
    pub dropped_frames: u64,
    /// Sessions that were seen.
    pub sessions: u64,
    /// Sessions that are copied at this moment.
    pub open_sessions: u64,
    /// Sessions that were copied.
    pub copied_sessions: u64,
    /// Copied sessions that ended with a gap.
    pub cut_sessions: u64,
    /// Connections to the target that were established.
    pub connected: u64,
    /// Connections to the target that were not.
    pub unconnected: u64,
    /// Bytes that were to be sent to the target.
    pub due_bytes: u64,
    /// Bytes that were sent to the target.
    pub sent_bytes: u64,
    /// Answers of both servers that were compared.
    pub compared: u64,
    /// Answers that differ.
    pub different: u64,
}

/// An endpoint test, or a server of such.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct Endpoint {
    /// Bytes of payload that left this host in streams.
    pub sent_bytes: u64,
    /// Bytes of payload that arrived in streams; of a server those of tests that are over, both ways.
    pub received_bytes: u64,
    /// Transactions that were answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transactions: Option<u64>,
    /// Latency that half of the transactions since the snapshot before had at most, in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_p50_ns: Option<u64>,
    /// Latency that 99 of 100 of them had at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_p99_ns: Option<u64>,
    /// Mean smoothed round-trip time of the connections that send.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_ns: Option<u64>,
    /// Sum of their congestion windows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwnd_bytes: Option<u64>,
    /// Segments that they sent again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retransmits: Option<u64>,
    /// Of a server: clients now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clients: Option<u64>,
    /// Of a server and of a mesh: tests that are over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tests: Option<u64>,
    /// Of a mesh: all of its tests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all_tests: Option<u64>,
    /// Of a mesh: the round that goes on, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round: Option<u64>,
    /// Of a mesh: all of its rounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds: Option<u64>,
}

/// How far a search has come.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Search {
    /// What is searched for now: `throughput`, `latency`, ...
    pub part: String,
    /// Frame size that is tested now, the FCS counted: `64`, `imix`, ...
    pub frame_size: String,
    /// Which of the frame sizes, from 1, and how many there are; (0, 0) if nobody knows.
    pub size: (usize, usize),
    /// A load is frames per second, else a count of something.
    pub of_rate: bool,
    /// What is tried now, for how long, and since when (from the start of all).
    pub load: f64,
    /// Length of the trial under way, in nanoseconds.
    pub trial_ns: u64,
    /// When it began, in nanoseconds from the start of all.
    pub trial_began_ns: u64,
    /// Trials that are over, and how many of these passed.
    pub trials: u64,
    /// Of these, trials that passed.
    pub passed: u64,
    /// One for each goal.
    pub bounds: Vec<Bound>,
    /// What else is known, for a person.
    pub known: String,
    /// The latest trials, the newest first.
    pub rows: Vec<Trial>,
}

/// Between which loads the answer lies.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Bound {
    /// What has to be kept: `loss 0 %`, ...
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
    /// From 1, in the order they were done.
    pub number: u64,
    /// Frames per second of each sending port, or a count of what is varied.
    pub load: f64,
    /// How long it lasted, in nanoseconds.
    pub duration_ns: u64,
    /// Share of the frames that was lost: 0 to 1.
    pub loss_ratio: f64,
    /// Latency that 99 of 100 frames kept, in nanoseconds.
    #[serde(rename = "latency_p99_ns", skip_serializing_if = "Option::is_none")]
    pub p99_ns: Option<u64>,
    /// What it came to: `passed`, `loss`, ...
    #[schemars(with = "String")]
    pub verdict: report::search::TrialVerdict,
}

/// What arrived of one stream.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Stream {
    /// Number in its signatures.
    #[serde(rename = "stream")]
    pub number: u32,
    /// The stream's name, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Arc<str>>,
    /// Frames that arrived, copies included.
    pub received: Count,
    /// Frames that are missing though later ones arrived.
    #[serde(rename = "lost_frames")]
    pub lost: u64,
    /// Frames that arrived again.
    #[serde(rename = "duplicated_frames")]
    pub duplicated: u64,
    /// Frames that arrived behind later ones.
    #[serde(rename = "reordered_frames")]
    pub reordered: u64,
    /// The first arrival, in nanoseconds of Unix time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_arrival_ns: Option<u64>,
    /// The last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_arrival_ns: Option<u64>,
    /// Least latency, in nanoseconds.
    #[serde(rename = "latency_min_ns", skip_serializing_if = "Option::is_none")]
    pub min_latency_ns: Option<u64>,
    /// Mean latency, in nanoseconds.
    #[serde(rename = "latency_mean_ns", skip_serializing_if = "Option::is_none")]
    pub mean_latency_ns: Option<f64>,
    /// Greatest latency, in nanoseconds.
    #[serde(rename = "latency_max_ns", skip_serializing_if = "Option::is_none")]
    pub max_latency_ns: Option<u64>,
}

/// A counter that rose and tells where frames went.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Counter {
    /// Where it is counted: an interface, or the host.
    pub place: String,
    /// What counts: the driver, the stack, ...
    pub source: String,
    /// Name of the counter, as its source has it.
    pub name: String,
    /// By how much it rose since the run's start.
    pub rise: u64,
    /// What that says of frames.
    pub explains: String,
}

/// How a job stands at one moment.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct Snapshot {
    /// What does not change.
    #[serde(rename = "run")]
    pub title: Arc<Title>,
    /// Where it is between start and end.
    pub phase: Phase,
    /// Since the start.
    #[serde(rename = "elapsed_ns")]
    pub at_ns: u64,
    /// Nanoseconds until it ends, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remaining_ns: Option<u64>,
    /// That is the most that it may be, and nobody knows how much less.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    pub remaining_at_most: bool,
    /// How fast the schedule passes, in percent of what was asked for.
    #[serde(rename = "rate_percent")]
    pub percent: u32,
    /// Frames that the schedule had due; `None` at top speed.
    #[serde(rename = "intended_frames", skip_serializing_if = "Option::is_none")]
    pub intended: Option<u64>,
    /// Frames that were sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx: Option<Count>,
    /// Frames that arrived.
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
    /// Frames that arrived behind later ones; only of signed frames.
    #[serde(rename = "reordered_frames", skip_serializing_if = "Option::is_none")]
    pub reordered: Option<u64>,
    /// Frames whose signature stood behind bytes that a device added.
    #[serde(rename = "trailed_frames", skip_serializing_if = "Option::is_none")]
    pub trailed: Option<u64>,
    /// Latencies of signed frames, in nanoseconds.
    #[serde(rename = "latency_ns", serialize_with = "summary", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Distribution>")]
    pub latency: Option<Arc<Histogram>>,
    /// How late frames left.
    #[serde(rename = "lateness_ns", serialize_with = "summary", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Distribution>")]
    pub lateness: Option<Arc<Histogram>>,
    /// Frames that left more than 100 us after their time.
    #[serde(rename = "late_frames", skip_serializing_if = "Option::is_none")]
    pub late: Option<u64>,
    /// The sending threads.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub workers: Vec<Worker>,
    /// What the cores of this host did.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schemars(default)]
    pub cores: Arc<[Core]>,
    /// The first of the streams that arrived.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schemars(default)]
    pub streams: Arc<[Stream]>,
    /// When the streams were looked at, which is done less often.
    #[serde(rename = "streams_elapsed_ns")]
    pub streams_at_ns: u64,
    /// Streams that were not looked at, because there are too many.
    pub streams_beyond: u64,
    /// Counters that rose, where frames may have gone.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schemars(default)]
    pub counters: Arc<[Counter]>,
    /// The queues of the interfaces.
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
    /// Of a job that plays connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections: Option<Connections>,
    /// Of a flow probe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flows: Option<Flows>,
    /// Of a flow collector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collected: Option<Collected>,
    /// Of a clone of sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cloned: Option<Cloned>,
    /// Of an endpoint test, or of a server of such.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<Endpoint>,
    /// Of a search or a trial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<Arc<Search>>,
    /// What the result will warn of, as far as it is known.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schemars(default)]
    pub warnings: Arc<[String]>,
}

impl Snapshot {
    /// Puts a client's names of settings into what it says.
    pub(crate) fn word(&mut self, words: Words) {
        let changes = |text: &String| matches!(words(text), Cow::Owned(_));
        if self.warnings.iter().any(changes) {
            self.warnings = self.warnings.iter().map(|text| words(text).into_owned()).collect();
        }
        let manual = &self.title.manual;
        if [&manual.no_pause, &manual.no_rate].into_iter().flatten().any(changes) {
            let manual = &mut Arc::make_mut(&mut self.title).manual;
            for text in [&mut manual.no_pause, &mut manual.no_rate].into_iter().flatten() {
                *text = words(text).into_owned();
            }
        }
    }
}
