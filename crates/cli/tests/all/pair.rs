//! Two interfaces: which frames leave by which, in one order and at the right times, held to tcpreplay 4.4.3.

use crate::common::*;
use crate::judged::judged;
use lab::Options;
use std::collections::BTreeMap;

/// Two hosts with two cables: tx0 - rx0 and tx1 - rx1.
fn two_cables() -> Options {
    Options { cables: 2, ..Options::default() }
}

/// What arrived at one end: when (nanoseconds), and the frame.
type Arrived = Vec<(u64, Vec<u8>)>;

/// A little-endian pcap file with nanoseconds; as many records as are whole.
fn timed(file: &str) -> Arrived {
    let bytes = std::fs::read(file).unwrap_or_default();
    let mut arrived = Vec::new();
    let mut rest = bytes.get(24..).unwrap_or_default();
    let word = |at: &[u8]| u32::from_le_bytes(at.try_into().expect("four bytes"));
    while rest.len() >= 16 {
        let length = word(&rest[8..12]) as usize;
        let Some(frame) = rest.get(16..16 + length) else { break };
        arrived.push((
            u64::from(word(&rest[..4])) * 1_000_000_000 + u64::from(word(&rest[4..8])),
            frame.to_vec(),
        ));
        rest = &rest[16 + length..];
    }
    arrived
}

/// What arrives at rx0 and rx1 while `send` runs, once as many frames did as are expected, and no more.
fn at_both_ends(net: &Net, expected: [usize; 2], send: impl FnOnce()) -> [Arrived; 2] {
    let files = ["rx0", "rx1"].map(|end| net.file(&format!("{end}.pcap")));
    let mut listeners = Vec::new();
    for (end, file) in ["rx0", "rx1"].into_iter().zip(&files) {
        let _ = std::fs::remove_file(file);
        let mut tcpdump = net.start_there(format!(
            "tcpdump -Z root -n -U -B 16384 -Q in -j host --time-stamp-precision nano -i {end} -w {file}"
        ));
        tcpdump.until_it_says("listening on");
        listeners.push(tcpdump);
    }
    send();
    let arrived = || [timed(&files[0]), timed(&files[1])];
    let counts = || arrived().map(|end| end.len());
    eventually(&format!("{expected:?} frames arrived"), || {
        let [one, two] = counts();
        one >= expected[0] && two >= expected[1]
    });
    std::thread::sleep(std::time::Duration::from_millis(100));
    for tcpdump in listeners {
        tcpdump.signal("INT");
        tcpdump.wait().ok().says(&["\n0 packets dropped by kernel"]);
    }
    assert_eq!(counts(), expected);
    arrived()
}

fn bytes(arrived: Arrived) -> Vec<Vec<u8>> {
    arrived.into_iter().map(|(_, frame)| frame).collect()
}

/// Both ends' frames in the order in which they arrived.
fn in_order([one, two]: [Arrived; 2]) -> Vec<Vec<u8>> {
    let mut all: Arrived = one.into_iter().chain(two).collect();
    all.sort_by_key(|(at, _)| *at);
    bytes(all)
}

/// A conversation's frame number `n` in UDP: from the client (10.0.0.1) or back. No two are the same.
fn frame(n: u32, client: bool, flow: u16) -> Vec<u8> {
    let (source, destination) = if client { (1, 2) } else { (2, 1) };
    let port = |own: bool| if own { 1024 + flow } else { 53 }.to_be_bytes();
    let mut frame = vec![2, 0, 0, 0, 0, destination, 2, 0, 0, 0, 0, source, 8, 0];
    frame.extend([0x45, 0, 0, 50, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, source, 10, 0, 0, destination]);
    let sum = frame[14..].chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum::<u32>();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame.extend(port(client));
    frame.extend(port(!client));
    frame.extend([0, 30, 0, 0]);
    frame.extend(n.to_be_bytes());
    frame.resize(14 + 50, 0);
    frame
}

/// Which side sends frame `n`: runs of one to four frames, without a pattern.
fn is_client(n: u32) -> bool {
    n.wrapping_mul(2_654_435_761) >> 29 & 3 != 1
}

/// Frames of eight conversations, both directions mixed, written to `file`; and how many each side has.
fn mixed(file: &str, count: u32) -> (Vec<Vec<u8>>, [usize; 2]) {
    let frames: Vec<Vec<u8>> = (0..count).map(|n| frame(n, is_client(n), (n / 3 % 8) as u16)).collect();
    write_pcap(file, 1, &frames);
    let clients = (0..count).filter(|&n| is_client(n)).count();
    (frames, [clients, count as usize - clients])
}

/// What tcpreplay's closing blocks say of both devices, and the line of flows.
fn devices(ran: &Ran) -> Vec<String> {
    let counts = [
        "Statistics",
        "\tSuccessful",
        "\tFailed",
        "\tTruncated",
        "\tFlow packets",
        "\tNon-flow",
        "\tFlows total",
    ];
    let lines = ran.stdout.lines();
    let mut kept: Vec<String> = lines
        .clone()
        .filter(|line| counts.iter().any(|start| line.starts_with(start)))
        .map(str::to_owned)
        .collect();
    let words = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        format!("{} {}", words[1], words[5])
    };
    kept.extend(lines.filter(|line| line.starts_with("Flows: ")).map(words));
    kept
}

#[test]
fn both_interfaces_send_and_say_what_tcpreplays_do() {
    let net = Net::with(&two_cables());
    let file = net.file("small.pcap");
    run(format!("netdyno synth --profile smallflows -w {file}")).ok();
    let cache = net.file("small.prep");
    // Some packets are left out of the cache.
    run(format!("tcpprep --auto=client --include=P:1-700,900-2500 -i {file} -o {cache}")).ok();
    let stats = run(format!("tcpprep -S {cache}")).ok().stdout;
    let count = |line: &str| {
        let line = stats.lines().find(|l| l.starts_with(line)).expect("a line");
        line.split_whitespace().last().expect("a number").parse::<usize>().expect("a number")
    };
    let expected = [count("Primary"), count("Secondary")];
    assert!(expected[0] > 500 && expected[1] > 500 && count("Skipped") > 200, "{stats}");
    let sides = |options: &str, expected: [usize; 2]| {
        let mut said = Vec::new();
        let mut seen = Vec::new();
        for program in ["tcpreplay", "netdyno tcpreplay"] {
            let send = || {
                let line = format!("{program} -i tx0 -I tx1 {options}");
                said.push(devices(&net.run(line).ok()));
            };
            seen.push(at_both_ends(&net, expected, send).map(bytes));
        }
        let [ours, theirs] = [seen.pop(), seen.pop()].map(|ends| ends.expect("both ends"));
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert_same_frames(ours, theirs);
        }
        assert_eq!(said[1], said[0], "{options}");
    };
    sides(&format!("-t -c {cache} {file}"), expected);
    sides(&format!("-K -p 100000 --no-flow-stats -c {cache} {file}"), expected);
    sides(&format!("-x 5000 --no-flow-stats -c {cache} {file}"), expected);
    // Two passes and a limit in the second.
    let limit = expected[0] + expected[1] + 500;
    let (first, second) = {
        let ways = run(format!("tcpprep -I {cache}")).ok().stdout;
        let way = |end: &str| {
            ways.lines()
                .filter(|line| !line.ends_with("Don't Send"))
                .take(500)
                .filter(|line| line.ends_with(end))
                .count()
        };
        (way("Primary"), way("Secondary"))
    };
    sides(
        &format!("-t -l 2 -L {limit} --no-flow-stats -c {cache} {file}"),
        [expected[0] + first, expected[1] + second],
    );
}

#[test]
fn new_addresses_go_out_by_the_same_sides() {
    let net = Net::with(&two_cables());
    let file = net.file("mixed.pcap");
    let (_, [clients, servers]) = mixed(&file, 300);
    let cache = net.file("mixed.prep");
    run(format!("tcpprep --cidr=10.0.0.1/32 -i {file} -o {cache}")).ok();
    let mut seen = Vec::new();
    for program in ["tcpreplay", "netdyno tcpreplay", "netdyno tcpreplay -K"] {
        let send = || {
            net.run(format!("{program} -i tx0 -I tx1 -t -l 3 --unique-ip -c {cache} {file}")).ok();
        };
        seen.push(at_both_ends(&net, [clients * 3, servers * 3], send).map(bytes));
    }
    for ours in &seen[1..] {
        for (ours, theirs) in ours.iter().zip(&seen[0]) {
            assert_same_frames(ours, theirs);
        }
    }
}

#[test]
fn the_order_across_both_interfaces_is_the_captures_at_every_pace() {
    let net = Net::with(&two_cables());
    let file = net.file("mixed.pcap");
    let (frames, expected) = mixed(&file, 3000);
    for (pace, how) in [
        ("--topspeed", "--engine packet"),
        ("--topspeed", "--engine afxdp"),
        ("--topspeed", "--engine packet --stream"),
        ("--rate 50kpps", "--engine packet --stream"),
        ("--rate 50kpps", "--engine afxdp"),
        ("--rate 100mbps", "--engine auto"),
        ("--speed 5x", "--engine auto"),
        ("--speed 5x", "--engine packet --stream"),
    ] {
        let send = || {
            let line = format!(
                "netdyno replay {file} --on tx0 --on2 tx1 --sides cidr=10.0.0.1/32 {pace} {how} --json"
            );
            let report = net.run(line).result();
            let rows = &report["result"]["tx"]["interfaces"];
            let sent = [0, 1].map(|side| number(&rows[side]["frames"]) as usize);
            assert_eq!((sent, &rows[1]["interface"]), (expected, &"tx1".into()));
        };
        let arrived = at_both_ends(&net, expected, send);
        assert_same_frames(&in_order(arrived), &frames);
    }
}

#[test]
fn gaps_across_both_interfaces_are_the_captures() {
    alone();
    let net = Net::with(&two_cables());
    let file = net.file("mixed.pcap");
    // A frame each 100 us; at half the speed 200 us.
    let (_, expected) = mixed(&file, 2000);
    let line = format!(
        "netdyno replay {file} --on tx0 --on2 tx1 --sides cidr=10.0.0.1/32 --speed 0.5x --measure rx0 --measure2 rx1 --json"
    );
    let quiet = |report: &serde_json::Value| late_share(report) < 0.02 && longest_stall(report) == 0;
    let report = in_time(quiet, || net.run(&line).result());
    let (result, came) = (&report["result"], &report["result"]["rx"]["interfaces"]);
    assert_eq!([0, 1].map(|end| number(&came[end]["frames"]) as usize), expected);
    assert_eq!((&came[0]["from"], &came[1]["from"]), (&"tx0".into(), &"tx1".into()));
    assert_eq!(number(&result["loss"]["frames"]), 0);
    let pacing = &result["pacing"];
    assert_eq!(pacing["measured_at"], "receiver");
    // 2000 frames, the last gap being the mean one.
    let lasted = number(&result["tx"]["duration_ns"]);
    assert!(lasted >= 400_000_000, "{lasted}");
    if judged(late_share(&report) < 0.02) {
        // What left within 100 us of its time, each behind the other.
        let [p50, p90] = ["p50", "p90"].map(|name| number(&pacing["gap_error_ns"][name]));
        assert!(p50 <= 100_000 && p90 <= 200_000, "{pacing}");
    }
    if judged(longest_stall(&report) == 0) {
        assert!(lasted < 401_000_000, "{lasted}");
    }
}

#[test]
fn two_captures_of_a_tap_are_merged_by_their_times() {
    let net = Net::with(&two_cables());
    // Times in units of 100 us; at equal times the first file's goes first.
    let times: [&[u32]; 2] = [&[0, 3, 3, 7, 20, 21, 30], &[1, 3, 4, 5, 6, 22]];
    let mut wanted: Vec<(u32, usize, Vec<u8>)> = Vec::new();
    let names = ["client.pcap", "server.pcap"].map(|name| net.file(name));
    for (side, name) in names.iter().enumerate() {
        let mut out = pcap_header(1);
        for (n, &at) in times[side].iter().enumerate() {
            let bytes = frame(at * 100 + n as u32, side == 0, 7);
            out.extend(pcap_record(0, at * 100, bytes.len() as u32, &bytes));
            wanted.push((at, side, bytes));
        }
        std::fs::write(name, out).expect("a capture");
    }
    wanted.sort_by_key(|(at, side, _)| (*at, *side));
    let wanted: Vec<Vec<u8>> = wanted.into_iter().map(|(_, _, bytes)| bytes).collect();
    let [one, two] = &names;
    for line in [
        format!("tcpreplay -i tx0 -I tx1 --dualfile {one} {two}"),
        format!("netdyno tcpreplay -i tx0 -I tx1 --dualfile {one} {two}"),
        format!("netdyno tcpreplay -i tx0 -I tx1 -2 -K -t {one} {two}"),
        format!("netdyno replay --on tx0 --on2 tx1 --sides files --stream --topspeed {one} {two}"),
    ] {
        let send = || {
            net.run(&line).ok();
        };
        assert_same_frames(&in_order(at_both_ends(&net, [7, 6], send)), &wanted);
    }
    // Two pairs follow one another; packets are chosen by their numbers in each file, which has tcpreplay 4.5 hang.
    let file = net.file("merged.pcap");
    run(format!("netdyno tcpreplay -w {file} --dualfile --include 1-2 {one} {two} {one} {two}")).ok();
    let first: Vec<Vec<u8>> = [0, 1, 2, 4].map(|n| wanted[n].clone()).into();
    let chosen = frames(&file);
    assert_eq!(chosen.len(), 8);
    assert_same_frames(&chosen[..4], &first);
    assert_same_frames(&chosen[4..], &first);
}

#[test]
fn sides_found_while_sending_are_those_of_tcppreps_cache() {
    let net = Net::new();
    let file = net.file("small.pcap");
    run(format!("netdyno synth --profile smallflows -w {file}")).ok();
    for (how, mode) in [
        ("auto", "--auto=client"),
        ("server", "--auto=server"),
        ("first", "--auto=first"),
        ("bridge", "--auto=bridge"),
        ("port", "--port"),
        ("cidr=10.0.0.0/8", "--cidr=10.0.0.0/8"),
    ] {
        let cache = net.file("small.prep");
        run(format!("tcpprep {mode} -i {file} -o {cache}")).ok();
        let sent = |sides: &str| {
            let line = format!(
                "netdyno replay {file} --on tx0 --on2 rx0 --sides {sides} --rate top --count 14261 --json"
            );
            let report = net.run(line).result();
            let rows = &report["result"]["tx"]["interfaces"];
            [0, 1].map(|side| (number(&rows[side]["frames"]), number(&rows[side]["bytes"])))
        };
        assert_eq!(sent(how), sent(&cache), "{how}");
    }
}

#[test]
fn several_cores_send_each_frame_once_and_keep_conversations_in_order() {
    if !several_cpus() {
        return;
    }
    let net = Net::with(&Options { queues: 2, ..two_cables() });
    let file = net.file("mixed.pcap");
    let (wanted, expected) = mixed(&file, 3000);
    for pace in ["--topspeed", "--rate 100kpps", "--speed 5x"] {
        let send = || {
            net.run(format!(
                "netdyno replay {file} --on tx0 --on2 tx1 --sides cidr=10.0.0.1/32 {pace} --cores 2 --engine packet --json"
            ))
            .result();
        };
        let arrived = in_order(at_both_ends(&net, expected, send));
        let by_flow = |frames: &[Vec<u8>]| {
            let mut flows: BTreeMap<[u8; 2], Vec<Vec<u8>>> = BTreeMap::new();
            for frame in frames {
                let port = if frame[29] == 1 { [frame[34], frame[35]] } else { [frame[36], frame[37]] };
                flows.entry(port).or_default().push(frame.clone());
            }
            flows
        };
        let (got, wanted) = (by_flow(&arrived), by_flow(&wanted));
        assert_eq!(got.keys().collect::<Vec<_>>(), wanted.keys().collect::<Vec<_>>());
        for (flow, frames) in &wanted {
            assert_same_frames(&got[flow], frames);
        }
    }
}

#[test]
fn signed_frames_of_both_sides_are_told_apart_and_looped() {
    if !several_cpus() {
        return;
    }
    let net = Net::with(&two_cables());
    let file = net.file("mixed.pcap");
    let (_, [clients, servers]) = mixed(&file, 1000);
    for how in ["--stream", "--preload", "--cores 2 --engine packet"] {
        let report = net
            .run(format!(
                "netdyno replay {file} --on tx0 --on2 tx1 --sides cidr=10.0.0.1/32 --rate 50kpps --loop 3 --unique-ip --sign \
                 --measure rx0 --measure2 rx1 {how} --json"
            ))
            .result();
        let streams = report["streams"].as_array().expect("streams");
        let rows: Vec<_> = streams
            .iter()
            .map(|s| {
                (
                    number(&s["stream"]),
                    number(&s["tx_frames"]),
                    number(&s["rx_frames"]),
                    number(&s["lost_frames"]),
                )
            })
            .collect();
        let (clients, servers) = (clients as u64 * 3, servers as u64 * 3);
        assert_eq!(rows, [(0, clients, clients, 0), (1, servers, servers, 0)], "{how}");
    }
}

#[test]
fn what_does_not_fit_two_interfaces_is_one_clear_line() {
    let net = Net::with(&two_cables());
    let [file, short, cache] = ["mixed.pcap", "short.pcap", "mixed.prep"].map(|name| net.file(name));
    mixed(&file, 30);
    mixed(&short, 20);
    run(format!("tcpprep --cidr=10.0.0.1/32 -i {short} -o {cache}")).ok();
    let long = net.file("long.pcap");
    let mut frames: Vec<Vec<u8>> = (0..4).map(|n| frame(n, n % 2 == 0, 0)).collect();
    frames[3].resize(1400, 0);
    write_pcap(&long, 1, &frames);
    net.run("ip link set tx1 mtu 1000").ok();
    let pipe = net.file("pipe");
    run(format!("mkfifo {pipe}")).ok();
    let pair = "--on tx0 --on2 tx1";
    for (line, words) in [
        (
            format!("{pair} --sides {cache} {file}"),
            vec!["has 20 entries", "has 30 packets", "another capture"],
        ),
        (format!("{pair} --sides {cache} --stream {file}"), vec!["has 20 entries", "has 30 packets"]),
        (format!("{pair} --sides files {file}"), vec!["come in pairs", "1 was given"]),
        (format!("{pair} --sides files {pipe} {file}"), vec!["pipe is no file", "merged from files"]),
        (format!("{pair} --sides auto {pipe}"), vec!["cannot be read a second time", "cache file"]),
        (
            format!("--on tx0 --on2 tx0 --sides auto {file}"),
            vec!["tx0 is named for both sides", "another interface"],
        ),
        (format!("--on tx0 --sides auto {file}"), vec!["--on2"]),
        (format!("{pair} --sides nonsense {file}"), vec!["nonsense", "there are auto"]),
        (format!("{pair} --sides {short} {file}"), vec!["is not a cache file"]),
        (format!("{pair} --sides {file}.prep {file}"), vec!["mixed.pcap.prep", "No such file"]),
        (
            format!("{pair} --sides cidr=10.0.0.1/32 {long}"),
            vec!["frame 4", "1400 bytes", "ip link set tx1 mtu 1386"],
        ),
        (format!("{pair} --sides auto {file} --engine xdp"), vec!["order", "--engine afxdp"]),
        (format!("{pair} --sides auto {file} --measure rx0"), vec!["--measure2"]),
        (format!("{pair} --sides auto {file} --round-trip"), vec!["--round-trip"]),
        (format!("--on tx0 --on2 tx7 --sides auto {file}"), vec!["tx7"]),
    ] {
        if line.contains(&pipe) {
            // Whoever does not read on leaves it with an error, which is nothing to this test.
            let (from, to) = (file.clone(), pipe.clone());
            std::thread::spawn(move || std::fs::copy(from, to));
        }
        let ran = net.run(format!("netdyno replay {line} --rate top"));
        // Words that clap refuses are told in its way.
        assert_eq!((ran.status, ran.stdout.as_str()), (2, ""), "{line}: {}", ran.stderr);
        ran.says(&words);
    }
    let link = net.run("ip -s -j link show tx0").ok().json();
    assert_eq!(number(&link[0]["stats64"]["tx"]["packets"]), 0, "something was sent");
    // The first side's interface takes what the second's does not.
    let report =
        net.run(format!("netdyno replay {pair} --sides cidr=10.0.0.2/32 {long} --rate top --json")).result();
    assert_eq!(number(&report["result"]["tx"]["frames"]), 4);
    // A cache that knows more is another capture's, too; unless the capture is damaged, and taken as far as it is sound.
    run(format!("tcpprep --cidr=10.0.0.1/32 -i {file} -o {cache}")).ok();
    let cut = net.file("cut.pcap");
    let bytes = std::fs::read(&file).expect("the capture");
    std::fs::write(&cut, &bytes[..bytes.len() - 1]).expect("a damaged one");
    for how in ["--stream", "--preload"] {
        let line = format!("netdyno replay {pair} --sides {cache} --rate top {how}");
        net.run(format!("{line} {short}")).refused(&["has 30 entries", "has 20 packets", "another capture"]);
        let ran = net.run(format!("{line} {cut} --skip-corrupt --json")).with(1);
        let report = ran.json();
        assert_eq!(number(&report["result"]["tx"]["frames"]), 29);
        let said = report.to_string();
        assert!(said.contains("has 30 entries") && said.contains("only 29 packets"), "{said}");
        assert!(!said.contains("--skip-corrupt keeps"), "advice that was taken: {said}");
    }
    // The drop-in says it in tcpreplay's terms.
    let ran = net.run(format!("netdyno tcpreplay -i tx0 -I tx1 -t --dualfile {file}")).with(255);
    assert!(ran.stdout.is_empty() && ran.stderr.contains("come in pairs"), "{}", ran.stderr);
}

#[test]
fn an_interface_that_goes_down_ends_both_and_is_named() {
    let net = Net::with(&two_cables());
    let file = net.file("mixed.pcap");
    mixed(&file, 100);
    let replay = net.start(format!(
        "netdyno replay {file} --on tx0 --on2 tx1 --sides cidr=10.0.0.1/32 --rate 5kpps --duration 30s --engine packet --json"
    ));
    net.until_frames_leave();
    net.run("ip link set tx1 down").ok();
    let report = replay.wait().with(1).json();
    let reasons = reasons(&report);
    assert!(reasons.iter().any(|reason| reason.contains("tx1 went down")), "{reasons:?}");
    let rows = &report["result"]["tx"]["interfaces"];
    let sent: u64 = [0, 1].map(|side| number(&rows[side]["frames"])).iter().sum();
    assert_eq!(sent, number(&report["result"]["tx"]["frames"]));
}

#[test]
fn a_frame_lost_on_one_side_is_not_made_up_for_by_the_other() {
    let net = Net::with(&two_cables());
    let file = net.file("mixed.pcap");
    let (_, [clients, servers]) = mixed(&file, 300);
    // The cables are crossed: what the first sends is looked for where the second's frames arrive.
    let report = net
        .run(format!(
            "netdyno replay {file} --on tx0 --on2 tx1 --sides cidr=10.0.0.1/32 --rate 50kpps --measure rx1 --measure2 rx0 --json"
        ))
        .with(1)
        .json();
    let came = &report["result"]["rx"]["interfaces"];
    assert_eq!([0, 1].map(|end| number(&came[end]["frames"]) as usize), [servers, clients]);
    assert_eq!(number(&report["result"]["loss"]["frames"]) as usize, clients - servers.min(clients));
}

#[test]
fn both_sides_by_one_port_of_a_learning_bridge_are_told_before_and_after() {
    // Each with a bridge that has heard nobody yet.
    let bridged = || {
        let device = ::lab::Device { kind: ::lab::Kind::Bridge, bottleneck: None, loss: None };
        Net::with(&Options { device: Some(device), ..Options::default() })
    };
    let net = bridged();
    let file = net.file("both.pcap");
    let (_, [clients, _]) = mixed(&file, 1_000);
    // The first frames go out, until the bridge has heard the server by that port, too.
    let heard = (0..1_000).position(|n| !is_client(n)).expect("a server's frame") as u64;
    let replay = format!("netdyno replay {file} --rate 2kpps --on tx0 --measure rx0");
    for how in ["", "--stream", "--sign"] {
        let ran = bridged().run(format!("{replay} {how} --json")).with(1);
        assert!(
            ran.stderr.contains("Warning: both sides of the capture leave by tx0")
                && ran.stderr.contains("--only-side"),
            "{how}: {}",
            ran.stderr
        );
        let report = ran.json();
        let loss = &report["result"]["loss"];
        assert_eq!(
            [number(&loss["frames"]), number(&loss["learnt_frames"])],
            [1_000 - heard; 2],
            "{how}: {loss}"
        );
        let told = reasons(&report).join("; ");
        assert!(
            told.contains("a device that learns addresses passes none of those on, at no rate"),
            "{told}"
        );
    }
    let ran = net.run(&replay).with(1);
    assert!(
        ran.stdout.contains("--on2 IFACE --sides auto") && !ran.stdout.contains("Lower --rate"),
        "{}",
        ran.stdout
    );
    // One side alone arrives, and nothing is said of it.
    for how in ["", "--stream"] {
        let ran = bridged().run(format!("{replay} {how} --sides first --only-side first --json"));
        let report = ran.result();
        assert_eq!(number(&report["result"]["tx"]["frames"]), clients as u64, "{how}");
        assert_eq!(number(&report["result"]["loss"]["frames"]), 0, "{how}: {report}");
        assert!(!ran.stderr.contains("both sides"), "{how}: {}", ran.stderr);
    }
    // A cable has no ports.
    let cable = Net::new();
    let ran = cable.run(format!("netdyno replay {file} --rate 2kpps --on tx0 --measure rx0 --json"));
    assert_eq!(number(&ran.result()["result"]["loss"]["frames"]), 0);
    assert!(!ran.stderr.contains("both sides"), "{}", ran.stderr);
}
