//! The trials of frames through a device: carried out by a rig, judged by a goal, told on the way and in the report.

use super::course::{self, Course, Row, Tester, ahead_said};
use super::{Goal, Offer, Ran, Rig};
use anyhow::Result;
use report::search::{self, Bounds, Part, Trial, TrialLatency, TrialVerdict};
use report::{Code, Note, units};
use traffic::expr::Size;
use trial::{Broken, FrameToFrame, Latency, Outcome, Remaining, Search, Stage, Then, Wanted};

/// How trials of a search are carried out.
#[derive(Clone, Copy)]
pub struct How<'a, S> {
    /// What of the search they are.
    pub part: &'a Part,
    /// What those are that try once more what was found, where that is something else.
    pub again: Option<&'a Part>,
    pub goal: &'a Goal,
    /// What a load means.
    pub offer: &'a dyn Fn(&Wanted) -> Offer,
    /// What is known so far, for a person.
    pub known: &'a dyn Fn(&S, &Series) -> String,
    /// The axis is the rate.
    pub of_rate: bool,
}

impl<S> How<'_, S> {
    /// What of the search this trial is.
    fn part_of(&self, wanted: &Wanted) -> &Part {
        match wanted.stage {
            Stage::Confirm | Stage::Measure => self.again.unwrap_or(self.part),
            Stage::WarmUp | Stage::Estimate | Stage::Search => self.part,
        }
    }
}

/// The trials of one command.
#[derive(Debug)]
pub struct Series {
    pub rig: Rig,
    pub course: Course<Trial>,
    /// The frames that are sent now.
    pub size_name: String,
    pub size: Size,
    /// Of the search for throughput.
    pub goals: Vec<Goal>,
    /// What ended the search: a port of ours that was lost.
    pub port_lost: Option<String>,
}

impl Row for Trial {
    fn number(&self) -> u32 {
        self.number
    }

    fn outcome(&self) -> Outcome {
        outcome_of(self)
    }

    fn learned(&mut self, number: u32, bounds: Vec<(Option<f64>, Option<f64>)>) {
        self.number = number;
        self.bounds = bounds.into_iter().map(|(passed, failed)| Bounds { passed, failed }).collect();
    }
}

/// A search by these trials.
struct Driven<'a, 'h, S> {
    series: &'a mut Series,
    how: &'a How<'h, S>,
}

impl<S: Search> Tester<S> for Driven<'_, '_, S> {
    type Row = Trial;

    fn course(&mut self) -> &mut Course<Trial> {
        &mut self.series.course
    }

    fn is_of(&self, row: &Trial, wanted: &Wanted) -> bool {
        row.part == *self.how.part_of(wanted)
            && row.frame_size == self.series.size_name
            && wanted_of(row).is_some_and(|kept| kept.is(wanted))
    }

    fn is_stopped(&self) -> bool {
        self.series.rig.is_stopped()
    }

    fn attempt(&mut self, wanted: &Wanted, search: &S) -> Result<Option<(Trial, Outcome)>> {
        let Driven { series, how } = self;
        // That of a search that looks elsewhere is not repeated as often.
        series.rig.of(search.looks_elsewhere());
        let offer = (how.offer)(wanted);
        series.show_begin(wanted, search, how);
        let ran = series.run(&offer, &|outcome| how.goal.limits.broken(outcome))?;
        Ok(ran.map(|ran| (series.row(wanted, &ran, how), ran.outcome)))
    }

    fn over(&mut self, search: &S, left: Option<Remaining>) {
        if let Some(row) = self.series.course.rows.last() {
            self.series.say(row, search, self.how, left);
            self.series.show_over(row, search, self.how);
        }
    }
}

impl Series {
    pub fn new(rig: Rig, kept: Vec<Trial>) -> Series {
        Series {
            rig,
            course: Course::new(kept),
            size_name: String::new(),
            size: Size::Fixed(64),
            goals: Vec::new(),
            port_lost: None,
        }
    }

    /// Whether the search ended early: it was stopped, a link was lost, or a trial could not be carried out.
    pub fn is_ended(&self) -> bool {
        self.rig.is_stopped() || self.port_lost.is_some() || self.course.fault.is_some()
    }

    /// Does one trial; `None` when it ended the search. An error does so only if nothing was measured before that is worth
    /// keeping.
    pub fn run(&mut self, offer: &Offer, broken: &dyn Fn(&Outcome) -> Option<Broken>) -> Result<Option<Ran>> {
        let ran = self.rig.run(offer, broken);
        let Some(ran) = self.course.carried(ran)? else { return Ok(None) };
        if ran.stopped || ran.port_lost.is_some() {
            self.port_lost = ran.port_lost;
            return Ok(None);
        }
        Ok(Some(ran))
    }

    /// Carries a search to its end; false when it was interrupted before, or a port was lost.
    pub fn drive<S: Search>(&mut self, search: &mut S, how: &How<'_, S>) -> Result<bool> {
        course::drive(search, &mut Driven { series: self, how })
    }

    fn row<S>(&self, wanted: &Wanted, ran: &Ran, how: &How<'_, S>) -> Trial {
        let mut row = row(wanted, ran, how.goal);
        row.part = how.part_of(wanted).clone();
        row.frame_size.clone_from(&self.size_name);
        if !how.of_rate {
            row.intended_frames_per_second = None;
        }
        row
    }

    /// Shows what is tried now.
    fn show_begin<S: Search>(&mut self, wanted: &Wanted, search: &S, how: &How<'_, S>) {
        let left = self.course.left(search.left());
        let size = self.course.size_number;
        let Some(show) = &self.rig.show else { return };
        show.change(|now| {
            now.part = how.part_of(wanted).to_string();
            now.frame_size.clone_from(&self.size_name);
            (now.of_rate, now.size) = (how.of_rate, size);
        });
        show.trial(wanted.load, wanted.sending_ns(), left);
    }

    /// Shows what came of it.
    fn show_over<S: Search>(&self, row: &Trial, search: &S, how: &How<'_, S>) {
        let Some(show) = &self.rig.show else { return };
        let bound = |(nth, (lower, upper))| {
            let goal = self.goals.get(nth);
            snapshot::Bound { goal: goal.map(Goal::text).unwrap_or_default(), lower, upper }
        };
        let bounds: Vec<_> = search.bounds().into_iter().enumerate().map(bound).collect();
        let known = if bounds.is_empty() { (how.known)(search, self) } else { String::new() };
        show.over(shown(row), bounds, known);
    }

    fn say<S>(&self, row: &Trial, search: &S, how: &How<'_, S>, left: Option<Remaining>) {
        let load = match row.intended_frames_per_second {
            Some(rate) => units::frame_rate(rate),
            None if row.flows.is_some() => units::flow_rate(row.load),
            None => units::count(row.load as u64),
        };
        let known = (how.known)(search, self);
        let ahead = ahead_said(left);
        let lost = match &row.verdict {
            TrialVerdict::Passed => row.verdict_said(),
            TrialVerdict::Loss => format!("lost {}", units::percent(row.lost_ratio())),
            TrialVerdict::SenderShort => {
                format!("sender short by {}", units::percent(row.shortfall_ratio))
            }
            TrialVerdict::SenderUneven => {
                format!("lost {} while this machine was busy", units::percent(row.lost_ratio()))
            }
            TrialVerdict::ReceiverLost => {
                format!("lost {}, at the tester's own receiver", units::percent(row.lost_ratio()))
            }
            TrialVerdict::Unconfirmed => {
                format!(
                    "{} missing, and nobody saw them leave the tester",
                    units::counted(row.lost_frames, "frame")
                )
            }
            other => format!("failed by {other}"),
        };
        let said = format!(
            "{} {}: {load} for {}: {lost}{}{known}{ahead}",
            row.part,
            self.size_name,
            units::time(row.duration_ns + row.then_duration_ns.unwrap_or(0)),
            if known.is_empty() { "" } else { "; " },
        );
        self.rig.say(Note::info(Code::Trial, said));
    }
}

/// A trial as the screen has it.
pub fn shown(row: &Trial) -> snapshot::Trial {
    snapshot::Trial {
        number: row.number.into(),
        load: row.load,
        duration_ns: row.duration_ns + row.then_duration_ns.unwrap_or(0),
        loss_ratio: row.lost_ratio(),
        p99_ns: row.latency_ns.map(|latency| latency.p99),
        verdict: row.verdict.clone(),
    }
}

/// A trial as the report has it.
pub fn row(wanted: &Wanted, ran: &Ran, goal: &Goal) -> Trial {
    let outcome = &ran.outcome;
    // One that lost a port is not judged.
    let verdict = if ran.port_lost.is_some() { TrialVerdict::PortLost } else { goal.verdict(outcome) };
    let stage = match wanted.stage {
        Stage::WarmUp => search::Stage::WarmUp,
        Stage::Estimate => search::Stage::Estimate,
        Stage::Search => search::Stage::Search,
        Stage::Confirm => search::Stage::Confirm,
        Stage::Measure => search::Stage::Measure,
    };
    Trial {
        stage,
        load: wanted.load,
        intended_frames_per_second: Some(wanted.load),
        duration_ns: wanted.duration_ns,
        then_load: wanted.then.map(|then| then.load),
        then_duration_ns: wanted.then.map(|then| then.duration_ns),
        intended_frames: outcome.intended,
        sent_frames: outcome.sent,
        received_frames: outcome.received,
        lost_frames: outcome.lost(),
        loss_ratio: match goal.limits.tolerates_shortfall(outcome) {
            true => outcome.lost() as f64 / outcome.intended.max(1) as f64,
            false => outcome.loss_ratio(),
        },
        shortfall_ratio: outcome.shortfall_ratio(),
        duplicated_frames: outcome.duplicated,
        reordered_frames: outcome.reordered,
        uneven_frames: outcome.uneven,
        excused_frames: outcome.excused,
        steady_lost_frames: outcome.steady,
        missed_frames: outcome.missed,
        unconfirmed_frames: outcome.unconfirmed,
        latency_ns: outcome.latency.as_ref().map(delays),
        last_loss_ns: outcome.last_loss_ns,
        outage_ns: outcome.outage_ns,
        lost_at_end_frames: outcome.lost_at_end,
        repeated: ran.repeated,
        flows: ran.flows,
        cause: match (&verdict, &ran.flows) {
            // These say all that is known.
            (TrialVerdict::PortLost | TrialVerdict::SenderUneven | TrialVerdict::Unconfirmed, _) => None,
            (TrialVerdict::SenderShort, _) => ran.short_by.clone(),
            // Records tell it, and where they were lost is counted.
            (_, Some(flows)) => report::causes::of_flows(flows),
            _ => ran.lost_by.clone(),
        },
        verdict,
        ..Trial::default()
    }
}

/// Delays as the report has them.
pub fn delays(latency: &Latency) -> TrialLatency {
    TrialLatency {
        count: latency.frames,
        min: latency.min_ns,
        mean: latency.mean_ns,
        p50: latency.p50_ns,
        p90: latency.p90_ns,
        p99: latency.p99_ns,
        p999: latency.p999_ns,
        max: latency.max_ns,
        frame_to_frame_p50: latency.frame_to_frame.map(|steps| steps.p50_ns),
        frame_to_frame_p999: latency.frame_to_frame.map(|steps| steps.p999_ns),
        frame_to_frame_max: latency.frame_to_frame.map(|steps| steps.max_ns),
        jitter: latency.frame_to_frame.map(|steps| steps.jitter_ns),
    }
}

/// The trials of one part and size.
pub fn rows_of<'a>(rows: &'a [Trial], part: &'a Part, size: &'a str) -> impl Iterator<Item = &'a Trial> {
    rows.iter().filter(move |row| row.part == *part && row.frame_size == size)
}

fn wanted_of(trial: &Trial) -> Option<Wanted> {
    let stage = match trial.stage {
        search::Stage::WarmUp => Stage::WarmUp,
        search::Stage::Estimate => Stage::Estimate,
        search::Stage::Search => Stage::Search,
        search::Stage::Confirm => Stage::Confirm,
        search::Stage::Measure => Stage::Measure,
        search::Stage::Other(_) => return None,
    };
    let then = trial.then_load.zip(trial.then_duration_ns);
    let then = then.map(|(load, duration_ns)| Then { load, duration_ns });
    Some(Wanted { load: trial.load, duration_ns: trial.duration_ns, then, stage })
}

/// What a trial in a report came to.
pub fn outcome_of(trial: &Trial) -> Outcome {
    Outcome {
        intended: trial.intended_frames,
        sent: trial.sent_frames,
        received: trial.received_frames,
        duplicated: trial.duplicated_frames,
        reordered: trial.reordered_frames,
        uneven: trial.uneven_frames,
        excused: trial.excused_frames,
        steady: trial.steady_lost_frames,
        missed: trial.missed_frames,
        unconfirmed: trial.unconfirmed_frames,
        latency: trial.latency_ns.map(|latency| Latency {
            min_ns: latency.min,
            mean_ns: latency.mean,
            p50_ns: latency.p50,
            p90_ns: latency.p90,
            p99_ns: latency.p99,
            p999_ns: latency.p999,
            max_ns: latency.max,
            frames: latency.count,
            frame_to_frame: latency.frame_to_frame_p999.map(|p999_ns| FrameToFrame {
                p50_ns: latency.frame_to_frame_p50.unwrap_or(0),
                p999_ns,
                max_ns: latency.frame_to_frame_max.unwrap_or(0),
                jitter_ns: latency.jitter.unwrap_or(0),
            }),
        }),
        last_loss_ns: trial.last_loss_ns,
        outage_ns: trial.outage_ns,
        lost_at_end: trial.lost_at_end_frames,
        ..Outcome::default()
    }
}
