//! The page of a comparison: what it comes to, conditions that differ, each figure's difference beside its noise, and the
//! runs' drawings laid over each other.

use std::fmt::Write;

use super::boxes::{self, Group};
use super::charts::{self, Chart, FRAME};
use super::grid::{DASH, Grid};
use super::plot::{Frame, Scale, Svg, tick_number};
use super::{CONTENT_POLICY, GENERATOR, marks, nines, search};
use crate::data::compare::{Change, Compared, Comparison, Named, Side, load};
use crate::data::units;
use crate::render::compare as text;
use crate::render::html::escape::{Esc, json_in_script};

/// How the two sides are drawn everywhere: class of the series, name.
const SIDES: [(&str, &str); 2] = [("s0 goal0", "A"), ("s1 goal1", "B")];
/// Figures whose repetitions are drawn at most.
const MOST_BOXES: usize = 10;
/// Longest name of a figure in a drawing.
const NAME: usize = 44;

/// The whole page.
pub fn comparison(of: &Comparison, a: &[Named<'_>], b: &[Named<'_>]) -> String {
    let loads = load::said(&of.offered_loads);
    let (class, title) = match of.outcome {
        Change::Worse if loads.is_some() => ("failed", "The offered loads differ; B is worse than A"),
        _ if loads.is_some() => ("short", "The offered loads differ"),
        Change::Worse => ("failed", "B is worse than A"),
        Change::Better => ("done", "B is better than A"),
        Change::Same => ("done", "No difference beyond the noise"),
        Change::NotJudged => ("short", "Nothing could be judged"),
    };
    let mut out = super::head(&format!("netdyno compare: {title}"));
    // Writing to a String cannot fail, here and below.
    write!(
        out,
        "<div class=\"eyebrow\"><span><b>netdyno</b> compare</span><span>{}</span></div>\n\
         <section class=\"verdict {class}\"><h1>{title}</h1>{}<p>{}</p></section>\n",
        Esc(&format!("results of netdyno {}", of.command)),
        loads.map(|said| format!("<p>{}</p>", Esc(&said))).unwrap_or_default(),
        Esc(text::judgement(of).trim_end()),
    )
    .unwrap_or_default();
    if !of.notes.is_empty() {
        let notes: String = of.notes.iter().map(|note| format!("<li>{}</li>", Esc(note))).collect();
        out += &format!(
            "<section class=\"warnings\"><h3>Before you trust this</h3><ul>{notes}</ul></section>\n"
        );
    }
    out += "<h2>What is compared</h2>\n";
    out += &sides(of);
    out += &conditions(of);
    let drawn = |chart: Option<Chart>| chart.map(|chart| chart.html()).unwrap_or_default();
    out += "<h2>Figures</h2>\n";
    out += &drawn(differences(&of.figures));
    out += &figures(of);
    let mut plots = drawn(repetitions(of, a, b));
    if let (Some(a), Some(b)) = (a.first(), b.first()) {
        plots += &drawn(charts::beside(&a.report.intervals, &b.report.intervals, SIDES));
        let searches = a.report.result.search.as_ref().zip(b.report.result.search.as_ref());
        plots += &drawn(searches.and_then(|(a, b)| search::beside(a, b)));
        let delays = a.report.result.latency_ns.as_ref().zip(b.report.result.latency_ns.as_ref());
        plots += &drawn(delays.and_then(|(a, b)| nines::beside(&[("A", a), ("B", b)])));
    }
    if !plots.is_empty() {
        out += &format!("<h2>The one over the other</h2>\n{plots}");
    }
    let data = serde_json::to_string(of).unwrap_or_default();
    write!(
        out,
        "<footer>Made by netdyno. This page holds its data, <code>{}</code>, and reads nothing from the network.</footer>\n</main>\n\
         <script type=\"application/json\" id=\"netdyno-comparison\">{}</script>\n{}",
        Esc(&of.schema),
        json_in_script(&data),
        super::FOOT.replace("SCRIPT", include_str!("script.js")),
    )
    .unwrap_or_default();
    debug_assert!(out.contains(GENERATOR) && out.contains(CONTENT_POLICY));
    out
}

fn sides(of: &Comparison) -> String {
    let mut grid = Grid::new(["side", "result", "begun", "outcome"]);
    let mut row = |label: &str, side: &Side| {
        let begun = side.started.clone().unwrap_or(DASH.into());
        grid.row(label, [side.path.clone(), begun, side.outcome.clone()]);
    };
    of.a.iter().for_each(|side| row("A", side));
    of.b.iter().for_each(|side| row("B", side));
    grid.card("", false)
}

fn conditions(of: &Comparison) -> String {
    if of.conditions.is_empty() {
        let which = if of.offered_loads.iter().any(|load| load.differ) {
            "All other conditions"
        } else {
            "Conditions"
        };
        return format!("<p class=\"absent\">{which} are the same on both sides.</p>\n");
    }
    let mut grid = Grid::new(["condition", "A", "B"]);
    for condition in &of.conditions {
        grid.row(&condition.name, [condition.a.join(" or "), condition.b.join(" or ")]);
    }
    grid.card("Conditions that differ", true)
}

fn figures(of: &Comparison) -> String {
    let header = ["figure", "A", "B", "difference", "95 % interval", "effect", "judged by", "judgement"];
    let mut grid = Grid::new(header);
    for c in &of.figures {
        let class = match c.change {
            Change::Worse => "fault",
            Change::Better => "good",
            Change::NotJudged => "own",
            Change::Same => "",
        };
        let [a, b, difference, interval, effect, by, word] =
            text::cells(c).map(|cell| cell.unwrap_or(DASH.into()));
        grid.marked_row(class, &c.name, [a, b, difference, interval, effect, by, word]);
    }
    let missing = match of.not_in_all.as_slice() {
        [] => String::new(),
        names => format!("<p class=\"small\">Not in all results: {}.</p>\n", Esc(&names.join("; "))),
    };
    let legend: String = text::legend(&of.figures)
        .iter()
        .map(|line| format!("<p class=\"small\">{}.</p>\n", Esc(line)))
        .collect();
    grid.card("", true) + &legend + &missing
}

/// A figure, its difference of A in percent, and the ends of the interval around that.
type Row<'c> = (&'c Compared, f64, Option<(f64, f64)>);

/// Each figure's difference, relative to A, with its 95 % interval: what reaches over the line of 0 is within the noise.
fn differences(figures: &[Compared]) -> Option<Chart> {
    const ROW: f64 = 24.0;
    let rows: Vec<Row<'_>> = figures
        .iter()
        .filter_map(|c| {
            let of = |value: f64| value / c.a.abs() * 100.0;
            let ratio = c.difference_ratio.filter(|ratio| ratio.is_finite())?;
            Some((c, ratio * 100.0, c.interval_95.map(|(low, high)| (of(low), of(high)))))
        })
        .take(40)
        .collect();
    // A figure that grew a hundredfold must not press the others together: an arrow at the edge has its value beside it.
    let mut ends: Vec<f64> = rows
        .iter()
        .flat_map(|(_, ratio, interval)| [Some(*ratio), interval.map(|i| i.0), interval.map(|i| i.1)])
        .flatten()
        .map(f64::abs)
        .filter(|v| v.is_finite())
        .collect();
    ends.sort_by(f64::total_cmp);
    let most = ends.last().copied()?.min(ends.get(ends.len() * 3 / 4).copied()? * 4.0).clamp(0.5, 400.0);
    let most = super::plot::round_up(most * 1.02);
    let left = 16.0 + 6.4 * rows.iter().map(|(c, ..)| c.name.chars().count().min(NAME)).max()? as f64;
    let mut svg = Svg::new(rows.len() as f64 * ROW + 56.0, Frame { left, right: 24.0, top: 8.0, ..FRAME });
    let ((x0, x1), (y0, y1)) = (svg.x_range(), svg.y_range());
    let x = Scale::linear(-most, most, x0, x1);
    let ticks = x.ticks(6);
    let labels: Vec<_> = ticks.iter().map(|v| (*v, format!("{} %", tick_number(*v, &ticks)))).collect();
    svg.x_axis(&x, &labels, "B less A, of A", true);
    svg.line("axis", x.at(0.0), y0, x.at(0.0), y1);
    for (row, (c, ratio, interval)) in rows.iter().enumerate() {
        let middle = y1 + ROW * (row as f64 + 0.5);
        // Better and worse differ by shape, too.
        let class = match c.change {
            Change::Worse => "s1",
            Change::Better => "s2",
            Change::Same => "s0",
            Change::NotJudged => "s5",
        };
        svg.text("tick end", x0 - 8.0, middle + 4.0, &crate::render::table::cut(&c.name, NAME));
        if let Some((low, high)) = interval {
            let (low, high) = (low.min(*high), low.max(*high));
            svg.line(&format!("whisker {class}"), x.at(low), middle, x.at(high), middle);
            for end in [low, high] {
                // A bar that goes on beyond the axis has no end here.
                if x.holds(end) {
                    svg.line(&format!("whisker {class}"), x.at(end), middle - 5.0, x.at(end), middle + 5.0);
                } else {
                    svg.beyond(class, x.at(end), middle, end > 0.0);
                }
            }
        }
        let [a, b, difference, interval, _, by, word] = text::cells(c).map(Option::unwrap_or_default);
        if x.holds(*ratio) {
            svg.mark(class, x.at(*ratio), middle, 4.4);
        } else {
            svg.beyond(class, x.at(*ratio), middle, *ratio > 0.0);
            let (side, at) = if *ratio > 0.0 { ("value end", -12.0) } else { ("value", 12.0) };
            svg.text(side, x.at(*ratio) + at, middle + 4.0, &difference);
        }
        let interval = if interval.is_empty() { interval } else { format!(" ({interval})") };
        let tip = format!("{} · A {a} · B {b} · {difference}{interval} · {word}, by {by}", c.name);
        svg.rect("hit", 0.0, middle - ROW / 2.0, x1, ROW, Some(&tip));
    }
    let all = [
        ("s1 alone", "worse", Change::Worse),
        ("s2 alone", "better", Change::Better),
        ("s0 alone", "within the noise", Change::Same),
        ("s5 alone", "not judged", Change::NotJudged),
    ];
    let legend = all
        .into_iter()
        .filter(|(.., change)| rows.iter().any(|(c, ..)| c.change == *change))
        .map(|(class, name, _)| (class, name.to_owned()))
        .collect();
    let heading = "Differences and their noise".to_owned();
    let is_beyond = |(_, ratio, interval): &Row<'_>| {
        !x.holds(*ratio) || interval.is_some_and(|(low, high)| !x.holds(low) || !x.holds(high))
    };
    let mut note = "Bars are 95 % intervals: a difference whose bar reaches over 0 may be chance. What has no bar has no known noise.".to_owned();
    if rows.iter().any(is_beyond) {
        note +=
            " An arrow at the edge: the bar, or the difference that stands beside it, lies beyond the axis.";
    }
    Some(Chart {
        svg: svg.finish("Differences of all figures; the table below has the values"),
        heading,
        legend,
        note,
    })
}

/// The results of each side as boxes, where there are several: each value relative to the mean of A.
fn repetitions(of: &Comparison, a: &[Named<'_>], b: &[Named<'_>]) -> Option<Chart> {
    if a.len().max(b.len()) < boxes::FEWEST {
        return None;
    }
    let mut groups = Vec::new();
    // What differs comes first.
    let mut figures: Vec<&Compared> = of.figures.iter().filter(|c| c.a != 0.0).collect();
    figures.sort_by_key(|c| !matches!(c.change, Change::Worse | Change::Better));
    for c in figures.into_iter().take(MOST_BOXES) {
        for (series, (side, results)) in [("A", a), ("B", b)].into_iter().enumerate() {
            let value =
                |named: &Named<'_>| crate::data::compare::value(named.report, &c.name).map(|v| v / c.a.abs());
            let values = results.iter().filter_map(value).collect();
            groups.push(Group { name: format!("{}, {side}", c.name), values, series });
        }
    }
    let legend = SIDES.map(|(class, name)| {
        (
            class
                .split(' ')
                .next()
                .and_then(|c| (c == "s1").then(|| marks::class(1)))
                .unwrap_or(marks::class(0)),
            name.to_owned(),
        )
    });
    let note = "Each result's value in % of the mean of A: the middle half, the median, and lines to the least and the greatest.";
    boxes::chart("Repetitions", note, crate::data::figure::Unit::Ratio, &groups, legend.to_vec())
}

/// A value for the tool tip of a stretch: what both sides have there.
pub(super) fn tip(name: &str, values: [Option<f64>; 2], show: impl Fn(f64) -> String) -> Option<String> {
    let said = |value: Option<f64>| value.map_or_else(|| DASH.to_owned(), &show);
    values.iter().any(Option::is_some).then(|| format!("{name} A {} B {}", said(values[0]), said(values[1])))
}

/// A time as it is said there.
pub(super) fn time(ns: f64) -> String {
    units::time(ns as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::compare::{Better, Unit};

    fn compared(name: &str, ratio: f64, interval_95: Option<(f64, f64)>) -> Compared {
        Compared {
            name: name.to_owned(),
            unit: Unit::Ns,
            better: Better::Lower,
            a: 1000.0,
            b: 1000.0 * (1.0 + ratio),
            difference: 1000.0 * ratio,
            difference_ratio: Some(ratio),
            change: Change::Worse,
            by: "repetitions".to_owned(),
            method: None,
            values: None,
            interval_95,
            p: None,
            p_adjusted: None,
            cliffs_delta: None,
            hedges_g: None,
        }
    }

    #[test]
    fn what_lies_beyond_the_axis_is_an_arrow_with_its_value() {
        let mut figures: Vec<_> =
            (0..8).map(|n| compared(&format!("figure {n}"), 0.02, Some((10.0, 30.0)))).collect();
        let within = differences(&figures).expect("a drawing");
        assert!(!within.svg.contains("beyond") && !within.note.contains("arrow"), "{}", within.svg);
        figures.push(compared("far", 97.63, None));
        figures.push(compared("wide", 0.02, Some((-90_000.0, 30.0))));
        let chart = differences(&figures).expect("a drawing");
        assert_eq!(chart.svg.matches("mk beyond").count(), 2, "{}", chart.svg);
        assert!(
            chart.svg.contains(">+9763 %</text>") && chart.note.contains("An arrow at the edge"),
            "{}",
            chart.svg
        );
    }
}
