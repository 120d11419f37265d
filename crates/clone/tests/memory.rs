//! What an idle session costs, in memory of the process: 320,000 of them, with a copy each, but without their sockets.

use netdyno_clone::addresses::{Addresses, Taken};
use netdyno_clone::packet::{ACK, SYN, Segment};
use netdyno_clone::replica::Replica;
use netdyno_clone::sample::Copies;
use netdyno_clone::slab::Slab;
use netdyno_clone::table::{Adopt, Event, Rules, Table};
use std::net::IpAddr;
use wire::flow::FlowKey;

const SESSIONS: u32 = 320_000;

fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("its state");
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
}

/// As the engine keeps it.
#[allow(dead_code, reason = "only its size matters")]
struct Slot {
    replica: Replica,
    socket: u32,
    session: u32,
    next: u32,
    taken: Option<Taken>,
}

#[test]
fn an_idle_session_takes_less_than_400_bytes() {
    let server = IpAddr::from([10, 0, 0, 2]);
    let before = resident();
    let mut table = Table::new(Rules {
        server: Some(server),
        port: 80,
        adopt: Adopt::SynOnly,
        copies: Copies::new(1.0).expect("copies"),
        seed: 1,
        chosen_before: false,
        most_sessions: usize::MAX,
        most_new: None,
        most_bits: None,
        ramp_ns: 0,
        gap_ns: 1,
        idle_ns: u64::MAX,
        targets: [None; 2],
        never: [None; 2],
        own: None,
    });
    let mut addresses = Addresses::new(IpAddr::from([10, 99, 0, 0]), 16, 0, 1).expect("addresses");
    let mut slots: Slab<Slot> = Slab::default();
    for n in 0..SESSIONS {
        let client = IpAddr::from((0x0b00_0000 + n / 30_000).to_be_bytes());
        let port = 1024 + (n % 30_000) as u16;
        let flow = FlowKey::new(client, server, 6, port, 80).expect("a flow");
        let mut take = |to_server: bool, flags: u8, seq: u32, ack: u32, payload: &[u8]| {
            let flow = if to_server { flow } else { flow.reversed() };
            let segment = Segment { flow, seq, ack, flags, payload, missing: 0 };
            table.segment(&segment, u64::from(n), &mut |session, event| {
                if let Event::Opened { .. } = event {
                    let taken = addresses.take(client, port, 0);
                    let replica = Replica::new(true);
                    slots.insert(Slot { replica, socket: n, session, next: 0, taken });
                }
            });
        };
        take(true, SYN, n, 0, b"");
        take(false, SYN | ACK, n, n + 1, b"");
        take(true, ACK, n + 1, n + 1, b"GET / HTTP/1.1\r\n\r\n");
        take(false, ACK, n + 1, n + 19, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    }
    assert_eq!((table.open(), slots.len()), (SESSIONS as usize, SESSIONS as usize));
    let each = (resident() - before) / u64::from(SESSIONS);
    println!("{each} bytes");
    assert!(each < 400, "{each} bytes");
}
