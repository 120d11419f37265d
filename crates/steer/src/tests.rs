//! The programs in the kernel, run on frames: what is learned, taken out, put in, stolen and let go.

use crate::flows::Flow;
use crate::options::{ENGINE_MAC, OWN_MAC, Options, VNI};
use crate::programs::{Loaded, load};
use crate::steering::now;
use bpf::{Program, Run};
use std::net::IpAddr;

const UNSPEC: u32 = u32::MAX;
const SHOT: u32 = 2;
const STOLEN: u32 = 4;
const REDIRECT: u32 = 7;
const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// Addresses of one family: client, server, engine, target.
struct Side {
    client: IpAddr,
    server: IpAddr,
    engine: IpAddr,
}

fn side(six: bool) -> Side {
    let of = |last: &str| ip(&if six { format!("fd77::{last}") } else { format!("10.77.0.{last}") });
    Side { client: of("1"), server: of("2"), engine: of("3") }
}

fn loaded(six: bool, flows: u32) -> Loaded {
    let side = side(six);
    let options = Options {
        on: "lo".to_owned(),
        server: (Some(side.server), 80),
        engine: side.engine,
        tunnel: (4789, VNI),
        most_flows: flows,
    };
    let loaded =
        load(&options, 1, side.server).unwrap_or_else(|error| panic!("these tests need root: {error}"));
    loaded.maps.set_lease(now() + 3_600_000_000_000).expect("a lease");
    loaded
}

fn sum(bytes: &[u8]) -> u32 {
    bytes.chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(*two.get(1).unwrap_or(&0))).sum()
}

fn fold(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

/// An IP packet; `fragment` is the field of IPv4, or that of an IPv6 fragment header if not 0.
fn packet(from: IpAddr, to: IpAddr, protocol: u8, fragment: u16, payload: &[u8]) -> Vec<u8> {
    let (length, mut bytes) = (payload.len() as u16, Vec::new());
    match from {
        IpAddr::V4(_) => {
            bytes.extend([0x45, 0]);
            bytes.extend((length + 20).to_be_bytes());
            bytes.extend([0, 0]);
            bytes.extend(fragment.to_be_bytes());
            bytes.extend([64, protocol, 0, 0]);
        }
        IpAddr::V6(_) => {
            let more = if fragment > 0 { 8 } else { 0 };
            bytes.extend([0x60, 0, 0, 0]);
            bytes.extend((length + more).to_be_bytes());
            bytes.extend([if more > 0 { 44 } else { protocol }, 64]);
        }
    }
    bytes.extend(octets(from));
    bytes.extend(octets(to));
    if from.is_ipv4() {
        let sum = fold(sum(&bytes));
        bytes[10..12].copy_from_slice(&sum.to_be_bytes());
    } else if fragment > 0 {
        bytes.extend([protocol, 0]);
        bytes.extend((fragment << 3).to_be_bytes());
        bytes.extend([0, 0, 0, 9]);
    }
    bytes.extend(payload);
    bytes
}

fn segment(from: u16, to: u16, flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(from.to_be_bytes());
    bytes.extend(to.to_be_bytes());
    bytes.extend([0, 0, 0, 1, 0, 0, 0, 2, 0x50, flags, 0xff, 0xff, 0x12, 0x34, 0, 0]);
    bytes.extend(payload);
    bytes
}

fn datagram(from: u16, to: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(from.to_be_bytes());
    bytes.extend(to.to_be_bytes());
    bytes.extend((payload.len() as u16 + 8).to_be_bytes());
    bytes.extend([0, 0]);
    bytes.extend(payload);
    bytes
}

fn framed(to: [u8; 6], from: [u8; 6], packet: &[u8]) -> Vec<u8> {
    let kind: [u8; 2] = if packet[0] >> 4 == 4 { [8, 0] } else { [0x86, 0xdd] };
    [&to[..], &from[..], &kind[..], packet].concat()
}

const NEAR: [u8; 6] = [2, 0, 0, 0, 0, 1];
const FAR: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// As the engine sends it through the tunnel.
fn tunnelled(from: IpAddr, to: IpAddr, vni: u32, inner: &[u8]) -> Vec<u8> {
    let mut vxlan = vec![8, 0, 0, 0];
    vxlan.extend((vni << 8).to_be_bytes());
    vxlan.extend(framed(OWN_MAC, ENGINE_MAC, inner));
    framed(NEAR, FAR, &packet(from, to, 17, 0, &datagram(50000, 4789, &vxlan)))
}

fn run(program: &Program, frame: &[u8]) -> (u32, Vec<u8>) {
    let ran = program.run(Run { give_back: true, ..Run::on(frame) }).expect("a run");
    (ran.verdict, ran.frame)
}

#[test]
fn a_syn_teaches_its_flow_and_everything_else_of_unlearned_ones_is_dropped() {
    for six in [false, true] {
        let (of, side) = (loaded(six, 2), side(six));
        let from = |port: u16, flags: u8| {
            let inner = packet(side.client, side.server, 6, 0, &segment(port, 80, flags, b"GET"));
            (tunnelled(side.engine, side.server, VNI, &inner), framed(NEAR, FAR, &inner))
        };
        for flags in [ACK, SYN | ACK, RST, FIN | ACK] {
            assert_eq!(run(&of.arrive, &from(1000, flags).0).0, SHOT);
        }
        let (frame, inner) = from(1000, SYN);
        assert_eq!(
            run(&of.arrive, &frame),
            (UNSPEC, inner),
            "the outer headers are gone, nothing else changed"
        );
        assert_eq!(run(&of.arrive, &from(1000, ACK).0).0, UNSPEC);
        assert_eq!(run(&of.arrive, &from(1001, SYN).0).0, UNSPEC);
        assert_eq!(run(&of.arrive, &from(1002, SYN).0).0, SHOT, "there is no room");
        let counts = of.maps.read_counts();
        assert_eq!(
            (counts.unlearned, counts.learned, counts.full, counts.decapsulated),
            (4, 2, 1, 3),
            "{counts:?}"
        );
        let mut flows: Vec<Flow> = of.maps.learned().into_iter().map(|(flow, _)| flow).collect();
        flows.sort_unstable_by_key(|flow| flow.ends().0.port());
        let wanted = [1000, 1001].map(|port| Flow::new((side.client, port).into(), (side.server, 80).into()));
        assert_eq!(flows, wanted);
    }
}

#[test]
fn packets_of_no_tunnel_pass_and_those_of_the_tunnel_that_are_no_clients_do_not() {
    for six in [false, true] {
        let (of, side) = (loaded(six, 4), side(six));
        let syn = packet(side.client, side.server, 6, 0, &segment(1000, 80, SYN, b""));
        for frame in [
            tunnelled(side.client, side.server, VNI, &syn),
            tunnelled(side.engine, side.server, VNI + 1, &syn),
            framed(NEAR, FAR, &syn),
            framed(NEAR, FAR, &packet(side.engine, side.server, 17, 0, &datagram(1, 53, b"short"))),
            framed(NEAR, FAR, &packet(side.engine, side.server, 17, 0, &[])),
        ] {
            assert_eq!(run(&of.arrive, &frame), (UNSPEC, frame));
        }
        for inner in [
            packet(side.client, side.server, 6, 0, &segment(1000, 81, SYN, b"")),
            packet(side.client, side.client, 6, 0, &segment(1000, 80, SYN, b"")),
            packet(side.client, side.server, 6, 0x2000, &segment(1000, 80, SYN, b"")),
            packet(side.client, side.server, 6, 0, &[0; 6]),
            packet(side.client, side.server, 1, 0, &[8, 0, 0, 0]),
        ] {
            assert_eq!(run(&of.arrive, &tunnelled(side.engine, side.server, VNI, &inner)).0, SHOT);
        }
        assert!(of.maps.learned().is_empty() && of.maps.read_counts().malformed == 5);
    }
}

#[test]
fn without_a_lease_nothing_comes_in_and_answers_are_steered_all_the_same() {
    let (of, side) = (loaded(false, 4), side(false));
    let syn = packet(side.client, side.server, 6, 0, &segment(1000, 80, SYN, b""));
    let syn = tunnelled(side.engine, side.server, VNI, &syn);
    let heartbeat = packet(side.client, side.server, 17, 0, &datagram(9, 9, b"hello"));
    let heartbeat = tunnelled(side.engine, side.server, VNI, &heartbeat);
    assert_eq!(run(&of.arrive, &syn).0, UNSPEC);
    of.maps.set_lease(now()).expect("a lease");
    assert_eq!((run(&of.arrive, &syn).0, run(&of.arrive, &heartbeat).0), (SHOT, SHOT));
    assert_eq!(of.maps.read_counts().leaseless, 2);
    let answer = packet(side.server, side.client, 6, 0, &segment(80, 1000, SYN | ACK, b""));
    assert_eq!(run(&of.depart, &framed(FAR, NEAR, &answer)).0, REDIRECT);
}

#[test]
fn a_heartbeat_goes_back_with_both_headers_turned_round() {
    for six in [false, true] {
        let (of, side) = (loaded(six, 4), side(six));
        let heartbeat =
            |from, to, ports: (u16, u16)| packet(from, to, 17, 0, &datagram(ports.0, ports.1, b"12345678"));
        let frame = tunnelled(side.engine, side.server, VNI, &heartbeat(side.client, side.server, (7, 9)));
        let (verdict, back) = run(&of.arrive, &frame);
        let mut vxlan = vec![8, 0, 0, 0];
        vxlan.extend((VNI << 8).to_be_bytes());
        vxlan.extend(framed(ENGINE_MAC, OWN_MAC, &heartbeat(side.server, side.client, (9, 7))));
        let outer = packet(side.server, side.engine, 17, 0, &datagram(50000, 4789, &vxlan));
        assert_eq!((verdict, back), (REDIRECT, framed(FAR, NEAR, &outer)));
        assert!(of.maps.read_counts().heard_ns > 0);
    }
}

#[test]
fn answers_of_learned_flows_go_into_the_tunnel_and_others_where_they_would() {
    for six in [false, true] {
        let (of, side) = (loaded(six, 4), side(six));
        let answer =
            |port: u16, bytes: &[u8]| packet(side.server, side.client, 6, 0, &segment(80, port, ACK, bytes));
        let frame = framed(FAR, NEAR, &answer(1000, &[7; 1000]));
        assert_eq!(run(&of.depart, &frame), (UNSPEC, frame.clone()), "nothing was learned");
        let syn = packet(side.client, side.server, 6, 0, &segment(1000, 80, SYN, b""));
        run(&of.arrive, &tunnelled(side.engine, side.server, VNI, &syn));
        for bytes in [&[7; 1000][..], b"", b"odd"] {
            let inner = answer(1000, bytes);
            let (verdict, frame) = run(&of.depart, &framed(FAR, NEAR, &inner));
            assert_eq!(verdict, REDIRECT);
            let ip_length = if six { 40 } else { 20 };
            let (outer, rest) = frame[14..].split_at(ip_length);
            let mut wanted = packet(side.server, side.engine, 17, 0x4000, &vec![0; rest.len()]);
            if six {
                wanted = packet(side.server, side.engine, 17, 0, &vec![0; rest.len()]);
            }
            assert_eq!(outer, &wanted[..ip_length], "its checksum and length are right");
            assert!(u16::from_be_bytes([rest[0], rest[1]]) >= 0xc000);
            assert_eq!(rest[2..6], [0x12, 0xb5, (rest.len() >> 8) as u8, rest.len() as u8]);
            let mut vxlan = vec![0, 0, 8, 0, 0, 0];
            vxlan.extend((VNI << 8).to_be_bytes());
            vxlan.extend(framed(ENGINE_MAC, OWN_MAC, &inner));
            assert_eq!(rest[6..], vxlan);
        }
        let other = framed(FAR, NEAR, &answer(1001, b"to a client of its own"));
        assert_eq!(run(&of.depart, &other), (UNSPEC, other));
        assert_eq!(run(&of.steal, &framed(FAR, NEAR, &answer(1000, b""))).0, STOLEN);
        let counts = of.maps.read_counts();
        assert_eq!((counts.steered, counts.stolen_answers), (3, 1));
    }
}

#[test]
fn what_else_would_go_to_a_client_is_stolen() {
    for six in [false, true] {
        let (of, side) = (loaded(six, 4), side(six));
        let syn = packet(side.client, side.server, 6, 0, &segment(1000, 80, SYN, b""));
        run(&of.arrive, &tunnelled(side.engine, side.server, VNI, &syn));
        let (protocol, kind) = if six { (58, 2) } else { (1, 3) };
        let error = |port: u16, kind: u8| {
            let quoted = packet(side.client, side.server, 6, 0, &segment(port, 80, ACK, b""));
            let bytes = [&[kind, 4, 0, 0, 0, 0, 0, 0][..], &quoted[..]].concat();
            framed(FAR, NEAR, &packet(side.server, side.client, protocol, 0, &bytes))
        };
        assert_eq!(run(&of.depart, &error(1000, kind)).0, STOLEN, "an error about a copy's packet");
        assert_eq!(run(&of.depart, &error(1001, kind)).0, UNSPEC, "about a client's own");
        let echo = if six { 129 } else { 0 };
        assert_eq!(run(&of.depart, &error(1000, echo)).0, UNSPEC, "no error");
        let piece = |fragment| {
            framed(
                FAR,
                NEAR,
                &packet(side.server, side.client, 6, fragment, &segment(80, 1000, ACK, b"piece")),
            )
        };
        let first = if six { 0 } else { 0x2000 };
        assert_eq!(run(&of.depart, &piece(100)).0, STOLEN, "a piece without ports");
        if !six {
            assert_eq!(run(&of.depart, &piece(first)).0, STOLEN, "the first piece");
        }
        let others = packet(side.client, side.server, 6, 100, &segment(80, 1000, ACK, b"piece"));
        assert_eq!(run(&of.depart, &framed(FAR, NEAR, &others)).0, UNSPEC, "a piece of another host's");
        let counts = of.maps.read_counts();
        assert_eq!((counts.stolen_icmp, counts.stolen_fragments), (1, if six { 1 } else { 2 }));
    }
}

#[test]
fn a_learned_flows_packets_come_through_the_tunnel_alone_and_none_once_it_is_being_forgotten() {
    let (of, side) = (loaded(false, 4), side(false));
    let inner = |flags: u8| packet(side.client, side.server, 6, 0, &segment(1000, 80, flags, b""));
    let through = |flags: u8| tunnelled(side.engine, side.server, VNI, &inner(flags));
    assert_eq!(run(&of.arrive, &framed(NEAR, FAR, &inner(SYN))).0, UNSPEC);
    assert_eq!(run(&of.arrive, &through(SYN)).0, UNSPEC);
    assert_eq!(run(&of.arrive, &framed(NEAR, FAR, &inner(RST))).0, SHOT);
    assert_eq!(of.maps.read_counts().foreign, 1);
    let (flow, state) = of.maps.learned()[0];
    assert!(!state.is_closed() && !state.was_answered());
    of.maps.mark(&flow, state, true);
    assert_eq!(run(&of.arrive, &through(SYN)).0, SHOT);
    let answer = packet(side.server, side.client, 6, 0, &segment(80, 1000, FIN | ACK, b""));
    assert_eq!(run(&of.depart, &framed(FAR, NEAR, &answer)).0, REDIRECT, "answers are steered to the end");
    let (flow, state) = of.maps.learned()[0];
    assert!(state.is_forgotten() && state.was_answered());
    of.maps.mark(&flow, state, false);
    assert_eq!(run(&of.arrive, &through(FIN | ACK)).0, UNSPEC);
    assert!(of.maps.learned()[0].1.is_closed());
    of.maps.forget(&flow);
    assert!(of.maps.learned().is_empty());
}
