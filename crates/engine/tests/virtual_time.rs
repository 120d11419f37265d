//! Rates over days of virtual time: no clock is read, so that five billion frames take a moment.

use netdyno_engine::pacer::Pacer;
use traffic::Schedule;
use traffic::schedule::{LAYER1_OVERHEAD, Position, Speed};

const FRAMES: u64 = 5_000_000_000;
const SECOND: u64 = 1_000_000_000;

#[test]
fn packets_a_second_are_exact_at_frame_five_billion() {
    for (frames, per_ns) in [
        (1_000_000, SECOND),
        (1_488_095, SECOND),
        (14_880_952, SECOND),
        (148_809_523, SECOND),
        (3, SECOND),
        (1_488_095_238_095, 1_000_000 * SECOND),
        (999_999_937, 7 * SECOND),
    ] {
        let schedule = Schedule::Frames { frames, per_ns };
        let mut cursor = schedule.cursor();
        for n in [FRAMES, FRAMES + 1, 10 * FRAMES] {
            cursor.seek(n, |_| 60);
            let exact = u128::from(n) * u128::from(per_ns) / u128::from(frames);
            assert_eq!(u128::from(cursor.due()), exact, "frame {n} of {frames} in {per_ns} ns");
            // As many frames are due by then, and one fewer the moment before.
            assert_eq!(schedule.frames_due_by(cursor.due() - 1), Some(n), "{frames} in {per_ns} ns");
        }
        // Walking on from there, as a run does, adds no error.
        for n in 10 * FRAMES..10 * FRAMES + 100_000 {
            assert_eq!(u128::from(cursor.due()), u128::from(n) * u128::from(per_ns) / u128::from(frames));
            cursor.advance(60);
        }
    }
}

#[test]
fn bits_a_second_are_exact_at_frame_five_billion() {
    for (bits_per_second, overhead_bytes) in
        [(999_999_937, 0), (7_000_000_000, 0), (10_000_000_000, LAYER1_OVERHEAD), (20_500_000, 0)]
    {
        let schedule = Schedule::Bits { bits_per_second, overhead_bytes };
        let mut position = Position::default();
        let mut bits = 0u128;
        // Where the schedule stands depends on the bits before it alone: those of five billion frames of 1,000 bytes go
        // by as a few enormous ones.
        let mut left = u128::from(FRAMES) * 1000;
        while left > 0 {
            let length = u32::try_from(left).unwrap_or(u32::MAX - overhead_bytes);
            position.advance(&schedule, length);
            bits += u128::from(length + overhead_bytes) * 8;
            left -= u128::from(length);
        }
        for n in 0..200_000u32 {
            let exact = bits * u128::from(SECOND) / u128::from(bits_per_second);
            assert_eq!(u128::from(position.due), exact, "{bits_per_second} bit/s, frame {n} beyond");
            let length = [60, 594, 1514, 61][(n % 4) as usize];
            position.advance(&schedule, length);
            bits += u128::from(length + overhead_bytes) * 8;
        }
    }
}

/// A day: an hour of traffic, silence until noon, a minute, silence to the end.
fn a_day() -> Vec<u64> {
    let hour = 3600 * SECOND;
    let busy = (0..3_600_000u64).map(|n| n * 1_000_000 + n % 7);
    let noon = (0..60_000u64).map(|n| 12 * hour + n * 1_000_003);
    busy.chain(noon).chain([24 * hour - 1]).collect()
}

#[test]
fn a_day_with_long_silences_plays_a_thousand_times_as_fast_without_drift() {
    let offsets = a_day();
    let (frames, day) = (offsets.len() as u64, 24 * 3600 * SECOND);
    for (numerator, denominator) in [(1000, 1), (1, 1), (333, 1000), (1_000_003, 1000)] {
        let speed = Speed { numerator, denominator };
        let schedule = Schedule::Times { offsets: offsets.as_slice().into(), period_ns: day, speed };
        let exact = |n: u64| {
            let at = u128::from(n / frames) * u128::from(day) + u128::from(offsets[(n % frames) as usize]);
            at * u128::from(denominator) / u128::from(numerator)
        };
        let mut cursor = schedule.cursor();
        // Every frame of the day, and the day after five billion frames of days like it, as far as time goes.
        let mut worst = 0;
        for n in 0..frames {
            worst = worst.max(u128::from(cursor.due()).abs_diff(exact(n)));
            cursor.advance(60);
        }
        let far = FRAMES / frames * frames;
        cursor.seek(far, |_| 60);
        for n in far..far + frames {
            worst = worst.max(u128::from(cursor.due()).abs_diff(exact(n)));
            cursor.advance(60);
        }
        assert_eq!(worst, 0, "{numerator}/{denominator}");
    }
}

/// A run under a clock that jumps: the thread that sends looks at it every `tick`, is late by up to 60 us, and stands
/// still for up to 20 ms now and then. Returns how many frames left, and the longest time that any was late outside of
/// 40 ms after each such stall.
fn soak(frames: u64, per_ns: u64, tick: u64, until: u64) -> (u64, u64) {
    let schedule = Schedule::Frames { frames, per_ns };
    let due_of = |n: u64| (u128::from(n) * u128::from(per_ns) / u128::from(frames)) as u64;
    let mut pacer = Pacer::new(2.0);
    let (mut now, mut left, mut late) = (0u64, 0u64, 0u64);
    let (mut random, mut recovered) = (1u64, 0u64);
    loop {
        let position = pacer.advance(now, due_of(left));
        assert!(position <= now, "frames left before their time at {now}");
        let due = schedule.frames_due_by(position).expect("a closed form");
        if now >= recovered && due > left {
            late = late.max(now - due_of(left));
        }
        left = left.max(due);
        if now >= until {
            return (left, late);
        }
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (late_by, chance) = (random >> 40 & 0xffff, random >> 20 & 0xffff);
        now += tick + late_by.min(60_000);
        if chance < 8 {
            now += random % 20_000_000;
            // One soon after another is made good after it.
            recovered = recovered.max(now) + 40_000_000;
        }
    }
}

#[test]
fn a_run_with_stalls_keeps_its_rate_over_five_billion_frames() {
    // 336 seconds, and 33. A batch takes 50 us.
    for (frames, per_ns) in [(14_880_952, SECOND), (150_000_007, SECOND)] {
        let tick = 50_000;
        let until = (u128::from(FRAMES) * u128::from(per_ns) / u128::from(frames)) as u64 + SECOND / 10;
        let (left, late) = soak(frames, per_ns, tick, until);
        assert!(left >= FRAMES, "{left} of {frames}/s");
        let wanted = u128::from(until) * u128::from(frames) / u128::from(per_ns);
        // All that was due has left, but for what the last tick or a stall at the very end held up.
        let behind = wanted.saturating_sub(u128::from(left)) * u128::from(per_ns) / u128::from(frames);
        assert!(behind <= 30_000_000, "{behind} ns behind in the end, {frames}/s");
        assert!(late <= tick + 70_000, "a frame was {late} ns late, {frames}/s");
    }
}
