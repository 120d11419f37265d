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

/// For how long the calling thread was ready to run and others had its CPU, in nanoseconds, as the kernel counts it
/// (`/proc/thread-self/schedstat`, its second number). `None` where the kernel does not.
pub fn thread_waited() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().nth(1)?.parse().ok()
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
/// Of one that goes before others that want its core, which it is to leave to them.
const MOST_MARGIN_THERE: u64 = 60_000;
const LATER: u64 = 4_000;
const SOONER: u64 = 125;

/// Whoever rests gives up its core for so long, after so much time without a sleep. A thirteenth is more than Linux keeps
/// for ordinary tasks (50 ms a second), and late frames are few: see [`crate::priority`]. It does so earlier in a gap that
/// is long enough, where no frame is late for it.
const REST: u64 = 80_000;
const REST_EVERY: u64 = 1_000_000;
const REST_EARLY: u64 = 500_000;
/// One that rests because others want its core does so, too, after it has only waited for so long: it has the time, and they have none.
const REST_AFTER_WAITING: u64 = 400_000;

/// Between two looks at the clock of a thread that spins lies less than this; else its core was taken away, and the time was
/// not spent waiting.
const SPINNING: u64 = 5_000;
/// A core that was taken away for so long was wanted by others, and not for an interrupt.
const TAKEN: u64 = 300_000;
/// For so long after that it is contended: a thread that is not before the others spins there as little as it can, because the
/// scheduler takes the core first from who uses it most.
const CONTENDED: u64 = 100_000_000;
/// Waits are slept through on a contended core if they are longer than this.
const WORTH_SLEEPING_THERE: u64 = 20_000;

/// A sleep by which the machine is tried.
const TRIAL_SLEEP: u64 = 50_000;

/// Waits for times: sleeps most of the way and spins the rest, where "the rest" follows how late this machine's
/// timers wake us. Spinning alone would be as exact and cost a whole core; sleeping alone wakes some 50 us late.
///
/// Where others want the core, too, a thread that spins pays for it: the scheduler lets those go first who used less. So an
/// ordinary thread whose core was taken away sleeps for a while wherever it can, and what its late wake-ups cost is not
/// made up for by spinning more.
#[derive(Debug)]
pub struct Waiter {
    margin: u64,
    spin: bool,
    rests: bool,
    /// When it last slept.
    awake_since: u64,
    /// Until when its core is one that others want.
    contended_until: u64,
    /// It became a real-time task because others want its core.
    goes_first: bool,
    /// How often its core was taken away.
    taken: u64,
    spun_ns: u64,
    /// What that was when it last slept.
    spun_before: u64,
}

impl Waiter {
    /// Prepares the calling thread: without this its timers may be up to 50 us late on purpose (prctl(2),
    /// PR_SET_TIMERSLACK). With `spin` it never sleeps, but for what `rests` asks for.
    pub fn for_this_thread(spin: bool, rests: bool) -> Waiter {
        let one = std::num::NonZeroU64::MIN;
        let _ = rustix::thread::set_current_timer_slack(Some(one));
        let awake_since = now();
        Waiter {
            margin: 60_000,
            spin,
            rests,
            awake_since,
            contended_until: 0,
            goes_first: false,
            taken: 0,
            spun_ns: 0,
            spun_before: 0,
        }
    }

    /// It has slept.
    fn awakes(&mut self) {
        (self.awake_since, self.spun_before) = (now(), self.spun_ns);
    }

    /// The thread has become a real-time task, because others want its core: it rests from now on.
    pub fn goes_first_now(&mut self) {
        (self.rests, self.goes_first) = (true, true);
    }

    /// The core was taken away for so long until `at`.
    pub fn held_up(&mut self, at: u64, for_ns: u64) {
        if for_ns > TAKEN {
            self.taken += 1;
            self.contended_until = at + CONTENDED;
        }
    }

    /// How often its core was taken away, as far as it noticed.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// For how long it kept its core busy with waiting.
    pub fn spun_ns(&self) -> u64 {
        self.spun_ns
    }

    /// How long before a time a sleep is to end, and how long a wait is to be for that: most exact, or, on a core that
    /// others want, such that it uses little of it. Who goes before those is woken at once: a core that is never idle is no
    /// slower to wake a thread than its timer.
    fn ways(&self, at: u64) -> (u64, u64) {
        match (self.goes_first, at < self.contended_until && !self.rests) {
            (true, _) => (self.margin.min(MOST_MARGIN_THERE), WORTH_SLEEPING_THERE),
            (false, true) => (LEAST_MARGIN, WORTH_SLEEPING_THERE),
            (false, false) => (self.margin, WORTH_SLEEPING),
        }
    }

    /// Returns at `target` (CLOCK_MONOTONIC), or when `control` says stop or another course than `version`, or earlier:
    /// the caller looks at the clock.
    /// Never yields the core while spinning: sched_yield() would hand it to any other task for a whole slice.
    pub fn wait(&mut self, target: u64, control: &Control, version: u64) {
        let (mut slept, mut before) = (false, None);
        loop {
            let at = now();
            if let Some(passed) = before.map(|before| at.saturating_sub(before)) {
                if passed < SPINNING {
                    self.spun_ns += passed;
                } else {
                    self.held_up(at, passed);
                }
            }
            before = None;
            let Some(left) = target.checked_sub(at).filter(|&left| left > 0) else { break };
            if control.stop.load(Ordering::Relaxed) || control.throttle.version() != version {
                return;
            }
            let (margin, worth) = self.ways(at);
            let least = if slept { 0 } else { worth };
            if self.spin || left < least.max(margin + SHORTEST_SLEEP) {
                if self.rests && left > REST + self.margin && at.saturating_sub(self.awake_since) > REST_EARLY
                {
                    sleep_until(at + REST);
                    self.awakes();
                } else if !self.rest() {
                    before = Some(at);
                }
                std::hint::spin_loop();
                continue;
            }
            let wake = (target - margin).min(at + LONGEST_SLEEP);
            if sleep_until(wake) {
                slept = true;
                self.awakes();
                let over = self.awake_since.saturating_sub(wake);
                self.held_up(self.awake_since, over);
                // What others did with the core says nothing of how late timers are.
                if over <= TAKEN {
                    self.learn(over);
                }
            }
        }
        if !slept {
            // A margin that leaves no room to sleep would never be tried again.
            self.margin = self.margin.saturating_sub(SOONER).max(LEAST_MARGIN);
        }
    }

    /// Gives up the core for a moment, if that is due, and says whether it was. Who never waits calls it now and then.
    pub fn rest(&mut self) -> bool {
        if !self.rests {
            return false;
        }
        let at = now();
        let only_waited = self.goes_first && self.spun_ns - self.spun_before > REST_AFTER_WAITING;
        let due = only_waited || at.saturating_sub(self.awake_since) > REST_EVERY;
        if due {
            sleep_until(at + REST);
            self.awakes();
        }
        due
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
    fn on_a_core_that_others_want_it_sleeps_and_does_not_spin_more() {
        let mut waiter = Waiter::for_this_thread(false, false);
        waiter.margin = MOST_MARGIN;
        assert_eq!(waiter.ways(1_000), (MOST_MARGIN, WORTH_SLEEPING));
        // An interrupt is no reason.
        waiter.held_up(1_000, TAKEN);
        assert_eq!((waiter.ways(1_001), waiter.taken()), ((MOST_MARGIN, WORTH_SLEEPING), 0));
        waiter.held_up(1_000, 3_000_000);
        assert_eq!((waiter.ways(1_001), waiter.taken()), ((LEAST_MARGIN, WORTH_SLEEPING_THERE), 1));
        assert_eq!(waiter.ways(1_000 + CONTENDED), (MOST_MARGIN, WORTH_SLEEPING));
        // Who goes before the others is woken in time, and leaves them what it does not need.
        waiter.goes_first_now();
        assert_eq!(waiter.ways(1_000 + CONTENDED), (MOST_MARGIN_THERE, WORTH_SLEEPING_THERE));
        // A trial's sender has its core from the start, and is as exact as it can be.
        let mut trial = Waiter::for_this_thread(false, true);
        trial.held_up(1_000, 3_000_000);
        assert_eq!(trial.ways(1_001).1, WORTH_SLEEPING);
    }

    #[test]
    fn what_was_spun_through_is_no_more_than_what_the_thread_used() {
        let mut waiter = Waiter::for_this_thread(true, false);
        let (start, cpu) = (now(), thread_cpu());
        waiter.wait(start + 3_000_000, &Control::default(), 0);
        let used = thread_cpu() - cpu;
        assert!(waiter.spun_ns() > 0 && waiter.spun_ns() <= 3_000_000.min(used + used / 4 + 10_000));
    }

    #[test]
    fn a_thread_that_rests_gives_up_its_core_however_short_its_waits() {
        let share = |rests, goes_first| {
            let mut waiter = Waiter::for_this_thread(true, rests);
            if goes_first {
                waiter.goes_first_now();
            }
            let (start, cpu) = (now(), thread_cpu());
            for frame in 1..=2_000 {
                waiter.wait(start + frame * 20_000, &Control::default(), 0);
            }
            (thread_cpu() - cpu) as f64 / (now() - start) as f64
        };
        // Another task may have the core for any part of the time, but not for less than is given up.
        assert!(share(true, false) < 0.94, "it kept its core");
        // 2,000 gaps of 20 us: it only waits, and others want its core.
        assert!(share(false, true) < 0.87, "it kept its core from those that want it");
    }
}
