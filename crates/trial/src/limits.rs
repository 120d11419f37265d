//! What a trial must keep to pass.

use crate::trial::Outcome;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Limits; those that are not set are not looked at.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Loss of the whole load, the sender's shortfall counted: at most (0 to 1).
    pub loss_ratio: f64,
    /// A percentile of latency, at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<LatencyLimit>,
    /// Frames out of order over those that arrived, at most (0 to 1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reorder_ratio: Option<f64>,
}

/// A bound on latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyLimit {
    pub percentile: Percentile,
    pub at_most_ns: u64,
}

/// A point of the distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Percentile {
    P50,
    P90,
    P99,
    P999,
    Max,
}

impl Percentile {
    pub const ALL: [Percentile; 5] = [Self::P50, Self::P90, Self::P99, Self::P999, Self::Max];

    /// As users write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
            Self::Max => "max",
        }
    }

    /// Its value in `latency`.
    pub fn of(self, latency: &crate::Latency) -> u64 {
        match self {
            Self::P50 => latency.p50_ns,
            Self::P90 => latency.p90_ns,
            Self::P99 => latency.p99_ns,
            Self::P999 => latency.p999_ns,
            Self::Max => latency.max_ns,
        }
    }
}

impl fmt::Display for Percentile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A limit that an outcome does not keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Broken {
    /// The device lost frames.
    Loss,
    /// The sender did not send what was asked; the device is not to blame for all of it.
    Shortfall,
    Latency,
    /// No latency was measured, so it cannot be said to be kept.
    LatencyUnknown,
    Order,
}

impl Default for Limits {
    /// No loss at all, and nothing else: the throughput of RFC 1242, 3.17.
    fn default() -> Self {
        Self::loss(0.0)
    }
}

impl Limits {
    /// So much loss and no more.
    pub fn loss(loss_ratio: f64) -> Self {
        Self { loss_ratio, latency: None, reorder_ratio: None }
    }

    /// The first limit that `outcome` does not keep.
    pub fn broken(&self, outcome: &Outcome) -> Option<Broken> {
        if outcome.loss_ratio() > self.loss_ratio {
            // Whose fault it is: the sender's, if what it sent would have passed.
            let own = outcome.sent.max(1) as f64;
            let device = outcome.lost() as f64 / own > self.loss_ratio;
            return Some(if device { Broken::Loss } else { Broken::Shortfall });
        }
        if let Some(limit) = self.latency {
            match outcome.latency {
                None => return Some(Broken::LatencyUnknown),
                Some(latency) if limit.percentile.of(&latency) > limit.at_most_ns => {
                    return Some(Broken::Latency);
                }
                Some(_) => {}
            }
        }
        if self.reorder_ratio.is_some_and(|most| outcome.reorder_ratio() > most) {
            return Some(Broken::Order);
        }
        None
    }

    /// Does it pass?
    pub fn hold(&self, outcome: &Outcome) -> bool {
        self.broken(outcome).is_none()
    }
}
