//! What a trial offers.

use super::schedule;
use std::time::Duration;
use traffic::Schedule;
use traffic::expr::Size;

/// What is offered, on every way.
#[derive(Debug, Clone)]
pub struct Offer {
    pub schedule: Schedule,
    pub duration: Option<Duration>,
    pub count: Option<u64>,
    pub size: Size,
    /// Takes the place of `{flows}` in what is sent.
    pub flows: Option<u64>,
    /// Look at the meter every millisecond.
    pub closely: bool,
    /// Run this, so long after the start.
    pub command: Option<(String, Duration)>,
    /// It is the sender that is tried, before any trial: what becomes of its frames is not looked at.
    #[cfg_attr(not(feature = "netflow"), allow(dead_code, reason = "only trials of a probe ask for it"))]
    pub tried: bool,
}

impl Offer {
    /// A load for a time.
    pub fn steady(frames_per_second: f64, duration_ns: u64, size: &Size) -> Offer {
        Offer {
            schedule: schedule(frames_per_second),
            duration: Some(Duration::from_nanos(duration_ns)),
            count: None,
            size: size.clone(),
            flows: None,
            closely: false,
            command: None,
            tried: false,
        }
    }

    /// How long so many of its frames take, where they follow each other evenly.
    pub fn lasts(&self, frames: u64) -> u64 {
        let Schedule::Frames { frames: each, per_ns } = self.schedule else { return 0 };
        let ns = u128::from(frames) * u128::from(per_ns) / u128::from(each.max(1));
        u64::try_from(ns).unwrap_or(u64::MAX)
    }
}
