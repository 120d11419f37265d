//! This host's clocks, and how far one of them is ahead of another.
//!
//! Nothing reads two clocks at one moment: a thread that is held up in between takes its pause for their distance, and
//! whoever converts a time by that is off by milliseconds. So one is read between two readings of the other, several times,
//! and the closest pair counts.
//!
//! ```
//! use netdyno_clocks::{Clock, ahead, now};
//!
//! let found = ahead(Clock::Realtime, Clock::Monotonic);
//! let since_1970 = now(Clock::Monotonic).saturating_add_signed(found.ns);
//! assert!(since_1970.abs_diff(now(Clock::Realtime)) < 3_600_000_000_000);
//! ```

#![deny(missing_docs, clippy::missing_errors_doc)]

mod state;

pub use state::ClockState;

use rustix::time::{ClockId, DynamicClockId, Timespec, clock_gettime, clock_gettime_dynamic};
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::Relaxed;

/// A clock of this host (clock_gettime(2)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// Counts from the boot; nobody can set it.
    Monotonic,
    /// UTC since 1970, as far as somebody has set it.
    Realtime,
    /// TAI since 1970, as far as somebody has told the kernel the leap seconds.
    Tai,
    /// CLOCK_TAI of another host, as far as it is known how far that is ahead of this one's: what frames are stamped by that are measured there.
    Elsewhere {
        /// In nanoseconds; below zero if it is behind.
        ahead_ns: i64,
    },
}

/// How far one clock is ahead of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ahead {
    /// In nanoseconds; below zero if it is behind.
    pub ns: i64,
    /// The true distance is no further from that than this, in nanoseconds.
    pub width_ns: u64,
}

/// A pair this close is not improved by reading more: some readings of a clock in a row.
const CLOSE_NS: i64 = 150;
/// Nor one that another is about as close as, where clocks are slow: by so many percent more.
const ALIKE_PERCENT: i64 = 25;
/// More pairs are not tried.
const PAIRS: usize = 8;

/// What a clock shows, in nanoseconds.
pub fn now(clock: Clock) -> u64 {
    u64::try_from(read(clock)).unwrap_or(0)
}

/// The one that most ask for. About 30 ns on a virtual machine, 15 elsewhere: once a batch, not once a frame.
#[inline]
pub fn monotonic() -> u64 {
    now(Clock::Monotonic)
}

/// How far `clock` is ahead of `base`: of some pairs of readings, the closest.
pub fn ahead(clock: Clock, base: Clock) -> Ahead {
    closest((0..PAIRS).map(|_| [read(base), read(clock), read(base)]))
}

/// Of `clock` read between two readings of `base`. Stops at the first that is close.
fn closest(readings: impl Iterator<Item = [i64; 3]>) -> Ahead {
    let mut best: Option<(i64, Ahead)> = None;
    for [before, between, after] in readings {
        // A base that was set back in between tells nothing.
        let took = after.saturating_sub(before);
        if took < 0 {
            continue;
        }
        let alike =
            |least: i64| took.abs_diff(least) <= (took.min(least) / 100 * ALIKE_PERCENT).unsigned_abs();
        let settled = best.is_some_and(|(least, _)| alike(least));
        if best.is_some_and(|(least, _)| took >= least) {
            if settled {
                break;
            }
            continue;
        }
        let ns = between.saturating_sub(before).saturating_sub(took / 2);
        best = Some((took, Ahead { ns, width_ns: took.unsigned_abs().div_ceil(2) + 1 }));
        if settled || took <= CLOSE_NS {
            break;
        }
    }
    best.map_or(Ahead { ns: 0, width_ns: u64::MAX }, |(_, ahead)| ahead)
}

fn read(clock: Clock) -> i64 {
    match clock {
        Clock::Monotonic => nanoseconds(clock_gettime(ClockId::Monotonic)),
        Clock::Realtime => nanoseconds(clock_gettime(ClockId::Realtime)),
        Clock::Tai => kernels_tai().saturating_add(pretended()),
        Clock::Elsewhere { ahead_ns } => kernels_tai().saturating_add(ahead_ns),
    }
}

/// Linux has it since 3.10.
fn kernels_tai() -> i64 {
    clock_gettime_dynamic(DynamicClockId::Tai).map_or(0, nanoseconds)
}

/// What [`pretend`] was told.
static PRETENDED_NS: AtomicI64 = AtomicI64::new(0);

/// For trying out whether distances of clocks are found: from now on CLOCK_TAI shows this process so much more than the kernel does.
pub fn pretend(ahead_ns: i64) {
    PRETENDED_NS.store(ahead_ns, Relaxed);
}

/// How far [`Clock::Tai`] is ahead of the kernel's: 0, unless somebody pretends.
pub fn pretended() -> i64 {
    PRETENDED_NS.load(Relaxed)
}

fn nanoseconds(time: Timespec) -> i64 {
    time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_is_held_up_between_two_readings_is_not_believed() {
        // A second ahead. Held up for 5 ms in the first pair, for 2 us in the second; the fourth is not asked for any more.
        let readings = [
            [0, 1_000_000_010, 5_000_000],
            [6_000_000, 1_006_001_000, 6_002_000],
            [7_000_000, 1_007_000_050, 7_000_100],
        ];
        let mut asked = 0;
        let found = closest(readings.into_iter().chain([[8_000_000, 0, 8_000_000]]).inspect(|_| asked += 1));
        assert_eq!((found, asked), (Ahead { ns: 1_000_000_000, width_ns: 51 }, 3));
        let found = closest(readings[..2].iter().copied());
        assert_eq!(found, Ahead { ns: 1_000_000_000, width_ns: 1_001 });
        // A clock that takes a microsecond to read is not read eight times when nobody was held up.
        let slow = [[0, 9_000_000, 5_000_000], [0, 500, 1_000], [2_000, 2_550, 3_100], [4_000, 0, 4_000]];
        assert_eq!(closest(slow.into_iter()), Ahead { ns: 0, width_ns: 501 });
        // Set back by a second in between, and nothing else.
        assert_eq!(closest([[5_000, 1, 4_000]].into_iter()), Ahead { ns: 0, width_ns: u64::MAX });
    }

    #[test]
    fn two_looks_at_the_kernels_clocks_agree() {
        for (clock, base) in [
            (Clock::Realtime, Clock::Monotonic),
            (Clock::Tai, Clock::Monotonic),
            (Clock::Realtime, Clock::Tai),
        ] {
            let (first, second) = (ahead(clock, base), ahead(clock, base));
            let off = first.width_ns + second.width_ns;
            assert!(first.ns.abs_diff(second.ns) <= off, "{clock:?} {base:?}: {first:?} {second:?}");
        }
        assert!(ahead(Clock::Realtime, Clock::Monotonic).ns > 1_000_000_000);
    }
}
