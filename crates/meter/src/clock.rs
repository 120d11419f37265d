//! Whether somebody set the clock that hosts share, CLOCK_TAI, while something was measured by it.

use clocks::{Clock, ahead};

/// Notices if CLOCK_TAI is set while it is watched. Slewing changes it and CLOCK_MONOTONIC alike; only a step moves one
/// against the other.
#[derive(Debug)]
pub struct StepWatch {
    ahead_ns: i64,
}

/// Two readings one after the other are this far apart on a busy machine.
const NOISE_NS: u64 = 200_000;

impl StepWatch {
    /// Begins to watch.
    pub fn start() -> StepWatch {
        StepWatch { ahead_ns: tai_ahead() }
    }

    /// By how much the clock was set since.
    pub fn stepped_ns(&self) -> Option<i64> {
        stepped(self.ahead_ns, tai_ahead())
    }
}

fn stepped(before: i64, now: i64) -> Option<i64> {
    (before.abs_diff(now) > NOISE_NS).then(|| now.wrapping_sub(before))
}

/// How far CLOCK_TAI is ahead of CLOCK_MONOTONIC.
pub(crate) fn tai_ahead() -> i64 {
    ahead(Clock::Tai, Clock::Monotonic).ns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_told_and_reading_twice_is_none() {
        assert_eq!(stepped(37_000_000_000, 38_500_000_000), Some(1_500_000_000));
        assert_eq!(stepped(37_000_000_000, 36_999_000_000), Some(-1_000_000));
        assert_eq!(stepped(37_000_000_000, 37_000_100_000), None);
        let watch = StepWatch::start();
        assert_eq!(watch.stepped_ns(), None);
    }
}
