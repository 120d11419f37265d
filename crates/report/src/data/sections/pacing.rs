//! How closely frames kept their times.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::data::distribution::Distribution;
use crate::data::figure::{Measured, figures};
use crate::data::model::Report;

/// When frames left, as the interface stamped them: some of them, one at a time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Departures {
    /// Who stamped them: `hardware`, or `driver` (when it handed a frame to the hardware).
    pub stamped_by: String,
    /// Frames whose stamps were asked for.
    pub asked_frames: u64,
    /// Frames of those asked for that were stamped.
    pub stamped_frames: u64,
    /// How long after its time a frame left; one that was early counts as 0. Left out at top speed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lateness_ns: Option<Distribution>,
    /// Time from when a frame was handed to the kernel to when it left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handing_ns: Option<Distribution>,
    /// Largest error of these times, because the stamps are of another clock.
    pub clock_error_ns: u64,
}

/// How closely frames left, or arrived, at their times.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pacing {
    /// Where the gaps were measured: `sender` or `receiver`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured_at: Option<String>,
    /// How far a gap between two frames was from the scheduled one, without sign.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap_error_ns: Option<Distribution>,
    /// How long after its time a frame left; a frame on time counts as 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lateness_ns: Option<Distribution>,
    /// How late the first frame was, of several sending threads the latest of their first ones: by then the run really had begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_frame_late_ns: Option<u64>,
    /// How late the last frame was: the drift over the whole run. Negative is early.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_frame_late_ns: Option<i64>,
    /// Frames later than `late_threshold_ns`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_frames: Option<u64>,
    /// Lateness from which on a frame counts in `late_frames`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_threshold_ns: Option<u64>,
    /// Frames that left or arrived directly after the one before although the schedule left a gap, over all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub back_to_back_ratio: Option<f64>,
    /// Whether an engine that can do both slept in the gaps between frames or kept its core busy: `slept`, `spun`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<String>,
    /// How late the machine woke a sleeping thread in 99 of 100 trials before the run: where gaps are not longer than
    /// that by a margin, the sender spins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wake_up_p99_ns: Option<u64>,
    /// What the sending threads had at the end: `ordinary`; `real-time`: they went before all ordinary tasks, because others had held
    /// them up; or where that is not permitted the best nice value that is: `nice -5`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
    /// What happened after the sender was held up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub catch_up: Option<CatchUp>,
}

/// What happened after the sender was held up (a stall) and had frames overdue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CatchUp {
    /// How often nothing left for more than 100 us although a frame was due and nothing kept it on purpose. How late frames are is
    /// something else: that adds up.
    pub stalls: u64,
    /// Length of the longest stall.
    pub longest_stall_ns: u64,
    /// Frames sent above the asked rate to catch up.
    pub frames: u64,
    /// The bound on the rate while catching up, over any millisecond, as a multiple of the rate asked for.
    pub rate_limit_ratio: f64,
    /// The bound by the link, over any millisecond, in bits on the wire (24 bytes more a frame): it holds where it is the higher one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_bits_per_second: Option<u64>,
    /// Frames of a burst at most, by that bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_burst_frames: Option<u64>,
    /// The most frames that were handed over within any millisecond of the run; of several sending threads at most so many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_in_1ms: Option<u64>,
    /// The most frames that arrived within any millisecond, where all arrivals were timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_received_in_1ms: Option<u64>,
    /// Schedule time given up because it could not be caught up within the bound.
    pub abandoned_ns: u64,
}

figures! {
    /// How far a gap was from the scheduled one, without sign: half of them at most this.
    GAP_P50 = "gap_error_p50", "gap error, p50", Ns, Lower;
    /// The same of 99 %.
    GAP_P99 = "gap_error_p99", "gap error, p99", Ns, Lower;
    /// How long after its time a frame left: 99 % at most this.
    LATENESS_P99 = "lateness_p99", "lateness, p99", Ns, Lower;
    /// How long after its time each frame was handed to the interface.
    LATENESS = "lateness", "lateness", Ns;
    /// Frames that left more than 100 us late.
    LATE = "late_frames", "late" as "frames late", Count;
    /// Frames without the gap that the schedule left before them, of all.
    BACK_TO_BACK = "back_to_back_ratio", "back to back" as "share of frames back to back", Ratio;
}

/// Its figures, as far as they are known.
pub(crate) fn figures(report: &Report) -> Vec<Measured> {
    let Some(p) = &report.result.pacing else { return Vec::new() };
    let mut figures = Vec::new();
    if let Some(d) = &p.gap_error_ns {
        figures.extend([GAP_P50.count(d.p50), GAP_P99.count(d.p99)]);
    }
    figures.extend(p.lateness_ns.as_ref().map(|d| LATENESS_P99.count(d.p99)));
    figures.extend(p.late_frames.map(|n| LATE.count(n)));
    figures.extend(p.back_to_back_ratio.map(|ratio| BACK_TO_BACK.is(ratio)));
    figures
}
