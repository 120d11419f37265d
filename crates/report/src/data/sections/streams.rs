//! Streams of signed frames, one by one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Section, is_zero, latency, received, sent};
use crate::data::distribution::Distribution;
use crate::data::figure::Measured;
use crate::data::model::Report;
use crate::data::units;
use crate::render::html::grid::{DASH, Grid, first_of};
use crate::render::table::{Less, Table};
use crate::render::text::Options;

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
    /// Of those: sent after the last that arrived.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost_at_end_frames: u64,
    /// Frames that arrived again.
    pub duplicated_frames: u64,
    /// Frames that arrived after a later one (RFC 4737, 3).
    pub reordered_frames: u64,
    /// How far the reordered ones were (RFC 4737, 4.2.2): frames from the first with a higher number on, the greatest
    /// and the mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reorder_extent_max: Option<u64>,
    /// The mean of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reorder_extent_mean: Option<f64>,
    /// Frames whose bytes before the signature were not those that were sent, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corrupted_frames: Option<u64>,
    /// Of the first streams.
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
    /// Time between two arrivals, the mean and the longest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap_mean_ns: Option<u64>,
    /// The longest time between two arrivals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap_max_ns: Option<u64>,
}

/// Rows of streams on the page at most; all of them are in its data.
const MOST: usize = 256;

/// A column of the summary, and what stands in it.
type Count = (&'static str, fn(&Stream) -> u64);

pub(super) struct Streams;

impl Section for Streams {
    fn tables(&self, report: &Report, options: Options<'_>) -> Vec<String> {
        let limit = if options.verbose { usize::MAX } else { options.streams };
        // One stream is the whole run.
        if report.streams.is_empty() || limit == 0 || (report.streams.len() == 1 && !options.verbose) {
            return Vec::new();
        }
        // Those that lost frames come first.
        let mut streams: Vec<&Stream> = report.streams.iter().collect();
        streams.sort_by_key(|s| std::cmp::Reverse(s.lost_frames));
        // Nobody wants to read what did not happen.
        let counts: [Count; 2] =
            [("duplicated", |s| s.duplicated_frames), ("reordered", |s| s.reordered_frames)];
        let counts: Vec<_> = counts
            .into_iter()
            .filter(|(_, count)| options.verbose || streams.iter().any(|s| count(s) > 0))
            .collect();
        let header = ["stream", "sent", "received", "lost"].into_iter();
        let header = header.chain(counts.iter().map(|(name, _)| *name)).chain(["p50", "p99", "max"]);
        let mut table = Table::with_columns(header);
        for s in streams.iter().take(limit) {
            let latency = |get: fn(&Distribution) -> u64| s.latency_ns.as_ref().map(|d| units::time(get(d)));
            let mut cells = vec![s.tx_frames.map(units::count)];
            cells.extend([s.rx_frames, s.lost_frames].map(|n| Some(units::count(n))));
            cells.extend(counts.iter().map(|(_, count)| Some(units::count(count(s)))));
            cells.extend([latency(|d| d.p50), latency(|d| d.p99), latency(|d| d.max)]);
            table.cells(&label(s), cells);
        }
        let more = report.streams.len().saturating_sub(limit);
        let rest = if more > 0 {
            format!("... and {} more: `.verbose` lists all\n", units::counted(more as u64, "stream"))
        } else {
            String::new()
        };
        let less = [
            Less::Without(&["p50"]),
            Less::Without(&["max"]),
            // Of those that were sent the lost ones are told.
            Less::Without(&["received"]),
            Less::Shorter("duplicated", "dup."),
            Less::Shorter("reordered", "reord."),
        ];
        vec![table.within(options, &less) + &(options.said)(&rest)]
    }

    fn cards(&self, report: &Report) -> String {
        let header =
            ["stream", "sent", "received", "bytes", "lost", "duplicated", "reordered", "p50", "p99", "max"];
        let mut grid = Grid::new(header);
        for s in report.streams.iter().take(MOST) {
            let latency = |get: fn(&Distribution) -> u64| {
                s.latency_ns.as_ref().map_or(DASH.into(), |d| units::time(get(d)))
            };
            let sent = s.tx_frames.map_or(DASH.into(), units::count);
            let counts = [s.rx_frames, s.rx_bytes, s.lost_frames, s.duplicated_frames, s.reordered_frames];
            let [received, bytes, lost, duplicated, reordered] = counts.map(units::count);
            let [p50, p99, max] = [latency(|d| d.p50), latency(|d| d.p99), latency(|d| d.max)];
            grid.row(&label(s), [sent, received, bytes, lost, duplicated, reordered, p50, p99, max]);
        }
        grid.card(&first_of("Streams", MOST, report.streams.len()), true)
    }
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
