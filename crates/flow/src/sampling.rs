//! Which flows are metered, where that is one in so many: hash-based flow selection (RFC 7014, 5.3).
//!
//! A flow is taken by a hash of its key, so all of its packets are, or none is, and with the same seed every probe takes the same
//! ones. Both directions of a conversation have the same hash.

use crate::key::Key;

/// One flow in so many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flows {
    seed: u64,
    one_in: u32,
}

impl Default for Flows {
    fn default() -> Flows {
        Flows::all()
    }
}

impl Flows {
    /// Every flow.
    pub fn all() -> Flows {
        Flows::one_in(1, 0)
    }

    /// One in so many; which ones, the seed says.
    pub fn one_in(one_in: u32, seed: u64) -> Flows {
        Flows { seed, one_in: one_in.max(1) }
    }

    /// Are some left out?
    pub fn are_sampled(&self) -> bool {
        self.one_in > 1
    }

    /// Where the hash begins (`hashInitialiserValue`).
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Flows whose hash is not above this are taken (`hashSelectedRangeMax`).
    pub fn highest(&self) -> u64 {
        u64::MAX / u64::from(self.one_in)
    }

    /// Is the flow of this key taken?
    #[inline]
    pub fn take(&self, key: &Key) -> bool {
        self.one_in == 1 || hash(key, self.seed) <= self.highest()
    }
}

/// Of 64 bits. It is what it is on every machine and in every version, so that probes agree; it is not one that nobody could find
/// many flows for that are all taken. A probe where packets arrive takes the same ones as one where they leave.
fn hash(key: &Key, seed: u64) -> u64 {
    key.either_direction().canonical().words().into_iter().fold(mix(seed), |hash, word| mix(hash ^ word))
}

/// Each bit of the result hangs on each of what is given: the last steps of `SplitMix64` (Steele, Lea and Flood, 2014).
fn mix(bits: u64) -> u64 {
    let bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Parts;
    use std::net::Ipv4Addr;

    /// Keys that differ little.
    fn keys() -> impl Iterator<Item = Key> {
        (0..100_000u32).map(|number| {
            let addresses = [Ipv4Addr::from_bits(number >> 8).into(), Ipv4Addr::LOCALHOST.into()];
            let ports = [number as u16 & 0xff, 80];
            Key::new(Parts { addresses, ports, protocol: 6, tos: 0, vlan: None }).expect("one version")
        })
    }

    #[test]
    fn one_in_so_many_is_taken() {
        for one_in in [2u32, 3, 10, 100, 1000] {
            for seed in [0, 1, u64::MAX] {
                let flows = Flows::one_in(one_in, seed);
                let taken = keys().filter(|key| flows.take(key)).count() as f64;
                let wanted = 100_000.0 / f64::from(one_in);
                // Five standard deviations of chance.
                assert!((taken - wanted).abs() < 5.0 * wanted.sqrt(), "{one_in} {seed}: {taken}");
            }
        }
        assert!(keys().all(|key| Flows::all().take(&key)));
    }

    #[test]
    fn the_same_ones_are_taken_by_the_same_seed_in_both_directions() {
        let (one, same, other) = (Flows::one_in(4, 7), Flows::one_in(4, 7), Flows::one_in(4, 8));
        let mut differ = 0;
        for key in keys() {
            assert_eq!(one.take(&key), same.take(&key.reversed()));
            assert_eq!(one.take(&key), same.take(&key.leaving()));
            differ += u32::from(one.take(&key) != other.take(&key));
        }
        // By chance 3/8 of them.
        assert!((30_000..45_000).contains(&differ), "{differ}");
        // Of a coarser choice all are in a finer one.
        let fewer = Flows::one_in(40, 7);
        assert!(keys().filter(|key| fewer.take(key)).all(|key| one.take(&key)));
    }

    #[test]
    fn the_hash_is_the_same_in_every_version() {
        let key = keys().next().expect("a key");
        assert_eq!(mix(0), 0xe220_a839_7b1d_cdaf);
        // By the same rule in another language.
        assert_eq!(hash(&key, 1), 12_050_809_223_996_775_286);
    }
}
