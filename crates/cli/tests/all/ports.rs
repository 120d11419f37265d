//! Several ports at once: each sends for itself and is measured for itself, in pairs or fully meshed.

use crate::common::*;
use crate::judged::judged;
use lab::{Device, Kind, Options};
use serde_json::Value;
use std::time::Duration;

fn four_cables() -> Options {
    Options { cables: 4, ..Options::default() }
}

/// A device with four ports: port0 to port3 are ours.
fn around(kind: Kind) -> Options {
    Options {
        device: Some(Device { kind, bottleneck: None, loss: None }),
        ports: Some(4),
        ..Options::default()
    }
}

/// What became of it; a sender may have been slow, on a machine that is busy with other tests.
#[track_caller]
fn counted(ran: &Ran) -> Value {
    let report = ran.json();
    let reasons = reasons(&report);
    assert!(reasons.iter().all(|why| why.starts_with("the rate was not reached")), "{reasons:?}\n{report}");
    report
}

/// The rows of all ports: interface and where it was measured, sent, received, lost, misdirected.
fn rows(report: &Value) -> Vec<(String, String, [u64; 4])> {
    let row = |port: &Value| {
        let word = |name: &str| port[name].as_str().expect("a name").to_owned();
        let counts =
            ["tx_frames", "rx_frames", "lost_frames", "misdirected_frames"].map(|of| number(&port[of]));
        (word("interface"), word("measured_at"), counts)
    };
    report["result"]["ports"].as_array().expect("ports").iter().map(row).collect()
}

/// By stream its name, and how many frames were sent, arrived and were lost.
fn streams(report: &Value) -> Vec<(String, [u64; 3])> {
    let of = |stream: &Value| {
        let counts = ["tx_frames", "rx_frames", "lost_frames"].map(|of| number(&stream[of]));
        (stream["name"].as_str().expect("a name").to_owned(), counts)
    };
    report["streams"].as_array().expect("streams").iter().map(of).collect()
}

const IN_PAIRS: &str =
    "--on tx0 --on tx1 --on tx2 --on tx3 --measure rx0 --measure rx1 --measure rx2 --measure rx3";

#[test]
fn four_ports_send_and_are_measured_to_the_frame() {
    let net = Net::with(&four_cables());
    for engine in ["packet", "afxdp", "xdp"] {
        let line = format!(
            "netdyno send ipv4(src=10.0.0.0/16)/udp {IN_PAIRS} --rate 2kpps --count 400 --engine {engine} --json"
        );
        let report = counted(&net.run(line));
        let expected: Vec<_> =
            (0..4).map(|n| (format!("tx{n}"), format!("rx{n}"), [400, 400, 0, 0])).collect();
        assert_eq!(rows(&report), expected, "{engine}");
        // The sums beside them.
        let result = &report["result"];
        assert_eq!([number(&result["tx"]["frames"]), number(&result["rx"]["frames"])], [1600; 2], "{engine}");
        assert_eq!(number(&result["loss"]["frames"]), 0);
        assert!(
            (result["tx"]["intended_frames_per_second"].as_f64().expect("a rate") - 8_000.0).abs() < 1e-6
        );
        let told = streams(&report);
        assert_eq!(told.len(), 4, "{told:?}");
        for (number, (name, counts)) in told.iter().enumerate() {
            assert!(
                name.ends_with(&format!(" by tx{number}")) && *counts == [400, 400, 0],
                "{name} {counts:?}"
            );
        }
        assert_eq!(report["environment"]["engine"]["name"], engine);
        // Each interface counted what it sent.
        let counters = result["tx"]["interface_counters"].as_array().expect("counters");
        assert_eq!(counters.iter().map(|c| number(&c["sent_frames"])).collect::<Vec<_>>(), [400; 4]);
    }
}

#[test]
fn a_scenario_and_several_cores_are_each_ports_own() {
    let net = Net::with(&four_cables());
    let file = net.file("two.yaml");
    let scenario = "streams:\n- name: a\n  frame: ipv4/udp(dport=1)\n  rate: 1kpps\n  count: 100\n\
                    - name: b\n  frame: ipv4/udp(dport=2)\n  rate: 500pps\n  count: 60\n";
    std::fs::write(&file, scenario).expect("a file");
    let report = counted(&net.run(format!("netdyno send {file} --on tx0,tx1 --measure rx0,rx1 --json")));
    let expected: Vec<_> = (0..2).map(|n| (format!("tx{n}"), format!("rx{n}"), [160, 160, 0, 0])).collect();
    assert_eq!(rows(&report), expected);
    let counts = |name: &str, frames: u64| (name.to_owned(), [frames, frames, 0]);
    let all = [("a by tx0", 100), ("b by tx0", 60), ("a by tx1", 100), ("b by tx1", 60)];
    assert_eq!(streams(&report), all.map(|(name, frames)| counts(name, frames)));
    if several_cpus() {
        let line =
            "netdyno send ipv4/udp --on tx0,tx1 --measure rx0,rx1 --rate 1kpps --count 301 --cores 2 --json";
        let report = counted(&net.run(line));
        let expected: Vec<_> =
            (0..2).map(|n| (format!("tx{n}"), format!("rx{n}"), [301, 301, 0, 0])).collect();
        assert_eq!(rows(&report), expected);
        assert_eq!(report["result"]["tx"]["cores"].as_array().expect("workers").len(), 4);
        assert_eq!(streams(&report).len(), 2);
    }
}

#[test]
fn a_file_with_four_links_does_the_same_and_its_result_is_shown_port_by_port() {
    let net = Net::with(&four_cables());
    let (file, folder) = (net.file("job.yaml"), net.file("result"));
    let links: Vec<String> = (0..4).map(|n| format!("{{on: tx{n}, measure: rx{n}}}")).collect();
    let job = format!(
        "schema: netdyno.job/1\nkind: send\nwhat: ipv4/udp\nlinks: [{}]\nrate: 1kpps\ncount: 200\n",
        links.join(", ")
    );
    std::fs::write(&file, job).expect("a file");
    let ran = net.run(format!("netdyno run {file} --report {folder}"));
    assert!(ran.status < 2, "{ran:?}");
    for n in 0..4 {
        let row: Vec<&str> = ran
            .stdout
            .lines()
            .find(|line| line.starts_with(&format!("tx{n} ")) && line.contains("rx"))
            .unwrap_or_else(|| panic!("no row of tx{n}: {}", ran.stdout))
            .split_whitespace()
            .collect();
        assert_eq!(
            row,
            [&format!("tx{n}"), "200", "12,000", "0", &format!("rx{n}"), "200", "12,000", "0", "0"]
        );
    }
    let page = std::fs::read_to_string(format!("{folder}/report.html")).expect("a page");
    assert!(page.contains("misdirected") && page.contains("<td>tx3</td>"), "no ports on the page");
    let printed =
        net.run(format!("netdyno send ipv4/udp {IN_PAIRS} --rate 1kpps --count 200 --print-job")).ok();
    assert_eq!(printed.json()["links"].as_array().expect("links").len(), 4);
}

/// A run of 300 frames by each of four ports to the other three.
fn meshed(net: &Net) -> Ran {
    net.run("netdyno send ipv4(src={src_ip},dst={dst_ip})/udp --mesh --on port0,port1,port2,port3 --rate 1kpps --count 300 --json")
}

#[test]
fn in_a_mesh_every_pair_of_ports_is_exact() {
    let net = Net::with(&around(Kind::Bridge));
    let report = counted(&meshed(&net));
    let expected: Vec<_> =
        (0..4).map(|n| (format!("port{n}"), format!("port{n}"), [300, 300, 0, 0])).collect();
    assert_eq!(rows(&report), expected);
    let mut pairs = Vec::new();
    for from in 0..4 {
        pairs.extend((1..4).map(|to| (format!("port{from} to port{}", (from + to) % 4), [100, 100, 0])));
    }
    assert_eq!(streams(&report), pairs);
    assert_eq!(
        [number(&report["result"]["tx"]["frames"]), number(&report["result"]["rx"]["frames"])],
        [1200; 2]
    );
}

#[test]
fn a_device_that_floods_is_told_and_its_copies_are_nobodys() {
    let net = Net::with(&around(Kind::Bridge));
    let device = &net.lab.device.as_ref().expect("a device")[0].namespace;
    for port in 0..4 {
        start(inside(device, &format!("bridge link set dev dut{port} learning off"))).wait().ok();
    }
    // What it learnt of the cables' own addresses is no port of ours.
    let ran = meshed(&net).with(1);
    let report = ran.json();
    // Each frame comes to the port it was sent to, and to two others.
    let expected: Vec<_> =
        (0..4).map(|n| (format!("port{n}"), format!("port{n}"), [300, 300, 0, 600])).collect();
    assert_eq!(rows(&report), expected);
    assert_eq!(number(&report["result"]["rx"]["frames"]), 1200);
    assert_eq!(number(&report["result"]["loss"]["frames"]), 0);
    assert!(streams(&report).iter().all(|(_, counts)| *counts == [100, 100, 0]), "{report}");
    let said = reasons(&report);
    let told = |why: &String| {
        why.starts_with("2,400 frames arrived at a port that they were not sent to")
            && why.contains("port3 600")
    };
    assert!(said.iter().any(told), "{said:?}");
}

#[test]
fn a_device_that_mixes_up_ports_loses_what_it_misdirects() {
    let net = Net::with(&around(Kind::Bridge));
    let device = &net.lab.device.as_ref().expect("a device")[0].namespace;
    // All that is for port1 goes to port2, whatever is learnt.
    start(inside(device, "bridge fdb replace 02:00:00:00:00:02 dev dut2 master static sticky")).wait().ok();
    let report = meshed(&net).with(1).json();
    let [.., port3] = &rows(&report)[..] else { panic!("{report}") };
    assert_eq!(port3.2, [300, 300, 100, 0]);
    let lost = |name: &str| streams(&report).into_iter().find(|(own, _)| own == name).expect("a stream").1;
    assert_eq!((lost("port0 to port1"), lost("port3 to port1")), ([100, 0, 100], [100, 0, 100]));
    // What port2 sends there would have to go back where it came from.
    assert_eq!((lost("port2 to port1"), lost("port1 to port2")), ([100, 0, 100], [100, 100, 0]));
    let at_port2 = &rows(&report)[2];
    assert_eq!(at_port2.2, [300, 300, 100, 200]);
    let said = reasons(&report).join("; ");
    assert!(said.contains("of those sent by port0 100, port2 100, port3 100"), "{said}");
}

#[test]
fn a_port_that_loses_its_link_is_named_and_the_others_are_not() {
    let net = Net::with(&four_cables());
    let sender = net.start(format!(
        "netdyno send ipv4/udp {IN_PAIRS} --rate 500pps --duration 60s --engine packet --json"
    ));
    net.until_frames_leave();
    net.run_there("ip link set rx2 down").ok();
    std::thread::sleep(Duration::from_millis(300));
    net.run_there("ip link set rx2 up").ok();
    std::thread::sleep(Duration::from_millis(200));
    sender.signal("INT");
    let report = sender.wait().with(1).json();
    let events = report["result"]["link_events"].as_array().expect("events");
    let named = |event: &Value| event["interface"].as_str().expect("a name").to_owned();
    let mut which: Vec<String> = events.iter().map(named).collect();
    which.sort();
    which.dedup();
    assert_eq!(which, ["rx2", "tx2"]);
    let failed: Vec<u64> = report["result"]["ports"]
        .as_array()
        .expect("ports")
        .iter()
        .map(|port| number(&port["failed_frames"]))
        .collect();
    // What the third was to send meanwhile was lost, refused, or waited in vain for its time; the others noticed nothing.
    for (port, (_, _, [sent, received, lost, _])) in rows(&report).into_iter().enumerate() {
        let harmed = lost + failed[port];
        assert!(harmed == 0 || port == 2, "{port}: {sent} {received} {lost} {failed:?}");
        assert_eq!(received, sent - lost, "{port}");
    }
    let mut said = reasons(&report);
    let warnings = report["warnings"].as_array().cloned().unwrap_or_default();
    said.extend(warnings.iter().map(|said| said.as_str().expect("text").to_owned()));
    let told = |why: &&String| why.starts_with("the link was lost") && why.contains("tx2 (send)");
    assert_eq!(said.iter().filter(told).count(), 1, "{said:?}");
}

/// 20 Mbit/s of 1514 bytes without FCS leave by each port.
const TRUTH: f64 = 20e6 / (1514.0 * 8.0);

#[test]
fn a_search_over_four_ports_finds_what_each_of_them_gets() {
    searching();
    // Beside others most trials say nothing, as four senders are held up by what holds up one: a search then goes on for minutes.
    for pattern in ["--mesh", ""] {
        let search = format!(
            "timeout --preserve-status -s INT 45 netdyno search throughput --lab --ports 4 {pattern} --lab-bottleneck 20mbps --lab-queue 30k --lab-burst 6k \
             --size 1518 --method bisect --trial-duration 200ms --precision 10% --json"
        );
        let ran = run(search);
        if !judged(ran.json()["result"]["search"]["complete"] == true) {
            continue;
        }
        let (report, determined) = ran.searched();
        let found = &report["result"]["throughput"]["frames_per_second"];
        if let (false, true) = (determined, found.is_null()) {
            continue;
        }
        let found = found.as_f64().expect("a rate");
        // What waits and what was saved goes through besides.
        let most = TRUTH + 36_000.0 / 1514.0 / 0.2;
        let least = if determined { TRUTH * 0.88 } else { 0.0 };
        assert!((least..most * 1.01).contains(&found), "{pattern}: {found}, the truth is {TRUTH} to {most}");
        let interfaces = report["resolved"]["interfaces"].as_array().expect("names");
        assert_eq!(interfaces.len(), 4, "{interfaces:?}");
    }
}

#[test]
fn a_trial_of_a_mesh_counts_all_its_ports_over_a_router_too() {
    searching();
    for dut in ["bridge", "router"] {
        let line = format!(
            "netdyno trial --lab --ports 3 --mesh --lab-dut {dut} --rate 400pps --duration 300ms --json"
        );
        let ran = run(line);
        let report = ran.json();
        let trial = &report["result"]["trials"][0];
        if judged(!says_nothing(trial)) {
            assert_passed(trial, 360);
            assert_eq!(streams(&report).len(), 6, "{dut}");
        }
    }
}

#[test]
fn lists_of_ports_that_do_not_fit_are_refused_with_the_mend() {
    let net = Net::with(&four_cables());
    for (options, words) in [
        ("--on tx0 --on tx1 --measure rx0", &["2 of --on but 1 of --measure"][..]),
        ("--on tx0 --measure rx0 --measure rx1", &["1 of --on but 2 of --measure"]),
        ("--on tx0 --on tx0", &["tx0 is named twice"]),
        ("--on tx0 --on tx1 --measure rx0 --measure rx0", &["rx0 is named twice"]),
        ("--on tx0 --mesh", &["--mesh", "two ports or more"]),
        ("--on tx0 --on tx1 --round-trip", &["--round-trip", "give one --on"]),
        ("--on tx0 --on tx1 --engine null", &["--engine null", "one --on"]),
    ] {
        net.run(format!("netdyno send ipv4/udp {options} --rate 1kpps --count 1")).refused(words);
    }
    // By another name it is the same.
    let here = handle(&net.lab.sender.namespace);
    net.run(format!("netdyno send ipv4/udp --on tx0 --on tx0@{here} --rate 1kpps --count 1"))
        .refused(&["the same interface"]);
    run("netdyno trial --lab --ports 2 --rate 1kpps").refused(&["--ports 2", "3 to 16"]);
    run("netdyno trial --lab --ports 5 --rate 1kpps").refused(&["--ports 5", "even"]);
    net.run("netdyno trial --on tx0 --mesh --rate 1kpps").refused(&["--mesh", "two ports or more"]);
    run("netdyno lab --ports 2 -- true").refused(&["--ports 2", "3 to 16"]);
}
