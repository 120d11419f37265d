//! Copies TCP sessions onto another server: what clients said is put in order, and said again over connections of our own.
//!
//! ```text
//!   frame --> packet --> table: sessions, both directions --> events --> replica: what is due now --> the engine's socket
//!                          |  stream: the client's bytes in order          |  causal holds, close, reset
//!                          |  framing: requests and answers                |  exchange: answers beside each other
//!                          '--> funnel: what became of everything <--------'
//! ```
//!
//! No sockets and no clock: frames and times come in, what to do comes out. Sockets are `job`'s.

#![deny(missing_docs, clippy::missing_errors_doc)]

pub mod addresses;
pub mod digest;
pub mod exchange;
pub mod fragments;
pub mod framing;
pub mod funnel;
pub mod packet;
pub mod remote;
pub mod replica;
pub mod sample;
pub mod slab;
pub mod stream;
pub mod table;
