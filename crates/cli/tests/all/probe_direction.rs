//! `netdyno probe --direction`: what leaves by an interface is metered as what arrives there.

use crate::common::{Net, Running, eventually, folder, frames, number, path};
use crate::probe::{Records, collector, ended, metering, truth, written};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// Answers each datagram by three of other sizes, and what comes by a connection with 300,000 bytes.
const SERVER: &str = r#"
import socket, sys, threading
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(("198.18.0.2", 5000))
t = socket.socket(); t.bind(("198.18.0.2", 5001)); t.listen(1)
def echo():
    while True:
        data, whose = u.recvfrom(2000)
        for n in range(3): u.sendto(data + bytes(n), whose)
threading.Thread(target=echo, daemon=True).start()
print("listening", file=sys.stderr, flush=True)
c, _ = t.accept()
while c.recv(1 << 16): pass
c.sendall(bytes(300000)); c.close()
"#;

/// 40 flows of datagrams, and a connection with 1,000,000 bytes.
const CLIENT: &str = r#"
import socket
for n in range(40):
    u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(("198.18.0.1", 20000 + n)); u.settimeout(5)
    for k in range(n % 4 + 1):
        u.sendto(bytes(10 + n * 20), ("198.18.0.2", 5000))
        for _ in range(3): u.recv(2000)
s = socket.create_connection(("198.18.0.2", 5001)); s.sendall(bytes(1000000)); s.shutdown(socket.SHUT_WR)
while s.recv(1 << 16): pass
s.close()
"#;

const WHOLE: &str = "--idle-timeout 1h --active-timeout 1h --end-timeout 1h";

/// Hosts with addresses, and a server on the receiving one.
fn talking() -> (Net, Running) {
    let net = Net::new();
    net.run("ip addr replace 198.18.0.1/24 dev tx0").ok();
    net.run_there("ip addr replace 198.18.0.2/24 dev rx0").ok();
    // Without it all headers are alike, and nothing is sent twice because an answer comes late on a busy machine (tail loss probes).
    net.run("sysctl -qw net.ipv4.tcp_sack=0").ok();
    net.run_there("sysctl -qw net.ipv4.tcp_sack=0").ok();
    let server = net.file("server.py");
    std::fs::write(&server, SERVER).expect("a script");
    std::fs::write(net.file("client.py"), CLIENT).expect("a script");
    let mut listening = net.start_there(format!("/usr/bin/python3 -u {server}"));
    listening.until_it_says("listening");
    (net, listening)
}

fn talk(net: &Net, server: Running) {
    net.run(format!("/usr/bin/python3 {}", net.file("client.py"))).ok();
    server.wait().ok();
    std::thread::sleep(std::time::Duration::from_millis(300));
}

/// A probe of the sending host, whose records go to a collector there.
fn probing(net: &Net, line: &str) -> Running {
    let mut probe = net.start(format!("taskset -c 0 netdyno {line}"));
    probe.until_it_says("Ctrl-C ends");
    probe
}

/// The rows of a collector's CSV file, by the direction that they say, in files of their own.
fn by_direction(file: &str) -> [String; 2] {
    let text = std::fs::read_to_string(file).expect("the file");
    let (head, rows) = text.split_once('\n').expect("columns");
    let at = head.split(',').position(|name| name == "flow_direction").expect("the column");
    ["0", "1"].map(|direction| {
        let of: Vec<&str> = rows.lines().filter(|row| row.split(',').nth(at) == Some(direction)).collect();
        let name = format!("{file}.{direction}");
        std::fs::write(&name, format!("{head}\n{}", of.join("\n"))).expect("a file");
        name
    })
}

/// Datagrams of the exchange, without times, which two sockets need not have alike.
fn datagrams(records: &Records) -> BTreeMap<&String, Vec<[u64; 2]>> {
    let of = records.iter().filter(|(flow, _)| flow.contains(" 5000 "));
    of.map(|(flow, of)| (flow, of.iter().map(|of| [of[0], of[1]]).collect())).collect()
}

/// Packets and bytes of the connection's one direction.
fn connection(records: &Records) -> [u64; 2] {
    let (_, of) = records.iter().find(|(flow, _)| flow.contains(" 5001 ")).expect("the connection");
    assert_eq!(of.len(), 1, "{of:?}");
    [of[0][0], of[0][1]]
}

fn tcpdump(net: &Net, which: &str) -> (Running, String) {
    let file = net.file(&format!("{which}.pcap"));
    let mut running =
        net.start(format!("tcpdump -Z root -n -U -B 16384 -Q {which} -i tx0 -w {file} udp port 5000"));
    running.until_it_says("listening on");
    (running, file)
}

#[test]
fn flows_of_both_directions_are_those_that_tcpdump_sees() {
    for (direction, format) in [("both", "ipfix"), ("both", "9"), ("out", "ipfix"), ("in", "ipfix")] {
        let (net, server) = talking();
        let dir = folder();
        let captured = ["in", "out"].map(|which| tcpdump(&net, which));
        let csv = path(&dir, "flows.csv");
        let collector = collector(&net, &format!("--write {csv}"));
        let probe = probing(
            &net,
            &format!(
                "probe --on tx0 --direction {direction} --export 127.0.0.1:9995 --format {format} {WHOLE} --json"
            ),
        );
        talk(&net, server);
        probe.signal("INT");
        let report = probe.wait().ok().json();
        ended(collector);
        // What stands in tcpdump's ring when it is told to end is not written.
        let wanted = [300, 100];
        for ((_, file), wanted) in captured.iter().zip(wanted) {
            eventually("tcpdump has written all", || frames(file).len() >= wanted);
        }
        let truths = captured.map(|(tcpdump, file)| {
            tcpdump.signal("INT");
            tcpdump.wait().ok();
            truth(&file, true)
        });
        // Packets that the exchange has each way.
        let packets = |records: &Records| records.values().flatten().map(|of| of[0]).sum::<u64>();
        assert_eq!(truths.each_ref().map(packets), [300, 100]);
        let files = by_direction(&csv);
        for (way, ((file, truth), name)) in files.iter().zip(&truths).zip(["in", "out"]).enumerate() {
            let records = written(file);
            if direction != "both" && direction != name {
                assert_eq!(records, Records::new(), "{direction} {name}");
                continue;
            }
            assert_eq!(datagrams(&records), datagrams(truth), "{direction} {format} {name}");
            // Headers of 20 and, with time stamps, 32 bytes; SYN's is 8 bytes longer. What was joined for the hardware counts
            // one by one.
            let [packets, octets] = connection(&records);
            assert_eq!(octets, [300_000, 1_000_000][way] + 52 * packets + 8, "{direction} {name}: {report}");
            assert!(packets > [200, 600][way], "{packets}");
        }
        let left = number(&metering(&report)["left_frames"]);
        assert_eq!(left == 0, direction == "in", "{report}");
        if direction == "out" {
            assert_eq!(left, number(&report["result"]["rx"]["frames"]), "{report}");
        }
    }
}

/// The interface's number stands where packets pass it.
fn interfaces(csv: &str) -> Vec<[u64; 2]> {
    let text = std::fs::read_to_string(csv).expect("the file");
    let mut rows = text.lines().map(|row| row.split(',').collect::<Vec<_>>());
    let head = rows.next().expect("columns");
    let at =
        ["in_if", "out_if", "dst_port"].map(|name| head.iter().position(|of| *of == name).expect("a column"));
    let of_interest =
        rows.filter(|row| row[at[2]].parse::<u32>().is_ok_and(|port| port == 5000 || port >= 20_000));
    let mut all: Vec<[u64; 2]> = of_interest
        .map(|row| [row[at[0]], row[at[1]]].map(|index| index.parse().expect("a number")))
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn index(net: &Net, of: &str) -> u64 {
    let link = net.run(format!("ip -j link show {of}")).ok().json();
    number(&link[0]["ifindex"])
}

#[test]
fn tools_that_use_libpcap_are_taken_at_their_word() {
    for (line, wanted) in [
        ("softflowd -i tx0 -v 9 -d -n 127.0.0.1:9995", "both"),
        ("nprobe -i tx0 -n 127.0.0.1:9995 -b 1", "both"),
        ("nprobe -i tx0 --capture-direction 1 -n 127.0.0.1:9995", "in"),
        ("nprobe -i tx0 --capture-direction 2 -n 127.0.0.1:9995", "out"),
    ] {
        let (net, server) = talking();
        let dir = folder();
        let csv = path(&dir, "flows.csv");
        let collector = collector(&net, &format!("--write {csv}"));
        let probe = probing(&net, line);
        talk(&net, server);
        probe.signal("INT");
        probe.wait().ok();
        ended(collector);
        let flows = written(&csv);
        let seen = |from: &str| flows.keys().any(|flow| flow.starts_with(from));
        let told = [seen("198.18.0.2 198.18.0.1 5000 "), seen("198.18.0.1 198.18.0.2 20000 ")];
        assert_eq!(told, [wanted != "out", wanted != "in"], "{line}");
        let own = index(&net, "tx0");
        let expected: &[[u64; 2]] = match wanted {
            "in" => &[[own, 0]],
            "out" => &[[0, own]],
            _ => &[[0, own], [own, 0]],
        };
        assert_eq!(interfaces(&csv), expected, "{line}");
    }
}

#[test]
fn of_a_loopback_each_frame_counts_once() {
    const SEND: &str = r#"
import socket
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(("127.0.0.1", 7))
for n in range(20): u.sendto(bytes(100), ("127.0.0.1", 7))
"#;
    let net = Net::new();
    let script = net.file("send.py");
    std::fs::write(&script, SEND).expect("a script");
    for (direction, left) in [("both", 0), ("out", 20), ("in", 0)] {
        let probe = probing(&net, &format!("probe --on lo --meter packet --direction {direction} --json"));
        net.run(format!("/usr/bin/python3 {script}")).ok();
        std::thread::sleep(std::time::Duration::from_millis(300));
        probe.signal("INT");
        let report = probe.wait().ok().json();
        let counted = ["packets", "octets", "left_frames"].map(|name| number(&metering(&report)[name]));
        assert_eq!(counted, [20, 20 * 128, left], "{direction}: {report}");
    }
}

fn way(report: &Value) -> (&str, &str) {
    let meter = &report["environment"]["meter"];
    (meter["name"].as_str().expect("a name"), meter["reason"].as_str().expect("a reason"))
}

#[test]
fn what_xdp_does_not_see_is_left_to_the_packet_socket_or_refused() {
    let net = Net::new();
    for direction in ["out", "both"] {
        for how in ["xdp", "xdp-generic"] {
            net.run(format!("netdyno probe --on tx0 --direction {direction} --meter {how} --duration 1s"))
                .refused(&["--direction", "nothing that leaves", "take --meter packet"]);
        }
        net.run(format!("netdyno probe --on tx0 --direction {direction} --drop --duration 1s"))
            .refused(&["--drop", "keeps nothing from the host"]);
        let ran =
            net.run(format!("netdyno probe --on tx0 --direction {direction} --duration 100ms --json")).ok();
        assert_eq!(way(&ran.json()), ("packet", "packet socket: XDP does not see what leaves"));
    }
    let capture = Path::new("none.pcap").display();
    net.run(format!("netdyno probe {capture} --direction out"))
        .refused(&["direction: a capture does not say", "leave it out"]);
}

#[test]
fn both_ways_of_a_conversation_are_one_record_of_a_biflow() {
    let (net, server) = talking();
    let dir = folder();
    let lines = path(&dir, "flows.csv");
    let collector = collector(&net, &format!("--write {lines}"));
    let probe = probing(
        &net,
        &format!("probe --on tx0 --direction both --biflow --export 127.0.0.1:9995 {WHOLE} --json"),
    );
    talk(&net, server);
    probe.signal("INT");
    let report = probe.wait().ok().json();
    let collected = ended(collector);
    let records = written(&lines);
    // The collector has a row for each way of a record; 40 flows of datagrams and a connection were answered.
    assert_eq!(datagrams(&records).len(), 80, "{report}");
    let rows = records.values().flatten().count() as u64;
    assert!(number(&collected["result"]["collection"]["records"]) <= rows - 41, "{collected}");
    eventually("records of what left say so", || written(&by_direction(&lines)[1]).len() >= 41);
}
