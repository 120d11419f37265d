//! `netdyno search socket-buffer`: the sizes that are swept, and what their trials come to.

use super::Tested;
use ::transport::native::Host;
use histogram::student::interval_width;
use report::{BufferPoint, Code, EndpointTrial, Report, SocketBufferFound, units};
use spec::{EndpointTest, SocketBuffer};
use trial::{Sure, Sweep, SweepPlan};

/// Intervals are at this confidence, unless another is asked for.
const LEVEL: f64 = 0.95;
/// A load of the sweep that is no size: the kernel tunes.
const TUNED: f64 = 0.0;

/// The size that a load of the sweep is. None: the kernel tunes.
pub fn size(load: f64) -> Option<u64> {
    (load != TUNED).then_some(load as u64)
}

/// The load that a size is.
pub fn load(size: Option<u64>) -> f64 {
    size.map_or(TUNED, |bytes| bytes as f64)
}

/// The kernel's own tuning, and the sizes that are asked for.
pub fn plan(find: &SocketBuffer, tested: &Tested<'_>) -> Sweep {
    let sizes = find.sizes().into_iter().map(Some);
    Sweep::new(SweepPlan {
        loads: std::iter::once(None).chain(sizes).map(load).collect(),
        least: find.repetitions(),
        most: tested.job.endpoint.iterations.unwrap_or(crate::kinds::endpoint::ITERATIONS.1),
        sure: sure(tested),
        trial_ns: tested.trial_ns(),
    })
}

fn sure(tested: &Tested<'_>) -> Option<Sure> {
    let asked = tested.job.endpoint.confidence.as_deref();
    asked.map(|asked| Sure { level: asked.level, width: asked.width })
}

/// What is reported of the trials.
pub fn judge(
    report: &mut Report,
    (trials, complete): (&[EndpointTrial], bool),
    (find, sweep): (&SocketBuffer, &Sweep),
    tested: &Tested<'_>,
    server: Host,
) -> SocketBufferFound {
    let is_stream = matches!(tested.args.test, EndpointTest::TcpStream | EndpointTest::TcpMaerts);
    let level = sure(tested).map_or(LEVEL, |sure| sure.level);
    let found = found(trials, sweep, (level, find.enough()), is_stream);
    // Of transactions this end sends first, and the server receives.
    let here_sends = tested.parts.all.first().is_some_and(|part| part.is_transactions() || part.sends());
    let [sender, receiver] = if here_sends { [Host::here(), server] } else { [server, Host::here()] };
    buffers_judged(report, &found, complete, sweep.unsure());
    limits_told(report, &found, &sender, &receiver);
    found
}

/// What the trials come to.
fn found(
    trials: &[EndpointTrial],
    sweep: &Sweep,
    (level, enough): (f64, f64),
    is_tcp_stream: bool,
) -> SocketBufferFound {
    let mut points: Vec<BufferPoint> =
        sweep.results().filter_map(|(load, results)| point(trials, size(load), results, level)).collect();
    let best = points.iter().max_by(|a, b| a.per_second.total_cmp(&b.per_second));
    let (best_per_second, best_buffer_bytes) =
        best.map_or((0.0, None), |best| (best.per_second, best.buffer_bytes));
    for point in &mut points {
        point.best_ratio = if best_per_second > 0.0 { point.per_second / best_per_second } else { 0.0 };
    }
    let is_enough = |point: &&BufferPoint| best_per_second > 0.0 && point.best_ratio >= enough;
    let found_bytes = points.iter().filter(is_enough).filter_map(|point| point.buffer_bytes).min();
    let tuned_is_enough =
        points.iter().filter(|point| point.buffer_bytes.is_none()).any(|point| is_enough(&point));
    let min_rtt_ns = trials.iter().filter_map(|trial| trial.min_rtt_ns).min();
    let product = |rtt: u64| (best_per_second / 8.0 * rtt as f64 / 1e9) as u64;
    SocketBufferFound {
        enough_ratio: enough,
        best_per_second,
        best_buffer_bytes,
        found_bytes,
        tuned_is_enough,
        bandwidth_delay_product_bytes: min_rtt_ns.filter(|_| is_tcp_stream).map(product),
        min_rtt_ns,
        level,
        points,
    }
}

fn point(trials: &[EndpointTrial], size: Option<u64>, results: &[f64], level: f64) -> Option<BufferPoint> {
    let of: Vec<&EndpointTrial> = trials.iter().filter(|trial| trial.buffer_bytes == size).collect();
    let last = of.last()?;
    let per_second = results.iter().sum::<f64>() / results.len().max(1) as f64;
    let sum = |get: fn(&EndpointTrial) -> u64| of.iter().map(|trial| get(trial)).sum::<u64>();
    let (sent, lost) = (sum(|trial| trial.sent), sum(|trial| trial.lost));
    let rtts: Vec<u64> = of.iter().filter_map(|trial| trial.rtt_ns).collect();
    // Asked for more than it grants, the kernel grants its limit, and says nothing.
    let capped = |granted: Option<u64>| {
        size.zip(granted).is_some_and(|(asked, granted)| granted < asked.saturating_mul(2))
    };
    Some(BufferPoint {
        buffer_bytes: size,
        results: results.to_vec(),
        per_second,
        width_ratio: interval_width(results, level),
        best_ratio: 0.0,
        send_buffer_bytes: last.send_buffer_bytes,
        receive_buffer_bytes: last.receive_buffer_bytes,
        send_capped: capped(last.send_buffer_bytes),
        receive_capped: capped(last.receive_buffer_bytes),
        rtt_ns: (!rtts.is_empty()).then(|| rtts.iter().sum::<u64>() / rtts.len() as u64),
        retransmits: of
            .iter()
            .map(|trial| trial.retransmits)
            .try_fold(0, |sum: u64, count| Some(sum + count?)),
        loss_ratio: (sent > 0).then(|| lost as f64 / sent as f64),
    })
}

fn buffers_judged(report: &mut Report, found: &SocketBufferFound, complete: bool, unsure: usize) {
    if unsure > 0 && complete {
        let said = match unsure {
            1 => "the mean of 1 size is not as sure as was asked for".to_owned(),
            n => format!("the means of {n} sizes are not as sure as was asked for"),
        };
        let mend = "permit more repetitions (`.iterations`)";
        report.result.verdict.fall_short(Code::ConfidenceNotReached, (said, mend));
    }
    if complete && found.found_bytes.is_none() {
        let said = format!(
            "no size that was tried reaches {} of the best, which the kernel's own tuning has",
            units::percent(found.enough_ratio)
        );
        report.result.verdict.fall_short(Code::GoalNotReached, (said, "try larger ones (`.buffers`)"));
    }
    // Where the intervals of the answer and of its neighbours overlap the bar, another run may say another size.
    let bar = found.best_per_second * found.enough_ratio;
    let straddles = |point: &&BufferPoint| {
        let half = point.width_ratio.unwrap_or(0.0) / 2.0;
        let (low, high) = (point.per_second * (1.0 - half), point.per_second * (1.0 + half));
        point.buffer_bytes.is_some_and(|bytes| Some(bytes) <= found.found_bytes) && low < bar && bar < high
    };
    let unsure: Vec<u64> =
        found.points.iter().filter(straddles).filter_map(|point| point.buffer_bytes).collect();
    if complete && !unsure.is_empty() {
        let sizes: Vec<String> = unsure.iter().map(|bytes| units::buffer(*bytes)).collect();
        let said = format!(
            "whether {} is enough is not sure: the interval of the mean reaches to both sides of {} of the best",
            sizes.join(" or "),
            units::percent(found.enough_ratio)
        );
        report.warnings.add(Code::ConfidenceNotReached, (said, "repeat more often (`.repetitions`)"));
    }
}

/// What the kernel does not grant, or grants to the privileged only.
fn limits_told(report: &mut Report, found: &SocketBufferFound, sender: &Host, receiver: &Host) {
    type Get = fn(&BufferPoint) -> (Option<u64>, bool);
    let sides: [(&str, &Option<String>, Get); 2] = [
        ("net.core.wmem_max of the sender", &sender.wmem_max, |point| {
            (point.send_buffer_bytes, point.send_capped)
        }),
        ("net.core.rmem_max of the receiver", &receiver.rmem_max, |point| {
            (point.receive_buffer_bytes, point.receive_capped)
        }),
    ];
    for (name, limit, get) in sides {
        let limit = limit.as_ref().and_then(|limit| limit.parse::<u64>().ok());
        let shown = limit.map_or_else(String::new, |limit| format!(" ({})", units::buffer(limit)));
        let sized = || found.points.iter().filter_map(|point| Some((point.buffer_bytes?, get(point))));
        if let Some((asked, (granted, _))) = sized().find(|(_, (_, capped))| *capped) {
            let said = format!(
                "asked for {} the kernel granted {}, not twice that: sizes above {name}{shown} are one and the same",
                units::buffer(asked),
                units::buffer(granted.unwrap_or(0)),
            );
            report.warnings.add(
                Code::WentWithout,
                (said, "raise that; the kernel's own tuning has limits of its own (tcp_rmem, tcp_wmem)"),
            );
        } else if let Some(limit) = limit
            && let Some((asked, _)) = sized().find(|(asked, _)| *asked > limit)
        {
            let said = format!(
                "{} and more, above {name}{shown}, were granted because netdyno runs with CAP_NET_ADMIN there: other programs get no \
                 more than that",
                units::buffer(asked)
            );
            report.warnings.add(Code::WentWithout, said);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trial::{Outcome, Search as _};

    #[test]
    fn the_smallest_size_that_is_enough_is_found_and_limits_are_told() {
        let sizes = [None, Some(50), Some(100), Some(200), Some(400)];
        let plan = SweepPlan { loads: sizes.map(load).to_vec(), least: 3, most: 3, sure: None, trial_ns: 1 };
        let (mut sweep, mut trials) = (Sweep::new(plan), Vec::new());
        while let Some(wanted) = sweep.next() {
            let buffer = size(wanted.load);
            let per_second = match buffer {
                None | Some(400) => 8e9,
                Some(size) => (size * 40_000_000) as f64 / 1.04,
            };
            trials.push(EndpointTrial {
                buffer_bytes: buffer,
                per_second,
                send_buffer_bytes: buffer.map(|bytes| (2 * bytes).min(300)),
                min_rtt_ns: Some(1_000_000),
                ..EndpointTrial::default()
            });
            sweep.tell(&Outcome { result: Some(per_second), ..Outcome::default() });
        }
        assert_eq!(trials.len(), 15);
        let found = found(&trials, &sweep, (0.95, 0.95), true);
        assert_eq!((found.found_bytes, found.best_per_second, found.tuned_is_enough), (Some(200), 8e9, true));
        assert_eq!(found.bandwidth_delay_product_bytes, Some(1_000_000));
        let capped: Vec<_> = found.points.iter().map(|point| point.send_capped).collect();
        assert_eq!(capped, [false, false, false, true, true]);
        assert!(found.points[1].width_ratio.is_some_and(|width| width < 1e-9));
    }
}
