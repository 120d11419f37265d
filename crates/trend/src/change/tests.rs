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
        let series = if len > 100 { 100 } else { 500 };
        let alarms = (0..series).filter(|_| starts(&noise.series(len, 0.01, |_| 1e6)).len() > 1).count();
        println!("{len} results: {alarms} false alarms in {series} series");
        assert!(alarms * 100 <= series, "{len} results: {alarms} of {series}");
    }
}

#[test]
fn neither_level_nor_unit_matters() {
    let mut noise = Noise(3);
    let values = noise.series(40, 0.01, |n| if n < 25 { 100.0 } else { 95.0 });
    let of = |scale: f64, shift: f64| starts(&values.iter().map(|v| v * scale + shift).collect::<Vec<_>>());
    assert_eq!(of(1.0, 0.0), [0, 25]);
    for (scale, shift) in [(1e-9, 0.0), (1e12, 0.0), (-1.0, 0.0), (1.0, 1e6), (1.0, -95.0)] {
        assert_eq!(of(scale, shift), [0, 25], "{scale} {shift}");
    }
}

#[test]
fn what_never_varies_has_one_group_and_any_change_of_it_is_one() {
    assert_eq!(starts(&[]), [0; 0]);
    assert_eq!(starts(&[7.0]), [0]);
    assert_eq!(starts(&[0.0; 40]), [0]);
    // Rounding is no change.
    assert_eq!(starts(&(0..40).map(|n| 0.1 + 1e-17 * f64::from(n)).collect::<Vec<_>>()), [0]);
    let lossless_then_not: Vec<f64> = (0..40).map(|n| if n < 38 { 0.0 } else { 1e-6 }).collect();
    assert_eq!(starts(&lossless_then_not), [0, 38]);
    assert_eq!(groups(&lossless_then_not).groups[1].mean, 1e-6);
}

#[test]
fn the_newest_result_alone_is_a_group_if_it_is_far_from_the_others() {
    let mut noise = Noise(4);
    let mut values = noise.series(40, 0.01, |_| 1e6);
    values[39] = 0.92e6;
    assert_eq!(starts(&values), [0, 39]);
}

#[test]
fn a_single_result_between_others_is_an_exception_and_hides_nothing() {
    let mut noise = Noise(5);
    let mut values = noise.series(40, 0.01, |n| if n < 30 { 1e6 } else { 0.95e6 });
    values[12] = 5e6;
    let of = groups(&values);
    assert_eq!(of.exceptions, [12]);
    assert_eq!(
        of.groups.iter().map(|group| (group.first, group.values)).collect::<Vec<_>>(),
        [(0, 29), (30, 10)]
    );
    // As far as one that came before, the newest is no news.
    let mut values = noise.series(40, 0.01, |_| 1e6);
    (values[12], values[39]) = (0.5e6, 0.6e6);
    let of = groups(&values);
    assert_eq!((of.exceptions, of.groups.len()), (vec![12, 39], 1));
    (values[12], values[39]) = (0.6e6, 0.5e6);
    assert_eq!(starts(&values), [0, 39]);
}

#[test]
fn a_small_change_is_found_beside_a_great_one() {
    let mut noise = Noise(6);
    let level = |n| match n {
        0..20 => 2e6,
        20..50 => 1e6,
        _ => 0.95e6,
    };
    let values = noise.series(60, 0.01, level);
    let starts = starts(&values);
    assert_eq!(starts.len(), 3, "{starts:?}");
    assert!(starts[1] == 20 && starts[2].abs_diff(50) <= 1, "{starts:?}");
}

#[test]
fn changes_in_a_long_series_are_found_at_their_places() {
    let mut noise = Noise(7);
    let level = |n| if (1234..5678).contains(&n) { 1.05e6 } else { 1e6 };
    let mut values = noise.series(10_000, 0.01, level);
    values.extend(noise.series(5, 0.01, |_| 0.95e6));
    let starts = starts(&values);
    assert_eq!(starts.len(), 4, "{starts:?}");
    for (found, at) in starts.iter().zip([0, 1234, 5678, 10_000]) {
        assert!(found.abs_diff(at) <= 2, "{starts:?}");
    }
}

#[test]
fn groups_hold_each_value_once_whatever_the_values_are() {
    let mut noise = Noise(8);
    for _ in 0..300 {
        let len = (noise.uniform() * 60.0) as usize;
        let values: Vec<f64> = (0..len)
            .map(|_| match (noise.uniform() * 5.0) as u8 {
                0 => 0.0,
                1 => noise.normal() * 1e300,
                2 => 1e-300,
                _ => noise.normal(),
            })
            .collect();
        let of = groups(&values);
        let counted: usize = of.groups.iter().map(|group| group.values).sum::<usize>() + of.exceptions.len();
        assert_eq!(counted, len, "{values:?}");
        let apart = of.groups.windows(2).all(|pair| pair[0].last < pair[1].first);
        assert!(apart && of.groups.iter().all(|group| group.first <= group.last), "{of:?}");
    }
}
