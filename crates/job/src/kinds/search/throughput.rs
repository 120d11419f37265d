//! `netdyno search throughput`: the highest rate that passes. Other searches find it first, too.

use super::{Look, Notes, Sized, Within, axis, unfinished};
use crate::trials::goal::excuse;
use crate::trials::{Goal, How, Offer, Series, nanos, outcome_of, rows_of};
use anyhow::{Result, bail};
use report::search::{GoalOutcome, GoalResult, Part, SearchAxis, Trial, TrialVerdict};
use report::{Code, Sentence, units};
use spec::{Axis, Finding, Method, Throughput};
use std::time::Duration;
use trial::mlr::Plan;
use trial::{Bisect, BisectPlan, Direction, MlrSearch, Resolution, Wanted};

/// Searches that take longer than this do not converge: in trials of full length, for each goal.
const MOST_TRIALS: f64 = 60.0;

pub fn check(args: &Throughput) -> Result<()> {
    let goals = goals(&args.finding)?;
    if args.axis != Axis::Rate {
        if args.rate.is_none() {
            bail!("`.axis`: at which rate? Give `.rate` 100kpps or 1gbps");
        }
        if goals.iter().any(|goal| goal.by_one_trial().is_none()) {
            bail!("`.goal`: exceed, sum and trial are of MLRsearch; with `.axis` one trial decides");
        }
        if goals.len() > 1 {
            bail!("`.axis`: one `.goal` at a time, but for the rate");
        }
    } else if args.rate.is_some() {
        bail!("`.rate`: the rate is what is searched for; `.max` and `.min` bound it");
    }
    Ok(())
}

/// The goals asked for.
pub fn goals(finding: &Finding) -> Result<Vec<Goal>> {
    if finding.short.is_some() && finding.method != Method::Bisect {
        bail!("`.short` is of `.method` bisect: MLRsearch begins with short trials by itself");
    }
    if !(1e-6..1.0).contains(&finding.precision()) {
        bail!("`.precision`: give more than 0.0001% and less than 100%");
    }
    let goals = finding.goals().into_iter().map(Goal::parse).collect::<Result<Vec<_>>>()?;
    if finding.method == Method::Bisect {
        if goals.len() > 1 {
            bail!("`.method` bisect searches for one goal: give one `.goal`, or `.method` mlrsearch");
        }
        let Some(goals) = goals.iter().map(Goal::by_one_trial).collect() else {
            bail!("`.goal`: exceed, sum and trial are of MLRsearch; bisection decides by one trial");
        };
        return Ok(goals);
    }
    Ok(goals)
}

/// What is to be said where a goal has trials of its own length, and another was `asked` for. Refused, if with it nothing
/// of the search would be as asked: `measures` trials of that length besides.
pub fn own_lengths(finding: &Finding, asked: Option<Duration>, measures: bool) -> Result<Option<String>> {
    let Some(asked) = asked.filter(|_| finding.method == Method::Mlrsearch) else { return Ok(None) };
    let goals = goals(finding)?;
    let own = goals.iter().zip(finding.goals()).filter_map(|(goal, text)| Some((text, goal.trial?)));
    let others: Vec<_> = own.filter(|(_, own)| *own != asked).collect();
    let Some((text, own)) = others.first() else { return Ok(None) };
    let said = format!(
        "`.trial_duration` {}: the goal `{text}` has trials of {} of its own; `.goal` {text},trial={} changes that",
        written(asked),
        written(*own),
        written(asked)
    );
    if others.len() == goals.len() && !measures {
        bail!("{said}, or leave `.trial_duration` out");
    }
    Ok(Some(said))
}

/// A time as options take it.
fn written(time: Duration) -> String {
    let ns = time.as_nanos();
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let unit = units.into_iter().find(|(unit, _)| ns.is_multiple_of(*unit));
    unit.map_or_else(|| format!("{ns}ns"), |(unit, name)| format!("{}{name}", ns / unit))
}

/// What the trials of a throughput are for, in the result.
const PART: &Part = &Part::Throughput;
const AXIS: &SearchAxis = &SearchAxis::FramesPerSecond;

/// The bounds that trials found, of each goal; and whether they are what was asked for, rather than what was known when it
/// was interrupted; and whether its time was over.
type Bounds = (bool, bool, Vec<trial::mlr::Found>);

/// By halving the range, for one goal.
fn by_bisection(
    series: &mut Series,
    finding: &Finding,
    first: &Goal,
    trial: Duration,
    sized: &Sized,
    notes: &mut Notes,
) -> Result<Bounds> {
    let size = &sized.size;
    let offer = |wanted: &Wanted| Offer::steady(wanted.load, wanted.duration_ns, size);
    let rate = |rate: f64| units::frame_rate(rate);
    let mut bisect = Bisect::new(BisectPlan {
        least: sized.result.least,
        greatest: sized.result.greatest,
        resolution: Resolution::Relative(finding.precision()),
        direction: Direction::Greatest,
        limits: first.limits,
        trial_ns: nanos(trial),
        short_ns: nanos(finding.short.as_deref().copied().unwrap_or(trial).min(trial)),
        retries: 0,
        retry_loss_ratio: 0.0,
        in_parts: true,
        enough: finding.precision_at_least(),
    })?;
    let known = |bisect: &Bisect, series: &Series| {
        let tried = tried(series, PART, &sized.name, first);
        known((bisect.passed(), bisect.failed()), tried, Direction::Greatest, &rate)
    };
    let how = How { part: PART, again: None, goal: first, offer: &offer, known: &known, of_rate: true };
    let whole = series.drive(&mut bisect, &how)?;
    if bisect.is_inconsistent() {
        notes.warnings.add(Code::DeviceInconsistent, format!(
            "frames of {} bytes: what passed a short trial failed a full one: the device does not do the same each time",
            sized.name
        ));
    }
    let found = trial::mlr::Found {
        lower: bisect.passed(),
        upper: bisect.failed(),
        conditional_throughput: None,
        reached: bisect.is_reached(),
    };
    Ok((whole, false, vec![found]))
}

/// By MLRsearch (docs/method.md), for all goals at once.
fn by_mlrsearch(
    series: &mut Series,
    finding: &Finding,
    goals: &[Goal],
    trial: Duration,
    sized: &Sized,
    notes: &mut Notes,
) -> Result<Bounds> {
    let Some(first) = goals.first() else { bail!("a search needs a goal") };
    let size = &sized.size;
    let offer = |wanted: &Wanted| Offer::steady(wanted.load, wanted.duration_ns, size);
    let rate = |rate: f64| units::frame_rate(rate);
    let goal = |goal: &Goal| {
        let trial = goal.trial.unwrap_or(trial).as_secs_f64();
        let mut wanted = trial::Goal::rfc2544(trial, finding.precision());
        if goal.trial.is_some() {
            wanted.initial_trial_s = trial;
        }
        wanted.limits = goal.limits;
        wanted.exceed_ratio = goal.exceed;
        wanted.duration_sum_s = goal.sum.map_or(trial, |sum| sum.as_secs_f64());
        wanted
    };
    let wanted: Vec<_> = goals.iter().map(goal).collect();
    let most_s = wanted.iter().map(|goal| goal.duration_sum_s.max(goal.final_trial_s) * MOST_TRIALS).sum();
    let plan = Plan {
        goals: wanted,
        least: sized.result.least,
        greatest: sized.result.greatest,
        warm_up_s: 0.0,
        most_s,
        enough: finding.precision_at_least(),
    };
    let mut mlr = MlrSearch::new(plan)?;
    let known = |mlr: &MlrSearch, series: &Series| {
        let found = mlr.found();
        if found.iter().all(|found| found.lower.or(found.upper).is_none()) {
            return String::new();
        }
        let of = |(goal, found): (&Goal, &trial::mlr::Found)| {
            let tried = tried(series, PART, &sized.name, goal);
            match known((found.lower, found.upper), tried, Direction::Greatest, &rate) {
                text if text.is_empty() => "unknown".to_owned(),
                text => text,
            }
        };
        goals.iter().zip(&found).map(of).collect::<Vec<_>>().join(", ")
    };
    let how = How { part: PART, again: None, goal: first, offer: &offer, known: &known, of_rate: true };
    let whole = series.drive(&mut mlr, &how)?;
    if mlr.timed_out() {
        let spent = units::time((most_s * 1e9) as u64);
        notes.shortfalls.push(Sentence::from((
            format!(
                "frames of {} bytes: the search did not converge in {spent} of trials: the device does not do the same \
                 each time, or the precision is too much to ask for",
                sized.name
            ),
            "set a goal with exceed=50% and a sum of many trials, or another `.precision`",
        )));
    }
    Ok((whole, mlr.timed_out(), mlr.found()))
}

/// Finds the throughput of one frame size; false when interrupted.
pub fn find(
    series: &mut Series,
    finding: &Finding,
    trial: Duration,
    sized: &mut Sized,
    notes: &mut Notes,
) -> Result<bool> {
    let goals: Vec<_> = goals(finding)?.into_iter().map(|goal| goal.within(finding.precision())).collect();
    series.goals.clone_from(&goals);
    // Verdicts of single trials are by the first goal.
    let Some(first) = goals.first().copied() else { bail!("a search needs a goal") };
    let (part, rate) = (PART, |rate: f64| units::frame_rate(rate));
    let (whole, timed_out, found) = match finding.method {
        Method::Bisect => by_bisection(series, finding, &first, trial, sized, notes)?,
        Method::Mlrsearch => by_mlrsearch(series, finding, &goals, trial, sized, notes)?,
    };
    let rows: Vec<_> = rows_of(&series.course.rows, part, &sized.name).collect();
    flapping(&rows, &sized.name, notes);
    let mean = sized.result.mean_frame_bytes;
    // Of a search that did not come to its end no value is a result, and what was not tried is not said.
    let (decided, open) = by_decided(&goals, &found, (whole, timed_out));
    let unfinished = open
        .into_iter()
        .map(|goal| unfinished::bound(series, (part, &sized.name), goal, AXIS, Direction::Greatest));
    sized.result.unfinished.extend(unfinished);
    let enough = finding.precision_at_least();
    sized.result.goals = by_goal(&goals, &found, (whole, timed_out), enough);
    for (goal, found) in decided {
        let near = nearness(found);
        let wide = is_wide(found, enough);
        let undetermined = (!found.reached && !wide && !timed_out).then(|| {
            let tried = rows.iter().map(|row| (row.load, &row.verdict));
            let excuse = excuse(open_verdicts(tried, (found.lower, found.upper)));
            not_determined(found.lower, found.upper, &excuse, &rate)
        });
        if let Some(near) = near.filter(|_| wide) {
            notes.warnings.add(Code::PrecisionLess, coarser(&sized.name, goal, near, finding.precision()));
        }
        let throughput = found.lower.map(|lower| report::search::Throughput {
            failed_frames_per_second: found.upper,
            conditional_frames_per_second: found.conditional_throughput,
            frame_size: sized.name.clone(),
            goal: goal.text(),
            reached: found.reached || wide,
            ..report::search::Throughput::of(lower, mean)
        });
        let undecided = undetermined.is_some();
        if let Some(said) = undetermined {
            notes.shortfalls.push(said.behind(&format!("frames of {} bytes, {}: ", sized.name, goal.text())));
        } else if throughput.is_none() {
            let least = found.upper.unwrap_or(sized.result.least);
            notes.shortfalls.push(
                format!(
                    "frames of {} bytes: no throughput with {}: not even {} passed",
                    sized.name,
                    goal.text(),
                    units::frame_rate(least)
                )
                .into(),
            );
        }
        if throughput.is_none() && undecided {
            // That nothing passed is not known either.
            let open = unfinished::bound(series, (part, &sized.name), goal, AXIS, Direction::Greatest);
            sized.result.unfinished.push(open);
            continue;
        }
        sized.result.throughput.push(throughput);
    }
    Ok(whole)
}

/// Of a search that came to its end, or whose time was over: is there an answer, if only that nothing could be judged?
fn is_decided(found: &trial::mlr::Found, (whole, timed_out): (bool, bool)) -> bool {
    whole && (found.lower.is_some() || found.reached || !timed_out)
}

/// The goals of which something was found, or nothing could be judged, each with it, and those that the search left open. Each
/// goal stands by itself.
fn by_decided<'a>(
    goals: &'a [Goal],
    found: &'a [trial::mlr::Found],
    (whole, timed_out): (bool, bool),
) -> (Vec<(&'a Goal, &'a trial::mlr::Found)>, Vec<&'a Goal>) {
    let decided = |(_, found): &(&Goal, &trial::mlr::Found)| is_decided(found, (whole, timed_out));
    let (decided, open): (Vec<_>, Vec<_>) = goals.iter().zip(found).partition(decided);
    (decided, open.into_iter().map(|(goal, _)| goal).collect())
}

/// What came of each goal, in their order.
fn by_goal(goals: &[Goal], found: &[trial::mlr::Found], ended: (bool, bool), enough: f64) -> Vec<GoalResult> {
    let came = |(goal, found): (&Goal, &trial::mlr::Found)| {
        let decided = is_decided(found, ended);
        GoalResult {
            goal: goal.text(),
            outcome: match () {
                () if !decided => GoalOutcome::Unfinished,
                () if !found.reached && !is_wide(found, enough) => GoalOutcome::NotDetermined,
                () if found.lower.is_none() => GoalOutcome::NothingPassed,
                () => GoalOutcome::Found,
            },
            // Meanwhile bounds are by short trials, too: `unfinished` has them with their lengths.
            passed_frames_per_second: found.lower.filter(|_| decided),
            failed_frames_per_second: found.upper.filter(|_| decided),
        }
    };
    goals.iter().zip(found).map(came).collect()
}

/// The bounds are not as near as was asked, and near enough where trials could not be judged.
fn is_wide(found: &trial::mlr::Found, enough: f64) -> bool {
    !found.reached && nearness(found).is_some_and(|near| near <= enough)
}

/// How near the bounds are, relative to the upper one.
fn nearness(found: &trial::mlr::Found) -> Option<f64> {
    let (lower, upper) = found.lower.zip(found.upper)?;
    (upper > 0.0).then(|| (upper - lower) / upper)
}

/// That the bounds are near, but not as near as on a quieter machine.
fn coarser(size: &str, goal: &Goal, near: f64, precision: f64) -> Sentence {
    let said = format!(
        "frames of {size} bytes, {}: determined to {}, not to {}: between these loads this machine was too busy to judge trials",
        goal.text(),
        units::percent(near),
        units::percent(precision)
    );
    (said, "search again on a quieter machine for more, or say by `.precision` what it must be").into()
}

/// What trials of loads between these bounds came to, by which the search ended without more. (Of none there the whole range.)
pub(super) fn open_verdicts<'a>(
    tried: impl Iterator<Item = (f64, &'a TrialVerdict)> + Clone,
    (passed, failed): (Option<f64>, Option<f64>),
) -> impl Iterator<Item = &'a TrialVerdict> {
    let inside = move |load: f64| {
        passed.is_none_or(|passed| load > passed) && failed.is_none_or(|failed| load < failed)
    };
    let any = tried.clone().any(|(load, verdict)| inside(load) && verdict.is_the_testers());
    tried.filter(move |(load, _)| !any || inside(*load)).map(|(_, verdict)| verdict)
}

/// A part's trials of one size, as a goal sees them.
pub(super) fn tried<'a>(
    series: &'a Series,
    part: &'a Part,
    size: &'a str,
    goal: &'a Goal,
) -> impl Iterator<Item = (f64, Option<trial::Broken>)> + 'a {
    rows_of(&series.course.rows, part, size).map(|row| (row.load, goal.limits.broken(&outcome_of(row))))
}

/// That, and why, no trial could say more, in words.
pub(super) fn not_determined(
    passed: Option<f64>,
    failed: Option<f64>,
    excuse: &str,
    show: &dyn Fn(f64) -> String,
) -> Sentence {
    let known = match between(passed, failed, show) {
        known if known.is_empty() => "nothing is certain".to_owned(),
        known => format!("certain is only: {known}"),
    };
    let said = format!("not determined, because {excuse} however often it was tried: {known}");
    let remedy = "search again on a quieter machine, or with lower loads (`.max`) where this one cannot do more; `netdyno \
                  doctor` says what it could do better";
    (said, remedy).into()
}

/// What is known of the bounds, in words.
pub(super) fn between(passed: Option<f64>, failed: Option<f64>, show: &dyn Fn(f64) -> String) -> String {
    match (passed, failed) {
        (Some(passed), Some(failed)) => format!("between {} and {}", show(passed), show(failed)),
        (Some(passed), None) => format!("{} or more", show(passed)),
        (None, Some(failed)) => format!("less than {}", show(failed)),
        (None, None) => String::new(),
    }
}

/// What is known of the bounds while a search goes on, in words, and the load between them that could not be judged last.
pub(super) fn known(
    (passed, failed): (Option<f64>, Option<f64>),
    tried: impl Iterator<Item = (f64, Option<trial::Broken>)>,
    direction: Direction,
    show: &dyn Fn(f64) -> String,
) -> String {
    let axis = |value: f64| if direction == Direction::Least { -value } else { value };
    let beyond = |load: f64| passed.is_none_or(|passed| axis(load) > axis(passed));
    let inside = |load: f64| beyond(load) && failed.is_none_or(|failed| axis(load) < axis(failed));
    let testers = |broken: Option<trial::Broken>| broken.is_some_and(trial::Broken::is_the_testers);
    let open = tried.filter(|(load, broken)| inside(*load) && testers(*broken)).last();
    let known = between(passed, failed, show);
    let Some((load, _)) = open else { return known };
    let unjudged = format!("{} could not be judged", show(load));
    if known.is_empty() { unjudged } else { format!("{known} ({unjudged})") }
}

/// The device lost frames of a load although no fewer frames came through whole at one no lower: whatever it forwards and
/// buffers, if that is always the same it cannot do so. That far fewer come through of more is possible, but has to be reported.
fn flapping(rows: &[&Trial], size: &str, notes: &mut Notes) {
    let inverted = rows.iter().any(|failed| {
        let by_device = failed.verdict != TrialVerdict::Passed && !failed.verdict.is_the_testers();
        by_device
            && rows.iter().any(|passed| {
                passed.lost_frames == 0
                    && passed.sent_frames >= failed.sent_frames
                    && passed.load >= failed.load
            })
    });
    let collapsed = rows.iter().any(|failed| {
        let fewer =
            |whole: u64| failed.verdict == TrialVerdict::Loss && failed.received_frames < whole * 3 / 4;
        rows.iter().any(|passed| {
            passed.lost_frames == 0
                && passed.load <= failed.load
                && passed.duration_ns <= failed.duration_ns
                && fewer(passed.received_frames)
        })
    });
    if !inverted && collapsed {
        notes.warnings.add(Code::OverloadCollapse, format!(
            "frames of {size} bytes: of a load far fewer frames came through than of a lower one in no more time: the device collapses under overload, or it, or this machine, does not do the same each time"
        ));
    }
    if inverted {
        notes.warnings.add(Code::DeviceInconsistent, format!(
            "frames of {size} bytes: frames of a load were lost although no fewer came through whole at one no lower: the device, or this machine, does not do the same each time"
        ));
    }
}

impl Look for Throughput {
    fn check(&self, _: &spec::Search) -> Result<()> {
        check(self)
    }

    fn finding(&self) -> Option<(&Finding, bool)> {
        Some((&self.finding, false))
    }

    fn look(&self, within: &mut Within<'_, '_>) -> Result<bool> {
        let Within { series, common, sized, search, notes } = within;
        match self.axis {
            Axis::Rate => find(series, &self.finding, common.trial_duration(), sized, notes),
            _ => axis::search(series, self, common, sized, search, notes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_that_did_not_converge_leaves_the_others_what_they_found() {
        let goals = ["ndr", "pdr"].map(|text| Goal::parse(text).expect("a goal"));
        let found = |lower: Option<f64>, reached| trial::mlr::Found {
            lower,
            upper: Some(9.0),
            conditional_throughput: None,
            reached,
        };
        let of = |found: [trial::mlr::Found; 2], whole| {
            let (decided, open) = by_decided(&goals, &found, (whole, true));
            let decided: Vec<_> = decided.iter().map(|(goal, found)| (goal.text(), found.lower)).collect();
            (decided, open.into_iter().map(Goal::text).collect::<Vec<_>>())
        };
        let [ndr, pdr] = [goals[0].text(), goals[1].text()];
        let entries = |found: [trial::mlr::Found; 2], ended| {
            let entries = by_goal(&goals, &found, ended, 0.0);
            assert_eq!([&entries[0].goal, &entries[1].goal], [&ndr, &pdr], "each at its goal's place");
            [0, 1].map(|goal: usize| entries[goal].outcome.to_string())
        };
        let open = found(None, false);
        let (decided, left) = of([open, found(Some(5.0), true)], true);
        assert_eq!((decided, left), (vec![(pdr.clone(), Some(5.0))], vec![ndr.clone()]));
        // That nothing passes is an answer, and a bound that is not near enough is one, too.
        let (decided, left) = of([found(None, true), found(Some(5.0), false)], true);
        assert_eq!((decided, left.len()), (vec![(ndr.clone(), None), (pdr.clone(), Some(5.0))], 0));
        // Interrupted.
        let (decided, left) = of([found(Some(5.0), true), open], false);
        assert_eq!((decided.len(), left), (0, vec![ndr.clone(), pdr.clone()]));
        // Each goal has an entry at its place, whatever came of it.
        let (nothing, some) = (found(None, true), found(Some(5.0), true));
        assert_eq!(entries([open, some], (true, true)), ["unfinished", "found"]);
        assert_eq!(entries([open, some], (true, false)), ["not determined", "found"]);
        assert_eq!(
            entries([nothing, found(Some(5.0), false)], (true, false)),
            ["nothing passed", "not determined"]
        );
        assert_eq!(entries([some, nothing], (false, false)), ["unfinished", "unfinished"]);
    }

    #[test]
    fn a_trials_length_is_kept_or_refused_or_told() {
        let finding = |goals: &[&str], method| Finding {
            method,
            goals: goals.iter().map(|goal| (*goal).to_owned()).collect(),
            precision: "1%".parse().ok(),
            short: None,
        };
        let asked = Some(Duration::from_millis(300));
        let ndr = finding(&["ndr"], Method::Mlrsearch);
        let refused = own_lengths(&ndr, asked, false).expect_err("1 s is not 300 ms").to_string();
        assert!(
            refused.contains("`ndr` has trials of 1s") && refused.contains("ndr,trial=300ms"),
            "{refused}"
        );
        // What is measured afterwards has that length.
        assert!(own_lengths(&ndr, asked, true).is_ok_and(|said| said.is_some()));
        let both = finding(&["loss=0%", "pdr"], Method::Mlrsearch);
        assert!(
            own_lengths(&both, asked, false).is_ok_and(|said| said.is_some_and(|said| said.contains("pdr")))
        );
        for fine in [
            own_lengths(&ndr, None, false),
            own_lengths(&ndr, Some(Duration::from_secs(1)), false),
            own_lengths(&finding(&["ndr,trial=300ms"], Method::Mlrsearch), asked, false),
            own_lengths(&finding(&["loss=0%"], Method::Mlrsearch), asked, false),
            // By one trial, of the length that was asked for.
            own_lengths(&finding(&["ndr"], Method::Bisect), asked, false),
        ] {
            assert_eq!(fine.expect("fine"), None);
        }
        assert!(goals(&Finding { short: "300ms".parse().ok(), ..ndr }).is_err());
    }

    #[test]
    fn what_is_known_meanwhile_is_what_is_said_at_the_end() {
        use trial::Broken::{Loss, Shortfall};
        let show = |rate: f64| format!("{rate}");
        let tried = [(42.0, None), (42.8, Some(Shortfall)), (44.6, Some(Loss))];
        let of = |bounds| known(bounds, tried.into_iter(), Direction::Greatest, &show);
        // The sender fell short between: nothing is known of the device there.
        assert_eq!(of((Some(42.0), Some(44.6))), "between 42 and 44.6 (42.8 could not be judged)");
        assert_eq!(of((Some(42.9), Some(44.6))), "between 42.9 and 44.6");
        assert_eq!(of((Some(42.0), None)), "42 or more (42.8 could not be judged)");
        let short = [(64.0, Some(Shortfall)), (60.0, Some(Loss)), (70.0, None)];
        let said = known((Some(70.0), Some(60.0)), short.into_iter(), Direction::Least, &show);
        assert_eq!(said, "between 70 and 60 (64 could not be judged)");
        let alone = known((None, None), [(9.0, Some(Shortfall))].into_iter(), Direction::Greatest, &show);
        assert_eq!(alone, "9 could not be judged");
    }

    #[test]
    fn bounds_that_are_near_enough_say_how_near() {
        let of =
            |lower, upper| trial::mlr::Found { lower, upper, conditional_throughput: None, reached: false };
        assert!((nearness(&of(Some(99.2), Some(100.0))).expect("near") - 0.008).abs() < 1e-9);
        assert_eq!((nearness(&of(None, Some(100.0))), nearness(&of(Some(9.0), None))), (None, None));
        let said = coarser("512", &Goal::no_loss(), 0.008, 0.0025).to_string();
        assert!(
            said.contains("determined to 0.80 %, not to 0.25 %") && said.contains("`.precision`"),
            "{said}"
        );
    }

    #[test]
    fn why_nothing_was_determined_is_said_of_the_loads_in_question() {
        use TrialVerdict::{Loss, Passed, ReceiverLost, SenderShort};
        let tried = [(90.0, &Loss), (40.0, &ReceiverLost), (55.0, &SenderShort), (50.0, &Passed)];
        let of = |bounds| open_verdicts(tried.into_iter(), bounds).collect::<Vec<_>>();
        assert_eq!(of((Some(50.0), Some(90.0))), [&SenderShort]);
        assert_eq!(of((Some(60.0), Some(90.0))).len(), 4);
    }

    #[test]
    fn a_device_that_does_not_do_the_same_each_time_is_told() {
        let trial = |load: f64, lost_frames: u64, verdict: &str| Trial {
            load,
            duration_ns: 1_000_000_000,
            sent_frames: load as u64,
            received_frames: load as u64 - lost_frames,
            lost_frames,
            verdict: verdict.into(),
            ..Trial::default()
        };
        let told = |rows: &[Trial]| {
            let mut notes = Notes::default();
            flapping(&rows.iter().collect::<Vec<_>>(), "64", &mut notes);
            notes.warnings.join("; ")
        };
        let (passed, lost) = (trial(1000.0, 0, "passed"), trial(2000.0, 900, "loss"));
        assert_eq!(told(&[lost.clone(), passed.clone()]), "");
        let flapped = told(&[trial(900.0, 90, "loss"), passed.clone()]);
        assert!(flapped.contains("does not do the same each time"), "{flapped}");
        let collapsed = told(&[trial(2000.0, 1900, "loss"), passed.clone()]);
        assert!(collapsed.contains("collapses under overload"), "{collapsed}");
        // What the sender did not send is no sign of the device.
        assert_eq!(told(&[trial(900.0, 90, "sender uneven"), passed]), "");
    }
}
