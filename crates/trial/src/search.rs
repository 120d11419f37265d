//! What all searches are: state machines that want trials and are told outcomes.
//!
//! A search is a function of the outcomes it was told, in order. So it needs no state in a file to be continued: whoever
//! kept the trials tells them again ([`resume`]), and the search is where it was.

use crate::trial::{Device, FrameToFrame, Latency, Outcome, Wanted};
use serde::{Deserialize, Serialize};

/// A search.
pub trait Search {
    /// The trial it wants now; `None` when it is over.
    fn next(&self) -> Option<Wanted>;

    /// What came of the trial that it wanted.
    fn tell(&mut self, outcome: &Outcome);

    /// What is still to come: by what is known so far, or at most ([`Left::at_most`]). While a trial is wanted it is no less
    /// than that trial.
    fn left(&self) -> Left;

    /// Does it go on at other loads where a trial could not be judged? Then the same one need not be repeated as often.
    fn looks_elsewhere(&self) -> bool {
        false
    }

    /// Between which loads the answer lies, as far as is known: for each goal the highest that passed and the lowest above it
    /// that failed. Nothing for what looks for no bound.
    fn bounds(&self) -> Vec<(Option<f64>, Option<f64>)> {
        Vec::new()
    }
}

/// Trials that are still to come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Left {
    /// Trials, about.
    pub trials: u64,
    /// The time they send, without what is between them.
    pub sending_ns: u64,
    /// There may be fewer and not more. Else it is what the search comes to if the device goes on as it did, and there may be
    /// more as well.
    pub at_most: bool,
}

impl Left {
    /// Takes both together.
    pub fn add(&mut self, other: Left) {
        self.trials += other.trials;
        self.sending_ns = self.sending_ns.saturating_add(other.sending_ns);
        self.at_most |= other.at_most;
    }

    /// So many times the same.
    pub fn times(self, times: u64) -> Self {
        Self {
            trials: self.trials.saturating_mul(times),
            sending_ns: self.sending_ns.saturating_mul(times),
            at_most: self.at_most && times > 0,
        }
    }

    /// So many trials of the same length.
    pub fn of(trials: u64, each_ns: u64) -> Self {
        Self { trials, sending_ns: trials.saturating_mul(each_ns), at_most: false }
    }

    /// What `search` would still do with a device that loses nothing of loads that `passes` says so of, and of others what is
    /// beyond the `limit`. The search itself is asked, because whatever counts its trials by another rule is wrong where it
    /// turns: such a count stood still, or rose, while trials were done.
    pub(crate) fn presumed<S: Search + Clone>(search: &S, passes: impl Fn(f64) -> bool, limit: f64) -> Self {
        let mut ahead = search.clone();
        let mut left = Left::default();
        while let Some(wanted) = ahead.next().filter(|_| left.trials < MOST_PRESUMED) {
            left.add(Left::of(1, wanted.sending_ns()));
            let received = match passes(wanted.load) {
                true => PRESUMED_FRAMES,
                // What fails loses a frame at least.
                false => ((PRESUMED_FRAMES as f64 * (limit / wanted.load).clamp(0.0, 1.0)) as u64)
                    .saturating_sub(1),
            };
            // Delays are presumed to be none: that they, too, bound a load is known by the bounds.
            let latency = Latency { frame_to_frame: Some(FrameToFrame::default()), ..Latency::default() };
            ahead.tell(&Outcome {
                intended: PRESUMED_FRAMES,
                sent: PRESUMED_FRAMES,
                received,
                latency: Some(latency),
                ..Outcome::default()
            });
        }
        left
    }
}

/// Of a trial that is presumed: enough that no loss ratio is rounded away.
const PRESUMED_FRAMES: u64 = 1_000_000_000;
/// A search of more trials takes longer than anybody waits; how much longer is no matter.
const MOST_PRESUMED: u64 = 10_000;

/// A trial that was done.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// What was wanted.
    pub wanted: Wanted,
    /// What came of it.
    pub outcome: Outcome,
}

/// Trials that are not of the search they are told to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotThisSearch {
    /// It does not want a trial that was done.
    #[error("its trial {number} is not the one that this search would do there")]
    Other {
        /// The trial, from 0.
        number: usize,
    },
    /// It ended before all trials that were done.
    #[error("it has {trials} trials, but this search is over after {used}")]
    TooMany {
        /// Trials that were done.
        trials: usize,
        /// Trials that it wanted.
        used: usize,
    },
}

/// Tells a new search what was done, so that it goes on from there.
///
/// # Errors
/// That what was done are no trials of this search.
pub fn resume(search: &mut (impl Search + ?Sized), done: &[Done]) -> Result<(), NotThisSearch> {
    for (index, trial) in done.iter().enumerate() {
        match search.next() {
            None => return Err(NotThisSearch::TooMany { trials: done.len(), used: index }),
            Some(wanted) if !wanted.is(&trial.wanted) => {
                return Err(NotThisSearch::Other { number: index + 1 });
            }
            Some(_) => search.tell(&trial.outcome),
        }
    }
    Ok(())
}

/// Runs a search on a device to its end.
///
/// # Errors
/// What the device says: it ends the search.
pub fn run<D: Device>(search: &mut (impl Search + ?Sized), device: &mut D) -> Result<Vec<Done>, D::Error> {
    let mut done = Vec::new();
    while let Some(wanted) = search.next() {
        let outcome = device.run(&wanted)?;
        search.tell(&outcome);
        done.push(Done { wanted, outcome });
    }
    Ok(done)
}
