//! Student's t distribution: how far the mean of a few values may be from what they were drawn from.

/// The probability that |t| is greater, with so many degrees of freedom, which need not be a whole number (Welch's are none).
pub fn both_tails(t: f64, freedom: f64) -> f64 {
    if !t.is_finite() {
        return 0.0;
    }
    incomplete_beta(freedom / (freedom + t * t), freedom / 2.0, 0.5).clamp(0.0, 1.0)
}

/// The t that is exceeded, to either side, with probability `both`.
pub fn quantile(freedom: f64, both: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1e6);
    // Halved until a double has no more digits.
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if both_tails(middle, freedom) > both { low = middle } else { high = middle }
    }
    high
}

/// The whole width of the confidence interval of the mean of `values`, as a share of the mean, by Student's t. None of fewer than
/// two, and where the mean is 0.
pub fn interval_width(values: &[f64], level: f64) -> Option<f64> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    if values.len() < 2 || mean == 0.0 || !mean.is_finite() {
        return None;
    }
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    Some(2.0 * quantile(n - 1.0, 1.0 - level) * (variance / n).sqrt() / mean.abs())
}

/// The regularised incomplete beta function by its continued fraction (DLMF 8.17.22).
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let front = (a * x.ln() + b * (1.0 - x).ln() + log_gamma(a + b) - log_gamma(a) - log_gamma(b)).exp() / a;
    // Evaluated from the far end: no division by what may vanish.
    let fraction = (1..=200).rev().fold(1.0, |below, k| {
        let m = f64::from(k / 2);
        let d = if k % 2 == 0 {
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
        } else {
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
        };
        1.0 + d / below
    });
    front / fraction
}

/// The logarithm of the gamma function, for `x` above 0: Stirling's series after shifting upwards (DLMF 5.11.1).
fn log_gamma(x: f64) -> f64 {
    let (mut shift, mut x) = (0.0, x);
    while x < 12.0 {
        shift += x.ln();
        x += 1.0;
    }
    let y = 1.0 / (x * x);
    let series = (1.0 / 12.0 - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y / 1680.0))) / x;
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + series - shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_mean_is_as_tables_have_it() {
        // t for 2 degrees of freedom and 99 % is 9.925 (any table); the standard error of 9, 10, 11 is 1 / sqrt(3).
        let width = interval_width(&[9.0, 10.0, 11.0], 0.99).expect("a width");
        assert!((width - 2.0 * 9.925 / 3_f64.sqrt() / 10.0).abs() < 1e-3, "{width}");
        assert_eq!(interval_width(&[5.0; 4], 0.95), Some(0.0));
        assert_eq!((interval_width(&[1.0], 0.95), interval_width(&[], 0.95)), (None, None));
    }

    fn near(is: f64, should: f64) {
        assert!((is - should).abs() <= should.abs() * 1e-6 + 1e-12, "{is} is not {should}");
    }

    /// Expected values by numerical integration of the densities (Simpson, 400,000 steps) and from printed tables.
    #[test]
    fn tails_are_those_of_the_tables() {
        near(both_tails(2.776_445_105, 4.0), 0.05);
        near(both_tails(1.0, 1.0), 0.5);
        near(both_tails(5.0, 30.0), 2.329_668_546_7e-5);
        near(quantile(4.0, 0.05), 2.776_445_105);
        near(quantile(1.0, 0.05), 12.706_204_736);
    }

    /// The probability that |t| is no greater: the finite sums for whole degrees of freedom (Abramowitz and Stegun, 26.7.3
    /// and 26.7.4).
    fn within(t: f64, freedom: u32) -> f64 {
        let angle = (t / f64::from(freedom).sqrt()).atan();
        let (sine, cosine) = angle.sin_cos();
        let odd = freedom % 2 == 1;
        let (mut term, mut sum) = (if odd { cosine } else { 1.0 }, 0.0);
        let mut power = u32::from(odd);
        while power + 2 <= freedom {
            sum += term;
            power += 2;
            term *= cosine * cosine * f64::from(power - 1) / f64::from(power);
        }
        if odd { 2.0 / std::f64::consts::PI * (angle + sine * sum) } else { sine * sum }
    }

    #[test]
    fn whole_degrees_of_freedom_have_the_finite_sums() {
        for freedom in 1..120 {
            for t in [0.0, 0.01, 0.5, 1.0, 2.5, 7.0, 30.0] {
                let (is, should) = (1.0 - both_tails(t, freedom.into()), within(t, freedom));
                assert!((is - should).abs() < 1e-10, "{t} {freedom}: {is} is not {should}");
            }
        }
    }
}
