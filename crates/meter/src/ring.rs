//! A packet socket with a TPACKET_V3 receive ring: blocks of frames in memory shared with the kernel
//! (Documentation/networking/packet_mmap.rst). It hands out whole blocks of bytes; `socket.rs` knows what is in them.
#![allow(unsafe_code, reason = "socket options that rustix does not have, and memory shared with the kernel")]

use libc::{c_int, c_void, socklen_t};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::net::sockopt::socket_error;
use std::io;
use std::mem::{offset_of, size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// 64 blocks of 256 KiB: 16 MiB hold some 80,000 small frames, 50 ms at 1.6 Mpps.
const BLOCK: usize = 256 << 10;
const BLOCKS: usize = 64;
/// The kernel hands over a block that is not full after this.
pub const RETIRE: Duration = Duration::from_millis(8);
/// Where a block says whose it is: `tpacket_block_desc.hdr.bh1.block_status`.
const STATUS: usize =
    offset_of!(libc::tpacket_block_desc, hdr) + offset_of!(libc::tpacket_hdr_v1, block_status);

/// A socket that receives every frame that comes in on one interface.
#[derive(Debug)]
pub struct Ring {
    socket: OwnedFd,
    start: *mut u8,
    next: usize,
}

// SAFETY: the ring's memory belongs to the process; only the owner of the Ring touches it.
unsafe impl Send for Ring {}

/// A packet socket that receives nothing yet.
fn packet_socket() -> io::Result<OwnedFd> {
    // SAFETY: a plain system call without pointers.
    let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given us this descriptor; nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn set_option<T>(socket: &OwnedFd, name: c_int, value: &T) -> io::Result<()> {
    let (at, len) = (ptr::from_ref(value).cast::<c_void>(), size_of::<T>() as socklen_t);
    // SAFETY: `at` points to `len` bytes that are read during the call.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_PACKET, name, at, len) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn join_promiscuous(socket: &OwnedFd, ifindex: u32) -> io::Result<()> {
    // SAFETY: all zeroes is a valid packet_mreq.
    let mut request: libc::packet_mreq = unsafe { zeroed() };
    request.mr_ifindex = ifindex as c_int;
    request.mr_type = libc::PACKET_MR_PROMISC as u16;
    set_option(socket, libc::PACKET_ADD_MEMBERSHIP, &request)
}

/// Makes the interface take frames for any address as long as the socket is open; it receives none of them itself.
pub fn promiscuous(ifindex: u32) -> io::Result<OwnedFd> {
    let socket = packet_socket()?;
    join_promiscuous(&socket, ifindex)?;
    Ok(socket)
}

/// The largest packet of an interface of the calling thread's network namespace.
pub fn mtu(interface: &str) -> Option<u32> {
    let socket = packet_socket().ok()?;
    // SAFETY: all zeroes is a valid ifreq.
    let mut request: libc::ifreq = unsafe { zeroed() };
    if interface.len() >= request.ifr_name.len() {
        return None;
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    // SAFETY: `request` is an ifreq whose name ends in a zero byte, and outlives the call.
    if unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFMTU, &raw mut request) } < 0 {
        return None;
    }
    // SAFETY: the kernel has just written this member.
    u32::try_from(unsafe { request.ifr_ifru.ifru_mtu }).ok()
}

impl Ring {
    /// Starts to receive. With `hardware`, frames that the hardware stamped have its time instead of CLOCK_REALTIME.
    pub fn open(ifindex: u32, promiscuous: bool, hardware: bool) -> io::Result<Ring> {
        let socket = packet_socket()?;
        set_option(&socket, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V3 as c_int))?;
        set_option(&socket, libc::PACKET_IGNORE_OUTGOING, &1)?;
        if hardware {
            set_option(&socket, libc::PACKET_TIMESTAMP, &libc::SOF_TIMESTAMPING_RAW_HARDWARE)?;
        }
        // SAFETY: all zeroes is a valid tpacket_req3.
        let mut request: libc::tpacket_req3 = unsafe { zeroed() };
        request.tp_block_size = BLOCK as u32;
        request.tp_block_nr = BLOCKS as u32;
        request.tp_frame_size = 2048; // version 3 packs frames closely; this only has to divide the block
        request.tp_frame_nr = (BLOCK / 2048 * BLOCKS) as u32;
        request.tp_retire_blk_tov = RETIRE.as_millis() as u32;
        set_option(&socket, libc::PACKET_RX_RING, &request)?;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let start = unsafe {
            mmap(
                ptr::null_mut(),
                BLOCK * BLOCKS,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                &socket,
                0,
            )?
        };
        let ring = Ring { socket, start: start.cast(), next: 0 };
        if promiscuous {
            join_promiscuous(&ring.socket, ifindex)?;
        }
        // Bound last: until now no frame was received, so none was from another interface or missed the ring.
        // SAFETY: all zeroes is a valid sockaddr_ll.
        let mut address: libc::sockaddr_ll = unsafe { zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = ifindex as c_int;
        let (at, len) = (ptr::from_ref(&address).cast::<libc::sockaddr>(), size_of::<libc::sockaddr_ll>());
        // SAFETY: `at` points to `len` bytes of a link-layer address that are read during the call.
        if unsafe { libc::bind(ring.socket.as_raw_fd(), at, len as socklen_t) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(ring)
    }

    fn status(&self) -> &AtomicU32 {
        // SAFETY: `next` is below BLOCKS, so this is inside the mapping, which lives as long as self; blocks are
        // page-aligned and STATUS is a multiple of 4. Kernel and we both access it atomically.
        unsafe { &*self.start.add(self.next * BLOCK + STATUS).cast::<AtomicU32>() }
    }

    /// Shows the next block to `read`, if the kernel has filled it, and gives it back.
    pub fn with_block(&mut self, read: impl FnOnce(&[u8])) -> bool {
        // Acquire: the block's bytes are read only after the kernel has said that they are there.
        if self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return false;
        }
        // SAFETY: inside the mapping as above; while the status says USER the kernel does not write to the block,
        // and the slice cannot outlive the closure, after which the status is handed back.
        read(unsafe { std::slice::from_raw_parts(self.start.add(self.next * BLOCK), BLOCK) });
        self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % BLOCKS;
        true
    }

    /// Waits until a block may be there, at most `time`. An error of the socket (ENETDOWN) is told once.
    pub fn wait(&self, time: Duration) -> io::Result<()> {
        let timeout = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() };
        let mut socket = [PollFd::new(&self.socket, PollFlags::IN)];
        match poll(&mut socket, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) if !socket[0].revents().contains(PollFlags::ERR) => Ok(()),
            // Asking clears it; else each poll would return at once.
            Ok(_) | Err(Errno::INTR) => Ok(socket_error(&self.socket)??),
            Err(error) => Err(error.into()),
        }
    }

    /// Frames that found the ring full since the last call.
    pub fn dropped(&self) -> io::Result<u64> {
        // SAFETY: all zeroes is a valid tpacket_stats_v3.
        let mut statistics: libc::tpacket_stats_v3 = unsafe { zeroed() };
        let mut len = size_of::<libc::tpacket_stats_v3>() as socklen_t;
        let at = ptr::from_mut(&mut statistics).cast::<c_void>();
        // SAFETY: `at` points to `len` bytes that the kernel may write.
        let result = unsafe {
            libc::getsockopt(self.socket.as_raw_fd(), libc::SOL_PACKET, libc::PACKET_STATISTICS, at, &mut len)
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(statistics.tp_drops.into()) }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: exactly what `open` mapped; blocks are never borrowed beyond `with_block`.
        // A failure would leave the mapping in place, which harms nobody.
        let _ = unsafe { munmap(self.start.cast(), BLOCK * BLOCKS) };
    }
}
