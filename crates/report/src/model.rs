//! The result model, `netdyno.report/1`: what every measuring command yields.
//!
//! Field names are a promise to scripts (`--json`), so units stand in them: `_ns`, `_bytes`, `_per_second`,
//! `_ratio` (0 to 1). Bytes and `bits_per_second` are layer 2 without the FCS, as capture files and tcpreplay
//! count; `bits_per_second_l1` is what the wire carries. An unknown value is left out, never zero. Readers
//! ignore members they do not know, so members may be added without a new schema version.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::distribution::{Bucket, Distribution};
use crate::search::{SearchResult, Throughput, Trial};

/// The value of [`Report::schema`].
pub const SCHEMA: &str = "netdyno.report/1";

/// Bytes a frame takes on the wire beyond its layer 2 bytes without FCS: FCS 4, preamble and start delimiter 8,
/// inter-frame gap 12 (IEEE 802.3-2022, 3.1.1 and 4.4.2).
pub const L1_OVERHEAD_BYTES: u64 = 4 + 8 + 12;

/// One run: what was asked, where, and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// Name and major version of this layout: `netdyno.report/1`.
    pub schema: String,
    /// The verb that ran: `replay`, `send`, `measure`, `reflect`, `demo`, ...
    pub command: String,
    pub requested: Requested,
    pub environment: Environment,
    pub result: Achieved,
    /// One entry for each stream of signed frames; empty when frames carried no signature.
    #[serde(default)]
    pub streams: Vec<Stream>,
    /// The run over time, in order, without gaps.
    #[serde(default)]
    pub intervals: Vec<Interval>,
    /// Everything the user should know before trusting the figures, one sentence each.
    #[serde(default)]
    pub warnings: Vec<String>,
}

impl Report {
    /// An empty report of `command`: done, nothing measured.
    pub fn new(command: impl Into<String>) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            command: command.into(),
            requested: Requested::default(),
            environment: Environment::default(),
            result: Achieved::default(),
            streams: Vec::new(),
            intervals: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

/// What the user asked for, after defaults were filled in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Requested {
    /// The command line, one argument an element, the program's name first.
    #[serde(default)]
    pub command_line: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// The engine as asked for (`auto`, `packet`, ...); `environment.engine` is the one that ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<RequestedRate>,
    /// Passes over the source; left out when endless.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loops: Option<u64>,
    /// Frames to send at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Time to send for at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ns: Option<u64>,
    /// Whether each pass was to carry addresses of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unique_ip: Option<bool>,
    /// The key of every random choice; the same seed gives the same frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Interfaces named by the user, senders first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<String>,
    /// The job (docs/job.schema.json), with what was drawn for it: `netdyno rerun` runs it again. Whoever only shows a result
    /// need not understand it: it may be of a later version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub job: Option<serde_json::Value>,
}

/// Where the frames came from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Source {
    /// A packet expression.
    Expression { expression: String },
    /// A scenario file, and what it calls itself.
    Scenario { file: String, name: String },
    /// Capture files, in the order they were replayed.
    Files { files: Vec<String> },
    /// A synthesised capture, described in words.
    Synthetic { description: String },
}

/// A rate as typed and as numbers; the numbers that follow from the request alone are filled in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestedRate {
    /// As the user wrote it (`1.6mpps`, `40%`), or `capture`, `capture x2`, `topspeed`.
    pub text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frames_per_second: Option<f64>,
    /// Layer 2 without FCS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bits_per_second: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bits_per_second_l1: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flows_per_second: Option<f64>,
}

/// The machine, the software and the choices they led to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    pub netdyno_version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub netdyno_commit: Option<String>,
    /// When the run began, RFC 3339, UTC. See [`crate::units::rfc3339`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_model: Option<String>,
    /// CPUs this process may run on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u32>,
    /// The frequency governor, `performance` when figures are to be trusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clocksource: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<Interface>,
    /// The engine that sent, and why it was chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<Choice>,
    /// How the receiver measured (`xdp`, `xdp-generic`, `packet`), and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meter: Option<Choice>,
}

/// Something netdyno chose, with the reason it gives.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Choice {
    pub name: String,
    pub reason: String,
    /// What would have been taken rather, and why it was not possible; best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_taken: Vec<NotTaken>,
}

/// Something netdyno would have chosen, and why it could not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotTaken {
    pub name: String,
    pub reason: String,
}

/// A network interface that took part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interface {
    pub name: String,
    /// `send`, `measure`, `reflect`, `send and measure`, ...
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// The link's speed; left out where the driver has none (veth).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed_bits_per_second: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx_queues: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rx_queues: Option<u32>,
    /// How long its carrier was waited for before the run began, because the driver took the link down when a program
    /// was attached, or because it was down before; left out where it was always there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carrier_wait_ns: Option<u64>,
    /// Offloads that are on, by ethtool's names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offloads: Vec<String>,
}

/// What was achieved. A part that was not measured is left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Achieved {
    pub verdict: Verdict,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx: Option<Tx>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rx: Option<Rx>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Loss>,
    /// Delay of signed frames, from departure to the meter: one way, or there and back if `round_trip`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<Distribution>,
    /// The clock that the delays are by, and how far it may be wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_clock: Option<LatencyClock>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_variation: Option<DelayVariation>,
    /// Time from one arrival to the next, by receive queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrival_gap_ns: Option<Distribution>,
    /// The frames were sent back by a reflector and measured where they had left: what arrived, was lost and took how
    /// long is of the way there and back. Left out when false.
    #[serde(default, skip_serializing_if = "is_false")]
    pub round_trip: bool,
    /// What became of the frames that arrived at a reflector (`netdyno reflect`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reflection: Option<Reflection>,
    /// TCP connections that were played against a server (`netdyno live`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conversations: Vec<crate::Conversation>,
    /// What went in each direction through a bridge (`netdyno bridge`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passages: Vec<Passage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flows: Option<Flows>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pacing: Option<Pacing>,
    /// Frames by size in bytes, the FCS counted (a 60-byte buffer is a 64-byte frame).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frame_sizes: Vec<Bucket>,
    /// Counters of the hosts and interfaces that rose during the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<HostCounter>,
    /// Times without a link while the run lasted, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub link_events: Vec<LinkEvent>,
    /// What was changed by hand while the run lasted (`--tui`), in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub adjustments: Vec<Adjustment>,
    /// The throughput that a search found: of the first frame size and goal, where there were several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput: Option<Throughput>,
    /// All that a search found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchResult>,
    /// The trials, in the order they were done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trials: Vec<Trial>,
}

/// An interface of the run had no link for a time. What was sent meanwhile is lost, and not by the device under test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LinkEvent {
    /// As the user named it.
    pub interface: String,
    /// Which end of the run that is: `send`, `measure`, ...
    pub role: String,
    pub what: LinkChange,
    /// After the start of the run, when it was noticed: at once, or up to 50 ms late.
    pub at_ns: u64,
    /// Left out where the link had not come back when the run ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ns: Option<u64>,
    /// It came and went between two looks, which are at `at_ns` and `duration_ns` later: it was shorter than that.
    /// Left out when false.
    #[serde(default, skip_serializing_if = "is_false")]
    pub between_looks: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LinkChange {
    /// The cable was out, or the other end down.
    CarrierLost,
    /// The interface was set down on this host.
    SetDown,
    /// The interface went away.
    Removed,
}

impl LinkEvent {
    /// For a person.
    pub fn sentence(&self) -> String {
        let LinkEvent { interface, role, .. } = self;
        let what = match self.what {
            LinkChange::CarrierLost => "lost its carrier",
            LinkChange::SetDown => "was set down",
            LinkChange::Removed => "was removed",
        };
        let at = crate::units::time(self.at_ns);
        let lasted = match self.duration_ns {
            Some(ns) if self.between_looks => format!(" for less than {}", crate::units::time(ns)),
            Some(ns) => format!(" for {}", crate::units::time(ns)),
            None if self.what == LinkChange::Removed => String::new(),
            None => " and did not come back".to_owned(),
        };
        format!("{interface} ({role}) {what} {at} after the start{lasted}")
    }
}

/// Somebody paused the run, let it go on, or changed its rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Adjustment {
    /// After the start.
    pub at_ns: u64,
    pub change: Change,
    /// From then on, of the rate asked for; 1 is as asked.
    pub rate_ratio: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    Paused,
    Resumed,
    Rate,
}

/// A counter that rose during the run, whoever's frames it counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostCounter {
    /// The interface at whose end it was read, or `this machine`.
    pub place: String,
    /// Who counts: `interface` (`ip -s link`), `driver` (`ethtool -S`), `stack` (`nstat`), `cores`
    /// (`/proc/net/softnet_stat`).
    pub source: String,
    /// Its name there.
    pub name: String,
    pub rise: u64,
    /// Of the rise, frames that arrived and were measured: some drivers count what the meter's program drops when it has
    /// counted it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_frames: Option<u64>,
    /// Frames that it counts are gone: why, and what helps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explains: Option<String>,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// How the delay varies from frame to frame.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DelayVariation {
    /// Interarrival jitter (RFC 3550, 6.4.1) at the end: of several streams the greatest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter_ns: Option<f64>,
    /// The 99.9th percentile of the delay over its minimum (RFC 8219, 7.3.1).
    pub pdv_ns: u64,
    /// From one frame of a stream to the next that arrived, without sign (RFC 8219, 7.3.2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipdv_ns: Option<Distribution>,
}

/// The clock of time stamps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyClock {
    /// `monotonic`: one host's own, without error between sender and meter; `tai`: one that hosts share.
    pub name: String,
    /// The most by which this host's clock may be off, as the kernel knows it (adjtimex(2): maxerror). That of the other
    /// host comes on top.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_error_ns: Option<u64>,
    /// By how much it probably is (adjtimex(2): esterror).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_error_ns: Option<u64>,
    /// Does a daemon (PTP, NTP) keep it?
    #[serde(skip_serializing_if = "Option::is_none")]
    pub synchronised: Option<bool>,
    /// By how much it was set during the run: delays before and after cannot be compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stepped_ns: Option<i64>,
    /// Who timed the arrivals: `hardware` or `software`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<String>,
    /// What the hardware's time stamps are worth.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hardware: Option<HardwareStamps>,
}

/// Times of arrival that the hardware took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HardwareStamps {
    /// Frames that it stamped.
    pub frames: u64,
    /// Frames that came without a stamp and were timed by software.
    pub software_frames: u64,
    /// Most by which its clock was off from what comparisons with this host's had led to expect, their own error included.
    pub max_error_ns: u64,
    /// By how much its clock was set during the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set_ns: Option<i64>,
}

/// Frames that a reflector got, by what it did with them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reflection {
    /// Sent back.
    pub reflected_frames: u64,
    /// Echo requests (ping) among them, sent back as replies.
    pub echo_replies: u64,
    /// To broadcast or multicast addresses, passed to the host.
    pub group_frames: u64,
    /// ARP and IPv6 neighbour discovery, passed to the host.
    pub resolution_frames: u64,
    /// Without the signature that was asked for, passed to the host.
    pub unsigned_frames: u64,
    /// Cut short or with headers that contradict themselves, dropped.
    pub malformed_frames: u64,
}

/// One direction through a bridge: what arrived, what was sent on, and what became of the rest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Passage {
    /// The interface that frames arrived on.
    pub from: String,
    /// The one they were sent on by.
    pub to: String,
    pub received: Totals,
    pub forwarded: Totals,
    /// The forwarded, each super-frame (GSO, GRO) counted once; left out where there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forwarded_buffers: Option<u64>,
    /// Of the forwarded: looked at from link to transport layer, and edited where that was asked for. Left out where
    /// nothing was to be edited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edited_frames: Option<u64>,
    /// Of the forwarded: with headers that no edit can be made in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unedited_frames: Option<u64>,
    /// Of the forwarded: with a checksum that the sender had left to hardware, and that was computed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub completed_checksums: u64,
    /// Not chosen by the rules.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub filtered_frames: u64,
    /// Left out by the edits.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out_frames: u64,
    /// Arrived after the last frame that was asked for.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub over_limit_frames: u64,
    /// Longer than the MTU they would have had to leave by.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub too_long_frames: u64,
    /// Not taken by the interface they should have left by.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub refused_frames: u64,
    /// Super-frames of the host's that could not be cut into frames.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub uncut_frames: u64,
    /// Arrived when there was no room for them; not among the received.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missed_frames: u64,
    /// What a device with faults did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impaired: Option<Impaired>,
}

/// What a device with known faults did to the frames of one direction, besides what it forwarded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Impaired {
    /// Lost, as was asked.
    pub lost_frames: u64,
    /// Lost in the times in which it was to lose everything.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub flapped_frames: u64,
    /// Copies, among the forwarded.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub copied_frames: u64,
    /// Put back behind others, or by a time.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reordered_frames: u64,
    /// With a bit that flipped.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub corrupted_frames: u64,
    /// Held in the times in which it was to hold everything.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub frozen_frames: u64,
    /// Copies that went back where they came from; not among the forwarded.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub returned_frames: u64,
    /// Lost because too many waited already.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub full_frames: u64,
    /// Still waiting when the device ended, and lost with it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub inside_frames: u64,
    /// How long after the time they were due frames left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness_ns: Option<Distribution>,
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

/// Whether the run did what was asked. Decides the exit status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Verdict {
    /// As asked: exit status 0.
    #[default]
    Done,
    /// It ran, but short of what was asked (a rate not reached, frames unaccounted): exit status 1.
    Short { reasons: Vec<String> },
    /// It was not done: exit status 2.
    Failed { reasons: Vec<String> },
}

impl Verdict {
    /// The exit status that scripts rely on.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Short { .. } => 1,
            Self::Failed { .. } => 2,
        }
    }

    /// Why it is not `Done`; empty when it is.
    pub fn reasons(&self) -> &[String] {
        match self {
            Self::Done => &[],
            Self::Short { reasons } | Self::Failed { reasons } => reasons,
        }
    }

    /// Adds a shortfall. A failed run stays failed.
    pub fn fall_short(&mut self, reason: impl Into<String>) {
        match self {
            Self::Done => *self = Self::Short { reasons: vec![reason.into()] },
            Self::Short { reasons } | Self::Failed { reasons } => reasons.push(reason.into()),
        }
    }

    /// Marks the run as not done; earlier shortfalls stay listed after the new reason.
    pub fn fail(&mut self, reason: impl Into<String>) {
        let mut reasons = vec![reason.into()];
        reasons.extend(self.reasons().iter().cloned());
        *self = Self::Failed { reasons };
    }
}

/// Frames and bytes over a time, and the rates that follow. Made by [`Totals::over`], the one place that
/// computes per-second figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    pub frames: u64,
    /// Layer 2 bytes without FCS.
    pub bytes: u64,
    pub duration_ns: u64,
    /// 0 when `duration_ns` is 0: no rate can be given.
    pub frames_per_second: f64,
    /// Layer 2 without FCS, as tcpreplay counts.
    pub bits_per_second: f64,
    /// On the wire: plus FCS, preamble and inter-frame gap, 24 bytes a frame.
    pub bits_per_second_l1: f64,
}

impl Totals {
    pub fn over(frames: u64, bytes: u64, duration_ns: u64) -> Self {
        // Exact integers first, one rounding at the end: no drift over days and exabytes.
        let per_second = |quantity: u128| match duration_ns {
            0 => 0.0,
            ns => (quantity * 1_000_000_000) as f64 / ns as f64,
        };
        let wire_bytes = u128::from(bytes) + u128::from(frames) * u128::from(L1_OVERHEAD_BYTES);
        Self {
            frames,
            bytes,
            duration_ns,
            frames_per_second: per_second(frames.into()),
            bits_per_second: per_second(u128::from(bytes) * 8),
            bits_per_second_l1: per_second(wire_bytes * 8),
        }
    }
}

/// What was sent: frames the kernel has completed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tx {
    #[serde(flatten)]
    pub totals: Totals,
    /// Frames the schedule asked for within the run; left out at top speed, which asks for no number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offered_frames: Option<u64>,
    /// Frames that were due and neither left within 20 ms of grace nor were refused: due in the duration that was asked
    /// for, and where the run was ended before, 20 ms before that. Left out at top speed. Of a streamed capture at its own
    /// times or at a rate in bits at least so many from 20,000,000 on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_not_sent_frames: Option<u64>,
    /// The rate the schedule asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offered_frames_per_second: Option<f64>,
    /// The engine that sent them: `packet`, `null`, `file`, ...
    pub engine: String,
    /// Frames given up after retries.
    #[serde(default)]
    pub failed: u64,
    /// Sends repeated because the device's queue was full.
    #[serde(default)]
    pub retried_enobufs: u64,
    /// Sends repeated because the socket's buffer was full.
    #[serde(default)]
    pub retried_eagain: u64,
    /// Frames sent shorter than they should have been (snap length below the frame's length).
    #[serde(default)]
    pub truncated: u64,
    /// Frames that were handed over, and that nobody saw leave; left out where all were seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unconfirmed_frames: Option<u64>,
    /// The interfaces' own counters over the run, against what this program counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interface_counters: Vec<InterfaceCounters>,
    /// What left by each interface, where there are two: first that of `--on`, then that of `--on2`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<TxInterface>,
    /// The work by core: one entry for each worker.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cores: Vec<Core>,
    /// When some of the frames really left, by stamps of the interface, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub departures: Option<Departures>,
}

/// When frames left, as the interface stamped them: some of them, one at a time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Departures {
    /// Who stamped them: `hardware`, or `driver` (when it handed a frame to the hardware).
    pub stamped_by: String,
    /// Frames whose stamps were asked for.
    pub asked_frames: u64,
    /// Of those, stamped.
    pub stamped_frames: u64,
    /// How long after its time a frame left; one that was early counts as 0. Left out at top speed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lateness_ns: Option<Distribution>,
    /// From when a frame was handed to the kernel until it left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handing_ns: Option<Distribution>,
    /// By how much these times may be wrong, because the stamps are of another clock.
    pub clock_error_ns: u64,
}

/// What left by one of two interfaces.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TxInterface {
    pub interface: String,
    pub frames: u64,
    /// Layer 2 bytes without FCS.
    pub bytes: u64,
    /// Frames given up after retries.
    pub failed: u64,
    pub retried_enobufs: u64,
    pub retried_eagain: u64,
    /// Frames sent shorter than they should have been.
    pub truncated: u64,
    /// Flows first seen here; a flow that leaves by both counts once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flows: Option<u64>,
    /// Frames that belong to a flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow_frames: Option<u64>,
}

/// What arrived at one of two interfaces.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RxInterface {
    pub interface: String,
    /// The interface whose frames were to arrive here.
    pub from: String,
    pub frames: u64,
    /// Layer 2 bytes without FCS.
    pub bytes: u64,
}

/// How far an interface's own transmit counters moved during the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InterfaceCounters {
    pub interface: String,
    /// Frames this program handed to the interface.
    pub sent_frames: u64,
    /// Rise of the interface's `tx_packets`.
    pub tx_packets: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx_errors: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx_dropped: Option<u64>,
    /// Frames the counter saw that were not ours (`tx_packets` above `sent_frames`).
    pub foreign_frames: u64,
    /// Frames counted as sent that the interface did not see (`tx_packets` below `sent_frames`).
    pub missing_frames: u64,
    /// What of `sent_frames` was handed over in one piece counted once (super-frames: GSO, GRO); left out where that is the
    /// same. The interface counts either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_buffers: Option<u64>,
    /// What the root queueing discipline in front of the interface let through and dropped, where frames went by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueCounters>,
    /// Rise of the driver's own counter of frames that XDP programs and AF_XDP sockets sent, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver_xdp_frames: Option<u64>,
    /// Who saw the frames leave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirmed_by: Option<Witness>,
    /// Bytes that the interface counted of each frame beyond those of layer 2 without FCS: 4 where it counts the FCS.
    /// Left out where it counted other frames, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beyond_layer2_bytes: Option<i64>,
}

/// What a queueing discipline counted, whoever's frames those were.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueueCounters {
    /// `tbf`, `fq_codel`, ...
    pub kind: String,
    /// Let through, each frame of a super-frame by itself.
    pub passed_frames: u64,
    /// Dropped, frames or super-frames as it had them.
    pub dropped: u64,
    /// Waited in it when the run ended.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub waiting: u64,
}

/// Who saw that frames left an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Witness {
    /// The interface's own counter.
    Interface,
    /// The driver's counter of XDP frames. The interface's does not know them.
    Driver,
    /// The receiver: they arrived. No counter of the sender knows them.
    Meter,
    /// The driver gave back their memory as done with; no counter knows them, and no receiver counted.
    Completions,
    /// Nobody.
    Nobody,
}

impl InterfaceCounters {
    /// Compares the counter's rise with our own count.
    pub fn compare(interface: impl Into<String>, sent_frames: u64, tx_packets: u64) -> Self {
        Self {
            interface: interface.into(),
            sent_frames,
            tx_packets,
            foreign_frames: tx_packets.saturating_sub(sent_frames),
            missing_frames: sent_frames.saturating_sub(tx_packets),
            ..Self::default()
        }
    }
}

/// One sending core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Core {
    pub core: u32,
    pub frames: u64,
    pub bytes: u64,
    /// CPU time used over wall time, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_ratio: Option<f64>,
}

/// What arrived.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rx {
    #[serde(flatten)]
    pub totals: Totals,
    /// Frames that arrived more than once, counted from the second time on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicated_frames: Option<u64>,
    /// Frames that arrived after a later one of their stream (RFC 4737, 3).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reordered_frames: Option<u64>,
    /// Frames whose bytes are not those that were sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corrupted_frames: Option<u64>,
    /// Frames that are none of ours: those that cannot be, where loss is known by count only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreign_frames: Option<u64>,
    /// Of those: known by what they are (ARP, IPv6 neighbour and listener discovery, IGMP, LLDP, spanning tree and the like),
    /// more than the run sent of such. Left out where frames are told apart by their signatures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background_frames: Option<u64>,
    /// Frames the receiving machine dropped before the meter saw them (ring full, no buffer).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropped_frames: Option<u64>,
    /// Why nothing follows from frames that are missing here: the meter was detached, or others take frames before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blind_because: Option<String>,
    /// Signed frames that had bytes behind the signature: a device has padded them, or added a trailer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trailed_frames: Option<u64>,
    /// What arrived at each interface, where two were measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<RxInterface>,
}

/// Frames sent and never received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Loss {
    pub frames: u64,
    /// Lost over sent, 0 to 1; 0 when nothing was sent.
    pub ratio: f64,
    /// What arrived was only counted, because not every frame was signed: frames of others may stand in for some that were
    /// lost. Left out when false.
    #[serde(default, skip_serializing_if = "is_false")]
    pub by_count_only: bool,
    /// Of how many frames that is so, where the others were signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsigned_frames: Option<u64>,
    /// Of the lost: frames of a capture to addresses that other frames of it came from, sent into the same port. A device
    /// that learns addresses passes none of those on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learnt_frames: Option<u64>,
}

impl Loss {
    /// `arrived` counts each sent frame at most once (no duplicates, no foreign frames).
    pub fn between(sent: u64, arrived: u64) -> Self {
        Self::of(sent.saturating_sub(arrived), sent)
    }

    pub fn of(lost: u64, sent: u64) -> Self {
        let ratio = if sent == 0 { 0.0 } else { lost as f64 / sent as f64 };
        Self { frames: lost, ratio, ..Self::default() }
    }
}

/// Flows among the frames sent: distinct directed 5-tuples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Flows {
    pub flows: u64,
    /// New flows a second over the whole run.
    pub flows_per_second: f64,
    /// Frames that belong to a flow.
    pub flow_frames: u64,
    /// Frames that do not (ARP, other link-layer protocols).
    pub non_flow_frames: u64,
    /// Of `flows`, those that had been seen before but were silent for longer than a flow lives, where flows expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expired: Option<u64>,
}

impl Flows {
    pub fn over(flows: u64, flow_frames: u64, non_flow_frames: u64, duration_ns: u64) -> Self {
        let flows_per_second = Totals::over(flows, 0, duration_ns).frames_per_second;
        Self { flows, flows_per_second, flow_frames, non_flow_frames, expired: None }
    }
}

/// How closely frames left, or arrived, at their times.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pacing {
    /// Where the gaps were measured: `sender` or `receiver`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured_at: Option<String>,
    /// How far a gap between two frames was from the scheduled one, without sign.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap_error_ns: Option<Distribution>,
    /// How long after its time a frame left; a frame on time counts as 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lateness_ns: Option<Distribution>,
    /// How late the last frame was: the drift over the whole run. Negative is early.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_frame_late_ns: Option<i64>,
    /// Frames later than `late_threshold_ns`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_frames: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_threshold_ns: Option<u64>,
    /// Frames that left or arrived directly after the one before although the schedule left a gap, over all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub back_to_back_ratio: Option<f64>,
    /// Whether an engine that can do both slept in the gaps between frames or kept its core busy: `slept`, `spun`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<String>,
    /// How late the machine woke a sleeping thread in 99 of 100 trials before the run: where gaps are not longer than
    /// that by a margin, the sender spins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wake_up_p99_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub catch_up: Option<CatchUp>,
}

/// What happened after the sender was held up (a stall) and had frames overdue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CatchUp {
    pub stalls: u64,
    pub longest_stall_ns: u64,
    /// Frames sent above the asked rate to catch up.
    pub frames: u64,
    /// The bound on the rate while catching up, as a multiple of the rate asked for.
    pub rate_limit_ratio: f64,
    /// Schedule time given up because it could not be caught up within the bound.
    pub abandoned_ns: u64,
}

/// One stream of signed frames.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stream {
    pub stream: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx_frames: Option<u64>,
    pub rx_frames: u64,
    pub rx_bytes: u64,
    pub lost_frames: u64,
    /// Of those: sent after the last that arrived.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost_at_end_frames: u64,
    pub duplicated_frames: u64,
    pub reordered_frames: u64,
    /// How far the reordered ones were (RFC 4737, 4.2.2): frames from the first with a higher number on, the greatest
    /// and the mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reorder_extent_max: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reorder_extent_mean: Option<f64>,
    /// Frames whose bytes before the signature were not those that were sent, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corrupted_frames: Option<u64>,
    /// Of the first streams.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<Distribution>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_min_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_mean_ns: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_max_ns: Option<u64>,
    /// Interarrival jitter (RFC 3550, 6.4.1) at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter_ns: Option<f64>,
    /// Time between two arrivals, the mean and the longest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap_mean_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap_max_ns: Option<u64>,
}

/// A stretch of the run. Times count from the run's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    pub start_ns: u64,
    pub end_ns: u64,
    /// Frames the schedule asked for in this stretch; left out at top speed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offered_frames: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx_frames: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rx_frames: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rx_bytes: Option<u64>,
    /// Frames sent in this stretch that never arrived: by their numbers if all are signed, else by counts of both ends.
    /// Left out where none was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_frames: Option<u64>,
    /// Frames that left later than the threshold in `pacing`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_frames: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_p50_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_p99_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_p999_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_max_ns: Option<u64>,
}

impl Interval {
    pub fn duration_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }

    /// What was sent in this stretch, when the sender was ours.
    pub fn tx(&self) -> Option<Totals> {
        Some(Totals::over(self.tx_frames?, self.tx_bytes.unwrap_or(0), self.duration_ns()))
    }

    /// What arrived in this stretch, when it was measured.
    pub fn rx(&self) -> Option<Totals> {
        Some(Totals::over(self.rx_frames?, self.rx_bytes.unwrap_or(0), self.duration_ns()))
    }

    /// The rate the schedule asked for in this stretch.
    pub fn offered_frames_per_second(&self) -> Option<f64> {
        Some(Totals::over(self.offered_frames?, 0, self.duration_ns()).frames_per_second)
    }
}
