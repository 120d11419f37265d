//! The figures of a result that can be compared, each with what the result knows of its own unsteadiness.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::noise::Sample;
use crate::model::{Interval, Report};
use crate::search::{SizeResult, Spread, Trial};
use crate::units;

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    FramesPerSecond,
    BitsPerSecond,
    Ns,
    Seconds,
    /// 0 to 1.
    Ratio,
    Count,
}

/// Which direction is for the better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    Higher,
    Lower,
}

/// What a single result says of how a figure varies.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Within {
    Nothing,
    /// Its value in each interval of the run.
    Intervals(Vec<f64>),
    /// In each trial of the search.
    Trials(Sample),
    /// It lies between these: what passed, and what did not.
    Bounds(f64, Option<f64>),
}

/// A figure of one result.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Figure {
    pub name: String,
    pub unit: Unit,
    pub better: Better,
    pub value: f64,
    pub within: Within,
}

impl Unit {
    /// A value for people.
    pub fn show(self, value: f64) -> String {
        let sign = if value < 0.0 { "-" } else { "" };
        let size = value.abs();
        let text = match self {
            Unit::FramesPerSecond => units::frame_rate(size),
            Unit::BitsPerSecond => units::bit_rate(size),
            Unit::Ns => units::time(size.round() as u64),
            Unit::Seconds => units::time((size * 1e9).round() as u64),
            Unit::Ratio => units::percent(size),
            Unit::Count => units::count(size.round() as u64),
        };
        format!("{sign}{text}")
    }
}

/// All figures that `report` has.
pub(super) fn of(report: &Report) -> Vec<Figure> {
    let mut figures = Vec::new();
    run(report, &mut figures);
    if let Some(search) = &report.result.search {
        for size in &search.sizes {
            searched(size, &report.result.trials, &search.axis, &mut figures);
        }
    } else if report.command == "trial" && report.result.tx.is_none() {
        for t in &report.result.trials {
            trial(t, &mut figures);
        }
    }
    figures.retain(|figure| figure.value.is_finite());
    figures
}

fn run(report: &Report, figures: &mut Vec<Figure>) {
    let result = &report.result;
    let over_time = |get: &dyn Fn(&Interval) -> Option<f64>| {
        // A run's first and last interval hold its start and end.
        let all = report.intervals.get(1..report.intervals.len().saturating_sub(1)).unwrap_or_default();
        let values: Vec<f64> =
            all.iter().filter(|i| i.duration_ns() > 0).filter_map(get).filter(|v| v.is_finite()).collect();
        if values.is_empty() { Within::Nothing } else { Within::Intervals(values) }
    };
    let mut add = |name: &str, unit, better, value: f64, within| {
        figures.push(Figure { name: name.to_owned(), unit, better, value, within });
    };
    use Better::{Higher, Lower};
    use Unit::{BitsPerSecond, FramesPerSecond, Ns, Ratio};
    let timed = |t: &&crate::model::Totals| t.duration_ns > 0;
    if let Some(t) = result.tx.as_ref().map(|tx| &tx.totals).filter(timed) {
        let rate = over_time(&|i| i.tx().map(|t| t.frames_per_second));
        add("sent", FramesPerSecond, Higher, t.frames_per_second, rate);
        let bits = over_time(&|i| i.tx_bytes.and(i.tx()).map(|t| t.bits_per_second));
        add("sent, layer 2", BitsPerSecond, Higher, t.bits_per_second, bits);
    }
    if let Some(t) = result.rx.as_ref().map(|rx| &rx.totals).filter(timed) {
        let rate = over_time(&|i| i.rx().map(|t| t.frames_per_second));
        add("received", FramesPerSecond, Higher, t.frames_per_second, rate);
        let bits = over_time(&|i| i.rx_bytes.and(i.rx()).map(|t| t.bits_per_second));
        add("received, layer 2", BitsPerSecond, Higher, t.bits_per_second, bits);
    }
    if let Some(loss) = result.loss {
        let within = over_time(&|i| {
            let lost = i.lost_frames?;
            let of = i.tx_frames.or(Some(i.rx_frames?.saturating_add(lost)))?;
            (of > 0).then(|| lost as f64 / of as f64)
        });
        // Others' frames may hide some of what was only counted: that is another figure.
        let name = if loss.by_count_only { "lost, by count only" } else { "lost" };
        add(name, Ratio, Lower, loss.ratio, within);
    }
    if let Some(rx) = result.rx.as_ref().filter(|rx| rx.totals.frames > 0) {
        let of = rx.totals.frames as f64;
        for (name, count) in [("reordered", rx.reordered_frames), ("duplicated", rx.duplicated_frames)] {
            if let Some(count) = count {
                add(name, Ratio, Lower, count as f64 / of, Within::Nothing);
            }
        }
    }
    if let Some(d) = result.latency_ns.as_ref().filter(|d| d.count > 0) {
        let p50 = over_time(&|i| i.latency_p50_ns.map(|ns| ns as f64));
        let p99 = over_time(&|i| i.latency_p99_ns.map(|ns| ns as f64));
        add("latency, p50", Ns, Lower, d.p50 as f64, p50);
        add("latency, p99", Ns, Lower, d.p99 as f64, p99);
        add("latency, p99.9", Ns, Lower, d.p999 as f64, Within::Nothing);
    }
    if let Some(p) = &result.pacing {
        if let Some(d) = &p.gap_error_ns {
            add("gap error, p50", Ns, Lower, d.p50 as f64, Within::Nothing);
            add("gap error, p99", Ns, Lower, d.p99 as f64, Within::Nothing);
        }
        if let Some(d) = &p.lateness_ns {
            add("lateness, p99", Ns, Lower, d.p99 as f64, Within::Nothing);
        }
    }
}

fn searched(size: &SizeResult, trials: &[Trial], axis: &str, figures: &mut Vec<Figure>) {
    let bytes = match size.frame_size.bytes().all(|b| b.is_ascii_digit()) {
        true => format!("{} bytes", size.frame_size),
        false => size.frame_size.clone(),
    };
    let mut add = |name: String, unit, better, value: f64, within| {
        figures.push(Figure { name: format!("{bytes}: {name}"), unit, better, value, within });
    };
    use Better::{Higher, Lower};
    use Unit::{Count, FramesPerSecond, Ns, Ratio, Seconds};
    for found in size.throughput.iter().flatten() {
        let bounds = Within::Bounds(found.frames_per_second, found.failed_frames_per_second);
        add(
            format!("throughput with {}", found.goal),
            FramesPerSecond,
            Higher,
            found.frames_per_second,
            bounds,
        );
    }
    if let Some(found) = size.found {
        let better = if axis == "frame_size" { Lower } else { Higher };
        add(axis.replace('_', " "), Count, better, found, Within::Nothing);
    }
    for at in &size.latency {
        let of_load = |t: &&Trial| {
            t.part == "latency" && t.frame_size == size.frame_size && t.load == at.frames_per_second
        };
        let each = |get: fn(&crate::search::TrialLatency) -> f64| {
            let values: Vec<f64> =
                trials.iter().filter(of_load).filter_map(|t| t.latency_ns.as_ref().map(get)).collect();
            Within::Trials(Sample::Values(values))
        };
        // Throughputs that were searched differ a little from each other: the place says which load it is, not its rate.
        let load = units::frame_rate(at.frames_per_second);
        let load =
            if size.throughput.is_empty() { format!("at {load}") } else { "at the throughput".to_owned() };
        add(format!("typical latency {load}"), Ns, Lower, at.typical_ns as f64, each(|d| d.p50 as f64));
        add(
            format!("worst-case latency {load}"),
            Ns,
            Lower,
            at.worst_case_ns as f64,
            each(|d| d.p999 as f64),
        );
        add(
            format!("delay variation {load}"),
            Ns,
            Lower,
            at.variation_ns as f64,
            each(|d| d.p999.saturating_sub(d.min) as f64),
        );
    }
    for at in size.loss_curve.iter().filter(|at| at.tester_ratio == 0.0) {
        let load = units::frame_rate(at.frames_per_second);
        add(format!("lost at {load}"), Ratio, Lower, at.loss_ratio, Within::Nothing);
    }
    let summary =
        |s: &Spread| Within::Trials(Sample::Summary { count: s.count, mean: s.mean, stddev: s.stddev });
    if let Some(burst) = size.burst.filter(|burst| !burst.at_limit) {
        add("longest burst".to_owned(), Count, Higher, burst.frames.mean, summary(&burst.frames));
        if let Some(s) = burst.corrected_buffer_s {
            add("buffer".to_owned(), Seconds, Higher, s, Within::Nothing);
        }
    }
    if let Some(s) = &size.recovery_ns {
        add("recovery".to_owned(), Ns, Lower, s.mean, summary(s));
    }
    if let Some(s) = &size.outage_ns {
        add("outage".to_owned(), Ns, Lower, s.mean, summary(s));
    }
}

fn trial(t: &Trial, figures: &mut Vec<Figure>) {
    let mut add = |name: &str, unit, value: f64| {
        let name = format!("{} bytes: {name}", t.frame_size);
        figures.push(Figure { name, unit, better: Better::Lower, value, within: Within::Nothing });
    };
    add("lost", Unit::Ratio, t.lost_frames as f64 / t.sent_frames.max(1) as f64);
    add("sender short", Unit::Ratio, t.shortfall_ratio);
    if let Some(d) = &t.latency_ns {
        add("latency, p50", Unit::Ns, d.p50 as f64);
        add("latency, p99", Unit::Ns, d.p99 as f64);
        add("latency, p99.9", Unit::Ns, d.p999 as f64);
    }
}
