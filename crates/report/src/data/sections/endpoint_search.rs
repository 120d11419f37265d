//! What a search between two endpoints found (`netdyno search socket-buffer`, `netdyno search transactions`), and its trials.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use super::{Line, Section};
use crate::data::compare::noise::Sample;
use crate::data::figure::{Measured, Within, figures};
use crate::data::model::Report;
use crate::data::search::TrialLatency;
use crate::data::units;
use crate::render::html::grid::{DASH, Facts, Grid, first_of};
use crate::render::table::{Less, Table};
use crate::render::text::Options;

/// What a search between two endpoints found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EndpointSearch {
    /// `socket-buffer` or `transactions`.
    pub kind: String,
    /// The test that was done again and again: `tcp-stream`, `udp-rr`, ...
    pub test: String,
    /// Where the server is.
    pub server: String,
    /// It came to its end; if not it can be continued.
    pub complete: bool,
    /// Connections at once.
    pub connections: u64,
    /// How long each trial was measured.
    pub trial_ns: u64,
    /// What came before and was not.
    pub warm_up_ns: u64,
    /// Time that it took in all.
    pub elapsed_ns: u64,
    /// What `per_second` counts: `bits` of payload that the receiver got, or `transactions`.
    pub counts: String,
    /// The socket buffers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket_buffer: Option<SocketBufferFound>,
    /// The rate of transactions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transactions: Option<TransactionsFound>,
    /// All trials, in the order they were done.
    #[serde(default)]
    pub trials: Vec<EndpointTrial>,
    /// Settings of this host that bear on connections (net.core.wmem_max, ...), by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub local_settings: BTreeMap<String, String>,
    /// The server's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub remote_settings: BTreeMap<String, String>,
}

/// One trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EndpointTrial {
    /// From 1.
    pub number: u32,
    /// `sweep`; or `estimate` (a closed loop), `search`, `confirm`.
    pub stage: String,
    /// Asked for as SO_SNDBUF and SO_RCVBUF at both ends; left out where the kernel tunes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer_bytes: Option<u64>,
    /// The rate that was offered; left out as fast as it goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intended_per_second: Option<f64>,
    /// What came of it: bits or transactions a second.
    pub per_second: f64,
    /// The sender's buffer when it was over, as the kernel has it (SO_SNDBUF).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_buffer_bytes: Option<u64>,
    /// The receiver's (SO_RCVBUF).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_buffer_bytes: Option<u64>,
    /// TCP's smoothed round-trip time at the end,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_ns: Option<u64>,
    /// and the least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_rtt_ns: Option<u64>,
    /// Segments that were sent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmits: Option<u64>,
    /// Datagrams, or transactions over UDP, that were lost.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub lost: u64,
    /// Datagrams that were sent.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub sent: u64,
    /// Requests that were due and not asked within the trial.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub unsent: u64,
    /// How long transactions took: with a rate, from when each was due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<TrialLatency>,
    /// The percentile that is bounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_percentile_ns: Option<u64>,
    /// `done`, or `nothing arrived`; of a rate `passed`, or `latency` (above the bound), `lost`, `not carried` (fewer transactions than were due).
    pub verdict: String,
}

/// How results depend on socket buffers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SocketBufferFound {
    /// This share of the best result is enough.
    pub enough_ratio: f64,
    /// The best mean, of all sizes and of the kernel's own tuning.
    pub best_per_second: f64,
    /// With this size; left out for the kernel's own tuning.
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
    /// Their mean.
    pub per_second: f64,
    /// The whole width of its confidence interval (Student's t), as a share of it; left out of a single one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width_ratio: Option<f64>,
    /// The mean over the best one.
    pub best_ratio: f64,
    /// What the kernel granted the sender (SO_SNDBUF, read when the last repetition was over): twice what was asked, unless a limit
    /// is in the way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_buffer_bytes: Option<u64>,
    /// What it granted the receiver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_buffer_bytes: Option<u64>,
    /// The sender's kernel granted less than it doubles to: net.core.wmem_max is lower.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub send_capped: bool,
    /// The receiver's did: net.core.rmem_max is lower.
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
    /// The bound.
    pub below_ns: u64,
    /// What a closed loop reached, which the search began with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_loop_per_second: Option<f64>,
    /// With so many in flight over each connection.
    pub closed_loop_in_flight: u64,
    /// The highest rate that passed all its trials; left out where none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_second: Option<f64>,
    /// The lowest that did not pass; left out where the greatest that was to be tried passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_per_second: Option<f64>,
    /// Why it did not, of the last trial there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_reason: Option<String>,
    /// Trials that passed at the rate that was found.
    pub passed_trials: u32,
    /// The bounded percentile there: the worst of these trials.
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
        match self.counts.as_str() {
            "bits" => units::bit_rate(per_second),
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
    /// What the kernel tunes by itself.
    pub(crate) fn tuned(&self) -> Option<&BufferPoint> {
        self.points.iter().find(|point| point.buffer_bytes.is_none())
    }

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
    fn figures(&self, report: &Report) -> Vec<Measured> {
        let Some(s) = &report.result.endpoint_search else { return Vec::new() };
        let mut figures = Vec::new();
        if let Some(found) = &s.socket_buffer {
            figures.extend(found.found_bytes.map(|bytes| BUFFER.is(bytes as f64)));
            if s.counts == "bits" {
                let each = |point: &BufferPoint| Within::Trials(Sample::Values(point.results.clone()));
                let best = found.points.iter().find(|point| point.buffer_bytes == found.best_buffer_bytes);
                figures.extend(best.map(|best| BEST.is(best.per_second).with(each(best))));
                figures.extend(found.tuned().map(|tuned| TUNED.is(tuned.per_second).with(each(tuned))));
            }
        }
        if let Some((rate, found)) =
            s.transactions.as_ref().and_then(|found| Some((found.per_second?, found)))
        {
            figures.push(RATE.is(rate).with(Within::Bounds(rate, found.failed_per_second)));
        }
        figures
    }

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
                t.stage.clone(),
                buffer,
                t.intended_per_second.map_or(DASH.to_owned(), |rate| units::count(rate.round() as u64)),
                s.show(t.per_second),
                time(|l| l.p50),
                time(|l| l.p99),
                time(|l| l.max),
                units::count(t.unsent),
                units::count(t.lost),
                t.verdict.clone(),
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
                Some(t.verdict.clone()),
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
