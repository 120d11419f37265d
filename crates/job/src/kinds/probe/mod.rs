//! `netdyno probe`: what arrives and leaves, or what captures hold, is counted by flows, and their records are exported.
//!
//! ```text
//!   frames --> meter (a thread): flow::packet, flow::table, flow::export --queue--> sender (a thread) --> datagrams: UDP, link: TCP
//! ```
//!
//! The queue is bounded, and the meter never waits for it while frames arrive: what has no room is counted, and the
//! collectors are told (RFC 7011, 4.3).

mod datagrams;
mod link;
mod meter;
mod sender;
mod source;
mod witness;

use super::{Run, passive};
use crate::carrier::{self, Ends};
use crate::panel::Names;
use crate::place::Place;
use crate::session::{Looked, Session};
use anyhow::{Context, Result, bail};
use flow::export::{Exporter, LONGEST, Settings};
use flow::packet::Choice as Headers;
use flow::sampling::Flows;
use flow::table::{Limits, MOST_FLOWS, Table, bytes_of_signatures, bytes_per_flow, bytes_per_flow_both_ways};
use flow::template::{self, Context as Beside, SIGNED, Version};
use meter::{Meter, Seen};
use report::{Choice, Code, Interval, Report, Rx, Totals};
use sender::Sender;
use snapshot::{Count, Snapshot, Title};
use source::Source;
use spec::{ExportFormat, FlowDirection, Probe};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use witness::Witness;

/// Of who names none; nProbe has 30 s and 120 s, routers 15 s and 60 s.
const IDLE: Duration = Duration::from_secs(15);
const ACTIVE: Duration = Duration::from_secs(60);
const CLOSED: Duration = Duration::from_secs(1);
const REFRESH: Duration = Duration::from_secs(60);
const FLOWS: u32 = 1 << 20;
/// Records of captures a second: a collector that loses nothing of them is easy to find.
const CAPTURE_RATE: u32 = 100_000;
/// Routers have the same; no more often than once a second.
const REFRESH_MESSAGES: u32 = 20;

impl Run for Probe {
    fn run(&self, session: Session) -> Result<Report> {
        run(self, &session)
    }
}

fn run(args: &Probe, session: &Session) -> Result<Report> {
    passive::check(args)?;
    if args.balance && args.export.len() < 2 {
        bail!("`.balance` shares messages among collectors: name a second one by `.export`, or leave it out");
    }
    let place = args.on.as_deref().map(Place::find).transpose()?;
    if let Some(place) = &place {
        up(place)?;
    }
    // Captures are opened first: when the exporter began is a time before all of theirs.
    let (captures, begins) = match args.captures.is_empty() {
        true => (None, None),
        false => {
            let (source, begins) = Source::captures(&args.captures)?;
            (Some(source), begins)
        }
    };
    let began_ns =
        begins.map_or_else(|| meter::just_before(clocks::now(clocks::Clock::Realtime)), meter::before);
    let settings = settings(args, place.as_ref(), began_ns);
    // What is wrong with it is said before anything is begun.
    let exporter = Exporter::new(settings.clone()).context("`.template`")?;
    let limits = limits(args, &exporter)?;
    let sender = Sender::open(&args.export, &settings, args.balance, rate(args)).context("`.export`")?;
    session.stop_in_order();
    let mut ends = Ends::none();
    if let Some(place) = &place {
        ends.optional(place, "probe")?;
    }
    let begins_with_frame = captures.is_some() && begins.is_none();
    let (source, way) = match (&place, captures) {
        (Some(place), _) => {
            let (source, way) = Source::live(args, place, &session.consent.yes_disrupt)?;
            (source, Some(way))
        }
        (None, Some(captures)) => (captures, None),
        (None, None) => bail!("what is to be metered? Name an interface, or captures"),
    };
    let mut witness = place.as_ref().map(Witness::begin).transpose()?;
    let mut report = begun(args, place.as_ref());
    report.environment.meter = way.clone();
    let flows = settings.context.flows;
    report.resolved.seed = flows.are_sampled().then(|| flows.seed());
    let following = ends.wait(session, &mut report)?;
    session.meet()?;
    session.say(Code::Begun, what_begins(args, place.as_ref(), way.as_ref(), &limits));
    session.warn(&report.warnings);
    let title =
        Title { rx: place.as_ref().map(|place| place.spec.clone()), engine: None, ..passive::title("probe") };
    let mut panel = passive::panel(session, title, &report, place.as_slice(), Names::unknown(0))?;

    let over = Arc::new(AtomicBool::new(false));
    let table = match (args.biflow, args.signatures) {
        (true, _) => Table::both_ways(limits),
        (false, true) => Table::new(limits).with_signatures(),
        (false, false) => Table::new(limits),
    };
    table.memory().for_each(|(address, bytes)| port::map::prefer_huge_pages(address, bytes));
    let meter = Meter {
        source,
        table,
        // Of both directions in one record the first packet's is told.
        choice: Headers {
            inner: args.inner,
            directions: !args.biflow,
            signatures: args.signatures,
            samples: false,
        },
        sample: args.sample.unwrap_or(1),
        random: args.sample_at_random,
        settings,
        begins_with_frame,
        count: args.count.as_deref().copied(),
        over: Arc::clone(&over),
    };
    let running = meter.start(sender).context("a thread of the probe")?;
    let duration = args.duration.as_deref().copied();
    let watched = session.watch(&mut panel, duration, |_| look(&running.seen(), running.is_over()));
    // Of a probe that ended by itself nobody knows what came by afterwards.
    let moved = witness.as_mut().filter(|_| !running.is_over()).and_then(Witness::moved);
    over.store(true, std::sync::atomic::Ordering::Relaxed);
    let done = running.finish();
    session.board.end();
    following.end(None, &mut report);
    carrier::warn(&mut report);
    report.intervals = watched.samples.intervals().map(interval).collect();
    watched.judge(&mut report);
    fill(&mut report, &done);
    let count = args.count.as_deref().copied();
    passive::judge_count(&mut report, count, done.seen.frames, ("frames", came(args)));
    judge(&mut report, &done, (place.as_ref(), args.format));
    if let Some((place, witness)) = place.as_ref().zip(witness) {
        report.result.counters = crate::run::counters::counted(vec![(place.spec.clone(), witness.end())]);
        let way = (args.direction, place.interface.loopback);
        let whole = moved.filter(|_| done.is_whole && done.fault.is_none());
        if let Some(said) = whole.and_then(|moved| witness::unseen(&moved, &done.seen, way)) {
            report.warnings.add(Code::CountersDisagree, said);
        }
    }
    if place.is_none() && session.is_stopped() && done.is_whole && !done.is_read && duration.is_none() {
        let said = "stopped before all of the captures was read";
        report.result.verdict.fall_short(Code::Stopped, said);
    }
    Ok(report)
}

fn up(place: &Place) -> Result<()> {
    if !place.interface.up {
        bail!("{} is down: bring it up with `ip link set {} up`", place.spec, place.interface.name);
    }
    if !place.interface.ethernet {
        bail!("{} is not an Ethernet interface", place.spec);
    }
    Ok(())
}

fn limits(args: &Probe, exporter: &Exporter) -> Result<Limits> {
    let nanos = |given: &Option<spec::Written<Duration>>, usual: Duration| {
        let time = given.as_deref().copied().unwrap_or(usual);
        u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / 4)
    };
    let wanted = args.max_flows.as_deref().copied().unwrap_or(FLOWS.into());
    let flows = u32::try_from(wanted).unwrap_or(u32::MAX);
    let limits = Limits {
        flows,
        active_ns: nanos(&args.active_timeout, ACTIVE),
        idle_ns: nanos(&args.idle_timeout, IDLE),
        ended_ns: Some(nanos(&args.end_timeout, CLOSED)),
        octets: exporter.most_octets(),
    };
    if limits.idle_ns == 0 || limits.active_ns == 0 {
        bail!("`.idle_timeout` and `.active_timeout` are more than nothing");
    }
    let longest_ns = exporter.longest_ns();
    if limits.active_ns > longest_ns {
        bail!(
            "`.active_timeout` {}: the times of these records reach {} at most: give a shorter one, or {}",
            report::units::time(limits.active_ns),
            report::units::time(longest_ns),
            other_times(args.format)
        );
    }
    let each = if args.biflow { bytes_per_flow_both_ways(flows) } else { bytes_per_flow(flows) };
    let each = if args.signatures { each + bytes_of_signatures() } else { each };
    let takes = (f64::from(flows) * each) as u64;
    let available = engine::memory::available();
    if flows > MOST_FLOWS || takes > available {
        bail!(
            "`.max_flows` {wanted} take {} of memory, and {} are available: give fewer",
            report::units::bytes(takes),
            report::units::bytes(available)
        );
    }
    Ok(limits)
}

/// How records get times that reach further. The layout of version 5 is fixed.
fn other_times(format: ExportFormat) -> &'static str {
    match format {
        ExportFormat::V5 => "`.format` ipfix",
        ExportFormat::V9 => {
            "`.format` ipfix, or times since 1970 by `.template` (flowStartMilliseconds, flowEndMilliseconds)"
        }
        ExportFormat::Ipfix => "times since 1970 by `.template` (flowStartMilliseconds, flowEndMilliseconds)",
    }
}

fn rate(args: &Probe) -> Option<u32> {
    args.export_rate.or((!args.captures.is_empty()).then_some(CAPTURE_RATE))
}

/// What records hold by default: where some are of packets that leave, they say which.
fn usual(args: &Probe) -> String {
    let direction = match args.direction {
        FlowDirection::In => "",
        FlowDirection::Out | FlowDirection::Both => "flowDirection",
    };
    let usual = template::usual(version(args.format));
    format!("{usual} {direction} {}", if args.signatures { SIGNED } else { "" })
}

fn version(format: ExportFormat) -> Version {
    match format {
        ExportFormat::Ipfix => Version::Ipfix,
        ExportFormat::V9 => Version::V9,
        ExportFormat::V5 => Version::V5,
    }
}

fn settings(args: &Probe, place: Option<&Place>, began_ns: u64) -> Settings {
    let index = place.map_or(0, |place| place.interface.index);
    let refresh = args.template_refresh.as_deref().copied().unwrap_or(REFRESH);
    Settings {
        version: version(args.format),
        template: args.template.clone().unwrap_or_else(|| usual(args)),
        first_template: args.template_id.unwrap_or(257),
        both_ways: args.biflow,
        signed: args.signatures,
        domain: args.domain.unwrap_or(0),
        longest: LONGEST,
        refresh_messages: REFRESH_MESSAGES,
        refresh_ns: u64::try_from(refresh.as_nanos()).unwrap_or(u64::MAX),
        context: Beside {
            began_ns,
            interfaces: [
                [args.input_index.unwrap_or(index), args.output_index.unwrap_or(0)],
                [args.input_index.unwrap_or(0), args.output_index.unwrap_or(index)],
            ],
            sampling: args.sample.unwrap_or(1),
            random: args.sample_at_random,
            flows: args.sample_flows.map_or_else(Flows::all, |one_in| {
                Flows::one_in(one_in, args.sample_seed.unwrap_or_else(super::shared::draw_seed))
            }),
        },
    }
}

fn begun(args: &Probe, place: Option<&Place>) -> Report {
    let limits = (args.count.as_deref().copied(), args.duration.as_deref().copied());
    match place {
        Some(place) => passive::report("probe", place, limits),
        None => {
            let mut report = Report::new("probe");
            let files = args.captures.iter().map(|file| file.display().to_string()).collect();
            report.resolved.source = Some(report::Source::Files { files });
            report.resolved.count = limits.0;
            report.environment = crate::environment::collect();
            report
        }
    }
}

fn what_begins(args: &Probe, place: Option<&Place>, way: Option<&Choice>, limits: &Limits) -> String {
    let what = match place {
        Some(place) => {
            let way = way.map_or("", |way| &way.reason);
            let which = match args.direction {
                FlowDirection::In => "what arrives",
                FlowDirection::Out => "what leaves",
                FlowDirection::Both => "what arrives and leaves",
            };
            format!("{which} on {} by {way}", place.spec)
        }
        None => report::units::counted(args.captures.len() as u64, "capture"),
    };
    let to = match args.export.is_empty() {
        true => "to nobody".to_owned(),
        false => format!("as {} to {}", named(args.format), args.export.join(", ")),
    };
    let flows = report::units::count(limits.flows.into());
    format!("metering {what}, up to {flows} flows at once, and exporting {to}; Ctrl-C ends and reports")
}

fn named(format: ExportFormat) -> &'static str {
    match format {
        ExportFormat::Ipfix => "IPFIX",
        ExportFormat::V9 => "NetFlow v9",
        ExportFormat::V5 => "NetFlow v5",
    }
}

/// What became of frames that were waited for.
fn came(args: &Probe) -> &'static str {
    match args.direction {
        FlowDirection::In => "arrived",
        FlowDirection::Out => "left",
        FlowDirection::Both => "arrived or left",
    }
}

/// How it stands.
fn look(seen: &Seen, over: bool) -> Looked<'static, (u64, u64)> {
    let snapshot = Snapshot {
        rx: Some(Count { frames: seen.frames, bytes: seen.bytes }),
        flows: Some(snapshot::Flows {
            active: seen.flows,
            ended: seen.table.ended(),
            sent: seen.sent.records,
            unsent: seen.sent.unsent[0],
            dropped: seen.dropped,
        }),
        ..Snapshot::default()
    };
    Looked::of((seen.frames, seen.bytes), over, snapshot)
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

fn fill(report: &mut Report, done: &meter::Done) {
    let seen = &done.seen;
    let [idle, active, closed, forced, displaced, full] = seen.table.over;
    report.result.rx =
        Some(Rx { totals: Totals::over(seen.frames, seen.bytes, done.lasted_ns), ..Rx::default() });
    report.result.metering = Some(report::Metering {
        // Of both only they know who have a collector in the same job.
        arrived_records: None,
        missing_records: None,
        packets: seen.table.packets,
        octets: seen.octets,
        other_frames: seen.other,
        malformed_frames: seen.malformed,
        unreadable_frames: seen.unreadable,
        unattributed_fragments: seen.unattributed,
        unsampled_frames: seen.unsampled,
        dropped_frames: seen.dropped,
        joined_frames: seen.joined,
        left_frames: seen.left,
        idle_records: idle,
        active_records: active,
        closed_records: closed,
        forced_records: forced,
        displaced_records: displaced,
        full_records: full,
        records_per_second: Totals::over(seen.table.begun, 0, done.lasted_ns).frames_per_second,
        most_flows: seen.most_flows,
        table_bytes: seen.table_bytes,
        longest_search: seen.table.longest_search,
        sent_records: seen.sent.records,
        sent_messages: seen.sent.messages,
        sent_bytes: seen.sent.bytes,
        unsent_records: seen.sent.unsent[0],
        unsayable_records: seen.unsayable,
        untimely_records: seen.untimely,
        collectors: done.collectors.clone(),
    });
}

/// What must add up: each record that began is over, and each that is over was sent, or is counted as not sent by why. Without a collector
/// none is to be sent.
fn add_up(seen: &Seen, exports: bool) -> Option<String> {
    let count = report::units::count;
    let (begun, ended) = (seen.table.begun, seen.table.ended());
    if begun != ended {
        return Some(format!(
            "{} began and {} ended: this is a defect of netdyno",
            report::units::counted(begun, "record"),
            count(ended)
        ));
    }
    if !exports {
        return None;
    }
    let (sent, unsent) = (seen.sent.records, seen.sent.unsent[0]);
    let unsayable = seen.unsayable + seen.untimely;
    if sent + unsent + unsayable == ended {
        // Of what the protocol cannot say only the records are counted.
        return contents(seen).filter(|_| unsayable == 0);
    }
    Some(format!(
        "of {} that ended {} are counted as sent, {} as not sent, {} as ones that the protocol cannot say: this is a defect of netdyno",
        report::units::counted(ended, "record"),
        count(sent),
        count(unsent),
        count(unsayable)
    ))
}

/// The packets and bytes that were metered are those of all records.
fn contents(seen: &Seen) -> Option<String> {
    let [packets, octets] = [0, 1].map(|at: usize| seen.sent.counted[at] + seen.sent.unsent[at + 1]);
    let (metered, metered_octets) = (seen.table.packets, seen.octets);
    ((packets, octets) != (metered, metered_octets)).then(|| {
        let (count, counted) = (report::units::count, report::units::counted);
        format!(
            "{} with {} were metered, and all records together count {} and {}: this is a defect of netdyno",
            counted(metered, "packet"),
            counted(metered_octets, "byte"),
            count(packets),
            count(octets)
        )
    })
}

/// Was all of it metered and sent?
fn judge(report: &mut Report, done: &meter::Done, (place, format): (Option<&Place>, ExportFormat)) {
    let seen = &done.seen;
    let counted = report::units::counted;
    let verdict = &mut report.result.verdict;
    // A thread that panicked has said so, and has not counted to its end.
    if let Some(said) = add_up(seen, done.exports).filter(|_| done.is_whole) {
        verdict.fall_short(Code::CountersDisagree, said);
    }
    if let Some(fault) = &done.fault {
        match place {
            Some(_) => verdict.fall_short(Code::InterfaceGone, fault.clone()),
            None => verdict.fall_short(Code::CaptureDamaged, fault.clone()),
        }
    }
    if let Some(link) = seen.unreadable_link {
        let frames = counted(seen.unreadable, "frame");
        let said = format!(
            "{frames} were not metered: they are of {link}, and where IP begins in these is not known here"
        );
        verdict.fall_short(Code::FramesUnmetered, (said, "convert the capture to Ethernet frames first"));
    }
    if seen.dropped > 0 {
        let said =
            format!("{} came by and were not metered: the probe was slower", counted(seen.dropped, "frame"));
        verdict.fall_short(Code::FramesUnmetered, said);
    }
    if seen.undrained_ns > 0 {
        let said = format!(
            "what came in the last {} before the end was not metered, and not counted either: the probe was slower",
            report::units::time(seen.undrained_ns)
        );
        verdict.fall_short(Code::FramesUnmetered, said);
    }
    if seen.sent.unsent[0] > 0 {
        let said = format!("{} ended and were not sent", counted(seen.sent.unsent[0], "record"));
        verdict.fall_short(Code::RecordsUnsent, said);
    }
    for collector in done.collectors.iter().filter(|collector| collector.refused_messages > 0) {
        let said = format!(
            "{} of {} to {}, or more, were refused: nobody takes them there (hosts say so once a second at most)",
            report::units::count(collector.refused_messages),
            counted(collector.messages + collector.refused_messages, "message"),
            collector.to
        );
        verdict.fall_short(Code::RecordsUnsent, said);
    }
    for collector in done.collectors.iter().filter(|collector| collector.lost_messages > 0) {
        let said = format!(
            "{} of {} to {} were lost: nobody took them there, or not as fast as they came",
            report::units::count(collector.lost_messages),
            counted(collector.messages + collector.lost_messages, "message"),
            collector.to
        );
        verdict.fall_short(Code::RecordsUnsent, said);
    }
    if seen.unsayable > 0 {
        let said =
            format!("{} of IPv6 were not exported: NetFlow v5 has none", counted(seen.unsayable, "record"));
        verdict.fall_short(Code::RecordsUnsent, (said, "`.format` 9 or ipfix"));
    }
    if seen.untimely > 0 {
        let said = format!(
            "{} were not exported: their times are before the exporter began, or longer ago than its uptime reaches back",
            counted(seen.untimely, "record")
        );
        verdict.fall_short(Code::RecordsUnsent, (said, other_times(format)));
    }
    for (collector, times) in done.collectors.iter().filter_map(|one| Some((one, one.connections?))) {
        if times > 1 {
            let said = format!("the connection to {} was made {times} times: it broke", collector.to);
            report.warnings.add(Code::ConnectionBroke, said);
        }
    }
    if seen.table.over[4] > 0 {
        let said = format!(
            "{} ended early, because there was no room for more flows",
            counted(seen.table.over[4], "record")
        );
        report.warnings.add(Code::TableFull, (said, "`.max_flows`"));
    }
    if seen.unattributed > 0 {
        let said = format!(
            "{} came without the first one of their packets, or after {} other packets' first ones: they count for flows with ports of 0",
            counted(seen.unattributed, "fragment"),
            report::units::count(flow::packet::fragments::MOST as u64)
        );
        report.warnings.add(Code::FragmentsUnattributed, said);
    }
    if seen.joined > 0 {
        let said = format!("{} had been joined, and count as one packet each", counted(seen.joined, "frame"));
        report.warnings.add(Code::FramesJoined, said);
    }
    if seen.clock_steps > 0 {
        report.warnings.add(
            Code::ClockSet,
            "the clock was set while it ran: times of records go on as if it had not been",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of ten records that ended, so many are of each kind.
    fn seen(begun: u64, sent: u64, unsent: u64, unsayable: u64) -> Seen {
        let mut seen = Seen { unsayable, ..Seen::default() };
        seen.table.begun = begun;
        seen.table.over = [4, 1, 2, 1, 1, 1];
        (seen.sent.records, seen.sent.unsent) = (sent, [unsent, 0, 0]);
        seen
    }

    #[test]
    fn records_that_are_neither_sent_nor_counted_as_not_sent_are_told() {
        assert_eq!(add_up(&seen(10, 7, 2, 1), true), None);
        assert_eq!(add_up(&seen(10, 0, 0, 0), false), None, "nobody is to get them");
        let told = |packets: u64, octets: u64| {
            let mut seen = Seen { octets: 640, ..seen(10, 7, 3, 0) };
            seen.table.packets = 20;
            seen.sent.counted = [packets, octets];
            seen.sent.unsent = [3, 5, 40];
            add_up(&seen, true)
        };
        assert_eq!(told(15, 600), None);
        for (packets, octets) in [(14, 600), (15, 599)] {
            assert!(told(packets, octets).is_some_and(|said| said.starts_with("20 packets with 640 bytes")));
        }
        assert!(
            add_up(&seen(10, 7, 2, 0), true)
                .is_some_and(|said| said.starts_with("of 10 records that ended 7"))
        );
        assert!(
            add_up(&seen(11, 7, 2, 1), true).is_some_and(|said| said.starts_with("11 records began and 10"))
        );
    }
}
