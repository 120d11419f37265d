//! Calls that rustix does not have: socket options by number, datagrams (one, or a batch) with what the kernel says beside them,
//! completions of zerocopy sends, a process's CPU time. Safe to use in any way.
#![allow(unsafe_code, reason = "the kernel's interfaces to sockets take pointers")]

use std::io;
use std::mem::{size_of, size_of_val, zeroed};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use libc::{c_int, c_void, socklen_t};

/// Room for what the kernel says beside a datagram: of two numbers.
const CONTROL: usize = 64;

fn check(result: c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn set<T>(fd: &impl AsFd, level: c_int, name: c_int, value: &T, length: usize) -> io::Result<()> {
    let length = length.min(size_of_val(value)) as socklen_t;
    // SAFETY: `value` holds `length` bytes or more, and the kernel only reads them.
    check(unsafe {
        libc::setsockopt(
            fd.as_fd().as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(value).cast::<c_void>(),
            length,
        )
    })
}

/// Sets an option that is a number.
pub fn set_int(fd: &impl AsFd, level: c_int, name: c_int, value: c_int) -> io::Result<()> {
    set(fd, level, name, &value, size_of::<c_int>())
}

/// Sets an option that is a number of 64 bits.
pub fn set_u64(fd: &impl AsFd, level: c_int, name: c_int, value: u64) -> io::Result<()> {
    set(fd, level, name, &value, size_of::<u64>())
}

/// Sets an option that is a name, of at most 16 bytes.
pub fn set_name(fd: &impl AsFd, level: c_int, name: c_int, value: &str) -> io::Result<()> {
    let mut bytes = [0_u8; 16];
    let Some(room) = bytes.get_mut(..value.len()) else { return Err(io::ErrorKind::InvalidInput.into()) };
    room.copy_from_slice(value.as_bytes());
    set(fd, level, name, &bytes, value.len())
}

/// Has the kernel lend this socket an IPv6 flow label towards `to`, and take the one that it connects with (linux/in6.h,
/// `struct in6_flowlabel_req`).
pub fn lease_flow_label(fd: &impl AsFd, to: std::net::Ipv6Addr, label: u32) -> io::Result<()> {
    /// libc has no names for these.
    const IPV6_FLOWLABEL_MGR: c_int = 32;
    const IPV6_FLOWINFO_SEND: c_int = 33;
    /// Who shares it: anybody.
    const SHARE_ANY: u8 = 255;
    /// It is made, if it is not there. In this host's order, as all but addresses and labels.
    const CREATE: u16 = 1;
    let mut request = [0_u8; 32];
    let (address, rest) = request.split_at_mut(16);
    address.copy_from_slice(&to.octets());
    let fields = [label.to_be_bytes(), [0, SHARE_ANY, CREATE.to_ne_bytes()[0], CREATE.to_ne_bytes()[1]]];
    for (place, field) in rest.chunks_exact_mut(4).zip(fields) {
        place.copy_from_slice(&field);
    }
    set(fd, libc::IPPROTO_IPV6, IPV6_FLOWLABEL_MGR, &request, request.len())?;
    set_int(fd, libc::IPPROTO_IPV6, IPV6_FLOWINFO_SEND, 1)
}

/// Receiving (SO_RCVTIMEO) or sending (SO_SNDTIMEO) fails with "would block" after so long.
pub fn set_timeout(fd: &impl AsFd, name: c_int, after: Duration) -> io::Result<()> {
    let seconds = libc::time_t::try_from(after.as_secs()).unwrap_or(libc::time_t::MAX);
    let value = libc::timeval { tv_sec: seconds, tv_usec: libc::suseconds_t::from(after.subsec_micros()) };
    set(fd, libc::SOL_SOCKET, name, &value, size_of::<libc::timeval>())
}

/// Closing the connection resets it.
pub fn set_reset_on_close(fd: &impl AsFd) -> io::Result<()> {
    let value = libc::linger { l_onoff: 1, l_linger: 0 };
    set(fd, libc::SOL_SOCKET, libc::SO_LINGER, &value, size_of::<libc::linger>())
}

/// Reads an option into `bytes`; how many the kernel gave.
pub fn get_bytes(fd: &impl AsFd, level: c_int, name: c_int, bytes: &mut [u8]) -> io::Result<usize> {
    let mut length = bytes.len() as socklen_t;
    // SAFETY: `bytes` has room for `length` bytes, and the kernel writes no more.
    check(unsafe {
        libc::getsockopt(
            fd.as_fd().as_raw_fd(),
            level,
            name,
            bytes.as_mut_ptr().cast::<c_void>(),
            &raw mut length,
        )
    })?;
    Ok((length as usize).min(bytes.len()))
}

/// Reads an option that is a number.
pub fn get_int(fd: &impl AsFd, level: c_int, name: c_int) -> io::Result<c_int> {
    let mut bytes = [0_u8; size_of::<c_int>()];
    get_bytes(fd, level, name, &mut bytes)?;
    Ok(c_int::from_ne_bytes(bytes))
}

/// What completions of zerocopy sends said.
#[derive(Debug, Clone, Copy, Default)]
pub struct Completions {
    pub calls: u64,
    pub copied: u64,
}

/// Reads one message of completions (MSG_ZEROCOPY, Documentation/networking/msg_zerocopy.rst). None without any.
pub fn completions(fd: &impl AsFd) -> io::Result<Option<Completions>> {
    let mut found = Completions::default();
    let each = |level, kind, data: &[u8]| {
        // struct sock_extended_err: errno, origin, type, code, pad, info, data. SO_EE_ORIGIN_ZEROCOPY is 5, its code 1 says
        // that the data was copied; info and data are the first and last call, both included.
        if let (true, Some(data)) = (is_queued_error(level, kind), data.get(..16))
            && data.get(4) == Some(&5)
        {
            let number = |at: usize| {
                data.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_ne_bytes)
            };
            let calls = u64::from(number(12).wrapping_sub(number(8))) + 1;
            found.calls += calls;
            if data.get(6) == Some(&1) {
                found.copied += calls;
            }
        }
    };
    Ok(message(fd, &mut [], libc::MSG_ERRQUEUE, each)?.map(|_| found))
}

/// A control message that holds a `struct sock_extended_err` (linux/errqueue.h).
pub fn is_queued_error(level: c_int, kind: c_int) -> bool {
    matches!((level, kind), (libc::SOL_IP, libc::IP_RECVERR) | (libc::SOL_IPV6, libc::IPV6_RECVERR))
}

/// An address as the kernel writes it: a sockaddr_in6 has 28 bytes.
const ADDRESS: usize = 28;

/// One recvmsg(2), which does not wait: the length that it gave, the address, and each control message as level, type and data.
/// `None`: there is nothing.
///
/// # Errors
/// As recvmsg(2).
pub fn message(
    fd: &impl AsFd,
    buffer: &mut [u8],
    flags: c_int,
    each: impl FnMut(c_int, c_int, &[u8]),
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
    let got = unsafe { libc::recvmsg(fd.as_fd().as_raw_fd(), &raw mut header, flags | libc::MSG_DONTWAIT) };
    let Ok(length) = usize::try_from(got) else {
        let error = io::Error::last_os_error();
        return if error.kind() == io::ErrorKind::WouldBlock { Ok(None) } else { Err(error) };
    };
    each_control(&header, each);
    let of_name = (header.msg_namelen as usize).min(ADDRESS);
    Ok(Some((length, name.get(..of_name).and_then(address))))
}

/// A struct sockaddr_in or sockaddr_in6, as the kernel writes it.
pub fn address(bytes: &[u8]) -> Option<SocketAddr> {
    let family = c_int::from(u16::from_ne_bytes(*bytes.first_chunk()?));
    let port = u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?);
    let ip = match family {
        libc::AF_INET => IpAddr::from(Ipv4Addr::from(*bytes.get(4..)?.first_chunk::<4>()?)),
        libc::AF_INET6 => IpAddr::from(Ipv6Addr::from(*bytes.get(8..)?.first_chunk::<16>()?)),
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

/// Hands over each control message: level, type, data.
fn each_control(header: &libc::msghdr, mut each: impl FnMut(c_int, c_int, &[u8])) {
    // SAFETY: `header` was filled in by recvmsg or recvmmsg, and its control buffer is still there.
    let mut at = unsafe { libc::CMSG_FIRSTHDR(header) };
    while !at.is_null() {
        // SAFETY: CMSG_FIRSTHDR and CMSG_NXTHDR yield messages that lie within the control buffer, or null.
        let (message, data) = unsafe { (std::ptr::read_unaligned(at), libc::CMSG_DATA(at)) };
        // SAFETY: CMSG_LEN only computes.
        let head = unsafe { libc::CMSG_LEN(0) } as usize;
        let length = message.cmsg_len.saturating_sub(head);
        // SAFETY: the kernel wrote `length` bytes there; what did not fit it cut, and said a lesser length.
        let data = unsafe { std::slice::from_raw_parts(data, length) };
        each(message.cmsg_level, message.cmsg_type, data);
        // SAFETY: as above.
        at = unsafe { libc::CMSG_NXTHDR(header, at) };
    }
}

/// What the kernel says beside a datagram.
#[derive(Debug, Clone, Copy, Default)]
pub struct Beside {
    /// Bytes received.
    pub length: usize,
    /// Several datagrams of so many bytes each, the last one maybe shorter (UDP_GRO).
    pub segment: Option<usize>,
    /// Datagrams that this socket had no room for, since its beginning (SO_RXQ_OVFL).
    pub dropped: Option<u32>,
}

/// Buffers for several datagrams at once.
pub struct Batch {
    size: usize,
    bytes: Vec<u8>,
    headers: Vec<libc::mmsghdr>,
    vectors: Vec<libc::iovec>,
    controls: Vec<[u64; CONTROL / 8]>,
}

impl std::fmt::Debug for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batch")
            .field("size", &self.size)
            .field("count", &self.headers.len())
            .finish_non_exhaustive()
    }
}

impl Batch {
    /// Of `count` buffers of `size` bytes.
    pub fn new(count: usize, size: usize) -> Batch {
        // SAFETY: all zeroes are a valid mmsghdr.
        let headers = vec![unsafe { zeroed::<libc::mmsghdr>() }; count];
        let vectors = vec![libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; count];
        Batch {
            size,
            bytes: vec![0; count * size],
            headers,
            vectors,
            controls: vec![[0; CONTROL / 8]; count],
        }
    }

    /// The buffer of datagram `at`.
    pub fn buffer(&mut self, at: usize) -> &mut [u8] {
        self.bytes.get_mut(at * self.size..(at + 1) * self.size).unwrap_or_default()
    }

    /// The same, to read.
    pub fn bytes(&self, at: usize, length: usize) -> &[u8] {
        self.bytes.get(at * self.size..at * self.size + length.min(self.size)).unwrap_or_default()
    }

    /// Points headers at buffers: called before each call, because the vectors may have moved.
    fn point(&mut self, count: usize, control: bool) -> usize {
        let count = count.min(self.headers.len());
        let base = self.bytes.as_mut_ptr();
        for at in 0..count {
            // In bounds: all vectors were made with as many entries.
            self.vectors[at] = libc::iovec {
                // SAFETY: `bytes` has `size` bytes for each entry.
                iov_base: unsafe { base.add(at * self.size) }.cast(),
                iov_len: self.size,
            };
            let header = &mut self.headers[at].msg_hdr;
            header.msg_iov = &raw mut self.vectors[at];
            header.msg_iovlen = 1;
            header.msg_flags = 0;
            (header.msg_control, header.msg_controllen) = if control {
                (self.controls[at].as_mut_ptr().cast(), CONTROL as _)
            } else {
                (std::ptr::null_mut(), 0)
            };
        }
        count
    }

    /// Sends the first `count` buffers, `length` bytes of each, over a connected socket; how many left.
    pub fn send(&mut self, fd: &impl AsFd, count: usize, length: usize) -> io::Result<usize> {
        let count = self.point(count, false);
        for vector in &mut self.vectors[..count] {
            vector.iov_len = length.min(self.size);
        }
        // SAFETY: `count` headers point at buffers of ours that live until the call returns.
        let sent = unsafe {
            libc::sendmmsg(
                fd.as_fd().as_raw_fd(),
                self.headers.as_mut_ptr(),
                count as _,
                libc::MSG_NOSIGNAL as _,
            )
        };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }

    /// Waits for one datagram, and takes what else is there; how many.
    pub fn receive(&mut self, fd: &impl AsFd) -> io::Result<usize> {
        let count = self.point(self.headers.len(), true);
        // SAFETY: `count` headers point at buffers of ours that live until the call returns.
        let got = unsafe {
            libc::recvmmsg(
                fd.as_fd().as_raw_fd(),
                self.headers.as_mut_ptr(),
                count as _,
                libc::MSG_WAITFORONE as _,
                std::ptr::null_mut(),
            )
        };
        usize::try_from(got).map_err(|_| io::Error::last_os_error())
    }

    /// What the kernel said beside datagram `at` of those that were received last.
    pub fn beside(&self, at: usize) -> Beside {
        let Some(header) = self.headers.get(at) else { return Beside::default() };
        let mut beside = Beside { length: header.msg_len as usize, ..Beside::default() };
        each_control(&header.msg_hdr, |level, kind, data| {
            let number = data.get(..4).and_then(|b| b.try_into().ok()).map(u32::from_ne_bytes);
            match (level, kind) {
                (libc::SOL_UDP, UDP_GRO) => beside.segment = number.map(|size| size as usize),
                (libc::SOL_SOCKET, SO_RXQ_OVFL) => beside.dropped = number,
                _ => {}
            }
        });
        beside
    }
}

/// linux/udp.h.
pub const UDP_SEGMENT: c_int = 103;
/// linux/udp.h.
pub const UDP_GRO: c_int = 104;
/// asm-generic/socket.h.
pub const SO_RXQ_OVFL: c_int = 40;

/// CPU time of this process (RUSAGE_SELF) or thread (RUSAGE_THREAD): user, system.
pub fn used(who: c_int) -> [Duration; 2] {
    // SAFETY: all zeroes are a valid rusage.
    let mut usage: libc::rusage = unsafe { zeroed() };
    // SAFETY: `usage` has room for what the kernel writes.
    if unsafe { libc::getrusage(who, &raw mut usage) } != 0 {
        return [Duration::ZERO; 2];
    }
    [usage.ru_utime, usage.ru_stime].map(|time| {
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        Duration::from_secs(seconds) + Duration::from_micros(u64::try_from(time.tv_usec).unwrap_or(0))
    })
}

/// Clock ticks a second, in /proc/stat.
pub fn ticks_per_second() -> u64 {
    rustix::param::clock_ticks_per_second()
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
