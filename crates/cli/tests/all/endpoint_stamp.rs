//! `netdyno endpoint stamp` against a reflector that was written from the RFCs alone (stamp_reflector.py), with nftables as the judge of what
//! was lost, and tshark of what was sent.

use crate::common::{Net, Ran, Running, number, reasons, tshark_field, unfolded};
use ::lab::Options;
use serde_json::Value;

fn hosts() -> (Net, String) {
    let net = Net::with(&Options { addresses: true, ..Options::default() });
    let there = net.lab.receiver.address.to_string();
    (net, there)
}

fn reflector(net: &Net, address: &str, how: &str) -> Running {
    let script = net.file("stamp_reflector.py");
    std::fs::write(&script, include_str!("stamp_reflector.py")).expect("a script");
    let mut running = net.start_there(format!("/usr/bin/python3 {script} {address} 862 {how}"));
    running.until_it_says("reflecting");
    running
}

/// Drops what these rules say: packets when they arrive there, and answers when they arrive here, so that nobody's call fails.
fn drops(net: &Net, forward: &str, back: &str) {
    for (name, rule) in [("forward", forward), ("back", back)] {
        let rules = net.file(name);
        let chain = format!("chain in {{\n  type filter hook input priority 0;\n  {rule}\n }}");
        std::fs::write(&rules, format!("table inet t {{\n {chain}\n}}\n")).expect("rules");
        let line = format!("nft -f {rules}");
        if name == "forward" {
            net.run_there(line).ok()
        } else {
            net.run(line).ok()
        };
    }
}

/// What the counters of both say.
fn dropped(net: &Net) -> [u64; 2] {
    let line = "nft -j list chain inet t in";
    [net.run_there(line), net.run(line)].map(|ran| {
        let listed = ran.ok().json();
        let all = listed["nftables"].as_array().expect("a list");
        let counter = |object: &Value| {
            let parts = object["rule"]["expr"].as_array().into_iter().flatten();
            parts.filter_map(|part| part["counter"]["packets"].as_u64()).next()
        };
        all.iter().find_map(counter).expect("a counter")
    })
}

fn stamp(report: &Value) -> &Value {
    &report["result"]["stamp"]
}

/// The summary has these words.
fn shows(ran: &Ran, words: &[&str]) {
    let text = unfolded(&ran.stdout);
    words.iter().for_each(|word| assert!(text.contains(word), "no `{word}` in: {}", ran.stdout));
}

const FAST: &str = "--rate 500pps --duration 200ms --json --quiet";
const NONE: &str = "udp dport 9 counter drop";

/// Of 100 packets every tenth is lost there, and of the answers every ninth back.
fn lossy(net: &Net) {
    let forward = "udp dport 862 numgen inc mod 10 == 3 counter drop";
    let back = "udp sport 862 numgen inc mod 9 == 4 counter drop";
    drops(net, forward, back);
}

#[test]
fn losses_at_a_stateful_reflector_have_the_direction_in_which_nftables_dropped_them() {
    let (net, host) = hosts();
    let _reflector = reflector(&net, &host, "");
    lossy(&net);
    let ran = net.run(format!("netdyno endpoint stamp {host} {FAST}")).ok();
    let report = ran.json();
    let s = stamp(&report);
    assert_eq!(dropped(&net), [10, 10]);
    for (member, count) in [
        ("sent", 100),
        ("answered", 80),
        ("lost", 20),
        ("forward_lost", 10),
        ("return_lost", 10),
        ("late", 0),
    ] {
        assert_eq!(number(&s[member]), count, "{member}: {s}");
    }
    assert_eq!((&s["stateful"], &s["unknown_direction_lost"]), (&Value::from(true), &Value::from(0)));
    assert_eq!((&s["least_ttl"], &s["ssid_returned"]), (&Value::from(255), &Value::from(true)));
    // Figures by their names, and words.
    let got =
        net.run(format!("netdyno endpoint stamp {host} --rate 500pps -d 20ms -q --get stamp_lost_packets"));
    assert_eq!(got.ok().stdout.trim(), "2");
    let ran = net.run(format!("netdyno endpoint stamp {host} --rate 500pps -d 200ms")).ok();
    shows(&ran, &["100 packets", "lost on the way there", "T1 by the program, T4 by the kernel"]);
}

#[test]
fn losses_at_a_stateless_reflector_have_no_direction() {
    let (net, host) = hosts();
    let reflector = reflector(&net, &host, "stateless");
    lossy(&net);
    let report = net.run(format!("netdyno endpoint stamp {host} {FAST}")).ok().json();
    let s = stamp(&report);
    assert_eq!(number(&s["lost"]), 20, "{s}");
    for member in ["stateful", "forward_lost", "return_lost", "unknown_direction_lost"] {
        assert!(s[member].is_null(), "{member}: {s}");
    }
    assert!(s["no_direction"].as_str().is_some_and(|why| why.contains("stateless")), "{s}");
    let ran = net.run(format!("netdyno endpoint stamp {host} --rate 500pps -d 200ms")).ok();
    shows(&ran, &["direction cannot tell: the reflector's"]);
    drop(reflector);
}

/// As many packets came twice as were lost, and the sums of both directions agree by chance: that nothing was lost on the way there is not so.
#[test]
fn losses_have_no_direction_where_the_reflector_counted_more_than_was_sent_to_it() {
    let (net, host) = hosts();
    let _reflector = reflector(&net, &host, "gaps");
    let report = net.run(format!("netdyno endpoint stamp {host} {FAST}")).ok().json();
    let s = stamp(&report);
    assert_eq!([&s["sent"], &s["answered"], &s["lost"]].map(number), [100, 90, 10], "{s}");
    for member in ["forward_lost", "return_lost", "unknown_direction_lost"] {
        assert!(s[member].is_null(), "{member}: {s}");
    }
    assert!(s["no_direction"].as_str().is_some_and(|why| why.contains("more packets than were sent")), "{s}");
}

#[test]
fn what_a_reflector_says_of_its_times_is_taken_out_of_the_round_trip() {
    let (net, host) = hosts();
    for how in ["", "ptp", "twamp stateless"] {
        let _reflector = reflector(&net, &host, how);
        let report = net.run(format!("netdyno endpoint stamp {host} --ssid 77 {FAST}")).ok().json();
        let s = stamp(&report);
        assert_eq!([&s["answered"], &s["lost"], &s["ssid"]].map(number), [100, 0, 77], "{how}: {s}");
        let r = &s["residence_ns"];
        assert_eq!([&r["count"], &r["min"], &r["max"]].map(number), [100, 1000, 1000], "{how}: {r}");
        assert_eq!(number(&s["round_trip_ns"]["count"]), 100, "{how}");
        assert_eq!(number(&s["round_trip_variation_ns"]["count"]), 99, "{how}");
        // Always a second there, whatever the network does: a clock that is ahead.
        assert_eq!(number(&s["forward_variation_ns"]["max"]), 0, "{how}: {s}");
        assert!(s["return_withheld"].is_string() && s["return_delay_ns"].is_null(), "{how}: {s}");
        let format = if how == "ptp" { "ptp" } else { "ntp" };
        assert_eq!(s["clocks"]["reflector_format"], format);
        assert_eq!(s["ssid_returned"], Value::from(how != "twamp stateless"), "{s}");
        // Nothing was lost: in no direction.
        assert_eq!([&s["forward_lost"], &s["return_lost"]].map(number), [0, 0], "{how}");
    }
}

#[test]
fn datagrams_that_are_no_answers_are_counted_and_change_no_figure() {
    let (net, host) = hosts();
    let _reflector = reflector(&net, &host, "hostile");
    let report = net.run(format!("netdyno endpoint stamp {host} --size 60 {FAST}")).ok().json();
    let s = stamp(&report);
    assert_eq!([&s["sent"], &s["answered"], &s["lost"]].map(number), [100, 100, 0], "{s}");
    assert_eq!(number(&s["round_trip_ns"]["count"]), 100);
    assert_eq!(s["padding_recognised"], Value::from(true), "{s}");
    // Once all are answered the test is over: what comes after the last answer is not waited for.
    // What the socket had no room for on a busy machine is counted by the kernel.
    let dropped = s["dropped_by_receiver"].as_u64().unwrap_or(0);
    let near = |value: &Value, each: u64| (99 * each - dropped.min(99)..=100 * each).contains(&number(value));
    assert!(near(&s["duplicates"], 2), "{s}");
    let strangers = &s["strangers"];
    assert!(near(&strangers["too_short"], 2), "{strangers}");
    for member in ["other_source", "other_session", "unknown_number", "other_time"] {
        assert!(near(&strangers[member], 1), "{member}: {strangers}");
    }
}

#[test]
fn nobody_who_answers_is_told_with_what_to_do() {
    let (net, host) = hosts();
    let short = "--rate 100pps -d 30ms --wait 50ms";
    let ran = net.run(format!("netdyno endpoint stamp {host} {short}")).with(1);
    let mend = "start a STAMP or TWAMP-Light reflector at UDP port 862";
    shows(&ran, &["none of 3 packets was answered", "port unreachable", mend]);
    drops(&net, "udp dport 862 counter drop", NONE);
    let ran = net.run(format!("netdyno endpoint stamp {host} {short} --json -q")).with(1);
    let reasons = reasons(&ran.json());
    assert!(reasons.iter().any(|reason| reason.contains("no error came back")), "{reasons:?}");
    // What is wrong with a command line.
    for (line, word) in [
        ("--size 45", "44 bytes"),
        ("--rate 20ktps", "packets a second"),
        ("-p 2", "no use"),
        ("--ssid 0", "1 to 65535"),
    ] {
        net.run(format!("netdyno endpoint stamp {host} {line}")).refused(&[word]);
    }
    net.run(format!("netdyno endpoint udp-rr {host} --wait 1s")).refused(&["it is of stamp"]);
}

#[test]
fn tshark_reads_what_is_sent() {
    let (net, host) = hosts();
    let _reflector = reflector(&net, &host, "");
    let file = net.file("received.pcap");
    net.received(5, || {
        net.run(format!("netdyno endpoint stamp {host} --rate 100pps -d 50ms --dscp ef --size 100")).ok();
    });
    let field = |name: &str| tshark_field(&file, name);
    assert_eq!(field("udp.dstport"), vec!["862"; 5]);
    assert_eq!(field("udp.length"), vec!["108"; 5]);
    assert_eq!(field("ip.ttl"), vec!["255"; 5]);
    assert_eq!(field("ip.dsfield.dscp"), vec!["46"; 5]);
    // STAMP's sender packets are TWAMP-Test's, whose dissector is there.
    let fields = "-e twamp.test.seq_number -e twamp.test.error_estimate.z -e twamp.test.mbz1";
    let read =
        net.run(format!("tshark -r {file} -d udp.port==862,twamp.test -T fields {fields}")).ok().stdout;
    let numbers: Vec<_> = read.lines().filter_map(|line| line.split('\t').next()).collect();
    assert_eq!(numbers, ["0", "1", "2", "3", "4"], "{read}");
    let payloads = field("udp.payload");
    for (number, payload) in payloads.iter().enumerate() {
        assert!(payload.starts_with(&format!("{number:08x}")), "{payload}");
        // The rest of the base, and the TLV: not recognised yet, Extra Padding, 52 octets.
        assert_eq!(payload[32..96], format!("{:056}80010034", 0), "{payload}");
    }
}

#[test]
fn it_goes_over_ipv6_too() {
    let (net, _) = hosts();
    net.run("ip -6 addr add fd00::1/64 dev tx0 nodad").ok();
    net.run_there("ip -6 addr add fd00::2/64 dev rx0 nodad").ok();
    let _reflector = reflector(&net, "fd00::2", "");
    let report = net.run(format!("netdyno endpoint stamp fd00::2 {FAST}")).ok().json();
    let s = stamp(&report);
    assert_eq!([&s["answered"], &s["least_ttl"]].map(number), [100, 255], "{s}");
    assert_eq!(s["reflector"], "[fd00::2]:862");
    let closed = net.run("netdyno endpoint stamp [fd00::2]:863 --rate 100pps -d 30ms --wait 50ms").with(1);
    shows(&closed, &["port unreachable"]);
}
