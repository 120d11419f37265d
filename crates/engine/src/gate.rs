//! Where the workers of a run wait for each other, so that all count their times from the same moment.

use crate::clock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// From the arrival of the last worker to the start: time for the others to wake, so that none begins late.
const LEAD_NS: u64 = 200_000;

/// A worker that waits looks this often whether the run was stopped.
const LOOK: Duration = Duration::from_millis(20);

/// Opens when all workers stand before it.
#[derive(Debug)]
pub struct Gate {
    workers: usize,
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
        Gate { workers, state: Mutex::default(), opened: Condvar::new() }
    }

    /// Called by each worker once, when it is ready to send. Returns the start, the same for all and not in the
    /// future, when all have called it; or the present when `stop` is set before that.
    pub fn pass(&self, stop: &AtomicBool) -> u64 {
        if self.workers <= 1 {
            return clock::now();
        }
        let mut state = self.lock();
        state.arrived += 1;
        if state.arrived >= self.workers && state.start.is_none() {
            state.start = Some(clock::now() + LEAD_NS);
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
        while clock::now() < start {
            std::hint::spin_loop();
        }
        start
    }

    /// Nothing that panics happens under this lock.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

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
}
