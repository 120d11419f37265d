//! What was seen over time, in a bounded number of pieces however long it takes.

use histogram::Histogram;
use report::{Bucket, Distribution, Exact, Interval};
use std::time::Duration;

/// How often one looks.
pub const SAMPLE: Duration = Duration::from_millis(100);
/// More intervals than this are joined in pairs.
const MOST_INTERVALS: usize = 1200;

/// What became of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    None,
    One,
    /// It is kept, and of all samples every other was dropped.
    AndHalved,
}

/// Samples with their times in nanoseconds since the start; the first is of the start itself.
#[derive(Debug)]
pub struct Samples<T> {
    kept: Vec<(u64, T)>,
    /// Every how many samples one is kept.
    stride: u32,
    skipped: u32,
}

impl<T: Copy + Default> Samples<T> {
    pub fn new() -> Samples<T> {
        Samples { kept: vec![(0, T::default())], stride: 1, skipped: 0 }
    }

    /// Takes the next sample; the last one is kept in any case.
    pub fn push(&mut self, at_ns: u64, sample: T, last: bool) -> Kept {
        self.skipped += 1;
        if self.skipped < self.stride && !last {
            return Kept::None;
        }
        self.skipped = 0;
        self.kept.push((at_ns, sample));
        if self.kept.len() > MOST_INTERVALS && !last {
            let mut keep = false;
            self.kept.retain(|_| {
                keep = !keep;
                keep
            });
            self.stride *= 2;
            return Kept::AndHalved;
        }
        Kept::One
    }

    /// What lies between each sample and the next: both ends.
    pub fn intervals(&self) -> impl Iterator<Item = [(u64, T); 2]> {
        self.kept.windows(2).map(|pair| [pair[0], pair[1]])
    }
}

/// How values of a growing histogram were spread between one sample and the next: as many entries as there are samples,
/// the first, of the start itself, being empty.
#[derive(Debug)]
pub struct Spreads {
    last: Histogram,
    /// Of samples that were taken back: they belong to the next one.
    pending: Vec<Bucket>,
    kept: Vec<Vec<Bucket>>,
}

impl Spreads {
    pub fn new() -> Spreads {
        Spreads { last: Histogram::new(), pending: Vec::new(), kept: vec![Vec::new()] }
    }

    /// A sample is kept, at which this was counted since the start.
    pub fn push(&mut self, seen: &Histogram) {
        let mut spread = std::mem::take(&mut self.pending);
        if seen.count() > self.last.count() {
            let seen = seen.coarse();
            spread.extend(seen.since(&self.last).buckets().map(|b| Bucket {
                from: b.from,
                to: b.to,
                count: b.count,
            }));
            self.last = seen;
        }
        self.kept.push(spread);
    }

    /// Keeps pace with [`Samples`].
    pub fn follow(&mut self, kept: Kept, seen: &Histogram) {
        if kept != Kept::None {
            self.push(seen);
        }
        if kept == Kept::AndHalved {
            self.halve();
        }
    }

    /// The last sample was taken back.
    pub fn pop(&mut self) {
        self.pending.extend(self.kept.pop().unwrap_or_default());
    }

    /// Every other sample was dropped, the first being kept.
    pub fn halve(&mut self) {
        let mut before = Vec::new();
        let mut kept = Vec::with_capacity(self.kept.len() / 2 + 1);
        for (number, mut spread) in self.kept.drain(..).enumerate() {
            if number % 2 == 0 {
                spread.append(&mut before);
                kept.push(spread);
            } else {
                before = spread;
            }
        }
        self.kept = kept;
        self.pending.append(&mut before);
    }

    /// Fills in the delays of the interval that ends with this sample.
    pub fn fill(&self, sample: usize, interval: &mut Interval) {
        let Some(spread) = self.kept.get(sample) else { return };
        let mut buckets = spread.clone();
        // One that was seen several times had the greatest value of its time as its end.
        buckets.sort_unstable_by_key(|bucket| (bucket.from, bucket.to));
        if let Some(d) = Distribution::from_histogram(buckets, Exact::default()) {
            interval.latency_p50_ns = Some(d.p50);
            interval.latency_p99_ns = Some(d.p99);
            interval.latency_p999_ns = Some(d.p999);
            interval.latency_max_ns = Some(d.max);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_kept_in_few_intervals_without_gaps() {
        let mut samples = Samples::new();
        let day = 10 * 86_400;
        let (mut spreads, mut seen) = (Spreads::new(), Histogram::new());
        (1..=day).for_each(|n| {
            seen.record(100 * n);
            let kept = samples.push(n, n, n == day);
            spreads.follow(kept, &seen);
        });
        let all: Vec<_> = samples.intervals().collect();
        assert!((MOST_INTERVALS / 2..=MOST_INTERVALS).contains(&all.len()), "{}", all.len());
        assert_eq!((all[0][0], all[all.len() - 1][1]), ((0, 0), (day, day)));
        assert!(all.windows(2).all(|pair| pair[0][1] == pair[1][0]));
        // Each value is in the interval that it was seen in.
        assert_eq!(spreads.kept.len(), all.len() + 1);
        for (number, [from, to]) in all.iter().enumerate() {
            let mut interval = Interval::default();
            spreads.fill(number + 1, &mut interval);
            let (median, most) = (100.0 * (from.0 + to.0) as f64 / 2.0, 100 * to.0);
            let told = interval.latency_p50_ns.expect("values") as f64;
            assert!(told >= median * 0.98 && told <= median * 1.03 + 100.0, "{number}: {told} for {median}");
            let told = interval.latency_max_ns.expect("values");
            assert!(told >= most && told <= most + most / 100, "{number}: {told} for {most}");
        }
    }
}
