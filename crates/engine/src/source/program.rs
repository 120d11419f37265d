//! Frames of a program.

use super::{Frames, SourceError};
use crate::clock;
use traffic::schedule::Cursor;
use traffic::{Buffers, Executor, Program};

/// Walks a program.
#[derive(Debug)]
pub struct ProgramSource<'p> {
    executor: Executor<'p>,
    cursor: Cursor<'p>,
    paced: bool,
    /// Times do not depend on lengths, so those need not be asked for.
    even: bool,
}

impl<'p> ProgramSource<'p> {
    /// From frame 0.
    pub fn new(program: &'p Program) -> Result<ProgramSource<'p>, SourceError> {
        let executor = Executor::new(program)?;
        // The executor takes programs of one lane only.
        let schedule = &program.lanes[0].schedule;
        Ok(ProgramSource {
            executor,
            cursor: schedule.cursor(),
            paced: schedule.is_paced(),
            even: !matches!(schedule, traffic::Schedule::Bits { .. }),
        })
    }
}

impl Frames for ProgramSource<'_> {
    fn next_due(&mut self) -> Result<Option<u64>, SourceError> {
        Ok((!self.cursor.at_end()).then(|| self.cursor.due()))
    }

    fn fill(
        &mut self,
        buffers: &mut Buffers<'_>,
        max: usize,
        until: u64,
        due: &mut [u64],
    ) -> Result<usize, SourceError> {
        let mut count = max.min(due.len());
        if self.paced {
            let most = count;
            count = 0;
            while count < most && !self.cursor.at_end() && self.cursor.due() <= until {
                due[count] = self.cursor.due();
                let length = if self.even { 0 } else { self.executor.length_ahead(count) };
                self.cursor.advance(length);
                count += 1;
            }
        } else {
            due[..count].fill(0);
        }
        Ok(if count == 0 { 0 } else { self.executor.render(buffers, count, clock::now) })
    }

    fn end(&self) -> u64 {
        self.cursor.due()
    }

    fn is_paced(&self) -> bool {
        self.paced
    }
}
