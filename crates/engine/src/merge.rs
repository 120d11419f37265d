//! What the workers of one run did together.

use crate::{Ended, Punctuality, Sent};
use port::tx::TxCounters;

/// One worker's part.
#[derive(Debug, Clone, Copy)]
pub struct Share {
    /// Frames and bytes, and what was refused.
    pub counters: TxCounters,
    /// CPU time of its thread.
    pub cpu_ns: u64,
    /// What of that it spent waiting for frames' times; `None` at top speed.
    pub spun_ns: Option<u64>,
    /// Time in which it was ready to run and others had its CPU; `None`: not known.
    pub others_ns: Option<u64>,
}

/// A run of several workers, whole and in parts.
#[derive(Debug)]
pub struct Merged {
    /// As if one worker had done it all.
    pub whole: Sent,
    /// The parts, in the workers' order.
    pub shares: Vec<Share>,
    /// The worker whose end is the whole's: the first of those that ended worst.
    pub ended_by: usize,
}

/// The worst end decides: a fault before a stop (which it causes in the others) before a proper end.
fn badness(ended: &Ended) -> u8 {
    match ended {
        Ended::Done => 0,
        Ended::Stopped => 1,
        Ended::SourceFault(_) => 2,
        Ended::Fault(_) => 3,
    }
}

impl Sent {
    /// What a worker did that had nothing to send.
    pub fn idle() -> Sent {
        Sent {
            counters: TxCounters::default(),
            ports: Vec::new(),
            started_ns: 0,
            duration_ns: 0,
            taken: 0,
            scheduled_ns: None,
            exhausted: true,
            looked_ns: 0,
            overdue: None,
            punctuality: None,
            departures: None,
            cpu_ns: 0,
            ended: Ended::Done,
        }
    }
}

impl Merged {
    /// Adds up what `workers` did, of which there is at least one. `end_ns`: when the frame behind the last of all is
    /// due by the schedule of the whole, where that is known; the workers know only when their own next ones would be.
    pub fn of(workers: Vec<Sent>, end_ns: Option<u64>) -> Option<Merged> {
        let share = |w: &Sent| Share {
            counters: w.counters,
            cpu_ns: w.cpu_ns,
            spun_ns: w.punctuality.as_ref().map(|kept| kept.spun_ns),
            others_ns: w.punctuality.as_ref().and_then(|kept| kept.others_ns),
        };
        let shares = workers.iter().map(share).collect();
        let worst = workers.iter().map(|w| badness(&w.ended)).max()?;
        let ended_by = workers.iter().position(|w| badness(&w.ended) == worst)?;
        // An idle one has not started.
        let started_ns = workers.iter().map(|w| w.started_ns).filter(|&at| at > 0).min().unwrap_or(0);
        let exhausted = workers.iter().all(|w| w.exhausted);
        // The schedule was carried out up to the first frame that some worker did not take. A worker that had no more
        // to take sets no such bound.
        let scheduled = |w: &Sent| w.scheduled_ns;
        let scheduled_ns = if exhausted {
            let last = workers.iter().filter_map(scheduled).max();
            last.map(|last| end_ns.map_or(last, |end| end.min(last)))
        } else {
            workers.iter().filter(|w| !w.exhausted).filter_map(scheduled).min()
        };
        // A worker that kept to its schedule lasts until its next frame's time; what counts then is the whole's.
        let lasted = |w: &Sent| {
            let on_time = matches!(w.ended, Ended::Done) && w.scheduled_ns == Some(w.duration_ns);
            if on_time { 0 } else { w.duration_ns + w.started_ns.saturating_sub(started_ns) }
        };
        let lasted = workers.iter().map(lasted).max()?;
        // What was stopped did not last until the time of a frame that it never sent.
        let carried_out = workers.iter().all(|w| matches!(w.ended, Ended::Done));
        // Each might have sent until it ended; one that had no more to send ended before the run did.
        let looked = |w: &Sent| w.looked_ns + w.started_ns.saturating_sub(started_ns);
        let looked_ns = match exhausted {
            true => workers.iter().map(looked).max(),
            false => workers.iter().filter(|w| !w.exhausted).map(looked).min(),
        };
        let until = scheduled_ns.filter(|_| carried_out).unwrap_or(0);
        let mut whole = Sent {
            counters: TxCounters::default(),
            ports: Vec::new(),
            started_ns,
            duration_ns: lasted.max(until),
            taken: workers.iter().map(|w| w.taken).sum(),
            scheduled_ns,
            exhausted,
            looked_ns: looked_ns.unwrap_or(0),
            overdue: workers.iter().map(|w| w.overdue).sum(),
            punctuality: None,
            departures: None,
            cpu_ns: workers.iter().map(|w| w.cpu_ns).sum(),
            ended: Ended::Done,
        };
        for (n, worker) in workers.into_iter().enumerate() {
            whole.counters.add(&worker.counters);
            if whole.ports.len() < worker.ports.len() {
                whole.ports.resize(worker.ports.len(), TxCounters::default());
            }
            for (sum, port) in whole.ports.iter_mut().zip(&worker.ports) {
                sum.add(port);
            }
            if let Some(kept) = worker.punctuality {
                match &mut whole.punctuality {
                    Some(all) => all.merge(&kept),
                    none => *none = Some(kept),
                }
            }
            if let Some(departures) = worker.departures {
                whole.departures.get_or_insert_default().merge(&departures);
            }
            if n == ended_by {
                whole.ended = worker.ended;
            }
        }
        Some(Merged { whole, shares, ended_by })
    }
}

impl Punctuality {
    /// Adds what another worker of the run noted. Which of both sent the last frame is not known: the later one counts.
    pub fn merge(&mut self, other: &Punctuality) {
        self.lateness.merge(&other.lateness);
        self.late += other.late;
        // Of which worker the first frame is, is not known here either.
        self.first_late_ns = self.first_late_ns.max(other.first_late_ns);
        self.last_late_ns = self.last_late_ns.max(other.last_late_ns);
        self.stalls += other.stalls;
        self.longest_stall_ns = self.longest_stall_ns.max(other.longest_stall_ns);
        self.catch_up_frames += other.catch_up_frames;
        // Of several the same millisecond is not known: together they sent no more than this.
        self.most_in_1ms = self.most_in_1ms.zip(other.most_in_1ms).map(|(own, other)| own + other);
        self.had = self.had.min(other.had);
        self.taken += other.taken;
        self.spun_ns += other.spun_ns;
        self.others_ns = self.others_ns.zip(other.others_ns).map(|(own, other)| own + other);
        self.put_off_ns += other.put_off_ns;
        self.starved_ns = self.starved_ns.max(other.starved_ns);
        if let Some(other) = other.waits {
            let kept = self.waits.get_or_insert_default();
            kept.slept += other.slept;
            kept.wake_up_p99_ns = kept.wake_up_p99_ns.max(other.wake_up_p99_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use port::tx::TxError;

    fn sent(frames: u64, scheduled_ns: u64, duration_ns: u64) -> Sent {
        let mut punctuality = Punctuality { late: 1, last_late_ns: frames, ..Punctuality::default() };
        punctuality.lateness.record_n(50, frames);
        Sent {
            counters: TxCounters { frames, bytes: frames * 60, retried_enobufs: 1, ..TxCounters::default() },
            ports: Vec::new(),
            started_ns: 1_000,
            duration_ns,
            taken: frames,
            scheduled_ns: Some(scheduled_ns),
            exhausted: true,
            looked_ns: duration_ns,
            overdue: None,
            punctuality: Some(punctuality),
            departures: None,
            cpu_ns: 7,
            ended: Ended::Done,
        }
    }

    fn merged(workers: Vec<Sent>, end: Option<u64>) -> Merged {
        Merged::of(workers, end).expect("workers")
    }

    #[test]
    fn counts_add_up_and_parts_are_kept() {
        let both = merged(vec![sent(5, 1_000, 1_000), sent(4, 1_100, 1_100)], Some(1_000));
        let c = both.whole.counters;
        assert_eq!((c.frames, c.bytes, c.retried_enobufs, both.whole.taken), (9, 540, 2, 9));
        assert_eq!((both.whole.cpu_ns, both.whole.exhausted), (14, true));
        assert_eq!(both.shares.iter().map(|s| s.counters.frames).collect::<Vec<_>>(), [5, 4]);
        let kept = both.whole.punctuality.expect("paced");
        assert_eq!((kept.lateness.count(), kept.late, kept.last_late_ns), (9, 2, 5));
    }

    #[test]
    fn ten_frames_at_ten_a_second_take_a_second_on_two_cores_too() {
        // The workers' next frames would be the eleventh and the twelfth.
        let both = merged(
            vec![sent(5, 1_000_000_000, 1_000_000_000), sent(5, 1_100_000_000, 1_100_000_000)],
            Some(1_000_000_000),
        );
        assert_eq!((both.whole.duration_ns, both.whole.scheduled_ns), (1_000_000_000, Some(1_000_000_000)));
    }

    #[test]
    fn a_stopped_run_lasted_until_it_was_stopped_and_not_until_its_next_frame() {
        let stopped =
            || Sent { exhausted: false, ended: Ended::Stopped, ..sent(1, 1_000_000_000_000, 2_000_000_000) };
        for workers in [vec![stopped()], vec![stopped(), stopped()]] {
            assert_eq!(merged(workers, None).whole.duration_ns, 2_000_000_000);
        }
    }

    #[test]
    fn the_slowest_worker_decides_how_long_it_took_and_how_far_it_got() {
        let slow = merged(vec![sent(5, 1_000, 1_000), sent(5, 1_100, 9_000)], Some(1_000));
        assert_eq!((slow.whole.duration_ns, slow.whole.scheduled_ns), (9_000, Some(1_000)));
        let behind = Sent { exhausted: false, ..sent(2, 400, 1_000) };
        let short = merged(vec![Sent { exhausted: false, ..sent(5, 1_000, 1_000) }, behind], Some(2_000));
        assert_eq!((short.whole.duration_ns, short.whole.scheduled_ns), (1_000, Some(400)));
        assert!(!short.whole.exhausted);
    }

    #[test]
    fn a_fault_is_told_before_the_stop_that_it_caused() {
        let stopped = || Sent { ended: Ended::Stopped, ..sent(1, 1, 1) };
        let fault = Sent { ended: Ended::Fault(TxError::Gone("v0".into())), ..sent(1, 1, 1) };
        let all = merged(vec![sent(1, 1, 1), stopped(), fault, stopped()], None);
        assert_eq!(all.ended_by, 2);
        assert!(matches!(all.whole.ended, Ended::Fault(TxError::Gone(_))));
        assert!(Merged::of(Vec::new(), None).is_none());
    }

    #[test]
    fn a_worker_without_frames_sets_no_bound() {
        for workers in [[Sent::idle(), sent(5, 1_000, 3_000)], [sent(5, 1_000, 3_000), Sent::idle()]] {
            let whole = merged(workers.into(), None).whole;
            assert_eq!(
                (whole.duration_ns, whole.scheduled_ns, whole.started_ns),
                (3_000, Some(1_000), 1_000)
            );
            assert!(whole.exhausted && whole.punctuality.is_some());
        }
        let nothing = merged(vec![Sent::idle(), Sent::idle()], None).whole;
        assert_eq!((nothing.counters.frames, nothing.duration_ns), (0, 0));
    }
}
