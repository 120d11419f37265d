//! When a frame may leave, once its time has come or passed. Pure: times go in, times come out.
//!
//! As long as the run keeps up, a frame leaves at its time. After a stall (the core was taken away, the queue was
//! full) frames are overdue, and sending them at top speed would hit the device under test with a burst that nobody
//! asked for. What it may be hit with is bounded by one of three laws ([`CatchUp`]):
//!
//! - by the link, which is the default: what is overdue leaves in short bursts, with at most half of what the link carries over
//!   any millisecond ([`Budget`]). A low rate is then caught up in no time, which a device that stands any rate does not notice;
//!   bounded by a multiple of the low rate it would never be, on a machine where others have the core half of the time;
//! - by the schedule, where that has more, or somebody asks for it ([`Pacer`]): a multiple of the rate;
//! - nothing is caught up ([`put_off`]): trials.
//!
//! For the second, the *position* in the schedule up to which frames may leave follows the clock, but is never moved
//! faster than the catch-up rate: over any millisecond it advances by at most `catch_up` milliseconds.
//!
//! ```text
//!   schedule position                       . clock
//!     |                                   .'/
//!     |                                 .' /   catching up, slope below `catch_up`
//!     |                               .'  /
//!     |            stall            .'   /
//!     |         .-----------------.' ___/  <- at most JUMP at once
//!     |       .'
//!     +-------------------------------------------------- time
//! ```
//!
//! That holds when the position moves with at most 0.85 `catch_up` of the clock's pace, and by at most a tenth of
//! `catch_up` milliseconds at once: 0.85 c + 0.1 c; the rest is room for what the way to the receiver adds.

/// How what is overdue after a stall is caught up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CatchUp {
    /// Not at all. After a stall longer than [`TOLERATED_NS`] the whole schedule is put off by it ([`put_off`]): no gap between
    /// frames becomes shorter than it should be, so that whatever a device then loses it loses of no more than the load; what
    /// the time does not suffice for is not sent, and is a shortfall to the frame.
    Never,
    /// With at most so many times what the schedule has, over any millisecond.
    Times(f64),
    /// With at most so many bits a second on the wire, over any millisecond, and no more than [`MOST_BURST`] frames at once; or
    /// with [`TWICE`] what the schedule has, where that is more.
    Link(u64),
}

/// What a schedule is caught up with where the link's bound is less than that.
pub const TWICE: f64 = 2.0;

/// Frames of a burst by which a link's bound lets a run catch up.
pub const MOST_BURST: usize = 32;

/// The speed that a link is taken to have where nobody knows it.
pub const UNKNOWN_LINK: u64 = 1_000_000_000;

/// The factor of [`CatchUp::Never`], see [`bounded`].
const NEVER: f64 = 1.0;

impl CatchUp {
    /// Half of what a link carries; of one whose speed is not known, of [`UNKNOWN_LINK`].
    pub fn by_link(bits_per_second: Option<u64>) -> CatchUp {
        CatchUp::Link(bits_per_second.unwrap_or(UNKNOWN_LINK).max(2) / 2)
    }

    /// The part of one of so many workers that send by the same link.
    #[must_use]
    pub fn among(self, workers: usize) -> CatchUp {
        match self {
            CatchUp::Link(bits) => CatchUp::Link((bits / workers.max(1) as u64).max(1)),
            same => same,
        }
    }

    /// Is nothing caught up?
    pub fn is_never(self) -> bool {
        self == CatchUp::Never
    }

    /// The bound by the schedule.
    pub fn times(self) -> f64 {
        match self {
            CatchUp::Never => NEVER,
            CatchUp::Times(times) => times,
            CatchUp::Link(_) => TWICE,
        }
    }

    /// The bound by the link.
    pub fn link(self) -> Option<u64> {
        match self {
            CatchUp::Link(bits) => Some(bits),
            _ => None,
        }
    }
}

/// Bits of a frame on the wire.
pub fn wire_bits(length: u64) -> u64 {
    (length + u64::from(traffic::schedule::LAYER1_OVERHEAD)) * 8
}

/// What a link's bound comes to: nanoseconds for a bit, and the bits of a burst. Of the bound 0.85 are a steady rate and
/// a tenth is a burst; the rest is room for what the way to the receiver adds.
pub fn budget_of(bits_per_second: u64) -> (f64, u64) {
    let steady = bits_per_second.max(1) as f64 * 0.85;
    let burst = (bits_per_second as f64 * 0.1 * WINDOW_NS as f64 / 1e9) as u64;
    (1e9 / steady, burst)
}

/// Lets overdue frames go as a link's bound has it: a burst, then as long nothing as that takes at the steady rate. All frames
/// of the run count, also those that leave in time, so that over any millisecond the bound holds for both together while the
/// schedule's own rate is below it.
#[derive(Debug, Clone)]
pub struct Budget {
    ns_per_bit: f64,
    burst: u64,
    /// When the frames so far would have left at the steady rate.
    free_at: u64,
    /// Bits of a frame, of the latest ones.
    frame_bits: u64,
}

impl Budget {
    /// At most so many bits a second on the wire.
    pub fn new(bits_per_second: u64) -> Budget {
        let (ns_per_bit, burst) = budget_of(bits_per_second);
        Budget { ns_per_bit, burst, free_at: 0, frame_bits: wire_bits(1514) }
    }

    /// How many overdue frames may leave at `now`.
    pub fn room(&self, now: u64) -> usize {
        if now < self.free_at {
            return 0;
        }
        usize::try_from(self.burst / self.frame_bits.max(1)).unwrap_or(MOST_BURST).clamp(1, MOST_BURST)
    }

    /// Until when no overdue frame may leave.
    pub fn free_at(&self) -> u64 {
        self.free_at
    }

    /// So many frames left at `now`, with so many bits on the wire.
    pub fn take(&mut self, now: u64, frames: usize, bits: u64) {
        self.frame_bits = bits / (frames as u64).max(1);
        let took = (bits as f64 * self.ns_per_bit).ceil() as u64;
        // What is longer ago than the window of the promise does not matter any more.
        self.free_at = (self.free_at.max(now) + took).min(now + took.max(WINDOW_NS));
    }
}

/// The most frames that left within any window of a millisecond, as they leave.
#[derive(Debug, Clone, Default)]
pub struct Densest {
    recent: std::collections::VecDeque<(u64, u64)>,
    within: u64,
    most: u64,
}

impl Densest {
    /// So many frames left at `now`.
    pub fn note(&mut self, now: u64, frames: u64) {
        while let Some((_, old)) = self.recent.pop_front_if(|(at, _)| now.saturating_sub(*at) >= WINDOW_NS) {
            self.within -= old;
        }
        self.recent.push_back((now, frames));
        self.within += frames;
        self.most = self.most.max(self.within);
    }

    /// How many.
    pub fn most(&self) -> u64 {
        self.most
    }
}

/// Less than this is still caught up: timers are late by tens of microseconds, senders that rest by more. It is as much as
/// a device sees in excess, spread over as long again and more.
pub const TOLERATED_NS: u64 = 400_000;

/// By how much the schedule of a run that catches nothing up is to be put off, when a frame that was due at `due` can leave
/// at `now`.
pub fn put_off(now: u64, due: u64) -> u64 {
    let late = now.saturating_sub(due);
    if late > TOLERATED_NS { late } else { 0 }
}

/// The window over which the catch-up rate is promised.
pub const WINDOW_NS: u64 = 1_000_000;

/// The rate that frames are caught up at, for what was asked for.
pub fn bounded(catch_up: f64) -> f64 {
    match catch_up {
        slow if slow <= NEVER => 1.5,
        fast if fast.is_finite() => fast.clamp(1.2, 1000.0),
        _ => 1000.0,
    }
}

/// Moves the position in the schedule.
#[derive(Debug, Clone)]
pub struct Pacer {
    position: u64,
    last: u64,
    catch_up: f64,
    jump: u64,
}

impl Pacer {
    /// A pacer that catches up at `catch_up` times the scheduled rate; of [`CatchUp::Never`], what little is tolerated.
    pub fn new(catch_up: f64) -> Pacer {
        let catch_up = bounded(catch_up);
        Pacer {
            position: 0,
            last: 0,
            catch_up: catch_up * 0.85,
            jump: (catch_up * 0.1 * WINDOW_NS as f64) as u64,
        }
    }

    /// Nothing is overdue at `now`: the run is where its schedule is.
    pub fn met(&mut self, now: u64) {
        (self.position, self.last) = (self.position.max(now), now);
    }

    /// A new one, for a run that is where its schedule is.
    pub fn at(catch_up: f64, position: u64) -> Pacer {
        Pacer { position, last: position, ..Pacer::new(catch_up) }
    }

    /// At `now`, with the next frame due at `next_due` (both from the run's start): the position up to which frames
    /// may leave. Never after `now`.
    pub fn advance(&mut self, now: u64, next_due: u64) -> u64 {
        let elapsed = now.saturating_sub(self.last);
        let behind = self.position < self.last;
        self.last = now;
        let step = (elapsed as f64 * self.catch_up) as u64;
        // Up to the next frame there is nothing to release. A run on time is there at once; one that is behind gets
        // there no faster than it catches up, and not from frame to frame in leaps. Beyond it, at most a jump.
        let free = if behind { next_due.min(self.position.saturating_add(step)) } else { next_due.min(now) };
        let free = self.position.max(free);
        let to = if behind {
            self.position.saturating_add(step).min(free.saturating_add(self.jump))
        } else {
            free.saturating_add(step.min(self.jump))
        };
        self.position = now.min(to.max(free));
        self.position
    }

    /// When a frame due at `due`, which is beyond the position, can leave at the earliest.
    pub fn release_time(&self, due: u64) -> u64 {
        if self.position >= self.last {
            return due;
        }
        // Rounded up: after that time the position has come there, and who waits never waits for no time at all.
        let wait = (due.saturating_sub(self.position) as f64 / self.catch_up).ceil() as u64;
        due.max(self.last + wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Runs a schedule of one frame each `gap` under a clock that is read every `tick`, and stands still for
    /// `stall` at `stall_at`. Returns when each frame left.
    fn run(gap: u64, tick: u64, stall_at: u64, stall: u64, until: u64, catch_up: f64) -> Vec<u64> {
        let mut pacer = Pacer::new(catch_up);
        let (mut now, mut due) = (0, 0);
        let mut left = Vec::new();
        let mut stalled = false;
        while now < until {
            let position = pacer.advance(now, due);
            while due <= position {
                left.push(now);
                due += gap;
            }
            now += tick;
            if !stalled && now >= stall_at {
                now += stall;
                stalled = true;
            }
        }
        left
    }

    /// The most frames that left within any millisecond.
    fn densest(left: &[u64]) -> usize {
        let mut first = 0;
        let mut most = 0;
        for last in 0..left.len() {
            while left[last] - left[first] >= WINDOW_NS {
                first += 1;
            }
            most = most.max(last - first + 1);
        }
        most
    }

    #[test]
    fn without_a_stall_every_frame_leaves_at_its_time() {
        let left = run(2_000, 500, u64::MAX, 0, 10_000_000, 2.0);
        assert!(left.iter().enumerate().all(|(n, &at)| at == n as u64 * 2_000));
    }

    #[test]
    fn a_late_wake_up_is_no_reason_to_wait_longer() {
        let mut pacer = Pacer::new(2.0);
        pacer.advance(0, 0);
        assert_eq!(pacer.advance(1_060_000, 1_000_000), 1_060_000);
    }

    /// A schedule: when frame n is due, and how long it is.
    type Schedule<'s> = &'s dyn Fn(u64) -> (u64, u64);

    /// What a sender does that has its core for `on` of every `period`, and its link's bound: of each frame when it left and when it
    /// was due. As the worker does it.
    fn shared_core(
        schedule: Schedule<'_>,
        link: u64,
        (on, period): (u64, u64),
        until: u64,
    ) -> Vec<(u64, u64)> {
        let (mut pacer, mut budget) = (Pacer::new(TWICE), Budget::new(link));
        // Another has the core: it goes on when that one's slice is over.
        let runs = |at: u64| if at % period < on { at } else { at - at % period + period };
        let (mut now, mut frame, mut left) = (0, 0, Vec::new());
        loop {
            now = runs(now);
            let (next, _) = schedule(frame);
            if next >= until {
                return left;
            }
            if next > now {
                pacer.met(now);
            }
            let position = pacer.advance(now, next);
            let room = if next > position && next <= now { budget.room(now) } else { 0 };
            if next > position && room == 0 {
                let release = pacer.release_time(next);
                now = if next <= now { release.min(budget.free_at()) } else { release }.max(now + 1);
                continue;
            }
            let (upto, most) = if next > position { (now, room) } else { (position, 64) };
            let (mut count, mut bits) = (0, 0);
            while count < most {
                let (due, length) = schedule(frame);
                if due > upto || due >= until {
                    break;
                }
                left.push((now, due));
                (count, bits, frame) = (count + 1, bits + wire_bits(length), frame + 1);
            }
            budget.take(now, count, bits);
            // What a batch costs.
            now += 2_000 + 300 * count as u64;
        }
    }

    #[test]
    fn who_has_its_core_a_quarter_of_the_time_sends_all_of_it_with_at_most_a_slices_lateness() {
        const MS: u64 = 1_000_000;
        // 10,000 and 100,000 frames a second, and 100 Mbit/s of frames as captured: long ones and short ones.
        let lengths = [60, 1514, 60, 594, 1514, 60, 60, 1514];
        let captured = |n: u64| {
            let pass: u64 = lengths.iter().sum();
            let before = n / 8 * pass + lengths[..(n % 8) as usize].iter().sum::<u64>();
            (before * 8 * 10, lengths[(n % 8) as usize])
        };
        let schedules: [(&str, Schedule<'_>); 3] = [
            ("10 kpps", &|n| (n * 100_000, 60)),
            ("100 kpps", &|n| (n * 10_000, 60)),
            ("100 Mbit/s", &captured),
        ];
        for (name, schedule) in schedules {
            // A link of 1 Gbit/s, and one of 10.
            for link in [UNKNOWN_LINK / 2, 5_000_000_000] {
                let until = 2_000 * MS;
                let due = (0..).take_while(|n| schedule(*n).0 < until).count();
                let left = shared_core(schedule, link, (3 * MS, 12 * MS), until);
                assert_eq!(left.len(), due, "{name}");
                // While it has no core nothing leaves; that is caught up within the slice that comes.
                let latest = left.iter().map(|(at, due)| at - due).max().unwrap_or(0);
                assert!(latest <= 12 * MS, "{name}: {latest} ns late");
                // And all is met at the end of each.
                let at_end = left.iter().filter(|(at, _)| at % (12 * MS) >= 2_900_000);
                assert!(at_end.clone().count() > 0);
                at_end.for_each(|(at, due)| assert!(at - due <= LATE, "{name}: {at} {due}"));
                let bits: Vec<(u64, u64)> = left
                    .iter()
                    .enumerate()
                    .map(|(n, (at, _))| (*at, wire_bits(schedule(n as u64).1)))
                    .collect();
                assert!(most_bits(&bits) <= link / 1_000, "{name}: {} bits in 1 ms", most_bits(&bits));
            }
        }
    }

    /// What a link of 1 Gbit/s has left for 100 Mbit/s in a quarter of the time is not much.
    const LATE: u64 = 300_000;

    /// The most bits that left within any millisecond.
    fn most_bits(left: &[(u64, u64)]) -> u64 {
        let (mut first, mut within, mut most) = (0, 0, 0);
        for (at, bits) in left {
            within += bits;
            while at - left[first].0 >= WINDOW_NS {
                within -= left[first].1;
                first += 1;
            }
            most = most.max(within);
        }
        most
    }

    #[test]
    fn the_densest_millisecond_is_found_as_frames_leave() {
        let mut densest = Densest::default();
        for (at, frames) in
            [(0, 3), (500_000, 4), (999_999, 2), (1_000_000, 1), (1_500_000, 5), (9_000_000, 6)]
        {
            densest.note(at, frames);
        }
        assert_eq!(densest.most(), 9);
    }

    #[test]
    fn workers_of_one_link_catch_up_together_as_one_would() {
        let link = CatchUp::by_link(Some(10_000_000_000));
        assert_eq!((link, link.among(4)), (CatchUp::Link(5_000_000_000), CatchUp::Link(1_250_000_000)));
        assert_eq!(CatchUp::by_link(None).link(), Some(500_000_000));
        assert_eq!(
            [CatchUp::Never.among(2), CatchUp::Times(3.0).among(2)],
            [CatchUp::Never, CatchUp::Times(3.0)]
        );
    }

    /// As the worker does it, where nothing is caught up: when each frame left, and by how much all was put off.
    fn put_off_by(gap: u64, stalls: &[(u64, u64)], oversleep: u64, until: u64) -> (Vec<u64>, u64) {
        let mut pacer = Pacer::new(NEVER);
        let (mut clock, mut due, mut off) = (0, 0, 0);
        let (mut left, mut stalls) = (Vec::new(), stalls.iter().peekable());
        while due < until - off {
            if let Some((_, held)) = stalls.next_if(|(at, _)| *at <= clock) {
                clock += held;
            }
            let now = clock - off;
            let position = pacer.advance(now, due);
            if due > position {
                clock = clock.max(off + pacer.release_time(due)) + oversleep;
                continue;
            }
            let by = put_off(now, due);
            if by > 0 {
                off += by;
                pacer = Pacer::at(NEVER, due);
                if off >= until {
                    break;
                }
                continue;
            }
            left.push(clock);
            due += gap;
            clock += 200;
        }
        // A stall that outlasts the end costs no more than what was still to come.
        (left, off.min(until.saturating_sub(due)))
    }

    proptest! {
        #[test]
        fn what_is_put_off_never_comes_closer_and_is_missing_to_the_frame(
            gap in 20_000u64..2_000_000,
            held in proptest::collection::vec((0u64..200_000_000, 0u64..60_000_000), 0..6),
            oversleep in 0u64..50_000,
        ) {
            let mut held = held;
            held.sort();
            let until = 200_000_000;
            let (left, off) = put_off_by(gap, &held, oversleep, until);
            // Any stretch of time holds what the schedule has for it and for what is tolerated, and a frame.
            for first in 0..left.len() {
                for frames in [2, 10, 100] {
                    let Some(last) = left.get(first + frames) else { continue };
                    let span = last - left[first];
                    prop_assert!(span + TOLERATED_NS + 201 >= frames as u64 * gap, "{frames} in {span}");
                }
            }
            // And what was not sent is what the time put off would have held.
            prop_assert_eq!(left.len() as u64, (until - off).div_ceil(gap), "put off by {}", off);
        }

        #[test]
        fn no_millisecond_ever_sees_more_than_half_the_link_or_twice_the_rate(
            gap in 300u64..500_000,
            length in 60u64..1514,
            link in 1_000_000u64..10_000_000_000,
            on in 100_000u64..10_000_000,
            off in 0u64..20_000_000,
        ) {
            let left = shared_core(&|n| (n * gap, length), link, (on, on + off), 60_000_000);
            let times: Vec<u64> = left.iter().map(|(at, _)| *at).collect();
            // Frames are whole: one more of each bound may show.
            let twice = 2 * WINDOW_NS / gap + 2;
            let half = link / 1_000 / wire_bits(length) + 2;
            prop_assert!(densest(&times) as u64 <= twice.max(half), "{} > {twice}, {half}", densest(&times));
            prop_assert!(left.iter().all(|(at, due)| at >= due));
        }

        #[test]
        fn bursts_of_a_capture_are_caught_up_within_both_bounds_together(
            offsets in proptest::collection::vec(0u64..40_000_000, 1..3_000),
            link in 100_000_000u64..10_000_000_000,
            on in 500_000u64..5_000_000,
            off in 0u64..20_000_000,
        ) {
            let mut offsets = offsets;
            offsets.sort_unstable();
            let schedule = |n: u64| (offsets.get(n as usize).copied().unwrap_or(u64::MAX), 60);
            let left = shared_core(&schedule, link, (on, on + off), u64::MAX);
            prop_assert_eq!(left.len(), offsets.len());
            // Where a burst of the schedule's own falls into the end of what is caught up, there are both.
            let twice = offsets.iter().enumerate().map(|(n, at)| {
                offsets[n..].iter().take_while(|due| **due - at < 2 * WINDOW_NS).count()
            });
            let both = twice.max().unwrap_or(0) as u64 + 2 + link / 1_000 / wire_bits(60);
            let times: Vec<u64> = left.iter().map(|(at, _)| *at).collect();
            prop_assert!(densest(&times) as u64 <= both, "{} > {both}", densest(&times));
        }

        #[test]
        fn no_millisecond_ever_sees_more_than_twice_the_rate(
            gap in 500u64..200_000,
            tick in 100u64..30_000,
            stall in 0u64..30_000_000,
            stall_at in 0u64..5_000_000,
        ) {
            let left = run(gap, tick, stall_at, stall, 60_000_000, 2.0);
            // Frames are whole: one more than the span of two milliseconds' worth of schedule may show.
            let allowed = 2 * WINDOW_NS / gap + 2;
            prop_assert!(densest(&left) as u64 <= allowed, "{} > {allowed}", densest(&left));
        }

        #[test]
        fn after_a_stall_the_schedule_is_met_again(
            gap in 500u64..5_000_000,
            oversleep in prop_oneof![Just(0u64), 0u64..60_000],
            stall in 0u64..20_000_000,
        ) {
            // As the worker does it: waits for the time it is told, and wakes a little late each time.
            let mut pacer = Pacer::new(2.0);
            let (mut now, mut due) = (0, 0);
            let mut stalled = false;
            let mut last = (0, 0);
            while now < 80_000_000 {
                let position = pacer.advance(now, due);
                if due > position {
                    let release = pacer.release_time(due);
                    prop_assert!(release > now, "{release} is not after {now}");
                    now = release + oversleep;
                    continue;
                }
                while due <= position {
                    last = (now, due);
                    due += gap;
                }
                now += 200;
                if !stalled && now >= 3_000_000 {
                    now += stall;
                    stalled = true;
                }
            }
            // 0.7 of the clock's pace is gained while catching up at 1.7: 20 ms are made good within 29.
            let (left, due) = last;
            prop_assert!(left - due <= oversleep + 201, "{left} is {} late", left - due);
        }
    }
}
