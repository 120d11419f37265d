//! What was due and not sent: every run says it, whoever ended it.

use crate::common::*;
use crate::judged::judged;
use serde_json::Value;

fn tx(report: &Value, name: &str) -> u64 {
    number(&report["result"]["tx"][name])
}

/// Beyond any machine: what is said of it, and how much.
#[track_caller]
fn assert_short(report: &Value) {
    let reasons = reasons(report);
    assert!(reasons.iter().any(|reason| reason.starts_with("the rate was not reached: ")), "{reasons:?}");
    let counted = tx(report, "due_not_sent_frames") + tx(report, "frames") + tx(report, "failed");
    assert!(counted <= tx(report, "intended_frames") && tx(report, "due_not_sent_frames") > 0, "{report}");
}

#[test]
fn an_endless_run_that_a_signal_ends_is_held_to_its_rate() {
    for engine in ["packet", "afxdp", "xdp"] {
        // What of a duration was due is told before an engine is asked.
        let ends: &[&str] = if engine == "packet" { &["", "--duration 60s"] } else { &[""] };
        for more in ends {
            let net = Net::new();
            let sender = net.start(format!(
                "netdyno send ipv4/udp --on tx0 --measure rx0 --rate 90mpps --engine {engine} --json {more}"
            ));
            net.until_frames_leave();
            std::thread::sleep(std::time::Duration::from_millis(200));
            sender.signal("INT");
            assert_short(&sender.wait().with(1).json());
        }
        let net = Net::new();
        // At a rate that it keeps, a signal is the end that was asked for.
        let sender = net.start(format!(
            "netdyno send ipv4/udp --on tx0 --measure rx0 --rate 1kpps --engine {engine} --json"
        ));
        net.until_frames_leave();
        sender.signal("INT");
        let report = sender.wait().result();
        assert!(tx(&report, "due_not_sent_frames") == 0 || was_held_up(&report), "{report}");
    }
}

#[test]
fn what_was_due_in_the_duration_and_not_sent_is_counted_to_the_frame() {
    if !several_cpus() {
        return;
    }
    let net = Net::new();
    for engine in ["packet", "afxdp", "xdp", "packet --cores 2"] {
        let ran = net.run(format!(
            "netdyno send ipv4/udp --on tx0 --measure rx0 --rate 90mpps --duration 200ms --engine {engine} --json"
        ));
        let report = ran.with(1).json();
        assert_short(&report);
        let counted = ["frames", "failed", "due_not_sent_frames"].map(|name| tx(&report, name));
        assert_eq!(counted.iter().sum::<u64>(), 18_000_000, "{engine}: {report}");
    }
    // Where frames must be walked to, and where only the sender reads what was due.
    let ran = net.run("netdyno send ipv4/udp --size 64,128 --on tx0 --rate 60gbps --duration 100ms --json");
    let report = ran.with(1).json();
    assert_short(&report);
    let file = net.file("times.pcap");
    run(format!("netdyno craft ipv4/udp --size 64 --count 300000 --rate 1mpps -w {file}")).ok();
    let line =
        format!("netdyno replay {file} --stream --on tx0 --speed 100x --duration 2ms --engine packet --json");
    let report = net.run(line).with(1).json();
    let counted = ["frames", "failed", "due_not_sent_frames"].map(|name| tx(&report, name));
    // A microsecond apart, a hundred times as fast. Where reading them all takes too long, that is said.
    let least = reasons(&report).iter().any(|reason| reason.contains("at least "));
    let said = reasons(&report).iter().any(|reason| reason.contains(" of 200,000 frames that were due"));
    assert!(least && counted.iter().sum::<u64>() < 200_000 || said, "{report}");
    assert!(least || counted.iter().sum::<u64>() == 200_000, "{report}");
}

#[test]
fn frames_that_get_lost_on_purpose_are_not_due() {
    let net = Net::new();
    let file = net.file("x.pcap");
    run(format!("netdyno craft ipv4/udp --size 64 --count 1000 --rate 1mpps -w {file}")).ok();
    let line = format!("netdyno replay {file} --on tx0 --rate 5kpps --engine packet --json");
    let healthy = |report: &Value| {
        let short = reasons(report).iter().any(|reason| reason.starts_with("the rate was not reached"));
        assert!(!short || was_held_up(report), "{report}");
        assert!(tx(report, "due_not_sent_frames") == 0 || was_held_up(report), "{report}");
    };
    // Nearly half of all are lost; by a formula over all passes those would be missing.
    for more in ["--loss 40% --loop 0 --duration 600ms", "--loss 40% --loop 2 --duration 10s"] {
        healthy(&net.run(format!("{line} {more}")).json());
    }
    let sender = net.start(format!("{line} --loss 40% --loop 0"));
    net.until_frames_leave();
    std::thread::sleep(std::time::Duration::from_millis(200));
    sender.signal("INT");
    healthy(&sender.wait().json());
    // A file that ends long before the duration has no more frames than it has.
    let report = net.run(format!("{line} --stream --loop 1 --duration 200ms")).json();
    assert!(tx(&report, "frames") <= 1000, "{report}");
    healthy(&report);
    // What was due besides those that got lost is missed all the same, to the frame.
    let lossy =
        format!("netdyno replay {file} --on tx0 --rate 20mpps --loss 40% --loop 0 --engine packet --json");
    let report = net.run(format!("{lossy} --duration 20ms")).with(1).json();
    assert!(
        reasons(&report).iter().any(|reason| reason.starts_with("the rate was not reached: ")),
        "{report}"
    );
    let counted: u64 = ["frames", "failed", "due_not_sent_frames"].iter().map(|name| tx(&report, name)).sum();
    // Where reading them all takes too long, that is said.
    let least = reasons(&report).iter().any(|reason| reason.contains("at least "));
    assert!((236_000..244_000).contains(&counted) || least && counted < 244_000, "{counted}: {report}");
}

/// A pipe with 500 frames in it, held open as long as the file is, as by somebody who may write again.
fn idle_pipe(net: &Net) -> (String, std::fs::File) {
    let [file, pipe] = ["x.pcap", "pipe"].map(|name| net.file(name));
    run(format!("netdyno craft ipv4/udp --size 64 --count 500 --rate 10kpps -w {file}")).ok();
    run(format!("mkfifo {pipe}")).ok();
    // Opened both ways it waits for no reader.
    let mut writer = std::fs::OpenOptions::new().read(true).write(true).open(&pipe).expect("a pipe");
    std::io::copy(&mut std::fs::File::open(&file).expect("the capture"), &mut writer).expect("room in it");
    (pipe, writer)
}

#[test]
fn a_signal_ends_a_replay_whose_pipe_has_nothing_to_read() {
    let net = Net::new();
    let (pipe, _writer) = idle_pipe(&net);
    let sender = net.start(format!("netdyno replay {pipe} --stream --on tx0 --rate 10kpps --json"));
    net.until_frames_leave();
    sender.signal("INT");
    let report = sender.wait().with(1).json();
    assert!((1..=500).contains(&tx(&report, "frames")), "{report}");
    assert!(reasons(&report).iter().any(|reason| reason.starts_with("stopped after")), "{report}");
}

#[test]
fn the_duration_ends_a_replay_whose_pipe_has_nothing_to_read() {
    // At a rate, and by the times of the capture.
    for pace in ["--rate 10kpps", ""] {
        let net = Net::new();
        let (pipe, _writer) = idle_pipe(&net);
        let line = format!("netdyno replay {pipe} --stream --on tx0 {pace} --duration 1s --json");
        let report = net.run(line).json();
        // What came is sent, and nobody is blamed for what did not come.
        assert!(tx(&report, "duration_ns") >= 1_000_000_000, "{report}");
        let starved = report["warnings"].to_string().contains("nothing more came to be sent");
        let stopped = reasons(&report).iter().any(|reason| reason.starts_with("stopped"));
        assert!(starved && !stopped, "{report}");
        let late = number(&report["result"]["pacing"]["last_frame_late_ns"]);
        if judged(tx(&report, "frames") == 500 && late < 500_000) {
            assert_eq!(reasons(&report), Vec::<String>::new(), "{report}");
        }
    }
}
