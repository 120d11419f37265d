//! Detects more distinct frames received than sent. They could hide a loss, so the run falls short.

use meter::Measurement;
use report::{Code, Report, units};

/// Falls short if more distinct frames of a stream arrived than were sent (`sent`: by number).
pub fn judge(report: &mut Report, sent: &[(u32, u64)], measured: &Measurement) {
    let distinct = |number: &u32| {
        let at = measured.streams.binary_search_by_key(number, |stats| stats.stream).ok()?;
        let stats = measured.streams.get(at)?;
        // What may have come to both of two interfaces has a warning of its own.
        let at_both = stats.unsure.saturating_sub(stats.late.saturating_add(stats.renewed));
        Some(stats.distinct().saturating_sub(at_both))
    };
    let surplus = sent.iter().filter_map(|(number, sent)| distinct(number)?.checked_sub(*sent));
    if let Some(said) = more_than_sent(surplus) {
        report.result.verdict.fall_short(Code::SurplusFrames, said);
    }
}

/// `surplus`: by how many different frames of each stream more arrived than were sent.
pub fn more_than_sent(surplus: impl Iterator<Item = u64>) -> Option<String> {
    let sum = surplus.fold(0, u64::saturating_add);
    (sum > 0).then(|| {
        format!(
            "{} more arrived under the numbers of this run's frames than it sent: what sent them may also stand in for lost \
             frames, so that the loss may be larger than it says",
            units::counted(sum, "different frame")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_stream_has_too_much_another_does_not_make_good() {
        assert_eq!(more_than_sent([0, 0].into_iter()), None);
        let said = more_than_sent([0, 3, 1].into_iter()).expect("four too many");
        assert!(said.starts_with("4 different frames more arrived"), "{said}");
    }
}
