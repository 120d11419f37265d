//! `netdyno measure`: what it counts, how it looks, and how it ends.

use crate::common::*;
use ::lab::Options;
use serde_json::Value;

/// A program that lets everything pass, as another tool might have attached one.
const FOREIGN_PROGRAM: &str = r#"
__attribute__((section("xdp"), used)) int pass(void *frame) { return 2; }
char gpl[] __attribute__((section("license"), used)) = "GPL";
"#;

pub fn attach_foreign_program(net: &Net) {
    let (source, object) = (net.file("pass.c"), net.file("pass.o"));
    std::fs::write(&source, FOREIGN_PROGRAM).expect("a written file");
    run(format!("clang -O2 -target bpf -c {source} -o {object}")).ok();
    net.run_there(format!("ip link set dev rx0 xdpdrv obj {object} sec xdp")).ok();
    assert!(foreign_program_is_attached(net));
}

pub fn foreign_program_is_attached(net: &Net) -> bool {
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

/// Frames of somebody else under the numbers of this run's stream: whether they stand in for lost ones nobody knows.
#[test]
fn more_different_frames_than_were_sent_are_told_and_fall_short() {
    for how in ["xdp", "packet"] {
        let net = Net::new();
        let (whole, others) = (net.file("whole.pcap"), net.file("others.pcap"));
        run(format!("netdyno craft ipv4/udp --sign --size 64 --count 120 -w {whole}")).ok();
        write_pcap(&others, 1, &frames(&whole)[110..]);
        let sending = net.start(format!(
            "netdyno send ipv4/udp --on tx0 --rate 50pps --count 100 --measure rx0 --meter {how} --engine packet --json"
        ));
        // The meter is there before the first of them.
        net.until_frames_leave();
        net.run(format!("netdyno replay {others} --on tx0 --topspeed --engine packet"));
        let report = sending.wait().with(1).json();
        assert_eq!(number(&report["result"]["loss"]["frames"]), 0, "{how}");
        let told = reasons(&report);
        assert!(
            told.iter().any(|said| said.starts_with("10 different frames more arrived")),
            "{how}: {told:?}"
        );
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
        assert_eq!(listing(dir), ["figures.csv", "intervals.csv", "report.html", "result.json"]);
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
fn an_interface_that_is_set_down_is_not_said_to_be_removed_and_a_new_name_ends_nothing() {
    let net = Net::new();
    let mut meter = net.start_there("netdyno measure --on rx0 --json --meter packet");
    meter.until_it_says("measuring on rx0");
    net.run_there("ip link set rx0 down").ok();
    let ran = meter.wait().with(1);
    assert_eq!(reasons(&ran.json())[0], "rx0 was set down", "{}", ran.stdout);
    net.run_there("ip link set rx0 up").ok();
    // A down interface takes another name on any kernel.
    let mut meter = net.start_there("netdyno measure --on rx0 --json --count 10");
    meter.until_it_says("measuring on rx0");
    for change in ["down", "down name rx9", "up"] {
        let name = if change == "up" { "rx9" } else { "rx0" };
        net.run_there(format!("ip link set {name} {change}")).ok();
    }
    eventually("the carrier is back", || net.run("ip -j link show tx0").ok().json()[0]["operstate"] == "UP");
    net.run("netdyno send ipv4/udp --on tx0 --topspeed --count 10").ok();
    let report = meter.wait().json();
    assert_eq!(number(&report["result"]["rx"]["frames"]), 10, "{report}");
    assert!(!reasons(&report).iter().any(|said| said.contains("removed")), "{report}");
}

#[test]
fn frames_that_the_other_ends_mtu_refuses_are_not_called_a_stuck_queue() {
    let net = Net::new();
    net.run_there("ip link set rx0 mtu 900").ok();
    let send = "netdyno send ipv4/udp --size 1400 --on tx0 --count 10 --topspeed --engine packet --json";
    for (measure, words) in
        [("--measure rx0", "rx0, whose MTU is 900"), ("", "its other end takes no frames of this length")]
    {
        let ran = net.run(format!("{send} {measure}"));
        let said = reasons(&ran.json()).join("; ");
        assert!(said.contains("tx_dropped") && said.contains(words), "{said}");
        assert!(!said.contains("stuck"), "{said}");
    }
}

#[test]
fn a_foreign_program_before_the_meter_is_the_likely_cause_of_what_it_takes() {
    let net = Net::new();
    let (source, object) = (net.file("drop.c"), net.file("drop.o"));
    std::fs::write(&source, FOREIGN_PROGRAM.replace("pass(", "eats(").replace("return 2", "return 1"))
        .expect("a written file");
    run(format!("clang -O2 -target bpf -c {source} -o {object}")).ok();
    net.run_there(format!("ip link set dev rx0 xdpgeneric obj {object} sec xdp")).ok();
    let ran = net.run("netdyno send ipv4/udp --on tx0 --measure rx0 --topspeed --count 100").with(1);
    let said = unfolded(&ran.stdout);
    assert!(said.contains("Likely cause: rx0 has another XDP program"), "{said}");
}

#[test]
fn no_more_frames_are_shown_as_received_than_as_sent() {
    let net = Net::new();
    for engine in ["xdp", "packet"] {
        let send =
            "netdyno send ipv4/udp --on tx0 --measure rx0 --topspeed --duration 2500ms --json-lines -q";
        let ran = net.run(format!("{send} --engine {engine}"));
        let lines: Vec<Value> =
            ran.stdout.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
        let shown: Vec<[u64; 2]> = lines
            .iter()
            .filter(|line| line["tx"].is_object())
            .map(|line| [&line["tx"]["frames"], &line["rx"]["frames"]].map(number))
            .collect();
        assert!(shown.len() >= 2, "{engine}: {}", ran.stdout);
        assert!(shown.iter().all(|[sent, received]| received <= sent), "{engine}: {shown:?}");
    }
}

/// Two programs that talk over the cable, from before until after what happens meanwhile.
struct Talk(std::net::TcpStream, std::net::TcpStream);

impl Talk {
    fn between(net: &Net) -> Talk {
        let (near, far) = (&net.lab.sender, &net.lab.receiver);
        let listener = far.namespace.run_in(|| std::net::TcpListener::bind((far.address, 7000)));
        let listener = listener.expect("a namespace").expect("listens");
        let there = (far.address, 7000);
        let ours = near.namespace.run_in(|| std::net::TcpStream::connect(there)).expect("a namespace");
        Talk(ours.expect("connects"), listener.accept().expect("a connection").0)
    }

    /// What one says the other hears.
    fn goes_on(&self) {
        use std::io::{Read as _, Write as _};
        for (mut from, mut to) in [(&self.0, &self.1), (&self.1, &self.0)] {
            from.write_all(b"still there?").expect("says");
            let mut heard = [0; 12];
            to.read_exact(&mut heard).expect("hears");
            assert_eq!(&heard, b"still there?");
        }
    }
}

#[test]
fn connections_of_others_are_not_taken_from_them_unless_the_interface_is_named() {
    let net = Net::with(&Options { addresses: true, ..Options::default() });
    let talk = Talk::between(&net);
    talk.goes_on();
    let words = ["rx0 carries an established TCP connection of this host", "--yes-disrupt rx0"];
    let send = "netdyno send ipv4/udp --on tx0 --topspeed --count 10 --no-sign";
    for taking in [
        format!("{send} --measure rx0").as_str(),
        "netdyno trial --on tx0 --measure rx0 --rate 1kpps --duration 1s",
        "netdyno search throughput --on tx0 --measure rx0",
        "netdyno doctor tx0 --calibrate --measure rx0",
    ] {
        net.run(taking).refused(&words);
    }
    net.run(format!("{send} --measure rx0")).refused(&["to take nothing away, let it pass, by --pass"]);
    for (taking, instead) in [
        ("measure --on rx0 --drop", "leave out --drop"),
        ("reflect --on rx0", "--only-signed"),
        ("probe --on rx0 --drop --export 198.18.0.1:9995", "leave out --drop"),
    ] {
        net.run_there(format!("netdyno {taking} --duration 1s")).refused(&words).says(&[instead]);
    }
    net.run("netdyno reflect --on tx0 --duration 1s").refused(&["tx0 carries an established TCP connection"]);
    talk.goes_on();
    // What lets frames pass is allowed, and harms nobody.
    let mut meter = net.start_there("netdyno measure --on rx0 --count 1000000 --duration 60s");
    meter.until_it_says("measuring on rx0");
    talk.goes_on();
    meter.signal("INT");
    meter.wait();
    net.run(format!("{send} --measure rx0 --pass")).ok();
    talk.goes_on();
    net.run(format!("{send} --measure rx0 --yes-disrupt rx0")).ok();
    drop(talk);
}

#[test]
fn a_loopback_is_measured_without_a_program_and_nothing_is_taken_from_it() {
    let net = Net::new();
    net.run("ip link set lo up").ok();
    let words = ["lo carries the connections between this host's own programs", "--yes-disrupt lo"];
    for taking in [
        "measure --on lo --drop --duration 1s",
        "send ipv4/udp --on tx0 --measure lo --topspeed --count 1",
        "send ipv4/udp --on lo --round-trip --topspeed --count 1",
        "reflect --on lo --duration 1s",
        "trial --on tx0 --measure lo --rate 1kpps --duration 1s",
    ] {
        net.run(format!("netdyno {taking}")).refused(&words);
    }
    let mut meter = net.start("netdyno measure --on lo --json");
    meter.until_it_says("measuring on lo");
    assert!(!net.run("ip -d link show lo").ok().stdout.contains("xdp"), "a program on the loopback");
    net.run("ping -c 3 -i 0.05 127.0.0.1").ok();
    meter.signal("INT");
    let report = meter.wait().ok().json();
    assert_eq!(report["environment"]["meter"]["name"], "packet");
    // Three requests and their answers.
    assert_eq!(number(&report["result"]["rx"]["frames"]), 6, "{report}");
    // Who insists is not kept waiting for a driver that there is not.
    let report = net
        .run("netdyno send ipv4/udp --on lo --measure lo --yes-disrupt lo --topspeed --count 100 --json")
        .json();
    assert_eq!(number(&report["result"]["rx"]["frames"]), 100, "{report}");
    let passed_over = report["environment"]["engine"]["not_taken"].to_string();
    assert!(!passed_over.contains("no rings to spare"), "it waited for the driver: {passed_over}");
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

/// What devices do to frames on their way, by name.
fn changed_by_devices(frame: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    let mut device = |name: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let mut frame = frame.to_vec();
        change(&mut frame);
        all.push((name.to_owned(), frame));
    };
    device("router: TTL and checksum", &|frame| {
        frame[22] -= 1;
        frame[24] = frame[24].wrapping_add(1);
    });
    device("NAT: address, port, checksums", &|frame| {
        frame[26..30].copy_from_slice(&[203, 0, 113, 7]);
        frame[34..36].copy_from_slice(&[0xc0, 0x01]);
        frame[40] ^= 0x5a;
    });
    device("VLAN tag added", &|frame| drop(frame.splice(12..12, [0x81, 0x00, 0x00, 0x07])));
    device("VXLAN", &|frame| {
        let outer = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00];
        let length = (frame.len() + 36) as u16;
        let mut ip = [0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 198, 18, 0, 1, 198, 18, 0, 2];
        ip[2..4].copy_from_slice(&length.to_be_bytes());
        let udp = [0xc0, 0x00, 0x12, 0xb5, ((length - 20) >> 8) as u8, (length - 20) as u8, 0, 0];
        let vxlan = [0x08, 0, 0, 0, 0, 0, 7, 0];
        frame.splice(0..0, outer.into_iter().chain(ip).chain(udp).chain(vxlan));
    });
    for behind in [1, 4, 18] {
        device(&format!("{behind} bytes of trailer"), &|frame| frame.extend((1..).take(behind)));
    }
    all
}

#[test]
fn frames_that_a_device_has_changed_are_recognised() {
    let net = Net::new();
    let (craft, file) = (net.file("one.pcap"), net.file("changed.pcap"));
    run(format!("netdyno craft ipv4/udp --sign --size 100 --count 20 -w {craft}")).ok();
    let mut all = Vec::new();
    let mut names = Vec::new();
    for (sequence, frame) in frames(&craft).into_iter().enumerate() {
        for (stream, (name, mut frame)) in changed_by_devices(&frame).into_iter().enumerate() {
            let magic = [0x9d, 0x1e, 0xd7, 0xa0];
            let at = frame.windows(4).rposition(|word| word == magic).expect("a signature");
            frame[at + 6] = stream as u8;
            all.push(frame);
            if sequence == 0 {
                names.push(name);
            }
        }
    }
    write_pcap(&file, 1, &all);
    for how in ["xdp", "xdp-generic", "packet"] {
        let options = format!("--count {} --meter {how}", all.len());
        let report =
            measured(&net, &options, &format!("netdyno replay {file} --on tx0 --topspeed")).ok().json();
        for (stream, name) in names.iter().enumerate() {
            let told = &report["streams"][stream];
            let counts = ["stream", "rx_frames", "lost_frames"].map(|key| number(&told[key]));
            assert_eq!(counts, [stream as u64, 20, 0], "{how}: {name}");
        }
        assert_eq!(number(&report["result"]["rx"]["trailed_frames"]), 60, "{how}");
    }
}

#[test]
fn of_a_million_streams_each_is_told() {
    let net = Net::new();
    let (craft, file) = (net.file("one.pcap"), net.file("streams.pcap"));
    run(format!("netdyno craft ipv4/udp --sign --size 64 --count 3 -w {craft}")).ok();
    let numbers = [0u32, 1, 65_535, 500_000, 999_999, 1_000_000];
    let mut all = Vec::new();
    for mut frame in frames(&craft) {
        for stream in numbers {
            let at = frame.len() - 18 + 4;
            frame[at..at + 3].copy_from_slice(&stream.to_be_bytes()[1..]);
            all.push(frame.clone());
        }
    }
    write_pcap(&file, 1, &all);
    for how in ["xdp", "packet"] {
        let options = format!("--count {} --meter {how} --streams 1000000", all.len());
        let ran = measured(&net, &options, &format!("netdyno replay {file} --on tx0 --topspeed")).ok();
        let report = ran.json();
        let streams = report["streams"].as_array().expect("streams");
        let told: Vec<[u64; 3]> = streams
            .iter()
            .map(|s| ["stream", "rx_frames", "lost_frames"].map(|key| number(&s[key])))
            .collect();
        let wanted: Vec<[u64; 3]> = numbers[..5].iter().map(|n| [u64::from(*n), 3, 0]).collect();
        assert_eq!(told, wanted, "{how}");
        assert!(report["warnings"].to_string().contains("raise --streams"), "{how}: {}", report["warnings"]);
    }
}

#[test]
fn delays_are_told_by_interval_with_their_variation() {
    let net = Net::new();
    let send = "netdyno send ipv4/udp --size 100 --on tx0 --measure rx0 --rate 20kpps --count 20000 --json";
    for how in ["xdp", "packet"] {
        let report = net.run(format!("{send} --meter {how}")).result();
        let (result, stream) = (&report["result"], &report["streams"][0]);
        let latency = &result["latency_ns"];
        assert_eq!(number(&latency["count"]), 20_000, "{how}");
        let of = |name: &str| number(&latency[name]);
        let order = ["min", "p50", "p90", "p99", "p999", "p9999", "p99999", "max"].map(of);
        assert!(order.is_sorted(), "{how}: {order:?}");
        let variation = &result["delay_variation"];
        assert_eq!(number(&variation["pdv_ns"]), of("p999") - of("min"), "{how}");
        // Each CPU that the kernel lets frames arrive on has a first one, which follows none.
        assert!((19_990..20_000).contains(&number(&variation["ipdv_ns"]["count"])), "{how}");
        assert!(number(&variation["ipdv_ns"]["max"]) <= of("max") - of("min"), "{how}");
        let jitter = stream["jitter_ns"].as_f64().expect("a jitter");
        assert!(jitter > 0.0 && jitter < of("max") as f64, "{how}: {jitter}");
        assert_eq!(number(&stream["latency_max_ns"]), of("max"), "{how}");
        // A gap of 50 us was asked for; the mean over the run is that, or more if the machine was held up.
        let gaps = &result["arrival_gap_ns"];
        assert!((19_990..20_000).contains(&number(&gaps["count"])), "{how}");
        let mean = gaps["mean"].as_f64().expect("a mean");
        assert!((45_000.0..1_000_000_000.0).contains(&mean), "{how}: {mean}");
        assert_eq!(number(&stream["gap_max_ns"]), number(&gaps["max"]), "{how}");
        // The worst of all intervals is the worst of all, to the width of a bucket.
        let intervals = report["intervals"].as_array().expect("intervals");
        let worst = intervals.iter().filter_map(|i| i["latency_max_ns"].as_u64()).max().expect("latencies");
        assert!(worst >= of("max") && worst <= of("max") + of("max") / 100, "{how}: {worst}");
        assert!(intervals.iter().filter(|i| i["latency_p50_ns"].is_u64()).count() >= 5, "{how}");
    }
}

/// The result of a run while which somebody else replays a capture on its interface.
fn sent_beside(net: &Net, send: &str, capture: &str) -> Value {
    let left = || number(&net.run("ip -s -j link show tx0").ok().json()[0]["stats64"]["tx"]["packets"]);
    let before = left();
    let running = net.start(send);
    eventually("frames leave tx0", || left() > before + 20);
    // The run may have the interface's AF_XDP queue.
    net.run(format!("netdyno replay {capture} --on tx0 --topspeed --engine packet")).ok();
    running.wait().with(1).json()
}

#[test]
fn content_that_changes_on_the_way_is_told() {
    let net = Net::new();
    let frame = "ipv4/udp(sport=1024..65535)/raw(\"payload\")";
    let (craft, file) = (net.file("same.pcap"), net.file("spoilt.pcap"));
    run(format!("netdyno craft {frame} --sign --size 300,600 --count 10 -w {craft}")).ok();
    // Somebody sends some of the run's frames again: three with another byte of payload, one with other headers and one
    // in a VLAN, which is no corruption.
    let mut all = frames(&craft);
    for (number, at) in [(0, 50), (3, 42), (4, 278)] {
        let end = all[number].len() - 18;
        all[number][at.min(end - 1)] ^= 1;
    }
    all[5][22] -= 1;
    all[6].splice(12..12, [0x81, 0x00, 0x00, 0x07]);
    write_pcap(&file, 1, &all);
    let send = format!(
        "netdyno send {frame} --size 300,600 --on tx0 --rate 200pps --duration 2s --json --check-content"
    );
    for how in ["xdp", "xdp-generic", "packet"] {
        let report = sent_beside(&net, &format!("{send} --measure rx0 --meter {how}"), &file);
        assert_eq!(number(&report["result"]["rx"]["corrupted_frames"]), 3, "{how}");
        assert_eq!(number(&report["streams"][0]["corrupted_frames"]), 3, "{how}");
        assert_eq!(number(&report["result"]["rx"]["duplicated_frames"]), 10, "{how}");
        let said = reasons(&report);
        assert!(
            said.iter().any(|r| r == "3 frames arrived with other content than was sent"),
            "{how}: {said:?}"
        );
        // With nobody in between nothing is corrupted.
        let clean = net.run(format!("{send} --measure rx0 --meter {how}")).result();
        assert_eq!(number(&clean["result"]["rx"]["corrupted_frames"]), 0, "{how}");
    }
    let plain = "netdyno send ipv4/udp --on tx0 --topspeed --count 1 --check-content";
    net.run(plain).refused(&["--check-content", "--measure"]);
    net.run(format!("{plain} --size 64 --measure rx0")).refused(&["--check-content", "--size"]);
    net.run(format!("netdyno replay {file} --on tx0 --topspeed --measure rx0 --check-content"))
        .refused(&["--check-content", "of a capture"]);
}

#[test]
fn sctp_frames_are_measured_by_live_frames_and_their_content_is_checked() {
    let net = Net::new();
    let frame = "ipv4(src=10.0.0.0/24)/sctp(sport=1024..65535)/sctpdata(tsn=0..9999)/raw(\"payload\")";
    let (craft, file) = (net.file("same.pcap"), net.file("spoilt.pcap"));
    run(format!("netdyno craft {frame} --sign --size 302 --count 6 -w {craft}")).ok();
    let mut all = frames(&craft);
    // Two frames with another byte of payload, the first and the last; one with another transmission sequence number.
    all[0][62] ^= 1;
    all[1][279] ^= 1;
    all[2][53] ^= 1;
    write_pcap(&file, 1, &all);
    let send = format!(
        "netdyno send {frame} --size 302 --on tx0 --rate 200pps --duration 2s --json --check-content --measure rx0"
    );
    for (engine, meter) in [("xdp", "xdp"), ("packet", "packet")] {
        let report = sent_beside(&net, &format!("{send} --engine {engine} --meter {meter}"), &file);
        assert_eq!(number(&report["result"]["rx"]["corrupted_frames"]), 2, "{engine}");
        assert_eq!(number(&report["result"]["rx"]["duplicated_frames"]), 6, "{engine}");
        let clean = net.run(format!("{send} --engine {engine} --meter {meter}")).result();
        assert_eq!(number(&clean["result"]["rx"]["corrupted_frames"]), 0, "{engine}");
    }
}

#[test]
fn delays_by_a_clock_that_hosts_share_come_with_its_error() {
    let net = Net::new();
    for (engine, how) in [("xdp", "xdp"), ("packet", "packet")] {
        let send = format!(
            "netdyno send ipv4/udp --sign --on tx0 --topspeed --count 2000 --engine {engine} --clock tai"
        );
        let report =
            measured(&net, &format!("--count 2000 --drop --meter {how} --clock tai"), &send).with(0).json();
        let (clock, latency) = (&report["result"]["latency_clock"], &report["result"]["latency_ns"]);
        assert_eq!(clock["name"], "tai", "{how}");
        assert!(clock["max_error_ns"].is_u64() && clock["synchronised"].is_boolean(), "{how}: {clock}");
        assert!(clock["stepped_ns"].is_null(), "{how}: {clock}");
        assert_eq!(number(&latency["count"]), 2000, "{how}");
        // The clocks that may be mistaken for each other are 37 s apart, or all the time since 1970.
        assert!(number(&latency["p50"]) < 20_000_000_000, "{how}: {latency}");
        // A meter that is told another clock finds times of years, or of the future.
        let wrong = measured(&net, &format!("--count 2000 --drop --meter {how}"), &send).json();
        let median = wrong["result"]["latency_ns"]["p50"].as_u64().unwrap_or(u64::MAX);
        assert!(median > 2_000_000_000, "{how}: {median}");
    }
}

#[test]
fn who_timed_arrivals_is_said_and_hardware_that_cannot_is_refused() {
    let net = Net::new();
    let send = "netdyno send ipv4/udp --on tx0 --measure rx0 --topspeed --count 2000 --sign";
    for who in ["auto", "software"] {
        let report = net.run(format!("{send} --timestamps {who} --json")).with(0).json();
        assert_eq!(report["result"]["latency_clock"]["arrivals"], "software", "{who}");
        assert!(report["result"]["latency_clock"]["hardware"].is_null(), "{who}");
    }
    // Nothing is sent, and nothing stays attached.
    let no_clock = ["--timestamps hardware on rx0", "no PTP hardware clock"];
    net.run(format!("{send} --timestamps hardware")).refused(&no_clock);
    net.run_there("netdyno measure --on rx0 --duration 1s --timestamps hardware").refused(&no_clock);
    net.run("netdyno trial --on tx0 --measure rx0 --rate 1kpps --duration 1s --timestamps hardware")
        .refused(&no_clock);
    // A packet socket would see them, were there any; generic XDP never does.
    net.run(format!("{send} --timestamps hardware --meter packet")).refused(&no_clock);
    net.run(format!("{send} --timestamps hardware --meter xdp-generic"))
        .refused(&["generic XDP", "--meter packet"]);
    assert!(!net.run_there("ip -d link show rx0").ok().stdout.contains("prog/xdp"));
    let said = net.run_there("netdyno doctor rx0").ok().stdout;
    assert!(said.contains("time stamps") && said.contains("no PTP hardware clock"), "{said}");
}
