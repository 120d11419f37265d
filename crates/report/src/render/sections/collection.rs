//! A flow collector in lines: what it received, from whom, and where it wrote it.

use super::{Line, Section};
use crate::data::model::Report;
use crate::data::sections::collection::Exported;
use crate::data::units;
use crate::render::html::grid::Facts;

pub(super) struct Collected;

impl Section for Collected {
    fn lines(&self, report: &Report) -> Vec<Line> {
        let Some(c) = &report.result.collection else { return Vec::new() };
        let mut received = vec![units::counted(c.all.records, "record")];
        received.extend(
            c.records_per_second.map(|rate| format!("{} records/s", units::count(rate.round() as u64))),
        );
        received.extend([
            units::counted(c.all.messages, "message"),
            units::counted(c.exporters, "exporter"),
            format!("{} lost by this collector", units::count(c.dropped_messages)),
        ]);
        if c.connections > 0 {
            let closed = units::count(c.closed_connections);
            received.push(format!("{} ({closed} closed here)", units::counted(c.connections, "connection")));
        }
        received.extend(c.all.none_missing());
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
        facts.maybe("records a second", c.records_per_second.map(|rate| units::count(rate.round() as u64)));
        facts.add("messages lost by this collector", &units::count(c.dropped_messages));
        facts.add("records missing", &units::count(c.all.missing_records));
        facts.add("messages missing", &units::count(c.all.missing_messages));
        facts.add("exporters", &units::count(c.exporters));
    }
}

/// Exporters that the summary lists; the result has more.
const MOST_LINES: usize = 8;

impl Exported {
    /// That nothing is missing, where sequence numbers tell it of all between the first message and the last; what was sent before
    /// and behind them nobody here knows.
    fn none_missing(&self) -> Option<String> {
        let gaps = [
            self.missing_records,
            self.missing_messages,
            self.uncounted_records,
            self.missing_samples,
            self.unread_sets,
            self.malformed_messages,
            self.miscounted_messages,
            self.restarts,
        ];
        (self.messages > 0 && gaps.iter().all(|count| *count == 0))
            .then(|| "0 missing between the first and the last".to_owned())
    }

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
            ("messages that count other records", self.miscounted_messages),
        ];
        let there = all.into_iter().filter(|(_, count)| *count > 0);
        there.map(|(what, count)| format!("{} {what}", units::count(count))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn that_nothing_is_missing_is_said_only_where_it_is_known() {
        let whole = Exported { messages: 3, records: 30, ..Exported::default() };
        assert_eq!(whole.none_missing().as_deref(), Some("0 missing between the first and the last"));
        assert_eq!(Exported::default().none_missing(), None, "nothing came");
        // Behind a restart the numbers begin anew.
        for other in [
            Exported { missing_records: 1, ..whole },
            Exported { missing_messages: 1, ..whole },
            Exported { restarts: 1, ..whole },
            Exported { uncounted_records: 1, ..whole },
            Exported { miscounted_messages: 1, ..whole },
        ] {
            assert_eq!(other.none_missing(), None, "{other:?}");
        }
    }
}
