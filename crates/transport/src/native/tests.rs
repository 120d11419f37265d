mod many;
mod steps;
mod strangers;

use super::{Client, ClientError, Outcome, Place, Server, ServerOptions, Standing, Test, serve};
use crate::exchange::Exchange;
use crate::phase::Stop;
use crate::socket::Options;
use endpoint::native::{End, From as Sender, Limits, Plan, Reason, Work};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A server for as long as `with` lasts.
fn served<T>(options: ServerOptions, with: impl FnOnce(&Place, &dyn Fn() -> Standing) -> T) -> T {
    let stop = Stop::new();
    let listen = if options.unix.is_empty() { vec!["127.0.0.1:0".parse().expect("one")] } else { Vec::new() };
    let server = Server::bind(ServerOptions { listen, ..options }, &stop).expect("listens");
    let place = match server.addresses().first() {
        Some(at) => Place::Host(*at),
        None => Place::Unix(server.paths().next().expect("one").to_owned()),
    };
    let standing = server.standing();
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| serve(&server));
        // Also if `with` panics.
        struct Ends(Stop);
        impl Drop for Ends {
            fn drop(&mut self) {
                self.0.set();
            }
        }
        let ends = Ends(stop);
        let got = with(&place, &standing);
        drop(ends);
        serving.join().expect("a server").expect("serves");
        got
    })
}

fn connect(place: &Place, token: Option<&[u8]>) -> Result<Client, ClientError> {
    Client::connect(place, &Options::default(), token, "", (Duration::from_secs(10), Arc::default()))
}

fn test(work: Work, datagrams: bool) -> Test {
    let plan = Plan {
        work,
        datagrams,
        flows: 2,
        duration_ns: 200_000_000,
        warm_up_ns: 0,
        size: 1000,
        hold: 0,
        request: 10,
        response: 20,
        interval_ns: 50_000_000,
        end: End::default(),
    };
    let (end, own) = (End::default(), Options::default());
    Test {
        plan,
        end,
        exchange: Exchange::new(1, 1),
        bytes: None,
        count: None,
        threads: None,
        handshake: Duration::from_secs(10),
        own,
    }
}

fn run(client: Client, test: &Test) -> Outcome {
    let prepared = client.prepare(test).expect("prepares");
    let mut running = prepared.start().expect("begins");
    while !running.look() {
        std::thread::sleep(Duration::from_millis(5));
    }
    running.finish()
}

const WORKS: [(Work, bool); 6] = [
    (Work::Stream { from: Sender::Client }, false),
    (Work::Stream { from: Sender::Server }, false),
    (Work::Exchange, false),
    (Work::Each, false),
    (Work::Exchange, true),
    (Work::Stream { from: Sender::Client }, true),
];

#[test]
fn every_kind_of_test_is_done_one_after_the_other_on_one_connection() {
    served(ServerOptions::default(), |place, standing| {
        let mut client = connect(place, None).expect("connects");
        assert!(client.host().cores >= 1 && client.host().congestion.is_some());
        for (work, datagrams) in WORKS {
            let mut test = test(work, datagrams);
            if datagrams {
                test.end.bits_per_second = Some(10_000_000);
            }
            let outcome = run(client, &test);
            assert!(outcome.error.is_none(), "{work:?}: {:?}", outcome.error);
            let (ours, theirs) = (&outcome.ours, outcome.theirs.as_deref().expect("their results"));
            assert_eq!((ours.error.as_deref(), theirs.error.as_deref()), (None, None), "{work:?}");
            assert!(ours.bytes > 0 && ours.seconds > 0.0, "{work:?}: {ours:?}");
            if matches!(work, Work::Stream { .. }) {
                assert_eq!(ours.bytes, theirs.bytes, "{work:?} {datagrams}");
                assert!(theirs.seconds > 0.0 && outcome.latency.is_empty());
            } else {
                let timed = outcome.latency.count();
                assert!((ours.count..=ours.count + 2).contains(&timed), "{work:?}: {timed}");
                assert_eq!(ours.bytes, ours.count * 30);
                assert!(theirs.count >= ours.count, "{work:?}");
            }
            let is_tcp = !datagrams && work != Work::Each;
            assert_eq!((ours.tcp.is_some(), ours.flows[0].tcp.is_some()), (is_tcp, is_tcp), "{work:?}");
            assert!(ours.cpu.is_some() && theirs.cpu.is_some() && !theirs.shared);
            client = outcome.client.expect("for another test");
        }
        client.bye();
        // The last test is counted after its results were sent.
        let late = Instant::now() + Duration::from_secs(10);
        while standing().done < 6 && Instant::now() < late {
            std::thread::sleep(Duration::from_millis(10));
        }
        let now = standing();
        assert_eq!((now.done, now.broken), (6, 0));
    });
}

#[test]
fn what_comes_in_the_warm_up_is_not_counted() {
    served(ServerOptions::default(), |place, _| {
        let mut test = test(Work::Stream { from: Sender::Client }, false);
        test.end.bits_per_second = Some(8_000_000);
        (test.plan.warm_up_ns, test.plan.duration_ns) = (200_000_000, 400_000_000);
        let outcome = run(connect(place, None).expect("connects"), &test);
        let theirs = outcome.theirs.expect("their results");
        let all: u64 = outcome.ours.flows.iter().map(|flow| flow.bytes).sum();
        // Two flows of 1 MB/s: 0.4 s of them, of which 0.2 s count.
        assert!(all > outcome.ours.bytes && outcome.ours.bytes > 0, "{all} {}", outcome.ours.bytes);
        assert!(theirs.bytes > 0 && theirs.bytes < all);
    });
}

#[test]
fn unix_sockets_carry_streams_and_transactions() {
    let dir = tempfile::tempdir().expect("a folder");
    let options = ServerOptions { unix: vec![dir.path().join("at")], ..ServerOptions::default() };
    served(options, |place, _| {
        for (work, datagrams) in WORKS {
            let client = connect(place, None).expect("connects");
            let test = test(work, datagrams);
            if datagrams || work == Work::Each {
                let said = client.prepare(&test).expect_err("not possible").to_string();
                assert!(said.starts_with("over a Unix socket there are streams"), "{said}");
                continue;
            }
            let outcome = run(client, &test);
            assert!(outcome.error.is_none() && outcome.ours.bytes > 0, "{work:?}: {:?}", outcome.error);
            assert!(outcome.ours.tcp.is_none());
        }
    });
    assert!(!dir.path().join("at").exists(), "its socket is left");
}

#[test]
fn who_has_not_the_token_is_refused_and_who_has_it_is_served() {
    let options = ServerOptions { token: Some(b"secret".to_vec()), ..ServerOptions::default() };
    served(options, |place, _| {
        assert!(matches!(connect(place, None), Err(ClientError::NoToken)));
        match connect(place, Some(b"guess")) {
            Err(ClientError::Refused(refused)) => assert_eq!(refused.reason, Reason::Token),
            other => panic!("{other:?}"),
        }
        connect(place, Some(b"secret")).expect("served").bye();
    });
    served(ServerOptions::default(), |place, _| {
        assert!(matches!(connect(place, Some(b"secret")), Err(ClientError::NotProved)));
    });
}

#[test]
fn garbage_and_absurd_lengths_are_refused_and_the_next_client_is_served() {
    served(ServerOptions::default(), |place, standing| {
        let Place::Host(at) = place else { panic!("no address") };
        let hello = |bytes: &[u8]| {
            let mut stream = TcpStream::connect(at).expect("connects");
            stream.set_read_timeout(Some(Duration::from_secs(10))).expect("set");
            let _ = stream.write_all(bytes);
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer);
            answer
        };
        assert_eq!(hello(b"GET / HTTP/1.1\r\n\r\n"), b"");
        let absurd = hello(b"NETDYNO1C\xff\xff\xff\xff");
        assert!(String::from_utf8_lossy(&absurd).contains("4294967295 bytes"), "{absurd:?}");
        assert!(String::from_utf8_lossy(&hello(b"NETDYNO1C\0\0\0\x03{}{")).contains("cannot be read"));
        // A data connection of a test that nobody has.
        assert_eq!(hello(&endpoint::native::Preamble::Data { key: [9; 16], flow: 0 }.bytes()), b"");
        let outcome = run(connect(place, None).expect("connects"), &test(Work::Exchange, false));
        assert!(outcome.error.is_none() && outcome.ours.count > 0);
        assert!(standing().refused >= 4, "{:?}", standing());
    });
}

#[test]
fn more_than_the_server_permits_is_refused_and_less_is_done_after_that() {
    let limits = Limits { flows: 1, duration_ns: 250_000_000, ..Limits::default() };
    served(ServerOptions { limits, clients: 1, ..ServerOptions::default() }, |place, _| {
        let client = connect(place, None).expect("connects");
        match connect(place, None) {
            Err(ClientError::Refused(refused)) => assert_eq!(refused.reason, Reason::Busy),
            other => panic!("{other:?}"),
        }
        match client.prepare(&test(Work::Exchange, false)) {
            Err(ClientError::Refused(refused)) => assert!(refused.said.starts_with("flows: 2"), "{refused}"),
            other => panic!("{other:?}"),
        }
        let mut less = test(Work::Exchange, false);
        less.plan.flows = 1;
        // The one before is gone when its connection is closed.
        let by = Instant::now() + Duration::from_secs(10);
        let client = loop {
            match connect(place, None) {
                Ok(client) => break client,
                Err(error) => assert!(Instant::now() < by, "{error}"),
            }
        };
        assert!(run(client, &less).error.is_none());
    });
}

#[test]
fn datagrams_are_sent_no_faster_than_the_server_permits() {
    let limits = Limits { bits_per_second: 4_000_000, ..Limits::default() };
    served(ServerOptions { limits, ..ServerOptions::default() }, |place, _| {
        let mut test = test(Work::Stream { from: Sender::Client }, true);
        // As fast as it goes: at the server's rate.
        let outcome = run(connect(place, None).expect("connects"), &test);
        assert!(outcome.error.is_none(), "{:?}", outcome.error);
        let most = 4e6 / 8.0 * outcome.ours.seconds + 10_000.0;
        assert!(outcome.ours.bytes > 0 && (outcome.ours.bytes as f64) < most, "{}", outcome.ours.bytes);
        test.end.bits_per_second = Some(3_000_000);
        match connect(place, None).expect("connects").prepare(&test) {
            Err(ClientError::Test(said)) => assert!(said.contains("permits 4000000"), "{said}"),
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn a_client_that_vanishes_in_the_middle_ends_its_test_only() {
    served(ServerOptions::default(), |place, standing| {
        let mut long = test(Work::Stream { from: Sender::Server }, false);
        long.plan.duration_ns = 60_000_000_000;
        let running = connect(place, None).expect("connects").prepare(&long).expect("ready").start();
        let running = running.expect("begins");
        let other = run(connect(place, None).expect("connects"), &test(Work::Exchange, false));
        assert!(other.error.is_none());
        assert!(other.theirs.expect("their results").shared, "another test ran beside it");
        // Nothing is said: its sockets are closed, as when a process is killed.
        drop(running);
        let by = Instant::now() + Duration::from_secs(20);
        while standing().tests > 0 || standing().broken == 0 {
            assert!(Instant::now() < by, "{:?}", standing());
            std::thread::sleep(Duration::from_millis(10));
        }
    });
}

#[test]
fn a_server_that_ends_says_so() {
    let stop = Stop::new();
    let listen = vec!["127.0.0.1:0".parse().expect("one")];
    let server = Server::bind(ServerOptions { listen, ..ServerOptions::default() }, &stop).expect("listens");
    let place = Place::Host(server.addresses()[0]);
    std::thread::scope(|scope| {
        scope.spawn(|| serve(&server));
        let mut long = test(Work::Exchange, false);
        long.plan.duration_ns = 60_000_000_000;
        let mut running =
            connect(&place, None).expect("connects").prepare(&long).expect("ready").start().expect("begins");
        stop.set();
        while !running.look() {
            std::thread::sleep(Duration::from_millis(5));
        }
        match running.finish().error {
            Some(ClientError::Refused(refused)) => assert_eq!(refused.reason, Reason::Ending),
            other => panic!("{other:?}"),
        }
    });
}
