//! Before whom the sending thread goes, and how it lets the others live.
//!
//! A sender that waits for its core while others use it offers another load than was asked for: of 49,000 frames a second
//! beside ten busy processes a fifth was sent, as a real-time task all of it. But whoever needs its core all the time
//! starves the rest, and Linux takes the core from real-time tasks for up to 50 ms a second as soon as others have waited
//! for most of one (sched(7): the fair server, before Linux 6.12 real-time throttling): a gap, and then a burst, that no
//! device deserves. It does so on an idle machine, too, where only kernel threads wait for that core. So a real-time sender
//! always rests: it sleeps in the gaps between frames, or gives up its core for a tenth of a millisecond in every one, so
//! that nobody starves and the kernel has nothing to mend.
#![allow(unsafe_code, reason = "sched_setscheduler, which rustix does not have")]

/// Of a sending thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Priority {
    /// Like everybody else.
    #[default]
    Ordinary,
    /// Before all ordinary tasks, where that is permitted, and behind the kernel's own real-time threads. The thread gives up
    /// its core for a moment in every millisecond.
    RealTime,
}

/// The least real-time priority but one, which an engine in the kernel keeps for the thread that seldom sleeps. Threads that
/// serve interrupts have 50.
const LOW: i32 = 2;

impl Priority {
    /// Gives it to the calling thread, for good. Says whether the thread has it: who may not, sends like everybody else.
    pub fn take(self) -> bool {
        if self == Priority::Ordinary {
            return true;
        }
        let parameters = libc::sched_param { sched_priority: LOW };
        // SAFETY: a pointer to an initialised value that outlives the call; 0 is the calling thread.
        unsafe {
            // Whoever started us may have given us more.
            is_real_time() || libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) == 0
        }
    }
}

/// Is the calling thread a real-time task, whoever made it one? Then it has to rest.
pub fn is_real_time() -> bool {
    // SAFETY: no pointers; 0 is the calling thread.
    let policy = unsafe { libc::sched_getscheduler(0) };
    [libc::SCHED_FIFO, libc::SCHED_RR].contains(&(policy & !libc::SCHED_RESET_ON_FORK))
}

/// Is that thread, of whatever process, a real-time task? What is gone is none.
pub fn is_real_time_thread(id: u32) -> bool {
    let Ok(id) = libc::pid_t::try_from(id) else { return false };
    // SAFETY: no pointers; a thread that is not there is an error, which is no policy.
    let policy = unsafe { libc::sched_getscheduler(id) };
    policy >= 0
        && [libc::SCHED_FIFO, libc::SCHED_RR, libc::SCHED_DEADLINE]
            .contains(&(policy & !libc::SCHED_RESET_ON_FORK))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_takes_it_and_its_maker_stays_as_it_was() {
        // SAFETY: no pointers.
        let policy = || unsafe { libc::sched_getscheduler(0) };
        let before = policy();
        std::thread::spawn(move || {
            assert!(Priority::Ordinary.take());
            assert_eq!(policy(), before);
            assert!(!is_real_time());
            assert!(Priority::RealTime.take(), "tests run as root");
            assert!(is_real_time());
            assert_eq!(policy(), libc::SCHED_FIFO);
        })
        .join()
        .expect("a thread");
        assert_eq!(policy(), before);
    }
}
