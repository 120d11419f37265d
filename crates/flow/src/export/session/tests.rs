use super::*;
use crate::collect::{self, Room};
use crate::export::tests::{NOW, SECOND, flow, settings};
use crate::template::Context;
use proptest::prelude::*;

/// Messages of so many flows each, and by how much each raises the number.
fn messages(version: Version, flows: &[u32]) -> Vec<(Vec<u8>, u32)> {
    let mut exporter = Exporter::new(settings(version)).expect("the usual template").without_templates();
    let mut all = Vec::new();
    let mut keep = |message: Message<'_>| all.push((message.bytes.to_vec(), message.numbers));
    for (number, flows) in flows.iter().enumerate() {
        (0..*flows).for_each(|flow_number| {
            exporter.add(&flow(number as u32 * 1000 + flow_number), NOW, &mut keep);
        });
        exporter.flush(NOW, &mut keep);
    }
    all
}

/// A collector of messages, and what it made of them.
struct Collected {
    session: collect::Session,
    room: Room,
}

impl Collected {
    fn new() -> Collected {
        Collected { session: collect::Session::new(false), room: Room::of(1 << 20) }
    }

    fn take(&mut self, message: &[u8]) {
        self.session.message(message, &mut self.room, &mut |_, _| ());
    }
}

/// Sends a message as the probe does; what goes out.
fn send(session: &mut Session, (bytes, numbers): &(Vec<u8>, u32), now_ns: u64) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    if session.is_opening_due(now_ns) {
        let opening = session.opening(bytes);
        session.opened(&opening, now_ns);
        out.push(opening.bytes);
    }
    let mut bytes = bytes.clone();
    session.put_next(&mut bytes);
    session.number(*numbers);
    out.push(bytes);
    out
}

proptest! {
    /// However messages are shared among collectors, each reads all that it gets, and to none anything is missing.
    #[test]
    fn each_collector_has_templates_and_numbers_of_its_own(
        flows in proptest::collection::vec(1u32..40, 1..60),
        turns in proptest::collection::vec(0usize..3, 60..200),
        which in 0usize..3,
    ) {
        let version = [Version::V5, Version::V9, Version::Ipfix][which];
        let mut sessions: Vec<Session> =
            (0..3).map(|_| Session::new(settings(version)).expect("the usual template")).collect();
        let mut collectors: Vec<Collected> = (0..3).map(|_| Collected::new()).collect();
        for (message, turn) in messages(version, &flows).iter().zip(turns.iter().cycle()) {
            for bytes in send(&mut sessions[*turn], message, NOW) {
                collectors[*turn].take(&bytes);
            }
        }
        let all = collectors.iter().map(|one| *one.session.counters()).collect::<Vec<_>>();
        for one in &all {
            prop_assert_eq!((one.missing_records, one.missing_messages, one.waiting_sets), (0, 0, 0));
            prop_assert_eq!((one.malformed, one.restarts), (0, 0));
        }
        let read: u64 = all.iter().map(|one| one.records).sum();
        prop_assert_eq!(read, flows.iter().map(|flows| u64::from(*flows)).sum::<u64>());
    }
}

#[test]
fn what_one_collector_did_not_get_is_missing_there_alone() {
    for (version, missing) in [(Version::V5, (3, 0)), (Version::Ipfix, (3, 0)), (Version::V9, (0, 1))] {
        let mut session = Session::new(settings(version)).expect("the usual template");
        let mut collector = Collected::new();
        for (number, message) in messages(version, &[2, 3, 4]).iter().enumerate() {
            for bytes in send(&mut session, message, NOW).iter().filter(|_| number != 1) {
                collector.take(bytes);
            }
        }
        let counters = collector.session.counters();
        assert_eq!((counters.missing_records, counters.missing_messages), missing, "{version:?}");
        assert_eq!(counters.records, 6, "{version:?}");
    }
}

#[test]
fn templates_come_again_after_so_many_messages_and_so_long_and_at_once_where_nobody_listened() {
    let message = messages(Version::Ipfix, &[1]).remove(0);
    let mut session = Session::new(settings(Version::Ipfix)).expect("the usual template");
    let with_templates =
        |session: &mut Session, ms: u64| send(session, &message, NOW + ms * 1_000_000).len() == 2;
    // The first, then none until both twenty messages and a second have passed.
    let first: Vec<u64> = (0..100).filter(|at| with_templates(&mut session, at * 10)).collect();
    assert_eq!(first, [0]);
    assert!(with_templates(&mut session, 1000) && !with_templates(&mut session, 2500));
    // After a minute in any case.
    assert!(!with_templates(&mut session, 60_900) && with_templates(&mut session, 61_000));
    // Its host says that nobody listens: then at once, and each second until it should have said so again.
    session.was_refused(NOW + 61_010 * 1_000_000);
    let times = [61_020, 61_030, 62_000, 62_020, 62_500, 63_020, 63_900, 64_020, 64_100, 66_000];
    let told: Vec<u64> = times.into_iter().filter(|ms| with_templates(&mut session, *ms)).collect();
    assert_eq!(told, [61_020, 62_020, 63_020]);
}

#[test]
fn netflow_5_has_no_templates() {
    let message = messages(Version::V5, &[1]).remove(0);
    let mut session = Session::new(settings(Version::V5)).expect("one layout");
    assert_eq!(send(&mut session, &message, NOW).len(), 1);
    let mut said = 0;
    session.status(&Status::default(), (NOW, NOW), &mut |_, _| said += 1);
    assert_eq!(said, 0);
}

#[test]
fn what_a_session_begins_with_has_the_times_of_what_follows_and_says_how_packets_are_selected() {
    for version in [Version::V9, Version::Ipfix] {
        let settings = settings(version);
        let context = Context { sampling: 64, ..settings.context };
        let mut session = Session::new(Settings { context, ..settings }).expect("the usual template");
        let message = messages(version, &[1]).remove(0);
        let out = send(&mut session, &message, NOW);
        assert_eq!(out.len(), 2);
        // Export time, and of v9 the uptime.
        let times = if version == Version::V9 { 4..12 } else { 4..8 };
        assert_eq!(out[0].get(times.clone()), message.0.get(times), "{version:?}");
        let mut collector = collect::Session::new(false);
        let (mut room, mut read) = (Room::of(1 << 20), Vec::new());
        for bytes in &out {
            collector.message(bytes, &mut room, &mut |record, _| read.push(record.sampling));
        }
        assert_eq!((read, collector.counters().missing_records), (vec![64], 0), "{version:?}");
    }
}

#[test]
fn a_collector_is_told_what_went_to_it() {
    let mut session = Session::new(settings(Version::Ipfix)).expect("the usual template");
    let mut told = Vec::new();
    session.went(500, 7);
    session.went(100, 0);
    let opening = session.opening(&[0; 16]);
    session.opened(&opening, NOW);
    session.status(&Status::default(), (NOW, NOW - SECOND), &mut |message, numbers| {
        told.push((message.to_vec(), numbers));
    });
    let (said, numbers) = told.remove(0);
    let mut collector = Collected::new();
    collector.take(&opening.bytes);
    collector.take(&said);
    assert_eq!((collector.session.counters().options, collector.session.counters().malformed), (3, 0));
    // exportedMessageTotalCount, exportedFlowRecordTotalCount and exportedOctetTotalCount stand behind the domain.
    let at = 16 + 4 + 4;
    let words: Vec<u64> =
        said[at..].as_chunks::<8>().0.iter().take(3).map(|word| u64::from_be_bytes(*word)).collect();
    assert_eq!(words, [2, 7, 600]);
    // Once it is sent, the next message has the number behind them.
    assert_eq!((numbers, session.number(numbers), session.number(5)), (3, 0, 3));
}

#[test]
fn a_collector_is_new_until_it_has_templates_that_nobody_refused() {
    let mut session = Session::new(settings(Version::V9)).expect("the usual template");
    let message = messages(Version::V9, &[1]).remove(0);
    assert!(session.is_new(0));
    send(&mut session, &message, 0);
    assert!(!session.is_new(1));
    // Nobody was there: who comes then has no templates, and for some time nobody says so.
    session.was_refused(SECOND);
    assert!(session.is_new(SECOND) && session.is_opening_due(SECOND));
    send(&mut session, &message, SECOND);
    assert!(session.is_new(SECOND + SILENT_NS - 1) && !session.is_new(SECOND + SILENT_NS));
    // Version 5 has none.
    let mut session = Session::new(settings(Version::V5)).expect("its layout");
    session.was_refused(0);
    assert!(!session.is_new(0));
}
