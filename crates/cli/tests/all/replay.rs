//! `netdyno replay` and `send`: what arrives, byte by byte and in order; how much of it, and when.

use crate::common::*;
use crate::judged::judged;
use serde_json::Value;

/// A capture of many kinds of frames: TCP and UDP over both versions of IP, tags, fragments and what is not IP.
fn mixed(net: &Net) -> String {
    let parts = [
        "ipv4(src=10.0.0.0/24,dst=198.18.0.9)/udp(sport=1024..65535,dport=53)",
        "ipv4(src=10.0.0.7,dst=10.0.0.0/28)/tcp(flags=A)",
        "ipv6(src=2001:db8::/64,dst=2001:db8:1::1)/udp(sport=5000..5999)",
        "vlan(id=1..9)/ipv4(src=10.9.0.0/16)/icmp",
        "ipv4(flags=MF,src=172.16.0.0/24)/udp",
        "arp(psrc=10.0.0.0/24)",
        "ether(type=0x88b5)/raw(\"neither\")",
    ];
    let mut merge = command("mergecap -F pcap -w");
    let file = net.file("mixed.pcap");
    merge.arg(&file);
    for (n, part) in parts.iter().enumerate() {
        let file = net.file(&format!("part{n}.pcap"));
        run(format!(
            "netdyno craft {part} --count 50 --size random(90..300) --seed {n} --rate 5kpps -w {file}"
        ))
        .ok();
        merge.arg(file);
    }
    start(merge).wait().ok();
    file
}

fn sent(report: &Value) -> u64 {
    number(&report["result"]["tx"]["frames"])
}

fn arrived(report: &Value) -> u64 {
    number(&report["result"]["rx"]["frames"])
}

/// All that was sent arrived, and everybody counted the same.
#[track_caller]
fn assert_all_agree(report: &Value, frames: u64) {
    let result = &report["result"];
    assert_eq!([sent(report), arrived(report)], [frames; 2], "{result}");
    assert_eq!(number(&result["loss"]["frames"]), 0);
    assert_eq!(result["tx"]["bytes"], result["rx"]["bytes"]);
    assert_eq!(number(&result["tx"]["failed"]), 0);
    let counters = &result["tx"]["interface_counters"][0];
    assert_eq!([&counters["sent_frames"], &counters["tx_packets"]].map(number), [frames; 2]);
    // What sent nothing has no loss, not even none.
    let of = |i: &Value, key: &str| if i["tx_frames"] == 0 { 0 } else { number(&i[key]) };
    let sum = |key: &str| {
        let intervals = report["intervals"].as_array().expect("intervals");
        intervals.iter().map(|i| if key == "lost_frames" { of(i, key) } else { number(&i[key]) }).sum::<u64>()
    };
    assert_eq!([sum("tx_frames"), sum("rx_frames"), sum("lost_frames")], [frames, frames, 0]);
}

#[test]
fn what_arrives_is_the_capture_byte_by_byte() {
    let net = Net::new();
    let file = mixed(&net);
    let wanted = frames(&file);
    let got = net.received(wanted.len(), || {
        net.run(format!("netdyno replay {file} --on tx0 --topspeed")).ok();
    });
    assert_same_frames(&got, &wanted);
}

#[test]
fn every_kind_of_file_sends_the_same_frames() {
    let net = Net::new();
    let file = mixed(&net);
    let wanted = frames(&file);
    let (next_generation, zipped) = (net.file("x.pcapng"), net.file("x.pcap"));
    run(format!("editcap -F pcapng {file} {next_generation}")).ok();
    run(format!("editcap -F nsecpcap {file} {zipped}")).ok();
    run(format!("gzip {zipped}")).ok();
    for file in [next_generation, zipped + ".gz"] {
        let got = net.received(wanted.len(), || {
            net.run(format!("netdyno replay {file} --on tx0 --topspeed")).ok();
        });
        assert_same_frames(&got, &wanted);
    }
}

#[test]
fn files_and_loops_follow_one_another() {
    let net = Net::new();
    let (a, b) = (net.file("part1.pcap"), net.file("part5.pcap"));
    mixed(&net);
    let one: Vec<_> = [frames(&a), frames(&b)].concat();
    let wanted = [one.clone(), one.clone(), one].concat();
    let got = net.received(wanted.len(), || {
        net.run(format!("netdyno replay {a} {b} --on tx0 --topspeed --loop 3")).ok();
    });
    assert_same_frames(&got, &wanted);
}

#[test]
fn streamed_and_preloaded_send_the_same() {
    let net = Net::new();
    let file = mixed(&net);
    let pass = frames(&file).len();
    let sent_by = |how: &str| {
        net.received(3 * pass, || {
            net.run(format!("netdyno replay {file} --on tx0 --topspeed --loop 3 --unique-ip {how}")).ok();
        })
    };
    assert_same_frames(&sent_by("--stream"), &sent_by("--preload"));
}

#[test]
fn both_ways_through_the_packet_socket_send_the_same() {
    let net = Net::new();
    let file = mixed(&net);
    let wanted = frames(&file);
    for engine in ["packet", "packet-ring"] {
        let got = net.received(wanted.len(), || {
            net.run(format!("netdyno replay {file} --on tx0 --topspeed --engine {engine}")).ok();
        });
        assert_same_frames(&got, &wanted);
    }
}

#[test]
fn unique_addresses_arrive_as_the_file_says_with_right_checksums() {
    let net = Net::new();
    let (file, written) = (mixed(&net), net.file("written.pcap"));
    run(format!("netdyno replay {file} --loop 4 --unique-ip -w {written}")).ok();
    let wanted = frames(&written);
    assert_eq!(wanted.len(), 4 * frames(&file).len());
    let got = net.received(wanted.len(), || {
        net.run(format!("netdyno replay {file} --on tx0 --topspeed --loop 4 --unique-ip")).ok();
    });
    assert_same_frames(&got, &wanted);
    assert_eq!(tshark_complaints(&written), "");
}

#[test]
fn every_pass_of_unique_addresses_brings_as_many_new_flows() {
    let net = Net::new();
    let file = net.file("one.pcap");
    run(format!("netdyno craft ipv4(src=10.0.0.1,dst=198.18.0.1)/udp(sport=1..50) --count 100 -w {file}"))
        .ok();
    let report = net
        .run(format!("netdyno replay {file} --on tx0 --topspeed --loop 20 --unique-ip --measure rx0 --json"));
    let report = report.result();
    assert_all_agree(&report, 2000);
    assert_eq!(number(&report["result"]["flows"]["flows"]), 1000);
}

/// tcpreplay 4.4.3 counts its passes from 1 where ours count from 0, so its pass k is our pass k + 1 (or k: then so
/// be it); and it sends what is not IP in no pass.
#[test]
fn tcpreplay_sends_the_same_ip_frames_with_unique_addresses() {
    let net = Net::new();
    let file = mixed(&net);
    let version = run("tcpreplay --version").ok().stderr;
    assert!(version.contains("4.4.3"), "this test knows tcpreplay 4.4.3, not {version}");
    let is_ip = |frame: &&Vec<u8>| frame[12..14] == [8, 0] || frame[12..14] == [0x86, 0xdd];
    let pass = frames(&file).len();
    let ip = frames(&file).iter().filter(is_ip).count();
    let theirs = net.received(3 * ip, || {
        net.run(format!("tcpreplay -i tx0 --topspeed --unique-ip --loop 3 {file}")).ok();
    });
    let ours = net.received(3 * pass, || {
        net.run(format!("netdyno replay {file} --on tx0 --topspeed --unique-ip --loop 3")).ok();
    });
    let only_ip = |frames: &[Vec<u8>]| frames.iter().filter(is_ip).cloned().collect::<Vec<_>>();
    assert_same_frames(&only_ip(&ours), &only_ip(&theirs));
}

#[test]
fn a_count_is_sent_exactly_at_any_rate_and_all_counters_agree() {
    let net = Net::new();
    let file = net.file("x.pcap");
    run(format!("netdyno craft ipv4(src=10.0.0.0/16)/udp --count 700 --size imix --rate 20kpps -w {file}"))
        .ok();
    for pace in [
        "--rate 20kpps",
        "--rate 50mbps",
        "--rate 60mbps-l1",
        "--rate 0.5%",
        "--rate 10kfps",
        "--speed 2x",
        "--topspeed",
        "",
    ] {
        let report = net
            .run(format!("netdyno replay {file} --on tx0 --measure rx0 {pace} --count 2500 --json"))
            .result();
        assert_all_agree(&report, 2500);
        if pace != "--topspeed" {
            assert_eq!(number(&report["result"]["tx"]["intended_frames"]), 2500, "{pace}");
        }
    }
}

#[test]
fn every_frame_of_a_duration_is_due_once_and_its_rate_is_kept() {
    alone();
    let net = Net::new();
    // (rate, frames in a second): 1 Mbit/s of 996 bytes without FCS, or of 1020 bytes on layer 1;
    // 0.01 % of the 10 Gbit/s that a veth says it has.
    for (rate, frames) in [("1kpps", 1000), ("1mbps", 126), ("1mbps-l1", 123), ("0.01%", 123)] {
        let send = format!(
            "netdyno send ipv4/udp --size 1000 --on tx0 --measure rx0 --rate {rate} --duration 1s --json"
        );
        let report = in_time(|report| longest_stall(report) < 5_000_000, || net.run(&send).result());
        let result = &report["result"];
        assert_eq!(number(&result["tx"]["intended_frames"]), frames, "{rate}");
        let sent = number(&result["tx"]["frames"]);
        assert_all_agree(&report, sent);
        let intended = result["tx"]["intended_frames_per_second"].as_f64().expect("a rate");
        let of = |side: &str| result[side]["frames_per_second"].as_f64().expect("a rate") / intended;
        if judged(longest_stall(&report) < 5_000_000) {
            assert_eq!(sent, frames, "{rate}");
            assert!([of("tx"), of("rx")].iter().all(|ratio| (ratio - 1.0).abs() < 0.01), "{rate}: {result}");
        }
        assert!(of("tx") <= 1.0 && sent <= frames, "{rate}: {result}");
    }
}

#[test]
fn frames_arrive_spaced_as_tcpdump_sees_them() {
    alone();
    let net = Net::new();
    let mut report = Value::Null;
    net.received(500, || {
        let send = "netdyno send ipv4/udp --size 64 --on tx0 --rate 500pps --count 500 --json";
        report = net.run(send).result();
    });
    let times: Vec<f64> = tshark_field(&net.file("received.pcap"), "frame.time_relative")
        .iter()
        .map(|time| time.parse().expect("seconds"))
        .collect();
    // 500 frames, one each 2 ms: sent in bursts, half of them would not take half of the time.
    let mut halves: Vec<f64> = times.windows(251).map(|half| half[250] - half[0]).collect();
    halves.sort_by(f64::total_cmp);
    if judged(late_share(&report) < 0.1) {
        assert!((halves[halves.len() / 2] - 0.5).abs() < 0.005, "{halves:?}");
    }
}

#[test]
fn capture_timing_is_kept_and_scaled() {
    alone();
    let net = Net::new();
    let file = net.file("x.pcap");
    run(format!("netdyno craft ipv4/udp --count 201 --rate 400pps -w {file}")).ok();
    for (pace, nanoseconds) in [("", 500e6), ("--speed 2x", 250e6), ("--speed 0.5x", 1000e6)] {
        let line = format!("netdyno replay {file} --on tx0 --measure rx0 {pace} --json");
        let report = in_time(|report| longest_stall(report) < 1_000_000, || net.run(&line).result());
        assert_all_agree(&report, 201);
        // The rate is over n frames, the capture spans n - 1 gaps.
        let [tx, rx] = ["tx", "rx"]
            .map(|side| report["result"][side]["duration_ns"].as_f64().expect("a time") * 200.0 / 201.0);
        assert!(tx > nanoseconds * 0.999, "{pace}: {tx}");
        if judged(longest_stall(&report) < 1_000_000) {
            assert!((rx / nanoseconds - 1.0).abs() < 0.01, "{pace}: {rx}");
        }
    }
}

#[test]
fn the_report_has_the_fields_others_rely_on_and_they_are_consistent() {
    let net = Net::new();
    let report = net.run("netdyno send ipv4(src=10.0.0.0/24)/udp --size 128 --on tx0 --rate 5kpps --count 5000 --measure rx0 --json");
    let report = report.result();
    assert_all_agree(&report, 5000);
    assert_eq!(report["schema"], "netdyno.report/2");
    assert_eq!(report["command"], "send");
    let result = &report["result"];
    for side in ["tx", "rx"] {
        let side = &result[side];
        let of = |key: &str| side[key].as_f64().unwrap_or_else(|| panic!("no {key} in {side}"));
        let seconds = of("duration_ns") / 1e9;
        assert_eq!(of("bytes"), of("frames") * 124.0);
        for (rate, amount) in [
            ("frames_per_second", of("frames")),
            ("bits_per_second", of("bytes") * 8.0),
            ("bits_per_second_l1", (of("bytes") + of("frames") * 24.0) * 8.0),
        ] {
            assert!((of(rate) / (amount / seconds) - 1.0).abs() < 1e-9, "{rate} in {side}");
        }
    }
    let latency = &result["latency_ns"];
    let of = |key: &str| latency[key].as_f64().unwrap_or_else(|| panic!("no {key} in {latency}"));
    assert!(of("min") <= of("mean") && of("mean") <= of("max"));
    assert!(["min", "p50", "p90", "p99", "p999", "max"].is_sorted_by_key(|key| of(key)));
    assert_eq!(number(&latency["count"]), 5000);
    assert_eq!(number(&result["flows"]["flows"]), 256);
    assert_eq!(result["loss"]["ratio"], 0.0);
    assert!(result["pacing"]["gap_error_ns"]["p50"].is_number());
}

#[test]
fn signed_frames_are_one_stream_without_loss() {
    let net = Net::new();
    let file = mixed(&net);
    let send = "netdyno send ipv4/udp(sport=1..9) --size 64..200 --on tx0 --rate 20kpps --count 3000 --measure rx0 --json";
    let of = |report: &Value, key: &str| number(&report["streams"][0][key]);
    let report = net.run(send).result();
    for (key, value) in [
        ("tx_frames", 3000),
        ("rx_frames", 3000),
        ("lost_frames", 0),
        ("duplicated_frames", 0),
        ("reordered_frames", 0),
    ] {
        assert_eq!(of(&report, key), value, "{key}");
    }
    // Of the mixed capture, TCP and UDP can be signed; fragments, ICMP, ARP and others cannot.
    let report = net
        .run(format!("netdyno replay {file} --sign --loop 4 --on tx0 --topspeed --measure rx0 --json"))
        .result();
    assert_all_agree(&report, 1400);
    assert_eq!(
        [of(&report, "tx_frames"), of(&report, "rx_frames"), of(&report, "lost_frames")],
        [600, 600, 0]
    );
}

#[test]
fn signing_keeps_the_checksums_right() {
    let net = Net::new();
    let (file, signed) = (mixed(&net), net.file("signed.pcap"));
    run(format!("netdyno replay {file} --sign --loop 2 -w {signed}")).ok();
    assert_eq!(tshark_complaints(&signed), "");
    assert_eq!(frames(&signed).len(), 2 * frames(&file).len());
}

/// A third host in the middle: a bridge from rx0 to out0, whose peer in0 takes only 500 bytes.
pub fn with_a_bottleneck() -> Net {
    let net = Net::new();
    for line in [
        "ip link add br0 type bridge mcast_snooping 0",
        "ip link add out0 mtu 500 type veth peer name in0 mtu 500",
        // No IPv6, whose set-up would be frames that nobody here sent; 500 bytes are too few for it anyway.
        "ip link set br0 addrgenmode none",
        "ip link set rx0 master br0",
        "ip link set out0 master br0",
        "ip link set br0 up",
        "ip link set out0 up",
        "ip link set in0 up",
    ] {
        net.run_there(line).ok();
    }
    net
}

/// Not IP, which a bridge might fragment. Each fourth frame is too long for the second cable.
const LOSSY: &str =
    "netdyno send ether(dst=02:00:00:00:00:99,type=0x88b5)/raw --sign --size 64,64,64,1000 --on tx0";

#[test]
fn frames_lost_on_the_way_are_counted_lost() {
    let net = with_a_bottleneck();
    let receiver = handle(&net.lab.receiver.namespace);
    let ran = net.run(format!("{LOSSY} --topspeed --count 4000 --measure in0@{receiver} --json")).with(1);
    let report = ran.json();
    assert_eq!([sent(&report), arrived(&report)], [4000, 3000]);
    assert_eq!(report["result"]["loss"], serde_json::json!({"frames": 1000, "ratio": 0.25}));
    assert_eq!(reasons(&report), ["1,000 frames that were sent did not arrive (25.0 %)"]);
    let stream = &report["streams"][0];
    let of = ["tx_frames", "rx_frames", "lost_frames", "duplicated_frames", "reordered_frames"]
        .map(|key| number(&stream[key]));
    assert_eq!(of, [4000, 3000, 1000, 0, 0]);
}

#[test]
fn frames_of_others_do_not_hide_loss() {
    let net = with_a_bottleneck();
    let receiver = handle(&net.lab.receiver.namespace);
    let ours = net.start(format!("{LOSSY} --rate 1kpps --count 2000 --measure in0@{receiver} --json"));
    net.until_frames_leave();
    net.run(
        "netdyno send ether(dst=02:00:00:00:00:99,type=0x88b5)/raw --size 64 --engine packet --on tx0 --topspeed --count 500",
    )
    .ok();
    let report = ours.wait().with(1).json();
    // As many foreign frames arrived as ours were lost.
    assert_eq!([sent(&report), arrived(&report)], [2000, 2000]);
    assert_eq!(number(&report["streams"][0]["lost_frames"]), 500);
    assert_eq!(number(&report["result"]["loss"]["frames"]), 500, "{}", report["result"]["loss"]);
    assert_eq!(number(&report["result"]["rx"]["foreign_frames"]), 500);
}

/// Two hosts with a bridge between them, which loses so many of so many frames.
fn through_a_bridge(loss: Option<(u32, u32)>) -> Net {
    let loss = loss.map(|(frames, of)| format!("{frames}/{of}").parse().expect("a share"));
    let device = ::lab::Device { kind: ::lab::Kind::Bridge, bottleneck: None, loss };
    Net::with(&::lab::Options { device: Some(device), ..::lab::Options::default() })
}

#[test]
fn what_others_send_beside_an_unsigned_replay_hides_no_loss_unmarked() {
    let net = through_a_bridge(Some((1, 100)));
    let file = net.file("x.pcap");
    run(format!("netdyno craft ipv4/udp --count 1000 -w {file}")).ok();
    for (others, known) in [("arp", true), ("ether(type=0x88b5)/raw", false)] {
        let ours =
            net.start(format!("netdyno replay {file} --loop 0 --rate 1kpps --on tx0 --measure rx0 --json"));
        let link = |field: &str| {
            let links = net.run_there("ip -s -j link show rx0").ok().json();
            number(&links[0]["stats64"]["rx"][field])
        };
        let before = link("packets");
        eventually("frames arrive", || link("packets") > before + 500);
        // Of another host on that network, behind the device: more than were lost up to now.
        let device = net.lab.device.as_ref().expect("a device");
        let out = device[1].interface;
        start(inside(
            &device[1].namespace,
            &format!("netdyno send {others} --size 64 --engine packet --on {out} --topspeed --count 40"),
        ))
        .wait()
        .ok();
        eventually("they arrived", || link("packets") > before + 1_000);
        ours.signal("INT");
        let ran = ours.wait();
        let report = ran.json();
        let (rx, loss) = (&report["result"]["rx"], &report["result"]["loss"]);
        let (sent, arrived) = (sent(&report), arrived(&report));
        // Each hundredth was lost.
        let lost = sent / 100..=sent.div_ceil(100);
        assert!(lost.contains(&(sent + 40 - arrived)), "{sent} sent, {arrived} arrived: {report}");
        assert_eq!(loss["by_count_only"], true, "{loss}");
        if known {
            assert!(lost.contains(&number(&loss["frames"])), "{loss}: {report}");
            assert_eq!([number(&rx["background_frames"]), number(&rx["foreign_frames"])], [40, 40]);
            assert!(report["warnings"].to_string().contains("are not counted as its own"), "{report}");
        } else {
            // Nothing tells them apart; it is said that nothing does.
            assert_eq!(number(&loss["frames"]), sent.saturating_sub(arrived), "{report}");
            let more = arrived.saturating_sub(sent);
            assert_eq!(rx["foreign_frames"].as_u64().unwrap_or(0), more, "{report}");
            assert_eq!(report["warnings"].to_string().contains("loss may be larger"), more > 0, "{report}");
        }
    }
}

#[test]
fn a_whole_result_of_unsigned_frames_is_marked_as_counted_only() {
    let net = Net::new();
    let (file, folder) = (net.file("x.pcap"), net.file("report"));
    run(format!("netdyno craft ipv4/udp --size 100 --count 200 -w {file}")).ok();
    let replay = format!("netdyno replay {file} --rate 1kpps --on tx0 --measure rx0");
    let ran = net.run(format!("{replay} --report {folder}"));
    let written = std::fs::read_to_string(format!("{folder}/result.json")).expect("the report");
    let report: serde_json::Value = serde_json::from_str(&written).expect("JSON");
    assert_eq!((number(&report["result"]["loss"]["frames"]), sent(&report)), (0, 200));
    assert_eq!(report["result"]["loss"]["by_count_only"], true);
    if ran.status == 0 {
        let said = "Done as asked, by count only: not all frames were signed";
        assert!(ran.stdout.contains(said), "{}", ran.stdout);
    }
    let page = std::fs::read_to_string(format!("{folder}/report.html")).expect("the page");
    assert!(page.contains("by count only"));
    let signed = net.run(format!("{replay} --sign --json")).json();
    assert_eq!(signed["result"]["loss"].get("by_count_only"), None, "{signed}");
}

#[test]
fn frames_of_others_are_told_from_ours() {
    let net = Net::new();
    let ours = net.start("netdyno send ipv4/udp --engine packet --on tx0 --rate 1kpps --count 1500 --json");
    net.until_frames_leave();
    net.run("netdyno send ipv4/udp --engine packet --on tx0 --topspeed --count 123").ok();
    let report = ours.wait().result();
    let counters = &report["result"]["tx"]["interface_counters"][0];
    let of =
        ["sent_frames", "tx_packets", "foreign_frames", "missing_frames"].map(|key| number(&counters[key]));
    assert_eq!(of, [1500, 1623, 123, 0]);
    assert!(report["warnings"].to_string().contains("tx0 sent 123 frames that are not of this run"));
}

#[test]
fn the_classic_block_reads_as_tcpreplays_does() {
    let net = Net::new();
    let file = net.file("x.pcap");
    run(format!("netdyno craft ipv4/udp(sport=1..10) --count 100 --size 104 -w {file}")).ok();
    let ours = net.run(format!("netdyno replay {file} --on tx0 --topspeed --verbose")).ok().stdout;
    let theirs = net.run(format!("tcpreplay -i tx0 --topspeed --stats=0 {file}")).ok().stdout;
    // The words; figures of time differ from run to run.
    let words = |text: &str| -> Vec<String> {
        let start = text.find("Actual:").unwrap_or_else(|| panic!("no block in {text}"));
        let block = text[start..].lines().take(9).flat_map(str::split_whitespace);
        block.filter(|word| !word.contains('.')).map(str::to_owned).collect()
    };
    assert_eq!(words(&ours), words(&theirs), "{ours}\n{theirs}");
}

#[test]
fn the_null_engine_makes_all_frames_and_sends_none() {
    let net = Net::new();
    let report = net
        .run("netdyno send ipv4/udp(sport=random()) --size 64 --engine null --topspeed --count 100000 --json")
        .ok()
        .json();
    assert_eq!(sent(&report), 100_000);
    let link = net.run("ip -s -j link show tx0").ok().json();
    assert_eq!(number(&link[0]["stats64"]["tx"]["packets"]), 0);
}

#[test]
fn streaming_takes_bounded_memory_and_preloading_little_more_than_the_file() {
    let net = Net::new();
    let (file, small) = (net.file("large.pcap"), net.file("small.pcap"));
    let craft = |count: u64, file: &str| {
        run(format!("netdyno craft ipv4(src=10.0.0.0/8)/udp --size 1518 --count {count} -w {file}")).ok();
    };
    craft(200_000, &file);
    craft(1, &small);
    let size = std::fs::metadata(&file).expect("the file").len();
    let weigh = |file: &str, frames: u64, how: &str| {
        let replay = format!("netdyno replay {file} --on tx0 --engine null --topspeed --json {how}");
        let (ran, memory) = net.start(replay).wait_and_weigh();
        assert_eq!(sent(&ran.ok().json()), frames);
        assert!(memory > 1 << 20, "{how}: {memory} bytes");
        memory
    };
    let streaming = weigh(&file, 200_000, "--stream");
    assert!(streaming < 64 << 20, "--stream: {streaming} bytes for a file of {size}");
    // The executable itself: how much of it is resident is the page cache's choice, and a test's is large.
    let executable = weigh(&small, 1, "--preload");
    let preloading = weigh(&file, 200_000, "--preload").saturating_sub(executable);
    assert!(
        preloading > size / 2 && preloading < size + size / 10,
        "--preload: {preloading} bytes for {size}"
    );
}

/// A capture of 450 MB that packs to little.
fn packed(net: &Net) -> String {
    let file = net.file("packed.pcap.zst");
    run(format!("netdyno craft ipv4/udp --size 1500 --count 300000 -w {file}")).ok();
    assert!(std::fs::metadata(&file).expect("a file").len() < 16 << 20);
    file
}

#[test]
fn a_packed_capture_takes_no_more_memory_than_there_is() {
    let net = Net::new();
    let file = packed(&net);
    let (ran, most) =
        start(command(format!("netdyno replay {file} -w /dev/null --topspeed -q --json"))).wait_and_weigh();
    assert_eq!(number(&ran.ok().json()["result"]["tx"]["frames"]), 300_000);
    assert!(most < 300 << 20, "{most} bytes for a capture that is streamed");
}

#[test]
fn the_end_of_memory_is_an_error() {
    let net = Net::new();
    let file = packed(&net);
    run(format!("prlimit --as=400000000 netdyno replay {file} --preload -w /dev/null --topspeed -q"))
        .refused(&["memory"]);
    let streams = "--streams 16777216 --duration 1s";
    net.run(format!("prlimit --as=400000000 netdyno measure --on tx0 {streams}"))
        .refused(&["memory", "16777216"]);
}

#[test]
fn frames_that_were_signed_earlier_tell_loss_and_no_latency() {
    let (net, dir) = (Net::new(), folder());
    let file = path(&dir, "signed.pcap");
    run(format!(
        "netdyno craft ether/ipv4(dst=198.18.0.2)/udp(dport=9) --size 100 --sign --count 300 -w {file}"
    ))
    .ok();
    std::thread::sleep(std::time::Duration::from_millis(100));
    let line = format!("netdyno replay {file} --on tx0 --measure rx0 --rate 1kpps --engine packet --json");
    let report = net.run(line).ok().json();
    assert_eq!(report["result"]["loss"]["frames"], 0, "{report}");
    assert_eq!(report["streams"][0]["rx_frames"], 300, "{report}");
    for of in [&report["result"], &report["streams"][0]] {
        assert!(of["latency_ns"].is_null() && of["jitter_ns"].is_null(), "{report}");
    }
    assert!(report["result"]["delay_variation"].is_null(), "{report}");
    assert!(report["warnings"].to_string().contains("time stamps of before this run"), "{report}");
    // Signed as they leave they do.
    let report = net
        .run(format!(
            "netdyno replay {file} --on tx0 --measure rx0 --sign --rate 1kpps --engine packet --json"
        ))
        .ok()
        .json();
    assert_eq!(report["result"]["latency_ns"]["count"], 300, "{report}");
}
