//! `netdyno impair`, and the same device in labs: each of its faults as a meter at the far end sees it.
//!
//! With a delay the device sleeps between frames, and so leaves CPUs to other tests.

use crate::bridge::{Three, interrupted};
use crate::common::*;
use crate::judged::judged;
use crate::leftovers::{is_loaded, programs_of};
use serde_json::Value;
use std::time::{Duration, Instant};

/// Sends through a lab's device, from one CPU (a sender that moves to another overtakes itself where the kernel keeps a
/// queue for each); the result, and what the device said.
fn through(faults: &str, send: &str) -> (Value, String) {
    let ran = run(format!(
        "netdyno lab --impair {faults} -- netdyno send ipv4/udp --on tx0 --measure rx0 --engine packet --cores 1 --quiet --json \
         {send}"
    ));
    (ran.json(), ran.stderr)
}

/// A thousand frames of 128 bytes; what of them the meter says: lost, duplicated, reordered, corrupted.
fn of_a_thousand(faults: &str) -> [u64; 4] {
    let faults = format!("delay=1ms,{faults}");
    let (report, said) = through(&faults, "--count 1000 --rate 5kpps --size 128 --check-content");
    let (result, rx) = (&report["result"], &report["result"]["rx"]);
    assert!(
        rx["foreign_frames"].is_null() && said.contains("dut0 > dut1: 1,000 frames in"),
        "{said}\n{report}"
    );
    [&result["loss"]["frames"], &rx["duplicated_frames"], &rx["reordered_frames"], &rx["corrupted_frames"]]
        .map(number)
}

#[test]
fn each_share_of_frames_meets_its_fault_exactly() {
    assert_eq!(of_a_thousand("loss=1/10"), [100, 0, 0, 0]);
    assert_eq!(of_a_thousand("duplicate=1%,copies=3"), [0, 30, 0, 0]);
    assert_eq!(of_a_thousand("corrupt=2%"), [0, 0, 0, 20]);
    assert_eq!(of_a_thousand("reorder=5%"), [0, 0, 50, 0]);
    assert_eq!(of_a_thousand("loss=10%,duplicate=1/9,reorder=1/9,corrupt=1/9"), [100, 100, 100, 100]);
    assert_eq!(of_a_thousand("direction=back,loss=100%"), [0; 4]);
}

#[test]
fn steady_loss_is_steady_in_every_interval() {
    for faults in ["delay=1ms,loss=1/5", "delay=60ms,loss=1/5"] {
        let (report, _) = through(faults, "--duration 1500ms --rate 2kpps");
        let lost = number(&report["result"]["loss"]["frames"]);
        assert_eq!(lost, number(&report["result"]["tx"]["frames"]).div_ceil(5), "{report}");
        let intervals = report["intervals"].as_array().expect("intervals");
        let sum: u64 = intervals.iter().map(|i| i["lost_frames"].as_u64().unwrap_or(0)).sum();
        assert_eq!(sum, lost, "{report}");
        // A sender that is held up between two looks leaves it open in which interval some frames were sent (in virtual time:
        // job run/losses.rs). So the first intervals together have their share, as far as such a frame may be in the next.
        let (mut sent, mut lost) = (0, 0);
        for interval in intervals {
            let now = number(&interval["tx_frames"]);
            (sent, lost) = (sent + now, lost + interval["lost_frames"].as_u64().unwrap_or(0));
            assert!(now > 0 || interval["lost_frames"].is_null(), "{interval}");
            // What is sent between two looks is no more than an interval's, of 100 ms, and what was late in it.
            let between = 200 + longest_stall(&report) / 500_000;
            assert!((5 * lost).abs_diff(sent) <= 15 + 5 * between, "{faults}: {lost} of {sent}: {report}");
        }
    }
}

#[test]
fn a_frame_is_put_back_as_far_as_asked() {
    let (report, said) = through("delay=1ms,reorder=1%,reorder-by=7", "--count 1000 --rate 5kpps");
    let stream = &report["streams"][0];
    assert_eq!(number(&stream["reordered_frames"]), 10, "{report}");
    assert_eq!(
        (number(&stream["reorder_extent_max"]), stream["reorder_extent_mean"].as_f64()),
        (7, Some(7.0))
    );
    assert!(said.contains("10 reordered"), "{said}");
    // Behind so many others as came in that time: how many that are is a law in virtual time (impair faults.rs
    // `a_reordered_frame_is_put_back_by_time_if_asked`).
    let (report, said) = through("delay=1ms,reorder=1%,reorder-by=2100us", "--count 1000 --rate 5kpps");
    assert!(said.contains("10 reordered"), "{said}");
    // One that others came too late for is not out of order.
    let stream = &report["streams"][0];
    assert!(stream["reordered_frames"].as_u64().unwrap_or(0) <= 10, "{stream}");
    assert_eq!(number(&report["result"]["loss"]["frames"]), 0, "{report}");
}

#[test]
fn random_faults_are_those_of_the_seed() {
    let lost = |seed: u32| {
        let faults = format!("delay=1ms,loss=20%,random,fault-seed={seed}");
        let (report, _) = through(&faults, "--count 1000 --rate 5kpps");
        number(&report["result"]["loss"]["frames"])
    };
    let first = lost(1);
    // Five standard deviations.
    assert!((137..=263).contains(&first), "{first}");
    assert_eq!(first, lost(1));
}

#[test]
fn a_device_that_flaps_loses_and_one_that_freezes_holds() {
    let (report, said) = through("delay=1ms,flap=40ms/10ms", "--duration 500ms --rate 2kpps");
    let lost = number(&report["result"]["loss"]["frames"]);
    assert!(said.contains(&format!("{lost} lost while flapping")), "{lost} {said}");
    // A fifth of the time (in virtual time: impair faults.rs `a_flapping_device_loses_all_for_a_time_and_a_frozen_one_holds_it`), and
    // so of what a sender on time sends; of one that is held up some, and not all.
    let sent = number(&report["result"]["tx"]["frames"]);
    assert!(0 < lost && lost < sent, "{lost} of {sent} {said}");
    let (report, said) = through("freeze=0/50ms", "--duration 500ms --rate 2kpps");
    let latency = &report["result"]["latency_ns"];
    assert_eq!(number(&report["result"]["loss"]["frames"]), 0, "{report}");
    let arrived = report::units::count(number(&report["result"]["rx"]["frames"]));
    assert!(said.contains(&format!("{arrived} held while frozen")), "{said}");
    // Whoever comes while it is frozen waits: half of those that a sender on time sends for 25 ms and longer.
    assert!(number(&latency["max"]) > 10_000_000, "{latency}");
}

#[test]
fn frames_that_come_back_reach_the_sender_and_no_more_than_asked() {
    let script = "netdyno send ipv4/udp --on tx0 --measure rx0 --engine packet --quiet --count 100 --rate 5kpps --json; \
                  cat /sys/class/net/tx0/statistics/rx_packets";
    let script = script.replace("netdyno", env!("CARGO_BIN_EXE_netdyno"));
    let mut lab = command("netdyno lab --impair loop=3 --");
    lab.args(["sh", "-c", &script]);
    let ran = start(lab).wait().ok().says(&["300 sent back"]);
    let (report, came_back) = ran.stdout.trim_end().rsplit_once('\n').expect("two results");
    let report: Value = serde_json::from_str(report).expect("JSON");
    assert_eq!((number(&report["result"]["rx"]["frames"]), came_back), (100, "300"), "{report}");
}

#[test]
fn what_finds_no_room_is_lost_and_named() {
    let (report, said) = through("delay=300ms,buffer=6k", "--count 200 --rate 5kpps --size 64");
    // A hundred frames of 60 bytes wait at a time.
    let lost = number(&report["result"]["loss"]["frames"]);
    assert!(said.contains(&format!("{lost} lost for want of memory")), "{said}");
    // All come before the first leaves, from a sender that is on time.
    if judged(longest_stall(&report) < 100_000_000) {
        assert_eq!(lost, 100, "{report}");
    }
}

#[test]
fn between_two_interfaces_it_says_what_it_did_and_leaves_nothing() {
    let three = Three::new();
    let device = |options: &str| {
        let line = format!("netdyno impair --between west east --json {options}");
        let mut device = start(inside(three.middle(), &line));
        device.until_it_says("between west and east");
        device
    };
    let running = device("--delay 2ms --loss 1/4 --direction there");
    let send = "netdyno send ipv4/udp --count 400 --rate 5kpps --on a0 --engine packet --quiet --json";
    start(inside(three.sender(), send)).wait().result();
    eventually("all went through", || three.left_by("east") >= 300);
    let report = interrupted(running);
    let there = &report["result"]["passages"][0];
    let impaired = &there["impaired"];
    assert_eq!(
        [&there["received"]["frames"], &there["forwarded"]["frames"]].map(number),
        [400, 300],
        "{there}"
    );
    assert_eq!(number(&impaired["lost_frames"]), 100, "{there}");
    assert!(number(&impaired["lateness_ns"]["p50"]) > 0, "{impaired}");
    let killed = device("--delay 1ms");
    let programs = programs_of(killed.pid());
    assert!(!programs.is_empty());
    killed.signal("KILL");
    killed.wait().with(137);
    eventually("its programs are gone", || programs.iter().all(|program| !is_loaded(*program)));
}

#[test]
fn faults_that_cannot_be_are_refused_before_anything_is_made() {
    for (faults, words) in [
        ("loss=200%", "no share of frames"),
        ("flap=2s", "no two times"),
        ("delay=fast", "delay fast"),
        ("jitter=1ms", "it is of a `delay`"),
        ("lose=1%", "lose"),
        ("reorder=1%,reorder-by=0", "no distance"),
    ] {
        let ran = run(format!("netdyno lab --impair {faults} -- true")).with(2);
        assert!(ran.stderr.contains(words) && ran.stdout.is_empty(), "{faults}: {}", ran.stderr);
    }
    for other in ["--dut router", "--bottleneck 20mbps", "--loss 1%"] {
        run(format!("netdyno lab --impair delay=1ms {other} -- true")).with(2).says(&["cannot be used with"]);
    }
}

/// It printed all of these.
fn shows(ran: Ran, words: &[&str]) {
    for word in words {
        assert!(ran.stdout.contains(word), "no `{word}` in: {}{}", ran.stdout, ran.stderr);
    }
}

/// A trial in a lab with this device.
fn trial(options: &str) -> Ran {
    run(format!("netdyno trial --lab --no-learning --json {options}"))
}

/// How near the delay is to the truth is measured by `make bench`: the device's thread wakes when this machine lets it.
#[test]
fn a_known_delay_is_found_and_its_floor_is_shown() {
    for (delay, us) in [("100us", 100u64), ("1ms", 1_000), ("10ms", 10_000)] {
        let report =
            trial(&format!("--size 128 --lab-impair delay={delay} --rate 2kpps --duration 200ms")).json();
        let row = &report["result"]["trials"][0];
        let (latency, floor) = (&row["latency_ns"], &row["floor"]);
        assert_eq!(floor["of"], "device", "{row}");
        let truth = us * 1000;
        let [min, p50] = [number(&latency["min"]), number(&latency["p50"])];
        let [floor_min, typical] = [number(&floor["min_ns"]), number(&floor["typical_ns"])];
        // Nothing arrives before its time, and what is not a wrong unit is not late by seconds.
        assert!(min >= truth && p50 >= min && min < truth + 1_000_000_000, "{row}");
        assert!(0 < floor_min && floor_min <= typical, "{row}");
    }
}

#[test]
fn a_floor_may_be_a_cable_a_time_or_an_earlier_result() {
    let dir = folder();
    let quick = "--size 128 --rate 1kpps --duration 100ms";
    let cable = trial(&format!("{quick} --report {}", dir.path().display())).json();
    let bare = number(&cable["result"]["trials"][0]["latency_ns"]["p50"]);
    assert!(cable["result"]["trials"][0]["floor"].is_null());
    let floor_of = |floor: &str| {
        let report = trial(&format!("{quick} --lab-impair delay=1ms --floor {floor}")).json();
        let floor = report["result"]["trials"][0]["floor"].clone();
        (floor["of"].as_str().expect("a word").to_owned(), number(&floor["typical_ns"]))
    };
    assert_eq!(floor_of("12us"), ("given".to_owned(), 12_000));
    assert_eq!(floor_of(&dir.path().display().to_string()), ("result".to_owned(), bare));
    assert_eq!(floor_of("cable").0, "cable");
    trial(&format!("{quick} --floor device")).refused(&["--floor device", "cable"]);
    trial(&format!("{quick} --floor nowhere")).refused(&["--floor nowhere"]);
    let search =
        "netdyno search latency --lab --size 128 --rate 1kpps --trial-duration 100ms --repetitions 1";
    // What the floor is does not depend on whether the sender kept to the load.
    let ran = run(format!("{search} --lab-impair delay=1ms --quiet"));
    assert!(ran.status == 0 || ran.stdout.contains("the sender did not keep to the load"), "{}", ran.stdout);
    shows(ran, &["floor", "less it", "the device, idle"]);
}

#[test]
fn copies_are_counted_as_such_and_end_no_wait() {
    // All copies are there before the last of the frames is.
    let report =
        trial("--size 128 --lab-impair duplicate=100%,copies=4,delay=300ms --rate 1kpps --duration 200ms")
            .json();
    let row = &report["result"]["trials"][0];
    let counts = ["sent_frames", "received_frames", "duplicated_frames", "lost_frames"];
    let sent = number(&row["sent_frames"]);
    assert_eq!(counts.map(|name| number(&row[name])), [sent, sent, 4 * sent, 0], "{row}");
    assert_passed(row, 200);
}

#[test]
fn answers_that_come_late_are_lost_and_no_other_trials() {
    // Stragglers are waited for 2 s at most. The first trial's come 2.9 to 3.4 s after its beginning: in the middle of the
    // second, which begins after 2.6 s and all is over after 5.5 s. The second's own come when that is over, too.
    let began = Instant::now();
    let report = trial(
        "--size 64,256 --lab-impair delay=2900ms --rate 1kpps --duration 500ms --floor 1us --retries 0",
    )
    .json();
    let in_time = began.elapsed() < Duration::from_millis(6000);
    for row in report["result"]["trials"].as_array().expect("trials") {
        let counts =
            ["sent_frames", "received_frames", "duplicated_frames", "reordered_frames", "lost_frames"];
        let sent = number(&row["sent_frames"]);
        // Who was held up should have sent as many more.
        let intended = number(&row["intended_frames"]);
        assert!((1..=500).contains(&sent) && (intended == 500 || intended > 500 && sent < intended), "{row}");
        // A machine that waits for longer than it wants to sees them come after all, or some of them.
        let received = number(&row["received_frames"]);
        if received > 0 {
            assert_eq!(
                counts.map(|name| number(&row[name])),
                [sent, received, 0, 0, sent - received],
                "{row}"
            );
            judged(false);
            return;
        }
        assert_eq!(counts.map(|name| number(&row[name])), [sent, 0, 0, 0, sent], "{row}");
        assert!(row["latency_ns"].is_null(), "{row}");
    }
    let warned = report["warnings"].to_string();
    assert!(!judged(in_time) || warned.contains("arrived only when their trial was over"), "{warned}");
}

#[test]
fn a_device_that_sends_frames_back_makes_no_storm_and_no_duplicates() {
    // Each way's frames come back to where the other way's are measured.
    let report = run(
        "netdyno trial --lab --no-learning --json --lab-impair loop=5,delay=1ms --both-ways --rate 1kpps --duration 200ms \
         --floor 1us",
    )
    .json();
    let row = &report["result"]["trials"][0];
    let [sent, received] = ["sent_frames", "received_frames"].map(|name| number(&row[name]));
    let others = ["duplicated_frames", "reordered_frames", "lost_frames"].map(|name| number(&row[name]));
    assert!(sent > 0 && received == sent && others == [0; 3], "{row}");
}

#[test]
fn a_search_says_of_a_dead_and_of_a_flapping_device_what_it_is() {
    let search = "netdyno search throughput --lab --size 128 --max 4kpps --min 1kpps --precision 10%";
    let dead = format!("{search} --trial-duration 100ms --lab-impair loss=100%,delay=1ms --method bisect");
    assert_no_throughput(run(dead), "1.00 kpps");
    let flaps = run(format!(
        "{search} --trial-duration 300ms --lab-impair flap=900ms/300ms,delay=1ms --retries 0 --json"
    ));
    let report = flaps.json();
    // Which trials it flaps in is chance; if that shows, it is said. (commands/search/throughput.rs has the cases.)
    let trials = report["result"]["trials"].as_array().expect("trials");
    let of = |name: &str| trials.iter().filter(|t| t["verdict"] == name).collect::<Vec<_>>();
    let whole = |t: &&Value| number(&t["lost_frames"]) == 0;
    let (passed, lost) = (of("passed"), of("loss"));
    let inverted = passed.iter().filter(|t| whole(t)).any(|p| {
        lost.iter().any(|l| {
            p["load"].as_f64() >= l["load"].as_f64() && number(&p["sent_frames"]) >= number(&l["sent_frames"])
        })
    });
    let told = report["warnings"].to_string().contains("does not do the same each time");
    assert!(told || !inverted, "{report}");
}
