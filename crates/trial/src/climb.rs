//! The highest rate of transactions that stays within a bound, between two ends that also tell how fast they go by
//! themselves: a closed loop shows about how much can be done, and the rate is looked for from there.
//!
//! ```text
//!   a closed loop: what can be done at most, about
//!        |  a quarter more
//!        v
//!   Confirmed: halving, doubled where the greatest passed, and tried again
//! ```

use crate::bisect::{BisectPlan, Direction, Resolution};
use crate::confirmed::{Confirmed, ConfirmedPlan, Raise};
use crate::limits::Limits;
use crate::search::{Left, Search};
use crate::trial::{Outcome, Stage, Wanted};

/// The first load that is tried is so much of what a closed loop reaches.
const ABOVE: f64 = 1.25;
/// The least is a thousandth of the greatest, unless it is asked for.
const LEAST_OVER: f64 = 1000.0;
/// If the greatest passes, twice as much is tried, so often.
const RAISES: u32 = 6;
/// So often a rate that failed when it was confirmed is searched again below.
const TIMES: u32 = 5;
/// A trial that failed is done again, once: one stall of either host is no property of the rate.
const RETRIES: u32 = 1;
/// About as many trials as halving takes, while nothing is known.
const HALVINGS: u64 = 8;

/// What to search for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClimbPlan {
    /// Nothing below it is tried, if it is given.
    pub least: Option<f64>,
    /// Nothing above it is tried, if it is given.
    pub greatest: Option<f64>,
    /// How near the bounds are to come, relative to the upper one.
    pub precision: f64,
    /// Trials that must pass at the rate that was found.
    pub confirm: u32,
    /// How long a trial is.
    pub trial_ns: u64,
}

/// The search. Its outcomes say by themselves whether they passed ([`Outcome::judged`]); that of the closed loop says how fast
/// it went (`result`).
#[derive(Debug, Clone)]
pub struct Climb {
    plan: ClimbPlan,
    closed_loop: Option<f64>,
    /// There when the closed loop is over; none if there is nothing to search then.
    rate: Option<Confirmed>,
}

impl Climb {
    /// Nothing was tried yet.
    pub fn new(plan: ClimbPlan) -> Climb {
        Climb { plan, closed_loop: None, rate: None }
    }

    /// What the closed loop reached, a second.
    pub fn closed_loop(&self) -> Option<f64> {
        self.closed_loop
    }

    /// The highest rate that passed as often as was asked.
    pub fn found(&self) -> Option<f64> {
        self.rate.as_ref()?.found()
    }

    /// The lowest that did not pass.
    pub fn failed(&self) -> Option<f64> {
        self.rate.as_ref()?.failed()
    }

    /// Rates that passed once and failed when they were tried again.
    pub fn inconsistent(&self) -> &[f64] {
        self.rate.as_ref().map_or(&[][..], Confirmed::inconsistent)
    }

    /// Of a closed loop, between which rates is looked.
    fn search_from(&self, per_second: f64) -> Option<Confirmed> {
        let ClimbPlan { least, greatest, precision, confirm, trial_ns } = self.plan;
        let floor = least.map_or(1.0, |least| least * (1.0 + precision));
        let most = greatest.unwrap_or((per_second * ABOVE).max(floor).ceil());
        let least_over = least.is_none().then_some(LEAST_OVER);
        let bisect = BisectPlan {
            least: least.unwrap_or(most / LEAST_OVER).max(1.0).min(most),
            greatest: most,
            resolution: Resolution::Relative(precision),
            direction: Direction::Greatest,
            limits: Limits::loss(0.0),
            trial_ns,
            short_ns: trial_ns,
            retries: RETRIES,
            retry_loss_ratio: 2.0,
            in_parts: false,
            enough: 0.0,
        };
        let times = if greatest.is_some() { 0 } else { RAISES };
        let plan = ConfirmedPlan {
            bisect,
            apart: precision,
            confirm,
            stage: Stage::Confirm,
            all: false,
            times: TIMES,
            whole: true,
            raise: Some(Raise { times, least_over }),
        };
        Confirmed::new(plan).ok()
    }
}

impl Search for Climb {
    fn next(&self) -> Option<Wanted> {
        match self.closed_loop {
            None => Some(Wanted::steady(0.0, self.plan.trial_ns, Stage::Estimate)),
            Some(_) => self.rate.as_ref()?.next(),
        }
    }

    fn tell(&mut self, outcome: &Outcome) {
        if self.closed_loop.is_none() {
            let per_second = outcome.result.unwrap_or(0.0);
            self.closed_loop = Some(per_second);
            self.rate = self.search_from(per_second);
        } else if let Some(rate) = &mut self.rate {
            rate.tell(outcome);
        }
    }

    fn left(&self) -> Left {
        match (&self.rate, self.closed_loop) {
            (Some(rate), _) => rate.left(),
            (None, Some(_)) => Left::default(),
            (None, None) => Left::of(1 + HALVINGS + u64::from(self.plan.confirm), self.plan.trial_ns),
        }
    }

    fn bounds(&self) -> Vec<(Option<f64>, Option<f64>)> {
        self.rate.as_ref().map_or_else(|| vec![(None, None)], Search::bounds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::{Done, resume};

    const PLAN: ClimbPlan =
        ClimbPlan { least: None, greatest: None, precision: 0.02, confirm: 3, trial_ns: 1_000_000 };

    fn searched(plan: ClimbPlan, passes: impl Fn(f64, usize) -> bool) -> (Climb, Vec<Done>) {
        let (mut climb, mut done) = (Climb::new(plan), Vec::<Done>::new());
        while let Some(wanted) = climb.next() {
            let estimates = wanted.stage == Stage::Estimate;
            let outcome = match estimates {
                true => Outcome { result: Some(10_000.0), ..Outcome::judged(true) },
                false => Outcome::judged(passes(wanted.load, done.len())),
            };
            assert_eq!((estimates, wanted.load == 0.0), (done.is_empty(), done.is_empty()));
            let left = climb.left().trials;
            assert!(left >= 1, "what is wanted is still to come");
            climb.tell(&outcome);
            done.push(Done { wanted, outcome });
            assert!(done.len() < 200, "no end");
        }
        assert_eq!(climb.left().trials, 0);
        (climb, done)
    }

    #[test]
    fn the_highest_rate_is_bounded_from_both_sides_and_confirmed() {
        // Below, near and far above what a closed loop said.
        for truth in [40.0, 3_000.0, 11_000.0, 90_000.0] {
            let (climb, done) = searched(PLAN, |rate, _| rate <= truth);
            let (passed, failed) = (climb.found().expect("one"), climb.failed().expect("one"));
            assert!(passed <= truth && failed > truth, "{truth}: {passed} {failed}");
            assert!(failed - passed <= failed * 0.03 + 1.0, "{truth}: {passed} {failed}");
            assert!(done.iter().filter(|done| done.wanted.load == passed).count() >= 3);
            assert_eq!(climb.bounds(), [(Some(passed), Some(failed))]);
        }
    }

    #[test]
    fn nothing_passes_where_nothing_does_and_a_limit_is_kept_to() {
        let (nothing, _) = searched(PLAN, |_, _| false);
        assert_eq!(nothing.found(), None);
        let limited = ClimbPlan { least: Some(100.0), greatest: Some(500.0), ..PLAN };
        let (climb, done) = searched(limited, |_, _| true);
        assert_eq!((climb.found(), climb.failed()), (Some(500.0), None));
        let (_, failing) = searched(limited, |_, _| false);
        let rates = done.iter().chain(&failing).filter(|done| done.wanted.stage != Stage::Estimate);
        assert!(rates.map(|done| done.wanted.load).all(|rate| (100.0..=500.0).contains(&rate)));
    }

    #[test]
    fn what_passes_once_only_is_searched_again_below() {
        let (climb, _) = searched(PLAN, |rate, n| rate <= 6_000.0 && (rate <= 5_000.0 || n < 9));
        assert!(climb.found().is_some_and(|rate| rate <= 5_000.0), "{climb:?}");
        assert!(!climb.inconsistent().is_empty());
    }

    #[test]
    fn told_the_same_trials_it_is_where_it_was() {
        let (whole, done) = searched(PLAN, |rate, _| rate <= 3_000.0);
        for kept in 0..=done.len() {
            let mut again = Climb::new(PLAN);
            resume(&mut again, &done[..kept]).expect("its own trials");
            assert_eq!(again.next().map(|wanted| wanted.load), done.get(kept).map(|done| done.wanted.load));
        }
        let mut again = Climb::new(PLAN);
        resume(&mut again, &done).expect("its own trials");
        assert_eq!((again.found(), again.failed()), (whole.found(), whole.failed()));
    }

    /// The trials that a search of an earlier version did, so that it can be continued: a closed loop of 10,000 a second, and of
    /// the rates those of 3,000 and less passed.
    #[test]
    fn the_order_of_trials_is_that_of_earlier_versions() {
        let (_, done) = searched(PLAN, |rate, _| rate <= 3_000.0);
        let rates: Vec<f64> = done.iter().map(|done| done.wanted.load).collect();
        assert_eq!(rates[..4], [0.0, 12_500.0, 12_500.0, 6_256.0]);
        assert!(rates.iter().all(|rate| rate.fract() == 0.0), "{rates:?}");
    }
}
