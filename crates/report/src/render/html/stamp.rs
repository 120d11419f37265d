//! The plots of a session of STAMP: how its round trips are distributed.

use super::charts::{Chart, histogram};
use crate::data::model::Report;
use crate::data::units;

/// All of them, as HTML.
pub(super) fn plots(report: &Report) -> String {
    let delays = report.result.stamp.as_ref().and_then(|stamp| stamp.round_trip_ns.as_ref());
    let Some(delays) = delays else { return String::new() };
    let charts: Vec<Chart> =
        histogram("Round-trip delay".to_owned(), delays, "round trip of a packet", "packet")
            .into_iter()
            .collect();
    if charts.is_empty() {
        return String::new();
    }
    format!("<h2>Plots</h2>\n{}", charts.iter().map(Chart::html).collect::<String>())
}

/// The figures everybody asks for: name, value, what stands below it.
pub(super) fn tiles(report: &Report) -> Vec<(&'static str, String, String)> {
    let Some(stamp) = &report.result.stamp else { return Vec::new() };
    let lost = stamp.loss_ratio.map_or("not known".to_owned(), units::percent);
    let mut tiles = vec![("Lost", lost, units::counted(stamp.lost, "packet"))];
    if let Some(d) = &stamp.round_trip_ns {
        tiles.push((
            "Round trip, median",
            units::time(d.p50),
            format!("99 % at most {}", units::time(d.p99)),
        ));
    }
    tiles
}
