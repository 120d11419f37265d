//! Bytes in one direction over a connected socket (TCP, Unix).
//!
//! How bytes are sent and received is chosen, because it decides what is measured: [`Send`], [`Receive`].

pub(crate) mod receive;
pub(crate) mod send;
#[cfg(test)]
mod tests;

pub use receive::{Receiving, receive};
pub(crate) use send::ended;
pub use send::{Sending, send};

use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::OwnedFd;

/// How bytes are sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Send {
    /// send(2): the kernel copies them.
    #[default]
    Write,
    /// sendfile(2) from memory (memfd): no copy.
    Sendfile,
    /// splice(2) from memory (memfd) through a pipe: no copy.
    Splice,
    /// MSG_ZEROCOPY: no copy, unless the kernel has to (loopback, veth); [`crate::phase::Done::zerocopy`] says so.
    Zerocopy,
}

/// How bytes are received.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Receive {
    /// recv(2): the kernel copies them.
    #[default]
    Read,
    /// MSG_TRUNC: the kernel drops them. The data is never touched.
    Trunc,
    /// splice(2) through a pipe to /dev/null. The data is never touched.
    Splice,
}

/// Most that one call is asked to move.
pub const MOST: usize = 64 << 20;
/// What a pipe is made to hold.
const PIPE: usize = 1 << 20;

/// A pipe and how much it holds.
fn pipe() -> io::Result<(OwnedFd, OwnedFd, usize)> {
    let (from, into) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    // More than the limit of this user is not given: then it is as it was made.
    let size = rustix::pipe::fcntl_setpipe_size(&into, PIPE).unwrap_or(65_536);
    Ok((from, into, size))
}

/// Bytes that do not compress, the same each time.
pub(crate) fn content(size: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut bytes = Vec::with_capacity(size + 8);
    while bytes.len() < size {
        // xorshift64.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(size);
    bytes
}
