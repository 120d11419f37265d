//! What a run says of a trial, and what several ways' runs say together.

use super::blame::{missed, unconfirmed};
use super::nanos;
use super::offer::Offer;
use anyhow::{Result, bail};
use report::{LatencyClock, Report};
use traffic::Schedule;
use trial::{FrameToFrame, Latency, Look, Outcome, Parts, parts};

/// A run that took this much longer than its schedule did not offer the load.
const LONGER: f64 = 0.001;
/// And by this, which a batch's last frames may take.
const LONGER_NS: f64 = 1e6;
/// A device that keeps frames for longer is not excused for longer.
const LONGEST_QUEUE_NS: u64 = 50_000_000;
/// So long a packet thread waits on a quiet machine, too.
const MOMENT_NS: u64 = 1_000_000;

/// Where a way's run was done, and what it was to send.
#[derive(Debug, Clone)]
pub struct Around<'a> {
    /// Where its frames arrive.
    pub receivers: &'a [&'a str],
    /// How many ports send: each of them what the offer says.
    pub ports: u64,
    /// Frames that are due within the whole duration, where that is known: a run that ended early says only what was due
    /// until then.
    pub due: Option<u64>,
    /// The numbers in its frames' signatures.
    pub signatures: std::ops::Range<u32>,
    /// All that the frames pass is on this machine.
    pub in_a_lab: bool,
    /// There, how long the kernel's packet threads waited for processors meanwhile.
    pub machine_waited_ns: u64,
    /// There, what was seen meanwhile; none where nobody looked.
    pub looks: &'a [Look],
    /// Into a device of the lab frames go without a wire: what its full input queue refuses would be lost on one.
    pub lab_device: bool,
}

/// What one way's run says of the trial.
pub fn outcome_of(report: &Report, offer: &Offer, around: &Around<'_>) -> Result<Outcome> {
    let Around { receivers, ports, due, in_a_lab, machine_waited_ns, lab_device, .. } = *around;
    let result = &report.result;
    if let report::Verdict::Failed { reasons } = &result.verdict {
        bail!("{}", reasons.join("; "));
    }
    let (Some(tx), Some(rx)) = (&result.tx, &result.rx) else { bail!("nothing was measured") };
    let mut sent = tx.totals.frames;
    let mut lost = result.loss.map_or(sent.saturating_sub(rx.totals.frames), |loss| loss.frames);
    if tx.failed > 0 {
        // Which frames were refused is not known, so the run counts all that arrived as its own, others' as well.
        let own = report.streams.iter().filter(|stream| around.signatures.contains(&stream.stream));
        let own = own
            .map(|stream| stream.rx_frames.saturating_sub(stream.duplicated_frames))
            .fold(0, u64::saturating_add);
        lost = lost.max(sent.saturating_sub(own));
    }
    let frames_in = |ns, offer| frames_in(ns, offer).saturating_mul(ports.max(1)).min(u64::MAX / 4);
    let count = offer.count.map(|count| count.saturating_mul(ports));
    let mut intended = count.or(tx.intended_frames.max(due)).unwrap_or(sent);
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
    // Times across a step of a clock are those of the step.
    let told = told.filter(|_| !result.latency_clock.as_ref().is_some_and(was_set));
    let sum = |of: fn(&report::Stream) -> u64, all: Option<u64>| match own.is_empty() {
        true => all.unwrap_or(0),
        false => own.iter().map(|stream| of(stream)).fold(0, u64::saturating_add),
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
        true => intended.saturating_sub(sent).min(frames_in(put_off, offer)).saturating_mul(2),
        false => 0,
    };
    let received = sent.saturating_sub(lost);
    if lab_device && intended > sent && tx.retried_enobufs >= intended - sent {
        // It was the device that held up the sender.
        (sent, uneven) = (intended, 0);
    }
    // The sender may have been in time and those who carry its frames on not.
    let frames_meanwhile = match offer.schedule {
        Schedule::Frames { .. } => frames_in(machine_waited_ns, offer),
        _ if machine_waited_ns < MOMENT_NS => 0,
        _ => frames_in(machine_waited_ns, offer),
    };
    uneven = uneven.saturating_add(frames_meanwhile).min(intended);
    let parts = in_parts(around, offer, sent - received, latency.as_ref());
    Ok(Outcome {
        intended: intended.max(sent),
        sent,
        received,
        duplicated: sum(|stream| stream.duplicated_frames, rx.duplicated_frames),
        reordered: sum(|stream| stream.reordered_frames, rx.reordered_frames),
        uneven,
        excused: parts.excused,
        steady: parts.sure,
        missed: missed(report, receivers, lab_device),
        // Nothing stands between the sender and a lab's device: what did not leave was refused by the device.
        unconfirmed: if lab_device { 0 } else { unconfirmed(report) },
        latency,
        last_loss_ns: None,
        outage_ns: None,
        lost_at_end: 0,
        result: None,
    })
}

/// What the parts of the trial say, where it was looked at and frames come evenly.
fn in_parts(around: &Around<'_>, offer: &Offer, lost: u64, latency: Option<&Latency>) -> Parts {
    let Schedule::Frames { frames, per_ns } = offer.schedule else { return Parts::default() };
    let per_second = frames as f64 * 1e9 / per_ns.max(1) as f64;
    // A full queue makes nearly all wait as long as it takes to drain.
    let drains_ns = latency.map_or(0, |latency| latency.p90_ns.min(LONGEST_QUEUE_NS));
    parts(around.looks, lost, per_second, drains_ns)
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

/// Was a clock that delays are by set while frames were under way?
fn was_set(clock: &LatencyClock) -> bool {
    clock.stepped_ns.is_some() || clock.hardware.as_ref().is_some_and(|stamps| stamps.set_ns.is_some())
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
    sum.intended = sum.intended.saturating_add(one.intended);
    sum.sent = sum.sent.saturating_add(one.sent);
    sum.received = sum.received.saturating_add(one.received);
    sum.duplicated = sum.duplicated.saturating_add(one.duplicated);
    sum.reordered = sum.reordered.saturating_add(one.reordered);
    sum.uneven = sum.uneven.saturating_add(one.uneven);
    sum.excused = sum.excused.saturating_add(one.excused);
    sum.steady = sum.steady.saturating_add(one.steady);
    // A way's own: it excuses nothing of another's loss.
    sum.missed = sum.missed.saturating_add(one.missed.min(one.lost()));
    let unconfirmed = one.unconfirmed.min(one.lost().saturating_sub(one.missed));
    sum.unconfirmed = sum.unconfirmed.saturating_add(unconfirmed);
    sum.latency = match (sum.latency, one.latency) {
        (Some(a), Some(b)) => {
            let frames = a.frames.saturating_add(b.frames);
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

#[cfg(test)]
mod tests {
    use super::*;
    use report::{HostCounter, InterfaceCounters, Loss, Rx, Stream, Totals, Tx};
    use traffic::expr::Size;
    use trial::{Broken, Limits};

    /// A run of 1000 frames a second for a second, of which `sent` left and `received` came.
    fn run(sent: u64, received: u64) -> (Report, Offer) {
        let mut report = Report::new("trial");
        let counted = InterfaceCounters::compare("tx0", sent, sent);
        report.result.tx = Some(Tx {
            totals: Totals::over(sent, sent * 60, sent * 1_000_000),
            intended_frames: Some(sent),
            interface_counters: vec![counted],
            ..Tx::default()
        });
        report.result.rx =
            Some(Rx { totals: Totals::over(received, received * 60, 1_000_000_000), ..Rx::default() });
        report.result.loss = Some(Loss::of(sent - received, sent));
        report.streams =
            vec![Stream { stream: 5, tx_frames: Some(sent), rx_frames: received, ..Stream::default() }];
        (report, Offer::steady(1000.0, 1_000_000_000, &Size::Fixed(64)))
    }

    fn judged((report, offer): &(Report, Offer)) -> (Outcome, Option<Broken>) {
        let around = Around {
            receivers: &["rx0"],
            ports: 1,
            due: Some(1000),
            signatures: 5..6,
            in_a_lab: false,
            machine_waited_ns: 0,
            looks: &[],
            lab_device: false,
        };
        let mut outcome = Outcome::default();
        add(&mut outcome, &outcome_of(report, offer, &around).expect("an outcome"));
        let limits = Limits { shortfall_ratio: Some(0.001), ..Limits::default() };
        (outcome, limits.broken(&outcome))
    }

    #[test]
    fn a_loss_is_the_devices_unless_the_tester_lost_as_much() {
        assert_eq!(judged(&run(1000, 1000)).1, None);
        assert_eq!(judged(&run(1000, 990)).1, Some(Broken::Loss));
        let mut missed = run(1000, 990);
        missed.0.result.counters = vec![HostCounter {
            place: "rx0".to_owned(),
            source: "interface".to_owned(),
            name: "rx_missed_errors".to_owned(),
            rise: 12,
            own_frames: None,
            explains: None,
        }];
        let (outcome, broken) = judged(&missed);
        assert_eq!((outcome.missed, broken), (10, Some(Broken::Receiver)));
        let mut slow = run(1000, 990);
        slow.0.result.rx.as_mut().expect("received").dropped_frames = Some(9);
        assert_eq!(judged(&slow).1, Some(Broken::Loss));
        slow.0.result.rx.as_mut().expect("received").dropped_frames = Some(10);
        assert_eq!(judged(&slow).1, Some(Broken::Receiver));
        let mut unseen = run(1000, 0);
        unseen.0.result.tx.as_mut().expect("sent").unconfirmed_frames = Some(1000);
        assert_eq!(judged(&unseen).1, Some(Broken::Unconfirmed));
        let mut detached = run(1000, 400);
        detached.0.result.rx.as_mut().expect("received").blind_because = Some("detached".to_owned());
        assert_eq!(judged(&detached).1, Some(Broken::Receiver));
    }

    #[test]
    fn what_is_lost_while_packet_threads_wait_proves_nothing_of_a_device_on_this_machine() {
        let (report, offer) = run(1000, 960);
        let judged = |machine_waited_ns: u64| {
            let around = Around {
                receivers: &["rx0"],
                ports: 1,
                due: Some(1000),
                signatures: 5..6,
                in_a_lab: true,
                machine_waited_ns,
                looks: &[],
                lab_device: true,
            };
            let outcome = outcome_of(&report, &offer, &around).expect("an outcome");
            (outcome.uneven, Limits { shortfall_ratio: Some(0.001), ..Limits::default() }.broken(&outcome))
        };
        assert_eq!(judged(0), (0, Some(Broken::Loss)));
        assert_eq!(judged(30_000_000), (31, Some(Broken::Loss)));
        assert_eq!(judged(40_000_000), (41, Some(Broken::Uneven)));
        assert_eq!(judged(u64::MAX).0, 1000);
    }

    #[test]
    fn a_run_that_broke_off_is_no_shorter_trial() {
        // Its own schedule had no more due until then.
        let (outcome, broken) = judged(&run(400, 400));
        assert_eq!((outcome.intended, outcome.sent, broken), (1000, 400, Some(Broken::Shortfall)));
    }

    #[test]
    fn others_frames_do_not_stand_in_for_lost_ones_where_some_were_refused() {
        let mut refused = run(1000, 990);
        let result = &mut refused.0.result;
        // As many of an earlier trial came as were lost.
        (result.loss, result.tx.as_mut().expect("sent").failed) = (Some(Loss::of(0, 1000)), 1);
        let (outcome, broken) = judged(&refused);
        assert_eq!((outcome.lost(), broken), (10, Some(Broken::Loss)));
    }

    #[test]
    fn delays_across_a_step_of_the_clock_are_not_known() {
        let mut stepped = run(1000, 1000);
        let mut delays = [1_000; 1000];
        stepped.0.result.latency_ns = report::Distribution::from_samples(&mut delays);
        let clock = LatencyClock { name: "monotonic".to_owned(), ..LatencyClock::default() };
        stepped.0.result.latency_clock = Some(clock.clone());
        assert!(judged(&stepped).0.latency.is_some());
        stepped.0.result.latency_clock = Some(LatencyClock { stepped_ns: Some(-5_000_000), ..clock });
        let outcome = judged(&stepped).0;
        assert_eq!(outcome.latency, None);
        let delays = trial::Delays::default().and(trial::Delay::P99, 50_000);
        let broken = Limits { delays, ..Limits::default() }.broken(&outcome);
        assert!(broken.is_some_and(Broken::is_the_testers), "{broken:?}");
    }

    #[test]
    fn what_one_way_missed_excuses_nothing_of_the_other() {
        let one = Outcome { intended: 1000, sent: 1000, received: 1000, missed: 50, ..Outcome::default() };
        let other = Outcome { received: 990, missed: 0, ..one };
        let mut sum = Outcome::default();
        add(&mut sum, &one);
        add(&mut sum, &other);
        assert_eq!((sum.lost(), sum.missed, Limits::default().broken(&sum)), (10, 0, Some(Broken::Loss)));
    }
}
