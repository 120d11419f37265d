//! The control connection: messages written and read, with deadlines.

use crate::phase::Stop;
use crate::socket;
use endpoint::netperf::message::Message;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// What waits looks so often whether it is to end.
const LOOK: Duration = Duration::from_millis(50);

/// Sends a message, within so long.
pub fn send(mut control: &TcpStream, message: &Message, patience: Duration) -> io::Result<()> {
    control.set_write_timeout(Some(patience))?;
    control.write_all(message.as_bytes())
}

/// What reading came to.
#[derive(Debug)]
pub enum Read1 {
    /// So many bytes.
    Bytes(usize),
    /// The peer closed.
    Closed,
    /// Nothing for so long.
    Late,
    /// Somebody ended it.
    Stopped,
}

/// Reads what is there, once something is.
pub fn read(mut control: &TcpStream, into: &mut [u8], patience: Duration, stop: &Stop) -> io::Result<Read1> {
    let until = Instant::now() + patience;
    loop {
        if stop.is_set() {
            return Ok(Read1::Stopped);
        }
        let left = until.saturating_duration_since(Instant::now());
        if socket::readable(&control, left.min(LOOK))? {
            return Ok(match control.read(into)? {
                0 => Read1::Closed,
                count => Read1::Bytes(count),
            });
        }
        if left.is_zero() {
            return Ok(Read1::Late);
        }
    }
}

/// Did the peer close, or say something out of turn?
pub fn is_disturbed(control: &TcpStream) -> bool {
    socket::readable(control, Duration::ZERO).unwrap_or(true)
}
