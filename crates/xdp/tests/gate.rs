//! When the kernel's executor lets frames go, by BPF_PROG_TEST_RUN without the live flag: each run is one look at the clock,
//! and the words that it shares with its engine say what it saw. Needs root.

use bpf::{Ran, Run};
use engine::CatchUp;
use engine::clock::Clock;
use engine::clock::now;
use engine::pacer;
use netdyno_xdp as xdp;
use traffic::expr::{Options as Shape, compile as expression};
use traffic::{Program, Schedule};
use xdp::compile::{Compiled, Exit, Options, Pages, compile};
use xdp::layout;

const XDP_TX: u32 = 3;
const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

/// Frames so far apart, to be caught up so.
fn compiled(catch_up: CatchUp, apart_ns: u64) -> Compiled {
    let shape = Shape { size: None, seed: 1, signature: None, name: String::new() };
    let program: Program = expression("ipv4/udp", &shape).expect("an expression");
    let program = program.with_schedule(Schedule::Frames { frames: 1, per_ns: apart_ns });
    let options = Options {
        exit: Exit::Back,
        pages: Pages::Kept,
        pacing: engine::Pacing { catch_up, spin: false },
        stamps: Clock::Monotonic,
        together: true,
    };
    let compiled = compile(&program, &options).unwrap_or_else(|error| panic!("{error}"));
    compiled.state.store(layout::LEFT as usize, u64::MAX);
    compiled.state.store(layout::DURATION as usize, 60 * SECOND);
    compiled
}

fn word(compiled: &Compiled, at: u32) -> u64 {
    compiled.state.load(at as usize)
}

/// When the next frame is due, by the schedule.
fn due(compiled: &Compiled) -> u64 {
    word(compiled, layout::LANES + layout::lane::DUE)
}

/// Runs it once at `elapsed` after the start, or as soon after as it comes to that. Gives whether a frame left, and by when
/// that was at most.
fn at(compiled: &Compiled, elapsed: u64) -> (bool, u64) {
    let start = now().checked_sub(elapsed).expect("a host that is up for longer");
    compiled.state.store(layout::START as usize, start);
    let Ran { verdict, .. } = compiled.program.run(Run::on(&compiled.frame)).expect("the kernel runs it");
    (verdict == XDP_TX, now() - start)
}

/// Runs it half a millisecond before the next frame's time. None may leave; if it was held up for as long, one may.
fn too_early(compiled: &Compiled) {
    let time = word(compiled, layout::PUT_OFF) + due(compiled);
    let (sent, by) = at(compiled, time - MS / 2);
    assert!(!sent || by >= time, "{by} is before {time}");
}

#[test]
fn what_is_late_is_put_off_by_as_much_and_never_caught_up() {
    let compiled = compiled(CatchUp::Never, MS);
    assert!(at(&compiled, 0).0);
    too_early(&compiled);
    for late in [50 * MS, 2 * MS, 700_000, SECOND] {
        let words =
            || [layout::PUT_OFF, layout::STALLS, layout::LONGEST_STALL, layout::DURATION, layout::SENT];
        let [put_off, stalls, longest, ends, frames] = words().map(|at| word(&compiled, at));
        let due = due(&compiled);
        // The schedule counts from as much later as it was put off by.
        let (sent, by) = at(&compiled, put_off + due + late);
        assert!(sent, "{late}");
        let rise = word(&compiled, layout::PUT_OFF) - put_off;
        // It looked at the clock between our two looks.
        let most = by - put_off - due;
        assert!((late..=most).contains(&rise), "{rise}: {late} to {most}");
        assert_eq!(pacer::put_off(due + rise, due), rise);
        // The end stays where it is by the clock.
        let wanted = [put_off + rise, stalls + 1, longest.max(rise), ends - rise, frames + 1];
        assert_eq!(words().map(|at| word(&compiled, at)), wanted);
        assert_eq!(word(&compiled, layout::BEHIND), 0);
        // The next one is not due before its distance has passed again: nothing is sent closer together.
        too_early(&compiled);
    }
    // A stall over the end leaves no time for anything.
    let frames = word(&compiled, layout::SENT);
    for _ in 0..2 {
        let late = word(&compiled, layout::PUT_OFF) + due(&compiled) + 61 * SECOND;
        assert!(!at(&compiled, late).0);
    }
    assert_eq!([layout::SENT, layout::DONE].map(|at| word(&compiled, at)), [frames, 1]);
}

#[test]
fn what_is_a_little_late_is_caught_up_and_with_catching_up_nothing_is_put_off() {
    // Whoever looks at it may have been held up: then it is tried again.
    let in_time = (0..100).any(|_| {
        let compiled = compiled(CatchUp::Never, MS);
        assert!(at(&compiled, 0).0);
        let put_off = word(&compiled, layout::PUT_OFF);
        let time = put_off + due(&compiled);
        let (sent, by) = at(&compiled, time + pacer::TOLERATED_NS / 2);
        let tolerated = by <= time + pacer::TOLERATED_NS;
        assert!(sent);
        assert!(!tolerated || word(&compiled, layout::PUT_OFF) == put_off);
        tolerated
    });
    assert!(in_time, "held up for 200 us in 100 of 100 runs of one BPF program");
    let compiled = compiled(CatchUp::Times(2.0), MS);
    assert!(at(&compiled, 0).0 && at(&compiled, 500 * MS).0);
    // 499 frames are overdue. What may leave at once is a tenth of two milliseconds more than was due first.
    assert_eq!([layout::PUT_OFF, layout::BEHIND].map(|at| word(&compiled, at)), [0, 1]);
    assert!(word(&compiled, layout::LONGEST_STALL) >= 499 * MS);
    assert_eq!(word(&compiled, layout::DURATION), 60 * SECOND);
}

#[test]
fn what_is_overdue_leaves_in_bursts_as_the_link_allows() {
    // Seven frames at once, of which each takes 16 us: several times as long as a look at the clock does.
    const LINK: u64 = 50_000_000;
    let (ns_per_bit, burst_bits) = pacer::budget_of(LINK);
    let held = 500 * MS;
    let bursts = (0..100).map(|_| {
        let compiled = compiled(CatchUp::Link(LINK), MS);
        assert!(at(&compiled, 0).0);
        // 499 frames are overdue. Time never goes back: where a run is held up, the link has carried more by the next one.
        let (mut elapsed, mut sent) = (held, 0);
        loop {
            let (left, by) = at(&compiled, elapsed);
            elapsed = by;
            if !left {
                return (compiled, elapsed, sent);
            }
            sent += 1;
        }
    });
    // Whoever looks at it may be held up for as long as all of them take: then it is tried again.
    let (compiled, mut elapsed, sent) =
        bursts.into_iter().find(|(_, by, _)| by - held < 5 * MS).expect("not held up for 5 ms in 1 of 100");
    let bits = pacer::wire_bits(compiled.frame.len() as u64);
    let (burst, took) = (burst_bits / bits, (bits as f64 * ns_per_bit).ceil() as u64);
    let passed = elapsed - held;
    assert!((burst..=burst + 2 + passed / took).contains(&sent), "{sent} in {passed} ns");
    let words = [layout::STALLS, layout::BEHIND, layout::PUT_OFF].map(|at| word(&compiled, at));
    assert_eq!(words, [1, 1, 0]);
    assert!(word(&compiled, layout::LONGEST_STALL) >= 499 * MS);
    // As long nothing as they take at that rate, then the next.
    let free_at = word(&compiled, layout::FREE_AT);
    assert!(free_at >= held + burst * took, "{free_at}");
    let begin = elapsed;
    while due(&compiled) <= elapsed {
        if !at(&compiled, elapsed).0 {
            elapsed += 20_000;
        }
    }
    // All are sent long before twice the rate would have been met, and none of those to come leaves early.
    assert!(elapsed < begin + 50 * MS, "{elapsed}");
    assert!(word(&compiled, layout::CATCH_UP) > 400);
    too_early(&compiled);
    assert_eq!(word(&compiled, layout::BEHIND), 0);
}

/// Nanoseconds that a run takes in which the next frame is a second away: of a few measurements the least.
fn cost(linger: u64, stay: u64) -> u32 {
    let compiled = compiled(CatchUp::Times(2.0), SECOND);
    assert!(at(&compiled, 0).0);
    assert_eq!(due(&compiled), SECOND);
    compiled.state.store(layout::LINGER as usize, linger);
    compiled.state.store(layout::STAY as usize, stay);
    let runs = (0..9).map(|_| {
        compiled.state.store(layout::START as usize, now());
        let run = Run { repeat: 200, ..Run::on(&compiled.frame) };
        compiled.program.run(run).expect("the kernel runs it").cost_ns
    });
    runs.min().expect("some")
}

#[test]
fn a_run_lingers_only_for_a_frame_that_comes_before_the_calls_end_and_soon_enough() {
    // One look at the clock, or as many as a run has.
    let lingers = cost(u64::MAX, u64::MAX);
    for (linger, stay, waits) in [
        (SECOND + 1, u64::MAX, true),
        (SECOND, u64::MAX, false),
        (0, u64::MAX, false),
        (u64::MAX, 2 * SECOND, true),
        (u64::MAX, SECOND / 2, false),
        (u64::MAX, 0, false),
    ] {
        let cost = cost(linger, stay);
        assert_eq!(2 * cost > lingers, waits, "{linger} {stay}: {cost} of {lingers} ns");
    }
}
