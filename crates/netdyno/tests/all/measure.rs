//! `netdyno measure`: what it counts, how it looks, and how it ends.

use crate::common::*;

/// A program that lets everything pass, as another tool might have attached one.
const FOREIGN_PROGRAM: &str = r#"
__attribute__((section("xdp"), used)) int pass(void *frame) { return 2; }
char gpl[] __attribute__((section("license"), used)) = "GPL";
"#;

fn attach_foreign_program(net: &Net) {
    let (source, object) = (net.file("pass.c"), net.file("pass.o"));
    std::fs::write(&source, FOREIGN_PROGRAM).expect("a written file");
    run(format!("clang -O2 -target bpf -c {source} -o {object}")).ok();
    net.run_there(format!("ip link set dev rx0 xdpdrv obj {object} sec xdp")).ok();
    assert!(foreign_program_is_attached(net));
}

fn foreign_program_is_attached(net: &Net) -> bool {
    net.run_there("ip -d link show rx0").ok().stdout.contains("name pass ")
}

/// Measures on rx0 while `sends` are sent to it.
fn measured(net: &Net, options: &str, sends: &str) -> Ran {
    let mut meter = net.start_there(format!("netdyno measure --on rx0 --json {options}"));
    meter.until_it_says("measuring on rx0");
    net.run(sends).ok();
    meter.wait()
}

#[test]
fn native_generic_and_packet_socket_count_the_same() {
    let net = Net::new();
    for (how, name) in [("auto", "xdp"), ("xdp", "xdp"), ("xdp-generic", "xdp-generic"), ("packet", "packet")]
    {
        let send = "netdyno send vlan/ipv4/udp --sign --size 68,128,1000 --on tx0 --topspeed --count 3000";
        let report = measured(&net, &format!("--count 3000 --meter {how}"), send).ok().json();
        let rx = &report["result"]["rx"];
        assert_eq!([&rx["frames"], &rx["bytes"]].map(number), [3000, 1000 * (64 + 124 + 996)], "{how}");
        assert_eq!(report["environment"]["meter"]["name"], name);
        let stream = &report["streams"][0];
        assert_eq!(["rx_frames", "lost_frames"].map(|key| number(&stream[key])), [3000, 0], "{how}");
        assert_eq!(number(&report["result"]["latency_ns"]["count"]), 3000, "{how}");
        let sizes = report["result"]["frame_sizes"].as_array().expect("sizes");
        let sizes: Vec<u64> = sizes.iter().map(|class| number(&class["count"])).collect();
        assert_eq!(sizes, [1000, 1000, 1000], "{how}");
    }
}

#[test]
fn loss_duplicates_and_reordering_are_told_exactly() {
    let net = Net::new();
    let (whole, spoilt) = (net.file("whole.pcap"), net.file("spoilt.pcap"));
    run(format!("netdyno craft ipv4/udp --sign --size 64 --count 1000 -w {whole}")).ok();
    let mut frames = frames(&whole);
    frames.swap(700, 701);
    frames.insert(500, frames[499].clone());
    frames.drain(100..110);
    frames.remove(50);
    write_pcap(&spoilt, 1, &frames);
    for how in ["xdp", "xdp-generic", "packet"] {
        let replay = format!("netdyno replay {spoilt} --on tx0 --topspeed");
        let report = measured(&net, &format!("--count {} --meter {how}", frames.len()), &replay).ok().json();
        let stream = &report["streams"][0];
        let told = ["rx_frames", "lost_frames", "duplicated_frames", "reordered_frames"]
            .map(|key| number(&stream[key]));
        assert_eq!(told, [990, 11, 1, 1], "{how}");
        assert_eq!(number(&report["result"]["loss"]["frames"]), 11, "{how}");
    }
}

#[test]
fn an_interrupt_ends_it_with_its_report_written() {
    for signal in ["INT", "TERM"] {
        let net = Net::new();
        let dir = net.file("report");
        let mut meter = net.start_there(format!("netdyno measure --on rx0 --json --report {dir}"));
        meter.until_it_says("measuring on rx0");
        net.run("netdyno send ipv4/udp --on tx0 --topspeed --count 100").ok();
        meter.signal(signal);
        let report = meter.wait().ok().json();
        assert_eq!(number(&report["result"]["rx"]["frames"]), 100);
        assert_eq!(listing(dir), ["intervals.csv", "report.html", "result.json"]);
        assert!(!net.run_there("ip -d link show rx0").ok().stdout.contains("prog/xdp"));
    }
}

#[test]
fn it_ends_after_its_time_and_says_if_frames_are_wanting() {
    let net = Net::new();
    let ran = net.run_there("netdyno measure --on rx0 --duration 300ms --count 5 --json").with(1);
    assert_eq!(reasons(&ran.json()), ["0 of the 5 frames waited for arrived"]);
    assert_eq!(number(&ran.json()["result"]["rx"]["frames"]), 0);
}

#[test]
fn frames_pass_to_the_host_unless_drop_is_asked_for() {
    let net = Net::new();
    for (options, seen_by_host) in [("", 50), ("--drop", 0)] {
        let mut meter = net.start_there(format!("netdyno measure --on rx0 --json --count 50 {options}"));
        meter.until_it_says("measuring on rx0");
        let seen = net.received(seen_by_host, || {
            net.run("netdyno send ipv4/udp --on tx0 --topspeed --count 50").ok();
        });
        assert_eq!(seen.len(), seen_by_host, "{options}");
        assert_eq!(number(&meter.wait().ok().json()["result"]["rx"]["frames"]), 50);
    }
}

#[test]
fn another_xdp_program_stays_and_the_reason_is_spoken() {
    let net = Net::new();
    attach_foreign_program(&net);
    let send = "netdyno send ipv4/udp --on tx0 --topspeed --count 70";
    let ran = measured(&net, "--count 70", send)
        .ok()
        .says(&["(pass) is attached already and is left alone", "packet socket"]);
    let report = ran.json();
    assert_eq!(number(&report["result"]["rx"]["frames"]), 70);
    assert_eq!(report["environment"]["meter"]["name"], "packet");
    assert!(
        report["environment"]["meter"]["reason"]
            .as_str()
            .expect("a reason")
            .contains("(pass) is attached already")
    );
    for how in ["xdp", "xdp-generic"] {
        net.run_there(format!("netdyno measure --on rx0 --duration 1s --meter {how}"))
            .refused(&["(pass) is attached already"]);
    }
    assert!(foreign_program_is_attached(&net));
}

#[test]
fn an_interface_that_goes_away_ends_it_with_what_was_counted() {
    let net = Net::new();
    let mut meter = net.start_there("netdyno measure --on rx0 --json");
    meter.until_it_says("measuring on rx0");
    net.run("netdyno send ipv4/udp --on tx0 --topspeed --count 30").ok();
    net.run_there("ip link delete rx0").ok();
    let ran = meter.wait().with(1);
    assert_eq!(number(&ran.json()["result"]["rx"]["frames"]), 30);
    assert!(reasons(&ran.json())[0].starts_with("rx0 was removed"), "{}", ran.stdout);
}

#[test]
fn ten_streams_are_told_apart() {
    let net = Net::new();
    let file = net.file("streams.pcap");
    let craft = net.file("one.pcap");
    run(format!("netdyno craft ipv4/udp --sign --size 64 --count 20 -w {craft}")).ok();
    let mut all = Vec::new();
    for stream in 0..10u8 {
        for mut frame in frames(&craft) {
            // The three bytes behind the magic number the stream.
            let at = frame.len() - 18 + 4 + 2;
            frame[at] = stream;
            all.push(frame);
        }
    }
    write_pcap(&file, 1, &all);
    let report =
        measured(&net, "--count 200", &format!("netdyno replay {file} --on tx0 --topspeed")).ok().json();
    let streams = report["streams"].as_array().expect("streams");
    let counts: Vec<[u64; 3]> =
        streams.iter().map(|s| ["stream", "rx_frames", "lost_frames"].map(|key| number(&s[key]))).collect();
    assert_eq!(counts, (0..10).map(|n| [n, 20, 0]).collect::<Vec<_>>());
}

#[test]
fn frames_can_be_measured_without_being_signed() {
    let net = Net::new();
    let send = "netdyno send ipv4/udp --size 64 --on tx0 --measure rx0 --topspeed --count 5000 --json";
    for (option, signed) in [("", 1), ("--no-sign", 0)] {
        let report = net.run(format!("{send} {option}")).ok().json();
        assert_eq!(number(&report["result"]["rx"]["frames"]), 5000, "{option}");
        assert_eq!(number(&report["result"]["loss"]["frames"]), 0, "{option}");
        assert_eq!(report["streams"].as_array().map_or(0, Vec::len), signed, "{option}");
        assert_eq!(report["result"]["latency_ns"].is_object(), signed == 1, "{option}");
    }
    for other in ["--sign", "--round-trip"] {
        let send = "netdyno send ipv4/udp --on tx0 --topspeed --count 1";
        net.run(format!("{send} --no-sign {other}")).with(2).says(&["--no-sign", other]);
    }
}
