//! What tells series of points apart: a colour and a shape for each, so that neither print nor colour-blind eyes lose
//! anything. The colours are in the style sheet (after Okabe and Ito, chosen to differ for every kind of sight).

use std::fmt::Write;

/// CSS classes of series, in order. More series than this begin anew.
const CLASSES: [&str; 7] = ["s0", "s1", "s2", "s3", "s4", "s5", "s6"];

/// The CSS class of series `n`.
pub(super) fn class(n: usize) -> &'static str {
    CLASSES[n % CLASSES.len()]
}

/// A point of the series with this class as SVG, about 2 `r` wide.
pub(super) fn mark(class: &str, x: f64, y: f64, r: f64) -> String {
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
    let first = class.split(' ').next().unwrap_or_default();
    // A bare line: the colour's class without its shape.
    if let Some(n) = class.strip_prefix("found f") {
        return format!(
            "<svg class=\"sign\" viewBox=\"0 0 26 12\" aria-hidden=\"true\"><path class=\"line s{n}\" d=\"M0 6H26\"/></svg>"
        );
    }
    if !CLASSES.contains(&first) {
        return "<i></i>".to_owned();
    }
    let line = if class.contains("alone") {
        String::new()
    } else {
        format!("<path class=\"line {first}\" d=\"M0 6H26\"/>")
    };
    format!(
        "<svg class=\"sign\" viewBox=\"0 0 26 12\" aria-hidden=\"true\">{line}{}</svg>",
        mark(first, 13.0, 6.0, 4.0)
    )
}
