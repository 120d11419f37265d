//! What processors were used for between two readings, and pinning.
//!
//! The whole machine's use (/proc/stat) holds what interrupts and other programs took, and is what service demand is computed
//! from; on a host with other work it is too much. The process's own (getrusage) lacks what interrupts did for it. Both are
//! given, and one that cannot be read is None.

use crate::sys;
use serde::{Deserialize, Serialize};
use std::io;
use std::time::{Duration, Instant};

/// At one moment.
#[derive(Debug, Clone)]
pub struct Reading {
    at: Instant,
    process: [Duration; 2],
    /// Of each processor: user, nice, system, idle, iowait, irq, softirq, steal, in ticks.
    system: Option<Vec<(u32, [u64; 8])>>,
}

/// Between two readings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Use {
    /// How long that was, in s.
    pub seconds: f64,
    /// This process in user space, in cores (1.0: one core all the time).
    pub process_user_cores: f64,
    /// This process in the kernel, in cores.
    pub process_system_cores: f64,
    /// The whole machine. None where /proc/stat cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
}

/// The whole machine's use.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Its processors.
    pub cores: u32,
    /// All that was not idle, in cores.
    pub busy_cores: f64,
    /// User space (nice too), in cores.
    pub user_cores: f64,
    /// The kernel, without interrupts, in cores.
    pub system_cores: f64,
    /// Hard interrupts, in cores.
    pub irq_cores: f64,
    /// Soft interrupts (the network's among them), in cores.
    pub softirq_cores: f64,
    /// Time that a hypervisor gave to others, in cores; counted as idle.
    pub steal_cores: f64,
    /// The busiest processor's number.
    pub peak_core: u32,
    /// Its use, 0 to 1.
    pub peak: f64,
}

impl Reading {
    /// Now.
    pub fn now() -> Reading {
        let system = std::fs::read_to_string("/proc/stat").ok().map(|text| parse(&text));
        Reading { at: Instant::now(), process: sys::used(libc::RUSAGE_SELF), system }
    }

    /// From this one until `later`.
    pub fn until(&self, later: &Reading) -> Use {
        let seconds = later.at.saturating_duration_since(self.at).as_secs_f64();
        let cores = |which: usize| {
            let [before, after] =
                [self, later].map(|reading| reading.process.get(which).copied().unwrap_or_default());
            if seconds > 0.0 { after.saturating_sub(before).as_secs_f64() / seconds } else { 0.0 }
        };
        let machine = match (&self.system, &later.system) {
            (Some(before), Some(after)) => machine(before, after),
            _ => None,
        };
        Use { seconds, process_user_cores: cores(0), process_system_cores: cores(1), machine }
    }
}

fn parse(text: &str) -> Vec<(u32, [u64; 8])> {
    let line = |line: &str| {
        let mut words = line.strip_prefix("cpu")?.split_ascii_whitespace();
        let core = words.next()?.parse().ok()?;
        let mut ticks = [0; 8];
        for (tick, word) in ticks.iter_mut().zip(words) {
            *tick = word.parse().ok()?;
        }
        Some((core, ticks))
    };
    // "cpu 1 2 3" with a space is the sum of all: its first word is no core's number but user time.
    text.lines().filter(|text| !text.starts_with("cpu ")).filter_map(line).collect()
}

fn machine(before: &[(u32, [u64; 8])], after: &[(u32, [u64; 8])]) -> Option<Machine> {
    let mut machine = Machine::default();
    for (core, now) in after {
        let Some((_, then)) = before.iter().find(|(other, _)| other == core) else { continue };
        let mut spent = [0.0; 8];
        for ((spent, now), then) in spent.iter_mut().zip(now).zip(then) {
            *spent = now.saturating_sub(*then) as f64;
        }
        let [user, nice, system, idle, iowait, irq, softirq, steal] = spent;
        // By the core's own ticks, as netperf does: they need not be as many as the time says.
        let all = user + nice + system + idle + iowait + irq + softirq + steal;
        if all == 0.0 {
            continue;
        }
        machine.cores += 1;
        let busy = (user + nice + system + irq + softirq) / all;
        machine.busy_cores += busy;
        machine.user_cores += (user + nice) / all;
        machine.system_cores += system / all;
        machine.irq_cores += irq / all;
        machine.softirq_cores += softirq / all;
        machine.steal_cores += steal / all;
        if busy > machine.peak {
            (machine.peak, machine.peak_core) = (busy, *core);
        }
    }
    (machine.cores > 0).then_some(machine)
}

/// CPU time of the calling thread: user, system.
pub fn thread() -> [Duration; 2] {
    sys::used(libc::RUSAGE_THREAD)
}

/// Pins the calling thread to `core`.
///
/// # Errors
/// There is no such core, or this process may not use it.
pub fn pin(core: u32) -> io::Result<()> {
    let mut set = rustix::thread::CpuSet::new();
    if core as usize >= rustix::thread::CpuSet::MAX_CPU {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    set.set(core as usize);
    rustix::thread::sched_setaffinity(None, &set)?;
    Ok(())
}

/// Ticks a second that /proc/stat counts in: differences of fewer say little.
pub fn ticks_per_second() -> u64 {
    sys::ticks_per_second()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn use_is_what_was_not_idle_and_the_busiest_core_has_its_number() {
        let before = parse(
            "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 10 0 10 100 0 0 0 0 0 0\ncpu3 0 0 0 0 0 0 0 0 0 0\nintr 5\n",
        );
        let after = parse("cpu0 35 0 35 150 0 0 0 0 0 0\ncpu3 50 0 20 10 0 0 10 10 0 0\n");
        let machine = machine(&before, &after).expect("two cores");
        assert_eq!((machine.cores, machine.peak_core), (2, 3));
        assert!((machine.busy_cores - 1.3).abs() < 1e-9, "{machine:?}");
        assert!(
            (machine.softirq_cores - 0.1).abs() < 1e-9 && (machine.steal_cores - 0.1).abs() < 1e-9,
            "{machine:?}"
        );
    }

    #[test]
    fn this_process_is_seen_at_work() {
        let before = Reading::now();
        let began = Instant::now();
        while sys::used(libc::RUSAGE_SELF)[0] < before.process[0] + Duration::from_millis(30) {
            assert!(began.elapsed() < Duration::from_secs(60), "no CPU time in a minute");
        }
        let used = before.until(&Reading::now());
        assert!(used.process_user_cores > 0.0 && used.machine.is_some(), "{used:?}");
    }
}
