//! Streams of signed frames, a row each.

use super::Section;
use crate::data::distribution::Distribution;
use crate::data::model::Report;
use crate::data::sections::streams::{Stream, label};
use crate::data::sections::{latency, received, sent};
use crate::data::units;
use crate::render::html::grid::{DASH, Grid, first_of};
use crate::render::table::{Less, Table};
use crate::render::text::Options;

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
