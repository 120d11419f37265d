//! What was sent: a line, and tables of interfaces and cores.

use super::{Line, Section};
use crate::data::figure::Measured;
use crate::data::model::Report;
use crate::data::sections::sent::figures;
use crate::data::sections::totals::Totals;
use crate::data::units::{self, printable};
use crate::render::conclusion;
use crate::render::html::grid::{DASH, Facts, Grid};
use crate::render::table::{Less, Table};
use crate::render::text::Options;

pub(super) struct Sent;

impl Section for Sent {
    fn lines(&self, report: &Report) -> Vec<Line> {
        let Some(tx) = &report.result.tx else { return Vec::new() };
        let mut facts =
            vec![format!("{} engine, {}", printable(&tx.engine), units::time(tx.totals.duration_ns))];
        facts.extend(conclusion::rate_error(report));
        // Nobody wants to read what did not happen.
        facts.extend(figures(report).iter().filter(|f| f.value > 0.0).filter_map(Measured::fact));
        vec![Line::facts("sender", facts)]
    }

    fn tables(&self, report: &Report, options: Options<'_>) -> Vec<String> {
        let cores = if options.verbose || !crate::render::expected::run(report) {
            cores(report)
        } else {
            String::new()
        };
        vec![interfaces(report, options), cores]
    }

    fn facts(&self, report: &Report, facts: &mut Facts) {
        let Some(tx) = &report.result.tx else { return };
        facts.add("engine", &tx.engine);
        facts.maybe("rate", conclusion::rate_error(report));
        facts.figures(&figures(report));
    }

    fn cards(&self, report: &Report) -> String {
        let mut grid = Grid::new(["interface", "sent", "bytes", "failed", "arrived at", "frames", "bytes"]);
        let rx = report.result.rx.as_ref().map_or(&[][..], |rx| &rx.interfaces);
        for (i, side) in report.result.tx.iter().flat_map(|tx| tx.interfaces.iter().enumerate()) {
            let [sent, bytes, failed] = [side.frames, side.bytes, side.failed].map(units::count);
            let far = rx.get(i);
            let counted = |n: Option<u64>| n.map_or(DASH.into(), units::count);
            let place = far.map_or(DASH.into(), |far| far.interface.clone());
            let (came, came_bytes) = (counted(far.map(|far| far.frames)), counted(far.map(|far| far.bytes)));
            grid.row(&side.interface, [sent, bytes, failed, place, came, came_bytes]);
        }
        let both = grid.card("Both interfaces", false);
        let mut grid = Grid::new(["core", "frames", "bytes", "frames/s", "CPU time"]);
        let Some(tx) = &report.result.tx else { return both };
        for c in &tx.cores {
            let share = Totals::over(c.frames, c.bytes, tx.totals.duration_ns);
            let rate = units::frame_rate(share.frames_per_second);
            let cpu = c.cpu_ratio.map_or(DASH.into(), units::percent);
            grid.row(&c.core.to_string(), [units::count(c.frames), units::count(c.bytes), rate, cpu]);
        }
        both + &grid.card("Sending cores", false)
    }
}

/// What left by each interface and what arrived of it, where there were two.
fn interfaces(report: &Report, options: Options<'_>) -> String {
    let Some(tx) = report.result.tx.as_ref().filter(|tx| !tx.interfaces.is_empty()) else {
        return String::new();
    };
    let rx = report.result.rx.as_ref().map_or(&[][..], |rx| &rx.interfaces);
    if rx.is_empty() {
        let mut table = Table::with_header(["interface", "frames", "bytes", "failed"]);
        for side in &tx.interfaces {
            let cells = [side.frames, side.bytes, side.failed].map(|n| Some(units::count(n)));
            table.row(&side.interface, cells);
        }
        return table.within(options, &[]);
    }
    let mut table =
        Table::with_header(["interface", "sent", "bytes", "failed", "arrived at", "frames", "bytes"]);
    for (i, side) in tx.interfaces.iter().enumerate() {
        let [sent, bytes, failed] = [side.frames, side.bytes, side.failed].map(|n| Some(units::count(n)));
        let far = rx.get(i);
        let place = far.map(|far| printable(&far.interface));
        let [came, came_bytes] =
            [far.map(|far| far.frames), far.map(|far| far.bytes)].map(|n| n.map(units::count));
        table.row(&side.interface, [sent, bytes, failed, place, came, came_bytes]);
    }
    let less = [Less::Without(&["bytes", "bytes#2"]), Less::Without(&["failed"])];
    table.within(options, &less)
}

/// The work by core, where there were several.
fn cores(report: &Report) -> String {
    let Some(tx) = report.result.tx.as_ref().filter(|tx| tx.cores.len() > 1) else { return String::new() };
    let mut table = Table::with_header(["core", "frames", "bytes", "frames/s", "CPU time"]);
    for core in &tx.cores {
        let share = Totals::over(core.frames, core.bytes, tx.totals.duration_ns);
        table.row(
            &core.core.to_string(),
            [
                Some(units::count(core.frames)),
                Some(units::count(core.bytes)),
                (share.duration_ns > 0).then(|| units::frame_rate(share.frames_per_second)),
                core.cpu_ratio.map(units::percent),
            ],
        );
    }
    table.to_string()
}
