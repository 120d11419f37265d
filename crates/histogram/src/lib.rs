//! A log-linear histogram of nanoseconds (or any `u64`): small, mergeable, with a known error.
//!
//! Every power of two is cut into 128 equal buckets and values below 256 are exact, so a bucket is never wider than
//! 1/128 (0.8 %) of the values in it. 3,968 buckets reach to 2^37 ns (137 s); longer ones are counted in the last.
//! `bpf/include/loglinear.h` is the same in C; the meter's property test holds the two together. Used for latency
//! here and for lateness and gaps elsewhere.

use std::fmt;
use std::ops::RangeInclusive;

/// Each power of two is cut into 2 to the power of this many buckets.
pub const PART_BITS: u32 = 7;
/// Values of so many bits and more are counted in the last bucket.
pub const RANGE_BITS: u32 = 37;
/// Number of buckets.
pub const BUCKETS: usize = ((RANGE_BITS - PART_BITS + 1) << PART_BITS) as usize;

/// The bucket that `value` is counted in.
pub fn bucket_of(value: u64) -> usize {
    if value >> RANGE_BITS != 0 {
        return BUCKETS - 1;
    }
    // How often `value` must be halved to have its highest bit in place 7 (0 for the exact ones).
    let shift = (u64::BITS - (value >> PART_BITS).leading_zeros()).saturating_sub(1);
    ((shift << PART_BITS) as usize) + (value >> shift) as usize
}

/// The values that `bucket` counts.
fn bounds(bucket: usize) -> RangeInclusive<u64> {
    let row = (bucket as u64 >> PART_BITS).saturating_sub(1);
    let from = (bucket as u64 - (row << PART_BITS)) << row;
    if bucket + 1 >= BUCKETS { from..=u64::MAX } else { from..=from + (1 << row) - 1 }
}

/// A count of values by size, with exact count, sum, least and greatest.
#[derive(Clone, PartialEq, Eq)]
pub struct Histogram {
    counts: Box<[u64; BUCKETS]>,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

/// One bucket that holds something: all values from `from` to `to`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    pub from: u64,
    pub to: u64,
    pub count: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram { counts: Box::new([0; BUCKETS]), count: 0, sum: 0, min: u64::MAX, max: 0 }
    }
}

impl Histogram {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// From what the kernel counted; `min` and `max` mean something only if `counts` does.
    pub fn from_counts(counts: &[u64; BUCKETS], sum: u64, min: u64, max: u64) -> Self {
        let count = counts.iter().sum();
        let (min, max) = if count == 0 { (u64::MAX, 0) } else { (min, max) };
        Histogram { counts: Box::new(*counts), count, sum: sum.into(), min, max }
    }

    /// Counts one value.
    pub fn record(&mut self, value: u64) {
        self.record_n(value, 1);
    }

    /// Counts `n` equal values.
    pub fn record_n(&mut self, value: u64, n: u64) {
        if n == 0 {
            return;
        }
        self.counts[bucket_of(value)] += n;
        self.count += n;
        self.sum += u128::from(value) * u128::from(n);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Adds all that `other` counted, as if it had been recorded here.
    pub fn merge(&mut self, other: &Histogram) {
        for (mine, theirs) in self.counts.iter_mut().zip(other.counts.iter()) {
            *mine += theirs;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// What was counted here and not yet in `earlier`, an earlier state of the same histogram. Its least and greatest
    /// value are known to the width of their buckets.
    pub fn since(&self, earlier: &Histogram) -> Histogram {
        let mut new = Histogram::new();
        for (bucket, (now, before)) in self.counts.iter().zip(earlier.counts.iter()).enumerate() {
            let count = now.saturating_sub(*before);
            if count > 0 {
                new.counts[bucket] = count;
                new.count += count;
                new.min = new.min.min(*bounds(bucket).start()).max(self.min);
                new.max = (*bounds(bucket).end()).min(self.max);
            }
        }
        new.sum = self.sum.saturating_sub(earlier.sum);
        new
    }

    /// How many values were recorded.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The least value, exactly; 0 if there is none.
    pub fn min(&self) -> u64 {
        if self.count == 0 { 0 } else { self.min }
    }

    /// The greatest value, exactly; 0 if there is none.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The mean, from the exact sum; 0 if there is no value.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// The value that the fraction `q` (0 to 1) of all values does not exceed; 0 if there is none.
    ///
    /// It is the upper end of the bucket where that value lies (but never beyond [`max`](Self::max)), so it never
    /// flatters and overstates by at most 0.8 %.
    pub fn quantile(&self, q: f64) -> u64 {
        let rank = ((q.clamp(0.0, 1.0) * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return (*bounds(bucket).end()).clamp(self.min(), self.max);
            }
        }
        self.max
    }

    /// Median.
    pub fn p50(&self) -> u64 {
        self.quantile(0.5)
    }

    /// 90 of 100 are not above this.
    pub fn p90(&self) -> u64 {
        self.quantile(0.9)
    }

    /// 99 of 100 are not above this.
    pub fn p99(&self) -> u64 {
        self.quantile(0.99)
    }

    /// 999 of 1,000 are not above this.
    pub fn p999(&self) -> u64 {
        self.quantile(0.999)
    }

    /// 9,999 of 10,000 are not above this.
    pub fn p9999(&self) -> u64 {
        self.quantile(0.9999)
    }

    /// 99,999 of 100,000 are not above this.
    pub fn p99999(&self) -> u64 {
        self.quantile(0.99999)
    }

    /// The buckets that hold something, from the least values to the greatest: what a plot needs.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> + '_ {
        self.counts.iter().enumerate().filter(|(_, count)| **count > 0).map(|(bucket, count)| Bucket {
            from: *bounds(bucket).start(),
            to: (*bounds(bucket).end()).min(self.max),
            count: *count,
        })
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Histogram {{ count: {}, min: {}, mean: {:.1}, ", self.count, self.min(), self.mean())?;
        write!(f, "p50: {}, p99: {}, max: {} }}", self.p50(), self.p99(), self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_follow_each_other_without_gap_or_overlap() {
        let mut next = 0;
        for bucket in 0..BUCKETS {
            assert_eq!(*bounds(bucket).start(), next, "bucket {bucket}");
            next = bounds(bucket).end().wrapping_add(1);
        }
        assert_eq!(next, 0, "the last bucket ends where u64 does");
        assert_eq!(*bounds(BUCKETS - 1).start(), (1 << 37) - (1 << 29));
    }

    #[test]
    fn values_below_256_are_exact() {
        for value in 0..256 {
            assert_eq!(bounds(bucket_of(value)), value..=value);
        }
    }

    #[test]
    fn an_empty_histogram_answers_zero_everywhere() {
        let empty = Histogram::new();
        assert_eq!((empty.count(), empty.min(), empty.max(), empty.p50(), empty.p99999()), (0, 0, 0, 0, 0));
        assert!(empty.mean() == 0.0 && empty.buckets().next().is_none() && empty.is_empty());
    }

    #[test]
    fn percentiles_of_a_thousand_values_are_the_values_themselves_within_the_error() {
        let mut histogram = Histogram::new();
        (1..=1000).rev().for_each(|value| histogram.record(value * 1000));
        for (quantile, exact) in [(0.5, 500_000), (0.9, 900_000), (0.99, 990_000), (0.999, 999_000)] {
            let got = histogram.quantile(quantile);
            assert!(got >= exact && got as f64 <= exact as f64 * 1.0079, "{quantile}: {got} for {exact}");
        }
        assert_eq!((histogram.quantile(0.0), histogram.quantile(1.0)), (1003, 1_000_000));
        assert_eq!(histogram.mean(), 500_500.0);
    }

    proptest! {
        #[test]
        fn a_bucket_holds_its_values_and_is_at_most_a_128th_wide(value in (0u32..37).prop_flat_map(|b| 0..(2u64 << b))) {
            let range = bounds(bucket_of(value));
            prop_assert!(range.contains(&value));
            if value < 1 << RANGE_BITS && bucket_of(value) < BUCKETS - 1 {
                prop_assert!((range.end() - range.start()) * 128 <= value.max(1));
            }
        }

        #[test]
        fn what_came_since_and_what_was_before_are_the_whole(
            before in proptest::collection::vec(any::<u64>().prop_map(|v| v >> (v % 64)), 0..50),
            after in proptest::collection::vec(any::<u64>().prop_map(|v| v >> (v % 64)), 0..50),
        ) {
            let mut histogram = Histogram::new();
            before.iter().for_each(|v| histogram.record(*v));
            let mut both = histogram.clone();
            after.iter().for_each(|v| both.record(*v));
            let since = both.since(&histogram);
            prop_assert_eq!(since.count() as usize, after.len());
            prop_assert_eq!(since.sum, after.iter().map(|v| u128::from(*v)).sum::<u128>());
            for (quantile, name) in [(0.0, "min"), (0.5, "p50"), (0.99, "p99"), (1.0, "max")] {
                let mut sorted = after.clone();
                sorted.sort_unstable();
                let rank = ((quantile * after.len() as f64).ceil() as usize).clamp(1, after.len().max(1));
                let exact = sorted.get(rank - 1).copied().unwrap_or(0);
                let got = since.quantile(quantile);
                prop_assert!(bucket_of(got) == bucket_of(exact) && got >= exact, "{}: {} for {}", name, got, exact);
            }
            histogram.merge(&since);
            prop_assert_eq!(histogram.counts, both.counts);
        }

        #[test]
        fn merging_equals_recording_everything_in_one(
            left in proptest::collection::vec(any::<u64>().prop_map(|v| v >> (v % 64)), 0..50),
            right in proptest::collection::vec(0u64..1_000_000, 0..50),
        ) {
            let (mut a, mut b, mut both) = (Histogram::new(), Histogram::new(), Histogram::new());
            left.iter().for_each(|v| a.record(*v));
            right.iter().for_each(|v| b.record(*v));
            left.iter().chain(&right).for_each(|v| both.record(*v));
            a.merge(&b);
            prop_assert_eq!(&a, &both);
            prop_assert_eq!(both.buckets().map(|b| b.count).sum::<u64>(), both.count());
        }
    }
}
