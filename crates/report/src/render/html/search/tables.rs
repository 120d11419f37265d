//! Searches as tables: what each graph shows, in figures, and every trial with its verdict.

use super::Lost;
use crate::data::model::Report;
use crate::data::search::{SearchResult, Spread, Stage, Trial, TrialVerdict};
use crate::data::units;
use crate::render::html::escape::Esc;
use crate::render::html::grid::{DASH, Facts, Grid, first_of};
use crate::render::search_flows;
use crate::render::search_text::in_bursts;

/// Rows of trials on the page at most; all of them are in trials.csv and in the page's data.
const MOST_TRIALS: usize = 2000;

/// The highest rates of new flows without loss.
pub(super) fn flows(search: &SearchResult) -> String {
    let [a, b, c, d, e, f, g] = search_flows::FOUND;
    let mut grid = Grid::new(["frame size", a, b, c, d, e, f, g]);
    let mut under = String::new();
    for (size, found) in search.sizes.iter().filter_map(|size| Some((size, size.flows.as_ref()?))) {
        let cells = search_flows::found(found).map(|cell| cell.unwrap_or(DASH.into()));
        grid.row(&size.frame_size, cells);
        under = format!("<p>{}</p>\n", Esc(&search_flows::circumstances(found)));
    }
    grid.card("The highest rate of new flows without loss (RFC 6645)", false) + &under
}

fn all_trials<const N: usize>(grid: Grid<N>, all: usize) -> String {
    match grid.card(&first_of("Every trial, in the order they were done", MOST_TRIALS, all), true) {
        card if card.is_empty() => card,
        card => format!("<h2>Trials</h2>\n<div class=\"dense\">{card}</div>\n"),
    }
}

/// Trials of a probe.
fn flow_trials(all: &[Trial]) -> String {
    let [a, b, c, d, e, f, g, h, i] = search_flows::TRIALS;
    let mut grid = Grid::new(["trial", a, b, c, d, e, f, g, h, i]);
    for t in all.iter().take(MOST_TRIALS) {
        let class = if t.verdict == TrialVerdict::Passed { "" } else { "fault" };
        let cells =
            search_flows::trial(t, &t.flows.unwrap_or_default()).map(|cell| cell.unwrap_or(DASH.into()));
        grid.marked_row(class, &t.number.to_string(), cells);
    }
    all_trials(grid, all.len())
}

fn rate(value: Option<f64>) -> String {
    value.map_or(DASH.into(), units::frame_rate)
}

fn seconds(value: Option<f64>) -> String {
    value.map_or(DASH.into(), |s| units::time((s * 1e9) as u64))
}

pub(super) fn throughput(search: &SearchResult) -> String {
    let mut grid = Grid::new([
        "frame size",
        "goal",
        "frames/s",
        "layer 2",
        "layer 1",
        "link carries",
        "of it",
        "fails at",
        "forwarded",
        "near enough",
    ]);
    for size in &search.sizes {
        let most = size.theoretical_frames_per_second;
        for found in &size.throughput {
            let Some(t) = found else {
                let mut cells = [(); 9].map(|()| DASH.to_owned());
                let [goal, _, _, _, theoretical, _, fails, ..] = &mut cells;
                (*theoretical, *fails) = (rate(most), rate(Some(size.least)));
                "nothing passed".clone_into(goal);
                grid.marked_row("fault", &size.frame_size, cells);
                continue;
            };
            grid.row(
                &size.frame_size,
                [
                    t.goal.clone(),
                    t.at_least(units::frame_rate(t.frames_per_second)),
                    units::bit_rate(t.bits_per_second),
                    units::bit_rate(t.bits_per_second_l1),
                    rate(most),
                    most.filter(|m| *m > 0.0)
                        .map_or(DASH.into(), |m| units::percent(t.frames_per_second / m)),
                    rate(t.failed_frames_per_second),
                    rate(t.conditional_frames_per_second),
                    if t.reached { "yes" } else { "no" }.to_owned(),
                ],
            );
        }
    }
    let mut others = Grid::new(["frame size", "found", "tried from", "to"]);
    for (size, found) in search.sizes.iter().filter_map(|s| Some((s, s.found?))) {
        let count = |v: f64| units::count(v as u64);
        let axis = search.axis.replace('_', " ");
        let what = format!("{} {axis}{}", count(found), in_bursts(size));
        others.row(&size.frame_size, [what, count(size.least), count(size.greatest)]);
    }
    let open = search.sizes.iter().filter(|size| size.throughput.iter().flatten().any(|t| !t.reached));
    let open: Vec<String> = open.map(|size| size.frame_size.clone()).collect();
    let title = match open.is_empty() {
        true => "Throughput by frame size".to_owned(),
        false => format!("Throughput by frame size, not determined for {}", open.join(", ")),
    };
    grid.card(&title, false) + &others.card("What was found", false)
}

/// How far the parts came that did not come to their end.
pub(super) fn unfinished(search: &SearchResult) -> String {
    let mut grid =
        Grid::new(["frame size", "part", "goal", "passed so far", "for", "failed so far", "for", "trials"]);
    for (size, part) in search.sizes.iter().flat_map(|s| s.unfinished.iter().map(move |u| (s, u))) {
        let value = |value: Option<f64>| value.map_or(DASH.into(), |value| part.value(value));
        let time = |ns: Option<u64>| ns.filter(|ns| *ns > 0).map_or(DASH.into(), units::time);
        grid.marked_row(
            "own",
            &size.frame_size,
            [
                part.part.to_string(),
                part.goal.clone().unwrap_or(DASH.into()),
                value(part.passed),
                time(part.passed_duration_ns),
                value(part.failed),
                time(part.failed_duration_ns),
                part.progress(),
            ],
        );
    }
    grid.card("Ended before its end: no result", false)
}

pub(super) fn loss(search: &SearchResult, trials: &[Trial]) -> String {
    let mut grid = Grid::new(["frame size", "load", "frames/s", "lost", "sender short", "tester lost"]);
    for (size, at) in search.sizes.iter().flat_map(|s| s.loss_curve.iter().map(move |at| (s, at))) {
        let lost = Lost::at(trials, &size.frame_size, at);
        let short = if lost.by_sender > 0.0 { units::percent(lost.by_sender) } else { DASH.to_owned() };
        let (load, rate) = (units::percent(at.load_ratio), units::frame_rate(at.frames_per_second));
        let own = if at.tester_ratio > 0.0 { units::percent(at.tester_ratio) } else { DASH.to_owned() };
        let class = if lost.by_sender > 0.0 || at.tester_ratio > 0.0 { "own" } else { "" };
        grid.marked_row(class, &size.frame_size, [load, rate, units::percent(lost.by_device), short, own]);
    }
    grid.card("Loss by load", true)
}

pub(super) fn latency(search: &SearchResult) -> String {
    let mut grid = Grid::new([
        "frame size",
        "at",
        "trials",
        "min",
        "mean",
        "typical",
        "worst case",
        "max",
        "PDV",
        "IPDV, typical",
        "IPDV, 99.9 %",
        "jitter",
    ]);
    let time = |ns: Option<u64>| ns.map_or(DASH.into(), units::time);
    for (size, at) in search.sizes.iter().flat_map(|s| s.latency.iter().map(move |at| (s, at))) {
        grid.row(
            &size.frame_size,
            [
                units::frame_rate(at.frames_per_second),
                at.repetitions.to_string(),
                units::time(at.min_ns),
                units::time(at.mean_ns as u64),
                units::time(at.typical_ns),
                units::time(at.worst_case_ns),
                units::time(at.max_ns),
                units::time(at.variation_ns),
                time(at.frame_to_frame_typical_ns),
                time(at.frame_to_frame_worst_ns),
                time(at.jitter_ns),
            ],
        );
    }
    let table = grid.card("Latency over the trials", false);
    if table.is_empty() {
        return table;
    }
    table
        + "<p class=\"small\">Typical: the median of the trials' medians. Worst case: the median of their 99.9th percentiles. \
             PDV: the median of what lies between those and the shortest. IPDV: from one frame to the next, without sign, \
             medians of the trials' medians and 99.9th percentiles (RFC 8219, 7.2 and 7.3). Jitter: RFC 3550's smoothed mean \
             of the same. Latency is from before a frame's first bit leaves to when its last has arrived: RFC 1242's (3.8) is less \
             by the time that a frame takes on the wire for bit-forwarding devices, by twice that for store-and-forward ones.</p>\n"
}

pub(super) fn floors(report: &Report) -> String {
    let mut grid = Grid::new(crate::render::floor::HEADER);
    for (size, cells) in crate::render::floor::rows(report) {
        grid.row(size, cells);
    }
    grid.card("Latency less its floor", false)
}

pub(super) fn bursts(search: &SearchResult) -> String {
    let mut grid = Grid::new([
        "frame size",
        "frames, mean",
        "min",
        "max",
        "std. dev.",
        "searches",
        "sent at",
        "least step",
        "longest tried",
        "buffer, implied",
        "buffer, corrected",
    ]);
    for (size, b) in search.sizes.iter().filter_map(|s| Some((s, s.burst?))) {
        let n = &b.frames;
        let corrected = if b.at_limit {
            "not found up to the longest burst tried".to_owned()
        } else {
            seconds(b.corrected_buffer_s)
        };
        grid.marked_row(
            if b.at_limit { "own" } else { "" },
            &size.frame_size,
            [
                format!("{:.1}", n.mean),
                units::count(n.min as u64),
                units::count(n.max as u64),
                format!("{:.1}", n.stddev),
                n.count.to_string(),
                units::frame_rate(b.burst_frames_per_second),
                b.step_frames.map_or(DASH.into(), units::count),
                b.longest_tried_frames.map_or(DASH.into(), units::count),
                seconds(b.implied_buffer_s),
                corrected,
            ],
        );
    }
    grid.card("Longest bursts forwarded whole (RFC 9004)", false)
}

pub(super) fn times(search: &SearchResult) -> String {
    let mut grid = Grid::new(["frame size", "what", "mean", "min", "max", "std. dev.", "trials"]);
    for size in &search.sizes {
        let mut row = |what: &str, spread: Option<Spread>| {
            let Some(s) = spread else { return };
            let [mean, min, max, dev] = [s.mean, s.min, s.max, s.stddev].map(|ns| units::time(ns as u64));
            grid.row(&size.frame_size, [what.to_owned(), mean, min, max, dev, s.count.to_string()]);
        };
        row("recovery from overload (RFC 2544, 26.5)", size.recovery_ns);
        row("nothing arrived (RFC 2544, 26.6)", size.outage_ns);
    }
    grid.card("", false)
}

/// How it was searched, and what the sender had to do with it.
pub(super) fn facts(search: &SearchResult, trials: &[Trial]) -> String {
    let mut facts = Facts::default();
    facts.add("searched for", &search.kind);
    facts.maybe("method", search.method.clone());
    facts.add("varied", &search.axis.replace('_', " "));
    facts.add("came to its end", if search.complete { "yes" } else { "no: it can be continued" });
    facts.maybe("not begun", (!search.untried_sizes.is_empty()).then(|| search.untried_sizes.join(", ")));
    for size in &search.sizes {
        let count = |v: f64| {
            if search.axis == "frames_per_second" { units::frame_rate(v) } else { units::count(v as u64) }
        };
        let range = format!("{} to {}", count(size.least), count(size.greatest));
        facts.add(&format!("tried with {}", size.frame_size), &range);
    }
    facts.add("trials", &units::count(trials.len() as u64));
    let short: Vec<&Trial> = trials.iter().filter(|t| t.shortfall_ratio > 0.0).collect();
    let worst = short.iter().map(|t| t.shortfall_ratio).fold(0.0, f64::max);
    let sender = match short.len() {
        0 => "sent all that was asked, in every trial".to_owned(),
        n => format!(
            "fell short in {} of {}, by {} at most",
            n,
            units::counted(trials.len() as u64, "trial"),
            units::percent(worst)
        ),
    };
    facts.add("the sender", &sender);
    let again: u64 = trials.iter().map(|t| u64::from(t.repeated)).sum();
    facts.maybe("done again, the tester at fault", (again > 0).then(|| units::counted(again, "trial")));
    facts.add("sending", &units::time(search.sending_ns));
    facts.add("in all", &units::time(search.elapsed_ns));
    facts.card("")
}

/// Every trial, with what was intended, what came of it, and why it did not pass.
pub(in super::super) fn trials(report: &Report) -> String {
    let all = &report.result.trials;
    if all.iter().any(|t| t.flows.is_some()) {
        return flow_trials(all);
    }
    let mut grid = Grid::new([
        "trial",
        "verdict",
        "part",
        "size",
        "load",
        "for",
        "intended",
        "sent",
        "received",
        "lost",
        "sender short",
        "p50",
        "p99.9",
        "tries",
        "likely cause",
    ]);
    for t in all.iter().take(MOST_TRIALS) {
        let latency = |get: fn(&crate::data::search::TrialLatency) -> u64| {
            t.latency_ns.as_ref().map_or(DASH.into(), |d| units::time(get(d)))
        };
        let load =
            t.intended_frames_per_second.map_or_else(|| units::count(t.load as u64), units::frame_rate);
        let load = match t.then_load {
            Some(then) => format!("{load}, then {}", units::frame_rate(then)),
            None => load,
        };
        let time = match (t.duration_ns, t.then_duration_ns) {
            (0, _) => "a burst".to_owned(),
            (ns, Some(then)) => format!("{} + {}", units::time(ns), units::time(then)),
            (ns, None) => units::time(ns),
        };
        let part = match &t.stage {
            Stage::Measure | Stage::Search => t.part.to_string(),
            Stage::Other(word) if word.is_empty() => t.part.to_string(),
            stage => format!("{}, {}", t.part, stage.as_str().replace('_', "-")),
        };
        let lost = match t.lost_frames {
            0 => "0".to_owned(),
            n => format!("{} ({})", units::count(n), units::percent(t.lost_ratio())),
        };
        let short = if t.shortfall_ratio > 0.0 { units::percent(t.shortfall_ratio) } else { DASH.to_owned() };
        let class = match &t.verdict {
            TrialVerdict::Passed => "",
            verdict if verdict.is_the_testers() => "own",
            _ => "fault",
        };
        grid.marked_row(
            class,
            &t.number.to_string(),
            [
                t.verdict_said(),
                part,
                t.frame_size.clone(),
                load,
                time,
                units::count(t.intended_frames),
                units::count(t.sent_frames),
                units::count(t.received_frames),
                lost,
                short,
                latency(|d| d.p50),
                latency(|d| d.p999),
                (u64::from(t.repeated) + 1).to_string(),
                t.cause.as_ref().map_or(DASH.into(), crate::data::causes::Cause::brief),
            ],
        );
    }
    all_trials(grid, all.len())
}
