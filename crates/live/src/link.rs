//! The packet socket that the connections use: sends whole frames, hears those of the server and what neighbours ask.
//!
//! Each frame has a `virtio_net_hdr` in front (PACKET_VNET_HDR). It tells of received frames whether their checksum is
//! still to be filled in, as on a veth or from this machine's own virtual hosts.
#![allow(unsafe_code, reason = "link-layer addresses and packet socket options, which rustix does not have")]

use libc::{c_int, c_void, socklen_t};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::io;
use std::mem::size_of;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// `struct virtio_net_hdr` (linux/virtio_net.h).
const HEADER: usize = 10;
const NEEDS_CHECKSUM: u8 = 1;
const CHECKSUM_VALID: u8 = 2;
/// A frame merged from many.
const LONGEST: usize = HEADER + 18 + 65_536 + 256;
/// What the kernel keeps for us while we are busy.
const RECEIVE_BUFFER: c_int = 16 << 20;

/// What is known of a received frame's checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checksum {
    /// To be looked at.
    Unknown,
    /// Looked at already.
    Valid,
    /// Never filled in: it does not come from a wire.
    Unfilled,
}

#[derive(Debug)]
pub struct Link {
    socket: OwnedFd,
    buffer: Vec<u8>,
    out: Vec<u8>,
}

impl Link {
    /// Opens it in the calling thread's network namespace. It hears what `server` sends, and ARP, ICMP and ICMPv6.
    pub fn open(ifindex: u32, server: IpAddr) -> io::Result<Link> {
        // Protocol 0: nothing is received until it is bound to the interface.
        // SAFETY: plain integers.
        let raw = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if raw < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `raw` was just opened and belongs to nobody else.
        let socket = unsafe { OwnedFd::from_raw_fd(raw) };
        option(&socket, libc::SOL_PACKET, libc::PACKET_VNET_HDR, &1)?;
        option(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &1)?;
        // Beyond the system's limit where that is permitted, up to it where not.
        if option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &RECEIVE_BUFFER).is_err() {
            let _ = option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUF, &RECEIVE_BUFFER);
        }
        attach_filter(&socket, server)?;
        let address = libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as u16,
            sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
            sll_ifindex: ifindex as i32,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        // SAFETY: the pointer is to a live sockaddr_ll and its true size is given.
        let bound = unsafe {
            libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size_of::<libc::sockaddr_ll>() as u32)
        };
        if bound < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Link { socket, buffer: vec![0; LONGEST], out: Vec::new() })
    }

    /// Sends a frame. One that the queue has no room for is lost, as on any wire.
    pub fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        self.out.clear();
        self.out.extend([0; HEADER]);
        self.out.extend_from_slice(frame);
        loop {
            match send(&self.socket, &self.out, SendFlags::empty()) {
                Ok(_) | Err(Errno::NOBUFS | Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits for a frame, up to so long; true if there is one.
    pub fn wait(&self, timeout: Duration) -> io::Result<bool> {
        let timeout =
            Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: i64::from(timeout.subsec_nanos()) };
        match poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&timeout)) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The next frame that is there.
    pub fn receive(&mut self) -> io::Result<Option<(&mut [u8], Checksum)>> {
        let length = match recv(&self.socket, &mut *self.buffer, RecvFlags::DONTWAIT) {
            Ok((_, length)) => length,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let flags = self.buffer.first().copied().unwrap_or(0);
        let checksum = match flags {
            flags if flags & NEEDS_CHECKSUM != 0 => Checksum::Unfilled,
            flags if flags & CHECKSUM_VALID != 0 => Checksum::Valid,
            _ => Checksum::Unknown,
        };
        Ok(self.buffer.get_mut(HEADER..length).map(|frame| (frame, checksum)))
    }
}

fn option<T>(socket: &OwnedFd, level: c_int, name: c_int, value: &T) -> io::Result<()> {
    let (at, length) = (std::ptr::from_ref(value).cast::<c_void>(), size_of::<T>() as socklen_t);
    // SAFETY: `at` points to `length` bytes that are read during the call.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, at, length) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// So that a busy interface does not fill the socket with what nobody asked for (classic BPF, linux/filter.h).
fn attach_filter(socket: &OwnedFd, server: IpAddr) -> io::Result<()> {
    const LOAD_HALF: u16 = 0x28;
    const LOAD_BYTE: u16 = 0x30;
    const LOAD_WORD: u16 = 0x20;
    const IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    // Jumps to the last but one instruction (take) or the last (leave) are filled in once the length is known.
    const TAKE: u8 = 0xfe;
    const LEAVE: u8 = 0xff;
    const NEXT: u8 = 0;
    let (kind, icmp, at, octets): (u32, (u32, u32), u32, Vec<u8>) = match server {
        IpAddr::V4(address) => (0x0800, (23, 1), 26, address.octets().to_vec()),
        IpAddr::V6(address) => (0x86dd, (20, 58), 22, address.octets().to_vec()),
    };
    let mut code: Vec<(u16, u8, u8, u32)> = vec![
        (LOAD_HALF, 0, 0, 12),
        (IF_EQUAL, TAKE, NEXT, 0x0806),
        (IF_EQUAL, NEXT, LEAVE, kind),
        (LOAD_BYTE, 0, 0, icmp.0),
        (IF_EQUAL, TAKE, NEXT, icmp.1),
    ];
    let words: Vec<u32> = octets.as_chunks::<4>().0.iter().map(|word| u32::from_be_bytes(*word)).collect();
    for (nth, word) in words.iter().enumerate() {
        let last = nth + 1 == words.len();
        code.push((LOAD_WORD, 0, 0, at + 4 * nth as u32));
        code.push((IF_EQUAL, if last { TAKE } else { NEXT }, LEAVE, *word));
    }
    let length = code.len();
    let filter: Vec<libc::sock_filter> = code
        .into_iter()
        .chain([(RETURN, 0, 0, u32::MAX), (RETURN, 0, 0, 0)])
        .enumerate()
        .map(|(nth, (code, jt, jf, k))| {
            let target = |jump: u8| match jump {
                TAKE => (length - nth - 1) as u8,
                LEAVE => (length - nth) as u8,
                other => other,
            };
            let conditional = code == IF_EQUAL;
            let (jt, jf) = if conditional { (target(jt), target(jf)) } else { (0, 0) };
            libc::sock_filter { code, jt, jf, k }
        })
        .collect();
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    // The kernel copies the instructions during the call; it does not write to them.
    option(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}
