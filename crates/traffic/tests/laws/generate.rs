//! Programs of every kind, for laws that hold for all of them.

use crate::traffic::schedule::Speed;
use crate::traffic::values::Runs;
use crate::traffic::{
    Field, Lane, LengthField, Lengths, Program, Schedule, Shape, Step, Stream, Sum, Templates, Values,
};
use proptest::prelude::*;

pub const HEADERS: usize = 42;

/// Ethernet/IPv4/UDP with room for `longest` bytes; payload bytes count up so that a misplaced one shows.
pub fn udp_template(longest: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..longest).map(|i| (i * 7 + 3) as u8).collect();
    bytes[12..14].copy_from_slice(&[0x08, 0x00]);
    bytes[14] = 0x45;
    bytes[20..24].copy_from_slice(&[0x00, 0x00, 64, 17]);
    bytes
}

pub fn udp_sums() -> (Vec<LengthField>, Vec<Sum>) {
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

pub fn udp_stream(bytes: &[u8]) -> Stream {
    let (length_fields, sums) = udp_sums();
    Stream { length_fields, sums, ..Stream::of("s", bytes) }
}

pub fn values() -> impl Strategy<Value = Values> {
    let items = || proptest::collection::vec(any::<u64>(), 1..20);
    prop_oneof![
        (any::<u64>(), any::<u64>(), 0u64..2000).prop_map(|(start, step, count)| Values::Range {
            start,
            step,
            count
        }),
        items().prop_map(|v| Values::List(v.into())),
        (any::<[u64; 3]>(), prop_oneof![any::<u64>(), 0u64..100_000])
            .prop_map(|([key, start, step], count)| Values::Random { key, start, step, count }),
        (any::<[u64; 3]>(), 1u8..64).prop_map(|([key, start, step], bits)| Values::Shuffled {
            key,
            start,
            step,
            bits
        }),
        (any::<u64>(), items()).prop_map(|(key, v)| Values::RandomList { key, items: v.into() }),
        runs().prop_map(Values::Runs),
        (any::<u64>(), runs()).prop_map(|(key, runs)| Values::RandomRuns { key, runs }),
    ]
}

/// Short ones, so that a test comes past their ends, and some as long as there are.
fn runs() -> impl Strategy<Value = Runs> {
    let count = prop_oneof![1u64..5, 0u64..300, 0..Runs::MOST / 32];
    proptest::collection::vec((any::<u64>(), any::<u64>(), count), 1..30)
        .prop_filter_map("no number", Runs::new)
}

/// Any bits of the MAC and IP addresses, the ports, the TTL, the type of service.
pub fn field() -> impl Strategy<Value = Field> {
    let places = prop_oneof![26u64 * 8..38 * 8, 15u64 * 8..16 * 8, 22u64 * 8..23 * 8, 0u64..12 * 8];
    (places, 1u32..=64, values(), prop_oneof![Just(1u64), 1u64..50]).prop_filter_map(
        "crosses its zone",
        |(bit, width, values, every)| {
            let field = Field::at_bit(bit, width, values)?.every(every);
            let range = field.range();
            let zones = [0..12usize, 15..16, 22..23, 26..30, 30..34, 34..38];
            zones.iter().any(|z| z.start <= range.start && range.end <= z.end).then_some(field)
        },
    )
}

pub fn lengths(longest: u32) -> impl Strategy<Value = Lengths> {
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

/// A checksum that no protocol has, in the IPv4 identification: at even and odd places, with parts elsewhere.
pub fn inner_sum() -> impl Strategy<Value = Sum> {
    let pseudo =
        prop_oneof![Just(vec![]), Just(std::iter::once(26..34).collect()), Just(vec![0..12, 30..34])];
    (any::<[bool; 4]>(), 22u32..24, pseudo, any::<u16>()).prop_map(
        |([odd, far, udp, plus_length], end, also, plus)| {
            let offset = if odd { 19 } else { 18 };
            let start = if far { offset - 4 } else { offset };
            Sum { offset, start, end: Some(end), also, plus: plus.into(), plus_length, udp, error: 0 }
        },
    )
}

pub fn stream() -> impl Strategy<Value = Stream> {
    (60usize..400)
        .prop_flat_map(|longest| {
            (
                Just(longest),
                proptest::collection::vec(field(), 0..5),
                lengths(longest as u32),
                proptest::option::of(0u32..1000),
                prop_oneof![4 => Just(0u16), 1 => any::<u16>()],
                proptest::option::of(inner_sum()),
            )
        })
        .prop_map(|(longest, fields, lengths, signature, error, inner)| {
            let mut stream = Stream { lengths, signature, ..udp_stream(&udp_template(longest)) };
            stream.sums[1].error = error;
            stream.sums.splice(0..0, inner);
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

/// A capture of a few conversations in both directions, with frames of no flow between them.
pub fn capture() -> impl Strategy<Value = Stream> {
    let frame = (0u8..6, any::<bool>(), HEADERS + 18..120usize);
    (proptest::collection::vec(frame, 1..30), any::<bool>(), proptest::option::of(0u32..1000)).prop_map(
        |(frames, unique_addresses, signature)| {
            let mut templates = Templates::new();
            for (i, (flow, back, length)) in frames.into_iter().enumerate() {
                let mut bytes = udp_template(length);
                // Tells frames apart; it stands in the payload.
                bytes[42..44].copy_from_slice(&(i as u16).to_be_bytes());
                bytes[16..18].copy_from_slice(&(length as u16 - 14).to_be_bytes());
                bytes[38..40].copy_from_slice(&(length as u16 - 34).to_be_bytes());
                let (source, destination) = ([10, 0, 0, flow], [10, 1, flow / 2, 1]);
                let (source, destination) = if back { (destination, source) } else { (source, destination) };
                bytes[26..30].copy_from_slice(&source);
                bytes[30..34].copy_from_slice(&destination);
                bytes[34..38].copy_from_slice(if back { &[0, 9, 0, 8] } else { &[0, 8, 0, 9] });
                if flow == 5 {
                    bytes[12..14].copy_from_slice(&[0x88, 0xcc]);
                }
                templates.push(wire::LinkType::ETHERNET, &bytes).unwrap();
            }
            if signature.is_some() {
                templates.number_signable();
            }
            Stream { templates, unique_addresses, signature, ..Stream::of("capture", &[]) }
        },
    )
}

/// Patched streams, some of them strided, and captures.
pub fn any_stream() -> impl Strategy<Value = Stream> {
    let strided =
        (stream(), 0u64..50, 1u64..9).prop_map(|(stream, first, step)| Stream { first, step, ..stream });
    prop_oneof![2 => stream(), 2 => strided, 1 => capture()]
}

/// Schedules with a rate, so slow that times differ and so fast that many are the same.
pub fn paced() -> impl Strategy<Value = Schedule> {
    let frames = (1u64..5000, 1u64..100_000).prop_map(|(frames, per_ns)| Schedule::Frames { frames, per_ns });
    let bits = (1_000_000u64..100_000_000_000, prop_oneof![Just(0u32), Just(24)])
        .prop_map(|(bits_per_second, overhead_bytes)| Schedule::Bits { bits_per_second, overhead_bytes });
    prop_oneof![frames, bits, times(), bursts(), steps(), shapes()]
}

/// By law and by chance, with periods that are short beside the times that are asked for.
pub fn shapes() -> impl Strategy<Value = Schedule> {
    let texts = prop_oneof![
        Just("poisson"),
        Just("sine:period=20us,amplitude=100%"),
        Just("sine:period=100us,arrivals=poisson"),
        Just("square:period=50us,high=20%"),
        Just("square:period=50us,high=90%,low=30%,arrivals=poisson"),
        Just("flash:after=20us,rise=30us,peak=10x,hold=30us,fall=50us"),
        Just("onoff:on=10us,off=30us,alpha=1.2"),
    ];
    (texts, 1u64..5000, 1u64..100_000, any::<u64>()).prop_map(|(text, frames, per_ns, seed)| {
        text.parse::<Shape>().unwrap().schedule(frames, per_ns, seed)
    })
}

pub fn times() -> impl Strategy<Value = Schedule> {
    let gaps = proptest::collection::vec(0u64..1000, 1..20);
    (gaps, 0u64..100, 1u64..20, 1u64..20).prop_map(|(gaps, more, numerator, denominator)| {
        let offsets: Vec<u64> = gaps
            .iter()
            .scan(0, |at, gap| {
                *at += gap;
                Some(*at)
            })
            .collect();
        let period_ns = offsets.last().unwrap() + more;
        Schedule::Times { offsets: offsets.into(), period_ns, speed: Speed { numerator, denominator } }
    })
}

pub fn bursts() -> impl Strategy<Value = Schedule> {
    (1u64..13, 0u64..50, 1u64..500).prop_map(|(frames, gap_ns, pause)| Schedule::Bursts {
        frames,
        gap_ns,
        period_ns: (frames - 1) * gap_ns + pause,
    })
}

pub fn steps() -> impl Strategy<Value = Schedule> {
    proptest::collection::vec((1u64..3000, 1u64..100, 1u64..5000), 1..8).prop_map(|steps| {
        let mut at = 0;
        let step = |(length, frames, per_ns)| {
            at += length;
            Step { end_ns: at, frames, per_ns }
        };
        Schedule::Steps { steps: steps.into_iter().map(step).collect() }
    })
}

/// Streams and the order they take turns in.
fn turns() -> impl Strategy<Value = (Vec<Stream>, Vec<u32>)> {
    (proptest::collection::vec(any_stream(), 1..4), proptest::collection::vec(any::<u32>(), 0..7)).prop_map(
        |(streams, order)| {
            let count = streams.len() as u32;
            let mut order: Vec<u32> = order.iter().map(|o| o % count).collect();
            order.extend(0..count);
            (streams, order)
        },
    )
}

/// One lane at top speed, or up to four with times.
pub fn program() -> impl Strategy<Value = Program> {
    let frames = || proptest::option::of(0u64..200);
    let top = (turns(), frames()).prop_map(|((streams, order), frames)| {
        let mut program = Program::interleaved(streams, order, Schedule::TopSpeed);
        program.lanes[0].frames = frames;
        program
    });
    let lanes = proptest::collection::vec((turns(), paced(), 0u64..3000, frames()), 1..5).prop_map(|lanes| {
        let mut program = Program { streams: Vec::new(), lanes: Vec::new() };
        for ((streams, order), schedule, start_ns, frames) in lanes {
            let base = program.streams.len() as u32;
            let order: Vec<u32> = order.into_iter().map(|o| o + base).collect();
            program.streams.extend(streams);
            program.lanes.push(Lane { start_ns, frames, ..Lane::new(order, schedule) });
        }
        program
    });
    prop_oneof![1 => top, 3 => lanes]
}
