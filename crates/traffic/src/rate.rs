//! What people write for rates, speeds, durations and counts, read exactly (no floating point).

use crate::fraction::reduced;
use crate::schedule::{LAYER1_OVERHEAD, Schedule, Speed};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A positive decimal number, exactly: `numerator / denominator`, the denominator a power of ten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exact {
    /// Above the line.
    pub numerator: u64,
    /// Below the line.
    pub denominator: u64,
}

impl Exact {
    /// As a float, for showing.
    pub fn as_f64(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }
}

/// A rate as asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Rate {
    /// As fast as it goes.
    #[default]
    TopSpeed,
    /// Frames per second: `1.6mpps`.
    Frames(Exact),
    /// Bits per second of whole frames without FCS (as tcpreplay counts): `7gbps`, `7Gbit/s`, and as iperf3 writes it `7G`; on
    /// layer 1 (with FCS, preamble and inter-frame gap): `7gbps-l1`.
    Bits {
        /// How many.
        bits_per_second: u64,
        /// Counted on layer 1.
        layer1: bool,
    },
    /// Percent of the link's speed, on layer 1: `40%`.
    Percent(Exact),
    /// New flows per second: `100kflows/s`, `100kfps`.
    Flows(Exact),
}

/// Why a text is not the quantity it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadQuantity {
    /// Not a rate at all.
    #[error(
        "`{0}` is not a rate: write 500M, 7gbps or 7Gbit/s (bits per second of frames without FCS), 7gbps-l1 (on the wire), 1.6mpps (frames per second), 40% (of the link's speed), 100kflows/s (new flows per second) or `top`"
    )]
    Rate(String),
    /// Bytes, or what might be.
    #[error(
        "`{0}` might count bytes: a rate counts bits, 8 of a byte; write 500mbps, 500Mbit/s or 500M for 500 megabits per second"
    )]
    Bytes(String),
    /// A number without its unit.
    #[error("`{0}` has no unit: write {0}pps for frames per second or {0}mbps for megabits per second")]
    NoUnit(String),
    /// Zero of it.
    #[error(
        "`{0}` is zero: nothing would ever be sent; give a rate above zero, or `top` for as fast as it goes"
    )]
    Zero(String),
    /// More than any link carries.
    #[error("`{0}` is more than any interface can do (Ethernet ends at 1.6 Tbit/s, 2.4 Gpps)")]
    TooMuch(String),
    /// More than the whole link.
    #[error("`{0}` is more than the link carries: give at most 100%, or `top` for as fast as it goes")]
    OverFull(String),
    /// Not a duration.
    #[error("`{0}` is not a duration: write {written}", written = durations(.0))]
    Duration(String),
    /// Not a speed.
    #[error("`{0}` is not a speed: write 2x for twice as fast as captured, 0.5x for half as fast")]
    Speed(String),
    /// Not a count.
    #[error("`{0}` is not a count: write a whole number above zero, such as 1000, 10k or 2.5M")]
    Count(String),
}

/// How durations are written; a number without a unit with one first.
fn durations(text: &str) -> String {
    let bare = !text.is_empty() && text.len() < 10 && text.bytes().all(|c| c.is_ascii_digit() || c == b'.');
    if bare && text != "5" {
        format!("{text}s, or 200ms, 1m30s, 2h")
    } else {
        "5s, 200ms, 1m30s or 2h".to_owned()
    }
}

/// Splits `text` into a decimal number and what follows; `None` when it does not start with one or is too long.
pub(crate) fn number(text: &str) -> Option<(Exact, &str)> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let mut numerator = 0u64;
    let mut denominator = 1u64;
    let (mut point, mut any) = (false, false);
    for c in digits.bytes() {
        match c {
            b'_' => {}
            b'.' if !point => point = true,
            b'.' => return None,
            digit => {
                any = true;
                numerator = numerator.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
                if point {
                    denominator = denominator.checked_mul(10)?;
                }
            }
        }
    }
    any.then_some((Exact { numerator, denominator }, rest))
}

/// 1000 to the power a unit's letter stands for.
fn thousands(letter: &str) -> Option<u64> {
    Some(match letter {
        "" => 1,
        "k" => 1_000,
        "m" => 1_000_000,
        "g" => 1_000_000_000,
        "t" => 1_000_000_000_000,
        _ => return None,
    })
}

/// Units of bits per second, without their prefix; longer ones first.
const BITS: [&str; 7] = ["bits/sec", "bits/s", "bit/s", "bps", "bits", "bit", "b/s"];
/// Of frames per second.
const FRAMES: [&str; 6] = ["pps", "p/s", "packets/s", "packet/s", "frames/s", "frame/s"];
/// Of new flows per second.
const FLOWS: [&str; 5] = ["flows/s", "flow/s", "flows/sec", "fps", "f/s"];

impl FromStr for Rate {
    type Err = BadQuantity;

    fn from_str(text: &str) -> Result<Rate, BadQuantity> {
        let bad = || BadQuantity::Rate(text.to_string());
        let zero = || BadQuantity::Zero(text.to_string());
        let too_much = || BadQuantity::TooMuch(text.to_string());
        let lower = text.trim().to_ascii_lowercase();
        if matches!(lower.as_str(), "top" | "topspeed" | "top speed" | "max") {
            return Ok(Rate::TopSpeed);
        }
        let (value, written) = number(text.trim()).ok_or_else(bad)?;
        let written: String = written.split_whitespace().collect();
        let unit = written.to_ascii_lowercase();
        if value.numerator == 0 {
            return Err(zero());
        }
        if unit.is_empty() {
            return Err(BadQuantity::NoUnit(text.to_string()));
        }
        if unit == "%" {
            return if value.as_f64() > 100.0 {
                Err(BadQuantity::OverFull(text.to_string()))
            } else {
                Ok(Rate::Percent(value))
            };
        }
        let on_the_wire = ["-l1", "l1", "onlayer1", "onthewire"].into_iter();
        let (unit, layer1) = match on_the_wire.into_iter().find_map(|suffix| unit.strip_suffix(suffix)) {
            Some(unit) => (unit, true),
            None => (unit.strip_suffix("-l2").unwrap_or(&unit), false),
        };
        if counts_bytes(&written) {
            return Err(BadQuantity::Bytes(text.to_string()));
        }
        let scaled = |prefix: &str, limit: f64| -> Result<Exact, BadQuantity> {
            let factor = thousands(prefix).ok_or_else(bad)?;
            // Both are powers of ten.
            let common = factor.min(value.denominator);
            let numerator = value.numerator.checked_mul(factor / common).ok_or_else(too_much)?;
            let exact = Exact { numerator, denominator: value.denominator / common };
            if exact.as_f64() > limit { Err(too_much()) } else { Ok(exact) }
        };
        // A prefix alone is bits, as iperf3 reads it.
        let bits = BITS.into_iter().find_map(|suffix| unit.strip_suffix(suffix));
        if let Some(prefix) = bits.or_else(|| thousands(unit).map(|_| unit)) {
            let exact = scaled(prefix, 1.6e12)?;
            let bits_per_second = exact.numerator / exact.denominator;
            if bits_per_second == 0 {
                return Err(zero());
            }
            return Ok(Rate::Bits { bits_per_second, layer1 });
        }
        if layer1 {
            return Err(bad());
        }
        if let Some(prefix) = FRAMES.into_iter().find_map(|suffix| unit.strip_suffix(suffix)) {
            return Ok(Rate::Frames(scaled(prefix, 2.4e9)?));
        }
        if let Some(prefix) = FLOWS.into_iter().find_map(|suffix| unit.strip_suffix(suffix)) {
            return Ok(Rate::Flows(scaled(prefix, 2.4e9)?));
        }
        Err(bad())
    }
}

/// Whether a unit says bytes, or leaves it open: `MB/s`, `GBps`, `mb`. All in capitals (`GBPS`), `b` is a bit.
fn counts_bytes(unit: &str) -> bool {
    let lower = unit.to_ascii_lowercase();
    let shouted = unit == unit.to_ascii_uppercase() && lower.ends_with("bps");
    let before = ["b/s", "bps", "b"].into_iter().find_map(|suffix| lower.strip_suffix(suffix));
    let prefixed = before.is_some_and(|prefix| thousands(prefix).is_some());
    let named = ["byte", "bytes", "byte/s", "bytes/s"].into_iter().any(|suffix| lower.ends_with(suffix));
    named || prefixed && !shouted && (unit.contains('B') || lower.ends_with('b'))
}

impl fmt::Display for Rate {
    /// As results tell it, with all of its digits: `500 Mbit/s`, `14.3 kflows/s`. It is read back as the same rate.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rate::TopSpeed => f.write_str("top speed"),
            Rate::Percent(value) => write!(f, "{}%", decimal(*value, 0)),
            Rate::Frames(value) => prefixed(f, *value, "pps"),
            Rate::Flows(value) => prefixed(f, *value, "flows/s"),
            Rate::Bits { bits_per_second, layer1 } => {
                prefixed(f, Exact { numerator: *bits_per_second, denominator: 1 }, "bit/s")?;
                f.write_str(if *layer1 { " on the wire" } else { "" })
            }
        }
    }
}

/// A value with the largest prefix that leaves it at one or more.
fn prefixed(f: &mut fmt::Formatter<'_>, value: Exact, unit: &str) -> fmt::Result {
    let fits = |power: u32| u128::from(value.numerator) >= u128::from(value.denominator) * 10u128.pow(power);
    let prefixes = [(9, "G"), (6, "M"), (3, "k")];
    let (power, prefix) = prefixes.into_iter().find(|(power, _)| fits(*power)).unwrap_or((0, ""));
    write!(f, "{} {prefix}{unit}", decimal(value, power))
}

/// The value divided by ten to that power, with all of its digits and no others.
fn decimal(value: Exact, power: u32) -> String {
    let places = (value.denominator.checked_ilog10().unwrap_or(0) + power) as usize;
    let digits = format!("{:0>width$}", value.numerator, width = places + 1);
    let (whole, part) = digits.split_at(digits.len() - places);
    let part = part.trim_end_matches('0');
    if part.is_empty() { whole.to_owned() } else { format!("{whole}.{part}") }
}

/// What a rate needs to know of its surroundings to become a schedule.
#[derive(Debug, Clone, Copy, Default)]
pub struct Context {
    /// The interface's speed, for percentages.
    pub link_bits_per_second: Option<u64>,
    /// New flows and frames of one pass, for rates in flows.
    pub flows_per_pass: Option<(u64, u64)>,
}

/// Why a rate cannot be had here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoSchedule {
    /// Percent of an unknown speed.
    #[error(
        "the speed of this interface is not known, so a percentage of it is not either: give bits per second"
    )]
    LinkSpeedUnknown,
    /// Flows per second of traffic without flows.
    #[error("a rate in flows per second needs traffic with flows: this has {flows} in {frames} frames")]
    NoFlows {
        /// Flows in a pass.
        flows: u64,
        /// Frames in a pass.
        frames: u64,
    },
    /// Flows per second without knowing the flows.
    #[error(
        "a rate in flows per second needs to know how many flows there are: preload the capture (`.preload`), or give frames or bits per second"
    )]
    FlowsUnknown,
}

impl Rate {
    /// The schedule that has this rate.
    ///
    /// # Errors
    /// The rate needs to know something that `context` lacks: the speed of a link, or how many flows there are.
    pub fn schedule(self, context: Context) -> Result<Schedule, NoSchedule> {
        const SECOND: u128 = 1_000_000_000;
        Ok(match self {
            Rate::TopSpeed => Schedule::TopSpeed,
            Rate::Frames(rate) => evenly(rate.numerator.into(), SECOND * u128::from(rate.denominator)),
            Rate::Bits { bits_per_second, layer1 } => {
                Schedule::Bits { bits_per_second, overhead_bytes: if layer1 { LAYER1_OVERHEAD } else { 0 } }
            }
            Rate::Percent(part) => {
                let speed = context.link_bits_per_second.ok_or(NoSchedule::LinkSpeedUnknown)?;
                let bits =
                    u128::from(speed) * u128::from(part.numerator) / (u128::from(part.denominator) * 100);
                Schedule::Bits {
                    bits_per_second: u64::try_from(bits).unwrap_or(u64::MAX).max(1),
                    overhead_bytes: LAYER1_OVERHEAD,
                }
            }
            Rate::Flows(rate) => {
                let (flows, frames) = context.flows_per_pass.ok_or(NoSchedule::FlowsUnknown)?;
                if flows == 0 || frames == 0 {
                    return Err(NoSchedule::NoFlows { flows, frames });
                }
                evenly(
                    u128::from(frames) * u128::from(rate.numerator),
                    SECOND * u128::from(rate.denominator) * u128::from(flows),
                )
            }
        })
    }
}

/// `frames` in `per_ns`, reduced so that both fit 64 bits.
fn evenly(frames: u128, per_ns: u128) -> Schedule {
    let (frames, per_ns) = reduced(frames, per_ns);
    Schedule::Frames { frames: frames.max(1), per_ns: per_ns.max(1) }
}

/// Reads `5s`, `200ms`, `1m30s`, `2h`, `1.5s`.
///
/// # Errors
/// The text is no duration.
pub fn parse_duration(text: &str) -> Result<Duration, BadQuantity> {
    let bad = || BadQuantity::Duration(text.to_string());
    let mut rest = text.trim();
    let mut total: u128 = 0;
    if rest.is_empty() {
        return Err(bad());
    }
    while !rest.is_empty() {
        let (value, after) = number(rest).ok_or_else(bad)?;
        let end = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let ns: u128 = match unit.trim() {
            "ns" => 1,
            "us" | "µs" => 1_000,
            "ms" => 1_000_000,
            "s" | "sec" => 1_000_000_000,
            "m" | "min" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            "d" => 86_400_000_000_000,
            _ => return Err(bad()),
        };
        total += u128::from(value.numerator) * ns / u128::from(value.denominator);
        rest = after;
    }
    match u64::try_from(total) {
        Ok(ns) if ns > 0 => Ok(Duration::from_nanos(ns)),
        _ => Err(bad()),
    }
}

/// Reads `2x`, `0.5x`, `2`.
///
/// # Errors
/// The text is no speed.
pub fn parse_speed(text: &str) -> Result<Speed, BadQuantity> {
    let bad = || BadQuantity::Speed(text.to_string());
    let (value, rest) = number(text.trim()).ok_or_else(bad)?;
    if !matches!(rest, "" | "x" | "X") || value.numerator == 0 {
        return Err(bad());
    }
    Ok(Speed { numerator: value.numerator, denominator: value.denominator })
}

/// Reads `1000`, `1_000`, `10k`, `2.5M`, `1G`.
///
/// # Errors
/// The text is no number.
pub fn parse_count(text: &str) -> Result<u64, BadQuantity> {
    let bad = || BadQuantity::Count(text.to_string());
    let lower = text.trim().to_ascii_lowercase();
    let (value, rest) = number(&lower).ok_or_else(bad)?;
    let factor = thousands(rest).ok_or_else(bad)?;
    let product = u128::from(value.numerator) * u128::from(factor);
    let denominator = u128::from(value.denominator);
    if product == 0 || product % denominator != 0 {
        return Err(bad());
    }
    u64::try_from(product / denominator).map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(numerator: u64, denominator: u64) -> Exact {
        Exact { numerator, denominator }
    }

    #[test]
    fn rates_are_read_as_people_write_them() {
        assert_eq!("1.6mpps".parse(), Ok(Rate::Frames(exact(1_600_000, 1))));
        assert_eq!("7gbps".parse(), Ok(Rate::Bits { bits_per_second: 7_000_000_000, layer1: false }));
        assert_eq!("9.5 Gbit/s-L1".parse(), Ok(Rate::Bits { bits_per_second: 9_500_000_000, layer1: true }));
        assert_eq!("40%".parse(), Ok(Rate::Percent(exact(40, 1))));
        assert_eq!("100kfps".parse(), Ok(Rate::Flows(exact(100_000, 1))));
        assert_eq!("TOP".parse(), Ok(Rate::TopSpeed));
    }

    #[test]
    fn everyday_rates_are_read() {
        let bits = |bits_per_second| Ok(Rate::Bits { bits_per_second, layer1: false });
        for text in [
            "1Gbit",
            "1Gbit/s",
            "1Gbps",
            "1gbps",
            "1GBPS",
            "1 Gbit/s",
            "1G",
            "1g",
            "1000M",
            "1_000mbps",
            "1Gbits/sec",
            "1Gb/s",
        ] {
            assert_eq!(text.parse(), bits(1_000_000_000), "{text}");
        }
        assert_eq!("500Mb/s".parse(), bits(500_000_000));
        assert_eq!("1.5k".parse(), bits(1_500));
        assert_eq!("10G-l1".parse(), Ok(Rate::Bits { bits_per_second: 10_000_000_000, layer1: true }));
        for text in ["5kflows/s", "5k flows/s", "5 kflows/s", "5kfps", "5000 flows/s"] {
            assert_eq!(text.parse(), Ok(Rate::Flows(exact(5_000, 1))), "{text}");
        }
        for text in ["1000pps", "1kpps", "1 kpps", "1000 packets/s", "1k frames/s"] {
            assert_eq!(text.parse(), Ok(Rate::Frames(exact(1_000, 1))), "{text}");
        }
        for text in ["1GB/s", "500MBps", "500MB", "500mb", "10B/s", "5 megabytes/s"] {
            assert!(matches!(text.parse::<Rate>(), Err(BadQuantity::Bytes(_))), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_printed_is_read_as_the_same_rate(
            numerator in 1u64..=u64::MAX, places in 0u32..=19, kind in 0u8..5, bits in 1u64..1_600_000_000_000
        ) {
            let value = exact(numerator, 10u64.pow(places));
            let rate = match kind {
                0 => Rate::Frames(value),
                1 => Rate::Flows(value),
                2 => Rate::Percent(value),
                _ => Rate::Bits { bits_per_second: bits, layer1: kind == 3 },
            };
            let limit = if kind == 2 { 100.0 } else { 2.4e9 };
            proptest::prop_assume!(kind > 2 || value.as_f64() <= limit);
            let printed = rate.to_string();
            let same = |a: Exact, b: Exact| {
                u128::from(a.numerator) * u128::from(b.denominator) == u128::from(b.numerator) * u128::from(a.denominator)
            };
            match (printed.parse(), rate) {
                (Ok(Rate::Frames(a)), Rate::Frames(b))
                | (Ok(Rate::Flows(a)), Rate::Flows(b))
                | (Ok(Rate::Percent(a)), Rate::Percent(b)) => proptest::prop_assert!(same(a, b), "{}", printed),
                (read, rate) => proptest::prop_assert_eq!(read, Ok(rate), "{}", printed),
            }
        }
    }

    #[test]
    fn rates_are_told_as_results_tell_them() {
        for (written, told) in [
            ("500M", "500 Mbit/s"),
            ("7gbps-l1", "7 Gbit/s on the wire"),
            ("1.6mpps", "1.6 Mpps"),
            ("14300fps", "14.3 kflows/s"),
            ("0.5pps", "0.5 pps"),
            ("40%", "40%"),
            ("top", "top speed"),
        ] {
            assert_eq!(written.parse::<Rate>().unwrap().to_string(), told);
        }
    }

    #[test]
    fn bad_rates_are_told_apart() {
        assert!(matches!("0mbps".parse::<Rate>(), Err(BadQuantity::Zero(_))));
        assert!(matches!("0".parse::<Rate>(), Err(BadQuantity::Zero(_))));
        assert!(matches!("0.1bps".parse::<Rate>(), Err(BadQuantity::Zero(_))));
        assert!(matches!("1000".parse::<Rate>(), Err(BadQuantity::NoUnit(_))));
        assert!(matches!("9999tbps".parse::<Rate>(), Err(BadQuantity::TooMuch(_))));
        assert!(matches!("99999999999999999999pps".parse::<Rate>(), Err(BadQuantity::Rate(_))));
        for bad in ["", "fast", "-1mpps", "1..2mpps", "10mpps-l1", "5 gpq", "1Gi"] {
            assert!(matches!(bad.parse::<Rate>(), Err(BadQuantity::Rate(_))), "{bad}");
        }
    }

    #[test]
    fn a_rate_in_flows_spaces_the_frames_of_a_pass() {
        let context = Context { flows_per_pass: Some((40_686, 791_615)), ..Context::default() };
        let schedule = "100kfps".parse::<Rate>().unwrap().schedule(context).unwrap();
        let Schedule::Frames { frames, per_ns } = schedule else { panic!("{schedule:?}") };
        // 100,000 flows/s * 791,615 frames / 40,686 flows.
        assert!((frames as f64 * 1e9 / per_ns as f64 - 1_945_669.27).abs() < 0.01);
        assert_eq!(
            "1kfps".parse::<Rate>().unwrap().schedule(Context::default()),
            Err(NoSchedule::FlowsUnknown)
        );
    }

    #[test]
    fn durations_speeds_and_counts() {
        assert_eq!(parse_duration("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse_duration("200ms"), Ok(Duration::from_millis(200)));
        for bad in ["", "5", "0s", "s", "-1s", "5 parsecs", "99999999999999999d"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
        assert_eq!(parse_speed("0.5x"), Ok(Speed { numerator: 5, denominator: 10 }));
        assert!(parse_speed("0x").is_err() && parse_speed("fast").is_err());
        assert_eq!(parse_count("2.5M"), Ok(2_500_000));
        assert!(parse_count("0").is_err() && parse_count("1.5").is_err() && parse_count("").is_err());
    }
}
