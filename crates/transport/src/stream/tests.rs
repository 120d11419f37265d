use super::{Receive, Receiving, Send, Sending, receive, send};
use crate::phase::{Done, End, Progress, Stop, Until};
use crate::socket::{self, Options};
use std::net::TcpStream;
use std::time::{Duration, Instant};

fn pair() -> (TcpStream, TcpStream) {
    let listener =
        socket::listen("127.0.0.1:0".parse().expect("one"), &Options::default(), 4).expect("listens");
    let to = listener.local_addr().expect("an address");
    let one = socket::connect(to, &Options::default(), Duration::from_secs(10)).expect("connects");
    let other = socket::accept(&listener, Duration::from_secs(10)).expect("accepts").expect("one");
    (one, other.0)
}

fn moved(method: Send, by: Receive, bytes: u64) -> (Done, Done) {
    let (one, other) = pair();
    let stop = Stop::new();
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            receive(&other, &Receiving::new(by, 100_000), &Until::stopped(&stop), &Progress::new())
        });
        let until = Until { bytes: Some(bytes), ..Until::stopped(&stop) };
        let progress = Progress::new();
        let sent = send(&one, &Sending::new(method, 10_000), &until, &progress);
        assert_eq!(progress.bytes(), sent.bytes);
        one.shutdown(std::net::Shutdown::Write).expect("shuts down");
        (sent, receiver.join().expect("a receiver"))
    })
}

#[test]
fn every_method_moves_as_many_bytes_as_were_asked_for() {
    let bytes = 3_000_007;
    for method in [Send::Write, Send::Sendfile, Send::Splice, Send::Zerocopy] {
        for by in [Receive::Read, Receive::Trunc, Receive::Splice] {
            let (sent, received) = moved(method, by, bytes);
            assert!(matches!(sent.end, End::Amount), "{method:?}: {sent:?}");
            assert!(matches!(received.end, End::Closed), "{by:?}: {received:?}");
            assert_eq!((sent.bytes, received.bytes), (bytes, bytes), "{method:?} {by:?}");
            assert_eq!(sent.count, 301);
            assert_eq!(sent.zerocopy.is_some(), method == Send::Zerocopy);
            if let Some(zerocopy) = sent.zerocopy {
                // Over loopback the kernel copies, and says so.
                assert_eq!((zerocopy.copied, zerocopy.outstanding), (zerocopy.completed, 0), "{zerocopy:?}");
                assert!(zerocopy.completed >= 301);
            }
        }
    }
}

#[test]
fn a_receiver_gets_what_was_sent_in_order() {
    for method in [Send::Write, Send::Sendfile, Send::Splice, Send::Zerocopy] {
        let (one, mut other) = pair();
        let stop = Stop::new();
        let data: Vec<u8> = (0..=250).collect();
        let sending = Sending { data: Some(data.clone().into()), ..Sending::new(method, 2_510) };
        let until = Until { bytes: Some(251_000), ..Until::stopped(&stop) };
        let reader = std::thread::spawn(move || {
            let mut got = Vec::new();
            std::io::Read::read_to_end(&mut other, &mut got).map(|_| got)
        });
        let sent = send(&one, &sending, &until, &Progress::new());
        assert_eq!(sent.bytes, 251_000);
        drop(one);
        let got = reader.join().expect("a reader").expect("bytes");
        assert!(got.chunks(251).all(|piece| piece == data) && got.len() == 251_000, "{method:?}");
    }
}

#[test]
fn one_that_waits_ends_when_it_is_stopped() {
    let (one, other) = pair();
    let stop = Stop::new();
    let (until, progress) = (Until::stopped(&stop), Progress::new());
    let ends = std::thread::scope(|scope| {
        // Nobody reads what it sends, and it is sent nothing.
        let sender = {
            let (until, progress, one) = (until.clone(), &progress, &one);
            scope.spawn(move || send(one, &Sending::new(Send::Write, 65_536), &until, progress).end)
        };
        let receiver =
            scope.spawn(|| receive(&one, &Receiving::new(Receive::Read, 1000), &until, &Progress::new()).end);
        while progress.bytes() == 0 {
            std::thread::yield_now();
        }
        stop.set();
        [sender.join().expect("a sender"), receiver.join().expect("a receiver")]
    });
    assert!(ends.iter().all(|end| matches!(end, End::Stopped)), "{ends:?}");
    drop(other);
}

#[test]
fn a_peer_that_is_gone_ends_a_stream() {
    let (one, other) = pair();
    crate::sys::set_reset_on_close(&other).expect("lingers not");
    drop(other);
    let done = send(&one, &Sending::new(Send::Write, 1000), &Until::stopped(&Stop::new()), &Progress::new());
    assert!(matches!(done.end, End::Failed(_) | End::Closed), "{done:?}");
}

#[test]
fn a_paced_stream_is_never_ahead_of_its_schedule() {
    let (one, other) = pair();
    let stop = Stop::new();
    let rate = crate::pace::Rate::of_bits(8_000_000, 1000);
    let sending = Sending { rate: Some(rate), ..Sending::new(Send::Write, 1000) };
    let until = Until { bytes: Some(100_000), ..Until::stopped(&stop) };
    let began = Instant::now();
    let done = send(&one, &sending, &until, &Progress::new());
    // 100 messages, the first at once: the last is due after 99 ms.
    assert!(began.elapsed() >= Duration::from_millis(99), "{:?}", began.elapsed());
    assert_eq!((done.bytes, done.count), (100_000, 100));
    drop(other);
}
