//! `netdyno clone`: a job like others, its doctor, captures for a clone on another host, and their keys.

use crate::cli::clone::{Capture, Clone, Doctor, Verb};
use crate::client::Signals;
use crate::output::{note, print};
use crate::wording;
use anyhow::Result;

/// Runs it; returns the exit status.
pub fn run(args: Clone) -> Result<u8> {
    match args.verb {
        Some(Verb::Doctor(args)) => doctor(args),
        Some(Verb::Capture(args)) => capture(args),
        Some(Verb::Key { file }) => {
            job::make_clone_key(&file)?;
            note(&format!(
                "{} is a new key: copy it to the other host, for its owner alone to read (scp -p)",
                file.display()
            ));
            Ok(0)
        }
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

fn capture(args: Capture) -> Result<u8> {
    let json = args.json;
    let forwarding = args.forwarding()?;
    let signals = Signals::heeded()?;
    let forwarded = job::forward_to_clone(&forwarding, &signals.stop, &|said| note(&wording::said(said)))?;
    let text = if json { serde_json::to_string_pretty(&forwarded)? + "\n" } else { forwarded.text() };
    print(&wording::said(&text))?;
    Ok(u8::from(!forwarded.is_whole()))
}
