//! Beside a data phase: a thread that looks how it goes, and ends it.

use crate::phase::{Progress, Stop};
use std::thread::Scope;
use std::time::{Duration, Instant};

/// Sleeps no longer than this at a time: whoever waits for the thread at the end waits as long.
const SLICE: Duration = Duration::from_millis(10);

/// Calls `look` every `each`, by a schedule, until `over` is set.
pub fn every<'scope>(
    scope: &'scope Scope<'scope, '_>,
    each: Duration,
    over: &'scope Stop,
    mut look: impl FnMut() + Send + 'scope,
) {
    let mut next = Instant::now() + each;
    scope.spawn(move || {
        while !over.is_set() {
            let now = Instant::now();
            if now >= next {
                look();
                // What was missed while nobody ran is not made up for.
                next = (next + each).max(now);
            }
            std::thread::sleep(next.saturating_duration_since(Instant::now()).min(SLICE));
        }
    });
}

/// How long a phase has not moved.
#[derive(Debug)]
pub struct Quiet {
    seen: u64,
    since: Instant,
}

impl Quiet {
    /// It begins.
    pub fn new() -> Quiet {
        Quiet { seen: 0, since: Instant::now() }
    }

    /// Since its bytes, or its count, last changed.
    pub fn lasts(&mut self, progress: &Progress) -> Duration {
        let now = progress.bytes().wrapping_add(progress.count());
        if now != self.seen {
            self.seen = now;
            self.since = Instant::now();
        }
        self.since.elapsed()
    }
}
