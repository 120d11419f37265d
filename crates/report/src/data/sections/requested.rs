//! What was asked for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was asked for in numbers: as it came out of the job, with its defaults, on the machine that ran it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Resolved {
    /// Where the frames came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// The engine as asked for (`auto`, `packet`, ...); `environment.engine` is the one that ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// How fast they were to leave.
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
    /// What the flow profiles of a scenario come to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flow_profiles: Vec<FlowProfile>,
    /// Interfaces named by the user, senders first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<String>,
}

/// Where the frames came from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Source {
    /// A packet expression.
    Expression {
        /// As it was written.
        expression: String,
    },
    /// A scenario file, and what it calls itself.
    Scenario {
        /// Where it was read.
        file: String,
        /// What it calls itself.
        name: String,
    },
    /// A plugin.
    Plugin {
        /// Its name.
        name: String,
        /// Its own version.
        version: String,
        /// Where it was found: a path, or `built in`.
        place: String,
        /// SHA-256 of its module; those built in have none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sha256: Option<String>,
    },
    /// Capture files, in the order they were replayed.
    Files {
        /// Their paths.
        files: Vec<String>,
    },
    /// A synthesised capture, described in words.
    Synthetic {
        /// What it looks like.
        description: String,
    },
}

/// What a flow profile of a scenario comes to, by arithmetic.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowProfile {
    /// Name of the profile.
    pub name: String,
    /// New flows per second.
    pub flows_per_second: f64,
    /// Frames per second while as many flows begin as end.
    pub frames_per_second: f64,
    /// Flows under way at a time while as many begin as end; those of one packet last no time.
    pub concurrent_flows: f64,
    /// Flows in all; left out without end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flows: Option<u64>,
    /// Frames of all flows; left out without end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frames: Option<u64>,
    /// So many flows have different keys (addresses, ports, protocol); then keys come again.
    pub different_flows: u64,
    /// Flows by protocol, packets and duration.
    pub kinds: Vec<FlowKind>,
}

/// Flows of a profile that differ in nothing but their keys.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowKind {
    /// Transport protocol: `tcp`, `udp` or `icmp`.
    pub protocol: String,
    /// Packets of each.
    pub packets: u32,
    /// Time from the first packet of a flow to the last.
    pub duration_ns: u64,
    /// Part of the profile's flows, 0 to 1.
    pub share: f64,
    /// How many; left out without end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flows: Option<u64>,
}

/// A rate as typed and as numbers; the numbers that follow from the request alone are filled in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestedRate {
    /// As the user wrote it (`1.6mpps`, `40%`), or `capture`, `capture x2`, `topspeed`.
    pub text: String,
    /// Frames per second, where those follow from the request alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frames_per_second: Option<f64>,
    /// Bits per second on layer 2, without FCS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bits_per_second: Option<f64>,
    /// Bits per second on the wire: with FCS, preamble and inter-frame gap, 24 bytes more per frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bits_per_second_l1: Option<f64>,
    /// New flows per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flows_per_second: Option<f64>,
}
