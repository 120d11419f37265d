//! Frames and bytes over a time, and the rates that follow; the table that a result begins with.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes a frame takes on the wire beyond its layer 2 bytes without FCS: FCS 4, preamble and start delimiter 8,
/// inter-frame gap 12 (IEEE 802.3-2022, 3.1.1 and 4.4.2).
pub const L1_OVERHEAD_BYTES: u64 = 4 + 8 + 12;

/// Frames and bytes over a time, and the rates that follow. Made by [`Totals::over`], the one place that
/// computes per-second figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    /// How many frames.
    pub frames: u64,
    /// Layer 2 bytes without FCS.
    pub bytes: u64,
    /// The time that the rates are over.
    pub duration_ns: u64,
    /// 0 when `duration_ns` is 0: no rate can be given.
    pub frames_per_second: f64,
    /// Layer 2 without FCS, as tcpreplay counts.
    pub bits_per_second: f64,
    /// On the wire: plus FCS, preamble and inter-frame gap, 24 bytes a frame.
    pub bits_per_second_l1: f64,
}

impl Totals {
    /// So many frames and bytes in a time.
    pub fn over(frames: u64, bytes: u64, duration_ns: u64) -> Self {
        // Exact integers first, one rounding at the end: no drift over days and exabytes.
        let per_second = |quantity: u128| match duration_ns {
            0 => 0.0,
            ns => (quantity * 1_000_000_000) as f64 / ns as f64,
        };
        let wire_bytes = u128::from(bytes) + u128::from(frames) * u128::from(L1_OVERHEAD_BYTES);
        Self {
            frames,
            bytes,
            duration_ns,
            frames_per_second: per_second(frames.into()),
            bits_per_second: per_second(u128::from(bytes) * 8),
            bits_per_second_l1: per_second(wire_bytes * 8),
        }
    }
}
