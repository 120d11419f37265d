//! What this machine and an interface can do, and what to change: what [`port::doctor`] sees, and whether the kernel takes the
//! programs that jobs need. `netdyno doctor` prints it.

use crate::place::Place;
use anyhow::Result;
use meter::{Meter, MeterError, ProgramError};
use port::doctor::{Area, Diagnosis, Finding, State};

/// Looks at this machine, and at an interface (`IFACE`, or `IFACE@NAMESPACE`). Nothing is changed, and nothing is sent; without
/// privileges it says what it could not see.
///
/// # Errors
/// There is no such interface, or its namespace cannot be entered.
pub fn diagnose(interface: Option<&str>) -> Result<Diagnosis> {
    let mut diagnosis = match interface {
        None => port::doctor::diagnose(None)?,
        Some(spec) => {
            let place = Place::find(spec)?;
            let name = &place.interface.name;
            place.run_in(|| port::doctor::diagnose(Some(name)))??
        }
    };
    // Behind what else is said of the kernel.
    let behind =
        diagnosis.findings.iter().rposition(|finding| finding.area == Area::Kernel).map_or(0, |at| at + 1);
    diagnosis.findings.insert(behind, meter());
    Ok(diagnosis)
}

/// Whether this kernel takes the meter's program: tried, because no version number says it.
fn meter() -> Finding {
    let (state, found, means) = match Meter::loads() {
        Ok(None) => (
            State::Good,
            "loads".to_owned(),
            "counts, loss, order and latency are measured in the driver, where it takes XDP",
        ),
        Ok(Some(why)) => (
            State::Note,
            format!("loads, by a program for older kernels: {why}"),
            "all is measured but frames in several buffers, such as jumbo frames on most drivers",
        ),
        Err(MeterError::Program(ProgramError::Permission { .. })) => (
            State::Unknown,
            "not permitted".to_owned(),
            "without privileges nothing can be measured; with them it is tried",
        ),
        Err(error) => {
            let said = crate::in_full(&error.into());
            let first = said.lines().next().unwrap_or_default().to_owned();
            (
                State::Bad,
                format!("does not load: {first}"),
                "arrivals are measured by a packet socket, which loses some above 1 Mpps",
            )
        }
    };
    let command = (state == State::Unknown).then(|| "sudo netdyno doctor".to_owned());
    Finding { area: Area::Kernel, topic: "meter".to_owned(), state, found, means: means.to_owned(), command }
}
