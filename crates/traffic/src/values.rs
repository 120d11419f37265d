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
    /// A uniformly picked item.
    RandomList {
        /// Selects the sequence.
        key: u64,
        /// The items to pick from.
        items: Arc<[u64]>,
    },
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
            Values::RandomList { key, items } => match items.len() as u64 {
                0 => 0,
                len => items[pick(hash(*key, j), len) as usize],
            },
        }
    }

    /// Steps until the values repeat; `None` for random ones and for those that never do.
    pub fn period(&self) -> Option<u64> {
        match self {
            Values::Range { count: 0, .. } => None,
            Values::Range { count, .. } => Some(*count),
            Values::List(items) => Some(items.len() as u64),
            Values::Random { .. } | Values::RandomList { .. } => None,
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
            Values::List(items) | Values::RandomList { items, .. } => items.len() as u64,
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
