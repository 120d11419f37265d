//! What is tried next when socket buffers are swept. A state machine without a clock: a function of the results it was told.
//!
//! All sizes are tried once before any is tried again, so that what changes meanwhile (others' load, heat) is in all alike.

use super::{Plan, Try};
use report::{BufferPoint, EndpointStage, EndpointTrial, SocketBufferFound};
use spec::Confidence;

/// Intervals are at this confidence, unless another is asked for.
const LEVEL: f64 = 0.95;

/// The sweep.
#[derive(Debug)]
pub struct Sweep {
    /// None: the kernel tunes.
    points: Vec<(Option<u64>, Vec<f64>)>,
    /// Each is tried so often at least,
    least: usize,
    /// and at most.
    most: usize,
    confidence: Option<Confidence>,
}

impl Sweep {
    /// The kernel's own tuning, and these sizes.
    pub fn new(sizes: &[u64], least: u32, confidence: Option<Confidence>, most: u32) -> Sweep {
        let points = std::iter::once(None).chain(sizes.iter().copied().map(Some));
        // Of fewer than three no interval says much.
        let least = if confidence.is_some() { least.max(3) } else { least } as usize;
        let most = if confidence.is_some() { most as usize } else { least };
        Sweep {
            points: points.map(|size| (size, Vec::new())).collect(),
            least,
            most: most.max(least),
            confidence,
        }
    }

    fn wants(&self, results: &[f64]) -> bool {
        if results.len() < self.least {
            return true;
        }
        self.confidence.is_some_and(|confidence| {
            let width = report::compare::interval_width(results, confidence.level);
            results.len() < self.most && width.is_none_or(|width| width > confidence.width)
        })
    }

    /// So sure are intervals.
    pub fn level(&self) -> f64 {
        self.confidence.map_or(LEVEL, |confidence| confidence.level)
    }

    /// Sizes whose mean is not so sure as was asked for.
    pub fn unsure(&self) -> usize {
        let Some(confidence) = self.confidence else { return 0 };
        let wide = |results: &[f64]| {
            report::compare::interval_width(results, confidence.level)
                .is_none_or(|width| width > confidence.width)
        };
        self.points.iter().filter(|(_, results)| wide(results)).count()
    }
}

impl Plan for Sweep {
    fn next(&self) -> Option<Try> {
        let open = self.points.iter().filter(|(_, results)| self.wants(results));
        let (size, _) = open.min_by_key(|(_, results)| results.len())?;
        Some(Try { stage: EndpointStage::Sweep, buffer: *size, rate: None })
    }

    fn tell(&mut self, trial: &EndpointTrial) {
        if let Some((_, results)) = self.points.iter_mut().find(|(size, _)| *size == trial.buffer_bytes) {
            results.push(trial.per_second);
        }
    }

    fn left(&self) -> usize {
        let open = self.points.iter().filter(|(_, results)| self.wants(results));
        open.map(|(_, results)| self.least.saturating_sub(results.len()).max(1)).sum()
    }
}

/// What the trials come to.
pub fn found(trials: &[EndpointTrial], sweep: &Sweep, enough: f64, is_tcp_stream: bool) -> SocketBufferFound {
    let mut points: Vec<BufferPoint> = sweep
        .points
        .iter()
        .filter_map(|(size, results)| point(trials, *size, results, sweep.level()))
        .collect();
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
        level: sweep.level(),
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
        width_ratio: report::compare::interval_width(results, level),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(tried: &Try, per_second: f64) -> EndpointTrial {
        EndpointTrial {
            buffer_bytes: tried.buffer,
            per_second,
            send_buffer_bytes: tried.buffer.map(|bytes| (2 * bytes).min(300)),
            min_rtt_ns: Some(1_000_000),
            ..EndpointTrial::default()
        }
    }

    fn whole(sweep: &mut Sweep, result: impl Fn(Option<u64>, usize) -> f64) -> Vec<EndpointTrial> {
        let mut trials: Vec<EndpointTrial> = Vec::new();
        while let Some(tried) = sweep.next() {
            let so_far = trials.iter().filter(|trial| trial.buffer_bytes == tried.buffer).count();
            trials.push(trial(&tried, result(tried.buffer, so_far)));
            sweep.tell(trials.last().expect("one"));
            assert!(trials.len() < 1000);
        }
        trials
    }

    #[test]
    fn every_size_is_tried_once_before_any_is_tried_again() {
        let mut sweep = Sweep::new(&[10, 20], 2, None, 10);
        assert_eq!(sweep.left(), 6);
        let order: Vec<_> = whole(&mut sweep, |_, _| 1.0).iter().map(|trial| trial.buffer_bytes).collect();
        assert_eq!(order, [None, Some(10), Some(20), None, Some(10), Some(20)]);
    }

    #[test]
    fn the_smallest_size_that_is_enough_is_found_and_limits_are_told() {
        let mut sweep = Sweep::new(&[50, 100, 200, 400], 3, None, 10);
        let trials = whole(&mut sweep, |size, _| match size {
            None | Some(400) => 8e9,
            Some(size) => (size * 40_000_000) as f64 / 1.04,
        });
        let found = found(&trials, &sweep, 0.95, true);
        assert_eq!((found.found_bytes, found.best_per_second, found.tuned_is_enough), (Some(200), 8e9, true));
        assert_eq!(found.bandwidth_delay_product_bytes, Some(1_000_000));
        let capped: Vec<_> = found.points.iter().map(|point| point.send_capped).collect();
        assert_eq!(capped, [false, false, false, true, true]);
        assert!(found.points[1].width_ratio.is_some_and(|width| width < 1e-9));
    }

    #[test]
    fn what_varies_is_repeated_until_it_is_sure_or_often_enough() {
        let sure = Confidence { level: 0.95, width: 0.1 };
        let mut sweep = Sweep::new(&[10, 20], 1, Some(sure), 6);
        let trials = whole(&mut sweep, |size, n| if size == Some(20) { 1.0 + n as f64 } else { 1.0 });
        let times = |size| trials.iter().filter(|trial| trial.buffer_bytes == size).count();
        assert_eq!([None, Some(10), Some(20)].map(times), [3, 3, 6]);
        assert_eq!(sweep.unsure(), 1);
    }
}
