//! Laws of sharing out: what workers send together is the program, each frame once.

use crate::generate::{any_stream, capture, paced, program};
use crate::traffic::executor::{BATCH, Slab};
use crate::traffic::walk::Tally;
use crate::traffic::{Executor, Lane, Program, Schedule, Step, Stream, Walk};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use wire::flow::FlowKey;
use wire::layers::Layers;
use wire::signature::Signature;

/// Frames of a program that ends, at most `most`: bytes and when each is due. Those with a signature are told apart by
/// it and have it blanked, with the checksum that covers it.
struct Frames {
    frames: Vec<(Vec<u8>, u64)>,
    signatures: Vec<(u32, u64)>,
}

fn frames(program: &Program, most: usize) -> Frames {
    let mut executor = Executor::new(program).unwrap();
    let mut slab = Slab::new(BATCH, program.longest() as usize);
    let mut due = [0; BATCH];
    let mut all = Frames { frames: vec![], signatures: vec![] };
    while all.frames.len() < most {
        let batch = BATCH.min(most - all.frames.len());
        let made = executor.render_due(&mut slab.buffers(), batch, u64::MAX, &mut due, || 0);
        if made == 0 {
            break;
        }
        for (i, &due) in due[..made].iter().enumerate() {
            let mut bytes = slab.frame(i).to_vec();
            if let Some(signature) = Signature::at_end_of(&bytes) {
                all.signatures.push((signature.stream, signature.sequence));
                let tail = bytes.len() - wire::signature::LEN;
                bytes[tail..].fill(0);
                bytes[40..42].fill(0);
            }
            all.frames.push((bytes, due));
        }
    }
    all
}

/// How often each frame comes.
fn census<'a>(frames: impl IntoIterator<Item = &'a (Vec<u8>, u64)>) -> HashMap<&'a [u8], u64> {
    let mut census = HashMap::new();
    for (bytes, _) in frames {
        *census.entry(&bytes[..]).or_default() += 1;
    }
    census
}

/// Ends every lane after so many frames, if it has no end of its own.
fn ended(mut program: Program, most: u64) -> Program {
    for lane in &mut program.lanes {
        lane.frames = Some(lane.frames.unwrap_or(most).min(most));
    }
    program
}

fn assert_each_frame_once(program: &Program, of: u32) {
    let whole = frames(program, usize::MAX);
    let parts: Vec<Frames> = (0..of).map(|worker| frames(&program.share(worker, of), usize::MAX)).collect();
    assert_eq!(census(&whole.frames), census(parts.iter().flat_map(|part| &part.frames)));
    for (worker, part) in parts.iter().enumerate() {
        assert!(part.frames.is_sorted_by_key(|(_, due)| *due), "worker {worker}");
        let mut next: HashMap<u32, u64> = HashMap::new();
        for &(stream, sequence) in &part.signatures {
            assert_eq!(stream % of, worker as u32, "the stream's number names the worker");
            let next = next.entry(stream).or_default();
            assert_eq!(sequence, *next, "worker {worker}, stream {stream}");
            *next += 1;
        }
    }
    // As many of each stream are signed as in the whole.
    let by_stream = |signatures: &mut dyn Iterator<Item = u32>| {
        signatures.fold(HashMap::<u32, u64>::new(), |mut census, stream| {
            *census.entry(stream).or_default() += 1;
            census
        })
    };
    let shared =
        by_stream(&mut parts.iter().flat_map(|part| &part.signatures).map(|(stream, _)| stream / of));
    assert_eq!(shared, by_stream(&mut whole.signatures.iter().map(|(stream, _)| *stream)));
}

/// All streams have numbers of their own, so that what is signed can be told.
fn numbered(mut program: Program) -> Program {
    for (number, stream) in program.streams.iter_mut().enumerate() {
        stream.signature = stream.signature.map(|_| number as u32);
    }
    program
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn workers_send_every_frame_once_and_in_order(program in program(), of in 1u32..9, most in 0u64..300) {
        assert_each_frame_once(&numbered(ended(program, most)), of);
    }

    #[test]
    fn a_share_can_be_shared(program in program(), of in 1u32..4, again in 1u32..4, most in 0u64..300) {
        let program = numbered(ended(program, most));
        for worker in 0..of {
            assert_each_frame_once(&program.share(worker, of), again);
        }
    }

    #[test]
    fn the_first_frames_are_shared_as_counted(program in program(), of in 1u32..9, count in 0u64..300) {
        match &program.lanes[..] {
            [lane] => {
                let wanted = Program { lanes: vec![Lane { frames: Some(count.min(lane.frames.unwrap_or(u64::MAX))), ..lane.clone() }], ..program.clone() };
                let wanted = numbered(wanted);
                let whole = frames(&wanted, usize::MAX);
                let mut parts = Vec::new();
                for worker in 0..of {
                    let own = program.share_count(worker, of, count).unwrap() as usize;
                    let part = numbered(program.clone()).share(worker, of);
                    let part = frames(&part, own);
                    prop_assert_eq!(part.frames.len(), own);
                    parts.extend(part.frames);
                }
                prop_assert_eq!(census(&parts), census(&whole.frames));
            }
            _ => prop_assert_eq!(program.share_count(0, of, count), None),
        }
    }

    #[test]
    fn workers_keep_the_rate_together(
        stream in any_stream(),
        schedule in paced(),
        of in 1u32..9,
        start_ns in 0u64..1000,
        times in proptest::collection::vec(0u64..1_000_000, 1..20),
    ) {
        // Bits of random lengths are a rate only on average.
        let random = matches!(stream.lengths, crate::traffic::Lengths::Random { .. });
        prop_assume!(!(random && matches!(schedule, Schedule::Bits { .. })));
        // A gap that reaches over the end of a step holds up the faster rate behind it, and a worker's gaps are longer.
        let rate = |step: &Step| step.frames as f64 / step.per_ns as f64;
        let held_up = match &schedule {
            Schedule::Steps { steps } => (1..steps.len())
                .map(|i| 2.0 + rate(&steps[i]) / steps[..i].iter().map(rate).fold(f64::MAX, f64::min))
                .sum(),
            _ => 0.0,
        };
        let program = Program {
            lanes: vec![Lane { start_ns, ..Lane::new([0], schedule.clone()) }],
            ..Program::single(stream)
        };
        let parts: Vec<Program> = (0..of).map(|worker| program.share(worker, of)).collect();
        for ns in times {
            let due = |program: &Program| Tally::new(Arc::new(program.clone())).map_or(0, |mut tally| tally.by(ns));
            let (whole, shared) = (due(&program), parts.iter().map(due).sum::<u64>());
            let tolerance = (f64::from(of) * (1.0 + held_up)) as u64;
            prop_assert!(whole.abs_diff(shared) <= tolerance, "{} and {} by {} ns", whole, shared, ns);
        }
    }

    #[test]
    fn stated_times_and_bursts_are_kept_to_the_nanosecond(
        stream in any_stream(),
        schedule in prop_oneof![crate::generate::times(), crate::generate::bursts(), crate::generate::shapes()],
        of in 1u32..9,
        frames in 0u64..300,
    ) {
        let program = Program { lanes: vec![Lane { frames: Some(frames), ..Lane::new([0], schedule) }], ..Program::single(stream) };
        let mut shared: Vec<u64> =
            (0..of).flat_map(|worker| Walk::new(&program.share(worker, of)).unwrap().map(|turn| turn.due).collect::<Vec<_>>()).collect();
        shared.sort();
        prop_assert_eq!(shared, Walk::new(&program).unwrap().map(|turn| turn.due).collect::<Vec<_>>());
    }

    #[test]
    fn both_directions_of_a_flow_stay_with_one_worker(stream in capture(), of in 1u32..9) {
        let program = Program::single(Stream { signature: None, unique_addresses: false, ..stream });
        let mut seen = HashSet::new();
        for worker in 0..of {
            let part = program.share(worker, of);
            for stream in &part.streams {
                for i in 0..stream.templates.len() {
                    let frame = stream.templates.get(i);
                    let layers = Layers::parse(wire::LinkType::ETHERNET, frame);
                    if let Some(key) = FlowKey::of(&layers, frame).key() {
                        seen.insert((key.conversation(), worker));
                    }
                }
            }
        }
        let conversations: HashSet<FlowKey> = seen.iter().map(|(key, _)| *key).collect();
        prop_assert_eq!(conversations.len(), seen.len());
    }
}

#[test]
fn a_flow_of_frames_is_dealt_out_like_cards() {
    let stream = Stream::of("s", &[0; 60]);
    let schedule = Schedule::Frames { frames: 10, per_ns: 1000 };
    let program = Program::interleaved(vec![stream], [0], schedule);
    for worker in 0..4u32 {
        let part = program.share(worker, 4);
        assert_eq!((part.streams[0].first, part.streams[0].step), (worker.into(), 4));
        assert_eq!(part.lanes[0].schedule, Schedule::Frames { frames: 10, per_ns: 4000 });
        assert_eq!(part.lanes[0].start_ns, u64::from(worker) * 100);
    }
}

#[test]
fn bits_are_divided_by_what_each_worker_has_to_send() {
    // Every second frame is small: two workers get all small ones and all large ones.
    let lengths = crate::traffic::Lengths::List([60, 1500].into());
    let stream = Stream { lengths, ..Stream::of("s", &[0; 1500]) };
    let schedule = Schedule::Bits { bits_per_second: 1_000_000_000, overhead_bytes: 0 };
    let program = Program::interleaved(vec![stream], [0], schedule);
    let rates: Vec<u64> = (0..2)
        .map(|worker| match program.share(worker, 2).lanes[0].schedule {
            Schedule::Bits { bits_per_second, .. } => bits_per_second,
            ref other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(rates, [38_461_538, 961_538_462]);
}

#[test]
fn bursts_that_do_not_divide_stay_whole() {
    let streams = vec![Stream::of("a", &[0; 60]), Stream::of("b", &[1; 60])];
    let lane = |s: u32, frames| Lane::new([s], Schedule::Bursts { frames, gap_ns: 1, period_ns: 1000 });
    let program = Program { streams, lanes: vec![lane(0, 6), lane(1, 5)] };
    let parts: Vec<Program> = (0..3).map(|worker| program.share(worker, 3)).collect();
    let lanes: Vec<usize> = parts.iter().map(|part| part.lanes.len()).collect();
    assert_eq!(lanes, [1, 2, 1]);
    assert_eq!(parts[1].lanes[1].schedule, program.lanes[1].schedule);
    assert_eq!(parts[2].lanes[0].schedule, Schedule::Bursts { frames: 2, gap_ns: 3, period_ns: 1000 });
    assert_eq!(parts[2].lanes[0].start_ns, 2);
}
