//! A test between two endpoints: streams, transactions, and both ends' hosts.

use super::{Line, Section};
use crate::data::distribution::Distribution;
use crate::data::model::Report;
use crate::data::sections::endpoint::{
    End, Endpoint, EndpointMemory, EndpointStream, Opening, Repeated, Served, Transactions, UnderLoad,
};
use crate::data::units;
use crate::render::html::escape::Esc;
use crate::render::html::grid::{DASH, Facts, Grid, first_of};
use crate::render::kernel_counters;

impl Opening {
    fn facts(&self) -> Vec<String> {
        let mut facts = vec![
            format!("{} of {} opened", units::count(self.opened), units::count(self.attempts)),
            format!("{} failed", units::count(self.failed)),
        ];
        facts.extend(self.reasons().map(|(reason, count)| format!("{} {reason}", units::count(count))));
        facts.extend((self.unfinished > 0).then(|| format!("{} unfinished", units::count(self.unfinished))));
        if self.hold > 0 {
            facts.push(format!("{} of {} held to the end", units::count(self.held), units::count(self.hold)));
            facts.extend((self.broken > 0).then(|| format!("{} broke", units::count(self.broken))));
        }
        facts.push(format!("{} open at once at most", units::count(self.most_open)));
        facts
    }
}

/// Of fewer connections the difference is of anything.
const ENOUGH_TO_WEIGH: u64 = 1000;

impl EndpointMemory {
    fn facts(&self) -> Vec<String> {
        let each = |bytes: Option<i64>| {
            let bytes = u64::try_from(bytes?).ok()? / self.connections.max(1);
            // Less is what other differences hide.
            (self.connections >= ENOUGH_TO_WEIGH && bytes > 0).then(|| units::bytes(bytes))
        };
        let connections = units::counted(self.connections, "connection");
        let process =
            each(self.process_bytes).map(|bytes| format!("process memory {bytes} for each of {connections}"));
        let slab = each(self.kernel_slab_bytes).map(|bytes| format!("the host's kernel {bytes} for each"));
        let buffers = each(self.kernel_buffer_bytes).map(|bytes| format!("TCP's buffers {bytes} for each"));
        process.into_iter().chain(slab).chain(buffers).collect()
    }
}

impl UnderLoad {
    /// The grade, or why there is none.
    pub(crate) fn graded(&self) -> String {
        match &self.grade {
            Some(grade) => format!("{grade} for bufferbloat"),
            None => "none: idle hosts sleep, or the streams did not fill the path".to_owned(),
        }
    }

    /// Where the median went.
    pub(crate) fn moved(&self) -> String {
        match self.idle_ns.p50.checked_sub(self.loaded_ns.p50).filter(|_| self.grade.is_none()) {
            Some(fell) => format!("median down by {}", units::time(fell)),
            None => format!("median up by {}", units::time(self.increase_ns)),
        }
    }
}

impl Served {
    fn facts(&self) -> Vec<String> {
        let mut facts = vec![units::counted(self.tests, "test"), units::bytes(self.bytes)];
        facts.extend(
            (self.broken_tests > 0).then(|| format!("{} broke off", units::count(self.broken_tests))),
        );
        facts.push(format!("{} refused", units::counted(self.refused_connections, "connection")));
        facts
    }

    /// In one sentence without its full stop.
    pub(crate) fn sentence(&self) -> String {
        format!("Served {}", self.facts().join(", "))
    }
}

impl Endpoint {
    /// What the measured times of both ends have to do with each other.
    fn windows(&self) -> Option<String> {
        let apart = self.windows_apart_ns.filter(|_| !self.streams.is_empty())?;
        if self.streams.iter().all(|stream| stream.datagrams.is_some()) {
            return Some(format!(
                "datagrams count that say that they were sent after the warm-up ({}), at both ends: what is lost is of those alone",
                units::time(self.warm_up_ns)
            ));
        }
        Some(format!(
            "each end measures from the end of its own warm-up ({}) on, at most {} apart: what is sent and what is received differ by \
             what went in that time and what was under way",
            units::time(self.warm_up_ns),
            units::time(apart)
        ))
    }

    /// What happened, in one sentence without its full stop.
    pub(crate) fn sentence(&self) -> String {
        let mut parts: Vec<String> = self.streams.iter().map(stream_sentence).collect();
        if let Some(t) = &self.transactions {
            parts.push(transactions_sentence(t));
        }
        if let Some(opening) = self.opening.as_ref().filter(|opening| opening.failed > 0 || opening.hold > 0)
        {
            let held = (opening.hold > 0).then(|| format!("{} held", units::count(opening.held)));
            let failed = format!("{} failed", units::count(opening.failed));
            parts.push(held.into_iter().chain([failed]).collect::<Vec<_>>().join(", "));
        }
        if let Some(under) = &self.under_load {
            let [idle, loaded] = [under.idle_ns.p50, under.loaded_ns.p50].map(units::time);
            parts.push(match &under.grade {
                Some(grade) => {
                    format!("the median latency rose from {idle} to {loaded} beside streams (grade {grade})")
                }
                None => format!(
                    "the median latency fell from {idle} to {loaded} beside streams: how much they add cannot be judged"
                ),
            });
        }
        if parts.is_empty() {
            format!("{} with {} came to nothing", self.test, units::printable(&self.server))
        } else {
            parts.join("; ")
        }
    }
}

fn stream_sentence(stream: &EndpointStream) -> String {
    let [from, to] =
        if stream.from_client { ["This host", "the server"] } else { ["The server", "this host"] };
    let sent = format!(
        "{from} sent {}{} at {}",
        at_least(stream),
        units::bytes(stream.sent_bytes),
        units::bit_rate(stream.sent_bits_per_second)
    );
    match (stream.received_bits_per_second, stream.received_bytes) {
        (Some(rate), _) => format!("{sent}, {to} received {}", units::bit_rate(rate)),
        (None, Some(bytes)) => format!("{sent}, {to} received {} at one moment", units::bytes(bytes)),
        (None, None) => format!("{sent}; what {to} received is not known"),
    }
}

/// What stands before a sender's count that is the receiver's.
fn at_least(stream: &EndpointStream) -> &'static str {
    if stream.sent_at_least { "at least " } else { "" }
}

fn transactions_sentence(t: &Transactions) -> String {
    let rate = units::count(t.per_second.round() as u64);
    let mut text = format!("{} {} at {rate} a second", units::count(t.count), t.noun());
    if let Some(d) = &t.latency_ns {
        text += &format!(", p50 {}, p99 {}", units::time(d.p50), units::time(d.p99));
    }
    text
}

impl Transactions {
    /// What they are.
    pub(crate) fn noun(&self) -> &'static str {
        if self.request_bytes + self.response_bytes == 0 { "connections" } else { "transactions" }
    }
}

pub(super) struct Tested;

impl Section for Tested {
    fn lines(&self, report: &Report) -> Vec<Line> {
        if let Some(served) = &report.result.served {
            return vec![Line::facts("served", served.facts())];
        }
        let Some(e) = &report.result.endpoint else { return Vec::new() };
        let mut lines: Vec<Line> = Vec::new();
        for stream in &e.streams {
            lines.push(Line::facts(
                if stream.from_client { "sent" } else { "received" },
                stream_facts(stream),
            ));
        }
        lines.extend(e.windows().map(|said| Line::text("windows", said)));
        if let Some(t) = &e.transactions {
            lines.push(Line::facts("rate", transaction_facts(t)));
            lines.extend(
                t.latency_ns
                    .as_ref()
                    .filter(|_| e.under_load.is_none())
                    .map(|d| Line::facts("latency", latency_facts(d))),
            );
        }
        lines.extend(e.opening.as_ref().map(|opening| Line::facts("opened", opening.facts())));
        if let Some(under) = &e.under_load {
            lines.push(Line::facts("idle", latency_facts(&under.idle_ns)));
            lines.push(Line::facts("loaded", latency_facts(&under.loaded_ns)));
            lines.push(Line::facts(
                "grade",
                vec![
                    under.graded(),
                    under.moved(),
                    format!(
                        "{} round trips a minute",
                        units::count(under.round_trips_per_minute.round() as u64)
                    ),
                ],
            ));
            lines.push(Line::text("rule", under.rule.clone()));
        }
        if let Some(c) = &e.confidence {
            lines.push(Line::facts("repeated", confidence_facts(c)));
        }
        lines.push(Line::facts("here", end_facts(e, &e.local, true)));
        lines.extend(e.remote.as_ref().map(|end| Line::facts("server", end_facts(e, end, false))));
        for (place, end) in ends(e) {
            let notes = end.counters.iter().flat_map(|difference| &difference.notes);
            lines.extend(
                notes.map(|note| Line::text("kernel", format!("{place}: {}", units::printable(&note.text)))),
            );
        }
        lines
    }

    fn times<'r>(&self, report: &'r Report) -> Vec<(&'static str, &'r Distribution)> {
        let Some(e) = &report.result.endpoint else { return Vec::new() };
        match (&e.under_load, &e.transactions) {
            (Some(under), _) => {
                vec![("transaction, idle", &under.idle_ns), ("transaction, loaded", &under.loaded_ns)]
            }
            (None, Some(t)) => t.latency_ns.iter().map(|d| ("transaction", d)).collect(),
            (None, None) => Vec::new(),
        }
    }

    fn facts(&self, report: &Report, facts: &mut Facts) {
        if let Some(served) = &report.result.served {
            facts.add("served", &served.facts().join(", "));
        }
        let Some(e) = &report.result.endpoint else { return };
        facts.add("endpoint test", &e.test);
        facts.add("server", &units::printable(&e.server));
        facts.add("connections", &units::count(e.connections));
        for stream in &e.streams {
            facts.add(
                if stream.from_client { "from this host" } else { "from the server" },
                &stream_facts(stream).join(", "),
            );
        }
        if let Some(t) = &e.transactions {
            facts.add("transactions", &transaction_facts(t).join(", "));
        }
        if let Some(opening) = &e.opening {
            facts.add("opening", &opening.facts().join(", "));
        }
        if let Some(under) = &e.under_load {
            facts.add("bufferbloat grade", &format!("{} ({})", under.graded(), under.rule));
        }
        facts.maybe("windows", e.windows());
        if let Some(c) = &e.confidence {
            facts.add("repeated", &confidence_facts(c).join(", "));
        }
        facts.add("this end", &end_facts(e, &e.local, true).join(", "));
        if let Some(end) = &e.remote {
            facts.add("the server's end", &end_facts(e, end, false).join(", "));
        }
    }

    fn appendix(&self, report: &Report) -> String {
        let Some(e) = &report.result.endpoint else { return String::new() };
        let mut grid =
            Grid::new(["from", "to", "throughput", "count", "rtt", "cwnd", "sent again", "p50", "p99"]);
        for i in e.intervals.iter().take(MOST_ROWS) {
            let seconds = |ns: u64| format!("{:.3} s", ns as f64 / 1e9);
            let time = |ns: Option<u64>| ns.map_or(DASH.into(), units::time);
            let count = |n: Option<u64>| n.map_or(DASH.into(), units::count);
            let lasted = i.end_ns.saturating_sub(i.start_ns).max(1) as f64 / 1e9;
            let rate = units::bit_rate(i.bytes as f64 * 8.0 / lasted);
            let cwnd = i.cwnd_bytes.map_or(DASH.into(), units::bytes);
            let cells = [
                seconds(i.end_ns),
                rate,
                count(i.count),
                time(i.rtt_ns),
                cwnd,
                count(i.retransmits),
                time(i.latency_p50_ns),
                time(i.latency_p99_ns),
            ];
            grid.row(&seconds(i.start_ns), cells);
        }
        let over_time = grid.card(&first_of("The test over time", MOST_ROWS, e.intervals.len()), true);
        let counters = ends(e).filter_map(|(place, end)| {
            let text = kernel_counters::render(end.counters.as_ref()?);
            Some(format!(
                "<details><summary>What the kernel counted, {place}</summary>
<pre>{}</pre></details>
",
                Esc(&text)
            ))
        });
        over_time + &counters.collect::<String>()
    }
}

fn ends(e: &Endpoint) -> impl Iterator<Item = (&'static str, &End)> {
    [("at this end", Some(&e.local)), ("at the server", e.remote.as_ref())]
        .into_iter()
        .filter_map(|(place, end)| Some((place, end?)))
}

/// Rows of intervals on the page, at most.
const MOST_ROWS: usize = 1000;

fn latency_facts(d: &Distribution) -> Vec<String> {
    let mut facts =
        vec![format!("min {}", units::time(d.min)), format!("mean {}", units::time(d.mean as u64))];
    facts.extend(d.far_percentiles().map(|(name, value)| format!("{name} {}", units::time(value))));
    facts
}

fn stream_facts(stream: &EndpointStream) -> Vec<String> {
    let [from, to] =
        if stream.from_client { ["this host", "the server"] } else { ["the server", "this host"] };
    let mut facts = vec![match (stream.received_bytes, stream.received_bits_per_second) {
        (Some(bytes), Some(rate)) => {
            let within = stream.received_ns.map_or_else(String::new, |ns| format!(" in {}", units::time(ns)));
            format!("{} at {} received by {to}{within}", units::bytes(bytes), units::bit_rate(rate))
        }
        (Some(bytes), None) => format!("{} received by {to} at one moment", units::bytes(bytes)),
        _ => format!("what {to} received is not known"),
    }];
    facts.push(format!(
        "{}{} at {} sent by {from} in {}",
        at_least(stream),
        units::bytes(stream.sent_bytes),
        units::bit_rate(stream.sent_bits_per_second),
        units::time(stream.sent_ns)
    ));
    if let Some(d) = &stream.datagrams {
        facts.push(match d.received_per_second {
            Some(rate) => format!("{} datagrams/s of {} B", units::count(rate.round() as u64), d.size_bytes),
            None => format!("{} datagrams of {} B", units::count(d.received), d.size_bytes),
        });
        facts.push(format!("{} lost ({})", units::count(d.lost), units::percent(d.loss_ratio)));
        let some = [
            ("had no room in the receiver's socket", d.dropped_by_receiver),
            ("refused by the sender's host", d.refused_by_sender),
            ("reordered", d.reordered),
            ("duplicated", d.duplicated),
        ];
        let some = some.into_iter().filter_map(|(what, n)| Some((what, n.filter(|n| *n > 0)?)));
        facts.extend(some.map(|(what, n)| format!("{} {what}", units::count(n))));
        facts.extend(d.jitter_ns.map(|jitter| format!("jitter {}", units::time(jitter))));
    }
    facts
}

fn transaction_facts(t: &Transactions) -> Vec<String> {
    let mut facts = vec![
        format!("{} {} a second", units::count(t.per_second.round() as u64), t.noun()),
        match t.measured_ns {
            Some(ns) => format!("{} in {}", units::count(t.count), units::time(ns)),
            None => format!("{} in all", units::count(t.count)),
        },
    ];
    if t.request_bytes + t.response_bytes > 0 {
        facts.push(format!("request {} B", units::count(t.request_bytes)));
        facts.push(format!("response {} B", units::count(t.response_bytes)));
    }
    if t.in_flight > 1 {
        facts.push(format!("at most {} in flight", units::count(t.in_flight)));
    }
    match t.intended_per_second {
        Some(rate) => facts.push(format!("open loop at {} a second", units::count(rate.round() as u64))),
        None => facts.push("closed loop".to_owned()),
    }
    let some = [("due and not asked", t.unsent), ("not answered", t.lost)];
    facts.extend(some.iter().filter(|(_, n)| *n > 0).map(|(what, n)| format!("{} {what}", units::count(*n))));
    facts
}

fn confidence_facts(c: &Repeated) -> Vec<String> {
    let mean = match c.width_ratio {
        Some(width) => format!("mean within +/- {}", units::percent(width / 2.0)),
        None => "too few for an interval".to_owned(),
    };
    vec![
        format!("{} times", c.results.len()),
        mean,
        format!("at {} confidence", units::percent(c.level)),
        format!("asked for +/- {}", units::percent(c.wanted_width_ratio / 2.0)),
    ]
}

/// Of an end that sends streams or has transactions TCP's figures tell something; of one that only acknowledges they do not.
/// The round trip time of an end that only answers is no figure of the path: its answer is acknowledged when the other end
/// asks again, or by a delayed acknowledgement (RFC 9293, section 3.8.6.3), up to 40 ms later.
fn end_facts(e: &Endpoint, end: &End, is_client: bool) -> Vec<String> {
    let sends = e.transactions.is_some() || e.streams.iter().any(|stream| stream.from_client == is_client);
    let times = sends && (e.transactions.is_none() || is_client);
    let mut facts = Vec::new();
    if let (Some(busy), Some(cores)) = (end.busy_cores, end.cores) {
        facts.push(format!("CPU {busy:.2} of {cores} cores in use"));
    }
    facts.extend(end.process_cores.map(|cores| {
        // A server of another protocol may be another program.
        let ours = end.program.as_deref().is_some_and(|program| program.starts_with("netdyno "));
        let who = if ours { "netdyno" } else { "its own process" };
        let used = if facts.is_empty() { format!("CPU {cores:.2} cores") } else { format!("{cores:.2}") };
        format!("{used} by {who} without interrupts")
    }));
    facts.extend(end.service_demand_ns_per_kib.map(|ns| format!("service demand {:.3} us/KiB", ns / 1e3)));
    facts.extend(
        end.service_demand_ns_per_transaction
            .map(|ns| format!("service demand {:.3} us/transaction", ns / 1e3)),
    );
    facts
        .extend(end.congestion.as_ref().map(|name| format!("congestion control {}", units::printable(name))));
    if times {
        facts.extend(end.rtt_ns.map(|ns| format!("rtt {}", units::time(ns))));
        facts.extend(end.min_rtt_ns.map(|ns| format!("least rtt {}", units::time(ns))));
    }
    if sends {
        facts.extend(end.cwnd_bytes.map(|bytes| format!("cwnd {}", units::bytes(bytes))));
        facts.extend(end.retransmits.map(|count| format!("{} sent again", units::counted(count, "segment"))));
    }
    facts.extend(end.send_buffer_bytes.map(|bytes| format!("send buffer {}", units::bytes(bytes))));
    facts.extend(end.receive_buffer_bytes.map(|bytes| format!("receive buffer {}", units::bytes(bytes))));
    if let (Some(copied), Some(calls)) = (end.zerocopy_copied, end.zerocopy_calls) {
        facts.push(format!(
            "{} of {} zerocopy calls copied after all",
            units::count(copied),
            units::count(calls)
        ));
    }
    facts.extend(end.memory.iter().flat_map(EndpointMemory::facts));
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_that_only_answers_has_no_round_trip_time() {
        let end =
            End { rtt_ns: Some(5_470_000), min_rtt_ns: Some(8_000), retransmits: Some(1), ..End::default() };
        let told = |e: &Endpoint, is_client| end_facts(e, &end, is_client).join(", ");
        let asks = Endpoint { transactions: Some(Transactions::default()), ..Endpoint::default() };
        assert_eq!(told(&asks, true), "rtt 5.47 ms, least rtt 8.00 us, 1 segment sent again");
        assert_eq!(told(&asks, false), "1 segment sent again");
        let stream = EndpointStream { from_client: false, ..EndpointStream::default() };
        let sends = Endpoint { streams: vec![stream], ..Endpoint::default() };
        assert!(told(&sends, false).starts_with("rtt 5.47 ms") && told(&sends, true).is_empty());
    }

    #[test]
    fn a_server_of_another_program_is_not_called_netdyno() {
        let of = |program: Option<&str>, busy_cores| {
            let program = program.map(str::to_owned);
            let end = End { program, process_cores: Some(0.4), busy_cores, cores: Some(2), ..End::default() };
            end_facts(&Endpoint::default(), &end, false).join("; ")
        };
        assert_eq!(of(None, None), "CPU 0.40 cores by its own process without interrupts");
        let both = "CPU 1.00 of 2 cores in use; 0.40 by netdyno without interrupts";
        assert_eq!(of(Some("netdyno 0.1.0"), Some(1.0)), both);
    }
}
