//! Bisection: the greatest value that passes, found by halving (RFC 2544, 26.1).
//!
//! The axis may be anything of which more is harder: a rate, flows, the length of a burst; or of which less is harder, such
//! as the frame size at a rate in bits. Bounds are tried values; no value is taken to pass that was not tried.

use crate::limits::{Judged, Limits};
use crate::search::{Left, Search};
use crate::trial::{Outcome, Stage, Wanted};
use crate::unjudged::Unjudged;
use serde::{Deserialize, Serialize};

/// How near the bounds must come.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resolution {
    /// In units of the axis, of which values are whole multiples: 1 is exact to the frame.
    Units(f64),
    /// Relative to the upper bound.
    Relative(f64),
}

/// Which end of the axis is sought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// The greatest value that passes.
    #[default]
    Greatest,
    /// The least value that passes.
    Least,
}

/// What to search for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BisectPlan {
    /// Nothing below it is tried.
    pub least: f64,
    /// Nothing above it is tried, and it is tried first.
    pub greatest: f64,
    /// How near the bounds are to come.
    pub resolution: Resolution,
    /// Which end of the range is looked for.
    pub direction: Direction,
    /// What a trial must keep to pass.
    pub limits: Limits,
    /// How long a trial is; 0 for bursts.
    pub trial_ns: u64,
    /// How long trials are until the value is found, which is then tried for `trial_ns`; equal for none of that.
    pub short_ns: u64,
    /// A trial that failed is done again so often before its value has failed, as long as it lost no more than
    /// `retry_loss_ratio` (binary search with loss verification, ETSI GS NFV-TST 009, 12.3.3).
    pub retries: u32,
    /// Trials that lost more than this (0 to 1) are not done again.
    pub retry_loss_ratio: f64,
    /// Values are rates: of one that was offered in part, so much less passed ([`Judged::Partly`]).
    pub in_parts: bool,
    /// Bounds that are so near, relative to the upper one, are near enough where trials could not be judged; 0: none are.
    pub enough: f64,
}

/// A plan that cannot be followed.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum BadRange {
    /// It holds no value.
    #[error("from {least} to {greatest}: the first must be above 0 and no more than the second")]
    Range {
        /// Its lower end.
        least: f64,
        /// Its upper end.
        greatest: f64,
    },
    /// It is not above 0, or it is relative and not below 1.
    #[error("a resolution of {0}: give more than 0, and less than 1 if it is relative")]
    Resolution(f64),
}

/// The search.
#[derive(Debug, Clone)]
pub struct Bisect {
    plan: BisectPlan,
    /// Bounds in hardness: `passed` is below `failed`.
    passed: Option<f64>,
    failed: Option<f64>,
    /// Trials are short.
    short: bool,
    tries: u32,
    wanted: Option<f64>,
    /// What passed in a short trial and failed in a full one: the device is not as constant as the search needs.
    inconsistent: bool,
    /// Of the last value that failed, what came through: the answer, of a device that forwards so much whatever comes.
    forwarded: Option<f64>,
    /// By hardness.
    unjudged: Unjudged,
}

impl Bisect {
    /// Nothing was tried yet.
    ///
    /// # Errors
    /// That the range is empty.
    pub fn new(plan: BisectPlan) -> Result<Self, BadRange> {
        let (least, greatest) = (plan.least, plan.greatest);
        if !(least > 0.0 && greatest >= least && greatest.is_finite()) {
            return Err(BadRange::Range { least, greatest });
        }
        match plan.resolution {
            Resolution::Units(units) if units > 0.0 && units.is_finite() => {}
            Resolution::Relative(ratio) if ratio > 0.0 && ratio < 1.0 => {}
            Resolution::Units(value) | Resolution::Relative(value) => {
                return Err(BadRange::Resolution(value));
            }
        }
        let short = plan.short_ns < plan.trial_ns;
        let wanted = Some(greatest);
        Ok(Self {
            plan,
            passed: None,
            failed: None,
            short,
            tries: 0,
            wanted,
            inconsistent: false,
            forwarded: None,
            unjudged: Unjudged::default(),
        })
    }

    /// What it searches by.
    pub fn plan(&self) -> &BisectPlan {
        &self.plan
    }

    /// The hardest value that passed, in trials of full length if the search is over.
    pub fn passed(&self) -> Option<f64> {
        self.passed.map(|hardness| self.value(hardness))
    }

    /// The least hard value that failed.
    pub fn failed(&self) -> Option<f64> {
        self.failed.map(|hardness| self.value(hardness))
    }

    /// Did a value pass short trials and fail a full one?
    pub fn is_inconsistent(&self) -> bool {
        self.inconsistent
    }

    /// Are the bounds as near as was asked, or is there nothing beyond them? Where trials could not be judged they may not be.
    pub fn is_reached(&self) -> bool {
        let plan = &self.plan;
        match (self.passed, self.failed) {
            (Some(passed), None) => {
                passed >= plan.greatest || self.are_near(passed, plan.greatest) && plan.in_parts
            }
            (Some(passed), Some(failed)) => self.are_near(passed, failed),
            (None, Some(failed)) => failed <= plan.least * (1.0 + 1e-9),
            (None, None) => false,
        }
    }

    fn are_near(&self, passed: f64, failed: f64) -> bool {
        match self.plan.resolution {
            Resolution::Units(units) => failed - passed <= units * 1.000_001,
            Resolution::Relative(ratio) => failed - passed <= failed * ratio,
        }
    }

    /// Values of hardness that are nearer to each other are the same.
    fn apart(&self) -> f64 {
        match self.plan.resolution {
            Resolution::Units(units) => units / 2.0,
            Resolution::Relative(ratio) => self.failed.unwrap_or(self.plan.greatest) * ratio / 8.0,
        }
    }

    fn duration(&self) -> u64 {
        if self.short { self.plan.short_ns } else { self.plan.trial_ns }
    }

    /// Values are hard from the least on upwards, whatever the direction.
    fn value(&self, hardness: f64) -> f64 {
        match self.plan.direction {
            Direction::Greatest => hardness,
            Direction::Least => self.plan.least + self.plan.greatest - hardness,
        }
    }

    /// Where the answer may be, in hardness: what the device forwarded, if that is between the bounds, else their middle.
    pub(crate) fn guess(&self) -> f64 {
        let (low, high) = (self.passed.unwrap_or(self.plan.least), self.failed.unwrap_or(self.plan.greatest));
        // Of nothing that passed it may be less than all that may be tried.
        let none = self.passed.is_none();
        let forwarded = self.forwarded.filter(|&forwarded| (none || low < forwarded) && forwarded < high);
        forwarded.unwrap_or(low + (high - low) / 2.0)
    }

    /// What is left if the hardness `limit` is the answer.
    pub(crate) fn left_if(&self, limit: f64) -> Left {
        // The value of a hardness is as far from one end as the hardness is from the other; so it is the other way, too.
        Left::presumed(self, |value| self.value(value) <= limit, self.value(limit))
    }

    /// What lies between the bounds; `None` when they are near enough, or nothing there can be judged.
    fn between(&self) -> Option<f64> {
        let plan = &self.plan;
        // None: the hardest passed, or nothing that was tried could be judged.
        let Some(failed) = self.failed else {
            return self.again(plan.greatest).filter(|_| !self.is_reached());
        };
        let low = match self.passed {
            Some(passed) => passed,
            // The easiest was tried, too.
            None if failed <= plan.least => return None,
            None => plan.least,
        };
        if self.are_near(low, failed) {
            return self.easiest();
        }
        let enough = self.passed.is_some() && failed - low <= failed * plan.enough;
        if self.unjudged.is_some() && enough {
            return None;
        }
        let round = |value: f64| match plan.resolution {
            // Multiples of a unit, counted from the least.
            Resolution::Units(units) => low + (((value - low) / units + 1e-6).floor().max(1.0)) * units,
            Resolution::Relative(_) => value,
        };
        let place = self.unjudged.elsewhere((low, failed), self.duration() as f64, self.apart(), round);
        place.or_else(|| self.easiest())
    }

    /// This value, if trials of it may yet be judged and it has not passed.
    fn again(&self, hardness: f64) -> Option<f64> {
        let passed = self.passed.is_some_and(|passed| passed >= hardness);
        let may = self.unjudged.may(hardness, self.duration() as f64, self.apart());
        (!passed && may).then_some(hardness)
    }

    /// The easiest value, when the bounds are near and nothing has passed.
    fn easiest(&self) -> Option<f64> {
        self.again(self.plan.least).filter(|_| self.passed.is_none())
    }

    fn advance(&mut self) {
        self.tries = 0;
        self.wanted = self.between();
        if self.wanted.is_none()
            && self.short
            && let Some(passed) = self.passed
        {
            self.short = false;
            self.wanted = Some(passed);
        }
    }
}

impl Search for Bisect {
    fn next(&self) -> Option<Wanted> {
        let hardness = self.wanted?;
        let duration = self.duration();
        let confirming = self.passed == Some(hardness);
        let stage = if confirming { Stage::Confirm } else { Stage::Search };
        Some(Wanted::steady(self.value(hardness), duration, stage))
    }

    fn bounds(&self) -> Vec<(Option<f64>, Option<f64>)> {
        vec![(Bisect::passed(self), Bisect::failed(self))]
    }

    fn tell(&mut self, outcome: &Outcome) {
        let Some(hardness) = self.wanted else { return };
        let confirming = self.passed == Some(hardness);
        // Of an axis of which less is harder, frames that came say nothing of where the limit is.
        if self.plan.direction == Direction::Greatest && outcome.loss_ratio() > 0.0 {
            self.forwarded = Some(hardness * (1.0 - outcome.loss_ratio()));
        }
        match self.plan.limits.judge(outcome) {
            Judged::Passed => {
                self.passed = Some(hardness);
                if confirming {
                    self.wanted = None;
                    return;
                }
            }
            Judged::Failed
                if self.tries < self.plan.retries && outcome.loss_ratio() < self.plan.retry_loss_ratio =>
            {
                self.tries += 1;
                return;
            }
            Judged::Failed => {
                self.failed = Some(hardness);
                if confirming {
                    // What passed below it passed in short trials only: all is to be tried again.
                    self.passed = None;
                    self.inconsistent = true;
                }
            }
            judged => {
                let share = match judged {
                    Judged::Partly(share) if self.plan.in_parts => share,
                    _ => 0.0,
                };
                let (place, length) = (hardness, self.duration() as f64);
                self.unjudged.note(place, length, self.apart());
                if confirming {
                    self.tries = 0;
                    if self.unjudged.may(place, length, self.apart()) {
                        return;
                    }
                    // It passed in short trials only.
                    self.passed = None;
                    self.wanted = None;
                    return;
                }
                let part = hardness * share;
                if part > self.passed.unwrap_or(self.plan.least) {
                    self.passed = Some(part);
                }
            }
        }
        self.advance();
    }

    fn looks_elsewhere(&self) -> bool {
        true
    }

    fn left(&self) -> Left {
        self.left_if(self.guess())
    }
}
