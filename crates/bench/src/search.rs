//! Case "search": throughput searches against the lab's token bucket, whose rate is known, by both methods.

use crate::bench::{Bench, Tool};
use crate::document::{Section, Table};
use crate::stats::Sample;
use crate::topspeed::plainly;
use anyhow::{Context, Result};
use std::time::Duration;

/// Devices: the bucket's rate in Mbit/s, counted without FCS, and the frame size, FCS included.
const DEVICES: [(u32, u32); 3] = [(200, 512), (100, 1518), (50, 128)];
const METHODS: [&str; 2] = ["mlrsearch", "bisect"];
/// The rate that is found may be off by this.
const NEAR: f64 = 0.005;
/// Trials of full length where methods are compared: RFC 2544's.
const LONG: &str = "60s";
/// No search takes as long.
const LIMIT: Duration = Duration::from_secs(3600);

/// What came of the searches of one device by one method.
#[derive(Default)]
struct Found {
    /// Found over set, less 1.
    error: Sample,
    elapsed: Sample,
    near: usize,
    trials: Sample,
    again: Sample,
}

fn truth((mbps, size): (u32, u32)) -> f64 {
    f64::from(mbps) * 1e6 / 8.0 / f64::from(size - 4)
}

struct Search {
    found: f64,
    elapsed_s: f64,
    sending_s: f64,
    trials: usize,
    again: u32,
}

fn search(
    bench: &Bench,
    section: &mut Section,
    device: (u32, u32),
    method: &str,
    trial: Option<&str>,
) -> Result<Search> {
    let (mbps, size) = device;
    let mut text = format!(
        "search throughput --lab --lab-bottleneck {mbps}mbps --size {size} --method {method} --precision 0.25%"
    );
    if let Some(trial) = trial {
        text += &format!(" --trial-duration {trial}");
    }
    let arguments: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    let tick = Duration::from_millis(200);
    let ran = bench.run_within(LIMIT, Tool::Netdyno, &arguments, tick, |_, _| true)?;
    section.command(plainly(&bench.command_line(Tool::Netdyno, &arguments)));
    let report = ran.report.context("netdyno gave no result")?;
    let done = report.result.search.as_ref().context("the result has no search")?;
    Ok(Search {
        found: report.result.throughput.as_ref().map_or(f64::NAN, |found| found.frames_per_second),
        elapsed_s: done.elapsed_ns as f64 / 1e9,
        sending_s: done.sending_ns as f64 / 1e9,
        trials: report.result.trials.len(),
        again: report.result.trials.iter().map(|trial| trial.repeated).sum(),
    })
}

pub fn run(bench: &Bench) -> Result<Section> {
    let mut section = Section::new(
        "Searches",
        "Throughput searches by netdyno against a router in a lab that lets a token bucket's rate through. Found is beside \
         what was set; in a trial of 3 s what waits in the queue and was saved in tokens (5 ms of the rate each) lets 0.33 % \
         more through. Devices take turns, so that a run is of one of them; a search says nothing else of a device than a \
         user is told. Trials that were done again are such as a moment's stall of this machine explains, or as lost little \
         (docs/method.md). Methods are compared once, with the first device and RFC 2544's trials of a minute (a first look \
         leaves that out: what buffers keep is more of a shorter trial, which MLRsearch has to make up for).",
    );
    let mut found: Vec<[Found; 2]> = DEVICES.iter().map(|_| Default::default()).collect();
    for round in 0..bench.runs {
        let number = round % DEVICES.len();
        let device = DEVICES[number];
        for (method, kept) in METHODS.iter().zip(&mut found[number]) {
            let one = search(bench, &mut section, device, method, bench.quick.then_some("1s"))?;
            let error = one.found / truth(device) - 1.0;
            kept.error.push(error * 100.0);
            kept.near += usize::from(error.abs() <= NEAR);
            kept.elapsed.push(one.elapsed_s);
            kept.trials.push(one.trials as f64);
            kept.again.push(f64::from(one.again));
        }
    }
    let title = format!("{} searches by each method, medians [lowest–highest]", bench.runs);
    let head = ["device", "method", "within 0.5 %", "found less set, %", "seconds", "trials", "done again"];
    let mut table = Table::new(title, &head);
    let mut near = [0; 2];
    for (&(mbps, size), both) in DEVICES.iter().zip(&found) {
        for ((method, kept), near) in METHODS.iter().zip(both).zip(&mut near) {
            *near += kept.near;
            table.rows.push(vec![
                format!("{mbps} Mbit/s, {size} B: {:.1} fps", truth((mbps, size))),
                (*method).to_owned(),
                format!("{} of {}", kept.near, kept.error.0.len()),
                kept.error.cell(|v| format!("{v:+.2}")),
                kept.elapsed.cell(|v| format!("{v:.0}")),
                kept.trials.cell(|v| format!("{v:.0}")),
                kept.again.cell(|v| format!("{v:.0}")),
            ]);
        }
    }
    section.tables.push(table);
    for (method, near) in METHODS.iter().zip(near) {
        let what = format!("{method}: searches within 0.5 % of the rate, of {}", bench.runs);
        section.at_least(what, bench.runs as f64, near as f64, |v| format!("{v:.0}"));
    }
    if !bench.quick {
        compare(bench, &mut section)?;
    }
    Ok(section)
}

/// The time that both methods take for the same precision.
fn compare(bench: &Bench, section: &mut Section) -> Result<()> {
    let head = [
        "device",
        "method",
        "found less set, %",
        "trials",
        "seconds sending",
        "of bisection",
        "seconds in all",
    ];
    let mut table = Table::new(format!("Trials of {LONG}, to 0.25 %"), &head);
    let device = DEVICES[0];
    let bisect = search(bench, section, device, "bisect", Some(LONG))?;
    let mlr = search(bench, section, device, "mlrsearch", Some(LONG))?;
    for (method, one) in [("bisect", &bisect), ("mlrsearch", &mlr)] {
        table.rows.push(vec![
            format!("{} Mbit/s, {} B", device.0, device.1),
            method.to_owned(),
            format!("{:+.2}", (one.found / truth(device) - 1.0) * 100.0),
            one.trials.to_string(),
            format!("{:.1}", one.sending_s),
            format!("{:.0}%", one.sending_s / bisect.sending_s * 100.0),
            format!("{:.0}", one.elapsed_s),
        ]);
    }
    section.tables.push(table);
    let ratio = mlr.sending_s / bisect.sending_s;
    let percent = |v: f64| format!("{:.0}%", v * 100.0);
    section.at_most("MLRsearch's time of sending, of bisection's", 0.25, ratio, percent);
    Ok(())
}
