use super::{Answering, Closing, Connecting, Exchange, answer, answer_each, ask, ask_each};
use crate::pace::Rate;
use crate::phase::{Done, End, Latency, Progress, Stop, Until};
use crate::socket::{self, Options};
use std::net::{TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;

fn tcp() -> (TcpStream, TcpStream) {
    let options = Options { nodelay: true, ..Options::default() };
    let listener = socket::listen("127.0.0.1:0".parse().expect("one"), &options, 4).expect("listens");
    let to = listener.local_addr().expect("an address");
    let one = socket::connect(to, &options, Duration::from_secs(10)).expect("connects");
    (one, socket::accept(&listener, Duration::from_secs(10)).expect("accepts").expect("one").0)
}

fn udp() -> (UdpSocket, UdpSocket) {
    let at = "127.0.0.1:0".parse().expect("one");
    let [one, other] = [(); 2].map(|()| socket::udp(at, &Options::default()).expect("binds"));
    one.connect(other.local_addr().expect("one")).expect("connects");
    other.connect(one.local_addr().expect("one")).expect("connects");
    (one, other)
}

fn run<S: AsFd + Sync>((one, other): (S, S), exchange: &Exchange, count: u64) -> (Done, Done, Latency) {
    let (stop, latency) = (Stop::new(), Latency::new());
    let done = std::thread::scope(|scope| {
        let answerer = scope.spawn(|| answer(&other, exchange, &Until::stopped(&stop), &Progress::new()));
        let until = Until { count: Some(count), ..Until::lasting(Duration::from_secs(30), &stop) };
        let progress = Progress::new();
        let asked = ask(&one, exchange, &until, &progress, &latency);
        assert_eq!(progress.count(), asked.count);
        stop.set();
        (asked, answerer.join().expect("an answerer"))
    });
    (done.0, done.1, latency)
}

#[test]
fn transactions_of_every_form_are_all_answered_and_timed() {
    let one = Exchange { spin: false, ..Exchange::new(1, 1) };
    let rate = Some(Rate::per_second(5_000));
    for exchange in [
        one.clone(),
        Exchange::new(100, 200_000),
        Exchange::new(200_000, 1),
        Exchange { in_flight: 16, ..Exchange::new(7, 13) },
        Exchange { spin: true, ..one.clone() },
        Exchange { rate, ..one.clone() },
        Exchange { rate, in_flight: 8, ..Exchange::new(1000, 3000) },
    ] {
        let (asked, answered, latency) = run(tcp(), &exchange, 200);
        assert!(matches!(asked.end, End::Amount), "{exchange:?}: {asked:?}");
        assert_eq!((asked.count, answered.count, latency.so_far().count()), (200, 200, 200), "{exchange:?}");
        assert_eq!(asked.bytes, 200 * (exchange.request + exchange.response) as u64);
    }
    for exchange in
        [one.clone(), Exchange { in_flight: 4, ..Exchange::new(64, 64) }, Exchange { rate, ..one }]
    {
        let exchange = Exchange { datagrams: true, ..exchange };
        let (asked, _, latency) = run(udp(), &exchange, 200);
        assert!(matches!(asked.end, End::Amount), "{exchange:?}: {asked:?}");
        assert_eq!((asked.count, latency.so_far().count()), (200, 200), "{exchange:?}");
    }
}

#[test]
fn who_stalls_is_charged_for_all_that_was_due_meanwhile() {
    let (one, other) = tcp();
    let stop = Stop::new();
    let exchange = Exchange { rate: Some(Rate::per_second(1000)), ..Exchange::new(1, 1) };
    let latency = Latency::new();
    let asked = std::thread::scope(|scope| {
        let answers = exchange.clone();
        let (other, stop_answering) = (&other, stop.clone());
        scope.spawn(move || {
            // It does not look for 300 ms.
            std::thread::sleep(Duration::from_millis(300));
            answer(other, &answers, &Until::stopped(&stop_answering), &Progress::new())
        });
        let until = Until { count: Some(400), ..Until::lasting(Duration::from_secs(30), &stop) };
        let asked = ask(&one, &exchange, &until, &Progress::new(), &latency);
        stop.set();
        asked
    });
    assert_eq!(asked.count, 400);
    // 300 of 400 were due in the stall and waited 150 ms on average: a closed loop would have one slow transaction.
    let all = latency.so_far();
    assert!(all.p50() > 50_000_000, "{} ns", all.p50());
}

#[test]
fn a_datagram_that_is_lost_is_counted_and_the_next_is_asked() {
    let (one, other) = udp();
    let exchange = Exchange { datagrams: true, patience: Duration::from_millis(60), ..Exchange::new(1, 1) };
    let progress = Progress::new();
    let until = Until::lasting(Duration::from_millis(400), &Stop::new());
    let done = ask(&one, &exchange, &until, &progress, &Latency::new());
    assert!(matches!(done.end, End::Time) && done.count == 0, "{done:?}");
    assert!(progress.lost.load(std::sync::atomic::Ordering::Relaxed) >= 1);
    drop(other);
}

#[test]
fn connections_are_made_and_closed_by_whoever_is_to() {
    for (request, response, closing, spin) in [
        (1, 1, Closing::Answerer, false),
        (100, 300_000, Closing::Answerer, false),
        (1, 1, Closing::Answerer, true),
        (100, 3000, Closing::Asker, false),
        (1, 1, Closing::Reset, false),
        (0, 0, Closing::Answerer, false),
    ] {
        let listener =
            socket::listen("127.0.0.1:0".parse().expect("one"), &Options::default(), 64).expect("listens");
        let connecting = Connecting {
            to: listener.local_addr().expect("one"),
            options: Options::default(),
            request,
            response,
            closing,
            patience: Duration::from_secs(10),
            ports: None,
            spin,
        };
        let (stop, latency) = (Stop::new(), Latency::new());
        let (asked, answered) = std::thread::scope(|scope| {
            let answerer = scope.spawn(|| {
                answer_each(
                    &listener,
                    Answering { request, response, closing, spin },
                    None,
                    &Until::stopped(&stop),
                    &Progress::new(),
                )
            });
            let until = Until { count: Some(50), ..Until::lasting(Duration::from_secs(30), &stop) };
            let asked = ask_each(&connecting, &until, &Progress::new(), &latency);
            // The last one is answered before it is counted.
            std::thread::sleep(Duration::from_millis(50));
            stop.set();
            (asked, answerer.join().expect("an answerer"))
        });
        assert!(matches!(asked.end, End::Amount), "{closing:?}: {asked:?}");
        assert_eq!((asked.count, latency.so_far().count()), (50, 50));
        assert!(answered.count >= 50, "{closing:?}: {answered:?}");
    }
}
