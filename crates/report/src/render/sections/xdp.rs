//! The XDP program that is the lab's device: verdicts by stream, and its time for each frame.

use super::{Line, Section};
use crate::data::model::Report;
use crate::data::sections::xdp::XdpVerdict;
use crate::data::units::{count, counted};
use crate::render::html::grid::Grid;
use crate::render::table::Table;
use crate::render::text::Options;
use crate::render::xdp::facts;

/// Rows of the summary's table.
const ROWS: usize = 24;

pub(super) struct OfXdp;

impl Section for OfXdp {
    fn lines(&self, report: &Report) -> Vec<Line> {
        let Some(xdp) = &report.result.xdp else { return Vec::new() };
        vec![Line::facts("XDP program", facts(xdp))]
    }

    fn tables(&self, report: &Report, options: Options<'_>) -> Vec<String> {
        let Some(xdp) = &report.result.xdp else { return Vec::new() };
        let streams = xdp.verdicts.iter().filter(|one| one.stream.is_some()).count();
        if streams < 2 && !options.verbose || xdp.verdicts.is_empty() {
            return Vec::new();
        }
        let mut table = Table::with_header(["verdict", "at", "stream", "frames"]);
        for one in xdp.verdicts.iter().take(ROWS) {
            table.row(&one.verdict, [one.interface.clone(), stream(one), Some(count(one.frames))]);
        }
        let more = xdp.verdicts.len().saturating_sub(ROWS) as u64;
        let rest: u64 = xdp.verdicts.iter().skip(ROWS).map(|one| one.frames).sum();
        if more > 0 {
            table.row(&format!("{} more", counted(more, "row")), [None, None, Some(count(rest))]);
        }
        vec![format!("Verdicts of the device's XDP program\n{table}")]
    }

    fn cards(&self, report: &Report) -> String {
        let mut grid = Grid::new(["verdict", "at", "stream", "frames"]);
        for one in report.result.xdp.iter().flat_map(|xdp| &xdp.verdicts) {
            grid.row(
                &one.verdict,
                [
                    one.interface.clone().unwrap_or_default(),
                    stream(one).unwrap_or_default(),
                    count(one.frames),
                ],
            );
        }
        grid.card("Verdicts of the device's XDP program", false)
    }
}

fn stream(one: &XdpVerdict) -> Option<String> {
    match one.stream {
        Some(stream) => Some(stream.to_string()),
        None if one.in_several_buffers => Some("not looked at".to_owned()),
        None => None,
    }
}
