//! Values with shares: `4`, `[1, 4]`, `{1: 60%, 4: 30%, 20: 10%}`.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use traffic::fraction::gcd;

/// Values of one list or map, at most.
const MAX_VALUES: usize = 4096;
/// Sum of all shares, in lowest terms, at most.
const MAX_SUM: u64 = 1 << 16;

/// A value that is read from its text.
pub trait FromText: Sized {
    /// What was expected, for errors.
    const WHAT: &'static str;
    /// Its name in the schema.
    const NAME: &'static str;

    /// Reads one.
    ///
    /// # Errors
    /// What is wrong with it, and what to write.
    fn read(text: &str) -> Result<Self, String>;

    /// What one looks like in the schema.
    fn schema() -> Schema;
}

/// Values with shares, these in lowest terms. A single value has the share 1; of a list all have the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weighted<T>(pub Vec<(T, u32)>);

/// A share as written: a decimal number, or a percentage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    digits: u64,
    decimals: u32,
    percent: bool,
}

impl Share {
    fn read(text: &str) -> Result<Share, String> {
        let bad = || {
            format!(
                "`{}` is no share: write a whole number (7) or percent (60%)",
                text.chars().take(40).collect::<String>()
            )
        };
        let (number, percent) = match text.trim().strip_suffix('%') {
            Some(number) => (number.trim(), true),
            None => (text.trim(), false),
        };
        let (whole, part) = number.split_once('.').unwrap_or((number, ""));
        let digits = format!("{whole}{part}");
        let is_number = !whole.is_empty() && digits.len() <= 12 && digits.bytes().all(|c| c.is_ascii_digit());
        if !is_number || (!percent && !part.is_empty()) {
            return Err(bad());
        }
        let digits = digits.parse().map_err(|_| bad())?;
        Ok(Share { digits, decimals: u32::try_from(part.len()).unwrap_or(0), percent })
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Share, D::Error> {
        super::model::text(deserializer, "a whole number, or percent", Share::read)
    }
}

/// Shares as whole numbers in lowest terms.
///
/// # Errors
/// They are of two kinds, percentages do not make 100, all are zero, or they need too long a cycle.
pub(super) fn lowest(shares: &[Share]) -> Result<Vec<u32>, String> {
    let percent = shares.iter().filter(|share| share.percent).count();
    if percent != 0 && percent != shares.len() {
        return Err("some of these shares are percentages, some are not: write all alike".to_owned());
    }
    let decimals = shares.iter().map(|share| share.decimals).max().unwrap_or(0);
    // Twelve digits, and twelve more at most: 80 bits.
    let scaled = |share: &Share| u128::from(share.digits) * 10u128.pow(decimals - share.decimals);
    let sum: u128 = shares.iter().map(scaled).sum();
    if percent != 0 && sum != 100 * 10u128.pow(decimals) {
        let made = sum as f64 / 10f64.powi(decimals.cast_signed());
        return Err(format!("these percentages make {made} %: they must make 100 %"));
    }
    let divisor = shares.iter().map(scaled).fold(0, gcd);
    if divisor == 0 {
        return Err("all of these shares are zero: nothing would be sent".to_owned());
    }
    if sum / divisor > u128::from(MAX_SUM) {
        return Err(format!(
            "these shares repeat after {} only; {MAX_SUM} is the most: round them",
            sum / divisor
        ));
    }
    // No share is above the sum.
    Ok(shares.iter().map(|share| u32::try_from(scaled(share) / divisor).unwrap_or(u32::MAX)).collect())
}

struct Key<T>(T);

impl<'de, T: FromText> Deserialize<'de> for Key<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Key<T>, D::Error> {
        super::model::text(deserializer, T::WHAT, |text| T::read(text).map(Key))
    }
}

impl<'de, T: FromText> Deserialize<'de> for Weighted<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Weighted<T>, D::Error> {
        struct Values<T>(PhantomData<T>);
        fn full<E: de::Error>() -> E {
            E::custom(format!("more than {MAX_VALUES} values"))
        }
        impl<'de, T: FromText> Visitor<'de> for Values<T> {
            type Value = Weighted<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}, a list of those, or a map of those with shares (value: 60%)", T::WHAT)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Weighted<T>, E> {
                Ok(Weighted(vec![(T::read(text).map_err(E::custom)?, 1)]))
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Weighted<T>, E> {
                self.visit_str(&value.to_string())
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Weighted<T>, E> {
                self.visit_str(&value.to_string())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Weighted<T>, A::Error> {
                let mut all = Vec::new();
                while let Some(Key(value)) = items.next_element()? {
                    if all.len() == MAX_VALUES {
                        return Err(full());
                    }
                    all.push((value, 1));
                }
                if all.is_empty() {
                    return Err(de::Error::custom(format!("expected {}, not an empty list", T::WHAT)));
                }
                Ok(Weighted(all))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut parts: A) -> Result<Weighted<T>, A::Error> {
                let (mut values, mut shares) = (Vec::new(), Vec::new());
                while let Some((Key(value), share)) = parts.next_entry::<Key<T>, Share>()? {
                    if values.len() == MAX_VALUES {
                        return Err(full());
                    }
                    values.push(value);
                    shares.push(share);
                }
                let shares = lowest(&shares).map_err(de::Error::custom)?;
                Ok(Weighted(values.into_iter().zip(shares).filter(|(_, share)| *share > 0).collect()))
            }
        }
        deserializer.deserialize_any(Values(PhantomData))
    }
}

impl<T: FromText> JsonSchema for Weighted<T> {
    fn schema_name() -> Cow<'static, str> {
        T::NAME.into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let one = T::schema();
        json_schema!({
            "description": format!("{}; or a list of those, each with the same share; or a map of those with shares, whole numbers or percentages (60%).", T::WHAT),
            "anyOf": [
                one,
                { "type": "array", "items": one, "minItems": 1 },
                { "type": "object", "additionalProperties": { "type": ["integer", "string"] }, "minProperties": 1 }
            ]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(texts: &[&str]) -> Result<Vec<u32>, String> {
        let read: Result<Vec<Share>, String> = texts.iter().map(|text| Share::read(text)).collect();
        lowest(&read?)
    }

    #[test]
    fn shares_come_to_lowest_terms() {
        assert_eq!(shares(&["60%", "30%", "10%"]), Ok(vec![6, 3, 1]));
        assert_eq!(shares(&["99.95%", "0.05 %"]), Ok(vec![1999, 1]));
        assert_eq!(shares(&["7", "4", "1"]), Ok(vec![7, 4, 1]));
        assert_eq!(shares(&["50", "0", "100"]), Ok(vec![1, 0, 2]));
        assert_eq!(shares(&["100%"]), Ok(vec![1]));
    }

    #[test]
    fn shares_that_make_no_whole_are_refused() {
        for (texts, part) in [
            (&["60%", "30%"][..], "make 90 %"),
            (&["60%", "40"], "write all alike"),
            (&["0", "0"], "zero"),
            (&["x"], "is no share"),
            (&["1.5"], "is no share"),
            (&["-1"], "is no share"),
            (&[".5%"], "is no share"),
            (&["99.9999%", "0.0001%"], "round them"),
            (&["9999999999999999"], "is no share"),
        ] {
            let error = shares(texts).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
