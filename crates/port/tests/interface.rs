//! Interfaces as they are in a lab. Needs root; without it these tests fail.

use std::net::UdpSocket;
use std::os::fd::{AsFd, AsRawFd};

use lab::{Lab, Namespace, Options};
use netdyno_port::interface::{
    CounterReader, Counters, Disruption, Interface, InterfaceError, disruption, guard, namespace_id,
    xdp_features,
};

fn two_hosts(gro: bool) -> Lab {
    Lab::two_hosts(&Options { addresses: true, queues: 2, gro, ..Options::default() }).unwrap()
}

/// Runs a command on the lab's sender.
fn on_sender(lab: &Lab, words: &str) {
    let mut words = words.split(' ');
    let mut command = lab.sender.namespace.command(words.next().unwrap()).unwrap();
    assert!(command.args(words).status().expect("the tests need iproute2's ip").success());
}

#[test]
fn a_veth_is_described_as_it_was_made() {
    let lab = two_hosts(false);
    let tx0 = lab.sender.namespace.run_in(|| Interface::by_name("tx0")).unwrap().unwrap();
    assert_eq!((tx0.mac, tx0.mtu, tx0.max_frame()), (Some(lab.sender.mac), 1500, 1514));
    assert_eq!(
        (tx0.up, tx0.running, tx0.carrier, tx0.ethernet, tx0.loopback),
        (true, true, true, true, false)
    );
    assert_eq!((tx0.kind.as_deref(), tx0.driver.as_deref(), tx0.device), (Some("veth"), Some("veth"), None));
    assert_eq!((tx0.tx_queues, tx0.rx_queues, tx0.speed_mbps), (2, 2, Some(10_000)));
    assert_eq!((tx0.link_elsewhere, tx0.xdp), (true, None));
    let rx0 = lab.receiver.namespace.run_in(|| Interface::by_name("rx0")).unwrap().unwrap();
    assert_eq!((tx0.link, rx0.link), (Some(rx0.index), Some(tx0.index)));
    let number = |other| lab.sender.namespace.run_in(|| namespace_id(other)).unwrap().unwrap();
    assert!(tx0.link_namespace.is_some());
    assert_eq!(number(&lab.receiver.namespace), tx0.link_namespace);
    assert_eq!(number(&Namespace::new().unwrap()), None);
    on_sender(&lab, "ip link set tx0 down");
    let tx0 = lab.sender.namespace.run_in(|| Interface::by_name("tx0")).unwrap().unwrap();
    assert_eq!((tx0.up, tx0.running, tx0.carrier), (false, false, false));
}

#[test]
fn other_names_find_the_interface() {
    let lab = two_hosts(false);
    let long = "a-name-of-more-than-fifteen-letters";
    on_sender(&lab, &format!("ip link property add dev tx0 altname {long}"));
    let found = lab.sender.namespace.run_in(|| Interface::by_name(long)).unwrap().unwrap();
    assert_eq!(found.name, "tx0");
}

#[test]
fn counters_count_exactly_what_was_sent() {
    let lab = two_hosts(false);
    let open =
        |host: &lab::Host| host.namespace.run_in(|| CounterReader::open(host.interface)).unwrap().unwrap();
    let (mut near, mut far) = (open(&lab.sender), open(&lab.receiver));
    let before = near.read().unwrap();
    let bind =
        |host: &lab::Host| host.namespace.run_in(|| UdpSocket::bind((host.address, 7000))).unwrap().unwrap();
    let (sender, _receiver) = (bind(&lab.sender), bind(&lab.receiver));
    for _ in 0..100 {
        sender.send_to(&[0; 18], (lab.receiver.address, 7000)).unwrap();
    }
    // 14 Ethernet + 20 IPv4 + 8 UDP + 18
    let sent = Counters { tx_packets: 100, tx_bytes: 6000, ..Counters::default() };
    assert_eq!(near.read().unwrap().since(&before), sent);
    let received = Counters { rx_packets: 100, rx_bytes: 6000, ..Counters::default() };
    assert_eq!(far.read().unwrap(), received);
}

#[test]
fn a_veth_declares_that_it_sends_xdp_frames_only_when_its_peer_takes_them() {
    for gro in [false, true] {
        let lab = two_hosts(gro);
        let features = || xdp_features(Interface::by_name("tx0").unwrap().index);
        let features = lab.sender.namespace.run_in(features).unwrap().unwrap();
        let features = features.expect("the tests need Linux 6.3 or later");
        assert_eq!((features.native, features.transmit, features.zero_copy), (true, gro, false));
    }
}

#[test]
fn what_carries_the_default_route_is_refused_unless_named() {
    let lab = two_hosts(false);
    let ask = |what: fn() -> Result<(), InterfaceError>| lab.sender.namespace.run_in(what).unwrap();
    ask(|| guard("tx0", None)).unwrap();
    on_sender(&lab, "ip route add default via 198.18.0.2");
    let error = ask(|| guard("tx0", None)).unwrap_err().to_string();
    assert!(error.contains("default route") && error.contains("`.yes_disrupt` tx0"), "{error}");
    assert!(ask(|| guard("tx0", Some("eth1"))).is_err());
    ask(|| guard("tx0", Some("tx0"))).unwrap();
    ask(|| guard("lo", None)).unwrap();
    assert!(matches!(ask(|| guard("tx9", Some("tx9"))), Err(InterfaceError::Unknown { .. })));
}

#[test]
fn multipath_and_half_default_routes_count_too() {
    for route in [
        "ip route add default nexthop via 198.18.0.2 weight 1 nexthop via 198.18.0.3 weight 1",
        "ip route add 128.0.0.0/1 via 198.18.0.2",
        "ip route add default via 198.18.0.2 table 77",
    ] {
        let lab = two_hosts(false);
        on_sender(&lab, route);
        let found = lab.sender.namespace.run_in(|| disruption("tx0")).unwrap().unwrap();
        assert_eq!(found, Some(Disruption::DefaultRoute), "{route}");
    }
}

#[test]
fn what_shares_a_link_with_the_default_route_is_refused_wherever_it_was_moved() {
    let lab = two_hosts(false);
    on_sender(&lab, "ip link add side0 link tx0 type macvlan mode bridge");
    on_sender(&lab, "ip link add away0 link tx0 type macvlan mode bridge");
    let elsewhere = Namespace::new().unwrap();
    let handle = format!("/proc/{}/fd/{}", std::process::id(), elsewhere.as_fd().as_raw_fd());
    on_sender(&lab, &format!("ip link set away0 netns {handle}"));
    let there = || elsewhere.run_in(|| disruption("away0")).unwrap().unwrap();
    let here = || lab.sender.namespace.run_in(|| disruption("side0")).unwrap().unwrap();
    assert_eq!((here(), there()), (None, None));
    on_sender(&lab, "ip route add default via 198.18.0.2");
    assert_eq!((here(), there()), (Some(Disruption::DefaultRoute), Some(Disruption::DefaultRoute)));
}

/// A namespace, and how `ip link set netns` is told of it.
fn another_namespace() -> (Namespace, String) {
    let namespace = Namespace::new().unwrap();
    let handle = format!("/proc/{}/fd/{}", std::process::id(), namespace.as_fd().as_raw_fd());
    (namespace, handle)
}

#[test]
fn a_cable_into_the_bridge_with_the_default_is_refused_from_wherever_it_comes() {
    let lab = two_hosts(false);
    let (elsewhere, handle) = another_namespace();
    for line in [
        "ip link add br0 type bridge",
        "ip link set br0 up",
        "ip addr add 10.9.0.1/24 dev br0",
        "ip link add near0 type veth peer name port0",
        "ip link add far0 type veth peer name port1",
        "ip link set port0 master br0",
        "ip link set port1 master br0",
    ] {
        on_sender(&lab, line);
    }
    on_sender(&lab, &format!("ip link set far0 netns {handle}"));
    let there = || elsewhere.run_in(|| disruption("far0")).unwrap().unwrap();
    let here = || lab.sender.namespace.run_in(|| disruption("near0")).unwrap().unwrap();
    assert_eq!((here(), there()), (None, None));
    on_sender(&lab, "ip route add default via 10.9.0.2");
    assert_eq!((here(), there()), (Some(Disruption::DefaultRoute), Some(Disruption::DefaultRoute)));
}

#[test]
fn a_tunnel_that_was_moved_is_refused_where_its_packets_leave_by_the_default() {
    for tunnel in
        ["vxlan id 5 remote 198.18.0.2 dstport 4789", "vxlan id 5 group 239.1.1.1 dev tx0 dstport 4789"]
    {
        let lab = two_hosts(false);
        let (elsewhere, handle) = another_namespace();
        on_sender(&lab, &format!("ip link add tun9 type {tunnel}"));
        on_sender(&lab, &format!("ip link set tun9 netns {handle}"));
        let there = || elsewhere.run_in(|| disruption("tun9")).unwrap().unwrap();
        assert_eq!(there(), None, "{tunnel}");
        on_sender(&lab, "ip route add default via 198.18.0.2");
        assert_eq!(there(), Some(Disruption::DefaultRoute), "{tunnel}");
    }
}

#[test]
fn a_default_is_found_however_it_is_written() {
    let quarters: &[&str] = &[
        "ip route add 0.0.0.0/2 via 198.18.0.2",
        "ip route add 64.0.0.0/2 via 198.18.0.2",
        "ip route add 128.0.0.0/2 via 198.18.0.2",
        "ip route add 192.0.0.0/2 via 198.18.0.2",
    ];
    let objects = &[
        "ip nexthop add id 5 via 198.18.0.2 dev tx0",
        "ip route add default nhid 5",
        "sysctl -q -w net.ipv4.nexthop_compat_mode=0",
    ];
    let groups = &[
        "ip nexthop add id 5 via 198.18.0.2 dev tx0",
        "ip nexthop add id 6 via 198.18.0.3 dev tx0",
        "ip nexthop add id 7 group 5/6",
        "ip route add default nhid 7",
        "sysctl -q -w net.ipv4.nexthop_compat_mode=0",
    ];
    let global = &["ip route add 2000::/3 dev tx0"];
    let tunnel = &[
        "ip link add vx0 type vxlan id 5 remote 198.18.0.2 dstport 4789",
        "ip addr add 10.9.0.1/24 dev vx0",
        "ip link set vx0 up",
        "ip route add default via 10.9.0.2",
    ];
    let forwarded = &[
        "ip link add vx0 type vxlan id 5 dstport 4789",
        "bridge fdb append 00:00:00:00:00:00 dev vx0 dst 198.18.0.2",
        "ip addr add 10.9.0.1/24 dev vx0",
        "ip link set vx0 up",
        "ip route add default via 10.9.0.2",
    ];
    for way in [quarters, objects, groups, global, tunnel, forwarded] {
        let lab = two_hosts(false);
        let ask = || lab.sender.namespace.run_in(|| disruption("tx0")).unwrap().unwrap();
        assert_eq!(ask(), None);
        way.iter().for_each(|line| on_sender(&lab, line));
        assert_eq!(ask(), Some(Disruption::DefaultRoute), "{way:?}");
    }
}
