//! Several agents' reports as one: counts add up, histograms add by bucket, and loss is what senders sent of each number less what came of it.
//!
//! Whatever an agent tells is from outside: sums stop at what a number holds, and nothing of it is believed but as its own figure. What one does not
//! tell makes those figures unknown that need it.

use crate::grid;
use crate::joint::NotDone;
use crate::offset::Offset;
use crate::plan::{Part, Plan, Role, at_agent};
use report::{
    AgentClock, AgentPart, CatchUp, Code, Distribution, Flows, Interval, LatencyClock, LinkEvent, Loss,
    Pacing, Report, Rx, RxInterface, SignedFrames, Stream, Totals, Tx, TxInterface, Verdict, units,
};
use spec::Job;
use std::collections::BTreeMap;

/// Clocks that are kept right drift apart by no more than this share of the time.
const SLEW: u64 = 1000;

/// What came of a part.
pub(crate) struct Came {
    pub name: String,
    pub host: Option<String>,
    /// Its clock is that of the host where the job was asked for.
    pub is_here: bool,
    /// Its clock is that of the host where its frames are measured.
    pub same_host: bool,
    /// How its clock stood: before, when all were ready, and after.
    pub offsets: Vec<Offset>,
    /// What its stamps were ahead of its own clock.
    pub stamps_ahead_ns: i64,
    pub report: Result<Report, String>,
    /// Why a file that it wrote is not here.
    pub unfetched: Option<String>,
    /// It measured, and ended before the senders had done.
    pub early: bool,
}

/// A part with what came of it.
type One<'a> = (&'a Part, &'a Came);

/// Puts the parts of a job together.
pub(crate) fn merge(job: &Job, plan: &Plan, came: &[Came]) -> Result<Report, NotDone> {
    let all: Vec<One<'_>> = plan.parts.iter().zip(came).collect();
    let (sends, measures): (Vec<One<'_>>, Vec<One<'_>>) =
        all.iter().partition(|(part, _)| !part.role.attends());
    let Some(first) = sends.iter().find_map(|(_, came)| came.report.as_ref().ok()) else {
        return Err(NotDone::Stopped);
    };
    let mut known = Known::default();
    let mut whole = Report::new(job.kind());
    whole.environment = first.environment.clone();
    whole.resolved = first.resolved.clone();
    if all.iter().any(|(part, _)| part.role == Role::Whole) {
        whole = first.clone();
        whole.command_line = Vec::new();
        if let Verdict::Short { reasons } = &mut whole.result.verdict {
            let open = reasons.iter_mut().filter(|said| said.code == Code::SearchIncomplete);
            // The agent does not know that it is one.
            open.for_each(|said| *said = said.with_remedy(report::conclusion::BEGINS_ANEW));
        }
        if all.len() > 1 {
            // They are told again, with who says so.
            whole.warnings = report::Warnings::default();
        }
    } else {
        known = fill(&mut whole, job, plan, (&sends, &measures));
    }
    Ok(concluded(whole, job, &all, known))
}

/// What is known where the part that all others are for was lost.
pub(crate) fn remains(job: &Job, plan: &Plan, came: &[Came]) -> Report {
    let all: Vec<One<'_>> = plan.parts.iter().zip(came).collect();
    concluded(Report::new(job.kind()), job, &all, Known::default())
}

/// With what all agents are and say.
fn concluded(mut whole: Report, job: &Job, all: &[One<'_>], known: Known) -> Report {
    environment(&mut whole, all);
    whole.result.agents = agents(all);
    verdict(&mut whole, all, known);
    let mut job = job.clone();
    if let Some(seed) = whole.resolved.seed {
        job.draw(seed);
    }
    whole.requested = job.to_value().ok();
    whole
}

fn fill(whole: &mut Report, job: &Job, plan: &Plan, (sends, measures): (&[One<'_>], &[One<'_>])) -> Known {
    let mut known = Known::default();
    sent(whole, sends);
    if plan.shared {
        whole.resolved.count = match job {
            Job::Send(send) => send.count.as_deref().copied(),
            _ => None,
        };
        // Frames of one flow may have left at several: it is once among those of all.
        let sent = whole
            .result
            .tx
            .as_ref()
            .map(|tx| tx.totals)
            .filter(|_| sends.iter().all(|(_, came)| came.report.is_ok()));
        let counted = match (job, sent) {
            (Job::Send(send), Some(sent)) => {
                job::flows_among(send, sent.frames).map(|counted| (sent, counted))
            }
            _ => None,
        };
        whole.result.flows = counted.map(|(sent, (flows, frames))| {
            Flows::over(flows, frames, sent.frames.saturating_sub(frames), sent.duration_ns)
        });
    }
    let meters: Vec<&Report> =
        measuring(sends).chain(measuring(measures)).map(|(_, report)| report).collect();
    if !meters.is_empty() {
        received(whole, &meters, measures);
        known = streams(whole, plan, sends, measures);
        loss(whole, (sends, measures), known);
        latency(whole, &meters, (sends, measures));
    }
    intervals(whole, sends, measures, &meters);
    whole.result.link_events = sends.iter().chain(measures).flat_map(link_events).collect();
    known
}

/// What happened to an agent's links, each by its name here.
fn link_events<'a>((_, came): &'a One<'_>) -> impl Iterator<Item = LinkEvent> + 'a {
    let told = came.report.as_ref().ok().into_iter().flat_map(|report| &report.result.link_events);
    told.map(|event| LinkEvent { interface: format!("{}@{}", event.interface, came.name), ..event.clone() })
}

/// Those that measured, with what they told.
fn measuring<'a>(of: &'a [One<'a>]) -> impl Iterator<Item = (&'a str, &'a Report)> {
    let told = of.iter().filter_map(|(_, came)| Some((&*came.name, came.report.as_ref().ok()?)));
    told.filter(|(_, report)| report.result.rx.is_some())
}

fn sum(each: impl Iterator<Item = u64>) -> u64 {
    each.fold(0, u64::saturating_add)
}

/// The sum, if all know theirs.
fn sum_of_all(mut each: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    each.try_fold(0u64, |sum, n| Some(sum.saturating_add(n?)))
}

fn sent(whole: &mut Report, sends: &[One<'_>]) {
    let told: Vec<(&One<'_>, &Report, &Tx)> = sends
        .iter()
        .filter_map(|one| {
            let report = one.1.report.as_ref().ok()?;
            Some((one, report, report.result.tx.as_ref()?))
        })
        .collect();
    if let [(_, report, tx)] = &told[..]
        && sends.len() == 1
    {
        whole.result.tx = Some(Tx::clone(tx));
        whole.result.pacing = report.result.pacing.clone();
        whole.result.flows = report.result.flows;
        whole.result.frame_sizes = report.result.frame_sizes.clone();
        return;
    }
    let of = |f: fn(&Tx) -> u64| sum(told.iter().map(|(_, _, tx)| f(tx)));
    let of_all = |f: fn(&Tx) -> Option<u64>| sum_of_all(told.iter().map(|(_, _, tx)| f(tx)));
    // All began together, so the time that was sent in is the longest.
    let lasted = told.iter().map(|(_, _, tx)| tx.totals.duration_ns).max().unwrap_or(0);
    let mut engines: Vec<&str> = told.iter().map(|(_, _, tx)| &*tx.engine).collect();
    engines.sort_unstable();
    engines.dedup();
    let row = |(one, report, tx): &(&One<'_>, &Report, &Tx)| TxInterface {
        interface: at_agent(&one.0.sends_on, &one.1.name).join(", "),
        frames: tx.totals.frames,
        bytes: tx.totals.bytes,
        failed: tx.failed,
        retried_enobufs: tx.retried_enobufs,
        retried_eagain: tx.retried_eagain,
        truncated: tx.truncated,
        flows: report.result.flows.map(|flows| flows.flows),
        flow_frames: report.result.flows.map(|flows| flows.flow_frames),
    };
    let rates = told.iter().map(|(_, _, tx)| tx.intended_frames_per_second);
    whole.result.tx = Some(Tx {
        totals: Totals::over(of(|tx| tx.totals.frames), of(|tx| tx.totals.bytes), lasted),
        intended_frames: of_all(|tx| tx.intended_frames),
        due_not_sent_frames: of_all(|tx| tx.due_not_sent_frames),
        intended_frames_per_second: rates.collect::<Option<Vec<f64>>>().map(|rates| rates.iter().sum()),
        engine: engines.join(", "),
        failed: of(|tx| tx.failed),
        retried_enobufs: of(|tx| tx.retried_enobufs),
        retried_eagain: of(|tx| tx.retried_eagain),
        truncated: of(|tx| tx.truncated),
        unconfirmed_frames: of_all(|tx| Some(tx.unconfirmed_frames.unwrap_or(0))).filter(|n| *n > 0),
        interfaces: told.iter().map(row).collect(),
        stamped_together: told.iter().filter_map(|(_, _, tx)| tx.stamped_together).max(),
        ..Tx::default()
    });
    let flows = told.iter().map(|(_, report, _)| report.result.flows).collect::<Option<Vec<Flows>>>();
    whole.result.flows = flows.filter(|flows| !flows.is_empty()).map(|all| {
        let of = |f: fn(&Flows) -> u64| sum(all.iter().map(f));
        Flows::over(of(|f| f.flows), of(|f| f.flow_frames), of(|f| f.non_flow_frames), lasted)
    });
    let kept: Vec<&Pacing> = told.iter().filter_map(|(_, report, _)| report.result.pacing.as_ref()).collect();
    whole.result.pacing = (!kept.is_empty()).then(|| pacing(&kept));
}

/// How several kept their schedules.
fn pacing(kept: &[&Pacing]) -> Pacing {
    let catches: Vec<&CatchUp> = kept.iter().filter_map(|pacing| pacing.catch_up.as_ref()).collect();
    let of = |f: fn(&CatchUp) -> u64| sum(catches.iter().map(|caught| f(caught)));
    let catch_up = catches.first().map(|first| CatchUp {
        stalls: of(|caught| caught.stalls),
        longest_stall_ns: catches.iter().map(|caught| caught.longest_stall_ns).max().unwrap_or(0),
        frames: of(|caught| caught.frames),
        abandoned_ns: catches.iter().map(|caught| caught.abandoned_ns).max().unwrap_or(0),
        most_in_1ms: None,
        most_received_in_1ms: None,
        ..**first
    });
    Pacing {
        measured_at: Some("sender".to_owned()),
        lateness_ns: Distribution::of_all(kept.iter().filter_map(|pacing| pacing.lateness_ns.as_ref())),
        first_frame_late_ns: kept.iter().filter_map(|pacing| pacing.first_frame_late_ns).max(),
        last_frame_late_ns: kept.iter().filter_map(|pacing| pacing.last_frame_late_ns).max(),
        late_frames: sum_of_all(kept.iter().map(|pacing| pacing.late_frames)),
        late_threshold_ns: kept.iter().filter_map(|pacing| pacing.late_threshold_ns).max(),
        catch_up,
        ..Pacing::default()
    }
}

fn received(whole: &mut Report, meters: &[&Report], measures: &[One<'_>]) {
    let told: Vec<&Rx> = meters.iter().filter_map(|report| report.result.rx.as_ref()).collect();
    let of = |f: fn(&Rx) -> u64| sum(told.iter().map(|rx| f(rx)));
    let known = |f: fn(&Rx) -> Option<u64>| {
        let any = told.iter().any(|rx| f(rx).is_some());
        any.then(|| sum(told.iter().filter_map(|rx| f(rx))))
    };
    let span = told.iter().map(|rx| rx.totals.duration_ns).max().unwrap_or(0);
    let row = |(part, came): &One<'_>| {
        let rx = came.report.as_ref().ok()?.result.rx.as_ref()?;
        let interface = at_agent(&part.measures_on, &came.name).join(", ");
        Some(RxInterface { interface, from: String::new(), frames: rx.totals.frames, bytes: rx.totals.bytes })
    };
    let rows: Vec<RxInterface> = measures.iter().filter_map(row).collect();
    let mut rx = Rx {
        totals: Totals::over(of(|rx| rx.totals.frames), of(|rx| rx.totals.bytes), span),
        duplicated_frames: known(|rx| rx.duplicated_frames),
        reordered_frames: known(|rx| rx.reordered_frames),
        dropped_frames: known(|rx| rx.dropped_frames),
        trailed_frames: known(|rx| rx.trailed_frames),
        background_frames: known(|rx| rx.background_frames),
        blind_because: told.iter().find_map(|rx| rx.blind_because.clone()),
        interfaces: if rows.len() > 1 { rows } else { Vec::new() },
        ..Rx::default()
    };
    if let Some(tx) = &whole.result.tx {
        rx.over_sending_time(&tx.totals);
    }
    whole.result.rx = Some(rx);
    whole.result.frame_sizes = sizes(meters);
    let gaps: Vec<&Distribution> =
        meters.iter().filter_map(|report| report.result.arrival_gap_ns.as_ref()).collect();
    whole.result.arrival_gap_ns = Distribution::of_all(gaps);
}

fn sizes(meters: &[&Report]) -> Vec<report::Bucket> {
    let mut sums: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    for bucket in meters.iter().flat_map(|report| &report.result.frame_sizes) {
        let sum = sums.entry((bucket.from, bucket.to)).or_default();
        *sum = sum.saturating_add(bucket.count);
    }
    sums.into_iter().map(|((from, to), count)| report::Bucket { from, to, count }).collect()
}

/// What is known of the streams of all.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Known {
    /// Frames that were sent with numbers, to be measured at another agent, and those of them that came.
    numbered: u64,
    came: u64,
    /// The same with copies.
    ours: u64,
    /// Lost ones by the numbers; `None`: of some numbers it is not known how many were sent.
    lost: Option<u64>,
    /// Of numbers that nobody sent.
    foreign: u64,
    /// By how many more of a number came than were sent of it, in sum.
    surplus: u64,
}

/// The streams as they were asked for: what came of each number, less what was sent of it.
fn streams(whole: &mut Report, plan: &Plan, sends: &[One<'_>], measures: &[One<'_>]) -> Known {
    let mut rows: BTreeMap<(u32, u32), Stream> = BTreeMap::new();
    let mut delays: BTreeMap<(u32, u32), Vec<Distribution>> = BTreeMap::new();
    // Of a number its stream; shares of one stream are one.
    let mut own: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
    let mut known = Known { lost: Some(0), ..Known::default() };
    let key = |sender: u32, stream: u32| if plan.shared { (0, stream) } else { (sender, stream) };
    let mut sent: BTreeMap<u32, Option<u64>> = BTreeMap::new();
    let mut to: BTreeMap<u32, &Part> = BTreeMap::new();
    for (part, came) in sends {
        let (Role::Sends { number, measured_at }, Ok(report)) = (part.role, &came.report) else { continue };
        if measured_at.is_none() {
            let senders = u32::try_from(sends.len()).unwrap_or(u32::MAX).max(1);
            // Others' frames that came there, too, are none of its streams.
            for stream in report.streams.iter().filter(|stream| stream.tx_frames.is_some()) {
                let at = key(number, stream.stream / senders);
                add(&mut rows, &mut delays, at, stream.clone());
            }
            continue;
        }
        for SignedFrames { number: signature, stream, name, frames } in signed(report) {
            let at = key(number, *stream);
            own.insert(*signature, at);
            to.insert(*signature, *part);
            sent.insert(*signature, *frames);
            let row = rows.entry(at).or_insert_with(|| Stream { stream: at.1, ..Stream::default() });
            row.name = row.name.take().or_else(|| name.clone());
            row.tx_frames = Some(row.tx_frames.unwrap_or(0).saturating_add(frames.unwrap_or(0)));
        }
    }
    let mut arrived: BTreeMap<u32, u64> = BTreeMap::new();
    for (meter, report) in
        measures.iter().filter_map(|(part, came)| Some((*part, came.report.as_ref().ok()?)))
    {
        for stream in &report.streams {
            // What came where it was not sent to, by flooding or astray, is no proof that it arrived.
            let own = own.get(&stream.stream).filter(|_| is_to(stream.stream, meter, &to));
            let Some(at) = own else {
                known.foreign = known.foreign.saturating_add(stream.rx_frames);
                continue;
            };
            known.ours = known.ours.saturating_add(stream.rx_frames);
            let distinct = stream.rx_frames.saturating_sub(stream.duplicated_frames);
            let sum = arrived.entry(stream.stream).or_default();
            *sum = sum.saturating_add(distinct);
            let row = Stream { lost_frames: 0, lost_at_end_frames: 0, ..stream.clone() };
            add(&mut rows, &mut delays, *at, row);
        }
    }
    for (signature, frames) in sent {
        let came = arrived.get(&signature).copied().unwrap_or(0);
        known.came = known.came.saturating_add(came);
        let Some(frames) = frames else {
            known.lost = None;
            continue;
        };
        known.numbered = known.numbered.saturating_add(frames);
        known.surplus = known.surplus.saturating_add(came.saturating_sub(frames));
        let lost = frames.saturating_sub(came);
        known.lost = known.lost.map(|sum| sum.saturating_add(lost));
        if let Some(row) = own.get(&signature).and_then(|at| rows.get_mut(at)) {
            row.lost_frames = row.lost_frames.saturating_add(lost);
        }
    }
    for (at, row) in &mut rows {
        row.latency_ns = delays.get(at).and_then(Distribution::of_all);
    }
    whole.streams = named(rows, plan, sends);
    known
}

/// Are frames of this number to arrive at this meter?
fn is_to(number: u32, meter: &Part, to: &BTreeMap<u32, &Part>) -> bool {
    let Some(sender) = to.get(&number) else { return false };
    let at = matches!(sender.role, Role::Sends { measured_at: Some(agent), .. } if agent == meter.agent);
    sender.arrives_at.is_empty() || at && meter.measures_on.iter().any(|on| sender.arrives_at.contains(on))
}

fn signed(report: &Report) -> &[SignedFrames] {
    report.result.tx.as_ref().map_or(&[], |tx| &tx.signed)
}

fn add(
    rows: &mut BTreeMap<(u32, u32), Stream>,
    delays: &mut BTreeMap<(u32, u32), Vec<Distribution>>,
    at: (u32, u32),
    mut part: Stream,
) {
    delays.entry(at).or_default().extend(part.latency_ns.take());
    let row = rows.entry(at).or_insert_with(|| Stream { stream: at.1, ..Stream::default() });
    let (tx, name) = (part.tx_frames, part.name.take());
    row.tx_frames = match (row.tx_frames, tx) {
        (Some(own), Some(more)) => Some(own.saturating_add(more)),
        (own, more) => own.or(more),
    };
    row.name = row.name.take().or(name);
    if row.rx_frames == 0 {
        let known = (row.tx_frames, row.lost_frames, row.lost_at_end_frames, row.name.take());
        *row = Stream {
            stream: at.1,
            lost_frames: known.1.saturating_add(part.lost_frames),
            tx_frames: known.0,
            name: known.3,
            ..part
        };
        row.lost_at_end_frames = row.lost_at_end_frames.saturating_add(known.2);
    } else {
        row.add(part);
    }
}

/// Of several senders each stream has its sender's name, and a number of its own.
fn named(rows: BTreeMap<(u32, u32), Stream>, plan: &Plan, sends: &[One<'_>]) -> Vec<Stream> {
    if plan.shared || sends.len() < 2 {
        return rows.into_values().collect();
    }
    let senders: BTreeMap<u32, &str> = sends
        .iter()
        .filter_map(|(part, came)| match part.role {
            Role::Sends { number, .. } => Some((number, &*came.name)),
            _ => None,
        })
        .collect();
    let numbered = (0u32..).zip(rows);
    let rename = |(number, ((sender, _), row)): (u32, ((u32, u32), Stream))| {
        let by = senders.get(&sender).copied().unwrap_or_default();
        let name = match &row.name {
            Some(name) => format!("{name} by {by}"),
            None => format!("by {by}"),
        };
        Stream { stream: number, name: Some(name), ..row }
    };
    numbered.map(rename).collect()
}

/// What was sent at one agent and measured at another, in sum.
struct Far {
    sent: u64,
    lost: u64,
    by_count: bool,
    /// Frames that arrived and were not sent there.
    foreign: u64,
}

impl Far {
    fn of(sends: &[One<'_>], measures: &[One<'_>], known: Known) -> Far {
        let is_far = |part: &Part| matches!(part.role, Role::Sends { measured_at: Some(_), .. });
        let told =
            sends.iter().filter(|(part, _)| is_far(part)).filter_map(|(_, came)| came.report.as_ref().ok());
        let sent = sum(told.filter_map(|report| report.result.tx.as_ref()).map(|tx| tx.totals.frames));
        let meters: Vec<&Report> = measuring(measures).map(|(_, report)| report).collect();
        let came: Vec<&Rx> = meters.iter().filter_map(|report| report.result.rx.as_ref()).collect();
        let all = sum(came.iter().map(|rx| rx.totals.frames));
        let arrived =
            sum(came.iter().map(|rx| rx.totals.frames.saturating_sub(rx.duplicated_frames.unwrap_or(0))));
        // Frames that a meter could put into no stream have arrived all the same.
        let unplaced = meters.iter().flat_map(|report| report.warnings.iter()).any(|said| {
            matches!(
                said.code,
                Code::StreamsBeyond | Code::StreamsContended | Code::StreamsAstray | Code::StreamsRenewed
            )
        });
        let (lost, by_count) = match known.lost.filter(|_| !unplaced) {
            Some(lost) if known.numbered == sent => (lost, false),
            // Of frames without numbers those of others may stand in for lost ones.
            Some(lost) => {
                let unsigned = sent.saturating_sub(known.numbered);
                let came = arrived.saturating_sub(known.came).saturating_sub(known.foreign);
                (lost.saturating_add(unsigned.saturating_sub(came)), true)
            }
            None => (sent.saturating_sub(arrived.saturating_sub(known.foreign)), sent > 0),
        };
        // Where all of ours have numbers, whatever has none is others'.
        let foreign = if by_count { known.foreign } else { all.saturating_sub(known.ours) };
        Far { sent, lost, by_count, foreign }
    }
}

/// What was sent and did not arrive, if all who must tell have told.
fn loss(whole: &mut Report, (sends, measures): (&[One<'_>], &[One<'_>]), known: Known) {
    let silent = sends.iter().chain(measures).any(|(_, came)| came.report.is_err() || came.early);
    let far = Far::of(sends, measures, known);
    let near: Vec<&Report> = measuring(sends).map(|(_, report)| report).collect();
    if let Some(rx) = &mut whole.result.rx {
        let near_foreign = sum(near.iter().filter_map(|report| report.result.rx.as_ref()?.foreign_frames));
        // Whose sender is lost nobody knows.
        let sender_lost = sends.iter().any(|(_, came)| came.report.is_err());
        let foreign = far.foreign.saturating_add(near_foreign);
        rx.foreign_frames = Some(foreign).filter(|n| *n > 0 && !sender_lost);
    }
    if silent {
        whole.result.loss = None;
        // Of what a lost meter would have seen no stream has a loss.
        if measures.iter().any(|(_, came)| came.report.is_err() || came.early) {
            whole.streams.clear();
        }
        return;
    }
    let near_loss: Vec<Loss> = near.iter().filter_map(|report| report.result.loss).collect();
    let lost = far.lost.saturating_add(sum(near_loss.iter().map(|loss| loss.frames)));
    let frames = whole.result.tx.as_ref().map_or(0, |tx| tx.totals.frames);
    let by_count_only = far.by_count || near_loss.iter().any(|loss| loss.by_count_only);
    let unsigned = far.sent.saturating_sub(known.numbered);
    let unsigned_frames = (far.by_count && known.numbered > 0 && unsigned > 0).then_some(unsigned);
    whole.result.loss = Some(Loss { by_count_only, unsigned_frames, ..Loss::of(lost, frames) });
}

/// Delays of all, unless the clocks of both ends are compared too coarsely for them.
fn latency(whole: &mut Report, meters: &[&Report], (sends, measures): (&[One<'_>], &[One<'_>])) {
    let delays: Vec<&Distribution> =
        meters.iter().filter_map(|report| report.result.latency_ns.as_ref()).collect();
    if let [only] = meters {
        whole.result.delay_variation = only.result.delay_variation.clone();
    }
    if delays.is_empty() {
        return;
    }
    let first = meters.iter().find_map(|report| report.result.latency_clock.clone());
    let across: Vec<Comparison> = sends.iter().filter_map(|one| Comparison::of(one, measures)).collect();
    let mut clock =
        first.unwrap_or_else(|| LatencyClock { name: "tai".to_owned(), ..LatencyClock::default() });
    let error = across.iter().map(|comparison| comparison.error_ns).max();
    if error.is_some() {
        // Whether daemons keep the clocks does not matter where they are compared.
        (clock.max_error_ns, clock.estimated_error_ns, clock.synchronised) = (None, None, None);
    }
    clock.comparison_error_ns = error;
    whole.result.latency_ns = Distribution::of_all(delays);
    let warned = meters.iter().flat_map(|report| report.warnings.iter());
    let negative = warned.filter(|said| said.code == Code::LatencyUnknown).count() > 0;
    let stepped = across.iter().any(|comparison| comparison.stepped);
    let unfinished = across.iter().any(|comparison| comparison.unfinished);
    let why = match &whole.result.latency_ns {
        _ if error.is_some() && negative => Some((
            "some frames carry a time stamp of the receiver's future: the clocks are compared less well than delays need, and none is given"
                .to_owned(),
            "measure them there and back (`.round_trip`, with `netdyno reflect` at the far end)",
        )),
        _ if stepped => Some((
            "a clock was set while the job lasted, there or here: delays from one host to another are not measurable".to_owned(),
            "let PTP or NTP keep the clocks of all hosts",
        )),
        _ if unfinished => Some((
            "the clocks could not be compared once more after the job: whether one was set, or how far they drifted apart, is not known, and \
             no delay is given"
                .to_owned(),
            "measure them there and back (`.round_trip`, with `netdyno reflect` at the far end)",
        )),
        Some(d) => error.filter(|error| *error > 0 && d.p50 <= *error).map(|error| {
            (
                format!(
                    "half of the frames took {} at most from one host to the other, and the clocks there are compared within {}: delays are not \
                     measurable, and none is given",
                    units::time(d.p50),
                    units::time(error)
                ),
                "measure them there and back (`.round_trip`, with `netdyno reflect` at the far end)",
            )
        }),
        None => None,
    };
    if stepped {
        whole.result.delay_variation = None;
        whole.streams.iter_mut().for_each(|stream| stream.jitter_ns = None);
    }
    if let Some(why) = why {
        whole.warnings.add(Code::LatencyUnknown, why);
        whole.result.latency_ns = None;
        for stream in &mut whole.streams {
            (stream.latency_ns, stream.latency_min_ns) = (None, None);
            (stream.latency_mean_ns, stream.latency_max_ns) = (None, None);
        }
    }
    whole.result.latency_clock = Some(clock);
}

/// How well the clocks of a sender and its meter are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Comparison {
    error_ns: u64,
    stepped: bool,
    /// It was not made after the job, so that what became of the clocks meanwhile is not known.
    unfinished: bool,
}

/// Clocks are compared when an agent is reached, when it is ready, and after the job.
const COMPARED: usize = 3;

impl Comparison {
    /// None, where sender and meter are one agent's.
    fn of((part, came): &One<'_>, measures: &[One<'_>]) -> Option<Comparison> {
        let Role::Sends { measured_at: Some(agent), .. } = part.role else { return None };
        let (_, meter) = measures.iter().find(|(part, _)| part.agent == agent)?;
        if came.same_host {
            let stepped = Self::pairs(came, meter).any(|(ahead, error, _)| ahead.unsigned_abs() > error);
            return Some(Comparison { error_ns: 0, stepped, unfinished: false });
        }
        let used = came.stamps_ahead_ns;
        let (mut error_ns, mut stepped) = (0, false);
        let mut first = None;
        for (ahead, error, at) in Self::pairs(came, meter) {
            error_ns = error_ns.max(ahead.abs_diff(used).saturating_add(error));
            let (began, before) = *first.get_or_insert((at, error));
            let drift = at.abs_diff(began) / SLEW;
            stepped |= ahead.abs_diff(used) > error.saturating_add(before).saturating_add(drift);
        }
        let unfinished = came.offsets.len().min(meter.offsets.len()) < COMPARED;
        Some(Comparison { error_ns, stepped, unfinished })
    }

    /// How far the meter's clock was ahead of the sender's, with what error, and when.
    fn pairs(sender: &Came, meter: &Came) -> impl Iterator<Item = (i64, u64, u64)> {
        sender.offsets.iter().zip(&meter.offsets).map(|(own, other)| {
            let ahead = other.offset_ns.saturating_sub(own.offset_ns);
            (ahead, own.error_ns.saturating_add(other.error_ns), own.at_ns)
        })
    }
}

fn intervals(whole: &mut Report, sends: &[One<'_>], measures: &[One<'_>], meters: &[&Report]) {
    let told = sends.iter().chain(measures).filter_map(|(_, came)| came.report.as_ref().ok());
    let each: Vec<&[Interval]> = told.map(|report| &report.intervals[..]).collect();
    if let [only] = each[..] {
        whole.intervals = only.to_vec();
        return;
    }
    whole.intervals = grid::summed(&each);
    if let ([only], Some(_)) = (meters, &whole.result.latency_ns) {
        grid::put_delays(&mut whole.intervals, &only.intervals);
    }
}

/// Interfaces of all hosts; else it is that of the first sender.
fn environment(whole: &mut Report, all: &[One<'_>]) {
    let told = || all.iter().filter_map(|(_, came)| Some((&*came.name, came.report.as_ref().ok()?)));
    whole.environment.interfaces = told()
        .flat_map(|(name, report)| {
            report.environment.interfaces.iter().map(move |interface| report::Interface {
                name: format!("{}@{name}", interface.name),
                ..interface.clone()
            })
        })
        .collect();
    whole.environment.meter = told().find_map(|(_, report)| report.environment.meter.clone());
    let named = |of: fn(&Part) -> &Vec<String>| {
        all.iter().flat_map(move |(part, came)| at_agent(of(part), &came.name))
    };
    whole.resolved.interfaces = named(|part| &part.sends_on).chain(named(|part| &part.measures_on)).collect();
    whole.result.counters = told()
        .flat_map(|(name, report)| {
            report.result.counters.iter().map(move |counter| report::HostCounter {
                place: format!("{}@{name}", counter.place),
                ..counter.clone()
            })
        })
        .collect();
}

/// A row for each agent; of one that sends and measures for others, both.
fn agents(all: &[One<'_>]) -> Vec<AgentPart> {
    let row = |(part, came): &One<'_>| {
        let late =
            came.report.as_ref().ok().and_then(|report| report.result.pacing.as_ref()?.first_frame_late_ns);
        let mut own = came.report.as_ref().ok().cloned();
        if let Some(own) = &mut own {
            // What stands in it was an agent's word already.
            own.result.agents.clear();
            own.requested = None;
        }
        AgentPart {
            name: came.name.clone(),
            host: came.host.clone(),
            sends_on: part.sends_on.clone(),
            measures_on: part.measures_on.clone(),
            clock: clock(came),
            began_late_ns: late.filter(|_| !matches!(part.role, Role::Whole | Role::Serves)),
            error: came.report.as_ref().err().cloned(),
            report: own.map(Box::new),
        }
    };
    // Who sends comes first.
    let (sends, measures): (Vec<_>, Vec<_>) = all.iter().partition(|(part, _)| !part.role.attends());
    sends.iter().chain(&measures).map(row).collect()
}

/// How its clock stood to this host's over the whole job: by the exchanges right before the start, and no better than those after it.
fn clock(came: &Came) -> Option<AgentClock> {
    let used = came.offsets.get(1).or(came.offsets.first())?;
    if came.is_here {
        let round_trip_ns = used.round_trip_ns;
        return Some(AgentClock { offset_ns: 0, error_ns: 0, round_trip_ns, same_host: true });
    }
    let of = |other: &Offset| other.offset_ns.abs_diff(used.offset_ns).saturating_add(other.error_ns);
    Some(AgentClock {
        offset_ns: used.offset_ns,
        error_ns: came.offsets.iter().map(of).max()?,
        round_trip_ns: used.round_trip_ns,
        same_host: false,
    })
}

/// The worst of all, with who says so; and what all together show.
fn verdict(whole: &mut Report, all: &[One<'_>], known: Known) {
    let only = matches!(all, [(Part { role: Role::Whole, .. }, _)]);
    if !only {
        whole.result.verdict = Verdict::Done;
    }
    for (part, came) in all {
        match &came.report {
            Ok(_) if only => {}
            Ok(report) => told_by(whole, (part, came), report),
            Err(why) => {
                let said = format!("{} was lost: {why}; what it did is in no figure", came.name);
                whole.result.verdict.fall_short(Code::AgentLost, said);
            }
        }
        if came.early && !only {
            let said = match part.role {
                Role::Serves => format!("{} ended serving before the test had ended", came.name),
                _ => format!("{} ended measuring before the senders had done: loss is not known", came.name),
            };
            whole.result.verdict.fall_short(Code::AgentLost, said);
        }
        if let Some(why) = &came.unfetched {
            whole.result.verdict.fall_short(Code::FramesNotCaptured, format!("{}: {why}", came.name));
        }
    }
    if all.iter().any(|(part, _)| part.role == Role::Whole) {
        return;
    }
    if let Some(said) = job::more_than_sent([known.surplus].into_iter()) {
        whole.result.verdict.fall_short(Code::SurplusFrames, said);
    }
    let lost = whole.result.loss.filter(|loss| loss.frames > 0);
    let frames = whole.result.tx.as_ref().map_or(0, |tx| tx.totals.frames);
    if let Some(loss) = lost {
        let how = if loss.by_count_only { ", by count" } else { "" };
        let said = format!(
            "{} of {} did not arrive{how}",
            units::count(loss.frames),
            units::counted(frames, "frame")
        );
        whole.result.verdict.fall_short(Code::FramesLost, said);
    }
}

/// What an agent says of its part, with its name before it. What a meter alone takes for lost is known better.
fn told_by(whole: &mut Report, (part, came): One<'_>, report: &Report) {
    let failed = matches!(report.result.verdict, Verdict::Failed { .. });
    for said in report.result.verdict.reasons() {
        if part.role == Role::Measures && said.code == Code::FramesLost {
            continue;
        }
        let sentence = said.sentence().behind(&format!("{}: ", came.name));
        match failed {
            true => whole.result.verdict.fail(said.code, sentence),
            false => whole.result.verdict.fall_short(said.code, sentence),
        }
    }
    let compared = part.role == Role::Measures;
    for said in report.warnings.iter().filter(|said| !(compared && said.code == Code::ClockUnkept)) {
        whole.warnings.add(said.code, said.sentence().behind(&format!("{}: ", came.name)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan;

    /// A load from `a` to `b`: the sender says how many of number 0 it sent, the meter what came of which numbers.
    fn merged(sent: u64, came: &[(u32, u64)], change: impl FnOnce(&mut Came)) -> Report {
        let text = "{schema: netdyno.job/1, kind: send, what: ipv4/udp, rate: 5pps, links: [{on: tx0@a, measure: rx0@b}]}";
        let job = spec::File::read(text, "job").expect("a job").jobs.remove(0);
        let agents = ["a=x", "b=x"].map(|agent| agent.parse().expect("an agent"));
        let plan = plan::plan(&job, &agents, None).expect("two parts");
        let mut near = Report::new("send");
        let signed = vec![SignedFrames { number: 0, stream: 0, name: None, frames: Some(sent) }];
        let totals = Totals::over(sent, sent * 60, 1_000_000_000);
        near.result.tx = Some(Tx { totals, signed, ..Tx::default() });
        let mut far = Report::new("measure");
        let all = came.iter().map(|(_, frames)| frames).sum();
        far.result.rx = Some(Rx { totals: Totals::over(all, all * 60, 1_000_000_000), ..Rx::default() });
        far.streams = came
            .iter()
            .map(|&(stream, rx_frames)| Stream { stream, rx_frames, ..Stream::default() })
            .collect();
        far.result.latency_ns = Distribution::from_samples(&mut [40_000; 10]);
        let offset =
            Offset { offset_ns: 0, error_ns: 15_000, round_trip_ns: 30_000, at_ns: 0, exchanges: 20 };
        let of = |name: &str, report: Report| Came {
            name: name.to_owned(),
            host: None,
            is_here: false,
            same_host: false,
            offsets: vec![offset; 3],
            stamps_ahead_ns: 0,
            report: Ok(report),
            unfetched: None,
            early: false,
        };
        let mut meter = of("b", far);
        change(&mut meter);
        merge(&job, &plan, &[meter, of("a", near)]).expect("a report")
    }

    fn codes(report: &Report) -> Vec<Code> {
        report.result.verdict.reasons().iter().map(|said| said.code).collect()
    }

    #[test]
    fn loss_is_what_was_sent_of_a_number_less_what_came_of_it() {
        let report = merged(100, &[(0, 90), (7, 30)], |_| {});
        let (loss, rx) = (report.result.loss.expect("a loss"), report.result.rx.as_ref().expect("received"));
        assert_eq!((loss.frames, loss.by_count_only, rx.foreign_frames), (10, false, Some(30)));
        assert_eq!((report.streams[0].lost_frames, codes(&report)), (10, vec![Code::FramesLost]));
    }

    #[test]
    fn more_than_was_sent_is_said_and_hides_nothing() {
        let report = merged(100, &[(0, 103)], |_| {});
        assert_eq!(
            (report.result.loss.expect("a loss").frames, codes(&report)),
            (0, vec![Code::SurplusFrames])
        );
    }

    #[test]
    fn of_a_meter_that_ended_early_or_was_lost_no_loss_is_known() {
        let early = merged(100, &[(0, 50)], |meter| meter.early = true);
        let lost = merged(100, &[(0, 50)], |meter| meter.report = Err("gone".to_owned()));
        for report in [early, lost] {
            assert!(report.result.loss.is_none() && report.streams.iter().all(|s| s.rx_frames == 0));
            assert_eq!(codes(&report), [Code::AgentLost]);
        }
    }

    #[test]
    fn delays_are_given_with_the_clocks_error_and_not_below_it_or_across_a_step() {
        let told = |change: fn(&mut Came)| {
            let report = merged(10, &[(0, 10)], change);
            let error = report.result.latency_clock.as_ref().and_then(|clock| clock.comparison_error_ns);
            (report.result.latency_ns.map(|d| d.p50), error)
        };
        assert_eq!(told(|_| {}), (Some(40_000), Some(30_000)));
        // After the run it is known less well.
        assert_eq!(told(|meter| meter.offsets[2].error_ns = 25_000), (None, Some(40_000)));
        assert_eq!(told(|meter| meter.offsets[2].offset_ns = 5_000_000).0, None);
        assert_eq!(told(|meter| meter.offsets.truncate(2)).0, None, "nobody knows what became of the clocks");
    }
}
