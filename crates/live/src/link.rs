//! The packet socket that the connections use: sends whole frames, hears those of the server and what neighbours ask.
//!
//! Each frame has a `virtio_net_hdr` in front (PACKET_VNET_HDR). It tells of received frames whether their checksum is
//! still to be filled in, as on a veth or from this machine's own virtual hosts.

use libc::c_int;
use port::socket::{self, set};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::time::Duration;
use wire::numbers::{ethertype, protocol};

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
        let socket = socket::open()?;
        set(&socket, libc::SOL_PACKET, libc::PACKET_VNET_HDR, &1)?;
        set(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &1)?;
        // Beyond the system's limit where that is permitted, up to it where not.
        if set(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &RECEIVE_BUFFER).is_err() {
            let _ = set(&socket, libc::SOL_SOCKET, libc::SO_RCVBUF, &RECEIVE_BUFFER);
        }
        attach_filter(&socket, server)?;
        socket::bind(&socket, ifindex, libc::ETH_P_ALL)?;
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
    let (kind, icmp, at, octets): (u16, (u32, u8), u32, Vec<u8>) = match server {
        IpAddr::V4(address) => (ethertype::IPV4, (23, protocol::ICMP), 26, address.octets().to_vec()),
        IpAddr::V6(address) => (ethertype::IPV6, (20, protocol::ICMPV6), 22, address.octets().to_vec()),
    };
    let mut code: Vec<(u16, u8, u8, u32)> = vec![
        (LOAD_HALF, 0, 0, 12),
        (IF_EQUAL, TAKE, NEXT, ethertype::ARP.into()),
        (IF_EQUAL, NEXT, LEAVE, kind.into()),
        (LOAD_BYTE, 0, 0, icmp.0),
        (IF_EQUAL, TAKE, NEXT, icmp.1.into()),
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
    set(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}
