//! A trend as a page: one file, no network, no script. A small plot a figure, with the means of its groups, what changed, and the newest
//! result.
//!
//! A page of any number of results stays below a megabyte: a plot has so many columns, however many results there are, and when the page is
//! full the rest is told and not drawn. What became worse comes first.

use crate::series::{Line, Mark, Outcome, Series, Trend};
use crate::text::{conclusion, counts, left_out};
use report::html::escaped;
use std::fmt::Write;

/// A page has no plots beyond this size.
const FULL: usize = 850_000;
/// Plots of more results show the least and the greatest of neighbours.
const COLUMNS: usize = 240;
/// Changes of conditions that a plot shows at most, the newest of them.
const MOST_MARKS: usize = 24;
const WIDTH: f64 = 320.0;
const HEIGHT: f64 = 116.0;
const TOP: f64 = 18.0;
const BOTTOM: f64 = 18.0;
const SIDE: f64 = 8.0;

const STYLE: &str = include_str!("page.css");

/// The whole page.
pub fn page(trend: &Trend) -> String {
    let (class, title) = match trend.outcome {
        _ if !trend.not_done.is_empty() => ("failed", "The newest run was not done"),
        Outcome::Worse => ("failed", "Worse than before"),
        Outcome::Better => ("done", "Better than before"),
        Outcome::Same => ("done", "No change"),
        Outcome::NotJudged => ("short", "Nothing to judge yet"),
    };
    let list = |lines: Vec<String>| -> String {
        lines.iter().take(50).map(|line| format!("<li>{}</li>", escaped(line))).collect()
    };
    let mut out = format!(
        "<div class=\"eyebrow\"><span><b>netdyno</b> trend</span><span>{}</span></div>\n\
         <section class=\"verdict {class}\"><h1>{title}</h1><p>{}</p><ul>{}</ul></section>\n",
        escaped(&trend.folder),
        escaped(&counts(trend)),
        list(conclusion(trend)),
    );
    let notes: Vec<String> = left_out(trend).into_iter().chain(trend.notes.clone()).collect();
    if !notes.is_empty() {
        out += &format!(
            "<section class=\"warnings\"><h3>Before you trust this</h3><ul>{}</ul></section>\n",
            list(notes)
        );
    }
    out += &signs();
    let mut not_drawn = 0;
    for series in &trend.series {
        let lines: Vec<&Line> = series.figures.iter().filter(|line| line.newest().is_some()).collect();
        if out.len() > FULL {
            not_drawn += lines.len();
            continue;
        }
        out += &heading(series);
        out += "<div class=\"plots\">\n";
        for line in lines {
            if out.len() > FULL {
                not_drawn += 1;
            } else {
                out += &figure(series, line);
            }
        }
        out += "</div>\n";
    }
    if not_drawn > 0 {
        out += &format!(
            "<p class=\"absent\">{not_drawn} more plots are not drawn: the page is full. A page of some figures alone has room \
             for more, and the JSON has all values.</p>\n"
        );
    }
    out += "<footer>Made by netdyno. This page reads nothing from the network.</footer>\n";
    report::html::page(&format!("netdyno trend: {title}"), STYLE, &out)
}

/// What is what in the plots.
fn signs() -> String {
    let sign = |drawing: &str, what: &str| {
        format!("<span><svg viewBox=\"0 0 26 12\" aria-hidden=\"true\">{drawing}</svg>{what}</span>")
    };
    format!(
        "<div class=\"signs\">{}{}{}{}{}</div>\n",
        sign("<path class=\"points\" d=\"M5 8h0M13 4h0M21 7h0\"/>", "results, the oldest at the left"),
        sign("<path class=\"mean\" d=\"M1 6h24\"/>", "mean of a group"),
        sign("<line class=\"began\" x1=\"13\" y1=\"0\" x2=\"13\" y2=\"12\"/>", "another group begins"),
        sign(
            "<line class=\"changed\" x1=\"13\" y1=\"0\" x2=\"13\" y2=\"12\"/>",
            "kernel, version, MTU or the like changed"
        ),
        sign("<circle class=\"apart\" cx=\"13\" cy=\"6\" r=\"4\"/>", "an exception, in no group"),
    )
}

fn heading(series: &Series) -> String {
    let host = if series.host.is_empty() { String::new() } else { format!(" on {}", series.host) };
    let (first, last) = (series.results.first(), series.results.last());
    let span = first.zip(last).map(|(first, last)| format!("{} to {}", first.started, last.started));
    let changes = series.marks.iter().rev().take(5).map(|mark| told(series, mark));
    let changes: String = changes.map(|text| format!("<br>{}", escaped(&text))).collect();
    format!(
        "<h2 class=\"series\">{}{}</h2>\n<p class=\"small\">{}, {}{changes}</p>\n",
        escaped(&series.name),
        escaped(&host),
        report::units::counted(series.results.len() as u64, "result"),
        escaped(&span.unwrap_or_default()),
    )
}

/// What changed at a mark.
fn told(series: &Series, mark: &Mark) -> String {
    let changed: Vec<String> = mark.changed.iter().map(crate::Changed::words).collect();
    let text = format!("changed at {}: {}", series.named(mark.at), changed.join("; "));
    match text.char_indices().nth(400) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

fn figure(series: &Series, line: &Line) -> String {
    let class = match line.outcome {
        Outcome::Worse => " class=\"worse\"",
        Outcome::Better => " class=\"better\"",
        _ => "",
    };
    let show = |value: f64| line.unit.show(value);
    let newest = match line.values.last().copied().flatten() {
        Some(value) => show(value),
        None => "not in the newest result".to_owned(),
    };
    let changed = matches!(line.outcome, Outcome::Worse | Outcome::Better);
    let after = line.shift.as_ref().map(|shift| series.named(shift.after)).unwrap_or_default();
    let told = line.moved().filter(|_| changed);
    let told = told.map(|told| format!("<p>{}, after {}.</p>", escaped(&told), escaped(&after)));
    format!(
        "<figure{class}><figcaption><b>{}</b><span>{}</span></figcaption>{}{}</figure>\n",
        escaped(&line.name),
        escaped(&newest),
        svg(series, line),
        told.unwrap_or_default(),
    )
}

/// Where results and values are in a plot.
struct Place {
    results: f64,
    least: f64,
    greatest: f64,
}

impl Place {
    fn of(line: &Line) -> Place {
        // An exception would press all others together: it is drawn at the edge.
        let of_group = |(at, value): (usize, &Option<f64>)| value.filter(|_| !line.exceptions.contains(&at));
        let values = || line.values.iter().enumerate().filter_map(of_group);
        let (least, greatest) =
            (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
        Place { results: line.values.len() as f64, least, greatest }
    }

    fn x(&self, at: usize) -> f64 {
        SIDE + (WIDTH - 2.0 * SIDE) * (at as f64 + 0.5) / self.results.max(1.0)
    }

    fn y(&self, value: f64) -> f64 {
        let span = self.greatest - self.least;
        // A figure that never varies is a line in the middle.
        let share = if span > 0.0 { (value - self.least) / span } else { 0.5 };
        HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share.clamp(-0.04, 1.04)
    }
}

fn svg(series: &Series, line: &Line) -> String {
    let place = Place::of(line);
    let show = |value: f64| escaped(&line.unit.show(value));
    let bottom = HEIGHT - BOTTOM;
    let mut out = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\"><title>{}: {} to {}</title>",
        escaped(&line.name),
        show(place.least),
        show(place.greatest)
    );
    // Writing to a String cannot fail, here and below.
    for mark in series.marks.iter().rev().take(MOST_MARKS) {
        let x = (place.x(mark.at.saturating_sub(1)) + place.x(mark.at)) / 2.0;
        write!(out, "<line class=\"changed\" x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{bottom}\"/>")
            .unwrap_or_default();
    }
    let mut means = String::new();
    for (number, group) in line.groups.iter().enumerate() {
        let (first, last, y) = (place.x(group.first), place.x(group.last), place.y(group.mean));
        write!(means, "M{:.1} {y:.1}H{:.1}", first - 2.0, last + 2.0).unwrap_or_default();
        if number > 0 {
            let x = (place.x(group.first.saturating_sub(1)) + first) / 2.0;
            write!(out, "<line class=\"began\" x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{bottom}\"/>")
                .unwrap_or_default();
        }
    }
    write!(
        out,
        "<path class=\"points\" d=\"{}\"/><path class=\"mean\" d=\"{means}\"/>",
        points(line, &place)
    )
    .unwrap_or_default();
    for at in line.exceptions.iter().rev().take(MOST_MARKS) {
        if let Some(value) = line.values.get(*at).copied().flatten() {
            let (x, y) = (place.x(*at), place.y(value));
            write!(out, "<circle class=\"apart\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4.5\"/>")
                .unwrap_or_default();
        }
    }
    if let Some(value) = line.values.last().copied().flatten() {
        let (x, y) = (place.x(line.values.len() - 1), place.y(value));
        write!(out, "<circle class=\"newest\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\"/>").unwrap_or_default();
    }
    let day = |at: usize| {
        let started = series.results.get(at).map(|past| past.started.as_str()).unwrap_or_default();
        escaped(started.get(..10).unwrap_or_default())
    };
    let (first, last) = (day(0), day(series.results.len().saturating_sub(1)));
    let right = WIDTH - SIDE;
    write!(
        out,
        "<text x=\"{SIDE}\" y=\"11\">{}</text><text x=\"{SIDE}\" y=\"{}\">{}</text>\
         <text class=\"end\" x=\"{right}\" y=\"11\">{first}{}</text></svg>",
        show(place.greatest),
        HEIGHT - 4.0,
        show(place.least),
        if first == last { String::new() } else { format!(" to {last}") },
    )
    .unwrap_or_default();
    out
}

/// A dot for each result; of many, a bar for neighbours, from the least of their values to the greatest.
fn points(line: &Line, place: &Place) -> String {
    let mut out = String::new();
    let step = line.values.len().div_ceil(COLUMNS).max(1);
    for (column, values) in line.values.chunks(step).enumerate() {
        let there = || values.iter().flatten().copied();
        let (least, greatest) =
            (there().fold(f64::INFINITY, f64::min), there().fold(f64::NEG_INFINITY, f64::max));
        if !least.is_finite() {
            continue;
        }
        let x = place.x(column * step + (values.len() - 1) / 2);
        let (low, high) = (place.y(least), place.y(greatest));
        if (low - high).abs() < 0.1 {
            write!(out, "M{x:.0} {low:.0}h0").unwrap_or_default();
        } else {
            write!(out, "M{x:.0} {low:.0}V{high:.0}").unwrap_or_default();
        }
    }
    out
}
