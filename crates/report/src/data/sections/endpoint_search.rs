//! What a search between two endpoints found (`netdyno search socket-buffer`, `netdyno search transactions`), and its trials.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use crate::data::compare::noise::Sample;
use crate::data::figure::{Measured, Within, figures};
use crate::data::model::Report;
use crate::data::search::TrialLatency;
use crate::data::words::words;

/// What a search between two endpoints found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EndpointSearch {
    /// `socket-buffer` or `transactions`.
    #[schemars(with = "String")]
    pub kind: EndpointSearchKind,
    /// The test that was done again and again: `tcp-stream`, `udp-rr`, ...
    pub test: String,
    /// Address of the server.
    pub server: String,
    /// Whether the search ended by itself; if not, it can be continued.
    pub complete: bool,
    /// Connections at once.
    pub connections: u64,
    /// How long each trial was measured.
    pub trial_ns: u64,
    /// Time before each trial's measured time that is not measured.
    pub warm_up_ns: u64,
    /// Time that it took in all.
    pub elapsed_ns: u64,
    /// What `per_second` counts: `bits` of payload that the receiver got, or `transactions`.
    #[schemars(with = "String")]
    pub counts: EndpointCounts,
    /// What was found about socket buffers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket_buffer: Option<SocketBufferFound>,
    /// The highest rate of transactions that was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transactions: Option<TransactionsFound>,
    /// All trials, in the order they were done.
    #[serde(default)]
    pub trials: Vec<EndpointTrial>,
    /// Settings of this host that bear on connections (net.core.wmem_max, ...), by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub local_settings: BTreeMap<String, String>,
    /// Settings of the server's host that bear on connections, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub remote_settings: BTreeMap<String, String>,
}

words! {
    /// What is searched for between two endpoints.
    EndpointSearchKind {
        /// The smallest socket buffer that reaches nearly the best result.
        SocketBuffer = "socket-buffer",
        /// The highest rate of transactions that stays in time.
        Transactions = "transactions",
    }
}

words! {
    /// What the results of trials between two endpoints count.
    EndpointCounts {
        /// Bits of payload that the receiver got.
        Bits = "bits",
        /// Transactions.
        Transactions = "transactions",
    }
}

words! {
    /// What a trial between two endpoints is for.
    EndpointStage {
        /// One of the sizes of socket buffers.
        Sweep = "sweep",
        /// A closed loop, to begin with.
        Estimate = "estimate",
        /// It decides where to look next.
        Search = "search",
        /// What was found is tried once more.
        Confirm = "confirm",
    }
}

words! {
    /// What came of a trial between two endpoints.
    EndpointVerdict {
        /// It measured.
        Done = "done",
        /// The receiver got nothing.
        NothingArrived = "nothing arrived",
        /// The rate was carried within the bound.
        Passed = "passed",
        /// The latency was above the bound.
        Latency = "latency",
        /// Transactions were lost.
        Lost = "lost",
        /// There were fewer transactions than were due.
        NotCarried = "not carried",
    }
}

/// One trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EndpointTrial {
    /// Number of the trial, from 1.
    pub number: u32,
    /// `sweep`; or `estimate` (a closed loop), `search`, `confirm`.
    #[schemars(with = "String")]
    pub stage: EndpointStage,
    /// Size of the buffers, asked for as SO_SNDBUF and SO_RCVBUF at both ends; left out where the kernel tunes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer_bytes: Option<u64>,
    /// The rate that was offered; left out where the test ran as fast as possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intended_per_second: Option<f64>,
    /// What came of it: bits or transactions a second.
    pub per_second: f64,
    /// The sender's buffer when it was over, as the kernel has it (SO_SNDBUF).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_buffer_bytes: Option<u64>,
    /// The receiver's buffer when the trial was over, as the kernel has it (SO_RCVBUF).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_buffer_bytes: Option<u64>,
    /// Smoothed round-trip time of TCP at the end of the trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_ns: Option<u64>,
    /// Least round-trip time of TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_rtt_ns: Option<u64>,
    /// Segments that were retransmitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmits: Option<u64>,
    /// Datagrams, or transactions over UDP, that were lost.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub lost: u64,
    /// Datagrams that were sent.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub sent: u64,
    /// Requests that were due and not sent within the trial.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub unsent: u64,
    /// How long transactions took: with a rate, from when each was due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<TrialLatency>,
    /// Value of the percentile that is bounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_percentile_ns: Option<u64>,
    /// `done`, or `nothing arrived`; of a rate `passed`, or `latency` (above the bound), `lost`, `not carried` (fewer transactions than were due).
    #[schemars(with = "String")]
    pub verdict: EndpointVerdict,
}

/// How results depend on socket buffers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SocketBufferFound {
    /// This share of the best result is enough.
    pub enough_ratio: f64,
    /// The best mean, of all sizes and of the kernel's own tuning.
    pub best_per_second: f64,
    /// Size of the buffers with the best mean; left out for the kernel's own tuning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_buffer_bytes: Option<u64>,
    /// The smallest size whose mean is enough; left out where none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found_bytes: Option<u64>,
    /// The kernel's own tuning is enough.
    pub tuned_is_enough: bool,
    /// Best throughput times least round-trip time: what is under way when the path is full and its queues are empty (TCP).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth_delay_product_bytes: Option<u64>,
    /// Least round-trip time of all trials (TCP_INFO).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_rtt_ns: Option<u64>,
    /// Intervals are at this confidence.
    pub level: f64,
    /// Each size, from the smallest; the kernel's own tuning first.
    pub points: Vec<BufferPoint>,
}

/// One size of socket buffers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BufferPoint {
    /// What was asked for; left out for the kernel's own tuning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer_bytes: Option<u64>,
    /// The result of each repetition.
    pub results: Vec<f64>,
    /// Mean of the results.
    pub per_second: f64,
    /// The whole width of its confidence interval (Student's t), as a share of it; left out of a single one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width_ratio: Option<f64>,
    /// The mean over the best mean.
    pub best_ratio: f64,
    /// What the kernel granted the sender (SO_SNDBUF, read when the last repetition was over): twice what was asked, unless a limit
    /// is in the way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_buffer_bytes: Option<u64>,
    /// What the kernel granted the receiver (SO_RCVBUF).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_buffer_bytes: Option<u64>,
    /// The sender's kernel granted less than it doubles to: net.core.wmem_max is lower.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub send_capped: bool,
    /// The receiver's kernel granted less than it doubles to: net.core.rmem_max is lower.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub receive_capped: bool,
    /// TCP's smoothed round-trip time, mean of the repetitions: a buffer that is too large fills queues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_ns: Option<u64>,
    /// Segments that were sent again, in all repetitions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmits: Option<u64>,
    /// Datagrams that were lost, of those sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_ratio: Option<f64>,
}

/// The highest rate of transactions that stays in time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TransactionsFound {
    /// The percentile that is bounded: 99.
    pub percentile: f64,
    /// Bound of the percentile.
    pub below_ns: u64,
    /// Rate that a closed loop reached, which the search began with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_loop_per_second: Option<f64>,
    /// Requests in flight over each connection in that closed loop.
    pub closed_loop_in_flight: u64,
    /// The highest rate that passed all its trials; left out where none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_second: Option<f64>,
    /// The lowest rate that did not pass; left out where the greatest that was to be tried passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_per_second: Option<f64>,
    /// Why that rate did not pass: the verdict of the last trial there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub failed_reason: Option<EndpointVerdict>,
    /// Trials that passed at the rate that was found.
    pub passed_trials: u32,
    /// The bounded percentile at the rate that was found: the worst of these trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_percentile_ns: Option<u64>,
    /// How near the bounds were to come, relative to the rate.
    pub precision_ratio: f64,
}

figures! {
    /// The smallest socket buffer, as asked for, that reaches nearly the best result.
    BUFFER = "socket_buffer_bytes", "socket buffer", Size, Lower;
    /// The best result of a sweep over socket buffers, where that is throughput.
    BEST = "socket_buffer_best_bits_per_second", "best throughput", BitsPerSecond, Higher;
    /// What the kernel's own tuning of buffers reached.
    TUNED = "socket_buffer_tuned_bits_per_second", "throughput as the kernel tunes", BitsPerSecond, Higher;
    /// The highest rate of transactions whose latency stays below the bound.
    RATE = "transactions_in_time_per_second", "transactions in time" as "transactions in time per second", PerSecond, Higher;
}

impl SocketBufferFound {
    /// What the kernel tunes by itself.
    pub(crate) fn tuned(&self) -> Option<&BufferPoint> {
        self.points.iter().find(|point| point.buffer_bytes.is_none())
    }
}

/// Its figures, as far as they are known.
pub(crate) fn figures(report: &Report) -> Vec<Measured> {
    let Some(s) = &report.result.endpoint_search else { return Vec::new() };
    let mut figures = Vec::new();
    if let Some(found) = &s.socket_buffer {
        figures.extend(found.found_bytes.map(|bytes| BUFFER.is(bytes as f64)));
        if s.counts == EndpointCounts::Bits {
            let each = |point: &BufferPoint| Within::Trials(Sample::Values(point.results.clone()));
            let best = found.points.iter().find(|point| point.buffer_bytes == found.best_buffer_bytes);
            figures.extend(best.map(|best| BEST.is(best.per_second).with(each(best))));
            figures.extend(found.tuned().map(|tuned| TUNED.is(tuned.per_second).with(each(tuned))));
        }
    }
    if let Some((rate, found)) = s.transactions.as_ref().and_then(|found| Some((found.per_second?, found))) {
        figures.push(RATE.is(rate).with(Within::Bounds(rate, found.failed_per_second)));
    }
    figures
}
