//! Sends each frame that arrives on one of two interfaces out of the other one, in the kernel: a bridge of two ports.
//!
//! The work is done by `programs/bpf/bridge.bpf.c`, which says where it hooks in and what it does to frames (nothing, but for
//! checksums that a veth left unfinished). The programs are attached for as long as a [`Forwarder`] lives,
//! and go with its process, however that ends. [`Hold`] is for bridging in user space: it keeps what arrives from this host's
//! own stack while packet sockets see it. `netdyno bridge` calls both.

#![deny(missing_docs, clippy::missing_errors_doc)]

mod counters;
mod forwarder;
mod loader;
mod options;

pub use bpf::ProgramError;
pub use counters::Counters;
pub use forwarder::{Forwarder, Hold};
pub use options::{Options, Way};
