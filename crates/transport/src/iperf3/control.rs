//! A control connection's bytes: read when they are there, written within a time.

use crate::socket;
use endpoint::iperf3::Error;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// What was read at once.
const PIECE: usize = 16 << 10;
/// A peer that takes nothing for so long is gone.
const WRITE: Duration = Duration::from_secs(10);

/// The connection.
#[derive(Debug)]
pub struct Control(TcpStream);

impl Control {
    /// One that is connected.
    pub fn new(stream: TcpStream) -> io::Result<Control> {
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(WRITE))?;
        Ok(Control(stream))
    }

    /// The socket.
    pub fn socket(&self) -> &TcpStream {
        &self.0
    }

    /// Sends all of it.
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.0.write_all(bytes).map_err(|_| Error::Closed)
    }

    /// Sends what matters no longer if it cannot be sent.
    pub fn say(&mut self, bytes: &[u8]) {
        let _ = self.0.write_all(bytes);
    }

    /// What comes within so long; nothing, if nothing does.
    pub fn receive(&mut self, patience: Duration) -> Result<Vec<u8>, Error> {
        if !socket::readable(&self.0, patience).map_err(|_| Error::Closed)? {
            return Ok(Vec::new());
        }
        let mut bytes = vec![0; PIECE];
        match self.0.read(&mut bytes) {
            Ok(0) => Err(Error::Closed),
            Ok(count) => {
                bytes.truncate(count);
                Ok(bytes)
            }
            Err(error) if crate::phase::is_again(&error) => Ok(Vec::new()),
            Err(_) => Err(Error::Closed),
        }
    }
}
