//! The time left that a search tells: of simulated devices, in virtual time.

use crate::device::{Kind, Simulated};
use netdyno_trial::mlr::{Goal, MlrSearch, Plan};
use netdyno_trial::{
    Ahead, Bisect, BisectPlan, Burst, BurstPlan, Direction, Left, Limits, LossCurve, LossCurvePlan, Outcome,
    Remaining, Repeated, RepeatedPlan, Resolution, Search, Wanted,
};

const SECOND: u64 = 1_000_000_000;
const CAPACITY: f64 = 100_000.0;
const LEAST: f64 = CAPACITY / 400.0;
const GREATEST: f64 = CAPACITY * 2.5;
/// Between two trials.
const BETWEEN: u64 = 400_000_000;

/// One telling: what was said before a trial, and what there really was, in seconds.
#[derive(Debug, Clone, Copy)]
struct Told {
    said: Remaining,
    was: f64,
}

impl Told {
    fn said(self) -> f64 {
        self.said.ns as f64 / 1e9
    }
}

/// A command in virtual time: what it told before each trial.
#[derive(Default)]
struct Command {
    ahead: Ahead,
    now_ns: u64,
    told: Vec<(u64, Remaining)>,
}

impl Command {
    fn drive(&mut self, search: &mut dyn Search, size: usize, device: &mut dyn FnMut(&Wanted) -> Outcome) {
        while let Some(wanted) = search.next() {
            let said = self.ahead.left(search.left(), size).expect("a trial is to come");
            self.told.push((self.now_ns, said));
            search.tell(&device(&wanted));
            let took = wanted.sending_ns() + BETWEEN;
            self.ahead.tried(wanted.sending_ns(), Some(took));
            self.now_ns += took;
        }
    }

    fn told(&self) -> Vec<Told> {
        let of = |&(at, said)| Told { said, was: (self.now_ns - at) as f64 / 1e9 };
        self.told.iter().map(of).collect()
    }
}

/// What one search tells of a device.
fn told(search: &mut dyn Search, kind: Kind) -> Vec<Told> {
    let mut command = Command::default();
    let mut device = Simulated::new(kind, 1);
    command.drive(search, 1, &mut |wanted| device.trial(wanted));
    assert_eq!(command.ahead.left(search.left(), 1), None, "it is over");
    command.told()
}

/// By how much a telling was more than the one before had let expect, at most, and how far the tellings were off: both as
/// parts of the whole time.
fn off(told: &[Told]) -> (f64, f64) {
    let whole = told[0].was;
    let rise = |pair: &[Told]| (pair[1].said() - pair[1].was) - (pair[0].said() - pair[0].was);
    let most = told.windows(2).map(rise).fold(0.0, f64::max);
    let error = told.iter().map(|told| (told.said() - told.was).abs()).fold(0.0, f64::max);
    (most / whole, error / whole)
}

fn bisect() -> Bisect {
    Bisect::new(BisectPlan {
        least: LEAST,
        greatest: GREATEST,
        resolution: Resolution::Relative(0.005),
        direction: Direction::Greatest,
        limits: Limits::default(),
        trial_ns: 3 * SECOND,
        short_ns: 3 * SECOND,
        retries: 0,
        retry_loss_ratio: 0.0,
        in_parts: false,
        enough: 0.0,
    })
    .expect("a plan")
}

fn mlr(goals: Vec<Goal>) -> MlrSearch {
    let plan = Plan { goals, least: LEAST, greatest: GREATEST, warm_up_s: 0.0, most_s: 1e4, enough: 0.0 };
    MlrSearch::new(plan).expect("a plan")
}

#[test]
fn of_a_device_with_one_capacity_what_is_told_after_the_first_trial_comes_true() {
    let searches: [(&str, Box<dyn Search>); 4] = [
        ("bisection", Box::new(bisect())),
        ("one goal", Box::new(mlr(vec![Goal::rfc2544(3.0, 0.0025)]))),
        ("a minute", Box::new(mlr(vec![Goal::rfc2544(60.0, 0.0025)]))),
        ("csit", Box::new(mlr(vec![Goal::csit(0.0, 1.0, 0.005), Goal::csit(0.005, 1.0, 0.005)]))),
    ];
    for (name, mut search) in searches {
        let told = told(&mut *search, Kind::Hard(CAPACITY));
        let (rise, error) = off(&told[1..]);
        assert!(rise < 0.05 && error < 0.05, "{name}: {rise} {error}\n{told:#?}");
        assert!(told.iter().all(|told| !told.said.at_most && told.said.ns > 0));
        let falls = told[1..].windows(2).all(|pair| pair[1].said.ns < pair[0].said.ns);
        assert!(falls, "{name}: {told:#?}");
    }
}

#[test]
fn of_other_devices_it_falls_in_general() {
    let kinds = [
        Kind::Buffered(CAPACITY, 0.01),
        // Within what the searches are to tell apart: of a device that is less constant each trial may say something else.
        Kind::Noisy(CAPACITY, 0.002),
        Kind::Slope(CAPACITY / 2.0, 0.1),
        Kind::SlowSender(CAPACITY),
        Kind::Dead,
    ];
    for kind in kinds {
        let searches: [(&str, Box<dyn Search>); 3] = [
            ("bisection", Box::new(bisect())),
            ("a minute", Box::new(mlr(vec![Goal::rfc2544(60.0, 0.0025)]))),
            ("csit", Box::new(mlr(vec![Goal::csit(0.0, 1.0, 0.005), Goal::csit(0.005, 1.0, 0.005)]))),
        ];
        for (name, mut search) in searches {
            let told = told(&mut *search, kind);
            let fell = told.windows(2).filter(|pair| pair[1].said.ns < pair[0].said.ns).count();
            let steps = told.len() - 1;
            let (said, was): (Vec<_>, Vec<_>) =
                told.iter().map(|told| (told.said().round(), told.was.round())).unzip();
            assert!(4 * fell >= 3 * steps, "{kind:?}, {name}: {fell} of {steps}\n{said:?}\n{was:?}");
        }
    }
}

#[test]
fn a_loss_curve_tells_the_most_it_may_take_and_never_more_than_before() {
    let curve = || {
        let limits = Limits::default();
        LossCurve::new(LossCurvePlan { greatest: GREATEST, step_ratio: 0.1, trial_ns: 3 * SECOND, limits })
    };
    for kind in [Kind::Hard(CAPACITY), Kind::Lossy(0.01), Kind::Dead, Kind::Flapping(CAPACITY, 0.3)] {
        let told = told(&mut curve(), kind);
        assert!(told.iter().all(|told| told.said.at_most), "{told:#?}");
        // Until a trial was done, what lies between trials is guessed.
        assert!(told[1..].iter().all(|told| told.said() >= told.was), "{kind:?}: {told:#?}");
        assert!(told.windows(2).all(|pair| pair[1].said.ns < pair[0].said.ns), "{kind:?}: {told:#?}");
    }
}

#[test]
fn bursts_and_repetitions_are_counted_ahead() {
    let mut burst = Burst::new(BurstPlan { greatest: 100_000, step: 1, repetitions: 5, retries: 1 }).unwrap();
    let mut command = Command::default();
    command.drive(&mut burst, 1, &mut |wanted| {
        let sent = wanted.load as u64;
        Outcome { intended: sent, sent, received: sent.min(1_500 + sent / 3), ..Outcome::default() }
    });
    let told = command.told();
    // From the second length on it knows the first.
    let (rise, error) = off(&told[told.len() / 4..]);
    assert!(rise < 0.05 && error < 0.1, "{rise} {error}\n{told:#?}");
    let plan = RepeatedPlan { loads: vec![1e3, 2e3], trial_ns: SECOND, then: None, repetitions: 5 };
    let told = self::told(&mut Repeated::new(plan), Kind::Hard(CAPACITY));
    let (rise, error) = off(&told);
    assert!(told.len() == 10 && rise == 0.0 && error < 0.1, "{rise} {error}");
}

#[test]
fn what_follows_and_other_sizes_are_told_from_the_beginning() {
    let mut command = Command::default();
    let after =
        || Repeated::new(RepeatedPlan { loads: vec![1e3], trial_ns: 3 * SECOND, then: None, repetitions: 3 });
    for size in 1..=4 {
        let mut device = Simulated::new(Kind::Hard(CAPACITY / size as f64), 1);
        command.ahead.size(size, 4);
        command.ahead.follows(after().left());
        command.drive(&mut mlr(vec![Goal::rfc2544(3.0, 0.0025)]), size, &mut |wanted| device.trial(wanted));
        command.ahead.follows(Left::default());
        command.drive(&mut after(), size, &mut |wanted| device.trial(wanted));
    }
    let told = command.told();
    let (rise, error) = off(&told[1..]);
    assert!(rise < 0.1 && error < 0.2, "{rise} {error}\n{told:#?}");
    let last = told.last().expect("a trial");
    assert!((last.said() - 3.4).abs() < 0.1, "{last:?}");
}

#[test]
fn trials_of_an_earlier_result_count_although_they_took_no_time() {
    let mut ahead = Ahead::new();
    ahead.size(1, 2);
    (0..4).for_each(|_| ahead.tried(10 * SECOND, None));
    ahead.size(2, 2);
    let left = ahead.left(Left::of(4, 10 * SECOND), 2).expect("trials");
    assert_eq!(left, Remaining { ns: 42 * SECOND, at_most: false });
    let mut first = Ahead::new();
    first.size(1, 2);
    assert_eq!(first.left(Left::of(4, 10 * SECOND), 1).map(|left| left.ns), Some(84 * SECOND));
}
