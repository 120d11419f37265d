//! Back-to-back frames: the longest burst at the greatest rate of which nothing is lost, and what it says of the device's
//! buffer (RFC 9004).

use crate::bisect::{BadRange, Bisect, BisectPlan, Direction, Resolution};
use crate::limits::Limits;
use crate::search::{Left, Search};
use crate::stats::Spread;
use crate::trial::{Outcome, Wanted};
use serde::{Deserialize, Serialize};

/// What to search for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BurstPlan {
    /// Bursts of up to so many frames.
    pub greatest: u64,
    /// The least step between lengths.
    pub step: u64,
    /// Independent searches (RFC 2544: 50).
    pub repetitions: u32,
    /// See [`BisectPlan::retries`].
    pub retries: u32,
}

/// The searches, one after the other.
#[derive(Debug, Clone)]
pub struct Burst {
    plan: BurstPlan,
    now: Bisect,
    /// Lengths found; 0 where not even one frame came through.
    lengths: Vec<u64>,
    /// Of these searches so many ended before the length was exact, because their bursts could not be judged.
    inexact: u64,
}

/// Times that follow from a mean burst length (RFC 9004, 5.4).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BufferTime {
    /// The burst's length at the rate it was sent with.
    pub implied_s: f64,
    /// Less what the device forwarded meanwhile.
    pub corrected_s: f64,
}

impl Burst {
    /// Nothing was tried yet.
    ///
    /// # Errors
    /// That the range is empty.
    pub fn new(plan: BurstPlan) -> Result<Self, BadRange> {
        let now = Self::search(&plan)?;
        Ok(Self { plan, now, lengths: Vec::new(), inexact: 0 })
    }

    fn search(plan: &BurstPlan) -> Result<Bisect, BadRange> {
        Bisect::new(BisectPlan {
            least: plan.step.min(plan.greatest) as f64,
            greatest: plan.greatest as f64,
            resolution: Resolution::Units(plan.step as f64),
            direction: Direction::Greatest,
            // A burst that was sent too slowly is none.
            limits: Limits { shortfall_ratio: Some(0.0), ..Limits::default() },
            trial_ns: 0,
            short_ns: 0,
            retries: plan.retries,
            retry_loss_ratio: 1.0,
            in_parts: false,
            enough: 0.0,
        })
    }

    /// What it searches by.
    pub fn plan(&self) -> &BurstPlan {
        &self.plan
    }

    /// The lengths found so far.
    pub fn lengths(&self) -> &[u64] {
        &self.lengths
    }

    /// Lengths that may be longer: the bursts beyond them could not be judged.
    pub fn inexact(&self) -> u64 {
        self.inexact
    }

    /// Of the longest bursts that were found; `None` before the first.
    pub fn spread(&self) -> Option<Spread> {
        Spread::of(&self.lengths.iter().map(|&length| length as f64).collect::<Vec<_>>())
    }

    /// A burst of the greatest length passed: the buffer may be larger, and the result is none (RFC 9004, 5.4).
    pub fn at_limit(&self) -> bool {
        self.lengths.iter().any(|&length| length >= self.plan.greatest)
    }
}

/// The buffer time of bursts of `frames` on average, sent at `burst_rate`, by a device that forwards `throughput` (both in
/// frames per second). `None` when the device is no slower than the burst: then it needs no buffer.
pub fn buffer_time(frames: f64, burst_rate: f64, throughput: f64) -> Option<BufferTime> {
    if !(burst_rate > 0.0 && throughput >= 0.0 && throughput < burst_rate) {
        return None;
    }
    let implied_s = frames / burst_rate;
    Some(BufferTime { implied_s, corrected_s: implied_s * (1.0 - throughput / burst_rate) })
}

impl Search for Burst {
    fn next(&self) -> Option<Wanted> {
        if self.lengths.len() >= self.plan.repetitions as usize {
            return None;
        }
        self.now.next()
    }

    fn tell(&mut self, outcome: &Outcome) {
        self.now.tell(outcome);
        if self.now.next().is_none() {
            self.lengths.push(self.now.passed().unwrap_or(0.0) as u64);
            self.inexact += u64::from(!self.now.is_reached());
            if let Ok(next) = Self::search(&self.plan) {
                self.now = next;
            }
        }
    }

    fn looks_elsewhere(&self) -> bool {
        true
    }

    fn left(&self) -> Left {
        let done = self.lengths.len() as u64;
        let after = u64::from(self.plan.repetitions).saturating_sub(done + 1);
        if self.next().is_none() {
            return Left::default();
        }
        // The others come to what was found, as far as it is known.
        let limit = self.spread().map_or_else(|| self.now.guess(), |found| found.mean);
        let each = Self::search(&self.plan).map(|search| search.left_if(limit)).unwrap_or_default();
        let mut left = self.now.left();
        left.add(each.times(after));
        left
    }
}
