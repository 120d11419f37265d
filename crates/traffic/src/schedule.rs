//! Departure times: nanoseconds after the start of the run, exact for every frame, however long the run.
//!
//! A schedule is a function, not a rate limiter: t(n) = floor(n * per_ns / frames) and its like, in integers, so
//! there is nothing that could drift. The [`Cursor`] walks it with one addition a frame, carrying the remainder as
//! Bresenham's line does, and is held to the closed form by tests. What to do when a run falls behind is not decided
//! here but by the engine's pacer.

use std::sync::Arc;

/// Bytes that a frame occupies on Ethernet besides what stands in a buffer: FCS 4, preamble and start delimiter 8,
/// inter-frame gap 12 (IEEE 802.3).
pub const LAYER1_OVERHEAD: u32 = 24;

/// When each frame leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Schedule {
    /// As fast as it goes.
    TopSpeed,
    /// `frames` frames in every `per_ns` nanoseconds, evenly.
    Frames {
        /// How many frames.
        frames: u64,
        /// In how many nanoseconds.
        per_ns: u64,
    },
    /// Frame *n* leaves when all bits before it have had their time.
    Bits {
        /// The rate.
        bits_per_second: u64,
        /// Counted for each frame besides its bytes: 0 for layer 2 without FCS, [`LAYER1_OVERHEAD`] for layer 1.
        overhead_bytes: u32,
    },
    /// At stated offsets, repeated: the time stamps of a capture.
    Times {
        /// Offset of each frame of a pass, not decreasing.
        offsets: Arc<[u64]>,
        /// From the start of one pass to the start of the next.
        period_ns: u64,
        /// Faster or slower than stated.
        speed: Speed,
    },
}

/// Times are divided by this: `numerator / denominator`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Speed {
    /// 2 in "twice as fast".
    pub numerator: u64,
    /// 1 in "twice as fast".
    pub denominator: u64,
}

impl Speed {
    /// As captured.
    pub const ONE: Speed = Speed { numerator: 1, denominator: 1 };

    /// A time at this speed.
    pub fn scale(self, ns: u128) -> u64 {
        // What is centuries away stays there, instead of coming round again.
        let scaled = ns.saturating_mul(self.denominator.into()) / u128::from(self.numerator).max(1);
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }
}

impl Schedule {
    /// Is there a time to wait for?
    pub fn is_paced(&self) -> bool {
        *self != Schedule::TopSpeed
    }

    /// A cursor at frame 0.
    pub fn cursor(&self) -> Cursor<'_> {
        let due = match self {
            Schedule::Times { offsets, speed, .. } => {
                offsets.first().map_or(0, |&offset| speed.scale(u128::from(offset)))
            }
            _ => 0,
        };
        Cursor { schedule: self, n: 0, due, remainder: 0, base: 0, cached: (u32::MAX, 0, 0) }
    }

    /// How many frames are due within `ns` of the start, where that has a closed form: not when it depends on the
    /// length of every frame before.
    pub fn frames_due_by(&self, ns: u64) -> Option<u64> {
        match self {
            // t(n) <= ns  <=>  n * per_ns / frames < ns + 1  <=>  n < (ns + 1) * frames / per_ns
            Schedule::Frames { frames, per_ns } => {
                Some(((u128::from(ns) + 1) * u128::from(*frames)).div_ceil(u128::from(*per_ns)) as u64)
            }
            Schedule::Times { offsets, period_ns, speed } => {
                // floor(x * d / s) <= ns  <=>  x <= ((ns + 1) * s - 1) / d
                let end = (u128::from(ns) + 1) * u128::from(speed.numerator) - 1;
                let at = end / u128::from(speed.denominator);
                let period = u128::from(*period_ns);
                let within = |at: u128| offsets.partition_point(|&offset| u128::from(offset) <= at) as u64;
                let Some(passes) = at.checked_div(period) else { return Some(within(at)) };
                let pass = u64::try_from(passes).ok()?;
                Some(pass * offsets.len() as u64 + within(at - passes * period))
            }
            Schedule::TopSpeed | Schedule::Bits { .. } => None,
        }
    }
}

/// A place in an evenly timed schedule that holds no borrow of it, for those who own their schedule or come back
/// later: the due time of a frame, and the exact fraction of a nanosecond beyond it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Position {
    /// When the frame here is due.
    pub due: u64,
    remainder: u64,
}

impl Position {
    /// Moves past a frame of `length` bytes. Only schedules that ask for nothing else move: frames or bits a second.
    pub fn advance(&mut self, schedule: &Schedule, length: u32) {
        let (numerator, denominator) = match schedule {
            Schedule::Frames { frames, per_ns } => (u128::from(*per_ns), u128::from(*frames)),
            Schedule::Bits { bits_per_second, overhead_bytes } => {
                let bits = (u128::from(length) + u128::from(*overhead_bytes)) * 8;
                (bits * 1_000_000_000, u128::from(*bits_per_second))
            }
            Schedule::TopSpeed | Schedule::Times { .. } => return,
        };
        let total = numerator + u128::from(self.remainder);
        self.due = self.due.saturating_add(u64::try_from(total / denominator).unwrap_or(u64::MAX));
        self.remainder = (total % denominator) as u64;
    }
}

/// Walks a schedule frame by frame.
#[derive(Debug, Clone)]
pub struct Cursor<'a> {
    schedule: &'a Schedule,
    n: u64,
    due: u64,
    remainder: u64,
    /// Start of the present pass (`Times`), unscaled.
    base: u128,
    /// Time that a frame of the first number's bytes takes: quotient and remainder (`Bits`).
    cached: (u32, u64, u64),
}

impl Cursor<'_> {
    /// When the frame under the cursor leaves.
    pub fn due(&self) -> u64 {
        self.due
    }

    /// Moves to the next frame; `length` is that of the frame under the cursor, in buffer bytes.
    pub fn advance(&mut self, length: u32) {
        self.n += 1;
        match self.schedule {
            Schedule::TopSpeed => {}
            Schedule::Frames { frames, per_ns } => {
                if self.cached.0 != 0 {
                    self.cached = (0, per_ns / frames, per_ns % frames);
                }
                self.step(self.cached.1, self.cached.2, *frames);
            }
            Schedule::Bits { bits_per_second, overhead_bytes } => {
                if self.cached.0 != length {
                    let bits = (u64::from(length) + u64::from(*overhead_bytes)) * 8 * 1_000_000_000;
                    self.cached = (length, bits / bits_per_second, bits % bits_per_second);
                }
                self.step(self.cached.1, self.cached.2, *bits_per_second);
            }
            Schedule::Times { offsets, period_ns, speed } => {
                if offsets.is_empty() {
                    return;
                }
                let turn = (self.n % offsets.len() as u64) as usize;
                if turn == 0 {
                    self.base += u128::from(*period_ns);
                }
                self.due = speed.scale(self.base + u128::from(offsets[turn]));
            }
        }
    }

    /// Moves to frame `n`. `length_of` gives the length of any frame; it is only asked where times depend on it.
    pub fn seek(&mut self, n: u64, mut length_of: impl FnMut(u64) -> u32) {
        *self = self.schedule.cursor();
        match self.schedule {
            Schedule::TopSpeed => self.n = n,
            Schedule::Frames { frames, per_ns } => {
                let product = u128::from(n) * u128::from(*per_ns);
                self.n = n;
                self.due = u64::try_from(product / u128::from(*frames)).unwrap_or(u64::MAX);
                self.remainder = (product % u128::from(*frames)) as u64;
            }
            Schedule::Bits { .. } => {
                for k in 0..n {
                    self.advance(length_of(k));
                }
            }
            Schedule::Times { offsets, period_ns, speed } => {
                self.n = n;
                if let Some(len) = std::num::NonZeroU64::new(offsets.len() as u64) {
                    self.base = u128::from(n / len) * u128::from(*period_ns);
                    self.due = speed.scale(self.base + u128::from(offsets[(n % len) as usize]));
                }
            }
        }
    }

    #[inline]
    fn step(&mut self, quotient: u64, remainder: u64, denominator: u64) {
        self.due = self.due.saturating_add(quotient);
        self.remainder += remainder;
        if self.remainder >= denominator {
            self.remainder -= denominator;
            self.due = self.due.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rate_is_exact_over_one_hour_of_virtual_time() {
        // 1.6 Mpps does not divide a second into whole nanoseconds, and neither does 1,488,095.
        for rate in [1_600_000u64, 1_488_095] {
            let schedule = Schedule::Frames { frames: rate, per_ns: 1_000_000_000 };
            let mut cursor = schedule.cursor();
            cursor.seek(3_600 * rate, |_| 60);
            assert_eq!(cursor.due(), 3_600_000_000_000);
        }
    }

    #[test]
    fn bits_per_second_hold_over_five_million_frames_of_virtual_time() {
        let schedule = Schedule::Bits { bits_per_second: 999_999_937, overhead_bytes: 0 };
        let mut cursor = schedule.cursor();
        for _ in 0..5_000_000 {
            cursor.advance(60);
        }
        let bits = 5_000_000u128 * 480;
        assert_eq!(u128::from(cursor.due()), bits * 1_000_000_000 / 999_999_937);
    }

    #[test]
    fn looped_times_keep_their_period_and_speed() {
        let schedule = Schedule::Times {
            offsets: [0, 100, 250].into(),
            period_ns: 300,
            speed: Speed { numerator: 2, denominator: 1 },
        };
        let mut cursor = schedule.cursor();
        let times: Vec<u64> = (0..7)
            .map(|_| {
                let due = cursor.due();
                cursor.advance(60);
                due
            })
            .collect();
        assert_eq!(times, [0, 50, 125, 150, 200, 275, 300]);
    }

    proptest! {
        #[test]
        fn walking_equals_the_closed_form(frames in 1u64..20_000_000, per_ns in 1u64..5_000_000_000, from in 0u64..1 << 40) {
            let schedule = Schedule::Frames { frames, per_ns };
            let mut cursor = schedule.cursor();
            cursor.seek(from, |_| 60);
            for n in from..from + 200 {
                prop_assert_eq!(u128::from(cursor.due()), u128::from(n) * u128::from(per_ns) / u128::from(frames));
                cursor.advance(60);
            }
        }

        #[test]
        fn frames_due_by_counts_exactly_those_due(frames in 1u64..5_000_000, per_ns in 1u64..5_000_000_000, ns in 0u64..1 << 36) {
            let schedule = Schedule::Frames { frames, per_ns };
            let count = schedule.frames_due_by(ns).unwrap();
            let t = |n: u64| u128::from(n) * u128::from(per_ns) / u128::from(frames);
            prop_assert!(count == 0 || t(count - 1) <= u128::from(ns));
            prop_assert!(t(count) > u128::from(ns));
        }

        #[test]
        fn times_due_by_counts_exactly_those_due(
            steps in proptest::collection::vec(0u64..1000, 1..20),
            numerator in 1u64..20,
            denominator in 1u64..20,
            ns in 0u64..50_000,
        ) {
            let offsets: Vec<u64> = steps.iter().scan(0, |at, step| { *at += step; Some(*at) }).collect();
            let period_ns = offsets.last().unwrap() + 7;
            let speed = Speed { numerator, denominator };
            let schedule = Schedule::Times { offsets: offsets.into(), period_ns, speed };
            let mut cursor = schedule.cursor();
            let mut count = 0;
            while cursor.due() <= ns {
                count += 1;
                cursor.advance(60);
            }
            prop_assert_eq!(schedule.frames_due_by(ns), Some(count));
        }

        #[test]
        fn bits_walk_equals_the_sum(bps in 1_000u64..100_000_000_000, lengths in proptest::collection::vec(42u32..9000, 1..50)) {
            let schedule = Schedule::Bits { bits_per_second: bps, overhead_bytes: LAYER1_OVERHEAD };
            let (mut cursor, mut position) = (schedule.cursor(), Position::default());
            let mut bits = 0u128;
            for &length in &lengths {
                prop_assert_eq!(u128::from(cursor.due()), bits * 1_000_000_000 / u128::from(bps));
                prop_assert_eq!(position.due, cursor.due());
                cursor.advance(length);
                position.advance(&schedule, length);
                bits += u128::from(length + LAYER1_OVERHEAD) * 8;
            }
        }
    }
}
