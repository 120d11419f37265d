use super::{Bare, Counts, Numbered, Receiving, Sending, Sequence, Window, receive, send};
use crate::phase::{Done, End, Progress, Stop, Until};
use crate::socket::{self, Options};
use std::net::UdpSocket;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

fn pair() -> (UdpSocket, UdpSocket) {
    let options = Options { receive_buffer: Some(4 << 20), ..Options::default() };
    let receiver = socket::udp("127.0.0.1:0".parse().expect("one"), &options).expect("binds");
    let to = receiver.local_addr().expect("an address");
    (socket::udp_towards(to, &Options::default()).expect("connects"), receiver)
}

fn moved(sending: &Sending, receiving: &Receiving, count: u64) -> (Done, Done, Counts, Progress) {
    let (one, other) = pair();
    let (stop, progress) = (Stop::new(), Progress::new());
    let mut sequence = Sequence::new();
    let header = Numbered { key: 77 };
    let (sent, received) = std::thread::scope(|scope| {
        let until = Until {
            count: Some(count),
            deadline: Instant::now().checked_add(Duration::from_secs(20)),
            ..Until::stopped(&stop)
        };
        let (progress, sequence, ends) = (&progress, &mut sequence, until.clone());
        let receiver = scope.spawn(move || receive(&other, receiving, &header, &ends, progress, sequence));
        // Another's does not count.
        one.send(b"hello, you there").expect("sends");
        let sent = send(&one, sending, &header, &until, &Progress::new());
        (sent, receiver.join().expect("a receiver"))
    });
    (sent, received, sequence.counts(), progress)
}

#[test]
fn every_way_of_sending_arrives_by_every_way_of_receiving() {
    let one = Sending { rate: Some(crate::pace::Rate::per_second(20_000)), ..Sending::new(1000) };
    let sends = [one.clone(), Sending { batch: 16, ..one.clone() }, Sending { batch: 32, gso: true, ..one }];
    let receives = [
        Receiving::new(1000),
        Receiving { batch: 32, ..Receiving::new(1000) },
        Receiving { batch: 4, gro: true, ..Receiving::new(1000) },
    ];
    for sending in &sends {
        for receiving in &receives {
            let (sent, received, counts, progress) = moved(sending, receiving, 300);
            assert_eq!((sent.count, sent.bytes), (300, 300_000), "{sending:?}");
            assert!(matches!(received.end, End::Amount), "{sending:?} {receiving:?}: {received:?}");
            assert_eq!((received.count, received.bytes), (300, 300_000), "{receiving:?}");
            assert_eq!((counts.received, counts.lost, counts.duplicates), (300, 0, 0));
            assert_eq!(progress.count(), 300);
        }
    }
}

#[test]
fn what_the_socket_has_no_room_for_is_counted_as_dropped() {
    let options = Options { receive_buffer: Some(8_192), ..Options::default() };
    let receiver = socket::udp("127.0.0.1:0".parse().expect("one"), &options).expect("binds");
    let one =
        socket::udp_towards(receiver.local_addr().expect("one"), &Options::default()).expect("connects");
    let stop = Stop::new();
    let until = Until { count: Some(500), ..Until::stopped(&stop) };
    let header = Numbered { key: 1 };
    // Receiving begins when all was sent; SO_RXQ_OVFL is set before.
    crate::sys::set_int(&receiver, libc::SOL_SOCKET, crate::sys::SO_RXQ_OVFL, 1).expect("set");
    send(&one, &Sending::new(1000), &header, &until, &Progress::new());
    let (progress, mut sequence) = (Progress::new(), Sequence::new());
    let done = receive(
        &receiver,
        &Receiving::new(1000),
        &header,
        &Until::lasting(Duration::from_millis(300), &stop),
        &progress,
        &mut sequence,
    );
    // No later one came that would say how many were dropped before it.
    let dropped = progress.dropped.load(Relaxed);
    assert!(done.count < 500 && dropped > 0, "{done:?}");
    assert_eq!(dropped, 500 - done.count);
    // Once it is over, what waits says what was dropped when it came, which was counted then.
    let (progress, ends) = (Progress::new(), Arc::new(OnceLock::new()));
    ends.set(Instant::now()).expect("the first");
    let later = Sending { first: 500, ..Sending::new(1000) };
    send(&one, &later, &header, &Until { count: Some(1), ..until }, &Progress::new());
    let receiving = Receiving { ends: Some(ends), ..Receiving::new(1000) };
    let until = Until::lasting(Duration::from_millis(300), &stop);
    receive(&receiver, &receiving, &header, &until, &progress, &mut sequence);
    assert_eq!(progress.dropped.load(Relaxed), dropped, "of the socket, from its beginning");
}

#[test]
fn datagrams_without_a_header_are_counted_by_size() {
    let (one, other) = pair();
    let stop = Stop::new();
    let until = Until { count: Some(10), ..Until::lasting(Duration::from_secs(20), &stop) };
    send(&one, &Sending::new(1), &Bare, &until, &Progress::new());
    let done = receive(&other, &Receiving::new(100), &Bare, &until, &Progress::new(), &mut Sequence::new());
    assert_eq!((done.count, done.bytes), (10, 10));
}

#[test]
fn what_had_arrived_when_it_was_stopped_is_received() {
    let (one, other) = pair();
    for number in 0..50_u8 {
        one.send(&[number; 100]).expect("sends");
    }
    let (stop, progress) = (Stop::new(), Progress::new());
    stop.set();
    let begun = Instant::now();
    let received =
        receive(&other, &Receiving::new(100), &Bare, &Until::stopped(&stop), &progress, &mut Sequence::new());
    assert!(matches!(received.end, End::Stopped), "{received:?}");
    assert_eq!((received.count, received.bytes, progress.count()), (50, 5_000, 50));
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

/// Those that count, of all that were.
fn counted(progress: &Progress) -> [u64; 2] {
    let out = &progress.outside;
    let of = |all: &std::sync::atomic::AtomicU64, outside: &std::sync::atomic::AtomicU64| {
        all.load(Relaxed) - outside.load(Relaxed)
    };
    [of(&progress.count, &out.count), of(&progress.bytes, &out.bytes)]
}

#[test]
fn both_ends_count_the_same_datagrams_however_late_one_of_them_is() {
    let ms = Duration::from_millis;
    for window in [Window { to: Some(ms(50)), ..Window::default() }, Window { from: ms(50), to: None }] {
        let (one, other) = pair();
        let (stop, header, sent, got) = (Stop::new(), Numbered { key: 5 }, Progress::new(), Progress::new());
        let rate = Some(crate::pace::Rate::per_second(10_000));
        let until = Until { count: Some(1000), ..Until::lasting(Duration::from_secs(60), &stop) };
        send(&one, &Sending { window, rate, ..Sending::new(100) }, &header, &until, &sent);
        // All of them wait in the socket: by the time of their arrival they would be in no window, or all in one.
        let receiving = Receiving { window, ..Receiving::new(100) };
        receive(&other, &receiving, &header, &until, &got, &mut Sequence::new());
        assert_eq!((sent.count(), got.count()), (1000, 1000));
        assert_eq!(counted(&sent), counted(&got), "{window:?}");
        assert!((1..1000).contains(&counted(&got)[0]), "{window:?} {:?}", counted(&got));
    }
}

#[test]
fn what_is_sent_after_the_receivers_end_does_not_count_however_soon_it_arrives() {
    let (one, other) = pair();
    let (stop, ends, header) = (Stop::new(), Arc::new(OnceLock::new()), Numbered { key: 6 });
    let (sent, got) = (Progress::new(), Progress::new());
    let receiving = Receiving { ends: Some(Arc::clone(&ends)), ..Receiving::new(100) };
    let goes_on = Stop::new();
    let by_then = std::thread::scope(|scope| {
        let sending = Sending { rate: Some(crate::pace::Rate::per_second(5_000)), ..Sending::new(100) };
        let (sent, until) = (&sent, Until::lasting(Duration::from_secs(60), &goes_on));
        scope.spawn(move || send(&one, &sending, &header, &until, sent));
        let (got, until) = (&got, Until::stopped(&stop));
        let receiver =
            scope.spawn(move || receive(&other, &receiving, &header, &until, got, &mut Sequence::new()));
        while got.count() < 100 {
            std::thread::sleep(Duration::from_millis(1));
        }
        ends.set(Instant::now()).expect("set once");
        let by_then = sent.count();
        stop.set();
        // The sender goes on, as one does that has not heard of the end yet.
        receiver.join().expect("a receiver");
        goes_on.set();
        by_then
    });
    // One may have had its time before the end, and not be counted as sent yet.
    assert!(got.count() <= by_then + 1, "{} of {by_then}", got.count());
}
