//! A search between two endpoints: what was found, and its trials.

use super::{Line, Section};
use crate::data::model::Report;
use crate::data::search::TrialLatency;
use crate::data::sections::endpoint_search::{
    BufferPoint, EndpointCounts, EndpointSearch, EndpointTrial, SocketBufferFound, TransactionsFound,
};
use crate::data::units;
use crate::render::html::grid::{DASH, Facts, Grid, first_of};
use crate::render::table::{Less, Table};
use crate::render::text::Options;

fn asked(bytes: Option<u64>) -> String {
    bytes.map_or("kernel's own".to_owned(), units::buffer)
}

/// `p99`, `p99.9`, `longest`.
pub(crate) fn percentile(of: f64) -> String {
    if of >= 100.0 { "longest".to_owned() } else { format!("p{of}") }
}

impl EndpointSearch {
    /// A result for people.
    pub(crate) fn show(&self, per_second: f64) -> String {
        match self.counts {
            EndpointCounts::Bits => units::bit_rate(per_second),
            _ => format!("{} transactions/s", units::count(per_second.round() as u64)),
        }
    }

    /// What happened, in one sentence without its full stop.
    pub(crate) fn sentence(&self) -> String {
        let trials = units::counted(self.trials.len() as u64, "trial");
        if !self.complete {
            return format!("Unfinished, by {trials}");
        }
        if let Some(found) = &self.socket_buffer {
            let best =
                format!("{} (with {})", self.show(found.best_per_second), whose(found.best_buffer_bytes));
            let enough = units::percent(found.enough_ratio);
            return match found.found_bytes {
                Some(bytes) => format!(
                    "Socket buffers of {} are the smallest that reach {enough} of the best, {best}",
                    units::buffer(bytes)
                ),
                None => {
                    format!("No size of socket buffers that was tried reaches {enough} of the best, {best}")
                }
            };
        }
        if let Some(found) = &self.transactions {
            let (of, bound) = (percentile(found.percentile), units::time(found.below_ns));
            return match found.per_second {
                Some(rate) => format!("{} with {of} below {bound}", self.show(rate)),
                None => format!("No rate was found whose {of} stays below {bound}"),
            };
        }
        format!("{trials} done; nothing found")
    }
}

fn whose(buffer: Option<u64>) -> String {
    buffer.map_or("the kernel's own tuning".to_owned(), units::buffer)
}

impl BufferPoint {
    /// The lower and the upper end of the mean's interval.
    pub(crate) fn interval(&self) -> Option<[f64; 2]> {
        let half = self.width_ratio? / 2.0;
        Some([self.per_second * (1.0 - half).max(0.0), self.per_second * (1.0 + half)])
    }

    fn granted(&self) -> [Option<String>; 2] {
        let of = |bytes: Option<u64>, capped: bool| {
            bytes.map(|bytes| format!("{}{}", units::buffer(bytes), if capped { " (limit)" } else { "" }))
        };
        [of(self.send_buffer_bytes, self.send_capped), of(self.receive_buffer_bytes, self.receive_capped)]
    }
}

impl SocketBufferFound {
    fn facts(&self, of: &EndpointSearch) -> Vec<String> {
        let mut facts = vec![match self.found_bytes {
            Some(bytes) => format!(
                "{} is enough ({} of the best)",
                units::buffer(bytes),
                units::percent(self.enough_ratio)
            ),
            None => "no size that was tried is enough".to_owned(),
        }];
        let best = of.show(self.best_per_second);
        facts.push(format!("best {best} with {}", whose(self.best_buffer_bytes)));
        if let Some(tuned) = self.tuned() {
            let share = units::percent(tuned.best_ratio);
            facts.push(format!("the kernel's own tuning reaches {} ({share})", of.show(tuned.per_second)));
        }
        if let (Some(product), Some(rtt)) = (self.bandwidth_delay_product_bytes, self.min_rtt_ns) {
            facts.push(format!(
                "bandwidth-delay product {} (least rtt {})",
                units::bytes(product),
                units::time(rtt)
            ));
        }
        facts
    }
}

impl TransactionsFound {
    fn facts(&self, of: &EndpointSearch) -> Vec<String> {
        let name = percentile(self.percentile);
        let mut facts = vec![match self.per_second {
            Some(rate) => of.show(rate),
            None => "no rate passed".to_owned(),
        }];
        if let Some(ns) = self.at_percentile_ns {
            facts.push(format!(
                "{name} {} at worst in {}",
                units::time(ns),
                units::counted(self.passed_trials.into(), "trial")
            ));
        }
        facts.push(format!("bound {}", units::time(self.below_ns)));
        if let Some(rate) = self.failed_per_second {
            let why = self.failed_reason.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
            facts.push(format!("failed at {}{why}", of.show(rate)));
        }
        if let Some(rate) = self.closed_loop_per_second {
            facts.push(format!(
                "a closed loop with {} in flight reached {}",
                self.closed_loop_in_flight,
                of.show(rate)
            ));
        }
        facts
    }
}

pub(super) struct Searched;

impl Section for Searched {
    fn lines(&self, report: &Report) -> Vec<Line> {
        let Some(s) = &report.result.endpoint_search else { return Vec::new() };
        let mut lines = Vec::new();
        lines.extend(s.socket_buffer.as_ref().map(|found| Line::facts("buffer", found.facts(s))));
        lines.extend(s.transactions.as_ref().map(|found| Line::facts("rate", found.facts(s))));
        lines.push(Line::facts("tested", tested(s)));
        lines
    }

    fn tables(&self, report: &Report, options: Options<'_>) -> Vec<String> {
        let Some(s) = &report.result.endpoint_search else { return Vec::new() };
        let mut tables = Vec::new();
        if let Some(found) = &s.socket_buffer {
            tables.push(buffer_table(s, found, options));
        }
        if let Some(found) = &s.transactions {
            tables.push(rate_table(s, found, options));
        }
        tables
    }

    fn facts(&self, report: &Report, facts: &mut Facts) {
        let Some(s) = &report.result.endpoint_search else { return };
        facts.add("endpoint test", &s.test);
        facts.add("server", &units::printable(&s.server));
        if let Some(found) = &s.socket_buffer {
            facts.add("socket buffer", &found.facts(s).join(", "));
        }
        if let Some(found) = &s.transactions {
            facts.add("transactions in time", &found.facts(s).join(", "));
        }
        facts.add("tested", &tested(s).join(", "));
        for (name, value) in &s.local_settings {
            let alike = s.remote_settings.get(name) == Some(value);
            let place = if alike { "at both ends" } else { "here" };
            facts.add(&format!("{} {place}", units::printable(name)), &units::printable(value));
        }
        for (name, value) in &s.remote_settings {
            if s.local_settings.get(name) != Some(value) {
                facts.add(&format!("{} at the server", units::printable(name)), &units::printable(value));
            }
        }
    }

    fn cards(&self, report: &Report) -> String {
        let Some(found) =
            report.result.endpoint_search.as_ref().and_then(|s| Some((s, s.socket_buffer.as_ref()?)))
        else {
            return String::new();
        };
        let (s, found) = found;
        let mut grid = Grid::new([
            "asked for",
            "result",
            "+/-",
            "of the best",
            "send buffer",
            "receive buffer",
            "rtt",
            "sent again",
            "lost",
        ]);
        for point in &found.points {
            let cells = buffer_cells(s, point).map(|cell| cell.unwrap_or_else(|| DASH.to_owned()));
            grid.row(&asked(point.buffer_bytes), cells);
        }
        grid.card("Socket buffers, and what the kernel granted", false)
    }

    fn appendix(&self, report: &Report) -> String {
        let Some(s) = &report.result.endpoint_search else { return String::new() };
        let header = [
            "trial",
            "stage",
            "buffer",
            "offered",
            "result",
            "p50",
            "p99",
            "longest",
            "not asked",
            "lost",
            "verdict",
        ];
        let mut grid = Grid::new(header);
        for t in s.trials.iter().take(MOST_ROWS) {
            let time = |of: fn(&TrialLatency) -> u64| {
                t.latency_ns.as_ref().map_or(DASH.to_owned(), |latency| units::time(of(latency)))
            };
            let buffer = if s.socket_buffer.is_some() { asked(t.buffer_bytes) } else { DASH.to_owned() };
            let cells = [
                t.stage.to_string(),
                buffer,
                t.intended_per_second.map_or(DASH.to_owned(), |rate| units::count(rate.round() as u64)),
                s.show(t.per_second),
                time(|l| l.p50),
                time(|l| l.p99),
                time(|l| l.max),
                units::count(t.unsent),
                units::count(t.lost),
                t.verdict.to_string(),
            ];
            grid.row(&t.number.to_string(), cells);
        }
        grid.card(&first_of("All trials", MOST_ROWS, s.trials.len()), true)
    }
}

/// Rows of trials on the page, at most.
const MOST_ROWS: usize = 1000;

fn tested(s: &EndpointSearch) -> Vec<String> {
    vec![
        format!("{} with {}", s.test, units::printable(&s.server)),
        units::counted(s.connections, "connection"),
        format!("{} of {}", units::counted(s.trials.len() as u64, "trial"), units::time(s.trial_ns)),
        format!("after a warm-up of {}", units::time(s.warm_up_ns)),
        format!("{} in all", units::time(s.elapsed_ns)),
    ]
}

/// Result, interval, share of the best, what was granted twice, rtt, sent again, lost.
fn buffer_cells(s: &EndpointSearch, point: &BufferPoint) -> [Option<String>; 8] {
    let [send, receive] = point.granted();
    [
        Some(s.show(point.per_second)),
        point.width_ratio.map(|width| units::percent(width / 2.0)),
        Some(units::percent(point.best_ratio)),
        send,
        receive,
        point.rtt_ns.map(units::time),
        point.retransmits.map(units::count),
        point.loss_ratio.map(units::percent),
    ]
}

fn buffer_table(s: &EndpointSearch, found: &SocketBufferFound, options: Options<'_>) -> String {
    let interval = format!("+/- at {}", units::percent(found.level));
    let mut table = Table::with_header([
        "asked for",
        "result",
        &interval,
        "of best",
        "send buffer",
        "receive buffer",
        "rtt",
        "sent again",
        "lost",
    ]);
    for point in &found.points {
        table.row(&asked(point.buffer_bytes), buffer_cells(s, point));
    }
    let less = [
        Less::Shorter("send buffer", "send"),
        Less::Shorter("receive buffer", "receive"),
        Less::Shorter("sent again", "again"),
        Less::Shorter(&interval, "+/-"),
        Less::Without(&["sent again"]),
        Less::Without(&["rtt"]),
        Less::Without(&[&interval]),
        Less::Without(&["of best"]),
    ];
    let mut text = table.within(options, &less);
    if found.points.iter().any(|point| point.send_capped || point.receive_capped) {
        text += "(limit): net.core.wmem_max or net.core.rmem_max grants no more\n";
    }
    text
}

fn rate_table(s: &EndpointSearch, found: &TransactionsFound, options: Options<'_>) -> String {
    let of = percentile(found.percentile);
    let mut rows: Vec<&EndpointTrial> = s.trials.iter().filter(|t| t.intended_per_second.is_some()).collect();
    rows.sort_by(|a, b| {
        a.intended_per_second.unwrap_or(0.0).total_cmp(&b.intended_per_second.unwrap_or(0.0))
    });
    let header = ["offered/s", "reached/s", "p50", of.as_str(), "longest", "not asked", "lost", "verdict"];
    let mut table = Table::with_header(header);
    for t in rows.iter().take(TABLE) {
        let time =
            |of: fn(&TrialLatency) -> u64| t.latency_ns.as_ref().map(|latency| units::time(of(latency)));
        let count = |n: u64| (n > 0).then(|| units::count(n));
        table.row(
            &units::count(t.intended_per_second.unwrap_or(0.0).round() as u64),
            [
                Some(units::count(t.per_second.round() as u64)),
                time(|l| l.p50),
                t.at_percentile_ns.map(units::time),
                time(|l| l.max),
                count(t.unsent),
                count(t.lost),
                Some(t.verdict.to_string()),
            ],
        );
    }
    let mut text = table.within(options, &[Less::Without(&["p50"]), Less::Without(&["longest"])]);
    if rows.len() > TABLE {
        text += &format!("and {} more in the JSON\n", rows.len() - TABLE);
    }
    text
}

/// Trials in the terminal's table, at most.
const TABLE: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_named_as_they_are_asked_for() {
        let shown = [4096, 1 << 20, 3 << 19, 128_000, 100].map(units::buffer);
        assert_eq!(shown, ["4 KiB", "1 MiB", "1536 KiB", "128 kB", "100 B"]);
        assert_eq!([50.0, 99.0, 99.9, 100.0].map(percentile), ["p50", "p99", "p99.9", "longest"]);
    }
}
