//! A value that is found by halving and then has to pass again, so often: one trial that passed may be chance. If it fails
//! when it is tried again, what lies below it is halved anew.
//!
//! ```text
//!   halving --- the greatest passed, and may be raised ---> twice as much
//!      |  a value that passed, and one a little harder that did not
//!      v
//!   tried again until it passed so often --- once not ---> halving below it
//! ```

use crate::bisect::{BadRange, Bisect, BisectPlan};
use crate::search::{Left, Search};
use crate::trial::{Outcome, Stage, Wanted};

/// What to search for, and how surely.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConfirmedPlan {
    /// How a value is looked for. More is harder.
    pub bisect: BisectPlan,
    /// What lies below a value that failed again begins so much below it, relative to it.
    pub apart: f64,
    /// Trials that must pass at a value, the one that found it included.
    pub confirm: u32,
    /// What the further ones are for.
    pub stage: Stage,
    /// All of them are done, also after one that failed.
    pub all: bool,
    /// So often, at most, a value is looked for.
    pub times: u32,
    /// Values are whole numbers, 1 or more.
    pub whole: bool,
    /// The greatest may be raised.
    pub raise: Option<Raise>,
}

/// How a range is raised whose greatest value passed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Raise {
    /// The greatest is doubled so often.
    pub times: u32,
    /// The least goes along: it is the greatest over this, and 1 at least.
    pub least_over: Option<f64>,
}

#[derive(Debug, Clone)]
enum Phase {
    Halving(Box<Bisect>),
    /// A value passed, and has to pass so often again; whether it failed meanwhile.
    Confirming {
        value: f64,
        left: u32,
        failed: bool,
    },
    Over,
}

/// The search.
#[derive(Debug, Clone)]
pub struct Confirmed {
    plan: ConfirmedPlan,
    phase: Phase,
    raised: u32,
    again: u32,
    /// What passed, once or as often as was asked.
    passed: Option<f64>,
    /// What passed as often as was asked.
    found: Option<f64>,
    failed: Option<f64>,
    inconsistent: Vec<f64>,
}

impl Confirmed {
    /// Nothing was tried yet.
    ///
    /// # Errors
    /// That the range is empty.
    pub fn new(plan: ConfirmedPlan) -> Result<Self, BadRange> {
        Ok(Self {
            plan,
            phase: Phase::Halving(Box::new(Bisect::new(plan.bisect)?)),
            raised: 0,
            again: 0,
            passed: None,
            found: None,
            failed: None,
            inconsistent: Vec::new(),
        })
    }

    /// The hardest value that passed as often as was asked; none before the search is over.
    pub fn found(&self) -> Option<f64> {
        self.found
    }

    /// The least hard value that failed, above what was found.
    pub fn failed(&self) -> Option<f64> {
        self.failed
    }

    /// Values that passed once and failed when they were tried again: the device does not do the same each time.
    pub fn inconsistent(&self) -> &[f64] {
        &self.inconsistent
    }

    fn value(&self, load: f64) -> f64 {
        if self.plan.whole { load.round().max(1.0) } else { load }
    }

    fn least(&self) -> f64 {
        match self.plan.raise.and_then(|raise| raise.least_over) {
            Some(over) => (self.plan.bisect.greatest / over).max(1.0),
            None => self.plan.bisect.least,
        }
    }

    /// From here on between these; over if nothing lies there.
    fn halve(&mut self, least: f64, greatest: f64) {
        let plan = BisectPlan { least, greatest, ..self.plan.bisect };
        self.phase = Bisect::new(plan).map_or(Phase::Over, |bisect| Phase::Halving(Box::new(bisect)));
    }

    /// The halving came to an end.
    fn halved(&mut self, bisect: &Bisect) {
        self.failed = bisect.failed().map(|failed| self.value(failed)).or(self.failed);
        let raises = self.plan.raise.map_or(0, |raise| raise.times);
        match bisect.passed() {
            // What passed before twice as much was tried did not pass again.
            None if self.raised > 0 && self.again < self.plan.times => {
                self.again += 1;
                let failed = self.failed.unwrap_or(1.0);
                self.inconsistent.push(failed);
                let least = self.least();
                self.halve(least, (failed * (1.0 - self.plan.apart)).max(least));
            }
            None => {}
            Some(passed) if self.failed.is_none() && self.raised < raises => {
                self.raised += 1;
                self.plan.bisect.greatest = passed * 2.0;
                self.halve(passed, passed * 2.0);
            }
            Some(passed) => self.confirm(self.value(passed)),
        }
    }

    fn confirm(&mut self, value: f64) {
        self.passed = Some(value);
        // The trial that found it was the first.
        match self.plan.confirm.saturating_sub(1) {
            0 => self.found = Some(value),
            left => self.phase = Phase::Confirming { value, left, failed: false },
        }
    }

    /// A value that passed failed when it was tried again.
    fn failed_again(&mut self, value: f64) {
        (self.passed, self.failed) = (None, Some(value));
        self.inconsistent.push(value);
        self.again += 1;
        let (least, greatest) = (self.least(), value * (1.0 - self.plan.apart));
        if self.again < self.plan.times && greatest > least {
            self.halve(least, greatest);
        }
    }
}

impl Search for Confirmed {
    fn next(&self) -> Option<Wanted> {
        match &self.phase {
            Phase::Halving(bisect) => {
                let wanted = bisect.next()?;
                Some(Wanted { load: self.value(wanted.load), ..wanted })
            }
            Phase::Confirming { value, .. } => {
                Some(Wanted::steady(*value, self.plan.bisect.trial_ns, self.plan.stage))
            }
            Phase::Over => None,
        }
    }

    fn tell(&mut self, outcome: &Outcome) {
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Halving(mut bisect) => {
                bisect.tell(outcome);
                match bisect.next() {
                    Some(_) => self.phase = Phase::Halving(bisect),
                    None => self.halved(&bisect),
                }
            }
            Phase::Confirming { value, left, failed } => {
                let failed = failed || !self.plan.bisect.limits.hold(outcome);
                match left - 1 {
                    left if left > 0 && (self.plan.all || !failed) => {
                        self.phase = Phase::Confirming { value, left, failed };
                    }
                    _ if failed => self.failed_again(value),
                    _ => self.found = Some(value),
                }
            }
            Phase::Over => {}
        }
    }

    fn left(&self) -> Left {
        let again = Left::of(self.plan.confirm.saturating_sub(1).into(), self.plan.bisect.trial_ns);
        match &self.phase {
            Phase::Halving(bisect) => {
                let mut left = bisect.left();
                left.add(again);
                left
            }
            Phase::Confirming { left, .. } => Left::of((*left).into(), self.plan.bisect.trial_ns),
            Phase::Over => Left::default(),
        }
    }

    fn looks_elsewhere(&self) -> bool {
        matches!(self.phase, Phase::Halving(_))
    }

    fn bounds(&self) -> Vec<(Option<f64>, Option<f64>)> {
        match &self.phase {
            Phase::Halving(bisect) => {
                let failed = Bisect::failed(bisect).map(|failed| self.value(failed));
                vec![(Bisect::passed(bisect).map(|passed| self.value(passed)), failed.or(self.failed))]
            }
            Phase::Confirming { .. } | Phase::Over => vec![(self.passed, self.failed)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bisect::{Direction, Resolution};
    use crate::limits::Limits;
    use crate::search::run;
    use crate::trial::Device;
    use proptest::prelude::*;

    fn plan(confirm: u32) -> ConfirmedPlan {
        ConfirmedPlan {
            bisect: BisectPlan {
                least: 10.0,
                greatest: 10_000.0,
                resolution: Resolution::Relative(0.02),
                direction: Direction::Greatest,
                limits: Limits::loss(0.0),
                trial_ns: 1000,
                short_ns: 1000,
                retries: 0,
                retry_loss_ratio: 0.0,
                in_parts: false,
                enough: 0.0,
            },
            apart: 0.02,
            confirm,
            stage: Stage::Confirm,
            all: false,
            times: 5,
            whole: true,
            raise: None,
        }
    }

    /// What passes a load is a function of it and of the trial's number.
    struct Fickle<F>(F, u32, Vec<Wanted>);

    impl<F: Fn(f64, u32) -> bool> Device for Fickle<F> {
        type Error = ();

        fn run(&mut self, wanted: &Wanted) -> Result<Outcome, ()> {
            self.1 += 1;
            self.2.push(*wanted);
            assert!(self.1 < 500, "no end");
            Ok(Outcome::judged((self.0)(wanted.load, self.1)))
        }
    }

    fn searched<F: Fn(f64, u32) -> bool>(plan: ConfirmedPlan, passes: F) -> (Confirmed, Vec<Wanted>) {
        let mut search = Confirmed::new(plan).expect("a range");
        let mut device = Fickle(passes, 0, Vec::new());
        run(&mut search, &mut device).expect("a device");
        (search, device.2)
    }

    proptest! {
        /// Of a device that always does the same, whatever its limit is.
        #[test]
        fn what_is_found_passed_as_often_as_was_asked_and_lies_below_what_failed(
            limit in 5.0..20_000.0f64, confirm in 1..5u32, all: bool,
        ) {
            let (search, tried) = searched(ConfirmedPlan { all, ..plan(confirm) }, |load, _| load <= limit);
            let at = |load: f64| tried.iter().filter(|wanted| wanted.load == load).count();
            match search.found() {
                Some(found) => {
                    prop_assert!(found <= limit);
                    // Neighbours may be the same whole number.
                    prop_assert!(at(found) >= confirm as usize);
                    let failed = search.failed();
                    prop_assert!(failed.map_or(limit >= 10_000.0, |failed| failed > limit && failed - found <= failed * 0.02 + 1.0));
                }
                None => prop_assert!(limit < 10.0),
            }
            prop_assert!(search.inconsistent().is_empty());
        }

        /// Of one that does not, a value that was found never failed a trial since it was looked for.
        #[test]
        fn a_value_that_failed_again_is_not_what_is_found(seed in any::<u64>(), all: bool) {
            let whim = |load: f64, number: u32| {
                let mixed = (load as u64 ^ seed).wrapping_add(u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                load <= 300.0 || load <= 3000.0 && (mixed >> 60) < 12
            };
            let (search, tried) = searched(ConfirmedPlan { all, ..plan(3) }, whim);
            if let Some(found) = search.found() {
                let passed = |(number, wanted): &(usize, &Wanted)| wanted.load == found && whim(found, *number as u32 + 1);
                prop_assert!(tried.iter().enumerate().filter(passed).count() >= 3);
                prop_assert!(search.inconsistent().iter().all(|other| *other > found));
                prop_assert!(search.failed().is_none_or(|failed| failed > found));
            }
        }
    }

    #[test]
    fn all_further_trials_are_done_where_that_is_asked() {
        // What passes first fails from its second trial on.
        let of = |all| {
            let (search, tried) =
                searched(ConfirmedPlan { all, times: 1, ..plan(4) }, |_, number| number < 2);
            assert_eq!((search.found(), search.inconsistent()), (None, &[10_000.0][..]));
            tried.len()
        };
        assert_eq!((of(false), of(true)), (2, 4));
    }

    #[test]
    fn a_range_whose_greatest_passes_is_raised_and_no_more_often_than_may_be() {
        let raised = |times, limit: f64| {
            let plan = ConfirmedPlan { raise: Some(Raise { times, least_over: None }), ..plan(1) };
            searched(plan, |load, _| load <= limit).0
        };
        let found = raised(6, 90_000.0);
        assert!(found.found().is_some_and(|rate| (85_000.0..=90_000.0).contains(&rate)), "{found:?}");
        let found = raised(2, 90_000.0);
        assert_eq!((found.found(), found.failed()), (Some(40_000.0), None));
    }
}
