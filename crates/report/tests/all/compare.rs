//! Comparing results: what is found, what is not, and what is refused.

use netdyno_report::compare::{Change, Comparison, Incomparable, Named, compare, render};
use netdyno_report::*;

use crate::fixtures::lossy_replay;
use crate::hostile::{ATTACK, hostile};
use crate::searches::search;

fn named(reports: &[Report]) -> Vec<Named<'_>> {
    reports.iter().enumerate().map(|(n, report)| Named { name: format!("r{n}"), report }).collect()
}

fn against(a: &[Report], b: &[Report]) -> Result<Comparison, Incomparable> {
    compare(&named(a), &named(b), 0.0)
}

/// A run at this rate, its intervals unsteady by so many frames.
fn run(rate: u64, unsteady: u64, seed: u64) -> Report {
    let mut report = Report::new("send");
    let mut state = seed;
    report.intervals = (0..60)
        .map(|n| {
            // splitmix64
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            let frames = rate / 10 + (mixed >> 33) % (unsteady + 1);
            Interval {
                start_ns: n * 100_000_000,
                end_ns: (n + 1) * 100_000_000,
                tx_frames: Some(frames),
                tx_bytes: Some(frames * 60),
                ..Interval::default()
            }
        })
        .collect();
    let frames = report.intervals.iter().filter_map(|i| i.tx_frames).sum();
    report.result.tx = Some(Tx { totals: Totals::over(frames, frames * 60, 6_000_000_000), ..Tx::default() });
    report
}

fn change(comparison: &Comparison, name: &str) -> Change {
    comparison.figures.iter().find(|c| c.name == name).unwrap_or_else(|| panic!("no {name}")).change
}

#[test]
fn what_differs_by_more_than_the_noise_is_told_from_what_does_not() {
    let same = against(&[run(100_000, 500, 1)], &[run(100_000, 500, 2)]).expect("compared");
    assert_eq!((change(&same, "sent"), same.exit_status()), (Change::Same, 0));
    let worse = against(&[run(100_000, 500, 1)], &[run(90_000, 500, 2)]).expect("compared");
    assert_eq!((change(&worse, "sent"), worse.exit_status()), (Change::Worse, 1));
    let sent = &worse.figures[0];
    assert!(sent.difference_ratio.is_some_and(|r| (-0.11..-0.08).contains(&r)), "{sent:?}");
    assert!(sent.interval_95.is_some_and(|(low, high)| low < sent.difference && high > sent.difference));
    assert_eq!(sent.cliffs_delta, Some(-1.0));
    let better = against(&[run(100_000, 500, 1)], &[run(110_000, 500, 2)]).expect("compared");
    assert_eq!((better.outcome, better.exit_status()), (Change::Better, 0));
    // A difference that is sure, but too small to matter.
    let (a, b) = ([run(100_000, 500, 1)], [run(90_000, 500, 2)]);
    let ignored = compare(&named(&a), &named(&b), 0.2).expect("compared");
    assert_eq!((ignored.outcome, ignored.exit_status()), (Change::Same, 0));
}

/// A run whose intervals have these p99, and the whole this one.
fn delayed(parts: impl Iterator<Item = u64>, whole: u64) -> Report {
    let mut report = run(100_000, 0, 1);
    for (interval, p99) in report.intervals.iter_mut().zip(parts) {
        interval.latency_p99_ns = Some(p99);
    }
    report.result.latency_ns = Some(Distribution { count: 1000, p99: whole, ..Distribution::default() });
    report
}

#[test]
fn a_whole_that_one_part_made_is_not_judged_by_its_parts() {
    let p99 = |a: &Report, b: &Report| {
        let comparison = against(std::slice::from_ref(a), std::slice::from_ref(b)).expect("compared");
        let found = comparison.figures.iter().find(|c| c.name == "latency, p99").expect("p99").clone();
        (found, comparison)
    };
    // One bad moment makes the whole's p99; all other parts went from 100 to 200 us.
    let parts =
        |typical: u64| (0..60).map(move |n| if n == 30 { 60_000_000 } else { typical + n * 97 % 60 * 20 });
    let (a, b) = (delayed(parts(100_000), 4_880_000), delayed(parts(200_000), 4_980_000));
    let (found, comparison) = p99(&a, &b);
    assert_eq!((found.change, comparison.exit_status()), (Change::NotJudged, 0), "{found:?}");
    assert_eq!((found.interval_95, found.p, found.cliffs_delta), (None, None, None));
    assert!(
        render(&comparison, text::Options::default()).contains("the whole and its parts disagree"),
        "{}",
        render(&comparison, text::Options::default())
    );
    // That both differ by as much is chance, where neither whole is as its parts are.
    let (found, _) = p99(&a, &delayed(parts(200_000), 4_980_100));
    assert_eq!(found.change, Change::NotJudged, "{found:?}");
    // A whole that is as its parts are is judged, and what it differs by lies in the interval.
    let steady = |typical: u64| (0..60).map(move |n| typical + n * 97 % 60 * 20);
    let (found, comparison) = p99(&delayed(steady(100_000), 100_700), &delayed(steady(200_000), 200_600));
    assert_eq!((found.change, comparison.exit_status()), (Change::Worse, 1), "{found:?}");
    let (low, high) = found.interval_95.expect("an interval");
    assert!(low <= found.difference && found.difference <= high, "{found:?}");
    // The same where it misses it by little, since the first and the last interval are in the whole only.
    let (found, _) = p99(&delayed(steady(100_000), 100_700), &delayed(steady(200_000), 206_000));
    let (low, high) = found.interval_95.expect("an interval");
    assert!(
        found.change == Change::Worse && low <= found.difference && found.difference <= high,
        "{found:?}"
    );
}

#[test]
fn a_comparison_keeps_to_the_columns_there_are_and_says_what_its_words_mean() {
    let mut other = run(90_000, 500, 2);
    other.environment.kernel =
        Some("6.19.0-a-kernel-whose-name-is-as-long-as-distributions-like-them".into());
    other.result.verdict.fall_short(
        Code::RateNotReached,
        "the rate was not reached: ".to_owned() + &"of many words ".repeat(20),
    );
    let comparison = against(&[run(100_000, 500, 1)], &[other]).expect("compared");
    for width in [80, 100, 200] {
        let text = render(&comparison, text::Options { width, ..text::Options::default() });
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest.is_some_and(|widest| widest <= width), "{text}");
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for said in ["effect: Cliff's delta, from -1", "parts: a run's intervals", "29 and 29 parts", "WORSE"]
        {
            assert!(words.contains(said), "{said} is not in {text}");
        }
        // What is not in the table is not explained.
        assert!(!words.contains("Hedges") && !words.contains("disagree"), "{text}");
    }
}

#[test]
fn received_rates_over_another_time_are_told() {
    let received = |span_ns: u64, duration_ns: u64| {
        let mut report = run(100_000, 500, 1);
        let totals = Totals::over(600_000, 36_000_000, duration_ns);
        // The first results had no span: zero stands for that.
        let arrival_span_ns = (span_ns > 0).then_some(span_ns);
        report.result.rx = Some(Rx { totals, arrival_span_ns, ..Rx::default() });
        report
    };
    let old = received(0, 5_999_999_000);
    let (sent_in, queued) = (received(5_999_999_000, 6_000_000_000), received(7_000_000_000, 7_000_000_000));
    let told = |a: &Report, b: &Report| {
        let comparison = against(std::slice::from_ref(a), std::slice::from_ref(b)).expect("compared");
        comparison.notes.into_iter().find(|note| note.contains("received rates are over"))
    };
    assert!(told(&old, &sent_in).is_some_and(|note| note.starts_with("r0: ")));
    assert!(told(&sent_in, &queued).is_some_and(|note| note.contains("first arrival")));
    for (a, b) in [(&old, &old), (&old, &queued), (&sent_in, &sent_in)] {
        assert_eq!(told(a, b), None);
    }
}

#[test]
fn no_difference_beyond_an_interval_is_said_to_be_noise() {
    // A stall in the first interval, which is no part: the whole lost a tenth, the parts nothing.
    let mut stalled = run(100_000, 500, 2);
    let tx = stalled.result.tx.as_mut().expect("sent");
    tx.totals = Totals::over(tx.totals.frames * 9 / 10, tx.totals.bytes, tx.totals.duration_ns);
    let comparison = against(&[run(100_000, 500, 1)], &[stalled]).expect("compared");
    assert_eq!(change(&comparison, "sent"), Change::NotJudged);
}

#[test]
fn repetitions_compared_by_ranks_show_their_medians() {
    let side = |rate: u64, last: u64| -> Vec<Report> {
        (0..9).map(|n| run(if n == 8 { last } else { rate + n * 100 }, 5, n)).collect()
    };
    // One of nine was held up for most of its time: the mean of B is below that of A, all others are above.
    let comparison = against(&side(100_000, 100_800), &side(105_000, 10_000)).expect("compared");
    let sent = comparison.figures.iter().find(|c| c.name == "sent").expect("sent");
    assert_eq!(sent.change, Change::Better, "{sent:?}");
    let (low, high) = sent.interval_95.expect("an interval");
    assert!(
        low <= sent.difference && sent.difference <= high && (4_000.0..6_000.0).contains(&sent.difference)
    );
}

#[test]
fn repetitions_are_judged_by_how_they_differ_among_themselves() {
    let side = |rates: [u64; 3]| rates.map(|rate| run(rate, 5, rate));
    let noisy =
        against(&side([100_000, 90_000, 110_000]), &side([95_000, 105_000, 85_000])).expect("compared");
    assert_eq!(change(&noisy, "sent"), Change::Same);
    let clear =
        against(&side([100_000, 100_400, 99_800]), &side([95_000, 95_300, 94_900])).expect("compared");
    assert_eq!(change(&clear, "sent"), Change::Worse);
    assert_eq!(clear.figures[0].by, "repetitions");
    assert!(
        render(&clear, text::Options::default()).contains("3 and 3 repetitions"),
        "{}",
        render(&clear, text::Options::default())
    );
    // Of intervals alone the first pair would have seemed to differ.
    let alone = against(&[run(100_000, 5, 1)], &[run(95_000, 5, 2)]).expect("compared");
    assert_eq!(change(&alone, "sent"), Change::Worse);
    assert!(alone.notes.iter().any(|note| note.contains("One result a side")), "{:?}", alone.notes);
}

/// A run that sent so many of the frames that were asked for in 6 s, and lost a hundredth of them.
fn offered(sent: u64, asked: Option<u64>, seed: u64) -> Report {
    let mut report = run(sent, 20, seed);
    report.intervals.iter_mut().for_each(|i| {
        let sent = i.tx_frames.unwrap_or_default();
        (i.rx_frames, i.lost_frames) = (Some(sent - sent / 100), Some(sent / 100));
        i.latency_p50_ns = Some(sent * 10);
    });
    let frames = report.intervals.iter().filter_map(|i| i.rx_frames).sum();
    report.result.rx = Some(Rx { totals: Totals::over(frames, frames * 60, 6_000_000_000), ..Rx::default() });
    report.result.latency_ns = Some(Distribution { count: frames, p50: sent, ..Distribution::default() });
    if let Some(tx) = &mut report.result.tx {
        tx.intended_frames_per_second = asked.map(|asked| asked as f64);
    }
    report
}

#[test]
fn loads_that_differ_are_said_first_and_what_depends_on_them_is_not_judged() {
    let whole = offered(100_000, Some(100_000), 1);
    let short = offered(54_700, Some(100_000), 2);
    let comparison = against(std::slice::from_ref(&whole), &[short]).expect("compared");
    let load = comparison.offered_loads.iter().find(|load| load.name == "frames").expect("frames");
    assert!(load.differ && load.a_asked == Some(1e5), "{load:?}");
    for name in ["received", "latency, p50"] {
        let c = comparison.figures.iter().find(|c| c.name == name).expect("a figure");
        assert_eq!((c.change, c.p, c.interval_95), (Change::NotJudged, None, None), "{c:?}");
        assert_eq!(c.by, "the offered loads differ");
    }
    // What it sent of what was asked for is the sender's own.
    assert_eq!((change(&comparison, "sent"), comparison.exit_status()), (Change::Worse, 1));
    let text = render(&comparison, text::Options::default());
    let told = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for says in [
        "The offered loads differ: frames of A 100 kpps, of B 54.8 kpps (54.8 % of the 100 kpps asked for)",
        "All other conditions: the same",
    ] {
        assert!(told.contains(says), "no `{says}`: {text}");
    }
    assert!(
        text.find("offered loads").expect("loads") < text.find("Figures").expect("the figures"),
        "{text}"
    );
    let (a, b) = ([whole.clone()], [offered(54_700, Some(100_000), 2)]);
    let page = html::comparison(&comparison, &named(&a), &named(&b));
    assert!(page.contains("<h1>The offered loads differ; B is worse than A</h1>"), "{page}");
}

#[test]
fn another_load_that_was_asked_for_is_neither_better_nor_worse() {
    let (a, b) = (offered(40_000, Some(40_000), 1), offered(10_000, Some(10_000), 2));
    let comparison = against(&[a], &[b]).expect("compared");
    assert_eq!((comparison.outcome, comparison.exit_status()), (Change::NotJudged, 0));
    let sent = comparison.figures.iter().find(|c| c.name == "sent").expect("sent");
    assert_eq!(sent.by, "another load was asked for");
    let text = render(&comparison, text::Options::default());
    assert!(text.trim_end().ends_with("the offered loads differ."), "{text}");
}

#[test]
fn loads_that_vary_as_much_on_either_side_are_the_same() {
    let side = |rates: [u64; 3]| rates.map(|rate| offered(rate, None, rate));
    let (a, b) = (side([100_000, 90_000, 110_000]), side([95_000, 112_000, 88_000]));
    let comparison = against(&a, &b).expect("compared");
    assert!(comparison.offered_loads.iter().all(|load| !load.differ), "{:?}", comparison.offered_loads);
    assert_ne!(change(&comparison, "received"), Change::NotJudged);
    let clear =
        against(&side([100_000, 99_000, 101_000]), &side([80_000, 79_000, 81_000])).expect("compared");
    assert_eq!(change(&clear, "received"), Change::NotJudged);
    // Less than 1 % is no difference.
    let near = against(&[offered(100_000, None, 1)], &[offered(99_300, None, 2)]).expect("compared");
    assert!(near.offered_loads.iter().all(|load| !load.differ));
}

#[test]
fn values_of_conditions_stand_whole() {
    let mut other = lossy_replay();
    let name = "6.19.0-of-a-distribution with-words that-go-on beyond-the column";
    other.environment.kernel = Some(name.into());
    let comparison = against(&[lossy_replay()], &[other]).expect("compared");
    let text = render(&comparison, text::Options::default());
    assert!(name.split(' ').all(|word| text.contains(word)) && !text.contains("..."), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn conditions_that_differ_stand_first() {
    let mut other = lossy_replay();
    other.environment.kernel = Some("6.19.0".into());
    other.environment.interfaces[0].mtu = Some(9000);
    let comparison = against(&[lossy_replay()], &[other]).expect("compared");
    let names: Vec<_> = comparison.conditions.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["kernel", "MTU (send)"]);
    let text = render(&comparison, text::Options::default());
    assert!(text.find("6.19.0").expect("the kernel") < text.find("Figures").expect("the figures"), "{text}");
    let same =
        render(&against(&[lossy_replay()], &[lossy_replay()]).expect("compared"), text::Options::default());
    assert!(same.contains("the same on both sides") && same.contains("does not differ"), "{same}");
}

#[test]
fn how_loss_is_known_is_a_condition_only_where_a_result_says_it() {
    let mut counted = lossy_replay();
    counted.result.loss.as_mut().expect("loss").by_count_only = true;
    let before = against(&[lossy_replay()], &[counted.clone()]).expect("compared");
    let [condition] = &before.conditions[..] else { panic!("{:?}", before.conditions) };
    // Results of before it was said are not given out for what they may not be.
    assert_eq!((&condition.a[0][..], &condition.b[0][..]), ("-", "by count only"));
    let same = against(&[counted.clone()], &[counted]).expect("compared");
    assert!(same.conditions.is_empty());
}

#[test]
fn what_does_not_mean_the_same_is_refused() {
    let say = |a: Report, b: Report| against(&[a], &[b]).expect_err("refused").to_string();
    assert!(say(lossy_replay(), search()).contains("r0 is of `netdyno replay`, r0 of `netdyno search`"));
    let mut there_and_back = lossy_replay();
    there_and_back.result.round_trip = true;
    assert!(say(lossy_replay(), there_and_back).contains("one way"));
    let mut failed = lossy_replay();
    failed.result.verdict.fail(Code::Other, "no such interface");
    assert!(say(lossy_replay(), failed).contains("no such interface"));
    let mut bursts = search();
    bursts.result.search.as_mut().expect("a search").kind = "burst".into();
    assert!(say(search(), bursts).contains("searched for"));
    assert!(say(Report::new("send"), Report::new("send")).contains("no figure in common"));
}

#[test]
fn searches_differ_when_their_bounds_do_not_meet() {
    let with = |factor: f64| {
        let mut report = search();
        for found in
            report.result.search.as_mut().expect("a search").sizes.iter_mut().flat_map(|s| &mut s.throughput)
        {
            let found = found.as_mut().expect("found");
            found.frames_per_second *= factor;
            found.failed_frames_per_second = found.failed_frames_per_second.map(|rate| rate * factor);
        }
        report
    };
    let name = "64 bytes: throughput with loss 0 %";
    let near = against(&[with(1.0)], &[with(0.999)]).expect("compared");
    assert_eq!(change(&near, name), Change::Same);
    let far = against(&[with(1.0)], &[with(0.99)]).expect("compared");
    assert_eq!((change(&far, name), far.exit_status()), (Change::Worse, 1));
    let several = against(&[with(1.0), with(1.001), with(0.999)], &[with(1.1), with(1.101), with(1.099)]);
    assert_eq!(change(&several.expect("compared"), name), Change::Better);
}

#[test]
fn comparisons_of_anything_are_text_and_json() {
    let pairs = [(hostile(), hostile()), (crate::searches::hostile(), crate::searches::hostile())];
    for (a, b) in pairs {
        let mut b = b;
        b.environment.kernel = Some(format!("{ATTACK}2"));
        let (a, b) = ([a], [b]);
        let comparison = against(&a, &b).expect("compared");
        let page = html::comparison(&comparison, &named(&a), &named(&b));
        assert_eq!(page.matches("<script").count(), 2, "the data and our own script");
        assert!(
            !page.contains("<img")
                && !page.contains('\u{1b}')
                && !page.contains('\u{202e}')
                && !page.contains(ATTACK)
        );
        let text = render(&comparison, text::Options::default());
        assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'), "{text}");
        let json = serde_json::to_string(&comparison).expect("JSON");
        assert_eq!(serde_json::from_str::<Comparison>(&json).expect("reads back"), comparison);
    }
    for (name, report) in crate::fixtures::sparse().into_iter().chain(crate::searches::sparse()) {
        // Whatever there is of it: a comparison or a refusal, no panic.
        if let Ok(comparison) = against(std::slice::from_ref(&report), std::slice::from_ref(&report)) {
            assert_ne!(comparison.outcome, Change::Worse, "{name}");
            let of = named(std::slice::from_ref(&report));
            let page = html::comparison(&comparison, &of, &of);
            assert!(!page.contains("NaN") && !page.contains("inf\""), "{name}");
        }
    }
}
