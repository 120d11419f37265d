//! What the kernel says of datagrams, of errors that came back for them, and of its clock: recvmsg(2) with its control messages, and
//! adjtimex(2), which rustix does not have. Safe to use in any way.
#![allow(unsafe_code, reason = "the kernel's interfaces to sockets and to its clock take pointers")]

use libc::{c_int, c_void, socklen_t};
use std::io;
use std::mem::{size_of_val, zeroed};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};

/// asm-generic/socket.h.
const SO_RXQ_OVFL: c_int = 40;
/// An address as the kernel writes it: a sockaddr_in6 has 28 octets.
const ADDRESS: usize = 28;

/// Sets an option that is a number.
///
/// # Errors
/// As setsockopt(2).
pub fn set(fd: &impl AsFd, level: c_int, name: c_int, value: c_int) -> io::Result<()> {
    set_bytes(fd, level, name, &value.to_ne_bytes())
}

/// Takes and sends datagrams by this interface only (SO_BINDTODEVICE).
///
/// # Errors
/// As setsockopt(2).
pub fn bind_to(fd: &impl AsFd, interface: &str) -> io::Result<()> {
    set_bytes(fd, libc::SOL_SOCKET, libc::SO_BINDTODEVICE, interface.as_bytes())
}

fn set_bytes(fd: &impl AsFd, level: c_int, name: c_int, value: &[u8]) -> io::Result<()> {
    let length = value.len() as socklen_t;
    // SAFETY: `value` holds `length` bytes, and the kernel only reads them.
    let done = unsafe {
        libc::setsockopt(fd.as_fd().as_raw_fd(), level, name, value.as_ptr().cast::<c_void>(), length)
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Has the kernel stamp what arrives (SO_TIMESTAMPNS: CLOCK_REALTIME, when the driver or, of veth, the sender's stack hands it over), say what
/// it had no room for, and queue errors that come back.
///
/// # Errors
/// As setsockopt(2).
pub fn tell_all(fd: &impl AsFd, v6: bool) -> io::Result<()> {
    set(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
    set(fd, libc::SOL_SOCKET, SO_RXQ_OVFL, 1)?;
    match v6 {
        true => set(fd, libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1),
        false => set(fd, libc::IPPROTO_IP, libc::IP_RECVERR, 1),
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
    let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
    let each = |level, kind, data: &[u8]| match (level, kind) {
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
    let Some((length, from)) = message(fd, buffer, flags, each)? else { return Ok(None) };
    Ok(Some(Received { length, from, ..found }))
}

/// The next error that came back. `None`: there is none.
///
/// # Errors
/// As recvmsg(2).
pub fn refusal(fd: &impl AsFd) -> io::Result<Option<Refusal>> {
    let mut found = Refusal { origin: 0, kind: 0, code: 0, errno: 0, by: None };
    let each = |level, kind, data: &[u8]| {
        let is_error = (level, kind) == (libc::SOL_IP, libc::IP_RECVERR)
            || (level, kind) == (libc::SOL_IPV6, libc::IPV6_RECVERR);
        // errno, origin, type, code, pad, info, data, and then the address of whom it came from.
        if let (true, Some(head)) = (is_error, data.first_chunk::<16>()) {
            found = Refusal {
                errno: i32::from_ne_bytes([head[0], head[1], head[2], head[3]]),
                origin: head[4],
                kind: head[5],
                code: head[6],
                by: data.get(16..).and_then(address).map(|by| by.ip()),
            };
        }
    };
    let flags = libc::MSG_DONTWAIT | libc::MSG_ERRQUEUE;
    Ok(message(fd, &mut [0; 64], flags, each)?.map(|_| found))
}

/// One recvmsg(2): the length it gave, the address, and each control message.
fn message(
    fd: &impl AsFd,
    buffer: &mut [u8],
    flags: c_int,
    mut each: impl FnMut(c_int, c_int, &[u8]),
) -> io::Result<Option<(usize, Option<SocketAddr>)>> {
    let mut control = [0_u64; 32];
    let mut name = [0_u8; ADDRESS];
    let mut vector = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: all zeroes are a valid msghdr: no pointers, no lengths.
    let mut header: libc::msghdr = unsafe { zeroed() };
    header.msg_name = name.as_mut_ptr().cast();
    header.msg_namelen = ADDRESS as socklen_t;
    header.msg_iov = &raw mut vector;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = size_of_val(&control) as _;
    // SAFETY: `header` names buffers of ours with their lengths, which live until the call returns.
    let got = unsafe { libc::recvmsg(fd.as_fd().as_raw_fd(), &raw mut header, flags) };
    let Ok(length) = usize::try_from(got) else {
        let error = io::Error::last_os_error();
        return if error.kind() == io::ErrorKind::WouldBlock { Ok(None) } else { Err(error) };
    };
    // SAFETY: `header` was filled in by recvmsg, and `control` is still there.
    let mut at = unsafe { libc::CMSG_FIRSTHDR(&raw const header) };
    while !at.is_null() {
        // SAFETY: CMSG_FIRSTHDR and CMSG_NXTHDR yield messages that lie within the control buffer, or null.
        let (one, data) = unsafe { (std::ptr::read_unaligned(at), libc::CMSG_DATA(at)) };
        // SAFETY: CMSG_LEN only computes.
        let head = unsafe { libc::CMSG_LEN(0) } as usize;
        let length = one.cmsg_len.saturating_sub(head);
        // SAFETY: the kernel wrote `length` bytes there; what did not fit it cut, and said a lesser length.
        let data = unsafe { std::slice::from_raw_parts(data, length) };
        each(one.cmsg_level, one.cmsg_type, data);
        // SAFETY: as above.
        at = unsafe { libc::CMSG_NXTHDR(&raw const header, at) };
    }
    let length_of_name = (header.msg_namelen as usize).min(ADDRESS);
    Ok(Some((length, name.get(..length_of_name).and_then(address))))
}

/// A struct sockaddr_in or sockaddr_in6.
fn address(bytes: &[u8]) -> Option<SocketAddr> {
    let family = c_int::from(u16::from_ne_bytes(*bytes.first_chunk()?));
    let port = u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?);
    let ip = match family {
        libc::AF_INET => IpAddr::from(Ipv4Addr::from(*bytes.get(4..)?.first_chunk::<4>()?)),
        libc::AF_INET6 => IpAddr::from(Ipv6Addr::from(*bytes.get(8..)?.first_chunk::<16>()?)),
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

/// What the kernel knows of CLOCK_REALTIME.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// The most by which it may be off UTC, as who keeps it says. `None`: nobody keeps it.
    pub error_ns: Option<u64>,
    /// How far TAI is ahead of UTC; 0 if nobody said.
    pub tai_ns: i64,
}

/// Asks adjtimex(2), which needs no rights for that.
pub fn clock() -> Kept {
    // SAFETY: all zeroes are a valid timex: it asks, and changes nothing.
    let mut asked: libc::timex = unsafe { zeroed() };
    // SAFETY: `asked` has room for what the kernel writes.
    let state = unsafe { libc::adjtimex(&raw mut asked) };
    if state < 0 {
        return Kept { error_ns: None, tai_ns: 0 };
    }
    let kept = state != libc::TIME_ERROR && asked.status & libc::STA_UNSYNC == 0;
    let error = u64::try_from(asked.maxerror).unwrap_or(u64::MAX).saturating_mul(1000);
    Kept { error_ns: kept.then_some(error), tai_ns: i64::from(asked.tai).saturating_mul(1_000_000_000) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn addresses_are_read_as_the_kernel_writes_them() {
        let v4 = [&(libc::AF_INET as u16).to_ne_bytes()[..], &[3, 94, 192, 0, 2, 1], &[0; 8]].concat();
        assert_eq!(address(&v4), "192.0.2.1:862".parse().ok());
        let v6 = [&(libc::AF_INET6 as u16).to_ne_bytes()[..], &[3, 94], &[0; 19], &[1], &[0; 4]].concat();
        assert_eq!(address(&v6), "[::1]:862".parse().ok());
        assert_eq!(address(&v4[..6]), None);
        assert_eq!(address(&[0; 16]), None);
        assert_eq!(address(&[]), None);
    }

    /// Without sending anything.
    #[test]
    fn a_socket_that_nothing_came_to_has_nothing() -> io::Result<()> {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        tell_all(&socket, false)?;
        assert!(receive(&socket, &mut [0; 8])?.is_none());
        assert_eq!(refusal(&socket)?, None);
        Ok(())
    }

    #[test]
    fn an_offset_of_tai_is_a_minute_at_most() {
        assert!((0..60_000_000_000).contains(&clock().tai_ns));
    }
}
