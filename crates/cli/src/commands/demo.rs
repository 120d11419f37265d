//! `netdyno demo`: the main job, with nothing to set up.

use super::synth;
use crate::cli::{Demo, Output};
use crate::client::{Line, Signals, attend};
use crate::output::{conclude, note};
use ::lab::{Lab, Located};
use ::synth::Profile;
use anyhow::{Context, Result};
use job::kinds::replay::Settings;
use job::kinds::shared::Pace;
use job::kinds::{replay, shared};
use job::place::Place;
use spec::{Consent, How, Oversize, Timestamps};
use std::num::NonZeroU64;
use std::path::PathBuf;

/// The seed of the capture: the same on every machine.
const SEED: u64 = 1;
/// The usual capture takes twice its 368 MB: as it was read, and where the kernel reads it. With less to spare than this a small
/// one has to do, before the kernel ends us for want of memory.
const ENOUGH_MEMORY: u64 = 1 << 30;

pub fn run(args: Demo) -> Result<u8> {
    // First, what fails at once if it does.
    let lab = Lab::two_hosts(&::lab::Options::default())?;
    report::prepare_dir(&args.report)?;
    let say = |text: &str| {
        if !args.quiet {
            note(text);
        }
    };
    say("lab: two hosts joined by a cable, tx0 -> rx0 (network namespaces, gone when this ends)");
    let available = engine::memory::available();
    let (name, profile, like) = match available >= ENOUGH_MEMORY {
        true => ("bigflows", Profile::BIGFLOWS, "bigFlows.pcap"),
        false => ("smallflows", Profile::SMALLFLOWS, "smallFlows.pcap"),
    };
    if args.capture.is_none() && available < ENOUGH_MEMORY {
        say(&format!(
            "capture: a small one, because {} MB of memory are free, and the usual one takes about {} MB",
            available >> 20,
            ENOUGH_MEMORY >> 20
        ));
    }
    let file = match &args.capture {
        Some(file) => file.clone(),
        None => {
            let (file, made) = cached(&profile, name, &say)?;
            let from = if made { "made" } else { "kept from an earlier run" };
            say(&format!("capture: {} ({from})", synth::describe(&profile, &file)));
            file
        }
    };
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
        ..Settings::of(vec![file])
    };
    let rx = shared::with_meter(at(&lab.receiver)?, (How::Auto, Timestamps::Software), true)?;
    let sender = at(&lab.sender)?;
    let session = Signals::handle(output.gauges.tui)?.session(Consent::default(), None);
    let ends = (vec![sender], vec![rx]);
    let run = |session| replay::replay("demo", replayed, ends, session);
    let mut report = attend(&output, Line::Shown, session, |session| job::spawn(session, run))?;
    report.command_line = crate::output::command_line();
    if args.capture.is_none() {
        report.resolved.source = Some(report::Source::Synthetic {
            description: format!("an Internet access link with the published totals of {like}"),
        });
        report.resolved.seed = Some(SEED);
    }
    conclude(&report, &output, true)
}

/// The synthesised capture, made once and kept. Says whether it was made now.
fn cached(profile: &Profile, name: &str, say: &dyn Fn(&str)) -> Result<(PathBuf, bool)> {
    let cache = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")))
        .unwrap_or_else(std::env::temp_dir)
        .join("netdyno");
    let file = cache.join(format!("{name}-{}-{SEED}.pcap", ::synth::GENERATION));
    if file.is_file() {
        return Ok((file, false));
    }
    say("capture: synthesising an Internet access link (once; it is kept)");
    std::fs::create_dir_all(&cache)
        .with_context(|| format!("making {} (set XDG_CACHE_HOME to keep it elsewhere)", cache.display()))?;
    synth::write(&file, *profile, SEED)?;
    Ok((file, true))
}
