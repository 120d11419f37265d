//! What trials say of a bound while the search for it is not over: the hardest value that passed and the least hard one that
//! failed, by single trials, of whatever length. No result, because a search decides by trials of full length.

use crate::bisect::Direction;
use crate::limits::Broken;

/// A trial that was done.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tried {
    /// The load that was tried.
    pub load: f64,
    /// How long the trial was.
    pub duration_ns: u64,
    /// What it did not keep.
    pub broken: Option<Broken>,
}

/// A value, and how long the trial was that says so.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shown {
    /// The load.
    pub load: f64,
    /// How long the trial was that showed it.
    pub duration_ns: u64,
}

/// What is known so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SoFar {
    /// The hardest value that passed among those that are easier than all that failed.
    pub passed: Option<Shown>,
    /// The least hard value that the device failed.
    pub failed: Option<Shown>,
    /// Trials that were done.
    pub trials: u32,
    /// Of those, trials that passed.
    pub passed_trials: u32,
}

/// What these trials say. Those that say nothing of the device are counted, and bound nothing.
pub fn so_far(trials: impl IntoIterator<Item = Tried>, direction: Direction) -> SoFar {
    let trials: Vec<Tried> = trials.into_iter().collect();
    let hardness = |load: f64| match direction {
        Direction::Greatest => load,
        Direction::Least => -load,
    };
    // Of several trials of a value the longest says most.
    let longer = |a: &&Tried, b: &&Tried| a.duration_ns.cmp(&b.duration_ns);
    let failed = trials.iter().filter(|tried| tried.broken.is_some_and(|broken| !broken.is_the_testers()));
    let failed =
        failed.min_by(|a, b| hardness(a.load).total_cmp(&hardness(b.load)).then(longer(a, b).reverse()));
    let below = |tried: &&Tried| failed.is_none_or(|failed| hardness(tried.load) < hardness(failed.load));
    let passed = trials.iter().filter(|tried| tried.broken.is_none());
    let passed_trials = passed.clone().count() as u32;
    let passed =
        passed.filter(below).max_by(|a, b| hardness(a.load).total_cmp(&hardness(b.load)).then(longer(a, b)));
    let shown = |tried: &Tried| Shown { load: tried.load, duration_ns: tried.duration_ns };
    SoFar { passed: passed.map(shown), failed: failed.map(shown), trials: trials.len() as u32, passed_trials }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Broken::{Loss, Receiver, Shortfall};

    fn tried(load: f64, duration_ns: u64, broken: Option<Broken>) -> Tried {
        Tried { load, duration_ns, broken }
    }

    fn shown(load: f64, duration_ns: u64) -> Option<Shown> {
        Some(Shown { load, duration_ns })
    }

    #[test]
    fn the_best_that_passed_lies_below_the_lowest_that_failed() {
        let trials = [
            tried(100.0, 1, Some(Loss)),
            tried(50.0, 1, None),
            tried(50.0, 4, None),
            tried(75.0, 1, None),
            tried(75.0, 4, Some(Loss)),
            tried(80.0, 1, None),
            // Nothing of the device.
            tried(60.0, 4, Some(Shortfall)),
            tried(40.0, 4, Some(Receiver)),
        ];
        let known = so_far(trials, Direction::Greatest);
        assert_eq!((known.passed, known.failed), (shown(50.0, 4), shown(75.0, 4)));
        assert_eq!((known.trials, known.passed_trials), (8, 4));
    }

    #[test]
    fn what_was_not_tried_is_not_said() {
        assert_eq!(so_far([], Direction::Greatest), SoFar::default());
        let failed = so_far([tried(9.0, 1, Some(Loss)), tried(5.0, 2, Some(Loss))], Direction::Greatest);
        assert_eq!((failed.passed, failed.failed), (None, shown(5.0, 2)));
        let passed = so_far([tried(5.0, 2, None), tried(9.0, 1, None)], Direction::Greatest);
        assert_eq!((passed.passed, passed.failed), (shown(9.0, 1), None));
        let unjudged = so_far([tried(9.0, 1, Some(Shortfall))], Direction::Greatest);
        assert_eq!((unjudged.passed, unjudged.failed, unjudged.trials), (None, None, 1));
    }

    #[test]
    fn where_less_is_harder_the_least_that_passed_is_best() {
        let trials = [tried(64.0, 1, Some(Loss)), tried(500.0, 1, Some(Loss)), tried(800.0, 1, None)];
        let known = so_far(trials, Direction::Least);
        assert_eq!((known.passed, known.failed), (shown(800.0, 1), shown(500.0, 1)));
    }
}
