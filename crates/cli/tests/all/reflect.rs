//! `netdyno reflect`, and the round trips that it makes possible.

use crate::common::*;
use serde_json::Value;

/// A reflector on rx0 that is ready.
fn reflector(net: &Net, options: &str) -> Running {
    let mut reflector = net.start_there(format!("netdyno reflect --on rx0 --json {options}"));
    reflector.until_it_says("reflecting on rx0");
    reflector
}

/// Ends it and gives its result.
fn interrupted(reflector: Running) -> Value {
    reflector.signal("INT");
    reflector.wait().ok().json()
}

/// What a reflector did with the frames: all, sent back, echo replies, groups, resolution, unsigned, malformed.
fn counts(report: &Value) -> [u64; 7] {
    let reflection = &report["result"]["reflection"];
    let of = |key: &str| number(&reflection[key]);
    [
        number(&report["result"]["rx"]["frames"]),
        of("reflected_frames"),
        of("echo_replies"),
        of("group_frames"),
        of("resolution_frames"),
        of("unsigned_frames"),
        of("malformed_frames"),
    ]
}

/// What tcpdump sees come in at tx0 while `send` runs, once `count` frames did and no more.
fn returned(net: &Net, count: usize, send: impl FnOnce()) -> Vec<Vec<u8>> {
    let file = net.file("returned.pcap");
    let mut tcpdump = net.start(format!("tcpdump -Z root -n -U -B 16384 -Q in -i tx0 -w {file}"));
    tcpdump.until_it_says("listening on");
    send();
    eventually(&format!("{count} frames came back"), || frames(&file).len() >= count);
    std::thread::sleep(std::time::Duration::from_millis(100));
    tcpdump.signal("INT");
    tcpdump.wait().ok();
    let frames = frames(&file);
    std::fs::remove_file(&file).expect("the capture");
    frames
}

/// An XDP program on tx0 that lets everything pass: without one, that end of a veth takes nothing that XDP sends back.
fn program_at_tx0(net: &Net) -> Running {
    let mut meter = net.start("netdyno measure --on tx0 --meter xdp");
    meter.until_it_says("measuring on tx0");
    meter
}

fn craft(net: &Net, expression: &str, count: usize) -> Vec<Vec<u8>> {
    let file = net.file("crafted.pcap");
    run(format!("netdyno craft {expression} --size 100 --count {count} -w {file}")).ok();
    frames(&file)
}

#[test]
fn signed_frames_come_back_and_their_round_trip_is_measured() {
    let net = Net::with(&::lab::Options { mtu: 9000, ..Default::default() });
    for (expression, size) in [
        ("ipv4(dst=198.18.0.2)/udp(sport=1024..2047)", 64),
        ("ipv4/tcp(sport=1024..2047)", 1518),
        ("ipv6(dst=2001:db8::2)/udp(dport=1..99)", 100),
        ("vlan(vid=7)/ipv4/udp", 128),
        ("qinq(vid=5)/vlan(vid=7)/ipv6/tcp", 200),
        ("ipv4/udp", 9000),
        ("ether(type=0x88b5)/raw", 64),
    ] {
        let reflector = reflector(&net, "");
        let send = format!("netdyno send {expression} --size {size} --on tx0 --topspeed --count 3000");
        let report = net.run(format!("{send} --round-trip --json")).result();
        let result = &report["result"];
        assert_eq!(result["round_trip"], true, "{expression}");
        assert_eq!(number(&result["loss"]["frames"]), 0, "{expression}");
        assert_eq!(number(&result["rx"]["frames"]), 3000, "{expression}");
        assert_eq!(number(&result["rx"]["bytes"]), 3000 * (size - 4), "{expression}");
        let latency = &result["latency_ns"];
        assert_eq!(number(&latency["count"]), 3000, "{expression}");
        let (least, most) = (number(&latency["min"]), number(&latency["max"]));
        assert!(least > 100 && least <= most, "{expression}: {latency}");
        let stream = &report["streams"][0];
        let told = ["tx_frames", "rx_frames", "lost_frames", "duplicated_frames", "reordered_frames"];
        assert_eq!(told.map(|key| number(&stream[key])), [3000, 3000, 0, 0, 0], "{expression}");
        assert_eq!(report["resolved"]["interfaces"], serde_json::json!(["tx0"]));

        let there = interrupted(reflector);
        assert_eq!(counts(&there), [3000, 3000, 0, 0, 0, 0, 0], "{expression}");
        let tx = &there["result"]["tx"];
        assert_eq!([&tx["frames"], &tx["bytes"]].map(number), [3000, 3000 * (size - 4)], "{expression}");
        let counter = &tx["interface_counters"][0];
        assert_eq!([&counter["tx_packets"], &counter["missing_frames"]].map(number), [3000, 0]);
        assert_eq!(there["command"], "reflect");
    }
}

#[test]
fn every_engine_and_meter_measures_the_round_trip() {
    let net = Net::new();
    for engine in ["packet", "packet-ring", "xdp"] {
        let reflector = reflector(&net, "");
        let send =
            "netdyno send ipv4(dst=198.18.0.0/24)/udp(sport=1024..2047) --size 64 --on tx0 --rate 10kpps";
        let report = net.run(format!("{send} --engine {engine} --count 2000 --round-trip --json")).result();
        assert_eq!(number(&report["result"]["rx"]["frames"]), 2000, "{engine}");
        assert_eq!(number(&report["result"]["loss"]["frames"]), 0, "{engine}");
        assert_eq!(counts(&interrupted(reflector))[..2], [2000, 2000], "{engine}");
    }
    // Meters that leave a veth without XDP see what a generic reflector sends.
    for meter in ["xdp-generic", "packet"] {
        let reflector = reflector(&net, "--generic");
        let send = "netdyno send ipv4/udp --size 64 --on tx0 --topspeed --count 2000 --engine packet";
        let report = net.run(format!("{send} --meter {meter} --round-trip --json")).result();
        assert_eq!(number(&report["result"]["rx"]["frames"]), 2000, "{meter}");
        assert_eq!(report["environment"]["meter"]["name"], meter);
        assert_eq!(interrupted(reflector)["environment"]["engine"]["name"], "xdp-generic");
    }
}

#[test]
fn addresses_and_ports_change_places_and_nothing_else_does() {
    let net = Net::new();
    // One program does all: each way of it for some frames, and tags where the kernel takes them off (--generic).
    for (there, back, ways) in [
        (
            "ipv4(src=198.18.0.1,dst=198.18.0.2)/udp(sport=1000,dport=2000)",
            "ipv4(src=198.18.0.2,dst=198.18.0.1)/udp(sport=2000,dport=1000)",
            ["", "--mac-only"],
        ),
        (
            "ipv6(src=2001:db8::1,dst=2001:db8:9::2)/tcp(sport=1000,dport=2000)",
            "ipv6(src=2001:db8:9::2,dst=2001:db8::1)/tcp(sport=2000,dport=1000)",
            ["", "--mac-only"],
        ),
        (
            "vlan(vid=9)/ipv4(src=198.18.0.1,dst=198.18.0.2)/tcp(sport=1,dport=2)",
            "vlan(vid=9)/ipv4(src=198.18.0.2,dst=198.18.0.1)/tcp(sport=2,dport=1)",
            ["", "--generic"],
        ),
    ] {
        let (to, from) = (
            "ether(src=02:00:00:00:00:01,dst=02:00:00:00:00:02)",
            "ether(src=02:00:00:00:00:02,dst=02:00:00:00:00:01)",
        );
        for options in ways {
            let _program = (options != "--generic").then(|| program_at_tx0(&net));
            let reflector = reflector(&net, options);
            let back = if options == "--mac-only" { there } else { back };
            let wanted = craft(&net, &format!("{from}/{back}"), 20);
            let got = returned(&net, 20, || {
                net.run(format!(
                    "netdyno send {to}/{there} --size 100 --engine packet --on tx0 --topspeed --count 20"
                ))
                .ok();
            });
            assert_same_frames(&got, &wanted);
            assert_eq!(counts(&interrupted(reflector))[..2], [20, 20], "{there} {options}");
        }
    }
}

/// The kernel hands an echo reply to this kind of socket only if its checksum is right.
const PING: &str = r#"
import socket, sys
v6 = ":" in sys.argv[1]
family, protocol = (socket.AF_INET6, socket.IPPROTO_ICMPV6) if v6 else (socket.AF_INET, socket.IPPROTO_ICMP)
s = socket.socket(family, socket.SOCK_DGRAM, protocol)
s.settimeout(5)
for n in range(5):
    payload = bytes(range(n, n + 50))
    s.sendto(bytes([128 if v6 else 8, 0, 0, 0, 0, 0, 0, n]) + payload, (sys.argv[1], 0))
    reply = s.recvfrom(200)[0]
    assert reply[0] == (129 if v6 else 0) and reply[7] == n and reply[8:] == payload, reply
print("answered")
"#;

#[test]
fn ping_is_answered_over_both_protocols_and_addresses_still_resolve() {
    let net = Net::new();
    let script = net.file("ping.py");
    std::fs::write(&script, PING).expect("a file");
    for (line, there) in [
        ("ip addr add 198.18.0.1/24 dev tx0", false),
        ("ip addr add 2001:db8::1/64 dev tx0 nodad", false),
        ("ip addr add 198.18.0.2/24 dev rx0", true),
        ("ip addr add 2001:db8::2/64 dev rx0 nodad", true),
    ] {
        if there { net.run_there(line) } else { net.run(line) }.ok();
    }
    let mut allow = net.command("sh -c");
    allow.arg("echo 0 2147483647 >/proc/sys/net/ipv4/ping_group_range");
    start(allow).wait().ok();
    for options in ["", "--generic"] {
        let _program = options.is_empty().then(|| program_at_tx0(&net));
        for address in ["198.18.0.2", "2001:db8::2"] {
            let reflector = reflector(&net, options);
            // The first packet of each needs the other's Ethernet address: its host answers that, behind the reflector.
            net.run("ip neigh flush dev tx0").ok();
            assert_eq!(net.run(format!("python3 {script} {address}")).ok().stdout, "answered\n");
            let [_, reflected, echoes, ..] = counts(&interrupted(reflector));
            assert_eq!((reflected, echoes), (5, 5), "{address} {options}");
        }
    }
}

#[test]
fn groups_resolution_and_what_was_not_asked_for_pass_to_the_host() {
    let net = Net::new();
    for (options, wanted) in [("", [72, 30, 0, 16, 16, 0, 10]), ("--only-signed", [72, 10, 0, 16, 0, 36, 10])]
    {
        let reflector = reflector(&net, options);
        // Some, and how many of them the host behind the reflector sees.
        let mut seen = 0;
        for (frames, signed, count, host) in [
            ("ipv4/udp", true, 10, 0),
            ("ipv4/udp", false, 10, 10 * usize::from(!options.is_empty())),
            ("ipv6/tcp", false, 10, 10 * usize::from(!options.is_empty())),
            ("ether(dst=ff:ff:ff:ff:ff:ff)/ipv4/udp", false, 8, 8),
            ("ether(dst=01:00:5e:00:00:01)/ipv4/udp", true, 8, 8),
            ("arp(op=who-has)", false, 8, 8),
            ("ipv6/icmpv6(type=135)", false, 8, 8),
            // Of nobody: a group as the source.
            ("ether(src=03:00:00:00:00:01)/ipv4/udp", true, 10, 0),
        ] {
            let sign = if signed { "--sign" } else { "" };
            let got = net.received(host, || {
                net.run(format!(
                    "netdyno send {frames} {sign} --engine packet --on tx0 --topspeed --count {count}"
                ))
                .ok();
            });
            assert_eq!(got.len(), host, "{options} {frames}");
            seen += count;
        }
        assert_eq!(seen, wanted[0]);
        // Nobody at tx0 takes what comes back, and that is said.
        reflector.signal("INT");
        let ran = reflector.wait().with(1);
        let report = ran.json();
        assert_eq!(counts(&report), wanted, "{options}");
        let said = &reasons(&report)[0];
        assert!(
            said.contains("rx0 counts only 0 as transmitted") && said.contains("an XDP program of its own"),
            "{said}"
        );
    }
}

#[test]
fn without_a_reflector_the_verdict_names_it() {
    let net = Net::new();
    let send = "netdyno send ipv4/udp --size 64 --on tx0 --topspeed --count 500 --round-trip";
    let report = net.run(format!("{send} --json")).with(1).json();
    let said = reasons(&report);
    assert!(said.len() == 1 && said[0].starts_with("nothing came back"), "{said:?}");
    assert!(said[0].contains("netdyno reflect --on IFACE"), "{said:?}");
    assert_eq!(
        [&report["result"]["loss"]["frames"], &report["result"]["rx"]["frames"]].map(number),
        [500, 0]
    );
    let text = net.run(send).with(1).stdout;
    assert!(text.contains("came back") && !text.contains("Lower --rate"), "{text}");
    // A host that answers with ICMP errors, which quote the frames to their signatures, sends nothing back either.
    for meter in ["xdp", "packet"] {
        // Anew, because a host answers with few errors a second.
        let net = Net::with(&::lab::Options { addresses: true, ..Default::default() });
        let send =
            "netdyno send ipv4(src=198.18.0.1,dst=198.18.0.2)/udp --size 64 --on tx0 --topspeed --count 500";
        let report =
            net.run(format!("{send} --engine packet --meter {meter} --round-trip --json")).with(1).json();
        assert!(reasons(&report)[0].starts_with("nothing came back"), "{meter}: {:?}", reasons(&report));
        assert!(number(&report["result"]["rx"]["foreign_frames"]) > 0, "{meter}");
    }
}

#[test]
fn a_capture_makes_the_round_trip_and_what_cannot_be_signed_is_told() {
    let net = Net::new();
    let (file, short) = (net.file("x.pcap"), net.file("short.pcap"));
    run(format!("netdyno craft ipv4(src=198.18.0.0/26)/udp --size 200 --count 400 -w {file}")).ok();
    // No room for a signature in these.
    run(format!("netdyno craft ipv4/tcp --count 50 -w {short}")).ok();
    for how in ["--preload", "--stream"] {
        let reflector = reflector(&net, "");
        let replay = format!("netdyno replay {file} {short} --on tx0 --topspeed --round-trip --json {how}");
        let report = net.run(replay).ok().json();
        let result = &report["result"];
        assert_eq!(number(&result["tx"]["frames"]), 450, "{how}");
        assert_eq!([&result["rx"]["frames"], &result["loss"]["frames"]].map(number), [400, 0], "{how}");
        let warnings = report["warnings"].to_string();
        assert!(warnings.contains("50 frames could not be signed"), "{how}: {warnings}");
        assert_eq!(counts(&interrupted(reflector))[..2], [450, 450], "{how}");
    }
}

#[test]
fn every_rendering_calls_it_a_round_trip() {
    let net = Net::new();
    let dir = net.file("report");
    let _reflector = reflector(&net, "");
    let send = "netdyno send ipv4/udp --size 64 --on tx0 --topspeed --count 300 --round-trip";
    let text = net.run(format!("{send} --report {dir}")).ok().stdout;
    assert!(text.contains("\nround trip min ") && text.contains("\ncame back"), "{text}");
    let page = std::fs::read_to_string(format!("{dir}/report.html")).expect("a page");
    assert!(page.contains("Round trip, median") && page.contains("every frame came back"), "the page");
}

#[test]
fn another_program_stays_and_is_named_and_the_reflector_can_be_named_too() {
    let net = Net::new();
    let mut meter = net.start_there("netdyno measure --on rx0 --meter xdp");
    meter.until_it_says("measuring on rx0");
    for generic in ["", "--generic"] {
        net.run_there(format!("netdyno reflect --on rx0 --duration 1s {generic}"))
            .refused(&["reflecting on rx0", "(meter) is attached already and is left alone"]);
    }
    meter.signal("INT");
    meter.wait().ok();
    let reflector = reflector(&net, "");
    net.run_there("netdyno reflect --on rx0 --duration 1s").refused(&["(reflect) is attached already"]);
    net.run_there("netdyno measure --on rx0 --duration 1s --meter xdp").refused(&["(reflect) is attached"]);
    assert_eq!(counts(&interrupted(reflector))[..2], [0, 0]);
    let link = net.run_there("ip -d link show rx0").ok().stdout;
    assert!(!link.contains("prog/xdp") && link.contains("promiscuity 0 "), "{link}");
}

#[test]
fn it_ends_after_its_time_its_count_and_with_its_interface() {
    let net = Net::new();
    let ran = net.run_there("netdyno reflect --on rx0 --duration 300ms --count 5 --json").with(1);
    assert_eq!(reasons(&ran.json()), ["0 of the 5 frames waited for were sent back"]);

    let reflector_of_300 = reflector(&net, "--count 300");
    net.run("netdyno send ipv4/udp --size 64 --on tx0 --topspeed --count 300 --round-trip --engine packet")
        .ok();
    assert_eq!(counts(&reflector_of_300.wait().ok().json())[..2], [300, 300]);

    let orphan = reflector(&net, "");
    net.run_there("ip link delete rx0").ok();
    let ran = orphan.wait().with(1);
    assert!(reasons(&ran.json())[0].starts_with("rx0 was removed"), "{}", ran.stdout);
}

#[test]
fn the_interface_of_the_default_route_is_not_reflected_on_unless_named() {
    let net = Net::with(&::lab::Options { addresses: true, ..Default::default() });
    net.run_there("ip route add default via 198.18.0.1").ok();
    net.run_there("netdyno reflect --on rx0 --duration 1s")
        .refused(&["rx0 carries the default route", "--yes-disrupt rx0"]);
    net.run_there("netdyno reflect --on rx0 --duration 100ms --yes-disrupt rx0").ok();
}

#[test]
fn words_that_contradict_each_other_are_refused() {
    let net = Net::new();
    let send = "netdyno send ipv4/udp --size 64 --topspeed --count 1 --round-trip";
    net.run(format!("{send} --on tx0 --measure rx0")).with(2).says(&["--measure", "--round-trip"]);
    net.run(format!("{send} --on tx0 --engine null")).refused(&["--round-trip has nothing to measure"]);
    net.run("netdyno send ipv4/tcp --size 64 --on tx0 --topspeed --count 1 --round-trip")
        .refused(&["18 for the signature included"]);
}
