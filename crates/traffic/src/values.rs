//! Laws by which a field varies: a value for every step *j*, with no state.
//!
//! Arithmetic is modulo 2^64; the field keeps the low bits that fit it. The keyed hash is chosen so that the kernel's
//! executor can compute the same with 64-bit multiplication, shifts and xors alone.

use std::sync::Arc;

/// The value of a varying field as a function of its step number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Values {
    /// `start + step * (j % count)`; `count` 0 means 2^64, that is, never wrapping.
    Range {
        /// Value at step 0.
        start: u64,
        /// Added at each step (a negative step is its two's complement).
        step: u64,
        /// Number of values before the first one comes again.
        count: u64,
    },
    /// Item `j % len`.
    List(Arc<[u64]>),
    /// `start + step * pick(hash(key, j), count)`: uniform, the same for the same key.
    Random {
        /// Selects the sequence; the seed of the run and the field's place go into it.
        key: u64,
        /// Lowest value.
        start: u64,
        /// Distance between neighbouring values.
        step: u64,
        /// How many values there are to pick from; 0 means 2^64.
        count: u64,
    },
    /// `start + step * shuffle(key, j, bits)`: each of 2^`bits` values once, in an order of chance, then again in the same.
    Shuffled {
        /// Selects the order.
        key: u64,
        /// Lowest value.
        start: u64,
        /// Distance between neighbouring values.
        step: u64,
        /// How many values there are, as a power of two: 1 to 63.
        bits: u8,
    },
    /// A uniformly picked item.
    RandomList {
        /// Selects the sequence.
        key: u64,
        /// The items to pick from.
        items: Arc<[u64]>,
    },
    /// Number `j % count` of several runs that stand one behind the other, as in `[1..79, 81..442]`.
    Runs(Runs),
    /// A uniformly picked number of such runs.
    RandomRuns {
        /// Selects the sequence.
        key: u64,
        /// The runs to pick from.
        runs: Runs,
    },
}

/// Runs of numbers, one behind the other. There is at least one number in them, and none of the runs is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runs(Arc<[Run]>);

/// One of several runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Numbers in it and in all runs before it.
    pub end: u64,
    /// With `step` times a place among all numbers added: the number at that place, if it is of this run.
    pub base: u64,
    /// From one number to the next.
    pub step: u64,
}

impl Runs {
    /// The most numbers that runs have together. (Kernels find a run by the sign of a difference of two places.)
    pub const MOST: u64 = 1 << 63;

    /// Runs of a first number, a step and a count; those without a number are left out. `None` without any number, and of more
    /// than [`Runs::MOST`].
    pub fn new(runs: impl IntoIterator<Item = (u64, u64, u64)>) -> Option<Runs> {
        let mut before = 0u64;
        let mut all = Vec::new();
        for (start, step, count) in runs.into_iter().filter(|(.., count)| *count > 0) {
            let base = start.wrapping_sub(step.wrapping_mul(before));
            before = before.checked_add(count).filter(|end| *end <= Runs::MOST)?;
            all.push(Run { end: before, base, step });
        }
        (!all.is_empty()).then(|| Runs(all.into()))
    }

    /// All of them.
    pub fn all(&self) -> &[Run] {
        &self.0
    }

    /// Each by its first number, step and count.
    pub fn each(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        let before = std::iter::once(0).chain(self.0.iter().map(|run| run.end));
        self.0.iter().zip(before).map(|(run, before)| {
            (run.base.wrapping_add(run.step.wrapping_mul(before)), run.step, run.end - before)
        })
    }

    /// Numbers in all of them.
    pub fn count(&self) -> u64 {
        self.0.last().map_or(0, |run| run.end)
    }

    /// The number at a place, which is less than [`Runs::count`].
    pub fn at(&self, place: u64) -> u64 {
        let run = self.0.partition_point(|run| run.end <= place);
        self.0.get(run).map_or(0, |run| run.base.wrapping_add(run.step.wrapping_mul(place)))
    }
}

impl Values {
    /// The value at step `j`.
    pub fn at(&self, j: u64) -> u64 {
        match self {
            Values::Range { start, step, count } => {
                let turn = if *count == 0 { j } else { j % count };
                start.wrapping_add(step.wrapping_mul(turn))
            }
            Values::List(items) => match items.len() as u64 {
                0 => 0,
                len => items[(j % len) as usize],
            },
            Values::Random { key, start, step, count } => {
                start.wrapping_add(step.wrapping_mul(pick(hash(*key, j), *count)))
            }
            Values::Shuffled { key, start, step, bits } => {
                start.wrapping_add(step.wrapping_mul(Shuffle::new(*key, *bits).at(j)))
            }
            Values::RandomList { key, items } => match items.len() as u64 {
                0 => 0,
                len => items[pick(hash(*key, j), len) as usize],
            },
            Values::Runs(runs) => runs.at(j.checked_rem(runs.count()).unwrap_or(0)),
            Values::RandomRuns { key, runs } => runs.at(pick(hash(*key, j), runs.count())),
        }
    }

    /// Steps until the values repeat; `None` for random ones and for those that never do.
    pub fn period(&self) -> Option<u64> {
        match self {
            Values::Range { count: 0, .. } => None,
            Values::Range { count, .. } => Some(*count),
            Values::List(items) => Some(items.len() as u64),
            Values::Shuffled { bits, .. } => Some(1 << (bits & 63)),
            Values::Runs(runs) => Some(runs.count()),
            Values::Random { .. } | Values::RandomList { .. } | Values::RandomRuns { .. } => None,
        }
    }

    /// The key that a seed went into; `None` of values that follow from the step alone.
    ///
    /// All members of all laws are named: a law or a key that is added does not compile before it is decided here, because
    /// a result names the seed of its run only if a law has a key.
    pub fn key(&self) -> Option<u64> {
        match self {
            Values::Range { start: _, step: _, count: _ } | Values::List(_) | Values::Runs(_) => None,
            Values::Random { key, start: _, step: _, count: _ }
            | Values::Shuffled { key, start: _, step: _, bits: _ }
            | Values::RandomList { key, items: _ }
            | Values::RandomRuns { key, runs: _ } => Some(*key),
        }
    }

    /// How many different values there can be at most (saturating).
    pub fn distinct(&self) -> u64 {
        match self {
            Values::Range { count, .. } | Values::Random { count, .. } => {
                if *count == 0 {
                    u64::MAX
                } else {
                    *count
                }
            }
            Values::Shuffled { bits, .. } => 1 << (bits & 63),
            Values::List(items) | Values::RandomList { items, .. } => items.len() as u64,
            Values::Runs(runs) | Values::RandomRuns { runs, .. } => runs.count(),
        }
    }
}

/// Mixes `key` and `index` into 64 well-spread bits (the finaliser of MurmurHash3 over a Weyl sequence).
pub fn hash(key: u64, index: u64) -> u64 {
    let mut x = index.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ key;
    x = (x ^ (x >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    x = (x ^ (x >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ (x >> 33)
}

/// An order of 2^n numbers, of which none comes twice: each of its steps can be undone (a number is added by exclusive or,
/// multiplied by an odd one, or its upper bits are added to its lower ones), so that all together map each number to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shuffle {
    /// Added first.
    pub key: u64,
    /// Multipliers, odd.
    pub factors: [u64; 3],
    /// Bits by which the upper part is moved down: half of them, at least one.
    pub shift: u32,
    /// All bits of a number.
    pub mask: u64,
}

impl Shuffle {
    /// The order that a key selects.
    pub fn new(key: u64, bits: u8) -> Shuffle {
        let bits = u32::from(bits).clamp(1, 63);
        let mask = (1 << bits) - 1;
        let factors = [1, 2, 3].map(|round| (hash(key, round) | 1) & mask);
        Shuffle { key: hash(key, 4) & mask, factors, shift: bits.div_ceil(2), mask }
    }

    /// The number at place `j`, modulo how many there are.
    pub fn at(&self, j: u64) -> u64 {
        self.factors.iter().fold((j & self.mask) ^ self.key, |x, factor| {
            let x = x.wrapping_mul(*factor) & self.mask;
            x ^ x >> self.shift
        })
    }
}

/// Scales 64 hash bits to `0..count` without division or modulo bias worth measuring; 0 means the full range.
pub fn pick(hash: u64, count: u64) -> u64 {
    if count == 0 { hash } else { ((u128::from(hash) * u128::from(count)) >> 64) as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_wraps_at_its_count_and_may_run_down() {
        let up = Values::Range { start: 10, step: 3, count: 4 };
        assert_eq!((0..6).map(|j| up.at(j)).collect::<Vec<_>>(), [10, 13, 16, 19, 10, 13]);
        let down = Values::Range { start: 2, step: 1u64.wrapping_neg(), count: 3 };
        assert_eq!((0..4).map(|j| down.at(j)).collect::<Vec<_>>(), [2, 1, 0, 2]);
    }

    #[test]
    fn shuffled_values_come_once_each_and_in_no_order_that_is_seen() {
        for (bits, step) in [(1, 1), (2, 3), (7, 1), (16, 1), (20, 256)] {
            let count = 1u64 << bits;
            let law = Values::Shuffled { key: 7, start: 5, step, bits };
            assert_eq!((law.period(), law.distinct()), (Some(count), count));
            let values: Vec<u64> = (0..count).map(|j| law.at(j)).collect();
            let mut sorted = values.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..count).map(|n| 5 + n * step).collect::<Vec<_>>());
            assert!((0..count).all(|j| law.at(j + count) == values[j as usize]));
            let other = Values::Shuffled { key: 8, start: 5, step, bits };
            if bits > 6 {
                assert!((0..count).any(|j| other.at(j) != law.at(j)));
                // Of neighbours in the order few are neighbours in value, and half go down.
                let near = values.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) <= 16 * step).count();
                let down = values.windows(2).filter(|pair| pair[0] > pair[1]).count();
                assert!(near as f64 <= values.len() as f64 * 64.0 / count as f64 + 64.0, "{near} of {count}");
                assert!((0.4..0.6).contains(&(down as f64 / count as f64)), "{down} of {count}");
            }
        }
    }

    #[test]
    fn runs_stand_one_behind_the_other() {
        let runs = Runs::new([(1, 1, 3), (9, 0, 0), (20, 5, 2), (7, 1u64.wrapping_neg(), 3)]).expect("runs");
        let law = Values::Runs(runs.clone());
        assert_eq!((0..9).map(|j| law.at(j)).collect::<Vec<_>>(), [1, 2, 3, 20, 25, 7, 6, 5, 1]);
        assert_eq!((law.period(), law.distinct()), (Some(8), 8));
        assert_eq!(
            runs.each().collect::<Vec<_>>(),
            [(1, 1, 3), (20, 5, 2), (7, 1u64.wrapping_neg(), 3)],
            "what they were made of"
        );
        let random = Values::RandomRuns { key: 3, runs };
        let mut seen: Vec<u64> = (0..1000).map(|j| random.at(j)).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, [1, 2, 3, 5, 6, 7, 20, 25]);
        assert_eq!((Runs::new([]), Runs::new([(1, 1, 0)])), (None, None));
        assert!(
            Runs::new([(0, 1, Runs::MOST)]).is_some_and(|runs| runs.at(Runs::MOST - 1) == Runs::MOST - 1)
        );
        assert_eq!(Runs::new([(0, 1, Runs::MOST), (0, 1, 1)]), None);
    }

    #[test]
    fn random_values_are_uniform_within_five_sigma_and_repeat_for_the_same_key() {
        let law = Values::Random { key: 7, start: 100, step: 1, count: 10 };
        let mut seen = [0u32; 10];
        for j in 0..100_000 {
            let value = law.at(j);
            assert_eq!(value, law.at(j));
            seen[(value - 100) as usize] += 1;
        }
        // 10,000 expected, sigma = sqrt(100000 * 0.1 * 0.9) = 95.
        assert!(seen.iter().all(|&count| count.abs_diff(10_000) < 475), "{seen:?}");
        let other = Values::Random { key: 8, start: 100, step: 1, count: 10 };
        assert!((0..100).any(|j| law.at(j) != other.at(j)));
    }
}
