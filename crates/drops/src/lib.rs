//! Where the kernel dropped frames, and why.
//!
//! A [`Tracer`] has a BPF program count every frame that the kernel drops, wherever it does that, by function, reason, interface, and
//! what the frame was: one of netdyno's streams, by the signature at its end, or else its protocol and port. Nothing goes to user space
//! for a drop. [`Tracer::read`] yields the counts as [`Row`]s of numbers; [`Names`] has words for them, out of the running kernel's BTF and its
//! symbols, because both differ between kernels.
//!
//! [`beside`] reads what else counts drops: rules of nftables, queueing disciplines, backlogs.
//!
//! What a tracer cannot see: frames that no socket buffer was made for (dropped by a NIC, by a verdict of an XDP program), and those
//! dropped by another machine.

#![deny(missing_docs)]

pub mod beside;
mod btf;
mod counted;
mod error;
mod loader;
mod names;
mod symbols;
#[cfg(test)]
mod tests;

pub use counted::{Cause, Counted, Example, Kind, Row, Tracepoint};
pub use error::DropsError;
pub use loader::{Only, Run, Settings, Tracer, namespace_of_this_thread, not_possible};
pub use names::{Named, Names};
