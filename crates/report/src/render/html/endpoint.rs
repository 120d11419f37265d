//! The plots of an endpoint test: what went and how late it was over time, with TCP's round-trip time, window and retransmissions
//! below each other on one axis of time, so that a dip is seen beside its cause.

use super::charts::{self, Chart, histogram};
use super::nines;
use super::timeline::{self, Axis, Pane};
use crate::data::distribution::Distribution;
use crate::data::model::{Endpoint, EndpointInterval, Report};
use crate::data::units;

/// More stretches than this are joined: a plot has no more pixels to tell them apart.
const MOST_STRETCHES: usize = 300;
/// Height of a panel.
const PANEL: f64 = 92.0;

/// All of them, as HTML.
pub(super) fn plots(report: &Report) -> String {
    let Some(endpoint) = &report.result.endpoint else { return String::new() };
    let mut charts: Vec<Chart> = over_time(endpoint).into_iter().collect();
    let loaded = endpoint.under_load.as_ref().map(|under| ("beside streams", &under.loaded_ns));
    let closed = endpoint.transactions.as_ref().and_then(|t| Some(("transactions", t.latency_ns.as_ref()?)));
    let lines: Vec<_> = match &endpoint.under_load {
        Some(under) => vec![("by themselves", &under.idle_ns), ("beside streams", &under.loaded_ns)],
        None => closed.into_iter().collect(),
    };
    if let Some((of, d)) = loaded.or(closed) {
        let heading =
            if endpoint.under_load.is_some() { format!("Latency {of}") } else { "Latency".to_owned() };
        charts.extend(histogram(heading, d, "latency of a transaction", "transaction"));
    }
    charts.extend(nines::transactions(&lines));
    if charts.is_empty() {
        return String::new();
    }
    format!("<h2>Plots</h2>\n{}", charts.iter().map(Chart::html).collect::<String>())
}

/// The figures everybody asks for: name, value, what stands below it.
pub(super) fn tiles(report: &Report) -> Vec<(&'static str, String, String)> {
    let Some(endpoint) = &report.result.endpoint else { return Vec::new() };
    let mut tiles = Vec::new();
    for stream in &endpoint.streams {
        let name = if stream.from_client { "To the server" } else { "From the server" };
        let value = stream.received_bits_per_second.map_or("not known".to_owned(), units::bit_rate);
        let sent = units::bit_rate(stream.sent_bits_per_second);
        let at_least = if stream.sent_at_least { "at least " } else { "" };
        tiles.push((name, value, format!("sent at {at_least}{sent}")));
        if let Some(d) = &stream.datagrams {
            tiles.push(("Lost", units::percent(d.loss_ratio), units::counted(d.lost, "datagram")));
        }
    }
    if let Some(under) = &endpoint.under_load {
        let [idle, loaded] = [&under.idle_ns, &under.loaded_ns].map(|d| units::time(d.p50));
        tiles.push(("Latency beside streams, median", loaded, format!("{idle} without them")));
        tiles.push((
            "Bufferbloat grade",
            under.grade.clone().unwrap_or_else(|| "not judged".to_owned()),
            under.moved(),
        ));
    } else if let Some(t) = &endpoint.transactions {
        let lost =
            if t.lost > 0 { format!(", {} not answered", units::count(t.lost)) } else { String::new() };
        let name = if t.request_bytes + t.response_bytes == 0 { "Connections" } else { "Transactions" };
        let rate = units::count(t.per_second.round() as u64);
        tiles.push((name, format!("{rate}/s"), format!("{} in all{lost}", units::count(t.count))));
        let half =
            |d: &Distribution| ("Latency, median", units::time(d.p50), format!("p99 {}", units::time(d.p99)));
        tiles.extend(t.latency_ns.as_ref().map(half));
    }
    if let Some(count) = endpoint.local.retransmits.filter(|_| !endpoint.streams.is_empty()) {
        tiles.push(("Segments sent again here", units::count(count), String::new()));
    }
    tiles
}

type Value = fn(&EndpointInterval) -> Option<f64>;

/// One quantity over time, in one or two lines: CSS class, name, value.
struct Panel {
    title: &'static str,
    kind: Kind,
    lines: Vec<(&'static str, &'static str, Value)>,
}

/// What the axis is of.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Its unit with a prefix.
    Scaled(&'static str),
    Time,
    Whole,
}

fn over_time(endpoint: &Endpoint) -> Option<Chart> {
    let stretches = stretches(&endpoint.intervals);
    let transacts = endpoint.transactions.is_some();
    let bits: Value = |i| Some(i.bytes as f64 * 8.0 / seconds(i)?);
    let per_second: Value = |i| Some(i.count? as f64 / seconds(i)?);
    let mut panels = Vec::new();
    if !endpoint.streams.is_empty() {
        panels.push(Panel {
            title: "Throughput",
            kind: Kind::Scaled("bit/s"),
            lines: vec![("s0", "payload", bits)],
        });
    }
    let title = if transacts { "Transactions" } else { "Datagrams" };
    panels.push(Panel { title, kind: Kind::Scaled("/s"), lines: vec![("s0", "", per_second)] });
    panels.push(Panel {
        title: "Latency of transactions",
        kind: Kind::Time,
        lines: vec![
            ("s2", "half of the transactions within", |i| Some(i.latency_p50_ns? as f64)),
            ("s3", "99 % within", |i| Some(i.latency_p99_ns? as f64)),
        ],
    });
    panels.push(Panel {
        title: "TCP's smoothed round-trip time (rtt)",
        kind: Kind::Time,
        lines: vec![("s2", "", |i| Some(i.rtt_ns? as f64))],
    });
    // On a short path the kernel's estimate is a hundred times what is carried: on one axis with the payload it would press that
    // flat. Of both directions together the estimates say little.
    if endpoint.streams.len() == 1 {
        panels.push(Panel {
            title: "Delivery rate, as the sender's kernel estimates",
            kind: Kind::Scaled("bit/s"),
            lines: vec![("s1", "", |i| i.delivery_bits_per_second)],
        });
    }
    panels.push(Panel {
        title: "Congestion window (cwnd)",
        kind: Kind::Scaled("B"),
        lines: vec![("s3", "", |i| Some(i.cwnd_bytes? as f64))],
    });
    panels.push(Panel {
        title: "Segments sent again",
        kind: Kind::Whole,
        lines: vec![("lost", "", |i| Some(i.retransmits? as f64))],
    });
    for panel in &mut panels {
        panel.lines.retain(|(_, _, value)| stretches.iter().any(|i| value(i).is_some()));
    }
    panels.retain(|panel| !panel.lines.is_empty());
    if panels.is_empty() {
        return None;
    }
    let panes: Vec<Pane> = panels.iter().filter_map(|panel| panel.pane(&stretches)).collect();
    let tips: Vec<_> = stretches.iter().map(|i| (i.start_ns, i.end_ns, tip(i, &panels))).collect();
    let named = panels.iter().flat_map(|panel| &panel.lines).filter(|(_, name, _)| !name.is_empty());
    // Their signs are bare lines.
    let sign = |class: &str| match class {
        "s0" => "found f0",
        "s1" => "found f1",
        "s2" => "found f2",
        _ => "found f3",
    };
    let mut legend: Vec<_> = named.map(|(class, name, _)| (sign(class), (*name).to_owned())).collect();
    if legend.len() < 2 {
        legend.clear();
    }
    let mut note = "A warm-up, where there is one, is in it.".to_owned();
    if endpoint.intervals.len() > stretches.len() {
        note += " Where a stretch of the plot joins several intervals, the longest time and the last window count.";
    }
    let titles: Vec<_> = panels.iter().map(|panel| panel.title).collect();
    let svg = timeline::draw(&panes, &tips, &format!("Over time: {}", titles.join(", ")))?;
    Some(Chart { heading: "The test over time".to_owned(), svg, legend, note })
}

impl Panel {
    fn pane(&self, of: &[EndpointInterval]) -> Option<Pane> {
        let line = |(class, _, value): &(&'static str, &'static str, Value)| timeline::Line {
            class,
            steps: of.iter().map(|i| (i.start_ns, i.end_ns, value(i))).collect(),
        };
        let lines: Vec<_> = self.lines.iter().map(line).collect();
        let max = charts::greatest(&lines)?;
        let (y, unit, factor) = match self.kind {
            Kind::Scaled(unit) => {
                let (factor, prefix) = units::prefix(max);
                (Axis::linear(max / factor, 3), format!("{prefix}{unit}"), factor)
            }
            Kind::Time => {
                let (factor, unit) = charts::axis_time(max);
                (Axis::linear(max / factor, 3), unit.to_owned(), factor)
            }
            Kind::Whole => (Axis::whole(max, 3), String::new(), 1.0),
        };
        let unit = if unit.is_empty() { String::new() } else { format!(", {unit}") };
        let title = format!("{}{unit}", self.title);
        Some(Pane { title, height: PANEL, y, lines: charts::scaled(lines, factor), ..Pane::default() })
    }
}

/// What a reader sees who points at a stretch.
fn tip(i: &EndpointInterval, panels: &[Panel]) -> String {
    let at = |ns: u64| ns as f64 / 1e9;
    let mut parts = vec![format!("{:.2} s to {:.2} s", at(i.start_ns), at(i.end_ns))];
    let has = |title: &str| panels.iter().any(|panel| panel.title == title);
    if let (true, Some(lasted)) = (has("Throughput"), seconds(i)) {
        parts.push(units::bit_rate(i.bytes as f64 * 8.0 / lasted));
    }
    if let (Some(count), Some(lasted)) = (i.count, seconds(i)) {
        parts.push(units::event_rate(count as f64 / lasted));
    }
    parts.extend(i.latency_p50_ns.map(|ns| format!("p50 {}", units::time(ns))));
    parts.extend(i.latency_p99_ns.map(|ns| format!("p99 {}", units::time(ns))));
    parts.extend(i.rtt_ns.map(|ns| format!("rtt {}", units::time(ns))));
    parts.extend(i.cwnd_bytes.map(|bytes| format!("cwnd {}", units::bytes(bytes))));
    parts.extend(i.retransmits.map(|count| format!("{} sent again", units::counted(count, "segment"))));
    parts.join(" · ")
}

fn seconds(i: &EndpointInterval) -> Option<f64> {
    let lasted = i.end_ns.saturating_sub(i.start_ns);
    (lasted > 0).then_some(lasted as f64 / 1e9)
}

/// The intervals, neighbours joined until there are few enough to draw. One without extent has no rate.
fn stretches(intervals: &[EndpointInterval]) -> Vec<EndpointInterval> {
    let intervals: Vec<_> = intervals.iter().filter(|i| i.end_ns > i.start_ns).copied().collect();
    let group = intervals.len().div_ceil(MOST_STRETCHES).max(1);
    intervals.chunks(group).filter_map(|group| group.iter().copied().reduce(join)).collect()
}

fn join(a: EndpointInterval, b: EndpointInterval) -> EndpointInterval {
    let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (a, b) => a.or(b),
    };
    EndpointInterval {
        start_ns: a.start_ns,
        end_ns: b.end_ns,
        bytes: a.bytes.saturating_add(b.bytes),
        count: sum(a.count, b.count),
        rtt_ns: a.rtt_ns.max(b.rtt_ns),
        cwnd_bytes: b.cwnd_bytes.or(a.cwnd_bytes),
        retransmits: sum(a.retransmits, b.retransmits),
        delivery_bits_per_second: b.delivery_bits_per_second.or(a.delivery_bits_per_second),
        latency_p50_ns: a.latency_p50_ns.max(b.latency_p50_ns),
        latency_p99_ns: a.latency_p99_ns.max(b.latency_p99_ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::model::EndpointStream;

    fn tested(intervals: Vec<EndpointInterval>) -> Report {
        let mut report = Report::new("endpoint");
        report.result.endpoint =
            Some(Endpoint { intervals, streams: vec![EndpointStream::default()], ..Endpoint::default() });
        report
    }

    fn second(n: u64) -> EndpointInterval {
        EndpointInterval {
            start_ns: n * 1_000_000_000,
            end_ns: (n + 1) * 1_000_000_000,
            bytes: 125_000_000,
            ..Default::default()
        }
    }

    #[test]
    fn throughput_rtt_window_and_retransmissions_stand_on_one_axis_of_time() {
        let known = |n: u64| EndpointInterval {
            rtt_ns: Some(2_000_000),
            cwnd_bytes: Some(64_000),
            retransmits: Some(n),
            ..second(n)
        };
        let page = plots(&tested((0..5).map(known).collect()));
        assert_eq!(page.matches("<svg class=\"time\"").count(), 1);
        assert_eq!(page.matches("<path class=\"line").count(), 4);
        for says in ["Throughput, Gbit/s", "(rtt), ms", "(cwnd), kB", "Segments sent again", "1.00 Gbit/s"] {
            assert!(page.contains(says), "{says}: {page}");
        }
    }

    #[test]
    fn what_the_kernel_estimates_presses_no_payload_flat() {
        let known = |n: u64| EndpointInterval { delivery_bits_per_second: Some(4e11), ..second(n) };
        let page = plots(&tested((0..5).map(known).collect()));
        // The payload has an axis of its own, up to little more than itself.
        assert!(page.contains("Throughput, Gbit/s") && page.contains("estimates, Gbit/s"), "{page}");
        let payload = page.split(">Delivery rate").next().unwrap_or_default();
        assert!(!payload.contains(">400<") && payload.contains(">1.0<"), "{payload}");
    }

    #[test]
    fn what_was_not_measured_has_no_panel_and_nothing_has_no_plot() {
        let page = plots(&tested(vec![second(0)]));
        assert!(page.contains("Throughput") && !page.contains("cwnd") && !page.contains("sent again"));
        assert_eq!(plots(&tested(Vec::new())), "");
        assert_eq!(plots(&Report::new("endpoint")), "");
    }

    #[test]
    fn long_tests_are_joined_and_lose_no_retransmission() {
        let all: Vec<_> = (0..1000).map(|n| EndpointInterval { retransmits: Some(1), ..second(n) }).collect();
        let joined = stretches(&all);
        assert!(joined.len() <= MOST_STRETCHES);
        assert_eq!(joined.iter().filter_map(|i| i.retransmits).sum::<u64>(), 1000);
    }
}
