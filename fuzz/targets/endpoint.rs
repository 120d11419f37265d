//! Any bytes as what a peer of an endpoint test says, in pieces of any length: netdyno's own protocol, netperf's and iperf3's, both
//! roles. The first byte says which; what is held of them is bounded, and what was understood is read back as it was written.
#![no_main]

use std::time::Duration;

use endpoint::{iperf3, native, netperf};
use libfuzzer_sys::fuzz_target;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

type ToClient = native::ToClient<Value, Value, Value>;

const NOW: Duration = Duration::ZERO;

fuzz_target!(|bytes: &[u8]| {
    let Some((role, rest)) = bytes.split_first() else { return };
    match role % 8 {
        0 => native_server(rest),
        1 => native_client(rest),
        2 => native_beginnings(rest),
        3 => netperf_server(rest),
        4 => netperf_client(rest),
        5 => iperf3_server(rest),
        6 => iperf3_client(rest),
        _ => iperf3_data(rest),
    }
});

/// Pieces as a socket may give them: a byte says how long each is.
fn pieces(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (length, rest) = bytes.split_first()?;
        // Short ones are likely, and so is one with all the rest.
        let length = if *length == 255 { rest.len() } else { usize::from(*length).min(rest.len()) };
        let (piece, rest) = rest.split_at(length);
        bytes = rest;
        Some(piece)
    })
}

fn native_server(bytes: &[u8]) {
    let Some((token, bytes)) = bytes.split_first() else { return };
    let limits = native::Limits::default();
    let token = (token % 2 == 1).then(|| b"token".to_vec());
    let mut session = native::Session::new(limits, token, "aa".to_owned());
    let mut decoder = native::Decoder::new(native::MOST_TO_SERVER);
    for piece in pieces(bytes) {
        decoder.push(piece);
        loop {
            let Ok(message) = decoder.message() else { return };
            let Some(message) = message else { break };
            assert!(message.len() <= native::MOST_TO_SERVER);
            if let Ok(said) = serde_json::from_slice::<native::ToServer>(&message) {
                written_is_read(&said);
            }
            let mut does = session.hear(&message);
            if does == native::Does::Challenge {
                does = session.challenged().unwrap_or(native::Does::Challenge);
            }
            match does {
                native::Does::Prepare(plan) => {
                    assert!(
                        (1..=limits.flows).contains(&plan.flows) && plan.duration_ns <= limits.duration_ns
                    );
                    assert!(plan.datagrams || plan.size <= limits.memory / u64::from(plan.flows));
                    session.prepared();
                }
                native::Does::Stop => session.ended(),
                native::Does::Refuse(refused) => {
                    written_is_read(&ToClient::Refused(refused));
                    if session.patience().is_zero() {
                        return;
                    }
                }
                native::Does::Close => return,
                _ => {}
            }
            assert!(session.run().len() <= 256 && session.patience() <= Duration::from_secs(3700));
        }
    }
}

fn native_client(bytes: &[u8]) {
    let mut decoder = native::Decoder::new(native::MOST_TO_CLIENT);
    for piece in pieces(bytes) {
        decoder.push(piece);
        loop {
            let Ok(message) = decoder.message() else { return };
            let Some(message) = message else { break };
            match serde_json::from_slice::<ToClient>(&message) {
                // Numbers with a fraction may lose their last digit when they are read.
                Ok(native::ToClient::Progress(_) | native::ToClient::Results(_)) | Err(_) => {}
                Ok(native::ToClient::Welcome { proof, limits, .. }) => {
                    written_is_read(&ToClient::Welcome { proof, limits, host: Value::Null });
                }
                Ok(said) => written_is_read(&said),
            }
        }
    }
}

/// A message that was understood is the same once it is written and read again.
fn written_is_read<T: PartialEq + std::fmt::Debug + Serialize + DeserializeOwned>(said: &T) {
    let frame = native::frame(said);
    let (length, message) = frame.split_first_chunk().expect("a length");
    assert_eq!(u32::from_be_bytes(*length) as usize, message.len());
    assert_eq!(&serde_json::from_slice::<T>(message).expect("it is a message"), said);
}

fn native_beginnings(bytes: &[u8]) {
    if let Ok(preamble) = native::Preamble::read(bytes) {
        assert_eq!(preamble.bytes(), bytes);
    }
    // As a server reads one: never more than it needs.
    let mut held = 0;
    while let Ok(wants @ 1..) = native::Preamble::wants(&bytes[..held]) {
        held += wants;
        assert!(held <= native::Preamble::MOST);
        if held > bytes.len() {
            break;
        }
    }
    if let Some(joining) = native::datagram::Joining::read(bytes) {
        let again = joining.bytes();
        assert_eq!(native::datagram::Joining::read(&again), Some(joining));
    }
    let text = String::from_utf8_lossy(bytes);
    if let Some(plain) = wire::hex::decode(&*text) {
        assert_eq!(wire::hex::decode(wire::hex::encode(&plain)), Some(plain));
    }
    assert!(!native::auth::is_proof(&text, b"token", native::auth::Role::Server, "aa", &text));
}

fn netperf_server(bytes: &[u8]) {
    use netperf::plan::{LARGEST, LONGEST};
    use netperf::server::{Server, Step};
    let Some((passphrase, bytes)) = bytes.split_first() else { return };
    let mut server = Server::new((passphrase % 2 == 1).then_some(b"passphrase".as_slice()), 2);
    for piece in pieces(bytes) {
        for step in server.receive(piece) {
            match step {
                Step::Run(plan) => {
                    assert!(plan.length.at_most() <= LONGEST);
                    let sizes = [
                        plan.send_size,
                        plan.receive_size,
                        Some(plan.request_size),
                        Some(plan.response_size),
                    ];
                    assert!(sizes.into_iter().flatten().all(|size| (1..=LARGEST).contains(&size)));
                    std::hint::black_box(server.ready(&netperf::omni::Response::default()));
                    std::hint::black_box(server.finished(&netperf::omni::Results::default()));
                }
                Step::Close(_) => return,
                step => drop(std::hint::black_box(step)),
            }
        }
    }
    // Part of a message, no more.
    std::hint::black_box(server.expects_more());
}

fn netperf_client(bytes: &[u8]) {
    use netperf::client::{Client, Step};
    use netperf::message::{LENGTH, Message};
    use netperf::omni::Request;
    // What is asked for is any message too: a request that was read is written and read again.
    let Some((asked, bytes)) = bytes.split_first_chunk::<LENGTH>() else { return };
    let request = Request::decode(&Message::from_bytes(asked));
    let mut client = Client::new();
    std::hint::black_box(client.request(&request));
    for mut piece in pieces(bytes) {
        while !piece.is_empty() {
            match client.receive(&mut piece) {
                Ok(Some(Step::Done(results))) => {
                    std::hint::black_box(results);
                    std::hint::black_box(client.request(&request));
                }
                Ok(Some(step)) => drop(std::hint::black_box(step)),
                Ok(None) => assert!(piece.is_empty(), "what is not a whole message is held"),
                Err(fault) => {
                    assert!(!fault.to_string().is_empty());
                    return;
                }
            }
            assert!(client.held() < LENGTH);
        }
    }
}

fn iperf3_server(bytes: &[u8]) {
    use iperf3::server::{Event, Session};
    let (mut session, _) = Session::new(NOW);
    for piece in pieces(bytes) {
        let mut next = piece;
        loop {
            match session.receive(std::mem::take(&mut next), NOW) {
                Ok(None) => break,
                Ok(Some(Event::Asks(params))) => {
                    iperf3_params(&params);
                    session.accept(NOW);
                    session.run(NOW);
                }
                Ok(Some(Event::Ends)) => drop(session.ended(NOW)),
                Ok(Some(Event::Results(results))) => {
                    iperf3_results(&results);
                    session.results(&results, NOW);
                }
                Ok(Some(Event::Done)) => return,
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    return;
                }
            }
        }
        std::hint::black_box((session.deadline(), session.late()));
    }
}

fn iperf3_client(bytes: &[u8]) {
    use iperf3::client::{Action, Session};
    let mut session = Session::new(&iperf3::Params { seconds: 1, parallel: 2, ..Default::default() }, NOW);
    for piece in pieces(bytes) {
        let Ok(mut actions) = session.receive(piece, NOW) else { return };
        // What is answered may let more of what is held be read.
        while let Some(action) = (!actions.is_empty()).then(|| actions.remove(0)) {
            match action {
                Action::Run => drop(session.end(NOW)),
                Action::Report => drop(session.results(&iperf3::Results::default(), NOW)),
                Action::Done(results) => return iperf3_results(&results),
                Action::Send(_) | Action::OpenStreams | Action::Prepare => continue,
            }
            let Ok(more) = session.receive(&[], NOW) else { return };
            actions.extend(more);
        }
        std::hint::black_box((session.deadline(), session.late()));
    }
}

fn iperf3_params(params: &iperf3::Params) {
    use iperf3::limits;
    assert!((1..=limits::STREAMS).contains(&params.parallel) && params.seconds <= limits::SECONDS);
    assert!(params.len <= limits::TCP_BLOCK && params.window <= limits::WINDOW);
    assert_eq!(params.client_sends().len(), params.parallel as usize * if params.bidir { 2 } else { 1 });
    std::hint::black_box(params.total_rate());
    let mut again = iperf3::Params::of(&params.json()).expect("what was understood is understood again");
    // Said of datagrams only.
    again.gsro = params.gsro;
    assert_eq!(&again, params);
}

fn iperf3_results(results: &iperf3::Results) {
    assert!(results.streams.len() <= 2 * iperf3::limits::STREAMS as usize);
    let again = iperf3::Results::of(&results.json()).expect("what was understood is understood again");
    assert_eq!(again.streams.len(), results.streams.len());
    for (again, was) in again.streams.iter().zip(&results.streams) {
        assert_eq!((again.id, again.bytes, again.packets), (was.id, was.bytes, was.packets));
        assert_eq!((again.retransmits, again.errors), (was.retransmits, was.errors));
        assert_eq!(again.omitted, Some(was.omitted.unwrap_or_default()));
    }
}

fn iperf3_data(bytes: &[u8]) {
    for wide in [false, true] {
        let header = iperf3::datagram::Header::read(bytes, wide);
        assert_eq!(header.is_some(), bytes.len() >= if wide { 16 } else { 12 });
        let Some(header) = header else { continue };
        let number = iperf3::datagram::unwrap(header.number, header.sent_ns);
        assert_eq!(number as u32, header.number as u32, "the low bits stay");
        let mut written = [0; 16];
        header.write(&mut written, wide);
        // Microseconds beyond a second are carried over; the number stays.
        assert_eq!(iperf3::datagram::Header::read(&written, wide).map(|h| h.number), Some(header.number));
    }
    if let Some(cookie) = bytes.first_chunk().and_then(|bytes| iperf3::Cookie::read(*bytes)) {
        assert_eq!(iperf3::Cookie::read(*cookie.bytes()), Some(cookie));
        assert_eq!(cookie.text().len(), iperf3::cookie::LEN - 1);
    }
    let text = String::from_utf8_lossy(bytes);
    if let Some(claim) = iperf3::auth::Claim::read(&text) {
        std::hint::black_box(claim.is_fresh(0, iperf3::auth::SKEW));
        assert_eq!(iperf3::auth::Claim::read(&claim.text()).map(|claim| claim.time), Some(claim.time));
    }
    std::hint::black_box(iperf3::auth::hash_of(&text, "user"));
}
