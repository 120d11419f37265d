//! Any bytes as what a server sends to `live`: frames, and segments to a connection, which must neither panic nor believe
//! what cannot be, nor ever stop to answer.
#![no_main]
#![allow(dead_code, reason = "parts of a crate, without what it does with sockets and the kernel")]

#[path = "../../crates/live/src/connection/mod.rs"]
mod connection;
#[path = "../../crates/live/src/neighbours.rs"]
mod neighbours;
#[path = "../../crates/live/src/packet.rs"]
mod packet;
#[path = "../../crates/live/src/segment.rs"]
mod segment;

use connection::{Config, Connection, MS};
use libfuzzer_sys::fuzz_target;
use packet::Ends;
use segment::{ACK, Options, SYN, Segment};
use std::sync::Arc;
use wire::LinkType;

fn frame(bytes: &[u8]) {
    for wire_len in [bytes.len() as u32, u32::MAX] {
        if let Ok(found) = packet::read(LinkType::ETHERNET, bytes, wire_len) {
            assert!(found.segment.payload.len() <= bytes.len());
            std::hint::black_box(packet::sound(bytes));
            let mut whole = bytes.to_vec();
            packet::complete(&mut whole);
            assert!(packet::read(LinkType::ETHERNET, &whole, wire_len).is_ok());
        }
    }
    for own in ["10.0.0.1", "2001:db8::1"] {
        let own = own.parse().expect("an address");
        if let Some(reply) = neighbours::answer(bytes, own, [2; 6]) {
            assert!(reply.len() >= 42);
        }
        let ends = Ends { from: (own, 0).into(), to: (own, 80).into() };
        std::hint::black_box(neighbours::too_long(bytes, &ends));
    }
}

/// The first two bytes of each piece say how long it is and how much time passes before it.
fn conversation(mut bytes: &[u8]) {
    let offer = Options {
        mss: Some(1460),
        sack_permitted: true,
        timestamps: Some((0, 0)),
        window_scale: Some(7),
        ..Options::default()
    };
    let config =
        Config { isn: 1000, time_offset: 0, offer, most: 1460, window: 0xffff, ipv6: false, retries: 3 };
    let mut client = Connection::new(config, Arc::from(vec![7u8; 5000]));
    client.say(5000, true);
    client.finish();
    client.connect();
    client.poll(0);
    let answer = Segment {
        seq: 5000,
        ack: 1001,
        flags: SYN | ACK,
        window: 1000,
        options: offer,
        ..Segment::default()
    };
    client.receive(&answer, 0);
    let mut now = 0;
    while let [length, pause, rest @ ..] = bytes {
        let (piece, behind) = rest.split_at(usize::from(*length).min(rest.len()));
        bytes = behind;
        if let Some(segment) = segment::parse(piece) {
            client.receive(&segment, now);
        }
        let mut sent = 0;
        while client.poll(now).is_some() {
            sent += 1;
            assert!(sent < 1000, "it never stops");
        }
        client.take();
        now += u64::from(*pause) * 10 * MS;
        client.on_time(now);
    }
    assert!(client.acknowledged() <= 5000);
}

fuzz_target!(|bytes: &[u8]| {
    frame(bytes);
    conversation(bytes);
});
