//! Flow profiles come to exactly the flows they say: keys, packets, times, sizes, flags, by arithmetic of the tests' own.

use crate::{compiled, context};
use netdyno_scenario::{Compiled, Context, Sign, parse};
use proptest::prelude::*;
use std::collections::HashMap;
use traffic::executor::{Executor, Slab};
use wire::LinkType;
use wire::flow::FlowKey;
use wire::layers::Layers;

/// One frame: when, and what of it.
struct Frame {
    at: u64,
    bytes: Vec<u8>,
}

impl Frame {
    fn word(&self, at: usize) -> u32 {
        u32::from_be_bytes([self.bytes[at], self.bytes[at + 1], self.bytes[at + 2], self.bytes[at + 3]])
    }

    fn flags(&self) -> u8 {
        self.bytes[47]
    }

    fn payload(&self) -> u32 {
        u32::try_from(self.bytes.len()).unwrap() - 54
    }
}

/// All frames, by flow, in the order in which they leave.
fn flows(compiled: &Compiled) -> HashMap<FlowKey, Vec<Frame>> {
    let program = &compiled.program;
    let mut executor = Executor::new(program).unwrap();
    let mut slab = Slab::new(1, program.longest() as usize);
    let mut all: HashMap<FlowKey, Vec<Frame>> = HashMap::new();
    while let Some(at) = executor.next_due() {
        assert_eq!(executor.render(&mut slab.buffers(), 1, || 0), 1);
        let bytes = slab.frame(0).to_vec();
        let key = FlowKey::of(&Layers::parse(LinkType::ETHERNET, &bytes), &bytes).key().expect("a flow");
        all.entry(key).or_default().push(Frame { at, bytes });
    }
    all
}

const WEB: &str = "
duration: 3s
flows:
  - name: web
    rate: 1kfps
    packets: {1: 60%, 4: 30%, 20: 10%}
    size: {64: 50%, 1500: 50%}
    duration: 2s
    protocol: {tcp: 70%, udp: 25%, icmp: 5%}
    source: 10.0.0.0/8
    destination: 198.18.0.0/16
    source_port: 1024..65535
    destination_port: {443: 3, 80: 1}
";

#[test]
fn a_profile_comes_to_its_arithmetic() {
    let made = compiled(WEB);
    let plan = &made.flows[0];
    // Flows that begin in the first second end within three.
    assert_eq!((plan.flows, plan.frames()), (Some(1000), Some(600 + 4 * 300 + 20 * 100)));
    assert_eq!(plan.flows_per_second(), 1000.0);
    assert!((plan.frames_per_second() - 3800.0).abs() < 1e-6, "{}", plan.frames_per_second());
    assert!((plan.concurrency() - 800.0).abs() < 1e-6, "{}", plan.concurrency());
    let of = |protocol: &str, packets: u32| {
        let class = plan.classes.iter().find(|c| c.protocol == protocol && c.packets == packets);
        class.and_then(|class| class.flows)
    };
    assert_eq!((of("tcp", 1), of("udp", 4), of("icmp", 20)), (Some(420), Some(75), Some(5)));
    let flows = flows(&made);
    assert_eq!(flows.len(), 1000);
    let mut seen: HashMap<(u8, usize), u64> = HashMap::new();
    for (key, frames) in &flows {
        *seen.entry((key.protocol(), frames.len())).or_default() += 1;
        let lasts = frames[frames.len() - 1].at - frames[0].at;
        assert_eq!(lasts, if frames.len() == 1 { 0 } else { 2_000_000_000 });
    }
    for class in &plan.classes {
        let number = match class.protocol {
            "tcp" => 6,
            "udp" => 17,
            _ => 1,
        };
        assert_eq!(seen.get(&(number, class.packets as usize)).copied(), class.flows, "{class:?}");
    }
    let long = flows.values().flatten().filter(|frame| frame.bytes.len() == 1496).count();
    assert!(long.abs_diff(1900) < 100, "{long}");
    let https = flows.keys().filter(|key| key.protocol() != 1 && key.destination_port() == 443).count();
    assert!(https.abs_diff(950 * 3 / 4) < 10, "{https}");
}

#[test]
fn packets_of_flows_interleave() {
    let made = compiled(WEB);
    let program = &made.program;
    let mut executor = Executor::new(program).unwrap();
    let mut slab = Slab::new(1, program.longest() as usize);
    let (mut last, mut together) = (None, 0);
    while executor.render(&mut slab.buffers(), 1, || 0) == 1 {
        let bytes = slab.frame(0);
        let key = FlowKey::of(&Layers::parse(LinkType::ETHERNET, bytes), bytes).key();
        together += u32::from(key == last);
        last = key;
    }
    assert_eq!(together, 0);
}

#[test]
fn tcp_flows_begin_with_syn_end_with_fin_and_number_their_bytes() {
    let flows = flows(&compiled(WEB));
    let mut different = std::collections::HashSet::new();
    for (_, frames) in flows.iter().filter(|(key, _)| key.protocol() == 6) {
        let last = frames.len() - 1;
        let mut next = 0;
        for (j, frame) in frames.iter().enumerate() {
            let flags = match j {
                0 => 0x02,
                j if j == last => 0x11,
                _ => 0x18,
            };
            assert_eq!(frame.flags(), flags, "packet {j} of {}", frames.len());
            assert_eq!(frame.word(38), next, "packet {j} of {}", frames.len());
            next += frame.payload() + u32::from(j == 0);
        }
        different.insert(next);
    }
    assert!(different.len() > 3, "sizes of flows differ: {different:?}");
}

#[test]
fn a_rate_follows_from_concurrency() {
    let made = compiled(
        "flows: [{concurrency: 20k, count: 10, packets: 4, duration: {1s: 50%, 3s: 50%}, source: 10.0.0.0/8, destination: 10.0.0.1}]",
    );
    let plan = &made.flows[0];
    assert_eq!((plan.flows_per_second(), plan.concurrency()), (10_000.0, 20_000.0));
    assert!(!made.endless);
}

#[test]
fn two_profiles_and_streams_go_side_by_side() {
    let made = compiled(
        "rate: 1kpps
duration: 2s
streams: [{frame: ipv4/udp, size: 64}]
flows:
  - {rate: 100fps, source: 10.0.0.0/24, destination: 198.18.0.1}
  - {name: six, rate: 100 flows/s, protocol: [tcp, icmp], packets: 3, duration: 500ms, source: 2001:db8::/64, destination: 2001:db8:1::1}
",
    );
    assert_eq!(made.program.streams.len(), 1 + 1 + 2 * 3);
    assert_eq!(made.program.streams[7].name, "six icmp 3/3");
    assert_eq!((made.flows[0].flows, made.flows[1].flows), (Some(200), Some(150)));
    let run = Context { duration: Some(1_000_000_000), ..context() };
    let scenario = parse(WEB, "x").unwrap();
    let short = scenario.compile(&run).unwrap_err();
    assert!(short.message.contains("before the first flow of `web` can"), "{short}");
}

#[test]
fn flows_are_signed_where_there_is_room() {
    let sized = |size: u32, sign: Sign| {
        let text = WEB.replace("{64: 50%, 1500: 50%}", &size.to_string());
        parse(&text, "x").unwrap().compile(&Context { sign, ..context() })
    };
    let roomy = sized(80, Sign::WhereRoom).unwrap();
    assert!(roomy.unsigned.is_empty() && roomy.program.streams.iter().all(|s| s.signature.is_some()));
    let tight = sized(64, Sign::WhereRoom).unwrap();
    assert_eq!(tight.unsigned, ["web"]);
    assert!(sized(64, Sign::All).unwrap_err().message.contains("18 for the signature"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Whatever a profile says: each flow has a key of its own, its packets, its times.
    #[test]
    fn flows_are_what_the_plan_says(
        rate in 1u32..20_000,
        shares in (1u32..20, 1u32..20, 0u32..20),
        packets in (1u32..12, 12u32..24),
        durations in (1u32..3_000, 3_000u32..4_000),
        protocols in prop_oneof![Just("[tcp, udp, icmp]"), Just("{tcp: 70%, udp: 30%}"), Just("icmp")],
        bits in (0u8..12, 0u8..12),
        ports in 1u16..400,
        start in 0u32..50,
        flows in 1u64..300,
        seed: u64,
    ) {
        let (a, b, c) = shares;
        let text = format!(
            "flows:\n  - rate: {rate}fps\n    count: {flows}\n    start: {start}ms\n    packets: {{{}: {a}, {}: {b}, 30: {c}}}\n    \
             duration: {{{}us: 1, {}us: 2}}\n    protocol: {protocols}\n    source: 10.0.0.0/{}\n    destination: 198.18.0.0/{}\n    \
             source_port: 1000..{}\n",
            packets.0, packets.1, durations.0 * 40, durations.1 * 40, 32 - bits.0, 32 - bits.1, 1000 + ports - 1
        );
        let scenario = parse(&text, "x").unwrap();
        let made = match scenario.compile(&Context { seed, ..Context::default() }) {
            Ok(made) => made,
            // Too few keys, said at the place of the source.
            Err(error) => {
                prop_assert!(error.message.contains("shorter prefix") || error.message.contains("wider `source_port`"), "{}", error);
                return Ok(());
            }
        };
        let plan = &made.flows[0];
        let found = self::flows(&made);
        prop_assert_eq!(found.len() as u64, flows, "each flow has a key of its own");
        let mut kinds: HashMap<(u8, u32, u64), u64> = HashMap::new();
        let mut begins = Vec::new();
        for (key, frames) in &found {
            let count = frames.len() as u32;
            let (first, last) = (frames[0].at, frames[frames.len() - 1].at);
            let lasts = last - first;
            *kinds.entry((key.protocol(), count, lasts)).or_default() += 1;
            for (j, frame) in frames.iter().enumerate() {
                prop_assert_eq!(frame.at - first, (lasts * j as u64).checked_div(u64::from(count) - 1).unwrap_or(0));
            }
            begins.push(first);
        }
        begins.sort_unstable();
        let wanted: Vec<u64> =
            (0..flows).map(|i| u64::from(start) * 1_000_000 + i * 1_000_000_000 / u64::from(rate)).collect();
        prop_assert_eq!(begins, wanted);
        let mut planned: HashMap<(u8, u32, u64), u64> = HashMap::new();
        for class in plan.classes.iter().filter(|class| class.flows != Some(0)) {
            let number = match class.protocol { "tcp" => 6, "udp" => 17, _ => 1 };
            *planned.entry((number, class.packets, class.duration_ns)).or_default() += class.flows.unwrap();
        }
        prop_assert_eq!(kinds, planned);
    }
}
