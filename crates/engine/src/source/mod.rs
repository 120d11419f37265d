//! Where frames come from, in order, each with its time.
//!
//! ```text
//!   Program ---------------> ProgramSource --.
//!   capture, streamed -----> StreamSource ---+-- Frames: facts, next_due, fill --> worker
//!   anybody's iterator ----> Sequence -------|
//!   frames by number ------> Row ------------|
//!   anything else -------------------------- '
//! ```
//!
//! A job has a [`Source`]: a program, of which more is known than that it yields frames, or anything that implements
//! [`Frames`]. Who is not this crate asks for its [`Facts`] and for what it has [`Seen`], and never which of these it is.

mod expiry;
mod frames;
pub mod hooks;
mod input;
mod numbered;
pub mod preload;
mod program;
pub mod reading;
mod seen;
mod sequence;
pub mod stream;

use capture::CaptureError;
use traffic::program::BadProgram;

pub(crate) use frames::Kind;
pub use frames::{Facts, Frames, Source};
pub use hooks::{Hooks, Loss, Passed};
pub use input::{Input, Sides};
pub use numbered::{Numbered, Row};
pub use preload::{Loaded, preload};
pub use program::ProgramSource;
pub use reading::{Limit, Oddities, Oversize, Reading, Seam, Selection};
pub use seen::Seen;
pub use sequence::Sequence;
pub use stream::StreamSource;

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
        "{file}: frame {number} is of {link}, but only Ethernet frames can be sent on an Ethernet interface; `.to_ethernet` makes them of raw IP, Linux cooked and other captures"
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
        "{file}: frame {number} has {length} bytes, more than the {limit} that fit the interface (MTU {mtu} plus headers); raise the MTU (`ip link set {interface} mtu {need}`) or leave such frames out with `.oversize` skip"
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
        "{files}: the frames take more than the {} MiB of memory that there are for them; let them be read while sending (`.preload: false`)",
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
        "{0} has no duration (all its frames have the same time), so it cannot be looped at its own pace: give a `.rate`, or `.rate: top`"
    )]
    NoDuration(String),
    /// Longer than the buffers that frames go into.
    #[error("{source_name}: frame {number} has {length} bytes, and there is room for 1 to {limit}")]
    Outsized {
        /// What the source is called.
        source_name: String,
        /// The frame, from 1.
        number: u64,
        /// Its length in bytes, without FCS.
        length: usize,
        /// The most that there is room for.
        limit: usize,
    },
    /// Each frame is to be signed, and this one cannot be.
    #[error(
        "{source_name}: frame {number} of {length} bytes has no room for a signature of 18 bytes behind its UDP or TCP header: have it made longer, or leave out `.sign`"
    )]
    Unsigned {
        /// What the source is called.
        source_name: String,
        /// The frame, from 1.
        number: u64,
        /// Its length in bytes, without FCS.
        length: usize,
    },
    /// What a source of somebody else's says.
    #[error(transparent)]
    Other(Box<dyn std::error::Error + Send + Sync>),
}
