//! What a run says of a trial, and what several ways' runs say together.

use super::nanos;
use super::rig::Offer;
use anyhow::{Result, bail};
use report::Report;
use traffic::Schedule;
use trial::{FrameToFrame, Latency, Outcome};

/// A run that took this much longer than its schedule did not offer the load.
const LONGER: f64 = 0.001;
/// And by this, which a batch's last frames may take.
const LONGER_NS: f64 = 1e6;

/// What one way's run says of the trial. `lab_device`: into a device of the lab frames go without a wire: what its full
/// input queue refuses would be lost on one. `in_a_lab`: all that the frames pass is on this machine.
pub fn outcome_of(report: &Report, offer: &Offer, in_a_lab: bool, lab_device: bool) -> Result<Outcome> {
    let result = &report.result;
    if let report::Verdict::Failed { reasons } = &result.verdict {
        bail!("{}", reasons.join("; "));
    }
    let (Some(tx), Some(rx)) = (&result.tx, &result.rx) else { bail!("nothing was measured") };
    let mut sent = tx.totals.frames;
    let lost = result.loss.map_or(sent.saturating_sub(rx.totals.frames), |loss| loss.frames);
    let mut intended = offer.count.or(tx.offered_frames).unwrap_or(sent);
    let held_up = result.pacing.as_ref().and_then(|pacing| pacing.catch_up);
    let put_off = held_up.map_or(0, |held_up| held_up.abandoned_ns);
    // What took longer was a lower load: by its rate it should have sent more in the time it took.
    if let Some(asked) = scheduled_ns(offer) {
        let took = tx.totals.duration_ns as f64;
        let of_count = offer.duration.is_none() && put_off > 0;
        if of_count || took > asked * (1.0 + LONGER) && took - asked > LONGER_NS {
            intended = intended.max((intended as f64 * took / asked) as u64);
        }
    }
    // What others sent is no part of it, if it can be told apart.
    let own: Vec<_> = report.streams.iter().filter(|stream| stream.tx_frames.is_some()).collect();
    let told = match &own[..] {
        [only] if rx.foreign_frames.is_some() => only.latency_ns.as_ref(),
        _ => result.latency_ns.as_ref(),
    };
    let sum = |of: fn(&report::Stream) -> u64, all: Option<u64>| match own.is_empty() {
        true => all.unwrap_or(0),
        false => own.iter().map(|stream| of(stream)).sum(),
    };
    let latency = told.map(|d| Latency {
        min_ns: d.min,
        mean_ns: d.mean,
        p50_ns: d.p50,
        p90_ns: d.p90,
        p99_ns: d.p99,
        p999_ns: d.p999,
        max_ns: d.max,
        frames: d.count,
        frame_to_frame: frame_to_frame(report),
    });
    // Nothing was caught up, so what was lost was lost of no more than the load. But what held up the sender may have held
    // up a device on the same machine, too, for as long again.
    let mut uneven = match in_a_lab {
        true => 2 * intended.saturating_sub(sent).min(frames_in(put_off, offer)),
        false => 0,
    };
    let received = sent.saturating_sub(lost);
    if lab_device && intended > sent && tx.retried_enobufs >= intended - sent {
        // It was the device that held up the sender.
        (sent, uneven) = (intended, 0);
    }
    Ok(Outcome {
        intended: intended.max(sent),
        sent,
        received,
        duplicated: sum(|stream| stream.duplicated_frames, rx.duplicated_frames),
        reordered: sum(|stream| stream.reordered_frames, rx.reordered_frames),
        uneven,
        latency,
        last_loss_ns: None,
        outage_ns: None,
    })
}

/// Frames that are due in so much of the offer's time, and one; all there are where that is not even.
fn frames_in(ns: u64, offer: &Offer) -> u64 {
    match (&offer.schedule, ns) {
        (_, 0) => 0,
        (Schedule::Frames { frames, per_ns }, ns) => {
            let due = u128::from(ns) * u128::from(*frames) / u128::from((*per_ns).max(1));
            u64::try_from(due).unwrap_or(u64::MAX).saturating_add(1)
        }
        _ => u64::MAX / 4,
    }
}

/// How long the offer takes a sender that keeps to it; `None` at top speed.
fn scheduled_ns(offer: &Offer) -> Option<f64> {
    match (offer.duration, offer.count, &offer.schedule) {
        (_, _, Schedule::TopSpeed) => None,
        (Some(duration), ..) => Some(nanos(duration) as f64),
        // A burst that takes longer is none.
        (None, Some(count), Schedule::Frames { frames, per_ns }) => {
            Some(count as f64 * *per_ns as f64 / (*frames).max(1) as f64)
        }
        _ => None,
    }
}

fn frame_to_frame(report: &Report) -> Option<FrameToFrame> {
    let variation = report.result.delay_variation.as_ref()?;
    let steps = variation.ipdv_ns.as_ref()?;
    Some(FrameToFrame {
        p50_ns: steps.p50,
        p999_ns: steps.p999,
        max_ns: steps.max,
        jitter_ns: variation.jitter_ns.unwrap_or(0.0) as u64,
    })
}

/// Of two ways the worse.
fn worse(a: FrameToFrame, b: FrameToFrame) -> FrameToFrame {
    FrameToFrame {
        p50_ns: a.p50_ns.max(b.p50_ns),
        p999_ns: a.p999_ns.max(b.p999_ns),
        max_ns: a.max_ns.max(b.max_ns),
        jitter_ns: a.jitter_ns.max(b.jitter_ns),
    }
}

/// Ways together: counts add up; of latencies the worse counts, and the mean is over all frames.
pub fn add(sum: &mut Outcome, one: &Outcome) {
    sum.intended += one.intended;
    sum.sent += one.sent;
    sum.received += one.received;
    sum.duplicated += one.duplicated;
    sum.reordered += one.reordered;
    sum.uneven += one.uneven;
    sum.latency = match (sum.latency, one.latency) {
        (Some(a), Some(b)) => {
            let frames = a.frames + b.frames;
            let mean = (a.mean_ns * a.frames as f64 + b.mean_ns * b.frames as f64) / frames.max(1) as f64;
            Some(Latency {
                min_ns: a.min_ns.min(b.min_ns),
                mean_ns: mean,
                p50_ns: a.p50_ns.max(b.p50_ns),
                p90_ns: a.p90_ns.max(b.p90_ns),
                p99_ns: a.p99_ns.max(b.p99_ns),
                p999_ns: a.p999_ns.max(b.p999_ns),
                max_ns: a.max_ns.max(b.max_ns),
                frames,
                frame_to_frame: match (a.frame_to_frame, b.frame_to_frame) {
                    (Some(a), Some(b)) => Some(worse(a, b)),
                    (a, b) => a.or(b),
                },
            })
        }
        (a, b) => a.or(b),
    };
}
