//! A packet socket for questions and answers: whole frames of one EtherType on one interface.
#![allow(unsafe_code, reason = "a link-layer address, which rustix cannot bind to")]

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Instant;

/// The socket.
#[derive(Debug)]
pub struct Link(OwnedFd);

impl Link {
    /// Receives what is ARP, or else what is IPv6.
    pub fn open(index: u32, arp: bool) -> io::Result<Link> {
        let protocol = if arp { libc::ETH_P_ARP } else { libc::ETH_P_IPV6 };
        let protocol = (protocol as u16).to_be();
        // Protocol 0: nothing is received until it is bound to the interface.
        // SAFETY: plain integers.
        let raw = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if raw < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `raw` was just opened and belongs to nobody else.
        let fd = unsafe { OwnedFd::from_raw_fd(raw) };
        let address = libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as u16,
            sll_protocol: protocol,
            sll_ifindex: index as i32,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        // SAFETY: the pointer is to a live sockaddr_ll and its true size is given.
        let bound = unsafe {
            libc::bind(fd.as_raw_fd(), (&raw const address).cast(), size_of::<libc::sockaddr_ll>() as u32)
        };
        if bound < 0 { Err(io::Error::last_os_error()) } else { Ok(Link(fd)) }
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
