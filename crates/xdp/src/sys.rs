//! The only module with unsafe code: what signals, priorities and namespaces need that no safe wrapper has.
#![allow(unsafe_code, reason = "signals to threads, real-time priorities and unshare have no safe wrapper")]

use rustix::io::Errno;
use rustix::thread::UnshareFlags;
use std::fs::File;
use std::io;
use std::os::unix::thread::JoinHandleExt;
use std::thread::JoinHandle;

/// Makes SIGURG, which nothing else uses, end system calls of a thread that it is sent to, and do nothing besides.
///
/// # Errors
/// What `sigaction` answers.
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

/// Puts the calling thread below its own real-time priority, if it has one: it seldom sleeps, and whoever is to end it
/// must get a core. Says whether the thread is a real-time task.
pub fn yield_priority() -> bool {
    let mut param = libc::sched_param { sched_priority: 0 };
    // SAFETY: no pointers but the one to `param`, which is initialised and outlives both calls; 0 is this thread.
    unsafe {
        let policy = libc::sched_getscheduler(0);
        let real_time = [libc::SCHED_FIFO, libc::SCHED_RR].contains(&(policy & !libc::SCHED_RESET_ON_FORK));
        if !real_time || libc::sched_getparam(0, &raw mut param) != 0 {
            return false;
        }
        param.sched_priority -= 1;
        let below = if param.sched_priority > 0 { policy } else { libc::SCHED_OTHER };
        // Lowering oneself is always permitted.
        libc::sched_setscheduler(0, below, &raw const param);
        below != libc::SCHED_OTHER
    }
}

/// A new network namespace, which nobody is in: it goes when its last descriptor is closed.
///
/// # Errors
/// EPERM without CAP_SYS_ADMIN; ENOSPC.
pub fn new_namespace() -> Result<File, Errno> {
    let make = || {
        // SAFETY: unsafe only with FILES, since descriptors would then differ between threads.
        unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }?;
        File::open("/proc/thread-self/ns/net")
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
    };
    // A thread that left its namespace does not come back: one goes for us, and ends.
    std::thread::scope(|scope| scope.spawn(make).join().unwrap_or(Err(Errno::FAULT)))
}
