//! What is known of each load: how long trials there were good and bad, and what follows for a target.
//!
//! RFC 9971, "Load Classification". A load is a lower bound when even if all time that is still to be
//! measured turned out bad it would be one; an upper bound when it is even if all turned out good; undecided between.

use super::Target;
use std::collections::BTreeMap;

/// Seconds of trials at one load, as one target sees them. Long ones have at least the target's trial duration.
#[derive(Debug, Clone, Default)]
struct Seconds {
    good_long: f64,
    bad_long: f64,
    good_short: f64,
    bad_short: f64,
}

/// What a load is to a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    Lower,
    Upper,
    Undecided,
}

/// Trials at one load.
#[derive(Debug, Clone)]
struct At {
    /// By target.
    seconds: Vec<Seconds>,
    /// Each trial's duration in seconds, and its loss ratio.
    trials: Vec<(f64, f64)>,
}

/// All trials so far.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    loads: BTreeMap<i64, At>,
}

/// The tightest bounds of a target.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bounds {
    pub lower: Option<i64>,
    pub upper: Option<i64>,
}

impl Tally {
    /// Counts a trial of so many seconds at a load, of which so much was lost. `good`: does a target's goal hold; `None` where
    /// that cannot be said.
    pub fn add(
        &mut self,
        (load, duration): (i64, f64),
        loss_ratio: f64,
        targets: &[Target],
        good: impl Fn(&Target) -> Option<bool>,
    ) {
        let goods: Vec<Option<bool>> = targets.iter().map(good).collect();
        if goods.iter().all(Option::is_none) {
            return;
        }
        let at = self
            .loads
            .entry(load)
            .or_insert_with(|| At { seconds: vec![Seconds::default(); targets.len()], trials: Vec::new() });
        at.trials.push((duration, loss_ratio));
        for ((seconds, target), good) in at.seconds.iter_mut().zip(targets).zip(goods) {
            let Some(good) = good else { continue };
            let long = duration >= target.trial;
            *match (long, good) {
                (true, true) => &mut seconds.good_long,
                (true, false) => &mut seconds.bad_long,
                (false, true) => &mut seconds.good_short,
                (false, false) => &mut seconds.bad_short,
            } += duration;
        }
    }

    /// The bounds of target `number`. Above the lowest upper bound nothing counts: a load that passed although a lower one
    /// did not is not to be trusted.
    pub fn bounds(&self, number: usize, target: &Target) -> Bounds {
        let mut bounds = Bounds::default();
        for (&load, at) in &self.loads {
            match at.seconds.get(number).map_or(Class::Undecided, |seconds| seconds.class(target)) {
                Class::Lower => bounds.lower = Some(load),
                Class::Upper => {
                    bounds.upper = Some(load);
                    break;
                }
                Class::Undecided => {}
            }
        }
        bounds
    }

    /// The conditional throughput at a lower bound: its forwarding rate in the worst of the time that the goal counts.
    pub fn forwarded_ratio(&self, load: i64, number: usize, target: &Target) -> f64 {
        let Some(at) = self.loads.get(&load) else { return 0.0 };
        let Some(seconds) = at.seconds.get(number) else { return 0.0 };
        let mut losses: Vec<(f64, f64)> = at
            .trials
            .iter()
            .filter(|(duration, _)| *duration >= target.trial)
            .map(|&(duration, loss)| (loss, duration))
            .collect();
        losses.sort_by(|a, b| a.0.total_cmp(&b.0));
        let whole = target.sum.max(seconds.good_long + seconds.bad_long);
        let mut left = whole * (1.0 - target.exceed);
        let mut ratio = 0.0;
        for (loss, duration) in losses {
            if left <= 0.0 {
                break;
            }
            ratio = loss;
            left -= duration;
        }
        if left > 0.0 { 0.0 } else { 1.0 - ratio }
    }
}

impl Seconds {
    fn class(&self, target: &Target) -> Class {
        // Bad time of short trials counts only as far as good time of short trials does not make up for it.
        let worth = target.exceed / (1.0 - target.exceed);
        let excess = self.bad_long + (self.bad_short - self.good_short * worth).max(0.0);
        let whole = (self.good_long + excess).max(target.sum);
        let allowed = whole * target.exceed;
        match (excess <= allowed, whole - self.good_long <= allowed) {
            (true, true) => Class::Lower,
            (false, false) => Class::Upper,
            _ => Class::Undecided,
        }
    }
}
