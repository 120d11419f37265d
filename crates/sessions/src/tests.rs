//! Clients and server against each other over a veth pair. Needs root.

mod datagrams;
mod frames;

use crate::{
    Clients, Close, Counts, Load, Longer, Options, Ran, Served, Server, ServerOptions, answer, datagram,
    request,
};
use engine::Priority;
use lab::Lab;
use port::interface::Interface;
use port::packet::Target;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(3);

fn lab() -> Lab {
    Lab::two_hosts(&lab::Options { addresses: true, ..Default::default() }).expect("a lab (as root)")
}

/// What frames consist of.
#[derive(Debug, Clone, Copy)]
struct Sort {
    v6: bool,
    tag: Option<u16>,
}

const PLAIN: Sort = Sort { v6: false, tag: None };
const SORTS: [Sort; 4] = [
    PLAIN,
    Sort { v6: true, tag: None },
    Sort { v6: false, tag: Some(0xa064) },
    Sort { v6: true, tag: Some(0x1abc) },
];

impl Sort {
    /// Address of an end. Of IPv6 no stack has it: the programs need none.
    fn address(self, host: &lab::Host) -> IpAddr {
        let [a, b, c, d] = host.address.octets().map(u16::from);
        match self.v6 {
            true => [0x2001, 0xdb8, 5, 0, 0, 0, a << 8 | b, c << 8 | d].into(),
            false => host.address.into(),
        }
    }

    fn mss(self) -> u16 {
        if self.v6 { 1440 } else { 1460 }
    }
}

fn serve(lab: &Lab, body: usize) -> Server {
    serve_requests(lab, body, 1)
}

fn serve_requests(lab: &Lab, body: usize, requests: u32) -> Server {
    serve_sort(lab, PLAIN, body, requests)
}

fn serve_sort(lab: &Lab, sort: Sort, body: usize, requests: u32) -> Server {
    let host = &lab.receiver;
    let options = server_options(lab, sort, body, requests);
    host.namespace.run_in(|| Server::attach(host.interface, &options)).expect("entered").expect("attached")
}

fn server_options(lab: &Lab, sort: Sort, body: usize, requests: u32) -> ServerOptions {
    let host = &lab.receiver;
    ServerOptions {
        listen: SocketAddr::new(sort.address(host), 80),
        own: host.mac,
        answers_for_address: sort.tag.is_some(),
        tag: sort.tag,
        udp: false,
        answer: answer(body, requests == 1),
        mss: sort.mss(),
        requests,
        key: [1, 2, 3, 4],
        relays: true,
        longer: Longer::Private,
        generic: false,
    }
}

fn options(lab: &Lab) -> Options {
    options_sort(lab, PLAIN)
}

fn options_sort(lab: &Lab, sort: Sort) -> Options {
    Options {
        server: SocketAddr::new(sort.address(&lab.receiver), 80),
        own: lab.sender.mac,
        host: None,
        first_address: sort.address(&lab.sender),
        addresses: 1,
        first_port: 16384,
        slots: 16384,
        udp: false,
        from_server: false,
        request: request("server", "/", None, true),
        requests: 1,
        think: Duration::ZERO,
        close: Close::Server,
        holds: false,
        mss: sort.mss(),
        tag: sort.tag,
        retransmit_after: Duration::from_millis(100),
        timeout: TIMEOUT,
        generic: false,
    }
}

fn run(lab: &Lab, options: Options, load: &Load, stop: &AtomicBool) -> (Ran, Counts) {
    run_watched(lab, options, load, stop, |_| {})
}

/// Beside it runs `watch`, from before the first connection on.
fn run_watched(
    lab: &Lab,
    options: Options,
    load: &Load,
    stop: &AtomicBool,
    watch: impl FnOnce(&Clients) + Send,
) -> (Ran, Counts) {
    let host = &lab.sender;
    let udp = options.udp;
    let run = || {
        let clients = Clients::attach(host.interface, options).expect("attached");
        let link = Interface::by_name(host.interface).expect("an interface");
        let target = Target { name: host.interface.to_owned(), index: link.index, mtu: link.mtu };
        let way = xdp::way::find(&target, link.kind.as_deref(), 1, 1).expect("a way");
        let load = Load { next_hop: lab.receiver.mac, ..*load };
        let ran = std::thread::scope(|scope| {
            scope.spawn(|| watch(&clients));
            clients.run(&way, &load, stop).expect("a run")
        });
        let times = clients.times();
        let counts = clients.counts();
        assert_eq!(clients.open(), counts.opened - counts.ended());
        assert_eq!(times[0].count(), if udp { 0 } else { counts.established });
        eprintln!("{ran:?}\n{counts:?}\n{:?}", times.map(|times| (times.quantile(0.5), times.max())));
        (ran, counts)
    };
    host.namespace.run_in(run).expect("entered")
}

/// Both ends tell the same.
fn agree(counts: &Counts, served: &Served) {
    assert_eq!(counts.opened, counts.ended(), "{counts:?}");
    assert_eq!(counts.asked, counts.answers(), "{counts:?}");
    assert_eq!((counts.tx_frames, counts.tx_bytes), (served.rx_frames, served.rx_bytes));
    assert_eq!((counts.rx_frames, counts.rx_bytes), (served.tx_frames, served.tx_bytes));
    assert_eq!(served.unexpected + served.bad_cookies + served.malformed + served.no_room, 0, "{served:?}");
}

#[test]
fn every_connection_finishes_in_six_frames() {
    SORTS.iter().for_each(|sort| six_frames(*sort));
}

fn six_frames(sort: Sort) {
    let lab = lab();
    let server = serve_sort(&lab, sort, 100, 1);
    let load = Load { count: Some(20_000), in_flight: Some(100), ..Load::default() };
    let (ran, counts) = run(&lab, options_sort(&lab, sort), &load, &AtomicBool::new(false));
    let served = server.finish();
    agree(&counts, &served);
    assert_eq!((counts.opened, counts.finished, counts.failed()), (20_000, 20_000, 0));
    assert_eq!((served.syns, served.requests, served.finished), (20_000, 20_000, 20_000));
    assert_eq!((counts.tx_frames, counts.rx_frames, counts.retransmitted()), (60_000, 60_000, 0));
    assert_eq!(counts.answer_bytes, 20_000 * answer(100, true).len() as u64);
    assert!(!ran.stopped);
}

/// Who attaches an XDP program to some interface, as the tests beside do all the time, has the kernel's lock of those until all CPUs have
/// left what they were doing, and each call that sends live frames waits for it: tens of milliseconds in which nothing leaves. So a run in
/// which connections are missing by its own account is none to judge by, and the last of many is.
#[test]
fn a_schedule_is_kept_to_the_connection() {
    for tries in 1.. {
        let lab = lab();
        let server = serve(&lab, 1);
        let priority = Priority::AsNeeded;
        let duration = Some(Duration::from_millis(500));
        let load = Load { rate: Some(7_001), duration, priority, ..Load::default() };
        let (ran, counts) = run(&lab, options(&lab), &load, &AtomicBool::new(false));
        agree(&counts, &server.finish());
        assert_eq!(counts.opened, counts.finished);
        assert!(ran.opening_ns >= 499_000_000, "{ran:?}");
        // As many as are due within the time, the first at its beginning.
        assert!(counts.opened <= 3_501, "{counts:?}");
        if counts.opened == 3_501 {
            return;
        }
        assert!(ran.late > 0 && tries < 20, "{ran:?}");
    }
}

#[test]
fn a_long_answer_arrives_whole_a_segment_for_each_acknowledgement() {
    for sort in SORTS {
        let lab = lab();
        let server = serve_sort(&lab, sort, 20_000, 1);
        let load = Load { count: Some(500), in_flight: Some(50), ..Load::default() };
        let (_, counts) = run(&lab, options_sort(&lab, sort), &load, &AtomicBool::new(false));
        let served = server.finish();
        agree(&counts, &served);
        let whole = answer(20_000, true).len();
        let (segments, whole) = (whole.div_ceil(sort.mss().into()) as u64, whole as u64);
        assert_eq!((counts.finished, counts.answer_bytes), (500, 500 * whole));
        assert_eq!((served.segments, served.answer_bytes), (500 * segments, 500 * whole));
    }
}

#[test]
fn who_does_not_answer_lets_every_connection_time_out() {
    let lab = lab();
    let server = serve(&lab, 1);
    // Nobody has that address, and the host there passes nothing on.
    let nobody = SocketAddr::new([192, 0, 2, 1].into(), 80);
    let options = Options { server: nobody, timeout: Duration::from_millis(500), ..options(&lab) };
    let load = Load { count: Some(100), in_flight: Some(100), ..Load::default() };
    let (_, counts) = run(&lab, options, &load, &AtomicBool::new(false));
    assert_eq!((counts.opened, counts.timed_out, counts.ended()), (100, 100, 100));
    // After 100, 300 ms, and a RST at the end.
    assert_eq!((counts.retransmitted_syns, counts.resets_sent), (200, 100));
    assert_eq!(server.finish().rx_frames, 0);
}

#[test]
fn who_is_told_to_stop_ends_every_connection_and_counts_it() {
    let lab = lab();
    let server = serve(&lab, 1);
    let nobody = SocketAddr::new([192, 0, 2, 1].into(), 80);
    let load = Load { rate: Some(10_000), ..Load::default() };
    let stop = AtomicBool::new(false);
    let options = Options { server: nobody, ..options(&lab) };
    let (ran, counts) = run_watched(&lab, options, &load, &stop, |clients| {
        // A run that failed opens none, and is to be told.
        for _ in 0..10_000 {
            if clients.counts().opened > 100 {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        stop.store(true, Relaxed);
    });
    assert!(ran.stopped && counts.opened > 100, "{counts:?}");
    assert_eq!((counts.abandoned, counts.ended()), (counts.opened, counts.opened));
    drop(server);
}

#[test]
fn a_closed_port_resets_every_connection() {
    let lab = Lab::two_hosts(&lab::Options { addresses: true, gro: true, ..Default::default() })
        .expect("a lab (as root)");
    let load = Load { count: Some(300), in_flight: Some(20), ..Load::default() };
    let (_, counts) = run(&lab, options(&lab), &load, &AtomicBool::new(false));
    assert_eq!((counts.opened, counts.reset, counts.ended()), (300, 300, 300));
}

/// Clients that ask so often, and close by themselves.
fn several(lab: &Lab, requests: u32, close: Close) -> Options {
    several_sort(lab, PLAIN, requests, close)
}

fn several_sort(lab: &Lab, sort: Sort, requests: u32, close: Close) -> Options {
    let request = request("server", "/", None, false);
    Options { requests, close, request, ..options_sort(lab, sort) }
}

#[test]
fn several_requests_are_answered_over_each_connection_and_either_side_closes() {
    let lab = lab();
    for (close, requests, frames) in [
        // SYN, request, and for each further answer the next request; FIN, ACK.
        (Close::Fin, 10, 13),
        (Close::Rst, 10, 12),
        // The server closes with its last answer: FIN.
        (Close::Fin, 50, 52),
    ] {
        let server = serve_requests(&lab, 100, 50);
        let load = Load { count: Some(1_000), in_flight: Some(50), ..Load::default() };
        let (_, counts) = run(&lab, several(&lab, requests, close), &load, &AtomicBool::new(false));
        let served = server.finish();
        agree(&counts, &served);
        assert_eq!((counts.finished, counts.failed(), counts.unframed), (1_000, 0, 0), "{counts:?}");
        let asked = 1_000 * u64::from(requests);
        assert_eq!((counts.asked, counts.status_2xx, served.requests), (asked, asked, asked));
        assert_eq!(counts.answer_bytes, asked * answer(100, false).len() as u64);
        assert_eq!((counts.tx_frames, counts.retransmitted()), (1_000 * frames, 0), "{close:?} {requests}");
    }
}

#[test]
fn long_answers_are_told_apart_by_their_lengths() {
    let lab = lab();
    let server = serve_requests(&lab, 5_000, 1_000);
    let load = Load { count: Some(200), in_flight: Some(20), ..Load::default() };
    let (_, counts) = run(&lab, several(&lab, 7, Close::Fin), &load, &AtomicBool::new(false));
    agree(&counts, &server.finish());
    assert_eq!((counts.finished, counts.status_2xx), (200, 1_400));
    assert_eq!(counts.answer_bytes, 1_400 * answer(5_000, false).len() as u64);
}

#[test]
fn who_thinks_asks_no_sooner() {
    let lab = lab();
    let server = serve_requests(&lab, 1, 1_000);
    let think = Duration::from_millis(100);
    let options = Options { think, ..several(&lab, 4, Close::Fin) };
    let load = Load { count: Some(100), in_flight: Some(100), ..Load::default() };
    let (ran, counts) = run(&lab, options, &load, &AtomicBool::new(false));
    agree(&counts, &server.finish());
    assert_eq!((counts.finished, counts.status_2xx), (100, 400));
    assert!(ran.duration_ns >= 3 * 100_000_000, "{ran:?}");
}

#[test]
fn connections_are_held_used_again_and_closed_as_asked() {
    let lab = lab();
    for (sort, close) in SORTS.iter().flat_map(|sort| [(*sort, Close::Fin), (*sort, Close::Rst)]) {
        let server = serve_sort(&lab, sort, 100, 1_000);
        let options = Options { holds: true, ..several_sort(&lab, sort, 1, close) };
        let hold = Some(Duration::from_millis(100));
        let load =
            Load { count: Some(10_000), in_flight: Some(100), hold, use_again: true, ..Load::default() };
        let (ran, counts) = run(&lab, options, &load, &AtomicBool::new(false));
        let served = server.finish();
        agree(&counts, &served);
        assert_eq!((ran.held, counts.finished, counts.retransmitted()), (10_000, 10_000, 0), "{counts:?}");
        assert_eq!((counts.used_again, counts.used_again_answered), (10_000, 10_000));
        assert!(ran.settled_ns > 0 && ran.using_ns > 0 && ran.closing_ns > 0, "{ran:?}");
        assert_eq!((counts.asked, served.requests), (20_000, 20_000));
        let (fins, resets) = if close == Close::Fin { (10_000, 0) } else { (0, 10_000) };
        assert_eq!((served.finished, served.resets), (fins, resets));
    }
}

#[test]
fn held_connections_are_closed_when_told_to_stop() {
    let lab = lab();
    let server = serve_requests(&lab, 100, 1_000);
    let options = Options { holds: true, ..several(&lab, 1, Close::Fin) };
    let load = Load { count: Some(5_000), in_flight: Some(100), ..Load::default() };
    let stop = AtomicBool::new(false);
    let (ran, counts) = run_watched(&lab, options, &load, &stop, |_| {
        std::thread::sleep(Duration::from_millis(1_000));
        stop.store(true, Relaxed);
    });
    agree(&counts, &server.finish());
    assert!(ran.stopped);
    assert_eq!((ran.held, counts.finished), (5_000, 5_000));
}

#[test]
fn a_request_longer_than_the_servers_segments_is_refused() {
    let lab = lab();
    let host = &lab.receiver;
    let options_there = ServerOptions {
        listen: SocketAddr::new(host.address.into(), 80),
        own: host.mac,
        answers_for_address: false,
        tag: None,
        udp: false,
        answer: answer(1, true),
        mss: 600,
        requests: 1,
        key: [1, 2, 3, 4],
        relays: true,
        longer: Longer::Private,
        generic: false,
    };
    let server = host
        .namespace
        .run_in(|| Server::attach(host.interface, &options_there))
        .expect("entered")
        .expect("attached");
    for (size, finished) in [(600, 50), (601, 0)] {
        let options = Options { request: request("server", "/", Some(size), true), ..options(&lab) };
        let load = Load { count: Some(50), in_flight: Some(20), ..Load::default() };
        let (_, counts) = run(&lab, options, &load, &AtomicBool::new(false));
        assert_eq!((counts.finished, counts.refused, counts.ended()), (finished, 50 - finished, 50));
    }
    assert_eq!(server.finish().resets, 50);
}
