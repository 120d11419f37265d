//! Times of a Poisson process that are a function of the frame's number.
//!
//! Gaps that are drawn one after the other would have to be added up from the start to find the time of frame *n*. Here time
//! is divided from above instead: 64^4 frames take exactly as long as they would evenly. This time is divided among 64 parts
//! of 64^3 frames, each part's among 64 of 64^2, and so on down to single gaps. Each divides in the proportion of random
//! numbers of the gamma distribution whose shape is the part's number of frames, which for one frame is the exponential. Sums
//! of exponential gaps are distributed so, and their proportions do not depend on the sum (Lukacs 1955): what comes out are
//! gaps of independent exponential distribution under the one condition that 64^4 of them last as long as asked for.

use super::fixed::{self, ONE};
use crate::values::hash;

/// Parts that time is divided among at a level, as a power of two.
const FAN_BITS: u32 = 6;
const FAN: usize = 1 << FAN_BITS;
const LEVELS: usize = 4;
/// After two to the power of so many frames the mean rate is exact.
pub const EXACT_AFTER_BITS: u32 = FAN_BITS * LEVELS as u32;

/// Walks the times of a process of `frames` in `per_ns`, remembering the divisions that the last one was found by.
#[derive(Debug, Clone)]
pub(super) struct Process {
    seed: u64,
    frames: u64,
    per_ns: u64,
    levels: [Level; LEVELS],
}

/// A division of time among parts.
#[derive(Debug, Clone)]
struct Level {
    /// Which part of the level above is divided here; `u64::MAX`: none so far.
    node: u64,
    /// Where each part begins, and where the last one ends.
    bounds: [u64; FAN + 1],
}

impl Process {
    pub(super) fn new(seed: u64, frames: u64, per_ns: u64) -> Process {
        let level = || Level { node: u64::MAX, bounds: [0; FAN + 1] };
        Process { seed, frames: frames.max(1), per_ns, levels: std::array::from_fn(|_| level()) }
    }

    /// When frame `n` comes.
    pub(super) fn at(&mut self, n: u64) -> u64 {
        for level in 0..LEVELS {
            self.divide(level, n >> (FAN_BITS * (LEVELS - level) as u32));
        }
        self.levels[LEVELS - 1].bounds[n as usize % FAN]
    }

    /// How many frames come within `ns`.
    pub(super) fn by(&mut self, ns: u64) -> u64 {
        // The last of the evenly timed stretches that has begun.
        let stretch = u128::from(self.per_ns.max(1)) << EXACT_AFTER_BITS;
        let begun = ((u128::from(ns) + 1) * u128::from(self.frames)).div_ceil(stretch);
        let mut node = u64::try_from(begun - 1).unwrap_or(u64::MAX >> EXACT_AFTER_BITS);
        node = node.min(u64::MAX >> EXACT_AFTER_BITS);
        for level in 0..LEVELS {
            self.divide(level, node);
            let begun = self.levels[level].bounds[..FAN].partition_point(|&bound| bound <= ns) as u64;
            node = (node << FAN_BITS) | begun.saturating_sub(1);
        }
        node.saturating_add(1)
    }

    /// Divides a part of the level above, unless it is divided already.
    fn divide(&mut self, level: usize, node: u64) {
        if self.levels[level].node == node {
            return;
        }
        let (begin, end) = match level.checked_sub(1) {
            Some(above) => {
                let bounds = &self.levels[above].bounds;
                let part = node as usize % FAN;
                (bounds[part], bounds[part + 1])
            }
            None => (self.evenly(node), self.evenly(node.saturating_add(1))),
        };
        let key = hash(hash(self.seed, level as u64), node);
        let own = &mut self.levels[level];
        own.node = node;
        let mut sum = 0u64;
        own.bounds[0] = 0;
        for (i, bound) in (0u64..).zip(&mut own.bounds[1..]) {
            sum += match LEVELS - 1 - level {
                0 => fixed::exponential(hash(key, i)),
                above => gamma(key, i, above as u32),
            };
            *bound = sum;
        }
        // One division for all parts; 60 bits more than a nanosecond needs keep it exact enough.
        let length = u128::from(end - begin);
        let each = (length << 60) / u128::from(sum.max(1));
        for bound in &mut own.bounds {
            *bound = begin + ((u128::from(*bound) * each) >> 60) as u64;
        }
        own.bounds[FAN] = end;
    }

    /// When an evenly timed stretch begins.
    fn evenly(&self, stretch: u64) -> u64 {
        let frame = u128::from(stretch) << EXACT_AFTER_BITS;
        let at = frame.saturating_mul(u128::from(self.per_ns)) / u128::from(self.frames);
        u64::try_from(at).unwrap_or(u64::MAX)
    }
}

/// A deviate of the gamma distribution of shape k = 64^`power`, divided by k; 32 bits behind the point. By the cube of a
/// normal deviate (Wilson and Hilferty 1931), which from 64 on is nearer to it than any test of as many numbers could see.
fn gamma(key: u64, index: u64, power: u32) -> u64 {
    let one = ONE as i64;
    let shift = FAN_BITS * power;
    // 1 - 1 / (9 k) + z / (3 sqrt(k))
    let root = one - ((one / 9) >> shift) + ((fixed::normal(key, index) / 3) >> (shift / 2));
    let root = root.max(1) as u128;
    ((((root * root) >> 32) * root) >> 32) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn times(seed: u64, rate: u64, from: u64, count: u64) -> Vec<u64> {
        let mut process = Process::new(seed, rate, SECOND);
        (from..from + count).map(|n| process.at(n)).collect()
    }

    #[test]
    fn gaps_are_exponential() {
        // The distance of Kolmogorov and Smirnov, whose critical value at 1 % is 1.628 / sqrt(n); and at places of every level.
        for (seed, from) in [(1, 0), (2, 1 << 12), (3, (1 << 18) - 7), (4, (1 << 24) - 9), (5, 1 << 40)] {
            let all = times(seed, 100, from, 20_001);
            let mut gaps: Vec<f64> = all.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e7).collect();
            gaps.sort_by(f64::total_cmp);
            let n = gaps.len() as f64;
            let distance = gaps.iter().enumerate().map(|(i, gap)| {
                let law = 1.0 - (-gap).exp();
                (law - i as f64 / n).abs().max((law - (i + 1) as f64 / n).abs())
            });
            let distance = distance.fold(0.0, f64::max);
            // The mean of so many is not exactly the one asked for; the critical value allows for that.
            assert!(distance < 1.628 / n.sqrt(), "seed {seed}: {distance}");
        }
    }

    #[test]
    fn gaps_do_not_hang_on_the_ones_before() {
        let all = times(9, 1000, 0, 100_001);
        let gaps: Vec<f64> = all.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6 - 1.0).collect();
        for lag in [1, 2, 63, 64, 65] {
            let sum: f64 = gaps.iter().zip(&gaps[lag..]).map(|(a, b)| a * b).sum();
            assert!((sum / gaps.len() as f64).abs() < 0.013, "lag {lag}: {sum}");
        }
    }

    #[test]
    fn counts_in_windows_have_the_variance_of_their_mean() {
        // Index of dispersion 1 in windows of 4 to 40,000 frames.
        for (seed, window) in [(1u64, 4u64), (2, 64), (3, 1000), (4, 40_000)] {
            let mut process = Process::new(seed, 1000, SECOND);
            let by: Vec<u64> = (0..=4000).map(|k| process.by(k * window * 1_000_000)).collect();
            let counts: Vec<f64> = by.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
            let mean = counts.iter().sum::<f64>() / counts.len() as f64;
            let variance = counts.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / counts.len() as f64;
            // Its standard deviation is sqrt(2 / 4000), 0.022. Of windows that are a part p of what is exact, 1 - p is left.
            let expected = 1.0 - window as f64 / (1u64 << EXACT_AFTER_BITS) as f64;
            assert!((variance / mean - expected).abs() < 0.08, "{window}: {}", variance / mean);
        }
    }

    #[test]
    fn the_rate_is_exact_over_a_long_time() {
        let mut process = Process::new(77, 1_488_095, SECOND);
        for stretch in [1u64, 2, 1000] {
            let n = stretch << EXACT_AFTER_BITS;
            assert_eq!(u128::from(process.at(n)), u128::from(n) * u128::from(SECOND) / 1_488_095);
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_times_on_every_machine() {
        assert_eq!(times(42, 1_000_000, 0, 5), [0, 27, 412, 660, 1483]);
        assert_eq!(
            times(42, 1_000_000, (1 << 24) - 2, 4),
            [16_777_209_392, 16_777_211_839, 16_777_216_000, 16_777_217_787]
        );
    }
}
