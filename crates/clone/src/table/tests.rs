//! Sessions as captures show them, with times that are made up.

use super::*;
use crate::packet::URG;

const MS: u64 = 1_000_000;

fn rules() -> Rules {
    Rules {
        server: None,
        port: 80,
        adopt: Adopt::SynOnly,
        copies: Copies::new(1.0).unwrap(),
        chosen_before: false,
        seed: 1,
        most_sessions: 1000,
        most_new: None,
        most_bits: None,
        ramp_ns: 0,
        gap_ns: 1000 * MS,
        idle_ns: 3_600_000 * MS,
        targets: [None; 2],
        never: [None; 2],
        own: None,
    }
}

/// A capture that is told segment by segment, and what comes of it, in words.
struct Tap {
    table: Table,
    now_ns: u64,
    log: Vec<String>,
}

impl Tap {
    fn new(rules: Rules) -> Tap {
        Tap { table: Table::new(rules), now_ns: 1, log: Vec::new() }
    }

    fn note(log: &mut Vec<String>) -> impl FnMut(Id, Event<'_>) {
        |id, event| {
            log.push(match event {
                Event::Opened { copies, .. } => format!("{id} opened {copies}"),
                Event::Said { bytes, answers, asked, .. } => {
                    format!("{id} said {} after {answers} asked {asked}", bytes.escape_ascii())
                }
                Event::Asked { .. } | Event::AskedWhole { .. } | Event::Holds { .. } => return,
                Event::Finished { answers } => format!("{id} Finished after {answers}"),
                Event::Reset { answers } => format!("{id} Reset after {answers}"),
                Event::Cut { .. } => format!("{id} Cut"),
                Event::Over { .. } => format!("{id} Over"),
                Event::Answered { number, bytes, ended, .. } => {
                    format!("{id} answered {number}: {bytes} {ended}")
                }
                other => format!("{id} {other:?}"),
            });
        }
    }

    fn take(
        &mut self,
        client: u16,
        to_server: bool,
        flags: u8,
        (seq, ack): (u32, u32),
        payload: &[u8],
        missing: usize,
    ) {
        let [a, b] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(IpAddr::from);
        let flow = FlowKey::new(a, b, 6, client, 80).unwrap();
        let flow = if to_server { flow } else { flow.reversed() };
        let segment = Segment { flow, seq, ack, flags, payload, missing };
        self.table.segment(&segment, self.now_ns, &mut Tap::note(&mut self.log));
    }

    fn client(&mut self, flags: u8, seq: u32, payload: &[u8]) {
        self.take(5000, true, flags, (seq, 0), payload, 0);
    }

    fn server(&mut self, flags: u8, seq: u32, ack: u32, payload: &[u8]) {
        self.take(5000, false, flags, (seq, ack), payload, 0);
    }

    fn handshake(&mut self) {
        self.client(SYN, 99, b"");
        self.server(SYN | ACK, 499, 100, b"");
        self.take(5000, true, ACK, (100, 500), b"", 0);
    }

    fn later(&mut self, ms: u64) {
        self.now_ns += ms * MS;
        self.table.look(self.now_ns, &mut Tap::note(&mut self.log));
    }

    fn log(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }
}

#[test]
fn a_session_is_opened_by_the_third_segment_and_its_end_is_told() {
    let mut tap = Tap::new(rules());
    tap.client(SYN, 99, b"");
    tap.client(SYN, 99, b"");
    tap.server(SYN | ACK, 499, 100, b"");
    assert!(tap.log().is_empty());
    tap.take(5000, true, ACK, (100, 500), b"", 0);
    tap.client(ACK, 100, b"one");
    tap.server(ACK, 500, 103, b"ONE!");
    tap.client(ACK | FIN, 103, b"two");
    tap.server(ACK | FIN, 504, 107, b"");
    let wanted = [
        "0 opened 1",
        "0 said one after 0 asked 1",
        "0 answered 0: 4 false",
        "0 said two after 1 asked 2",
        "0 Finished after 0",
        "0 ServerFinished",
        "0 Over",
    ];
    assert_eq!(tap.log(), wanted);
    // What comes late is no session of its own.
    tap.client(ACK, 107, b"");
    tap.later(3000);
    assert_eq!((tap.table.known(), tap.table.counts.seen, tap.table.counts.copied), (0, 1, 1));
}

#[test]
fn a_flood_of_syns_opens_nothing_and_is_bounded() {
    let mut tap = Tap::new(rules());
    for n in 0..100_000u32 {
        let client = IpAddr::from((0x0b00_0000 + n).to_be_bytes());
        let flow = FlowKey::new(client, IpAddr::from([10, 0, 0, 2]), 6, 7, 80).unwrap();
        let segment = Segment { flow, seq: n, ack: 0, flags: SYN, payload: b"", missing: 0 };
        tap.table.segment(&segment, 1, &mut Tap::note(&mut tap.log));
    }
    assert_eq!((tap.log().len(), tap.table.known()), (0, MOST_HALF_OPEN));
    tap.later(31_000);
    assert_eq!((tap.table.known(), tap.table.counts.half_open), (0, 100_000));
}

#[test]
fn ports_that_are_used_again_are_new_sessions() {
    let mut tap = Tap::new(rules());
    tap.handshake();
    tap.client(ACK, 100, b"old");
    tap.client(SYN, 7000, b"");
    tap.server(SYN | ACK, 1, 7001, b"");
    tap.take(5000, true, ACK, (7001, 2), b"new", 0);
    let log = tap.log();
    assert_eq!(log[2..], ["0 Cut", "0 Over", "0 opened 1", "0 said new after 0 asked 1"]);
    assert_eq!((tap.table.counts.replaced, tap.table.counts.copied), (1, 2));
}

#[test]
fn numbers_wrap_within_a_session() {
    let mut tap = Tap::new(rules());
    tap.client(SYN, u32::MAX - 1, b"");
    tap.server(SYN | ACK, u32::MAX, u32::MAX, b"");
    tap.client(ACK, u32::MAX, b"ab");
    tap.server(ACK, 0, 1, b"xyz");
    tap.client(ACK, 1, b"c");
    let said: Vec<_> = tap.log().into_iter().filter(|line| line.contains("said")).collect();
    assert_eq!(said, ["0 said ab after 0 asked 1", "0 said c after 1 asked 2"]);
}

#[test]
fn a_gap_ends_a_session_and_what_lies_behind_it_is_never_said() {
    let mut tap = Tap::new(rules());
    tap.handshake();
    tap.client(ACK, 100, b"a");
    tap.client(ACK, 105, b"late");
    tap.later(900);
    assert!(!tap.log().iter().any(|line| line.contains("Cut")));
    tap.later(200);
    assert_eq!(tap.log(), ["0 Cut", "0 Over"]);
    assert_eq!((tap.table.counts.gaps, tap.table.bytes.delivered, tap.table.bytes.behind_gaps), (1, 1, 4));
    // One that is filled does not.
    let mut tap = Tap::new(rules());
    tap.handshake();
    tap.client(ACK, 102, b"c");
    tap.later(500);
    tap.client(ACK, 100, b"ab");
    tap.later(5000);
    assert_eq!(tap.log()[1..], ["0 said ab after 0 asked 1", "0 said c after 0 asked 1"]);
}

#[test]
fn bytes_that_the_server_has_and_the_capture_has_not_are_the_captures_loss() {
    let mut tap = Tap::new(rules());
    tap.handshake();
    tap.client(ACK, 100, b"a");
    tap.server(ACK, 500, 110, b"");
    tap.later(50);
    tap.client(ACK, 110, b"z");
    tap.later(60);
    assert_eq!(tap.log()[2..], ["0 Cut", "0 Over"]);
    assert_eq!((tap.table.counts.missed, tap.table.counts.gaps), (1, 0));
    // Segments that came in another order than they were sent are no loss.
    let mut tap = Tap::new(rules());
    tap.handshake();
    tap.server(ACK, 500, 103, b"");
    tap.client(ACK, 100, b"abc");
    tap.server(ACK, 500, 103, b"");
    tap.later(5000);
    assert_eq!((tap.log().len(), tap.table.counts.missed), (2, 0));
}

#[test]
fn a_segment_captured_in_part_ends_its_session() {
    let mut tap = Tap::new(rules());
    tap.handshake();
    tap.take(5000, true, ACK, (100, 0), b"abc", 1000);
    tap.take(5000, true, ACK, (1103, 0), b"more", 0);
    tap.later(1100);
    assert_eq!(tap.log()[1..], ["0 said abc after 0 asked 1", "0 Cut", "0 Over"]);
    assert_eq!((tap.table.counts.truncated, tap.table.frames.truncated), (1, 1));
}

/// Of `X` sent with MSG_OOB a server reads `GET` behind it; a copy is told `XGET`.
#[test]
fn urgent_data_is_copied_in_line_and_counted() {
    let mut tap = Tap::new(rules());
    tap.handshake();
    tap.take(5000, true, ACK | URG, (100, 0), b"X", 0);
    tap.take(5000, true, ACK, (101, 0), b"GET", 0);
    // Its pointer may stay set where nothing is said.
    tap.take(5000, true, ACK | URG, (104, 0), b"", 0);
    let log = tap.log();
    let said: Vec<&str> = log[1..].iter().map(|line| line.split(" after").next().unwrap_or("")).collect();
    assert_eq!(said, ["0 said X", "0 said GET"]);
    assert_eq!((tap.table.frames.urgent, tap.table.frames.from_clients), (1, 5));
    // Sent again, it is nothing new.
    tap.take(5000, true, ACK | URG, (100, 0), b"X", 0);
    // Out of order it is said when what was before it is there.
    tap.take(5000, true, ACK | URG, (105, 0), b"Y", 0);
    assert_eq!(tap.table.frames.urgent, 1);
    tap.take(5000, true, ACK, (104, 0), b"x", 0);
    assert_eq!(tap.table.frames.urgent, 2);
}

#[test]
fn urgent_data_of_sessions_that_are_not_copied_is_not_counted() {
    // Open before the start, and so left out.
    let mut tap = Tap::new(rules());
    tap.take(5000, true, ACK | URG, (100, 0), b"X", 0);
    tap.take(5000, true, ACK | URG, (101, 0), b"Y", 0);
    assert_eq!((tap.table.frames.urgent, tap.table.frames.from_clients), (0, 2));
    // Behind a gap that stays, it is never said.
    let mut tap = Tap::new(rules());
    tap.handshake();
    tap.take(5000, true, ACK | URG, (101, 0), b"X", 0);
    tap.later(60_000);
    assert_eq!((tap.table.frames.urgent, tap.table.counts.gaps), (0, 1));
}

#[test]
fn keepalives_and_segments_sent_again_are_said_once() {
    let mut tap = Tap::new(rules());
    tap.handshake();
    tap.client(ACK, 100, b"abc");
    tap.client(ACK, 100, b"abX");
    tap.server(ACK, 500, 103, b"");
    tap.client(ACK, 102, b"\0");
    tap.client(ACK, 102, b"");
    assert_eq!(tap.log().len(), 2);
    assert_eq!((tap.table.bytes.repeated, tap.table.bytes.different), (4, 1));
}

#[test]
fn resets_are_told_and_blind_ones_are_not() {
    let mut tap = Tap::new(rules());
    tap.handshake();
    tap.client(RST, 100_000_000, b"");
    assert_eq!(tap.log(), ["0 opened 1"]);
    tap.client(RST | ACK, 100, b"");
    assert_eq!(tap.log(), ["0 Reset after 0", "0 Over"]);
    tap.client(SYN, 5, b"");
    tap.server(RST | ACK, 0, 6, b"");
    assert_eq!(tap.table.counts.refused, 1);
}

#[test]
fn sessions_that_were_open_are_adopted_where_the_policy_allows_it() {
    // (policy, does the server answer first, milliseconds of silence, what the client says) -> adopted?
    let idle = Adopt::Idle(200 * MS);
    for (adopt, answered, quiet, says, adopted) in [
        (Adopt::SynOnly, true, 1000, &b"GET / HTTP/1.1\r\n\r\n"[..], false),
        (idle, true, 1000, b"anything", true),
        (idle, true, 100, b"anything", false),
        (Adopt::HttpBoundary, true, 0, b"GET / HTTP/1.1\r\n\r\n", true),
        (Adopt::HttpBoundary, false, 0, b"GET / HTTP/1.1\r\n\r\n", false),
        (Adopt::HttpBoundary, true, 0, b"the rest of a body", false),
    ] {
        let mut tap = Tap::new(Rules { adopt, ..rules() });
        tap.take(5000, true, ACK, (1000, 500), b"rest", 0);
        if answered {
            tap.take(5000, false, ACK, (500, 1004), b"answer", 0);
        }
        tap.later(quiet);
        tap.take(5000, true, ACK, (1004, 506), says, 0);
        assert_eq!(tap.log().iter().any(|line| line.contains("opened")), adopted, "{adopt:?} {quiet}");
        assert_eq!(
            (tap.table.counts.adopted, tap.table.counts.waiting),
            (u64::from(adopted), u64::from(!adopted))
        );
    }
}

#[test]
fn what_is_not_taken_is_counted_by_its_reason() {
    let taken = |rules: Rules, count: u16| {
        let mut tap = Tap::new(rules);
        for client in 1..=count {
            tap.take(client, true, SYN, (99, 0), b"", 0);
            tap.take(client, false, SYN | ACK, (499, 100), b"", 0);
            tap.take(client, true, ACK, (100, 500), b"x", 0);
        }
        tap.table.finish(1, &mut |_, _| ());
        let counts = tap.table.counts;
        let all = counts.copied + counts.sampled_out + counts.over_sessions + counts.over_rate + counts.own;
        assert_eq!((counts.seen, all + counts.ramped_out), (u64::from(count), u64::from(count)));
        counts
    };
    assert_eq!(taken(Rules { most_sessions: 5, ..rules() }, 20).over_sessions, 15);
    assert_eq!(taken(Rules { most_new: Some(5), ..rules() }, 20).over_rate, 15);
    assert_eq!(taken(Rules { ramp_ns: 1 << 60, ..rules() }, 20).ramped_out, 20);
    assert_eq!(taken(Rules { targets: [Some(IpAddr::from([10, 0, 0, 1])), None], ..rules() }, 20).own, 20);
    assert_eq!(taken(Rules { own: Some((IpAddr::from([10, 0, 0, 0]), 24)), ..rules() }, 20).own, 20);
    assert_eq!(taken(Rules { own: Some((IpAddr::from([10, 0, 1, 0]), 24)), ..rules() }, 20).own, 0);
    let half = taken(Rules { copies: Copies::new(0.5).unwrap(), ..rules() }, 400).sampled_out;
    assert!((120..280).contains(&half), "{half}");
    // One byte a second: after the first, there is no room.
    assert_eq!(taken(Rules { most_bits: Some(8), ..rules() }, 3).over_rate, 2);
}

#[test]
fn requests_in_a_row_are_answered_one_by_one_and_bodies_need_not_be_captured() {
    let mut tap = Tap::new(rules());
    tap.handshake();
    let [head, get] = [&b"HEAD / HTTP/1.1\r\n\r\n"[..], b"GET / HTTP/1.1\r\n\r\n"];
    tap.client(ACK, 100, &[head, get].concat());
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n";
    tap.server(ACK, 500, 137, &[&answer[..], answer].concat());
    let at = 500 + 2 * answer.len() as u32;
    tap.take(5000, false, ACK, (at, 137), b"", 999);
    tap.server(ACK, at + 999, 137, b"x");
    let log = tap.log();
    let size = answer.len();
    let wanted = [format!("0 answered 0: {size} true"), format!("0 answered 1: {size} false")];
    assert_eq!(log[2..4], wanted);
    assert_eq!(log[4..], ["0 answered 1: 999 false", "0 answered 1: 1 true"]);
    tap.client(ACK, 137, get);
    assert!(tap.log()[0].ends_with("after 2 asked 3"));
}

#[test]
fn the_books_are_balanced_whatever_segments_come() {
    use proptest::prelude::*;
    let step = (
        0u16..4,
        any::<bool>(),
        prop_oneof![Just(SYN), Just(ACK), Just(ACK | FIN), Just(RST), Just(SYN | ACK)],
        0u32..60,
        0u32..60,
        0usize..30,
        0usize..3,
        0u64..400,
    );
    proptest!(ProptestConfig::with_cases(1000), |(steps in proptest::collection::vec(step, 1..120), adopt in 0..3)| {
        let adopt = [Adopt::SynOnly, Adopt::Idle(100 * MS), Adopt::HttpBoundary][adopt as usize];
        let mut tap = Tap::new(Rules { adopt, most_sessions: 3, ..rules() });
        let mut said = 0;
        for (client, to_server, flags, seq, ack, length, missing, ms) in steps {
            let bytes = b"GET / HTTP/1.1\r\n\r\n0123456789ab";
            tap.take(client + 1, to_server, flags, (seq, ack), &bytes[..length], missing);
            tap.later(ms);
        }
        tap.table.finish(tap.now_ns, &mut Tap::note(&mut tap.log));
        for line in tap.log() {
            if let Some((_, rest)) = line.split_once(" said ") {
                said += rest.split(" after ").next().unwrap_or_default().replace("\\r", "R").replace("\\n", "N").len() as u64;
            }
        }
        let mut funnel = crate::funnel::Funnel { frames: tap.table.frames, sessions: tap.table.counts, bytes: tap.table.bytes, ..Default::default() };
        funnel.frames.captured = funnel.frames.from_clients + funnel.frames.from_server;
        prop_assert_eq!(funnel.contradictions(), Vec::<String>::new());
        prop_assert_eq!(said, tap.table.bytes.delivered);
        prop_assert_eq!((tap.table.known(), tap.table.open(), tap.table.counts.waiting), (0, 0, 0));
    });
}

#[test]
fn who_does_not_know_the_servers_number_opens_nothing() {
    let mut tap = Tap::new(rules());
    tap.client(SYN, 99, b"");
    tap.server(SYN | ACK, 499, 100, b"");
    for ack in [0, 499, 500 + (1 << 25)] {
        tap.take(5000, true, ACK, (100, ack), b"invented", 0);
    }
    assert!(tap.log().is_empty());
    tap.take(5000, true, ACK, (100, 500), b"", 0);
    assert_eq!(tap.log(), ["0 opened 1"]);
}

#[test]
fn a_flood_of_acks_is_bounded_and_each_is_counted() {
    let mut tap = Tap::new(rules());
    let all = MOST_STRANGE as u32 + 10_000;
    for n in 0..all {
        let client = IpAddr::from((0x0b00_0000 + n).to_be_bytes());
        let flow = FlowKey::new(client, IpAddr::from([10, 0, 0, 2]), 6, 7, 80).unwrap();
        let segment = Segment { flow, seq: n, ack: 0, flags: ACK, payload: b"x", missing: 0 };
        tap.table.segment(&segment, 1, &mut Tap::note(&mut tap.log));
    }
    assert_eq!((tap.log().len(), tap.table.known()), (0, MOST_STRANGE));
    let counts = tap.table.counts;
    assert_eq!(
        (counts.seen, counts.midstream, counts.waiting),
        (u64::from(all), 10_000, MOST_STRANGE as u64)
    );
}

#[test]
fn what_waits_for_gaps_is_bounded_over_all_sessions() {
    let mut tap = Tap::new(Rules { gap_ns: u64::MAX / 4, ..rules() });
    let piece = vec![7; 4 << 20];
    for client in 5000..5100 {
        tap.take(client, true, SYN, (99, 0), b"", 0);
        tap.take(client, false, SYN | ACK, (499, 100), b"", 0);
        tap.take(client, true, ACK, (100, 500), b"", 0);
        tap.take(client, true, ACK, (200, 500), &piece, 0);
        assert!(tap.table.early <= MOST_EARLY + piece.len() as u64);
    }
    assert_eq!(tap.table.counts.too_early, 100 - MOST_EARLY / (4 << 20));
    tap.table.finish(tap.now_ns, &mut |_, _| ());
    assert_eq!((tap.table.early, tap.table.bytes.behind_gaps), (0, 100 * (4 << 20)));
}

#[test]
fn above_a_ceiling_nobody_new_is_copied_and_whole_sessions_are_given_up() {
    let mut tap = Tap::new(rules());
    let open = |tap: &mut Tap, client: u16| {
        tap.take(client, true, SYN, (99, 0), b"", 0);
        tap.take(client, false, SYN | ACK, (499, 100), b"", 0);
        tap.take(client, true, ACK, (100, 500), b"", 0);
    };
    (1..=4).for_each(|client| open(&mut tap, client));
    tap.table.hold_back(true);
    open(&mut tap, 5);
    tap.table.shed(3, &mut Tap::note(&mut tap.log));
    tap.table.hold_back(false);
    open(&mut tap, 6);
    let s = tap.table.counts;
    assert_eq!((s.seen, s.copied, s.over_ceiling, s.shed, tap.table.open()), (6, 5, 1, 3, 2));
    let log = tap.log();
    let of = |what: &str| log.iter().filter(|line| line.ends_with(what)).count();
    assert_eq!((of("opened 1"), of("Cut"), of("Over")), (5, 3, 3));
    // What the given-up ones say afterwards is said to nobody.
    (1..=4).for_each(|client| tap.take(client, true, ACK, (100, 500), b"more", 0));
    let said = tap.log().iter().filter(|line| line.contains("said more")).count();
    assert_eq!(said, 1);
    // More than there are.
    tap.table.shed(9, &mut Tap::note(&mut tap.log));
    assert_eq!((tap.table.counts.shed, tap.table.open()), (5, 0));
}

#[test]
fn a_flow_to_a_target_is_no_servers_when_no_server_is_named() {
    let target = IpAddr::from([10, 0, 0, 2]);
    let mut tap = Tap::new(Rules { targets: [None, Some(target)], ..rules() });
    tap.handshake();
    assert_eq!((tap.log().len(), tap.table.counts.seen, tap.table.frames.other_flows), (0, 0, 3));
    let mut tap =
        Tap::new(Rules { server: Some(target), targets: [None, Some([10, 0, 0, 1].into())], ..rules() });
    tap.handshake();
    assert_eq!((tap.log().len(), tap.table.counts.own), (0, 1), "the target is a client of the server");
}

#[test]
fn a_session_of_the_target_itself_is_not_copied_onto_it() {
    let server = IpAddr::from([10, 0, 0, 2]);
    for (port, copied) in [(80, 0), (81, 1)] {
        let mut tap = Tap::new(Rules { never: [None, Some((server, port))], ..rules() });
        tap.handshake();
        assert_eq!((tap.table.counts.copied, tap.table.counts.own), (copied, 1 - copied));
    }
}

#[test]
fn sessions_that_their_capture_gives_up_end_as_they_stand_and_no_others() {
    let mut tap = Tap::new(rules());
    tap.table.comes_from(1);
    tap.handshake();
    tap.client(ACK, 100, b"GET / HT");
    tap.table.comes_from(2);
    for port in [5001, 5002] {
        tap.take(port, true, SYN, (99, 0), b"", 0);
        tap.take(port, false, SYN | ACK, (499, 100), b"", 0);
    }
    tap.take(5001, true, ACK, (100, 500), b"GET / HT", 0);
    tap.log.clear();
    let [a, b] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(IpAddr::from);
    let flow = |port| FlowKey::new(a, b, 6, port, 80).unwrap();
    tap.table.abandon(&flow(5000), 2, &mut Tap::note(&mut tap.log));
    tap.table.abandon(&flow(5000), 2, &mut Tap::note(&mut tap.log));
    assert_eq!(tap.log, ["0 Cut", "0 Over"]);
    // What comes late is of no session that is copied.
    tap.client(ACK, 108, b"TP/1.1");
    assert_eq!((tap.log.len(), tap.table.open()), (2, 1));
    tap.table.abandon_all(1, 3, &mut Tap::note(&mut tap.log));
    assert_eq!(tap.table.open(), 1);
    tap.table.abandon_all(2, 3, &mut Tap::note(&mut tap.log));
    assert_eq!((tap.table.open(), tap.table.counts.unforwarded, tap.table.counts.half_open), (0, 2, 1));
    let funnel = crate::funnel::Funnel {
        frames: crate::funnel::Frames::default(),
        sessions: tap.table.counts,
        bytes: tap.table.bytes,
        ..Default::default()
    };
    assert_eq!(funnel.contradictions(), [""; 0]);
}

#[test]
fn a_session_that_a_gap_cut_and_that_goes_on_is_counted_once() {
    let mut tap = Tap::new(Rules { adopt: Adopt::Idle(100 * MS), ..rules() });
    tap.handshake();
    tap.client(ACK, 100, b"a");
    tap.client(ACK, 105, b"late");
    tap.later(1100);
    assert_eq!(tap.log()[2..], ["0 Cut", "0 Over"]);
    // Long after late segments are waited for, it still speaks.
    tap.later(5000);
    tap.client(ACK, 109, b"more");
    tap.server(ACK, 500, 113, b"answer");
    tap.later(500);
    tap.client(ACK, 113, b"and more");
    assert_eq!((tap.log().len(), tap.table.counts.seen, tap.table.counts.waiting), (0, 1, 0));
    tap.client(ACK | FIN, 121, b"");
    tap.server(ACK | FIN, 506, 122, b"");
    tap.later(3000);
    assert_eq!((tap.table.known(), tap.table.counts.seen, tap.table.open()), (0, 1, 0));
}

#[test]
fn a_server_that_speaks_first_greets_and_answers_nothing() {
    let mut tap = Tap::new(rules());
    tap.handshake();
    tap.server(ACK, 500, 100, b"220 ready\r\n");
    tap.client(ACK, 100, b"HELO x\r\n");
    tap.server(ACK, 511, 108, b"250 x\r\n");
    tap.client(ACK, 108, b"QUIT\r\n");
    let wanted = [
        "0 opened 1",
        "0 Greets",
        "0 answered 0: 11 false",
        "0 said HELO x\\r\\n after 1 asked 2",
        "0 answered 1: 7 false",
        "0 said QUIT\\r\\n after 2 asked 3",
    ];
    assert_eq!(tap.log(), wanted);
}

#[test]
fn tls_is_not_copied_and_its_sessions_are_counted_once() {
    let hello = [&[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3][..], &[7; 500]].concat();
    let mut tap = Tap::new(rules());
    tap.handshake();
    tap.client(ACK, 100, &hello);
    tap.server(ACK, 500, 611, b"hello");
    tap.client(ACK, 611, b"sealed");
    assert_eq!(tap.log(), ["0 opened 1", "0 Cut", "0 Over"]);
    let counts = tap.table.counts;
    assert_eq!((counts.seen, counts.copied, counts.tls, tap.table.bytes.captured), (1, 0, 1, 0));
    // Who began without it is copied up to there.
    tap.take(5001, true, SYN, (99, 0), b"", 0);
    tap.take(5001, false, SYN | ACK, (499, 100), b"", 0);
    tap.take(5001, true, ACK, (100, 500), b"STARTTLS\r\n", 0);
    tap.take(5001, false, ACK, (500, 110), b"220 go on\r\n", 0);
    tap.take(5001, true, ACK, (110, 511), &hello, 0);
    assert!(tap.log().ends_with(&["1 Cut".to_owned(), "1 Over".to_owned()]));
    let counts = tap.table.counts;
    assert_eq!((counts.copied, counts.turned_tls, tap.table.bytes.delivered), (1, 1, 10));
    tap.table.finish(tap.now_ns, &mut |_, _| ());
    assert_eq!((tap.table.known(), tap.table.open()), (0, 0));
}

#[test]
fn the_end_says_how_much_the_server_had_answered() {
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let mut tap = Tap::new(rules());
    tap.handshake();
    let get = b"GET / HTTP/1.1\r\n\r\n";
    tap.client(ACK, 100, &[&get[..], get].concat());
    tap.server(ACK, 500, 136, answer);
    tap.client(ACK | FIN, 136, b"");
    assert_eq!(tap.log().last().map(String::as_str), Some("0 Finished after 1"));
}

#[test]
fn http2_is_copied_and_not_read() {
    let mut tap = Tap::new(rules());
    tap.handshake();
    tap.client(ACK, 100, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    let log = tap.log();
    assert_eq!(log[1], "0 Unread");
    assert!(log[2].starts_with("0 said PRI"), "{log:?}");
}
