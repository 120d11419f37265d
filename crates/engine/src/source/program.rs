//! Frames of a program.

use super::{Frames, SourceError};
use crate::clock;
use traffic::{Buffers, Executor, Program};

/// Walks a program.
#[derive(Debug)]
pub struct ProgramSource<'p> {
    executor: Executor<'p>,
    paced: bool,
}

impl<'p> ProgramSource<'p> {
    /// From frame 0.
    pub fn new(program: &'p Program) -> Result<ProgramSource<'p>, SourceError> {
        Ok(ProgramSource { executor: Executor::new(program)?, paced: program.is_paced() })
    }
}

impl Frames for ProgramSource<'_> {
    fn next_due(&mut self) -> Result<Option<u64>, SourceError> {
        Ok(self.executor.next_due())
    }

    fn side(&mut self) -> u8 {
        self.executor.next_side()
    }

    fn fill(
        &mut self,
        buffers: &mut Buffers<'_>,
        max: usize,
        until: u64,
        due: &mut [u64],
    ) -> Result<usize, SourceError> {
        Ok(self.executor.render_due(buffers, max, until, due, clock::stamp))
    }

    fn end(&mut self) -> u64 {
        self.executor.end()
    }

    fn is_paced(&self) -> bool {
        self.paced
    }
}
