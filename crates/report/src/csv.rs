//! The intervals as a table for spreadsheets and plotting tools (RFC 4180 with LF line ends): one header line
//! with units, plain numbers, an empty cell where nothing was measured.

use std::fmt::Write;

use crate::model::{Interval, Report};

/// The header line; [`crate::store`] knows our files by how it begins.
pub const HEADER: &str = "start_ns,end_ns,offered_frames,offered_frames_per_second,\
tx_frames,tx_bytes,tx_frames_per_second,tx_bits_per_second,tx_bits_per_second_l1,\
rx_frames,rx_bytes,rx_frames_per_second,rx_bits_per_second,rx_bits_per_second_l1,\
lost_frames,late_frames,latency_p50_ns,latency_p99_ns,latency_p999_ns,latency_max_ns";

pub fn render(report: &Report) -> String {
    let mut out = format!("{HEADER}\n");
    for interval in &report.intervals {
        out.push_str(&row(interval));
        out.push('\n');
    }
    out
}

fn row(i: &Interval) -> String {
    let mut out = format!("{},{}", i.start_ns, i.end_ns);
    // Writing to a String cannot fail.
    let mut cell = |value: Option<u64>| match value {
        Some(n) => write!(out, ",{n}").unwrap_or_default(),
        None => out.push(','),
    };
    let whole = |rate: f64| rate.round() as u64;
    let (tx, rx) = (i.tx(), i.rx());
    cell(i.offered_frames);
    cell(i.offered_frames_per_second().map(whole));
    for (frames, bytes, totals) in [(i.tx_frames, i.tx_bytes, tx), (i.rx_frames, i.rx_bytes, rx)] {
        cell(frames);
        cell(bytes);
        cell(totals.map(|t| whole(t.frames_per_second)));
        // Without a byte count there is no bit rate, on either layer.
        let with_bytes = totals.filter(|_| bytes.is_some());
        cell(with_bytes.map(|t| whole(t.bits_per_second)));
        cell(with_bytes.map(|t| whole(t.bits_per_second_l1)));
    }
    cell(i.lost_frames);
    cell(i.late_frames);
    cell(i.latency_p50_ns);
    cell(i.latency_p99_ns);
    cell(i.latency_p999_ns);
    cell(i.latency_max_ns);
    out
}
