//! Results that are damaged, of another version, of the future, copied or not there: each is named.

use crate::made::{NOW, folder, result, write};
use netdyno_trend::{Outcome, Why, Wish, judge, read, text};
use std::fs;

#[test]
fn what_cannot_be_put_beside_others_is_counted_and_named() {
    let made = folder(20, |_| 1e6, |_, _| ());
    let file = |name: &str| made.path().join(name).join("result.json");
    let whole = fs::read_to_string(file("run-1")).expect("a result");
    fs::write(file("run-1"), &whole[..whole.len() / 2]).expect("written");
    fs::write(file("run-2"), "").expect("written");
    fs::write(file("run-3"), [0xff, 0xfe, 0]).expect("written");
    fs::write(file("run-4"), whole.replace("netdyno.report/2", "netdyno.report/3")).expect("written");
    let mut future = result(1_000_000, 1e6);
    write(made.path(), "run-5", &future);
    future.environment.started = Some("yesterday".to_owned());
    write(made.path(), "run-6", &future);
    let mut failed = result(7, 1e6);
    failed.result.verdict =
        report::Verdict::Failed { reasons: vec![report::Code::Other.says("the link went down\u{1b}[2J")] };
    write(made.path(), "run-7", &failed);
    write(made.path(), "run-8", &result(9, 1e6));
    write(made.path(), "run-9", &result(9, 1e6));
    fs::create_dir_all(file("run-10-dir")).expect("a folder called result.json");
    fs::write(made.path().join("other.json"), "{}").expect("written");
    fs::write(made.path().join("single.json"), report::json::to_string(&result(500, 1e6))).expect("written");
    std::os::unix::fs::symlink("nowhere", made.path().join("result.json")).expect("a link");
    std::os::unix::fs::symlink(".", made.path().join("circle")).expect("a link");

    let read = read(made.path(), NOW).expect("results");
    let whys: Vec<(Why, &str)> = read.left_out.iter().map(|left| (left.why, left.path.as_str())).collect();
    assert_eq!(
        whys,
        [
            (Why::Unreadable, "result.json"),
            (Why::Damaged, "run-1/result.json"),
            (Why::Damaged, "run-2/result.json"),
            (Why::Damaged, "run-3/result.json"),
            (Why::OtherVersion, "run-4/result.json"),
            (Why::NotDone, "run-7/result.json"),
            (Why::Future, "run-5/result.json"),
            (Why::Undated, "run-6/result.json"),
            (Why::Copy, "run-9/result.json"),
        ]
    );
    let trend = judge(&read, &Wish::default());
    assert_eq!((trend.results, trend.other_files), (13, 1));
    let said = text(&trend, report::text::Options { width: 120, ..Default::default() });
    for words in
        ["left out, damaged: 3:", "netdyno.report/3", "1 other JSON", "13 results in 1 series, 9 left out"]
    {
        assert!(said.contains(words), "no `{words}`: {said}");
    }
    assert!(!said.contains('\u{1b}'));
}

#[test]
fn a_clock_that_went_back_is_told() {
    let made = folder(20, |_| 1e6, |_, _| ());
    // The newest was written a day before the others.
    let newest =
        fs::File::options().append(true).open(made.path().join("run-19/result.json")).expect("a result");
    let day = std::time::Duration::from_secs(86_400);
    newest.set_modified(std::time::SystemTime::now() - day).expect("its time");
    let trend = judge(&read(made.path(), NOW).expect("results"), &Wish::default());
    assert!(trend.notes.iter().any(|note| note.contains("or a clock went back")), "{:?}", trend.notes);
}

#[test]
fn a_folder_without_results_is_one_clear_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let told = |path: &std::path::Path| read(path, NOW).expect_err("nothing").to_string();
    assert!(told(folder.path()).contains("`.keep`"), "{}", told(folder.path()));
    assert!(told(&folder.path().join("none")).contains("No such file"));
    let file = folder.path().join("file");
    fs::write(&file, "").expect("written");
    assert!(told(&file).contains("Not a directory"), "{}", told(&file));
}

#[test]
fn few_results_are_not_judged_and_missing_figures_are_said() {
    let made = folder(3, |n| 1e6 / (n + 1) as f64, |_, _| ());
    let of =
        |folder: &tempfile::TempDir| judge(&read(folder.path(), NOW).expect("results"), &Wish::default());
    assert_eq!((of(&made).exit_status(), of(&made).outcome), (0, Outcome::NotJudged));
    let made = folder(
        20,
        |_| 1e6,
        |n, report| {
            if n == 19 {
                report.result.loss = None;
            }
        },
    );
    let trend = of(&made);
    let lost = trend.series[0].figures.iter().find(|line| line.key == "loss_ratio").expect("loss");
    assert_eq!((lost.outcome, lost.values[19]), (Outcome::NotJudged, None));
    let said = trend.notes.concat();
    assert!(said.contains("does not have") && said.contains(&lost.name), "{said}");
}

#[test]
fn a_check_is_not_passed_while_the_newest_run_of_a_job_was_not_done() {
    let fail = |report: &mut report::Report| {
        report.result.verdict =
            report::Verdict::Failed { reasons: vec![report::Code::Other.says("no carrier at tx0")] };
        // It did not come to its interfaces.
        report.environment.interfaces.clear();
    };
    let made = folder(
        20,
        |_| 1e6,
        |n, report| {
            if n >= 18 || n == 3 {
                fail(report)
            }
        },
    );
    let judged = |wish: &Wish| judge(&read(made.path(), NOW).expect("results"), wish);
    // From the index it reads the same.
    for _ in 0..2 {
        let trend = judged(&Wish::default());
        let [run] = &trend.not_done[..] else { panic!("{:?}", trend.not_done) };
        assert_eq!(
            (run.runs, &*run.path, trend.outcome, trend.exit_status()),
            (2, "run-19", Outcome::Same, 1)
        );
        let said = text(&trend, report::text::Options { width: 200, ..Default::default() });
        for words in [
            "NOT DONE: send",
            "the newest 2 runs were not done, the last of them in run-19",
            "no carrier at tx0",
        ] {
            assert!(said.contains(words), "no `{words}`: {said}");
        }
        assert!(netdyno_trend::junit(&trend).contains("<failure message=\"NOT DONE"));
        assert!(netdyno_trend::markdown(&trend).contains("The newest run was not done"));
        assert!(netdyno_trend::page(&trend).contains("The newest run was not done"));
    }
    let later = Wish { since: Some(crate::made::BEGIN + 3600 * 20), ..Wish::default() };
    assert_eq!(judged(&later).not_done, []);
    // Another job that was done later says nothing of this one.
    let mut other = result(30, 1e6);
    other.requested =
        Some(serde_json::json!({"kind": "send", "what": "ipv6/udp", "rate": "top", "seed": 30}));
    write(made.path(), "run-30", &other);
    assert_eq!(judged(&Wish::default()).exit_status(), 1);
    write(made.path(), "run-31", &result(31, 1e6));
    assert_eq!((judged(&Wish::default()).not_done, judged(&Wish::default()).exit_status()), (vec![], 0));
}
