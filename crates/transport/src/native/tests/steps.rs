//! Peers that vanish, lie or talk out of turn at each step of the protocol, at either end.

use super::*;
use crate::native::FromServer;
use crate::native::channel::ChannelError;
use crate::native::results::{Host, Sample};
use endpoint::native::{Preamble, ToClient, ToServer, VERSION, frame};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

/// Reads a message. None: the other end closed.
fn message(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).ok()?;
    let mut bytes = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut bytes).ok()?;
    Some(bytes)
}

fn hello() -> Vec<u8> {
    let [program, nonce, run] = ["x", "aa", ""].map(str::to_owned);
    frame(&ToServer::Hello { version: VERSION, program, nonce, run })
}

/// What a client says, step by step.
fn said_by_client() -> Vec<Vec<u8>> {
    let plan = test(Work::Stream { from: Sender::Server }, false).plan;
    vec![
        Preamble::Control.bytes(),
        hello(),
        frame(&ToServer::Test { plan: Box::new(plan) }),
        frame(&ToServer::Start),
        frame(&ToServer::Stop),
    ]
}

fn quiet(standing: &dyn Fn() -> Standing) {
    let by = Instant::now() + Duration::from_secs(30);
    while standing().clients > 0 || standing().tests > 0 {
        assert!(Instant::now() < by, "{:?}", standing());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_client_that_vanishes_or_lies_at_any_step_leaves_the_server_ready_for_the_next() {
    served(ServerOptions { clients: 1, ..ServerOptions::default() }, |place, standing| {
        let Place::Host(at) = place else { panic!("no address") };
        let steps = said_by_client();
        let lies: [&[u8]; 5] =
            [b"", b"\xff\xff\xff\xff", b"\0\0\0\x02{}", b"\0\0\0\x05hello", b"\0\0\0\x40{"];
        for said in 0..=steps.len() {
            for lie in lies {
                let mut stream = TcpStream::connect(at).expect("connects");
                stream.set_read_timeout(Some(Duration::from_secs(10))).expect("set");
                for (number, step) in steps.iter().take(said).enumerate() {
                    let _ = stream.write_all(step);
                    // Challenge and welcome; ready. Its data connections never come.
                    for _ in 0..[0, 2, 1, 0, 0][number] {
                        message(&mut stream);
                    }
                }
                let _ = stream.write_all(lie);
                drop(stream);
                // There is room for one client alone.
                quiet(standing);
            }
        }
        let outcome = run(connect(place, None).expect("connects"), &test(Work::Exchange, false));
        assert!(outcome.error.is_none() && outcome.ours.count > 0);
    });
}

#[test]
fn a_client_that_announces_absurd_amounts_is_refused_by_their_name() {
    served(ServerOptions::default(), |place, _| {
        let most = 1 << 63;
        let plan = || test(Work::Exchange, false).plan;
        for (plan, names) in [
            (Plan { request: most, ..plan() }, "bytes of a request"),
            (Plan { size: most, response: most, ..plan() }, "bytes of a message"),
            (Plan { request: 64 << 20, flows: 20, ..plan() }, "memory of buffers"),
            (Plan { flows: u32::MAX, ..plan() }, "flows: "),
            (Plan { work: Work::Open, hold: most, ..plan() }, "connections held: "),
            (Plan { duration_ns: most, ..plan() }, "duration: "),
        ] {
            let Place::Host(at) = place else { panic!("no address") };
            // As a client without limits of its own.
            let mut stream = TcpStream::connect(at).expect("connects");
            stream.set_read_timeout(Some(Duration::from_secs(10))).expect("set");
            for bytes in [Preamble::Control.bytes(), hello(), frame(&ToServer::Test { plan: Box::new(plan) })]
            {
                stream.write_all(&bytes).expect("said");
            }
            let answer = (0..3).filter_map(|_| message(&mut stream)).last().expect("an answer");
            let answer = String::from_utf8_lossy(&answer).into_owned();
            assert!(answer.contains("refused") && answer.contains(names), "{answer}");
        }
    });
}

/// What a server says, step by step: each after a message.
fn said_by_server() -> Vec<FromServer> {
    let (program, nonce) = ("x".to_owned(), "bb".to_owned());
    vec![
        ToClient::Challenge { version: VERSION, program, nonce, token: false },
        ToClient::Welcome { proof: None, limits: Limits::default(), host: Host::default() },
        ToClient::Ready { key: "00".repeat(16), ports: Vec::new() },
        ToClient::Joined,
        ToClient::Started,
        ToClient::Progress(Sample { bytes: u64::MAX, count: u64::MAX, ..Sample::default() }),
    ]
}

/// A server that says so many of these, then a lie; it goes when its connections are dropped.
fn lies(listener: &TcpListener, said: usize, lie: &[u8]) -> Vec<TcpStream> {
    let (mut stream, _) = listener.accept().expect("a client");
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("set");
    let mut preamble = [0; 9];
    let _ = stream.read_exact(&mut preamble);
    let mut data = Vec::new();
    for (number, says) in said_by_server().iter().take(said).enumerate() {
        // Hello; test; start. Before `joined` the data connections come.
        if [0, 2, 4].contains(&number) {
            message(&mut stream);
        }
        if number == 3 {
            data.extend((0..2).filter_map(|_| listener.accept().ok()).map(|(stream, _)| stream));
        }
        let _ = stream.write_all(&frame(says));
    }
    let _ = stream.write_all(lie);
    data.push(stream);
    data
}

#[test]
fn a_server_that_vanishes_or_lies_at_any_step_is_told_of_without_a_wait() {
    let all: [&[u8]; 4] = [b"", b"\xff\xff\xff\xffxx", b"\0\0\0\x02{}", b"\0\0\0\x10{\"is\": \"joined\"}x"];
    for said in 0..=said_by_server().len() {
        for lie in all {
            let listener = TcpListener::bind("127.0.0.1:0").expect("listens");
            let place = Place::Host(listener.local_addr().expect("an address"));
            let began = Instant::now();
            let error = std::thread::scope(|scope| {
                scope.spawn(|| drop(lies(&listener, said, lie)));
                let mut long = test(Work::Exchange, false);
                long.plan.duration_ns = 60_000_000_000;
                let done = connect(&place, None)
                    .and_then(|client| client.prepare(&long))
                    .and_then(|prepared| prepared.start());
                match done {
                    Err(error) => error,
                    Ok(mut running) => {
                        while !running.look() {
                            std::thread::sleep(Duration::from_millis(2));
                        }
                        running.finish().error.expect("an error")
                    }
                }
            });
            let said_so = error.to_string();
            assert!(
                !said_so.is_empty() && began.elapsed() < Duration::from_secs(9),
                "{said} {lie:?}: {said_so}"
            );
        }
    }
}

/// A server that is stopped (SIGSTOP): its host acknowledges, and nothing is said.
#[test]
fn a_server_that_says_nothing_is_not_waited_for_once_the_user_wants_the_end() {
    for said in 2..=said_by_server().len() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("listens");
        let place = Place::Host(listener.local_addr().expect("an address"));
        let wants_end = Arc::new(AtomicBool::new(false));
        std::thread::scope(|scope| {
            let server = scope.spawn(|| lies(&listener, said, b""));
            let until = (Duration::from_secs(10), Arc::clone(&wants_end));
            let client = Client::connect(&place, &Options::default(), None, "", until).expect("connects");
            // Its connections stay open for as long as this handle is there.
            let _server = server;
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(200));
                wants_end.store(true, Relaxed);
            });
            let mut long = test(Work::Exchange, false);
            long.plan.duration_ns = 60_000_000_000;
            let error = match client.prepare(&long).and_then(|prepared| prepared.start()) {
                Err(error) => error,
                Ok(mut running) => {
                    while !running.look() && !wants_end.load(Relaxed) {
                        std::thread::sleep(Duration::from_millis(2));
                    }
                    running.stop();
                    running.finish().error.expect("an error")
                }
            };
            let ClientError::Channel(ChannelError::Silent(silent)) = error else { panic!("{said}: {error}") };
            assert!(silent < Duration::from_secs(8), "{said}: {silent:?}, and 10 without the wish");
        });
    }
}
