//! `netdyno endpoint`: both ends on two hosts joined by a cable, what goes wrong between them, and results that add up.

use crate::common::{Net, Running, eventually, number, reasons};
use ::lab::{Bottleneck, Device, Kind, Options};
use serde_json::Value;

/// A server on the receiving host, which listens.
fn server(net: &Net, options: &str) -> Running {
    let mut running = net.start_there(format!("netdyno endpoint serve {options}"));
    running.until_it_says("serving endpoint tests at");
    running
}

/// Two hosts that reach each other by IPv4.
fn hosts() -> Net {
    Net::with(&Options { addresses: true, ..Options::default() })
}

fn there(net: &Net) -> String {
    net.lab.receiver.address.to_string()
}

fn tested(report: &Value) -> &Value {
    &report["result"]["endpoint"]
}

fn real(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

const BRIEF: &str = "--duration 300ms --json --quiet";

#[test]
fn every_test_over_a_cable_tells_what_both_ends_came_to() {
    let net = hosts();
    let (_server, host) = (server(&net, ""), there(&net));
    for test in [
        "tcp-stream --method splice",
        "tcp-maerts -p 2",
        "tcp-bidir",
        "udp-stream --rate 20mbps",
        "udp-maerts --rate 20mbps",
    ] {
        let report = net.run(format!("netdyno endpoint {test} {host} {BRIEF}")).json();
        let e = tested(&report);
        let streams = e["streams"].as_array().expect("streams");
        assert_eq!(streams.len(), if test == "tcp-bidir" { 2 } else { 1 }, "{test}");
        for stream in streams {
            let (sent, received) = (number(&stream["sent_bytes"]), number(&stream["received_bytes"]));
            assert!(received > 0 && received <= sent, "{test}: {sent} {received}");
            assert!(real(&stream["received_bits_per_second"]) > 0.0, "{test}");
            let udp = test.starts_with("udp");
            assert_eq!(stream["datagrams"].is_object(), udp, "{test}");
            if udp {
                let d = &stream["datagrams"];
                assert_eq!(number(&d["received"]) + number(&d["lost"]), number(&d["sent"]), "{test}");
            } else {
                assert_eq!(sent, received, "{test}");
            }
        }
        assert!(e["local"]["busy_cores"].is_number() && e["remote"]["busy_cores"].is_number(), "{test}");
        assert!(e["local"]["counters"]["groups"].is_array() && e["remote"]["counters"].is_object(), "{test}");
    }
    for test in
        ["tcp-rr", "udp-rr --request 100 --response 1000", "tcp-crr", "tcp-cc", "tcp-rr --burst 8 --spin"]
    {
        let report = net.run(format!("netdyno endpoint {test} {host} {BRIEF}")).ok().json();
        let t = &tested(&report)["transactions"];
        assert!(number(&t["count"]) > 0 && real(&t["per_second"]) > 0.0, "{test}");
        // What is still under way at the end counts if it has waited longest.
        let timed = number(&t["latency_ns"]["count"]);
        assert!((number(&t["count"])..=number(&t["count"]) + 8).contains(&timed), "{test}: {timed}");
    }
}

/// A link-local address means nothing without its interface: data of UDP and connections for each transaction lost it.
#[test]
fn tests_run_over_link_local_addresses() {
    let net = Net::new();
    net.run("ip addr add fe80::1/64 dev tx0 nodad").ok();
    net.run_there("ip addr add fe80::2/64 dev rx0 nodad").ok();
    net.run_there("ip link set lo up").ok();
    let _servers =
        [server(&net, ""), net.start_there("netdyno iperf3 -s"), net.start_there("netdyno netserver -D")];
    let host = "fe80::2%tx0";
    let answers = || net.run(format!("netdyno endpoint tcp-cc {host} {BRIEF}")).status == 0;
    eventually("it answers", answers);
    for test in
        ["tcp-stream", "udp-stream --rate 10mbps", "udp-rr", "tcp-crr", "connection-rate --rate 100cps"]
    {
        let report = net.run(format!("netdyno endpoint {test} {host} {BRIEF}")).json();
        let e = tested(&report);
        let of = |count: &Value| count.as_u64().unwrap_or(0);
        let went = of(&e["transactions"]["count"]).max(of(&e["streams"][0]["received_bytes"]));
        assert!(went > 0, "{test}: {report}");
    }
    for line in ["iperf3 -u -b 10M -t 1 -c", "netperf -t TCP_STREAM -l 1 -H", "netperf -t UDP_RR -l 1 -H"] {
        net.run(format!("netdyno {line} {host}")).ok();
    }
}

/// SIGSTOP: the server's host acknowledges what is said, and nothing is answered.
#[test]
fn who_ends_a_test_whose_server_is_stopped_waits_for_seconds_only() {
    let net = hosts();
    let (server, host) = (server(&net, ""), there(&net));
    let mut client =
        net.start(format!("netdyno endpoint udp-stream {host} --rate 10mbps --duration 600s --json"));
    client.until_it_says("Ctrl-C ends and reports");
    until_it_sends(&net, 100_000);
    server.signal("STOP");
    client.signal("INT");
    let report = client.wait().with(1).json();
    server.signal("CONT");
    let said = reasons(&report).join("; ");
    // Without Ctrl-C it waits for 20 s.
    assert!(silent_for(&said) < 19.0 && said.contains("stopped before its time"), "{said}");
}

/// Data is on its way, so that the server has seen the start.
fn until_it_sends(net: &Net, bytes: u64) {
    eventually("it sends", || {
        let link = net.run("ip -s -j link show tx0").ok().json();
        number(&link[0]["stats64"]["tx"]["bytes"]) > bytes
    });
}

/// Seconds for which the other end was waited for, out of what the result says.
fn silent_for(said: &str) -> f64 {
    let (_, seconds) = said.split_once("said nothing for ").unwrap_or_else(|| panic!("{said}"));
    seconds.split_once(' ').expect("a unit").0.parse().expect("seconds")
}

#[test]
fn who_ends_a_test_whose_link_is_gone_is_not_kept_waiting_for_the_servers_results() {
    let net = hosts();
    let (_server, host) = (server(&net, ""), there(&net));
    let mut client = net.start(format!("netdyno endpoint tcp-stream {host} --duration 600s --json"));
    client.until_it_says("Ctrl-C ends and reports");
    until_it_sends(&net, 1_000_000);
    net.run("ip link set tx0 down").ok();
    client.signal("INT");
    let report = client.wait().with(1).json();
    let said = reasons(&report).join("; ");
    // It waits 20 s for results that may come, and 2 s where not even its own word was acknowledged.
    assert!(silent_for(&said) < 15.0, "{said}");
    assert!(number(&tested(&report)["streams"][0]["sent_bytes"]) > 0, "{report}");
}

#[test]
fn amounts_and_an_open_loop_are_kept_to() {
    let net = hosts();
    let (_server, host) = (server(&net, ""), there(&net));
    let report =
        net.run(format!("netdyno endpoint tcp-stream {host} --bytes 3000007 -p 2 --json -q")).ok().json();
    assert_eq!(number(&tested(&report)["streams"][0]["received_bytes"]), 2 * 3_000_007);
    let report = net.run(format!("netdyno endpoint tcp-rr {host} --transactions 500 --json -q")).ok().json();
    assert_eq!(number(&tested(&report)["transactions"]["count"]), 500);
    let figures = "--get endpoint_transactions_per_second --get endpoint_latency_p99";
    let bare = net.run(format!("netdyno endpoint tcp-rr {host} --transactions 500 {figures} -q")).ok().stdout;
    let values: Vec<f64> = bare.lines().map(|line| line.parse().expect("a number")).collect();
    assert!(values.len() == 2 && values.iter().all(|value| *value > 0.0), "{bare}");
    let report = net.run(format!("netdyno endpoint udp-rr {host} --rate 500tps --burst 64 {BRIEF}")).json();
    let t = &tested(&report)["transactions"];
    assert_eq!(real(&t["intended_per_second"]), 500.0);
    // Never more than was due within the test.
    assert!((1..=151).contains(&number(&t["count"])), "{t}");
}

#[test]
fn latency_under_load_is_told_idle_beside_loaded_with_its_rule() {
    let net = hosts();
    let (_server, host) = (server(&net, ""), there(&net));
    let ran = net.run(format!(
        "netdyno endpoint latency-under-load {host} --duration 500ms --warm-up 200ms --json -q"
    ));
    let report = ran.json();
    let under = &tested(&report)["under_load"];
    assert!(number(&under["idle_ns"]["count"]) > 0 && number(&under["loaded_ns"]["count"]) > 0, "{under}");
    assert!(under["rule"].as_str().expect("a rule").contains("A+ below 5 ms"));
    // What is less beside streams than by itself has no grade.
    match under["grade"].as_str() {
        Some(grade) => assert!(["A+", "A", "B", "C", "D", "F"].contains(&grade), "{under}"),
        None => assert!(number(&under["loaded_ns"]["p50"]) < number(&under["idle_ns"]["p50"]), "{under}"),
    }
    assert_eq!(tested(&report)["streams"].as_array().expect("streams").len(), 2);
}

#[test]
fn a_repeated_test_says_how_sure_it_is() {
    let net = hosts();
    let (_server, host) = (server(&net, ""), there(&net));
    let line = format!("netdyno endpoint tcp-rr {host} --confidence 90%,100% --duration 100ms --json -q");
    let c = tested(&net.run(line).json())["confidence"].clone();
    let results = c["results"].as_array().expect("results");
    assert!((3..=10).contains(&results.len()), "{c}");
    assert_eq!(c["reached"].as_bool(), Some(real(&c["width_ratio"]) <= 1.0), "{c}");
}

#[test]
fn whoever_is_refused_is_told_why_and_the_next_one_is_served() {
    let net = hosts();
    let host = there(&net);
    net.run(format!("netdyno endpoint tcp-rr {host} {BRIEF}"))
        .refused(&["is the server running there? Start it there: netdyno endpoint serve"]);
    let token = net.file("token");
    std::fs::write(&token, "one two three\n").expect("a token");
    let wrong = net.file("wrong");
    std::fs::write(&wrong, "guess\n").expect("a token");
    let mut server = server(&net, &format!("--token-file {token} --max-parallel 2 --json"));
    net.run(format!("netdyno endpoint tcp-rr {host} {BRIEF}")).refused(&["the server wants a token"]);
    net.run(format!("netdyno endpoint tcp-rr {host} --token-file {wrong} {BRIEF}"))
        .refused(&["the client's token is not this server's"]);
    net.run(format!("netdyno endpoint tcp-rr {host} --token-file {token} -p 3 {BRIEF}"))
        .refused(&["flows: 3 was asked for, and the server permits 2"]);
    // Garbage: another protocol's beginning.
    net.run(format!("curl -s -m 5 http://{host}:12866/"));
    net.run(format!("netdyno endpoint tcp-rr {host} --token-file {token} -p 2 {BRIEF}")).ok();
    server.signal("TERM");
    let report = std::mem::replace(&mut server, net.start("true")).wait().ok().json();
    assert!(number(&report["result"]["served"]["refused_connections"]) >= 2, "{report}");
    assert_eq!(number(&report["result"]["served"]["tests"]), 1);
}

#[test]
fn an_end_that_is_killed_in_the_middle_is_missed_and_a_server_goes_on() {
    let net = hosts();
    let (server, host) = (server(&net, ""), there(&net));
    // The client is killed: the server serves the next one.
    let mut client = net.start(format!("netdyno endpoint tcp-maerts {host} --duration 60s"));
    client.until_it_says("tcp-maerts with");
    std::thread::sleep(std::time::Duration::from_millis(300));
    client.signal("KILL");
    drop(client);
    net.run(format!("netdyno endpoint tcp-rr {host} {BRIEF}")).json();
    // Two at once: each is told of the other.
    let mut long = net.start(format!("netdyno endpoint tcp-rr {host} --duration 60s --json"));
    long.until_it_says("tcp-rr with");
    std::thread::sleep(std::time::Duration::from_millis(300));
    let report = net.run(format!("netdyno endpoint tcp-stream {host} {BRIEF}")).ok().json();
    assert_eq!(tested(&report)["remote"]["shared"], true);
    // The server is killed: the client ends at once, and says what it had.
    server.signal("KILL");
    let ran = long.wait().with(1);
    assert!(
        reasons(&ran.json()).iter().any(|reason| reason.contains("control connection")),
        "{}",
        ran.stdout
    );
    assert!(number(&tested(&ran.json())["transactions"]["count"]) > 0);
}

#[test]
fn settings_of_connections_reach_the_kernel_and_the_wire() {
    let net = hosts();
    let (_server, host) = (server(&net, "--mptcp --user root"), there(&net));
    let run = |options: &str| {
        let ran = net.run(format!("netdyno endpoint tcp-stream {host} {options} {BRIEF}"));
        tested(&ran.json()).clone()
    };
    let mptcp = run("--mptcp");
    assert_eq!((&mptcp["local"]["mptcp"], &mptcp["remote"]["mptcp"]), (&true.into(), &true.into()));
    assert!(number(&mptcp["streams"][0]["received_bytes"]) > 0, "{mptcp}");
    let zerocopy = run("--method zerocopy");
    assert!(number(&zerocopy["local"]["zerocopy_calls"]) > 0, "{zerocopy}");
    let paced = run("--pacing 40mbps");
    let received = real(&paced["streams"][0]["received_bits_per_second"]);
    // Bytes of frames are paced, and the first segments leave at once.
    assert!(received > 0.0 && received < 60e6, "{paced}");
    let chosen = run("--congestion reno --send-buffer 50000 --remote-receive-buffer 60000 --nodelay --cork");
    assert_eq!(chosen["local"]["congestion"], "reno");
    // The kernel doubles what is asked for (socket(7)).
    assert_eq!(number(&chosen["local"]["send_buffer_bytes"]), 100_000);
    assert_eq!(number(&chosen["remote"]["receive_buffer_bytes"]), 120_000);

    // DSCP 46 in the header's second byte, as the far host sees it.
    let mut seen = net.start_there("tcpdump -Z root -n -i rx0 -c 1 tcp and ip[1]&0xfc==0xb8");
    seen.until_it_says("listening on");
    run("--dscp ef");
    seen.wait().ok();

    let polled = net.run(format!("netdyno endpoint tcp-rr {host} --busy-poll 50us {BRIEF}")).ok().json();
    assert!(number(&tested(&polled)["transactions"]["count"]) > 0);
    net.run(format!("netdyno endpoint tcp-stream {host} --mptcp --method zerocopy"))
        .refused(&["--method", "Multipath TCP has no MSG_ZEROCOPY"]);
}

#[test]
fn ipv6_carries_streams_and_transactions_of_tcp_and_udp() {
    let net = hosts();
    let _server = server(&net, "");
    for test in ["tcp-stream", "udp-stream --rate 20mbps", "tcp-rr", "udp-rr", "tcp-crr"] {
        let report = net.run_there(format!("netdyno endpoint {test} ::1 {BRIEF}")).json();
        let e = tested(&report);
        assert_eq!(e["server"], "[::1]:12866", "{test}");
        let (stream, exchange) = (&e["streams"][0]["received_bytes"], &e["transactions"]["count"]);
        assert!(stream.as_u64().or(exchange.as_u64()).is_some_and(|count| count > 0), "{test}: {e}");
    }
}

#[test]
fn a_unix_socket_carries_what_tcp_does_and_refuses_the_rest() {
    let net = hosts();
    let path = net.file("socket");
    let mut server = net.start(format!("netdyno endpoint serve --listen unix:{path}"));
    server.until_it_says("serving endpoint tests at");
    let report = net.run(format!("netdyno endpoint tcp-rr unix:{path} {BRIEF}")).ok().json();
    assert!(number(&tested(&report)["transactions"]["count"]) > 0);
    let warnings = report["warnings"].to_string();
    assert!(warnings.contains("both ends are on this host"), "{warnings}");
    // By what was typed, which has no other name.
    net.run(format!("netdyno endpoint udp-rr unix:{path} {BRIEF}"))
        .refused(&[&format!("unix:{path}: over a Unix socket")]);
}

/// nftables' counter is the judge: of each two datagrams one is dropped, whatever time is left out at the start.
#[test]
fn loss_is_of_the_datagrams_that_count_at_both_ends() {
    let net = hosts();
    let (_server, host) = (server(&net, ""), there(&net));
    let rules = net.file("rules");
    let drops = "table inet t {\n chain in {\n  type filter hook input priority 0;\n  udp length > 1000 numgen inc mod 2 0 counter drop\n }\n}\n";
    std::fs::write(&rules, drops).expect("rules");
    net.run_there(format!("nft -f {rules}")).ok();
    let line = format!(
        "netdyno endpoint udp-stream {host} --rate 40mbps --warm-up 400ms --duration 200ms --json --quiet"
    );
    let report = net.run(line).json();
    let stream = &tested(&report)["streams"][0];
    let d = &stream["datagrams"];
    let (sent, received, lost) = (number(&d["sent"]), number(&d["received"]), number(&d["lost"]));
    assert!(sent > 100 && received + lost + number(&d["duplicated"]) == sent, "{d}");
    // One more or less, by where the time begins and ends.
    assert!(lost.abs_diff(sent / 2) <= 1 || number(&d["dropped_by_receiver"]) > 0, "{d}");
    // A count over the time that was asked for.
    let rate = real(&d["received_per_second"]) * real(&stream["received_ns"]) / 1e9;
    assert!(
        (rate - received as f64).abs() < 1.0 && number(&stream["received_ns"]) >= 200_000_000,
        "{stream}"
    );
}

/// A token bucket is the judge: nothing passes it faster. Of what a late reader finds nobody knows when it came.
#[test]
fn an_amount_is_not_received_faster_than_the_path_lets_it_through() {
    let bottleneck = Bottleneck { bits_per_second: 5_000_000, overhead: 0, burst: 3_000, queue: 600_000 };
    let device = Device { kind: Kind::Bridge, bottleneck: Some(bottleneck), loss: None };
    let net = Net::with(&Options { addresses: true, device: Some(device), ..Options::default() });
    let (_server, host) = (server(&net, ""), there(&net));
    // On a busy machine much was there when the first bytes were read, and there is no rate: then again.
    let (mut told, mut tries) = (0, 0);
    while told < 3 && tries < 6 {
        tries += 1;
        for (bytes, test) in ["20k", "60k", "200k", "400k"]
            .into_iter()
            .flat_map(|bytes| ["tcp-stream", "tcp-maerts", "tcp-stream -p 3"].map(|test| (bytes, test)))
        {
            let report =
                net.run(format!("netdyno endpoint {test} {host} --bytes {bytes} --json --quiet")).json();
            let stream = &tested(&report)["streams"][0];
            let Some(rate) = stream["received_bits_per_second"].as_f64() else { continue };
            // Three thousand bytes were saved.
            let saved = 24_000.0 * 1e9 / number(&stream["received_ns"]).max(1) as f64;
            assert!(rate <= 5_000_000.0 + saved, "{test} {bytes}: {stream}");
            told += 1;
        }
    }
    assert!(told >= 3, "{told}");
}

#[test]
fn a_rate_is_a_count_over_the_time_that_was_asked_for() {
    let net = hosts();
    let (_server, host) = (server(&net, ""), there(&net));
    // Two messages, a second and 48 ms from each other: 262,144 bytes in 2 s.
    let report =
        net.run(format!("netdyno endpoint tcp-stream {host} --rate 1mbps -d 2s --json --quiet")).json();
    let stream = &tested(&report)["streams"][0];
    assert!(number(&stream["received_ns"]) >= 2_000_000_000, "{stream}");
    assert!(real(&stream["received_bits_per_second"]) <= 8.0 * 262_144.0 / 2.0, "{stream}");
    // More connections than have an answer each within the time.
    let report = net.run(format!("netdyno endpoint tcp-rr {host} -p 500 {BRIEF}")).json();
    let t = &tested(&report)["transactions"];
    let within = number(&t["measured_ns"]);
    assert!(within >= 300_000_000, "{t}");
    let rate = number(&t["count"]) as f64 * 1e9 / within as f64;
    assert!((real(&t["per_second"]) - rate).abs() <= 1.0 + rate * 1e-6, "{t}");
}
