//! When frames were lost: puts a run's losses into its intervals. Pure: samples of both ends go in.
//!
//! A loss belongs to the interval in which the frame was sent, beside what else was sent then. A meter does not see a frame
//! that is lost; it sees that numbers are missing when a later one arrives:
//!
//! ```text
//!   numbers sent      0 ......... 1000 ......... 2000 ......... 3000
//!   at each sample       highest that arrived: 990            2985         end: 3000
//!                        missing below it:       0             600              600
//!                        so of numbers 990 to 2985 600 were lost, evenly as far as anybody knows
//! ```
//!
//! Without numbers only counts of both ends tell, which differ by what is under way, too: see [`by_count`].

use report::Interval;

/// What was seen at one moment; all since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mark {
    pub sent: u64,
    /// Without copies, where those are known.
    pub arrived: u64,
    /// Of frames with numbers, if those are looked at.
    pub numbers: Option<Numbers>,
}

/// What the numbers in signatures say, over all streams.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Numbers {
    /// Up to the highest of each stream.
    pub reached: u64,
    /// Of those, the ones that have not arrived (yet).
    pub missing: u64,
}

/// Puts `lost` frames into `intervals`, between whose ends and starts `marks` were made. `numbered`: how many frames had
/// numbers, if the loss is known by those.
pub fn put(intervals: &mut [Interval], marks: &[Mark], lost: u64, numbered: Option<u64>) {
    if marks.len() != intervals.len() + 1 {
        return;
    }
    let until = numbered
        .and_then(|numbered| by_number(marks, lost, numbered))
        .unwrap_or_else(|| by_count(marks, lost));
    let risen: Vec<u64> = until.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    let sent: Vec<u64> = intervals.iter().map(|i| i.tx_frames.unwrap_or(0)).collect();
    for ((interval, lost), sent) in intervals.iter_mut().zip(fitted(&risen, &sent)).zip(&sent) {
        interval.lost_frames = (*sent > 0).then_some(lost);
    }
}

/// Up to each mark: what was missing then and still was at any later time.
fn never_came(missing: impl DoubleEndedIterator<Item = u64>, lost: u64) -> Vec<u64> {
    let mut least = lost;
    let mut all: Vec<u64> = missing
        .rev()
        .map(|missing| {
            least = least.min(missing);
            least
        })
        .collect();
    all.reverse();
    all
}

/// Frames lost of those sent up to each mark, by their numbers. `None` if not all marks have them.
fn by_number(marks: &[Mark], lost: u64, numbered: u64) -> Option<Vec<u64>> {
    let numbers: Vec<Numbers> = marks.iter().map(|mark| mark.numbers).collect::<Option<_>>()?;
    let all = marks.last()?.sent;
    let share = |of: u64, part: u64, whole: u64| {
        u64::try_from(u128::from(of) * u128::from(part) / u128::from(whole.max(1))).unwrap_or(u64::MAX)
    };
    let sent: Vec<u64> = marks.iter().map(|mark| share(numbered, mark.sent, all)).collect();
    // Of the first so many numbers so many were lost; both only rise.
    let gone = never_came(numbers.iter().map(|n| n.missing), lost);
    let mut seen: Vec<(u64, u64)> =
        numbers.iter().zip(gone).map(|(n, gone)| (n.reached.min(numbered), gone)).collect();
    seen.push((numbered, lost));
    let (mut points, mut silent) = (vec![(0, 0)], false);
    for (at, pair) in seen.windows(2).enumerate() {
        let ((from, before), (to, gone)) = (pair[0], pair[1]);
        if to > from {
            // Behind a silence the numbers are missing that would have come in it.
            if silent {
                points.push((to.min(from + gone.saturating_sub(before)), gone));
            }
            points.push((to, gone));
            silent = false;
        } else if from > 0 && sent[at] > from {
            silent = true;
        }
    }
    let gone_of = |number: u64| {
        let after = points.partition_point(|point| point.0 <= number);
        let (Some(&(from, before)), Some(&(to, gone))) =
            (points.get(after.wrapping_sub(1)), points.get(after))
        else {
            return lost;
        };
        before + share(gone.saturating_sub(before), number - from, to - from)
    };
    let mut until: Vec<u64> = sent.iter().map(|sent| gone_of(*sent)).collect();
    *until.first_mut()? = 0;
    *until.last_mut()? = lost;
    Some(until)
}

/// The same by counts. What was sent and has not arrived is lost or under way, and how much is under way nobody sees. So
/// it is taken for steady, and for as much as makes the share of the losses the same in the first interval, where it
/// appears, and in the last, where it vanishes. What the intervals between tell does not depend on it.
fn by_count(marks: &[Mark], lost: u64) -> Vec<u64> {
    let absent = |mark: &Mark| i128::from(mark.sent) - i128::from(mark.arrived);
    let under_way = || {
        let first = marks.iter().find(|mark| mark.sent > 0)?;
        let [.., before, last] = marks else { return None };
        let (start, end) = (i128::from(first.sent), i128::from(last.sent - before.sent.min(last.sent)));
        let vanished = i128::from(lost) - absent(before);
        let even = |start: i128| (absent(first) * end - vanished * start) / (start + end);
        // None is under way that was not sent.
        (before.sent > 0).then(|| even(start).clamp(0, absent(first).max(0)))
    };
    let under_way = under_way().unwrap_or(0);
    let (last, all) = (marks.len().saturating_sub(1), i128::from(lost));
    let missing = marks.iter().enumerate().map(|(at, mark)| match (at, mark.sent) {
        (at, _) if at == last => lost,
        (_, 0) => 0,
        _ => u64::try_from((absent(mark) - under_way).clamp(0, all)).unwrap_or(0),
    });
    never_came(missing.collect::<Vec<_>>().into_iter(), lost)
}

/// Losses that no interval has more of than it sent: what is too much was sent before, or else after.
fn fitted(risen: &[u64], sent: &[u64]) -> Vec<u64> {
    let mut lost = risen.to_vec();
    let mut too_many = 0;
    for (lost, sent) in lost.iter_mut().zip(sent).rev() {
        let wanted = *lost + too_many;
        *lost = wanted.min(*sent);
        too_many = wanted - *lost;
    }
    for (lost, sent) in lost.iter_mut().zip(sent) {
        let more = too_many.min(sent.saturating_sub(*lost));
        *lost += more;
        too_many -= more;
    }
    // More than were sent: the sum is right all the same.
    if let Some((lost, _)) = lost.iter_mut().zip(sent).rev().find(|(_, sent)| **sent > 0) {
        *lost += too_many;
    }
    lost
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run in virtual time: frame n leaves at n * `gap`, arrives `delay` later unless `is_lost`, and `step` apart both
    /// ends are looked at. What was lost of each interval's frames, and what is said of it.
    struct Ran {
        intervals: Vec<Interval>,
        marks: Vec<Mark>,
        truth: Vec<u64>,
    }

    impl Ran {
        fn of(frames: u64, gap: u64, delay: u64, step: u64, is_lost: impl Fn(u64) -> bool) -> Ran {
            let until = frames * gap;
            let times: Vec<u64> =
                (0..).map(|n| n * step).take_while(|at| *at < until).chain([until]).collect();
            let mark = |at: u64| {
                let sent = at.div_ceil(gap).min(frames);
                // All that was under way at the end is waited for.
                let came =
                    if at == until { frames } else { at.saturating_sub(delay).div_ceil(gap).min(frames) };
                let arrived = (0..came).filter(|n| !is_lost(*n)).count() as u64;
                let reached = (0..came).rev().find(|n| !is_lost(*n)).map_or(0, |n| n + 1);
                let numbers = Some(Numbers { reached, missing: reached - arrived });
                Mark { sent, arrived, numbers }
            };
            let marks: Vec<Mark> = times.iter().map(|at| mark(*at)).collect();
            let between = |pair: &[Mark]| (pair[0].sent..pair[1].sent).filter(|n| is_lost(*n)).count() as u64;
            let truth = marks.windows(2).map(between).collect();
            let interval = |pair: &[Mark]| Interval {
                tx_frames: Some(pair[1].sent - pair[0].sent),
                ..Interval::default()
            };
            Ran { intervals: marks.windows(2).map(interval).collect(), marks, truth }
        }

        fn told(&self, numbered: bool) -> Vec<u64> {
            let mut intervals = self.intervals.clone();
            let sent = self.marks.last().expect("marks").sent;
            put(&mut intervals, &self.marks, self.truth.iter().sum(), numbered.then_some(sent));
            intervals.iter().map(|i| i.lost_frames.unwrap_or(0)).collect()
        }

        /// Most by which an interval is told wrong.
        fn wrong(&self, numbered: bool) -> u64 {
            let told = self.told(numbered);
            assert_eq!(told.iter().sum::<u64>(), self.truth.iter().sum::<u64>());
            told.iter().zip(&self.truth).map(|(told, truth)| told.abs_diff(*truth)).max().unwrap_or(0)
        }
    }

    #[test]
    fn steady_loss_is_steady_in_every_interval() {
        // A fifth of 500 frames/s, as it was told wrong: 0, 0, 0, 0, 101, 0.
        for delay in [1, 500, 30_000, 150_000, 250_000] {
            let ran = Ran::of(500, 2_000, delay, 100_000, |n| n % 5 == 2);
            assert!(ran.wrong(true) <= 1, "{delay}: {:?} for {:?}", ran.told(true), ran.truth);
        }
        for delay in [1, 500, 30_000] {
            let ran = Ran::of(500, 2_000, delay, 100_000, |n| n % 5 == 2);
            assert!(ran.wrong(false) <= 2, "{delay}: {:?} for {:?}", ran.told(false), ran.truth);
        }
    }

    #[test]
    fn an_outage_is_where_nothing_came_through() {
        // From 0.3 s to 0.6 s.
        let out = |n: u64| (300..600).contains(&n);
        let ran = Ran::of(1000, 1_000, 10_000, 100_000, out);
        assert_eq!(ran.wrong(true), 0, "{:?}", ran.told(true));
        // By as many as are under way.
        assert!(ran.wrong(false) <= 10, "{:?}", ran.told(false));
        // One that lasts to the end has no later arrival to be seen by.
        let ran = Ran::of(1000, 1_000, 1_000, 100_000, |n| n >= 450);
        assert!(ran.wrong(true) <= 2 && ran.wrong(false) <= 1, "{:?} {:?}", ran.told(true), ran.told(false));
    }

    #[test]
    fn a_few_losses_are_where_they_were_though_many_frames_are_under_way() {
        let ran = Ran::of(10_000, 100, 5_000, 100_000, |n| (5_200..5_210).contains(&n));
        assert_eq!((ran.wrong(true), ran.wrong(false)), (0, 0), "{:?}", ran.told(false));
    }

    #[test]
    fn an_interval_that_sent_nothing_has_no_loss_and_no_zero() {
        let mark = |sent, arrived, reached| Mark {
            sent,
            arrived,
            numbers: Some(Numbers { reached, missing: reached - arrived }),
        };
        let marks = [mark(0, 0, 0), mark(100, 80, 100), mark(100, 80, 100), mark(200, 160, 200)];
        for numbered in [Some(200), None] {
            let mut intervals =
                [100, 0, 100].map(|sent| Interval { tx_frames: Some(sent), ..Interval::default() });
            put(&mut intervals, &marks, 40, numbered);
            assert_eq!(intervals.map(|i| i.lost_frames), [Some(20), None, Some(20)]);
        }
    }

    #[test]
    fn frames_that_were_only_late_are_no_loss() {
        let mark = |sent, reached, missing| Mark {
            sent,
            arrived: reached - missing,
            numbers: Some(Numbers { reached, missing }),
        };
        let marks = [mark(0, 0, 0), mark(100, 100, 8), mark(200, 200, 3), mark(300, 300, 3)];
        let mut intervals = [100; 3].map(|sent| Interval { tx_frames: Some(sent), ..Interval::default() });
        put(&mut intervals, &marks, 3, Some(300));
        assert_eq!(intervals.map(|i| i.lost_frames), [Some(3), Some(0), Some(0)]);
    }

    #[test]
    fn whatever_was_seen_the_sum_is_the_total_and_no_interval_loses_what_it_did_not_send() {
        let mut seed = 1u64;
        let mut drawn = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for _ in 0..5_000 {
            let mut mark = Mark { numbers: Some(Numbers::default()), ..Mark::default() };
            let mut marks = vec![mark];
            for _ in 0..=drawn(20) {
                mark.sent += drawn(4) * drawn(500);
                mark.arrived += drawn(1_000);
                let reached = mark.numbers.map_or(0, |numbers| numbers.reached);
                mark.numbers = Some(Numbers { reached: reached + drawn(1_000), missing: drawn(50) });
                marks.push(mark);
            }
            let interval = |pair: &[Mark]| Interval {
                tx_frames: Some(pair[1].sent - pair[0].sent),
                ..Interval::default()
            };
            let mut intervals: Vec<Interval> = marks.windows(2).map(interval).collect();
            let lost = mark.sent * drawn(101) / 100;
            let numbered = Some(drawn(30_000)).filter(|numbered| numbered % 3 > 0);
            put(&mut intervals, &marks, lost, numbered);
            assert_eq!(intervals.iter().filter_map(|i| i.lost_frames).sum::<u64>(), lost, "{marks:?}");
            assert!(
                intervals.iter().all(|i| i.lost_frames.is_none_or(|lost| Some(lost) <= i.tx_frames)),
                "{intervals:?}"
            );
        }
    }
}
