//! `netdyno search session-capacity`: the most connections that are held at once and answered when they are used again. That they were
//! established says little: a table that is full may forget old ones while it takes new ones (RFC 9693).

use report::{Code, Report, SessionCapacityFound, SessionTrial, SessionVerdict, units};
use spec::SessionCapacity;
use trial::{BisectPlan, Confirmed, ConfirmedPlan, Direction, Limits, Resolution, Stage};

/// So often a number that failed when it was confirmed is searched again below.
const TIMES: u32 = 5;
/// A trial that failed by no more than this is done again, once: a stall of either end is no property of the device.
const NEARLY: f64 = 0.02;

/// What is asked for.
pub(super) fn plan(find: &SessionCapacity, from_server: bool) -> ConfirmedPlan {
    let precision = find.precision();
    let bisect = BisectPlan {
        // From the server's side each is reached by way of another.
        least: find.least().max(if from_server { 2 } else { 1 }) as f64,
        greatest: find.most() as f64,
        resolution: precision.map_or(Resolution::Units(1.0), Resolution::Relative),
        direction: Direction::Greatest,
        limits: Limits::loss(0.0),
        trial_ns: 0,
        short_ns: 0,
        retries: 1,
        retry_loss_ratio: NEARLY,
        in_parts: false,
        enough: 0.0,
    };
    ConfirmedPlan {
        bisect,
        apart: precision.unwrap_or(0.001),
        confirm: find.confirm(),
        stage: Stage::Confirm,
        all: false,
        times: TIMES,
        whole: true,
        raise: None,
    }
}

/// Whether all were held and answered. What could not be opened here says nothing of the device, nor what the server refused to send.
pub(super) fn verdict(row: &SessionTrial, asked: u64, refused: u64) -> SessionVerdict {
    let kept = row.held.unwrap_or(0).min(row.answered_again.unwrap_or(0));
    if kept >= asked {
        SessionVerdict::Passed
    } else if row.opened < asked || refused > 0 {
        SessionVerdict::Undecided
    } else {
        SessionVerdict::Failed
    }
}

/// What the trials come to.
pub(super) fn found(
    trials: &[SessionTrial],
    search: &Confirmed,
    asked: &SessionCapacity,
) -> SessionCapacityFound {
    let whole = |number: f64| number as u64;
    let connections = search.found().map(whole);
    let passed = trials.iter().filter(|trial| {
        connections.is_some()
            && trial.intended_connections == connections
            && trial.verdict == SessionVerdict::Passed
    });
    let undecided = trials.iter().filter(|trial| trial.verdict == SessionVerdict::Undecided);
    SessionCapacityFound {
        connections,
        failed_connections: search.failed().map(whole),
        passed_trials: passed.count() as u32,
        undecided_trials: undecided.count() as u64,
        precision_ratio: asked.precision(),
    }
}

pub(super) fn judge(report: &mut Report, found: &SessionCapacityFound, complete: bool, inconsistent: &[f64]) {
    for number in inconsistent {
        let said = format!(
            "{} passed once and not when they were tried again: the device may still have kept those of the trial before, which were closed",
            units::counted(*number as u64, "connection")
        );
        let remedy = "give it more time (`.settle`), shorter time-outs, or close by a RST (`.close` rst)";
        report.warnings.add(Code::DeviceInconsistent, (said, remedy));
    }
    if found.undecided_trials > 0 {
        let said = format!(
            "{} could not be decided: not all connections were opened here, or the server refused to send to some",
            units::counted(found.undecided_trials, "trial")
        );
        report.warnings.add(Code::RateNotReached, said);
    }
    match (complete, found.connections, found.failed_connections) {
        (false, ..) | (true, Some(_), Some(_)) => {}
        (true, None, _) => {
            let said = "no number of connections passed as often as was asked for";
            report.result.verdict.fall_short(Code::GoalNotReached, said);
        }
        (true, Some(_), None) => {
            let said = "the most that were to be tried passed: what can be held is more, and not known";
            report.warnings.add(Code::SearchRange, (said, "raise `.max`"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_connections_that_answer_again_are_held() {
        let row = |opened: u64, held: u64, answered: u64| SessionTrial {
            opened,
            held: Some(held),
            answered_again: Some(answered),
            ..SessionTrial::default()
        };
        let of = |row: SessionTrial| verdict(&row, 100, 0).to_string();
        assert_eq!(of(row(100, 100, 100)), "passed");
        // Established, and forgotten since.
        assert_eq!(of(row(100, 100, 99)), "failed");
        assert_eq!(of(row(100, 99, 99)), "failed");
        assert_eq!(of(row(99, 99, 99)), "undecided");
        // A server that was started again takes none of its cookies.
        assert_eq!(verdict(&row(100, 100, 0), 100, 3).to_string(), "undecided");
        assert_eq!(verdict(&row(100, 100, 100), 100, 3).to_string(), "passed");
    }
}
