//! `netdyno trial`: one load, for one time, judged.

use super::Run;
use super::shared;
use crate::session::Session;
use crate::trials::floor::Known;
use crate::trials::{Goal, Offer, Rig, frame_sizes, frames_per_second, mean_bytes, nanos, row, shown};
use anyhow::{Result, bail};
use report::{Code, Report, units};
use spec::Trial;
use trial::{Stage, Wanted};

impl Run for spec::Trial {
    fn run(&self, session: Session) -> Result<Report> {
        run(self, &session)
    }
}

fn run(args: &Trial, session: &Session) -> Result<Report> {
    let goal = Goal::parse(args.goal())?;
    let sizes = frame_sizes(args.bench.size())?;
    let duration = args.duration();
    session.heed();
    // The same frames again, if it is run again.
    let mut bench = args.bench.clone();
    bench.seed = bench.seed.or_else(|| Some(shared::draw_seed()));
    let mut floors = Known::of(args.floor.as_deref(), &bench, session)?;
    let mut rig = Rig::new(&bench, session)?;
    rig.show("trial")?;
    let mut rows = Vec::new();
    let mut whole: Option<report::Report> = None;
    let mut reasons = Vec::new();
    for (name, size) in &sizes {
        let load = frames_per_second(*args.rate, mean_bytes(size), rig.bits_per_second()?)?;
        let offer = Offer::steady(load, nanos(duration), size);
        session.say(
            Code::Trial,
            format!(
                "trial: frames of {name} bytes at {} for {}",
                units::frame_rate(load),
                units::time(nanos(duration))
            ),
        );
        let number = rows.len() + 1;
        if let Some(show) = &rig.show {
            show.change(|now| {
                "trial".clone_into(&mut now.part);
                now.frame_size.clone_from(name);
                now.size = (number, sizes.len());
            });
            let left = duration * (sizes.len() - rows.len()) as u32;
            show.trial(load, nanos(duration), Some(left));
        }
        let ran = rig.run(&offer, &|outcome| goal.limits.broken(outcome))?;
        let wanted = Wanted::steady(load, nanos(duration), Stage::Measure);
        let mut row = row(&wanted, &ran, &goal);
        row.number = number as u32;
        row.part = "trial".to_owned();
        row.frame_size.clone_from(name);
        if row.latency_ns.is_some() && !ran.stopped && ran.port_lost.is_none() {
            row.floor = floors.at(load, nanos(duration), size, name)?;
        }
        if let Some(show) = &rig.show {
            show.over(shown(&row), Vec::new(), String::new());
        }
        if let Some(why) = &ran.port_lost {
            reasons
                .push(Code::LinkLost.says(format!("frames of {name} bytes: the trial is not judged: {why}")));
        }
        if ran.stopped {
            reasons.push(Code::Stopped.says("stopped before its end"));
        } else if ran.port_lost.is_none() && row.verdict != "passed" {
            reasons.push(Code::GoalNotReached.says(why(&row, name, &ran.report)));
        }
        rows.push(row);
        let over = ran.stopped || ran.port_lost.is_some();
        whole.get_or_insert(ran.report);
        if over {
            break;
        }
    }
    rig.show = None;
    session.board.end();
    let Some(mut report) = whole else { bail!("`.size` {}: there is no size to try", args.bench.size()) };
    report.command = "trial".to_owned();
    report.resolved.seed = bench.seed;
    report.resolved.rate = Some(report::RequestedRate { text: args.rate.to_string(), ..Default::default() });
    report.resolved.duration_ns = Some(nanos(duration));
    let ways = &rig.ports.ways;
    report.resolved.interfaces = ways.iter().flat_map(|way| way.names()).collect();
    if let Some(environment) = rig.environment.take() {
        report.environment = environment;
    }
    if rig.ports.ways.len() > 1 || rows.len() > 1 {
        // These are of the first only; the trials have all.
        let result = &mut report.result;
        (result.tx, result.rx, result.loss, result.latency_ns) = (None, None, None, None);
        (result.pacing, result.flows) = (None, None);
        result.ports.clear();
        report.streams.clear();
        report.intervals.clear();
    }
    for warning in std::mem::take(&mut rig.warnings) {
        if !report.warnings.contains(&warning) {
            report.warnings.push(warning);
        }
    }
    report.result.trials = rows;
    report.result.verdict = match reasons.is_empty() {
        true => report::Verdict::Done,
        false => report::Verdict::Short { reasons },
    };
    Ok(report)
}

/// Why it did not pass, and whose fault that was.
fn why(row: &report::search::Trial, size: &str, ran: &report::Report) -> String {
    let of = format!("frames of {size} bytes: ");
    of + &match row.verdict.as_str() {
        "sender short" => format!(
            "the sender fell short of the load by {}: nothing can be said of the device at this load",
            units::percent(row.shortfall_ratio)
        ),
        "loss" => {
            let lost = format!(
                "{} of {} ({})",
                units::count(row.lost_frames),
                units::counted(row.sent_frames, "frame"),
                units::percent(row.loss_ratio - row.shortfall_ratio)
            );
            match at_the_receiver(ran) {
                Some(whose) => format!("{lost} were lost, but not all of them by the device: {whose}"),
                None => format!("the device lost {lost}"),
            }
        }
        "sender uneven" => format!(
            "{} lost while this machine was busy with something else, which held up the sender, or the kernel's packet threads \
             between it and the receiver, for as long as {} take: nothing can be said of the device",
            units::counted(row.lost_frames, "frame"),
            units::counted(row.uneven_frames, "frame")
        ),
        "receiver lost" => format!(
            "{} of {} are missing, as many as this machine's own receiving side may have lost: nothing can be said of the device{}",
            units::count(row.lost_frames),
            units::counted(row.sent_frames, "frame"),
            at_the_receiver(ran).map(|told| format!(" ({told})")).unwrap_or_default()
        ),
        "unconfirmed" => format!(
            "{} of {} are missing, and nobody saw {} leave the tester: nothing can be said of the device; use another `.engine` (afxdp, packet)",
            units::count(row.lost_frames),
            units::counted(row.sent_frames, "frame"),
            units::count(row.unconfirmed_frames)
        ),
        "latency" => "the latency was above its limit".to_owned(),
        "variation" => "delays differed by more than their limit".to_owned(),
        "latency unknown" => "no latency was measured".to_owned(),
        _ => "more frames were out of order than allowed".to_owned(),
    }
}

/// What of a loss the receiving side owns up to.
fn at_the_receiver(ran: &report::Report) -> Option<String> {
    let missed = ran.result.rx.as_ref().and_then(|rx| rx.dropped_frames).filter(|missed| *missed > 0);
    let missed = missed.map(|missed| {
        format!("the meter missed {}, because it is slower than this load", units::counted(missed, "frame"))
    });
    let told = ran.result.verdict.reasons().iter().find(|reason| reason.code == Code::FramesExplained);
    match (missed, told) {
        (Some(missed), Some(told)) => Some(format!("{missed}; {told}")),
        (missed, told) => missed.or_else(|| told.map(|told| told.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_at_the_receiver_is_not_the_devices() {
        let row = report::search::Trial {
            sent_frames: 1000,
            lost_frames: 10,
            loss_ratio: 0.01,
            verdict: "loss".to_owned(),
            ..Default::default()
        };
        let mut ran = report::Report::new("trial");
        assert!(why(&row, "64", &ran).contains("the device lost 10 of 1,000 frames (1.00 %)"));
        ran.result.rx = Some(report::Rx { dropped_frames: Some(10), ..Default::default() });
        let said = why(&row, "64", &ran);
        assert!(said.contains("not all of them by the device: the meter missed 10 frames"), "{said}");
        ran.result.rx = None;
        ran.result.verdict.fall_short(
            Code::FramesExplained,
            "where frames may have gone: rx0 counts 10 as rx_missed_errors",
        );
        let said = why(&row, "64", &ran);
        assert!(said.contains("not all of them by the device: where frames may have gone"), "{said}");
    }
}
