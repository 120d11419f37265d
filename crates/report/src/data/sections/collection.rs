//! What a flow collector received.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Line, Section};
use crate::data::figure::{Measured, figures};
use crate::data::model::Report;
use crate::data::units;
use crate::render::html::grid::Facts;

/// What a flow collector received (`netdyno collect`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Collection {
    /// Of all exporters together.
    #[serde(flatten)]
    pub all: Exported,
    /// Records a second, from the first message to the last.
    pub records_per_second: f64,
    /// Messages that the kernel had no room for: this collector lost them, no exporter did.
    pub dropped_messages: u64,
    /// Connections that exporters made (TCP),
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub connections: u64,
    /// and those that were closed here: a message could not be read, or there was no room.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub closed_connections: u64,
    /// Records that were written wherever they were to be written: the least of `sinks`. One of both directions is written as two.
    pub written_records: u64,
    /// Records for which a writer had no room or no disk: the most of `sinks`.
    pub unwritten_records: u64,
    /// Where records were written, each by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sinks: Vec<Written>,
    /// Exporters; of those that are forgotten each address counts once.
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
    /// Which.
    pub to: String,
    /// Records that were written and, where that can be had, confirmed. Of a pipe, those that went into it.
    pub written_records: u64,
    /// Records that were not.
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
    /// Where its messages come from.
    pub from: String,
    /// What came.
    #[serde(flatten)]
    pub exported: Exported,
}

/// What came of exporters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Exported {
    /// Messages.
    pub messages: u64,
    /// Their bytes.
    pub message_bytes: u64,
    /// Records of flows,
    pub records: u64,
    /// the packets that they count,
    pub packets: u64,
    /// and the bytes of IP.
    pub octets: u64,
    /// Records of options.
    pub options_records: u64,
    /// Templates, each as often as it came.
    pub templates: u64,
    /// Messages that could not be read to their end.
    pub malformed_messages: u64,
    /// Sets of records whose template never came, or came too late.
    pub unread_sets: u64,
    /// By the exporters' numbers: records that did not arrive (NetFlow v5, IPFIX).
    pub missing_records: u64,
    /// By their numbers: messages that did not arrive (NetFlow v9, sFlow).
    pub missing_messages: u64,
    /// Records that did not arrive, or arrived in sets without a template: which of the two nobody knows (IPFIX).
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub uncounted_records: u64,
    /// Messages that came behind later ones; what they hold is not missing.
    pub late_messages: u64,
    /// Messages that came although their numbers had come already,
    #[serde(default)]
    pub duplicate_messages: u64,
    /// and the records of flows in them: these are in `records` and in what is written, too.
    #[serde(default)]
    pub duplicate_records: u64,
    /// How often an exporter began to count anew. What was lost around it is not known.
    pub restarts: u64,
    /// Templates and observation domains that had no room, or lost it to others.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub refused_templates: u64,
    /// Records that exporters say they did not send (`notSentFlowTotalCount`), since this collector listens.
    pub unsent_records: u64,
    /// Packets that they say they did not meter (`ignoredPacketTotalCount`), since then.
    pub unmetered_packets: u64,
    /// Records whose exporter does not say one packet in how many it looks at: what they count stands for nobody knows how much more.
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
    /// Samples that agents of sFlow say they dropped for want of resources.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub dropped_samples: u64,
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

pub(super) struct Collected;

impl Section for Collected {
    fn figures(&self, report: &Report) -> Vec<Measured> {
        let all = report.result.collection.iter();
        all.flat_map(|c| {
            [
                RECORDS.count(c.all.records),
                RATE.is(c.records_per_second),
                DROPPED.count(c.dropped_messages),
                MISSING.count(c.all.missing_records),
            ]
        })
        .collect()
    }

    fn lines(&self, report: &Report) -> Vec<Line> {
        let Some(c) = &report.result.collection else { return Vec::new() };
        let mut received = vec![
            units::counted(c.all.records, "record"),
            format!("{} records/s", units::count(c.records_per_second.round() as u64)),
            units::counted(c.all.messages, "message"),
            units::counted(c.exporters, "exporter"),
            format!("{} lost by this collector", units::count(c.dropped_messages)),
        ];
        if c.connections > 0 {
            let closed = units::count(c.closed_connections);
            received.push(format!("{} ({closed} closed here)", units::counted(c.connections, "connection")));
        }
        received.extend(c.all.odd());
        let counted =
            vec![units::counted(c.all.packets, "packet"), format!("{} of IP", units::bytes(c.all.octets))];
        let mut lines = vec![Line::facts("received", received), Line::facts("counting", counted)];
        if c.written_records + c.unwritten_records > 0 {
            let many = c.sinks.len() > 1;
            for sink in &c.sinks {
                let mut written = vec![
                    units::counted(sink.written_records, "record"),
                    format!("{} not written", units::count(sink.unwritten_records)),
                ];
                if sink.faults > 0 && sink.fault.is_none() {
                    written.push(format!("{} overcome", units::counted(sink.faults, "fault")));
                }
                written.extend(many.then(|| format!("to {}", units::printable(&sink.to))));
                lines.push(Line::facts("written", written));
            }
        }
        for exporter in c.by_exporter.iter().take(MOST_LINES) {
            let e = &exporter.exported;
            let mut facts = vec![units::counted(e.records, "record"), units::counted(e.messages, "message")];
            facts.extend(e.odd());
            lines.push(Line::text(
                "from",
                format!("{}: {}", units::printable(&exporter.from), facts.join(", ")),
            ));
        }
        lines
    }

    fn facts(&self, report: &Report, facts: &mut Facts) {
        let Some(c) = &report.result.collection else { return };
        facts.add("flow records received", &units::count(c.all.records));
        facts.add("records a second", &units::count(c.records_per_second.round() as u64));
        facts.add("messages lost by this collector", &units::count(c.dropped_messages));
        facts.add("records missing", &units::count(c.all.missing_records));
        facts.add("messages missing", &units::count(c.all.missing_messages));
        facts.add("exporters", &units::count(c.exporters));
    }
}

/// Exporters that the summary lists; the result has more.
const MOST_LINES: usize = 8;

impl Exported {
    /// What is out of order.
    fn odd(&self) -> Vec<String> {
        let all = [
            ("records missing", self.missing_records),
            ("messages missing", self.missing_messages),
            ("records missing or without a template", self.uncounted_records),
            ("messages late", self.late_messages),
            ("messages twice", self.duplicate_messages),
            ("messages malformed", self.malformed_messages),
            ("sets without a template", self.unread_sets),
            ("restarts", self.restarts),
            ("templates without room", self.refused_templates),
            ("records not sent, as exporters say", self.unsent_records),
            ("packets not metered, as exporters say", self.unmetered_packets),
            ("records whose sampling is not known", self.unknown_sampling_records),
            ("sets of reserved numbers passed over", self.reserved_sets),
            ("samples without a record", self.unread_samples),
            ("samples missing", self.missing_samples),
            ("samples dropped, as agents say", self.dropped_samples),
        ];
        let there = all.into_iter().filter(|(_, count)| *count > 0);
        there.map(|(what, count)| format!("{} {what}", units::count(count))).collect()
    }
}
