//! What yields frames, and what is known of it before it does.

use super::{Seen, SourceError};
use crate::Overdue;
use crate::clock::Clock;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;
use traffic::{Buffers, Program, Schedule};

/// What is known of a source before its first frame.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// Its frames have times; else they leave as fast as it goes.
    pub paced: bool,
    /// Frame *n* is due where its schedule has the *n*-th, whatever the frames are, and there is no last one.
    pub is_formula: bool,
    /// Frames in all, where that is known.
    pub frames: Option<u64>,
    /// Length of the longest frame in bytes, without FCS; `None`: whatever the interface takes.
    pub longest: Option<usize>,
    /// The stream numbers that signatures of its frames may have.
    pub streams: Vec<u32>,
    /// Each frame has a signature.
    pub all_signed: bool,
    /// Flows are among what it counts ([`Seen`]).
    pub counts_flows: bool,
}

impl Facts {
    /// Those of a program.
    pub(super) fn of(program: &Program) -> Facts {
        let signed = |stream: &traffic::Stream| stream.signature.is_some() && !stream.is_captured();
        Facts {
            paced: program.is_paced(),
            is_formula: false,
            frames: None,
            longest: Some(program.longest() as usize),
            streams: program.streams.iter().filter_map(|stream| stream.signature).collect(),
            all_signed: program.streams.iter().all(signed),
            counts_flows: false,
        }
    }
}

/// Yields frames in order, each with its time, a batch at a time.
///
/// The sending thread calls it, and waits meanwhile: what takes long in here makes frames late. Times are nanoseconds from
/// the start of the run, and never decrease. [`Sequence`](super::Sequence) makes one of any iterator.
pub trait Frames: fmt::Debug + Send {
    /// What is known of its frames. The same whenever it is asked.
    fn facts(&self) -> Facts;

    /// The schedule that its frames follow, if it is one that [`Schedule`] can say.
    fn schedule(&self) -> Option<&Schedule> {
        None
    }

    /// When the next frame is due; `None` when there is none.
    ///
    /// # Errors
    /// There is none because something is wrong. What was yielded before is sent all the same.
    fn next_due(&mut self) -> Result<Option<u64>, SourceError>;

    /// Which port the next frame leaves by, counted from 0. Called after [`Frames::next_due`] or for a source without times.
    /// Of a run with one interface nobody asks.
    fn port(&mut self) -> u8 {
        0
    }

    /// Writes the next frames into the first of `buffers`: at most `max`, only those due by `until`, and only up to where
    /// the port changes. Notes when each is due. Returns how many; 0 only if there is none or none is due.
    ///
    /// Frame *i* goes to `bytes[i * stride..]`, its length to `lengths[i]`, and `held[i]` becomes
    /// [`NOTHING`](traffic::executor::NOTHING).
    ///
    /// # Errors
    /// As of [`Frames::next_due`], and only before the first frame.
    fn fill(
        &mut self,
        buffers: &mut Buffers<'_>,
        max: usize,
        until: u64,
        due: &mut [u64],
    ) -> Result<usize, SourceError>;

    /// When a further frame would have been due, behind the last one.
    fn end(&mut self) -> u64;

    /// Lets frames leave by `schedule` instead of their own times. Asked before the first frame. False: it cannot.
    fn pace(&mut self, schedule: Schedule) -> bool {
        let _ = schedule;
        false
    }

    /// Lets frames with room for it carry a signature of this stream. Asked before the first frame. False: it cannot.
    fn sign(&mut self, stream: u32) -> bool {
        let _ = stream;
        false
    }

    /// Lets the signatures that it writes carry times of `clock`. Told before the first frame.
    fn stamp_by(&mut self, clock: Clock) {
        let _ = clock;
    }

    /// What it counted of the frames that it yielded; `None`: nothing.
    fn seen(&self) -> Option<&Seen> {
        None
    }

    /// Nothing is waited for any longer than until `at_ns` of [`clock::now`](crate::clock::now).
    fn until(&mut self, at_ns: u64) {
        let _ = at_ns;
    }

    /// The last `frames` of those filled in last were not sent: what is counted of them is no more.
    fn give_back(&mut self, frames: usize) {
        let _ = frames;
    }

    /// What worker number `worker` of `of` sends: every frame is sent by exactly one of them. Asked before the first frame.
    /// `None`: these frames have one reader.
    fn share(&self, worker: u32, of: u32) -> Option<Result<Box<dyn Frames>, SourceError>> {
        let _ = (worker, of);
        None
    }

    /// How many further frames are due by `until`, where nobody else can know; it looks at `most` at most, and not for much
    /// longer than until `deadline`. The source is of no use afterwards.
    fn overdue(&mut self, until: u64, most: u64, deadline: Instant) -> Option<Overdue> {
        let _ = (until, most, deadline);
        None
    }
}

/// The frames of a job: a program, or whatever yields frames.
#[derive(Debug)]
pub struct Source(Kind);

#[derive(Debug)]
pub(crate) enum Kind {
    /// Frames that follow from their number: an expression, a preloaded capture.
    Program(Arc<Program>),
    /// A capture read while it is sent, or what others yield.
    Frames(Box<dyn Frames>),
}

impl From<Arc<Program>> for Source {
    fn from(program: Arc<Program>) -> Source {
        Source(Kind::Program(program))
    }
}

impl From<Program> for Source {
    fn from(program: Program) -> Source {
        Source::from(Arc::new(program))
    }
}

impl<F: Frames + 'static> From<F> for Source {
    fn from(frames: F) -> Source {
        Source(Kind::Frames(Box::new(frames)))
    }
}

impl Source {
    /// For the sending loop, which is compiled for programs by themselves.
    pub(crate) fn kind(&mut self) -> &mut Kind {
        &mut self.0
    }

    /// The program, of frames that follow from their number: then any number of cores can share them, and the kernel can make
    /// them.
    pub fn program(&self) -> Option<&Arc<Program>> {
        match &self.0 {
            Kind::Program(program) => Some(program),
            Kind::Frames(_) => None,
        }
    }

    /// What is known of its frames.
    pub fn facts(&self) -> Facts {
        match &self.0 {
            Kind::Program(program) => Facts::of(program),
            Kind::Frames(frames) => frames.facts(),
        }
    }

    /// Have its frames times?
    pub fn is_paced(&self) -> bool {
        match &self.0 {
            Kind::Program(program) => program.is_paced(),
            Kind::Frames(frames) => frames.facts().paced,
        }
    }

    /// The one schedule that its frames follow, if there is one.
    pub fn schedule(&self) -> Option<&Schedule> {
        match &self.0 {
            Kind::Program(program) => program.only_schedule(),
            Kind::Frames(frames) => frames.schedule(),
        }
    }

    /// The schedule, where frame *n* is due when that has its *n*-th ([`Facts::is_formula`]). Of programs more is known.
    pub fn formula(&self) -> Option<&Schedule> {
        match &self.0 {
            Kind::Frames(frames) if frames.facts().is_formula => frames.schedule(),
            _ => None,
        }
    }

    /// What it counted of the frames that it yielded. Of a program that is worked out, and nothing is counted.
    pub fn seen(&self) -> Option<&Seen> {
        match &self.0 {
            Kind::Program(_) => None,
            Kind::Frames(frames) => frames.seen(),
        }
    }

    /// What worker number `worker` of `of` sends of frames that are no program. `None`: they have one reader.
    ///
    /// # Errors
    /// There cannot be as many readers.
    pub fn share(&self, worker: u32, of: u32) -> Result<Option<Source>, SourceError> {
        let Kind::Frames(frames) = &self.0 else { return Ok(None) };
        frames.share(worker, of).map(|own| Ok(Source(Kind::Frames(own?)))).transpose()
    }

    /// Lets frames leave by `schedule` instead of their own times. False: it cannot.
    pub fn pace(&mut self, schedule: Schedule) -> bool {
        match &mut self.0 {
            Kind::Program(program) => {
                let own = Arc::unwrap_or_clone(Arc::clone(program));
                *program = Arc::new(own.with_schedule(schedule));
                true
            }
            Kind::Frames(frames) => frames.pace(schedule),
        }
    }

    /// Lets frames with room for it carry a signature of `stream`. False: it cannot. A program is compiled with its signatures
    /// or without.
    pub fn sign(&mut self, stream: u32) -> bool {
        match &mut self.0 {
            Kind::Program(program) => program.streams.iter().all(|stream| stream.signature.is_some()),
            Kind::Frames(frames) => frames.sign(stream),
        }
    }
}
