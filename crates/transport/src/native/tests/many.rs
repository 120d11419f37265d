//! Tests of more connections than have a thread each, and connections that are opened and held.

use super::*;
use crate::crowd::calls::Opened;
use crate::pace::Rate;
use endpoint::native::FEW;

/// More than have a thread each.
const MANY: u32 = FEW + 36;

fn streams_and_transactions() -> impl Iterator<Item = Work> {
    WORKS.into_iter().filter(|(_, datagrams)| !datagrams).map(|(work, _)| work)
}

fn checked(outcome: &Outcome, work: Work) {
    assert!(outcome.error.is_none(), "{work:?}: {:?}", outcome.error);
    let (ours, theirs) = (&outcome.ours, outcome.theirs.as_deref().expect("their results"));
    assert_eq!((ours.error.as_deref(), theirs.error.as_deref()), (None, None), "{work:?}");
    assert!(ours.bytes > 0 && ours.seconds > 0.0, "{work:?}: {ours:?}");
    if matches!(work, Work::Stream { .. }) {
        assert_eq!(ours.bytes, theirs.bytes, "{work:?}");
    } else {
        // What waited longest was still under way at the end, up to three over each connection.
        let waiting = if work == Work::Exchange { 3 * u64::from(MANY) } else { 0 };
        let timed = outcome.latency.count();
        assert!((ours.count..=ours.count + waiting).contains(&timed), "{work:?}: {timed} of {}", ours.count);
        assert_eq!(ours.bytes, ours.count * 30);
    }
}

#[test]
fn many_connections_by_few_threads_do_what_a_thread_each_does() {
    served(ServerOptions::default(), |place, _| {
        let mut client = connect(place, None).expect("connects");
        for work in streams_and_transactions() {
            // Here alone, and at both ends.
            for (flows, threads) in [(3, Some(2)), (MANY, None)] {
                let mut test = test(work, false);
                (test.plan.flows, test.threads) = (flows, threads);
                test.exchange.in_flight = 3;
                let outcome = run(client, &test);
                checked(&outcome, work);
                if work != Work::Each {
                    assert_eq!(outcome.ours.tcp.expect("TCP").connections, flows);
                    assert_eq!(outcome.ours.memory.expect("memory").connections, u64::from(flows));
                    // None of them was left out.
                    let idle = outcome.ours.flows.iter().filter(|flow| flow.bytes == 0).count();
                    assert_eq!(idle, 0, "{work:?}");
                }
                client = outcome.client.expect("for another test");
            }
        }
    });
}

#[test]
fn amounts_rates_and_an_open_loop_are_kept_to_by_few_threads() {
    served(ServerOptions::default(), |place, _| {
        let mut client = connect(place, None).expect("connects");
        // An amount of each connection, to the byte and to the transaction.
        for (work, bytes, count) in [
            (Work::Stream { from: Sender::Client }, Some(12_345), None),
            (Work::Exchange, None, Some(7)),
            (Work::Each, None, Some(2)),
        ] {
            let mut test = test(work, false);
            (test.plan.flows, test.plan.duration_ns) = (MANY, 60_000_000_000);
            (test.bytes, test.count) = (bytes, count);
            let outcome = run(client, &test);
            checked(&outcome, work);
            match bytes {
                Some(bytes) => assert_eq!(outcome.ours.bytes, bytes * u64::from(MANY)),
                None => assert_eq!(outcome.ours.count, count.expect("one") * u64::from(MANY), "{work:?}"),
            }
            client = outcome.client.expect("for another test");
        }
        // A schedule of each: never more than is due, and by a sender in time nearly as much.
        let mut paced = test(Work::Stream { from: Sender::Client }, false);
        paced.plan.flows = MANY;
        paced.end.bits_per_second = Some(800_000);
        let outcome = run(client, &paced);
        checked(&outcome, Work::Stream { from: Sender::Client });
        // 200 ms of 100 kB/s each: messages 0 to 20.
        assert!(outcome.ours.bytes <= 21 * 1000 * u64::from(MANY), "{}", outcome.ours.bytes);
        let mut open = test(Work::Exchange, false);
        open.plan.flows = MANY;
        open.exchange.rate = Some(Rate { count: 1000, per_ns: 1_000_000_000 * u64::from(MANY) });
        let outcome = run(outcome.client.expect("for another test"), &open);
        assert!(outcome.error.is_none());
        let ours = &outcome.ours;
        assert!(ours.count <= 201 && ours.count + ours.unsent > 100, "{} {}", ours.count, ours.unsent);
    });
}

fn opens(place: &Place, hold: u64, rate: Option<Rate>, flows: u32) -> Outcome {
    let mut test = test(Work::Open, false);
    (test.plan.request, test.plan.response, test.plan.hold, test.plan.flows) = (0, 0, hold, flows);
    test.exchange.rate = rate;
    let outcome = run(connect(place, None).expect("connects"), &test);
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
    outcome
}

#[test]
fn connections_are_opened_and_held_and_failures_told_by_their_reason() {
    served(ServerOptions::default(), |place, _| {
        let outcome = opens(place, 0, None, 8);
        let opened = outcome.ours.opened.clone().expect("opened");
        assert!(opened.opened > 0 && opened.failed() == 0 && opened.held == 0, "{opened:?}");
        assert_eq!(outcome.latency.count(), opened.opened);
        // So many, and no more; all of them open at the end, at both ends.
        let outcome = opens(place, 300, None, 8);
        let opened = outcome.ours.opened.clone().expect("opened");
        let wanted = Opened { attempts: 300, opened: 300, most: 300, held: 300, ..Opened::default() };
        assert_eq!(opened, wanted);
        for end in [&outcome.ours, outcome.theirs.as_deref().expect("theirs")] {
            assert_eq!(end.memory.expect("memory").connections, 300);
        }
        // With a schedule others follow, and the oldest leaves for each.
        let outcome = opens(place, 10, Some(Rate::per_second(500)), 16);
        let opened = outcome.ours.opened.clone().expect("opened");
        assert!((11..=101).contains(&opened.opened) && opened.failed() == 0, "{opened:?}");
        assert_eq!((opened.held, opened.broken), (10, 0), "{opened:?}");
        assert!(opened.most >= 10 && opened.most <= 26, "{opened:?}");
    });
}

#[test]
fn a_server_without_room_says_how_much_it_has_and_gives_it_back() {
    let options = ServerOptions { connections: 150, ..ServerOptions::default() };
    served(options, |place, standing| {
        let mut test = test(Work::Exchange, false);
        test.plan.flows = 200;
        let refused = connect(place, None).expect("connects").prepare(&test).expect_err("too many");
        let said = refused.to_string();
        assert!(
            said.contains("200 connections were asked for, and of the 150 that the server has"),
            "{said}"
        );
        // Twice: what one took the next one has.
        test.plan.flows = 120;
        for _ in 0..2 {
            checked(&run(connect(place, None).expect("connects"), &test), Work::Exchange);
            let late = Instant::now() + Duration::from_secs(10);
            while standing().tests > 0 && Instant::now() < late {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    });
}
