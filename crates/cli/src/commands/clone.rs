//! `netdyno clone`: a job like others, and its doctor.

use crate::cli::clone::{Clone, Doctor, Verb};
use crate::client::Signals;
use crate::output::print;
use crate::wording;
use anyhow::Result;

/// Runs it; returns the exit status.
pub fn run(args: Clone) -> Result<u8> {
    match args.verb {
        Some(Verb::Doctor(args)) => doctor(args),
        None => super::jobs::typed(args.job()),
    }
}

fn doctor(args: Doctor) -> Result<u8> {
    let json = args.json;
    let signals = Signals::heeded()?;
    let found = job::diagnose_clone(&args.job(), &signals.stop)?;
    let text = if json { serde_json::to_string_pretty(&found)? + "\n" } else { found.text() };
    print(&wording::said(&text))?;
    Ok(u8::from(!found.is_well()))
}
