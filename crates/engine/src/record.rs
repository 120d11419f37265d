//! The engine that writes a capture file: each frame with the time it was to leave at.

use capture::{CaptureError, FileWriter};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use port::tx::{Tx, TxBuffers, TxCounters, TxError};

use crate::null::NullTx;

/// Writes frames to a file.
pub struct FileTx {
    buffers: NullTx,
    writer: FileWriter,
    counters: TxCounters,
    /// Time of frame times' zero, nanoseconds since 1970.
    epoch_ns: u64,
    /// At top speed all frames would have the same time: they get this much more than the one before.
    spacing_ns: u64,
    name: String,
}

impl std::fmt::Debug for FileTx {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileTx").field("name", &self.name).finish_non_exhaustive()
    }
}

impl FileTx {
    /// Frames of up to `longest` bytes go to `writer`; `name` is the file's, for messages.
    pub fn new(writer: FileWriter, name: String, longest: usize, epoch_ns: u64, spacing_ns: u64) -> FileTx {
        FileTx {
            buffers: NullTx::new(longest),
            writer,
            counters: TxCounters::default(),
            epoch_ns,
            spacing_ns,
            name,
        }
    }

    /// Completes the file.
    ///
    /// # Errors
    /// What is left cannot be written.
    pub fn finish(self) -> Result<(), CaptureError> {
        self.writer.finish()
    }
}

impl Tx for FileTx {
    fn bound(&mut self, _stop: Arc<AtomicBool>, _deadline: Option<Instant>) {}

    fn batch(&self) -> usize {
        self.buffers.batch()
    }

    fn buffers(&mut self) -> TxBuffers<'_> {
        self.buffers.buffers()
    }

    fn send(&mut self, count: usize, due: &[u64]) -> Result<(), TxError> {
        let buffers = self.buffers.buffers();
        let frames = buffers.bytes.chunks(buffers.stride).zip(buffers.lengths.iter());
        for (i, (bytes, &length)) in frames.take(count).enumerate() {
            let frame = &bytes[..length as usize];
            let offset = due.get(i).copied().unwrap_or(0) + self.counters.frames * self.spacing_ns;
            self.writer.write(self.epoch_ns + offset, frame, length).map_err(|error| TxError::Io {
                what: "writing the capture",
                interface: self.name.clone(),
                source: std::io::Error::other(error),
            })?;
            self.counters.frames += 1;
            self.counters.bytes += u64::from(length);
        }
        Ok(())
    }

    fn drain(&mut self) -> Result<(), TxError> {
        Ok(())
    }

    fn counters(&self) -> TxCounters {
        self.counters
    }
}
