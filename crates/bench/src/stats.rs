//! Medians, ranges and quantiles of what was measured.

/// One figure, measured several times.
#[derive(Debug, Clone, Default)]
pub struct Sample(pub Vec<f64>);

impl Sample {
    pub fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// NaN when nothing was measured.
    pub fn median(&self) -> f64 {
        let sorted = self.sorted();
        match sorted.len() {
            0 => f64::NAN,
            n if n % 2 == 1 => sorted[n / 2],
            n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
        }
    }

    pub fn min(&self) -> f64 {
        self.0.iter().copied().fold(f64::NAN, f64::min)
    }

    pub fn max(&self) -> f64 {
        self.0.iter().copied().fold(f64::NAN, f64::max)
    }

    /// Run by run over another sample of the same rounds: what the machine did to both cancels out.
    pub fn over(&self, other: &Sample) -> Sample {
        Sample(self.0.iter().zip(&other.0).map(|(a, b)| a / b).collect())
    }

    fn sorted(&self) -> Vec<f64> {
        let mut sorted: Vec<f64> = self.0.iter().copied().filter(|v| !v.is_nan()).collect();
        sorted.sort_by(f64::total_cmp);
        sorted
    }

    /// `1.64 [1.55–1.70]`, in the form that `show` gives each number; a dash when nothing was measured.
    pub fn cell(&self, show: impl Fn(f64) -> String) -> String {
        match self.0.len() {
            0 => "–".to_owned(),
            1 => show(self.median()),
            _ => format!("{} [{}–{}]", show(self.median()), show(self.min()), show(self.max())),
        }
    }

    /// The median alone.
    pub fn short(&self, show: impl Fn(f64) -> String) -> String {
        if self.is_empty() { "–".to_owned() } else { show(self.median()) }
    }
}

/// The value that a share `q` of a sorted list does not exceed; 0 for an empty one.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
}

/// The most of these times, in order, that lie within any stretch of `window`.
pub fn densest(times: &[u64], window: u64) -> usize {
    let mut first = 0;
    let mut most = 0;
    for (last, &time) in times.iter().enumerate() {
        while time - times[first] >= window {
            first += 1;
        }
        most = most.max(last - first + 1);
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_the_middle_and_a_quantile_is_a_member() {
        assert_eq!(Sample(vec![3.0, 1.0, 2.0]).median(), 2.0);
        assert_eq!(Sample(vec![4.0, 1.0, 2.0, 3.0]).median(), 2.5);
        assert!(Sample::default().median().is_nan());
        let sorted: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(
            (quantile(&sorted, 0.5), quantile(&sorted, 0.99), quantile(&sorted, 1.0)),
            (50.0, 99.0, 100.0)
        );
    }

    #[test]
    fn the_densest_window_is_half_open() {
        assert_eq!(densest(&[0, 10, 20, 30, 31, 32, 60], 10), 3);
        assert_eq!(densest(&[0, 10, 20], 10), 1);
        assert_eq!(densest(&[], 10), 0);
    }
}
