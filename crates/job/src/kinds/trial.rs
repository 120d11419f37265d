//! `netdyno trial`: one load, for one time, judged.

use super::Run;
use super::shared;
use crate::session::Session;
use crate::trials::floor::Known;
use crate::trials::{Goal, Offer, Rig, frame_sizes, frames_per_second, mean_bytes, nanos, row, shown};
use anyhow::{Result, bail};
use report::search::{Part, TrialVerdict};
use report::{Code, Report, units};
use spec::Trial;
use traffic::expr::Size;
use trial::{Remaining, Stage, Wanted};

impl Run for spec::Trial {
    fn run(&self, session: Session) -> Result<Report> {
        run(self, &session)
    }
}

fn run(args: &Trial, session: &Session) -> Result<Report> {
    let goal = Goal::parse(args.goal())?;
    let sizes = frame_sizes(args.bench.size())?;
    session.stop_in_order();
    // The same frames again, if it is run again.
    let mut bench = args.bench.clone();
    bench.seed = bench.seed.or_else(|| Some(shared::draw_seed()));
    if session.elsewhere.is_some() && matches!(args.floor.as_deref(), Some("cable" | "device")) {
        bail!(
            "`.floor`: a cable of this host says nothing of those between agents; give a time, or an earlier result"
        );
    }
    let floors = Known::of(args.floor.as_deref(), &bench, session)?;
    let mut rig = Rig::new(&bench, session)?;
    rig.show("trial")?;
    let mut trials =
        Trials { args, goal, session, rig, floors, rows: Vec::new(), reasons: Vec::new(), first: None };
    for (number, size) in sizes.iter().enumerate() {
        if trials.run(size, (number + 1, sizes.len()))? {
            break;
        }
    }
    trials.rig.show = None;
    session.board.end();
    let Some(report) = trials.first.take() else {
        bail!("`.size` {}: there is no size to try", args.bench.size())
    };
    Ok(trials.finish(report, bench.seed))
}

/// The trials of one job: one for each frame size.
struct Trials<'a> {
    args: &'a Trial,
    goal: Goal,
    session: &'a Session,
    rig: Rig,
    floors: Known,
    rows: Vec<report::search::Trial>,
    reasons: Vec<report::Said>,
    /// What the first came to.
    first: Option<Report>,
}

impl Trials<'_> {
    /// Runs one, and judges it. True: it is the last.
    fn run(&mut self, (name, size): &(String, Size), which: (usize, usize)) -> Result<bool> {
        let duration = self.args.duration();
        let load = frames_per_second(*self.args.rate, mean_bytes(size), self.rig.bits_per_second()?)?;
        let offer = Offer::steady(load, nanos(duration), size);
        let (rate, time) = (units::frame_rate(load), units::time(nanos(duration)));
        self.session.say(Code::Trial, format!("trial: frames of {name} bytes at {rate} for {time}"));
        if let Some(show) = &self.rig.show {
            show.change(|now| {
                now.part = Part::Trial.to_string();
                now.frame_size.clone_from(name);
                now.size = which;
            });
            let left = nanos(duration).saturating_mul((which.1 - self.rows.len()) as u64);
            show.trial(load, nanos(duration), Some(Remaining { ns: left, at_most: false }));
        }
        let limits = &self.goal.limits;
        let ran = match self.rig.run(&offer, &|outcome| limits.broken(outcome)) {
            // What was measured before is worth keeping.
            Err(error) if !self.rows.is_empty() => {
                let said = format!("frames of {name} bytes: the trial could not be carried out: {error:#}");
                self.reasons.push(Code::SearchIncomplete.says(said));
                return Ok(true);
            }
            ran => ran?,
        };
        let wanted = Wanted::steady(load, nanos(duration), Stage::Measure);
        let mut row = row(&wanted, &ran, &self.goal);
        row.number = which.0 as u32;
        row.part = Part::Trial;
        row.frame_size.clone_from(name);
        if row.latency_ns.is_some() && !ran.stopped && ran.port_lost.is_none() {
            row.floor = self.floors.at(load, nanos(duration), size, name)?;
        }
        if let Some(show) = &self.rig.show {
            show.over(shown(&row), Vec::new(), String::new());
        }
        if let Some(why) = &ran.port_lost {
            let said = format!("frames of {name} bytes: the trial is not judged: {why}");
            self.reasons.push(Code::LinkLost.says(said));
        }
        if ran.stopped {
            self.reasons.push(Code::Stopped.says("stopped before its end"));
        } else if ran.port_lost.is_none() && row.verdict != TrialVerdict::Passed {
            self.reasons.push(Code::GoalNotReached.says(why(&row, name, &ran.report)));
        }
        self.rows.push(row);
        let over = ran.stopped || ran.port_lost.is_some();
        self.first.get_or_insert(ran.report);
        Ok(over)
    }

    /// The report of all, made of the first's.
    fn finish(mut self, mut report: Report, seed: Option<u64>) -> Report {
        report.command = "trial".to_owned();
        let ways = &self.rig.ports.ways;
        let rate = self.args.rate.to_string();
        let resolved = &mut report.resolved;
        resolved.seed = seed;
        resolved.source = ways.first().map(|way| way.source());
        resolved.rate = Some(report::RequestedRate { text: rate, ..Default::default() });
        resolved.duration_ns = Some(nanos(self.args.duration()));
        resolved.interfaces = ways.iter().flat_map(|way| way.names()).collect();
        if ways.len() > 1 || self.rows.len() > 1 {
            // These are of the first only; the trials have all.
            let result = &mut report.result;
            (result.tx, result.rx, result.loss, result.latency_ns) = (None, None, None, None);
            (result.pacing, result.flows) = (None, None);
            result.ports.clear();
            report.streams.clear();
            report.intervals.clear();
            // Without what the first alone came to.
            report.result.agents = std::mem::take(&mut self.rig.agents);
        } else if let (Some(tx), Some(row)) = (&mut report.result.tx, self.rows.first()) {
            whole(tx, row);
        }
        // The verdict says how far the sender fell short of the trial; the run knows of what was due until it ended.
        report.warnings.retain(|warning| warning.code != Code::RateNotReached);
        if let Some(environment) = self.rig.environment.take() {
            report.environment = environment;
        }
        for warning in std::mem::take(&mut self.rig.warnings) {
            if !report.warnings.contains(&warning) {
                report.warnings.push(warning);
            }
        }
        report.result.trials = self.rows;
        report.result.verdict = match self.reasons.is_empty() {
            true => report::Verdict::Done,
            false => report::Verdict::Short { reasons: self.reasons },
        };
        report
    }
}

/// A trial intends what its load makes in its duration; its run knows only of what was due until it ended. So that one number
/// is said for it, and one shortfall.
fn whole(tx: &mut report::Tx, row: &report::search::Trial) {
    let done = tx.totals.frames.saturating_add(tx.failed);
    tx.intended_frames = Some(row.intended_frames);
    tx.due_not_sent_frames = tx.due_not_sent_frames.map(|_| row.intended_frames.saturating_sub(done));
}

/// Why it did not pass, and whose fault that was.
fn why(row: &report::search::Trial, size: &str, ran: &report::Report) -> String {
    let of = format!("frames of {size} bytes: ");
    of + &match row.verdict {
        TrialVerdict::SenderShort => format!(
            "the sender fell short of the load by {}: nothing can be said of the device at this load",
            units::percent(row.shortfall_ratio)
        ),
        TrialVerdict::Loss => {
            let lost = format!(
                "{} of {} ({})",
                units::count(row.lost_frames),
                units::counted(row.sent_frames, "frame"),
                units::percent(row.lost_ratio())
            );
            match at_the_receiver(ran) {
                Some(whose) => format!("{lost} were lost, but not all of them by the device: {whose}"),
                None => format!("the device lost {lost}"),
            }
        }
        TrialVerdict::SenderUneven => format!(
            "{} lost while this machine was busy with something else, which held up the sender, or the kernel's packet threads \
             between it and the receiver, for as long as {} take: nothing can be said of the device",
            units::counted(row.lost_frames, "frame"),
            units::counted(row.uneven_frames, "frame")
        ),
        TrialVerdict::ReceiverLost => format!(
            "{} of {} are missing, as many as this machine's own receiving side may have lost: nothing can be said of the device{}",
            units::count(row.lost_frames),
            units::counted(row.sent_frames, "frame"),
            at_the_receiver(ran).map(|told| format!(" ({told})")).unwrap_or_default()
        ),
        TrialVerdict::Unconfirmed => format!(
            "{} of {} are missing, and nobody saw {} leave the tester: nothing can be said of the device; use another `.engine` (afxdp, packet)",
            units::count(row.lost_frames),
            units::counted(row.sent_frames, "frame"),
            units::count(row.unconfirmed_frames)
        ),
        TrialVerdict::Latency => "the latency was above its limit".to_owned(),
        TrialVerdict::Variation => "delays differed by more than their limit".to_owned(),
        TrialVerdict::LatencyUnknown => "no latency was measured".to_owned(),
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
    fn a_trial_and_its_run_intend_the_same_number_of_frames() {
        let row = report::search::Trial {
            intended_frames: 20_000,
            sent_frames: 18_860,
            received_frames: 18_860,
            loss_ratio: 0.057,
            shortfall_ratio: 0.057,
            ..Default::default()
        };
        let mut tx = report::Tx {
            intended_frames: Some(19_499),
            due_not_sent_frames: Some(599),
            totals: report::Totals::over(18_860, 18_860 * 60, 1_000_000_000),
            ..Default::default()
        };
        whole(&mut tx, &row);
        assert_eq!((tx.intended_frames, tx.due_not_sent_frames), (Some(20_000), Some(1_140)));
        // At top speed no frame is due at any time.
        tx.due_not_sent_frames = None;
        whole(&mut tx, &row);
        assert_eq!(tx.due_not_sent_frames, None);
    }

    #[test]
    fn a_loss_at_the_receiver_is_not_the_devices() {
        let row = report::search::Trial {
            sent_frames: 1000,
            lost_frames: 10,
            loss_ratio: 0.01,
            verdict: TrialVerdict::Loss,
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
