//! `netdyno synth`: a capture that looks like an Internet access link.

use crate::cli::{ProfileName, Synth};
use crate::output::note;
use anyhow::{Result, bail};
use capture::{FileFormat, Writer};
use report::units;
use std::path::Path;
use wire::LinkType;

pub fn run(args: Synth) -> Result<u8> {
    let profile = match args.profile {
        ProfileName::Bigflows => ::synth::Profile::BIGFLOWS,
        ProfileName::Smallflows => ::synth::Profile::SMALLFLOWS,
    };
    write(&args.write, profile, args.seed)?;
    note(&format!("wrote {}", describe(&profile, &args.write)));
    Ok(0)
}

/// Writes the capture; it gets its name only when it is whole.
pub fn write(path: &Path, profile: ::synth::Profile, seed: u64) -> Result<()> {
    let mut synth = ::synth::Synth::new(profile, seed)?;
    let mut writer = Writer::create(path, FileFormat::of_name(path), LinkType::ETHERNET)?;
    let stop = crate::client::Signals::heeded()?.stop;
    while let Some((time_ns, frame)) = synth.next() {
        if stop.load(std::sync::atomic::Ordering::Relaxed) {
            bail!("stopped by a signal: {} was not written", path.display());
        }
        writer.write(time_ns, frame, frame.len() as u32)?;
    }
    writer.finish()?;
    Ok(())
}

/// One line about it.
pub fn describe(profile: &::synth::Profile, path: &Path) -> String {
    format!(
        "{}: {}, {}, {}",
        path.display(),
        units::counted(profile.frames, "frame"),
        units::counted(profile.flows, "flow"),
        units::bytes(profile.bytes)
    )
}
