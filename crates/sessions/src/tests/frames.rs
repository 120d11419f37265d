//! The programs by test runs of the kernel, frame by frame: what they write is held to frames that are made here from the RFCs, byte for byte,
//! and what they leave alone is every other frame. Needs root.

use super::*;
use crate::layout::control;
use bpf::{Program, Run};
use port::resolve::message;
use std::net::Ipv6Addr;

const PASS: u32 = 2;
const TX: u32 = 3;
const REDIRECT: u32 = 4;
const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const PSH: u8 = 0x08;
const ACK: u8 = 0x10;
/// Tuples that are looked at of each pool.
const TUPLES: u32 = 300;

/// One end of a connection.
#[derive(Debug, Clone, Copy)]
struct Endpoint {
    mac: [u8; 6],
    address: IpAddr,
    port: u16,
}

/// What a segment says.
#[derive(Debug, Clone, Copy, Default)]
struct Said<'a> {
    sequence: u32,
    acknowledged: u32,
    flags: u8,
    options: &'a [u8],
    payload: &'a [u8],
}

pub(super) fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

/// RFC 1071.
pub(super) fn checksum(bytes: &[u8]) -> [u8; 2] {
    let words =
        bytes.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)])));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}

/// A frame with its checksums: RFC 791, 8200, 9293, IEEE 802.1Q.
fn segment(tag: Option<u16>, from: Endpoint, to: Endpoint, said: Said<'_>) -> Vec<u8> {
    let ends = [octets(from.address), octets(to.address)].concat();
    let mut tcp = [from.port.to_be_bytes(), to.port.to_be_bytes()].concat();
    tcp.extend([said.sequence.to_be_bytes(), said.acknowledged.to_be_bytes()].concat());
    tcp.extend([(5 + said.options.len() as u8 / 4) << 4, said.flags, 0xff, 0xff, 0, 0, 0, 0]);
    tcp.extend([said.options, said.payload].concat());
    let length = tcp.len() as u16;
    let pseudo = [&ends[..], &[0, 6], &length.to_be_bytes(), &tcp].concat();
    tcp[16..18].copy_from_slice(&checksum(&pseudo));
    let mut frame = [to.mac, from.mac].concat();
    if let Some(tag) = tag {
        frame.extend([[0x81, 0], tag.to_be_bytes()].concat());
    }
    if from.address.is_ipv4() {
        frame.extend([8, 0]);
        let mut ip =
            [&[0x45, 0][..], &(20 + length).to_be_bytes(), &[0, 0, 0x40, 0, 64, 6, 0, 0], &ends].concat();
        let sum = checksum(&ip);
        ip[10..12].copy_from_slice(&sum);
        frame.extend(ip);
    } else {
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        frame.extend([&length.to_be_bytes()[..], &[6, 64], &ends].concat());
    }
    [frame, tcp].concat()
}

/// Where the header of TCP begins.
fn tcp_at(sort: Sort) -> usize {
    14 + if sort.tag.is_some() { 4 } else { 0 } + if sort.v6 { 40 } else { 20 }
}

fn word(frame: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(frame[at..at + 4].try_into().expect("four bytes"))
}

/// What a program makes of a frame: the verdict, and the frame that it leaves.
fn made_of(program: &Program, frame: &[u8]) -> (u32, Vec<u8>) {
    let ran = program.run(Run { give_back: true, ..Run::on(frame) }).expect("the kernel runs it");
    (ran.verdict, ran.frame)
}

/// What the program makes of a frame, if it sends something.
pub(super) fn answered(program: &Program, frame: &[u8]) -> Option<Vec<u8>> {
    let (verdict, frame) = made_of(program, frame);
    [TX, REDIRECT].contains(&verdict).then_some(frame)
}

/// Clients that send nothing by themselves.
fn clients(lab: &Lab, options: Options) -> Clients {
    let host = &lab.sender;
    let clients = host.namespace.run_in(|| Clients::attach(host.interface, options));
    let clients = clients.expect("entered").expect("attached");
    let [a, b, c, d, e, f] = lab.receiver.mac;
    clients.loaded().control.store(control::NEXT_MAC, u64::from_ne_bytes([a, b, c, d, e, f, 0, 0]));
    clients.loaded().control.store(control::LIMIT, u64::MAX);
    clients
}

fn server_end(lab: &Lab, sort: Sort) -> Endpoint {
    Endpoint { mac: lab.receiver.mac, address: sort.address(&lab.receiver), port: 80 }
}

/// The address that comes so many after the first.
fn after(first: IpAddr, count: u32) -> IpAddr {
    match first {
        IpAddr::V4(v4) => std::net::Ipv4Addr::from(u32::from(v4) + count).into(),
        IpAddr::V6(v6) => Ipv6Addr::from(u128::from(v6) + u128::from(count)).into(),
    }
}

/// A pool, of which each family has one whose addresses differ in more than a byte.
fn pool(lab: &Lab, sort: Sort) -> Options {
    let first_address: IpAddr = match sort.v6 {
        true => "2001:db8:7:8:9:a:b:1".parse().expect("an address"),
        false => [10, 1, 254, 250].into(),
    };
    Options { first_address, addresses: 251, slots: TUPLES * 2, ..options_sort(lab, sort) }
}

#[test]
fn each_frame_of_a_connection_is_the_one_that_its_number_says_byte_for_byte() {
    let lab = lab();
    for sort in SORTS {
        let options = pool(&lab, sort);
        let clients = clients(&lab, options.clone());
        let (open, client) = (&clients.loaded().open, &clients.loaded().client);
        let (server, at) = (server_end(&lab, sort), tcp_at(sort));
        let mss = [2, 4, (sort.mss() >> 8) as u8, sort.mss() as u8];
        for number in 0..TUPLES {
            let from = Endpoint {
                mac: lab.sender.mac,
                address: after(options.first_address, number % 251),
                port: options.first_port + (number / 251) as u16,
            };
            let syn = answered(open, &[0; 2048]).expect("a SYN");
            let ours = word(&syn, at + 4);
            let said = Said { sequence: ours, flags: SYN, options: &mss, ..Said::default() };
            assert_eq!(syn, segment(sort.tag, from, server, said), "{sort:?} {number}");

            let theirs = number.wrapping_mul(0x9e37_79b9);
            let said = Said {
                sequence: theirs,
                acknowledged: ours.wrapping_add(1),
                flags: SYN | ACK,
                options: &mss,
                payload: &[],
            };
            // Priorities may change on the way.
            let tag = sort.tag.map(|tag| tag ^ 0xf000);
            let request = answered(client, &segment(tag, server, from, said)).expect("a request");
            let (ours, theirs) = (ours.wrapping_add(1), theirs.wrapping_add(1));
            let asked = Said {
                sequence: ours,
                acknowledged: theirs,
                flags: PSH | ACK,
                options: &[],
                payload: &options.request,
            };
            assert_eq!(request, segment(sort.tag, from, server, asked), "{sort:?} {number}");

            let payload = answer(100, true);
            let ours = ours.wrapping_add(options.request.len() as u32);
            let said = Said {
                sequence: theirs,
                acknowledged: ours,
                flags: FIN | PSH | ACK,
                options: &[],
                payload: &payload,
            };
            let closes = answered(client, &segment(tag, server, from, said)).expect("a FIN");
            let theirs = theirs.wrapping_add(payload.len() as u32 + 1);
            let said =
                Said { sequence: ours, acknowledged: theirs, flags: FIN | ACK, options: &[], payload: &[] };
            assert_eq!(closes, segment(sort.tag, from, server, said), "{sort:?} {number}");

            let said = Said {
                sequence: theirs,
                acknowledged: ours.wrapping_add(1),
                flags: ACK,
                options: &[],
                payload: &[],
            };
            assert_eq!(answered(client, &segment(tag, server, from, said)), None);
        }
        let counts = clients.counts();
        assert_eq!((counts.opened, counts.finished, counts.status_2xx), (300, 300, 300), "{counts:?}");
        assert_eq!((counts.unexpected, counts.malformed, counts.no_room), (0, 0, 0), "{counts:?}");
    }
}

#[test]
fn frames_of_another_family_vlan_tuple_or_host_are_left_alone() {
    let lab = lab();
    for sort in SORTS {
        let options = pool(&lab, sort);
        let clients = clients(&lab, options.clone());
        let client = &clients.loaded().client;
        let server = server_end(&lab, sort);
        let from = Endpoint { mac: lab.sender.mac, address: options.first_address, port: options.first_port };
        answered(&clients.loaded().open, &[0; 2048]).expect("a SYN");
        let said = Said { sequence: 1, acknowledged: 2, flags: RST | ACK, ..Said::default() };
        let right = segment(sort.tag, server, from, said);
        let taken = || clients.counts().rx_frames;
        made_of(client, &right);
        assert_eq!(taken(), 1, "{sort:?}");
        let other = Sort { v6: !sort.v6, ..sort };
        let elsewhere = |address| Endpoint { address, ..from };
        let tags = match sort.tag {
            Some(tag) => vec![None, Some(tag ^ 1), Some(tag ^ 0x800)],
            None => vec![Some(0), Some(1)],
        };
        let mut wrong: Vec<_> = tags.into_iter().map(|tag| segment(tag, server, from, said)).collect();
        wrong.push(segment(sort.tag, server_end(&lab, other), elsewhere(other.address(&lab.sender)), said));
        for away in [251, 1 << 20] {
            wrong.push(segment(sort.tag, server, elsewhere(after(options.first_address, away)), said));
        }
        wrong.push(segment(sort.tag, server, Endpoint { mac: [2, 0, 0, 0, 9, 9], ..from }, said));
        wrong.push(segment(sort.tag, server, Endpoint { port: from.port - 1, ..from }, said));
        wrong.push(segment(sort.tag, server, Endpoint { port: from.port + 9, ..from }, said));
        wrong.push(segment(sort.tag, Endpoint { port: 81, ..server }, from, said));
        wrong.push(segment(sort.tag, Endpoint { address: after(server.address, 1), ..server }, from, said));
        if let IpAddr::V6(first) = options.first_address {
            // Each word counts.
            for bit in [0, 40, 70, 127] {
                let near: IpAddr = Ipv6Addr::from(u128::from(first) ^ 1 << bit).into();
                wrong.extend((bit > 0).then(|| segment(sort.tag, server, elsewhere(near), said)));
                let IpAddr::V6(there) = server.address else { continue };
                let near = Ipv6Addr::from(u128::from(there) ^ 1 << bit).into();
                wrong.push(segment(sort.tag, Endpoint { address: near, ..server }, from, said));
            }
        }
        // Of another protocol, or with an extension header.
        let mut udp = right.clone();
        let protocol = tcp_at(sort) - if sort.v6 { 34 } else { 11 };
        for value in [17, 0, 44] {
            udp[protocol] = value;
            wrong.push(udp.clone());
        }
        // Cut off within its headers.
        wrong.extend((14..tcp_at(sort) + 20).map(|length| right[..length].to_vec()));
        for frame in wrong {
            let (verdict, left) = made_of(client, &frame);
            assert_eq!((verdict, left == frame, taken()), (PASS, true, 1), "{sort:?}: {frame:x?}");
        }
        // Lengths that contradict themselves are of a connection, and are dropped.
        let mut long = right.clone();
        let at = tcp_at(sort) - if sort.v6 { 36 } else { 18 };
        long[at..at + 2].copy_from_slice(&1000u16.to_be_bytes());
        made_of(client, &long);
        assert_eq!(clients.counts().malformed, 1, "{sort:?}");
    }
}

#[test]
fn a_server_answers_its_own_sort_of_frames_byte_for_byte() {
    let lab = lab();
    for sort in SORTS {
        let serving = serve_sort(&lab, sort, 100, 1);
        let (program, server) = (serving.program(), server_end(&lab, sort));
        let mss = [2, 4, (sort.mss() >> 8) as u8, sort.mss() as u8];
        let mut numbers = std::collections::BTreeSet::new();
        for number in 0..TUPLES {
            let from = Endpoint {
                mac: lab.sender.mac,
                address: after(sort.address(&lab.sender), number % 251 * 0x1_0001),
                port: 20_000 + (number / 251) as u16,
            };
            let said = Said { sequence: number, flags: SYN, ..Said::default() };
            let accepted = answered(program, &segment(sort.tag, from, server, said)).expect("an answer");
            let theirs = word(&accepted, tcp_at(sort) + 4);
            numbers.insert(theirs);
            let said = Said {
                sequence: theirs,
                acknowledged: number + 1,
                flags: SYN | ACK,
                options: &mss,
                payload: &[],
            };
            assert_eq!(accepted, segment(sort.tag, server, from, said), "{sort:?} {number}");
            let asked = Said {
                sequence: number + 1,
                acknowledged: theirs.wrapping_add(1),
                flags: PSH | ACK,
                options: &[],
                payload: b"GET /\r\n\r\n",
            };
            let said = answered(program, &segment(sort.tag, from, server, asked)).expect("an answer");
            let whole = Said {
                sequence: theirs.wrapping_add(1),
                acknowledged: number + 10,
                flags: FIN | PSH | ACK,
                options: &[],
                payload: &answer(100, true),
            };
            assert_eq!(said, segment(sort.tag, server, from, whole), "{sort:?} {number}");
            // Of another tuple the number is another.
            let other = Endpoint { address: after(from.address, 1 << 16), ..from };
            let refused = answered(program, &segment(sort.tag, other, server, asked)).expect("a RST");
            assert_eq!(refused[tcp_at(sort) + 13], RST);
        }
        assert_eq!(numbers.len(), TUPLES as usize, "{sort:?}");
    }
}

#[test]
fn who_asks_for_the_address_of_a_client_or_server_is_answered_as_the_rfcs_say() {
    let lab = lab();
    let asks = [2, 0, 0, 0, 0xaa, 1];
    for sort in SORTS {
        let options = pool(&lab, sort);
        let hosts_own = after(options.first_address, 3);
        let clients = clients(&lab, Options { host: Some(hosts_own), ..options.clone() });
        let tagged = |mut frame: Vec<u8>, tag: Option<u16>| {
            let tag = tag.map(|tag| [[0x81, 0], tag.to_be_bytes()].concat());
            frame.splice(12..12, tag.into_iter().flatten());
            frame
        };
        let source: IpAddr =
            if sort.v6 { "fe80::77".parse().expect("an address") } else { [10, 9, 9, 9].into() };
        let question = |source, target| message::question(asks, source, target).expect("a question");
        for (away, is_ours) in [(0, true), (250, true), (251, false), (3, false), (1 << 20, false)] {
            let target = after(options.first_address, away);
            let asked = question(source, target);
            let expected =
                message::asked(&asked).map(|asked| message::reply(lab.sender.mac, &asked)).expect("asked");
            let answer = answered(&clients.loaded().client, &tagged(asked.clone(), sort.tag));
            let mut expected = tagged(expected, sort.tag);
            // What is padding is as long as that of the question.
            if let Some(answer) = &answer {
                expected.truncate(answer.len());
            }
            assert_eq!(answer, is_ours.then_some(expected), "{sort:?} {target}");
            // With another tag it is none of ours.
            let other = sort.tag.map_or(Some(7), |tag| Some(tag ^ 7));
            assert_eq!(made_of(&clients.loaded().client, &tagged(asked, other)).0, PASS);
        }
        // Who looks whether an address is free is not answered.
        let nobody: IpAddr = if sort.v6 { Ipv6Addr::UNSPECIFIED.into() } else { [0; 4].into() };
        let probe = tagged(question(nobody, options.first_address), sort.tag);
        assert_eq!(made_of(&clients.loaded().client, &probe).0, PASS);
        if sort.v6 {
            // From further away, and cut short.
            let mut far = tagged(question(source, options.first_address), sort.tag);
            let hops = tcp_at(sort) - 33;
            far[hops] = 254;
            assert_eq!(made_of(&clients.loaded().client, &far).0, PASS);
            far[hops] = 255;
            for length in 14..tcp_at(sort) + 24 {
                assert_eq!(made_of(&clients.loaded().client, &far[..length]).0, PASS, "{length}");
            }
            // Without the option of who asks: RFC 4861, section 7.2.4.
            far[hops - 2] = 24;
            assert!(answered(&clients.loaded().client, &far[..tcp_at(sort) + 24]).is_some());
        }
        let counts = clients.counts();
        let answers = if sort.v6 { (0, 3) } else { (2, 0) };
        assert_eq!((counts.arp_replies, counts.advertisements), answers);

        let serving = serve_sort(&lab, sort, 1, 1);
        let target = sort.address(&lab.receiver);
        let answer = answered(serving.program(), &tagged(question(source, target), sort.tag));
        // Here it answers in a VLAN alone.
        assert_eq!(answer.is_some(), sort.tag.is_some(), "{sort:?}");
        assert_eq!(answered(serving.program(), &tagged(question(source, after(target, 1)), sort.tag)), None);
    }
}

#[test]
fn two_servers_that_are_set_on_each_other_fall_silent() {
    for (sort, requests) in SORTS.iter().flat_map(|sort| [(*sort, 1), (*sort, 5)]) {
        fall_silent(sort, requests);
    }
}

/// As many answers as there may be requests, and what opens and closes.
fn fall_silent(sort: Sort, requests: u32) {
    let lab = lab();
    let first = serve_sort(&lab, sort, 100, requests);
    let program = first.program();
    let server = server_end(&lab, sort);
    // Seen from the first, the second is a client at the same port; the same program with the addresses swapped is the second.
    let client = Endpoint { mac: lab.sender.mac, address: sort.address(&lab.sender), port: 80 };
    for flags in 0..64u8 {
        for payload in [0, 1, 700] {
            for (sequence, acknowledged) in
                [(0, 0), (1, cookie(sort, program, client, server).wrapping_add(1))]
            {
                let payload = vec![b'x'; payload];
                let said = Said { sequence, acknowledged, flags, options: &[], payload: &payload };
                let mut frame = segment(sort.tag, client, server, said);
                let mut hops = 0;
                while let Some(answer) = answered(program, &frame) {
                    hops += 1;
                    assert!(hops <= 3 + requests, "{sort:?}, flags {flags:#x}, {} bytes", payload.len());
                    // The worst that the second could be: one whose numbers the answer happens to fit.
                    frame = turned(sort, &answer, client, server);
                }
            }
        }
    }
}

/// The initial sequence number that a server gives a client.
fn cookie(sort: Sort, program: &Program, client: Endpoint, server: Endpoint) -> u32 {
    let syn = segment(sort.tag, client, server, Said { flags: SYN, ..Said::default() });
    word(&answered(program, &syn).expect("an answer to a SYN"), tcp_at(sort) + 4)
}

/// The answer, as if its receiver were the server again and everything in it were right there.
fn turned(sort: Sort, frame: &[u8], client: Endpoint, server: Endpoint) -> Vec<u8> {
    let mut turned = frame.to_vec();
    turned[..12].copy_from_slice(&[server.mac, client.mac].concat());
    let addresses = [octets(client.address), octets(server.address)].concat();
    let at = tcp_at(sort);
    turned[at - addresses.len()..at].copy_from_slice(&addresses);
    turned
}
