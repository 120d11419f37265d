//! What time stamps are made of: how far UTC and TAI are ahead of CLOCK_MONOTONIC, and how far that may be off.

use clocks::{Ahead, Clock, ClockState, ahead, now};

/// In an error estimate: the clock is synchronised (RFC 4656 section 4.1.2).
pub const SYNCHRONISED: u16 = 0x8000;
/// In an error estimate: time stamps are of PTP's format (RFC 8186 section 2).
pub const PTP: u16 = 0x4000;

/// By how much the kernel lets what it knows of the error lag behind: it counts up once a second, by 500 ppm (adjtimex(2)).
const LAG_NS: u64 = 500_000;

/// `struct stamp_clock` of `programs/bpf/include/stamp.h`, without its first word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// UTC less CLOCK_MONOTONIC, in nanoseconds since 1970.
    pub utc_ahead: u64,
    /// The same of TAI.
    pub tai_ahead: u64,
    /// When that was, by CLOCK_MONOTONIC.
    pub taken_ns: u64,
    /// The error estimate of time stamps of NTP's format.
    pub ntp_estimate: u16,
    /// That of PTP's.
    pub ptp_estimate: u16,
}

impl Reading {
    /// Looks at the clocks.
    pub fn take() -> Reading {
        let utc = ahead(Clock::Realtime, Clock::Monotonic);
        Reading::of(utc, ClockState::read(), now(Clock::Monotonic))
    }

    /// TAI is UTC and as many seconds as the kernel was told. If it was told none, PTP's time stamps show UTC, and nobody is to
    /// believe that they are synchronised.
    fn of(utc: Ahead, state: Option<ClockState>, taken_ns: u64) -> Reading {
        let offset_s = state.map_or(0, |state| state.tai_offset_s);
        let error_ns = match state {
            Some(state) => state.max_error_ns.saturating_add(utc.width_ns).saturating_add(LAG_NS),
            None => u64::MAX,
        };
        let synchronised = state.is_some_and(|state| state.synchronised);
        let of_tai = estimate(error_ns, synchronised && offset_s != 0) | PTP;
        let tai = utc.ns.saturating_add(i64::from(offset_s) * 1_000_000_000);
        let since_1970 = |ns: i64| u64::try_from(ns).unwrap_or(0);
        Reading {
            utc_ahead: since_1970(utc.ns),
            tai_ahead: since_1970(tai),
            taken_ns,
            ntp_estimate: estimate(error_ns, synchronised),
            ptp_estimate: of_tai,
        }
    }
}

/// An error estimate (RFC 4656 section 4.1.2): the error is at most Multiplier * 2^(Scale - 32) seconds. The least that is no less
/// than `error_ns`; a Multiplier of 0 is not allowed.
fn estimate(error_ns: u64, synchronised: bool) -> u16 {
    let mut parts = (u128::from(error_ns) << 32).div_ceil(1_000_000_000);
    let mut scale = 0;
    while parts > 255 {
        parts = parts.div_ceil(2);
        scale += 1;
    }
    let flag = if synchronised { SYNCHRONISED } else { 0 };
    flag | scale << 8 | (parts as u16).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an error estimate says, in nanoseconds.
    fn said_ns(estimate: u16) -> f64 {
        f64::from(estimate & 255) * f64::from((estimate >> 8) & 63).exp2() / 32f64.exp2() * 1e9
    }

    #[test]
    fn an_error_estimate_is_the_least_that_is_not_too_small() {
        assert_eq!(estimate(0, false), 1);
        assert_eq!(estimate(16_000_000_000, false), 29 << 8 | 128);
        assert_eq!(estimate(59, true), SYNCHRONISED | 254);
        for error_ns in (0..63).map(|bits| (1u64 << bits) + 1).chain([u64::MAX]) {
            let said = said_ns(estimate(error_ns, true));
            let error = error_ns as f64;
            assert!(said >= error && said <= error * 1.01 + 0.25, "{error_ns}: {said}");
        }
    }

    #[test]
    fn the_clock_is_synchronised_where_the_kernel_says_so_and_tai_where_it_knows_the_leap_seconds() {
        let utc = Ahead { ns: 1_700_000_000_000_000_000, width_ns: 100 };
        let state = |synchronised, tai_offset_s| ClockState {
            max_error_ns: 2_000_000,
            estimated_error_ns: 1_000,
            synchronised,
            tai_offset_s,
        };
        for (state, ntp, ptp) in [
            (Some(state(true, 37)), true, true),
            (Some(state(true, 0)), true, false),
            (Some(state(false, 37)), false, false),
            (None, false, false),
        ] {
            let reading = Reading::of(utc, state, 5);
            assert_eq!(reading.ntp_estimate & SYNCHRONISED != 0, ntp, "{state:?}");
            assert_eq!(reading.ptp_estimate & SYNCHRONISED != 0, ptp, "{state:?}");
            assert_eq!([reading.ntp_estimate, reading.ptp_estimate].map(|of| of & PTP), [0, PTP]);
            let ahead = state.map_or(0, |state| state.tai_offset_s as u64) * 1_000_000_000;
            assert_eq!(reading.tai_ahead - reading.utc_ahead, ahead);
            let least = state.map_or(1e18, |_| 2_500_100.0);
            assert!(said_ns(reading.ntp_estimate) >= least, "{state:?}");
        }
    }
}
