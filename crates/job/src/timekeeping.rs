//! Whether this host's clock was set while a job lasted. Stamps of frames and records are of it, and times between them are then none.

use clocks::Clock;

/// A clock that is so far off was set,
const STEP_NS: u64 = 50_000_000;
/// or by more than this share of the time: NTP slews by half of it at most.
const SLEW: u64 = 1000;

/// What the clock was when the job began.
#[derive(Debug, Clone, Copy)]
pub struct Timekeeping {
    ahead_ns: i64,
    began_ns: u64,
}

impl Timekeeping {
    /// From now on.
    pub fn begin() -> Timekeeping {
        let ahead_ns = clocks::ahead(Clock::Realtime, Clock::Monotonic).ns;
        Timekeeping { ahead_ns, began_ns: clocks::monotonic() }
    }

    /// Was it set since?
    pub fn was_set(&self) -> bool {
        let moved_ns = clocks::ahead(Clock::Realtime, Clock::Monotonic).ns.saturating_sub(self.ahead_ns);
        is_step(moved_ns, clocks::monotonic().saturating_sub(self.began_ns))
    }
}

fn is_step(moved_ns: i64, lasted_ns: u64) -> bool {
    moved_ns.unsigned_abs() > STEP_NS.saturating_add(lasted_ns / SLEW)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_kept_right_was_not_set() {
        const HOUR_NS: u64 = 3_600_000_000_000;
        // Slewed by 500 ppm for an hour.
        assert!(!is_step(1_800_000_000, HOUR_NS) && !is_step(-1_800_000_000, HOUR_NS));
        assert!(!is_step(40_000_000, 0));
        assert!(is_step(60_000_000, 1_000_000_000) && is_step(-60_000_000, 1_000_000_000));
        assert!(is_step(i64::MIN, HOUR_NS) && is_step(i64::MAX, u64::MAX / 4_000_000));
        assert!(!Timekeeping::begin().was_set());
    }
}
