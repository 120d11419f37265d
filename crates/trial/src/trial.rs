//! A trial: what a search wants to have tried, and what came of it.
//!
//! A trial offers one load for one duration to a device and counts what comes back (RFC 2544, 23 and 24). What carries
//! it out is no matter of this crate; see [`Device`].

use serde::{Deserialize, Serialize};

/// What is to be offered to the device under test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Wanted {
    /// The value on the search's axis; for the rate, frames per second (of each sending port).
    pub load: f64,
    /// For how long; 0 for a burst, which ends with its last frame.
    pub duration_ns: u64,
    /// A load that is changed to in the middle of the trial, without a pause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub then: Option<Then>,
    /// Why it is tried.
    pub stage: Stage,
}

/// The second part of a trial with two loads.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Then {
    /// The load, as the search counts it.
    pub load: f64,
    /// For so long.
    pub duration_ns: u64,
}

/// What a trial is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// To get the device going; its outcome is not used.
    WarmUp,
    /// To learn about how much can be done: at no rate of the tester's, and so with a load of 0.
    Estimate,
    /// To narrow a search down.
    Search,
    /// To hold what a search found to its full duration.
    Confirm,
    /// To measure at a load that is known.
    Measure,
}

impl Wanted {
    /// One load, for one duration.
    pub fn steady(load: f64, duration_ns: u64, stage: Stage) -> Self {
        Self { load, duration_ns, then: None, stage }
    }

    /// How long it sends.
    pub fn sending_ns(&self) -> u64 {
        self.duration_ns.saturating_add(self.then.map_or(0, |then| then.duration_ns))
    }

    /// Is `other` the same trial? Loads that went through a file may differ in their last digits.
    pub fn is(&self, other: &Wanted) -> bool {
        let near = |a: f64, b: f64| (a - b).abs() <= a.abs().max(b.abs()) * 1e-9;
        let then = match (self.then, other.then) {
            (None, None) => true,
            (Some(a), Some(b)) => near(a.load, b.load) && a.duration_ns == b.duration_ns,
            _ => false,
        };
        near(self.load, other.load)
            && self.duration_ns == other.duration_ns
            && self.stage == other.stage
            && then
    }
}

/// What came of a trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Frames that the load makes in the duration.
    pub intended: u64,
    /// Frames that were sent.
    pub sent: u64,
    /// Frames of these that arrived, each counted once.
    pub received: u64,
    /// Arrivals beyond the first of the same frame.
    #[serde(default)]
    pub duplicated: u64,
    /// Frames that arrived behind a later one.
    #[serde(default)]
    pub reordered: u64,
    /// So many frames may be lost for the sake of the sender or its machine: those that left in a burst because the sender
    /// had been held up, or, where the device shares the machine, that were due meanwhile.
    #[serde(default)]
    pub uneven: u64,
    /// So many of the lost were lost in parts of the trial in which the machine was held up that the device shares: whatever they
    /// are due to, the rest of the trial tells of the device.
    #[serde(default)]
    pub excused: u64,
    /// So many of the lost were lost in many parts of the trial in which nothing was out of the ordinary ([`crate::parts()`]): they
    /// are the device's, whatever happened in others.
    #[serde(default)]
    pub steady: u64,
    /// So many frames may be lost for the tester's receiver: those that its interface, its driver or the meter itself lost.
    #[serde(default)]
    pub missed: u64,
    /// So many frames may never have left: they were handed over, and nobody counted them leaving.
    #[serde(default)]
    pub unconfirmed: u64,
    /// `None` where none was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Latency>,
    /// When the last frame that was lost was sent, from the trial's start; `None` when none was, or it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_loss_ns: Option<u64>,
    /// The longest time without an arrival, where frames were due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage_ns: Option<u64>,
    /// What it measured, where that is no count of frames: bits or transactions a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<f64>,
    /// Of the lost: sent after the last that arrived, of several ways the most. With any, losses were not over when the trial was.
    #[serde(default)]
    pub lost_at_end: u64,
}

/// Delays of a trial's frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// The shortest.
    pub min_ns: u64,
    /// The mean.
    pub mean_ns: f64,
    /// The median.
    pub p50_ns: u64,
    /// The 90th percentile.
    pub p90_ns: u64,
    /// The 99th percentile.
    pub p99_ns: u64,
    /// The 99.9th percentile.
    pub p999_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// Frames that the figures are of.
    pub frames: u64,
    /// How much longer or shorter a frame was under way than the one before it (RFC 8219, 7.3.2), without sign.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame_to_frame: Option<FrameToFrame>,
}

/// From one frame of a stream to the next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct FrameToFrame {
    /// The median.
    pub p50_ns: u64,
    /// The 99.9th percentile.
    pub p999_ns: u64,
    /// The greatest.
    pub max_ns: u64,
    /// The smoothed mean of RFC 3550, 6.4.1; of several streams the greatest.
    pub jitter_ns: u64,
}

impl Latency {
    /// Packet delay variation: the 99.9th percentile above the minimum (RFC 8219, 7.3.1).
    pub fn variation_ns(&self) -> u64 {
        self.p999_ns.saturating_sub(self.min_ns)
    }
}

impl Outcome {
    /// Of a trial that somebody else judged: as if a single frame had come, or had not.
    pub fn judged(passed: bool) -> Outcome {
        Outcome { intended: 1, sent: 1, received: u64::from(passed), ..Outcome::default() }
    }

    /// Frames missing from what the load asked for, on either side of the device.
    fn whole(&self) -> u64 {
        self.intended.max(self.sent)
    }

    fn of_whole(&self, frames: u64) -> f64 {
        match self.whole() {
            0 => 0.0,
            whole => frames as f64 / whole as f64,
        }
    }

    /// Frames that the device did not forward. More received than sent is as wrong as fewer.
    pub fn lost(&self) -> u64 {
        self.sent.abs_diff(self.received)
    }

    /// Frames that the sender should have sent and did not, or the reverse.
    pub fn shortfall(&self) -> u64 {
        self.intended.abs_diff(self.sent)
    }

    /// The part of the load that did not come through, whoever's fault it was (0 to 1).
    pub fn loss_ratio(&self) -> f64 {
        self.of_whole(self.lost().saturating_add(self.shortfall()))
    }

    /// The part of the load that the sender failed to send.
    pub fn shortfall_ratio(&self) -> f64 {
        self.of_whole(self.shortfall())
    }

    /// Frames that the device did not forward while its machine was in time.
    pub fn lost_not_excused(&self) -> u64 {
        self.lost().saturating_sub(self.excused)
    }

    /// The part of the load that was offered (0 to 1).
    pub fn offered_ratio(&self) -> f64 {
        if self.intended == 0 { 0.0 } else { (self.sent as f64 / self.intended as f64).min(1.0) }
    }

    /// Frames that the device lost for sure: even if all that the tester may be to blame for is taken off.
    pub fn lost_for_sure(&self) -> u64 {
        let beyond = self.lost().saturating_sub(self.uneven.saturating_add(self.blind()));
        beyond.max(self.steady.saturating_sub(self.blind()))
    }

    /// Frames of which the tester cannot say whether they left or came: its own, and no more than were lost.
    pub fn blind(&self) -> u64 {
        self.missed.saturating_add(self.unconfirmed).min(self.lost())
    }

    /// The part of the load that the tester did not send, or lost sight of.
    pub fn testers_ratio(&self) -> f64 {
        self.of_whole(self.shortfall().max(self.blind()))
    }

    /// The part of what was sent that the device lost: the loss of RFC 2544, 26.3.
    pub fn device_loss_ratio(&self) -> f64 {
        if self.sent == 0 { 0.0 } else { (self.lost() as f64 / self.sent as f64).min(1.0) }
    }

    /// Frames out of order, over all that arrived.
    pub fn reorder_ratio(&self) -> f64 {
        if self.received == 0 { 0.0 } else { self.reordered as f64 / self.received as f64 }
    }
}

/// Whatever can carry out a trial: a network, or a simulated device.
pub trait Device {
    /// What keeps a trial from being carried out at all.
    type Error;

    /// Does a trial. An error ends the search.
    ///
    /// # Errors
    /// What keeps a trial from being carried out.
    fn run(&mut self, wanted: &Wanted) -> Result<Outcome, Self::Error>;
}
