//! The memory that frames stand in (the UMEM), shared by the sockets of all queues: each has a region of its own.
#![allow(unsafe_code, reason = "regions of one mapping, each with one owner, and the kernel as a reader")]

use std::ops::Range;
use std::sync::Arc;

use rustix::io::Errno;

use crate::map::Map;

/// The unit in which the kernel sees the UMEM: a descriptor must lie within one. The largest that is allowed
/// everywhere, so that few frames need several.
pub const CHUNK: usize = 4096;

/// A part of a UMEM, cut into slots of one size.
///
/// A slot holds the longest frame. Short ones share a chunk, as many as fit; long ones take several chunks in a row,
/// so that the frame stands in one piece all the same.
#[derive(Debug)]
pub struct Region {
    umem: Arc<Map>,
    /// From the start of the UMEM.
    offset: usize,
    stride: usize,
    slots: usize,
}

/// The size of the slots for frames of up to `longest` bytes.
pub fn slot_size(longest: usize) -> usize {
    if longest <= CHUNK { longest.next_power_of_two().max(64) } else { longest.next_multiple_of(CHUNK) }
}

impl Region {
    /// A UMEM with room for `regions` regions of `slots` slots each.
    pub fn allot(regions: usize, slots: usize, stride: usize, huge: bool) -> Result<Vec<Region>, Errno> {
        let each = (slots * stride).next_multiple_of(CHUNK);
        let umem = Arc::new(Map::anonymous(each * regions, huge)?);
        let region = |i| Region { umem: Arc::clone(&umem), offset: i * each, stride, slots };
        Ok((0..regions).map(region).collect())
    }

    /// The UMEM that this is part of.
    pub fn umem(&self) -> &Map {
        &self.umem
    }

    pub fn slots(&self) -> usize {
        self.slots
    }

    pub fn stride(&self) -> usize {
        self.stride
    }

    /// The descriptors of a frame of `length` bytes in a slot: address, length, and whether more of it follows.
    pub fn pieces(&self, slot: usize, length: usize) -> impl Iterator<Item = (u64, u32, bool)> + use<> {
        let start = self.offset + slot * self.stride;
        (0..length.div_ceil(CHUNK)).map(move |i| {
            let rest = length - i * CHUNK;
            ((start + i * CHUNK) as u64, rest.min(CHUNK) as u32, rest > CHUNK)
        })
    }

    /// The slot in which an address lies; `None` if it is in nobody's or another's.
    pub fn slot(&self, address: u64) -> Option<usize> {
        let slot = usize::try_from(address).ok()?.checked_sub(self.offset)? / self.stride;
        (slot < self.slots).then_some(slot)
    }

    /// `length` bytes at an address; `None` if they do not lie in one chunk of this region.
    ///
    /// # Safety
    /// Until `'a` ends, nobody may write there, the kernel included, and the region must live.
    pub unsafe fn lend<'a>(&self, address: u64, length: usize) -> Option<&'a [u8]> {
        self.slot(address)?;
        let at = usize::try_from(address).ok()?;
        if at % CHUNK + length > CHUNK {
            return None;
        }
        // SAFETY: inside of a chunk of this region, and so of the mapping; the caller vouches for writers and time.
        unsafe { Some(std::slice::from_raw_parts(self.umem.base().add(at).as_ptr(), length)) }
    }

    /// The bytes of some slots.
    ///
    /// # Safety
    /// The kernel must be done with the frames in these slots.
    pub unsafe fn bytes(&mut self, slots: Range<usize>) -> &mut [u8] {
        assert!(slots.start <= slots.end && slots.end <= self.slots, "slots of this region");
        // SAFETY: the range lies inside of this region, which is inside of the mapping; regions do not overlap and this
        // one is borrowed; the caller vouches for the kernel.
        unsafe {
            let start = self.umem.base().add(self.offset + slots.start * self.stride);
            std::slice::from_raw_parts_mut(start.as_ptr(), slots.len() * self.stride)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_frame_crosses_the_end_of_its_slot_and_no_descriptor_that_of_its_chunk() {
        for longest in [14, 60, 64, 65, 1514, 1518, 2048, 2049, 4096, 4097, 9014, 65_549] {
            // Miri takes a thousand times as long (scripts/miri).
            let slots = if cfg!(miri) { 5 } else { 128 };
            let regions = Region::allot(3, slots, slot_size(longest), false).unwrap();
            let mut before = 0;
            for region in &regions {
                for slot in 0..region.slots() {
                    let pieces: Vec<_> = region.pieces(slot, longest).collect();
                    let mut at = pieces[0].0;
                    assert!(at >= before, "slots overlap");
                    for (i, &(address, length, more)) in pieces.iter().enumerate() {
                        assert_eq!((address, more), (at, i + 1 < pieces.len()));
                        assert!(address as usize % CHUNK + length as usize <= CHUNK);
                        assert_eq!(region.slot(address), Some(slot));
                        at += u64::from(length);
                    }
                    assert_eq!(at - pieces[0].0, longest as u64);
                    assert!(at as usize <= region.umem().length());
                    before = at;
                }
            }
            assert_eq!(regions[1].slot(0), None);
            assert_eq!(regions[0].slot(u64::MAX), None);
        }
    }

    #[test]
    fn regions_do_not_share_bytes() {
        let mut regions = Region::allot(2, 64, 64, false).unwrap();
        for (i, region) in regions.iter_mut().enumerate() {
            // SAFETY: no socket knows this memory.
            unsafe { region.bytes(0..64) }.fill(i as u8 + 1);
        }
        for (i, region) in regions.iter_mut().enumerate() {
            // SAFETY: as above.
            assert!(unsafe { region.bytes(0..64) }.iter().all(|byte| *byte == i as u8 + 1));
        }
    }
}
