//! A comparison for the terminal: conditions that differ, a table of figures, and what it comes to.

use super::{Change, Compared, Comparison, Condition, Method, Side};
use crate::table::Table;
use crate::units::{self, printable};

/// Longest text of a condition's value; the rest is in the JSON.
const WIDEST: usize = 40;

/// The whole comparison in words.
pub fn render(comparison: &Comparison) -> String {
    let mut out = sides("A", &comparison.a) + &sides("B", &comparison.b) + "\n";
    out += &conditions(&comparison.conditions);
    out += &figures(&comparison.figures);
    if !comparison.not_in_all.is_empty() {
        let names: Vec<_> = comparison.not_in_all.iter().map(|name| printable(name)).collect();
        out += &format!("\nnot in all results: {}\n", names.join("; "));
    }
    out.push('\n');
    for note in &comparison.notes {
        out += &format!("note: {}\n", printable(note));
    }
    out + &ending(comparison)
}

fn sides(label: &str, sides: &[Side]) -> String {
    let line = |side: &Side| {
        let when = side.started.as_ref().map(|when| format!("  {}", printable(when))).unwrap_or_default();
        format!("{label}  {}{when}\n", printable(&side.path))
    };
    sides.iter().map(line).collect()
}

fn conditions(conditions: &[Condition]) -> String {
    if conditions.is_empty() {
        return "Conditions: the same on both sides.\n\n".to_owned();
    }
    let mut table = Table::with_header(["Conditions that differ", "A", "B"]);
    let cell = |values: &[String]| {
        let text = printable(&values.join(" or "));
        Some(match text.chars().count() > WIDEST {
            true => text.chars().take(WIDEST - 3).chain("...".chars()).collect(),
            false => text,
        })
    };
    for condition in conditions {
        table.row(&condition.name, [cell(&condition.a), cell(&condition.b)]);
    }
    format!("{table}\n")
}

fn figures(figures: &[Compared]) -> String {
    let header = ["Figures", "A", "B", "difference", "95 % interval", "effect", "judged by", ""];
    let mut table = Table::with_header(header);
    for c in figures {
        table.row(&c.name, cells(c));
    }
    table.to_string()
}

/// A, B, the difference, its interval, the effect, what it was judged by, the judgement.
pub(crate) fn cells(c: &Compared) -> [Option<String>; 7] {
    let relative = |value: f64| match c.a != 0.0 {
        true => signed(&units::percent(value / c.a.abs()), value),
        false => signed(&c.unit.show(value), value),
    };
    let by = match (c.method, c.values) {
        (Some(Method::Bounds), _) => "the searches' bounds".to_owned(),
        (Some(_), Some((a, b))) => {
            format!("{a} and {b} {}", if c.by == "intervals" { "parts" } else { &c.by })
        }
        _ => c.by.clone(),
    };
    let effect = c.cliffs_delta.map(|d| format!("{d:+.2}"));
    let effect = effect.or_else(|| c.hedges_g.map(|g| format!("g {g:+.1}")));
    let interval = c.interval_95.map(|(low, high)| format!("{} to {}", relative(low), relative(high)));
    [
        Some(c.unit.show(c.a)),
        Some(c.unit.show(c.b)),
        Some(relative(c.difference)),
        interval,
        effect,
        Some(by),
        Some(word(c.change).to_owned()),
    ]
}

/// With a plus where it is more.
fn signed(text: &str, value: f64) -> String {
    if value > 0.0 && !text.starts_with('+') { format!("+{text}") } else { text.to_owned() }
}

fn word(change: Change) -> &'static str {
    match change {
        Change::Same => "within the noise",
        Change::Better => "BETTER",
        Change::Worse => "WORSE",
        Change::NotJudged => "not judged",
    }
}

/// What it comes to, in a sentence.
pub(crate) fn ending(comparison: &Comparison) -> String {
    let named = |wanted| {
        let names: Vec<_> =
            comparison.figures.iter().filter(|c| c.change == wanted).map(|c| printable(&c.name)).collect();
        names.join("; ")
    };
    let (better, worse) = (named(Change::Better), named(Change::Worse));
    match (better.is_empty(), worse.is_empty()) {
        (true, true) if comparison.outcome == Change::NotJudged => {
            "Nothing could be judged: no figure has several values on a side.\n".to_owned()
        }
        (true, true) => "B does not differ from A by more than the noise.\n".to_owned(),
        (true, false) => format!("B is worse than A, by more than the noise: {worse}.\n"),
        (false, true) => format!("B is better than A, by more than the noise: {better}.\n"),
        (false, false) => {
            format!("B is worse than A, by more than the noise: {worse}. It is better in: {better}.\n")
        }
    }
}
