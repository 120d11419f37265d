//! `netdyno doctor IFACE --calibrate`: which engine is the fastest here, found out by sending with each.

use crate::cli::Doctor;
use crate::client::Signals;
use crate::output::{note, print};
use anyhow::{Context, Result};
use engine::Job;
use job::Session;
use job::calibration::{Calibration, Way};
use job::engines;
use job::kinds::shared;
use job::kinds::shared::Through;
use job::place::Place;
use job::run::{self, Open, Setup};
use report::{Report, Witness, units};
use spec::{How, Timestamps};
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use traffic::expr::{Options, compile};
use traffic::{Program, Schedule};

/// Exit status of a calibration in which no way was measured.
const NOTHING: u8 = 1;

pub fn run(args: &Doctor) -> Result<u8> {
    let yes_disrupt = args.yes_disrupt.clone().into_iter().collect();
    let through = Through { yes_disrupt, ..Through::default() };
    let find = || -> Result<Place> {
        shared::sending_place(args.interface.as_deref(), &through)?.context("calibrate which interface?")
    };
    let place = find()?;
    let cpus = shared::cpus(&through, std::slice::from_ref(&place))?;
    let size = "64".parse().map_err(|error| anyhow::anyhow!("{error}"))?;
    let options = Options { size: Some(size), seed: 0, signature: None, name: String::new() };
    let program = Arc::new(compile("ipv4/udp", &options)?.with_schedule(Schedule::TopSpeed));
    let stop = Signals::at_once()?.stop;
    let mut ways = Vec::new();
    for (name, engine, open) in engines::ways() {
        if stop.load(Relaxed) {
            break;
        }
        if !args.json {
            note(&format!(
                "{name}: sending by {} for {}",
                place.spec,
                units::time(args.duration.as_nanos() as u64)
            ));
        }
        // Looked at again: the way before may have had a program attached.
        let (tx, rx) = (find()?, receiver(args)?);
        let measured = measure(args, (tx, rx), (&program, &cpus), open, &stop);
        let way = Way { name: name.to_owned(), engine, ..Way::default() };
        ways.push(match measured {
            Ok(report) => judged(way, &report),
            Err(error) => Way { why_not: Some(job::in_full(&error)), ..way },
        });
    }
    if stop.load(Relaxed) {
        anyhow::bail!("stopped by a signal: nothing was calibrated");
    }
    let calibration = Calibration::of(&place, args.measure.as_deref(), args.duration.as_nanos() as u64, ways);
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

fn receiver(args: &Doctor) -> Result<Option<(Place, meter::Options)>> {
    let Some(spec) = &args.measure else { return Ok(None) };
    let place = Place::find(spec)?;
    place.guard_taking(args.yes_disrupt.as_slice(), None)?;
    shared::with_meter(place, (How::Auto, Timestamps::Software), false).map(Some)
}

/// Sends one way.
fn measure(
    args: &Doctor,
    (tx, rx): (Place, Option<(Place, meter::Options)>),
    (program, cpus): (&Arc<Program>, &[Option<usize>]),
    open: Open,
    stop: &Arc<AtomicBool>,
) -> Result<Report> {
    let job = Job { duration: Some(args.duration), ..Job::program(Arc::clone(program)) };
    run::run(Setup {
        tx: vec![tx],
        rx: rx.into_iter().collect(),
        best_effort: true,
        cpus: cpus.to_vec(),
        session: Session { stop: Arc::clone(stop), ..Session::default() },
        ..Setup::of("doctor", open, job, program.longest() as usize)
    })
}

/// The figures of a run, as far as somebody saw its frames leave.
fn judged(way: Way, report: &Report) -> Way {
    let Some(tx) = &report.result.tx else { return way };
    let counted = tx.interface_counters.first();
    let confirmed_by = counted.and_then(|counted| counted.confirmed_by);
    let sent = tx.totals.frames_per_second;
    let rx = report.result.rx.as_ref().filter(|_| tx.totals.duration_ns > 0);
    let received = rx.map(|rx| rx.totals.frames as f64 * 1e9 / tx.totals.duration_ns as f64);
    let why_not = match confirmed_by {
        None | Some(Witness::Nobody) => Some(match report.result.verdict.reasons().first() {
            Some(reason) => reason.to_string(),
            None => "nobody saw a frame leave".to_owned(),
        }),
        Some(_) => None,
    };
    let sent = Some(sent).filter(|_| why_not.is_none());
    Way { sent_frames_per_second: sent, received_frames_per_second: received, confirmed_by, why_not, ..way }
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
