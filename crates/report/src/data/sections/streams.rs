//! Streams of signed frames, one by one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{is_false, is_zero, latency, received, sent};
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
    /// A sender restarted its numbers while it was measured: how many of its frames were lost, came again or out of order is not known,
    /// and the counts of those say only what was seen.
    #[serde(default, skip_serializing_if = "is_false")]
    pub restarted: bool,
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
    /// Times from one arrival to the next, whatever their numbers: one over frames that were lost is one long time, and a copy of a frame is
    /// an arrival, too. Where that was asked for; kept for the first streams only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inter_arrival_ns: Option<Distribution>,
}

impl Stream {
    /// Adds the part of a stream that another core or host sent; percentiles are left as they are. Between arrivals of different parts nobody looked.
    pub fn add(&mut self, part: Stream) {
        let sum = self;
        let weighted = |a: Option<f64>, m: u64, b: Option<f64>, n: u64| match (a, b) {
            (Some(a), Some(b)) if m > 0 || n > 0 => {
                let (m, n) = (m as f64, n as f64);
                Some((a * m + b * n) / (m + n))
            }
            (a, b) => a.or(b),
        };
        sum.reorder_extent_mean = weighted(
            sum.reorder_extent_mean,
            sum.reordered_frames,
            part.reorder_extent_mean,
            part.reordered_frames,
        );
        sum.latency_mean_ns =
            weighted(sum.latency_mean_ns, sum.rx_frames, part.latency_mean_ns, part.rx_frames);
        sum.reorder_extent_max = sum.reorder_extent_max.max(part.reorder_extent_max);
        sum.corrupted_frames =
            sum.corrupted_frames.zip(part.corrupted_frames).map(|(a, b)| a.saturating_add(b));
        sum.latency_min_ns = match (sum.latency_min_ns, part.latency_min_ns) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        sum.latency_max_ns = sum.latency_max_ns.max(part.latency_max_ns);
        sum.jitter_ns = [sum.jitter_ns, part.jitter_ns].into_iter().flatten().max_by(f64::total_cmp);
        (sum.gap_mean_ns, sum.gap_max_ns, sum.inter_arrival_ns) = (None, None, None);
        sum.restarted |= part.restarted;
        sum.rx_frames = sum.rx_frames.saturating_add(part.rx_frames);
        sum.rx_bytes = sum.rx_bytes.saturating_add(part.rx_bytes);
        sum.lost_frames = sum.lost_frames.saturating_add(part.lost_frames);
        sum.lost_at_end_frames = sum.lost_at_end_frames.saturating_add(part.lost_at_end_frames);
        sum.duplicated_frames = sum.duplicated_frames.saturating_add(part.duplicated_frames);
        sum.reordered_frames = sum.reordered_frames.saturating_add(part.reordered_frames);
    }
}

/// The figures of each stream, for who asks for those of one by its number or its name.
pub(crate) fn figures(report: &Report) -> Vec<(&Stream, Measured)> {
    let of = |s: &Stream| {
        let mut figures = Vec::new();
        figures.extend(s.tx_frames.map(|frames| sent::FRAMES.count(frames)));
        figures.extend([received::FRAMES.count(s.rx_frames), received::BYTES.count(s.rx_bytes)]);
        if !s.restarted {
            figures.push(received::LOST_FRAMES.count(s.lost_frames));
            let sent = s.tx_frames.filter(|sent| *sent > 0);
            figures.extend(sent.map(|sent| received::LOST.is(s.lost_frames as f64 / sent as f64)));
            figures.push(received::DUPLICATED.count(s.duplicated_frames));
            figures.push(received::REORDERED.count(s.reordered_frames));
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_stream_are_added_by_their_weight() {
        let mut sum = Stream {
            rx_frames: 30,
            reordered_frames: 1,
            reorder_extent_max: Some(5),
            reorder_extent_mean: Some(5.0),
            latency_mean_ns: Some(100.0),
            latency_min_ns: Some(10),
            jitter_ns: Some(3.0),
            ..Stream::default()
        };
        let part = Stream {
            rx_frames: 10,
            reordered_frames: 3,
            reorder_extent_max: Some(2),
            reorder_extent_mean: Some(1.0),
            latency_mean_ns: Some(200.0),
            latency_min_ns: Some(20),
            jitter_ns: Some(4.0),
            ..Stream::default()
        };
        sum.add(part);
        assert_eq!(
            (sum.rx_frames, sum.reorder_extent_max, sum.reorder_extent_mean),
            (40, Some(5), Some(2.0))
        );
        assert_eq!(
            (sum.latency_mean_ns, sum.latency_min_ns, sum.jitter_ns),
            (Some(125.0), Some(10), Some(4.0))
        );
    }
}
