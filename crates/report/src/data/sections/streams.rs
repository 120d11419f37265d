//! Streams of signed frames, one by one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{is_zero, latency, received, sent};
use crate::data::distribution::Distribution;
use crate::data::figure::Measured;
use crate::data::model::Report;

/// One stream of signed frames.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stream {
    /// The number in its signatures.
    pub stream: u32,
    /// What the scenario or the mesh calls it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Frames that were sent, where they were sent here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx_frames: Option<u64>,
    /// Frames that arrived, each time counted.
    pub rx_frames: u64,
    /// Bytes of those, layer 2 without FCS.
    pub rx_bytes: u64,
    /// Frames that were sent and never arrived.
    pub lost_frames: u64,
    /// Lost frames that were sent after the last that arrived.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost_at_end_frames: u64,
    /// Frames that arrived again.
    pub duplicated_frames: u64,
    /// Frames that arrived after a later one (RFC 4737, 3).
    pub reordered_frames: u64,
    /// Greatest extent of reordering (RFC 4737, 4.2.2): number of frames from the first with a higher number on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reorder_extent_max: Option<u64>,
    /// Mean extent of reordering (RFC 4737, 4.2.2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reorder_extent_mean: Option<f64>,
    /// Frames whose bytes before the signature were not those that were sent, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corrupted_frames: Option<u64>,
    /// Delays of its frames; kept for the first streams only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<Distribution>,
    /// The shortest delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_min_ns: Option<u64>,
    /// The mean delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_mean_ns: Option<f64>,
    /// The longest delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_max_ns: Option<u64>,
    /// Interarrival jitter (RFC 3550, 6.4.1) at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter_ns: Option<f64>,
    /// Mean time between two arrivals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap_mean_ns: Option<u64>,
    /// The longest time between two arrivals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap_max_ns: Option<u64>,
}

/// The figures of each stream, for who asks for those of one by its number or its name.
pub(crate) fn figures(report: &Report) -> Vec<(&Stream, Measured)> {
    let of = |s: &Stream| {
        let mut figures = Vec::new();
        figures.extend(s.tx_frames.map(|frames| sent::FRAMES.count(frames)));
        figures.extend([received::FRAMES.count(s.rx_frames), received::BYTES.count(s.rx_bytes)]);
        figures.push(received::LOST_FRAMES.count(s.lost_frames));
        let sent = s.tx_frames.filter(|sent| *sent > 0);
        figures.extend(sent.map(|sent| received::LOST.is(s.lost_frames as f64 / sent as f64)));
        figures.push(received::DUPLICATED.count(s.duplicated_frames));
        figures.push(received::REORDERED.count(s.reordered_frames));
        figures.extend(s.corrupted_frames.map(|frames| received::CORRUPTED.count(frames)));
        if let Some(d) = s.latency_ns.as_ref().filter(|d| d.count > 0) {
            figures.extend([
                latency::P50.count(d.p50),
                latency::P99.count(d.p99),
                latency::P999.count(d.p999),
            ]);
        }
        figures.extend(s.latency_min_ns.map(|ns| latency::MIN.count(ns)));
        figures.extend(s.latency_max_ns.map(|ns| latency::MAX.count(ns)));
        figures.extend(s.jitter_ns.map(|ns| latency::JITTER.is(ns)));
        figures.retain(|figure| figure.value.is_finite());
        figures
    };
    report.streams.iter().flat_map(|s| of(s).into_iter().map(move |figure| (s, figure))).collect()
}

/// As tables call a stream: its number, and its name.
pub(crate) fn label(s: &Stream) -> String {
    s.name.as_ref().map_or(s.stream.to_string(), |name| format!("{} {name}", s.stream))
}
