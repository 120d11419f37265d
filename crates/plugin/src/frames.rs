//! Frames that a guest yields, as a source of the engine: batches of them stay in its memory until they are sent.

use crate::abi::{self, Announced};
use crate::error::PluginError;
use crate::guest::{Compiled, Guest};
use crate::judge;
use engine::source::{Numbered, SourceError};
use std::fmt;
use std::ops::Range;
use wasmtime::TypedFunc;

const CALL: &str = "netdyno_frames";

/// A guest of the world `frames`, opened.
pub struct GuestFrames {
    compiled: Compiled,
    input: String,
    seed: Option<u64>,
    restricted: bool,
    announced: Announced,
    guest: Guest,
    make: TypedFunc<(i64, i64, i32), i64>,
    /// Where in the guest's memory the frames of the last batch are.
    at: Vec<Range<usize>>,
}

impl fmt::Debug for GuestFrames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GuestFrames { guest, announced, .. } = self;
        f.debug_struct("GuestFrames")
            .field("guest", guest)
            .field("announced", announced)
            .finish_non_exhaustive()
    }
}

impl GuestFrames {
    /// Opens one.
    pub fn open(
        compiled: &Compiled,
        input: String,
        seed: Option<u64>,
        restricted: bool,
    ) -> Result<GuestFrames, PluginError> {
        const OPEN: &str = "netdyno_open";
        let mut guest = compiled.guest(seed)?;
        let answer = guest.ask(OPEN, &input)?;
        let announced = match abi::opened(answer).map_err(|bad| guest.invalid(OPEN, bad))? {
            Ok(announced) => announced,
            Err(fault) => return Err(PluginError::Options { name: guest.name().to_owned(), fault }),
        };
        let make = guest.function(CALL)?;
        let at = Vec::with_capacity(abi::MOST_IN_A_BATCH);
        let compiled = compiled.clone();
        Ok(GuestFrames { compiled, input, seed, restricted, announced, guest, make, at })
    }

    /// Makes a batch.
    fn batch(&mut self, first: u64, step: u64, count: usize) -> Result<(), PluginError> {
        self.at.clear();
        let with = (first as i64, step as i64, i32::try_from(count).unwrap_or(i32::MAX));
        let most = self.guest.limits().batch;
        let packed = self.guest.call(CALL, &self.make, with, most)?;
        let (base, _) = abi::unpack(packed);
        let (base, longest) = (base as usize, self.announced.longest as usize);
        let memory = self.guest.memory();
        let at = &mut self.at;
        let walked = abi::returned(memory, packed, abi::MOST_OUTPUT).and_then(|bytes| {
            abi::batch(bytes, count, longest, |_, range| at.push(base + range.start..base + range.end))
        });
        walked.map_err(|bad| self.guest.invalid(CALL, bad))?;
        if self.restricted {
            for range in &self.at {
                let frame = memory.get(range.clone()).unwrap_or_default();
                judge::frame(self.guest.name(), frame)
                    .map_err(|why| PluginError::Destination { name: self.guest.name().to_owned(), why })?;
            }
        }
        Ok(())
    }
}

impl Numbered for GuestFrames {
    fn name(&self) -> &str {
        self.guest.name()
    }

    fn longest(&self) -> usize {
        self.announced.longest as usize
    }

    fn total(&self) -> Option<u64> {
        self.announced.count
    }

    fn load(&mut self, first: u64, step: u64, count: usize) -> Result<(), SourceError> {
        let made = self.batch(first, step, count.min(abi::MOST_IN_A_BATCH));
        made.map_err(|why| {
            self.at.clear();
            SourceError::Other(why.into())
        })
    }

    fn loaded(&self) -> (&[u8], &[Range<usize>]) {
        (self.guest.memory(), &self.at)
    }

    fn again(&self) -> Result<Box<dyn Numbered>, SourceError> {
        let GuestFrames { compiled, input, seed, restricted, .. } = self;
        let opened = GuestFrames::open(compiled, input.clone(), *seed, *restricted)
            .and_then(|other| match other.announced == self.announced {
                true => Ok(other),
                false => Err(other.guest.invalid(
                    "netdyno_open",
                    crate::Invalid::NotAsAsked(
                        "it announces other frames when it is opened again".to_owned(),
                    ),
                )),
            })
            .map_err(|why| SourceError::Other(why.into()))?;
        Ok(Box::new(opened))
    }
}
