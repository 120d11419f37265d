//! The kernel's program beside the plain reference, by test runs without any interface. Needs root.

use super::clock::{PTP, Reading, SYNCHRONISED};
use super::loader::{self, Loaded};
use super::own::Own;
use super::reference::{Fate, Reference};
use super::{Options, Stamped, counted};
use bpf::Run;
use proptest::prelude::*;
use wire::checksum::{finish, fold, pseudo_v4, pseudo_v6, sum};

const OWN: [u8; 6] = [2, 0, 0, 0, 0, 2];
const THEIRS: [u8; 6] = [2, 0, 0, 0, 0, 1];
const UDP: u8 = 17;
/// From 1900 to 1970, in seconds.
const NTP_EPOCH: u64 = 2_208_988_800;

fn load(options: &Options, generic: bool, reading: &Reading) -> Loaded {
    let loaded = loader::load_with(options, OWN, generic, true)
        .expect("the program loads (as root, Linux 5.18 or newer)");
    loaded.set_clock(0, reading, &Own::default()).expect("the clock is set");
    loaded
}

/// Verdict, and the frame as the program left it.
fn transform(loaded: &Loaded, frame: &[u8]) -> (u32, Vec<u8>) {
    let ran = loaded.program.run(Run { give_back: true, ..Run::on(frame) }).expect("the kernel runs it");
    (ran.verdict, ran.frame)
}

/// What has been counted, without its times.
fn sums(loaded: &Loaded) -> ([u64; 4], Stamped) {
    let all = counted(&loaded.counters);
    ([all.frames, all.bytes, all.reflected, all.reflected_bytes], all.stamp.expect("it answers STAMP"))
}

/// How the checksum of UDP is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sum {
    Right,
    None,
    /// Of a packet in this host: the pseudo header's.
    Unfinished,
    Wrong(u16),
}

/// A frame in words that tests can choose.
#[derive(Debug, Clone)]
struct Shape {
    addresses: [[u8; 6]; 2],
    tags: Vec<(u16, u16)>,
    v6: bool,
    /// Source and destination; the last four octets are IPv4's.
    hosts: [[u8; 16]; 2],
    /// 32-bit words of an IPv4 header.
    words: u8,
    version: u8,
    protocol: u8,
    fragment: u16,
    ttl: u8,
    ports: [u16; 2],
    sum: Sum,
    payload: Vec<u8>,
    /// By how much the lengths in the headers of IP and UDP are off.
    off: [i16; 2],
    cut: usize,
}

impl Shape {
    fn build(&self) -> Vec<u8> {
        let mut frame = self.addresses.concat();
        for (kind, control) in &self.tags {
            frame.extend([kind.to_be_bytes(), control.to_be_bytes()].concat());
        }
        let mut udp = [self.ports[0], self.ports[1], 0, 0].map(u16::to_be_bytes).concat();
        udp.extend(&self.payload);
        let length = (udp.len() as u16).wrapping_add_signed(self.off[1]);
        udp[4..6].copy_from_slice(&length.to_be_bytes());
        let four = |host: usize| std::array::from_fn(|i| self.hosts[host][12 + i]);
        let pseudo = match self.v6 {
            true => pseudo_v6(self.hosts[0], self.hosts[1], UDP, length.into()),
            false => pseudo_v4(four(0), four(1), UDP, length.into()),
        };
        let right = Some(finish(sum(&udp) + pseudo)).filter(|right| *right > 0).unwrap_or(0xffff);
        let written = match self.sum {
            Sum::Right => right,
            Sum::None => 0,
            Sum::Unfinished => fold(pseudo),
            Sum::Wrong(by) => right ^ by,
        };
        udp[6..8].copy_from_slice(&written.to_be_bytes());
        if self.v6 {
            frame.extend([0x86, 0xdd, self.version << 4, 0, 0, 0]);
            frame.extend((udp.len() as u16).wrapping_add_signed(self.off[0]).to_be_bytes());
            frame.extend([self.protocol, self.ttl]);
            frame.extend(self.hosts.concat());
        } else {
            frame.extend([8, 0]);
            let mut ip = vec![1; usize::from(self.words).max(5) * 4];
            ip[..2].copy_from_slice(&[self.version << 4 | self.words, 0x48]);
            let total = ((ip.len() + udp.len()) as u16).wrapping_add_signed(self.off[0]);
            ip[2..4].copy_from_slice(&total.to_be_bytes());
            ip[6..8].copy_from_slice(&self.fragment.to_be_bytes());
            ip[8..12].copy_from_slice(&[self.ttl, self.protocol, 0, 0]);
            ip[12..20].copy_from_slice(&[&four(0)[..], &four(1)].concat());
            let checksum = finish(sum(&ip));
            ip[10..12].copy_from_slice(&checksum.to_be_bytes());
            frame.extend(ip);
        }
        frame.extend(udp);
        // The kernel runs nothing shorter than an Ethernet header.
        frame.truncate(self.cut.max(14));
        frame
    }

    /// Where UDP's header is.
    fn udp(&self) -> usize {
        14 + self.tags.len() * 4 + if self.v6 { 40 } else { usize::from(self.words) * 4 }
    }
}

/// A test packet as a sender of STAMP makes it.
fn test_packet(v6: bool, number: u32, octets: usize) -> Shape {
    let mut payload = vec![0; octets];
    let fields = [&number.to_be_bytes()[..], &[0xe8, 1, 2, 3, 4, 5, 6, 7], &[0x80, 1]].concat();
    let room = octets.min(14);
    payload[..room].copy_from_slice(&fields[..room]);
    let host = |last: u8| match v6 {
        true => [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last],
        false => [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 198, 18, 0, last],
    };
    Shape {
        addresses: [OWN, THEIRS],
        tags: vec![],
        v6,
        hosts: [host(1), host(2)],
        words: 5,
        version: if v6 { 6 } else { 4 },
        protocol: UDP,
        fragment: 0,
        ttl: 61,
        ports: [40_000, 862],
        sum: Sum::Right,
        payload,
        off: [0, 0],
        cut: usize::MAX,
    }
}

/// One that lasts as long as any test.
fn reading() -> Reading {
    Reading {
        utc_ahead: 1_700_000_000_000_000_000,
        tai_ahead: 1_700_000_037_000_000_000,
        taken_ns: clocks::monotonic() + 3_600_000_000_000,
        ntp_estimate: SYNCHRONISED | 0x0a80,
        ptp_estimate: SYNCHRONISED | PTP | 0x0b90,
    }
}

/// The checksums of IPv4 and UDP are right.
fn sums_are_right(frame: &[u8], udp: usize, v6: bool) -> bool {
    let length = usize::from(u16::from_be_bytes([frame[udp + 4], frame[udp + 5]]));
    let upper = sum(&frame[udp..udp + length]);
    let at = |from: usize| std::array::from_fn(|i| frame[from + i]);
    match v6 {
        true => fold(upper + pseudo_v6(at(udp - 32), at(udp - 16), UDP, length)) == 0xffff,
        false => {
            let four = |from: usize| std::array::from_fn(|i| frame[from + i]);
            let start = udp - 20;
            fold(sum(&frame[start..udp])) == 0xffff
                && fold(upper + pseudo_v4(four(start + 12), four(start + 16), UDP, length)) == 0xffff
        }
    }
}

/// A time stamp in nanoseconds since 1970, rounded down to what its format can say.
fn nanoseconds(octets: &[u8], ptp: bool) -> u64 {
    let word = |at: usize| u64::from(u32::from_be_bytes(std::array::from_fn(|i| octets[at + i])));
    match ptp {
        true => word(0) * 1_000_000_000 + word(4),
        // Rounded up: the fraction had been rounded down.
        false => (word(0) - NTP_EPOCH) * 1_000_000_000 + (word(4) * 1_000_000_000).div_ceil(1 << 32),
    }
}

fn hosts() -> impl Strategy<Value = [u8; 16]> {
    let usual = prop::sample::select(vec![0x20u8, 0xfe, 0xff, 0]);
    let first = prop_oneof![8 => prop::sample::select(vec![10u8, 198, 172]), 1 => any::<u8>()];
    let last = prop::sample::select(vec![0u8, 1, 2]);
    (usual, first, last).prop_map(|(six, four, last)| {
        let mut host = [six, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, four, 18, 0, last];
        if six == 0 && last == 0 {
            host.fill(0);
        }
        host
    })
}

fn payloads() -> impl Strategy<Value = Vec<u8>> {
    let octets = prop_oneof![
        6 => Just(44usize), 2 => 41usize..44, 2 => 0usize..41, 3 => 44usize..300, 1 => 1400usize..1473
    ];
    let kind = prop::sample::select(vec![0u8, 0, 0, 1, 2, 3, 4]);
    (octets, kind, any::<[u8; 64]>()).prop_map(|(octets, kind, random)| {
        let mut payload: Vec<u8> = (0..octets).map(|n| random[n % 64]).collect();
        match kind {
            // As it comes: a sender of TWAMP with random padding.
            1 => {}
            // An answer: both times alike but for a second.
            2 if octets >= 24 => {
                let seconds = u32::from_be_bytes([payload[4], payload[5], payload[6], payload[7]]);
                let other = seconds.wrapping_add(u32::from(random[3] % 5)).wrapping_sub(2);
                payload[16..20].copy_from_slice(&other.to_be_bytes());
            }
            _ => {
                payload.iter_mut().take(44).skip(if kind == 3 { 14 } else { 16 }).for_each(|octet| *octet = 0)
            }
        }
        payload
    })
}

prop_compose! {
    fn shapes()(
        mut shape in (any::<bool>(), Just(44usize)).prop_map(|(v6, octets)| test_packet(v6, 0, octets)),
        payload in payloads(),
        hosts in [hosts(), hosts()],
        tags in prop_oneof![
            3 => Just(vec![]),
            2 => prop::collection::vec((prop::sample::select(vec![0x8100u16, 0x88a8, 0x9100]), 0u16..3), 1..6),
        ],
        source in prop::sample::select(vec![40_000u16, 40_001, 862, 0]),
        rare in prop_oneof![3 => Just(0u8), 2 => 1u8..12],
        value in any::<u16>(),
        sum in prop_oneof![
            4 => Just(Sum::Right), 1 => Just(Sum::None), 1 => Just(Sum::Unfinished),
            1 => (1u16..).prop_map(Sum::Wrong),
        ],
        ttl in any::<u8>(),
    ) -> Shape {
        shape = Shape { payload, tags, sum, ttl, ports: [source, 862], ..shape };
        match rare {
            1 => shape.hosts = hosts,
            2 => shape.addresses[0] = [2, 0, 0, 0, 0, value as u8],
            3 => shape.addresses[1][0] = value as u8,
            4 => shape.words = (value % 16) as u8,
            5 => shape.version = (value % 16) as u8,
            6 => shape.protocol = value as u8,
            7 => shape.fragment = value,
            8 => shape.ports[1] = value,
            9 => shape.off[usize::from(value % 2)] = (value % 512) as i16 - 256,
            10 => shape.off[usize::from(value % 2)] = value as i16,
            11 => shape.cut = usize::from(value % 120),
            _ => {}
        }
        shape
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn the_kernel_answers_as_the_reference_does(
        shapes in prop::collection::vec(shapes(), 1..60),
        stateless in prop::bool::weighted(0.25),
        generic in any::<bool>(),
        sessions in 1u32..8,
        listed in prop::bool::weighted(0.3),
        only in prop::option::weighted(0.3, any::<[bool; 2]>()),
    ) {
        let sources = match listed {
            true => vec![([198, 18, 0, 0].into(), 15), ("2001:db8::".parse().expect("an address"), 127)],
            false => vec![],
        };
        let options = Options { stateless, sessions, sources, ..Options::default() };
        let reading = reading();
        let loaded = load(&options, generic, &reading);
        let own = match only {
            Some([v4_only, v6_only]) => {
                let addresses = ["198.18.0.2", "2001:db8::2"].map(|text| text.parse().expect("an address"));
                Own { addresses: addresses.into(), v4_only, v6_only }
            }
            None => Own::default(),
        };
        loaded.set_destinations(&Own::default(), &own).expect("the addresses are set");
        loaded.set_clock(1, &reading, &own).expect("the clock is set");
        let mut reference = Reference::new(&options, OWN, generic, &reading, &own);
        let (mut expected, mut totals) = (Stamped::default(), [0; 4]);
        for shape in &shapes {
            let frame = shape.build();
            let (verdict, out) = transform(&loaded, &frame);
            let mut answer = frame.clone();
            let fate = reference.answer(&mut answer, &out);
            prop_assert_eq!(verdict, if fate == Fate::Answered { 3 } else { 2 }, "{:?}: {:02x?}", fate, frame);
            prop_assert_eq!(&out, &answer, "{:?}: {:?} {:02x?}", fate, shape, frame);
            totals[0] += 1;
            totals[1] += frame.len() as u64;
            let count = match fate {
                Fate::Answered => {
                    totals[3] += frame.len() as u64;
                    &mut totals[2]
                }
                Fate::Other => &mut expected.others,
                Fate::TooShort => &mut expected.too_short,
                Fate::Malformed => &mut expected.malformed,
                Fate::Fragment => &mut expected.fragments,
                Fate::Answer => &mut expected.answers,
                Fate::NotAllowed => &mut expected.not_allowed,
            };
            *count += 1;
        }
        expected.sessions = reference.sessions();
        expected.without_room = reference.without_room;
        prop_assert_eq!(sums(&loaded), (totals, expected));
    }
}

#[test]
fn arrival_and_departure_are_stamped_between_two_looks_at_this_hosts_clock() {
    for (v6, ptp) in [(false, false), (false, true), (true, false), (true, true)] {
        let reading = reading();
        let loaded = load(&Options::default(), false, &reading);
        let mut shape = test_packet(v6, 7, 44);
        shape.payload[12] |= (PTP >> 8) as u8 * u8::from(ptp);
        let ahead = if ptp { reading.tai_ahead } else { reading.utc_ahead };
        let at = shape.udp() + 8;
        for _ in 0..100 {
            let before = clocks::monotonic() + ahead;
            let (verdict, out) = transform(&loaded, &shape.build());
            let after = clocks::monotonic() + ahead;
            assert_eq!(verdict, 3);
            let received = nanoseconds(&out[at + 16..at + 24], ptp);
            let sent = nanoseconds(&out[at + 4..at + 12], ptp);
            assert!(
                before <= received && received <= sent && sent <= after,
                "{before} {received} {sent} {after}"
            );
            assert!(sums_are_right(&out, shape.udp(), v6));
        }
    }
}

#[test]
fn an_answer_says_that_its_clock_is_not_known_once_nobody_looks_at_it_any_more() {
    let mut reading = reading();
    let loaded = load(&Options::default(), false, &reading);
    let shape = test_packet(false, 0, 44);
    let at = shape.udp() + 8 + 12;
    let estimate = || {
        let (_, out) = transform(&loaded, &shape.build());
        u16::from_be_bytes([out[at], out[at + 1]])
    };
    assert_eq!(estimate(), SYNCHRONISED | 0x0a80);
    reading.taken_ns = clocks::monotonic() - 2_000_000_000;
    loaded.set_clock(1, &reading, &Own::default()).expect("the clock is set");
    assert_eq!(estimate(), 0x0a80);
}

#[test]
fn sessions_are_numbered_each_by_itself_and_one_that_is_silent_begins_anew() {
    let loaded = load(&Options::default(), false, &reading());
    let number = |shape: &Shape| {
        let (verdict, out) = transform(&loaded, &shape.build());
        let at = shape.udp() + 8;
        assert_eq!(verdict, 3);
        assert_eq!(out[at + 24..at + 28], shape.payload[..4], "the sender's number");
        u32::from_be_bytes(std::array::from_fn(|i| out[at + i]))
    };
    let first = test_packet(false, 900, 44);
    let mut ssid = first.clone();
    ssid.payload[15] = 1;
    let port = Shape { ports: [40_001, 862], ..first.clone() };
    let host = Shape { hosts: [first.hosts[1], first.hosts[0]], ..first.clone() };
    let tagged = Shape { tags: vec![(0x8100, 0x2007)], ..first.clone() };
    let other_tag = Shape { tags: vec![(0x8100, 0x2008)], ..first.clone() };
    let inner = Shape { tags: vec![(0x88a8, 0x2007), (0x8100, 9)], ..first.clone() };
    let six = test_packet(true, 900, 44);
    let all = [&first, &ssid, &port, &host, &tagged, &other_tag, &inner, &six];
    for expected in 0..3 {
        for shape in all {
            assert_eq!(number(shape), expected, "{shape:?}");
        }
    }
    // The priority of a tag is no part of a session, nor is padding of TWAMP in the place of an SSID.
    assert_eq!(number(&Shape { tags: vec![(0x8100, 0xe007)], ..first.clone() }), 3);
    let mut padded = first.clone();
    padded.payload[14..].fill(0x5a);
    assert_eq!(number(&padded), 3);
    padded.payload[14..].fill(0xa5);
    assert_eq!(number(&padded), 4);
    assert_eq!(sums(&loaded).1.sessions, 8);
    loaded.forget_before(0);
    assert_eq!(number(&ssid), 3);
    loaded.forget_before(clocks::monotonic());
    assert_eq!(number(&ssid), 0);
    assert_eq!(sums(&loaded).1.sessions, 9);
}

#[test]
fn a_checksum_that_looks_as_if_it_were_yet_to_be_computed_stays_right() {
    for (v6, generic) in [(false, false), (false, true), (true, false), (true, true)] {
        let loaded = load(&Options::default(), generic, &reading());
        let mut shape = test_packet(v6, 5, 46);
        let udp = shape.udp();
        let unfinished = Shape { sum: Sum::Unfinished, ..shape.clone() }.build();
        let frame = (0..=u16::MAX).map(|word| {
            shape.payload[44..].copy_from_slice(&word.to_be_bytes());
            shape.build()
        });
        let alike = frame.filter(|frame| frame[udp + 6..udp + 8] == unfinished[udp + 6..udp + 8]);
        let mut tried = 0;
        for frame in alike {
            assert!(sums_are_right(&frame, udp, v6), "as made");
            let (verdict, out) = transform(&loaded, &frame);
            assert!(verdict == 3 && sums_are_right(&out, udp, v6), "{v6} {generic}");
            tried += 1;
        }
        assert!(tried > 0, "{v6}");
    }
}

#[test]
fn a_router_does_not_answer_what_it_passes_on() {
    let loaded = load(&Options::default(), false, &reading());
    let own = |addresses: &[&str]| Own {
        addresses: addresses.iter().map(|text| text.parse().expect("an address")).collect(),
        v4_only: true,
        v6_only: true,
    };
    let verdicts = || [false, true].map(|v6| transform(&loaded, &test_packet(v6, 0, 44).build()).0);
    let (nobodys, ours) = (own(&[]), own(&["198.18.0.2", "2001:db8::2", "192.0.2.1"]));
    assert_eq!(verdicts(), [3, 3]);
    loaded.set_clock(1, &reading(), &nobodys).expect("the clock is set");
    assert_eq!(verdicts(), [2, 2]);
    loaded.set_destinations(&nobodys, &ours).expect("the addresses are set");
    assert_eq!(verdicts(), [3, 3]);
    let one = own(&["2001:db8::2"]);
    loaded.set_destinations(&ours, &one).expect("the addresses are set");
    assert_eq!(verdicts(), [2, 3]);
    assert_eq!(sums(&loaded).1.others, 3);
}

#[test]
fn no_more_than_the_rate_is_answered() {
    // One a second: the first, and another only on a machine that is held up.
    let loaded = load(&Options { rate: Some(1), ..Options::default() }, false, &reading());
    let frame = test_packet(false, 0, 44).build();
    let verdicts: Vec<u32> = (0..50).map(|_| transform(&loaded, &frame).0).collect();
    let answered = verdicts.iter().filter(|verdict| **verdict == 3).count() as u64;
    assert!(verdicts.iter().all(|verdict| matches!(verdict, 1 | 3)), "{verdicts:?}");
    let (totals, stamp) = sums(&loaded);
    assert_eq!((totals[2], stamp.limited), (answered, 50 - answered));
    assert!((1..=50).contains(&answered) && stamp.limited > 0, "{verdicts:?}");
}

#[test]
fn it_loads_on_kernels_without_several_buffers_for_a_frame_and_answers_the_same() {
    for generic in [false, true] {
        let loaded = loader::load_with(&Options::default(), OWN, generic, false).expect("it loads (as root)");
        loaded.set_clock(0, &reading(), &Own::default()).expect("the clock is set");
        let shape = test_packet(false, 5, 60);
        let (verdict, out) = transform(&loaded, &shape.build());
        assert!(verdict == 3 && sums_are_right(&out, shape.udp(), false));
    }
}

/// A sender that meets its own kind: two reflectors would answer each other for ever.
#[test]
fn an_answer_is_not_answered() {
    let loaded = load(&Options::default(), false, &reading());
    for (v6, ptp) in [(false, 0), (true, 0), (false, 0x40)] {
        let mut shape = test_packet(v6, 3, 44);
        shape.payload[12] |= ptp;
        let (_, mut out) = transform(&loaded, &shape.build());
        let udp = shape.udp();
        out[..12].copy_from_slice(&[OWN, THEIRS].concat());
        out[udp..udp + 4].copy_from_slice(&[0x9c, 0x40, 3, 94]);
        assert_eq!(transform(&loaded, &out), (2, out), "v6: {v6}");
    }
    assert_eq!(sums(&loaded).1.answers, 3);
}

/// Keeps the cost in view (`cargo test -p netdyno-reflector cost -- --nocapture`); the bound only catches a blunder.
#[test]
fn answering_costs_well_below_two_microseconds() {
    // A frame that was answered is another afterwards: what the program sees from the second run on is an answer, which costs less. So
    // each run is timed alone.
    let cost = |what: &str, options: &Options| {
        let loaded = load(options, false, &reading());
        let frame = test_packet(false, 0, 44).build();
        let mut costs: Vec<u32> = (0..2000)
            .map(|_| {
                let ran = loaded.program.run(Run::on(&frame)).expect("the kernel runs it");
                assert_eq!(ran.verdict, 3, "{what}");
                ran.cost_ns
            })
            .collect();
        costs.sort();
        println!("{what}: {} ns a packet (least {}, of 2000)", costs[1000], costs[0]);
        assert!(costs[0] < 2000, "{what}: {costs:?} ns");
    };
    cost("stateless", &Options { stateless: true, ..Options::default() });
    cost("stateful", &Options::default());
    cost("with a rate", &Options { rate: Some(u32::MAX), ..Options::default() });
}
