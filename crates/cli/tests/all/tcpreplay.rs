//! `netdyno tcpreplay`: tcpreplay's command lines, held to tcpreplay 4.4.3 where that is right.

use crate::common::*;
use serde_json::Value;
use std::os::unix::fs::symlink;

const US: &str = "netdyno tcpreplay";

/// A capture of 40 frames of IPv4 in ten flows, 2 ms apart, with two pauses.
fn capture(name: &str, at: &dyn Fn(&str) -> String) -> String {
    let file = at(name);
    run(format!(
        "netdyno craft ipv4(src=10.0.0.1,dst=198.18.0.1)/udp(sport=1..10,dport=53) --count 40 --size imix --rate 500pps -w {file}"
    ))
    .ok();
    file
}

/// The numbers of the closing block that do not depend on time.
#[derive(Debug, PartialEq, Eq)]
struct Block {
    packets: String,
    bytes: String,
    flows: Option<String>,
    flow_packets: Option<String>,
    successful: String,
    failed: String,
}

/// Standard output must be the closing block and nothing else.
#[track_caller]
fn block(ran: &Ran) -> Block {
    let text = &ran.stdout;
    let lines: Vec<&str> = text.lines().collect();
    let word =
        |line: &str, n: usize| line.split_whitespace().nth(n).map(|word| word.trim_matches('(').to_owned());
    let line = |start: &str| lines.iter().find(|line| line.trim_start().starts_with(start)).copied();
    let starts = [
        "Actual: ",
        "Rated: ",
        "Flows: ",
        "Statistics for network device: ",
        "\tSuccessful packets:        ",
    ];
    let rest = [
        "\tFailed packets:            ",
        "\tTruncated packets:         ",
        "\tRetried packets (ENOBUFS): ",
        "\tRetried packets (EAGAIN):  ",
    ];
    let mut wanted: Vec<&str> = starts.into_iter().chain(rest).collect();
    if line("Flows: ").is_none() {
        wanted.remove(2);
    }
    assert_eq!(lines.len(), wanted.len(), "{}: {text}", ran.what);
    for (line, start) in lines.iter().zip(wanted) {
        assert!(line.starts_with(start), "{}: {text}", ran.what);
    }
    let actual = line("Actual: ").expect("a first line");
    Block {
        packets: word(actual, 1).expect("packets"),
        bytes: word(actual, 3).expect("bytes"),
        flows: line("Flows: ").and_then(|line| word(line, 1)),
        flow_packets: line("Flows: ").and_then(|line| word(line, 5)),
        successful: word(line("Successful").expect("a line"), 2).expect("a number"),
        failed: word(line("Failed").expect("a line"), 2).expect("a number"),
    }
}

/// What rx0 has received so far, as the kernel counts.
fn arrived(net: &Net) -> u64 {
    let link: Value = net.run_there("ip -s -j link show rx0").ok().json();
    number(&link[0]["stats64"]["rx"]["packets"])
}

#[test]
fn the_articles_command_lines_work_as_they_stand() {
    let net = Net::new();
    let names =
        ["tcp_port_scan_64.pcap", "tcp_port_scan_1500.pcap", "udp_port_scan_1500.pcap", "bigFlows.pcap"];
    for (name, what, size) in [
        (names[0], "tcp(flags=S,dport=1025..1032)", 64),
        (names[1], "tcp(flags=S,dport=1025..1032)", 1500),
        (names[2], "udp(dport=1025..1032)", 1500),
        (names[3], "udp(sport=1..100)", 450),
    ] {
        let count = if name == names[3] { 100 } else { 8 };
        let file = net.file(name);
        run(format!(
            "netdyno craft ipv4(src=10.0.0.1,dst=10.0.0.2)/{what} --size {size} --count {count} -w {file}"
        ))
        .ok();
    }
    // The tool's name, and the interfaces' as printed.
    let tool = net.file("tcpreplay");
    symlink(env!("CARGO_BIN_EXE_netdyno"), &tool).expect("a link");
    let mut interface = "tx0";
    for (line, packets, flows) in [
        ("-i ens17 -K --loop 5000 --netmap --mbps 1000 tcp_port_scan_64.pcap", 40_000, 8),
        ("-i ens17 -K --loop 5000 --netmap --mbps 10000 tcp_port_scan_1500.pcap", 40_000, 8),
        ("-i ens17 -K --loop 5000 --mbps 10000 udp_port_scan_1500.pcap", 40_000, 8),
        ("-i eth7 -K --mbps 7000 --loop 50 --unique-ip --netmap bigFlows.pcap", 5_000, 5_000),
    ] {
        let named = line.split(' ').nth(1).expect("an interface");
        if named != interface {
            for step in [
                format!("set {interface} down"),
                format!("set {interface} name {named}"),
                format!("set {named} up"),
            ] {
                net.run(format!("ip link {step}")).ok();
            }
            interface = named;
            eventually("the cable carries", || {
                net.run(format!("ip -j link show {named}")).ok().json()[0]["operstate"] == "UP"
            });
        }
        let before = arrived(&net);
        let mut command = net.command(format!("{tool} {line}"));
        command.current_dir(std::path::Path::new(&tool).parent().expect("a folder"));
        let ran = start(command).wait().ok();
        let block = block(&ran);
        assert_eq!([&block.packets, &block.successful], [&packets.to_string(); 2], "{}", ran.stdout);
        assert_eq!(block.flows, Some(flows.to_string()), "{}", ran.stdout);
        assert!(ran.stdout.contains(&format!("Statistics for network device: {named}\n")), "{}", ran.stdout);
        assert_eq!(arrived(&net) - before, packets, "{line}");
    }
}

#[test]
fn tcpreplay_sends_and_says_the_same() {
    let net = Net::new();
    let file = capture("x.pcap", &|name| net.file(name));
    let version = run("tcpreplay --version").ok().stderr;
    assert!(version.contains("4.4.3"), "this test knows tcpreplay 4.4.3, not {version}");
    for (options, count) in [
        ("-t", 40),
        ("-t -l 2 --flow-expiry 1", 80),
        ("-K -t", 40),
        ("-t -l 3", 120),
        ("-tKl3", 120),
        ("-K --topspeed --loop=3 --unique-ip", 120),
        ("-t --loop 3 --unique-ip", 120),
        ("--pps=4000", 40),
        ("-p 4000 --pps-multi 7 -l 2", 80),
        ("--mbps 20.5", 40),
        ("-M 0", 40),
        ("-x 8 -l 2", 80),
        ("--mult=2.5 -K", 40),
        ("", 40),
        ("-L 25 -t", 25),
        ("-l 3 --limit 95 -t", 95),
        ("--maxsleep 1 -x 2", 40),
        ("-t --no-flow-stats -q", 40),
        ("-t --timer=nano --pktlen", 40),
    ] {
        let sent_by = |tool: &str| {
            let mut said = None;
            let frames = net.received(count, || {
                said = Some(block(&net.run(format!("{tool} -i tx0 {options} {file}")).ok()));
            });
            (frames, said.expect("a block"))
        };
        let ((theirs, their_block), (ours, our_block)) = (sent_by("tcpreplay"), sent_by(US));
        assert_same_frames(&ours, &theirs);
        // Theirs counts the packets of flows in the first pass alone when it has preloaded.
        let flow_packets = if options.contains('K') && !options.contains("unique") {
            our_block.flow_packets.clone()
        } else {
            their_block.flow_packets.clone()
        };
        assert_eq!(our_block, Block { flow_packets, ..their_block }, "{options}");
    }
}

/// When frames would leave, in microseconds, as they stand in the capture that -w writes.
fn times(folder: &Folder, options: &str, file: &str) -> Vec<u64> {
    let out = path(folder, "out.pcap");
    run(format!("{US} -w {out} --departure-times {options} {file}")).ok();
    let seconds = tshark_field(&out, "frame.time_relative");
    seconds.iter().map(|s| (s.parse::<f64>().expect("seconds") * 1e6).round() as u64).collect()
}

#[test]
fn frames_leave_at_the_times_that_are_asked_for() {
    let folder = folder();
    let file = path(&folder, "in.pcap");
    // At 0, 1 ms, 3 ms and 103 ms.
    let frame = |n: u8| vec![n; 125];
    let mut bytes = pcap_header(1);
    for (n, micros) in [(1, 0), (2, 1_000), (3, 3_000), (4, 103_000)] {
        bytes.extend(pcap_record(7, micros, 125, &frame(n)));
    }
    std::fs::write(&file, bytes).expect("a capture");
    for (options, wanted) in [
        ("", vec![0, 1000, 3000, 103_000]),
        ("-x 2", vec![0, 500, 1500, 51_500]),
        ("-x 0.5", vec![0, 2000, 6000, 206_000]),
        // The next pass begins with the last frame.
        ("-l 2", vec![0, 1000, 3000, 103_000, 103_000, 104_000, 106_000, 206_000]),
        ("-l 2 --loopdelay-ms 5", vec![0, 1000, 3000, 103_000, 108_000, 109_000, 111_000, 211_000]),
        ("-x 2 -l 2 --loopdelay-ns 500000", vec![0, 500, 1500, 51_500, 52_000, 52_500, 53_500, 103_500]),
        ("--maxsleep 10", vec![0, 1000, 3000, 13_000]),
        ("--maxsleep 10 -x 2", vec![0, 500, 1500, 11_500]),
        ("-p 1000", vec![0, 1000, 2000, 3000]),
        ("-p 3", vec![0, 333_333, 666_667, 1_000_000]),
        ("-p 1000 --pps-multi 2 -l 2", vec![0, 0, 2000, 2000, 4000, 4000, 6000, 6000]),
        ("-p 3 --pps-multi 2 -l 2", vec![0, 0, 666_667, 666_667, 1_333_333, 1_333_333, 2_000_000, 2_000_000]),
        ("-p 1000 -l 2 --loopdelay-ms 5", vec![0, 1000, 2000, 3000, 9000, 10_000, 11_000, 12_000]),
        // 125 bytes are 1000 bits.
        ("-M 1", vec![0, 1000, 2000, 3000]),
        ("--include 2-3", vec![0, 2000]),
        ("--exclude 2-3 -x 103", vec![0, 1000]),
        ("-L 6 -l 0", vec![0, 1000, 3000, 103_000, 103_000, 104_000]),
        ("--duration 1 -p 2 -l 0", vec![0, 500_000]),
    ] {
        assert_eq!(times(&folder, options, &file), wanted, "{options}");
    }
}

#[test]
fn written_frames_keep_the_times_they_were_captured_at() {
    let folder = folder();
    let file = capture("in.pcap", &|name| path(&folder, name));
    let out = path(&folder, "out.pcap");
    let captured = tshark_field(&file, "frame.time_epoch");
    for options in ["-t -l 2", "-p 5 -K -l 2", "-x 3 -l 2 --loopdelay-ms 9"] {
        run(format!("{US} -w {out} {options} {file}")).ok();
        assert_eq!(tshark_field(&out, "frame.time_epoch"), [&captured[..]; 2].concat(), "{options}");
    }
}

#[test]
fn some_packets_of_each_file_are_chosen_by_number() {
    let folder = folder();
    let file = capture("in.pcap", &|name| path(&folder, name));
    let (all, out) = (frames(&file), path(&folder, "out.pcap"));
    let pick = |numbers: &[usize]| numbers.iter().map(|n| all[n - 1].clone()).collect::<Vec<_>>();
    run(format!("{US} -w {out} -t --include 1-3,9,39- {file} {file}")).ok();
    assert_same_frames(&frames(&out), &[pick(&[1, 2, 3, 9, 39, 40]), pick(&[1, 2, 3, 9, 39, 40])].concat());
    run(format!("{US} -w {out} -t --exclude 4-8,10-38,40 {file}")).ok();
    assert_same_frames(&frames(&out), &pick(&[1, 2, 3, 9, 39]));
}

#[test]
fn written_frames_are_those_of_our_own_replay() {
    let folder = folder();
    let file = capture("in.pcap", &|name| path(&folder, name));
    let [one, other] = ["one.pcap", "other.pcap"].map(|name| path(&folder, name));
    run(format!("{US} -w {one} -K -t -l 3 --unique-ip {file}")).ok();
    run(format!("netdyno replay {file} -w {other} --preload --topspeed --loop 3 --unique-ip")).ok();
    assert_same_frames(&frames(&one), &frames(&other));
    // New addresses in every second pass.
    run(format!("{US} -w {one} -t -l 5 --unique-ip --unique-ip-loops 2 {file}")).ok();
    let (all, passes) = (frames(&other), frames(&one));
    let pass = |n: usize| &all[n * 40..(n + 1) * 40];
    assert_same_frames(&passes, &[0, 0, 1, 1, 2].map(pass).concat());
    assert_eq!(tshark_complaints(&one), "");
}

#[test]
fn a_capture_on_standard_output_leaves_the_block_to_standard_error() {
    let folder = folder();
    let file = capture("in.pcap", &|name| path(&folder, name));
    for line in [format!("{US} -w - -t {file}"), format!("netdyno replay {file} -w - --topspeed")] {
        let out = path(&folder, "out.pcap");
        let mut command = command(&line);
        command.stdout(std::fs::File::create(&out).expect("a file"));
        let output =
            command.stderr(std::process::Stdio::piped()).spawn().expect("a process").wait_with_output();
        let said = String::from_utf8(output.expect("its output").stderr).expect("text");
        assert_same_frames(&frames(&out), &frames(&file));
        assert!(said.lines().count() > 1 && !said.contains("\\n"), "{said}");
    }
}

#[test]
fn streamed_captures_are_sent_as_preloaded_ones() {
    let folder = folder();
    let file = path(&folder, "large.pcap");
    // More than is read into memory in any case.
    run(format!(
        "netdyno craft ipv4(src=10.0.0.1,dst=198.18.0.1)/udp(sport=1..500) --count 24000 --size 1500 --rate 300kpps -w {file}"
    ))
    .ok();
    let [streamed, preloaded] = ["streamed.pcap", "preloaded.pcap"].map(|name| path(&folder, name));
    for options in [
        "-l 2 --loopdelay-ms 3 -x 3",
        "-p 1000 --pps-multi 8 -L 25000 -l 2",
        "-M 300 -l 2 --loopdelay-ms 5",
        "-t -l 3 --unique-ip --unique-ip-loops 2",
        "-x 2 --exclude 5-20000",
    ] {
        let options = format!("--departure-times {options}");
        run(format!("{US} -w {streamed} {options} {file}")).ok();
        run(format!("{US} -w {preloaded} -K {options} {file}")).ok();
        let same = std::fs::read(&streamed).expect("a file") == std::fs::read(&preloaded).expect("a file");
        assert!(same, "{options}");
    }
}

#[test]
fn flows_of_streamed_captures_are_counted_as_those_of_preloaded_ones() {
    let net = Net::new();
    let file = net.file("large.pcap");
    run(format!(
        "netdyno craft ipv4(src=10.0.0.1,dst=198.18.0.1)/udp(sport=1..500) --count 24000 --size 1500 -w {file}"
    ))
    .ok();
    for (options, flows) in [("-l 2", 500), ("-l 3 --unique-ip", 1500), ("-l 2 --unique-ip -L 24100", 600)] {
        for preload in ["", "-K"] {
            let said = block(&net.run(format!("{US} -i tx0 -t {preload} {options} {file}")).ok());
            assert_eq!(said.flows, Some(flows.to_string()), "{preload} {options}");
            assert_eq!(said.flow_packets.as_ref(), Some(&said.packets), "{preload} {options}");
        }
    }
}

#[test]
fn packets_captured_short_get_their_length_back() {
    let folder = folder();
    let [file, out] = ["in.pcap", "out.pcap"].map(|name| path(&folder, name));
    std::fs::write(&file, [pcap_header(1), pcap_record(0, 0, 100, &[7; 60])].concat()).expect("a capture");
    run(format!("{US} -w {out} -t {file}")).ok();
    assert_eq!(frames(&out), [vec![7; 60]]);
    run(format!("{US} -w {out} -t --pktlen {file}")).ok();
    assert_eq!(frames(&out), [[vec![7; 60], vec![0; 40]].concat()]);
}

#[test]
fn a_folder_stands_for_the_files_in_it_and_below() {
    let folder = folder();
    let inner = folder.path().join("captures/b");
    std::fs::create_dir_all(&inner).expect("folders");
    for (name, byte) in [("captures/c.pcap", 3), ("captures/a.pcap", 1), ("captures/b/x.pcap", 2)] {
        write_pcap(folder.path().join(name), 1, &[vec![byte; 60]]);
    }
    let out = path(&folder, "out.pcap");
    run(format!("{US} -w {out} -t {}", path(&folder, "captures"))).ok();
    assert_eq!(frames(&out), [1, 2, 3].map(|byte| vec![byte; 60]));
}

#[test]
fn a_capture_cut_off_is_sent_as_far_as_it_goes() {
    let net = Net::new();
    let file = capture("x.pcap", &|name| net.file(name));
    let bytes = std::fs::read(&file).expect("a capture");
    std::fs::write(&file, &bytes[..bytes.len() - 5]).expect("a shorter one");
    for options in ["-t", "-t -W", "-t --flow-expiry 9"] {
        let ran = net.run(format!("{US} -i tx0 {options} {file}")).with(1);
        assert!(
            ran.stderr.contains("cut off") && ran.stderr.lines().count() == 1,
            "{options}: {}",
            ran.stderr
        );
        assert_eq!(block(&ran).packets, "39");
    }
    // Our own verb wants to be told so.
    net.run(format!("netdyno replay {file} --on tx0 --topspeed")).refused(&["cut off"]);
    for stream in ["", "--stream"] {
        let replay = format!("netdyno replay {file} --on tx0 --topspeed {stream} --skip-corrupt --json");
        let ran = net.run(replay).with(1);
        assert_eq!(number(&ran.json()["result"]["tx"]["frames"]), 39);
        assert!(reasons(&ran.json())[0].contains("cut off"), "{}", ran.stdout);
    }
}

#[test]
fn interim_figures_come_as_often_as_asked_for() {
    let net = Net::new();
    let file = capture("x.pcap", &|name| net.file(name));
    let ran = net.run(format!("{US} -i tx0 -p 16 --stats=1 -P {file}")).ok().says(&["PID: "]);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert!(lines[0].starts_with("Test start: 20") && lines[0].ends_with(" ..."), "{}", ran.stdout);
    let count = |start: &str| lines.iter().filter(|line| line.starts_with(start)).count();
    // 40 frames at 16 a second take two and a half seconds.
    assert_eq!(
        [count("Actual: "), count("Rated: "), count("Test complete: 20")],
        [3, 3, 1],
        "{}",
        ran.stdout
    );
}

#[test]
fn figures_after_each_loop_are_those_of_the_loops() {
    let net = Net::new();
    let file = capture("x.pcap", &|name| net.file(name));
    let ran = net.run(format!("{US} -i tx0 -t -l 3 --stats=0 {file}")).ok();
    let kept: Vec<&str> = ran
        .stdout
        .lines()
        .filter(|line| line.starts_with("Loop ") || line.starts_with("Actual: "))
        .map(|line| line.split_once(" packets").map_or(line, |(before, _)| before))
        .collect();
    let wanted =
        ["Loop 1 of 3...", "Actual: 40", "Loop 2 of 3...", "Actual: 80", "Loop 3 of 3...", "Actual: 120"];
    assert_eq!(kept, wanted, "{}", ran.stdout);
}

#[test]
fn packets_leave_as_they_are_asked_for() {
    let net = Net::new();
    let file = capture("x.pcap", &|name| net.file(name));
    let answers = net.file("answers");
    std::fs::write(&answers, "3\n\nnone\n2\n").expect("a file");
    let said = net.file("said");
    let all = frames(&file);
    let got = net.received(6, || {
        let mut command = net.command(format!("{US} -i tx0 -o {file}"));
        command.stdin(std::fs::File::open(&answers).expect("answers"));
        command.stdout(std::fs::File::create(&said).expect("a file"));
        assert!(command.status().expect("a process").success());
    });
    assert_same_frames(&got, &all[..6]);
    let said = std::fs::read_to_string(&said).expect("its words");
    let asked: Vec<&str> =
        said.match_indices("**** Next packet #").map(|(at, _)| &said[at + 18..at + 19]).collect();
    assert_eq!(asked, ["1", "4", "5", "5", "7"], "{said}");
    assert!(said.contains("Actual: 6 packets"), "{said}");
}

#[test]
fn packets_are_printed_by_tcpdump() {
    let net = Net::new();
    let file = capture("x.pcap", &|name| net.file(name));
    let wanted = run(format!("tcpdump -n -r {file}")).ok().stdout;
    assert_eq!(wanted.lines().count(), 40);
    let ran = net.run(format!("{US} -i tx0 -t -v {file}")).ok();
    assert!(ran.stdout.starts_with(&wanted), "{}", ran.stdout);
    assert!(ran.stdout[wanted.len()..].starts_with("Actual: 40 packets"), "{}", ran.stdout);
    let ran = net.run(format!("{US} -i tx0 -t -K --verbose --decode=-e {file}")).ok();
    assert!(ran.stdout.lines().next().expect("a line").contains("ethertype IPv4"), "{}", ran.stdout);
}

#[test]
fn lost_packets_are_told_and_the_same_for_the_same_seed() {
    let net = Net::new();
    let (file, out) = (net.file("x.pcap"), net.file("out.pcap"));
    run(format!("netdyno craft ipv4(id=0..65535)/udp --count 2000 --rate 1mpps -w {file}")).ok();
    let all = frames(&file);
    let lost = |options: &str| {
        run(format!("{US} -w {out} -t {options} {file}")).ok().says(&["lost on purpose"]);
        let left = frames(&out);
        let mut rest = all.iter();
        assert!(left.iter().all(|frame| rest.any(|one| one == frame)), "{options}: in order");
        assert!((1300..1500).contains(&left.len()), "{options}: {}", left.len());
        left
    };
    let first = lost("--loss 30");
    assert_same_frames(&lost("--loss 30.0"), &first);
    assert_ne!(lost("--loss 30 --loss-seed 2"), first);
    let got = net.received(first.len(), || {
        net.run(format!("netdyno replay {file} --on tx0 --topspeed --loss 30%")).ok();
    });
    assert_same_frames(&got, &first);
}

#[test]
fn loops_at_top_speed_wait_as_long_as_asked_for() {
    let net = Net::new();
    let file = capture("x.pcap", &|name| net.file(name));
    let options = net.file("options");
    std::fs::write(&options, "[TCPPREP]\nnonip\n[TCPREPLAY]\nintf1 tx0\ntopspeed\nloop=3\n").expect("a file");
    // Saved as they were read, they are the same.
    let saved = net.file("saved");
    let ran = net.run(format!("{US} --load-opts {options} --save-opts={saved} {file}")).ok();
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
    let ran = net.run(format!("{US} --load-opts {saved} --loopdelay-ns=125000000 {file}")).ok();
    let said = block(&ran);
    assert_eq!((said.packets.as_str(), said.flows.as_deref()), ("120", Some("10")));
    let seconds = ran.stdout.split_whitespace().nth(7).and_then(|s| s.parse::<f64>().ok()).expect("seconds");
    assert!((0.25..2.0).contains(&seconds), "{}", ran.stdout);
    assert_eq!(ran.stderr, "");
}

#[test]
fn an_interrupted_run_closes_with_its_block() {
    let net = Net::new();
    let file = capture("x.pcap", &|name| net.file(name));
    let running = net.start(format!("{US} -i tx0 -p 1000 -l 0 {file}"));
    net.until_frames_leave();
    running.signal("INT");
    let said = block(&running.wait().ok());
    assert!(
        said.packets.parse::<u64>().expect("a number") > 20 && said.flows == Some("10".to_owned()),
        "{said:?}"
    );
}

#[test]
fn what_goes_wrong_is_one_clear_line_and_a_status() {
    let net = Net::new();
    let file = capture("x.pcap", &|name| net.file(name));
    for (options, status, says) in [
        (format!("-t {file}"), 1, "--intf1"),
        (format!("-i tx0 -t --nonsense {file}"), 1, "there is no option --nonsense"),
        (format!("-i tx0 --loop five {file}"), 1, "--loop=five"),
        (format!("-i tx0 -x 2 -t {file}"), 1, "exclude each other"),
        (format!("-i tx0 -I rx0 --cachefile=x {file}"), 255, "x: No such file"),
        (format!("-i tx0 -I rx0 {file}"), 1, "--intf2 needs --cachefile or --dualfile"),
        (format!("-i tx0 -o -t {file}"), 1, "exclude each other"),
        ("-i tx0 -t".to_owned(), 1, "which captures"),
        (format!("-i nope -t {file}"), 255, "there is no interface 'nope'"),
        ("-i tx0 -t nowhere.pcap".to_owned(), 255, "nowhere.pcap cannot be opened"),
        (format!("-i tx0 -t --include 41- {file}"), 255, "no frame"),
    ] {
        let ran = net.run(format!("{US} {options}")).with(status).says(&["netdyno tcpreplay: ", says]);
        assert_eq!((ran.stdout.as_str(), ran.stderr.lines().count()), ("", 1), "{}", ran.stderr);
    }
}

#[test]
fn the_way_to_the_default_route_stays_guarded() {
    let net = Net::new();
    let file = capture("x.pcap", &|name| net.file(name));
    for line in ["ip address add 192.0.2.1/24 dev tx0", "ip route add default via 192.0.2.2"] {
        net.run(line).ok();
    }
    let ran = net.run(format!("{US} -i tx0 -t {file}")).with(255);
    assert_eq!(ran.says(&["tx0 carries the default route", "--yes-disrupt tx0"]).stdout, "");
    let ran = net.run(format!("{US} -i tx0 -t --yes-disrupt tx0 {file}")).ok();
    assert_eq!(block(&ran).packets, "40");
}

#[test]
fn help_version_and_interfaces_are_told() {
    let net = Net::new();
    for option in ["-h", "--help", "-H"] {
        assert!(net.run(format!("{US} {option}")).ok().stdout.contains("-K, --preload-pcap"));
    }
    assert!(net.run(format!("{US} -V")).ok().stdout.contains("4.4.3"));
    assert_eq!(net.run(format!("{US} --listnics")).ok().stdout, "Available network interfaces:\nlo\ntx0\n");
}

#[test]
fn hours_of_silence_pass_a_thousand_times_as_fast_without_drift() {
    let net = Net::new();
    let file = net.file("x.pcap");
    // An hour: bursts of frames 100 ms apart, with silences of up to half an hour between them.
    let mut bytes = pcap_header(1);
    let mut sent = Vec::new();
    for begin in [0, 60, 1860, 3540] {
        for n in 0..600u32 {
            let (second, micros) = (begin + n / 10, n % 10 * 100_000);
            sent.push((f64::from(second) + f64::from(micros) / 1e6) / 1000.0);
            bytes.extend(pcap_record(1_000_000_000 + second, micros, 60, &[7; 60]));
        }
    }
    std::fs::write(&file, bytes).expect("a capture");
    let tcpdump = net.file("times.pcap");
    let mut capturing = net.start_there(format!("tcpdump -Z root -n -U -B 16384 -Q in -i rx0 -w {tcpdump}"));
    capturing.until_it_says("listening on");
    let ran = net.run(format!("{US} -i tx0 -x 1000 {file}")).ok();
    eventually("all frames arrived", || frames(&tcpdump).len() >= sent.len());
    capturing.signal("INT");
    capturing.wait().ok();
    assert_eq!(block(&ran).packets, "2400");
    let times = tshark_field(&tcpdump, "frame.time_relative");
    let times: Vec<f64> = times.iter().map(|t| t.parse().expect("seconds")).collect();
    // How late the least late frame of each burst is: the same for all, or times drift. A burst of which all were late
    // because the sender was held up shows that by being caught up, closer than the 100 us that its frames are apart.
    let bursts = times.chunks(600).zip(sent.chunks(600)).map(|(times, sent)| {
        let late = times.iter().zip(sent).map(|(t, s)| t - s).fold(f64::INFINITY, f64::min);
        let mut gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        gaps.sort_by(f64::total_cmp);
        (late, gaps[gaps.len() / 2] < 80e-6)
    });
    let bursts: Vec<(f64, bool)> = bursts.collect();
    let least = bursts.iter().map(|burst| burst.0).fold(f64::INFINITY, f64::min);
    assert!(bursts.iter().all(|(late, caught_up)| late - least < 0.005 || *caught_up), "{bursts:?}");
}

/// Every form of Scapy's `sendpfast`, with the program that it calls replaced by ours, and what it makes of the output.
const SENDPFAST: &str = "
import json, sys
from scapy.all import Ether, IP, UDP, Raw, conf, sendpfast
conf.prog.tcpreplay = sys.argv[1]
packets = [Ether(dst='02:00:00:00:00:02')/IP(src='10.0.0.1', dst='10.0.0.2')/UDP(sport=n, dport=9)/Raw(b'x' * 40) for n in (7, 8)]
for n, packet in enumerate(packets):
    packet.time = 1 + n / 1000
forms = [
    {},
    {'realtime': 2.0},
    {'realtime': None},
    {'pps': 500},
    {'mbps': 1.5},
    {'mbps': 0},
    {'pps': 500, 'loop': 3},
    {'loop': 3, 'file_cache': True},
    {'pps': 500, 'replay_args': ['--limit=1']},
    {'realtime': None, 'replay_args': ['--unique-ip'], 'loop': 2, 'file_cache': True},
]
for form in forms:
    print(json.dumps([form, sendpfast(packets, iface='tx0', parse_results=True, **form)]))
";

#[test]
fn scapys_sendpfast_works_in_every_form() {
    let net = Net::new();
    let tool = net.file("tcpreplay");
    symlink(env!("CARGO_BIN_EXE_netdyno"), &tool).expect("a link");
    let mut scapy = net.command("/usr/bin/python3 -c");
    scapy.args([SENDPFAST, &tool]);
    let said = start(scapy).wait().ok().stdout;
    let mut sent = 0;
    for line in said.lines() {
        let form: Value = serde_json::from_str(line).expect("a line of JSON");
        let (form, results) = (&form[0], &form[1]);
        let packets = match (&form["loop"], &form["replay_args"][0]) {
            (_, limit) if limit == "--limit=1" => 1,
            (Value::Number(loops), _) => 2 * loops.as_u64().expect("a count"),
            _ => 2,
        };
        for name in ["packets", "successful"] {
            assert_eq!(number(&results[name]), packets, "{name}: {line}");
        }
        assert_eq!((number(&results["bytes"]), number(&results["failed"])), (packets * 82, 0), "{line}");
        assert!(results["pps"].is_number() && results["flows"].is_number(), "{line}");
        sent += packets;
    }
    assert_eq!(said.lines().count(), 10);
    assert_eq!(arrived(&net), sent);
}
