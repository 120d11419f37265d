//! The XDP program on single frames, without an interface: what it finishes, and what it leaves alone.

use super::*;
use crate::loader::{Which, load, load_with};
use bpf::object::Needs;
use bpf::{Program, Run};
use wire::checksum::{finish, sum};

const PASS_ON: u32 = 4;

/// Runs the program on `frame` once. Verdict, and the frame as the program left it.
fn transform(program: &Program, frame: &[u8]) -> (u32, Vec<u8>) {
    let ran = program.run(Run { give_back: true, ..Run::on(frame) }).expect("the kernel runs it");
    (ran.verdict, ran.frame)
}

fn program(complete: bool) -> Loaded {
    // The test run's frames come from the loopback interface.
    load([1, 1], Way::XdpNative, &Options { complete: [complete; 2], mtu: [9000; 2], ..Options::default() })
        .expect("loaded (as root)")
}

/// A frame of one protocol with `payload` bytes, whose checksum field holds the sum of the pseudo header alone.
fn unfinished(v6: bool, tags: usize, protocol: u8, payload: usize) -> (Vec<u8>, usize, usize) {
    let header = if protocol == 6 { 20 } else { 8 };
    let length = (header + payload) as u16;
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    for _ in 0..tags {
        frame.extend([0x81, 0x00, 0x00, 0x07]);
    }
    let addresses: Vec<u8>;
    if v6 {
        addresses = (0..32).map(|n| n * 7 + 1).collect();
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        frame.extend(length.to_be_bytes());
        frame.extend([protocol, 64]);
    } else {
        addresses = vec![198, 18, 0, 1, 198, 18, 255, 254];
        frame.extend([0x08, 0x00, 0x45, 0]);
        frame.extend((length + 20).to_be_bytes());
        frame.extend([0, 1, 0x40, 0, 64, protocol, 0, 0]);
    }
    frame.extend(&addresses);
    let at = frame.len();
    frame.extend((0..usize::from(length)).map(|n| (n * 31 % 251) as u8));
    let field = at + if protocol == 6 { 16 } else { 6 };
    let mut pseudo = addresses;
    pseudo.extend(u32::from(protocol).to_be_bytes());
    pseudo.extend(u32::from(length).to_be_bytes());
    frame[field..field + 2].copy_from_slice(&(!finish(sum(&pseudo))).to_be_bytes());
    (frame, at, field)
}

/// What the checksum has to be: the field already holds the pseudo header's sum.
fn finished(frame: &[u8], at: usize, field: usize) -> Vec<u8> {
    let sum = match finish(sum(&frame[at..])) {
        0 => 0xffff,
        sum => sum,
    };
    let mut done = frame.to_vec();
    done[field..field + 2].copy_from_slice(&sum.to_be_bytes());
    done
}

#[test]
fn unfinished_checksums_are_finished_and_no_other_byte_changes() {
    let (on, off) = (program(true), program(false));
    for v6 in [false, true] {
        for protocol in [6, 17] {
            for tags in 0..=2 {
                for payload in [0, 1, 2, 3, 100, 255, 256, 257, 1001, 1400] {
                    let (frame, at, field) = unfinished(v6, tags, protocol, payload);
                    let wanted = finished(&frame, at, field);
                    let case = format!("v6 {v6}, protocol {protocol}, {tags} tags, {payload} bytes");
                    assert_eq!(transform(&on.program, &frame), (PASS_ON, wanted.clone()), "{case}");
                    assert_eq!(transform(&on.program, &wanted), (PASS_ON, wanted), "{case}");
                    assert_eq!(transform(&off.program, &frame), (PASS_ON, frame), "{case}");
                }
            }
        }
    }
}

#[test]
fn padding_behind_the_packet_is_not_summed() {
    let (frame, at, field) = unfinished(false, 0, 17, 3);
    let mut wanted = finished(&frame, at, field);
    let padded: Vec<u8> = frame.iter().copied().chain([0xab; 15]).collect();
    wanted.extend([0xab; 15]);
    assert_eq!(transform(&program(true).program, &padded), (PASS_ON, wanted));
}

#[test]
fn damaged_and_cut_frames_pass_as_they_are() {
    let on = program(true);
    for (v6, protocol) in [(false, 6), (false, 17), (true, 6), (true, 17)] {
        let (frame, at, field) = unfinished(v6, 0, protocol, 40);
        let mut wrong = finished(&frame, at, field);
        let last = wrong.len() - 1;
        wrong[last] ^= 0x55;
        assert_eq!(transform(&on.program, &wrong), (PASS_ON, wrong.clone()));
        for length in 14..frame.len() {
            // Headers say more than is there: nothing is summed that cannot be.
            let cut = &frame[..length];
            assert_eq!(transform(&on.program, cut), (PASS_ON, cut.to_vec()), "{length} bytes");
        }
    }
}

#[test]
fn frames_are_counted_by_direction_and_not_beyond_the_limit() {
    let options = Options { limit: Some(3), mtu: [1500; 2], ..Options::default() };
    let loaded = load([1, 2], Way::XdpNative, &options).expect("loaded (as root)");
    let (frame, ..) = unfinished(false, 0, 17, 18);
    let verdicts: Vec<u32> = (0..5).map(|_| transform(&loaded.program, &frame).0).collect();
    assert_eq!(verdicts.len(), 5);
    let passed = Forwarder { loaded, links: Vec::new(), _promiscuous: Vec::new() }.finish();
    let all = passed[0].frames + passed[1].frames;
    assert_eq!((all, passed[0].over_limit + passed[1].over_limit), (5, 2));
    assert_eq!(passed[0].bytes + passed[1].bytes, 5 * frame.len() as u64);
}

#[test]
fn frames_too_long_for_the_other_side_are_dropped_but_for_a_tag() {
    let options = Options { mtu: [100; 2], ..Options::default() };
    let loaded = load([1, 2], Way::XdpNative, &options).expect("loaded (as root)");
    let mut verdicts = Vec::new();
    // A header of 14 bytes and 100 of a packet, with a tag and without.
    for (tags, payload) in [(0, 72), (0, 73), (1, 72), (1, 73), (2, 72)] {
        let (frame, ..) = unfinished(false, tags, 17, payload);
        verdicts.push(transform(&loaded.program, &frame).0 == PASS_ON);
    }
    assert_eq!(verdicts, [true, false, true, false, false]);
    let passed = Forwarder { loaded, links: Vec::new(), _promiscuous: Vec::new() }.finish();
    assert_eq!((passed[0].too_long, passed[0].forwarded), (3, 2));
}

/// What older kernels take, this one must as well, and it is the same.
#[test]
fn every_program_is_loaded_here_and_the_oldest_forwards_as_the_newest_does() {
    let (frame, _, _) = unfinished(false, 0, 17, 100);
    let options = Options { complete: [true; 2], mtu: [9000; 2], ..Options::default() };
    let whole = program(true);
    let wanted = transform(&whole.program, &frame);
    for which in [Which::Xdp(Needs::Atomics), Which::Xdp(Needs::Links)] {
        let loaded = load_with([1, 1], which, &options).expect("loaded (as root)");
        assert_eq!(transform(&loaded.program, &frame), wanted, "{which:?}");
        assert_eq!(counted(&loaded), counted(&whole), "{which:?}");
    }
    for which in [Which::Tc, Which::Hold, Which::Pass, Which::PassWhole] {
        load_with([1, 1], which, &options).expect("loaded (as root)");
    }
}

fn counted(loaded: &Loaded) -> [u64; 3] {
    let shares = (0..loaded.counters.len()).filter_map(|entry| loaded.counters.get(entry));
    let sum = shares.fold(Counters::default(), |sum, share| sum.with(&share));
    [sum.forwarded, sum.completed, sum.forwarded_bytes]
}
