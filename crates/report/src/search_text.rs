//! A search's results for the terminal: a table for each kind of figure, a line for each frame size.

use crate::figure::{self, Measured};
use crate::model::Report;
use crate::search::{LossAt, SearchResult, SizeResult, Spread, Trial};
use crate::search_flows;
use crate::table::Less::{Shorter, Without};
use crate::table::Table;
use crate::text::{Options, fold};
use crate::units::{self, printable};

/// Trials that are listed at most; the rest is in the JSON.
const TRIALS: usize = 40;

/// Everything that the search found; empty for other commands.
pub fn render(report: &Report, options: Options<'_>) -> String {
    let mut out = String::new();
    if let Some(search) = &report.result.search {
        let parts = [
            throughput(search, options),
            others(search, options),
            latency(search, options),
            loss(search, options),
            burst(search, options),
            flows(search, options),
            times(search, options),
            unfinished(search, options),
        ];
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            out += &part;
            out.push('\n');
        }
    }
    out + &trials(&report.result.trials, options) + &floors(report, options)
}

/// With which frames.
fn with_frames(size: &SizeResult) -> String {
    match size.frame_size.bytes().all(|b| b.is_ascii_digit()) {
        true => format!("with frames of {} bytes", size.frame_size),
        false => format!("with frames of {}", size.frame_size),
    }
}

/// What was found, a clause for each frame size.
fn found(report: &Report, search: &SearchResult) -> Vec<String> {
    let result = &report.result;
    let mut said: Vec<String> = Vec::new();
    match search.kind.as_str() {
        "throughput" => said.extend(search.sizes.iter().filter_map(|size| {
            let found = size.throughput.iter().flatten().next();
            let what = match (found, size.found) {
                (Some(t), _) if !t.reached => format!("not determined, but {}", t.bounds()),
                (Some(t), _) => format!(
                    "{} ({})",
                    units::frame_rate(t.frames_per_second),
                    units::bit_rate(t.bits_per_second_l1)
                ),
                (None, Some(found)) => {
                    let found = units::count(found as u64);
                    format!("{found} {}{}", search.axis.replace('_', " "), in_bursts(size))
                }
                (None, None) if size.throughput.is_empty() => return None,
                (None, None) => "nothing at all".to_owned(),
            };
            Some(format!("{what} {}", with_frames(size)))
        })),
        "latency" => said.extend(search.sizes.iter().flat_map(|size| {
            size.latency.iter().map(move |at| {
                let (typical, worst) = (units::time(at.typical_ns), units::time(at.worst_case_ns));
                format!(
                    "typically {typical}, at worst {worst}, {} at {}",
                    with_frames(size),
                    units::frame_rate(at.frames_per_second)
                )
            })
        })),
        "loss" => said.extend(search.sizes.iter().filter_map(|size| {
            let whole = |at: &&LossAt| at.loss_ratio == 0.0 && at.tester_ratio == 0.0;
            let whole = size.loss_curve.iter().filter(whole).map(|at| at.frames_per_second);
            let what = match whole.reduce(f64::max) {
                Some(rate) => format!("nothing lost up to {}", units::frame_rate(rate)),
                None if size.loss_curve.is_empty() => return None,
                None if !size.unfinished.is_empty() => "no load that was tried arrived whole".to_owned(),
                None => "no load arrived whole".to_owned(),
            };
            Some(format!("{what} {}", with_frames(size)))
        })),
        "burst" => said.extend(search.sizes.iter().filter_map(|size| {
            let found = size.burst?;
            let buffer = found.corrected_buffer_s.filter(|_| !found.at_limit);
            let buffer = buffer
                .map(|s| format!(" (a buffer of {})", units::time((s * 1e9) as u64)))
                .unwrap_or_default();
            Some(format!("bursts of {:.0} frames{buffer} {}", found.frames.mean, with_frames(size)))
        })),
        "flows" => said.extend(search.sizes.iter().filter_map(|size| {
            let what = match &size.flows {
                Some(found) => units::flow_rate(found.flows_per_second),
                None => {
                    let whole = result.trials.iter().filter(|t| t.frame_size == size.frame_size);
                    let whole = whole.filter(|t| t.verdict == "passed").map(|t| t.load).reduce(f64::max);
                    format!("no flow lost up to {}", units::flow_rate(whole?))
                }
            };
            Some(format!("{what} {}", with_frames(size)))
        })),
        "recovery" | "reset" => said.extend(search.sizes.iter().filter_map(|size| {
            let time = size.recovery_ns.or(size.outage_ns)?;
            Some(format!("{} {}", units::time(time.mean as u64), with_frames(size)))
        })),
        // Of others the figures that are listed say it.
        _ => said.extend(figure::of(report).iter().filter_map(Measured::fact)),
    }
    said
}

/// What was found, in one clause or two.
pub(crate) fn sentence(report: &Report, search: &SearchResult) -> String {
    let mut said = found(report, search);
    let what = match search.kind.as_str() {
        "throughput" => "Forwarded",
        "burst" => "Forwarded whole",
        "recovery" => "Recovered within",
        "reset" => "Nothing arrived for",
        "latency" => "Latency",
        "loss" => "Tried",
        "flows" => "Recorded without loss",
        _ => "Found",
    };
    const MOST: usize = 3;
    let more = match said.len().saturating_sub(MOST) {
        0 => String::new(),
        n => format!("; and {n} more below"),
    };
    said.truncate(MOST);
    let trials = units::counted(report.result.trials.len() as u64, "trial");
    let unfinished = search.sizes.iter().flat_map(|size| size.unfinished.iter().map(move |u| (size, u)));
    let mut unfinished: Vec<String> =
        unfinished.map(|(size, part)| format!("{}, {}", part.clause(), with_frames(size))).collect();
    let hidden = unfinished.len().saturating_sub(MOST);
    unfinished.truncate(MOST);
    if hidden > 0 {
        unfinished.push(format!("{hidden} more below"));
    }
    if !search.untried_sizes.is_empty() {
        unfinished.push(format!("{} not begun", untried(search)));
    }
    let unfinished = unfinished.join("; ");
    match (said.is_empty(), unfinished.is_empty()) {
        (true, true) => format!("{trials} done; nothing found"),
        (true, false) => format!("Unfinished, by {trials}: {unfinished}"),
        (false, true) => format!("{what}: {}{more}, by {trials}", said.join("; ")),
        (false, false) => {
            format!("{what}: {}{more}, by {trials}. Unfinished: {unfinished}", said.join("; "))
        }
    }
}

fn throughput(search: &SearchResult, options: Options<'_>) -> String {
    let header = [
        "frame size",
        "goal",
        "frames/s",
        "layer 2, no FCS",
        "layer 1",
        "of the link",
        "fails at",
        "forwarded",
    ];
    let mut table = Table::with_header(header);
    let mut any = false;
    for size in &search.sizes {
        for found in &size.throughput {
            any = true;
            let Some(found) = found else {
                table.row(
                    &printable(&size.frame_size),
                    [
                        None,
                        Some("nothing passed".to_owned()),
                        None,
                        None,
                        None,
                        Some(units::frame_rate(size.least)),
                        None,
                    ],
                );
                continue;
            };
            table.row(
                &printable(&size.frame_size),
                [
                    Some(printable(&found.goal)),
                    Some(found.at_least(units::frame_rate(found.frames_per_second))),
                    Some(units::bit_rate(found.bits_per_second)),
                    Some(units::bit_rate(found.bits_per_second_l1)),
                    size.theoretical_frames_per_second
                        .map(|most| units::percent(found.frames_per_second / most)),
                    found.failed_frames_per_second.map(units::frame_rate),
                    found.conditional_frames_per_second.map(units::frame_rate),
                ],
            );
        }
    }
    let less = [
        Shorter("frame size", "size"),
        Shorter("layer 2, no FCS", "layer 2"),
        Without(&["layer 2, no FCS"]),
        Shorter("of the link", "of link"),
        Without(&["forwarded"]),
        Without(&["of the link"]),
        Without(&["layer 1"]),
    ];
    if any { table.within(options, &less) } else { String::new() }
}

fn untried(search: &SearchResult) -> String {
    let sizes: Vec<String> = search.untried_sizes.iter().map(|size| printable(size)).collect();
    format!("frames of {}", sizes.join(", "))
}

/// How far the parts came that did not come to their end.
fn unfinished(search: &SearchResult, options: Options<'_>) -> String {
    let header = ["frame size", "unfinished", "passed so far", "for", "failed so far", "for", "trials"];
    let mut table = Table::with_header(header);
    let mut any = false;
    for (size, part) in search.sizes.iter().flat_map(|size| size.unfinished.iter().map(move |u| (size, u))) {
        any = true;
        let name = part.goal.as_ref().map_or(part.part.clone(), |goal| format!("{}, {goal}", part.part));
        table.row(
            &printable(&size.frame_size),
            [
                Some(printable(&name)),
                part.passed.map(|value| part.value(value)),
                part.passed_duration_ns.filter(|ns| *ns > 0).map(units::time),
                part.failed.map(|value| part.value(value)),
                part.failed_duration_ns.filter(|ns| *ns > 0).map(units::time),
                Some(part.progress()),
            ],
        );
    }
    let less = [
        Shorter("frame size", "size"),
        Shorter("passed so far", "passed"),
        Shorter("failed so far", "failed"),
        Without(&["for", "for#2"]),
        // The last sentence has it, too.
        Without(&["trials"]),
    ];
    let table = if any { table.within(options, &less) } else { String::new() };
    match search.untried_sizes.is_empty() {
        true => table,
        false => table + &fold(&format!("Not begun: {}", untried(search)), 2, options.width),
    }
}

/// Values on other axes.
fn others(search: &SearchResult, options: Options<'_>) -> String {
    let what = search.axis.replace('_', " ");
    let found = search.sizes.iter().filter_map(|size| Some((size, size.found?)));
    found
        .filter(|_| !search_flows::is_it(search))
        .map(|(size, found)| {
            let size_is = printable(&size.frame_size);
            fold(&format!("frame size {size_is}: {what} {found}{}", in_bursts(size)), 2, options.width)
        })
        .collect()
}

/// How fast the frames of bursts followed each other.
pub(crate) fn in_bursts(size: &SizeResult) -> String {
    let rate = size.burst_frames_per_second.map(units::frame_rate);
    rate.map(|rate| format!(" at {rate} within a burst")).unwrap_or_default()
}

fn latency(search: &SearchResult, options: Options<'_>) -> String {
    let header = [
        "frame size",
        "at",
        "trials",
        "min",
        "mean",
        "typical",
        "worst case",
        "max",
        "PDV",
        "IPDV",
        "jitter",
    ];
    let mut table = Table::with_header(header);
    let rows = search.sizes.iter().flat_map(|size| size.latency.iter().map(move |at| (size, at)));
    let mut any = false;
    for (size, at) in rows {
        any = true;
        table.row(
            &printable(&size.frame_size),
            [
                Some(units::frame_rate(at.frames_per_second)),
                Some(at.repetitions.to_string()),
                Some(units::time(at.min_ns)),
                Some(units::time(at.mean_ns as u64)),
                Some(units::time(at.typical_ns)),
                Some(units::time(at.worst_case_ns)),
                Some(units::time(at.max_ns)),
                Some(units::time(at.variation_ns)),
                at.frame_to_frame_worst_ns.map(units::time),
                at.jitter_ns.map(units::time),
            ],
        );
    }
    let less = [
        Shorter("frame size", "size"),
        Shorter("worst case", "worst"),
        Without(&["jitter"]),
        Without(&["mean"]),
        Without(&["trials"]),
        Without(&["IPDV"]),
    ];
    if any { table.within(options, &less) } else { String::new() }
}

fn floors(report: &Report, options: Options<'_>) -> String {
    let rows = crate::floor::rows(report);
    if rows.is_empty() {
        return String::new();
    }
    let mut table = Table::with_header(crate::floor::HEADER);
    for (size, cells) in rows {
        table.row(&printable(size), cells.map(Some));
    }
    let less = [
        Shorter("frame size", "size"),
        Shorter("its floor", "floor"),
        Shorter("its floor#2", "floor"),
        Shorter("less floor", "less it"),
        Shorter("less floor#2", "less it"),
        Without(&["at"]),
        Without(&["floor of"]),
    ];
    format!("\n{}", table.within(options, &less))
}

fn loss(search: &SearchResult, options: Options<'_>) -> String {
    let mut table =
        Table::with_header(["frame size", "load", "frames/s", "lost", "sender short", "tester lost"]);
    let rows = search.sizes.iter().flat_map(|size| size.loss_curve.iter().map(move |at| (size, at)));
    let mut any = false;
    for (size, at) in rows {
        any = true;
        table.row(
            &printable(&size.frame_size),
            [
                Some(units::percent(at.load_ratio)),
                Some(units::frame_rate(at.frames_per_second)),
                Some(units::percent(at.loss_ratio)),
                (at.shortfall_ratio > 0.0).then(|| units::percent(at.shortfall_ratio)),
                (at.tester_ratio > 0.0).then(|| units::percent(at.tester_ratio)),
            ],
        );
    }
    if any { table.within(options, &[Shorter("frame size", "size")]) } else { String::new() }
}

fn burst(search: &SearchResult, options: Options<'_>) -> String {
    let header = ["frame size", "at", "frames", "min", "max", "deviation", "searches", "implied", "buffer"];
    let mut table = Table::with_header(header);
    let mut any = false;
    for (size, found) in search.sizes.iter().filter_map(|size| Some((size, size.burst?))) {
        any = true;
        let seconds = |s: f64| units::time((s * 1e9) as u64);
        let n = &found.frames;
        table.row(
            &printable(&size.frame_size),
            [
                Some(units::frame_rate(found.burst_frames_per_second)),
                Some(format!("{:.1}", n.mean)),
                Some(format!("{:.0}", n.min)),
                Some(format!("{:.0}", n.max)),
                Some(format!("{:.1}", n.stddev)),
                Some(n.count.to_string()),
                found.implied_buffer_s.map(seconds),
                if found.at_limit {
                    Some("at the limit".to_owned())
                } else {
                    found.corrected_buffer_s.map(seconds)
                },
            ],
        );
    }
    let less = [
        Shorter("frame size", "size"),
        Shorter("deviation", "stddev"),
        Without(&["searches"]),
        Without(&["implied"]),
        Without(&["at"]),
    ];
    if any { table.within(options, &less) } else { String::new() }
}

fn flows(search: &SearchResult, options: Options<'_>) -> String {
    let [a, b, c, d, e, f, g] = search_flows::FOUND;
    let mut table = Table::with_header(["frame size", a, b, c, d, e, f, g]);
    let mut under = String::new();
    for (size, found) in search.sizes.iter().filter_map(|size| Some((size, size.flows.as_ref()?))) {
        table.row(&printable(&size.frame_size), search_flows::found(found));
        under = search_flows::circumstances(found);
    }
    let less = [
        Shorter("frame size", "size"),
        Shorter("records/message", "rec./message"),
        Shorter("bytes/record", "B/record"),
        Without(&["bytes/record"]),
        Without(&["records/message"]),
        Without(&["near enough"]),
        Without(&["export rate"]),
    ];
    if under.is_empty() { under } else { table.within(options, &less) + &fold(&under, 0, options.width) }
}

fn times(search: &SearchResult, options: Options<'_>) -> String {
    let line = |size: &SizeResult, what: &str, spread: &Spread| {
        let time = |ns: f64| units::time(ns as u64);
        let said = format!(
            "frame size {}: {what} {} (min {}, max {}, of {})",
            printable(&size.frame_size),
            time(spread.mean),
            time(spread.min),
            time(spread.max),
            units::counted(u64::from(spread.count), "trial")
        );
        fold(&said, 2, options.width)
    };
    let of = |size: &SizeResult| {
        let recovery = size.recovery_ns.map(|s| line(size, "recovers from overload within", &s));
        let outage = size.outage_ns.map(|s| line(size, "nothing arrived for", &s));
        recovery.unwrap_or_default() + &outage.unwrap_or_default()
    };
    search.sizes.iter().map(of).collect()
}

fn trials(trials: &[Trial], options: Options<'_>) -> String {
    if trials.is_empty() {
        return String::new();
    }
    if trials.iter().any(|trial| trial.flows.is_some()) {
        return flow_trials(trials, options);
    }
    // A column that most have no use for.
    let short = trials.iter().take(TRIALS).any(|trial| trial.shortfall_ratio > 0.0);
    let header = [
        "trial",
        "size",
        "load",
        "for",
        "sent",
        "received",
        "lost",
        "sender short",
        "p50",
        "p99.9",
        "verdict",
    ];
    let shown = |column: &usize| short || header.get(*column) != Some(&"sender short");
    let columns: Vec<usize> = (0..header.len()).filter(shown).collect();
    let mut table = Table::with_columns(columns.iter().filter_map(|column| header.get(*column).copied()));
    for trial in trials.iter().take(TRIALS) {
        let latency = |of: fn(&crate::search::TrialLatency) -> u64| {
            trial.latency_ns.as_ref().map(|latency| units::time(of(latency)))
        };
        let load = match trial.intended_frames_per_second {
            Some(rate) => units::frame_rate(rate),
            None => units::count(trial.load as u64),
        };
        let cells = [
            Some(printable(&trial.frame_size)),
            Some(load),
            Some(units::time(trial.duration_ns)),
            Some(units::count(trial.sent_frames)),
            Some(units::count(trial.received_frames)),
            Some(units::percent(trial.lost_ratio())),
            (trial.shortfall_ratio > 0.0).then(|| units::percent(trial.shortfall_ratio)),
            latency(|latency| latency.p50),
            latency(|latency| latency.p999),
            Some(trial.verdict_said()),
        ];
        let cells = cells.into_iter().enumerate().filter(|(at, _)| columns.contains(&(at + 1)));
        table.cells(&trial.number.to_string(), cells.map(|(_, cell)| cell));
    }
    let less = [
        Shorter("sender short", "short"),
        Shorter("trial", "#"),
        Without(&["p50"]),
        // Of those that were sent the share that was lost is told.
        Without(&["received"]),
        Without(&["for"]),
        Without(&["p99.9"]),
        Without(&["sent"]),
    ];
    table.within(options, &less) + &rest(trials)
}

fn rest(trials: &[Trial]) -> String {
    match trials.len().saturating_sub(TRIALS) {
        0 => String::new(),
        more => format!("... and {} more; the JSON has all\n", units::counted(more as u64, "trial")),
    }
}

/// Trials of a probe.
fn flow_trials(trials: &[Trial], options: Options<'_>) -> String {
    let [a, b, c, d, e, f, g, h, i] = search_flows::TRIALS;
    let mut table = Table::with_header(["trial", a, b, c, d, e, f, g, h, i]);
    for trial in trials.iter().take(TRIALS) {
        let flows = trial.flows.unwrap_or_default();
        table.row(&trial.number.to_string(), search_flows::trial(trial, &flows));
    }
    let less = [
        Shorter("lost at the port", "lost: port"),
        Shorter("in the cache", "cache"),
        Shorter("in export", "export"),
        Without(&["for"]),
        Without(&["size"]),
        Shorter("trial", "#"),
        Without(&["recorded"]),
    ];
    table.within(options, &less) + &rest(trials)
}
