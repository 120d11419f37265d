//! Interfaces as they are in a lab. Needs root; without it these tests fail.

use std::net::UdpSocket;

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
    assert!(error.contains("default route") && error.contains("--yes-disrupt tx0"), "{error}");
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
