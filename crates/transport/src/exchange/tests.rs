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

/// A server that answers some requests and then nothing more: what waits for it at the end is not left out.
#[test]
fn a_server_that_stalls_until_the_end_is_not_as_fast_as_it_was_before() {
    for (in_flight, rate) in [(1, None), (4, None), (16, Some(Rate::per_second(1000)))] {
        let (one, other) = tcp();
        let exchange = Exchange { in_flight, rate, ..Exchange::new(1, 1) };
        let latency = Latency::new();
        let asked = std::thread::scope(|scope| {
            scope.spawn(|| {
                let stop = Stop::new();
                let some = Until { count: Some(8), ..Until::lasting(Duration::from_secs(30), &stop) };
                answer(&other, &Exchange::new(1, 1), &some, &Progress::new())
            });
            let until = Until::lasting(Duration::from_millis(300), &Stop::new());
            ask(&one, &exchange, &until, &Progress::new(), &latency)
        });
        assert!(matches!(asked.end, End::Time) && asked.count <= 8, "{asked:?}");
        // 300 ms are eight answers and what is waited for behind them: one of the nine took a ninth of it at least.
        let all = latency.so_far();
        assert!(all.max() > 30_000_000, "{exchange:?}: {} ns of {}", all.max(), all.count());
    }
}

/// One request in sixteen is never answered, and the others are at once.
#[test]
fn a_lost_datagram_does_not_stay_in_flight_while_others_are_answered() {
    for rate in [None, Some(Rate::per_second(4000))] {
        let (one, other) = udp();
        let patience = Duration::from_millis(40);
        let exchange = Exchange { datagrams: true, in_flight: 8, rate, patience, ..Exchange::new(8, 8) };
        let (progress, stop) = (Progress::new(), Stop::new());
        let until = Until::lasting(Duration::from_millis(500), &Stop::new());
        let done = std::thread::scope(|scope| {
            let ends = stop.clone();
            scope.spawn(move || {
                other.set_read_timeout(Some(Duration::from_millis(20))).expect("a time");
                let mut bytes = [0; 8];
                while !ends.is_set() {
                    if other.recv(&mut bytes).is_ok() && u64::from_be_bytes(bytes) % 16 != 3 {
                        other.send(&bytes).expect("sends");
                    }
                }
            });
            let done = ask(&one, &exchange, &until, &progress, &Latency::new());
            stop.set();
            done
        });
        let lost = progress.lost.load(std::sync::atomic::Ordering::Relaxed);
        // For each fifteen that were answered one was not: it is lost by now, or one of eight that are still under way.
        assert!(done.count / 15 <= lost + 9, "{rate:?}: {lost} lost, {} answered", done.count);
    }
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
