//! `netdyno counters`: the kernel's counters, now or what changed.

use super::beforeafter::listing;
use crate::cli::counters::Counters;
use crate::cli::mistyped::everyday;
use crate::client::Signals;
use crate::output::{note, print};
use anyhow::{Context, Result, bail};
use capture::AtomicFile;
use counters::{Difference, Snapshot, difference};
use job::counted::Places;
use report::{kernel_counters, units};
use rustix::process::{Pid, Signal, kill_process};
use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Signals and the end of a command are looked for this often.
const LOOK: Duration = Duration::from_millis(2);
/// A command that the terminal's Ctrl-C reached has so long to end by itself.
const GRACE: Duration = Duration::from_millis(500);

pub fn run(args: &Counters) -> Result<u8> {
    // A command without what goes before it was read as files.
    if let Some(first) = args.files.first().filter(|file| file.as_os_str() != "-" && !file.exists()) {
        if let [_] = &args.files[..]
            && let Some(told) = first.to_str().filter(|word| !everyday::is_command(word))
            && let Some(line) = everyday::of_line(&crate::hints::typed())
        {
            bail!("{told} is no file and no command; an interface is an option: {line}");
        }
        bail!(
            "{}: No such file or directory; a command stands behind `--`: netdyno counters -- {}",
            first.display(),
            args.files
                .iter()
                .map(|word| units::shell_word(&word.to_string_lossy()).to_string())
                .collect::<Vec<_>>()
                .join(" ")
        );
    }
    if let [before, after] = &args.files[..] {
        let (before, after) = (read(before)?, read(after)?);
        show(&difference(&before, &after)?, args.json)?;
        return Ok(0);
    }
    if !args.files.is_empty() {
        bail!(
            "one snapshot: give two, the earlier one first; without files the counters are shown as they are now"
        );
    }
    let places = Places::find(&args.interfaces)?;
    if let Some(interval) = args.interval {
        return watch(&places, interval, args.json);
    }
    if !args.command.is_empty() {
        let before = places.look()?;
        let status = run_command(&args.command)?;
        show(&difference(&before, &places.look()?)?, args.json)?;
        if !status.success() {
            note(&format!("the command failed: {status}"));
        }
        return Ok(u8::from(!status.success()));
    }
    let now = places.look()?;
    if let Some(path) = &args.write {
        write(path, &now.to_json())?;
    }
    if args.json {
        print(&now.to_json())?;
    } else if args.write.is_none() {
        print(&kernel_counters::snapshot(&now))?;
    }
    Ok(0)
}

fn read(path: &Path) -> Result<Snapshot> {
    let text = listing(path)?;
    Snapshot::from_json(&text).with_context(|| format!("reading {}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<()> {
    let writing = || format!("writing {}", path.display());
    let mut file = AtomicFile::create(path).with_context(writing)?;
    file.write_all(text.as_bytes()).with_context(writing)?;
    file.finish().with_context(writing)
}

fn show(found: &Difference, json: bool) -> Result<()> {
    print(&if json { found.to_json() } else { kernel_counters::render(found) })
}

/// Prints what changes, until a signal.
fn watch(places: &Places, interval: Duration, json: bool) -> Result<u8> {
    if interval < Duration::from_millis(10) {
        bail!("--interval: 10 ms are the least");
    }
    let signals = Signals::at_once()?;
    let mut before = places.look()?;
    let mut next = Instant::now() + interval;
    loop {
        while Instant::now() < next && !signals.stop.load(Relaxed) {
            std::thread::sleep(next.saturating_duration_since(Instant::now()).min(LOOK * 5));
        }
        let now = places.look()?;
        let found = difference(&before, &now)?;
        print(&if json { found.to_json_line() } else { kernel_counters::render(&found) + "\n" })?;
        if signals.stop.load(Relaxed) {
            return Ok(0);
        }
        before = now;
        next += interval;
    }
}

/// Runs a command. A signal to end that the command survives ends it, and what changed is shown all the same.
pub(super) fn run_command(words: &[std::ffi::OsString]) -> Result<ExitStatus> {
    let signals = Signals::at_once()?;
    let (program, arguments) = words.split_first().context("which command?")?;
    if program.to_str().is_some_and(|word| !everyday::is_command(word)) {
        bail!("there is no command {}; an interface is --on IFACE", program.display());
    }
    let starting = || format!("running {}", program.display());
    let mut child = Command::new(program).args(arguments).spawn().with_context(starting)?;
    let mut since = None;
    loop {
        if let Some(status) = child.try_wait().with_context(starting)? {
            return Ok(status);
        }
        if signals.stop.load(Relaxed) {
            let first = *since.get_or_insert_with(Instant::now);
            if first.elapsed() > GRACE {
                let _ = kill_process(Pid::from_child(&child), Signal::TERM);
                since = Some(Instant::now());
            }
        }
        std::thread::sleep(LOOK);
    }
}
