//! The ways in which `netdyno probe` takes frames from an interface: what each sees, and when which is taken.

use crate::common::{Net, Running, eventually, folder, handle, number, path, reasons};
use crate::measure::{attach_foreign_program, foreign_program_is_attached};
use crate::probe::{Records, collector, ended, many_kinds, metering, truth, written};
use serde_json::Value;

const WAYS: [&str; 3] = ["xdp", "xdp-generic", "packet"];

/// A probe on the receiving host that frames of the sending host reach; records go to a collector on the sending host.
pub fn probing(net: &Net, options: &str) -> Running {
    // Given by its namespace, so that what it exports leaves from here.
    let on = format!("rx0@{}", handle(&net.lab.receiver.namespace));
    let mut probe = net.start(format!("taskset -c 0 netdyno probe --on {on} --json {options}"));
    probe.until_it_says("Ctrl-C ends");
    probe
}

fn way(report: &Value) -> (&str, &str) {
    let meter = &report["environment"]["meter"];
    (meter["name"].as_str().expect("a name"), meter["reason"].as_str().expect("a reason"))
}

/// Records without their times.
fn counts(records: &Records) -> Vec<(&String, Vec<&[u64]>)> {
    records.iter().map(|(flow, of)| (flow, of.iter().map(|of| &of[..3]).collect())).collect()
}

#[test]
fn each_way_sees_flows_of_all_kinds_as_they_are() {
    let (net, dir) = (Net::new(), folder());
    let capture = many_kinds(&dir);
    let truth = truth(&capture, true);
    for how in WAYS {
        let csv = path(&dir, &format!("{how}.csv"));
        let collector = collector(&net, &format!("--write {csv}"));
        let whole = "--idle-timeout 1h --active-timeout 1h --end-timeout 1h";
        let probe = probing(&net, &format!("--meter {how} --export 127.0.0.1:9995 {whole}"));
        // Whether it kept the rate does not matter.
        net.run(format!("netdyno replay {capture} --on tx0 --rate 1kpps --engine packet"));
        std::thread::sleep(std::time::Duration::from_millis(300));
        probe.signal("INT");
        let report = probe.wait().ok().json();
        ended(collector);
        let records = written(&csv);
        assert_eq!(counts(&records), counts(&truth), "{how}");
        assert_eq!(way(&report).0, how);
        let other = number(&metering(&report)["other_frames"]);
        assert!(other >= 1, "{report}");
        assert_eq!(number(&metering(&report)["malformed_frames"]), 0, "{report}");
    }
}

#[test]
fn the_inside_of_tunnels_is_metered_by_each_way() {
    let net = Net::new();
    let inside = "ipv4(src=10.1.2.3,dst=10.4.5.6)/tcp(sport=5,dport=6)";
    let outside =
        "ether/vlan(vid=5)/ipv6(src=2001:db8::1,dst=2001:db8::2)/udp(sport=9,dport=4789)/vxlan/ether";
    for how in WAYS {
        let probe = probing(&net, &format!("--meter {how} --inner --count 3"));
        net.run(format!(
            "netdyno send {outside}/{inside} --no-sign --on tx0 --topspeed --count 3 --engine packet"
        ))
        .ok();
        let report = probe.wait().ok().json();
        // The bytes of IP of the inside.
        assert_eq!(number(&metering(&report)["octets"]), 120, "{how}: {report}");
    }
}

#[test]
fn frames_pass_to_the_host_unless_drop_is_asked_for() {
    let net = Net::new();
    for (options, seen_by_host) in [("--meter xdp", 50), ("--drop", 0), ("--meter packet", 50)] {
        let probe = probing(&net, &format!("--count 50 {options}"));
        let seen = net.received(seen_by_host, || {
            net.run("netdyno send ipv4/udp --on tx0 --topspeed --count 50 --engine packet").ok();
        });
        assert_eq!(seen.len(), seen_by_host, "{options}");
        assert_eq!(number(&metering(&probe.wait().ok().json())["packets"]), 50, "{options}");
    }
    net.run_there("netdyno probe --on rx0 --meter packet --drop --duration 1s")
        .refused(&["--drop", "a packet socket keeps nothing from the host"]);
}

/// The probe stands still from its start to its end, so that all frames wait for it then.
#[test]
fn what_waits_when_a_probe_ends_is_metered() {
    let net = Net::new();
    for how in ["xdp", "packet"] {
        let probe = probing(&net, &format!("--meter {how} --duration 1s"));
        probe.signal("STOP");
        net.run("netdyno send ipv4/udp --on tx0 --rate 20kpps --count 20000 --engine packet").ok();
        probe.signal("CONT");
        let found = probe.wait().json();
        let metered = metering(&found);
        let [packets, dropped] = ["packets", "dropped_frames"].map(|name| number(&metered[name]));
        assert_eq!(packets + dropped, 20_000, "{how}: {metered}");
    }
}

#[test]
fn segments_of_a_super_frame_are_counted_one_by_one() {
    const SERVER: &str = r#"
import socket, sys
s = socket.socket(); s.bind(("198.18.0.2", 5001)); s.listen(1); print("listening", file=sys.stderr, flush=True)
c, _ = s.accept()
while c.recv(1 << 16): pass
"#;
    const CLIENT: &str = r#"
import socket
s = socket.create_connection(("198.18.0.2", 5001)); s.sendall(bytes(1000000)); s.close()
"#;
    let (net, dir) = (Net::new(), folder());
    for (namespace, device, address) in [("there", "rx0", "198.18.0.2/24"), ("here", "tx0", "198.18.0.1/24")]
    {
        let line = format!("ip addr replace {address} dev {device}");
        if namespace == "there" {
            net.run_there(line).ok()
        } else {
            net.run(line).ok()
        };
    }
    let (server, client) = (path(&dir, "server.py"), path(&dir, "client.py"));
    std::fs::write(&server, SERVER).expect("a script");
    std::fs::write(&client, CLIENT).expect("a script");
    for how in ["packet", "xdp"] {
        let csv = path(&dir, &format!("{how}.csv"));
        let collector = collector(&net, &format!("--write {csv}"));
        let probe = probing(&net, &format!("--meter {how} --export 127.0.0.1:9995"));
        let mut listening = net.start_there(format!("/usr/bin/python3 -u {server}"));
        listening.until_it_says("listening");
        net.run(format!("/usr/bin/python3 {client}")).ok();
        listening.wait().ok();
        std::thread::sleep(std::time::Duration::from_millis(300));
        probe.signal("INT");
        let report = probe.wait().ok().json();
        ended(collector);
        let records = written(&csv);
        let (_, sent) = records.iter().find(|(flow, _)| flow.contains(" 5001 6 ")).expect("the connection");
        // Headers of 20 and, with time stamps, 32 bytes; SYN's is 8 bytes longer.
        let [packets, octets] = [sent[0][0], sent[0][1]];
        assert_eq!(octets, 1_000_000 + 52 * packets + 8, "{how}: {report}");
        assert!(packets > 600, "{how}: {packets}");
        assert_eq!(number(&metering(&report)["joined_frames"]), 0, "{how}: {report}");
    }
}

#[test]
fn another_xdp_program_stays_and_the_packet_socket_is_taken() {
    let net = Net::new();
    attach_foreign_program(&net);
    let probe = probing(&net, "--count 70");
    net.run("netdyno send ipv4/udp --on tx0 --topspeed --count 70 --engine packet").ok();
    let report = probe.wait().ok().json();
    assert_eq!(number(&metering(&report)["packets"]), 70);
    let (name, reason) = way(&report);
    assert_eq!(name, "packet");
    assert!(reason.contains("(pass) is attached already and is left alone"), "{reason}");
    for how in ["xdp", "xdp-generic"] {
        net.run_there(format!("netdyno probe --on rx0 --duration 1s --meter {how}"))
            .refused(&["(pass) is attached already"]);
    }
    assert!(foreign_program_is_attached(&net));
}

#[test]
fn an_interface_that_goes_away_ends_it_with_what_was_counted() {
    for how in ["packet", "xdp"] {
        let net = Net::new();
        let probe = probing(&net, &format!("--meter {how} --duration 60s"));
        net.run("netdyno send ipv4/udp --on tx0 --topspeed --count 30 --engine packet").ok();
        net.run("ip link del tx0").ok();
        let report = probe.wait().with(1).json();
        assert_eq!(number(&metering(&report)["packets"]), 30, "{how}");
        assert!(reasons(&report)[0].contains("was removed"), "{report}");
    }
}

#[test]
fn nothing_is_left_of_a_probe_that_is_killed() {
    let net = Net::new();
    let probe = probing(&net, "--meter xdp");
    let attached = || net.run_there("ip link show rx0").ok().stdout.contains("prog/xdp");
    assert!(attached());
    probe.signal("KILL");
    probe.wait();
    eventually("the program is gone", || !attached());
}

/// The number of a field of protocol buffers, each of which is known to be a number or bytes.
fn numbers_of(message: &[u8], wanted: u64) -> Vec<u64> {
    let mut found = Vec::new();
    let mut rest = message;
    let varint = |rest: &mut &[u8]| {
        let mut value = 0u64;
        for shift in (0..).step_by(7) {
            let (byte, behind) = rest.split_first().expect("a whole number");
            *rest = behind;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return value;
            }
        }
        value
    };
    while !rest.is_empty() {
        let key = varint(&mut rest);
        let value = varint(&mut rest);
        if key & 7 == 2 {
            rest = &rest[value as usize..];
        } else if key >> 3 == wanted {
            found.push(value);
        }
    }
    found
}

#[test]
fn records_say_which_stream_a_flow_is_and_which_of_its_frames_came() {
    let (net, dir) = (Net::new(), folder());
    let scenario = path(&dir, "two.yaml");
    let streams = "
streams:
  - {name: a, frame: 'ipv4(src=10.0.0.1, dst=198.18.0.1)/udp(sport=1, dport=9)', size: 64, count: 600, rate: 2kpps}
  - {name: b, frame: 'ipv4(src=10.0.0.2, dst=198.18.0.1)/udp(sport=2, dport=9)', size: 64, count: 300, rate: 1kpps}
";
    std::fs::write(&scenario, streams).expect("a file");
    let (lines, messages) = (path(&dir, "flows.jsonl"), path(&dir, "flows.pb"));
    let collector = collector(&net, &format!("--write {lines} --write {messages}"));
    let probe = probing(&net, "--signatures --export 127.0.0.1:9995 --idle-timeout 1h --active-timeout 1h");
    let sent = net.run(format!("netdyno send {scenario} --sign --on tx0 --engine packet --json")).json();
    assert_eq!(number(&sent["result"]["tx"]["frames"]), 900, "{sent}");
    // A frame that nobody signed.
    net.run("netdyno send ipv4(src=10.0.0.3,dst=198.18.0.1)/udp(sport=3,dport=9) --no-sign --count 5 --on tx0 --topspeed").ok();
    std::thread::sleep(std::time::Duration::from_millis(300));
    probe.signal("INT");
    let report = probe.wait().ok().json();
    ended(collector);
    let (name, reason) = way(&report);
    assert!(name == "packet" && reason.contains("signatures"), "{name}: {reason}");
    let text = std::fs::read_to_string(&lines).expect("the file");
    let mut rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    rows.retain(|row| row["dst_port"] == 9);
    rows.sort_by_key(|row| number(&row["src_port"]));
    let said: Vec<[u64; 5]> = rows
        .iter()
        .map(|row| {
            [
                "packets",
                "netdynoStream",
                "netdynoFirstSequence",
                "netdynoLastSequence",
                "netdynoSignedPackets",
            ]
            .map(|name| number(&row[name]))
        })
        .collect();
    assert_eq!(said, [[600, 0, 0, 599, 600], [300, 1, 0, 299, 300], [5, 0, 0, 0, 0]], "{text}");
    // goflow2's messages have them as numbers from 1000 on.
    let bytes = std::fs::read(&messages).expect("the file");
    let mut rest = bytes.as_slice();
    let mut told = Vec::new();
    while let Some((length, behind)) = rest.split_first() {
        // Longer ones have a second byte of their length.
        let (length, behind) = match length & 0x80 {
            0 => (usize::from(*length), behind),
            _ => (usize::from(length & 0x7f) | usize::from(behind[0]) << 7, &behind[1..]),
        };
        let (message, behind) = behind.split_at(length);
        if numbers_of(message, 22) == [9] {
            told.push([1000, 1004, 1005, 1006].map(|field| numbers_of(message, field)));
        }
        rest = behind;
    }
    told.sort();
    let one = |stream, last, packets| [vec![stream], vec![0], vec![last], vec![packets]];
    assert_eq!(told, [one(0, 0, 0), one(0, 599, 600), one(1, 299, 300)]);
    for (options, says) in [
        ("--format 9", "NetFlow has no fields"),
        ("--biflow", "one direction"),
        ("--meter xdp", "stand at their ends"),
        ("--drop", "packet socket"),
    ] {
        let said = net.run(format!("netdyno probe --on tx0 --signatures {options}")).with(2).stderr;
        assert!(said.contains(says), "{said}");
    }
}
