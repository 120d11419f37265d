//! `netdyno doctor`: what this machine can do, and what to change.

use crate::cli::Doctor;
use crate::output::print;
use crate::place::Place;
use anyhow::Result;
use port::doctor::diagnose;

pub fn run(args: Doctor) -> Result<u8> {
    let diagnosis = match &args.interface {
        None => diagnose(None)?,
        Some(spec) => {
            let place = Place::find(spec)?;
            let name = &place.interface.name;
            place.run_in(|| diagnose(Some(name)))??
        }
    };
    if args.json {
        print(&(serde_json::to_string_pretty(&diagnosis)? + "\n"))?;
    } else {
        print(&(diagnosis.text().trim_end().to_owned() + "\n"))?;
    }
    Ok(0)
}
