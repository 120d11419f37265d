//! Results and jobs of earlier days: each verb that takes one reads them. (Searches that go on: search_between.rs. Members and words of
//! all layouts: scripts/documents.)

use crate::common::*;
use serde_json::{Value, json};

const RESULTS: [(&str, &str); 2] = [
    ("2026-11-23", include_str!("old/replay-2026-11-23.json")),
    ("2026-11-26", include_str!("old/replay-2026-11-26.json")),
];

/// As netdyno wrote it beside a result on 2026-11-23, with all defaults.
fn job() -> Value {
    json!({"schema": "netdyno.job/1", "kind": "send", "what": "ipv4/udp", "links": [{"on": "null0"}], "size": "imix", "sign": "auto",
        "rate": "20kpps", "count": 100, "catch_up": 2.0, "engine": "null", "seed": 7,
        "meter": {"how": "auto", "timestamps": "auto", "clock": "monotonic", "stream_histograms": 64}})
}

/// What is in `old` is in `new`.
fn holds(new: &Value, old: &Value, at: &str) {
    match (new, old) {
        (Value::Object(new), Value::Object(old)) => {
            for (name, old) in old {
                let new = new.get(name).unwrap_or_else(|| panic!("{at}.{name} is gone"));
                holds(new, old, &format!("{at}.{name}"));
            }
        }
        (Value::Array(new), Value::Array(old)) => {
            assert_eq!(new.len(), old.len(), "{at}");
            new.iter()
                .zip(old)
                .enumerate()
                .for_each(|(n, (new, old))| holds(new, old, &format!("{at}[{n}]")));
        }
        // 5.0 and 5 are the same.
        _ => assert!(
            new == old || new.as_f64().is_some_and(|new| Some(new) == old.as_f64()),
            "{at}: {new}, was {old}"
        ),
    }
}

#[test]
fn results_of_earlier_days_are_shown_compared_and_lined_up_as_todays() {
    let dir = folder();
    let paths = RESULTS.map(|(day, text)| {
        let own = dir.path().join("results").join(day);
        std::fs::create_dir_all(&own).expect("a folder");
        std::fs::write(own.join("result.json"), text).expect("written");
        own.display().to_string()
    });
    let figures = |path: &str| {
        let csv = run(format!("netdyno report {path} --csv=figures")).with(1).stdout;
        let values = csv.lines().map(|line| line.split(',').take(3).collect::<Vec<_>>().join(","));
        values.collect::<Vec<_>>()
    };
    for ((day, text), path) in RESULTS.iter().zip(&paths) {
        // Frames were lost then, which the exit status says.
        let shown = run(format!("netdyno report {path}")).with(1).stdout;
        for words in ["9,600,000", "1.60 Mpps", "1.88 %", "15.4 us"] {
            assert!(shown.contains(words), "{day}: no `{words}`: {shown}");
        }
        // Nothing of it is lost where it is written again.
        let again = run(format!("netdyno report {path} --json")).with(1).json();
        holds(&again, &serde_json::from_str(text).expect("JSON"), "");
        assert!(figures(path).len() > 20, "{day}");
    }
    assert_eq!(figures(&paths[0]), figures(&paths[1]));
    let [old, new] = &paths;
    let compared = run(format!("netdyno compare {old} {new} --json")).json();
    let parts = compared["figures"].as_array().expect("figures").iter();
    assert!(parts.clone().count() > 10, "{compared}");
    parts.for_each(|figure| assert_eq!(figure["a"], figure["b"], "{figure}"));
    let lined = run(format!("netdyno trend {} --json", dir.path().join("results").display())).ok().json();
    assert_eq!((&lined["results"], &lined["left_out"]), (&json!(2), &json!([])), "{lined}");
}

#[test]
fn a_job_of_an_earlier_day_is_done_again_from_its_result() {
    let dir = folder();
    let path = dir.path().join("result.json");
    let mut result: Value = serde_json::from_str(RESULTS[0].1).expect("JSON");
    result["requested"] = job();
    std::fs::write(&path, result.to_string()).expect("written");
    let printed = run(format!("netdyno rerun {} --print-job", path.display())).ok().json();
    holds(&printed, &job(), "");
    let file = dir.path().join("job.json");
    std::fs::write(&file, job().to_string()).expect("written");
    let printed = run(format!("netdyno run {} --print-job", file.display())).ok().json();
    holds(&printed, &job(), "");
}
