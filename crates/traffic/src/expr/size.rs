//! Frame sizes as people write them: `64`, `64,1518`, `64..1518`, `random(64..1518)`, `imix`, `64:7,1518:1`, `aaafg`.
//!
//! A size counts the frame check sequence, as RFC 2544 does: a 64-byte frame is 60 bytes in a buffer.

use super::error::nearest;
use crate::lengths::Lengths;
use std::str::FromStr;

/// Bytes of the frame check sequence: counted in a size, never in a buffer.
pub const FCS: u32 = 4;
/// Largest size taken: a full IP packet with generous headers.
pub const MAX_SIZE: u32 = 65_535 + 512;
/// Items of a list of sizes, or the sum of a mix's weights, at most.
const MAX_ITEMS: u32 = 1 << 16;
/// Different sizes of a mix, at most: laying out the order takes their number times the weights' sum.
const MAX_PARTS: usize = 256;
/// The simple Internet mix: 7 small, 4 middle, 1 large.
const IMIX: &[(u32, u32)] = &[(64, 7), (594, 4), (1518, 1)];
/// RFC 6985 section 4: each letter of an "IMIX genome" is a size.
const GENOME: &[(char, u32)] = &[
    ('a', 64),
    ('b', 128),
    ('c', 256),
    ('d', 512),
    ('e', 1024),
    ('f', 1280),
    ('g', 1518),
    ('h', 2112),
    ('i', 9000),
];

/// How large frames are, with their frame check sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Size {
    /// All the same.
    Fixed(u32),
    /// In this order, again and again.
    List(Vec<u32>),
    /// Uniformly random, both ends included.
    Random {
        /// The smallest, in bytes.
        min: u32,
        /// The largest, in bytes.
        max: u32,
    },
    /// Sizes with weights, in exact proportion over each cycle.
    Mix(Vec<(u32, u32)>),
}

/// Why a text is not a size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a frame size: {why}; write 64, 64,512,1518, 64..1518 (each in turn), random(64..1518), imix, 64:7,1518:1 (size:weight) or letters a to i (RFC 6985)"
)]
pub struct BadSize {
    text: String,
    why: &'static str,
}

impl FromStr for Size {
    type Err = BadSize;

    fn from_str(text: &str) -> Result<Size, BadSize> {
        let bad = |why| BadSize { text: text.chars().take(60).collect(), why };
        let trimmed = text.trim();
        let lower = trimmed.to_ascii_lowercase();
        if trimmed.len() > MAX_ITEMS as usize {
            return Err(bad("it is too long"));
        }
        let number = |word: &str| {
            let value: u32 = word.trim().parse().map_err(|_| bad("a number of bytes was expected"))?;
            if (1..=MAX_SIZE).contains(&value) { Ok(value) } else { Err(bad("sizes go from 1 to 66047")) }
        };
        let range = |text: &str| {
            let (min, max) = text.split_once("..").ok_or_else(|| bad("a range a..b was expected"))?;
            let (min, max) = (number(min)?, number(max)?);
            if min <= max { Ok((min, max)) } else { Err(bad("the range's end is below its start")) }
        };
        if lower == "imix" {
            return Ok(Size::Mix(IMIX.to_vec()));
        }
        if let Some(inner) = lower.strip_prefix("random(").and_then(|rest| rest.strip_suffix(')')) {
            let (min, max) = range(inner)?;
            return Ok(Size::Random { min, max });
        }
        if let Some((called, _)) = lower.split_once('(') {
            return Err(match nearest(called, ["random"].into_iter()) {
                Some("random") if called != "random" => {
                    bad("there are no such brackets (did you mean `random`?)")
                }
                _ => bad("the one thing with brackets is random(a..b)"),
            });
        }
        if !lower.is_empty() && lower.bytes().all(|c| c.is_ascii_lowercase()) {
            let letters =
                lower.chars().map(|c| GENOME.iter().find(|(letter, _)| *letter == c).map(|(_, n)| *n));
            let sizes: Option<Vec<u32>> = letters.collect();
            return sizes.map(Size::List).ok_or_else(|| match nearest(&lower, ["imix"].into_iter()) {
                Some(_) => bad("a letter has no size (did you mean `imix`?)"),
                None if ["all", "standard", "rfc"].contains(&lower.as_str()) => {
                    bad("a letter has no size (the seven of RFC 2544, one after the other, are `rfc2544` of trials and searches)")
                }
                None => bad("a letter has no size"),
            });
        }
        if lower.contains("..") {
            let (min, max) = range(&lower)?;
            return Ok(Size::List((min..=max).collect()));
        }
        if lower.contains(':') {
            let parts: Result<Vec<(u32, u32)>, BadSize> = lower
                .split(',')
                .map(|part| {
                    let (size, weight) =
                        part.split_once(':').ok_or_else(|| bad("size:weight was expected"))?;
                    let weight: u32 =
                        weight.trim().parse().map_err(|_| bad("a weight must be a whole number"))?;
                    Ok((number(size)?, weight))
                })
                .collect();
            let parts = parts?;
            let total: u64 = parts.iter().map(|(_, weight)| u64::from(*weight)).sum();
            if parts.len() > MAX_PARTS {
                return Err(bad("a mix has at most 256 sizes"));
            }
            if total == 0 || total > u64::from(MAX_ITEMS) {
                return Err(bad("weights add up to 1 to 65536"));
            }
            return Ok(Size::Mix(parts));
        }
        let sizes: Result<Vec<u32>, BadSize> = lower.split(',').map(number).collect();
        let sizes = sizes?;
        Ok(if let [one] = sizes[..] { Size::Fixed(one) } else { Size::List(sizes) })
    }
}

impl Size {
    /// Smallest and largest.
    pub fn bounds(&self) -> (u32, u32) {
        match self {
            Size::Fixed(size) => (*size, *size),
            Size::List(sizes) => {
                (sizes.iter().copied().min().unwrap_or(0), sizes.iter().copied().max().unwrap_or(0))
            }
            Size::Random { min, max } => (*min, *max),
            Size::Mix(parts) => {
                let used = || parts.iter().filter(|(_, weight)| *weight > 0).map(|(size, _)| *size);
                (used().min().unwrap_or(0), used().max().unwrap_or(0))
            }
        }
    }

    /// The law for bytes in a buffer.
    pub(super) fn lengths(&self, key: u64) -> Lengths {
        let buffer = |size: u32| size.saturating_sub(FCS);
        match self {
            Size::Fixed(size) => Lengths::Fixed(buffer(*size)),
            Size::List(sizes) => Lengths::List(sizes.iter().map(|size| buffer(*size)).collect()),
            Size::Random { min, max } => Lengths::Random { key, min: buffer(*min), max: buffer(*max) },
            Size::Mix(parts) => {
                // Weights come from outside when the value is made by hand: the order stays bounded all the same.
                let mut room = MAX_ITEMS;
                let parts: Vec<(u32, u32)> = parts
                    .iter()
                    .take(MAX_PARTS)
                    .map(|(size, weight)| {
                        let weight = (*weight).min(room);
                        room -= weight;
                        (buffer(*size), weight)
                    })
                    .collect();
                Lengths::mix(&parts)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_nonsense_is_refused() {
        assert_eq!("64".parse(), Ok(Size::Fixed(64)));
        assert_eq!("64,1518".parse(), Ok(Size::List(vec![64, 1518])));
        assert_eq!("64..66".parse(), Ok(Size::List(vec![64, 65, 66])));
        assert_eq!("random(64..1518)".parse(), Ok(Size::Random { min: 64, max: 1518 }));
        assert_eq!("aaafg".parse(), Ok(Size::List(vec![64, 64, 64, 1280, 1518])));
        assert_eq!("64:7,1518:1".parse(), Ok(Size::Mix(vec![(64, 7), (1518, 1)])));
        assert_eq!("IMIX".parse::<Size>().map(|s| s.bounds()), Ok((64, 1518)));
        for bad in [
            "",
            "0",
            "-1",
            "64,,",
            "9..5",
            "xyz",
            "64:",
            "64:0",
            "99999999",
            "64:4294967295,64:9",
            "random(9)",
        ] {
            assert!(bad.parse::<Size>().is_err(), "{bad}");
        }
        for (typed, said) in [
            ("imxi", "a letter has no size (did you mean `imix`?); write"),
            ("rnadom(64..99)", "there are no such brackets (did you mean `random`?); write"),
            ("random(64..99", "the one thing with brackets is random(a..b); write"),
        ] {
            let told = typed.parse::<Size>().expect_err(typed).to_string();
            assert!(told.contains(said), "{told}");
        }
    }

    #[test]
    fn a_size_counts_the_frame_check_sequence() {
        assert_eq!(Size::Fixed(64).lengths(0), Lengths::Fixed(60));
    }
}
