//! The small part of a plotting library that the page needs: scales, ticks, axes and step lines as SVG text.
//! It knows pixels and numbers, not reports.

use std::fmt::Write;

use super::escape::Esc;

/// Width of every plot in SVG units; the page scales it to its column.
pub(super) const WIDTH: f64 = 880.0;

/// Margins around the plotting area.
#[derive(Clone, Copy)]
pub(super) struct Frame {
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
}

/// Maps values to pixels, linearly or by decades.
#[derive(Clone, Copy)]
pub(super) struct Scale {
    pub lo: f64,
    pub hi: f64,
    from: f64,
    to: f64,
    log: bool,
}

impl Scale {
    /// From `lo` at pixel `from` to `hi` at pixel `to`. An empty range is widened: there is always an axis.
    pub fn linear(lo: f64, hi: f64, from: f64, to: f64) -> Self {
        let hi = if hi > lo { hi } else { lo + 1.0 };
        Self { lo, hi, from, to, log: false }
    }

    /// By decades; `lo` must be above 0.
    pub fn log(lo: f64, hi: f64, from: f64, to: f64) -> Self {
        let lo = lo.max(f64::MIN_POSITIVE);
        let hi = if hi > lo { hi } else { lo * 10.0 };
        Self { lo, hi, from, to, log: true }
    }

    pub fn is_log(&self) -> bool {
        self.log
    }

    /// Whether `value` lies on the axis; what does not is drawn at its edge and must be marked ([`Svg::beyond`]).
    pub fn holds(&self, value: f64) -> bool {
        let rounding = (self.hi - self.lo).abs() * 1e-9;
        (self.lo - rounding..=self.hi + rounding).contains(&value)
    }

    /// The pixel of `value`, held within the axis.
    pub fn at(&self, value: f64) -> f64 {
        let value = value.clamp(self.lo, self.hi);
        let share = if self.log {
            (value / self.lo).ln() / (self.hi / self.lo).ln()
        } else {
            (value - self.lo) / (self.hi - self.lo)
        };
        self.from + (self.to - self.from) * share
    }

    /// Round values for tick marks, about `wanted` of them.
    pub fn ticks(&self, wanted: usize) -> Vec<f64> {
        if self.log { log_ticks(self.lo, self.hi, wanted) } else { linear_ticks(self.lo, self.hi, wanted) }
    }
}

/// The step of 1, 2 or 5 times a power of ten that cuts `span` into about `wanted` pieces.
fn round_step(span: f64, wanted: usize) -> f64 {
    let rough = span / wanted.max(1) as f64;
    let power = 10f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0].into_iter().map(|m| m * power).find(|step| *step >= rough * 0.999).unwrap_or(10.0 * power)
}

fn linear_ticks(lo: f64, hi: f64, wanted: usize) -> Vec<f64> {
    let step = round_step(hi - lo, wanted);
    let first = (lo / step).ceil() as i64;
    (first..).map(|i| i as f64 * step).take_while(|v| *v <= hi + step * 1e-6).take(50).collect()
}

fn log_ticks(lo: f64, hi: f64, wanted: usize) -> Vec<f64> {
    let multiples: &[f64] = match (hi / lo).log10() {
        decades if decades <= 1.2 => &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0],
        decades if decades <= 3.0 => &[1.0, 2.0, 5.0],
        _ => &[1.0],
    };
    let (first, last) = (lo.log10().floor() as i32, hi.log10().ceil() as i32);
    let every = (usize::try_from(last - first).unwrap_or(0) / wanted.max(1)).max(1);
    let decades = (first..=last).step_by(every);
    let all = decades.flat_map(|d| multiples.iter().map(move |m| m * 10f64.powi(d)));
    all.filter(|v| *v >= lo * 0.999 && *v <= hi * 1.001).collect()
}

/// The smallest round value at or above `value`, for the upper end of an axis.
pub(super) fn round_up(value: f64) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return 1.0;
    }
    let step = round_step(value, 5);
    (value / step - 1e-9).ceil() * step
}

/// A scale for values from `lo` to `hi`, both above 0: from 0 upwards, or by decades where a line from 0 would press the
/// small values together.
pub(super) fn rates_scale(lo: f64, hi: f64, from: f64, to: f64) -> Scale {
    if lo > 0.0 && hi / lo > 30.0 {
        let decade = 10f64.powf((hi * 1.1).log10().floor());
        let top = [2.0, 5.0, 10.0].map(|m| m * decade).into_iter().find(|top| *top >= hi * 1.1);
        return Scale::log(10f64.powf((lo * 0.8).log10().floor()), top.unwrap_or(hi * 2.0), from, to);
    }
    let (factor, _) = crate::data::units::prefix(hi);
    Scale::linear(0.0, round_up(hi / factor * 1.06) * factor, from, to)
}

/// Digits that tell the ticks of `step` apart.
pub(super) fn tick_number(value: f64, ticks: &[f64]) -> String {
    let step = match ticks {
        [a, b, ..] => b - a,
        _ => 1.0,
    };
    let decimals = (-step.log10().floor()).clamp(0.0, 9.0) as usize;
    format!("{value:.decimals$}")
}

/// Where labels and marks stand in a drawing, so that none covers another.
#[derive(Default)]
pub(super) struct Labels(Vec<[f64; 4]>);

impl Labels {
    /// About how wide a text is.
    pub fn width(text: &str) -> f64 {
        6.8 * text.chars().count() as f64
    }

    /// Room for a text that begins at `left` above the line `bottom`, if it is free.
    fn take(&mut self, left: f64, bottom: f64, width: f64) -> bool {
        let room = [left - 3.0, bottom - 11.0, left + width + 3.0, bottom + 3.0];
        let [x0, y0, x1, y1] = room;
        if self.0.iter().any(|[a, b, c, d]| *a < x1 && x0 < *c && *b < y1 && y0 < *d) {
            return false;
        }
        self.0.push(room);
        true
    }

    /// A mark that labels keep clear of.
    pub fn keep(&mut self, x: f64, y: f64, r: f64) {
        self.0.push([x - r, y - r, x + r, y + r]);
    }
}

/// An SVG under construction.
pub(super) struct Svg {
    pub height: f64,
    pub frame: Frame,
    body: String,
}

impl Svg {
    pub fn new(height: f64, frame: Frame) -> Self {
        Self { height, frame, body: String::new() }
    }

    pub fn x_range(&self) -> (f64, f64) {
        (self.frame.left, WIDTH - self.frame.right)
    }

    /// Bottom first: values grow upwards.
    pub fn y_range(&self) -> (f64, f64) {
        (self.height - self.frame.bottom, self.frame.top)
    }

    pub fn text(&mut self, class: &str, x: f64, y: f64, text: &str) {
        // Writing to a String cannot fail, here and below.
        write!(self.body, "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>", Esc(text))
            .unwrap_or_default();
    }

    pub fn line(&mut self, class: &str, x1: f64, y1: f64, x2: f64, y2: f64) {
        write!(
            self.body,
            "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
        )
        .unwrap_or_default();
    }

    /// A rectangle; `tip` is what a reader sees who points at it.
    pub fn rect(&mut self, class: &str, x: f64, y: f64, width: f64, height: f64, tip: Option<&str>) {
        let (width, height) = (width.max(0.0), height.max(0.0));
        write!(
            self.body,
            "<rect class=\"{class}\" x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height:.2}\""
        )
        .unwrap_or_default();
        self.body += &match tip {
            Some(tip) => format!("><title>{}</title></rect>", Esc(tip)),
            None => "/>".to_owned(),
        };
    }

    /// An arrow at the edge of an axis of values from left to right: what it is of goes on there.
    pub fn beyond(&mut self, class: &str, x: f64, y: f64, to_the_right: bool) {
        let back = if to_the_right { -8.0 } else { 8.0 };
        self.arrow(class, (x, y), [(x + back, y - 5.0), (x + back, y + 5.0)]);
    }

    /// The same of an axis of values from below to above.
    pub fn above(&mut self, class: &str, x: f64, y: f64) {
        self.arrow(class, (x, y), [(x - 5.0, y + 8.0), (x + 5.0, y + 8.0)]);
    }

    fn arrow(&mut self, class: &str, (x, y): (f64, f64), [(ax, ay), (bx, by)]: [(f64, f64); 2]) {
        write!(
            self.body,
            "<path class=\"mk beyond {class}\" d=\"M{x:.1} {y:.1}L{ax:.1} {ay:.1}L{bx:.1} {by:.1}Z\"/>"
        )
        .unwrap_or_default();
    }

    pub fn dot(&mut self, class: &str, x: f64, y: f64) {
        write!(self.body, "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4.5\"/>")
            .unwrap_or_default();
    }

    /// The horizontal axis: title, ticks, a faint line up from each when `grid`.
    pub fn x_axis(&mut self, scale: &Scale, ticks: &[(f64, String)], title: &str, grid: bool) {
        let ((x0, x1), (y0, y1)) = (self.x_range(), self.y_range());
        for (value, label) in ticks {
            let x = scale.at(*value);
            if grid {
                self.line("grid", x, y0, x, y1);
            }
            self.line("axis", x, y0, x, y0 + 4.0);
            self.text("tick mid", x, y0 + 18.0, label);
        }
        self.line("axis", x0, y0, x1, y0);
        self.text("title mid", (x0 + x1) / 2.0, self.height - 4.0, title);
    }

    /// The vertical axis with its grid; the title stands above it, to be read without turning the head.
    pub fn y_axis(&mut self, scale: &Scale, ticks: &[(f64, String)], title: &str) {
        let (x0, x1) = self.x_range();
        for (value, label) in ticks {
            let y = scale.at(*value);
            self.line("grid", x0, y, x1, y);
            self.text("tick end", x0 - 8.0, y + 4.0, label);
        }
        self.text("title", 0.0, 13.0, title);
    }

    /// A label where it covers no other: above its point, below, to the right or the left; left out where none is free.
    /// `r` is how far the point reaches.
    pub fn label(&mut self, labels: &mut Labels, x: f64, y: f64, r: f64, text: &str) {
        let (half, r) = (Labels::width(text) / 2.0, r + 4.0);
        let places = [
            ("mid", x, y - r),
            ("mid", x, y + r + 9.0),
            ("", x + r, y + 4.0),
            ("end", x - r, y + 4.0),
            ("mid", x, y - r - 13.0),
            ("mid", x, y + r + 22.0),
        ];
        let (top, bottom) = (self.frame.top, self.height - self.frame.bottom);
        for (anchor, x, y) in places {
            let left = match anchor {
                "mid" => x - half,
                "end" => x - 2.0 * half,
                _ => x,
            };
            let inside =
                left >= 0.0 && left + 2.0 * half <= WIDTH && y - 11.0 >= top - 14.0 && y <= bottom - 2.0;
            if inside && labels.take(left, y, 2.0 * half) {
                self.text(format!("value {anchor}").trim_end(), x, y, text);
                return;
            }
        }
    }

    /// A label to the right of `x`, moved up or down until it covers no other.
    pub fn label_right(&mut self, labels: &mut Labels, x: f64, y: f64, text: &str) {
        // A later goal allows more: its label goes above.
        let near = [0.0, -14.0, 14.0, -28.0, 28.0];
        if let Some(dy) = near.into_iter().find(|dy| labels.take(x + 6.0, y + 4.0 + dy, Labels::width(text)))
        {
            self.text("value", x + 6.0, y + 4.0 + dy, text);
        }
    }

    /// Straight lines from point to point.
    pub fn polyline(&mut self, class: &str, points: impl IntoIterator<Item = (f64, f64)>) {
        let points: Vec<_> = points.into_iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        if points.len() > 1 {
            write!(self.body, "<polyline class=\"{class}\" points=\"{}\"/>", points.join(" "))
                .unwrap_or_default();
        }
    }

    /// A point of a series ([`super::marks`]), and what a reader sees who points at it.
    pub fn point(&mut self, class: &str, x: f64, y: f64, r: f64, tip: &str) {
        self.body += &super::marks::mark(class, x, y, r);
        self.rect("hit", x - 9.0, y - 9.0, 18.0, 18.0, Some(tip));
    }

    /// The mark of a series alone.
    pub fn mark(&mut self, class: &str, x: f64, y: f64, r: f64) {
        self.body += &super::marks::mark(class, x, y, r);
    }

    /// The finished element; `label` is what a screen reader says.
    pub fn finish(self, label: &str) -> String {
        let Self { height, body, frame: Frame { left, right, .. } } = self;
        // By its margins script.js lays it out for a narrow window.
        format!(
            "<svg viewBox=\"0 0 {WIDTH} {height}\" data-left=\"{left:.0}\" data-right=\"{right:.0}\" role=\"img\" aria-label=\"{}\" xmlns=\"http://www.w3.org/2000/svg\">{body}</svg>",
            Esc(label)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_ticks_are_round_and_within_the_axis() {
        assert_eq!(
            Scale::linear(0.0, 1.0, 0.0, 100.0).ticks(5),
            [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]
        );
        assert_eq!(Scale::linear(0.0, 1800.0, 0.0, 100.0).ticks(4), [0.0, 500.0, 1000.0, 1500.0]);
        assert!(Scale::linear(0.0, 0.0, 0.0, 100.0).ticks(5).len() > 1);
    }

    #[test]
    fn log_ticks_suit_one_decade_and_twelve() {
        assert_eq!(Scale::log(1.0, 10.0, 0.0, 1.0).ticks(6).len(), 9);
        let many = Scale::log(1.0, 1e12, 0.0, 1.0).ticks(6);
        assert!((5..=13).contains(&many.len()), "{many:?}");
    }

    #[test]
    fn every_value_lands_on_the_axis() {
        for scale in [Scale::log(1.0, 1e6, 10.0, 90.0), Scale::linear(0.0, 0.0, 10.0, 90.0)] {
            for value in [0.0, -5.0, 1.0, 1e9, f64::INFINITY] {
                let x = scale.at(value);
                assert!((10.0..=90.0).contains(&x), "{value} lands on {x}");
            }
        }
    }

    #[test]
    fn no_label_covers_another_or_a_mark() {
        let mut svg = Svg::new(200.0, Frame { left: 64.0, right: 12.0, top: 26.0, bottom: 46.0 });
        let mut labels = Labels::default();
        for n in 0..40 {
            let (x, y) = (200.0 + 9.0 * f64::from(n), 80.0 + f64::from(n % 3));
            labels.keep(x, y, 4.0);
            svg.label(&mut labels, x, y, 4.0, "41.8 kpps");
        }
        let shown = svg.body.matches("<text").count();
        assert!((8..40).contains(&shown), "{shown}");
        // Texts, which came after the marks before them, overlap neither those nor each other.
        let rooms = &labels.0;
        for (n, [a, b, c, d]) in rooms.iter().enumerate().filter(|(_, r)| r[2] - r[0] > 9.0) {
            let clear = |[e, f, g, h]: &[f64; 4]| *c <= *e || *g <= *a || *d <= *f || *h <= *b;
            assert!(rooms.iter().take(n).all(clear), "{n}");
        }
    }

    #[test]
    fn an_axis_ends_on_a_round_value() {
        let ends = [0.0, 0.93, 1.6e6, 2.0, 11.0].map(round_up);
        assert_eq!(ends, [1.0, 1.0, 2e6, 2.0, 15.0]);
    }
}
