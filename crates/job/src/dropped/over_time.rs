//! What dropped when: the tracer's counts of the test's frames, read with each sample of a run.
//!
//! Counts only rise, so that what rose between two samples was dropped between them, and the sums agree with what is read in the end.

use super::Looking;
use super::evidence::Facts;
use crate::samples::Kept;
use drops::Cause;
use report::sections::drops::{Dropped, DroppedKind, DropsOverTime};
use report::{Interval, units};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Causes with numbers of their own for each interval; the others are added up.
const TOLD: usize = 6;
/// Rows that are read with each sample, which takes some 5 µs each: beyond that it would hold up the run's other samples.
const ROWS: usize = 1_024;

/// By which a run looks on, and leaves what it saw.
#[derive(Debug, Clone)]
pub struct Follow {
    looking: Arc<Looking>,
    left: Arc<Mutex<Option<Result<Followed, String>>>>,
}

impl Follow {
    pub(super) fn of(looking: Arc<Looking>) -> Follow {
        Follow { looking, left: Arc::default() }
    }

    /// Begins: what was dropped up to now was dropped before the first interval.
    pub(crate) fn begin(&self) -> OverTime {
        let mut new = OverTime {
            follow: self.clone(),
            causes: Vec::new(),
            numbers: HashMap::new(),
            kept: Vec::new(),
            given_up: None,
        };
        new.push();
        new
    }

    /// What the run saw; or why it saw nothing.
    pub(super) fn take(&self) -> Option<Result<Followed, String>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Counts at each sample that is kept.
#[derive(Debug)]
pub struct OverTime {
    follow: Follow,
    causes: Vec<Cause>,
    numbers: HashMap<Cause, usize>,
    /// Of each sample the counts of all causes that were known by then.
    kept: Vec<Vec<u64>>,
    given_up: Option<String>,
}

impl OverTime {
    /// A sample is kept.
    pub(crate) fn push(&mut self) {
        let sample = match self.given_up {
            None => self.read(),
            Some(_) => Vec::new(),
        };
        self.kept.push(sample);
    }

    fn read(&mut self) -> Vec<u64> {
        let mut sample = vec![0; self.causes.len()];
        match self.follow.looking.tracer.signed(ROWS) {
            Ok(Some(found)) => {
                for (cause, frames) in found {
                    let next = self.causes.len();
                    let number = *self.numbers.entry(cause).or_insert(next);
                    if number == next {
                        self.causes.push(cause);
                        sample.push(0);
                    }
                    sample[number] = frames;
                }
            }
            Ok(None) => {
                self.given_up = Some(format!(
                    "which cause dropped frames when is not told: there were more than {} different causes, streams and ports, too many to look at \
                     ten times a second",
                    units::count(ROWS as u64)
                ));
            }
            Err(error) => {
                self.given_up = Some(format!("which cause dropped frames when is not told: {error}"))
            }
        }
        sample
    }

    /// Keeps pace with [`Samples`](crate::samples::Samples).
    pub(crate) fn follow(&mut self, kept: Kept) {
        if kept != Kept::None {
            self.push();
        }
        if kept == Kept::AndHalved {
            self.halve();
        }
    }

    /// Every other sample is dropped, beginning with the second.
    pub(crate) fn halve(&mut self) {
        let mut keep = false;
        self.kept.retain(|_| {
            keep = !keep;
            keep
        });
    }

    /// The latest sample is dropped.
    pub(crate) fn pop(&mut self) {
        self.kept.pop();
    }

    /// All was seen, of a run that started then: leaves the rises between samples, where `is_told` tells which of these are intervals.
    pub(crate) fn leave(self, started_ns: u64, is_told: impl Iterator<Item = bool>) {
        let OverTime { follow, causes, kept, given_up, .. } = self;
        let rise = |pair: &[Vec<u64>]| -> Vec<u64> {
            let (before, now) = (&pair[0], &pair[1]);
            let was = |number: usize| before.get(number).copied().unwrap_or(0);
            now.iter().enumerate().map(|(number, frames)| frames.saturating_sub(was(number))).collect()
        };
        let rises = kept.windows(2).zip(is_told).filter(|(_, is_told)| *is_told).map(|(pair, _)| rise(pair));
        let left = match given_up {
            Some(why) => Err(why),
            None => Ok(Followed { started_ns, causes, rises: rises.collect() }),
        };
        *follow.left.lock().unwrap_or_else(PoisonError::into_inner) = Some(left);
    }
}

/// What rose in each interval.
#[derive(Debug, Default)]
pub(super) struct Followed {
    /// When the run started, by CLOCK_MONOTONIC.
    pub started_ns: u64,
    causes: Vec<Cause>,
    /// Of each interval by the causes' numbers.
    rises: Vec<Vec<u64>>,
}

impl Followed {
    /// Are these the intervals that were seen?
    pub(super) fn fits(&self, intervals: &[Interval]) -> bool {
        !intervals.is_empty() && intervals.len() == self.rises.len()
    }

    /// Puts into the causes what of them was dropped in each interval.
    pub(super) fn fill(&self, causes: &mut [(Dropped, Facts)]) {
        for (one, facts) in causes.iter_mut().filter(|(one, _)| one.kind == DroppedKind::Test) {
            let numbers = self.causes.iter().enumerate().filter(|(_, cause)| facts.causes.contains(cause));
            let numbers: Vec<usize> = numbers.map(|(number, _)| number).collect();
            let of = |rise: &Vec<u64>| numbers.iter().filter_map(|number| rise.get(*number)).sum();
            one.by_interval = self.rises.iter().map(of).collect();
        }
    }
}

/// The loss over time. Of the causes in `drops` those keep numbers of their own that lost the most frames; notes say what contradicts the sums.
pub(super) fn of(
    drops: &mut [Dropped],
    intervals: &[Interval],
    not_seen: Option<u64>,
    notes: &mut Vec<String>,
) -> DropsOverTime {
    let mut told = DropsOverTime::default();
    let mut named = vec![0_u64; intervals.len()];
    let is_loss = |one: &Dropped| one.is_loss() && one.frames > 0;
    drops.iter_mut().filter(|one| !is_loss(one)).for_each(|one| one.by_interval = Vec::new());
    // The most frequent ones stand first.
    for (number, one) in drops.iter_mut().filter(|one| is_loss(one)).enumerate() {
        let within: u64 = one.by_interval.iter().sum();
        if within > one.frames || one.by_interval.len() != intervals.len() {
            notes.push(format!(
                "when {} dropped frames is not told: {} were counted while the run lasted, and {} in all",
                one.cause(),
                units::count(within),
                units::count(one.frames)
            ));
            (one.by_interval, told.outside_frames) =
                (Vec::new(), told.outside_frames.saturating_add(one.frames));
            continue;
        }
        let outside = one.frames - within;
        told.outside_frames = told.outside_frames.saturating_add(outside);
        add(&mut named, &one.by_interval);
        if number < TOLD {
            one.outside_frames = outside;
            continue;
        }
        told.others_by_interval.resize(intervals.len(), 0);
        add(&mut told.others_by_interval, &std::mem::take(&mut one.by_interval));
    }
    let lost: Vec<u64> = intervals.iter().map(|interval| interval.lost_frames.unwrap_or(0)).collect();
    // A receiver alone does not know when it lost something.
    let is_known = intervals.iter().any(|interval| interval.lost_frames.is_some());
    if let Some(not_seen) = not_seen.filter(|_| is_known) {
        told.not_seen_by_interval = unseen(&lost, &named, not_seen);
    }
    told
}

fn add(sums: &mut [u64], more: &[u64]) {
    sums.iter_mut().zip(more).for_each(|(sum, more)| *sum = sum.saturating_add(*more));
}

/// What was lost in each interval and not dropped by this kernel, `all` together. A frame that was sent at the end of an interval may have been
/// dropped in the next one: what is missing at the end of an interval, and has a cause by the end of a later one, was seen.
fn unseen(lost: &[u64], named: &[u64], all: u64) -> Vec<u64> {
    let mut sum = 0_i128;
    let missing: Vec<u64> = lost
        .iter()
        .zip(named)
        .map(|(lost, named)| {
            sum += i128::from(*lost) - i128::from(*named);
            u64::try_from(sum).unwrap_or(0)
        })
        .collect();
    let mut least = all;
    let mut until: Vec<u64> = missing
        .iter()
        .rev()
        .map(|missing| {
            least = least.min(*missing);
            least
        })
        .collect();
    until.reverse();
    if let Some(last) = until.last_mut() {
        *last = all;
    }
    let before = std::iter::once(0).chain(until.iter().copied());
    until.iter().zip(before).map(|(until, before)| until.saturating_sub(before)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dropped(function: &str, by_interval: &[u64], outside: u64) -> Dropped {
        Dropped {
            function: function.to_owned(),
            kind: DroppedKind::Test,
            frames: by_interval.iter().sum::<u64>() + outside,
            by_interval: by_interval.to_vec(),
            ..Dropped::default()
        }
    }

    fn intervals(lost: &[u64]) -> Vec<Interval> {
        let one = |lost: &u64| Interval { lost_frames: Some(*lost), ..Interval::default() };
        lost.iter().map(one).collect()
    }

    #[test]
    fn what_has_a_cause_one_interval_later_was_seen() {
        assert_eq!(unseen(&[10, 10, 10], &[8, 12, 10], 0), [0, 0, 0]);
        assert_eq!(unseen(&[10, 10, 10], &[12, 8, 10], 0), [0, 0, 0], "counted before it was lost");
        assert_eq!(unseen(&[0, 30, 0], &[0, 10, 0], 20), [0, 20, 0]);
        // More has a cause than is missing: copies.
        assert_eq!(unseen(&[5, 0, 5], &[9, 0, 9], 0), [0, 0, 0]);
        assert_eq!(unseen(&[], &[], 7), [0_u64; 0]);
    }

    #[test]
    fn whatever_was_seen_the_sum_is_what_was_not_seen() {
        let mut seed = 1u64;
        let mut drawn = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for _ in 0..2_000 {
            let (lost, named): (Vec<u64>, Vec<u64>) = (0..=drawn(8)).map(|_| (drawn(50), drawn(50))).unzip();
            let all = drawn(200);
            assert_eq!(unseen(&lost, &named, all).iter().sum::<u64>(), all, "{lost:?} {named:?}");
        }
    }

    #[test]
    fn each_frame_of_the_loss_has_one_place() {
        let mut drops: Vec<Dropped> =
            (0..8).map(|n| dropped(&format!("f{n}"), &[10, 0, n], u64::from(n == 7) * 3)).collect();
        let behind = Dropped { measured: true, ..dropped("behind", &[100, 100, 100], 0) };
        drops.push(behind);
        let mut notes = Vec::new();
        let told = of(&mut drops, &intervals(&[80, 0, 33]), Some(2), &mut notes);
        assert!(notes.is_empty(), "{notes:?}");
        assert_eq!(told.others_by_interval, [20, 0, 13]);
        assert_eq!((told.outside_frames, drops[8].by_interval.len()), (3, 0));
        assert!(drops[..TOLD].iter().all(|one| one.by_interval.len() == 3));
        assert!(drops[TOLD..].iter().all(|one| one.by_interval.is_empty()));
        assert_eq!(told.not_seen_by_interval.iter().sum::<u64>(), 2);
    }

    #[test]
    fn sums_that_contradict_are_not_shown() {
        let mut wrong = [Dropped { frames: 5, ..dropped("f", &[3, 3], 0) }];
        let mut notes = Vec::new();
        let told = of(&mut wrong, &intervals(&[3, 3]), Some(1), &mut notes);
        assert!(wrong[0].by_interval.is_empty() && told.outside_frames == 5);
        assert!(notes[0].contains("6 were counted while the run lasted, and 5 in all"), "{notes:?}");
    }
}
