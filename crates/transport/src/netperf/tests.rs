//! Clients that want to keep others out, by counts.

use super::client::{Kind, Session, Test};
use super::server::{Event, Serving, serve};
use crate::phase::Stop;
use crate::socket::Options;
use endpoint::netperf::omni::Request;
use endpoint::netperf::plan::Length;
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::Duration;

/// A server for as long as `with` lasts; what it said of clients.
fn served(memory: u64, with: impl FnOnce(SocketAddr)) -> Vec<String> {
    let stop = Stop::new();
    let serving = Serving {
        at: vec!["127.0.0.1:0".parse().expect("one")],
        passphrase: None,
        serial: false,
        tests: 4,
        memory,
        v6_only: false,
    };
    let said = Mutex::new(Vec::new());
    let (tells, told) = channel();
    let tells = Mutex::new(tells);
    let tell = |event: Event<'_>| match event {
        Event::Listening(at) => tells.lock().expect("one").send(at).expect("told"),
        Event::Failed(_, why) => said.lock().expect("one").push(why),
        _ => {}
    };
    std::thread::scope(|scope| {
        let (stopped, serving, tell) = (stop.clone(), &serving, &tell);
        let server = scope.spawn(move || serve(serving, &stopped, &|| {}, tell));
        let at = told.recv_timeout(Duration::from_secs(60)).expect("listens");
        struct Ends(Stop);
        impl Drop for Ends {
            fn drop(&mut self) {
                self.0.set();
            }
        }
        let ends = Ends(stop);
        with(at);
        drop(ends);
        server.join().expect("a server").expect("serves");
    });
    said.into_inner().expect("one")
}

fn test(kind: Kind, length: Length, sizes: [u32; 2]) -> Test {
    Test {
        kind,
        datagrams: false,
        length,
        request: Request::default(),
        options: Options { nodelay: true, ..Options::default() },
        data_to: None,
        send_size: 0,
        recv_size: 0,
        request_size: sizes[0],
        response_size: sizes[1],
        burst: 0,
        ports: None,
        sendfile: false,
        avoid_copies: false,
        fill: None,
        core: None,
        wait: Duration::ZERO,
        loses_after: None,
        dont_route: false,
        measure_cpu: false,
    }
}

fn connect(at: SocketAddr) -> Session {
    Session::connect(at, &Options::default(), None).expect("connects")
}

#[test]
fn a_thousand_silent_connections_turn_nobody_away() {
    served(1 << 30, |at| {
        let held: Vec<TcpStream> = (0..1000).map(|_| TcpStream::connect(at).expect("connects")).collect();
        let run =
            connect(at).run(&test(Kind::Send, Length::Units(1_000_000), [1, 1]), &Stop::new(), None, &|_| {});
        assert_eq!(run.expect("a result").results.bytes_received, 1_000_000);
        drop(held);
    });
}

#[test]
fn memory_is_that_of_all_tests_together_and_a_refusal_says_so() {
    let said = served(400_000, |at| {
        let large = test(Kind::Transact, Length::Units(1), [1 << 20, 1]);
        let error = connect(at).run(&large, &Stop::new(), None, &|_| {}).expect_err("too much");
        assert!(error.to_string().contains("Cannot allocate memory"), "{error}");
        let small = test(Kind::Transact, Length::Units(3), [1, 1]);
        assert_eq!(connect(at).run(&small, &Stop::new(), None, &|_| {}).expect("a result").transactions, 3);
    });
    assert!(said.iter().any(|said| said.contains("and of the 400000 of all tests 0 are taken")), "{said:?}");
}

/// netperf `-r 33554432,1`: twice what an exchange took before, in silence.
#[test]
fn a_request_of_32_mib_is_carried_whole() {
    served(1 << 30, |at| {
        let large = test(Kind::Transact, Length::Units(2), [32 << 20, 1]);
        let run = connect(at).run(&large, &Stop::new(), None, &|_| {}).expect("a result");
        assert_eq!((run.sent.0, run.results.bytes_received, run.transactions), (64 << 20, 64 << 20, 2));
        // What the kernel carried over this host's interfaces is no less; see the end-to-end tests.
    });
}
