//! The tables of searches and trials, each described once: `search_text` draws them for the terminal, `html::search` for the page.

use super::search_text::in_bursts;
use super::table::Less::{self, Shorter, Without};
use super::tabular::{Column, Tabular, called, count, number, only_on_page, only_on_terminal, text, time};
use crate::data::causes::Cause;
use crate::data::figure::Unit;
use crate::data::model::Report;
use crate::data::search::{
    BurstFound, Floor, FlowTrial, FlowsFound, LatencyAt, LossAt, Part, SearchAxis, SearchResult, SizeResult,
    Stage, Throughput, Trial, TrialVerdict, Unfinished,
};
use crate::data::units;

/// Something that was found with frames of a size.
type Of<'a, T> = (&'a SizeResult, T);

fn size<T>((size, _): &Of<'_, T>) -> Option<String> {
    Some(size.frame_size.clone())
}

fn yes(is: bool) -> String {
    if is { "yes" } else { "no" }.to_owned()
}

/// A goal, if its name is known, and its throughput, if anything passed.
pub(crate) type GoalRow<'a> = Of<'a, (Option<&'a str>, Option<&'a Throughput>)>;

const NOTHING_PASSED: &str = "nothing passed";

/// What passed, a row for each size and goal.
pub(crate) fn throughput(search: &SearchResult) -> Tabular<GoalRow<'_>> {
    const LESS: &[Less<'_>] = &[
        Shorter("frame size", "size"),
        Shorter("layer 2, no FCS", "layer 2"),
        Without(&["layer 2, no FCS"]),
        Shorter("of the link", "of link"),
        Without(&["forwarded"]),
        Without(&["of the link"]),
        Without(&["layer 1"]),
    ];
    let columns: [Column<GoalRow<'_>>; 10] = [
        text("frame size", size),
        text("goal", |(_, (goal, _))| Some(goal.unwrap_or(NOTHING_PASSED).to_owned())),
        text("frames/s", |(_, (goal, found))| match found {
            Some(t) => Some(t.at_least(units::frame_rate(t.frames_per_second))),
            None => goal.map(|_| NOTHING_PASSED.to_owned()),
        }),
        called(
            "layer 2, no FCS",
            number("layer 2", Unit::BitsPerSecond, |(_, (_, found))| found.map(|t| t.bits_per_second)),
        ),
        number("layer 1", Unit::BitsPerSecond, |(_, (_, found))| found.map(|t| t.bits_per_second_l1)),
        only_on_page(number("link carries", Unit::FramesPerSecond, |(size, _)| {
            size.theoretical_frames_per_second
        })),
        called(
            "of the link",
            number("of it", Unit::Ratio, |(size, (_, found))| {
                let most = size.theoretical_frames_per_second.filter(|most| *most > 0.0)?;
                found.map(|t| t.frames_per_second / most)
            }),
        ),
        number("fails at", Unit::FramesPerSecond, |(size, (_, found))| match found {
            Some(t) => t.failed_frames_per_second,
            None => Some(size.least),
        }),
        number("forwarded", Unit::FramesPerSecond, |(_, (_, found))| {
            found.and_then(|t| t.conditional_frames_per_second)
        }),
        only_on_page(text("near enough", |(_, (_, found))| found.map(|t| yes(t.reached)))),
    ];
    let rows = search.sizes.iter().flat_map(|size| size.by_goal().map(move |goal| (size, goal)));
    Tabular::new(columns, LESS).marked(rows, |(_, (_, found))| if found.is_none() { "fault" } else { "" })
}

/// What was found on another axis than the rate; the terminal has a line for it.
pub(crate) fn others(search: &SearchResult) -> Tabular<(&SizeResult, &SearchAxis, f64)> {
    let columns: [Column<(&SizeResult, &SearchAxis, f64)>; 4] = [
        text("frame size", |(size, ..)| Some(size.frame_size.clone())),
        text("found", |(size, axis, found)| {
            Some(format!("{} {}{}", units::count(*found as u64), axis.in_words(), in_bursts(size)))
        }),
        count("tried from", |(size, ..)| Some(size.least as u64)),
        count("to", |(size, ..)| Some(size.greatest as u64)),
    ];
    let rows = search.sizes.iter().filter_map(|size| Some((size, &search.axis, size.found?)));
    Tabular::new(columns, &[]).of(rows)
}

fn part_and_goal(part: &Unfinished) -> String {
    part.goal.as_ref().map_or(part.part.to_string(), |goal| format!("{}, {goal}", part.part))
}

/// How far the parts came that did not come to their end.
pub(crate) fn unfinished(search: &SearchResult) -> Tabular<Of<'_, &Unfinished>> {
    const LESS: &[Less<'_>] = &[
        Shorter("frame size", "size"),
        Shorter("passed so far", "passed"),
        Shorter("failed so far", "failed"),
        Without(&["for", "for#2"]),
        // The last sentence has it, too.
        Without(&["trials"]),
    ];
    let columns: [Column<Of<'_, &Unfinished>>; 9] = [
        text("frame size", size),
        only_on_terminal(text("unfinished", |(_, part)| Some(part_and_goal(part)))),
        only_on_page(text("part", |(_, part)| Some(part.part.to_string()))),
        only_on_page(text("goal", |(_, part)| part.goal.clone())),
        text("passed so far", |(_, part)| part.passed.map(|value| part.value(value))),
        time("for", |(_, part)| part.passed_duration_ns.filter(|ns| *ns > 0)),
        text("failed so far", |(_, part)| part.failed.map(|value| part.value(value))),
        time("for", |(_, part)| part.failed_duration_ns.filter(|ns| *ns > 0)),
        text("trials", |(_, part)| Some(part.progress())),
    ];
    let rows = search.sizes.iter().flat_map(|size| size.unfinished.iter().map(move |part| (size, part)));
    Tabular::new(columns, LESS).marked(rows, |_| "own")
}

/// What went missing at a point of the loss curve, and with whom: of a result of before the curve's own ratio has both.
#[derive(Clone, Copy)]
pub(crate) struct Lost {
    pub by_device: f64,
    pub by_sender: f64,
}

impl Lost {
    pub fn at(trials: &[Trial], frame_size: &str, at: &LossAt) -> Self {
        let is_it =
            |t: &&Trial| t.part == Part::Loss && t.frame_size == frame_size && t.load == at.frames_per_second;
        match trials.iter().find(is_it) {
            Some(t) => {
                let sent = t.sent_frames.max(1) as f64;
                let device =
                    t.lost_frames.saturating_sub(t.missed_frames.saturating_add(t.unconfirmed_frames));
                Self { by_device: (device as f64 / sent).min(1.0), by_sender: t.shortfall_ratio }
            }
            None => Self { by_device: at.loss_ratio, by_sender: at.shortfall_ratio },
        }
    }
}

/// Loss by load.
pub(crate) fn loss<'a>(search: &'a SearchResult, trials: &[Trial]) -> Tabular<Of<'a, (&'a LossAt, Lost)>> {
    const LESS: &[Less<'_>] = &[Shorter("frame size", "size")];
    let columns: [Column<Of<'a, (&'a LossAt, Lost)>>; 6] = [
        text("frame size", size),
        number("load", Unit::Ratio, |(_, (at, _))| Some(at.load_ratio)),
        number("frames/s", Unit::FramesPerSecond, |(_, (at, _))| Some(at.frames_per_second)),
        number("lost", Unit::Ratio, |(_, (_, lost))| Some(lost.by_device)),
        number("sender short", Unit::Ratio, |(_, (_, lost))| Some(lost.by_sender).filter(|r| *r > 0.0)),
        number("tester lost", Unit::Ratio, |(_, (at, _))| Some(at.tester_ratio).filter(|r| *r > 0.0)),
    ];
    let rows = search.sizes.iter().flat_map(|size| {
        size.loss_curve.iter().map(move |at| (size, (at, Lost::at(trials, &size.frame_size, at))))
    });
    let class = |(_, (at, lost)): &Of<'a, (&'a LossAt, Lost)>| {
        if lost.by_sender > 0.0 || at.tester_ratio > 0.0 { "own" } else { "" }
    };
    Tabular::new(columns, LESS).marked(rows, class)
}

/// Latency over the trials.
pub(crate) fn latency(search: &SearchResult) -> Tabular<Of<'_, &LatencyAt>> {
    const LESS: &[Less<'_>] = &[
        Shorter("frame size", "size"),
        Shorter("worst case", "worst"),
        Without(&["jitter"]),
        Without(&["mean"]),
        Without(&["trials"]),
        Without(&["IPDV"]),
    ];
    let columns: [Column<Of<'_, &LatencyAt>>; 12] = [
        text("frame size", size),
        number("at", Unit::FramesPerSecond, |(_, at)| Some(at.frames_per_second)),
        count("trials", |(_, at)| Some(at.repetitions.into())),
        time("min", |(_, at)| Some(at.min_ns)),
        time("mean", |(_, at)| Some(at.mean_ns as u64)),
        time("typical", |(_, at)| Some(at.typical_ns)),
        time("worst case", |(_, at)| Some(at.worst_case_ns)),
        time("max", |(_, at)| Some(at.max_ns)),
        time("PDV", |(_, at)| Some(at.variation_ns)),
        only_on_page(time("IPDV, typical", |(_, at)| at.frame_to_frame_typical_ns)),
        called("IPDV", time("IPDV, 99.9 %", |(_, at)| at.frame_to_frame_worst_ns)),
        time("jitter", |(_, at)| at.jitter_ns),
    ];
    let rows = search.sizes.iter().flat_map(|size| size.latency.iter().map(move |at| (size, at)));
    Tabular::new(columns, LESS).of(rows)
}

/// A latency that has a floor: what the way takes without the device.
pub(crate) struct Floored<'a> {
    size: &'a str,
    rate: Option<f64>,
    min_ns: u64,
    typical_ns: u64,
    floor: Floor,
}

/// Latency less its floor, of searches and trials.
pub(crate) fn floors(report: &Report) -> Tabular<Floored<'_>> {
    const LESS: &[Less<'_>] = &[
        Shorter("frame size", "size"),
        Shorter("its floor", "floor"),
        Shorter("its floor#2", "floor"),
        Shorter("less floor", "less it"),
        Shorter("less floor#2", "less it"),
        Without(&["at"]),
        Without(&["floor of"]),
    ];
    let columns: [Column<Floored<'_>>; 9] = [
        text("frame size", |row| Some(row.size.to_owned())),
        number("at", Unit::FramesPerSecond, |row| row.rate),
        time("min", |row| Some(row.min_ns)),
        time("its floor", |row| Some(row.floor.min_ns)),
        time("less floor", |row| Some(row.floor.taken_off(row.min_ns, row.typical_ns)[0])),
        time("typical", |row| Some(row.typical_ns)),
        time("its floor", |row| Some(row.floor.typical_ns)),
        time("less floor", |row| Some(row.floor.taken_off(row.min_ns, row.typical_ns)[1])),
        text("floor of", |row| Some(row.floor.of.text().to_owned())),
    ];
    let of_search = report.result.search.iter().flat_map(|search| &search.sizes).flat_map(|size| {
        size.latency.iter().filter_map(|at| {
            Some(Floored {
                size: &size.frame_size,
                rate: Some(at.frames_per_second),
                min_ns: at.min_ns,
                typical_ns: at.typical_ns,
                floor: at.floor?,
            })
        })
    });
    let of_trials = report.result.trials.iter().filter_map(|trial| {
        let (floor, latency) = (trial.floor?, trial.latency_ns?);
        Some(Floored {
            size: &trial.frame_size,
            rate: trial.intended_frames_per_second,
            min_ns: latency.min,
            typical_ns: latency.p50,
            floor,
        })
    });
    Tabular::new(columns, LESS).of(of_search.chain(of_trials))
}

/// The longest bursts that were forwarded whole.
pub(crate) fn bursts(search: &SearchResult) -> Tabular<Of<'_, BurstFound>> {
    const LESS: &[Less<'_>] = &[
        Shorter("frame size", "size"),
        Shorter("deviation", "stddev"),
        Without(&["searches"]),
        Without(&["implied"]),
        Without(&["at"]),
    ];
    let columns: [Column<Of<'_, BurstFound>>; 12] = [
        text("frame size", size),
        called("at", number("sent at", Unit::FramesPerSecond, |(_, b)| Some(b.burst_frames_per_second))),
        called("frames", text("frames, mean", |(_, b)| Some(format!("{:.1}", b.frames.mean)))),
        number("min", Unit::Count, |(_, b)| Some(b.frames.min)),
        number("max", Unit::Count, |(_, b)| Some(b.frames.max)),
        called("deviation", text("std. dev.", |(_, b)| Some(format!("{:.1}", b.frames.stddev)))),
        count("searches", |(_, b)| Some(b.frames.count.into())),
        only_on_page(count("least step", |(_, b)| b.step_frames)),
        only_on_page(count("longest tried", |(_, b)| b.longest_tried_frames)),
        called("implied", number("buffer, implied", Unit::Seconds, |(_, b)| b.implied_buffer_s)),
        only_on_page(text("buffer, corrected", |(_, b)| {
            corrected(b, "not found up to the longest burst tried")
        })),
        only_on_terminal(text("buffer", |(_, b)| corrected(b, "at the limit"))),
    ];
    let rows = search.sizes.iter().filter_map(|size| Some((size, size.burst?)));
    Tabular::new(columns, LESS).marked(rows, |(_, b)| if b.at_limit { "own" } else { "" })
}

fn corrected(found: &BurstFound, at_limit: &str) -> Option<String> {
    match found.at_limit {
        true => Some(at_limit.to_owned()),
        false => found.corrected_buffer_s.map(|s| Unit::Seconds.show(s)),
    }
}

/// The highest rates of new flows without loss.
pub(crate) fn flows(search: &SearchResult) -> Tabular<Of<'_, &FlowsFound>> {
    const LESS: &[Less<'_>] = &[
        Shorter("frame size", "size"),
        Shorter("records/message", "rec./message"),
        Shorter("bytes/record", "B/record"),
        Without(&["bytes/record"]),
        Without(&["records/message"]),
        Without(&["near enough"]),
        Without(&["export rate"]),
    ];
    let columns: [Column<Of<'_, &FlowsFound>>; 8] = [
        text("frame size", size),
        number("flows/s", Unit::FlowsPerSecond, |(_, found)| Some(found.flows_per_second)),
        number("fails at", Unit::FlowsPerSecond, |(_, found)| found.failed_flows_per_second),
        text("export rate", |(_, found)| {
            found.export_records_per_second.map(|rate| format!("{}/s", units::counted(rate as u64, "record")))
        }),
        text("records/message", |(_, found)| Some(format!("{:.1}", found.records_per_message))),
        text("bytes/record", |(_, found)| Some(format!("{:.1}", found.bytes_per_record))),
        text("in the cache", |(_, found)| Some(units::counted(found.cache_flows, "flow"))),
        text("near enough", |(_, found)| Some(yes(found.reached))),
    ];
    Tabular::new(columns, LESS).of(search.sizes.iter().filter_map(|size| Some((size, size.flows.as_ref()?))))
}

fn class(trial: &Trial) -> &'static str {
    match &trial.verdict {
        TrialVerdict::Passed => "",
        verdict if verdict.is_the_testers() => "own",
        _ => "fault",
    }
}

/// Trials of a probe: what became of their flows.
pub(crate) fn flow_trials(trials: &[Trial]) -> Tabular<(&Trial, FlowTrial)> {
    const LESS: &[Less<'_>] = &[
        Shorter("lost at the port", "lost: port"),
        Shorter("in the cache", "cache"),
        Shorter("in export", "export"),
        Without(&["for"]),
        Without(&["size"]),
        Shorter("trial", "#"),
        Without(&["recorded"]),
    ];
    let columns: [Column<(&Trial, FlowTrial)>; 10] = [
        text("trial", |(trial, _)| Some(trial.number.to_string())),
        text("size", |(trial, _)| Some(trial.frame_size.clone())),
        number("offered", Unit::FlowsPerSecond, |(trial, _)| Some(trial.load)),
        time("for", |(trial, _)| Some(trial.duration_ns)),
        count("flows sent", |(_, flows)| Some(flows.sent_flows)),
        count("recorded", |(_, flows)| Some(flows.recorded_flows)),
        count("lost at the port", |(_, flows)| flows.port_lost_packets),
        count("in the cache", |(_, flows)| Some(flows.cache_lost_flows)),
        count("in export", |(_, flows)| Some(flows.export_lost_records)),
        text("verdict", |(trial, _)| Some(trial.verdict.to_string())),
    ];
    let fault = |(trial, _): &(&Trial, FlowTrial)| match trial.verdict {
        TrialVerdict::Passed => "",
        _ => "fault",
    };
    let rows = trials.iter().map(|trial| (trial, trial.flows.unwrap_or_default()));
    Tabular::new(columns, LESS).marked(rows, fault)
}

/// Trials of frames: what was offered, what came of it, and why it did not pass.
pub(crate) fn trials(trials: &[Trial]) -> Tabular<&Trial> {
    const LESS: &[Less<'_>] = &[
        Shorter("sender short", "short"),
        Shorter("trial", "#"),
        Without(&["p50"]),
        // Of those that were sent the share that was lost is said.
        Without(&["received"]),
        Without(&["for"]),
        Without(&["p99.9"]),
        Without(&["sent"]),
    ];
    let columns: [Column<&Trial>; 19] = [
        text("trial", |trial| Some(trial.number.to_string())),
        only_on_page(text("verdict", |trial| Some(trial.verdict_said()))),
        only_on_page(text("part", |trial| Some(part(trial)))),
        text("size", |trial| Some(trial.frame_size.clone())),
        only_on_terminal(text("load", |trial| Some(load(trial)))),
        only_on_page(text("load", |trial| Some(loads(trial)))),
        only_on_terminal(time("for", |trial| Some(trial.duration_ns))),
        only_on_page(text("for", |trial| Some(durations(trial)))),
        only_on_page(count("intended", |trial| Some(trial.intended_frames))),
        count("sent", |trial| Some(trial.sent_frames)),
        count("received", |trial| Some(trial.received_frames)),
        only_on_terminal(number("lost", Unit::Ratio, |trial| Some(trial.lost_ratio()))),
        only_on_page(text("lost", |trial| Some(lost(trial)))),
        number("sender short", Unit::Ratio, |trial| Some(trial.shortfall_ratio).filter(|r| *r > 0.0)),
        time("p50", |trial| trial.latency_ns.as_ref().map(|d| d.p50)),
        time("p99.9", |trial| trial.latency_ns.as_ref().map(|d| d.p999)),
        only_on_terminal(text("verdict", |trial| Some(trial.verdict_said()))),
        only_on_page(count("tries", |trial| Some(u64::from(trial.repeated) + 1))),
        only_on_page(text("likely cause", |trial| trial.cause.as_ref().map(Cause::brief))),
    ];
    Tabular::new(columns, LESS).marked(trials, |trial| class(trial))
}

fn part(trial: &Trial) -> String {
    match &trial.stage {
        Stage::Measure | Stage::Search => trial.part.to_string(),
        Stage::Other(word) if word.is_empty() => trial.part.to_string(),
        stage => format!("{}, {}", trial.part, stage.to_string().replace('_', "-")),
    }
}

fn load(trial: &Trial) -> String {
    trial.intended_frames_per_second.map_or_else(|| units::count(trial.load as u64), units::frame_rate)
}

fn loads(trial: &Trial) -> String {
    match trial.then_load {
        Some(then) => format!("{}, then {}", load(trial), units::frame_rate(then)),
        None => load(trial),
    }
}

fn durations(trial: &Trial) -> String {
    match (trial.duration_ns, trial.then_duration_ns) {
        (0, _) => "a burst".to_owned(),
        (ns, Some(then)) => format!("{} + {}", units::time(ns), units::time(then)),
        (ns, None) => units::time(ns),
    }
}

fn lost(trial: &Trial) -> String {
    match trial.lost_frames {
        0 => "0".to_owned(),
        n => format!("{} ({})", units::count(n), units::percent(trial.lost_ratio())),
    }
}
