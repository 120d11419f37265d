//! `netdyno probe`: records as collectors of others read them, against a truth that others computed.

use crate::common::{Folder, Net, Ran, by_scapy, eventually, folder, number, path, reasons, run};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Flows of many kinds. Each ends up as one record, if no timeout cuts it.
const KINDS: &str = r#"
import sys, random
from scapy.all import *
random.seed(7)
mac = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
frames = []
def at(frame, t):
    raw = bytes(frame)
    # What Ethernet pads is no part of a packet.
    frames.append((t, raw + bytes(max(0, 60 - len(raw)))))
for n in range(300):
    a, b = "10.0.%d.%d" % (n // 250, n % 250 + 1), "198.18.0.%d" % (n % 9 + 1)
    port = 20000 + n
    t = n * 0.01
    if n % 3 == 0:
        for k, flags in enumerate(["S", "A", "PA", "A", "FA" if n % 2 else "RA"]):
            at(mac / IP(src=a, dst=b, tos=n % 4 * 8) / TCP(sport=port, dport=80, flags=flags) / (b"x" * (k * 100)), t + k * 0.0213)
    elif n % 3 == 1:
        for k in range(n % 5 + 1):
            at(mac / IP(src=a, dst=b) / UDP(sport=port, dport=53) / (b"y" * (k * 7)), t + k * 0.1)
    else:
        at(mac / IP(src=a, dst=b) / ICMP(type=8, code=0) / b"ping", t)
        at(mac / IP(src=b, dst=a) / ICMP(type=3, code=1) / b"unreachable", t + 0.004)
for n in range(40):
    v6 = IPv6(src="2001:db8::%x" % (n + 1), dst="2001:db8:1::1", tc=n % 3 * 4)
    at(mac / v6 / UDP(sport=1000 + n, dport=53) / b"six", 4 + n * 0.01)
    at(mac / v6 / TCP(sport=1000 + n, dport=443, flags="S"), 4 + n * 0.01)
    hop = IPv6(src="2001:db8:2::%x" % (n + 1), dst="2001:db8:1::1") / IPv6ExtHdrHopByHop(options=PadN(optdata=b"1234"))
    at(mac / hop / UDP(sport=7, dport=1000 + n) / b"hop", 5 + n * 0.01)
for n in range(20):
    inner = IP(src="10.9.0.%d" % (n + 1), dst="10.9.1.1") / UDP(sport=9, dport=3000 + n) / b"tagged"
    at(mac / Dot1Q(vlan=n + 2) / inner, 6 + n * 0.01)
    at(mac / Dot1AD(vlan=100) / Dot1Q(vlan=n + 2) / IP(src="10.8.0.%d" % (n + 1), dst="10.9.1.1") / UDP(sport=9, dport=3000 + n), 6.5 + n * 0.01)
for n in range(10):
    whole = IP(src="10.7.0.%d" % (n + 1), dst="10.7.1.1", id=n + 1) / UDP(sport=9, dport=4000 + n) / (b"f" * 4000)
    for k, part in enumerate(fragment(whole, fragsize=1480)):
        at(mac / part, 7 + n * 0.01 + k * 0.001)
at(mac / ARP(pdst="10.0.0.1"), 8)
frames.sort(key=lambda frame: frame[0])
with PcapWriter(sys.argv[1], linktype=1, nano=True) as out:
    for t, raw in frames:
        p = Ether(raw)
        p.time = EDecimal("%.6f" % (1700000000.25 + t))
        out.write(p)
"#;

/// A capture of flows of many kinds.
pub fn many_kinds(dir: &Folder) -> String {
    static MADE: OnceLock<Vec<u8>> = OnceLock::new();
    by_scapy(&MADE, dir, "kinds", KINDS)
}

/// A flow, and what was counted: packets, bytes of IP, flags, first and last in milliseconds.
pub type Records = BTreeMap<String, Vec<[u64; 5]>>;

/// What tshark finds in a capture, added up here.
pub fn truth(capture: &str, v6: bool) -> Records {
    const FIELDS: &str = "frame.time_epoch ip.src ip.dst ipv6.src ipv6.dst ip.proto ip.len ipv6.plen udp.srcport udp.dstport \
         tcp.srcport tcp.dstport icmp.type icmp.code tcp.flags ip.id ip.dsfield ipv6.tclass";
    let fields: String = FIELDS.split_whitespace().map(|field| format!(" -e {field}")).collect();
    let read = run(format!(
        "tshark -r {capture} -o ip.defragment:FALSE -T fields -E separator=; -E occurrence=f -Y ip||ipv6{fields}"
    ))
    .ok();
    let mut flows: BTreeMap<String, [u64; 5]> = BTreeMap::new();
    let mut first_fragments: BTreeMap<String, String> = BTreeMap::new();
    for line in read.stdout.lines() {
        let of: Vec<&str> = line.split(';').collect();
        let [time, a4, b4, a6, b6, proto, len, plen, us, ud, ts, td, kind, code, flags, id, tos4, tos6] =
            of[..]
        else {
            panic!("{line}")
        };
        if !a6.is_empty() && !v6 {
            continue;
        }
        let hex = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap_or(0);
        let (a, b) = if a6.is_empty() { (a4, b4) } else { (a6, b6) };
        let tos = if a6.is_empty() { hex(tos4) } else { hex(tos6) };
        let (ports, protocol) = match (us, ts, kind) {
            ("", "", "") => (String::new(), proto.parse().expect("a protocol")),
            ("", "", kind) => {
                let kind: u32 = kind.parse().expect("a type");
                (format!("0 {}", kind * 256 + code.parse::<u32>().expect("a code")), 1)
            }
            ("", _, _) => (format!("{ts} {td}"), 6),
            _ => (format!("{us} {ud}"), 17),
        };
        let packet = format!("{a} {b} {id}");
        let ports = match ports.is_empty() {
            true => first_fragments[&packet].clone(),
            false => ports,
        };
        first_fragments.insert(packet, ports.clone());
        let bytes = if a6.is_empty() {
            len.parse().expect("a length")
        } else {
            40 + plen.parse::<u64>().expect("a length")
        };
        let ms = (time.parse::<f64>().expect("a time") * 1000.0 + 1e-4).floor() as u64;
        let flow = flows.entry(format!("{a} {b} {ports} {protocol} {tos}")).or_insert([0, 0, 0, ms, ms]);
        *flow = [flow[0] + 1, flow[1] + bytes, flow[2] | hex(flags) & 0x3f, flow[3].min(ms), flow[4].max(ms)];
    }
    flows.into_iter().map(|(flow, counted)| (flow, vec![counted])).collect()
}

/// What is sent over lo by one CPU arrives in order: messages that overtake each other are gaps to nfcapd, and records without a
/// template to tshark.
pub const IN_ORDER: &str = "taskset -c 0";

/// A collector of others.
pub struct Nfcapd {
    running: crate::common::Running,
    dir: String,
}

impl Nfcapd {
    pub fn start(net: &Net, dir: &Folder, name: &str) -> Nfcapd {
        let folder = path(dir, name);
        std::fs::create_dir(&folder).expect("a folder");
        let running = net.start(format!("nfcapd -w {folder} -p 9995 -b 127.0.0.1 -B 4000000 -t 3600"));
        let start = Instant::now();
        while !net.run("ss -Huln").stdout.contains("127.0.0.1:9995") {
            assert!(start.elapsed() < Duration::from_secs(60), "nfcapd does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Nfcapd { running, dir: folder }
    }

    /// Ends it. What it had to say, and what nfdump prints of the records that it got, in this format.
    pub fn ended(self, format: &str) -> (Ran, String) {
        // What is in its socket is taken first.
        std::thread::sleep(Duration::from_millis(300));
        self.running.signal("INT");
        let said = self.running.wait();
        (said, run(format!("env TZ=UTC nfdump -R {} -q -N -6 -o fmt:{format}", self.dir)).ok().stdout)
    }

    /// Ends it. What it had to say, and the records that it got.
    pub fn records(self) -> (Ran, Records) {
        let (said, read) = self.ended("%ts|%te|%sa|%da|%sp|%dp|%pr|%pkt|%byt|%flg|%tos");
        let mut records = Records::new();
        for line in read.lines().filter(|line| line.contains('|')) {
            let of: Vec<&str> = line.split('|').map(str::trim).collect();
            let [first, last, a, b, sp, dp, protocol, packets, bytes, flags, tos] = of[..] else {
                panic!("{line}")
            };
            // Of ICMP it shows type and code.
            let dp = match dp.split_once('.') {
                Some((kind, code)) => {
                    kind.parse::<u32>().expect("a type") * 256 + code.parse::<u32>().expect("a code")
                }
                None => dp.parse().expect("a port"),
            };
            let bits = "FSRPAU".chars().enumerate();
            let flags = bits.filter(|(_, letter)| flags.contains(*letter)).map(|(bit, _)| 1u64 << bit).sum();
            let count = |text: &str| text.parse::<u64>().unwrap_or_else(|_| panic!("{line}"));
            let counted = [count(packets), count(bytes), flags, milliseconds(first), milliseconds(last)];
            records.entry(format!("{a} {b} {sp} {dp} {protocol} {tos}")).or_default().push(counted);
        }
        (said, records)
    }
}

/// `2023-11-14 22:13:20.250` of the day on which the capture begins.
fn milliseconds(text: &str) -> u64 {
    let (day, time) = text.split_once(' ').expect("a date");
    assert_eq!(day, "2023-11-14", "{text}");
    let (time, ms) = time.split_once('.').expect("milliseconds");
    let seconds = time.split(':').fold(0, |sum, part| sum * 60 + part.parse::<u64>().expect("a number"));
    // 1,700,000,000 s since 1970 are 22:13:20 of that day.
    (1_700_000_000 - (22 * 3600 + 13 * 60 + 20) + seconds) * 1000 + ms.parse::<u64>().expect("a number")
}

pub fn metering(report: &Value) -> &Value {
    &report["result"]["metering"]
}

#[test]
fn records_of_a_capture_are_the_truth_in_all_formats() {
    let (net, dir) = (Net::new(), folder());
    let capture = many_kinds(&dir);
    for format in ["ipfix", "9", "5"] {
        let truth = truth(&capture, format != "5");
        assert!(truth.len() > 380, "{}", truth.len());
        let collector = Nfcapd::start(&net, &dir, format);
        let whole = "--idle-timeout 1h --active-timeout 1h --end-timeout 1h";
        let line = format!(
            "{IN_ORDER} netdyno probe {capture} --export 127.0.0.1:9995 --format {format} {whole} --json"
        );
        let report = net.run(line).with(i32::from(format == "5")).json();
        let (said, records) = collector.records();
        assert_eq!(records, truth, "{format}");
        let sent = number(&metering(&report)["sent_records"]);
        assert_eq!(sent, truth.len() as u64, "{report}");
        assert_eq!(number(&metering(&report)["other_frames"]), 1, "{report}");
        // IPv6 is what v5 has no words for, and it says so.
        let unsayable = number(&metering(&report)["unsayable_records"]);
        assert_eq!(unsayable, if format == "5" { 120 } else { 0 }, "{report}");
        let said = format!("{}{}", said.stdout, said.stderr);
        assert!(said.contains("Bad Packets: 0"), "{said}");
        // nfcapd 1.7.1 does not count records of options, which IPFIX's numbers do (RFC 7011, 3.1): here they come last.
        assert!(said.contains("Sequence Errors: 0"), "{said}");
    }
}

#[test]
fn timeouts_cut_flows_and_lose_nothing_of_them() {
    let (net, dir) = (Net::new(), folder());
    let capture = many_kinds(&dir);
    let truth = truth(&capture, true);
    let total = |records: &Records, which: usize| records.values().flatten().map(|of| of[which]).sum::<u64>();
    for limits in ["--idle-timeout 50ms", "--active-timeout 30ms", "--end-timeout 1ms", "--max-flows 7"] {
        let collector = Nfcapd::start(&net, &dir, &limits.replace([' ', '-'], ""));
        let line = format!("{IN_ORDER} netdyno probe {capture} --export 127.0.0.1:9995 {limits} --json");
        let report = net.run(line).ok().json();
        let (_, records) = collector.records();
        let count = records.values().map(Vec::len).sum::<usize>();
        assert!(count > truth.len() || limits.contains("end"), "{limits}: {count}");
        assert_eq!(number(&metering(&report)["sent_records"]), count as u64, "{limits}");
        for which in [0, 1] {
            assert_eq!(total(&records, which), total(&truth, which), "{limits}");
        }
        assert_eq!(records.keys().collect::<Vec<_>>(), truth.keys().collect::<Vec<_>>(), "{limits}");
        let full = report["warnings"].to_string().contains("no room for more flows");
        assert_eq!(full, limits.contains("max"), "{report}");
    }
}

#[test]
fn tshark_dissects_every_message() {
    let (net, dir) = (Net::new(), folder());
    let capture = many_kinds(&dir);
    let own = "%IPV4_SRC_ADDR %IPV4_DST_ADDR %IPV4_NEXT_HOP %INPUT_SNMP %OUTPUT_SNMP %IN_PKTS %IN_BYTES %FIRST_SWITCHED \
               %LAST_SWITCHED %L4_SRC_PORT %L4_DST_PORT %TCP_FLAGS %PROTOCOL %SRC_TOS %SRC_AS %DST_AS %IPV4_SRC_MASK \
               %IPV4_DST_MASK %IN_SRC_MAC %IN_DST_MAC %SRC_VLAN %MIN_TTL flowEndReason flowStartNanoseconds";
    for (format, template, sample) in [
        ("ipfix", true, ""),
        ("ipfix", false, "--sample 3"),
        ("9", true, "--sample 2"),
        ("9", false, ""),
        ("5", false, ""),
    ] {
        let messages = path(&dir, &format!("messages-{format}-{template}.pcap"));
        let mut sniffer = net.start(format!("tcpdump -Z root -n -U -i lo -w {messages} udp and port 9995"));
        sniffer.until_it_says("listening on");
        // Somebody takes them, so that none is refused.
        let collector = Nfcapd::start(&net, &dir, &format!("taken-{format}-{template}"));
        let mut line: Vec<String> = IN_ORDER.split(' ').map(str::to_owned).collect();
        line.extend(["netdyno".to_owned(), "probe".to_owned(), capture.clone()]);
        line.extend(
            format!("--export 127.0.0.1:9995 --format {format} --template-refresh 1s {sample} --json")
                .split_whitespace()
                .map(str::to_owned),
        );
        if template {
            line.extend(["-T".to_owned(), own.split_whitespace().collect::<Vec<_>>().join(",")]);
        }
        let report = net.run(line.join(" ")).json();
        let metering = metering(&report);
        drop(collector);
        let wanted = number(&metering["sent_messages"]) as usize;
        eventually("all messages were seen", || crate::common::frames(&messages).len() >= wanted);
        sniffer.signal("INT");
        sniffer.wait().ok();
        let read = run(format!("tshark -r {messages} -d udp.port==9995,cflow -V")).ok().stdout;
        // A source port of chance may be among those of traceroute, which is no complaint.
        let lower = read.to_lowercase().replace("expert info (chat/sequence): possible traceroute", "");
        for complaint in ["malformed", "expert info", "[no template", "unexpected", "nonsense"] {
            assert!(!lower.contains(complaint), "{format}: {complaint} in\n{read}");
        }
        let flows = read.lines().filter(|line| {
            let line = line.trim();
            line.strip_prefix("Flow ")
                .or_else(|| line.strip_prefix("pdu "))
                .is_some_and(|rest| rest.split('/').next().unwrap_or_default().trim().parse::<u32>().is_ok())
        });
        let options =
            read.lines().filter(|line| line.trim().starts_with("Options ") && line.contains("Flow")).count();
        assert!(
            flows.count() as u64 >= number(&metering["sent_records"]).saturating_sub(options as u64),
            "{format}\n{read}"
        );
    }
}

#[test]
fn every_flow_that_arrives_is_exported() {
    let (net, dir) = (Net::new(), folder());
    for format in ["ipfix", "9", "5"] {
        let collector = Nfcapd::start(&net, &dir, format);
        let limits = "--idle-timeout 500ms --duration 20s --count 20000";
        let probe = net.start(format!(
            "{IN_ORDER} netdyno probe --on rx0 --export 127.0.0.1:9995 --format {format} {limits} --json"
        ));
        let mut probe = probe;
        probe.until_it_says("Ctrl-C ends");
        let what = "ipv4(src=10.0.0.0/16,dst=198.18.0.2)/udp(sport=7,dport=9)";
        net.run(format!("netdyno send {what} --on tx0 --count 20000 --rate 20kpps --engine packet --json"))
            .json();
        let report = probe.wait().ok().json();
        let metering = metering(&report);
        let (_, records) = collector.records_of_now();
        assert_eq!(number(&metering["packets"]), 20_000, "{report}");
        assert_eq!(number(&metering["sent_records"]), 20_000, "{report}");
        assert_eq!(records, 20_000, "{format}");
    }
}

impl Nfcapd {
    /// The same of records that are of today: what it said, and how many different flows it got.
    fn records_of_now(self) -> (Ran, usize) {
        let (said, read) = self.ended("%sa|%pkt|%byt");
        let flows: std::collections::BTreeSet<&str> =
            read.lines().filter(|line| line.contains('|')).map(str::trim).collect();
        assert!(flows.iter().all(|line| line.split('|').nth(1).is_some_and(|packets| packets.trim() == "1")));
        (said, flows.len())
    }
}

#[test]
fn what_cannot_be_metered_is_refused() {
    let dir = folder();
    let capture = path(&dir, "none.pcap");
    crate::common::write_pcap(&capture, 1, &[]);
    run("netdyno probe").refused(&["--on", "captures"]);
    run(format!("netdyno probe {capture} -T %NO_SUCH_THING"))
        .refused(&["--template", "`%NO_SUCH_THING` is no element"]);
    run(format!("netdyno probe {capture} --format 5 -T %IN_BYTES"))
        .refused(&["but one layout", "--template"]);
    run(format!("netdyno probe {capture} --export nowhere")).refused(&["--export", "HOST:PORT"]);
    run(format!("netdyno probe {capture} --export 127.0.0.1:1 --balance"))
        .refused(&["--balance", "name a second one"]);
    run(format!("netdyno probe {capture} --max-flows 1000000000")).refused(&["--max-flows", "of memory"]);
    run("netdyno probe --on no-such-interface0").refused(&["no-such-interface0"]);
    for (given, words) in [
        ("--format 5 --sample 20000", ["--sample", "16383"]),
        ("--format 5 --domain 300", ["--domain", "255"]),
        ("--format 5 --input-index 70000", ["--input-index", "65535"]),
        ("--active-timeout 2h -T flowDurationMicroseconds", ["--active-timeout", "since 1970"]),
    ] {
        run(format!("netdyno probe {capture} {given}")).refused(&words);
    }
    // USB: where IP begins in it nobody here knows.
    let usb = path(&dir, "usb.pcap");
    crate::common::write_pcap(&usb, 189, &[vec![0; 80]]);
    run(format!("netdyno probe {usb}")).refused(&["usb.pcap", "link type 189"]);
    run(format!("netdyno probe {capture}")).ok();
}

#[test]
fn an_unreachable_collector_is_told() {
    let (net, dir) = (Net::new(), folder());
    let capture = many_kinds(&dir);
    let report = net.run(format!("netdyno probe {capture} --export 127.0.0.1:9 --json")).with(1).json();
    assert!(reasons(&report)[0].contains("ended and were not sent"), "{report}");
    assert!(reasons(&report)[1].contains("were refused: nobody takes them there"), "{report}");
    let collector = &metering(&report)["collectors"][0];
    assert!(number(&collector["refused_messages"]) > 0, "{report}");
}

#[test]
fn a_signal_ends_a_probe_and_what_it_has_is_exported() {
    let (net, dir) = (Net::new(), folder());
    let collector = Nfcapd::start(&net, &dir, "signal");
    let mut probe = net
        .start(format!("{IN_ORDER} netdyno probe --on rx0 --export 127.0.0.1:9995 --idle-timeout 1h --json"));
    probe.until_it_says("Ctrl-C ends");
    let what = "ipv4(src=10.0.0.0/24,dst=198.18.0.2)/udp(sport=7,dport=9)";
    net.run(format!("netdyno send {what} --on tx0 --count 256 --rate 10kpps --engine packet --json")).json();
    std::thread::sleep(Duration::from_millis(200));
    probe.signal("INT");
    let report = probe.wait().ok().json();
    assert_eq!(number(&metering(&report)["forced_records"]), 256, "{report}");
    assert_eq!(collector.records_of_now().1, 256);
}

#[test]
fn of_tunnels_the_inside_is_metered_on_request() {
    let (net, dir) = (Net::new(), folder());
    let inside = "ipv4(src=10.1.2.3,dst=10.4.5.6)/tcp(sport=5,dport=6)";
    let outside = "ipv4(src=192.0.2.1,dst=192.0.2.2)";
    for (number, (tunnel, protocol, port)) in [
        ("udp(sport=9,dport=2152)/gtpu", 17, "9 2152"),
        ("udp(sport=9,dport=4789)/vxlan/ether", 17, "9 4789"),
        ("gre", 47, "0 0"),
    ]
    .into_iter()
    .enumerate()
    {
        let capture = path(&dir, &format!("{number}.pcap"));
        run(format!("netdyno craft {outside}/{tunnel}/{inside} --count 3 -w {capture}")).ok();
        for (inner, wanted) in [
            ("", format!("192.0.2.1 192.0.2.2 {port} {protocol} 0")),
            ("--inner", "10.1.2.3 10.4.5.6 5 6 6 0".to_owned()),
        ] {
            let shifted = path(&dir, &format!("{number}-shifted{inner}.pcap"));
            run(format!("editcap -t 1700000000 {capture} {shifted}")).ok();
            let collector = Nfcapd::start(&net, &dir, &format!("{number}{inner}"));
            net.run(format!("{IN_ORDER} netdyno probe {shifted} --export 127.0.0.1:9995 {inner} --json"))
                .ok();
            let (_, records) = collector.records();
            let (flow, counted) = records.first_key_value().expect("a record");
            assert_eq!((flow, counted[0][0], records.len()), (&wanted, 3, 1));
            // The bytes of IP of what is metered: 40 are those of the inside.
            assert_eq!(counted[0][1] == 120, !inner.is_empty(), "{counted:?}");
        }
    }
}

/// Records of a collector's CSV file, as those of nfdump.
pub fn written(file: &str) -> Records {
    let text = std::fs::read_to_string(file).expect("the file");
    let mut lines = text.lines();
    let columns: Vec<&str> = lines.next().expect("columns").split(',').collect();
    let mut records = Records::new();
    for line in lines {
        let values: BTreeMap<&str, &str> = columns.iter().copied().zip(line.split(',')).collect();
        let count = |name: &str| values[name].parse::<u64>().unwrap_or_else(|_| panic!("{name}: {line}"));
        // Times are empty where they are not known, and of captures that begin in 1970.
        let ms = |name: &str| if values[name].is_empty() { 0 } else { count(name) / 1_000_000 };
        let counted = [
            count("packets"),
            count("bytes"),
            count("tcp_flags") & 0x3f,
            ms("time_flow_start_ns"),
            ms("time_flow_end_ns"),
        ];
        // As nfdump has them: addresses and ports; of ICMPv6 there is none here.
        let of = ["src_addr", "dst_addr", "src_port", "dst_port", "proto", "ip_tos"].map(|name| values[name]);
        records.entry(of.join(" ")).or_default().push(counted);
    }
    records
}

/// A collector of ours on a port of the net, once it listens.
pub fn collector(net: &Net, arguments: &str) -> crate::common::Running {
    let mut running = net.start(format!("netdyno collect --listen 127.0.0.1:9995 --json {arguments}"));
    running.until_it_says("Ctrl-C ends");
    running
}

/// The same over TCP.
pub fn collector_of_connections(net: &Net, arguments: &str) -> crate::common::Running {
    let mut running = net.start(format!("netdyno collect --listen tcp://127.0.0.1:9995 --json {arguments}"));
    running.until_it_says("Ctrl-C ends");
    running
}

pub fn ended(running: crate::common::Running) -> Value {
    running.signal("INT");
    running.wait().ok().json()
}

#[test]
fn what_the_probe_exports_is_collected_exactly() {
    let (net, dir) = (Net::new(), folder());
    let capture = many_kinds(&dir);
    for format in ["ipfix", "9", "5"] {
        let truth = truth(&capture, format != "5");
        let (csv, lines) = (path(&dir, &format!("{format}.csv")), path(&dir, &format!("{format}.jsonl")));
        let running = collector(&net, &format!("--write {csv} --write {lines} --threads 2"));
        let whole = "--idle-timeout 1h --active-timeout 1h --end-timeout 1h";
        let line = format!(
            "{IN_ORDER} netdyno probe {capture} --export 127.0.0.1:9995 --format {format} {whole} --json"
        );
        net.run(line).with(i32::from(format == "5"));
        let report = ended(running);
        assert_eq!(written(&csv), truth, "{format}");
        let collection = &report["result"]["collection"];
        let of = |name: &str| number(&collection[name]);
        assert_eq!(of("records"), truth.len() as u64, "{report}");
        assert_eq!(of("written_records"), truth.len() as u64, "{report}");
        for none in [
            "missing_records",
            "missing_messages",
            "malformed_messages",
            "unread_sets",
            "dropped_messages",
            "duplicate_messages",
        ] {
            assert_eq!(of(none), 0, "{none}: {report}");
        }
        let packets: u64 = truth.values().flatten().map(|of| of[0]).sum();
        assert_eq!(of("packets"), packets, "{report}");
        // Each line is JSON with the same columns, and without what they say already.
        let text = std::fs::read_to_string(&lines).expect("lines");
        assert_eq!(text.lines().count(), truth.len());
        for line in text.lines() {
            let value: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            assert!(value["packets"].is_u64() && value["src_addr"].is_string(), "{line}");
            let v6 = value["src_addr"].as_str().is_some_and(|address| address.contains(':'));
            assert_eq!(value["etype"], if v6 { 0x86dd } else { 0x0800 }, "{line}");
            assert!(value["ipVersion"].is_null(), "{line}");
        }
    }
}

#[test]
fn what_softflowd_exports_is_collected() {
    let (net, dir) = (Net::new(), folder());
    let capture = path(&dir, "small.pcap");
    run(format!("netdyno synth --profile smallflows -w {capture}")).ok();
    for version in ["5", "9", "10"] {
        let csv = path(&dir, &format!("softflowd-{version}.csv"));
        let running = collector(&net, &format!("--write {csv}"));
        // It removes this file when it ends.
        let pid = path(&dir, "softflowd.pid");
        // -A milli and -a: its times are otherwise those of the day on which it runs.
        let times = if version == "5" { "" } else { "-a -A milli" };
        let whole =
            "-t maxlife=1h -t general=1h -t tcp=1h -t udp=1h -t tcp.fin=1h -t tcp.rst=1h -t expint=1h";
        net.run(format!(
            "softflowd -r {capture} -n 127.0.0.1:9995 -v {version} -c none -p {pid} -m 100000 {whole} {times}"
        ));
        let report = ended(running);
        let collection = &report["result"]["collection"];
        let of = |name: &str| number(&collection[name]);
        // It counts 1,209 flows of 14,243 packets, in both directions.
        assert_eq!((of("records"), of("packets")), (1209, 14_243), "{version}: {report}");
        assert_eq!((of("missing_records"), of("missing_messages")), (0, 0), "{version}: {report}");
        assert_eq!((of("malformed_messages"), of("unread_sets")), (0, 0), "{version}: {report}");
        assert_eq!(written(&csv).values().map(Vec::len).sum::<usize>(), 1209, "{version}");
    }
}

/// Reads goflow2's messages, by the numbers of its fields.
const MESSAGES: &str = r#"
import ipaddress, sys
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.internal.decoder import _DecodeVarint32
F = descriptor_pb2.FieldDescriptorProto
file = descriptor_pb2.FileDescriptorProto(name="flow.proto", package="t", syntax="proto3")
message = file.message_type.add(name="FlowMessage")
def add(kind, **numbers):
    for name, number in numbers.items():
        message.field.add(name=name, number=number, type=kind, label=F.LABEL_OPTIONAL)
add(F.TYPE_UINT32, type=1, src_as=14, dst_as=15, src_net=16, dst_net=17, in_if=18, out_if=19, proto=20, src_port=21, dst_port=22,
    ip_tos=23, tcp_flags=26, etype=30, icmp_type=31, icmp_code=32, src_vlan=33, dst_vlan=34, observation_domain_id=70)
add(F.TYPE_UINT64, sampling_rate=3, bytes=9, packets=10, src_mac=27, dst_mac=28, time_received_ns=110, time_flow_start_ns=111,
    time_flow_end_ns=112)
add(F.TYPE_BYTES, src_addr=6, dst_addr=7, sampler_address=11, next_hop=12)
pool = descriptor_pool.DescriptorPool()
pool.Add(file)
Flow = message_factory.MessageFactory(pool).GetPrototype(pool.FindMessageTypeByName("t.FlowMessage"))
data, at = open(sys.argv[1], "rb").read(), 0
address = lambda raw: str(ipaddress.ip_address(raw))
while at < len(data):
    length, at = _DecodeVarint32(data, at)
    f = Flow.FromString(data[at:at + length])
    assert not f.UnknownFields() if hasattr(f, "UnknownFields") else True
    at += length
    assert f.type == 4 and address(f.sampler_address) == "127.0.0.1" and f.observation_domain_id == 9, f
    assert f.etype == (0x0800 if len(f.src_addr) == 4 else 0x86dd) and f.time_received_ns > 0 and f.sampling_rate == 0, f
    if f.proto == 1:
        assert f.icmp_type * 256 + f.icmp_code == f.dst_port, f
    print(address(f.src_addr), address(f.dst_addr), f.src_port, f.dst_port, f.proto, f.ip_tos,
        f.packets, f.bytes, f.tcp_flags & 0x3f, f.time_flow_start_ns // 1000000, f.time_flow_end_ns // 1000000)
"#;

#[test]
fn records_are_written_as_goflow2_has_them() {
    let (net, dir) = (Net::new(), folder());
    let capture = many_kinds(&dir);
    let (csv, messages, script) = (path(&dir, "flows.csv"), path(&dir, "flows.pb"), path(&dir, "read.py"));
    let running = collector(&net, &format!("--write {csv} --write {messages}"));
    let whole = "--idle-timeout 1h --active-timeout 1h --end-timeout 1h";
    net.run(format!("{IN_ORDER} netdyno probe {capture} --export 127.0.0.1:9995 --domain 9 {whole} --json"))
        .ok();
    ended(running);
    std::fs::write(&script, MESSAGES).expect("a script");
    let read = run(format!("/usr/bin/python3 {script} {messages}")).ok();
    let mut records = Records::new();
    for line in read.stdout.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let (key, counts) = words.split_at(6);
        let counts: Vec<u64> = counts.iter().map(|word| word.parse().expect("a number")).collect();
        records.entry(key.join(" ")).or_default().push(counts.try_into().expect("five numbers"));
    }
    let truth = written(&csv);
    assert!(truth.len() > 400, "{}", truth.len());
    assert_eq!(records, truth);
}

#[test]
fn records_go_to_standard_output_and_the_summary_does_not() {
    let (net, dir) = (Net::new(), folder());
    let capture = many_kinds(&dir);
    let mut running = net.start("netdyno collect --listen 127.0.0.1:9995 --write -.jsonl");
    running.until_it_says("Ctrl-C ends");
    net.run(format!("netdyno probe {capture} --export 127.0.0.1:9995 -q")).ok();
    running.signal("INT");
    let ended = running.wait().ok();
    assert!(ended.stderr.contains("Done as asked"), "{}", ended.stderr);
    assert!(ended.stdout.lines().count() > 400, "{}", ended.stdout);
    for line in ended.stdout.lines() {
        let row: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
        assert_eq!(row["sampler_address"], "127.0.0.1");
    }
    for also in ["--json", "--json-lines", "--csv"] {
        let said = run(format!("netdyno collect --write -.pb {also}")).with(2).stderr;
        assert!(said.contains("standard output cannot take both"), "{said}");
    }
    run("netdyno collect --write -.pb --rotate 5s").with(2);
}

#[test]
fn command_lines_of_nprobe_meter_the_same() {
    let (net, dir) = (Net::new(), folder());
    let capture = many_kinds(&dir);
    let truth = truth(&capture, true);
    let csv = path(&dir, "nprobe.csv");
    let running = collector(&net, &format!("--write {csv}"));
    // Article B's template, and what its flows need beside it.
    const TEMPLATE: &str = "%IPV4_SRC_ADDR %IPV4_DST_ADDR %IPV4_NEXT_HOP %INPUT_SNMP %OUTPUT_SNMP %IN_PKTS %IN_BYTES \
        %FIRST_SWITCHED %LAST_SWITCHED %L4_SRC_PORT %L4_DST_PORT %TCP_FLAGS %PROTOCOL %SRC_TOS %SRC_AS %DST_AS %IPV4_SRC_MASK \
        %IPV4_DST_MASK";
    let mut nprobe = net.command(format!(
        "{IN_ORDER} netdyno nprobe -b1 -i {capture} -n 127.0.0.1:9995 -t 3600 --idle-timeout 3600 -u 7 -Q 9 -U 300"
    ));
    nprobe.args(["-T", TEMPLATE]);
    let ran = crate::common::start(nprobe).wait().ok();
    let report = ended(running);
    let collection = &report["result"]["collection"];
    let packets: u64 = truth.values().flatten().map(|of| of[0]).sum();
    assert_eq!(number(&collection["packets"]), packets, "{report}");
    // TCP's flows end with FIN and RST here, too, but none goes on behind its end.
    assert_eq!(number(&collection["records"]), truth.len() as u64, "{report}");
    let text = std::fs::read_to_string(&csv).expect("the file");
    assert!(text.lines().skip(1).all(|line| line.contains(",7,9,")), "{text}");
    let ours: BTreeMap<_, _> = written(&csv)
        .into_iter()
        .map(|(flow, of)| (flow, of.iter().map(|of| [of[0], of[1], of[2]]).collect::<Vec<_>>()))
        .collect();
    let theirs: BTreeMap<_, _> = truth
        .into_iter()
        .map(|(flow, of)| (flow, of.iter().map(|of| [of[0], of[1], of[2]]).collect::<Vec<_>>()))
        .collect();
    assert_eq!(ours, theirs);
    for said in [format!("Processed packets: {packets} "), "pkts rcvd/0 pkts dropped".to_owned()] {
        assert!(ran.stdout.contains(&said), "{said}: {}", ran.stdout);
    }
    for (arguments, mend) in [
        ("-i lo -f ip", "-f is not supported"),
        ("-i lo -G", "systemd"),
        ("-i lo -V 8", "5, 9 and 10"),
        ("-i lo -S @10", "nothing is scaled up"),
        ("-i lo -n tcp://127.0.0.1:9", "-V 10"),
        ("-i lo -n zmq://127.0.0.1:9", "UDP or TCP"),
        ("-i lo -T %NO_SUCH_FIELD", "NO_SUCH_FIELD"),
        ("-i no-such-interface", "no-such-interface"),
    ] {
        net.run(format!("netdyno nprobe {arguments}")).refused(&[mend]);
    }
}

#[test]
fn command_lines_of_softflowd_meter_what_it_meters() {
    let (net, dir) = (Net::new(), folder());
    let capture = path(&dir, "small.pcap");
    run(format!("netdyno synth --profile smallflows -w {capture}")).ok();
    let whole = "-t maxlife=1h -t general=1h -t tcp=1h -t udp=1h -t tcp.fin=1h -t tcp.rst=1h -t expint=1h";
    for version in ["5", "9", "10"] {
        let times = if version == "5" { "" } else { "-a -A milli" };
        let by = |program: &str| {
            let (csv, pid) = (path(&dir, &format!("{version}.csv")), path(&dir, "softflowd.pid"));
            let running = collector(&net, &format!("--write {csv}"));
            net.run(format!(
                "{IN_ORDER} {program} -r {capture} -n 127.0.0.1:9995 -v {version} -c none -p {pid} -m 100000 {whole} {times}"
            ))
            .ok();
            let report = ended(running);
            assert_eq!(number(&report["result"]["collection"]["missing_records"]), 0, "{report}");
            // Its bytes count what Ethernet pads.
            let flows = written(&csv);
            let packets: BTreeMap<_, Vec<u64>> =
                flows.into_iter().map(|(flow, of)| (flow, of.iter().map(|of| of[0]).collect())).collect();
            assert!(!std::path::Path::new(&pid).exists(), "{program} left {pid}");
            packets
        };
        let (theirs, ours) = (by("softflowd"), by("netdyno softflowd"));
        assert_eq!(ours.values().flatten().count(), 1209, "{version}");
        assert_eq!(ours, theirs, "{version}");
    }
    for (arguments, mend) in [
        ("-i lo -b", "-b is not supported"),
        ("-i lo -v 1", "5, 9 and 10"),
        ("-i lo -T ip", "-T is not supported"),
        ("-i lo -t udp=soon", "NAME=TIME"),
        ("-i lo -c /tmp/x", "-c none"),
        ("-i lo port 80", "a filter is not supported"),
    ] {
        net.run(format!("netdyno softflowd {arguments}")).refused(&[mend]);
    }
    // A signal ends it, and its records are sent.
    let csv = path(&dir, "live.csv");
    let running = collector(&net, &format!("--write {csv}"));
    let mut probe = net.start("netdyno softflowd -i 5:rx0 -n 127.0.0.1:9995 -v 9 -d");
    probe.until_it_says("Ctrl-C ends");
    net.run("netdyno send ipv4(src=10.0.0.0/28)/udp(dport=9) --on tx0 --count 32 --rate 1kpps --no-sign -q --json")
        .json();
    std::thread::sleep(Duration::from_millis(500));
    probe.signal("TERM");
    probe.wait().ok();
    let report = ended(running);
    let collection = &report["result"]["collection"];
    assert_eq!((number(&collection["records"]), number(&collection["packets"])), (16, 32), "{report}");
}

#[test]
fn what_cannot_be_collected_is_refused() {
    let net = Net::new();
    let dir = folder();
    net.run("netdyno collect --listen nowhere").refused(&["--listen nowhere", "ADDR:PORT"]);
    net.run("netdyno collect --listen 192.0.2.77:2055").refused(&["--listen 192.0.2.77:2055"]);
    let odd = path(&dir, "records.txt");
    net.run(format!("netdyno collect --write {odd}")).refused(&["--write", ".csv, .jsonl, .pb or .parquet"]);
    net.run("netdyno collect --write /no/such/folder/x.csv").refused(&["--write /no/such/folder/x.csv"]);
    assert!(!std::path::Path::new(&odd).exists());
    // A file of jobs writes nothing that was not allowed.
    let (job, csv) = (path(&dir, "job.yaml"), path(&dir, "x.csv"));
    let text = format!(
        "schema: netdyno.job/1\njobs:\n- kind: collect\n  listen: [\"127.0.0.1:9995\"]\n  write: [{csv}]\n  duration: 1s\n"
    );
    std::fs::write(&job, text).expect("a file");
    net.run(format!("netdyno run {job}")).refused(&["it would write", "--write"]);
    net.run(format!("netdyno run {job} --write {csv}")).ok();
    assert!(std::path::Path::new(&csv).exists());
}

#[test]
fn hostile_messages_are_counted_and_harm_nothing() {
    let (net, dir) = (Net::new(), folder());
    let running = collector(&net, "");
    let script = path(&dir, "hostile.py");
    std::fs::write(
        &script,
        r#"
import socket, struct, random
random.seed(3)
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
def send(b): s.sendto(b, ("127.0.0.1", 9995))
def ipfix(sets, seq=0, domain=1): return struct.pack("!HHIII", 10, 16 + len(sets), 1700000000, seq, domain) + sets
for n in range(3000):
    send(ipfix(struct.pack("!HHHHHH", 2, 12, 256 + n % 60000, 1, 1, 0)))
    send(ipfix(struct.pack("!HHHHHH", 2, 12, 256 + n, 1, 2, 4), 0, n))
    send(ipfix(struct.pack("!HH", 256, 65535)))
    send(bytes(random.randrange(256) for _ in range(random.randrange(200))))
    send(struct.pack("!H", random.choice([0, 5, 9, 10])) + bytes(random.randrange(256) for _ in range(60)))
"#,
    )
    .expect("a script");
    net.run(format!("/usr/bin/python3 {script}")).ok();
    // One that is sound still counts.
    let capture = many_kinds(&dir);
    net.run(format!("{IN_ORDER} netdyno probe {capture} --export 127.0.0.1:9995 --json")).ok();
    running.signal("INT");
    let (ran, weight) = running.wait_and_weigh();
    let report = ran.ok().json();
    let collection = &report["result"]["collection"];
    assert!(number(&collection["malformed_messages"]) > 3000, "{report}");
    assert!(number(&collection["records"]) > 500, "{report}");
    assert!(weight < 200 << 20, "{weight}");
    assert!(report["warnings"].to_string().contains("could not be read"), "{report}");
}
