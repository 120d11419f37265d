//! The doctor in a lab. Needs root; without it these tests fail.

use lab::{Lab, Options};
use netdyno_port::doctor::{Area, Diagnosis, Finding, State, diagnose};
use rustix::thread::{CapabilitySet, CapabilitySets};

fn diagnose_sender(lab: &Lab) -> Diagnosis {
    lab.sender.namespace.run_in(|| diagnose(Some("tx0"))).unwrap().unwrap()
}

fn finding<'a>(diagnosis: &'a Diagnosis, topic: &str) -> &'a Finding {
    let found = diagnosis.findings.iter().find(|finding| finding.topic == topic);
    found.unwrap_or_else(|| panic!("nothing about {topic} in\n{}", diagnosis.text()))
}

fn rate(diagnosis: &Diagnosis, engine: &str) -> Option<f64> {
    diagnosis.outlook.iter().find(|outlook| outlook.engine == engine).unwrap().frames_per_second
}

#[test]
fn a_fresh_lab_is_not_called_bad_and_what_its_peer_needs_for_live_frames_is_said() {
    let lab = Lab::two_hosts(&Options::default()).unwrap();
    let diagnosis = diagnose_sender(&lab);
    let transmit = finding(&diagnosis, "XDP transmit");
    assert_eq!(transmit.state, State::Note, "a meter at the peer mends it: {transmit:?}");
    assert!(transmit.command.as_ref().unwrap().ends_with("gro on"), "{transmit:?}");
    assert!(
        transmit.means.contains("`.measure` rx0") || transmit.means.contains("`.measure` PEER"),
        "{transmit:?}"
    );
    let of_the_cable = diagnosis.findings.iter().filter(|finding| finding.area == Area::Interface);
    assert_eq!(of_the_cable.filter(|finding| finding.state == State::Bad).count(), 0, "{}", diagnosis.text());
    for engine in ["xdp", "afxdp", "packet"] {
        assert!(rate(&diagnosis, engine).unwrap() > 1e4, "{engine}");
    }
    for bad in diagnosis.findings.iter().filter(|finding| finding.state == State::Bad) {
        assert!(bad.command.is_some(), "bad without a remedy: {bad:?}");
    }
}

#[test]
fn once_the_peer_takes_them_the_xdp_engine_is_the_fastest() {
    let lab = Lab::two_hosts(&Options { gro: true, ..Options::default() }).unwrap();
    let diagnosis = diagnose_sender(&lab);
    assert!(!diagnosis.findings.iter().any(|finding| finding.topic == "XDP transmit"));
    assert!(rate(&diagnosis, "xdp") > rate(&diagnosis, "afxdp"));
    assert!(rate(&diagnosis, "afxdp") > rate(&diagnosis, "packet"));
}

#[test]
fn an_interface_that_is_down_has_no_rate_and_a_command() {
    let lab = Lab::two_hosts(&Options::default()).unwrap();
    let mut command = lab.sender.namespace.command("ip").unwrap();
    assert!(command.args(["link", "set", "tx0", "down"]).status().unwrap().success());
    let diagnosis = diagnose_sender(&lab);
    let link = finding(&diagnosis, "link");
    assert_eq!((link.state, link.command.as_deref()), (State::Bad, Some("sudo ip link set tx0 up")));
    assert!(diagnosis.outlook.iter().all(|outlook| outlook.frames_per_second.is_none()));
}

#[test]
fn a_short_mtu_is_noticed_with_the_longest_frame() {
    let lab = Lab::two_hosts(&Options { mtu: 900, ..Options::default() }).unwrap();
    assert_eq!(finding(&diagnose_sender(&lab), "MTU").state, State::Note);
    assert!(finding(&diagnose_sender(&lab), "MTU").found.contains("914"));
}

#[test]
fn without_privileges_it_says_what_it_could_not_see_and_how_to_allow_it() {
    let lab = Lab::two_hosts(&Options::default()).unwrap();
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    // Capabilities are a thread's own.
    let unprivileged = || {
        rustix::thread::set_capabilities(None, none).unwrap();
        diagnose(Some("tx0"))
    };
    let diagnosis = lab.sender.namespace.run_in(unprivileged).unwrap().unwrap();
    for topic in ["XDP programs", "XDP live frames", "AF_XDP sockets", "packet sockets"] {
        let unseen = finding(&diagnosis, topic);
        assert_eq!((unseen.state, unseen.command.as_deref()), (State::Unknown, Some("sudo netdyno doctor")));
    }
    assert!(finding(&diagnosis, "capabilities").found.contains("CAP_NET_RAW"));
    assert_eq!(finding(&diagnosis, "link").state, State::Good);
}

#[test]
fn the_text_fits_eighty_columns_and_names_every_finding() {
    let lab = Lab::two_hosts(&Options::default()).unwrap();
    let diagnosis = diagnose_sender(&lab);
    let text = diagnosis.text();
    for line in text.lines() {
        assert!(line.chars().count() <= 80 || line.trim_start().starts_with('$'), "{line}");
    }
    for finding in &diagnosis.findings {
        assert!(!finding.means.is_empty() && text.contains(&finding.topic), "{finding:?}");
    }
    assert!(text.contains("\n  packet "), "{text}");
}

#[test]
fn an_unknown_interface_is_an_error_that_lists_those_there_are() {
    let lab = Lab::two_hosts(&Options::default()).unwrap();
    let error = lab.sender.namespace.run_in(|| diagnose(Some("tx1"))).unwrap().unwrap_err().to_string();
    assert!(error.contains("did you mean 'tx0'") && error.contains("lo, tx0"), "{error}");
}
