//! Schedules: when the nth message is due. No call, no clock, except for [`Pacer::wait`].
//!
//! Message n is due at `start + n / rate`, computed from n, so that no rounding adds up. Who was held up catches up, but by no
//! more than a bound: what is beyond it is never sent, and the schedule is moved by as much.

use std::time::{Duration, Instant};

/// So many messages in so long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Messages.
    pub count: u64,
    /// In so many ns.
    pub per_ns: u64,
}

impl Rate {
    /// Messages per second.
    pub fn per_second(count: u64) -> Rate {
        Rate { count: count.max(1), per_ns: 1_000_000_000 }
    }

    /// Messages of `size` bytes that make `bits` a second.
    pub fn of_bits(bits: u64, size: usize) -> Rate {
        // Exact as long as the product fits, which 18 MB messages do.
        Rate { count: bits.max(1), per_ns: (size as u64).saturating_mul(8).saturating_mul(1_000_000_000) }
    }

    /// When message `n` is due after the start.
    pub fn due(&self, n: u64) -> Duration {
        let ns = u128::from(n) * u128::from(self.per_ns) / u128::from(self.count.max(1));
        Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }

    /// How many messages are due within `elapsed`, the one at 0 among them.
    pub fn due_by(&self, elapsed: Duration) -> u64 {
        let n = elapsed.as_nanos() * u128::from(self.count) / u128::from(self.per_ns.max(1));
        u64::try_from(n).unwrap_or(u64::MAX).saturating_add(1)
    }
}

/// Follows a schedule.
#[derive(Debug, Clone)]
pub struct Pacer {
    rate: Rate,
    start: Instant,
    /// The next message.
    next: u64,
    /// Catching up beyond this is not done.
    bound: Duration,
    moved: Duration,
    latest: Duration,
    spin: bool,
}

impl Pacer {
    /// From `start` on. Who is later than `bound` does not catch up beyond it. With `spin` it waits for the last 100 us awake.
    pub fn new(rate: Rate, start: Instant, bound: Duration, spin: bool) -> Pacer {
        Pacer { rate, start, next: 0, bound, moved: Duration::ZERO, latest: Duration::ZERO, spin }
    }

    /// When the next message is due.
    pub fn due(&self) -> Instant {
        self.start.checked_add(self.rate.due(self.next)).unwrap_or(self.start)
    }

    /// How many messages may leave at `now`, at most `most`. Moves the schedule if it is too far behind.
    pub fn ready(&mut self, now: Instant, most: u64) -> u64 {
        let late = now.saturating_duration_since(self.due());
        self.latest = self.latest.max(late);
        if late > self.bound {
            let by = late - self.bound;
            self.moved += by;
            self.start += by;
        }
        let due = self.rate.due_by(now.saturating_duration_since(self.start));
        if now < self.start { 0 } else { due.saturating_sub(self.next).min(most) }
    }

    /// `count` messages left.
    pub fn sent(&mut self, count: u64) {
        self.next += count;
    }

    /// By how much the schedule was moved in all.
    pub fn moved(&self) -> Duration {
        self.moved
    }

    /// How far it was behind the schedule, as that stood then, at most.
    pub fn latest(&self) -> Duration {
        self.latest
    }

    /// Sleeps until the next message is due, but no longer than `most`. True if it is due.
    pub fn wait(&self, most: Duration) -> bool {
        let now = Instant::now();
        let due = self.due();
        let left = due.saturating_duration_since(now);
        if left.is_zero() {
            return true;
        }
        let awake = if self.spin { Duration::from_micros(100) } else { Duration::ZERO };
        let sleep = left.min(most).saturating_sub(awake);
        if !sleep.is_zero() {
            std::thread::sleep(sleep);
        }
        if self.spin && left <= most {
            while Instant::now() < due {
                std::hint::spin_loop();
            }
        }
        left <= most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_is_exact_after_an_hour() {
        let rate = Rate::of_bits(1_000_000_007, 1472);
        let n = 305_706_524;
        let ns = u128::from(n) * 1472 * 8 * 1_000_000_000 / 1_000_000_007;
        assert_eq!(rate.due(n).as_nanos(), ns);
        assert_eq!(Rate::per_second(3).due(3), Duration::from_secs(1));
        assert_eq!(Rate::per_second(3).due_by(Duration::from_secs(1)), 4);
    }

    #[test]
    fn who_was_held_up_catches_up_within_the_bound_only() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut pacer = Pacer::new(Rate::per_second(1000), start, Duration::from_millis(10), false);
        assert_eq!(pacer.ready(at(0), 100), 1);
        pacer.sent(1);
        assert_eq!(pacer.ready(at(0), 100), 0);
        assert_eq!(pacer.ready(at(5), 100), 5);
        pacer.sent(5);
        // A stall of 500 ms: eleven messages are due, not 500, and then one each millisecond again.
        assert_eq!(pacer.ready(at(506), 1000), 11);
        pacer.sent(11);
        assert_eq!(pacer.ready(at(507), 1000), 1);
        assert_eq!(pacer.moved(), Duration::from_millis(490));
        // 16 ms were due at 6 ms: the stall, and not the sum of moves, is how far it was behind.
        assert_eq!(pacer.latest(), Duration::from_millis(500));
        for stall in 1..=3 {
            assert_eq!(pacer.ready(at(507 + 100 * stall), 1000), 11);
            pacer.sent(11);
        }
        assert!(pacer.moved() > Duration::from_millis(700), "{:?}", pacer.moved());
        assert_eq!(pacer.latest(), Duration::from_millis(500));
    }
}
