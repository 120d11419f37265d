//! What arrived of what a run sent, and what did not: streams, losses, gaps.

use engine::{Job, Share, pacer};
use report::{Distribution, Loss, Report, RxInterface, Stream, Totals};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashSet};

use crate::place::Place;
use crate::run::fill::Outcome;
use crate::run::fill::measured::{fill_measured, list_streams, stream};
use crate::run::intended::dues;
use crate::run::meters::{self, Measured};
use crate::run::{Setup, background, ports, trust};

/// What is known of what arrived beside the result, for the judging.
#[derive(Debug, Clone, Copy)]
pub struct Received {
    /// How many frames had numbers, if it is by those that the loss is known.
    pub numbered: Option<u64>,
    /// Frames that had numbers.
    pub known: u64,
    /// Frames that this run did not send.
    pub foreign: u64,
    /// No lost frame is among those.
    pub certain: bool,
    /// Streams lost frames, and some were refused: whose is not known.
    pub refused_unknown: bool,
    /// Streams that there were, where these are too many to list.
    pub unlisted: Option<u64>,
}

/// What arrived.
pub fn fill_rx(report: &mut Report, run: &Outcome<'_>, both: &Measured) -> Received {
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
    if foreign > 0
        && let Some(rx) = &mut report.result.rx
    {
        rx.foreign_frames = Some(foreign);
        if let Some(tx) = &report.result.tx {
            rx.others_came(&tx.totals);
        }
    }
    let refused_unknown = !sent_whole(run) && streams.iter().any(|stream| stream.lost_frames > 0);
    ports::fill_rx(report, run, both, &streams);
    if let Some(catch_up) = report.result.pacing.as_mut().and_then(|pacing| pacing.catch_up.as_mut()) {
        catch_up.most_received_in_1ms = densest(&measured.arrivals, totals.frames);
    }
    let unlisted = list_streams(report, streams);
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
    Received {
        numbered: (run.setup.round_trip || all_signed).then_some(known),
        known,
        foreign,
        certain,
        refused_unknown,
        unlisted,
    }
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
            Some(_) => signed.extend(numbered(job, share)),
            None if measured.totals.signed > 0 || run.setup.round_trip => {
                signed.extend(numbered(job, share));
            }
            None => {}
        }
    }
    signed
}

/// What a worker sent of each number in signatures, refused frames not looked at.
pub fn numbered(job: &Job, share: &Share) -> Vec<(u32, u64)> {
    match job.source.program() {
        Some(program) => program.signed_among(share.counters.frames),
        None => {
            let numbered = job.source.seen().map_or([0; 2], |seen| seen.signed);
            job.source.facts().streams.into_iter().zip(numbered).collect()
        }
    }
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
            Entry::Occupied(mut sum) => sum.get_mut().add(share),
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
pub fn sent_whole(run: &Outcome<'_>) -> bool {
    run.sent().counters.failed == 0
}

/// Where what each of several ports sent arrived.
fn arrivals(run: &Outcome<'_>, measured: &Measured) -> Vec<RxInterface> {
    let Setup { tx, rx, .. } = run.setup;
    if tx.len() < 2 || tx.len() != rx.len() || run.setup.per_port.is_some() {
        return Vec::new();
    }
    let row = |((from, (at, _)), part): ((&Place, &(Place, _)), &meters::Part)| RxInterface {
        interface: at.spec.clone(),
        from: from.spec.clone(),
        frames: part.frames,
        bytes: part.bytes,
    };
    tx.iter().zip(rx).zip(&measured.parts).map(row).collect()
}

/// Frames that did not arrive where their port's were to, as far as counts alone show it. `none`: the run sent nothing of what
/// is about on networks.
fn missing(run: &Outcome<'_>, measured: &Measured, none: bool) -> u64 {
    let ports = &run.sent().ports;
    if ports.len() != measured.parts.len() {
        return 0;
    }
    let arrived = |part: &meters::Part| part.frames - if none { part.background } else { 0 };
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
