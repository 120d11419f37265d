//! `netdyno probe --biflow`: records of both directions (RFC 5103) as collectors of others read them, and as ours does.

use crate::common::{Folder, Net, by_scapy, eventually, folder, frames, number, path, run};
use crate::probe::{IN_ORDER, Nfcapd, Records, collector, ended, many_kinds, metering, truth, written};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

/// Conversations: whole ones, of which one direction is missing, whose beginning is missing.
const TALK: &str = r#"
import sys, random
from scapy.all import *
random.seed(11)
ends = ["02:00:00:00:00:01", "02:00:00:00:00:02"]
frames = []
def at(t, back, packet):
    raw = bytes(Ether(src=ends[back], dst=ends[1 - back]) / packet)
    frames.append((t, raw + bytes(max(0, 60 - len(raw)))))
def ip(n, back, v6):
    a, b = ("2001:db8::%x" % (n + 1), "2001:db8:1::1") if v6 else ("10.0.%d.%d" % (n // 250, n % 250 + 1), "198.18.0.1")
    if back:
        a, b = b, a
    return IPv6(src=a, dst=b) if v6 else IP(src=a, dst=b)
def tcp(n, back, flags, size, v6):
    ports = (20000 + n, 80)[::-1 if back else 1]
    return ip(n, back, v6) / TCP(sport=ports[0], dport=ports[1], flags=flags) / (b"x" * size)
for n in range(200):
    v6, t = n % 4 == 3, n * 0.01
    if n % 3 == 0:
        steps = [(0, "S", 0), (1, "SA", 0), (0, "A", 0), (0, "PA", 100 + n), (1, "A", 0), (1, "PA", 1000 + n), (0, "FA", 0), (1, "FA", 0), (0, "A", 0)]
        # Of some only one direction is seen, of some the first segment is not.
        steps = [step for step in steps if n % 5 or not step[0]][1 if n % 7 == 0 else 0:]
        for k, (back, flags, size) in enumerate(steps):
            at(t + k * 0.0213, back, tcp(n, back, flags, size, v6))
    elif n % 3 == 1:
        for k in range(n % 4 + 1):
            for back in [0, 1] if n % 2 else [0]:
                ports = (30000 + n, 53)[::-1 if back else 1]
                at(t + k * 0.1 + back * 0.004, back, ip(n, back, v6) / UDP(sport=ports[0], dport=ports[1]) / (b"y" * (k * 7 + back * 200)))
    elif not v6:
        at(t, 0, ip(n, 0, False) / ICMP(type=8, code=0) / b"ping")
        at(t + 0.004, 1, ip(n, 1, False) / ICMP(type=0, code=0) / b"ping")
frames.sort(key=lambda frame: frame[0])
with PcapWriter(sys.argv[1], linktype=1, nano=True) as out:
    for t, raw in frames:
        p = Ether(raw)
        p.time = EDecimal("%.6f" % (1700000000.25 + t))
        out.write(p)
"#;

fn conversations(dir: &Folder) -> String {
    static MADE: OnceLock<Vec<u8>> = OnceLock::new();
    by_scapy(&MADE, dir, "talk", TALK)
}

const WHOLE: &str = "--idle-timeout 1h --active-timeout 1h --end-timeout 1h";

/// Source, destination, their ports, protocol and type of service of a flow, turned round. ICMP's type and code stay.
fn turned(flow: &str) -> String {
    let [a, b, sp, dp, protocol, tos] = flow.split(' ').collect::<Vec<_>>()[..] else { panic!("{flow}") };
    match protocol {
        "1" => format!("{b} {a} {sp} {dp} {protocol} {tos}"),
        _ => format!("{b} {a} {dp} {sp} {protocol} {tos}"),
    }
}

/// How many records there are of flows when both directions of one are one record.
fn joined(truth: &Records) -> u64 {
    truth.keys().map(|flow| flow.clone().min(turned(flow))).collect::<BTreeSet<_>>().len() as u64
}

#[test]
fn each_direction_of_a_conversation_is_collected_exactly() {
    let (net, dir) = (Net::new(), folder());
    // Those of many kinds have no answers, and are records as ever.
    for (name, capture) in [("talk", conversations(&dir)), ("kinds", many_kinds(&dir))] {
        let truth = truth(&capture, true);
        let (csv, lines) = (path(&dir, &format!("{name}.csv")), path(&dir, &format!("{name}.jsonl")));
        let running = collector(&net, &format!("--write {csv} --write {lines}"));
        let line =
            format!("{IN_ORDER} netdyno probe {capture} --export 127.0.0.1:9995 --biflow {WHOLE} --json");
        let report = net.run(line).ok().json();
        let collected = ended(running);
        assert_eq!(written(&csv), truth, "{name}");
        let collection = &collected["result"]["collection"];
        for (what, wanted) in [
            ("records", joined(&truth)),
            ("packets", truth.values().flatten().map(|of| of[0]).sum()),
            ("octets", truth.values().flatten().map(|of| of[1]).sum()),
            ("malformed_messages", 0),
            ("missing_records", 0),
        ] {
            assert_eq!(number(&collection[what]), wanted, "{what}: {collected}");
        }
        assert_eq!(number(&metering(&report)["sent_records"]), joined(&truth), "{report}");
        // Who began is told of conversations whose beginning was not seen, too.
        let text = std::fs::read_to_string(&lines).expect("lines");
        let began = |who: &str| text.matches(&format!("\"biflowDirection\":{who}")).count();
        assert_eq!(began("2") > 0, name == "talk", "{text}");
        assert_eq!(began("1") + began("2"), truth.len() - joined(&truth) as usize, "{text}");
    }
}

#[test]
fn nfdump_reads_both_directions_of_a_record() {
    let (net, dir) = (Net::new(), folder());
    let capture = conversations(&dir);
    let truth = truth(&capture, true);
    let collector = Nfcapd::start(&net, &dir, "talk");
    net.run(format!("{IN_ORDER} netdyno probe {capture} --export 127.0.0.1:9995 --biflow {WHOLE} --json"))
        .ok();
    let (said, read) = collector.ended("%sa|%da|%sp|%dp|%pr|%tos|%ipkt|%ibyt|%opkt|%obyt");
    let said = format!("{}{}", said.stdout, said.stderr);
    assert!(said.contains("Bad Packets: 0"), "{said}");
    let (mut counted, mut records) = (BTreeMap::new(), 0);
    for line in read.lines().filter(|line| line.contains('|')) {
        let of: Vec<&str> = line.split('|').map(str::trim).collect();
        let [a, b, sp, dp, protocol, tos, counts @ ..] = &of[..] else { panic!("{line}") };
        let counts: Vec<u64> = counts.iter().map(|count| count.parse().expect("a number")).collect();
        // Of ICMP it shows type and code.
        let dp = match dp.split_once('.') {
            Some((kind, code)) => {
                kind.parse::<u32>().expect("a type") * 256 + code.parse::<u32>().expect("a code")
            }
            None => dp.parse().expect("a port"),
        };
        let flow = format!("{a} {b} {sp} {dp} {protocol} {tos}");
        if counts[2] > 0 {
            counted.insert(turned(&flow), [counts[2], counts[3]]);
        }
        counted.insert(flow, [counts[0], counts[1]]);
        records += 1;
    }
    let wanted: BTreeMap<String, [u64; 2]> =
        truth.iter().map(|(flow, of)| (flow.clone(), [of[0][0], of[0][1]])).collect();
    assert_eq!(counted, wanted);
    assert_eq!(records, joined(&truth));
    assert!(records < truth.len() as u64, "{records}");
}

#[test]
fn tshark_names_the_elements_of_the_other_direction() {
    let (net, dir) = (Net::new(), folder());
    let capture = conversations(&dir);
    let own =
        "sourceIPv4Address,destinationIPv4Address,octetDeltaCount,reverseOctetDeltaCount,biflowDirection";
    for template in ["", own] {
        let messages = path(&dir, &format!("messages{}.pcap", template.len()));
        let mut sniffer = net.start(format!("tcpdump -Z root -n -U -i lo -w {messages} udp and port 9995"));
        sniffer.until_it_says("listening on");
        let taken = Nfcapd::start(&net, &dir, &format!("taken{}", template.len()));
        let template = if template.is_empty() { String::new() } else { format!("-T {template}") };
        let line =
            format!("{IN_ORDER} netdyno probe {capture} --export 127.0.0.1:9995 --biflow --json {template}");
        let report = net.run(line).ok().json();
        drop(taken);
        let wanted = number(&metering(&report)["sent_messages"]) as usize;
        eventually("all messages were seen", || frames(&messages).len() >= wanted);
        sniffer.signal("INT");
        sniffer.wait().ok();
        let read = run(format!("tshark -r {messages} -d udp.port==9995,cflow -V")).ok().stdout;
        let lower = read.to_lowercase();
        for complaint in ["malformed", "expert info", "[no template", "unexpected", "nonsense"] {
            assert!(!lower.contains(complaint), "{complaint} in\n{read}");
        }
        for said in [
            "PEN: IPFIX Reverse Information Element Private Enterprise (29305)",
            "(Reverse Type 1 BYTES)",
            "Biflow Direction: Initiator (1)",
            "Biflow Direction: ReverseInitiator (2)",
        ] {
            assert!(read.contains(said), "{template}: {said} in\n{read}");
        }
        // Who names one gets that one.
        assert_eq!(read.contains("(Reverse Type 2 PKTS)"), template.is_empty(), "{read}");
    }
}

#[test]
fn records_of_both_directions_are_refused_where_they_cannot_be() {
    let dir = folder();
    let capture = path(&dir, "none.pcap");
    crate::common::write_pcap(&capture, 1, &[]);
    for format in ["5", "9"] {
        run(format!("netdyno probe {capture} --biflow --format {format}")).refused(&[
            "--biflow",
            "RFC 5103",
            "leave it out",
        ]);
    }
    run(format!("netdyno probe {capture} -T reverseOctetDeltaCount")).refused(&[
        "--template",
        "`reverseOctetDeltaCount`",
        "both directions",
    ]);
    run(format!("netdyno probe {capture} --biflow -T reverseSourceIPv4Address"))
        .refused(&["--template", "`reverseSourceIPv4Address`"]);
}
