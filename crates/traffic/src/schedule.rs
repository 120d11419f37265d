//! Departure times: nanoseconds after the start of the run, exact for every frame, however long the run.
//!
//! A schedule is a function, not a rate limiter: t(n) = floor(n * per_ns / frames) and its like, in integers, so
//! there is nothing that could drift. The [`Cursor`] walks it with one addition a frame, carrying the remainder as
//! Bresenham's line does, and is held to the closed form by tests. What to do when a run falls behind is not decided
//! here but by the engine's pacer.

use crate::shape::{Shaped, Walker};
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
    /// `frames` frames `gap_ns` apart, again in every period.
    Bursts {
        /// How many frames in a burst.
        frames: u64,
        /// From one frame of a burst to the next.
        gap_ns: u64,
        /// From the start of one burst to the start of the next; no shorter than the burst.
        period_ns: u64,
    },
    /// One rate after the other, then the end. A ramp is a staircase of these.
    Steps {
        /// In the order of their ends.
        steps: Arc<[Step]>,
    },
    /// At a rate that varies, by a law or by chance.
    Shaped(Arc<Shaped>),
}

/// A stretch of time with one rate. The rate that rules at a frame's time says when the next frame is due; the
/// fraction of a nanosecond carried beyond it is dropped on passing into the next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The first nanosecond (from the lane's start) that is no longer ruled by this step.
    pub end_ns: u64,
    /// This many frames ...
    pub frames: u64,
    /// ... in every so many nanoseconds.
    pub per_ns: u64,
}

/// A frame is due here, its step begins: walks a staircase step by step rather than frame by frame.
#[derive(Debug, Clone, Copy)]
struct Stair {
    /// Frames due before this step's first.
    before: u64,
    /// Which step.
    step: usize,
    /// When the step's first frame is due.
    first: u64,
    /// How many frames the step has.
    count: u64,
}

/// The steps in which frames are due, and behind them one that has none and begins where the schedule ends.
fn stairs(steps: &[Step]) -> impl Iterator<Item = Stair> {
    let (mut before, mut first, mut step) = (0u64, 0u64, 0);
    std::iter::from_fn(move || {
        if step > steps.len() {
            return None;
        }
        step += steps[step..].partition_point(|s| s.end_ns <= first);
        let Some(&Step { end_ns, frames, per_ns }) = steps.get(step) else {
            let end = Stair { before, step: steps.len(), first, count: 0 };
            step = steps.len() + 1;
            return Some(end);
        };
        // floor(k * per_ns / frames) < length  <=>  k < length * frames / per_ns
        let length = u128::from(end_ns - first);
        let count = (length * u128::from(frames)).div_ceil(u128::from(per_ns).max(1));
        let stair = Stair { before, step, first, count: u64::try_from(count).unwrap_or(u64::MAX) };
        let lasts = scaled(stair.count, per_ns, frames).0;
        (before, first) = (before.saturating_add(stair.count), first.saturating_add(lasts));
        step += 1;
        Some(stair)
    })
}

/// From the last frame of a burst to the first of the next.
fn pause(frames: u64, gap_ns: u64, period_ns: u64) -> u64 {
    period_ns.saturating_sub(frames.saturating_sub(1).saturating_mul(gap_ns))
}

/// `n * per_ns / frames` and the remainder.
fn scaled(n: u64, per_ns: u64, frames: u64) -> (u64, u64) {
    let (product, frames) = (u128::from(n) * u128::from(per_ns), u128::from(frames).max(1));
    (u64::try_from(product / frames).unwrap_or(u64::MAX), (product % frames) as u64)
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

    /// The key that a seed went into, as in [`Values::key`](crate::Values::key).
    pub fn key(&self) -> Option<u64> {
        match self {
            Schedule::TopSpeed
            | Schedule::Frames { frames: _, per_ns: _ }
            | Schedule::Bits { bits_per_second: _, overhead_bytes: _ }
            | Schedule::Times { offsets: _, period_ns: _, speed: _ }
            | Schedule::Bursts { frames: _, gap_ns: _, period_ns: _ }
            | Schedule::Steps { steps: _ } => None,
            Schedule::Shaped(shaped) => shaped.key(),
        }
    }

    /// What would divide by zero or go back in time.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        match self {
            Schedule::TopSpeed => {}
            Schedule::Frames { frames, per_ns } if *frames == 0 || *per_ns == 0 => {
                return Err("a rate must be more than zero and finite");
            }
            Schedule::Bits { bits_per_second: 0, .. } => return Err("a rate must be more than zero"),
            Schedule::Frames { .. } | Schedule::Bits { .. } => {}
            Schedule::Shaped(shaped) => return shaped.check(),
            Schedule::Times { offsets, period_ns, speed } => {
                let (Some(first), Some(last)) = (offsets.first(), offsets.last()) else {
                    return Err("a schedule of stated times needs at least one");
                };
                if !offsets.is_sorted() || last - first > *period_ns {
                    return Err("stated times must not go back, from one pass to the next either");
                }
                if speed.numerator == 0 || speed.denominator == 0 {
                    return Err("a speed must be more than zero and finite");
                }
            }
            Schedule::Bursts { frames, gap_ns, period_ns } => {
                let length = u128::from(frames.saturating_sub(1)) * u128::from(*gap_ns);
                if *frames == 0 || *period_ns == 0 || length > u128::from(*period_ns) {
                    return Err("a burst has one frame or more and ends before the next begins");
                }
            }
            Schedule::Steps { steps } => {
                if steps.is_empty() || steps[0].end_ns == 0 || !steps.is_sorted_by(|a, b| a.end_ns < b.end_ns)
                {
                    return Err("each step of a schedule must end after the one before");
                }
                if steps.iter().any(|step| step.frames == 0 || step.per_ns == 0) {
                    return Err("the rate of a step must be more than zero and finite");
                }
            }
        }
        Ok(())
    }

    /// Is it over when a frame would be due at `due`?
    pub fn ends_before(&self, due: u64) -> bool {
        match self {
            Schedule::Steps { steps } => steps.last().is_none_or(|last| due >= last.end_ns),
            _ => false,
        }
    }

    /// How many frames it has, where it comes to an end.
    pub fn total_frames(&self) -> Option<u64> {
        match self {
            Schedule::Steps { steps } => stairs(steps).last().map(|end| end.before),
            _ => None,
        }
    }

    /// A cursor at frame 0.
    pub fn cursor(&self) -> Cursor<'_> {
        let mut walker = None;
        let due = match self {
            Schedule::Times { offsets, speed, .. } => {
                offsets.first().map_or(0, |&offset| speed.scale(u128::from(offset)))
            }
            Schedule::Shaped(shaped) => walker.insert(shaped.walker()).at(shaped, 0),
            _ => 0,
        };
        Cursor { schedule: self, n: 0, due, remainder: 0, base: 0, turn: 0, cached: (u32::MAX, 0, 0), walker }
    }

    /// How many frames are due within `ns` of the start, where that has a closed form: not when it depends on the
    /// length of every frame before.
    pub fn frames_due_by(&self, ns: u64) -> Option<u64> {
        match self {
            // t(n) <= ns  <=>  n * per_ns / frames < ns + 1  <=>  n < (ns + 1) * frames / per_ns
            Schedule::Frames { frames, per_ns } => {
                let due = ((u128::from(ns) + 1) * u128::from(*frames)).div_ceil(u128::from(*per_ns));
                Some(u64::try_from(due).unwrap_or(u64::MAX))
            }
            Schedule::Times { offsets, period_ns, speed } => {
                // floor(x * d / s) <= ns  <=>  x <= ((ns + 1) * s - 1) / d
                let end = (u128::from(ns) + 1) * u128::from(speed.numerator) - 1;
                let at = end / u128::from(speed.denominator);
                let period = u128::from(*period_ns);
                let within = |at: u128| offsets.partition_point(|&offset| u128::from(offset) <= at) as u64;
                let Some(passes) = at.checked_div(period) else { return Some(within(at)) };
                // More than can be counted is never reached, but asked for by who wants all.
                let before = u64::try_from(passes).unwrap_or(u64::MAX).saturating_mul(offsets.len() as u64);
                Some(before.saturating_add(within(at - passes * period)))
            }
            Schedule::Bursts { frames, gap_ns, period_ns } => {
                let (bursts, within) = (ns / period_ns, ns % period_ns);
                let begun = within
                    .checked_div(*gap_ns)
                    .map_or(*frames, |gaps| frames.saturating_sub(1).min(gaps) + 1);
                Some(bursts.saturating_mul(*frames).saturating_add(begun))
            }
            Schedule::Steps { steps } => {
                let stair = stairs(steps).take_while(|stair| stair.first <= ns).last()?;
                let due = steps.get(stair.step).map_or(0, |step| {
                    let within = (u128::from(ns - stair.first) + 1) * u128::from(step.frames);
                    within.div_ceil(u128::from(step.per_ns)).min(u128::from(stair.count)) as u64
                });
                Some(stair.before.saturating_add(due))
            }
            Schedule::Shaped(shaped) => Some(shaped.due_by(ns)),
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
    /// Frames before this one in its burst.
    turn: u64,
}

impl Position {
    /// Moves past a frame of `length` bytes. Stated times and shapes do not move: they ask for a frame's number.
    pub fn advance(&mut self, schedule: &Schedule, length: u32) {
        let (numerator, denominator) = match schedule {
            Schedule::Steps { steps } => {
                let ruling = steps.partition_point(|step| step.end_ns <= self.due);
                let Some(step) = steps.get(ruling) else { return };
                let total = u128::from(step.per_ns) + u128::from(self.remainder);
                let frames = u128::from(step.frames);
                self.due = self.due.saturating_add(u64::try_from(total / frames).unwrap_or(u64::MAX));
                self.remainder = if self.due >= step.end_ns { 0 } else { (total % frames) as u64 };
                return;
            }
            Schedule::Bursts { frames, gap_ns, period_ns } => {
                self.turn += 1;
                let mut by = *gap_ns;
                if self.turn >= *frames {
                    (self.turn, by) = (0, pause(*frames, *gap_ns, *period_ns));
                }
                self.due = self.due.saturating_add(by);
                return;
            }
            Schedule::Frames { frames, per_ns } => (u128::from(*per_ns), u128::from(*frames)),
            Schedule::Bits { bits_per_second, overhead_bytes } => {
                let bits = (u128::from(length) + u128::from(*overhead_bytes)) * 8;
                (bits * 1_000_000_000, u128::from(*bits_per_second))
            }
            Schedule::TopSpeed | Schedule::Times { .. } | Schedule::Shaped(_) => return,
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
    /// Frames before this one in its burst, or the number of the ruling step.
    turn: u64,
    /// Time that a frame of the first number's bytes takes: quotient and remainder (`Bits`); or that of a frame in the
    /// step of the first number.
    cached: (u32, u64, u64),
    /// What remembers how the times of a shape were found.
    walker: Option<Walker>,
}

impl Cursor<'_> {
    /// When the frame under the cursor leaves; at the end of a schedule, when one more would have.
    pub fn due(&self) -> u64 {
        self.due
    }

    /// Is the cursor behind the last frame?
    pub fn at_end(&self) -> bool {
        self.schedule.ends_before(self.due)
    }

    /// Moves to the next frame; `length` is that of the frame under the cursor, in buffer bytes.
    pub fn advance(&mut self, length: u32) {
        self.n += 1;
        match self.schedule {
            Schedule::TopSpeed => {}
            Schedule::Shaped(shaped) => self.due = self.shaped(shaped),
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
            Schedule::Bursts { frames, gap_ns, period_ns } => {
                self.turn += 1;
                let mut by = *gap_ns;
                if self.turn >= *frames {
                    (self.turn, by) = (0, pause(*frames, *gap_ns, *period_ns));
                }
                self.due = self.due.saturating_add(by);
            }
            Schedule::Steps { steps } => {
                let Some(step) = steps.get(self.turn as usize) else { return };
                if self.cached.0 != self.turn as u32 {
                    self.cached = (self.turn as u32, step.per_ns / step.frames, step.per_ns % step.frames);
                }
                self.step(self.cached.1, self.cached.2, step.frames);
                while steps.get(self.turn as usize).is_some_and(|step| self.due >= step.end_ns) {
                    (self.turn, self.remainder) = (self.turn + 1, 0);
                }
            }
        }
    }

    /// Moves to frame `n`. `length_of` gives the length of any frame; it is only asked where times depend on it.
    pub fn seek(&mut self, n: u64, mut length_of: impl FnMut(u64) -> u32) {
        *self = self.schedule.cursor();
        match self.schedule {
            Schedule::TopSpeed => self.n = n,
            Schedule::Shaped(shaped) => {
                self.n = n;
                self.due = self.shaped(shaped);
            }
            Schedule::Frames { frames, per_ns } => {
                self.n = n;
                (self.due, self.remainder) = scaled(n, *per_ns, *frames);
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
            Schedule::Bursts { frames, gap_ns, period_ns } => {
                (self.n, self.turn) = (n, n % frames);
                self.due = (n / frames).saturating_mul(*period_ns).saturating_add(self.turn * gap_ns);
            }
            Schedule::Steps { steps } => {
                let Some(stair) = stairs(steps).take_while(|stair| stair.before <= n).last() else { return };
                self.n = n.min(stair.before.saturating_add(stair.count));
                self.turn = stair.step as u64;
                if let Some(step) = steps.get(stair.step) {
                    let (since, remainder) = scaled(n - stair.before, step.per_ns, step.frames);
                    (self.due, self.remainder) = (stair.first.saturating_add(since), remainder);
                } else {
                    self.due = stair.first;
                }
            }
        }
    }

    fn shaped(&mut self, shaped: &Shaped) -> u64 {
        self.walker.as_mut().map_or(0, |walker| walker.at(shaped, self.n))
    }

    #[inline]
    fn step(&mut self, quotient: u64, remainder: u64, denominator: u64) {
        self.due = self.due.saturating_add(quotient);
        // Both are less than the denominator, which may need all 64 bits: the sum may need one more.
        let room = denominator - remainder;
        if self.remainder >= room {
            self.remainder -= room;
            self.due = self.due.saturating_add(1);
        } else {
            self.remainder += remainder;
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
    fn rates_of_as_many_digits_as_fit_are_walked_exactly() {
        for text in ["1799999999.9999999999pps", "0.9999999999999999999pps", "1844674407.3709551615pps"] {
            let schedule =
                text.parse::<crate::Rate>().unwrap().schedule(crate::rate::Context::default()).unwrap();
            let Schedule::Frames { frames, per_ns } = schedule else { panic!("{schedule:?}") };
            let (mut cursor, mut position) = (schedule.cursor(), Position::default());
            for n in 0..200_000u64 {
                let due = u128::from(n) * u128::from(per_ns) / u128::from(frames);
                assert_eq!(
                    (u128::from(cursor.due()), u128::from(position.due)),
                    (due, due),
                    "frame {n} at {text}"
                );
                cursor.advance(60);
                position.advance(&schedule, 60);
            }
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

    #[test]
    fn times_far_away_are_counted_too_however_fast_they_pass() {
        for numerator in [1, 5000, u64::MAX] {
            let speed = Speed { numerator, denominator: 1 };
            let schedule = Schedule::Times { offsets: [0, 1, 2].into(), period_ns: 4, speed };
            assert_eq!(schedule.frames_due_by(u64::MAX) == Some(u64::MAX), numerator > 1, "{numerator}");
            assert!(schedule.frames_due_by(u64::MAX).is_some());
        }
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

        #[test]
        fn bursts_and_steps_are_walked_as_they_are_counted(
            bursts in (1u64..13, 0u64..50, 1u64..500),
            steps in proptest::collection::vec((1u64..3000, 1u64..100, 1u64..5000), 1..8),
        ) {
            let (frames, gap_ns, pause) = bursts;
            let period_ns = (frames - 1) * gap_ns + pause;
            let ends = steps.iter().scan(0, |end, step| { *end += step.0; Some(*end) });
            let steps = ends.zip(&steps).map(|(end_ns, &(_, frames, per_ns))| Step { end_ns, frames, per_ns });
            let steps = Schedule::Steps { steps: steps.collect() };
            for schedule in [Schedule::Bursts { frames, gap_ns, period_ns }, steps] {
                prop_assert_eq!(schedule.check(), Ok(()));
                let (mut walk, mut position) = (schedule.cursor(), Position::default());
                let mut n = 0;
                while n < 300 && !walk.at_end() {
                    let due = walk.due();
                    let mut sought = schedule.cursor();
                    sought.seek(n, |_| 0);
                    prop_assert_eq!((sought.due(), position.due), (due, due), "frame {}", n);
                    walk.advance(60);
                    sought.advance(60);
                    position.advance(&schedule, 60);
                    prop_assert_eq!(sought.due(), walk.due(), "behind frame {}", n);
                    n += 1;
                    if walk.due() > due {
                        prop_assert_eq!(schedule.frames_due_by(due), Some(n));
                        prop_assert_eq!(schedule.frames_due_by(walk.due() - 1), Some(n));
                    }
                }
                if walk.at_end() {
                    prop_assert_eq!(schedule.total_frames(), Some(n));
                    prop_assert_eq!(schedule.frames_due_by(u64::MAX), Some(n));
                    prop_assert!(schedule.ends_before(position.due));
                }
            }
        }
    }
}
