//! The screen as lines of text: a pure function of a [`View`] and the terminal's size.
//!
//! Everything can be read without colours; they only help. When the terminal is too small for all, what matters least
//! is left out.

mod room;
mod surroundings;
mod trials;

use super::view::{Column, View};
use histogram::Histogram;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use report::sections::received::{DUPLICATED, REORDERED, TRAILED};
use report::units::{self, bit_rate, count, frame_rate, percent, printable, time};
use snapshot::{Phase, Snapshot};
use std::time::Duration;

/// How to draw.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    pub colour: bool,
    /// Block characters for the history; otherwise ASCII.
    pub unicode: bool,
}

/// Bytes on the wire beyond a frame's own, without FCS.
const L1_OVERHEAD: f64 = report::L1_OVERHEAD_BYTES as f64;
const LABEL: usize = 9;

impl Manner {
    fn style(self, colour: Color) -> Style {
        if self.colour { Style::new().fg(colour) } else { Style::new() }
    }

    fn alarm(self) -> Style {
        self.style(Color::Red).add_modifier(Modifier::BOLD)
    }

    fn label(self) -> Style {
        self.style(Color::Cyan)
    }
}

/// Some lines, and how much they matter.
struct Section {
    weight: u8,
    lines: Vec<Line<'static>>,
}

/// All lines, at most `height`.
pub fn draw(view: &View, manner: Manner, width: usize, height: usize) -> Vec<Line<'static>> {
    let Some(now) = &view.now else {
        return vec![Line::from("netdyno: waiting for the first frames; q quits")];
    };
    if view.help {
        return help(now, view.help_scroll, manner, width, height);
    }
    // Of a search the loads that were tried say more than how frames left in the last minute.
    let (bars, cores) = if now.search.is_some() { (2, 4) } else { (4, 2) };
    let mut sections = vec![
        Section { weight: 10, lines: vec![title(now, manner, width)] },
        Section { weight: 9, lines: rates(view, now, manner, width) },
        Section { weight: 8, lines: trials::progress(now, manner) },
        Section { weight: 8, lines: whole(surroundings::connections(now, manner), manner, width) },
        Section { weight: 8, lines: whole(surroundings::flows(now, manner), manner, width) },
        Section { weight: 8, lines: whole(surroundings::collected(now, manner), manner, width) },
        Section { weight: 8, lines: whole(surroundings::cloned(now, manner), manner, width) },
        Section { weight: 8, lines: whole(surroundings::endpoint(view, now, manner), manner, width) },
        Section { weight: 5, lines: whole(surroundings::passages(view, now, manner), manner, width) },
        Section { weight: 6, lines: times(view, now, manner, width) },
        Section { weight: bars, lines: history(view, now, manner, width) },
    ];
    let history_at = sections.len() - 1;
    // Where streams or trials go, as far as there is room.
    let table_at = sections.len();
    sections.extend([
        Section { weight: 5, lines: Vec::new() },
        Section { weight: cores, lines: surroundings::load(view, now, manner, width, height) },
        Section { weight: 1, lines: surroundings::queues(view, now, manner, width, height) },
        Section { weight: 3, lines: surroundings::counters(now, manner) },
        Section { weight: 7, lines: warnings(now, manner, width) },
        Section { weight: 8, lines: footer(view, now, manner, width) },
    ]);
    let used = |sections: &[Section]| sections.iter().map(|s| s.lines.len()).sum::<usize>();
    let rows = now.search.as_ref().map_or(now.streams.len(), |search| search.rows.len());
    // A table is worth its place from its header and two rows on.
    let table = if rows == 0 { 0 } else { 2 + rows.min(2) };
    while used(&sections) + table > height {
        let least =
            sections.iter().enumerate().filter(|(_, s)| !s.lines.is_empty()).min_by_key(|(_, s)| s.weight);
        let Some((n, section)) = least else { break };
        if table > 0 && section.weight > 5 {
            break;
        }
        sections[n].lines.clear();
    }
    let mut room = height.saturating_sub(used(&sections));
    if height >= room::FROM && !sections[history_at].lines.is_empty() {
        // The table has what it needs, up to half of what is free.
        let least = if rows == 0 { 0 } else { rows + 2 };
        let spare = room - least.min(room / 2);
        let plot = room::plot(view, now, manner, width, spare / 2 + 3);
        if !plot.is_empty() {
            sections[history_at].lines = plot;
        }
        let free = height.saturating_sub(used(&sections)).saturating_sub(least.min(room / 2));
        if free >= 5 {
            sections[history_at].lines.extend(room::distribution(view, now, manner, width, free.min(16)));
        }
        room = height.saturating_sub(used(&sections));
    }
    if table > 0 && room >= 2 {
        sections[table_at].lines = match &now.search {
            Some(search) => trials::table(search, manner, room),
            None => streams(view, now, manner, width, room),
        };
    }
    while used(&sections) > height {
        let least =
            sections.iter().enumerate().filter(|(_, s)| !s.lines.is_empty()).min_by_key(|(_, s)| s.weight);
        let Some((n, _)) = least else { break };
        sections[n].lines.pop();
    }
    // The keys stand in the last line.
    let footer = sections.pop().map_or(Vec::new(), |section| section.lines);
    let mut lines: Vec<_> = sections.into_iter().flat_map(|section| section.lines).collect();
    while lines.len() + footer.len() < height {
        lines.push(Line::default());
    }
    lines.extend(footer);
    lines.into_iter().map(|line| within(line, manner, width)).collect()
}

/// Lines of a label and a text, which go on in further lines where the terminal is narrower: no figure of them is cut off.
fn whole(lines: Vec<Line<'static>>, manner: Manner, width: usize) -> Vec<Line<'static>> {
    let fold = |line: Line<'static>| match &line.spans[..] {
        [name, text] if LABEL + text.content.chars().count() > width => {
            let style = text.style;
            let texts = report::text::fold(&text.content, 0, width.saturating_sub(LABEL));
            let texts: Vec<String> = texts.lines().map(str::to_owned).collect();
            let names = std::iter::once(name.clone()).chain(std::iter::repeat(label("", manner)));
            let parts = names.zip(texts);
            parts.map(|(name, text)| Line::from(vec![name, Span::styled(text, style)])).collect()
        }
        _ => vec![line],
    };
    lines.into_iter().flat_map(fold).collect()
}

/// A line that says where it is cut, between words, if it is wider than the terminal.
fn within(line: Line<'static>, manner: Manner, width: usize) -> Line<'static> {
    let columns = |span: &Span| span.content.chars().count();
    if line.spans.iter().map(columns).sum::<usize>() <= width {
        return line;
    }
    let sign = if manner.unicode { "…" } else { "..." };
    let mut room = width.saturating_sub(sign.chars().count());
    let mut cut = Line::default().style(line.style);
    for span in line.spans {
        let count = columns(&span);
        if count <= room {
            room -= count;
            cut.spans.push(span);
            continue;
        }
        let begin: String = span.content.chars().take(room).collect();
        // In the middle of a word only if there is but one.
        let end = begin.rfind(' ').unwrap_or(begin.len());
        cut.spans.push(Span::styled(begin.get(..end).unwrap_or_default().trim_end().to_owned(), span.style));
        break;
    }
    cut.spans.push(Span::raw(sign));
    cut
}

/// Cells of a table's line, each with its width, as many as fit behind `before` columns: a number is shown whole or not.
fn cells<const N: usize>(before: usize, all: [(usize, String); N], width: usize) -> String {
    let mut out = String::new();
    let mut at = before;
    for (n, (room, text)) in all.into_iter().enumerate() {
        let apart = usize::from(n > 0);
        at += apart + room.max(text.chars().count());
        if at > width {
            break;
        }
        out += &format!("{:apart$}{text:>room$}", "");
    }
    out
}

/// A text on as many lines as it needs, each but the first behind so many spaces; at most `most` of them, the last of which then
/// says that there is more.
fn folded(text: &str, indent: usize, width: usize, most: usize, manner: Manner) -> Vec<String> {
    let whole = report::text::fold(text, indent, width);
    let mut lines: Vec<String> = whole.lines().map(str::to_owned).collect();
    if lines.len() > most {
        lines.truncate(most);
        let sign = if manner.unicode { " …" } else { " ..." };
        if let Some(last) = lines.last_mut() {
            while last.chars().count() + sign.chars().count() > width && last.trim().contains(' ') {
                last.truncate(last.rfind(' ').unwrap_or(0));
            }
            *last += sign;
        }
    }
    lines
}

fn title(now: &Snapshot, manner: Manner, width: usize) -> Line<'static> {
    let title = &now.title;
    let way = match (&title.tx, &title.rx) {
        (Some(tx), Some(rx)) if tx == rx => format!("{tx} and back"),
        // What is received comes first: it is what is sent on.
        (Some(tx), Some(rx)) if title.command == "clone" => format!("{rx} > {tx}"),
        (Some(tx), Some(rx)) => format!("{tx} > {rx}"),
        (Some(one), None) | (None, Some(one)) => one.clone(),
        (None, None) => String::new(),
    };
    let through = title.engine.as_deref().or(title.meter.as_deref()).unwrap_or("");
    let left = printable(&format!(" netdyno {}  {way}  {through}", title.command));
    let mut state = now.phase.name().to_uppercase();
    if now.percent != 100 && now.percent != 0 {
        state += &format!(" at {} %", now.percent);
    }
    let mut right = format!("{state}  {}", units::clock(now.at_ns));
    if let Some(remaining) = now.remaining_ns {
        let ahead = report::live::ahead(Duration::from_nanos(remaining), now.remaining_at_most);
        right += &format!("  {}", ahead.trim_start());
    }
    right.push(' ');
    // What runs may be cut, not how it stands.
    let room = width.saturating_sub(right.chars().count());
    let left: String = left.chars().take(room.saturating_sub(1)).collect();
    let text = format!("{left:<room$}{right}");
    let style = if now.phase == Phase::Paused { manner.style(Color::Yellow) } else { Style::new() };
    Line::styled(text, style.add_modifier(Modifier::REVERSED | Modifier::BOLD))
}

fn label(text: &str, manner: Manner) -> Span<'static> {
    Span::styled(format!("{text:<LABEL$}"), manner.label())
}

fn rates(view: &View, now: &Snapshot, manner: Manner, width: usize) -> Vec<Line<'static>> {
    // Its sockets count bytes and transactions, no frames; nor do those of a collector and of a clone.
    if now.endpoint.is_some()
        || [now.intended, now.lost].iter().all(Option::is_none) && now.tx.or(now.rx).is_none()
    {
        return Vec::new();
    }
    let row = |texts: [String; 5]| {
        let [frames, now, l2, l1, run] = texts;
        cells(LABEL, [(17, frames), (11, now), (13, l2), (13, l1), (11, run)], width)
    };
    let head = row(["frames", "now", "layer 2", "layer 1", "whole run"].map(str::to_owned));
    let mut lines = vec![Line::styled(format!("{:LABEL$}{head}", ""), manner.label())];
    let average = |frames: u64| {
        let seconds = now.at_ns as f64 / 1e9;
        if seconds > 0.0 { frame_rate(frames as f64 / seconds) } else { String::new() }
    };
    if let Some(intended) = now.intended {
        let rate = view.rate(|m| m.intended).map_or(String::new(), frame_rate);
        let text = row([count(intended), rate, String::new(), String::new(), average(intended)]);
        lines.push(Line::from(vec![label("intended", manner), text.into()]));
    }
    let sent = match now.title.command.as_str() {
        "reflect" => "sent back",
        "bridge" | "impair" => "forwarded",
        _ => "sent",
    };
    for (name, total, rates) in
        [(sent, now.tx, view.rates(|m| m.tx)), ("received", now.rx, view.rates(|m| m.rx))]
    {
        let Some(total) = total else { continue };
        let (frames, bytes) = rates.unwrap_or_default();
        let (l2, l1) = (bytes * 8.0, (bytes + frames * L1_OVERHEAD) * 8.0);
        let text =
            row([count(total.frames), frame_rate(frames), bit_rate(l2), bit_rate(l1), average(total.frames)]);
        lines.push(Line::from(vec![label(name, manner), text.into()]));
    }
    if let Some(lost) = now.lost {
        let of = now.tx.or(now.rx).map_or(0, |count| count.frames).max(lost);
        let ratio = if of == 0 { 0.0 } else { lost as f64 / of as f64 };
        let rate = view.rate(|m| m.lost).map_or(String::new(), frame_rate);
        let text = row([count(lost), rate, String::new(), String::new(), percent(ratio)]);
        let style = if lost > 0 { manner.alarm() } else { Style::new() };
        lines.push(Line::from(vec![label("lost", manner), Span::styled(text, style)]));
    }
    let mut rest = Vec::new();
    for (what, value) in [
        (REORDERED.name, now.reordered),
        (DUPLICATED.name, now.duplicated),
        (TRAILED.name, now.trailed),
        ("sent late", now.late),
    ] {
        rest.extend(value.map(|n| format!("{} {what}", count(n))));
    }
    if !rest.is_empty() {
        lines.push(Line::from(vec![label("", manner), format!("   {}", rest.join(", ")).into()]));
    }
    lines
}

/// Percentiles of the last second and of the run, side by side.
fn times(view: &View, now: &Snapshot, manner: Manner, width: usize) -> Vec<Line<'static>> {
    let row = |[now, run]: [[String; 4]; 2]| {
        let ([a, b, c, d], [e, f, g, h]) = (now, run);
        cells(LABEL, [a, b, c, d, e, f, g, h].map(|text| (8, text)), width)
    };
    let mut lines = Vec::new();
    let before = view.before();
    type Of = fn(&Snapshot) -> Option<&Histogram>;
    let rows: [(&str, Of); 2] =
        [("latency", |m| m.latency.as_deref()), ("lateness", |m| m.lateness.as_deref())];
    for (name, of) in rows {
        let Some(run) = of(now).filter(|histogram| !histogram.is_empty()) else { continue };
        let second = before.and_then(of).map_or_else(|| run.clone(), |before| run.since(before));
        let of = |h: &Histogram| match h.is_empty() {
            true => ["-"; 4].map(str::to_owned),
            false => [h.p50(), h.p99(), h.p999(), h.max()].map(time),
        };
        let text = row([of(&second), of(run)]);
        lines.push(Line::from(vec![label(name, manner), text.into()]));
    }
    if !lines.is_empty() {
        let of = |when: &str| [&format!("{when} p50"), "p99", "p99.9", "max"].map(str::to_owned);
        let head = format!("{:LABEL$}{}", "", row([of("now"), of("run")]));
        lines.insert(0, Line::styled(head, manner.label()));
    }
    lines
}

/// From nothing to a whole cell, in eighths.
fn bars(unicode: bool) -> [char; 9] {
    const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    const ASCII: [char; 9] = [' ', '.', ':', '-', '=', '+', '*', '#', '@'];
    if unicode { BLOCKS } else { ASCII }
}

/// A bar of each value; nothing at all is blank, and the least that is more than nothing is seen.
pub fn sparkline(values: impl Iterator<Item = f64>, most: f64, unicode: bool) -> String {
    let bars = bars(unicode);
    let bar = |value: f64| {
        let parts =
            if most > 0.0 && value > 0.0 { (value / most * 8.0).round().clamp(1.0, 8.0) } else { 0.0 };
        bars[parts as usize]
    };
    values.map(bar).collect()
}

fn history(view: &View, now: &Snapshot, manner: Manner, width: usize) -> Vec<Line<'static>> {
    if view.history.len() < 2 {
        return Vec::new();
    }
    let columns = width.saturating_sub(LABEL + 14).max(1);
    let shown = || view.history.iter().skip(view.history.len().saturating_sub(columns));
    let row = |name: &str, bars: String, colour: Color, most: String| {
        Line::from(vec![
            label(name, manner),
            Span::styled(format!("{bars:<columns$}"), manner.style(colour)),
            Span::styled(format!(" {:>12}", format!("<{most}")), manner.label()),
        ])
    };
    if let Some(e) = now.endpoint {
        // A server's bytes come when a test is over: they are no rate.
        let is_test = e.clients.is_none();
        let each = |most: f64| format!("{}/s", count(most.round() as u64));
        let rows = [
            ("sent", is_test && e.sent_bytes > 0, Color::Blue),
            ("received", is_test && e.received_bytes > 0, Color::Green),
            ("answered", e.transactions.is_some(), Color::Green),
            ("again", e.retransmits.is_some_and(|n| n > 0), Color::Red),
        ];
        let there = rows.into_iter().enumerate().filter(|(_, (_, there, _))| *there);
        return there
            .map(|(n, (name, _, colour))| {
                let most = shown().map(|c| c.endpoint[n]).fold(0.0, f64::max);
                let bars = sparkline(shown().map(|c| c.endpoint[n]), most, manner.unicode);
                row(name, bars, colour, if n < 2 { bit_rate(most) } else { each(most) })
            })
            .collect();
    }
    type Of = fn(&Column) -> f64;
    let rows: [(&str, bool, Of, Color); 3] = [
        ("sent", now.tx.is_some(), |c| c.sent, Color::Blue),
        ("received", now.rx.is_some(), |c| c.received, Color::Green),
        ("lost", now.lost.is_some(), |c| c.lost, Color::Red),
    ];
    // What was sent and what arrived are told apart only by the same measure.
    let most = shown().map(|c| c.sent.max(c.received)).fold(0.0, f64::max);
    let lost = shown().map(|c| c.lost).fold(0.0, f64::max);
    let mut lines = Vec::new();
    for (name, there, of, colour) in rows {
        if !there {
            continue;
        }
        let most = if name == "lost" { lost } else { most };
        let bars = sparkline(shown().map(of), most, manner.unicode);
        lines.push(row(name, bars, colour, frame_rate(most)));
    }
    lines
}

/// A stream's name as a table has room for it: of a capture the file's own name.
fn name_of(stream: &snapshot::Stream, room: usize) -> String {
    let mut name = stream.number.to_string();
    if let Some(own) = &stream.name {
        let is_path = ["/", "./", "../"].iter().any(|begin| own.starts_with(begin));
        let file = if is_path { own.rsplit('/').next().unwrap_or(own) } else { own };
        name += " ";
        name += &printable(file);
    }
    name.chars().take(room).collect()
}

fn streams(view: &View, now: &Snapshot, manner: Manner, width: usize, room: usize) -> Vec<Line<'static>> {
    // What a terminal is wider than the least is for names.
    let name_room = 16 + width.saturating_sub(80).min(44);
    let all = view.streams();
    let mut rows = room - 1;
    // Where not all have room, a line says which these are.
    let told = all.len() > rows && rows > 1;
    rows -= usize::from(told);
    let first = view.scroll.min(all.len().saturating_sub(rows.max(1)));
    let beyond = now.streams_beyond;
    let row = |name: &str, [received, now, lost, share, mean, max]: [String; 6]| {
        let all = [(13, received), (10, now), (11, lost), (8, share), (8, mean), (8, max)];
        format!("{name:<name_room$} {}", cells(name_room + 1, all, width))
    };
    // Streams are looked at more seldom than the totals above, and the more there are, the more seldom.
    let head = match now.at_ns.saturating_sub(now.streams_at_ns) {
        age @ 150_000_000.. => format!("stream {:.1}s ago", age as f64 / 1e9),
        _ => "stream".to_owned(),
    };
    // Of a capture's frames, and of others' at a meter, some have no room for a signature or no signature: they are of no stream, and
    // the totals above have them.
    let received =
        if matches!(now.title.command.as_str(), "replay" | "measure") { "signed" } else { "received" };
    let head = row(&head, [received, "now", "lost", "lost", "mean", "max"].map(str::to_owned));
    let mut lines = vec![Line::styled(head, manner.label())];
    for (stream, rate) in all.iter().skip(first).take(rows) {
        let name = name_of(stream, name_room);
        let sent = stream.received.frames - stream.duplicated.min(stream.received.frames) + stream.lost;
        let ratio = if sent == 0 { 0.0 } else { stream.lost as f64 / sent as f64 };
        let nanoseconds = |ns: Option<u64>| ns.map_or(String::from("-"), time);
        let values = [
            count(stream.received.frames),
            frame_rate(*rate),
            count(stream.lost),
            percent(ratio),
            nanoseconds(stream.mean_latency_ns.map(|ns| ns as u64)),
            nanoseconds(stream.max_latency_ns),
        ];
        let text = row(&name, values);
        lines.push(Line::styled(text, if stream.lost > 0 { manner.alarm() } else { Style::new() }));
    }
    if told {
        let last = (first + rows).min(all.len());
        let more = if beyond > 0 { format!(" (and {} not looked at)", count(beyond)) } else { String::new() };
        let text =
            format!("  {}-{last} of {} by {}{more}", first + 1, count(all.len() as u64), view.order.name());
        lines.push(Line::styled(text, manner.label()));
    }
    lines
}

/// Lines that a warning, or an answer to a key, has at most.
const MOST_OF_A_TEXT: usize = 4;

fn warnings(now: &Snapshot, manner: Manner, width: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for warning in now.warnings.iter().take(2) {
        let text = format!("{:<LABEL$}{}", "warning", printable(warning));
        for (n, line) in folded(&text, LABEL, width, MOST_OF_A_TEXT, manner).into_iter().enumerate() {
            lines.push(match line.strip_prefix("warning  ").filter(|_| n == 0) {
                Some(rest) => Line::from(vec![
                    Span::styled(format!("{:<LABEL$}", "warning"), manner.alarm()),
                    rest.to_owned().into(),
                ]),
                None => Line::from(line),
            });
        }
    }
    if now.warnings.len() > 2 {
        let more = format!("{:LABEL$}and {} more; all are in the result", "", now.warnings.len() - 2);
        lines.push(Line::from(more));
    }
    lines
}

/// The keys, or an answer to the last one.
fn footer(view: &View, now: &Snapshot, manner: Manner, width: usize) -> Vec<Line<'static>> {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    if view.quitting {
        return vec![Line::styled(" ending: waiting for what is on its way", bold)];
    }
    if let Some(note) = &view.note {
        let style = manner.style(Color::Yellow).add_modifier(Modifier::BOLD);
        let lines = folded(&format!(" {}", printable(note)), 1, width, MOST_OF_A_TEXT, manner);
        return lines.into_iter().map(|line| Line::styled(line, style)).collect();
    }
    let mut keys = vec!["q quit".to_owned()];
    if now.title.manual.no_pause.is_none() {
        keys.push(if now.phase == Phase::Paused { "space go on" } else { "space pause" }.to_owned());
    }
    if now.title.manual.no_rate.is_none() {
        keys.push("+ - rate".to_owned());
    }
    if !now.streams.is_empty() {
        keys.extend(["up/down streams".to_owned(), format!("s by {}", view.order.name())]);
    }
    keys.push("? help".to_owned());
    let mut lines = vec![String::new()];
    for key in keys {
        let Some(line) = lines.last_mut() else { break };
        let apart = if line.is_empty() { " " } else { "   " };
        if !line.is_empty() && line.chars().count() + apart.len() + key.chars().count() > width {
            lines.push(format!(" {key}"));
        } else {
            *line += &format!("{apart}{key}");
        }
    }
    lines.into_iter().map(|line| Line::styled(line, bold)).collect()
}

/// What stands before a key's meaning.
const KEY: usize = 12;

/// The help, from its `scroll`-th line on where not all has room.
fn help(now: &Snapshot, scroll: usize, manner: Manner, width: usize, height: usize) -> Vec<Line<'static>> {
    let mut text: Vec<String> = [
        "",
        " q, Ctrl-C  end the run, and print its result; Ctrl-C again ends at once",
        " space      pause, and go on: the schedule stands still, as does the duration",
        " + -        a tenth of the rate asked for more or less;  0  as asked for",
        " up down    move in the table of streams; also k j, PgUp PgDn, Home",
        " s          sort streams by loss, by rate, by number;  Ctrl-Z  stop, as any job",
        " ?          this help, and back",
        "",
        " now        the last second; the bars are half a second each",
        " layer 2    without FCS; layer 1: with FCS, preamble and gap",
        " lost       sent a moment ago, and not here yet; stragglers lower it",
        " latency    from the stamp in a signed frame to its arrival",
        " lateness   how long after its time a frame was handed to the interface",
        " irq        the part of a core's load in interrupts, where frames arrive",
        "",
        " What is changed by hand stands in the result.",
    ]
    .map(str::to_owned)
    .into();
    for (what, why) in [("pause", &now.title.manual.no_pause), ("+ and -", &now.title.manual.no_rate)] {
        text.extend(why.iter().map(|why| format!(" {what:<11}not here: {}", printable(why))));
    }
    let mut lines: Vec<String> =
        text.iter().flat_map(|line| folded(line, KEY.min(width / 4), width, usize::MAX, manner)).collect();
    let room = height.saturating_sub(1);
    if lines.len() > room {
        // Lines that only part others are the first to go.
        lines.retain(|line| !line.is_empty());
    }
    let mut drawn = vec![title(now, manner, width)];
    if lines.len() > room && room > 1 {
        let rows = room - 1;
        let first = scroll.min(lines.len() - rows);
        drawn.extend(lines.iter().skip(first).take(rows).map(|line| Line::from(line.clone())));
        let told =
            format!(" {} to {} of {} lines; up down: the others", first + 1, first + rows, lines.len());
        drawn.push(within(Line::styled(told, manner.label()), manner, width));
    } else {
        drawn.extend(lines.into_iter().map(Line::from));
    }
    drawn.truncate(height);
    drawn
}

#[cfg(test)]
mod tests;
