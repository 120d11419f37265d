//! What is wrong with a scenario: file, line, column, the line itself, and the mend.

use std::fmt;

/// Longest stretch of a line printed above the caret.
const WINDOW: usize = 100;

/// A place in the file; lines and columns count characters from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub line: usize,
    pub column: usize,
    pub width: usize,
}

impl Place {
    pub const START: Place = Place { line: 1, column: 1, width: 1 };
}

/// An error before it is joined with the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    pub place: Place,
    pub message: String,
}

pub(super) type Outcome<T> = Result<T, Fault>;

/// A scenario that cannot be used. `Display` prints file, line and column, the message, the line, and a caret under
/// the place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioError {
    /// The file, as it was named to us.
    pub file: String,
    /// Counted from 1.
    pub line: usize,
    /// Counted in characters from 1.
    pub column: usize,
    /// What is wrong, and what to write instead.
    pub message: String,
    /// How many characters are meant.
    width: usize,
    /// The line.
    excerpt: String,
}

impl std::error::Error for ScenarioError {}

impl ScenarioError {
    pub(super) fn new(file: &str, text: &str, fault: Fault) -> ScenarioError {
        let line = text.lines().nth(fault.place.line.saturating_sub(1)).unwrap_or_default();
        let excerpt: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        ScenarioError {
            file: file.to_owned(),
            line: fault.place.line,
            column: fault.place.column,
            message: fault.message,
            width: fault.place.width,
            excerpt,
        }
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = self.excerpt.chars().count();
        let before = self.column.saturating_sub(1).min(length);
        let first = if length <= WINDOW { 0 } else { before.saturating_sub(WINDOW / 2).min(length - WINDOW) };
        let shown: String = self.excerpt.chars().skip(first).take(WINDOW).collect();
        let shown = shown.trim_end();
        let most = shown.chars().count().saturating_sub(before - first);
        let carets = self.width.min(most).max(1);
        let number = self.line.to_string();
        let left = if first > 0 { "..." } else { "" };
        writeln!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.message)?;
        writeln!(f, "  {number} | {left}{shown}{}", if first + WINDOW < length { "..." } else { "" })?;
        let indent = left.len() + before - first;
        write!(f, "  {:gutter$} | {:indent$}{}", "", "", "^".repeat(carets), gutter = number.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(text: &str, line: usize, column: usize, width: usize) -> String {
        let place = Place { line, column, width };
        ScenarioError::new("x.yaml", text, Fault { place, message: "no".to_owned() }).to_string()
    }

    #[test]
    fn the_caret_stands_under_the_place() {
        let text = "a: 1\nb:\n  cé: 2\n";
        assert_eq!(printed(text, 3, 3, 2), "x.yaml:3:3: no\n  3 |   cé: 2\n    |   ^^");
    }

    #[test]
    fn long_lines_are_cut_and_places_beyond_the_text_do_no_harm() {
        let text = format!("{}X{}", "a".repeat(300), "b".repeat(300));
        let printed_long = printed(&text, 1, 301, 1);
        let lines: Vec<&str> = printed_long.lines().collect();
        let caret = lines[2].chars().position(|c| c == '^').unwrap();
        assert_eq!(lines[1].chars().nth(caret), Some('X'));
        assert!(lines[1].len() < 120);
        for (line, column) in [(0, 0), (9, 9), (1, 10_000)] {
            assert!(printed("a\n", line, column, 50).contains('^'));
        }
    }
}
