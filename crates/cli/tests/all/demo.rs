//! `netdyno demo`: the main job with nothing to set up.

use crate::common::*;

fn demo(dir: &Folder, options: &str) -> Ran {
    run_demo(dir, "", &format!("--json {options}"))
}

/// With so little memory that it makes a small capture of its own, within a second.
const SMALL: &str = "prlimit --as=1000000000";

fn run_demo(dir: &Folder, before: &str, options: &str) -> Ran {
    let mut demo = command(format!("{before} netdyno demo --report {} {options}", path(dir, "report")));
    demo.env("XDG_CACHE_HOME", dir.path().join("cache")).env("TMPDIR", passing(dir));
    start(demo).wait()
}

/// The folder of what is not kept.
fn passing(dir: &Folder) -> std::path::PathBuf {
    let passing = dir.path().join("passing");
    std::fs::create_dir_all(&passing).expect("a folder");
    passing
}

#[test]
fn the_users_own_capture_is_replayed_and_accounted_for() {
    let dir = folder();
    let capture = path(&dir, "small.pcap");
    run(format!("netdyno synth --profile smallflows -w {capture}")).ok();
    let report =
        demo(&dir, &format!("--capture {capture} --duration 2s --rate 20mbps --no-real-time")).result();
    let result = &report["result"];
    assert_eq!(report["command"], "demo");
    assert_eq!(report["result"]["pacing"]["priority"], "ordinary");
    assert!(number(&result["tx"]["frames"]) > 0);
    assert_eq!(result["tx"]["frames"], result["rx"]["frames"]);
    assert_eq!(number(&result["loss"]["frames"]), 0);
    assert_eq!(number(&report["streams"][0]["lost_frames"]), 0);
    assert_eq!(
        listing(dir.path().join("report")),
        ["figures.csv", "intervals.csv", "report.html", "result.json"]
    );
    assert!(!dir.path().join("cache").exists(), "nothing had to be synthesised");
}

#[test]
fn the_synthesised_capture_is_kept_and_brings_hundreds_of_thousands_of_flows() {
    let dir = folder();
    let options = "--duration 1s --rate 20mbps --keep";
    let first = demo(&dir, options).says(&["422,524 frames with payload", "339 MB in", "which is kept"]);
    first.result();
    let kept = dir.path().join("cache/netdyno");
    let files = listing(&kept);
    assert_eq!(files.len(), 1, "{files:?}");
    let info = run(format!("netdyno info --json {}", kept.join(&files[0]).display())).ok().json();
    assert_eq!([&info["frames"], &info["flows"]].map(number), [422_524, 34_402]);
    // Once it is there, it is taken, and stays, whether one asks for it or not.
    let again = demo(&dir, "--duration 1s --rate 20mbps").says(&["kept from an earlier run"]);
    let report = again.result();
    assert_eq!(report["result"]["tx"]["frames"], report["result"]["rx"]["frames"]);
    assert_eq!(report["resolved"]["unique_ip"], true);
    assert!(report["result"]["loss"]["by_count_only"].is_null(), "not all were signed: {report}");
    assert_eq!(listing(&kept), files);
}

#[test]
fn nothing_but_the_report_is_left_however_it_ends() {
    let dir = folder();
    let holds = |of: &str| listing(dir.path().join(of));
    let words = ["339 MB in", "until this ends (--keep keeps it)"];
    let report = demo(&dir, "--duration 500ms --rate 5mbps").says(&words).result();
    assert_eq!(report["resolved"]["source"]["kind"], "synthetic", "{report}");
    assert_eq!(report["streams"][0]["name"], "bigflows");
    assert!(!report.to_string().contains("/proc/self/fd"), "the path of what has none");
    assert!(!dir.path().join("cache").exists() && holds("passing").is_empty(), "{:?}", holds("passing"));
    let reported: u64 = holds("report")
        .iter()
        .map(|name| std::fs::metadata(dir.path().join("report").join(name)).expect("a file").len())
        .sum();
    assert!(reported < 10_000_000, "{reported} bytes");
    for (signal, status) in [("INT", 2), ("TERM", 2), ("KILL", 137)] {
        let mut demo = command(format!("netdyno demo --report {}", path(&dir, signal)));
        demo.env("XDG_CACHE_HOME", dir.path().join("cache")).env("TMPDIR", passing(&dir));
        let mut demo = start(demo);
        demo.until_it_says("synthesising");
        demo.signal(signal);
        let ran = demo.wait().with(status);
        assert!(status != 2 || ran.stderr.contains("stopped by a signal"), "{}", ran.stderr);
        assert!(!dir.path().join("cache").exists() && holds("passing").is_empty(), "{:?}", holds("passing"));
    }
}

#[test]
fn without_room_for_its_capture_it_does_not_begin() {
    let dir = folder();
    for (option, variable) in [("", "TMPDIR"), ("--keep", "XDG_CACHE_HOME")] {
        let script = path(&dir, "script");
        let text = format!(
            "mount -t tmpfs -o size=10m none {small}
            exec env XDG_CACHE_HOME={cache} {variable}={small} {netdyno} demo {option} --report {report}",
            small = passing(&dir).display(),
            netdyno = env!("CARGO_BIN_EXE_netdyno"),
            cache = path(&dir, "cache"),
            report = path(&dir, "report")
        );
        std::fs::write(&script, text).expect("a script");
        let words = ["the capture of the demo takes 339 MB", "has 10.5 MB free", variable, "--capture FILE"];
        run(format!("unshare -m sh {script}")).refused(&words);
        assert!(!dir.path().join("report").exists());
    }
}

#[test]
fn beside_other_work_every_frame_is_signed_and_accounted_for_at_a_rate_that_the_machine_carries() {
    let dir = folder();
    let others = crate::busy::Loops::begin();
    let ran = run_demo(&dir, SMALL, "--json --duration 1s").ok();
    let ran = ran.says(&["rate: ", "carried", "--rate asks for another one"]);
    drop(others);
    let report = ran.json();
    let (result, stream) = (&report["result"], &report["streams"][0]);
    let [sent, received, lost] =
        [&result["tx"]["frames"], &result["rx"]["frames"], &result["loss"]["frames"]].map(number);
    assert!(sent > 0 && received + lost == sent, "{sent} {received} {lost}");
    assert!(result["loss"]["by_count_only"].is_null(), "not all were signed: {}", result["loss"]);
    let by_number = ["tx_frames", "rx_frames", "lost_frames"].map(|key| number(&stream[key]));
    assert_eq!(by_number, [sent, received, lost]);
    let asked = report["resolved"]["rate"]["text"].as_str().expect("a rate");
    assert!(asked.ends_with("bit/s"), "{asked}");
    // Whoever asks for a rate wants it.
    let ran = run_demo(&dir, SMALL, "--json --duration 500ms --rate 50mpps").with(1);
    assert!(reasons(&ran.json())[0].starts_with("the rate was not reached"), "{}", ran.stdout);
}

#[test]
fn it_names_the_page_to_open() {
    let dir = folder();
    let ran = run_demo(&dir, SMALL, "-v --duration 500ms --rate 5mbps");
    let words = ["Actual: ", "sent", "received", "lost", "Accounted for: ", "each by its own number"];
    for words in words.into_iter().chain([path(&dir, "report/report.html").as_str()]) {
        assert!(ran.stdout.contains(words), "no `{words}` in {}", ran.stdout);
    }
}

#[test]
fn a_capture_that_is_none_fails_before_anything_else() {
    let dir = folder();
    demo(&dir, "--capture /etc/hostname").refused(&["/etc/hostname is not a capture"]);
}

#[test]
fn with_little_memory_a_small_capture_is_replayed() {
    let dir = folder();
    let ran = run_demo(&dir, SMALL, "--json --duration 500ms --rate 5mbps");
    let ran = ran.says(&["capture: a small one, because", "8,181 frames"]);
    let report = ran.result();
    assert!(number(&report["result"]["rx"]["frames"]) > 0, "{report}");
    let source = report["resolved"]["source"].to_string();
    assert!(source.contains("smallFlows.pcap"), "{source}");
}
