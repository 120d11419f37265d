//! Quantities that keep the words they were written in.

#[cfg(not(feature = "without-schemas"))]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::str::FromStr;
use std::time::Duration;
use traffic::expr::Size;
use traffic::rate::{parse_count, parse_duration, parse_speed};
use traffic::schedule::Speed;
use traffic::{Rate, Shape};
use wire::Mac;

/// What people write with a unit.
pub trait Quantity: Sized {
    /// Its name in the schema.
    const NAME: &'static str;
    /// What may be written.
    const WRITTEN: &'static str;
    /// How it may look.
    const EXAMPLES: &'static [&'static str];

    /// Reads it.
    ///
    /// # Errors
    /// What is wrong with the text, and what to write.
    fn read(text: &str) -> Result<Self, String>;
}

/// A value and the words it was written in. Two are equal if their values are.
#[derive(Debug, Clone)]
pub struct Written<T> {
    text: String,
    value: T,
}

impl<T> Written<T> {
    /// A value that was not read, in words that mean it.
    pub(crate) fn of(text: String, value: T) -> Written<T> {
        Written { text, value }
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What it means.
    pub fn into_value(self) -> T {
        self.value
    }
}

impl From<u64> for Written<u64> {
    fn from(count: u64) -> Written<u64> {
        Written::of(count.to_string(), count)
    }
}

impl From<Duration> for Written<Duration> {
    fn from(time: Duration) -> Written<Duration> {
        Written::of(time_in_words(time), time)
    }
}

impl From<crate::TimeOrZero> for Written<crate::TimeOrZero> {
    fn from(time: crate::TimeOrZero) -> Written<crate::TimeOrZero> {
        Written::of(time_in_words(time.0), time)
    }
}

impl From<crate::BitRate> for Written<crate::BitRate> {
    fn from(rate: crate::BitRate) -> Written<crate::BitRate> {
        Written::of(format!("{}bps", rate.0), rate)
    }
}

impl From<crate::Confidence> for Written<crate::Confidence> {
    fn from(sure: crate::Confidence) -> Written<crate::Confidence> {
        // 0.07 * 100 is 7.000000000000001.
        let percent = |share: f64| (share * 1e8).round() / 1e6;
        Written::of(format!("{}%,{}%", percent(sure.level), percent(sure.width)), sure)
    }
}

/// A time in the largest of the units that it is a whole number of.
fn time_in_words(time: Duration) -> String {
    let ns = time.as_nanos();
    let units = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)];
    let whole = units.into_iter().find(|(_, each)| ns.is_multiple_of(*each));
    let (unit, each) = whole.unwrap_or(("ns", 1));
    format!("{}{unit}", ns / each)
}

/// In no words: what stands where nothing was said yet.
impl<T: Default> Default for Written<T> {
    fn default() -> Written<T> {
        Written { text: String::new(), value: T::default() }
    }
}

impl<T> Deref for Written<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: PartialEq> PartialEq for Written<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T> fmt::Display for Written<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<T: Quantity> FromStr for Written<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        T::read(text).map(|value| Written { text: text.trim().to_owned(), value })
    }
}

impl<T> Serialize for Written<T> {
    /// A whole number without a unit is a number.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.text.parse::<u64>() {
            Ok(number) if number.to_string() == self.text => serializer.serialize_u64(number),
            _ => serializer.serialize_str(&self.text),
        }
    }
}

impl<'de, T: Quantity> Deserialize<'de> for Written<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Words<T>(PhantomData<T>);
        impl<T: Quantity> Visitor<'_> for Words<T> {
            type Value = Written<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", T::WRITTEN)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Written<T>, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Written<T>, E> {
                self.visit_str(&number.to_string())
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Written<T>, E> {
                self.visit_str(&number.to_string())
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Written<T>, E> {
                self.visit_str(&number.to_string())
            }
        }
        deserializer.deserialize_any(Words(PhantomData))
    }
}

#[cfg(not(feature = "without-schemas"))]
impl<T: Quantity> JsonSchema for Written<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::NAME.into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "description": T::WRITTEN, "type": ["string", "integer"], "examples": T::EXAMPLES })
    }
}

/// Text that may be a number in a file.
pub(crate) fn text_or_number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let value = Option::<serde_json::Value>::deserialize(from)?;
    match value {
        None => Ok(None),
        Some(serde_json::Value::String(text)) => Ok(Some(text)),
        Some(serde_json::Value::Number(number)) => Ok(Some(number.to_string())),
        Some(other) => Err(de::Error::custom(format!("{other} is neither text nor a number"))),
    }
}

impl Quantity for Rate {
    const NAME: &'static str = "Rate";
    const WRITTEN: &'static str = "A rate: 1.6mpps (frames per second), 500M, 7gbps or 7Gbit/s (bits per second of frames without FCS), 7gbps-l1 (on the wire), 40% (of the link's speed), 100kflows/s (new flows per second) or top.";
    const EXAMPLES: &'static [&'static str] = &["1mpps", "500M", "500mbps", "7gbps-l1", "10%", "top"];

    fn read(text: &str) -> Result<Rate, String> {
        text.parse().map_err(|bad: traffic::rate::BadQuantity| bad.to_string())
    }
}

impl Quantity for Shape {
    const NAME: &'static str = "LoadShape";
    const WRITTEN: &'static str = "A shape of load: poisson, sine:period=10s,amplitude=50%, square:period=1s,high=20%,low=10%, flash:after=10s,rise=2s,peak=10x,hold=5s,fall=20s or onoff:on=100ms,off=900ms,alpha=1.5; with arrivals=poisson behind any but the first.";
    const EXAMPLES: &'static [&'static str] = &[
        "poisson",
        "sine:period=10s,amplitude=50%",
        "square:period=1s,high=20%",
        "onoff:on=100ms,off=900ms",
    ];

    fn read(text: &str) -> Result<Shape, String> {
        text.parse().map_err(|bad: traffic::shape::BadShape| bad.to_string())
    }
}

impl Quantity for Duration {
    const NAME: &'static str = "Time";
    const WRITTEN: &'static str = "A time: 5s, 200ms, 10us, 1m30s, 2h.";
    const EXAMPLES: &'static [&'static str] = &["5s", "200ms", "1m30s"];

    fn read(text: &str) -> Result<Duration, String> {
        parse_duration(text).map_err(|bad| bad.to_string())
    }
}

impl Quantity for u64 {
    const NAME: &'static str = "Count";
    const WRITTEN: &'static str = "How many: 1000, 10k, 2.5M.";
    const EXAMPLES: &'static [&'static str] = &["1000", "10k"];

    fn read(text: &str) -> Result<u64, String> {
        parse_count(text).map_err(|bad| bad.to_string())
    }
}

impl Quantity for Speed {
    const NAME: &'static str = "Speed";
    const WRITTEN: &'static str = "How many times as fast as captured: 2x, 0.5x.";
    const EXAMPLES: &'static [&'static str] = &["2x", "0.5x"];

    fn read(text: &str) -> Result<Speed, String> {
        parse_speed(text).map_err(|bad| bad.to_string())
    }
}

impl Quantity for Size {
    const NAME: &'static str = "Size";
    const WRITTEN: &'static str = "Frame sizes, the FCS counted: 64, a list 64,512,1518, 64..1518, random(64..1518), imix, 64:7,1518:1 (size:weight) or an RFC 6985 genome such as aaafg.";
    const EXAMPLES: &'static [&'static str] = &["64", "imix", "64..1518"];

    fn read(text: &str) -> Result<Size, String> {
        text.parse().map_err(|bad: <Size as FromStr>::Err| bad.to_string())
    }
}

impl Quantity for Mac {
    const NAME: &'static str = "Mac";
    const WRITTEN: &'static str = "An Ethernet address.";
    const EXAMPLES: &'static [&'static str] = &["02:00:00:00:00:01"];

    fn read(text: &str) -> Result<Mac, String> {
        text.parse().map_err(|bad: <Mac as FromStr>::Err| bad.to_string())
    }
}

/// A share of one: `0.5%`, or `1/200`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio(pub f64);

impl Quantity for Ratio {
    const NAME: &'static str = "Ratio";
    const WRITTEN: &'static str = "A share: 0.5%, or 1/200.";
    const EXAMPLES: &'static [&'static str] = &["0.5%", "1/200"];

    fn read(text: &str) -> Result<Ratio, String> {
        let number_of = |text: &str| text.trim().parse::<f64>().ok();
        let bare = number_of(text).filter(|value| (0.0..=100.0).contains(value));
        let bad = || match bare {
            Some(_) => format!("`{text}` is not a share: write {}%", text.trim()),
            None => format!("`{text}` is not a share: write 0.5%"),
        };
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|value| value.is_finite());
        let value = match (text.strip_suffix('%'), text.split_once('/')) {
            (Some(percent), _) => number(percent).map(|percent| percent / 100.0),
            (None, Some((part, of))) => number(part).zip(number(of)).map(|(part, of)| part / of),
            (None, None) => None,
        };
        value.filter(|value| (0.0..=1.0).contains(value)).map(Ratio).ok_or_else(bad)
    }
}

/// An exact share of one: `1%`, `0.5`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share(pub Speed);

impl Default for Share {
    /// None of it.
    fn default() -> Share {
        Share(Speed { numerator: 0, denominator: 1 })
    }
}

impl Quantity for Share {
    const NAME: &'static str = "Share";
    const WRITTEN: &'static str = "A share in percent: 1%, 0.5%.";
    const EXAMPLES: &'static [&'static str] = &["1%", "0.5%"];

    /// Percent, with or without the sign.
    fn read(text: &str) -> Result<Share, String> {
        let digits = text.trim_end_matches('%');
        if digits.bytes().any(|c| !c.is_ascii_digit() && c != b'.')
            || !digits.bytes().any(|c| c.is_ascii_digit())
        {
            return Err(format!("`{text}` is no share: write 1% or 0.5%"));
        }
        if digits.bytes().all(|c| matches!(c, b'0' | b'.')) {
            return Ok(Share::default());
        }
        parse_speed(digits).map(Share).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{from_str, to_string};

    #[test]
    fn the_words_stay_and_numbers_stay_numbers() {
        for (written, back) in [(r#""40%""#, r#""40%""#), (r#"" 1.6mpps""#, r#""1.6mpps""#)] {
            let rate: Written<Rate> = from_str(written).expect("a rate");
            assert_eq!(to_string(&rate).expect("text"), back);
        }
        for (written, back) in [("64", "64"), (r#""64""#, "64"), (r#""imix""#, r#""imix""#)] {
            let size: Written<Size> = from_str(written).expect("a size");
            assert_eq!(to_string(&size).expect("text"), back);
        }
        let count: Written<u64> = from_str(r#""10k""#).expect("a count");
        assert_eq!((*count, count.text()), (10_000, "10k"));
        assert_eq!("1s".parse::<Written<Duration>>(), "1000ms".parse());
    }

    #[test]
    fn what_is_wrong_is_said_with_what_to_write() {
        for (bad, says) in
            [("5", "write 5pps"), ("-1", "is not a rate"), ("1.5", "write 1.5pps"), ("true", "A rate:")]
        {
            let error = from_str::<Written<Rate>>(bad).expect_err(bad).to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
