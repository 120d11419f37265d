//! What others counted meanwhile: interfaces, drivers, queues, hosts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Line, Section, is_zero};
use crate::data::model::Report;
use crate::data::units::{self, printable};
use crate::render::html::grid::{DASH, Grid};

/// A counter that rose during the run, whoever's frames it counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostCounter {
    /// The interface at whose end it was read, or `this machine`.
    pub place: String,
    /// Who counts: `interface` (`ip -s link`), `driver` (`ethtool -S`), `stack` (`nstat`), `cores`
    /// (`/proc/net/softnet_stat`); of a lab's device also `queue` (`tc -s qdisc`), `rule` (nftables) and `impair` (its
    /// program).
    pub source: String,
    /// Its name there.
    pub name: String,
    /// By how much it rose during the run.
    pub rise: u64,
    /// Of the rise, frames that arrived and were measured: some drivers count what the meter's program drops when it has
    /// counted it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_frames: Option<u64>,
    /// Frames that it counts are gone: why, and what helps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explains: Option<String>,
}

/// How far an interface's own transmit counters moved during the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InterfaceCounters {
    /// The interface.
    pub interface: String,
    /// Frames this program handed to the interface.
    pub sent_frames: u64,
    /// Rise of the interface's `tx_packets`.
    pub tx_packets: u64,
    /// Rise of its `tx_bytes`, as the driver counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx_bytes: Option<u64>,
    /// Rise of its `tx_errors`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx_errors: Option<u64>,
    /// Rise of its `tx_dropped`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx_dropped: Option<u64>,
    /// Frames the counter saw that were not ours (`tx_packets` above `sent_frames`).
    pub foreign_frames: u64,
    /// Frames counted as sent that the interface did not see (`tx_packets` below `sent_frames`).
    pub missing_frames: u64,
    /// What of `sent_frames` was handed over in one piece counted once (super-frames: GSO, GRO); left out where that is the
    /// same. The interface counts either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_buffers: Option<u64>,
    /// What the root queueing discipline in front of the interface let through and dropped, where frames went by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueCounters>,
    /// Rise of the driver's own counter of frames that XDP programs and AF_XDP sockets sent, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver_xdp_frames: Option<u64>,
    /// Who saw the frames leave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirmed_by: Option<Witness>,
    /// Bytes that the interface counted of each frame beyond those of layer 2 without FCS: 4 where it counts the FCS.
    /// Left out where it counted other frames, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beyond_layer2_bytes: Option<i64>,
}

/// What a queueing discipline counted, whoever's frames those were.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueueCounters {
    /// `tbf`, `fq_codel`, ...
    pub kind: String,
    /// Let through, each frame of a super-frame by itself.
    pub passed_frames: u64,
    /// Dropped, frames or super-frames as it had them.
    pub dropped: u64,
    /// Waited in it when the run ended.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub waiting: u64,
}

/// Who saw that frames left an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Witness {
    /// The interface's own counter.
    Interface,
    /// The driver's counter of XDP frames. The interface's does not know them.
    Driver,
    /// The receiver: they arrived. No counter of the sender knows them.
    Meter,
    /// The driver gave back their memory as done with; no counter knows them, and no receiver counted.
    Completions,
    /// Nobody.
    Nobody,
}

impl InterfaceCounters {
    /// Compares the counter's rise with our own count.
    pub fn compare(interface: impl Into<String>, sent_frames: u64, tx_packets: u64) -> Self {
        Self {
            interface: interface.into(),
            sent_frames,
            tx_packets,
            foreign_frames: tx_packets.saturating_sub(sent_frames),
            missing_frames: sent_frames.saturating_sub(tx_packets),
            ..Self::default()
        }
    }
}

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
        Some(Witness::Nobody) => "and nobody saw these frames leave".to_owned(),
        Some(Witness::Interface) | None => "all of them ours".to_owned(),
    }
}
