//! `netdyno search throughput`: the highest rate that passes. Other searches find it first, too.

use super::{Notes, Sized};
use crate::cli::search::{Axis, Finding, Method, Throughput};
use crate::trials::{Goal, How, Offer, Session, is_the_senders, nanos};
use anyhow::{Result, bail};
use report::units;
use std::time::Duration;
use trial::mlr::Plan;
use trial::{Bisect, BisectPlan, Direction, MlrSearch, Resolution, Wanted};

/// Searches that take longer than this do not converge: in trials of full length, for each goal.
const MOST_TRIALS: f64 = 60.0;

pub fn check(args: &Throughput) -> Result<()> {
    let goals = goals(&args.finding)?;
    if args.axis != Axis::Rate {
        if args.rate.is_none() {
            bail!("--axis: at which rate? Give --rate 100kpps or 1gbps");
        }
        if goals.len() > 1 {
            bail!("--axis: one --goal at a time, but for the rate");
        }
    } else if args.rate.is_some() {
        bail!("--rate: the rate is what is searched for; --max and --min bound it");
    }
    Ok(())
}

/// The goals asked for.
pub fn goals(finding: &Finding) -> Result<Vec<Goal>> {
    if !(1e-6..1.0).contains(&finding.precision) {
        bail!("--precision: give more than 0.0001% and less than 100%");
    }
    let goals = finding.goal.iter().map(|text| Goal::parse(text)).collect::<Result<Vec<_>>>()?;
    if finding.method == Method::Bisect {
        if goals.len() > 1 {
            bail!("--method bisect searches for one goal: give one --goal, or --method mlrsearch");
        }
        let Some(goals) = goals.iter().map(Goal::by_one_trial).collect() else {
            bail!("--goal: exceed, sum and trial are of MLRsearch; bisection decides by one trial");
        };
        return Ok(goals);
    }
    Ok(goals)
}

/// Finds the throughput of one frame size; false when interrupted.
pub fn find(
    session: &mut Session,
    finding: &Finding,
    trial: Duration,
    sized: &mut Sized,
    notes: &mut Notes,
) -> Result<bool> {
    let goals = goals(finding)?;
    let size = sized.size.clone();
    let offer = |wanted: &Wanted| Offer::steady(wanted.load, wanted.duration_ns, &size);
    session.goals = goals.iter().map(Goal::text).collect();
    // Verdicts of single trials are by the first goal.
    let Some(first) = goals.first().copied() else { bail!("a search needs a goal") };
    let part = "throughput";
    let (least, greatest) = (sized.result.least, sized.result.greatest);
    let rate = |rate: f64| units::frame_rate(rate);
    let (whole, found) = match finding.method {
        Method::Bisect => {
            let mut bisect = Bisect::new(BisectPlan {
                least,
                greatest,
                resolution: Resolution::Relative(finding.precision),
                direction: Direction::Greatest,
                limits: first.limits,
                trial_ns: nanos(trial),
                short_ns: nanos(finding.short.unwrap_or(trial).min(trial)),
                retries: 0,
                retry_loss_ratio: 0.0,
            })?;
            let known = |bisect: &Bisect| between(bisect.passed(), bisect.failed(), &rate);
            let how = How { part, goal: &first, offer: &offer, known: &known, of_rate: true };
            let whole = session.drive(&mut bisect, &how)?;
            if bisect.is_inconsistent() {
                notes.warnings.push(format!(
                    "frames of {} bytes: what passed a short trial failed a full one: the device does not do the same each time",
                    sized.name
                ));
            }
            let found = trial::mlr::Found {
                lower: bisect.passed(),
                upper: bisect.failed(),
                conditional_throughput: None,
                reached: whole,
            };
            (whole, vec![found])
        }
        Method::Mlrsearch => {
            let goal = |goal: &Goal| {
                let trial = goal.trial.unwrap_or(trial).as_secs_f64();
                let mut wanted = trial::Goal::rfc2544(trial, finding.precision);
                if goal.trial.is_some() {
                    wanted.initial_trial_s = trial;
                }
                wanted.limits = goal.limits;
                wanted.exceed_ratio = goal.exceed;
                wanted.duration_sum_s = goal.sum.map_or(trial, |sum| sum.as_secs_f64());
                wanted
            };
            let wanted: Vec<_> = goals.iter().map(goal).collect();
            let most_s =
                wanted.iter().map(|goal| goal.duration_sum_s.max(goal.final_trial_s) * MOST_TRIALS).sum();
            let plan = Plan { goals: wanted, least, greatest, warm_up_s: 0.0, most_s };
            let mut mlr = MlrSearch::new(plan)?;
            let known = |mlr: &MlrSearch| {
                let found = mlr.found();
                if found.iter().all(|found| found.lower.or(found.upper).is_none()) {
                    return String::new();
                }
                let of = |found: &trial::mlr::Found| match between(found.lower, found.upper, &rate) {
                    text if text.is_empty() => "unknown".to_owned(),
                    text => text,
                };
                found.iter().map(of).collect::<Vec<_>>().join(", ")
            };
            let how = How { part, goal: &first, offer: &offer, known: &known, of_rate: true };
            let whole = session.drive(&mut mlr, &how)?;
            if mlr.timed_out() {
                notes.shortfalls.push(format!(
                    "frames of {} bytes: the search did not converge in {} of trials: the device does not do the same each time (a goal with exceed=50% and a sum of many trials may), or --precision asks for too much",
                    sized.name,
                    units::time((most_s * 1e9) as u64)
                ));
            }
            (whole, mlr.found())
        }
    };
    flapping(session, &sized.name, notes);
    let mean = sized.result.mean_frame_bytes;
    for (goal, found) in goals.iter().zip(&found) {
        let throughput = found.lower.map(|lower| report::search::Throughput {
            failed_frames_per_second: found.upper,
            conditional_frames_per_second: found.conditional_throughput,
            frame_size: sized.name.clone(),
            goal: goal.text(),
            reached: found.reached,
            ..report::search::Throughput::of(lower, mean)
        });
        if whole && throughput.is_none() {
            let least = found.upper.unwrap_or(least);
            notes.shortfalls.push(format!(
                "frames of {} bytes: no throughput with {}: not even {} passed",
                sized.name,
                goal.text(),
                units::frame_rate(least)
            ));
        }
        sized.result.throughput.push(throughput);
    }
    sender_limits(session, sized, notes);
    Ok(whole)
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

/// The device lost frames of a load although no fewer frames came through whole at one no lower: whatever it forwards and
/// buffers, if that is always the same it cannot do so. That far fewer come through of more is possible, but to be told.
fn flapping(session: &Session, size: &str, notes: &mut Notes) {
    let rows: Vec<_> = crate::trials::rows_of(&session.rows, "throughput", size).collect();
    let inverted = rows.iter().any(|failed| {
        let by_device = failed.verdict != "passed" && !is_the_senders(&failed.verdict);
        by_device
            && rows.iter().any(|passed| {
                passed.lost_frames == 0
                    && passed.sent_frames >= failed.sent_frames
                    && passed.load >= failed.load
            })
    });
    let collapsed = rows.iter().any(|failed| {
        let fewer = |whole: u64| failed.verdict == "loss" && failed.received_frames < whole * 3 / 4;
        rows.iter().any(|passed| {
            passed.lost_frames == 0
                && passed.load <= failed.load
                && passed.duration_ns <= failed.duration_ns
                && fewer(passed.received_frames)
        })
    });
    if !inverted && collapsed {
        notes.warnings.push(format!(
            "frames of {size} bytes: of a load far fewer frames came through than of a lower one in no more time: the device collapses under overload, or it, or this machine, does not do the same each time"
        ));
    }
    if inverted {
        notes.warnings.push(format!(
            "frames of {size} bytes: frames of a load were lost although no fewer came through whole at one no lower: the device, or this machine, does not do the same each time"
        ));
    }
}

/// The bound above the throughput may be the sender's, not the device's.
fn sender_limits(session: &Session, sized: &Sized, notes: &mut Notes) {
    let failed = sized.result.throughput.iter().flatten().filter_map(|found| found.failed_frames_per_second);
    for failed in failed {
        let at = crate::trials::rows_of(&session.rows, "throughput", &sized.name)
            .filter(|row| (row.load - failed).abs() <= failed * 1e-9);
        let verdicts: Vec<&str> = at.map(|row| row.verdict.as_str()).collect();
        let (size, rate) = (&sized.name, units::frame_rate(failed));
        if verdicts.is_empty()
            || verdicts.iter().any(|&verdict| verdict != "passed" && !is_the_senders(verdict))
        {
            continue;
        }
        // Frames were lost, in every try; by whose fault cannot be said.
        if verdicts.contains(&"sender uneven") {
            notes.warnings.push(format!(
                "frames of {size} bytes: what was lost at {rate} may be the doing of a sender that was held up each time: the device may do a little more"
            ));
            continue;
        }
        notes.shortfalls.push(format!(
            "frames of {size} bytes: the sender, not the device, fell short at {rate}: the device may do more; `netdyno doctor` says what the sender could do better"
        ));
        return;
    }
}
