//! The closing block as tcpreplay's users and their scripts know it: `Actual:`, `Rated:`, `Flows:`, `Statistics
//! for network device`. Layout and integer arithmetic (truncated, never rounded) are that tool's; the figures
//! are the report's.

use std::fmt::Write;

use crate::data::model::{Report, Totals, Tx, TxInterface};
use crate::data::units::printable;

/// Empty when nothing was sent by us (no `result.tx`).
pub fn render(report: &Report) -> String {
    let Some(tx) = &report.result.tx else { return String::new() };
    let mut out = totals(&tx.totals);
    // Writing to a String cannot fail.
    write_block(&mut out, report, tx).unwrap_or_default();
    out
}

/// Its first two lines, as that tool also prints them during a run.
pub fn totals(t: &Totals) -> String {
    let mut out = String::new();
    write_totals(&mut out, t).unwrap_or_default();
    out
}

fn per_second(t: &Totals, quantity: u128, digits: u32) -> String {
    ratio(quantity * 1_000_000_000, t.duration_ns.into(), digits)
}

fn write_totals(out: &mut String, t: &Totals) -> std::fmt::Result {
    let bits = u128::from(t.bytes) * 8;
    let mbps_digits = if bits * 1000 < u128::from(t.duration_ns) { 3 } else { 2 };
    let seconds_digits = if t.duration_ns >= 1_000_000_000 { 2 } else { 6 };
    let seconds = ratio(t.duration_ns.into(), 1_000_000_000, seconds_digits);
    writeln!(out, "Actual: {} packets ({} bytes) sent in {seconds} seconds", t.frames, t.bytes)?;
    writeln!(
        out,
        "Rated: {} Bps, {} Mbps, {} pps",
        per_second(t, t.bytes.into(), 1),
        ratio(bits * 1000, t.duration_ns.into(), mbps_digits),
        per_second(t, t.frames.into(), 2),
    )
}

fn write_block(out: &mut String, report: &Report, tx: &Tx) -> std::fmt::Result {
    let t = &tx.totals;
    if tx.failed != 0 {
        writeln!(out, "Failed write attempts: {}", tx.failed)?;
    }
    if let Some(f) = &report.result.flows {
        let expired = f.expired.map_or(String::new(), |expired| {
            format!(" {} unique, {expired} expired,", f.flows.saturating_sub(expired))
        });
        writeln!(
            out,
            "Flows: {} flows,{expired} {} fps, {} unique flow packets, {} unique non-flow packets",
            f.flows,
            per_second(t, f.flows.into(), 2),
            f.flow_frames,
            f.non_flow_frames,
        )?;
    }
    if tx.interfaces.is_empty() {
        let device = report.resolved.interfaces.first().unwrap_or(&tx.engine).clone();
        return write_device(
            out,
            &TxInterface {
                interface: device,
                frames: t.frames,
                failed: tx.failed,
                truncated: tx.truncated,
                retried_enobufs: tx.retried_enobufs,
                retried_eagain: tx.retried_eagain,
                ..TxInterface::default()
            },
        );
    }
    tx.interfaces.iter().try_for_each(|device| write_device(out, device))
}

fn write_device(out: &mut String, device: &TxInterface) -> std::fmt::Result {
    writeln!(out, "Statistics for network device: {}", printable(&device.interface))?;
    let mut line = |label: &str, value: u64| writeln!(out, "\t{label:<26} {value}");
    line("Successful packets:", device.frames)?;
    line("Failed packets:", device.failed)?;
    line("Truncated packets:", device.truncated)?;
    line("Retried packets (ENOBUFS):", device.retried_enobufs)?;
    line("Retried packets (EAGAIN):", device.retried_eagain)?;
    let (Some(flows), Some(flow_frames)) = (device.flows, device.flow_frames) else { return Ok(()) };
    line("Flows total:", flows)?;
    // Nothing expires here, so each flow is one.
    line("Flows unique:", flows)?;
    line("Flows expired:", 0)?;
    line("Flow packets:", flow_frames)?;
    line("Non-flow packets:", device.frames.saturating_sub(flow_frames))?;
    line("Invalid flow packets:", 0)
}

/// `a / b` with so many digits after the point, truncated; 0 when `b` is 0.
fn ratio(a: u128, b: u128, digits: u32) -> String {
    let one = 10u128.pow(digits);
    let scaled = (a * one).checked_div(b).unwrap_or(0);
    format!("{}.{:0width$}", scaled / one, scaled % one, width = digits as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::model::Flows;

    fn block(frames: u64, bytes: u64, duration_ns: u64, flows: u64) -> String {
        let mut report = Report::new("replay");
        report.resolved.interfaces = vec!["ens17".into()];
        report.result.tx = Some(Tx { totals: Totals::over(frames, bytes, duration_ns), ..Tx::default() });
        report.result.flows = Some(Flows::over(flows, frames, 0, duration_ns));
        render(&report)
    }

    // The expected lines of these tests were printed by tcpreplay 4.4.

    #[test]
    fn a_long_run_reads_as_published() {
        let text = block(322_555_000, 25_159_290_000, 201_274_000_000, 64_511);
        let head = "Actual: 322555000 packets (25159290000 bytes) sent in 201.27 seconds\n\
                    Rated: 125000198.7 Bps, 1000.00 Mbps, 1602566.65 pps\n\
                    Flows: 64511 flows, 320.51 fps, ";
        assert!(text.starts_with(head), "{text}");
    }

    #[test]
    fn a_run_under_a_second_shows_microseconds() {
        let text = block(792, 105_438, 1_650_000, 4);
        let head = "Actual: 792 packets (105438 bytes) sent in 0.001650 seconds\n\
                    Rated: 63901818.1 Bps, 511.21 Mbps, 480000.00 pps\n\
                    Flows: 4 flows, 2424.24 fps, 792 unique flow packets, 0 unique non-flow packets\n\
                    Statistics for network device: ens17\n\
                    \tSuccessful packets:        792\n\
                    \tFailed packets:            0\n";
        assert!(text.starts_with(head), "{text}");
    }

    #[test]
    fn a_slow_run_shows_three_digits_of_a_megabit() {
        let text = block(4, 393, 1_500_300_000, 2);
        assert!(text.contains("sent in 1.50 seconds\nRated: 261.9 Bps, 0.002 Mbps, 2.66 pps\n"), "{text}");
        assert!(text.contains("Flows: 2 flows, 1.33 fps, "), "{text}");
    }

    #[test]
    fn two_interfaces_have_a_block_each() {
        let mut report = Report::new("replay");
        let side = |interface: &str, frames, flow_frames| TxInterface {
            interface: interface.into(),
            frames,
            flows: Some(5),
            flow_frames: Some(flow_frames),
            ..TxInterface::default()
        };
        let interfaces = vec![side("eth1", 10, 10), side("eth2", 20, 18)];
        report.result.tx = Some(Tx { interfaces, ..Tx::default() });
        let text = render(&report);
        let second = "Statistics for network device: eth2\n\
                      \tSuccessful packets:        20\n\tFailed packets:            0\n\
                      \tTruncated packets:         0\n\tRetried packets (ENOBUFS): 0\n\
                      \tRetried packets (EAGAIN):  0\n\tFlows total:               5\n\
                      \tFlows unique:              5\n\tFlows expired:             0\n\
                      \tFlow packets:              18\n\tNon-flow packets:          2\n\
                      \tInvalid flow packets:      0\n";
        assert!(text.contains("Statistics for network device: eth1\n") && text.ends_with(second), "{text}");
    }

    #[test]
    fn failures_are_named_and_no_time_is_no_rate() {
        let mut report = Report::new("replay");
        report.result.tx = Some(Tx { failed: 3, engine: "null".into(), ..Tx::default() });
        let text = render(&report);
        assert!(text.contains("Rated: 0.0 Bps, 0.00 Mbps, 0.00 pps\nFailed write attempts: 3\n"), "{text}");
        assert!(text.contains("Statistics for network device: null\n"), "{text}");
        assert!(!text.contains("Flows:"), "{text}");
        report.result.tx = Some(Tx { totals: Totals::over(u64::MAX, u64::MAX, 1), ..Tx::default() });
        assert!(render(&report).contains("18446744073709551615000000000.00 pps"));
    }
}
