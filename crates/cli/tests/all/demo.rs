//! `netdyno demo`: the main job with nothing to set up.

use crate::common::*;

fn demo(dir: &Folder, options: &str) -> Ran {
    let mut demo = command(format!("netdyno demo --json --report {} {options}", path(dir, "report")));
    demo.env("XDG_CACHE_HOME", dir.path().join("cache"));
    start(demo).wait()
}

#[test]
fn the_users_own_capture_is_replayed_and_accounted_for() {
    let dir = folder();
    let capture = path(&dir, "small.pcap");
    run(format!("netdyno synth --profile smallflows -w {capture}")).ok();
    let report = demo(&dir, &format!("--capture {capture} --duration 2s --rate 20mbps")).result();
    let result = &report["result"];
    assert_eq!(report["command"], "demo");
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
    let options = "--duration 1s --rate 20mbps";
    let first = demo(&dir, options);
    first.result();
    let kept = dir.path().join("cache/netdyno");
    let files = listing(&kept);
    assert_eq!(files.len(), 1, "{files:?}");
    let info = run(format!("netdyno info --json {}", kept.join(&files[0]).display())).ok().json();
    assert_eq!([&info["frames"], &info["flows"]].map(number), [791_615, 40_686]);
    let again = demo(&dir, options).says(&["kept from an earlier run"]);
    let report = again.result();
    assert_eq!(report["result"]["tx"]["frames"], report["result"]["rx"]["frames"]);
    assert_eq!(report["resolved"]["unique_ip"], true);
    assert_eq!(listing(&kept), files);
}

#[test]
fn it_names_the_page_to_open() {
    let dir = folder();
    let mut demo =
        command(format!("netdyno demo -v --duration 500ms --rate 5mbps --report {}", path(&dir, "report")));
    demo.env("XDG_CACHE_HOME", dir.path());
    let ran = start(demo).wait();
    for words in ["Actual: ", "sent", "received", "lost", &path(&dir, "report/report.html")] {
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
    let mut demo = command(format!(
        "prlimit --as=1000000000 netdyno demo --json --duration 500ms --rate 5mbps --report {}",
        path(&dir, "report")
    ));
    demo.env("XDG_CACHE_HOME", dir.path());
    let ran = start(demo).wait().says(&["capture: a small one, because", "smallflows-"]);
    let report = ran.result();
    assert!(number(&report["result"]["rx"]["frames"]) > 0, "{report}");
    let source = report["resolved"]["source"].to_string();
    assert!(source.contains("smallFlows.pcap"), "{source}");
}
