//! What varies in payload: `raw(hex="..", fields=[field(0, 16, random()), length(2, 4), checksum(4, 0)])`. Payload has no table of
//! fields, so each is given by its place.

use super::error::{Fault, Outcome, no_call};
use super::syntax::{Argument, Span, Value, Word};
use super::value::{self, Setting};
use crate::program::Sum;
use std::ops::Range;
use wire::proto::{Field, Kind};

/// Fields of one payload, at most; those of a frame together are bounded by the program.
const MAX_PATCHES: usize = 256;
const FORM: &str = "write field(OFFSET, BITS, VALUE), length(OFFSET, FROM) or checksum(OFFSET, FROM), such as field(0, 16, random())";
const SUM_FORM: &str = "write checksum(OFFSET, FROM) or checksum(OFFSET, FROM..LAST), and behind that pseudo=[FROM..LAST], protocol=NUMBER, add=NUMBER";
/// IP's number of UDP, whose checksum is never 0.
const UDP: u64 = 17;

/// A part of the payload that varies, or whose value is written over the content.
#[derive(Debug)]
pub(super) struct Patch {
    /// First bit, counted from the payload's begin.
    pub bit: usize,
    /// Its values.
    pub setting: Setting,
}

/// A 16-bit part of the payload that says how many bytes follow.
#[derive(Debug)]
pub(super) struct Length {
    /// First byte, counted from the payload's begin.
    pub offset: usize,
    /// It counts from this byte of the payload to the end of the frame.
    pub from: usize,
    pub span: Span,
}

/// A 16-bit part of the payload that is an Internet checksum (RFC 1071).
#[derive(Debug)]
pub(super) struct Checksum {
    /// First byte, counted from the payload's begin, as all bytes here.
    offset: usize,
    /// It covers what begins here.
    from: usize,
    /// And ends before this byte; `None`: with the frame.
    end: Option<usize>,
    /// Addresses of a pseudo header.
    pseudo: Vec<Range<usize>>,
    /// Protocol number of a pseudo header. With it the covered length counts, too.
    protocol: Option<u64>,
    /// Added to the sum.
    plus: u64,
    span: Span,
}

impl Checksum {
    /// It, in a payload that starts at byte `start` of the frame.
    pub fn sum(&self, start: usize) -> Sum {
        let at = |byte: usize| (start + byte) as u32;
        Sum {
            offset: at(self.offset),
            start: at(self.from),
            end: self.end.map(at),
            also: self.pseudo.iter().map(|range| at(range.start)..at(range.end)).collect(),
            plus: self.plus + self.protocol.unwrap_or(0),
            plus_length: self.protocol.is_some(),
            udp: self.protocol == Some(UDP),
            error: 0,
        }
    }

    fn covers(&self, other: &Checksum) -> bool {
        let own = self.from..self.end.unwrap_or(usize::MAX);
        std::iter::once(&own).chain(&self.pseudo).any(|range| range.contains(&other.offset))
    }

    /// Why it cannot be in a payload of `length` bytes.
    fn fault(&self, length: usize) -> Option<&'static str> {
        let end = self.end.unwrap_or(length);
        if end > length || self.pseudo.iter().any(|range| range.end > length) {
            return Some("this checksum covers bytes that the payload does not have");
        }
        if self.offset < self.from || self.offset + 2 > end || !(self.offset - self.from).is_multiple_of(2) {
            return Some(
                "a checksum stands within what it covers, at an even distance from the first byte of that",
            );
        }
        let odd = self.pseudo.iter().any(|range| !range.len().is_multiple_of(2));
        odd.then_some("each part of a pseudo header has an even number of bytes")
    }
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Patches {
    pub fields: Vec<Patch>,
    pub lengths: Vec<Length>,
    /// Once checked, those that others cover come before these.
    pub checksums: Vec<Checksum>,
}

impl Patches {
    /// Bits of the payload that each takes, with its place in the expression.
    fn places(&self) -> impl Iterator<Item = (Range<usize>, Span)> {
        let fields = self
            .fields
            .iter()
            .map(|patch| (patch.bit..patch.bit + usize::from(patch.setting.field.bits), patch.setting.span));
        let words = self.lengths.iter().map(|length| (length.offset, length.span));
        let words = words.chain(self.checksums.iter().map(|sum| (sum.offset, sum.span)));
        fields.chain(words.map(|(offset, span)| (offset * 8..offset * 8 + 16, span)))
    }

    /// The first byte behind all of them, and behind what checksums cover that do not go on to the frame's end.
    pub fn end(&self) -> usize {
        let covered =
            self.checksums.iter().flat_map(|sum| sum.end.into_iter().chain(sum.pseudo.iter().map(|r| r.end)));
        self.places().map(|(bits, _)| bits.end.div_ceil(8)).chain(covered).max().unwrap_or(0)
    }

    /// Refuses those that lie outside of a payload of `length` bytes, or on each other, and puts checksums in order.
    pub fn check(&mut self, length: usize) -> Outcome<()> {
        let mut places: Vec<_> = self.places().collect();
        if let Some((_, span)) = places.iter().find(|(bits, _)| bits.end > length * 8) {
            let message = format!(
                "this field lies outside of the payload, which has {length} bytes; give more content, or len="
            );
            return Err(Fault::at(*span, message));
        }
        if let Some(length) = self.lengths.iter().find(|field| field.from > length) {
            return Err(Fault::at(
                length.span,
                "this length counts from a byte that the payload does not have",
            ));
        }
        if let Some((fault, sum)) =
            self.checksums.iter().find_map(|sum| sum.fault(length).map(|fault| (fault, sum)))
        {
            return Err(Fault::at(sum.span, fault));
        }
        places.sort_by_key(|(bits, _)| bits.start);
        let mut pairs = places.array_windows();
        if let Some([_, (_, span)]) = pairs.find(|[(before, _), (after, _)]| after.start < before.end) {
            return Err(Fault::at(*span, "this field shares bits with another one"));
        }
        self.order_checksums()
    }

    /// A checksum that others cover is computed before these.
    fn order_checksums(&mut self) -> Outcome<()> {
        let mut left = std::mem::take(&mut self.checksums);
        while !left.is_empty() {
            let covers_none =
                |sum: &Checksum| left.iter().all(|other| other.offset == sum.offset || !sum.covers(other));
            match left.iter().position(covers_none) {
                Some(next) => self.checksums.push(left.remove(next)),
                None => {
                    let span = left.first().map_or(Span { start: 0, end: 1 }, |sum| sum.span);
                    return Err(Fault::at(span, "these checksums cover each other"));
                }
            }
        }
        Ok(())
    }
}

/// Reads `[field(..), length(..), ...]`.
pub(super) fn read(value: &Value<'_>) -> Outcome<Patches> {
    let Value::List(items, span) = value else { return Err(Fault::at(value.span(), FORM)) };
    if items.len() > MAX_PATCHES {
        return Err(Fault::at(*span, format!("more than {MAX_PATCHES} fields in one payload")));
    }
    let mut patches = Patches::default();
    for item in items {
        let Value::Call(name, arguments, span) = item else { return Err(Fault::at(item.span(), FORM)) };
        match (name.text.to_ascii_lowercase().as_str(), arguments.as_slice()) {
            ("field", [offset, bits, value]) => patches.fields.push(field(offset, bits, value, *span)?),
            ("length", [offset, from]) => {
                let (offset, from) = (byte(offset)?, byte(from)?);
                patches.lengths.push(Length { offset, from, span: *span });
            }
            ("checksum", [offset, covered, more @ ..]) => {
                patches.checksums.push(checksum(offset, covered, more, *span)?);
            }
            ("checksum", _) => return Err(Fault::at(*span, SUM_FORM)),
            _ => return Err(Fault::at(*span, no_call(name.text, &["field", "length", "checksum"], FORM))),
        }
    }
    Ok(patches)
}

fn field(offset: &Argument<'_>, bits: &Argument<'_>, value: &Argument<'_>, span: Span) -> Outcome<Patch> {
    let bit = place(offset)?;
    let width = word(bits)
        .and_then(|word| value::number(word.text))
        .and_then(|width| usize::try_from(width).ok())
        .filter(|width| (1..=64).contains(width))
        .ok_or_else(|| Fault::at(bits.value.span(), "a field of payload has 1 to 64 bits"))?;
    if value.name.is_some() {
        return Err(Fault::at(span, FORM));
    }
    if bit % 8 + width > 64 {
        return Err(Fault::at(span, "a field of payload touches 8 bytes at most: write two"));
    }
    let table = match first_word(&value.value).map(|word| word.text) {
        Some(text) if width == 48 && text.contains(':') => &MAC,
        Some(text) if width == 32 && text.contains('.') => &IPV4,
        // Of width 1 to 64, as was just checked.
        _ => WIDTHS.get(width - 1).unwrap_or(&IPV4),
    };
    let mut setting = value::setting(table, value)?;
    setting.span = span;
    Ok(Patch { bit, setting })
}

fn checksum(
    offset: &Argument<'_>,
    covered: &Argument<'_>,
    more: &[Argument<'_>],
    span: Span,
) -> Outcome<Checksum> {
    let bad = || Fault::at(span, SUM_FORM);
    let (from, end) = match &covered.value {
        Value::Range(..) if covered.name.is_none() && covered.modifiers.is_empty() => {
            let Range { start, end } = bytes(&covered.value)?;
            (start, Some(end))
        }
        _ => (byte(covered)?, None),
    };
    let mut sum =
        Checksum { offset: byte(offset)?, from, end, pseudo: Vec::new(), protocol: None, plus: 0, span };
    for Argument { name, value, modifiers } in more {
        let name = name.as_ref().filter(|_| modifiers.is_empty()).ok_or_else(bad)?;
        let number = |most| match value {
            Value::Word(word) => value::number(word.text)
                .filter(|number| *number <= most)
                .and_then(|number| u64::try_from(number).ok()),
            _ => None,
        };
        match name.text.to_ascii_lowercase().as_str() {
            "pseudo" => match value {
                Value::List(items, _) => {
                    sum.pseudo = items.iter().map(bytes).collect::<Outcome<_>>()?;
                }
                value => sum.pseudo = vec![bytes(value)?],
            },
            "protocol" => sum.protocol = Some(number(255).ok_or_else(bad)?),
            "add" => sum.plus = number(65_535).ok_or_else(bad)?,
            _ => return Err(bad()),
        }
    }
    Ok(sum)
}

/// Bytes of the payload, both ends included: `26..33`.
fn bytes(value: &Value<'_>) -> Outcome<Range<usize>> {
    let bad = || Fault::at(value.span(), "write bytes of the payload as FROM..LAST, both included");
    let Value::Range(from, last) = value else { return Err(bad()) };
    let number = |word: &Word<'_>| {
        value::number(word.text).filter(|n| *n <= 65_535).and_then(|n| usize::try_from(n).ok())
    };
    match (number(from), number(last)) {
        (Some(from), Some(last)) if from <= last => Ok(from..last + 1),
        _ => Err(bad()),
    }
}

/// A byte, or a bit of one: `4`, `4.3`.
fn place(argument: &Argument<'_>) -> Outcome<usize> {
    let span = argument.value.span();
    let bad =
        || Fault::at(span, "the offset is a byte of the payload, or BYTE.BIT (0 is the most significant)");
    let text = word(argument).ok_or_else(bad)?.text;
    let (byte, bit) = text.split_once('.').unwrap_or((text, "0"));
    let number =
        |text, most| value::number(text).filter(|n| *n <= most).and_then(|n| usize::try_from(n).ok());
    match (number(byte, 65_535), number(bit, 7)) {
        (Some(byte), Some(bit)) => Ok(byte * 8 + bit),
        _ => Err(bad()),
    }
}

/// A whole byte.
fn byte(argument: &Argument<'_>) -> Outcome<usize> {
    match place(argument)? {
        bit if bit.is_multiple_of(8) => Ok(bit / 8),
        _ => Err(Fault::at(argument.value.span(), "a length or a checksum stands at a whole byte")),
    }
}

/// A single word without a name.
fn word<'a>(argument: &Argument<'a>) -> Option<Word<'a>> {
    match &argument.value {
        Value::Word(word) if argument.name.is_none() && argument.modifiers.is_empty() => Some(*word),
        _ => None,
    }
}

/// What a value begins with: whether it is an address shows there.
fn first_word<'a>(value: &Value<'a>) -> Option<Word<'a>> {
    match value {
        Value::Word(word) | Value::Range(word, _) => Some(*word),
        Value::List(items, _) | Value::Tuple(items, _) => items.first().and_then(first_word),
        Value::Call(_, arguments, _) => arguments.first().and_then(|argument| first_word(&argument.value)),
        Value::Text(..) => None,
    }
}

static MAC: Field = of(48, Kind::Mac);
static IPV4: Field = of(32, Kind::Ipv4);
/// Numbers of 1, 2, ... 64 bits.
static WIDTHS: [Field; 64] = {
    let mut fields = [of(1, Kind::Uint); 64];
    let mut i = 0;
    while i < 64 {
        fields[i] = of(i as u8 + 1, Kind::Uint);
        i += 1;
    }
    fields
};

const fn of(bits: u8, kind: Kind) -> Field {
    Field::new("field", 0, bits, kind, "A part of the payload.")
}
