//! What a trial must keep to pass.

use crate::trial::Outcome;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Limits; those that are not set are not looked at.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Loss of the whole load, the sender's shortfall counted: at most (0 to 1).
    pub loss_ratio: f64,
    /// The sender's shortfall, at most, for a trial to say anything of the device; then it is no loss. Not set: whatever was
    /// not sent is lost, as in RFC 9971.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortfall_ratio: Option<f64>,
    /// Delays, at most.
    #[serde(default, skip_serializing_if = "Delays::is_empty")]
    pub delays: Delays,
    /// Frames out of order over those that arrived, at most (0 to 1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reorder_ratio: Option<f64>,
}

/// Bounds on delays, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Delays([Option<u64>; Delay::ALL.len()]);

/// What of the delays is bounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delay {
    /// The median.
    P50,
    /// The 90th percentile.
    P90,
    /// The 99th percentile.
    P99,
    /// The 99.9th percentile.
    P999,
    /// The longest.
    Max,
    /// Packet delay variation: the 99.9th percentile above the minimum (RFC 8219, 7.3.1).
    Variation,
    /// The 99.9th percentile from one frame of a stream to the next, without sign (RFC 8219, 7.3.2).
    FrameToFrame,
    /// The smoothed mean of the same (RFC 3550, 6.4.1).
    Jitter,
}

impl Delay {
    /// All of them, in this order.
    pub const ALL: [Delay; 8] = [
        Self::P50,
        Self::P90,
        Self::P99,
        Self::P999,
        Self::Max,
        Self::Variation,
        Self::FrameToFrame,
        Self::Jitter,
    ];

    /// As users write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
            Self::Max => "max",
            Self::Variation => "pdv",
            Self::FrameToFrame => "ipdv",
            Self::Jitter => "jitter",
        }
    }

    /// Its value in `latency`; `None` where it was not measured.
    pub fn of(self, latency: &crate::Latency) -> Option<u64> {
        match self {
            Self::P50 => Some(latency.p50_ns),
            Self::P90 => Some(latency.p90_ns),
            Self::P99 => Some(latency.p99_ns),
            Self::P999 => Some(latency.p999_ns),
            Self::Max => Some(latency.max_ns),
            Self::Variation => Some(latency.variation_ns()),
            Self::FrameToFrame => latency.frame_to_frame.map(|steps| steps.p999_ns),
            Self::Jitter => latency.frame_to_frame.map(|steps| steps.jitter_ns),
        }
    }

    /// A delay, or how much delays differ?
    pub fn is_variation(self) -> bool {
        matches!(self, Self::Variation | Self::FrameToFrame | Self::Jitter)
    }
}

impl fmt::Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Delays {
    /// Is there no bound?
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    /// The same with one bound more; it takes the place of another on the same.
    pub fn and(mut self, delay: Delay, at_most_ns: u64) -> Self {
        for (bound, of) in self.0.iter_mut().zip(Delay::ALL) {
            if of == delay {
                *bound = Some(at_most_ns);
            }
        }
        self
    }

    /// The bounds that are set.
    pub fn iter(&self) -> impl Iterator<Item = (Delay, u64)> + '_ {
        Delay::ALL.into_iter().zip(&self.0).filter_map(|(delay, bound)| Some((delay, (*bound)?)))
    }

    fn broken(&self, latency: Option<&crate::Latency>) -> Option<Broken> {
        self.iter().find_map(|(delay, at_most)| match latency.and_then(|latency| delay.of(latency)) {
            None => Some(Broken::LatencyUnknown),
            Some(value) if value <= at_most => None,
            Some(_) if delay.is_variation() => Some(Broken::Variation),
            Some(_) => Some(Broken::Latency),
        })
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
    /// The sender was held up and sent in a burst what was overdue; that may have been too much for a device that
    /// forwards the load.
    Uneven,
    /// The tester's own receiving side lost as many frames.
    Receiver,
    /// Of as many frames nobody saw that they left the tester.
    Unconfirmed,
    /// A delay is longer than its bound.
    Latency,
    /// Delays differ too much.
    Variation,
    /// No latency was measured, so it cannot be said to be kept, nor to be broken.
    LatencyUnknown,
    /// More frames than allowed came out of order.
    Order,
}

/// What a trial says of the device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Judged {
    /// It passes the load.
    Passed,
    /// It passes this part of the load (0 to 1), which is what was offered over the trial's time: the sender was held up, and
    /// what it did not send it did not send later. A device that has a queue and forwards at a rate of its own loses nothing of
    /// the same frames sent evenly either.
    Partly(f64),
    /// It does not keep the limits at the load, or at less: it was never offered more.
    Failed,
    /// Nothing.
    Not,
}

impl Broken {
    /// Does it say something of the tester, sender or receiver, and nothing of the device?
    pub fn is_the_testers(self) -> bool {
        matches!(
            self,
            Self::Shortfall | Self::Uneven | Self::Receiver | Self::Unconfirmed | Self::LatencyUnknown
        )
    }
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
        Self { loss_ratio, shortfall_ratio: None, delays: Delays::default(), reorder_ratio: None }
    }

    /// The first limit that `outcome` does not keep.
    pub fn broken(&self, outcome: &Outcome) -> Option<Broken> {
        // Whose fault it is: the tester's, if what it sent would have passed, or would have if its sender had not been held
        // up, its receiver had lost nothing, and all that was handed over had left.
        let own = outcome.sent.max(1) as f64;
        let over = |lost: u64| lost as f64 / own > self.loss_ratio;
        let short = match self.shortfall_ratio {
            Some(_) => !self.tolerates_shortfall(outcome),
            None => outcome.loss_ratio() > self.loss_ratio,
        };
        match (over(outcome.lost_not_excused()), over(outcome.lost_for_sure())) {
            (_, true) => return Some(Broken::Loss),
            (true, false) => return Some(whose(outcome)),
            (false, false) if short => return Some(Broken::Shortfall),
            _ => {}
        }
        self.besides_loss(outcome)
    }

    /// Was the load offered, as nearly as is asked?
    pub fn tolerates_shortfall(&self, outcome: &Outcome) -> bool {
        // A frame may be due just before the end.
        self.shortfall_ratio.is_some_and(|most| outcome.shortfall() <= 1 || outcome.shortfall_ratio() <= most)
    }

    /// What it says of the device.
    pub fn judge(&self, outcome: &Outcome) -> Judged {
        match self.broken(outcome) {
            None => Judged::Passed,
            // Whatever was not sent is lost.
            Some(Broken::Shortfall) if self.shortfall_ratio.is_none() => Judged::Failed,
            Some(Broken::Shortfall) => match self.besides_loss(outcome) {
                None => Judged::Partly(outcome.offered_ratio()),
                Some(_) => Judged::Not,
            },
            Some(broken) if broken.is_the_testers() => Judged::Not,
            Some(_) => Judged::Failed,
        }
    }

    /// The first limit that is not kept, but for those on loss.
    fn besides_loss(&self, outcome: &Outcome) -> Option<Broken> {
        if let Some(broken) = self.delays.broken(outcome.latency.as_ref()) {
            return Some(broken);
        }
        let disordered = self.reorder_ratio.is_some_and(|most| outcome.reorder_ratio() > most);
        disordered.then_some(Broken::Order)
    }

    /// Does it pass?
    pub fn hold(&self, outcome: &Outcome) -> bool {
        self.broken(outcome).is_none()
    }
}

/// What most of a loss that may be the tester's is due to; of equals what is surest: frames that it missed were counted,
/// of others nobody saw where they went, and of what a held-up sender may have cost nobody knows anything.
fn whose(outcome: &Outcome) -> Broken {
    let excuses = [
        (outcome.uneven, Broken::Uneven),
        (outcome.unconfirmed, Broken::Unconfirmed),
        (outcome.missed, Broken::Receiver),
    ];
    let explained = |(frames, _): &(u64, Broken)| (*frames).min(outcome.lost());
    excuses.into_iter().max_by_key(explained).map_or(Broken::Uneven, |(_, broken)| broken)
}
