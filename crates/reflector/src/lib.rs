//! Sends each frame that arrives back where it came from: the far end of a round trip.
//!
//! The work is done by `programs/bpf/reflect.bpf.c`, which says what is turned round and what is not. The program is
//! attached for as long as a [`Reflector`] lives, and goes with its process, however that ends. `netdyno reflect` calls it.
//! With [`Options::stamp`] it is another program that answers STAMP test packets and nothing else ([`stamp`]).

#![deny(missing_docs, clippy::missing_errors_doc)]

mod counters;
mod loader;
mod options;
#[cfg(test)]
mod reference;
mod reflector;
pub mod stamp;
#[cfg(test)]
mod tests;

pub use bpf::ProgramError;
pub use counters::Reflected;
pub use options::{Mode, Options};
pub use reflector::Reflector;
