//! `netdyno sessions --application udp` and its server: against each other, against sockets of other programs, through a NAT, with tshark on
//! the wire.

use crate::common::*;
use crate::sessions::*;
use crate::sessions_sorts::*;
use serde_json::Value;

/// Over a link that loses nothing.
const UDP: &str = "netdyno sessions --application udp --on tx0 --rto 2s --json";
/// Addresses of the server, over either family, and what `hosts_ipv6` has.
const SERVERS: [(&str, &str); 2] = [("198.18.0.2", "198.18.0.2"), ("2001:db8:5::2", "[2001:db8:5::2]")];

fn serving_udp(net: &Net, options: &str) -> Running {
    serving(net, &format!("--application udp {options}"))
}

fn script(net: &Net, words: &str) -> String {
    std::fs::write(net.file("ends.py"), include_str!("sessions_udp.py")).expect("a script");
    format!("/usr/bin/python3 {} {words}", net.file("ends.py"))
}

/// Datagrams with wrong checksums that the far host got, by its kernel.
fn bad_checksums(net: &Net) -> u64 {
    let counters = net.run_there("cat /proc/net/snmp /proc/net/snmp6").ok().stdout;
    let v6 = counters.lines().find_map(|line| line.strip_prefix("Udp6InCsumErrors")).expect("a counter");
    let v4: Vec<&str> = counters.lines().filter_map(|line| line.strip_prefix("Udp: ")).collect();
    let at = v4[0].split(' ').position(|name| name == "InCsumErrors").expect("a counter");
    let v4 = v4[1].split(' ').nth(at).expect("a value");
    [v4, v6].map(|value| value.trim().parse::<u64>().expect("a number")).iter().sum()
}

#[test]
fn both_ends_tell_the_same_of_every_session_of_udp() {
    let net = hosts_ipv6();
    for (_, server) in SERVERS {
        let serves = serving_udp(&net, &format!("--listen {server} --response-size 500"));
        let report =
            net.run(format!("{UDP} --to {server} --rate 10kcps --count 5000 --request-size 300")).ok().json();
        adds_up(&report);
        for name in ["opened", "established", "finished", "requests", "numbered_answers"] {
            assert_eq!(count(&report, name), 5000, "{name}");
        }
        assert_eq!(sessions(&report)["application"], "udp");
        assert_eq!(number(&sessions(&report)["answer_ns"]["count"]), 5000);
        let served = interrupted(serves);
        let there = &served["result"]["sessions_served"];
        assert_eq!(number(&there["requests"]), 5000);
        assert_eq!(number(&there["request_bytes"]), 5000 * 300);
        assert_eq!(number(&there["answer_bytes"]), 5000 * 500);
        ends_agree(&report, &served);
        assert_eq!(number(&report["result"]["tx"]["frames"]), 5000);
    }
}

#[test]
fn a_socket_that_sends_back_what_comes_gets_as_many_tuples_as_sessions() {
    let net = hosts_ipv6();
    for (address, server) in SERVERS {
        let mut echo = net.start_there(script(&net, &format!("echo {address} 7")));
        echo.until_it_says("listening");
        let report =
            net.run(format!("{UDP} --to {server} --count 2000 --requests 3 --in-flight 20")).ok().json();
        adds_up(&report);
        let all = ["finished", "requests", "answers"].map(|name| count(&report, name));
        assert_eq!(all, [2000, 6000, 6000], "{server}");
        // Its answers are as long as what was sent to it.
        let least = if server.starts_with('[') { 28 } else { 16 };
        assert_eq!(count(&report, "answer_bytes"), 6000 * least);
        echo.signal("INT");
        let heard = echo.wait().ok().json();
        let sent = 6000 + count(&report, "retransmitted");
        assert_eq!([number(&heard["peers"]), number(&heard["datagrams"])], [2000, sent]);
    }
    assert_eq!(bad_checksums(&net), 0);
}

#[test]
fn sockets_are_answered_and_reached_through_each_other_and_nobody_else_is() {
    let net = hosts_ipv6();
    for (address, server) in SERVERS {
        let serves = serving_udp(&net, &format!("--listen {server} --relay"));
        let asked = net.run(script(&net, &format!("ask {address} 7"))).ok().json();
        let served = interrupted(serves);
        let there = &served["result"]["sessions_served"];
        let all = ["requests", "relayed", "bad_cookies", "unexpected"].map(|name| number(&there[name]));
        assert_eq!(all, ["asked", "relayed", "bad", "silent"].map(|name| number(&asked[name])), "{there}");
    }
}

/// Address translation with random ports, and one frame of fifty lost each way.
const TRANSLATES_AND_LOSES: &str = "table ip t {
 chain a { type filter hook forward priority 10; policy accept;
  numgen random mod 50 == 0 counter drop
 }
 chain post { type nat hook postrouting priority 100; policy accept;
  ip daddr 198.19.0.2 masquerade random,fully-random
 }
}
";

#[test]
fn through_nat_and_loss_each_lost_datagram_is_one_sent_again() {
    let net = through_a_router(TRANSLATES_AND_LOSES);
    let server = serving_udp(&net, "");
    let line = "netdyno sessions --application udp --on tx0 --to 198.19.0.2 --rate 2kcps --count 4000 --requests 2 --rto 300ms --timeout 1m --json";
    let report = net.run(line).ok().json();
    adds_up(&report);
    assert_eq!([count(&report, "finished"), count(&report, "failed")], [4000, 0]);
    let (lost, again) = (dropped(&net), count(&report, "retransmitted"));
    assert!(lost > 100, "{lost} lost");
    // What was sent again although nothing was lost, because the machine was held up, comes twice.
    let twice = count(&report, "duplicates");
    assert!((lost..=lost + twice).contains(&again), "{lost} lost, {again} sent again, {twice} twice");
    interrupted(server);
}

/// A NAT whose entries are out of date a second after they were last used.
#[test]
fn what_a_nat_forgot_shows_from_the_servers_side_alone() {
    let net = through_a_router(
        "table ip t {\n chain post { type nat hook postrouting priority 100; ip daddr 198.19.0.2 masquerade random,fully-random\n }\n}\n",
    );
    let server = serving_udp(&net, "--relay");
    let times =
        ["udp_timeout", "udp_timeout_stream"].map(|name| format!("net.netfilter.nf_conntrack_{name}"));
    let line = "netdyno sessions --application udp --on tx0 --to 198.19.0.2 --connections 500 --rto 100ms --timeout 1s --json";
    let held = |report: &Value| {
        ["asked", "held", "used_again", "answered_again"].map(|name| number(&sessions(report)["held"][name]))
    };
    // What is known is reached, each through its translated tuple.
    let report = net.run(format!("{line} --hold 100ms --from-server")).ok().json();
    adds_up(&report);
    assert_eq!(held(&report), [500; 4]);
    for name in &times {
        at_router(&net, &format!("sysctl -qw {name}=1")).ok();
    }
    // From the clients' side all is made anew, and looks as if it had been known.
    let report = net.run(format!("{line} --hold 3s --use-again")).ok().json();
    assert_eq!(held(&report), [500; 4]);
    let report = net.run(format!("{line} --hold 3s --from-server")).with(1).json();
    adds_up(&report);
    assert_eq!(held(&report), [500, 500, 500, 0], "{}", sessions(&report));
    assert_eq!([count(&report, "timed_out"), count(&report, "finished")], [500, 0]);
    let said = reasons(&report);
    assert!(
        said.iter().any(|said| said == "0 of 500 connections that were used again were answered"),
        "{said:?}"
    );
    let served = interrupted(server);
    assert!(number(&served["result"]["sessions_served"]["relayed"]) >= 1000);
}

/// Runs both ends with a capture at the device, which tshark finds no fault with and whose frames are all so.
fn tshark_approves(net: &Net, there: &str, here: &str, of_all: &str) {
    let server = serving_udp(net, there);
    let file = net.file("both.pcap");
    let [near, _] = net.lab.device.as_ref().expect("a device");
    let dump = format!("tcpdump -Z root -n -U -B 32768 -i {} -w {file}", near.interface);
    let mut tcpdump = start(inside(&near.namespace, &dump));
    tcpdump.until_it_says("listening on");
    let report = net.run(format!("{UDP} --rate 1kcps {here}")).ok().json();
    adds_up(&report);
    let sent = number(&report["result"]["tx"]["frames"]) + number(&report["result"]["rx"]["frames"]);
    let shown = |filter: &str| {
        let mut tshark = command("tshark -n -r");
        tshark.args([&file, "-o", "udp.check_checksum:TRUE", "-Y", filter]);
        start(tshark).wait().ok().stdout.lines().count() as u64
    };
    let datagrams = || shown("udp.port == 7");
    eventually("all frames are captured", || datagrams() >= sent);
    tcpdump.signal("INT");
    tcpdump.wait().ok();
    ends_agree(&report, &interrupted(server));
    assert_eq!(datagrams(), sent);
    assert_eq!(tshark_complaints(&file), "");
    // Of IPv4 a datagram may be without a checksum; none of ours is.
    assert_eq!(shown("udp.port == 7 && (udp.checksum == 0 || udp.checksum.status != \"Good\")"), 0);
    assert_eq!(shown(of_all), sent, "{of_all}");
}

#[test]
fn tshark_finds_no_fault_in_any_datagram() {
    for here in ["--count 500 --requests 3 --request-size 999", "--connections 300 --from-server --hold 10ms"]
    {
        let net = through_a_router("table ip t {\n}\n");
        tshark_approves(
            &net,
            "--response-size 1001 --relay",
            &format!("--to 198.19.0.2 {here}"),
            "ip && udp.port == 7",
        );
        let net = through_a_router_of_ipv6("table ip6 t {\n}\n");
        let here = format!("--to [2001:db8:6::2]:7 {here}");
        tshark_approves(&net, "--listen [2001:db8:6::2]:7 --relay", &here, "ipv6 && udp.port == 7");
    }
    for (server, clients) in [("10.7.0.1:7", "10.7.1.0/24"), ("[2001:db8:7::1]:7", "2001:db8:7:1::/120")] {
        let net = through_a_bridge();
        let mac = net.lab.receiver.mac.map(|byte| format!("{byte:02x}")).join(":");
        let there = format!("--listen {server} --vlan 100");
        let here = format!("--to {server} --clients {clients} --mac {mac} --vlan 100 --count 400");
        tshark_approves(&net, &there, &here, "vlan.id == 100 && udp.port == 7");
    }
}

#[test]
fn the_sessions_of_udp_that_a_nat_of_a_lab_holds_are_found_from_its_far_side() {
    let report = run("netdyno search session-capacity --lab --application udp --lab-connections 200 --max 600 --min 10 --rate 2kcps \
                      --settle 100ms --rto 100ms --timeout 1s --json -q")
    .ok()
    .json();
    let found = &report["result"]["sessions_search"];
    let capacity = &found["capacity"];
    assert_eq!([&capacity["connections"], &capacity["failed_connections"]], [200, 201], "{found}");
    let mut relayed = 0;
    for trial in found["trials"].as_array().expect("trials") {
        let of_trial = ["intended_connections", "held", "answered_again"].map(|name| number(&trial[name]));
        let [asked, held, answered] = of_trial;
        assert_eq!([held, answered], [asked.min(200); 2], "{trial}");
        let nat = ["translated", "entries"].map(|name| number(&trial["nat"][name]));
        assert_eq!(nat, [held; 2], "{trial}");
        relayed += answered;
    }
    assert!(number(&report["result"]["sessions_served"]["relayed"]) >= relayed);
}

/// Another program's echo, and a server that was not started to relay, say nothing of a device, and that is said.
#[test]
fn a_server_that_sends_no_relays_is_named_before_any_is_asked_for() {
    let net = hosts_ipv6();
    let line = format!("{UDP} --to 198.18.0.2 --connections 50 --from-server --timeout 1s");
    let server = serving_udp(&net, "--listen 198.18.0.2");
    let report = net.run(&line).with(1).json();
    adds_up(&report);
    assert_eq!([count(&report, "opened"), count(&report, "finished")], [50, 50]);
    assert_eq!(number(&sessions(&report)["held"]["used_again"]), 0);
    let said = reasons(&report);
    assert!(said.iter().any(|said| said.contains("50 had an answer without a cookie")), "{said:?}");
    let search = "netdyno search session-capacity --application udp --from-server --on tx0 --to 198.18.0.2 --max 50 --timeout 1s --json -q";
    let ran = net.run(search);
    // In its result where a trial was carried out before, and as an error otherwise.
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(ran.status != 0 && said.contains("without a cookie"), "{said}");
    interrupted(server);
}

#[test]
fn an_answer_is_no_longer_than_its_request_unless_that_is_asked_for() {
    let net = hosts_ipv6();
    for (size, options, long) in [(16, "", 16), (999, "", 999), (16, "--response-size 1000", 1000)] {
        let server = serving_udp(&net, &format!("--listen 198.18.0.2 {options}"));
        let report = net.run(format!("{UDP} --to 198.18.0.2 --count 100 --request-size {size}")).ok().json();
        assert_eq!(count(&report, "answer_bytes"), 100 * long, "{options}");
        ends_agree(&report, &interrupted(server));
    }
    // Clients that are not private are sent no more than they send, though others are.
    net.run("ip address add 8.8.4.4/32 dev tx0").ok();
    net.run_there("ip route add 8.8.4.4/32 via 198.18.0.1").ok();
    let server = serving_udp(&net, "--listen 198.18.0.2 --response-size 1000");
    let report = net
        .run(format!("{UDP} --to 198.18.0.2 --clients 8.8.4.4 --allow-public-target --count 100"))
        .ok()
        .json();
    assert_eq!(count(&report, "answer_bytes"), 100 * 16);
    interrupted(server);
    net.run_there("ip address add 8.8.8.8/32 dev rx0").ok();
    let line = "netdyno sessions serve --application udp --on rx0 --listen 8.8.8.8:7 --duration 1s";
    let refused = net.run_there(format!("{line} --response-size 1000")).with(2).stderr;
    assert!(refused.contains("--allow-public-clients"), "{refused}");
}

#[test]
fn no_session_of_udp_has_the_tuple_of_an_earlier_one_without_that_being_said() {
    let net = hosts_ipv6();
    let server = serving_udp(&net, "--listen 198.18.0.2");
    let few = "--clients 10.99.0.1";
    let refused = net.run(format!("{UDP} --to 198.18.0.2 {few} --count 60000")).with(2).stderr;
    assert!(refused.contains("49152 tuples") && refused.contains("--clients"), "{refused}");
    let refused = net.run(format!("{UDP} --to 198.18.0.2 {few} --rate 30kcps --duration 2s")).with(2).stderr;
    assert!(refused.contains("60000 sessions"), "{refused}");
    interrupted(server);
}
