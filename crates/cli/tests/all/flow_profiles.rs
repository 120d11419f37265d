//! Flow profiles of scenarios from end to end: what collectors are told of flows is what the profile says.

use crate::common::{Folder, Net, command, folder, late_share, number, path, run, start};
use crate::judged::judged;
use crate::probe::{IN_ORDER, Nfcapd, Records, collector, ended, written};
use crate::probe_ways::probing;
use serde_json::Value;
use std::collections::BTreeMap;

/// 2,000 flows, all of which end within the run: of each 200 of them 84 are TCP flows of one packet, 1 is ICMP of twenty.
const WEB: &str = "
seed: 7
duration: 3s
flows:
  - name: web
    rate: 1kfps
    packets: {1: 60%, 4: 30%, 20: 10%}
    duration: 1s
    size: {80: 50%, 1500: 50%}
    protocol: {tcp: 70%, udp: 25%, icmp: 5%}
    source: 10.0.0.0/8
    destination: 198.18.0.0/16
    destination_port: {443: 75%, 80: 25%}
";

/// Nothing cuts a flow.
const WHOLE: &str = "--idle-timeout 1h --active-timeout 1h --end-timeout 1h";

fn web(dir: &Folder) -> String {
    let file = path(dir, "web.yaml");
    std::fs::write(&file, WEB).expect("a file");
    file
}

/// Flows by protocol number and packets, as a result says that they are.
fn planned(report: &Value) -> BTreeMap<(u64, u64), u64> {
    let profile = &report["resolved"]["flow_profiles"][0];
    assert_eq!((number(&profile["flows"]), number(&profile["frames"])), (2000, 7600), "{profile}");
    assert_eq!(profile["concurrent_flows"], 400.0);
    let kinds = profile["kinds"].as_array().expect("kinds");
    let number_of = |protocol: &str| match protocol {
        "tcp" => 6,
        "udp" => 17,
        _ => 1,
    };
    let kind = |kind: &Value| {
        let protocol = number_of(kind["protocol"].as_str().expect("a protocol"));
        ((protocol, number(&kind["packets"])), number(&kind["flows"]))
    };
    kinds.iter().map(kind).collect()
}

/// Holds records to the profile, and tells for how long flows of several packets lasted, in milliseconds.
fn hold(records: &Records, planned: &BTreeMap<(u64, u64), u64>) -> Vec<u64> {
    assert_eq!(records.len(), 2000, "each flow has a key of its own");
    let mut seen = BTreeMap::new();
    let mut lasted = Vec::new();
    for (flow, of) in records {
        let [[packets, _, flags, first, last]] = of[..] else { panic!("{flow}: {of:?}") };
        let protocol = flow.split(' ').nth(4).and_then(|number| number.parse().ok()).expect("a protocol");
        *seen.entry((protocol, packets)).or_insert(0u64) += 1;
        if protocol == 6 {
            // SYN; FIN, SYN, PSH and ACK.
            let wanted = if packets == 1 { 0x02 } else { 0x1b };
            assert_eq!(flags, wanted, "{flow}: {packets} packets");
        }
        if packets > 1 {
            lasted.push(last - first);
        }
    }
    assert_eq!(&seen, planned);
    lasted
}

#[test]
fn a_profiles_flows_are_collected_as_they_were_planned_from_each_engine() {
    for engine in ["packet", "afxdp", "xdp"] {
        let (net, dir) = (Net::new(), folder());
        let (file, csv) = (web(&dir), path(&dir, "records.csv"));
        let collector = collector(&net, &format!("--write {csv}"));
        let probe = probing(&net, &format!("--export 127.0.0.1:9995 {WHOLE}"));
        let report = net.run(format!("netdyno send {file} --on tx0 --engine {engine} --json")).json();
        std::thread::sleep(std::time::Duration::from_millis(300));
        probe.signal("INT");
        let metered = probe.wait().ok().json();
        let sent = number(&report["result"]["tx"]["frames"]);
        let unsent = number(&report["result"]["tx"]["due_not_sent_frames"]);
        assert_eq!(sent + unsent, 7600, "{engine}: {report}");
        // A sender that did not get the machine in time says so.
        if !judged(unsent == 0) {
            ended(collector);
            continue;
        }
        assert_eq!(number(&metered["result"]["metering"]["packets"]), 7600, "{engine}: {metered}");
        let collected = ended(collector);
        let exported = &metered["result"]["export"];
        let records = &collected["result"]["collection"]["records"];
        assert_eq!(
            records, 2000,
            "{engine}: exported {exported}, collected {}",
            collected["result"]["collection"]
        );
        let lasted = hold(&written(&csv), &planned(&report));
        assert_eq!(lasted.len(), 800);
        let right = lasted.iter().filter(|ms| ms.abs_diff(1000) <= 5).count();
        if judged(late_share(&report) < 0.05) {
            assert!(right * 10 >= lasted.len() * 9, "{engine}: {right} of {} last 1 s", lasted.len());
        }
    }
}

#[test]
fn others_tools_find_the_flows_of_a_profile() {
    let (net, dir) = (Net::new(), folder());
    let (file, capture) = (web(&dir), path(&dir, "web.pcap"));
    let said = run(format!("netdyno craft {file} -w {capture}")).ok().stderr;
    assert!(
        said.contains(
            "flows of web: 1.00 kflows/s, 3.80 kpps, 400 concurrent, 2,000 flows in all, 7,600 frames"
        ),
        "{said}"
    );
    // tshark: sound frames, and TCP's numbers follow each other.
    let mut tshark = command("tshark -n -r");
    tshark.args([&capture, "-d", "tcp.port==1-65535,data", "-d", "udp.port==1-65535,data"]);
    for protocol in ["ip", "tcp", "udp"] {
        tshark.args(["-o", &format!("{protocol}.check_checksum:TRUE")]);
    }
    let bad = ["ip", "tcp", "udp", "icmp"].map(|p| format!("{p}.checksum.status == \"Bad\""));
    let lost = "tcp.analysis.lost_segment || tcp.analysis.retransmission || tcp.analysis.out_of_order";
    tshark.args(["-Y", &format!("_ws.malformed || {lost} || {}", bad.join(" || "))]);
    assert_eq!(start(tshark).wait().ok().stdout, "");
    // nfdump, of what the probe meters.
    let nfcapd = Nfcapd::start(&net, &dir, "nfcapd");
    net.run(format!("{IN_ORDER} netdyno probe {capture} --export 127.0.0.1:9995 {WHOLE}")).ok();
    let (_, read) = nfcapd.ended("%pr|%pkt|%td");
    let mut seen = BTreeMap::new();
    for line in read.lines().filter(|line| line.contains('|')) {
        let of: Vec<&str> = line.split('|').map(str::trim).collect();
        let count = |text: &str| text.parse::<u64>().unwrap_or_else(|_| panic!("{line}"));
        let lasts: f64 =
            of[2].rsplit(':').next().and_then(|s| s.parse().ok()).unwrap_or_else(|| panic!("{line}"));
        assert_eq!(lasts, if count(of[1]) == 1 { 0.0 } else { 1.0 }, "{line}");
        *seen.entry((count(of[0]), count(of[1]))).or_insert(0u64) += 1;
    }
    let report = run(format!("netdyno send {file} --engine null --json --topspeed")).stderr;
    assert!(report.contains("flow profiles only"), "{report}");
    let planned = planned(&run(format!("netdyno send {file} --engine null --json")).json());
    assert_eq!(seen, planned);
}

#[test]
fn what_makes_no_flows_is_refused_at_its_place() {
    let dir = folder();
    let file = path(&dir, "bad.yaml");
    for (line, says) in [
        ("rate: 10kpps, source: 10.0.0.0/8", "is in new flows per second"),
        ("rate: 10kfps, count: 1m, source: 10.0.0.1", "give a shorter prefix for `source`"),
        ("rate: 10kfps, packets: 4, source: 10.0.0.0/8", "how long does a flow last?"),
        ("rate: 1kfps, packets: {1: 60%, 4: 30%}, duration: 1s, source: 10.0.0.0/8", "make 90 %"),
        ("rate: 1kfps, packets: [1000, 900], duration: 1s, source: 10.0.0.0/8", "give fewer packets"),
    ] {
        std::fs::write(&file, format!("flows:\n  - {{{line}, destination: 198.18.0.1}}\n")).expect("a file");
        let said = run(format!("netdyno craft {file} --count 1 --show")).with(2).stderr;
        assert!(said.contains(says) && said.contains("bad.yaml:2:"), "{said}");
    }
}
