//! What of the traffic `netdyno probe` meters: some flows only.

use crate::common::{Folder, Net, eventually, folder, frames, number, path, run};
use crate::probe::{IN_ORDER, Records, collector, ended, many_kinds, metering, truth, written};

const WHOLE: &str = "--idle-timeout 1h --active-timeout 1h --end-timeout 1h";

/// Records of a capture that are collected, metered with these options.
fn collected(net: &Net, dir: &Folder, capture: &str, options: &str) -> Records {
    let csv = path(dir, "collected.csv");
    let running = collector(net, &format!("--write {csv}"));
    let line = format!("{IN_ORDER} netdyno probe {capture} --export 127.0.0.1:9995 {WHOLE} {options} --json");
    let report = net.run(line).ok().json();
    ended(running);
    let records = written(&csv);
    let unsampled = number(&metering(&report)["unsampled_frames"]);
    let packets = number(&metering(&report)["packets"]);
    let other = number(&metering(&report)["other_frames"]);
    assert_eq!(unsampled + packets + other, number(&report["result"]["rx"]["frames"]), "{report}");
    std::fs::remove_file(csv).expect("the file");
    records
}

#[test]
fn of_flows_that_are_sampled_all_packets_are_counted() {
    let (net, dir) = (Net::new(), folder());
    let capture = many_kinds(&dir);
    let truth = truth(&capture, true);
    let few = collected(&net, &dir, &capture, "--sample-flows 4 --sample-seed 7");
    // By chance a quarter; five standard deviations are 40 of the 420 flows.
    let wanted = truth.len() / 4;
    assert!((wanted - 40..wanted + 40).contains(&few.len()), "{} of {}", few.len(), truth.len());
    for (flow, counted) in &few {
        assert_eq!(truth.get(flow), Some(counted), "{flow}");
    }
    assert_eq!(collected(&net, &dir, &capture, "--sample-flows 4 --sample-seed 7 --format 9"), few);
    assert_eq!(collected(&net, &dir, &capture, "--sample-flows 4 --sample-seed 7 --biflow"), few);
    assert_ne!(collected(&net, &dir, &capture, "--sample-flows 4 --sample-seed 8"), few);
    assert_eq!(collected(&net, &dir, &capture, "--sample-flows 1"), truth);
}

#[test]
fn that_flows_are_sampled_is_said_in_options() {
    let (net, dir) = (Net::new(), folder());
    let capture = many_kinds(&dir);
    for format in ["ipfix", "9"] {
        let messages = path(&dir, &format!("{format}.pcap"));
        let mut sniffer = net.start(format!("tcpdump -Z root -n -U -i lo -w {messages} udp and port 9995"));
        sniffer.until_it_says("listening on");
        let taken = collector(&net, "");
        let report = net
            .run(format!(
                "{IN_ORDER} netdyno probe {capture} --export 127.0.0.1:9995 --format {format} --sample-flows 16 --json"
            ))
            .ok()
            .json();
        ended(taken);
        let wanted = number(&metering(&report)["sent_messages"]) as usize;
        eventually("all messages were seen", || frames(&messages).len() >= wanted);
        sniffer.signal("INT");
        sniffer.wait().ok();
        let read = run(format!("tshark -r {messages} -d udp.port==9995,cflow -V")).ok().stdout;
        let lower = read.to_lowercase();
        for complaint in ["malformed", "expert info", "[no template", "unexpected", "nonsense"] {
            assert!(!lower.contains(complaint), "{complaint} in\n{read}");
        }
        // The drawn seed is in the result, and told.
        let seed = number(&report["resolved"]["seed"]);
        for said in [
            "Flow_Selector_Algorithm: 6".to_owned(),
            format!("Hash Initialiser Value: {seed}"),
            format!("Hash Output Range Max: {}", u64::MAX),
            format!("Hash Selected Range Max: {}", u64::MAX / 16),
            "Hash_Flow_Domain: 8".to_owned(),
        ] {
            assert!(read.contains(&said), "{said} in\n{read}");
        }
    }
}

#[test]
fn choices_that_do_not_go_together_are_refused() {
    let dir = folder();
    let capture = path(&dir, "none.pcap");
    crate::common::write_pcap(&capture, 1, &[]);
    run(format!("netdyno probe {capture} --sample-flows 4 --format 5")).refused(&["v5 cannot say"]);
    run(format!("netdyno probe {capture} --sample-seed 4")).with(2).says(&["--sample-flows"]);
    run(format!("netdyno probe {capture} --sample-flows 0")).with(2).says(&["--sample-flows"]);
}
