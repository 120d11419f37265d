//! Type-length-value options: how each is laid out, so that one table writes them (expressions) and reads them
//! (dumps). IPv4 and TCP count the two leading bytes in the length, IPv6 does not, neighbour discovery counts
//! in units of eight.

use super::Protocol;

/// What stands after an option's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Nothing, not even a length.
    Bare,
    /// A length, then big-endian numbers of these widths in bytes (16 is an IPv6 address).
    Fixed(&'static [u8]),
    /// As `Fixed`, the length counted in units of eight bytes.
    Eights(&'static [u8]),
    /// A length, then as many 32-bit numbers as are given.
    Words,
    /// A length, a pointer, then IPv4 addresses, or a number of empty slots for them.
    Route,
    /// A length, a pointer, overflow and flag, then a number of empty 32-bit slots (RFC 791, Internet Timestamp).
    TimeStamps,
    /// A length, then bytes as given.
    Bytes,
    /// A length, then that many zero bytes.
    Zeros,
}

impl Layout {
    /// How the arguments are written, for the reference.
    pub fn arguments(self) -> String {
        match self {
            Layout::Bare | Layout::Fixed([]) | Layout::Eights([]) => String::new(),
            Layout::Fixed(widths) | Layout::Eights(widths) => {
                let names: Vec<&str> = widths
                    .iter()
                    .map(|width| match width {
                        6 => "MAC",
                        16 => "IPV6",
                        _ => "N",
                    })
                    .collect();
                format!("({})", names.join(", "))
            }
            Layout::Words => "(N, N, ...)".into(),
            Layout::Route => "(SLOTS or IPV4, ...)".into(),
            Layout::TimeStamps => "(SLOTS)".into(),
            Layout::Bytes => "(hex=\"..\")".into(),
            Layout::Zeros => "(N)".into(),
        }
    }
}

/// One option.
#[derive(Debug, Clone, Copy)]
pub struct OptionSpec {
    /// As written in expressions.
    pub name: &'static str,
    /// Other accepted names.
    pub aliases: &'static [&'static str],
    /// Its type on the wire.
    pub number: u8,
    /// What its value holds.
    pub layout: Layout,
    /// A phrase for the reference.
    pub doc: &'static str,
}

pub(super) const fn option(
    name: &'static str,
    aliases: &'static [&'static str],
    number: u8,
    layout: Layout,
    doc: &'static str,
) -> OptionSpec {
    OptionSpec { name, aliases, number, layout, doc }
}

impl OptionSpec {
    /// Whether `name` means this option.
    pub fn is_called(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
            || self.aliases.iter().any(|alias| alias.eq_ignore_ascii_case(name))
    }
}

/// How many bytes an option's length field counts for `data` bytes after number and length.
pub fn length_byte(protocol: Protocol, data: usize) -> Option<u8> {
    let counted = match protocol {
        Protocol::HopOpts | Protocol::DstOpts => data,
        Protocol::Icmpv6 if !(data + 2).is_multiple_of(8) => return None,
        Protocol::Icmpv6 => (data + 2) / 8,
        _ => data + 2,
    };
    u8::try_from(counted).ok()
}

/// The options in `bytes` as text, in the form the expression language reads.
pub fn describe(protocol: Protocol, table: &[OptionSpec], mut bytes: &[u8]) -> String {
    let mut parts = Vec::new();
    while let [number, after @ ..] = bytes {
        let spec = table.iter().find(|option| option.number == *number);
        if let Some(OptionSpec { layout: Layout::Bare, name, .. }) = spec {
            parts.push((*name).to_owned());
            bytes = after;
            // The rest of an IPv4 or TCP list after its end is padding.
            if *name == "eol" {
                break;
            }
            continue;
        }
        let data = after.split_first().and_then(|(length, rest)| {
            let counted = usize::from(*length);
            let size = match protocol {
                Protocol::HopOpts | Protocol::DstOpts => counted,
                Protocol::Icmpv6 => (counted * 8).checked_sub(2)?,
                _ => counted.checked_sub(2)?,
            };
            Some((rest.get(..size)?, rest.get(size..)?))
        });
        let Some((data, rest)) = data else {
            parts.push(format!("malformed({})", crate::hex::encode(bytes)));
            break;
        };
        parts.push(one(*number, spec, data));
        bytes = rest;
    }
    format!("[{}]", parts.join(", "))
}

/// One option with a length.
fn one(number: u8, spec: Option<&OptionSpec>, data: &[u8]) -> String {
    let name = spec.map_or("opt", |spec| spec.name);
    let arguments = match spec.map(|spec| spec.layout) {
        Some(Layout::Fixed(widths) | Layout::Eights(widths))
            if widths.iter().map(|width| usize::from(*width)).sum::<usize>() == data.len() =>
        {
            let mut rest = data;
            let mut numbers = Vec::new();
            for width in widths {
                let Some((head, tail)) = rest.split_at_checked(usize::from(*width)) else { break };
                rest = tail;
                let value = head.iter().fold(0u128, |value, byte| value << 8 | u128::from(*byte));
                numbers.push(match width {
                    6 => super::format_value(super::Kind::Mac, 48, value),
                    16 => super::format_value(super::Kind::Ipv6, 128, value),
                    _ => value.to_string(),
                });
            }
            numbers
        }
        Some(Layout::Words) if data.len().is_multiple_of(4) => data
            .chunks_exact(4)
            .map(|word| word.iter().fold(0u32, |value, byte| value << 8 | u32::from(*byte)).to_string())
            .collect(),
        Some(Layout::Route) if data.len() % 4 == 1 => data
            .get(1..)
            .unwrap_or_default()
            .chunks_exact(4)
            .map(|a| a.iter().map(u8::to_string).collect::<Vec<_>>().join("."))
            .collect(),
        Some(Layout::Zeros) => vec![data.len().to_string()],
        Some(_) => vec![format!("hex=\"{}\"", crate::hex::encode(data))],
        None => vec![number.to_string(), format!("hex=\"{}\"", crate::hex::encode(data))],
    };
    if arguments.is_empty() { name.into() } else { format!("{name}({})", arguments.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::super::Variable;
    use super::*;

    fn table(protocol: Protocol) -> &'static [OptionSpec] {
        match protocol.spec().variable {
            Variable::Options { table, .. } => table,
            _ => panic!("{protocol:?} has no options"),
        }
    }

    #[test]
    fn options_read_as_they_are_written() {
        let tcp = [2, 4, 5, 0xb4, 1, 3, 3, 7, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 0, 9, 9];
        assert_eq!(
            describe(Protocol::Tcp, table(Protocol::Tcp), &tcp),
            "[mss(1460), nop, wscale(7), sackok, timestamp(1, 0), eol]"
        );
        let hop = [5, 2, 0, 0, 1, 0];
        assert_eq!(describe(Protocol::HopOpts, table(Protocol::HopOpts), &hop), "[ra(0), padn(0)]");
        let nd = [1, 1, 2, 0, 0, 0, 0, 1];
        assert_eq!(describe(Protocol::Icmpv6, table(Protocol::Icmpv6), &nd), "[slla(02:00:00:00:00:01)]");
        let ip = [7, 7, 4, 10, 0, 0, 1, 1];
        assert_eq!(describe(Protocol::Ipv4, table(Protocol::Ipv4), &ip), "[rr(10.0.0.1), nop]");
    }

    #[test]
    fn a_length_that_cannot_be_is_said() {
        for bytes in [&[2u8, 1, 0][..], &[2, 9, 0], &[2]] {
            assert!(describe(Protocol::Tcp, table(Protocol::Tcp), bytes).contains("malformed"));
        }
        assert_eq!(length_byte(Protocol::Icmpv6, 5), None);
        assert_eq!(length_byte(Protocol::Tcp, 254), None);
    }
}
