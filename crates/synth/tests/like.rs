//! Look-alikes have the numbers of what they were made from, and nothing else of it.

use std::collections::{BTreeMap, HashMap, HashSet};

use netdyno_synth::like::{Agreement, Distribution, FlowProfile, Like, Measure, Seen};
use netdyno_synth::{Profile, Synth};
use proptest::prelude::*;
use wire::LinkType;
use wire::flow::FlowKey;

/// Frames with their times.
type Frames = Vec<(u64, Vec<u8>)>;

fn server_port(key: &FlowKey) -> u16 {
    key.source_port().min(key.destination_port())
}

fn measure(frames: &Frames) -> FlowProfile {
    let mut measure = Measure::new(server_port);
    for (time_ns, bytes) in frames {
        let length = bytes.len() as u32;
        measure.add(&Seen { link: LinkType::ETHERNET, bytes, length, time_ns: *time_ns });
    }
    assert_eq!((measure.left_out(), measure.resized()), (0, 0));
    measure.finish().expect("a profile")
}

fn play(profile: &FlowProfile, seed: u64) -> Frames {
    let mut like = Like::new(profile.clone(), seed).expect("a sound profile");
    let mut frames = Vec::new();
    while let Some((time, frame)) = like.next() {
        frames.push((time, frame.to_vec()));
    }
    frames
}

fn synth(profile: Profile, seed: u64) -> Frames {
    let mut synth = Synth::new(profile, seed).expect("a sound profile");
    let mut frames = Vec::new();
    while let Some((time, frame)) = synth.next() {
        frames.push((time, frame.to_vec()));
    }
    frames
}

/// Frames of each one-way flow, by plain parsing of Ethernet and IPv4.
fn flows(frames: &Frames) -> HashMap<Vec<u8>, usize> {
    let mut flows = HashMap::new();
    for (_, frame) in frames.iter().filter(|(_, frame)| frame[12..14] == [8, 0]) {
        *flows.entry([&frame[26..38], &frame[23..24]].concat()).or_insert(0) += 1;
    }
    flows
}

fn counts<T: Ord>(values: impl Iterator<Item = T>) -> BTreeMap<T, usize> {
    let mut counts = BTreeMap::new();
    values.for_each(|value| *counts.entry(value).or_insert(0) += 1);
    counts
}

#[test]
fn sizes_flows_and_their_frames_are_the_same_by_plain_parsing() {
    let original = synth(Profile::SMALLFLOWS, 3);
    let copy = play(&measure(&original), 1);
    assert_eq!(copy.len(), original.len());
    let bytes = |frames: &Frames| frames.iter().map(|(_, frame)| frame.len()).sum::<usize>();
    assert_eq!(bytes(&copy), bytes(&original));
    let classes =
        |frames: &Frames| {
            counts(frames.iter().map(|(_, frame)| {
                [63, 64, 127, 255, 511, 1023, 1518].partition_point(|b| frame.len() + 4 > *b)
            }))
        };
    assert_eq!(classes(&copy), classes(&original));
    let (a, b) = (flows(&original), flows(&copy));
    assert_eq!(a.len(), b.len());
    // Up to 16 frames a flow exactly; more are spread around the same mean.
    let short =
        |flows: &HashMap<Vec<u8>, usize>| counts(flows.values().copied().filter(|frames| *frames <= 16));
    assert_eq!(short(&a), short(&b));
    assert!(copy.is_sorted_by_key(|(time, _)| *time));
    assert_eq!((copy[0].0, copy.last().expect("frames").0), (0, original.last().expect("frames").0));
    // Gaps come from bins of a quarter octave, with their sums.
    let gaps = |frames: &Frames| {
        let gaps = frames.windows(2).map(|two| two[1].0 - two[0].0);
        counts(gaps.map(|gap| gap.checked_ilog2()))
    };
    let (a, b) = (gaps(&original), gaps(&copy));
    for octave in a.keys().chain(b.keys()) {
        let of = |gaps: &BTreeMap<Option<u32>, usize>| gaps.get(octave).copied().unwrap_or(0);
        assert!(of(&a).abs_diff(of(&b)) <= original.len() / 200, "{octave:?}: {} {}", of(&a), of(&b));
    }
}

#[test]
fn a_profile_comes_out_of_its_own_look_alike() {
    let profile = measure(&synth(Profile::BIGFLOWS.with_frames(100_000), 5));
    let again = measure(&play(&profile, 9));
    let agreement = Agreement::of(&profile, &again);
    let within = |what: &str, most: f64| {
        let row = agreement.totals.iter().find(|row| row.what == what).expect("a row of that name");
        assert!(row.difference.is_some_and(|difference| difference.abs() <= most), "{row:?}");
    };
    for what in
        ["frames", "bytes", "duration", "one-way flows", "conversations", "IPv4 clients", "IPv4 servers"]
    {
        within(what, 0.0);
    }
    within("conversations at once, mean", 0.1);
    within("gap between frames, median", 0.02);
    for share in &agreement.shares {
        let most = match share.what {
            "durations of conversations" => 0.1,
            "gaps between frames" => 0.03,
            "frames of a conversation" | "sizes" => 0.01,
            _ => 0.0,
        };
        assert!(share.difference <= most, "{share:?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_frames_and_another_one_others() {
    let original = synth(Profile::SMALLFLOWS, 1);
    let profile = measure(&original);
    assert_eq!(profile, measure(&original));
    assert_eq!(play(&profile, 7), play(&profile, 7));
    assert_ne!(play(&profile, 7), play(&profile, 8));
}

#[test]
fn no_address_and_no_payload_of_the_original_is_left() {
    let original = synth(Profile::SMALLFLOWS.with_frames(2_000), 1);
    let profile = measure(&original);
    let copy = play(&profile, 1);
    let addresses = |frames: &Frames| -> HashSet<Vec<u8>> {
        let ip = frames.iter().filter(|(_, frame)| frame[12..14] == [8, 0]);
        let ip = ip.flat_map(|(_, frame)| [frame[26..30].to_vec(), frame[30..34].to_vec()]);
        let arp = frames.iter().filter(|(_, frame)| frame[12..14] == [8, 6]);
        let arp = arp.flat_map(|(_, frame)| [frame[28..32].to_vec(), frame[38..42].to_vec()]);
        let mac = frames.iter().flat_map(|(_, frame)| [frame[..6].to_vec(), frame[6..12].to_vec()]);
        ip.chain(arp).chain(mac).collect()
    };
    let common: Vec<_> = addresses(&original).intersection(&addresses(&copy)).cloned().collect();
    assert!(common.iter().all(|address| *address == [0xff; 6]), "{common:?}");
    // No sixteen bytes from behind the headers are in both, but for zeros.
    let words = |frames: &Frames| -> HashSet<Vec<u8>> {
        let payload = frames.iter().filter_map(|(_, frame)| frame.get(66..));
        payload.flat_map(|payload| payload.windows(16).step_by(7).map(<[u8]>::to_vec)).collect()
    };
    let all: Vec<u8> = copy.iter().flat_map(|(_, frame)| frame.iter().copied()).collect();
    let all: HashSet<&[u8]> = all.windows(16).collect();
    let mut common = words(&original).into_iter().filter(|word| word.iter().any(|byte| *byte != 0));
    assert_eq!(common.find(|word| all.contains(word.as_slice())), None);
    // The file holds numbers, and names of its own only.
    let text = format!("{profile:?}");
    assert!(!text.contains("10.20.") && profile.blocks.ipv4.octets()[0] != 10, "{:?}", profile.blocks);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_frames_are_measured_as_many_and_as_long_come_out(
        frames in proptest::collection::vec((0u64..1_000_000, any_frame()), 1..60), seed: u64
    ) {
        let mut measure = Measure::new(server_port);
        for (time_ns, bytes) in &frames {
            measure.add(&Seen { link: LinkType::ETHERNET, bytes, length: bytes.len() as u32, time_ns: *time_ns });
        }
        let resized = measure.resized();
        let profile = measure.finish().expect("a profile");
        let copy = play(&profile, seed);
        prop_assert_eq!(copy.len(), frames.len());
        let bytes = |lengths: &mut dyn Iterator<Item = usize>| lengths.sum::<usize>();
        let (a, b) = (bytes(&mut frames.iter().map(|(_, f)| f.len())), bytes(&mut copy.iter().map(|(_, f)| f.len())));
        prop_assert!(a == b || resized > 0 && b > a);
    }

    #[test]
    fn no_profile_that_passes_the_check_upsets_the_player(
        numbers in proptest::collection::vec((0u64..300_000, 0u64..40), 12), ip in prop_oneof![Just(4u8), Just(6), any::<u8>()], protocol: u8, port: Option<u16>, ports: Option<[u16; 3]>,
        tags in (0u8..5, 0u8..9, any::<bool>()), hosts in proptest::collection::vec(0u64..50, 4), conversations in 1u64..100,
    ) {
        let mut numbers = numbers.into_iter();
        let mut some = |n: usize| Distribution(numbers.by_ref().take(n).collect());
        let mut profile = SMALL.clone();
        profile.kinds.truncate(1);
        let kind = &mut profile.kinds[0];
        (kind.ip, kind.protocol, kind.port, kind.ports) = (ip, protocol, port, ports);
        (kind.tags.vlan, kind.tags.mpls, kind.tags.pppoe) = tags;
        kind.sizes.client = vec![some(2), some(1)];
        kind.sizes.server = vec![some(1)];
        kind.shapes.truncate(1);
        let shape = &mut kind.shapes[0];
        shape.conversations = conversations;
        shape.client = Distribution(some(2).0.into_iter().map(|(value, n)| (value % 40 + 1, n)).collect());
        shape.server = Distribution(some(2).0.into_iter().map(|(value, n)| (value % 40, n)).collect());
        shape.duration_ns = some(2);
        profile.others.truncate(1);
        profile.intervals.truncate(2);
        for v6 in [&mut profile.ipv4, &mut profile.ipv6] {
            (v6.clients, v6.servers) = (hosts[0], hosts[1]);
            v6.both = hosts[2].min(hosts[0]).min(hosts[1]);
            (v6.silent, v6.unanswered) = (hosts[3].min(hosts[1] - v6.both), hosts[2].min(hosts[0] - v6.both));
        }
        if profile.check().is_ok() {
            let shape = &profile.kinds[0].shapes[0];
            let whole = [&shape.client, &shape.server].map(|side| side.count()) == [shape.conversations; 2];
            let frames = play(&profile, 1).len() as u64;
            // Where values are dealt in part, or again, it is a mean.
            prop_assert!(!whole || frames == profile.bounds().frames);
        }
    }
}

static SMALL: std::sync::LazyLock<FlowProfile> =
    std::sync::LazyLock::new(|| measure(&synth(Profile::SMALLFLOWS, 1)));

/// Ethernet frames, sound and unsound: IPv4, IPv6, tags, ARP, LLC.
fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let head = prop_oneof![
        Just(vec![8, 0, 0x45, 0, 0, 60, 0, 0, 0, 0, 64, 6]),
        Just(vec![8, 0, 0x45, 0, 0, 60, 0, 0, 0, 0, 64, 17]),
        Just(vec![8, 0, 0x45, 0, 0, 60, 0, 0, 0, 185, 64, 17]),
        Just(vec![8, 0, 0x45, 0, 0, 22, 0, 0, 0, 0, 64, 6]),
        Just(vec![8, 0, 0x45, 0, 0, 60, 0, 0, 0, 0, 64, 132]),
        Just(vec![8, 0, 0x45, 0, 0, 60, 0, 0, 0, 0, 64, 1]),
        Just(vec![0x86, 0xdd, 0x60, 0, 0, 0, 0, 40, 17, 64]),
        Just(vec![0x86, 0xdd, 0x60, 0, 0, 0, 0, 40, 44, 64]),
        Just(vec![0x81, 0, 0, 7, 8, 0, 0x45, 0, 0, 60, 0, 0, 0, 0, 64, 6]),
        Just(vec![0x88, 0x47, 0, 1, 1, 64, 0x45, 0, 0, 60, 0, 0, 0, 0, 64, 17]),
        Just(vec![0x88, 0x64, 0x11, 0, 0, 1, 0, 62, 0, 0x21, 0x45, 0, 0, 60, 0, 0, 0, 0, 64, 17]),
        Just(vec![8, 6, 0, 1, 8, 0, 6, 4]),
        Just(vec![0, 40, 0x42, 0x42, 3]),
        proptest::collection::vec(any::<u8>(), 0..20),
    ];
    let rest = proptest::collection::vec(0u8..4, 0..200);
    (head, rest).prop_map(|(head, rest)| [vec![2; 12], head, rest].concat())
}
