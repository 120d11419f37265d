//! What was sent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counters::InterfaceCounters;
use super::pacing::Departures;
use super::totals::Totals;
use crate::data::figure::{Measured, figures, within};
use crate::data::model::Report;

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
    /// Frames that were handed over and that no counter saw leave; left out where all were seen.
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
    /// Frames that were sent of each number in signatures, where others measure them (a part of a job on several hosts).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signed: Vec<SignedFrames>,
    /// When some of the frames left, by the interface's time stamps, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub departures: Option<Departures>,
    /// The number of frames that carry one time stamp, taken when the first of them is made, because the kernel hands them to the driver together (top speed
    /// by XDP live frames); left out where each has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamped_together: Option<u32>,
}

impl Tx {
    /// How much later than the stamp that they share the last of such frames was made, on average, by the CPU time that frames took; not known where
    /// that is not.
    pub fn stamped_early_ns(&self) -> Option<u64> {
        let others = f64::from(self.stamped_together?.saturating_sub(1));
        let busy: f64 = self.cores.iter().map(|core| core.cpu_ratio).sum::<Option<f64>>()?;
        let each_ns = self.totals.duration_ns as f64 * busy / self.totals.frames as f64;
        (self.totals.frames > 0 && busy > 0.0).then_some((others * each_ns) as u64)
    }
}

/// What was sent under one number of signatures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SignedFrames {
    /// The number.
    pub number: u32,
    /// The stream that it is of, or the part of a stream that one core sent.
    pub stream: u32,
    /// What the scenario calls that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How many; left out where frames were refused, because it is not known of which stream these were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames: Option<u64>,
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

/// Its figures, as far as they are known.
pub(crate) fn figures(report: &Report) -> Vec<Measured> {
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
