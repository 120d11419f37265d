//! Receiving frames with all that the kernel knows of them, one by one and at once, through a packet socket's ring
//! (PACKET_RX_RING, TPACKET_V2; Documentation/networking/packet_mmap.rst). `netdyno bridge` takes frames here.
//!
//! What leaves the interface is not received (PACKET_IGNORE_OUTGOING). Beside each frame stands what is not in its
//! bytes: a VLAN tag that was taken out, a checksum that was left to hardware, the size of the segments of a
//! super-frame. Version 3 of the ring would pack frames closer, but hands a block over only when it is full or some
//! milliseconds old. A frame longer than a slot (a super-frame) comes through the socket's own queue, whole.

#![allow(
    unsafe_code,
    reason = "socket calls with structures that rustix does not offer, and the mapped ring"
)]

use crate::packet::Target;
use crate::socket::{self, set};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Memory of a ring, at most.
const RING: usize = 16 << 20;

/// Slots of a ring, at most: 20 ms at 200,000 frames a second.
const SLOTS: usize = 4096;

/// Before the frame in its slot: the ring's header, the socket address and `struct virtio_net_hdr`, with what aligns them.
const BEFORE: usize = 128;

/// The longest frame there is, with the header before it: a super-frame of 64 KiB.
const LONGEST: usize = (64 << 10) + 512;

/// `struct virtio_net_hdr` (linux/virtio_net.h).
const OFFLOAD: usize = 10;

const PACKET_COPY_THRESH: i32 = 7;
const PACKET_IGNORE_OUTGOING: i32 = 23;
const TP_STATUS_VLAN_TPID_VALID: u32 = 1 << 6;

/// What the kernel left to hardware: `struct virtio_net_hdr`, the parts that are used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Offload {
    /// The checksum from this byte of the frame on, to be put that many bytes behind it; the sum of the pseudo header
    /// is there already.
    pub checksum: Option<(usize, usize)>,
    /// The frame is a super-frame: its payload is to be cut into parts of so many bytes.
    pub segment: Option<Segment>,
}

/// How a super-frame is to be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Of what.
    pub kind: SegmentKind,
    /// Payload of each frame but the last.
    pub size: usize,
}

/// What a super-frame is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentKind {
    /// TCP.
    Tcp,
    /// UDP, each segment a datagram.
    Udp,
    /// Anything else.
    Other,
}

impl Offload {
    /// Reads `struct virtio_net_hdr` in this machine's byte order.
    pub fn parse(header: &[u8; OFFLOAD]) -> Offload {
        let word = |at: usize| usize::from(u16::from_ne_bytes([header[at], header[at + 1]]));
        const NEEDS_CHECKSUM: u8 = 1;
        let kind = match header[1] & 0x7f {
            0 => None,
            1 | 4 => Some(SegmentKind::Tcp),
            5 => Some(SegmentKind::Udp),
            _ => Some(SegmentKind::Other),
        };
        Offload {
            checksum: (header[0] & NEEDS_CHECKSUM != 0).then(|| (word(6), word(8))),
            segment: kind.map(|kind| Segment { kind, size: word(4) }),
        }
    }
}

/// A frame that arrived.
#[derive(Debug)]
pub struct Received<'a> {
    /// Its bytes, without the tag.
    pub data: &'a [u8],
    /// How long it was; more than `data` where it could not be had whole.
    pub length: usize,
    /// The VLAN tag that stood behind the addresses: its EtherType and control word.
    pub tag: Option<(u16, u16)>,
    /// What is yet to be done to it.
    pub offload: Offload,
    /// When the kernel received it: CLOCK_REALTIME, in nanoseconds.
    pub at_ns: u64,
}

/// Why nothing is received.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// Not permitted.
    #[error("receiving on {0} needs CAP_NET_RAW: run with sudo")]
    Permission(String),
    /// The interface went down.
    #[error("{0} went down")]
    Down(String),
    /// Anything else.
    #[error("{what} on {interface}: {source}")]
    Io {
        /// The call that failed.
        what: &'static str,
        /// The interface.
        interface: String,
        /// What the kernel said.
        source: io::Error,
    },
}

/// A socket that receives every frame that arrives on one interface. The interface takes frames for any address
/// (promiscuous mode) for as long as the socket is open.
#[derive(Debug)]
pub struct Receiver {
    socket: OwnedFd,
    name: String,
    map: *mut u8,
    slots: usize,
    slot_size: usize,
    next: usize,
    /// For frames longer than a slot.
    long: Vec<u8>,
    dropped: u64,
}

// SAFETY: `map` is a mapping of this struct's own; nothing else points into it.
unsafe impl Send for Receiver {}

impl Receiver {
    /// Starts to receive, in the interface's network namespace.
    pub fn open(target: &Target) -> Result<Receiver, ReceiveError> {
        let failed = |what: &'static str, source: io::Error| match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => ReceiveError::Permission(target.name.clone()),
            _ => ReceiveError::Io { what, interface: target.name.clone(), source },
        };
        // Nothing is received before all is set up.
        let socket = socket::open().map_err(|error| failed("opening a packet socket", error))?;
        let longest = target.mtu as usize + 14 + 8;
        let slot_size = (longest + BEFORE).next_power_of_two().clamp(2048, 65536);
        let slots = (RING / slot_size).min(SLOTS);
        let block = slot_size.max(4096);
        let request = libc::tpacket_req {
            tp_block_size: block as u32,
            tp_block_nr: (slots * slot_size / block) as u32,
            tp_frame_size: slot_size as u32,
            tp_frame_nr: slots as u32,
        };
        let packet = |option, what: &'static str, value: i32| {
            set(&socket, libc::SOL_PACKET, option, &value).map_err(|error| failed(what, error))
        };
        packet(libc::PACKET_VERSION, "PACKET_VERSION", libc::tpacket_versions::TPACKET_V2 as i32)?;
        packet(PACKET_IGNORE_OUTGOING, "PACKET_IGNORE_OUTGOING", 1)?;
        packet(libc::PACKET_VNET_HDR, "PACKET_VNET_HDR", 1)?;
        packet(PACKET_COPY_THRESH, "PACKET_COPY_THRESH", 1)?;
        // For the few frames that are too long for a slot; the FORCE form needs CAP_NET_ADMIN.
        let _ = set(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &(8i32 << 20));
        set(&socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)
            .map_err(|error| failed("PACKET_RX_RING", error))?;
        // SAFETY: a new shared mapping of exactly the ring that was just set up.
        let map = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                slots * slot_size,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                socket.as_raw_fd(),
                0,
            )
        };
        if map == libc::MAP_FAILED {
            return Err(failed("mapping the receive ring", io::Error::last_os_error()));
        }
        let receiver = Receiver {
            socket,
            name: target.name.clone(),
            map: map.cast(),
            slots,
            slot_size,
            next: 0,
            long: vec![0; LONGEST],
            dropped: 0,
        };
        let membership = libc::packet_mreq {
            mr_ifindex: target.index as i32,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        set(&receiver.socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership)
            .map_err(|error| failed("promiscuous mode", error))?;
        socket::bind(&receiver.socket, target.index, libc::ETH_P_ALL)
            .map_err(|error| failed("binding a packet socket", error))?;
        Ok(receiver)
    }

    /// Shows the next frame to `take`, if one is there, and gives its slot back.
    pub fn next<R>(&mut self, take: impl FnOnce(Received<'_>) -> R) -> Option<R> {
        // SAFETY: `next` is below `slots`, so the slot lies inside of the mapping, which lives as long as self.
        let slot = unsafe { self.map.add(self.next * self.slot_size) };
        // SAFETY: tp_status is the first, aligned u32 of a slot; both sides access it atomically.
        let word = unsafe { AtomicU32::from_ptr(slot.cast()) };
        // Acquire: the frame is read only after the kernel has said that it is there.
        let status = word.load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: while the status says USER the kernel does not write to the slot; a tpacket2_hdr stands at its start.
        let (header, bytes) =
            unsafe { (*slot.cast::<libc::tpacket2_hdr>(), std::slice::from_raw_parts(slot, self.slot_size)) };
        let start = usize::from(header.tp_mac);
        let parse = |bytes: Option<&[u8]>| {
            bytes.and_then(<[u8]>::first_chunk).map_or_else(Offload::default, Offload::parse)
        };
        let tag = (status & libc::TP_STATUS_VLAN_VALID != 0).then(|| {
            let told = status & TP_STATUS_VLAN_TPID_VALID != 0;
            (if told { header.tp_vlan_tpid } else { libc::ETH_P_8021Q as u16 }, header.tp_vlan_tci)
        });
        let (mut data, mut offload) = (
            bytes.get(start..start + header.tp_snaplen as usize).unwrap_or_default(),
            parse(start.checked_sub(OFFLOAD).and_then(|at| bytes.get(at..))),
        );
        if status & libc::TP_STATUS_COPY != 0 {
            // SAFETY: `long` is written for at most its length.
            let read = unsafe {
                libc::recv(
                    self.socket.as_raw_fd(),
                    self.long.as_mut_ptr().cast(),
                    self.long.len(),
                    libc::MSG_DONTWAIT,
                )
            };
            let whole = self.long.get(..usize::try_from(read).unwrap_or(0)).unwrap_or_default();
            offload = parse(Some(whole));
            data = whole.get(OFFLOAD..).unwrap_or_default();
        }
        let at_ns = u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec);
        let result = take(Received { data, length: header.tp_len as usize, tag, offload, at_ns });
        word.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.slots;
        Some(result)
    }

    /// Waits until a frame may be there, at most `time`. That the interface went down is told once.
    pub fn wait(&self, time: Duration) -> Result<(), ReceiveError> {
        let mut poll = libc::pollfd { fd: self.socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let time = libc::timespec {
            tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: time.subsec_nanos().into(),
        };
        // SAFETY: one live pollfd and one live timespec; no signal mask.
        unsafe { libc::ppoll(&raw mut poll, 1, &raw const time, std::ptr::null()) };
        if poll.revents & libc::POLLERR == 0 {
            return Ok(());
        }
        match rustix::net::sockopt::socket_error(&self.socket) {
            Ok(Err(rustix::io::Errno::NETDOWN)) => Err(ReceiveError::Down(self.name.clone())),
            Ok(Err(errno)) | Err(errno) => Err(ReceiveError::Io {
                what: "receiving",
                interface: self.name.clone(),
                source: errno.into(),
            }),
            Ok(Ok(())) => Ok(()),
        }
    }

    /// Frames that found the ring full, since the beginning.
    pub fn dropped(&mut self) -> u64 {
        let mut statistics = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut size = size_of::<libc::tpacket_stats>() as u32;
        // SAFETY: the kernel writes at most `size` bytes to a live tpacket_stats.
        let rc = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut statistics).cast(),
                &raw mut size,
            )
        };
        // Asking sets the kernel's count back.
        if rc == 0 {
            self.dropped += u64::from(statistics.tp_drops);
        }
        self.dropped
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `open`, with its true length; nothing refers to it any more.
        unsafe { libc::munmap(self.map.cast(), self.slots * self.slot_size) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_to_hardware_is_read() {
        let header = |flags: u8, kind: u8, words: [u16; 4]| {
            let mut bytes = [flags, kind, 0, 0, 0, 0, 0, 0, 0, 0];
            for (at, word) in words.into_iter().enumerate() {
                bytes[2 + 2 * at..][..2].copy_from_slice(&word.to_ne_bytes());
            }
            Offload::parse(&bytes)
        };
        assert_eq!(header(0, 0, [0; 4]), Offload::default());
        let tcp = header(1, 1, [66, 1448, 34, 16]);
        assert_eq!(tcp.checksum, Some((34, 16)));
        assert_eq!(tcp.segment, Some(Segment { kind: SegmentKind::Tcp, size: 1448 }));
        assert_eq!(header(0, 4 | 0x80, [0, 9, 0, 0]).segment.map(|s| s.kind), Some(SegmentKind::Tcp));
        assert_eq!(header(0, 5, [0, 9, 0, 0]).segment.map(|s| s.kind), Some(SegmentKind::Udp));
        assert_eq!(header(2, 3, [0, 9, 7, 7]).checksum, None);
    }
}
