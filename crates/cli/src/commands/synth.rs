//! `netdyno synth`: a capture that looks like an Internet access link, or like another capture.

use crate::cli::Synth;
use crate::output::{note, print};
use ::synth::Profile;
use ::synth::like::{Agreement, FlowProfile, Like};
use anyhow::{Context, Result, bail};
use capture::{AtomicFile, FileFormat, Reader, Writer};
use job::synthesis::{self, Measured};
use report::units;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use wire::LinkType;

/// Longest file of a profile: several times what a measured one has.
const MAX_PROFILE: u64 = 64 << 20;

pub fn run(args: Synth) -> Result<u8> {
    let stop = crate::client::Signals::at_once()?.stop;
    let profile = match (&args.like, Profile::named(&args.profile)) {
        (None, Some(profile)) => return named(&args, profile),
        (None, None) => read(&args.profile)?,
        (Some(path), _) => {
            let mut reader = Reader::open(path)?;
            if args.skip_corrupt {
                reader = reader.lenient();
            }
            let profile = measure(&mut reader, &stop)?;
            if let Some(to) = &args.write_profile {
                keep(&profile, to).with_context(|| format!("writing {}", to.display()))?;
                note(&format!("wrote the statistics of {} to {}", path.display(), to.display()));
            }
            profile
        }
    };
    let Some(path) = &args.write else { return Ok(0) };
    let bounds = profile.bounds();
    let mut like = Like::new(profile, args.seed)?;
    synthesis::write(path, &mut like, &stop)?;
    if path.as_os_str() == "-" {
        if args.json {
            bail!("standard output took the capture: for --json write it to a file");
        }
        return Ok(0);
    }
    note(&format!(
        "wrote {}: {}, {}, seed {}",
        path.display(),
        units::counted(bounds.frames, "frame"),
        units::counted(bounds.conversations, "conversation"),
        args.seed
    ));
    // Read again from the file, so that what is compared is what others will read.
    let agreement =
        Agreement::of(like.profile(), &synthesis::measure(&mut Reader::open(path)?, &stop)?.profile);
    match args.json {
        true => print(&(serde_json::to_string_pretty(&agreement)? + "\n"))?,
        false => print(&text(&agreement))?,
    }
    Ok(0)
}

/// A capture of a published one's totals.
fn named(args: &Synth, profile: Profile) -> Result<u8> {
    let Some(path) = &args.write else { bail!("where to? Give -w FILE") };
    if args.json {
        bail!(
            "--json prints how far a look-alike agrees with what it was made from: give --like or the file of a profile"
        );
    }
    let mut synth = ::synth::Synth::new(profile, args.seed)?;
    synthesis::write(path, &mut synth, &crate::client::Signals::at_once()?.stop)?;
    note(&format!("wrote {}", describe(&profile, path)));
    Ok(0)
}

/// Reads a profile that was written with --write-profile, or by hand.
fn read(name: &str) -> Result<FlowProfile> {
    let names: Vec<&str> = Profile::NAMED.iter().map(|(name, _)| *name).collect();
    let path = Path::new(name);
    if !path.exists() {
        bail!("--profile {name}: no such file, and no profile of that name: {}", names.join(", "));
    }
    let mut text = String::new();
    let file = std::fs::File::open(path).with_context(|| format!("reading {name}"))?;
    file.take(MAX_PROFILE).read_to_string(&mut text).with_context(|| {
        format!("reading {name} (a profile is JSON; to imitate a capture give --like {name})")
    })?;
    let profile: FlowProfile = serde_json::from_str(&text).with_context(|| {
        format!("{name} is no flow profile (netdyno synth --like CAPTURE --write-profile FILE writes one)")
    })?;
    profile.check().with_context(|| name.to_owned())?;
    Ok(profile)
}

/// Takes the statistics of a capture, and says what is not in them.
fn measure(reader: &mut Reader, stop: &AtomicBool) -> Result<FlowProfile> {
    let Measured { profile, left_out, resized, cut_short } = synthesis::measure(reader, stop)?;
    if left_out > 0 {
        note(&format!(
            "{} belong to conversations beyond the first {}: they are left out",
            units::counted(left_out, "frame"),
            units::count(::synth::like::CONVERSATIONS as u64)
        ));
    }
    if resized > 0 {
        note(&format!(
            "{} count with another length than they had: a look-alike's frames have Ethernet headers, and room for those of IP and its transport",
            units::counted(resized, "frame")
        ));
    }
    if let Some(cut) = cut_short {
        note(&format!("only the sound part was read: {cut}"));
    }
    Ok(profile)
}

/// Writes a profile; it gets its name only when it is whole.
fn keep(profile: &FlowProfile, path: &Path) -> Result<()> {
    let mut file = AtomicFile::create(path)?;
    let mut text = serde_json::to_vec(profile)?;
    text.push(b'\n');
    file.write_all(&text)?;
    file.finish()?;
    Ok(())
}

/// Writes a capture without a name: the kernel frees it when nobody has it open any more, so that neither a signal, SIGKILL among
/// them, nor a failure leaves it behind.
pub fn nameless(folder: &Path, mut synth: ::synth::Synth, stop: &AtomicBool) -> Result<File> {
    let wrong = || format!("writing a capture in {}", folder.display());
    let file = tempfile::tempfile_in(folder).with_context(wrong)?;
    let mut writer = Writer::new(file, FileFormat::PcapNanoseconds, LinkType::ETHERNET);
    synthesis::fill(&mut writer, &mut synth, stop).with_context(wrong)?;
    writer.into_inner().with_context(wrong)
}

/// One line about it.
pub fn describe(profile: &Profile, path: &Path) -> String {
    format!(
        "{}: {}, {}, {}",
        path.display(),
        units::counted(profile.frames, "frame"),
        units::counted(profile.flows, "flow"),
        units::bytes(profile.bytes)
    )
}

/// How far both agree, for people.
fn text(agreement: &Agreement) -> String {
    let mut out = format!("{:40}{:>18}{:>18}{:>12}\n", "", "original", "look-alike", "difference");
    for row in &agreement.totals {
        let value = |value: f64| match row.unit {
            "ns" => units::time(value as u64),
            "s" => units::time((value * 1e9) as u64),
            _ if value.fract() == 0.0 => units::count(value as u64),
            _ => format!("{value:.2}"),
        };
        let difference = match row.difference {
            Some(0.0) => "none".to_owned(),
            Some(ratio) => format!("{:+.2} %", ratio * 100.0),
            None => "-".to_owned(),
        };
        out += &format!(
            "{:40}{:>18}{:>18}{difference:>12}\n",
            row.what,
            value(row.original),
            value(row.look_alike)
        );
    }
    out += &format!("\n{:40}{:>18}\n", "Largest difference of a share", "points of %");
    for share in &agreement.shares {
        let points = format!("{:.3}", share.difference * 100.0);
        let at = if share.difference == 0.0 { String::new() } else { format!("  {}", share.at) };
        out += &format!("{:40}{points:>18}{at}\n", share.what);
    }
    out
}
