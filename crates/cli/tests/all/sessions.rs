//! `netdyno sessions` and its server: against each other, against nginx and curl, through a router that translates and loses.

use crate::common::*;
use serde_json::Value;

/// Two hosts with addresses; GRO, so that what XDP sends reaches a host without a program.
pub(super) fn hosts() -> Net {
    let net = Net::with(&::lab::Options { addresses: true, gro: true, ..Default::default() });
    net.run_there("ip link set lo up").ok();
    net
}

pub(super) fn serving(net: &Net, options: &str) -> Running {
    let mut server = net.start_there(format!("netdyno sessions serve --on rx0 --json {options}"));
    server.until_it_says("serving ");
    server
}

/// Ends it and gives its result.
pub(super) fn interrupted(server: Running) -> Value {
    server.signal("INT");
    server.wait().ok().json()
}

pub(super) fn sessions(report: &Value) -> &Value {
    &report["result"]["sessions"]
}

pub(super) fn count(report: &Value, name: &str) -> u64 {
    number(&sessions(report)[name])
}

/// Every connection is counted in one end.
pub(super) fn adds_up(report: &Value) {
    let [opened, finished, failed] = ["opened", "finished", "failed"].map(|name| count(report, name));
    assert_eq!(opened, finished + failed, "{}", sessions(report));
    assert_eq!(count(report, "open"), 0, "{}", sessions(report));
    let kinds = ["reset", "timed_out", "unanswered", "closed_early", "refused", "abandoned"];
    assert_eq!(failed, kinds.map(|name| count(report, name)).iter().sum::<u64>(), "{}", sessions(report));
    let statuses = [
        "status_1xx",
        "status_2xx",
        "status_3xx",
        "status_4xx",
        "status_5xx",
        "not_http",
        "numbered_answers",
    ];
    let answers = statuses.map(|name| count(report, name)).iter().sum::<u64>();
    assert_eq!(count(report, "answers"), answers, "{}", sessions(report));
    let sent_again =
        ["syns", "requests", "acks", "fins"].map(|name| count(report, &format!("retransmitted_{name}")));
    assert_eq!(count(report, "retransmitted"), sent_again.iter().sum::<u64>(), "{}", sessions(report));
}

#[test]
fn both_ends_tell_the_same_of_every_connection() {
    let net = hosts();
    let server = serving(&net, "");
    let line = "netdyno sessions --on tx0 --to 198.18.0.2:80 --rate 10kcps --count 5000 --rto 2s --json";
    let report = net.run(line).ok().json();
    adds_up(&report);
    let [opened, finished, failed] = ["opened", "finished", "failed"].map(|name| count(&report, name));
    assert_eq!([opened, finished, failed], [5000, 5000, 0]);
    assert_eq!(number(&sessions(&report)["handshake_ns"]["count"]), 5000);
    assert_eq!(number(&sessions(&report)["answer_ns"]["count"]), 5000);
    let served = interrupted(server);
    let there = &served["result"]["sessions_served"];
    assert_eq!(["syns", "requests", "finished"].map(|name| number(&there[name])), [5000; 3]);
    assert_eq!(there["answer_bytes"], sessions(&report)["answer_bytes"]);
    let ends = [(&report, "tx", &served, "rx"), (&served, "tx", &report, "rx")];
    for (from, out, to, into) in ends {
        for what in ["frames", "bytes"] {
            assert_eq!(from["result"][out][what], to["result"][into][what], "{out} {what}");
        }
    }
    assert_eq!(number(&report["result"]["tx"]["frames"]), 15_000);
    assert_eq!(report["result"]["tx"]["interface_counters"][0]["missing_frames"], 0);
    assert_eq!(report["command"], "sessions");
}

/// Ten connections of 10 a second are a second's, though the last of them is opened after 0.9 s.
#[test]
fn rates_of_a_schedule_are_none_that_it_does_not_have() {
    let net = hosts();
    let server = serving(&net, "");
    for (words, opened, rate) in [
        ("--rate 10cps --duration 1s", 10, 10.0),
        ("--rate 2cps --count 2", 2, 2.0),
        ("--rate 50cps --count 5", 5, 50.0),
    ] {
        let report = net
            .run(format!("netdyno sessions --on tx0 --to 198.18.0.2:80 --rto 2s {words} --json"))
            .ok()
            .json();
        adds_up(&report);
        assert_eq!(count(&report, "opened"), opened);
        for name in ["opened_per_second", "finished_per_second"] {
            let said = sessions(&report)[name].as_f64().expect("a rate");
            // Less where the machine was held up.
            assert!(said > 0.0 && said <= rate * 1.001, "{words}: {name} {said}");
        }
    }
    interrupted(server);
}

#[test]
fn clients_and_server_of_addresses_that_nobody_has_are_found_by_arp() {
    let net = Net::with(&::lab::Options { addresses: false, ..Default::default() });
    net.run("ip addr add 198.18.0.1/24 dev tx0").ok();
    net.run("ip route add 203.0.113.0/24 dev tx0").ok();
    let server = serving(&net, "--listen 203.0.113.7:8080");
    let line =
        "netdyno sessions --on tx0 --to 203.0.113.7:8080 --clients 10.77.0.0/28 --count 300 --rto 2s --json";
    let report = net.run(line).ok().json();
    adds_up(&report);
    assert_eq!([count(&report, "finished"), count(&report, "client_addresses")], [300, 14]);
    let served = interrupted(server);
    assert!(number(&served["result"]["sessions_served"]["arp_replies"]) >= 1);
}

/// nginx on the receiving host, with an answer of so many bytes.
pub(super) fn nginx(net: &Net, listen: &str, bytes: usize) -> Running {
    let dir = net.dir.path().display();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .map(|name| format!("{name}_temp_path {dir}/{name}; "))
        .collect();
    let config = format!(
        "user root; daemon off; master_process off; pid {dir}/nginx.pid; error_log {dir}/error.log; events {{}}
         http {{ access_log {dir}/access.log; {temporary} server {{ listen {listen}:80; root {dir}; }} }}"
    );
    std::fs::write(net.file("nginx.conf"), config).expect("a written file");
    std::fs::write(net.file("page.txt"), vec![b'n'; bytes]).expect("a written file");
    let nginx = net.start_there(format!("nginx -c {dir}/nginx.conf"));
    eventually("nginx listens", || net.run_there(format!("curl -s http://{listen}/page.txt")).status == 0);
    std::fs::write(net.file("access.log"), "").expect("an empty log");
    nginx
}

#[test]
fn nginx_answers_every_request_with_every_byte() {
    for size in [11, 30_000] {
        let net = hosts();
        let _nginx = nginx(&net, "198.18.0.2", size);
        let line = "netdyno sessions --on tx0 --to 198.18.0.2 --path /page.txt --count 400 --in-flight 20 --rto 2s --json";
        let report = net.run(line).ok().json();
        adds_up(&report);
        assert_eq!([count(&report, "finished"), count(&report, "failed")], [400, 0]);
        // As many bytes as a client of this host's own gets.
        let head =
            net.run_there("curl -s -i -H Connection:close http://198.18.0.2/page.txt").ok().stdout.len();
        assert!(head > size);
        assert_eq!(count(&report, "answer_bytes"), 400 * head as u64);
        let log = std::fs::read_to_string(net.file("access.log")).expect("a log");
        let ours = log.lines().filter(|line| line.contains("198.18.0.1") && line.contains("\" 200 ")).count();
        assert_eq!(ours, 400, "{log}");
    }
}

/// Lines of nginx's log about whole answers to the clients.
fn logged(net: &Net) -> usize {
    let log = std::fs::read_to_string(net.file("access.log")).expect("a log");
    log.lines().filter(|line| line.contains("198.18.0.1") && line.contains("\" 200 ")).count()
}

#[test]
fn several_requests_of_a_connection_are_each_answered_and_the_client_closes() {
    let net = hosts();
    let _nginx = nginx(&net, "198.18.0.2", 100);
    for (round, how) in ["--close fin", "--close rst", "--think 20ms"].iter().enumerate() {
        let line = format!(
            "netdyno sessions --on tx0 --to 198.18.0.2 --path /page.txt --count 100 --requests 5 --in-flight 20 --rto 2s {how} --json"
        );
        let report = net.run(line).ok().json();
        adds_up(&report);
        assert_eq!([count(&report, "finished"), count(&report, "opened")], [100, 100], "{how}");
        for name in ["requests", "answers", "status_2xx"] {
            assert_eq!(count(&report, name), 500, "{how}: {name}");
        }
        // nginx may write its line behind the answer.
        eventually("nginx has written all", || logged(&net) >= 500 * (round + 1));
        assert_eq!(logged(&net), 500 * (round + 1), "{how}");
    }
}

/// Connections to port 80 that are established at the far host, as its kernel says.
fn established(net: &Net) -> usize {
    net.run_there("ss -Htn state established sport = :80").ok().stdout.lines().count()
}

#[test]
fn held_connections_stay_open_until_they_are_used_again_or_closed() {
    let net = hosts();
    let _nginx = nginx(&net, "198.18.0.2", 100);
    let to = "netdyno sessions --on tx0 --to 198.18.0.2 --path /page.txt --rto 2s --json --connections 300";
    let held = net.start(to);
    eventually("all are established at the server", || established(&net) == 300);
    held.signal("INT");
    let report = held.wait().ok().json();
    adds_up(&report);
    assert_eq!(
        [count(&report, "finished"), count(&report, "requests"), count(&report, "open")],
        [300, 300, 0]
    );
    assert_eq!(number(&sessions(&report)["held"]["held"]), 300);
    eventually("none is left at the server", || established(&net) == 0);

    let report = net.run(format!("{to} --hold 100ms --use-again")).ok().json();
    adds_up(&report);
    let held = &sessions(&report)["held"];
    for name in ["asked", "held", "used_again", "answered_again"] {
        assert_eq!(number(&held[name]), 300, "{held}");
    }
    assert_eq!(
        [count(&report, "finished"), count(&report, "requests"), count(&report, "answers")],
        [300, 600, 600]
    );
}

#[test]
fn what_is_no_success_is_told_by_its_kind() {
    let net = hosts();
    let nginx = nginx(&net, "198.18.0.2", 100);
    let to = "netdyno sessions --on tx0 --to 198.18.0.2 --rto 2s --json";
    // A page that is not there: the connection is as it should be, and the answer is not.
    let report = net.run(format!("{to} --path /missing --count 50")).with(1).json();
    adds_up(&report);
    assert_eq!(
        [count(&report, "finished"), count(&report, "status_4xx"), count(&report, "status_2xx")],
        [50, 50, 0]
    );
    assert!(
        reasons(&report).iter().any(|reason| reason.contains("50 had status 4xx")),
        "{:?}",
        reasons(&report)
    );
    // A server whose segments are shorter than the request.
    net.run_there("ip route replace 198.18.0.0/24 dev rx0 src 198.18.0.2 advmss 300").ok();
    let report = net.run(format!("{to} --path /page.txt --request-size 600 --count 50")).with(1).json();
    adds_up(&report);
    assert_eq!([count(&report, "refused"), count(&report, "requests")], [50, 0]);
    nginx.signal("INT");
    nginx.wait();
    // A server that closes what was to be held.
    let server = serving(&net, "");
    let report = net.run(format!("{to} --connections 50 --hold 100ms")).with(1).json();
    adds_up(&report);
    assert_eq!([count(&report, "closed_early"), count(&report, "finished")], [50, 0]);
    interrupted(server);
}

#[test]
fn connections_of_the_hosts_own_are_left_alone() {
    let net = hosts();
    let server = serving(&net, "");
    let mut clients = net.start("netdyno sessions --on tx0 --to 198.18.0.2:80 --rate 20kcps --rto 2s --json");
    clients.until_it_says("opening connections");
    for _ in 0..40 {
        net.run("curl -s --max-time 10 -o /dev/null http://198.18.0.2/").ok();
    }
    clients.signal("INT");
    let report = clients.wait().ok().json();
    adds_up(&report);
    // Its ports begin at 32768 where nobody has said otherwise.
    assert_eq!(count(&report, "tuples"), 32_768 - 1024);
    assert_eq!(count(&report, "failed"), 0);
    interrupted(server);
}

/// What the router's connection tracking counts.
fn tracked(net: &Net) -> u64 {
    let counted = at_router(net, "cat /proc/sys/net/netfilter/nf_conntrack_count").ok().stdout;
    counted.trim().parse().expect("a number")
}

#[test]
fn held_connections_are_those_that_conntrack_has_and_those_that_fail_when_used_again_are_counted() {
    let net = through_a_router(
        "table ip t {\n chain a { type filter hook forward priority 10; ct state new counter\n }\n}\n",
    );
    let server = serving(&net, "--requests 100");
    let line =
        "netdyno sessions --on tx0 --to 198.19.0.2:80 --connections 2k --hold 4s --use-again --rto 2s --json";
    let clients = net.start(line);
    eventually("all are open", || tracked(&net) == 2000);
    // From now on those of 500 ports are turned away.
    at_router(&net, "nft add rule ip t a tcp sport 1024-1523 counter reject with tcp reset").ok();
    let report = clients.wait().with(1).json();
    adds_up(&report);
    let held = &sessions(&report)["held"];
    let of_held = ["asked", "held", "used_again", "answered_again"].map(|name| number(&held[name]));
    assert_eq!(of_held, [2000, 2000, 2000, 1500], "{held}");
    assert_eq!([count(&report, "finished"), count(&report, "reset")], [1500, 500]);
    let said = reasons(&report);
    assert!(
        said.iter().any(|said| said == "1,500 of 2,000 connections that were used again were answered"),
        "{said:?}"
    );
    interrupted(server);
}

#[test]
fn held_connections_are_closed_at_an_interrupt() {
    let net = hosts();
    for (close, counted) in [("fin", "finished"), ("rst", "resets")] {
        let server = serving(&net, "--requests 100");
        let line = format!(
            "netdyno sessions --on tx0 --to 198.18.0.2:80 --connections 20k --close {close} --rto 2s --json"
        );
        let mut clients = net.start(line);
        clients.until_it_says("opening connections");
        std::thread::sleep(std::time::Duration::from_secs(1));
        clients.signal("INT");
        let report = clients.wait().ok().json();
        adds_up(&report);
        let served = interrupted(server);
        let opened = count(&report, "opened");
        assert_eq!([count(&report, "finished"), count(&report, "failed")], [opened, 0]);
        assert_eq!(number(&served["result"]["sessions_served"][counted]), opened);
    }
}

#[test]
fn curl_gets_the_whole_answer_of_the_server_without_state() {
    let net = hosts();
    for size in [0, 1, 100, 200] {
        let server = serving(&net, &format!("--response-size {size}"));
        for _ in 0..5 {
            let page = net.run("curl -s --max-time 10 http://198.18.0.2/").ok();
            assert_eq!(page.stdout, "netdyno\n".repeat(30)[..size]);
        }
        let served = interrupted(server);
        let there = &served["result"]["sessions_served"];
        assert_eq!(number(&there["bad_cookies"]) + number(&there["without_room"]), 0, "{there}");
        assert!(number(&there["finished"]) >= 5, "{there}");
    }
}

#[test]
fn a_closed_port_and_a_silent_host_are_counted_and_are_short() {
    let net = hosts();
    let line = "netdyno sessions --on tx0 --to 198.18.0.2:81 --count 50 --json";
    let report = net.run(line).with(1).json();
    adds_up(&report);
    assert_eq!([count(&report, "opened"), count(&report, "reset")], [50, 50]);
    let rules = "nft add table inet t; nft add chain inet t in { type filter hook input priority 0; }; nft add rule inet t in tcp dport 82 counter drop";
    std::fs::write(net.file("drop.nft"), rules.replace("nft ", "").replace("; add", "\nadd")).expect("rules");
    net.run_there(format!("nft -f {}", net.file("drop.nft"))).ok();
    let line = "netdyno sessions --on tx0 --to 198.18.0.2:82 --count 50 --timeout 500ms --rto 100ms --json";
    let report = net.run(line).with(1).json();
    adds_up(&report);
    assert_eq!(reasons(&report), ["50 of 50 connections did not finish: 50 timed out"]);
    assert_eq!([count(&report, "timed_out"), count(&report, "resets_sent")], [50, 50]);
}

#[test]
fn clients_of_the_links_own_network_are_taken_only_where_nobody_answers_for_them() {
    let net = hosts();
    net.run_there("ip addr add 198.18.0.70/32 dev rx0").ok();
    let with = |clients: &str| {
        format!("netdyno sessions --on tx0 --to 198.18.0.2:80 {clients} --count 50 --in-flight 5 --json")
    };
    net.run(with("--clients 198.18.0.64/28")).refused(&[
        "--clients",
        "198.18.0.70 is the address of another host",
        "--yes-disrupt tx0",
    ]);
    net.run(with("--clients 198.18.0.70")).refused(&["198.18.0.70 is the address of another host"]);
    let server = serving(&net, "");
    for clients in
        ["--clients 198.18.0.80/28", "--clients 198.18.0.64/28 --yes-disrupt tx0", "--clients 198.18.0.1"]
    {
        let report = net.run(with(clients)).ok().json();
        assert_eq!(count(&report, "finished"), 50, "{clients}");
    }
    interrupted(server);
    // So many are not asked for.
    net.run("ip addr add 198.19.0.1/16 dev tx0").ok();
    net.run(with("--clients 198.19.128.0/20")).refused(&["--clients", "1024", "--yes-disrupt tx0"]);
    let of_link = "netdyno sessions --on tx0 --to [fe80::7]:80 --clients fe80::aaaa:0/112 --count 1";
    net.run(of_link).refused(&["--clients", "1024", "--yes-disrupt tx0"]);
    net.run(with("--mac ff:ff:ff:ff:ff:ff")).refused(&["--mac", "group"]);
}

#[test]
fn what_cannot_be_is_refused_before_anything_leaves() {
    let net = hosts();
    let refused = |line: &str, words: &[&str]| {
        net.run(format!("netdyno sessions {line}")).refused(words);
    };
    refused("--on tx0 --to 198.18.0.1:80 --count 1", &["address of this host"]);
    refused("--on tx0 --to 8.8.8.8:80 --count 1", &["public address", "--allow-public-target"]);
    refused("--on tx0 --to 198.18.0.2:80 --rate 5mbps", &["--rate", "connections per second"]);
    refused("--on tx0 --to 198.18.0.2:80 --clients 198.18.0.0/24", &["--clients", "server's address"]);
    refused("--on tx0 --to [2001:4860::2]:80 --count 1", &["public address", "--allow-public-target"]);
    refused(
        "--on tx0 --to [2001:db8::2]:80 --clients 2600::/64 --count 1",
        &["--clients", "public addresses"],
    );
    refused("--on tx0 --to [2001:db8::2]:80 --count 1", &["no address to reach", "--clients"]);
    refused("--on tx0 --to [2001:db8::2]:80 --clients 10.1.0.0/24", &["--clients", "server's family"]);
    refused("--on tx0 --to 198.18.0.2:80 --vlan 100 --clients 10.1.0.0/24", &["--mac", "--vlan"]);
    refused("--on tx0 --to 198.18.0.2:80 --vlan 100 --mac 02:00:00:00:00:09", &["--clients", "VLAN"]);
    refused("--on tx0 --to 198.18.0.2:80 --in-flight 90000", &["--in-flight", "tuples"]);
    refused("--on tx0 --to 198.18.0.2:80 --connections 90000", &["--connections", "tuples"]);
    refused("--on tx0 --to 198.18.0.2:80 --hold 1s --count 1", &["--hold", "--connections"]);
    refused("--on tx0 --to 198.18.0.2:80 --requests 2 --close server --count 1", &["--close", "fin or rst"]);
    refused("--on tx0 --to 198.18.0.2:80 --think 1s", &["--think", "--requests"]);
    // Another host of the link has that address.
    net.run_there("netdyno sessions serve --on rx0 --listen 198.18.0.1:80").refused(&[
        "--listen",
        "another host",
        "--yes-disrupt",
    ]);
    refused("--on nothing --to 198.18.0.2:80", &["nothing"]);
}

#[test]
fn an_interrupt_ends_in_order_and_a_kill_leaves_nothing() {
    let net = hosts();
    let server = serving(&net, "");
    let mut clients = net.start("netdyno sessions --on tx0 --to 198.18.0.2:80 --rate 5kcps --json");
    clients.until_it_says("opening connections");
    std::thread::sleep(std::time::Duration::from_millis(300));
    clients.signal("INT");
    // Without an end of its own it was not cut short.
    let report = clients.wait().ok().json();
    adds_up(&report);
    assert!(count(&report, "opened") > 0);

    let mut clients = net.start("netdyno sessions --on tx0 --to 198.18.0.2:80 --rate 5kcps");
    clients.until_it_says("opening connections");
    clients.signal("KILL");
    server.signal("KILL");
    clients.wait();
    server.wait();
    eventually("no program is left", || {
        let links = [net.run("ip -j -d link show tx0"), net.run_there("ip -j -d link show rx0")];
        links.into_iter().all(|ran| ran.ok().json()[0]["xdp"].is_null())
    });
}

/// Two hosts with a router between them, whose forwarding these rules see; the server is at 198.19.0.2.
pub(super) fn through_a_router(rules: &str) -> Net {
    let device = ::lab::Device { kind: ::lab::Kind::Router, bottleneck: None, loss: None };
    let net = Net::with(&::lab::Options { device: Some(device), gro: true, ..Default::default() });
    std::fs::write(net.file("router.nft"), rules).expect("rules");
    at_router(&net, &format!("nft -f {}", net.file("router.nft"))).ok();
    net
}

pub(super) fn at_router(net: &Net, line: &str) -> Ran {
    let [near, _] = net.lab.device.as_ref().expect("a device");
    start(inside(&near.namespace, line)).wait()
}

/// Address translation, random ports, and one frame of a hundred lost each way.
const TRANSLATES_AND_LOSES: &str = "table ip t {
 chain a { type filter hook forward priority 10; policy accept;
  ct state invalid counter
  numgen random mod 100 == 0 counter drop
 }
 chain post { type nat hook postrouting priority 100; policy accept;
  ip daddr 198.19.0.2 masquerade random,fully-random
 }
}
";

/// Packets of the rule that drops.
pub(super) fn dropped(net: &Net) -> u64 {
    dropped_of(net, "ip")
}

/// The same of a table of this family.
pub(super) fn dropped_of(net: &Net, family: &str) -> u64 {
    let listed = at_router(net, &format!("nft -j list chain {family} t a")).ok().json();
    let mut rules = listed["nftables"].as_array().expect("a list").iter();
    let drops = |rule: &&Value| {
        rule["rule"]["expr"].as_array().is_some_and(|parts| {
            parts.iter().any(|part| part.as_object().is_some_and(|part| part.contains_key("drop")))
        })
    };
    let rule = rules.find(drops).expect("the rule");
    let parts = rule["rule"]["expr"].as_array().into_iter().flatten();
    parts.filter_map(|part| part["counter"]["packets"].as_u64()).next().expect("a counter")
}

#[test]
fn all_connections_finish_through_nat_and_loss_and_each_lost_frame_is_one_sent_again() {
    let net = through_a_router(TRANSLATES_AND_LOSES);
    let server = serving(&net, "");
    let line = "netdyno sessions --on tx0 --to 198.19.0.2:80 --rate 2kcps --count 4000 --rto 500ms --timeout 1m --json";
    let report = net.run(line).ok().json();
    adds_up(&report);
    assert_eq!([count(&report, "finished"), count(&report, "failed")], [4000, 0]);
    let (lost, again) = (dropped(&net), count(&report, "retransmitted"));
    assert!(lost > 100, "{lost} lost");
    // What was sent again although nothing was lost, because the machine was held up, comes twice.
    let twice = count(&report, "duplicates") + count(&report, "unexpected");
    assert!(
        (lost..=lost + twice).contains(&again),
        "{lost} lost, {again} sent again, {twice} twice: {}",
        sessions(&report)
    );
    let served = interrupted(server);
    assert_eq!(number(&served["result"]["sessions_served"]["bad_cookies"]), 0);
}

#[test]
fn tshark_finds_no_fault_in_what_either_end_sends() {
    tshark_approves("", "--count 500");
    tshark_approves("--requests 100", "--count 200 --requests 3");
    tshark_approves("--requests 100", "--connections 200 --use-again");
}

fn tshark_approves(there: &str, here: &str) {
    let net = through_a_router("table ip t {\n}\n");
    let server = serving(&net, &format!("--response-size 4000 {there}"));
    let file = net.file("both.pcap");
    let [near, _] = net.lab.device.as_ref().expect("a device");
    let dump = format!("tcpdump -Z root -n -U -B 32768 -i {} -w {file} tcp", near.interface);
    let mut tcpdump = start(inside(&near.namespace, &dump));
    tcpdump.until_it_says("listening on");
    let line = format!("netdyno sessions --on tx0 --to 198.19.0.2:80 --rate 1kcps {here} --rto 2s --json");
    let report = net.run(line).ok().json();
    let frames_sent = number(&report["result"]["tx"]["frames"]) + number(&report["result"]["rx"]["frames"]);
    eventually("all frames are captured", || frames(&file).len() as u64 >= frames_sent);
    tcpdump.signal("INT");
    tcpdump.wait().ok();
    interrupted(server);
    assert_eq!(frames(&file).len() as u64, frames_sent);
    assert_eq!(tshark_complaints(&file), "");
    // As tshark follows connections: nothing lost, out of order, sent again or beyond the window.
    let odd = "tcp.analysis.lost_segment || tcp.analysis.retransmission || tcp.analysis.out_of_order || \
               tcp.analysis.ack_lost_segment || tcp.analysis.window_full || tcp.flags.reset == 1";
    let mut tshark = command("tshark -n -r");
    tshark.args([&file, "-Y", odd]);
    assert_eq!(start(tshark).wait().ok().stdout, "");
}
