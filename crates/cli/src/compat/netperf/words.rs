//! How netperf reads its command line: short options as getopt(3) has them, pairs, sizes, families, DSCP.

use anyhow::{Context, Result, bail};
use report::units::printable;
use std::collections::VecDeque;

/// Short options: a letter, and a colon behind it where it has a value.
#[derive(Debug)]
pub struct Getopt {
    words: VecDeque<String>,
    specs: &'static str,
    tool: &'static str,
    /// Letters left of a word such as `-cC`.
    cluster: String,
}

/// An option: its letter and its value.
pub type Given = (char, Option<String>);

impl Getopt {
    /// For the words of one part of a command line.
    pub fn new(tool: &'static str, specs: &'static str, words: VecDeque<String>) -> Getopt {
        Getopt { words, specs, tool, cluster: String::new() }
    }

    /// The next option; None: all are read, or `--` stood there.
    pub fn next(&mut self) -> Result<Option<Given>> {
        if self.cluster.is_empty() {
            let Some(word) = self.words.pop_front() else { return Ok(None) };
            if word == "--" {
                return Ok(None);
            }
            match word.strip_prefix('-') {
                Some(letters) if !letters.is_empty() => self.cluster = letters.to_owned(),
                // A server has no host.
                _ if self.specs.contains("H:") => bail!(
                    "`{0}` is a word without an option: {1} takes none; the host is {1} -H {0}",
                    printable(&word),
                    self.tool
                ),
                _ => bail!("`{}` is a word without an option: {} takes none", printable(&word), self.tool),
            }
        }
        let mut letters = self.cluster.chars();
        let letter = letters.next().unwrap_or('-');
        let rest = letters.as_str().to_owned();
        let place = self.specs.find(letter).filter(|_| letter != ':');
        let Some(place) = place else {
            bail!(
                "invalid option -- '{}': `{} -h` lists the options",
                printable(&letter.to_string()),
                self.tool
            )
        };
        if self.specs.get(place + letter.len_utf8()..).is_some_and(|after| after.starts_with(':')) {
            self.cluster.clear();
            let value = if rest.is_empty() { self.words.pop_front() } else { Some(rest) };
            let value = value.with_context(|| format!("-{letter} wants a value"))?;
            return Ok(Some((letter, Some(value))));
        }
        self.cluster = rest;
        Ok(Some((letter, None)))
    }

    /// Takes the next word if it is what may follow an option.
    pub fn take_if(&mut self, is: impl Fn(&str) -> bool) -> Option<String> {
        if !self.cluster.is_empty() || !self.words.front().is_some_and(|word| is(word)) {
            return None;
        }
        self.words.pop_front()
    }

    /// What follows `--`.
    pub fn rest(self) -> VecDeque<String> {
        self.words
    }
}

/// `x`: both, `x,`: the first, `,x`: the second, `x,y`: each.
pub fn pair(text: &str) -> (Option<&str>, Option<&str>) {
    match text.split_once(',') {
        None => (given(text), given(text)),
        Some((first, second)) => (given(first), given(second)),
    }
}

/// The same, but that `x` is the first alone.
pub fn pair_explicit(text: &str) -> (Option<&str>, Option<&str>) {
    match text.split_once(',') {
        None => (given(text), None),
        Some((first, second)) => (given(first), given(second)),
    }
}

fn given(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

/// A whole number with a suffix: k, m, g are 10^3, 10^6, 10^9, and K, M, G 2^10, 2^20, 2^30.
pub fn number(option: &str, text: &str) -> Result<i64> {
    let wrong = || {
        format!(
            "-{option} {}: a number is expected, such as 16384, 128k (10^3) or 128K (2^10)",
            printable(text)
        )
    };
    let (digits, factor) = match text.chars().last() {
        Some('k') => (text.strip_suffix('k'), 1000),
        Some('m') => (text.strip_suffix('m'), 1_000_000),
        Some('g') => (text.strip_suffix('g'), 1_000_000_000),
        Some('K') => (text.strip_suffix('K'), 1 << 10),
        Some('M') => (text.strip_suffix('M'), 1 << 20),
        Some('G') => (text.strip_suffix('G'), 1 << 30),
        _ => (Some(text), 1),
    };
    let number: i64 = digits.and_then(|digits| digits.parse().ok()).with_context(wrong)?;
    number.checked_mul(factor).with_context(wrong)
}

/// A number of bytes, or of things, that has bounds.
pub fn size(option: &str, text: &str, most: u32) -> Result<u32> {
    let size = number(option, text)?;
    match u32::try_from(size) {
        Ok(size) if size <= most => Ok(size),
        _ => bail!("-{option} {}: from 0 to {most} is possible", printable(text)),
    }
}

/// A family of addresses: is it IPv6? None: any.
pub fn family(option: &str, text: &str) -> Result<Option<bool>> {
    Ok(match text.to_ascii_lowercase().as_str() {
        "4" | "inet" | "inet4" | "af_inet" | "ipv4" | "v4" => Some(false),
        "6" | "inet6" | "af_inet6" | "ipv6" | "v6" => Some(true),
        "0" | "unspec" | "af_unspec" => None,
        _ => bail!("-{option}: {} is no family of addresses: 4, 6 or unspec", printable(text)),
    })
}

/// The byte of IP_TOS: a number (0x for hexadecimal), or a DSCP's name.
pub fn tos(text: &str) -> Result<u8> {
    let upper = text.to_ascii_uppercase();
    let wrong = || {
        format!(
            "-Y {}: a DSCP's name (CS0 to CS7, AF11 to AF43, EF, VA, LE) or IP_TOS as a number",
            printable(text)
        )
    };
    let digit =
        |at: usize| upper.as_bytes().get(at).filter(|byte| byte.is_ascii_digit()).map(|byte| byte - b'0');
    let dscp = match (upper.as_str(), digit(2), digit(3)) {
        ("EF", ..) => Some(46),
        ("VA", ..) => Some(44),
        ("LE", ..) => Some(1),
        ("LOWDELAY", ..) => return Ok(0x10),
        ("THROUGHPUT", ..) => return Ok(0x08),
        ("RELIABILITY", ..) => return Ok(0x04),
        ("MINCOST" | "LOWCOST", ..) => return Ok(0x02),
        (name, Some(class @ 0..=7), None) if name.starts_with("CS") && name.len() == 3 => Some(class * 8),
        (name, Some(class @ 1..=4), Some(drop @ 1..=3)) if name.starts_with("AF") && name.len() == 4 => {
            Some(class * 8 + drop * 2)
        }
        _ => None,
    };
    if let Some(dscp) = dscp {
        return Ok(dscp << 2);
    }
    let number = match upper.strip_prefix("0X") {
        Some(hex) => u8::from_str_radix(hex, 16),
        None => upper.parse(),
    };
    number.ok().with_context(wrong)
}

/// `1`, `0.5`, `-0.2`.
pub fn seconds(option: &str, text: &str) -> Result<f64> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| seconds.is_finite() && seconds.abs() < 1e9);
    seconds.with_context(|| format!("-{option} {}: a number of seconds is expected", printable(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(specs: &'static str, line: &str) -> Result<Vec<Given>> {
        let mut getopt = Getopt::new("netperf", specs, line.split_whitespace().map(str::to_owned).collect());
        let mut all = Vec::new();
        while let Some(given) = getopt.next()? {
            all.push(given);
        }
        Ok(all)
    }

    #[test]
    fn letters_stand_alone_or_together_and_values_behind_them_or_next() {
        let value = |text: &str| Some(text.to_owned());
        let got = read("cCl:H:", "-cCl10 -H host -- -x").expect("options");
        assert_eq!(got, [('c', None), ('C', None), ('l', value("10")), ('H', value("host"))]);
        for (line, words) in
            [("-x", "invalid option -- 'x'"), ("-l", "wants a value"), ("host", "a word without an option")]
        {
            assert!(read("l:", line).expect_err(line).to_string().contains(words), "{line}");
        }
        assert_eq!(read("D:", "-D -0.2").expect("a negative value"), [('D', value("-0.2"))]);
    }

    #[test]
    fn pairs_set_both_or_either() {
        assert_eq!(pair("1"), (Some("1"), Some("1")));
        assert_eq!(
            (pair("1,"), pair(",2"), pair("1,2")),
            ((Some("1"), None), (None, Some("2")), (Some("1"), Some("2")))
        );
        assert_eq!(pair_explicit("1"), (Some("1"), None));
    }

    #[test]
    fn small_suffixes_are_of_ten_and_large_ones_of_two() {
        let read = |text| number("s", text).ok();
        assert_eq!(
            [read("128k"), read("64K"), read("1G"), read("-5m")],
            [Some(128_000), Some(65_536), Some(1 << 30), Some(-5_000_000)]
        );
        assert!(
            ["", "k", "1.5", "9999999999g", "1q", "9223372036854775807k"]
                .iter()
                .all(|text| read(text).is_none())
        );
    }

    #[test]
    fn dscps_have_names() {
        let read = |text| tos(text).ok();
        assert_eq!(
            [read("cs1"), read("AF41"), read("EF"), read("0x10"), read("32")],
            [Some(32), Some(136), Some(184), Some(16), Some(32)]
        );
        assert!(["CS8", "AF44", "AF1", "256", "x"].iter().all(|text| read(text).is_none()));
    }
}
