//! What the schedules asked for: how many frames were due by a moment, and when each was.

use engine::Job;
use std::sync::Arc;
use traffic::walk::{Tally, Walk};
use traffic::{Program, Schedule};

/// How many frames have been due, over all workers.
pub struct Intended {
    /// `None`: only the sender knows, or there is no schedule.
    shares: Option<Vec<Share>>,
    paced: bool,
    /// Where it was asked before, the two latest at least [`APART`] from each other and the earlier one first, so that a
    /// moment shortly before the latest need not be walked to from the start.
    before: [(u64, Vec<Share>); 2],
}

/// More of a schedule than one looks back: what is overdue, at the most that a rate is raised by hand.
const APART: u64 = 20 * engine::GRACE_NS;

#[derive(Clone)]
enum Share {
    Formula(Schedule),
    Program(Tally),
}

impl Intended {
    /// What the workers' jobs ask for together.
    pub fn of(jobs: &[Job]) -> Intended {
        let share = |job: &Job| match job.source.program() {
            Some(program) => Tally::new(Arc::clone(program)).map(Share::Program),
            None => job.source.formula().cloned().map(Share::Formula),
        };
        let paced = |job: &Job| job.source.is_paced();
        let shares: Option<Vec<Share>> = jobs.iter().map(share).collect();
        let start = || (0, shares.clone().unwrap_or_default());
        Intended { before: [start(), start()], shares, paced: jobs.iter().any(paced) }
    }

    /// Is there a schedule?
    pub fn is_paced(&self) -> bool {
        self.paced
    }

    /// Frames due within `ns` of the start. Times must not go back.
    pub fn by(&mut self, ns: u64) -> Option<u64> {
        let shares = self.shares.as_mut()?;
        let due = shares.iter_mut().map(|share| share.by(ns)).sum();
        if ns >= self.before[1].0.saturating_add(APART) {
            self.before[0] = std::mem::replace(&mut self.before[1], (ns, shares.clone()));
        }
        due
    }

    /// Frames that were due within `ns`, a moment shortly before the latest that was asked for, or that one.
    pub fn was_by(&self, ns: u64) -> Option<u64> {
        self.shares.as_ref()?;
        let near = self.before.iter().rev().find(|(at, _)| *at <= ns).or(self.before.first())?;
        near.1.clone().iter_mut().map(|share| share.by(ns)).sum()
    }
}

impl Share {
    fn by(&mut self, ns: u64) -> Option<u64> {
        match self {
            Share::Formula(schedule) => schedule.frames_due_by(ns),
            Share::Program(tally) => Some(tally.by(ns)),
        }
    }
}

/// Frames that are looked at one by one; more would be felt as a pause.
const MOST: u64 = 20_000_000;

/// When frame `n` of a job is due, where that can be computed in a moment: then it is where a run of `n` frames ends.
pub fn time_of(job: &Job, n: u64) -> Option<u64> {
    let Some(program) = job.source.program() else {
        return job.source.formula().map(|schedule| {
            let mut cursor = schedule.cursor();
            cursor.seek(n, |_| 0);
            cursor.due()
        });
    };
    if !program.is_paced() {
        return None;
    }
    if let [lane] = &program.lanes[..]
        && let Schedule::Bits { bits_per_second, overhead_bytes } = &lane.schedule
    {
        let bits = (bytes_before(program, n)? + u128::from(n) * u128::from(*overhead_bytes)) * 8;
        let after = u64::try_from(bits * 1_000_000_000 / u128::from(*bits_per_second)).ok()?;
        return lane.start_ns.checked_add(after);
    }
    if program.frames_due_by(0).is_none() && n > MOST {
        return None;
    }
    let mut walk = Walk::new(program).ok()?;
    walk.seek(n);
    Some(walk.next_due().unwrap_or_else(|| walk.end()))
}

/// Bytes of the first `n` frames; `None` if that would take too long to find out.
fn bytes_before(program: &Program, n: u64) -> Option<u128> {
    if let Some(length) = program.only_length() {
        return Some(u128::from(n) * u128::from(length));
    }
    let (mut whole, mut rest) = (0, n);
    let captured = matches!(&program.streams[..], [stream] if stream.is_captured());
    if captured || program.is_pair_of_captures() {
        let pass = program.frames_per_pass().max(1);
        let bytes = program.streams.iter().map(|stream| u128::from(stream.templates.total_bytes()));
        whole = u128::from(n / pass) * bytes.sum::<u128>();
        rest = n % pass;
    }
    if rest > MOST {
        return None;
    }
    let frames = Walk::new(program).ok()?.take(rest as usize);
    let bytes = frames.map(|turn| program.streams[turn.stream as usize].length_of(turn.index));
    Some(whole + bytes.map(u128::from).sum::<u128>())
}

/// When each of the first `n` frames of a program is due, in order. `None` at top speed.
pub fn dues(program: &Program, n: usize) -> Option<Vec<u64>> {
    if !program.is_paced() && !program.lanes.is_empty() {
        return None;
    }
    Some(Walk::new(program).ok()?.take(n).map(|turn| turn.due).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use traffic::{Lengths, Stream};

    fn job(program: Program) -> Job {
        Job::program(program)
    }

    fn uneven() -> Program {
        let mut stream = Stream::of("uneven", &[0; 1000]);
        stream.lengths = Lengths::Random { min: 60, max: 1000, key: 7 };
        let schedule = Schedule::Bits { bits_per_second: 999_999_937, overhead_bytes: 24 };
        Program::single(stream).with_schedule(schedule)
    }

    /// What is due by a moment is what the workers' times up to it say, whatever the schedule.
    #[test]
    fn workers_are_offered_what_their_schedules_have_due_together() {
        let every_third = Schedule::Frames { frames: 3_000_001, per_ns: 1_000_000_000 };
        let bursts = Schedule::Bursts { frames: 8, gap_ns: 500, period_ns: 100_000 };
        let even = Program::single(Stream::of("even", &[0; 60]));
        for program in [uneven(), even.clone().with_schedule(every_third), even.with_schedule(bursts)] {
            let jobs: Vec<Job> = (0..3).map(|w| job(program.share(w, 3))).collect();
            let mut intended = Intended::of(&jobs);
            assert!(intended.is_paced());
            for ns in [0, 1, 499, 500, 40_000, 1_000_000, 7_654_321] {
                let due_by = |job: &Job| {
                    let program = job.source.program().expect("a program");
                    let dues = dues(program, 30_000).expect("paced");
                    assert!(dues.is_sorted());
                    dues.iter().filter(|due| **due <= ns).count() as u64
                };
                assert_eq!(intended.by(ns), Some(jobs.iter().map(due_by).sum()), "{ns}");
            }
        }
    }

    /// Also where each frame must be walked to, and asked about what was long ago it is right as long as that is not
    /// before both moments that are remembered.
    #[test]
    fn what_was_due_a_moment_ago_is_what_was_said_then() {
        let mut intended = Intended::of(&[job(uneven()), job(uneven())]);
        let (mut said, mut at) = (Vec::new(), 0);
        for step in [1, 7_000_000, 100_000_000, 100_000_001, 399_999_999, 400_000_000, 3, 900_000_000] {
            at += step;
            said.push((at, intended.by(at)));
            let known = said.iter().rev().find(|(before, _)| *before + 10 * engine::GRACE_NS <= at);
            for (before, due) in known.into_iter().chain(said.last()) {
                assert_eq!(intended.was_by(*before), *due, "{before} at {at}");
            }
        }
        assert!(said.last().is_some_and(|(_, due)| *due > Some(400_000)), "{said:?}");
    }

    #[test]
    fn the_end_of_a_run_is_when_the_next_frame_would_be_due() {
        for program in [uneven(), uneven().with_schedule(Schedule::Frames { frames: 7, per_ns: 1_000_003 })] {
            let dues = dues(&program, 1001).expect("paced");
            assert_eq!(time_of(&job(program), 1000), dues.last().copied());
        }
        assert_eq!(time_of(&job(uneven().with_schedule(Schedule::TopSpeed)), 5), None);
    }

    #[test]
    fn at_top_speed_nothing_is_due() {
        let mut intended = Intended::of(&[job(uneven().with_schedule(Schedule::TopSpeed))]);
        assert!(!intended.is_paced());
        assert_eq!(intended.by(1_000_000), None);
    }
}
