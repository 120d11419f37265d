//! What a flow probe counted, and what became of its records.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Line, Section};
use crate::data::figure::{Measured, figures};
use crate::data::model::Report;
use crate::data::units;
use crate::render::html::grid::Facts;

/// What a flow probe counted, and what became of its records (`netdyno probe`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Metering {
    /// Packets that were counted for a flow.
    pub packets: u64,
    /// Their bytes of IP: headers and payload, without link headers, padding and FCS (`octetDeltaCount`).
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
    /// Records that ended, by the reason: no packet for the idle timeout,
    pub idle_records: u64,
    /// longer than the active timeout,
    pub active_records: u64,
    /// TCP's FIN or RST,
    pub closed_records: u64,
    /// the end of the run,
    pub forced_records: u64,
    /// no room for another flow.
    pub displaced_records: u64,
    /// their counters would not have held more (NetFlow v5: 4,294,967,295 bytes).
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
    /// Records that were sent to a collector, and that nobody is known to have refused.
    pub sent_records: u64,
    /// Messages that they were sent in, each once, however many collectors got it: without those of templates and of the probe,
    pub sent_messages: u64,
    /// and their bytes.
    pub sent_bytes: u64,
    /// Records that were not sent: no room in the queue, or every collector that was to get them refused them.
    pub unsent_records: u64,
    /// Records that the protocol cannot say: IPv6 in NetFlow v5.
    pub unsayable_records: u64,
    /// Records whose times the protocol cannot say: NetFlow counts them from the start of the exporter, in 32 bits.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub untimely_records: u64,
    /// Each collector.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collectors: Vec<Collector>,
}

/// Where records went.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Collector {
    /// Its address and port; over TCP `tcp://` ahead of them.
    pub to: String,
    /// Messages that were sent there, those of templates and of the probe among them, less those that were refused.
    pub messages: u64,
    /// Messages that its host said nobody takes, or that could not be sent. Hosts say it once a second at most, so over a network
    /// more may have been refused.
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

pub(super) struct Metered;

impl Section for Metered {
    fn figures(&self, report: &Report) -> Vec<Measured> {
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

    fn lines(&self, report: &Report) -> Vec<Line> {
        let Some(m) = &report.result.metering else { return Vec::new() };
        let some = |facts: Vec<(&str, u64)>| -> Vec<String> {
            let there = facts.into_iter().filter(|(_, count)| *count > 0);
            there.map(|(what, count)| format!("{} {what}", units::count(count))).collect()
        };
        let mut metered = vec![
            units::counted(m.packets, "packet"),
            format!("{} of IP", units::bytes(m.octets)),
            format!("{} dropped before the probe", units::count(m.dropped_frames)),
        ];
        metered.extend(some(vec![
            ("frames left", m.left_frames),
            ("frames not IP", m.other_frames),
            ("frames of an unknown link type", m.unreadable_frames),
            ("fragments without their first one", m.unattributed_fragments),
            ("malformed", m.malformed_frames),
            ("not sampled", m.unsampled_frames),
            ("joined by the kernel", m.joined_frames),
        ]));
        let mut flows = vec![
            units::counted(m.records(), "record"),
            units::flow_rate(m.records_per_second),
            format!("{} at once at most", units::count(m.most_flows)),
        ];
        flows.extend(some(vec![
            ("idle", m.idle_records),
            ("active timeout", m.active_records),
            ("closed", m.closed_records),
            ("at the end", m.forced_records),
            ("for lack of room", m.displaced_records),
            ("with full counters", m.full_records),
        ]));
        let mut lines = vec![Line::facts("metered", metered), Line::facts("flows", flows)];
        if !m.collectors.is_empty() {
            let mut sent = vec![
                units::counted(m.sent_records, "record"),
                units::counted(m.sent_messages, "message"),
                units::bytes(m.sent_bytes),
                format!("{} not sent", units::count(m.unsent_records)),
            ];
            sent.extend(some(vec![
                ("IPv6, which v5 cannot say", m.unsayable_records),
                ("of times that cannot be said", m.untimely_records),
            ]));
            lines.push(Line::facts("exported", sent));
        }
        lines
    }

    fn facts(&self, report: &Report, facts: &mut Facts) {
        let Some(m) = &report.result.metering else { return };
        let rate = units::flow_rate(m.records_per_second);
        facts.add("flow records", &format!("{} ({rate})", units::count(m.records())));
        facts.add("packets metered", &units::count(m.packets));
        facts.add("frames dropped before the probe", &units::count(m.dropped_frames));
        facts.add("most flows at once", &units::count(m.most_flows));
        facts.add("records sent", &units::count(m.sent_records));
        facts.add("records not sent", &units::count(m.unsent_records));
    }
}
