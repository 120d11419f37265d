//! What one goal wants to have tried next.
//!
//! It goes through its targets from the coarsest to the goal itself. For each it first asks again, for the longer time and
//! the finer width that the target has, at the bounds of the target before; where those do not hold any more it steps
//! outwards, ever wider; between bounds it halves.

use super::Target;
use super::limit::{fit, split};
use super::tally::{Bounds, Tally};
use crate::unjudged::Unjudged;
use std::ops::Range;

/// A trial that a goal nominates.
#[derive(Debug, Clone, Copy)]
pub struct Candidate {
    pub load: i64,
    /// Seconds.
    pub trial: f64,
    pub width: i64,
    way: Way,
}

impl Candidate {
    /// The lowest load first: what is too much for the device is found sooner. Then the longest trial, then the widest.
    pub fn comes_before(&self, other: &Candidate) -> bool {
        let by = self
            .load
            .cmp(&other.load)
            .then(other.trial.total_cmp(&self.trial))
            .then(other.width.cmp(&self.width));
        by.is_lt()
    }
}

/// How a candidate was come by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Inwards,
    Down,
    Up,
}

/// What a selector looks at.
#[derive(Debug)]
pub struct Known<'a> {
    pub tally: &'a Tally,
    pub targets: &'a [Target],
    pub top: i64,
    /// Loads whose trials could not be judged.
    pub unjudged: &'a Unjudged,
    /// Bounds of the goal itself are near enough if they are no further apart; 0: as near as it asks.
    pub enough: i64,
}

impl Known<'_> {
    /// The candidate, or another load between the bounds where trials there could not be judged. `None` when none can be, or what
    /// is known is enough.
    fn judgeable(&self, candidate: Candidate, target: &Target, bounds: Bounds) -> Option<Candidate> {
        let (place, length) = (candidate.load as f64, candidate.trial);
        if self.unjudged.times(place, length, 0.5) == 0 && !self.unjudged.is_over() {
            let near = |lower: i64, upper: i64| upper - lower <= self.enough;
            let enough = bounds.lower.zip(bounds.upper).is_some_and(|(lower, upper)| near(lower, upper));
            return (!enough).then_some(candidate);
        }
        let ends = (bounds.lower.unwrap_or(-1), bounds.upper.unwrap_or(self.top + 1));
        if ends.1 - ends.0 <= self.enough {
            return None;
        }
        let ends = (ends.0 as f64, ends.1 as f64);
        let load = self.unjudged.elsewhere(ends, length, 0.5, f64::round)? as i64;
        Some(Candidate { load, trial: length, width: target.width, way: Way::Inwards })
    }
}

/// One goal's way through its targets.
#[derive(Debug, Clone)]
pub struct Selector {
    targets: Range<usize>,
    expansion: i64,
    /// The target that is looked for; past the end when all are reached.
    at: usize,
    /// The bounds of the target before.
    initial: Bounds,
    /// How far the next step outwards goes.
    next_width: i64,
}

impl Selector {
    pub fn new(targets: Range<usize>, expansion: i64) -> Self {
        let at = targets.start;
        Self { targets, expansion, at, initial: Bounds::default(), next_width: 1 }
    }

    /// The coarsest target.
    pub fn first(&self) -> usize {
        self.targets.start
    }

    /// The goal itself.
    pub fn last(&self) -> usize {
        self.targets.end - 1
    }

    pub fn start(&mut self, lower: i64, upper: i64, targets: &[Target]) {
        self.enter(Bounds { lower: Some(lower), upper: Some(upper) }, targets);
    }

    fn enter(&mut self, initial: Bounds, targets: &[Target]) {
        self.initial = initial;
        let interval = match (initial.lower, initial.upper) {
            (Some(lower), Some(upper)) => upper - lower,
            _ => 0,
        };
        self.next_width = targets[self.at].width.max(interval) * self.expansion;
    }

    /// The trial it wants; `None` when its goal is reached.
    pub fn nominate(&mut self, known: &Known<'_>, global_width: i64) -> Option<Candidate> {
        loop {
            let target = known.targets.get(self.at)?;
            let bounds = known.tally.bounds(self.at, target);
            if target.is_reached(bounds, known.top) {
                // The goal itself is asked again each time: another goal's trial may take a bound away.
                if self.at == self.last() {
                    return None;
                }
                self.at += 1;
                self.enter(bounds, known.targets);
                continue;
            }
            let candidate = self.candidate(target, bounds, global_width, known.top);
            let candidate = candidate.and_then(|candidate| known.judgeable(candidate, target, bounds));
            let Some(candidate) = candidate else {
                // Nothing more can be known by trials of this length; by longer ones there may.
                if self.at == self.last() {
                    return None;
                }
                self.at += 1;
                self.enter(bounds, known.targets);
                continue;
            };
            if candidate.way == Way::Inwards {
                self.next_width = target.width.max(candidate.width) * self.expansion;
            }
            return Some(candidate);
        }
    }

    fn candidate(&self, target: &Target, bounds: Bounds, global_width: i64, top: i64) -> Option<Candidate> {
        let worth = |load: i64| {
            bounds.lower.is_none_or(|lower| load > lower) && bounds.upper.is_none_or(|upper| load < upper)
        };
        let candidate = |load, width, way| Some(Candidate { load, trial: target.trial, width, way });
        let Bounds { lower, upper } = self.initial;
        if let (Some(lower), Some(upper)) = (lower, upper) {
            let interval = upper - lower;
            if interval > target.width && interval <= 2 * target.width {
                let middle = lower + split(interval, target.width);
                if worth(middle) {
                    return candidate(middle, target.width, Way::Inwards);
                }
            }
        }
        for edge in [lower, upper].into_iter().flatten() {
            if worth(edge) {
                return candidate(edge, target.width, Way::Inwards);
            }
        }
        let wide = global_width.max(self.next_width);
        match (bounds.lower, bounds.upper) {
            (None, None) => None,
            (None, Some(upper)) => {
                let load = fit(upper - wide, target.width, None, Some(upper), top)?;
                candidate(load, wide, Way::Down)
            }
            (Some(lower), None) => {
                let load = fit(lower + wide, target.width, Some(lower), None, top)?;
                candidate(load, wide, Way::Up)
            }
            (Some(low), Some(high)) => {
                // A step out from where the bounds were before is better than the middle, while it is shorter.
                let part = split(high - low, target.width);
                let middle = low + part;
                let down = high - wide;
                if down > middle && upper.is_some_and(|upper| down < upper) {
                    return candidate(down, wide, Way::Down);
                }
                let up = low + wide;
                if up < middle && lower.is_some_and(|lower| up > lower) {
                    return candidate(up, wide, Way::Up);
                }
                candidate(middle, part.min(high - low - part), Way::Inwards)
            }
        }
    }

    /// Its candidate was tried. A step outwards that found nothing beyond makes the next step wider, for all goals.
    pub fn tried(&mut self, candidate: &Candidate, known: &Known<'_>, global_width: &mut i64) {
        let Some(target) = known.targets.get(self.at) else { return };
        let bounds = known.tally.bounds(self.at, target);
        let in_vain = match candidate.way {
            Way::Down => bounds.upper == Some(candidate.load),
            Way::Up => bounds.lower == Some(candidate.load),
            Way::Inwards => false,
        };
        if in_vain {
            self.next_width *= self.expansion;
            *global_width = self.next_width;
        }
    }
}
