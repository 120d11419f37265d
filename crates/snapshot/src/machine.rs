//! What cores and threads did, from /proc.

use crate::Core;

/// The cores, in order; none where the kernel does not say.
pub fn cores() -> Vec<Core> {
    std::fs::read_to_string("/proc/stat").map_or_else(|_| Vec::new(), |text| parse(&text))
}

/// CPU time of a thread of this process, in nanoseconds.
pub fn thread_cpu_ns(thread: u64) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// proc(5): `cpuN user nice system idle iowait irq softirq steal guest guest_nice`; guests are in user and nice, too.
fn parse(text: &str) -> Vec<Core> {
    let core = |line: &str| {
        let (number, rest) = line.strip_prefix("cpu")?.split_once(' ')?;
        let ticks: Vec<u64> = rest.split_whitespace().map_while(|word| word.parse().ok()).collect();
        let at = |n: usize| ticks.get(n).copied().unwrap_or(0);
        Some(Core {
            number: number.parse().ok()?,
            total_ticks: ticks.iter().take(8).sum(),
            idle_ticks: at(3).saturating_add(at(4)),
            interrupt_ticks: at(5).saturating_add(at(6)),
        })
    };
    text.lines().filter_map(core).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_read_and_the_sum_of_all_is_none() {
        let text = "cpu  10 0 10 100 0 0 4 0 0 0\ncpu0 5 1 5 50 7 1 2 3 9 9\ncpu1 5\nintr 1\ncpux 1\n";
        let first = Core { number: 0, total_ticks: 74, idle_ticks: 57, interrupt_ticks: 3 };
        assert_eq!(parse(text), [first, Core { number: 1, total_ticks: 5, ..Core::default() }]);
        assert!(!cores().is_empty());
    }

    #[test]
    fn a_thread_that_works_uses_time() {
        let thread = rustix::thread::gettid().as_raw_nonzero().get() as u64;
        let start = thread_cpu_ns(thread).expect("schedstat");
        while thread_cpu_ns(thread).expect("schedstat") <= start {}
        assert_eq!(thread_cpu_ns(u64::MAX), None);
    }
}
