//! A hand on the rate while a run goes on: pausing it, and sending faster or slower than the schedule says.
//!
//! A schedule cannot be changed. What changes is how fast its time passes: the *position* in the schedule moves with
//! the clock, with a percentage of it, or stands still. All workers of a run share one [`Throttle`], and follow the same
//! [`Course`], so frames keep their order and their shares.
//!
//! ```text
//!   position                          .'   150 %
//!     |                             .'
//!     |             ___paused____ .'
//!     |          .-'
//!     |       .-'  100 %
//!     +-------------------------------- clock
//! ```
//!
//! [`Course`] is pure: times go in, times come out. Who turns the throttle reads the clock.

use crate::GRACE_NS;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// How fast time passes in the schedule when nobody has touched anything.
pub const AS_ASKED: u32 = 100;
/// Least and greatest percentage.
pub const LEAST: u32 = 10;
/// See [`LEAST`].
pub const MOST: u32 = 1000;

/// What an engine can do while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// Only stop.
    Stop,
    /// Pause and go on.
    Pause,
    /// Change the rate, too.
    Rate,
}

/// One piece of the way: from a moment on, until somebody changes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Course {
    /// How many changes there have been.
    pub version: u64,
    /// When it began, in nanoseconds after the run's start, as all times here.
    since: u64,
    /// The part of that in which the run was not paused.
    active: u64,
    /// The position in the schedule then.
    position: u64,
    /// Percent of the schedule's pace.
    pub percent: u32,
    /// The schedule stands still.
    pub paused: bool,
}

impl Default for Course {
    fn default() -> Course {
        Course { version: 0, since: 0, active: 0, position: 0, percent: AS_ASKED, paused: false }
    }
}

impl Course {
    /// The position in the schedule at `now`.
    pub fn position(&self, now: u64) -> u64 {
        if self.version == 0 {
            return now;
        }
        if self.paused {
            return self.position;
        }
        let by = u128::from(now.saturating_sub(self.since)) * u128::from(self.percent) / 100;
        self.position.saturating_add(u64::try_from(by).unwrap_or(u64::MAX))
    }

    /// The time until `now` in which the run was not paused.
    pub fn active(&self, now: u64) -> u64 {
        match (self.version, self.paused) {
            (0, _) => now,
            (_, true) => self.active,
            _ => self.active.saturating_add(now.saturating_sub(self.since)),
        }
    }

    /// How long the run was paused until `now`.
    pub fn paused_ns(&self, now: u64) -> u64 {
        now.saturating_sub(self.active(now))
    }

    /// The position in the schedule when the run will have been active for `duration`.
    pub fn end(&self, duration: u64) -> u64 {
        if self.version == 0 || duration == u64::MAX {
            return duration;
        }
        let by = u128::from(duration.saturating_sub(self.active)) * u128::from(self.percent) / 100;
        self.position.saturating_add(u64::try_from(by).unwrap_or(u64::MAX))
    }

    /// When the position is reached, if nothing changes; of a paused run as if it went on at once.
    pub fn time_of(&self, position: u64) -> u64 {
        if self.version == 0 {
            return position;
        }
        match position.checked_sub(self.position) {
            Some(ahead) => self.since.saturating_add(self.lasts(ahead)),
            None => self.since.saturating_sub(self.lasts(self.position - position)),
        }
    }

    /// When the run will have been active for `duration`.
    pub fn time_of_end(&self, duration: u64) -> u64 {
        duration.saturating_add(self.since - self.active)
    }

    /// What was due up to this position has had [`GRACE_NS`] to leave at `now`; `None`: nothing has.
    pub fn overdue_by(&self, now: u64) -> Option<u64> {
        // Who was slower or paused until a moment ago gets no less.
        let grace = GRACE_NS * u64::from(self.percent.max(AS_ASKED)) / 100;
        self.position(now).checked_sub(grace)
    }

    /// How long a stretch of the schedule takes by the clock.
    pub fn lasts(&self, stretch: u64) -> u64 {
        if self.percent == AS_ASKED {
            return stretch;
        }
        u64::try_from(u128::from(stretch) * 100 / u128::from(self.percent.max(1))).unwrap_or(u64::MAX)
    }

    fn changed(&self, now: u64, percent: u32, paused: bool) -> Course {
        Course {
            version: self.version + 1,
            since: now,
            active: self.active(now),
            position: self.position(now),
            percent: percent.clamp(LEAST, MOST),
            paused,
        }
    }
}

/// Shared by whoever turns it and the workers.
#[derive(Debug, Default)]
pub struct Throttle {
    /// [`Course::version`] of the present course: all that workers look at, most of the time.
    version: AtomicU64,
    course: Mutex<Course>,
}

impl Throttle {
    /// How many changes there have been; a course with another number is out of date.
    pub fn version(&self) -> u64 {
        self.version.load(Relaxed)
    }

    /// How the schedule passes now.
    pub fn course(&self) -> Course {
        *self.course.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets how fast the schedule passes from `now` on, and whether it does. Returns whether that was a change.
    pub fn set(&self, now: u64, percent: u32, paused: bool) -> bool {
        let mut course = self.course.lock().unwrap_or_else(PoisonError::into_inner);
        let next = course.changed(now.max(course.since), percent, paused);
        if (next.percent, next.paused) == (course.percent, course.paused) {
            return false;
        }
        *course = next;
        self.version.store(next.version, Relaxed);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn untouched_it_is_the_clock() {
        let course = Throttle::default().course();
        assert_eq!((course.position(5), course.active(5), course.time_of(5), course.end(5)), (5, 5, 5, 5));
        assert_eq!(course.time_of_end(u64::MAX), u64::MAX);
        assert_eq!((course.overdue_by(GRACE_NS - 1), course.overdue_by(GRACE_NS + 5)), (None, Some(5)));
    }

    #[test]
    fn a_pause_costs_no_frame_and_no_time_of_the_run() {
        let throttle = Throttle::default();
        assert!(throttle.set(SECOND, 100, true) && !throttle.set(2 * SECOND, 100, true));
        let paused = throttle.course();
        assert_eq!((paused.position(3 * SECOND), paused.paused_ns(3 * SECOND)), (SECOND, 2 * SECOND));
        assert_eq!(paused.overdue_by(3 * SECOND), Some(SECOND - GRACE_NS));
        throttle.set(4 * SECOND, 100, false);
        let on = throttle.course();
        assert_eq!((on.position(5 * SECOND), on.active(5 * SECOND)), (2 * SECOND, 2 * SECOND));
        assert_eq!((on.time_of(2 * SECOND), on.end(10 * SECOND)), (5 * SECOND, 10 * SECOND));
        assert_eq!(on.time_of_end(10 * SECOND), 13 * SECOND);
    }

    #[test]
    fn twice_the_rate_carries_out_twice_the_schedule_in_the_time_that_is_left() {
        let throttle = Throttle::default();
        throttle.set(SECOND, 200, false);
        let course = throttle.course();
        assert_eq!((course.position(3 * SECOND), course.end(10 * SECOND)), (5 * SECOND, 19 * SECOND));
        assert_eq!((course.time_of(5 * SECOND), course.lasts(SECOND)), (3 * SECOND, SECOND / 2));
        assert_eq!(course.time_of_end(10 * SECOND), 10 * SECOND);
    }

    proptest! {
        #[test]
        fn whatever_is_done_the_position_never_goes_back_nor_leaps(
            changes in proptest::collection::vec((0u64..3_000_000_000, 0u32..2000, any::<bool>()), 1..20),
        ) {
            let throttle = Throttle::default();
            let (mut now, mut position) = (0, 0);
            for (after, percent, paused) in changes {
                let course = throttle.course();
                now += after;
                let next = course.position(now);
                let most = u128::from(after) * u128::from(course.percent) / 100 + 1;
                prop_assert!(next >= position && u128::from(next - position) <= most);
                prop_assert!(course.active(now) <= now);
                throttle.set(now, percent, paused);
                prop_assert_eq!(throttle.course().position(now), next);
                position = next;
            }
        }
    }
}
