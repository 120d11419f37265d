//! Measures what arrives at an interface: counts, sizes, and for frames that carry a [`wire::signature`] the loss,
//! order and latency of each stream. It draws no conclusions; `measure`, `replay --measure` and the searches call it.
//! Beside it stands the [`Reflector`], the other end of a round trip: it sends back what arrives, and the [`forward::Forwarder`],
//! which sends it on by another interface.
//!
//! ```text
//!   bpf/meter.bpf.c  --loader-->  per-CPU arrays, mapped  --.
//!   (native or generic XDP)                                  \
//!                                                             >--  Meter: snapshot, streams, finish
//!   packet socket  --ring-->  Tracker (the same in Rust)  ---/
//! ```
//!
//! XDP counts in the kernel, before the network stack, at the rates the generator sends. Where it is not possible the
//! meter falls back to a packet socket and says why ([`Meter::reason`]). Both keep the same numbers by the same rules
//! (`layout`, `tracker`), and a property test runs them against each other.

#[cfg(test)]
mod across;
mod attach;
pub mod clock;
pub mod content;
mod error;
pub mod forward;
pub mod hardware;
mod layout;
mod loader;
mod mapping;
mod measurement;
mod meter;
#[cfg(test)]
mod order;
pub mod reflector;
mod ring;
#[cfg(test)]
mod runs;
mod seen;
mod socket;
mod tracker;
#[cfg(test)]
mod twin;

pub use error::MeterError;
pub use forward::Forwarder;
pub use hardware::{Comparison, Hardware, Stamps};
pub use histogram::{Bucket, Histogram};
pub use layout::{HISTOGRAM_BYTES, STREAM_BYTES};
pub use measurement::{Latency, Measurement, SIZE_CLASSES, Snapshot, StreamStats};
pub use meter::{Action, Clock, Meter, Mode, Options, settle};
pub use reflector::Reflector;
pub use tracker::{Tracker, Wanted};
