//! What a search by TCP connections through a device found (`netdyno search sessions`, `netdyno search session-capacity`), and its
//! trials.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::data::figure::{Measured, Within, figures};
use crate::data::model::Report;
use crate::data::sections::endpoint_search::EndpointStage;
use crate::data::sections::sessions::NatCounts;
use crate::data::words::words;

/// What a search by TCP connections through a device found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionsSearch {
    /// `sessions` or `session-capacity`.
    #[schemars(with = "String")]
    pub kind: SessionsSearchKind,
    /// Address and port of the server.
    pub server: String,
    /// First address of the clients.
    pub first_client: String,
    /// How many addresses the clients have.
    pub client_addresses: u64,
    /// Whether the search ended by itself; if not, it can be continued.
    pub complete: bool,
    /// How long connections were opened in each trial; left out where a trial ended when all were held.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub trial_ns: u64,
    /// Time between two trials.
    pub settle_ns: u64,
    /// Time that it took in all.
    pub elapsed_ns: u64,
    /// What was found about rates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<SessionRateFound>,
    /// What was found about connections that are held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<SessionCapacityFound>,
    /// All trials, in order.
    pub trials: Vec<SessionTrial>,
}

words! {
    /// What is searched for by TCP connections through a device.
    SessionsSearchKind {
        /// The highest rate of new connections.
        Sessions = "sessions",
        /// The most connections that are held at once.
        SessionCapacity = "session-capacity",
    }
}

words! {
    /// What came of a trial of TCP connections.
    SessionVerdict {
        /// It measured.
        Done = "done",
        /// The rate was carried, or all were held and answered when they were used again.
        Passed = "passed",
        /// Connections failed, or, of a rate, needed segments sent again.
        Failed = "failed",
        /// What failed may be due to the tester, or it did not open the connections at the rate.
        Undecided = "undecided",
    }
}

/// One trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionTrial {
    /// Number of the trial, from 1.
    pub number: u32,
    /// `estimate` (as fast as it goes), `search`, `confirm`.
    #[schemars(with = "String")]
    pub stage: EndpointStage,
    /// New connections a second that were to be opened; left out where it went as fast as possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intended_per_second: Option<f64>,
    /// Connections that were to be held at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intended_connections: Option<u64>,
    /// Connections that were established and held when all had been opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<u64>,
    /// Held connections that were answered when they were used again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_again: Option<u64>,
    /// Connections opened per second.
    pub opened_per_second: f64,
    /// Connections that finished, per second in which connections were opened.
    pub finished_per_second: f64,
    /// Connections of which a SYN was sent.
    pub opened: u64,
    /// Connections that were answered whole, with no error of HTTP, and closed.
    pub finished: u64,
    /// Connections that did not finish, or were answered with a status of 4xx, 5xx or none.
    pub failed: u64,
    /// Segments that were sent again.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub retransmitted: u64,
    /// SYNs that were sent again.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub retransmitted_syns: u64,
    /// Segments that came twice: what was sent again although nothing was lost.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub duplicates: u64,
    /// Connections that were opened more than a millisecond after they were due.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub late: u64,
    /// Nanoseconds that the kernel threads which carry on the frames of a veth interface waited for a processor while the trial lasted,
    /// all together, and no more than connections were opened for: those due then may have come to the device in a burst. Left out of other
    /// interfaces, and where the kernel does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_waited_ns: Option<u64>,
    /// Times that the trial was done before and could not be decided.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub undecided_before: u64,
    /// What the lab's NAT counted in the trial. The search empties the table of a NAT of its own lab before each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nat: Option<NatCounts>,
    /// `done`; of a rate `passed`, `failed`, or `undecided` (the tester may be the cause).
    #[schemars(with = "String")]
    pub verdict: SessionVerdict,
}

/// The highest rate of new connections without failures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionRateFound {
    /// Share of a trial's connections that could fail or need a segment sent again.
    pub max_failed_ratio: f64,
    /// Connections finished per second as fast as it went, which the search began with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_loop_per_second: Option<f64>,
    /// The highest rate that passed all its trials; left out where none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_second: Option<f64>,
    /// The lowest rate that did not pass; left out where the greatest that was to be tried passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_per_second: Option<f64>,
    /// Trials that passed at the rate that was found.
    pub passed_trials: u32,
    /// Trials that could not be decided.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub undecided_trials: u64,
    /// How near the bounds were to come, relative to the rate.
    pub precision_ratio: f64,
}

/// The most connections that are held at once and answered when they are used again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionCapacityFound {
    /// The most that passed all their trials; left out where none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<u64>,
    /// The fewest that did not pass; left out where the most that were to be tried passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_connections: Option<u64>,
    /// Trials that passed with the number that was found.
    pub passed_trials: u32,
    /// Trials that could not be decided.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub undecided_trials: u64,
    /// How near the bounds were to come, relative to the number; left out for to the connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision_ratio: Option<f64>,
}

figures! {
    /// The highest rate of new TCP connections without failures.
    RATE = "session_rate_per_second", "new connections without failures" as "new connections a second without failures", PerSecond, Higher;
    /// The most TCP connections held at once and answered when they are used again.
    CAPACITY = "session_capacity", "connections held and used again", Count, Higher;
}

/// Its figures, as far as they are known.
pub(crate) fn figures(report: &Report) -> Vec<Measured> {
    let Some(s) = &report.result.sessions_search else { return Vec::new() };
    let rate = s.rate.as_ref().and_then(|found| Some((found.per_second?, found.failed_per_second)));
    let rate = rate.map(|(rate, failed)| RATE.is(rate).with(Within::Bounds(rate, failed)));
    let most = s.capacity.as_ref().and_then(|found| Some((found.connections?, found.failed_connections)));
    let most = most.map(|(most, failed)| {
        CAPACITY.count(most).with(Within::Bounds(most as f64, failed.map(|failed| failed as f64)))
    });
    rate.into_iter().chain(most).collect()
}
