//! What a flow collector received.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::data::figure::{Measured, figures};
use crate::data::model::Report;

/// What a flow collector received (`netdyno collect`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Collection {
    /// Sums over all exporters.
    #[serde(flatten)]
    pub all: Exported,
    /// Records a second, from the first message to the last; left out where all came at one moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records_per_second: Option<f64>,
    /// Messages that the kernel had no room for, or that still waited a second after the end, at least (of those that it had joined on their way it counts several as one): this collector
    /// lost them, no exporter did.
    pub dropped_messages: u64,
    /// TCP connections that exporters made.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub connections: u64,
    /// TCP connections that were closed here, because a message could not be read or there was no room.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub closed_connections: u64,
    /// Records that were written wherever they were to be written: the least of `sinks`. One of both directions is written as two.
    pub written_records: u64,
    /// Records for which a writer had no room or no disk: the most of `sinks`.
    pub unwritten_records: u64,
    /// Records that were written without some of their fields that have no column, because they had no room.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub trimmed_records: u64,
    /// Places where records were written, each with counts of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sinks: Vec<Written>,
    /// Exporters; of those that are forgotten each address counts once. `(others)` are none.
    pub exporters: u64,
    /// Exporters (addresses and ports) that were silent for hours, or gave way to others.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub forgotten_exporters: u64,
    /// Each of them, those with the most records first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_exporter: Vec<Exporter>,
}

/// A file, database or cluster that records were written to: all that came are written or unwritten.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Written {
    /// The file, database or cluster.
    pub to: String,
    /// Records that were written and, where that can be had, confirmed. Of a pipe, those that went into it.
    pub written_records: u64,
    /// Records that were not written.
    pub unwritten_records: u64,
    /// How often something went wrong, although it may have been overcome.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub faults: u64,
    /// What went wrong first, if records were lost by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// An exporter: an address and port, or ADDR:* for ports of an address that are heard no more; over TCP `tcp://` and an address, all
/// connections from there together. `(others)`: who had no room here, and datagrams that were no messages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Exporter {
    /// Address and port that its messages come from.
    pub from: String,
    /// What it exported.
    #[serde(flatten)]
    pub exported: Exported,
}

/// What came of exporters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Exported {
    /// Messages that were received.
    pub messages: u64,
    /// Bytes of the messages.
    pub message_bytes: u64,
    /// Flow records that were received.
    pub records: u64,
    /// Packets that the flow records count.
    pub packets: u64,
    /// Bytes of IP that the flow records count.
    pub octets: u64,
    /// Options records that were received.
    pub options_records: u64,
    /// Templates, each as often as it came.
    pub templates: u64,
    /// Messages that could not be read to their end.
    pub malformed_messages: u64,
    /// Sets of records whose template never came, or came too late.
    pub unread_sets: u64,
    /// Records that did not arrive, by the exporters' sequence numbers (NetFlow v5, IPFIX).
    pub missing_records: u64,
    /// Messages that did not arrive, by the exporters' sequence numbers (NetFlow v9, sFlow).
    pub missing_messages: u64,
    /// Records that did not arrive, or arrived in sets without a template: which of the two cannot be known (IPFIX).
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub uncounted_records: u64,
    /// Messages that came behind later ones; what they hold is not missing.
    pub late_messages: u64,
    /// Messages whose sequence numbers had arrived before.
    #[serde(default)]
    pub duplicate_messages: u64,
    /// Flow records in duplicate messages: these are in `records` and in what is written, too.
    #[serde(default)]
    pub duplicate_records: u64,
    /// Number of times that an exporter restarted its counting. What was lost around a restart is not known.
    pub restarts: u64,
    /// Templates and observation domains that had no room, or lost it to others.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub refused_templates: u64,
    /// Records that exporters report as not sent (`notSentFlowTotalCount`), since this collector listens.
    pub unsent_records: u64,
    /// Packets that exporters report as not metered (`ignoredPacketTotalCount`), since this collector listens.
    pub unmetered_packets: u64,
    /// Records whose exporter does not say its sampling rate: how many packets they stand for is not known.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub unknown_sampling_records: u64,
    /// Sets of reserved numbers, which were passed over (RFC 7011, 3.3.2).
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub reserved_sets: u64,
    /// Samples of sFlow that gave no record: not of IP, cut off before the addresses, or of an unknown kind.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub unread_samples: u64,
    /// Samples that did not arrive, by the numbers that the sources of sFlow give them.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub missing_samples: u64,
    /// Samples that agents of sFlow say they dropped for lack of resources.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub dropped_samples: u64,
    /// Messages whose counts or lengths disagree with what was read in them: the header of NetFlow v9 counts other records, a datagram of
    /// sFlow has more samples or records than it counts, or a set ends with more than padding.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub miscounted_messages: u64,
}

figures! {
    /// Flow records that a collector received.
    RECORDS = "collected_flow_records", "flow records received", Count;
    /// Flow records a second, from the first message to the last.
    RATE = "collected_flow_records_per_second", "flow records a second", PerSecond, Higher;
    /// Export messages that the collector itself lost.
    DROPPED = "collector_dropped_messages", "messages lost by the collector", Count, Lower;
    /// Flow records that are missing by the exporters' numbers.
    MISSING = "missing_flow_records", "flow records missing", Count, Lower;
}

/// Its figures, as far as they are known.
pub(crate) fn figures(report: &Report) -> Vec<Measured> {
    let all = report.result.collection.iter();
    all.flat_map(|c| {
        let counts = [DROPPED.count(c.dropped_messages), MISSING.count(c.all.missing_records)];
        let rate = c.records_per_second.map(|rate| RATE.is(rate));
        [RECORDS.count(c.all.records)].into_iter().chain(rate).chain(counts)
    })
    .collect()
}
