//! The kernel's program beside the plain reference, by test runs without any interface. Needs root.

use crate::counters::Reflected;
use crate::loader::{self, Loaded};
use crate::options::Options;
use crate::reference::{self, Fate};
use bpf::{Program, Run};
use proptest::prelude::*;
use wire::checksum::{finish, fold, pseudo_v4, pseudo_v6, sum};
use wire::signature::{LEN, Signature};

/// Runs the program on `frame`, `repeat` times, on the calling thread's CPU. Verdict and nanoseconds for each run.
fn run(program: &Program, frame: &[u8], repeat: u32) -> (u32, u32) {
    let ran = program.run(Run { repeat, ..Run::on(frame) }).expect("the kernel runs it");
    (ran.verdict, ran.cost_ns)
}

/// Runs it on `frame` once. Verdict, and the frame as the program left it.
fn transform(program: &Program, frame: &[u8]) -> (u32, Vec<u8>) {
    let ran = program.run(Run { give_back: true, ..Run::on(frame) }).expect("the kernel runs it");
    (ran.verdict, ran.frame)
}

const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;

/// A frame in words that tests can choose.
#[derive(Debug, Clone)]
struct Shape {
    destination: [u8; 6],
    source: [u8; 6],
    tags: Vec<u16>,
    network: Network,
    payload: Vec<u8>,
    signed: bool,
    /// Cut off here, if shorter.
    cut: usize,
}

#[derive(Debug, Clone)]
enum Network {
    V4 { words: u8, version: u8, fragment: u16, protocol: u8, addresses: [u8; 8], icmp: u8 },
    V6 { version: u8, next: u8, addresses: [[u8; 16]; 2], icmp: u8 },
    Other(u16),
}

/// The IPv4 or transport checksums of the frames made here are right; these say where they stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    network: usize,
    transport: Option<usize>,
}

impl Shape {
    fn build(&self) -> (Vec<u8>, Place) {
        let mut frame = [self.destination, self.source].concat();
        for tag in &self.tags {
            frame.extend(tag.to_be_bytes());
            frame.extend([0x20, 7]);
        }
        let kind = match self.network {
            Network::V4 { .. } => 0x0800,
            Network::V6 { .. } => 0x86dd,
            Network::Other(kind) => kind,
        };
        frame.extend(kind.to_be_bytes());
        let network = frame.len();
        let mut payload = self.payload.clone();
        if self.signed {
            payload.extend(Signature { stream: 3, sequence: 9, time: 1 }.to_bytes());
        }
        let mut transport = None;
        match &self.network {
            Network::V4 { words, version, fragment, protocol, addresses, icmp } => {
                let header = usize::from(*words) * 4;
                let mut ip = vec![0; header.max(20)];
                ip[0] = version << 4 | words;
                ip[6..8].copy_from_slice(&fragment.to_be_bytes());
                ip[8..10].copy_from_slice(&[64, *protocol]);
                ip[12..20].copy_from_slice(addresses);
                let [source, destination] = [0, 4].map(|at| std::array::from_fn(|i| addresses[at + i]));
                let partial = pseudo_v4(source, destination, *protocol, payload.len());
                if fragment & 0x1fff == 0 {
                    transport = write_checksum(&mut payload, *protocol, *icmp, partial);
                }
                let total = (ip.len() + payload.len()) as u16;
                ip[2..4].copy_from_slice(&total.to_be_bytes());
                let checksum = finish(sum(&ip));
                ip[10..12].copy_from_slice(&checksum.to_be_bytes());
                transport = transport.map(|at| network + ip.len() + at);
                frame.extend(ip);
            }
            Network::V6 { version, next, addresses, icmp } => {
                let partial = pseudo_v6(addresses[0], addresses[1], *next, payload.len());
                transport = write_checksum(&mut payload, *next, *icmp, partial).map(|at| network + 40 + at);
                frame.extend([version << 4, 0, 0, 0]);
                frame.extend((payload.len() as u16).to_be_bytes());
                frame.extend([*next, 64]);
                frame.extend(addresses.concat());
            }
            Network::Other(_) => {}
        }
        frame.extend(payload);
        // The kernel runs nothing shorter than an Ethernet header.
        let cut = self.cut.max(14);
        if cut < frame.len() {
            frame.truncate(cut);
            transport = None;
        }
        (frame, Place { network, transport })
    }
}

/// Makes the payload a transport header with a right checksum, where there is room; says where the checksum is.
fn write_checksum(payload: &mut [u8], protocol: u8, icmp: u8, pseudo: u64) -> Option<usize> {
    let (at, pseudo) = match protocol {
        TCP => (16, pseudo),
        UDP => (6, pseudo),
        ICMP => (2, 0),
        ICMPV6 => (2, pseudo),
        _ => return None,
    };
    if payload.len() < at + 2 {
        return None;
    }
    if matches!(protocol, ICMP | ICMPV6) {
        payload[0] = icmp;
        payload[1] = 0;
    }
    payload[at..at + 2].fill(0);
    let checksum = finish(sum(payload) + pseudo);
    payload[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
    Some(at)
}

fn shapes() -> impl Strategy<Value = Shape> {
    let mac =
        || prop_oneof![9 => any::<[u8; 6]>().prop_map(|mut m| { m[0] &= 0xfe; m }), 1 => any::<[u8; 6]>()];
    let tags = prop::collection::vec(prop::sample::select(vec![0x8100u16, 0x88a8, 0x9100]), 0..6);
    let protocol = prop_oneof![8 => prop::sample::select(vec![TCP, UDP, ICMP, ICMPV6]), 1 => any::<u8>()];
    let icmp = || prop_oneof![3 => Just(8u8), 3 => Just(128u8), 1 => 132u8..139, 1 => any::<u8>()];
    let fragment = prop_oneof![
        5 => Just(0x4000u16),
        1 => Just(0x2000),
        1 => (1u16..0x2000).prop_map(|offset| offset | 0x2000),
        1 => 1u16..0x2000
    ];
    let words = prop_oneof![5 => Just(5u8), 3 => 6u8..16, 1 => 0u8..5];
    let version = |right: u8| prop_oneof![15 => Just(right), 1 => 0u8..16];
    let v4 = (words, version(4), fragment, protocol.clone(), any::<[u8; 8]>(), icmp()).prop_map(
        |(words, version, fragment, protocol, addresses, icmp)| Network::V4 {
            words,
            version,
            fragment,
            protocol,
            addresses,
            icmp,
        },
    );
    let v6 = (version(6), protocol, any::<[[u8; 16]; 2]>(), icmp())
        .prop_map(|(version, next, addresses, icmp)| Network::V6 { version, next, addresses, icmp });
    let other = prop::sample::select(vec![0x0806u16, 0x88b5, 0x8847, 60]).prop_map(Network::Other);
    let network = prop_oneof![5 => v4, 5 => v6, 1 => other];
    let payload = prop_oneof![
        6 => prop::collection::vec(any::<u8>(), 0..80),
        1 => Just(vec![0; 64]),
        1 => prop::collection::vec(any::<u8>(), 3000..9000),
    ];
    let cut = prop_oneof![4 => Just(usize::MAX), 1 => 14usize..120];
    (mac(), mac(), tags, network, payload, any::<bool>(), cut).prop_map(
        |(destination, source, tags, network, payload, signed, cut)| Shape {
            destination,
            source,
            tags,
            network,
            payload,
            signed,
            cut,
        },
    )
}

fn load(options: &Options) -> Loaded {
    loader::load_with(options, true).expect("the reflector's program loads (as root, Linux 5.18 or newer)")
}

fn counted(loaded: &Loaded) -> Reflected {
    (0..loaded.counters.len())
        .filter_map(|cpu| loaded.counters.get(cpu))
        .fold(Reflected::default(), |sum, share| sum.with(&share))
}

/// The checksums at `place` are right.
fn sums_are_right(frame: &[u8], place: Place) -> bool {
    let at = place.network;
    let kind = u16::from_be_bytes([frame[at - 2], frame[at - 1]]);
    let header = if kind == 0x86dd { 40 } else { usize::from(frame[at] & 15) * 4 };
    if kind == 0x0800 && fold(sum(&frame[at..at + header])) != 0xffff {
        return false;
    }
    if place.transport.is_none() {
        return true;
    }
    let upper = &frame[at + header..];
    let array = |from: usize| std::array::from_fn(|i| frame[at + from + i]);
    let pseudo = match (kind, frame[at + if kind == 0x86dd { 6 } else { 9 }]) {
        (0x0800, ICMP) => 0,
        // ICMPv6 covers a pseudo header of IPv6, also if somebody puts it into IPv4.
        (0x0800, protocol) => {
            let [source, destination] = [12, 16].map(|from| std::array::from_fn(|i| frame[at + from + i]));
            pseudo_v4(source, destination, protocol, upper.len())
        }
        (_, ICMP) => 0,
        (_, next) => pseudo_v6(array(8), array(24), next, upper.len()),
    };
    fold(sum(upper) + pseudo) == 0xffff
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_kernel_turns_round_what_the_reference_does(
        shapes in prop::collection::vec(shapes(), 1..40),
        only_signed in any::<bool>(),
        mac_only in prop::bool::weighted(0.25),
    ) {
        let options = Options { only_signed, mac_only, ..Options::default() };
        let loaded = load(&options);
        let mut expected = Reflected::default();
        for shape in &shapes {
            let (frame, place) = shape.build();
            let mut turned = frame.clone();
            let fate = reference::reflect(&mut turned, &options);
            let (verdict, out) = transform(&loaded.program, &frame);
            prop_assert_eq!(verdict, fate.verdict(), "{:?}: {:02x?}", fate, frame);
            if verdict != 1 {
                prop_assert_eq!(&out, &turned, "{:?}: {:02x?}", fate, frame);
            }
            let length = frame.len() as u64;
            expected.frames += 1;
            expected.bytes += length;
            match fate {
                Fate::Reflected { echo } => {
                    expected.reflected += 1;
                    expected.reflected_bytes += length;
                    expected.echoes += u64::from(echo);
                    if matches!(shape.network, Network::V4 { .. } | Network::V6 { .. }) && shape.cut == usize::MAX
                        && shape.tags.len() <= 4 && !mac_only
                    {
                        prop_assert!(sums_are_right(&frame, place), "as made: {:02x?}", frame);
                        prop_assert!(sums_are_right(&out, place), "turned: {:02x?}", out);
                    }
                    // There and back again. An echo request stays a reply, and a signature in the place of the ports is
                    // none afterwards.
                    let still_signed = !only_signed || shape.payload.len() >= 4;
                    if !echo && still_signed {
                        let again = transform(&loaded.program, &out);
                        prop_assert_eq!(again, (3, frame));
                        expected.frames += 1;
                        expected.bytes += length;
                        expected.reflected += 1;
                        expected.reflected_bytes += length;
                    }
                }
                Fate::Group => expected.group += 1,
                Fate::Resolution => expected.resolution += 1,
                Fate::Unsigned => expected.without_signature += 1,
                Fate::Malformed => expected.malformed += 1,
            }
        }
        let counted = counted(&loaded);
        prop_assert!(counted.first_ns.is_some() && counted.first_ns <= counted.last_ns);
        prop_assert_eq!(Reflected { first_ns: None, last_ns: None, ..counted }, expected);
    }
}

fn shape(network: Network, payload: &[u8]) -> Shape {
    let (destination, source) = ([2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1]);
    Shape {
        destination,
        source,
        tags: vec![],
        network,
        payload: payload.to_vec(),
        signed: false,
        cut: usize::MAX,
    }
}

fn v4(protocol: u8, icmp: u8) -> Network {
    let addresses = [198, 18, 0, 1, 198, 18, 0, 2];
    Network::V4 { words: 5, version: 4, fragment: 0, protocol, addresses, icmp }
}

/// The zero of one's complement that is wrong over a message of nothing but zeros.
#[test]
fn an_echo_of_all_zeros_gets_a_checksum_that_hosts_accept() {
    let loaded = load(&Options::default());
    let (frame, place) = shape(v4(ICMP, 8), &[0; 64]).build();
    let (verdict, out) = transform(&loaded.program, &frame);
    assert_eq!((verdict, &out[34..38]), (3, &[0, 0, 0xff, 0xff][..]));
    assert!(sums_are_right(&out, place));
}

#[test]
fn a_jumbo_frame_in_several_buffers_is_turned_round_whole() {
    let payload: Vec<u8> = (0..8900u32).map(|n| (n * 7) as u8).collect();
    let signed = Shape { signed: true, tags: vec![0x88a8, 0x8100], ..shape(v4(UDP, 0), &payload) };
    let (frame, place) = signed.build();
    for only_signed in [false, true] {
        let loaded = load(&Options { only_signed, ..Options::default() });
        let (verdict, out) = transform(&loaded.program, &frame);
        assert_eq!(verdict, 3);
        assert_eq!(out.len(), frame.len());
        assert_eq!((&out[..6], &out[6..12]), (&frame[6..12], &frame[..6]));
        let ip = 14 + 8;
        assert_eq!(
            (&out[ip + 12..ip + 16], &out[ip + 16..ip + 20]),
            (&[198, 18, 0, 2][..], &[198, 18, 0, 1][..])
        );
        assert_eq!(
            (&out[ip + 20..ip + 22], &out[ip + 22..ip + 24]),
            (&frame[ip + 22..ip + 24], &frame[ip + 20..ip + 22])
        );
        assert_eq!(out[ip + 24..], frame[ip + 24..]);
        assert!(sums_are_right(&out, place));
        assert_eq!(out[out.len() - LEN..], frame[frame.len() - LEN..]);
    }
}

/// Keeps the cost in view (`cargo test -p netdyno-meter cost -- --nocapture`); the bound only catches a blunder.
#[test]
fn turning_a_frame_round_costs_well_below_a_microsecond() {
    let (udp, _) = shape(v4(UDP, 0), &[0; 18]).build();
    for (what, options) in [
        ("all", Options::default()),
        ("only signed", Options { only_signed: true, ..Options::default() }),
        ("Ethernet addresses only", Options { mac_only: true, ..Options::default() }),
    ] {
        let loaded = load(&options);
        let mut frame = udp.clone();
        let at = frame.len() - LEN;
        frame[at..].copy_from_slice(&Signature { stream: 0, sequence: 5, time: 1 }.to_bytes());
        assert_eq!(run(&loaded.program, &frame, 1).0, 3, "{what}");
        let mut costs: Vec<u32> = (0..5).map(|_| run(&loaded.program, &frame, 1_000_000).1).collect();
        costs.sort();
        println!("{what}: {} ns a frame (of five runs: {costs:?})", costs[2]);
        assert!(costs[0] < 1000, "{what}: {costs:?} ns");
    }
}
