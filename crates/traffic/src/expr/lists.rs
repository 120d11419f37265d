//! The variable parts of headers: options, segment lists, GTP-U extension headers; and bytes as written.

use super::error::{Fault, Outcome, did_you_mean, no_call};
use super::syntax::{Argument, Span, Value, Word};
use super::value::{number, short};
use std::net::{Ipv4Addr, Ipv6Addr};
use wire::Mac;
use wire::proto::options::length_byte;
use wire::proto::{Layout, OptionSpec, Protocol};

/// Bytes of any list, at most: longer than every header can say.
const MAX_LIST: usize = 2048;

/// Bytes from hexadecimal digits, with blanks, `:` or `-` between bytes as one likes.
pub(super) fn from_hex(text: &[u8], span: Span) -> Outcome<Vec<u8>> {
    let digits: Vec<u8> = text
        .iter()
        .copied()
        .filter(|c| !c.is_ascii_whitespace() && !matches!(c, b':' | b'-' | b'_'))
        .collect();
    let digits = digits.strip_prefix(b"0x").unwrap_or(&digits);
    if !digits.len().is_multiple_of(2) {
        return Err(Fault::at(span, "an odd number of hexadecimal digits"));
    }
    let bytes = wire::hex::decode(digits);
    bytes.ok_or_else(|| Fault::at(span, "expected hexadecimal digits, such as \"de ad be ef\""))
}

/// The bytes of `hex("..")` or of a string of hexadecimal digits after `hex=`.
pub(super) fn hex_value(value: &Value<'_>) -> Outcome<Option<Vec<u8>>> {
    let Value::Call(name, arguments, span) = value else { return Ok(None) };
    if !name.text.eq_ignore_ascii_case("hex") {
        return Ok(None);
    }
    match arguments.as_slice() {
        [Argument { name: None, value: Value::Text(text, span), .. }] => from_hex(text, *span).map(Some),
        _ => Err(Fault::at(*span, "write hex(\"de ad be ef\")")),
    }
}

/// `options=[...]` or `options=hex("..")`, padded to `align` together with the `before` bytes that precede it.
pub(super) fn options(
    protocol: Protocol,
    table: &'static [OptionSpec],
    value: &Value<'_>,
) -> Outcome<Vec<u8>> {
    let out = match (hex_value(value)?, value) {
        (Some(bytes), _) => bytes,
        // What Scapy prints for none.
        (None, Value::Text(text, _)) if text.is_empty() => Vec::new(),
        (None, Value::List(items, _)) => {
            let mut out = Vec::new();
            for item in items {
                one_option(protocol, table, item, &mut out)?;
                if out.len() > MAX_LIST {
                    return Err(Fault::at(item.span(), "the options are longer than any header holds"));
                }
            }
            out
        }
        _ => {
            return Err(Fault::at(
                value.span(),
                "expected a list such as options=[nop], or options=hex(\"..\")",
            ));
        }
    };
    if out.len() > MAX_LIST {
        return Err(Fault::at(value.span(), "the options are longer than any header holds"));
    }
    Ok(out)
}

/// Fills up to a multiple of `align`, where `before` bytes of the header come first.
pub(super) fn pad(protocol: Protocol, out: &mut Vec<u8>, before: usize, align: usize) {
    let gap = (before + out.len()).next_multiple_of(align) - before - out.len();
    match (protocol, gap) {
        (Protocol::HopOpts | Protocol::DstOpts, 0) => {}
        // RFC 8200 section 4.2: Pad1 for one byte, PadN for more.
        (Protocol::HopOpts | Protocol::DstOpts, 1) => out.push(0),
        (Protocol::HopOpts | Protocol::DstOpts, gap) => {
            out.extend([1, (gap - 2) as u8]);
            out.resize(out.len() + gap - 2, 0);
        }
        (_, gap) => out.resize(out.len() + gap, 0),
    }
}

/// A pointer and the slots behind it: so many that are empty, or addresses.
fn slots(spec: &OptionSpec, arguments: &[Argument<'_>], wants: &dyn Fn(&str) -> Fault) -> Outcome<Vec<u8>> {
    let argument_list = || wants(&format!("{}{}", spec.name, spec.layout.arguments()));
    // The pointer counts from 1 at the option's first byte: the first slot (RFC 791 section 3.1).
    let mut data = if spec.layout == Layout::Route { vec![4] } else { vec![5, 0] };
    let slots = match arguments {
        [Argument { value: Value::Word(word), .. }] => number(word.text),
        _ => None,
    };
    match slots {
        Some(slots @ 1..=9) => data.resize(data.len() + slots as usize * 4, 0),
        Some(_) => return Err(wants("1 to 9 slots: that is all a header holds")),
        None if arguments.is_empty() || spec.layout == Layout::TimeStamps => {
            return Err(argument_list());
        }
        None => {
            for argument in arguments {
                let Value::Word(word) = &argument.value else { return Err(argument_list()) };
                let address: Ipv4Addr = word.text.parse().map_err(|_| argument_list())?;
                data.extend(address.octets());
            }
        }
    }
    Ok(data)
}

fn one_option(
    protocol: Protocol,
    table: &'static [OptionSpec],
    item: &Value<'_>,
    out: &mut Vec<u8>,
) -> Outcome<()> {
    let none = Vec::new();
    let (name, arguments) = match item {
        Value::Word(word) => (word, &none),
        Value::Call(word, arguments, _) => (word, arguments),
        // Scapy's: ("MSS", 1460).
        Value::Tuple(items, span) => {
            let (name, arguments) = scapy_option(items, *span)?;
            let word = Word { text: &name, span: *span };
            return one_option(protocol, table, &Value::Call(word, arguments, *span), out);
        }
        _ => return Err(Fault::at(item.span(), "expected an option, such as nop or mss(1460)")),
    };
    let span = item.span();
    let wants = |what: &str| Fault::at(span, format!("`{}` takes {what}", name.text));
    let (kind, data) = if name.text.eq_ignore_ascii_case("opt") {
        let mut arguments = arguments.iter();
        let kind = match arguments.next().map(|argument| &argument.value) {
            Some(Value::Word(word)) => number(word.text).and_then(|n| u8::try_from(n).ok()),
            _ => None,
        };
        let kind = kind.ok_or_else(|| wants("a number from 0 to 255, then hex=\"..\""))?;
        let data = match arguments.next() {
            None => Vec::new(),
            Some(argument) => bytes(argument)?.ok_or_else(|| wants("hex=\"..\" after the number"))?,
        };
        (kind, data)
    } else {
        let Some(spec) = table.iter().find(|option| option.is_called(name.text)) else {
            let names: Vec<&str> = table.iter().map(|option| option.name).collect();
            let hint = did_you_mean(name.text, names.iter().copied().chain(["opt"]));
            let message = format!(
                "unknown option `{}`{hint}options: {}, opt(KIND, hex=\"..\")",
                short(name.text),
                names.join(", ")
            );
            return Err(Fault::at(name.span, message));
        };
        let argument_list = || wants(&format!("{}{}", spec.name, spec.layout.arguments()));
        let mut data = Vec::new();
        match spec.layout {
            Layout::Bare => {
                if !arguments.is_empty() {
                    return Err(wants("no arguments"));
                }
                out.push(spec.number);
                return Ok(());
            }
            Layout::Fixed(widths) | Layout::Eights(widths) => {
                if arguments.len() != widths.len() {
                    return Err(argument_list());
                }
                for (argument, width) in arguments.iter().zip(widths) {
                    data.extend(scalar(&argument.value, usize::from(*width))?);
                }
            }
            Layout::Words => {
                for argument in arguments {
                    data.extend(scalar(&argument.value, 4)?);
                }
            }
            Layout::Route | Layout::TimeStamps => data = slots(spec, arguments, &wants)?,
            Layout::Bytes => match arguments.as_slice() {
                [argument] => data = bytes(argument)?.ok_or_else(argument_list)?,
                _ => return Err(argument_list()),
            },
            Layout::Zeros => match arguments.as_slice() {
                [Argument { value: Value::Word(word), .. }] => {
                    let count =
                        number(word.text).and_then(|n| u8::try_from(n).ok()).ok_or_else(argument_list)?;
                    data.resize(usize::from(count), 0);
                }
                _ => return Err(argument_list()),
            },
        }
        (spec.number, data)
    };
    let length = length_byte(protocol, data.len())
        .ok_or_else(|| Fault::at(span, format!("an option of {} bytes cannot be", data.len() + 2)))?;
    out.push(kind);
    out.push(length);
    out.extend(data);
    Ok(())
}

/// Name and arguments of an option as Scapy writes it: `("MSS", 1460)`, `("NOP", None)`, `("Timestamp", (1, 0))`.
fn scapy_option<'a>(items: &[Value<'a>], span: Span) -> Outcome<(String, Vec<Argument<'a>>)> {
    let [Value::Text(name, _), value] = items else {
        return Err(Fault::at(span, "expected an option, such as nop, mss(1460) or (\"MSS\", 1460)"));
    };
    let argument = |value: &Value<'a>| Argument { name: None, value: value.clone(), modifiers: Vec::new() };
    let arguments = match value {
        Value::Tuple(values, _) => values.iter().map(argument).collect(),
        Value::Word(word) if word.text.eq_ignore_ascii_case("none") => Vec::new(),
        Value::Text(text, _) if text.is_empty() => Vec::new(),
        other => vec![argument(other)],
    };
    Ok((String::from_utf8_lossy(name).into_owned(), arguments))
}

/// `hex="..."`, `hex("...")` or a string.
pub(super) fn bytes(argument: &Argument<'_>) -> Outcome<Option<Vec<u8>>> {
    match (&argument.name, &argument.value) {
        (Some(name), Value::Text(text, span)) if name.text.eq_ignore_ascii_case("hex") => {
            from_hex(text, *span).map(Some)
        }
        (None, Value::Text(text, _)) => Ok(Some(text.clone())),
        (None, value) => hex_value(value),
        _ => Ok(None),
    }
}

/// A number, Ethernet or IPv6 address of `width` bytes.
fn scalar(value: &Value<'_>, width: usize) -> Outcome<Vec<u8>> {
    let what = match width {
        6 => "an Ethernet address".to_owned(),
        16 => "an IPv6 address".to_owned(),
        _ => format!(
            "one number from 0 to {}; what stands in options does not vary",
            u128::MAX >> (128 - 8 * width)
        ),
    };
    let Value::Word(word) = value else { return Err(Fault::at(value.span(), format!("expected {what}"))) };
    let parsed = match width {
        6 => word.text.parse::<Mac>().ok().map(|Mac(bytes)| bytes.to_vec()),
        16 => word.text.parse::<Ipv6Addr>().ok().map(|address| address.octets().to_vec()),
        _ => number(word.text)
            .filter(|n| n >> (8 * width) == 0)
            .map(|n| n.to_be_bytes()[16 - width..].to_vec()),
    };
    parsed.ok_or_else(|| Fault::at(word.span, format!("expected {what}")))
}

/// `segments=[a, b, c]`.
pub(super) fn segments(value: &Value<'_>) -> Outcome<Vec<Ipv6Addr>> {
    let expected = "expected IPv6 addresses, such as segments=[2001:db8::1, 2001:db8::2]";
    let Value::List(items, span) = value else { return Err(Fault::at(value.span(), expected)) };
    // The header's length field: 255 units of eight bytes.
    if items.len() > 127 {
        return Err(Fault::at(*span, format!("{} addresses; a header holds 127", items.len())));
    }
    items
        .iter()
        .map(|item| match item {
            Value::Word(word) => word.text.parse().map_err(|_| Fault::at(word.span, expected)),
            other => Err(Fault::at(other.span(), expected)),
        })
        .collect()
}

/// `ext=[psc(0, 9)]`: the type of the first and the bytes of all, each ending in the type of the next.
pub(super) fn gtpu_extensions(value: &Value<'_>) -> Outcome<(u8, Vec<u8>)> {
    let expected =
        "expected extension headers: psc(TYPE, QFI), pdcp(NUMBER), udp_port(PORT) or opt(TYPE, hex=\"..\")";
    let names = ["psc", "pdcp", "udp_port", "opt"];
    let Value::List(items, _) = value else { return Err(Fault::at(value.span(), expected)) };
    let mut headers: Vec<(u8, Vec<u8>)> = Vec::new();
    for item in items {
        let Value::Call(name, arguments, span) = item else { return Err(Fault::at(item.span(), expected)) };
        let (kind, content) = match (name.text.to_ascii_lowercase().as_str(), arguments.as_slice()) {
            // 3GPP TS 38.415 section 5.5.2: type in the first nibble, QFI in the low six bits of the second byte.
            ("psc", [kind, qfi]) => {
                let (kind, qfi) = (scalar(&kind.value, 1)?, scalar(&qfi.value, 1)?);
                match (kind.as_slice(), qfi.as_slice()) {
                    ([kind @ 0..=15], [qfi @ 0..=63]) => (0x85, vec![kind << 4, *qfi]),
                    _ => {
                        return Err(Fault::at(
                            *span,
                            "psc(TYPE, QFI) takes a type of 0 to 15 and a QFI of 0 to 63",
                        ));
                    }
                }
            }
            ("pdcp", [number]) => (0xc0, scalar(&number.value, 2)?),
            ("udp_port", [port]) => (0x40, scalar(&port.value, 2)?),
            ("opt", [kind, content]) => {
                let kind = scalar(&kind.value, 1)?.first().copied().filter(|kind| *kind != 0);
                let (Some(kind), Some(content)) = (kind, bytes(content)?) else {
                    return Err(Fault::at(*span, expected));
                };
                (kind, content)
            }
            _ => return Err(Fault::at(*span, no_call(name.text, &names, expected))),
        };
        // 3GPP TS 29.281 section 5.2.1: a length in units of four bytes, the content, the type of the next.
        let total = content.len() + 2;
        if total % 4 != 0 || total / 4 > 255 || headers.len() == 64 {
            return Err(Fault::at(
                *span,
                "an extension's content is 2 bytes more than a multiple of 4, at most 1018",
            ));
        }
        headers.push((kind, content));
    }
    let mut out = Vec::new();
    for (i, (_, content)) in headers.iter().enumerate() {
        out.push(((content.len() + 2) / 4) as u8);
        out.extend(content);
        out.push(headers.get(i + 1).map_or(0, |(kind, _)| *kind));
    }
    Ok((headers.first().map_or(0, |(kind, _)| *kind), out))
}
