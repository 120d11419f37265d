//! Any frames as what `clone` captures, and any bytes as what its target answers: nothing may panic or be made up, and what became
//! of everything must add up.
#![no_main]

use clone::exchange::Comparison;
use clone::fragments::Fragments;
use clone::funnel::Funnel;
use clone::packet::{Segment, read};
use clone::replica::{Pace, Replica, Step};
use clone::sample::Copies;
use clone::table::{Adopt, Event, Rules, Table};
use libfuzzer_sys::fuzz_target;
use std::collections::HashMap;
use wire::LinkType;
use wire::flow::FlowKey;

fuzz_target!(|bytes: &[u8]| {
    let _ = read(LinkType::ETHERNET, bytes, bytes.len() + 7);
    pieces(bytes);
    let Some((&[first, second], mut rest)) = bytes.split_first_chunk::<2>() else { return };
    let mut table = Table::new(Rules {
        server: None,
        port: 80,
        adopt: [Adopt::SynOnly, Adopt::Idle(1000), Adopt::HttpBoundary][usize::from(first) % 3],
        copies: Copies::new(1.5).expect("copies"),
        seed: 1,
        most_sessions: 3,
        most_new: None,
        most_bits: None,
        ramp_ns: 0,
        gap_ns: 500,
        idle_ns: 1 << 40,
        chosen_before: first & 0x80 != 0,
        targets: [None; 2],
        never: [None; 2],
        own: None,
    });
    let pace = [Pace::Wallclock, Pace::Causal, Pace::CausalThink][usize::from(second) % 3];
    let mut replicas: HashMap<u32, Replica> = HashMap::new();
    let mut comparison = Comparison::default();
    let (mut now, mut said, mut sent) = (1u64, 0u64, 0u64);
    // Who, which way and how; numbers; how long; what.
    while let Some((&[who, flags, seq, ack, length, pause], behind)) = rest.split_first_chunk::<6>() {
        let (payload, behind) = behind.split_at(usize::from(length).min(behind.len()));
        rest = behind;
        now += u64::from(pause) * 7;
        if who & 0x80 != 0 {
            // The target answers.
            if let Some(replica) = replicas.get_mut(&u32::from(who & 3)) {
                replica.received(payload, now, &mut comparison);
            }
        }
        let flow = FlowKey::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), 6, 79 + u16::from(who & 3), 80)
            .expect("a flow");
        let flow = if flags & 0x80 == 0 { flow } else { flow.reversed() };
        let (seq, ack) = (0xffff_ffe0u32.wrapping_add(seq.into()), 0xffff_ffe0u32.wrapping_add(ack.into()));
        let segment =
            Segment { flow, seq, ack, flags: flags & 0x17, payload, missing: usize::from(who >> 5 & 1) * 9 };
        table.segment(&segment, now, &mut |id, event| {
            let replica = replicas.entry(id).or_insert_with(|| Replica::new(true));
            match event {
                Event::Opened { .. } => {
                    replica.settle_all(now, &mut comparison);
                    *replica = Replica::new(true);
                    replica.connected(now);
                }
                Event::Said { bytes, answers, thought_ns, asked } => {
                    said += bytes.len() as u64;
                    replica.say((bytes, 0), &mut None, (answers, thought_ns, asked), (now, now));
                }
                Event::Asked { number, line, protocol } => {
                    replica.asked(number, line, protocol, &mut comparison)
                }
                Event::Greets => replica.greets(now, &mut comparison),
                Event::AskedWhole { number, bodyless } => replica.asked_whole(number, bodyless, now),
                Event::Holds { number, part } => replica.online_holds(number, part, &mut comparison),
                Event::Answered { number, bytes, line, ended } => {
                    replica.online((number, bytes, line, ended), now, &mut comparison);
                }
                Event::Unframed => replica.unframed(&mut comparison),
                Event::Unread => replica.unread(&mut comparison),
                Event::ServerFinished => replica.server_finished(),
                Event::Finished { answers } => replica.finish(answers, now),
                Event::Cut { answers } => replica.cut(answers, now),
                Event::Reset { answers } => replica.reset(answers, now),
                Event::Over { answers } => replica.over(answers, now),
            }
        });
        table.look(now, &mut |_, _| ());
        for replica in replicas.values_mut() {
            while let Step::Write(bytes) = replica.next(pace, now) {
                let count = bytes.len().min(3);
                replica.wrote(count, now);
                sent += count as u64;
            }
        }
    }
    table.finish(now, &mut |_, _| ());
    replicas.values_mut().for_each(|replica| replica.settle_all(now, &mut comparison));
    assert_eq!(comparison.contradiction(), None);
    assert!(sent <= said);
    assert_eq!(said, table.bytes.delivered);
    let frames = table.frames;
    let captured = frames.from_clients + frames.from_server + frames.other_flows;
    let mut funnel = Funnel { sessions: table.counts, bytes: table.bytes, ..Funnel::default() };
    funnel.frames = clone::funnel::Frames { captured, ..frames };
    assert_eq!(funnel.contradictions(), Vec::<String>::new());
});

/// Pieces of IP packets, each with a length in front: what is put together is a packet that reads as one, and each frame is in one.
fn pieces(bytes: &[u8]) {
    let (mut fragments, mut rest, mut taken, mut joined) = (Fragments::default(), bytes, 0, 0);
    while let Some((&length, behind)) = rest.split_first() {
        let (frame, behind) = behind.split_at(usize::from(length).min(behind.len()));
        rest = behind;
        taken += 1;
        if let Some(whole) = fragments.take(LinkType::ETHERNET, frame, taken) {
            joined += whole.frames;
            let _ = read(LinkType::ETHERNET, &whole.frame, whole.frame.len());
        }
    }
    assert!(joined <= taken);
}
