//! A flow probe in lines: what it metered, and what became of its records.

use super::{Line, Section};
use crate::data::model::Report;
use crate::data::units;
use crate::render::html::grid::Facts;

pub(super) struct Metered;

/// Collectors that the summary lists; the result has more.
const MOST_LINES: usize = 8;

impl Section for Metered {
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
                format!(
                    "in {} of {}",
                    units::counted(m.sent_messages, "message"),
                    units::bytes(m.sent_bytes)
                ),
                format!("{} not sent", units::count(m.unsent_records)),
            ];
            sent.extend(m.arrived_records.map(|count| format!("{} arrived", units::count(count))));
            sent.extend(m.missing_records.map(|count| format!("{} missing", units::count(count))));
            sent.extend(some(vec![
                ("IPv6, which v5 cannot say", m.unsayable_records),
                ("of times that cannot be said", m.untimely_records),
            ]));
            // Templates and what the probe says of itself are messages, too: a collector counts them all.
            sent.extend(match m.collectors.as_slice() {
                [one] => one.messages.checked_sub(m.sent_messages).filter(|more| *more > 0).map(|more| {
                    format!("{} of templates and of the probe itself", units::counted(more, "more message"))
                }),
                _ => None,
            });
            lines.push(Line::facts("exported", sent));
            if let [_, _, ..] = m.collectors.as_slice() {
                for collector in m.collectors.iter().take(MOST_LINES) {
                    let messages = units::counted(collector.messages, "message");
                    let to = units::printable(&collector.to);
                    lines.push(Line::text("to", format!("{to}: {messages}, those of templates among them")));
                }
            }
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
