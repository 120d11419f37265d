//! A search's results for the terminal: a table for each kind of figure, a line for each frame size.

use crate::data::figure::{self, Measured};
use crate::data::model::Report;
use crate::data::search::{
    LossAt, SearchKind, SearchResult, SizeResult, Spread, Throughput, Trial, TrialVerdict,
};
use crate::data::units::{self, printable};
use crate::render::search_flows;
use crate::render::search_tables;
use crate::render::text::{Options, fold};

/// Trials that are listed at most; the rest is in the JSON.
const TRIALS: usize = 40;

/// Everything that the search found; empty for other commands.
pub fn render(report: &Report, options: Options<'_>) -> String {
    let mut out = String::new();
    if let Some(search) = &report.result.search {
        let parts = [
            search_tables::throughput(search).text(options),
            others(search, options),
            search_tables::latency(search).text(options),
            search_tables::loss(search, &report.result.trials).text(options),
            search_tables::bursts(search).text(options),
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

/// What came of the search for the throughput of a size: that of the first goal, or if that has none, of the first that has
/// one, with its name. `None` where nothing is known.
fn forwarded(size: &SizeResult) -> Option<String> {
    let rate = |t: &Throughput| match t.reached {
        true => {
            format!("{} ({})", units::frame_rate(t.frames_per_second), units::bit_rate(t.bits_per_second_l1))
        }
        false => format!("not determined, but {}", t.bounds()),
    };
    match (size.of_first_goal(), size.throughput.iter().flatten().next()) {
        (Some(first), _) => Some(rate(first)),
        (None, Some(other)) => Some(format!("{} within {}", rate(other), printable(&other.goal))),
        (None, None) if size.throughput.is_empty() => None,
        (None, None) => Some("nothing at all".to_owned()),
    }
}

/// What was found, a clause for each frame size.
fn found(report: &Report, search: &SearchResult) -> Vec<String> {
    let result = &report.result;
    let mut said: Vec<String> = Vec::new();
    match &search.kind {
        SearchKind::Throughput => said.extend(search.sizes.iter().filter_map(|size| {
            let what = match (forwarded(size), size.found) {
                (Some(what), _) => what,
                (None, Some(found)) => {
                    let found = units::count(found as u64);
                    format!("{found} {}{}", search.axis.in_words(), in_bursts(size))
                }
                (None, None) => return None,
            };
            Some(format!("{what} {}", with_frames(size)))
        })),
        SearchKind::Latency => said.extend(search.sizes.iter().flat_map(|size| {
            size.latency.iter().map(move |at| {
                let (typical, worst) = (units::time(at.typical_ns), units::time(at.worst_case_ns));
                format!(
                    "typically {typical}, at worst {worst}, {} at {}",
                    with_frames(size),
                    units::frame_rate(at.frames_per_second)
                )
            })
        })),
        SearchKind::Loss => said.extend(search.sizes.iter().filter_map(|size| {
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
        SearchKind::Burst => said.extend(search.sizes.iter().filter_map(|size| {
            let found = size.burst?;
            let buffer = found.corrected_buffer_s.filter(|_| !found.at_limit);
            let buffer = buffer
                .map(|s| format!(" (a buffer of {})", units::time((s * 1e9) as u64)))
                .unwrap_or_default();
            Some(format!("bursts of {:.0} frames{buffer} {}", found.frames.mean, with_frames(size)))
        })),
        SearchKind::Flows => said.extend(search.sizes.iter().filter_map(|size| {
            let what = match &size.flows {
                Some(found) => units::flow_rate(found.flows_per_second),
                None => {
                    let whole = result.trials.iter().filter(|t| t.frame_size == size.frame_size);
                    let whole =
                        whole.filter(|t| t.verdict == TrialVerdict::Passed).map(|t| t.load).reduce(f64::max);
                    format!("no flow lost up to {}", units::flow_rate(whole?))
                }
            };
            Some(format!("{what} {}", with_frames(size)))
        })),
        SearchKind::Recovery | SearchKind::Reset => said.extend(search.sizes.iter().filter_map(|size| {
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
    let what = match &search.kind {
        SearchKind::Throughput => "Forwarded",
        SearchKind::Burst => "Forwarded whole",
        SearchKind::Recovery => "Recovered within",
        SearchKind::Reset => "Nothing arrived for",
        SearchKind::Latency => "Latency",
        SearchKind::Loss => "Tried",
        SearchKind::Flows => "Recorded without loss",
        SearchKind::Soak | SearchKind::Other(_) => "Found",
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

fn untried(search: &SearchResult) -> String {
    let sizes: Vec<String> = search.untried_sizes.iter().map(|size| printable(size)).collect();
    format!("frames of {}", sizes.join(", "))
}

/// How far the parts came that did not come to their end.
fn unfinished(search: &SearchResult, options: Options<'_>) -> String {
    let table = search_tables::unfinished(search).text(options);
    match search.untried_sizes.is_empty() {
        true => table,
        false => table + &fold(&format!("Not begun: {}", untried(search)), 2, options.width),
    }
}

/// Values on other axes.
fn others(search: &SearchResult, options: Options<'_>) -> String {
    let what = search.axis.in_words();
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

fn floors(report: &Report, options: Options<'_>) -> String {
    match search_tables::floors(report).text(options) {
        table if table.is_empty() => table,
        table => format!("\n{table}"),
    }
}

fn flows(search: &SearchResult, options: Options<'_>) -> String {
    let found = search.sizes.iter().filter_map(|size| size.flows.as_ref()).next_back();
    let under = found.map(|found| fold(&search_flows::circumstances(found), 0, options.width));
    search_tables::flows(search).text(options) + &under.unwrap_or_default()
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
    let listed = trials.get(..TRIALS).unwrap_or(trials);
    let table = match trials.iter().any(|trial| trial.flows.is_some()) {
        true => search_tables::flow_trials(listed).text(options),
        false => search_tables::trials(listed).text(options),
    };
    table + &rest(trials)
}

fn rest(trials: &[Trial]) -> String {
    match trials.len().saturating_sub(TRIALS) {
        0 => String::new(),
        more => format!("... and {} more; the JSON has all\n", units::counted(more as u64, "trial")),
    }
}
