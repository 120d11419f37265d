//! When a frame may leave, once its time has come or passed. Pure: times go in, times come out.
//!
//! As long as the run keeps up, a frame leaves at its time. After a stall (the core was taken away, the queue was
//! full) frames are overdue, and sending them at top speed would hit the device under test with a burst that nobody
//! asked for. So the *position* in the schedule up to which frames may leave follows the clock, but is never moved
//! faster than the catch-up rate: over any millisecond it advances by at most `catch_up` milliseconds.
//!
//! ```text
//!   schedule position                       . clock
//!     |                                   .'/
//!     |                                 .' /   catching up, slope below `catch_up`
//!     |                               .'  /
//!     |            stall            .'   /
//!     |         .-----------------.' ___/  <- at most JUMP at once
//!     |       .'
//!     +-------------------------------------------------- time
//! ```
//!
//! That holds when the position moves with at most 0.85 `catch_up` of the clock's pace, and by at most a tenth of
//! `catch_up` milliseconds at once: 0.85 c + 0.1 c; the rest is room for what the way to the receiver adds.

/// The value of `catch_up` by which nothing is caught up. After a stall longer than [`TOLERATED_NS`] the whole schedule is
/// put off by it ([`put_off`]): no gap between frames becomes shorter than it should be, so that whatever a device then
/// loses it loses of no more than the load; what the time does not suffice for is not sent, and is a shortfall to the frame.
pub const NEVER: f64 = 1.0;

/// Less than this is still caught up: timers are late by tens of microseconds, senders that rest by more. It is as much as
/// a device sees in excess, spread over as long again and more.
pub const TOLERATED_NS: u64 = 400_000;

/// By how much the schedule of a run that catches nothing up is to be put off, when a frame that was due at `due` can leave
/// at `now`.
pub fn put_off(now: u64, due: u64) -> u64 {
    let late = now.saturating_sub(due);
    if late > TOLERATED_NS { late } else { 0 }
}

/// The window over which the catch-up rate is promised.
const WINDOW_NS: u64 = 1_000_000;

/// The rate that frames are caught up at, for what was asked for.
pub fn bounded(catch_up: f64) -> f64 {
    match catch_up {
        slow if slow <= NEVER => 1.5,
        fast if fast.is_finite() => fast.clamp(1.2, 1000.0),
        _ => 1000.0,
    }
}

/// Moves the position in the schedule.
#[derive(Debug, Clone)]
pub struct Pacer {
    position: u64,
    last: u64,
    catch_up: f64,
    jump: u64,
}

impl Pacer {
    /// A pacer that catches up at `catch_up` times the scheduled rate; with [`NEVER`], what little is tolerated.
    pub fn new(catch_up: f64) -> Pacer {
        let catch_up = bounded(catch_up);
        Pacer {
            position: 0,
            last: 0,
            catch_up: catch_up * 0.85,
            jump: (catch_up * 0.1 * WINDOW_NS as f64) as u64,
        }
    }

    /// A new one, for a run that is where its schedule is.
    pub fn at(catch_up: f64, position: u64) -> Pacer {
        Pacer { position, last: position, ..Pacer::new(catch_up) }
    }

    /// At `now`, with the next frame due at `next_due` (both from the run's start): the position up to which frames
    /// may leave. Never after `now`.
    pub fn advance(&mut self, now: u64, next_due: u64) -> u64 {
        let elapsed = now.saturating_sub(self.last);
        let behind = self.position < self.last;
        self.last = now;
        let step = (elapsed as f64 * self.catch_up) as u64;
        // Up to the next frame there is nothing to release. A run on time is there at once; one that is behind gets
        // there no faster than it catches up, and not from frame to frame in leaps. Beyond it, at most a jump.
        let free = if behind { next_due.min(self.position.saturating_add(step)) } else { next_due.min(now) };
        let free = self.position.max(free);
        let to = if behind {
            self.position.saturating_add(step).min(free.saturating_add(self.jump))
        } else {
            free.saturating_add(step.min(self.jump))
        };
        self.position = now.min(to.max(free));
        self.position
    }

    /// When a frame due at `due`, which is beyond the position, can leave at the earliest.
    pub fn release_time(&self, due: u64) -> u64 {
        if self.position >= self.last {
            return due;
        }
        // Rounded up: after that time the position has come there, and who waits never waits for no time at all.
        let wait = (due.saturating_sub(self.position) as f64 / self.catch_up).ceil() as u64;
        due.max(self.last + wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Runs a schedule of one frame each `gap` under a clock that is read every `tick`, and stands still for
    /// `stall` at `stall_at`. Returns when each frame left.
    fn run(gap: u64, tick: u64, stall_at: u64, stall: u64, until: u64, catch_up: f64) -> Vec<u64> {
        let mut pacer = Pacer::new(catch_up);
        let (mut now, mut due) = (0, 0);
        let mut left = Vec::new();
        let mut stalled = false;
        while now < until {
            let position = pacer.advance(now, due);
            while due <= position {
                left.push(now);
                due += gap;
            }
            now += tick;
            if !stalled && now >= stall_at {
                now += stall;
                stalled = true;
            }
        }
        left
    }

    /// The most frames that left within any millisecond.
    fn densest(left: &[u64]) -> usize {
        let mut first = 0;
        let mut most = 0;
        for last in 0..left.len() {
            while left[last] - left[first] >= WINDOW_NS {
                first += 1;
            }
            most = most.max(last - first + 1);
        }
        most
    }

    #[test]
    fn without_a_stall_every_frame_leaves_at_its_time() {
        let left = run(2_000, 500, u64::MAX, 0, 10_000_000, 2.0);
        assert!(left.iter().enumerate().all(|(n, &at)| at == n as u64 * 2_000));
    }

    #[test]
    fn a_late_wake_up_is_no_reason_to_wait_longer() {
        let mut pacer = Pacer::new(2.0);
        pacer.advance(0, 0);
        assert_eq!(pacer.advance(1_060_000, 1_000_000), 1_060_000);
    }

    /// As the worker does it, where nothing is caught up: when each frame left, and by how much all was put off.
    fn put_off_by(gap: u64, stalls: &[(u64, u64)], oversleep: u64, until: u64) -> (Vec<u64>, u64) {
        let mut pacer = Pacer::new(NEVER);
        let (mut clock, mut due, mut off) = (0, 0, 0);
        let (mut left, mut stalls) = (Vec::new(), stalls.iter().peekable());
        while due < until - off {
            if let Some((_, held)) = stalls.next_if(|(at, _)| *at <= clock) {
                clock += held;
            }
            let now = clock - off;
            let position = pacer.advance(now, due);
            if due > position {
                clock = clock.max(off + pacer.release_time(due)) + oversleep;
                continue;
            }
            let by = put_off(now, due);
            if by > 0 {
                off += by;
                pacer = Pacer::at(NEVER, due);
                if off >= until {
                    break;
                }
                continue;
            }
            left.push(clock);
            due += gap;
            clock += 200;
        }
        // A stall that outlasts the end costs no more than what was still to come.
        (left, off.min(until.saturating_sub(due)))
    }

    proptest! {
        #[test]
        fn what_is_put_off_never_comes_closer_and_is_missing_to_the_frame(
            gap in 20_000u64..2_000_000,
            held in proptest::collection::vec((0u64..200_000_000, 0u64..60_000_000), 0..6),
            oversleep in 0u64..50_000,
        ) {
            let mut held = held;
            held.sort();
            let until = 200_000_000;
            let (left, off) = put_off_by(gap, &held, oversleep, until);
            // Any stretch of time holds what the schedule has for it and for what is tolerated, and a frame.
            for first in 0..left.len() {
                for frames in [2, 10, 100] {
                    let Some(last) = left.get(first + frames) else { continue };
                    let span = last - left[first];
                    prop_assert!(span + TOLERATED_NS + 201 >= frames as u64 * gap, "{frames} in {span}");
                }
            }
            // And what was not sent is what the time put off would have held.
            prop_assert_eq!(left.len() as u64, (until - off).div_ceil(gap), "put off by {}", off);
        }

        #[test]
        fn no_millisecond_ever_sees_more_than_twice_the_rate(
            gap in 500u64..200_000,
            tick in 100u64..30_000,
            stall in 0u64..30_000_000,
            stall_at in 0u64..5_000_000,
        ) {
            let left = run(gap, tick, stall_at, stall, 60_000_000, 2.0);
            // Frames are whole: one more than the span of two milliseconds' worth of schedule may show.
            let allowed = 2 * WINDOW_NS / gap + 2;
            prop_assert!(densest(&left) as u64 <= allowed, "{} > {allowed}", densest(&left));
        }

        #[test]
        fn after_a_stall_the_schedule_is_met_again(
            gap in 500u64..5_000_000,
            oversleep in prop_oneof![Just(0u64), 0u64..60_000],
            stall in 0u64..20_000_000,
        ) {
            // As the worker does it: waits for the time it is told, and wakes a little late each time.
            let mut pacer = Pacer::new(2.0);
            let (mut now, mut due) = (0, 0);
            let mut stalled = false;
            let mut last = (0, 0);
            while now < 80_000_000 {
                let position = pacer.advance(now, due);
                if due > position {
                    let release = pacer.release_time(due);
                    prop_assert!(release > now, "{release} is not after {now}");
                    now = release + oversleep;
                    continue;
                }
                while due <= position {
                    last = (now, due);
                    due += gap;
                }
                now += 200;
                if !stalled && now >= 3_000_000 {
                    now += stall;
                    stalled = true;
                }
            }
            // 0.7 of the clock's pace is gained while catching up at 1.7: 20 ms are made good within 29.
            let (left, due) = last;
            prop_assert!(left - due <= oversleep + 201, "{left} is {} late", left - due);
        }
    }
}
