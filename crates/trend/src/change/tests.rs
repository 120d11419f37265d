use super::*;

/// Normally distributed numbers, the same for the same seed (SplitMix64 and Box-Muller).
struct Noise(u64);

impl Noise {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let (a, b) = (1.0 - self.uniform(), self.uniform());
        (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    }

    /// Results around a level, with noise of this share of it.
    fn series(&mut self, len: usize, noise: f64, level: impl Fn(usize) -> f64) -> Vec<f64> {
        (0..len).map(|n| level(n) * (1.0 + noise * self.normal())).collect()
    }
}

fn starts(values: &[f64]) -> Vec<usize> {
    groups(values).groups.iter().map(|group| group.first).collect()
}

#[test]
fn a_step_of_5_percent_in_40_results_is_found_wherever_it_is() {
    let mut noise = Noise(1);
    let mut found = 0;
    for _ in 0..1000 {
        let at = 1 + (noise.uniform() * 39.0) as usize;
        let values = noise.series(40, 0.01, |n| if n < at { 1e6 } else { 0.95e6 });
        let of = groups(&values);
        let near = of.groups.iter().any(|group| group.first > 0 && group.first.abs_diff(at) <= 1);
        found += usize::from(near);
    }
    println!("found {found} of 1000");
    assert!(found >= 950, "{found}");
}

#[test]
fn noise_alone_is_no_change() {
    let mut noise = Noise(2);
    for len in [4, 5, 6, 8, 10, 20, 40, 100, 300] {
        let series = if len > 100 { 100 } else { 2000 };
        let alarms = (0..series).filter(|_| starts(&noise.series(len, 0.01, |_| 1e6)).len() > 1).count();
        println!("{len} results: {alarms} false alarms in {series} series");
        assert!(alarms * 100 <= series, "{len} results: {alarms} of {series}");
    }
}
