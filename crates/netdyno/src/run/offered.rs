//! What the schedules asked for: how many frames were due by a moment, and when each was.

use engine::Job;
use engine::source::Source;
use std::sync::Arc;
use traffic::program::Lane;
use traffic::schedule::{Cursor, Position};
use traffic::{Executor, Program, Schedule, Stream};

/// How many frames have been due, over all workers and all lanes of each.
pub struct Offered {
    /// `None`: only the sender knows, or there is no schedule.
    lanes: Option<Vec<DueLane>>,
    paced: bool,
}

struct DueLane {
    start_ns: u64,
    most: u64,
    due: Due,
}

enum Due {
    /// By formula.
    Formula(Schedule),
    /// By walking the lane: a rate in bits and frames of different lengths.
    Walk { alone: Box<Program>, n: u64, position: Position },
}

impl Offered {
    /// What the workers' jobs ask for together.
    pub fn of(jobs: &[Job]) -> Offered {
        let mut all = Offered { lanes: Some(Vec::new()), paced: false };
        for job in jobs {
            let (lanes, paced) = match &job.source {
                Source::Stream(stream) => {
                    let formula = match stream.schedule() {
                        schedule @ Schedule::Frames { .. } => Some(vec![DueLane {
                            start_ns: 0,
                            most: u64::MAX,
                            due: Due::Formula(schedule.clone()),
                        }]),
                        _ => None,
                    };
                    (formula, stream.is_paced())
                }
                Source::Program(program) => {
                    let lanes = (0..program.lanes.len()).map(|lane| DueLane::of(program, lane)).collect();
                    (lanes, program.is_paced())
                }
            };
            all.paced |= paced;
            all.lanes = all.lanes.zip(lanes).map(|(mut before, lanes): (Vec<_>, Vec<_>)| {
                before.extend(lanes);
                before
            });
        }
        all
    }

    /// Is there a schedule?
    pub fn is_paced(&self) -> bool {
        self.paced
    }

    /// Frames due within `ns` of the start. Times must not go back.
    pub fn by(&mut self, ns: u64) -> Option<u64> {
        let lanes = self.lanes.as_mut().filter(|_| self.paced)?;
        lanes.iter_mut().map(|lane| lane.by(ns)).sum()
    }
}

impl DueLane {
    /// `None` at top speed.
    fn of(program: &Program, number: usize) -> Option<DueLane> {
        let lane = &program.lanes[number];
        let due = match &lane.schedule {
            Schedule::TopSpeed => return None,
            Schedule::Bits { bits_per_second, overhead_bytes } => {
                let alone = alone(program, lane);
                match alone.only_length() {
                    Some(length) => Due::Formula(Schedule::Frames {
                        frames: *bits_per_second,
                        per_ns: u64::from(length + overhead_bytes) * 8 * 1_000_000_000,
                    }),
                    None => Due::Walk { alone: Box::new(alone), n: 0, position: Position::default() },
                }
            }
            schedule => Due::Formula(schedule.clone()),
        };
        Some(DueLane { start_ns: lane.start_ns, most: lane.frames.unwrap_or(u64::MAX), due })
    }

    fn by(&mut self, ns: u64) -> Option<u64> {
        let Some(ns) = ns.checked_sub(self.start_ns) else { return Some(0) };
        let due = match &mut self.due {
            Due::Formula(schedule) => schedule.frames_due_by(ns)?,
            Due::Walk { alone, n, position } => {
                let mut executor = Executor::new(alone).ok()?;
                executor.seek(*n);
                while position.due <= ns && *n < self.most {
                    position.advance(&alone.lanes[0].schedule, executor.next_length());
                    executor.skip();
                    *n += 1;
                }
                *n
            }
        };
        Some(due.min(self.most))
    }
}

/// A lane as a program of its own.
fn alone(program: &Program, lane: &Lane) -> Program {
    let mut streams: Vec<Stream> = Vec::new();
    let mut numbers: Vec<u32> = Vec::new();
    let order: Vec<u32> = lane
        .order
        .iter()
        .map(|stream| {
            let known = numbers.iter().position(|number| number == stream);
            known.unwrap_or_else(|| {
                numbers.push(*stream);
                streams.push(program.streams[*stream as usize].clone());
                numbers.len() - 1
            }) as u32
        })
        .collect();
    Program { streams, lanes: vec![Lane { order: Arc::from(order), ..lane.clone() }] }
}

/// When frame `n` of a job is due, where that has a closed form or can be added up in a moment: then it is where a run
/// of `n` frames ends.
pub fn time_of(job: &Job, n: u64) -> Option<u64> {
    let (schedule, start_ns) = match &job.source {
        Source::Stream(stream) => match stream.schedule() {
            schedule @ Schedule::Frames { .. } => (schedule, 0),
            _ => return None,
        },
        Source::Program(program) => match &program.lanes[..] {
            [lane] => (&lane.schedule, lane.start_ns),
            _ => return None,
        },
    };
    let after = match (schedule, &job.source) {
        (Schedule::TopSpeed, _) => return None,
        (Schedule::Bits { bits_per_second, overhead_bytes }, Source::Program(program)) => {
            let bits = (bytes_before(program, n)? + u128::from(n) * u128::from(*overhead_bytes)) * 8;
            u64::try_from(bits * 1_000_000_000 / u128::from(*bits_per_second)).ok()?
        }
        _ => {
            let mut cursor = schedule.cursor();
            cursor.seek(n, |_| 0);
            cursor.due()
        }
    };
    start_ns.checked_add(after)
}

/// Frames whose lengths are added up one by one; more would be felt as a pause.
const WALK: u64 = 20_000_000;

/// Bytes of the first `n` frames of a program of one lane; `None` if that would take too long to find out.
fn bytes_before(program: &Program, n: u64) -> Option<u128> {
    if let Some(length) = program.only_length() {
        return Some(u128::from(n) * u128::from(length));
    }
    let mut executor = Executor::new(program).ok()?;
    let (mut whole, mut rest) = (0, n);
    if let [stream] = &program.streams[..]
        && stream.is_captured()
    {
        let pass = stream.templates.len() as u64;
        whole = u128::from(n / pass) * u128::from(stream.templates.total_bytes());
        rest = n % pass;
    }
    if rest > WALK {
        return None;
    }
    for _ in 0..rest {
        whole += u128::from(executor.next_length());
        executor.skip();
    }
    Some(whole)
}

/// When each of the first `n` frames of a program is due, in order. `None` at top speed.
pub fn dues(program: &Program, n: usize) -> Option<Vec<u64>> {
    let lanes: Vec<Program> = program.lanes.iter().map(|lane| alone(program, lane)).collect();
    let mut walks: Vec<Walk<'_>> = lanes.iter().map(Walk::new).collect::<Option<_>>()?;
    let mut dues = Vec::with_capacity(n);
    while dues.len() < n {
        // Of those due at once the lower lane's first, as they are sent; min_by_key takes the first.
        let Some((lane, due)) = walks
            .iter()
            .enumerate()
            .filter_map(|(i, walk)| Some((i, walk.due()?)))
            .min_by_key(|(_, due)| *due)
        else {
            break;
        };
        dues.push(due);
        walks[lane].advance();
    }
    Some(dues)
}

/// Walks one lane's times.
struct Walk<'p> {
    cursor: Cursor<'p>,
    /// Where times depend on lengths.
    lengths: Option<Executor<'p>>,
    start_ns: u64,
    left: u64,
}

impl<'p> Walk<'p> {
    /// `alone` has one lane.
    fn new(alone: &'p Program) -> Option<Walk<'p>> {
        let lane = alone.lanes.first().filter(|lane| lane.schedule.is_paced())?;
        let lengths = match lane.schedule {
            Schedule::Bits { .. } => Some(Executor::new(alone).ok()?),
            _ => None,
        };
        Some(Walk {
            cursor: lane.schedule.cursor(),
            lengths,
            start_ns: lane.start_ns,
            left: lane.frames.unwrap_or(u64::MAX),
        })
    }

    fn due(&self) -> Option<u64> {
        let more = self.left > 0 && !self.cursor.at_end();
        more.then(|| self.start_ns.saturating_add(self.cursor.due()))
    }

    fn advance(&mut self) {
        let length = self.lengths.as_mut().map_or(0, |executor| {
            let length = executor.next_length();
            executor.skip();
            length
        });
        self.cursor.advance(length);
        self.left -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use traffic::Lengths;

    fn job(program: Program) -> Job {
        Job {
            source: Source::Program(Arc::new(program)),
            count: None,
            duration: None,
            catch_up: 2.0,
            spin: false,
        }
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
            let mut offered = Offered::of(&jobs);
            assert!(offered.is_paced());
            for ns in [0, 1, 499, 500, 40_000, 1_000_000, 7_654_321] {
                let due_by = |job: &Job| {
                    let Source::Program(program) = &job.source else { panic!("a program") };
                    let dues = dues(program, 30_000).expect("paced");
                    assert!(dues.is_sorted());
                    dues.iter().filter(|due| **due <= ns).count() as u64
                };
                assert_eq!(offered.by(ns), Some(jobs.iter().map(due_by).sum()), "{ns}");
            }
        }
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
        let mut offered = Offered::of(&[job(uneven().with_schedule(Schedule::TopSpeed))]);
        assert!(!offered.is_paced());
        assert_eq!(offered.by(1_000_000), None);
    }
}
