//! Trials at loads that are known, each so many times: latency (RFC 2544, 26.2; RFC 8219, 7.2 and 7.3), recovery from
//! overload (26.5), reset (26.6) and soaking.

use crate::search::{Left, Search};
use crate::stats::{Spread, median};
use crate::trial::{FrameToFrame, Outcome, Stage, Then, Wanted};
use serde::{Deserialize, Serialize};

/// What to measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RepeatedPlan {
    /// Each is tried `repetitions` times.
    pub loads: Vec<f64>,
    /// How long a trial is.
    pub trial_ns: u64,
    /// After the load, at once, this part of it for so long.
    pub then: Option<(f64, u64)>,
    /// Trials of each load.
    pub repetitions: u32,
}

/// The trials.
#[derive(Debug, Clone)]
pub struct Repeated {
    plan: RepeatedPlan,
    outcomes: Vec<Outcome>,
}

/// Latency at one load, over all repetitions. RFC 8219, 7.2.1: typical latency is the median of a trial, worst case latency
/// its 99.9th percentile; of the repetitions the medians are given.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LatencyFound {
    /// The load, as the search counts it.
    pub load: f64,
    /// Repetitions with a latency.
    pub repetitions: u32,
    /// The least of all.
    pub min_ns: u64,
    /// Mean of the trials' means (RFC 2544 averages one frame of each trial; here all frames count).
    pub mean_ns: f64,
    /// Median of the trials' medians (RFC 8219, 7.2).
    pub typical_ns: u64,
    /// Median of the trials' 99.9th percentiles (RFC 8219, 7.2).
    pub worst_case_ns: u64,
    /// Median of the trials' packet delay variations (RFC 8219, 7.3.1).
    pub variation_ns: u64,
    /// The longest delay of all trials.
    pub max_ns: u64,
    /// Medians of the trials' figures (RFC 8219, 7.3.2), and the greatest of all.
    pub frame_to_frame: Option<FrameToFrame>,
}

impl Repeated {
    /// Nothing was tried yet.
    pub fn new(plan: RepeatedPlan) -> Self {
        Self { plan, outcomes: Vec::new() }
    }

    /// What is repeated.
    pub fn plan(&self) -> &RepeatedPlan {
        &self.plan
    }

    /// The outcomes at the load of this number.
    pub fn at(&self, load: usize) -> &[Outcome] {
        let each = self.plan.repetitions as usize;
        let of = self.outcomes.chunks(each.max(1)).nth(load);
        of.unwrap_or_default()
    }

    /// Latency at each load that has one.
    pub fn latencies(&self) -> Vec<LatencyFound> {
        let found = |(number, &load): (usize, &f64)| {
            let trials: Vec<_> = self.at(number).iter().filter_map(|outcome| outcome.latency).collect();
            let all = |of: fn(&crate::Latency) -> u64| median(trials.iter().map(of).collect());
            let steps: Vec<FrameToFrame> = trials.iter().filter_map(|t| t.frame_to_frame).collect();
            let middle = |of: fn(&FrameToFrame) -> u64| median(steps.iter().map(of).collect());
            Some(LatencyFound {
                load,
                repetitions: trials.len() as u32,
                min_ns: trials.iter().map(|t| t.min_ns).min()?,
                mean_ns: trials.iter().map(|t| t.mean_ns).sum::<f64>() / trials.len() as f64,
                typical_ns: all(|t| t.p50_ns)?,
                worst_case_ns: all(|t| t.p999_ns)?,
                variation_ns: all(|t| t.variation_ns())?,
                max_ns: trials.iter().map(|t| t.max_ns).max()?,
                frame_to_frame: middle(|s| s.p50_ns).zip(middle(|s| s.p999_ns)).map(|(p50_ns, p999_ns)| {
                    FrameToFrame {
                        p50_ns,
                        p999_ns,
                        max_ns: steps.iter().map(|s| s.max_ns).max().unwrap_or(0),
                        jitter_ns: middle(|s| s.jitter_ns).unwrap_or(0),
                    }
                }),
            })
        };
        self.plan.loads.iter().enumerate().filter_map(found).collect()
    }

    /// Times from the change to the lower load until the last loss, at the load of this number; 0 when nothing was lost
    /// after the change.
    pub fn recoveries(&self, load: usize) -> Option<Spread> {
        let after =
            |outcome: &Outcome| outcome.last_loss_ns.unwrap_or(0).saturating_sub(self.plan.trial_ns) as f64;
        Spread::of(&self.at(load).iter().map(after).collect::<Vec<_>>())
    }

    /// The longest times without an arrival, at the load of this number.
    pub fn outages(&self, load: usize) -> Option<Spread> {
        let times: Vec<f64> =
            self.at(load).iter().filter_map(|outcome| outcome.outage_ns).map(|ns| ns as f64).collect();
        Spread::of(&times)
    }
}

impl Search for Repeated {
    fn next(&self) -> Option<Wanted> {
        let each = (self.plan.repetitions as usize).max(1);
        let &load = self.plan.loads.get(self.outcomes.len() / each)?;
        let mut wanted = Wanted::steady(load, self.plan.trial_ns, Stage::Measure);
        wanted.then = self.plan.then.map(|(part, duration_ns)| Then { load: load * part, duration_ns });
        Some(wanted)
    }

    fn tell(&mut self, outcome: &Outcome) {
        if self.next().is_some() {
            self.outcomes.push(*outcome);
        }
    }

    fn left(&self) -> Left {
        let all = self.plan.loads.len() as u64 * u64::from(self.plan.repetitions.max(1));
        let each = self.plan.trial_ns.saturating_add(self.plan.then.map_or(0, |(_, ns)| ns));
        Left::of(all.saturating_sub(self.outcomes.len() as u64), each)
    }
}
