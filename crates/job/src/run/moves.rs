//! How often the scheduler moved a sender from one CPU to another. Where a driver or the kernel has a queue for each CPU,
//! frames handed over after a move overtake those before it: a reordering that is no device's.

use report::{Code, Report, units};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Of all workers of a run that may run anywhere.
#[derive(Debug, Default)]
pub struct Moves(AtomicU64);

/// How often the calling thread was moved since it began; `None` where the kernel does not tell (CONFIG_SCHED_DEBUG until
/// Linux 6.14).
fn so_far() -> Option<u64> {
    parse(&std::fs::read_to_string("/proc/thread-self/sched").ok()?)
}

fn parse(sched: &str) -> Option<u64> {
    let line = sched.lines().find(|line| line.starts_with("se.nr_migrations"))?;
    line.split(':').nth(1)?.trim().parse().ok()
}

impl Moves {
    /// Does `work` in the calling thread, and notes how often it was moved meanwhile; not where it stays on one CPU.
    pub fn during<T>(&self, stays: bool, work: impl FnOnce() -> T) -> T {
        let before = if stays { None } else { so_far() };
        let done = work();
        if let (Some(before), Some(after)) = (before, before.and_then(|_| so_far())) {
            self.0.fetch_add(after.saturating_sub(before), Relaxed);
        }
        done
    }

    /// Says whose a reordering may be.
    pub fn tell(&self, report: &mut Report) {
        let reordered = report.result.rx.as_ref().and_then(|rx| rx.reordered_frames).unwrap_or(0);
        let moves = self.0.load(Relaxed);
        if reordered > 0 && moves > 0 {
            let said = format!(
                "{} came out of order, and the sender was moved to another CPU {}: where there is a queue for each CPU that \
                 alone reorders frames",
                units::counted(reordered, "frame"),
                if moves == 1 { "once".to_owned() } else { format!("{} times", units::count(moves)) },
            );
            report.warnings.add(Code::SenderMoved, (said, "keep it on one (`.cores` 1)"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_that_was_moved_is_named_beside_frames_out_of_order() {
        let told = |reordered: u64, moves: u64| {
            let mut report = Report::new("send");
            report.result.rx =
                Some(report::Rx { reordered_frames: Some(reordered), ..report::Rx::default() });
            Moves(AtomicU64::new(moves)).tell(&mut report);
            report.warnings.concat()
        };
        assert_eq!((told(0, 5), told(5, 0)), (String::new(), String::new()));
        assert!(
            told(8, 1)
                .starts_with("8 frames came out of order, and the sender was moved to another CPU once")
        );
        assert!(told(8, 1200).contains("1,200 times"));
    }

    #[test]
    fn moves_of_the_thread_are_counted() {
        assert_eq!(parse("x (1, #threads: 1)\nse.nr_migrations   :        12\nnr_switches : 3\n"), Some(12));
        assert_eq!((parse(""), parse("se.nr_migrations")), (None, None));
        let cpus = rustix::thread::sched_getaffinity(None).expect("the CPUs of this process");
        let allowed = (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| cpus.is_set(*cpu));
        let (moves, stays) = (Moves::default(), Moves::default());
        let visit = || {
            for cpu in allowed.clone() {
                super::super::pin(cpu);
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| moves.during(false, visit));
            scope.spawn(|| stays.during(true, visit));
        });
        let several = allowed.clone().count() > 1 && so_far().is_some();
        assert!(moves.0.load(Relaxed) >= u64::from(several), "{moves:?}");
        assert_eq!(stays.0.load(Relaxed), 0);
    }
}
