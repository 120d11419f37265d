//! The page's plots, each made from a report: rates, loss and latency on one axis of time, the latency histogram, pacing
//! and frame sizes. A plot whose data was not measured is `None`.

use super::escape::Esc;
use super::marks;
use super::parts::{self, Part};
use super::plot::{Frame, Scale, Svg, WIDTH, round_up, tick_number};
use super::timeline::{self, Pane, Stretch};
use crate::data::distribution::{Bucket, Distribution, coarsen};
use crate::data::model::{Interval, Report};
use crate::data::units;

pub(super) const FRAME: Frame = Frame { left: 64.0, right: 12.0, top: 26.0, bottom: 46.0 };

/// More stretches than this are joined: a plot has no more pixels to tell them apart.
const MOST_STRETCHES: usize = 300;

/// A plot with its caption.
pub(super) struct Chart {
    pub heading: String,
    pub svg: String,
    /// `(css class, name)` of each series; empty when there is only one.
    pub legend: Vec<(&'static str, String)>,
    /// One sentence under the heading.
    pub note: String,
}

/// Rates, loss and latency of a run on one axis of time. What was not measured has no pane. `counted` is what arrived: frames,
/// or a collector's messages. `answers`: what arrived is the other end's own, as of connections, and not what was sent.
pub(super) fn over_time(report: &Report, counted: &str, answers: bool) -> Option<Chart> {
    let intervals = &report.intervals[..];
    let (stretches, parts) = (stretches(intervals), parts::of(report));
    let losses = losses(&stretches, &parts);
    let shares = losses.is_some();
    let dropped = losses.or_else(|| dropped(&stretches, &parts));
    let panes: Vec<Pane> =
        [rates(&stretches, counted), dropped, latencies(&stretches)].into_iter().flatten().collect();
    let tips = stretches.iter().enumerate();
    let tips: Vec<Stretch> =
        tips.map(|(n, i)| (i.start_ns, i.end_ns, tip(i) + &parts::tip(&parts, n))).collect();
    let mut legend = Vec::new();
    for pane in &panes {
        for line in &pane.lines {
            let name = NAMES.iter().find(|(class, _)| *class == line.class).map_or("", |(_, name)| name);
            legend.push((line.class, name.to_owned()));
        }
        legend.extend(pane.areas.iter().map(|area| (area.class, area.name.clone())));
    }
    let has_latency = stretches.iter().any(|i| i.latency_p50_ns.is_some());
    let drawn = |class| legend.iter().any(|(drawn, _)| *drawn == class);
    let mut note = match drawn("sent") && drawn("received") {
        true if answers => "Received are the other end's own frames, not those sent.".to_owned(),
        true => "Received below sent is loss or frames still under way.".to_owned(),
        // Of one side alone nothing is below another.
        false => String::new(),
    };
    let known = intervals.iter().filter(|i| share_lost(i).is_some()).count() as u64;
    let lossy = intervals.iter().filter(|i| i.lost_frames.is_some_and(|n| n > 0)).count() as u64;
    note += &match (known, lossy) {
        (0, _) => String::new(),
        (known, 0) => format!(" No frame was lost in any of {}.", units::counted(known, "interval")),
        (known, lossy) => {
            format!(" {} of {} had loss.", units::count(lossy), units::counted(known, "interval"))
        }
    };
    note += &parts::note(report, &stretches, &parts, shares);
    if intervals.len() > stretches.len() && has_latency {
        note += " Where the plot joins several intervals, the longest of their latencies counts.";
    }
    let names: Vec<_> = panes.iter().map(|pane| pane.title.as_str()).collect();
    let svg = timeline::draw(&panes, &tips, &format!("Over time: {}", names.join(", ")))?;
    Some(Chart { heading: "The run over time".to_owned(), svg, legend, note })
}

/// The intervals of two runs, A and B, each line over the other, from the start of each; class and name of each side.
pub(super) fn beside(a: &[Interval], b: &[Interval], sides: [(&'static str, &str); 2]) -> Option<Chart> {
    let (a, b) = (stretches(a), stretches(b));
    let has_rx = |of: &[Interval]| of.iter().any(|i| i.rx().is_some());
    let rate = |i: &Interval| match has_rx(&a) && has_rx(&b) {
        true => i.rx().map(|t| t.frames_per_second),
        false => i.tx().map(|t| t.frames_per_second),
    };
    let what = if has_rx(&a) && has_rx(&b) { "received" } else { "sent" };
    let ns = |value: Option<u64>| value.map(|ns| ns as f64);
    let half = |i: &Interval| ns(i.latency_p50_ns);
    let most = |i: &Interval| ns(i.latency_p99_ns);
    let both = |value: &dyn Fn(&Interval) -> Option<f64>| -> Option<Vec<timeline::Line>> {
        let [(first, _), (second, _)] = sides;
        Some(vec![line(first, &a, value)?, line(second, &b, value)?])
    };
    let mut panes = Vec::new();
    if let Some(lines) = both(&rate) {
        let max = greatest(&lines)?;
        let (factor, prefix) = units::prefix(max);
        panes.push(Pane {
            title: format!("{what}, {prefix}pps"),
            height: 170.0,
            y: timeline::Axis::linear(max / factor, 5),
            lines: scaled(lines, factor),
            ..Pane::default()
        });
    }
    if let Some(lines) = both(&share_lost) {
        let y = timeline::Axis::linear(greatest(&lines)?, 2);
        panes.push(Pane { title: "% lost".to_owned(), height: 70.0, y, lines, ..Pane::default() });
    }
    for (name, value) in
        [("half of the frames within", &half as &dyn Fn(&Interval) -> _), ("99 % within", &most)]
    {
        if let Some(lines) = both(value) {
            let (y, unit) = timeline::Axis::times(least(&lines), greatest(&lines)?, 3);
            panes.push(Pane {
                title: format!("latency, {name}, {unit}"),
                height: 90.0,
                y,
                lines,
                ..Pane::default()
            });
        }
    }
    let end = |of: &[Interval]| of.last().map_or(0, |i| i.end_ns);
    let (longer, other, a_is_longer) = if end(&a) >= end(&b) { (&a, &b, true) } else { (&b, &a, false) };
    let tips: Vec<Stretch> = longer
        .iter()
        .map(|i| {
            let middle = i.start_ns.midpoint(i.end_ns);
            let there = other.iter().find(|o| o.start_ns <= middle && middle < o.end_ns);
            let values = |value: &dyn Fn(&Interval) -> Option<f64>| match (value(i), there.and_then(value)) {
                (own, its) if a_is_longer => [own, its],
                (own, its) => [its, own],
            };
            let mut parts = vec![span(i)];
            parts.extend(super::compare::tip(what, values(&rate), units::frame_rate));
            parts.extend(super::compare::tip("lost", values(&share_lost), |v| units::percent(v / 100.0)));
            parts.extend(super::compare::tip("p50", values(&half), super::compare::time));
            parts.extend(super::compare::tip("p99", values(&most), super::compare::time));
            (i.start_ns, i.end_ns, parts.join(" · "))
        })
        .collect();
    let svg = timeline::draw(&panes, &tips, "Both runs over time")?;
    let line_of =
        |class: &str| if class.starts_with("s0") { marks::goal_line(0) } else { marks::goal_line(1) };
    let legend = sides.map(|(class, name)| (line_of(class), name.to_owned())).to_vec();
    let note = "The first result of each side, from its own start.".to_owned();
    Some(Chart { heading: "Both runs over time".to_owned(), svg, legend, note })
}

/// What the lines of a run are called in its legend.
const NAMES: [(&str, &str); 7] = [
    ("sent", "sent"),
    ("received", "received"),
    ("intended", "intended"),
    ("lost", "lost"),
    ("half", "latency: half of the frames within (p50)"),
    ("most", "99 % within (p99)"),
    ("longest", "longest"),
];

/// The values of each stretch as a line; `None` where there are none.
fn line(
    class: &'static str,
    of: &[Interval],
    value: impl Fn(&Interval) -> Option<f64>,
) -> Option<timeline::Line> {
    let steps: Vec<_> = of.iter().map(|i| (i.start_ns, i.end_ns, value(i))).collect();
    steps.iter().any(|(_, _, value)| value.is_some()).then_some(timeline::Line { class, steps })
}

/// The greatest value of some lines.
pub(super) fn greatest(lines: &[timeline::Line]) -> Option<f64> {
    lines.iter().flat_map(|line| &line.steps).filter_map(|(_, _, value)| *value).reduce(f64::max)
}

/// Values divided by what one of the axis' units is worth.
pub(super) fn scaled(mut lines: Vec<timeline::Line>, factor: f64) -> Vec<timeline::Line> {
    let values = lines.iter_mut().flat_map(|line| &mut line.steps).filter_map(|(_, _, value)| value.as_mut());
    values.for_each(|value| *value /= factor);
    lines
}

fn rates(of: &[Interval], counted: &str) -> Option<Pane> {
    let lines = [
        line("sent", of, |i| i.tx().map(|t| t.frames_per_second)),
        line("received", of, |i| i.rx().map(|t| t.frames_per_second)),
        line("intended", of, Interval::intended_frames_per_second),
    ];
    let lines: Vec<_> = lines.into_iter().flatten().collect();
    let max = greatest(&lines)?;
    let (factor, prefix) = units::prefix(max);
    Some(Pane {
        title: match counted {
            "frames" => format!("frames a second, {prefix}pps"),
            other if prefix.is_empty() => format!("{other} a second"),
            other => format!("{other} a second, {prefix}"),
        },
        height: 190.0,
        y: timeline::Axis::linear(max / factor, 5),
        lines: scaled(lines, factor),
        ..Pane::default()
    })
}

/// Of the frames sent in the interval; where the sender is not ours, of those that should have arrived.
fn share_lost(i: &Interval) -> Option<f64> {
    share(i, i.lost_frames?)
}

/// What was sent, or should have arrived.
pub(super) fn sent(i: &Interval) -> Option<u64> {
    i.tx_frames.or_else(|| Some(i.rx_frames?.saturating_add(i.lost_frames?)))
}

/// So many of those that were sent, in percent.
pub(super) fn share(i: &Interval, frames: u64) -> Option<f64> {
    let of = sent(i)?;
    // Of nothing there is no share.
    (of > 0).then(|| (frames as f64 / of as f64).min(1.0) * 100.0)
}

/// The loss, and under its line its parts by cause.
fn losses(of: &[Interval], parts: &[Part]) -> Option<Pane> {
    let lines: Vec<_> = line("lost", of, share_lost).into_iter().collect();
    let areas = parts::areas(of, parts);
    let highest = areas.iter().flat_map(|area| &area.steps).map(|(.., [_, high])| *high);
    let max = highest.fold(greatest(&lines)?, f64::max);
    Some(Pane {
        title: "% lost".to_owned(),
        height: if areas.is_empty() { 70.0 } else { 110.0 },
        y: timeline::Axis::linear(max, 2),
        lines,
        areas,
        ..Pane::default()
    })
}

/// What was dropped, where no loss is known: a receiver alone.
fn dropped(of: &[Interval], parts: &[Part]) -> Option<Pane> {
    let mut areas = parts::rates(of, parts);
    let max = areas.iter().flat_map(|area| &area.steps).map(|(.., [_, high])| *high).reduce(f64::max)?;
    let (factor, prefix) = units::prefix(max);
    for (.., ends) in areas.iter_mut().flat_map(|area| &mut area.steps) {
        *ends = ends.map(|end| end / factor);
    }
    Some(Pane {
        title: format!("dropped by this kernel, {prefix}pps"),
        height: 110.0,
        y: timeline::Axis::linear(max / factor, 2),
        areas,
        ..Pane::default()
    })
}

fn latencies(of: &[Interval]) -> Option<Pane> {
    let ns = |value: Option<u64>| value.map(|ns| ns as f64);
    let lines = [
        line("half", of, |i| ns(i.latency_p50_ns)),
        line("most", of, |i| ns(i.latency_p99_ns)),
        line("longest", of, |i| ns(i.latency_max_ns)),
    ];
    let lines: Vec<_> = lines.into_iter().flatten().collect();
    let (y, unit) = timeline::Axis::times(least(&lines), greatest(&lines)?, 4);
    Some(Pane { title: format!("latency, {unit}"), height: 130.0, y, lines, ..Pane::default() })
}

/// The least value above 0 of some lines; 0 if there is none.
fn least(lines: &[timeline::Line]) -> f64 {
    let values = lines.iter().flat_map(|line| &line.steps).filter_map(|(_, _, value)| *value);
    values.filter(|value| *value > 0.0).reduce(f64::min).unwrap_or(0.0)
}

/// What a reader sees who points at an interval.
fn tip(i: &Interval) -> String {
    let mut parts = vec![span(i)];
    parts.extend(i.intended_frames_per_second().map(|r| format!("intended {}", units::frame_rate(r))));
    let both = |t: crate::data::model::Totals| {
        format!("{} ({})", units::frame_rate(t.frames_per_second), units::bit_rate(t.bits_per_second))
    };
    parts.extend(i.tx().map(|t| format!("sent {}", both(t))));
    parts.extend(i.rx().map(|t| format!("received {}", both(t))));
    parts.extend(i.lost_frames.zip(share_lost(i)).map(|(lost, share)| {
        format!("lost {} ({})", units::counted(lost, "frame"), units::percent(share / 100.0))
    }));
    let times = [("p50", i.latency_p50_ns), ("p99", i.latency_p99_ns), ("longest", i.latency_max_ns)];
    parts.extend(times.into_iter().filter_map(|(name, ns)| Some(format!("{name} {}", units::time(ns?)))));
    parts.join(" · ")
}

/// How many frames took how long, by powers of ten on both axes: the tail is what matters.
pub(super) fn latency(report: &Report) -> Option<Chart> {
    let what = if report.result.round_trip { "round-trip latency" } else { "latency" };
    histogram("Latency".to_owned(), report.result.latency_ns.as_ref()?, what, "frame")
}

/// How many frames of the only stream came how long after the one before.
pub(super) fn apart(report: &Report) -> Option<Chart> {
    let [only] = &report.streams[..] else { return None };
    let heading = "Times between the stream's arrivals".to_owned();
    histogram(heading, only.inter_arrival_ns.as_ref()?, "between arrivals", "time")
}

/// How many took how long. `what` stands at the axis, `noun` is one that was measured.
pub(super) fn histogram(heading: String, d: &Distribution, what: &str, noun: &str) -> Option<Chart> {
    if d.histogram.is_empty() {
        return None;
    }
    let buckets = coarsen(&d.histogram, 220);
    let mut svg = Svg::new(270.0, Frame { top: 58.0, ..FRAME });
    let ((x0, x1), (y0, y1)) = (svg.x_range(), svg.y_range());
    // The axis runs over whole bars: a bar ends where the next value would begin.
    // No logarithm reaches 0 ns; half a nanosecond stands for it.
    let log = |ns: u64| (ns as f64).max(0.5);
    let (lo, hi) = (log(buckets.first()?.from), log(buckets.last()?.to.saturating_add(1)));
    let x = if hi / lo < 4.0 { Scale::log(lo * 0.5, hi * 2.0, x0, x1) } else { Scale::log(lo, hi, x0, x1) };
    let most = buckets.iter().map(|b| b.count).max()?.max(1) as f64;
    let y = Scale::log(0.6, 10f64.powf((most * 1.3).log10().ceil().max(1.0)), y0, y1);
    let y_ticks = decades(&y).into_iter().map(|v| (v, power(v))).collect::<Vec<_>>();
    svg.y_axis(&y, &y_ticks, &format!("{noun}s"));
    for b in &buckets {
        let (from, to) = (x.at(log(b.from)), x.at(log(b.to.saturating_add(1))));
        let top = y.at(b.count as f64);
        let share = units::percent(b.count as f64 / d.count.max(1) as f64);
        let tip = format!(
            "{} to {} · {} ({share})",
            units::time(b.from),
            units::time(b.to),
            units::counted(b.count, noun)
        );
        // A hair of room between bars, where they are wide enough for it.
        let gap = if to - from > 4.0 { 1.0 } else { 0.0 };
        svg.rect("bar", from, top, (to - from - gap).max(0.8), y0 - top, None);
        svg.rect("hit", from, y1, (to - from).max(0.8), y0 - y1, Some(&tip));
    }
    let ticks: Vec<_> =
        x.ticks(7).into_iter().filter(|v| *v >= 1.0).map(|v| (v, units::tick_time(v))).collect();
    svg.x_axis(&x, &ticks, what, false);
    for (row, (name, value)) in [("p50", d.p50), ("p99", d.p99), ("p99.9", d.p999)].into_iter().enumerate() {
        let (px, py) = (x.at(log(value)), 24.0 + 13.0 * row as f64);
        svg.line("mark", px, py - 3.0, px, y0);
        // Near the right edge the label stands on the left of its mark.
        let (class, at) =
            if px > WIDTH - 150.0 { ("mark-label end", px - 5.0) } else { ("mark-label", px + 5.0) };
        svg.text(class, at, py + 5.0, &format!("{name} {}", units::time(value)));
    }
    let facts = [("min", d.min), ("p50", d.p50), ("p99", d.p99), ("max", d.max)]
        .map(|(n, v)| format!("{n} {}", units::time(v)));
    let note = format!(
        "{} measured. Both axes by powers of ten, so that the tail shows.",
        units::counted(d.count, noun)
    );
    let svg = svg.finish(&format!("Latency histogram: {}", facts.join(", ")));
    Some(Chart { heading, svg, legend: Vec::new(), note })
}

/// The percentiles of gap error and lateness, a row each.
pub(super) fn pacing(report: &Report) -> Option<Chart> {
    let p = report.result.pacing.as_ref()?;
    let known = |class, name, d: &'_ Option<Distribution>| d.clone().map(|d| (class, name, d));
    let series: Vec<(&str, &str, Distribution)> =
        [known("sent", "gap error", &p.gap_error_ns), known("received", "lateness", &p.lateness_ns)]
            .into_iter()
            .flatten()
            .collect();
    let max = series.iter().map(|(_, _, d)| d.max).max()? as f64;
    let min = series.iter().map(|(_, _, d)| d.p50).filter(|v| *v > 0).min().unwrap_or(1) as f64;
    let row_height = 34.0;
    let mut svg = Svg::new(5.0 * row_height + 56.0, Frame { right: 92.0, top: 8.0, ..FRAME });
    let ((x0, x1), (_, y1)) = (svg.x_range(), svg.y_range());
    let lo = 10f64.powf(min.log10().floor());
    let x = Scale::log(lo, 10f64.powf((max.max(lo * 10.0)).log10().ceil()), x0, x1);
    let ticks: Vec<_> = x.ticks(8).into_iter().map(|v| (v, units::tick_time(v))).collect();
    svg.x_axis(&x, &ticks, "from the scheduled time", true);
    for (row, (name, _)) in series.first()?.2.percentiles().into_iter().enumerate() {
        let middle = y1 + row_height * (row as f64 + 0.5);
        svg.text("tick end", x0 - 8.0, middle + 4.0, name);
        for (i, (class, what, d)) in series.iter().enumerate() {
            let value = d.percentiles().get(row).map_or(0, |(_, v)| *v);
            let y = middle + (i as f64 - (series.len() as f64 - 1.0) / 2.0) * 13.0;
            let px = x.at(value as f64);
            svg.line(&format!("stem {class}"), x0, y, px, y);
            svg.dot(&format!("dot {class}"), px, y);
            svg.text("value", px + 9.0, y + 4.0, &units::time(value));
            svg.rect(
                "hit",
                x0,
                y - 6.5,
                x1 - x0,
                13.0,
                Some(&format!("{what} {name}: {}", units::time(value))),
            );
        }
    }
    let at = p.measured_at.as_deref().map(|at| format!(", measured at the {at}")).unwrap_or_default();
    let note = format!("How far gaps between frames were from the schedule, and how late frames left{at}.");
    let legend = series.iter().map(|(class, name, _)| (*class, (*name).to_owned())).collect();
    Some(Chart { heading: "Pacing".to_owned(), svg: svg.finish("Pacing percentiles"), legend, note })
}

/// The share of frames of each size.
pub(super) fn sizes(report: &Report) -> Option<Chart> {
    let all = &report.result.frame_sizes;
    let total = all.iter().map(|b| b.count as f64).sum::<f64>();
    if total == 0.0 {
        return None;
    }
    let buckets: Vec<Bucket> = coarsen(all, 16);
    let mut svg = Svg::new(240.0, FRAME);
    let ((x0, x1), (y0, y1)) = (svg.x_range(), svg.y_range());
    let share = |b: &Bucket| b.count as f64 / total * 100.0;
    let top = round_up(buckets.iter().map(share).fold(0.0, f64::max));
    let y = Scale::linear(0.0, top, y0, y1);
    let ticks = y.ticks(4);
    svg.y_axis(&y, &ticks.iter().map(|v| (*v, tick_number(*v, &ticks))).collect::<Vec<_>>(), "% of frames");
    let slot = (x1 - x0) / buckets.len().max(4) as f64;
    for (i, b) in buckets.iter().enumerate() {
        let (x, bar) = (x0 + slot * i as f64, y.at(share(b)));
        let name = if b.from == b.to { b.from.to_string() } else { format!("{}-{}", b.from, b.to) };
        let percent = units::percent(share(b) / 100.0);
        svg.rect("bar", x + slot * 0.14, bar, slot * 0.72, y0 - bar, None);
        svg.text("value mid", x + slot / 2.0, bar - 5.0, &percent);
        let class = if buckets.len() > 10 { "tick small mid" } else { "tick mid" };
        svg.text(class, x + slot / 2.0, y0 + 17.0, &name);
        svg.rect(
            "hit",
            x,
            y1,
            slot,
            y0 - y1,
            Some(&format!("{name} bytes · {} ({percent})", units::counted(b.count, "frame"))),
        );
    }
    svg.x_axis(&Scale::linear(0.0, 1.0, x0, x1), &[], "frame size in bytes, FCS counted", false);
    let note = format!("{}.", units::counted(total as u64, "frame"));
    Some(Chart {
        heading: "Frame sizes".to_owned(),
        svg: svg.finish("Frame sizes"),
        legend: Vec::new(),
        note,
    })
}

/// The unit of an axis of time over so many ns, and what stands below it.
pub(super) fn time_unit(span: u64) -> (f64, &'static str) {
    match span {
        0..2_000_000_000 => (1e6, "milliseconds since the start"),
        2_000_000_000..600_000_000_000 => (1e9, "seconds since the start"),
        600_000_000_000..36_000_000_000_000 => (60e9, "minutes since the start"),
        _ => (3600e9, "hours since the start"),
    }
}

/// The unit of an axis of durations up to `max` ns.
pub(super) fn axis_time(max: f64) -> (f64, &'static str) {
    match max {
        m if m >= 1e9 => (1e9, "s"),
        m if m >= 1e6 => (1e6, "ms"),
        m if m >= 1e3 => (1e3, "us"),
        _ => (1.0, "ns"),
    }
}

/// The intervals, neighbours joined until there are few enough to draw. One without extent has no rate.
fn stretches(intervals: &[Interval]) -> Vec<Interval> {
    let intervals: Vec<_> = intervals.iter().filter(|i| i.duration_ns() > 0).copied().collect();
    intervals.chunks(group(intervals.len())).filter_map(|group| group.iter().copied().reduce(join)).collect()
}

/// So many intervals are one stretch.
fn group(intervals: usize) -> usize {
    intervals.div_ceil(MOST_STRETCHES).max(1)
}

/// What was counted in each interval, summed over the stretches.
pub(super) fn summed(intervals: &[Interval], counted: &[u64]) -> Vec<u64> {
    let pairs = intervals.iter().zip(counted).filter(|(i, _)| i.duration_ns() > 0);
    let counted: Vec<u64> = pairs.map(|(_, counted)| *counted).collect();
    let sum = |group: &[u64]| group.iter().fold(0_u64, |sum, more| sum.saturating_add(*more));
    counted.chunks(group(counted.len())).map(sum).collect()
}

fn join(a: Interval, b: Interval) -> Interval {
    // A sum is known only when both parts are; the worst latency is known when either is.
    let sum = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
    // What sent nothing lost nothing, and says nothing of it.
    let lost = match (a.lost_frames, b.lost_frames) {
        (Some(lost), None) if b.tx_frames == Some(0) => Some(lost),
        (None, Some(lost)) if a.tx_frames == Some(0) => Some(lost),
        (a, b) => sum(a, b),
    };
    Interval {
        start_ns: a.start_ns,
        end_ns: b.end_ns,
        intended_frames: sum(a.intended_frames, b.intended_frames),
        tx_frames: sum(a.tx_frames, b.tx_frames),
        tx_bytes: sum(a.tx_bytes, b.tx_bytes),
        rx_frames: sum(a.rx_frames, b.rx_frames),
        rx_bytes: sum(a.rx_bytes, b.rx_bytes),
        lost_frames: lost,
        late_frames: sum(a.late_frames, b.late_frames),
        latency_p50_ns: a.latency_p50_ns.max(b.latency_p50_ns),
        latency_p99_ns: a.latency_p99_ns.max(b.latency_p99_ns),
        latency_p999_ns: a.latency_p999_ns.max(b.latency_p999_ns),
        latency_max_ns: a.latency_max_ns.max(b.latency_max_ns),
    }
}

fn span(i: &Interval) -> String {
    let seconds = |ns: u64| ns as f64 / 1e9;
    format!("{:.2} s to {:.2} s", seconds(i.start_ns), seconds(i.end_ns))
}

/// Powers of ten within the scale.
fn decades(scale: &Scale) -> Vec<f64> {
    let every = ((scale.hi / scale.lo.max(1.0)).log10() / 6.0).ceil().max(1.0) as usize;
    (0..20).step_by(every).map(|d| 10f64.powi(d)).filter(|v| *v >= scale.lo && *v <= scale.hi).collect()
}

fn power(value: f64) -> String {
    let (factor, prefix) = units::prefix(value);
    format!("{:.0}{prefix}", value / factor)
}

impl Chart {
    /// The figure with heading, the place where the script shows what is pointed at, and legend.
    pub fn html(&self) -> String {
        let key = |(class, name): &(&str, String)| {
            format!("<span class=\"key {class}\">{}{}</span>", marks::sign(class), Esc(name))
        };
        let legend = match self.legend.as_slice() {
            [] => String::new(),
            keys => format!("<div class=\"legend\">{}</div>", keys.iter().map(key).collect::<String>()),
        };
        let (heading, note) = (Esc(&self.heading), Esc(&self.note));
        format!(
            "<figure class=\"plot\"><figcaption><h3>{heading}</h3><output></output><p>{note}</p></figcaption>{legend}<div class=\"scroll\">{}</div></figure>\n",
            self.svg
        )
    }
}
