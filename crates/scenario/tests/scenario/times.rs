//! Times are what the definitions say, by arithmetic of the tests' own.

use crate::{compiled, context};
use netdyno_scenario::{Compiled, parse};
use proptest::prelude::*;
use std::fmt::Write as _;
use traffic::Rate;

/// The due times of the first `most` frames of each stream, lane by lane.
fn times(compiled: &Compiled, most: usize) -> Vec<Vec<u64>> {
    let program = &compiled.program;
    let mut all = vec![Vec::new(); program.streams.len()];
    for lane in &program.lanes {
        let mut cursor = lane.schedule.cursor();
        let mut counts = vec![0u64; program.streams.len()];
        for i in 0..lane.frames.unwrap_or(u64::MAX) {
            let s = lane.order[(i % lane.order.len() as u64) as usize] as usize;
            if cursor.at_end() || all[s].len() == most {
                break;
            }
            all[s].push(lane.start_ns + cursor.due());
            let stream = &program.streams[s];
            cursor.advance(stream.lengths.at(counts[s], stream.templates.longest()));
            counts[s] += 1;
        }
    }
    all
}

/// One stream as a test writes it and as it must come out.
#[derive(Debug, Clone)]
enum Kind {
    Rate { pps: u64, count: u64 },
    Lasting { pps: u64, ms: u64 },
    Burst { frames: u64, gap: u64, every: u64, count: u64 },
    Ramp { from: u64, to: u64, ms: u64, steps: u64 },
}

impl Kind {
    fn yaml(&self) -> String {
        match self {
            Kind::Rate { pps, count } => format!("rate: {pps}pps, count: {count}"),
            Kind::Lasting { pps, ms } => format!("rate: {pps}pps, duration: {ms}ms"),
            Kind::Burst { frames, gap, every, count } => {
                format!("burst: {{frames: {frames}, gap: {gap}ns, every: {every}ns, count: {count}}}")
            }
            Kind::Ramp { from, to, ms, steps } => {
                format!("ramp: {{from: {from}pps, to: {to}pps, over: {ms}ms, steps: {steps}, then: stop}}")
            }
        }
    }

    /// Due times after the stream's start, and when it has ended.
    fn wanted(&self) -> (Vec<u64>, u64) {
        let due = |n: u64, pps: u64| (u128::from(n) * 1_000_000_000 / u128::from(pps)) as u64;
        match *self {
            Kind::Rate { pps, count } => ((0..count).map(|n| due(n, pps)).collect(), due(count, pps)),
            Kind::Lasting { pps, ms } => {
                let end = ms * 1_000_000;
                ((0..).map(|n| due(n, pps)).take_while(|due| *due < end).collect(), end)
            }
            Kind::Burst { frames, gap, every, count } => {
                ((0..frames * count).map(|n| n / frames * every + n % frames * gap).collect(), count * every)
            }
            Kind::Ramp { from, to, ms, steps } => {
                // A staircase, walked frame by frame: frame n of a step is due at its first plus n gaps.
                let over = ms * 1_000_000;
                let mut all = Vec::new();
                let mut first = 0u64;
                for j in 0..steps {
                    let end = (u128::from(over) * u128::from(j + 1) / u128::from(steps)) as u64;
                    // from + (to - from) * j / (steps - 1) frames/s, as a fraction.
                    let (numerator, denominator) = (from * (steps - 1 - j) + to * j, steps - 1);
                    let at = |n: u64| {
                        first
                            + (u128::from(n) * u128::from(denominator) * 1_000_000_000
                                / u128::from(numerator)) as u64
                    };
                    let mut n = 0;
                    while at(n) < end {
                        all.push(at(n));
                        n += 1;
                    }
                    first = at(n);
                }
                (all, over)
            }
        }
    }
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        (1u64..5_000_000, 1u64..400).prop_map(|(pps, count)| Kind::Rate { pps, count }),
        (1u64..200_000, 1u64..5).prop_map(|(pps, ms)| Kind::Lasting { pps, ms }),
        (1u64..20, 0u64..5_000, 1u64..1_000_000, 1u64..20).prop_map(|(frames, gap, more, count)| {
            Kind::Burst { frames, gap, every: (frames - 1) * gap + more, count }
        }),
        (1u64..200_000, 1u64..200_000, 1u64..5, 2u64..50)
            .prop_map(|(from, to, ms, steps)| { Kind::Ramp { from, to, ms, steps } }),
    ]
}

proptest! {
    #[test]
    fn each_streams_times_are_those_its_own_words_say(
        streams in proptest::collection::vec((kind(), 0u64..2_000_000, any::<Option<prop::sample::Index>>()), 1..8)
    ) {
        let mut text = "streams:\n".to_owned();
        let mut starts: Vec<u64> = Vec::new();
        let mut ends: Vec<u64> = Vec::new();
        for (n, (kind, offset, after)) in streams.iter().enumerate() {
            // Some begin by themselves, some after one of those before.
            let (base, words) = match after {
                Some(index) if n > 0 => {
                    let other = index.index(n);
                    (ends[other], format!("after: s{other}, pause: {offset}ns"))
                }
                _ => (0, format!("start: {offset}ns")),
            };
            // Zero is written with any unit.
            let words = words.replace(" 0ns", " 0s");
            let _ = writeln!(text, "  - {{name: s{n}, frame: ipv4/udp, {}, {words}}}", kind.yaml().replace(" 0ns", " 0s"));
            starts.push(base + offset);
            ends.push(base + offset + kind.wanted().1);
        }
        let compiled = compiled(&text);
        prop_assert!(!compiled.endless);
        for (n, times) in times(&compiled, usize::MAX).into_iter().enumerate() {
            let wanted: Vec<u64> = streams[n].0.wanted().0.iter().map(|due| starts[n] + due).collect();
            prop_assert_eq!(times, wanted, "stream {} of\n{}", n, text);
        }
        // The total is stated, not only walked to.
        for lane in &compiled.program.lanes {
            let stream = lane.order[0] as usize;
            prop_assert_eq!(lane.frames, Some(streams[stream].0.wanted().0.len() as u64));
        }
    }

    #[test]
    fn weights_are_exact_over_each_cycle_and_the_rate_is_kept(
        weights in proptest::collection::vec(1u32..40, 1..12),
        factor in 1u32..1000,
        pps in 1u64..10_000_000,
    ) {
        let mut text = format!("rate: {pps}pps\nstreams:\n");
        for weight in &weights {
            let _ = writeln!(text, "  - {{frame: ipv4/udp, weight: {}}}", weight * factor);
        }
        let compiled = compiled(&text);
        prop_assert_eq!(compiled.program.lanes.len(), 1);
        prop_assert!(compiled.endless);
        let lane = &compiled.program.lanes[0];
        // The order is no longer than it must be: weights are reduced.
        let divisor = weights.iter().fold(0, |a, &b| gcd(a, b));
        let total: u32 = weights.iter().map(|weight| weight / divisor).sum();
        prop_assert_eq!(lane.order.len() as u32, total);
        for (stream, weight) in weights.iter().enumerate() {
            let places: Vec<usize> = (0..lane.order.len()).filter(|i| lane.order[*i] as usize == stream).collect();
            prop_assert_eq!(places.len() as u32, weight / divisor);
            // Spread out: no frame of a stream is further from its even place than the streams there are.
            for (j, place) in places.iter().enumerate() {
                let even = j as f64 * f64::from(total) / places.len() as f64;
                prop_assert!((*place as f64 - even).abs() <= f64::from(total) / places.len() as f64 + weights.len() as f64);
            }
        }
        let mut cursor = lane.schedule.cursor();
        for n in 0..500u64 {
            prop_assert_eq!(u128::from(cursor.due()), u128::from(n) * 1_000_000_000 / u128::from(pps));
            cursor.advance(60);
        }
    }

    #[test]
    fn bits_end_where_their_frames_fill_the_time(
        mbps in 1u64..2_000,
        us in 1u64..3_000,
        size in prop_oneof![Just("64"), Just("imix"), Just("aaafg"), Just("random(64..1518)"), Just("[70, 71]")],
    ) {
        let text = format!("streams:\n  - {{frame: ipv4/udp, size: '{size}', rate: {mbps}mbps-l1, duration: {us}us}}\n");
        let compiled = compiled(&text.replace("'[70, 71]'", "[70, 71]"));
        let stream = &compiled.program.streams[0];
        let (mut bits, mut wanted) = (0u128, Vec::new());
        for k in 0.. {
            let due = bits * 1_000_000_000 / u128::from(mbps * 1_000_000);
            if due >= u128::from(us) * 1_000 {
                break;
            }
            wanted.push(due as u64);
            bits += u128::from(stream.lengths.at(k, 0) + 24) * 8;
        }
        prop_assert_eq!(&times(&compiled, usize::MAX)[0], &wanted);
        prop_assert_eq!(compiled.program.lanes[0].frames, Some(wanted.len() as u64));
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[test]
fn a_chain_keeps_its_distances_and_begins_where_the_one_before_ended() {
    let compiled = compiled(
        "streams:
  - {name: c, frame: ipv4/udp, rate: 1kpps, count: 2, after: b, pause: 5ms}
  - {name: a, frame: ipv4/udp, rate: 1kpps, count: 3}
  - {name: b, frame: ipv4/udp, burst: {frames: 2, gap: 1us, every: 10ms, count: 2}, after: a}
",
    );
    let ms = 1_000_000;
    assert_eq!(
        times(&compiled, 100),
        [vec![28 * ms, 29 * ms], vec![0, ms, 2 * ms], vec![3 * ms, 3 * ms + 1000, 13 * ms, 13 * ms + 1000]]
    );
    // Streams keep the file's order and number, whatever the order of their times.
    let numbers: Vec<Option<u32>> = compiled.program.streams.iter().map(|s| s.signature).collect();
    assert_eq!(numbers, [Some(0), Some(1), Some(2)]);
}

#[test]
fn a_ramp_holds_unless_told_to_stop() {
    let held = compiled(
        "streams: [{frame: ipv4/udp, ramp: {from: 1kpps, to: 4kpps, over: 40ms, steps: 4}, duration: 60ms}]",
    );
    // 10 ms each at 1, 2, 3 and 4 frames a millisecond, then 20 ms of the last.
    assert_eq!(times(&held, 1000)[0].len(), 10 + 20 + 30 + 40 + 80);
    let stopped = compiled(
        "streams: [{frame: ipv4/udp, ramp: {from: 4kpps, to: 1kpps, over: 40ms, steps: 4, then: stop}, duration: 60ms}]",
    );
    assert_eq!(times(&stopped, 1000)[0].len(), 100);
    assert!(compiled("streams: [{frame: ipv4/udp, ramp: {from: 1kpps, to: 2kpps, over: 1s}}]").endless);
}

#[test]
fn a_shape_varies_the_rate_of_its_stream() {
    let square = compiled(
        "streams: [{frame: ipv4/udp, rate: 10kpps, shape: 'square:period=20ms,high=25%,low=10%', duration: 60ms}]",
    );
    // In each period 5 ms at 10 frames a millisecond, and 15 at one.
    assert_eq!(times(&square, 1000)[0].len(), 3 * (50 + 15));
    // 64 bytes with the frame check sequence are 480 bits without it: the same as 10 kpps.
    let bits = compiled(
        "streams: [{frame: ipv4/udp, size: 64, rate: 4.8mbps, shape: 'square:period=20ms,high=25%,low=10%', duration: 60ms}]",
    );
    assert_eq!(times(&bits, 1000), times(&square, 1000));
    // Streams of one file have their own chance, and a seed has the same again.
    let twice = "seed: 5\ndefaults: {rate: 1kpps}\nstreams: [{frame: ipv4/udp, shape: poisson, count: 99}, {frame: ipv4/udp, shape: poisson, count: 99}]";
    let both = times(&compiled(twice), 1000);
    assert_ne!(both[0], both[1]);
    assert_eq!(both, times(&compiled(twice), 1000));
}

#[test]
fn rates_in_bits_and_percent_ramp_and_burst_where_frames_are_of_one_size() {
    // 64 bytes take 84 on the wire: 1% of 10 Gbit/s is 148,809.5 frames a second.
    let ramp = compiled(
        "streams: [{frame: ipv4/udp, size: 64, ramp: {from: 1%, to: 2%, over: 1s, steps: 2, then: stop}}]",
    );
    let sent = times(&ramp, usize::MAX)[0].len();
    assert_eq!(sent, 223_215);
    let burst = compiled(
        "streams: [{frame: ipv4/udp, size: 64, burst: {frames: 3, rate: 100mbps-l1, every: 1ms, count: 2}}]",
    );
    assert_eq!(times(&burst, 100)[0], [0, 6_720, 13_440, 1_000_000, 1_006_720, 1_013_440]);
    let dense = compiled("streams: [{frame: ipv4/udp, burst: {frames: 2, every: 1us, count: 2}}]");
    assert_eq!(times(&dense, 100)[0], [0, 0, 1000, 1000]);
}

#[test]
fn the_runs_limits_and_rate_are_those_the_file_states() {
    let whole =
        compiled("name: n\nseed: 5\nduration: 2s\ncount: 10k\nrate: 1mbps\nstreams: [{frame: ipv4/udp}]");
    assert_eq!(whole.duration, Some(std::time::Duration::from_secs(2)));
    assert_eq!((whole.count, whole.endless), (Some(10_000), false));
    assert_eq!(whole.rate, Some(Rate::Bits { bits_per_second: 1_000_000, layer1: false }));
    let top = compiled("streams: [{frame: ipv4/udp, rate: top, duration: 3s, count: 7}]");
    assert_eq!(top.duration, Some(std::time::Duration::from_secs(3)));
    assert_eq!((top.program.lanes[0].frames, top.rate), (Some(7), Some(Rate::TopSpeed)));
    let shared = compiled("rate: top\nstreams: [{frame: ipv4/udp}, {frame: ipv6/udp, weight: 2}]");
    assert_eq!(shared.program.lanes[0].order.len(), 3);
    let named =
        parse("name: n\ndescription: d\nseed: 5\nstreams: [{frame: ipv4}]", "f.yaml").expect("a scenario");
    assert_eq!((named.name(), named.description(), named.seed()), ("n", Some("d"), Some(5)));
    assert_eq!(parse("streams: [{frame: ipv4}]", "f.yaml").expect("a scenario").name(), "f.yaml");
}

#[test]
fn the_first_stream_has_the_values_of_the_expression_and_others_their_own() {
    use traffic::expr::{Options, compile};
    let frame = "ipv4(src=random(10.0.0.0/8))/udp";
    let compiled = compiled(&format!("rate: 1kpps\nstreams: [{{frame: {frame:?}}}, {{frame: {frame:?}}}]"));
    let alone = compile(frame, &Options { seed: context().seed, ..Options::default() }).expect("a program");
    assert_eq!(compiled.program.streams[0].fields, alone.streams[0].fields);
    assert_ne!(compiled.program.streams[1].fields, alone.streams[0].fields);
}

#[test]
fn neighbours_are_named_and_found_addresses_are_put_in() {
    let mut compiled = compiled(
        "rate: 1kpps
defaults: {resolve: true}
streams:
  - {frame: 'ipv4(src=198.18.0.1, dst=198.18.0.2)/udp'}
  - {frame: 'ipv6(src=2001:db8::1, dst=2001:db8::9)/udp', resolve: 'fe80::1'}
  - {frame: 'ether(src=02:00:00:00:00:aa)/ipv4(dst=203.0.113.0/24)/udp', resolve: 198.18.0.254}
  - {frame: 'ipv4/udp', resolve: false}
",
    );
    let text = |n: usize| {
        let u = &compiled.resolve[n];
        format!("{} {} {:?}", u.stream, u.next_hop, u.source.map(|s| s.to_string()))
    };
    assert_eq!(text(0), "0 198.18.0.2 Some(\"198.18.0.1\")");
    assert_eq!(text(1), "1 fe80::1 Some(\"2001:db8::1\")");
    assert_eq!(text(2), "2 198.18.0.254 Some(\"198.18.0.1\")");
    assert_eq!(compiled.resolve.len(), 3);
    let before = compiled.program.streams[0].templates.get(0).to_vec();
    for unresolved in compiled.resolve.clone() {
        compiled.resolved(&unresolved, [2, 9, 9, 9, 9, 9], [2, 8, 8, 8, 8, 8]);
    }
    let frame = compiled.program.streams[0].templates.get(0);
    assert_eq!((&frame[..6], &frame[6..12]), (&[2, 9, 9, 9, 9, 9][..], &[2, 8, 8, 8, 8, 8][..]));
    assert_eq!(frame[12..], before[12..]);
    // A source address that was written stays.
    assert_eq!(compiled.program.streams[2].templates.get(0)[6..12], [2, 0, 0, 0, 0, 0xaa]);
    assert_eq!(compiled.program.streams[3].templates.get(0)[..6], before[..6]);
}
