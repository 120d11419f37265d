//! Laws of the executor, over generated programs: purity, patching, checksums against a plain implementation.

use netdyno_traffic as traffic;

use proptest::prelude::*;
use std::collections::HashSet;
use traffic::executor::{Slab, frame};
use traffic::{Executor, Field, LengthField, Lengths, Program, Schedule, Stream, Sum, Values};
use wire::signature::Signature;

const HEADERS: usize = 42;

/// Ethernet/IPv4/UDP with room for `longest` bytes; payload bytes count up so that a misplaced one shows.
fn udp_template(longest: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..longest).map(|i| (i * 7 + 3) as u8).collect();
    bytes[12..14].copy_from_slice(&[0x08, 0x00]);
    bytes[14] = 0x45;
    bytes[20..24].copy_from_slice(&[0x00, 0x00, 64, 17]);
    bytes
}

fn udp_sums() -> (Vec<LengthField>, Vec<Sum>) {
    let plain = Sum {
        offset: 24,
        start: 14,
        end: Some(34),
        also: vec![],
        plus: 0,
        plus_length: false,
        udp: false,
        error: 0,
    };
    let udp = Sum {
        offset: 40,
        start: 34,
        end: None,
        also: vec![26..30, 30..34],
        plus: 17,
        plus_length: true,
        udp: true,
        error: 0,
    };
    (vec![LengthField { offset: 16, less: 14 }, LengthField { offset: 38, less: 34 }], vec![plain, udp])
}

fn udp_stream(bytes: &[u8]) -> Stream {
    let (length_fields, sums) = udp_sums();
    Stream { length_fields, sums, ..Stream::of("s", bytes) }
}

fn values() -> impl Strategy<Value = Values> {
    let items = || proptest::collection::vec(any::<u64>(), 1..20);
    prop_oneof![
        (any::<u64>(), any::<u64>(), 0u64..2000).prop_map(|(start, step, count)| Values::Range {
            start,
            step,
            count
        }),
        items().prop_map(|v| Values::List(v.into())),
        any::<[u64; 4]>().prop_map(|[key, start, step, count]| Values::Random { key, start, step, count }),
        (any::<u64>(), items()).prop_map(|(key, v)| Values::RandomList { key, items: v.into() }),
    ]
}

/// Any bits of the MAC and IP addresses, the ports, the TTL, the type of service.
fn field() -> impl Strategy<Value = Field> {
    let places = prop_oneof![26u64 * 8..38 * 8, 15u64 * 8..16 * 8, 22u64 * 8..23 * 8, 0u64..12 * 8];
    (places, 1u32..=64, values(), 1u64..50).prop_filter_map(
        "crosses its zone",
        |(bit, width, values, every)| {
            let field = Field::at_bit(bit, width, values)?.every(every);
            let range = field.range();
            let zones = [0..12usize, 15..16, 22..23, 26..30, 30..34, 34..38];
            zones.iter().any(|z| z.start <= range.start && range.end <= z.end).then_some(field)
        },
    )
}

fn lengths(longest: u32) -> impl Strategy<Value = Lengths> {
    let least = HEADERS as u32 + 18;
    prop_oneof![
        Just(Lengths::Fixed(longest)),
        Just(Lengths::Template),
        (any::<u64>(), least..=longest).prop_map(move |(key, min)| Lengths::Random {
            key,
            min,
            max: longest
        }),
        proptest::collection::vec(least..=longest, 1..9).prop_map(|v| Lengths::List(v.into())),
        proptest::collection::vec((least..=longest, 1u32..9), 1..4).prop_map(|v| Lengths::mix(&v)),
    ]
}

fn stream() -> impl Strategy<Value = Stream> {
    (60usize..400)
        .prop_flat_map(|longest| {
            (
                Just(longest),
                proptest::collection::vec(field(), 0..5),
                lengths(longest as u32),
                proptest::option::of(0u32..1000),
                prop_oneof![4 => Just(0u16), 1 => any::<u16>()],
            )
        })
        .prop_map(|(longest, fields, lengths, signature, error)| {
            let mut stream = Stream { lengths, signature, ..udp_stream(&udp_template(longest)) };
            stream.sums[1].error = error;
            for field in fields {
                // Overlapping fields are no program; leave out what overlaps with those before.
                stream.fields.push(field);
                if Program::single(stream.clone()).check().is_err() {
                    stream.fields.pop();
                }
            }
            stream
        })
}

fn program() -> impl Strategy<Value = Program> {
    (proptest::collection::vec(stream(), 1..4), proptest::collection::vec(any::<u32>(), 1..9)).prop_map(
        |(streams, order)| {
            let count = streams.len() as u32;
            let mut order: Vec<u32> = order.iter().map(|o| o % count).collect();
            order.extend(0..count);
            Program::interleaved(streams, order, Schedule::TopSpeed)
        },
    )
}

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
                prop_assert_eq!(made, left.min(7));
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
        let error = stream.sums[1].error;
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
