//! The fast engines: the bytes they send, why they are not taken, and what faults do to them.

use crate::common::*;
use crate::judged::judged;
use serde_json::Value;

/// A cable whose receiving end takes XDP frames although no program of ours is there.
fn with_gro() -> Net {
    Net::with(&::lab::Options { gro: true, ..::lab::Options::default() })
}

const FLOWS: &str = "ipv4(src=10.0.0.0/16,dst=198.18.0.1)/udp(sport=1024..65535,dport=53)";

fn engine(report: &Value) -> &str {
    report["environment"]["engine"]["name"].as_str().expect("an engine")
}

fn why_not<'a>(report: &'a Value, engine: &str) -> &'a str {
    let others = report["environment"]["engine"]["not_taken"].as_array().expect("others");
    let other = others.iter().find(|other| other["name"] == engine);
    other.unwrap_or_else(|| panic!("{engine} is not among {others:?}"))["reason"].as_str().expect("a reason")
}

#[test]
fn all_engines_send_the_same_frames_of_an_expression() {
    let net = with_gro();
    let programs = [
        format!("{FLOWS} --size 64"),
        format!("{FLOWS} --size imix"),
        "ipv6(src=2001:db8::/112)/udp(sport=random(1..65535)) --size 80..300".to_owned(),
        "ipv4/udp/gtpu(teid=1..99)/ipv4(src=10.0.0.0/20)/udp(sport=1..999) --size random(128..1400)"
            .to_owned(),
        "ipv4(src=10.0.0.0/24)/sctp(sport=random(1..65535),tag=1..999)/sctpdata(tsn=0..99999) --size 150"
            .to_owned(),
    ];
    for (n, program) in programs.iter().enumerate() {
        let file = net.file(&format!("{n}.pcap"));
        run(format!("netdyno craft {program} --seed 4 --count 3001 -w {file}")).ok();
        let wanted = frames(&file);
        // The others take the same bytes: each of them some.
        let others = [&["afxdp", "packet", "packet-ring"][..], &["packet"], &["afxdp"], &["packet-ring"]];
        for engine in ["xdp"].iter().chain(others[n % others.len()]) {
            // Not faster than the kernel hands frames on to tcpdump.
            let got = net.received(wanted.len(), || {
                let send = format!("netdyno send {program} --seed 4 --on tx0 --rate 40kpps --count 3001");
                net.run(format!("{send} --engine {engine} --json")).result();
            });
            assert_same_frames(&got, &wanted);
        }
    }
}

#[test]
fn all_engines_send_the_same_frames_of_a_capture() {
    let net = with_gro();
    let (file, written) = (net.file("x.pcap"), net.file("written.pcap"));
    run(format!("netdyno craft {FLOWS} --size 64..700 --rate 40kpps --count 700 -w {file}")).ok();
    run(format!("netdyno replay {file} --loop 3 --unique-ip -w {written}")).ok();
    let wanted = frames(&written);
    for engine in ["xdp", "afxdp", "packet"] {
        for pace in ["", "--rate 30kpps", "--rate 90mbps"] {
            let got = net.received(wanted.len(), || {
                let replay = format!("netdyno replay {file} --loop 3 --unique-ip --on tx0 {pace}");
                net.run(format!("{replay} --engine {engine} --json")).result();
            });
            assert_same_frames(&got, &wanted);
        }
    }
}

#[test]
fn live_frames_are_all_accounted_for_at_top_speed() {
    let net = Net::new();
    for program in [format!("{FLOWS} --size 64"), format!("{FLOWS} --size imix")] {
        let send = format!("netdyno send {program} --on tx0 --measure rx0 --topspeed --count 1000000 --json");
        let report = net.run(format!("{send} --engine xdp")).result();
        let result = &report["result"];
        assert_eq!(engine(&report), "xdp");
        assert_eq!(number(&result["tx"]["frames"]), 1_000_000);
        assert_eq!(number(&result["rx"]["frames"]), 1_000_000);
        assert_eq!(number(&result["tx"]["bytes"]), number(&result["rx"]["bytes"]));
        assert_eq!(number(&result["rx"]["reordered_frames"]), 0);
        assert_eq!(number(&result["tx"]["interface_counters"][0]["tx_packets"]), 1_000_000);
    }
}

#[test]
fn live_frames_keep_their_times() {
    alone();
    let net = Net::new();
    let send =
        format!("netdyno send {FLOWS} --size 64 --on tx0 --measure rx0 --rate 200kpps --count 60000 --json");
    let quiet = |report: &Value| late_share(report) < 0.005 && longest_stall(report) == 0;
    let report = in_time(quiet, || net.run(format!("{send} --engine xdp")).result());
    let result = &report["result"];
    let pacing = &result["pacing"];
    assert_eq!(number(&result["rx"]["frames"]), 60_000);
    assert_eq!(pacing["measured_at"], "receiver");
    assert!(number(&result["tx"]["duration_ns"]) >= 300_000_000, "{result}");
    // Of what left in time (bench pacing has how near that is).
    if judged(late_share(&report) < 0.005) {
        let [p50, p99] = ["p50", "p99"].map(|name| number(&pacing["gap_error_ns"][name]));
        assert!(p50 < 2_000 && p99 < 100_000, "{pacing}");
        assert!(pacing["back_to_back_ratio"].as_f64().expect("a share") < 0.1, "{pacing}");
    }
    if judged(longest_stall(&report) == 0) {
        assert!(pacing["last_frame_late_ns"].as_i64().expect("a time") < 200_000, "{pacing}");
    }
}

#[test]
fn auto_takes_the_fastest_that_works_and_says_why_not_the_others() {
    let net = Net::new();
    let send = format!("netdyno send {FLOWS} --size 64 --on tx0 --count 2000 --json");
    // The meter's program at the peer is what makes live frames possible.
    let report = net.run(format!("{send} --topspeed --measure rx0")).result();
    assert_eq!(engine(&report), "xdp");
    let report = net.run(format!("{send} --topspeed")).result();
    assert_eq!(engine(&report), "afxdp");
    assert!(why_not(&report, "xdp").contains("its peer"), "{}", why_not(&report, "xdp"));
    let report =
        net.run(format!("{send} --rate 500pps --count 50 --measure rx0").replacen("--count 2000 ", "", 1));
    assert!(why_not(&report.result(), "xdp").contains("busy"));
}

/// A pcap's header and that of a record of 9 bytes.
const RUNT_FILE: [u8; 40] = [
    0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0, // file
    0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 9, 0, 0, 0, // record
];

#[test]
fn a_peer_that_takes_no_live_frames_is_named_with_what_mends_it() {
    if !several_cpus() {
        return;
    }
    let net = Net::new();
    let send = format!("netdyno send {FLOWS} --on tx0 --topspeed --count 10 --engine xdp");
    net.run(&send).refused(&["tx0 takes no XDP frames", "ethtool -K PEER gro on"]);
    net.run("ip link add br0 up type bridge").ok();
    net.run(send.replace("tx0", "br0")).refused(&["br0 takes no XDP frames", "--engine packet"]);
    net.run(format!("{send} --cores 2")).refused(&["transmit queues of tx0, which are 1", "--queues 2"]);
    let stream = net.file("s.pcap");
    run(format!("netdyno craft {FLOWS} --count 10 -w {stream}")).ok();
    net.run(format!("netdyno replay {stream} --stream --on tx0 --engine xdp --topspeed"))
        .refused(&["streamed", "--preload"]);
    let net = with_gro();
    let runt = net.file("runt.pcap");
    let short = [&RUNT_FILE[..], &[0; 9]].concat();
    std::fs::write(&runt, short).expect("a file");
    net.run(format!("netdyno replay {runt} --on tx0 --engine xdp --topspeed"))
        .refused(&["at least 14 bytes"]);
    net.run("ip link set tx0 mtu 9000").ok();
    net.run_there("ip link set rx0 mtu 9000").ok();
    net.run(format!("{send} --size 9000")).refused(&["live frames hold at most"]);
}

#[test]
fn a_program_too_large_for_the_verifier_goes_through_another_engine() {
    let net = with_gro();
    let file = net.file("many.yaml");
    let mut text = "rate: 1mpps\nstreams:\n".to_owned();
    for n in 0..700 {
        text +=
            &format!("  - name: s{n}\n    frame: ipv4(src=10.{}.0.0/16)/udp(sport={})\n", n % 200, 1000 + n);
    }
    std::fs::write(&file, text).expect("a file");
    let send = format!("netdyno send {file} --on tx0 --count 1400 --json");
    let report = net.run(&send).result();
    assert_ne!(engine(&report), "xdp");
    assert!(why_not(&report, "xdp").contains("too large"), "{}", why_not(&report, "xdp"));
    net.run(format!("{send} --engine xdp").replace(" --json", "")).refused(&["too large"]);
}

#[test]
fn sctp_that_the_kernel_cannot_sum_goes_through_another_engine() {
    let net = with_gro();
    let send = "netdyno send ipv4(src=10.0.0.0/24)/sctp(sport=1..99)/sctpdata --on tx0 --topspeed --count 500 --json";
    assert_eq!(engine(&net.run(format!("{send} --size 150")).result()), "xdp");
    let report = net.run(format!("{send} --size 90,150")).result();
    assert_ne!(engine(&report), "xdp");
    assert!(why_not(&report, "xdp").contains("SCTP checksum"), "{}", why_not(&report, "xdp"));
    net.run(format!("{send} --size 90,150 --engine xdp").replace(" --json", "")).refused(&["SCTP checksum"]);
}

#[test]
fn a_program_that_is_there_already_is_left_alone() {
    let net = Net::new();
    // A meter that lets everything pass, at both ends.
    let mut here = net.start("netdyno measure --on tx0");
    let mut there = net.start_there("netdyno measure --on rx0");
    for running in [&mut here, &mut there] {
        running.until_it_says("measuring on");
    }
    let program = |link: &Value| number(&link[0]["xdp"]["prog"]["id"]);
    let before = program(&net.run("ip -j link show tx0").ok().json());
    net.run(format!("netdyno send {FLOWS} --on tx0 --topspeed --count 1000 --engine xdp --json")).result();
    assert_eq!(program(&net.run("ip -j link show tx0").ok().json()), before);
    for running in [here, there] {
        running.signal("INT");
        running.wait();
    }
}

#[test]
fn an_interface_that_goes_down_during_a_run_ends_it_with_a_result() {
    for engine in ["xdp", "afxdp"] {
        let net = Net::new();
        let send =
            format!("netdyno send {FLOWS} --size 64 --on tx0 --measure rx0 --rate 50kpps --duration 30s");
        let running = net.start(format!("{send} --engine {engine} --json"));
        net.until_frames_leave();
        net.run("ip link set tx0 down").ok();
        let ran = running.wait().with(1);
        assert!(reasons(&ran.json()).iter().any(|reason| reason.contains("tx0 went down")), "{}", ran.stdout);
        net.run("ip link set tx0 up").ok();
        // And it works again.
        net.run(format!(
            "netdyno send {FLOWS} --on tx0 --measure rx0 --topspeed --count 100 --engine {engine} --json"
        ))
        .result();
    }
}

#[test]
fn a_signal_ends_live_frames_in_an_orderly_way() {
    for pace in ["--topspeed", "--rate 20kpps"] {
        let net = Net::new();
        let running =
            net.start(format!("netdyno send {FLOWS} --on tx0 --measure rx0 {pace} --engine xdp --json"));
        net.until_frames_leave();
        running.signal("INT");
        let result = &running.wait().result()["result"];
        assert_eq!(number(&result["tx"]["frames"]), number(&result["rx"]["frames"]));
        assert!(number(&result["tx"]["frames"]) > 0);
    }
}

#[test]
fn live_frames_on_every_core_end_in_time_also_at_a_real_time_priority() {
    if !several_cpus() {
        return;
    }
    alone();
    let net = Net::with(&::lab::Options { queues: 2, ..::lab::Options::default() });
    let send = format!("netdyno send {FLOWS} --size 64 --on tx0 --measure rx0 --duration 500ms --json");
    for pace in ["--topspeed", "--rate 100kpps"] {
        let report = net.run(format!("chrt --fifo 10 {send} {pace} --engine xdp --cores 2")).json();
        let result = &report["result"];
        assert_eq!(number(&result["tx"]["frames"]), number(&result["rx"]["frames"]));
        // Half a second, and not for ever.
        assert!(number(&result["tx"]["duration_ns"]) < 60_000_000_000, "{result}");
    }
}

#[test]
fn a_reflector_cannot_change_what_live_frames_send() {
    let net = Net::new();
    let mut reflector = net.start_there("netdyno reflect --on rx0");
    reflector.until_it_says("reflecting on rx0");
    // Pages come back with addresses swapped: the second use of each must not show it.
    let send = format!("netdyno send {FLOWS} --size 100 --on tx0 --round-trip --rate 200kpps --count 40000");
    let report = net.run(format!("{send} --engine xdp --json")).result();
    assert_eq!(number(&report["result"]["loss"]["frames"]), 0);
    assert_eq!(number(&report["result"]["rx"]["frames"]), 40_000);
    reflector.signal("INT");
    let ran = reflector.wait();
    assert!(ran.stdout.contains("40,000"), "{}", ran.stdout);
}

/// A program that does `moves` to each IPv4 frame and returns `verdict` (linux/bpf.h). As an object file.
fn mover(net: &Net, name: &str, moves: &str, verdict: u32) -> String {
    let (source, object) = (net.file(&format!("{name}.c")), net.file(&format!("{name}.o")));
    let program = format!(
        r#"
struct xdp_md {{ unsigned data, data_end, data_meta, ingress_ifindex, rx_queue_index, egress_ifindex; }};
static long (*adjust_head)(struct xdp_md *, int) = (void *)44;
static long (*adjust_meta)(struct xdp_md *, int) = (void *)54;
static long (*adjust_tail)(struct xdp_md *, int) = (void *)65;
__attribute__((section("xdp"), used)) int moves(struct xdp_md *ctx) {{
    unsigned char *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
    if (data + 14 > end || data[12] != 8 || data[13] != 0) return 2;
    {moves};
    return {verdict};
}}
char gpl[] __attribute__((section("license"), used)) = "GPL";
"#
    );
    std::fs::write(&source, program).expect("the source");
    run(format!("clang -O2 -target bpf -c {source} -o {object}")).ok();
    object
}

/// A page that keeps what a far end left there makes the next frame another one. Held to the bytes that the kernel counts at the
/// far end.
#[test]
fn a_far_end_that_moves_a_frames_ends_cannot_change_what_live_frames_send() {
    let net = Net::new();
    // What comes back is dropped at once, so that pages are used again as they are.
    let dropper = mover(&net, "dropper", "", 1);
    net.run(format!("ip link set dev tx0 xdp obj {dropper} sec xdp")).ok();
    let received = || {
        let link = net.run_there("ip -s -j link show rx0").ok().json();
        ["packets", "bytes"].map(|what| number(&link[0]["stats64"]["rx"][what]))
    };
    for (name, moves) in [
        ("shorter", "adjust_tail(ctx, -10)"),
        ("longer", "adjust_tail(ctx, 4)"),
        ("decapsulated", "adjust_head(ctx, 14)"),
        ("encapsulated", "adjust_head(ctx, -20)"),
        ("described", "adjust_meta(ctx, -8)"),
        ("everything", "adjust_head(ctx, -20); adjust_tail(ctx, -40)"),
    ] {
        net.run_there("ip link set dev rx0 xdp off").ok();
        let object = mover(&net, name, moves, 3);
        net.run_there(format!("ip link set dev rx0 xdp obj {object} sec xdp")).ok();
        for size in ["100", "64,100,300"] {
            let before = received();
            let send = format!(
                "netdyno send ipv4(dst=10.9.0.1)/udp --size {size} --on tx0 --rate 200kpps --count 30000"
            );
            let ran = net.run(format!("{send} --engine xdp --json")).result();
            let (after, tx) = (received(), &ran["result"]["tx"]);
            let came = [after[0] - before[0], after[1] - before[1]];
            let meant = if size == "100" { 30_000 * 96 } else { 10_000 * (60 + 96 + 296) };
            assert_eq!(number(&tx["bytes"]), meant, "{name}");
            assert!(came[0] >= 30_000, "{name}: {came:?}");
            // The kernel's own frames (ARP, IPv6) may come between; they are no more than a few.
            let others = (came[0] - 30_000) * 1_600;
            assert!((meant..=meant + others).contains(&came[1]), "{name} {size}: {came:?}, meant {meant}");
        }
    }
}

/// A veth has room for a queue for each CPU and uses one, unless it is told otherwise.
#[test]
fn a_core_takes_an_af_xdp_queue_that_is_there() {
    if !several_cpus() {
        return;
    }
    let net = Net::new();
    net.run("ip link add near up type veth peer name far").ok();
    net.run("ip link set far up").ok();
    let send = "netdyno send ipv4/udp --on near --engine afxdp --rate 2kpps --count 100 --json";
    let report = net.run(format!("{send} --core 1")).result();
    assert_eq!(engine(&report), "afxdp");
    net.run(format!("{send} --cores 2")).refused(&[
        "2 cores need 2 transmit queues",
        "near has 1",
        "--cores 1",
    ]);
}

#[test]
fn a_calibration_says_which_engine_is_the_fastest_and_auto_takes_it_when_told() {
    let net = Net::new();
    let (file, other) = (net.file("calibration.json"), net.file("other.json"));
    let calibrate = "netdyno doctor tx0 --calibrate --measure rx0 --duration 200ms";
    let text = net.run(format!("{calibrate} --save {file}")).ok().stdout;
    let measured: Value =
        serde_json::from_str(&std::fs::read_to_string(&file).expect("saved")).expect("JSON");
    let ways = measured["ways"].as_array().expect("ways");
    assert_eq!((ways.len(), &measured["driver"]), (4, &Value::from("veth")));
    // Which that is depends on what else this machine does.
    let [fastest, engine_of_it] =
        ["name", "engine"].map(|of| ways[0][of].as_str().unwrap_or_else(|| panic!("no {of}: {measured}")));
    assert!(text.contains(&format!("The fastest here: {fastest} (--engine {engine_of_it})")), "{text}");
    judged(fastest == "xdp");
    let zero_copy = ways.iter().find(|way| way["name"] == "afxdp zero-copy").expect("tried");
    assert!(zero_copy["why_not"].as_str().expect("refused").contains("veth has no zero-copy"));
    // Whatever the file has first is taken; another driver's or kernel's is refused.
    let mut turned = measured.clone();
    turned["ways"].as_array_mut().expect("ways").retain(|way| way["name"] == "packet");
    std::fs::write(&file, turned.to_string()).expect("written");
    let send = "netdyno send ipv4/udp --on tx0 --measure rx0 --rate 5kpps --count 100 --json --calibration";
    let report = net.run(format!("{send} {file}")).result();
    assert_eq!(engine(&report), "packet");
    turned["driver"] = "igb".into();
    std::fs::write(&other, turned.to_string()).expect("written");
    net.run(format!("{send} {other}")).refused(&["driver igb", "veth", "calibrate again"]);
    net.run(format!("{send} {file} --engine xdp")).refused(&["--calibration", "--engine xdp"]);
}

#[test]
fn a_calibration_loads_no_interface_that_the_user_depends_on() {
    let net = Net::new();
    net.run("ip route add default dev tx0").ok();
    net.run("netdyno doctor tx0 --calibrate").refused(&["default route", "--yes-disrupt tx0"]);
}
