//! Protocols of endpoint tests, as state machines: bytes and times come in, bytes and what to do come out.
//!
//! No sockets and no clock: crate `transport` has both.

pub mod iperf3;
pub mod native;
pub mod netperf;
