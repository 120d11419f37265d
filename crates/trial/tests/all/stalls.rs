//! Searches by a sender that is held up now and then, and through a device whose machine is, in virtual time: what they say is
//! right, or "not determined", and they come to an end.
//!
//! Sender and device are simulated frame by frame: a sender that loses its core at random, and a bottleneck with a short
//! queue, whose own work is held up at random where it shares the machine. Trials are done again as on real ports ([`Again`]), and
//! are judged by what is seen of them there ([`parts`]).

use netdyno_trial::{
    Again, Bisect, BisectPlan, Broken, Direction, Goal, Limits, Look, MlrSearch, Outcome, Policy, Resolution,
    Search, Wanted, mlr::Plan, parts,
};

const SECOND: f64 = 1e9;
/// What the device forwards, in frames a second: 20 Mbit/s of 1514 bytes.
const TRUTH: f64 = 20e6 / (1514.0 * 8.0);
/// Frames that wait in it.
const QUEUE: f64 = 5.0;
const PRECISION: f64 = 0.0025;
/// Where trials cannot be judged, bounds so near are near enough.
const ENOUGH: f64 = 0.01;
/// Around each trial: attaching, waiting for stragglers, reading counters.
const BETWEEN: f64 = 0.4 * SECOND;
/// The meter of a device on this machine is looked at so often.
const LOOK: f64 = 5e6;

/// How the sender goes on after it was held up.
#[derive(Clone, Copy, PartialEq)]
enum Then {
    /// The schedule is put off: `engine::pacer::NEVER`.
    PutsOff,
    /// What is overdue leaves at so many times the rate.
    CatchesUp(f64),
}

/// What happens so often a second, for up to so long.
#[derive(Clone, Copy, Default)]
struct Stalls {
    per_second: f64,
    longest_ns: f64,
}

/// A sender that is held up, and what it is joined to.
struct World {
    sender: Stalls,
    then: Then,
    /// In this share of the trials the receiver loses a frame in a hundred, and counts them.
    receiver_loses: f64,
    /// It does not say so.
    silently: bool,
    /// The device is this machine's kernel, whose packet threads wait for a processor so often.
    machine: Option<Stalls>,
    /// The scheduler tells.
    tells: bool,
    /// For this share of the time packet threads wait who have nothing to do with these frames.
    waits: f64,
    truth: f64,
    queue: f64,
    state: u64,
    /// How long it has been at it.
    spent: f64,
}

/// What a search came to.
#[derive(Debug, Clone, Copy)]
struct Came {
    passed: Option<f64>,
    failed: Option<f64>,
    determined: bool,
    spent_s: f64,
}

impl World {
    fn new(per_second: f64, longest_ns: f64, then: Then, seed: u64) -> World {
        World {
            sender: Stalls { per_second, longest_ns },
            then,
            receiver_loses: 0.0,
            silently: false,
            machine: None,
            tells: true,
            waits: 0.0,
            truth: TRUTH,
            queue: QUEUE,
            state: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
            spent: 0.0,
        }
    }

    /// A lab's bottleneck of 200 Mbit/s for frames of 512 bytes, with the 5 ms each of queue and bucket that it has by default.
    fn lab(sender: Stalls, machine: Stalls, seed: u64) -> World {
        let truth = 200e6 / (508.0 * 8.0);
        let world = World::new(sender.per_second, sender.longest_ns, Then::PutsOff, seed);
        World { machine: Some(machine), truth, queue: truth * 0.01, ..world }
    }

    /// 0 to 1 (xorshift64*).
    fn chance(&mut self) -> f64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        (self.state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Exponentially distributed times between stalls.
    fn next_stall(&mut self, of: Stalls, after: f64) -> f64 {
        after - (1.0 - self.chance()).ln() * SECOND / of.per_second.max(1e-9)
    }

    /// When the device's machine is held up.
    fn held_up(&mut self, until: f64) -> Vec<(f64, f64)> {
        let Some(of) = self.machine else { return Vec::new() };
        let (mut all, mut at) = (Vec::new(), self.next_stall(of, 0.0));
        while at < until {
            let end = at + self.chance() * of.longest_ns;
            all.push((at, end));
            at = self.next_stall(of, end);
        }
        all
    }

    fn trial(&mut self, wanted: &Wanted) -> Outcome {
        let duration = wanted.duration_ns as f64;
        self.spent += duration + BETWEEN;
        let gap = SECOND / wanted.load;
        let intended = (duration / gap).ceil() as u64;
        let (mut put_off, mut now) = (0.0, 0.0f64);
        let (mut waiting, mut emptied, mut sent, mut received) = (0.0f64, 0.0, 0, 0);
        let mut stall = self.next_stall(self.sender, 0.0);
        let (loses, mut missed) = (self.chance() < self.receiver_loses, 0);
        let held_up = self.held_up(duration);
        let mut held = held_up.iter().copied().peekable();
        // When each frame comes to the meter; `None` for one that is lost.
        let mut came: Vec<Option<f64>> = Vec::new();
        for frame in 0..intended {
            let due = frame as f64 * gap + put_off;
            let behind = now > due;
            let mut leaves = match self.then {
                Then::CatchesUp(faster) if behind => now.max(due) + gap / faster,
                _ => due.max(now),
            };
            while stall <= leaves {
                let held = self.chance() * self.sender.longest_ns;
                leaves = leaves.max(stall + held);
                stall = self.next_stall(self.sender, stall + held);
            }
            if self.then == Then::PutsOff && leaves - due > 400_000.0 {
                put_off += leaves - due;
            }
            if leaves >= duration + if self.then == Then::PutsOff { 0.0 } else { 20e6 } {
                break;
            }
            now = leaves;
            // What comes while the device's machine is held up comes to its queue when that is over, and nothing leaves it meanwhile.
            let mut comes = now;
            while let Some((from, to)) = held.peek().copied().filter(|(from, _)| *from <= now) {
                if to > now {
                    comes = to;
                    break;
                }
                waiting = (waiting - (from - emptied).max(0.0) * self.truth / SECOND).max(0.0);
                emptied = to.max(emptied);
                held.next();
            }
            if comes > now {
                let from = held.peek().map_or(now, |(from, _)| *from);
                waiting = (waiting - (from - emptied).max(0.0) * self.truth / SECOND).max(0.0);
                emptied = emptied.max(comes);
            } else {
                waiting = (waiting - (now - emptied).max(0.0) * self.truth / SECOND).max(0.0);
                emptied = emptied.max(now);
            }
            sent += 1;
            let mut arrives = None;
            if waiting <= self.queue {
                waiting += 1.0;
                let lost = loses && frame % 100 == 7;
                missed += u64::from(lost);
                received += u64::from(!lost);
                arrives = (!lost).then_some(comes + waiting / self.truth * SECOND);
            }
            came.push(arrives);
        }
        let missed = if self.silently { 0 } else { missed };
        let mut outcome = Outcome { intended, sent, received, missed, ..Outcome::default() };
        if self.machine.is_some() && self.tells {
            let waited: f64 = held_up.iter().map(|(from, to)| to - from).sum();
            let due = |ns: f64| (ns / gap).ceil() as u64;
            outcome.uneven = 2 * (intended - sent).min(due(put_off)) + due(waited + self.waits * duration);
            let looks = looks(&came, &held_up, (duration, self.waits));
            let seen = parts(&looks, sent - received, wanted.load, (self.queue / self.truth * SECOND) as u64);
            (outcome.excused, outcome.steady) = (seen.excused, seen.sure);
        }
        outcome
    }

    /// As the rig does it: the trials.
    fn search<S: Search>(&mut self, search: &mut S, limits: &Limits) {
        let mut again = Again::new(Policy { retries: 1, in_a_lab: self.machine.is_some() });
        again.of(search.looks_elsewhere());
        let mut trials = 0;
        while let Some(wanted) = search.next() {
            trials += 1;
            assert!(trials < 500, "no end");
            again.begin();
            let mut nearest: Option<Outcome> = None;
            let outcome = loop {
                let mut outcome = self.trial(&wanted);
                let broken = limits.broken(&outcome);
                let wait = again.after(broken, &outcome, Some(wanted.duration_ns as f64 / SECOND));
                if broken.is_some_and(Broken::is_the_testers) {
                    let before = nearest.filter(|before| before.testers_ratio() <= outcome.testers_ratio());
                    outcome = before.unwrap_or(outcome);
                    nearest = Some(outcome);
                }
                match wait {
                    Some(ns) => self.spent += ns as f64,
                    None => break outcome,
                }
            };
            search.tell(&outcome);
        }
    }

    /// What it finds by each method.
    fn find(&mut self, seconds: f64) -> [Came; 2] {
        let limits = Limits { shortfall_ratio: Some(PRECISION / 2.0), ..Limits::default() };
        let trial_ns = (seconds * SECOND) as u64;
        let (least, greatest) = (self.truth / 500.0, self.truth * 2.0);
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
            in_parts: true,
            enough: ENOUGH,
        })
        .expect("a plan");
        let came = |passed: Option<f64>, failed: Option<f64>, reached, spent: f64| {
            let near = passed.zip(failed).is_some_and(|(passed, failed)| failed - passed <= failed * ENOUGH);
            Came { passed, failed, determined: reached || near, spent_s: spent / SECOND }
        };
        self.spent = 0.0;
        self.search(&mut bisect, &limits);
        let by_halves = came(bisect.passed(), bisect.failed(), bisect.is_reached(), self.spent);
        let goal = Goal { limits, ..Goal::rfc2544(seconds, PRECISION) };
        let plan = Plan { goals: vec![goal], least, greatest, warm_up_s: 0.0, most_s: 1e6, enough: ENOUGH };
        let mut mlr = MlrSearch::new(plan).expect("a plan");
        self.spent = 0.0;
        self.search(&mut mlr, &limits);
        let found = &mlr.found()[0];
        [by_halves, came(found.lower, found.upper, found.reached, self.spent)]
    }

    /// In trials of so many seconds; what waits when a trial ends has passed it. No bound may be on the wrong side.
    fn is_right(&self, came: &Came, seconds: f64) -> bool {
        let most = self.truth + (self.queue + 1.0) / seconds;
        let passed = came.passed.is_none_or(|passed| passed < most * (1.0 + PRECISION));
        let failed = came.failed.is_none_or(|failed| failed > self.truth);
        let near = came.passed.is_some_and(|passed| passed > self.truth * (1.0 - ENOUGH));
        passed && failed && (near || !came.determined)
    }
}

/// What is seen of a trial every few milliseconds, as the scheduler tells of a wait: when it is over.
fn looks(came: &[Option<f64>], held_up: &[(f64, f64)], (duration, waits): (f64, f64)) -> Vec<Look> {
    let (mut next, mut arrived, mut reached) = (0, 0, 0);
    let mut looks = Vec::new();
    let mut at = 0.0;
    while at < duration + 50e6 {
        // Frames come in their order.
        while let Some(frame) = came.get(next) {
            match frame {
                Some(when) if *when > at => break,
                Some(_) => {
                    arrived += 1;
                    reached = next as u64 + 1;
                }
                None => {}
            }
            next += 1;
        }
        let over = held_up.iter().filter(|(_, to)| *to <= at);
        looks.push(Look {
            at_ns: at as u64,
            reached,
            missing: reached - arrived,
            waited_ns: (over.map(|(from, to)| to - from).sum::<f64>() + waits * at) as u64,
            late_ns: 0,
        });
        at += LOOK;
    }
    looks
}

#[test]
fn what_a_held_up_sender_finds_is_right_and_mostly_determined_within_a_few_minutes() {
    let mut determined = [0u32; 6];
    // Idle, a quiet virtual machine, a busy one, real-time throttling, one that is overloaded, one that is of no use.
    let worlds = [(0.0, 0.0), (0.1, 5e6), (1.0, 4e6), (1.0, 100e6), (5.0, 20e6), (50.0, 20e6)];
    let mut longest = [0.0f64; 6];
    for (number, (often, longest_ns)) in worlds.into_iter().enumerate() {
        for seed in 1..=10 {
            for seconds in [1.0, 3.0] {
                let mut world = World::new(often, longest_ns, Then::PutsOff, seed);
                for came in world.find(seconds) {
                    assert!(world.is_right(&came, seconds), "{often} {longest_ns} {seconds}: {came:?}");
                    determined[number] += u32::from(came.determined);
                    longest[number] = longest[number].max(came.spent_s);
                }
            }
        }
    }
    println!("determined {determined:?} of 40 each, longest {longest:?} s");
    assert_eq!(determined[..3], [40; 3], "{determined:?}");
    assert!(determined[3] >= 35 && determined[4] >= 4, "{determined:?}");
    assert!(longest[1] <= 60.0 && longest.iter().all(|longest| *longest <= 300.0), "{longest:?}");
}

#[test]
fn a_device_that_shares_a_busy_machine_is_found_all_the_same() {
    let stalls = |per_second, longest_ns| Stalls { per_second, longest_ns };
    // Quiet, beside some work, beside much (as measured at a load of 15), and worse: what the sender and the packet threads wait.
    let worlds = [
        (stalls(0.05, 2e6), stalls(0.1, 4e6)),
        (stalls(0.2, 5e6), stalls(2.0, 6e6)),
        (stalls(0.5, 6e6), stalls(4.0, 5e6)),
        (stalls(0.5, 10e6), stalls(10.0, 12e6)),
    ];
    let (mut determined, mut longest) = ([0u32; 4], [0.0f64; 4]);
    for (number, (sender, machine)) in worlds.into_iter().enumerate() {
        // Of the last nothing can be said, and nothing wrong may be.
        for seed in 1..=if number == 3 { 2 } else { 6 } {
            // Beside others' work packet threads wait most of the time, for what is no matter of these frames.
            let waits = [0.01, 0.4, 0.8, 0.8][number];
            let mut world = World { waits, ..World::lab(sender, machine, seed) };
            for came in world.find(3.0) {
                assert!(world.is_right(&came, 3.0), "{number}: {came:?}, the truth is {}", world.truth);
                determined[number] += u32::from(came.determined);
                longest[number] = longest[number].max(came.spent_s);
            }
        }
    }
    println!("determined {determined:?} of 12 each (4 of the last), longest {longest:?} s");
    assert_eq!(determined[..2], [12; 2], "{determined:?}");
    assert!(determined[2] >= 10, "{determined:?}");
    assert!(longest[0] <= 60.0 && longest.iter().all(|longest| *longest <= 300.0), "{longest:?}");
}

/// The worlds are ones in which what they do misleads whoever does not look: so the tests above can fail.
#[test]
fn a_sender_that_catches_up_makes_the_device_look_slower_and_so_does_a_machine_that_does_not_tell() {
    let wrong = (1..=10)
        .map(|seed| World::new(1.0, 100e6, Then::CatchesUp(1.5), seed))
        .flat_map(|mut world| world.find(1.0).map(|came| world.is_right(&came, 1.0)))
        .filter(|right| !right)
        .count();
    assert!(wrong > 5, "{wrong} of 20 were wrong");
    let busy = Stalls { per_second: 10.0, longest_ns: 12e6 };
    let silent = |seed| World { tells: false, ..World::lab(Stalls::default(), busy, seed) };
    let wrong = (1..=3)
        .map(silent)
        .flat_map(|mut world| world.find(3.0).map(|came| world.is_right(&came, 3.0)))
        .filter(|right| !right)
        .count();
    assert!(wrong > 3, "{wrong} of 6 were wrong");
}

#[test]
fn a_receiver_that_loses_finds_what_is_right_or_not_determined() {
    let find = |receiver_loses, silently, seed| {
        let mut world = World::new(0.1, 2e6, Then::PutsOff, seed);
        (world.receiver_loses, world.silently) = (receiver_loses, silently);
        world.find(1.0).map(|came| (came.determined, world.is_right(&came, 1.0)))
    };
    let mut determined = [0u32; 3];
    for (number, receiver_loses) in [0.1, 0.5, 1.0].into_iter().enumerate() {
        for (whole, right) in (1..=10).flat_map(|seed| find(receiver_loses, false, seed)) {
            determined[number] += u32::from(whole);
            assert!(right, "{receiver_loses}");
        }
    }
    // Of 20 each: patience gets the better of what happens now and then, and of nothing else.
    assert_eq!((determined[0], determined[2]), (20, 0), "{determined:?}");
    // The world is one in which a receiver that does not say so misleads: so the test can fail.
    let wrong = (1..=10).flat_map(|seed| find(0.5, true, seed)).filter(|(_, right)| !right).count();
    assert!(wrong > 5, "{wrong} of 20 were wrong");
}
