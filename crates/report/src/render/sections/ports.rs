//! Ports that each send for themselves, a row each.

use super::Section;
use crate::data::model::Report;
use crate::data::sections::ports::PortResult;
use crate::render::table::Less;
use crate::render::tabular::{Column, Tabular, count, text};
use crate::render::text::Options;

/// A row for each port; what was not measured has no value.
fn table(ports: &[PortResult]) -> Tabular<&PortResult> {
    const LESS: &[Less<'_>] = &[
        Less::Shorter("measured at", "at"),
        Less::Without(&["bytes", "bytes#2"]),
        Less::Without(&["measured at"]),
        Less::Without(&["failed"]),
    ];
    let columns: [Column<&PortResult>; 9] = [
        text("port", |port| Some(port.interface.clone())),
        count("sent", |port| Some(port.tx_frames)),
        count("bytes", |port| Some(port.tx_bytes)),
        count("failed", |port| Some(port.failed_frames)),
        text("measured at", |port| port.measured_at.clone()),
        count("received", |port| port.rx_frames),
        count("bytes", |port| port.rx_bytes),
        count("lost", |port| port.lost_frames),
        count("misdirected", |port| port.misdirected_frames),
    ];
    Tabular::new(columns, LESS).of(ports)
}

pub(super) struct Ports;

impl Section for Ports {
    fn tables(&self, report: &Report, options: Options<'_>) -> Vec<String> {
        vec![table(&report.result.ports).text(options)]
    }

    fn cards(&self, report: &Report) -> String {
        table(&report.result.ports).card("Ports", false)
    }
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
        let table = table(&[sent, measured]).text(Options::default());
        let words =
            |line: usize| table.lines().nth(line).expect("a row").split_whitespace().collect::<Vec<_>>();
        assert_eq!(words(1), ["tx0", "1,000", "0", "0", "-", "-", "-", "-"]);
        assert_eq!(words(2), ["tx1", "1,000", "0", "0", "rx1", "990", "10", "0"]);
        assert_eq!(super::table(&[]).text(Options::default()), "");
    }
}
