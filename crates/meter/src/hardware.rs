//! Follows the clock of the hardware's time stamps beside this host's, so that arrivals by the one can be told by the
//! other.
//!
//! The hardware's clock runs freely, or as PTP keeps it; either way it drifts against CLOCK_MONOTONIC by up to some
//! 100 ns in a millisecond. So the two are compared again and again while a meter runs, a straight line is laid through
//! what was seen, and the kernel's program takes times from that line until the next comparison. How far each comparison
//! was off the line before it is the error that is reported. Who compares ([`Compare`]) is the caller's: it knows the
//! device. `Line` and its use in `programs/bpf/meter.bpf.c` are the same.

use crate::clock::tai_ahead;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// One look at both clocks: when the hardware's showed `device_ns`, CLOCK_MONOTONIC was between the other two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Comparison {
    /// CLOCK_MONOTONIC before, in nanoseconds.
    pub before_ns: u64,
    /// The hardware's clock, in nanoseconds.
    pub device_ns: u64,
    /// CLOCK_MONOTONIC after, in nanoseconds.
    pub after_ns: u64,
}

/// Compares the clocks, from any thread.
pub type Compare = Arc<dyn Fn() -> io::Result<Comparison> + Send + Sync>;

/// Time stamps of the hardware, if they can be had.
#[derive(Clone)]
pub struct Hardware {
    /// Looks at the clock that they are of.
    pub compare: Compare,
    /// The driver gives them to XDP programs; else to sockets alone.
    pub to_xdp: bool,
    /// Without them nothing is measured at all; else by software, with the reason.
    pub required: bool,
}

impl fmt::Debug for Hardware {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hardware")
            .field("to_xdp", &self.to_xdp)
            .field("required", &self.required)
            .finish_non_exhaustive()
    }
}

/// How far what the hardware's stamps say can be believed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stamps {
    /// Frames that it stamped; the arrival of all others was timed by software.
    pub frames: u64,
    /// The furthest that a comparison was off what the ones before it had led to expect, with what it may itself be off.
    pub error_ns: u64,
    /// By how much its clock was set meanwhile.
    pub set_ns: Option<i64>,
    /// Why it could not be looked at any more, or for a while.
    pub lost: Option<String>,
}

impl Stamps {
    /// Adds those of another interface.
    pub fn add(&mut self, other: &Stamps) {
        self.frames += other.frames;
        self.error_ns = self.error_ns.max(other.error_ns);
        self.set_ns = self.set_ns.or(other.set_ns);
        self.lost = self.lost.take().or_else(|| other.lost.clone());
    }
}

/// Where the clocks stand to each other: `struct device_clock` of `programs/bpf/include/meter.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Line {
    /// What the hardware's showed.
    pub at: u64,
    /// How far CLOCK_MONOTONIC was ahead of it then, in two's complement.
    pub ahead: u64,
    /// By how much that grows with each of its nanoseconds, times 2^32.
    pub slope: i64,
    /// How far CLOCK_TAI is ahead of CLOCK_MONOTONIC.
    pub tai: u64,
}

impl Line {
    /// What CLOCK_MONOTONIC showed at `time` of the hardware's.
    pub fn monotonic(&self, time: u64) -> u64 {
        let since = time.wrapping_sub(self.at) as i64;
        time.wrapping_add(self.ahead).wrapping_add((since.wrapping_mul(self.slope) >> 32) as u64)
    }
}

/// The line goes through looks of so long.
const SPAN_NS: u64 = 2_000_000_000;
/// Of a shorter time the noise of two looks is more than the drift.
const LEAST_NS: u64 = 250_000_000;
/// Clocks that drift by more than this are not what they say (a tenth of a per cent).
const STEEPEST: i64 = (1 << 32) / 1000;
/// No clock drifts so far between two looks: it was set.
const SET_NS: u64 = 1_000_000;

/// The looks taken, and what follows from them. No clock, no device.
#[derive(Debug, Default)]
struct Follower {
    /// What the hardware's clock showed, and how far CLOCK_MONOTONIC was ahead.
    looks: VecDeque<(u64, u64)>,
    line: Line,
    error_ns: u64,
    set_ns: Option<i64>,
}

impl Follower {
    /// Takes a look into account.
    fn look(&mut self, seen: Comparison, tai: u64) -> Line {
        let width = seen.after_ns.saturating_sub(seen.before_ns);
        let (at, host) = (seen.device_ns, seen.before_ns + width / 2);
        let ahead = host.wrapping_sub(at);
        let half = width.div_ceil(2);
        let off = host.wrapping_sub(self.line.monotonic(at)) as i64;
        let off = if self.looks.is_empty() { 0 } else { off };
        self.error_ns = self.error_ns.max(off.unsigned_abs() + half);
        if off.unsigned_abs() > SET_NS + half {
            self.set_ns = Some(self.set_ns.unwrap_or(0).saturating_sub(off));
            self.looks.clear();
        }
        self.looks.push_back((at, ahead));
        while self.looks.len() > 2 && at.wrapping_sub(self.looks[1].0) >= SPAN_NS {
            self.looks.pop_front();
        }
        self.line = Line { at, ahead, slope: self.slope(), tai };
        self.line
    }

    fn slope(&self) -> i64 {
        let (Some(first), Some(last)) = (self.looks.front(), self.looks.back()) else { return 0 };
        let span = last.0.wrapping_sub(first.0);
        if !(LEAST_NS..=i64::MAX as u64).contains(&span) {
            return 0;
        }
        let grown = i128::from(last.1.wrapping_sub(first.1) as i64);
        let slope = (grown << 32) / i128::from(span);
        slope.clamp(i128::from(-STEEPEST), i128::from(STEEPEST)) as i64
    }

    /// When to look again: often until the drift is known.
    fn pause(&self) -> Duration {
        Duration::from_millis(if self.slope() == 0 { 5 } else { 50 })
    }
}

#[derive(Debug, Default)]
struct Shared {
    follower: Follower,
    lost: Option<String>,
}

impl Shared {
    /// Takes a look into account, and says when to look again.
    fn look(
        &mut self,
        seen: io::Result<Comparison>,
        tell: impl FnOnce(&Line) -> Result<(), String>,
    ) -> Duration {
        let told = match seen {
            Ok(seen) => tell(&self.follower.look(seen, tai())),
            Err(error) => Err(error.to_string()),
        };
        if let Err(why) = told {
            self.lost.get_or_insert(why);
        }
        self.follower.pause()
    }
}

/// Follows the clock until it is dropped.
#[derive(Debug)]
pub struct Following {
    shared: Arc<Mutex<Shared>>,
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Following {
    /// Compares the clocks for the first time, and from then on in a thread. `tell` is told each line with its number,
    /// the first before this returns.
    ///
    /// # Errors
    /// That the clocks cannot be compared, or no thread can be started.
    pub fn start(
        compare: &Compare,
        mut tell: impl FnMut(u64, &Line) -> Result<(), String> + Send + 'static,
    ) -> io::Result<Following> {
        let shared = Arc::new(Mutex::new(Shared::default()));
        let line = lock(&shared).follower.look(compare()?, tai());
        tell(0, &line).map_err(io::Error::other)?;
        let (end, ended) = channel();
        let (compare, own) = (Arc::clone(compare), Arc::clone(&shared));
        let follow = move || {
            let mut turn = 1;
            let mut pause = lock(&own).follower.pause();
            while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                let seen = compare();
                pause = lock(&own).look(seen, |line| tell(turn, line));
                turn += 1;
            }
            // What arrived since the last look was told by its line, too.
            lock(&own).look(compare(), |_| Ok(()));
        };
        let thread = std::thread::Builder::new().name("clock".to_owned()).spawn(follow)?;
        Ok(Following { shared, end: Some(end), thread: Some(thread) })
    }

    /// What was seen up to now, of `frames` that were stamped.
    pub fn stamps(&self, frames: u64) -> Stamps {
        let shared = lock(&self.shared);
        let Follower { error_ns, set_ns, .. } = shared.follower;
        Stamps { frames, error_ns, set_ns, lost: shared.lost.clone() }
    }
}

impl Following {
    /// Looks a last time: what has arrived by now has all been timed.
    pub fn conclude(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // It does not panic; if it did, the last line stays in force.
            let _ = thread.join();
        }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.conclude();
    }
}

fn tai() -> u64 {
    tai_ahead() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A clock that is `offset` behind this host's at the start and runs `ppb` faster, looked at by readings that take
    /// `width` and lie anywhere in it.
    struct Device {
        offset: i64,
        ppb: i64,
    }

    const START: u64 = 5_000_000_000_000;

    impl Device {
        fn shows(&self, host: u64) -> u64 {
            let drift = i128::from(host - START) * i128::from(self.ppb) / 1_000_000_000;
            host.wrapping_add_signed(-self.offset).wrapping_add_signed(drift as i64)
        }

        fn look(&self, host: u64, width: u64, part: u64) -> Comparison {
            let before_ns = host - part.min(width);
            Comparison { before_ns, device_ns: self.shows(host), after_ns: before_ns + width }
        }
    }

    proptest! {
        #[test]
        fn the_error_is_never_more_than_is_said(
            offset in -1i64 << 50..1 << 42,
            ppb in -100_000i64..100_000,
            looks in prop::collection::vec((10u64..4_000, 0u64..4_000), 3..150),
        ) {
            let device = Device { offset, ppb };
            let mut follower = Follower::default();
            let mut host = START;
            let mut worst = 0;
            for (number, (width, part)) in looks.iter().enumerate() {
                if number > 0 {
                    let pause = follower.pause().as_nanos() as u64;
                    // What arrives until the next look is told by the line.
                    for arrival in [host, host + pause / 2, host + pause] {
                        let told = follower.line.monotonic(device.shows(arrival));
                        worst = worst.max(told.abs_diff(arrival));
                    }
                    host += pause;
                }
                follower.look(device.look(host, *width, *part), 0);
                // Rounding takes the rest.
                prop_assert!(worst <= follower.error_ns + 2, "{worst} of {}", follower.error_ns);
            }
            prop_assert_eq!(follower.set_ns, None);
            // 4 us of noise and 100 ppm over a pause of 5 or 50 ms.
            prop_assert!(follower.error_ns < 12_000, "{}", follower.error_ns);
        }
    }

    #[test]
    fn a_drift_that_is_known_costs_no_error() {
        let device = Device { offset: 37_000_000_000, ppb: 40_000 };
        let mut follower = Follower::default();
        let mut host = START;
        for _ in 0..200 {
            follower.look(device.look(host, 200, 100), 0);
            host += follower.pause().as_nanos() as u64;
        }
        // 40 ppm is 2 us in 50 ms; what is left of it is less than a look's width.
        let told = follower.line.monotonic(device.shows(host));
        assert!(told.abs_diff(host) < 50, "{told} for {host}");
    }

    #[test]
    fn a_clock_that_was_set_is_noticed_and_followed_anew() {
        let mut device = Device { offset: 0, ppb: 20_000 };
        let mut follower = Follower::default();
        let mut host = START;
        for turn in 0..200 {
            if turn == 100 {
                device.offset -= 1_500_000_000;
            }
            follower.look(device.look(host, 200, 100), 0);
            host += follower.pause().as_nanos() as u64;
        }
        let set = follower.set_ns.expect("it was set");
        // The line that it left was 20 ppm steep.
        assert!((set - 1_500_000_000).abs() < 50_000, "{set}");
        assert!(follower.error_ns >= 1_499_900_000);
        assert!(follower.line.monotonic(device.shows(host)).abs_diff(host) < 50);
    }

    #[test]
    fn following_ends_when_it_is_dropped_and_says_what_it_lost() {
        let told = Arc::new(Mutex::new(0u64));
        let looks = Mutex::new(0u64);
        let compare: Compare = Arc::new(move || {
            let mut looks = looks.lock().expect("one thread at a time");
            *looks += 1;
            if *looks > 3 {
                return Err(io::Error::other("it is gone"));
            }
            let host = START + *looks * 5_000_000;
            Ok(Comparison { before_ns: host, device_ns: host - 7, after_ns: host + 100 })
        });
        let own = Arc::clone(&told);
        let tell = move |turn, line: &Line| {
            assert_eq!(line.monotonic(START), START + 57);
            *own.lock().expect("one thread at a time") = turn;
            Ok(())
        };
        let mut following = Following::start(&compare, tell).expect("the first look");
        while following.stamps(0).lost.is_none() {
            std::thread::yield_now();
        }
        following.conclude();
        let stamps = following.stamps(5);
        drop(following);
        let wanted = Stamps { frames: 5, error_ns: 50, set_ns: None, lost: Some("it is gone".to_owned()) };
        assert_eq!(stamps, wanted);
        assert_eq!(Arc::strong_count(&told), 1);
        assert_eq!(*told.lock().expect("nobody else"), 2);
    }
}
