//! Every built-in plugin, judged by tshark: the document of each example compiles, its frames are dissected without
//! fault, their checksums are right, and the fields that the plugin is about are there.
//!
//! Needs `tshark`; without it this fails, and says so.

use plugin_sdk::{Native, testing};
use scenario::Context;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command, Stdio};
use traffic::executor;

/// Frames of each example.
const EACH: u64 = 240;
/// Severity from which an expert item means a broken packet (PI_ERROR).
const ERROR: u32 = 0x0080_0000;

/// Columns before those of the plugin.
const COMMON: [&str; 11] = [
    "frame.protocols",
    "_ws.malformed",
    "_ws.expert.severity",
    "_ws.expert.message",
    "ip.checksum.status",
    "udp.checksum.status",
    "tcp.checksum.status",
    "icmpv6.checksum.status",
    "igmp.checksum.status",
    "gre.checksum.status",
    "frame.len",
];

/// What an example's frames have: a field of tshark's, a value that is among its values (or nothing), and how many different
/// values there are at least.
struct Seen(&'static str, usize, &'static str, &'static str, usize);

include!("expected.rs");

/// The first frames of a plugin's document.
fn frames(plugin: &Native, options: &Value) -> Vec<Vec<u8>> {
    let name = (plugin.describe)().name;
    let input = json!({ "options": options, "run": { "seed": 7, "abi": 1 } }).to_string();
    let document = (plugin.compile)(&input).unwrap_or_else(|fault| panic!("{name} {options}: {fault}"));
    let scenario =
        scenario::parse(&document, &name).unwrap_or_else(|error| panic!("{name} {options}: {error}"));
    // Streams with times of their own share no rate.
    let rate = if document.contains("\"burst\":{") { None } else { "10kpps".parse().ok() };
    let context = Context { seed: 7, rate, ..Context::default() };
    let compiled = scenario.compile(&context).unwrap_or_else(|error| panic!("{name} {options}: {error}"));
    let count = EACH.min(compiled.count.unwrap_or(EACH));
    (0..count).map(|n| executor::frame(&compiled.program, n, 0).expect("a sound program")).collect()
}

/// A classic pcap file, link type Ethernet, a frame each 100 us.
fn pcap(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    for word in [0xa1b2_c3d4u32, 2 | 4 << 16, 0, 0, 262_144, 1] {
        out.extend(word.to_le_bytes());
    }
    for (n, frame) in frames.iter().enumerate() {
        for word in [n as u32 / 10_000, n as u32 % 10_000 * 100, frame.len() as u32, frame.len() as u32] {
            out.extend(word.to_le_bytes());
        }
        out.extend(frame);
    }
    out
}

/// What tshark says of each frame: the common columns, then those asked for.
fn dissect(frames: &[Vec<u8>], fields: &[&str]) -> Vec<Vec<String>> {
    let mut command = Command::new("tshark");
    command.args(["-n", "-r", "-", "-T", "fields", "-E", "occurrence=a", "-E", "separator=/t"]);
    for name in ["ip", "udp", "tcp"] {
        command.args(["-o", &format!("{name}.check_checksum:TRUE")]);
    }
    // Frames of one flow are not segments of one stream here, nor fragments of one packet.
    command.args(["-o", "tcp.analyze_sequence_numbers:FALSE", "-o", "tcp.desegment_tcp_streams:FALSE"]);
    command.args(["-o", "ip.defragment:FALSE", "-o", "ipv6.defragment:FALSE"]);
    // Payload of no protocol, on ports of which one is claimed by this.
    command.args(["--disable-protocol", "c1222"]);
    for field in COMMON.iter().chain(fields) {
        command.args(["-e", field]);
    }
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("cannot run tshark: {error}; scripts/setup test installs it"));
    let mut stdin = child.stdin.take().expect("a pipe");
    let input = pcap(frames);
    let feeder = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().expect("its output");
    assert!(output.status.success(), "tshark: {}", String::from_utf8_lossy(&output.stderr));
    feeder.join().expect("the feeder").expect("all input was read");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let rows: Vec<Vec<String>> =
        text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect();
    assert_eq!(rows.len(), frames.len());
    rows
}

/// Everything about one plugin; what is wrong with it.
fn judge(plugin: &Native) -> Vec<String> {
    let description = (plugin.describe)();
    let name = &description.name;
    testing::check_description(&description);
    let expected: Vec<&Seen> = EXPECTED.iter().filter(|seen| seen.0 == name).collect();
    let fields: Vec<&str> = expected.iter().map(|seen| seen.2).collect::<BTreeSet<_>>().into_iter().collect();
    let made: Vec<Vec<Vec<u8>>> = description
        .example
        .iter()
        .map(|example| frames(plugin, &Value::Object(example.set.clone())))
        .collect();
    let rows = dissect(&made.concat(), &fields);
    let mut faults = Vec::new();
    let mut rows = rows.as_slice();
    for (example, frames) in made.iter().enumerate() {
        let (own, rest) = rows.split_at(frames.len());
        rows = rest;
        for (n, row) in own.iter().enumerate() {
            let sums = &row[4..10];
            let severe = row[2].split(',').filter_map(|s| s.parse::<u32>().ok()).any(|s| s >= ERROR);
            let bad = sums.iter().flat_map(|list| list.split(',')).any(|sum| sum == "0");
            if !row[1].is_empty() || severe || bad {
                faults.push(format!("{name}, example {example}, frame {n}: {:?}", &row[..10]));
                break;
            }
        }
        for seen in expected.iter().filter(|seen| seen.1 == example) {
            let column = COMMON.len() + fields.iter().position(|field| *field == seen.2).expect("asked for");
            let values: BTreeSet<&str> =
                own.iter().flat_map(|row| row[column].split(',')).filter(|value| !value.is_empty()).collect();
            if values.len() < seen.4 || !seen.3.is_empty() && !values.contains(seen.3) {
                let some: Vec<&&str> = values.iter().take(8).collect();
                faults.push(format!(
                    "{name}, example {example}: {} has {} values, {some:?}; {} with `{}` were expected; {}",
                    seen.2,
                    values.len(),
                    seen.4,
                    seen.3,
                    own.first().map(|row| row[0].as_str()).unwrap_or_default()
                ));
            }
        }
    }
    if !(0..description.example.len()).all(|example| expected.iter().any(|seen| seen.1 == example)) {
        faults.push(format!("{name}: nothing is expected of one of its examples"));
    }
    faults
}

#[test]
fn tshark_finds_what_each_plugin_is_about_and_no_fault() {
    let next = std::sync::atomic::AtomicUsize::new(0);
    let faults = std::sync::Mutex::new(Vec::new());
    // Most of tshark's time is its start.
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(plugin) =
                    plugins::ALL.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
                {
                    let found = judge(plugin);
                    faults.lock().expect("no thread panicked").extend(found);
                }
            });
        }
    });
    let faults = faults.into_inner().expect("no thread panicked");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn names_are_unique_and_defaults_are_taken() {
    let names: BTreeSet<String> = plugins::ALL.iter().map(|plugin| (plugin.describe)().name).collect();
    assert_eq!(names.len(), plugins::ALL.len());
    for plugin in plugins::ALL {
        assert!(!frames(plugin, &json!({})).is_empty());
        let fault = (plugin.compile)(r#"{"options": {"no_such_option": 1}}"#).expect_err("it is not known");
        assert!(fault.message.contains("no_such_option"), "{fault}");
    }
}

#[test]
fn options_that_contradict_each_other_are_named() {
    for (plugin, options, path) in [
        ("simpleudp", json!({ "dst_ip": "2001:2::1" }), "/dst_ip"),
        ("simpleudp", json!({ "flows": 1_000_003 }), "/flows"),
        ("simpleudp", json!({ "src_ip": "10.0.0.1, ttl=9" }), "/src_ip"),
        ("simpleudp", json!({ "dst_port": { "a": 1 } }), "/dst_port"),
        ("gtpu", json!({ "qfi": [1, 64] }), "/qfi/1"),
        ("gtpu", json!({ "ue_ip": "10.45.0.0/28" }), "/ue_ip"),
        ("srv6", json!({ "passed": 3 }), "/passed"),
        ("dns", json!({ "names": ["ok.example", "a..b", "x".repeat(64)] }), "/names/2"),
        ("tcp_port_scan", json!({ "first_port": 9, "last_port": 8 }), "/last_port"),
        ("http", json!({ "requests": ["GET"] }), "/requests/0"),
        ("vxlan", json!({ "broadcast": 99 }), "/broadcast"),
    ] {
        let native =
            plugins::ALL.iter().find(|native| (native.describe)().name == plugin).expect("it is there");
        let input = json!({ "options": options }).to_string();
        let fault = (native.compile)(&input).expect_err("it cannot be");
        assert_eq!(fault.path, path, "{plugin}: {fault}");
    }
}

fn plugin(name: &str) -> &'static Native {
    plugins::ALL.iter().find(|native| (native.describe)().name == name).expect("it is there")
}

#[test]
fn addresses_and_ports_are_taken_in_the_order_in_which_they_are_written() {
    // A byte of each frame: the last one of an address, or of a port.
    for (name, options, byte, seen) in [
        ("simpleudp", json!({ "src_ip": "10.0.0.9..10.0.0.1", "src_port": 7, "flows": 9 }), 29, [9, 8, 7, 6]),
        ("simpleudp", json!({ "src_port": "2009..2000", "flows": 10 }), 35, [0xd9, 0xd8, 0xd7, 0xd6]),
        (
            "simpleudp",
            json!({ "src_ip": ["10.0.0.4", "10.0.0.2"], "src_port": 7, "flows": 2 }),
            29,
            [4, 2, 4, 2],
        ),
        ("gtpu", json!({ "ue_ip": "10.45.0.9..10.45.0.1", "tunnels": 3, "qfi": [] }), 65, [9, 8, 7, 9]),
        (
            "gtpu",
            json!({ "ue_ip": ["10.45.0.5", "10.45.0.1", "10.45.0.7"], "tunnels": 3, "qfi": [] }),
            65,
            [5, 1, 7, 5],
        ),
        (
            "netflow",
            json!({ "exporter_ip": "10.0.0.3..10.0.0.1", "exporters": 3, "records": 1 }),
            29,
            [3, 2, 1, 3],
        ),
    ] {
        let made: Vec<u8> = frames(plugin(name), &options).iter().take(4).map(|frame| frame[byte]).collect();
        assert_eq!(made, seen, "{name} {options}");
    }
    let shuffled = json!({ "src_ip": "shuffled(10.0.0.0/28)", "src_port": 7, "flows": 16 });
    let made: BTreeSet<u8> = frames(plugin("simpleudp"), &shuffled).iter().take(16).map(|f| f[29]).collect();
    assert_eq!(made.len(), 16, "each once");
    for (name, options, path) in [
        ("simpleudp", json!({ "src_ip": "shuffled(10.0.0.0/24)", "src_port": 7, "flows": 16 }), "/flows"),
        ("gtpu", json!({ "ue_ip": "random(10.0.0.0/8)" }), "/ue_ip"),
        ("gtpu", json!({ "ue_ip": "shuffled(10.0.0.0/16)" }), "/ue_ip"),
        ("netflow", json!({ "exporter_ip": "random(10.0.0.0/8)" }), "/exporter_ip"),
        (
            "netflow",
            json!({ "version": "v9", "flow_src": "[2001:2::1, 2001:2::9]", "flow_dst": "2001:2::7" }),
            "/flow_src",
        ),
        (
            "tcp_port_scan",
            json!({ "dst_ip": "random(10.0.0.0/8)", "order": "targets", "passes": 0 }),
            "/dst_ip",
        ),
    ] {
        let input = json!({ "options": options }).to_string();
        let fault = (plugin(name).compile)(&input).expect_err("it has no such order");
        assert_eq!(fault.path, path, "{name}: {fault}");
    }
}

/// The sum of big-endian words, folded.
fn sum(bytes: &[u8]) -> u32 {
    let words =
        bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low)));
    let sum: u32 = words.sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    (sum & 0xffff) + (sum >> 16)
}

#[test]
fn datagrams_of_ipv6_fragments_have_right_checksums() {
    for (kind, parts) in
        [("whole", 3), ("reversed", 3), ("duplicate", 4), ("tiny", 2), ("overlap", 3), ("gap", 2)]
    {
        for size in [16, 512, 1440] {
            let options = json!({
                "src_ip": "2001:2::/112", "dst_ip": "2001:2:0:1::1", "kinds": ["first_only", kind], "size": size
            });
            let made = frames(plugin("fragments"), &options);
            for datagram in made.chunks(1 + parts).take(3) {
                // The first frame is the other kind's.
                let [_, own @ ..] = datagram else { panic!("no datagram") };
                let mut data = Vec::new();
                for frame in own {
                    assert_eq!(frame[58..62], own[0][58..62], "{kind}: one identification");
                    let at = usize::from(u16::from_be_bytes([frame[56], frame[57]]) & 0xfff8);
                    // What is missing is what datagrams are filled with.
                    data.resize(data.len().max(at + frame.len() - 62), b'f');
                    data[at..at + frame.len() - 62].copy_from_slice(&frame[62..]);
                }
                let length = u16::from_be_bytes([data[4], data[5]]);
                assert_eq!(usize::from(length), data.len(), "{kind}, {size}");
                let mut covered = own[0][22..54].to_vec();
                covered.extend([0, 0, data[4], data[5], 0, 0, 0, 17]);
                covered.extend(&data);
                assert_eq!(sum(&covered), 0xffff, "{kind}, {size}: the checksum");
            }
        }
    }
}
