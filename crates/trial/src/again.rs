//! When a trial is done again instead of being told to the search, and what a search may say of a load that no trial
//! could judge.
//!
//! A sender that was held up offered less than the load. If nothing was lost, nothing is known of the load: whoever took
//! that for a failure would find the sender, whoever took it for a pass a load that was never offered. What the tester's
//! receiver lost, or what nobody saw leave the tester, says as little. So such a trial is done again, after a while in which
//! the machine may have become quieter; and when patience ends, the search looks elsewhere ([`crate::Judged`]), and what it
//! says is bounded by trials that could be judged.

use crate::limits::Broken;
use crate::trial::Outcome;

/// More than this is not lost for a moment's stall, nor is what a load makes in so many seconds.
const LITTLE: f64 = 0.1;
const STALL_S: f64 = 0.03;
/// A tester that falls short by more than this will do so again, and by a little less most likely.
const HOPELESS: f64 = 0.5;
const LASTING: f64 = 0.1;
/// A trial that says nothing of the device is done again so many times as often as others.
const TESTERS: u32 = 12;
const LASTINGLY: u32 = 4;
/// And so many times where the search can look elsewhere, which says more.
const TESTERS_ELSEWHERE: u32 = 2;
const LASTINGLY_ELSEWHERE: u32 = 1;
/// In a whole search, as a multiple of that.
const IN_ALL: u32 = 4;
/// The first wait, and the longest: each is twice the one before.
const FIRST_WAIT_NS: u64 = 50_000_000;
const LONGEST_WAIT_NS: u64 = 1_000_000_000;

/// How much patience there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// As told: trials that failed with little loss are done again so often.
    pub retries: u32,
    /// The device shares this machine, and loses frames when the machine does something else.
    pub in_a_lab: bool,
}

/// The trials of one search, as far as they are done again.
#[derive(Debug, Clone)]
pub struct Again {
    policy: Policy,
    /// Of the present trial: tries that said nothing of the device, and tries that failed.
    unjudged: u32,
    failed: u32,
    /// Of all: tries that said nothing.
    in_all: u32,
    /// The search that wants the trials can look elsewhere.
    elsewhere: bool,
}

impl Again {
    /// Nothing was done again yet.
    pub fn new(policy: Policy) -> Self {
        Self { policy, unjudged: 0, failed: 0, in_all: 0, elsewhere: false }
    }

    /// What it decides by.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// Whose trials they are from now on: can that search look elsewhere ([`crate::Search::looks_elsewhere`])?
    pub fn of(&mut self, looks_elsewhere: bool) {
        self.elsewhere = looks_elsewhere;
    }

    /// A trial begins.
    pub fn begin(&mut self) {
        (self.unjudged, self.failed) = (0, 0);
    }

    /// May what came of it be told to the search (`None`), or is it to be done again, after so many nanoseconds? `broken` is
    /// what it did not keep; `seconds` is what it sent for, if it was told.
    pub fn after(&mut self, broken: Option<Broken>, outcome: &Outcome, seconds: Option<f64>) -> Option<u64> {
        let retries = self.policy.retries;
        let broken = broken?;
        if broken.is_the_testers() {
            let (lastingly, testers) = match self.elsewhere {
                true => (LASTINGLY_ELSEWHERE, TESTERS_ELSEWHERE),
                false => (LASTINGLY, TESTERS),
            };
            let most = match outcome.testers_ratio() {
                much if much > HOPELESS => 0,
                much if much > LASTING => lastingly * retries,
                _ => testers * retries,
            };
            if self.unjudged >= most || self.in_all >= IN_ALL * TESTERS * retries {
                return None;
            }
            let wait = FIRST_WAIT_NS << self.unjudged.min(16);
            self.unjudged += 1;
            self.in_all += 1;
            return Some(wait.min(LONGEST_WAIT_NS));
        }
        let moment = seconds.map_or(LITTLE, |seconds| (STALL_S / seconds.max(STALL_S)).min(LITTLE));
        let lost = outcome.device_loss_ratio();
        // Loss verification, as in ETSI GS NFV-TST 009, 12.3.3.
        let little = lost < if broken == Broken::Loss { moment } else { LITTLE };
        // What was lost again and again in one trial will be so in the next.
        let steady = broken == Broken::Loss && outcome.steady > 0;
        if !self.policy.in_a_lab || !little || steady || self.failed >= retries {
            return None;
        }
        self.failed += 1;
        Some(0)
    }
}

/// What is certain of a bound above.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bounded {
    /// By the device, at this load.
    ByDevice(f64),
    /// At the load that the search took for its bound, trials could not be judged: the answer lies between what passed and
    /// the lowest load, if there is one, of which the device itself lost something.
    NotDetermined(Option<f64>),
}

/// Whether the device set the bound at `failed`, above what `passed`. `trials`: load, and what was not kept.
pub fn bounded(
    passed: Option<f64>,
    failed: f64,
    trials: impl IntoIterator<Item = (f64, Option<Broken>)>,
) -> Bounded {
    let (mut by_device, mut least) = (false, None::<f64>);
    for (load, broken) in trials {
        // What says nothing of the device bounds nothing, and takes nothing from what others say.
        if broken.is_none_or(Broken::is_the_testers) {
            continue;
        }
        by_device |= (load - failed).abs() <= failed.abs() * 1e-9;
        if passed.is_none_or(|passed| load > passed) {
            least = Some(least.map_or(load, |least| least.min(load)));
        }
    }
    if by_device { Bounded::ByDevice(failed) } else { Bounded::NotDetermined(least) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;

    #[test]
    fn what_the_sender_did_is_tried_more_often_than_what_the_device_did() {
        let limits = Limits { shortfall_ratio: Some(0.0), ..Limits::default() };
        let of = |intended, sent, received, uneven| {
            let outcome = Outcome { intended, sent, received, uneven, ..Outcome::default() };
            [false, true].map(|in_a_lab| {
                let mut again = Again::new(Policy { retries: 2, in_a_lab });
                again.begin();
                let broken = limits.broken(&outcome);
                (0..100).take_while(|_| again.after(broken, &outcome, Some(0.3)).is_some()).count()
            })
        };
        assert_eq!(of(100, 100, 100, 9), [0, 0]);
        assert_eq!(of(100, 92, 92, 0), [24, 24]);
        assert_eq!(of(100, 60, 60, 0), [8, 8]);
        assert_eq!(of(100, 40, 40, 0), [0, 0]);
        assert_eq!(of(100, 100, 95, 9), [24, 24]);
        assert_eq!(of(100, 100, 95, 0), [0, 2]);
        // Not more than the load came, so what was lost was lost by the device.
        assert_eq!(of(100, 95, 92, 0), [0, 2]);
        assert_eq!(of(100, 100, 50, 0), [0, 0]);
        // In a minute no moment's stall loses a hundredth.
        let outcome = Outcome { intended: 1000, sent: 1000, received: 990, ..Outcome::default() };
        let after = |seconds| {
            let mut again = Again::new(Policy { retries: 2, in_a_lab: true });
            again.after(Some(Broken::Loss), &outcome, seconds)
        };
        assert_eq!([after(Some(60.0)), after(Some(1.0)), after(None)], [None, Some(0), Some(0)]);
    }

    #[test]
    fn what_the_tester_lost_or_nobody_saw_leave_is_not_the_devices() {
        let limits = Limits { shortfall_ratio: Some(0.0), ..Limits::default() };
        let of = |received, uneven, missed, unconfirmed| {
            let sent = 1000;
            let outcome =
                Outcome { intended: sent, sent, received, uneven, missed, unconfirmed, ..Outcome::default() };
            let broken = limits.broken(&outcome);
            let mut again = Again::new(Policy { retries: 1, in_a_lab: false });
            again.begin();
            (broken, (0..100).take_while(|_| again.after(broken, &outcome, Some(1.0)).is_some()).count())
        };
        assert_eq!(of(1000, 9, 9, 9), (None, 0));
        assert_eq!(of(990, 0, 10, 0), (Some(Broken::Receiver), 12));
        assert_eq!(of(990, 3, 5, 2), (Some(Broken::Receiver), 12));
        // A held-up sender may have cost as many; these were counted.
        assert_eq!(of(990, 500, 10, 0), (Some(Broken::Receiver), 12));
        assert_eq!(of(990, 500, 10, 1000).0, Some(Broken::Receiver));
        assert_eq!(of(800, 0, 200, 0), (Some(Broken::Receiver), 4));
        assert_eq!(of(990, 0, 0, 1000), (Some(Broken::Unconfirmed), 12));
        // Nobody saw any leave, and none came: that will be so again.
        assert_eq!(of(0, 0, 0, 1000), (Some(Broken::Unconfirmed), 0));
        // More was lost than that.
        assert_eq!(of(980, 0, 10, 9), (Some(Broken::Loss), 0));
        // What a goal allows is allowed whoever lost it.
        let limits = Limits::loss(0.02);
        let outcome = Outcome { intended: 1000, sent: 1000, received: 985, missed: 10, ..Outcome::default() };
        assert_eq!(limits.broken(&outcome), None);
        assert_eq!((outcome.blind(), outcome.lost_for_sure()), (10, 5));
    }

    #[test]
    fn a_search_that_looks_elsewhere_has_less_patience_and_a_steady_loss_needs_none() {
        let short = Outcome { intended: 1000, sent: 990, received: 990, ..Outcome::default() };
        let tries = |outcome: Outcome, broken, elsewhere| {
            let mut again = Again::new(Policy { retries: 1, in_a_lab: true });
            again.of(elsewhere);
            again.begin();
            (0..100).take_while(|_| again.after(Some(broken), &outcome, Some(1.0)).is_some()).count()
        };
        assert_eq!([false, true].map(|elsewhere| tries(short, Broken::Shortfall, elsewhere)), [12, 2]);
        let lost = Outcome { intended: 1000, sent: 1000, received: 990, ..Outcome::default() };
        assert_eq!(tries(lost, Broken::Loss, true), 1);
        assert_eq!(tries(Outcome { steady: 7, ..lost }, Broken::Loss, true), 0);
        assert_eq!(tries(lost, Broken::Latency, true), 1);
    }

    #[test]
    fn patience_waits_longer_each_time_and_ends_for_the_whole_search() {
        let outcome = Outcome { intended: 1000, sent: 990, received: 990, ..Outcome::default() };
        let mut again = Again::new(Policy { retries: 1, in_a_lab: false });
        let mut tries = 0;
        for _ in 0..100 {
            again.begin();
            let mut before = 0;
            while let Some(wait) = again.after(Some(Broken::Shortfall), &outcome, None) {
                assert!(wait >= before && wait <= LONGEST_WAIT_NS);
                (before, tries) = (wait, tries + 1);
            }
        }
        assert_eq!(tries, IN_ALL * TESTERS);
    }

    #[test]
    fn a_bound_is_the_devices_only_if_a_trial_there_says_so() {
        let trials = [
            (100.0, Some(Broken::Loss)),
            (50.0, None),
            (75.0, Some(Broken::Shortfall)),
            (80.0, Some(Broken::Loss)),
            (80.0, Some(Broken::Uneven)),
        ];
        let of = |failed| bounded(Some(50.0), failed, trials);
        assert_eq!(of(100.0), Bounded::ByDevice(100.0));
        assert_eq!(of(75.0), Bounded::NotDetermined(Some(80.0)));
        assert_eq!(of(80.0), Bounded::ByDevice(80.0));
        assert_eq!(bounded(None, 75.0, [(75.0, Some(Broken::Shortfall))]), Bounded::NotDetermined(None));
    }
}
