//! Clients and server against each other over a veth pair. Needs root.

use crate::{Clients, Counts, Load, Options, Ran, Served, Server, ServerOptions, answer, request};
use lab::Lab;
use port::interface::Interface;
use port::packet::Target;
use std::net::SocketAddrV4;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(3);

fn lab() -> Lab {
    Lab::two_hosts(&lab::Options { addresses: true, ..Default::default() }).expect("a lab (as root)")
}

fn serve(lab: &Lab, body: usize) -> Server {
    let host = &lab.receiver;
    let options = ServerOptions {
        listen: SocketAddrV4::new(host.address, 80),
        own: host.mac,
        answers_arp: false,
        answer: answer(body),
        mss: 1460,
        key: [1, 2],
        generic: false,
    };
    host.namespace.run_in(|| Server::attach(host.interface, &options)).expect("entered").expect("attached")
}

fn options(lab: &Lab) -> Options {
    Options {
        server: SocketAddrV4::new(lab.receiver.address, 80),
        own: lab.sender.mac,
        host: lab.sender.address,
        first_address: lab.sender.address,
        addresses: 1,
        first_port: 16384,
        slots: 16384,
        request: request("server", "/", None),
        mss: 1460,
        retransmit_after: Duration::from_millis(100),
        timeout: TIMEOUT,
        generic: false,
    }
}

fn run(lab: &Lab, options: Options, load: &Load, stop: &AtomicBool) -> (Ran, Counts) {
    let host = &lab.sender;
    let run = || {
        let clients = Clients::attach(host.interface, options).expect("attached");
        let link = Interface::by_name(host.interface).expect("an interface");
        let target = Target { name: host.interface.to_owned(), index: link.index, mtu: link.mtu };
        let way = xdp::way::find(&target, link.kind.as_deref(), 1, 1).expect("a way");
        let load = Load { next_hop: lab.receiver.mac, ..*load };
        let ran = clients.run(&way, &load, stop).expect("a run");
        let times = clients.times();
        let counts = clients.counts();
        assert_eq!(times[0].count(), counts.established);
        eprintln!("{ran:?}\n{counts:?}\n{:?}", times.map(|times| (times.quantile(0.5), times.max())));
        (ran, counts)
    };
    host.namespace.run_in(run).expect("entered")
}

/// Both ends tell the same.
fn agree(counts: &Counts, served: &Served) {
    assert_eq!(counts.opened, counts.ended(), "{counts:?}");
    assert_eq!((counts.tx_frames, counts.tx_bytes), (served.rx_frames, served.rx_bytes));
    assert_eq!((counts.rx_frames, counts.rx_bytes), (served.tx_frames, served.tx_bytes));
    assert_eq!(served.unexpected + served.bad_cookies + served.malformed + served.no_room, 0, "{served:?}");
}

#[test]
fn every_connection_finishes_in_six_frames() {
    let lab = lab();
    let server = serve(&lab, 100);
    let load = Load { count: Some(20_000), in_flight: Some(100), ..Load::default() };
    let (ran, counts) = run(&lab, options(&lab), &load, &AtomicBool::new(false));
    let served = server.finish();
    agree(&counts, &served);
    assert_eq!((counts.opened, counts.finished, counts.failed()), (20_000, 20_000, 0));
    assert_eq!((served.syns, served.requests, served.finished), (20_000, 20_000, 20_000));
    assert_eq!((counts.tx_frames, counts.rx_frames, counts.retransmitted()), (60_000, 60_000, 0));
    assert_eq!(counts.answer_bytes, 20_000 * answer(100).len() as u64);
    assert!(!ran.stopped);
}

#[test]
fn a_schedule_is_kept_to_the_connection() {
    let lab = lab();
    let server = serve(&lab, 1);
    let load = Load { rate: Some(7_001), duration: Some(Duration::from_millis(500)), ..Load::default() };
    let (ran, counts) = run(&lab, options(&lab), &load, &AtomicBool::new(false));
    agree(&counts, &server.finish());
    // As many as are due within the time, the first at its beginning.
    assert_eq!((counts.opened, counts.finished), (3_501, 3_501));
    assert!(ran.opening_ns >= 499_000_000, "{ran:?}");
}

#[test]
fn a_long_answer_arrives_whole_a_segment_for_each_acknowledgement() {
    let lab = lab();
    let server = serve(&lab, 20_000);
    let load = Load { count: Some(500), in_flight: Some(50), ..Load::default() };
    let (_, counts) = run(&lab, options(&lab), &load, &AtomicBool::new(false));
    let served = server.finish();
    agree(&counts, &served);
    let (whole, segments) = (answer(20_000).len() as u64, answer(20_000).len().div_ceil(1460) as u64);
    assert_eq!((counts.finished, counts.answer_bytes), (500, 500 * whole));
    assert_eq!((served.segments, served.answer_bytes), (500 * segments, 500 * whole));
}

#[test]
fn who_does_not_answer_lets_every_connection_time_out() {
    let lab = lab();
    let server = serve(&lab, 1);
    // Nobody has that address, and the host there passes nothing on.
    let nobody = SocketAddrV4::new([192, 0, 2, 1].into(), 80);
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
    let nobody = SocketAddrV4::new([192, 0, 2, 1].into(), 80);
    let load = Load { rate: Some(10_000), ..Load::default() };
    let stop = AtomicBool::new(false);
    let (ran, counts) = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(200));
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        run(&lab, Options { server: nobody, ..options(&lab) }, &load, &stop)
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

#[test]
fn two_servers_that_are_set_on_each_other_fall_silent() {
    let lab = lab();
    let first = serve(&lab, 100);
    let program = first.program();
    let server = Endpoint { mac: lab.receiver.mac, address: lab.receiver.address.octets(), port: 80 };
    // Seen from the first, the second is a client at the same port; the same program with the addresses swapped is the second.
    let client = Endpoint { mac: lab.sender.mac, address: lab.sender.address.octets(), port: 80 };
    for flags in 0..64u8 {
        for payload in [0, 1, 700] {
            for (sequence, acknowledged) in [(0, 0), (1, cookie(program, client, server).wrapping_add(1))] {
                let mut frame = segment(client, server, (sequence, acknowledged), flags, payload);
                let mut hops = 0;
                while let Some(answer) = answered(program, &frame) {
                    hops += 1;
                    assert!(hops <= 4, "flags {flags:#x}, {payload} bytes");
                    frame = answer;
                    // The worst that the second could be: one whose numbers the answer happens to fit.
                    let (from, to) = (client, server);
                    frame = turned(&frame, from, to);
                }
            }
        }
    }
}

/// One end of a connection.
#[derive(Clone, Copy)]
struct Endpoint {
    mac: [u8; 6],
    address: [u8; 4],
    port: u16,
}

/// A segment without options; its checksums are those of nobody, since none is looked at.
fn segment(
    from: Endpoint,
    to: Endpoint,
    (sequence, acknowledged): (u32, u32),
    flags: u8,
    payload: usize,
) -> Vec<u8> {
    let mut frame = [to.mac, from.mac].concat();
    frame.extend([8, 0, 0x45, 0]);
    frame.extend((40 + payload as u16).to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
    frame.extend(from.address.into_iter().chain(to.address));
    frame.extend(from.port.to_be_bytes().into_iter().chain(to.port.to_be_bytes()));
    frame.extend(sequence.to_be_bytes().into_iter().chain(acknowledged.to_be_bytes()));
    frame.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    frame.resize(frame.len() + payload, b'x');
    frame
}

/// What the program makes of a frame, if it sends something.
fn answered(program: &bpf::Program, frame: &[u8]) -> Option<Vec<u8>> {
    const REDIRECT: u32 = 4;
    const TX: u32 = 3;
    let ran = program.run(bpf::Run { give_back: true, ..bpf::Run::on(frame) }).expect("the kernel runs it");
    [TX, REDIRECT].contains(&ran.verdict).then_some(ran.frame)
}

/// The initial sequence number that a server gives a client.
fn cookie(program: &bpf::Program, client: Endpoint, server: Endpoint) -> u32 {
    let syn = answered(program, &segment(client, server, (0, 0), 2, 0)).expect("an answer to a SYN");
    u32::from_be_bytes([syn[38], syn[39], syn[40], syn[41]])
}

/// The answer, as if its receiver were the server again and everything in it were right there.
fn turned(frame: &[u8], client: Endpoint, server: Endpoint) -> Vec<u8> {
    let mut turned = frame.to_vec();
    turned[..12].copy_from_slice(&[server.mac, client.mac].concat());
    turned[26..34].copy_from_slice(&[client.address, server.address].concat());
    turned
}
