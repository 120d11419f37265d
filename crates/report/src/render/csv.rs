//! The figures of a result, the intervals of a run, and the trials of a search, as tables for spreadsheets and plotting tools (RFC 4180 with LF
//! line ends): one header line with units, plain numbers, an empty cell where nothing was measured.

use std::fmt::Write;

use crate::data::figure::{self, Better, Measured};
use crate::data::model::{Interval, Report};
use crate::data::search::Trial;

/// The header line; [`crate::store`] knows our files by how it begins.
pub const HEADER: &str = "start_ns,end_ns,intended_frames,intended_frames_per_second,\
tx_frames,tx_bytes,tx_frames_per_second,tx_bits_per_second,tx_bits_per_second_l1,\
rx_frames,rx_bytes,rx_frames_per_second,rx_bits_per_second,rx_bits_per_second_l1,\
lost_frames,late_frames,latency_p50_ns,latency_p99_ns,latency_p999_ns,latency_max_ns,lost_by_count_only";

/// The intervals of a run, a row each, with a header.
pub fn render(report: &Report) -> String {
    let causes = causes(report);
    let names = causes.iter().map(|(name, _)| format!(",{}", text(name))).collect::<String>();
    let mut out = format!("{HEADER}{names}\n");
    for (number, interval) in report.intervals.iter().enumerate() {
        out.push_str(&row(interval, crate::render::conclusion::is_by_count(report)));
        for (_, frames) in &causes {
            match frames.get(number) {
                // Writing to a String cannot fail.
                Some(frames) => write!(out, ",{frames}").unwrap_or_default(),
                None => out.push(','),
            }
        }
        out.push('\n');
    }
    out
}

/// A column for each cause of the loss, where drops were traced: a run without has none of these. Their names hold what differs.
fn causes(report: &Report) -> Vec<(String, &[u64])> {
    let traced = report.result.drops_traced.as_ref();
    let Some(over_time) = traced.and_then(|traced| traced.over_time.as_ref()) else { return Vec::new() };
    let told: Vec<_> = report.result.drops.iter().filter(|one| !one.by_interval.is_empty()).collect();
    let names = crate::render::drops::labels(&told).into_iter().map(|name| format!("dropped_frames: {name}"));
    let mut columns: Vec<_> = names.zip(told.iter().map(|one| &one.by_interval[..])).collect();
    let others = [
        ("dropped_frames: other causes", &over_time.others_by_interval),
        ("not_seen_frames", &over_time.not_seen_by_interval),
    ];
    for (name, frames) in others {
        if !frames.is_empty() {
            columns.push((name.to_owned(), &frames[..]));
        }
    }
    columns
}

fn row(i: &Interval, by_count_only: bool) -> String {
    let mut out = format!("{},{}", i.start_ns, i.end_ns);
    // Writing to a String cannot fail.
    let mut cell = |value: Option<u64>| match value {
        Some(n) => write!(out, ",{n}").unwrap_or_default(),
        None => out.push(','),
    };
    let whole = |rate: f64| rate.round() as u64;
    let (tx, rx) = (i.tx(), i.rx());
    cell(i.intended_frames);
    cell(i.intended_frames_per_second().map(whole));
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
    // 1: what arrived was counted only, and others' frames may stand in for lost ones.
    cell(i.lost_frames.map(|_| by_count_only.into()));
    out
}

/// The header line of a table of figures. What may hold commas stands behind what does not, for `cut -d,`.
pub const FIGURES_HEADER: &str = "figure,value,unit,better,name,meaning";

/// One row a figure; only the header where nothing was measured.
pub fn figures(report: &Report) -> String {
    let mut out = format!("{FIGURES_HEADER}\n");
    for measured in figure::of(report) {
        let Measured { figure, value, unit, .. } = &measured;
        let better = match figure.better {
            Some(Better::Higher) => "higher",
            Some(Better::Lower) => "lower",
            None => "",
        };
        let (value, name) = (value.to_string(), text(&measured.label()));
        let cells = [figure.key, &value, unit.name(), better, &name, &text(figure.meaning)];
        out += &cells.join(",");
        out.push('\n');
    }
    out
}

/// The header line of a table of trials.
pub const TRIALS_HEADER: &str = "trial,part,stage,frame_size,load,intended_frames_per_second,duration_ns,\
then_load,then_duration_ns,intended_frames,sent_frames,received_frames,lost_frames,loss_ratio,shortfall_ratio,\
duplicated_frames,reordered_frames,latency_min_ns,latency_mean_ns,latency_p50_ns,latency_p90_ns,latency_p99_ns,\
latency_p999_ns,latency_max_ns,last_loss_ns,outage_ns,uneven_frames,excused_frames,steady_lost_frames,missed_frames,unconfirmed_frames,repeated,verdict";

/// One row a trial; only the header without trials.
pub fn trials(report: &Report) -> String {
    let mut out = format!("{TRIALS_HEADER}\n");
    for trial in &report.result.trials {
        out += &trial_row(trial);
        out.push('\n');
    }
    out
}

fn trial_row(t: &Trial) -> String {
    let whole = |n: Option<u64>| n.map(|n| n.to_string()).unwrap_or_default();
    let real = |n: Option<f64>| n.map(|n| n.to_string()).unwrap_or_default();
    let latency = t.latency_ns.as_ref();
    [
        t.number.to_string(),
        text(t.part.as_str()),
        text(t.stage.as_str()),
        text(&t.frame_size),
        t.load.to_string(),
        real(t.intended_frames_per_second),
        t.duration_ns.to_string(),
        real(t.then_load),
        whole(t.then_duration_ns),
        t.intended_frames.to_string(),
        t.sent_frames.to_string(),
        t.received_frames.to_string(),
        t.lost_frames.to_string(),
        t.loss_ratio.to_string(),
        t.shortfall_ratio.to_string(),
        t.duplicated_frames.to_string(),
        t.reordered_frames.to_string(),
        whole(latency.map(|d| d.min)),
        real(latency.map(|d| d.mean)),
        whole(latency.map(|d| d.p50)),
        whole(latency.map(|d| d.p90)),
        whole(latency.map(|d| d.p99)),
        whole(latency.map(|d| d.p999)),
        whole(latency.map(|d| d.max)),
        whole(t.last_loss_ns),
        whole(t.outage_ns),
        t.uneven_frames.to_string(),
        t.excused_frames.to_string(),
        t.steady_lost_frames.to_string(),
        t.missed_frames.to_string(),
        t.unconfirmed_frames.to_string(),
        t.repeated.to_string(),
        text(t.verdict.as_str()),
    ]
    .join(",")
}

/// The header line of a table of a mesh's pairs.
pub const PAIRS_HEADER: &str = "from,to,outcome,round,began_ns,bits_per_second,transactions_per_second,p50_ns,p99_ns,count,lost,\
loss_ratio,dropped_by_receiver,retransmits,reason";

/// One row a pair of a mesh; only the header where there is none.
pub fn pairs(report: &Report) -> String {
    let whole = |n: Option<u64>| n.map(|n| n.to_string()).unwrap_or_default();
    let real = |n: Option<f64>| n.map(|n| n.to_string()).unwrap_or_default();
    let mut out = format!("{PAIRS_HEADER}\n");
    for pair in report.result.mesh.iter().flat_map(|mesh| &mesh.pairs) {
        let cells = [
            text(&pair.from),
            text(&pair.to),
            pair.outcome.name().to_owned(),
            pair.round.to_string(),
            whole(pair.began_ns),
            real(pair.bits_per_second),
            real(pair.transactions_per_second),
            whole(pair.p50_ns),
            whole(pair.p99_ns),
            whole(pair.count),
            whole(pair.lost),
            real(pair.loss_ratio),
            whole(pair.dropped_by_receiver),
            whole(pair.retransmits),
            text(pair.reason.as_deref().unwrap_or_default()),
        ];
        out += &(cells.join(",") + "\n");
    }
    out
}

/// A cell of text: quoted where it must be, control characters made visible, and never a formula to a spreadsheet.
fn text(text: &str) -> String {
    let text = crate::data::units::printable(text);
    let text = if text.starts_with(['=', '+', '-', '@']) { format!("'{text}") } else { text };
    if text.contains([',', '"']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}
