//! What a search came to, and its trials: the part of the model that `netdyno search` and `netdyno trial` fill.

use crate::data::causes::{Cause, Stopped};
use crate::data::model::Totals;
use crate::data::units;
use crate::data::words::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A rate without loss, or within whatever limits were asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Throughput {
    /// The greatest load that passed, of each sending port.
    pub frames_per_second: f64,
    /// Bits per second on layer 2, without FCS.
    pub bits_per_second: f64,
    /// Bits per second on the wire: with FCS, preamble and inter-frame gap, 24 bytes more per frame.
    pub bits_per_second_l1: f64,
    /// The least load that did not pass; left out when the greatest that was tried passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_frames_per_second: Option<f64>,
    /// What was forwarded at `frames_per_second`, in the worst time that the goal counts (MLRsearch).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditional_frames_per_second: Option<f64>,
    /// Size of the frames, the FCS counted: `512`, `imix`, ...
    pub frame_size: String,
    /// The limits that had to be kept: `loss 0 %`, ...
    pub goal: String,
    /// The bounds came as near as was asked, or the range ends there.
    pub reached: bool,
    /// The trials that led there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trials: Vec<Trial>,
}

impl Throughput {
    /// Between which loads it is, in words: of one that is not determined all that is known.
    pub fn bounds(&self) -> String {
        let least = format!("at least {}", units::frame_rate(self.frames_per_second));
        match self.failed_frames_per_second {
            Some(failed) => format!("{least} and less than {}", units::frame_rate(failed)),
            None => least,
        }
    }

    /// The figure as it may be said: of one that is not determined, as the least that it is.
    pub(crate) fn at_least(&self, figure: String) -> String {
        if self.reached { figure } else { format!("at least {figure}") }
    }
}

words! {
    /// What is searched for.
    SearchKind {
        /// The greatest load that passes, or another bound.
        Throughput = "throughput",
        /// Latency at a load.
        Latency = "latency",
        /// Loss by load.
        Loss = "loss",
        /// The longest burst that is forwarded whole.
        Burst = "burst",
        /// How long losses go on after an overload.
        Recovery = "recovery",
        /// How long nothing is forwarded at a reset.
        Reset = "reset",
        /// A load for a long time.
        Soak = "soak",
        /// The highest rate of flows without loss.
        Flows = "flows",
    }
}

words! {
    /// How a bound is searched for.
    SearchMethod {
        /// MLRsearch (RFC 9971), for several goals at once.
        Mlrsearch = "mlrsearch",
        /// By halving the range.
        Bisect = "bisect",
    }
}

words! {
    /// What the loads of a search count.
    SearchAxis {
        /// Frames per second of each sending port.
        FramesPerSecond = "frames_per_second",
        /// Bytes of a frame.
        FrameSize = "frame_size",
        /// Flows at once.
        Flows = "flows",
        /// Frames of a burst.
        BurstFrames = "burst_frames",
        /// New flows per second.
        FlowsPerSecond = "flows_per_second",
    }
}

impl SearchAxis {
    /// In words: `burst frames`.
    pub fn in_words(&self) -> String {
        self.to_string().replace('_', " ")
    }
}

words! {
    /// What came of a goal.
    GoalOutcome {
        /// Its throughput was found, as near as was asked.
        Found = "found",
        /// Not even the least load passed.
        NothingPassed = "nothing passed",
        /// Trials could not be judged, or the search did not converge: only the bounds are known that stand beside it.
        NotDetermined = "not determined",
        /// The search for it was ended before its end.
        Unfinished = "unfinished",
    }
}

words! {
    /// The part of a search that wants a trial.
    Part {
        /// The greatest load that passes, or another bound.
        Throughput = "throughput",
        /// Latency at a load.
        Latency = "latency",
        /// Loss by load.
        Loss = "loss",
        /// The longest burst that is forwarded whole.
        Burst = "burst",
        /// How long losses go on after an overload.
        Recovery = "recovery",
        /// How long nothing is forwarded at a reset.
        Reset = "reset",
        /// A load for a long time.
        Soak = "soak",
        /// The highest rate of flows without loss.
        Flows = "flows",
        /// That rate once more.
        Confirm = "confirm",
        /// A rate of flows for a long time.
        Sustained = "sustained",
        /// A trial by itself.
        Trial = "trial",
    }
}

words! {
    /// What a trial of a search is for.
    Stage {
        /// Nothing is measured yet.
        WarmUp = "warm_up",
        /// It shows about how much can be done.
        Estimate = "estimate",
        /// It decides where to look next.
        Search = "search",
        /// What was found is tried once more.
        Confirm = "confirm",
        /// It measures at a load that is known.
        Measure = "measure",
    }
}

words! {
    /// What came of a trial.
    TrialVerdict {
        /// All goals were kept.
        Passed = "passed",
        /// The device lost too many frames.
        Loss = "loss",
        /// Latency was above its limit.
        Latency = "latency",
        /// Latency varied by more than its limit.
        Variation = "variation",
        /// Too many frames came out of order.
        Order = "order",
        /// The sender did not send the load.
        SenderShort = "sender short",
        /// The sender was held up, and sent frames closer together than the load has them.
        SenderUneven = "sender uneven",
        /// The tester's own receiver lost frames.
        ReceiverLost = "receiver lost",
        /// No counter saw the missing frames leave the tester.
        Unconfirmed = "unconfirmed",
        /// No latency was measured.
        LatencyUnknown = "latency unknown",
        /// A port of the tester had no link.
        PortLost = "port lost",
    }
}

/// One trial: the intended load, and what came of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// Number of the trial, from 1, in the order they were done.
    pub number: u32,
    /// The part of the search that wanted it: `throughput`, `latency`, ...
    #[schemars(with = "String")]
    pub part: Part,
    /// Size of the frames, the FCS counted.
    pub frame_size: String,
    /// `search`, `confirm`, `measure` or `warm_up`.
    #[schemars(with = "String")]
    pub stage: Stage,
    /// The value on the search's axis: frames per second of each sending port, or what `search.axis` says.
    pub load: f64,
    /// Frames per second of each sending port; left out for bursts at top speed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intended_frames_per_second: Option<f64>,
    /// 0 for a burst, which ends with its last frame.
    pub duration_ns: u64,
    /// A load that was changed to without a pause, and for how long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub then_load: Option<f64>,
    /// How long that load lasted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub then_duration_ns: Option<u64>,
    /// Frames that the load makes in the duration.
    pub intended_frames: u64,
    /// Frames that the interface transmitted.
    pub sent_frames: u64,
    /// Frames that arrived, each counted once.
    pub received_frames: u64,
    /// Sent and not received: the device's loss, but for `missed_frames` and `unconfirmed_frames`.
    pub lost_frames: u64,
    /// Lost frames that were sent after the last that arrived, in trials that look for the end of losses. With any, the
    /// losses were not over when the trial was.
    #[serde(default, skip_serializing_if = "is_none")]
    pub lost_at_end_frames: u64,
    /// Lost and unsent, over all that was intended (0 to 1): what the goals look at.
    pub loss_ratio: f64,
    /// Intended and not sent: the sender's own shortfall, over all that was intended (0 to 1).
    pub shortfall_ratio: f64,
    /// Frames that arrived again.
    pub duplicated_frames: u64,
    /// Frames that arrived after a later one of their stream.
    pub reordered_frames: u64,
    /// Frames that the sender sent too close together after it had been held up: so many losses may be due to that.
    #[serde(default, skip_serializing_if = "is_none")]
    pub uneven_frames: u64,
    /// Lost frames that are not held against the device: they were lost in parts of the trial in which this machine, which
    /// the device shares, was held up, as its scheduler says.
    #[serde(default, skip_serializing_if = "is_none")]
    pub excused_frames: u64,
    /// Lost frames that are the device's: they were lost again and again in parts of the trial in which this machine, which
    /// the device shares, was in time.
    #[serde(default, skip_serializing_if = "is_none")]
    pub steady_lost_frames: u64,
    /// Frames that the tester's receiving side may have lost itself: so many of those that are missing are not the
    /// device's loss.
    #[serde(default, skip_serializing_if = "is_none")]
    pub missed_frames: u64,
    /// Frames that no counter saw leave the tester: so many of those that are missing are not the device's loss.
    #[serde(default, skip_serializing_if = "is_none")]
    pub unconfirmed_frames: u64,
    /// Left out where none arrived whose delay could be taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<TrialLatency>,
    /// When the last lost frame was noticed, from the trial's start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_loss_ns: Option<u64>,
    /// The longest time without an arrival while frames were due.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outage_ns: Option<u64>,
    /// What of the latency is not the device's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub floor: Option<Floor>,
    /// Number of times the trial was done before, because the sender was held up and nothing could be said of the device.
    #[serde(default)]
    pub repeated: u32,
    /// `passed`, or what was not kept: `loss`, `latency`, `variation`, `order`; or why nothing is known of the device:
    /// `sender short`, `sender uneven`, `receiver lost` (the tester's own receiver lost frames), `unconfirmed` (no counter
    /// saw the missing frames leave), `latency unknown`, `port lost` (a port of the tester had no link).
    #[schemars(with = "String")]
    pub verdict: TrialVerdict,
    /// What most likely lost its frames or kept the sender from its load; left out where it did neither, and where the verdict
    /// says it all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// What was known after it, one entry for each goal that is searched for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<Bounds>,
    /// What a probe's records say of the flows that were sent. The frames above are packets of flows, and those received are
    /// the packets that records have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flows: Option<FlowTrial>,
}

/// What a probe's records say of the flows that were sent to it (RFC 6645).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowTrial {
    /// Flows that were sent.
    pub sent_flows: u64,
    /// Packets of the flows that were sent.
    pub sent_packets: u64,
    /// Flows of which records have all packets.
    pub recorded_flows: u64,
    /// Flows of which records have some.
    pub partial_flows: u64,
    /// Packets of flows that were sent, as records have them.
    pub recorded_packets: u64,
    /// Records of these flows.
    pub records: u64,
    /// Records beyond a flow's first: it was cut before its time.
    pub split_records: u64,
    /// Packets that records have beyond those that were sent.
    pub surplus_packets: u64,
    /// Records of flows that were not sent.
    pub foreign_records: u64,
    /// Records of flows of earlier trials.
    pub late_records: u64,
    /// Records whose number of bytes is not that of the packets' IP (octetDeltaCount).
    pub wrong_octets_records: u64,
    /// Records with another type of service than was sent.
    pub wrong_fields_records: u64,
    /// Records whose times are not the trial's, by more than 2 ms.
    pub wrong_times_records: u64,
    /// Lost on the way in: packets that the probe's port or its socket had no room for, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port_lost_packets: Option<u64>,
    /// Lost inside: flows without a record and without a gap in the records' numbers. Where it is not known what the port lost,
    /// that is among them.
    pub cache_lost_flows: u64,
    /// Lost on the way out: records that are missing by their numbers, or that the probe says it did not send. Of NetFlow v9 messages
    /// are numbered, and records are by a guess.
    pub export_lost_records: u64,
    /// Messages that arrived and that this collector lost: with any the trial says nothing of the probe.
    pub collector_lost_messages: u64,
    /// Sets of records whose template did not come: with any, what is in them counts as lost in the cache.
    #[serde(default, skip_serializing_if = "is_none")]
    pub unread_sets: u64,
    /// Export messages that were received.
    pub messages: u64,
    /// Bytes of the export messages, from the version field on.
    pub message_bytes: u64,
    /// Templates and records of options among them.
    pub control_records: u64,
    /// The measurement interval (RFC 6645, 5.2): the time of sending less the idle timeout, or less the time in which the cache is
    /// filled if that is shorter.
    pub measured_ns: u64,
    /// The Flow Export Rate: records that came while the trial was sent, over the measurement interval. Left out where none came in
    /// that time: what came later is no rate of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub export_records_per_second: Option<f64>,
    /// Flows that are in the cache at once, by the rate and the idle timeout.
    pub cache_flows: u64,
}

impl FlowTrial {
    /// Packets of records that the tester's own collector lost, at a guess: as many in a message as in others.
    pub fn lost_here(&self) -> u64 {
        let each = self.recorded_packets.checked_div(self.messages).unwrap_or(0).max(1);
        self.collector_lost_messages.saturating_mul(each)
    }

    /// Records in a message, on average.
    pub fn records_per_message(&self) -> f64 {
        self.records as f64 / self.messages.max(1) as f64
    }
}

impl Trial {
    /// Lost of what was sent (0 to 1): what the sender did not send is no loss.
    pub fn lost_ratio(&self) -> f64 {
        self.lost_frames as f64 / self.sent_frames.max(1) as f64
    }

    /// The verdict for people: of one that passed with a loss that is not held against the device.
    pub fn verdict_said(&self) -> String {
        match (&self.verdict, self.excused_frames) {
            (TrialVerdict::Passed, excused) if excused > 0 => {
                format!("passed, {} excused", units::count(excused))
            }
            (verdict, _) => verdict.to_string(),
        }
    }
}

impl TrialVerdict {
    /// Whether it says that it was the tester who failed, and nothing of the device.
    pub fn is_the_testers(&self) -> bool {
        use TrialVerdict::{LatencyUnknown, ReceiverLost, SenderShort, SenderUneven, Unconfirmed};
        matches!(self, SenderShort | SenderUneven | ReceiverLost | Unconfirmed | LatencyUnknown)
    }
}

/// Between which loads the answer lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bounds {
    /// The greatest load known to pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passed: Option<f64>,
    /// The least load known to fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<f64>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_no_share(ratio: &f64) -> bool {
    *ratio == 0.0
}

/// Delays of a trial's frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialLatency {
    /// Number of delays that were taken.
    pub count: u64,
    /// The shortest, in nanoseconds.
    pub min: u64,
    /// The mean delay.
    pub mean: f64,
    /// The median delay.
    pub p50: u64,
    /// The 90th percentile of the delay.
    pub p90: u64,
    /// The 99th percentile of the delay.
    pub p99: u64,
    /// The 99.9th percentile of the delay.
    pub p999: u64,
    /// The longest delay.
    pub max: u64,
    /// Median difference between the delays of a frame and of the one before it in its stream, without sign (RFC 8219,
    /// 7.3.2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame_to_frame_p50: Option<u64>,
    /// The 99.9th percentile of that difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame_to_frame_p999: Option<u64>,
    /// The greatest such difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame_to_frame_max: Option<u64>,
    /// Smoothed mean of that difference (RFC 3550, 6.4.1): of several streams the greatest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<u64>,
}

/// What was searched for, how, and all that was found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchResult {
    /// `throughput`, `latency`, `loss`, `burst`, `recovery`, `reset`, `soak`, `flows`.
    #[schemars(with = "String")]
    pub kind: SearchKind,
    /// `mlrsearch` or `bisect`, where something was searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub method: Option<SearchMethod>,
    /// What `load` counts: `frames_per_second`, `frame_size`, `flows`, `burst_frames` (bursts at the greatest rate),
    /// `flows_per_second`.
    #[schemars(with = "String")]
    pub axis: SearchAxis,
    /// Whether the search ended by itself; if not, it can be continued.
    pub complete: bool,
    /// Frame sizes that were not begun, because it did not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untried_sizes: Vec<String>,
    /// Time that trials sent for.
    pub sending_ns: u64,
    /// Time that it took in all.
    pub elapsed_ns: u64,
    /// One entry for each frame size, in the order they were tested.
    #[serde(default)]
    pub sizes: Vec<SizeResult>,
}

/// What was found with one frame size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SizeResult {
    /// The FCS counted: `64`, `imix`, ...
    pub frame_size: String,
    /// Bytes of a frame on average, the FCS counted.
    pub mean_frame_bytes: f64,
    /// What the link carries at most; left out where it has no speed of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub theoretical_frames_per_second: Option<f64>,
    /// What the bottleneck of a lab lets through in the long run: the truth that a search there can be held to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bottleneck_frames_per_second: Option<f64>,
    /// The least load that was tried, on the search's axis.
    pub least: f64,
    /// The greatest load that was tried, on the search's axis.
    pub greatest: f64,
    /// One entry for each goal of a search for the throughput, in the order in which they were asked for: what came of it, and
    /// between which loads it is. Results of earlier versions have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub goals: Vec<GoalResult>,
    /// The throughput of each goal that has one, in the order of the goals; `null` for a goal of which not even the least load
    /// passed. A goal of which that is not known has no entry here: `goals` has one for each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub throughput: Vec<Option<Throughput>>,
    /// The value found on another axis than the rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<f64>,
    /// On the axis `burst_frames`: the rate within the bursts that were tried. Another rate has another longest burst.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst_frames_per_second: Option<f64>,
    /// One entry for each load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latency: Vec<LatencyAt>,
    /// One entry for each load, the greatest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loss_curve: Vec<LossAt>,
    /// The highest rate of new flows that a probe recorded without loss (RFC 6645).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flows: Option<FlowsFound>,
    /// The longest burst that was forwarded whole (RFC 9004).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<BurstFound>,
    /// Time from the change to half the load until the last loss.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovery_ns: Option<Spread>,
    /// The longest time without an arrival.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outage_ns: Option<Spread>,
    /// What kept it from more; as long as anything is `unfinished`, what ends the loads that can be tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Stopped>,
    /// What was begun and did not come to its end: how far it came, which is no result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unfinished: Vec<Unfinished>,
}

/// What came of one goal of a search for the throughput.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GoalResult {
    /// The limits that had to be kept: `loss 0 %`, ...
    pub goal: String,
    /// `found`; `nothing passed` (not even the least load); `not determined` (trials could not be judged, or the search did not
    /// converge: only the bounds beside it are known); `unfinished` (the search was ended before its end).
    #[schemars(with = "String")]
    pub outcome: GoalOutcome,
    /// The greatest load that is known to keep the goal; of a goal that was `found` its throughput. Left out of one that is
    /// `unfinished`, whose trials say less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed_frames_per_second: Option<f64>,
    /// The least load that is known not to keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_frames_per_second: Option<f64>,
}

impl SizeResult {
    /// The entries of `throughput`, each with its goal, as far as that is known: results of earlier versions have no name where
    /// nothing passed.
    pub fn by_goal(&self) -> impl Iterator<Item = (Option<&str>, Option<&Throughput>)> {
        let mut nothing = self.goals.iter().filter(|goal| goal.outcome == GoalOutcome::NothingPassed);
        self.throughput.iter().map(move |found| match found {
            Some(found) => (Some(found.goal.as_str()), Some(found)),
            None => (nothing.next().map(|goal| goal.goal.as_str()), None),
        })
    }

    /// The throughput of the first goal. Of results of earlier versions it is the first that there is.
    pub fn of_first_goal(&self) -> Option<&Throughput> {
        let mut found = self.throughput.iter().flatten();
        match self.goals.first() {
            Some(first) => found.find(|found| found.goal == first.goal),
            None => found.next(),
        }
    }

    /// The throughputs, each with its goal's number, from 0: that of its bounds in each trial.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (usize, &Throughput)> {
        let number = move |found: &Throughput| self.goals.iter().position(|goal| goal.goal == found.goal);
        let entries = self.throughput.iter().enumerate();
        entries.filter_map(move |(place, found)| {
            let found = found.as_ref()?;
            Some((number(found).unwrap_or(place), found))
        })
    }
}

/// A part of a search that was ended before its end, because it was interrupted, a port was lost, or it did not converge.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Unfinished {
    /// `throughput`, `latency`, ...
    #[schemars(with = "String")]
    pub part: Part,
    /// The limits that had to be kept, where a bound was searched for; there is an entry for each goal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// What the values count: `frames_per_second`, `burst_frames`, ...
    #[schemars(with = "String")]
    pub axis: SearchAxis,
    /// The hardest value that passed a trial, among those that are easier than all that failed one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed: Option<f64>,
    /// Length of that trial: a search decides by trials of full length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed_duration_ns: Option<u64>,
    /// The least hard value that the device failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<f64>,
    /// Length of that trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_duration_ns: Option<u64>,
    /// Number of trials that were done.
    pub trials: u32,
    /// Number of trials that passed.
    pub passed_trials: u32,
    /// Trials that there were to be, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted_trials: Option<u32>,
}

impl Unfinished {
    /// A value as it is said.
    pub fn value(&self, value: f64) -> String {
        match &self.axis {
            SearchAxis::FramesPerSecond => units::frame_rate(value),
            SearchAxis::FlowsPerSecond => units::flow_rate(value),
            axis => format!("{} {}", units::count(value as u64), axis.in_words()),
        }
    }

    /// Its trials: `13 of 20 trials passed`, or of measurements `3 of 20 trials done`.
    pub fn progress(&self) -> String {
        let all = units::counted(self.trials.into(), "trial");
        match (self.wanted_trials, &self.goal) {
            (Some(wanted), _) => format!("{} of {wanted} trials done", self.trials),
            (None, Some(_)) => format!("{} of {all} passed", self.passed_trials),
            (None, None) => format!("{all} done"),
        }
    }

    /// In one clause.
    pub fn clause(&self) -> String {
        let (passed, failed) = (self.passed.map(|v| self.value(v)), self.failed.map(|v| self.value(v)));
        let known = match (passed, failed) {
            (Some(passed), Some(failed)) => format!("{passed} passed and {failed} failed so far, "),
            (Some(passed), None) => format!("{passed} passed so far, "),
            (None, Some(failed)) => format!("{failed} failed so far, "),
            (None, None) => String::new(),
        };
        format!("{}: {known}{}", self.part, self.progress())
    }
}

/// Latency at a load, over several trials (RFC 2544, 26.2; RFC 8219, 7.2 and 7.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyAt {
    /// The load, of each sending port.
    pub frames_per_second: f64,
    /// Number of trials.
    pub repetitions: u32,
    /// The shortest delay of all trials.
    pub min_ns: u64,
    /// The mean of the trials' means.
    pub mean_ns: f64,
    /// Median of the trials' medians.
    pub typical_ns: u64,
    /// Median of the trials' 99.9th percentiles.
    pub worst_case_ns: u64,
    /// Median of the trials' packet delay variations: 99.9th percentile less minimum.
    pub variation_ns: u64,
    /// The longest delay of all trials.
    pub max_ns: u64,
    /// Median over the trials of the median difference between the delays of a frame and the next (RFC 8219, 7.3.2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame_to_frame_typical_ns: Option<u64>,
    /// Median over the trials of the 99.9th percentile of that difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame_to_frame_worst_ns: Option<u64>,
    /// The greatest such difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame_to_frame_max_ns: Option<u64>,
    /// Median of the trials' jitters (RFC 3550).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter_ns: Option<u64>,
    /// What of it is not the device's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub floor: Option<Floor>,
}

/// What the way takes without the device: the least that can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Floor {
    /// Where the floor is from.
    pub of: FloorOf,
    /// The shortest delay.
    pub min_ns: u64,
    /// The median delay.
    pub typical_ns: u64,
}

/// Where a floor is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FloorOf {
    /// Measured through the lab's device with its faults and delay taken away.
    Device,
    /// Measured through a lab's cable on this machine.
    Cable,
    /// A figure that the user gave.
    Given,
    /// An earlier result.
    Result,
}

/// A point of the loss curve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LossAt {
    /// The load, of each sending port.
    pub frames_per_second: f64,
    /// The load over the greatest load (0 to 1).
    pub load_ratio: f64,
    /// Lost by the device, of what was sent.
    pub loss_ratio: f64,
    /// Lost by the tester's receiver, or never seen leaving, of what was sent: not the device's loss.
    #[serde(default, skip_serializing_if = "is_no_share")]
    pub tester_ratio: f64,
    /// Not sent, of what the load makes: the device was tried with so much less.
    #[serde(default)]
    pub shortfall_ratio: f64,
}

/// The highest rate of new flows that a probe recorded without loss, with what RFC 6645, appendix A, asks to report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowsFound {
    /// The Flow Monitoring Throughput: each flow had a record, and each record was right in its packets.
    pub flows_per_second: f64,
    /// The least rate that did not pass; left out when the greatest that was tried passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_flows_per_second: Option<f64>,
    /// The bounds came as near as was asked, or the range ends there.
    pub reached: bool,
    /// The probe: `netdyno`, `softflowd`, `pmacct`, a command, or `elsewhere`.
    pub probe: String,
    /// Order of the flows' keys: `random` or `linear`.
    pub key_order: String,
    /// Packets of each flow.
    pub packets_per_flow: u32,
    /// Idle timeout of the probe, as it was configured or as its user says.
    pub idle_timeout_ns: u64,
    /// Active timeout of the probe, as it was configured or as its user says.
    pub active_timeout_ns: u64,
    /// Flows that the probe's cache has room for, as it was configured or as its user says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_size_flows: Option<u64>,
    /// Flows that the last trial at this rate created.
    pub created_flows: u64,
    /// Flows that were in the cache at once, by the rate and the idle timeout.
    pub cache_flows: u64,
    /// The Flow Export Rate: records that came while the trial was sent, over the measurement interval; left out where none
    /// came in that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub export_records_per_second: Option<f64>,
    /// Records in a message, on average.
    pub records_per_message: f64,
    /// Bytes of messages per record.
    pub bytes_per_record: f64,
    /// Templates and options records that were received.
    pub control_records: u64,
}

impl FlowsFound {
    /// At a rate, of which nothing else is known yet.
    pub fn at(flows_per_second: f64) -> FlowsFound {
        FlowsFound { flows_per_second, ..FlowsFound::default() }
    }
}

/// Back-to-back frames (RFC 9004).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BurstFound {
    /// Lengths of the longest bursts that were forwarded whole, over all searches.
    pub frames: Spread,
    /// Bursts were sent at this rate, as measured.
    pub burst_frames_per_second: f64,
    /// The length of the mean burst in time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub implied_buffer_s: Option<f64>,
    /// That time less what the device forwarded meanwhile (RFC 9004, 6.2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corrected_buffer_s: Option<f64>,
    /// A burst of the greatest length passed: the buffer may be larger, and this is no result.
    pub at_limit: bool,
    /// The least step between lengths (RFC 9004, 6, asks to report it).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_frames: Option<u64>,
    /// The longest burst that was tried (RFC 9004, 6).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_tried_frames: Option<u64>,
    /// The throughput that the correction is made with (RFC 9004, 6).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_frames_per_second: Option<f64>,
}

/// Several values of one quantity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spread {
    /// Number of values.
    pub count: u32,
    /// Mean of the values.
    pub mean: f64,
    /// The least value.
    pub min: f64,
    /// The greatest value.
    pub max: f64,
    /// Standard deviation of the values.
    pub stddev: f64,
}

impl Throughput {
    /// From a rate in frames and their mean size in bytes, the FCS counted.
    pub fn of(frames_per_second: f64, mean_frame_bytes: f64) -> Self {
        let bytes = (mean_frame_bytes - 4.0).max(0.0);
        Self {
            frames_per_second,
            bits_per_second: frames_per_second * bytes * 8.0,
            bits_per_second_l1: frames_per_second
                * (bytes + crate::data::model::L1_OVERHEAD_BYTES as f64)
                * 8.0,
            ..Self::default()
        }
    }
}

impl Trial {
    /// What was received, as a rate.
    pub fn received(&self) -> Totals {
        Totals::over(self.received_frames, 0, self.duration_ns)
    }
}
