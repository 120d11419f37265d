//! Rules from text: one directive to a line, `#` starts a comment. Words are fragroute's. A text without rules is right,
//! too: frames stay as they are.

use super::{Favour, Ip6Option, IpChaff, IpOption, Rule, Rules, TcpChaff, Which};

/// A line that is no rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct BadRule {
    /// From 1.
    pub line: usize,
    /// What is wrong, and what is right.
    pub what: String,
}

/// The most rules: chaff doubles what comes before it.
const MAX_RULES: usize = 1000;

impl Rules {
    /// Reads rules. `seed` is the key of all that is random.
    ///
    /// # Errors
    /// The line that cannot be read, and why.
    pub fn parse(text: &str, seed: u64) -> Result<Rules, BadRule> {
        let mut rules = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line_number = index + 1;
            let bad = |what| BadRule { line: line_number, what };
            let line = line.split('#').next().unwrap_or("");
            let words: Vec<&str> = line.split_whitespace().collect();
            let Some((name, arguments)) = words.split_first() else { continue };
            if rules.len() == MAX_RULES {
                return Err(bad(format!("more than {MAX_RULES} rules")));
            }
            rules.extend(directive(name, arguments).map_err(bad)?);
        }
        Ok(Rules { rules, seed })
    }
}

/// `None` where a line is right, and does nothing to frames.
fn directive(name: &str, arguments: &[&str]) -> Result<Option<Rule>, String> {
    match (name, arguments) {
        // Rule files have it to watch fragroute at work.
        ("print", []) => Ok(None),
        ("print", _) => Err("print: nothing stands behind it".to_owned()),
        _ => rule(name, arguments).map(Some),
    }
}

fn rule(name: &str, arguments: &[&str]) -> Result<Rule, String> {
    let usage = |form: &str| Err(format!("{name}: write {form}"));
    match (name, arguments) {
        ("ip_frag", [size, overlap @ ..]) => {
            let size = piece(name, size)?;
            if !size.is_multiple_of(8) {
                return Err(format!("ip_frag: {size} is no multiple of 8, which sizes of fragments must be"));
            }
            Ok(Rule::Fragment { size, overlap: favour(name, overlap)? })
        }
        ("ip_frag", _) => usage("ip_frag SIZE [old|new]"),
        ("tcp_seg", [size, overlap @ ..]) => {
            Ok(Rule::Segment { size: piece(name, size)?, overlap: favour(name, overlap)? })
        }
        ("tcp_seg", _) => usage("tcp_seg SIZE [old|new]"),
        ("ip_chaff", ["dup"]) => Ok(Rule::IpChaff(IpChaff::Duplicate)),
        ("ip_chaff", ["opt"]) => Ok(Rule::IpChaff(IpChaff::Option)),
        ("ip_chaff", [ttl]) => {
            Ok(Rule::IpChaff(IpChaff::Ttl(number("ip_chaff dup, opt or a TTL", ttl, 0, 255)?)))
        }
        ("ip_chaff", _) => usage("ip_chaff dup|opt|TTL"),
        ("tcp_chaff", [kind]) => Ok(Rule::TcpChaff(match *kind {
            "cksum" => TcpChaff::Checksum,
            "null" => TcpChaff::NoFlags,
            "paws" => TcpChaff::Paws,
            "rexmit" => TcpChaff::Retransmission,
            "seq" => TcpChaff::Sequence,
            "syn" => TcpChaff::Syn,
            ttl => {
                TcpChaff::Ttl(number("tcp_chaff cksum, null, paws, rexmit, seq, syn or a TTL", ttl, 0, 255)?)
            }
        })),
        ("tcp_chaff", _) => usage("tcp_chaff cksum|null|paws|rexmit|seq|syn|TTL"),
        ("dup" | "drop", [which, percent]) => {
            let which = match *which {
                "first" => Which::First,
                "last" => Which::Last,
                "random" => Which::Random,
                _ => return usage(&format!("{name} first|last|random PERCENT")),
            };
            let percent = number(name, percent, 1, 100)?;
            Ok(if name == "dup" { Rule::Duplicate(which, percent) } else { Rule::Drop(which, percent) })
        }
        ("dup" | "drop", _) => usage(&format!("{name} first|last|random PERCENT")),
        ("order", ["random"]) => Ok(Rule::Shuffle),
        ("order", ["reverse"]) => Ok(Rule::Reverse),
        ("order", _) => usage("order random|reverse"),
        ("ip_ttl", [ttl]) => Ok(Rule::Ttl(number(name, ttl, 0, 255)?)),
        ("ip_ttl", _) => usage("ip_ttl TTL"),
        ("ip_tos", [tos]) => Ok(Rule::Tos(number(name, tos, 0, 255)?)),
        ("ip_tos", _) => usage("ip_tos TOS"),
        ("ip_opt" | "tcp_opt" | "ip6_opt", _) => options(name, arguments),
        ("ip6_qos", [class, label]) => Ok(Rule::Ip6Qos {
            class: hexadecimal(name, class, 0xff)? as u8,
            label: hexadecimal(name, label, 0xf_ffff)?,
        }),
        ("ip6_qos", _) => usage("ip6_qos CLASS LABEL, both hexadecimal"),
        ("delay", _) => Err("delay: frames keep their captured time; change times when replaying".to_owned()),
        ("echo", _) => Err("echo: nothing is printed; write it as a comment, behind #".to_owned()),
        _ => Err(format!(
            "{name} is no rule; ip_frag, tcp_seg, ip_chaff, tcp_chaff, dup, drop, order, ip_ttl, ip_tos, ip_opt, \
             tcp_opt, ip6_opt and ip6_qos are"
        )),
    }
}

/// Options of headers.
fn options(name: &str, arguments: &[&str]) -> Result<Rule, String> {
    let usage = |form: &str| Err(format!("{name}: write {form}"));
    match (name, arguments) {
        ("ip_opt", [kind @ ("lsrr" | "ssrr"), pointer, hops @ ..]) if !hops.is_empty() => {
            let hops = hops.iter().map(|hop| address(name, hop)).collect::<Result<Vec<_>, _>>()?;
            if hops.len() > 9 {
                return Err("ip_opt: an IPv4 header has room for 9 addresses".to_owned());
            }
            Ok(Rule::IpOption(IpOption::Route {
                strict: *kind == "ssrr",
                pointer: number(name, pointer, 0, 255)?,
                hops,
            }))
        }
        ("ip_opt", ["raw", words @ ..]) if !words.is_empty() => {
            Ok(Rule::IpOption(IpOption::Raw(option(name, words)?)))
        }
        ("ip_opt", _) => usage("ip_opt lsrr|ssrr POINTER ADDRESS..., or ip_opt raw BYTES, hexadecimal"),
        ("tcp_opt", ["mss", size]) => {
            let [high, low] = number::<u16>(name, size, 0, 65_535)?.to_be_bytes();
            Ok(Rule::TcpOption(vec![2, 4, high, low]))
        }
        // Three bytes (RFC 7323 section 2.2), and one of padding before them.
        ("tcp_opt", ["wscale", shift]) => Ok(Rule::TcpOption(vec![1, 3, 3, number(name, shift, 0, 255)?])),
        ("tcp_opt", ["raw", words @ ..]) if !words.is_empty() => Ok(Rule::TcpOption(option(name, words)?)),
        ("tcp_opt", _) => usage("tcp_opt mss SIZE, tcp_opt wscale SHIFT, or tcp_opt raw BYTES, hexadecimal"),
        ("ip6_opt", ["route", left, hops @ ..]) if !hops.is_empty() => {
            let hops = hops.iter().map(|hop| address(name, hop)).collect::<Result<Vec<_>, _>>()?;
            if hops.len() > 127 {
                return Err("ip6_opt: a routing header has room for 127 addresses".to_owned());
            }
            Ok(Rule::Ip6Option(Ip6Option::Route { left: number(name, left, 0, 255)?, hops }))
        }
        ("ip6_opt", ["raw", words @ ..]) if !words.is_empty() => {
            let bytes = bytes(name, words)?;
            if (bytes.len() + 2) % 8 != 0 || bytes.len() > 2046 {
                return Err(format!(
                    "ip6_opt raw: {} bytes, and with the two before them they must be a multiple of 8, at most 2048",
                    bytes.len()
                ));
            }
            Ok(Rule::Ip6Option(Ip6Option::Raw(bytes)))
        }
        _ => usage("ip6_opt route LEFT ADDRESS..., or ip6_opt raw BYTES, hexadecimal"),
    }
}

/// The size of pieces. Scripts look for these words, which are tcprewrite 4.5.5's.
fn piece(name: &str, text: &str) -> Result<usize, String> {
    number(name, text, 1, 65_535)
        .map_err(|_| format!("{name}: the size must be between 1 and 65535, not \"{text}\""))
}

fn number<T: TryFrom<u64>>(name: &str, text: &str, least: u64, most: u64) -> Result<T, String> {
    let read = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    read.filter(|value| (least..=most).contains(value))
        .and_then(|value| T::try_from(value).ok())
        .ok_or_else(|| format!("{name}: \"{text}\" is not a number from {least} to {most}"))
}

fn hexadecimal(name: &str, text: &str, most: u32) -> Result<u32, String> {
    u32::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16)
        .ok()
        .filter(|value| *value <= most)
        .ok_or_else(|| format!("{name}: \"{text}\" is not a hexadecimal number up to {most:x}"))
}

fn favour(name: &str, words: &[&str]) -> Result<Option<Favour>, String> {
    match words {
        [] => Ok(None),
        ["old"] => Ok(Some(Favour::Old)),
        ["new"] => Ok(Some(Favour::New)),
        _ => Err(format!("{name}: behind the size write old, new or nothing")),
    }
}

fn address<T: std::str::FromStr>(name: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{name}: \"{text}\" is not an address"))
}

/// Hexadecimal digits, bytes parted by `|`, spaces or nothing.
fn bytes(name: &str, words: &[&str]) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    for word in words.iter().flat_map(|word| word.split('|')) {
        let digits = word.strip_prefix("0x").unwrap_or(word);
        match wire::hex::decode(digits) {
            Some(read) if !read.is_empty() => bytes.extend(read),
            _ => return Err(format!("{name} raw: \"{word}\" is not bytes in hexadecimal, two digits each")),
        }
    }
    Ok(bytes)
}

/// Bytes of options, padded with "end of options" to whole words.
fn option(name: &str, words: &[&str]) -> Result<Vec<u8>, String> {
    let mut bytes = bytes(name, words)?;
    if bytes.len() > 40 {
        return Err(format!("{name} raw: {} bytes, and a header has room for 40", bytes.len()));
    }
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    Ok(bytes)
}
