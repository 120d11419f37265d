//! Figures of a result as bare numbers, for scripts: a figure by its key, and of several values those of a name.

use std::collections::BTreeSet;
use thiserror::Error;

use crate::figure;
use crate::model::Report;
use crate::sections;
use crate::units::printable;

/// Which figure is asked for: `latency_p99`; of one that has several values `throughput:64`, those whose name begins so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    key: String,
    name: Option<String>,
}

/// A key that no figure has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no figure `{}`; {}", printable(.0), near(.0, keys()))]
pub struct Unknown(String);

/// A figure that no result of a kind of job has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no result of a job of the kind `{kind}` has a figure `{key}`: {}", had_by(.key, .kind))]
pub struct Never {
    kind: &'static str,
    key: String,
}

/// A figure that a result does not have.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Missing {
    /// None of that key.
    #[error("the result has no figure `{key}`{}", of(.there))]
    Figure {
        /// Which was asked for.
        key: String,
        /// Those that it has, in their order.
        there: Vec<String>,
    },
    /// None of that name.
    #[error("no `{key}` of the result has a name that begins with `{}`; they are: {}", printable(.name), .there.join("; "))]
    Name {
        /// Which was asked for.
        key: String,
        /// By which name.
        name: String,
        /// The names that there are.
        there: Vec<String>,
    },
}

fn of(there: &[String]) -> String {
    if there.is_empty() { ", nor any other".to_owned() } else { format!("; it has {}", there.join(", ")) }
}

/// The keys of all figures.
pub fn keys() -> impl Iterator<Item = &'static str> {
    sections::declared().map(|figure| figure.key)
}

/// Whether a result of this kind of job can have the figure.
fn may_have(kind: &str, key: &str) -> bool {
    sections::kinds_of(key).contains(&kind)
}

/// Which kinds of jobs have a figure, and what one that has not has instead, as a sentence's end.
fn had_by(key: &str, not: &str) -> String {
    let instead = alike(key, keys().filter(|key| may_have(not, key)));
    let near =
        if instead.is_empty() { String::new() } else { format!("; near it are {}", instead.join(", ")) };
    format!("it is one of {}{near}", sections::kinds_of(key).join(", "))
}

/// Whether a result of this kind of job (`netdyno_spec::Job::kind`) can have these figures at all.
///
/// # Errors
/// The first that it cannot have. One that it may have can still be missing in the result: see [`lines`].
pub fn check(kind: &'static str, wanted: &[Wanted]) -> Result<(), Never> {
    match wanted.iter().find(|wanted| !may_have(kind, &wanted.key)) {
        Some(wanted) => Err(Never { kind, key: wanted.key.clone() }),
        None => Ok(()),
    }
}

/// The figures of a result that [`check`] would have refused for its kind of job: none, if it knows what results have.
pub fn unforeseen(kind: &str, report: &Report) -> Vec<&'static str> {
    let had = figure::of(report).into_iter().map(|measured| measured.figure.key);
    had.filter(|key| !may_have(kind, key)).collect()
}

impl std::str::FromStr for Wanted {
    type Err = Unknown;

    fn from_str(text: &str) -> Result<Self, Unknown> {
        let (key, name) =
            text.split_once(':').map_or((text, None), |(key, name)| (key, Some(name.to_owned())));
        match keys().any(|known| known == key) {
            true => Ok(Wanted { key: key.to_owned(), name }),
            false => Err(Unknown(key.to_owned())),
        }
    }
}

/// The values of these figures, a line each: in the order they are asked for, and of one that has several values in the
/// order of figures.csv.
///
/// # Errors
/// The result does not have one of them.
pub fn lines(report: &Report, wanted: &[Wanted]) -> Result<String, Missing> {
    let all = figure::of(report);
    let mut out = String::new();
    for Wanted { key, name } in wanted {
        let of_key: Vec<_> = all.iter().filter(|measured| measured.figure.key == key).collect();
        let labels = || of_key.iter().map(|measured| printable(&measured.label()));
        if of_key.is_empty() {
            let mut there: Vec<String> = all.iter().map(|measured| measured.figure.key.to_owned()).collect();
            // Of several frame sizes each has the same.
            let mut seen = BTreeSet::new();
            there.retain(|key| seen.insert(key.clone()));
            return Err(Missing::Figure { key: key.clone(), there });
        }
        let before = out.len();
        for (measured, label) in of_key.iter().zip(labels()) {
            if name.as_ref().is_none_or(|name| begins(&label, name)) {
                out += &format!("{}\n", measured.value);
            }
        }
        if let Some(name) = name.as_ref().filter(|_| out.len() == before) {
            let (key, name, there) = (key.clone(), name.clone(), labels().collect());
            return Err(Missing::Name { key, name, there });
        }
    }
    Ok(out)
}

/// Whether a name begins with these words: `64` is not how `640 bytes: throughput` begins.
fn begins(name: &str, words: &str) -> bool {
    let inside = |rest: &str| {
        let word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        word(rest.chars().next()) && word(words.chars().last())
    };
    name.strip_prefix(words).is_some_and(|rest| !inside(rest))
}

/// The keys that are most like this one, as a sentence's end; all of them where none is.
fn near<'k>(key: &str, known: impl Iterator<Item = &'k str>) -> String {
    let known: Vec<&str> = known.collect();
    let like = alike(key, known.iter().copied());
    if like.is_empty() {
        format!("there are {}", known.join(", "))
    } else {
        format!("near it are {}", like.join(", "))
    }
}

/// The keys that are most like this one.
fn alike<'k>(key: &str, known: impl Iterator<Item = &'k str>) -> Vec<&'k str> {
    const MOST: usize = 5;
    // Below this share two have less in common than most have by chance.
    const LEAST: f64 = 0.3;
    let mut known: Vec<(f64, &str)> = known.map(|known| (likeness(key, known), known)).collect();
    known.retain(|(like, _)| *like >= LEAST);
    known.sort_by(|a, b| b.0.total_cmp(&a.0));
    known.into_iter().map(|(_, key)| key).take(MOST).collect()
}

/// How much of two words is the same, from 0 to 1: pairs of neighbouring letters (Dice). Unlike a count of edits it finds words
/// in another order, and of which only a part was typed.
fn likeness(a: &str, b: &str) -> f64 {
    let pairs = |text: &str| {
        let letters: Vec<char> =
            text.to_lowercase().chars().map(|c| if c == '-' { '_' } else { c }).collect();
        letters.windows(2).map(<[char]>::to_vec).collect::<Vec<_>>()
    };
    let (a, mut b) = (pairs(a), pairs(b));
    let all = a.len() + b.len();
    let mut same = 0;
    for pair in a {
        if let Some(at) = b.iter().position(|other| *other == pair) {
            b.swap_remove(at);
            same += 2;
        }
    }
    if all == 0 { 0.0 } else { f64::from(same) / all as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_none_is_answered_with_those_near_it() {
        let told = |key: &str| key.parse::<Wanted>().expect_err("unknown").to_string();
        assert!(
            told("p99_latency").contains("`p99_latency`; near it are latency_p99, "),
            "{}",
            told("p99_latency")
        );
        assert!(told("latency-p9").contains("latency_p99"), "{}", told("latency-p9"));
        assert!(told("p99").contains(" latency_p99"), "{}", told("p99"));
        assert!(told("thruput:64").contains("throughput"), "{}", told("thruput:64"));
        for odd in ["", "qqq", "\u{1b}[2J", ":"] {
            let told = told(odd);
            assert!(told.contains("there are tx_frames_per_second, ") && !told.contains('\u{1b}'), "{told}");
        }
        for key in keys() {
            assert_eq!(key.parse(), Ok(Wanted { key: key.to_owned(), name: None }));
        }
    }

    #[test]
    fn a_name_begins_with_whole_words() {
        for (name, words, is) in [
            ("64 bytes: throughput", "64", true),
            ("640 bytes: throughput", "64", false),
            ("64 bytes: throughput", "64 bytes: ", true),
            ("imix: throughput", "imix", true),
            ("64 bytes: throughput", "", true),
            ("64 bytes: throughput", "throughput", false),
        ] {
            assert_eq!(begins(name, words), is, "{name}: {words}");
        }
    }
}
