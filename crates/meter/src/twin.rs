//! Holds the kernel's program and its Rust twin equal: both see the same frames (the program by a test run, without
//! any interface) and must keep the same numbers, bit for bit. Needs root, as loading the program does.

use crate::layout::{Stream, Totals};
use crate::loader::{self, Loaded};
use crate::measurement::StreamStats;
use crate::meter::{Action, Options};
use crate::tracker::Tracker;
use proptest::prelude::*;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use std::collections::HashSet;
use wire::signature::{MAX_SEQUENCE, Signature, TIME_MASK};

/// Streams that the tables of these tests have room for; one more is used, to find none.
const STREAMS: u32 = 3;

/// How a frame's sequence number follows from the ones before.
#[derive(Debug, Clone, Copy)]
enum Step {
    Next,
    Skip(u64),
    Back(u64),
    Anywhere(u64),
}

/// When a frame says it was sent.
#[derive(Debug, Clone, Copy)]
enum Stamp {
    Ago(u64),
    Ahead(u64),
    /// So that it seems to have been under way for about this: the time a test run takes is taken out.
    About(u64),
    Never,
}

#[derive(Debug, Clone)]
struct Shape {
    signed: bool,
    stream: u32,
    step: Step,
    stamp: Stamp,
    length: usize,
    /// Picks the CPU that the frame arrives on.
    queue: usize,
}

fn shapes() -> impl Strategy<Value = Vec<Shape>> {
    let step = prop_oneof![
        8 => Just(Step::Next),
        3 => (1u64..70).prop_map(Step::Skip),
        1 => (70u64..3000).prop_map(Step::Skip),
        3 => (0u64..70).prop_map(Step::Back),
        2 => (70u64..2000).prop_map(Step::Back),
        1 => (0..=MAX_SEQUENCE).prop_map(Step::Anywhere),
    ];
    let stamp = prop_oneof![
        6 => (0u32..39).prop_flat_map(|bits| 0..(1u64 << bits)).prop_map(Stamp::Ago),
        1 => (1u64..1 << 40).prop_map(Stamp::Ahead),
        2 => (0u64..300).prop_map(Stamp::About),
        1 => Just(Stamp::Never),
    ];
    // The kernel runs nothing shorter than an Ethernet header; the edges of the size classes come often.
    let edges = prop::sample::select(vec![
        14usize, 17, 18, 31, 32, 59, 60, 61, 123, 124, 251, 252, 507, 508, 1019, 1020, 1514, 1515,
    ]);
    let length = prop_oneof![2 => edges, 2 => 14usize..1600, 1 => 1600usize..9200];
    let shape = (prop::bool::weighted(0.85), 0..=STREAMS, step, stamp, length, 0usize..64);
    let shape = shape.prop_map(|(signed, stream, step, stamp, length, queue)| Shape {
        signed,
        stream,
        step,
        stamp,
        length,
        queue,
    });
    prop::collection::vec(shape, 1..120)
}

fn monotonic() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The CPUs this process may run on.
fn cpus() -> Vec<usize> {
    let set = sched_getaffinity(None).expect("the CPUs of this process");
    (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect()
}

fn pin(cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).expect("a CPU of this process");
}

/// The frames' bytes, from the shapes and what was sent before.
#[derive(Default)]
struct Maker {
    next: [u64; STREAMS as usize + 1],
    made: u64,
    /// From the last frame's making to its arrival.
    delay: u64,
}

impl Maker {
    fn frame(&mut self, shape: &Shape) -> Vec<u8> {
        let mut frame: Vec<u8> = (0..shape.length).map(|at| (at * 31) as u8).collect();
        if !shape.signed || shape.length < wire::signature::LEN {
            return frame;
        }
        let next = &mut self.next[shape.stream as usize];
        let sequence = match shape.step {
            Step::Next => *next,
            Step::Skip(by) => (*next + by) & MAX_SEQUENCE,
            Step::Back(by) => next.saturating_sub(by),
            Step::Anywhere(sequence) => sequence,
        };
        *next = (*next).max(sequence + 1) & MAX_SEQUENCE;
        let now = monotonic();
        self.made = now;
        let time = match shape.stamp {
            Stamp::Ago(by) => now.wrapping_sub(by) & TIME_MASK,
            Stamp::Ahead(by) => (now + by) & TIME_MASK,
            Stamp::About(by) => (now + self.delay - by) & TIME_MASK,
            Stamp::Never => 0,
        };
        let at = shape.length - wire::signature::LEN;
        frame[at..].copy_from_slice(&Signature { stream: shape.stream, sequence, time }.to_bytes());
        frame
    }
}

fn load(options: &Options, multi_buffer: bool) -> Loaded {
    loader::load_with(options, multi_buffer)
        .expect("the meter's program loads (as root, Linux 5.18 or newer)")
}

/// What the kernel's program keeps of `cpu`.
fn kept(loaded: &Loaded, cpu: usize) -> (Totals, Vec<Stream>) {
    let first = cpu * STREAMS as usize;
    let streams = (first..first + STREAMS as usize).map(|slot| loaded.streams.get(slot).expect("a stream"));
    (loaded.totals.get(cpu).expect("a CPU"), streams.collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn the_kernel_and_its_twin_keep_the_same_numbers(
        shapes in shapes(),
        latency in any::<bool>(),
        drop in any::<bool>(),
        multi_buffer in any::<bool>(),
    ) {
        let action = if drop { Action::Drop } else { Action::Pass };
        let options = Options { action, streams: STREAMS, latency, arrivals: shapes.len(), ..Options::default() };
        let (cpus, mut maker) = (cpus(), Maker::default());
        // In a thread of its own, since it moves from CPU to CPU.
        let (loaded, twins) = std::thread::scope(|scope| scope.spawn(|| {
            let loaded = load(&options, multi_buffer);
            let mut twins: Vec<_> = cpus.iter().map(|_| Tracker::new(STREAMS, latency, shapes.len())).collect();
            for (number, shape) in shapes.iter().enumerate() {
                // A frame in one buffer must fit a page, with headroom.
                let shape = Shape { length: if multi_buffer { shape.length } else { shape.length.min(3000) }, ..shape.clone() };
                let frame = maker.frame(&shape);
                let queue = shape.queue % cpus.len();
                pin(cpus[queue]);
                assert_eq!(loaded.program.run(&frame, 1).0, if drop { 1 } else { 2 });
                // The program's own reading of the clock is what its twin is told.
                let now = loaded.arrivals.get(number + 1).expect("an arrival");
                assert!(now > 0, "frame {number} left no arrival");
                maker.delay = now.saturating_sub(maker.made).clamp(300, 1_000_000);
                twins[queue].frame(&frame, frame.len() as u64, now);
            }
            (loaded, twins)
        }).join()).expect("no panic in the thread that runs the program");
        for (cpu, twin) in cpus.iter().zip(&twins) {
            let (totals, streams) = kept(&loaded, *cpu);
            prop_assert_eq!(&totals, &*twin.totals);
            prop_assert_eq!(&streams, &twin.streams);
            let own = loaded.with_histogram as usize;
            prop_assert_eq!(own, twin.histograms.len());
            for (stream, buckets) in twin.histograms.iter().enumerate() {
                let kept = loaded.histograms.get(cpu * own + stream);
                prop_assert_eq!(kept.as_ref(), Some(buckets));
            }
        }
        prop_assert_eq!(loaded.arrivals.get(0), Some(shapes.len() as u64));
    }

    #[test]
    fn loss_is_exact_however_a_stream_is_spread_over_the_cpus(
        fates in prop::collection::vec((0u32..8, 0usize..4, 0i64..400), 1..1500),
    ) {
        // Fate 0: lost; 1: arrives twice; else once. Each on a CPU of its own, up to 400 places late.
        let mut order: Vec<(i64, u64, usize)> = Vec::new();
        for (sequence, (fate, cpu, delay)) in fates.iter().enumerate() {
            let copies = match fate { 0 => 0, 1 => 2, _ => 1 };
            order.extend((0..copies).map(|copy| (sequence as i64 + delay * copy.max(1), sequence as u64, *cpu)));
        }
        order.sort();
        let arrived: HashSet<u64> = order.iter().map(|(_, sequence, _)| *sequence).collect();
        let mut shares: Vec<_> = (0..4).map(|_| Tracker::new(1, false, 0)).collect();
        for (_, sequence, cpu) in &order {
            shares[*cpu].frame(&Signature { stream: 0, sequence: *sequence, time: 0 }.to_bytes(), 60, 1);
        }
        let mut sum = Stream::default();
        shares.iter().for_each(|share| sum.add(&share.streams[0]));
        let Some(stats) = StreamStats::from_sum(0, &sum, None, Some(0)) else {
            prop_assert!(arrived.is_empty());
            return Ok(());
        };
        let highest = arrived.iter().max().copied().unwrap_or_default();
        prop_assert_eq!(stats.late, 0);
        prop_assert_eq!(stats.highest_sequence, highest);
        prop_assert_eq!(stats.duplicates, (order.len() - arrived.len()) as u64);
        prop_assert_eq!(stats.lost, highest + 1 - arrived.len() as u64);
        prop_assert_eq!(stats.lost_of(fates.len() as u64), fates.iter().filter(|fate| fate.0 == 0).count() as u64);
    }
}

/// Lets one stream with these sequence numbers arrive on one CPU.
fn stats_of(sequences: impl IntoIterator<Item = u64>, base: Option<u64>) -> StreamStats {
    let mut tracker = Tracker::new(1, false, 0);
    for sequence in sequences {
        tracker.frame(&Signature { stream: 0, sequence, time: 0 }.to_bytes(), 60, 1);
    }
    StreamStats::from_sum(0, &tracker.streams[0], None, base).expect("frames arrived")
}

#[test]
fn a_frame_961_behind_is_remembered_and_one_1024_behind_is_late() {
    let remembered = stats_of([0, 1, 962, 1], Some(0));
    assert_eq!((remembered.duplicates, remembered.late, remembered.lost), (1, 0, 960));
    let late = stats_of((0..1).chain(2..1026).chain([1]), Some(0));
    assert_eq!((late.duplicates, late.reordered, late.late, late.lost), (0, 1, 1, 0));
}

#[test]
fn a_meter_that_joins_in_midstream_counts_loss_from_the_lowest_it_saw() {
    assert_eq!(stats_of([500, 502, 499, 503], Some(0)).lost, 500);
    assert_eq!(stats_of([500, 502, 499, 503], None).lost, 1);
}

#[test]
fn the_cheap_mode_tells_the_time_within_a_tick_and_measures_no_latency() {
    let options = Options { streams: STREAMS, latency: false, ..Options::default() };
    let loaded = load(&options, true);
    let frame = Signature { stream: 0, sequence: 0, time: 1 }.to_bytes();
    pin(cpus()[0]);
    loaded.program.run(&frame, 1);
    let (totals, streams) = kept(&loaded, cpus()[0]);
    let behind = monotonic() - totals.first_ns;
    assert!(behind < 100_000_000, "the first frame was {behind} ns ago");
    assert_eq!((totals.signed_frames, totals.latency.count, streams[0].frames), (1, 0, 1));
    assert_eq!(loaded.arrivals.len(), 1);
}

#[test]
fn arrivals_beyond_the_room_are_counted_and_not_written() {
    let loaded = load(&Options { arrivals: 2, ..Options::default() }, true);
    loaded.program.run(&[0; 60], 5);
    assert_eq!((loaded.arrivals.get(0), loaded.arrivals.len()), (Some(5), 3));
    assert!(loaded.arrivals.get(1) > Some(0) && loaded.arrivals.get(2) >= loaded.arrivals.get(1));
}

/// Keeps the cost in view (`cargo test -p netdyno-meter cost -- --nocapture`); the bound only catches a blunder.
#[test]
fn a_frame_costs_well_below_a_microsecond() {
    pin(cpus()[0]);
    let signed = |stream| {
        let mut frame = vec![0; 42];
        frame.extend(Signature { stream, sequence: 5, time: monotonic() & TIME_MASK }.to_bytes());
        frame
    };
    let cheap = Options { latency: false, ..Options::default() };
    let exact = Options { latency: true, ..Options::default() };
    let arrivals = Options { arrivals: 4 << 20, ..exact.clone() };
    let cases = [
        ("unsigned, counting only", &cheap, vec![0; 60]),
        ("unsigned, exact clock", &exact, vec![0; 60]),
        ("signed, no latency", &cheap, signed(0)),
        ("signed, latency", &exact, signed(0)),
        ("signed, latency, arrivals", &arrivals, signed(0)),
    ];
    for (what, options, frame) in cases {
        let loaded = load(options, true);
        let mut costs: Vec<u32> = (0..5).map(|_| loaded.program.run(&frame, 1_000_000).1).collect();
        costs.sort();
        println!("{what}: {} ns a frame (of five runs: {costs:?})", costs[2]);
        assert!(costs[0] < 1000, "{what}: {costs:?} ns");
    }
}

/// An error quotes the frame it is about, signature and all.
#[test]
fn an_icmp_error_is_no_signed_frame_where_that_was_asked_for() {
    let signature = Signature { stream: 0, sequence: 7, time: 1 }.to_bytes();
    let frame = |tags: &[u8], kind: [u8; 2], ip: &[u8], icmp: u8| {
        let mut frame = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1].to_vec();
        frame.extend(tags.iter().copied().chain(kind).chain(ip.iter().copied()));
        frame.extend([icmp, 0, 0, 0, 0, 0, 0, 0]);
        frame.extend(signature);
        frame
    };
    let v4 = |words: u8, protocol: u8| {
        let mut ip = vec![0; usize::from(words) * 4];
        (ip[0], ip[9]) = (0x40 | words, protocol);
        ip
    };
    let v6 = |next: u8| {
        let mut ip = vec![0; 40];
        (ip[0], ip[6]) = (0x60, next);
        ip
    };
    let tag = [0x81, 0x00, 0, 7];
    let cases = [
        (frame(&[], [8, 0], &v4(5, 1), 3), true),
        (frame(&tag, [8, 0], &v4(7, 1), 11), true),
        (frame(&[], [8, 0], &v4(5, 1), 0), false),
        (frame(&[], [8, 0], &v4(5, 17), 3), false),
        (frame(&[], [0x86, 0xdd], &v6(58), 1), true),
        (frame(&[tag, tag].concat(), [0x86, 0xdd], &v6(58), 127), true),
        (frame(&[], [0x86, 0xdd], &v6(58), 129), false),
        (frame(&[], [0x86, 0xdd], &v6(17), 1), false),
        (frame(&[], [0x88, 0xb5], &v4(5, 1), 3), false),
    ];
    pin(cpus()[0]);
    for ignore in [false, true] {
        let options = Options { streams: STREAMS, ignore_icmp_errors: ignore, ..Options::default() };
        for (number, (frame, error)) in cases.iter().enumerate() {
            let loaded = load(&options, true);
            loaded.program.run(frame, 1);
            let mut tracker = Tracker::new(STREAMS, true, 0);
            tracker.ignore_icmp_errors = ignore;
            tracker.frame(frame, frame.len() as u64, 1);
            let wanted = u64::from(!(ignore && *error));
            let counted = (kept(&loaded, cpus()[0]).0.signed_frames, tracker.totals.signed_frames);
            assert_eq!(counted, (wanted, wanted), "case {number}, ignored: {ignore}");
        }
    }
}
