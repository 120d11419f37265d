//! `netdyno search transactions`: from which rates it is looked, and what its trials come to.

use super::Tested;
use report::{Code, EndpointTrial, EndpointVerdict, Report, TransactionsFound, units};
use spec::{EndpointRate, MostTransactions, Written};
use trial::{Climb, ClimbPlan};

/// A percentile says little of fewer transactions beyond it.
const BEYOND: f64 = 10.0;

fn rate(rate: Option<&Written<EndpointRate>>) -> Option<f64> {
    match rate.map(|rate| **rate) {
        Some(EndpointRate::Transactions(rate)) => Some(rate as f64),
        _ => None,
    }
}

/// What is asked for.
pub fn plan(find: &MostTransactions, tested: &Tested<'_>) -> Climb {
    Climb::new(ClimbPlan {
        least: rate(find.min.as_ref()),
        greatest: rate(find.max.as_ref()),
        precision: find.precision(),
        confirm: find.confirm(),
        trial_ns: tested.trial_ns(),
    })
}

/// What is reported of the trials.
pub fn judge(
    report: &mut Report,
    (trials, complete): (&[EndpointTrial], bool),
    (find, climb): (&MostTransactions, &Climb),
    tested: &Tested<'_>,
) -> TransactionsFound {
    let found = found(trials, climb, find, tested.args.burst.unwrap_or(super::CLOSED_LOOP));
    rates_judged(report, &found, complete, climb.inconsistent());
    few_beyond(report, &found, trials);
    found
}

/// What the trials come to.
fn found(
    trials: &[EndpointTrial],
    climb: &Climb,
    asked: &MostTransactions,
    in_flight: u32,
) -> TransactionsFound {
    let at = |rate: f64| move |trial: &&EndpointTrial| trial.intended_per_second == Some(rate);
    let passed =
        |rate: f64| trials.iter().filter(at(rate)).filter(|trial| trial.verdict == EndpointVerdict::Passed);
    let failed = climb.failed().and_then(|rate| {
        let last = trials.iter().filter(at(rate)).rfind(|trial| trial.verdict != EndpointVerdict::Passed);
        last.map(|trial| trial.verdict.clone())
    });
    TransactionsFound {
        percentile: asked.percentile(),
        below_ns: u64::try_from(asked.below().as_nanos()).unwrap_or(u64::MAX),
        closed_loop_per_second: climb.closed_loop(),
        closed_loop_in_flight: in_flight.into(),
        per_second: climb.found(),
        failed_per_second: climb.failed(),
        failed_reason: failed,
        passed_trials: climb.found().map_or(0, |rate| passed(rate).count() as u32),
        at_percentile_ns: climb
            .found()
            .and_then(|rate| passed(rate).filter_map(|trial| trial.at_percentile_ns).max()),
        precision_ratio: asked.precision(),
    }
}

fn rates_judged(report: &mut Report, found: &TransactionsFound, complete: bool, inconsistent: &[f64]) {
    for rate in inconsistent {
        let said = format!(
            "{} a second passed once and failed when it was tried again: the server, the path or this machine does not do the same \
             each time",
            units::count(*rate as u64)
        );
        report.warnings.add(Code::DeviceInconsistent, said);
    }
    if !complete {
        return;
    }
    if found.per_second.is_none() {
        let said = match found.failed_per_second {
            Some(rate) if inconsistent.is_empty() => {
                format!("no rate passed, not even {} transactions a second", units::count(rate as u64))
            }
            _ => "no rate passed as often as was asked for".to_owned(),
        };
        report.result.verdict.fall_short(Code::GoalNotReached, said);
    } else if found.failed_per_second.is_none() {
        let said = "the highest rate that was to be tried passed: what can be done is more, and not known";
        report.warnings.add(Code::SearchRange, (said, "raise `.max`"));
    }
}

/// A percentile of too few.
fn few_beyond(report: &mut Report, found: &TransactionsFound, trials: &[EndpointTrial]) {
    let Some(rate) = found.per_second else { return };
    let at = trials.iter().filter(|trial| trial.intended_per_second == Some(rate));
    let Some(count) = at.filter_map(|trial| Some(trial.latency_ns.as_ref()?.count)).min() else { return };
    let beyond = count as f64 * (1.0 - found.percentile / 100.0);
    if found.percentile < 100.0 && beyond < BEYOND {
        let said = format!(
            "a trial has {} at the rate that was found, of which fewer than {BEYOND} lie beyond the percentile: it says little",
            units::counted(count, "transaction")
        );
        report.warnings.add(Code::ConfidenceNotReached, (said, "make trials longer (`.trial_duration`)"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trial::{Outcome, Search as _, Stage};

    #[test]
    fn a_result_has_the_trials_at_the_rate_that_was_found_and_why_the_next_failed() {
        let asked: MostTransactions = serde_json::from_str(r#"{"below": "1ms"}"#).expect("a search");
        let plan = ClimbPlan { least: None, greatest: None, precision: 0.02, confirm: 3, trial_ns: 1 };
        let (mut climb, mut trials) = (Climb::new(plan), Vec::new());
        while let Some(wanted) = climb.next() {
            let rate = (wanted.stage != Stage::Estimate).then_some(wanted.load);
            let passed = rate.is_none_or(|rate| rate <= 3_000.0);
            trials.push(EndpointTrial {
                intended_per_second: rate,
                per_second: rate.unwrap_or(10_000.0),
                at_percentile_ns: Some(7),
                verdict: if passed { EndpointVerdict::Passed } else { EndpointVerdict::Latency },
                ..EndpointTrial::default()
            });
            climb.tell(&Outcome { result: Some(10_000.0), ..Outcome::judged(passed) });
        }
        let found = found(&trials, &climb, &asked, 16);
        let (passed, failed) = (found.per_second.expect("one"), found.failed_per_second.expect("one"));
        assert!(passed <= 3_000.0 && failed > 3_000.0, "{found:?}");
        assert!(
            found.passed_trials >= 3 && found.failed_reason == Some(EndpointVerdict::Latency),
            "{found:?}"
        );
        assert_eq!((found.closed_loop_per_second, found.at_percentile_ns), (Some(10_000.0), Some(7)));
    }
}
