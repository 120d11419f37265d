//! Frames that were due, and those of them that were not sent.

use engine::Sent;

/// Frames that the schedule had due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Due {
    /// Until the run's end; `None` at top speed, or where only the sender could know.
    pub intended: Option<u64>,
    /// Of those, the ones that had their time to leave: all in the time that was asked for, and where the run was ended
    /// before, those due [`engine::GRACE_NS`] before that.
    pub had_time: Option<u64>,
}

/// Frames that were due, had the time to leave, and were neither sent nor refused.
pub fn due_not_sent(sent: &Sent, due: Due) -> Option<u64> {
    let had_time = if sent.exhausted { due.intended } else { due.had_time };
    let done = sent.counters.frames + sent.counters.failed;
    had_time.map(|had_time| had_time.saturating_sub(done)).or(sent.overdue.map(|overdue| overdue.frames))
}
