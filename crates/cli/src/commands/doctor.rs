//! `netdyno doctor`: what this machine can do, and what to change.

use crate::cli::Doctor;
use crate::features;
use crate::output::print;
use crate::wording;
use anyhow::Result;
use job::doctor::diagnose;
use port::doctor::{Area, Finding, State};

pub fn run(args: Doctor) -> Result<u8> {
    if args.calibrate {
        return super::calibrate::run(&args);
    }
    let mut diagnosis = diagnose(args.interface.as_deref())?;
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
