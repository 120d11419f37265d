//! `netdyno clone`: a job like others, as are captures for a clone on another host and the return agent at its target; its doctor, its keys, and
//! what cleans up behind a return agent.

use crate::cli::clone::{Clone, Doctor, Return, Verb};
use crate::client::Signals;
use crate::output::{note, print};
use crate::wording;
use anyhow::{Context, Result};
use std::io::Read as _;
use std::time::Duration;
use steer::Cleaned;

/// Runs it; returns the exit status.
pub fn run(args: Clone) -> Result<u8> {
    match args.verb {
        Some(Verb::Doctor(args)) => doctor(*args),
        Some(Verb::Capture(args)) => super::jobs::typed(args.declared.job()),
        Some(Verb::Key { file }) => {
            job::make_clone_key(&file)?;
            note(&format!(
                "{} is a new key: copy it to the other host, for its owner alone to read (scp -p)",
                file.display()
            ));
            Ok(0)
        }
        Some(Verb::Return(args)) if args.clean => clean(&args),
        Some(Verb::Return(args)) => super::jobs::typed(args.declared.job()),
        None => super::jobs::typed(args.declared.job()),
    }
}

fn doctor(args: Doctor) -> Result<u8> {
    let json = args.json;
    let signals = Signals::at_once()?;
    let found = job::diagnose_clone(&args.asked.0, &signals.stop)?;
    let text = if json { serde_json::to_string_pretty(&found)? + "\n" } else { found.text() };
    print(&wording::said(&text))?;
    Ok(u8::from(!found.is_well()))
}

/// Sockets have so long to go.
const PATIENCE: Duration = Duration::from_secs(5);
/// The same once nobody waits.
const PATIENCE_ALONE: Duration = Duration::from_secs(3600);

/// Takes away what an agent left.
fn clean(args: &Return) -> Result<u8> {
    if args.when_alone {
        // Ends when the agent does, however that is.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
    }
    let patience = if args.when_alone { PATIENCE_ALONE } else { PATIENCE };
    let done =
        steer::clean(patience, args.force).context("taking the return agent's filters away (run as root)")?;
    if !args.when_alone {
        print(&cleaned(&done))?;
    }
    Ok(u8::from(done.left.is_some()))
}

fn cleaned(done: &Cleaned) -> String {
    let left = done.left.as_ref().map_or_else(String::new, |why| {
        format!("answers to clients are still kept back by filters that stay: {why}; then: netdyno clone return --clean\n")
    });
    let [filters, sockets] = [(done.filters, "filter"), (done.ended, "socket")]
        .map(|(count, what)| report::units::counted(count, what));
    format!("{filters} taken away, {sockets} of copies ended\n{left}")
}

/// What cleans up behind a return agent when its process is gone ([`job::Session::guardian`]).
pub fn guardian() -> Vec<String> {
    ["/proc/self/exe", "clone", "return", "--clean", "--when-alone"].map(str::to_owned).to_vec()
}
