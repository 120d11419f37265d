//! When frames left, by the time stamps of the interface, as the result has it.

use super::Outcome;
use report::{Departures, Distribution, Report};

/// Puts it into the result, where stamps were asked for.
pub fn fill(report: &mut Report, run: &Outcome<'_>) {
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
}
