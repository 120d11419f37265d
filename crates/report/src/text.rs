//! The summary a person reads on the terminal when a run has ended. Plain text without colour, so that it reads
//! the same in a log; nothing in it is meant for programs (that is [`crate::json`]).

use crate::conclusion;
use crate::distribution::Distribution;
use crate::model::{
    Adjustment, Change, Choice, Departures, InterfaceCounters, LatencyClock, Pacing, QueueCounters, Report,
    Totals, Witness,
};
use crate::search_text;
use crate::table::Table;
use crate::units::{self, printable};

/// How much to show, and where the page is.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Streams to list at most.
    pub streams: usize,
    /// The written report.html, named in the last line.
    pub page: Option<&'a str>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self { streams: 8, page: None }
    }
}

/// Columns that lines of facts are folded to; tables take what they need.
const WIDTH: usize = 100;

/// The whole summary, ending with the verdict and what to do next.
pub fn render(report: &Report, options: Options<'_>) -> String {
    let streams = streams(report, options.streams);
    let conversations = crate::conversations::text(&report.result.conversations);
    let searched = search_text::render(report);
    let parts = [
        totals(report),
        searched,
        lines(report),
        interfaces(report),
        cores(report),
        streams,
        conversations,
        warnings(report),
    ];
    let mut out = String::new();
    for part in parts.into_iter().filter(|part| !part.is_empty()) {
        out += &part;
        out.push('\n');
    }
    out + &ending(report, options)
}

fn totals(report: &Report) -> String {
    let result = &report.result;
    let mut table = Table::with_header(["", "frames", "bytes", "frames/s", "layer 2, no FCS", "layer 1"]);
    let rates = |t: &Totals| {
        let rate = |text: String| (t.duration_ns > 0).then_some(text);
        [
            Some(units::count(t.frames)),
            Some(units::count(t.bytes)),
            rate(units::frame_rate(t.frames_per_second)),
            rate(units::bit_rate(t.bits_per_second)),
            rate(units::bit_rate(t.bits_per_second_l1)),
        ]
    };
    if let Some(tx) = &result.tx {
        let asked = report.requested.rate.as_ref();
        if tx.offered_frames.is_some() || tx.offered_frames_per_second.is_some() {
            let pps = tx.offered_frames_per_second.map(units::frame_rate);
            let l2 = asked.and_then(|r| r.bits_per_second).map(units::bit_rate);
            let l1 = asked.and_then(|r| r.bits_per_second_l1).map(units::bit_rate);
            table.row("offered", [tx.offered_frames.map(units::count), None, pps, l2, l1]);
        }
        let sent = match (&result.reflection, result.passages.is_empty()) {
            (Some(_), _) => "sent back",
            (None, false) => "forwarded",
            (None, true) => "sent",
        };
        table.row(sent, rates(&tx.totals));
    }
    if let Some(rx) = &result.rx {
        table.row(if result.round_trip { "came back" } else { "received" }, rates(&rx.totals));
    }
    for p in &result.passages {
        let way = format!("{} > {}", printable(&p.from), printable(&p.to));
        table.row(&way, rates(&p.forwarded));
    }
    if let Some(loss) = result.loss {
        let share = Some(units::percent(loss.ratio));
        let how =
            loss.by_count_only.then(|| conclusion::by_count(report).trim_start_matches(", ").to_owned());
        table.row(
            "lost",
            [Some(units::count(loss.frames)), share, how, None, None].map(|c| c.or(Some(String::new()))),
        );
    }
    if result.tx.is_none() && result.rx.is_none() { String::new() } else { table.to_string() }
}

/// One line a topic, each with its label in front.
fn lines(report: &Report) -> String {
    let result = &report.result;
    let mut out = String::new();
    let mut line = |label: &str, facts: Vec<String>| out += &wrapped(label, &facts);
    if let Some(tx) = &result.tx {
        let mut facts =
            vec![format!("{} engine, {}", printable(&tx.engine), units::time(tx.totals.duration_ns))];
        facts.extend(conclusion::rate_error(report));
        for (count, what) in [
            (tx.failed, "failed"),
            (tx.due_not_sent_frames.unwrap_or(0), "due and not sent"),
            (tx.truncated, "truncated"),
            (tx.retried_enobufs, "retried (ENOBUFS)"),
            (tx.retried_eagain, "retried (EAGAIN)"),
        ] {
            if count > 0 {
                facts.push(format!("{} {what}", units::count(count)));
            }
        }
        line("sender", facts);
    }
    if let Some(choice) = &report.environment.engine {
        out += &engine(choice);
    }
    let mut line = |label: &str, facts: Vec<String>| out += &wrapped(label, &facts);
    if let Some(rx) = &result.rx {
        let counts = [
            (rx.duplicated_frames, "duplicated"),
            (rx.reordered_frames, "reordered"),
            (rx.corrupted_frames, "corrupted"),
            (rx.trailed_frames, "with bytes behind the signature"),
            (rx.foreign_frames, "not ours"),
            (rx.dropped_frames, "dropped by the receiver"),
        ];
        let known = |(count, what): (Option<u64>, &str)| Some(format!("{} {what}", units::count(count?)));
        line("receiver", counts.into_iter().filter_map(known).collect());
    }
    if let Some(d) = &result.latency_ns {
        let mut facts =
            vec![format!("min {}", units::time(d.min)), format!("mean {}", units::time(d.mean as u64))];
        facts.extend(d.far_percentiles().map(|(name, value)| format!("{name} {}", units::time(value))));
        line(if result.round_trip { "round trip" } else { "latency" }, facts);
        if let Some(clock) = &result.latency_clock {
            line("clock", latency_clock(clock));
        }
    }
    if let Some(v) = &result.delay_variation {
        let mut facts = vec![format!("PDV {}", units::time(v.pdv_ns))];
        facts.extend(v.jitter_ns.map(|ns| format!("jitter {}", units::time(ns as u64))));
        if let Some(d) = &v.ipdv_ns {
            facts.push(format!("from frame to frame mean {}", units::time(d.mean as u64)));
            facts.extend(percentiles(d));
        }
        line("variation", facts);
    }
    if let Some(d) = &result.arrival_gap_ns {
        let mut facts = vec![format!("between arrivals mean {}", units::time(d.mean as u64))];
        facts.extend(percentiles(d));
        line("gaps", facts);
    }
    if let Some(r) = &result.reflection {
        let facts = crate::conclusion::reflection(r).into_iter();
        line("reflector", facts.map(|(what, count)| format!("{} {what}", units::count(count))).collect());
    }
    for p in &result.passages {
        let label = if p.impaired.is_some() { "device" } else { "bridge" };
        line(label, crate::conclusion::passage_facts(p));
    }
    if let Some(f) = &result.flows {
        let (flows, rate) = (units::counted(f.flows, "flow"), units::flow_rate(f.flows_per_second));
        line(
            "flows",
            vec![flows, rate, format!("{} outside any flow", units::counted(f.non_flow_frames, "frame"))],
        );
    }
    if let Some(p) = &result.pacing {
        line("pacing", pacing(p));
    }
    if let Some(d) = result.tx.as_ref().and_then(|tx| tx.departures.as_ref()) {
        line("departed", departures(d));
    }
    line("by hand", result.adjustments.iter().map(adjustment).collect());
    for c in result.tx.iter().flat_map(|tx| &tx.interface_counters) {
        let mut facts =
            vec![format!("{} counted {}", printable(&c.interface), units::counted(c.tx_packets, "frame"))];
        match (c.missing_frames, c.foreign_frames) {
            _ if c.confirmed_by.is_some_and(|witness| witness != Witness::Interface) => {
                facts.push(witness(c));
            }
            (0, 0) => facts.push("all of them ours".to_owned()),
            (0, foreign) => facts.push(format!("{} not ours", units::count(foreign))),
            (missing, _) => facts.push(format!("{} fewer than were sent", units::count(missing))),
        }
        if let Some(buffers) = c.sent_buffers {
            let (frames, buffers) = (units::counted(c.sent_frames, "frame"), units::count(buffers));
            facts.push(format!("was handed {frames} in {buffers} pieces (super-frames)"));
        }
        facts.extend(c.queue.as_ref().map(queue));
        line("interface", facts);
    }
    out
}

fn queue(q: &QueueCounters) -> String {
    let (kind, passed) = (printable(&q.kind), units::count(q.passed_frames));
    format!("its queue ({kind}) let {passed} pass and dropped {}", units::count(q.dropped))
}

/// Who counted what the interface's counter does not know.
fn witness(c: &InterfaceCounters) -> String {
    let driver = c.driver_xdp_frames.map_or_else(String::new, units::count);
    match c.confirmed_by {
        Some(Witness::Driver) => format!("its driver {driver} of XDP: that one is believed"),
        Some(Witness::Meter) => "which does not know these frames: they arrived".to_owned(),
        Some(Witness::Completions) => {
            "which does not know these frames: the driver gave all back as sent".to_owned()
        }
        Some(Witness::Nobody) => "and nobody saw these frames leave".to_owned(),
        Some(Witness::Interface) | None => "all of them ours".to_owned(),
    }
}

fn adjustment(a: &Adjustment) -> String {
    let at = units::time(a.at_ns);
    match a.change {
        Change::Paused => format!("paused after {at}"),
        Change::Resumed => format!("went on after {at}"),
        Change::Rate => format!("{} of the rate asked from {at} on", units::percent(a.rate_ratio)),
    }
}

/// The label, then the facts with commas between, on as many lines as they need. Empty without facts.
fn wrapped(label: &str, facts: &[String]) -> String {
    let mut out = String::new();
    let mut line = format!("{label:<9}");
    for (i, fact) in facts.iter().enumerate() {
        let comma = if i + 1 < facts.len() { "," } else { "" };
        if i > 0 && line.chars().count() + fact.chars().count() + 2 > WIDTH {
            out += &format!("{line}\n");
            line = " ".repeat(9);
        }
        line += &format!(" {fact}{comma}");
    }
    if facts.is_empty() { out } else { format!("{out}{line}\n") }
}

/// Which engine ran and why; below it why not those that would have been taken rather.
fn engine(choice: &Choice) -> String {
    let mut out = folded("engine", &printable(&format!("{}: {}", choice.name, choice.reason)));
    for other in &choice.not_taken {
        out += &folded("", &printable(&format!("not {}: {}", other.name, other.reason)));
    }
    out
}

/// The label, then the text on as many lines as it needs.
fn folded(label: &str, text: &str) -> String {
    let mut out = String::new();
    let mut line = format!("{label:<9}");
    for word in text.split(' ') {
        if line.chars().count() + word.chars().count() + 1 > WIDTH {
            out += &format!("{line}\n");
            line = " ".repeat(9);
        }
        line += &format!(" {word}");
    }
    format!("{out}{line}\n")
}

/// What left by each interface and what arrived of it, where there were two.
fn interfaces(report: &Report) -> String {
    let Some(tx) = report.result.tx.as_ref().filter(|tx| !tx.interfaces.is_empty()) else {
        return String::new();
    };
    let rx = report.result.rx.as_ref().map_or(&[][..], |rx| &rx.interfaces);
    if rx.is_empty() {
        let mut table = Table::with_header(["interface", "frames", "bytes", "failed"]);
        for side in &tx.interfaces {
            let cells = [side.frames, side.bytes, side.failed].map(|n| Some(units::count(n)));
            table.row(&side.interface, cells);
        }
        return table.to_string();
    }
    let mut table =
        Table::with_header(["interface", "sent", "bytes", "failed", "arrived at", "frames", "bytes"]);
    for (i, side) in tx.interfaces.iter().enumerate() {
        let [sent, bytes, failed] = [side.frames, side.bytes, side.failed].map(|n| Some(units::count(n)));
        let far = rx.get(i);
        let place = far.map(|far| printable(&far.interface));
        let [came, came_bytes] =
            [far.map(|far| far.frames), far.map(|far| far.bytes)].map(|n| n.map(units::count));
        table.row(&side.interface, [sent, bytes, failed, place, came, came_bytes]);
    }
    table.to_string()
}

/// The work by core, where there were several.
fn cores(report: &Report) -> String {
    let Some(tx) = report.result.tx.as_ref().filter(|tx| tx.cores.len() > 1) else { return String::new() };
    let mut table = Table::with_header(["core", "frames", "bytes", "frames/s", "CPU time"]);
    for core in &tx.cores {
        let share = Totals::over(core.frames, core.bytes, tx.totals.duration_ns);
        table.row(
            &core.core.to_string(),
            [
                Some(units::count(core.frames)),
                Some(units::count(core.bytes)),
                (share.duration_ns > 0).then(|| units::frame_rate(share.frames_per_second)),
                core.cpu_ratio.map(units::percent),
            ],
        );
    }
    table.to_string()
}

fn percentiles(d: &Distribution) -> impl Iterator<Item = String> {
    d.percentiles().into_iter().map(|(name, value)| format!("{name} {}", units::time(value)))
}

/// What a delay may be wrong by; nothing is said of a clock that sender and meter have in common.
fn latency_clock(clock: &LatencyClock) -> Vec<String> {
    if clock.name == "monotonic" && clock.stepped_ns.is_none() && clock.hardware.is_none() {
        return Vec::new();
    }
    let mut facts = vec![printable(&clock.name).to_uppercase()];
    if let Some(hardware) = &clock.hardware {
        let frames = units::counted(hardware.frames, "arrival");
        facts.push(format!("{frames} timed by the hardware, within {}", units::time(hardware.max_error_ns)));
        if hardware.software_frames > 0 {
            facts.push(format!("{} by software", units::count(hardware.software_frames)));
        }
        let set = hardware.set_ns.map(|ns| format!("the hardware's clock set by {}", units::signed_time(ns)));
        facts.extend(set);
    }
    facts.extend(clock.max_error_ns.map(|ns| format!("here right within {}", units::time(ns))));
    facts.extend(clock.estimated_error_ns.map(|ns| format!("probably within {}", units::time(ns))));
    match clock.synchronised {
        Some(true) => facts.push("kept by a daemon (PTP, NTP)".to_owned()),
        Some(false) => facts.push("kept by no daemon".to_owned()),
        None => {}
    }
    facts.extend(clock.stepped_ns.map(|ns| format!("set by {} during the run", units::signed_time(ns))));
    facts
}

fn pacing(p: &Pacing) -> Vec<String> {
    let mut facts = Vec::new();
    if let Some(d) = &p.gap_error_ns {
        let mut all = percentiles(d);
        facts.push(format!("gap error {}", all.next().unwrap_or_default()));
        facts.extend(all);
    }
    if let Some(late) = p.last_frame_late_ns {
        facts.push(format!("last frame late by {}", units::signed_time(late)));
    }
    if let Some(late) = p.late_frames {
        let than =
            p.late_threshold_ns.map(|ns| format!(" by more than {}", units::time(ns))).unwrap_or_default();
        facts.push(format!("{} late{than}", units::count(late)));
    }
    if let Some(ratio) = p.back_to_back_ratio {
        facts.push(format!("{} back to back", units::percent(ratio)));
    }
    if let Some(c) = p.catch_up.filter(|c| c.stalls > 0) {
        let (stalls, longest) = (units::counted(c.stalls, "stall"), units::time(c.longest_stall_ns));
        facts.push(format!(
            "{stalls} of up to {longest}, caught up at no more than {:.1}x the rate",
            c.rate_limit_ratio
        ));
        if c.abandoned_ns > 0 {
            facts.push(format!("{} given up", units::time(c.abandoned_ns)));
        }
    }
    facts
}

/// "stamped by the hardware: 998 of 1,000 asked for", and how late these were.
fn departures(d: &Departures) -> Vec<String> {
    let mut facts = vec![format!(
        "stamped by the {}: {} of {} asked for",
        printable(&d.stamped_by),
        units::count(d.stamped_frames),
        units::count(d.asked_frames)
    )];
    for (what, of) in [("late", &d.lateness_ns), ("in kernel and driver", &d.handing_ns)] {
        let Some(of) = of else { continue };
        let mut all = percentiles(of);
        facts.push(format!("{what} {}", all.next().unwrap_or_default()));
        facts.extend(all);
    }
    facts.push(format!("right within {}", units::time(d.clock_error_ns)));
    facts
}

fn streams(report: &Report, limit: usize) -> String {
    if report.streams.is_empty() || limit == 0 {
        return String::new();
    }
    let header = ["stream", "sent", "received", "lost", "duplicated", "reordered", "p50", "p99", "max"];
    let mut table = Table::with_header(header);
    for s in report.streams.iter().take(limit) {
        let label = match &s.name {
            Some(name) => format!("{} {name}", s.stream),
            None => s.stream.to_string(),
        };
        let latency = |get: fn(&Distribution) -> u64| s.latency_ns.as_ref().map(|d| units::time(get(d)));
        let counts = [s.rx_frames, s.lost_frames, s.duplicated_frames, s.reordered_frames]
            .map(|n| Some(units::count(n)));
        let [received, lost, duplicated, reordered] = counts;
        let sent = s.tx_frames.map(units::count);
        let (p50, p99, max) = (latency(|d| d.p50), latency(|d| d.p99), latency(|d| d.max));
        table.row(&label, [sent, received, lost, duplicated, reordered, p50, p99, max]);
    }
    let more = report.streams.len().saturating_sub(limit);
    let rest = if more > 0 {
        format!("... and {} more; `--json` has all\n", units::counted(more as u64, "stream"))
    } else {
        String::new()
    };
    format!("{table}{rest}")
}

fn warnings(report: &Report) -> String {
    report.warnings.iter().map(|w| format!("warning: {}\n", printable(w))).collect()
}

/// The verdict with its reasons, then what to do next.
fn ending(report: &Report, options: Options<'_>) -> String {
    let verdict = &report.result.verdict;
    let mut out = conclusion::verdict(report);
    if verdict.reasons().is_empty() && conclusion::is_by_count(report) {
        out += &format!(": {}", conclusion::BY_COUNT);
    }
    if !verdict.reasons().is_empty() {
        out += &format!(": {}", printable(&conclusion::reasons(verdict)));
    }
    out += ".\n";
    let next = conclusion::next_step(report, options.page);
    if next.is_empty() { out } else { out + &next + "\n" }
}
