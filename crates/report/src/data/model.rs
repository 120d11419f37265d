//! The result model, `netdyno.report/2`: what every measuring command yields.
//!
//! Field names are a promise to scripts (`--json`), so units stand in them: `_ns`, `_bytes`, `_per_second`,
//! `_ratio` (0 to 1). Bytes and `bits_per_second` are layer 2 without the FCS, as capture files and tcpreplay
//! count; `bits_per_second_l1` is what the wire carries. An unknown value is left out, never zero. Readers
//! ignore members they do not know, so members may be added without a new schema version.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::data::causes::{Cause, Stopped};
use crate::data::distribution::{Bucket, Distribution};
use crate::data::note::{Note, Severity, Warnings};
use crate::data::search::{SearchResult, Throughput, Trial};
pub use crate::data::sections::agents::{AgentClock, AgentPart};
pub use crate::data::sections::bridge::{Impaired, Passage};
pub use crate::data::sections::by_hand::{Adjustment, Change};
pub use crate::data::sections::captured::Capture;
pub use crate::data::sections::cloning::{
    Cloned, ClonedAnswers, ClonedBytes, ClonedConnections, ClonedDifference, ClonedFrames, ClonedNoise,
    ClonedPlace, ClonedSent, ClonedSessions,
};
pub use crate::data::sections::collection::{Collection, Exported, Exporter, Written};
pub use crate::data::sections::conversations::Conversation;
pub use crate::data::sections::counters::{HostCounter, InterfaceCounters, QueueCounters, Witness};
pub use crate::data::sections::drops::{
    DropBacklog, DropQueue, DropRule, Dropped, DroppedKind, DroppedOfStream, DropsOverTime, DropsTraced,
};
pub use crate::data::sections::endpoint::{
    Datagrams, End as EndpointEnd, Endpoint, EndpointInterval, EndpointMemory, EndpointStream, Opening,
    Repeated, Served, Transactions, UnderLoad,
};
pub use crate::data::sections::endpoint_search::{
    BufferPoint, EndpointCounts, EndpointSearch, EndpointSearchKind, EndpointStage, EndpointTrial,
    EndpointVerdict, SocketBufferFound, TransactionsFound,
};
pub use crate::data::sections::environment::{Choice, Environment, Interface, NotTaken};
pub use crate::data::sections::flows::Flows;
pub use crate::data::sections::forwarding::{Forwarded, ForwardedSessions, Returned};
pub use crate::data::sections::intervals::Interval;
pub use crate::data::sections::latency::{DelayVariation, HardwareStamps, LatencyClock};
pub use crate::data::sections::links::{LinkChange, LinkEvent};
pub use crate::data::sections::mesh::{
    Mesh, MeshAsymmetry, MeshFigure, MeshHost, MeshOutcome, MeshPair, MeshSchedule, MeshServed, MeshSlowest,
    MeshValue, MeshWorst,
};
pub use crate::data::sections::metering::{Collector, Metering};
pub use crate::data::sections::pacing::{CatchUp, Departures, Pacing};
pub use crate::data::sections::ports::PortResult;
pub use crate::data::sections::received::{Loss, Rx, RxInterface};
pub use crate::data::sections::reflection::{Reflection, StampReflection};
pub use crate::data::sections::requested::{FlowKind, FlowProfile, RequestedRate, Resolved, Source};
pub use crate::data::sections::sent::{Core, SignedFrames, Tx, TxInterface};
pub use crate::data::sections::sessions::{HeldSessions, NatCounts, Sessions, SessionsServed};
pub use crate::data::sections::sessions_search::{
    SessionCapacityFound, SessionRateFound, SessionTrial, SessionVerdict, SessionsSearch, SessionsSearchKind,
};
pub use crate::data::sections::stamp::{Stamp, StampClocks, StampError, StampStrangers};
pub use crate::data::sections::streams::Stream;
pub use crate::data::sections::totals::{L1_OVERHEAD_BYTES, Totals};
pub use crate::data::sections::verdict::Verdict;
pub use crate::data::sections::xdp::{XdpProgram, XdpVerdict};

/// The value of [`Report::schema`].
pub const SCHEMA: &str = "netdyno.report/2";

/// One run: what was asked, where, and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// Name and major version of this layout: `netdyno.report/2`.
    pub schema: String,
    /// The verb that ran: `replay`, `send`, `measure`, `reflect`, `demo`, ...
    pub command: String,
    /// The command line, one argument an element, the program's name first; empty if another program asked for the job.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command_line: Vec<String>,
    /// The job (docs/job.schema.json), with what was drawn for it: `netdyno rerun` runs it again. A program that only shows a
    /// result need not understand it: it may be of a later version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub requested: Option<serde_json::Value>,
    /// The agent at which the job began, as it was said beside the job; left out where it was not said. `netdyno rerun` begins it there again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_at: Option<String>,
    /// What the job came to in numbers on this machine.
    #[serde(default)]
    pub resolved: Resolved,
    /// The machine, the software and the choices they led to.
    pub environment: Environment,
    /// What was achieved.
    pub result: Achieved,
    /// One entry for each stream of signed frames; empty when frames carried no signature.
    #[serde(default)]
    pub streams: Vec<Stream>,
    /// The run over time, in order, without gaps.
    #[serde(default)]
    pub intervals: Vec<Interval>,
    /// What the user should know before trusting the figures, one sentence each.
    #[serde(default)]
    pub warnings: Warnings,
    /// The warnings and the verdict's reasons once more, each with a code for programs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
}

impl Report {
    /// An empty report of `command`: done, nothing measured.
    pub fn new(command: impl Into<String>) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            command: command.into(),
            command_line: Vec::new(),
            requested: None,
            requested_at: None,
            resolved: Resolved::default(),
            environment: Environment::default(),
            result: Achieved::default(),
            streams: Vec::new(),
            intervals: Vec::new(),
            warnings: Warnings::default(),
            notes: Vec::new(),
        }
    }
}

impl Report {
    /// Lists what the result says beside its figures in `notes`, for whoever reads its JSON. The last thing done to a report.
    pub fn list_notes(&mut self) {
        let severity = match self.result.verdict {
            Verdict::Failed { .. } => Severity::Failure,
            _ => Severity::Shortfall,
        };
        let reasons = self.result.verdict.reasons().iter().map(|said| said.note(severity));
        self.notes = reasons.chain(self.warnings.iter().map(|said| said.note(Severity::Warning))).collect();
    }

    /// Gives the sentences of a report that was read the codes that its notes have.
    pub(crate) fn know_codes(&mut self) {
        let Report { notes, warnings, result, .. } = self;
        let reasons = match &mut result.verdict {
            Verdict::Done => &mut Vec::new(),
            Verdict::Short { reasons } | Verdict::Failed { reasons } => reasons,
        };
        for said in reasons.iter_mut().chain(warnings.iter_mut()) {
            if let Some(note) = notes.iter().find(|note| said.is_of(note)) {
                *said = match &note.remedy {
                    Some(remedy) => note.code.says((&*note.text, &**remedy)),
                    None => note.code.says(&*note.text),
                };
            }
        }
    }
}

/// What was achieved. A part that was not measured is left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Achieved {
    /// Whether it was done as asked.
    pub verdict: Verdict,
    /// What was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx: Option<Tx>,
    /// What arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rx: Option<Rx>,
    /// What was sent and did not arrive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Loss>,
    /// What each port sent and what arrived of it, where several sent for themselves; `tx`, `rx` and `loss` are the sums.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<PortResult>,
    /// What each agent did, where several carried out the job; what stands beside it is of all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentPart>,
    /// Delay of signed frames, from departure to the meter: one way, or there and back if `round_trip`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<Distribution>,
    /// The clock that the delays are by, and how far it may be wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_clock: Option<LatencyClock>,
    /// How delays vary (RFC 3393, RFC 3550).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_variation: Option<DelayVariation>,
    /// Time from one arrival to the next, by receive queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrival_gap_ns: Option<Distribution>,
    /// The frames were sent back by a reflector and measured where they had left: what arrived, was lost and took how
    /// long is of the way there and back. Left out when false.
    #[serde(default, skip_serializing_if = "is_false")]
    pub round_trip: bool,
    /// What was captured of what arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture: Option<Capture>,
    /// What became of the frames that arrived at a reflector (`netdyno reflect`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reflection: Option<Reflection>,
    /// What a flow probe counted, and what became of its records (`netdyno probe`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metering: Option<Metering>,
    /// What a flow collector received (`netdyno collect`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection: Option<Collection>,
    /// What became of sessions that were copied (`netdyno clone`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloned: Option<Cloned>,
    /// What became of sessions that were captured for a clone on another host (`netdyno clone capture`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forwarded: Option<Forwarded>,
    /// What the return agent at a clone's target did (`netdyno clone return`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returned: Option<Returned>,
    /// What came of a test between two endpoints (`netdyno endpoint`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<Endpoint>,
    /// What came of a session of STAMP (`netdyno endpoint stamp`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamp: Option<Stamp>,
    /// What came of endpoint tests between all pairs of some hosts (`netdyno endpoint --mesh`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh: Option<Mesh>,
    /// What became of TCP connections that were made without the host's TCP (`netdyno sessions`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<Sessions>,
    /// What was answered without the host's TCP (`netdyno sessions serve`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions_served: Option<SessionsServed>,
    /// What a search by TCP connections through a device found (`netdyno search sessions`, `netdyno search session-capacity`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions_search: Option<SessionsSearch>,
    /// What a search between two endpoints found (`netdyno search socket-buffer`, `netdyno search transactions`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint_search: Option<EndpointSearch>,
    /// What a server of endpoint tests did (`netdyno endpoint serve`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served: Option<Served>,
    /// TCP connections that were played against a server (`netdyno live`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conversations: Vec<Conversation>,
    /// What went in each direction through a bridge (`netdyno bridge`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passages: Vec<Passage>,
    /// 5-tuples among the frames that were sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flows: Option<Flows>,
    /// How the schedule was kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pacing: Option<Pacing>,
    /// Frames by size in bytes, the FCS counted (a 60-byte buffer is a 64-byte frame).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frame_sizes: Vec<Bucket>,
    /// Counters of the hosts and interfaces that rose during the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<HostCounter>,
    /// Parts of a stream that have numbers of their own in signatures, one for each core that sends it; 0: not known. Not in files.
    #[serde(skip)]
    pub parts_of_a_stream: u32,
    /// What this host's kernel dropped meanwhile, where and why: frames of this test and of others, and in a lab those without a
    /// signature, too (`--trace-drops`). The most frequent first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drops: Vec<Dropped>,
    /// What that comes to; left out where drops were not traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drops_traced: Option<DropsTraced>,
    /// What the XDP program said that is the lab's device (`netdyno lab --dut-xdp`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub xdp: Option<XdpProgram>,
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

fn is_false(value: &bool) -> bool {
    !value
}
