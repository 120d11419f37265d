//! Logarithms, powers of two, cosines and normal deviates in integers: no floating point, whose results differ between
//! machines in their last bits, has a part in when a frame is due.

use crate::values::hash;
use std::f64::consts;

/// One, where 32 bits stand behind the point.
pub(super) const ONE: u64 = 1 << 32;
/// The natural logarithm of 2.
const LN_2: u64 = (consts::LN_2 * ONE as f64) as u64;
/// One over two pi.
const PER_TURN: u64 = (consts::FRAC_1_PI * (ONE / 2) as f64) as u64;
/// Parts of an octave in the table of logarithms.
const PARTS: usize = 1024;

/// log2(1 + i / 1024), 32 bits behind the point: digit by digit, each by squaring once.
const LOGARITHMS: [u64; PARTS + 1] = {
    let mut table = [0u64; PARTS + 1];
    let mut i = 0;
    while i <= PARTS {
        // 62 bits behind the point, from 1 up to 2.
        let mut x = (1u128 << 62) + ((i as u128) << 52);
        let mut log = 0u64;
        if x >= 2 << 62 {
            log = ONE;
        } else {
            let mut bit = 32;
            while bit > 0 {
                bit -= 1;
                x = (x * x) >> 62;
                if x >= 2 << 62 {
                    log |= 1 << bit;
                    x >>= 1;
                }
            }
        }
        table[i] = log;
        i += 1;
    }
    table
};

/// 2^(2^-k) for k from 1 to 32, 62 bits behind the point.
const ROOTS: [u64; 32] = {
    let mut roots = [0u64; 32];
    let mut root = 2u128 << 62;
    let mut k = 0;
    while k < roots.len() {
        root = (root << 62).isqrt();
        roots[k] = root as u64;
        k += 1;
    }
    roots
};

/// -log2(`u` / 2^64), 32 bits behind the point, from above 0 to 64. Between entries of the table the logarithm is taken for a
/// straight line, which is wrong by less than 2 of 10^7.
pub(super) fn bits_of(u: u64) -> u64 {
    let u = u.max(1);
    let zeros = u.leading_zeros();
    let mantissa = u << zeros;
    let part = ((mantissa >> 53) as usize) & (PARTS - 1);
    let within = (mantissa >> 21) & (ONE - 1);
    let (low, high) = (LOGARITHMS[part], LOGARITHMS[part + 1]);
    let log = low + (((high - low) * within) >> 32);
    (u64::from(zeros) + 1) * ONE - log
}

/// An exponential deviate of mean 1, 32 bits behind the point, of 64 random bits.
pub(super) fn exponential(random: u64) -> u64 {
    ((u128::from(bits_of(random)) * u128::from(LN_2)) >> 32) as u64
}

/// 2^x; both have 32 bits behind the point, and x is below 31.
pub(super) fn power_of_two(x: u64) -> u64 {
    let mut y = 1u128 << 62;
    for (k, &root) in ROOTS.iter().enumerate() {
        if x & (1 << (31 - k)) != 0 {
            y = (y * u128::from(root)) >> 62;
        }
    }
    ((y << (x >> 32).min(30)) >> 30) as u64
}

/// 1 - cos(2 pi k / of), 60 bits behind the point, for k up to `of`.
pub(super) fn versine(k: u64, of: u64) -> u64 {
    const PI: i128 = 3_622_009_729_038_561_421;
    // The cosine is even about half a turn.
    let k = k.min(of - k);
    // And 1 - cos(x) is 2 - (1 - cos(pi - x)).
    let (k, far) = if 4 * k > of { (of / 2 - k, true) } else { (k, false) };
    let x = 2 * PI * i128::from(k) / i128::from(of);
    let square = (x * x) >> 60;
    // x^2/2! - x^4/4! + x^6/6! - ...
    let (mut term, mut sum, mut n) = (square / 2, 0i128, 2);
    while term != 0 && n < 40 {
        sum += term;
        term = -((term * square) >> 60) / ((n + 1) * (n + 2));
        n += 2;
    }
    let sum = sum.max(0) as u64;
    if far { (2 << 60) - sum } else { sum }
}

/// `length` / (2 pi) times (1 - cos(2 pi k / of)): the area under a sine of height 1 and period `length` up to its part k.
pub(super) fn area_of_sine(length: u64, k: u64, of: u64) -> u128 {
    let product = (u128::from(length) * u128::from(versine(k, of))) >> 28;
    // Divided by 2^32 before it is multiplied, a nanosecond might go; there is room for all of it below 2^63.
    (product * u128::from(PER_TURN)) >> 32
}

/// A normal deviate of variance 1, 32 bits behind the point: the ones among 256 random bits, spread evenly between one number and
/// the next. Its kurtosis is wrong by 0.008.
pub(super) fn normal(key: u64, index: u64) -> i64 {
    let at = index.wrapping_mul(5);
    let ones: u32 = (0..4).map(|k| hash(key, at.wrapping_add(k)).count_ones()).sum();
    let spread = (hash(key, at.wrapping_add(4)) >> 32) as i64;
    // The mean of both is 128.5 and their variance 64 + 1/12, whose root is 8.00521.
    const PER_DEVIATION: i128 = 536_521_750;
    let from_mean = (i64::from(ones) << 32) + spread - (257 << 31);
    ((i128::from(from_mean) * PER_DEVIATION) >> 32) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: f64 = ONE as f64;

    #[test]
    fn logarithms_and_powers_are_those_of_floating_point() {
        for i in 0..100_000u64 {
            let u = hash(7, i) >> (i % 60);
            let exact = 64.0 - (u.max(1) as f64).log2();
            assert!((bits_of(u) as f64 / UNIT - exact).abs() < 3e-7, "{u}");
            let x = hash(8, i) >> 28;
            let (x, exact) = (x % (30 << 32), ((x % (30 << 32)) as f64 / UNIT).exp2());
            assert!((power_of_two(x) as f64 / UNIT / exact - 1.0).abs() < 1e-8, "{x}");
        }
        assert_eq!((bits_of(u64::MAX) >> 8, bits_of(1 << 63), bits_of(0)), (0, ONE, 64 * ONE));
    }

    #[test]
    fn the_versine_is_that_of_floating_point() {
        for k in 0..=1024u64 {
            let exact = 1.0 - (std::f64::consts::TAU * k as f64 / 1024.0).cos();
            assert!((versine(k, 1024) as f64 / (1u64 << 60) as f64 - exact).abs() < 1e-12, "{k}");
        }
        assert_eq!((versine(0, 1024), versine(1024, 1024)), (0, 0));
    }

    #[test]
    fn normal_deviates_have_the_moments_of_the_normal_distribution() {
        let all: Vec<f64> = (0..200_000).map(|i| normal(3, i) as f64 / UNIT).collect();
        let mean = |power: i32| all.iter().map(|z| z.powi(power)).sum::<f64>() / all.len() as f64;
        assert!(mean(1).abs() < 0.01 && (mean(2) - 1.0).abs() < 0.01, "{} {}", mean(1), mean(2));
        assert!(mean(3).abs() < 0.03 && (mean(4) - 3.0).abs() < 0.06, "{} {}", mean(3), mean(4));
    }

    #[test]
    fn the_same_bits_give_the_same_numbers_on_every_machine() {
        let found = [bits_of(0x1234_5678_9abc_def0), exponential(99 << 50), power_of_two(0x3_8000_0000)];
        assert_eq!(found, [16_380_065_667, 21_942_733_122, 48_592_007_999]);
        assert_eq!((normal(1, 2), versine(100, 1024)), (4_100_555_373, 210_310_391_684_415_249));
    }
}
