//! What was seen over time, in a bounded number of pieces however long it takes.

use std::time::Duration;

/// How often one looks.
pub const SAMPLE: Duration = Duration::from_millis(100);
/// More intervals than this are joined in pairs.
const MOST_INTERVALS: usize = 1200;

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
    pub fn push(&mut self, at_ns: u64, sample: T, last: bool) {
        self.skipped += 1;
        if self.skipped < self.stride && !last {
            return;
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
        }
    }

    /// What lies between each sample and the next: both ends.
    pub fn intervals(&self) -> impl Iterator<Item = [(u64, T); 2]> {
        self.kept.windows(2).map(|pair| [pair[0], pair[1]])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_kept_in_few_intervals_without_gaps() {
        let mut samples = Samples::new();
        let day = 10 * 86_400;
        (1..=day).for_each(|n| samples.push(n, n, n == day));
        let all: Vec<_> = samples.intervals().collect();
        assert!((MOST_INTERVALS / 2..=MOST_INTERVALS).contains(&all.len()), "{}", all.len());
        assert_eq!((all[0][0], all[all.len() - 1][1]), ((0, 0), (day, day)));
        assert!(all.windows(2).all(|pair| pair[0][1] == pair[1][0]));
    }
}
