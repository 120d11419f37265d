//! Repetitions as boxes: the middle half of the values, the median, and lines to the least and the greatest; each value is a
//! mark of its own while there are few. Of a search's or trial's repeated trials, and of results that are compared.

use super::charts::{Chart, FRAME};
use super::marks;
use super::plot::{Frame, Scale, Svg, round_up, tick_number};
use crate::data::figure::Unit;
use crate::data::search::Trial;
use crate::data::units;

/// Values of one thing that was done several times.
pub(super) struct Group {
    pub name: String,
    pub values: Vec<f64>,
    /// Number of the series: its colour and shape.
    pub series: usize,
}

/// Fewer values are no distribution.
pub(super) const FEWEST: usize = 3;
/// Rows of a drawing at most.
const MOST_ROWS: usize = 24;
/// So many values have marks of their own.
const MOST_MARKS: usize = 40;

const ROW: f64 = 30.0;

/// Quartiles of values in ascending order, between neighbours where they fall between.
fn quartile(sorted: &[f64], share: f64) -> Option<f64> {
    let at = share * sorted.len().checked_sub(1)? as f64;
    let (low, high) = (*sorted.get(at.floor() as usize)?, *sorted.get(at.ceil() as usize)?);
    Some(low + (high - low) * at.fract())
}

/// A row for each group of [`FEWEST`] values or more. `legend` names the series.
pub(super) fn chart(
    heading: &str,
    note: &str,
    unit: Unit,
    groups: &[Group],
    legend: Vec<(&'static str, String)>,
) -> Option<Chart> {
    let mut rows: Vec<(&Group, Vec<f64>)> = Vec::new();
    for group in groups {
        let mut values: Vec<f64> = group.values.iter().copied().filter(|v| v.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        if values.len() >= FEWEST && rows.len() < MOST_ROWS {
            rows.push((group, values));
        }
    }
    let ends = |row: &(&Group, Vec<f64>)| Some((*row.1.first()?, *row.1.last()?));
    let lo = rows.iter().filter_map(ends).map(|(lo, _)| lo).reduce(f64::min)?;
    let hi = rows.iter().filter_map(ends).map(|(_, hi)| hi).reduce(f64::max)?;
    let left = 16.0 + 6.6 * rows.iter().map(|(g, _)| g.name.chars().count().min(46)).max()? as f64;
    let mut svg = Svg::new(rows.len() as f64 * ROW + 56.0, Frame { left, right: 30.0, top: 8.0, ..FRAME });
    let ((x0, x1), (_, y1)) = (svg.x_range(), svg.y_range());
    let x = if lo > 0.0 && hi / lo > 30.0 {
        Scale::log(10f64.powf(lo.log10().floor()), 10f64.powf(hi.log10().ceil()), x0, x1)
    } else if lo > 0.0 && hi / lo < 1.5 {
        // What repetitions differ by is what is to be seen: no zero is needed.
        let air = ((hi - lo) * 0.12).max(hi * 0.001);
        Scale::linear(lo - air, hi + air, x0, x1)
    } else {
        Scale::linear(lo.min(0.0), round_up(hi * 1.04), x0, x1)
    };
    let ticks = x.ticks(6);
    let label = |v: f64| match unit {
        Unit::Ns if v >= 1.0 && (x.is_log() || hi / lo.max(1.0) >= 1.5) => units::tick_time(v),
        Unit::Ns if v <= 0.0 => "0".to_owned(),
        Unit::Ratio => {
            let percent: Vec<f64> = ticks.iter().map(|v| v * 100.0).collect();
            format!("{} %", tick_number(v * 100.0, &percent))
        }
        _ => unit.show(v),
    };
    let labels: Vec<_> = ticks.iter().map(|v| (*v, label(*v))).collect();
    svg.x_axis(&x, &labels, "", true);
    for (row, (group, values)) in rows.iter().enumerate() {
        let class = marks::class(group.series);
        let middle = y1 + ROW * (row as f64 + 0.5);
        let [least, q1, median, q3, greatest] =
            [0.0, 0.25, 0.5, 0.75, 1.0].map(|share| quartile(values, share).unwrap_or(0.0));
        let name = crate::render::table::cut(&group.name, 46);
        svg.text("tick end", x0 - 8.0, middle + 4.0, &name);
        svg.line(&format!("whisker {class}"), x.at(least), middle, x.at(greatest), middle);
        for end in [least, greatest] {
            svg.line(&format!("whisker {class}"), x.at(end), middle - 5.0, x.at(end), middle + 5.0);
        }
        let (from, to) = (x.at(q1), x.at(q3));
        svg.rect(&format!("box {class}"), from, middle - 8.0, (to - from).max(1.0), 16.0, None);
        svg.line(&format!("median {class}"), x.at(median), middle - 8.0, x.at(median), middle + 8.0);
        if values.len() <= MOST_MARKS {
            values.iter().for_each(|v| svg.mark(class, x.at(*v), middle, 2.6));
        }
        let show = |v: f64| unit.show(v);
        let tip = format!(
            "{} · median {} · middle half {} to {} · {} to {} · {} values",
            group.name,
            show(median),
            show(q1),
            show(q3),
            show(least),
            show(greatest),
            values.len()
        );
        svg.rect("hit", 0.0, middle - ROW / 2.0, x1, ROW, Some(&tip));
    }
    let svg = svg.finish(&format!("{heading}; tables on this page have the values"));
    Some(Chart { heading: heading.to_owned(), svg, legend, note: note.to_owned() })
}

const NOTE: &str = "Trials of one size at one load: the middle half of their values, the median, and lines to the least and the \
     greatest. Trials in which the tester itself fell short are left out.";

/// Trials that were done several times with the same frames at the same load for the same time.
pub(super) fn repeated(trials: &[Trial]) -> Vec<Chart> {
    let mut groups: Vec<(String, Vec<&Trial>)> = Vec::new();
    let alike = |a: &Trial, b: &Trial| {
        a.part == b.part
            && a.frame_size == b.frame_size
            && a.load == b.load
            && a.duration_ns == b.duration_ns
            && a.then_load == b.then_load
    };
    for trial in trials.iter().filter(|t| t.duration_ns > 0 && !t.verdict.is_the_testers()) {
        match groups.iter_mut().find(|(_, of)| of.first().is_some_and(|first| alike(first, trial))) {
            Some((_, of)) => of.push(trial),
            None => {
                let load = trial.intended_frames_per_second.map(units::frame_rate).unwrap_or_default();
                groups.push((format!("{} bytes at {load}", trial.frame_size), vec![trial]));
            }
        }
    }
    groups.retain(|(_, of)| of.len() >= FEWEST);
    let of = |series: usize, suffix: &str, value: &dyn Fn(&Trial) -> Option<f64>| -> Vec<Group> {
        let group = |(name, of): &(String, Vec<&Trial>)| Group {
            name: format!("{name}{suffix}"),
            values: of.iter().filter_map(|t| value(t)).collect(),
            series,
        };
        groups.iter().map(group).collect()
    };
    let half = of(0, ", p50", &|t| Some(t.latency_ns?.p50 as f64));
    let most = of(1, ", p99", &|t| Some(t.latency_ns?.p99 as f64));
    let latency: Vec<Group> = half.into_iter().zip(most).flat_map(|(a, b)| [a, b]).collect();
    let lost = of(2, "", &|t| (t.sent_frames > 0).then(|| t.lost_frames as f64 / t.sent_frames as f64));
    let any_lost = lost.iter().flat_map(|g| &g.values).any(|v| *v > 0.0);
    let series = |names: &[(usize, &str)]| {
        names.iter().map(|(n, name)| (marks::class(*n), (*name).to_owned())).collect::<Vec<_>>()
    };
    let two = series(&[(0, "half of a trial's frames within (p50)"), (1, "99 % within (p99)")]);
    let lost = any_lost.then(|| chart("Loss of repeated trials", NOTE, Unit::Ratio, &lost, Vec::new()));
    [chart("Latency of repeated trials", NOTE, Unit::Ns, &latency, two), lost.flatten()]
        .into_iter()
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_is_the_middle_half() {
        let values = [1.0, 2.0, 3.0, 4.0, 10.0];
        assert_eq!(
            [0.0, 0.25, 0.5, 0.75, 1.0].map(|s| quartile(&values, s)),
            [1.0, 2.0, 3.0, 4.0, 10.0].map(Some)
        );
        assert_eq!([quartile(&[1.0, 2.0], 0.5), quartile(&[], 0.5)], [Some(1.5), None]);
    }

    #[test]
    fn only_trials_alike_stand_in_a_box() {
        let trial = |load: f64, verdict: &str| Trial {
            part: "trial".into(),
            frame_size: "64".to_owned(),
            load,
            intended_frames_per_second: Some(load),
            duration_ns: 1,
            sent_frames: 100,
            lost_frames: 1,
            verdict: verdict.into(),
            ..Trial::default()
        };
        let mut trials: Vec<Trial> = [1.0, 1.0, 2.0, 2.0].map(|load| trial(load * 1e3, "loss")).to_vec();
        trials.push(trial(1e3, "sender short"));
        assert!(repeated(&trials).is_empty(), "two each are no distribution");
        trials.push(trial(1e3, "passed"));
        let [lost] = repeated(&trials).try_into().unwrap_or_else(|_| panic!("one chart"));
        assert_eq!(lost.svg.matches("class=\"box").count(), 1);
        assert!(
            lost.svg.contains("64 bytes at 1.00 kpps · median 1.00 %") && lost.svg.contains("3 values"),
            "{}",
            lost.svg
        );
    }
}
