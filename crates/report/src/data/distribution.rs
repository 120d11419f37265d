//! Percentiles and histograms of whole numbers (nanoseconds, bytes).
//!
//! Percentiles are nearest-rank (the smallest value with at least that share of the values at or below it), so
//! each one is a value that occurred, or, from a histogram, the upper end of the bucket it fell in: never
//! better than the truth.

use histogram::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Values from `from` to `to`, both included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Bucket {
    /// The least value that counts in this bucket.
    pub from: u64,
    /// The greatest value that counts in this bucket.
    pub to: u64,
    /// How many values are in it.
    pub count: u64,
}

/// A summary of many values; the unit stands in the name of the member that holds it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Distribution {
    /// How many values were taken.
    pub count: u64,
    /// The least value.
    pub min: u64,
    /// The mean of the values.
    pub mean: f64,
    /// The median of the values.
    pub p50: u64,
    /// The 90th percentile of the values.
    pub p90: u64,
    /// The 99th percentile of the values.
    pub p99: u64,
    /// The 99.9th percentile of the values.
    pub p999: u64,
    /// The 99.99th percentile of the values; of fewer than 10,000 values the greatest.
    #[serde(default)]
    pub p9999: u64,
    /// The 99.999th percentile of the values; of fewer than 100,000 values the greatest.
    #[serde(default)]
    pub p99999: u64,
    /// The greatest value.
    pub max: u64,
    /// Ascending, empty buckets left out; for plotting.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub histogram: Vec<Bucket>,
}

/// What a histogram's owner may know exactly although the buckets do not tell.
#[derive(Clone, Copy, Debug, Default)]
pub struct Exact {
    /// The least.
    pub min: Option<u64>,
    /// The greatest.
    pub max: Option<u64>,
    /// Of all values.
    pub sum: Option<u128>,
}

impl Distribution {
    /// `None` when there are no samples. Sorts them.
    pub fn from_samples(samples: &mut [u64]) -> Option<Self> {
        samples.sort_unstable();
        let (&min, &max) = (samples.first()?, samples.last()?);
        let sum: u128 = samples.iter().map(|&s| u128::from(s)).sum();
        let count = samples.len() as u64;
        let at = |part| {
            let index = usize::try_from(rank(count, part) - 1).unwrap_or(usize::MAX);
            samples.get(index).copied().unwrap_or(max)
        };
        Some(Self {
            count,
            min,
            mean: sum as f64 / count as f64,
            p50: at(50_000),
            p90: at(90_000),
            p99: at(99_000),
            p999: at(99_900),
            p9999: at(99_990),
            p99999: at(99_999),
            max,
            histogram: Vec::new(),
        })
    }

    /// From ascending buckets; empty ones are dropped. `None` when all are. What `exact` does not say is taken
    /// from the buckets: the first one's lower end, the last one's upper end, the buckets' middles.
    pub fn from_histogram(buckets: impl IntoIterator<Item = Bucket>, exact: Exact) -> Option<Self> {
        let histogram: Vec<Bucket> = buckets.into_iter().filter(|b| b.count > 0).collect();
        let min = exact.min.unwrap_or(histogram.first()?.from);
        let max = exact.max.unwrap_or(histogram.last()?.to).max(min);
        let count: u64 = histogram.iter().fold(0, |n, b| n.saturating_add(b.count));
        let mean = match exact.sum {
            Some(sum) => sum as f64,
            None => histogram.iter().map(|b| (b.from as f64 + b.to as f64) / 2.0 * b.count as f64).sum(),
        } / count as f64;
        let at = |part| {
            let wanted = rank(count, part);
            let mut seen = 0u64;
            let found = histogram.iter().find(|b| {
                seen = seen.saturating_add(b.count);
                seen >= wanted
            });
            found.map_or(max, |b| b.to).clamp(min, max)
        };
        let [p50, p90, p99, p999, p9999, p99999] = [50_000, 90_000, 99_000, 99_900, 99_990, 99_999].map(at);
        Some(Self { count, min, mean, p50, p90, p99, p999, p9999, p99999, max, histogram })
    }

    /// Of the values of several: buckets add up, and percentiles follow from the sums; least, greatest and mean are exact. `None`: one of them has
    /// values and no buckets, so that nothing is known of all.
    pub fn of_all<'d>(parts: impl IntoIterator<Item = &'d Distribution>) -> Option<Self> {
        let mut parts: Vec<&Distribution> = parts.into_iter().filter(|part| part.count > 0).collect();
        if let [only] = parts[..] {
            return Some(only.clone());
        }
        if parts.iter().any(|part| part.histogram.is_empty()) {
            return None;
        }
        // Buckets of one kind of histogram begin at the same values; the last of each is cut at its greatest one.
        let mut sums: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for bucket in parts.iter().flat_map(|part| &part.histogram) {
            let (to, sum) = sums.entry(bucket.from).or_default();
            (*to, *sum) = (bucket.to.max(*to), sum.saturating_add(bucket.count));
        }
        let sum: f64 = parts.iter().map(|part| part.mean * part.count as f64).sum();
        let exact = Exact {
            min: parts.iter().map(|part| part.min).min(),
            max: parts.drain(..).map(|part| part.max).max(),
            sum: None,
        };
        let buckets = sums.into_iter().map(|(from, (to, count))| Bucket { from, to, count });
        let whole = Self::from_histogram(buckets, exact)?;
        Some(Self { mean: sum / whole.count as f64, ..whole })
    }

    /// What a histogram knows, percentiles from its finest buckets; none of these are kept. `None` if it is empty.
    pub fn summary(histogram: &Histogram) -> Option<Self> {
        let exact =
            Exact { min: Some(histogram.min()), max: Some(histogram.max()), sum: Some(histogram.sum()) };
        Some(Self { histogram: Vec::new(), ..Self::from_histogram(buckets(histogram), exact)? })
    }

    /// The same, with buckets: thousands of them would be no help to a reader.
    pub fn whole(histogram: &Histogram) -> Option<Self> {
        Some(Self { histogram: buckets(&histogram.coarse()).collect(), ..Self::summary(histogram)? })
    }

    /// The percentiles with their names, lowest first.
    pub fn percentiles(&self) -> [(&'static str, u64); 5] {
        [("p50", self.p50), ("p90", self.p90), ("p99", self.p99), ("p99.9", self.p999), ("max", self.max)]
    }

    /// The same in words: "p50 12 us".
    pub(crate) fn in_words(&self) -> impl Iterator<Item = String> + use<> {
        self.percentiles()
            .into_iter()
            .map(|(name, value)| format!("{name} {}", crate::data::units::time(value)))
    }

    /// The percentiles and those that only many values have: each needs ten values above it.
    pub fn far_percentiles(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let [rest @ .., max] = self.percentiles();
        let far = [("p99.99", self.p9999, 100_000), ("p99.999", self.p99999, 1_000_000)];
        let far = far.into_iter().filter(|(_, _, least)| self.count >= *least).map(|(name, v, _)| (name, v));
        rest.into_iter().chain(far).chain([max])
    }
}

fn buckets(histogram: &Histogram) -> impl Iterator<Item = Bucket> {
    histogram.buckets().map(|bucket| Bucket { from: bucket.from, to: bucket.to, count: bucket.count })
}

/// Nearest rank, from 1, of `part` in 100,000 among `count` values.
fn rank(count: u64, part: u64) -> u64 {
    let rank = (u128::from(count) * u128::from(part)).div_ceil(100_000).max(1);
    u64::try_from(rank).unwrap_or(u64::MAX)
}

/// Joins neighbouring buckets until at most `limit` are left; nothing is lost but resolution.
pub fn coarsen(buckets: &[Bucket], limit: usize) -> Vec<Bucket> {
    let group = buckets.len().div_ceil(limit.max(1)).max(1);
    let join = |bs: &[Bucket]| {
        let mut joined = *bs.first()?;
        for b in &bs[1..] {
            joined.to = b.to;
            joined.count = joined.count.saturating_add(b.count);
        }
        Some(joined)
    };
    buckets.chunks(group).filter_map(join).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_rank() {
        let mut samples: Vec<u64> = (1..=1000).rev().collect();
        let d = Distribution::from_samples(&mut samples).expect("samples were given");
        assert_eq!((d.min, d.p50, d.p90, d.p99, d.p999, d.max), (1, 500, 900, 990, 999, 1000));
        assert_eq!(d.mean, 500.5);
        assert_eq!(Distribution::from_samples(&mut []), None);
        let one = Distribution::from_samples(&mut [7]).expect("one sample");
        assert_eq!((one.p50, one.p999), (7, 7));
    }

    #[test]
    fn a_histogram_never_reports_better_than_its_samples() {
        let bucket = |from, to, count| Bucket { from, to, count };
        let buckets = [bucket(0, 9, 0), bucket(10, 19, 90), bucket(20, 39, 9), bucket(40, 79, 1)];
        let d = Distribution::from_histogram(buckets, Exact { max: Some(61), ..Exact::default() });
        let d = d.expect("three buckets are filled");
        assert_eq!((d.count, d.min, d.p50, d.p90, d.p99, d.p999, d.max), (100, 10, 19, 19, 39, 61, 61));
        assert_eq!(d.histogram.len(), 3);
        assert_eq!(Distribution::from_histogram([bucket(0, 9, 0)], Exact::default()), None);
    }

    #[test]
    fn percentiles_of_several_are_those_of_one_histogram_of_all_values() {
        let (mut parts, mut all) =
            (vec![Histogram::fine(), Histogram::fine(), Histogram::new()], Histogram::new());
        for n in 0..30_000u64 {
            let value = (n * n) % 900_001 + n % 7;
            parts[(n % 3) as usize].record(value);
            all.record(value);
        }
        let told: Vec<Distribution> = parts.iter().filter_map(Distribution::whole).collect();
        let (merged, whole) =
            (Distribution::of_all(&told).expect("values"), Distribution::whole(&all).expect("values"));
        assert!((merged.mean - whole.mean).abs() < 1e-6 * whole.mean);
        assert_eq!(Distribution { mean: whole.mean, ..merged }, whole);
        let bare = Distribution { histogram: Vec::new(), ..told[0].clone() };
        assert_eq!(Distribution::of_all([&told[1], &bare]), None);
        assert_eq!(Distribution::of_all([&bare, &Distribution::default()]), Some(bare.clone()));
    }

    #[test]
    fn coarse_buckets_keep_every_count() {
        let fine: Vec<_> = (0..1000).map(|i| Bucket { from: i, to: i, count: i }).collect();
        let coarse = coarsen(&fine, 64);
        assert!(coarse.len() <= 64);
        assert_eq!(coarse.iter().map(|b| b.count).sum::<u64>(), 499_500);
        assert_eq!((coarse[0].from, coarse[coarse.len() - 1].to), (0, 999));
        assert!(coarsen(&[], 10).is_empty());
    }
}
