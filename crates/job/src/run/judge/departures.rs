//! Whether departing frames were stamped, where that was asked for.

use report::{Code, Report, units};

/// No stamp at all is not what was asked for.
pub fn judge(report: &mut Report) {
    let departures = report.result.tx.as_ref().and_then(|tx| tx.departures.as_ref());
    let none = departures.filter(|d| d.asked_frames > 0 && d.stamped_frames == 0);
    if let Some(d) = none {
        let said = format!(
            "the {} gave no stamp of the {} that it was asked to stamp on leaving (`.tx_timestamps`)",
            d.stamped_by,
            units::counted(d.asked_frames, "frame")
        );
        report.result.verdict.fall_short(Code::NoTransmitStamps, said);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use report::{Departures, Tx};

    #[test]
    fn a_run_without_a_single_stamp_falls_short_and_one_with_some_does_not() {
        let judged = |asked_frames, stamped_frames| {
            let stamped_by = "hardware".to_owned();
            let departures = Departures { stamped_by, asked_frames, stamped_frames, ..Departures::default() };
            let mut report = Report::new("send");
            report.result.tx = Some(Tx { departures: Some(departures), ..Tx::default() });
            judge(&mut report);
            report.result.verdict.reasons().iter().map(|reason| reason.code).collect::<Vec<_>>()
        };
        assert_eq!(judged(10, 0), [Code::NoTransmitStamps]);
        assert_eq!([judged(10, 1), judged(0, 0)], [[], []]);
    }
}
