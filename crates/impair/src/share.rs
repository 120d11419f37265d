//! A share of frames: `1%`, `1/1000`; evenly spread, or drawn at random from a key.

use std::fmt;
use std::str::FromStr;

/// So many of so many frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    frames: u32,
    of: u32,
}

/// Why a text is none.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no share of frames: write 1%, 0.5% or 1/1000, more than none and at most all")]
pub struct BadShare(String);

impl Share {
    /// All frames.
    pub const ALL: Share = Share { frames: 1, of: 1 };

    /// Is frame `n` (from 0) among them? Evenly spread, the first one being among them: `frames` of each `of`.
    pub fn takes(self, n: u64) -> bool {
        u128::from(n) * u128::from(self.frames) % u128::from(self.of) < u128::from(self.frames)
    }

    /// Is the frame with this random number among them?
    pub fn draws(self, random: u64) -> bool {
        u128::from(random) * u128::from(self.of) < u128::from(self.frames) << 64
    }
}

impl FromStr for Share {
    type Err = BadShare;

    fn from_str(text: &str) -> Result<Share, BadShare> {
        let (frames, of) = lab::share(text).ok_or_else(|| BadShare(text.to_owned()))?;
        Ok(Share { frames, of })
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.of {
            1 => f.write_str("100%"),
            100 => write!(f, "{}%", self.frames),
            of => write!(f, "{}/{of}", self.frames),
        }
    }
}

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
    use proptest::prelude::*;

    fn share(text: &str) -> Share {
        text.parse().expect(text)
    }

    #[test]
    fn shares_are_read_as_written_and_nothing_else_is() {
        assert_eq!(
            (share("1%"), share("2.5%"), share("3/7")),
            (Share { frames: 1, of: 100 }, Share { frames: 25, of: 1000 }, Share { frames: 3, of: 7 })
        );
        assert_eq!([share("7%"), share("3/7"), Share::ALL].map(|s| s.to_string()), ["7%", "3/7", "100%"]);
        for bad in
            ["", "%", "0%", "101%", "1", "0.01", "1/0", "0/0", "-1%", "+1%", "1e3%", "1%%", "0.0000000001%"]
        {
            assert!(bad.parse::<Share>().is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn an_even_share_is_exact_at_any_moment(frames in 1..1000u32, more in 0..1000u32, n in 0..5000u64) {
            let share = Share { frames, of: frames + more };
            let taken = (0..n).filter(|&i| share.takes(i)).count() as u64;
            let exactly = n as f64 * f64::from(frames) / f64::from(frames + more);
            prop_assert!((taken as f64 - exactly).abs() <= 1.0 - 1e-9, "{} {}", taken, exactly);
            let of = u64::from(frames + more);
            let in_each = (n * of..n * of + of).filter(|&i| share.takes(i)).count();
            prop_assert_eq!(in_each, frames as usize);
        }
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
