//! Where the workers of a run wait for each other, so that all count their times from the same moment.

use crate::clock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// From the arrival of the last worker to the start: time for the others to wake, so that none begins late.
const LEAD_NS: u64 = 200_000;

/// A worker that waits looks this often whether the run was stopped.
const LOOK: Duration = Duration::from_millis(20);

/// Before a given start a worker sleeps until so much is left: waking takes less.
const SPIN_NS: u64 = 500_000;

/// When a run begins, once all of its workers are ready.
#[derive(Debug, Clone, Default)]
pub enum Begins {
    /// At once.
    #[default]
    AtOnce,
    /// At a given moment, by CLOCK_MONOTONIC in nanoseconds.
    At(u64),
    /// When it is told.
    Held(Arc<Hold>),
}

/// Where a run waits that is ready, until somebody says when it begins.
#[derive(Debug, Default)]
pub struct Hold {
    held: Mutex<Held>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Held {
    is_ready: bool,
    at: Option<u64>,
}

impl Hold {
    /// Nothing that panics happens under this lock.
    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All is ready, and it waits.
    pub fn is_ready(&self) -> bool {
        self.lock().is_ready
    }

    /// When it was told to begin, by CLOCK_MONOTONIC in nanoseconds.
    pub fn at(&self) -> Option<u64> {
        self.lock().at
    }

    /// It begins at this time, by CLOCK_MONOTONIC in nanoseconds. False: it was told before.
    pub fn begin_at(&self, at: u64) -> bool {
        let mut held = self.lock();
        let is_first = held.at.is_none();
        held.at.get_or_insert(at);
        self.changed.notify_all();
        is_first
    }

    /// All is ready: waits until it is told when to begin. `None`: it is to end.
    pub fn wait(&self, stop: &AtomicBool) -> Option<u64> {
        let mut held = self.lock();
        held.is_ready = true;
        while held.at.is_none() && !stop.load(Ordering::Relaxed) {
            held = self.changed.wait_timeout(held, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
        held.at
    }
}

/// Opens when all workers stand before it, and not before a start that was given.
#[derive(Debug)]
pub struct Gate {
    workers: usize,
    begins: Begins,
    /// By how much the workers came later than that; 0: they were in time.
    late_ns: AtomicU64,
    state: Mutex<State>,
    opened: Condvar,
}

#[derive(Debug, Default)]
struct State {
    arrived: usize,
    /// CLOCK_MONOTONIC nanoseconds; `None` as long as the gate is closed.
    start: Option<u64>,
}

impl Default for Gate {
    fn default() -> Gate {
        Gate::new(1)
    }
}

impl Gate {
    /// A gate for so many workers.
    pub fn new(workers: usize) -> Gate {
        Gate::at(workers, Begins::AtOnce)
    }

    /// The same, which opens when it is said.
    pub fn at(workers: usize, begins: Begins) -> Gate {
        Gate { workers, begins, late_ns: AtomicU64::new(0), state: Mutex::default(), opened: Condvar::new() }
    }

    /// By how much the given start had passed when all stood before it, if it had: then nobody may send.
    pub fn late_ns(&self) -> Option<u64> {
        Some(self.late_ns.load(Ordering::Relaxed)).filter(|late| *late > 0)
    }

    /// Called by each worker once, when it is ready to send. Returns the start, the same for all and not in the
    /// future, when all have called it; or the present when `stop` is set before that. If they were too late for a given start,
    /// it sets `stop`.
    pub fn pass(&self, stop: &AtomicBool) -> u64 {
        if self.workers <= 1 {
            let Some(at) = self.given(stop) else { return clock::now() };
            self.look_if_late(at, stop);
            return await_start(at, stop);
        }
        let mut state = self.lock();
        state.arrived += 1;
        if state.arrived >= self.workers && state.start.is_none() {
            drop(state);
            let given = self.given(stop);
            state = self.lock();
            if state.start.is_none() {
                state.start = Some(given.unwrap_or_else(|| clock::now() + LEAD_NS));
                // Once for all: one that wakes late may send late, as all others do then.
                if let Some(at) = given {
                    self.look_if_late(at, stop);
                }
            }
            self.opened.notify_all();
        }
        let start = loop {
            if let Some(start) = state.start {
                break start;
            }
            if stop.load(Ordering::Relaxed) {
                // Whoever comes later finds the same start, however the run ends.
                break *state.start.insert(clock::now());
            }
            let waited = self.opened.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner);
            state = waited.0;
        };
        drop(state);
        if self.is_given(start) {
            return await_start(start, stop);
        }
        while clock::now() < start {
            std::hint::spin_loop();
        }
        start
    }

    /// The start that somebody gave; one that is to be told is waited for.
    fn given(&self, stop: &AtomicBool) -> Option<u64> {
        match &self.begins {
            Begins::AtOnce => None,
            Begins::At(at) => Some(*at),
            Begins::Held(hold) => hold.wait(stop),
        }
    }

    fn is_given(&self, start: u64) -> bool {
        match &self.begins {
            Begins::AtOnce => false,
            Begins::At(at) => *at == start,
            Begins::Held(hold) => hold.at() == Some(start),
        }
    }

    /// All stand before it. If its start is over already, nobody may send.
    fn look_if_late(&self, start: u64, stop: &AtomicBool) {
        if let Some(late) = clock::now().checked_sub(start).filter(|late| *late > 0) {
            self.late_ns.fetch_max(late, Ordering::Relaxed);
            stop.store(true, Ordering::Relaxed);
        }
    }

    /// Nothing that panics happens under this lock.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for a given start, and returns it; or the present, when `stop` is set before it.
pub fn await_start(start: u64, stop: &AtomicBool) -> u64 {
    loop {
        if stop.load(Ordering::Relaxed) {
            return clock::now();
        }
        let left = start.saturating_sub(clock::now());
        if left == 0 {
            return start;
        }
        match left.checked_sub(SPIN_NS) {
            Some(sleep) if sleep > 0 => std::thread::sleep(Duration::from_nanos(sleep).min(LOOK)),
            _ => std::hint::spin_loop(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_workers_get_one_start_that_lies_behind_them() {
        let (gate, stop) = (Arc::new(Gate::new(3)), Arc::new(AtomicBool::new(false)));
        let workers: Vec<_> = (0..3)
            .map(|n| {
                let (gate, stop) = (Arc::clone(&gate), Arc::clone(&stop));
                std::thread::spawn(move || {
                    std::thread::sleep(Duration::from_millis(n * 5));
                    let came = clock::now();
                    let start = gate.pass(&stop);
                    (came, start, clock::now())
                })
            })
            .collect();
        let passed: Vec<_> = workers.into_iter().map(|w| w.join().expect("a worker")).collect();
        for (came, start, left) in &passed {
            assert_eq!(*start, passed[0].1);
            assert!(came < start && start <= left, "{passed:?}");
        }
    }

    #[test]
    fn a_stop_opens_it_for_those_who_wait_in_vain() {
        let (gate, stop) = (Arc::new(Gate::new(2)), Arc::new(AtomicBool::new(false)));
        let waiting = {
            let (gate, stop) = (Arc::clone(&gate), Arc::clone(&stop));
            std::thread::spawn(move || gate.pass(&stop))
        };
        std::thread::sleep(Duration::from_millis(5));
        assert!(!waiting.is_finished(), "the other has not come yet");
        stop.store(true, Ordering::Relaxed);
        let start = waiting.join().expect("a worker");
        assert_eq!(gate.pass(&stop), start);
    }

    #[test]
    fn a_single_worker_waits_for_nobody() {
        let before = clock::now();
        let start = Gate::default().pass(&AtomicBool::new(false));
        assert!((before..=clock::now()).contains(&start));
    }

    #[test]
    fn a_run_that_is_held_is_ready_when_all_its_workers_are_and_begins_when_it_is_told() {
        for workers in [1, 3] {
            let (hold, stop) = (Arc::<Hold>::default(), AtomicBool::new(false));
            let gate = Gate::at(workers, Begins::Held(Arc::clone(&hold)));
            let starts: Vec<u64> = std::thread::scope(|scope| {
                let pass = || gate.pass(&stop);
                let mut passing: Vec<_> = (1..workers).map(|_| scope.spawn(pass)).collect();
                std::thread::sleep(Duration::from_millis(5));
                assert!(!hold.is_ready(), "one has not come yet");
                passing.push(scope.spawn(pass));
                while !hold.is_ready() {
                    std::thread::sleep(Duration::from_millis(1));
                }
                let at = clock::now() + 60_000_000_000;
                assert!(hold.begin_at(at) && !hold.begin_at(1) && hold.at() == Some(at));
                std::thread::sleep(Duration::from_millis(5));
                assert!(passing.iter().all(|passes| !passes.is_finished()), "it is not time yet");
                stop.store(true, Ordering::Relaxed);
                passing.into_iter().map(|passes| passes.join().expect("no panic")).collect()
            });
            assert!(gate.late_ns().is_none() && starts.len() == workers);
        }
        let (hold, stop) = (Arc::<Hold>::default(), AtomicBool::new(true));
        Gate::at(1, Begins::Held(Arc::clone(&hold))).pass(&stop);
        assert!(hold.is_ready() && hold.at().is_none(), "who is to end waits for no word");
    }

    #[test]
    fn a_given_start_is_kept_by_one_and_by_several_and_not_when_it_is_over() {
        // A start that a busy machine comes too late for is given later.
        let kept = |workers: usize, ahead: u64| {
            let at = clock::now() + ahead;
            let (gate, stop) = (Gate::at(workers, Begins::At(at)), AtomicBool::new(false));
            let starts: Vec<u64> = std::thread::scope(|scope| {
                let pass = || {
                    let start = gate.pass(&stop);
                    assert!(start < at || clock::now() >= at);
                    start
                };
                let passing: Vec<_> = (0..workers).map(|_| scope.spawn(pass)).collect();
                passing.into_iter().map(|passes| passes.join().expect("no panic")).collect()
            });
            let late = gate.late_ns().is_some();
            assert_eq!(stop.load(Ordering::Relaxed), late);
            assert!(late || starts.iter().all(|start| *start == at), "{starts:?} and not {at}");
            !late
        };
        for workers in [1, 3] {
            let times = [5_000_000, 50_000_000, 500_000_000, 5_000_000_000, 50_000_000_000];
            assert!(times.into_iter().any(|ahead| kept(workers, ahead)));
        }
        for workers in [1, 3] {
            let (gate, stop) = (Gate::at(workers, Begins::At(clock::now() - 1_000)), AtomicBool::new(false));
            std::thread::scope(|scope| {
                (0..workers).for_each(|_| drop(scope.spawn(|| gate.pass(&stop))));
            });
            assert!(gate.late_ns().is_some_and(|late| late >= 1_000) && stop.load(Ordering::Relaxed));
        }
    }

    #[test]
    fn a_stop_ends_the_waiting_for_a_start_that_is_far_away() {
        let (gate, stop) = (Gate::at(1, Begins::At(clock::now() + 600_000_000_000)), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let passed = scope.spawn(|| gate.pass(&stop));
            stop.store(true, Ordering::Relaxed);
            assert!(passed.join().expect("no panic") <= clock::now());
        });
        assert_eq!(gate.late_ns(), None);
    }
}
