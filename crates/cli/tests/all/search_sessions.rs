//! `netdyno search sessions` and `netdyno search session-capacity` through a router whose limit is known, with nftables as the judge.

use super::sessions::{dropped, hosts, nginx, serving, through_a_router};
use crate::common::*;
use crate::judged::judged;
use serde_json::Value;

fn found(report: &Value) -> &Value {
    &report["result"]["sessions_search"]
}

fn real(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

fn trials(report: &Value) -> &Vec<Value> {
    found(report)["trials"].as_array().expect("trials")
}

/// No more than 2,000 new connections a second, and 40 more.
const LIMITS: &str = "table ip t {
 chain a { type filter hook forward priority 10; policy accept;
  ct state new limit rate over 2000/second burst 40 packets counter drop
 }
}
";

/// Whether all but a few trials could be decided, as on a machine with little else to do, and a rate was found. If none was, then because
/// trials could not be decided.
fn decided(found: &Value) -> bool {
    let undecided = found["rate"]["undecided_trials"].as_u64().unwrap_or(0);
    let is_found = found["rate"]["per_second"].is_number();
    assert!(is_found || undecided > 0, "{found}");
    judged(is_found && undecided <= 4)
}

const SEARCH: &str = "netdyno search sessions --on tx0 --to 198.19.0.2:80 --trial-duration 1s --settle 100ms --min 1kcps --max 4kcps \
                      --precision 4% --confirm 2 --timeout 1s";

#[test]
fn a_server_that_answers_with_errors_carries_no_rate() {
    let net = hosts();
    let _nginx = nginx(&net, "198.18.0.2", 100);
    // Each connection is answered and closed in order, and the answer is 404.
    let said =
        net.run(format!("{} --path /nowhere -q", SEARCH.replace("198.19.0.2", "198.18.0.2"))).with(2).stderr;
    assert!(said.contains("none of") && said.contains("finished"), "{said}");
}

#[test]
fn the_rate_of_new_connections_that_a_router_takes_is_found_and_the_search_goes_on() {
    let net = through_a_router(LIMITS);
    let server = serving(&net, "");
    let ran = net.run(format!("{SEARCH} --json -q"));
    let report = ran.json();
    assert_eq!(found(&report)["complete"], true);
    let rate = &found(&report)["rate"];
    let is_decided = decided(found(&report));
    if rate["per_second"].is_null() {
        ran.with(1);
        server.signal("INT");
        server.wait().ok();
        return;
    }
    ran.ok();
    let (passed, failed) = (real(&rate["per_second"]), real(&rate["failed_per_second"]));
    // Of a trial 40 more are taken; and nothing below the limit fails, unless this machine, which the router shares, was held up.
    assert!(passed <= 2041.0 && failed > passed, "{}", found(&report));
    if is_decided {
        assert!(passed >= 1900.0 && failed > 1990.0, "{}", found(&report));
        assert!(failed - passed <= failed * 0.08, "{}", found(&report));
    }
    assert!(number(&rate["passed_trials"]) >= 2, "{rate}");
    assert!(dropped(&net) > 100);
    for trial in trials(&report) {
        let lost = number(&trial["failed"]) + trial["retransmitted"].as_u64().unwrap_or(0);
        match trial["verdict"].as_str() {
            Some("passed") => assert_eq!((lost, &trial["failed"]), (0, &0.into()), "{trial}"),
            Some("failed") => assert!(lost > 0, "{trial}"),
            _ => {}
        }
        assert_eq!(number(&trial["opened"]), number(&trial["finished"]) + number(&trial["failed"]));
    }
    // As if it had been ended after three trials.
    let mut part = report.clone();
    let search = &mut part["result"]["sessions_search"];
    search["complete"] = false.into();
    search["trials"].as_array_mut().expect("trials").truncate(3);
    std::fs::write(net.file("part.json"), part.to_string()).expect("written");
    let on = format!("netdyno search sessions --continue {} --json -q", net.file("part.json"));
    // Whom it connects to is not taken from a file.
    let refused = net.run(&on).with(2).stderr;
    assert!(refused.contains("198.19.0.2:80") && refused.contains("give --to 198.19.0.2:80"), "{refused}");
    let on = format!("{on} --to 198.19.0.2:80");
    let whole = net.run(&on).json();
    assert_eq!(found(&whole)["complete"], true);
    assert_eq!(trials(&whole)[..3], trials(&part)[..]);
    let again = found(&whole)["rate"]["per_second"].as_f64().unwrap_or(0.0);
    assert!(again <= 2041.0, "{}", found(&whole));
    if decided(found(&whole)) {
        assert!(again >= 1900.0, "{}", found(&whole));
    }
    // Trials of other rates are those of another search.
    part["result"]["sessions_search"]["trials"][1]["intended_per_second"] = 1234.0.into();
    std::fs::write(net.file("part.json"), part.to_string()).expect("written");
    let other = net.run(&on).with(2).stderr;
    assert!(other.contains("trial 2 of that result is not the one"), "{other}");
    server.signal("INT");
    server.wait().ok();
}

#[test]
fn a_rate_that_all_passes_and_one_that_none_does_are_said() {
    let net = hosts();
    let server = serving(&net, "");
    let line = "netdyno search sessions --on tx0 --to 198.18.0.2 --trial-duration 200ms --settle 10ms --min 100cps --max 200cps --rto 2s \
                --confirm 1 --timeout 3s --report";
    let report = net.run(format!("{line} {} --json", net.file("out"))).ok().json();
    assert_eq!(real(&found(&report)["rate"]["per_second"]), 200.0);
    assert!(found(&report)["rate"]["failed_per_second"].is_null());
    let page = std::fs::read_to_string(net.file("out/report.html")).expect("a page");
    assert!(page.contains("All trials") && page.contains("New connections"), "no table");
    server.signal("INT");
    server.wait().ok();
    // Nobody answers any more.
    let silent = net.run(format!("{line} {} --mac 02:00:00:00:00:09", net.file("none"))).with(2).stderr;
    assert!(silent.contains("try `netdyno sessions` with the same options first"), "{silent}");
}

/// No more than 300 connections at once.
const HOLDS: &str = "table ip t {
 chain a { type filter hook forward priority 10; policy accept;
  ct state new ct count over 300 counter drop
 }
}
";

#[test]
fn the_connections_that_a_router_holds_are_found_to_the_connection() {
    let net = through_a_router(HOLDS);
    let server = serving(&net, "--requests 100");
    let line = "netdyno search session-capacity --on tx0 --to 198.19.0.2:80 --max 1000 --min 10 --rate 2kcps --settle 300ms --rto 100ms \
                --timeout 1s --close rst --report";
    let report = net.run(format!("{line} {} --json -q", net.file("out"))).ok().json();
    assert_eq!(found(&report)["complete"], true);
    let capacity = &found(&report)["capacity"];
    assert_eq!([&capacity["connections"], &capacity["failed_connections"]], [300, 301], "{}", found(&report));
    assert!(number(&capacity["passed_trials"]) >= 2 && dropped(&net) > 0, "{capacity}");
    for trial in trials(&report) {
        let asked = number(&trial["intended_connections"]);
        let [held, answered] = ["held", "answered_again"].map(|name| number(&trial[name]));
        assert_eq!(trial["verdict"] == "passed", held == asked && answered == asked, "{trial}");
    }
    let page = std::fs::read_to_string(net.file("out/report.html")).expect("a page");
    assert!(page.contains("Connections held") && page.contains("answered again"), "no table");
    server.signal("INT");
    server.wait().ok();
}

/// What the lab's NAT counted in a trial.
fn nat(trial: &Value, name: &str) -> u64 {
    number(&trial["nat"][name])
}

#[test]
fn the_connections_that_a_nat_of_a_lab_holds_are_found_and_its_own_counts_agree() {
    let dir = folder();
    let line = "netdyno search session-capacity --lab --lab-connections 200 --max 600 --min 10 --rate 2kcps --settle 100ms --rto 100ms \
                --timeout 1s --json -q --report";
    let report = run(format!("{line} {}", path(&dir, "out"))).ok().json();
    let capacity = &found(&report)["capacity"];
    assert_eq!([&capacity["connections"], &capacity["failed_connections"]], [200, 201], "{}", found(&report));
    for trial in trials(&report) {
        let [asked, held] = ["intended_connections", "held"].map(|name| number(&trial[name]));
        // Its table was empty before, and keeps what was closed.
        assert_eq!([nat(trial, "translated"), nat(trial, "entries")], [held, held], "{trial}");
        assert_eq!(nat(trial, "over_connections") > 0, asked > 200, "{trial}");
        assert_eq!(held, asked.min(200), "{trial}");
        let others = ["over_rate", "insert_failed", "table_full", "early_dropped"];
        assert!(others.into_iter().all(|name| nat(trial, name) == 0), "{trial}");
    }
    // Nothing came to the server that it had not answered before.
    assert_eq!(number(&report["result"]["sessions_served"]["bad_cookies"]), 0);
    let page = std::fs::read_to_string(path(&dir, "out/report.html")).expect("a page");
    assert!(page.contains("nat took") && page.contains("nat entries"), "no counts of the NAT");
    // As if it had been ended after four trials. Nothing is to be said again of a lab.
    let mut part = report.clone();
    let search = &mut part["result"]["sessions_search"];
    search["complete"] = false.into();
    search["trials"].as_array_mut().expect("trials").truncate(4);
    std::fs::write(path(&dir, "part.json"), part.to_string()).expect("written");
    let on = format!("netdyno search session-capacity --continue {} --json -q", path(&dir, "part.json"));
    let whole = run(on).ok().json();
    assert_eq!(trials(&whole)[..4], trials(&part)[..]);
    assert_eq!(found(&whole)["capacity"]["connections"], 200, "{}", found(&whole));
}

#[test]
fn the_rate_of_new_connections_that_a_nat_of_a_lab_takes_is_found() {
    let line = "netdyno search sessions --lab --lab-new-connections 2kcps --trial-duration 1s --settle 100ms --min 1kcps --max 4kcps \
                --precision 4% --confirm 2 --timeout 1s --json -q";
    let ran = run(line);
    let report = ran.json();
    let rate = &found(&report)["rate"];
    // On a machine that is too busy nothing is decided, and so nothing found.
    if decided(found(&report)) {
        assert_eq!(ran.status, 0, "{}", found(&report));
        let (passed, failed) = (real(&rate["per_second"]), real(&rate["failed_per_second"]));
        assert!(passed <= 2041.0 && failed > passed, "{}", found(&report));
        assert!(passed >= 1900.0 && failed > 1990.0, "{}", found(&report));
    }
    for trial in trials(&report) {
        let [opened, finished] = ["opened", "finished"].map(|name| number(&trial[name]));
        // Each that was answered it had taken, and it took none that was not opened.
        assert!((finished..=opened).contains(&nat(trial, "translated")), "{trial}");
        let again = trial["retransmitted_syns"].as_u64().unwrap_or(0);
        assert!(nat(trial, "over_rate") <= again + opened - finished, "{trial}");
        if trial["verdict"] == "passed" {
            assert_eq!([nat(trial, "translated"), nat(trial, "over_rate")], [opened, 0], "{trial}");
        }
    }
}

#[test]
fn what_a_lab_has_is_not_said_again() {
    let line = "netdyno search sessions --lab";
    for (options, says) in [
        ("--on tx0", "--on"),
        ("--to 198.18.0.2", "--to"),
        ("--mac 02:00:00:00:00:01", "--mac"),
        ("--ports 4", "--ports"),
        ("--lab-impair loss=1%", "--lab-impair"),
        ("--lab-dut router --lab-connections 5", "it is of the device --lab-dut nat"),
        ("--lab-connections 70000", "1 to 65535"),
        ("--lab-new-connections 5mbps", "in connections per second"),
    ] {
        let said = run(format!("{line} {options}")).with(2).stderr;
        assert!(said.contains(says), "{options}: {said}");
    }
}

/// Of UDP a tuple that is used again is no new session to a device that knows it, and passes without one.
#[test]
fn a_search_by_udp_uses_each_tuple_once_and_ends_when_none_is_left() {
    let net = through_a_router(LIMITS);
    let server = serving(&net, "--application udp");
    let line = "netdyno search sessions --application udp --on tx0 --to 198.19.0.2 --trial-duration 1s --settle 100ms --min 1kcps --max 8kcps \
                --precision 10% --confirm 2 --timeout 1s --json -q";
    let ran = net.run(line);
    let report = ran.json();
    let opened: u64 = trials(&report).iter().map(|trial| number(&trial["opened"])).sum();
    for trial in trials(&report) {
        let passed = trial["verdict"] == "passed";
        assert!(!passed || real(&trial["intended_per_second"]) <= 2041.0, "{trial}");
    }
    if found(&report)["complete"] == false {
        ran.with(1);
        let said = report["result"]["verdict"].to_string();
        assert!(said.contains("no new session") && said.contains("--clients"), "{said}");
    }
    assert!(opened < 65_536 - 1024, "{opened}");
    let refused = net.run(line.replace("8kcps", "90kcps")).with(2).stderr;
    assert!(refused.contains("--max") && refused.contains("tuples"), "{refused}");
    let refused = net
        .run("netdyno search session-capacity --application udp --on tx0 --to 198.19.0.2 --max 50 -q")
        .with(2)
        .stderr;
    assert!(refused.contains("--from-server"), "{refused}");
    server.signal("INT");
    server.wait().ok();
}
