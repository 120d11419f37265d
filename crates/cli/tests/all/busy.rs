//! Sending on a machine that does something else, too: as much leaves as of tcpreplay, and a device sees no more of the catching up
//! than is promised.

use crate::common::*;
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Two threads that never rest on each CPU that this process may use; they end when this is dropped.
pub struct Loops(Arc<AtomicBool>);

impl Loops {
    pub fn begin() -> Loops {
        let over = Arc::new(AtomicBool::new(false));
        let cpus = rustix::thread::sched_getaffinity(None).expect("the CPUs of this process");
        for cpu in
            (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| cpus.is_set(*cpu)).flat_map(|cpu| [cpu; 2])
        {
            let over = Arc::clone(&over);
            std::thread::spawn(move || {
                let mut own = rustix::thread::CpuSet::new();
                own.set(cpu);
                rustix::thread::sched_setaffinity(None, &own).expect("a CPU of this process");
                while !over.load(Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        Loops(over)
    }
}

impl Drop for Loops {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

fn pacing(report: &Value) -> &Value {
    &report["result"]["pacing"]
}

/// No millisecond had more than the bound: of the link, or of twice the rate, and a frame for each.
#[track_caller]
fn assert_within_the_bound(report: &Value, frames_per_second: u64) {
    let catch_up = &pacing(report)["catch_up"];
    let bits = number(&catch_up["limit_bits_per_second"]);
    let mean = number(&report["result"]["tx"]["bytes"]) / number(&report["result"]["tx"]["frames"]);
    let most = (bits / 1_000 / ((mean + 24) * 8)).max(2 * frames_per_second / 1_000) + 2;
    let sent = number(&catch_up["most_in_1ms"]);
    assert!((1..=most).contains(&sent), "{sent} > {most}: {catch_up}");
}

#[test]
fn beside_busy_loops_a_replay_sends_no_less_than_tcpreplay() {
    alone();
    let net = Net::new();
    let file = net.file("flows.pcap");
    net.run(format!("netdyno craft 'ipv4/udp(sport=1024..2023)' --count 1000 --size 604 -w {file}")).ok();
    let _loops = Loops::begin();
    let second = "--duration";
    for (ours, theirs, due) in [
        ("--rate 10kpps", "--pps 10000", 10_000),
        ("--rate 100kpps", "--pps 100000", 100_000),
        ("--rate 100mbps", "--mbps 100", 20_833),
    ] {
        let mut seen = Vec::new();
        // Both in turns, a second each: a machine that holds one of them up for all of its second is no defect of ours.
        let done = (0..3).any(|_| {
            let other = net.run(format!("tcpreplay -i tx0 -K --loop 0 {second}=1 {theirs} {file}")).ok();
            let packets =
                other.stdout.lines().find_map(|line| line.trim().strip_prefix("Successful packets:"));
            let theirs = packets.and_then(|n| n.trim().parse::<u64>().ok()).expect("a count").min(due);
            let ran =
                net.run(format!("netdyno replay {file} --on tx0 --engine packet {second} 1s {ours} --json"));
            let report: Value = serde_json::from_str(&ran.stdout).expect("a result");
            assert_within_the_bound(&report, due);
            let sent = number(&report["result"]["tx"]["frames"]);
            seen.push((sent, theirs, pacing(&report).clone()));
            sent >= theirs
        });
        assert!(done, "{ours}: {seen:?}");
    }
}

#[test]
fn a_sender_that_others_hold_up_goes_before_them() {
    alone();
    let net = Net::new();
    let _loops = Loops::begin();
    for engine in ["packet", "xdp"] {
        let send = format!(
            "netdyno send ipv4/udp --on tx0 --measure rx0 --rate 20kpps --duration 500ms --engine {engine} --json"
        );
        for (option, priority) in [("", "real-time"), ("--no-real-time", "ordinary")] {
            let ran = net.run(format!("{send} {option}"));
            let report: Value = serde_json::from_str(&ran.stdout).expect("a result");
            assert_eq!(pacing(&report)["priority"], priority, "{engine}: {report}");
            // It was held up, and knows by whom.
            assert!(number(&pacing(&report)["catch_up"]["stalls"]) > 0, "{report}");
            assert!(report["result"]["tx"]["cores"][0]["others_ratio"].as_f64() > Some(0.0), "{report}");
            // Time behind the schedule is no stall: all of them together are no longer than the run.
            assert!(longest_stall(&report) <= number(&report["result"]["tx"]["duration_ns"]), "{report}");
        }
    }
}
