//! `netdyno collect`: flow records of NetFlow, IPFIX and sFlow are received, checked and written.
//!
//! ```text
//!   UDP --> receive      \
//!                         flow::collect, a session for each exporter or connection --queues--> writers (a thread each)
//!   TCP --> connections  /
//!           (threads, SO_REUSEPORT)
//! ```
//!
//! The queues are bounded, and receiving never waits for a writer: what finds no room is counted.

mod connections;
mod exporters;
mod place;
mod receive;
mod writer;

use super::{Run, passive};
use crate::panel::Names;
use crate::session::{Looked, Session};
use crate::timekeeping::Timekeeping;
use anyhow::{Context, Result, bail};
use exporters::OTHERS;
use place::Place;
use receive::{Came, Done, Running, Standing};
use report::{Code, Collection, Exported, Exporter, Interval, Report, Resolved, Written};
use snapshot::{Snapshot, Title};
use spec::{Collect, KafkaKey, PartitionBy};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use store::{Brokers, ClickHouse, Files, Form, Kafka, Kept, Key, Partition, Plan, Server, Sink};
use writer::Writer;

/// Exporters that the result lists.
const MOST_LISTED: usize = 1000;

impl Run for Collect {
    fn run(&self, session: Session) -> Result<Report> {
        run(self, &session)
    }
}

fn run(args: &Collect, session: &Session) -> Result<Report> {
    passive::check(args)?;
    let places: Vec<Place> = args.listen.iter().map(|name| Place::find(name)).collect::<Result<_>>()?;
    let threads = args.threads.unwrap_or(1);
    let over = Arc::new(AtomicBool::new(false));
    // Where it cannot listen or write is said before anything is begun.
    let mut sockets = Vec::new();
    for (name, place) in args.listen.iter().zip(&places) {
        let opened = place.open(&places, threads, args.share_port);
        sockets.extend(opened.with_context(|| format!("`.listen` {name}"))?);
    }
    let sinks = sinks(args, session)?;
    session.stop_in_order();
    let mut report = Report::new("collect");
    report.resolved = Resolved {
        count: args.count.as_deref().copied(),
        duration_ns: args.duration.as_deref().map(|d| d.as_nanos() as u64),
        ..Resolved::default()
    };
    report.environment = crate::environment::collect();
    session.meet()?;
    session.say(Code::Begun, format!("collecting at {}; Ctrl-C ends and reports", args.listen.join(", ")));
    let title = Title { rx: Some(args.listen.join(", ")), ..passive::title("collect") };
    let mut panel = passive::panel(session, title, &report, &[], Names::unknown(0))?;

    let mut writers = Vec::new();
    let mut queues = Vec::new();
    for (name, sink) in sinks {
        let (queue, writer) = Writer::start(name, sink).context("a thread of a writer")?;
        queues.push(queue);
        writers.push(writer);
    }
    let time = Timekeeping::begin();
    let mut receivers = Vec::new();
    for socket in sockets {
        receivers.push(socket.start(queues.clone(), &over).context("a thread of a receiver")?);
    }
    drop(queues);
    let count = args.count.as_deref().copied();
    let mut said = vec![false; writers.len()];
    let duration = args.duration.as_deref().copied();
    let watched = session.watch(&mut panel, duration, |_| {
        let all: Vec<Standing> = receivers.iter().map(Running::standing).collect();
        let kept: Vec<Kept> = writers.iter().map(Writer::kept).collect();
        // While it can still be mended: the result says it again, at the end.
        for (fault, said) in kept.iter().map(|kept| &kept.fault).zip(&mut said) {
            if let Some(fault) = fault.as_ref().filter(|_| !std::mem::replace(said, fault.is_some())) {
                session.say(Code::RecordsUnwritten, fault.clone());
            }
        }
        look(&all, kept.iter().map(|kept| kept.lost).max().unwrap_or(0), count)
    });
    over.store(true, Relaxed);
    let done: Vec<Done> = receivers.into_iter().map(Running::finish).collect();
    let written: Vec<(String, Kept)> = writers.into_iter().map(Writer::finish).collect();
    session.board.end();
    report.intervals = watched.samples.intervals().map(interval).collect();
    watched.judge(&mut report);
    fill(&mut report, &done, &written);
    judge(&mut report, &done, &written);
    if time.was_set() {
        let said = "this host's clock was set while it ran: the times at which records were received are of both before and after";
        report.warnings.add(Code::ClockSet, said);
    }
    let came = report.result.collection.as_ref().map_or(0, |collection| collection.all.records);
    passive::judge_count(&mut report, count, came, ("flow records", "came"));
    Ok(report)
}

/// Where records are written to.
fn sinks(args: &Collect, session: &Session) -> Result<Vec<(String, Box<dyn Sink>)>> {
    let file = |path: &PathBuf| -> Result<Box<dyn Sink>> {
        let Some(form) = Form::of(path) else {
            bail!("records are written as .csv, .jsonl, .pb or .parquet: give the file one of these endings")
        };
        let plan = Plan {
            path: path.clone(),
            form,
            every: args.rotate.as_deref().copied(),
            size: args.rotate_size.as_deref().copied(),
            partition: args.partition.map(|by| match by {
                PartitionBy::Hour => Partition::Hour,
                PartitionBy::Day => Partition::Day,
            }),
        };
        Ok(Box::new(Files::create(plan)?))
    };
    let each = args.write.iter();
    let files = each.map(|path| {
        let name = path.display().to_string();
        let sink = file(path).with_context(|| format!("`.write` {name}"))?;
        Ok((name, sink))
    });
    let mut sinks: Vec<(String, Box<dyn Sink>)> = files.collect::<Result<_>>()?;
    if let Some(database) = &args.clickhouse {
        let sink = clickhouse(database, session).context("`.clickhouse`")?;
        sinks.push((database.url.clone(), Box::new(sink)));
    }
    if let Some(cluster) = &args.kafka {
        let name = format!("Kafka at {}", cluster.brokers.join(","));
        sinks.push((name, Box::new(kafka(cluster).context("`.kafka`")?)));
    }
    Ok(sinks)
}

fn kafka(cluster: &spec::Kafka) -> Result<Kafka> {
    let key = match cluster.key {
        None | Some(KafkaKey::None) => Key::None,
        Some(KafkaKey::Sampler) => Key::Sampler,
    };
    let topic = cluster.topic.clone().unwrap_or_else(|| "flows".to_owned());
    Ok(Kafka::open(Brokers { addresses: cluster.brokers.clone(), topic, key })?)
}

fn clickhouse(database: &spec::ClickHouse, session: &Session) -> Result<ClickHouse> {
    let password = match &database.password_file {
        None => String::new(),
        Some(file) => {
            let text = std::fs::read_to_string(file)
                .with_context(|| format!("`.password_file` {}", file.display()))?;
            text.lines().next().unwrap_or_default().to_owned()
        }
    };
    let server = Server {
        url: database.url.clone(),
        table: database.table.clone().unwrap_or_else(|| "flows".to_owned()),
        user: database.user.clone().unwrap_or_default(),
        password,
    };
    let run = format!("{}-{}", clocks::now(clocks::Clock::Realtime), std::process::id());
    let table = server.table.clone();
    let sink = ClickHouse::open(server, run)?;
    if sink.has_made_table() {
        session.say(Code::Begun, format!("made table {table} at {}", database.url));
    }
    Ok(sink)
}

/// How it stands.
fn look(all: &[Standing], lost: u64, count: Option<u64>) -> Looked<'static, (u64, u64)> {
    let sum = all.iter().fold(Standing::default(), |sum, one| sum.plus(one));
    let snapshot = Snapshot {
        collected: Some(snapshot::Collected {
            records: sum.records,
            messages: sum.messages,
            exporters: sum.exporters,
            missing_records: sum.missing_records,
            missing_messages: sum.missing_messages,
            dropped_messages: sum.dropped,
            unwritten_records: lost,
        }),
        ..Snapshot::default()
    };
    let over = count.is_some_and(|count| sum.records >= count);
    Looked::of((sum.messages, sum.bytes), over, snapshot)
}

fn interval([(start_ns, before), (end_ns, now)]: [(u64, (u64, u64)); 2]) -> Interval {
    Interval {
        start_ns,
        end_ns,
        rx_frames: Some(now.0 - before.0),
        rx_bytes: Some(now.1 - before.1),
        ..Interval::default()
    }
}

fn exported(of: &Came) -> Exported {
    let counters = &of.counters;
    Exported {
        messages: counters.messages,
        message_bytes: counters.bytes,
        records: counters.records,
        packets: of.packets,
        octets: of.octets,
        options_records: counters.options,
        templates: counters.templates,
        malformed_messages: counters.malformed,
        unread_sets: counters.waiting_sets + counters.lost_sets,
        missing_records: counters.missing_records,
        missing_messages: counters.missing_messages,
        uncounted_records: counters.uncounted_records,
        late_messages: counters.late_messages,
        duplicate_messages: counters.duplicate_messages,
        duplicate_records: counters.duplicate_records,
        restarts: counters.restarts,
        refused_templates: counters.refused,
        unsent_records: counters.unsent[0],
        unmetered_packets: counters.ignored_packets,
        unknown_sampling_records: counters.asides.unknown_sampling,
        reserved_sets: counters.asides.reserved_sets,
        unread_samples: counters.asides.unread_samples,
        missing_samples: counters.asides.missing_samples,
        dropped_samples: counters.asides.dropped_samples,
        miscounted_messages: counters.asides.miscounted_messages,
    }
}

fn plus(a: Exported, b: &Exported) -> Exported {
    Exported {
        messages: a.messages + b.messages,
        message_bytes: a.message_bytes + b.message_bytes,
        records: a.records + b.records,
        packets: a.packets.saturating_add(b.packets),
        octets: a.octets.saturating_add(b.octets),
        options_records: a.options_records + b.options_records,
        templates: a.templates + b.templates,
        malformed_messages: a.malformed_messages + b.malformed_messages,
        unread_sets: a.unread_sets + b.unread_sets,
        missing_records: a.missing_records + b.missing_records,
        missing_messages: a.missing_messages + b.missing_messages,
        uncounted_records: a.uncounted_records + b.uncounted_records,
        late_messages: a.late_messages + b.late_messages,
        duplicate_messages: a.duplicate_messages + b.duplicate_messages,
        duplicate_records: a.duplicate_records + b.duplicate_records,
        restarts: a.restarts + b.restarts,
        refused_templates: a.refused_templates + b.refused_templates,
        unsent_records: a.unsent_records.saturating_add(b.unsent_records),
        unmetered_packets: a.unmetered_packets.saturating_add(b.unmetered_packets),
        unknown_sampling_records: a.unknown_sampling_records + b.unknown_sampling_records,
        reserved_sets: a.reserved_sets + b.reserved_sets,
        unread_samples: a.unread_samples + b.unread_samples,
        missing_samples: a.missing_samples + b.missing_samples,
        dropped_samples: a.dropped_samples + b.dropped_samples,
        miscounted_messages: a.miscounted_messages + b.miscounted_messages,
    }
}

fn fill(report: &mut Report, done: &[Done], written: &[(String, Kept)]) {
    // Several threads may have had connections from the same address.
    let mut by_name: BTreeMap<&str, Came> = BTreeMap::new();
    for (from, of) in done.iter().flat_map(|done| &done.exporters) {
        let sum = by_name.entry(from).or_default();
        *sum = sum.plus(of);
    }
    let mut by_exporter: Vec<Exporter> = by_name
        .into_iter()
        .map(|(from, of)| Exporter { from: from.to_owned(), exported: exported(&of) })
        .collect();
    by_exporter.sort_by(|a, b| b.exported.records.cmp(&a.exported.records).then_with(|| a.from.cmp(&b.from)));
    let all = by_exporter.iter().fold(Exported::default(), |sum, one| plus(sum, &one.exported));
    let first = done.iter().filter_map(|done| done.first).min();
    let last = done.iter().filter_map(|done| done.last).max();
    let lasted =
        last.zip(first).map_or(Duration::ZERO, |(last, first)| last.saturating_duration_since(first));
    let exporters = by_exporter.iter().filter(|one| !one.from.ends_with(OTHERS)).count() as u64;
    by_exporter.truncate(MOST_LISTED);
    report.result.collection = Some(Collection {
        // What came at one moment has no rate.
        records_per_second: (!lasted.is_zero()).then(|| all.records as f64 / lasted.as_secs_f64()),
        dropped_messages: done.iter().map(|done| done.standing.dropped).sum(),
        connections: done.iter().map(|done| done.standing.connections).sum(),
        closed_connections: done.iter().map(|done| done.standing.closed).sum(),
        // What each of them has, and what at least one of them lacks.
        written_records: written.iter().map(|(_, kept)| kept.records).min().unwrap_or(0),
        unwritten_records: written.iter().map(|(_, kept)| kept.lost).max().unwrap_or(0),
        trimmed_records: done.iter().map(|done| done.standing.trimmed).sum(),
        sinks: written.iter().map(sink).collect(),
        forgotten_exporters: done.iter().map(|done| done.standing.forgotten).sum(),
        exporters,
        all,
        by_exporter,
    });
}

fn sink((to, kept): &(String, Kept)) -> Written {
    Written {
        to: to.clone(),
        written_records: kept.records,
        unwritten_records: kept.lost,
        faults: kept.faults,
        fault: kept.fault.clone(),
    }
}

/// What must add up: each message that was received is some exporter's, each record that was read is a row, or two where it counts both
/// directions, and each row that was handed out is written or counted as not written, by each writer.
fn add_up(verdict: &mut report::Verdict, done: &[Done], messages: u64, written: &[(String, Kept)]) {
    let count = report::units::count;
    for fault in done.iter().filter_map(|done| done.fault.as_ref()) {
        verdict.fall_short(Code::MessagesDropped, fault.clone());
    }
    let sum = done.iter().fold(Standing::default(), |sum, done| sum.plus(&done.standing));
    let (received, rows) = (sum.messages, sum.rows);
    if received != messages && done.iter().all(|done| done.fault.is_none()) {
        let said = format!(
            "of {} that were received {} are counted for exporters: this is a defect of netdyno",
            report::units::counted(received, "message"),
            count(messages)
        );
        verdict.fall_short(Code::CountersDisagree, said);
    }
    let read = done.iter().flat_map(|done| &done.exporters).fold((0, 0), |(records, again), (_, came)| {
        (records + came.counters.records, again + came.counters.two_way_records)
    });
    // Without a writer there are no rows.
    if !written.is_empty() && read.0 + read.1 != rows && done.iter().all(|done| done.fault.is_none()) {
        let said = format!(
            "{} were read, {} of them of both directions, and {} became of them: this is a defect of netdyno",
            report::units::counted(read.0, "record"),
            count(read.1),
            report::units::counted(rows, "row")
        );
        verdict.fall_short(Code::CountersDisagree, said);
    }
    for (to, kept) in written.iter().filter(|(_, kept)| kept.records + kept.lost != rows) {
        verdict.fall_short(
            Code::RecordsUnwritten,
            format!(
                "of {} handed to {to} {} are counted as written and {} as not written: this is a defect of netdyno",
                report::units::counted(rows, "row"),
                count(kept.records),
                count(kept.lost)
            ),
        );
    }
}

fn judge(report: &mut Report, done: &[Done], written: &[(String, Kept)]) {
    let counted = report::units::counted;
    let report::Achieved { collection: Some(collection), verdict, .. } = &mut report.result else { return };
    add_up(verdict, done, collection.all.messages, written);
    for (to, kept) in written {
        if let Some(fault) = &kept.fault {
            verdict.fall_short(Code::RecordsUnwritten, fault.clone());
        }
        if kept.lost > 0 {
            let said = format!("{} came and were not written to {to}", counted(kept.lost, "record"));
            verdict.fall_short(Code::RecordsUnwritten, said);
        }
    }
    if collection.dropped_messages > 0 {
        let said = format!(
            "this collector lost {} that had arrived, or more (of those that the kernel had joined it counts several as one): what is \
             missing of them is no exporter's loss",
            counted(collection.dropped_messages, "message")
        );
        verdict.fall_short(Code::MessagesDropped, said);
    }
    warn(&mut report.warnings, collection);
}

/// What is to be known of what came.
fn warn(warnings: &mut report::Warnings, collection: &Collection) {
    let (counted, all) = (report::units::counted, &collection.all);
    if all.messages == 0 {
        let said = "no message of any exporter came: its own counters say whether it sends, `tcpdump -ni any udp` here what arrives before a \
                    firewall";
        warnings.add(Code::NothingCame, said);
    }
    if collection.trimmed_records > 0 {
        let said = format!(
            "{} were written without some of their fields that have no column: of a record {} bytes of these have room",
            counted(collection.trimmed_records, "record"),
            report::units::count(store::MOST_OTHERS as u64)
        );
        warnings.add(Code::RecordsUnwritten, said);
    }
    if collection.closed_connections > 0 {
        let said = format!(
            "{} of {} were closed here: a message could not be read, or there was no room",
            report::units::count(collection.closed_connections),
            counted(collection.connections, "connection")
        );
        warnings.add(Code::MessagesUnread, said);
    }
    if all.missing_records + all.missing_messages > 0 {
        let said = format!(
            "by the exporters' numbers {} and {} did not arrive",
            counted(all.missing_records, "record"),
            counted(all.missing_messages, "message")
        );
        warnings.add(Code::RecordsMissing, said);
    }
    if all.uncounted_records > 0 {
        let said = format!(
            "{} did not arrive, or arrived in sets without a template: which of the two cannot be known",
            counted(all.uncounted_records, "record")
        );
        warnings.add(Code::RecordsMissing, said);
    }
    if all.duplicate_messages > 0 {
        let said = format!(
            "{} came twice: {} of them are counted and written twice",
            counted(all.duplicate_messages, "message"),
            counted(all.duplicate_records, "record")
        );
        warnings.add(Code::MessagesTwice, said);
    }
    if all.restarts > 0 {
        let said = format!(
            "exporters began to count anew {}: what was lost around each is not known",
            counted(all.restarts, "time")
        );
        warnings.add(Code::ExporterRestarted, said);
    }
    if all.refused_templates + collection.forgotten_exporters > 0 {
        let said = format!(
            "{} had no room or lost it to others, and {} that were silent for long or gave way to others are told by their addresses: \
             records of them could perhaps not be read",
            counted(all.refused_templates, "template"),
            counted(collection.forgotten_exporters, "exporter")
        );
        warnings.add(Code::MessagesUnread, said);
    }
    if all.malformed_messages + all.unread_sets > 0 {
        let said = format!(
            "{} could not be read to their end, and {} had no template",
            counted(all.malformed_messages, "message"),
            counted(all.unread_sets, "set")
        );
        warnings.add(Code::MessagesUnread, said);
    }
    if all.reserved_sets + all.unread_samples > 0 {
        let said = format!(
            "{} of reserved numbers and {} of sFlow gave no records: not of IP, cut off, or of kinds that are not known",
            counted(all.reserved_sets, "set"),
            counted(all.unread_samples, "sample")
        );
        warnings.add(Code::MessagesUnread, said);
    }
    if all.miscounted_messages > 0 {
        let said = format!(
            "the counts or lengths of {} disagree with the records that were read in them: templates may have changed without a word",
            counted(all.miscounted_messages, "message")
        );
        warnings.add(Code::MessagesUnread, said);
    }
    if all.missing_samples + all.dropped_samples > 0 {
        let said = format!(
            "by the numbers of sFlow's sources {} did not arrive, and agents say that they dropped {}",
            counted(all.missing_samples, "sample"),
            counted(all.dropped_samples, "sample")
        );
        warnings.add(Code::RecordsMissing, said);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use report::Verdict;

    #[test]
    fn messages_of_no_exporter_and_rows_of_no_writer_are_told() {
        let said = |messages: u64, kept: u64, records: u64| {
            let standing = Standing { messages: 5, rows: 7, ..Standing::default() };
            let counters = flow::collect::Counters { records, two_way_records: 2, ..Default::default() };
            let exporters = vec![("192.0.2.1:9".to_owned(), Came { counters, ..Came::default() })];
            let done = [Done { standing, exporters, ..Done::default() }];
            let written = [("flows.csv".to_owned(), Kept { records: kept, ..Kept::default() })];
            let mut verdict = Verdict::Done;
            add_up(&mut verdict, &done, messages, &written);
            format!("{verdict:?}")
        };
        assert_eq!(said(5, 7, 5), "Done");
        assert!(said(4, 7, 5).contains("of 5 messages that were received 4 are counted for exporters"));
        assert!(said(5, 6, 5).contains("of 7 rows handed to flows.csv 6 are counted as written"));
        assert!(
            said(5, 7, 6)
                .contains("6 records were read, 2 of them of both directions, and 7 rows became of them")
        );
        // A receiver that panicked says so, and not that counts differ.
        let mut verdict = Verdict::Done;
        add_up(&mut verdict, &[Done { fault: Some("it panicked".to_owned()), ..Done::default() }], 3, &[]);
        let said = format!("{verdict:?}");
        assert!(said.contains("it panicked") && !said.contains("counted for exporters"));
    }

    #[test]
    fn strangers_are_no_exporters_and_one_message_has_no_rate() {
        let came = |messages| Came {
            counters: flow::collect::Counters { messages, records: messages, ..Default::default() },
            ..Came::default()
        };
        let now = std::time::Instant::now();
        let exporters = vec![("192.0.2.1:9".to_owned(), came(1)), (OTHERS.to_owned(), came(3))];
        let done = [Done { exporters, first: Some(now), last: Some(now), ..Done::default() }];
        let mut report = Report::new("collect");
        fill(&mut report, &done, &[]);
        let collection = report.result.collection.expect("one");
        assert_eq!((collection.exporters, collection.by_exporter.len()), (1, 2));
        assert_eq!((collection.all.messages, collection.records_per_second), (4, None));
    }
}
