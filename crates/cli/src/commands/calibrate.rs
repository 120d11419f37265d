//! `netdyno doctor IFACE --calibrate`: which engine is the fastest here, found out by sending with each.

use crate::cli::Doctor;
use crate::client::Signals;
use crate::output::{note, print};
use anyhow::{Context, Result};
use job::calibrate::Calibrate;
use job::calibration::Calibration;
use report::{Witness, units};
use std::fmt::Write as _;

/// Exit status of a calibration in which no way was measured.
const NOTHING: u8 = 1;

pub fn run(args: &Doctor) -> Result<u8> {
    let asked = Calibrate {
        interface: args.interface.clone().context("calibrate which interface?")?,
        measure: args.measure.clone(),
        duration: args.duration,
        yes_disrupt: args.yes_disrupt.clone(),
    };
    let stop = Signals::at_once()?.stop;
    let calibration = asked.run(&stop, |name, place| {
        if !args.json {
            let lasts = units::time(args.duration.as_nanos() as u64);
            note(&format!("{name}: sending by {place} for {lasts}"));
        }
    })?;
    let json = serde_json::to_string_pretty(&calibration)? + "\n";
    if let Some(path) = &args.save {
        save(path, &json).with_context(|| format!("--save {}", path.display()))?;
    }
    let said = if args.json { json } else { text(&calibration, args.save.as_deref()) };
    print(&said)?;
    Ok(if calibration.best().is_some() { 0 } else { NOTHING })
}

/// Whole or not at all.
fn save(path: &std::path::Path, json: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    let mut file = capture::AtomicFile::create(path)?;
    file.write_all(json.as_bytes())?;
    file.finish()
}

/// A table, and what to do with it.
fn text(calibration: &Calibration, saved: Option<&std::path::Path>) -> String {
    let Calibration { interface, driver, kernel, ways, .. } = calibration;
    let known = |what: &Option<String>| units::printable(what.as_deref().unwrap_or("unknown"));
    let mut out = format!(
        "{interface}: driver {}, kernel {}, 64-byte frames, one core, {} a way\n\n",
        known(driver),
        known(kernel),
        units::time(calibration.duration_ns)
    );
    let rate = |rate: Option<f64>| rate.map_or_else(|| "-".to_owned(), units::frame_rate);
    let _ = writeln!(out, "{:<17}{:>16}{:>16}  seen leaving by", "way", "sent", "received");
    for way in ways {
        let by = match (&way.why_not, way.confirmed_by) {
            (Some(why), _) => format!("no figure: {}", units::printable(why)),
            (None, Some(Witness::Interface)) => "the interface's counter".to_owned(),
            (None, Some(Witness::Driver)) => "the driver's counter of XDP frames".to_owned(),
            (None, Some(Witness::Meter)) => "the receiver only: no counter here knows them".to_owned(),
            (None, Some(Witness::Completions)) => "nobody: the driver gave all back as sent".to_owned(),
            (None, Some(Witness::Nobody) | None) => "nobody".to_owned(),
        };
        let (sent, received) = (rate(way.sent_frames_per_second), rate(way.received_frames_per_second));
        let _ = writeln!(out, "{:<17}{sent:>16}{received:>16}  {by}", way.name);
    }
    match calibration.best() {
        None => out += "\nNo way could be measured.\n",
        Some(best) => {
            let _ = writeln!(out, "\nThe fastest here: {} (--engine {})", best.name, best.engine);
            if let Some(path) = saved {
                let path = path.display();
                let _ = writeln!(out, "Written to {path}: --calibration {path} makes --engine auto take it.");
            }
        }
    }
    out
}
