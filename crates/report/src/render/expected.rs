//! What of a run is as anybody expects, and so not worth a line of the summary: one rule for each thing, in one place.
//!
//! A run that did all that was asked shows what was measured; how it was done comes with [`crate::render::text::Options::verbose`],
//! or by itself where it is worse than expected. JSON and the page hold everything always.

use crate::data::model::Report;
use crate::data::model::Verdict;
use crate::data::note::Code;
use crate::data::search::TrialVerdict;
use crate::data::sections::counters::{InterfaceCounters, Witness};
use crate::data::sections::pacing::Pacing;

/// Was everything done as asked?
pub(crate) fn run(report: &Report) -> bool {
    report.result.verdict == Verdict::Done
}

/// Was the engine the one that would be taken first, or fast enough for the rate that was asked for? At top speed another one
/// would have sent more. What a device lost is no engine's doing.
pub(crate) fn engine(report: &Report) -> bool {
    let result = &report.result;
    let rated = result.tx.as_ref().is_some_and(|tx| tx.intended_frames_per_second.is_some());
    let first = report.environment.engine.as_ref().is_none_or(|choice| choice.not_taken.is_empty());
    let slow = match &result.verdict {
        Verdict::Short { reasons } => {
            reasons.iter().any(|reason| !matches!(reason.code, Code::FramesLost | Code::GoalNotReached))
        }
        _ => false,
    };
    let short = result
        .trials
        .iter()
        .any(|trial| matches!(trial.verdict, TrialVerdict::SenderShort | TrialVerdict::SenderUneven));
    (first || rated || result.search.is_some() || !result.trials.is_empty()) && !slow && !short
}

/// Did frames keep their times? Of those that were late by more than the threshold, one in a hundred is a busy core's; nothing
/// of the schedule was given up.
pub(crate) fn pacing(pacing: &Pacing, frames: u64) -> bool {
    let late = pacing.late_frames.unwrap_or(0);
    let abandoned = pacing.catch_up.is_some_and(|catch_up| catch_up.abandoned_ns > 0);
    !abandoned && late.saturating_mul(100) <= frames
}

/// Did the interface count what was sent, and nothing else?
pub(crate) fn counters(c: &InterfaceCounters) -> bool {
    let seen = matches!(c.confirmed_by, None | Some(Witness::Interface | Witness::Driver));
    let dropped = c.queue.as_ref().is_some_and(|queue| queue.dropped > 0);
    let errors = [c.tx_errors, c.tx_dropped].into_iter().flatten().any(|rise| rise > 0);
    seen && !dropped
        && !errors
        && (c.missing_frames == 0 || c.confirmed_by == Some(Witness::Driver))
        && c.foreign_frames.saturating_mul(100) <= c.sent_frames
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A result is read from a file, and may say anything.
    #[test]
    fn errors_of_any_number_are_not_expected() {
        let counters = InterfaceCounters {
            tx_errors: Some(u64::MAX),
            tx_dropped: Some(u64::MAX),
            ..InterfaceCounters::default()
        };
        assert!(!super::counters(&counters));
    }
}
