//! What a flow probe counted, and what became of its records.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::data::figure::{Measured, figures};
use crate::data::model::Report;

/// What a flow probe counted, and what became of its records (`netdyno probe`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Metering {
    /// Packets that were counted for a flow.
    pub packets: u64,
    /// Bytes of IP in those packets: headers and payload, without link headers, padding and FCS (`octetDeltaCount`).
    pub octets: u64,
    /// Frames that are not IP.
    pub other_frames: u64,
    /// Frames of a capture whose link type is not known here, so that nothing is known of what is in them.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub unreadable_frames: u64,
    /// Fragments in flows with ports of 0, because the first one of their packet did not come before them, or is no longer known.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub unattributed_fragments: u64,
    /// Frames whose headers are cut off or contradict each other.
    pub malformed_frames: u64,
    /// Frames that sampling passed over.
    pub unsampled_frames: u64,
    /// Frames that the kernel lost because the probe was slower.
    pub dropped_frames: u64,
    /// Frames longer than the interface sends: several that the kernel had joined, counted as one packet each.
    pub joined_frames: u64,
    /// Frames that left by the interface; the others arrived.
    #[serde(default)]
    pub left_frames: u64,
    /// Records that ended because no packet came for the idle timeout.
    pub idle_records: u64,
    /// Records that ended because they lasted longer than the active timeout.
    pub active_records: u64,
    /// Records that ended with TCP's FIN or RST.
    pub closed_records: u64,
    /// Records that ended with the run.
    pub forced_records: u64,
    /// Records that ended early because there was no room for another flow.
    pub displaced_records: u64,
    /// Records that ended because their counters would not have held more (NetFlow v5: 4,294,967,295 bytes).
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub full_records: u64,
    /// New flows a second.
    pub records_per_second: f64,
    /// The most flows at once.
    pub most_flows: u64,
    /// Memory that flows took, in bytes.
    pub table_bytes: u64,
    /// The longest search in the table of flows, in steps.
    pub longest_search: u32,
    /// Records that were sent to a collector and not refused by it, as far as is known.
    pub sent_records: u64,
    /// Messages that records were sent in, each counted once however many collectors got it, without those of templates and
    /// of the probe's own options.
    pub sent_messages: u64,
    /// Records that arrived, by the counts of collectors that agents ran as parts of the same job. Left out where there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrived_records: Option<u64>,
    /// Records that were sent and did not arrive there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_records: Option<u64>,
    /// Bytes of the messages that records were sent in.
    pub sent_bytes: u64,
    /// Records that were not sent: no room in the queue, or every collector that was to get them refused them.
    pub unsent_records: u64,
    /// Records that the protocol cannot say: IPv6 in NetFlow v5.
    pub unsayable_records: u64,
    /// Records whose times the protocol cannot say: NetFlow counts them from the start of the exporter, in 32 bits.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub untimely_records: u64,
    /// Counts for each collector.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collectors: Vec<Collector>,
}

/// Where records went.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Collector {
    /// Address and port of the collector, with `tcp://` before them over TCP.
    pub to: String,
    /// Messages that were sent there, those of templates and of the probe among them, less those that were refused.
    pub messages: u64,
    /// Messages that the collector's host answered with an ICMP error, or that could not be sent. A host sends at most about
    /// one such error per second, so over a network more may have been refused.
    pub refused_messages: u64,
    /// Messages of records that found no room while it took none, or were on their way when the connection broke (TCP).
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub lost_messages: u64,
    /// Connections that were made to it (TCP).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<u64>,
}

impl Metering {
    /// Records that ended.
    pub fn records(&self) -> u64 {
        self.idle_records
            + self.active_records
            + self.closed_records
            + self.forced_records
            + self.displaced_records
            + self.full_records
    }
}

figures! {
    /// Flow records that ended.
    RECORDS = "flow_records", "flow records", Count;
    /// New flow records a second, over the whole run.
    RATE = "flow_records_per_second", "new flows a second" as "new flow records a second", PerSecond;
    /// Frames that the kernel lost because the probe was slower.
    DROPPED = "metering_dropped_frames", "frames not metered", Count, Lower;
    /// Flow records that ended and were not sent.
    UNSENT = "unsent_flow_records", "records not sent", Count, Lower;
}

/// Its figures, as far as they are known.
pub(crate) fn figures(report: &Report) -> Vec<Measured> {
    let all = report.result.metering.iter();
    all.flat_map(|m| {
        [
            RECORDS.count(m.records()),
            RATE.is(m.records_per_second),
            DROPPED.count(m.dropped_frames),
            UNSENT.count(m.unsent_records),
        ]
    })
    .collect()
}
