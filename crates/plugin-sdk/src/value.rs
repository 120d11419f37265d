//! Values of fields: one, one after the other, by chance. What docs/expressions.md writes `1024..65535`, `[53, 80]`,
//! `random(10.0.0.0/8)`.
//!
//! Most are made by [`From`]: a number, an address, a text in the expression language, a range.
//!
//! ```
//! use plugin_sdk::value::{list, random, shuffled, Value};
//! assert_eq!(Value::from(53).to_string(), "53");
//! assert_eq!(Value::from("10.0.0.0/16").to_string(), "10.0.0.0/16");
//! assert_eq!(Value::from(1024..=65535).every(4).to_string(), "1024..65535 every=4");
//! assert_eq!(list([53, 80]).to_string(), "[53, 80]");
//! assert_eq!(random(1..=9).to_string(), "random(1..9)");
//! assert_eq!(shuffled("10.0.0.0/8").to_string(), "shuffled(10.0.0.0/8)");
//! ```

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

/// The values that a field takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value {
    body: String,
    step: Option<u64>,
    every: Option<String>,
}

impl Value {
    fn of(body: String) -> Value {
        Value { body, step: None, every: None }
    }

    /// Takes each `step`-th value of a range or prefix only.
    #[must_use]
    pub fn step(self, step: u64) -> Value {
        Value { step: Some(step), ..self }
    }

    /// Advances once each `frames` frames.
    #[must_use]
    pub fn every(self, frames: u64) -> Value {
        Value { every: Some(frames.to_string()), ..self }
    }

    /// Advances when that field (`sport`, or `udp.sport`) has gone through all its values.
    #[must_use]
    pub fn every_turn_of(self, field: &str) -> Value {
        Value { every: Some(field.to_owned()), ..self }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.body)?;
        if let Some(step) = self.step {
            write!(f, " step={step}")?;
        }
        if let Some(every) = &self.every {
            write!(f, " every={every}")?;
        }
        Ok(())
    }
}

/// Each of the items in turn.
pub fn list<T: Into<Value>>(items: impl IntoIterator<Item = T>) -> Value {
    let items: Vec<String> = items.into_iter().map(|item| item.into().to_string()).collect();
    Value::of(format!("[{}]", items.join(", ")))
}

/// One of a range's, prefix's or list's values, uniformly.
pub fn random(of: impl Into<Value>) -> Value {
    Value::of(format!("random({})", of.into()))
}

/// Any value of the field.
#[must_use]
pub fn any() -> Value {
    Value::of("random()".to_owned())
}

/// Each of a range's or prefix's values once, in an order of chance. There must be 2, 4, 8, ... of them.
pub fn shuffled(of: impl Into<Value>) -> Value {
    Value::of(format!("shuffled({})", of.into()))
}

/// A range that is reckoned: `first`, and `count` values in all.
#[must_use]
pub fn counted(first: u64, count: u64) -> Value {
    match count {
        0 | 1 => Value::from(first),
        _ => Value::from(first..=first.saturating_add(count - 1)),
    }
}

impl From<&Value> for Value {
    fn from(value: &Value) -> Value {
        value.clone()
    }
}

macro_rules! from_display {
    ($($type:ty),*) => {$(
        impl From<$type> for Value {
            fn from(value: $type) -> Value {
                Value::of(value.to_string())
            }
        }
    )*};
}
from_display!(&str, String, &String, u8, u16, u32, u64, usize, i32, Ipv4Addr, Ipv6Addr, IpAddr);

macro_rules! from_range {
    ($($type:ty),*) => {$(
        impl From<RangeInclusive<$type>> for Value {
            fn from(range: RangeInclusive<$type>) -> Value {
                Value::of(format!("{}..{}", range.start(), range.end()))
            }
        }
    )*};
}
from_range!(u8, u16, u32, u64, usize, i32, Ipv4Addr, Ipv6Addr);
