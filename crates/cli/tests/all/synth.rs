//! `netdyno synth --like`: look-alikes of captures, counted by tshark.

use crate::common::*;
use std::collections::{BTreeMap, BTreeSet};

/// What tshark finds in a capture.
#[derive(Debug, PartialEq)]
struct Counted {
    frames: usize,
    bytes: u64,
    /// By tags, IP version and transport.
    kinds: BTreeMap<Vec<String>, usize>,
    /// Frames of each one-way flow, in order.
    flows: Vec<usize>,
    /// Server ports below 1024, with their frames.
    services: BTreeMap<String, usize>,
}

const FIELDS: [&str; 16] = [
    "frame.len",
    "vlan.id",
    "mpls.label",
    "pppoe.code",
    "ip.version",
    "ip.proto",
    "ipv6.nxt",
    "ip.src",
    "ip.dst",
    "ipv6.src",
    "ipv6.dst",
    "tcp.port",
    "udp.port",
    "sctp.port",
    "icmp.type",
    "icmpv6.type",
];

fn rows(file: &str) -> Vec<Vec<String>> {
    let fields: Vec<String> = FIELDS.iter().map(|field| format!("-e {field}")).collect();
    // Outer headers only: what tunnels carry is not imitated.
    let line = format!("tshark -n -r {file} -T fields -E occurrence=a -E aggregator=, {}", fields.join(" "));
    let rows = run(line).ok().stdout;
    let outer = |(at, cell): (usize, &str)| match FIELDS[at] {
        // Both ports of the outermost header, in their order.
        "tcp.port" | "udp.port" | "sctp.port" => cell.split(',').take(2).collect::<Vec<_>>().join(","),
        _ => cell.split(',').next().unwrap_or_default().to_owned(),
    };
    rows.lines().map(|row| row.split('\t').enumerate().map(outer).collect()).collect()
}

fn count(file: &str) -> Counted {
    let rows = rows(file);
    let mut counted = Counted {
        frames: rows.len(),
        bytes: rows.iter().map(|row| row[0].parse::<u64>().expect("a length")).sum(),
        kinds: BTreeMap::new(),
        flows: Vec::new(),
        services: BTreeMap::new(),
    };
    let mut flows: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    for row in &rows {
        let tagged = |cell: &String| if cell.is_empty() { String::new() } else { "tagged".to_owned() };
        let kind = row[1..4].iter().map(tagged).chain(row[4..7].iter().cloned()).collect();
        *counted.kinds.entry(kind).or_default() += 1;
        let is_ip = !row[4].is_empty() || !row[6].is_empty();
        if is_ip {
            *flows.entry(row[5..].to_vec()).or_default() += 1;
        }
        for (name, cell) in [("tcp", &row[11]), ("udp", &row[12])] {
            let server = cell.split(',').filter_map(|port| port.parse::<u16>().ok()).min();
            if let Some(port) = server.filter(|port| *port < 1024) {
                *counted.services.entry(format!("{name} {port}")).or_default() += 1;
            }
        }
    }
    counted.flows = flows.into_values().collect();
    counted.flows.sort_unstable();
    counted
}

fn addresses(file: &str) -> BTreeSet<String> {
    let all = |row: Vec<String>| row[7..11].to_vec();
    rows(file).into_iter().flat_map(all).filter(|address| !address.is_empty()).collect()
}

/// A capture of several link and network headers, and of conversations.
fn mixed(dir: &Folder) -> String {
    let crafted = [
        ("v6", "ipv6(src=2001:db8::/120)/tcp(dport=443, sport=1024..1100)", "random(78..1518)"),
        ("vlan", "vlan(id=1..3)/ipv4(src=192.0.2.0/24)/udp(dport=53)", "128"),
        ("mpls", "mpls(label=16)/ipv4(dst=203.0.113.0/28)/udp(dport=5000)", "200"),
        ("qinq", "vlan(id=7)/vlan(id=8)/ipv6(dst=2001:db8:1::/124)/udp(dport=123)", "300"),
        ("sctp", "ipv4/sctp(sport=1..40)/sctpdata", "130"),
        ("ping", "ipv4(src=192.0.2.0/28)/icmp", "98"),
        ("arp", "arp", "64"),
    ];
    let mut files = vec![path(dir, "small.pcap")];
    run(format!("netdyno synth --profile smallflows -w {}", files[0])).ok();
    for (name, frame, size) in crafted {
        let file = path(dir, &format!("{name}.pcap"));
        run(format!(
            "netdyno craft {} --count 400 --rate 100pps --size {size} -w {file}",
            frame.replace(", ", ",")
        ))
        .ok();
        files.push(file);
    }
    let merged = path(dir, "mixed.pcap");
    run(format!("mergecap -F nsecpcap -w {merged} {}", files.join(" "))).ok();
    merged
}

#[test]
fn tshark_counts_the_same_in_a_capture_and_its_look_alike() {
    let dir = folder();
    let (original, copy) = (mixed(&dir), path(&dir, "copy.pcap.gz"));
    run(format!("netdyno synth --like {original} -w {copy}")).ok().says(&["17,061 frames"]);
    let (a, b) = (count(&original), count(&copy));
    assert_eq!((a.frames, a.bytes), (b.frames, b.bytes));
    assert_eq!(a.kinds, b.kinds);
    assert_eq!(a.services, b.services);
    assert_eq!(a.flows.len(), b.flows.len());
    let short =
        |counted: &Counted| counted.flows.iter().filter(|frames| **frames <= 16).copied().collect::<Vec<_>>();
    assert_eq!(short(&a), short(&b));
    let common: Vec<_> = addresses(&original).intersection(&addresses(&copy)).cloned().collect();
    assert_eq!(common, Vec::<String>::new());
    // Every checksum holds, and no length is wrong.
    let complaints = "ip.checksum.status==0||tcp.checksum.status==0||udp.checksum.status==0||icmp.checksum.status==0||sctp.checksum.status==0";
    let mut tshark = command("tshark -n -r");
    tshark.args([&copy, "-o", "sctp.checksum:CRC 32c", "-Y", complaints]);
    for protocol in ["ip", "tcp", "udp"] {
        tshark.args(["-o", &format!("{protocol}.check_checksum:TRUE")]);
    }
    let bad = start(tshark).wait().ok().stdout;
    assert_eq!(bad, "");
}

#[test]
fn info_of_both_agrees() {
    let dir = folder();
    let (original, copy) = (mixed(&dir), path(&dir, "copy.pcap"));
    let said = run(format!("netdyno synth --like {original} -w {copy} --json")).ok().json();
    assert!(said["totals"].as_array().is_some_and(|rows| rows.len() > 10), "{said}");
    agree(&original, &copy);
    // Real ones, where a folder of them is named.
    if let Some(real) = std::env::var_os("NETDYNO_CAPTURES") {
        for name in listing(std::path::Path::new(&real)).iter().filter(|name| name.contains(".pcap")) {
            let original = format!("{}/{name}", real.to_string_lossy());
            run(format!("netdyno synth --like {original} -w {copy}")).ok();
            agree(&original, &copy);
        }
    }
}

fn agree(original: &str, copy: &str) {
    let info = |file: &str| run(format!("netdyno info --json {file}")).ok().json();
    let (a, b) = (info(original), info(copy));
    for what in [
        "frames",
        "bytes",
        "duration_ns",
        "flows",
        "conversations",
        "smallest_frame_bytes",
        "largest_frame_bytes",
        "sizes_with_fcs",
        "frames_without_flow",
        "addresses",
        "protocols",
    ] {
        assert_eq!(a[what], b[what], "{what} of {original}");
    }
}

#[test]
fn a_profile_makes_the_look_alike_without_the_capture() {
    let dir = folder();
    let original = mixed(&dir);
    let [profile, first, second, third] =
        ["p.json", "1.pcap", "2.pcap", "3.pcap"].map(|name| path(&dir, name));
    run(format!("netdyno synth --like {original} --write-profile {profile}")).ok();
    run(format!("netdyno synth --like {original} -w {first} --seed 5")).ok();
    run(format!("netdyno synth --profile {profile} -o {second} --seed 5")).ok();
    run(format!("netdyno synth --profile {profile} -w {third} --seed 6")).ok();
    let bytes = |file: &str| std::fs::read(file).expect("a file");
    assert!(bytes(&first) == bytes(&second), "the same frames, byte for byte");
    assert!(bytes(&first) != bytes(&third));
    // No address of the capture is in the file.
    let text = String::from_utf8(bytes(&profile)).expect("text");
    for address in addresses(&original) {
        assert!(!text.contains(&address), "{address}");
    }
}

#[test]
fn what_cannot_be_imitated_is_refused_with_what_to_do() {
    let dir = folder();
    let (file, out) = (path(&dir, "p.json"), path(&dir, "out.pcap"));
    run(format!("netdyno synth --profile hugeflows -w {out}"))
        .refused(&["hugeflows", "bigflows, smallflows"]);
    run("netdyno synth --like nowhere.pcap -w out.pcap").refused(&["nowhere.pcap"]);
    run("netdyno synth").with(2).says(&["--write"]);
    run(format!("netdyno synth --write-profile {file}")).with(2).says(&["--like"]);
    for (text, words) in [
        ("{", "line 1"),
        (r#"{"schema":"x","duration_ns":0,"kinds":[]}"#, "netdyno.flow-profile/1"),
        (r#"{"schema":"netdyno.flow-profile/1","duration_ns":0,"kinds":[]}"#, "0 frames"),
        (
            r#"{"schema":"netdyno.flow-profile/1","duration_ns":0,"kinds":[{"ip":5,"protocol":6,"shapes":[],"sizes":{}}]}"#,
            "kinds[0].ip: 5",
        ),
        (r#"{"schema":"netdyno.flow-profile/1","durations":0}"#, "durations"),
    ] {
        std::fs::write(&file, text).expect("a file");
        run(format!("netdyno synth --profile {file} -w {out}")).refused(&["p.json", words]);
    }
    let empty = path(&dir, "empty.pcap");
    write_pcap(&empty, 1, &[]);
    run(format!("netdyno synth --like {empty} -w {out}")).refused(&["empty.pcap", "no frames"]);
    assert!(!listing(dir.path()).contains(&"out.pcap".to_owned()), "nothing is half written");
}

#[test]
fn a_profile_may_be_written_by_hand() {
    let dir = folder();
    let (file, out) = (path(&dir, "p.json"), path(&dir, "out.pcap"));
    let text = r#"{"schema": "netdyno.flow-profile/1", "duration_ns": 10000000000,
        "ipv4": {"clients": 20, "servers": 2},
        "kinds": [{"ip": 4, "protocol": 17, "port": 53,
            "shapes": [{"conversations": 100, "client": {"1": 1}, "server": {"1": 3, "0": 1}, "duration_ns": {"20000000": 1}}],
            "sizes": {"client": [{"80": 1}], "server": [{"120": 1, "300": 1}]}}]}"#;
    std::fs::write(&file, text).expect("a file");
    run(format!("netdyno synth --profile {file} -w {out}")).ok();
    let counted = count(&out);
    assert_eq!((counted.frames, counted.flows.len()), (175, 175));
    assert_eq!(counted.services, [("udp 53".to_owned(), 175)].into());
}
