//! What the kernel knows of the clock that hosts share: how far CLOCK_TAI may be off, and whether somebody set it.
//!
//! adjtimex(2) tells what the daemon that keeps the clock (phc2sys, ptp4l, chrony, ntpd) has told the kernel; without
//! one the kernel lets the error grow by 500 ppm.
#![allow(unsafe_code, reason = "adjtimex(2) has no safe wrapper")]

use clocks::{Clock, ahead};

/// The state of this host's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockState {
    /// It is off by at most this much.
    pub max_error_ns: u64,
    /// It is probably off by this much.
    pub estimated_error_ns: u64,
    /// A daemon keeps it.
    pub synchronised: bool,
    /// TAI less UTC, in seconds; 0: nobody has told the kernel, so that CLOCK_TAI shows UTC.
    pub tai_offset_s: i32,
}

impl ClockState {
    /// Asks the kernel. `None` if it does not say.
    pub fn read() -> Option<ClockState> {
        // SAFETY: all zeroes is a valid timex, which asks for nothing to be changed.
        let mut state: libc::timex = unsafe { std::mem::zeroed() };
        // SAFETY: `state` outlives the call, which writes nothing beyond it.
        if unsafe { libc::adjtimex(&raw mut state) } < 0 {
            return None;
        }
        // Both errors are in microseconds.
        let nanoseconds = |us: libc::c_long| u64::try_from(us).unwrap_or(0).saturating_mul(1000);
        Some(ClockState {
            max_error_ns: nanoseconds(state.maxerror),
            estimated_error_ns: nanoseconds(state.esterror),
            synchronised: state.status & libc::STA_UNSYNC == 0,
            tai_offset_s: state.tai,
        })
    }
}

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
    fn the_kernel_says_how_far_its_clock_may_be_off() {
        let state = ClockState::read().expect("adjtimex(2) without changes needs no rights");
        assert!(state.synchronised || state.max_error_ns > 0, "{state:?}");
    }

    #[test]
    fn a_step_is_told_and_reading_twice_is_none() {
        assert_eq!(stepped(37_000_000_000, 38_500_000_000), Some(1_500_000_000));
        assert_eq!(stepped(37_000_000_000, 36_999_000_000), Some(-1_000_000));
        assert_eq!(stepped(37_000_000_000, 37_000_100_000), None);
        let watch = StepWatch::start();
        assert_eq!(watch.stepped_ns(), None);
    }
}
