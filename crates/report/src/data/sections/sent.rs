//! What was sent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counters::InterfaceCounters;
use super::pacing::Departures;
use super::totals::Totals;
use super::{Line, Section};
use crate::data::figure::{Measured, figures, within};
use crate::data::model::Report;
use crate::data::units::{self, printable};
use crate::render::conclusion;
use crate::render::html::grid::{DASH, Facts, Grid};
use crate::render::table::{Less, Table};
use crate::render::text::Options;

/// What was sent: frames the kernel has completed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tx {
    /// Frames and bytes that were sent, and their rates.
    #[serde(flatten)]
    pub totals: Totals,
    /// Frames the schedule asked for within the run; left out at top speed, which asks for no number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intended_frames: Option<u64>,
    /// Frames that were due and neither left within 20 ms of grace nor were refused: due in the duration that was asked
    /// for, and where the run was ended before, 20 ms before that. Left out at top speed. Of a streamed capture at its own
    /// times or at a rate in bits at least so many from 20,000,000 on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_not_sent_frames: Option<u64>,
    /// The rate the schedule asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intended_frames_per_second: Option<f64>,
    /// The engine that sent them: `packet`, `null`, `file`, ...
    pub engine: String,
    /// Frames given up after retries.
    #[serde(default)]
    pub failed: u64,
    /// Sends repeated because the device's queue was full.
    #[serde(default)]
    pub retried_enobufs: u64,
    /// Sends repeated because the socket's buffer was full.
    #[serde(default)]
    pub retried_eagain: u64,
    /// Frames sent shorter than they should have been (snap length below the frame's length).
    #[serde(default)]
    pub truncated: u64,
    /// Frames that were handed over, and that nobody saw leave; left out where all were seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unconfirmed_frames: Option<u64>,
    /// The interfaces' own counters over the run, against what this program counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interface_counters: Vec<InterfaceCounters>,
    /// What left by each interface, where there are two: first that of `--on`, then that of `--on2`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<TxInterface>,
    /// The work by core: one entry for each worker.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cores: Vec<Core>,
    /// When some of the frames really left, by stamps of the interface, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub departures: Option<Departures>,
}

/// What left by one of two interfaces.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TxInterface {
    /// Where they left.
    pub interface: String,
    /// Frames that were sent.
    pub frames: u64,
    /// Layer 2 bytes without FCS.
    pub bytes: u64,
    /// Frames given up after retries.
    pub failed: u64,
    /// Tries that the kernel refused with ENOBUFS, and that were repeated.
    pub retried_enobufs: u64,
    /// Tries that the kernel refused with EAGAIN, and that were repeated.
    pub retried_eagain: u64,
    /// Frames sent shorter than they should have been.
    pub truncated: u64,
    /// Flows first seen here; a flow that leaves by both counts once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flows: Option<u64>,
    /// Frames that belong to a flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow_frames: Option<u64>,
}

/// One sending core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Core {
    /// The CPU's number.
    pub core: u32,
    /// Frames that it sent.
    pub frames: u64,
    /// Bytes of those, layer 2 without FCS.
    pub bytes: u64,
    /// CPU time used over wall time, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_ratio: Option<f64>,
    /// The part of that in which it only waited for frames' times, awake; left out at top speed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_ratio: Option<f64>,
    /// The part of the time in which the sending thread was ready to run and others had this CPU, as the kernel counts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others_ratio: Option<f64>,
}

impl Core {
    /// CPU time used for other things than waiting, over wall time.
    pub fn busy_ratio(&self) -> Option<f64> {
        Some((self.cpu_ratio? - self.waiting_ratio.unwrap_or(0.0)).max(0.0))
    }
}

figures! {
    /// Frames sent over the time that was sent in.
    SENT = "tx_frames_per_second", "sent" as "frames sent per second", FramesPerSecond, Higher;
    /// Bits sent on layer 2 without FCS, over the same time.
    SENT_BITS = "tx_bits_per_second", "sent, layer 2" as "bits sent per second, layer 2", BitsPerSecond, Higher;
    /// Frames sent.
    FRAMES = "tx_frames", "sent" as "frames sent", Count;
    /// Bytes of frames sent, without FCS.
    BYTES = "tx_bytes", "sent bytes" as "bytes sent", Bytes;
    /// Frames that the schedule had due.
    INTENDED = "intended_frames", "intended" as "frames intended", Count;
    /// Frames that were due and neither left within 20 ms of grace nor were refused.
    DUE_NOT_SENT = "due_not_sent_frames", "due and not sent" as "frames due and not sent", Count;
    /// Frames given up after retries.
    FAILED = "failed_frames", "failed" as "frames failed", Count;
    /// Frames sent shorter than they should have been, because the capture holds them cut.
    TRUNCATED = "truncated_frames", "truncated" as "frames truncated", Count;
    /// Sends repeated because the queue of the device was full.
    RETRIED_ENOBUFS = "retried_enobufs", "retried (ENOBUFS)" as "sends retried (ENOBUFS)", Count;
    /// Sends repeated because the buffer of the socket was full.
    RETRIED_EAGAIN = "retried_eagain", "retried (EAGAIN)" as "sends retried (EAGAIN)", Count;
}

pub(super) struct Sent;

impl Section for Sent {
    fn figures(&self, report: &Report) -> Vec<Measured> {
        let Some(tx) = &report.result.tx else { return Vec::new() };
        let mut figures = Vec::new();
        if tx.totals.duration_ns > 0 {
            let rate = within(report, |i| i.tx().map(|t| t.frames_per_second));
            figures.push(SENT.is(tx.totals.frames_per_second).with(rate));
            let bits = within(report, |i| i.tx_bytes.and(i.tx()).map(|t| t.bits_per_second));
            figures.push(SENT_BITS.is(tx.totals.bits_per_second).with(bits));
        }
        figures.push(FRAMES.count(tx.totals.frames));
        figures.push(BYTES.count(tx.totals.bytes));
        figures.extend(tx.intended_frames.map(|n| INTENDED.count(n)));
        figures.extend(tx.due_not_sent_frames.map(|n| DUE_NOT_SENT.count(n).listed()));
        for (figure, count) in [
            (&FAILED, tx.failed),
            (&TRUNCATED, tx.truncated),
            (&RETRIED_ENOBUFS, tx.retried_enobufs),
            (&RETRIED_EAGAIN, tx.retried_eagain),
        ] {
            figures.push(figure.count(count).listed());
        }
        figures
    }

    fn lines(&self, report: &Report) -> Vec<Line> {
        let Some(tx) = &report.result.tx else { return Vec::new() };
        let mut facts =
            vec![format!("{} engine, {}", printable(&tx.engine), units::time(tx.totals.duration_ns))];
        facts.extend(conclusion::rate_error(report));
        // Nobody wants to read what did not happen.
        facts.extend(self.figures(report).iter().filter(|f| f.value > 0.0).filter_map(Measured::fact));
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
        facts.figures(&self.figures(report));
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
