//! Numbers as value and count: gathered in bins of bounded number, kept with their count and sum, and dealt out again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How often each value occurs.
///
/// A measured one has up to four values for each bin: the least and the most that were seen, and what lies around the mean of
/// the rest, so that count and sum are exact.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Distribution(pub BTreeMap<u64, u64>);

impl Distribution {
    /// Are there no values?
    pub fn is_empty(&self) -> bool {
        self.0.values().all(|&count| count == 0)
    }

    /// How many values there are.
    pub fn count(&self) -> u64 {
        self.0.values().fold(0, |sum, &count| sum.saturating_add(count))
    }

    /// Their sum.
    pub fn sum(&self) -> u128 {
        self.0.iter().map(|(&value, &count)| u128::from(value) * u128::from(count)).sum()
    }

    /// The largest.
    pub fn most(&self) -> u64 {
        self.0.keys().next_back().copied().unwrap_or(0)
    }

    /// Adds the values of another.
    pub fn merge(&mut self, other: &Distribution) {
        for (&value, &count) in &other.0 {
            let sum = self.0.entry(value).or_insert(0);
            *sum = sum.saturating_add(count);
        }
    }

    /// The least value that `share` (0 to 1) of the values do not exceed.
    pub fn quantile(&self, share: f64) -> u64 {
        let wanted = share * self.count() as f64;
        let mut below = 0.0;
        for (&value, &count) in &self.0 {
            below += count as f64;
            if below >= wanted && count > 0 {
                return value;
            }
        }
        self.most()
    }
}

/// How values are sorted into bins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scale {
    /// Frame sizes, the FCS counted: 16 to the octave from 64 on. No bin crosses a bound of RFC 2819's size classes.
    Sizes,
    /// Frames of a conversation: single up to 16, then two to the octave.
    Frames,
    /// Nanoseconds: four to the octave.
    Times,
}

impl Scale {
    pub(super) fn bin(self, value: u64) -> u32 {
        match self {
            Scale::Sizes => 2 * log_bin(value, 64, 4) + u32::from(value > 1518),
            Scale::Frames => log_bin(value, 16, 1),
            Scale::Times => log_bin(value, 4, 2),
        }
    }
}

/// Values up to `single` (a power of two) have bins of their own; beyond, each octave has 2^`bits`.
fn log_bin(value: u64, single: u64, bits: u32) -> u32 {
    if value <= single {
        return value as u32;
    }
    let octave = value.ilog2();
    let within = (value >> (octave - bits)) as u32 & ((1 << bits) - 1);
    single as u32 + 1 + ((octave - single.ilog2()) << bits) + within
}

/// Values of one bin.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Bin {
    least: u64,
    most: u64,
    count: u64,
    sum: u128,
}

impl Bin {
    pub(super) fn add(&mut self, value: u64) {
        if self.count == 0 {
            (self.least, self.most) = (value, value);
        }
        self.least = self.least.min(value);
        self.most = self.most.max(value);
        self.count += 1;
        self.sum += u128::from(value);
    }

    fn merge(&mut self, other: &Bin) {
        if self.count == 0 {
            *self = *other;
        } else if other.count > 0 {
            self.least = self.least.min(other.least);
            self.most = self.most.max(other.most);
            self.count += other.count;
            self.sum += other.sum;
        }
    }

    /// Its values, as many as there were and with the same sum.
    pub(super) fn spread(&self, into: &mut Distribution) {
        let mut put = |value: u64, count: u64| {
            if count > 0 {
                *into.0.entry(value).or_insert(0) += count;
            }
        };
        if self.count < 2 {
            return put(self.least, self.count);
        }
        put(self.least, 1);
        put(self.most, 1);
        let (rest, sum) = (self.count - 2, self.sum - u128::from(self.least) - u128::from(self.most));
        if rest > 0 {
            let (mean, above) = (sum / u128::from(rest), (sum % u128::from(rest)) as u64);
            put(mean as u64, rest - above);
            put(mean as u64 + 1, above);
        }
    }
}

/// Values on their way into a [`Distribution`].
#[derive(Debug, Clone)]
pub(super) struct Bins {
    scale: Scale,
    bins: BTreeMap<u32, Bin>,
}

impl Bins {
    pub(super) fn new(scale: Scale) -> Bins {
        Bins { scale, bins: BTreeMap::new() }
    }

    pub(super) fn add(&mut self, value: u64) {
        self.bins.entry(self.scale.bin(value)).or_default().add(value);
    }

    pub(super) fn merge(&mut self, other: &Bins) {
        for (&bin, values) in &other.bins {
            self.bins.entry(bin).or_default().merge(values);
        }
    }

    pub(super) fn distribution(&self) -> Distribution {
        let mut all = Distribution::default();
        self.bins.values().for_each(|bin| bin.spread(&mut all));
        all
    }
}

/// Deals the values of a distribution out in an order of chance, each as often as it occurs; then again from the beginning.
#[derive(Debug, Clone, Default)]
pub(super) struct Deck {
    full: Vec<(u64, u64)>,
    left: Vec<u64>,
    total: u64,
}

impl Deck {
    pub(super) fn new(distribution: &Distribution) -> Deck {
        let full = distribution.0.iter().filter(|(_, count)| **count > 0).map(|(&v, &c)| (v, c)).collect();
        Deck { full, left: Vec::new(), total: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.full.is_empty()
    }

    /// Starts from the beginning if nothing is left.
    fn refill(&mut self) {
        if self.total == 0 {
            self.left = self.full.iter().map(|&(_, count)| count).collect();
            self.total = self.left.iter().fold(0u64, |sum, &count| sum.saturating_add(count));
        }
    }

    /// The least value of a full deck.
    pub(super) fn least(&self) -> Option<u64> {
        self.full.first().map(|(value, _)| *value)
    }

    /// The least value that is left.
    pub(super) fn deal_least(&mut self) -> Option<u64> {
        self.refill();
        let (left, &(value, _)) = self.left.iter_mut().zip(&self.full).find(|(left, _)| **left > 0)?;
        *left -= 1;
        self.total -= 1;
        Some(value)
    }

    /// The next value, chosen by random `bits`; `None` if there is none at all.
    pub(super) fn deal(&mut self, bits: u64) -> Option<u64> {
        self.refill();
        // The upper half of the product: uniform below `total`.
        let mut place = ((u128::from(bits) * u128::from(self.total)) >> 64) as u64;
        for (left, &(value, _)) in self.left.iter_mut().zip(&self.full) {
            if place < *left {
                *left -= 1;
                self.total -= 1;
                return Some(value);
            }
            place -= *left;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn count_sum_and_ends_are_exact(values in proptest::collection::vec(0u64..10_000_000_000, 1..300)) {
            for scale in [Scale::Sizes, Scale::Frames, Scale::Times] {
                let mut bins = Bins::new(scale);
                values.iter().for_each(|&value| bins.add(value));
                let all = bins.distribution();
                prop_assert_eq!(all.count(), values.len() as u64);
                prop_assert_eq!(all.sum(), values.iter().map(|&v| u128::from(v)).sum::<u128>());
                prop_assert_eq!(all.most(), *values.iter().max().unwrap());
                prop_assert_eq!(all.0.keys().next(), values.iter().min());
            }
        }

        #[test]
        fn bins_are_in_the_order_of_values(a in any::<u64>(), b in any::<u64>()) {
            for scale in [Scale::Sizes, Scale::Frames, Scale::Times] {
                prop_assert!(a > b || scale.bin(a) <= scale.bin(b));
            }
        }

        #[test]
        fn a_deck_deals_each_value_as_often_as_it_occurs(values in proptest::collection::vec(0u64..50, 1..100), seed: u64) {
            let mut counts = Distribution::default();
            values.iter().for_each(|&value| *counts.0.entry(value).or_insert(0) += 1);
            let mut deck = Deck::new(&counts);
            for pass in 0..2u64 {
                let mut dealt = Distribution::default();
                for n in 0..values.len() as u64 {
                    let bits = crate::random::Key::new(seed).bits(crate::random::For::Length, pass << 32 | n);
                    *dealt.0.entry(deck.deal(bits).unwrap()).or_insert(0) += 1;
                }
                prop_assert_eq!(&dealt, &counts);
            }
        }
    }

    #[test]
    fn no_bin_of_sizes_crosses_a_size_class() {
        for bound in [63, 64, 127, 255, 511, 1023, 1518] {
            assert_ne!(Scale::Sizes.bin(bound), Scale::Sizes.bin(bound + 1), "{bound}");
        }
    }
}
