//! Several sending cores: together they send what one would, at the rate that was asked for. These tests need two CPUs.

use crate::common::*;
use crate::judged::judged;
use serde_json::Value;

fn two_queues() -> Net {
    Net::with(&::lab::Options { queues: 2, ..::lab::Options::default() })
}

/// In an order of their own, to compare what several cores sent in any order.
fn sorted(mut frames: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    frames.sort();
    frames
}

fn counted(value: &Value, keys: &[&str]) -> Vec<u64> {
    keys.iter().map(|key| number(&value[key])).collect()
}

fn rows(report: &Value) -> &Vec<Value> {
    report["result"]["tx"]["cores"].as_array().expect("rows for the cores")
}

/// All was sent, received, and counted by core.
#[track_caller]
fn assert_all_by(report: &Value, cores: usize, frames: u64) {
    let result = &report["result"];
    assert_eq!(counted(&result["tx"], &["frames", "failed"]), [frames, 0], "{result}");
    assert_eq!(counted(&result["rx"], &["frames"]), [frames], "{result}");
    assert_eq!(number(&result["loss"]["frames"]), 0);
    assert_eq!(rows(report).len(), cores);
    for key in ["frames", "bytes"] {
        let sum: u64 = rows(report).iter().map(|row| number(&row[key])).sum();
        assert_eq!(sum, number(&result["tx"][key]), "{key}: {result}");
    }
    let counters = &result["tx"]["interface_counters"][0];
    assert_eq!(counted(counters, &["sent_frames", "tx_packets"]), [frames; 2]);
    for key in ["tx_frames", "rx_frames"] {
        let intervals = report["intervals"].as_array().expect("intervals");
        assert_eq!(intervals.iter().map(|i| number(&i[key])).sum::<u64>(), frames, "{key}");
    }
}

#[test]
fn two_cores_send_every_frame_of_an_expression_exactly_once() {
    if !several_cpus() {
        return;
    }
    // With GRO a veth end takes live frames, and tcpdump sees them.
    let net = Net::with(&::lab::Options { queues: 2, gro: true, ..::lab::Options::default() });
    let program = "ipv4(src=10.0.0.0/20,dst=random(198.18.0.0/16))/udp(sport=1024..65535,dport=53) --seed 9";
    for size in ["imix", "random(64..900)"] {
        let file = net.file("wanted.pcap");
        run(format!("netdyno craft {program} --size {size} --count 5001 -w {file}")).ok();
        let wanted = frames(&file);
        for engine in ["xdp", "afxdp", "packet"] {
            // Where sizes are drawn, a rate in bits depends on them.
            let paces = if size == "imix" {
                &["--topspeed", "--rate 50kpps"]
            } else {
                &["--topspeed", "--rate 100mbps"]
            };
            for pace in paces {
                let got = net.received(wanted.len(), || {
                    let send = format!("netdyno send {program} --size {size} --on tx0 {pace} --count 5001");
                    net.run(format!("{send} --cores 2 --engine {engine} --json")).result();
                });
                assert_same_frames(&sorted(got), &sorted(wanted.clone()));
            }
        }
    }
}

#[test]
fn two_cores_replay_every_frame_of_a_capture_exactly_once_and_keep_flows_in_order() {
    if !several_cpus() {
        return;
    }
    let net = two_queues();
    let (file, written) = (net.file("x.pcap"), net.file("written.pcap"));
    run(format!(
        "netdyno craft ipv4(src=10.0.0.0/26,id=0..65535)/udp(sport=5000..5006) --size 64..400 --rate 40kpps --count 3000 -w {file}"
    ))
    .ok();
    run(format!("netdyno replay {file} --loop 2 --unique-ip -w {written}")).ok();
    let wanted = frames(&written);
    for pace in ["--topspeed", "--rate 40kpps", ""] {
        let got = net.received(wanted.len(), || {
            let replay = format!("netdyno replay {file} --on tx0 {pace} --loop 2 --unique-ip");
            net.run(format!("{replay} --cores 2 --json")).result();
        });
        // Addresses and ports: a flow.
        let flow = |frame: &Vec<u8>| frame[26..38].to_vec();
        let by_flow = |frames: &[Vec<u8>]| {
            let mut frames = frames.to_vec();
            frames.sort_by_key(flow);
            frames
        };
        assert_same_frames(&by_flow(&got), &by_flow(&wanted));
    }
}

#[test]
fn the_sum_meets_the_rate_and_the_result_is_told_as_of_one() {
    if !several_cpus() {
        return;
    }
    let net = two_queues();
    let send =
        "netdyno send ipv4(src=10.0.0.0/20)/udp --size 64..200 --on tx0 --measure rx0 --json --cores 2";
    for rate in ["20kpps", "15mbps", "20mbps-l1"] {
        let report = net.run(format!("{send} --rate {rate} --count 9001")).result();
        assert_all_by(&report, 2, 9001);
        let shares: Vec<u64> = rows(&report).iter().map(|row| number(&row["frames"])).collect();
        assert_eq!(shares, [4501, 4500], "{rate}");
        let tx = &report["result"]["tx"];
        assert_eq!(number(&tx["intended_frames"]), 9001, "{rate}");
        // The streams are those of the user: one, with nothing lost and nothing out of order.
        let streams = report["streams"].as_array().expect("streams");
        assert_eq!(streams.len(), 1, "{streams:?}");
        let keys =
            ["stream", "tx_frames", "rx_frames", "lost_frames", "duplicated_frames", "reordered_frames"];
        assert_eq!(counted(&streams[0], &keys), [0, 9001, 9001, 0, 0, 0]);
        assert!(streams[0]["latency_ns"]["p50"].is_u64());
        assert!(report["result"]["pacing"]["gap_error_ns"]["p50"].is_u64(), "{rate}: {}", report["result"]);
        assert_eq!(report["result"]["pacing"]["measured_at"], "receiver");
    }
}

#[test]
fn a_rate_is_kept_by_two_cores_over_a_duration() {
    if !several_cpus() {
        return;
    }
    let net = two_queues();
    let send = "netdyno send ipv4/udp --on tx0 --measure rx0 --rate 4kpps --cores 2 --json --engine packet";
    let frames = |report: &Value| rows(report).iter().map(|row| number(&row["frames"])).collect::<Vec<_>>();
    // Never faster than asked, and evenly.
    let report = net.run(format!("{send} --count 4000")).result();
    assert_all_by(&report, 2, 4_000);
    assert_eq!(frames(&report), [2_000; 2]);
    assert!(number(&report["result"]["tx"]["duration_ns"]) >= 1_000_000_000, "{report}");
    // And no slower, unless it says so.
    let whole = |report: &Value| {
        reasons(report).is_empty() && number(&report["result"]["tx"]["duration_ns"]) == 1_000_000_000
    };
    let report = in_time(whole, || net.run(format!("{send} --duration 1s")).result());
    let tx = &report["result"]["tx"];
    assert_eq!(tx["intended_frames_per_second"], 4_000.0);
    assert_eq!(number(&tx["intended_frames"]), 4_000);
    assert_eq!(tx["frames"], report["result"]["rx"]["frames"]);
    if judged(whole(&report)) {
        assert_all_by(&report, 2, 4_000);
        assert_eq!(frames(&report), [2_000; 2]);
    } else {
        assert!(was_held_up(&report), "{report}");
    }
}

#[test]
fn a_list_is_taken_as_it_stands_and_core_is_the_form_for_one() {
    if !several_cpus() {
        return;
    }
    let net = two_queues();
    let send = "netdyno send ipv4/udp --on tx0 --measure rx0 --topspeed --count 2000 --json";
    for (cores, wanted) in
        [("--cores 0,1", &[0, 1][..]), ("--cores 1,0", &[1, 0]), ("--core 0", &[0]), ("--cores 1-1", &[1])]
    {
        let report = net.run(format!("{send} {cores}")).ok().json();
        assert_all_by(&report, wanted.len(), 2000);
        let used: Vec<u64> = rows(&report).iter().map(|row| number(&row["core"])).collect();
        assert_eq!(used, wanted, "{cores}");
    }
    let text = net.run(format!("{} --cores 2", send.replace("--json", "--verbose"))).ok().stdout;
    assert!(text.contains("\ncore  frames") && text.contains("\nengine    "), "{text}");
}

#[test]
fn every_engine_works_on_several_cores() {
    if !several_cpus() {
        return;
    }
    let net = two_queues();
    for engine in ["xdp", "afxdp", "packet", "packet-ring"] {
        let send = "netdyno send ipv4/udp --on tx0 --measure rx0 --topspeed --count 30001 --json --cores 2";
        let report = net.run(format!("{send} --engine {engine}")).ok().json();
        assert_all_by(&report, 2, 30_001);
        assert_eq!(report["environment"]["engine"]["name"], engine);
    }
    let report = net
        .run("netdyno send ipv4/udp(sport=random()) --engine null --topspeed --count 100001 --cores 2 --json")
        .ok()
        .json();
    assert_eq!(number(&report["result"]["tx"]["frames"]), 100_001);
    assert_eq!(rows(&report).iter().map(|row| number(&row["frames"])).collect::<Vec<_>>(), [50_001, 50_000]);
}

#[test]
fn streams_with_rates_of_their_own_and_with_weights_are_shared_out_too() {
    if !several_cpus() {
        return;
    }
    let net = two_queues();
    let file = net.file("four.yaml");
    let scenario = [
        "duration: 500ms",
        "rate: 1kpps",
        "defaults: {size: 100}",
        "streams:",
        "  - {name: slow, rate: 1kpps, frame: ipv4/udp(dport=1)}",
        "  - {name: fast, rate: 2kpps, frame: ipv4/udp(dport=2)}",
        "  - {name: heavy, weight: 3, frame: ipv4/udp(dport=3)}",
        "  - {name: light, weight: 1, frame: ipv4/udp(dport=4)}",
    ];
    std::fs::write(&file, scenario.join("\n")).expect("a scenario");
    let send = format!("netdyno send {file} --on tx0 --measure rx0 --engine packet --json --cores 2");
    let report = in_time(|report| longest_stall(report) < 10_000_000, || net.run(&send).result());
    let keys = ["stream", "tx_frames", "rx_frames", "lost_frames", "reordered_frames"];
    let streams = report["streams"].as_array().expect("streams");
    let told: Vec<_> = streams.iter().map(|stream| counted(stream, &keys)).collect();
    let wanted = [[0, 500, 500, 0, 0], [1, 1000, 1000, 0, 0], [2, 375, 375, 0, 0], [3, 125, 125, 0, 0]];
    assert_eq!(streams[1]["name"], "fast");
    if judged(longest_stall(&report) < 10_000_000) {
        assert_all_by(&report, 2, 2000);
        assert_eq!(told, wanted);
    }
    // What a sender that was held up leaves out at the end is missing from all of them.
    for (told, wanted) in told.iter().zip(wanted) {
        assert!(told[1] <= wanted[1] && told[1] == told[2] && told[3..] == [0, 0], "{told:?}");
    }
}

#[test]
fn loss_is_told_of_the_streams_that_the_user_wrote() {
    if !several_cpus() {
        return;
    }
    // Each fourth frame is too long for the way, whichever core it leaves from.
    let net = crate::replay::with_a_bottleneck();
    let receiver = handle(&net.lab.receiver.namespace);
    let send =
        "netdyno send ether(dst=02:00:00:00:00:99,type=0x88b5)/raw --sign --size 64,64,64,1000 --on tx0";
    let report = net
        .run(format!("{send} --topspeed --count 4000 --cores 2 --measure in0@{receiver} --json"))
        .with(1)
        .json();
    assert_eq!(report["result"]["loss"], serde_json::json!({"frames": 1000, "ratio": 0.25}));
    let keys = ["stream", "tx_frames", "rx_frames", "lost_frames", "duplicated_frames"];
    assert_eq!(report["streams"].as_array().map(Vec::len), Some(1));
    assert_eq!(counted(&report["streams"][0], &keys), [0, 4000, 3000, 1000, 0]);
}

#[test]
fn a_core_without_frames_is_said_to_have_none() {
    if !several_cpus() {
        return;
    }
    let net = two_queues();
    let file = net.file("one-flow.pcap");
    run(format!("netdyno craft ipv4/udp --count 300 -w {file}")).ok();
    let report = net
        .run(format!("netdyno replay {file} --on tx0 --topspeed --measure rx0 --cores 0,1 --json"))
        .ok()
        .json();
    assert_all_by(&report, 2, 300);
    let mut shares: Vec<u64> = rows(&report).iter().map(|row| number(&row["frames"])).collect();
    shares.sort_unstable();
    assert_eq!(shares, [0, 300], "a flow stays whole");
    assert!(report["warnings"].to_string().contains("has nothing to send"), "{}", report["warnings"]);
}

#[test]
fn a_worker_that_fails_ends_the_others_and_is_named() {
    if !several_cpus() {
        return;
    }
    for pace in ["--rate 1kpps", "--topspeed"] {
        let net = two_queues();
        let send = format!("netdyno send ipv4/udp --on tx0 {pace} --duration 60s --cores 2 --json");
        let sender = net.start(send);
        net.until_frames_leave();
        net.run("ip link set tx0 down").ok();
        let report = sender.wait().with(1).json();
        let reason = &reasons(&report)[0];
        let named = [
            "the worker on core 0 ended all: tx0 went down",
            "the worker on core 1 ended all: tx0 went down",
        ];
        assert!(named.iter().any(|words| reason.starts_with(words)), "{pace}: {reason}");
        let sent: u64 = rows(&report).iter().map(|row| number(&row["frames"])).sum();
        assert_eq!(sent, number(&report["result"]["tx"]["frames"]));
    }
}

#[test]
fn an_interrupt_ends_all_cores_with_their_result() {
    if !several_cpus() {
        return;
    }
    let net = two_queues();
    let sender = net.start("netdyno send ipv4/udp --on tx0 --measure rx0 --rate 5kpps --cores 2 --json");
    net.until_frames_leave();
    sender.signal("INT");
    let report = sender.wait().result();
    assert_all_by(&report, 2, number(&report["result"]["rx"]["frames"]));
    assert!(rows(&report).iter().all(|row| number(&row["frames"]) > 0), "{}", report["result"]);
}

#[test]
fn cores_that_cannot_be_are_refused_with_the_mend() {
    if !several_cpus() {
        return;
    }
    let net = two_queues();
    let send = "netdyno send ipv4/udp --on tx0 --topspeed --count 10";
    let none = "this process may run on";
    net.run(format!("{send} --cores 1000")).refused(&["--cores 1000", none]);
    net.run(format!("{send} --cores 0,1000")).refused(&["--cores 0,1000", "CPU 1000 cannot send", none]);
    net.run(format!("taskset -c 0 {send} --cores 2")).refused(&["--cores 2: 2 cores", "1 CPU only (CPUs 0)"]);
    for (cores, words) in [
        ("0", "give 1 or more"),
        ("0,0", "CPU 0 is in the list twice"),
        ("1-0", "write 0-1"),
        ("all", "neither a number of cores"),
    ] {
        net.run(format!("{send} --cores {cores}")).with(2).says(&["--cores", words]);
    }
    net.run(format!("{send} --cores 2 --core 1")).with(2).says(&["cannot be used with"]);
    let file = net.file("x.pcap");
    run(format!("netdyno craft ipv4/udp --count 10 -w {file}")).ok();
    net.run(format!("netdyno replay {file} --stream --on tx0 --topspeed --cores 2")).refused(&[
        "--cores",
        "one reader",
        "--preload",
    ]);
    net.run(format!("netdyno replay {file} -w {} --cores 2", net.file("y.pcap")))
        .with(2)
        .says(&["cannot be used with"]);
    let link = net.run("ip -s -j link show tx0").ok().json();
    assert_eq!(number(&link[0]["stats64"]["tx"]["packets"]), 0, "what was refused sent nothing");
}

#[test]
fn live_frames_from_two_cores_let_others_change_links_and_say_how_they_waited() {
    if !several_cpus() {
        return;
    }
    for pace in ["--topspeed", "--rate 2kpps"] {
        let net = two_queues();
        let send =
            format!("netdyno send ipv4/udp --on tx0 --measure rx0 {pace} --engine xdp --cores 2 --json");
        let sender = net.start(send);
        net.until_frames_leave();
        // On a preemptible kernel each of these waits until no call is under way that was when it began.
        net.run("ip link add dum0 type veth peer name dum1").ok();
        net.run("ip link del dum0").ok();
        sender.signal("INT");
        let result = &sender.wait().result()["result"];
        assert_eq!(number(&result["tx"]["frames"]), number(&result["rx"]["frames"]), "{result}");
        let waiting = &result["pacing"]["waiting"];
        let told = waiting == "slept" || waiting == "spun";
        assert_eq!(told, pace != "--topspeed", "{pace}: {result}");
    }
}

#[test]
fn live_frames_at_a_low_rate_go_before_others_and_leave_them_the_gaps() {
    if !several_cpus() {
        return;
    }
    let net = two_queues();
    let others = crate::busy::Loops::begin();
    let send = "netdyno send ipv4/udp --on tx0 --measure rx0 --rate 2kpps --engine xdp --cores 2 --duration 2s --json";
    // (Senders of other tests are of real-time priority, too: of three runs one has its time.)
    let mut report = net.run(send).json();
    for _ in 0..2 {
        if number(&report["result"]["tx"]["frames"]) < 4_000 {
            report = net.run(send).json();
        }
    }
    drop(others);
    let result = &report["result"];
    assert_eq!(number(&result["tx"]["frames"]), 4_000, "{result}");
    // A millisecond lies between a core's frames, and real-time tasks are woken within microseconds of their times: spun through, those
    // gaps took twelve thirteenths of all CPUs from whoever else was there, who had no other.
    assert_eq!(result["pacing"]["priority"], "real-time", "{result}");
    assert_eq!(result["pacing"]["waiting"], "slept", "{result}");
    for row in rows(&report) {
        assert!(row["cpu_ratio"].as_f64().expect("a ratio") < 0.8, "{result}");
    }
}

/// What a send with these options says while `holder` has CPUs, in a /run of its own, where nobody else claims any.
fn beside(holder: &str, options: &str) -> Value {
    let netdyno = env!("CARGO_BIN_EXE_netdyno");
    let script = format!(
        "mount -t tmpfs tmpfs /run && mkdir -m 700 /run/netdyno || exit 9
         {holder} > /dev/null 2>&1 &
         until grep -q . /run/netdyno/cpu* 2> /dev/null; do sleep 0.02; done
         {netdyno} send ipv4/udp --engine null --rate 1kpps --count 100 --json {options}
         kill -KILL %1 || exit 8",
        holder = holder.replace("netdyno send", &format!("{netdyno} send")),
    );
    let mut unshare = command("unshare --mount bash -m -c");
    unshare.arg(script);
    start(unshare).wait().json()
}

#[test]
fn two_senders_take_different_cpus_and_a_real_time_one_on_the_same_is_named() {
    if !several_cpus() {
        return;
    }
    let cpus = rustix::thread::sched_getaffinity(None).expect("the CPUs of this process");
    let mut cpus = (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| cpus.is_set(*cpu)).rev();
    let (last, before) = (cpus.next().expect("a CPU"), cpus.next().expect("two CPUs"));
    let core = |report: &Value| number(&rows(report)[0]["core"]) as usize;

    let first = "netdyno send ipv4/udp --engine null --rate 10pps --duration 10m";
    assert_eq!(core(&beside(first, "")), before, "the last is the first one's");
    // Whoever is asked for one, has it; ordinary senders share.
    let shared = beside(first, &format!("--core {last}"));
    assert_eq!((core(&shared), shared["warnings"].to_string().contains("netdyno's")), (last, false));

    let file = format!("/run/netdyno/cpu{last}");
    // In one process: a child of flock's would outlive it, and hold for ten minutes what it has inherited.
    let real_time = format!("flock --no-fork {file} sh -c 'echo 1 real-time > {file}; exec sleep 600'");
    let told = beside(&real_time, &format!("--core {last}"));
    assert!(told["warnings"].to_string().contains("(process 1), whose sender is a real-time task"), "{told}");
    assert_eq!(core(&beside(&real_time, "")), before);
}
