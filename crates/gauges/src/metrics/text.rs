//! A moment in Prometheus' text format (exposition format 0.0.4) or as OpenMetrics 1.0, whichever is asked for.
//!
//! Names have base units (seconds, bytes) at their end. What may fall is a gauge, also where it counts: frames that
//! are given up for lost may still arrive.

use histogram::Histogram;
use report::figure::{Figure, Kind};
use report::sections::{latency, pacing, received, sent};
use snapshot::{Phase, Snapshot};
use std::fmt::Write;

/// The two formats. They differ in the names of counters' families, and in how a page ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Prometheus' text format, version 0.0.4.
    Prometheus,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

impl Format {
    /// The value of the header `Content-Type`.
    pub fn content_type(self) -> &'static str {
        match self {
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// Streams that are listed one by one, at most: each makes seven time series.
pub const STREAMS: usize = 256;
/// Queues that are listed, at most.
const QUEUES: usize = 1024;

/// Upper bounds of the histograms' buckets: 1, 2, 5 of each decade from 1 us to 10 s.
const BOUNDS_NS: [u64; 22] = {
    let mut bounds = [0; 22];
    let (mut decade, mut n) = (1_000, 0);
    while n < 22 {
        bounds[n] = decade * [1, 2, 5][n % 3];
        if n % 3 == 2 {
            decade *= 10;
        }
        n += 1;
    }
    bounds
};

struct Page {
    out: String,
    format: Format,
}

type Label<'a> = (&'a str, &'a str);

impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let total = if kind == "counter" && self.format == Format::Prometheus { "_total" } else { "" };
        let _ = writeln!(self.out, "# HELP {name}{total} {help}\n# TYPE {name}{total} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[Label<'_>], value: &dyn std::fmt::Display) {
        self.out += name;
        for (n, (key, text)) in labels.iter().enumerate() {
            let _ = write!(self.out, "{}{key}=\"{}\"", if n == 0 { "{" } else { "," }, escaped(text));
        }
        if !labels.is_empty() {
            self.out.push('}');
        }
        let _ = writeln!(self.out, " {value}");
    }

    /// A family of several samples of one kind; nothing where there are none.
    fn several(&mut self, name: &str, kind: &str, help: &str, rows: &[(Vec<Label<'_>>, f64)]) {
        if rows.is_empty() {
            return;
        }
        self.family(name, kind, help);
        for (labels, value) in rows {
            if kind == "counter" {
                self.counter(name, labels, value)
            } else {
                self.sample(name, labels, value)
            }
        }
    }

    fn counter(&mut self, name: &str, labels: &[Label<'_>], value: &dyn std::fmt::Display) {
        self.sample(&format!("{name}_total"), labels, value);
    }

    /// A family of one sample.
    fn one(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        labels: &[Label<'_>],
        value: &dyn std::fmt::Display,
    ) {
        self.family(name, kind, help);
        if kind == "counter" { self.counter(name, labels, value) } else { self.sample(name, labels, value) }
    }

    /// A figure of a result, while it comes about.
    fn figure(&mut self, figure: &Figure, labels: &[Label<'_>], value: u64) {
        let kind = match figure.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        self.one(&format!("netdyno_{}", figure.key), kind, figure.meaning, labels, &value);
    }

    /// Times, as a figure of a result names them.
    fn histogram(&mut self, figure: &Figure, histogram: &Histogram) {
        let name = &format!("netdyno_{}_seconds", figure.key);
        self.family(name, "histogram", figure.meaning);
        let bucket = format!("{name}_bucket");
        let mut buckets = histogram.buckets().peekable();
        let mut below = 0;
        for bound in BOUNDS_NS {
            // A bucket that reaches beyond the bound is counted in the next: never better than it was.
            while let Some(next) = buckets.next_if(|bucket| bucket.to <= bound) {
                below += next.count;
            }
            // OpenMetrics wants the canonical form of a float.
            let bound = format!("{:?}", bound as f64 / 1e9);
            self.sample(&bucket, &[("le", &bound)], &below);
        }
        self.sample(&bucket, &[("le", "+Inf")], &histogram.count());
        let sum = histogram.mean() * histogram.count() as f64 / 1e9;
        self.sample(&format!("{name}_sum"), &[], &sum);
        self.sample(&format!("{name}_count"), &[], &histogram.count());
    }
}

/// Inside the quotes of a label.
fn escaped(text: &str) -> String {
    report::units::printable(text).replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// The page.
pub fn render(moment: &Snapshot, format: Format) -> String {
    let mut page = Page { out: String::new(), format };
    about(&mut page, moment);
    counts(&mut page, moment);
    for (figure, histogram) in [(&latency::HISTOGRAM, &moment.latency), (&pacing::LATENESS, &moment.lateness)]
    {
        if let Some(histogram) = histogram {
            page.histogram(figure, histogram);
        }
    }
    workers(&mut page, moment);
    machine(&mut page, moment);
    passages(&mut page, moment);
    connections(&mut page, moment);
    flows(&mut page, moment);
    collected(&mut page, moment);
    cloned(&mut page, moment);
    endpoint(&mut page, moment);
    search(&mut page, moment);
    streams(&mut page, moment);
    let explaining = "Rise of counters of hosts and interfaces that tell where frames were lost.";
    if !moment.counters.is_empty() {
        page.family("netdyno_host_counter_rise", "counter", explaining);
    }
    for c in moment.counters.iter() {
        let labels = [("place", c.place.as_str()), ("source", &c.source), ("name", &c.name)];
        page.counter("netdyno_host_counter_rise", &labels, &c.rise);
    }
    if format == Format::OpenMetrics {
        page.out += "# EOF\n";
    }
    page.out
}

fn about(page: &mut Page, moment: &Snapshot) {
    let title = &moment.title;
    let (engine, meter) = (title.engine.as_deref(), title.meter.as_deref());
    let labels = [
        ("version", title.version.as_str()),
        ("command", &title.command),
        ("engine", engine.unwrap_or("")),
        ("meter", meter.unwrap_or("")),
    ];
    page.one("netdyno_build_info", "gauge", "What runs, and through what.", &labels, &1);
    let elapsed = seconds(moment.at_ns);
    page.one("netdyno_elapsed_seconds", "gauge", "Time since the start of the run.", &[], &elapsed);
    if let Some(left) = moment.remaining_ns {
        page.one("netdyno_remaining_seconds", "gauge", "Time to its end.", &[], &seconds(left));
    }
    page.family("netdyno_state", "gauge", "1 for the state that the run is in.");
    for phase in Phase::ALL {
        page.sample("netdyno_state", &[("state", phase.name())], &u8::from(phase == moment.phase));
    }
    let ratio = f64::from(moment.percent) / 100.0;
    page.one("netdyno_rate_ratio", "gauge", "Rate by hand, of the rate asked for.", &[], &ratio);
}

fn counts(page: &mut Page, moment: &Snapshot) {
    let interface = |name: &Option<String>| name.clone().unwrap_or_default();
    for (frames, bytes, count, interface) in [
        (&sent::FRAMES, &sent::BYTES, moment.tx, interface(&moment.title.tx)),
        (&received::FRAMES, &received::BYTES, moment.rx, interface(&moment.title.rx)),
    ] {
        let Some(count) = count else { continue };
        let labels = [("interface", interface.as_str())];
        page.figure(frames, &labels, count.frames);
        page.figure(bytes, &labels, count.bytes);
    }
    for (figure, value) in [
        (&sent::INTENDED, moment.intended),
        (&received::LOST_FRAMES, moment.lost),
        (&pacing::LATE, moment.late),
        (&received::DUPLICATED, moment.duplicated),
        (&received::REORDERED, moment.reordered),
        (&received::TRAILED, moment.trailed),
    ] {
        if let Some(value) = value {
            page.figure(figure, &[], value);
        }
    }
}

fn workers(page: &mut Page, moment: &Snapshot) {
    if moment.workers.is_empty() {
        return;
    }
    let labels: Vec<(String, String)> = moment
        .workers
        .iter()
        .enumerate()
        .map(|(n, worker)| (n.to_string(), worker.cpu.map_or_else(String::new, |cpu| cpu.to_string())))
        .collect();
    let labelled = || moment.workers.iter().zip(&labels);
    page.family("netdyno_worker_frames", "counter", "Frames sent by each sending thread.");
    for (worker, (n, cpu)) in labelled() {
        page.counter("netdyno_worker_frames", &[("worker", n), ("cpu", cpu)], &worker.sent.frames);
    }
    page.family("netdyno_worker_cpu_seconds", "counter", "CPU time of each sending thread.");
    for (worker, (n, cpu)) in labelled() {
        if let Some(ns) = worker.cpu_ns {
            page.counter("netdyno_worker_cpu_seconds", &[("worker", n), ("cpu", cpu)], &seconds(ns));
        }
    }
}

/// Cores, and the queues of interfaces.
fn machine(page: &mut Page, moment: &Snapshot) {
    // Ticks are USER_HZ a second, which is 100 on every architecture (time(7)).
    let numbers: Vec<String> = moment.cores.iter().map(|core| core.number.to_string()).collect();
    let rows = |of: fn(&snapshot::Core) -> u64| -> Vec<(Vec<Label<'_>>, f64)> {
        let cores = moment.cores.iter().zip(&numbers);
        cores.map(|(core, number)| (vec![("core", number.as_str())], of(core) as f64 / 100.0)).collect()
    };
    let busy = rows(|core| core.total_ticks.saturating_sub(core.idle_ticks));
    page.several(
        "netdyno_core_busy_seconds",
        "counter",
        "Time that each core of the machine was not idle.",
        &busy,
    );
    let interrupts = rows(|core| core.interrupt_ticks);
    let help = "The part of that in interrupts, where frames arrive.";
    page.several("netdyno_core_interrupt_seconds", "counter", help, &interrupts);
    let queues = moment.queues.iter().take(QUEUES).map(|queue| (queue, queue.number.to_string()));
    let queues: Vec<_> = queues.collect();
    let rows: Vec<_> = queues
        .iter()
        .map(|(queue, number)| {
            let way = if queue.receives { "rx" } else { "tx" };
            let labels = vec![("interface", queue.interface.as_str()), ("direction", way), ("queue", number)];
            (labels, queue.packets as f64)
        })
        .collect();
    let help = "Packets through each queue since the start, as the driver counts them.";
    page.several("netdyno_queue_packets", "counter", help, &rows);
}

/// A bridge's directions.
fn passages(page: &mut Page, moment: &Snapshot) {
    type Of = fn(&snapshot::Passage) -> u64;
    let families: [(&str, &str, Of); 4] = [
        ("received_frames", "Frames that arrived to be taken from one interface to the other.", |p| {
            p.received.frames
        }),
        ("received_bytes", "Bytes of those, without FCS.", |p| p.received.bytes),
        ("forwarded_frames", "Frames that left by the other interface.", |p| p.forwarded.frames),
        ("forwarded_bytes", "Bytes of those, without FCS.", |p| p.forwarded.bytes),
    ];
    for (name, help, of) in families {
        let rows: Vec<_> = moment
            .passages
            .iter()
            .map(|p| (vec![("from", p.from.as_str()), ("to", p.to.as_str())], of(p) as f64))
            .collect();
        page.several(&format!("netdyno_bridge_{name}"), "counter", help, &rows);
    }
}

fn connections(page: &mut Page, moment: &Snapshot) {
    let Some(c) = moment.connections else { return };
    let states = [("waiting", c.waiting), ("open", c.open), ("over", c.over)];
    let rows = states.map(|(state, count)| (vec![("state", state)], count as f64));
    page.several("netdyno_connections", "gauge", "Connections that are played, by state.", &rows);
    for (name, help, value) in [
        ("netdyno_connections_broken", "Connections that were broken off.", c.broken),
        ("netdyno_connection_retransmitted_segments", "Segments that were sent again.", c.retransmitted),
        ("netdyno_connection_said_bytes", "Bytes that servers have acknowledged.", c.said),
        ("netdyno_connection_heard_bytes", "Bytes that servers have said.", c.heard),
    ] {
        page.one(name, "counter", help, &[], &value);
    }
}

/// Of a flow collector.
fn collected(page: &mut Page, moment: &Snapshot) {
    let Some(c) = moment.collected else { return };
    page.one("netdyno_collector_exporters", "gauge", "Exporters.", &[], &c.exporters);
    for (name, help, value) in [
        ("netdyno_collector_records", "Flow records received.", c.records),
        ("netdyno_collector_messages", "Messages received.", c.messages),
        ("netdyno_collector_missing_records", "Records that did not arrive.", c.missing_records),
        ("netdyno_collector_missing_messages", "Messages that did not arrive.", c.missing_messages),
        ("netdyno_collector_dropped_messages", "Messages that this collector lost.", c.dropped_messages),
        ("netdyno_collector_unwritten_records", "Records that were not written.", c.unwritten_records),
    ] {
        page.one(name, "counter", help, &[], &value);
    }
}

/// Of a clone of sessions.
fn cloned(page: &mut Page, moment: &Snapshot) {
    let Some(c) = moment.cloned else { return };
    page.one(
        "netdyno_clone_open_sessions",
        "gauge",
        "Sessions copied at this moment.",
        &[],
        &c.open_sessions,
    );
    for (name, help, value) in [
        ("netdyno_clone_frames", "Frames captured.", c.frames),
        ("netdyno_clone_dropped_frames", "Frames lost before they were looked at.", c.dropped_frames),
        ("netdyno_clone_sessions", "Sessions seen.", c.sessions),
        ("netdyno_clone_copied_sessions", "Sessions copied.", c.copied_sessions),
        ("netdyno_clone_cut_sessions", "Copied sessions that ended with a gap.", c.cut_sessions),
        ("netdyno_clone_connected", "Connections to the target.", c.connected),
        ("netdyno_clone_unconnected", "Connections to the target that were not established.", c.unconnected),
        ("netdyno_clone_due_bytes", "Bytes to be said to the target.", c.due_bytes),
        ("netdyno_clone_sent_bytes", "Bytes said to the target.", c.sent_bytes),
        ("netdyno_clone_compared_answers", "Answers of both servers compared.", c.compared),
        ("netdyno_clone_different_answers", "Answers that differ.", c.different),
    ] {
        page.one(name, "counter", help, &[], &value);
    }
}

/// Of an endpoint test, or of a server of such.
fn endpoint(page: &mut Page, moment: &Snapshot) {
    let Some(e) = moment.endpoint else { return };
    for (name, help, value) in [
        ("netdyno_endpoint_sent_bytes", "Bytes of payload sent in streams.", Some(e.sent_bytes)),
        ("netdyno_endpoint_received_bytes", "Bytes of payload received in streams.", Some(e.received_bytes)),
        ("netdyno_endpoint_transactions", "Transactions that were answered.", e.transactions),
        ("netdyno_endpoint_retransmitted_segments", "Segments that were sent again.", e.retransmits),
        ("netdyno_endpoint_tests", "Tests that are over.", e.tests),
    ] {
        if let Some(value) = value {
            page.one(name, "counter", help, &[], &value);
        }
    }
    let seconds = |ns: Option<u64>| ns.map(|ns| ns as f64 / 1e9);
    for (name, help, value) in [
        (
            "netdyno_endpoint_latency_p50_seconds",
            "Latency of transactions in the last tenth of a second, p50.",
            seconds(e.latency_p50_ns),
        ),
        (
            "netdyno_endpoint_latency_p99_seconds",
            "Latency of transactions in the last tenth of a second, p99.",
            seconds(e.latency_p99_ns),
        ),
        ("netdyno_endpoint_rtt_seconds", "Mean smoothed round-trip time.", seconds(e.rtt_ns)),
        ("netdyno_endpoint_cwnd_bytes", "Sum of congestion windows.", e.cwnd_bytes.map(|bytes| bytes as f64)),
        ("netdyno_endpoint_clients", "Clients of the server.", e.clients.map(|count| count as f64)),
    ] {
        if let Some(value) = value {
            page.one(name, "gauge", help, &[], &value);
        }
    }
}

/// Of a flow probe.
fn flows(page: &mut Page, moment: &Snapshot) {
    let Some(f) = moment.flows else { return };
    page.one("netdyno_probe_active_flows", "gauge", "Flows under way.", &[], &f.active);
    for (name, help, value) in [
        ("netdyno_probe_ended_records", "Flow records that ended.", f.ended),
        ("netdyno_probe_sent_records", "Flow records that were sent to a collector.", f.sent),
        ("netdyno_probe_unsent_records", "Flow records that ended and were not sent.", f.unsent),
        ("netdyno_probe_dropped_frames", "Frames lost because the probe was slower.", f.dropped),
    ] {
        page.one(name, "counter", help, &[], &value);
    }
}

/// How far a search has come.
fn search(page: &mut Page, moment: &Snapshot) {
    let Some(search) = moment.search.as_deref() else { return };
    let (part, size) = (search.part.as_str(), search.frame_size.as_str());
    let what = [("part", part), ("frame_size", size)];
    page.one("netdyno_search_info", "gauge", "What is searched for now.", &what, &1);
    let failed = search.trials.saturating_sub(search.passed);
    let rows = [("passed", search.passed), ("failed", failed)];
    let rows = rows.map(|(verdict, count)| (vec![("verdict", verdict)], count as f64));
    page.several("netdyno_search_trials", "counter", "Trials that are over.", &rows);
    let unit = if search.of_rate { "frames_per_second" } else { "count" };
    let load = "The load that is tried now.";
    page.one("netdyno_search_load", "gauge", load, &[("unit", unit)], &search.load);
    let mut rows = Vec::new();
    for bound in &search.bounds {
        for (which, value) in [("passed", bound.lower), ("failed", bound.upper)] {
            let labels = vec![("goal", bound.goal.as_str()), ("bound", which), ("unit", unit)];
            rows.extend(value.map(|value| (labels, value)));
        }
    }
    let help = "The highest load that passed and the lowest above it that failed, by goal.";
    page.several("netdyno_search_bound", "gauge", help, &rows);
}

fn streams(page: &mut Page, moment: &Snapshot) {
    if moment.streams.is_empty() {
        return;
    }
    let told = &moment.streams[..moment.streams.len().min(STREAMS)];
    let untold = moment.streams.len() as u64 - told.len() as u64 + moment.streams_beyond;
    page.one(
        "netdyno_streams_untold",
        "gauge",
        "Streams beyond those that are listed one by one.",
        &[],
        &untold,
    );
    type Of = fn(&snapshot::Stream) -> u64;
    let families: [(&str, &str, &str, Of); 5] = [
        ("rx_frames", "counter", "Frames received of each stream.", |s| s.received.frames),
        ("rx_bytes", "counter", "Bytes of those, without FCS.", |s| s.received.bytes),
        ("lost_frames", "gauge", "Sequence numbers of each stream that did not arrive.", |s| s.lost),
        ("duplicated_frames", "counter", "Frames of each stream that had come before.", |s| s.duplicated),
        ("reordered_frames", "counter", "Frames of each stream that came late.", |s| s.reordered),
    ];
    for (name, kind, help, of) in families {
        let name = format!("netdyno_stream_{name}");
        page.family(&name, kind, help);
        for stream in told {
            let number = stream.number.to_string();
            let labels = [("stream", number.as_str()), ("name", stream.name.as_deref().unwrap_or(""))];
            let value = of(stream);
            if kind == "counter" {
                page.counter(&name, &labels, &value);
            } else {
                page.sample(&name, &labels, &value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use snapshot::{Count, Stream, Title};
    use std::sync::Arc;

    fn moment() -> Snapshot {
        let mut latency = Histogram::new();
        [900, 1_000, 1_500, 3_000_000, 60_000_000_000].into_iter().for_each(|ns| latency.record(ns));
        let name = Some("a \"b\" \\ \n\x1b[2J".into());
        let stream =
            Stream { number: 7, name, received: Count { frames: 5, bytes: 300 }, ..Stream::default() };
        Snapshot {
            title: Arc::new(Title { command: "send".into(), tx: Some("v0".into()), ..Title::default() }),
            percent: 100,
            tx: Some(Count { frames: 6, bytes: 360 }),
            rx: Some(Count { frames: 5, bytes: 300 }),
            lost: Some(1),
            latency: Some(Arc::new(latency)),
            streams: Arc::new([stream]),
            ..Snapshot::default()
        }
    }

    #[test]
    fn both_formats_name_counters_as_they_must() {
        let text = render(&moment(), Format::Prometheus);
        assert!(text.contains(
            "# TYPE netdyno_tx_frames_total counter\nnetdyno_tx_frames_total{interface=\"v0\"} 6\n"
        ));
        assert!(text.ends_with('\n') && !text.contains("# EOF"));
        let text = render(&moment(), Format::OpenMetrics);
        assert!(
            text.contains("# TYPE netdyno_tx_frames counter\nnetdyno_tx_frames_total{interface=\"v0\"} 6\n")
        );
        assert!(text.ends_with("# EOF\n"));
    }

    /// A moment that has everything.
    fn full() -> Snapshot {
        let search = snapshot::Search {
            part: "throughput".into(),
            frame_size: "512".into(),
            of_rate: true,
            load: 1e6,
            trials: 3,
            passed: 1,
            bounds: vec![snapshot::Bound { goal: "loss=0%".into(), lower: Some(1.0), upper: Some(2.0) }],
            ..snapshot::Search::default()
        };
        let queue = snapshot::Queue { interface: "v0".into(), receives: true, number: 1, packets: 3 };
        let passage =
            snapshot::Passage { from: "v0".into(), to: "v1".into(), ..snapshot::Passage::default() };
        let counter = snapshot::Counter {
            place: "v0".into(),
            name: "rx_dropped".into(),
            ..snapshot::Counter::default()
        };
        Snapshot {
            remaining_ns: Some(1),
            intended: Some(1),
            reordered: Some(0),
            duplicated: Some(0),
            trailed: Some(0),
            late: Some(0),
            lateness: Some(Arc::new(Histogram::new())),
            workers: vec![snapshot::Worker { cpu_ns: Some(1), ..snapshot::Worker::default() }],
            cores: Arc::new([snapshot::Core {
                number: 0,
                total_ticks: 250,
                idle_ticks: 50,
                interrupt_ticks: 1,
            }]),
            counters: Arc::new([counter]),
            queues: Arc::new([queue]),
            passages: vec![passage],
            connections: Some(snapshot::Connections::default()),
            flows: Some(snapshot::Flows::default()),
            collected: Some(snapshot::Collected::default()),
            cloned: Some(snapshot::Cloned::default()),
            endpoint: Some(snapshot::Endpoint {
                transactions: Some(1),
                retransmits: Some(1),
                latency_p50_ns: Some(1),
                latency_p99_ns: Some(1),
                rtt_ns: Some(1),
                ..snapshot::Endpoint::default()
            }),
            search: Some(Arc::new(search)),
            ..moment()
        }
    }

    /// https://prometheus.io/docs/practices/naming and what `promtool check metrics` finds fault with.
    #[test]
    fn names_follow_prometheus_rules_and_each_family_is_described_once() {
        let text = render(&full(), Format::Prometheus);
        let (mut families, mut kind) = (Vec::new(), "");
        for line in text.lines() {
            let mut words = line.split(' ');
            match (words.next(), words.next(), words.next(), words.next()) {
                (Some("#"), Some("HELP"), Some(name), Some(_)) => {
                    assert!(!families.contains(&name), "{name} twice");
                    assert!(name.starts_with("netdyno_"), "{name}");
                    assert!(
                        name.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_'),
                        "{name}"
                    );
                    let foreign = [
                        "ns",
                        "ms",
                        "us",
                        "bits",
                        "milliseconds",
                        "microseconds",
                        "nanoseconds",
                        "kilobytes",
                    ];
                    assert!(!name.split('_').any(|part| foreign.contains(&part)), "{name}: no base unit");
                    families.push(name);
                }
                (Some("#"), Some("TYPE"), Some(name), Some(of)) => {
                    assert_eq!(families.last(), Some(&name), "HELP and TYPE follow each other");
                    assert_eq!(name.ends_with("_total"), of == "counter", "{name}");
                    assert!(
                        of == "histogram"
                            || !["_count", "_sum", "_bucket"].iter().any(|end| name.ends_with(end))
                    );
                    kind = of;
                }
                (Some(sample), _, _, _) => {
                    let name = sample.split('{').next().expect("a name");
                    let family = families.last().expect("a family before its samples");
                    let own = if kind == "histogram" { name.starts_with(family) } else { name == *family };
                    assert!(own, "{sample} among those of {family}");
                }
                _ => panic!("{line}"),
            }
        }
        assert!(families.len() > 30, "{families:?}");
        assert!(text.contains("netdyno_core_busy_seconds_total{core=\"0\"} 2\n"), "{text}");
        for sample in [
            "netdyno_search_bound{goal=\"loss=0%\",bound=\"failed\",unit=\"frames_per_second\"} 2",
            "netdyno_queue_packets_total{interface=\"v0\",direction=\"rx\",queue=\"1\"} 3",
        ] {
            assert!(text.contains(sample), "{text}");
        }
    }

    /// examples/grafana/netdyno.json: each of its expressions names series and labels that are served.
    #[test]
    fn the_dashboard_asks_for_what_is_served() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/grafana/netdyno.json");
        let dashboard = std::fs::read_to_string(file).expect("the dashboard");
        let dashboard: serde_json::Value = serde_json::from_str(&dashboard).expect("JSON");
        let text = render(&full(), Format::Prometheus);
        let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let targets =
            dashboard["panels"].as_array().expect("panels").iter().filter_map(|p| p["targets"].as_array());
        let mut asked = 0;
        for target in targets.flatten() {
            let expression = target["expr"].as_str().expect("an expression");
            let from = expression.find("netdyno_").expect(expression);
            let name = expression[from..]
                .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .next()
                .expect("a name");
            let one =
                |sample: &&&str| sample.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']));
            let sample = samples.iter().find(one).unwrap_or_else(|| panic!("{name} is not served"));
            // Labels in `by (...)`, and those in a legend.
            let by = expression.split_once("by (").and_then(|(_, rest)| rest.split_once(')'));
            let legend = target["legendFormat"].as_str().expect("a legend").split("{{").skip(1);
            let labels =
                legend.filter_map(|rest| Some(rest.split_once("}}")?.0)).chain(by.map(|(labels, _)| labels));
            for label in labels {
                assert!(sample.contains(&format!("{label}=\"")), "{name} has no label {label}: {sample}");
            }
            asked += 1;
        }
        assert!(asked > 40, "{asked}");
    }

    #[test]
    fn buckets_add_up_and_what_is_longer_than_all_is_in_the_last() {
        let text = render(&moment(), Format::Prometheus);
        // 1,000 ns share a bucket with 1,023.
        for (bound, below) in [("1e-6", 1), ("2e-6", 3), ("0.002", 3), ("0.005", 4), ("10.0", 4), ("+Inf", 5)]
        {
            let line = format!("netdyno_latency_seconds_bucket{{le=\"{bound}\"}} {below}\n");
            assert!(text.contains(&line), "no {line} in {text}");
        }
        assert!(text.contains("netdyno_latency_seconds_count 5\n"));
    }

    #[test]
    fn a_name_from_a_file_stays_within_its_quotes() {
        let text = render(&moment(), Format::Prometheus);
        assert!(text.contains("name=\"a \\\"b\\\" \\\\ \\\\n\\\\u{1b}[2J\"} 5\n"), "{text}");
    }

    proptest! {
        #[test]
        fn a_sample_is_always_one_line(name in any::<String>()) {
            let mut moment = moment();
            let lines = render(&moment, Format::Prometheus).lines().count();
            moment.streams = Arc::new([Stream { name: Some(name.into()), ..Stream::default() }]);
            prop_assert_eq!(render(&moment, Format::Prometheus).lines().count(), lines);
        }
    }
}
