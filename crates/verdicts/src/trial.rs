//! A program run over one frame after another, by BPF_PROG_TEST_RUN: at no interface, and nothing is sent.
//!
//! Frames are first judged, each once and in order, so that a program that keeps state sees them as they came. Only then is timed: the
//! kernel's repetition runs the program again over the frame as it left it, and changes its state.

use bpf::{Program, Run};
use rustix::io::Errno;

/// Frames that are timed are so many at most: each n-th.
const TIMED: usize = 1_000;
/// A frame that the program changes is not the same the second time: it is timed by so many single runs.
const SINGLY: u32 = 100;

/// What a program said of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// Its verdict.
    pub verdict: u32,
    /// The frame as the program left it.
    pub frame: Vec<u8>,
    /// That is another one than it was given.
    pub changed: bool,
}

/// What a frame took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timed {
    /// Its verdict, when it was judged.
    pub verdict: u32,
    /// Nanoseconds of each of the runs.
    pub ns: u32,
    /// By single runs, which the reading of the clock is part of.
    pub singly: bool,
}

/// Judges frames, and keeps some to be timed.
#[derive(Debug)]
pub struct Trial<'p> {
    program: &'p Program,
    kept: Vec<Kept>,
    seen: u64,
    /// Each so many-th is kept.
    stride: u64,
}

#[derive(Debug)]
struct Kept {
    frame: Vec<u8>,
    verdict: u32,
    changed: bool,
}

impl<'p> Trial<'p> {
    /// Of this program.
    pub fn of(program: &'p Program) -> Trial<'p> {
        Trial { program, kept: Vec::new(), seen: 0, stride: 1 }
    }

    /// Runs the program once over a frame.
    ///
    /// # Errors
    /// The kernel does not take such a frame: EINVAL of one that is too short or too long.
    pub fn judge(&mut self, frame: &[u8]) -> Result<Judged, Errno> {
        let ran = self.program.run(Run { give_back: true, ..Run::on(frame) })?;
        let changed = ran.frame != frame;
        if self.seen.is_multiple_of(self.stride) {
            self.kept.push(Kept { frame: frame.to_vec(), verdict: ran.verdict, changed });
        }
        self.seen += 1;
        if self.kept.len() > TIMED {
            let mut kept = false;
            self.kept.retain(|_| {
                kept = !kept;
                kept
            });
            self.stride *= 2;
        }
        Ok(Judged { verdict: ran.verdict, frame: ran.frame, changed })
    }

    /// Runs it again over those that were kept, each so often.
    ///
    /// # Errors
    /// As [`judge`](Self::judge).
    pub fn time(&self, repeat: u32) -> Result<Vec<Timed>, Errno> {
        let repeat = repeat.max(1);
        let timed = |kept: &Kept| {
            let once = Run::on(&kept.frame);
            let ns = match kept.changed {
                false => self.program.run(Run { repeat, ..once })?.cost_ns,
                true => {
                    let times = repeat.min(SINGLY);
                    let mut sum = 0;
                    for _ in 0..times {
                        sum += u64::from(self.program.run(once)?.cost_ns);
                    }
                    u32::try_from(sum / u64::from(times)).unwrap_or(u32::MAX)
                }
            };
            Ok(Timed { verdict: kept.verdict, ns, singly: kept.changed })
        };
        self.kept.iter().map(timed).collect()
    }
}
