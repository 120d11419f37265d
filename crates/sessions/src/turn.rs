//! Before whom the sending thread goes: other programs that have its core make connections late, as they do frames
//! (`engine::priority` has the figures, and why a real-time task rests).

use engine::{Had, Priority, clock};
use std::time::Duration;

/// Others that had the core for so long between two looks held up what was due.
const NOTABLE_NS: u64 = 1_000_000;
/// Between two looks.
const LOOK_NS: u64 = 10_000_000;
/// A real-time task gives up its core for `REST` in every so long.
const WORK_NS: u64 = 1_000_000;
const REST: Duration = Duration::from_micros(100);

/// Of the thread that made it.
#[derive(Debug)]
pub(crate) struct Turn {
    priority: Priority,
    had: Had,
    /// For how long the thread had waited for a core at the last look.
    waited_ns: Option<u64>,
    next_look_ns: u64,
    next_rest_ns: u64,
}

impl Turn {
    pub(crate) fn take(priority: Priority) -> Turn {
        let had = priority.take();
        Turn { priority, had, waited_ns: clock::thread_waited(), next_look_ns: 0, next_rest_ns: 0 }
    }

    /// Looks whether others hold up the thread, and rests where it goes before them.
    pub(crate) fn look(&mut self, now_ns: u64) {
        if now_ns >= self.next_look_ns {
            self.next_look_ns = now_ns + LOOK_NS;
            let waited_ns = clock::thread_waited();
            let before = std::mem::replace(&mut self.waited_ns, waited_ns);
            let held_up = waited_ns.zip(before).is_some_and(|(now, before)| now - before > NOTABLE_NS);
            if held_up && let Some(had) = self.priority.needed_there() {
                self.had = self.had.max(had);
            }
        }
        if self.had == Had::RealTime && now_ns >= self.next_rest_ns {
            std::thread::sleep(REST);
            self.next_rest_ns = clock::now() + WORK_NS;
        }
    }

    /// What the thread had at the most.
    pub(crate) fn had(&self) -> Had {
        self.had
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::sync::atomic::AtomicBool;
    use std::sync::atomic::Ordering::Relaxed;

    fn stay_on(core: usize) {
        let mut set = rustix::thread::CpuSet::new();
        set.set(core);
        rustix::thread::sched_setaffinity(None, &set).expect("pinned");
    }

    /// Of a thread that shares its core with two that never sleep.
    fn had(priority: Priority) -> Had {
        let (core, busy) = (rustix::thread::sched_getcpu(), AtomicBool::new(true));
        let others = || {
            stay_on(core);
            while busy.load(Relaxed) {
                std::hint::spin_loop();
            }
        };
        let own = || {
            stay_on(core);
            let mut turn = Turn::take(priority);
            let begun = clock::now();
            while clock::now() < begun + 200_000_000 {
                turn.look(clock::now());
            }
            turn.had()
        };
        std::thread::scope(|scope| {
            scope.spawn(others);
            scope.spawn(others);
            let own = scope.spawn(own).join();
            busy.store(false, Relaxed);
            own.expect("no panic")
        })
    }

    #[test]
    fn who_is_held_up_goes_first_and_who_is_not_to_does_not() {
        assert_eq!(had(Priority::Ordinary), Had::Ordinary);
        assert_eq!(had(Priority::AsNeeded), Had::RealTime, "tests run as root");
    }
}
