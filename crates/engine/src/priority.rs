//! Before whom the sending thread goes, and how it lets the others live.
//!
//! A sender that waits for its core while others use it offers another load than was asked for: of 49,000 frames a second
//! beside ten busy processes a fifth was sent, as a real-time task all of it. But whoever needs its core all the time
//! starves the rest, and Linux takes the core from real-time tasks for up to 50 ms a second as soon as others have waited
//! for most of one (sched(7): the fair server, before Linux 6.12 real-time throttling): a gap, and then a burst, that no
//! device deserves. It does so on an idle machine, too, where only kernel threads wait for that core. So a real-time sender
//! always rests: it sleeps in the gaps between frames, or gives up its core for a tenth of a millisecond in every one, so
//! that nobody starves and the kernel has nothing to mend.
//!
//! Those rests make frames late that fall into them, so a run whose core nobody wants is more exact without: it becomes
//! a real-time task at the moment at which others are seen to have its core ([`Priority::AsNeeded`]). Trials, which are to be
//! held up not even once, are real-time tasks from the start.
#![allow(unsafe_code, reason = "sched_setscheduler, which rustix does not have")]

/// Of a sending thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Priority {
    /// Like everybody else.
    #[default]
    Ordinary,
    /// Like everybody else until others hold it up, from then on [`RealTime`](Priority::RealTime).
    AsNeeded,
    /// Before all ordinary tasks and senders that became real-time tasks on their way, where that is permitted, and behind the
    /// kernel's own real-time threads. The thread gives up its core for a moment in every millisecond.
    RealTime,
}

/// The least real-time priority but one, which an engine in the kernel keeps for the thread that seldom sleeps. Threads that
/// serve interrupts have 50.
const LOW: i32 = 2;

/// Of a trial's sender, which goes before those that only catch up later what a moment took from them: held up once, the trial
/// is done again. An engine in the kernel has one less for the thread that seldom sleeps, as above.
const OF_TRIALS: i32 = LOW + 2;

/// What a sending thread had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, PartialOrd, Ord)]
pub enum Had {
    /// What its process had.
    #[default]
    Ordinary,
    /// Of the ordinary tasks it was among the first: this nice value, the best that was permitted.
    Nice(i32),
    /// It went before all ordinary tasks.
    RealTime,
}

/// In the words of results.
impl std::fmt::Display for Had {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Had::Ordinary => f.write_str("ordinary"),
            Had::Nice(value) => write!(f, "nice {value}"),
            Had::RealTime => f.write_str("real-time"),
        }
    }
}

impl Priority {
    /// Gives it to the calling thread, for good. Says what the thread has then.
    pub fn take(self) -> Had {
        match self {
            Priority::RealTime => first(OF_TRIALS),
            // Whoever started us may have made it one.
            Priority::Ordinary | Priority::AsNeeded => had(),
        }
    }

    /// Others hold up the calling thread. Says what it has from now on, if that changed.
    pub fn needed(self) -> Option<Had> {
        (self == Priority::AsNeeded && !is_real_time())
            .then(|| first(LOW))
            .filter(|had| *had != Had::Ordinary)
    }

    /// The same for a thread that seldom sleeps, of an engine in the kernel.
    pub fn needed_there(self) -> Option<Had> {
        (self == Priority::AsNeeded && !is_real_time())
            .then(|| first(LOW - 1))
            .filter(|had| *had != Had::Ordinary)
    }
}

/// Makes the calling thread one like everybody else's again, where it is a real-time task.
pub fn give_up() {
    let parameters = libc::sched_param { sched_priority: 0 };
    // Lowering oneself is always permitted.
    // SAFETY: a pointer to an initialised value that outlives the call; 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const parameters) };
}

/// What the calling thread has.
fn had() -> Had {
    if is_real_time() { Had::RealTime } else { Had::Ordinary }
}

/// Puts the calling thread before the others, as far as that is permitted: by a real-time priority (CAP_SYS_NICE, or
/// RLIMIT_RTPRIO), else by the nicest value (RLIMIT_NICE).
fn first(priority: i32) -> Had {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: a pointer to an initialised value that outlives the call; 0 is the calling thread.
    let real_time = unsafe {
        // Whoever started us may have given us more.
        is_real_time() || libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) == 0
    };
    if real_time {
        return Had::RealTime;
    }
    let Ok(before) = rustix::process::getpriority_process(None) else { return Had::Ordinary };
    // getrlimit(2): RLIMIT_NICE is 20 less the nice value.
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nice).current.unwrap_or(40);
    let allowed = 20 - i32::try_from(limit.min(40)).unwrap_or(40);
    for nice in [-20, allowed] {
        if nice < before && rustix::process::setpriority_process(None, nice).is_ok() {
            return Had::Nice(nice);
        }
    }
    Had::Ordinary
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
            assert_eq!((Priority::Ordinary.take(), Priority::Ordinary.needed()), (Had::Ordinary, None));
            assert_eq!(Priority::AsNeeded.take(), Had::Ordinary);
            assert_eq!(policy(), before);
            assert!(!is_real_time());
            assert_eq!(Priority::AsNeeded.needed(), Some(Had::RealTime), "tests run as root");
            assert!(is_real_time());
            assert_eq!((Priority::AsNeeded.needed(), Priority::RealTime.take()), (None, Had::RealTime));
            assert_eq!(policy(), libc::SCHED_FIFO);
            give_up();
            assert_eq!((policy(), is_real_time()), (libc::SCHED_OTHER, false));
            // A trial goes before it.
            assert_eq!(Priority::RealTime.take(), Had::RealTime);
            let mut parameters = libc::sched_param { sched_priority: 0 };
            // SAFETY: a pointer to an initialised value that outlives the call; 0 is the calling thread.
            unsafe { libc::sched_getparam(0, &raw mut parameters) };
            assert!(parameters.sched_priority > LOW);
        })
        .join()
        .expect("a thread");
        assert_eq!(policy(), before);
    }
}
