//! Where a job puts how it stands and what it has to say, and finds what its user wants.

use crate::Snapshot;
use report::{Note, Words};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What the user wants of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Pause, or go on: what it does not do now.
    Toggle,
    /// Send nothing until it is resumed.
    Pause,
    /// Go on.
    Resume,
    /// A step faster.
    Faster,
    /// A step slower.
    Slower,
    /// So many percent of the rate that was asked for.
    Percent(u32),
}

/// Shared by a job and those who look on.
#[derive(Debug, Default)]
pub struct Board {
    inside: Mutex<Inside>,
    changed: Condvar,
    closely: AtomicBool,
    words: Option<Words>,
}

#[derive(Debug, Default)]
struct Inside {
    latest: Option<Arc<Snapshot>>,
    requests: Vec<Request>,
    notes: VecDeque<Note>,
    /// Notes that are not kept any more.
    forgotten: u64,
    over: bool,
}

/// Requests that wait to be taken; further ones are dropped.
const MOST: usize = 64;
/// Notes that are kept for who has not read them.
const MOST_NOTES: usize = 1024;

impl Board {
    /// Nothing that panics happens under this lock.
    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A board on which settings have the names that `words` gives them.
    pub fn worded(words: Words) -> Board {
        Board { words: Some(words), ..Board::default() }
    }

    /// Puts how the job stands in place of what was there.
    pub fn publish(&self, mut snapshot: Snapshot) {
        if let Some(words) = self.words {
            snapshot.word(words);
        }
        self.lock().latest = Some(Arc::new(snapshot));
        self.changed.notify_all();
    }

    /// The latest snapshot; `None` before the first.
    pub fn latest(&self) -> Option<Arc<Snapshot>> {
        self.lock().latest.clone()
    }

    /// Asks the job for something. At most 64 requests wait to be taken; further ones are dropped.
    pub fn request(&self, request: Request) {
        let mut inside = self.lock();
        if inside.requests.len() < MOST {
            inside.requests.push(request);
        }
    }

    /// What the user wants, in order, since the last time.
    pub fn requests(&self) -> Vec<Request> {
        std::mem::take(&mut self.lock().requests)
    }

    /// Something to know at once, for whoever listens.
    pub fn say(&self, mut note: Note) {
        if let Some(words) = self.words {
            note.text = words(&note.text).into_owned();
            note.remedy = note.remedy.map(|remedy| words(&remedy).into_owned());
        }
        let mut inside = self.lock();
        if inside.notes.len() == MOST_NOTES {
            inside.notes.pop_front();
            inside.forgotten += 1;
        }
        inside.notes.push_back(note);
        self.changed.notify_all();
    }

    /// The notes from number `next` on, which is then the number of the next one. Of those that are not kept any more there
    /// is nothing.
    pub fn notes(&self, next: &mut u64) -> Vec<Note> {
        let inside = self.lock();
        let skip = next.saturating_sub(inside.forgotten);
        *next = inside.forgotten + inside.notes.len() as u64;
        inside.notes.iter().skip(usize::try_from(skip).unwrap_or(usize::MAX)).cloned().collect()
    }

    /// Somebody wants to see streams, cores, counters and how late frames leave, too: that takes more time. To be said before the job
    /// begins.
    pub fn watch_closely(&self) {
        self.closely.store(true, Relaxed);
    }

    /// Does anybody want to see more than totals?
    pub fn is_watched_closely(&self) -> bool {
        self.closely.load(Relaxed)
    }

    /// There is nothing more to come but the result.
    pub fn end(&self) {
        self.lock().over = true;
        self.changed.notify_all();
    }

    /// Is there nothing more to come?
    pub fn is_over(&self) -> bool {
        self.lock().over
    }

    /// Waits for the first snapshot. `false`: there will be none.
    pub fn await_first(&self) -> bool {
        let inside = self.lock();
        let waited = self.changed.wait_while(inside, |inside| inside.latest.is_none() && !inside.over);
        waited.unwrap_or_else(PoisonError::into_inner).latest.is_some()
    }

    /// Waits until all is over, or for so long, or for a note beyond those before number `next`. Returns whether it is over.
    pub fn await_end(&self, patience: Duration, next: u64) -> bool {
        let until = Instant::now() + patience;
        let mut inside = self.lock();
        while !inside.over && inside.forgotten + inside.notes.len() as u64 <= next {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.changed.wait_timeout(inside, left);
            inside = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        inside.over
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use report::Code;

    #[test]
    fn who_comes_late_finds_the_latest_notes_and_none_twice() {
        let board = Board::default();
        let said = |n: usize| Note::info(Code::Begun, format!("{n}"));
        (0..MOST_NOTES + 3).for_each(|n| board.say(said(n)));
        let mut next = 0;
        let read = board.notes(&mut next);
        assert_eq!((read.len(), read[0].text.as_str(), next), (MOST_NOTES, "3", MOST_NOTES as u64 + 3));
        assert_eq!(board.notes(&mut next), []);
        board.say(said(7));
        assert!(!board.await_end(Duration::from_secs(60), next), "a note ends the waiting");
        assert_eq!(board.notes(&mut next), [said(7)]);
        // Another reader has a count of its own.
        assert_eq!(board.notes(&mut { next - 1 }), [said(7)]);
    }

    #[test]
    fn the_first_snapshot_and_the_end_are_waited_for() {
        let board = Board::default();
        assert!(!board.await_end(Duration::from_millis(1), 0));
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| board.await_first());
            board.publish(Snapshot::default());
            assert!(waits.join().expect("no panic"));
            let waits = scope.spawn(|| board.await_end(Duration::from_secs(600), 0));
            board.end();
            assert!(waits.join().expect("no panic"));
        });
        let never = Board::default();
        never.end();
        assert!(!never.await_first());
    }
}
