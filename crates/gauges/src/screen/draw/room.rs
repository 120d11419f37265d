//! What a terminal that is larger than needed shows beside: the history as a plot, how latency is distributed now and over the
//! run, and a bar for each core. A small terminal has the same in a line each.

use super::surroundings::Load;
use super::{LABEL, Manner, View, bars, label};
use crate::screen::view::Column;
use histogram::Histogram;
use ratatui::style::Color;
use ratatui::text::{Line, Span};
use report::units::{frame_rate, percent, tick_time, time};
use snapshot::Snapshot;

/// Lines of a terminal from which on there is something to share out.
pub const FROM: usize = 34;
/// Lines of one series of the plot at most, and of the others that matter less.
const MOST: usize = 6;
const LESS: usize = 3;
/// Edges of the distribution: 1, 2, 5 of each decade from 1 ns to 100 s.
const STEPS: [u64; 3] = [1, 2, 5];
const DECADES: u32 = 11;

/// One quantity over time.
struct Series {
    name: &'static str,
    of: fn(&Column) -> f64,
    colour: Color,
    lines: usize,
    most: f64,
    show: fn(f64) -> String,
}

/// The history in as many of `spare` lines as suit it.
pub fn plot(view: &View, now: &Snapshot, manner: Manner, width: usize, spare: usize) -> Vec<Line<'static>> {
    if view.history.len() < 2 || now.endpoint.is_some() {
        return Vec::new();
    }
    let columns = width.saturating_sub(LABEL + 14).max(1);
    let shown: Vec<Column> =
        view.history.iter().skip(view.history.len().saturating_sub(columns)).copied().collect();
    let most = |of: fn(&Column) -> f64| shown.iter().map(of).fold(0.0, f64::max);
    let frames = most(|c| c.sent.max(c.received));
    let rows = spare / 3;
    let (tall, low) = (rows.clamp(1, MOST), (rows / 2).clamp(1, LESS));
    // What has one scale has as many lines: bars of one height are one rate.
    let frames_lines = if now.tx.is_some() && now.rx.is_some() { (tall + low) / 2 } else { tall };
    let late = |v: f64| time(v as u64);
    let mut all = Vec::new();
    if now.tx.is_some() {
        all.push(Series {
            name: "sent",
            of: |c| c.sent,
            colour: Color::Blue,
            lines: frames_lines,
            most: frames,
            show: frame_rate,
        });
    }
    if now.rx.is_some() {
        let of = |c: &Column| c.received;
        all.push(Series {
            name: "received",
            of,
            colour: Color::Green,
            lines: frames_lines,
            most: frames,
            show: frame_rate,
        });
    }
    if now.lost.is_some() {
        let (of, lost) = (|c: &Column| c.lost, most(|c| c.lost));
        all.push(Series { name: "lost", of, colour: Color::Red, lines: low, most: lost, show: frame_rate });
    }
    if now.latency.as_ref().is_some_and(|h| !h.is_empty()) {
        let (of, longest) = (|c: &Column| c.p99_ns, most(|c| c.p99_ns));
        all.push(Series { name: "p99", of, colour: Color::Magenta, lines: low, most: longest, show: late });
    }
    all.iter().flat_map(|series| series.draw(&shown, manner, columns)).collect()
}

impl Series {
    /// Columns of blocks, the highest value as high as the lines; its value stands at the first line's end.
    fn draw(&self, shown: &[Column], manner: Manner, columns: usize) -> Vec<Line<'static>> {
        let blocks = bars(manner.unicode);
        let eighths = |value: f64| match self.most > 0.0 && value > 0.0 {
            // The least that is more than nothing is seen.
            true => ((value / self.most * 8.0 * self.lines as f64).round() as usize).max(1),
            false => 0,
        };
        let line = |row: usize| {
            let below = (self.lines - 1 - row) * 8;
            let cells: String =
                shown.iter().map(|c| blocks[eighths((self.of)(c)).saturating_sub(below).min(8)]).collect();
            let (name, end) = match row {
                0 => (self.name, format!("<{}", (self.show)(self.most))),
                _ => ("", String::new()),
            };
            Line::from(vec![
                label(name, manner),
                Span::styled(format!("{cells:<columns$}"), manner.style(self.colour)),
                Span::styled(format!(" {end:>12}"), manner.label()),
            ])
        };
        (0..self.lines).map(line).collect()
    }
}

/// How latency was distributed in the last second and over the run, in at most so many lines.
pub fn distribution(
    view: &View,
    now: &Snapshot,
    manner: Manner,
    width: usize,
    lines: usize,
) -> Vec<Line<'static>> {
    let Some(run) = now.latency.as_deref().filter(|h| !h.is_empty()) else { return Vec::new() };
    let before = view.before().and_then(|before| before.latency.as_deref());
    let second = before.map_or_else(|| run.clone(), |before| run.since(before));
    let mut rows: Vec<(u64, u64, u64, u64)> = (0..DECADES)
        .flat_map(|decade| STEPS.map(|step| step * 10u64.pow(decade)))
        .map(|from| (from, 0, 0, 0))
        .collect();
    let edges: Vec<u64> = rows.iter().skip(1).map(|(from, ..)| *from).collect();
    rows.iter_mut().zip(&edges).for_each(|(row, to)| row.1 = *to);
    rows.pop();
    // Below 1 ns is the first row's, above the last edge the last one's.
    let mut add = |of: &Histogram, is_run: bool| {
        for bucket in of.buckets() {
            let at = rows.partition_point(|(from, ..)| *from <= bucket.from).saturating_sub(1);
            if let Some((_, _, second, run)) = rows.get_mut(at) {
                *(if is_run { run } else { second }) += bucket.count;
            }
        }
    };
    add(run, true);
    add(&second, false);
    let first = rows.iter().position(|(.., run)| *run > 0).unwrap_or(0);
    let last = rows.iter().rposition(|(.., run)| *run > 0).unwrap_or(0);
    let known = rows.get(first..=last).unwrap_or_default();
    let room = lines.saturating_sub(1);
    if room < 2 {
        return Vec::new();
    }
    // Where not all have room, neighbours are joined.
    let joined: Vec<(u64, u64, u64, u64)> = known
        .chunks(known.len().div_ceil(room).max(1))
        .filter_map(|some| {
            let sum = |of: fn(&(u64, u64, u64, u64)) -> u64| some.iter().map(of).sum();
            Some((some.first()?.0, some.last()?.1, sum(|r| r.2), sum(|r| r.3)))
        })
        .collect();
    let each = (width.saturating_sub(LABEL + 22 + 20) / 2).clamp(4, 60);
    let half = |count: u64, all: u64| {
        let share = if all == 0 { 0.0 } else { count as f64 / all as f64 };
        let text = if all == 0 { "-".to_owned() } else { percent(share) };
        format!("{text:>8} {:<each$}", bar(share, each, manner.unicode))
    };
    let head = format!("{:LABEL$}{:<20} {:>8} {:<each$} {:>8}", "", "latency within", "now", "", "run");
    let mut drawn = vec![Line::styled(head, manner.label())];
    drawn.extend(joined.iter().map(|(from, to, now, whole)| {
        let range = format!("{} to {}", tick_time(*from as f64), tick_time(*to as f64));
        Line::from(vec![
            label("", manner),
            format!("{range:<20} ").into(),
            Span::styled(half(*now, second.count()), manner.style(Color::Green)),
            Span::styled(format!(" {}", half(*whole, run.count())), manner.style(Color::Blue)),
        ])
    }));
    drawn
}

/// A bar as long as its share of the room; the least that is more than nothing is seen.
fn bar(share: f64, room: usize, unicode: bool) -> String {
    let cells = if share > 0.0 { ((share * room as f64).round() as usize).clamp(1, room) } else { 0 };
    (if unicode { "█" } else { "#" }).repeat(cells)
}

/// A line for each core, if all have room.
pub fn cores(loads: &[Load], manner: Manner, width: usize, lines: usize) -> Vec<Line<'static>> {
    if loads.is_empty() || loads.len() > lines {
        return Vec::new();
    }
    let room = width.saturating_sub(LABEL + 24).clamp(8, 80);
    let line = |(n, load): (usize, &Load)| {
        let text = format!("cpu{:<4} {:>4.0} % irq {:>3.0} % ", load.number, load.busy, load.interrupts);
        Line::from(vec![
            label(if n == 0 { "cores" } else { "" }, manner),
            text.into(),
            Span::styled(bar(load.busy / 100.0, room, manner.unicode), manner.style(Color::Yellow)),
        ])
    };
    loads.iter().enumerate().map(line).collect()
}
