//! `netdyno drops`: what the kernel drops, and why, while a command runs or for a time.

use super::counters::run_command;
use crate::cli::drops::Drops;
use crate::client::Signals;
use crate::output::{note, print};
use anyhow::Result;
use job::dropped::Looking;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Signals are looked for this often.
const LOOK: Duration = Duration::from_millis(10);

pub fn run(args: &Drops) -> Result<u8> {
    let looking = Looking::start(args.on.as_deref())?;
    let status = match args.command.is_empty() {
        true => wait(args)?,
        false => Some(run_command(&args.command)?),
    };
    let mut found = looking.look()?;
    if let Some(filter) = &args.filter {
        filter.apply(&mut found);
    }
    found.command_status = status.and_then(|status| status.code());
    print(&if args.json { found.to_json()? } else { report::drops::render(&found) })?;
    let failed = status.filter(|status| !status.success());
    if let Some(status) = failed {
        note(&format!("the command failed: {status}"));
    }
    Ok(u8::from(failed.is_some()))
}

/// Until the time is over, or a signal.
fn wait(args: &Drops) -> Result<Option<std::process::ExitStatus>> {
    let signals = Signals::at_once()?;
    let end = args.duration.map(|duration| Instant::now() + duration);
    if end.is_none() {
        note("looking at what the kernel drops; Ctrl-C ends it and shows what there was");
    }
    while !signals.stop.load(Relaxed) && end.is_none_or(|end| Instant::now() < end) {
        std::thread::sleep(LOOK);
    }
    Ok(None)
}
