//! `--capture`, `--pass`: what is captured where it is measured, held to Wireshark's tools; and labs of `send` and `replay`.

use crate::common::*;
use crate::judged::judged;
use std::collections::BTreeMap;

/// Nanoseconds of a time with nine decimals.
fn ns(time: &str) -> i64 {
    let (seconds, fraction) = time.split_once('.').expect("a fraction");
    format!("{seconds}{fraction:0<9}").parse().expect("a time")
}

#[test]
fn a_capture_has_every_frame_at_the_time_that_latency_is_told_by() {
    let net = Net::new();
    for how in ["xdp", "packet"] {
        let file = net.file("all.pcapng");
        let line = format!(
            "netdyno send ipv4/udp --size 64,128,1518 --on tx0 --rate 2kpps --count 600 --measure rx0 --meter {how} --json \
             --capture {file}"
        );
        let report = net.run(line).json();
        let told = &report["result"]["capture"];
        assert_eq!([&told["frames"], &told["arrived_frames"]].map(number), [600, 600], "{how}");
        assert!(told["missed_frames"].is_null(), "{told}");
        assert!(run(format!("capinfos -M {file}")).ok().stdout.contains("Strict time order:   True"));
        // The comment says how the wall clock stood to the meter's; the signature says when a frame left.
        let comment = run(format!("capinfos {file}")).ok().stdout;
        let ahead = comment.split("CLOCK_MONOTONIC + ").nth(1).and_then(|rest| rest.split(' ').next());
        let ahead: i64 = ahead.and_then(|ahead| ahead.parse().ok()).expect("how far the wall clock is ahead");
        let mut delays = Vec::new();
        for row in tshark_rows(&file, &["frame.time_epoch", "frame.len", "frame.cap_len", "udp.payload"]) {
            assert_eq!(row[1], row[2], "captured whole");
            let stamp = &row[3][row[3].len() - 12..];
            let left = i64::from_str_radix(stamp, 16).expect("a stamp of 48 bits");
            delays.push((ns(&row[0]) - ahead - left) & ((1 << 48) - 1));
        }
        let latency = &report["result"]["latency_ns"];
        let ends = [delays.iter().min(), delays.iter().max()].map(|end| *end.expect("frames") as u64);
        assert_eq!(ends, [&latency["min"], &latency["max"]].map(number), "{how}");
        let mean = delays.iter().sum::<i64>() as f64 / delays.len() as f64;
        assert!((mean - latency["mean"].as_f64().expect("a mean")).abs() < 0.001, "{how}");
    }
}

#[test]
fn what_befell_frames_is_captured_with_its_neighbours_and_said() {
    let net = Net::new();
    let (whole, spoilt, file) = (net.file("whole.pcap"), net.file("spoilt.pcap"), net.file("near.pcapng"));
    run(format!("netdyno craft ipv4/udp --sign --size 64 --count 300 -w {whole}")).ok();
    let mut frames = frames(&whole);
    frames.swap(200, 201);
    frames.insert(150, frames[149].clone());
    frames.drain(50..53);
    write_pcap(&spoilt, 1, &frames);
    for how in ["xdp", "packet"] {
        let options = "--capture-only lost,duplicated,reordered --capture-around 2 --capture-snap 40";
        let line = format!(
            "netdyno measure --on rx0 --meter {how} --count {} --json --capture {file} {options}",
            frames.len()
        );
        let mut meter = net.start_there(line);
        meter.until_it_says("measuring on rx0");
        net.run(format!("netdyno replay {spoilt} --on tx0 --topspeed")).ok();
        let report = meter.wait().ok().json();
        assert_eq!(number(&report["result"]["capture"]["events"]), 4, "{how}");
        let rows = tshark_rows(&file, &["frame.cap_len", "frame.len", "frame.comment"]);
        assert!(rows.iter().all(|row| row[0] == "40" && row[1] == "60"), "{rows:?}");
        let said: Vec<_> = rows.iter().map(|row| row[2].as_str()).filter(|said| !said.is_empty()).collect();
        let expected = [
            "stream 0: 3 frames missing before this one (numbers 50 to 52)",
            "stream 0: number 149 came before",
            "stream 0: 1 frame missing before this one (number 200)",
            "stream 0: number 200 came after number 201",
        ];
        assert_eq!(said, expected, "{how}");
        // Each with two before and two behind; the last two are each other's.
        assert_eq!(rows.len(), 5 + 5 + 2 + 2 + 2, "{how}: {rows:?}");
    }
}

#[test]
fn a_capture_of_so_many_frames_has_the_first_and_measuring_goes_on() {
    let net = Net::new();
    for how in ["xdp", "packet"] {
        let file = net.file("first.pcapng");
        let line = format!(
            "netdyno send ipv4/udp(sport=1000..1599) --on tx0 --rate 2kpps --count 600 --measure rx0 --meter {how} --json \
             --capture {file} --capture-count 100"
        );
        let report = net.run(line).json();
        let told = &report["result"]["capture"];
        let counts = [&told["frames"], &told["wanted_frames"], &told["arrived_frames"]].map(number);
        assert_eq!(counts, [100, 100, 600], "{how}");
        assert!(told["missed_frames"].is_null(), "{told}");
        assert_eq!(number(&report["result"]["latency_ns"]["count"]), 600, "{how}");
        let counted = run(format!("capinfos -c -M {file}")).ok().stdout;
        assert!(
            counted.lines().any(|line| line.starts_with("Number of packets") && line.ends_with(" 100")),
            "{counted}"
        );
        let listed = run(format!("tcpdump -nr {file}")).ok().stdout;
        assert_eq!(listed.lines().count(), 100, "{how}");
        let ports: Vec<String> = tshark_rows(&file, &["udp.srcport"]).concat();
        let expected: Vec<String> = (1000..1100).map(|port: u32| port.to_string()).collect();
        assert_eq!(ports, expected, "{how}");
    }
    // No later file takes the place of the one that has them.
    let file = net.file("kept.pcapng");
    let line = format!(
        "netdyno send ipv4/udp --on tx0 --rate 1kpps --duration 2500ms --measure rx0 --json --capture {file} --capture-count 100 \
         --capture-rotate 1s --capture-files 1"
    );
    let report = net.run(line).json();
    let told = report["result"]["capture"].clone();
    assert_eq!(number(&told["frames"]), 100, "{told}");
    // They are there within a second, unless their sender is held up.
    if judged(longest_stall(&report) < 500_000_000) {
        assert_eq!(number(&told["files_begun"]), 1, "{told}");
    }
    // Of those that something befell the first, with their neighbours, however many there are.
    let file = net.file("lost.pcapng");
    let line = format!(
        "netdyno send ipv4/udp --lab --lab-loss 1/100 --rate 2kpps --count 1000 --json --capture {file} --capture-only lost \
         --capture-count 20"
    );
    let told = run(line).with(1).json()["result"]["capture"].clone();
    assert_eq!(number(&told["frames"]), 20, "{told}");
    assert_eq!(tshark_rows(&file, &["frame.len"]).len(), 20);
    run(format!("netdyno send ipv4/udp --lab --count 1 --capture {file} --capture-count 0"))
        .with(2)
        .says(&["--capture-count", "above zero"]);
}

#[test]
fn several_files_take_turns_and_a_killed_capture_is_readable() {
    let net = Net::new();
    let file = net.file("turns.pcapng");
    let send = "netdyno send ipv4/udp --size 1518 --on tx0 --rate 2kpps --measure rx0 --json";
    let report = net
        .run(format!("{send} --count 1000 --capture {file} --capture-rotate-size 300k --capture-files 3"))
        .json();
    let told = &report["result"]["capture"];
    assert_eq!(number(&told["frames"]), 1000);
    let files = told["files"].as_array().expect("files");
    assert_eq!((number(&told["files_begun"]), files.len()), (6, 3));
    let packets: usize =
        files.iter().map(|file| tshark_rows(file.as_str().expect("a name"), &["frame.len"]).len()).sum();
    assert!((400..=600).contains(&packets), "{packets} packets");
    // At most the last block is not whole.
    let running = net.start(format!("{send} --capture {file}"));
    eventually("the file has frames", || std::fs::metadata(&file).is_ok_and(|data| data.len() > 500_000));
    running.signal("KILL");
    running.wait();
    let read = run(format!("tshark -r {file} -T fields -e frame.len")).stdout;
    assert!(read.lines().filter(|length| *length == "1514").count() > 300, "{read}");
}

#[test]
fn a_full_disk_ends_a_capture_at_a_whole_block_and_the_run_is_short() {
    let net = Net::new();
    let disk = net.file("disk");
    std::fs::create_dir(&disk).expect("a folder");
    // A file system of 300 kB, which nobody else sees.
    let binary = env!("CARGO_BIN_EXE_netdyno");
    let send = "send ipv4/udp --size 1518 --on tx0 --rate 2kpps --count 1000 --measure rx0 --json";
    let script = net.file("fill.sh");
    let lines = format!(
        "mount -t tmpfs -o size=300k none {disk} || exit 9\n{binary} {send} --capture {disk}/out.pcapng; ended=$?\ncp {disk}/out.pcapng {disk}.pcapng\nexit $ended\n"
    );
    std::fs::write(&script, lines).expect("a script");
    let ran = net.run(format!("unshare -m sh {script}")).with(1);
    let report = ran.json();
    let told = &report["result"]["capture"];
    let (arrived, there) = (number(&told["arrived_frames"]), number(&told["frames"]));
    assert_eq!((arrived, there + number(&told["missed_frames"])), (1000, arrived), "{told}");
    assert!((100..210).contains(&there), "{told}");
    let said = reasons(&report).join(" ");
    assert!(said.contains(&format!("{} frames of 1,000 not in the capture", 1000 - there)), "{said}");
    // tshark reads it to its end without a complaint, and finds as many.
    let read = run(format!("tshark -r {disk}.pcapng -T fields -e frame.len")).ok();
    assert_eq!(read.stdout.lines().count() as u64, there, "{}", read.stderr);
    assert_eq!(number(&told["bytes"]), there * 1514);
}

#[test]
fn what_passes_reaches_a_socket_and_what_does_not_does_not() {
    let net = Net::with(&::lab::Options { addresses: true, ..Default::default() });
    // Its buffer (SO_RCVBUFFORCE) holds all, so that a reader without its CPU loses nothing of what is caught up at once.
    let listen = "import socket, sys\n\
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
        s.setsockopt(socket.SOL_SOCKET, 33, 1 << 22)\n\
        s.bind(('198.18.0.2', 9)); s.settimeout(int(sys.argv[1])); print('ready', flush=True)\n\
        n = 0\n\
        try:\n\
        \x20   while n < 500: s.recv(2000); n += 1\n\
        except TimeoutError: pass\n\
        print(n)\n";
    let script = net.file("listen.py");
    std::fs::write(&script, listen).expect("a written file");
    let mac = net.lab.receiver.mac.map(|byte| format!("{byte:02x}")).join(":");
    let what = format!("ether(dst={mac})/ipv4(src=198.18.0.1,dst=198.18.0.2)/udp(dport=9)");
    for (how, option, got) in [("xdp", "--pass", "500"), ("xdp", "", "0"), ("packet", "--pass", "500")] {
        // What is to come may begin late on a busy machine; what is not to come is waited for in vain.
        let patience = if got == "0" { 3 } else { 60 };
        let mut listener = net.start_there(format!("python3 {script} {patience}"));
        listener.until_it_prints("ready");
        let line = format!(
            "netdyno send {what} --on tx0 --rate 2kpps --count 500 --measure rx0 --meter {how} --json {option}"
        );
        let report = net.run(line).json();
        assert_eq!(number(&report["result"]["loss"]["frames"]), 0, "{how} {option}");
        assert_eq!(number(&report["result"]["latency_ns"]["count"]), 500, "{how} {option}");
        let heard = listener.wait().ok().stdout;
        assert_eq!(heard.lines().last(), Some(got), "{how} {option}");
    }
}

#[test]
fn a_replay_in_a_lab_of_its_own_passes_both_directions_of_a_capture() {
    let dir = folder();
    let (capture, file) = (dir.path().join("both.pcap"), dir.path().join("out.pcapng"));
    let frame = |from: u8, to: u8| {
        let mut frame = vec![2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 0x88, 0xb5];
        frame.resize(60, from);
        frame
    };
    let frames: Vec<_> = (0..100).flat_map(|_| [frame(7, 9), frame(9, 7)]).collect();
    write_pcap(capture.display().to_string(), 1, &frames);
    let line = format!(
        "netdyno replay {} --rate 2kpps --lab --lab-bottleneck 50mbps --json --capture {}",
        capture.display(),
        file.display()
    );
    let report = run(&line).json();
    assert_eq!(number(&report["result"]["rx"]["frames"]), 200);
    let mut by_sender = BTreeMap::new();
    for row in tshark_rows(&file.display().to_string(), &["eth.src"]) {
        *by_sender.entry(row[0].clone()).or_insert(0) += 1;
    }
    assert_eq!(by_sender.into_values().collect::<Vec<_>>(), [100, 100]);
    // The job says the same.
    let job = dir.path().join("job.json");
    std::fs::write(&job, run(format!("{line} --print-job").replace("--json ", "")).ok().stdout)
        .expect("a written file");
    run(format!("netdyno run {} --json", job.display())).refused(&["out.pcapng", "because a file says so"]);
    let lost =
        run("netdyno send ipv4/udp --rate 2kpps --count 400 --lab --lab-loss 1/100 --json").with(1).json();
    assert_eq!(number(&lost["result"]["loss"]["frames"]), 4);
}

#[test]
fn metrics_of_a_lab_are_reachable_from_where_it_was_made() {
    let net = Net::new();
    let line = "netdyno lab -- netdyno send ipv4/udp --on tx0 --rate 1kpps --duration 20s --measure rx0 --metrics 127.0.0.1:9131";
    let lab = net.start(line);
    eventually("metrics are served outside the lab", || {
        let page = net.run("curl -s --max-time 5 http://127.0.0.1:9131/metrics").stdout;
        page.lines().any(|line| line.starts_with("netdyno_") && line.contains("rx") && !line.ends_with(" 0"))
    });
    lab.signal("INT");
    lab.wait().with(1);
}

#[test]
fn two_interfaces_without_sides_are_told_apart_by_what_the_capture_shows() {
    let net = Net::with(&::lab::Options { cables: 2, ..Default::default() });
    let (capture, frames) = (net.file("talk.pcap"), |port: u8| {
        let request = format!("ipv4(src=10.0.0.1,dst=10.0.0.2)/udp(sport=40000,dport={port})");
        let answer = format!("ipv4(src=10.0.0.2,dst=10.0.0.1)/udp(sport={port},dport=40000)");
        [request, answer]
    });
    let mut both = Vec::new();
    for (number, what) in frames(53).into_iter().enumerate() {
        let one = net.file(&format!("{number}.pcap"));
        run(format!("netdyno craft {what} --count 20 -w {one}")).ok();
        both.extend(crate::common::frames(&one));
    }
    write_pcap(&capture, 1, &both);
    let ran = net.run(format!(
        "netdyno replay {capture} --on tx0 --on2 tx1 --rate 2kpps --measure rx0 --measure2 rx1 --json"
    ));
    let ran = ran.says(&["sides: auto: what clients send leaves by tx0"]);
    let sent = ran.json()["result"]["tx"]["interfaces"].clone();
    let sent: Vec<u64> =
        sent.as_array().expect("two interfaces").iter().map(|of| number(&of["frames"])).collect();
    assert_eq!(sent.iter().sum::<u64>(), 40);
}
