//! What was sent, as the result has it.

use engine::pacer::MOST_BURST;
use engine::{LATE_NS, Sent};
use port::tx::TxCounters;
use report::{CatchUp, Core, Distribution, Flows, Pacing, Report, SignedFrames, Totals, Tx, TxInterface};
use traffic::{Executor, Program, Rate, Schedule};
use wire::LinkType;
use wire::flow::{FlowKey, FlowOf, FlowSet};
use wire::layers::Layers;

use crate::place::Place;
use crate::run::fill::due::{Due, due_not_sent};
use crate::run::fill::received::{numbered, sent_whole};
use crate::run::fill::{Outcome, sent_by};
use crate::run::{Setup, background, ports};

/// Puts it into the result.
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
        stamped_together: together(run),
        ..Tx::default()
    });
    if let Some(kept) = &sent.punctuality {
        report.result.pacing = Some(Pacing {
            measured_at: Some("sender".to_owned()),
            lateness_ns: Distribution::whole(&kept.lateness),
            first_frame_late_ns: kept.first_late_ns,
            last_frame_late_ns: (kept.lateness.count() > 0).then_some(kept.last_late_ns as i64),
            late_frames: Some(kept.late),
            late_threshold_ns: Some(LATE_NS),
            catch_up: Some(CatchUp {
                stalls: kept.stalls,
                longest_stall_ns: kept.longest_stall_ns,
                frames: kept.catch_up_frames,
                rate_limit_ratio: setup.job.pacing.catch_up.times(),
                limit_bits_per_second: setup.job.pacing.catch_up.link(),
                limit_burst_frames: setup.job.pacing.catch_up.link().map(|_| MOST_BURST as u64),
                most_in_1ms: kept.most_in_1ms,
                most_received_in_1ms: None,
                abandoned_ns: kept.put_off_ns,
            }),
            priority: Some(kept.had.to_string()),

            waiting: kept.waits.map(|waits| if waits.slept > 0 { "slept" } else { "spun" }.to_owned()),
            wake_up_p99_ns: kept.waits.and_then(|waits| waits.wake_up_p99_ns),
            ..Pacing::default()
        });
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
        let among = &setup.session.among;
        if among.measured {
            tx.signed = signed(run, among.part.map_or(1, |(_, of)| of));
        }
    }
    ports::fill_tx(report, run);
}

/// How many frames carry one time stamp.
fn together(run: &Outcome<'_>) -> Option<u32> {
    // Ports may have engines of their own.
    let by_xdp = run.engine.split('+').any(|engine| engine == "xdp");
    (by_xdp && run.setup.stamps_together()).then_some(xdp::compile::STAMPED_TOGETHER)
}

/// What was sent of each number in signatures, for who measures it. `parts`: jobs like this, whose streams have numbers of their own.
fn signed(run: &Outcome<'_>, parts: u32) -> Vec<SignedFrames> {
    let of_one = (run.setup.workers_of_a_stream().max(1) as u32).saturating_mul(parts.max(1));
    let mut streams = Vec::new();
    for (job, share) in run.jobs.iter().zip(&run.merged.shares) {
        for (number, frames) in numbered(job, share) {
            let of = |program: &Program| {
                Some(program.streams.iter().find(|s| s.signature == Some(number))?.name.clone())
            };
            let name = job.source.program().and_then(|program| of(program)).filter(|name| !name.is_empty());
            // Of a frame that was refused the number is missing, and of which stream that was is not known.
            let frames = sent_whole(run).then_some(frames);
            streams.push(SignedFrames { number, stream: number / of_one, name, frames });
        }
    }
    streams
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

/// At top speed passes may have times, but frames have none.
pub fn is_unpaced(report: &Report) -> bool {
    report.resolved.rate.as_ref().is_some_and(|rate| rate.text == Rate::TopSpeed.to_string())
}
