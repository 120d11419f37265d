//! Laws of the executor, over generated programs: purity, patching, checksums against a plain implementation.

use crate::generate::{HEADERS, field, program, stream, udp_stream, udp_template};
use crate::traffic::executor::{Slab, frame};
use crate::traffic::{self, Executor, Field, Program, Schedule, Stream, Sum, Values};
use proptest::prelude::*;
use std::collections::HashSet;
use wire::signature::Signature;

/// RFC 1071 as plainly as possible.
fn plain_checksum(bytes: &[u8]) -> u16 {
    let mut sum = 0u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

fn assert_udp_frame_right(frame: &[u8], error: u16) {
    let word = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
    assert_eq!(word(16) as usize, frame.len() - 14, "IPv4 total length");
    assert_eq!(word(38) as usize, frame.len() - 34, "UDP length");
    assert_eq!(plain_checksum(&frame[14..34]), 0, "IPv4 header checksum");
    let mut pseudo = frame[26..34].to_vec();
    pseudo.extend([0, 17]);
    pseudo.extend(((frame.len() - 34) as u16).to_be_bytes());
    let mut udp = frame[34..].to_vec();
    udp[6..8].fill(0);
    pseudo.extend(udp);
    let right = match plain_checksum(&pseudo) {
        0 => 0xffff,
        value => value,
    };
    let wanted = match right.wrapping_add(error) {
        0 => 1 + u16::from(right == 1), // wrong on purpose, but not "no checksum"
        value => value,
    };
    assert_eq!(word(40), wanted, "UDP checksum");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_range_split_any_way_gives_the_same_frames(
        program in program(),
        start in 0u64..100_000,
        cuts in proptest::collection::vec(1u64..40, 1..5),
    ) {
        let mut whole = Executor::new(&program).unwrap();
        whole.seek(start);
        let mut n = start;
        for length in cuts {
            // Each part has an executor and buffers of its own, reused within the part: patched frames must equal
            // frames made anew.
            let mut part = Executor::new(&program).unwrap();
            part.seek(n);
            let mut slab = Slab::new(7, program.longest() as usize);
            let mut left = length as usize;
            while left > 0 {
                prop_assert_eq!(part.next_length(), whole.next_length());
                let made = part.render(&mut slab.buffers(), left.min(7), || 0);
                if made < left.min(7) {
                    prop_assert!(frame(&program, n + made as u64, 0).unwrap().is_empty(), "no frame left out");
                    left = made;
                }
                left -= made;
                for i in 0..made {
                    let fresh = frame(&program, n, 0).unwrap();
                    prop_assert_eq!(slab.frame(i), &fresh[..], "frame {}", n);
                    let mut one = Slab::new(1, program.longest() as usize);
                    whole.render(&mut one.buffers(), 1, || 0);
                    prop_assert_eq!(one.frame(0), &fresh[..]);
                    n += 1;
                }
            }
        }
    }

    #[test]
    fn checksums_and_lengths_are_right_by_a_plain_implementation(stream in stream(), start in any::<u32>()) {
        let error = stream.sums.last().map_or(0, |sum| sum.error);
        let program = Program::single(stream);
        for n in u64::from(start)..u64::from(start) + 20 {
            assert_udp_frame_right(&frame(&program, n, n * 1000).unwrap(), error);
        }
    }

    #[test]
    fn fields_hold_their_values_and_others_keep_the_template(field in field(), n in any::<u32>()) {
        let n = u64::from(n);
        let template = udp_template(60);
        let stream = Stream { fields: vec![field.clone()], ..Stream::of("s", &template) };
        let got = frame(&Program::single(stream), n, 0).unwrap();
        let read = |bytes: &[u8]| bytes[field.range()].iter().fold(0u64, |v, &b| v << 8 | u64::from(b));
        let want = (field.values.at(n / field.every) << field.shift) & field.mask;
        prop_assert_eq!(read(&got), (read(&template) & !field.mask) | want);
    }

    #[test]
    fn addresses_of_passes_stay_checksum_neutral_mirrored_and_distinct(
        a in any::<[u8; 4]>(),
        b in any::<[u8; 4]>(),
        payload in proptest::collection::vec(any::<u8>(), 0..60),
        passes in proptest::collection::hash_set(0u64..1 << 31, 2..6),
    ) {
        let build = |source: [u8; 4], destination: [u8; 4]| {
            let mut bytes = udp_template(HEADERS);
            bytes.extend(&payload);
            bytes[26..30].copy_from_slice(&source);
            bytes[30..34].copy_from_slice(&destination);
            frame(&Program::single(udp_stream(&bytes)), 0, 0).unwrap()
        };
        let mut templates = traffic::Templates::new();
        for bytes in [build(a, b), build(b, a), vec![0xff; 60]] {
            templates.push(wire::LinkType::ETHERNET, &bytes).unwrap();
        }
        let stream = Stream { templates, unique_addresses: true, ..Stream::of("capture", &[]) };
        let program = Program::single(stream);
        let mut seen = HashSet::new();
        for pass in passes {
            let there = frame(&program, 3 * pass, 0).unwrap();
            let back = frame(&program, 3 * pass + 1, 0).unwrap();
            assert_udp_frame_right(&there, 0);
            assert_udp_frame_right(&back, 0);
            if a != b {
                prop_assert_eq!(&there[26..30], &back[30..34]);
                prop_assert_eq!(&there[30..34], &back[26..30]);
            }
            prop_assert!(seen.insert(there[26..34].to_vec()));
            prop_assert_eq!(frame(&program, 3 * pass + 2, 0).unwrap(), vec![0xff; 60], "no IP: as it was");
        }
    }

    #[test]
    fn signed_captured_frames_keep_right_checksums(
        payload in proptest::collection::vec(any::<u8>(), 18..100),
        no_checksum in any::<bool>(),
    ) {
        let mut bytes = udp_template(HEADERS);
        bytes.extend(&payload);
        let mut stream = udp_stream(&bytes);
        if no_checksum {
            stream.sums.pop();
            bytes[40..42].fill(0);
            stream.templates = traffic::Templates::single(&bytes);
        }
        let bytes = frame(&Program::single(stream), 0, 0).unwrap();
        let mut templates = traffic::Templates::new();
        templates.push(wire::LinkType::ETHERNET, &[0; 60]).unwrap();
        templates.push(wire::LinkType::ETHERNET, &bytes).unwrap();
        prop_assert_eq!(templates.number_signable(), 1);
        let stream = Stream { templates, signature: Some(5), unique_addresses: true, ..Stream::of("capture", &[]) };
        let program = Program::single(stream);
        for pass in 0..3 {
            let signed = frame(&program, 2 * pass + 1, 77).unwrap();
            let want = Signature { stream: 5, sequence: pass, time: 77 };
            prop_assert_eq!(Signature::at_end_of(&signed), Some(want));
            if no_checksum {
                prop_assert_eq!(&signed[40..42], &[0, 0]);
            } else {
                assert_udp_frame_right(&signed, 0);
            }
            prop_assert_eq!(Signature::at_end_of(&frame(&program, 2 * pass, 77).unwrap()), None);
        }
    }
}

#[test]
fn streams_are_signed_with_their_own_sequence() {
    let stream = |number| Stream { signature: Some(number), ..udp_stream(&udp_template(60)) };
    let program = Program::interleaved(vec![stream(10), stream(11)], [0, 1, 0], Schedule::TopSpeed);
    let seen: Vec<_> = (0..6)
        .map(|n| {
            Signature::at_end_of(&frame(&program, n, 0).unwrap()).map(|s| (s.stream, s.sequence)).unwrap()
        })
        .collect();
    assert_eq!(seen, [(10, 0), (11, 0), (10, 1), (10, 2), (11, 1), (10, 3)]);
}

#[test]
fn an_inner_checksum_that_varies_is_covered_by_the_outer_one() {
    // Outer UDP over an inner header with a checksum of its own: both must hold.
    let mut stream = udp_stream(&udp_template(90));
    let inner = Sum { offset: 52, start: 42, end: Some(62), ..stream.sums[0].clone() };
    stream.sums.insert(0, inner);
    stream.fields =
        vec![Field::at_bit(54 * 8 + 4, 20, Values::Range { start: 1, step: 77, count: 0 }).unwrap()];
    let program = Program::single(stream);
    let mut inner_sums = HashSet::new();
    for n in 0..100 {
        let bytes = frame(&program, n, 0).unwrap();
        assert_eq!(plain_checksum(&bytes[42..62]), 0);
        assert_udp_frame_right(&bytes, 0);
        inner_sums.insert([bytes[52], bytes[53]]);
    }
    assert!(inner_sums.len() > 50);
}
