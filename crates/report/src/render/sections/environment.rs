//! The machine, the software, and the choices they led to.

use super::{Line, Section};
use crate::data::model::Report;
use crate::data::sections::environment::Choice;
use crate::data::units;
use crate::render::html::grid::{DASH, Facts, Grid};

pub(super) struct Machine;

impl Section for Machine {
    /// Which engine ran and why; below it why not those that would have been taken rather.
    fn lines(&self, report: &Report) -> Vec<Line> {
        let Some(choice) = &report.environment.engine else { return Vec::new() };
        let lines = [Line::text("engine", format!("{}: {}", choice.name, choice.reason))].into_iter();
        let others = choice.not_taken.iter();
        let others = others.map(|other| Line::text("", format!("not {}: {}", other.name, other.reason)));
        let expected = crate::render::expected::engine(report);
        lines.chain(others).map(|line| line.unless(expected)).collect()
    }
}

pub(crate) fn card(report: &Report) -> String {
    let e = &report.environment;
    let mut facts = Facts::default();
    let commit = e.netdyno_commit.as_ref().map(|c| format!(" ({c})")).unwrap_or_default();
    facts.maybe("netdyno", (!e.netdyno_version.is_empty()).then(|| format!("{}{commit}", e.netdyno_version)));
    facts.maybe("started", e.started.clone());
    facts.maybe("host", e.hostname.clone());
    facts.maybe("kernel", e.kernel.clone());
    facts.maybe("CPU", e.cpu_model.clone());
    facts.maybe("CPUs", e.cpus.map(|n| n.to_string()));
    facts.maybe("frequency governor", e.governor.clone());
    facts.maybe("clock source", e.clocksource.clone());
    let choice = |c: &Choice| format!("{}: {}", c.name, c.reason);
    facts.maybe("engine", e.engine.as_ref().map(choice));
    for other in e.engine.iter().flat_map(|engine| &engine.not_taken) {
        facts.add(&format!("not {}", other.name), &other.reason);
    }
    facts.maybe("meter", e.meter.as_ref().map(choice));
    let mut grid =
        Grid::new(["interface", "role", "driver", "MTU", "speed", "queues tx/rx", "qdisc", "offloads on"]);
    for i in &e.interfaces {
        let text = |t: &Option<String>| t.clone().unwrap_or(DASH.into());
        let queues = |q: Option<u32>| q.map_or(DASH.into(), |q| q.to_string());
        let speed = i.speed_bits_per_second.map_or(DASH.into(), |s| units::bit_rate(s as f64));
        let mtu = i.mtu.map_or(DASH.into(), |m| m.to_string());
        let both = format!("{}/{}", queues(i.tx_queues), queues(i.rx_queues));
        let offloads = if i.offloads.is_empty() { DASH.into() } else { i.offloads.join(" ") };
        grid.row(&i.name, [text(&i.role), text(&i.driver), mtu, speed, both, text(&i.qdisc), offloads]);
    }
    let mut settings = Grid::new(["setting of the network stack", "value"]);
    for (name, value) in &e.tuning {
        settings.row(name, [value.clone()]);
    }
    match facts.card("") + &grid.card("", false) + &settings.card("", false) {
        cards if cards.is_empty() => cards,
        cards => format!("<h2>Where it ran</h2>\n{cards}"),
    }
}
