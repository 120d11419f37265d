//! Searches that are ended before their end, in virtual time, after each of their trials: what they say was tried.

use crate::device::{Kind, Simulated};
use netdyno_trial::mlr::{Goal, MlrSearch, Plan};
use netdyno_trial::{
    Bisect, BisectPlan, Burst, BurstPlan, Direction, Done, Limits, Resolution, Search, Tried, run, so_far,
};

const SECOND: u64 = 1_000_000_000;
const CAPACITY: f64 = 4.1e5;

fn tried(done: &[Done], limits: Limits) -> Vec<Tried> {
    let of = |done: &Done| Tried {
        load: done.wanted.load,
        duration_ns: done.wanted.duration_ns,
        broken: limits.broken(&done.outcome),
    };
    done.iter().map(of).collect()
}

/// After each trial of a search on a device that forwards `most` and no more.
fn says_what_was_tried(search: &mut dyn Search, kind: Kind, most: f64) {
    let limits = Limits::default();
    let done = run(search, &mut Simulated::new(kind, 1)).expect("trials");
    assert!(done.len() > 6, "{} trials", done.len());
    for ended in 0..=done.len() {
        let trials = tried(&done[..ended], limits);
        let known = so_far(trials.iter().copied(), Direction::Greatest);
        let passed = trials.iter().filter(|tried| tried.broken.is_none()).count();
        assert_eq!((known.trials as usize, known.passed_trials as usize), (ended, passed));
        // A value that passed is known as soon as one did, one that failed likewise, and no other is.
        assert_eq!((known.passed.is_some(), known.failed.is_some()), (passed > 0, passed < ended));
        for (shown, passes) in [(known.passed, true), (known.failed, false)] {
            let Some(shown) = shown else { continue };
            assert!(trials.iter().any(|tried| tried.load == shown.load
                && tried.duration_ns == shown.duration_ns
                && tried.broken.is_none() == passes));
            assert_eq!(shown.load <= most, passes, "{shown:?} after {ended}");
        }
    }
}

#[test]
fn a_search_that_is_ended_says_only_what_was_tried() {
    let (least, greatest) = (CAPACITY / 1000.0, CAPACITY * 2.0);
    let mut bisect = Bisect::new(BisectPlan {
        least,
        greatest,
        resolution: Resolution::Relative(0.0025),
        direction: Direction::Greatest,
        limits: Limits::default(),
        trial_ns: 3 * SECOND,
        short_ns: SECOND,
        retries: 0,
        retry_loss_ratio: 0.0,
        in_parts: false,
        enough: 0.0,
    })
    .expect("a plan");
    // A frame more than the device takes is lost.
    says_what_was_tried(&mut bisect, Kind::Hard(CAPACITY), CAPACITY + 1.0);
    let goals = vec![Goal::rfc2544(3.0, 0.0025)];
    let mut mlr = MlrSearch::new(Plan { goals, least, greatest, warm_up_s: 0.0, most_s: 1e6, enough: 0.0 })
        .expect("a plan");
    says_what_was_tried(&mut mlr, Kind::Hard(CAPACITY), CAPACITY + 2.0);
}

/// The case that misled: short trials passed, none of full length was done, and the bounds of the goal itself are not known.
#[test]
fn what_passed_in_short_trials_is_said_although_the_goal_has_no_bound_yet() {
    let (least, greatest) = (CAPACITY / 1000.0, CAPACITY * 2.0);
    let goals = vec![Goal::rfc2544(60.0, 0.0025)];
    let mut mlr = MlrSearch::new(Plan { goals, least, greatest, warm_up_s: 0.0, most_s: 1e6, enough: 0.0 })
        .expect("a plan");
    let mut device = Simulated::new(Kind::Hard(CAPACITY), 1);
    let mut done = Vec::new();
    for _ in 0..5 {
        let wanted = mlr.next().expect("a trial");
        let outcome = device.trial(&wanted);
        mlr.tell(&outcome);
        done.push(Done { wanted, outcome });
    }
    let found = &mlr.found()[0];
    assert_eq!((found.lower, found.reached), (None, false));
    let known = so_far(tried(&done, Limits::default()), Direction::Greatest);
    let (passed, failed) = (known.passed.expect("passed"), known.failed.expect("failed"));
    assert!(passed.load < failed.load && passed.duration_ns < 60 * SECOND, "{known:?}");
}

#[test]
fn bursts_that_were_tried_are_said_before_the_first_length_is_found() {
    let mut burst =
        Burst::new(BurstPlan { greatest: 100_000, step: 1, repetitions: 5, retries: 1 }).expect("a plan");
    let mut trials = Vec::new();
    while burst.lengths().is_empty() {
        let wanted = burst.next().expect("a trial");
        let sent = wanted.load as u64;
        let outcome = netdyno_trial::Outcome {
            intended: sent,
            sent,
            received: sent.min(1500),
            ..netdyno_trial::Outcome::default()
        };
        burst.tell(&outcome);
        trials.push(Tried { load: wanted.load, duration_ns: 0, broken: Limits::default().broken(&outcome) });
        let known = so_far(trials.iter().copied(), Direction::Greatest);
        assert!(known.passed.is_none_or(|passed| passed.load <= 1500.0), "{known:?}");
        assert!(known.failed.is_some_and(|failed| failed.load > 1500.0), "{known:?}");
    }
}

/// What is left, as it is told before each trial, and what was: seconds.
fn estimates(search: &mut dyn Search, kind: Kind) -> Vec<(f64, f64)> {
    let mut device = Simulated::new(kind, 1);
    let mut told = Vec::new();
    while let Some(wanted) = search.next() {
        let left = search.left();
        assert!(left.trials >= 1 && left.sending_ns >= wanted.sending_ns(), "{left:?} before {wanted:?}");
        told.push((left.sending_ns as f64 / 1e9, wanted.sending_ns() as f64 / 1e9));
        search.tell(&device.trial(&wanted));
    }
    assert_eq!(search.left(), netdyno_trial::Left::default());
    let mut rest = 0.0;
    for (_, seconds) in told.iter_mut().rev() {
        rest += *seconds;
        *seconds = rest;
    }
    told
}

#[test]
fn while_a_search_goes_on_more_than_nothing_is_left() {
    let (least, greatest) = (CAPACITY / 1000.0, CAPACITY * 2.0);
    for kind in
        [Kind::Hard(CAPACITY), Kind::Noisy(CAPACITY, 0.01), Kind::Buffered(CAPACITY, 0.01), Kind::Dead]
    {
        for goals in [
            vec![Goal::rfc2544(3.0, 0.0025)],
            vec![Goal::rfc2544(60.0, 0.0025)],
            vec![Goal::csit(0.0, 1.0, 0.005)],
            vec![Goal::csit(0.0, 1.0, 0.005), Goal::csit(0.005, 1.0, 0.005)],
        ] {
            let plan = Plan { goals, least, greatest, warm_up_s: 0.0, most_s: 1e4, enough: 0.0 };
            let told = estimates(&mut MlrSearch::new(plan).expect("a plan"), kind);
            // A guess, but of the right kind at any time.
            for (number, (said, was)) in told.into_iter().enumerate() {
                assert!(said * 6.0 >= was, "{kind:?}, trial {number}: {said} was told, and {was} left");
            }
        }
    }
}
