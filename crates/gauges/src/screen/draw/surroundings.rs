//! What stands around the frames: sending threads, cores, queues, and counters that tell where frames went.

use super::{LABEL, Manner, View, label, room};
use ratatui::text::{Line, Span};
use report::units::{count, counted, frame_rate, percent, printable};
use snapshot::{Core, Queue, Snapshot};

/// Cells side by side, in at most so many lines; where not all have room, the last one says how many have not.
fn cells(name: &str, manner: Manner, cells: &[String], width: usize, lines: usize) -> Vec<Line<'static>> {
    const BETWEEN: usize = 2;
    let cell = cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0);
    let each = (width.saturating_sub(LABEL) + BETWEEN) / (cell + BETWEEN).max(1);
    let each = each.max(1);
    let all = each.saturating_mul(lines.max(1));
    let more = cells.len().saturating_sub(all);
    let mut told: Vec<String> = cells.iter().take(all).cloned().collect();
    if more > 0
        && let Some(last) = told.last_mut()
    {
        *last = format!("and {} more", more + 1);
    }
    let line = |(n, part): (usize, &[String])| {
        let text: Vec<String> = part.iter().map(|text| format!("{text:<cell$}")).collect();
        Line::from(vec![label(if n == 0 { name } else { "" }, manner), text.join("  ").into()])
    };
    told.chunks(each).enumerate().map(line).collect()
}

/// Lines that such a list may take on a terminal of this height.
fn lines(height: usize) -> usize {
    match height {
        0..30 => 1,
        30..45 => 2,
        _ => 4,
    }
}

pub fn load(view: &View, now: &Snapshot, manner: Manner, width: usize, height: usize) -> Vec<Line<'static>> {
    let Some(before) = view.before() else { return Vec::new() };
    let span = now.at_ns - before.at_ns;
    let worker = |(n, worker): (usize, &snapshot::Worker)| {
        // The next trial's begins at zero again.
        let same =
            |then: &&snapshot::Worker| then.sent.frames <= worker.sent.frames && then.cpu_ns <= worker.cpu_ns;
        let then = before.workers.get(n).filter(same).copied();
        let then = then
            .unwrap_or(snapshot::Worker { cpu_ns: worker.cpu_ns.map(|_| 0), ..snapshot::Worker::default() });
        let frames = worker.sent.frames.saturating_sub(then.sent.frames) as f64 * 1e9 / span as f64;
        let place = worker.cpu.map_or_else(|| format!("{n}"), |cpu| format!("cpu{cpu}"));
        let load = match (worker.cpu_ns, then.cpu_ns) {
            (Some(now), Some(then)) => {
                format!(" {:.0} %", (now.saturating_sub(then) as f64 / span as f64 * 100.0).min(100.0))
            }
            _ => String::new(),
        };
        format!("{place} {}{load}", frame_rate(frames))
    };
    let workers: Vec<String> = now.workers.iter().enumerate().map(worker).collect();
    let mut drawn = cells("workers", manner, &workers, width, lines(height));
    let mut cores = loads(view, now);
    if height >= room::FROM {
        // The workers' lines stand above.
        let each = room::cores(&cores, manner, width, (height - room::FROM) / 2);
        if !each.is_empty() {
            drawn.extend(each);
            return drawn;
        }
    }
    let texts = |cores: &[Load]| cores.iter().map(Load::text).collect::<Vec<_>>();
    // In order where there is room for all; else the busiest first.
    let in_order = cells("cores", manner, &texts(&cores), width, usize::MAX);
    if in_order.len() <= lines(height) {
        drawn.extend(in_order);
    } else {
        cores.sort_by(|a, b| b.busy.total_cmp(&a.busy).then(a.number.cmp(&b.number)));
        drawn.extend(cells("cores", manner, &texts(&cores), width, lines(height)));
    }
    drawn
}

/// A core's load in percent.
pub struct Load {
    pub number: usize,
    pub busy: f64,
    pub interrupts: f64,
}

/// Of all cores, in order.
pub fn loads(view: &View, now: &Snapshot) -> Vec<Load> {
    let Some(before) = view.before() else { return Vec::new() };
    let of = |core| Some(Load::of(core, before.cores.iter().find(|then| then.number == core.number)?));
    now.cores.iter().filter_map(of).collect()
}

impl Load {
    fn of(now: &Core, then: &Core) -> Load {
        let total = now.total_ticks.saturating_sub(then.total_ticks).max(1) as f64;
        // Idle ticks may go back a little (proc(5)).
        let part = |now: u64, then: u64| (now.saturating_sub(then) as f64 / total * 100.0).clamp(0.0, 100.0);
        Load {
            number: now.number,
            busy: 100.0 - part(now.idle_ticks, then.idle_ticks),
            interrupts: part(now.interrupt_ticks, then.interrupt_ticks),
        }
    }

    fn text(&self) -> String {
        format!("cpu{} {:.0} % irq {:.0} %", self.number, self.busy, self.interrupts)
    }
}

/// Packets a second of each queue that was used: a line for each interface and direction.
pub fn queues(
    view: &View,
    now: &Snapshot,
    manner: Manner,
    width: usize,
    height: usize,
) -> Vec<Line<'static>> {
    let mut drawn = Vec::new();
    let mut rest = &now.queues[..];
    while let Some(first) = rest.first() {
        let same = |queue: &&Queue| queue.interface == first.interface && queue.receives == first.receives;
        let group: Vec<&Queue> = rest.iter().take_while(same).collect();
        rest = &rest[group.len()..];
        if group.iter().all(|queue| queue.packets == 0) {
            continue;
        }
        let way = if first.receives { "rx" } else { "tx" };
        let place: String = printable(&first.interface).chars().take(16).collect();
        let mut texts = vec![format!("{place} {way}")];
        texts.extend(
            group.iter().map(|queue| format!("{}: {}", queue.number, frame_rate(view.queue_rate(queue)))),
        );
        let name = if drawn.is_empty() { "queues" } else { "" };
        drawn.extend(cells(name, manner, &texts, width, lines(height)));
    }
    drawn.truncate(2 * lines(height));
    drawn
}

pub fn counters(now: &Snapshot, manner: Manner) -> Vec<Line<'static>> {
    let mut rows: Vec<_> = now.counters.iter().collect();
    rows.sort_by_key(|counter| std::cmp::Reverse(counter.rise));
    let line = |c: &&snapshot::Counter| {
        let text = format!("{} {} +{}: {}", c.place, c.name, count(c.rise), c.explains);
        Line::from(vec![label("dropped", manner), Span::styled(printable(&text), manner.alarm())])
    };
    rows.iter().take(3).map(line).collect()
}

/// A bridge's directions, a line each; their columns are as wide as their figures are.
pub fn passages(view: &View, now: &Snapshot, manner: Manner) -> Vec<Line<'static>> {
    let passage = |(n, p): (usize, &snapshot::Passage)| {
        let rate = view.rate_of(|m| Some(m.passages.get(n)?.forwarded.frames)).unwrap_or(0.0);
        let kept = p.received.frames.saturating_sub(p.forwarded.frames);
        let way = printable(&format!("{} > {}", p.from, p.to)).chars().take(24).collect();
        [way, count(p.forwarded.frames), frame_rate(rate), count(kept)]
    };
    let rows: Vec<[String; 4]> = now.passages.iter().enumerate().map(passage).collect();
    let [way_width, forwarded_width, rate_width, kept_width] =
        [0, 1, 2, 3].map(|at| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0));
    let line = |[way, forwarded, rate, kept]: &[String; 4]| {
        let text = format!(
            "{way:<way_width$}  {forwarded:>forwarded_width$} forwarded  {rate:>rate_width$}  {kept:>kept_width$} not"
        );
        Line::from(vec![label("", manner), text.into()])
    };
    rows.iter().map(line).collect()
}

/// Records that were received.
pub fn collected(now: &Snapshot, manner: Manner) -> Vec<Line<'static>> {
    let Some(c) = now.collected else { return Vec::new() };
    let text = format!(
        "{} of {} in {}; {} and {} missing; {} lost here",
        count(c.records),
        counted(c.exporters, "exporter"),
        counted(c.messages, "message"),
        counted(c.missing_records, "record"),
        counted(c.missing_messages, "message"),
        counted(c.dropped_messages, "message")
    );
    vec![Line::from(vec![label("records", manner), text.into()])]
}

/// Sessions that are copied.
pub fn cloned(now: &Snapshot, manner: Manner) -> Vec<Line<'static>> {
    let Some(c) = now.cloned else { return Vec::new() };
    let sessions = format!(
        "{} seen, {} copied, {} open now, {} cut; {} frames dropped",
        count(c.sessions),
        count(c.copied_sessions),
        count(c.open_sessions),
        count(c.cut_sessions),
        count(c.dropped_frames)
    );
    let target = format!(
        "{} connections, {} failed; {} of {} bytes sent",
        count(c.connected),
        count(c.unconnected),
        count(c.sent_bytes),
        count(c.due_bytes)
    );
    let answers = format!("{} compared, {} differ or are missing", count(c.compared), count(c.different));
    let all = [("sessions", sessions), ("target", target), ("answers", answers)];
    all.into_iter().map(|(name, text)| Line::from(vec![label(name, manner), text.into()])).collect()
}

/// An endpoint test, or a server of such.
pub fn endpoint(view: &View, now: &Snapshot, manner: Manner) -> Vec<Line<'static>> {
    let Some(e) = now.endpoint else { return Vec::new() };
    let rate =
        |of: fn(&snapshot::Endpoint) -> u64| view.rate_of(|m| m.endpoint.as_ref().map(of)).unwrap_or(0.0);
    let mut facts = Vec::new();
    // A server counts the bytes of a test when it is over: they are no rate.
    let is_server = e.clients.is_some();
    if e.sent_bytes > 0 {
        facts.push(format!("sent {}", report::units::bit_rate(8.0 * rate(|e| e.sent_bytes))));
    }
    if e.received_bytes > 0 && !is_server {
        facts.push(format!("received {}", report::units::bit_rate(8.0 * rate(|e| e.received_bytes))));
    }
    if e.transactions.is_some() {
        let rate = rate(|e| e.transactions.unwrap_or(0));
        facts.push(format!("{} transactions a second", count(rate.round() as u64)));
    }
    let time = report::units::time;
    facts.extend(e.latency_p50_ns.map(|ns| format!("p50 {}", time(ns))));
    facts.extend(e.latency_p99_ns.map(|ns| format!("p99 {}", time(ns))));
    let mut tcp: Vec<String> = Vec::new();
    tcp.extend(e.rtt_ns.map(|ns| format!("rtt {}", time(ns))));
    tcp.extend(e.cwnd_bytes.map(|bytes| format!("cwnd {}", report::units::bytes(bytes))));
    tcp.extend(e.retransmits.map(|segments| format!("{} segments sent again", count(segments))));
    facts.extend(e.clients.map(|clients| format!("{} clients", count(clients))));
    facts.extend(e.tests.map(|tests| format!("{} tests over", count(tests))));
    if is_server {
        facts.push(format!("{} carried", report::units::bytes(e.received_bytes)));
    }
    // Two lines: 80 columns have no room for one.
    let lines = [("endpoint", facts), ("TCP", tcp)];
    let line =
        |(name, facts): &(&str, Vec<String>)| Line::from(vec![label(name, manner), facts.join(", ").into()]);
    lines.iter().filter(|(_, facts)| !facts.is_empty()).map(line).collect()
}

/// Flows that are metered.
pub fn flows(now: &Snapshot, manner: Manner) -> Vec<Line<'static>> {
    let Some(f) = now.flows else { return Vec::new() };
    let text = format!(
        "{} under way; {} records ended, {} sent, {} not sent; {} frames not metered",
        count(f.active),
        count(f.ended),
        count(f.sent),
        count(f.unsent),
        count(f.dropped)
    );
    vec![Line::from(vec![label("flows", manner), text.into()])]
}

/// Connections that are played.
pub fn connections(now: &Snapshot, manner: Manner) -> Vec<Line<'static>> {
    let Some(c) = now.connections else { return Vec::new() };
    let line = |name: &str, text: String| Line::from(vec![label(name, manner), text.into()]);
    let broken =
        if c.broken > 0 { format!(", {} of them broken off", count(c.broken)) } else { String::new() };
    let all = (c.waiting + c.open + c.over).max(1);
    // Where it is not known how many are to come, those that are over are no share of anything.
    let over = match c.waiting {
        0 => format!("{} over{broken}; {} open", counted(c.over, "connection"), count(c.open)),
        waiting => format!(
            "{} of {} connections ({}){broken}; {} open, {} to come",
            count(c.over),
            count(all),
            percent(c.over as f64 / all as f64),
            count(c.open),
            count(waiting)
        ),
    };
    // Connections that the kernel makes count what they hear alone.
    let said = if c.said == 0 { String::new() } else { format!("{} said, ", count(c.said)) };
    let bytes = format!("{said}{} heard; {} segments sent again", count(c.heard), count(c.retransmitted));
    vec![line("played", over), line("bytes", bytes)]
}
