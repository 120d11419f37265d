//! `netdyno run FILE --every TIME --keep FOLDER`: a job again and again, its results in a folder for `netdyno trend`.
//!
//! Each run is a process of its own, `netdyno run FILE --report FOLDER/TIME`: what one leaves behind, or that it crashes, is nothing to the
//! next. All of them hold the folder's lock, so that a run that outlives us keeps another from beginning.

use crate::cli::Run;
use crate::client::Signals;
use crate::output::note;
use anyhow::{Context, Result, bail};
use report::units::{self, printable};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How often it is looked whether it is time, or over.
const LOOK: Duration = Duration::from_millis(50);
/// In the folder; holds the number of the process that has it.
const LOCK: &str = ".netdyno-lock";
/// Of this command, not of each run.
const OWN: [&str; 3] = ["--every", "--keep", "--times"];

/// Runs the job in a file, which has been looked at, once or again and again.
pub fn run(args: &Run, folder: &Path) -> Result<u8> {
    if args.file.as_os_str() == "-" {
        bail!("--keep: a job from standard input can be read once only: name a file");
    }
    let folder = report::place::resolve_folder(folder)
        .with_context(|| format!("--keep {}", printable(&folder.display().to_string())))?;
    let _lock = lock(&folder)?;
    let signals = Signals::at_once()?;
    let times = if args.every.is_none() { Some(1) } else { args.times };
    let mut due = first(&folder, args.every);
    let (mut status, mut done) = (0, 0_u64);
    while times.is_none_or(|times| done < times) {
        if !wait_until(due, &signals, args.output.quiet) {
            break;
        }
        let begun = Instant::now();
        status = status.max(once(&folder, &signals, args.output.quiet)?);
        done += 1;
        if signals.stop.load(Relaxed) {
            break;
        }
        if let Some(every) = args.every {
            due = next(due, every, SystemTime::now(), begun.elapsed());
        }
    }
    if signals.stop.load(Relaxed) && !args.output.quiet {
        note(&format!("ended after {}", units::counted(done, "run")));
    }
    Ok(status)
}

/// Takes the folder, so that two never keep results in it at once. Runs inherit it.
fn lock(folder: &Path) -> Result<File> {
    let path = folder.join(LOCK);
    let shown = printable(&folder.display().to_string());
    let failed = || format!("--keep {shown}: making it and its lock; name a folder you may write to");
    fs::create_dir_all(folder).with_context(failed)?;
    let mut file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)
        .with_context(failed)?;
    let locked = flock(&file, FlockOperation::NonBlockingLockExclusive);
    if locked.is_err_and(|error| error != Errno::WOULDBLOCK) {
        return locked
            .map(|()| file)
            .context("this file system has no locks, by which two are kept apart: keep results on another")
            .with_context(failed);
    }
    if locked.is_err() {
        let mut holder = String::new();
        let _ = (&mut file).take(20).read_to_string(&mut holder);
        let holder = holder.trim();
        let alive = Path::new("/proc").join(holder).is_dir() && !holder.is_empty();
        let gone = if alive { "" } else { ", which has ended, but not the run that it began" };
        bail!(
            "--keep {shown}: process {} keeps results there already{gone}: wait for its end, or name another folder",
            printable(holder)
        );
    }
    file.set_len(0).with_context(failed)?;
    writeln!(file, "{}", std::process::id()).with_context(failed)?;
    fcntl_setfd(&file, FdFlags::empty()).with_context(failed)?;
    Ok(file)
}

/// When the first run is due: at once, or when the newest in the folder is old enough. What was missed meanwhile is not caught up.
fn first(folder: &Path, every: Option<Duration>) -> SystemTime {
    let now = SystemTime::now();
    let Some(every) = every else { return now };
    let listed = fs::read_dir(folder).into_iter().flatten().flatten();
    let newest = listed.filter_map(|item| begun(item.file_name().to_str()?)).max();
    let Some(newest) = newest.map(|seconds| UNIX_EPOCH + Duration::from_secs(seconds)) else { return now };
    if newest > now + Duration::from_secs(1) {
        note(
            "the newest result in the folder began later than now: a clock went back, or is wrong; the first run begins now",
        );
        return now;
    }
    now.max(newest + every)
}

/// When the run after this one is due: the times keep their distance, and none is begun late. So runs never overlap.
fn next(due: SystemTime, every: Duration, now: SystemTime, took: Duration) -> SystemTime {
    if due > now + Duration::from_secs(1) {
        // The clock was set back while it ran.
        return now + every.saturating_sub(took);
    }
    let behind = now.duration_since(due).unwrap_or_default();
    if behind.as_secs() > 86_400 && took < behind / 2 {
        // The clock was set forward, or this host slept.
        return now + every.saturating_sub(took);
    }
    let passed = u32::try_from(behind.as_nanos() / every.as_nanos().max(1)).unwrap_or(u32::MAX - 1);
    if passed > 0 {
        note(&format!(
            "the run took {}, longer than --every: {} passed over",
            units::time(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX)),
            units::counted(u64::from(passed), "beginning")
        ));
    }
    due + every.saturating_mul(passed + 1)
}

/// False if a signal came first. A clock that is set back does not make it wait longer.
fn wait_until(due: SystemTime, signals: &Signals, quiet: bool) -> bool {
    let (began, ahead) = (Instant::now(), due.duration_since(SystemTime::now()).unwrap_or_default());
    if !quiet && ahead >= Duration::from_secs(1) {
        let at = due.duration_since(UNIX_EPOCH).map_or(0, |at| at.as_secs());
        note(&format!("the next run begins at {}; Ctrl-C ends", trend::show_time(at)));
    }
    while !signals.stop.load(Relaxed) {
        let left = ahead.saturating_sub(began.elapsed());
        if left.is_zero() || SystemTime::now() >= due {
            return true;
        }
        std::thread::sleep(left.min(LOOK));
    }
    false
}

/// One run; its exit status.
fn once(folder: &Path, signals: &Signals, quiet: bool) -> Result<u8> {
    let dir = own_folder(folder, SystemTime::now());
    if !quiet {
        note(&format!("into {}", printable(&dir.display().to_string())));
    }
    let mut child = Command::new("/proc/self/exe")
        .args(words(std::env::args_os().skip(1)))
        .arg("--report")
        .arg(&dir)
        .spawn()
        .context("beginning a run")?;
    let status = await_end(&mut child, signals)?;
    // A run that was not done leaves its folder empty.
    let _ = fs::remove_dir(&dir);
    if status > 1 && !signals.stop.load(Relaxed) {
        note(&format!("the run into {} was not done", printable(&dir.display().to_string())));
    }
    Ok(status)
}

/// Hands on the first signal, which ends the run in an orderly way.
fn await_end(child: &mut Child, signals: &Signals) -> Result<u8> {
    let mut told = false;
    loop {
        if let Some(status) = child.try_wait().context("waiting for a run")? {
            return Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(2).min(2));
        }
        if signals.stop.load(Relaxed) && !told {
            told = true;
            if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                let _ = kill_process(pid, Signal::INT);
            }
        }
        std::thread::sleep(LOOK);
    }
}

/// What was typed, without what is not of a single run.
fn words(typed: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut kept = Vec::new();
    let mut typed = typed.peekable();
    while let Some(word) = typed.next() {
        let text = word.to_string_lossy();
        if OWN.contains(&&*text) {
            typed.next();
        } else if !OWN.iter().any(|own| text.strip_prefix(own).is_some_and(|rest| rest.starts_with('='))) {
            kept.push(word);
        }
    }
    kept
}

/// A folder of this time that is not there yet: `2026-11-28T23-10-42Z`.
fn own_folder(folder: &Path, now: SystemTime) -> PathBuf {
    let seconds = now.duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    let name = trend::show_time(seconds).replace(':', "-");
    let first = folder.join(&name);
    let others = (2..).map(|number| folder.join(format!("{name}-{number}")));
    std::iter::once(first.clone()).chain(others).find(|dir| !dir.exists()).unwrap_or(first)
}

/// When a run began, by the name of its folder.
fn begun(name: &str) -> Option<u64> {
    let (day, rest) = name.split_at_checked(10)?;
    let (clock, _) = rest.split_once('Z')?;
    trend::parse_time(&format!("{day}{}Z", clock.replace('-', ":")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn a_folder_is_named_by_its_time_and_read_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let now = at(1_795_245_166);
        let own = own_folder(folder.path(), now);
        assert_eq!(own.file_name().and_then(|name| name.to_str()), Some("2026-11-21T07-12-46Z"));
        fs::create_dir(&own).expect("made");
        let other = own_folder(folder.path(), now);
        assert!(other.ends_with("2026-11-21T07-12-46Z-2"), "{}", other.display());
        for name in ["2026-11-21T07-12-46Z", "2026-11-21T07-12-46Z-2"] {
            assert_eq!(begun(name), Some(1_795_245_166));
        }
        assert_eq!(
            [begun("result"), begun("2026-11-21"), begun("\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}Z")],
            [None; 3]
        );
    }

    #[test]
    fn times_keep_their_distance_and_none_is_caught_up() {
        let hour = Duration::from_secs(3600);
        let soon = Duration::from_secs(60);
        assert_eq!(next(at(0), hour, at(60), soon), at(3600));
        assert_eq!(next(at(0), hour, at(3600 * 2 + 10), hour * 2 + Duration::from_secs(10)), at(3600 * 3));
        // The clock went back while it ran, or far ahead.
        assert_eq!(next(at(100_000), hour, at(50), soon), at(50 + 3540));
        assert_eq!(next(at(0), hour, at(1_000_000_000), soon), at(1_000_000_000 + 3540));
    }

    #[test]
    fn the_first_run_waits_until_the_newest_is_old_enough() {
        let folder = tempfile::tempdir().expect("a folder");
        let now = SystemTime::now();
        let hour = Duration::from_secs(3600);
        assert!(first(folder.path(), Some(hour)) <= SystemTime::now());
        let ago = |ago: u64| own_folder(folder.path(), now - Duration::from_secs(ago));
        fs::create_dir(ago(7200)).expect("made");
        assert!(first(folder.path(), Some(hour)) <= SystemTime::now());
        fs::create_dir(ago(600)).expect("made");
        let ahead = first(folder.path(), Some(hour)).duration_since(now).expect("later").as_secs();
        assert!((2990..=3001).contains(&ahead), "{ahead}");
        assert!(first(folder.path(), None) <= SystemTime::now());
    }

    #[test]
    fn a_run_has_the_words_that_were_typed_but_for_those_of_the_repetition() {
        let typed =
            ["run", "job.yaml", "--every", "1h", "--keep=out", "--yes-disrupt", "eth1", "--times", "3", "-q"];
        let kept = words(typed.into_iter().map(OsString::from));
        assert_eq!(kept, ["run", "job.yaml", "--yes-disrupt", "eth1", "-q"]);
    }
}
