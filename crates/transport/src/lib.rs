//! Endpoint tests over the host's TCP and UDP: sockets with their options, data phases, control connections.
//!
//! What is said over a control connection is crate `endpoint`'s; jobs and drop-ins call the drivers of this crate.

pub mod iperf3;
pub mod netperf;
