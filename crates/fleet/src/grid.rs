//! The intervals of several hosts on one grid. All count from the same start, each by looks of its own; between two looks of a host what it
//! counted is taken as even, and every sum stays what it was.

use report::Interval;

/// More intervals than this no page shows.
const MOST: u64 = 1200;
/// The least step: hosts look ten times a second.
const STEP_NS: u64 = 100_000_000;

/// A count of an interval.
type Field = (fn(&Interval) -> Option<u64>, fn(&mut Interval, u64));

const FIELDS: [Field; 6] = [
    (|interval| interval.intended_frames, |interval, n| interval.intended_frames = Some(n)),
    (|interval| interval.tx_frames, |interval, n| interval.tx_frames = Some(n)),
    (|interval| interval.tx_bytes, |interval, n| interval.tx_bytes = Some(n)),
    (|interval| interval.rx_frames, |interval, n| interval.rx_frames = Some(n)),
    (|interval| interval.rx_bytes, |interval, n| interval.rx_bytes = Some(n)),
    (|interval| interval.late_frames, |interval, n| interval.late_frames = Some(n)),
];

/// What was counted until each look, from 0 on; it only rises.
fn cumulative(intervals: &[Interval], of: fn(&Interval) -> Option<u64>) -> Option<Vec<(u64, u64)>> {
    let mut points = vec![(0, 0)];
    let mut sum = 0u64;
    for interval in intervals {
        sum = sum.saturating_add(of(interval)?);
        let end = points.last().map_or(0, |(at, _)| *at).max(interval.end_ns);
        points.push((end, sum));
    }
    (points.len() > 1).then_some(points)
}

/// How much of it until `at`.
fn until(points: &[(u64, u64)], at: u64) -> u64 {
    let after = points.partition_point(|(end, _)| *end <= at);
    let (Some(&(from, before)), next) = (points.get(after.wrapping_sub(1)), points.get(after)) else {
        return 0;
    };
    let Some(&(to, then)) = next else { return before };
    let part = u128::from(then - before) * u128::from(at - from) / u128::from((to - from).max(1));
    before.saturating_add(u64::try_from(part).unwrap_or(u64::MAX))
}

/// The sums of all, of who counted: an interval that some do not have has what the others have.
pub(crate) fn summed(hosts: &[&[Interval]]) -> Vec<Interval> {
    let end =
        hosts.iter().filter_map(|intervals| intervals.iter().map(|i| i.end_ns).max()).max().unwrap_or(0);
    if end == 0 {
        return Vec::new();
    }
    let step = STEP_NS.saturating_mul(end.div_ceil(STEP_NS.saturating_mul(MOST)).max(1));
    let ends: Vec<u64> = (1..=end.div_ceil(step)).map(|n| n.saturating_mul(step).min(end)).collect();
    let mut whole: Vec<Interval> = Vec::with_capacity(ends.len());
    let mut start_ns = 0;
    for end_ns in ends {
        whole.push(Interval { start_ns, end_ns, ..Interval::default() });
        start_ns = end_ns;
    }
    for (of, put) in FIELDS {
        let counted: Vec<_> = hosts.iter().filter_map(|intervals| cumulative(intervals, of)).collect();
        if counted.is_empty() {
            continue;
        }
        for interval in &mut whole {
            // What was counted at the very start belongs to the first.
            let before = |points: &[(u64, u64)]| match interval.start_ns {
                0 => 0,
                start => until(points, start),
            };
            let each = counted.iter().map(|points| until(points, interval.end_ns) - before(points));
            put(interval, each.fold(0, u64::saturating_add));
        }
    }
    whole
}

/// The delays of the only one who measured any, each in the interval that its middle lies in.
pub(crate) fn put_delays(whole: &mut [Interval], measured: &[Interval]) {
    for interval in whole {
        let middle = interval.start_ns.midpoint(interval.end_ns);
        let Some(own) = measured.iter().find(|own| own.start_ns <= middle && middle < own.end_ns) else {
            continue;
        };
        interval.latency_p50_ns = own.latency_p50_ns;
        interval.latency_p99_ns = own.latency_p99_ns;
        interval.latency_p999_ns = own.latency_p999_ns;
        interval.latency_max_ns = own.latency_max_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn interval(start_ns: u64, end_ns: u64, tx: Option<u64>, rx: Option<u64>) -> Interval {
        Interval { start_ns, end_ns, tx_frames: tx, rx_frames: rx, ..Interval::default() }
    }

    #[test]
    fn looks_that_are_not_at_the_same_moments_are_put_on_one_grid() {
        let sender =
            [interval(0, 101_000_000, Some(1010), None), interval(101_000_000, 200_000_000, Some(990), None)];
        let meter =
            [interval(0, 150_000_000, None, Some(1500)), interval(150_000_000, 300_000_000, None, Some(500))];
        let whole = summed(&[&sender, &meter]);
        let told: Vec<_> = whole
            .iter()
            .map(|i| (i.start_ns / 1_000_000, i.end_ns / 1_000_000, i.tx_frames, i.rx_frames))
            .collect();
        // Between its looks the meter counted evenly, as far as anybody knows.
        assert_eq!(
            told,
            [
                (0, 100, Some(1000), Some(1000)),
                (100, 200, Some(1000), Some(666)),
                (200, 300, Some(0), Some(334))
            ]
        );
        assert!(summed(&[&[], &[]]).is_empty() && summed(&[]).is_empty());
    }

    proptest! {
        /// Whatever an agent tells: nothing is lost or made, and nobody panics.
        #[test]
        fn every_sum_stays_what_it_was(
            hosts in prop::collection::vec(
                prop::collection::vec((0u64..3_000_000_000, 0u64..1_000_000_000_000, 0u64..1 << 40), 0..40), 0..4),
        ) {
            let hosts: Vec<Vec<Interval>> = hosts
                .into_iter()
                .map(|own| own.into_iter().map(|(from, length, n)| interval(from, from + length, Some(n), None)).collect())
                .collect();
            let slices: Vec<&[Interval]> = hosts.iter().map(Vec::as_slice).collect();
            let whole = summed(&slices);
            let sum = |intervals: &[Interval]| intervals.iter().filter_map(|i| i.tx_frames).sum::<u64>();
            let ended = hosts.iter().any(|own| own.iter().any(|i| i.end_ns > 0));
            prop_assert!(whole.len() as u64 <= MOST + 1);
            if ended {
                prop_assert_eq!(sum(&whole), hosts.iter().map(|own| sum(own)).sum::<u64>());
            }
            prop_assert!(whole.windows(2).all(|pair| pair[0].end_ns == pair[1].start_ns));
        }
    }
}
