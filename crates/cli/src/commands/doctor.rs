//! `netdyno doctor`: what this machine can do, and what to change.

use crate::cli::Doctor;
use crate::features;
use crate::output::print;
use crate::wording;
use anyhow::Result;
use job::place::Place;
use meter::{Meter, MeterError, ProgramError};
use port::doctor::{Area, Finding, State, diagnose};

pub fn run(args: Doctor) -> Result<u8> {
    if args.calibrate {
        return super::calibrate::run(&args);
    }
    let mut diagnosis = match &args.interface {
        None => diagnose(None)?,
        Some(spec) => {
            let place = Place::find(spec)?;
            let name = &place.interface.name;
            place.run_in(|| diagnose(Some(name)))??
        }
    };
    // Behind what else is said of the kernel.
    let behind =
        diagnosis.findings.iter().rposition(|finding| finding.area == Area::Kernel).map_or(0, |at| at + 1);
    diagnosis.findings.insert(behind, meter());
    diagnosis.findings.insert(0, program());
    if args.json {
        print(&wording::said(&(serde_json::to_string_pretty(&diagnosis)? + "\n")))?;
    } else {
        print(&wording::said(&(diagnosis.text().trim_end().to_owned() + "\n")))?;
    }
    Ok(0)
}

/// What this netdyno was built with.
fn program() -> Finding {
    let (found, whole) = features::found();
    let (state, means) = match whole {
        true => (State::Good, "nothing that it can have was left out of it"),
        false => (
            State::Note,
            "what was left out is an error where it is asked for; in a clone of netdyno's repository this builds it",
        ),
    };
    let command = (!whole).then(|| "make build".to_owned());
    Finding { area: Area::Program, topic: "built".to_owned(), state, found, means: means.to_owned(), command }
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
            let said = job::in_full(&error.into());
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
