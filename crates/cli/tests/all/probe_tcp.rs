//! IPFIX over TCP: what `netdyno probe` exports, what `netdyno collect` takes, and what becomes of either without the other.

use crate::common::{Net, eventually, folder, number, path, reasons, run};
use crate::probe::{
    IN_ORDER, collector, collector_of_connections as tcp_collector, ended, many_kinds, metering, truth,
    written,
};
use serde_json::Value;

const WHOLE: &str = "--idle-timeout 1h --active-timeout 1h --end-timeout 1h";

fn collection(report: &Value) -> impl Fn(&str) -> u64 {
    let of = report["result"]["collection"].clone();
    move |name| number(&of[name])
}

#[test]
fn what_the_probe_exports_by_tcp_is_collected_exactly() {
    let (net, dir) = (Net::new(), folder());
    let capture = many_kinds(&dir);
    let truth = truth(&capture, true);
    let csv = path(&dir, "tcp.csv");
    let running = tcp_collector(&net, &format!("--write {csv} --threads 2"));
    // Templates are due at each message; over a connection they go once.
    let line = format!(
        "netdyno probe {capture} --export tcp://127.0.0.1:9995 {WHOLE} --template-refresh 1ms --json"
    );
    let report = net.run(line).ok().json();
    let collected = ended(running);
    assert_eq!(written(&csv), truth);
    let of = collection(&collected);
    assert_eq!((of("records"), of("connections")), (truth.len() as u64, 1), "{collected}");
    // IPv4's and IPv6's, and three of options.
    assert_eq!(of("templates"), 5, "{collected}");
    for none in ["missing_records", "malformed_messages", "unread_sets", "restarts"] {
        assert_eq!(of(none), 0, "{none}: {collected}");
    }
    assert_eq!(collected["result"]["collection"]["by_exporter"][0]["from"], "tcp://127.0.0.1", "{collected}");
    assert_eq!(number(&metering(&report)["sent_records"]), truth.len() as u64, "{report}");
    let to = &metering(&report)["collectors"][0];
    assert_eq!(to["to"], "tcp://127.0.0.1:9995");
    assert_eq!((number(&to["connections"]), number(&to["refused_messages"])), (1, 0), "{report}");
}

#[test]
fn both_transports_at_once_carry_the_same_records() {
    let (net, dir) = (Net::new(), folder());
    let capture = many_kinds(&dir);
    let truth = truth(&capture, true);
    let by = |name: &str| path(&dir, &format!("{name}.csv"));
    let tcp = tcp_collector(&net, &format!("--write {}", by("tcp")));
    let udp = collector(&net, &format!("--write {}", by("udp")));
    let line = format!(
        "{IN_ORDER} netdyno probe {capture} --export tcp://127.0.0.1:9995 --export udp://127.0.0.1:9995 {WHOLE} --json"
    );
    let report = net.run(line).ok().json();
    ended(tcp);
    ended(udp);
    assert_eq!(written(&by("tcp")), truth);
    assert_eq!(written(&by("udp")), truth);
    assert_eq!(number(&metering(&report)["sent_records"]), truth.len() as u64, "{report}");
}

#[test]
fn tshark_dissects_what_goes_over_a_connection() {
    let (net, dir) = (Net::new(), folder());
    let capture = many_kinds(&dir);
    for options in ["", "--biflow"] {
        let messages = path(&dir, "messages.pcap");
        let mut sniffer = net.start(format!("tcpdump -Z root -n -U -i lo -w {messages} tcp and port 9995"));
        sniffer.until_it_says("listening on");
        let running = tcp_collector(&net, "");
        let line = format!(
            "netdyno probe {capture} --export tcp://127.0.0.1:9995 {WHOLE} --template-refresh 1ms {options} --json"
        );
        net.run(line).ok();
        ended(running);
        let end = || {
            let read = run(format!("tshark -r {messages} -Y tcp.flags.fin==1 -T fields -e tcp.srcport"));
            // Both ends, though the writing of the file may lag behind.
            read.stdout.lines().count() >= 2
        };
        eventually("the end of the connection was seen", end);
        sniffer.signal("INT");
        sniffer.wait().ok();
        // Its port for IPFIX over TCP.
        let shown = run(format!("tshark -r {messages} -d tcp.port==9995,cflow -V -Y cflow")).ok().stdout;
        let lower = shown.to_lowercase();
        for complaint in [
            "malformed",
            "expert info (error",
            "expert info (warning",
            "[no template",
            "unexpected",
            "nonsense",
        ] {
            assert!(!lower.contains(complaint), "{complaint} in\n{shown}");
        }
        assert!(shown.contains("Version: 10"), "{shown}");
        let templates = shown.matches("FlowSet Id: Data Template (V10 [IPFIX]) (2)").count();
        assert_eq!(templates, 1, "{shown}");
    }
}

#[test]
fn what_waits_for_a_collector_goes_when_it_is_there() {
    let (net, dir) = (Net::new(), folder());
    let csv = path(&dir, "late.csv");
    let mut probe =
        net.start("netdyno probe --on rx0 --export tcp://127.0.0.1:9995 --idle-timeout 100ms --json");
    probe.until_it_says("Ctrl-C ends");
    let send = |net: &Net, source: &str| {
        let what = format!("ipv4(src={source},dst=198.18.0.2)/udp(sport=7,dport=9)");
        net.run(format!("netdyno send {what} --on tx0 --count 256 --rate 20kpps --engine packet --json"))
            .json();
    };
    send(&net, "10.0.0.0/24");
    std::thread::sleep(std::time::Duration::from_millis(500));
    let first = tcp_collector(&net, &format!("--write {csv} --count 256"));
    // It ends as soon as it has what had waited.
    let collected = first.wait().ok().json();
    assert_eq!(collection(&collected)("records"), 256, "{collected}");
    assert_eq!(written(&csv).len(), 256);
    // The next one gets what comes then, and templates of its own.
    send(&net, "10.0.1.0/24");
    let second = tcp_collector(&net, "--count 256").wait().ok().json();
    assert_eq!((collection(&second)("records"), collection(&second)("unread_sets")), (256, 0), "{second}");
    probe.signal("INT");
    // Nobody is there for what it says of itself at the end.
    let report = probe.wait().ok().json();
    let to = &metering(&report)["collectors"][0];
    assert_eq!(number(&to["connections"]), 2, "{report}");
    assert_eq!(number(&metering(&report)["sent_records"]), 512, "{report}");
    assert!(report["warnings"].to_string().contains("was made 2 times"), "{report}");
}

#[test]
fn what_nobody_takes_is_counted_and_a_collector_is_told() {
    let (net, dir) = (Net::new(), folder());
    let capture = many_kinds(&dir);
    let report =
        net.run(format!("netdyno probe {capture} --export tcp://127.0.0.1:9 {WHOLE} --json")).with(1).json();
    assert!(reasons(&report)[0].contains("ended and were not sent"), "{report}");
    assert!(reasons(&report)[1].contains("to tcp://127.0.0.1:9 were lost"), "{report}");
    let unsent = number(&metering(&report)["unsent_records"]);
    assert_eq!((unsent > 380, number(&metering(&report)["sent_records"])), (true, 0), "{report}");

    // One that takes nothing more, and is killed: what was on its way is lost, and the next one is told so.
    let stopped = tcp_collector(&net, "");
    let limits = "--idle-timeout 100ms --template-refresh 1s --max-flows 4000000";
    let mut probe =
        net.start(format!("netdyno probe --on rx0 --export tcp://127.0.0.1:9995 {limits} --json"));
    probe.until_it_says("Ctrl-C ends");
    let listening = || net.run("ss -Htn state established").stdout.contains("127.0.0.1:9995");
    eventually("it is connected", listening);
    stopped.signal("STOP");
    let what = "ipv4(src=10.0.0.0/14,dst=198.18.0.2)/udp(sport=7,dport=9)";
    net.run(format!("netdyno send {what} --on tx0 --count 200000 --rate 100kpps --engine packet --json"))
        .json();
    std::thread::sleep(std::time::Duration::from_millis(500));
    stopped.signal("KILL");
    let next = tcp_collector(&net, "");
    std::thread::sleep(std::time::Duration::from_secs(4));
    probe.signal("INT");
    let report = probe.wait().json();
    let collected = ended(next);
    let (m, of) = (metering(&report), collection(&collected));
    let ended_records = number(&m["idle_records"]) + number(&m["forced_records"]);
    // Of what had gone into the stopped one's socket nobody knows more than that it got there.
    assert_eq!(number(&m["sent_records"]) + number(&m["unsent_records"]), ended_records, "{report}");
    assert!(number(&m["collectors"][0]["lost_messages"]) > 0, "{report}");
    assert!(of("records") > 0 && of("records") <= number(&m["sent_records"]), "{collected}");
    // Of its totals those count that came since it was told them first: most was lost before.
    assert!(of("unsent_records") <= number(&m["unsent_records"]), "{collected} {report}");
    assert!(number(&m["unsent_records"]) > 0, "{report}");
    drop(dir);
}

/// Connections of all kinds, well-behaved or not.
const CALLERS: &str = r#"
import socket, struct, random, sys, time
random.seed(5)
at = ("127.0.0.1", 9995)
def ipfix(sets, seq=0, domain=1): return struct.pack("!HHIII", 10, 16 + len(sets), 1700000000, seq, domain) + sets
template = ipfix(struct.pack("!HHHHHHHHHH", 2, 20, 300, 3, 8, 4, 1, 8, 2, 8))
def record(seq): return ipfix(struct.pack("!HH4sQQ", 300, 24, bytes([10, 0, 0, 1]), 1000, 10), seq)
def connect():
    s = socket.create_connection(at)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s
def closed(s):
    s.settimeout(60)
    try: return s.recv(10) == b""
    except ConnectionError: return True
open_ones = []
# Many at once, each record in pieces.
for n in range(300):
    s = connect(); open_ones.append(s)
    whole = template + record(0) + record(1)
    cut = n % len(whole)
    s.sendall(whole[:cut])
for n, s in enumerate(open_ones):
    whole = template + record(0) + record(1)
    s.sendall(whole[n % len(whole):])
print("sound", len(open_ones))
# What is no message ends the connection that it comes over, and no other.
bad = [b"GET / HTTP/1.1\r\n\r\n", struct.pack("!HH", 9, 100), struct.pack("!HHIII", 10, 3, 0, 0, 0),
       ipfix(struct.pack("!HH", 300, 65535)), ipfix(struct.pack("!HH", 300, 3)), ipfix(struct.pack("!HHHHHH", 2, 12, 256, 1, 1, 0))]
for one in bad:
    s = connect(); s.sendall(template + record(0) + one)
    assert closed(s), one
print("bad", len(bad))
# One that ends within a message.
s = connect(); s.sendall(template + record(0)[:20]); s.close()
# Those that were there still count.
for s in open_ones: s.sendall(record(2))
# Long messages whose ends do not come: their room is bounded.
held, refused = [], 0
for n in range(1200):
    s = connect(); s.settimeout(60)
    try: s.sendall(struct.pack("!HHIII", 10, 65535, 0, 0, 0) + bytes(65000))
    except ConnectionError: refused += 1
    held.append(s)
time.sleep(1)
for s in open_ones: s.close()
for s in held: s.close()
"#;

#[test]
fn many_connections_are_served_and_hostile_ones_closed() {
    let (net, dir) = (Net::new(), folder());
    let script = path(&dir, "callers.py");
    std::fs::write(&script, CALLERS).expect("a script");
    let running = tcp_collector(&net, "");
    net.run(format!("prlimit --nofile=4096 /usr/bin/python3 {script}")).ok();
    running.signal("INT");
    let (ran, weight) = running.wait_and_weigh();
    let collected = ran.ok().json();
    let of = collection(&collected);
    // Three of each sound one, and one of each that was closed.
    assert_eq!((of("records"), of("packets"), of("octets")), (906, 9060, 906_000), "{collected}");
    assert_eq!(of("connections"), 300 + 6 + 1 + 1200, "{collected}");
    // 64 MiB hold 1,032 beginnings of 65,016 bytes.
    let closed = of("closed_connections");
    assert!((6 + 100..=6 + 200).contains(&closed), "{collected}");
    assert_eq!(of("missing_records"), 0, "{collected}");
    // Those that were cut off within a message are among them.
    assert!(of("malformed_messages") > 7 && of("malformed_messages") <= 7 + 1200, "{collected}");
    assert_eq!(of("exporters"), 1, "{collected}");
    assert!(collected["warnings"].to_string().contains("were closed here"), "{collected}");
    assert!(weight < 250 << 20, "{weight}");
}

#[test]
fn what_tcp_does_not_carry_is_refused() {
    let (net, dir) = (Net::new(), folder());
    let capture = path(&dir, "none.pcap");
    crate::common::write_pcap(&capture, 1, &[]);
    for format in ["5", "9"] {
        net.run(format!("netdyno probe {capture} --export tcp://127.0.0.1:9 --format {format}"))
            .refused(&["--export", "only IPFIX goes over TCP"]);
    }
    net.run(format!("netdyno probe {capture} --export tcp://nowhere")).refused(&["--export", "HOST:PORT"]);
    net.run("netdyno collect --listen tcp://nowhere").refused(&["--listen tcp://nowhere", "tcp://ADDR:PORT"]);
    net.run("netdyno collect --listen tcp://192.0.2.77:2055").refused(&["--listen tcp://192.0.2.77:2055"]);
}
