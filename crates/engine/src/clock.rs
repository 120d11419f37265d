//! Reading the clock, and waiting for a time.

use rustix::thread::ClockId;
use rustix::time::{ClockId as Readable, Timespec, clock_gettime};
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::Control;

/// What frames may be stamped by. 0, where a kernel lacks the clock, says that there is no stamp; each that runs XDP has CLOCK_TAI.
pub use clocks::Clock;
/// What all here is timed by.
pub use clocks::monotonic as now;

/// CPU time of the calling thread, in nanoseconds.
pub fn thread_cpu() -> u64 {
    nanoseconds(clock_gettime(Readable::ThreadCPUTime))
}

/// The kernel's number of the calling thread, as in `/proc/self/task`.
pub fn thread_number() -> u64 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs().into()
}

fn nanoseconds(time: Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Sleeps no longer than this at a time, to notice a request to stop.
const LONGEST_SLEEP: u64 = 50_000_000;
/// A sleep shorter than this is not worth its two context switches.
const SHORTEST_SLEEP: u64 = 8_000;
/// Waits shorter than this are spun through: whoever sends 10,000 frames/s wants them at their times (`make bench`:
/// with sleeps 99 of 100 gaps were within 46 us there, without within 11), whoever sends fewer wants the core back.
const WORTH_SLEEPING: u64 = 105_000;

/// Bounds of the margin, and its steps: see [`Waiter::learn`].
const LEAST_MARGIN: u64 = 5_000;
const MOST_MARGIN: u64 = 150_000;
const LATER: u64 = 4_000;
const SOONER: u64 = 125;

/// Whoever rests gives up its core for so long, after so much time without a sleep. A thirteenth is more than Linux keeps
/// for ordinary tasks (50 ms a second), and late frames are few: see [`crate::priority`]. It does so earlier in a gap that
/// is long enough, where no frame is late for it.
const REST: u64 = 80_000;
const REST_EVERY: u64 = 1_000_000;
const REST_EARLY: u64 = 500_000;

/// A sleep by which the machine is tried.
const TRIAL_SLEEP: u64 = 50_000;

/// Waits for times: sleeps most of the way and spins the rest, where "the rest" follows how late this machine's
/// timers wake us. Spinning alone would be as exact and cost a whole core; sleeping alone wakes some 50 us late.
#[derive(Debug)]
pub struct Waiter {
    margin: u64,
    spin: bool,
    rests: bool,
    /// When it last slept.
    awake_since: u64,
}

impl Waiter {
    /// Prepares the calling thread: without this its timers may be up to 50 us late on purpose (prctl(2),
    /// PR_SET_TIMERSLACK). With `spin` it never sleeps, but for what `rests` asks for.
    pub fn for_this_thread(spin: bool, rests: bool) -> Waiter {
        let one = std::num::NonZeroU64::MIN;
        let _ = rustix::thread::set_current_timer_slack(Some(one));
        Waiter { margin: 60_000, spin, rests, awake_since: now() }
    }

    /// Returns at `target` (CLOCK_MONOTONIC), or when `control` says stop or another course than `version`, or earlier:
    /// the caller looks at the clock.
    /// Never yields the core while spinning: sched_yield() would hand it to any other task for a whole slice.
    pub fn wait(&mut self, target: u64, control: &Control, version: u64) {
        let mut slept = false;
        loop {
            let at = now();
            let Some(left) = target.checked_sub(at).filter(|&left| left > 0) else { break };
            if control.stop.load(Ordering::Relaxed) || control.throttle.version() != version {
                return;
            }
            let least = if slept { 0 } else { WORTH_SLEEPING };
            if self.spin || left < least.max(self.margin + SHORTEST_SLEEP) {
                if self.rests && left > REST + self.margin && at.saturating_sub(self.awake_since) > REST_EARLY
                {
                    sleep_until(at + REST);
                    self.awake_since = now();
                } else {
                    self.rest();
                }
                std::hint::spin_loop();
                continue;
            }
            let wake = (target - self.margin).min(at + LONGEST_SLEEP);
            if sleep_until(wake) {
                slept = true;
                self.awake_since = now();
                self.learn(self.awake_since.saturating_sub(wake));
            }
        }
        if !slept {
            // A margin that leaves no room to sleep would never be tried again.
            self.margin = self.margin.saturating_sub(SOONER).max(LEAST_MARGIN);
        }
    }

    /// Gives up the core for a moment, if that is due. Who never waits calls it now and then.
    pub fn rest(&mut self) {
        if self.rests {
            let at = now();
            if at.saturating_sub(self.awake_since) > REST_EVERY {
                sleep_until(at + REST);
                self.awake_since = now();
            }
        }
    }

    /// A sleep ended `over` late. The margin goes up by one step when that was more than it, else down by a 32nd of
    /// it: it settles where about 97 of 100 sleeps end in time, and a single very late one does not move it far.
    fn learn(&mut self, over: u64) {
        self.margin = if over > self.margin {
            (self.margin + LATER).min(MOST_MARGIN)
        } else {
            self.margin.saturating_sub(SOONER).max(LEAST_MARGIN)
        };
    }
}

/// How late this machine wakes the calling thread: of so many short sleeps, or as many as there is time for.
pub fn wake_ups(tries: usize, time: Duration) -> Vec<u64> {
    let _ = rustix::thread::set_current_timer_slack(Some(std::num::NonZeroU64::MIN));
    let end = now() + time.as_nanos() as u64;
    let mut late = Vec::with_capacity(tries);
    while late.len() < tries && now() < end {
        let wake = now() + TRIAL_SLEEP;
        if sleep_until(wake) {
            late.push(now().saturating_sub(wake));
        }
    }
    late
}

/// False when it was woken before.
pub fn sleep_until(wake: u64) -> bool {
    let until = Timespec { tv_sec: (wake / 1_000_000_000) as i64, tv_nsec: (wake % 1_000_000_000) as i64 };
    rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &until).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_rests_gives_up_its_core_however_short_its_waits() {
        let share = |rests| {
            let mut waiter = Waiter::for_this_thread(true, rests);
            let (start, cpu) = (now(), thread_cpu());
            for frame in 1..=2_000 {
                waiter.wait(start + frame * 20_000, &Control::default(), 0);
            }
            (thread_cpu() - cpu) as f64 / (now() - start) as f64
        };
        // Another task may have the core for any part of the time, but not for less than is given up.
        assert!(share(true) < 0.94, "it kept its core");
    }
}
