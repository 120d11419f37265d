//! Random numbers that follow from a key, for shares of frames that are drawn.

/// A random number that follows from a key and a number (the finaliser of splitmix64, twice).
pub fn random(key: u64, n: u64) -> u64 {
    let mix = |mut x: u64| {
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    };
    mix(mix(key.wrapping_add(0x9e37_79b9_7f4a_7c15)) ^ n.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

#[cfg(test)]
mod tests {
    use super::*;
    use traffic::faults::Share;

    fn share(text: &str) -> Share {
        text.parse().expect(text)
    }

    #[test]
    fn a_drawn_share_is_about_right_and_the_same_each_time() {
        let of = |key: u64, text: &str| (0..100_000).filter(|&n| share(text).draws(random(key, n))).count();
        for (text, about) in [("1%", 1000), ("30%", 30_000), ("1/1000", 100)] {
            let drawn = of(7, text);
            let deviation = (about as f64).sqrt();
            assert!((drawn as f64 - f64::from(about)).abs() < 5.0 * deviation, "{text}: {drawn}");
            assert_eq!(drawn, of(7, text));
            assert_ne!(drawn, of(8, text));
        }
        assert_eq!(of(1, "100%"), 100_000);
    }
}
