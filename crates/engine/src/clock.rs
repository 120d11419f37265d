//! Reading the clock, and waiting for a time.

use rustix::thread::ClockId;
use rustix::time::{ClockId as Readable, Timespec, clock_gettime};
use std::sync::atomic::Ordering;

use crate::Control;

/// CLOCK_MONOTONIC in nanoseconds. About 30 ns on a virtual machine, 15 elsewhere: once a batch, not once a frame.
pub fn now() -> u64 {
    nanoseconds(clock_gettime(Readable::Monotonic))
}

/// CPU time of the calling thread, in nanoseconds.
pub fn thread_cpu() -> u64 {
    nanoseconds(clock_gettime(Readable::ThreadCPUTime))
}

fn nanoseconds(time: Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Sleeps no longer than this at a time, to notice a request to stop.
const LONGEST_SLEEP: u64 = 50_000_000;
/// A sleep shorter than this is not worth its two context switches.
const SHORTEST_SLEEP: u64 = 8_000;

/// Waits for times: sleeps most of the way and spins the rest, where "the rest" follows how late this machine's
/// timers wake us. Spinning alone would be as exact and cost a whole core; sleeping alone wakes some 50 us late.
#[derive(Debug)]
pub struct Waiter {
    margin: u64,
}

impl Default for Waiter {
    fn default() -> Self {
        Waiter { margin: 60_000 }
    }
}

impl Waiter {
    /// Prepares the calling thread: without this its timers may be up to 50 us late on purpose (prctl(2),
    /// PR_SET_TIMERSLACK).
    pub fn for_this_thread() -> Waiter {
        let one = std::num::NonZeroU64::MIN;
        let _ = rustix::thread::set_current_timer_slack(Some(one));
        Waiter::default()
    }

    /// Returns at `target` (CLOCK_MONOTONIC), or when `control` says stop, or earlier: the caller looks at the clock.
    /// Never yields the core while spinning: sched_yield() would hand it to any other task for a whole slice.
    pub fn wait(&mut self, target: u64, control: &Control) {
        loop {
            let at = now();
            let Some(left) = target.checked_sub(at).filter(|&left| left > 0) else { return };
            if control.stop.load(Ordering::Relaxed) {
                return;
            }
            if left < self.margin + SHORTEST_SLEEP {
                std::hint::spin_loop();
                continue;
            }
            let wake = (target - self.margin).min(at + LONGEST_SLEEP);
            let until =
                Timespec { tv_sec: (wake / 1_000_000_000) as i64, tv_nsec: (wake % 1_000_000_000) as i64 };
            if rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &until).is_ok() {
                self.learn(now().saturating_sub(wake));
            }
        }
    }

    /// A sleep ended `over` late. A late one is believed at once, within reason; the margin then shrinks slowly.
    fn learn(&mut self, over: u64) {
        let wanted = (over + over / 4 + 2_000).min(300_000);
        self.margin = if wanted > self.margin {
            wanted.min(self.margin * 2)
        } else {
            self.margin - (self.margin - wanted) / 32
        };
    }
}
