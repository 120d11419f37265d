//! Any bytes as messages of an exporter, one after the other, each behind its length in two bytes: templates of one are used by the
//! next. What is kept of them is bounded.
#![no_main]

use flow::collect::{Room, Session};
use libfuzzer_sys::fuzz_target;

const ROOM: usize = 1 << 20;

fuzz_target!(|bytes: &[u8]| {
    let (mut session, mut room, mut rest) = (Session::new(true), Room::of(ROOM), bytes);
    let (mut read, mut messages, mut total) = (0u64, 0u64, 0u64);
    while let Some((length, behind)) = rest.split_first_chunk::<2>() {
        let length = usize::from(u16::from_be_bytes(*length)).min(behind.len());
        let (message, behind) = behind.split_at(length);
        session.message(message, &mut room, &mut |record, others| {
            read += 1;
            assert!(others.iter().all(|other| other.bytes.len() <= ROOM));
            std::hint::black_box((record.times_ns, others.iter().map(flow::record::Other::unsigned).max()));
        });
        (messages, total, rest) = (messages + 1, total + length as u64, behind);
    }
    let counters = session.counters();
    let handed_on = counters.records + counters.two_way_records;
    assert_eq!((counters.messages, counters.bytes, handed_on), (messages, total, read));
});
