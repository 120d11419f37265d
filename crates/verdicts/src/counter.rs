//! Counts what an XDP program says of frames, by stream: a program at its end (`programs/bpf/verdicts.bpf.c`), and the kernel's
//! statistics of its runs. Who else wants to know, in another process, is told by numbers ([`Watch`]).

use crate::error::VerdictsError;
use bpf::{Program, Quiet, Runs, Statistics};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle};
use programs::verdicts::types::{verdict_count, verdict_key};
use std::collections::BTreeMap;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};

/// Rows that are told apart: interface, stream and verdict.
const ROWS: u32 = 16_384;
const _: () = assert!(size_of::<verdict_key>() == 16 && size_of::<verdict_count>() == 16);

/// Frames of one verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    /// The interface that they came in by.
    pub ifindex: u32,
    /// Of frames with a signature.
    pub stream: Option<u32>,
    /// What was said of them.
    pub verdict: u32,
    /// They lay in several buffers, whose end is not looked at: of which stream they are is not known.
    pub unread: bool,
}

/// What was counted up to now, or in a while.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counted {
    /// Frames of each row.
    pub rows: BTreeMap<Row, u64>,
    /// All frames, by verdict; what is none is the last one.
    pub totals: [u64; 6],
    /// The program's runs, by the kernel's statistics. Counting is a part of that time.
    pub runs: Runs,
    /// How often it ran while verdicts were counted: at least and at most, for it may run while counters are read.
    pub runs_between: (u64, u64),
    /// What counting took of that.
    pub counting_ns: u64,
}

impl Counted {
    /// What came since `earlier`.
    pub fn since(&self, earlier: &Counted) -> Counted {
        let more = |(row, frames): (&Row, &u64)| {
            let more = frames.saturating_sub(earlier.rows.get(row).copied().unwrap_or(0));
            (more > 0).then_some((*row, more))
        };
        let mut totals = self.totals;
        for (now, before) in totals.iter_mut().zip(earlier.totals) {
            *now = now.saturating_sub(before);
        }
        Counted {
            rows: self.rows.iter().filter_map(more).collect(),
            totals,
            runs: Runs {
                count: self.runs.count.saturating_sub(earlier.runs.count),
                ns: self.runs.ns.saturating_sub(earlier.runs.ns),
            },
            runs_between: (
                self.runs_between.0.saturating_sub(earlier.runs_between.1),
                self.runs_between.1.saturating_sub(earlier.runs_between.0),
            ),
            counting_ns: self.counting_ns.saturating_sub(earlier.counting_ns),
        }
    }

    /// Nanoseconds for each frame, without those of counting. `None`: the kernel told of no run.
    pub fn ns_per_frame(&self) -> Option<f64> {
        (self.runs.count > 0)
            .then(|| self.runs.ns.saturating_sub(self.counting_ns) as f64 / self.runs.count as f64)
    }

    /// All frames whose verdicts were counted.
    pub fn frames(&self) -> u64 {
        self.totals.iter().sum()
    }
}

/// Counts from its start until it goes.
#[derive(Debug)]
pub struct Counter {
    watch: Watch,
    _link: Option<Link>,
    _statistics: Option<Statistics>,
    /// What could not be done, and why.
    pub notes: Vec<String>,
}

impl Counter {
    /// Counts what this program says, which came out of an object with this function. Where the kernel cannot, a note says so.
    ///
    /// # Errors
    /// That the program's descriptor cannot be duplicated.
    pub fn start(program: &Program, function: &str) -> Result<Counter, VerdictsError> {
        let mut notes = Vec::new();
        let statistics = Statistics::start()
            .map_err(|error| {
                notes.push(format!("the kernel does not tell how long the program runs: {error}"))
            })
            .ok();
        let hung = hang(program, function)
            .map_err(|why| {
                notes.push(format!(
                    "verdicts are not counted: {why}. That needs an object with BTF (clang -g), and Linux 5.10 or newer"
                ));
            })
            .ok();
        let share = program.share();
        let program =
            share.map_err(|error| VerdictsError::System { what: "keeping the XDP program", error })?;
        let (link, counting) = match hung {
            Some((link, counting)) => (Some(link), Some(counting)),
            None => (None, None),
        };
        let watch = Watch { program, counting };
        Ok(Counter { watch, _link: link, _statistics: statistics, notes })
    }

    /// What was counted up to now.
    ///
    /// # Errors
    /// The kernel does not give its tables.
    pub fn read(&self) -> Result<Counted, VerdictsError> {
        self.watch.read()
    }

    /// Verdicts are counted, and not runs alone.
    pub fn counts_verdicts(&self) -> bool {
        self.watch.counts_verdicts()
    }

    /// Numbers by which another process finds the same: [`Watch::by_numbers`].
    pub fn numbers(&self) -> String {
        let id = |program: &Program| program.told().map_or(0, |(id, _)| id);
        let map = |map: &MapHandle| map.info().map_or(0, |info| info.info.id);
        let (counting, verdicts, totals) = match &self.watch.counting {
            Some(Counting { program, verdicts, totals }) => (id(program), map(verdicts), map(totals)),
            None => (0, 0, 0),
        };
        format!("{} {counting} {verdicts} {totals}", id(&self.watch.program))
    }
}

/// Hangs the counting program on the end of another one.
fn hang(program: &Program, function: &str) -> Result<(Link, Counting), String> {
    let _quiet = Quiet::start();
    let failed = |error: libbpf_rs::Error| Quiet::refusal(&format!("{error:#}"));
    let mut storage = MaybeUninit::uninit();
    let mut open = programs::verdicts::VerdictsSkelBuilder::default().open(&mut storage).map_err(failed)?;
    open.maps.verdicts.set_max_entries(ROWS).map_err(failed)?;
    open.progs
        .judged
        .set_attach_target(program.as_fd().as_raw_fd(), Some(function.to_owned()))
        .map_err(failed)?;
    let skeleton = open.load().map_err(failed)?;
    let link = skeleton.progs.judged.attach_trace().map_err(failed)?;
    let kept = |map: &libbpf_rs::MapMut<'_>| MapHandle::try_from(map).map_err(failed);
    let counting = Counting {
        program: Program::keep(skeleton.progs.judged.as_fd()).map_err(|error| error.to_string())?,
        verdicts: kept(&skeleton.maps.verdicts)?,
        totals: kept(&skeleton.maps.totals)?,
    };
    Ok((link, counting))
}

#[derive(Debug)]
struct Counting {
    program: Program,
    verdicts: MapHandle,
    totals: MapHandle,
}

/// Looks at what a [`Counter`] counts, which may be another process's.
#[derive(Debug)]
pub struct Watch {
    program: Program,
    counting: Option<Counting>,
}

impl Watch {
    /// Verdicts are counted, and not runs alone.
    pub fn counts_verdicts(&self) -> bool {
        self.counting.is_some()
    }

    /// By what [`Counter::numbers`] said.
    ///
    /// # Errors
    /// That there is no such program any more, or that this process may not look.
    pub fn by_numbers(numbers: &str) -> Result<Watch, VerdictsError> {
        let system = |error| VerdictsError::System { what: "looking at the lab's XDP program", error };
        let numbers: Option<Vec<u32>> = numbers.split(' ').map(|number| number.parse().ok()).collect();
        let Some([program, counting, verdicts, totals]) = numbers.as_deref() else {
            return Err(system(io::ErrorKind::InvalidInput.into()));
        };
        let by_id = |id: &u32| Program::by_id(*id).map_err(|error| system(error.into()));
        let map = |id: &u32| {
            MapHandle::from_map_id(*id).map_err(|error| system(io::Error::other(format!("{error:#}"))))
        };
        let counting = match counting {
            0 => None,
            _ => Some(Counting { program: by_id(counting)?, verdicts: map(verdicts)?, totals: map(totals)? }),
        };
        Ok(Watch { program: by_id(program)?, counting })
    }

    /// What was counted up to now.
    ///
    /// # Errors
    /// The kernel does not give its tables.
    pub fn read(&self) -> Result<Counted, VerdictsError> {
        let runs = |program: &Program| program.told().map_or(Runs::default(), |(_, runs)| runs);
        let mut counted = Counted { runs: runs(&self.program), ..Counted::default() };
        let Some(Counting { program, verdicts, totals }) = &self.counting else { return Ok(counted) };
        counted.counting_ns = runs(program).ns;
        let reading = |error: libbpf_rs::Error| VerdictsError::System {
            what: "reading what the XDP program said",
            error: io::Error::other(format!("{error:#}")),
        };
        for key in verdicts.keys().take(ROWS as usize) {
            let counts = verdicts.lookup_percpu(&key, MapFlags::ANY).map_err(reading)?.unwrap_or_default();
            counted.rows.insert(row(&key), sum(&counts));
        }
        for (verdict, total) in counted.totals.iter_mut().enumerate() {
            let key = (verdict as u32).to_ne_bytes();
            let counts = totals.lookup_percpu(&key, MapFlags::ANY).map_err(reading)?.unwrap_or_default();
            *total = sum(&counts);
        }
        counted.runs_between = (counted.runs.count, runs(&self.program).count);
        Ok(counted)
    }
}

/// Frames that each CPU counted.
fn sum(counts: &[Vec<u8>]) -> u64 {
    let frames = |count: &Vec<u8>| count.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
    counts.iter().map(frames).sum()
}

fn row(key: &[u8]) -> Row {
    let word = |at: usize| {
        let bytes = key.get(at..).and_then(|rest| rest.first_chunk());
        bytes.map_or(0, |bytes| u32::from_ne_bytes(*bytes))
    };
    let (ifindex, stream, verdict, kind) = (word(0), word(4), word(8), word(12));
    Row { ifindex, stream: (kind == 1).then_some(stream), verdict, unread: kind == 2 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_differences_are_read() {
        let key: Vec<u8> = [3u32, 7, 2, 1].into_iter().flat_map(u32::to_ne_bytes).collect();
        let signed = Row { ifindex: 3, stream: Some(7), verdict: 2, unread: false };
        assert_eq!(row(&key), signed);
        assert_eq!(row(&[]), Row { ifindex: 0, stream: None, verdict: 0, unread: false });
        assert_eq!(sum(&[5u64.to_ne_bytes().to_vec(), 6u64.to_ne_bytes().to_vec(), vec![1]]), 11);
        let counted = |frames: u64| Counted {
            rows: BTreeMap::from([(signed, frames)]),
            totals: [0, 0, frames, 0, 0, 0],
            runs: Runs { count: frames, ns: frames * 50 },
            runs_between: (frames, frames + 1),
            counting_ns: frames * 20,
        };
        let more = counted(30).since(&counted(10));
        assert_eq!(more, Counted { runs_between: (19, 21), ..counted(20) });
        assert_eq!((more.frames(), more.ns_per_frame()), (20, Some(30.0)));
        assert_eq!(counted(5).since(&counted(5)).ns_per_frame(), None);
        assert!(counted(5).since(&counted(5)).rows.is_empty());
    }
}
