//! `netdyno drops`: what the kernel drops, and why, while a command runs or for a time.

use super::counters::run_command;
use crate::cli::drops::Drops;
use crate::client::Signals;
use crate::output::{note, print};
use anyhow::{Result, bail};
use capture::{FileFormat, FileWriter, Writer};
use job::dropped::{Examples, Looking};
use report::units::counted;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use wire::LinkType;

/// Signals are looked for this often.
const LOOK: Duration = Duration::from_millis(10);

pub fn run(args: &Drops) -> Result<u8> {
    let writer = args.capture.as_deref().map(begin).transpose()?;
    let looking = Looking::start(args.on.as_deref(), writer.is_some())?;
    let status = match args.command.is_empty() {
        true => wait(args)?,
        false => Some(run_command(&args.command)?),
    };
    let filter = args.filter.clone().unwrap_or_default();
    let mut found = looking.look(&filter)?;
    if let (Some(writer), Some(path)) = (writer, &args.capture) {
        write(writer, path, &looking.examples(&filter)?)?;
    }
    found.command_status = status.and_then(|status| status.code());
    print(&if args.json { found.to_json()? } else { report::drops::render(&found) })?;
    let failed = status.filter(|status| !status.success());
    if let Some(status) = failed {
        note(&format!("the command failed: {status}"));
    }
    Ok(u8::from(failed.is_some()))
}

/// Begins the capture, before anything is looked at.
fn begin(path: &Path) -> Result<FileWriter> {
    if FileFormat::of_name(path) != FileFormat::Pcapng {
        bail!(
            "--capture {}: the reason is a comment of each frame, which pcapng alone has: name it so that it ends with .pcapng",
            path.display()
        );
    }
    Ok(Writer::create(path, FileFormat::Pcapng, LinkType::ETHERNET)?)
}

/// Writes examples, and says how many there are.
fn write(mut writer: FileWriter, path: &Path, examples: &Examples) -> Result<()> {
    for frame in &examples.frames {
        writer.write_noted(0, frame.time_ns, &frame.bytes, frame.wire_len, &frame.comment)?;
    }
    writer.finish()?;
    let more = match examples.without_room {
        0 => String::new(),
        more => format!(", {} more found no room", counted(more, "example")),
    };
    let frames = counted(examples.frames.len() as u64, "frame");
    note(&format!("wrote {frames} that the kernel dropped into {}{more}", path.display()));
    Ok(())
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
