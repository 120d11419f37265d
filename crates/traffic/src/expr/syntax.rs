//! Text to syntax tree. What the words mean (which field, which address) is `value`'s and `header`'s business.
//!
//! ```text
//! packet    = layer { "/" layer }
//! layer     = word [ "(" [ argument { "," argument } ] ")" ]
//! argument  = [ word "=" ] value { word "=" value }      the second kind are modifiers: step=, every=
//! value     = word [ ".." word ] | string | "[" [ value { "," value } ] "]" | word "(" ... ")"
//! word      = letters, digits and : . - + _   ("/" digits too, after an address: a prefix)
//! ```

pub(super) use super::error::Span;
use super::error::{Fault, Outcome};

/// Bytes of an expression, at most.
pub(super) const MAX_TEXT: usize = 1 << 20;
/// How deep brackets nest, at most.
const MAX_DEPTH: usize = 8;
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
    Call(Word<'a>, Vec<Argument<'a>>, Span),
}

impl Value<'_> {
    pub fn span(&self) -> Span {
        match self {
            Value::Word(word) => word.span,
            Value::Range(from, to) => from.span.to(to.span),
            Value::Text(_, span) | Value::List(_, span) | Value::Call(_, _, span) => *span,
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
    let mut parser = Parser { text, at: 0 };
    let mut layers = Vec::new();
    loop {
        let name = parser.word("a layer, such as ipv4 or udp")?;
        if layers.len() == MAX_LAYERS {
            return Err(Fault::at(name.span, format!("more than {MAX_LAYERS} layers")));
        }
        let arguments = if parser.take(b'(') { parser.arguments(b')', 0)? } else { Vec::new() };
        layers.push(Layer { name, arguments });
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
}

impl<'a> Parser<'a> {
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
                _ => byte.is_ascii_alphanumeric() || matches!(byte, b':' | b'-' | b'+' | b'_'),
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
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b'[') => self.list(depth),
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

    fn list(&mut self, depth: usize) -> Outcome<Value<'a>> {
        let start = self.at;
        self.at += 1;
        let mut items = Vec::new();
        if !self.take(b']') {
            loop {
                items.push(self.value(depth + 1)?);
                if self.take(b']') {
                    break;
                }
                if !self.take(b',') {
                    return Err(self.expected("`,` or `]`"));
                }
            }
        }
        Ok(Value::List(items, Span { start, end: self.at }))
    }

    /// A quoted string; its escapes are \n \r \t \0 \\ \" \' and \xHH.
    fn string(&mut self) -> Outcome<Value<'a>> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let mut out = Vec::new();
        let mut at = start + 1;
        loop {
            let Some(&byte) = bytes.get(at) else {
                return Err(Fault::at(Span { start, end: start + 1 }, "this string has no closing `\"`"));
            };
            at += 1;
            match byte {
                b'"' => break,
                b'\\' => {
                    let escape = bytes.get(at).copied();
                    at += 1;
                    out.push(match escape {
                        Some(b'n') => b'\n',
                        Some(b'r') => b'\r',
                        Some(b't') => b'\t',
                        Some(b'0') => 0,
                        Some(c @ (b'\\' | b'"' | b'\'')) => c,
                        Some(b'x') => {
                            let digits = self
                                .text
                                .get(at..at + 2)
                                .filter(|d| d.bytes().all(|c| c.is_ascii_hexdigit()));
                            let Some(value) = digits.and_then(|d| u8::from_str_radix(d, 16).ok()) else {
                                let span = Span { start: at - 2, end: at };
                                return Err(Fault::at(span, "\\x needs two hexadecimal digits"));
                            };
                            at += 2;
                            value
                        }
                        _ => {
                            let message = "unknown escape; there are \\n \\r \\t \\0 \\\\ \\\" \\' and \\xHH";
                            return Err(Fault::at(Span { start: at - 2, end: at }, message));
                        }
                    });
                }
                _ => out.push(byte),
            }
        }
        self.at = at;
        Ok(Value::Text(out, Span { start, end: at }))
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
