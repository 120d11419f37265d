//! A value as written to numbers: what `10.0.0.0/16 every=10` means for an IPv4 address field.

use super::error::{Fault, Outcome, did_you_mean, nearest};
use super::syntax::{Argument, Span, Value, Word};
use std::net::{Ipv4Addr, Ipv6Addr};
use wire::Mac;
use wire::proto::{Auto, Field, Kind, Protocol, numbers};

/// The values a field takes, one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sequence {
    One(u128),
    /// From `first` towards `last` by `step` (at least 1), as far as that goes. `prefix` if written as one.
    Range {
        first: u128,
        last: u128,
        step: u128,
        prefix: bool,
    },
    List(Vec<u128>),
    /// Uniform over the range's values.
    Random {
        first: u128,
        last: u128,
        step: u128,
        prefix: bool,
    },
    RandomList(Vec<u128>),
    /// Ranges one behind the other, each from its first value towards its last by `step`; of random ones, uniform over the values
    /// of all.
    Runs {
        runs: Vec<(u128, u128)>,
        step: u128,
        random: bool,
    },
    /// Each of the range's values once, in an order of chance.
    Shuffled {
        first: u128,
        last: u128,
        step: u128,
    },
}

/// In which order a field takes its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    InTurn,
    Random,
    Shuffled,
}

impl Sequence {
    /// The value of frame 0 (of a random one, some value).
    pub fn first(&self) -> u128 {
        match self {
            Sequence::One(value) => *value,
            Sequence::Range { first, .. }
            | Sequence::Random { first, .. }
            | Sequence::Shuffled { first, .. } => *first,
            Sequence::List(items) | Sequence::RandomList(items) => items.first().copied().unwrap_or(0),
            Sequence::Runs { runs, .. } => runs.first().map_or(0, |(first, _)| *first),
        }
    }

    pub fn varies(&self) -> bool {
        !matches!(self, Sequence::One(_))
    }
}

/// How often a field advances.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Every {
    /// Once each that many frames.
    Frames(u64),
    /// Once each time that field has gone through its values: `sport`, or `udp.sport`.
    Wrap { layer: Option<String>, field: String, span: Span },
}

/// A value of a field, resolved.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    pub field: &'static Field,
    pub sequence: Sequence,
    pub every: Every,
    pub span: Span,
}

/// Reads the argument for `field`.
pub(super) fn setting(field: &'static Field, argument: &Argument<'_>) -> Outcome<Setting> {
    let mut modifiers = Modifiers::default();
    for (name, value) in &argument.modifiers {
        modifiers.take(name, value)?;
    }
    let (body, order) = match &argument.value {
        Value::Call(name, arguments, span) => {
            let order = match name.text.to_ascii_lowercase().as_str() {
                "random" => Order::Random,
                // Scapy's. What they draw from is the field, or what stands in the brackets.
                "randbyte" | "randshort" | "randint" | "randlong" | "randip" | "randip6" | "randmac"
                | "randnum" => Order::Random,
                "shuffled" => Order::Shuffled,
                "range" => Order::InTurn,
                other => {
                    let hint = did_you_mean(other, ["random", "shuffled", "range"].into_iter());
                    return Err(Fault::at(
                        name.span,
                        format!("unknown function `{other}`{hint}{}", forms(field)),
                    ));
                }
            };
            if let ("randnum", [from, to]) = (name.text.to_ascii_lowercase().as_str(), arguments.as_slice()) {
                let (from, to) = (plain(&from.value), plain(&to.value));
                let (from, to) = from.zip(to).ok_or_else(|| Fault::at(*span, "RandNum takes two numbers"))?;
                let sequence = ranged(scalar(field, &from)?, scalar(field, &to)?, 1, false, Order::Random);
                return Ok(Setting { field, sequence, every: Every::Frames(1), span: *span });
            }
            let mut body = None;
            for inner in arguments {
                match &inner.name {
                    Some(name) => modifiers.take(name, &inner.value)?,
                    None if body.is_none() => body = Some(&inner.value),
                    None => {
                        let (from, to) = (body.and_then(plain), plain(&inner.value));
                        let hint = match from.zip(to) {
                            Some((from, to)) => {
                                format!(
                                    "; did you mean `{}({}..{})`?",
                                    name.text,
                                    short(from.text),
                                    short(to.text)
                                )
                            }
                            None => String::new(),
                        };
                        let message =
                            format!("expected one range, prefix or list, then step= or every={hint}");
                        return Err(Fault::at(inner.value.span(), message));
                    }
                }
                for (name, value) in &inner.modifiers {
                    modifiers.take(name, value)?;
                }
            }
            match body {
                Some(body) => (Some(body), order),
                None if order == Order::Random => (None, order),
                None if order == Order::Shuffled => {
                    return Err(Fault::at(*span, "shuffled() needs a..b or a prefix"));
                }
                None => return Err(Fault::at(*span, "range() needs a..b")),
            }
        }
        other => (Some(other), Order::InTurn),
    };
    let span = argument.value.span();
    let step = modifiers.step.map_or(1, |(step, _)| step);
    let sequence = sequence(field, body, order, step)?;
    if let Some((_, span)) = modifiers.step
        && !matches!(
            sequence,
            Sequence::Range { .. }
                | Sequence::Random { .. }
                | Sequence::Shuffled { .. }
                | Sequence::Runs { .. }
        )
    {
        return Err(Fault::at(span, "step= goes with a range or prefix"));
    }
    if let (Some((_, span)), false) = (&modifiers.every, sequence.varies()) {
        return Err(Fault::at(*span, "every= goes with a value that varies"));
    }
    let every = modifiers.every.map_or(Every::Frames(1), |(every, _)| every);
    Ok(Setting { field, sequence, every, span })
}

/// What a field's values are drawn from or walk through; `None`: all that the field has room for.
fn sequence(field: &'static Field, body: Option<&Value<'_>>, order: Order, step: u128) -> Outcome<Sequence> {
    Ok(match body {
        None => Sequence::Random { first: 0, last: field.max(), step, prefix: true },
        Some(Value::List(items, span)) => {
            if items.is_empty() {
                return Err(Fault::at(*span, "the list is empty"));
            }
            let ranges = items.iter().map(|item| range_of(field, item)).collect::<Outcome<Vec<_>>>()?;
            let single = ranges.iter().all(|(first, last)| first == last);
            let values = || ranges.iter().map(|(first, _)| *first).collect();
            match (ranges.as_slice(), order) {
                ([(first, last)], _) => ranged(*first, *last, step, false, order),
                (_, Order::Random) if single => Sequence::RandomList(values()),
                (_, Order::InTurn) if single => Sequence::List(values()),
                (_, Order::Shuffled) => {
                    return Err(Fault::at(
                        *span,
                        "a list is not shuffled; write it in the order that it is to have",
                    ));
                }
                _ => Sequence::Runs { runs: ranges, step, random: order == Order::Random },
            }
        }
        Some(Value::Range(from, to)) => {
            let (first, last) = (scalar(field, from)?, scalar(field, to)?);
            ranged(first, last, step, false, order)
        }
        // Scapy's range.
        Some(Value::Tuple(items, span)) => {
            let ends = match items.as_slice() {
                [from, to] => plain(from).zip(plain(to)),
                _ => None,
            };
            let (from, to) = ends.ok_or_else(|| {
                Fault::at(*span, format!("(a, b) is a range, as a..b is; {}", forms(field)))
            })?;
            ranged(scalar(field, &from)?, scalar(field, &to)?, step, false, order)
        }
        Some(other) => {
            let word = plain(other).ok_or_else(|| Fault::at(other.span(), forms(field)))?;
            match prefix(field, &word)? {
                Some((first, last)) => ranged(first, last, step, true, order),
                None if order == Order::Random => {
                    return Err(Fault::at(word.span, "random() needs a range a..b, a prefix or a list"));
                }
                None if order == Order::Shuffled => {
                    return Err(Fault::at(word.span, "shuffled() needs a range a..b or a prefix"));
                }
                None => Sequence::One(scalar(field, &word)?),
            }
        }
    })
}

/// A single word, with quotes around it or without.
pub(super) fn plain<'v>(value: &'v Value<'_>) -> Option<Word<'v>> {
    match value {
        Value::Word(word) => Some(*word),
        Value::Text(text, span) => std::str::from_utf8(text).ok().map(|text| Word { text, span: *span }),
        _ => None,
    }
}

/// An item of a list: a single value as a range of one, or a range as it may stand alone, Scapy's among them.
fn range_of(field: &'static Field, item: &Value<'_>) -> Outcome<(u128, u128)> {
    let ends = match item {
        Value::Range(from, to) => Some((*from, *to)),
        Value::Tuple(items, _) => match items.as_slice() {
            [from, to] => plain(from).zip(plain(to)),
            _ => None,
        },
        _ => None,
    };
    if let Some((from, to)) = ends {
        return Ok((scalar(field, &from)?, scalar(field, &to)?));
    }
    let Some(word) = plain(item) else {
        return Err(Fault::at(
            item.span(),
            format!("a list holds values, ranges and prefixes; {}", forms(field)),
        ));
    };
    match prefix(field, &word)? {
        Some(ends) => Ok(ends),
        None => scalar(field, &word).map(|value| (value, value)),
    }
}

fn ranged(first: u128, last: u128, step: u128, prefix: bool, order: Order) -> Sequence {
    match order {
        _ if first == last => Sequence::One(first),
        Order::Random => Sequence::Random { first, last, step, prefix },
        Order::Shuffled => Sequence::Shuffled { first, last, step },
        Order::InTurn => Sequence::Range { first, last, step, prefix },
    }
}

#[derive(Default)]
struct Modifiers {
    step: Option<(u128, Span)>,
    every: Option<(Every, Span)>,
}

impl Modifiers {
    fn take(&mut self, name: &Word<'_>, value: &Value<'_>) -> Outcome<()> {
        let Value::Word(word) = value else {
            return Err(Fault::at(value.span(), format!("{}= takes a single value", name.text)));
        };
        let twice = match name.text.to_ascii_lowercase().as_str() {
            "step" => {
                let step = number(word.text)
                    .filter(|step| *step > 0)
                    .ok_or_else(|| Fault::at(word.span, "step= takes a number from 1"))?;
                self.step.replace((step, name.span)).is_some()
            }
            "every" => {
                let every = if word.text.starts_with(|c: char| c.is_ascii_digit()) {
                    let frames = number(word.text).and_then(|n| u64::try_from(n).ok()).filter(|n| *n > 0);
                    Every::Frames(
                        frames
                            .ok_or_else(|| Fault::at(word.span, "every= takes a number of frames from 1"))?,
                    )
                } else {
                    let (layer, field) = match word.text.split_once('.') {
                        Some((layer, field)) => (Some(layer.to_owned()), field),
                        None => (None, word.text),
                    };
                    Every::Wrap { layer, field: field.to_owned(), span: word.span }
                };
                self.every.replace((every, name.span)).is_some()
            }
            other => {
                let hint = did_you_mean(other, ["step", "every"].into_iter());
                let message = format!(
                    "`{other}` is no modifier of a value{hint}there are step= and every=, and fields are separated by `,`"
                );
                return Err(Fault::at(name.span, message));
            }
        };
        if twice { Err(Fault::at(name.span, format!("{}= is given twice", name.text))) } else { Ok(()) }
    }
}

/// A decimal or 0x hexadecimal number.
pub(super) fn number(text: &str) -> Option<u128> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) if digits.bytes().all(|c| c.is_ascii_hexdigit()) => {
            u128::from_str_radix(digits, 16).ok()
        }
        Some(_) => None,
        None if text.bytes().all(|c| c.is_ascii_digit()) => text.parse().ok(),
        None => None,
    }
}

/// One value of `field`.
fn scalar(field: &'static Field, word: &Word<'_>) -> Outcome<u128> {
    let text = word.text;
    let named =
        || field.names.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)).map(|(_, value)| *value);
    let value = match field.kind {
        _ if text.starts_with("0x") || text.starts_with("0X") => number(text),
        Kind::Uint | Kind::Hex => number(text).or_else(named).or_else(|| announced(field, text)),
        Kind::Mac => text.parse::<Mac>().ok().map(|Mac(b)| b.iter().fold(0, |v, b| v << 8 | u128::from(*b))),
        Kind::Ipv4 => text.parse::<Ipv4Addr>().ok().map(|a| u128::from(u32::from(a))),
        Kind::Ipv6 => text.parse::<Ipv6Addr>().ok().map(u128::from),
        Kind::Flags(names) => number(text).or_else(|| flags(field, names, text)),
    };
    let all_digits = text.bytes().all(|c| c.is_ascii_digit()) && matches!(field.kind, Kind::Uint | Kind::Hex);
    match value {
        Some(value) if value <= field.max() => Ok(value),
        None if !all_digits => {
            let hint = meant(field, text);
            Err(Fault::at(word.span, format!("`{}` does not suit{hint}{}", short(text), forms(field))))
        }
        _ => {
            let message = format!(
                "{} does not fit `{}`: it has {} bits, 0 to {}",
                short(text),
                field.name,
                field.bits,
                field.max()
            );
            Err(Fault::at(word.span, message))
        }
    }
}

/// Words that stand for no value: `auto` for any field that can be filled in, `bad` for a checksum, too.
pub(super) fn specials(field: &Field) -> &'static [&'static str] {
    match field.auto {
        Auto::No => &[],
        Auto::HeaderChecksum | Auto::Checksum | Auto::PseudoChecksum | Auto::UdpChecksum | Auto::Crc32c => {
            &["auto", "bad"]
        }
        _ => &["auto"],
    }
}

/// A field that names the next protocol takes that protocol's name.
fn announced(field: &Field, text: &str) -> Option<u128> {
    let protocol = Protocol::by_name(text).filter(|_| field.auto == Auto::Next)?;
    match field.bits {
        16 => numbers::ethertype_of(protocol).map(u128::from),
        _ => numbers::ip_number_of(protocol).map(u128::from),
    }
}

/// A range or a random value in the spelling of other tools, as it is written here.
fn otherwise(text: &str) -> Option<String> {
    if ["random", "rand", "rnd"].iter().any(|word| text.eq_ignore_ascii_case(word)) {
        return Some("random()".to_owned());
    }
    let (from, to) = text.split_once('-')?;
    let is_end = |end: &str| number(end).is_some() && !end.is_empty() || end.parse::<Ipv4Addr>().is_ok();
    (is_end(from) && is_end(to)).then(|| format!("{from}..{to}"))
}

/// What was meant by a word that the field does not take, as [`did_you_mean`] says it.
fn meant(field: &Field, text: &str) -> String {
    if let Some(written) = otherwise(text) {
        return format!("; did you mean `{written}`? ");
    }
    let named = field.names.iter().map(|(name, _)| *name);
    let Kind::Flags(names) = field.kind else {
        // As in `announced`.
        let takes = |name: &&str| announced(field, name).is_some();
        let protocols = Protocol::ALL.into_iter().map(|protocol| protocol.spec().name).filter(takes);
        return did_you_mean(text, named.chain(protocols).chain(specials(field).iter().copied()));
    };
    // Of several flags those that there are stay as they stand.
    let whole = || named.clone().chain(names.iter().copied().filter(|name| name.len() > 1));
    let part = |part| match flags(field, names, part) {
        Some(_) => Some(part),
        None => nearest(part, whole()),
    };
    let mut mended = String::new();
    for piece in text.split_inclusive(['+', '|']) {
        let (name, mark) = piece.split_at(piece.trim_end_matches(['+', '|']).len());
        let Some(name) = part(name).filter(|name| !name.is_empty()) else { return "; ".into() };
        mended.extend([name, mark]);
    }
    // Without a last flag there is nothing to go by.
    match mended.ends_with(['+', '|']) {
        true => "; ".into(),
        false => did_you_mean(text, std::iter::once(&*mended)),
    }
}

/// `SA`, `SYN+ACK`, or `DF|MF`. A whole name comes before its letters: ECE is one flag.
fn flags(field: &Field, names: &[&str], text: &str) -> Option<u128> {
    let bit = |name: &str| names.iter().position(|n| n.eq_ignore_ascii_case(name)).map(|i| 1u128 << i);
    let whole = |part: &str| field.names.iter().find(|(name, _)| name.eq_ignore_ascii_case(part));
    let letters = |part: &str| {
        // Between two marks there is a letter.
        let mut each = (!part.is_empty()).then(|| part.char_indices())?;
        each.try_fold(0, |set, (at, c)| Some(set | bit(part.get(at..at + c.len_utf8())?)?))
    };
    let by_letter = names.iter().all(|name| name.len() == 1);
    if text.is_empty() {
        return Some(0);
    }
    text.split(['+', '|']).try_fold(0, |set, part| {
        let named = whole(part).map(|(_, value)| *value);
        Some(set | named.or_else(|| if by_letter { letters(part) } else { bit(part) })?)
    })
}

/// First and last address of a prefix, if `word` is written as one.
fn prefix(field: &'static Field, word: &Word<'_>) -> Outcome<Option<(u128, u128)>> {
    let Some((address, length)) = word.text.split_once('/') else { return Ok(None) };
    if !matches!(field.kind, Kind::Mac | Kind::Ipv4 | Kind::Ipv6) {
        return Err(Fault::at(word.span, format!("a prefix needs an address field; {}", forms(field))));
    }
    let inner = Span { start: word.span.start, end: word.span.end.min(word.span.start + address.len()) };
    let first = scalar(field, &Word { text: address, span: inner })?;
    let bits = u32::from(field.bits);
    let Some(length) = length.parse::<u32>().ok().filter(|length| *length <= bits) else {
        return Err(Fault::at(
            word.span,
            format!("a prefix length of `{}` goes from 0 to {bits}", field.name),
        ));
    };
    let host = if length == bits { 0 } else { field.max() >> length };
    if first & host != 0 {
        let network = wire::proto::format_value(field.kind, field.bits, first & !host);
        let message =
            format!("{} has host bits set: write {network}/{length}, or a range a..b", short(word.text));
        return Err(Fault::at(word.span, message));
    }
    Ok(Some((first, first | host)))
}

/// What may be written for the field.
fn forms(field: &Field) -> String {
    let one = match field.kind {
        Kind::Mac => {
            "an Ethernet address such as 02:00:00:00:00:01, a prefix such as 02:00:00:00:00:00/24".to_owned()
        }
        Kind::Ipv4 => "an IPv4 address such as 198.18.0.1, a prefix such as 198.18.0.0/16".to_owned(),
        Kind::Ipv6 => "an IPv6 address such as 2001:db8::1, a prefix such as 2001:db8::/64".to_owned(),
        Kind::Flags(names) if names.iter().all(|n| n.len() == 1) => {
            let whole: Vec<&str> = field.names.iter().map(|(name, _)| *name).collect();
            let whole = match whole.is_empty() {
                true => String::new(),
                false => format!(", names of {} joined by + or |", whole.join(", ")),
            };
            format!("letters of {} such as SA{whole}, a number", names.concat())
        }
        Kind::Flags(names) => format!("names of {} joined by + or |, a number", names.join(", ")),
        Kind::Uint | Kind::Hex if !field.names.is_empty() => {
            let names: Vec<&str> = field.names.iter().map(|(name, _)| *name).collect();
            format!("a number from 0 to {}, one of {}", field.max(), names.join(", "))
        }
        Kind::Uint | Kind::Hex => format!("a number from 0 to {}", field.max()),
    };
    format!("`{}` takes {one}, a range a..b, a list [a, b, c..d] or random(a..b)", field.name)
}

/// Long words are cut in messages.
pub(super) fn short(text: &str) -> String {
    if text.chars().count() <= 60 {
        text.into()
    } else {
        text.chars().take(57).chain("...".chars()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::syntax;

    fn read(protocol: Protocol, argument: &str) -> Outcome<Setting> {
        let text = format!("x({argument})");
        let layers = syntax::parse(&text)?;
        let argument = &layers[0].arguments[0];
        setting(protocol.spec().field(argument.name.unwrap().text).unwrap(), argument)
    }

    fn sequence(protocol: Protocol, argument: &str) -> Sequence {
        read(protocol, argument).unwrap().sequence
    }

    #[test]
    fn every_form_of_a_value() {
        use Protocol::*;
        assert_eq!(sequence(Ipv4, "ttl=0x40"), Sequence::One(64));
        assert_eq!(sequence(Ipv4, "proto=udp"), Sequence::One(17));
        assert_eq!(sequence(Ether, "type=ipv6"), Sequence::One(0x86dd));
        assert_eq!(sequence(Arp, "op=is-at"), Sequence::One(2));
        assert_eq!(sequence(Tcp, "flags=SA"), Sequence::One(0x12));
        for (flags, value) in
            [("SYN", 2), ("syn+ack", 0x12), ("SYN|ACK", 0x12), ("S+A", 0x12), ("ECE", 0x40), ("CWR|E", 0xc0)]
        {
            assert_eq!(sequence(Tcp, &format!("flags={flags}")), Sequence::One(value), "{flags}");
        }
        assert_eq!(sequence(Ipv4, "flags=DF+MF"), Sequence::One(3));
        assert_eq!(sequence(Ipv4, "flags=DF|MF"), Sequence::One(3));
        assert_eq!(sequence(Tcp, "flags=[S, SA, 0x10]"), Sequence::List(vec![2, 0x12, 0x10]));
        assert_eq!(
            sequence(Ipv4, "src=10.0.0.0/24 step=2"),
            Sequence::Range { first: 0x0a00_0000, last: 0x0a00_00ff, step: 2, prefix: true }
        );
        assert_eq!(
            sequence(Udp, "sport=random(5..1)"),
            Sequence::Random { first: 5, last: 1, step: 1, prefix: false }
        );
        assert_eq!(sequence(Udp, "sport=random([1, 2])"), Sequence::RandomList(vec![1, 2]));
        let runs = |runs: &[(u128, u128)], step, random| Sequence::Runs { runs: runs.to_vec(), step, random };
        assert_eq!(sequence(Tcp, "dport=[1..79,81..442]"), runs(&[(1, 79), (81, 442)], 1, false));
        assert_eq!(sequence(Tcp, "dport=[80, (1, 79)]"), runs(&[(80, 80), (1, 79)], 1, false));
        assert_eq!(sequence(Tcp, "dport=[9..1, 80] step=2"), runs(&[(9, 1), (80, 80)], 2, false));
        assert_eq!(
            sequence(Ipv4, "src=random([10.0.0.0/8, 192.168.0.0/16])"),
            runs(&[(0x0a00_0000, 0x0aff_ffff), (0xc0a8_0000, 0xc0a8_ffff)], 1, true)
        );
        assert_eq!(
            sequence(Udp, "sport=[1..9]"),
            Sequence::Range { first: 1, last: 9, step: 1, prefix: false },
            "one range"
        );
        assert_eq!(
            sequence(Udp, "sport=random()"),
            Sequence::Random { first: 0, last: 0xffff, step: 1, prefix: true }
        );
        let setting = read(Udp, "sport=range(1..9, step=2, every=10)").unwrap();
        assert_eq!(setting.sequence, Sequence::Range { first: 1, last: 9, step: 2, prefix: false });
        assert_eq!(setting.every, Every::Frames(10));
        assert_eq!(sequence(Ipv6, "src=::/128"), Sequence::One(0));
    }

    #[test]
    fn what_does_not_suit_is_refused_with_what_would() {
        use Protocol::*;
        for (protocol, argument, part) in [
            (Ipv4, "ttl=256", "it has 8 bits, 0 to 255"),
            (Ipv4, "ttl=340282366920938463463374607431768211456", "it has 8 bits"),
            (Ipv4, "src=10.0.0.256", "an IPv4 address such as"),
            (Ipv4, "src=10.0.0.1/24", "host bits set: write 10.0.0.0/24"),
            (Ipv4, "src=10.0.0.0/33", "0 to 32"),
            (Ipv6, "src=::/129", "0 to 128"),
            (Ipv4, "ttl=1..4 step=0", "step= takes"),
            (Ipv4, "ttl=1..4 every=0", "every= takes"),
            (Ipv4, "ttl=1 every=2", "that varies"),
            (Ipv4, "ttl=[1, 2] step=2", "range or prefix"),
            (Ipv4, "ttl=1..4 stp=2", "did you mean `step`?"),
            (Ipv4, "ttl=[]", "empty"),
            (Ipv4, "ttl=[1..256]", "it has 8 bits"),
            (Ipv4, "src=[10.0.0.1/24, 1.1.1.1]", "host bits set"),
            (Ipv4, "ttl=[(1, 2, 3), 4]", "a list holds values, ranges and prefixes; `ttl` takes"),
            (Ipv4, "ttl=shuffled([1..2, 4])", "a list is not shuffled"),
            (Ipv4, "ttl=rnadom(1..2)", "did you mean `random`?"),
            (Ipv4, "ttl=\"x\"", "a number from 0 to 255"),
            (
                Tcp,
                "flags=SX",
                "letters of FSRPAUECN such as SA, names of FIN, SYN, RST, PSH, ACK, URG, ECE, CWR joined by + or |",
            ),
            (Tcp, "flags=SYM", "does not suit; did you mean `SYN`? `flags` takes"),
            (Tcp, "flags=SYN+ACL", "does not suit; did you mean `SYN+ACK`?"),
            (Tcp, "flags=syn|S|akc", "did you mean `syn|S|ACK`?"),
            (Tcp, "flags=SYM+banana", "does not suit; `flags`"),
            (Tcp, "flags=SYM+", "does not suit; `flags`"),
            (Tcp, "flags=[SYN, FIM]", "did you mean `FIN`?"),
            (Ipv4, "flags=DG", "did you mean `DF`?"),
            (Ipv4, "proto=udpp", "did you mean `udp`?"),
            (Ether, "type=ipv5", "did you mean `ipv4`?"),
            (Dns, "rcode=nxdomian", "did you mean `nxdomain`?"),
            (Tcp, "flags=+", "does not suit"),
            (Arp, "op=whohas", "did you mean `who-has`?"),
        ] {
            let message = read(protocol, argument).unwrap_err().message;
            assert!(message.contains(part), "{argument}: {message}");
        }
    }
}
