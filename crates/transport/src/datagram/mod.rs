//! Datagrams in one direction, over connected UDP sockets.
//!
//! Each begins with a header that its [`Header`] writes and reads: netdyno's own is [`Numbered`]; others' protocols have theirs.

mod receive;
mod send;
mod sequence;
#[cfg(test)]
mod tests;
mod window;

pub use receive::{Receiving, receive};
pub use send::{Sending, send};
pub use sequence::{Arrival, Counts, Sequence};
pub use window::Window;

use std::time::Duration;

/// What a datagram begins with.
pub trait Header {
    /// Its bytes; a datagram is at least as long.
    const LENGTH: usize;
    /// Writes number (0 is the first) and time (since any moment: only differences count) into the first bytes of `into`.
    fn write(&self, into: &mut [u8], number: u64, sent: Duration);
    /// Reads both. None: it is none of ours.
    fn read(&self, from: &[u8]) -> Option<(u64, Duration)>;
}

/// netdyno's: the test's key, the number, the time in ns, big-endian, 8 bytes each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbered {
    /// Others' datagrams do not have it.
    pub key: u64,
}

impl Header for Numbered {
    const LENGTH: usize = 24;

    fn write(&self, into: &mut [u8], number: u64, sent: Duration) {
        let sent = u64::try_from(sent.as_nanos()).unwrap_or(u64::MAX);
        for (place, value) in into.chunks_exact_mut(8).zip([self.key, number, sent]) {
            place.copy_from_slice(&value.to_be_bytes());
        }
    }

    fn read(&self, from: &[u8]) -> Option<(u64, Duration)> {
        let number = |at: usize| from.get(at..at + 8)?.try_into().ok().map(u64::from_be_bytes);
        (number(0)? == self.key).then_some(())?;
        Some((number(8)?, Duration::from_nanos(number(16)?)))
    }
}

/// No header: datagrams are counted by size alone (netperf's UDP_STREAM). What was lost the sender's count tells.
#[derive(Debug, Clone, Copy, Default)]
pub struct Bare;

impl Header for Bare {
    const LENGTH: usize = 0;

    fn write(&self, _: &mut [u8], _: u64, _: Duration) {}

    fn read(&self, _: &[u8]) -> Option<(u64, Duration)> {
        None
    }
}

/// Most bytes of a datagram over IPv4.
pub const MOST: usize = 65_507;
