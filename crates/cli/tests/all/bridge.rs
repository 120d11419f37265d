//! `netdyno bridge` and `netdyno tcpbridge`: two hosts with a bridge between them.

use crate::common::*;
use crate::leftovers::{is_loaded, programs_of};
use ::lab::Namespace;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

/// Host A (a0), the bridge M (west, east), host B (b0). All are silent: no IPv6, no ARP.
pub struct Three {
    a: Namespace,
    m: Namespace,
    b: Namespace,
    dir: Folder,
}

impl Three {
    pub fn new() -> Three {
        let namespace = || Namespace::new().expect("a namespace (as root)");
        let three = Three { a: namespace(), m: namespace(), b: namespace(), dir: folder() };
        for (near, far, there, number) in [("west", "a0", &three.a, 1), ("east", "b0", &three.b, 2)] {
            three.m(format!(
                "ip link add {near} address 02:00:00:00:0e:0{number} type veth peer name {far} address \
                 02:00:00:00:00:0{number} netns {}",
                handle(there)
            ));
            three.m(format!("ip link set {near} addrgenmode none up"));
            on(there, &format!("ip link set {far} addrgenmode none up"));
            on(there, &format!("ip address add 198.18.0.{number}/24 dev {far}"));
            let other = 3 - number;
            on(there, &format!("ip neigh add 198.18.0.{other} lladdr 02:00:00:00:00:0{other} dev {far}"));
        }
        for (host, name) in [(&three.a, "a0"), (&three.b, "b0"), (&three.m, "west"), (&three.m, "east")] {
            eventually("the cables are in", || {
                on(host, &format!("ip link show {name}")).stdout.contains("LOWER_UP")
            });
        }
        three
    }

    /// Far ends that take frames from XDP.
    fn for_xdp(self) -> Three {
        on(&self.a, "ethtool -K a0 gro on");
        on(&self.b, "ethtool -K b0 gro on");
        self
    }

    fn m(&self, line: impl AsRef<str>) -> Ran {
        on(&self.m, line.as_ref())
    }

    pub fn middle(&self) -> &Namespace {
        &self.m
    }

    pub fn sender(&self) -> &Namespace {
        &self.a
    }

    /// Frames that the middle sent by an interface.
    pub fn left_by(&self, interface: &str) -> u64 {
        let link = self.m(format!("ip -s -j link show {interface}")).json();
        number(&link[0]["stats64"]["tx"]["packets"])
    }

    /// A bridge that is ready.
    fn bridge(&self, options: &str) -> Running {
        let mut bridge =
            start(inside(&self.m, &format!("netdyno bridge --between west east --json {options}")));
        bridge.until_it_says("bridging west");
        bridge
    }

    fn refused(&self, options: &str, words: &[&str]) {
        start(inside(&self.m, &format!("netdyno bridge {options}"))).wait().refused(words);
    }

    /// `netdyno replay` or `send` on A's interface.
    fn send(&self, what: &str) {
        on(&self.a, &format!("netdyno {what} --on a0 --engine packet --quiet"));
    }

    /// What tcpdump sees arrive at B while `send` runs, once `count` frames did and no more.
    fn received(&self, count: usize, send: impl FnOnce()) -> Vec<Vec<u8>> {
        let file = path(&self.dir, "received.pcap");
        let mut tcpdump =
            start(inside(&self.b, &format!("tcpdump -Z root -n -U -B 16384 -Q in -i b0 -w {file}")));
        tcpdump.until_it_says("listening on");
        send();
        eventually(&format!("{count} frames arrived"), || frames(&file).len() >= count);
        std::thread::sleep(std::time::Duration::from_millis(100));
        tcpdump.signal("INT");
        tcpdump.wait().ok();
        let frames = frames(&file);
        std::fs::remove_file(&file).expect("the capture");
        frames
    }

    /// A capture of many kinds of frames, and its name.
    fn capture(&self) -> (String, Vec<Vec<u8>>) {
        let file = path(&self.dir, "sent.pcap");
        let parts = [
            "ipv4(src=10.0.0.0/24,dst=198.18.0.2)/udp(sport=1024..1123,dport=53)",
            "ipv4(src=10.9.0.0/24,dst=10.0.0.7)/tcp(sport=80,dport=1024..1123)",
            "vlan(vid=7)/ipv4(src=10.0.0.1,dst=10.0.0.2)/udp(dport=7)",
            "ipv6(src=2001:db8::1,dst=2001:db8:9::2)/tcp(sport=1000,dport=2000)",
            "ipv4(src=10.0.0.3,dst=10.0.0.4)/icmp",
            "arp(op=1,spa=10.0.0.5,tpa=10.0.0.6)",
            "ether(type=0x88b5)/raw",
        ];
        let mut all = Vec::new();
        for (size, part) in [100, 1514, 64, 300, 98, 64, 61].into_iter().zip(parts) {
            run(format!("netdyno craft {part} --size {size} --count 20 -w {file}")).ok();
            all.extend(frames(&file));
        }
        write_pcap(&file, 1, &all);
        (file, all)
    }
}

fn on(namespace: &Namespace, line: &str) -> Ran {
    start(inside(namespace, line)).wait().ok()
}

/// Ends a bridge and gives its result.
pub fn interrupted(bridge: Running) -> Value {
    bridge.signal("INT");
    bridge.wait().ok().json()
}

/// Frames in and out: from west to east, and back.
fn passed(report: &Value) -> Vec<[u64; 2]> {
    let passages = report["result"]["passages"].as_array().expect("passages");
    passages.iter().map(|p| [number(&p["received"]["frames"]), number(&p["forwarded"]["frames"])]).collect()
}

/// Sends some megabytes from A to B over TCP: whether they came as they were sent.
fn tcp_passes(three: &Three) {
    let bytes: Vec<u8> = (0..3_000_000u32).map(|n| (n * 7 % 251) as u8).collect();
    let listener = three.b.run_in(|| TcpListener::bind("198.18.0.2:0").expect("a socket")).expect("B");
    let address = listener.local_addr().expect("its address");
    let receiver = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        stream.set_read_timeout(Some(std::time::Duration::from_secs(20))).expect("a time-out");
        let mut got = Vec::new();
        stream.read_to_end(&mut got).expect("all of it");
        got
    });
    let mut stream = three.a.run_in(|| TcpStream::connect(address).expect("a connection")).expect("A");
    stream.write_all(&bytes).expect("sent");
    drop(stream);
    assert!(receiver.join().expect("the receiver") == bytes, "other bytes");
}

#[test]
fn hosts_talk_through_every_way_and_nothing_comes_round_again() {
    let three = Three::new();
    let plain = ["tc", "packet", "auto"].map(|engine| (engine, format!("--engine {engine}")));
    let edited = ("edits", "--ttl 33 --fix-checksums".to_owned());
    for (engine, options) in plain.into_iter().chain([edited]) {
        let bridge = three.bridge(&options);
        on(&three.a, "ping -c 2 -i 0.1 -W 5 198.18.0.2");
        tcp_passes(&three);
        let report = interrupted(bridge);
        let name = &report["environment"]["engine"]["name"];
        assert_eq!(name, if engine == "tc" || engine == "auto" { "tc" } else { "packet" }, "{engine}");
        // ICMP and TCP both ways; all that came in went out, once.
        for [received, forwarded] in passed(&report) {
            assert!(received > 4 && received == forwarded, "{engine}: {report}");
        }
        let bridge = three.bridge(&options);
        // Nobody answers these.
        three.send("send ether(type=0x88b5)/raw --size 100 --count 50 --topspeed");
        assert_eq!(passed(&interrupted(bridge)), [[50, 50], [0, 0]], "{engine}");
    }
}

/// How many frames a packet of TCP over IPv4 is, or will be, on the wire.
fn wire_frames(packet: &[u8]) -> u64 {
    let ip = usize::from(packet[14] & 15) * 4;
    let header = ip + usize::from(packet[14 + ip + 12] >> 4) * 4;
    let length = usize::from(u16::from_be_bytes([packet[16], packet[17]]));
    ((length - header).div_ceil(1_500 - header) as u64).max(1)
}

#[test]
fn what_a_shaper_behind_the_bridge_drops_of_super_frames_is_counted_by_its_frames() {
    let three = Three::new();
    three.m("tc qdisc add dev east root tbf rate 40mbit burst 16kb limit 30kb");
    let bridge = three.bridge("--engine tc");
    let file = path(&three.dir, "arrived.pcap");
    let mut tcpdump = start(inside(&three.b, &format!("tcpdump -Z root -n -B 65536 -Q in -i b0 -w {file}")));
    tcpdump.until_it_says("listening on");
    tcp_passes(&three);
    let shaper = |field: &str| {
        let shapers = three.m("tc -s -j qdisc show dev east root").json();
        number(&shapers[0][field])
    };
    eventually("the shaper is empty", || shaper("qlen") == 0);
    bridge.signal("INT");
    let report = bridge.wait().with(1).json();
    std::thread::sleep(std::time::Duration::from_millis(100));
    tcpdump.signal("INT");
    tcpdump.wait().ok().says(&["\n0 packets dropped by kernel"]);
    let arrived: u64 = frames(&file).iter().map(|packet| wire_frames(packet)).sum();
    let there = &report["result"]["passages"][0];
    let counted = &report["result"]["tx"]["interface_counters"][0];
    let (forwarded, missing) = (number(&there["forwarded"]["frames"]), number(&counted["missing_frames"]));
    // There were super-frames, and the shaper dropped some, or some of what it cut.
    assert!(number(&there["forwarded_buffers"]) < forwarded, "{there}");
    assert_eq!(counted["sent_buffers"], there["forwarded_buffers"]);
    assert!(shaper("drops") > 0, "nothing was dropped");
    assert_eq!(forwarded, arrived + missing, "what was forwarded arrived or is missing: {counted}");
    assert_eq!(number(&counted["foreign_frames"]), 0, "{counted}");
    let queue = &counted["queue"];
    assert_eq!((queue["kind"].as_str(), number(&queue["passed_frames"])), (Some("tbf"), arrived));
    assert_eq!(number(&queue["dropped"]), shaper("drops"));
    assert!(reasons(&report)[0].contains("did not get through its queueing discipline (tbf)"), "{report}");
}

#[test]
fn native_xdp_finishes_checksums_that_a_veth_left_to_hardware() {
    let three = Three::new().for_xdp();
    let bridge = three.bridge("");
    on(&three.a, "ping -c 2 -i 0.1 -W 5 198.18.0.2");
    tcp_passes(&three);
    let report = interrupted(bridge);
    assert_eq!(report["environment"]["engine"]["name"], "xdp");
    let there = &report["result"]["passages"][0];
    assert!(number(&there["completed_checksums"]) > 1000, "{there}");
    // Others' frames stay as they are, wrong checksums and all.
    let (file, sent) = three.capture();
    let bridge = three.bridge("--engine xdp");
    let got = three.received(sent.len(), || three.send(&format!("replay {file} --topspeed")));
    assert_same_frames(&got, &sent);
    interrupted(bridge);
}

#[test]
fn frames_come_out_as_edit_writes_them() {
    let three = Three::new();
    let (file, sent) = three.capture();
    for edits in [
        "",
        "--map-ip 10.0.0.0/8=172.16.0.0/12 --ttl -1",
        "--src-mac 02:aa:00:00:00:01,02:aa:00:00:00:02 --map-port 53=5353 --tos 8 --fix-checksums",
        "--vlan-add 5 --vlan-kind 802.1ad --cut-to-mtu 600 --scramble-ip 7",
        "--vlan-del --drop-unsupported",
    ] {
        let written = path(&three.dir, "edited.pcap");
        // Two addresses: the second is that of the other side's frames, of which there are none here.
        let alone = edits.replace(",02:aa:00:00:00:02", "");
        run(format!("netdyno edit {file} -w {written} {alone}")).ok();
        let wanted = frames(&written);
        let bridge =
            three.bridge(&format!("{edits} --engine {}", if edits.is_empty() { "tc" } else { "packet" }));
        let got = three.received(wanted.len(), || three.send(&format!("replay {file} --topspeed")));
        assert_same_frames(&got, &wanted);
        let report = interrupted(bridge);
        assert_eq!(passed(&report)[0], [sent.len() as u64, wanted.len() as u64], "{edits}");
        let left = report["result"]["passages"][0]["left_out_frames"].as_u64().unwrap_or(0);
        assert_eq!(left, (sent.len() - wanted.len()) as u64, "{edits}");
    }
}

#[test]
fn only_what_is_chosen_passes_in_the_direction_and_number_that_is_asked_for() {
    let three = Three::new();
    let (file, sent) = three.capture();
    let replay = || three.send(&format!("replay {file} --topspeed"));
    let source = |frame: &Vec<u8>| frame[12..14] == [8, 0] && frame[26..29] == [10, 9, 0];
    let udp53 = |frame: &Vec<u8>| frame[12..14] == [8, 0] && frame[23] == 17 && frame[36..38] == [0, 53];
    let all = |choose: &dyn Fn(usize, &Vec<u8>) -> bool| -> Vec<Vec<u8>> {
        let chosen = sent.iter().enumerate().filter(|(at, frame)| choose(*at, frame));
        chosen.map(|(_, frame)| frame.clone()).collect()
    };
    for (options, wanted) in [
        ("--exclude S:10.9.0.0/24", all(&|_, frame| !source(frame))),
        ("--include P:1-5,9,130-", all(&|at, _| at < 5 || at == 8 || at >= 129)),
        ("--include F:udp[2:2]=53", all(&|_, frame| udp53(frame))),
        ("--include F:vlan", all(&|_, frame| frame[12..14] == [0x81, 0])),
        ("--count 33", all(&|at, _| at < 33)),
        ("--count 33 --engine packet", all(&|at, _| at < 33)),
        ("--one-way", sent.clone()),
    ] {
        let bridge = three.bridge(options);
        let got = three.received(wanted.len(), replay);
        assert_same_frames(&got, &wanted);
        let limited = options.starts_with("--count");
        let report = if limited { bridge.wait().ok().json() } else { interrupted(bridge) };
        assert_eq!(passed(&report)[0][1], wanted.len() as u64, "{options}");
    }
    for options in ["--one-way", "--one-way --engine packet"] {
        let bridge = three.bridge(options);
        on(&three.b, "netdyno send ipv4/udp --on b0 --count 20 --topspeed --engine packet --quiet");
        let got = three.received(140, replay);
        assert_eq!(got.len(), 140);
        assert_eq!(passed(&interrupted(bridge)), [[140, 140]], "nothing is taken from east");
        let back = on(&three.a, "ip -s -j link show a0").json();
        assert_eq!(number(&back[0]["stats64"]["rx"]["packets"]), 0, "nothing came back to A");
    }
}

#[test]
fn frames_that_do_not_fit_are_counted_with_the_reason() {
    let three = Three::new();
    let bridge = three.bridge("--vlan-add 5 --vlan-kind 802.1ad");
    three.send("send ether(type=0x88b5)/raw --size 1518 --count 7 --topspeed");
    three.send("send ether(type=0x88b5)/raw --size 1514 --count 5 --topspeed");
    bridge.signal("INT");
    let report = bridge.wait().with(1).json();
    assert_eq!(passed(&report)[0], [12, 5]);
    assert_eq!(number(&report["result"]["passages"][0]["too_long_frames"]), 7);
    assert!(reasons(&report)[0].starts_with("7 frames from west were longer than east allows"));

    three.m("ip link set east mtu 1000");
    for options in ["", "--engine packet"] {
        let mut bridge = three.bridge(options);
        bridge.until_it_says("east only 1000: longer ones from west are dropped");
        three.send("send ether(type=0x88b5)/raw --size 1200 --count 9 --topspeed");
        bridge.signal("INT");
        let report = bridge.wait().with(1).json();
        assert!(reasons(&report)[0].starts_with("9 frames from west were longer"), "{options}: {report}");
    }
}

#[test]
fn the_host_in_between_neither_answers_nor_forwards() {
    let three = Three::new();
    three.m("ip address add 198.18.0.3/24 dev west");
    three.m("sysctl -q -w net.ipv4.ip_forward=1");
    on(&three.a, "ip neigh add 198.18.0.3 lladdr 02:00:00:00:0e:01 dev a0");
    on(&three.a, "ping -c 1 -W 5 198.18.0.3");
    for options in ["", "--engine packet", "--ttl 9"] {
        let bridge = three.bridge(options);
        start(inside(&three.a, "ping -c 2 -i 0.1 -W 0.3 198.18.0.3")).wait().with(1);
        let report = interrupted(bridge);
        assert_eq!(passed(&report), [[2, 2], [0, 0]], "{options}");
    }
    on(&three.a, "ping -c 1 -W 5 198.18.0.3");
}

#[test]
fn an_interface_that_goes_is_named_and_a_killed_bridge_leaves_nothing() {
    let three = Three::new();
    for options in ["--engine tc", "--engine xdp-generic", "--engine packet"] {
        let bridge = three.bridge(options);
        let programs = programs_of(bridge.pid());
        assert!(!programs.is_empty() && programs.iter().all(|program| is_loaded(*program)), "{options}");
        bridge.signal("KILL");
        bridge.wait().with(128 + 9);
        eventually("its programs went", || !programs.iter().any(|program| is_loaded(*program)));
        let links = three.m("ip -d link").stdout;
        assert!(!links.contains("prog/xdp") && !links.contains("promiscuity 1"), "{options}: {links}");

        let bridge = three.bridge(options);
        three.m("ip link set east down");
        let report = bridge.wait().with(1).json();
        assert!(
            reasons(&report).iter().any(|reason| reason.contains("east went down")),
            "{options}: {report}"
        );
        three.m("ip link set east up");
    }
    for options in ["--engine tc", "--engine xdp-generic", "--engine packet"] {
        let three = Three::new();
        let bridge = three.bridge(options);
        three.m("ip link delete east");
        let report = bridge.wait().with(1).json();
        // A device that is removed goes down first, which may be seen.
        let names = |reason: &String| reason.starts_with("east was removed") || reason == "east went down";
        assert!(reasons(&report).iter().any(names), "{options}: {report}");
    }
}

#[test]
fn what_cannot_be_a_bridge_is_refused() {
    let three = Three::new();
    three.m("ip link add left type veth peer name right");
    for (options, words) in [
        ("--between west west", &["west cannot be bridged with itself"] as &[_]),
        ("--between west wset", &["wset", "did you mean 'west'"]),
        ("--between left right", &["two ends of one cable"]),
        ("--between west lo", &["lo is not an Ethernet interface"]),
        ("--between west east --engine xdp", &["--engine xdp is not possible", "GRO on"]),
        ("--between west east --engine tc --ttl 9", &["--engine tc: frames are edited"]),
        ("--between west east --ttl x", &["--ttl"]),
        ("--between west east --exclude F:udp", &["F:not"]),
        ("--between west east --include F:nonsense", &["`nonsense` is not a BPF filter"]),
        ("--between west east --include Q:1", &["`Q:1` is not a rule"]),
        ("--between west east --to-ethernet", &["--to-ethernet"]),
    ] {
        three.refused(options, words);
    }
    three.m("ip link set east down");
    three.refused("--between west east", &["east is down", "ip link set east up"]);
    three.m("ip link set east up");
    three.m("ip address add 192.0.2.1/24 dev west");
    three.m("ip route add default via 192.0.2.2");
    three.refused("--between east west", &["west carries the default route", "--yes-disrupt west"]);
    let bridge = three.bridge("--yes-disrupt west --duration 100ms");
    bridge.wait().ok();
}

#[test]
fn a_second_bridge_on_the_same_interfaces_is_refused() {
    let three = Three::new().for_xdp();
    for engine in ["xdp", "tc", "xdp-generic", "packet"] {
        let first = three.bridge(&format!("--engine {engine}"));
        for options in
            ["--between west east", "--between east west --engine packet", "--between west east --engine tc"]
        {
            three.refused(options, &["bridged already", "end the other one"]);
        }
        // The first is none the worse for it. (B answers that it has no such port.)
        three.send(
            "send ether(dst=02:00:00:00:00:02)/ipv4(dst=198.18.0.2)/udp --size 64 --count 5 --topspeed",
        );
        let report = interrupted(first);
        assert_eq!(passed(&report)[0], [5, 5], "{engine}");
    }
    // Each direction can be a bridge of its own.
    let there = three.bridge("--one-way");
    three.refused("--between west east --one-way", &["west is bridged already"]);
    let mut back = start(inside(&three.m, "netdyno bridge --between east west --one-way --json"));
    back.until_it_says("bridging east");
    interrupted(back);
    interrupted(there);
}

#[test]
fn tcpbridges_command_lines_send_the_bytes_that_tcpbridge_sends() {
    let three = Three::new();
    let (file, sent) = three.capture();
    for options in [
        "",
        "-u --pnat=10.0.0.0/8:172.16.0.0/12 --ttl=60",
        "--enet-smac=02:aa:00:00:00:01,02:aa:00:00:00:02 --enet-dmac=02:bb:00:00:00:01,02:bb:00:00:00:02 -r 53:5353 -C",
        "-S 10.0.0.0/8:172.16.0.0/12 --tos=12",
        "-s 7 --tcp-sequence=5",
        "-X S:10.9.0.0/24",
    ] {
        let through = |tool: &str| {
            let bridge = start(inside(&three.m, &format!("{tool} -i west -I east {options}")));
            eventually("it listens", || {
                three.m("ip -d link show west").stdout.contains("promiscuity 1")
                    && (options.starts_with("-u")
                        || three.m("ip -d link show east").stdout.contains("promiscuity 1"))
            });
            // tcpbridge sets its interfaces up one after the other and then starts to read.
            std::thread::sleep(std::time::Duration::from_millis(200));
            let wanted = if options.starts_with("-X") { sent.len() - 20 } else { sent.len() };
            let got = three.received(wanted, || three.send(&format!("replay {file} --topspeed")));
            // tcpbridge hears of it only when the next frame comes.
            bridge.signal(if tool == "tcpbridge" { "KILL" } else { "INT" });
            (got, bridge.wait())
        };
        let (theirs, _) = through("tcpbridge");
        let (ours, ran) = through("netdyno tcpbridge");
        // 4.4.3 makes the addresses of all IPv6 frames those of groups: a defect that is not ours.
        let but_ipv6 = |frames: &[Vec<u8>]| -> Vec<Vec<u8>> {
            frames.iter().filter(|frame| frame[12..14] != [0x86, 0xdd]).cloned().collect()
        };
        assert_eq!((ours.len(), options), (theirs.len(), options));
        assert_same_frames(&but_ipv6(&ours), &but_ipv6(&theirs));
        let said = ran.ok().stdout;
        assert!(said.starts_with(&format!("Actual: {} packets (", theirs.len())), "{options}: {said}");
    }
    let limited = start(inside(&three.m, "netdyno tcpbridge -i west -I east -L 7 -P"));
    eventually("it listens", || three.m("ip -d link show east").stdout.contains("promiscuity 1"));
    let got = three.received(7, || three.send(&format!("replay {file} --topspeed")));
    assert_same_frames(&got, &sent[..7]);
    limited.wait().ok().says(&["PID: "]);
    assert!(three.m("netdyno tcpbridge --listnics").stdout.contains("west\n"));
    for (options, words) in [
        ("-i west", "--intf2"),
        ("-i west -I east --verbose", "--verbose is not supported"),
        ("-i west -I east --dlt=user", "--dlt is not supported"),
    ] {
        let ran = start(inside(&three.m, &format!("netdyno tcpbridge {options}"))).wait().with(2);
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    }
}
