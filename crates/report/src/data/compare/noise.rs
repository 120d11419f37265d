//! Whether two sets of values differ by more than they vary by themselves: the statistics of `netdyno compare`.
//!
//! Values of one set are taken as independent of each other. Repetitions of a run are; the intervals of one run are
//! not, so they are joined into batches first ([`batches`]). From eight values a side the Mann-Whitney test is used,
//! which supposes nothing about how values are spread and is not misled by outliers; with fewer it could not tell
//! anything, so Welch's t test is used, which supposes that values are spread about normally.

use histogram::student;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// From so many values on each side the Mann-Whitney test is used.
const RANKED_FROM: usize = 8;

/// Values, or what is left of them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Sample {
    Values(Vec<f64>),
    Summary { count: u32, mean: f64, stddev: f64 },
}

/// How a difference was judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Ranks of eight or more values a side (Mann and Whitney 1947); interval by Hodges and Lehmann.
    MannWhitney,
    /// Means of two to seven values a side (Welch 1947).
    Welch,
    /// One value against the interval in which several others predict the next (Student's t).
    Prediction,
    /// Searches: the bounds between which each found its value do not meet.
    Bounds,
}

/// What a test says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Judged {
    pub method: Method,
    /// How often values that do not differ would differ so much.
    pub p: f64,
    /// Second less first, with 95 % confidence.
    pub interval: (f64, f64),
    /// -1 (all of the second are smaller) to 1 (all are greater).
    pub cliffs_delta: Option<f64>,
    /// Difference of the means over their pooled standard deviation (Hedges' g).
    pub hedges_g: Option<f64>,
}

impl Sample {
    fn moments(&self) -> (f64, f64, f64) {
        match self {
            Sample::Summary { count, mean, stddev } => (f64::from(*count), *mean, stddev * stddev),
            Sample::Values(values) => {
                let n = values.len() as f64;
                let mean = values.iter().sum::<f64>() / n.max(1.0);
                let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
                (n, mean, if n > 1.0 { squares / (n - 1.0) } else { 0.0 })
            }
        }
    }

    pub fn mean(&self) -> f64 {
        self.moments().1
    }

    pub fn count(&self) -> u32 {
        self.moments().0 as u32
    }

    /// Half of the values are no greater. Of a summary the mean.
    pub fn median(&self) -> f64 {
        let Some(sorted) = self.sorted() else { return self.mean() };
        let middle = sorted.len() / 2;
        match (sorted.get(middle.wrapping_sub(1)), sorted.get(middle)) {
            (Some(below), Some(above)) if sorted.len() % 2 == 0 => (below + above) / 2.0,
            (_, middle) => middle.copied().unwrap_or(f64::NAN),
        }
    }

    /// By how much a figure lies outside of the values without their least and their greatest: a figure that only one of them
    /// made is not theirs. 0 for values that are too few to tell one from the others by ranks.
    pub fn misses(&self, figure: f64) -> f64 {
        match self.sorted().as_deref() {
            Some([_, low, .., high, _]) if self.count() as usize >= RANKED_FROM => {
                (low - figure).max(figure - high).max(0.0)
            }
            _ => 0.0,
        }
    }

    fn sorted(&self) -> Option<Vec<f64>> {
        let Sample::Values(values) = self else { return None };
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        Some(sorted)
    }
}

/// Are these compared by ranks?
pub(super) fn are_ranked(a: &Sample, b: &Sample) -> bool {
    matches!((a, b), (Sample::Values(a), Sample::Values(b)) if a.len().min(b.len()) >= RANKED_FROM)
}

/// Compares; `None` when there is only one value on each side, or none: then nothing is known of the noise.
pub(super) fn judge(a: &Sample, b: &Sample) -> Option<Judged> {
    if let (Sample::Values(a), Sample::Values(b)) = (a, b)
        && a.len().min(b.len()) >= RANKED_FROM
    {
        return Some(mann_whitney(a, b));
    }
    welch(a, b)
}

fn welch(a: &Sample, b: &Sample) -> Option<Judged> {
    let ((na, ma, va), (nb, mb, vb)) = (a.moments(), b.moments());
    let (method, error, df) = match (na >= 2.0, nb >= 2.0) {
        (true, true) => {
            let (ea, eb) = (va / na, vb / nb);
            let df = (ea + eb).powi(2) / (ea * ea / (na - 1.0) + eb * eb / (nb - 1.0));
            (Method::Welch, (ea + eb).sqrt(), if df.is_finite() { df } else { na + nb - 2.0 })
        }
        (true, false) if nb == 1.0 => (Method::Prediction, (va * (1.0 + 1.0 / na)).sqrt(), na - 1.0),
        (false, true) if na == 1.0 => (Method::Prediction, (vb * (1.0 + 1.0 / nb)).sqrt(), nb - 1.0),
        _ => return None,
    };
    let difference = mb - ma;
    // Without any variation every difference is larger than it; rounding of the mean is none.
    let rounding = ma.abs().max(mb.abs()) * 1e-12;
    let p = match error > rounding {
        true => student::both_tails(difference / error, df),
        false if difference.abs() <= rounding => 1.0,
        false => 0.0,
    };
    let half = if error > rounding { student::quantile(df, 0.05) * error } else { 0.0 };
    let pooled = (((na - 1.0) * va + (nb - 1.0) * vb) / (na + nb - 2.0)).sqrt();
    let small = 1.0 - 3.0 / (4.0 * (na + nb) - 9.0).max(1.0);
    let delta = match (a, b) {
        (Sample::Values(a), Sample::Values(b)) => Some(cliffs_delta(a, b)),
        _ => None,
    };
    Some(Judged {
        method,
        p,
        interval: (difference - half, difference + half),
        cliffs_delta: delta,
        hedges_g: (pooled > rounding).then(|| difference / pooled * small),
    })
}

fn mann_whitney(a: &[f64], b: &[f64]) -> Judged {
    let (n, m) = (a.len() as f64, b.len() as f64);
    let delta = cliffs_delta(a, b);
    let mut all: Vec<f64> = a.iter().chain(b).copied().collect();
    all.sort_by(f64::total_cmp);
    let ties: f64 =
        all.chunk_by(|x, y| x == y).map(|same| (same.len() as f64).powi(3) - same.len() as f64).sum();
    let total = n + m;
    let variance = n * m / 12.0 * ((total + 1.0) - ties / (total * (total - 1.0)));
    // U's distance from its mean is half of delta times all pairs; half a step for continuity.
    let distance = (delta.abs() * n * m / 2.0 - 0.5).max(0.0);
    let p = if variance > 0.0 { (2.0 * normal_tail(distance / variance.sqrt())).min(1.0) } else { 1.0 };
    let mut differences: Vec<f64> = b.iter().flat_map(|b| a.iter().map(move |a| b - a)).collect();
    differences.sort_by(f64::total_cmp);
    let spread = 1.959_964 * (n * m * (total + 1.0) / 12.0).sqrt();
    let low = (n * m / 2.0 - spread).floor().max(1.0) as usize - 1;
    let interval = match (differences.get(low), differences.get(differences.len().saturating_sub(low + 1))) {
        (Some(low), Some(high)) => (*low, *high),
        _ => (f64::NEG_INFINITY, f64::INFINITY),
    };
    Judged { method: Method::MannWhitney, p, interval, cliffs_delta: Some(delta), hedges_g: None }
}

/// How much more often a value of the second is greater than one of the first than smaller.
fn cliffs_delta(a: &[f64], b: &[f64]) -> f64 {
    let mut first = a.to_vec();
    first.sort_by(f64::total_cmp);
    let mut sum = 0.0;
    for value in b {
        let below = first.partition_point(|x| x < value);
        let above = first.len() - first.partition_point(|x| x <= value);
        sum += below as f64 - above as f64;
    }
    let pairs = (a.len() * b.len()) as f64;
    if pairs > 0.0 { sum / pairs } else { 0.0 }
}

/// Means of neighbouring values, about `wanted` of them, which know less of each other than the values do. The second
/// part says how much they still do: the correlation of each with the next.
pub(super) fn batches(values: &[f64], wanted: usize) -> (Vec<f64>, f64) {
    let size = (values.len() / wanted.max(1)).max(1);
    let means: Vec<f64> = values.chunks_exact(size).map(|c| c.iter().sum::<f64>() / c.len() as f64).collect();
    let mean = means.iter().sum::<f64>() / means.len().max(1) as f64;
    let variance: f64 = means.iter().map(|v| (v - mean).powi(2)).sum();
    let next: f64 = means.windows(2).map(|w| (w[0] - mean) * (w[1] - mean)).sum();
    let correlation = if variance > 0.0 { next / variance } else { 0.0 };
    (means, correlation)
}

/// Levels of significance for several tests at once (Holm 1979): that at least one of them is wrong is as rare as each
/// would be alone.
pub(super) fn holm(ps: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..ps.len()).collect();
    order.sort_by(|a, b| ps[*a].total_cmp(&ps[*b]));
    let mut adjusted = vec![0.0; ps.len()];
    let mut most = 0.0f64;
    for (rank, index) in order.into_iter().enumerate() {
        most = most.max((ps[index] * (ps.len() - rank) as f64).min(1.0));
        adjusted[index] = most;
    }
    adjusted
}

/// The normal distribution's upper tail (Abramowitz and Stegun, 7.1.26 would be too coarse far out: a continued
/// fraction there, a series near 0).
fn normal_tail(z: f64) -> f64 {
    if z < 2.0 {
        let (mut term, mut sum) = (z, z);
        for k in 1..60 {
            term *= -z * z / (2.0 * f64::from(k));
            sum += term / f64::from(2 * k + 1);
        }
        return 0.5 - sum / (2.0 * std::f64::consts::PI).sqrt();
    }
    let fraction = (1..60).rev().fold(z, |below, k| z + f64::from(k) / below);
    (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt() / fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(is: f64, should: f64) {
        assert!((is - should).abs() <= should.abs() * 1e-6 + 1e-12, "{is} is not {should}");
    }

    /// Expected values from printed tables.
    #[test]
    fn tails_are_those_of_the_tables() {
        near(normal_tail(0.0), 0.5);
        near(normal_tail(1.959_963_985), 0.025);
        near(normal_tail(4.0), 3.167_124_183e-5);
    }

    fn random(seed: &mut u64) -> f64 {
        // splitmix64, twelve uniform values for one about normal.
        let mut uniform = || {
            *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = *seed;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
        };
        (0..12).map(|_| uniform()).sum::<f64>() - 6.0
    }

    #[test]
    fn sides_that_do_not_differ_are_seldom_said_to() {
        let mut seed = 7;
        for n in [3, 5, 8, 20] {
            let mut draw = || Sample::Values((0..n).map(|_| 100.0 + random(&mut seed)).collect());
            let alarms = (0..2000).filter(|_| judge(&draw(), &draw()).is_some_and(|j| j.p < 0.05)).count();
            assert!((30..=130).contains(&alarms), "{alarms} of 2000 with {n} values a side");
        }
    }

    #[test]
    fn sides_that_differ_are_found_and_the_interval_holds_the_truth() {
        let mut seed = 11;
        for n in [3, 5, 8, 20] {
            let mut held = 0;
            for _ in 0..500 {
                let a = Sample::Values((0..n).map(|_| 100.0 + random(&mut seed)).collect());
                let b = Sample::Values((0..n).map(|_| 110.0 + random(&mut seed)).collect());
                let judged = judge(&a, &b).expect("several values");
                assert!(judged.p < 0.05, "{n}: {judged:?}");
                assert_eq!(judged.cliffs_delta, Some(1.0));
                held += usize::from(judged.interval.0 <= 10.0 && judged.interval.1 >= 10.0);
            }
            assert!(held >= 460, "{held} of 500 intervals hold the truth with {n} values a side");
        }
    }

    #[test]
    fn values_that_never_vary_differ_or_do_not() {
        let sample = |v: f64, n: usize| Sample::Values(vec![v; n]);
        for n in [3, 10] {
            assert_eq!(judge(&sample(0.1, n), &sample(0.1, n)).map(|j| j.p), Some(1.0));
            assert!(judge(&sample(0.0, n), &sample(5.0, n)).is_some_and(|j| j.p < 0.01));
        }
        assert_eq!(judge(&sample(1.0, 1), &sample(2.0, 1)), None);
        let one =
            judge(&Sample::Values(vec![100.0, 101.0, 99.0]), &sample(100.5, 1)).expect("one against three");
        assert_eq!(one.method, Method::Prediction);
        assert!(one.p > 0.5);
    }

    #[test]
    fn neighbours_that_go_together_are_told() {
        let mut seed = 3;
        let free: Vec<f64> = (0..400).map(|_| random(&mut seed)).collect();
        let bound: Vec<f64> = (0..400).map(|i| f64::from(i / 100)).collect();
        assert!(batches(&free, 20).1.abs() < 0.5);
        assert!(batches(&bound, 20).1 > 0.5);
        assert_eq!(batches(&free, 20).0.len(), 20);
    }

    #[test]
    fn many_tests_need_more_each() {
        assert_eq!(holm(&[0.04, 0.01, 0.03]), [0.06, 0.03, 0.06]);
        assert!(holm(&[]).is_empty());
    }
}
