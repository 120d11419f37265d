//! What came of a run: the result's parts from both ends, and whether it was what was asked for.

use super::counters::{another_run, where_they_went};
use super::intended::dues;
use super::meters::Measured;
use super::pace::{Due, due_not_sent, too_slow};
use super::received::{add, fill_measured, list_streams, stream};
use super::{Setup, background, ports, trust};
use crate::carrier;
use crate::place::Place;
use engine::pacer::{self, MOST_BURST};
use engine::source::Oddities;
use engine::{Counts, Ended, Had, Job, LATE_NS, Merged, Sent};
use port::tx::{TxCounters, TxError};
use report::{
    CatchUp, Code, Core, Distribution, Flows, HostCounter, Loss, Pacing, Report, RxInterface, Sentence,
    Stream, Totals, Tx, TxInterface, Warnings, units,
};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashSet};
use traffic::{Executor, Program, Rate, Schedule};
use wire::LinkType;
use wire::flow::{FlowKey, FlowOf, FlowSet};
use wire::layers::Layers;

/// A run that ended.
pub struct Outcome<'a> {
    pub setup: &'a Setup,
    /// What each worker was to send.
    pub jobs: &'a [Job],
    pub engine: String,
    pub counts: Counts,
    /// What they did.
    pub merged: Merged,
}

impl Outcome<'_> {
    pub fn sent(&self) -> &Sent {
        &self.merged.whole
    }

    /// Was the meter told what frames are to have before their signatures?
    fn checks_content(&self) -> bool {
        self.setup.rx.first().is_some_and(|(_, options)| options.content.slots() > 0)
    }

    /// Words that say which worker it was, where there were several.
    fn ended_where(&self) -> String {
        let cpus = &self.setup.cpus;
        match (cpus.len(), cpus.get(self.merged.ended_by)) {
            (0 | 1, _) | (_, None) => String::new(),
            (_, Some(Some(cpu))) => format!("the worker on core {cpu} ended all: "),
            (_, Some(None)) => format!("worker {} ended all: ", self.merged.ended_by),
        }
    }
}

pub fn fill_tx(report: &mut Report, run: &Outcome<'_>, due: Due) {
    let (setup, sent) = (run.setup, run.sent());
    let c = &sent.counters;
    let totals = Totals::over(c.frames, c.bytes, sent.duration_ns);
    let asked = asked_rate(report, setup).filter(|_| report.result.adjustments.is_empty());
    let scheduled =
        sent.scheduled_ns.filter(|_| sent.exhausted).or(setup.job.duration.map(|d| d.as_nanos() as u64));
    // What was changed by hand is no longer the schedule that was asked for.
    let scheduled = scheduled.filter(|_| report.result.adjustments.is_empty());
    let intended = due.intended;
    report.result.tx = Some(Tx {
        intended_frames: intended,
        due_not_sent_frames: due_not_sent(sent, due).filter(|_| !is_unpaced(report)),
        intended_frames_per_second: asked.or_else(|| {
            intended.map(|n| Totals::over(n, 0, scheduled.unwrap_or(sent.duration_ns)).frames_per_second)
        }),
        engine: run.engine.clone(),
        failed: c.failed,
        retried_enobufs: c.retried_enobufs,
        retried_eagain: c.retried_eagain,
        truncated: truncated(setup, sent).iter().sum(),
        cores: cores(run),
        totals,
        ..Tx::default()
    });
    if let Some(kept) = &sent.punctuality {
        report.result.pacing = Some(Pacing {
            measured_at: Some("sender".to_owned()),
            lateness_ns: Distribution::whole(&kept.lateness),
            last_frame_late_ns: (kept.lateness.count() > 0).then_some(kept.last_late_ns as i64),
            late_frames: Some(kept.late),
            late_threshold_ns: Some(LATE_NS),
            catch_up: Some(CatchUp {
                stalls: kept.stalls,
                longest_stall_ns: kept.longest_stall_ns,
                frames: kept.catch_up_frames,
                rate_limit_ratio: setup.job.catch_up.times(),
                limit_bits_per_second: setup.job.catch_up.link(),
                limit_burst_frames: setup.job.catch_up.link().map(|_| MOST_BURST as u64),
                most_in_1ms: kept.most_in_1ms,
                most_received_in_1ms: None,
                abandoned_ns: kept.put_off_ns,
            }),
            priority: Some(priority(kept.had)),

            waiting: kept.waits.map(|waits| if waits.slept > 0 { "slept" } else { "spun" }.to_owned()),
            wake_up_p99_ns: kept.waits.and_then(|waits| waits.wake_up_p99_ns),
            ..Pacing::default()
        });
    }
    let starved = sent.punctuality.as_ref().map_or(0, |kept| kept.starved_ns);
    if starved > 0 {
        report.warnings.add(
            Code::SourceRanDry,
            format!(
                "nothing more came to be sent in the last {} of the run's time: what had come was sent",
                units::time(starved)
            ),
        );
    }
    let unsigned: u64 = run.jobs.iter().filter_map(|job| job.source.seen()).map(|seen| seen.unsigned).sum();
    // Of a round trip it is said with what came back.
    if unsigned > 0 && !setup.round_trip {
        report.warnings.add(
            Code::NotSigned,
            format!(
                "{} had no room for a signature: order and latency are not measured there",
                units::counted(unsigned, "frame")
            ),
        );
    }
    let source = &setup.job.source;
    let flows = match source.program() {
        Some(program) if setup.per_port.is_none() => flows(program, c.frames),
        // What two ports send alike are flows of each.
        Some(program) => (0..setup.tx.len())
            .map(|port| flows(&program.at_port(port as u8), sent_by(sent, port).frames))
            .sum(),
        None => source
            .seen()
            .filter(|_| source.facts().counts_flows)
            .map(|seen| Counted { flows: seen.flows, frames: seen.flow_frames }),
    };
    report.result.flows = flows.map(|counted| {
        let (flows, frames) = (counted.flows.iter().sum(), counted.frames.iter().sum());
        let expired = source.seen().and_then(|seen| seen.expired());
        let all = Flows::over(flows, frames, c.frames.saturating_sub(frames), sent.duration_ns);
        Flows { expired, ..all }
    });
    if let Some(tx) = &mut report.result.tx {
        tx.interfaces = interfaces(run, flows);
    }
    ports::fill_tx(report, run);
    for why in &setup.damage {
        report.result.verdict.fall_short(Code::CountersDisagree, why);
    }
    stream_notes(&setup.job, report);
}

/// One row for each interface, where there are several.
fn interfaces(run: &Outcome<'_>, flows: Option<Counted>) -> Vec<TxInterface> {
    if run.setup.per_port.is_some() {
        return Vec::new();
    }
    let truncated = truncated(run.setup, run.sent());
    let row = |(port, (place, c)): (usize, (&Place, &TxCounters))| TxInterface {
        interface: place.spec.clone(),
        frames: c.frames,
        bytes: c.bytes,
        failed: c.failed,
        retried_enobufs: c.retried_enobufs,
        retried_eagain: c.retried_eagain,
        truncated: truncated.get(port).copied().unwrap_or(0),
        flows: flows.and_then(|counted| counted.flows.get(port).copied()),
        flow_frames: flows.and_then(|counted| counted.frames.get(port).copied()),
    };
    run.setup.tx.iter().zip(&run.sent().ports).enumerate().map(row).collect()
}

/// What one port of the run was handed: of a single one that is all.
pub fn sent_by(sent: &Sent, port: usize) -> TxCounters {
    sent.ports.get(port).copied().unwrap_or(sent.counters)
}

/// One row for each worker.
fn cores(run: &Outcome<'_>) -> Vec<Core> {
    let duration = run.sent().duration_ns;
    let rows = run.setup.cpus.iter().zip(&run.merged.shares).filter_map(|(cpu, share)| {
        // A program in the kernel also waits for its start.
        let ratio = |ns: u64| (duration > 0).then(|| (ns as f64 / duration as f64).min(1.0));
        let c = &share.counters;
        Some(Core {
            core: u32::try_from((*cpu)?).ok()?,
            frames: c.frames,
            bytes: c.bytes,
            cpu_ratio: ratio(share.cpu_ns),
            // What was waited is part of what was used.
            waiting_ratio: share.spun_ns.and_then(|ns| ratio(ns.min(share.cpu_ns))),
            others_ratio: share.others_ns.and_then(ratio),
        })
    });
    rows.collect()
}

/// What the senders had, in the words of the result.
fn priority(had: Had) -> String {
    match had {
        Had::Ordinary => "ordinary".to_owned(),
        Had::Nice(value) => format!("nice {value}"),
        Had::RealTime => "real-time".to_owned(),
    }
}

/// What a source showed while it was read.
pub fn stream_notes(job: &Job, report: &mut Report) {
    let Some(seen) = job.source.seen() else { return };
    oddities(&seen.odd, &mut report.warnings);
    if seen.lost > 0 {
        let lost = units::counted(seen.lost, "frame");
        report
            .warnings
            .add(Code::LostOnPurpose, format!("{lost} lost on purpose, as `.loss` asks: not sent"));
    }
    // What of a capture is sound was sent; that is not all of it.
    for why in &seen.odd.cut_short {
        report.result.verdict.fall_short(Code::CaptureDamaged, why);
    }
}

/// What was odd about the frames of captures, in words.
pub fn oddities(odd: &Oddities, warnings: &mut Warnings) {
    let mut note = |count: u64, what: &str| {
        if count > 0 {
            warnings.add(Code::FramesOdd, format!("{} {what}", units::counted(count, "frame")));
        }
    };
    note(odd.oversized, "longer than the interface takes: left out");
    note(odd.empty, "without a byte: left out");
    note(odd.left, "left out by the edits that were asked for");
    note(odd.foreign, "that could not be made Ethernet frames: left out");
    note(odd.unedited, "sent unedited: their headers cannot be read");
    note(odd.truncated.iter().sum(), "captured shorter than they were (snap length): sent as captured");
    note(odd.backwards, "captured earlier than the one before: sent directly behind it");
    warnings.extend(odd.surplus.iter().map(|said| Code::FramesOdd.says(said)));
}

/// Frames a second that the schedule asks for, where that is one number.
fn asked_rate(report: &Report, setup: &Setup) -> Option<f64> {
    let by_frames = |schedule: &Schedule| match schedule {
        Schedule::Frames { frames, per_ns } => Some(*frames as f64 * 1e9 / *per_ns as f64),
        _ => None,
    };
    if let (Some(per_port), Some(program)) = (&setup.per_port, setup.job.source.program()) {
        let of = |port: usize| program.at_port(port as u8).only_schedule().and_then(by_frames);
        return (0..per_port.ports).map(of).sum();
    }
    match setup.job.source.schedule().and_then(by_frames) {
        Some(rate) => Some(rate),
        None => report.resolved.rate.as_ref().and_then(|rate| rate.frames_per_second),
    }
}

fn truncated(setup: &Setup, sent: &Sent) -> [u64; 2] {
    match setup.job.source.seen() {
        Some(seen) => seen.odd.truncated,
        None => {
            let (cut, of) = setup.truncated;
            let frames = u128::from(sent.counters.frames);
            cut.map(|cut| (u128::from(cut) * frames).checked_div(of.into()).unwrap_or(0) as u64)
        }
    }
}

/// The flows among the first `sent` frames. Workers that were ended in the middle may have sent others instead of a few of
/// those.
fn flows(program: &Program, sent: u64) -> Option<Counted> {
    // A capture repeats after a pass, with flows of its own in each or with the same again.
    let captured =
        program.is_pair_of_captures() || program.streams.len() == 1 && program.streams[0].is_captured();
    let pass = program.frames_per_pass().max(1);
    if captured && sent >= pass {
        let (passes, rest) = (sent / pass, sent % pass);
        let in_pass = count_flows(program, pass)?;
        let in_rest = count_flows(program, rest)?;
        let unique = program.streams[0].unique_addresses;
        let sum = |pass: [u64; 2], rest: [u64; 2]| [0, 1].map(|side| passes * pass[side] + rest[side]);
        let flows = if unique { sum(in_pass.flows, in_rest.flows) } else { in_pass.flows };
        return Some(Counted { flows, frames: sum(in_pass.frames, in_rest.frames) });
    }
    if captured || sent <= background::FLOW_SAMPLE { count_flows(program, sent) } else { None }
}

/// Distinct flows by the side that each was first seen on, and how many frames of each side belong to one.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counted {
    pub flows: [u64; 2],
    pub frames: [u64; 2],
}

impl std::iter::Sum for Counted {
    fn sum<I: Iterator<Item = Counted>>(all: I) -> Counted {
        let add = |a: [u64; 2], b: [u64; 2]| [a[0] + b[0], a[1] + b[1]];
        all.fold(Counted::default(), |sum, one| Counted {
            flows: add(sum.flows, one.flows),
            frames: add(sum.frames, one.frames),
        })
    }
}

/// The flows among the first `n` frames.
pub fn count_flows(program: &Program, n: u64) -> Option<Counted> {
    let mut executor = Executor::new(program).ok()?;
    let mut slab = traffic::Slab::new(1, program.longest() as usize);
    let mut set = FlowSet::default();
    let mut counted = Counted::default();
    for _ in 0..n {
        let side = usize::from(executor.next_port()).min(1);
        executor.render(&mut slab.buffers(), 1, || 0);
        let frame = slab.frame(0);
        if let FlowOf::Flow(key) = FlowKey::of(&Layers::parse(LinkType::ETHERNET, frame), frame) {
            counted.flows[side] += u64::from(set.insert(key));
            counted.frames[side] += 1;
        }
    }
    Some(counted)
}

/// Signed frames that were sent, by the number in the signature; of several workers each has numbers of its own.
pub fn signed(run: &Outcome<'_>, measured: &meter::Measurement) -> Vec<(u32, u64)> {
    let mut signed = Vec::new();
    for (job, share) in run.jobs.iter().zip(&run.merged.shares) {
        match job.source.program() {
            // Refused frames would shift the numbering, so then nothing is known of a stream's number of frames.
            Some(_) if !sent_whole(run) => {}
            // There, too; only of those that are to come back each that was numbered is accounted for.
            None if !sent_whole(run) && !run.setup.round_trip => {}
            Some(program) => signed.extend(program.signed_among(share.counters.frames)),
            None if measured.totals.signed > 0 || run.setup.round_trip => {
                let numbered = job.source.seen().map_or([0; 2], |seen| seen.signed);
                signed.extend(job.source.facts().streams.into_iter().zip(numbered));
            }
            None => {}
        }
    }
    signed
}

/// The streams as the user wrote them: what workers sent under numbers of their own is added up.
fn folded(run: &Outcome<'_>, signed: &[(u32, u64)], measured: &meter::Measurement) -> Vec<Stream> {
    let workers = run.setup.workers_of_a_stream().max(1) as u32;
    let sent: HashSet<u32> = run.setup.job.source.facts().streams.into_iter().collect();
    let ours = |number: u32| sent.contains(&number);
    // Numbers that are none of ours came from somebody else, and are told as they are.
    let whole = |number: u32| if ours(number / workers) { number / workers } else { number };
    let mut streams: BTreeMap<u32, Stream> = BTreeMap::new();
    let mut latencies: BTreeMap<u32, histogram::Histogram> = BTreeMap::new();
    let sent_of: BTreeMap<u32, u64> = signed.iter().copied().collect();
    let empty = |stream| Stream { stream, ..Stream::default() };
    for stats in &measured.streams {
        let of = sent_of.get(&stats.stream);
        let number = whole(stats.stream);
        if let Some(own) = &stats.latencies {
            latencies.entry(number).or_default().merge(own);
        }
        let lost = of.map_or(stats.lost, |n| stats.lost_of(*n));
        let lost_at_end_frames = lost.saturating_sub(stats.lost);
        let told = stream(stats, lost, run.checks_content());
        let share = Stream { stream: number, lost_at_end_frames, ..told };
        match streams.entry(number) {
            Entry::Vacant(place) => drop(place.insert(share)),
            Entry::Occupied(mut sum) => add(sum.get_mut(), share),
        }
    }
    let arrived: HashSet<u32> = measured.streams.iter().map(|stats| stats.stream).collect();
    for &(signature, sent) in signed {
        let arrived = arrived.contains(&signature);
        if sent > 0 || arrived {
            let number = whole(signature);
            let stream = streams.entry(number).or_insert_with(|| empty(number));
            *stream.tx_frames.get_or_insert(0) += sent;
            stream.lost_frames += if arrived { 0 } else { sent };
            stream.lost_at_end_frames += if arrived { 0 } else { sent };
        }
    }
    for (number, histogram) in &latencies {
        if let Some(stream) = streams.get_mut(number) {
            stream.latency_ns = Distribution::whole(histogram);
        }
    }
    streams.into_values().collect()
}

/// The sums over the streams that this run sent; over all if it is not known how many frames each had.
fn ours(streams: &[Stream]) -> Stream {
    let known = streams.iter().any(|s| s.tx_frames.is_some());
    streams.iter().filter(|s| s.tx_frames.is_some() || !known).fold(Stream::default(), |sum, s| Stream {
        rx_frames: sum.rx_frames + s.rx_frames,
        rx_bytes: sum.rx_bytes + s.rx_bytes,
        lost_frames: sum.lost_frames + s.lost_frames,
        ..sum
    })
}

/// The numbers in the signatures of what the jobs send.
fn numbers(jobs: &[Job]) -> HashSet<u32> {
    jobs.iter().flat_map(|job| job.source.facts().streams).collect()
}

/// Nothing was refused, so each stream's number of frames is known.
fn sent_whole(run: &Outcome<'_>) -> bool {
    run.sent().counters.failed == 0
}

/// Where what each of several ports sent arrived.
fn arrivals(run: &Outcome<'_>, measured: &Measured) -> Vec<RxInterface> {
    let Setup { tx, rx, .. } = run.setup;
    if tx.len() < 2 || tx.len() != rx.len() || run.setup.per_port.is_some() {
        return Vec::new();
    }
    let row = |((from, (at, _)), part): ((&Place, &(Place, _)), &super::meters::Part)| RxInterface {
        interface: at.spec.clone(),
        from: from.spec.clone(),
        frames: part.frames,
        bytes: part.bytes,
    };
    tx.iter().zip(rx).zip(&measured.parts).map(row).collect()
}

/// Frames that did not arrive where their port's were to, as far as counts alone show it. `none`: the run sent none of the frames
/// that most networks carry.
fn missing(run: &Outcome<'_>, measured: &Measured, none: bool) -> u64 {
    let ports = &run.sent().ports;
    if ports.len() != measured.parts.len() {
        return 0;
    }
    let arrived = |part: &super::meters::Part| part.frames - if none { part.background } else { 0 };
    ports.iter().zip(&measured.parts).map(|(sent, part)| sent.frames.saturating_sub(arrived(part))).sum()
}

/// How many frames are lost where not all have signatures: by what is missing. `known`: so many have one.
fn lost_by_count(
    report: &mut Report,
    run: &Outcome<'_>,
    both: &Measured,
    streams: &[Stream],
    known: u64,
) -> u64 {
    let totals = &both.whole.totals;
    let (frames, arrived) = (run.sent().counters.frames, totals.frames - totals.duplicates);
    // What the streams prove lost is lost, even if as many frames of others came in their place.
    let proven: u64 = streams.iter().filter(|s| s.tx_frames.is_some()).map(|s| s.lost_frames).sum();
    let taken = |share: &engine::Share| share.counters.frames + share.counters.failed;
    let parts = run.jobs.iter().zip(run.merged.shares.iter().map(taken));
    let others = background::of_others(parts, totals.background);
    let none = others == totals.background;
    // Where some have signatures, those that have none are counted by themselves.
    let counted = if known > 0 {
        let unsigned = totals.frames.saturating_sub(totals.signed).saturating_sub(others);
        frames.saturating_sub(known).saturating_sub(unsigned) + proven.saturating_sub(totals.contended)
    } else {
        frames.saturating_sub(arrived.saturating_sub(others)).max(proven)
    };
    if let Some(rx) = report.result.rx.as_mut().filter(|_| others > 0) {
        rx.background_frames = Some(others);
    }
    counted.max(missing(run, both, none))
}

/// Warns of frames that this run did not send. `certain`: no lost frame is among them.
fn warn_of_foreign(report: &mut Report, foreign: u64, certain: bool) {
    let known = report.result.rx.as_ref().and_then(|rx| rx.background_frames).unwrap_or(0);
    const TELL: Option<&str> = Some("sign frames (`.sign`), to tell them apart");
    let (but, remedy) = match (certain, known) {
        (true, _) => (String::new(), None),
        (false, known) if known == foreign => {
            (" (ARP, neighbour discovery and the like), and are not counted as its own".to_owned(), None)
        }
        (false, 0) => (": loss may be larger than it says".to_owned(), TELL),
        (false, known) => {
            let known = units::count(known);
            let but = ", {} of them ARP, neighbour discovery and the like: loss may be larger than it says";
            (but.replace("{}", &known), TELL)
        }
    };
    let counted = units::counted(foreign, "frame");
    let said = format!("{counted} arrived that this run did not send{but}");
    report.warnings.add(Code::ForeignFrames, Sentence::new(said, remedy));
}

/// What arrived. Returns how many frames had numbers, if it is by those that the loss is known.
pub fn fill_rx(report: &mut Report, run: &Outcome<'_>, both: &Measured) -> Option<u64> {
    let measured = &both.whole;
    fill_measured(report, measured);
    if let (Some(rx), Some(tx)) = (&mut report.result.rx, &report.result.tx) {
        rx.over_sending_time(&tx.totals);
    }
    if let Some(rx) = &mut report.result.rx {
        rx.interfaces = arrivals(run, both);
    }
    let totals = &measured.totals;
    if let Some(rx) = report.result.rx.as_mut().filter(|_| run.checks_content()) {
        rx.corrupted_frames = Some(totals.corrupted);
    }
    let arrived = totals.frames - totals.duplicates;
    let frames = run.sent().counters.frames;
    let signed = signed(run, measured);
    let streams = folded(run, &signed, measured);
    // When every frame is signed, ours are told from others; else all that arrives is taken for ours.
    let all_signed = frames > 0 && signed.iter().map(|(_, n)| n).sum::<u64>() == frames;
    let known: u64 = signed.iter().map(|(_, n)| n).sum();
    let (lost, foreign, certain) = if run.setup.round_trip {
        let came_back = ours(&streams);
        let foreign = totals.frames.saturating_sub(came_back.rx_frames);
        if let Some(rx) = &mut report.result.rx {
            // Whatever else arrives at the sending interface is no part of the result.
            let span = rx.totals.duration_ns;
            rx.totals = Totals::over(came_back.rx_frames, came_back.rx_bytes, span);
        }
        if known < frames && sent_whole(run) {
            report.warnings.add(Code::NotSigned, format!(
                "{} could not be signed: whether they came back is not known, and they are in no figure of loss",
                units::counted(frames - known, "frame")
            ));
        }
        // A frame that was refused has its number, which is missing like that of one that was lost.
        (came_back.lost_frames.saturating_sub(run.sent().counters.failed), foreign, true)
    } else if all_signed {
        let ours: u64 = streams.iter().filter(|s| s.tx_frames.is_some()).map(|s| s.rx_frames).sum();
        // What came and is in no stream is not lost; nor what is missing in a stream that somebody else sent.
        let lost: u64 = streams.iter().filter(|s| s.tx_frames.is_some()).map(|s| s.lost_frames).sum();
        (lost.saturating_sub(totals.contended), totals.frames.saturating_sub(ours), true)
    } else if !sent_whole(run) && run.jobs.iter().all(trust::signs) {
        // Of each stream it is not known how many frames it had; but what arrived of them is.
        let streams = measured.streams.iter().map(|s| (s.stream, s.frames, s.duplicates));
        let numbers = numbers(run.jobs);
        let own =
            background::own_signed((totals.signed, totals.duplicates), streams, |n| numbers.contains(&n));
        (frames.saturating_sub(own), arrived.saturating_sub(own), true)
    } else {
        let lost = lost_by_count(report, run, both, &streams, known);
        (lost, arrived.saturating_sub(frames.saturating_sub(lost)), false)
    };
    let whole = if run.setup.round_trip && sent_whole(run) { known } else { frames };
    let by_count_only = !certain && frames > 0;
    let unsigned_frames =
        (by_count_only && known > 0).then(|| frames.saturating_sub(known)).filter(|n| *n > 0);
    report.result.loss = Some(Loss { by_count_only, unsigned_frames, ..Loss::of(lost, whole) });
    if foreign > 0 {
        if let Some(rx) = &mut report.result.rx {
            rx.foreign_frames = Some(foreign);
            if let Some(tx) = &report.result.tx {
                rx.others_came(&tx.totals);
            }
        }
        // At a sending interface others' frames are nothing to be warned of.
        if !run.setup.round_trip {
            warn_of_foreign(report, foreign, certain);
        }
    }
    if !sent_whole(run) && streams.iter().any(|stream| stream.lost_frames > 0) {
        report.warnings.add(Code::RefusedUnknown,
            "whose frames were refused is not known: they are among those that the streams are said to have lost"
                .to_owned(),
        );
    }
    ports::fill_rx(report, run, both, &streams);
    if let Some(catch_up) = report.result.pacing.as_mut().and_then(|pacing| pacing.catch_up.as_mut()) {
        catch_up.most_received_in_1ms = densest(&measured.arrivals, totals.frames);
    }
    let hidden = another_run(report, totals.duplicates + totals.late);
    report.warnings.extend(hidden.map(|said| Code::AnotherRun.says(said)));
    list_streams(report, streams);
    if let Some(program) = run.setup.job.source.program() {
        for stream in &mut report.streams {
            stream.name =
                program.streams.iter().find(|s| s.signature == Some(stream.stream)).map(|s| s.name.clone());
        }
        let all_came = totals.frames == frames && lost == 0 && sent_whole(run);
        // The schedule's own gaps are those of a run that nobody touched.
        if all_came && report.result.adjustments.is_empty() && totals.duplicates == 0 && totals.reordered == 0
        {
            gaps(report, run, &measured.arrivals);
        }
    }
    (run.setup.round_trip || all_signed).then_some(known)
}

/// The most frames that arrived within any millisecond, if of all `frames` it is known when they did.
fn densest(arrivals: &[u64], frames: u64) -> Option<u64> {
    if frames == 0 || arrivals.len() as u64 != frames {
        return None;
    }
    let mut first = 0;
    let within = arrivals.iter().enumerate().map(|(last, at)| {
        while at.saturating_sub(arrivals[first]) >= pacer::WINDOW_NS {
            first += 1;
        }
        last - first + 1
    });
    within.max().map(|most| most as u64)
}

/// How far the gaps between arrivals were from the schedule's: arrival i is that of the frame that was due i-th, because
/// nothing was lost. With several workers that is the i-th of all of them together, whichever worker's it was: frames of
/// different cores that are due at nearly the same time may overtake one another, and that is not seen here.
fn gaps(report: &mut Report, run: &Outcome<'_>, arrivals: &[u64]) {
    let mut due = Vec::with_capacity(arrivals.len());
    for (job, share) in run.jobs.iter().zip(&run.merged.shares) {
        let Some(program) = job.source.program() else { return };
        let most = usize::try_from(share.counters.frames).unwrap_or(usize::MAX).min(arrivals.len());
        let Some(dues) = dues(program, most) else { return };
        due.extend(dues);
    }
    due.sort_unstable();
    if arrivals.len() < 2 || due.len() < arrivals.len() {
        return;
    }
    let mut errors = Vec::with_capacity(arrivals.len() - 1);
    let (mut gapped, mut back_to_back) = (0u64, 0u64);
    for (pair, due) in arrivals.windows(2).zip(due.windows(2)) {
        let (wanted, got) = (due[1] - due[0], pair[1].saturating_sub(pair[0]));
        errors.push(wanted.abs_diff(got));
        // Two frames handed over in one go arrive within a microsecond.
        if wanted >= 2_000 {
            gapped += 1;
            back_to_back += u64::from(got * 4 < wanted);
        }
    }
    if let Some(pacing) = &mut report.result.pacing {
        pacing.measured_at = Some("receiver".to_owned());
        pacing.gap_error_ns = Distribution::from_samples(&mut errors);
        pacing.back_to_back_ratio = (gapped > 0).then(|| back_to_back as f64 / gapped as f64);
    }
}

/// Why frames are too long, and what to do about it.
pub struct TooLong {
    pub said: String,
    pub remedy: String,
}

/// Frames that an end of the run has no room for, although the sending interface does: reported before any is sent.
pub fn too_long(setup: &Setup) -> Option<TooLong> {
    // A VLAN tag may stand on top of the MTU.
    const TAG: usize = 4;
    const FCS: usize = traffic::expr::FCS as usize;
    // Else `setup.longest` is how long its buffers are: frames are seen as they are read, and held to the sending interface.
    setup.job.source.facts().longest?;
    let ends = setup.rx.iter().map(|(place, _)| place).chain(&setup.tx);
    let short = ends.min_by_key(|place| place.interface.mtu)?;
    let most = short.interface.max_frame();
    (setup.longest > most + TAG).then(|| TooLong {
        said: format!(
            "frames of up to {} bytes (with FCS) are sent, and {}, whose MTU is {}, takes no more than {}",
            setup.longest + FCS,
            short.spec,
            short.interface.mtu,
            most + FCS,
        ),
        remedy: format!(
            "do `ip link set {} mtu {}` there, or give a smaller `.size`",
            short.interface.name,
            setup.longest.saturating_sub(14)
        ),
    })
}

/// Why an interface took no frame any more, where its counter says that it dropped them: at a veth's other end they were too long,
/// or that end is down. A queue that is full drops nothing.
fn why_stuck(counters: &[HostCounter], setup: &Setup, fault: &TxError) -> Option<Sentence> {
    let TxError::Stuck(name, waited_ms) = fault else { return None };
    let place = setup.tx.iter().find(|place| place.interface.name == *name)?;
    let dropped = counters
        .iter()
        .find(|counter| counter.place == place.spec && counter.name == "tx_dropped" && counter.rise > 0)?;
    let what = format!(
        "{} accepted no frame for {waited_ms} ms, and dropped what it was given (tx_dropped rose by {})",
        place.spec,
        units::count(dropped.rise)
    );
    Some(match too_long(setup) {
        Some(TooLong { said, remedy }) => Sentence::new(format!("{what}: {said}"), Some(remedy)),
        None => Sentence::new(
            format!("{what}: its other end takes no frames of this length, or is down"),
            Some("compare the MTU of both ends (`ip link`), or give a smaller `.size`"),
        ),
    })
}

/// Did the run do what was asked?
pub fn judge(report: &mut Report, run: &Outcome<'_>) {
    let (setup, sent) = (run.setup, run.sent());
    let verdict = &mut report.result.verdict;
    let frames = sent.counters.frames;
    match &sent.ended {
        Ended::Done => {}
        Ended::Stopped if setup.endless => {}
        Ended::Stopped => verdict.fall_short(
            Code::Stopped,
            format!("stopped after {}, before all was sent", units::time(sent.duration_ns)),
        ),
        Ended::Fault(fault) => {
            let why =
                why_stuck(&report.result.counters, setup, fault).unwrap_or_else(|| fault.to_string().into());
            let why = why.behind(&run.ended_where());
            match frames {
                0 => verdict.fail(Code::SenderFailed, why),
                _ => verdict.fall_short(Code::SenderFailed, why),
            }
        }
        Ended::SourceFault(fault) if frames == 0 => {
            verdict.fail(Code::SourceFailed, run.ended_where() + &fault.to_string())
        }
        Ended::SourceFault(fault) => {
            verdict.fall_short(Code::SourceFailed, run.ended_where() + &fault.to_string())
        }
    }
    if sent.counters.failed > 0 {
        let why = match run.counts {
            Counts::HandedOver if !report.result.link_events.is_empty() => {
                ("the link was down for a while".to_owned(), None)
            }
            Counts::HandedOver => match too_long(setup) {
                Some(TooLong { said, remedy }) => (said, Some(remedy)),
                None => (
                    "its ring was full, or this core has none".to_owned(),
                    Some("lower `.rate`, or take other `.cores`".to_owned()),
                ),
            },
            Counts::Accepted | Counts::Completed => {
                ("too long for its MTU, or malformed for its driver".to_owned(), None)
            }
        };
        let (why, remedy) = why;
        let said = format!("the interface refused {} ({why})", units::counted(sent.counters.failed, "frame"));
        verdict.fall_short(Code::FramesRefused, Sentence::new(said, remedy));
    }
    if let Some(corrupted) = report.result.rx.as_ref().and_then(|rx| rx.corrupted_frames)
        && corrupted > 0
    {
        verdict.fall_short(
            Code::ContentChanged,
            format!("{} arrived with other content than was sent", units::counted(corrupted, "frame")),
        );
    }
    let lost = report.result.loss.is_some_and(|loss| loss.frames > 0);
    if let Some(said) = carrier::told(&report.result.link_events) {
        let for_good = report.result.link_events.iter().any(|event| event.duration_ns.is_none());
        if lost || for_good || sent.counters.failed > 0 {
            verdict.fall_short(
                Code::LinkLost,
                format!("{said}: what was sent meanwhile was lost there, not by the device"),
            );
        } else {
            report.warnings.add(Code::LinkLost, said);
        }
    }
    if let Some(loss) = report.result.loss
        && loss.frames > 0
    {
        let arrive = if setup.round_trip { "come back" } else { "arrive" };
        let whose = ports::whose_loss(&report.result.ports);
        if setup.round_trip && loss.ratio == 1.0 {
            let remedy = "have the other end send frames back, as `.reflect` does (docs/reflecting.md)";
            verdict.fall_short(Code::FramesLost, ("nothing came back", remedy));
        } else {
            let was = if loss.frames == 1 { "was" } else { "were" };
            let (lost, share) = (units::counted(loss.frames, "frame"), units::percent(loss.ratio));
            let said = format!("{lost} that {was} sent did not {arrive} ({share}){whose}");
            verdict.fall_short(Code::FramesLost, said);
        }
        if let Some(told) = where_they_went(&report.result.counters) {
            verdict.fall_short(Code::FramesExplained, told);
        }
    }
    if let Some(said) = ports::misdirected(&report.result.ports) {
        report.result.verdict.fall_short(Code::FramesMisdirected, said);
    }
    let missing = report.result.tx.as_ref().and_then(|tx| tx.due_not_sent_frames);
    match too_slow(sent, missing).filter(|_| !is_unpaced(report)) {
        Some(reason) if setup.best_effort => report.warnings.add(Code::RateNotReached, reason),
        Some(reason) => report.result.verdict.fall_short(Code::RateNotReached, reason),
        None => {}
    }
}

/// At top speed passes may have times, but frames have none.
fn is_unpaced(report: &Report) -> bool {
    report.resolved.rate.as_ref().is_some_and(|rate| rate.text == Rate::TopSpeed.to_string())
}
