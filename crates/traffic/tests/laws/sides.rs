//! Laws of two sides: a capture whose frames leave by two interfaces is the same capture in the same order.

use crate::generate::capture;
use crate::traffic::executor::{BATCH, Slab};
use crate::traffic::{Executor, Program, Schedule, Stream};
use proptest::prelude::*;
use wire::flow::FlowKey;
use wire::layers::Layers;

/// Frame by frame: its bytes, its side and when it is due. A batch is of one side.
fn frames(program: &Program, most: usize) -> Vec<(Vec<u8>, u8, u64)> {
    let mut executor = Executor::new(program).unwrap();
    let mut slab = Slab::new(BATCH, program.longest() as usize);
    let mut due = [0; BATCH];
    let mut all = Vec::new();
    while all.len() < most {
        let side = executor.next_port();
        let made = executor.render_due(&mut slab.buffers(), most - all.len(), u64::MAX, &mut due, || 0);
        if made == 0 {
            break;
        }
        all.extend((0..made).map(|i| (slab.frame(i).to_vec(), side, due[i])));
    }
    all
}

/// One stream, and the same frames as two.
fn both(stream: Stream, sides: &[bool], schedule: &Schedule) -> (Program, Program, Vec<u8>) {
    let stream = Stream { signature: None, ..stream };
    let count = stream.templates.len();
    let mut sides: Vec<u8> = sides.iter().cycle().take(count).map(|&second| second.into()).collect();
    // There are both.
    sides[0] = 0;
    if let Some(last) = sides.last_mut().filter(|_| count > 1) {
        *last = 1;
    }
    let part = |side: u8| Stream {
        templates: stream.templates.subset(|i| sides[i] == side),
        port: side,
        ..stream.clone()
    };
    let order: Vec<u32> = sides.iter().map(|&side| side.into()).collect();
    let streams = if count > 1 { vec![part(0), part(1)] } else { vec![part(0)] };
    let whole = Program::interleaved(vec![stream.clone()], [0], schedule.clone());
    (whole, Program::interleaved(streams, order, schedule.clone()), sides)
}

fn schedules() -> impl Strategy<Value = Schedule> {
    prop_oneof![
        Just(Schedule::TopSpeed),
        Just(Schedule::Frames { frames: 3, per_ns: 1000 }),
        Just(Schedule::Bits { bits_per_second: 999_999_937, overhead_bytes: 24 }),
    ]
}

proptest! {
    #[test]
    fn sides_change_no_frame_no_order_and_no_time(
        stream in capture(), sides in prop::collection::vec(any::<bool>(), 1..9), schedule in schedules(),
    ) {
        let (whole, sided, sides) = both(stream, &sides, &schedule);
        prop_assert_eq!(sided.frames_per_pass(), sides.len() as u64);
        let (whole, sided) = (frames(&whole, 100), frames(&sided, 100));
        prop_assert_eq!(whole.len(), sided.len());
        for (n, (whole, sided)) in whole.iter().zip(&sided).enumerate() {
            prop_assert_eq!((&whole.0, whole.2), (&sided.0, sided.2), "frame {}", n);
            prop_assert_eq!(sided.1, sides[n % sides.len()], "frame {}", n);
        }
    }

    #[test]
    fn workers_keep_conversations_together_and_in_order_across_both_sides(
        stream in capture(), sides in prop::collection::vec(any::<bool>(), 1..9), of in 2u32..5,
    ) {
        let (_, mut sided, _) = both(stream, &sides, &Schedule::TopSpeed);
        sided.lanes[0].frames = Some(sided.frames_per_pass() * 3);
        let key = |frame: &[u8]| {
            let layers = Layers::parse(wire::LinkType::ETHERNET, frame);
            FlowKey::of(&layers, frame).key().map(FlowKey::conversation)
        };
        let parts: Vec<_> = (0..of).map(|w| frames(&sided.share(w, of), usize::MAX)).collect();
        let whole = frames(&sided, usize::MAX);
        prop_assert_eq!(parts.iter().map(Vec::len).sum::<usize>(), whole.len());
        for (frame, ..) in &whole {
            // Without unique addresses the conversations of all passes are the same.
            let of_key = |frames: &[(Vec<u8>, u8, u64)]| -> Vec<(Vec<u8>, u8)> {
                let same = frames.iter().filter(|(other, ..)| key(other) == key(frame));
                same.map(|(bytes, side, _)| (bytes.clone(), *side)).collect()
            };
            let wanted = of_key(&whole);
            let got: Vec<_> = parts.iter().map(|part| of_key(part)).filter(|part| !part.is_empty()).collect();
            if key(frame).is_some() {
                prop_assert!(got.len() == 1 && got[0] == wanted || sided.streams[0].unique_addresses);
            }
        }
    }
}
