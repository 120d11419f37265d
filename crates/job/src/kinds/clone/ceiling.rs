//! How much of the machine a thread that copies may take: looked at twice a second. Above it new sessions are left out; far above it
//! copies are given up, whole, a tenth at a time.

use rustix::thread::ClockId;
use std::time::{Duration, Instant};

/// Between two looks.
const PERIOD: Duration = Duration::from_millis(500);
/// So much above a ceiling sessions are given up.
const FAR: f64 = 1.25;

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// New sessions may be copied.
    Go,
    /// None but those that are.
    Hold,
    /// And fewer of those.
    Shed,
}

/// Of one thread.
#[derive(Debug)]
pub struct Ceiling {
    /// Of a processor.
    cpu: Option<f64>,
    /// Bytes, of the whole process.
    memory: Option<u64>,
    looked: Option<(Instant, Duration)>,
}

impl Ceiling {
    pub fn new(cpu: Option<f64>, memory: Option<u64>) -> Ceiling {
        Ceiling { cpu, memory, looked: None }
    }

    /// Something new, if it is time to look. By the thread itself.
    pub fn look(&mut self) -> Option<Order> {
        if self.cpu.is_none() && self.memory.is_none() {
            return None;
        }
        let now = Instant::now();
        let (then, before) = *self.looked.get_or_insert_with(|| (now, cpu_time()));
        let passed = now.saturating_duration_since(then);
        if passed < PERIOD {
            return None;
        }
        let used = cpu_time();
        self.looked = Some((now, used));
        let cpu = used.saturating_sub(before).as_secs_f64() / passed.as_secs_f64();
        // Where the kernel does not say, nothing is known to be too much.
        let memory = self.memory.and_then(|_| resident()).unwrap_or(0);
        Some(order(
            self.cpu
                .map_or(0.0, |most| cpu / most)
                .max(self.memory.map_or(0.0, |most| memory as f64 / most as f64)),
        ))
    }
}

/// `share`: of what is allowed.
fn order(share: f64) -> Order {
    match share {
        share if share > FAR => Order::Shed,
        share if share > 1.0 => Order::Hold,
        _ => Order::Go,
    }
}

/// Of the calling thread.
pub fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Memory of this process (proc_pid_statm(5)).
fn resident() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_above_a_ceiling_holds_and_what_is_far_above_sheds() {
        assert_eq!([0.9, 1.1, 1.3].map(order), [Order::Go, Order::Hold, Order::Shed]);
        assert!(resident().is_some_and(|bytes| bytes > 1 << 20));
        // This test's process has more than a page, and what it has is looked at after a while.
        let mut ceiling = Ceiling::new(None, Some(4096));
        assert_eq!(ceiling.look(), None);
        ceiling.looked = ceiling.looked.and_then(|(at, used)| Some((at.checked_sub(PERIOD)?, used)));
        assert_eq!(ceiling.look(), Some(Order::Shed));
        assert_eq!(Ceiling::new(None, None).look(), None);
    }
}
