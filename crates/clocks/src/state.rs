//! What the kernel knows of the clock that hosts share: how far it may be off UTC, and whether somebody keeps it.
//!
//! adjtimex(2) tells what the daemon that keeps the clock (phc2sys, ptp4l, chrony, ntpd) has told the kernel; without
//! one the kernel lets the error grow by 500 ppm.
#![allow(unsafe_code, reason = "adjtimex(2) has no safe wrapper")]

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
    /// Asks the kernel, which takes no rights. `None` if it does not say.
    pub fn read() -> Option<ClockState> {
        // SAFETY: all zeroes is a valid timex, which asks for nothing to be changed.
        let mut state: libc::timex = unsafe { std::mem::zeroed() };
        // SAFETY: `state` outlives the call, which writes nothing beyond it.
        let kept = unsafe { libc::adjtimex(&raw mut state) };
        if kept < 0 {
            return None;
        }
        // Both errors are in microseconds.
        let nanoseconds = |us: libc::c_long| u64::try_from(us).unwrap_or(0).saturating_mul(1000);
        Some(ClockState {
            max_error_ns: nanoseconds(state.maxerror),
            estimated_error_ns: nanoseconds(state.esterror),
            synchronised: kept != libc::TIME_ERROR && state.status & libc::STA_UNSYNC == 0,
            tai_offset_s: state.tai,
        })
    }

    /// The most by which the clock may be off UTC. `None`: no daemon keeps it, and so nobody knows.
    pub fn error_ns(&self) -> Option<u64> {
        self.synchronised.then_some(self.max_error_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_says_how_far_its_clock_may_be_off() {
        let state = ClockState::read().expect("adjtimex(2) without changes needs no rights");
        assert!(state.synchronised || state.max_error_ns > 0, "{state:?}");
        assert_eq!(state.error_ns().is_some(), state.synchronised);
        assert!((0..60).contains(&state.tai_offset_s), "{state:?}");
    }
}
