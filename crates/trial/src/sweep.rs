//! Values that are all tried, again and again, until their means are sure: how a result depends on a setting.
//!
//! All are tried once before any is tried again, so that what changes meanwhile (others' load, heat) is in all alike.

use crate::search::{Left, Search};
use crate::trial::{Outcome, Stage, Wanted};
use histogram::student::interval_width;

/// How sure the mean of a value is to be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sure {
    /// At this confidence (0 to 1)
    pub level: f64,
    /// the whole interval is no wider than this share of the mean.
    pub width: f64,
}

/// What to try.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepPlan {
    /// The values.
    pub loads: Vec<f64>,
    /// Each is tried so often at least,
    pub least: u32,
    /// and at most, where it is to be sure.
    pub most: u32,
    /// How sure.
    pub sure: Option<Sure>,
    /// How long a trial is.
    pub trial_ns: u64,
}

/// The trials. Their outcomes have a `result`.
#[derive(Debug, Clone)]
pub struct Sweep {
    plan: SweepPlan,
    /// Of each value, in their order.
    results: Vec<Vec<f64>>,
}

impl Sweep {
    /// Nothing was tried yet.
    pub fn new(mut plan: SweepPlan) -> Sweep {
        match plan.sure {
            // Of fewer than three no interval says much.
            Some(_) => plan.least = plan.least.max(3),
            None => plan.most = plan.least,
        }
        plan.most = plan.most.max(plan.least);
        let results = vec![Vec::new(); plan.loads.len()];
        Sweep { plan, results }
    }

    /// Each value with its results, in the plan's order.
    pub fn results(&self) -> impl Iterator<Item = (f64, &[f64])> {
        self.plan.loads.iter().copied().zip(self.results.iter().map(Vec::as_slice))
    }

    fn is_unsure(&self, results: &[f64]) -> bool {
        let Some(sure) = self.plan.sure else { return false };
        interval_width(results, sure.level).is_none_or(|width| width > sure.width)
    }

    /// Values whose mean is not so sure as was asked for.
    pub fn unsure(&self) -> usize {
        self.results.iter().filter(|results| self.is_unsure(results)).count()
    }

    fn wants(&self, results: &[f64]) -> bool {
        let done = results.len();
        done < self.plan.least as usize || (done < self.plan.most as usize && self.is_unsure(results))
    }

    /// Which is tried next: of those that are to be tried the one that was least often.
    fn place(&self) -> Option<usize> {
        let open = self.results.iter().enumerate().filter(|(_, results)| self.wants(results));
        open.min_by_key(|(_, results)| results.len()).map(|(place, _)| place)
    }
}

impl Search for Sweep {
    fn next(&self) -> Option<Wanted> {
        let load = self.plan.loads.get(self.place()?)?;
        Some(Wanted::steady(*load, self.plan.trial_ns, Stage::Measure))
    }

    fn tell(&mut self, outcome: &Outcome) {
        let of = self.place().and_then(|place| self.results.get_mut(place));
        if let Some(results) = of {
            results.push(outcome.result.unwrap_or(0.0));
        }
    }

    fn left(&self) -> Left {
        let open = self.results.iter().filter(|results| self.wants(results));
        let each =
            |results: &Vec<f64>| u64::from(self.plan.least).saturating_sub(results.len() as u64).max(1);
        Left::of(open.map(each).sum(), self.plan.trial_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(loads: &[f64], least: u32, sure: Option<Sure>, most: u32) -> SweepPlan {
        SweepPlan { loads: loads.to_vec(), least, most, sure, trial_ns: 7 }
    }

    fn whole(plan: SweepPlan, result: impl Fn(f64, usize) -> f64) -> (Sweep, Vec<f64>) {
        let (mut sweep, mut order) = (Sweep::new(plan), Vec::<f64>::new());
        while let Some(wanted) = sweep.next() {
            let so_far = order.iter().filter(|load| **load == wanted.load).count();
            order.push(wanted.load);
            let result = Some(result(wanted.load, so_far));
            assert!(sweep.left().trials > 0 && order.len() < 1000);
            sweep.tell(&Outcome { result, ..Outcome::default() });
        }
        assert_eq!(sweep.left(), Left::of(0, 7));
        (sweep, order)
    }

    #[test]
    fn every_value_is_tried_once_before_any_is_tried_again() {
        let asked = plan(&[0.0, 10.0, 20.0], 2, None, 10);
        assert_eq!(Sweep::new(asked.clone()).left(), Left::of(6, 7));
        assert_eq!(whole(asked, |_, _| 1.0).1, [0.0, 10.0, 20.0, 0.0, 10.0, 20.0]);
    }

    #[test]
    fn what_varies_is_repeated_until_it_is_sure_or_often_enough() {
        let sure = Sure { level: 0.95, width: 0.1 };
        let asked = plan(&[0.0, 10.0, 20.0], 1, Some(sure), 6);
        let (sweep, order) = whole(asked, |load, n| if load == 20.0 { 1.0 + n as f64 } else { 1.0 });
        let times = |load: f64| order.iter().filter(|tried| **tried == load).count();
        assert_eq!([0.0, 10.0, 20.0].map(times), [3, 3, 6]);
        assert_eq!(sweep.unsure(), 1);
        assert_eq!(sweep.results().nth(2).map(|(_, results)| results.len()), Some(6));
    }
}
