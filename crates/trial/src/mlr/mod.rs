//! MLRsearch: the throughput of several goals at once, in as few and as short trials as possible
//! (RFC 9971).
//!
//! ```text
//!   trial at the greatest load --> a second where forwarding suggests --> a third beside it      (start)
//!                                                                              |
//!   each goal: targets from coarse and short to fine and long; each nominates a trial (selector) |
//!        '--> of the nominated, the lowest load is tried --> told to all (tally) --> again, until no goal wants any
//! ```
//!
//! It chooses the same loads as the library `MLRsearch` 1.2.1 that FD.io CSIT publishes, trial by trial:
//! `tests/all/mlrsearch_library.rs` runs both beside each other. Written from the draft and the library's behaviour.

mod grid;
mod limit;
mod selector;
mod tally;

use crate::limits::{Judged, Limits};
use crate::search::{Left, Search};
use crate::trial::{Outcome, Stage, Wanted};
use crate::unjudged::Unjudged;
use grid::Grid;
use limit::fit;
use selector::{Candidate, Known, Selector};
use serde::{Deserialize, Serialize};
use tally::Tally;

/// What a throughput is searched for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    /// What a trial must keep to be a good one.
    pub limits: Limits,
    /// So much of the time at a load may be bad (0 to below 1).
    pub exceed_ratio: f64,
    /// Lower and upper bound end up so near each other, relative to the upper.
    pub relative_width: f64,
    /// Trials of the coarsest target, in seconds.
    pub initial_trial_s: f64,
    /// No trial is longer than this; trials of the goal itself have this length.
    pub final_trial_s: f64,
    /// A load is decided after trials of so much time in all.
    pub duration_sum_s: f64,
    /// Coarser targets before the goal.
    pub preceding_targets: u32,
    /// Each failed step outwards makes the next so much wider.
    pub expansion: i64,
}

/// In less time than this, in seconds, what a device keeps in its queues is too much of what it forwards.
const SHORTEST_S: f64 = 0.25;

impl Goal {
    /// RFC 2544's throughput: not a frame lost in a trial of `seconds`. Trials that only lead there begin with a 240th of
    /// it and become long in three steps, so that what is found costs little more than the two trials between which it
    /// lies: with two steps, a device that keeps 10 ms in its buffers often costs two trials more, because it passes in
    /// seconds what it does not pass in a minute.
    pub fn rfc2544(seconds: f64, relative_width: f64) -> Self {
        Self {
            limits: Limits::default(),
            exceed_ratio: 0.0,
            relative_width,
            initial_trial_s: (seconds / 240.0).max(SHORTEST_S).min(seconds),
            final_trial_s: seconds,
            duration_sum_s: seconds,
            preceding_targets: 3,
            expansion: 2,
        }
    }

    /// Many short trials of which half may exceed the loss, as FD.io CSIT finds its NDR and PDR: 21 of 1 s.
    pub fn csit(loss_ratio: f64, trial_s: f64, relative_width: f64) -> Self {
        Self {
            limits: Limits::loss(loss_ratio),
            exceed_ratio: 0.5,
            relative_width,
            initial_trial_s: trial_s,
            final_trial_s: trial_s,
            duration_sum_s: trial_s * 21.0,
            preceding_targets: 2,
            expansion: 2,
        }
    }
}

/// What is to be found, and where.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// All are searched for at once.
    pub goals: Vec<Goal>,
    /// No load below it is tried, in frames per second.
    pub least: f64,
    /// No load above it is tried.
    pub greatest: f64,
    /// A first trial at the greatest load whose outcome is not used, in seconds; 0 for none.
    pub warm_up_s: f64,
    /// Trials may take this much time in all; then the search ends with what is known.
    pub most_s: f64,
    /// Bounds that are so near, relative to the upper one, are near enough where trials could not be judged; 0: none are.
    #[serde(default)]
    pub enough: f64,
}

/// A plan that cannot be followed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum BadPlan {
    /// There is nothing to search for.
    #[error("a search needs a goal")]
    NoGoal,
    /// The range of loads holds none.
    #[error("loads from {least} to {greatest}: the least must be above 0 and below the greatest")]
    Loads {
        /// Its lower end.
        least: f64,
        /// Its upper end.
        greatest: f64,
    },
    /// A number of a goal is not possible.
    #[error("{what} {value}: {possible}")]
    Goal {
        /// Which.
        what: &'static str,
        /// What it is.
        value: f64,
        /// What it may be.
        possible: &'static str,
    },
}

/// One goal's way point: how sure, and how near.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub limits: Limits,
    pub exceed: f64,
    /// In units of the grid.
    pub width: i64,
    /// Duration of a trial, in seconds.
    pub trial: f64,
    /// Time until a load is decided, in seconds.
    pub sum: f64,
}

/// What a goal came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// The greatest load known to meet the goal.
    pub lower: Option<f64>,
    /// The least load known to fail it.
    pub upper: Option<f64>,
    /// What was forwarded at the lower bound, in the worst time that the goal counts.
    pub conditional_throughput: Option<f64>,
    /// The bounds are as near as the goal asks, or the range ends there.
    pub reached: bool,
}

/// Where the search stands.
#[derive(Debug, Clone, Copy)]
enum Step {
    WarmUp,
    AtMost,
    Second {
        forwarded: i64,
    },
    Third {
        second: i64,
        forwarded: i64,
    },
    /// A goal's candidate is being tried.
    Main {
        goal: usize,
        candidate: Candidate,
    },
    Over,
}

/// The search.
#[derive(Debug, Clone)]
pub struct MlrSearch {
    plan: Plan,
    grid: Grid,
    targets: Vec<Target>,
    tally: Tally,
    selectors: Vec<Selector>,
    global_width: i64,
    step: Step,
    /// The trial that is wanted: its load and its seconds.
    wanted: Option<(i64, f64)>,
    spent_s: f64,
    timed_out: bool,
    /// What came through in the last trial that lost frames.
    passing: Option<f64>,
    /// By the numbers of loads.
    unjudged: Unjudged,
}

impl MlrSearch {
    /// Nothing was tried yet.
    ///
    /// # Errors
    /// That the range is empty, there is no goal, or goals contradict each other.
    pub fn new(plan: Plan) -> Result<Self, BadPlan> {
        check(&plan)?;
        let widths: Vec<f64> = plan.goals.iter().map(|goal| goal.relative_width).collect();
        let grid = Grid::new(plan.least, plan.greatest, &widths);
        let mut targets = Vec::new();
        let mut selectors = Vec::new();
        for goal in &plan.goals {
            let first = targets.len();
            targets.extend(targets_of(goal, &grid));
            selectors.push(Selector::new(first..targets.len(), goal.expansion));
        }
        let mut search = Self {
            plan,
            grid,
            targets,
            tally: Tally::default(),
            selectors,
            global_width: 1,
            step: Step::AtMost,
            wanted: None,
            spent_s: 0.0,
            timed_out: false,
            passing: None,
            unjudged: Unjudged::default(),
        };
        search.wanted = Some((search.grid.top, search.start_duration()));
        if search.plan.warm_up_s > 0.0 {
            search.step = Step::WarmUp;
            search.wanted = Some((search.grid.top, search.plan.warm_up_s));
        }
        Ok(search)
    }

    /// The plan it follows.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What is known of each goal so far, in the plan's order.
    pub fn found(&self) -> Vec<Found> {
        let of = |selector: &Selector| {
            let number = selector.last();
            let target = &self.targets[number];
            let bounds = self.tally.bounds(number, target);
            let load = |number: i64| self.grid.load(number);
            Found {
                lower: bounds.lower.map(load),
                upper: bounds.upper.map(load),
                conditional_throughput: bounds
                    .lower
                    .map(|lower| load(lower) * self.tally.forwarded_ratio(lower, number, target)),
                reached: target.is_reached(bounds, self.grid.top),
            }
        };
        self.selectors.iter().map(of).collect()
    }

    /// The time that a search may take was up before its goals were reached.
    pub fn timed_out(&self) -> bool {
        self.timed_out
    }

    fn start_duration(&self) -> f64 {
        self.plan.goals.iter().map(|goal| goal.initial_trial_s).fold(0.0, f64::max)
    }

    fn start_width(&self) -> i64 {
        self.selectors.iter().map(|selector| self.targets[selector.first()].width).max().unwrap_or(1)
    }

    fn least_loss(&self) -> f64 {
        self.plan.goals.iter().map(|goal| goal.limits.loss_ratio).fold(1.0, f64::min)
    }

    /// The load at which what was forwarded would be offered, with the loss that is allowed.
    fn forwarded(&self, load: i64, outcome: &Outcome) -> f64 {
        self.grid.load(load) * (1.0 - outcome.loss_ratio()) / (1.0 - self.least_loss())
    }

    /// Where the answer may be: what the device forwarded, if that is between the bounds of the goals, else their middle on the
    /// scale.
    fn guess(&self) -> f64 {
        // A device of that capacity passes a goal up to the load of which it loses no more than the goal allows.
        let (mut low, mut high) = (self.plan.least, self.plan.greatest);
        for (found, goal) in self.found().iter().zip(&self.plan.goals) {
            let capacity = |load: f64| load * (1.0 - goal.limits.loss_ratio);
            low = found.lower.map_or(low, |load| low.max(capacity(load)));
            high = found.upper.map_or(high, |load| high.min(capacity(load)));
        }
        // Of nothing that passed it may be less than all that may be tried.
        let none = self.found().iter().all(|found| found.lower.is_none());
        let forwarded = self.passing.filter(|&passing| (none || low <= passing) && passing < high);
        forwarded.unwrap_or_else(|| (low * high.max(low)).sqrt())
    }

    /// The start is over: both bounds of the first interval are measured.
    fn begin(&mut self, lower: i64, upper: i64) {
        self.global_width = upper - lower;
        for selector in &mut self.selectors {
            selector.start(lower, upper, &self.targets);
        }
        self.nominate();
    }

    /// Takes a trial down: for each target what it says of the load, or of the part of it that was offered.
    fn count(&mut self, load: i64, seconds: f64, outcome: &Outcome) {
        let judged = |target: &Target| target.limits.judge(outcome);
        self.tally.add((load, seconds), outcome.loss_ratio(), &self.targets, |target| match judged(target) {
            Judged::Passed => Some(true),
            Judged::Failed => Some(false),
            Judged::Partly(_) | Judged::Not => None,
        });
        // What goals say differs: that of any is that a trial there may say nothing.
        let mut open = self
            .targets
            .iter()
            .map(judged)
            .filter(|judged| matches!(judged, Judged::Partly(_) | Judged::Not));
        let Some(first) = open.next() else { return };
        self.unjudged.note(load as f64, seconds, 0.5);
        let Judged::Partly(share) = first else { return };
        let part = self.grid.below(self.grid.load(load) * share);
        if part < load && (part > 0 || self.plan.least <= self.grid.load(load) * share) {
            let passes = |target: &Target| matches!(judged(target), Judged::Partly(_)).then_some(true);
            self.tally.add((part, seconds), outcome.device_loss_ratio(), &self.targets, passes);
        }
    }

    /// Asks every goal for the trial it wants, and takes one.
    fn nominate(&mut self) {
        let known = Known {
            tally: &self.tally,
            targets: &self.targets,
            top: self.grid.top,
            unjudged: &self.unjudged,
            enough: if self.unjudged.is_some() && self.plan.enough > 0.0 {
                self.grid.width(self.plan.enough)
            } else {
                0
            },
        };
        let mut best: Option<(usize, Candidate)> = None;
        for (goal, selector) in self.selectors.iter_mut().enumerate() {
            let Some(candidate) = selector.nominate(&known, self.global_width) else { continue };
            if best.as_ref().is_none_or(|(_, best)| candidate.comes_before(best)) {
                best = Some((goal, candidate));
            }
        }
        match best {
            None => {
                self.step = Step::Over;
                self.wanted = None;
            }
            Some((goal, candidate)) => {
                self.step = Step::Main { goal, candidate };
                self.wanted = Some((candidate.load, candidate.trial));
                self.global_width = candidate.width;
            }
        }
    }
}

impl Search for MlrSearch {
    fn next(&self) -> Option<Wanted> {
        let (load, seconds) = self.wanted?;
        let stage = if matches!(self.step, Step::WarmUp) { Stage::WarmUp } else { Stage::Search };
        Some(Wanted::steady(self.grid.load(load), (seconds * 1e9).round() as u64, stage))
    }

    fn bounds(&self) -> Vec<(Option<f64>, Option<f64>)> {
        self.found().iter().map(|found| (found.lower, found.upper)).collect()
    }

    fn tell(&mut self, outcome: &Outcome) {
        let Some((load, seconds)) = self.wanted else { return };
        let (top, width) = (self.grid.top, self.start_width());
        self.spent_s += seconds;
        if matches!(self.step, Step::WarmUp) {
            self.step = Step::AtMost;
            self.wanted = Some((top, self.start_duration()));
            return;
        }
        if outcome.loss_ratio() > 0.0 {
            self.passing = Some(self.grid.load(load) * (1.0 - outcome.loss_ratio()));
        }
        self.count(load, seconds, outcome);
        if self.spent_s >= self.plan.most_s {
            let done = self.found().iter().all(|found| found.reached);
            self.timed_out = !done;
            self.step = Step::Over;
            self.wanted = None;
            return;
        }
        let position = self.grid.below(self.forwarded(load, outcome));
        let suggested = (position < top).then_some(position);
        match self.step {
            Step::WarmUp | Step::Over => {}
            Step::AtMost => match suggested.and_then(|load| fit(load, width, None, Some(top), top)) {
                Some(second) => {
                    self.step = Step::Second { forwarded: second };
                    self.wanted = Some((second, seconds));
                }
                None => self.begin(top, top),
            },
            Step::Second { forwarded } => {
                let third = if outcome.loss_ratio() > self.least_loss() {
                    fit(position, width, None, Some(forwarded), top)
                } else {
                    fit(forwarded + width, width, Some(forwarded), Some(top), top)
                };
                match third {
                    Some(third) => {
                        self.step = Step::Third { second: load, forwarded: third };
                        self.wanted = Some((third, seconds));
                    }
                    None => self.begin(load, load),
                }
            }
            Step::Third { second, forwarded } => self.begin(second.min(forwarded), second.max(forwarded)),
            Step::Main { goal, candidate } => {
                let known = Known {
                    tally: &self.tally,
                    targets: &self.targets,
                    top,
                    unjudged: &self.unjudged,
                    enough: 0,
                };
                self.selectors[goal].tried(&candidate, &known, &mut self.global_width);
                self.nominate();
            }
        }
    }

    fn looks_elsewhere(&self) -> bool {
        true
    }

    fn left(&self) -> Left {
        let limit = self.guess();
        Left::presumed(self, |load| load <= limit, limit)
    }
}

impl Target {
    /// Are the bounds near enough, or is there nothing beyond them?
    pub fn is_reached(&self, bounds: tally::Bounds, top: i64) -> bool {
        match (bounds.lower, bounds.upper) {
            (Some(lower), Some(upper)) => upper - lower <= self.width,
            (Some(lower), None) => lower >= top,
            (None, Some(upper)) => upper <= 0,
            (None, None) => false,
        }
    }
}

/// From the coarsest to the goal itself.
fn targets_of(goal: &Goal, grid: &Grid) -> Vec<Target> {
    let before = goal.preceding_targets;
    let width = grid.width(goal.relative_width);
    let shrink = (goal.initial_trial_s / goal.duration_sum_s).powf(1.0 / f64::from(before.max(1)));
    let mut targets = Vec::new();
    for k in (0..=before).rev() {
        let sum = match k {
            0 => goal.duration_sum_s,
            k if k == before => goal.initial_trial_s,
            k => goal.duration_sum_s * shrink.powi(k as i32),
        };
        targets.push(Target {
            limits: goal.limits,
            exceed: goal.exceed_ratio,
            width: width << k,
            trial: sum.min(goal.final_trial_s),
            sum,
        });
    }
    targets
}

fn check(plan: &Plan) -> Result<(), BadPlan> {
    let (least, greatest) = (plan.least, plan.greatest);
    if plan.goals.is_empty() {
        return Err(BadPlan::NoGoal);
    }
    // The negation catches what is no number, too.
    if !(least > 0.0 && greatest > least && greatest.is_finite()) {
        return Err(BadPlan::Loads { least, greatest });
    }
    for goal in &plan.goals {
        let checks = [
            (
                "loss ratio",
                goal.limits.loss_ratio,
                (0.0..1.0).contains(&goal.limits.loss_ratio),
                "0 to below 1",
            ),
            ("exceed ratio", goal.exceed_ratio, (0.0..1.0).contains(&goal.exceed_ratio), "0 to below 1"),
            (
                "relative width",
                goal.relative_width,
                (1e-6..1.0).contains(&goal.relative_width),
                "0.000001 to below 1",
            ),
            (
                "initial trial duration",
                goal.initial_trial_s,
                goal.initial_trial_s > 0.0 && goal.initial_trial_s <= goal.final_trial_s,
                "above 0, and no longer than the final one",
            ),
            (
                "duration sum",
                goal.duration_sum_s,
                goal.duration_sum_s >= goal.final_trial_s && goal.duration_sum_s.is_finite(),
                "no less than the final trial duration",
            ),
            ("expansion", goal.expansion as f64, (2..=1024).contains(&goal.expansion), "2 to 1024"),
            ("preceding targets", f64::from(goal.preceding_targets), goal.preceding_targets <= 16, "0 to 16"),
        ];
        for (what, value, good, possible) in checks {
            if !good {
                return Err(BadPlan::Goal { what, value, possible });
            }
        }
    }
    Ok(())
}
