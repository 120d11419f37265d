//! Laws of lanes: whose frame comes when, against plain arithmetic and a sort.

use crate::generate::{any_stream, program, stream};
use crate::traffic::executor::{BATCH, Slab, frame};
use crate::traffic::walk::{Tally, Turn};
use crate::traffic::{Executor, Lane, Program, Schedule, Stream, Walk};
use proptest::prelude::*;
use std::sync::Arc;

/// When each of the first `most` frames of a lane is due, by definition; fewer if the schedule ends.
fn times(program: &Program, lane: &Lane, most: usize) -> Vec<(u64, u32, u64)> {
    let mut indices = vec![0u64; program.streams.len()];
    let mut out = Vec::new();
    let mut bits = 0u128;
    // Of a staircase: when the present step's first frame was due, and frames since.
    let (mut at, mut since, mut ruling) = (0u128, 0u128, 0);
    for i in 0..most.min(lane.frames.unwrap_or(u64::MAX) as usize) {
        let stream = lane.order[i % lane.order.len()];
        let index = indices[stream as usize];
        indices[stream as usize] += 1;
        let n = i as u128;
        let due = match &lane.schedule {
            Schedule::TopSpeed => 0,
            Schedule::Frames { frames, per_ns } => n * u128::from(*per_ns) / u128::from(*frames),
            Schedule::Bits { bits_per_second, overhead_bytes } => {
                let due = bits * 1_000_000_000 / u128::from(*bits_per_second);
                let length = program.streams[stream as usize].length_of(index);
                bits += u128::from(length + overhead_bytes) * 8;
                due
            }
            Schedule::Times { offsets, period_ns, speed } => {
                let (pass, turn) = (i / offsets.len(), i % offsets.len());
                let ns = pass as u128 * u128::from(*period_ns) + u128::from(offsets[turn]);
                ns * u128::from(speed.denominator) / u128::from(speed.numerator)
            }
            Schedule::Bursts { frames, gap_ns, period_ns } => {
                n / u128::from(*frames) * u128::from(*period_ns)
                    + n % u128::from(*frames) * u128::from(*gap_ns)
            }
            Schedule::Steps { steps } => {
                let due = |ruling: usize, at: u128, since: u128| {
                    at + since * u128::from(steps[ruling].per_ns) / u128::from(steps[ruling].frames)
                };
                let mut now = due(ruling, at, since);
                while now >= u128::from(steps[ruling].end_ns) {
                    (ruling, at, since) = (ruling + 1, now, 0);
                    if ruling == steps.len() {
                        return out;
                    }
                    now = due(ruling, at, since);
                }
                since += 1;
                now
            }
            // Its definition is what is sought; its laws are held to account beside it.
            shape @ Schedule::Shaped(_) => {
                let mut cursor = shape.cursor();
                cursor.seek(i as u64, |_| 0);
                cursor.due().into()
            }
        };
        out.push((lane.start_ns + due as u64, stream, index));
    }
    out
}

/// The first frames of a program by definition: all lanes' in one list, sorted.
fn by_definition(program: &Program, most: usize) -> Vec<Turn> {
    let mut all = Vec::new();
    for (number, lane) in program.lanes.iter().enumerate() {
        let times = times(program, lane, most);
        all.extend(
            times.into_iter().enumerate().map(|(i, (due, stream, index))| (due, number, i, stream, index)),
        );
    }
    all.sort();
    all.truncate(most);
    all.into_iter().map(|(due, _, _, stream, index)| Turn { due, stream, index }).collect()
}

const MOST: usize = 400;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn frames_of_all_lanes_leave_in_the_order_of_their_times(program in program()) {
        let walked: Vec<Turn> = Walk::new(&program).unwrap().take(MOST).collect();
        prop_assert_eq!(walked, by_definition(&program, MOST));
    }

    #[test]
    fn any_frame_can_be_gone_to(program in program(), n in 0u64..300) {
        let wanted = by_definition(&program, MOST);
        let mut walk = Walk::new(&program).unwrap();
        walk.seek(n);
        let wanted = &wanted[wanted.len().min(n as usize)..];
        prop_assert_eq!(walk.next_due(), wanted.first().map(|turn| turn.due));
        prop_assert_eq!(&walk.take(wanted.len()).collect::<Vec<_>>(), wanted);
    }

    #[test]
    fn frames_due_are_counted_exactly(program in program(), mut times in proptest::collection::vec(0u64..20_000, 1..20)) {
        prop_assume!(program.is_paced());
        times.sort();
        let mut tally = Tally::new(Arc::new(program.clone())).unwrap();
        let mut walk = Walk::new(&program).unwrap();
        let mut count = 0;
        for ns in times {
            while walk.next_due().is_some_and(|due| due <= ns) {
                walk.next();
                count += 1;
            }
            prop_assert_eq!(tally.by(ns), count);
            if let Some(closed) = program.frames_due_by(ns) {
                prop_assert_eq!(closed, count);
            }
        }
    }

    #[test]
    fn frames_of_a_time_are_those_due_by_it(program in program(), until in 0u64..5000, batch in 1usize..=BATCH) {
        let wanted = by_definition(&program, MOST);
        let due = wanted.iter().take_while(|turn| turn.due <= until).count();
        let mut executor = Executor::new(&program).unwrap();
        let mut slab = Slab::new(BATCH, program.longest() as usize);
        let mut times = [0; BATCH];
        let mut made = 0;
        while made < due {
            let count = executor.render_due(&mut slab.buffers(), batch.min(due - made), until, &mut times, || 0);
            prop_assert!(count > 0);
            for i in 0..count {
                prop_assert_eq!(times[i], wanted[made + i].due);
                prop_assert_eq!(slab.frame(i), &frame(&program, (made + i) as u64, 0).unwrap()[..]);
            }
            made += count;
        }
        if made < MOST {
            prop_assert_eq!(executor.next_due(), wanted.get(made).map(|turn| turn.due));
            prop_assert_eq!(executor.render_due(&mut slab.buffers(), batch, until, &mut times, || 0), 0);
        }
    }

    #[test]
    fn lengths_are_known_before_frames_are_made(program in program(), from in 0u64..100) {
        let mut executor = Executor::new(&program).unwrap();
        executor.seek(from);
        for n in from..from + 20 {
            let made = frame(&program, n, 0).unwrap();
            prop_assert_eq!(made.len() as u32, executor.next_length());
            executor.skip();
        }
    }

    #[test]
    fn a_stride_leaves_out_frames_and_changes_no_other(whole in stream(), first in 0u64..1000, step in 1u64..20) {
        let whole = Stream { signature: None, ..whole };
        let part = Program::single(Stream { first, step, ..whole.clone() });
        let whole = Program::single(whole);
        let mut executor = Executor::new(&part).unwrap();
        let mut slab = Slab::new(16, part.longest() as usize);
        let mut k = 0;
        for _ in 0..4 {
            let made = executor.render(&mut slab.buffers(), 16, || 0);
            for i in 0..made {
                prop_assert_eq!(slab.frame(i), &frame(&whole, first + step * k, 0).unwrap()[..], "frame {}", k);
                k += 1;
            }
        }
    }

    #[test]
    fn no_stream_is_in_two_lanes_or_none(stream in any_stream()) {
        let program = Program::single(stream);
        let paced = |order: [u32; 1]| Lane::new(order, Schedule::Frames { frames: 1, per_ns: 1 });
        let twice = Program { lanes: vec![paced([0]), paced([0])], ..program.clone() };
        prop_assert!(twice.check().is_err());
        let never = Program { lanes: vec![], ..program.clone() };
        prop_assert!(never.check().is_err());
        let streams = vec![program.streams[0].clone(), program.streams[0].clone()];
        let hurried = Program { streams, lanes: vec![program.lanes[0].clone(), paced([1])] };
        prop_assert!(hurried.check().is_err(), "top speed beside another lane");
    }
}

#[test]
fn nothing_to_send_is_a_program_that_has_ended() {
    let program = Program { streams: vec![], lanes: vec![] };
    let mut executor = Executor::new(&program).unwrap();
    assert_eq!((executor.next_due(), executor.end(), executor.next_length()), (None, 0, 0));
    let mut slab = Slab::new(4, 60);
    assert_eq!(executor.render(&mut slab.buffers(), 4, || 0), 0);
    assert_eq!(executor.render_due(&mut slab.buffers(), 4, u64::MAX, &mut [0; 4], || 0), 0);
}
