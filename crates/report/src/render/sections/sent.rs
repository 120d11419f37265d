//! What was sent: a line, and tables of interfaces and cores.

use super::{Line, Section};
use crate::data::figure::{Measured, Unit};
use crate::data::model::Report;
use crate::data::sections::received::RxInterface;
use crate::data::sections::sent::{Core, Tx, TxInterface, figures};
use crate::data::sections::totals::Totals;
use crate::data::units::{self, printable};
use crate::render::conclusion;
use crate::render::html::grid::Facts;
use crate::render::table::Less;
use crate::render::tabular::{Column, Tabular, called, count, number, text};
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
        let Some(tx) = &report.result.tx else { return Vec::new() };
        // A single core's work is the whole run's.
        let told = options.verbose || !crate::render::expected::run(report);
        let cores = if told && tx.cores.len() > 1 { cores(tx).text(options) } else { String::new() };
        vec![interfaces(report, tx).text(options), cores]
    }

    fn facts(&self, report: &Report, facts: &mut Facts) {
        let Some(tx) = &report.result.tx else { return };
        facts.add("engine", &tx.engine);
        facts.maybe("rate", conclusion::rate_error(report));
        facts.figures(&figures(report));
    }

    fn cards(&self, report: &Report) -> String {
        let Some(tx) = &report.result.tx else { return String::new() };
        interfaces(report, tx).card("Both interfaces", false) + &cores(tx).card("Sending cores", false)
    }
}

/// What left by an interface, and what arrived of it.
type Side<'r> = (&'r TxInterface, Option<&'r RxInterface>);

/// What left by each interface and what arrived of it, where there were two.
fn interfaces<'r>(report: &'r Report, tx: &'r Tx) -> Tabular<Side<'r>> {
    const LESS: &[Less<'_>] = &[Less::Without(&["bytes", "bytes#2"]), Less::Without(&["failed"])];
    let rx = report.result.rx.as_ref().map_or(&[][..], |rx| &rx.interfaces);
    let sent = count("sent", |(side, _): &Side<'r>| Some(side.frames));
    let columns: [Column<Side<'r>>; 7] = [
        text("interface", |(side, _)| Some(side.interface.clone())),
        if rx.is_empty() { called("frames", sent) } else { sent },
        count("bytes", |(side, _)| Some(side.bytes)),
        count("failed", |(side, _)| Some(side.failed)),
        text("arrived at", |(_, far)| far.map(|far| far.interface.clone())),
        count("frames", |(_, far)| far.map(|far| far.frames)),
        count("bytes", |(_, far)| far.map(|far| far.bytes)),
    ];
    Tabular::new(columns, LESS).of(tx.interfaces.iter().enumerate().map(|(nth, side)| (side, rx.get(nth))))
}

/// The work by core.
fn cores(tx: &Tx) -> Tabular<(&Core, Totals)> {
    let columns: [Column<(&Core, Totals)>; 5] = [
        text("core", |(core, _)| Some(core.core.to_string())),
        count("frames", |(core, _)| Some(core.frames)),
        count("bytes", |(core, _)| Some(core.bytes)),
        number("frames/s", Unit::FramesPerSecond, |(_, share)| {
            (share.duration_ns > 0).then_some(share.frames_per_second)
        }),
        number("CPU time", Unit::Ratio, |(core, _)| core.cpu_ratio),
    ];
    let share = |core: &Core| Totals::over(core.frames, core.bytes, tx.totals.duration_ns);
    Tabular::new(columns, &[]).of(tx.cores.iter().map(|core| (core, share(core))))
}
