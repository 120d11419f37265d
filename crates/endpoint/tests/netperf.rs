//! netperf's protocol: what stands on the wire, and that nothing that comes over it harms.

use netdyno_endpoint::netperf::client::{Client, Fault, Step as ClientStep};
use netdyno_endpoint::netperf::legacy::Kind;
use netdyno_endpoint::netperf::message::{LENGTH, Message, Reader};
use netdyno_endpoint::netperf::omni::{self, Cpu, Request, Response, Results, direction, flag};
use netdyno_endpoint::netperf::plan::{Length, Plan, Shape, Style, Transport};
use netdyno_endpoint::netperf::server::{Ended, Server, Step};
use proptest::prelude::*;
use std::net::IpAddr;

/// A message of words, hexadecimal as netperf's documentation and captures show them; the rest is zero.
fn message(words: &str) -> Message {
    let mut bytes = [0; LENGTH];
    for (place, word) in bytes.chunks_exact_mut(4).zip(words.split_whitespace().filter(|word| *word != "|")) {
        place.copy_from_slice(&u32::from_str_radix(word, 16).expect("a word").to_be_bytes());
    }
    Message::from_bytes(&bytes)
}

/// What netperf 2.7.1 sent for `netperf -l 1 -- -m 100`.
const TCP_STREAM: &str =
    "00000061 ffffffff | ffffffff ffffffff 8 0 a4 ffffffff | ffffffff ffffffff 8 0 0 ffffffff |
    20 0 1 0 0 ffffffff ffffffff ffffffff | 0 4 1 6 4 0 0 0 | 0 0 0 0 0 0 0 0 | ffffffff ffffffff";

#[test]
fn the_request_is_what_netperf_sends_byte_for_byte() {
    let request = Request {
        send_width: 0xa4,
        flags: flag::ROUTING_ALLOWED,
        length: 1,
        direction: direction::RECV,
        ..Request::default()
    };
    assert_eq!(request.encode().as_bytes(), message(TCP_STREAM).as_bytes());
    assert_eq!(Request::decode(&message(TCP_STREAM)), request);
}

#[test]
fn netperfs_request_is_a_plan() {
    let mut server = Server::new(None, 2);
    let steps = server.receive(message(TCP_STREAM).as_bytes());
    let [Step::Run(plan)] = steps.as_slice() else { panic!("{steps:?}") };
    assert_eq!((plan.shape, plan.transport, plan.v6), (Shape::Receive, Transport::Tcp, Some(false)));
    assert_eq!(plan.length, Length::Time(std::time::Duration::from_secs(1)));
    assert_eq!((plan.send_size, plan.receive_size, plan.recv_buffer), (None, None, None));
    let response = server.ready(&Response { data_port: 40_000, recv_buffer: 131_072, ..Response::default() });
    assert_eq!(&response.as_bytes()[..12], [0, 0, 0, 0x62, 0, 0, 0, 0, 0, 2, 0, 0]);
    assert_eq!(&response.as_bytes()[8 + 44..8 + 48], [0, 0, 0x9c, 0x40]);
    let results = Results { bytes_received: 0x1_0000_0002, elapsed: 1.0, ..Results::default() };
    let results = server.finished(&results);
    // The header as a little-endian netserver leaves it.
    assert_eq!(&results.as_bytes()[..16], [0x62, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2]);
    assert_eq!(&results.as_bytes()[8 + 40..8 + 44], [0x3f, 0x80, 0, 0]);
}

#[test]
fn a_client_takes_results_whatever_their_kind_says() {
    let results = Results { congestion: "cubic".into(), retransmits: 7, ..Results::default() };
    for kind in [0x62, 0x6200_0000, 0x63] {
        let mut client = Client::new();
        client.request(&Request::default());
        let response = *Response::default().encode().as_bytes();
        assert!(matches!(client.receive(&mut &response[..]), Ok(Some(ClientStep::Data(_)))));
        let mut bytes = *results.encode().as_bytes();
        bytes[..4].copy_from_slice(&u32::to_be_bytes(kind));
        assert_eq!(client.receive(&mut &bytes[..]), Ok(Some(ClientStep::Done(results.clone()))));
        // The name stands 276 bytes from the beginning.
        assert_eq!(&bytes[276..282], b"cubic\0");
    }
}

#[test]
fn a_client_says_what_is_wrong_with_a_server() {
    let fault = |answer: Message| {
        let mut client = Client::new();
        client.request(&Request::default());
        client.receive(&mut &answer.as_bytes()[..]).expect_err("a fault")
    };
    // A server that is asked again in the test's own words and does not know them either.
    let mut client = Client::new();
    client.request(&Request::default());
    let unknown = *Message::new(97, 998).as_bytes();
    let again = client.receive(&mut &unknown[..]).expect("a second request");
    let Some(ClientStep::Again(message)) = again else { panic!("{again:?}") };
    assert_eq!(message.kind(), 10);
    assert_eq!(client.receive(&mut &unknown[..]), Err(Fault::Unknown));
    assert_eq!(fault(Message::new(98, 13)), Fault::Remote(13));
    assert!(fault(Message::new(98, 13)).to_string().contains("Permission denied"));
    assert_eq!(fault(Message::new(0x4854_5450, 0)), Fault::Unexpected { found: 0x4854_5450, expected: 98 });
}

#[test]
fn legacy_requests_are_read_and_answered_in_their_own_layout() {
    // What netperf 2.7.1, built with --enable-omni=no, sends for `-t TCP_RR -l 1 -- -r 64,65536`.
    let request = message("d ffffffff | ffffffff ffffffff 8 0 8 0 40 10000 0 0 0 1 0 0 0 4");
    let mut server = Server::new(None, 2);
    let steps = server.receive(request.as_bytes());
    let [Step::Run(plan)] = steps.as_slice() else { panic!("{steps:?}") };
    assert_eq!(plan.style, Style::Legacy(Kind::TcpRr));
    assert_eq!((plan.shape, plan.request_size, plan.response_size), (Shape::Answer, 64, 65_536));
    let response =
        Response { recv_buffer: 1, send_buffer: 2, data_port: 3, length: 1, ..Response::default() };
    assert_eq!(server.ready(&response), message("e 0 | 1 0 0 1 2 3"));
    let results =
        Results { bytes_received: 640, recv_calls: 10, transactions: 10, elapsed: 2.0, ..Results::default() };
    assert_eq!(server.finished(&results), message("f 0 | 280 a a 40000000 bf800000 bf800000"));
    // A double of bytes, big-endian.
    let results = Results { bytes_received: 1 << 40, recv_calls: 2, elapsed: 1.0, ..Results::default() };
    let words = "c 0 | 42700000 0 2 3f800000 bf800000 bf800000";
    assert_eq!(Kind::TcpStream.results(&results), message(words));
}

#[test]
fn requests_of_either_age_say_the_same() {
    let base = Request {
        flags: flag::NODELAY | flag::MEASURE_CPU,
        length: 7,
        request_size: 3,
        response_size: 4,
        ..Request::default()
    };
    for (kind, direction, each, protocol, socket) in [
        (Kind::TcpStream, 4, false, 6, 1),
        (Kind::TcpMaerts, 2, false, 6, 1),
        (Kind::TcpRr, 6, false, 6, 1),
        (Kind::TcpCrr, 6, true, 6, 1),
        (Kind::TcpCc, 0, true, 6, 1),
        (Kind::UdpStream, 4, false, 17, 2),
        (Kind::UdpRr, 6, false, 17, 2),
    ] {
        let flags = base.flags | if each { flag::CONNECT_TEST } else { 0 };
        let request = Request { direction, flags, protocol, socket, receive_size: 1400, ..base.clone() };
        assert_eq!(Kind::saying(&request), Some(kind));
        assert_eq!(Kind::saying(&Request { tos: 8, ..request.clone() }), None, "{kind:?} cannot say it");
        let plans = [
            Plan::of(Style::Omni, request.clone()).expect("a plan"),
            Plan::of(Style::Omni, kind.decode(&kind.request(&request))).expect("a plan"),
        ];
        let told = |plan: &Plan| (plan.shape, plan.transport, plan.length, plan.measure_cpu, plan.v6);
        assert_eq!(told(&plans[0]), told(&plans[1]), "{kind:?}");
        let response =
            Response { recv_buffer: 1, send_buffer: 2, data_port: 3, length: 7, ..Response::default() };
        let got = kind.decode_response(&kind.response(&response), &request);
        assert_eq!((got.recv_buffer, got.send_buffer, got.data_port), (1, 2, 3), "{kind:?}");
        let results = Results {
            bytes_received: 2800,
            bytes_sent: 2800,
            recv_calls: 2,
            send_calls: 2,
            transactions: 2,
            elapsed: 7.0,
            ..Results::default()
        };
        let got = kind.decode_results(&kind.results(&results), &request, &got);
        assert_eq!(
            (got.elapsed, got.transactions.max(got.recv_calls).max(got.send_calls)),
            (7.0, 2),
            "{kind:?}"
        );
    }
}

#[test]
fn all_other_requests_are_answered_as_netserver_does() {
    let mut server = Server::new(None, 4);
    let mut reply = |number: u32| {
        let steps = server.receive(Message::new(number, 0).as_bytes());
        let [Step::Reply(message)] = steps.as_slice() else { panic!("{steps:?}") };
        (**message).clone()
    };
    assert_eq!((reply(5).word(1), reply(5).float(0) > 0.0), (4, true));
    assert_eq!(reply(600).data(), b",Deprecated,Deprecated,Deprecated,Deprecated");
    assert_eq!((reply(12345).kind(), reply(12345).second()), (12345, 998));
    assert_eq!(reply(1).kind(), 3);
    assert_eq!(reply(4).kind(), 4);
}

#[test]
fn without_the_passphrase_nothing_is_answered() {
    let phrase = Client::passphrase("a secret");
    let request = message(TCP_STREAM);
    for (said, admitted) in
        [(Some("a secret"), true), (Some("a secre"), false), (Some("a secrets"), false), (None, false)]
    {
        let mut server = Server::new(Some(b"a secret"), 1);
        let mut steps =
            said.map_or_else(Vec::new, |said| server.receive(Client::passphrase(said).as_bytes()));
        steps.extend(server.receive(request.as_bytes()));
        let runs = steps.iter().any(|step| matches!(step, Step::Run(_)));
        let closes = steps.iter().any(|step| matches!(step, Step::Close(Ended::Passphrase)));
        assert_eq!((runs && !closes, closes && !runs), (admitted, !admitted), "{said:?}: {steps:?}");
    }
    assert_eq!(&phrase.as_bytes()[..16], b"\0\0\0\x06\0\0\0\0a secret");
}

#[test]
fn one_test_at_a_time() {
    let mut server = Server::new(None, 1);
    let twice = [*message(TCP_STREAM).as_bytes(), *message(TCP_STREAM).as_bytes()].concat();
    let steps = server.receive(&twice);
    assert!(matches!(steps.as_slice(), [Step::Run(_), Step::Close(Ended::OutOfTurn)]), "{steps:?}");
}

#[test]
fn what_is_too_much_or_not_there_is_refused_by_number() {
    let usual = Request::default();
    let datagrams = Request { protocol: omni::UDP, socket: omni::socket::DGRAM, ..usual.clone() };
    let cases = [
        (Request { receive_size: i32::MAX, ..usual.clone() }, 90),
        (Request { request_size: 65_508, direction: 6, ..datagrams.clone() }, 90),
        (Request { protocol: 132, ..usual.clone() }, 93),
        (Request { socket: 4, ..usual.clone() }, 93),
        (Request { direction: 0, ..usual.clone() }, 22),
        (Request { family: 7, ..usual.clone() }, 22),
        (Request { data_port: 65_536, ..usual.clone() }, 22),
        (Request { length: -5, ..datagrams.clone() }, 22),
        (Request { flags: flag::CONNECT_TEST, direction: 6, ..datagrams }, 22),
        (Request { fill_file: "/etc/shadow".into(), ..usual }, 13),
    ];
    for (request, errno) in cases {
        assert_eq!(
            Plan::of(Style::Omni, request.clone()).expect_err("a refusal").errno(),
            errno,
            "{request:?}"
        );
    }
}

#[test]
fn addresses_stand_in_words_as_netperf_on_a_little_endian_host_writes_them() {
    for (text, family, words) in
        [("192.0.2.1", 4, [0xc000_0201, 0, 0, 0]), ("2001:db8::1", 6, [0xb80d_0120, 0, 0, 0x0100_0000])]
    {
        let address: IpAddr = text.parse().expect("an address");
        assert_eq!(omni::address_words(address), words, "{text}");
        assert_eq!(omni::address_of(words, family), Some(address));
    }
    assert_eq!(omni::address_of([0; 4], 4), None);
}

fn text(length: usize) -> impl Strategy<Value = String> {
    proptest::collection::vec(b'!'..=b'~', 0..length)
        .prop_map(|bytes| bytes.into_iter().map(char::from).collect())
}

prop_compose! {
    fn request()(
        words in proptest::array::uniform32(any::<i32>()),
        addresses in any::<[[u32; 4]; 2]>(),
        congestion in text(16),
        fill_file in text(32),
    ) -> Request {
        let [
            cpu, send_buffer, send_size, send_align, send_offset, send_width, request_size, recv_buffer, receive_size, recv_align,
            recv_offset, recv_width, response_size, flags, rate, length, avoid_receive, avoid_send, dirty_send, dirty_receive,
            clean, data_port, family, socket, protocol, direction, netperf_port, burst, usecs, priority, tos, _,
        ] = words;
        Request {
            cpu, send_buffer, send_size, send_align, send_offset, send_width, request_size, recv_buffer, receive_size, recv_align,
            recv_offset, recv_width, response_size, length, priority, tos, congestion, fill_file,
            flags: flags as u32,
            cpu_rate: rate as f32,
            avoid: [avoid_receive, avoid_send],
            dirty: [dirty_send, dirty_receive, clean],
            data_port: data_port as u32,
            family: family as u32,
            socket: socket as u32,
            protocol: protocol as u32,
            direction: direction as u32,
            netperf_port: netperf_port as u32,
            interval: [burst, usecs],
            netperf_ip: addresses[0],
            netserver_ip: addresses[1],
        }
    }
}

proptest! {
    #[test]
    fn requests_come_back_as_they_went(request in request()) {
        prop_assert_eq!(Request::decode(&request.encode()), request);
    }

    #[test]
    fn responses_and_results_come_back_as_they_went(words in proptest::array::uniform16(any::<i32>()), wide in any::<[u64; 2]>(), name in text(16)) {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, ..] = words;
        let response = Response {
            recv_buffer: a, receive_size: b, recv_width: c, send_buffer: d, send_size: e, send_width: f, flags: g as u32,
            cpu_rate: h as f32, length: i, data_port: j as u32, priority: k, tos: l,
        };
        prop_assert_eq!(&Response::decode(&response.encode()), &response);
        let cpu = Cpu {
            util: a as f32, user: b as f32, system: c as f32, iowait: d as f32, irq: e as f32, softirq: f as f32,
            count: g, peak_id: h, peak: i as f32, method: j,
        };
        let results = Results {
            bytes_received: wide[0], bytes_sent: wide[1], recv_calls: a as u32, recv_buffer: b, send_calls: c as u32,
            send_buffer: d, failed_sends: e as u32, transactions: f as u32, elapsed: k as f32, cpu, retransmits: m,
            congestion: name,
        };
        let _ = (cpu.letter(), n);
        prop_assert_eq!(&Results::decode(&results.encode()), &results);
    }

    #[test]
    fn no_bytes_harm_either_side(pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..900), 0..8), kind in any::<u8>()) {
        let mut server = Server::new(None, 1);
        let mut client = Client::new();
        client.request(&Request::default());
        let mut reader = Reader::default();
        for piece in &pieces {
            // Every other message is of a kind that is known.
            let mut piece = piece.clone();
            if let Some(head) = piece.get_mut(..4) {
                head.copy_from_slice(&u32::from(kind).to_be_bytes());
            }
            for step in server.receive(&piece) {
                if let Step::Run(_) = step {
                    server.ready(&Response::default());
                    server.failed(0);
                }
            }
            let _ = client.receive(&mut &piece[..]);
            let mut rest = &piece[..];
            while let Some(message) = reader.take(&mut rest) {
                for kind in Kind::ALL {
                    let _ = Plan::of(Style::Legacy(kind), kind.decode(&message));
                }
                let _ = Plan::of(Style::Omni, Request::decode(&message));
            }
            prop_assert!(reader.held() < LENGTH && client.held() < LENGTH);
        }
    }
}
