//! Where frames come from, in order, each with its time.

mod expiry;
pub mod hooks;
mod input;
pub mod preload;
mod program;
pub mod reading;
pub mod stream;

use crate::Overdue;
use capture::CaptureError;
use std::sync::Arc;
use std::time::Instant;
use traffic::program::BadProgram;
use traffic::{Buffers, Program};

pub use hooks::{Hooks, Loss, Passed};
pub use input::{Input, Sides};
pub use preload::{Loaded, preload};
pub use program::ProgramSource;
pub use reading::{Limit, Oddities, Oversize, Reading, Seam, Selection};
pub use stream::StreamSource;

/// The frames of a job.
#[derive(Debug)]
pub enum Source {
    /// Frames that follow from their number: an expression, a preloaded capture.
    Program(Arc<Program>),
    /// A capture read while it is sent.
    Stream(Box<StreamSource>),
}

/// Why a source cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The capture.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// The program.
    #[error(transparent)]
    Program(#[from] BadProgram),
    /// Not Ethernet.
    #[error(
        "{file}: frame {number} is of {link}, but only Ethernet frames can be sent on an Ethernet interface; `netdyno replay --to-ethernet --src-mac MAC --dst-mac MAC` makes them of raw IP, Linux cooked and other captures"
    )]
    LinkType {
        /// The capture.
        file: String,
        /// The first such frame.
        number: u64,
        /// Its type.
        link: wire::LinkType,
    },
    /// It cannot be edited.
    #[error(transparent)]
    Edit(#[from] edit::rewrite::EditError),
    /// Too long.
    #[error(
        "{file}: frame {number} has {length} bytes, more than the {limit} that fit the interface (MTU {mtu} plus headers); raise the MTU (`ip link set {interface} mtu {need}`) or leave such frames out with --oversize skip"
    )]
    TooLong {
        /// The capture.
        file: String,
        /// The first such frame.
        number: u64,
        /// Its length.
        length: usize,
        /// The most that fits.
        limit: usize,
        /// The interface's MTU.
        mtu: u32,
        /// The MTU that would do.
        need: usize,
        /// The interface.
        interface: String,
    },
    /// Does not fit in memory.
    #[error("{file}: {what}")]
    NotTaken {
        /// The capture.
        file: String,
        /// Why.
        what: traffic::templates::NotTaken,
    },
    /// Does not fit in the memory that there is for it.
    #[error(
        "{files}: the frames take more than the {} MiB of memory that there are for them; let them be read while sending (--stream)",
        most >> 20
    )]
    NoRoom {
        /// The captures.
        files: String,
        /// How much there is.
        most: u64,
    },
    /// A cache file of another capture.
    #[error(
        "{cache} has {entries} entries, but {file} has {packets} packets: it was made from another capture; make it anew (`netdyno tcpprep`)"
    )]
    OtherCache {
        /// The cache file.
        cache: String,
        /// How many packets it knows.
        entries: u64,
        /// The capture.
        file: String,
        /// How many packets that has, as far as it is known.
        packets: String,
    },
    /// Nothing to send.
    #[error("{0} holds no frame that can be sent")]
    Empty(String),
    /// No time in it to keep.
    #[error(
        "{0} has no duration (all its frames have the same time), so it cannot be looped at its own pace: give a --rate, or --topspeed"
    )]
    NoDuration(String),
}

/// Frames in order, for the worker.
pub(crate) trait Frames {
    /// When the next frame is due, from the start; `None` when there is none.
    fn next_due(&mut self) -> Result<Option<u64>, SourceError>;

    /// Which side the next frame leaves on: 0 or 1. Called after [`Frames::next_due`] or for a source without times.
    fn side(&mut self) -> u8;

    /// Writes the next frames into the first of `buffers`: at most `max`, only those due by `until`, and only up to where
    /// the side changes. Notes when each is due. Returns how many; 0 only if there is none or none is due.
    fn fill(
        &mut self,
        buffers: &mut Buffers<'_>,
        max: usize,
        until: u64,
        due: &mut [u64],
    ) -> Result<usize, SourceError>;

    /// When a further frame would have been due, behind the last one.
    fn end(&mut self) -> u64;

    /// Is there a schedule?
    fn is_paced(&self) -> bool;

    /// Nothing is waited for any longer than until `at_ns` of [`clock::now`](crate::clock::now).
    fn until(&mut self, at_ns: u64) {
        let _ = at_ns;
    }

    /// The last `frames` of those filled in last were not sent: what is counted of them is no more.
    fn give_back(&mut self, frames: usize) {
        let _ = frames;
    }

    /// How many further frames are due by `until`, where nobody else can know; it looks at `most` at most, and not for much
    /// longer than until `deadline`. The source is of no use afterwards.
    fn overdue(&mut self, until: u64, most: u64, deadline: Instant) -> Option<Overdue> {
        let _ = (until, most, deadline);
        None
    }
}
