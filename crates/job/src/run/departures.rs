//! What stamps of departing frames say, put into the report.

use super::outcome::Outcome;
use report::{Code, Departures, Distribution, Report};

/// What came back of the stamps that were asked for. None at all is not what was asked for.
pub fn tell(report: &mut Report, run: &Outcome<'_>) {
    let (Some(departures), Some(tx)) = (&run.sent().departures, &mut report.result.tx) else { return };
    let stamped_by = if departures.by_hardware { "hardware" } else { "driver" };
    tx.departures = Some(Departures {
        stamped_by: stamped_by.to_owned(),
        asked_frames: departures.asked,
        stamped_frames: departures.stamped,
        lateness_ns: Distribution::whole(&departures.lateness),
        handing_ns: Distribution::whole(&departures.handing),
        clock_error_ns: departures.error_ns,
    });
    if departures.asked > 0 && departures.stamped == 0 {
        let asked = report::units::counted(departures.asked, "frame");
        report.result.verdict.fall_short(Code::NoTransmitStamps, format!(
            "the {stamped_by} gave no stamp of the {asked} that it was asked to stamp on leaving (`.tx_timestamps`)"
        ));
    }
}
