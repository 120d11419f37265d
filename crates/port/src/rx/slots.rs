//! A packet socket's ring of slots, one frame each (PACKET_RX_RING, TPACKET_V2; Documentation/networking/packet_mmap.rst).
//! `bridge` and `impair` take frames here, because a frame is there as soon as it has arrived: version 3 of the ring packs
//! frames closer, but hands a block over only when it is full or some milliseconds old.
//!
//! Beside each frame stands what is not in its bytes: a VLAN tag that was taken out, a checksum that was left to hardware,
//! the size of the segments of a super-frame. A frame longer than a slot (a super-frame) comes through the socket's own
//! queue, whole.
#![allow(unsafe_code, reason = "memory shared with the kernel")]

use super::inlet::{self, Inlet};
use super::{Direction, Frame, OFFLOAD, Offload, Rx, RxCounters, RxError, RxFacts};
use crate::map::Map;
use crate::packet::Target;
use rustix::net::sockopt;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr::NonNull;
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

/// Frames longer than a slot in one batch.
const LONG: usize = 8;

const PACKET_COPY_THRESH: i32 = 7;

/// The socket address behind a slot's header.
const ADDRESS: usize = size_of::<libc::tpacket2_hdr>().next_multiple_of(libc::TPACKET_ALIGNMENT);

/// Which frames are received.
#[derive(Debug, Clone, Copy)]
pub struct Take<'a> {
    /// Those that arrive, or leave, or both.
    pub direction: Direction,
    /// Those that this filter lets pass ([`filter`](crate::filter)), and as much of them as it says; empty: all.
    pub filter: &'a [crate::filter::Step],
    /// Sockets with the same number have frames shared out among them, each connection to one.
    pub share: Option<u16>,
    /// Those for any address.
    pub promiscuous: bool,
}

/// Receives every frame that arrives on one interface. The interface takes frames for any address (promiscuous mode) for
/// as long as this is open.
#[derive(Debug)]
pub struct Slots {
    // Before the memory that they stand in. They are 'static only in here: `frames` lends them for as long as self.
    frames: Vec<Frame<'static>>,
    inlet: Inlet,
    ring: Map,
    slots: usize,
    slot_size: usize,
    /// The slots that are lent.
    first: usize,
    taken: usize,
    batch: usize,
    /// For frames longer than a slot.
    long: Map,
    counters: RxCounters,
    /// What is wrong with the interface: reported when all that came before is taken.
    fault: Option<RxError>,
}

impl Slots {
    /// Starts to receive, in the interface's network namespace, in batches of at most `batch` frames.
    ///
    /// # Errors
    /// That there is no socket or no memory, or that the interface is not there.
    pub fn open(target: &Target, batch: usize) -> Result<Slots, RxError> {
        let take = Take { direction: Direction::In, filter: &[], share: None, promiscuous: true };
        Slots::open_some(target, batch, &take, (RING, SLOTS))
    }

    /// Starts to receive what `take` says, with so many bytes of memory for frames that wait.
    ///
    /// # Errors
    /// As [`Slots::open`].
    pub fn open_large(
        target: &Target,
        batch: usize,
        take: &Take<'_>,
        bytes: usize,
    ) -> Result<Slots, RxError> {
        Slots::open_some(target, batch, take, (bytes, usize::MAX))
    }

    fn open_some(
        target: &Target,
        batch: usize,
        take: &Take<'_>,
        (bytes, most): (usize, usize),
    ) -> Result<Slots, RxError> {
        let inlet = Inlet::open(target, libc::tpacket_versions::TPACKET_V2, take.direction)?;
        // An interface's filter is there before its first frame is.
        if !take.filter.is_empty() {
            inlet.filter(take.filter)?;
        }
        let longest = target.mtu as usize + 14 + 8;
        let slot_size = (longest + BEFORE).next_power_of_two().clamp(2048, 65536);
        let block = slot_size.max(4096);
        let slots = (bytes / block).max(1) * (block / slot_size);
        let slots = slots.min(most);
        let request = libc::tpacket_req {
            tp_block_size: block as u32,
            tp_block_nr: (slots * slot_size / block) as u32,
            tp_frame_size: slot_size as u32,
            tp_frame_nr: slots as u32,
        };
        inlet.set(libc::PACKET_VNET_HDR, "PACKET_VNET_HDR", &1i32)?;
        inlet.set(PACKET_COPY_THRESH, "PACKET_COPY_THRESH", &1i32)?;
        // For the few frames that are too long for a slot; the FORCE form needs CAP_NET_ADMIN.
        let _ = sockopt::set_socket_recv_buffer_size_force(&inlet, (bytes / 2).max(8 << 20));
        inlet.set(libc::PACKET_RX_RING, "PACKET_RX_RING", &request)?;
        let ring = inlet.map(slots * slot_size)?;
        let long = Map::anonymous(LONG * LONGEST, false).map_err(|errno| RxError::Io {
            what: "memory for long frames",
            interface: target.name.clone(),
            source: errno.into(),
        })?;
        inlet.start(take.promiscuous)?;
        if let Some(group) = take.share {
            inlet.share(group)?;
        }
        let batch = batch.clamp(1, slots / 2);
        let frames = Vec::with_capacity(batch);
        let counters = RxCounters::default();
        Ok(Slots {
            frames,
            inlet,
            ring,
            slots,
            slot_size,
            first: 0,
            taken: 0,
            batch,
            long,
            counters,
            fault: None,
        })
    }

    fn slot(&self, nth: usize) -> NonNull<u8> {
        // SAFETY: below `slots`, so the slot lies inside of the mapping, which lives as long as self.
        unsafe { self.ring.base().add(nth % self.slots * self.slot_size) }
    }

    fn status(&self, nth: usize) -> &AtomicU32 {
        // SAFETY: tp_status is the first, aligned u32 of a slot; both sides access it atomically.
        unsafe { AtomicU32::from_ptr(self.slot(nth).cast().as_ptr()) }
    }

    fn take(&mut self) {
        let mut long = 0;
        while self.taken < self.batch && long < LONG {
            let at = self.first + self.taken;
            // Acquire: the frame is read only after the kernel has said that it is there.
            let status = self.status(at).load(Ordering::Acquire);
            if status & libc::TP_STATUS_USER == 0 {
                break;
            }
            // SAFETY: while the status says USER the kernel does not write to the slot but for that word, which is not
            // read here (it stands before); `give_back` empties `frames` before it says KERNEL, and `frames` lends
            // them no longer than that.
            let slot: &'static [u8] =
                unsafe { std::slice::from_raw_parts(self.slot(at).as_ptr(), self.slot_size) };
            // SAFETY: a slot starts with an aligned tpacket2_hdr, which is shorter than it.
            let header = unsafe { self.slot(at).cast::<libc::tpacket2_hdr>().read() };
            let start = usize::from(header.tp_mac);
            let mut bytes = slot.get(start..start + header.tp_snaplen as usize).unwrap_or_default();
            let mut before = start.checked_sub(OFFLOAD).and_then(|at| slot.get(at..));
            if status & libc::TP_STATUS_COPY != 0 {
                let whole = self.whole(long);
                long += 1;
                before = Some(whole);
                bytes = whole.get(OFFLOAD..).unwrap_or_default();
            }
            self.frames.push(Frame {
                bytes,
                length: header.tp_len as usize,
                tag: inlet::tag(status, header.tp_vlan_tci, header.tp_vlan_tpid),
                checksum: inlet::checksum(status),
                offload: before.and_then(<[u8]>::first_chunk).map_or_else(Offload::default, Offload::parse),
                stamp: inlet::stamp(status, header.tp_sec, header.tp_nsec),
                kind: inlet::kind(slot[ADDRESS + inlet::KIND]),
            });
            self.taken += 1;
        }
        self.counters.frames += self.taken as u64;
    }

    /// The next frame of the socket's own queue, in the `nth` place for long ones.
    fn whole(&self, nth: usize) -> &'static [u8] {
        debug_assert!(nth < LONG, "a place for a long frame");
        // SAFETY: inside of the mapping, and in use by no other frame: `frames` holds fewer than `nth` long ones. As
        // for slots, nobody holds the bytes when the place is written again.
        let place = unsafe { self.long.base().add(nth * LONGEST).as_ptr() };
        // SAFETY: `place` has LONGEST bytes.
        let read =
            unsafe { libc::recv(self.inlet.as_fd().as_raw_fd(), place.cast(), LONGEST, libc::MSG_DONTWAIT) };
        // SAFETY: the kernel wrote so many bytes there, at most LONGEST.
        unsafe { std::slice::from_raw_parts(place, usize::try_from(read).unwrap_or(0)) }
    }
}

impl AsFd for Slots {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inlet.as_fd()
    }
}

impl Rx for Slots {
    fn batch(&self) -> usize {
        self.batch
    }

    fn give_back(&mut self) {
        self.frames.clear();
        for nth in 0..self.taken {
            self.status(self.first + nth).store(libc::TP_STATUS_KERNEL, Ordering::Release);
        }
        self.first = (self.first + self.taken) % self.slots;
        self.taken = 0;
    }

    fn advance(&mut self, patience: Duration) -> Result<usize, RxError> {
        self.give_back();
        self.take();
        if self.taken == 0 && !patience.is_zero() {
            if let Some(fault) = self.fault.take() {
                return Err(fault);
            }
            let waited = self.inlet.wait(patience);
            self.take();
            match waited {
                // What came before is taken first.
                Err(fault) if self.taken > 0 => self.fault = Some(fault),
                waited => waited?,
            }
        }
        Ok(self.taken)
    }

    fn frames(&self) -> &[Frame<'_>] {
        &self.frames
    }

    fn counters(&mut self) -> RxCounters {
        self.counters.dropped = self.inlet.dropped();
        self.counters
    }

    fn facts(&self) -> RxFacts {
        RxFacts { tags: true, checksums: true, offloads: true, kinds: true, stamps: true, shared: true }
    }
}
