//! Searches as tables: what each graph shows, in figures, and every trial with its verdict.

use crate::data::model::Report;
use crate::data::search::{SearchAxis, SearchMethod, SearchResult, Spread, Trial};
use crate::data::units;
use crate::render::html::escape::Esc;
use crate::render::html::grid::{Facts, Grid, first_of};
use crate::render::search_flows;
use crate::render::search_tables;

/// Rows of trials on the page at most; all of them are in trials.csv and in the page's data.
const MOST_TRIALS: usize = 2000;

/// The highest rates of new flows without loss.
pub(super) fn flows(search: &SearchResult) -> String {
    let under = search.sizes.iter().filter_map(|size| size.flows.as_ref()).next_back();
    let under = under.map(|found| format!("<p>{}</p>\n", Esc(&search_flows::circumstances(found))));
    let heading = "The highest rate of new flows without loss (RFC 6645)";
    search_tables::flows(search).card(heading, false) + &under.unwrap_or_default()
}

pub(super) fn throughput(search: &SearchResult) -> String {
    let open = search.sizes.iter().filter(|size| size.throughput.iter().flatten().any(|t| !t.reached));
    let open: Vec<String> = open.map(|size| size.frame_size.clone()).collect();
    let title = match open.is_empty() {
        true => "Throughput by frame size".to_owned(),
        false => format!("Throughput by frame size, not determined for {}", open.join(", ")),
    };
    search_tables::throughput(search).card(&title, false)
        + &search_tables::others(search).card("What was found", false)
}

/// How far the parts came that did not come to their end.
pub(super) fn unfinished(search: &SearchResult) -> String {
    search_tables::unfinished(search).card("Ended before its end: no result", false)
}

pub(super) fn loss(search: &SearchResult, trials: &[Trial]) -> String {
    search_tables::loss(search, trials).card("Loss by load", true)
}

pub(super) fn latency(search: &SearchResult) -> String {
    let table = search_tables::latency(search).card("Latency over the trials", false);
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
    search_tables::floors(report).card("Latency less its floor", false)
}

pub(super) fn bursts(search: &SearchResult) -> String {
    search_tables::bursts(search).card("Longest bursts forwarded whole (RFC 9004)", false)
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
    facts.add("searched for", search.kind.as_str());
    facts.maybe("method", search.method.as_ref().map(SearchMethod::to_string));
    facts.add("varied", &search.axis.in_words());
    facts.add("came to its end", if search.complete { "yes" } else { "no: it can be continued" });
    facts.maybe("not begun", (!search.untried_sizes.is_empty()).then(|| search.untried_sizes.join(", ")));
    for size in &search.sizes {
        let count = |v: f64| match search.axis {
            SearchAxis::FramesPerSecond => units::frame_rate(v),
            _ => units::count(v as u64),
        };
        let range = format!("{} to {}", count(size.least), count(size.greatest));
        facts.add(&format!("searched with {}", size.frame_size), &range);
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
    let listed = all.get(..MOST_TRIALS).unwrap_or(all);
    let heading = first_of("Every trial, in the order they were done", MOST_TRIALS, all.len());
    let card = match all.iter().any(|t| t.flows.is_some()) {
        true => search_tables::flow_trials(listed).card(&heading, true),
        false => search_tables::trials(listed).card(&heading, true),
    };
    match card.is_empty() {
        true => card,
        false => format!("<h2>Trials</h2>\n<div class=\"dense\">{card}</div>\n"),
    }
}
