//! `netdyno serve`: Open Traffic Generator's own client, curl, a browser, and those who mean harm.

use crate::common::{Net, Ran, Running, number, tshark_rows};
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::process::Stdio;
use std::time::Duration;

/// What drives it: netdyno's own tests do not know the model.
const SNAPPI: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/readers/bin/python3");
const DRIVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/serve_otg.py");

/// A server on the sending host of a net, whose loopback is up.
struct Served {
    net: Net,
    server: Running,
    at: String,
}

impl Served {
    fn new(words: &str) -> Served {
        let net = Net::new();
        net.run("ip link set lo up").ok();
        Served::on(net, words)
    }

    fn on(net: Net, words: &str) -> Served {
        let mut server = net.start(format!("netdyno serve --listen 127.0.0.1:0 {words}"));
        server.until_it_says("serving at ");
        let said = server.said();
        let at = said.split("serving at ").nth(1).and_then(|rest| rest.split_whitespace().next());
        let at = at.expect("where").trim_end_matches('/').to_owned();
        Served { net, server, at }
    }

    /// Answer and status of a request.
    #[track_caller]
    fn ask(&self, method: &str, path: &str, body: Option<&str>) -> (u16, String) {
        let mut words = format!("curl -sS -m 60 -X {method} -w %{{http_code}} {}{path}", self.at);
        let mut curl;
        if body.is_some() {
            words += " -H Content-Type:application/json --data-binary @-";
        }
        curl = self.net.command(words);
        let mut curl = curl.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("curl");
        curl.stdin.take().expect("piped").write_all(body.unwrap_or_default().as_bytes()).expect("written");
        let answer = curl.wait_with_output().expect("an answer");
        assert!(answer.status.success(), "{method} {path}: {answer:?}");
        let text = String::from_utf8(answer.stdout).expect("text");
        let (text, status) = text.split_at(text.len() - 3);
        (status.parse().expect("a status"), text.to_owned())
    }

    #[track_caller]
    fn json(&self, method: &str, path: &str, body: Option<&str>, status: u16) -> Value {
        let (told, text) = self.ask(method, path, body);
        assert_eq!(told, status, "{method} {path}: {text}");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{method} {path}: {error}: {text}"))
    }

    /// snappi does a case.
    #[track_caller]
    fn driven(&self, case: &str, ports: [&str; 2], more: &str) -> Ran {
        let [first, second] = ports;
        let driver = format!("{SNAPPI} {DRIVER} {} {first} {second} {case} {more}", self.at);
        self.net.run(driver).ok()
    }

    /// It ends in an orderly way.
    fn ends(self) -> Net {
        self.server.signal("TERM");
        self.server.wait().ok();
        self.net
    }
}

const PORTS: [&str; 2] = ["tx0", "rx0"];

#[test]
fn snappi_counts_what_it_asked_for_both_ways_and_captures_it_with_the_fcs() {
    let served = Served::new("");
    let file = served.net.file("captured.pcap");
    served.driven("counted", PORTS, &file);
    // The frames, by tshark: sizes with the FCS, which is right, and the fields that the model's patterns make.
    let rows =
        tshark_rows(&file, &["frame.len", "ip.src", "ip.dst", "udp.srcport", "udp.dstport", "eth.src"]);
    let mine: Vec<_> = rows.iter().filter(|row| row[4] == "1").collect();
    assert_eq!(mine.len(), 1500);
    for (n, row) in mine.iter().enumerate() {
        let source = format!("10.0.0.{}", 1 + 2 * (n % 5));
        let target = format!("10.1.0.{}", 1 + n % 2);
        let port: u16 = row[3].parse().expect("a port");
        assert_eq!(row[..3], ["128".to_owned(), source, target], "frame {n}");
        assert!((1000..=2000).contains(&port) && row[5] == "02:00:00:00:00:0a", "{row:?}");
        assert_eq!(row[3], mine[n % 10][3], "ten drawn ports come again");
    }
    let judged = served.net.run(format!(
        "tshark -r {file} -o eth.fcs:Always -o eth.check_fcs:TRUE -Y udp.dstport==1&&eth.fcs.status==1 -T fields -e eth.fcs.status"
    ));
    assert_eq!(judged.ok().stdout.lines().filter(|line| *line == "1").count(), 1500, "each FCS is good");
    served.ends();
}

#[test]
fn each_flow_is_started_paused_resumed_and_stopped_by_itself() {
    let served = Served::new("");
    served.driven("steered", PORTS, "");
    served.ends();
}

/// What is in VLAN 5 of r1 goes to t5 without its tag, and back: this kernel may have no VLAN devices.
const TAGS: &str = r#"
import select, socket, struct
ALL, PACKET, AUXDATA, IGNORE_OUTGOING, RCVBUFFORCE = 3, 263, 8, 23, 33
def port(name):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL))
    s.bind((name, ALL))
    s.setsockopt(PACKET, AUXDATA, 1)
    s.setsockopt(PACKET, IGNORE_OUTGOING, 1)
    s.setsockopt(socket.SOL_SOCKET, RCVBUFFORCE, 16 << 20)
    return s
tagged, plain = port("r1"), port("t5")
print("passing on", flush=True)
while True:
    for s in select.select([tagged, plain], [], [])[0]:
        data, told, *_ = s.recvmsg(65536, 256)
        if s is plain:
            tagged.send(data[:12] + bytes([0x81, 0, 0, 5]) + data[12:])
            continue
        for level, kind, of in told:
            status, *_, control, _ = struct.unpack("=IIIHHHH", of[:20])
            if (level, kind) == (PACKET, AUXDATA) and status & 16 and control & 0xfff == 5:
                plain.send(data)
"#;

/// The receiving host is a Linux router: r1 and r2, behind the ports p1 and p2, and v5, which is in VLAN 5 behind p1 for as long as what is
/// returned runs.
fn router(net: &Net) -> Running {
    let there = crate::common::handle(&net.lab.receiver.namespace);
    for number in [1, 2] {
        net.run(format!("ip link add p{number} type veth peer name r{number} netns {there}")).ok();
        net.run(format!("ip link set p{number} addrgenmode none up")).ok();
    }
    for line in [
        "ip link add v5 type veth peer name t5",
        "ip link set r1 up",
        "ip link set r2 up",
        "ip link set t5 addrgenmode none up",
        "ip link set v5 addrgenmode none up",
        "ip address add 10.0.1.254/24 dev r1",
        "ip address add 10.0.2.254/24 dev r2",
        "ip address add 10.0.3.254/24 dev v5",
        "ip address add 2001:db8:1::fe/64 dev r1 nodad",
        "ip address add 2001:db8:2::fe/64 dev r2 nodad",
        "sysctl -qw net.ipv4.ip_forward=1",
        "sysctl -qw net.ipv6.conf.all.forwarding=1",
    ] {
        net.run_there(line).ok();
    }
    let script = net.file("tags.py");
    std::fs::write(&script, TAGS).expect("written");
    let mut tags = net.start_there(format!("/usr/bin/python3 {script}"));
    tags.until_it_prints("passing on");
    tags
}

/// The Ethernet address of an interface of the router.
fn mac_there(net: &Net, name: &str) -> String {
    let told = net.run_there(format!("ip -j link show {name}")).ok().json();
    told[0]["address"].as_str().expect("an address").to_owned()
}

const BEHIND: [&str; 2] = ["p1", "p2"];

#[test]
fn devices_send_through_a_router_that_finds_them_by_itself() {
    let served = Served::new("");
    let net = &served.net;
    let _tags = router(net);
    let told = served.driven("devices", BEHIND, "").json();
    let known = |row: usize| told[row][2].as_str().unwrap_or_default().to_owned();
    for (row, interface) in [(0, "r1"), (1, "r2"), (2, "v5"), (3, "r1"), (4, "r2")] {
        assert_eq!(known(row), mac_there(net, interface), "{told}");
    }
    // The kernel asked, and was answered: by IPv4 and IPv6, with a tag and without.
    let neighbours = net.run_there("ip -j neigh show").ok().json();
    for (address, mac) in [
        ("10.0.1.1", "02:00:00:00:01:01"),
        ("10.0.2.1", "02:00:00:00:02:01"),
        ("10.0.3.1", "02:00:00:00:03:01"),
        ("2001:db8:2::1", "02:00:00:00:02:01"),
    ] {
        let found = neighbours.as_array().into_iter().flatten().find(|row| row["dst"] == address);
        assert_eq!(found.map(|row| &row["lladdr"]), Some(&mac.into()), "{neighbours}");
    }
    served.ends();
}

#[test]
fn a_gateway_that_does_not_answer_keeps_a_flow_from_being_sent() {
    let served = Served::new("");
    let net = &served.net;
    let _tags = router(net);
    let capture = net.file("asked.pcap");
    let mut tcpdump = net
        .start_there(format!("tcpdump -Z root -n -U -Q in -i r1 -w {capture} ether src 02:00:00:00:04:01"));
    tcpdump.until_it_says("listening on");
    served.driven("silent", BEHIND, &mac_there(net, "r1"));
    crate::common::eventually("all frames", || crate::common::frames(&capture).len() >= 500);
    tcpdump.signal("INT");
    tcpdump.wait().ok();
    // While it did not answer it was asked, and nothing else left.
    let rows = tshark_rows(&capture, &["eth.dst", "arp.dst.proto_ipv4", "udp.length"]);
    let asked = rows.iter().take_while(|row| row[1] == "10.0.1.99").count();
    assert!(asked >= 3, "{asked}: {rows:?}");
    assert_eq!(rows.iter().filter(|row| row[0] == mac_there(net, "r1") && row[1].is_empty()).count(), 500);
    served.ends();
}

#[test]
fn devices_answer_a_real_host_while_the_protocols_run_and_leave_nothing_when_killed() {
    let served = Served::new("");
    let net = &served.net;
    let _tags = router(net);
    served.driven("answering", BEHIND, "");
    let ping = |words: &str| net.run_there(format!("ping -n -c 3 -i 0.2 -W 2 {words}"));
    for words in ["10.0.1.1", "-s 1472 10.0.2.1", "10.0.3.1", "2001:db8:1::1", "-s 1400 2001:db8:2::1"] {
        let said = ping(words).ok().stdout;
        assert!(said.contains(" 0% packet loss"), "{said}");
    }
    // Nobody stands for other addresses, nor for one in another VLAN.
    ping("10.0.1.2").with(1);
    let flush = |device: &str| net.run_there(format!("ip neigh flush dev {device}")).ok();
    let promiscuous = || {
        let told = net.run("ip -j -d link show p1").ok().json();
        number(&told[0]["promiscuity"])
    };
    assert_eq!(promiscuous(), 1);
    served.driven("gone", BEHIND, "");
    flush("r1");
    ping("10.0.1.1").with(1);
    assert_eq!(promiscuous(), 0);
    served.driven("answering", BEHIND, "");
    ping("10.0.1.1").ok();
    served.server.signal("KILL");
    let _ = served.server.wait();
    assert_eq!(number(&served.net.run("ip -j -d link show p1").ok().json()[0]["promiscuity"]), 0);
    served.net.run_there("ip neigh flush dev r1").ok();
    served.net.run_there("ping -n -c 1 -W 1 10.0.1.1").with(1);
}

#[test]
fn links_are_set_where_that_is_granted_and_put_back_at_the_end() {
    let served = Served::new("--yes-disrupt tx0");
    served.driven("links", PORTS, "");
    let is_up =
        |net: &Net| net.run("ip -j link show tx0").ok().json()[0]["flags"].to_string().contains("\"UP\"");
    assert!(!is_up(&served.net), "the driver left it down");
    let net = served.ends();
    assert!(is_up(&net), "the server found it up");
}

#[test]
fn what_a_device_drops_is_lost_of_the_flow_whose_it_was() {
    let served = Served::new("");
    let net = &served.net;
    // Two ports, joined by a bridge that drops every tenth frame of one flow.
    for line in [
        "ip link add br0 type bridge",
        "ip link add p1 type veth peer name d1",
        "ip link add p2 type veth peer name d2",
        "ip link set d1 master br0",
        "ip link set d2 master br0",
    ] {
        net.run(line).ok();
    }
    for name in ["br0", "p1", "p2", "d1", "d2"] {
        net.run(format!("ip link set {name} addrgenmode none up")).ok();
    }
    let rules = net.file("rules.nft");
    std::fs::write(
        &rules,
        "table bridge t {\nchain c {\ntype filter hook forward priority 0;\nudp dport 2 numgen inc mod 10 0 counter drop\n}\n}\n",
    )
    .expect("written");
    net.run(format!("nft -f {rules}")).ok();
    let told = served.driven("lost", ["p1", "p2"], "").json();
    let listed = net.run("nft -j list ruleset").ok().json();
    let dropped = listed
        .to_string()
        .split("\"packets\":")
        .nth(1)
        .and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u64>().ok());
    assert_eq!(dropped, Some(100), "nftables' own count");
    for (flow, arrived, loss) in [("f1", 1000, 0.0), ("f2", 900, 10.0), ("f3", 1000, 0.0)] {
        let row = &told[flow];
        assert_eq!(
            (number(&row[0]), number(&row[1]), row[2].as_f64()),
            (1000, arrived, Some(loss)),
            "{flow}: {told}"
        );
    }
    served.ends();
}

#[test]
fn hundreds_of_flows_are_counted_each() {
    let served = Served::new("");
    served.driven("many", PORTS, "");
    served.ends();
}

#[test]
fn what_the_model_asks_and_netdyno_cannot_is_refused_by_its_path() {
    let served = Served::new("");
    served.driven("wrong", PORTS, "");
    // Floats are plain, uint64 are text, and no body is empty.
    let (status, text) = served.ask("POST", "/config", Some("{}"));
    assert_eq!((status, text.as_str()), (200, "{}"));
    assert_eq!(
        served.json("POST", "/monitor/states", Some("{}"), 200)["ipv4_neighbors"],
        serde_json::json!([])
    );
    assert_eq!(served.json("POST", "/control/action", Some("{}"), 400)["kind"], "validation");
    assert_eq!(served.json("POST", "/config", Some("{"), 400)["kind"], "validation");
    served.ends();
}

/// Prometheus' own parser.
const PARSE: &str = "
import sys
from prometheus_client.parser import text_string_to_metric_families as parse
samples = [s for family in parse(open(sys.argv[1]).read()) for s in family.samples]
print(int(next(s.value for s in samples if s.name == 'netdyno_tx_frames_total' and s.labels['run'] == 'r1')))
";

/// What a job is started with.
const JOB: &str = r#"{"job":{"kind":"send","what":"ipv4(src=10.0.0.0/16)/udp(dport=9)","links":[{"on":"tx0","measure":"rx0"}],"rate":"2kpps","engine":"packet"}}"#;

#[test]
fn a_job_is_posted_followed_steered_and_its_report_read() {
    let served = Served::new("");
    let dry = JOB.replace("2kpps", "2");
    let refused = served.json("POST", "/api/v1/runs?dry=1", Some(&dry), 400);
    assert_eq!(refused["errors"][0]["path"], "rate", "{refused}");
    let run = served.json("POST", "/api/v1/runs", Some(JOB), 201);
    assert_eq!(run["run"], "r1", "{run}");
    // Somebody else has the interface.
    let held = served.json("POST", "/api/v1/runs", Some(JOB), 409);
    assert!(held["detail"].as_str().is_some_and(|text| text.contains("held by run r1")), "{held}");
    let events = served.net.start(format!("curl -sSN {}/api/v1/runs/r1/events", served.at));
    let frames = |of: &Value| of["snapshot"]["tx"]["frames"].as_u64().unwrap_or(0);
    crate::common::eventually("it sends", || frames(&served.json("GET", "/api/v1/runs/r1", None, 200)) > 500);
    served.json("POST", "/api/v1/runs/r1/pause", Some("{}"), 200);
    crate::common::eventually("it is paused", || {
        served.json("GET", "/api/v1/runs/r1", None, 200)["state"] == "paused"
    });
    served.json("POST", "/api/v1/runs/r1/resume", Some("{}"), 200);
    let rate = served.json("PATCH", "/api/v1/runs/r1", Some(r#"{"rate":"4kpps"}"#), 200);
    assert_eq!(rate["percent"], 200);
    served.json("DELETE", "/api/v1/runs/r1", None, 409);
    served.json("POST", "/api/v1/runs/r1/stop", Some("{}"), 200);
    let report = served.json("GET", "/api/v1/runs/r1/report.json?wait=30s", None, 200);
    let (tx, rx) = (number(&report["result"]["tx"]["frames"]), number(&report["result"]["rx"]["frames"]));
    assert!(tx > 500 && rx >= tx, "{tx} {rx}");
    let (_, page) = served.ask("GET", "/api/v1/runs/r1/report.html", None);
    assert!(page.contains("<html") && page.contains("</html>"));
    let (_, metrics) = served.ask("GET", "/metrics", None);
    let file = served.net.file("metrics");
    std::fs::write(&file, &metrics).expect("written");
    let script = served.net.file("parse.py");
    std::fs::write(&script, PARSE).expect("written");
    let parsed = served.net.run(format!("/usr/bin/python3 {script} {file}")).ok().stdout;
    assert_eq!(parsed.trim(), tx.to_string(), "{metrics}");
    let (_, csv) = served.ask("GET", "/api/v1/runs/r1/report.csv", None);
    assert!(csv.lines().count() > 1, "{csv}");
    // The events end by themselves, and the last says what became of it.
    let told = events.wait().ok().stdout;
    let names: Vec<&str> = told.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert_eq!((names.first(), names.last()), (Some(&"hello"), Some(&"end")), "{names:?}");
    assert!(names.iter().filter(|name| **name == "moment").count() >= 3, "{names:?}");
    for data in told.lines().filter_map(|line| line.strip_prefix("data: ")) {
        serde_json::from_str::<Value>(data).expect("each event is JSON");
    }
    let runs = served.json("GET", "/api/v1/runs", None, 200);
    assert_eq!(runs["runs"].as_array().map(Vec::len), Some(1), "{runs}");
    assert_eq!(served.ask("DELETE", "/api/v1/runs/r1", None).0, 204);
    served.json("GET", "/api/v1/runs/r1", None, 404);
    served.ends();
}

#[test]
fn each_route_of_the_openapi_document_is_there_and_the_settings_are_those_of_all_kinds() {
    let served = Served::new("");
    let document = served.json("GET", "/openapi.json", None, 200);
    let mut seen = 0;
    for (path, operations) in document["paths"].as_object().expect("paths") {
        for method in operations.as_object().expect("operations").keys() {
            // Of a run that is not there each says so by itself, and not that there is no such route.
            let path = path.replace("{run}", "r999").replace("{name}", "job.json");
            if path.ends_with("/events") && !path.contains("r999") {
                continue;
            }
            let body = matches!(method.as_str(), "post" | "patch").then_some("{}");
            let (status, text) = served.ask(&method.to_uppercase(), &path, body);
            let problem = text.contains("about:blank");
            assert!(status < 400 || (problem && status != 405), "{method} {path}: {status} {text}");
            seen += 1;
        }
    }
    assert!(seen > 15, "{seen}");
    let settings = served.json("GET", "/api/v1/settings", None, 200);
    let kinds: Vec<&str> = settings["kinds"]
        .as_array()
        .expect("kinds")
        .iter()
        .filter_map(|kind| kind["kind"].as_str())
        .collect();
    assert_eq!(kinds, spec::Job::KINDS);
    for kind in settings["kinds"].as_array().expect("kinds") {
        for setting in kind["settings"].as_array().expect("settings") {
            assert!(setting["path"].is_string() && setting["text"].is_string(), "{setting}");
        }
    }
    served.ends();
}

#[test]
fn strangers_are_refused_and_a_token_is_needed_where_one_is_set() {
    let net = Net::new();
    net.run("ip link set lo up").ok();
    net.run("netdyno serve --listen 0.0.0.0:0").refused(&["--token-file", "127.0.0.1"]);
    let token = net.file("token");
    std::fs::write(&token, "correct-horse-battery\n").expect("written");
    net.run(format!("netdyno serve --listen 127.0.0.1:0 --token-file {token}")).refused(&["chmod 600"]);
    net.run(format!("chmod 600 {token}")).ok();
    let served = Served::on(net, &format!("--token-file {token}"));
    let at = served.at.clone();
    let status = |words: &str| {
        let ran = served.net.run(format!("curl -s -o /dev/null -w %{{http_code}} {words}")).ok();
        ran.stdout.trim().parse::<u16>().expect("a status")
    };
    let user = at.replace("http://", "http://any:correct-horse-battery@");
    for (words, wanted) in [
        (format!("{at}/config"), 401),
        (format!("{user}/config"), 200),
        (format!("{at}/"), 200),
        (format!("-H Host:evil.example {at}/"), 421),
        (format!("-H Origin:http://evil.example {user}/config"), 403),
        (format!("-H Content-Type:text/plain -d x {user}/config"), 415),
        (format!("-H Content-Type:application/json -d {{}} {at}/api/v1/runs"), 401),
        (format!("-X OPTIONS -H Origin:http://evil.example {user}/config"), 403),
    ] {
        assert_eq!(status(&words), wanted, "{words}");
    }
    let port = at.rsplit(':').next().expect("a port").to_owned();
    served
        .net
        .run(format!("netdyno serve --listen 127.0.0.1:{port}"))
        .refused(&["--listen", "another program"]);
    served.ends();
}

#[test]
fn whoever_floods_it_or_speaks_nonsense_harms_nobody_else() {
    let served = Served::new("");
    served.json("POST", "/api/v1/runs", Some(JOB), 201);
    let script = served.net.file("flood.py");
    std::fs::write(&script, FLOOD).expect("written");
    let port = served.at.rsplit(':').next().expect("a port").to_owned();
    let told = served.net.run(format!("/usr/bin/python3 {script} {port}")).ok().stdout;
    assert_eq!(told.trim(), "all answered");
    // The run has gone on, and its frames were sent in time and are all there.
    served.json("POST", "/api/v1/runs/r1/stop", Some("{}"), 200);
    let report = served.json("GET", "/api/v1/runs/r1/report.json?wait=30s", None, 200);
    assert_eq!(number(&report["result"]["loss"]["frames"]), 0, "{}", report["result"]["verdict"]);
    served.ends();
}

/// Bodies of all sizes and none, connections that say nothing, and a thousand questions at once.
const FLOOD: &str = r#"
import json, random, socket, sys, threading
port = int(sys.argv[1])
def connect():
    s = socket.create_connection(("127.0.0.1", port)); s.settimeout(60); return s
def ask(data):
    s = connect()
    try:
        s.sendall(data)
        answer = b""
        while b"\r\n" not in answer:
            more = s.recv(65536)
            if not more: break
            answer += more
        return answer.split(b"\r\n")[0]
    except (ConnectionError, BrokenPipeError):
        return b""
    finally:
        s.close()
def post(path, body, headers=""):
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
    return ask(head.encode() + body)
held = [connect() for _ in range(40)]
half = connect(); half.sendall(b"POST /config HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Le")
random.seed(7)
for _ in range(200):
    ask(bytes(random.randrange(256) for _ in range(random.randrange(1, 400))))
good = json.dumps({"ports": [{"name": "a", "location": "tx0"}], "flows": [{"name": "f", "tx_rx": {"port": {"tx_name": "a"}}, "packet": [{"choice": "ipv4", "ipv4": {"src": {"value": "1.1.1.1"}}}]}]}).encode()
for path in ("/config", "/control/state", "/monitor/metrics", "/monitor/states", "/monitor/capture", "/api/v1/runs"):
    for _ in range(60):
        body = bytearray(good)
        for _ in range(random.randrange(6)):
            body[random.randrange(len(body))] = random.choice(b'{}[]",:0e-"\\x')
        line = post(path, bytes(body))
        assert line.startswith(b"HTTP/1.1 ") and not line.startswith(b"HTTP/1.1 500"), (path, line, bytes(body))
    for body in (b"[" * 100000, b'{"a":' * 50000, b"null", b"1e999", b'"', b""):
        line = post(path, body)
        assert line.startswith(b"HTTP/1.1 ") and not line.startswith(b"HTTP/1.1 500"), (path, line, body[:20])
for deep in range(118, 128):
    # What is read here and, within a request, is deeper than the agent reads.
    line = post("/api/v1/runs", b'{"job":' + b'{"a":' * deep + b"1" + b"}" * (deep + 1))
    assert line.startswith(b"HTTP/1.1 4"), (deep, line)
assert post("/config", b"x" * (100 << 20)) in (b"HTTP/1.1 413 Payload Too Large", b""), "a body of 100 MB"
answers = []
def question():
    answers.append(ask(b"GET /config HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"))
threads = [threading.Thread(target=question) for _ in range(1000)]
for t in threads: t.start()
for t in threads: t.join()
assert len(answers) == 1000 and all(a == b"HTTP/1.1 200 OK" for a in answers), [a for a in answers if a != b"HTTP/1.1 200 OK"][:3]
print("all answered")
"#;

#[test]
fn a_server_that_is_killed_leaves_nothing() {
    let served = Served::new("");
    served.json("POST", "/api/v1/runs", Some(JOB), 201);
    crate::common::eventually("it sends", || {
        served.json("GET", "/api/v1/runs/r1", None, 200)["snapshot"]["tx"]["frames"].as_u64().unwrap_or(0)
            > 100
    });
    served.server.signal("KILL");
    let _ = served.server.wait();
    let links = served.net.run("ip -d link show").ok().stdout;
    let there = served.net.run_there("ip -d link show").ok().stdout;
    assert!(!links.contains("xdp") && !there.contains("xdp"), "{links}{there}");
    let again = Served::on(served.net, "");
    again.json("POST", "/api/v1/runs", Some(JOB), 201);
    again.ends();
}

#[test]
fn it_listens_at_a_socket_in_the_file_system_too() {
    let net = Net::new();
    let socket = net.file("serve.sock");
    let mut server = net.start(format!("netdyno serve --listen unix:{socket}"));
    server.until_it_says("serving at ");
    let mut stream = std::os::unix::net::UnixStream::connect(&socket).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("set");
    write!(stream, "GET /api/v1/info HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").expect("written");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("netdyno.serve/1"), "{answer}");
    server.signal("TERM");
    server.wait().ok();
    assert!(!std::path::Path::new(&socket).exists());
}

#[test]
fn the_page_is_driven_by_chromium_and_its_figures_are_those_of_the_report() {
    let served = Served::new("");
    let driver = concat!(env!("CARGO_MANIFEST_DIR"), "/../serve/tests/page.py");
    let program = crate::agents::program();
    served.net.run(format!("/usr/bin/python3 {driver} {} --netdyno {program}", served.at)).ok();
    served.ends();
}

#[test]
fn a_run_with_watch_serves_its_own_page_and_is_steered_from_it() {
    let net = Net::new();
    net.run("ip link set lo up").ok();
    let mut run =
        net.start("netdyno send ipv4/udp --on tx0 --measure rx0 --rate 2kpps --engine packet --watch --json");
    run.until_it_says("watch it at ");
    let said = run.said();
    let at =
        said.split("watch it at ").nth(1).and_then(|rest| rest.split_whitespace().next()).expect("where");
    let ask = |words: &str, path: &str| {
        net.run(format!("curl -sS -m 30 {words} {}{path}", at.trim_end_matches('/'))).ok().stdout
    };
    let json =
        |text: String| serde_json::from_str::<Value>(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(json(ask("", "/api/v1/info"))["watch"], "r1");
    assert!(ask("", "/").contains("<html"));
    crate::common::eventually("it sends", || {
        json(ask("", "/api/v1/runs/r1"))["snapshot"]["tx"]["frames"].as_u64().unwrap_or(0) > 200
    });
    let post = "-X POST -H Content-Type:application/json -d {}";
    ask(post, "/api/v1/runs/r1/pause");
    crate::common::eventually("it is paused", || json(ask("", "/api/v1/runs/r1"))["state"] == "paused");
    ask(post, "/api/v1/runs/r1/resume");
    let other = ask("-H Content-Type:application/json -d {\"job\":{\"kind\":\"send\"}}", "/api/v1/runs");
    assert!(other.contains("starts no others"), "{other}");
    let events = net.start(format!("curl -sSN {at}api/v1/runs/r1/events"));
    std::thread::sleep(Duration::from_millis(300));
    ask(post, "/api/v1/runs/r1/stop");
    let report = run.wait().ok().json();
    // Who looked on was told the end, and the same.
    let told = events.wait().ok().stdout;
    let end = told.split("event: end\ndata: ").nth(1).and_then(|rest| rest.lines().next()).expect("an end");
    let end: Value = serde_json::from_str(end).expect("JSON");
    assert_eq!(end["run"]["verdict"], report["result"]["verdict"], "{end}");
    net.run("netdyno send ipv4/udp --on tx0 --rate 1kpps --watch=0.0.0.0:0")
        .refused(&["--watch", "netdyno serve"]);
    net.run("netdyno send ipv4/udp --on tx0 --rate 1kpps --watch=nowhere")
        .refused(&["--watch", "127.0.0.1:8443"]);
}
