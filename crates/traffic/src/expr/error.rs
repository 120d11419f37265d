//! What is wrong with an expression: the place, what was expected, and the nearest valid name.

use std::fmt;

/// A place in the expression, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub start: usize,
    pub end: usize,
}

impl Span {
    /// From where this starts to where `end` ends.
    pub(super) fn to(self, end: Span) -> Span {
        Span { start: self.start, end: end.end }
    }
}

/// Longest stretch of the expression printed above the caret.
const WINDOW: usize = 100;

/// An expression that does not compile. `Display` prints the message, the expression, and a caret under the place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExprError {
    /// Where, counted in characters from 1.
    pub column: usize,
    /// How many characters are meant.
    pub width: usize,
    /// What is wrong and what was expected.
    pub message: String,
    /// The expression, on one line.
    text: String,
}

impl std::error::Error for ExprError {}

impl ExprError {
    pub(super) fn new(text: &str, fault: Fault) -> ExprError {
        let chars_before = |byte: usize| text.char_indices().take_while(|(at, _)| *at < byte).count();
        let column = chars_before(fault.span.start) + 1;
        let width = (chars_before(fault.span.end) + 1).saturating_sub(column).max(1);
        let text = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        ExprError { column, width, message: fault.message, text }
    }
}

impl fmt::Display for ExprError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = self.text.chars().count();
        let first =
            if length <= WINDOW { 0 } else { self.column.saturating_sub(WINDOW / 2).min(length - WINDOW) };
        let shown: String = self.text.chars().skip(first).take(WINDOW).collect();
        let before = (self.column - 1).saturating_sub(first);
        let carets = self.width.min(WINDOW.saturating_sub(before)).max(1);
        let (left, right) =
            (if first > 0 { "..." } else { "" }, if first + WINDOW < length { "..." } else { "" });
        writeln!(f, "column {}: {}", self.column, self.message)?;
        writeln!(f, "  {left}{shown}{right}")?;
        write!(f, "  {:indent$}{}", "", "^".repeat(carets), indent = left.len() + before)
    }
}

/// An error before it is joined with the whole expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    pub span: Span,
    pub message: String,
}

impl Fault {
    pub fn at(span: Span, message: impl Into<String>) -> Fault {
        Fault { span, message: message.into() }
    }
}

pub(super) type Outcome<T> = Result<T, Fault>;

/// Names longer than this are not compared: nothing we know is.
const LONGEST_NAME: usize = 40;

/// What joins a message to its advice: "; did you mean `x`? " with the most alike of `names`, or only "; ".
pub fn did_you_mean<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> String {
    nearest(word, names).map_or_else(|| "; ".into(), |name| format!("; did you mean `{name}`? "))
}

/// The most alike of `names`, upper and lower case being the same: one letter in three may differ, and one in any word.
pub(super) fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > LONGEST_NAME {
        return None;
    }
    let word = word.to_ascii_lowercase();
    names
        .map(|name| (strsim::osa_distance(&word, &name.to_ascii_lowercase()), name))
        // Of three letters two are shared by chance.
        .filter(|(d, name)| *d <= 1 + name.len().min(word.len()).saturating_sub(1) / 3)
        .min()
        .map(|(_, name)| name)
}

/// What to say of a call that is none of `names`, which are written as `forms` says; or of one that is, but not written so.
pub(super) fn no_call(name: &str, names: &[&str], forms: &str) -> String {
    if names.iter().any(|known| known.eq_ignore_ascii_case(name)) {
        return forms.into();
    }
    format!(
        "there is no `{}` here{}{forms}",
        super::value::short(name),
        did_you_mean(name, names.iter().copied())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_stands_under_the_word() {
        let fault = Fault::at(Span { start: 5, end: 8 }, "unknown");
        let error = ExprError::new("ipv4(tll=3)", fault);
        assert_eq!(error.to_string(), "column 6: unknown\n  ipv4(tll=3)\n       ^^^");
    }

    #[test]
    fn a_long_expression_is_cut_around_the_caret() {
        let text = format!("raw(\"{}\")/x", "é".repeat(300));
        let at = text.len() - 1;
        let error = ExprError::new(&text, Fault::at(Span { start: at, end: at + 1 }, "unknown"));
        let printed = error.to_string();
        let lines: Vec<&str> = printed.lines().collect();
        assert_eq!(error.column, text.chars().count());
        let caret = lines[2].chars().position(|c| c == '^').unwrap();
        assert_eq!(lines[1].chars().nth(caret), Some('x'));
    }

    #[test]
    fn the_nearest_name_is_suggested_and_nonsense_is_not() {
        let names = || ["ttl", "tos", "chksum"].into_iter();
        assert_eq!(did_you_mean("tll", names()), "; did you mean `ttl`? ");
        assert_eq!(did_you_mean("chkusm", names()), "; did you mean `chksum`? ");
        assert_eq!(did_you_mean("banana", names()), "; ");
        let flags = || ["SYN", "ACK", "FIN"].into_iter();
        assert_eq!(did_you_mean("SYM", flags()), "; did you mean `SYN`? ");
        assert_eq!(did_you_mean("akc", flags()), "; did you mean `ACK`? ");
        assert_eq!(did_you_mean("SAX", flags()), "; ");
    }
}
