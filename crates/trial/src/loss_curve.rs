//! Frame loss against load: from the greatest load down in steps, until two trials in succession lose nothing
//! (RFC 2544, 26.3).

use crate::limits::Limits;
use crate::search::{Left, Search};
use crate::trial::{Outcome, Stage, Wanted};
use serde::{Deserialize, Serialize};

/// What to measure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LossCurvePlan {
    /// 100 % of the load, in frames per second.
    pub greatest: f64,
    /// How much less each step is, of the greatest (RFC 2544: no more than 0.1).
    pub step_ratio: f64,
    /// How long a trial is.
    pub trial_ns: u64,
    /// What a trial keeps that loses nothing.
    pub limits: Limits,
}

/// The search.
#[derive(Debug, Clone)]
pub struct LossCurve {
    plan: LossCurvePlan,
    /// Steps done.
    step: u64,
    /// Trials without loss, up to now without a break.
    lossless: u32,
}

/// So many trials in succession without loss end it.
const ENOUGH: u32 = 2;

impl LossCurve {
    /// Nothing was tried yet.
    pub fn new(plan: LossCurvePlan) -> Self {
        Self { plan, step: 0, lossless: 0 }
    }

    fn ratio(&self) -> f64 {
        // Whole steps, not a sum of rounded ones.
        1.0 - self.step as f64 * self.plan.step_ratio
    }
}

impl Search for LossCurve {
    fn next(&self) -> Option<Wanted> {
        // The smallest step is not a load of zero.
        let some = self.ratio() > self.plan.step_ratio * 1e-6;
        (self.lossless < ENOUGH && some)
            .then(|| Wanted::steady(self.plan.greatest * self.ratio(), self.plan.trial_ns, Stage::Measure))
    }

    fn tell(&mut self, outcome: &Outcome) {
        self.step += 1;
        self.lossless = if self.plan.limits.hold(outcome) { self.lossless + 1 } else { 0 };
    }

    fn left(&self) -> Left {
        if self.next().is_none() {
            return Left::default();
        }
        // When two in succession lose nothing is not known before: a guess rose with each load that lost something after all.
        // All loads that there are is sure.
        let most = (self.ratio() / self.plan.step_ratio).round() as u64;
        Left { at_most: true, ..Left::of(most.max(1), self.plan.trial_ns) }
    }
}
