//! The kernel's executor makes the same bytes as the Rust one: over generated programs, expressions and captures, by
//! BPF_PROG_TEST_RUN without the live flag, which needs no interface. Needs root.

use ::traffic;
use bpf::{Ran, Run};
use engine::clock::Clock;
use netdyno_xdp as xdp;

#[path = "../../traffic/tests/laws/generate.rs"]
#[allow(dead_code, reason = "programs of every kind are made there for the Rust executor's laws as well")]
mod generate;

use generate::{field, inner_sum, lengths, udp_template};
use proptest::prelude::*;
use std::sync::Arc;
use traffic::executor::{Slab, frame};
use traffic::expr::{Options as Shape, compile as expression};
use traffic::program::{Lane, Stream};
use traffic::templates::Templates;
use traffic::{Executor, Program, Schedule};
use wire::LinkType;
use wire::signature::{MAX_SEQUENCE, Signature};
use xdp::compile::{Compiled, Exit, Options, Pages, compile};
use xdp::layout;

const XDP_DROP: u32 = 1;
const XDP_TX: u32 = 3;

fn compiled(program: &Program, pages: Pages) -> Compiled {
    let options = Options {
        exit: Exit::Back,
        pages,
        pacing: engine::Pacing { catch_up: engine::CatchUp::Times(2.0), spin: false },
        stamps: Clock::Monotonic,
        together: true,
    };
    let compiled = compile(program, &options).unwrap_or_else(|error| panic!("{error}"));
    compiled.state.store(layout::LEFT as usize, u64::MAX);
    compiled.state.store(layout::DURATION as usize, u64::MAX);
    compiled.state.store(layout::START as usize, 1);
    compiled
}

/// A few pages that come back in turn, as those of a pool do.
struct Pool {
    pages: Vec<Vec<u8>>,
    next: usize,
}

impl Pool {
    fn of(compiled: &Compiled) -> Pool {
        Pool { pages: vec![compiled.frame.clone(); 3], next: 0 }
    }

    /// The next frame that the program sends; `None` if it sends none within a batch or two.
    fn frame(&mut self, compiled: &Compiled) -> Option<Vec<u8>> {
        for _ in 0..200 {
            let page = &mut self.pages[self.next % 3];
            let run = Run { give_back: true, ..Run::on(page) };
            let Ran { verdict, frame: out, .. } = compiled.program.run(run).expect("the kernel runs it");
            page[..out.len()].copy_from_slice(&out);
            match verdict {
                XDP_TX => {
                    self.next += 1;
                    return Some(out);
                }
                XDP_DROP => {}
                other => panic!("verdict {other}"),
            }
        }
        None
    }
}

/// The first `count` frames are those of the Rust executor.
fn assert_same(program: &Program, count: usize, pages: Pages) {
    let compiled = compiled(program, pages);
    let mut pool = Pool::of(&compiled);
    let mut executor = Executor::new(program).expect("a sound program");
    let mut slab = Slab::new(1, program.longest() as usize);
    for n in 0..count {
        let got = pool.frame(&compiled).unwrap_or_else(|| panic!("frame {n} of {count} did not leave"));
        let time = Signature::at_end_of(&got).map_or(0, |signature| signature.time);
        executor.render(&mut slab.buffers(), 1, || time);
        if got != slab.frame(0) {
            let at = got.iter().zip(slab.frame(0)).position(|(a, b)| a != b);
            panic!(
                "frame {n} differs at byte {at:?} (lengths {} and {})\nkernel {got:02x?}\nrust   {:02x?}\nprogram {program:#?}",
                got.len(),
                slab.frame(0).len(),
                slab.frame(0)
            );
        }
    }
}

/// Frames of the laws' template, all bytes changed by `salt` but those that make it UDP over IPv4.
fn udp_stream(longest: usize, salt: u8) -> Stream {
    let plain = udp_template(longest);
    let mut bytes: Vec<u8> = plain.iter().map(|byte| byte ^ salt).collect();
    for kept in [12..15, 20..24] {
        bytes[kept.clone()].copy_from_slice(&plain[kept]);
    }
    generate::udp_stream(&bytes)
}

fn stream() -> impl Strategy<Value = Stream> {
    prop_oneof![Just(60usize), 60usize..400]
        .prop_flat_map(|longest| {
            (
                (Just(longest), any::<bool>()),
                proptest::collection::vec(field(), 0..5),
                lengths(longest as u32),
                proptest::option::of(0u32..1000),
                prop_oneof![4 => Just(0u16), 1 => any::<u16>()],
                (0u64..100_000, prop_oneof![Just(1u64), 1u64..70]),
                proptest::option::of(inner_sum()),
            )
        })
        .prop_map(|((longest, salt), fields, lengths, signature, error, (first, step), inner)| {
            // Payloads that are equal in all streams are not written again; those that differ are.
            let plain = udp_stream(longest, if salt { 0x55 } else { 0 });
            let mut stream = Stream { lengths, signature, first, step, ..plain };
            stream.sums[1].error = error;
            stream.sums.splice(0..0, inner);
            for field in fields {
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]

    #[test]
    fn generated_programs(program in program(), touched in any::<bool>()) {
        assert_same(&program, 150, if touched { Pages::Touched } else { Pages::Kept });
    }
}

#[test]
fn expressions_of_every_kind() {
    let expressions = [
        "ipv4(src=10.0.0.0/16, dst=198.18.0.1)/udp(sport=1024..65535, dport=53)",
        "ether/vlan(id=1..100)/ipv4(dst=random(10.0.0.0/8))/tcp(sport=random(1..65535), flags=S)",
        "ipv4(src=[10.0.0.0/30, 192.0.2.7..192.0.2.1] every=3, dst=random([10.0.0.0/8, 172.16.0.0/12]))/tcp(dport=[1..3, 5, 9..7] step=2)",
        "ipv6(src=[2001:db8:1::/126, 2001:db8:2::1, 2001:db8:3::/112], dst=random([2001:db8:1::/66, 2001:db8:2::/66]))/udp",
        "ipv6(src=2001:db8::/112, dst=2001:db8::1)/udp(sport=1024..2000, dport=53)",
        "ipv4(src=10.1.0.0/24)/udp/gtpu(teid=1..1000)/ipv4(src=172.16.0.0/16, dst=8.8.8.8)/udp(sport=1..5000, dport=80)",
        "ipv6/srv6(segments=[2001:db8::1, 2001:db8::2])/ipv4(src=10.0.0.0/20)/udp(sport=1000..2000)",
        "ether/vlan(id=5)/ipv4/udp/vxlan(vni=1..50)/ether/ipv4(src=10.0.0.0/24)/tcp(sport=1..100)",
        "ether/mpls(label=16..1000)/ipv4(tos=0..255, ttl=[1,64,255])/icmp",
        "ipv4(src=10.0.0.0/16, checksum=0xdead)/udp(sport=1..9, checksum=0)",
        "ipv4/udp(sport=1..9)/raw(hex=\"00112233445566778899aabbccddee\", fields=[field(1, 16, random()), field(4.3, 40, 1..9), length(13, 3)])",
        "ether(type=0x8864)/raw(hex=\"11 00 0000 0000 0021\", fields=[field(2, 16, 1..1000), length(4, 6)])/ipv4/udp(sport=1..9)",
    ];
    let mut compiled = 0;
    for text in expressions {
        for size in [None, Some("128"), Some("256..700"), Some("imix"), Some("random(200..1518)")] {
            for signature in [None, Some(7)] {
                let size = size.map(|size| size.parse().expect("a size"));
                let shape = Shape { size, seed: 5, signature, name: String::new() };
                let Ok(program) = expression(text, &shape) else { continue };
                compiled += 1;
                for pages in [Pages::Kept, Pages::Touched] {
                    assert_same(&program, 70, pages);
                }
            }
        }
    }
    assert!(compiled >= 96, "only {compiled} of the combinations compiled");
}

#[test]
fn sctps_crc_is_corrected_for_the_bytes_that_vary() {
    let shape = |size: Option<&str>, signature| Shape {
        size: size.map(|size| size.parse().expect("a size")),
        seed: 5,
        signature,
        name: String::new(),
    };
    let varying = [
        "ipv4(src=10.0.0.0/16)/sctp(sport=1024..65535, dport=2905, tag=random())/sctpdata(tsn=0..9999)",
        "vlan(id=1..100)/ipv6/sctp(dport=[1, 2, 3] every=3)/sctpdata(flags=[E, B], sid=random())/raw(\"odd\")",
        "ipv4/udp/gtpu(teid=1..1000)/ipv4(src=172.16.0.0/16)/sctp(sport=1..5000, chksum=bad)/sctpdata",
    ];
    // Nothing under the CRC varies but what follows from the length, and the signature.
    let fixed = [
        "ipv4(src=10.0.0.0/16, ttl=1..9)/sctp(sport=7)/sctpdata(tsn=1)",
        "ipv4/udp/gtpu(teid=1..1000)/ipv6(src=2001:db8::/112)/sctp/raw(hex=\"0a 00\")",
    ];
    for text in varying.into_iter().chain(fixed) {
        for size in [
            None,
            Some("148"),
            Some("201"),
            Some("128..300"),
            Some("160,594,1518"),
            Some("random(150..1518)"),
        ] {
            for signature in [None, Some(7)] {
                let program = expression(text, &shape(size, signature)).expect("an expression");
                let lengths = program.only_length().is_none();
                if lengths && varying.contains(&text) {
                    let options = Options {
                        exit: Exit::Back,
                        pages: Pages::Kept,
                        pacing: engine::Pacing { catch_up: engine::CatchUp::Times(2.0), spin: false },
                        stamps: Clock::Monotonic,
                        together: true,
                    };
                    let refused = compile(&program, &options).expect_err("its checksum cannot be made there");
                    assert!(refused.to_string().contains("SCTP"), "{refused}");
                    continue;
                }
                for pages in [Pages::Kept, Pages::Touched] {
                    assert_same(&program, 70, pages);
                }
            }
        }
    }
    // Streams of several lengths and places take turns.
    let streams = [
        ("ipv4/sctp(sport=1..9)/sctpdata", Some("148")),
        ("ipv6/sctp(sport=1..9)/sctpdata", Some("201")),
        (fixed[0], Some("random(150..1518)")),
        ("ipv4/udp(sport=1..9)", Some("90")),
    ]
    .into_iter()
    .enumerate()
    .map(|(n, (text, size))| {
        expression(text, &shape(size, Some(n as u32))).expect("an expression").streams.remove(0)
    });
    let program = Program::interleaved(streams.collect(), [0, 1, 2, 3, 2, 0], Schedule::TopSpeed);
    for pages in [Pages::Kept, Pages::Touched] {
        assert_same(&program, 300, pages);
    }
}

/// Ethernet/IPv4 or IPv6/UDP, with a payload of `payload` bytes.
fn captured(v6: bool, hosts: [u8; 2], payload: usize, checksum: bool) -> Vec<u8> {
    let text = if v6 {
        format!("ipv6(src=2001:db8::{}, dst=2001:db8::{})/udp(sport=9, dport=8)", hosts[0], hosts[1])
    } else {
        format!("ipv4(src=10.0.0.{}, dst=10.0.0.{})/udp(sport=9, dport=8)", hosts[0], hosts[1])
    };
    let text = if checksum { text } else { text.replace("dport=8", "dport=8, checksum=0") };
    let text = format!("{text}/raw(\"{}\")", "x".repeat(payload));
    let program = expression(&text, &Shape { size: None, seed: 1, signature: None, name: String::new() });
    frame(&program.expect("an expression"), 0, 0).expect("a frame")
}

fn capture(frames: &[Vec<u8>], unique: bool, sign: bool) -> Program {
    let mut templates = Templates::new();
    for frame in frames {
        templates.push(LinkType::ETHERNET, frame).expect("short enough");
    }
    if sign {
        templates.number_signable();
    }
    let signature = sign.then_some(3);
    Program::single(Stream {
        templates,
        signature,
        unique_addresses: unique,
        ..Stream::of("capture", &[0; 60])
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn captures(
        frames in proptest::collection::vec((any::<bool>(), any::<[u8; 2]>(), 0usize..300, any::<bool>()), 1..30),
        junk in proptest::collection::vec(any::<u8>(), 14..100),
        unique in any::<bool>(),
        sign in any::<bool>(),
    ) {
        let mut frames: Vec<Vec<u8>> = frames
            .iter()
            .map(|&(v6, hosts, payload, checksum)| captured(v6, hosts, payload, checksum || v6))
            .collect();
        frames.push(junk);
        let count = 3 * frames.len() + 1;
        assert_same(&capture(&frames, unique, sign), count, Pages::Kept);
    }
}

#[test]
fn several_captures_are_each_sent_whole() {
    // The longest of each ends where no template may begin.
    let sides = [41, 38, 23].map(|payload| {
        let frames = [captured(false, [1, 2], payload, true), captured(true, [4, 3], payload / 2, true)];
        capture(&frames, true, true).streams.remove(0)
    });
    let program = Program::interleaved(sides.into(), [0, 1, 1, 2, 0], Schedule::TopSpeed);
    assert_same(&program, 40, Pages::Kept);
}

#[test]
fn passes_far_into_a_run_have_their_addresses() {
    let program = capture(&[captured(false, [1, 2], 40, true), captured(true, [4, 3], 40, true)], true, true);
    // The last one's sequence numbers come round after two frames.
    for pass in [1u64, 0xffff, 0xffff_fffe, 0xffff_ffff, 0x1_0000_0000, 0x7_ffff_ffff, (1 << 39) - 1] {
        let compiled = compiled(&program, Pages::Kept);
        compiled.state.store((layout::STREAMS + layout::stream::PASS) as usize, pass);
        compiled.state.store((layout::STREAMS + layout::stream::NUMBER) as usize, pass * 2);
        let mut pool = Pool::of(&compiled);
        for i in 0..4 {
            let got = pool.frame(&compiled).expect("a frame");
            let Signature { time, sequence, .. } = Signature::at_end_of(&got).expect("signed");
            assert_eq!(sequence, (pass * 2 + i) & MAX_SEQUENCE);
            assert_eq!(got, frame(&program, pass * 2 + i, time).unwrap(), "pass {pass} frame {i}");
        }
    }
}

/// How many frames one after the other carry the same time, of all that leave.
fn stamped_together(program: &Program, left: u64) -> Vec<usize> {
    let compiled = compiled(program, Pages::Kept);
    compiled.state.store(layout::LEFT as usize, left);
    let mut pool = Pool::of(&compiled);
    let times: Vec<u64> = std::iter::from_fn(|| pool.frame(&compiled))
        .filter_map(|frame| Signature::at_end_of(&frame).map(|signature| signature.time))
        .collect();
    assert!(times.is_sorted());
    times.chunk_by(|a, b| a == b).map(<[u64]>::len).collect()
}

#[test]
fn frames_that_leave_together_carry_one_time_and_others_their_own() {
    let shape =
        Shape { size: Some("64".parse().expect("a size")), seed: 1, signature: Some(7), name: String::new() };
    let program = expression("ipv4(src=10.0.0.0/8)/udp", &shape).expect("an expression");
    // Two batches: each begins with a bulk, whatever the last one left.
    assert_eq!(stamped_together(&program, 64 + 20), [16, 16, 16, 16, 16, 4]);
    assert_eq!(stamped_together(&program, 5), [5]);
    let captured =
        capture(&[captured(false, [1, 2], 40, true), captured(true, [4, 3], 40, true)], true, true);
    assert_eq!(stamped_together(&captured, 40), [16, 16, 8]);
    // Frames without a stamp stand in the bulk, too: each third is signed, and none shares its time with one of another bulk.
    let plain = Shape { signature: None, ..shape.clone() };
    let plain = expression("ipv4(src=10.0.0.0/8)/udp", &plain).expect("an expression").streams.remove(0);
    let mixed = Program::interleaved(
        vec![program.streams[0].clone(), plain.clone(), plain],
        [0, 1, 2],
        Schedule::TopSpeed,
    );
    assert_eq!(stamped_together(&mixed, 64 + 20), [6, 5, 5, 6, 5, 1]);
    // A rate at which all are overdue.
    let paced = program.with_schedule(Schedule::Frames { frames: 1, per_ns: 1 });
    assert_eq!(stamped_together(&paced, 40), [1; 40]);
}

fn numbered(name: &str, port: u16) -> Stream {
    let text = format!("ipv4(src=10.0.0.0/8)/udp(sport=1..60000, dport={port})");
    let shape =
        Shape { size: Some("64".parse().expect("a size")), seed: 1, signature: None, name: name.to_owned() };
    expression(&text, &shape).expect("an expression").streams.remove(0)
}

#[test]
fn times_whose_fractions_need_all_bits_are_kept() {
    let step = |end_ns, per_ns| traffic::schedule::Step { end_ns, frames: u64::MAX / 2 + 11, per_ns };
    let speed = traffic::schedule::Speed {
        numerator: 17_999_999_999_999_999_999,
        denominator: 9_999_999_999_999_999_999,
    };
    let lanes = [
        Schedule::Frames { frames: 17_999_999_999_999_999_999, per_ns: u64::MAX },
        Schedule::Steps { steps: Arc::new([step(150, u64::MAX / 3), step(100_000, u64::MAX - 4)]) },
        Schedule::Times { offsets: Arc::new([0, 1, 3]), period_ns: 5, speed },
    ];
    let program = Program {
        streams: (0..lanes.len()).map(|i| numbered("s", 1000 + i as u16)).collect(),
        lanes: lanes.into_iter().enumerate().map(|(i, schedule)| Lane::new([i as u32], schedule)).collect(),
    };
    assert_same(&program, 900, Pages::Kept);
}

#[test]
fn lanes_are_merged_by_their_due_times() {
    let step = |end_ns, frames| traffic::schedule::Step { end_ns, frames, per_ns: 1_000_000 };
    let lanes = [
        Schedule::Frames { frames: 7, per_ns: 10_000 },
        Schedule::Bits { bits_per_second: 333_333_333, overhead_bytes: 24 },
        Schedule::Bursts { frames: 5, gap_ns: 100, period_ns: 9_999 },
        Schedule::Steps { steps: Arc::new([step(30_000, 300), step(31_000, 1), step(90_000, 777)]) },
        Schedule::Times {
            offsets: Arc::new([0, 10, 10, 700, 701]),
            period_ns: 1_001,
            speed: traffic::schedule::Speed { numerator: 7, denominator: 3 },
        },
    ];
    let program = Program {
        streams: (0..lanes.len()).map(|i| numbered("s", 1000 + i as u16)).collect(),
        lanes: lanes
            .into_iter()
            .enumerate()
            .map(|(i, schedule)| Lane {
                start_ns: 1_000 * i as u64,
                frames: (i == 4).then_some(23),
                ..Lane::new([i as u32], schedule)
            })
            .collect(),
    };
    assert_same(&program, 600, Pages::Kept);
}

#[test]
fn as_many_lanes_as_there_may_be_pass_the_verifier() {
    let stream = |port: usize| {
        let text = format!("ipv4(src=10.0.0.0/16)/udp(sport={port})");
        let size = Some("imix".parse().expect("a size"));
        let shape = Shape { size, seed: 1, signature: Some(port as u32), name: port.to_string() };
        expression(&text, &shape).expect("an expression").streams.remove(0)
    };
    let rate = |n: u64| Schedule::Frames { frames: 1 + n, per_ns: 1_000_000 };
    let program = Program {
        streams: (1..=layout::MAX_LANES).map(stream).collect(),
        lanes: (0..layout::MAX_LANES as u32).map(|n| Lane::new([n], rate(n.into()))).collect(),
    };
    assert_same(&program, 300, Pages::Kept);
}
