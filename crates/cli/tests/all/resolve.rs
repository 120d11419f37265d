//! `send --resolve`: the Ethernet address of the next hop, found.

use crate::common::*;

fn with_addresses() -> Net {
    let net = Net::new();
    net.run_there("ip addr add 198.18.0.2/24 dev rx0").ok();
    net.run_there("ip addr add 2001:db8::2/64 dev rx0 nodad").ok();
    // Not those that an expression has anyway.
    net.run_there("ip link set rx0 address 02:00:00:00:00:22").ok();
    net.run("ip link set tx0 address 02:00:00:00:00:11").ok();
    net
}

/// Sends three frames and gives the Ethernet addresses of those that arrive: destination, source.
fn addresses(net: &Net, expression: &str) -> Vec<[u8; 2]> {
    let tail = |frame: &Vec<u8>| [frame[5], frame[11]];
    // The question itself arrives as well.
    let dump = net.file("resolved.pcap");
    let mut tcpdump = net.start_there(format!("tcpdump -Z root -n -U -Q in -i rx0 -w {dump} udp"));
    tcpdump.until_it_says("listening on");
    net.run(format!("netdyno send {expression} --resolve --on tx0 --topspeed --count 3 --engine packet"))
        .ok();
    eventually("three frames arrived", || frames(&dump).len() >= 3);
    tcpdump.signal("INT");
    tcpdump.wait().ok();
    frames(&dump).iter().map(tail).collect()
}

#[test]
fn the_other_host_is_found_over_both_protocols() {
    let net = with_addresses();
    for expression in
        ["ipv4(dst=198.18.0.2)/udp", "ipv6(dst=2001:db8::2)/udp", "ipv4(dst=198.18.0.2..198.18.0.9)/udp"]
    {
        assert_eq!(addresses(&net, expression), [[0x22, 0x11]; 3], "{expression}");
    }
    // Behind a gateway it is the gateway.
    net.run("ip addr add 198.18.0.1/24 dev tx0").ok();
    net.run("ip route add 203.0.113.0/24 via 198.18.0.2").ok();
    assert_eq!(addresses(&net, "ipv4(dst=203.0.113.5)/udp"), [[0x22, 0x11]; 3]);
}

#[test]
fn what_the_expression_says_stays() {
    let net = with_addresses();
    assert_eq!(addresses(&net, "ether(dst=02:00:00:00:00:77)/ipv4(dst=198.18.0.9)/udp"), [[0x77, 0x11]; 3]);
    assert_eq!(addresses(&net, "ether(src=02:00:00:00:00:66)/ipv4(dst=198.18.0.2)/udp"), [[0x22, 0x66]; 3]);
}

#[test]
fn it_says_what_it_found_and_what_it_cannot_find() {
    let net = with_addresses();
    let send = |expression: &str| {
        net.run(format!("netdyno send {expression} --resolve --on tx0 --topspeed --count 1"))
    };
    send("ipv4(dst=198.18.0.2)/udp").ok().says(&["198.18.0.2 is reached on tx0 by 02:00:00:00:00:22"]);
    send("ipv4(dst=198.18.0.99)/udp").refused(&[
        "--resolve on tx0",
        "nobody on tx0 answers for 198.18.0.99",
        "ether(dst=...)",
    ]);
    send("vlan(vid=3)/ipv4(dst=198.18.0.2)/udp").refused(&["carries a VLAN tag", "ether(dst=...)"]);
    send("arp").refused(&["no IP destination", "ether(dst=...)"]);
}

#[test]
fn with_a_reflector_it_needs_no_ethernet_address_at_all() {
    let net = with_addresses();
    let mut reflector = net.start_there("netdyno reflect --on rx0 --json");
    reflector.until_it_says("reflecting on rx0");
    let send = "netdyno send ipv4(dst=198.18.0.2)/udp --size 64 --on tx0 --topspeed --count 100";
    let report = net.run(format!("{send} --resolve --round-trip --json")).result();
    assert_eq!(number(&report["result"]["rx"]["frames"]), 100);
    reflector.signal("INT");
    let there = reflector.wait().ok().json();
    assert_eq!(number(&there["result"]["reflection"]["reflected_frames"]), 100);
}
