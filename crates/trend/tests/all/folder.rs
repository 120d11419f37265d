//! What is found in folders of whole results.

use crate::made::{BEGIN, NOW, folder, result, write};
use netdyno_trend::{self as trend, Outcome, Trend, Wish, judge, junit, markdown, page, prune, read, text};

fn looked(folder: &std::path::Path, wish: &Wish) -> Trend {
    judge(&read(folder, NOW).expect("results"), wish)
}

fn step(n: u64) -> f64 {
    if n < 36 { 1e6 } else { 0.95e6 }
}

#[test]
fn a_regression_is_told_with_where_it_began_and_what_else_changed() {
    let made = folder(40, step, |n, report| {
        if n >= 36 {
            report.environment.kernel = Some("6.12.0".to_owned());
            report.environment.interfaces[0].mtu = Some(9000);
            report.environment.interfaces[0].offloads = vec!["tx-checksumming".to_owned()];
        }
    });
    let trend = looked(made.path(), &Wish::default());
    assert_eq!((trend.exit_status(), trend.results, trend.series.len()), (1, 40, 1));
    let (series, line) = trend.worse().next().expect("a figure that is worse");
    let told = line.told(series).expect("words");
    for words in [
        "after run-35 (",
        "since run-36 (",
        "in 36 results before",
        "in 4 results since (-5.",
        "kernel 6.1.0 -> 6.12.0",
        "MTU (send) 1500 -> 9000",
        "offloads (send) -rx-gro",
    ] {
        assert!(told.contains(words), "no `{words}`: {told}");
    }
    assert_eq!(line.key, "tx_frames_per_second");
    assert_eq!(series.marks.len(), 1);
    assert_eq!(series.marks[0].at, 36);
    let lost = series.figures.iter().find(|line| line.key == "loss_ratio").expect("loss");
    assert_eq!((lost.outcome, lost.groups.len()), (Outcome::Same, 1));
    for (form, words) in [
        (text(&trend, report::text::Options { width: 120, ..Default::default() }), "WORSE"),
        (markdown(&trend), "**worse**"),
        (junit(&trend), "<failure message=\"sent after run-35"),
        (page(&trend), "Worse than before"),
        (trend::json(&trend), "\"outcome\": \"worse\""),
    ] {
        assert!(form.contains(words) && form.contains("run-35"), "{form}");
    }
}

#[test]
fn steady_results_and_better_ones_are_no_regression() {
    let steady = folder(40, |_| 1e6, |_, _| ());
    let trend = looked(steady.path(), &Wish::default());
    assert_eq!((trend.outcome, trend.exit_status()), (Outcome::Same, 0));
    let better = folder(40, |n| if n < 30 { 1e6 } else { 1.1e6 }, |_, _| ());
    assert_eq!(looked(better.path(), &Wish::default()).outcome, Outcome::Better);
    // What was repaired is no regression any more.
    let repaired = folder(40, |n| if (20..30).contains(&n) { 0.9e6 } else { 1e6 }, |_, _| ());
    let trend = looked(repaired.path(), &Wish::default());
    assert_eq!((trend.outcome, trend.series[0].figures[0].groups.len()), (Outcome::Better, 3));
}

#[test]
fn small_changes_and_earlier_ones_can_be_passed_over() {
    let made = folder(40, step, |_, _| ());
    let wish = |least, since| Wish { least, since, ..Wish::default() };
    assert_eq!(looked(made.path(), &wish(0.03, None)).outcome, Outcome::Worse);
    assert_eq!(looked(made.path(), &wish(0.08, None)).outcome, Outcome::Same);
    let trend = looked(made.path(), &wish(0.0, Some(BEGIN + 36 * 3600)));
    assert_eq!((trend.outcome, trend.results, trend.before_since), (Outcome::Same, 4, 36));
    let figures = vec!["loss_ratio".parse().expect("a figure")];
    assert_eq!(looked(made.path(), &Wish { figures, ..Wish::default() }).outcome, Outcome::Same);
}

#[test]
fn only_like_stands_beside_like() {
    let made = folder(
        12,
        |_| 1e6,
        |n, report| match n % 3 {
            0 => report.requested.as_mut().expect("a job")["rate"] = "10%".into(),
            1 => report.environment.hostname = Some("lab2".to_owned()),
            _ => {}
        },
    );
    let trend = looked(made.path(), &Wish::default());
    assert_eq!(trend.series.iter().map(|series| series.results.len()).collect::<Vec<_>>(), [4, 4, 4]);
    let any_host = looked(made.path(), &Wish { any_host: true, ..Wish::default() });
    assert_eq!(any_host.series.iter().map(|series| series.results.len()).collect::<Vec<_>>(), [8, 4]);
    let marks = &any_host.series[0].marks;
    assert!(marks[0].changed.iter().any(|changed| changed.name == "host"), "{marks:?}");
}

#[test]
fn results_are_put_in_the_order_in_which_they_began() {
    // Their names and the order in which they were written say otherwise.
    let made = tempfile::tempdir().expect("a folder");
    for n in (0..20).rev() {
        write(
            made.path(),
            &format!("{:02}", 20 - n),
            &result(n, if n < 15 { 1e6 } else { 0.9e6 } + n as f64),
        );
    }
    let trend = looked(made.path(), &Wish::default());
    let (series, line) = trend.worse().next().expect("worse");
    assert_eq!(series.results[0].path, "20");
    assert_eq!(line.shift.as_ref().expect("a shift").since, 15);
}

#[test]
fn an_index_makes_no_difference_and_damage_to_it_none_either() {
    let made = folder(30, step, |_, _| ());
    let first = read(made.path(), NOW).expect("results");
    assert_eq!(first.read_anew, 30);
    let of_files = trend::json(&judge(&first, &Wish::default()));
    let again = read(made.path(), NOW).expect("results");
    assert_eq!(again.read_anew, 0);
    assert_eq!(trend::json(&judge(&again, &Wish::default())), of_files);
    let index = made.path().join(".netdyno-trend");
    let whole = std::fs::read(&index).expect("an index");
    for at in (0..whole.len()).step_by(whole.len() / 12).filter(|at| *at > 40) {
        let mut damaged = whole.clone();
        damaged[at] ^= 4;
        std::fs::write(&index, damaged).expect("written");
        let read = read(made.path(), NOW).expect("results");
        assert_eq!(read.read_anew, 30, "byte {at}");
        assert!(read.notes[0].contains("the index was damaged") || read.notes[0].contains("unreadable"));
        std::fs::write(&index, &whole[..at]).expect("written");
        assert_eq!(trend::read(made.path(), NOW).expect("results").read_anew, 30, "cut at {at}");
    }
    // One that changed is read, and those alone that changed.
    write(made.path(), "run-3", &result(3, 5e5));
    std::fs::remove_dir_all(made.path().join("run-7")).expect("removed");
    let read = read(made.path(), NOW).expect("results");
    assert_eq!(read.read_anew, 1);
    let trend = judge(&read, &Wish::default());
    assert_eq!((trend.results, trend.series[0].figures[0].values[3]), (29, Some(5e5)));
}

#[test]
fn a_file_that_has_the_name_of_an_index_and_is_none_stays() {
    let made = folder(5, step, |_, _| ());
    let index = made.path().join(".netdyno-trend");
    std::fs::write(&index, "mine").expect("written");
    let read = read(made.path(), NOW).expect("results");
    assert!(read.notes.iter().any(|note| note.contains("is no index")), "{:?}", read.notes);
    assert_eq!(std::fs::read_to_string(&index).expect("there"), "mine");
}

#[test]
fn old_results_go_and_what_others_put_there_stays() {
    let made = folder(20, |_| 1e6, |_, _| ());
    std::fs::write(made.path().join("run-2/notes.txt"), "mine").expect("written");
    let trend = looked(made.path(), &Wish::default());
    let before = BEGIN + 10 * 3600;
    let pruned = prune(&trend, before, 1);
    assert_eq!((pruned.removed.len(), pruned.failed.len()), (10, 0));
    assert!(!made.path().join("run-1").exists() && made.path().join("run-10/result.json").exists());
    assert_eq!(std::fs::read_to_string(made.path().join("run-2/notes.txt")).expect("there"), "mine");
    // The newest of a series stay, however old they are.
    let trend = looked(made.path(), &Wish::default());
    assert_eq!(prune(&trend, NOW, 4).removed.len(), 6);
    assert_eq!(looked(made.path(), &Wish::default()).results, 4);
}

#[test]
fn a_page_of_many_results_is_small_and_runs_no_script() {
    let made = folder(
        600,
        |n| 1e6 - n as f64,
        |n, report| {
            report.requested.as_mut().expect("a job")["what"] =
                format!("<script>alert({})</script>", n % 150).into();
        },
    );
    let html = page(&looked(made.path(), &Wish::default()));
    assert!(html.len() < 1_000_000, "{}", html.len());
    assert!(
        !html.contains("<script") && html.contains("&lt;script&gt;") && html.contains("default-src 'none'")
    );
    assert!(html.contains("prefers-color-scheme: dark"));
}
