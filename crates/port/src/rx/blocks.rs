//! A packet socket's ring of blocks, many frames each (PACKET_RX_RING, TPACKET_V3;
//! Documentation/networking/packet_mmap.rst). The meter takes frames here: they stand closer than in slots, so that the
//! same memory holds more, and each has its time, so that it does not matter that a block comes up to [`RETIRE`] late.
//!
//! What was left to hardware, and of how many frames one was joined, is told on request: it costs the kernel time for each
//! frame, and the meter does not ask. A super-frame comes as it is, cut off at the block's end.
#![allow(unsafe_code, reason = "memory shared with the kernel")]

use super::inlet::{self, Inlet};
use super::{Direction, Frame, OFFLOAD, Offload, Rx, RxCounters, RxError, RxFacts};
use crate::map::Map;
use crate::packet::Target;
use std::mem::offset_of;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// 64 blocks of 256 KiB: 16 MiB hold some 80,000 small frames, 50 ms at 1.6 Mpps.
const BLOCK: usize = 256 << 10;
const BLOCKS: usize = 64;
/// The kernel hands over a block that is not full after this.
pub const RETIRE: Duration = Duration::from_millis(8);
/// What stands beside the frames of a batch fits a core's first cache (some 20 KB).
const BATCH: usize = 256;
/// Where a block says whose it is: `tpacket_block_desc.hdr.bh1.block_status`.
const STATUS: usize =
    offset_of!(libc::tpacket_block_desc, hdr) + offset_of!(libc::tpacket_hdr_v1, block_status);
/// The socket address behind a frame's header.
const ADDRESS: usize = size_of::<libc::tpacket3_hdr>().next_multiple_of(libc::TPACKET_ALIGNMENT);

/// Receives every frame that arrives on one interface, or leaves by it, or both.
#[derive(Debug)]
pub struct Blocks {
    // Before the memory that they stand in. They are 'static only in here: `frames` lends them for as long as self.
    frames: Vec<Frame<'static>>,
    inlet: Inlet,
    ring: Map,
    blocks: usize,
    /// The block that is, or will be, read: below `blocks`.
    block: usize,
    /// What is yet to be read of it; `None`: it is the kernel's.
    rest: Option<Rest>,
    /// Before each frame stands what was left to hardware.
    offloads: bool,
    counters: RxCounters,
    /// What is wrong with the interface: reported when all that came before is taken.
    fault: Option<RxError>,
}

/// Frames of a block that were not taken yet.
#[derive(Debug, Clone, Copy)]
struct Rest {
    frames: u32,
    /// Where the next one's header stands.
    at: usize,
}

impl Blocks {
    /// Starts to receive, in the interface's network namespace. With `promiscuous` the interface takes frames for any
    /// address for as long as this is open; with `hardware`, frames that the hardware stamped have its time.
    ///
    /// # Errors
    /// That there is no socket or no memory, or that the interface is not there.
    pub fn open(target: &Target, promiscuous: bool, hardware: bool) -> Result<Blocks, RxError> {
        Blocks::open_with(target, (Direction::In, promiscuous), hardware, BLOCKS, false)
    }

    /// The same, with so many bytes of memory for frames that wait, and with what was left to hardware ([`Frame::offload`]). For
    /// what arrives the interface takes frames for any address.
    ///
    /// # Errors
    /// As [`Blocks::open`].
    pub fn open_large(target: &Target, direction: Direction, bytes: usize) -> Result<Blocks, RxError> {
        let promiscuous = direction != Direction::Out;
        Blocks::open_with(target, (direction, promiscuous), false, (bytes / BLOCK).clamp(2, 4096), true)
    }

    fn open_with(
        target: &Target,
        (direction, promiscuous): (Direction, bool),
        hardware: bool,
        blocks: usize,
        offloads: bool,
    ) -> Result<Blocks, RxError> {
        let inlet = Inlet::open(target, libc::tpacket_versions::TPACKET_V3, direction)?;
        if hardware {
            let stamps = libc::SOF_TIMESTAMPING_RAW_HARDWARE;
            inlet.set(libc::PACKET_TIMESTAMP, "PACKET_TIMESTAMP", &stamps)?;
        }
        if offloads {
            inlet.set(libc::PACKET_VNET_HDR, "PACKET_VNET_HDR", &1i32)?;
        }
        let request = libc::tpacket_req3 {
            tp_block_size: BLOCK as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: 2048, // version 3 packs frames closely; this only has to divide the block
            tp_frame_nr: (BLOCK / 2048 * blocks) as u32,
            tp_retire_blk_tov: RETIRE.as_millis() as u32,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        inlet.set(libc::PACKET_RX_RING, "PACKET_RX_RING", &request)?;
        let ring = inlet.map(BLOCK * blocks)?;
        inlet.start(promiscuous)?;
        let frames = Vec::with_capacity(BATCH);
        let counters = RxCounters::default();
        Ok(Blocks { frames, inlet, ring, blocks, block: 0, rest: None, offloads, counters, fault: None })
    }

    fn start(&self) -> NonNull<u8> {
        // SAFETY: `block` is below `blocks`, so this is inside of the mapping, which lives as long as self.
        unsafe { self.ring.base().add(self.block * BLOCK) }
    }

    fn status(&self) -> &AtomicU32 {
        // SAFETY: inside of the block; blocks are page-aligned and STATUS is a multiple of 4. Kernel and we both access
        // it atomically.
        unsafe { AtomicU32::from_ptr(self.start().add(STATUS).cast().as_ptr()) }
    }

    /// The block that is ours.
    fn bytes(&self) -> &'static [u8] {
        // SAFETY: inside of the mapping; the caller has seen USER, so that the kernel does not write to the block.
        // `give_back` empties `frames` before it gives the block back, and `frames` lends them no longer than that.
        unsafe { std::slice::from_raw_parts(self.start().as_ptr(), BLOCK) }
    }

    fn take(&mut self) {
        let mut rest = match self.rest {
            Some(rest) => rest,
            // Acquire: the block's bytes are read only after the kernel has said that they are there.
            None if self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 => return,
            None => first(self.bytes()),
        };
        let block = self.bytes();
        while self.frames.len() < BATCH && rest.frames > 0 {
            match next(block, &mut rest, self.offloads) {
                Some(frame) => self.frames.push(frame),
                None => rest.frames = 0,
            }
        }
        self.rest = Some(rest);
        self.counters.frames += self.frames.len() as u64;
    }
}

fn word(block: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*block.get(at..)?.first_chunk()?))
}

/// All frames of a block, by struct tpacket_block_desc.
fn first(block: &[u8]) -> Rest {
    use libc::{tpacket_block_desc as desc, tpacket_hdr_v1 as head};
    const HEAD: usize = offset_of!(desc, hdr);
    Rest {
        frames: word(block, HEAD + offset_of!(head, num_pkts)).unwrap_or(0),
        at: word(block, HEAD + offset_of!(head, offset_to_first_pkt)).unwrap_or(0) as usize,
    }
}

/// The next frame of a block, by struct tpacket3_hdr; `None` if an offset points outside.
fn next<'a>(block: &'a [u8], rest: &mut Rest, offloads: bool) -> Option<Frame<'a>> {
    use libc::{tpacket_hdr_variant1 as variant, tpacket3_hdr as packet};
    const TAG: usize = offset_of!(packet, hv1) + offset_of!(variant, tp_vlan_tci);
    const TAG_TYPE: usize = offset_of!(packet, hv1) + offset_of!(variant, tp_vlan_tpid);
    let header = block.get(rest.at..)?;
    let half = |at: usize| Some(u16::from_ne_bytes(*header.get(at..)?.first_chunk()?));
    let status = word(header, offset_of!(packet, tp_status))?;
    let start = usize::from(half(offset_of!(packet, tp_mac))?);
    let captured = word(header, offset_of!(packet, tp_snaplen))? as usize;
    let seconds = word(header, offset_of!(packet, tp_sec))?;
    let nanoseconds = word(header, offset_of!(packet, tp_nsec))?;
    let control = word(header, TAG)? as u16;
    let before = offloads.then(|| start.checked_sub(OFFLOAD)).flatten();
    let before = before.and_then(|at| header.get(at..)?.first_chunk());
    let frame = Frame {
        bytes: header.get(start..start + captured)?,
        length: word(header, offset_of!(packet, tp_len))? as usize,
        tag: inlet::tag(status, control, half(TAG_TYPE)?),
        checksum: inlet::checksum(status),
        offload: before.map_or_else(Offload::default, Offload::parse),
        stamp: inlet::stamp(status, seconds, nanoseconds),
        kind: inlet::kind(*header.get(ADDRESS + inlet::KIND)?),
    };
    rest.at += word(header, offset_of!(packet, tp_next_offset))? as usize;
    rest.frames -= 1;
    Some(frame)
}

impl AsFd for Blocks {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inlet.as_fd()
    }
}

impl Rx for Blocks {
    fn batch(&self) -> usize {
        BATCH
    }

    fn give_back(&mut self) {
        self.frames.clear();
        if self.rest.is_some_and(|rest| rest.frames == 0) {
            self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.block = (self.block + 1) % self.blocks;
            self.rest = None;
        }
    }

    fn advance(&mut self, patience: Duration) -> Result<usize, RxError> {
        self.give_back();
        self.take();
        if self.frames.is_empty() && !patience.is_zero() {
            // A block without frames goes back before anybody waits for the next one.
            self.give_back();
            if let Some(fault) = self.fault.take() {
                return Err(fault);
            }
            if let Err(fault) = self.inlet.wait(patience) {
                // Frames that came before are in a block that the kernel still has, for so long at most.
                std::thread::sleep(2 * RETIRE);
                self.fault = Some(fault);
            }
            self.take();
            if self.frames.is_empty()
                && let Some(fault) = self.fault.take()
            {
                return Err(fault);
            }
        }
        Ok(self.frames.len())
    }

    fn frames(&self) -> &[Frame<'_>] {
        &self.frames
    }

    fn counters(&mut self) -> RxCounters {
        self.counters.dropped = self.inlet.dropped();
        self.counters
    }

    fn facts(&self) -> RxFacts {
        RxFacts {
            tags: true,
            checksums: true,
            offloads: self.offloads,
            kinds: true,
            stamps: true,
            shared: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rx::{Checksum, Kind, Stamp, StampedBy};

    /// A block as the kernel lays it out, with one header for each of `packets`: length, captured, status.
    fn block(packets: &[(u32, u32, u32)]) -> Vec<u8> {
        let mut block = vec![0u8; 8192];
        let put = |block: &mut Vec<u8>, at: usize, value: u32| {
            block[at..at + 4].copy_from_slice(&value.to_ne_bytes())
        };
        put(&mut block, 12, packets.len() as u32);
        put(&mut block, 16, 48);
        for (number, (length, captured, status)) in packets.iter().enumerate() {
            let at = 48 + number * 1024;
            for (field, value) in
                [1024, 7, 5 + number as u32, *captured, *length, *status].into_iter().enumerate()
            {
                put(&mut block, at + field * 4, value);
            }
            block[at + 24..at + 26].copy_from_slice(&82u16.to_ne_bytes());
            put(&mut block, at + 32, 0x2005);
            block[at + 36..at + 38].copy_from_slice(&0x88a8u16.to_ne_bytes());
            block[at + 48 + 10] = libc::PACKET_OTHERHOST;
            block[at + 82..][..*captured as usize].fill(number as u8 + 1);
        }
        block
    }

    fn frames(block: &[u8]) -> Vec<Frame<'_>> {
        let mut rest = first(block);
        std::iter::from_fn(|| rest.frames.checked_sub(1).and_then(|_| next(block, &mut rest, false)))
            .collect()
    }

    #[test]
    fn a_block_yields_its_frames_with_their_times() {
        let block = block(&[(60, 60, 1), (100, 100, 1)]);
        let frame = |bytes: &'static [u8], ns| Frame {
            kind: Kind::OtherHost,
            ..Frame::bare(bytes, Stamp { ns, by: StampedBy::Socket })
        };
        assert_eq!(frames(&block), [frame(&[1; 60], 7_000_000_005), frame(&[2; 100], 7_000_000_006)]);
    }

    #[test]
    fn whose_stamp_it_is_and_what_is_known_of_the_checksum_stand_in_the_status() {
        let block = block(&[(60, 60, 1 | 1 << 31), (60, 60, 1 | 1 << 29 | 1 << 7), (60, 60, 1 | 1 << 3)]);
        let told: Vec<_> = frames(&block).iter().map(|frame| (frame.stamp.by, frame.checksum)).collect();
        let expected = [
            (StampedBy::Hardware, Checksum::Unknown),
            (StampedBy::Driver, Checksum::Verified),
            (StampedBy::Socket, Checksum::Unfinished),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn a_tag_taken_out_is_told_and_a_cut_frame_says_how_long_it_was() {
        let valid = 1 | libc::TP_STATUS_VLAN_VALID;
        let block = block(&[(60, 60, valid), (60, 60, valid | 1 << 6), (3000, 200, 1)]);
        let frames = frames(&block);
        assert_eq!((frames[0].tag, frames[1].tag), (Some((0x8100, 0x2005)), Some((0x88a8, 0x2005))));
        assert_eq!((frames[2].length, frames[2].bytes.len(), frames[2].tag), (3000, 200, None));
    }

    #[test]
    fn offsets_outside_the_block_end_it() {
        let mut cut = block(&[(60, 60, 1), (60, 60, 1)]);
        cut[48..52].copy_from_slice(&u32::MAX.to_ne_bytes());
        assert_eq!(frames(&cut).len(), 1);
        assert_eq!(frames(&cut[..100]).len(), 0);
        assert_eq!(frames(&[]).len(), 0);
    }
}
