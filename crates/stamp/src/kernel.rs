//! What the kernel says of datagrams and of errors that came back for them. Safe to use in any way.

use libc::c_int;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use transport::sys::{self, SO_RXQ_OVFL, set_int};

/// Has the kernel stamp what arrives (SO_TIMESTAMPNS: CLOCK_REALTIME, when the driver or, of veth, the sender's stack hands it over), say what
/// it had no room for, and queue errors that come back.
///
/// # Errors
/// As setsockopt(2).
pub fn tell_all(fd: &impl AsFd, v6: bool) -> io::Result<()> {
    set_int(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
    set_int(fd, libc::SOL_SOCKET, SO_RXQ_OVFL, 1)?;
    match v6 {
        true => set_int(fd, libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1),
        false => set_int(fd, libc::IPPROTO_IP, libc::IP_RECVERR, 1),
    }
}

/// A datagram that arrived, beside its bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Received {
    /// How long it was, maybe longer than the buffer.
    pub length: usize,
    pub from: Option<SocketAddr>,
    /// When the kernel received it, by CLOCK_REALTIME.
    pub at_ns: Option<i64>,
    /// Datagrams that the socket had no room for, since its beginning.
    pub dropped: Option<u32>,
}

/// An error that came back for a datagram (struct sock_extended_err in linux/errqueue.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// Of ICMP (2) or ICMPv6 (3), else of this host.
    pub origin: u8,
    pub kind: u8,
    pub code: u8,
    pub errno: i32,
    /// Who sent it.
    pub by: Option<IpAddr>,
}

/// What arrived next. `None`: nothing.
///
/// # Errors
/// As recvmsg(2).
pub fn receive(fd: &impl AsFd, buffer: &mut [u8]) -> io::Result<Option<Received>> {
    let mut found = Received::default();
    let each = |level: c_int, kind: c_int, data: &[u8]| match (level, kind) {
        (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
            let number = |at| data.get(at..).and_then(<[u8]>::first_chunk).copied().map(i64::from_ne_bytes);
            found.at_ns = number(0)
                .zip(number(8))
                .map(|(seconds, ns): (i64, i64)| seconds.saturating_mul(1_000_000_000).saturating_add(ns));
        }
        (libc::SOL_SOCKET, SO_RXQ_OVFL) => {
            found.dropped = data.first_chunk().copied().map(u32::from_ne_bytes)
        }
        _ => {}
    };
    let Some((length, from)) = sys::message(fd, buffer, libc::MSG_TRUNC, each)? else { return Ok(None) };
    Ok(Some(Received { length, from, ..found }))
}

/// The next error that came back. `None`: there is none.
///
/// # Errors
/// As recvmsg(2).
pub fn refusal(fd: &impl AsFd) -> io::Result<Option<Refusal>> {
    let mut found = Refusal { origin: 0, kind: 0, code: 0, errno: 0, by: None };
    let each = |level, kind, data: &[u8]| {
        // errno, origin, type, code, pad, info, data, and then the address of whom it came from.
        if let (true, Some(head)) = (sys::is_queued_error(level, kind), data.first_chunk::<16>()) {
            found = Refusal {
                errno: i32::from_ne_bytes([head[0], head[1], head[2], head[3]]),
                origin: head[4],
                kind: head[5],
                code: head[6],
                by: data.get(16..).and_then(sys::address).map(|by| by.ip()),
            };
        }
    };
    Ok(sys::message(fd, &mut [0; 64], libc::MSG_ERRQUEUE, each)?.map(|_| found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    /// Without sending anything.
    #[test]
    fn a_socket_that_nothing_came_to_has_nothing() -> io::Result<()> {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        tell_all(&socket, false)?;
        assert!(receive(&socket, &mut [0; 8])?.is_none());
        assert_eq!(refusal(&socket)?, None);
        Ok(())
    }
}
