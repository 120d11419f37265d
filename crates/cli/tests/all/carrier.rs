//! Links that are lost: said with time, length and place, by every command.

use crate::common::{Net, Running, eventually, number, reasons};
use serde_json::Value;
use std::time::Duration;

fn events(report: &Value) -> Vec<(String, String)> {
    let events = report["result"]["link_events"].as_array().cloned().unwrap_or_default();
    let word = |event: &Value, name: &str| event[name].as_str().expect("a word").to_owned();
    events.iter().map(|event| (word(event, "interface"), word(event, "what"))).collect()
}

fn has(report: &Value, interface: &str, what: &str) -> bool {
    events(report).contains(&(interface.to_owned(), what.to_owned()))
}

/// Takes rx0 down for `time`, and ends what runs.
fn flap(net: &Net, time: Duration, running: Running) -> Value {
    net.run_there("ip link set rx0 down").ok();
    std::thread::sleep(time);
    net.run_there("ip link set rx0 up").ok();
    std::thread::sleep(Duration::from_millis(100));
    running.signal("INT");
    running.wait().json()
}

#[test]
fn a_link_lost_in_a_run_is_told_with_its_time_its_length_and_both_ends() {
    for engine in ["packet", "afxdp", "xdp"] {
        let net = Net::new();
        let sender = net.start(format!(
            "netdyno send ipv4/udp --on tx0 --measure rx0 --rate 1kpps --duration 60s --engine {engine} --json"
        ));
        net.until_frames_leave();
        let report = flap(&net, Duration::from_millis(300), sender);
        assert!(
            has(&report, "tx0", "carrier_lost") && has(&report, "rx0", "set_down"),
            "{:?}",
            events(&report)
        );
        for event in report["result"]["link_events"].as_array().expect("events") {
            // How late this test's own commands were only makes it longer.
            assert!(number(&event["duration_ns"]) > 250_000_000, "{event}");
        }
        // A reason where frames were lost or refused; else a warning.
        let mut said = reasons(&report);
        let warnings = report["warnings"].as_array().cloned().unwrap_or_default();
        said.extend(warnings.iter().map(|said| said.as_str().expect("text").to_owned()));
        let named = |reason: &&String| {
            reason.starts_with("the link was lost during the run: ")
                && reason.contains("tx0 (send) lost its carrier")
                && reason.contains("rx0 (measure) was set down")
        };
        assert_eq!(said.iter().filter(named).count(), 1, "{engine}: {report}");
    }
}

#[test]
fn a_flap_of_five_milliseconds_is_seen() {
    let net = Net::new();
    let sender = net.start(
        "netdyno send ipv4/udp --on tx0 --measure rx0 --rate 100pps --duration 60s --json --engine packet",
    );
    net.until_frames_leave();
    let report = flap(&net, Duration::from_millis(5), sender);
    assert!(has(&report, "tx0", "carrier_lost") && has(&report, "rx0", "set_down"), "{:?}", events(&report));
}

#[test]
fn a_receiver_a_reflector_and_a_bridge_tell_of_it_too() {
    let net = Net::new();
    for command in ["measure", "reflect"] {
        let mut running = net.start_there(format!("netdyno {command} --on rx0 --json"));
        running.until_it_says("; Ctrl-C");
        net.run("ip link set tx0 down").ok();
        std::thread::sleep(Duration::from_millis(100));
        net.run("ip link set tx0 up").ok();
        std::thread::sleep(Duration::from_millis(100));
        running.signal("INT");
        let report = running.wait().json();
        assert!(has(&report, "rx0", "carrier_lost"), "{command}: {report}");
        assert!(report["warnings"].to_string().contains("rx0"), "{command}: {report}");
    }
    net.run("ip link add far0 type veth peer name far1").ok();
    net.run("ip link set far0 up").ok();
    net.run("ip link set far1 up").ok();
    for command in ["bridge --between tx0 far0", "impair --between tx0 far0 --delay 1ms"] {
        let mut running = net.start(format!("netdyno {command} --json"));
        running.until_it_says("; Ctrl-C");
        net.run("ip link set far1 down").ok();
        std::thread::sleep(Duration::from_millis(100));
        net.run("ip link set far1 up").ok();
        std::thread::sleep(Duration::from_millis(100));
        running.signal("INT");
        let report = running.wait().json();
        assert!(has(&report, "far0", "carrier_lost"), "{command}: {report}");
    }
}

#[test]
fn without_a_carrier_nothing_is_sent_and_the_interface_is_named() {
    let net = Net::new();
    net.run_there("ip link set rx0 down").ok();
    net.run("netdyno send ipv4/udp --on tx0 --rate 1kpps --count 5")
        .refused(&["tx0 has no carrier", "other end"]);
    // What only receives may be there before its cable is, and says so.
    net.run_there("ip link set rx0 up").ok();
    net.run("ip link set tx0 down").ok();
    let report = net.run_there("netdyno measure --on rx0 --duration 100ms --json").ok().json();
    assert!(report["warnings"].to_string().contains("rx0 has no carrier yet"), "{report}");
}

#[test]
fn a_trial_whose_port_goes_down_is_not_judged_and_names_the_port() {
    for (end, fault, what) in [
        ("tx", "ip link set tx0 down", "tx0 (send) was set down"),
        ("tx", "ip link delete tx0", "tx0"),
        ("rx", "ip link set rx0 down", "rx0 (measure) was set down"),
    ] {
        let net = Net::new();
        let trial = net
            .start("netdyno trial --on tx0 --measure rx0 --rate 1kpps --duration 60s --no-learning --json");
        net.until_frames_leave();
        if end == "tx" {
            net.run(fault).ok()
        } else {
            net.run_there(fault).ok()
        };
        std::thread::sleep(Duration::from_millis(300));
        trial.signal("INT");
        let report = trial.wait().with(1).json();
        let said = reasons(&report).join("; ");
        assert!(!said.contains("the device lost") && !said.contains("held up"), "{fault}: {said}");
        assert!(said.contains("the trial is not judged") && said.contains(what), "{fault}: {said}");
        assert_eq!(report["result"]["trials"][0]["verdict"], "port lost");
        assert!(events(&report).iter().any(|(name, _)| what.starts_with(name.as_str())), "{fault}: {report}");
    }
}

#[test]
fn a_search_that_loses_a_port_keeps_what_it_measured() {
    for fault in ["ip link set tx0 down", "ip link delete tx0"] {
        let net = Net::new();
        // Of a loss curve each trial is kept, also one that its sender fell short of.
        let mut search = net.start(
            "netdyno search loss --on tx0 --measure rx0 --max 2kpps --step 50% --trial-duration 5s --retries 0 \
             --no-learning --json",
        );
        // The second trial is under way then, or about to be.
        search.until_it_says(" for 5.00 s: ");
        net.run(fault).ok();
        let report = search.wait().with(1).json();
        assert!(!report["result"]["trials"].as_array().expect("trials").is_empty(), "{report}");
        assert_eq!(report["result"]["search"]["complete"], false);
        let said = reasons(&report).join("; ");
        assert!(said.contains("a port of the tester had no link") && said.contains("tx0"), "{fault}: {said}");
    }
}

#[test]
fn a_run_that_was_stopped_lasted_until_then() {
    for engine in ["packet", "xdp"] {
        let net = Net::new();
        let sender = net.start(format!(
            "netdyno send ipv4/udp --size 1500 --on tx0 --measure rx0 --rate 0.001pps --duration 1h --engine {engine} \
             --json"
        ));
        // More than the kernel itself says at the beginning: the one frame.
        eventually("a frame leaves tx0", || {
            let link = net.run("ip -s -j link show tx0").ok().json();
            number(&link[0]["stats64"]["tx"]["bytes"]) > 1400
        });
        sender.signal("INT");
        let report = sender.wait().with(1).json();
        // A thousand seconds from one frame to the next; no test runs for so long.
        assert!(number(&report["result"]["tx"]["duration_ns"]) < 500_000_000_000, "{report}");
    }
}

#[test]
fn another_program_that_may_drop_frames_before_the_packet_socket_is_told() {
    let net = Net::new();
    let mut other = net.start_there("netdyno measure --on rx0 --drop");
    other.until_it_says("measuring on");
    let ran = net.run("netdyno send ipv4/udp --on tx0 --measure rx0 --rate 1kpps --count 20 --json").with(1);
    let warnings = ran.json()["warnings"].to_string();
    assert!(
        warnings.contains("rx0 has another XDP program") && warnings.contains("counts as lost"),
        "{warnings}"
    );
    other.signal("INT");
    other.wait();
}

#[test]
fn frames_that_the_far_end_has_no_room_for_are_told_before_they_are_sent() {
    let net = Net::new();
    net.run_there("ip link set rx0 mtu 1000").ok();
    let ran = net
        .run("netdyno send ipv4/udp --size 1400 --on tx0 --measure rx0 --rate 1kpps --count 20 --engine xdp --json")
        .with(1);
    let report = ran.json();
    let told =
        "frames of up to 1400 bytes (with FCS) are sent, and rx0, whose MTU is 1000, takes no more than 1018";
    assert!(report["warnings"][0].as_str().is_some_and(|said| said.starts_with(told)), "{report}");
    let said = reasons(&report).join("; ");
    assert!(!said.contains("ring was full") && !said.contains("link was down"), "{said}");
}
