//! The promises of the crate, checked with a plain parser and a hash set that know nothing of how it works.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use netdyno_synth::{Error, Profile, Synth};

/// What a capture amounts to, counted from its bytes.
#[derive(Debug, Default, PartialEq)]
struct Counted {
    frames: u64,
    bytes: u64,
    flows: usize,
    non_flow: u64,
    server_ports: usize,
    web_frames: u64,
    web_bytes: u64,
    first: u64,
    last: u64,
}

/// RFC 1071 as plainly as can be: all words, the checksum among them, add up to all ones.
fn checksum_holds(parts: &[&[u8]]) -> bool {
    let bytes: Vec<u8> = parts.concat();
    let sum: u32 =
        bytes.chunks(2).map(|p| u32::from(p[0]) << 8 | u32::from(*p.get(1).unwrap_or(&0))).sum::<u32>();
    let once = (sum & 0xffff) + (sum >> 16);
    (once & 0xffff) + (once >> 16) == 0xffff
}

fn u16_at(frame: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([frame[at], frame[at + 1]])
}

fn count(profile: Profile, seed: u64) -> Counted {
    let mut synth = Synth::new(profile, seed).unwrap();
    let mut counted = Counted::default();
    let mut flows = HashSet::new();
    let mut server_ports = HashSet::new();
    while let Some((time, frame)) = synth.next() {
        assert!((60..=1514).contains(&frame.len()));
        assert!(time >= counted.last, "frames come in the order of time");
        counted.last = time;
        if counted.frames == 0 {
            counted.first = time;
        }
        counted.frames += 1;
        counted.bytes += frame.len() as u64;
        if u16_at(frame, 12) == 0x0806 {
            counted.non_flow += 1;
            continue;
        }
        assert_eq!((u16_at(frame, 12), frame[14]), (0x0800, 0x45));
        let end = 14 + usize::from(u16_at(frame, 16));
        assert!(end == frame.len() || (frame.len() == 60 && frame[end..].iter().all(|b| *b == 0)));
        assert!(checksum_holds(&[&frame[14..34]]), "IPv4 checksum");
        let segment = &frame[34..end];
        let length = (segment.len() as u16).to_be_bytes();
        assert!(checksum_holds(&[&frame[26..34], &[0, frame[23]], &length, segment]), "TCP or UDP checksum");
        match frame[23] {
            6 => assert!(frame[46] >> 4 >= 5),
            17 => assert_eq!(usize::from(u16_at(frame, 38)), segment.len()),
            other => panic!("protocol {other}"),
        }
        let ports = (u16_at(frame, 34), u16_at(frame, 36));
        flows.insert((frame[26..34].to_vec(), frame[23], ports));
        // Inside hosts are in 10/8 and ask; the other side is the server.
        let server_port = if frame[26] == 10 { ports.1 } else { ports.0 };
        server_ports.insert(server_port);
        if frame[23] == 6 && matches!(server_port, 80 | 443) {
            counted.web_frames += 1;
            counted.web_bytes += frame.len() as u64;
        }
    }
    counted.flows = flows.len();
    counted.server_ports = server_ports.len();
    counted
}

fn asked(profile: Profile) -> Counted {
    Counted {
        frames: profile.frames,
        bytes: profile.bytes,
        flows: profile.flows as usize,
        non_flow: profile.non_flow_frames,
        server_ports: profile.applications as usize,
        web_frames: profile.web_frames,
        web_bytes: profile.web_bytes,
        first: 0,
        last: profile.duration.as_nanos() as u64,
    }
}

#[test]
fn bigflows_has_the_published_totals() {
    let counted = count(Profile::BIGFLOWS, 1);
    assert_eq!(counted, asked(Profile::BIGFLOWS));
    assert_eq!((counted.frames, counted.bytes, counted.flows), (791_615, 355_417_784, 40_686));
}

#[test]
fn smallflows_has_the_published_totals() {
    let counted = count(Profile::SMALLFLOWS, 1);
    assert_eq!(counted, asked(Profile::SMALLFLOWS));
    assert_eq!((counted.frames, counted.bytes, counted.flows), (14_261, 9_216_531, 1_209));
}

#[test]
fn totals_are_met_whatever_the_seed() {
    for seed in 0..40 {
        assert_eq!(count(Profile::SMALLFLOWS, seed), asked(Profile::SMALLFLOWS), "seed {seed}");
    }
}

#[test]
fn totals_are_met_for_profiles_of_ones_own() {
    let few_frames_a_flow = Profile::BIGFLOWS.with_frames(50_000).with_flows(12_000).with_bytes(14_000_000);
    let large_frames = Profile::SMALLFLOWS.with_flows(200).with_bytes(14_261 * 1_000);
    let fast = Profile { duration: Duration::from_millis(5), ..Profile::SMALLFLOWS };
    let many_applications = Profile::SMALLFLOWS.with_applications(600);
    let web_only = Profile::SMALLFLOWS.with_applications(2);
    let one = Profile {
        frames: 1,
        bytes: 60,
        flows: 1,
        non_flow_frames: 0,
        duration: Duration::ZERO,
        applications: 3,
        web_frames: 0,
        web_bytes: 0,
        hosts: 1,
    };
    for profile in [few_frames_a_flow, large_frames, fast, many_applications, web_only] {
        assert_eq!(count(profile, 9), asked(profile));
    }
    // One frame cannot show three applications.
    assert!(matches!(Synth::new(one, 1), Err(Error::OutOfRange { what: "applications", .. })));
}

#[test]
fn totals_that_contradict_each_other_are_refused_with_what_would_do() {
    let refused = |profile| Synth::new(profile, 1).unwrap_err().to_string();
    let message = refused(Profile { bytes: 1_500 * 14_261, ..Profile::SMALLFLOWS });
    assert!(message.starts_with("profile: bytes (other than web) is 14017195, but"), "{message}");
    let message = refused(Profile { flows: 20_000, ..Profile::SMALLFLOWS });
    assert_eq!(
        message,
        "profile: flows is 20000, but with its other values it must be 1 to 14243; change one of them"
    );
    for hopeless in [
        Profile { frames: 0, ..Profile::SMALLFLOWS },
        Profile { frames: u64::MAX, ..Profile::SMALLFLOWS },
        Profile { bytes: 0, ..Profile::SMALLFLOWS },
        Profile { bytes: u64::MAX, ..Profile::SMALLFLOWS },
        Profile { flows: 0, ..Profile::SMALLFLOWS },
        Profile { non_flow_frames: u64::MAX, ..Profile::SMALLFLOWS },
        Profile { duration: Duration::MAX, ..Profile::SMALLFLOWS },
        Profile { applications: 0, ..Profile::SMALLFLOWS },
        Profile { applications: u32::MAX, ..Profile::SMALLFLOWS },
        Profile { web_frames: u64::MAX, ..Profile::SMALLFLOWS },
        Profile { web_frames: 0, ..Profile::SMALLFLOWS },
        Profile { web_bytes: u64::MAX, ..Profile::SMALLFLOWS },
        Profile { hosts: 0, ..Profile::SMALLFLOWS },
        Profile { hosts: u32::MAX, ..Profile::SMALLFLOWS },
    ] {
        assert!(Synth::new(hopeless, 1).is_err(), "{hopeless:?}");
    }
}

/// FNV-1a over times and bytes.
fn fingerprint(profile: Profile, seed: u64) -> u64 {
    let mut synth = Synth::new(profile, seed).unwrap();
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    while let Some((time, frame)) = synth.next() {
        for byte in time.to_be_bytes().iter().chain(frame) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    hash
}

#[test]
fn a_seed_means_the_same_frames_for_ever() {
    // If this fails on purpose, raise GENERATION and change the value.
    assert_eq!(netdyno_synth::GENERATION, 1);
    assert_eq!(fingerprint(Profile::SMALLFLOWS, 1), 10_635_827_166_855_558_660);
    assert_ne!(fingerprint(Profile::SMALLFLOWS, 1), fingerprint(Profile::SMALLFLOWS, 2));
}

#[test]
fn tcp_conversations_open_advance_and_acknowledge_what_was_sent() {
    let mut synth = Synth::new(Profile::SMALLFLOWS, 1).unwrap();
    // Next sequence number of each direction, by the direction's addresses and ports.
    let mut next: HashMap<(Vec<u8>, Vec<u8>), u32> = HashMap::new();
    let (mut segments, mut finished) = (0, 0);
    while let Some((_, frame)) = synth.next() {
        if u16_at(frame, 12) != 0x0800 || frame[23] != 6 {
            continue;
        }
        segments += 1;
        let from = [&frame[26..30], &frame[34..36]].concat();
        let to = [&frame[30..34], &frame[36..38]].concat();
        let number = |at: usize| u32::from_be_bytes([frame[at], frame[at + 1], frame[at + 2], frame[at + 3]]);
        let (sequence, acknowledged, flags) = (number(38), number(42), frame[47]);
        let payload = u32::from(u16_at(frame, 16)) - 20 - u32::from(frame[46] >> 4) * 4;
        let (syn, fin, ack) = (flags & 2 != 0, flags & 1 != 0, flags & 0x10 != 0);
        match next.get(&(from.clone(), to.clone())) {
            Some(expected) => assert_eq!(sequence, *expected),
            None => assert!(syn || flags & 4 != 0, "a side begins with SYN, or refuses"),
        }
        if ack {
            assert_eq!(Some(&acknowledged), next.get(&(to.clone(), from.clone())));
        }
        finished += u32::from(fin);
        next.insert((from, to), sequence.wrapping_add(payload + u32::from(syn) + u32::from(fin)));
    }
    assert!(segments > 10_000 && finished > 400, "{segments} segments, {finished} FINs");
}

#[test]
fn payload_is_neither_constant_nor_repeated() {
    let mut synth = Synth::new(Profile::SMALLFLOWS, 1).unwrap();
    let mut seen = HashSet::new();
    let mut full = 0;
    while let Some((_, frame)) = synth.next() {
        if frame.len() == 1514 {
            full += 1;
            seen.insert(frame[1400..].to_vec());
        }
    }
    assert!(full > 2_000);
    assert_eq!(seen.len(), full);
}
