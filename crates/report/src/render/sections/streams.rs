//! Streams of signed frames, a row each.

use super::{Line, Section};
use crate::data::distribution::Distribution;
use crate::data::model::Report;
use crate::data::sections::streams::{Stream, label};
use crate::data::units;
use crate::render::html::grid::first_of;
use crate::render::table::Less;
use crate::render::tabular::{Column, Tabular, count, only_on_page, text, time};
use crate::render::text::Options;

/// Rows of streams on the page at most; all of them are in its data.
const MOST: usize = 256;

/// A row for each. `all`: the terminal shows what never happened, too.
fn table<'s>(streams: &[&'s Stream], all: bool) -> Tabular<&'s Stream> {
    const LESS: &[Less<'_>] = &[
        Less::Without(&["apart p50"]),
        Less::Without(&["p50"]),
        Less::Without(&["apart p99"]),
        Less::Without(&["max"]),
        // Of those that were sent the lost ones are said.
        Less::Without(&["received"]),
        Less::Shorter("duplicated", "dup."),
        Less::Shorter("reordered", "reord."),
    ];
    let rare = |header, frames: fn(&&'s Stream) -> Option<u64>| {
        let happened = streams.iter().any(|stream| frames(stream) > Some(0));
        let column = count(header, frames);
        if all || happened { column } else { only_on_page(column) }
    };
    let columns: [Column<&'s Stream>; 12] = [
        text("stream", |s| Some(label(s))),
        count("sent", |s| s.tx_frames),
        count("received", |s| Some(s.rx_frames)),
        only_on_page(count("bytes", |s| Some(s.rx_bytes))),
        // Of a stream whose sender restarted its numbers nothing of these is known.
        count("lost", |s| (!s.restarted).then_some(s.lost_frames)),
        rare("duplicated", |s| (!s.restarted).then_some(s.duplicated_frames)),
        rare("reordered", |s| (!s.restarted).then_some(s.reordered_frames)),
        time("p50", |s| s.latency_ns.as_ref().map(|d| d.p50)),
        time("p99", |s| s.latency_ns.as_ref().map(|d| d.p99)),
        time("max", |s| s.latency_ns.as_ref().map(|d| d.max)),
        time("apart p50", |s| s.inter_arrival_ns.as_ref().map(|d| d.p50)),
        time("apart p99", |s| s.inter_arrival_ns.as_ref().map(|d| d.p99)),
    ];
    Tabular::new(columns, LESS)
}

pub(super) struct Streams;

impl Section for Streams {
    fn lines(&self, report: &Report) -> Vec<Line> {
        // Of several the table tells it.
        let [Stream { inter_arrival_ns: Some(d), .. }] = &report.streams[..] else { return Vec::new() };
        let mut facts = vec![format!("mean {}", units::time(d.mean as u64))];
        facts.extend(d.in_words());
        facts.push(format!("of {}", units::counted(d.count, "time")));
        vec![Line::facts("apart", facts)]
    }

    fn times<'r>(&self, report: &'r Report) -> Vec<(&'static str, &'r Distribution)> {
        match &report.streams[..] {
            [Stream { inter_arrival_ns: Some(d), .. }] => vec![("between the stream's arrivals", d)],
            _ => Vec::new(),
        }
    }

    fn tables(&self, report: &Report, options: Options<'_>) -> Vec<String> {
        let limit = if options.verbose { usize::MAX } else { options.streams };
        // One stream is the whole run.
        if report.streams.is_empty() || limit == 0 || (report.streams.len() == 1 && !options.verbose) {
            return Vec::new();
        }
        // Those that lost frames come first.
        let mut streams: Vec<&Stream> = report.streams.iter().collect();
        streams.sort_by_key(|s| std::cmp::Reverse(s.lost_frames));
        let table = table(&streams, options.verbose).of(streams.iter().copied().take(limit));
        let more = report.streams.len().saturating_sub(limit);
        let rest = if more > 0 {
            format!("... and {} more: `.verbose` lists all\n", units::counted(more as u64, "stream"))
        } else {
            String::new()
        };
        vec![table.text(options) + &(options.said)(&rest)]
    }

    fn cards(&self, report: &Report) -> String {
        let streams: Vec<&Stream> = report.streams.iter().take(MOST).collect();
        let table = table(&streams, true).of(streams.iter().copied());
        table.card(&first_of("Streams", MOST, report.streams.len()), true)
    }
}
