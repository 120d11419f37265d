//! Quantities over time: panes below each other on one axis of time, so that a dip is seen beside its cause. `script.js`
//! zooms all of a page's together and shows one cursor in them; without it they are drawings of the whole.
//!
//! ```text
//!   svg.time   the drawing; data-from and data-to are the ends of its axis in ns
//!     line.wide, text   grid, titles and ticks: of constant size, whatever the zoom
//!     svg.view          one for each pane: lines over 0 to VIEW, stretched to the pane's width
//!     svg.view          what is pointed at: a rectangle with a title for each stretch
//!     g.axis-time       the ticks of time
//! ```

use std::fmt::Write;

use super::charts::{self, FRAME};
use super::escape::Esc;
use super::plot::{Scale, WIDTH, tick_number};

/// Units across a pane. script.js has the same number.
const VIEW: f64 = 10_000.0;
/// Of a pane: its title's room above, and what lines may stand out of it.
const TITLE: f64 = 30.0;
const AIR: f64 = 4.0;

/// One quantity, in one or several lines.
#[derive(Default)]
pub(super) struct Pane {
    /// Its name with its unit.
    pub title: String,
    /// Height of the plotting area.
    pub height: f64,
    pub y: Axis,
    /// Under the lines.
    pub areas: Vec<Area>,
    pub lines: Vec<Line>,
    pub dots: Vec<Dot>,
}

/// What lies between two values in each stretch.
pub(super) struct Area {
    pub class: &'static str,
    /// What it is called in a legend.
    pub name: String,
    /// From and to in time, and the lower and the higher value.
    pub steps: Vec<(u64, u64, [f64; 2])>,
}

/// A single event; the class tells its kind by shape and colour.
pub(super) struct Dot {
    pub class: &'static str,
    pub at: u64,
    pub value: f64,
}

/// Where values stand: a scale from 0 to 1 (bottom to top) and its ticks.
pub(super) struct Axis {
    pub scale: Scale,
    pub ticks: Vec<(f64, String)>,
}

/// A line that holds each value over its stretch; `None` is a gap.
pub(super) struct Line {
    pub class: &'static str,
    pub steps: Vec<(u64, u64, Option<f64>)>,
}

/// A stretch of time and what a reader sees who points at it.
pub(super) type Stretch = (u64, u64, String);

impl Default for Axis {
    fn default() -> Self {
        Self::linear(1.0, 1)
    }
}

impl Axis {
    /// From 0 to a round value above `max`, both in the axis' unit.
    pub fn linear(max: f64, wanted: usize) -> Self {
        // Some air above the highest value; an axis of no height would hide that it is 0.
        let scale = Scale::linear(0.0, super::plot::round_up(max * 1.04), 0.0, 1.0);
        let ticks = scale.ticks(wanted);
        Self { ticks: ticks.iter().map(|v| (*v, tick_number(*v, &ticks))).collect(), scale }
    }

    /// Of whole numbers.
    pub fn whole(max: f64, wanted: usize) -> Self {
        let mut axis = Self::linear(max, wanted);
        axis.ticks.retain(|(value, _)| value.fract() == 0.0);
        axis
    }

    /// Of times in ns, by powers of ten where a line from 0 would press the small ones together; returns the unit too.
    pub fn times(lo: f64, hi: f64, wanted: usize) -> (Self, &'static str) {
        if lo > 0.0 && hi / lo > 30.0 {
            let scale =
                Scale::log(10f64.powf(lo.log10().floor()), 10f64.powf((hi * 1.05).log10().ceil()), 0.0, 1.0);
            let (first, last) = (scale.lo.log10().round() as i32, scale.hi.log10().round() as i32);
            let every = usize::try_from(last - first).unwrap_or(0).div_ceil(wanted.max(1)).max(1);
            let decades = (first..=last).step_by(every).map(|power| 10f64.powi(power));
            let ticks = decades.map(|v| (v, crate::data::units::tick_time(v))).collect();
            return (Self { scale, ticks }, "powers of ten");
        }
        let (factor, unit) = charts::axis_time(hi);
        let in_unit = Self::linear(hi / factor, wanted);
        let ticks = in_unit.ticks.into_iter().map(|(v, label)| (v * factor, label)).collect();
        (Self { scale: Scale::linear(0.0, in_unit.scale.hi * factor, 0.0, 1.0), ticks }, unit)
    }
}

/// The drawing; `label` is what a screen reader says. `None` where there is no time or no pane.
pub(super) fn draw(panes: &[Pane], stretches: &[Stretch], label: &str) -> Option<String> {
    let (from, to) = (stretches.first()?.0, stretches.last()?.1);
    let area: f64 = panes.iter().map(|pane| TITLE + pane.height).sum();
    if panes.is_empty() || to <= from {
        return None;
    }
    let height = area + FRAME.bottom;
    let (x0, x1) = (FRAME.left, WIDTH - FRAME.right);
    let at = |ns: u64| VIEW * (ns.saturating_sub(from) as f64 / (to - from) as f64).min(1.0);
    let mut out = format!(
        "<svg class=\"time\" viewBox=\"0 0 {WIDTH} {height}\" data-from=\"{from}\" data-to=\"{to}\" role=\"img\" aria-label=\"{}\" xmlns=\"http://www.w3.org/2000/svg\">",
        Esc(label)
    );
    let mut top = 0.0;
    for pane in panes {
        let (y0, y1) = (top + TITLE + pane.height, top + TITLE);
        let y = |value: f64| y0 - (y0 - y1) * pane.y.scale.at(value);
        // Writing to a String cannot fail, here and below.
        write!(out, "<text class=\"title\" x=\"0\" y=\"{:.1}\">{}</text>", y1 - 9.0, Esc(&pane.title))
            .unwrap_or_default();
        wide(&mut out, "axis", y0);
        for (value, label) in &pane.y.ticks {
            let at = y(*value);
            if (at - y0).abs() > 0.5 {
                wide(&mut out, "grid", at);
            }
            write!(
                out,
                "<text class=\"tick end\" x=\"{}\" y=\"{:.1}\">{}</text>",
                x0 - 8.0,
                at + 4.0,
                Esc(label)
            )
            .unwrap_or_default();
        }
        view(&mut out, (y1 - AIR, y0 + AIR), |out| {
            for area in &pane.areas {
                let d = filled(area, &at, &y);
                if !d.is_empty() {
                    write!(out, "<path class=\"{}\" d=\"{d}\"/>", area.class).unwrap_or_default();
                }
            }
            for line in &pane.lines {
                let d = path(line, &at, &y);
                if !d.is_empty() {
                    write!(out, "<path class=\"line {}\" d=\"{d}\"/>", line.class).unwrap_or_default();
                }
            }
            // A line of no length with round or square ends keeps its shape whatever the zoom.
            for dot in &pane.dots {
                write!(
                    out,
                    "<path class=\"line event {}\" d=\"M{:.1} {:.1}h0.01\"/>",
                    dot.class,
                    at(dot.at),
                    y(dot.value)
                )
                .unwrap_or_default();
            }
        });
        top = y0;
    }
    view(&mut out, (TITLE, area), |out| {
        for (from, to, tip) in stretches {
            let (from, to) = (at(*from), at(*to));
            write!(
                out,
                "<rect class=\"hit\" x=\"{from:.1}\" y=\"{TITLE}\" width=\"{:.1}\" height=\"{}\"><title>{}</title></rect>",
                (to - from).max(1.0),
                area - TITLE,
                Esc(tip)
            )
            .unwrap_or_default();
        }
    });
    let (unit, unit_name) = charts::time_unit(to - from);
    let x = Scale::linear(from as f64 / unit, to as f64 / unit, x0, x1);
    let ticks = x.ticks(8);
    write!(out, "<g class=\"axis-time\" data-y=\"{area}\" data-unit=\"{unit}\">").unwrap_or_default();
    for value in &ticks {
        let (at, label) = (x.at(*value), tick_number(*value, &ticks));
        write!(
            out,
            "<line class=\"axis\" x1=\"{at:.1}\" y1=\"{area}\" x2=\"{at:.1}\" y2=\"{:.1}\"/><text class=\"tick mid\" x=\"{:.1}\" y=\"{:.1}\">{label}</text>",
            area + 4.0,
            within(at, &label),
            area + 18.0,
        )
        .unwrap_or_default();
    }
    write!(
        out,
        "</g><text class=\"title mid unit\" x=\"{:.1}\" y=\"{:.1}\">{unit_name}</text></svg>",
        (x0 + x1) / 2.0,
        height - 6.0
    )
    .unwrap_or_default();
    Some(out)
}

/// Where the middle of a tick's label stands: over its tick, or where it ends with the drawing. script.js does the same.
fn within(at: f64, label: &str) -> f64 {
    const HALF: f64 = 4.0;
    at.min(WIDTH - HALF * label.chars().count() as f64)
}

/// A level line over the whole width.
fn wide(out: &mut String, class: &str, y: f64) {
    let (x0, x1) = (FRAME.left, WIDTH - FRAME.right);
    write!(out, "<line class=\"{class} wide\" x1=\"{x0}\" y1=\"{y:.1}\" x2=\"{x1}\" y2=\"{y:.1}\"/>")
        .unwrap_or_default();
}

/// What is zoomed, from the height `top` to `bottom` of the drawing.
fn view(out: &mut String, (top, bottom): (f64, f64), inside: impl FnOnce(&mut String)) {
    let height = bottom - top;
    write!(
        out,
        "<svg class=\"view\" x=\"{}\" y=\"{top}\" width=\"{}\" height=\"{height}\" viewBox=\"0 {top} {VIEW} {height}\" preserveAspectRatio=\"none\">",
        FRAME.left,
        WIDTH - FRAME.left - FRAME.right
    )
    .unwrap_or_default();
    inside(out);
    out.push_str("</svg>");
}

/// A rectangle for each stretch that has a height.
fn filled(area: &Area, at: &dyn Fn(u64) -> f64, y: &dyn Fn(f64) -> f64) -> String {
    let mut d = String::new();
    for (from, to, [low, high]) in area.steps.iter().filter(|(.., [low, high])| low < high) {
        let (x0, x1, y0, y1) = (at(*from), at(*to), y(*low), y(*high));
        // Writing to a String cannot fail.
        write!(d, "M{x0:.1} {y0:.1}V{y1:.1}H{x1:.1}V{y0:.1}Z").unwrap_or_default();
    }
    d
}

fn path(line: &Line, at: &dyn Fn(u64) -> f64, y: &dyn Fn(f64) -> f64) -> String {
    let mut d = String::new();
    let mut pen_down = false;
    for (from, to, value) in &line.steps {
        match value.map(y) {
            Some(y) if pen_down => write!(d, "V{y:.1}H{:.1}", at(*to)).unwrap_or_default(),
            Some(y) => write!(d, "M{:.1} {y:.1}H{:.1}", at(*from), at(*to)).unwrap_or_default(),
            None => {}
        }
        pen_down = value.is_some();
    }
    d
}
