//! `netdyno search flows`: what probes record of flows that are known, by real probes in a lab.

use crate::common::{Ran, command, folder, path, run, start};
use serde_json::Value;

const LAB: &str = "netdyno search flows --lab --no-real-time --trial-duration 2s --seed 5";
/// By the engine that sleeps between frames: the fastest keeps a core busy, which the probes of all these tests share.
const QUIETLY: &str = "--engine packet";

fn search(arguments: &str) -> Ran {
    let engine = if arguments.contains("--engine") { "" } else { QUIETLY };
    run(format!("{LAB} {engine} {arguments} --json --quiet"))
}

/// Trials whose load this machine offered: of the others nothing is known.
fn judged(report: &Value) -> Vec<&Value> {
    let trials = report["result"]["trials"].as_array().expect("trials");
    let of_the_tester = ["sender short", "sender uneven", "receiver lost", "unconfirmed"];
    trials
        .iter()
        .filter(|trial| !of_the_tester.contains(&trial["verdict"].as_str().expect("a verdict")))
        .collect()
}

fn number(flows: &Value, name: &str) -> u64 {
    flows[name].as_u64().unwrap_or_else(|| panic!("{name} in {flows}"))
}

/// Where the losses of a trial are said to be: at the port, in the cache, in export.
fn lost(flows: &Value) -> [u64; 3] {
    ["port_lost_packets", "cache_lost_flows", "export_lost_records"].map(|name| number(flows, name))
}

/// Everything of a probe that loses nothing and says nothing wrong.
fn is_whole(flows: &Value) {
    assert_eq!(number(flows, "recorded_flows"), number(flows, "sent_flows"), "{flows}");
    assert_eq!(number(flows, "recorded_packets"), number(flows, "sent_packets"), "{flows}");
    assert_eq!(number(flows, "records"), number(flows, "sent_flows"), "{flows}");
    assert_eq!(lost(flows), [0; 3], "{flows}");
    for wrong in [
        "split_records",
        "surplus_packets",
        "foreign_records",
        "late_records",
        "wrong_octets_records",
        "wrong_fields_records",
        "wrong_times_records",
    ] {
        assert_eq!(number(flows, wrong), 0, "{wrong}: {flows}");
    }
}

#[test]
fn probes_record_every_flow_of_a_rate_that_they_bear() {
    for probe in [
        "",
        "--format 9 --order linear",
        "--format 5",
        "--probe softflowd",
        "--probe softflowd --format 5",
        "--probe pmacct --format 9",
    ] {
        let ran = search(&format!("--rates 4kfps {probe}"));
        let report: Value = ran.json();
        for trial in judged(&report) {
            assert_eq!(trial["verdict"], "passed", "{probe}: {trial}");
            let flows = &trial["flows"];
            assert_eq!(number(flows, "sent_flows"), number(trial, "sent_frames"), "{probe}: {trial}");
            assert!(number(flows, "sent_flows") <= number(trial, "intended_frames"), "{probe}: {trial}");
            is_whole(flows);
            assert!(number(flows, "messages") > 0, "{probe}: {flows}");
            // Those of the first half come while the second is sent; others may wait for a full block, and on a busy machine all of
            // them come at once.
            let rate = flows["export_records_per_second"].as_f64();
            let half = number(flows, "sent_flows") as f64 / 2.0;
            assert!(
                probe.starts_with("--probe")
                    || rate.is_some_and(|rate| (0.25 * half..=1.6 * half).contains(&rate)),
                "{probe}: {rate:?} of {half}"
            );
            // One of no records in the time that it is of would be a rate of what came later.
            assert_ne!(rate, Some(0.0), "{probe}: {flows}");
        }
    }
}

#[test]
fn packets_of_flows_are_counted_and_a_rate_is_one_of_flows() {
    let report: Value = search("--rates 1kfps --packets-per-flow 7 --size 128 --engine auto").json();
    for trial in judged(&report) {
        let flows = &trial["flows"];
        is_whole(flows);
        assert_eq!(number(flows, "sent_flows"), number(flows, "sent_packets").div_ceil(7), "{flows}");
        assert_eq!(number(flows, "sent_packets"), number(trial, "sent_frames"), "{trial}");
    }
}

#[test]
fn losses_are_found_where_they_are() {
    // One flow in ten is looked at: the others are nowhere, and no number is missing.
    const NETDYNO: &str = env!("CARGO_BIN_EXE_netdyno");
    let probe = format!(
        "exec {NETDYNO} probe --on {{interface}} --export {{collector}} --idle-timeout {{idle}}s -q >/dev/null"
    );
    let by = |probe: &str| {
        let mut search = command(format!("{LAB} {QUIETLY} --rates 4kfps --json --quiet"));
        search.args(["--command", probe]);
        start(search).wait().json()
    };
    let report: Value = by(&format!("{probe} --sample 10"));
    for trial in judged(&report) {
        let flows = &trial["flows"];
        assert_eq!(trial["verdict"], "loss", "{trial}");
        // No other cause stands beside where they were lost.
        assert!(
            trial["cause"]["said"].as_str().is_some_and(|said| said.contains("inside (its cache)")),
            "{trial}"
        );
        let missing = number(flows, "sent_flows") - number(flows, "recorded_flows");
        assert!(number(flows, "recorded_flows").abs_diff(number(flows, "sent_flows") / 10) <= 2, "{flows}");
        assert_eq!(lost(flows), [0, missing, 0], "{flows}");
    }
    // Every fifth message is lost on its way.
    let rules = "nft flush ruleset && nft add table inet t && nft add chain inet t in \"{ type filter hook input priority 0; }\" && \
        nft add rule inet t in udp dport {port} numgen inc mod 5";
    let report: Value = by(&format!("{rules} 3 drop && {probe}"));
    for trial in judged(&report) {
        let flows = &trial["flows"];
        let missing = number(flows, "sent_flows") - number(flows, "recorded_flows");
        let [port, cache, export] = lost(flows);
        assert!(missing > number(flows, "sent_flows") / 8 && port == 0, "{flows}");
        // What is missing behind the last message that came no number tells.
        assert!(export > missing * 8 / 10 && cache == missing - export, "{flows}");
    }
    // Messages whose first set is one of templates: without them nothing can be read.
    let no_templates = "nft flush ruleset && nft add table inet t && nft add chain inet t in \"{ type filter hook input priority 0; }\" && \
        nft add rule inet t in udp dport {port} @th,192,16 2 drop";
    let report: Value = by(&format!("{no_templates} && {probe}"));
    for trial in judged(&report) {
        assert!(number(&trial["flows"], "unread_sets") > 0, "{trial}");
        assert_eq!(number(&trial["flows"], "recorded_flows"), 0, "{trial}");
    }
    let warnings = report["warnings"].to_string();
    assert!(judged(&report).is_empty() || warnings.contains("whose template did not"), "{warnings}");
    // A probe that is stopped looks at nothing, and its ring holds little: what came later is lost at the port.
    let report: Value = by("exec tcpdump -i {interface} -B 64 -w /dev/null & sleep 0.5; kill -STOP $!; wait");
    for trial in judged(&report) {
        let flows = &trial["flows"];
        let [port, cache, export] = lost(flows);
        // How many are sent is the sender's affair: one that this machine keeps from work lowers the load.
        let sent = number(flows, "sent_flows");
        assert!(port > sent / 2 && port + cache == sent && export == 0, "{flows}");
    }
}

#[test]
fn the_highest_rate_is_found_and_confirmed_and_a_search_goes_on() {
    let dir = folder();
    let to = path(&dir, "found");
    let ran = search(&format!("--max 8kfps --min 1kfps --precision 20% --confirm 2 --report {to}"));
    let report: Value = ran.json();
    let found = &report["result"]["search"]["sizes"][0]["flows"];
    let trials = report["result"]["trials"].as_array().expect("trials");
    // A sender that this machine keeps from work lowers the highest load of a search: then the first trial has that one.
    if trials[0]["verdict"] == "passed" && judged(&report).len() == trials.len() {
        assert_eq!(found["flows_per_second"], trials[0]["load"], "{found} {trials:?}");
        assert!(trials[0]["load"] == 8000.0 || number(&trials[0], "repeated") > 0, "{trials:?}");
        assert_eq!((&found["probe"], &found["key_order"]), (&"netdyno".into(), &"random".into()));
        assert_eq!(number(found, "idle_timeout_ns"), 1_000_000_000);
        let parts: Vec<_> = trials.iter().map(|t| &t["part"]).collect();
        assert_eq!(parts, ["flows", "confirm"]);
        assert_eq!(ran.status, 0, "{}", ran.stderr);
    }
    let page = std::fs::read_to_string(path(&dir, "found/report.html")).expect("a report");
    assert!(page.contains("Flows recorded against flows offered") && page.contains("RFC 6645"), "{to}");
    // As if it had been ended after the first trial: that one is not done again.
    let mut ended = report.clone();
    ended["result"]["trials"].as_array_mut().expect("trials").truncate(1);
    ended["result"]["search"]["complete"] = false.into();
    let file = path(&dir, "ended.json");
    std::fs::write(&file, ended.to_string()).expect("a result");
    let again: Value = run(format!("netdyno search flows --continue {file} --json --quiet")).json();
    let [before, after] =
        [&report, &again].map(|report| report["result"]["trials"].as_array().expect("trials"));
    assert_eq!((after.len() >= 2, &after[0]), (true, &before[0]));
}

#[test]
fn a_probe_that_stands_elsewhere_is_tested() {
    let script = "ip netns exec receiver netdyno probe --on rx0 --export 198.18.0.1:2055 --idle-timeout 1s -q >/dev/null 2>&1 & \
        probe=$!; sleep 1; netdyno search flows --on tx0 --collect 198.18.0.1:2055 --rates 3kfps,3kfps --idle-timeout 1s --trial-duration 2s \
        --no-real-time --json --quiet; code=$?; kill $probe; wait $probe; exit $code";
    let mut lab = command("netdyno lab --addresses -- sh -c");
    lab.arg(script.replace("netdyno", env!("CARGO_BIN_EXE_netdyno")));
    let report: Value = start(lab).wait().json();
    for trial in judged(&report) {
        let flows = &trial["flows"];
        assert_eq!(number(flows, "recorded_flows"), number(flows, "sent_flows"), "{flows}");
        // Of a probe that says nothing of its port nothing is known.
        assert_eq!(number(flows, "late_records"), 0, "{flows}");
    }
}

#[test]
fn what_cannot_be_tested_is_refused() {
    let refused = |arguments: &str, why: &str| {
        let ran = run(format!("netdyno search flows {arguments}"));
        assert_eq!(ran.status, 2, "{arguments}: {}", ran.stderr);
        assert!(ran.stderr.contains(why), "{arguments}: {}", ran.stderr);
    };
    refused("", "--on");
    refused("--on lo", "--collect");
    refused("--lab --rates 1gbps", "100kflows/s");
    refused("--lab --max 40%", "100kflows/s");
    refused("--lab --trial-duration 1s", "twice the idle timeout");
    refused("--lab --rates 1kfps --command false", "the probe ended with status 1");
    refused("--lab --rates 1kfps --command no-such-probe", "was not found");
    refused("--lab --rates 1kfps --probe softflow", "softflowd");
    refused("--lab --cores 2 --rates 1kfps", "--cores");
    refused("--lab --collect 127.0.0.1:9 --rates 1kfps", "cannot be used with");
    let job =
        "{schema: netdyno.job/1, kind: search, find: {flows: {command: 'touch /tmp/x'}}, bench: {lab: {}}}";
    let dir = folder();
    let file = path(&dir, "job.yaml");
    std::fs::write(&file, job).expect("a job");
    let ran = run(format!("netdyno run {file}"));
    assert_eq!(ran.status, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("touch /tmp/x"), "{}", ran.stderr);
}
