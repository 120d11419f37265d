//! What the page shows of searches and trials: the standards' graphs, each with its table beside it, and every trial.

mod charts;
mod tables;

use super::{boxes, nines};
use crate::data::model::Report;
use crate::data::units;

pub(super) use charts::beside;
pub(super) use tables::trials;

/// Graphs and tables of what was found.
pub(super) fn sections(report: &Report) -> String {
    let trials = &report.result.trials;
    let mut out = String::new();
    let mut section = |heading: &str, parts: Vec<String>| {
        let parts = parts.concat();
        if !parts.is_empty() {
            out += &format!("<h2>{heading}</h2>\n{parts}");
        }
    };
    let drawn = |chart: Option<super::charts::Chart>| chart.map(|chart| chart.html()).unwrap_or_default();
    if let Some(search) = &report.result.search {
        let repeated = boxes::repeated(trials).iter().map(super::charts::Chart::html).collect();
        let paths = charts::paths(search, trials).iter().map(super::charts::Chart::html).collect();
        section("Throughput", vec![drawn(charts::throughput(search)), tables::throughput(search), paths]);
        section("Loss", vec![drawn(charts::loss(search, trials)), tables::loss(search, trials)]);
        section(
            "Latency",
            vec![drawn(nines::trials(trials)), repeated, tables::latency(search), tables::floors(report)],
        );
        section("Flows", vec![drawn(charts::flows(search, trials)), tables::flows(search)]);
        section("Bursts", vec![drawn(charts::bursts(search, trials)), tables::bursts(search)]);
        section("Times", vec![tables::times(search)]);
        section("Unfinished", vec![tables::unfinished(search)]);
        section("The search", vec![tables::facts(search, trials)]);
    } else if report.result.latency_ns.is_none() {
        // A single trial has the whole run's plots; several have no other.
        let repeated = boxes::repeated(trials).iter().map(super::charts::Chart::html).collect();
        section("Latency", vec![drawn(nines::trials(trials)), repeated]);
    }
    if report.result.search.is_none() {
        section("The floor", vec![tables::floors(report)]);
    }
    out
}

/// The figures that stand at the top: name, value, and a word more.
pub(super) fn tiles(report: &Report) -> Vec<(String, String, String)> {
    let mut tiles = Vec::new();
    let Some(search) = &report.result.search else { return tiles };
    // Of several goals each has its own.
    let goals: Vec<_> =
        search.sizes.first().iter().flat_map(|size| size.throughput.iter().flatten()).collect();
    let name = |found: &crate::data::search::Throughput| match goals.len() {
        0 | 1 => "Throughput".to_owned(),
        _ => format!("Throughput, {}", charts::short_goal(&found.goal)),
    };
    let found: Vec<_> = match goals.as_slice() {
        [] | [_] => report.result.throughput.iter().collect(),
        several => several.iter().take(4).copied().collect(),
    };
    for found in found {
        let size = found.frame_size.as_str();
        let size =
            if size.bytes().all(|b| b.is_ascii_digit()) { format!("{size} bytes") } else { size.to_owned() };
        let more = format!("{} of layer 1, {size}", units::bit_rate(found.bits_per_second_l1));
        match found.reached {
            true => tiles.push((name(found), units::frame_rate(found.frames_per_second), more)),
            false => {
                let least = found.at_least(units::frame_rate(found.frames_per_second));
                tiles.push((format!("{}, not determined", name(found)), least, more));
            }
        }
    }
    let trials = &report.result.trials;
    let of_them = match trials.iter().filter(|t| t.shortfall_ratio > 0.0).count() {
        0 => "sender never short".to_owned(),
        short => format!("sender short in {short}"),
    };
    tiles.push(("Trials".to_owned(), units::count(trials.len() as u64), of_them));
    tiles.push((
        "Took".to_owned(),
        units::time(search.elapsed_ns),
        format!("{} of them sending", units::time(search.sending_ns)),
    ));
    tiles
}
