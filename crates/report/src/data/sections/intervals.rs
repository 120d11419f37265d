//! The run over time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::totals::Totals;

/// A stretch of the run. Times count from the run's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// When it begins.
    pub start_ns: u64,
    /// When it ends.
    pub end_ns: u64,
    /// Frames the schedule asked for in this stretch; left out at top speed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intended_frames: Option<u64>,
    /// Frames that were sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx_frames: Option<u64>,
    /// Bytes of those, layer 2 without FCS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx_bytes: Option<u64>,
    /// Frames that arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rx_frames: Option<u64>,
    /// Bytes of those, layer 2 without FCS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rx_bytes: Option<u64>,
    /// Frames sent in this stretch that never arrived: by their numbers if all are signed, else by counts of both ends.
    /// Left out where none was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_frames: Option<u64>,
    /// Frames that left later than the threshold in `pacing`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_frames: Option<u64>,
    /// The median delay of the frames that arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_p50_ns: Option<u64>,
    /// The 99th percentile of the delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_p99_ns: Option<u64>,
    /// The 99.9th percentile of the delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_p999_ns: Option<u64>,
    /// The longest delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_max_ns: Option<u64>,
}

impl Interval {
    /// How long it is, in nanoseconds.
    pub fn duration_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }

    /// What was sent in this stretch, when the sender was ours.
    pub fn tx(&self) -> Option<Totals> {
        Some(Totals::over(self.tx_frames?, self.tx_bytes.unwrap_or(0), self.duration_ns()))
    }

    /// What arrived in this stretch, when it was measured.
    pub fn rx(&self) -> Option<Totals> {
        Some(Totals::over(self.rx_frames?, self.rx_bytes.unwrap_or(0), self.duration_ns()))
    }

    /// The rate the schedule asked for in this stretch.
    pub fn intended_frames_per_second(&self) -> Option<f64> {
        Some(Totals::over(self.intended_frames?, 0, self.duration_ns()).frames_per_second)
    }
}
