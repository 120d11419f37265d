//! What each agent did, where several machines carried out one job.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::data::model::Report;

/// What one agent did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentPart {
    /// What it is called.
    pub name: String,
    /// Name of its host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Where its frames left: interfaces there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sends_on: Vec<String>,
    /// Where frames were measured: interfaces there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measures_on: Vec<String>,
    /// How its clock stands to this host's; left out where it was lost before that was known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<AgentClock>,
    /// How long after the common start its first frame left, by its own clock. Left out where it sent none, or where that was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_late_ns: Option<u64>,
    /// Why it has no report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Its own report; left out where it was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Box<Report>>,
}

/// How the clock (CLOCK_TAI) of an agent's host stands to that of the host where the job was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentClock {
    /// How far it is ahead, in nanoseconds; below zero if it is behind.
    pub offset_ns: i64,
    /// The truth is no further from that than this, over the whole job.
    pub error_ns: u64,
    /// The least round trip of the exchanges of time stamps.
    pub round_trip_ns: u64,
    /// It is the same host's, by the number of its boot: then there is no error.
    pub same_host: bool,
}

impl AgentPart {
    /// The most by which its first frame may have left after the common start, the error of its clock included.
    pub fn began_within_ns(&self) -> Option<u64> {
        Some(self.began_late_ns?.saturating_add(self.clock?.error_ns))
    }
}
