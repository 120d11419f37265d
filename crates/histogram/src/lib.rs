//! A log-linear histogram of nanoseconds (or any `u64`): small, mergeable, with a known error.
//!
//! Every power of two is cut into equal buckets: 128 of them ([`PART_BITS`]), so that a bucket is never wider than 1/128
//! (0.8 %) of the values in it, or 2,048 ([`FINE_PART_BITS`]), never wider than 1/2,048 (0.05 %: three significant digits,
//! as HdrHistogram's users know them). 3,968 buckets, or 55,296 fine ones, reach to 2^37 ns (137 s); longer ones are counted
//! in the last. Sixteen fine buckets are exactly one of the others, so both kinds add up.
//! `programs/bpf/include/loglinear.h` is the same in C; the meter's property test holds the two together. Used for latency
//! here and for lateness and gaps elsewhere.

#![deny(missing_docs, clippy::missing_errors_doc)]

pub mod student;

use std::borrow::Cow;
use std::fmt;
use std::ops::RangeInclusive;

/// Each power of two is cut into 2 to the power of this many buckets.
pub const PART_BITS: u32 = 7;
/// The same, where one histogram stands for all frames and may be large.
pub const FINE_PART_BITS: u32 = 11;
/// Values of so many bits and more are counted in the last bucket.
pub const RANGE_BITS: u32 = 37;
/// Number of buckets.
pub const BUCKETS: usize = buckets_of(PART_BITS);
/// Number of fine buckets.
pub const FINE_BUCKETS: usize = buckets_of(FINE_PART_BITS);

const fn buckets_of(part_bits: u32) -> usize {
    ((RANGE_BITS - part_bits + 1) << part_bits) as usize
}

/// The bucket that `value` is counted in.
pub fn bucket_of(value: u64) -> usize {
    bucket_in(value, PART_BITS)
}

/// The fine bucket that `value` is counted in.
pub fn fine_bucket_of(value: u64) -> usize {
    bucket_in(value, FINE_PART_BITS)
}

fn bucket_in(value: u64, part_bits: u32) -> usize {
    if value >> RANGE_BITS != 0 {
        return buckets_of(part_bits) - 1;
    }
    // How often `value` must be halved to have its highest bit in place `part_bits` (0 for the exact ones).
    let shift = (u64::BITS - (value >> part_bits).leading_zeros()).saturating_sub(1);
    ((shift << part_bits) as usize) + (value >> shift) as usize
}

/// The values that `bucket` counts.
fn bounds(bucket: usize, part_bits: u32) -> RangeInclusive<u64> {
    let row = (bucket as u64 >> part_bits).saturating_sub(1);
    let from = (bucket as u64 - (row << part_bits)) << row;
    if bucket + 1 >= buckets_of(part_bits) { from..=u64::MAX } else { from..=from + (1 << row) - 1 }
}

/// A count of values by size, with exact count, sum, least and greatest.
#[derive(Clone, PartialEq, Eq)]
pub struct Histogram {
    part_bits: u32,
    counts: Box<[u64]>,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

/// One bucket that holds something: all values from `from` to `to`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// The least value.
    pub from: u64,
    /// The greatest value.
    pub to: u64,
    /// How many values are in it.
    pub count: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram::with_parts(PART_BITS)
    }
}

impl Histogram {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty one with fine buckets.
    pub fn fine() -> Self {
        Histogram::with_parts(FINE_PART_BITS)
    }

    fn with_parts(part_bits: u32) -> Self {
        let counts = vec![0; buckets_of(part_bits)].into_boxed_slice();
        Histogram { part_bits, counts, count: 0, sum: 0, min: u64::MAX, max: 0 }
    }

    /// From what the kernel counted; `min` and `max` mean something only if `counts` does.
    pub fn from_counts(counts: &[u64; BUCKETS], sum: u128, min: u64, max: u64) -> Self {
        Histogram::counted(PART_BITS, counts, sum, min, max)
    }

    /// From what the kernel counted in fine buckets.
    pub fn from_fine_counts(counts: &[u64; FINE_BUCKETS], sum: u128, min: u64, max: u64) -> Self {
        Histogram::counted(FINE_PART_BITS, counts, sum, min, max)
    }

    fn counted(part_bits: u32, counts: &[u64], sum: u128, min: u64, max: u64) -> Self {
        let count = counts.iter().sum();
        let (min, max) = if count == 0 { (u64::MAX, 0) } else { (min, max) };
        Histogram { part_bits, counts: counts.into(), count, sum, min, max }
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
        self.counts[bucket_in(value, self.part_bits)] += n;
        self.count += n;
        self.sum += u128::from(value) * u128::from(n);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Adds all that `other` counted, as if it had been recorded here. The sum tells values apart as finely as both did;
    /// one that counted nothing takes nothing away.
    pub fn merge(&mut self, other: &Histogram) {
        let part_bits = self.common_with(other);
        if part_bits != self.part_bits {
            self.counts = self.counts_in(part_bits).into();
            self.part_bits = part_bits;
        }
        for (mine, theirs) in self.counts.iter_mut().zip(other.counts_in(part_bits).iter()) {
            *mine += theirs;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// The same with 128 buckets for each power of two: short enough to be listed.
    pub fn coarse(&self) -> Histogram {
        let counts = self.counts_in(self.part_bits.min(PART_BITS)).into();
        Histogram { part_bits: self.part_bits.min(PART_BITS), counts, ..*self }
    }

    /// How finely both tell values apart.
    fn common_with(&self, other: &Histogram) -> u32 {
        match (self.is_empty(), other.is_empty()) {
            (true, false) => other.part_bits,
            (_, true) => self.part_bits,
            (false, false) => self.part_bits.min(other.part_bits),
        }
    }

    /// The counts by buckets of `part_bits`, which are no finer than these unless nothing was counted.
    fn counts_in(&self, part_bits: u32) -> Cow<'_, [u64]> {
        if part_bits == self.part_bits {
            return Cow::Borrowed(&self.counts);
        }
        let mut counts = vec![0; buckets_of(part_bits)];
        for (bucket, count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            counts[bucket_in(*bounds(bucket, self.part_bits).start(), part_bits)] += count;
        }
        Cow::Owned(counts)
    }

    /// What was counted here and not yet in `earlier`, an earlier state of the same histogram. Its least and greatest
    /// value are known to the width of their buckets.
    pub fn since(&self, earlier: &Histogram) -> Histogram {
        let part_bits = self.common_with(earlier);
        let mut new = Histogram::with_parts(part_bits);
        let (counts, before) = (self.counts_in(part_bits), earlier.counts_in(part_bits));
        for (bucket, (now, before)) in counts.iter().zip(before.iter()).enumerate() {
            let count = now.saturating_sub(*before);
            if count > 0 {
                new.counts[bucket] = count;
                new.count += count;
                new.min = new.min.min(*bounds(bucket, part_bits).start()).max(self.min);
                new.max = (*bounds(bucket, part_bits).end()).min(self.max);
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

    /// The sum of all values, exactly.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// The mean, from the exact sum; 0 if there is no value.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// The value that the fraction `q` (0 to 1) of all values does not exceed; 0 if there is none.
    ///
    /// It is the upper end of the bucket where that value lies (but never beyond [`max`](Self::max)), so it never
    /// flatters and overstates by at most 0.8 % (0.05 % with fine buckets).
    pub fn quantile(&self, q: f64) -> u64 {
        let rank = ((q.clamp(0.0, 1.0) * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return (*bounds(bucket, self.part_bits).end()).clamp(self.min(), self.max);
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

    /// The buckets that hold something, from the least values to the greatest: what a plot needs.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> + '_ {
        self.counts.iter().enumerate().filter(|(_, count)| **count > 0).map(|(bucket, count)| Bucket {
            from: *bounds(bucket, self.part_bits).start(),
            to: (*bounds(bucket, self.part_bits).end()).min(self.max),
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
        for part_bits in [PART_BITS, FINE_PART_BITS] {
            let mut next = 0;
            for bucket in 0..buckets_of(part_bits) {
                assert_eq!(*bounds(bucket, part_bits).start(), next, "bucket {bucket}");
                next = bounds(bucket, part_bits).end().wrapping_add(1);
            }
            assert_eq!(next, 0, "the last bucket ends where u64 does");
        }
        assert_eq!(*bounds(BUCKETS - 1, PART_BITS).start(), (1 << 37) - (1 << 29));
    }

    #[test]
    fn small_values_are_exact() {
        for (part_bits, below) in [(PART_BITS, 256), (FINE_PART_BITS, 4096)] {
            for value in 0..below {
                assert_eq!(bounds(bucket_in(value, part_bits), part_bits), value..=value);
            }
        }
    }

    #[test]
    fn ten_milliseconds_are_known_to_five_microseconds_in_fine_buckets() {
        let mut fine = Histogram::fine();
        [10_000_000, 10_004_999, 11_000_000].iter().for_each(|value| fine.record(*value));
        assert!((10_004_999..10_009_100).contains(&fine.p50()), "{}", fine.p50());
    }

    #[test]
    fn an_empty_histogram_answers_zero_everywhere() {
        let empty = Histogram::new();
        assert_eq!(
            (empty.count(), empty.min(), empty.max(), empty.p50(), empty.quantile(0.99999)),
            (0, 0, 0, 0, 0)
        );
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
        fn a_bucket_holds_its_values_and_is_no_wider_than_promised(value in (0u32..37).prop_flat_map(|b| 0..(2u64 << b))) {
            for part_bits in [PART_BITS, FINE_PART_BITS] {
                let bucket = bucket_in(value, part_bits);
                let range = bounds(bucket, part_bits);
                prop_assert!(range.contains(&value));
                if value < 1 << RANGE_BITS && bucket < buckets_of(part_bits) - 1 {
                    prop_assert!((range.end() - range.start()) << part_bits <= value.max(1));
                }
            }
        }

        /// Whichever is finer: what is known of both is what one of 128 parts would have been told.
        #[test]
        fn fine_and_other_buckets_add_up(
            left in proptest::collection::vec(any::<u64>().prop_map(|v| v >> (v % 64)), 1..50),
            right in proptest::collection::vec(any::<u64>().prop_map(|v| v >> (v % 64)), 1..50),
        ) {
            let (mut fine, mut other, mut both) = (Histogram::fine(), Histogram::new(), Histogram::new());
            left.iter().for_each(|v| fine.record(*v));
            right.iter().for_each(|v| other.record(*v));
            left.iter().chain(&right).for_each(|v| both.record(*v));
            let mut sum = Histogram::new();
            sum.merge(&fine);
            prop_assert_eq!(&sum, &fine, "an empty one takes nothing away");
            sum.merge(&other);
            prop_assert_eq!(&sum, &both);
            let mut sum = other.clone();
            sum.merge(&fine);
            prop_assert_eq!(&sum, &both);
            prop_assert_eq!(sum.since(&other).counts, both.since(&other).counts);
            prop_assert_eq!(&fine.since(&Histogram::new()).counts, &fine.counts);
            let mut plain = Histogram::new();
            left.iter().for_each(|v| plain.record(*v));
            prop_assert_eq!(&fine.coarse(), &plain);
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
