//! `netdyno compare` on results of real runs and searches.

use crate::common::*;
use crate::judged::judged;
use serde_json::Value;

/// A run of two seconds; the folder of its report.
fn send(net: &Net, name: &str, rate: &str, more: &str) -> String {
    let dir = net.file(name);
    net.run(format!(
        "netdyno send ipv4/udp --size 100 --on tx0 --measure rx0 --rate {rate} --duration 1500ms --report {dir} --quiet {more}"
    ));
    dir
}

#[test]
fn loads_that_differ_are_said_first_and_the_same_run_does_not_differ() {
    let net = Net::new();
    let (fast, slow) = (send(&net, "fast", "4kpps", ""), send(&net, "slow", "1kpps", "--engine packet"));
    // Senders that others held up may have sent as much as each other.
    let in_time = judged([&fast, &slow].iter().all(|dir| {
        let result = std::fs::read_to_string(format!("{dir}/result.json")).expect("the result");
        reasons(&serde_json::from_str(&result).expect("JSON")).is_empty()
    }));
    let page = net.file("page");
    let told = run(format!("netdyno compare {fast} {slow} --report {page}"));
    assert!(
        told.stdout.ends_with(&format!("Open {page}/comparison.html for the plots.\n")),
        "{}",
        told.stdout
    );
    let words: &[&str] = if in_time { &["The offered loads differ: frames of A "] } else { &[] };
    let said = unfolded(&told.stdout);
    for words in ["rate asked for", "4 kpps", "1 kpps", "received"].iter().chain(words) {
        assert!(said.contains(words), "no `{words}`: {}", told.stdout);
    }
    let ran = run(format!("netdyno compare {fast} {slow}/result.json --json"));
    let json = ran.json();
    assert_eq!(json["schema"], "netdyno.compare/1");
    assert_eq!((ran.status, told.status), if json["outcome"] == "worse" { (1, 1) } else { (0, 0) }, "{json}");
    assert!(!in_time || json["outcome"] == "not_judged", "{json}");
    let of =
        |name: &str| json["figures"].as_array().expect("figures").iter().find(|f| f["name"] == name).cloned();
    // Less was asked for: that is neither better nor worse.
    assert_eq!(of("sent").expect("sent")["by"], "another load was asked for", "{json}");
    assert!(!in_time || of("received").expect("received")["by"] == "the offered loads differ", "{json}");
    let written = std::fs::read_to_string(format!("{page}/comparison.json")).expect("the comparison");
    let written: Value = serde_json::from_str(&written).expect("JSON");
    assert_eq!((&written["figures"], &written["outcome"]), (&json["figures"], &json["outcome"]));
    let html = std::fs::read_to_string(format!("{page}/comparison.html")).expect("the page");
    for words in
        ["Differences and their noise", "rate asked for", "Both runs over time", "Latency by percentile"]
    {
        assert!(html.contains(words), "no `{words}`");
    }
    // The same folder again, and a file that is none of ours.
    run(format!("netdyno compare {slow} {fast} --report {page} --json"));
    std::fs::write(format!("{page}/comparison.html"), "mine").expect("written");
    run(format!("netdyno compare {slow} {fast} --report {page}"))
        .refused(&["comparison.html is there already"]);
    let schema = crate::report::schema("compare");
    assert_eq!(crate::report::check(&schema, &schema, &json, "comparison"), Ok(()));
    assert!(
        crate::report::check(&schema, &schema, &serde_json::json!({"figures": 1}), "comparison").is_err()
    );
    let sent =
        json["figures"].as_array().expect("figures").iter().find(|f| f["name"] == "sent").expect("sent");
    let ratio = sent["difference_ratio"].as_f64().expect("a ratio");
    assert!(!in_time || (-0.9..-0.5).contains(&ratio), "{sent}");
    let same = run(format!("netdyno compare {fast} {fast}/report.html")).ok();
    // Of a sender that was held up there may be too few intervals to judge by.
    let said = ["does not differ from A by more than the noise", "Nothing could be judged"];
    assert!(said.iter().any(|words| same.stdout.contains(words)), "{}", same.stdout);
    assert!(
        !["worse", "better"].iter().any(|word| same.stdout.to_lowercase().contains(word)),
        "{}",
        same.stdout
    );
}

#[test]
fn what_cannot_be_compared_is_refused_with_the_reason() {
    let net = Net::new();
    let sent = send(&net, "sent", "2kpps", "");
    let file = net.file("x.pcap");
    run(format!("netdyno craft ipv4/udp --count 20 -w {file}")).ok();
    let replayed = net.file("replayed");
    net.run(format!("netdyno replay {file} --on tx0 --report {replayed} --quiet"));
    run(format!("netdyno compare {sent} {replayed}")).refused(&["netdyno send", "netdyno replay"]);
    run(format!("netdyno compare {sent}")).refused(&["--against"]);
    run(format!("netdyno compare {sent} {sent} --against {replayed}")).refused(&["given twice"]);
    run(format!("netdyno compare {sent} /nowhere")).refused(&["/nowhere"]);
    let newer = net.file("newer.json");
    let text = std::fs::read_to_string(format!("{sent}/result.json")).expect("the result");
    std::fs::write(&newer, text.replace("netdyno.report/2", "netdyno.report/3")).expect("written");
    run(format!("netdyno compare {sent} {newer}")).refused(&["newer.json", "netdyno.report/3"]);
}

#[test]
fn results_are_printed_as_csv() {
    let net = Net::new();
    let sent = send(&net, "sent", "2kpps", "");
    let intervals = run(format!("netdyno report {sent} --csv"));
    let written = std::fs::read_to_string(format!("{sent}/intervals.csv")).expect("the intervals");
    assert_eq!(intervals.stdout, written);
    let dir = net.file("trial");
    let trial = "netdyno trial --lab --rate 1kpps --duration 200ms --size 128 --quiet";
    let printed = run(format!("{trial} --report {dir} --csv"));
    assert_eq!(printed.stdout, std::fs::read_to_string(format!("{dir}/trials.csv")).expect("the trials"));
    assert!(printed.stdout.starts_with("trial,part,stage,frame_size,load,"), "{}", printed.stdout);
    assert_eq!(printed.stdout.lines().count(), 2);
}

#[test]
fn a_figure_is_printed_bare_for_a_script() {
    let net = Net::new();
    let sent = send(&net, "sent", "2kpps", "");
    let table = run(format!("netdyno report {sent} --csv=figures")).stdout;
    let value = |key: &str| {
        let row = table.lines().find(|row| row.starts_with(&format!("{key},"))).expect("a row");
        row.split(',').nth(1).expect("its value").to_owned()
    };
    let alone = run(format!("netdyno report {sent} --get latency_p99 --get=tx_frames --get latency_p99"));
    let [p99, frames] = ["latency_p99", "tx_frames"].map(value);
    assert!(p99.parse::<f64>().is_ok_and(|ns| ns > 0.0), "{table}");
    assert_eq!(alone.stdout, format!("{p99}\n{frames}\n{p99}\n"));
    let report = |options: &str| run(format!("netdyno report {sent} {options}"));
    report("--get p99_latency").with(2).says(&["--get", "`p99_latency`; near it are latency_p99, "]);
    report("--get tx_frames --get throughput")
        .refused(&["no figure `throughput`; it has tx_frames_per_second"]);
    for other in ["--json", "--csv=figures"] {
        report(&format!("--get tx_frames {other}")).with(2).says(&["--get", "cannot be used with"]);
    }
    // A run has its own status with it, and says what it measured where that is not what was asked for.
    let lost = "netdyno send ipv4/udp --lab --lab-loss 1/10 --rate 1kpps --count 100 --quiet";
    assert_eq!(run(format!("{lost} --get lost_frames --get tx_frames")).with(1).stdout, "10\n100\n");
    run(format!("{lost} --get loss_by_count_ratio")).refused(&["no figure `loss_by_count_ratio`", "10.0 %"]);
    run(format!("{lost} --get throughputs")).with(2).says(&["`throughputs`; near it"]);
    // One trial has its figures by the names that several have, too.
    let trial = "netdyno trial --lab --lab-loss 1/10 --goal loss=20% --rate 1kpps --duration 100ms --quiet";
    let trial = run(format!("{trial} --get trial_loss_ratio --get loss_ratio"));
    let trial = trial.with(0).stdout;
    // On a busy machine a few of the hundred frames may not have left; each tenth of those that did was lost, by the device's count, in
    // which frames of before are.
    let [one, other] = trial.lines().collect::<Vec<_>>()[..] else { panic!("{trial}") };
    assert_eq!(one, other);
    let shares: Vec<String> = (50..=100)
        .flat_map(|sent| [sent / 10, (sent + 9) / 10].map(|lost| (lost, sent)))
        .map(|(lost, sent)| format!("{}", f64::from(lost) / f64::from(sent)))
        .collect();
    assert!(shares.iter().any(|share| share == one), "{trial}");
    // What no such job measures is refused before it begins, not after an hour.
    let never = run(format!("{lost} --get throughput"));
    never.refused(&[
        "--get: no result of a job of the kind `send` has a figure `throughput`: it is one of search, trial",
    ]);
    let hours = "netdyno search throughput --lab --trial-duration 1h --quiet";
    let never = run(format!("{hours} --get throughput --get latency_p90"));
    never.with(2).says(&["`latency_p90`; near it"]);
    let never = run(format!("{hours} --get latency_p99"));
    never.refused(&[
        "no result of a search for throughput has a figure",
        "`latency_p99`: it is one of send, replay",
    ]);
}
