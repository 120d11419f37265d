//! A place that frames leave through, seen from the sending loop.
//!
//! A sender lends buffers, the loop writes frames into them, the sender sends them in order. The buffers are the
//! sender's own (a slab for a socket, a ring, later an AF_XDP UMEM) so that no frame is copied on its way to one; a
//! buffer comes back as it was left, and `held` beside it lets the loop note what stands in it.

use crate::departures::Departures;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// Buffers lent for the next frames: buffer `i` is `bytes[i * stride..][..stride]`.
#[derive(Debug)]
pub struct TxBuffers<'a> {
    /// All buffers.
    pub bytes: &'a mut [u8],
    /// From one buffer to the next.
    pub stride: usize,
    /// A note of the loop's for each buffer. A sender sets it to 0 whenever anybody else may have changed the bytes.
    pub held: &'a mut [u64],
    /// How long the frame in each buffer is: written by the loop before [`Tx::send`].
    pub lengths: &'a mut [u32],
}

/// What became of the frames given to a sender.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TxCounters {
    /// Accepted by the kernel.
    pub frames: u64,
    /// Bytes of those, without FCS.
    pub bytes: u64,
    /// Refused for good and passed over.
    pub failed: u64,
    /// Bytes of the refused ones.
    pub failed_bytes: u64,
    /// Tried again because the driver's ring was full.
    pub retried_enobufs: u64,
    /// Tried again because the socket's buffer was full.
    pub retried_eagain: u64,
}

impl TxCounters {
    /// Adds what another sender counted.
    pub fn add(&mut self, other: &TxCounters) {
        self.frames += other.frames;
        self.bytes += other.bytes;
        self.failed += other.failed;
        self.failed_bytes += other.failed_bytes;
        self.retried_enobufs += other.retried_enobufs;
        self.retried_eagain += other.retried_eagain;
    }
}

/// Why sending ended.
#[derive(Debug, thiserror::Error)]
pub enum TxError {
    /// The interface went down.
    #[error(
        "{0} went down while frames were being sent; bring it up with `ip link set {0} up` and start again"
    )]
    Down(String),
    /// The interface is no longer there.
    #[error("{0} disappeared while frames were being sent")]
    Gone(String),
    /// Nothing was accepted for too long.
    #[error(
        "{0} accepted no frame for {1} ms: its transmit queue is stuck (a paused or disconnected link?); see `ip -s link show {0}`"
    )]
    Stuck(String, u64),
    /// Frames accepted by the kernel had not left when the wait for them ended.
    #[error("{bytes} bytes of frames that {interface} accepted had not left after {waited_ms} ms")]
    NotDrained {
        /// The interface.
        interface: String,
        /// Still queued.
        bytes: u64,
        /// For how long that was waited.
        waited_ms: u64,
    },
    /// The run was stopped, or its time was over, while frames waited for room.
    #[error("stopped while frames waited for room in the queue of {0}")]
    Stopped(String),
    /// The driver refused a frame of the ring.
    #[error("{0} refused a frame in the shared ring: use `.engine` packet")]
    Refused(String),
    /// Not permitted.
    #[error("sending on {0} needs CAP_NET_RAW: run with sudo")]
    Permission(String),
    /// Anything else.
    #[error("{what} on {interface}: {source}")]
    Io {
        /// The call that failed.
        what: &'static str,
        /// The interface.
        interface: String,
        /// What the kernel said.
        source: io::Error,
    },
}

/// Sends frames.
pub trait Tx {
    /// What ends a wait for room: a request to stop, or the end of the run's time. Without it only the sender's own
    /// patience does.
    fn bound(&mut self, stop: Arc<AtomicBool>, deadline: Option<Instant>);

    /// The most frames that make a batch.
    fn batch(&self) -> usize;

    /// Buffers for the next batch, at least one and at most [`Tx::batch`].
    fn buffers(&mut self) -> TxBuffers<'_>;

    /// Sends the frames in the first `count` buffers, in order. `due` has the time each was to leave at, in
    /// nanoseconds after the run's start, for senders that write it down.
    ///
    /// # Errors
    /// That the interface is away or down, or that the kernel took none of them for another reason.
    fn send(&mut self, count: usize, due: &[u64]) -> Result<(), TxError>;

    /// Waits until the kernel is done with everything that was accepted. Only then it counts as sent.
    ///
    /// # Errors
    /// That the kernel kept frames for too long, or as [`Tx::send`].
    fn drain(&mut self) -> Result<(), TxError>;

    /// What became of the frames so far.
    fn counters(&self) -> TxCounters;

    /// Stamps of frames as they left, of a sender that asks for them.
    fn departures(&mut self) -> Option<&mut Departures> {
        None
    }
}
