//! Every figure of the report as tables: totals, percentiles, streams, interfaces, cores, what was asked, where
//! it ran, intervals.

use super::escape::Esc;
use crate::distribution::Distribution;
use crate::model::{Report, Source, Totals};
use crate::units;

/// Rows of intervals on the page at most; all of them are in intervals.csv and in the page's data.
const MOST_INTERVALS: usize = 1000;
/// Rows of streams at most, for the same reason.
const MOST_STREAMS: usize = 256;

pub(super) fn figures(report: &Report) -> String {
    let result = &report.result;
    let mut out = String::new();
    let mut totals = Grid::new(["", "frames", "bytes", "time", "frames/s", "layer 2, no FCS", "layer 1"]);
    let row = |t: &Totals| {
        [
            units::count(t.frames),
            units::count(t.bytes),
            units::time(t.duration_ns),
            units::frame_rate(t.frames_per_second),
            units::bit_rate(t.bits_per_second),
            units::bit_rate(t.bits_per_second_l1),
        ]
    };
    if let Some(tx) = &result.tx {
        if let Some(offered) = tx.offered_frames {
            let rate = tx.offered_frames_per_second.map_or(DASH.into(), units::frame_rate);
            totals.row(
                "offered",
                [units::count(offered), DASH.into(), DASH.into(), rate, DASH.into(), DASH.into()],
            );
        }
        let sent = match (&result.reflection, result.passages.is_empty()) {
            (Some(_), _) => "sent back",
            (None, false) => "forwarded",
            (None, true) => "sent",
        };
        totals.row(sent, row(&tx.totals));
    }
    if let Some(rx) = &result.rx {
        totals.row(if result.round_trip { "came back" } else { "received" }, row(&rx.totals));
    }
    if let Some(loss) = result.loss {
        let mut cells = [(); 6].map(|()| String::new());
        let [frames, share, how, ..] = &mut cells;
        (*frames, *share) = (units::count(loss.frames), units::percent(loss.ratio));
        if loss.by_count_only {
            crate::conclusion::by_count(report).trim_start_matches(", ").clone_into(how);
        }
        totals.row("lost", cells);
    }
    out += &totals.card("Traffic", false);
    out += &percentiles(report);
    out += &counters(report);
    out += &interfaces(report);
    out += &interface_counters(report);
    out += &cores(report);
    out += &streams(report);
    out += &risen(report);
    if out.is_empty() { out } else { format!("<h2>Figures</h2>\n{out}") }
}

fn percentiles(report: &Report) -> String {
    let pacing = report.result.pacing.as_ref();
    let variation = report.result.delay_variation.as_ref();
    let rows: [(&str, Option<&Distribution>); 5] = [
        (if report.result.round_trip { "round trip" } else { "latency" }, report.result.latency_ns.as_ref()),
        ("from frame to frame (IPDV)", variation.and_then(|v| v.ipdv_ns.as_ref())),
        ("between arrivals", report.result.arrival_gap_ns.as_ref()),
        ("gap error", pacing.and_then(|p| p.gap_error_ns.as_ref())),
        ("lateness", pacing.and_then(|p| p.lateness_ns.as_ref())),
    ];
    let mut grid =
        Grid::new(["", "values", "min", "mean", "p50", "p90", "p99", "p99.9", "p99.99", "p99.999", "max"]);
    for (name, d) in rows.into_iter().filter_map(|(name, d)| Some((name, d?))) {
        let time = units::time;
        // Of few values these are but the greatest again.
        let far = |value, least| if d.count >= least { time(value) } else { DASH.into() };
        let mean = time(d.mean.round() as u64);
        grid.row(
            name,
            [
                units::count(d.count),
                time(d.min),
                mean,
                time(d.p50),
                time(d.p90),
                time(d.p99),
                time(d.p999),
                far(d.p9999, 100_000),
                far(d.p99999, 1_000_000),
                time(d.max),
            ],
        );
    }
    grid.card("Times", false)
}

/// The single figures, one a line.
fn counters(report: &Report) -> String {
    let result = &report.result;
    let mut facts = Facts::default();
    if let Some(tx) = &result.tx {
        facts.add("engine", &tx.engine);
        facts.maybe("rate", crate::conclusion::rate_error(report));
        facts.count("frames due and not sent", tx.due_not_sent_frames);
        facts.add("frames failed", &units::count(tx.failed));
        facts.add("frames truncated", &units::count(tx.truncated));
        facts.add("retries (ENOBUFS)", &units::count(tx.retried_enobufs));
        facts.add("retries (EAGAIN)", &units::count(tx.retried_eagain));
    }
    if let Some(rx) = &result.rx {
        facts.count("frames duplicated", rx.duplicated_frames);
        facts.count("frames reordered", rx.reordered_frames);
        facts.count("frames corrupted", rx.corrupted_frames);
        facts.count("frames received, not ours", rx.foreign_frames);
        facts.count("dropped by the receiver", rx.dropped_frames);
    }
    for (what, count) in result.reflection.iter().flat_map(crate::conclusion::reflection) {
        facts.add(&format!("frames {what}"), &units::count(count));
    }
    for p in &result.passages {
        let way = format!("{} to {}", p.from, p.to);
        facts.add(&format!("{way}, frames received"), &units::count(p.received.frames));
        facts.add(&format!("{way}, frames forwarded"), &units::count(p.forwarded.frames));
        for (what, count) in crate::conclusion::passage(p) {
            facts.add(&format!("{way}, {what}"), &units::count(count));
        }
        if let Some(late) = p.impaired.as_ref().and_then(|impaired| impaired.lateness_ns.as_ref()) {
            let [half, most] = [late.p50, late.p99].map(units::time);
            facts.add(&format!("{way}, after their time"), &format!("p50 {half}, p99 {most}"));
        }
    }
    if let Some(f) = &result.flows {
        facts.add("flows", &format!("{} ({})", units::count(f.flows), units::flow_rate(f.flows_per_second)));
        facts.add("frames in flows", &units::count(f.flow_frames));
        facts.add("frames outside flows", &units::count(f.non_flow_frames));
    }
    if let Some(p) = &result.pacing {
        facts.maybe("last frame late by", p.last_frame_late_ns.map(units::signed_time));
        let than =
            p.late_threshold_ns.map(|ns| format!(" by more than {}", units::time(ns))).unwrap_or_default();
        facts.maybe("frames late", p.late_frames.map(|n| format!("{}{than}", units::count(n))));
        facts.maybe("frames back to back", p.back_to_back_ratio.map(units::percent));
        if let Some(c) = p.catch_up {
            facts.add(
                "stalls",
                &format!("{}, the longest {}", units::count(c.stalls), units::time(c.longest_stall_ns)),
            );
            let bound = format!(
                "{}, at no more than {:.1} times the rate",
                units::counted(c.frames, "frame"),
                c.rate_limit_ratio
            );
            facts.add("caught up", &bound);
            facts.add("schedule given up", &units::time(c.abandoned_ns));
        }
    }
    facts.card("Counters")
}

/// What left by each of two interfaces, and what arrived of it.
fn interfaces(report: &Report) -> String {
    let mut grid = Grid::new(["interface", "sent", "bytes", "failed", "arrived at", "frames", "bytes"]);
    let rx = report.result.rx.as_ref().map_or(&[][..], |rx| &rx.interfaces);
    for (i, side) in report.result.tx.iter().flat_map(|tx| tx.interfaces.iter().enumerate()) {
        let [sent, bytes, failed] = [side.frames, side.bytes, side.failed].map(units::count);
        let far = rx.get(i);
        let counted = |n: Option<u64>| n.map_or(DASH.into(), units::count);
        let place = far.map_or(DASH.into(), |far| far.interface.clone());
        let (came, came_bytes) = (counted(far.map(|far| far.frames)), counted(far.map(|far| far.bytes)));
        grid.row(&side.interface, [sent, bytes, failed, place, came, came_bytes]);
    }
    grid.card("Both interfaces", false)
}

fn interface_counters(report: &Report) -> String {
    let mut grid = Grid::new([
        "interface",
        "sent by us",
        "interface counted",
        "not ours",
        "missing",
        "errors",
        "dropped",
    ]);
    for c in report.result.tx.iter().flat_map(|tx| &tx.interface_counters) {
        let maybe = |n: Option<u64>| n.map_or(DASH.into(), units::count);
        let [sent, counted, foreign, missing] =
            [c.sent_frames, c.tx_packets, c.foreign_frames, c.missing_frames].map(units::count);
        grid.row(&c.interface, [sent, counted, foreign, missing, maybe(c.tx_errors), maybe(c.tx_dropped)]);
    }
    grid.card("The interfaces' own counters", false)
}

/// Counters of hosts and interfaces, those that tell where frames went first.
fn risen(report: &Report) -> String {
    let mut grid = Grid::new(["where", "counter", "counted by", "rose by", ""]);
    let (telling, others): (Vec<_>, Vec<_>) =
        report.result.counters.iter().partition(|counter| counter.explains.is_some());
    for c in telling.into_iter().chain(others) {
        let why = c.explains.clone().unwrap_or_default();
        grid.row(&c.place, [c.name.clone(), c.source.clone(), units::count(c.rise), why]);
    }
    grid.card("What the hosts counted meanwhile", true)
}

fn cores(report: &Report) -> String {
    let mut grid = Grid::new(["core", "frames", "bytes", "frames/s", "CPU time"]);
    let Some(tx) = &report.result.tx else { return String::new() };
    for c in &tx.cores {
        let share = Totals::over(c.frames, c.bytes, tx.totals.duration_ns);
        let rate = units::frame_rate(share.frames_per_second);
        let cpu = c.cpu_ratio.map_or(DASH.into(), units::percent);
        grid.row(&c.core.to_string(), [units::count(c.frames), units::count(c.bytes), rate, cpu]);
    }
    grid.card("Sending cores", false)
}

fn streams(report: &Report) -> String {
    let mut grid = Grid::new([
        "stream",
        "sent",
        "received",
        "bytes",
        "lost",
        "duplicated",
        "reordered",
        "p50",
        "p99",
        "max",
    ]);
    for s in report.streams.iter().take(MOST_STREAMS) {
        let label = s.name.as_ref().map_or(s.stream.to_string(), |name| format!("{} {name}", s.stream));
        let latency = |get: fn(&Distribution) -> u64| {
            s.latency_ns.as_ref().map_or(DASH.into(), |d| units::time(get(d)))
        };
        let sent = s.tx_frames.map_or(DASH.into(), units::count);
        let counts = [s.rx_frames, s.rx_bytes, s.lost_frames, s.duplicated_frames, s.reordered_frames];
        let [received, bytes, lost, duplicated, reordered] = counts.map(units::count);
        let [p50, p99, max] = [latency(|d| d.p50), latency(|d| d.p99), latency(|d| d.max)];
        grid.row(&label, [sent, received, bytes, lost, duplicated, reordered, p50, p99, max]);
    }
    grid.card(&first_of("Streams", MOST_STREAMS, report.streams.len()), true)
}

pub(super) fn requested(report: &Report) -> String {
    let r = &report.requested;
    let mut facts = Facts::default();
    match &r.source {
        Some(Source::Expression { expression }) => facts.add("expression", expression),
        Some(Source::Scenario { file, name }) => {
            facts.add("scenario", name);
            facts.add("file", file);
        }
        Some(Source::Files { files }) => files.iter().for_each(|file| facts.add("file", file)),
        Some(Source::Synthetic { description }) => facts.add("synthesised", description),
        None => {}
    }
    if let Some(rate) = &r.rate {
        let numbers = [
            rate.frames_per_second.map(units::frame_rate),
            rate.bits_per_second.map(|b| format!("{} on layer 2", units::bit_rate(b))),
            rate.bits_per_second_l1.map(|b| format!("{} on layer 1", units::bit_rate(b))),
            rate.flows_per_second.map(units::flow_rate),
        ];
        let numbers: Vec<_> = numbers.into_iter().flatten().collect();
        let all = if numbers.is_empty() {
            rate.text.clone()
        } else {
            format!("{} ({})", rate.text, numbers.join(", "))
        };
        facts.add("rate", &all);
    }
    facts.maybe("engine", r.engine.clone());
    facts.count("loops", r.loops);
    facts.count("frames at most", r.count);
    facts.maybe("duration", r.duration_ns.map(units::time));
    facts.maybe(
        "unique addresses each loop",
        r.unique_ip.map(|yes| if yes { "yes" } else { "no" }.to_owned()),
    );
    facts.maybe("seed", r.seed.map(|seed| seed.to_string()));
    facts.maybe("interfaces", (!r.interfaces.is_empty()).then(|| r.interfaces.join(", ")));
    let command = match r.command_line.as_slice() {
        [] => String::new(),
        words => {
            let quoted: Vec<_> = words.iter().map(|w| shell_word(w)).collect();
            format!("<div class=\"card\"><pre>{}</pre></div>\n", Esc(&quoted.join(" ")))
        }
    };
    match (command, facts.card("")) {
        (command, facts) if command.is_empty() && facts.is_empty() => String::new(),
        (command, facts) => format!("<h2>What was asked</h2>\n{command}{facts}"),
    }
}

pub(super) fn environment(report: &Report) -> String {
    let e = &report.environment;
    let mut facts = Facts::default();
    let commit = e.netdyno_commit.as_ref().map(|c| format!(" ({c})")).unwrap_or_default();
    facts.maybe("netdyno", (!e.netdyno_version.is_empty()).then(|| format!("{}{commit}", e.netdyno_version)));
    facts.maybe("started", e.started.clone());
    facts.maybe("host", e.hostname.clone());
    facts.maybe("kernel", e.kernel.clone());
    facts.maybe("CPU", e.cpu_model.clone());
    facts.maybe("CPUs", e.cpus.map(|n| n.to_string()));
    facts.maybe("frequency governor", e.governor.clone());
    facts.maybe("clock source", e.clocksource.clone());
    let choice = |c: &crate::model::Choice| format!("{}: {}", c.name, c.reason);
    facts.maybe("engine", e.engine.as_ref().map(choice));
    for other in e.engine.iter().flat_map(|engine| &engine.not_taken) {
        facts.add(&format!("not {}", other.name), &other.reason);
    }
    facts.maybe("meter", e.meter.as_ref().map(choice));
    let mut grid = Grid::new(["interface", "role", "driver", "MTU", "speed", "queues tx/rx", "offloads on"]);
    for i in &e.interfaces {
        let text = |t: &Option<String>| t.clone().unwrap_or(DASH.into());
        let queues = |q: Option<u32>| q.map_or(DASH.into(), |q| q.to_string());
        let speed = i.speed_bits_per_second.map_or(DASH.into(), |s| units::bit_rate(s as f64));
        let mtu = i.mtu.map_or(DASH.into(), |m| m.to_string());
        let both = format!("{}/{}", queues(i.tx_queues), queues(i.rx_queues));
        let offloads = if i.offloads.is_empty() { DASH.into() } else { i.offloads.join(" ") };
        grid.row(&i.name, [text(&i.role), text(&i.driver), mtu, speed, both, offloads]);
    }
    match facts.card("") + &grid.card("", false) {
        cards if cards.is_empty() => cards,
        cards => format!("<h2>Where it ran</h2>\n{cards}"),
    }
}

pub(super) fn intervals(report: &Report) -> String {
    let mut grid = Grid::new(["from", "to", "offered", "sent", "received", "lost", "late", "p50", "p99"]);
    for i in report.intervals.iter().take(MOST_INTERVALS) {
        let seconds = |ns: u64| format!("{:.3} s", ns as f64 / 1e9);
        let maybe = |n: Option<u64>| n.map_or(DASH.into(), units::count);
        let [offered, sent, received, lost, late] =
            [i.offered_frames, i.tx_frames, i.rx_frames, i.lost_frames, i.late_frames].map(maybe);
        let [p50, p99] = [i.latency_p50_ns, i.latency_p99_ns].map(|ns| ns.map_or(DASH.into(), units::time));
        grid.row(&seconds(i.start_ns), [seconds(i.end_ns), offered, sent, received, lost, late, p50, p99]);
    }
    let heading = first_of("Frames in each interval", MOST_INTERVALS, report.intervals.len());
    match grid.card("", true) {
        card if card.is_empty() => card,
        card => {
            format!("<h2>Intervals</h2>\n<details><summary>{}</summary>\n{card}</details>\n", Esc(&heading))
        }
    }
}

pub(super) fn first_of(what: &str, limit: usize, all: usize) -> String {
    if all > limit {
        format!("{what} (the first {limit} of {}; the rest is in the data)", units::count(all as u64))
    } else {
        what.to_owned()
    }
}

/// As one would type it: quoted where the shell would otherwise read it differently.
fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,%+@".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

pub(super) const DASH: &str = "-";

/// A table with a header; the first column is text.
pub(super) struct Grid<const N: usize> {
    header: [&'static str; N],
    body: String,
}

impl<const N: usize> Grid<N> {
    pub fn new(header: [&'static str; N]) -> Self {
        Self { header, body: String::new() }
    }

    pub fn row<const M: usize>(&mut self, label: &str, cells: [String; M]) {
        self.marked_row("", label, cells);
    }

    /// A row that the style sheet shows by its class; empty for one like the others.
    pub fn marked_row<const M: usize>(&mut self, class: &str, label: &str, cells: [String; M]) {
        const { assert!(M + 1 == N, "a row has as many cells as the header") };
        let cells: String = cells.iter().map(|cell| format!("<td>{}</td>", Esc(cell))).collect();
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        self.body += &format!("<tr{class}><td>{}</td>{cells}</tr>\n", Esc(label));
    }

    /// Empty when no row was added. A long one may be cut when printed.
    pub fn card(self, heading: &str, long: bool) -> String {
        if self.body.is_empty() {
            return String::new();
        }
        let header: String =
            self.header.iter().map(|h| format!("<th scope=\"col\">{}</th>", Esc(h))).collect();
        let table = format!("<table><thead><tr>{header}</tr></thead><tbody>\n{}</tbody></table>", self.body);
        card(heading, &table, if long { " long" } else { "" })
    }
}

/// Names and values, one a line.
#[derive(Default)]
pub(super) struct Facts(String);

impl Facts {
    pub fn add(&mut self, name: &str, value: &str) {
        self.0 += &format!("<tr><td>{}</td><td>{}</td></tr>\n", Esc(name), Esc(value));
    }

    pub fn maybe(&mut self, name: &str, value: Option<String>) {
        if let Some(value) = value {
            self.add(name, &value);
        }
    }

    fn count(&mut self, name: &str, value: Option<u64>) {
        self.maybe(name, value.map(units::count));
    }

    pub fn card(self, heading: &str) -> String {
        if self.0.is_empty() {
            self.0
        } else {
            card(heading, &format!("<table class=\"facts\"><tbody>\n{}</tbody></table>", self.0), "")
        }
    }
}

fn card(heading: &str, table: &str, class: &str) -> String {
    let heading = if heading.is_empty() { String::new() } else { format!("<h3>{}</h3>", Esc(heading)) };
    format!("<div class=\"card{class}\">{heading}{table}</div>\n")
}
