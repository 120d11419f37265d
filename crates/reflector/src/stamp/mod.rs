//! A session-reflector of STAMP (RFC 8762, unauthenticated) in XDP; it answers senders of TWAMP Light (RFC 5357 appendix I), too.
//!
//! `programs/bpf/stamp.bpf.c` does the work and says what is answered. It stamps by CLOCK_MONOTONIC and a distance that a
//! thread beside it writes into a map ten times a second, with what is known of the clock's error; it also keeps
//! this host's addresses, and removes sessions that are long silent.

mod clock;
mod counters;
mod keeper;
mod loader;
mod own;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;

pub use counters::Stamped;
pub(crate) use counters::counted;
pub(crate) use keeper::Keeper;
pub(crate) use loader::load;

use std::net::IpAddr;

/// The port that is STAMP's own (RFC 8762 section 4.1).
pub const PORT: u16 = 862;

/// Which test packets to answer, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Those to this UDP port.
    pub port: u16,
    /// Answers have the sender's numbers, not their own.
    pub stateless: bool,
    /// Sessions that are numbered at one time.
    pub sessions: u32,
    /// Packets a second that are answered, at most.
    pub rate: Option<u32>,
    /// Only those from addresses that begin with so many bits of these. Empty: from all.
    pub sources: Vec<(IpAddr, u8)>,
}

impl Default for Options {
    fn default() -> Options {
        Options { port: PORT, stateless: false, sessions: 16_384, rate: None, sources: Vec::new() }
    }
}
