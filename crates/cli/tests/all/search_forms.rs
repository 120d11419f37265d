//! Every form of `netdyno search`, run for real against a device in the lab whose truth is known. What searches have in
//! common is in search.rs.
//!
//! The bottleneck is slow and its frames are large, so that a busy machine can keep up with it. What it cannot is "not
//! determined" (search.rs). Searches here are coarse, so that they take few trials: search.rs has exact ones.

use crate::common::*;
use crate::judged::judged;
use serde_json::Value;
use tempfile::TempDir;

/// 20 Mbit/s of 1514 bytes without FCS; 8000 bytes wait, 6000 are saved.
const TRUTH: f64 = 20e6 / (1514.0 * 8.0);
const DEVICE: &str = "--lab --lab-bottleneck 20mbps --lab-queue 8k --lab-burst 6k --size 1518";
/// The same in a lab around the search.
const AROUND: &str = "lab --bottleneck 20mbps --queue 8k --burst 6k";
/// Short trials: a sender is held up in fewer of them.
const COARSE: &str = "--trial-duration 150ms --precision 10% --json";
const COARSE_SECONDS: f64 = 0.15;

fn real(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Of the first frame size.
fn sized(report: &Value) -> &Value {
    &report["result"]["search"]["sizes"][0]
}

/// Is it the bottleneck's rate, as coarse trials see it? If that was not determined, is it no more than that?
fn is_the_rate(found: &Value, determined: bool) {
    if !determined && found.is_null() {
        return;
    }
    let found = real(found);
    let most = TRUTH + 14_000.0 / 1514.0 / COARSE_SECONDS;
    let least = if determined { TRUTH * 0.89 } else { 0.0 };
    assert!((least..most * 1.01).contains(&found), "{found}, the truth is {TRUTH} to {most}");
}

#[test]
fn latency_and_bursts_search_the_throughput_first() {
    searching();
    let latency = format!("netdyno search latency {DEVICE} {COARSE} --max 40mbps --repetitions 1");
    let (report, determined) = run(latency).searched();
    let found = sized(&report);
    is_the_rate(&found["throughput"][0]["frames_per_second"], determined);
    let at = &found["latency"][0];
    if !determined && at.is_null() {
        return;
    }
    assert_eq!(at["frames_per_second"], found["throughput"][0]["frames_per_second"]);
    // Frames are sent evenly, so that what differs in delay is what differs from frame to frame.
    let steps = ["frame_to_frame_typical_ns", "frame_to_frame_worst_ns", "frame_to_frame_max_ns"];
    let [typical, worst, most] = steps.map(|name| number(&at[name]));
    assert!(typical <= worst && worst <= most && most <= number(&at["max_ns"]), "{at}");
    assert!(number(&at["jitter_ns"]) <= most, "{at}");
    let parts: Vec<_> =
        report["result"]["trials"].as_array().expect("trials").iter().map(|t| &t["part"]).collect();
    assert_eq!(parts.last().expect("a trial"), &"latency");
    assert!(parts.iter().filter(|part| **part == "throughput").count() > 1, "{parts:?}");

    let burst = format!(
        "netdyno search burst {DEVICE} {COARSE} --max 40mbps --max-burst 40 --repetitions 1 --step 2 --method bisect"
    );
    let (report, determined) = run(burst).searched();
    let burst = &sized(&report)["burst"];
    is_the_rate(&burst["throughput_frames_per_second"], determined);
    if !determined && burst["frames"].is_null() {
        return;
    }
    assert_eq!((number(&burst["step_frames"]), number(&burst["longest_tried_frames"])), (2, 40));
    is_the_burst(real(&burst["frames"]["mean"]), real(&burst["burst_frames_per_second"]), determined);
}

#[test]
fn a_load_is_soaked_in_and_judged() {
    searching();
    let soak = format!("netdyno search soak {DEVICE} --trial-duration 250ms");
    let report = run(format!("{soak} --rate 10mbps --json")).json();
    assert_passed(&report["result"]["trials"][0], 207);
    let report = run(format!("{soak} --rate 30mbps --json")).with(1).json();
    let (row, said) = (&report["result"]["trials"][0], reasons(&report).join("; "));
    if judged(!says_nothing(row)) {
        assert!(said.contains("loss (") && said.contains(" lost)"), "{said}");
    } else {
        assert!(said.contains("sender"), "{said}");
    }
}

#[test]
fn several_pairs_and_both_ways_are_loaded_at_once() {
    searching();
    // One of two cables has the device; the load is that of each pair.
    let pairs = format!(
        "netdyno {AROUND} --cables 2 -- netdyno search throughput --on tx0 --measure rx0 --on tx1 --measure rx1 \
         --size 1518 --max 40mbps --method bisect {COARSE}"
    );
    let (report, determined) = run(pairs).searched();
    is_the_rate(&report["result"]["throughput"]["frames_per_second"], determined);
    let trial = &report["result"]["trials"][0];
    let of_one = (real(&trial["load"]) * COARSE_SECONDS).round();
    let more = real(&trial["intended_frames"]) - 2.0 * of_one;
    // A sender that was held up took longer, and should have sent as many more.
    assert!(more >= -4.0 && (more <= 4.0 || real(&trial["shortfall_ratio"]) > 0.0), "{trial}");
    let both =
        format!("netdyno search throughput {DEVICE} --both-ways --max 40mbps --method bisect {COARSE}");
    let (report, determined) = run(both).searched();
    is_the_rate(&report["result"]["throughput"]["frames_per_second"], determined);
    let interfaces = report["resolved"]["interfaces"].to_string();
    assert_eq!(interfaces, r#"["tx0","rx0","rx0","tx0"]"#);
}

#[test]
fn a_router_is_reached_by_its_gateway() {
    searching();
    let routed = format!(
        "netdyno {AROUND} --dut router -- netdyno search throughput --on tx0 --measure rx0 \
         --gateway 02:00:00:00:01:01 --size 1518 --max 40mbps {COARSE}"
    );
    let (report, determined) = run(routed).searched();
    is_the_rate(&report["result"]["throughput"]["frames_per_second"], determined);
}

#[test]
fn a_mix_of_sizes_is_found_by_its_bits() {
    searching();
    let mix = format!("netdyno search throughput {} {COARSE}", DEVICE.replace("1518", "imix"));
    let (report, determined) = run(mix).searched();
    if !determined && report["result"]["throughput"].is_null() {
        return;
    }
    let bits = real(&report["result"]["throughput"]["bits_per_second"]);
    let least = if determined { 20e6 * 0.88 } else { 0.0 };
    // What waits and what was saved goes through besides: 14,000 bytes.
    assert!((least..20.4e6 + 14_000.0 * 8.0 / COARSE_SECONDS).contains(&bits), "{bits}");
    assert_eq!(report["result"]["throughput"]["frame_size"], "imix");
}

#[test]
fn bursts_are_an_axis_and_any_goal_goes_with_any_axis() {
    searching();
    let bursts = "netdyno search throughput --lab --lab-bottleneck 20mbps --lab-burst 6k --size 1518 --axis burst --rate 5mbps \
         --max 40mbps --max-burst 40 --trial-duration 250ms --json";
    let (lossless, determined) = run(format!("{bursts} --lab-queue 8k")).searched();
    assert_eq!(lossless["result"]["search"]["axis"], "burst_frames");
    let found = sized(&lossless)["found"].as_f64().unwrap_or(0.0);
    is_the_burst(found, real(&sized(&lossless)["burst_frames_per_second"]), determined);
    // A queue that takes 40 frames makes the last one wait: for 5 ms behind 12,500 bytes, when 6,000 were saved.
    // (How long frames take is this machine's affair, too: no more than so many keep to it.)
    let soon = run(format!("{bursts} --lab-queue 64k --goal loss=0%,max=5ms")).json();
    let found = sized(&soon)["found"].as_f64().unwrap_or(0.0);
    assert!(found <= 32.0, "{found}");
    let failed = soon["result"]["trials"].as_array().expect("trials");
    let late = failed.iter().any(|trial| trial["verdict"] == "latency");
    assert!(judged(late) || failed.iter().any(says_nothing), "{failed:?}");
    // What nothing keeps. (trial searches.rs has each form of variation.)
    for goal in ["ipdv=1ns", "p50=1ns"] {
        let sizes = format!(
            "netdyno search throughput --lab --axis flows --max-flows 4 --rate 2kpps --trial-duration 50ms --goal {goal}"
        );
        let ran = run(sizes).with(1);
        let verdict = if goal.starts_with('p') { "latency" } else { "variation" };
        let determined = judged(!ran.stdout.contains("not determined"));
        let told = ran.stdout.contains("nothing passed") && ran.stdout.contains(verdict);
        assert!(told || !determined && ran.stdout.contains("sender "), "{goal}: {}", ran.stdout);
    }
}

#[test]
fn several_goals_are_searched_for_at_once_and_those_of_others_are_known_by_name() {
    searching();
    let length = "trial=150ms,sum=450ms";
    let search = format!(
        "netdyno search throughput --lab --lab-loss 1/300 --size 512 --min 3kpps --max 5kpps --precision 5% --json \
         --goal ndr,{length} --goal pdr,{length} --goal loss=1%,p50=1ns,{length}"
    );
    let report = run(search).with(1).json();
    let found = &sized(&report)["throughput"];
    let reasons = reasons(&report).join("; ");
    // Each goal has an entry with its name at its place, whatever came of it.
    let goals = sized(&report)["goals"].as_array().expect("goals");
    let begins = ["NDR: ", "PDR: ", "loss 1.00 %, p50 "];
    let named =
        |(goal, begins): (&Value, &&str)| goal["goal"].as_str().is_some_and(|goal| goal.starts_with(begins));
    assert!(goals.len() == 3 && goals.iter().zip(&begins).all(named), "{goals:?}");
    // In `throughput` a goal that could not be judged has none: beside other work there are fewer than three.
    if !judged(!reasons.contains("not determined")) {
        return;
    }
    let outcomes: Vec<_> = goals.iter().map(|goal| &goal["outcome"]).collect();
    assert_eq!(outcomes, ["nothing passed", "found", "nothing passed"]);
    // A 300th is more than none and less than half a percent, and nothing takes a nanosecond.
    assert!(found[0].is_null() && found[2].is_null(), "{found}");
    for none in ["no throughput with NDR: loss 0 %", "no throughput with loss 1.00 %"] {
        assert!(reasons.contains(none), "no `{none}` in: {reasons}");
    }
    assert!((real(&found[1]["frames_per_second"]) - 5000.0).abs() < 1e-6, "{found}");
    let goal = "PDR: loss 0.50 %, but in 50.0 % of the time";
    assert_eq!((&found[1]["goal"], &report["result"]["throughput"]["goal"]), (&goal.into(), &goal.into()));
    // After each trial it is known where each goal stands.
    let trials = report["result"]["trials"].as_array().expect("trials");
    assert!(
        trials.iter().all(|trial| trial["bounds"].as_array().is_some_and(|b| b.len() == 3)),
        "{trials:?}"
    );
    let last = &trials.last().expect("a trial")["bounds"];
    assert_eq!((&last[0]["failed"], &last[1]["passed"]), (&report_least(&report), &Value::from(5000.0)));
    run("netdyno search throughput --lab --method bisect --goal loss=0%,sum=3s").refused(&["MLRsearch"]);
}

fn report_least(report: &Value) -> Value {
    sized(report)["least"].clone()
}

#[test]
fn a_sender_goes_before_ordinary_tasks_unless_told_not_to() {
    let mut threads = 0;
    for option in ["", "--no-real-time"] {
        let mut soak = start(command(format!(
            "netdyno search soak --lab --engine packet --rate 1kpps --trial-duration 60s {option}"
        )));
        soak.until_it_says("loads from");
        let policies = || -> Vec<String> {
            let tasks = std::fs::read_dir(format!("/proc/{}/task", soak.pid())).expect("its threads");
            let stats = tasks.flatten().filter_map(|t| std::fs::read_to_string(t.path().join("stat")).ok());
            // proc_pid_stat(5): the 41st field; the second is a name in parentheses.
            let policy = |stat: String| Some(stat.rsplit_once(')')?.1.split_whitespace().nth(38)?.to_owned());
            stats.filter_map(policy).collect()
        };
        if option.is_empty() {
            eventually("a thread is a real-time task", || policies().iter().any(|p| p == "1"));
            // A real-time sender alone has a thread that keeps its core awake: SCHED_IDLE.
            threads = policies().iter().filter(|p| *p != "5").count();
        } else {
            eventually("as many threads run", || policies().len() >= threads);
            assert!(policies().iter().all(|p| p == "0"), "{:?}", policies());
        }
        soak.signal("INT");
        soak.wait().with(1);
    }
}

#[test]
fn a_result_that_is_not_whole_is_refused_and_named() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("result.json");
    let on = format!("netdyno search throughput --continue {}", file.display());
    let ran = run("netdyno search throughput --lab --lab-loss 100% --max 2kpps --min 1kpps --trial-duration 50ms --json")
        .with(1);
    for length in [0, 1, ran.stdout.len() / 2, ran.stdout.len() - 3] {
        std::fs::write(&file, &ran.stdout.as_bytes()[..length]).expect("written");
        run(&on).refused(&["--continue", "result.json"]);
    }
    std::fs::write(&file, ran.stdout.replace("netdyno.report/2", "netdyno.report/9")).expect("written");
    run(&on).refused(&["--continue", "result.json", "netdyno.report/9"]);
}
