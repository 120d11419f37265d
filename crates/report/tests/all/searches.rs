//! Searches on the page and in CSV: as agreed, and whatever their state.

use netdyno_report::search::*;
use netdyno_report::*;

use crate::golden::assert_golden;
use crate::hostile::ATTACK;

fn found(rate: f64, bytes: f64, goal: &str) -> Throughput {
    Throughput {
        failed_frames_per_second: Some(rate * 1.0025),
        conditional_frames_per_second: Some(rate),
        frame_size: format!("{bytes:.0}"),
        goal: goal.to_owned(),
        reached: true,
        ..Throughput::of(rate, bytes)
    }
}

fn trial(number: u32, part: &str, size: &str, load: f64, verdict: &str) -> Trial {
    let intended = (load * 2.0) as u64;
    let lost = if verdict == "loss" { intended / 10 } else { 0 };
    let short = if verdict == "sender short" { intended / 20 } else { 0 };
    Trial {
        number,
        part: part.into(),
        frame_size: size.to_owned(),
        stage: if part == "throughput" { Stage::Search } else { Stage::Measure },
        load,
        intended_frames_per_second: (part != "burst").then_some(load),
        duration_ns: if number.is_multiple_of(3) { 2_000_000_000 } else { 100_000_000 },
        intended_frames: intended,
        sent_frames: intended - short,
        received_frames: intended - short - lost,
        lost_frames: lost,
        loss_ratio: (lost + short) as f64 / intended as f64,
        shortfall_ratio: short as f64 / intended as f64,
        latency_ns: Some(TrialLatency {
            count: 20_000,
            min: 3_000,
            mean: 9_000.0,
            p50: 8_000,
            p90: 14_000,
            p99: 40_000 + u64::from(number) * 100,
            p999: 160_000,
            max: 400_000,
            frame_to_frame_p50: Some(700),
            frame_to_frame_p999: Some(90_000),
            frame_to_frame_max: Some(300_000),
            jitter: Some(1_200),
        }),
        verdict: verdict.into(),
        uneven_frames: if verdict == "sender uneven" { lost } else { 0 },
        ..Trial::default()
    }
}

/// Every kind of figure that a search may find, at two frame sizes and two goals, on a link of 1 Gbit/s.
pub fn search() -> Report {
    let mut report = Report::new("search");
    report.command_line = ["netdyno", "search", "throughput", "--size", "64,1518"].map(String::from).to_vec();
    let spread = Spread { count: 5, mean: 812.0, min: 790.0, max: 830.0, stddev: 14.2 };
    let size = |bytes: f64, rate: f64| SizeResult {
        frame_size: format!("{bytes:.0}"),
        mean_frame_bytes: bytes,
        theoretical_frames_per_second: Some(1e9 / ((bytes + 20.0) * 8.0)),
        least: 80.0,
        greatest: 1e9 / ((bytes + 20.0) * 8.0),
        throughput: vec![Some(found(rate, bytes, "loss 0 %")), Some(found(rate * 1.1, bytes, "loss 0.5 %"))],
        latency: vec![LatencyAt {
            frames_per_second: rate,
            repetitions: 20,
            min_ns: 3_000,
            mean_ns: 9_000.0,
            typical_ns: 8_000,
            worst_case_ns: 160_000,
            variation_ns: 157_000,
            max_ns: 400_000,
            floor: None,
            frame_to_frame_typical_ns: Some(700),
            frame_to_frame_worst_ns: Some(90_000),
            frame_to_frame_max_ns: Some(300_000),
            jitter_ns: Some(1_200),
        }],
        loss_curve: (1..=10)
            .rev()
            .map(|tenth| LossAt {
                frames_per_second: rate * f64::from(tenth) / 10.0,
                load_ratio: f64::from(tenth) / 10.0,
                loss_ratio: f64::from((tenth - 4).max(0)) / 20.0,
                shortfall_ratio: if tenth == 10 { 0.02 } else { 0.0 },
                tester_ratio: if tenth == 9 { 0.01 } else { 0.0 },
            })
            .collect(),
        burst: Some(BurstFound {
            frames: spread,
            burst_frames_per_second: 1e6,
            implied_buffer_s: Some(812e-6),
            corrected_buffer_s: Some(570e-6),
            at_limit: false,
            step_frames: Some(2),
            longest_tried_frames: Some(3_000_000),
            throughput_frames_per_second: Some(rate),
        }),
        recovery_ns: Some(Spread { mean: 2e6, min: 1e6, max: 3e6, stddev: 4e5, ..spread }),
        ..SizeResult::default()
    };
    let sizes = vec![size(64.0, 700_000.0), size(1518.0, 80_000.0)];
    let loads = [1.0, 0.5, 0.6, 0.55, 0.54, 0.545, 0.542];
    let verdicts = ["loss", "passed", "loss", "sender short", "passed", "loss", "passed"];
    let mut trials = Vec::new();
    for size in &sizes {
        let (mut passed, mut failed) = (0.0f64, f64::INFINITY);
        for (load, verdict) in loads.iter().zip(verdicts) {
            let number = trials.len() as u32 + 1;
            let mut done = trial(number, "throughput", &size.frame_size, load * size.greatest, verdict);
            // The second goal is content with what the first is not.
            let known = |best: f64, least: f64| Bounds {
                passed: (best > 0.0).then_some(best * size.greatest),
                failed: least.is_finite().then_some(least * size.greatest),
            };
            match verdict {
                "passed" => passed = passed.max(*load),
                "loss" => failed = failed.min(*load),
                _ => {}
            }
            done.bounds = vec![known(passed, failed), known(passed, 1.0)];
            trials.push(done);
        }
        for part in ["latency", "burst"] {
            let number = trials.len() as u32 + 1;
            trials.push(trial(number, part, &size.frame_size, 1000.0, "passed"));
        }
    }
    report.result.throughput = sizes.first().and_then(|s| s.throughput.first().cloned().flatten());
    report.result.trials = trials;
    report.result.search = Some(SearchResult {
        kind: SearchKind::Throughput,
        method: Some(SearchMethod::Mlrsearch),
        axis: SearchAxis::FramesPerSecond,
        complete: true,
        untried_sizes: Vec::new(),
        sending_ns: 18_000_000_000,
        elapsed_ns: 25_000_000_000,
        sizes,
    });
    report
}

fn unfinished(part: &str, goal: Option<&str>) -> Unfinished {
    Unfinished {
        part: part.into(),
        goal: goal.map(str::to_owned),
        axis: if part == "burst" { SearchAxis::BurstFrames } else { SearchAxis::FramesPerSecond },
        passed: goal.map(|_| 4_100.0),
        passed_duration_ns: goal.map(|_| 250_000_000),
        failed: goal.map(|_| 8_200.0),
        failed_duration_ns: goal.map(|_| 3_000_000_000),
        trials: 20,
        passed_trials: 13,
        wanted_trials: if goal.is_none() && part != "loss" { Some(60) } else { None },
    }
}

/// Searches in which little or nothing was found, each with its name.
pub fn sparse() -> Vec<(&'static str, Report)> {
    let of = |change: &dyn Fn(&mut SearchResult, &mut Vec<Trial>)| {
        let mut report = search();
        let mut result = report.result.search.take().expect("a search");
        change(&mut result, &mut report.result.trials);
        report.result.search = Some(result);
        report
    };
    vec![
        (
            "empty",
            of(&|search, trials| {
                search.sizes.clear();
                trials.clear();
            }),
        ),
        (
            "one trial",
            of(&|search, trials| {
                search.sizes.truncate(1);
                trials.truncate(1);
            }),
        ),
        (
            "nothing passed",
            of(&|search, _| search.sizes.iter_mut().for_each(|s| s.throughput = vec![None, None])),
        ),
        (
            "zeros",
            of(&|search, trials| {
                search.sizes =
                    vec![SizeResult { throughput: vec![Some(Throughput::default())], ..Default::default() }];
                *trials = vec![Trial::default(); 3];
            }),
        ),
        (
            "numbers that are none",
            of(&|search, trials| {
                for s in &mut search.sizes {
                    (s.mean_frame_bytes, s.least, s.greatest) = (f64::MAX, 0.0, 1e300);
                    s.theoretical_frames_per_second = Some(1e300);
                }
                for t in trials {
                    (t.load, t.loss_ratio) = (1e300, 7.0);
                    t.bounds = vec![Bounds { passed: Some(-1.0), failed: Some(f64::MAX) }];
                }
            }),
        ),
        (
            "interrupted",
            of(&|search, trials| {
                search.complete = false;
                search.sizes.truncate(1);
                search.sizes[0].throughput.clear();
                search.sizes[0].unfinished = vec![unfinished("throughput", Some("loss 0 %"))];
                search.untried_sizes = vec!["1518".to_owned()];
                trials.truncate(4);
            }),
        ),
    ]
}

pub fn hostile() -> Report {
    let mut report = search();
    let attack = || ATTACK.to_owned();
    for trial in &mut report.result.trials {
        (trial.part, trial.stage, trial.verdict) = (ATTACK.into(), ATTACK.into(), ATTACK.into());
    }
    let search = report.result.search.as_mut().expect("a search");
    (search.kind, search.axis, search.method) = (ATTACK.into(), ATTACK.into(), Some(ATTACK.into()));
    for size in &mut search.sizes {
        size.frame_size = attack();
        size.throughput.iter_mut().flatten().for_each(|t| (t.goal, t.frame_size) = (attack(), attack()));
    }
    report.result.throughput.as_mut().expect("a throughput").frame_size = attack();
    report
}

/// The page without styles, script, data and drawings.
fn structure(report: &Report) -> String {
    let mut page = html::render(report);
    for (begin, end) in [("<style>", "</style>"), ("<svg", "</svg>"), ("<script", "</script>")] {
        while let Some(from) = page.find(begin) {
            let to = from + page[from..].find(end).expect("every element is closed") + end.len();
            page.replace_range(from..to, &format!("[{}]", begin.trim_matches(['<', '>'])));
        }
    }
    page.replace("</tr>", "</tr>\n").replace("<tr>", "\n<tr>")
}

#[test]
fn the_page_of_a_search_is_as_agreed() {
    assert_golden("tests/golden/search.html.txt", &structure(&search()));
}

#[test]
fn each_graph_of_the_standards_is_drawn_with_its_table() {
    let page = html::render(&search());
    for heading in [
        "Throughput by frame size",
        "Loss by load",
        "Latency by percentile",
        "Longest bursts forwarded whole",
        "The search with frames of 64 bytes",
        "The search with frames of 1518 bytes",
        "Every trial, in the order they were done",
    ] {
        assert!(page.contains(heading), "{heading}");
    }
    // Theory: 1 Gbit/s of 64-byte frames (RFC 2544: 1,488,095 a second).
    assert!(page.contains("what the link carries (1.00 Gbit/s)") && page.contains("<td>1.49 Mpps</td>"));
    assert!(page.contains("fell short in 2 of 18 trials, by 5.00 % at most"), "the sender's part is named");
}

#[test]
fn a_labs_bottleneck_is_the_line_beside_which_a_throughput_stands() {
    let mut report = search();
    for size in report.result.search.iter_mut().flat_map(|search| &mut search.sizes) {
        let found = size.throughput.iter().flatten().next().expect("a throughput").frames_per_second;
        size.theoretical_frames_per_second = None;
        size.bottleneck_frames_per_second = Some(found / 0.995);
    }
    let page = html::render(&report);
    for words in ["what the lab&#39;s bottleneck lets through", "99.5 % of the bottleneck", "in the long run"]
    {
        assert!(page.contains(words), "{words}");
    }
    assert!(!page.contains("no theoretical line"));
}

#[test]
fn searches_of_any_state_render_and_read_back() {
    for (name, report) in sparse().into_iter().chain([("hostile", hostile()), ("whole", search())]) {
        let page = html::render(&report);
        assert_eq!(html::embedded_report(&page).expect("own page reads"), report, "{name}");
        assert!(!page.contains("NaN") && !page.contains("inf\"") && !page.contains(">inf"), "{name}");
        let text = text::render(&report, text::Options::default());
        assert!(!text.is_empty(), "{name}");
        let columns = csv::TRIALS_HEADER.matches(',').count();
        let rows = csv::trials(&report);
        assert_eq!(rows.lines().count(), report.result.trials.len() + 1, "{name}");
        if name != "hostile" {
            assert!(rows.lines().all(|row| row.matches(',').count() == columns), "{name}: {rows}");
        }
    }
}

#[test]
fn what_the_sender_did_not_send_does_not_stand_under_lost() {
    let mut report = Report::new("trial");
    report.result.trials = vec![search::Trial {
        number: 1,
        frame_size: "64".into(),
        intended_frames: 20_000,
        sent_frames: 18_860,
        received_frames: 18_860,
        loss_ratio: 0.057,
        shortfall_ratio: 0.057,
        verdict: "sender short".into(),
        ..search::Trial::default()
    }];
    let row = |report: &Report| {
        let text = text::render(report, text::Options::default());
        let of = |begin: &str| {
            let line = text.lines().find(|line| line.starts_with(begin)).unwrap_or_default();
            line.split("  ")
                .map(str::trim)
                .filter(|cell| !cell.is_empty())
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        of("trial").into_iter().zip(of("1 ")).collect::<Vec<_>>()
    };
    let cell =
        |row: &[(String, String)], name: &str| row.iter().find(|(n, _)| n == name).map(|(_, c)| c.clone());
    let short = row(&report);
    assert_eq!(cell(&short, "lost").as_deref(), Some("0 %"), "{short:?}");
    assert_eq!(cell(&short, "sender short").as_deref(), Some("5.70 %"), "{short:?}");
    report.result.trials[0].shortfall_ratio = 0.0;
    let full = row(&report);
    assert_eq!(cell(&full, "sender short"), None, "{full:?}");
    assert_eq!(full.last().map(|(_, verdict)| verdict.as_str()), Some("sender short"), "{full:?}");
}

#[test]
fn hostile_names_in_searches_stay_text() {
    let page = html::render(&hostile());
    assert_eq!(page.matches("<script").count(), 2, "the data and our own script");
    assert!(!page.contains("<img") && !page.contains('\u{202e}') && !page.contains('\u{1b}'));
    let rows = csv::trials(&hostile());
    assert!(!rows.contains('\u{1b}') && rows.contains("\"\"&"), "quoted: {rows}");
}

#[test]
fn each_goal_stands_by_its_name_whatever_came_of_it() {
    let (strict, lax) = ("loss 0 %", "loss 0.5 %");
    let entry = |goal: &str, outcome| GoalResult { goal: goal.to_owned(), outcome, ..GoalResult::default() };
    let mut report = search();
    let sizes = &mut report.result.search.as_mut().expect("a search").sizes;
    for (size, first) in sizes.iter_mut().zip([GoalOutcome::NotDetermined, GoalOutcome::NothingPassed]) {
        size.goals = vec![entry(strict, first), entry(lax, GoalOutcome::Found)];
    }
    // The first goal could not be judged with one size, and nothing kept it with the other.
    sizes[0].throughput.remove(0);
    sizes[1].throughput[0] = None;
    let named = |size: &SizeResult| -> Vec<(String, bool)> {
        size.by_goal().map(|(goal, found)| (goal.expect("a name").to_owned(), found.is_some())).collect()
    };
    assert_eq!(named(&sizes[0]), [(lax.to_owned(), true)]);
    assert_eq!(named(&sizes[1]), [(strict.to_owned(), false), (lax.to_owned(), true)]);
    assert!(sizes.iter().all(|size| size.of_first_goal().is_none()), "another goal's is not the first one's");
    let text = text::render(&report, text::Options { width: 200, ..text::Options::default() });
    let row = text.lines().find(|line| line.contains("nothing passed")).expect("a row");
    let cells: Vec<&str> = row.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
    assert_eq!(cells[..3], ["1518", strict, "nothing passed"], "{row}");
    let page = html::render(&report);
    assert!(page.contains("within loss 0.5 % with frames of 64 bytes"), "{page}");
    assert!(page.contains("loss 0 %: nothing passed") && !page.contains("goal 1: nothing passed"));
    assert_eq!(json::from_str(&json::to_string(&report)).expect("reads"), report);

    // A result of a version that gave goals no entries.
    let mut old = search();
    let sizes = &mut old.result.search.as_mut().expect("a search").sizes;
    sizes[1].throughput[0] = None;
    let sizes = &old.result.search.as_ref().expect("a search").sizes;
    assert_eq!(sizes[0].of_first_goal().map(|found| found.goal.as_str()), Some(strict));
    assert_eq!(sizes[1].of_first_goal().map(|found| found.goal.as_str()), Some(lax));
    assert_eq!(sizes[1].by_goal().next(), Some((None, None)));
    assert!(text::render(&old, text::Options::default()).contains("nothing passed"));
}

#[test]
fn what_is_unfinished_is_said_and_is_no_result() {
    for kind in ["throughput", "latency", "loss", "burst", "recovery", "reset", "soak"] {
        let goal = matches!(kind, "throughput" | "burst").then_some("loss 0 %");
        let mut report = search();
        let result = report.result.search.as_mut().expect("a search");
        (result.complete, result.kind) = (false, kind.into());
        result.sizes = vec![SizeResult {
            frame_size: "imix".to_owned(),
            least: 69.9,
            greatest: 17_000.0,
            unfinished: vec![unfinished(kind, goal)],
            ..SizeResult::default()
        }];
        result.untried_sizes = vec!["1518".to_owned()];
        report.result.throughput = None;
        report.result.trials.truncate(4);
        // A narrower table leaves out for how long.
        let text = text::render(&report, text::Options { width: 120, ..text::Options::default() });
        let page = html::render(&report);
        for said in [&text, &page] {
            assert!(!said.contains("nothing passed") && !said.contains("69.9 pps<"), "{kind}: {said}");
            assert!(!said.contains("nothing found") && !said.contains("Forwarded:"), "{kind}: {said}");
        }
        assert!(page.contains("Unfinished, by 4 trials"), "{kind}: {page}");
        assert!(text.contains("unfinished") && text.contains("Not begun: frames of 1518"), "{kind}: {text}");
        let known = match kind {
            "throughput" => {
                "throughput: 4.10 kpps passed and 8.20 kpps failed so far, 13 of 20 trials passed"
            }
            "burst" => "burst: 4,100 burst frames passed and 8,200 burst frames failed so far",
            "loss" => "loss: 20 trials done",
            _ => "20 of 60 trials done",
        };
        assert!(page.contains(known), "{kind}: {page}");
        let known = match kind {
            "throughput" => ["4.10 kpps", "8.20 kpps", "250 ms", "13 of 20 trials passed"],
            "burst" => ["4,100 burst frames", "8,200 burst frames", "3.00 s", "13 of 20 trials passed"],
            "loss" => ["loss", "20 trials done", "", ""],
            _ => [kind, "20 of 60 trials done", "", ""],
        };
        assert!(known.iter().all(|known| text.contains(known)), "{kind}: {text}");
        assert!(page.contains("Ended before its end: no result") && page.contains("not begun"), "{kind}");
        let read = json::from_str(&json::to_string(&report)).expect("reads");
        assert_eq!(read, report, "{kind}");
        // One row for each trial, and nothing that sums them up.
        assert_eq!(csv::trials(&report).lines().count(), 5, "{kind}");
    }
}
