//! The only module with unsafe code: what signals and priorities need that no safe wrapper has.
#![allow(unsafe_code, reason = "signals to threads and real-time priorities have no safe wrapper")]

use std::io;
use std::os::unix::thread::JoinHandleExt;
use std::thread::JoinHandle;

/// Makes SIGURG, which nothing else uses, end system calls of a thread that it is sent to, and do nothing besides.
pub fn prepare_interrupts() -> io::Result<()> {
    use std::sync::{Arc, OnceLock, atomic::AtomicBool};
    static ONCE: OnceLock<Result<signal_hook::SigId, i32>> = OnceLock::new();
    let register = || {
        signal_hook::flag::register(libc::SIGURG, Arc::new(AtomicBool::new(false)))
            .map_err(|error| error.raw_os_error().unwrap_or(libc::EINVAL))
    };
    ONCE.get_or_init(register).map(|_| ()).map_err(io::Error::from_raw_os_error)
}

/// Ends the system call that a thread is in, after [`prepare_interrupts`].
pub fn interrupt<T>(thread: &JoinHandle<T>) {
    // SAFETY: a handle that was not joined yet keeps the thread's identifier valid, and the signal has a handler.
    unsafe {
        libc::pthread_kill(thread.as_pthread_t(), libc::SIGURG);
    }
}

/// Puts the calling thread below its own real-time priority, if it has one: it never sleeps, and whoever is to end it
/// must get a core.
pub fn yield_priority() {
    let mut param = libc::sched_param { sched_priority: 0 };
    // SAFETY: no pointers but the one to `param`, which is initialised and outlives both calls; 0 is this thread.
    unsafe {
        let policy = libc::sched_getscheduler(0);
        let real_time = [libc::SCHED_FIFO, libc::SCHED_RR].contains(&(policy & !libc::SCHED_RESET_ON_FORK));
        if !real_time || libc::sched_getparam(0, &raw mut param) != 0 {
            return;
        }
        param.sched_priority -= 1;
        let below = if param.sched_priority > 0 { policy } else { libc::SCHED_OTHER };
        // Lowering oneself is always permitted.
        libc::sched_setscheduler(0, below, &raw const param);
    }
}
