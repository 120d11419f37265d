//! The engine that sends nothing: what is left is the cost of making frames.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use port::tx::{Tx, TxBuffers, TxCounters, TxError};
use traffic::executor::BATCH;

/// Counts frames and forgets them.
#[derive(Debug)]
pub struct NullTx {
    bytes: Vec<u8>,
    stride: usize,
    held: Vec<u64>,
    lengths: Vec<u32>,
    counters: TxCounters,
}

impl NullTx {
    /// For frames of up to `longest` bytes.
    pub fn new(longest: usize) -> NullTx {
        let stride = (longest.div_ceil(64) | 1) * 64;
        NullTx {
            bytes: vec![0; stride * BATCH],
            stride,
            held: vec![0; BATCH],
            lengths: vec![0; BATCH],
            counters: TxCounters::default(),
        }
    }
}

impl Tx for NullTx {
    fn bound(&mut self, _stop: Arc<AtomicBool>, _deadline: Option<Instant>) {}

    fn batch(&self) -> usize {
        BATCH
    }

    fn buffers(&mut self) -> TxBuffers<'_> {
        TxBuffers {
            bytes: &mut self.bytes,
            stride: self.stride,
            held: &mut self.held,
            lengths: &mut self.lengths,
        }
    }

    fn send(&mut self, count: usize, _due: &[u64]) -> Result<(), TxError> {
        self.counters.frames += count as u64;
        self.counters.bytes += self.lengths[..count].iter().map(|&l| u64::from(l)).sum::<u64>();
        Ok(())
    }

    fn drain(&mut self) -> Result<(), TxError> {
        Ok(())
    }

    fn counters(&self) -> TxCounters {
        self.counters
    }
}
