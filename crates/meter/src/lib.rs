//! Measures what arrives at an interface: counts, sizes, and for frames that carry a [`wire::signature`] the loss,
//! order and latency of each stream. It draws no conclusions; `measure`, `replay --measure` and the searches call it.
//!
//! ```text
//!   meter.bpf.c      --loader-->  per-CPU arrays, mapped  --.
//!   (native or generic XDP)                                  \
//!                                                             >--  Meter: snapshot, streams, finish
//!   port::rx::Blocks  ------>  Tracker (the same in Rust)  --/
//! ```
//!
//! XDP counts in the kernel, before the network stack, at the rates the generator sends. Where it is not possible the
//! meter falls back to a packet socket and says why ([`Meter::reason`]). Both keep the same numbers by the same rules
//! (`layout`, `tracker`), and a property test runs them against each other.

#![deny(missing_docs, clippy::missing_errors_doc)]

#[cfg(test)]
mod across;
pub mod clock;
pub mod content;
mod error;
mod frames;
pub mod hardware;
pub mod heads;
mod layout;
mod loader;
mod measurement;
mod meter;
mod options;
#[cfg(test)]
mod order;
#[cfg(test)]
mod runs;
mod seen;
pub mod segments;
mod socket;
mod tracker;
#[cfg(test)]
mod twin;

pub use bpf::ProgramError;
pub use error::MeterError;
pub use frames::{Capture, Captured, Copied, Copies};
pub use hardware::{Comparison, Hardware, Stamps};
pub use histogram::{Bucket, Histogram};
pub use layout::{HISTOGRAM_BYTES, STREAM_BYTES};
pub use measurement::{Latency, Measurement, SIZE_CLASSES, Snapshot, StreamStats};
pub use meter::{Meter, settle};
pub use options::{Action, Mode, Options};
pub use tracker::{Tracker, Wanted};
