//! A packet socket for questions and answers: whole frames of one EtherType on one interface.

use crate::socket;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Instant;

/// The socket.
#[derive(Debug)]
pub struct Link(OwnedFd);

impl Link {
    /// Receives what is ARP, or else what is IPv6.
    pub fn open(index: u32, arp: bool) -> io::Result<Link> {
        let protocol = if arp { libc::ETH_P_ARP } else { libc::ETH_P_IPV6 };
        let fd = socket::open()?;
        socket::bind(&fd, index, protocol)?;
        Ok(Link(fd))
    }

    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        send(&self.0, frame, SendFlags::empty())?;
        Ok(())
    }

    /// The next frame, or nothing if none comes before `until`.
    pub fn receive<'a>(&self, buffer: &'a mut [u8], until: Instant) -> io::Result<Option<&'a [u8]>> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
            match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&left)) {
                Ok(0) | Err(Errno::INTR) => continue,
                other => other?,
            };
            let (_, length) = match recv(&self.0, &mut *buffer, RecvFlags::DONTWAIT) {
                Err(Errno::AGAIN | Errno::INTR) => continue,
                other => other?,
            };
            return Ok(buffer.get(..length));
        }
    }
}
