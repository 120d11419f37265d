//! Finding a neighbour's Ethernet address on a real (virtual) cable. Needs root, and `ip` of iproute2.

use lab::{Lab, Namespace};
use netdyno_port::resolve::{Mac, ResolveError, neighbour};
use std::net::IpAddr;
use std::time::Instant;

const THEIRS: Mac = [2, 0, 0, 0, 0, 2];

fn two_hosts() -> Lab {
    Lab::two_hosts(&lab::Options::default()).expect("a lab (as root)")
}

fn ip(namespace: &Namespace, words: &str) {
    let mut ip = namespace.command("ip").expect("the namespace");
    assert!(ip.args(words.split_whitespace()).status().expect("ip, of iproute2").success(), "ip {words}");
}

/// Asks on tx0 of the sender.
fn ask(lab: &Lab, address: &str, source: Option<&str>) -> Result<Mac, ResolveError> {
    let (address, source) = (at(address), source.map(at));
    lab.sender.namespace.run_in(|| neighbour("tx0", address, source)).expect("the sender's namespace")
}

fn at(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

#[test]
fn a_neighbour_on_the_link_answers_arp_with_or_without_an_address_of_ours() {
    let lab = two_hosts();
    ip(&lab.receiver.namespace, "addr add 198.18.0.2/24 dev rx0");
    assert_eq!(ask(&lab, "198.18.0.2", None).expect("an answer"), THEIRS);
    assert_eq!(ask(&lab, "198.18.0.2", Some("198.18.0.1")).expect("an answer"), THEIRS);
    // An address that the neighbour has no way back to: it answers the question from no address.
    assert_eq!(ask(&lab, "198.18.0.2", Some("203.0.113.5")).expect("an answer"), THEIRS);
    ip(&lab.sender.namespace, "addr add 198.18.0.1/24 dev tx0");
    assert_eq!(ask(&lab, "198.18.0.2", None).expect("an answer"), THEIRS);
}

#[test]
fn a_neighbour_on_the_link_answers_a_solicitation_with_or_without_an_address_of_ours() {
    let lab = two_hosts();
    ip(&lab.receiver.namespace, "addr add 2001:db8::2/64 dev rx0 nodad");
    assert_eq!(ask(&lab, "2001:db8::2", None).expect("an answer"), THEIRS);
    ip(&lab.sender.namespace, "addr add 2001:db8::1/64 dev tx0 nodad");
    assert_eq!(ask(&lab, "2001:db8::2", None).expect("an answer"), THEIRS);
    assert_eq!(ask(&lab, "2001:db8::2", Some("2001:db8::1")).expect("an answer"), THEIRS);
}

#[test]
fn behind_a_gateway_it_is_the_gateways_address() {
    let lab = two_hosts();
    ip(&lab.receiver.namespace, "addr add 198.18.0.2/24 dev rx0");
    ip(&lab.receiver.namespace, "addr add 2001:db8::2/64 dev rx0 nodad");
    ip(&lab.sender.namespace, "addr add 198.18.0.1/24 dev tx0");
    ip(&lab.sender.namespace, "addr add 2001:db8::1/64 dev tx0 nodad");
    ip(&lab.sender.namespace, "route add 203.0.113.0/24 via 198.18.0.2");
    ip(&lab.sender.namespace, "route add 2001:db8:1::/64 via 2001:db8::2");
    ip(&lab.sender.namespace, "route add 192.0.2.0/24 via inet6 2001:db8::2");
    for address in ["203.0.113.9", "2001:db8:1::9", "192.0.2.9"] {
        assert_eq!(ask(&lab, address, None).expect(address), THEIRS, "{address}");
    }
}

#[test]
fn what_the_kernel_knows_for_sure_is_not_asked_again() {
    let lab = two_hosts();
    ip(&lab.sender.namespace, "addr add 198.18.0.1/24 dev tx0");
    ip(&lab.sender.namespace, "neigh add 198.18.0.77 lladdr 02:00:00:00:00:77 nud permanent dev tx0");
    let start = Instant::now();
    assert_eq!(ask(&lab, "198.18.0.77", None).expect("known"), [2, 0, 0, 0, 0, 0x77]);
    // Three tries of a second each would have found nobody.
    assert!(start.elapsed().as_millis() < 3000);
    // What it knew once is good enough if nobody answers now.
    ip(&lab.sender.namespace, "neigh add 198.18.0.78 lladdr 02:00:00:00:00:78 nud stale dev tx0");
    assert_eq!(ask(&lab, "198.18.0.78", None).expect("known"), [2, 0, 0, 0, 0, 0x78]);
    assert!(start.elapsed().as_millis() >= 3000);
}

#[test]
fn silence_is_an_error_that_names_the_address_the_interface_and_the_mend() {
    let lab = two_hosts();
    let start = Instant::now();
    let said = ask(&lab, "198.18.0.99", None).expect_err("nobody is there").to_string();
    assert!((3000..300_000).contains(&start.elapsed().as_millis()), "{:?}", start.elapsed());
    assert!(
        said.starts_with("nobody on tx0 answers for 198.18.0.99 (asked 3 times by ARP)")
            && said.contains("ether(dst=...)"),
        "{said}"
    );
    ip(&lab.sender.namespace, "addr add 2001:db8::1/64 dev tx0 nodad");
    ip(&lab.sender.namespace, "route add 2001:db8:1::/64 via 2001:db8::2");
    let said = ask(&lab, "2001:db8:1::9", None).expect_err("nobody is there").to_string();
    assert!(
        said.contains("2001:db8::2, the next hop to 2001:db8:1::9 (asked 3 times by neighbour solicitation)"),
        "{said}"
    );
    let own = ask(&lab, "2001:db8::1", None).expect_err("it is ours").to_string();
    assert!(own.contains("2001:db8::1 is an address of this host"), "{own}");
    let unknown = lab.sender.namespace.run_in(|| neighbour("tx9", at("198.18.0.2"), None));
    assert!(unknown.expect("the namespace").expect_err("no tx9").to_string().contains("no interface 'tx9'"));
}
