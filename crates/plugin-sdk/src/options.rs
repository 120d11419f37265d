//! Types of options that many plugins take. Each is checked while the options are read, so that a mistake is told with the
//! option's name, and says in its schema how it is written.

use crate::description::Fault;
use crate::packet::{Ipv4, Ipv6, Packet, ipv4, ipv6};
use crate::value::Value;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserializer, Error as _, Unexpected};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Div;

/// Longest text of a value.
const LONGEST: usize = 4096;

/// Addresses of one IP version: one, a prefix, a range, a list, or of chance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Addresses(String);

impl Addresses {
    /// Addresses written in the expression language, such as `10.0.0.0/16` or `random([10.0.0.1, 10.0.0.2])`.
    ///
    /// # Errors
    /// They are not written so.
    pub fn new(text: &str) -> Result<Addresses, String> {
        let text = value(text)?;
        match first_address(&text) {
            Some(_) => Ok(Addresses(text)),
            None => Err("write an IP address, a prefix (10.0.0.0/16), a range (10.0.0.1..10.0.0.9), a list ([10.0.0.1, 10.0.0.7]), random(10.0.0.0/8) or shuffled(10.0.0.0/8)".to_owned()),
        }
    }

    /// As they are written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The first of them.
    #[must_use]
    pub fn first(&self) -> IpAddr {
        first_address(&self.0).unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED))
    }

    /// Are all addresses that are written in them private, or for benchmarks ([`is_private`])? Of prefixes and ranges the
    /// ends count that are written.
    #[must_use]
    pub fn are_private(&self) -> bool {
        addresses(&self.0).all(is_private)
    }

    /// Whether they are of IPv6.
    #[must_use]
    pub fn is_ipv6(&self) -> bool {
        self.first().is_ipv6()
    }

    /// The address, if it is only one.
    #[must_use]
    pub fn only(&self) -> Option<IpAddr> {
        self.0.parse().ok()
    }

    /// How many they are, where that shows in how they are written: those of an address, a prefix, a range, a list of addresses,
    /// and `shuffled(...)` of a prefix or range.
    #[must_use]
    pub fn count(&self) -> Option<u128> {
        let inner = self.shuffled().unwrap_or(&self.0);
        match ends(inner) {
            Some((first, last)) => bits(first).abs_diff(bits(last)).checked_add(1),
            None => self.items().map(|items| items.len() as u128),
        }
    }

    /// The first and the last of them as they are written, of an address, a prefix or a range.
    #[must_use]
    pub fn ends(&self) -> Option<(IpAddr, IpAddr)> {
        ends(&self.0)
    }

    /// The first `count` of them, in the order in which they are written: of a range that goes down the greatest, of a list its first
    /// items. For fields that are walked through together with another one, such as tunnels with a subscriber each.
    ///
    /// # Errors
    /// There are fewer, or none is the first: of `random(...)`, of a list of ranges, of a part of `shuffled(...)`.
    pub fn take(&self, count: u64) -> Result<Value, String> {
        let wanted = u128::from(count.max(1));
        if self.count().is_some_and(|there| there < wanted) {
            let there = self.count().unwrap_or_default();
            return Err(format!("`{self}` has fewer addresses ({there}) than are needed ({wanted})"));
        }
        if let Some((first, last)) = ends(&self.0) {
            let more = wanted - 1;
            let end = bits(first);
            let end = if bits(last) < end { end - more } else { end + more };
            return Ok(if more == 0 {
                Value::from(first)
            } else {
                Value::from(format!("{first}..{}", like(first, end)))
            });
        }
        if let Some(items) = self.items() {
            let items: Vec<IpAddr> =
                items.into_iter().take(usize::try_from(count.max(1)).unwrap_or(usize::MAX)).collect();
            return Ok(match items.as_slice() {
                [one] => Value::from(*one),
                _ => crate::value::list(items),
            });
        }
        if self.shuffled().is_some() && self.count() == Some(wanted) {
            return Ok(self.into());
        }
        Err(format!(
            "`{self}` has no first {wanted} addresses: write a prefix (10.0.0.0/16), a range (10.0.0.1..10.0.0.9) or a list of addresses"
        ))
    }

    /// What stands in `shuffled(...)`.
    fn shuffled(&self) -> Option<&str> {
        self.0.strip_prefix("shuffled(")?.strip_suffix(')')
    }

    /// The items of a list of addresses.
    fn items(&self) -> Option<Vec<IpAddr>> {
        let inner = self.0.strip_prefix('[')?.strip_suffix(']')?;
        inner.split(',').map(|item| item.trim().parse().ok()).collect()
    }
}

/// An address as a number.
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(a) => u128::from(u32::from(a)),
        IpAddr::V6(a) => u128::from(a),
    }
}

/// A number as an address of the same version.
fn like(other: IpAddr, bits: u128) -> IpAddr {
    match other {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from(bits as u32)),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from(bits)),
    }
}

/// The first and the last address of an address, a prefix or a range.
fn ends(text: &str) -> Option<(IpAddr, IpAddr)> {
    if let Some((address, length)) = text.split_once('/') {
        let first: IpAddr = address.trim().parse().ok()?;
        let width: u32 = if first.is_ipv6() { 128 } else { 32 };
        let host = width - length.trim().parse::<u32>().ok().filter(|length| *length <= width)?;
        let last = bits(first) | 1u128.checked_shl(host).map_or(u128::MAX, |count| count - 1);
        return Some((first, like(first, last)));
    }
    if let Some((first, last)) = text.split_once("..") {
        let (first, last): (IpAddr, IpAddr) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        return (first.is_ipv6() == last.is_ipv6()).then_some((first, last));
    }
    let only = text.parse().ok()?;
    Some((only, only))
}

/// The first IP address in a text.
fn first_address(text: &str) -> Option<IpAddr> {
    addresses(text).next()
}

/// The IP addresses in a text.
fn addresses(text: &str) -> impl Iterator<Item = IpAddr> + '_ {
    let word = |c: char| !(c.is_ascii_hexdigit() || c == ':' || c == '.');
    // `10.0.0.1..10.0.0.9` is one run of such characters.
    text.split(word).flat_map(|word| word.split("..")).filter_map(|word| word.parse().ok())
}

/// A value that is written in the expression language: a number, a range, a list, of chance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Values(String);

impl Values {
    /// A value as it is written.
    ///
    /// # Errors
    /// It is more than one value.
    pub fn new(text: &str) -> Result<Values, String> {
        value(text).map(Values)
    }

    /// As it is written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The number, if it is only one.
    #[must_use]
    pub fn only(&self) -> Option<u64> {
        match self.0.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => self.0.parse().ok(),
        }
    }

    /// First and last number, of one and of a range.
    #[must_use]
    pub fn bounds(&self) -> Option<(u64, u64)> {
        if let Some(only) = self.only() {
            return Some((only, only));
        }
        let (first, last) = self.0.split_once("..")?;
        Some((first.trim().parse().ok()?, last.trim().parse().ok()?))
    }
}

/// A text that is one value: nothing of it ends the field that it is put into.
fn value(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() || text.len() > LONGEST {
        return Err(format!("a value has 1 to {LONGEST} characters"));
    }
    let mut open = Vec::new();
    for c in text.chars() {
        match c {
            '(' => open.push(')'),
            '[' => open.push(']'),
            ')' | ']' if open.pop() != Some(c) => return Err(format!("`{text}`: a bracket is not opened")),
            ',' if open.is_empty() => {
                return Err(format!("`{text}`: write several values as a list, [{text}]"));
            }
            c if c.is_ascii_alphanumeric() || " .:/,=_-+()[]".contains(c) => {}
            c => return Err(format!("`{}` does not belong into a value", c.escape_default())),
        }
    }
    if open.is_empty() { Ok(text.to_owned()) } else { Err(format!("`{text}`: a bracket is not closed")) }
}

macro_rules! from_text {
    ($type:ident, $schema:tt) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                let text = match serde_json::Value::deserialize(deserializer)? {
                    serde_json::Value::String(text) => text,
                    serde_json::Value::Number(number) => number.to_string(),
                    // What is written as a list is one of the expression language.
                    serde_json::Value::Array(items) => {
                        let items: Vec<String> = items
                            .iter()
                            .map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned))
                            .collect();
                        format!("[{}]", items.join(", "))
                    }
                    other => {
                        let what = other.to_string();
                        return Err(D::Error::invalid_type(Unexpected::Other(&what), &"a text"));
                    }
                };
                $type::new(&text).map_err(D::Error::custom)
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }

        impl std::str::FromStr for $type {
            type Err = String;

            fn from_str(text: &str) -> Result<$type, String> {
                $type::new(text)
            }
        }

        impl $type {
            /// One that the plugin itself states, such as a default: it is not checked here, but when netdyno compiles it.
            #[must_use]
            pub fn known(text: &str) -> $type {
                $type(text.to_owned())
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&$type> for Value {
            fn from(values: &$type) -> Value {
                Value::from(values.0.as_str())
            }
        }

        impl From<$type> for Value {
            fn from(values: $type) -> Value {
                Value::from(values.0)
            }
        }
    };
}

from_text!(Addresses, {
    "type": ["string", "array"],
    "items": { "type": "string" },
    "minLength": 1,
    "minItems": 1
});
from_text!(Values, {
    "type": ["string", "integer", "array"],
    "items": { "type": ["string", "integer"] },
    "minLength": 1,
    "minItems": 1
});

/// An Ethernet address, or several: one, a prefix, a range, a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Macs(String);

impl Macs {
    /// Ethernet addresses written in the expression language, such as `02:00:00:00:00:00/24`.
    ///
    /// # Errors
    /// They are not written so.
    pub fn new(text: &str) -> Result<Macs, String> {
        let text = value(text)?;
        let address = |word: &str| {
            word.split(':').count() == 6 && word.split(':').all(|byte| u8::from_str_radix(byte, 16).is_ok())
        };
        let word = |c: char| !(c.is_ascii_hexdigit() || c == ':');
        if text.split(word).any(address) {
            Ok(Macs(text))
        } else {
            Err("write an Ethernet address (02:00:00:00:00:01), a prefix (02:00:00:00:00:00/24), a range or a list".to_owned())
        }
    }

    /// As they are written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }
}

from_text!(Macs, {
    "type": ["string", "array"],
    "items": { "type": "string" },
    "minLength": 1,
    "minItems": 1
});

/// An IP header of either version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ip {
    /// Version 4.
    V4(Ipv4),
    /// Version 6.
    V6(Ipv6),
}

/// The IP header between these addresses.
///
/// # Errors
/// One is of IPv4, the other of IPv6: that is a fault of the option `destination_option`.
pub fn ip(source: &Addresses, destination: &Addresses, destination_option: &str) -> Result<Ip, Fault> {
    match (source.is_ipv6(), destination.is_ipv6()) {
        (false, false) => Ok(Ip::V4(ipv4().src(source).dst(destination))),
        (true, true) => Ok(Ip::V6(ipv6().src(source).dst(destination))),
        (v6, _) => {
            let (source_is, destination_is) = if v6 { ("IPv6", "IPv4") } else { ("IPv4", "IPv6") };
            let message =
                format!("`{destination}` is {destination_is}, but the source `{source}` is {source_is}");
            Err(Fault::at(destination_option, message))
        }
    }
}

impl Ip {
    /// Whether it is version 6.
    #[must_use]
    pub fn is_v6(&self) -> bool {
        matches!(self, Ip::V6(_))
    }

    /// Sets time to live or hop limit.
    #[must_use]
    pub fn ttl(self, ttl: impl Into<Value>) -> Ip {
        match self {
            Ip::V4(ip) => Ip::V4(ip.ttl(ttl)),
            Ip::V6(ip) => Ip::V6(ip.hlim(ttl)),
        }
    }

    /// Sets the source addresses.
    #[must_use]
    pub fn src(self, source: impl Into<Value>) -> Ip {
        match self {
            Ip::V4(ip) => Ip::V4(ip.src(source)),
            Ip::V6(ip) => Ip::V6(ip.src(source)),
        }
    }

    /// Sets the destination addresses.
    #[must_use]
    pub fn dst(self, destination: impl Into<Value>) -> Ip {
        match self {
            Ip::V4(ip) => Ip::V4(ip.dst(destination)),
            Ip::V6(ip) => Ip::V6(ip.dst(destination)),
        }
    }

    /// Forbids fragmentation, where the header can say so.
    #[must_use]
    pub fn dont_fragment(self) -> Ip {
        match self {
            Ip::V4(ip) => Ip::V4(ip.flags("DF")),
            Ip::V6(ip) => Ip::V6(ip),
        }
    }

    /// Sets the differentiated services code point.
    #[must_use]
    pub fn dscp(self, dscp: impl Into<Value>) -> Ip {
        match self {
            Ip::V4(ip) => Ip::V4(ip.dscp(dscp)),
            Ip::V6(ip) => Ip::V6(ip.dscp(dscp)),
        }
    }

    /// Sets the number of the protocol that follows.
    #[must_use]
    pub fn proto(self, number: impl Into<Value>) -> Ip {
        match self {
            Ip::V4(ip) => Ip::V4(ip.proto(number)),
            Ip::V6(ip) => Ip::V6(ip.nh(number)),
        }
    }
}

impl From<Ip> for Packet {
    fn from(ip: Ip) -> Packet {
        match ip {
            Ip::V4(ip) => ip.into(),
            Ip::V6(ip) => ip.into(),
        }
    }
}

impl<T: Into<Packet>> Div<T> for Ip {
    type Output = Packet;

    fn div(self, next: T) -> Packet {
        Packet::from(self).then(next)
    }
}

/// Is it an address for private use or for benchmarks? What a restricted plugin may send to.
#[must_use]
pub fn is_private(address: IpAddr) -> bool {
    match address {
        // RFC 1918, RFC 2544 section C.2.2.
        IpAddr::V4(a) => {
            let [first, second, ..] = a.octets();
            a.is_private() || first == 198 && second & 0xfe == 18
        }
        // RFC 4193, RFC 5180 (2001:2::/48).
        IpAddr::V6(a) => {
            let s: [u16; 8] = Ipv6Addr::segments(&a);
            s[0] & 0xfe00 == 0xfc00 || s[..3] == [0x2001, 2, 0]
        }
    }
}
