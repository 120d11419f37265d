//! What interfaces, drivers, queues and hosts counted meanwhile.

use super::{Line, Section};
use crate::data::model::Report;
use crate::data::sections::counters::{InterfaceCounters, QueueCounters, Witness};
use crate::data::units::{self, printable};
use crate::render::html::grid::{DASH, Grid};

pub(super) struct Counted;

impl Section for Counted {
    fn lines(&self, report: &Report) -> Vec<Line> {
        let all = report.result.tx.iter().flat_map(|tx| &tx.interface_counters);
        all.map(|c| Line::facts("interface", interface(c)).unless(crate::render::expected::counters(c)))
            .collect()
    }

    fn cards(&self, report: &Report) -> String {
        let header =
            ["interface", "sent by us", "interface counted", "not ours", "missing", "errors", "dropped"];
        let mut grid = Grid::new(header);
        for c in report.result.tx.iter().flat_map(|tx| &tx.interface_counters) {
            let maybe = |n: Option<u64>| n.map_or(DASH.into(), units::count);
            let [sent, counted, foreign, missing] =
                [c.sent_frames, c.tx_packets, c.foreign_frames, c.missing_frames].map(units::count);
            let (errors, dropped) = (maybe(c.tx_errors), maybe(c.tx_dropped));
            grid.row(&c.interface, [sent, counted, foreign, missing, errors, dropped]);
        }
        grid.card("The interfaces' own counters", false)
    }

    fn appendix(&self, report: &Report) -> String {
        // Those that tell where frames went come first.
        let mut grid = Grid::new(["where", "counter", "counted by", "rose by", ""]);
        let (telling, others): (Vec<_>, Vec<_>) =
            report.result.counters.iter().partition(|counter| counter.explains.is_some());
        for c in telling.into_iter().chain(others) {
            let why = c.explains.clone().unwrap_or_default();
            grid.row(&c.place, [c.name.clone(), c.source.clone(), units::count(c.rise), why]);
        }
        grid.card("What the hosts counted meanwhile", true)
    }
}

fn interface(c: &InterfaceCounters) -> Vec<String> {
    let mut facts =
        vec![format!("{} counted {}", printable(&c.interface), units::counted(c.tx_packets, "frame"))];
    match (c.missing_frames, c.foreign_frames) {
        _ if c.confirmed_by.is_some_and(|witness| witness != Witness::Interface) => facts.push(witness(c)),
        (0, 0) => facts.push("all of them ours".to_owned()),
        (0, foreign) => facts.push(format!("{} not ours", units::count(foreign))),
        (missing, _) => facts.push(format!("{} fewer than were sent", units::count(missing))),
    }
    if let Some(buffers) = c.sent_buffers {
        let (frames, buffers) = (units::counted(c.sent_frames, "frame"), units::count(buffers));
        facts.push(format!("was handed {frames} in {buffers} pieces (super-frames)"));
    }
    facts.extend(c.queue.as_ref().map(queue));
    facts
}

fn queue(q: &QueueCounters) -> String {
    let (kind, passed) = (printable(&q.kind), units::count(q.passed_frames));
    format!("its queue ({kind}) let {passed} pass and dropped {}", units::count(q.dropped))
}

/// Who counted what the interface's counter does not know.
fn witness(c: &InterfaceCounters) -> String {
    let driver = c.driver_xdp_frames.map_or_else(String::new, units::count);
    match c.confirmed_by {
        Some(Witness::Driver) => format!("its driver {driver} of XDP: that one is believed"),
        Some(Witness::Meter) => "which does not know these frames: they arrived".to_owned(),
        Some(Witness::Completions) => {
            "which does not know these frames: the driver gave all back as sent".to_owned()
        }
        Some(Witness::Nobody) => "and no counter saw these frames leave".to_owned(),
        Some(Witness::Interface) | None => "all of them ours".to_owned(),
    }
}
