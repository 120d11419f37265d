//! Fractions in lowest terms: rates are frames in nanoseconds, and weights are shares of a whole.

use std::ops::Rem;

/// The greatest common divisor; of zero and another number that number.
pub fn gcd<N: Copy + Default + PartialEq + Rem<Output = N>>(mut a: N, mut b: N) -> N {
    while b != N::default() {
        (a, b) = (b, a % b);
    }
    a
}

/// The least common multiple, where it fits.
pub(crate) fn lcm(a: u64, b: u64) -> Option<u64> {
    (a / gcd(a, b).max(1)).checked_mul(b)
}

/// A fraction in lowest terms, both parts in 64 bits. More than 64 bits are rates beyond any clock and any run: of such the
/// lowest bits are lost. A part that is lost in whole is zero, as is one of a fraction that had it.
pub fn reduced(over: u128, under: u128) -> (u64, u64) {
    let common = gcd(over, under).max(1);
    let (over, under) = (over / common, under / common);
    let surplus = (over.max(under) >> 64).checked_ilog2().map_or(0, |bit| bit + 1);
    ((over >> surplus) as u64, (under >> surplus) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn zero_has_every_divisor() {
        assert_eq!((gcd(0, 6_u32), gcd(6_u32, 0), gcd(0_u32, 0)), (6, 6, 0));
        assert_eq!((lcm(0, 6), lcm(4, 6), lcm(u64::MAX, u64::MAX - 1)), (Some(0), Some(12), None));
        assert_eq!((reduced(0, 5), reduced(5, 0), reduced(0, 0)), ((0, 1), (1, 0), (0, 0)));
    }

    proptest! {
        #[test]
        fn what_fits_is_the_same_fraction_in_lowest_terms(a in 1u64.., b in 1u64.., factor in 1u64..) {
            let (over, under) = reduced(u128::from(a) * u128::from(factor), u128::from(b) * u128::from(factor));
            prop_assert_eq!(u128::from(over) * u128::from(b), u128::from(under) * u128::from(a));
            // Whoever divides both divides no more than one.
            prop_assert!((2..1000).all(|by| over % by != 0 || under % by != 0));
            prop_assert_eq!(gcd(over, under), 1);
        }

        #[test]
        fn what_does_not_fit_keeps_its_upper_bits(a in (u128::MAX >> 60).., b in (u128::MAX >> 60)..) {
            let (over, under) = reduced(a, b);
            let (exact, kept) = (a as f64 / b as f64, over as f64 / under as f64);
            // At least 63 of the greater part's bits are left, and 5 of the smaller's.
            let error = 1.0 / (over.min(under) as f64);
            prop_assert!((kept / exact - 1.0).abs() <= error + 1e-12, "{} {}", exact, kept);
        }
    }
}
