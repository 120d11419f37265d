//! Repeating a test until its mean is known well enough, by netperf's rule.
//!
//! After n tests the interval of Student's t distribution around the mean, in parts of the mean, is
//! `2 t(level, n-1) sqrt(var / (n-1))`, with the variance of the population. It has to be no wider than what was asked for, for
//! the result and for both sides' CPU use.

/// What is to be reached.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Goal {
    /// 95 or 99, in percent.
    pub level: u32,
    /// The whole width, as a fraction of the mean.
    pub interval: f64,
    /// At least so many tests.
    pub min: u32,
    /// At most.
    pub max: u32,
    /// Only the result's interval matters.
    pub result_only: bool,
}

/// Values of tests so far.
#[derive(Debug, Clone, Default)]
pub struct Series {
    values: Vec<[f64; 3]>,
}

impl Series {
    /// A test ended: its result, local and remote CPU use (negative: not measured).
    pub fn push(&mut self, result: f64, local_cpu: f64, remote_cpu: f64) {
        self.values.push([result, local_cpu, remote_cpu]);
    }

    /// How many.
    pub fn len(&self) -> u32 {
        self.values.len() as u32
    }

    /// None yet?
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Means.
    pub fn means(&self) -> [f64; 3] {
        [0, 1, 2].map(|which| {
            self.values.iter().map(|values| values[which]).sum::<f64>() / self.values.len().max(1) as f64
        })
    }

    /// Widths in parts of the mean; none before the second test.
    pub fn widths(&self, level: u32) -> Option<[f64; 3]> {
        let n = self.values.len();
        if n < 2 {
            return None;
        }
        let (t, means) = (quantile(level, n - 1), self.means());
        Some([0, 1, 2].map(|which| {
            let mean = means[which];
            let variance =
                self.values.iter().map(|values| (values[which] - mean).powi(2)).sum::<f64>() / n as f64;
            if mean == 0.0 { 0.0 } else { (2.0 * t * (variance / (n - 1) as f64).sqrt() / mean).abs() }
        }))
    }

    /// Is it reached?
    pub fn reached(&self, goal: &Goal) -> bool {
        let looked_at = if goal.result_only { 1 } else { 3 };
        self.widths(goal.level)
            .is_some_and(|widths| widths.iter().take(looked_at).all(|width| *width <= goal.interval))
    }

    /// Is another test due?
    pub fn goes_on(&self, goal: &Goal) -> bool {
        let n = self.len();
        n < goal.min || n < goal.max && !self.reached(goal)
    }
}

/// Student's t at a level in percent.
fn quantile(level: u32, freedom: usize) -> f64 {
    histogram::student::quantile(freedom as f64, 1.0 - f64::from(level) / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        let table = [
            (95, 1, 12.706),
            (95, 2, 4.303),
            (95, 3, 3.182),
            (95, 10, 2.228),
            (95, 29, 2.045),
            (99, 1, 63.657),
            (99, 2, 9.925),
            (99, 5, 4.032),
            (99, 9, 3.250),
            (99, 28, 2.763),
        ];
        for (level, freedom, t) in table {
            let got = quantile(level, freedom);
            assert!((got - t).abs() < 0.0006, "{level} {freedom}: {got}");
        }
    }

    #[test]
    fn tests_are_repeated_until_their_mean_is_known() {
        let goal = Goal { level: 99, interval: 0.05, min: 3, max: 6, result_only: false };
        let mut steady = Series::default();
        let mut wild = Series::default();
        for n in 0..3 {
            assert!(steady.goes_on(&goal), "{n}");
            steady.push(1000.0 + f64::from(n), -1.0, -1.0);
        }
        assert!(!steady.goes_on(&goal) && steady.reached(&goal));
        while wild.goes_on(&goal) {
            wild.push(if wild.len() % 2 == 0 { 100.0 } else { 200.0 }, -1.0, 50.0);
        }
        assert_eq!(wild.len(), 6);
        assert!(!wild.reached(&goal));
        // Population variance 2500: 2 * 4.032 * sqrt(2500 / 5) / 150.
        let width = wild.widths(99).expect("widths")[0];
        assert!((width - 2.0 * 4.032 * 500f64.sqrt() / 150.0).abs() < 1e-3, "{width}");
    }

    #[test]
    fn with_the_result_only_cpu_use_may_vary() {
        let mut series = Series::default();
        for n in 0..3 {
            series.push(10.0, f64::from(n) * 30.0, 1.0);
        }
        let goal = Goal { level: 95, interval: 0.05, min: 3, max: 3, result_only: false };
        assert!(!series.reached(&goal) && series.reached(&Goal { result_only: true, ..goal }));
    }
}
