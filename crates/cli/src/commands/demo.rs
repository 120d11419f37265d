//! `netdyno demo`: the main job, with nothing to set up.

use super::synth;
use crate::cli::{Demo, Output};
use crate::client::{Line, Signals, attend};
use crate::output::{conclude, note};
use ::lab::{Lab, Located};
use ::synth::Profile;
use anyhow::{Context, Result, bail};
use job::kinds::replay::Settings;
use job::kinds::shared::Pace;
use job::kinds::{replay, shared};
use job::place::Place;
use spec::{Consent, How, Oversize, Timestamps};
use std::fs::File;
use std::num::NonZeroU64;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The seed of the capture: the same on every machine.
const SEED: u64 = 1;
/// The usual capture takes twice its 368 MB: as it was read, and where the kernel reads it. With less to spare than this a small
/// one has to do, before the kernel ends us for want of memory.
const ENOUGH_MEMORY: u64 = 1 << 30;

/// What a capture takes beside its frames: a record's header for each, and its own.
const RECORD_HEADER: u64 = 16;
const FILE_HEADER: u64 = 24;

pub fn run(args: Demo) -> Result<u8> {
    // From before anything is said or made on: who sees a line may end us.
    let signals = Signals::handle(args.gauges.tui)?;
    // First, what fails at once if it does.
    let lab = Lab::two_hosts(&::lab::Options::default())?;
    let say = |text: &str| {
        if !args.quiet {
            note(text);
        }
    };
    let available = engine::memory::available();
    let (name, profile, like) = match available >= ENOUGH_MEMORY {
        true => ("bigflows", Profile::BIGFLOWS, "bigFlows.pcap"),
        false => ("smallflows", Profile::SMALLFLOWS, "smallFlows.pcap"),
    };
    let planned = match &args.capture {
        Some(file) => Planned::There(file.clone()),
        None => Planned::of(name, &profile, args.keep)?,
    };
    report::prepare_dir(&args.report)?;
    say("lab: two hosts joined by a cable, tx0 -> rx0 (network namespaces, gone when this ends)");
    if args.capture.is_none() && available < ENOUGH_MEMORY {
        say(&format!(
            "capture: a small one, because {} MB of memory are free, and the usual one takes about {} MB",
            available >> 20,
            ENOUGH_MEMORY >> 20
        ));
    }
    signals.deaf.store(false, Relaxed);
    if args.capture.is_none() {
        say(&format!("capture: {}", planned.said(&profile)));
    }
    let Capture { path: file, open } = planned.made(profile, &signals.stop)?;
    signals.deaf.store(true, Relaxed);
    if signals.stop.load(Relaxed) {
        bail!("stopped by a signal");
    }
    say(&format!(
        "replay: preloaded, looped with new addresses each time, at {} for {}",
        args.rate,
        report::units::time(args.duration.as_nanos() as u64)
    ));
    let at = |host: &::lab::Host| -> Result<Place> {
        let namespace = Some(host.namespace.try_clone()?);
        Place::at(host.interface.to_owned(), Located { namespace, name: host.interface.to_owned() })
    };
    let output = Output {
        json: args.json,
        report: Some(args.report.clone()),
        quiet: args.quiet,
        verbose: args.verbose,
        gauges: args.gauges.clone(),
        ..Output::default()
    };
    let replayed = Settings {
        interface: Some(lab.sender.interface.to_owned()),
        pace: Pace { rate: Some(args.rate), duration: Some(args.duration), ..Pace::default() },
        preload: true,
        unique_every: Some(NonZeroU64::MIN),
        sign: true,
        oversize: if args.capture.is_some() { Oversize::Skip } else { Oversize::Refuse },
        skip_corrupt: args.capture.is_some(),
        name: args.capture.is_none().then(|| name.to_owned()),
        ..Settings::of(vec![file])
    };
    let rx = shared::with_meter(at(&lab.receiver)?, (How::Auto, Timestamps::Software), true)?;
    let sender = at(&lab.sender)?;
    let session = signals.session(Consent::default(), None);
    let ends = (vec![sender], vec![rx]);
    let run = |session| replay::replay("demo", replayed, ends, session);
    let mut report = attend(&output, Line::Shown, session, |session| job::spawn(session, run))?;
    // Its room is free before the report is written.
    drop(open);
    report.command_line = crate::output::command_line();
    if args.capture.is_none() {
        report.resolved.source = Some(report::Source::Synthetic {
            description: format!("an Internet access link with the published totals of {like}"),
        });
        report.resolved.seed = Some(SEED);
    }
    conclude(&report, &output, true)
}

/// A capture that can be read.
struct Capture {
    path: PathBuf,
    /// One without a name lasts as long as this.
    open: Option<File>,
}

/// Where the capture comes from, and what becomes of it.
enum Planned {
    /// It is there: the user's own, or one that an earlier demo kept.
    There(PathBuf),
    /// It is made, under this name.
    Kept(PathBuf),
    /// It is made in this folder, and gone when this process is.
    Passing(PathBuf),
}

impl Planned {
    /// The synthesised capture; fails if there is no room to make it.
    fn of(name: &str, profile: &Profile, keep: bool) -> Result<Planned> {
        let cache = cache();
        let file = cache.join(format!("{name}-{}-{SEED}.pcap", ::synth::GENERATION));
        if file.is_file() {
            return Ok(Planned::There(file));
        }
        let (folder, elsewhere) = if keep { (cache, "XDG_CACHE_HOME") } else { (passing(), "TMPDIR") };
        let (needed, free) = (size(profile), room(&folder)?);
        if free.is_some_and(|free| free < needed) {
            bail!(
                "the capture of the demo takes {}, and {} has {} free: free some, name another folder in {elsewhere}, or give --capture FILE",
                report::units::bytes(needed),
                folder.display(),
                report::units::bytes(free.unwrap_or(0)),
            );
        }
        Ok(if keep { Planned::Kept(file) } else { Planned::Passing(folder) })
    }

    /// What is done, before it is: a user should know beforehand where how much is written.
    fn said(&self, profile: &Profile) -> String {
        let holds = format!(
            "{}, {}",
            report::units::counted(profile.frames, "frame"),
            report::units::counted(profile.flows, "flow")
        );
        let takes = report::units::bytes(size(profile));
        match self {
            Planned::There(file) => format!("{}: {holds} (kept from an earlier run)", file.display()),
            Planned::Kept(file) => {
                format!(
                    "synthesising an Internet access link: {holds}; {takes} in {}, which is kept",
                    file.display()
                )
            }
            Planned::Passing(folder) => format!(
                "synthesising an Internet access link: {holds}; {takes} in {}, until this ends (--keep keeps it)",
                folder.display()
            ),
        }
    }

    /// Makes it, where it is not there.
    fn made(self, profile: Profile, stop: &AtomicBool) -> Result<Capture> {
        match self {
            Planned::There(path) => Ok(Capture { path, open: None }),
            Planned::Kept(path) => {
                if let Some(folder) = path.parent() {
                    std::fs::create_dir_all(folder).with_context(|| {
                        format!("making {} (set XDG_CACHE_HOME to keep it elsewhere)", folder.display())
                    })?;
                }
                synth::write(&path, profile, SEED, stop)?;
                Ok(Capture { path, open: None })
            }
            Planned::Passing(folder) => {
                let file = synth::nameless(&folder, profile, SEED, stop)?;
                // Read by who knows paths: a path to what has no name of its own (proc_pid_fd(5)).
                let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
                Ok(Capture { path, open: Some(file) })
            }
        }
    }
}

/// Where captures are kept.
fn cache() -> PathBuf {
    std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")))
        .unwrap_or_else(std::env::temp_dir)
        .join("netdyno")
}

/// Where one is that is not kept: /tmp is memory on many hosts, and memory is what the demo needs for other things.
fn passing() -> PathBuf {
    let on_disk = || Some(PathBuf::from("/var/tmp")).filter(|folder| folder.is_dir());
    match std::env::var_os("TMPDIR").filter(|folder| !folder.is_empty()) {
        Some(folder) => PathBuf::from(folder),
        None => on_disk().unwrap_or_else(std::env::temp_dir),
    }
}

/// Bytes of the file.
fn size(profile: &Profile) -> u64 {
    profile.bytes + profile.frames * RECORD_HEADER + FILE_HEADER
}

/// Bytes that may be written below `folder`, which need not be there yet. `None` where nobody counts them (ramfs).
fn room(folder: &Path) -> Result<Option<u64>> {
    let Some(there) = folder.ancestors().find(|folder| folder.is_dir()) else { return Ok(None) };
    let stat =
        rustix::fs::statvfs(there).with_context(|| format!("asking for the room in {}", there.display()))?;
    Ok((stat.f_blocks > 0).then(|| stat.f_bavail.saturating_mul(stat.f_frsize)))
}
