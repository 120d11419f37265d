//! One AF_XDP socket that only sends, or only receives: its rings made, mapped and bound to a queue.
#![allow(unsafe_code, reason = "rings over mapped memory, and one socket option that rustix does not have")]

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags as Flags, SocketAddrXdpWithSharedUmem, XDP_PGOFF_RX_RING,
    XDP_PGOFF_TX_RING, XDP_UMEM_PGOFF_COMPLETION_RING, XDP_UMEM_PGOFF_FILL_RING, XdpDesc, XdpOptionsFlags,
    XdpRingOffset, XdpStatistics, XdpUmemReg, XdpUmemRegFlags,
};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, sockopt};

use super::ring::{Consumer, Layout, Producer};
use super::umem::CHUNK;
use crate::map::Map;

/// Descriptors that the kernel takes from the ring in one call in copy mode. Since Linux 6.17; not in libc yet.
const XDP_MAX_TX_SKB_BUDGET: libc::c_int = 9;

/// What it is if nothing is said, and the least that may be said.
const BUDGET_DEFAULT: u32 = 32;

/// A socket cannot be bound without a fill and a completion ring, also where nothing is received, or sent.
const UNUSED_RING: u32 = 8;

/// Bytes that the kernel may hold of frames it has copied. As for the packet socket: a few batches of jumbo frames.
const SEND_BUFFER: usize = 16 << 20;

/// A call that failed, and how.
#[derive(Debug)]
pub struct Failed {
    pub what: &'static str,
    pub errno: Errno,
}

fn when(what: &'static str) -> impl FnOnce(Errno) -> Failed {
    move |errno| Failed { what, errno }
}

/// Opening the socket.
pub const OPENING: &str = "opening an AF_XDP socket";
/// Giving the kernel the UMEM.
pub const REGISTERING: &str = "registering the frames' memory (XDP_UMEM_REG)";
/// Binding it to a queue.
pub const BINDING: &str = "binding an AF_XDP socket";

/// Where a socket's frames stand.
#[derive(Debug, Clone, Copy)]
pub enum Memory<'a> {
    /// It registers this memory.
    Own(&'a Map),
    /// That of another socket, which is bound.
    Of(BorrowedFd<'a>),
}

/// A bound socket.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    /// Frames to send.
    pub tx: Producer<XdpDesc>,
    /// Addresses of frames that the kernel is done with.
    pub done: Consumer<u64>,
    /// The driver sends from the UMEM; otherwise the kernel copies each frame.
    pub zero_copy: bool,
}

impl Socket {
    /// Opens a socket with rings of `size` descriptors (a power of two) and binds it. `flags` count only with memory
    /// of its own: whoever shares memory shares its mode.
    pub fn open(
        memory: Memory<'_>,
        size: u32,
        index: u32,
        queue: u32,
        flags: Flags,
    ) -> Result<Socket, Failed> {
        let fd = unbound(memory)?;
        sockopt::set_xdp_umem_fill_ring_size(&fd, UNUSED_RING).map_err(when("XDP_UMEM_FILL_RING"))?;
        sockopt::set_xdp_umem_completion_ring_size(&fd, size).map_err(when("XDP_UMEM_COMPLETION_RING"))?;
        sockopt::set_xdp_tx_ring_size(&fd, size).map_err(when("XDP_TX_RING"))?;
        // Both only make it faster: a whole batch in one call, and room for it.
        let _ = set_budget(&fd, size.max(BUDGET_DEFAULT));
        let _ = sockopt::set_socket_send_buffer_size_force(&fd, SEND_BUFFER);
        let offsets = sockopt::xdp_mmap_offsets(&fd).map_err(when("XDP_MMAP_OFFSETS"))?;
        let (base, layout, map) = mapped::<XdpDesc>(&fd, offsets.tx, XDP_PGOFF_TX_RING, size)?;
        // SAFETY: the kernel's own offsets into a mapping of the ring just made, of the size just set, which the `Arc`
        // holds; the kernel is the consumer, and this is the only producer.
        let tx = unsafe { Producer::new(base, layout, map) };
        let (base, layout, map) = mapped::<u64>(&fd, offsets.cr, XDP_UMEM_PGOFF_COMPLETION_RING, size)?;
        // SAFETY: as above, with the sides exchanged.
        let done = unsafe { Consumer::new(base, layout, map) };
        let zero_copy = bound(&fd, memory, index, queue, flags)?;
        Ok(Socket { fd, tx, done, zero_copy })
    }

    /// Tells the kernel to look at the ring. In copy mode it sends from it before this returns.
    pub fn kick(&self) -> Result<(), Errno> {
        rustix::net::send(&self.fd, &[], SendFlags::DONTWAIT).map(drop)
    }

    /// How many descriptors the kernel refused.
    pub fn invalid(&self) -> u64 {
        sockopt::xdp_statistics(&self.fd).map_or(0, |statistics| statistics.tx_invalid_descs)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A bound socket that receives.
#[derive(Debug)]
pub struct Receiving {
    fd: OwnedFd,
    /// Addresses of buffers for frames to come.
    pub fill: Producer<u64>,
    /// Frames that came.
    pub rx: Consumer<XdpDesc>,
    /// The driver receives into the UMEM; otherwise the kernel copies each frame.
    pub zero_copy: bool,
}

impl Receiving {
    /// As [`Socket::open`]; the fill ring holds addresses of this UMEM.
    pub fn open(
        memory: Memory<'_>,
        size: u32,
        index: u32,
        queue: u32,
        flags: Flags,
    ) -> Result<Receiving, Failed> {
        let fd = unbound(memory)?;
        sockopt::set_xdp_umem_fill_ring_size(&fd, size).map_err(when("XDP_UMEM_FILL_RING"))?;
        sockopt::set_xdp_umem_completion_ring_size(&fd, UNUSED_RING)
            .map_err(when("XDP_UMEM_COMPLETION_RING"))?;
        sockopt::set_xdp_rx_ring_size(&fd, size).map_err(when("XDP_RX_RING"))?;
        let offsets = sockopt::xdp_mmap_offsets(&fd).map_err(when("XDP_MMAP_OFFSETS"))?;
        let (base, layout, map) = mapped::<u64>(&fd, offsets.fr, XDP_UMEM_PGOFF_FILL_RING, size)?;
        // SAFETY: the kernel's own offsets into a mapping of the ring just made, of the size just set, which the `Arc`
        // holds; the kernel is the consumer, and this is the only producer.
        let fill = unsafe { Producer::new(base, layout, map) };
        let (base, layout, map) = mapped::<XdpDesc>(&fd, offsets.rx, XDP_PGOFF_RX_RING, size)?;
        // SAFETY: as above, with the sides exchanged.
        let rx = unsafe { Consumer::new(base, layout, map) };
        let zero_copy = bound(&fd, memory, index, queue, flags)?;
        Ok(Receiving { fd, fill, rx, zero_copy })
    }

    /// Tells the driver to look at the fill ring, and asks it how the socket is: ENETDOWN when the interface is down, ENXIO
    /// when it is away. Before Linux 5.11 neither.
    pub fn wake(&self) -> Result<(), Errno> {
        match rustix::net::recv(&self.fd, &mut [0u8; 0][..], RecvFlags::DONTWAIT) {
            Err(errno @ (Errno::NETDOWN | Errno::NXIO)) => Err(errno),
            _ => Ok(()),
        }
    }

    /// Frames that found no buffer, no room in the ring, or were longer than a buffer where several are not allowed.
    pub fn dropped(&self) -> u64 {
        let sum = |statistics: XdpStatistics| statistics.rx_dropped + statistics.rx_ring_full.unwrap_or(0);
        sockopt::xdp_statistics(&self.fd).map_or(0, sum)
    }
}

impl AsFd for Receiving {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A socket that knows its memory.
fn unbound(memory: Memory<'_>) -> Result<OwnedFd, Failed> {
    let fd = rustix::net::socket_with(AddressFamily::XDP, SocketType::RAW, SocketFlags::CLOEXEC, None)
        .map_err(when(OPENING))?;
    if let Memory::Own(map) = memory {
        let registration = XdpUmemReg {
            addr: map.base().as_ptr() as u64,
            len: map.length() as u64,
            chunk_size: CHUNK as u32,
            headroom: 0,
            flags: XdpUmemRegFlags::empty(),
            tx_metadata_len: 0,
        };
        sockopt::set_xdp_umem_reg(&fd, registration).map_err(when(REGISTERING))?;
    }
    Ok(fd)
}

/// Maps a ring of `size` entries.
fn mapped<T>(
    fd: &OwnedFd,
    offset: XdpRingOffset,
    page: u64,
    size: u32,
) -> Result<(NonNull<u8>, Layout, Arc<Map>), Failed> {
    let layout = Layout {
        producer: offset.producer as usize,
        consumer: offset.consumer as usize,
        flags: offset.flags.map(|flags| flags as usize),
        entries: offset.desc as usize,
        size,
    };
    let length = layout.entries + size as usize * size_of::<T>();
    let map = Arc::new(Map::shared(fd, page, length).map_err(when("mapping a ring"))?);
    Ok((map.base(), layout, map))
}

/// Binds a socket to a queue. Whether it does without copying.
fn bound(fd: &OwnedFd, memory: Memory<'_>, index: u32, queue: u32, flags: Flags) -> Result<bool, Failed> {
    let binding = when(BINDING);
    match memory {
        Memory::Own(_) => bind(fd, &SocketAddrXdp::new(flags, index, queue)).map_err(binding)?,
        Memory::Of(other) => {
            let addr = SocketAddrXdp::new(Flags::XDP_SHARED_UMEM, index, queue);
            let address = SocketAddrXdpWithSharedUmem { addr, shared_umem_fd: other };
            bind(fd, &address).map_err(binding)?;
        }
    }
    let options = sockopt::xdp_options(fd);
    Ok(options.is_ok_and(|options| options.contains(XdpOptionsFlags::XDP_OPTIONS_ZEROCOPY)))
}

/// Sets how many descriptors a call takes. The kernel allows at most the ring's size, and only once there is a ring.
fn set_budget(fd: &OwnedFd, budget: u32) -> Result<(), Errno> {
    // SAFETY: the pointer is to a live u32 and its true size is given.
    let status = unsafe {
        let size = size_of::<u32>() as libc::socklen_t;
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_XDP,
            XDP_MAX_TX_SKB_BUDGET,
            (&raw const budget).cast(),
            size,
        )
    };
    if status == 0 { Ok(()) } else { Err(Errno::INVAL) }
}
