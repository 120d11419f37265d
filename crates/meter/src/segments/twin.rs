//! Runs the programs on frames without an interface (BPF_PROG_TEST_RUN): which are taken, how much of each, by whom; held against
//! `clone::sample`, which chooses sessions in user space. Needs root.

use super::{Attached, Options, Segments, loader};
use bpf::{Program, Run};
use clone::sample::{self, Copies};
use port::rx::Rx as _;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use wire::flow::FlowKey;

/// What a program at traffic control says when it leaves a frame to the others (TCX_NEXT).
const NEXT: u32 = u32::MAX;

const ANY: Options = Options {
    server: None,
    port: 80,
    except: [None, None],
    answers: 1400,
    seed: 7,
    sample: None,
    lanes: 1,
    bytes: 4 << 20,
    loopback: false,
    promiscuous: false,
};

struct Bench {
    programs: [Program; 2],
    rings: Vec<Segments>,
}

impl Bench {
    fn new(options: &Options) -> Bench {
        let loaded = loader::load(options).unwrap_or_else(|error| panic!("these tests need root: {error}"));
        let attached = Arc::new(Attached {
            links: Vec::new(),
            drops: loaded.drops,
            interface: "none".to_owned(),
            _promiscuous: None,
        });
        let rings = loaded.rings.into_iter().enumerate();
        let rings = rings.map(|(lane, ring)| Segments::over(ring, attached.clone(), lane, 256)).collect();
        Bench { programs: loaded.programs, rings }
    }

    /// The frame goes on unchanged, whatever is taken of it.
    fn pass(&self, frame: &[u8]) {
        for program in &self.programs {
            let ran = program.run(Run { give_back: true, ..Run::on(frame) }).expect("a run");
            assert_eq!((ran.verdict, &ran.frame[..]), (NEXT, frame));
        }
    }

    /// Of a frame that passed both programs: what was taken, with its length on the wire, by which ring.
    fn taken(&mut self) -> Option<(Vec<u8>, usize, usize)> {
        let mut found = Vec::new();
        for (lane, ring) in self.rings.iter_mut().enumerate() {
            ring.advance(Duration::ZERO).expect("a ring");
            found.extend(ring.frames().iter().map(|frame| (frame.bytes.to_vec(), frame.length, lane)));
            ring.give_back();
        }
        assert!(found.is_empty() || found.len() == 2 && found[0] == found[1], "{} frames", found.len());
        found.pop()
    }

    fn of(&mut self, frame: &[u8]) -> Option<(Vec<u8>, usize, usize)> {
        self.pass(frame);
        self.taken()
    }

    fn dropped(&mut self) -> u64 {
        self.rings.iter_mut().map(|ring| ring.counters().dropped).sum()
    }
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// `before`: tags behind the addresses; `headers`: what stands before TCP, the first one's number given.
fn frame(
    (from, to): ((IpAddr, u16), (IpAddr, u16)),
    flags: u8,
    payload: &[u8],
    tags: &[u16],
    headers: Option<(u8, &[u8])>,
) -> Vec<u8> {
    let mut frame = vec![2; 12];
    for tag in tags {
        frame.extend(tag.to_be_bytes());
        frame.extend([0, 5]);
    }
    let mut tcp = [from.1.to_be_bytes(), to.1.to_be_bytes()].concat();
    tcp.extend([0, 0, 0, 7, 0, 0, 0, 9, 0x50, flags, 0, 1, 0, 0, 0, 0]);
    tcp.extend(payload);
    match (from.0, to.0) {
        (IpAddr::V4(a), IpAddr::V4(b)) => {
            frame.extend([8, 0, 0x45, 0]);
            frame.extend((20 + tcp.len() as u16).to_be_bytes());
            frame.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
            frame.extend(a.octets());
            frame.extend(b.octets());
        }
        (IpAddr::V6(a), IpAddr::V6(b)) => {
            let (next, before) = headers.unwrap_or((6, &[]));
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            frame.extend((before.len() as u16 + tcp.len() as u16).to_be_bytes());
            frame.extend([next, 64]);
            frame.extend(a.octets());
            frame.extend(b.octets());
            frame.extend(before);
        }
        _ => panic!("two families"),
    }
    frame.extend(tcp);
    frame
}

#[test]
fn clients_are_taken_whole_and_answers_in_part() {
    for (client, server) in [(ip("10.0.0.9"), ip("10.0.0.1")), (ip("2001:db8::9"), ip("2001:db8::1"))] {
        for given in [None, Some(server)] {
            let mut bench = Bench::new(&Options { server: given, answers: 300, ..ANY });
            for length in [0, 1, 40, 98, 162, 500, 1400, 2900] {
                let payload: Vec<u8> = (0..length).map(|n| n as u8).collect();
                let asks = frame(((client, 4000), (server, 80)), 0x18, &payload, &[], None);
                assert_eq!(bench.of(&asks), Some((asks.clone(), asks.len(), 0)), "{length}");
                let says = frame(((server, 80), (client, 4000)), 0x18, &payload, &[], None);
                let wanted = (says[..says.len().min(300)].to_vec(), says.len(), 0);
                assert_eq!(bench.of(&says), Some(wanted), "{length}");
            }
            for other in [
                frame(((client, 4000), (server, 81)), 0x18, b"x", &[], None),
                frame(((server, 4000), (client, 81)), 0x18, b"x", &[], None),
            ] {
                assert_eq!(bench.of(&other), None);
            }
            let elsewhere = frame(((server, 4000), (client, 80)), 0x18, b"x", &[], None);
            assert_eq!(bench.of(&elsewhere).is_some(), given.is_none());
        }
    }
    let mut bench = Bench::new(&Options { except: [Some(ip("10.0.0.2")), Some(ip("10.0.0.3"))], ..ANY });
    for (server, taken) in [("10.0.0.1", true), ("10.0.0.2", false), ("10.0.0.3", false)] {
        let asks = frame(((ip("10.0.0.9"), 4000), (ip(server), 80)), 0x18, b"x", &[], None);
        assert_eq!(bench.of(&asks).is_some(), taken, "{server}");
    }
}

#[test]
fn tags_and_extension_headers_are_looked_behind_and_pieces_are_for_user_space() {
    let mut bench = Bench::new(&Options { server: Some(ip("2001:db8::1")), ..ANY });
    let ends = ((ip("2001:db8::9"), 4000), (ip("2001:db8::1"), 80));
    let elsewhere = ((ip("2001:db8::9"), 4000), (ip("2001:db8::2"), 80));
    for tags in [&[][..], &[0x8100], &[0x88a8, 0x8100]] {
        // Hop-by-hop, then destination options of 16 bytes.
        let mut headers = vec![60, 0, 1, 4, 0, 0, 0, 0, 6, 1];
        headers.resize(24, 0);
        for of in [None, Some((0, &headers[..]))] {
            let asks = frame(ends, 0x18, b"abc", tags, of);
            assert_eq!(bench.of(&asks).map(|(bytes, ..)| bytes), Some(asks.clone()), "{tags:x?} {of:?}");
            assert_eq!(bench.of(&frame(elsewhere, 0x18, b"abc", tags, of)), None);
        }
        let piece = frame(elsewhere, 0x18, b"abc", tags, Some((44, &[6, 0, 0, 8, 0, 0, 0, 1])));
        assert_eq!(bench.of(&piece).map(|(bytes, ..)| bytes), Some(piece.clone()));
        let udp = frame(ends, 0x18, b"abc", tags, Some((17, &[])));
        assert_eq!(bench.of(&udp), None);
    }
    let ends = ((ip("10.0.0.9"), 4000), (ip("10.0.0.1"), 80));
    let mut piece = frame(ends, 0x18, b"abc", &[], None);
    piece[21] = 7;
    assert_eq!(bench.of(&piece).map(|(bytes, ..)| bytes), Some(piece.clone()));
    piece[23] = 17;
    assert_eq!(bench.of(&piece), None);
    // Nothing that is cut off makes it fail.
    let whole = frame(ends, 0x18, b"abc", &[0x8100], None);
    for length in 14..whole.len() {
        bench.pass(&whole[..length]);
    }
}

#[test]
fn the_same_sessions_are_chosen_as_in_user_space_and_their_thread_is_the_same() {
    for (number, share, lanes) in [(1.0, 0.3, 1), (0.4, 1.0, 1), (0.5, 0.5, 3), (1.0, 1.0, 4)] {
        let copies = Copies::new(number).unwrap().of_share(share);
        let mut bench = Bench::new(&Options { sample: copies.bounds(), lanes, ..ANY });
        let mut chosen = 0;
        for n in 0..300u16 {
            let (client, server) = match n % 2 {
                0 => (IpAddr::from([10, 1, (n >> 8) as u8, n as u8]), ip("10.0.0.1")),
                _ => (ip(&format!("2001:db8::{n:x}:9")), ip("2001:db8::1")),
            };
            let port = 1024 + n * 61;
            let flow = FlowKey::new(client, server, 6, port, 80).unwrap();
            let hash = sample::session(ANY.seed, &flow);
            let lane = sample::lane(hash, lanes as u64) as usize;
            let (there, back) = (((client, port), (server, 80)), ((server, 80), (client, port)));
            for ends in [there, back] {
                let said = bench.of(&frame(ends, 0x18, b"abc", &[], None));
                assert_eq!(said.is_some(), copies.of(hash) > 0, "{flow:?} of {copies:?}");
                assert!(said.is_none_or(|(.., by)| by == lane), "{flow:?}");
                // The others' beginnings and ends are told.
                for flags in [2, 0x12, 0x11, 4] {
                    let said = bench.of(&frame(ends, flags, b"", &[], None));
                    assert_eq!(said.map(|(.., by)| by), Some(lane), "{flags}");
                }
            }
            chosen += u32::from(copies.of(hash) > 0);
        }
        assert!(chosen > 30, "{chosen}");
    }
}

#[test]
fn what_finds_no_room_is_counted_each() {
    let mut bench = Bench::new(&Options { bytes: 1 << 20, ..ANY });
    let ends = ((ip("10.0.0.9"), 4000), (ip("10.0.0.1"), 80));
    let asks = frame(ends, 0x18, &[7; 2900], &[], None);
    (0..500).for_each(|_| bench.pass(&asks));
    let mut taken = 0;
    loop {
        let ring = &mut bench.rings[0];
        let count = ring.advance(Duration::ZERO).expect("a ring") as u64;
        assert!(ring.frames().iter().all(|frame| frame.bytes == asks));
        taken += count;
        if count == 0 {
            break;
        }
    }
    assert_eq!((taken + bench.dropped(), bench.dropped() > 0), (1000, true));
    // And then there is room again.
    let before = bench.dropped();
    assert!(bench.of(&asks).is_some());
    assert_eq!(bench.dropped(), before);
}

#[test]
fn stamps_are_of_this_hosts_clock() {
    let mut bench = Bench::new(&ANY);
    let now = || clocks::now(clocks::Clock::Realtime);
    let before = now();
    let ends = ((ip("10.0.0.9"), 4000), (ip("10.0.0.1"), 80));
    bench.pass(&frame(ends, 0x18, b"x", &[], None));
    let ring = &mut bench.rings[0];
    ring.advance(Duration::ZERO).expect("a ring");
    let stamps: Vec<u64> = ring.frames().iter().map(|frame| frame.stamp.ns).collect();
    // Two clocks are read one behind the other: that takes less than a millisecond, or is repeated.
    let about = before - 1_000_000..now() + 1_000_000;
    assert!(stamps.len() == 2 && stamps.iter().all(|ns| about.contains(ns)), "{about:?} {stamps:?}");
}
