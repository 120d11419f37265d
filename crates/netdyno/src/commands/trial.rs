//! `netdyno trial`: one load, for one time, judged.

use super::shared;
use crate::cli::search::Trial;
use crate::output::{conclude, note};
use crate::run;
use crate::trials::{Goal, Offer, Rig, frame_sizes, frames_per_second, mean_bytes, nanos, row, shown};
use anyhow::{Result, bail};
use report::units;
use trial::{Stage, Wanted};

pub fn run(args: Trial) -> Result<u8> {
    let goal = Goal::parse(&args.goal)?;
    let sizes = frame_sizes(&args.bench.size)?;
    if let Some(dir) = &args.output.report {
        report::prepare_dir(dir)?;
    }
    let mut rig = Rig::new(&args.bench, run::stop_on_signals_with(&args.output)?)?;
    rig.show("trial", &args.output)?;
    let mut rows = Vec::new();
    let mut whole: Option<report::Report> = None;
    let mut reasons = Vec::new();
    for (name, size) in &sizes {
        let load = frames_per_second(args.rate, mean_bytes(size), rig.bits_per_second()?)?;
        let offer = Offer::steady(load, nanos(args.duration), size);
        if !args.output.quiet && !args.output.gauges.tui {
            note(&format!(
                "trial: frames of {name} bytes at {} for {}",
                units::frame_rate(load),
                units::time(nanos(args.duration))
            ));
        }
        let number = rows.len() + 1;
        if let Some(show) = &rig.show {
            show.change(|now| {
                "trial".clone_into(&mut now.part);
                now.frame_size.clone_from(name);
                now.size = (number, sizes.len());
            });
            let left = args.duration * (sizes.len() - rows.len()) as u32;
            show.trial(load, nanos(args.duration), Some(left));
        }
        let ran = rig.run(&offer, &|outcome| !goal.limits.hold(outcome))?;
        let wanted = Wanted::steady(load, nanos(args.duration), Stage::Measure);
        let mut row = row(&wanted, &ran, &goal);
        row.number = number as u32;
        row.part = "trial".to_owned();
        row.frame_size.clone_from(name);
        if let Some(show) = &rig.show {
            show.over(shown(&row), Vec::new(), String::new());
        }
        if ran.stopped {
            reasons.push("interrupted by a signal before its end".to_owned());
        } else if row.verdict != "passed" {
            reasons.push(why(&row, name));
        }
        rows.push(row);
        whole.get_or_insert(ran.report);
        if ran.stopped {
            break;
        }
    }
    rig.show = None;
    let Some(mut report) = whole else { bail!("--size {}: there is no size to try", args.bench.size) };
    report.command = "trial".to_owned();
    report.requested.command_line = shared::command_line();
    report.requested.rate = Some(report::RequestedRate { text: args.rate.to_string(), ..Default::default() });
    report.requested.duration_ns = Some(nanos(args.duration));
    let ways = &rig.ports.ways;
    report.requested.interfaces =
        ways.iter().flat_map(|way| [way.from_name.clone(), way.to_name.clone()]).collect();
    if let Some(environment) = rig.environment.take() {
        report.environment = environment;
    }
    if rig.ports.ways.len() > 1 || rows.len() > 1 {
        // These are of the first only; the trials have all.
        let result = &mut report.result;
        (result.tx, result.rx, result.loss, result.latency_ns) = (None, None, None, None);
        (result.pacing, result.flows) = (None, None);
        report.streams.clear();
        report.intervals.clear();
    }
    report.result.trials = rows;
    report.result.verdict = match reasons.is_empty() {
        true => report::Verdict::Done,
        false => report::Verdict::Short { reasons },
    };
    conclude(&report, &args.output, false)
}

/// Why it did not pass, and whose fault that was.
fn why(row: &report::search::Trial, size: &str) -> String {
    let of = format!("frames of {size} bytes: ");
    of + &match row.verdict.as_str() {
        "sender short" => format!(
            "the sender fell short of the load by {}: nothing can be said of the device at this load",
            units::percent(row.shortfall_ratio)
        ),
        "loss" => format!(
            "the device lost {} of {} ({})",
            units::count(row.lost_frames),
            units::counted(row.sent_frames, "frame"),
            units::percent(row.loss_ratio - row.shortfall_ratio)
        ),
        "latency" => "the latency was above its limit".to_owned(),
        "latency unknown" => "no latency was measured".to_owned(),
        _ => "more frames were out of order than allowed".to_owned(),
    }
}
