//! What searches find on devices whose truth is known.

use crate::device::{Kind, Simulated};
use netdyno_trial::limits::{Delay, Delays};
use netdyno_trial::mlr::{Goal, MlrSearch, Plan};
use netdyno_trial::{
    Bisect, BisectPlan, Burst, BurstPlan, Direction, Latency, Limits, LossCurve, LossCurvePlan,
    NotThisSearch, Outcome, Repeated, RepeatedPlan, Resolution, Search, Stage, buffer_time, resume, run,
};
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;

fn plan(greatest: f64) -> BisectPlan {
    BisectPlan {
        least: 1.0,
        greatest,
        resolution: Resolution::Units(1.0),
        direction: Direction::Greatest,
        limits: Limits::default(),
        trial_ns: 60 * SECOND,
        short_ns: 60 * SECOND,
        retries: 0,
        retry_loss_ratio: 0.0,
        in_parts: false,
        enough: 0.0,
    }
}

/// Runs a search on a device of which each whole value up to `limit` passes.
fn on_limit(search: &mut Bisect, limit: f64) -> u64 {
    let mut trials = 0;
    while let Some(wanted) = search.next() {
        trials += 1;
        let sent = 1000;
        let received = if wanted.load <= limit { sent } else { sent - 1 };
        search.tell(&Outcome { intended: sent, sent, received, ..Outcome::default() });
        assert!(trials < 200, "no end");
    }
    trials
}

proptest! {
    #[test]
    fn bisection_is_exact_to_the_frame(greatest in 1u32..20_000_000, part in 0.0f64..1.1) {
        let greatest = f64::from(greatest);
        let limit = (greatest * part).floor();
        let mut search = Bisect::new(plan(greatest)).unwrap();
        let trials = on_limit(&mut search, limit);
        let expected = if limit < 1.0 { None } else { Some(limit.min(greatest)) };
        prop_assert_eq!(search.passed(), expected);
        prop_assert!(trials <= greatest.log2().ceil() as u64 + 2, "{} trials", trials);
        prop_assert!(!search.is_inconsistent());
    }

    #[test]
    fn bisection_finds_the_least_as_well_as_the_greatest(limit in 64u32..1519) {
        let search = BisectPlan { least: 64.0, direction: Direction::Least, ..plan(1518.0) };
        let mut search = Bisect::new(search).unwrap();
        // Frames of fewer bytes than `limit` are too many a second.
        while let Some(wanted) = search.next() {
            let received = u64::from(wanted.load >= f64::from(limit));
            search.tell(&Outcome { intended: 1, sent: 1, received, ..Outcome::default() });
        }
        prop_assert_eq!(search.passed(), (limit <= 1518).then_some(f64::from(limit)));
    }

    #[test]
    fn every_search_ends_whatever_the_device_does(seed in any::<u64>(), chance in 0.0f64..1.0) {
        let kind = Kind::Flapping(1e6, chance);
        let short = BisectPlan { short_ns: SECOND, retries: 2, retry_loss_ratio: 1.0, ..plan(1e7) };
        let mut bisect = Bisect::new(short).unwrap();
        let mut device = Simulated::new(kind, seed);
        run(&mut bisect, &mut device).unwrap();
        prop_assert!(device.trials < 200);
        let goals = vec![Goal::rfc2544(60.0, 0.005), Goal::csit(0.005, 1.0, 0.005)];
        let mut mlr = MlrSearch::new(Plan { goals, least: 1e3, greatest: 1e7, warm_up_s: 0.0, most_s: 20_000.0, enough: 0.0 }).unwrap();
        let mut device = Simulated::new(kind, seed);
        run(&mut mlr, &mut device).unwrap();
        prop_assert!(device.trials < 20_000);
    }

    #[test]
    fn a_search_goes_on_from_its_trials(seed in any::<u64>(), part in 0.0f64..1.0) {
        let goals = vec![Goal::rfc2544(10.0, 0.005), Goal::csit(0.005, 1.0, 0.005)];
        let new = || MlrSearch::new(Plan { goals: goals.clone(), least: 1e3, greatest: 1e7, warm_up_s: 0.5, most_s: 1e4, enough: 0.0 }).unwrap();
        let mut whole = new();
        let done = run(&mut whole, &mut Simulated::new(Kind::Noisy(1e6, 0.05), seed)).unwrap();
        // Through JSON, as a result file keeps them.
        let kept: Vec<_> = serde_json::from_str(&serde_json::to_string(&done).unwrap()).unwrap();
        let cut = (kept.len() as f64 * part) as usize;
        let mut again = new();
        resume(&mut again, &kept[..cut]).unwrap();
        let wanted = again.next().unwrap();
        prop_assert!(wanted.is(&done[cut].wanted));
        resume(&mut again, &kept[cut..]).unwrap();
        prop_assert_eq!(again.found(), whole.found());
        prop_assert!(again.next().is_none());
        // Another search's trials are told from its own.
        let mut other = Bisect::new(plan(1e7)).unwrap();
        prop_assert_eq!(resume(&mut other, &kept), Err(NotThisSearch::Other { number: 1 }));
        prop_assert_eq!(
            resume(&mut again, &kept),
            Err(NotThisSearch::TooMany { trials: kept.len(), used: 0 })
        );
    }

    #[test]
    fn mlrsearch_takes_a_quarter_of_bisections_time(
        part in 0.02f64..0.98,
        kept in prop_oneof![Just(0.0), 0.0f64..0.01],
    ) {
        let (least, greatest, width) = (9_001.0, 14_880_952.0, 0.0025);
        let capacity = greatest * part;
        // What is in buffers at the end passes besides.
        let most = capacity * (1.0 + kept / 60.0);
        let mut device = Simulated::new(Kind::Buffered(capacity, kept), 1);
        let goals = vec![Goal::rfc2544(60.0, width)];
        let mut mlr = MlrSearch::new(Plan { goals, least, greatest, warm_up_s: 0.0, most_s: 1e6, enough: 0.0 }).unwrap();
        run(&mut mlr, &mut device).unwrap();
        let found = mlr.found()[0];
        prop_assert!(found.reached && found.lower.unwrap() <= most * 1.000001 && capacity <= found.upper.unwrap());
        prop_assert!(found.lower.unwrap() > capacity * (1.0 - width));
        let quick = device.sending_ns;
        let mut device = Simulated::new(Kind::Buffered(capacity, kept), 1);
        let resolution = Resolution::Relative(width);
        let mut bisect = Bisect::new(BisectPlan { least, resolution, ..plan(greatest) }).unwrap();
        run(&mut bisect, &mut device).unwrap();
        prop_assert!(bisect.passed().unwrap() > capacity * (1.0 - width));
        let (ours, whole) = (quick / SECOND, device.sending_ns / SECOND);
        // A device that passes in seconds what it does not in a minute may cost two long trials more.
        let enough = if kept == 0.0 { ours * 4 <= whole } else { ours * 2 <= whole };
        prop_assert!(enough, "{ours} s, bisection {whole} s");
    }
}

#[test]
fn a_sender_that_falls_short_is_told_from_a_device_that_loses() {
    let of = |intended, sent, received| Outcome { intended, sent, received, ..Outcome::default() };
    let broken = |outcome: Outcome| Limits::default().broken(&outcome);
    assert_eq!(broken(of(100, 100, 100)), None);
    assert_eq!(broken(of(100, 100, 99)), Some(netdyno_trial::Broken::Loss));
    assert_eq!(broken(of(100, 90, 90)), Some(netdyno_trial::Broken::Shortfall));
    assert_eq!(broken(of(100, 90, 89)), Some(netdyno_trial::Broken::Loss));
    // More than was sent is no success.
    assert_eq!(broken(of(100, 100, 101)), Some(netdyno_trial::Broken::Loss));
    assert_eq!(of(100, 90, 81).loss_ratio(), 0.19);
    assert_eq!(of(0, 0, 0).loss_ratio(), 0.0);
}

#[test]
fn goals_may_be_of_latency_and_order() {
    let late = Delays::default().and(Delay::P99, 3 * (10_000 + 5_000)).and(Delay::Max, 1_000_000_000);
    let limits = Limits { delays: late, ..Limits::default() };
    // The simulated device's latency grows by 10 ns for each frame a second more: 500,000 are the most.
    let mut search = Bisect::new(BisectPlan { limits, ..plan(1e7) }).unwrap();
    run(&mut search, &mut Simulated::new(Kind::Hard(2e6), 1)).unwrap();
    let found = search.passed().unwrap();
    assert!((500_000.0..500_100.0).contains(&found), "{found}");
    let goal = Goal { limits, ..Goal::rfc2544(10.0, 0.001) };
    let mut mlr = MlrSearch::new(Plan {
        goals: vec![goal],
        least: 1e3,
        greatest: 1e7,
        warm_up_s: 0.0,
        most_s: 1e6,
        enough: 0.0,
    })
    .unwrap();
    run(&mut mlr, &mut Simulated::new(Kind::Hard(2e6), 1)).unwrap();
    let found = mlr.found()[0].lower.unwrap();
    assert!((499_500.0..500_100.0).contains(&found), "{found}");
    let none = Outcome { intended: 1, sent: 1, received: 1, ..Outcome::default() };
    assert_eq!(limits.broken(&none), Some(netdyno_trial::Broken::LatencyUnknown));
    let order = Limits { reorder_ratio: Some(0.01), ..Limits::default() };
    let swapped = Outcome { intended: 100, sent: 100, received: 100, reordered: 2, ..Outcome::default() };
    assert_eq!(order.broken(&swapped), Some(netdyno_trial::Broken::Order));
}

#[test]
fn goals_may_be_of_variation_in_each_of_its_forms() {
    let steps = netdyno_trial::FrameToFrame { p50_ns: 5, p999_ns: 40, max_ns: 90, jitter_ns: 7 };
    let latency =
        Latency { min_ns: 100, p999_ns: 150, max_ns: 160, frame_to_frame: Some(steps), ..Latency::default() };
    let outcome = Outcome { intended: 1, sent: 1, received: 1, latency: Some(latency), ..Outcome::default() };
    for (delay, value) in [(Delay::Variation, 50), (Delay::FrameToFrame, 40), (Delay::Jitter, 7)] {
        let most = |ns| Limits { delays: Delays::default().and(delay, ns), ..Limits::default() };
        assert_eq!(most(value).broken(&outcome), None, "{delay}");
        assert_eq!(most(value - 1).broken(&outcome), Some(netdyno_trial::Broken::Variation), "{delay}");
    }
    // Nothing is kept that was not measured.
    let unknown = Outcome { latency: Some(Latency { frame_to_frame: None, ..latency }), ..outcome };
    let jitter = Limits { delays: Delays::default().and(Delay::Jitter, 1000), ..Limits::default() };
    assert_eq!(jitter.broken(&unknown), Some(netdyno_trial::Broken::LatencyUnknown));
}

#[test]
fn a_loss_that_a_held_up_senders_burst_explains_is_not_the_devices() {
    let of = |lost: u64, uneven| Outcome {
        intended: 1000,
        sent: 1000,
        received: 1000 - lost,
        uneven,
        ..Outcome::default()
    };
    let broken = |outcome: Outcome| Limits::default().broken(&outcome);
    assert_eq!(broken(of(0, 500)), None);
    assert_eq!(broken(of(20, 20)), Some(netdyno_trial::Broken::Uneven));
    assert_eq!(broken(of(21, 20)), Some(netdyno_trial::Broken::Loss));
    // What a goal allows may be lost besides.
    assert_eq!(Limits::loss(0.01).broken(&of(30, 20)), Some(netdyno_trial::Broken::Uneven));
    assert_eq!(Limits::loss(0.01).broken(&of(31, 20)), Some(netdyno_trial::Broken::Loss));
}

#[test]
fn short_trials_are_held_to_a_full_one() {
    let quick = BisectPlan { short_ns: SECOND, resolution: Resolution::Relative(0.01), ..plan(1e6) };
    let mut search = Bisect::new(quick).unwrap();
    let done = run(&mut search, &mut Simulated::new(Kind::Hard(3e5), 1)).unwrap();
    let last = done.last().unwrap().wanted;
    assert_eq!((last.stage, last.duration_ns), (Stage::Confirm, 60 * SECOND));
    assert_eq!(done.iter().filter(|done| done.wanted.duration_ns == 60 * SECOND).count(), 1);
    // A device that has less to give for a minute than for a second.
    let mut search = Bisect::new(quick).unwrap();
    while let Some(wanted) = search.next() {
        let limit = if wanted.duration_ns > SECOND { 2e5 } else { 3e5 };
        let received = u64::from(wanted.load <= limit);
        search.tell(&Outcome { intended: 1, sent: 1, received, ..Outcome::default() });
    }
    let found = search.passed().unwrap();
    assert!(search.is_inconsistent() && (197_000.0..=200_000.0).contains(&found), "{found}");
}

#[test]
fn a_device_that_forwards_nothing_has_no_throughput() {
    let mut bisect = Bisect::new(plan(1e6)).unwrap();
    run(&mut bisect, &mut Simulated::new(Kind::Dead, 1)).unwrap();
    assert_eq!((bisect.passed(), bisect.failed()), (None, Some(1.0)));
    let goals = vec![Goal::rfc2544(60.0, 0.005), Goal::csit(0.5, 1.0, 0.005)];
    let mut mlr =
        MlrSearch::new(Plan { goals, least: 1e3, greatest: 1e6, warm_up_s: 0.0, most_s: 1e6, enough: 0.0 })
            .unwrap();
    run(&mut mlr, &mut Simulated::new(Kind::Dead, 1)).unwrap();
    for found in mlr.found() {
        assert_eq!((found.lower, found.upper, found.reached), (None, Some(1e3), true));
    }
}

#[test]
fn the_time_a_search_may_take_ends_it() {
    let goals = vec![Goal::rfc2544(60.0, 0.005)];
    let mut mlr =
        MlrSearch::new(Plan { goals, least: 1e3, greatest: 1e7, warm_up_s: 0.0, most_s: 30.0, enough: 0.0 })
            .unwrap();
    run(&mut mlr, &mut Simulated::new(Kind::Hard(1e6), 1)).unwrap();
    assert!(mlr.timed_out() && mlr.next().is_none() && !mlr.found()[0].reached);
}

#[test]
fn the_loss_curve_ends_after_two_lossless_trials() {
    let limits = Limits::default();
    let plan = LossCurvePlan { greatest: 1e6, step_ratio: 0.1, trial_ns: SECOND, limits };
    let mut curve = LossCurve::new(plan);
    let done = run(&mut curve, &mut Simulated::new(Kind::Hard(4.5e5), 1)).unwrap();
    let loads: Vec<f64> = done.iter().map(|done| (done.wanted.load / 1e4).round() * 1e4).collect();
    assert_eq!(loads, [1e6, 9e5, 8e5, 7e5, 6e5, 5e5, 4e5, 3e5]);
    assert_eq!(done[0].outcome.loss_ratio(), 0.55);
    // One that loses everything is tried down to the smallest step.
    let mut curve = LossCurve::new(plan);
    assert_eq!(run(&mut curve, &mut Simulated::new(Kind::Dead, 1)).unwrap().len(), 10);
}

#[test]
fn bursts_tell_the_buffer() {
    // A device with a buffer of 1000 frames that forwards a third of the rate at which they come.
    let (rate, throughput) = (3e6, 1e6);
    let longest = 1500;
    let mut burst = Burst::new(BurstPlan { greatest: 100_000, step: 1, repetitions: 5, retries: 1 }).unwrap();
    let mut trials = 0;
    while let Some(wanted) = burst.next() {
        let sent = wanted.load as u64;
        assert_eq!(wanted.duration_ns, 0);
        trials += 1;
        burst.tell(&Outcome { intended: sent, sent, received: sent.min(longest), ..Outcome::default() });
        assert!(burst.left().trials > 0 || burst.next().is_none());
    }
    assert_eq!(burst.lengths(), [longest; 5]);
    assert!(!burst.at_limit() && trials > 5);
    let spread = burst.spread().unwrap();
    assert_eq!((spread.mean, spread.stddev), (1500.0, 0.0));
    let time = buffer_time(spread.mean, rate, throughput).unwrap();
    assert!((time.corrected_s * rate - 1000.0).abs() < 1e-6, "{time:?}");
    assert_eq!(buffer_time(spread.mean, rate, rate), None);
}

#[test]
fn repetitions_come_to_medians() {
    let plan =
        RepeatedPlan { loads: vec![1e3, 2e3], trial_ns: SECOND, then: Some((0.5, SECOND)), repetitions: 3 };
    let mut search = Repeated::new(plan);
    let mut number = 0;
    while let Some(wanted) = search.next() {
        assert_eq!(wanted.then.unwrap().load, wanted.load / 2.0);
        number += 1;
        let latency = Latency {
            min_ns: 10,
            p50_ns: 20 * number,
            p999_ns: 100 * number,
            max_ns: 1000,
            mean_ns: 30.0,
            frame_to_frame: Some(netdyno_trial::FrameToFrame {
                p50_ns: number,
                p999_ns: 10 * number,
                max_ns: 100,
                jitter_ns: 2 * number,
            }),
            ..Latency::default()
        };
        search.tell(&Outcome {
            latency: Some(latency),
            last_loss_ns: Some(SECOND + number * 1000),
            outage_ns: Some(number),
            ..Outcome::default()
        });
    }
    let found = search.latencies();
    assert_eq!(found.len(), 2);
    assert_eq!((found[0].typical_ns, found[0].worst_case_ns, found[0].variation_ns), (40, 200, 190));
    assert_eq!((found[1].typical_ns, found[1].repetitions), (100, 3));
    let steps = found[1].frame_to_frame.unwrap();
    assert_eq!((steps.p50_ns, steps.p999_ns, steps.max_ns, steps.jitter_ns), (5, 50, 100, 10));
    assert_eq!(search.recoveries(0).unwrap().mean, 2000.0);
    assert_eq!(search.outages(1).unwrap().max, 6.0);
}
