//! The difference of two listings of counters as other tools print them, laid out as the second is.
//!
//! ```text
//!   text --> recognise: Form --> cut: Pieces (text, or a number with the name of what it counts)
//!   A's numbers by name -----.
//!   B's pieces ---------------+--> B's text with what its numbers rose by
//! ```
//!
//! Numbers are matched by name, because listings hide what is zero: with a counter that only the second has, whoever matches by
//! position subtracts all that follow from their neighbours. A counter that only the second listing has counted from zero.
//! Gauges keep the second's value. Of a text in no known form the lines are matched by position, and only where the words
//! around the numbers are alike. No I/O. Caller: `netdyno beforeafter`.

mod forms;
mod json;

use crate::difference::{Irregular, rise};
use std::collections::HashMap;

pub use forms::Form;

/// Warnings that are listed one by one.
const MOST_WARNINGS: usize = 20;

/// A listing's difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subtracted {
    /// Laid out as the second listing.
    pub text: String,
    /// What both were taken for.
    pub form: Form,
    /// What could not be subtracted, or not with certainty.
    pub warnings: Vec<String>,
}

/// Why two listings have no difference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ListingError {
    /// There is nothing to subtract in one.
    #[error("{0} has no numbers: this is no listing of counters")]
    NoNumbers(Which),
    /// A listing is broken.
    #[error("{0} begins as JSON but is none: {1}")]
    Json(Which, String),
    /// They are of different tools.
    #[error("the first file looks like {0}, the second like {1}: give two listings of one tool")]
    Forms(Form, Form),
}

/// One of two files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// A.
    First,
    /// B.
    Second,
}

impl std::fmt::Display for Which {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Which::First => "the first file",
            Which::Second => "the second file",
        })
    }
}

/// How numbers keep their columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Align {
    None,
    Left,
    Right,
}

/// A part of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece<'a> {
    Text(&'a str),
    Number(Number<'a>),
}

/// A number, and what it is of.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Number<'a> {
    text: &'a str,
    /// `Tcp segments sent out`.
    name: String,
    gauge: bool,
    hexadecimal: bool,
}

impl Number<'_> {
    fn value(&self) -> Option<u64> {
        if self.hexadecimal { u64::from_str_radix(self.text, 16).ok() } else { self.text.parse().ok() }
    }
}

/// Warnings, no more of them than somebody reads.
#[derive(Debug, Default)]
struct Warnings {
    told: Vec<String>,
    more: usize,
}

impl Warnings {
    fn add(&mut self, text: String) {
        if self.told.len() < MOST_WARNINGS { self.told.push(text) } else { self.more += 1 }
    }

    fn all(mut self) -> Vec<String> {
        if self.more > 0 {
            self.told.push(format!("and {} more such warnings", self.more));
        }
        self.told
    }
}

/// What the numbers of `after` rose by since `before`, in `after`'s layout.
///
/// # Errors
/// That one of them is no listing, or that they are of different tools.
pub fn subtract(before: &str, after: &str) -> Result<Subtracted, ListingError> {
    for (which, text) in [(Which::First, before), (Which::Second, after)] {
        if !text.bytes().any(|byte| byte.is_ascii_digit()) {
            return Err(ListingError::NoNumbers(which));
        }
    }
    let (form, other) = (forms::recognise(after), forms::recognise(before));
    if form != other {
        return Err(ListingError::Forms(other, form));
    }
    if form == Form::Unknown {
        return Ok(by_position(before, after));
    }
    let cut = |which, text| -> Result<Vec<Piece<'_>>, ListingError> {
        match form {
            Form::Json => json::cut(text).map_err(|error| ListingError::Json(which, error)),
            _ => Ok(forms::cut(form, text)),
        }
    };
    let (before, after) = (cut(Which::First, before)?, cut(Which::Second, after)?);
    let mut warnings = Warnings::default();
    let mut earlier: HashMap<(String, usize), Number<'_>> = HashMap::new();
    let mut times = Times::default();
    for piece in before {
        if let Piece::Number(number) = piece {
            earlier.insert(times.of(&number.name), number);
        }
    }
    let mut times = Times::default();
    let mut text = String::new();
    let mut after = after.into_iter().peekable();
    while let Some(piece) = after.next() {
        let number = match piece {
            Piece::Text(words) => {
                text += words;
                continue;
            }
            Piece::Number(number) => number,
        };
        let before = earlier.remove(&times.of(&number.name));
        let risen = risen(before.as_ref(), &number, &mut warnings);
        let room = number.text.len().saturating_sub(risen.len());
        let align = form.align();
        // At the end of a line there is nothing to keep in its column.
        let ends = matches!(after.peek(), None | Some(Piece::Text("\n")));
        if align == Align::Right {
            text += &" ".repeat(room);
        }
        text += &risen;
        if align == Align::Left && !ends {
            text += &" ".repeat(room);
        }
    }
    let mut gone: Vec<_> = earlier.into_iter().filter(|(_, number)| !number.gauge).collect();
    gone.sort_by(|a, b| a.0.cmp(&b.0));
    for ((name, _), _) in gone {
        warnings.add(format!("`{name}` is in the first file only: its change is not known"));
    }
    Ok(Subtracted { text, form, warnings: warnings.all() })
}

/// How often each name has been seen: some listings have one twice.
#[derive(Debug, Default)]
struct Times(HashMap<String, usize>);

impl Times {
    fn of(&mut self, name: &str) -> (String, usize) {
        let time = self.0.entry(name.to_owned()).or_default();
        *time += 1;
        (name.to_owned(), *time)
    }
}

/// By how much a number rose, as text.
fn risen(before: Option<&Number<'_>>, after: &Number<'_>, warnings: &mut Warnings) -> String {
    if after.gauge {
        return after.text.to_owned();
    }
    let (Some(now), earlier) = (after.value(), before.map_or(Some(0), Number::value)) else {
        warnings
            .add(format!("`{}` is {}, which is more than 64 bits: left as it is", after.name, after.text));
        return after.text.to_owned();
    };
    let Some(earlier) = earlier else {
        warnings.add(format!("`{}` was more than 64 bits: left as it is", after.name));
        return after.text.to_owned();
    };
    match rise(earlier, now, after.hexadecimal, true) {
        (Some(by), irregular) => {
            if irregular == Some(Irregular::Wrapped) {
                warnings.add(format!("`{}` went from {earlier} to {now}: taken as wrapped", after.name));
            }
            if after.hexadecimal { format!("{by:08x}") } else { by.to_string() }
        }
        (None, _) => {
            warnings.add(format!(
                "`{}` fell from {earlier} to {now}: it was set back, is no counter, or the files are in the wrong order",
                after.name
            ));
            format!("-{}", earlier - now)
        }
    }
}

/// Text in no known form: line by line, where the words are alike.
fn by_position(before: &str, after: &str) -> Subtracted {
    let mut warnings = Warnings::default();
    let mut text = String::new();
    let mut earlier = before.lines();
    for (n, line) in after.split_inclusive('\n').enumerate() {
        let bare = line.trim_end_matches(['\n', '\r']);
        let now = forms::words(bare);
        let Some(was) = earlier.next().map(forms::words) else {
            if now.iter().any(|piece| matches!(piece, Piece::Number(_))) {
                warnings.add(format!("line {}: the first file has no such line; left as it is", n + 1));
            }
            text += line;
            continue;
        };
        let alike = was.len() == now.len()
            && was.iter().zip(&now).all(|pair| match pair {
                (Piece::Text(a), Piece::Text(b)) => a.split_whitespace().eq(b.split_whitespace()),
                (Piece::Number(_), Piece::Number(_)) => true,
                _ => false,
            });
        if !alike {
            let numbers = was.iter().chain(&now).any(|piece| matches!(piece, Piece::Number(_)));
            if numbers {
                warnings.add(format!("line {}: the words around the numbers differ; left as it is", n + 1));
            }
            text += line;
            continue;
        }
        for pair in was.iter().zip(&now) {
            text += &match pair {
                (Piece::Number(was), Piece::Number(now)) => risen(Some(was), now, &mut warnings),
                (_, Piece::Text(words)) => (*words).to_owned(),
                (_, Piece::Number(now)) => now.text.to_owned(),
            };
        }
        text += &line[bare.len()..];
    }
    let left = earlier.count();
    if left > 0 {
        warnings.add(format!("the first file has {left} lines more"));
    }
    Subtracted { text, form: Form::Unknown, warnings: warnings.all() }
}

#[cfg(test)]
mod tests;
