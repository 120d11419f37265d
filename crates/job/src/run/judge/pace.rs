//! Was all sent that was due, and in time? Pure: of what engines and schedules say, for the verdict.

use engine::{Ended, GRACE_NS, Sent};
use report::units;

/// A run that is this much slower than asked fell short.
pub const RATE_TOLERANCE: f64 = 0.001;
/// And by this, which a batch's last frames may take.
const TOLERATED_NS: f64 = 1e6;

/// Why the run was not what the rate asks for, if it was not. `missing`: [`due_not_sent`](crate::run::fill::due::due_not_sent).
pub fn too_slow(sent: &Sent, missing: Option<u64>) -> Option<String> {
    let grace = match sent.ended {
        Ended::Done => TOLERATED_NS,
        Ended::Stopped => GRACE_NS as f64,
        // What broke off is short by that.
        Ended::Fault(_) | Ended::SourceFault(_) => return None,
    };
    let scheduled = sent.scheduled_ns.filter(|_| sent.punctuality.is_some())?;
    if let Some(missing @ 1..) = missing {
        let done = sent.counters.frames + sent.counters.failed;
        let due = done.saturating_add(missing);
        let least = if sent.overdue.is_some_and(|overdue| overdue.at_least) { "at least " } else { "" };
        return Some(format!(
            "the rate was not reached: {least}{} of {} frames that were due were not sent ({} were)",
            units::count(missing),
            units::count(due),
            units::percent(done as f64 / due as f64)
        ));
    }
    if missing.is_some() && matches!(sent.ended, Ended::Stopped) {
        return None;
    }
    // Nobody sends what does not come.
    let starved_ns = sent.punctuality.as_ref().map_or(0, |kept| kept.starved_ns);
    let (lasted, reached) = (sent.duration_ns.saturating_sub(starved_ns) as f64, scheduled as f64);
    (lasted > reached * (1.0 + RATE_TOLERANCE) && lasted - reached > grace).then(|| {
        format!(
            "the rate was not reached: frames for {} took {} ({} of the rate asked for)",
            units::time(scheduled),
            units::time(sent.duration_ns),
            units::percent(reached / lasted)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::fill::due::{Due, due_not_sent};
    use engine::{Overdue, Punctuality};
    use port::tx::{TxCounters, TxError};

    const SECOND: u64 = 1_000_000_000;

    /// A run at 1,000 frames/s of `seconds` that sent `frames`.
    fn ran(frames: u64, seconds: u64, ended: Ended) -> Sent {
        Sent {
            counters: TxCounters { frames, ..TxCounters::default() },
            duration_ns: seconds * SECOND,
            looked_ns: seconds * SECOND,
            scheduled_ns: Some(frames * 1_000_000),
            taken: frames,
            exhausted: false,
            punctuality: Some(Punctuality::default()),
            ended,
            ..Sent::idle()
        }
    }

    fn due(intended: u64, had_time: u64) -> Due {
        Due { intended: Some(intended), had_time: Some(had_time) }
    }

    fn reason(sent: &Sent, due: Due) -> Option<String> {
        too_slow(sent, due_not_sent(sent, due))
    }

    #[test]
    fn one_frame_due_and_not_sent_in_an_hour_is_short() {
        let hour = 3_600_000;
        for missing in [1, 3_000] {
            let said = reason(&ran(hour - missing, 3600, Ended::Done), due(hour, hour)).expect("short");
            let count = units::count(missing);
            let begins =
                format!("the rate was not reached: {count} of 3,600,000 frames that were due were not");
            assert!(said.starts_with(&begins), "{said}");
        }
        assert_eq!(reason(&ran(hour, 3600, Ended::Done), due(hour, hour)), None);
    }

    #[test]
    fn a_stopped_run_is_judged_until_the_grace_before_its_end() {
        // What was due within the last 20 ms was under way.
        assert_eq!(reason(&ran(9_981, 10, Ended::Stopped), due(10_000, 9_981)), None);
        let late = ran(9_980, 10, Ended::Stopped);
        assert_eq!(due_not_sent(&late, due(10_000, 9_981)), Some(1));
        assert!(reason(&late, due(10_000, 9_981)).is_some());
        // A hundredth of the rate: the endless run that was said to be done.
        let said = reason(&ran(100, 10, Ended::Stopped), due(10_000, 9_981)).expect("short");
        assert!(said.contains("9,881 of 9,981 frames") && said.ends_with("(1.00 % were)"), "{said}");
    }

    #[test]
    fn refused_frames_are_told_elsewhere_and_given_back_ones_here() {
        let mut sent = ran(900, 1, Ended::Done);
        sent.counters.failed = 100;
        sent.scheduled_ns = Some(SECOND);
        assert_eq!((due_not_sent(&sent, due(1000, 1000)), reason(&sent, due(1000, 1000))), (Some(0), None));
        // All was taken from the source, and the interface had no room for some of it until the end.
        sent.counters.failed = 0;
        sent.exhausted = true;
        assert_eq!(due_not_sent(&sent, due(1000, 0)), Some(100));
    }

    #[test]
    fn all_that_was_sent_late_is_held_to_a_thousandth() {
        let mut sent = ran(1000, 1, Ended::Done);
        sent.exhausted = true;
        let due = Due { intended: Some(1000), had_time: Some(1000) };
        assert_eq!(reason(&sent, due), None);
        sent.duration_ns = 2 * SECOND;
        let said = reason(&sent, due).expect("half the rate");
        assert_eq!(
            said,
            "the rate was not reached: frames for 1.00 s took 2.00 s (50.0 % of the rate asked for)"
        );
        // Stopped, it is judged by what was due; where nobody knows that, by how far its schedule was.
        sent.ended = Ended::Stopped;
        assert_eq!(reason(&sent, due), None);
        sent.exhausted = false;
        assert!(reason(&sent, Due::default()).is_some());
        sent.duration_ns = SECOND + GRACE_NS / 2;
        assert_eq!(reason(&sent, Due::default()), None);
    }

    #[test]
    fn what_only_the_source_knows_counts_as_well() {
        let mut sent = ran(500, 1, Ended::Done);
        sent.overdue = Some(Overdue { frames: 7, at_least: false });
        assert_eq!(due_not_sent(&sent, Due::default()), Some(7));
        assert!(too_slow(&sent, Some(7)).is_some_and(|said| said.contains("7 of 507 frames")));
        sent.overdue = Some(Overdue { frames: 256, at_least: true });
        let missing = due_not_sent(&sent, Due::default());
        assert!(too_slow(&sent, missing).is_some_and(|said| said.contains("at least 256 of")));
        // At top speed nothing is due, and a broken run is short by what broke it.
        sent.punctuality = None;
        assert_eq!(too_slow(&sent, Some(7)), None);
        assert_eq!(too_slow(&ran(1, 9, Ended::Fault(TxError::Gone("v0".into()))), Some(7)), None);
    }
}
