//! What happens to which frame: a state machine that is told of arrivals and says what becomes of each.
//!
//! Faults come one after the other: what a flapping device loses is not drawn for loss, what is lost is not copied. Each
//! counts the frames that reach it, so that its share is exact by itself: of 1,000 frames with 1 % loss and 1 % duplicates
//! 10 are lost and 10 of the other 990 doubled. They begin at different numbers, so that even shares of the same size do
//! not fall on the same frames.

use crate::plan::{Plan, nanos};
use crate::random::random;
use traffic::faults::{Share, Shift};

/// What is to become of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It never leaves.
    Lost(Why),
    /// It leaves, as this says.
    Passed(Passed),
}

/// Which fault lost it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// [`Plan::loss`].
    Loss,
    /// [`Plan::flap`].
    Flap,
}

/// How a frame leaves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Passed {
    /// When, on the clock of the arrivals.
    pub due_ns: u64,
    /// Not before so many frames that come after it; 0: it is not held.
    pub behind: u32,
    /// It was chosen to be reordered, by frames or by time.
    pub reordered: bool,
    /// It was held by a freeze.
    pub frozen: bool,
    /// Copies that leave with it.
    pub copies: u32,
    /// Copies that go back where it came from.
    pub back: u32,
    /// A bit is to flip: which, a random number says.
    pub flip: Option<u64>,
}

/// Even shares of one fault after the other are so many frames apart.
const APART: u64 = 17;

/// The faults of one direction.
#[derive(Debug, Clone)]
pub struct Faults {
    plan: Plan,
    keys: [u64; 5],
    /// Frames that reached each fault.
    loss: u64,
    corrupt: u64,
    duplicate: u64,
    reorder: u64,
    jitter: u64,
    latest_ns: u64,
}

impl Faults {
    /// Of a plan, for the direction of this number: directions draw differently.
    pub fn new(plan: &Plan, direction: u64) -> Faults {
        let key = |fault| random(random(plan.seed, direction), fault);
        Faults {
            plan: *plan,
            keys: [0, 1, 2, 3, 4].map(key),
            loss: 0,
            corrupt: APART,
            duplicate: 2 * APART,
            reorder: 3 * APART,
            jitter: 0,
            latest_ns: 0,
        }
    }

    /// What it decides by.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// A frame arrived, so long after the device was started.
    pub fn decide(&mut self, at_ns: u64) -> Fate {
        let plan = &self.plan;
        if plan.flap.is_some_and(|flap| flap.ill_until(at_ns).is_some()) {
            return Fate::Lost(Why::Flap);
        }
        let all = plan.random;
        let [lost, corrupted, doubled, put_back, moved] = self.keys;
        if hit(plan.loss, &mut self.loss, all, lost) {
            return Fate::Lost(Why::Loss);
        }
        let mut passed = Passed { back: plan.come_back, ..Passed::default() };
        if hit(plan.corrupt, &mut self.corrupt, all, corrupted) {
            passed.flip = Some(random(corrupted, !self.corrupt));
        }
        if hit(plan.duplicate, &mut self.duplicate, all, doubled) {
            passed.copies = plan.copies;
        }
        let thawed = plan.freeze.and_then(|freeze| freeze.ill_until(at_ns));
        passed.frozen = thawed.is_some();
        let delay = self.delay(moved);
        let plan = &self.plan;
        passed.due_ns = thawed.unwrap_or(at_ns).saturating_add(delay);
        if hit(plan.reorder, &mut self.reorder, all, put_back) {
            passed.reordered = true;
            match plan.shift {
                Shift::Frames(frames) => passed.behind = frames,
                Shift::Time(time) => passed.due_ns = passed.due_ns.saturating_add(nanos(time)),
            }
        }
        if plan.keep_order {
            passed.due_ns = passed.due_ns.max(self.latest_ns);
        }
        self.latest_ns = self.latest_ns.max(passed.due_ns);
        Fate::Passed(passed)
    }

    fn delay(&mut self, key: u64) -> u64 {
        let (delay, jitter) = (nanos(self.plan.delay), nanos(self.plan.jitter));
        if jitter == 0 {
            return delay;
        }
        let drawn = random(key, self.jitter);
        self.jitter += 1;
        let span = u128::from(jitter) * 2 + 1;
        let part = ((u128::from(drawn) * span) >> 64) as u64;
        delay.saturating_add(part).saturating_sub(jitter)
    }
}

/// Is the next frame one of the share?
fn hit(share: Option<Share>, count: &mut u64, all_drawn: bool, key: u64) -> bool {
    let Some(share) = share else { return false };
    let n = *count;
    *count += 1;
    if all_drawn { share.draws(random(key, n)) } else { share.takes(n) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use traffic::faults::Cycle;

    const MS: u64 = 1_000_000;

    fn fates(plan: &Plan, direction: u64) -> Vec<Fate> {
        let mut faults = Faults::new(plan, direction);
        (0..1000).map(|n| faults.decide(n * MS)).collect()
    }

    fn passed(fates: &[Fate]) -> Vec<(usize, Passed)> {
        let passed = |(n, fate): (usize, &Fate)| match fate {
            Fate::Passed(passed) => Some((n, *passed)),
            Fate::Lost(_) => None,
        };
        fates.iter().enumerate().filter_map(passed).collect()
    }

    fn share(text: &str) -> Option<Share> {
        text.parse().ok()
    }

    #[test]
    fn without_faults_each_frame_leaves_when_it_arrives() {
        for (n, fate) in passed(&fates(&Plan::default(), 0)) {
            assert_eq!(fate, Passed { due_ns: n as u64 * MS, ..Passed::default() });
        }
    }

    #[test]
    fn a_fixed_delay_is_the_same_for_each_frame() {
        let plan = Plan { delay: Duration::from_micros(500), ..Plan::default() };
        assert!(passed(&fates(&plan, 0)).iter().all(|(n, p)| p.due_ns == *n as u64 * MS + 500_000));
    }

    #[test]
    fn jitter_stays_within_its_bounds_fills_them_and_keeps_order_on_request() {
        let mut plan = Plan {
            delay: Duration::from_millis(5),
            jitter: Duration::from_millis(2),
            seed: 3,
            ..Plan::default()
        };
        let delays: Vec<u64> =
            passed(&fates(&plan, 0)).iter().map(|(n, p)| p.due_ns - *n as u64 * MS).collect();
        assert!(delays.iter().all(|d| (3 * MS..=7 * MS).contains(d)));
        assert!(delays.iter().min() < Some(&(3 * MS + MS / 10)));
        assert!(delays.iter().max() > Some(&(7 * MS - MS / 10)));
        let dues = |plan: &Plan| passed(&fates(plan, 0)).iter().map(|(_, p)| p.due_ns).collect::<Vec<_>>();
        assert!(!dues(&plan).is_sorted());
        plan.keep_order = true;
        assert!(dues(&plan).is_sorted());
    }

    #[test]
    fn each_share_is_exact_of_the_frames_that_reach_it() {
        let plan = Plan {
            loss: share("10%"),
            duplicate: share("1/9"),
            copies: 2,
            corrupt: share("1/100"),
            reorder: share("1/3"),
            come_back: 4,
            ..Plan::default()
        };
        let fates = fates(&plan, 0);
        let passed = passed(&fates);
        let count = |of: fn(&Passed) -> bool| passed.iter().filter(|(_, p)| of(p)).count();
        assert_eq!(fates.len() - passed.len(), 100);
        assert_eq!(count(|p| p.copies == 2), 100);
        assert_eq!(count(|p| p.flip.is_some()), 9);
        assert_eq!(count(|p| p.reordered && p.behind == 3), 300);
        assert_eq!(count(|p| p.back == 4), 900);
    }

    #[test]
    fn what_is_drawn_follows_from_seed_and_direction() {
        let plan = |seed| Plan { loss: share("30%"), random: true, seed, ..Plan::default() };
        assert_eq!(fates(&plan(1), 0), fates(&plan(1), 0));
        assert_ne!(fates(&plan(1), 0), fates(&plan(1), 1));
        assert_ne!(fates(&plan(1), 0), fates(&plan(2), 0));
    }

    #[test]
    fn a_flapping_device_loses_all_for_a_time_and_a_frozen_one_holds_it() {
        let cycle = Some(Cycle { well: Duration::from_millis(70), ill: Duration::from_millis(30) });
        let lost = fates(&Plan { flap: cycle, ..Plan::default() }, 0);
        for (n, fate) in lost.iter().enumerate() {
            assert_eq!(*fate == Fate::Lost(Why::Flap), n % 100 >= 70, "{n}");
        }
        let delay = Duration::from_millis(1);
        for (n, p) in passed(&fates(&Plan { freeze: cycle, delay, ..Plan::default() }, 0)) {
            let n = n as u64;
            let leaves = if n % 100 >= 70 { n / 100 * 100 + 100 } else { n };
            assert_eq!((p.due_ns, p.frozen), ((leaves + 1) * MS, n % 100 >= 70), "{n}");
        }
    }

    #[test]
    fn a_reordered_frame_is_put_back_by_time_if_asked() {
        let shift = Shift::Time(Duration::from_millis(3));
        let plan = Plan { reorder: share("1/10"), shift, ..Plan::default() };
        for (n, p) in passed(&fates(&plan, 0)) {
            let n = n as u64;
            let by = if (n + 3 * APART).is_multiple_of(10) { 3 } else { 0 };
            assert_eq!((p.due_ns, p.behind), ((n + by) * MS, 0));
        }
    }
}
