//! Ports that each send for themselves, a row each.

use super::Section;
use crate::data::model::Report;
use crate::data::sections::ports::PortResult;
use crate::data::units;
use crate::render::html::grid::{DASH, Grid};
use crate::render::table::{Less, Table};
use crate::render::text::Options;

/// The columns of a table with a row for each.
const HEADER: [&str; 9] =
    ["port", "sent", "bytes", "failed", "measured at", "received", "bytes", "lost", "misdirected"];

impl PortResult {
    /// What stands behind its name in such a table; `None` where nothing is known.
    fn cells(&self) -> [Option<String>; 8] {
        let [sent, bytes, failed] = [self.tx_frames, self.tx_bytes, self.failed_frames].map(units::count);
        let [received, received_bytes, lost, misdirected] =
            [self.rx_frames, self.rx_bytes, self.lost_frames, self.misdirected_frames]
                .map(|n| n.map(units::count));
        let at = self.measured_at.as_deref().map(units::printable);
        [Some(sent), Some(bytes), Some(failed), at, received, received_bytes, lost, misdirected]
    }
}

pub(super) struct Ports;

impl Section for Ports {
    fn tables(&self, report: &Report, options: Options<'_>) -> Vec<String> {
        vec![text(&report.result.ports, options)]
    }

    fn cards(&self, report: &Report) -> String {
        let mut grid = Grid::new(HEADER);
        for port in &report.result.ports {
            grid.row(&port.interface, port.cells().map(|cell| cell.unwrap_or_else(|| DASH.into())));
        }
        grid.card("Ports", false)
    }
}

/// The table as text; empty of no ports.
fn text(ports: &[PortResult], options: Options<'_>) -> String {
    if ports.is_empty() {
        return String::new();
    }
    let mut table = Table::with_header(HEADER);
    ports.iter().for_each(|port| table.row(&port.interface, port.cells()));
    let less = [
        Less::Shorter("measured at", "at"),
        Less::Without(&["bytes", "bytes#2"]),
        Less::Without(&["measured at"]),
        Less::Without(&["failed"]),
    ];
    table.within(options, &less)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_measured_is_no_zero() {
        let sent = PortResult { interface: "tx0".to_owned(), tx_frames: 1000, ..PortResult::default() };
        let measured = PortResult {
            interface: "tx1".to_owned(),
            measured_at: Some("rx1".to_owned()),
            rx_frames: Some(990),
            lost_frames: Some(10),
            misdirected_frames: Some(0),
            ..sent.clone()
        };
        let table = text(&[sent, measured], Options::default());
        let words =
            |line: usize| table.lines().nth(line).expect("a row").split_whitespace().collect::<Vec<_>>();
        assert_eq!(words(1), ["tx0", "1,000", "0", "0", "-", "-", "-", "-"]);
        assert_eq!(words(2), ["tx1", "1,000", "0", "0", "rx1", "990", "10", "0"]);
        assert_eq!(text(&[], Options::default()), "");
    }
}
