//! `netdyno clone`: clients, the server that they talk to, and the target, each in a network namespace of its own; an oracle says what
//! each server saw.

mod apart;
mod bounds;
pub mod ends;
mod faults;
pub mod oracle;
mod peers;
mod remote;
mod ring;
pub mod steered;
mod whole;

use crate::common::{
    Folder, Ran, Running, eventually, folder, handle, inside, number, path, reasons, run, start,
};
use ::lab::Namespace;
use oracle::{Load, Seen, Server};
use serde_json::Value;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Clients 10.77.1.2 -- 10.77.1.1 the server 10.77.2.1 -- 10.77.2.2 the target.
pub struct Three {
    pub clients: Namespace,
    pub online: Namespace,
    pub target: Namespace,
}

impl Three {
    pub fn new() -> Three {
        let [clients, online, target] = [(); 3]
            .map(|()| Namespace::new().unwrap_or_else(|error| panic!("these tests need root: {error}")));
        let three = Three { clients, online, target };
        // Each short connection keeps its port for a minute.
        for namespace in [&three.clients, &three.online] {
            set(namespace, "ipv4/ip_local_port_range", "1100 65000");
        }
        // Of measurements: these cores (a mask) do what arrives at the target, not who sends it there (Linux 6.3).
        if let Ok(cores) = std::env::var("NETDYNO_CLONE_RPS") {
            set(&three.target, "core/rps_default_mask", &cores);
        }
        for (near, here, far, there) in
            [(&three.clients, "c0", &three.online, "o0"), (&three.online, "o1", &three.target, "t0")]
        {
            three.ip(near, &format!("link add {here} type veth peer name {there} netns {}", handle(far)));
        }
        for (namespace, interface, address) in [
            (&three.clients, "c0", "10.77.1.2/24"),
            (&three.online, "o0", "10.77.1.1/24"),
            (&three.online, "o1", "10.77.2.1/24"),
            (&three.target, "t0", "10.77.2.2/24"),
        ] {
            three.ip(namespace, &format!("address add {address} dev {interface}"));
            let six = address.replace("10.77.", "fd77:").replacen('.', "::", 1).replace("/24", "/64");
            three.ip(namespace, &format!("address add {six} dev {interface} nodad"));
            three.ip(namespace, &format!("link set {interface} up"));
            three.ip(namespace, "link set lo up");
        }
        three.ip(&three.target, "route add 10.99.0.0/16 via 10.77.2.1");
        three
    }

    fn ip(&self, namespace: &Namespace, words: &str) {
        start(inside(namespace, &format!("ip {words}"))).wait().ok();
    }

    /// Servers of the oracle online and at the target.
    pub fn servers(&self, answer: usize) -> [Server; 2] {
        [Server::start(&self.online, "[::]:80", answer), Server::start(&self.target, "[::]:80", answer)]
    }

    /// A clone on the server's host that has begun.
    fn clone(&self, words: &str) -> Running {
        let line = format!("netdyno clone --from o0:80 --to 10.77.2.2:80 --json {words}");
        let mut running = start(inside(&self.online, &line));
        running.until_it_says("Ctrl-C ends");
        running
    }

    /// Frames that a tcpdump sees of somebody else's than the clients' own connections with the server.
    fn watch(&self, dir: &Folder) -> (Running, String) {
        let file = path(dir, "clients.pcap");
        let line = format!(
            "tcpdump -Z root -n -U --immediate-mode -i c0 -w {file} net 10.77.2.0/24 or net 10.99.0.0/16"
        );
        let mut tcpdump = start(inside(&self.clients, &line));
        tcpdump.until_it_says("listening on");
        (tcpdump, file)
    }
}

/// Sets what a namespace has of its own below /proc/sys/net.
fn set(namespace: &Namespace, name: &str, value: &str) {
    let written = namespace.run_in(|| std::fs::write(format!("/proc/sys/net/{name}"), value));
    written.expect("a namespace").unwrap_or_else(|error| panic!("{name}: {error}"));
}

/// Waits until all threads of a process, and of this test's servers, have slept for a while. One that has something left to do runs,
/// or waits for a processor.
fn until_idle(running: &Running) {
    let asleep = || {
        let tasks =
            std::fs::read_dir(format!("/proc/{}/task", running.pid())).into_iter().flatten().flatten();
        let runs = |task: std::fs::DirEntry| oracle::is_running(&task.path().join("stat").to_string_lossy());
        !tasks.into_iter().any(runs) && oracle::servers_sleep()
    };
    let mut looks = 0;
    eventually("it has nothing to do", || {
        looks = if asleep() { looks + 1 } else { 0 };
        looks > 10
    });
}

/// Ends a clone in an orderly way: its result.
fn ended(clone: Running) -> (Ran, Value) {
    // What was said last is on its way.
    until_idle(&clone);
    clone.signal("INT");
    let ran = clone.wait();
    let report = ran.json();
    (ran, report)
}

fn cloned(report: &Value) -> &Value {
    &report["result"]["cloned"]
}

/// The target saw each request so many times, in order, with the right bytes, and the result says the same.
#[track_caller]
fn assert_copied(report: &Value, online: &Seen, target: &Seen, copies: u64) {
    assert!(reasons(report).is_empty(), "{:?}\n{report}", reasons(report));
    let (counts, wanted) = (target.counts(), online.counts());
    assert!(!wanted.is_empty() && wanted.values().all(|count| *count == 1));
    assert_eq!(counts.len(), wanted.len());
    assert!(wanted.keys().all(|id| counts.get(id) == Some(&copies)), "{:?}", counts.values().max());
    assert_eq!((online.bad, target.bad, target.disordered()), (0, 0, 0));
    assert_eq!(target.connections.len() as u64, copies * online.connections.len() as u64);
    let c = cloned(report);
    let sessions = online.connections.len() as u64;
    assert_eq!(number(&c["sessions"]["copied"]), sessions);
    assert_eq!(number(&c["connections"]["connected"]), copies * sessions);
    assert_eq!((number(&c["sent"]["sent"]), number(&c["dropped_frames"])), (number(&c["sent"]["due"]), 0));
    let requests = wanted.len() as u64;
    let a = &c["answers"];
    assert_eq!((number(&a["compared"]), number(&a["same"])), (requests, requests), "{a}");
}

pub const LOAD: Load = Load { connections: 40, requests: 2000, per_second: 4000, body: 0, short: false };

#[test]
fn every_request_is_copied_once_in_order_and_the_clients_see_nothing_of_it() {
    let (three, dir) = (Three::new(), folder());
    let [online, target] = three.servers(128);
    let (tcpdump, seen) = three.watch(&dir);
    let clone = three.clone("");
    oracle::run(&three.clients, "10.77.1.1:80", LOAD);
    let (_, report) = ended(clone);
    tcpdump.signal("INT");
    tcpdump.wait().ok();
    assert_copied(&report, &online.seen(), &target.seen(), 1);
    assert_eq!(crate::common::frames(&seen).len(), 0, "frames of the copy on the clients' link");
    assert!(number(&cloned(&report)["answers"]["delay_ns"]["p50"]) > 0);
}

#[test]
fn copies_from_a_prefix_keep_ports_and_leave_no_route() {
    let three = Three::new();
    let [online, target] = three.servers(128);
    let clone = three.clone("--source-prefix 10.99.0.0/16 --copies 4 --threads 2");
    oracle::run(&three.clients, "10.77.1.1:80", LOAD);
    let (_, report) = ended(clone);
    let (online, target) = (online.seen(), target.seen());
    assert_copied(&report, &online, &target, 4);
    for (client, ids) in &target.connections {
        assert!(client.ip().to_string().contains("10.99."), "{client}");
        let original = online.connections.iter().find(|(_, of)| of[0] == ids[0]).expect("its original").0;
        assert_eq!(client.port(), original.port());
    }
    let routes = start(inside(&three.online, "ip route show table local")).wait().ok();
    assert!(!routes.stdout.contains("10.99"), "{}", routes.stdout);
}

#[test]
fn short_connections_and_large_bodies_are_copied_whole() {
    for load in [
        Load { connections: 8, requests: 600, per_second: 1500, body: 0, short: true },
        Load { connections: 6, requests: 120, per_second: 300, body: 60_000, short: false },
    ] {
        let three = Three::new();
        let [online, target] = three.servers(2000);
        let clone = three.clone("");
        oracle::run(&three.clients, "10.77.1.1:80", load);
        let (_, report) = ended(clone);
        assert_copied(&report, &online.seen(), &target.seen(), 1);
    }
}

#[test]
fn one_connection_is_copied_as_fast_as_it_speaks_at_any_pace() {
    for pace in ["wallclock", "causal"] {
        let three = Three::new();
        let [online, target] = three.servers(128);
        let clone = three.clone(&format!("--pace {pace}"));
        let load = Load { connections: 1, requests: 2000, per_second: 8000, ..LOAD };
        oracle::run(&three.clients, "10.77.1.1:80", load);
        let (_, report) = ended(clone);
        assert_copied(&report, &online.seen(), &target.seen(), 1);
        assert_eq!(number(&cloned(&report)["connections"]["impatient"]), 0);
    }
}

#[test]
fn ipv6_is_copied_to_ipv4() {
    let three = Three::new();
    let [online, target] = three.servers(128);
    let clone = three.clone("");
    oracle::run(&three.clients, "[fd77:1::1]:80", Load { requests: 400, ..LOAD });
    let (_, report) = ended(clone);
    assert_copied(&report, &online.seen(), &target.seen(), 1);
}

#[test]
fn a_capture_says_the_same_at_its_own_time_and_faster() {
    let (three, dir) = (Three::new(), folder());
    let file = path(&dir, "online.pcap");
    let online = Server::start(&three.online, "[::]:80", 128);
    let line = format!("tcpdump -Z root -n -U --immediate-mode -B 16384 -s 0 -i o0 -w {file} tcp port 80");
    let mut tcpdump = start(inside(&three.online, &line));
    tcpdump.until_it_says("listening on");
    oracle::run(&three.clients, "10.77.1.1:80", Load { requests: 800, ..LOAD });
    std::thread::sleep(Duration::from_millis(300));
    tcpdump.signal("INT");
    tcpdump.wait().ok();
    let seen = online.seen();
    for words in ["", "--speed 10x --threads 2"] {
        let target = Server::start(&three.target, "[::]:80", 128);
        let line = format!("netdyno clone {file} --server 10.77.1.1:80 --to 10.77.2.2:80 --json {words}");
        let report = start(inside(&three.online, &line)).wait().ok().json();
        assert_copied(&report, &seen, &target.seen(), 1);
        let online = &cloned(&report)["answers"]["online_first_byte_ns"];
        assert_eq!(online.is_null(), !words.is_empty(), "a time that was scaled is not the server's");
    }
}

#[test]
fn a_share_of_the_sessions_is_copied_whole_and_the_seed_says_which() {
    let three = Three::new();
    let [online, target] = three.servers(128);
    let clone = three.clone("--sample 50% --seed 7");
    oracle::run(&three.clients, "10.77.1.1:80", LOAD);
    let (_, report) = ended(clone);
    let (online, target) = (online.seen(), target.seen());
    let sessions = &cloned(&report)["sessions"];
    assert_eq!(number(&sessions["copied"]) + number(&sessions["sampled_out"]), 40);
    assert_eq!(number(&sessions["copied"]), target.connections.len() as u64);
    assert!((5..36).contains(&target.connections.len()), "{}", target.connections.len());
    for (_, ids) in &target.connections {
        assert!(online.connections.iter().any(|(_, of)| of == ids), "a session in part");
    }
}

#[test]
fn a_target_that_answers_otherwise_is_told_by_its_difference() {
    let three = Three::new();
    let online = Server::start(&three.online, "[::]:80", 128);
    let target = Server::start(&three.target, "[::]:80", 130);
    let clone = three.clone("");
    oracle::run(&three.clients, "10.77.1.1:80", Load { requests: 200, ..LOAD });
    let (_, report) = ended(clone);
    assert_eq!((online.seen().bad, target.seen().bad), (0, 0));
    let answers = &cloned(&report)["answers"];
    assert_eq!((number(&answers["sizes_differ"]), number(&answers["same"])), (200, 0));
    let first = &answers["differences"][0];
    assert_eq!((number(&first["count"]), first["kind"].as_str()), (200, Some("size")));
    assert_eq!(first["target"].as_str(), Some("HTTP/1.1 200 OK, 130 bytes"));
    assert!(first["example"].as_str().is_some_and(|example| example.starts_with("GET /00")), "{first}");
}

#[test]
fn nginx_and_redis_are_compared_by_what_they_answer() {
    let (three, dir) = (Three::new(), folder());
    let nginx = |namespace: &Namespace, name: &str, text: &str| {
        let folder = path(&dir, name);
        std::fs::create_dir_all(format!("{folder}/www")).expect("a folder");
        std::fs::write(format!("{folder}/www/page"), text).expect("a file");
        let config = format!(
            "user root; daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log; events {{}} http {{ \
             access_log off; client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder}; \
             uwsgi_temp_path {folder}; scgi_temp_path {folder}; server {{ listen 80; root {folder}/www; }} }}"
        );
        std::fs::write(format!("{folder}/conf"), config).expect("a file");
        let running = start(inside(namespace, &format!("nginx -c {folder}/conf -p {folder}")));
        wait_for(namespace, 80);
        running
    };
    let _both = [
        nginx(&three.online, "online", "a page that is nearly the same"),
        nginx(&three.target, "target", "a page that is not quite the same"),
    ];
    let clone = three.clone("");
    for page in ["page", "page", "nothing"] {
        start(inside(&three.clients, &format!("curl -s -S http://10.77.1.1/{page}"))).wait().ok();
    }
    start(inside(&three.clients, "curl -s -S -I http://10.77.1.1/page http://10.77.1.1/page")).wait().ok();
    let (_, report) = ended(clone);
    let answers = &cloned(&report)["answers"];
    // Two pages differ, and their heads are as long: both sizes have two digits, in hexadecimal as well.
    assert_eq!((number(&answers["compared"]), number(&answers["sizes_differ"])), (5, 2), "{report}");
    assert!(reasons(&report).is_empty(), "{:?}", reasons(&report));

    let redis = |namespace: &Namespace| {
        let words = "--port 6379 --protected-mode no --save '' --appendonly no --daemonize no";
        let running =
            start(inside(namespace, &format!("redis-server {words} --dir {}", dir.path().display())));
        wait_for(namespace, 6379);
        running
    };
    let _both = [redis(&three.online), redis(&three.target)];
    start(inside(&three.target, "redis-cli set other 1")).wait().ok();
    let line = "netdyno clone --from o0:6379 --to 10.77.2.2:6379 --json";
    let mut clone = start(inside(&three.online, line));
    clone.until_it_says("Ctrl-C ends");
    for words in [
        "set key value",
        "get key",
        "incr number",
        "get other",
        "lpush list a b c",
        "lrange list 0 -1",
        "nonsense",
    ] {
        start(inside(&three.clients, &format!("redis-cli -h 10.77.1.1 {words}"))).wait();
    }
    let (_, report) = ended(clone);
    let answers = &cloned(&report)["answers"];
    assert_eq!((number(&answers["compared"]), number(&answers["lines_differ"])), (7, 1), "{report}");
    assert_eq!(answers["differences"][0]["online"].as_str(), Some("nil"));
    let list = start(inside(&three.target, "redis-cli lrange list 0 -1")).wait().ok();
    assert_eq!(list.stdout, "c\nb\na\n");
}

/// Waits until somebody listens.
fn wait_for(namespace: &Namespace, port: u16) {
    eventually("somebody listens", || {
        let listening = start(inside(namespace, "ss -Hltn")).wait().ok();
        listening.stdout.contains(&format!(":{port} "))
    });
}

#[test]
fn what_would_do_harm_is_refused_before_it_begins() {
    let three = Three::new();
    let _servers = three.servers(128);
    let refused = |line: &str, words: &[&str]| {
        start(inside(&three.online, &format!("netdyno clone {line}"))).wait().refused(words);
    };
    refused("--from o0:80 --to 8.8.8.8:80", &["public address", "--allow-public-target"]);
    refused("--from o0:80 --to 10.77.2.1:80", &["copies would be copied again"]);
    refused("--from o0:10.77.1.1:80 --to 10.77.1.1:80", &["is the server that is copied"]);
    // Its other addresses, and another name.
    for to in ["127.0.0.1", "10.77.2.1", "localhost", "[::1]", "[fd77:2::1]"] {
        let line = format!("--from o0:10.77.1.1:80 --to {to}:80");
        refused(
            &line,
            &["another address of the server that is copied, 10.77.1.1:80", "would go to production"],
        );
        refused(&format!("--from o0:80 --to {to}:80"), &["copies would be copied again"]);
    }
    refused("--from o0:80 --to 10.77.2.2:81", &["10.77.2.2:81", "refused", "nothing was begun"]);
    refused("--from o0:80 --to 10.77.2.2:80 --source-prefix 10.98.0.0/16", &["10.98.", "ip route add"]);
    refused("--from o0:80 --to 10.77.2.2:80 --source-prefix 10.77.2.0/24", &["lies in"]);
    refused(
        "--from o0:80 --to 10.77.2.2:80 --source-prefix 10.77.1.0/24",
        &["--source-prefix", "a network that this host is in, by 10.77.1.1"],
    );
    refused(
        "--from o0:80 --to 10.77.2.2:80 --source-prefix 128.0.0.0/1",
        &["--source-prefix", "12 bits at least"],
    );
    three.ip(&three.online, "route add 10.97.7.0/24 via 10.77.2.2");
    let covered = ["--source-prefix", "this host has a route to 10.97.7.0/24"];
    refused("--from o0:80 --to 10.77.2.2:80 --source-prefix 10.97.0.0/16", &covered);
    let routes = start(inside(&three.online, "ip route show table local")).wait().ok();
    assert!(!routes.stdout.contains("10.98"), "{}", routes.stdout);
}

#[test]
fn a_capture_of_the_wrong_place_or_direction_is_told() {
    let three = Three::new();
    let [online, target] = three.servers(128);
    // Another interface, then the clients' port in the server's place.
    let line = "netdyno clone --from o1:81 --to 10.77.2.2:80 --json";
    let mut clone = start(inside(&three.online, line));
    clone.until_it_says("Ctrl-C ends");
    clone.until_it_says("nothing of a TCP server at port 81 was captured at o1");
    let (ran, _) = ended(clone);
    ran.with(1).says(&["tcpdump -ni o1 'tcp and port 81'"]);
    // One direction alone.
    let dir = folder();
    let file = path(&dir, "half.pcap");
    let line = format!("tcpdump -Z root -n -U --immediate-mode -Q out -i o0 -w {file} tcp port 80");
    let mut tcpdump = start(inside(&three.online, &line));
    tcpdump.until_it_says("listening on");
    oracle::run(&three.clients, "10.77.1.1:80", Load { requests: 40, ..LOAD });
    std::thread::sleep(Duration::from_millis(300));
    tcpdump.signal("INT");
    tcpdump.wait().ok();
    let line = format!("netdyno clone {file} --server 80 --to 10.77.2.2:80 --json");
    let report = start(inside(&three.online, &line)).wait().with(1).json();
    assert!(reasons(&report)[0].contains("only one direction is captured"), "{:?}", reasons(&report));
    assert_eq!(target.seen().connections.len(), 0);
    drop(online.seen());
}

#[test]
fn a_target_that_goes_away_costs_its_own_connections_alone_and_all_is_counted() {
    let three = Three::new();
    let [online, target] = three.servers(128);
    let clone = three.clone("");
    let load = Load { requests: 400, per_second: 2000, ..LOAD };
    oracle::run(&three.clients, "10.77.1.1:80", load);
    eventually("all is copied", || target.requests.load(Relaxed) == 400);
    assert_eq!(target.seen().counts().len(), 400);
    // Nobody listens any more.
    oracle::run(&three.clients, "10.77.1.1:80", load);
    let (ran, report) = ended(clone);
    ran.with(1);
    let c = cloned(&report);
    assert_eq!(number(&c["sessions"]["copied"]), 80);
    assert_eq!(number(&c["connections"]["refused"]), 40);
    let sent = &c["sent"];
    assert_eq!(
        number(&sent["due"]),
        number(&sent["sent"]) + number(&sent["unconnected"]) + number(&sent["after_close"])
    );
    assert!(number(&sent["unconnected"]) > 0 && c["contradictions"].is_null(), "{sent}");
    assert_eq!(online.seen().counts().len(), 400, "both runs have the same numbers");
}

#[test]
fn a_dry_run_counts_and_connects_to_nobody() {
    let three = Three::new();
    let [online, target] = three.servers(128);
    let clone = three.clone("--dry-run --copies 2");
    oracle::run(&three.clients, "10.77.1.1:80", Load { requests: 200, ..LOAD });
    let (ran, report) = ended(clone);
    ran.with(0);
    let c = cloned(&report);
    assert_eq!((number(&c["sessions"]["copied"]), number(&c["connections"]["wanted"])), (40, 80));
    assert!(number(&c["bytes"]["delivered"]) > 0);
    assert_eq!((online.seen().counts().len(), target.seen().connections.len()), (200, 0));
}

#[test]
fn its_words_are_understood_and_contradictions_refused() {
    run("netdyno clone --from eth0:80").with(2).says(&["--to"]);
    run("netdyno clone --to 10.0.0.1:80").with(2).says(&["<FILE>"]);
    run("netdyno clone x.pcap --to 10.0.0.1:80").with(2).says(&["--server"]);
    run("netdyno clone --from eth0 --to 10.77.2.2:80").with(2).says(&["eth0:80"]);
    for line in ["clone", "clone doctor"] {
        let said = run(format!("netdyno {line} --from eth0:x --to 10.77.2.2:80")).with(2);
        said.says(&["--from", "eth0:x", "eth0:10.0.0.1:80"]);
    }
    let capture = "netdyno clone capture --from eth0:x --send-to 10.77.2.2:7117 --key k";
    run(capture).with(2).says(&["--from", "eth0:x", "eth0:10.0.0.1:80"]);
    run("netdyno clone x.pcap --server 80 --to 10.0.0.1:80 --capture ring-buffer")
        .with(2)
        .says(&["--capture"]);
    run("netdyno clone x.pcap --server 80 --to 10.0.0.1:80 --copies 0 --dry-run").refused(&["copies"]);
    run("netdyno clone x.pcap --server 0 --to 10.0.0.1:80 --dry-run").refused(&["port"]);
}

/// Figures of the notes' loads, printed for whoever measures (`scripts/bench-clone`):
/// NETDYNO_CLONE_LOAD="connections requests rate body short copies words...". Without copies there is no clone. The words
/// "peers options..." have tcpcopy and intercept instead (see `peers`).
#[test]
fn a_load_that_is_given_is_copied_whole() {
    let given = std::env::var("NETDYNO_CLONE_LOAD").unwrap_or_else(|_| "20 400 4000 0 0 1".to_owned());
    let mut words = given.split(' ');
    let mut next = || words.next().and_then(|word| word.parse::<u64>().ok()).expect("a number");
    let (connections, requests, per_second, body, short, copies) =
        (next(), next(), next(), next(), next(), next());
    let words = words.collect::<Vec<_>>().join(" ");
    let load = Load {
        connections: connections as usize,
        requests,
        per_second,
        body: body as usize,
        short: short > 0,
    };
    let three = steered::leaky();
    let [online, target] = three.servers(128);
    if let Some(options) = words.strip_prefix("peers") {
        return peers::measured(&three, &target, load, copies, options);
    }
    let _agent = words.contains("--client-addresses").then(|| steered::agent(&three, "10.77.2.1", ""));
    let clone = (copies > 0).then(|| three.clone(&format!("--copies {copies} {words}")));
    let began = std::time::Instant::now();
    let mut took = oracle::run(&three.clients, "10.77.1.1:80", load);
    let seconds = began.elapsed().as_secs_f64();
    took.sort_unstable();
    let figures = format!(
        "{:.0} requests/s for {seconds:.2} s; clients p50 {} p99 {} us",
        requests as f64 / seconds,
        took[took.len() / 2] / 1000,
        took[took.len() * 99 / 100] / 1000
    );
    let Some(clone) = clone else {
        println!("{figures}");
        assert_eq!(online.seen().counts().len() as u64, requests);
        return;
    };
    let (_, report) = ended(clone);
    let c = cloned(&report);
    let delay = &c["answers"]["delay_ns"];
    println!(
        "{figures}; copied {} of {}; clone's CPU {:.1} % of a core; delay p50 {} p99 {} us",
        target.requests.load(Relaxed),
        requests * copies,
        number(&c["cpu_ns"]) as f64 / seconds / 1e7,
        number(&delay["p50"]) / 1000,
        number(&delay["p99"]) / 1000,
    );
    if !words.contains("--sample") {
        return assert_copied(&report, &online.seen(), &target.seen(), copies);
    }
    let (online, target) = (online.seen(), target.seen());
    let sessions = &c["sessions"];
    let all = number(&sessions["copied"]) + number(&sessions["sampled_out"]);
    assert_eq!(all, online.connections.len() as u64, "{sessions}");
    assert_eq!((target.bad, target.disordered()), (0, 0));
    assert_eq!(target.connections.len() as u64, copies * number(&sessions["copied"]));
}
