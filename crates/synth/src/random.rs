//! Randomness without state: a keyed hash of (purpose, index), and the few distributions made from it.
//!
//! Not cryptographic. Everything random in this crate comes from here, so that one value never depends on how
//! many were drawn before it, and all arithmetic is plain IEEE 754 (`libm`, not the machine's own), so that a
//! seed means the same frames everywhere.

/// The key of one synthesis.
#[derive(Debug, Clone, Copy)]
pub struct Key(u64);

/// What a value is drawn for; two purposes never see the same values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum For {
    Application = 1,
    Client,
    ClientPort,
    Server,
    OneWay,
    Weight,
    Traits,
    Shape,
    Length,
    Start,
    Pace,
    Gap,
    Sequence,
    Payload,
    Identification,
    Name,
    NonFlow,
    Vlan,
    Pattern,
}

impl Key {
    pub fn new(seed: u64) -> Key {
        Key(mix(seed ^ 0x6e65_7464_796e_6f21))
    }

    /// The 64 bits that belong to number `index` of `purpose`.
    pub fn bits(self, purpose: For, index: u64) -> u64 {
        let stream = mix(self.0 ^ (purpose as u64).wrapping_mul(0xd6e8_feb8_6659_fd93));
        mix(stream.wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    /// Uniform over [0, 1).
    pub fn unit(self, purpose: For, index: u64) -> f64 {
        fraction(self.bits(purpose, index))
    }

    /// Exponential with mean 1.
    pub fn exponential(self, purpose: For, index: u64) -> f64 {
        -libm::log(1.0 - self.unit(purpose, index))
    }

    /// Lognormal: `exp` of a normal variate with mean `mu` and standard deviation `sigma` (Box-Muller).
    pub fn lognormal(self, purpose: For, index: u64, mu: f64, sigma: f64) -> f64 {
        let radius = libm::sqrt(2.0 * self.exponential(purpose, 2 * index));
        let angle = core::f64::consts::TAU * self.unit(purpose, 2 * index + 1);
        libm::exp(mu + sigma * radius * libm::cos(angle))
    }

    /// An index below `count`, small ones favoured as a Pareto law does: the first of 60 gets about a fifth.
    pub fn skewed(self, purpose: For, index: u64, count: u32) -> u32 {
        let position = libm::pow(self.unit(purpose, index), 2.5);
        ((position * f64::from(count)) as u32).min(count.saturating_sub(1))
    }

    /// Fills `out` with bytes that follow from `index`.
    pub fn fill(self, purpose: For, index: u64, out: &mut [u8]) {
        let mut state = self.bits(purpose, index);
        for chunk in out.chunks_mut(8) {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let word = mix(state).to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }

    /// Fills `out` with lower-case letters that follow from `index`.
    pub fn letters(self, purpose: For, index: u64, out: &mut [u8]) {
        self.fill(purpose, index, out);
        for byte in out {
            *byte = b'a' + *byte % 26;
        }
    }
}

/// Random bits as a number in [0, 1): the upper 53 of them, which is what a `f64` can hold.
pub fn fraction(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

/// A bijection on 64 bits that scatters every input bit over all output bits (a multiply-xorshift finaliser).
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_have_the_means_they_are_named_for() {
        let key = Key::new(7);
        let mean = |f: &dyn Fn(u64) -> f64| (0..100_000).map(f).sum::<f64>() / 100_000.0;
        assert!((mean(&|i| key.unit(For::Gap, i)) - 0.5).abs() < 0.005);
        assert!((mean(&|i| key.exponential(For::Gap, i)) - 1.0).abs() < 0.02);
        // The mean of a lognormal is exp(mu + sigma^2 / 2).
        assert!((mean(&|i| key.lognormal(For::Gap, i, 1.0, 0.5)) - 3.0802).abs() < 0.03);
    }

    #[test]
    fn seeds_and_purposes_do_not_share_values() {
        let (a, b) = (Key::new(1), Key::new(2));
        assert_ne!(a.bits(For::Gap, 5), b.bits(For::Gap, 5));
        assert_ne!(a.bits(For::Gap, 5), a.bits(For::Start, 5));
        assert_ne!(a.bits(For::Gap, 5), a.bits(For::Gap, 6));
    }
}
