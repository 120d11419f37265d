//! Holds the kernel's program and its Rust twin equal: both see the same frames (the program by a test run, without
//! any interface) and must keep the same numbers, bit for bit. Needs root, as loading the program does.

use crate::content::{Ending, Expected};
use crate::hardware::Line;
use crate::layout::{self, Stream, Totals};
use crate::loader::{self, Loaded, Stamper};
use crate::measurement::StreamStats;
use crate::options::{Action, Options};
use crate::runs::{run, run_told};
use crate::tracker::{Tracker, Wanted};
use bpf::object::Needs;
use bpf::{Hook, zeroed};
use clocks::Clock;
use lab::Lab;
use proptest::prelude::*;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use std::collections::HashSet;
use std::sync::LazyLock;
use wire::signature::{MAX_SEQUENCE, Signature, TIME_MASK};

/// Where the program is attached while it is run, without a frame on the cable.
static LAB: LazyLock<Lab> = LazyLock::new(|| {
    Lab::two_hosts(&lab::Options { mtu: 1500, ..Default::default() }).expect("a lab (as root)")
});

/// Streams that the tables of these tests have room for; one more is used, to find none.
pub const STREAMS: u32 = 3;

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
    /// Bytes behind the signature.
    behind: usize,
    /// A byte before the signature is not what it should be.
    spoilt: bool,
    /// Picks the CPU that the frame arrives on.
    queue: usize,
    /// Picks what a frame without a signature begins with.
    head: usize,
}

/// Headers of frames that most networks carry, and of others: the last bytes are repeated.
const HEADS: [&[u8]; 9] = [
    &[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x06, 0],
    &[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x81, 0x00, 0, 7, 0x88, 0xa8, 0, 8, 0x08, 0x06, 0],
    &[1, 0x80, 0xc2, 0, 0, 14, 2, 0, 0, 0, 0, 1, 0x88, 0xcc],
    &[1, 0x80, 0xc2, 0, 0, 16, 2, 0, 0, 0, 0, 1, 0, 38],
    &[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00, 0x46, 0, 0, 32, 0, 0, 0, 0, 1, 2],
    // Neighbour discovery, if all that follows are 135s; and what is no type of it.
    &[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 32, 58, 135],
    &[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 32, 58, 128],
    &LISTENER,
    &[0],
];

/// Listener discovery behind hop-by-hop options.
const LISTENER: [u8; 64] = {
    let mut frame = [143; 64];
    let head = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 36, 0, 1];
    let mut at = 0;
    while at < head.len() {
        frame[at] = head[at];
        at += 1;
    }
    (frame[54], frame[55]) = (58, 0);
    frame
};

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
    let behind = prop_oneof![6 => Just(0usize), 1 => 1usize..20];
    let how = (prop::bool::weighted(0.8), behind, prop::bool::weighted(0.1), 0..HEADS.len());
    let shape = (how, 0..=STREAMS, step, stamp, length, 0usize..64);
    let shape = shape.prop_map(|((signed, behind, spoilt, head), stream, step, stamp, length, queue)| {
        Shape { signed, stream, step, stamp, length, behind, spoilt, queue, head }
    });
    prop::collection::vec(shape, 1..120)
}

pub fn monotonic() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The CPUs this process may run on.
pub fn cpus() -> Vec<usize> {
    let set = sched_getaffinity(None).expect("the CPUs of this process");
    (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect()
}

pub fn pin(cpu: usize) {
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
        let Some(at) = shape.length.checked_sub(wire::signature::LEN + shape.behind) else { return frame };
        if !shape.signed {
            let head = HEADS[shape.head];
            let last = head.last().copied().unwrap_or_default();
            let head = head.iter().copied().chain(std::iter::repeat(last));
            frame.iter_mut().zip(head).take(at).for_each(|(byte, of)| *byte = of);
            return frame;
        }
        if shape.spoilt && at > 20 {
            frame[at - 1 - at % 17] ^= 0x10;
        }
        let next = &mut self.next[shape.stream as usize];
        let sequence = match shape.step {
            Step::Next => *next,
            Step::Skip(by) => (*next + by) & MAX_SEQUENCE,
            Step::Back(by) => next.wrapping_sub(by) & MAX_SEQUENCE,
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
        frame[at..at + wire::signature::LEN]
            .copy_from_slice(&Signature { stream: shape.stream, sequence, time }.to_bytes());
        frame
    }
}

pub fn load(options: &Options, needs: Needs) -> Loaded {
    loader::load_with(options, Stamper::Software, needs)
        .expect("the meter's program loads (as root, Linux 5.18 or newer)")
}

/// What frames made by [`Maker`] have before the signature: all of it in some lengths, else as much as all have alike,
/// which is nothing.
fn expected() -> Expected {
    let ending = |length: usize| {
        let bytes = (0..length - wire::signature::LEN).map(|at| (at * 31) as u8);
        let bytes = bytes.skip(length.saturating_sub(wire::signature::LEN + 100)).collect();
        Ending { length: Some(length as u32), bytes }
    };
    let all = || [60, 124, 252, 1514].map(ending).to_vec();
    Expected::new(&[all(), vec![], all()])
}

/// What the kernel's program keeps of `cpu`.
pub fn kept(loaded: &Loaded, cpu: usize) -> (Box<Totals>, Vec<Stream>) {
    let first = if loaded.shared { 0 } else { cpu * STREAMS as usize };
    let streams = (first..first + STREAMS as usize).map(|slot| loaded.streams.get(slot).expect("a stream"));
    (loaded.totals.get_boxed(cpu).expect("a CPU"), streams.collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn the_kernel_and_its_twin_keep_the_same_numbers(
        shapes in shapes(),
        (latency, drop, shared, gaps) in any::<(bool, bool, bool, bool)>(),
        start in prop_oneof![Just(0), MAX_SEQUENCE - 200..=MAX_SEQUENCE],
        needs in prop::sample::select(&Needs::ALL[..]),
    ) {
        let action = if drop { Action::Drop } else { Action::Pass };
        // No CPU alone sees what follows what.
        let shared = shared || gaps;
        let wanted = || Wanted {
            streams: STREAMS,
            histograms: 2,
            gaps: if gaps { 2 } else { 0 },
            seen_bits: if shared { 0 } else { layout::seen_bits(STREAMS) },
            latency,
            arrivals: shapes.len(),
            trailers: true,
            content: expected(),
            ..Wanted::default()
        };
        let options = Options {
            action,
            streams: STREAMS,
            stream_histograms: 2,
            inter_arrival: gaps,
            share_records: Some(shared),
            latency,
            arrivals: shapes.len(),
            content: expected(),
            ..Options::default()
        };
        let (cpus, mut maker) = (cpus(), Maker { next: [start; STREAMS as usize + 1], ..Maker::default() });
        // In a thread of its own, since it moves from CPU to CPU; and where a program is attached, because the kernel
        // then runs it a thousand times sooner.
        let (loaded, mut twins, mut whole, seen) = LAB.receiver.namespace.run_in(|| {
            let loaded = load(&options, needs);
            let index = LAB.receiver.namespace.index_of("rx0").expect("the namespace").expect("rx0");
            let _link = loaded.program.attach(index, Hook::XdpNative).expect("a free interface");
            let mut twins: Vec<_> = cpus.iter().map(|_| Tracker::new(wanted())).collect();
            let mut whole = Tracker::new(wanted());
            let mut seen = whole.seen.clone();
            for (number, shape) in shapes.iter().enumerate() {
                // A frame in one buffer must fit a page, with headroom; one in several has no search for trailers.
                let mut shape = shape.clone();
                if needs != Needs::Buffers {
                    shape.length = shape.length.min(3000);
                } else if shape.length > 3000 {
                    shape.behind = 0;
                }
                let frame = maker.frame(&shape);
                let queue = shape.queue % cpus.len();
                pin(cpus[queue]);
                assert_eq!(run(&loaded.program, &frame, 1).0, if drop { 1 } else { 2 });
                // The program's own reading of the clock is what its twin is told.
                let now = loaded.arrivals.get(number + 1).expect("an arrival");
                assert!(now > 0, "frame {number} left no arrival");
                maker.delay = now.saturating_sub(maker.made).clamp(300, 1_000_000);
                // What was seen, all CPUs tell together.
                std::mem::swap(&mut twins[queue].seen, &mut seen);
                for twin in [&mut twins[queue], &mut whole] {
                    twin.frame(&frame, frame.len() as u64, now, now);
                }
                std::mem::swap(&mut twins[queue].seen, &mut seen);
            }
            (loaded, twins, whole, seen)
        }).expect("the namespace");
        prop_assert_eq!(loaded.shared, shared);
        let kept_gaps: Vec<_> = (0..whole.stream_gaps.len()).filter_map(|of| loaded.stream_gaps.get(of)).collect();
        prop_assert_eq!(&kept_gaps, &whole.stream_gaps);
        prop_assert_eq!(kept_gaps.len(), if gaps { 2 } else { 0 });
        if let Some(seen) = &seen {
            prop_assert_eq!((0..seen.words.len()).find(|at| loaded.seen.get(*at) != Some(seen.words[*at])), None);
        }
        for (cpu, twin) in cpus.iter().zip(&mut twins) {
            let (totals, streams) = kept(&loaded, *cpu);
            // What CPUs share, each of them adds to as one that saw all would.
            let of_streams = if shared { &whole } else { &*twin };
            let (first, own) = (if shared { 0 } else { *cpu }, loaded.with_histogram as usize);
            prop_assert_eq!(&streams, &of_streams.streams);
            prop_assert_eq!(own, of_streams.histograms.len());
            for (stream, buckets) in of_streams.histograms.iter().enumerate() {
                let kept = loaded.histograms.get(first * own + stream);
                prop_assert_eq!(kept.as_ref(), Some(buckets));
            }
            if shared {
                // Order and variation are seen across CPUs; of the rest each has its own.
                let order = |totals: &mut Totals| {
                    (totals.reordered, totals.duplicates, totals.late, totals.astray) = (0, 0, 0, 0);
                    (totals.variation, totals.variations) = Default::default();
                };
                let mut totals = totals;
                order(&mut totals);
                order(&mut twin.totals);
                prop_assert!(totals == twin.totals);
            } else {
                prop_assert!(totals == twin.totals);
            }
        }
        let mut sum = zeroed::<Totals>();
        cpus.iter().for_each(|cpu| sum.add(&kept(&loaded, *cpu).0));
        if shared {
            // The gaps are each CPU's own.
            (sum.gap, sum.gaps, sum.tick) = Default::default();
            (whole.totals.gap, whole.totals.gaps) = Default::default();
            prop_assert!(sum == whole.totals);
        }
        prop_assert_eq!(loaded.arrivals.get(0), Some(shapes.len() as u64));
    }

    #[test]
    fn loss_is_exact_however_a_stream_is_spread_over_the_cpus(
        fates in prop::collection::vec((0u32..8, 0usize..4, 0usize..4, 0i64..400), 1..1500),
    ) {
        // Fate 0: lost; 1: arrives twice; else once. Each frame and each copy on a CPU of its own, up to 400 places late.
        let mut order: Vec<(i64, u64, usize)> = Vec::new();
        for (sequence, (fate, cpu, of_copy, delay)) in fates.iter().enumerate() {
            let (place, sequence) = (sequence as i64, sequence as u64);
            if *fate > 0 {
                order.push((place, sequence, *cpu));
            }
            if *fate == 1 {
                order.push((place + delay, sequence, *of_copy));
            }
        }
        order.sort();
        let arrived: HashSet<u64> = order.iter().map(|(_, sequence, _)| *sequence).collect();
        let wanted = || Wanted { streams: 1, seen_bits: layout::seen_bits(1), ..Wanted::default() };
        let mut shares: Vec<_> = (0..4).map(|_| Tracker::new(wanted())).collect();
        let mut seen = shares[0].seen.clone();
        for (_, sequence, cpu) in &order {
            let share = &mut shares[*cpu];
            std::mem::swap(&mut share.seen, &mut seen);
            share.frame(&Signature { stream: 0, sequence: *sequence, time: 0 }.to_bytes(), 60, 1, 1);
            std::mem::swap(&mut share.seen, &mut seen);
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Each frame with a stamp of the hardware (its clock's nanoseconds before or after the last one), or without.
    #[test]
    fn arrivals_are_those_that_the_hardware_stamped(
        frames in prop::collection::vec(prop::option::weighted(0.8, -2_000i64..50_000), 1..60),
        at in 1u64 << 40..1 << 61,
        host in 1u64 << 40..1 << 50,
        slope in -4_000_000i64..4_000_000,
        tai in prop::option::of(0u64..40_000_000_000),
    ) {
        let clock = if tai.is_some() { Clock::Tai } else { Clock::Monotonic };
        let options = Options { streams: STREAMS, arrivals: frames.len(), clock, ..Options::default() };
        let loaded = loader::load_with(&options, Stamper::Told, Needs::Buffers).expect("the meter's program for tests");
        // The third line told is in force, not those before it.
        let line = Line { at, ahead: host.wrapping_sub(at), slope, tai: tai.unwrap_or(77) };
        let lines = [Line { at: 1, ..line }, Line { ahead: 2, ..line }, line];
        (0..).zip(&lines).for_each(|(turn, line)| loaded.clock.set(turn, line).expect("the map of the clock"));
        let seen_bits = layout::seen_bits(STREAMS);
        let wanted = Wanted { streams: STREAMS, seen_bits, latency: true, arrivals: frames.len(), ..Wanted::default() };
        let mut twin = Tracker::new(wanted);
        let (cpu, mut stamp) = (cpus()[0], at);
        pin(cpu);
        for (number, after) in frames.iter().enumerate() {
            // CLOCK_TAI of a frame without a stamp would be the kernel's own reading, which nobody here knows.
            let after = after.or(tai.map(|_| 5));
            stamp = stamp.wrapping_add_signed(after.unwrap_or(0));
            let told = after.map_or(0, |_| stamp);
            // By the clock that it will be compared with.
            let sent = line.monotonic(stamp).wrapping_add(tai.unwrap_or(0)).wrapping_sub(700) & TIME_MASK;
            let signature = Signature { stream: 0, sequence: number as u64, time: sent.max(1) };
            let frame = [&[0; 42][..], &signature.to_bytes()].concat();
            run_told(&loaded.program, told, &frame);
            let now = loaded.arrivals.get(number + 1).expect("an arrival");
            if told > 0 {
                prop_assert_eq!(now, line.monotonic(stamp), "frame {}", number);
                twin.totals.by_hardware += 1;
            }
            twin.frame(&frame, 60, now, now.wrapping_add(tai.unwrap_or(0)));
        }
        let (totals, streams) = kept(&loaded, cpu);
        prop_assert_eq!(&streams, &twin.streams);
        prop_assert!(totals == twin.totals);
    }
}

#[test]
fn the_cheap_mode_tells_the_time_within_a_tick_and_measures_no_latency() {
    let options = Options { streams: STREAMS, latency: false, ..Options::default() };
    let loaded = load(&options, Needs::Buffers);
    let frame = Signature { stream: 0, sequence: 0, time: 1 }.to_bytes();
    pin(cpus()[0]);
    run(&loaded.program, &frame, 1);
    let (totals, streams) = kept(&loaded, cpus()[0]);
    let behind = monotonic() - totals.first_ns;
    assert!(behind < 100_000_000, "the first frame was {behind} ns ago");
    assert_eq!((totals.signed_frames, totals.latency.count, streams[0].frames), (1, 0, 1));
    assert_eq!(loaded.arrivals.len(), 1);
}

/// Frames of all lengths, in one buffer and in several, with and without signatures: each comes out of the rings as it was, cut where
/// that was asked for, at the time that the program counted it for.
#[test]
fn what_the_kernel_copies_is_what_its_twin_is_shown() {
    use crate::frames::{Capture, Captured, Copied, Copies, Reader};
    use std::sync::{Arc, Mutex};
    for (needs, bytes, longest) in [
        (Needs::Buffers, u32::MAX, 9000),
        (Needs::Buffers, 96, 9000),
        (Needs::Atomics, u32::MAX, 3000),
        (Needs::Links, 100, 3000),
    ] {
        /// When it came, its bytes, how long it was, and its stream and number.
        type Taken = (u64, Vec<u8>, u32, Option<(u32, u64)>);
        let taken: Arc<Mutex<Vec<Taken>>> = Arc::default();
        let theirs = Arc::clone(&taken);
        let to = move |copies: &Copies| {
            let own = |of: Copied<'_>| (of.time, of.bytes.to_vec(), of.length, of.signed);
            theirs.lock().expect("a lock").extend(copies.iter().map(own));
            true
        };
        let capture = Capture { bytes, to: Arc::new(to) };
        let options =
            Options { streams: STREAMS, arrivals: 64, capture: Some(capture.clone()), ..Options::default() };
        let loaded = load(&options, needs);
        let (rings, switch) = loaded.frames.lock().expect("a lock").take().expect("rings");
        let mut reader = Reader::start(rings, switch, &capture).expect("a thread");
        let lengths = [14, 18, 60, 61, 62, 63, 64, 95, 96, 97, 1514, 2000, 3000, 8999, 9000];
        let lengths: Vec<usize> = lengths.into_iter().filter(|length| *length <= longest).collect();
        let mut maker = Maker::default();
        let mut expected = Vec::new();
        for (number, length) in lengths.iter().enumerate() {
            pin(cpus()[number % cpus().len()]);
            let shape = Shape {
                signed: number % 3 != 0,
                stream: number as u32 % 2,
                step: Step::Next,
                stamp: Stamp::Ago(500),
                length: *length,
                behind: 0,
                spoilt: false,
                queue: 0,
                head: 8,
            };
            let frame = maker.frame(&shape);
            run(&loaded.program, &frame, 1);
            let time = loaded.arrivals.get(number + 1).expect("an arrival");
            let signed = Signature::at_end_of(&frame).map(|signature| (signature.stream, signature.sequence));
            let cut = frame.get(..bytes as usize).unwrap_or(&frame).to_vec();
            expected.push((time, cut, *length as u32, signed));
        }
        let counted = lengths.len() as u64;
        assert_eq!(reader.finish(counted), Captured { frames: counted, missed: 0 }, "{needs:?}");
        assert_eq!(*taken.lock().expect("a lock"), expected, "{needs:?}");
    }
}

/// Each frame is either handed over or counted as one that nobody wanted, wherever the end falls.
#[test]
fn who_has_enough_is_handed_no_more_and_misses_nothing() {
    use crate::frames::{Capture, Captured, Copies, Reader};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    for needs in Needs::ALL {
        let handed = Arc::new(AtomicUsize::new(0));
        let theirs = Arc::clone(&handed);
        let to = move |copies: &Copies| theirs.fetch_add(copies.len(), Ordering::Relaxed) + copies.len() < 10;
        let capture = Capture { bytes: u32::MAX, to: Arc::new(to) };
        let loaded = load(&Options { capture: Some(capture.clone()), ..Options::default() }, needs);
        let (rings, switch) = loaded.frames.lock().expect("a lock").take().expect("rings");
        let mut reader = Reader::start(rings, switch, &capture).expect("a thread");
        let mut sent: u64 = 0;
        let began = std::time::Instant::now();
        while loaded.unwanted() < 5 {
            assert!(began.elapsed() < std::time::Duration::from_secs(20), "{needs:?}: copying does not end");
            run(&loaded.program, &[0; 60], 1);
            sent += 1;
        }
        let unwanted = loaded.unwanted();
        assert_eq!(
            reader.finish(sent - unwanted),
            Captured { frames: sent - unwanted, missed: 0 },
            "{needs:?}"
        );
        assert_eq!(handed.load(Ordering::Relaxed) as u64, sent - unwanted, "{needs:?}");
        assert!(unwanted == 5 && sent >= 15, "{needs:?}: {unwanted} of {sent}");
    }
}

#[test]
fn arrivals_beyond_the_room_are_counted_and_not_written() {
    for needs in Needs::ALL {
        let loaded = load(&Options { arrivals: 2, ..Options::default() }, needs);
        run(&loaded.program, &[0; 60], 5);
        assert_eq!((loaded.arrivals.get(0), loaded.arrivals.len()), (Some(5), 3), "{needs:?}");
        assert!(loaded.arrivals.get(1) > Some(0) && loaded.arrivals.get(2) >= loaded.arrivals.get(1));
    }
}

/// What older kernels take, this one must as well: with all that can be asked of it, and with nothing.
#[test]
fn every_program_is_loaded_here_with_all_that_is_measured_and_with_the_least() {
    let everything = Options {
        share_records: Some(true),
        clock: Clock::Tai,
        content: expected(),
        arrivals: 10,
        ignore_icmp_errors: true,
        streams: STREAMS,
        ..Options::default()
    };
    let least = Options { latency: false, trailers: false, streams: 1, ..Options::default() };
    for needs in Needs::ALL {
        for options in [&everything, &least] {
            let loaded = loader::load_with(options, Stamper::Software, needs);
            assert!(loaded.is_ok(), "{needs:?} {options:?}: {loaded:?}");
        }
    }
}

/// Keeps the cost in view (`cargo test -p netdyno-meter cost -- --nocapture`); the bound only catches a blunder.
#[test]
fn a_frame_costs_well_below_a_microsecond() {
    use crate::frames::{Capture, Copies, Reader};
    use std::sync::Arc;
    pin(cpus()[0]);
    let signed = |stream| {
        let mut frame = vec![0; 42];
        frame.extend(Signature { stream, sequence: 5, time: monotonic() & TIME_MASK }.to_bytes());
        frame
    };
    let cheap = Options { latency: false, ..Options::default() };
    let exact = Options { latency: true, ..Options::default() };
    let arrivals = Options { arrivals: 4 << 20, ..exact.clone() };
    let unsearched = Options { trailers: false, ..cheap.clone() };
    let shared = Options { share_records: Some(true), ..exact.clone() };
    let apart = Options { inter_arrival: true, ..exact.clone() };
    let to: Arc<dyn Fn(&Copies) -> bool + Send + Sync> = Arc::new(|_| true);
    let enough: Arc<dyn Fn(&Copies) -> bool + Send + Sync> = Arc::new(|_| false);
    let ended = Options { capture: Some(Capture { bytes: u32::MAX, to: enough }), ..exact.clone() };
    let captured = Options { capture: Some(Capture { bytes: u32::MAX, to }), ..exact.clone() };
    let long = || [vec![0; 1454], signed(0)].concat();
    let cases = [
        ("unsigned, no trailer looked for", &unsearched, vec![0; 60]),
        ("signed, latency, records shared", &shared, signed(0)),
        ("unsigned, counting only", &cheap, vec![0; 60]),
        ("unsigned, exact clock", &exact, vec![0; 60]),
        ("signed, no latency", &cheap, signed(0)),
        ("signed, latency", &exact, signed(0)),
        ("signed, latency, arrivals", &arrivals, signed(0)),
        ("signed, latency, times between arrivals", &apart, signed(0)),
        ("signed, latency, captured", &captured, signed(0)),
        ("signed, latency, captured enough", &ended, signed(0)),
        ("1,514 bytes, signed, latency", &exact, long()),
        ("1,514 bytes, signed, latency, captured", &captured, long()),
    ];
    for (what, options, frame) in cases {
        let loaded = load(options, Needs::Buffers);
        let rings = loaded.frames.lock().expect("a lock").take();
        let _reader = options
            .capture
            .as_ref()
            .zip(rings)
            .map(|(capture, (rings, switch))| Reader::start(rings, switch, capture));
        let mut costs: Vec<u32> = (0..5).map(|_| run(&loaded.program, &frame, 1_000_000).1).collect();
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
            let loaded = load(&options, Needs::Buffers);
            run(&loaded.program, frame, 1);
            let wanted = Wanted { streams: STREAMS, ignore_icmp_errors: ignore, ..Wanted::default() };
            let mut tracker = Tracker::new(wanted);
            tracker.frame(frame, frame.len() as u64, 1, 1);
            let wanted = u64::from(!(ignore && *error));
            let counted = (kept(&loaded, cpus()[0]).0.signed_frames, tracker.totals.signed_frames);
            assert_eq!(counted, (wanted, wanted), "case {number}, ignored: {ignore}");
        }
    }
}
