//! What a search that was ended before its end says: what its trials came to, and no result.

use crate::trials::{Goal, Series, outcome_of, rows_of};
use report::search::{Part, SearchAxis, Stage, TrialVerdict, Unfinished};
use trial::{Direction, Tried, so_far};

/// The search for a bound, of a part with frames of this size, whose values count `axis`.
pub fn bound(
    series: &Series,
    (part, size): (&Part, &str),
    goal: &Goal,
    axis: &SearchAxis,
    direction: Direction,
) -> Unfinished {
    let searched = rows_of(&series.course.rows, part, size).filter(|row| row.stage != Stage::WarmUp);
    let tried = searched.map(|row| Tried {
        load: row.load,
        duration_ns: row.duration_ns,
        broken: goal.limits.broken(&outcome_of(row)),
    });
    let known = so_far(tried, direction);
    Unfinished {
        part: part.clone(),
        goal: Some(goal.text()),
        axis: axis.clone(),
        passed: known.passed.map(|shown| shown.load),
        passed_duration_ns: known.passed.map(|shown| shown.duration_ns),
        failed: known.failed.map(|shown| shown.load),
        failed_duration_ns: known.failed.map(|shown| shown.duration_ns),
        trials: known.trials,
        passed_trials: known.passed_trials,
        wanted_trials: None,
    }
}

/// Trials at loads that are known, `wanted` of them if that is known.
pub fn trials(series: &Series, part: &Part, size: &str, wanted: Option<u64>) -> Unfinished {
    let rows = || rows_of(&series.course.rows, part, size);
    Unfinished {
        part: part.clone(),
        axis: SearchAxis::FramesPerSecond,
        trials: rows().count() as u32,
        passed_trials: rows().filter(|row| row.verdict == TrialVerdict::Passed).count() as u32,
        wanted_trials: wanted.and_then(|wanted| u32::try_from(wanted).ok()),
        ..Unfinished::default()
    }
}
