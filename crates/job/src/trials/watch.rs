//! What happens within a trial, a millisecond at a time: when the last loss was noticed, and the longest silence.
//!
//! Loss shows when a later frame of the same stream arrives. So the last loss is noticed a frame after it happened, and a
//! look's interval later at most.

use meter::Meter;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// How often the meter is looked at.
pub const EVERY: Duration = Duration::from_millis(1);

/// What was seen.
#[derive(Debug, Clone, Copy, Default)]
pub struct Seen {
    /// The first arrival, by the monotonic clock.
    first_ns: Option<u64>,
    /// When there was an arrival last.
    latest_ns: u64,
    frames: u64,
    lost: u64,
    /// From the first arrival.
    pub last_loss_ns: Option<u64>,
    pub outage_ns: u64,
}

/// Watches one meter; told by [`crate::run::run_observed`].
#[derive(Debug, Default)]
pub struct Watch(Mutex<Seen>);

impl Watch {
    /// Looks until `over`; for losses at the streams of these numbers.
    pub fn observe(&self, meter: &Meter, own: Range<u32>, over: &AtomicBool) {
        let mut seen = Seen::default();
        while !over.load(Relaxed) {
            let snapshot = meter.snapshot();
            let now = engine::clock::now();
            // Of every sending core a stream.
            let lost = own.clone().filter_map(|number| meter.stream(number)).map(|stream| stream.lost).sum();
            seen.look(now, snapshot.frames, lost);
            std::thread::sleep(EVERY);
        }
        // Of several meters each is looked at by itself.
        let mut all = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        all.last_loss_ns = all.last_loss_ns.max(seen.last_loss_ns);
        all.outage_ns = all.outage_ns.max(seen.outage_ns);
    }

    pub fn seen(&self) -> Seen {
        *self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Seen {
    fn look(&mut self, now: u64, frames: u64, lost: u64) {
        let Some(first) = self.first_ns else {
            if frames > 0 {
                (self.first_ns, self.latest_ns, self.frames, self.lost) = (Some(now), now, frames, lost);
            }
            return;
        };
        if frames > self.frames {
            self.outage_ns = self.outage_ns.max(now - self.latest_ns);
            (self.frames, self.latest_ns) = (frames, now);
        }
        // Reordered frames make it fall again.
        if lost > self.lost {
            self.last_loss_ns = Some(now - first);
        }
        self.lost = lost;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_and_silences_are_timed_from_the_first_arrival() {
        let mut seen = Seen::default();
        for (now, frames, lost) in
            [(5, 0, 0), (10, 1, 0), (20, 5, 0), (30, 5, 0), (50, 6, 2), (60, 7, 2), (65, 8, 1), (70, 9, 1)]
        {
            seen.look(now, frames, lost);
        }
        assert_eq!((seen.last_loss_ns, seen.outage_ns), (Some(40), 30));
    }
}
