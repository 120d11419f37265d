//! Strangers who want to keep others out, by counts: of connections, of bytes, of seconds.

use super::*;
use endpoint::native::Preamble;
use std::net::SocketAddr;

fn at(place: &Place) -> SocketAddr {
    match place {
        Place::Host(at) => *at,
        Place::Unix(_) => panic!("no address"),
    }
}

/// Connections that say that they are clients, and then nothing.
fn silent(place: &Place, count: usize) -> Vec<TcpStream> {
    let one = |_| {
        let mut stream = TcpStream::connect(at(place)).expect("connects");
        stream.write_all(&Preamble::Control.bytes()).expect("written");
        stream
    };
    (0..count).map(one).collect()
}

#[test]
fn two_thousand_strangers_without_the_token_keep_nobody_out_who_has_it() {
    let token = Some(b"secret".to_vec());
    served(ServerOptions { token, clients: 2, ..ServerOptions::default() }, |place, standing| {
        let held = silent(place, 2000);
        // Those who have got a challenge, and guess, are strangers still.
        let guess = connect(place, Some(b"guess"));
        assert!(matches!(guess, Err(ClientError::Refused(_))), "{guess:?}");
        assert_eq!(standing().clients, 0);
        for _ in 0..2 {
            let client = connect(place, Some(b"secret")).expect("served");
            assert!(run(client, &test(Work::Exchange, false)).error.is_none());
        }
        drop(held);
    });
}

#[test]
fn who_says_no_hello_is_closed_within_seconds() {
    served(ServerOptions::default(), |place, _| {
        let began = Instant::now();
        let mut held = silent(place, 20);
        for stream in &mut held {
            // A byte now and then is no hello.
            stream.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
            let _ = stream.write_all(&[0]);
            let mut said = Vec::new();
            let _ = stream.read_to_end(&mut said);
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    });
}

#[test]
fn memory_is_that_of_all_clients_together() {
    let one = test(Work::Exchange, false);
    let each = one.plan.memory();
    let limits = Limits { memory: 2 * each, ..Limits::default() };
    served(ServerOptions { limits, ..ServerOptions::default() }, |place, _| {
        let prepare = || connect(place, None).expect("connects").prepare(&one);
        let (first, second) = (prepare().expect("ready"), prepare().expect("ready"));
        match prepare() {
            Err(ClientError::Refused(refused)) => {
                let said =
                    format!("of the {} that the server has for all tests {} are taken", 2 * each, 2 * each);
                assert!(refused.reason == Reason::Busy && refused.said.contains(&said), "{refused}");
            }
            other => panic!("{other:?}"),
        }
        drop(first);
        // It is given back when its client is gone.
        let by = Instant::now() + Duration::from_secs(30);
        while let Err(error) = prepare() {
            assert!(Instant::now() < by, "{error}");
            std::thread::sleep(Duration::from_millis(20));
        }
        drop(second);
    });
}

#[test]
fn what_is_lost_in_a_stream_of_datagrams_is_of_what_counts_at_both_ends() {
    for from in [Sender::Client, Sender::Server] {
        served(ServerOptions::default(), |place, _| {
            let mut test = test(Work::Stream { from }, true);
            let end = if from == Sender::Client { &mut test.end } else { &mut test.plan.end };
            end.bits_per_second = Some(20_000_000);
            (test.plan.warm_up_ns, test.plan.duration_ns) = (150_000_000, 300_000_000);
            let outcome = run(connect(place, None).expect("connects"), &test);
            assert!(outcome.error.is_none(), "{:?}", outcome.error);
            let theirs = outcome.theirs.expect("their results");
            let (sent, received) = match from {
                Sender::Client => (&outcome.ours, &*theirs),
                Sender::Server => (&*theirs, &outcome.ours),
            };
            // Over loopback all arrive: not one more or less counts at either end.
            assert_eq!((sent.count, sent.bytes), (received.count, received.bytes), "{from:?}");
            let all: u64 = outcome.ours.flows.iter().map(|flow| flow.count).sum();
            assert!(sent.count > 0 && sent.count < all, "{} of {all}", sent.count);
        });
    }
}
