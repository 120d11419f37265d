//! `netdyno search socket-buffer` and `netdyno search transactions`: against a server over a cable, in a lab, interrupted and gone on
//! with. What is fast and what is late is the machine's; held to are what was tried, in which order, and what follows from it.

use crate::common::{Net, Ran, Running, number, reasons};
use ::lab::Options;
use serde_json::Value;

fn found(report: &Value) -> &Value {
    &report["result"]["endpoint_search"]
}

fn trials(report: &Value) -> &Vec<Value> {
    found(report)["trials"].as_array().expect("trials")
}

fn real(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

fn hosts() -> (Net, Running, String) {
    let net = Net::with(&Options { addresses: true, ..Options::default() });
    let mut server = net.start_there("netdyno endpoint serve");
    server.until_it_says("serving endpoint tests at");
    let host = net.lab.receiver.address.to_string();
    (net, server, host)
}

/// Not done: why.
fn refused(ran: Ran) -> String {
    assert_eq!((ran.status, ran.stdout.as_str()), (2, ""), "{}", ran.what);
    ran.stderr
}

const BRIEF: &str = "--trial-duration 60ms --warm-up 20ms --json --quiet";

#[test]
fn every_size_is_tried_beside_the_kernels_tuning_and_what_was_granted_is_told() {
    let (net, _server, host) = hosts();
    let sweep = "--buffers 16Ki,64Ki --repetitions 2 --enough 1%";
    for test in ["tcp-stream", "tcp-maerts", "udp-stream --rate 20mbps", "tcp-rr --request 64 --response 64k"]
    {
        let report =
            net.run(format!("netdyno search socket-buffer {host} --test {test} {sweep} {BRIEF}")).json();
        let (f, all) = (&found(&report)["socket_buffer"], trials(&report));
        assert_eq!(found(&report)["complete"], true, "{test}");
        let order: Vec<Option<u64>> = all.iter().map(|trial| trial["buffer_bytes"].as_u64()).collect();
        let once = [None, Some(16_384), Some(65_536)];
        assert_eq!(order, [once, once].concat(), "{test}");
        // The kernel doubles what it is asked for.
        for trial in all.iter().filter(|trial| !trial["buffer_bytes"].is_null()) {
            let twice = 2 * number(&trial["buffer_bytes"]);
            let granted = [&trial["send_buffer_bytes"], &trial["receive_buffer_bytes"]].map(number);
            assert_eq!(granted, [twice, twice], "{test}: {trial}");
        }
        let points = f["points"].as_array().expect("points");
        assert_eq!(points.len(), 3, "{test}");
        let means: Vec<f64> = points.iter().map(|point| real(&point["per_second"])).collect();
        let best = means.iter().copied().fold(0.0, f64::max);
        assert!(best > 0.0 && real(&f["best_per_second"]) == best, "{test}: {f}");
        let enough = points.iter().filter(|point| real(&point["best_ratio"]) >= 0.01);
        let smallest = enough.filter_map(|point| point["buffer_bytes"].as_u64()).min();
        assert_eq!(f["found_bytes"].as_u64(), smallest, "{test}: {f}");
        let is_stream = test.starts_with("tcp-stream") || test.starts_with("tcp-maerts");
        assert_eq!(f["bandwidth_delay_product_bytes"].is_u64(), is_stream, "{test}: {f}");
    }
}

#[test]
fn a_rate_of_transactions_is_found_between_one_that_passed_and_one_that_failed() {
    let (net, _server, host) = hosts();
    for test in ["tcp-rr", "udp-rr"] {
        // A bound that only a stall breaks, so that it is the load that is not carried.
        let asked = "--percentile 50 --below 20ms --precision 50% --confirm 2";
        let report =
            net.run(format!("netdyno search transactions {host} --test {test} {asked} {BRIEF}")).json();
        let (f, all) = (&found(&report)["transactions"], trials(&report));
        assert_eq!((found(&report)["complete"].as_bool(), real(&f["percentile"])), (Some(true), 50.0));
        assert_eq!((&all[0]["stage"], all[0]["intended_per_second"].is_null()), (&"estimate".into(), true));
        assert!(real(&f["closed_loop_per_second"]) == real(&all[0]["per_second"]));
        for trial in &all[1..] {
            let (late, lost) =
                (trial["at_percentile_ns"].as_u64() > Some(20_000_000), !trial["lost"].is_null());
            match trial["verdict"].as_str() {
                Some("passed") => assert!(!late && !lost, "{trial}"),
                Some("latency") => assert!(late, "{trial}"),
                Some("lost") => assert!(lost, "{trial}"),
                verdict => assert_eq!(verdict, Some("not carried"), "{trial}"),
            }
        }
        // A busy machine may pass nothing; then it says so.
        match f["per_second"].as_f64() {
            Some(rate) => {
                let passed = |trial: &&Value| {
                    trial["intended_per_second"].as_f64() == Some(rate) && trial["verdict"] == "passed"
                };
                let passed = all.iter().filter(passed).count() as u64;
                assert!(passed >= 2 && number(&f["passed_trials"]) == passed, "{f}");
                assert!(f["failed_per_second"].as_f64().is_none_or(|failed| failed > rate), "{f}");
            }
            None => assert!(reasons(&report).join(" ").contains("no rate passed"), "{f}"),
        }
    }
}

#[test]
fn in_a_lab_one_command_tries_it_and_writes_a_page_with_plots() {
    let net = Net::new();
    let out = net.dir.path().join("out");
    let brief = format!("--trial-duration 60ms --warm-up 20ms -q --report {}", out.display());
    let limit = "--lab --lab-bottleneck 100mbps";
    let text =
        net.run(format!("netdyno search socket-buffer {limit} --buffers 4Ki..16Ki --repetitions 1 {brief}"));
    let said = text.stdout;
    assert!(
        said.contains("kernel's own")
            && said.contains("16 KiB")
            && said.contains("both ends are on this host"),
        "{said}"
    );
    let page = std::fs::read_to_string(out.join("report.html")).expect("a page");
    assert!(page.contains("Result by socket buffer") && page.contains("<svg"), "no plot");
    let limited = "--p99 100ms --max 200tps --min 20tps --precision 50% --confirm 1";
    let text = net.run(format!("netdyno search transactions --lab {limited} {brief}-rates")).stdout;
    assert!(text.contains("a closed loop with 16 in flight reached"), "{text}");
    let page = std::fs::read_to_string(net.dir.path().join("out-rates/report.html")).expect("a page");
    assert!(page.contains("Latency by rate of transactions"), "no plot");
}

#[test]
fn an_interrupted_search_goes_on_where_it_was_and_with_no_other() {
    let (net, _server, host) = hosts();
    let first = net.dir.path().join("first.json");
    let sweep = format!(
        "netdyno search socket-buffer {host} --buffers 16Ki,64Ki --repetitions 3 --trial-duration 60ms --warm-up 20ms"
    );
    let whole = net.run(format!("{sweep} --json -q")).json();
    // As if it had been ended after four trials.
    let mut part = whole.clone();
    let search = &mut part["result"]["endpoint_search"];
    search["complete"] = false.into();
    search["trials"].as_array_mut().expect("trials").truncate(4);
    std::fs::write(&first, part.to_string()).expect("written");
    let on = format!("netdyno search socket-buffer --continue {} --json -q", first.display());
    let report = net.run(&on).json();
    let (before, after) = (trials(&part), trials(&report));
    assert_eq!((after.len(), &after[..4]), (9, &before[..]));
    assert_eq!(found(&report)["complete"], true);
    let other = refused(net.run(on.replace("socket-buffer", "transactions --p99 1ms")));
    assert!(other.contains("for socket-buffer, not for transactions"), "{other}");
    // Trials in another order are those of another search.
    part["result"]["endpoint_search"]["trials"][1]["buffer_bytes"] = 4096.into();
    std::fs::write(&first, part.to_string()).expect("written");
    let other = refused(net.run(&on));
    assert!(other.contains("trial 2 of that result is not the one"), "{other}");
    let complete = net.dir.path().join("whole.json");
    std::fs::write(&complete, whole.to_string()).expect("written");
    let done = refused(net.run(on.replace("first.json", "whole.json")));
    assert!(done.contains("that search is complete"), "{done}");
}

/// Results in the layout of before searches between endpoints went the way of all searches (commit f7a242dc, whose parent's schema
/// accepts them): each is read, continued with its own trials, and done again.
#[test]
fn results_of_before_all_searches_went_one_way_are_read_and_go_on() {
    let net = Net::new();
    for (kind, old, kept, verdicts) in [
        ("socket-buffer", include_str!("old/socket-buffer.json"), 4, ["done"].as_slice()),
        ("transactions", include_str!("old/transactions.json"), 2, &["passed", "latency", "not carried"]),
    ] {
        let path = net.dir.path().join(format!("{kind}.json"));
        std::fs::write(&path, old).expect("written");
        let old: Value = serde_json::from_str(old).expect("JSON");
        let shown = net.run(format!("netdyno report {}", path.display())).stdout;
        assert!(shown.contains("interrupted after"), "{shown}");
        let on = format!("netdyno search {kind} --continue {} --json -q", path.display());
        let report = net.run(&on).json();
        assert_eq!(found(&report)["complete"], true, "{report}");
        assert_eq!(trials(&report)[..kept], trials(&old)[..], "{kind}");
        let done = &trials(&report)[kept..];
        assert!(
            !done.is_empty() && done.iter().all(|trial| verdicts.iter().any(|v| trial["verdict"] == *v)),
            "{report}"
        );
        assert_eq!(report["requested"], old["requested"], "{kind}");
        // A result of a version that kept no jobs, and one of a version to come.
        let changed = |change: &dyn Fn(&mut Value)| {
            let mut other = old.clone();
            change(&mut other);
            std::fs::write(&path, other.to_string()).expect("written");
            refused(net.run(&on))
        };
        let said =
            changed(&|other| drop(other.as_object_mut().and_then(|result| result.remove("requested"))));
        assert!(
            said.contains("it does not say which job it is of") && said.contains("an earlier version"),
            "{said}"
        );
        let said = changed(&|other| other["requested"]["endpoint"]["telepathy"] = true.into());
        assert!(said.contains("there is no member `telepathy`"), "{said}");
    }
    let path = net.dir.path().join("socket-buffer.json");
    std::fs::write(&path, include_str!("old/socket-buffer.json")).expect("written");
    let again = net.run(format!("netdyno rerun {} -q", path.display())).stdout;
    assert!(again.contains("16 KiB"), "{again}");
}

#[test]
fn what_cannot_be_searched_is_refused_with_the_mend() {
    let net = Net::new();
    for (words, says) in [
        ("socket-buffer", "HOST"),
        ("socket-buffer 192.0.2.1 --lab", "cannot be used with"),
        ("socket-buffer 192.0.2.1 --buffers 8k..4k", "a range goes upwards"),
        ("socket-buffer 192.0.2.1 --test tcp-crr", "buffers are tried with"),
        ("socket-buffer unix:/x", "a Unix socket has no receive buffer"),
        ("transactions 192.0.2.1", "--p99"),
        ("transactions 192.0.2.1 --p99 1ms --test tcp-stream", "offered by tcp-rr and udp-rr"),
        ("transactions 192.0.2.1 --p99 1ms --max 5mbps", "transactions per second"),
        ("transactions 192.0.2.1 --percentile 30 --below 1ms", "it is 50 to 100"),
    ] {
        let said = refused(net.run(format!("netdyno search {words}")));
        assert!(said.contains(says), "{words}: {said}");
    }
}
