//! Laws for the length of frame *k* of a stream, in bytes of the buffer (without the FCS).

use crate::values::{hash, pick};
use std::sync::Arc;

/// How long frame *k* is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lengths {
    /// Each frame as long as its template (captures).
    Template,
    /// All the same.
    Fixed(u32),
    /// Item `k % len`, in this exact repeating order; a weighted mix becomes one of these by [`Lengths::mix`].
    List(Arc<[u32]>),
    /// Uniform in `min..=max`, a keyed hash of `k`.
    Random {
        /// Selects the sequence.
        key: u64,
        /// Shortest.
        min: u32,
        /// Longest.
        max: u32,
    },
}

impl Lengths {
    /// A mix in exact proportion: over each cycle every length comes exactly `weight` times, spread as evenly as
    /// weights allow (the simple IMIX 7:4:1 is not seven small frames in a row).
    pub fn mix(parts: &[(u32, u32)]) -> Lengths {
        let total: i64 = parts.iter().map(|&(_, weight)| i64::from(weight)).sum();
        let mut credit = vec![0i64; parts.len()];
        let mut order = Vec::new();
        // Smooth weighted round robin: all earn their weight, the richest is picked and pays the total.
        for _ in 0..total {
            for (c, &(_, weight)) in credit.iter_mut().zip(parts) {
                *c += i64::from(weight);
            }
            let mut best = 0;
            for i in 1..credit.len() {
                if credit[i] > credit[best] {
                    best = i;
                }
            }
            credit[best] -= total;
            order.push(parts[best].0);
        }
        Lengths::List(order.into())
    }

    /// Length of frame `k`, for a template of `template` bytes.
    pub fn at(&self, k: u64, template: u32) -> u32 {
        match self {
            Lengths::Template => template,
            Lengths::Fixed(length) => *length,
            Lengths::List(items) => match items.len() as u64 {
                0 => template,
                len => items[(k % len) as usize],
            },
            Lengths::Random { key, min, max } => min + pick(hash(*key, k), u64::from(max - min) + 1) as u32,
        }
    }

    /// The key that a seed went into, as in [`Values::key`](crate::Values::key).
    pub fn key(&self) -> Option<u64> {
        match self {
            Lengths::Template | Lengths::Fixed(_) | Lengths::List(_) => None,
            Lengths::Random { key, min: _, max: _ } => Some(*key),
        }
    }

    /// Shortest and longest, for a template of `template` bytes.
    pub fn bounds(&self, template: u32) -> (u32, u32) {
        match self {
            Lengths::Template => (template, template),
            Lengths::Fixed(length) => (*length, *length),
            Lengths::List(items) => (
                items.iter().copied().min().unwrap_or(template),
                items.iter().copied().max().unwrap_or(template),
            ),
            Lengths::Random { min, max, .. } => (*min, *max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_is_exact_over_each_cycle_and_spread_out() {
        let Lengths::List(order) = Lengths::mix(&[(60, 7), (590, 4), (1514, 1)]) else {
            panic!("not a list")
        };
        assert_eq!(order.len(), 12);
        assert_eq!(order.iter().filter(|&&l| l == 60).count(), 7);
        assert_eq!(order.iter().filter(|&&l| l == 590).count(), 4);
        assert!(order.windows(3).all(|w| w != [60, 60, 60]), "{order:?}");
    }

    #[test]
    fn random_lengths_stay_within_their_bounds_and_reach_both() {
        let law = Lengths::Random { key: 1, min: 60, max: 63 };
        let seen: std::collections::BTreeSet<u32> = (0..1000).map(|k| law.at(k, 0)).collect();
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [60, 61, 62, 63]);
    }
}
