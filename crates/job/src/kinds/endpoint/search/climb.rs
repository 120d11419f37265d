//! What is tried next when the highest rate of transactions is searched. A state machine without a clock.
//!
//! ```text
//!   a closed loop: what can be done at most, about
//!        |  a quarter more
//!        v
//!   halving (trial::Bisect) --- the greatest passed ---> twice as much
//!        |  a rate that passed, and one a little higher that did not
//!        v
//!   tried again until it passed `confirm` times --- once not ---> halving below it
//! ```

use super::{Plan, Try};
use report::{EndpointStage, EndpointTrial, EndpointVerdict, TransactionsFound};
use spec::{EndpointRate, MostTransactions, Written};
use trial::{Bisect, BisectPlan, Direction, Limits, Outcome, Resolution, Search as _};

/// The first load that is tried is so much of what a closed loop reaches.
const ABOVE: f64 = 1.25;
/// If it passes, twice as much is tried, so often.
const RAISES: u32 = 6;
/// So often a rate that failed when it was confirmed is searched again below.
const TIMES: u32 = 5;
/// A trial that failed is done again, once: one stall of either host is no property of the rate.
const RETRIES: u32 = 1;

#[derive(Debug)]
enum Phase {
    /// A closed loop.
    Estimate,
    Halving(Box<Bisect>),
    /// The rate passed, and has to pass so often again.
    Confirming(u64, u32),
    Over,
}

/// The search.
#[derive(Debug)]
pub struct Climb {
    phase: Phase,
    least: Option<f64>,
    most: Option<f64>,
    precision: f64,
    confirm: u32,
    raises: u32,
    again: u32,
    greatest: f64,
    closed_loop: Option<f64>,
    found: Option<u64>,
    failed: Option<u64>,
    /// What passed once and failed when it was tried again.
    pub inconsistent: Vec<u64>,
}

fn rate(rate: Option<&Written<EndpointRate>>) -> Option<f64> {
    match rate.map(|rate| **rate) {
        Some(EndpointRate::Transactions(rate)) => Some(rate as f64),
        _ => None,
    }
}

impl Climb {
    pub fn new(asked: &MostTransactions) -> Climb {
        Climb {
            phase: Phase::Estimate,
            least: rate(asked.min.as_ref()),
            most: rate(asked.max.as_ref()),
            precision: asked.precision(),
            confirm: asked.confirm(),
            raises: 0,
            again: 0,
            greatest: 0.0,
            closed_loop: None,
            found: None,
            failed: None,
            inconsistent: Vec::new(),
        }
    }

    fn least(&self) -> f64 {
        self.least.unwrap_or(self.greatest / 1000.0).max(1.0)
    }

    /// From here on between these; over if nothing lies there.
    fn halve(&mut self, least: f64, greatest: f64) {
        let plan = BisectPlan {
            least,
            greatest,
            resolution: Resolution::Relative(self.precision),
            direction: Direction::Greatest,
            // What passed is decided when the trial was done; the search is told of it as of frames that came, or did not.
            limits: Limits {
                loss_ratio: 0.0,
                shortfall_ratio: None,
                delays: trial::Delays::default(),
                reorder_ratio: None,
            },
            trial_ns: 1,
            short_ns: 1,
            retries: RETRIES,
            retry_loss_ratio: 2.0,
            in_parts: false,
            enough: 0.0,
        };
        self.phase = Bisect::new(plan).map_or(Phase::Over, |bisect| Phase::Halving(Box::new(bisect)));
    }

    /// The halving came to an end.
    fn halved(&mut self, bisect: &Bisect) {
        let whole = |load: f64| load.round().max(1.0) as u64;
        self.failed = bisect.failed().map(whole).or(self.failed);
        match bisect.passed() {
            // What passed before twice as much was tried did not pass again.
            None if self.raises > 0 && self.again < TIMES => {
                self.again += 1;
                let failed = self.failed.unwrap_or(1);
                self.inconsistent.push(failed);
                self.halve(self.least(), (failed as f64 * (1.0 - self.precision)).max(self.least()));
            }
            None => self.phase = Phase::Over,
            Some(passed) if bisect.failed().is_none() && self.failed.is_none() && self.most.is_none() => {
                if self.raises >= RAISES {
                    self.confirm_at(whole(passed));
                    return;
                }
                self.raises += 1;
                self.greatest = passed * 2.0;
                self.halve(passed, passed * 2.0);
            }
            Some(passed) => self.confirm_at(whole(passed)),
        }
    }

    fn confirm_at(&mut self, rate: u64) {
        // The trial that found it was the first.
        match self.confirm.saturating_sub(1) {
            0 => (self.found, self.phase) = (Some(rate), Phase::Over),
            left => self.phase = Phase::Confirming(rate, left),
        }
    }

    /// Of a closed loop, how much is offered at most; the greatest loads that may be tried.
    fn estimated(&mut self, per_second: f64) {
        self.closed_loop = Some(per_second);
        let floor = self.least.map_or(1.0, |least| least * (1.0 + self.precision));
        self.greatest = self.most.unwrap_or((per_second * ABOVE).max(floor).ceil());
        let least = self.least().min(self.greatest);
        self.halve(least, self.greatest);
    }
}

impl Plan for Climb {
    fn next(&self) -> Option<Try> {
        let at = |stage, rate: u64| Some(Try { stage, buffer: None, rate: Some(rate) });
        match &self.phase {
            Phase::Estimate => Some(Try { stage: EndpointStage::Estimate, buffer: None, rate: None }),
            Phase::Halving(bisect) => at(EndpointStage::Search, bisect.next()?.load.round().max(1.0) as u64),
            Phase::Confirming(rate, _) => at(EndpointStage::Confirm, *rate),
            Phase::Over => None,
        }
    }

    fn tell(&mut self, trial: &EndpointTrial) {
        let passed = trial.verdict == EndpointVerdict::Passed;
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Estimate => self.estimated(trial.per_second),
            Phase::Halving(mut bisect) => {
                bisect.tell(&Outcome {
                    intended: 1,
                    sent: 1,
                    received: u64::from(passed),
                    ..Outcome::default()
                });
                match bisect.next() {
                    Some(_) => self.phase = Phase::Halving(bisect),
                    None => self.halved(&bisect),
                }
            }
            Phase::Confirming(rate, left) if passed => match left - 1 {
                0 => self.found = Some(rate),
                left => self.phase = Phase::Confirming(rate, left),
            },
            Phase::Confirming(rate, _) => {
                self.failed = Some(rate);
                self.inconsistent.push(rate);
                self.again += 1;
                let greatest = rate as f64 * (1.0 - self.precision);
                let least = self.least();
                if self.again < TIMES && greatest > least {
                    self.halve(least, greatest);
                }
            }
            Phase::Over => {}
        }
    }

    fn left(&self) -> usize {
        match &self.phase {
            Phase::Estimate => 1 + usize::try_from(self.confirm).unwrap_or(1) + 8,
            Phase::Halving(bisect) => {
                (bisect.left().trials + u64::from(self.confirm.saturating_sub(1))) as usize
            }
            Phase::Confirming(_, left) => *left as usize,
            Phase::Over => 0,
        }
    }
}

/// What the trials come to.
pub fn found(
    trials: &[EndpointTrial],
    climb: &Climb,
    asked: &MostTransactions,
    in_flight: u32,
) -> TransactionsFound {
    let at = |rate: u64| move |trial: &&EndpointTrial| trial.intended_per_second == Some(rate as f64);
    let passed =
        |rate: u64| trials.iter().filter(at(rate)).filter(|trial| trial.verdict == EndpointVerdict::Passed);
    let failed = climb.failed.and_then(|rate| {
        let last = trials.iter().filter(at(rate)).rfind(|trial| trial.verdict != EndpointVerdict::Passed);
        last.map(|trial| trial.verdict.to_string())
    });
    TransactionsFound {
        percentile: asked.percentile(),
        below_ns: u64::try_from(asked.below().as_nanos()).unwrap_or(u64::MAX),
        closed_loop_per_second: climb.closed_loop,
        closed_loop_in_flight: in_flight.into(),
        per_second: climb.found.map(|rate| rate as f64),
        failed_per_second: climb.failed.map(|rate| rate as f64),
        failed_reason: failed,
        passed_trials: climb.found.map_or(0, |rate| passed(rate).count() as u32),
        at_percentile_ns: climb
            .found
            .and_then(|rate| passed(rate).filter_map(|trial| trial.at_percentile_ns).max()),
        precision_ratio: climb.precision,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> MostTransactions {
        serde_json::from_str(text).expect("a search")
    }

    fn searched(
        asked: &MostTransactions,
        passes: impl Fn(u64, usize) -> bool,
    ) -> (Climb, Vec<EndpointTrial>) {
        let (mut climb, mut trials) = (Climb::new(asked), Vec::<EndpointTrial>::new());
        while let Some(tried) = climb.next() {
            let verdict = tried.rate.is_none_or(|rate| passes(rate, trials.len()));
            trials.push(EndpointTrial {
                intended_per_second: tried.rate.map(|rate| rate as f64),
                per_second: tried.rate.map_or(10_000.0, |rate| rate as f64),
                at_percentile_ns: Some(7),
                verdict: if verdict { EndpointVerdict::Passed } else { EndpointVerdict::Latency },
                ..EndpointTrial::default()
            });
            climb.tell(trials.last().expect("one"));
            assert!(trials.len() < 200, "no end");
        }
        (climb, trials)
    }

    fn result(asked: &MostTransactions, passes: impl Fn(u64, usize) -> bool) -> TransactionsFound {
        let (climb, trials) = searched(asked, passes);
        found(&trials, &climb, asked, 16)
    }

    #[test]
    fn the_highest_rate_is_bounded_from_both_sides_and_confirmed() {
        let asked = asked(r#"{"below": "1ms"}"#);
        // Below, near and far above what a closed loop said.
        for truth in [40, 3_000, 11_000, 90_000] {
            let found = result(&asked, |rate, _| rate <= truth);
            let (passed, failed) = (found.per_second.expect("one"), found.failed_per_second.expect("one"));
            assert!(passed <= truth as f64 && failed > truth as f64, "{truth}: {passed} {failed}");
            assert!(failed - passed <= failed * 0.03 + 1.0, "{truth}: {passed} {failed}");
            assert!(
                found.passed_trials >= 3 && found.failed_reason.as_deref() == Some("latency"),
                "{found:?}"
            );
        }
    }

    #[test]
    fn nothing_passes_where_nothing_does_and_a_limit_is_kept_to() {
        let nothing = result(&asked(r#"{"below": "1us"}"#), |_, _| false);
        assert_eq!((nothing.per_second, nothing.passed_trials), (None, 0));
        let limited = asked(r#"{"below": "1ms", "max": "500tps", "min": "100tps"}"#);
        let found = result(&limited, |rate, _| (100..=500).contains(&rate));
        assert_eq!((found.per_second, found.failed_per_second), (Some(500.0), None));
    }

    #[test]
    fn what_passes_once_only_is_searched_again_below() {
        let asked = asked(r#"{"below": "1ms", "confirm": 3}"#);
        let (climb, trials) = searched(&asked, |rate, n| rate <= 6_000 && (rate <= 5_000 || n < 9));
        let found = found(&trials, &climb, &asked, 16);
        assert!(found.per_second.expect("one") <= 5_000.0, "{found:?}");
        assert!(!climb.inconsistent.is_empty());
    }

    #[test]
    fn told_the_same_trials_it_is_where_it_was() {
        let asked = asked(r#"{"below": "1ms"}"#);
        let (_, trials) = searched(&asked, |rate, _| rate <= 3_000);
        let mut again = Climb::new(&asked);
        for trial in &trials {
            let tried = again.next().expect("more");
            assert_eq!(tried.rate.map(|rate| rate as f64), trial.intended_per_second);
            again.tell(trial);
        }
        assert_eq!(again.next(), None);
    }
}
