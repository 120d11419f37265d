//! `netdyno endpoint` over thousands of connections, connections that are opened and held, and a server that leaves root.

use crate::common::{Net, Running, eventually, number, reasons};
use ::lab::Options;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt as _;

fn hosts() -> (Net, String) {
    let net = Net::with(&Options { addresses: true, ..Options::default() });
    let there = net.lab.receiver.address.to_string();
    (net, there)
}

fn server(net: &Net, options: &str) -> Running {
    let mut running = net.start_there(format!("netdyno endpoint serve {options}"));
    running.until_it_says("serving endpoint tests at");
    running
}

fn tested(report: &Value) -> &Value {
    &report["result"]["endpoint"]
}

/// Nothing but figures of speed may be short.
fn no_failure(report: &Value) {
    let short = reasons(report);
    assert!(!short.iter().any(|reason| reason.contains("failed") || reason.contains("broke")), "{short:?}");
}

#[test]
fn two_thousand_connections_are_driven_without_a_failed_one_in_little_memory() {
    let (net, host) = hosts();
    let _server = server(&net, "--max-parallel 2000");
    let brief = "--duration 500ms --json --quiet";
    for test in
        ["tcp-rr -p 2000", "tcp-stream -p 2000", "tcp-maerts -p 2000", "tcp-bidir -p 500", "tcp-crr -p 200"]
    {
        let report = net.run(format!("netdyno endpoint {test} {host} {brief}")).json();
        no_failure(&report);
        let e = tested(&report);
        if !test.starts_with("tcp-crr") {
            for end in ["local", "remote"] {
                let memory = &e[end]["memory"];
                assert!(number(&memory["connections"]) >= 500, "{test}: {memory}");
                let process = memory["process_bytes"].as_i64().expect("bytes");
                // Of 2,000: what 32 KiB for each are. Fewer have their threads' buffers among them.
                assert!(process < 2000 * 32 * 1024, "{test}, {end}: {memory}");
                assert!(memory["kernel_slab_bytes"].is_i64(), "{memory}");
            }
        }
        for stream in e["streams"].as_array().into_iter().flatten() {
            assert!(number(&stream["received_bytes"]) > 0, "{test}");
        }
        if let Some(count) = e["transactions"]["count"].as_u64() {
            assert!(count > 0, "{test}");
        }
    }
    // Threads for few, too.
    let line = format!("netdyno endpoint tcp-rr {host} -p 4 --threads 2 --transactions 100 --json -q");
    assert_eq!(number(&tested(&net.run(line).ok().json())["transactions"]["count"]), 400);
}

#[test]
fn connections_are_opened_held_and_closed_and_the_handshake_is_timed() {
    let (net, host) = hosts();
    let server = server(&net, "--max-parallel 3000");
    let rate =
        |options: &str| net.run(format!("netdyno endpoint connection-rate {host} {options} --json -q"));
    let report = rate("--duration 1s --hold 1500").json();
    no_failure(&report);
    let e = tested(&report);
    for (member, count) in
        [("attempts", 1500), ("opened", 1500), ("failed", 0), ("held", 1500), ("most_open", 1500)]
    {
        assert_eq!(number(&e["opening"][member]), count, "{member}: {}", e["opening"]);
    }
    assert_eq!(number(&e["local"]["memory"]["connections"]), 1500);
    assert_eq!(number(&e["remote"]["memory"]["connections"]), 1500);
    assert_eq!(number(&e["transactions"]["latency_ns"]["count"]), 1500);
    // An open loop: what is due within the time is tried, and no more.
    let report = rate("--duration 400ms --rate 500cps --hold 20").json();
    let (e, opening) = (tested(&report), &tested(&report)["opening"]);
    assert_eq!(e["transactions"]["intended_per_second"], 500.0);
    let also = |member: &str| e["transactions"][member].as_u64().unwrap_or(0);
    // One may be under way at the end.
    let due = number(&opening["attempts"]) + also("unsent") + also("in_flight");
    assert!((200..=201).contains(&due), "{e}");
    assert_eq!(number(&opening["failed"]), 0, "{opening}");
    // Nobody listens any more: failures, by their reason.
    let mut long =
        net.start(format!("netdyno endpoint connection-rate {host} --rate 200cps --duration 60s --json"));
    long.until_it_says("connection-rate with");
    std::thread::sleep(std::time::Duration::from_millis(300));
    server.signal("KILL");
    let report = long.wait().with(1).json();
    assert!(
        reasons(&report).iter().any(|reason| reason.contains("control connection")),
        "{:?}",
        reasons(&report)
    );
    assert!(number(&tested(&report)["opening"]["opened"]) > 0);
}

#[test]
fn out_of_ports_is_said_by_its_name_and_the_server_serves_the_next() {
    let (net, host) = hosts();
    let _server = server(&net, "--max-parallel 3000");
    // Forty ports towards each port of the server, in this namespace alone.
    let script = net.file("ports");
    let range = |range: &str| {
        let text = format!("echo {range} > /proc/sys/net/ipv4/ip_local_port_range\n");
        std::fs::write(&script, text).expect("a script");
        net.run(format!("sh {script}")).ok();
    };
    range("40000 40039");
    let ran =
        net.run(format!("netdyno endpoint connection-rate {host} --hold 1000 --duration 300ms --json -q"));
    let report = ran.with(1).json();
    let opening = &tested(&report)["opening"];
    assert!(number(&opening["no_port"]) > 0, "{opening}");
    assert_eq!(number(&opening["no_port"]), number(&opening["failed"]), "{opening}");
    assert!(
        reasons(&report).iter().any(|said| said.contains("without a free port here")),
        "{:?}",
        reasons(&report)
    );
    net.run(format!("netdyno endpoint tcp-rr {host} -p 100 --duration 300ms -q"))
        .refused(&["this host has none left of its 40 ports (40000 to 40039)"]);
    // The forty are in use for a minute.
    range("40000 60999");
    net.run(format!("netdyno endpoint tcp-rr {host} -p 2 --transactions 10 --json -q")).ok();
}

#[test]
fn a_server_without_room_says_how_much_it_has() {
    let (net, host) = hosts();
    let _server = server(&net, "--max-parallel 500 --max-connections 100");
    net.run(format!("netdyno endpoint tcp-rr {host} -p 200 --duration 300ms -q"))
        .refused(&["200 connections were asked for, and of the 100 that the server has at once 0 are taken"]);
    net.run(format!("netdyno endpoint tcp-rr {host} -p 600 --duration 300ms -q"))
        .refused(&["flows: 600 was asked for, and the server permits 500"]);
    net.run(format!("netdyno endpoint connection-rate {host} --hold 600 --duration 300ms -q"))
        .refused(&["connections held: 600 was asked for, and the server permits 500"]);
    net.run(format!("netdyno endpoint tcp-rr {host} -p 80 --duration 300ms -q")).ok();
}

fn status(of: &Running, name: &str) -> String {
    let text = std::fs::read_to_string(format!("/proc/{}/status", of.pid())).expect("its status");
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.expect(name).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_server_started_as_root_goes_on_as_nobody_unless_told_otherwise() {
    let (net, host) = hosts();
    let serving = server(&net, "");
    for (name, is) in [("Gid", "65534 65534 65534 65534"), ("Groups", ""), ("NoNewPrivs", "1")] {
        assert_eq!(status(&serving, name), is, "{name}");
    }
    assert!(!status(&serving, "Uid").split(' ').any(|id| id == "0"));
    for name in ["CapPrm", "CapEff", "CapInh"] {
        assert_eq!(status(&serving, name), "0000000000000000", "{name}");
    }
    assert!(serving.said().contains(" as user nobody"), "{}", serving.said());
    net.run(format!("netdyno endpoint tcp-rr {host} --transactions 10 --json -q")).ok();
    drop(serving);
    // So do the servers of other tools' protocols, which say what they need root for.
    for line in ["netdyno netserver -D", "netdyno iperf3 -s"] {
        let serving = net.start(line);
        eventually("it is not root any more", || status(&serving, "Uid") == "65534 65534 65534 65534");
        assert_eq!(
            (&*status(&serving, "Groups"), &*status(&serving, "CapPrm")),
            ("", "0000000000000000"),
            "{line}"
        );
    }
    let mut serving = net.start("netdyno iperf3 -s -p 500");
    serving.until_it_says("it stays root: -p");
    assert_eq!(status(&serving, "Uid"), "0 0 0 0");
    drop(serving);
    let serving = server(&net, "--user root");
    assert_eq!(status(&serving, "Uid"), "0 0 0 0");
    drop(serving);
    net.run("netdyno endpoint serve --user nosuch").refused(&["/etc/passwd has no such user"]);
    // Its report is written by who it is then: not where that user cannot go.
    let closed = net.file("closed");
    std::fs::create_dir(&closed).expect("a folder");
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o700)).expect("permitted");
    net.run(format!("netdyno endpoint serve --duration 100ms --report {closed}/report"))
        .refused(&["user nobody cannot reach it through", "--user root"]);
    std::fs::set_permissions(net.dir.path(), std::fs::Permissions::from_mode(0o755)).expect("permitted");
    let report = net.file("report");
    net.run_there(format!("netdyno endpoint serve --duration 100ms --report {report} -q")).ok();
    assert!(std::path::Path::new(&report).join("result.json").exists());
}
