//! `trial` and `search` with tester ports at two agents, on devices whose truth is known.

use crate::agents_send::{agent, both, command, of, run};
use crate::common::{Net, number, reasons, start};
use crate::judged::judged;
use ::lab::{Bottleneck, Device, Kind, Loss, Options, lost_by_rule};
use serde_json::Value;

/// Between the agents' ports.
fn between<'a>(verb: &[&'a str], how: &[&'a str]) -> Vec<&'a str> {
    [verb, &["--on", "tx0@near", "--measure", "rx0@far", "--json"], how].concat()
}

fn device(device: Device) -> Net {
    Net::with(&Options { device: Some(device), ..Options::default() })
}

fn trials(result: &Value) -> &[Value] {
    result["result"]["trials"].as_array().expect("trials")
}

#[test]
fn a_trial_between_agents_counts_what_the_device_between_them_lost() {
    let net = device(Device { kind: Kind::Bridge, bottleneck: None, loss: Some(Loss { frames: 1, of: 50 }) });
    let words = between(
        &["trial", "--rate", "1kpps", "--duration", "1s", "--size", "128,512", "--goal", "loss=5%"],
        &[],
    );
    let result = run(&words, &both(&net)).json();
    let rule =
        lost_by_rule(&net.lab.device.as_ref().expect("a device")[0]).expect("nftables").expect("a rule");
    let sum = |member: &str| trials(&result).iter().map(|trial| number(&trial[member])).sum::<u64>();
    let repeated = sum("repeated");
    let sizes: Vec<_> = trials(&result).iter().filter_map(|trial| trial["frame_size"].as_str()).collect();
    assert_eq!(sizes, ["128", "512"], "{result}");
    for trial in trials(&result) {
        assert_eq!(number(&trial["intended_frames"]), 1000, "{trial}");
        assert_eq!(
            number(&trial["sent_frames"]),
            number(&trial["received_frames"]) + number(&trial["lost_frames"])
        );
        assert_eq!(number(&trial["latency_ns"]["count"]), number(&trial["received_frames"]), "{trial}");
    }
    // A trial that is done again is lost from twice, and told once. What teaches the bridge goes the other way.
    let lost = sum("lost_frames");
    assert!(lost >= 38 && lost <= rule && (repeated > 0 || rule - lost <= 2), "{lost} of {rule}: {result}");
    let learnt = number(&net.run_there("ip -s -j link show rx0").ok().json()[0]["stats64"]["tx"]["packets"]);
    assert!(learnt >= 3, "what is behind the far port is taught to a switch: {learnt}");
    if judged(reasons(&result).is_empty()) {
        assert!(trials(&result).iter().all(|trial| trial["verdict"] == "passed"), "{result}");
    }
    for name in ["near", "far"] {
        assert!(of(&result, name)["clock"]["same_host"] == true, "{result}");
    }
    assert_eq!(result["requested"]["bench"]["links"][0]["on"], "tx0@near", "it can be run again");
    assert_eq!(result["resolved"]["interfaces"], serde_json::json!(["tx0@near", "rx0@far"]));
}

#[test]
fn a_search_between_agents_finds_the_bottlenecks_rate() {
    const TRUTH: f64 = 20e6 / (1514.0 * 8.0);
    let bottleneck = Bottleneck { bits_per_second: 20_000_000, overhead: 0, burst: 6_000, queue: 8_000 };
    let net = device(Device { kind: Kind::Bridge, bottleneck: Some(bottleneck), loss: None });
    let search = ["search", "throughput", "--method", "bisect", "--size", "1518"];
    let how = ["--min", "1kpps", "--max", "2500pps", "--precision", "5%", "--trial-duration", "500ms"];
    let words = between(&search, &how);
    let (result, determined) = run(&words, &both(&net)).searched();
    let found = result["result"]["throughput"]["frames_per_second"].as_f64();
    // What waits and what was saved goes through besides.
    let most = TRUTH + 14_000.0 / 1514.0 / 0.5;
    assert!(found.is_none_or(|found| found < most * 1.005), "{found:?}");
    if determined {
        assert!(found.is_some_and(|found| found > TRUTH * 0.945), "{found:?}: {result}");
        assert!(trials(&result).iter().any(|trial| trial["verdict"] == "loss"), "{result}");
    }
    assert_eq!(result["result"]["agents"].as_array().map(Vec::len), Some(2), "{result}");
}

#[test]
fn what_trials_between_agents_cannot_do_is_refused_and_a_lost_agent_ends_the_search_with_what_it_found() {
    let net = Net::new();
    let agents = both(&net);
    for (verb, how, said) in [
        (
            &["trial", "--rate", "1kpps"][..],
            &["--both-ways"][..],
            "--both-ways: a trial between agents is one job",
        ),
        (&["search", "recovery"], &[], "`search recovery`: it looks at arrivals one by one"),
        (
            &["search", "throughput"],
            &["--on", "tx1@near", "--measure", "rx1@far"],
            "--on several times: a trial between agents",
        ),
        (&["trial", "--rate", "1kpps"], &["--yes-disrupt", "tx0@nobody"], "there is no agent `nobody`"),
    ] {
        run(&between(verb, how), &agents).refused(&[said]);
    }
    let lacking = [agents[0].clone(), ("far", agent(&net.lab.receiver.namespace, "--allow-interface lo"))];
    run(&between(&["trial", "--rate", "1kpps"], &[]), &lacking).refused(&[
        "far: ",
        "rx0",
        "nothing was sent",
    ]);
    // It is there until the first trial is over, and then no more.
    let over = net.file("over");
    let leaves =
        format!("[ ! -e {over} ] || exit 7; {}", agent(&net.lab.receiver.namespace, "--allow-interface rx0"));
    let agents = [agents[0].clone(), ("far", leaves)];
    let words = between(
        &["search", "latency", "--size", "64", "--rate", "1kpps"],
        &["--repetitions", "20", "--trial-duration", "300ms"],
    );
    let mut search = start(command(&words, &agents));
    search.until_it_says(" for 300 ms: ");
    std::fs::write(&over, "").expect("written");
    let result = search.wait().with(1).json();
    assert!(!trials(&result).is_empty() && result["result"]["search"]["complete"] == false, "{result}");
    let said = reasons(&result);
    assert!(
        said.iter().any(|said| said.contains("could not be carried out") && said.contains("far")),
        "{said:?}"
    );
}
