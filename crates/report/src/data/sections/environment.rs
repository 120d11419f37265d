//! The machine, the software, and the choices they led to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use super::{Line, Section};
use crate::data::model::Report;
use crate::data::units;
use crate::render::html::grid::{DASH, Facts, Grid};

/// The machine, the software and the choices they led to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    /// Of the netdyno that ran.
    pub netdyno_version: String,
    /// The commit it was built from, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub netdyno_commit: Option<String>,
    /// When the run began, RFC 3339, UTC. See [`crate::data::units::rfc3339`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<String>,
    /// The machine's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// The kernel's release, as of `uname -r`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// As /proc/cpuinfo says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_model: Option<String>,
    /// CPUs this process may run on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u32>,
    /// The frequency governor, `performance` when figures are to be trusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
    /// The kernel's clock source: `tsc`, `kvm-clock`, ...
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clocksource: Option<String>,
    /// Settings of the kernel's network stack that figures depend on, by the names of sysctl(8) (`net.ipv4.tcp_rmem`), as
    /// netdyno's own network namespace has them. Those that cannot be read are left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tuning: BTreeMap<String, String>,
    /// Those that took part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<Interface>,
    /// The engine that sent, and why it was chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<Choice>,
    /// How the receiver measured (`xdp`, `xdp-generic`, `packet`), and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meter: Option<Choice>,
}

/// Something netdyno chose, with the reason it gives.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Choice {
    /// What was chosen: `xdp`, `packet`, ...
    pub name: String,
    /// Why, for people.
    pub reason: String,
    /// What would have been taken rather, and why it was not possible; best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_taken: Vec<NotTaken>,
}

/// Something netdyno would have chosen, and why it could not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotTaken {
    /// What would have been chosen.
    pub name: String,
    /// Why it could not, for people.
    pub reason: String,
}

/// A network interface that took part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interface {
    /// Its name, in its network namespace.
    pub name: String,
    /// `send`, `measure`, `reflect`, `send and measure`, ...
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The driver, where it tells its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// The longest packet that it carries, in bytes without the Ethernet header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// The link's speed; left out where the driver has none (veth).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed_bits_per_second: Option<u64>,
    /// Transmit queues.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx_queues: Option<u32>,
    /// Receive queues.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rx_queues: Option<u32>,
    /// How long its carrier was waited for before the run began, because the driver took the link down when a program
    /// was attached, or because it was down before; left out where it was always there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carrier_wait_ns: Option<u64>,
    /// Its queueing disciplines, the root first: `fq_codel`, `mq fq_codel`, `noqueue`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qdisc: Option<String>,
    /// Offloads that are on, by ethtool's names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offloads: Vec<String>,
}

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
