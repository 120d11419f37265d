//! The table of what was intended, sent, received and lost.

use crate::data::model::Report;
use crate::data::sections::totals::Totals;
use crate::data::units::{self, printable};
use crate::render::conclusion;
use crate::render::html::grid::{DASH, Grid};
use crate::render::table::{Less, Table};
use crate::render::text::Options;

/// Cells of a row of the summary's table: frames, bytes, frames/s, bits/s on layers 2 and 1.
pub(super) fn cells(totals: &Totals, bytes: fn(u64) -> String) -> [Option<String>; 5] {
    let rate = |text: String| (totals.duration_ns > 0).then_some(text);
    [
        Some(units::count(totals.frames)),
        Some(bytes(totals.bytes)),
        rate(units::frame_rate(totals.frames_per_second)),
        rate(units::bit_rate(totals.bits_per_second)),
        rate(units::bit_rate(totals.bits_per_second_l1)),
    ]
}

/// What frames that were sent are called.
fn sent(report: &Report) -> &'static str {
    match (&report.result.reflection, report.result.passages.is_empty()) {
        (Some(_), _) => "sent back",
        (None, false) => "forwarded",
        (None, true) => "sent",
    }
}

/// What frames that were received are called.
fn received(report: &Report) -> &'static str {
    if report.result.round_trip { "came back" } else { "received" }
}

/// The table of the summary: what was intended, sent, received and lost.
pub(crate) fn text(report: &Report, options: Options<'_>) -> String {
    let less = [
        Less::Shorter("layer 2, no FCS", "layer 2"),
        // Never the bytes: below them stands the share of frames that were lost.
        Less::Without(&["layer 1"]),
    ];
    let whole = table(report, units::count);
    match options.verbose || whole.fits(options.width) {
        true => whole.within(options, &[]),
        // To the byte it stands in the JSON.
        false => table(report, units::bytes).within(options, &less),
    }
}

fn table(report: &Report, bytes: fn(u64) -> String) -> Table {
    let result = &report.result;
    let mut table = Table::with_header(["", "frames", "bytes", "frames/s", "layer 2, no FCS", "layer 1"]);
    if let Some(tx) = &result.tx {
        let asked = report.resolved.rate.as_ref();
        if tx.intended_frames.is_some() || tx.intended_frames_per_second.is_some() {
            let pps = tx.intended_frames_per_second.map(units::frame_rate);
            let l2 = asked.and_then(|r| r.bits_per_second).map(units::bit_rate);
            let l1 = asked.and_then(|r| r.bits_per_second_l1).map(units::bit_rate);
            table.row("intended", [tx.intended_frames.map(units::count), None, pps, l2, l1]);
        }
        table.row(sent(report), cells(&tx.totals, bytes));
    }
    if let Some(rx) = &result.rx {
        table.row(received(report), cells(&rx.totals, bytes));
    }
    for p in &result.passages {
        let way = format!("{} > {}", printable(&p.from), printable(&p.to));
        table.row(&way, cells(&p.forwarded, bytes));
    }
    if let Some(loss) = result.loss {
        let share = Some(units::percent(loss.ratio));
        let none = || Some(String::new());
        table.row("lost", [Some(units::count(loss.frames)), share, none(), none(), none()]);
        if loss.by_count_only {
            table.note(conclusion::by_count(report).trim_start_matches(", ").to_owned());
        }
    }
    if result.tx.is_none() && result.rx.is_none() { Table::default() } else { table }
}

/// The same as a card of the page.
pub(crate) fn card(report: &Report) -> String {
    let result = &report.result;
    let mut grid = Grid::new(["", "frames", "bytes", "time", "frames/s", "layer 2, no FCS", "layer 1"]);
    let row = |t: &Totals| {
        [
            units::count(t.frames),
            units::count(t.bytes),
            units::time(t.duration_ns),
            units::frame_rate(t.frames_per_second),
            units::bit_rate(t.bits_per_second),
            units::bit_rate(t.bits_per_second_l1),
        ]
    };
    if let Some(tx) = &result.tx {
        if let Some(intended) = tx.intended_frames {
            let rate = tx.intended_frames_per_second.map_or(DASH.into(), units::frame_rate);
            let dash = || DASH.to_owned();
            grid.row("intended", [units::count(intended), dash(), dash(), rate, dash(), dash()]);
        }
        grid.row(sent(report), row(&tx.totals));
    }
    if let Some(rx) = &result.rx {
        grid.row(received(report), row(&rx.totals));
    }
    if let Some(loss) = result.loss {
        let mut cells = [(); 6].map(|()| String::new());
        let [frames, share, how, ..] = &mut cells;
        (*frames, *share) = (units::count(loss.frames), units::percent(loss.ratio));
        if loss.by_count_only {
            conclusion::by_count(report).trim_start_matches(", ").clone_into(how);
        }
        grid.row("lost", cells);
    }
    grid.card("Traffic", false)
}
