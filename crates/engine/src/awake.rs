//! Keeps the cores of trials' senders from being halted in their rests.
//!
//! A sender rests in each millisecond so that nobody starves. On a core with nothing else to do, a virtual machine is then
//! halted, and its host gives the core back when it likes: up to some milliseconds later. A thread that wants the core only
//! when nobody else does (SCHED_IDLE, sched(7)) keeps it going, and anybody takes it away at once.
#![allow(unsafe_code, reason = "sched_setscheduler, which rustix does not have")]

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

/// Cores that are kept from being halted as long as it lives.
#[derive(Debug, Default)]
pub struct Awake {
    over: Arc<AtomicBool>,
}

impl Awake {
    /// Keeps them awake, by a thread for each at the lowest priority.
    pub fn keep(cpus: &[usize]) -> Awake {
        let over = Arc::new(AtomicBool::new(false));
        let mut cpus = cpus.to_vec();
        cpus.sort_unstable();
        cpus.dedup();
        for cpu in cpus {
            let over = Arc::clone(&over);
            let thread = std::thread::Builder::new().name("awake".to_owned());
            // Trials do without it where there is no thread to be had.
            let _ = thread.spawn(move || {
                let may = rest_of(cpu);
                while may && !over.load(Relaxed) {
                    for _ in 0..100 {
                        std::hint::spin_loop();
                    }
                }
            });
        }
        Awake { over }
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        // Not waited for: where a core is busy, it takes long until they see it.
        self.over.store(true, Relaxed);
    }
}

/// Gives the calling thread what nobody else wants of a core; false where that cannot be, and it must not spin.
fn rest_of(cpu: usize) -> bool {
    let mut set = rustix::thread::CpuSet::new();
    if cpu >= rustix::thread::CpuSet::MAX_CPU {
        return false;
    }
    set.set(cpu);
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: a pointer to an initialised value that outlives the call; 0 is the calling thread.
    let idle = unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) == 0 };
    idle && rustix::thread::sched_setaffinity(None, &set).is_ok()
}
