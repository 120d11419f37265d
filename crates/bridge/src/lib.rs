//! Takes frames from one interface to another in user space: what the kernel's own way (the crate `forwarder`) cannot do,
//! which is choosing and editing.
//!
//! ```text
//!  port::rx::Slots --> wholes --> filter --> edit::rewrite --> port::packet
//!  (ring)              (as on     (rules,    (the plan of      (sendmmsg)
//!                      the wire)   BPF)      `netdyno edit`)
//! ```
//!
//! [`relay`] is one direction and runs in a thread of its own; two of them make a bridge. Memory is bounded by the
//! ring and one batch. Every frame that arrives is counted once more: sent, or by the reason why not ([`Relayed`]).
//! Called by `netdyno bridge`, which also keeps the host's own stack from seeing the frames.

#![deny(missing_docs, clippy::missing_errors_doc)]

pub mod filter;
mod relay;
pub mod wholes;

pub use filter::Filter;
pub use relay::{Budget, Job, Relay, RelayError, Relayed, relay};
