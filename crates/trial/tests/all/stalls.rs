//! Searches by a sender that is held up now and then, in virtual time: what they say is right, or "not determined".
//!
//! Sender and device are simulated frame by frame: a sender that loses its core at random, and a bottleneck with a short
//! queue. Trials are done again as on real ports ([`Again`]).

use netdyno_trial::{
    Again, Bisect, BisectPlan, Bounded, Broken, Direction, Goal, Limits, MlrSearch, Outcome, Policy,
    Resolution, Search, Wanted, bounded, mlr::Plan,
};

const SECOND: f64 = 1e9;
/// What the device forwards, in frames a second: 20 Mbit/s of 1514 bytes.
const TRUTH: f64 = 20e6 / (1514.0 * 8.0);
/// Frames that wait in it.
const QUEUE: f64 = 5.0;
const PRECISION: f64 = 0.0025;

/// How the sender goes on after it was held up.
#[derive(Clone, Copy, PartialEq)]
enum Then {
    /// The schedule is put off: `engine::pacer::NEVER`.
    PutsOff,
    /// What is overdue leaves at so many times the rate.
    CatchesUp(f64),
}

/// A sender that is held up so often a second, for up to so long, and what it is joined to.
struct World {
    stalls_per_second: f64,
    longest_ns: f64,
    then: Then,
    /// In this share of the trials the receiver loses a frame in a hundred, and counts them.
    receiver_loses: f64,
    /// It does not say so.
    silently: bool,
    state: u64,
}

impl World {
    fn new(stalls_per_second: f64, longest_ns: f64, then: Then, seed: u64) -> World {
        let state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        World { stalls_per_second, longest_ns, then, receiver_loses: 0.0, silently: false, state }
    }

    /// 0 to 1 (xorshift64*).
    fn chance(&mut self) -> f64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        (self.state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Exponentially distributed times between stalls.
    fn next_stall(&mut self, after: f64) -> f64 {
        after - (1.0 - self.chance()).ln() * SECOND / self.stalls_per_second.max(1e-9)
    }

    fn trial(&mut self, wanted: &Wanted) -> Outcome {
        let duration = wanted.duration_ns as f64;
        let gap = SECOND / wanted.load;
        let intended = (duration / gap).ceil() as u64;
        let (mut put_off, mut now) = (0.0, 0.0f64);
        let (mut waiting, mut emptied, mut sent, mut received) = (0.0f64, 0.0, 0, 0);
        let mut stall = self.next_stall(0.0);
        let (loses, mut missed) = (self.chance() < self.receiver_loses, 0);
        for frame in 0..intended {
            let due = frame as f64 * gap + put_off;
            let behind = now > due;
            let mut leaves = match self.then {
                Then::CatchesUp(faster) if behind => now.max(due) + gap / faster,
                _ => due.max(now),
            };
            while stall <= leaves {
                let held = self.chance() * self.longest_ns;
                leaves = leaves.max(stall + held);
                stall = self.next_stall(stall + held);
            }
            if self.then == Then::PutsOff && leaves - due > 400_000.0 {
                put_off += leaves - due;
            }
            if leaves >= duration + if self.then == Then::PutsOff { 0.0 } else { 20e6 } {
                break;
            }
            now = leaves;
            waiting = (waiting - (now - emptied) * TRUTH / SECOND).max(0.0);
            emptied = now;
            sent += 1;
            if waiting <= QUEUE {
                waiting += 1.0;
                let lost = loses && frame % 100 == 7;
                missed += u64::from(lost);
                received += u64::from(!lost);
            }
        }
        let missed = if self.silently { 0 } else { missed };
        Outcome { intended, sent, received, missed, ..Outcome::default() }
    }

    /// As the rig does it: the trials, and whether the search says that it determined its bound.
    fn search<S: Search>(&mut self, search: &mut S, limits: &Limits) -> Vec<(f64, Option<Broken>)> {
        let mut again = Again::new(Policy { retries: 1, in_a_lab: false });
        let mut rows = Vec::new();
        while let Some(wanted) = search.next() {
            again.begin();
            let outcome = loop {
                let outcome = self.trial(&wanted);
                let seconds = wanted.duration_ns as f64 / SECOND;
                if again.after(limits.broken(&outcome), &outcome, Some(seconds)).is_none() {
                    break outcome;
                }
            };
            rows.push((wanted.load, limits.broken(&outcome)));
            search.tell(&outcome);
        }
        rows
    }

    /// What it found by each method: the lower bound, and whether that is all there is.
    fn find(&mut self, seconds: f64) -> [(Option<f64>, bool); 2] {
        let limits = Limits { shortfall_ratio: Some(PRECISION / 2.0), ..Limits::default() };
        let trial_ns = (seconds * SECOND) as u64;
        let (least, greatest) = (TRUTH / 100.0, TRUTH * 2.0);
        let mut bisect = Bisect::new(BisectPlan {
            least,
            greatest,
            resolution: Resolution::Relative(PRECISION),
            direction: Direction::Greatest,
            limits,
            trial_ns,
            short_ns: trial_ns,
            retries: 0,
            retry_loss_ratio: 0.0,
        })
        .expect("a plan");
        let rows = self.search(&mut bisect, &limits);
        let determined = |passed: Option<f64>, failed: Option<f64>, rows| {
            failed.is_some_and(|failed| matches!(bounded(passed, failed, rows), Bounded::ByDevice(_)))
        };
        let by_halves = (bisect.passed(), determined(bisect.passed(), bisect.failed(), rows));
        let goal = Goal { limits, ..Goal::rfc2544(seconds, PRECISION) };
        let plan = Plan { goals: vec![goal], least, greatest, warm_up_s: 0.0, most_s: 1e6 };
        let mut mlr = MlrSearch::new(plan).expect("a plan");
        let rows = self.search(&mut mlr, &limits);
        let found = &mlr.found()[0];
        [by_halves, (found.lower, found.reached && determined(found.lower, found.upper, rows))]
    }
}

/// In trials of so many seconds; what waits when a trial ends has passed it.
fn is_right(found: f64, seconds: f64) -> bool {
    let most = TRUTH + (QUEUE + 1.0) / seconds;
    found > TRUTH * 0.995 && found < most * 1.0025
}

#[test]
fn what_a_held_up_sender_finds_is_right_or_not_determined() {
    let mut determined = [0u32; 6];
    // Idle, a quiet virtual machine, a busy one, real-time throttling, one that is overloaded, one that is of no use.
    let worlds = [(0.0, 0.0), (0.1, 5e6), (1.0, 4e6), (1.0, 100e6), (5.0, 20e6), (50.0, 20e6)];
    for (world, (often, longest)) in worlds.into_iter().enumerate() {
        for seed in 1..=10 {
            for seconds in [1.0, 3.0] {
                for (found, whole) in World::new(often, longest, Then::PutsOff, seed).find(seconds) {
                    determined[world] += u32::from(whole);
                    if whole {
                        let found = found.expect("what passed");
                        assert!(is_right(found, seconds), "{often} {longest} {seconds}: {found}");
                    } else if let Some(found) = found {
                        // What is certain is certain.
                        assert!(found < (TRUTH + (QUEUE + 1.0) / seconds) * 1.0025, "{found}");
                    }
                }
            }
        }
    }
    // Of 40 each.
    assert_eq!(determined[..3], [40; 3], "{determined:?}");
    assert!(determined[3] >= 10, "{determined:?}");
    assert_eq!(determined[5], 0, "{determined:?}");
}

/// The world is one in which what is caught up misleads: so the test above can fail.
#[test]
fn a_sender_that_catches_up_makes_the_device_look_slower() {
    let wrong = (1..=10)
        .flat_map(|seed| World::new(1.0, 100e6, Then::CatchesUp(1.5), seed).find(1.0))
        .filter(|(found, _)| !found.is_some_and(|found| is_right(found, 1.0)))
        .count();
    assert!(wrong > 5, "{wrong} of 20 were wrong");
}

#[test]
fn a_receiver_that_loses_finds_what_is_right_or_not_determined() {
    let find = |receiver_loses, silently, seed| {
        let mut world = World::new(0.1, 2e6, Then::PutsOff, seed);
        (world.receiver_loses, world.silently) = (receiver_loses, silently);
        world.find(1.0)
    };
    let mut determined = [0u32; 3];
    for (number, receiver_loses) in [0.1, 0.5, 1.0].into_iter().enumerate() {
        for (found, whole) in (1..=10).flat_map(|seed| find(receiver_loses, false, seed)) {
            determined[number] += u32::from(whole);
            if whole {
                assert!(found.is_some_and(|found| is_right(found, 1.0)), "{receiver_loses}: {found:?}");
            } else if let Some(found) = found {
                assert!(found < (TRUTH + QUEUE + 1.0) * 1.0025, "{found}");
            }
        }
    }
    // Of 20 each: patience gets the better of what happens now and then, and of nothing else.
    assert_eq!((determined[0], determined[2]), (20, 0), "{determined:?}");
    // The world is one in which a receiver that does not say so misleads: so the test can fail.
    let misled =
        |(found, whole): &(Option<f64>, bool)| *whole && !found.is_some_and(|found| is_right(found, 1.0));
    let wrong = (1..=10).flat_map(|seed| find(0.5, true, seed)).filter(misled).count();
    assert!(wrong > 5, "{wrong} of 20 were wrong");
}
