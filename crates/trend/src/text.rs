//! A trend for the terminal, and as JSON.

use crate::change::FEWEST;
use crate::series::{Line, Outcome, Series, Shift, Trend};
use report::text::{Options, fold};
use report::units::{counted, printable};

/// Files that are left out are named up to this many of a kind.
const MOST_NAMED: usize = 10;
/// Columns by which what goes on is indented.
const INDENT: usize = 2;

/// The whole of it as one JSON object.
pub fn json(trend: &Trend) -> String {
    serde_json::to_string_pretty(trend).unwrap_or_default() + "\n"
}

/// The whole of it in words, of no more columns than there are.
pub fn text(trend: &Trend, options: Options<'_>) -> String {
    let folded = |text: &str| fold(&(options.said)(&printable(text)), INDENT, options.width);
    let mut out = String::new();
    let (long, short): (Vec<_>, Vec<_>) =
        trend.series.iter().partition(|series| series.results.len() >= FEWEST);
    for series in &long {
        out += &fold(&printable(&heading(series)), INDENT, options.width);
        out += &table(series, options.width);
        out.push('\n');
    }
    if !short.is_empty() {
        let results: usize = short.iter().map(|series| series.results.len()).sum();
        out += &folded(&format!(
            "{} of fewer than {FEWEST} results, {results} together: nothing can be said of them yet.",
            counted(short.len() as u64, "series").replace("seriess", "series")
        ));
    }
    for line in left_out(trend).into_iter().chain(trend.notes.iter().map(|note| format!("note: {note}"))) {
        out += &folded(&line);
    }
    out += &folded(&counts(trend));
    for line in conclusion(trend) {
        out += &folded(&line);
    }
    out
}

fn heading(series: &Series) -> String {
    let host = if series.host.is_empty() { String::new() } else { format!(" on {}", series.host) };
    let (first, last) = (series.results.first(), series.results.last());
    let span = first.zip(last).map(|(first, last)| format!("{} to {}", first.started, last.started));
    format!(
        "{}{host}: {}, {}",
        series.name,
        counted(series.results.len() as u64, "result"),
        span.unwrap_or_default()
    )
}

/// A line for each figure: its newest value, its group, and since when that is so.
fn table(series: &Series, width: usize) -> String {
    let mut rows = vec![["", "newest", "group's mean", "results", "change", "after"].map(str::to_owned)];
    for line in &series.figures {
        rows.push(cells(series, line));
    }
    let columns = 6;
    let widest = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(widest).collect();
    let mut out = String::new();
    for row in &rows {
        let mut text = String::new();
        for (number, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let padding = " ".repeat(width.saturating_sub(cell.chars().count()));
            text += &match number {
                0 => format!("{cell}{padding}"),
                5 => format!("  {cell}"),
                _ => format!("  {padding}{cell}"),
            };
        }
        let text = text.trim_end();
        // The path is the last and may be of any length.
        out += &if text.chars().count() > width { fold(text, INDENT, width) } else { format!("{text}\n") };
    }
    out
}

fn cells(series: &Series, line: &Line) -> [String; 6] {
    let dash = || "-".to_owned();
    let show = |value: f64| line.unit.show(value);
    let group = line.groups.last();
    let word = match line.outcome {
        Outcome::Worse => "WORSE",
        Outcome::Better => "BETTER",
        Outcome::Same => "same",
        Outcome::NotJudged => "not judged",
    };
    let shift = line.shift.as_ref().filter(|_| matches!(line.outcome, Outcome::Worse | Outcome::Better));
    let ratio = shift.and_then(|shift| shift.ratio).map(|ratio| {
        let sign = if ratio > 0.0 { "+" } else { "" };
        format!(" {sign}{}", report::units::percent(ratio))
    });
    let after = shift.and_then(|shift| series.results.get(shift.after)).map(|past| printable(&past.path));
    [
        printable(&line.name),
        line.values.last().copied().flatten().map_or_else(dash, show),
        group.map_or_else(dash, |group| show(group.mean)),
        group.map_or_else(dash, |group| group.values.to_string()),
        format!("{word}{}", ratio.unwrap_or_default()),
        after.unwrap_or_default(),
    ]
}

/// Files that are in no series: how many of each kind, and which.
pub(crate) fn left_out(trend: &Trend) -> Vec<String> {
    let mut lines = Vec::new();
    for group in trend.left_out.chunk_by(|a, b| a.why == b.why) {
        let Some(first) = group.first() else { continue };
        let named = group.iter().take(MOST_NAMED).map(|left| format!("{} ({})", left.path, left.reason));
        let more = match group.len().saturating_sub(MOST_NAMED) {
            0 => String::new(),
            more => format!("; and {more} more (`.json` names all)"),
        };
        lines.push(format!(
            "left out, {}: {}: {}{more}",
            first.why.words(),
            group.len(),
            named.collect::<Vec<_>>().join("; ")
        ));
    }
    lines
}

/// What was looked at.
pub(crate) fn counts(trend: &Trend) -> String {
    let series = match trend.series.len() {
        1 => "1 series".to_owned(),
        n => format!("{n} series"),
    };
    let mut text = format!("{} in {series}", counted(trend.results as u64, "result"));
    for (count, what) in [
        (trend.left_out.len(), "left out"),
        (trend.before_since, "of before `.since`"),
        (trend.other_files, "other JSON files passed over"),
    ] {
        if count > 0 {
            text += &format!(", {count} {what}");
        }
    }
    text + "."
}

/// What it comes to: what is worse and what is better, with since when and what else changed. Figures that changed at the same
/// place stand together.
pub(crate) fn conclusion(trend: &Trend) -> Vec<String> {
    let mut lines: Vec<String> = trend.not_done.iter().map(|run| run.told() + ".").collect();
    for series in &trend.series {
        let of = if trend.series.len() > 1 { format!("{}: ", series.name) } else { String::new() };
        for (outcome, word) in [(Outcome::Worse, "WORSE"), (Outcome::Better, "BETTER")] {
            let changed = series.figures.iter().filter(|line| line.outcome == outcome);
            let mut at: Vec<(&Shift, Vec<String>)> = Vec::new();
            for (line, shift) in changed.filter_map(|line| Some((line, line.shift.as_ref()?))) {
                let told = format!("{}: {}", line.name, line.moved().unwrap_or_default());
                match at
                    .iter_mut()
                    .find(|(known, _)| (known.after, known.since) == (shift.after, shift.since))
                {
                    Some((_, figures)) => figures.push(told),
                    None => at.push((shift, vec![told])),
                }
            }
            lines.extend(at.into_iter().map(|(shift, figures)| {
                let (place, changed) = shift.place(series);
                format!("{word}: {of}{place}: {}; {changed}.", figures.join("; "))
            }));
        }
    }
    if lines.is_empty() {
        lines.push(match trend.outcome {
            Outcome::NotJudged => "There is nothing to judge yet.".to_owned(),
            _ => "No newest result lies in another group than those before.".to_owned(),
        });
    }
    lines
}
