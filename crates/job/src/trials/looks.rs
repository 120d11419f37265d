//! Looks at a trial's meter every few milliseconds, where the device shares this machine: what `trial::parts` needs to tell what
//! was lost while this machine was held up from what the device lost.

use super::softirq::PacketThreads;
use engine::{Had, Priority};
use meter::Meter;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use trial::Look;

/// How often. A queue of a lab's device holds as long, unless another is asked for.
const EVERY: Duration = Duration::from_millis(5);
/// Trials are not longer in labs; of one that is, the rest is judged as a whole.
const MOST: usize = 200_000;

/// Looks at one meter.
#[derive(Debug, Default)]
pub struct Looks {
    seen: Mutex<Vec<Look>>,
}

impl Looks {
    /// Looks until `over`, at the streams of these numbers. `threads`: who moves frames on this machine. `priority`: of the sender;
    /// who looks as a real-time task is late only where a processor was taken from this machine. `apart` from these CPUs, on which
    /// senders are.
    pub fn observe(
        &self,
        meter: &Meter,
        own: Range<u32>,
        threads: &PacketThreads,
        (priority, apart): (Priority, &[usize]),
        over: &AtomicBool,
    ) {
        let Some(threads) = threads.open() else { return };
        keep_apart(apart);
        let prompt = priority == Priority::RealTime && priority.take() == Had::RealTime;
        let every = super::nanos(EVERY);
        let mut looks = Vec::new();
        let mut due = engine::clock::now();
        while !over.load(Relaxed) && looks.len() < MOST {
            let now = engine::clock::now();
            let Some(waited_ns) = threads.waited_ns() else { return };
            let mut look = Look { at_ns: now, waited_ns, ..Look::default() };
            look.late_ns = if prompt { now.saturating_sub(due) } else { 0 };
            for stream in own.clone().filter_map(|number| meter.stream_in_short(number)) {
                look.reached += stream.highest_sequence + 1;
                look.missing += stream.lost;
            }
            looks.push(look);
            due = now + every;
            std::thread::sleep(EVERY);
        }
        *self.seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = looks;
    }

    /// What was seen.
    pub fn take(&self) -> Vec<Look> {
        std::mem::take(&mut *self.seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }
}

/// Leaves these CPUs to others, where there are any besides.
fn keep_apart(from: &[usize]) {
    let Some(allowed) = crate::environment::allowed_cpus() else { return };
    let mut set = rustix::thread::CpuSet::new();
    let mut any = false;
    for cpu in allowed.into_iter().filter(|cpu| !from.contains(cpu) && *cpu < rustix::thread::CpuSet::MAX_CPU)
    {
        set.set(cpu);
        any = true;
    }
    if any {
        // Where it cannot be, looks are late, and less can be said.
        let _ = rustix::thread::sched_setaffinity(None, &set);
    }
}
