//! `netdyno trial` and `netdyno search`, on a device in the lab whose truth is known.
//!
//! The bottleneck is slow and its frames are large, so that a busy machine can keep up with it. Where it cannot, a search
//! says that its result is not determined, and what it says is certain then must be true all the same. How searches get on
//! with a sender that is held up is a test in virtual time: trial tests/all/stalls.rs.

use crate::common::*;
use crate::judged::judged;
use serde_json::Value;
use tempfile::TempDir;

/// 20 Mbit/s of 1514 bytes without FCS.
const TRUTH: f64 = 20e6 / (1514.0 * 8.0);
const DEVICE: &str = "--lab --lab-bottleneck 20mbps --lab-queue 8k --lab-burst 6k --size 1518";

/// It exits with 1 and says so in its result.
fn falls_short(ran: Ran, words: &[&str]) {
    let ran = ran.with(1);
    for word in words {
        assert!(ran.stdout.contains(word), "no `{word}` in: {}", ran.stdout);
    }
}

fn real(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Is it the bottleneck's rate, as trials of so many seconds see it, to the 1 % that was asked for? If that was not
/// determined, is it no more than that?
fn is_the_rate(found: &Value, seconds: f64, determined: bool) {
    if !determined && found.is_null() {
        return;
    }
    let found = real(found);
    // What waits and what was saved goes through besides.
    let most = TRUTH + 14_000.0 / 1514.0 / seconds;
    let least = if determined { TRUTH * 0.985 } else { 0.0 };
    assert!((least..most * 1.005).contains(&found), "{found}, the truth is {TRUTH} to {most}");
}

/// Short trials: a sender is held up in fewer of them.
const EXACT: &str = "--trial-duration 200ms --precision 1%";

/// What both methods say of the bottleneck.
fn finds_the_rate(method: &str, report: &Value, determined: bool) {
    let found = &report["result"]["throughput"];
    is_the_rate(&found["frames_per_second"], 0.2, determined);
    assert_eq!(report["result"]["search"]["complete"], true);
    assert_eq!(report["result"]["search"]["method"], method);
    if !determined {
        assert!(found["reached"] != true, "{found}");
        return;
    }
    let rate = real(&found["frames_per_second"]);
    assert!((real(&found["bits_per_second"]) - rate * 1514.0 * 8.0).abs() < 1.0, "{found}");
    let trials = found["trials"].as_array().expect("trials");
    assert_eq!(report["result"]["trials"].as_array().expect("trials"), trials);
    assert!(trials.len() > 4 && found["reached"] == true, "{found}");
    let failed = trials.iter().find(|trial| trial["verdict"] == "loss").expect("a load too high");
    assert!(real(&failed["loss_ratio"]) > 0.0 && number(&failed["lost_frames"]) > 0, "{failed}");
    assert_eq!(failed["cause"]["counter"]["name"], "tbf_dropped", "{failed}");
    let stopped = &report["result"]["search"]["sizes"][0]["stopped"];
    assert_eq!((&stopped["at"], &stopped["cause"]["by"]), (&"trial".into(), &"counter".into()), "{stopped}");
    assert_eq!(stopped["cause"]["counter"]["place"], "the lab's dut1", "{stopped}");
}

#[test]
fn what_a_labs_device_lost_is_named_by_the_counter_that_rose() {
    searching();
    let folder = TempDir::new().expect("a folder");
    let twice = "--size 1518 --rate 3300pps --duration 200ms";
    for (device, impair, place, counter) in [
        ("--lab-bottleneck 20mbps --lab-queue 8k --lab-burst 6k", None, "the lab's dut1", "tbf_dropped"),
        ("--lab-loss 1/10", None, "the lab's dut0", "nft_dropped"),
        ("", Some("loss 10%"), "the lab's dut0", "impair_lost"),
        ("--both-ways --lab-loss 1/10", None, "the lab's dut", "nft_dropped"),
        ("--ports 4 --lab-loss 1/10", None, "the lab's dut", "nft_dropped"),
        ("--mesh --lab-loss 1/10", None, "the lab's dut", "nft_dropped"),
    ] {
        let line =
            format!("netdyno trial --lab {device} {twice} --json --report {}", folder.path().display());
        let mut trial = command(&line);
        trial.args(impair.map(|faults| ["--lab-impair", faults]).into_iter().flatten());
        let report = start(trial).wait().with(1).json();
        let row = &report["result"]["trials"][0];
        if !judged(row["verdict"] == "loss") {
            // Of a busy machine's own losses nothing is said here.
            assert!(says_nothing(row), "{row}");
            continue;
        }
        let cause = &row["cause"];
        let told = &cause["counter"];
        assert_eq!((&cause["by"], &told["name"]), (&"counter".into(), &counter.into()), "{device}: {row}");
        assert!(told["place"].as_str().is_some_and(|at| at.starts_with(place)), "{device}: {row}");
        let (rise, lost) = (number(&told["rise"]), number(&row["lost_frames"]));
        assert!(rise > 0 && rise <= lost, "{device}: {row}");
        if device.is_empty() || device.starts_with("--lab") {
            assert_eq!(rise, lost, "{device}: {row}");
        }
        let shown = run(format!("netdyno report {}", folder.path().display())).with(1).stdout;
        let said = unfolded(&shown);
        assert!(said.contains(&format!("Likely cause: {place}")), "{shown}");
        assert!(
            said.contains(&format!(" {counter} rose")) && said.contains("with the same --lab"),
            "{shown}"
        );
        let page = std::fs::read_to_string(folder.path().join("report.html")).expect("a page");
        assert!(page.contains("Likely cause: ") && page.contains(counter), "{device}");
    }
}

#[test]
fn a_sender_that_is_the_limit_is_named_with_what_limits_it() {
    // No machine that this runs on sends so many.
    let trial = "netdyno trial --lab --size 64 --rate 50mpps --duration 150ms";
    let report = run(format!("{trial} --json")).with(1).json();
    let row = &report["result"]["trials"][0];
    assert_eq!(row["verdict"], "sender short", "{row}");
    let by = row["cause"]["by"].as_str().expect("a cause");
    assert!(["cpu", "interface", "machine", "unknown"].contains(&by), "{row}");
    let text = run(trial).with(1).stdout;
    let limited = ["the CPU limits", "the interface limits", "this machine limits", "is not known"];
    assert!(text.contains("Likely cause:") && limited.iter().any(|limit| text.contains(limit)), "{text}");
    assert!(text.contains("Next: "), "{text}");
    let in_a_lab = unfolded(&text).replace("netdyno lab -- netdyno doctor tx0", "");
    assert!(!in_a_lab.contains("doctor tx0"), "the host has no tx0: {text}");
}

#[test]
fn a_search_whose_trials_all_pass_says_what_ended_its_loads() {
    searching();
    let search = "netdyno search throughput --lab --size 1518 --trial-duration 200ms --method bisect";
    let ran = run(format!("{search} --max 500pps --json"));
    let (report, determined) = ran.searched();
    let stopped = &report["result"]["search"]["sizes"][0]["stopped"];
    if determined {
        assert_eq!(stopped["at"], "asked", "{report}");
    }
    let text = run(format!("{search} --max 500pps")).stdout;
    assert!(text.contains("What stopped it: "), "{text}");
    // More than any sender reaches: it is the limit, or what came of its highest load.
    let report = run(format!("{search} --max 50mpps --precision 20% --json")).json();
    let stopped = &report["result"]["search"]["sizes"][0]["stopped"];
    let passed =
        report["result"]["trials"].as_array().expect("trials").iter().all(|t| t["verdict"] == "passed");
    assert_eq!(stopped["at"], if passed { "sender" } else { "trial" }, "{report}");
    assert!(stopped["cause"]["said"].as_str().is_some_and(|said| !said.is_empty()), "{stopped}");
}

#[test]
fn mlrsearch_finds_the_bottlenecks_rate() {
    alone();
    let ran = run(format!("netdyno search throughput {DEVICE} --method mlrsearch {EXACT} --json"));
    let (report, determined) = ran.searched();
    finds_the_rate("mlrsearch", &report, determined);
    ran.says(&["kpps", "left"]);
}

#[test]
fn a_bisection_that_was_interrupted_goes_on_and_finds_the_bottlenecks_rate() {
    alone();
    let folder = TempDir::new().expect("a folder");
    let dir = folder.path().display();
    let search = format!("netdyno search throughput {DEVICE} --method bisect {EXACT} --report {dir}");
    let mut first = start(command(&search));
    first.until_it_says("less than");
    first.signal("INT");
    falls_short(first.wait(), &["interrupted after", "--continue"]);
    let before = report(&folder);
    let done = before["result"]["trials"].as_array().expect("trials").clone();
    assert!(!done.is_empty() && before["result"]["search"]["complete"] == false, "{before}");
    let on = format!("netdyno search throughput --continue {dir} --json");
    let ran = run(&on);
    let (after, determined) = ran.searched();
    let all = after["result"]["trials"].as_array().expect("trials");
    assert_eq!(&all[..done.len()], &done[..]);
    assert!(all.len() > done.len());
    finds_the_rate("bisect", &after, determined);
    ran.says(&["kpps", "left"]);
    // Not of this search, not of this version, not unfinished.
    run(format!("netdyno search loss --continue {dir}")).refused(&["throughput, not for loss"]);
    let file = folder.path().join("result.json");
    let text = std::fs::read_to_string(&file).expect("the result");
    std::fs::write(&file, text.replace("\"duration_ns\": 200000000", "\"duration_ns\": 199999999"))
        .expect("written");
    run(&on).refused(&["--continue: trial 1 ", "another search"]);
    std::fs::write(&file, text.replace("netdyno.job/1", "netdyno.job/9")).expect("written");
    run(&on).refused(&["requested", "another version"]);
    std::fs::write(&file, text.replace("\"complete\": false", "\"complete\": true")).expect("written");
    run(&on).refused(&["is complete"]);
}

/// A search of two sizes that was interrupted as soon as a trial passed, and its report.
fn interrupted_at_a_pass(folder: &TempDir) -> (Ran, Value) {
    // Of MLRsearch the first trials are short, and those of full length, which decide, are a minute.
    let search = format!(
        "netdyno search throughput {} --trial-duration 60s --report {}",
        DEVICE.replace("1518", "1518,512"),
        folder.path().display()
    );
    let mut search = start(command(&search));
    search.until_it_says(": passed");
    search.signal("INT");
    let ran = search.wait().with(1);
    let report = report(folder);
    (ran, report)
}

#[test]
fn an_interrupted_search_reports_what_it_tried() {
    searching();
    // A machine that was held up gives the first size up without a trial that passed, and begins the second.
    let mut tries = 3;
    let (ran, folder, report) = loop {
        let folder = TempDir::new().expect("a folder");
        let (ran, report) = interrupted_at_a_pass(&folder);
        let begun = report["result"]["search"]["sizes"].as_array().map_or(0, Vec::len);
        if judged(begun == 1) {
            break (ran, folder, report);
        }
        tries -= 1;
        if tries == 0 {
            return;
        }
    };
    for words in ["unfinished", "passed", "Not begun: frames of 512", "interrupted after"] {
        assert!(ran.stdout.contains(words), "no `{words}` in: {}", ran.stdout);
    }
    for words in ["nothing passed", "Forwarded", "no throughput"] {
        assert!(!ran.stdout.contains(words), "`{words}` in: {}", ran.stdout);
    }
    let (trials, size) = (&report["result"]["trials"], &report["result"]["search"]["sizes"][0]);
    let known = &size["unfinished"][0];
    assert!(size["throughput"].is_null() && report["result"]["throughput"].is_null(), "{size}");
    let of = |verdict: &str| -> Vec<f64> {
        let trials = trials.as_array().expect("trials").iter();
        trials.filter(|trial| trial["verdict"] == verdict).map(|trial| real(&trial["load"])).collect()
    };
    let passed = real(&known["passed"]);
    assert!(of("passed").contains(&passed), "{known}: {trials}");
    assert!(of("loss").iter().all(|failed| *failed > passed), "{known}: {trials}");
    assert_eq!(known["failed"].as_f64(), of("loss").into_iter().reduce(f64::min), "{known}: {trials}");
    assert_eq!(report["result"]["search"]["untried_sizes"][0], "512");
    let page = std::fs::read_to_string(folder.path().join("report.html")).expect("a page");
    assert!(page.contains("Ended before its end: no result") && !page.contains("nothing passed"));
}

#[test]
fn a_trial_that_cannot_be_done_keeps_those_before_it() {
    let net = Net::new();
    net.run("ip link set tx0 mtu 600").ok();
    let search = "netdyno search soak --on tx0 --measure rx0 --rate 1kpps --trial-duration 300ms --size 64,1518 --json";
    let report = net.run(search).with(1).json();
    assert_eq!(report["result"]["trials"][0]["frame_size"], "64", "{report}");
    assert_eq!(report["result"]["search"]["complete"], false);
    let reasons = report["result"]["verdict"]["reasons"].to_string();
    assert!(reasons.contains("could not be carried out") && reasons.contains("mtu"), "{reasons}");
}

#[test]
fn nothing_that_a_foreign_result_says_is_run() {
    let folder = TempDir::new().expect("a folder");
    let (dir, ran) = (folder.path().display(), folder.path().join("ran"));
    let reset =
        format!("netdyno search reset --lab --rate 1kpps --trial-duration 60s --report {dir} --command");
    let mut first = command(&reset);
    first.arg("echo harmless");
    let mut first = start(first);
    first.until_it_says("loads from");
    first.signal("INT");
    falls_short(first.wait(), &["interrupted after"]);
    // Somebody else's hand.
    let file = folder.path().join("result.json");
    let text = std::fs::read_to_string(&file).expect("the result");
    let foreign = text.replace("echo harmless", &format!("touch {}", ran.display()));
    assert_ne!(text, foreign);
    std::fs::write(&file, foreign).expect("written");
    let on = format!("netdyno search reset --continue {dir}");
    run(&on).refused(&["--continue", "run a program", "give --command 'touch"]);
    let mut other = command(format!("{on} --command"));
    other.arg("echo harmless");
    start(other).wait().refused(&["--continue", "echo harmless", "must be the same"]);
    let mut foreign: Value = serde_json::from_str(&text).expect("JSON");
    let job = &mut foreign["requested"];
    job["find"]["reset"].as_object_mut().expect("members").remove("command");
    job["yes_disrupt"] = serde_json::json!(["eth9"]);
    std::fs::write(&file, foreign.to_string()).expect("written");
    run(&on).refused(&["eth9", "default route", "give --yes-disrupt 'eth9'"]);
    run(format!("{on} --yes-disrupt lo")).refused(&["eth9"]);
    run(format!("{on} --yes-disrupt eth9 --yes-disrupt lo")).refused(&["lo", "leave it out"]);
    run(format!("{on} --yes-disrupt eth9 --command reboot")).refused(&["reboot", "leave it out"]);
    assert!(!ran.exists(), "a file's command was run");
}

fn report(folder: &TempDir) -> Value {
    let text = std::fs::read_to_string(folder.path().join("result.json")).expect("the result");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn a_device_that_loses_everything_has_no_throughput() {
    for method in ["mlrsearch", "bisect"] {
        let search = format!(
            "netdyno search throughput --lab --lab-loss 100% --size 64 --max 2kpps --min 500pps --trial-duration 100ms --method {method}"
        );
        assert_no_throughput(run(search), "500 pps");
    }
}

#[test]
fn a_trial_says_whose_fault_it_was() {
    searching();
    let trial = "netdyno trial --lab --size 512 --duration 200ms";
    let report = run(format!("{trial} --rate 2kpps --json")).json();
    assert_passed(&report["result"]["trials"][0], 400);
    let report = run(format!("{trial} --lab-loss 1% --rate 2kpps --json")).with(1).json();
    let (row, said) = (&report["result"]["trials"][0], reasons(&report).join("; "));
    // The device counts: each hundredth of what it gets.
    assert!(number(&row["lost_frames"]).abs_diff(number(&row["sent_frames"]) / 100) <= 1, "{row}");
    let told = if judged(!says_nothing(row)) { "the device lost" } else { "the sender" };
    assert!(said.contains(told), "{told}: {said}");
    // No sender does a billion frames a second.
    falls_short(run(format!("{trial} --rate 1gpps --retries 0")), &["the sender fell short of the load"]);
    let both = run(format!("{trial} --rate 2kpps --both-ways --json")).json();
    assert_passed(&both["result"]["trials"][0], 800);
}

/// The receiving interface takes no large frames, and counts them as dropped: that is the tester's loss.
#[test]
fn a_search_whose_meter_loses_frames_does_not_blame_the_device() {
    let device = Some(::lab::Device { kind: ::lab::Kind::Bridge, bottleneck: None, loss: None });
    searching();
    let net = Net::with(&::lab::Options { device, ..Default::default() });
    net.run_there("ip link set rx0 mtu 1000").ok();
    let ports = "--on tx0 --measure rx0 --size 512:3,1518:1 --retries 0";
    let ran = net.run(format!("netdyno trial {ports} --rate 2kpps --duration 200ms --json")).with(1);
    let report = ran.json();
    let trial = &report["result"]["trials"][0];
    assert_eq!(trial["verdict"], "receiver lost", "{trial}");
    assert!(number(&trial["lost_frames"]) > 50, "{trial}");
    assert_eq!(trial["lost_frames"], trial["missed_frames"]);
    let reasons = report["result"]["verdict"]["reasons"].to_string();
    assert!(reasons.contains("nothing can be said of the device"), "{reasons}");
    for method in ["mlrsearch", "bisect"] {
        let search = format!(
            "netdyno search throughput {ports} --min 500pps --max 2kpps --precision 20% --trial-duration 100ms --method {method}"
        );
        let ran = net.run(search).with(1);
        for words in ["not determined", "the tester's own receiver lost frames"] {
            assert!(ran.stdout.contains(words), "no `{words}` in: {}", ran.stdout);
        }
        assert!(!ran.stdout.contains("no throughput"), "{}", ran.stdout);
    }
    let curve = format!("netdyno search loss {ports} --max 1kpps --step 50% --trial-duration 100ms --json");
    let report = net.run(curve).with(1).json();
    let at = &report["result"]["search"]["sizes"][0]["loss_curve"][0];
    assert!(real(&at["loss_ratio"]) == 0.0 && real(&at["tester_ratio"]) > 0.1, "{at}");
}

#[test]
fn loss_latency_and_bursts_follow_from_the_device() {
    searching();
    let quick = format!("{DEVICE} --json --trial-duration");
    let (loss, determined) = run(format!("netdyno search loss {quick} 100ms --max 40mbps")).searched();
    let curve = loss["result"]["search"]["sizes"][0]["loss_curve"].as_array().expect("a curve").clone();
    // Down to half of it, which is the bottleneck's rate, and two steps without loss.
    if determined {
        assert!((6..=8).contains(&curve.len()), "{curve:?}");
        assert!((0.3..0.5).contains(&real(&curve[0]["loss_ratio"])), "{curve:?}");
        let lossless = curve.iter().rev().take_while(|at| real(&at["loss_ratio"]) == 0.0).count();
        assert_eq!(lossless, 2, "{curve:?}");
    }

    let latency = format!("netdyno search latency {quick} 100ms --rate 5mbps --rate 10mbps --repetitions 2");
    let (report, _) = run(latency).searched();
    let found = report["result"]["search"]["sizes"][0]["latency"].as_array().expect("latencies").clone();
    assert_eq!(found.len(), 2);
    for at in &found {
        assert_eq!(number(&at["repetitions"]), 2);
        let [min, typical, worst] = ["min_ns", "typical_ns", "worst_case_ns"].map(|name| number(&at[name]));
        assert!(0 < min && min <= typical && typical <= worst, "{at}");
        assert_eq!(number(&at["variation_ns"]) > 0, worst > min, "{at}");
    }

    // 8000 bytes wait, 6000 were saved: with what goes through meanwhile, at twice the rate.
    let burst = format!(
        "netdyno search burst {quick} 200ms --max 40mbps --throughput 20mbps --max-burst 40 --repetitions 1"
    );
    let (report, determined) = run(burst).searched();
    let found = &report["result"]["search"]["sizes"][0]["burst"];
    let frames = real(&found["frames"]["mean"]);
    let rate = real(&found["burst_frames_per_second"]);
    is_the_burst(frames, rate, determined);
    // A burst's time without the throughput's share of it (RFC 9004, 5.4).
    let (buffer, truth) = (real(&found["corrected_buffer_s"]), frames / rate * (1.0 - TRUTH / rate));
    assert!((buffer - truth).abs() <= 0.01 * truth, "{buffer} s, not {truth}: {found}");
}

#[test]
fn an_outage_is_timed_and_an_overload_recovered_from() {
    searching();
    let reset =
        format!("netdyno search reset {DEVICE} --rate 5mbps --trial-duration 1500ms --json --command");
    let mut reset = command(reset);
    reset.arg("ip link set dut1 down; sleep 0.3; ip link set dut1 up; ip neigh replace 198.19.0.2 lladdr 02:00:00:00:00:02 dev dut1; ip route replace 198.19.0.0/16 dev dut1");
    let report = start(reset).wait().json();
    let outage = real(&report["result"]["search"]["sizes"][0]["outage_ns"]["max"]);
    let trial = &report["result"]["trials"][0];
    // How long the link is down is this machine's affair, too; it is not less than asked, and not longer than the trial. A
    // machine that comes to the command when the trial is all but over sees no end of it, and says so.
    let open = reasons(&report).iter().any(|reason| reason.contains("still lost when the trial ended"));
    assert!(!open || number(&trial["lost_at_end_frames"]) > 0, "{report}");
    // Nor does one that comes to it before the first frame, or after the last.
    let seen = judged(!open && number(&trial["lost_frames"]) > 0);
    assert!((if seen { 0.25e9 } else { 0.0 }..1.6e9).contains(&outage), "{outage} ns: {trial}");
    // A device that does not come back.
    let reset =
        format!("netdyno search reset {DEVICE} --rate 5mbps --trial-duration 1s --retries 0 --command");
    let mut reset = command(reset);
    reset.arg("ip neigh replace 198.19.0.2 nud failed dev dut1");
    let dead = start(reset).wait();
    // A machine that comes to the command when the trial is over resets nothing, and one that sends late has nothing to judge.
    if judged(!dead.stdout.contains("nothing was lost") && !dead.stdout.contains("sender short")) {
        assert_eq!(dead.status, 1, "{}", dead.stdout);
        assert!(dead.stdout.contains("still lost when the trial ended"), "{}", dead.stdout);
    }
    let recovery = format!(
        "netdyno search recovery {DEVICE} --throughput 21mbps --trial-duration 500ms --repetitions 2 --json"
    );
    let (report, determined) = run(recovery).searched();
    let trial = &report["result"]["trials"][0];
    assert!(!determined || number(&trial["lost_frames"]) > 0, "{trial}");
    // A queue loses nothing any more as soon as less comes than goes.
    let recovered = &report["result"]["search"]["sizes"][0]["recovery_ns"]["max"];
    assert!(!determined || real(recovered) < 0.1e9, "{recovered} ns: {trial}");
}

#[test]
fn other_axes_are_searched_too() {
    searching();
    let sizes =
        "netdyno search throughput --lab --lab-bottleneck 20mbps --lab-queue 8k --lab-burst 6k --axis size";
    let (report, determined) =
        run(format!("{sizes} --rate 4kpps --trial-duration 150ms --precision 3% --json")).searched();
    // 4000 frames a second fit 20 Mbit/s if they have 625 bytes and the FCS.
    let found = &report["result"]["search"]["sizes"][0]["found"];
    assert!(!determined || real(found) >= 600.0, "{found}");
    assert!(found.is_null() || real(found) < 700.0, "{found}");
    assert_eq!(report["result"]["search"]["axis"], "frame_size");
    let flows =
        "netdyno search throughput --lab --axis flows --max-flows 500 --rate 2kpps --trial-duration 100ms";
    let (report, determined) = run(format!("{flows} --json")).searched();
    assert!(!determined || real(&report["result"]["search"]["sizes"][0]["found"]) == 500.0, "{report}");
}

#[test]
fn what_was_found_is_printed_bare_for_each_frame_size() {
    let folder = TempDir::new().expect("a folder");
    let dir = folder.path().display().to_string();
    let search = "netdyno search throughput --lab --lab-bottleneck 20M --size 256,1518 --max 20M --min 1M --method bisect \
         --precision 25% --trial-duration 100ms --quiet";
    run(format!("{search} --report {dir}"));
    let report = report(&folder);
    for size in report["result"]["search"]["sizes"].as_array().expect("sizes") {
        let wanted = format!("throughput:{}", size["frame_size"].as_str().expect("a size"));
        let got = run(format!("netdyno report {dir} --get {wanted}"));
        // A sender that was held up leaves a size without.
        match size["throughput"][0]["frames_per_second"].as_f64() {
            Some(found) => assert_eq!(got.ok().stdout, format!("{found}\n")),
            None => drop(got.refused(&["throughput"])),
        }
    }
}

#[test]
fn what_cannot_be_searched_is_refused() {
    let throughput = "netdyno search throughput";
    run(throughput).refused(&["--on", "--measure", "--lab"]);
    run(format!("{throughput} --lab --goal speed=1")).refused(&["`speed` is not known", "loss=0.1%"]);
    run(format!("{throughput} --lab --method bisect --goal loss=0% --goal loss=1%")).refused(&["one goal"]);
    // What would be tried otherwise than asked, or not at all.
    run(format!("{throughput} --lab --goal ndr --trial-duration 300ms")).refused(&["`ndr`", "trial=300ms"]);
    run(format!("{throughput} --lab --short 1s")).refused(&["--short", "--method bisect"]);
    run(format!("{throughput} --lab --axis flows --rate 1kpps --goal loss=0%,sum=3s")).refused(&["--axis"]);
    run(format!("{throughput} --lab --size 30")).refused(&["30"]);
    run(format!("{throughput} --lab --max 1kpps --min 2kpps")).refused(&["--min", "--max"]);
    run(format!("{throughput} --lab --axis flows")).refused(&["--rate"]);
    run(format!("{throughput} --on lo --measure lo")).refused(&["named twice"]);
    run(format!("{throughput} --lab --engine null")).refused(&["null"]);
    run(format!("{throughput} --continue /no/such/file")).refused(&["/no/such/file"]);
    run("netdyno trial --lab --rate top").refused(&["top"]);
    run("netdyno trial --lab --rate 10%").refused(&["states no speed"]);
}
