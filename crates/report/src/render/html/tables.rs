//! Every figure of the report as tables: each section's cards, one after the other.

use super::grid::{DASH, Facts, Grid};
use crate::data::model::Report;
use crate::data::units;
use crate::render::sections::{ALL, totals};

pub(super) fn figures(report: &Report) -> String {
    let mut out = totals::card(report) + &times(report);
    let mut facts = Facts::default();
    ALL.iter().for_each(|section| section.facts(report, &mut facts));
    out += &facts.card("Counters");
    ALL.iter().for_each(|section| out += &section.cards(report));
    ALL.iter().for_each(|section| out += &section.appendix(report));
    if out.is_empty() { out } else { format!("<h2>Figures</h2>\n{out}") }
}

/// How times are distributed, a row each.
fn times(report: &Report) -> String {
    let mut grid =
        Grid::new(["", "values", "min", "mean", "p50", "p90", "p99", "p99.9", "p99.99", "p99.999", "max"]);
    for (name, d) in ALL.iter().flat_map(|section| section.times(report)) {
        let time = units::time;
        // Of few values these are but the greatest again.
        let far = |value, least| if d.count >= least { time(value) } else { DASH.into() };
        let mean = time(d.mean.round() as u64);
        grid.row(
            name,
            [
                units::count(d.count),
                time(d.min),
                mean,
                time(d.p50),
                time(d.p90),
                time(d.p99),
                time(d.p999),
                far(d.p9999, 100_000),
                far(d.p99999, 1_000_000),
                time(d.max),
            ],
        );
    }
    grid.card("Times", false)
}
