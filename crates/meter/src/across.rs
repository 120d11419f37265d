//! What several CPUs count of one stream, and what a stream of days comes to: figures stay exact. By the kernel's program, in
//! test runs. Needs root, as loading it does.

use crate::layout::{Stream, Totals};
use crate::loader::Loaded;
use crate::measurement::StreamStats;
use crate::options::Options;
use crate::runs::run;
use crate::twin::{STREAMS, cpus, kept, load, monotonic, pin};
use bpf::object::Needs;
use bpf::zeroed;
use wire::signature::{MAX_SEQUENCE, SEQUENCES, Signature, TIME_MASK};

fn frame(sequence: u64) -> Vec<u8> {
    stamped(sequence, 0)
}

fn stamped(sequence: u64, time: u64) -> Vec<u8> {
    [&[0; 42][..], &Signature { stream: 0, sequence, time }.to_bytes()].concat()
}

/// Of stream 0, on all CPUs, from sequence number `base` on.
fn sum(loaded: &Loaded, base: Option<u64>) -> StreamStats {
    let mut sum = Stream::default();
    let all = 0..loaded.streams.len() / STREAMS as usize;
    all.for_each(|copy| sum.add(&loaded.streams.get(copy * STREAMS as usize).expect("a record")));
    StreamStats::from_sum(0, &sum, None, base).expect("frames arrived")
}

fn own_or_shared(shared: bool) -> Options {
    Options { streams: STREAMS, share_records: Some(shared), ..Options::default() }
}

/// Frames of one CPU are lost, and as many come again to another: neither makes up for the other.
#[test]
fn copies_that_come_to_another_cpu_make_no_loss_good() {
    let [first, second, ..] = cpus()[..] else { panic!("this test wants two CPUs") };
    for needs in Needs::ALL {
        for shared in [false, true] {
            let loaded = load(&own_or_shared(shared), needs);
            for sequence in 0..1000u64 {
                // Every tenth is lost, and every tenth comes twice.
                if sequence % 10 != 3 {
                    pin(first);
                    run(&loaded.program, &frame(sequence), 1);
                }
                if sequence % 10 == 7 {
                    pin(second);
                    run(&loaded.program, &frame(sequence), 1);
                }
            }
            let told = sum(&loaded, Some(0));
            let exact = (told.frames, told.lost, told.duplicates, told.reordered, told.late);
            assert_eq!(exact, (1000, 100, 100, 0, 0), "{needs:?} {shared}");
            assert_eq!((told.distinct(), told.lost_of(1000)), (900, 100));
        }
    }
}

/// All frames twice at the same time: each is once the first and once the copy, whichever CPU is earlier.
#[test]
fn of_frames_that_come_to_two_cpus_at_once_one_is_the_copy() {
    const FRAMES: u64 = 20_000;
    let [first, second, ..] = cpus()[..] else { panic!("this test wants two CPUs") };
    for needs in Needs::ALL {
        let loaded = load(&own_or_shared(false), needs);
        std::thread::scope(|scope| {
            for cpu in [first, second] {
                let loaded = &loaded;
                scope.spawn(move || {
                    pin(cpu);
                    for sequence in 0..FRAMES {
                        run(&loaded.program, &frame(sequence), 1);
                    }
                });
            }
        });
        let told = sum(&loaded, Some(0));
        assert_eq!(
            (told.frames, told.duplicates, told.lost, told.late),
            (2 * FRAMES, FRAMES, 0, 0),
            "{needs:?}"
        );
    }
}

/// A CPU that sees its first frame of a stream behind the number where they come round, and one that was long without.
#[test]
fn a_cpu_that_comes_late_counts_in_the_same_round() {
    let [first, second, ..] = cpus()[..] else { panic!("this test wants two CPUs") };
    for needs in Needs::ALL {
        let loaded = load(&own_or_shared(false), needs);
        for (cpu, sequence) in
            [(first, MAX_SEQUENCE - 1), (second, 1), (first, MAX_SEQUENCE), (first, 0), (second, 0)]
        {
            pin(cpu);
            run(&loaded.program, &frame(sequence), 1);
        }
        let told = sum(&loaded, None);
        assert_eq!(
            (told.lost, told.duplicates, told.highest_sequence - told.lowest_sequence),
            (0, 1, 3),
            "{needs:?}"
        );
    }
}

/// What the kernel's program says of frames with these sequence numbers.
fn told_of(loaded: &Loaded, written: &[u64]) -> StreamStats {
    pin(cpus()[0]);
    for sequence in written {
        let frame =
            [&[0; 42][..], &Signature { stream: 0, sequence: *sequence, time: 0 }.to_bytes()].concat();
        run(&loaded.program, &frame, 1);
    }
    let (_, streams) = kept(loaded, cpus()[0]);
    StreamStats::from_sum(0, &streams[0], None, None).expect("frames arrived")
}

/// Losses, copies, and frames out of order, before, at and after the number where sequence numbers come round.
#[test]
fn loss_order_and_copies_are_exact_where_numbers_come_round() {
    let ahead = |by: i64| 0u64.wrapping_add_signed(by) & MAX_SEQUENCE;
    let arrived = (-60..60).filter(|number| ![-31, -1, 0, 7].contains(number)).map(ahead);
    // 5 and -10 come again, -31 and -1 late.
    let arrived: Vec<u64> = arrived.chain([5, -10, -31, -1].map(ahead)).collect();
    for needs in Needs::ALL {
        for shared in [false, true] {
            let options = Options { streams: STREAMS, share_records: Some(shared), ..Options::default() };
            let told = told_of(&load(&options, needs), &arrived);
            assert_eq!(
                (told.lost, told.duplicates, told.reordered, told.late),
                (2, 2, 2, 0),
                "{needs:?} {shared}"
            );
            assert_eq!((told.frames, told.highest_sequence), (120, SEQUENCES + 59), "{needs:?} {shared}");
        }
    }
}

#[test]
fn the_kernels_sums_of_latencies_have_more_than_64_bits() {
    const RUNS: u32 = 600_000;
    const LATENCY: u64 = 1 << 46;
    pin(cpus()[0]);
    for needs in Needs::ALL {
        let loaded = load(&Options { streams: STREAMS, ..Options::default() }, needs);
        let time = monotonic().wrapping_sub(LATENCY) & TIME_MASK;
        let frame = [&[0; 42][..], &Signature { stream: 0, sequence: 1, time }.to_bytes()].concat();
        run(&loaded.program, &frame, RUNS);
        let (totals, streams) = kept(&loaded, cpus()[0]);
        let least = u128::from(RUNS) * u128::from(LATENCY);
        for latency in [totals.latency, streams[0].latency] {
            let sum = latency.sum.get();
            assert!(
                sum >= least && sum < least + u128::from(RUNS) * u128::from(latency.max - LATENCY + 1),
                "{needs:?}: {sum}"
            );
        }
    }
}

/// Two CPUs at the same records: what each counts must not be lost to the other.
#[test]
fn cpus_that_share_a_streams_record_count_every_frame() {
    Needs::ALL.into_iter().for_each(both_count_every_frame);
}

fn both_count_every_frame(needs: Needs) {
    const RUNS: u32 = 300_000;
    let [first, second, ..] = cpus()[..] else { panic!("this test wants two CPUs") };
    let shared = Options { streams: STREAMS, share_records: Some(true), ..Options::default() };
    let loaded = load(&shared, needs);
    let frame = Signature { stream: 1, sequence: 5, time: 1 }.to_bytes();
    std::thread::scope(|scope| {
        for cpu in [first, second] {
            let (loaded, frame) = (&loaded, &frame);
            scope.spawn(move || {
                pin(cpu);
                run(&loaded.program, frame, RUNS);
            });
        }
    });
    let mut sum = zeroed::<Totals>();
    [first, second].iter().for_each(|cpu| sum.add(&kept(&loaded, *cpu).0));
    let stream = loaded.streams.get(1).expect("a stream");
    let all = 2 * RUNS as u64;
    assert_eq!((sum.signed_frames, stream.busy), (all, 0));
    // A CPU that was taken away from its thread for long, with a record in hand, makes the other give up.
    assert_eq!(stream.frames + sum.contended, all);
    assert_eq!((stream.bytes, stream.duplicates), (stream.frames * 18, stream.frames - 1));
    assert_eq!(stream.latency.count + stream.latency.negative, stream.frames);
    assert!(sum.contended < all / 100, "{} gave up", sum.contended);
}

/// A sender that is run again: what came of its first run only is not out of order, and its loss is not known.
#[test]
fn a_sender_that_began_anew_is_told_from_copies() {
    let lost = |run: u64, number: &u64| (number * 7 + run * 3).is_multiple_of(50);
    pin(cpus()[0]);
    for needs in Needs::ALL {
        for shared in [false, true] {
            // With stamps and without, and copies in a row by a device.
            for (stamps, again) in [(true, true), (true, false), (false, true), (false, false)] {
                let loaded = load(&own_or_shared(shared), needs);
                let send = |which: u64, left: u64, numbers: std::ops::Range<u64>| {
                    for number in numbers.filter(|number| !lost(which, number)) {
                        let time = if stamps { 1000 + left * 100_000 + number } else { 0 };
                        run(&loaded.program, &stamped(number, time), 1);
                    }
                };
                send(0, 0, 100..4000);
                // The device holds back no more than it may.
                let numbers = if again { 0..3000 } else { 3500..4000 };
                send(1, u64::from(again), numbers);
                let told = sum(&loaded, None);
                assert_eq!(told.renewed > 0, again, "{needs:?} {shared} {stamps}: {told:?}");
                assert!(told.unsure >= told.renewed && (stamps || told.renewed > 1000 || !again));
                if stamps {
                    assert_eq!(told.lowest_sequence, 101, "{needs:?} {shared} {again}");
                }
            }
        }
    }
}

/// One damaged number is no number of the stream; a sender that is there is.
#[test]
fn a_number_far_ahead_spoils_none_that_follow() {
    pin(cpus()[0]);
    for needs in Needs::ALL {
        for shared in [false, true] {
            let loaded = load(&own_or_shared(shared), needs);
            let far = 1 << 36;
            for number in
                (0..1000).chain([far + 1000]).chain(1001..2000).chain([far + 2000]).chain(2001..3000)
            {
                run(&loaded.program, &frame(number), 1);
            }
            let told = sum(&loaded, Some(0));
            let figures = (told.lost, told.late, told.reordered, told.duplicates, told.highest_sequence);
            assert_eq!(figures, (2, 0, 0, 0, 2999), "{needs:?} {shared}");
            assert_eq!(kept(&loaded, cpus()[0]).0.astray, 2, "{needs:?} {shared}");
            for number in far..far + 1000 {
                run(&loaded.program, &frame(number), 1);
            }
            let told = sum(&loaded, Some(0));
            assert_eq!(
                (told.highest_sequence, told.frames),
                (far + 999, 2998 + 1000 - 15),
                "{needs:?} {shared}"
            );
        }
    }
}

/// A CPU whose last frame was half a round ago.
#[test]
fn a_cpu_that_was_long_without_counts_in_the_round_of_the_others() {
    const STEP: u64 = SEQUENCES / 640;
    let [first, second, ..] = cpus()[..] else { panic!("this test wants two CPUs") };
    for needs in Needs::ALL {
        let loaded = load(&own_or_shared(false), needs);
        let send = |cpu, number: u64| {
            pin(cpu);
            run(&loaded.program, &frame(number & MAX_SEQUENCE), 1);
        };
        send(second, 5_000);
        // Steps that the other takes as real ones, with a number of the ring's size in each.
        for step in 1..=700u64 {
            send(first, (step * STEP) & !0xffff);
            send(first, ((step * STEP) & !0xffff) + 1);
        }
        let highest = (700 * STEP) & !0xffff;
        send(second, highest + 2);
        assert_eq!(sum(&loaded, None).highest_sequence, highest + 2, "{needs:?}");
    }
}
