//! Plots as SVG: bars with their ranges, and quantiles on a logarithmic axis. Colours suit light and dark pages.

use std::fmt::Write;

/// A figure with its lowest and highest run.
pub struct Bar {
    pub label: String,
    pub value: f64,
    pub low: f64,
    pub high: f64,
    pub colour: &'static str,
}

/// A row of points.
pub struct Dots {
    pub label: String,
    pub values: Vec<f64>,
    pub colour: &'static str,
}

pub const OURS: &str = "#1f7a8c";
pub const THEIRS: &str = "#b08968";
pub const GREY: &str = "#888888";
const ROW: usize = 24;
const LEFT: f64 = 330.0;
const WIDTH: f64 = 560.0;

/// Horizontal bars from zero.
pub fn bars(title: &str, unit: &str, bars: &[Bar]) -> String {
    let top = bars.iter().map(|bar| bar.high).fold(0.0, f64::max).max(1e-9) * 1.05;
    let x = |value: f64| LEFT + WIDTH * value / top;
    let mut body = String::new();
    for (row, bar) in bars.iter().enumerate() {
        let y = 44 + row * ROW;
        let colour = bar.colour;
        let (width, low, high) = (x(bar.value) - LEFT, x(bar.low), x(bar.high));
        label(&mut body, y + 12, &bar.label);
        let _ = writeln!(
            body,
            "<rect x='{LEFT}' y='{y}' width='{width:.1}' height='16' fill='{colour}'/>\
             <path d='M{low:.1} {m}H{high:.1}M{low:.1} {a}V{b}M{high:.1} {a}V{b}' stroke='{GREY}' fill='none'/>\
             <text x='{text:.1}' y='{base}' fill='{GREY}'>{value:.2}</text>",
            m = y + 8,
            a = y + 4,
            b = y + 12,
            text = high + 6.0,
            base = y + 12,
            value = bar.value,
        );
    }
    page(title, unit, bars.len(), &body)
}

/// Points of each row on a logarithmic axis, by name.
pub fn dots(title: &str, unit: &str, names: &[&str], rows: &[Dots]) -> String {
    let all = || rows.iter().flat_map(|row| &row.values).copied().filter(|v| *v > 0.0);
    let low = all().fold(f64::INFINITY, f64::min).log10().floor();
    let high = all().fold(0.0, f64::max).log10().ceil();
    let (low, high) = if low < high { (low, high) } else { (0.0, 1.0) };
    let x = |value: f64| LEFT + WIDTH * (value.max(10_f64.powf(low)).log10() - low) / (high - low);
    let mut body = String::new();
    let bottom = 44 + rows.len() * ROW;
    for decade in low as i32..=high as i32 {
        let value = 10_f64.powi(decade);
        let _ = writeln!(
            body,
            "<path d='M{0:.1} 40V{bottom}' stroke='{GREY}' stroke-opacity='.35'/>\
             <text x='{0:.1}' y='{1}' fill='{GREY}' text-anchor='middle'>{value}</text>",
            x(value),
            bottom + 14,
        );
    }
    for (row, dots) in rows.iter().enumerate() {
        let y = 52 + row * ROW;
        let colour = dots.colour;
        label(&mut body, y + 4, &dots.label);
        let (first, last) =
            (x(dots.values.first().copied().unwrap_or(1.0)), x(dots.values.last().copied().unwrap_or(1.0)));
        let _ = writeln!(body, "<path d='M{first:.1} {y}H{last:.1}' stroke='{colour}'/>");
        for (i, (value, name)) in dots.values.iter().zip(names).enumerate() {
            let radius = 5.0 - i as f64 * 0.6;
            let _ = writeln!(
                body,
                "<circle cx='{:.1}' cy='{y}' r='{radius:.1}' fill='{colour}'><title>{name} {value:.2}</title></circle>",
                x(*value)
            );
        }
    }
    page(title, &format!("{unit}; from the left {}", names.join(", ")), rows.len() + 1, &body)
}

fn label(body: &mut String, y: usize, text: &str) {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    let _ =
        writeln!(body, "<text x='{:.0}' y='{y}' fill='{GREY}' text-anchor='end'>{text}</text>", LEFT - 8.0);
}

fn page(title: &str, unit: &str, rows: usize, body: &str) -> String {
    let (width, height) = (LEFT + WIDTH + 60.0, 56 + rows * ROW);
    format!(
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' font-family='sans-serif' \
         font-size='12'>\n<text x='8' y='20' font-size='15' fill='{GREY}'>{title}</text>\
         <text x='{LEFT}' y='20' fill='{GREY}'>{unit}</text>\n{body}</svg>\n"
    )
}
