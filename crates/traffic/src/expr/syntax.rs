//! Text to syntax tree. What the words mean (which field, which address) is `value`'s and `header`'s business.
//!
//! ```text
//! packet    = layer { "/" layer }
//! layer     = string                                       payload, as Scapy has it
//! layer     = word [ "(" [ argument { "," argument } ] ")" ]
//! argument  = [ word "=" ] value { word "=" value }      the second kind are modifiers: step=, every=
//! value     = word [ ".." word ] | string [ "*" word ] | "[" [ value { "," value } ] "]" | word "(" ... ")"
//!           | "(" value { "," value } ")"                  Scapy's ranges and options
//! string    = "..." or '...', or between the quotes that web pages make of these; b"..." too
//! word      = letters, digits and : . - + _   ("/" digits too, after an address: a prefix)
//! ```

pub(super) use super::error::Span;
use super::error::{Fault, Outcome};

/// Bytes of an expression, at most.
pub(super) const MAX_TEXT: usize = 1 << 20;
/// How deep brackets nest, at most.
const MAX_DEPTH: usize = 8;
/// Bytes of all `"text" * N` together, at most.
const MAX_REPEATED: usize = 65_535;
/// Layers of a packet, at most.
pub(super) const MAX_LAYERS: usize = 32;

/// A run of word characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Word<'a> {
    pub text: &'a str,
    pub span: Span,
}

/// A value as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value<'a> {
    Word(Word<'a>),
    Range(Word<'a>, Word<'a>),
    Text(Vec<u8>, Span),
    List(Vec<Value<'a>>, Span),
    /// `(a, b)`: how Scapy writes a range, and an option with its value.
    Tuple(Vec<Value<'a>>, Span),
    Call(Word<'a>, Vec<Argument<'a>>, Span),
}

impl Value<'_> {
    pub fn span(&self) -> Span {
        match self {
            Value::Word(word) => word.span,
            Value::Range(from, to) => from.span.to(to.span),
            Value::Text(_, span) | Value::List(_, span) | Value::Tuple(_, span) | Value::Call(_, _, span) => {
                *span
            }
        }
    }
}

/// `name = value step=... every=...`, or a value alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Argument<'a> {
    pub name: Option<Word<'a>>,
    pub value: Value<'a>,
    pub modifiers: Vec<(Word<'a>, Value<'a>)>,
}

/// One layer as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layer<'a> {
    pub name: Word<'a>,
    pub arguments: Vec<Argument<'a>>,
}

/// Reads a whole packet.
pub(super) fn parse(text: &str) -> Outcome<Vec<Layer<'_>>> {
    if text.len() > MAX_TEXT {
        let message = format!("the expression has {} bytes; {MAX_TEXT} are the most", text.len());
        return Err(Fault::at(Span { start: 0, end: 1 }, message));
    }
    let mut parser = Parser { text, at: 0, repeated: 0 };
    let mut layers = Vec::new();
    loop {
        if layers.len() == MAX_LAYERS {
            let span = Span { start: parser.at, end: parser.at + 1 };
            return Err(Fault::at(span, format!("more than {MAX_LAYERS} layers")));
        }
        layers.push(parser.layer()?);
        if parser.peek().is_none() {
            return Ok(layers);
        }
        if !parser.take(b'/') {
            return Err(parser.expected("`/` and another layer, or the end"));
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    /// Bytes that strings have been repeated to.
    repeated: usize,
}

/// Quotes that mean the same: the keyboard's first. Web pages make the others of it.
const QUOTES: [&[char]; 2] = [
    &['"', '\u{201c}', '\u{201d}', '\u{201e}', '\u{201f}', '\u{2033}', '\u{ab}', '\u{bb}'],
    &['\'', '\u{2018}', '\u{2019}', '\u{201a}', '\u{201b}', '\u{2032}'],
];

/// Scapy's functions that take a packet.
const CALLS: [&str; 8] = ["send", "sendp", "sendpfast", "sr", "sr1", "srp", "srp1", "wrpcap"];

impl<'a> Parser<'a> {
    fn layer(&mut self) -> Outcome<Layer<'a>> {
        if self.quoted().is_some() {
            let value = self.string()?;
            let name = Word { text: "raw", span: value.span() };
            return Ok(Layer {
                name,
                arguments: vec![Argument { name: None, value, modifiers: Vec::new() }],
            });
        }
        let name = self.word("a layer, such as ipv4 or udp")?;
        if CALLS.contains(&name.text) && self.peek() == Some(b'(') {
            let message = format!("write only the packet that stands in the brackets of `{}`", name.text);
            return Err(Fault::at(name.span, message));
        }
        let arguments = if self.take(b'(') { self.arguments(b')', 0)? } else { Vec::new() };
        Ok(Layer { name, arguments })
    }

    /// What closes the string that starts here, and the bytes of its opening: `"`, `'`, or `b"`.
    fn quoted(&mut self) -> Option<(&'static [char], usize)> {
        self.peek();
        let rest = self.text.get(self.at..)?;
        let (prefix, rest) = match rest.strip_prefix('b') {
            Some(after) => (1, after),
            None => (0, rest),
        };
        let open = rest.chars().next()?;
        let kind = QUOTES.into_iter().find(|kind| kind.contains(&open))?;
        // What the keyboard opened, it closes: other quotes are content there.
        let closing = if open.is_ascii() { kind.get(..1)? } else { kind };
        Some((closing, prefix + open.len_utf8()))
    }

    /// The next byte that is not blank.
    fn peek(&mut self) -> Option<u8> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        self.at += rest.len() - rest.trim_start().len();
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expected(&mut self, what: &str) -> Fault {
        let found = match self.peek() {
            None => "the expression ends".to_owned(),
            Some(_) => {
                let c = self.text.get(self.at..).and_then(|rest| rest.chars().next()).unwrap_or('?');
                format!("found `{c}`")
            }
        };
        let width = self.text.get(self.at..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8);
        Fault::at(Span { start: self.at, end: self.at + width }, format!("expected {what}, but {found}"))
    }

    /// Word characters; stops before `..`.
    fn word(&mut self, what: &str) -> Outcome<Word<'a>> {
        self.peek();
        let bytes = self.text.as_bytes();
        let start = self.at;
        let mut end = start;
        let mut address = false;
        while let Some(&byte) = bytes.get(end) {
            let after = bytes.get(end + 1).copied();
            let more = match byte {
                b'.' => after != Some(b'.'),
                // A prefix length: only after something with dots or colons, so that `/` still joins layers.
                b'/' => address && after.is_some_and(|c| c.is_ascii_digit()),
                _ => byte.is_ascii_alphanumeric() || matches!(byte, b':' | b'-' | b'+' | b'|' | b'_'),
            };
            if !more {
                break;
            }
            address |= matches!(byte, b'.' | b':');
            end += 1;
        }
        if start == end {
            return Err(self.expected(what));
        }
        self.at = end;
        Ok(Word { text: self.text.get(start..end).unwrap_or_default(), span: Span { start, end } })
    }

    /// Arguments up to the closing bracket, which is taken.
    fn arguments(&mut self, close: u8, depth: usize) -> Outcome<Vec<Argument<'a>>> {
        let mut arguments = Vec::new();
        if self.take(close) {
            return Ok(arguments);
        }
        loop {
            arguments.push(self.argument(depth)?);
            if self.take(close) {
                return Ok(arguments);
            }
            if !self.take(b',') {
                return Err(self.expected("`,` or `)`"));
            }
        }
    }

    fn argument(&mut self, depth: usize) -> Outcome<Argument<'a>> {
        let mut name = None;
        let before = self.at;
        if let Ok(word) = self.word("") {
            if self.take(b'=') {
                name = Some(word);
            } else {
                self.at = before;
            }
        }
        let value = self.value(depth)?;
        let mut modifiers = Vec::new();
        while !matches!(self.peek(), None | Some(b',' | b')' | b']')) {
            let word = self.word("`,` or `)`, or step= or every=")?;
            if !self.take(b'=') {
                return Err(Fault::at(word.span, format!("expected `,` or `)` before `{}`", word.text)));
            }
            modifiers.push((word, self.value(depth)?));
        }
        Ok(Argument { name, value, modifiers })
    }

    fn value(&mut self, depth: usize) -> Outcome<Value<'a>> {
        if depth > MAX_DEPTH {
            return Err(Fault::at(Span { start: self.at, end: self.at + 1 }, "brackets nest too deep"));
        }
        if self.quoted().is_some() {
            return self.string();
        }
        match self.peek() {
            Some(b'[') => {
                let (items, span) = self.list(b']', depth)?;
                Ok(Value::List(items, span))
            }
            Some(b'(') => {
                let (items, span) = self.list(b')', depth)?;
                Ok(Value::Tuple(items, span))
            }
            _ => {
                let word = self.word("a value")?;
                if self.text.get(self.at..).is_some_and(|rest| rest.starts_with("..")) {
                    self.at += 2;
                    let to = self.word("the range's last value")?;
                    return Ok(Value::Range(word, to));
                }
                if self.take(b'(') {
                    let arguments = self.arguments(b')', depth + 1)?;
                    let span = Span { start: word.span.start, end: self.at };
                    return Ok(Value::Call(word, arguments, span));
                }
                Ok(Value::Word(word))
            }
        }
    }

    /// Values up to the closing bracket.
    fn list(&mut self, close: u8, depth: usize) -> Outcome<(Vec<Value<'a>>, Span)> {
        let start = self.at;
        self.at += 1;
        let mut items = Vec::new();
        if !self.take(close) {
            loop {
                items.push(self.value(depth + 1)?);
                if self.take(close) {
                    break;
                }
                if !self.take(b',') {
                    let mut fault = self.expected(&format!("`,` or `{}`", char::from(close)));
                    // `options=[mss=1460]`, as other tools write it.
                    if let (Some(b'='), Some(Value::Word(word))) = (self.peek(), items.last()) {
                        let name = super::value::short(word.text);
                        fault.message += &format!(
                            ": what `{name}` takes stands in brackets behind it, such as options=[mss(1460), wscale(7)]"
                        );
                    }
                    return Err(fault);
                }
                // Python's tuple of one, and a comma too many.
                if self.take(close) {
                    break;
                }
            }
        }
        Ok((items, Span { start, end: self.at }))
    }

    /// A quoted string; its escapes are \n \r \t \0 \\ \" \' and \xHH.
    fn string(&mut self) -> Outcome<Value<'a>> {
        let Some((closing, opening)) = self.quoted() else { return Err(self.expected("a string")) };
        let start = self.at;
        let mut out = Vec::new();
        let mut rest = self.text.get(start + opening..).unwrap_or_default().char_indices();
        let base = start + opening;
        let end = loop {
            let Some((at, c)) = rest.next() else {
                let quote = closing.first().copied().unwrap_or('"');
                let message = format!("this string has no closing `{quote}`");
                return Err(Fault::at(Span { start, end: start + opening }, message));
            };
            if closing.contains(&c) {
                break base + at + c.len_utf8();
            }
            if c != '\\' {
                out.extend(c.encode_utf8(&mut [0; 4]).bytes());
                continue;
            }
            let escape = rest.next();
            let width = escape.map_or(0, |(_, c)| c.len_utf8());
            out.push(match escape.map(|(_, c)| c) {
                Some('n') => b'\n',
                Some('r') => b'\r',
                Some('t') => b'\t',
                Some('0') => 0,
                Some(c @ ('\\' | '"' | '\'')) => c as u8,
                Some('x') => {
                    let mut digit = || rest.next().and_then(|(_, c)| c.to_digit(16));
                    let Some(value) = digit().zip(digit()).map(|(high, low)| (high << 4 | low) as u8) else {
                        let span = Span { start: base + at, end: base + at + 2 };
                        return Err(Fault::at(span, "\\x needs two hexadecimal digits"));
                    };
                    value
                }
                _ => {
                    let message = "unknown escape; there are \\n \\r \\t \\0 \\\\ \\\" \\' and \\xHH";
                    return Err(Fault::at(Span { start: base + at, end: base + at + 1 + width }, message));
                }
            });
        };
        self.at = end;
        if self.take(b'*') {
            let word = self.word("how many times")?;
            let room = MAX_REPEATED - self.repeated;
            let length = word
                .text
                .parse::<usize>()
                .ok()
                .and_then(|times| Some((times, out.len().checked_mul(times)?)));
            let Some((times, length)) = length.filter(|(_, length)| *length <= room) else {
                let message = format!("strings are repeated to {MAX_REPEATED} bytes at most, all together");
                return Err(Fault::at(word.span, message));
            };
            self.repeated += length;
            out = out.repeat(times);
        }
        Ok(Value::Text(out, Span { start, end: self.at }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fault(text: &str) -> (usize, String) {
        let fault = parse(text).unwrap_err();
        (fault.span.start, fault.message)
    }

    #[test]
    fn layers_arguments_and_modifiers() {
        let layers =
            parse(" ether / ipv4( src = 10.0.0.0/16 every=10 step=2, dst=::1..::9 )/raw(\"a/b\\x41\")")
                .unwrap();
        assert_eq!(layers.iter().map(|l| l.name.text).collect::<Vec<_>>(), ["ether", "ipv4", "raw"]);
        let src = &layers[1].arguments[0];
        assert_eq!(src.name.unwrap().text, "src");
        assert!(matches!(&src.value, Value::Word(word) if word.text == "10.0.0.0/16"));
        assert_eq!(src.modifiers.iter().map(|(m, _)| m.text).collect::<Vec<_>>(), ["every", "step"]);
        assert!(
            matches!(&layers[1].arguments[1].value, Value::Range(a, b) if a.text == "::1" && b.text == "::9")
        );
        assert!(matches!(&layers[2].arguments[0].value, Value::Text(text, _) if text == b"a/bA"));
    }

    #[test]
    fn faults_point_at_the_place() {
        for (text, at, part) in [
            ("", 0, "expected a layer"),
            ("ipv4/", 5, "expected a layer"),
            ("ipv4 udp", 5, "expected `/`"),
            ("ipv4(ttl=", 9, "expected a value"),
            ("ipv4(ttl=1", 10, "expected `,` or `)`"),
            ("ipv4(ttl=1 2)", 11, "before `2`"),
            ("raw(\"abc)", 4, "no closing"),
            ("raw(\"\\q\")", 5, "unknown escape"),
            ("raw(\"\\x4\")", 5, "two hexadecimal digits"),
            ("tcp(options=[[[[[[[[[[1]]]]]]]]]])", 21, "too deep"),
        ] {
            let (start, message) = fault(text);
            assert!(start == at && message.contains(part), "{text}: {start} {message}");
        }
    }

    proptest! {
        #[test]
        fn no_text_upsets_the_parser(text in "\\PC{0,80}") {
            let _ = parse(&text);
        }

        #[test]
        fn no_nearly_right_text_upsets_the_parser(text in "([a-z]{1,4}|[0-9]{1,3}|[()=/,\\[\\]\".:\\\\ é]){0,60}") {
            let _ = parse(&text);
        }
    }
}
