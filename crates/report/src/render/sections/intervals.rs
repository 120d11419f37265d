//! The run over time, as a table of the page.

use crate::data::model::Report;
use crate::data::units;
use crate::render::html::escape::Esc;
use crate::render::html::grid::{DASH, Grid, first_of};

/// Rows of intervals on the page at most; all of them are in intervals.csv and in the page's data.
const MOST: usize = 1000;

/// The part of the page that has a row for each.
pub(crate) fn card(report: &Report) -> String {
    let mut grid = Grid::new(["from", "to", "intended", "sent", "received", "lost", "late", "p50", "p99"]);
    for i in report.intervals.iter().take(MOST) {
        let seconds = |ns: u64| format!("{:.3} s", ns as f64 / 1e9);
        let maybe = |n: Option<u64>| n.map_or(DASH.into(), units::count);
        let [intended, sent, received, lost, late] =
            [i.intended_frames, i.tx_frames, i.rx_frames, i.lost_frames, i.late_frames].map(maybe);
        let [p50, p99] = [i.latency_p50_ns, i.latency_p99_ns].map(|ns| ns.map_or(DASH.into(), units::time));
        grid.row(&seconds(i.start_ns), [seconds(i.end_ns), intended, sent, received, lost, late, p50, p99]);
    }
    let heading = first_of("Frames in each interval", MOST, report.intervals.len());
    match grid.card("", true) {
        card if card.is_empty() => card,
        card => {
            format!("<h2>Intervals</h2>\n<details><summary>{}</summary>\n{card}</details>\n", Esc(&heading))
        }
    }
}
