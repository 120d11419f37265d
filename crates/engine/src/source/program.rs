//! Frames of a program.

use super::{Facts, Frames, SourceError};
use crate::clock::Clock;
use traffic::{Buffers, Executor, Program, Schedule};

/// Walks a program.
#[derive(Debug)]
pub struct ProgramSource<'p> {
    program: &'p Program,
    executor: Executor<'p>,
    stamps: Clock,
}

impl<'p> ProgramSource<'p> {
    /// From frame 0; signatures carry times of the clock `stamps`.
    ///
    /// # Errors
    /// The program contradicts itself.
    pub fn new(program: &'p Program, stamps: Clock) -> Result<ProgramSource<'p>, SourceError> {
        Ok(ProgramSource { program, executor: Executor::new(program)?, stamps })
    }
}

impl Frames for ProgramSource<'_> {
    fn facts(&self) -> Facts {
        Facts::of(self.program)
    }

    fn schedule(&self) -> Option<&Schedule> {
        self.program.only_schedule()
    }

    fn next_due(&mut self) -> Result<Option<u64>, SourceError> {
        Ok(self.executor.next_due())
    }

    fn port(&mut self) -> u8 {
        self.executor.next_port()
    }

    fn fill(
        &mut self,
        buffers: &mut Buffers<'_>,
        max: usize,
        until: u64,
        due: &mut [u64],
    ) -> Result<usize, SourceError> {
        let stamps = self.stamps;
        Ok(self.executor.render_due(buffers, max, until, due, || clocks::now(stamps)))
    }

    fn end(&mut self) -> u64 {
        self.executor.end()
    }
}
