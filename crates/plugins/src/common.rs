//! What several plugins share: how options are declared, defaults of addresses, flows.

use plugin_sdk::options::{Addresses, Values};
use plugin_sdk::value::{Value, counted};
use plugin_sdk::{Fault, Stream};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Declares a plugin's options: a struct whose fields have descriptions and defaults.
macro_rules! options {
    ($(#[$top:meta])* { $($(#[$doc:meta])* $name:ident: $type:ty = $default:expr,)* }) => {
        $(#[$top])*
        #[derive(Debug, Clone, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub struct Options {
            $($(#[$doc])* pub $name: $type,)*
        }

        impl Default for Options {
            fn default() -> Options {
                Options { $($name: $default,)* }
            }
        }
    };
}
pub(crate) use options;

/// An enumeration that is written in lower case.
macro_rules! choices {
    ($(#[$top:meta])* $name:ident { $($(#[$doc:meta])* $choice:ident = $text:literal,)* }) => {
        $(#[$top])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $text)] $choice,)*
        }
    };
}
pub(crate) use choices;

/// One example.
macro_rules! example {
    ($about:literal, $($json:tt)+) => {
        plugin_sdk::Example::new($about, serde_json::json!($($json)+))
    };
}
pub(crate) use example;

/// Version of all built-in plugins: netdyno's.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A default of addresses. That it can be read is seen in tests.
pub(crate) fn addresses(text: &str) -> Addresses {
    Addresses::known(text)
}

/// A default of values.
pub(crate) fn values(text: &str) -> Values {
    Values::known(text)
}

/// Source addresses and ports of exactly `flows` different pairs, each once before any comes again: ports go through first.
pub(crate) fn flows(
    flows: u64,
    source: &Addresses,
    ports: &Values,
    option: &str,
) -> Result<(Value, Value), Fault> {
    if flows == 0 {
        return Ok((source.into(), ports.into()));
    }
    let fault = |message: String| Err(Fault::at(format!("/{option}"), message));
    let (Some((first, last)), Some(hosts)) = (ports.bounds(), source.count()) else {
        return fault(
            "a number of flows needs a port or range of ports, and an address, a prefix, a range or a list of addresses"
                .to_owned(),
        );
    };
    let all_ports = last.abs_diff(first) + 1;
    // As many ports as divide the number of flows, so that all pairs together are exactly that many.
    let used = (1..=all_ports.min(flows)).rev().find(|ports| flows.is_multiple_of(*ports)).unwrap_or(1);
    let needed = flows / used;
    if u128::from(needed) > hosts {
        return fault(format!(
            "{flows} flows are {used} ports times {needed} source addresses, of which there are {hosts}: give a larger prefix, or a number of flows with more divisors"
        ));
    }
    let address = match source.take(needed) {
        Ok(address) => {
            if needed == 1 {
                address
            } else {
                address.every(used)
            }
        }
        Err(why) => return fault(why),
    };
    // Downwards, if that is how they are written.
    let ports = if last < first { downwards(first, used) } else { counted(first, used) };
    Ok((address, ports))
}

/// `count` numbers from `first` down.
fn downwards(first: u64, count: u64) -> Value {
    match count {
        0 | 1 => Value::from(first),
        _ => Value::from(first..=first.saturating_sub(count - 1)),
    }
}

/// A stream for each of `items`, with a share of the frames each; those of no share are left out.
pub(crate) fn shared(items: impl IntoIterator<Item = (Stream, u32)>) -> Vec<Stream> {
    items.into_iter().filter(|(_, share)| *share > 0).map(|(stream, share)| stream.weight(share)).collect()
}

/// The multicast Ethernet address of an IPv4 group (RFC 1112 section 6.4).
pub(crate) fn multicast_v4(group: Ipv4Addr) -> u64 {
    0x0100_5e00_0000 | u64::from(u32::from(group) & 0x007f_ffff)
}

/// The multicast Ethernet address of an IPv6 group (RFC 2464 section 7).
pub(crate) fn multicast_v6(group: Ipv6Addr) -> u64 {
    0x3333_0000_0000 | u64::from(u128::from(group) as u32)
}

/// An Ethernet address as it is written.
pub(crate) fn mac(address: u64) -> String {
    let bytes: Vec<String> = address.to_be_bytes().iter().skip(2).map(|byte| format!("{byte:02x}")).collect();
    bytes.join(":")
}

/// `count` Ethernet addresses from `first` on.
pub(crate) fn macs(first: u64, count: u64) -> Value {
    match count {
        0 | 1 => Value::from(mac(first)),
        _ => Value::from(format!("{}..{}", mac(first), mac(first.saturating_add(count - 1)))),
    }
}

/// `count` IPv4 addresses from `first` on.
pub(crate) fn v4s(first: Ipv4Addr, count: u64) -> Value {
    match count {
        0 | 1 => Value::from(first),
        _ => Value::from(first..=Ipv4Addr::from(u32::from(first).saturating_add((count - 1) as u32))),
    }
}

/// `count` IPv6 addresses from `first` on.
pub(crate) fn v6s(first: Ipv6Addr, count: u64) -> Value {
    match count {
        0 | 1 => Value::from(first),
        _ => Value::from(first..=Ipv6Addr::from(u128::from(first).saturating_add(u128::from(count - 1)))),
    }
}

/// Streams with shares as weights, in lowest terms; those of no share are left out. A stream that is alone needs no weight.
pub(crate) fn proportional(streams: Vec<(Stream, u64)>) -> Vec<Stream> {
    fn common(a: u64, b: u64) -> u64 {
        if b == 0 { a } else { common(b, a % b) }
    }
    let divisor = streams.iter().fold(0, |divisor, (_, share)| common(divisor, *share)).max(1);
    let streams: Vec<_> = streams.into_iter().filter(|(_, share)| *share > 0).collect();
    match streams.len() {
        1 => streams.into_iter().map(|(stream, _)| stream).collect(),
        _ => streams
            .into_iter()
            .map(|(stream, share)| stream.weight(u32::try_from(share / divisor).unwrap_or(u32::MAX)))
            .collect(),
    }
}

/// Part `at` of `all` things that are divided into `parts`: its first, and how many they are.
pub(crate) fn split(all: u64, parts: u64, at: u64) -> (u64, u64) {
    let (each, more) = (all / parts.max(1), all % parts.max(1));
    (at * each + at.min(more), each + u64::from(at < more))
}
