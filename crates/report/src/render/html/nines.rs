//! Latency by percentile on an axis of nines, the way HdrHistogram's users draw it: 90 %, 99 %, 99.9 %, ... are as far
//! from each other, so that the tail has as much room as it matters. Of a run, of its streams,
//! of a search's trials, or of transactions.

use super::charts::{Chart, FRAME};
use super::marks;
use super::plot::{Frame, Scale, Svg, WIDTH, round_up};
use crate::data::distribution::{Bucket, Distribution};
use crate::data::model::Report;
use crate::data::search::{Part, Trial};
use crate::data::units;

/// Lines drawn at most.
const MOST_LINES: usize = 7;

/// One line: shares of the frames, ascending, each with the latency that so many stayed within.
struct Line {
    name: String,
    /// Frames that were measured: beyond one in so many nothing is known.
    count: u64,
    steps: Vec<(f64, u64)>,
    /// Every value between is known as well: the line goes up where they do. If not it leads from one to the next.
    is_whole: bool,
}

/// Of a run: all frames, and each stream where there are several.
pub(super) fn run(report: &Report) -> Option<Chart> {
    let whole = report.result.latency_ns.as_ref().filter(|d| d.count > 0)?;
    let mut lines = vec![Line::of("all frames".to_owned(), whole)];
    if report.streams.len() > 1 {
        let streams = report.streams.iter().filter_map(|s| {
            let d = s.latency_ns.as_ref().filter(|d| d.count > 0)?;
            let name = s.name.clone().unwrap_or_else(|| format!("stream {}", s.stream));
            Some(Line::of(name, d))
        });
        lines.extend(streams.take(MOST_LINES - 1));
    }
    let what = if report.result.round_trip { "Round-trip latency" } else { "Latency" };
    let note = format!(
        "The share of frames that stayed within a time, of {}.",
        units::counted(whole.count, "frame")
    );
    chart(format!("{what} by percentile"), "frames", &lines, note)
}

/// How far apart the frames of each stream came, where that was asked for.
pub(super) fn apart(report: &Report) -> Option<Chart> {
    let streams = report.streams.iter().filter_map(|s| {
        let d = s.inter_arrival_ns.as_ref().filter(|d| d.count > 0)?;
        let name = s.name.clone().unwrap_or_else(|| format!("stream {}", s.stream));
        Some((Line::of(name, d), d.count))
    });
    let (lines, counts): (Vec<Line>, Vec<u64>) = streams.take(MOST_LINES).unzip();
    let note = format!(
        "The share of times from one arrival of a stream to its next that were no longer, of {}.",
        units::counted(counts.iter().sum(), "time")
    );
    chart("Times between a stream's arrivals by percentile".to_owned(), "times", &lines, note)
}

/// Of several runs, each with its name.
pub(super) fn beside(of: &[(&str, &Distribution)]) -> Option<Chart> {
    let known = of.iter().filter(|(_, d)| d.count > 0);
    let lines: Vec<Line> = known.map(|(name, d)| Line::of((*name).to_owned(), d)).collect();
    let note = "The share of frames that stayed within a time, of the first result of each side.".to_owned();
    chart("Latency by percentile".to_owned(), "frames", &lines, note)
}

/// Of a server's answers, each line with its name.
pub(super) fn answers(of: &[(&str, &Distribution)]) -> Option<Chart> {
    let lines: Vec<Line> = of.iter().map(|(name, d)| Line::of((*name).to_owned(), d)).collect();
    let note = "The share of requests whose answer began within a time.".to_owned();
    chart("Latency by percentile".to_owned(), "requests", &lines, note)
}

/// Of transactions, each with its name.
pub(super) fn transactions(of: &[(&str, &Distribution)]) -> Option<Chart> {
    let known = of.iter().filter(|(_, d)| d.count > 0);
    let lines: Vec<Line> = known.map(|(name, d)| Line::of((*name).to_owned(), d)).collect();
    let note = "The share of transactions that were answered within a time.".to_owned();
    chart("Latency by percentile".to_owned(), "transactions", &lines, note)
}

/// Of a search: for each frame size and load the median of its trials' percentiles.
pub(super) fn trials(trials: &[Trial]) -> Option<Chart> {
    let mut groups: Vec<(String, Vec<&Trial>)> = Vec::new();
    for trial in trials.iter().filter(|t| matches!(t.part, Part::Latency | Part::Trial | Part::Soak)) {
        let load = trial.intended_frames_per_second.map(units::frame_rate).unwrap_or_default();
        let name = format!("{} bytes at {load}", trial.frame_size);
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, of)) => of.push(trial),
            None => groups.push((name, vec![trial])),
        }
    }
    let line = |(name, of): (String, Vec<&Trial>)| {
        let known: Vec<_> = of.iter().filter_map(|t| t.latency_ns.filter(|d| d.count > 0)).collect();
        let median = |get: fn(&crate::data::search::TrialLatency) -> u64| {
            let mut all: Vec<u64> = known.iter().map(get).collect();
            all.sort_unstable();
            all.get(all.len().checked_sub(1)? / 2).copied()
        };
        let count = median(|d| d.count)?;
        let at = [
            (0.0, median(|d| d.min)?),
            (0.5, median(|d| d.p50)?),
            (0.9, median(|d| d.p90)?),
            (0.99, median(|d| d.p99)?),
            (0.999, median(|d| d.p999)?),
        ];
        let mut steps: Vec<_> =
            at.into_iter().filter(|(share, _)| 1.0 - share >= 1.0 / count as f64).collect();
        steps.push((1.0, median(|d| d.max)?));
        Some(Line { name, count, steps, is_whole: false })
    };
    let lines: Vec<Line> = groups.into_iter().filter_map(line).take(MOST_LINES).collect();
    let note = "The share of frames that stayed within a time: of several trials the median.".to_owned();
    chart("Latency by percentile".to_owned(), "frames", &lines, note)
}

impl Line {
    fn of(name: String, d: &Distribution) -> Self {
        let count = d.count.max(1);
        if d.histogram.is_empty() {
            let at = [
                (0.0, d.min),
                (0.5, d.p50),
                (0.9, d.p90),
                (0.99, d.p99),
                (0.999, d.p999),
                (0.9999, d.p9999),
                (0.99999, d.p99999),
            ];
            // Results of earlier versions have no far percentiles: they read as 0.
            let known = |(share, ns): &(f64, u64)| (1.0 - share) * count as f64 >= 1.0 && *ns >= d.min;
            let mut steps: Vec<_> = at.into_iter().filter(known).collect();
            steps.push((1.0, d.max));
            return Self { name, count, steps, is_whole: false };
        }
        let all: f64 = d.histogram.iter().map(|b| b.count as f64).sum();
        let mut below = 0.0;
        let step = |b: &Bucket| {
            below += b.count as f64;
            // A bucket's upper end: never better than the truth.
            ((below / all).min(1.0), b.to.min(d.max.max(b.from)))
        };
        let mut steps = vec![(0.0, d.min)];
        steps.extend(d.histogram.iter().map(step));
        Self { name, count, steps, is_whole: true }
    }

    /// The latency that this share stayed within; `None` where too few frames were measured to say.
    fn at(&self, share: f64) -> Option<u64> {
        if (1.0 - share) * (self.count as f64) < 0.999 {
            return None;
        }
        self.steps.iter().find(|(s, _)| *s >= share - 1e-12).map(|(_, ns)| *ns)
    }
}

fn chart(heading: String, of: &str, lines: &[Line], note: String) -> Option<Chart> {
    let values = || lines.iter().flat_map(|line| line.steps.iter().map(|(_, ns)| (*ns).max(1) as f64));
    let (lo, hi) = (values().reduce(f64::min)?, values().reduce(f64::max)?);
    let count = lines.iter().map(|line| line.count).max()?.max(10);
    let mut svg = Svg::new(300.0, Frame { left: 74.0, right: 22.0, ..FRAME });
    let ((x0, x1), (y0, y1)) = (svg.x_range(), svg.y_range());
    // "One frame in so many is slower", by decades.
    let x = Scale::log(1.0, count as f64, x0, x1);
    let px = |share: f64| x.at(if share >= 1.0 { count as f64 } else { 1.0 / (1.0 - share) });
    let y = if hi / lo > 20.0 {
        Scale::log(10f64.powf(lo.log10().floor()), 10f64.powf((hi * 1.05).log10().ceil()), y0, y1)
    } else {
        Scale::linear(0.0, round_up(hi * 1.05), y0, y1)
    };
    let ticks: Vec<_> = y
        .ticks(5)
        .into_iter()
        .map(|v| (v, if v == 0.0 { "0".to_owned() } else { units::tick_time(v) }))
        .collect();
    svg.y_axis(&y, &ticks, "within");
    let mut marks = vec![(0.0, "0 %".to_owned()), (0.5, "50 %".to_owned())];
    let nines = ["90 %", "99 %", "99.9 %", "99.99 %", "99.999 %", "99.9999 %", "99.99999 %", "99.999999 %"];
    let known =
        nines.iter().enumerate().map(|(n, name)| (1.0 - 10f64.powi(-(n as i32) - 1), (*name).to_owned()));
    marks.extend(known.filter(|(share, _)| 1.0 / (1.0 - share) <= count as f64 * 1.001));
    for (share, name) in &marks {
        let at = px(*share);
        svg.line("grid", at, y0, at, y1);
        svg.line("axis", at, y0, at, y0 + 4.0);
        svg.text("tick mid", at, y0 + 18.0, name);
    }
    svg.x_axis(&x, &[], &format!("share of the {of}"), false);
    let mut legend = Vec::new();
    for (n, line) in lines.iter().enumerate() {
        let class = marks::class(n);
        legend.push((class, line.name.clone()));
        svg.polyline(&format!("line {class}"), corners(line, &px, &y));
        for (share, name) in marks.iter().skip(1) {
            if let Some(ns) = line.at(*share) {
                let tip = format!("{} · {name} within {}", line.name, units::time(ns));
                svg.point(class, px(*share), y.at(ns as f64), 3.6, &tip);
            }
        }
        if let Some((_, most)) = line.steps.last() {
            let end = px(1.0 - 1.0 / line.count.max(1) as f64);
            svg.point(
                class,
                end,
                y.at(*most as f64),
                3.6,
                &format!("{} · longest {}", line.name, units::time(*most)),
            );
            if lines.len() == 1 {
                let (class, at) =
                    if end > WIDTH - 90.0 { ("value end", end - 4.0) } else { ("value", end + 8.0) };
                svg.text(class, at, y.at(*most as f64) - 8.0, &format!("max {}", units::time(*most)));
            }
        }
    }
    if lines.len() == 1 {
        legend.clear();
    }
    let said = lines.iter().map(|line| {
        let half = line.at(0.5).map_or_else(|| "-".to_owned(), units::time);
        format!(
            "{}: half within {half}, longest {}",
            line.name,
            units::time(line.steps.last().map_or(0, |s| s.1))
        )
    });
    let svg = svg.finish(&format!("{heading}: {}", said.collect::<Vec<_>>().join("; ")));
    Some(Chart { heading, svg, legend, note })
}

/// The line's corners in pixels: level up to each share, then up. Steps too small to see are left out.
fn corners(line: &Line, px: &dyn Fn(f64) -> f64, y: &Scale) -> Vec<(f64, f64)> {
    let end = px(1.0 - 1.0 / line.count.max(1) as f64);
    if !line.is_whole {
        return line
            .steps
            .iter()
            .map(|(share, ns)| (px(*share).min(end), y.at((*ns).max(1) as f64)))
            .collect();
    }
    let mut points: Vec<(f64, f64)> = Vec::new();
    let mut from = px(0.0);
    for (share, ns) in &line.steps {
        let (to, height) = (px(*share).min(end), y.at((*ns).max(1) as f64));
        let seen = points.last().is_none_or(|(lx, ly)| (to - lx).abs() > 0.7 || (height - ly).abs() > 0.7);
        if seen {
            points.extend([(from, height), (to, height)]);
            from = to;
        }
    }
    points
}
