//! Measurements at loads that are known or were searched first: latency, loss, bursts, recovery, reset, soaking.

use super::throughput::goals;
use super::{Common, Look, Notes, Sized, Within, throughput, unfinished};
use crate::trials::floor::Known;
use crate::trials::goal::{SHORTFALL, excuse};
use crate::trials::{Goal, How, Offer, Series, frame_sizes, frames_per_second, nanos, rows_of, schedule};
use anyhow::Result;
use report::search::{BurstFound, LatencyAt, LossAt, Part, SearchAxis, Spread, Trial, TrialVerdict};
use report::{Code, Note, Sentence, units};
use spec::{Burst, Finding, Latency, LossCurve, Recovery, Reset, Soak, Written};
use std::time::Duration;
use traffic::schedule::Step;
use traffic::{Rate, Schedule};
use trial::{Left, LossCurvePlan, Repeated, RepeatedPlan, Search, Wanted};

/// An overload is so much of the throughput; afterwards it is half (RFC 2544, 26.5).
const OVERLOAD: f64 = 1.1;
const AFTERWARDS: f64 = 0.5 / OVERLOAD;
/// When a reset is begun.
const RESET_AFTER: Duration = Duration::from_secs(1);

fn spread(of: trial::Spread) -> Spread {
    Spread { count: of.count, mean: of.mean, min: of.min, max: of.max, stddev: of.stddev }
}

fn repetitions(asked: Option<u32>, common: &Common<'_>, standard: u32) -> u32 {
    asked.unwrap_or(if common.in_a_lab() { 3 } else { standard }).max(1)
}

/// The throughput that was given, or the one that is found now, which `then` follows. `None` when there is none, or on
/// interruption.
fn known(
    series: &mut Series,
    given: Option<&Written<Rate>>,
    finding: &Finding,
    then: Left,
    common: &Common<'_>,
    sized: &mut Sized,
    notes: &mut Notes,
) -> Result<Option<f64>> {
    if let Some(rate) = given {
        let link = series.rig.bits_per_second()?;
        return frames_per_second(**rate, sized.result.mean_frame_bytes, link).map(Some);
    }
    series.course.ahead.follows(then);
    let whole = throughput::find(series, finding, common.trial_duration(), sized, notes)?;
    series.course.ahead.follows(Left::default());
    if !whole {
        return Ok(None);
    }
    // That of another goal is not what is wanted.
    Ok(sized.result.of_first_goal().map(|found| found.frames_per_second))
}

/// Is there nothing to measure because the search before was ended, rather than because nothing passed?
fn interrupted(series: &Series) -> bool {
    series.is_ended()
}

fn latency(
    series: &mut Series,
    args: &Latency,
    common: &Common<'_>,
    sized: &mut Sized,
    notes: &mut Notes,
) -> Result<bool> {
    let link = series.rig.bits_per_second()?;
    let mean = sized.result.mean_frame_bytes;
    // RFC 2544, 26.2: 120 s.
    let duration =
        common.asked_duration().unwrap_or(common.trial_duration() * if common.in_a_lab() { 1 } else { 2 });
    let repetitions = repetitions(args.repetitions, common, 20);
    let loads = if args.rates.is_empty() {
        let then = Left::of(repetitions.into(), nanos(duration));
        match known(series, None, &args.finding, then, common, sized, notes)? {
            Some(load) => vec![load],
            None => return Ok(!interrupted(series)),
        }
    } else {
        args.rates.iter().map(|rate| frames_per_second(**rate, mean, link)).collect::<Result<_>>()?
    };
    let plan = RepeatedPlan { loads, trial_ns: nanos(duration), then: None, repetitions };
    let (whole, trials) = repeat(series, &Part::Latency, plan, &Goal::any(), sized, None)?;
    sized.result.latency = trials
        .latencies()
        .iter()
        .map(|found| LatencyAt {
            frames_per_second: found.load,
            repetitions: found.repetitions,
            min_ns: found.min_ns,
            mean_ns: found.mean_ns,
            typical_ns: found.typical_ns,
            worst_case_ns: found.worst_case_ns,
            variation_ns: found.variation_ns,
            max_ns: found.max_ns,
            floor: None,
            frame_to_frame_typical_ns: found.frame_to_frame.map(|steps| steps.p50_ns),
            frame_to_frame_worst_ns: found.frame_to_frame.map(|steps| steps.p999_ns),
            frame_to_frame_max_ns: found.frame_to_frame.map(|steps| steps.max_ns),
            jitter_ns: found.frame_to_frame.map(|steps| steps.jitter_ns),
        })
        .collect();
    if whole {
        // The trials are done: without a floor they are worth no less.
        let mut floors = Known::of(args.floor.as_deref(), &common.job.bench, common.session);
        for at in &mut sized.result.latency {
            let Ok(floors) = &mut floors else { break };
            match floors.at(at.frames_per_second, nanos(duration), &sized.size, &sized.name) {
                Ok(floor) => at.floor = floor,
                Err(error) => notes.warnings.add(Code::FloorUnknown, without_floor(&sized.name, &error)),
            }
        }
        let missing = floors.err().map(|error| without_floor(&sized.name, &error));
        notes.warnings.extend(missing.map(|said| Code::FloorUnknown.says(said)));
    }
    let lost =
        rows_of(&series.course.rows, &Part::Latency, &sized.name).filter(|row| row.loss_ratio > 0.0).count();
    if lost > 0 {
        notes.warnings.add(
            Code::LatencyOfSurvivors,
            format!(
                "frames of {} bytes: {} of latency lost frames: the latency is of those that arrived",
                sized.name,
                units::counted(lost as u64, "trial")
            ),
        );
    }
    testers_trials(series, &Part::Latency, &sized.name, &mut notes.shortfalls);
    if whole && sized.result.latency.is_empty() {
        notes.shortfalls.push(
            format!("frames of {} bytes: no frame arrived whose latency could be taken", sized.name).into(),
        );
    }
    Ok(whole)
}

fn without_floor(size: &str, error: &anyhow::Error) -> String {
    format!("frames of {size} bytes: the latency is without a floor: {error:#}")
}

/// Trials at loads, again and again.
fn repeat(
    series: &mut Series,
    part: &Part,
    plan: RepeatedPlan,
    goal: &Goal,
    sized: &mut Sized,
    command: Option<&str>,
) -> Result<(bool, Repeated)> {
    let closely = matches!(part, Part::Recovery | Part::Reset);
    let size = sized.size.clone();
    let wanted_trials = plan.loads.len() as u64 * u64::from(plan.repetitions);
    let mut search = Repeated::new(plan);
    let offer = |wanted: &Wanted| {
        let mut offer = Offer::steady(wanted.load, wanted.duration_ns, &size);
        offer.closely = closely;
        offer.command = command.map(|command| (command.to_owned(), RESET_AFTER));
        if let Some(then) = wanted.then {
            let step = |end_ns, load| match schedule(load) {
                Schedule::Frames { frames, per_ns } => Step { end_ns, frames, per_ns },
                _ => Step { end_ns, frames: 1, per_ns: 1_000_000_000 },
            };
            let end = wanted.sending_ns();
            offer.schedule = Schedule::Steps {
                steps: [step(wanted.duration_ns, wanted.load), step(end, then.load)].into(),
            };
            offer.duration = Some(Duration::from_nanos(end));
        }
        offer
    };
    let known = |_: &Repeated, _: &Series| String::new();
    let whole = series
        .drive(&mut search, &How { part, again: None, goal, offer: &offer, known: &known, of_rate: true })?;
    if !whole {
        let came = unfinished::trials(series, part, &sized.name, Some(wanted_trials));
        sized.result.unfinished.push(came);
    }
    Ok((whole, search))
}

/// Trials of which nothing is known, because the load was not offered, or the tester lost sight of its frames; or not all,
/// because what was timed had no end.
fn testers_trials(series: &Series, part: &Part, size: &str, shortfalls: &mut Vec<Sentence>) {
    // A time is measured by when frames are missing, whoever lost them; any loss passes there.
    let timed = matches!(part, Part::Recovery | Part::Reset);
    let verdict = |row: &Trial| match (row.missed_frames, row.unconfirmed_frames) {
        (missed, unconfirmed) if timed && unconfirmed > missed => TrialVerdict::Unconfirmed,
        (missed, _) if timed && missed > 0 => TrialVerdict::ReceiverLost,
        _ => row.verdict.clone(),
    };
    let verdicts = rows_of(&series.course.rows, part, size).map(verdict);
    let short: Vec<TrialVerdict> = verdicts.filter(TrialVerdict::is_the_testers).collect();
    if !short.is_empty() {
        let excuse = excuse(short.iter());
        let trials = units::counted(short.len() as u64, "trial");
        shortfalls.push(Sentence::from((
            format!(
                "frames of {size} bytes: not determined in {trials} of {part}: {excuse} however often it was tried"
            ),
            "do it again on a quieter machine",
        )));
    }
    if timed {
        let rows: Vec<_> = rows_of(&series.course.rows, part, size).collect();
        shortfalls.extend(not_over(&rows, part, size));
    }
}

/// Some lengths may be longer than they are said to be.
fn inexact_bursts(series: &Series, search: &trial::Burst, size: &str) -> Sentence {
    let excuse = excuse(rows_of(&series.course.rows, &Part::Burst, size).map(|row| &row.verdict));
    let said = format!(
        "frames of {size} bytes: not determined in {} of {} of burst: {excuse} however often longer bursts were tried",
        search.inexact(),
        units::counted(search.lengths().len() as u64, "length")
    );
    (said, "do it again on a quieter machine").into()
}

/// What had no end within the trial lasted longer than is said. (A single frame that was lost at the end is no outage that is
/// longer than one before.)
fn not_over(rows: &[&Trial], part: &Part, size: &str) -> Option<Sentence> {
    let open = |row: &&&Trial| {
        let lost_ns =
            row.lost_at_end_frames as f64 / row.intended_frames_per_second.unwrap_or(row.load) * 1e9;
        row.lost_at_end_frames > 0
            && (*part != Part::Reset || lost_ns >= 0.99 * row.outage_ns.unwrap_or(0) as f64)
    };
    let open = rows.iter().filter(open).count();
    (open > 0).then(|| {
        let said = format!(
            "frames of {size} bytes: not determined in {open} of {} of {part}: frames were still lost when the trial ended, so \
             that it lasted longer than is said",
            units::counted(rows.len() as u64, "trial")
        );
        (said, "make the trials longer (`.trial_duration`)").into()
    })
}

/// A load that was not offered is no point of the curve, nor is one of which the tester lost sight.
fn testers_part(curve: &[LossAt], size: &str, notes: &mut Notes) {
    let blind: Vec<f64> = curve.iter().map(|at| at.tester_ratio).filter(|&ratio| ratio > 0.0).collect();
    if let Some(worst) = blind.iter().copied().reduce(f64::max) {
        notes.shortfalls.push(format!(
            "frames of {size} bytes: not determined at {} of {}: the tester's own receiver lost frames, or nobody saw them leave ({} at most); what the device lost there is the least that it may have lost",
            blind.len(),
            units::counted(curve.len() as u64, "load"),
            units::percent(worst)
        ).into());
    }
    let short: Vec<f64> =
        curve.iter().map(|at| at.shortfall_ratio).filter(|&ratio| ratio > SHORTFALL).collect();
    if let Some(worst) = short.iter().copied().reduce(f64::max) {
        notes.shortfalls.push(format!(
            "frames of {size} bytes: not determined at all loads: the sender fell short at {} of {}, by {} at most, and there the device was tried with less",
            short.len(),
            units::counted(curve.len() as u64, "load"),
            units::percent(worst)
        ).into());
    }
}

/// Missing frames of a trial that may be the tester's own loss.
fn testers(row: &Trial) -> u64 {
    (row.missed_frames + row.unconfirmed_frames).min(row.lost_frames)
}

fn of_sent(row: &Trial, frames: u64) -> f64 {
    (frames as f64 / row.sent_frames.max(1) as f64).min(1.0)
}

fn loss(
    series: &mut Series,
    args: &LossCurve,
    common: &Common<'_>,
    sized: &mut Sized,
    notes: &mut Notes,
) -> Result<bool> {
    anyhow::ensure!(
        args.step() > 0.0 && args.step() <= 1.0,
        "`.step`: give more than 0% (RFC 2544 asks for no more than 10%)"
    );
    let greatest = sized.result.greatest;
    let trial_ns = nanos(common.trial_duration());
    let mut curve = trial::LossCurve::new(LossCurvePlan {
        greatest,
        step_ratio: args.step(),
        trial_ns,
        limits: Goal::no_loss().limits,
    });
    let size = sized.size.clone();
    let offer = |wanted: &Wanted| Offer::steady(wanted.load, wanted.duration_ns, &size);
    let known = |_: &trial::LossCurve, _: &Series| String::new();
    let goal = Goal::no_loss();
    let how =
        How { part: &Part::Loss, again: None, goal: &goal, offer: &offer, known: &known, of_rate: true };
    let whole = series.drive(&mut curve, &how)?;
    sized.result.loss_curve = rows_of(&series.course.rows, &Part::Loss, &sized.name)
        .map(|row| LossAt {
            frames_per_second: row.load,
            load_ratio: row.load / greatest,
            loss_ratio: of_sent(row, row.lost_frames.saturating_sub(testers(row))),
            tester_ratio: of_sent(row, testers(row)),
            shortfall_ratio: row.shortfall_ratio,
        })
        .collect();
    testers_part(&sized.result.loss_curve, &sized.name, notes);
    if !whole {
        sized.result.unfinished.push(unfinished::trials(series, &Part::Loss, &sized.name, None));
    }
    Ok(whole)
}

fn burst(
    series: &mut Series,
    args: &Burst,
    common: &Common<'_>,
    sized: &mut Sized,
    notes: &mut Notes,
) -> Result<bool> {
    let rate = sized.result.greatest;
    let greatest = args.max_burst.as_deref().copied().unwrap_or((rate * 2.0) as u64).max(args.step());
    let plan = trial::BurstPlan {
        greatest,
        step: args.step().max(1),
        repetitions: repetitions(args.repetitions, common, 50),
        retries: 1,
    };
    let mut search = trial::Burst::new(plan)?;
    let (given, then) = (args.throughput.as_ref(), search.left());
    let Some(throughput) = known(series, given, &args.finding, then, common, sized, notes)? else {
        return Ok(!interrupted(series));
    };
    if throughput >= rate * 0.999 {
        notes.warnings.add(Code::BurstNotSearched, format!(
            "frames of {} bytes: the device forwards the highest rate there is, so that bursts need no buffer: not searched (RFC 9004, 5.1)",
            sized.name
        ));
        return Ok(true);
    }
    let size = sized.size.clone();
    let offer = |wanted: &Wanted| Offer {
        schedule: schedule(rate),
        count: Some(wanted.load as u64),
        duration: None,
        ..Offer::steady(rate, 0, &size)
    };
    let known = |search: &trial::Burst, _: &Series| match search.lengths() {
        [] => String::new(),
        lengths => format!("{} found", units::counted(lengths.len() as u64, "length")),
    };
    let goal = Goal::no_loss();
    let whole = series.drive(
        &mut search,
        &How { part: &Part::Burst, again: None, goal: &goal, offer: &offer, known: &known, of_rate: false },
    )?;
    if !whole {
        let direction = trial::Direction::Greatest;
        let of = (&Part::Burst, sized.name.as_str());
        let came = unfinished::bound(series, of, &goal, &SearchAxis::BurstFrames, direction);
        sized.result.unfinished.push(came);
    }
    if let Some(frames) = search.spread() {
        let time = trial::buffer_time(frames.mean, rate, throughput);
        sized.result.burst = Some(BurstFound {
            frames: spread(frames),
            burst_frames_per_second: rate,
            implied_buffer_s: time.map(|time| time.implied_s),
            corrected_buffer_s: time.map(|time| time.corrected_s),
            at_limit: search.at_limit(),
            step_frames: Some(search.plan().step),
            longest_tried_frames: Some(greatest),
            throughput_frames_per_second: Some(throughput),
        });
        if search.inexact() > 0 {
            notes.shortfalls.push(inexact_bursts(series, &search, &sized.name));
        }
        if search.at_limit() {
            let frames = units::counted(greatest, "frame");
            notes.shortfalls.push(Sentence::from((
                format!(
                    "frames of {} bytes: bursts of {frames} pass, the longest that were tried",
                    sized.name
                ),
                "raise `.max_burst` (RFC 9004, 5.4)",
            )));
        }
    }
    Ok(whole)
}

fn recovery(
    series: &mut Series,
    args: &Recovery,
    common: &Common<'_>,
    sized: &mut Sized,
    notes: &mut Notes,
) -> Result<bool> {
    let trial_ns = nanos(common.trial_duration());
    let repetitions = repetitions(args.repetitions, common, 20);
    let (given, then) = (args.throughput.as_ref(), Left::of(repetitions.into(), 2 * trial_ns));
    let Some(throughput) = known(series, given, &args.finding, then, common, sized, notes)? else {
        return Ok(!interrupted(series));
    };
    let load = (throughput * OVERLOAD).min(sized.result.greatest.max(throughput));
    let plan = RepeatedPlan { loads: vec![load], trial_ns, then: Some((AFTERWARDS, trial_ns)), repetitions };
    let (whole, trials) = repeat(series, &Part::Recovery, plan, &Goal::any(), sized, None)?;
    sized.result.recovery_ns = trials.recoveries(0).map(spread);
    testers_trials(series, &Part::Recovery, &sized.name, &mut notes.shortfalls);
    if trials.at(0).iter().any(|outcome| outcome.lost() == 0) {
        notes.warnings.add(Code::NothingToRecover, format!(
            "frames of {} bytes: an overload of {} lost nothing, so that there was nothing to recover from",
            sized.name,
            units::frame_rate(load)
        ));
    }
    Ok(whole)
}

fn reset(
    series: &mut Series,
    args: &Reset,
    common: &Common<'_>,
    sized: &mut Sized,
    notes: &mut Notes,
) -> Result<bool> {
    let (trial_ns, repetitions) = (nanos(common.trial_duration()), args.repetitions.unwrap_or(1).max(1));
    let then = Left::of(repetitions.into(), trial_ns);
    let Some(load) = known(series, args.rate.as_ref(), &args.finding, then, common, sized, notes)? else {
        return Ok(!interrupted(series));
    };
    if args.command.is_none() {
        series.rig.say(Note::warning(
            Code::ActNow,
            "reset the device now, once in each trial: by hardware, by software, or by taking its power for 10 s (RFC 2544, 26.6)",
        ));
    }
    let plan = RepeatedPlan { loads: vec![load], trial_ns, then: None, repetitions };
    let (whole, trials) = repeat(series, &Part::Reset, plan, &Goal::any(), sized, args.command.as_deref())?;
    sized.result.outage_ns = trials.outages(0).map(spread);
    testers_trials(series, &Part::Reset, &sized.name, &mut notes.shortfalls);
    if whole && trials.at(0).iter().all(|outcome| outcome.lost() == 0) {
        notes.warnings.add(
            Code::ResetNotSeen,
            format!(
                "frames of {} bytes: nothing was lost: if the device was reset, it forwarded meanwhile",
                sized.name
            ),
        );
    }
    Ok(whole)
}

fn soak(
    series: &mut Series,
    args: &Soak,
    common: &Common<'_>,
    sized: &mut Sized,
    notes: &mut Notes,
) -> Result<bool> {
    let goal = Goal::parse(args.goal())?;
    let link = series.rig.bits_per_second()?;
    let load = frames_per_second(*args.rate, sized.result.mean_frame_bytes, link)?;
    // Long enough that what happens now and then happens.
    let duration = common.asked_duration().unwrap_or(if common.in_a_lab() {
        Duration::from_secs(10)
    } else {
        Duration::from_secs(1800)
    });
    let plan = RepeatedPlan { loads: vec![load], trial_ns: nanos(duration), then: None, repetitions: 1 };
    let (whole, trials) = repeat(series, &Part::Soak, plan, &goal, sized, None)?;
    for outcome in trials.at(0) {
        let verdict = goal.verdict(outcome);
        if verdict != TrialVerdict::Passed {
            notes.shortfalls.push(
                format!(
                    "frames of {} bytes at {}: {verdict} ({} of {} lost)",
                    sized.name,
                    units::frame_rate(load),
                    units::count(outcome.lost()),
                    units::counted(outcome.sent, "frame")
                )
                .into(),
            );
        }
    }
    debug_assert!(!whole || trials.next().is_none());
    Ok(whole)
}

impl Look for Latency {
    fn check(&self, job: &spec::Search) -> Result<()> {
        goals(&self.finding)?;
        let sizes = frame_sizes(job.bench.size())?;
        let names: Vec<&str> = sizes.iter().map(|(name, _)| name.as_str()).collect();
        crate::trials::floor::check(self.floor.as_deref(), &job.bench, &names)
    }

    fn finding(&self) -> Option<(&Finding, bool)> {
        self.rates.is_empty().then_some((&self.finding, true))
    }

    fn look(&self, within: &mut Within<'_, '_>) -> Result<bool> {
        let Within { series, common, sized, notes, .. } = within;
        latency(series, self, common, sized, notes)
    }
}

impl Look for LossCurve {
    fn check(&self, _: &spec::Search) -> Result<()> {
        Ok(())
    }

    fn look(&self, within: &mut Within<'_, '_>) -> Result<bool> {
        let Within { series, common, sized, notes, .. } = within;
        loss(series, self, common, sized, notes)
    }
}

impl Look for Burst {
    fn check(&self, _: &spec::Search) -> Result<()> {
        goals(&self.finding).map(drop)
    }

    fn finding(&self) -> Option<(&Finding, bool)> {
        self.throughput.is_none().then_some((&self.finding, false))
    }

    fn look(&self, within: &mut Within<'_, '_>) -> Result<bool> {
        let Within { series, common, sized, notes, .. } = within;
        burst(series, self, common, sized, notes)
    }
}

impl Look for Recovery {
    fn check(&self, _: &spec::Search) -> Result<()> {
        goals(&self.finding).map(drop)
    }

    fn finding(&self) -> Option<(&Finding, bool)> {
        self.throughput.is_none().then_some((&self.finding, true))
    }

    fn look(&self, within: &mut Within<'_, '_>) -> Result<bool> {
        let Within { series, common, sized, notes, .. } = within;
        recovery(series, self, common, sized, notes)
    }
}

impl Look for Reset {
    fn check(&self, _: &spec::Search) -> Result<()> {
        goals(&self.finding).map(drop)
    }

    fn finding(&self) -> Option<(&Finding, bool)> {
        self.rate.is_none().then_some((&self.finding, true))
    }

    fn look(&self, within: &mut Within<'_, '_>) -> Result<bool> {
        let Within { series, common, sized, notes, .. } = within;
        reset(series, self, common, sized, notes)
    }
}

impl Look for Soak {
    fn check(&self, _: &spec::Search) -> Result<()> {
        crate::trials::Goal::parse(self.goal()).map(drop)
    }

    fn look(&self, within: &mut Within<'_, '_>) -> Result<bool> {
        let Within { series, common, sized, notes, .. } = within;
        soak(series, self, common, sized, notes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_had_no_end_within_the_trial_is_not_told_as_if_it_had() {
        let row = |lost_at_end_frames, outage_ms: u64| Trial {
            load: 1000.0,
            lost_at_end_frames,
            outage_ns: Some(outage_ms * 1_000_000),
            ..Trial::default()
        };
        let [over, open, one] = [row(0, 300), row(80, 80), row(1, 300)];
        assert_eq!(not_over(&[&over, &one], &Part::Reset, "64"), None);
        let said = not_over(&[&over, &open], &Part::Reset, "64").expect("a shortfall");
        assert!(
            said.to_string().contains("not determined in 1 of 2 trials")
                && said.to_string().contains("`.trial_duration`"),
            "{said}"
        );
        // Whoever loses a frame at the very end has not recovered.
        assert!(not_over(&[&one], &Part::Recovery, "64").is_some());
    }

    #[test]
    fn a_load_that_was_not_offered_is_said() {
        let at = |shortfall_ratio| LossAt { shortfall_ratio, ..LossAt::default() };
        let mut notes = Notes::default();
        testers_part(&[at(0.0)], "64", &mut notes);
        assert!(notes.shortfalls.is_empty());
        testers_part(&[at(0.02), at(0.01), at(0.0)], "64", &mut notes);
        let [said] = &notes.shortfalls[..] else { panic!("{:?}", notes.shortfalls) };
        let said = said.to_string();
        assert!(said.contains("2 of 3 loads") && said.contains("2.00 %"), "{said}");
    }

    #[test]
    fn a_load_that_the_testers_receiver_lost_is_said_and_not_the_devices() {
        let row = Trial { sent_frames: 1000, lost_frames: 50, missed_frames: 30, ..Trial::default() };
        assert_eq!((testers(&row), of_sent(&row, testers(&row))), (30, 0.03));
        let at = |tester_ratio| LossAt { tester_ratio, ..LossAt::default() };
        let mut notes = Notes::default();
        testers_part(&[at(0.03), at(0.0)], "64", &mut notes);
        let [said] = &notes.shortfalls[..] else { panic!("{:?}", notes.shortfalls) };
        let said = said.to_string();
        assert!(said.contains("1 of 2 loads") && said.contains("3.00 %"), "{said}");
    }
}
