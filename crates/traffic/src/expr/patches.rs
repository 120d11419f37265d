//! What varies in payload: `raw(hex="..", fields=[field(0, 16, random()), length(2, 4)])`. Payload has no table of fields, so
//! each is given by its place.

use super::error::{Fault, Outcome, no_call};
use super::syntax::{Argument, Span, Value, Word};
use super::value::{self, Setting};
use wire::proto::{Field, Kind};

/// Fields of one payload, at most; those of a frame together are bounded by the program.
const MAX_PATCHES: usize = 256;
const FORM: &str = "write field(OFFSET, BITS, VALUE) or length(OFFSET, FROM), such as field(0, 16, random())";

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

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Patches {
    pub fields: Vec<Patch>,
    pub lengths: Vec<Length>,
}

impl Patches {
    /// Bits of the payload that each takes, with its place in the expression.
    fn places(&self) -> impl Iterator<Item = (std::ops::Range<usize>, Span)> {
        let fields = self
            .fields
            .iter()
            .map(|patch| (patch.bit..patch.bit + usize::from(patch.setting.field.bits), patch.setting.span));
        fields
            .chain(self.lengths.iter().map(|length| (length.offset * 8..length.offset * 8 + 16, length.span)))
    }

    /// The first byte behind all of them.
    pub fn end(&self) -> usize {
        self.places().map(|(bits, _)| bits.end.div_ceil(8)).max().unwrap_or(0)
    }

    /// Refuses those that lie outside of a payload of `length` bytes, or on each other.
    pub fn check(&self, length: usize) -> Outcome<()> {
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
        places.sort_by_key(|(bits, _)| bits.start);
        match places.array_windows().find(|[(before, _), (after, _)]| after.start < before.end) {
            Some([_, (_, span)]) => Err(Fault::at(*span, "this field shares bits with another one")),
            None => Ok(()),
        }
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
            _ => return Err(Fault::at(*span, no_call(name.text, &["field", "length"], FORM))),
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
        _ => Err(Fault::at(argument.value.span(), "a length stands at a whole byte")),
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
