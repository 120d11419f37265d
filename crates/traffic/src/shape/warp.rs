//! Time at which a load that varies has sent as much as an even one: two times that stand for each other at knots, and straight
//! lines between.

use super::fixed;
use crate::values::{Shuffle, hash};
use std::sync::Arc;

/// Knots of a sine's period, and of a rise or fall.
const SINE_KNOTS: u64 = 1024;
const SLOPE_KNOTS: u64 = 256;
/// On and off times before they come again, as a power of two.
pub const CYCLES_BITS: u8 = 14;

/// Stretches the time of an even load: fast where the load is low, slowly where it is high.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Warp {
    /// Time, and by when an even load has sent as much as this one has then. Neither goes back, and time always goes on.
    knots: Arc<[(u64, u64)]>,
    /// The last knot is the first of the next period; else both times go on side by side behind it.
    repeats: bool,
}

impl Warp {
    /// When as much has been sent as an even load has at `even`; where nothing is sent, at the end of this.
    #[cfg(test)]
    pub(super) fn time(&self, even: u64) -> u64 {
        self.time_near(even, &mut 0)
    }

    /// The same, looked for on the line of the last time first, and on the next: `last` is the knot that it ends in.
    pub(super) fn time_near(&self, even: u64, last: &mut usize) -> u64 {
        let (end, all) = self.end();
        if even >= all && !self.repeats {
            return end.saturating_add(even - all);
        }
        let (periods, even) = (even / all.max(1), even % all.max(1));
        let sent_by = |knot: usize| self.knots.get(knot).is_some_and(|&(_, sent)| sent <= even);
        let ends = |knot: usize| knot > 0 && knot < self.knots.len() && sent_by(knot - 1) && !sent_by(knot);
        if !ends(*last) {
            let next = *last + 1;
            *last = if ends(next) { next } else { self.knots.partition_point(|&(_, sent)| sent <= even) };
        }
        let ((t, u), (t1, u1)) = self.line(*last);
        let (since, slope, per) = (even - u, t1 - t, (u1 - u).max(1));
        // Of lines of up to seconds, 64 bits hold the product, and divide several times sooner.
        let within = match since.checked_mul(slope) {
            Some(product) => product / per,
            None => (u128::from(since) * u128::from(slope) / u128::from(per)) as u64,
        };
        periods.saturating_mul(end).saturating_add(t).saturating_add(within)
    }

    /// How many moments of the even time are over at `ns`: those whose [`Warp::time`] is no later.
    pub(super) fn passed(&self, ns: u64) -> u64 {
        let (end, all) = self.end();
        if ns >= end && !self.repeats {
            return all.saturating_add(ns - end).saturating_add(1);
        }
        let (periods, ns) = (ns / end.max(1), ns % end.max(1));
        let behind = self.knots.partition_point(|&(t, _)| t <= ns);
        let ((t, u), (t1, u1)) = self.line(behind);
        // u + x has its time within ns: floor(x * dt / du) <= ns - t  <=>  x < (ns - t + 1) * du / dt
        let room = (u128::from(ns - t) + 1) * u128::from(u1 - u);
        let begun = room.div_ceil(u128::from(t1 - t).max(1)) as u64;
        periods.saturating_mul(all).saturating_add(u).saturating_add(begun.min(u1 - u))
    }

    /// The line that ends in a knot.
    fn line(&self, behind: usize) -> ((u64, u64), (u64, u64)) {
        let behind = behind.clamp(1, self.knots.len() - 1);
        (self.knots[behind - 1], self.knots[behind])
    }

    fn end(&self) -> (u64, u64) {
        self.knots.last().copied().unwrap_or((1, 1))
    }

    /// The rate at its highest, as a multiple of the even one's.
    pub(super) fn highest(&self) -> f64 {
        let rises = self.knots.windows(2).map(|pair| {
            let ((t, u), (t1, u1)) = (pair[0], pair[1]);
            (u1 - u) as f64 / (t1 - t).max(1) as f64
        });
        rises.fold(0.0, f64::max)
    }

    /// The mean rate over a long time, as a multiple of the even one's; `None`: it comes to an end.
    pub(super) fn mean(&self) -> Option<f64> {
        let (end, all) = self.end();
        self.repeats.then_some(all as f64 / end.max(1) as f64)
    }

    /// A period of a sine about the even rate, which begins there and rises.
    pub(super) fn sine(period: u64, amplitude_millionths: u64) -> Warp {
        let mut before = 0;
        let knot = |k: u64| {
            let t = part(period, k, SINE_KNOTS);
            let area =
                fixed::area_of_sine(period, k, SINE_KNOTS) * u128::from(amplitude_millionths) / 1_000_000;
            // The exact curve never falls; rounded it might by a nanosecond.
            before = before.max(t.saturating_add((area >> 32) as u64));
            (t, before)
        };
        let mut knots: Vec<(u64, u64)> = (0..SINE_KNOTS).map(knot).collect();
        knots.push((period, period.max(before)));
        Warp { knots: knots.into(), repeats: true }
    }

    /// The even rate for a time, and a part of it for the rest of the period.
    pub(super) fn square(period: u64, high: u64, low_millionths: u64) -> Warp {
        let low = u128::from(period - high) * u128::from(low_millionths) / 1_000_000;
        let mut knots = vec![(0, 0), (high, high)];
        knots.extend((high < period).then_some((period, high + low as u64)));
        Warp { knots: knots.into(), repeats: true }
    }

    /// The even rate; from `after` on it rises to `peak` thousandths of it, stays there, and falls again.
    pub(super) fn flash(after: u64, rise: u64, hold: u64, fall: u64, peak: u64) -> Warp {
        let mut knots = vec![(0u64, 0u64)];
        let (mut begin, mut sent) = (0u64, 0u64);
        for (length, from, to) in
            [(after, 1000, 1000), (rise, 1000, peak), (hold, peak, peak), (fall, peak, 1000)]
        {
            let lines = if from == to { 1 } else { SLOPE_KNOTS };
            // from * x + (to - from) * x^2 / 2, where x is the part of the length.
            let area = |k: u64| {
                let (k, n, length) = (u128::from(k), u128::from(lines), u128::from(length));
                let twice = u128::from(from) * (2 * k * n - k * k) + u128::from(to) * k * k;
                (length * twice / (2 * n * n * 1000)) as u64
            };
            let line = |k| (begin + part(length, k, lines), sent + area(k));
            knots.extend((1..=lines).filter(|_| length > 0).map(line));
            (begin, sent) = (begin + length, sent + area(lines));
        }
        Warp { knots: knots.into(), repeats: false }
    }

    /// The even rate for a time, nothing for another, again and again, both of Pareto distribution with the same shape and
    /// these means.
    pub(super) fn on_off(on: u64, off: u64, alpha_thousandths: u64, seed: u64) -> Warp {
        let lengths = |mean: u64, key: u64| pareto(mean, alpha_thousandths, hash(seed, key));
        let (mut t, mut u) = (0u64, 0u64);
        let mut knots = vec![(0, 0)];
        for (on, off) in lengths(on, 1).into_iter().zip(lengths(off, 2)) {
            (t, u) = (t + on, u + on);
            knots.push((t, u));
            t += off;
            knots.push((t, u));
        }
        Warp { knots: knots.into(), repeats: true }
    }
}

/// `length * k / n`.
fn part(length: u64, k: u64, n: u64) -> u64 {
    (u128::from(length) * u128::from(k) / u128::from(n)) as u64
}

/// Lengths of Pareto distribution and a mean: of 2^14 evenly spaced quantiles each once, in random order, so that the mean is
/// met exactly although it would take any number of independent ones to come near it.
fn pareto(mean: u64, alpha_thousandths: u64, seed: u64) -> Vec<u64> {
    let count = 1u64 << CYCLES_BITS;
    let order = Shuffle::new(seed, CYCLES_BITS);
    // (1 - p)^(-1 / alpha), where 1 - p is (i + 1/2) / count.
    let relative = |j: u64| {
        let survives = (2 * order.at(j) + 1) << (63 - CYCLES_BITS);
        let log = u128::from(fixed::bits_of(survives)) * 1000 / u128::from(alpha_thousandths);
        u128::from(fixed::power_of_two(log as u64))
    };
    let all: Vec<u128> = (0..count).map(relative).collect();
    let sum: u128 = all.iter().sum();
    let total = u128::from(mean) * u128::from(count);
    let mut before = 0u128;
    let mut until = 0u128;
    let each = all.iter().map(|length| {
        until += length;
        let bound = until * total / sum.max(1);
        let own = (bound - before).max(1);
        before = bound;
        own as u64
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn warps() -> impl Strategy<Value = Warp> {
        prop_oneof![
            (10_000u64..1 << 40, 0u64..=1_000_000).prop_map(|(period, depth)| Warp::sine(period, depth)),
            (10_000u64..1 << 40, 1u64..=100, 0u64..1_000_000).prop_map(|(period, high, low)| Warp::square(
                period,
                period * high / 100,
                low
            )),
            (0u64..1 << 36, 0u64..1 << 36, 0u64..1 << 36, 1000u64..1 << 36, 1_001u64..1_000_000).prop_map(
                |(after, rise, hold, fall, peak)| Warp::flash(after, rise * 1000, hold, fall, peak)
            ),
            (10_000u64..1 << 36, 10_000u64..1 << 36, 1_050u64..2_000, any::<u64>())
                .prop_map(|(on, off, alpha, seed)| Warp::on_off(on, off, alpha, seed)),
        ]
    }

    proptest! {
        #[test]
        fn both_directions_belong_together(warp in warps(), even in 0u64..1 << 50) {
            let at = warp.time(even);
            prop_assert!(warp.passed(at) > even, "{} at {}", even, at);
            prop_assert!(at == 0 || warp.passed(at - 1) <= even);
            prop_assert!(warp.time(even + 1) >= at);
        }

        #[test]
        fn the_line_of_the_last_time_changes_none(
            warp in warps(), from in 0u64..1 << 44, step in 1u64..1 << 30, anywhere in prop::collection::vec(0u64..1 << 50, 0..20),
        ) {
            let mut last = 0;
            for even in (0..200).map(|k| from + k * step).chain(anywhere) {
                prop_assert_eq!(warp.time_near(even, &mut last), warp.time(even));
            }
        }

        #[test]
        fn knots_never_go_back(warp in warps()) {
            let onward = warp.knots.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1);
            prop_assert!(onward && warp.knots[0] == (0, 0));
        }
    }

    #[test]
    fn a_sine_sends_what_its_integral_says() {
        let (period, depth) = (10_000 * MS, 0.8);
        let warp = Warp::sine(period, 800_000);
        for k in 0..5000u64 {
            let t = k * 5 * MS;
            let turn = std::f64::consts::TAU / period as f64;
            let exact = t as f64 + depth / turn * (1.0 - (turn * t as f64).cos());
            // Straight lines between the knots leave the curve by up to A * 2 pi * P / (8 * 1024^2).
            assert!((warp.passed(t) as f64 - exact).abs() < 7.5e-7 * depth * period as f64 + 3.0, "{t}");
        }
        assert!((warp.highest() - 1.8).abs() < 1e-4 && warp.mean() == Some(1.0));
    }

    #[test]
    fn a_square_sends_at_two_rates_and_none_where_the_low_is_zero() {
        let warp = Warp::square(1000 * MS, 200 * MS, 0);
        assert_eq!((warp.time(200 * MS - 1), warp.time(200 * MS)), (200 * MS - 1, 1000 * MS));
        assert_eq!((warp.passed(200 * MS - 1), warp.passed(999 * MS)), (200 * MS, 200 * MS));
        let warp = Warp::square(1000 * MS, 200 * MS, 100_000);
        assert_eq!((warp.passed(1000 * MS - 1), warp.time(280 * MS)), (280 * MS, 1000 * MS));
    }

    #[test]
    fn a_flash_crowd_comes_holds_and_goes() {
        let s = 1000 * MS;
        let warp = Warp::flash(10 * s, 2 * s, 5 * s, 20 * s, 10_000);
        let sent = |t: u64| warp.passed(t * s) as f64 / s as f64;
        for (t, exact) in [(10, 10.0), (11, 10.0 + 3.25), (12, 21.0), (17, 71.0), (37, 181.0), (50, 194.0)] {
            assert!((sent(t) - exact).abs() < 1e-3, "{t}: {}", sent(t));
        }
        assert!((warp.highest() - 10.0).abs() < 1e-6 && warp.mean().is_none());
    }

    #[test]
    fn on_and_off_times_are_of_pareto_distribution_with_these_means() {
        let warp = Warp::on_off(100 * MS, 900 * MS, 1_400, 5);
        let knots: Vec<_> = warp.knots.to_vec();
        let mut on: Vec<u64> = knots.windows(2).step_by(2).map(|pair| pair[1].0 - pair[0].0).collect();
        assert_eq!(knots.last(), Some(&((1000 * MS) << 14, (100 * MS) << 14)));
        on.sort_unstable();
        // The quantiles of the law, whose least is x: of 14 of 15 the length is at most x * 15^(1 / 1.4).
        let least = on[0] as f64;
        for share in [0.5f64, 0.9, 0.99, 0.999] {
            let law = least * (1.0 - share).powf(-1.0 / 1.4);
            let found = on[(share * on.len() as f64) as usize] as f64;
            assert!((found / law - 1.0).abs() < 0.03, "{share}: {found} {law}");
        }
    }

    #[test]
    fn on_off_sources_are_self_similar() {
        // Variance of the mean of m windows falls with m^(2H - 2); for alpha 1.4 theory has H = (3 - alpha) / 2 = 0.8.
        let mut found = Vec::new();
        for seed in 0..8 {
            let warp = Warp::on_off(10 * MS, 10 * MS, 1_400, seed);
            let by: Vec<u64> = (0..=262_144).map(|k| warp.passed(k * MS)).collect();
            let variance = |m: usize| {
                let sums: Vec<f64> = by
                    .iter()
                    .step_by(m)
                    .zip(by.iter().skip(m).step_by(m))
                    .map(|(a, b)| (b - a) as f64)
                    .collect();
                let mean = sums.iter().sum::<f64>() / sums.len() as f64;
                sums.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / sums.len() as f64 / (m * m) as f64
            };
            let points: Vec<(f64, f64)> =
                (7..=12).map(|k| 1usize << k).map(|m| ((m as f64).ln(), variance(m).ln())).collect();
            let n = points.len() as f64;
            let (x, y) =
                (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
            let slope = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum::<f64>()
                / points.iter().map(|p| (p.0 - x).powi(2)).sum::<f64>();
            found.push(1.0 + slope / 2.0);
        }
        let mean = found.iter().sum::<f64>() / found.len() as f64;
        assert!((0.7..0.9).contains(&mean), "{mean} of {found:?}");
    }
}
