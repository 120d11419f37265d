//! What tells series of points apart: a colour and a shape for each, so that neither print nor colour-blind eyes lose
//! anything. The colours are in the style sheet (after Okabe and Ito, chosen to differ for every kind of sight).

use std::fmt::Write;

/// CSS classes of series, in order. More series than this begin anew.
const CLASSES: [&str; 7] = ["s0", "s1", "s2", "s3", "s4", "s5", "s6"];

/// The CSS class of series `n`.
pub(super) fn class(n: usize) -> &'static str {
    CLASSES[n % CLASSES.len()]
}

/// CSS classes of a search's goals (NDR, PDR): a colour, a shape and a kind of dashes each.
const GOALS: [&str; 7] = ["s0 goal0", "s1 goal1", "s2 goal2", "s3 goal3", "s4 goal1", "s5 goal2", "s6 goal3"];
/// A goal's line without its shape, as signs in a legend.
const GOAL_LINES: [&str; 7] = [
    "found s0 goal0",
    "found s1 goal1",
    "found s2 goal2",
    "found s3 goal3",
    "found s4 goal1",
    "found s5 goal2",
    "found s6 goal3",
];

/// The CSS classes of goal `n`.
pub(super) fn goal(n: usize) -> &'static str {
    GOALS[n % GOALS.len()]
}

/// The same for a sign that is a bare line.
pub(super) fn goal_line(n: usize) -> &'static str {
    GOAL_LINES[n % GOAL_LINES.len()]
}

/// A point of the series with this class as SVG, about 2 `r` wide.
pub(super) fn mark(class: &str, x: f64, y: f64, r: f64) -> String {
    let class = class.split(' ').next().unwrap_or_default();
    let shape = CLASSES.iter().position(|c| *c == class).unwrap_or(0);
    let mut out = String::new();
    let path = |points: &[(f64, f64)], closed: bool| {
        let mut d = String::new();
        for (i, (dx, dy)) in points.iter().enumerate() {
            let pen = if i % if closed { usize::MAX } else { 2 } == 0 { 'M' } else { 'L' };
            // Writing to a String cannot fail, here and below.
            write!(d, "{pen}{:.1} {:.1}", x + dx * r, y + dy * r).unwrap_or_default();
        }
        let kind = if closed { "mk" } else { "mk open" };
        format!("<path class=\"{kind} {class}\" d=\"{d}{}\"/>", if closed { "Z" } else { "" })
    };
    match shape {
        0 => write!(out, "<circle class=\"mk {class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{r:.1}\"/>"),
        1 => write!(out, "{}", path(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)], true)),
        2 => write!(out, "{}", path(&[(0.0, -1.2), (1.1, 0.8), (-1.1, 0.8)], true)),
        3 => write!(out, "{}", path(&[(0.0, -1.3), (1.1, 0.0), (0.0, 1.3), (-1.1, 0.0)], true)),
        4 => write!(out, "{}", path(&[(-0.9, -0.9), (0.9, 0.9), (-0.9, 0.9), (0.9, -0.9)], false)),
        5 => write!(out, "{}", path(&[(-1.1, 0.0), (1.1, 0.0), (0.0, -1.1), (0.0, 1.1)], false)),
        _ => write!(out, "<circle class=\"mk open {class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{r:.1}\"/>"),
    }
    .unwrap_or_default();
    out
}

/// The sign of a series in a legend: its mark on a piece of its line, or nothing where the style sheet draws one.
pub(super) fn sign(class: &str) -> String {
    let bare = |class: &str| {
        format!(
            "<svg class=\"sign\" viewBox=\"0 0 26 12\" aria-hidden=\"true\"><path class=\"line {class}\" d=\"M0 6H26\"/></svg>"
        )
    };
    let first = class.split(' ').next().unwrap_or_default();
    // A bare line: the colour's class without its shape.
    if let Some(n) = class.strip_prefix("found f") {
        return bare(&format!("s{n}"));
    }
    if let Some(class) = class.strip_prefix("found ") {
        return bare(class);
    }
    if !CLASSES.contains(&first) {
        return "<i></i>".to_owned();
    }
    let line = if class.contains("alone") {
        String::new()
    } else {
        format!("<path class=\"line {class}\" d=\"M0 6H26\"/>")
    };
    format!(
        "<svg class=\"sign\" viewBox=\"0 0 26 12\" aria-hidden=\"true\">{line}{}</svg>",
        mark(first, 13.0, 6.0, 4.0)
    )
}
