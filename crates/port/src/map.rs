//! Memory mapped into this process: frames of its own (a UMEM), and the rings that sockets lend.
#![allow(unsafe_code, reason = "mapping memory has no safe form")]

use std::ffi::c_void;
use std::os::fd::AsFd;
use std::ptr::{NonNull, null_mut};

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

const HUGE_PAGE: usize = 2 << 20;

/// Asks the kernel for huge pages where `bytes` of this process's memory stand at `address` and were not touched yet:
/// `MADV_HUGEPAGE` (Linux 2.6.38; `/sys/kernel/mm/transparent_hugepage/enabled` must not say `never`). Who reads large memory
/// at random places looks up far fewer pages then. A kernel that has none to give does without.
pub fn prefer_huge_pages(address: usize, bytes: usize) {
    let from = address.next_multiple_of(HUGE_PAGE);
    let to = address.saturating_add(bytes) / HUGE_PAGE * HUGE_PAGE;
    if from < to {
        let at = std::ptr::without_provenance_mut::<c_void>(from);
        // SAFETY: advice on how memory is used: it changes neither what stands there nor who may access it, and where this
        // process has no memory the kernel refuses it.
        let _ = unsafe { madvise(at, to - from, Advice::LinuxHugepage) };
    }
}

/// A mapping, gone when dropped.
#[derive(Debug)]
pub struct Map {
    base: NonNull<u8>,
    length: usize,
    /// It consists of huge pages.
    pub huge: bool,
}

// SAFETY: a mapping belongs to the process, not to a thread; this type gives out its address only.
unsafe impl Send for Map {}
// SAFETY: as above; nothing is read or written through a shared reference.
unsafe impl Sync for Map {}

impl Map {
    /// Zeroed memory of at least `length` bytes, in huge pages if asked for and the machine has that many to spare.
    ///
    /// # Errors
    /// That there is no memory.
    pub fn anonymous(length: usize, huge: bool) -> Result<Map, Errno> {
        let flags = MapFlags::PRIVATE | MapFlags::POPULATE;
        let rounded = length.next_multiple_of(HUGE_PAGE);
        if huge && let Ok(map) = Map::of_pages(rounded, flags | MapFlags::HUGETLB, true) {
            return Ok(map);
        }
        Map::of_pages(length, flags, false)
    }

    fn of_pages(length: usize, flags: MapFlags, huge: bool) -> Result<Map, Errno> {
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
        let base = unsafe { mmap_anonymous(null_mut(), length, ProtFlags::READ | ProtFlags::WRITE, flags)? };
        Map::own(base, length, huge)
    }

    /// `length` bytes of what stands at `offset` of a descriptor.
    ///
    /// # Errors
    /// That it cannot be mapped.
    pub fn shared(fd: impl AsFd, offset: u64, length: usize) -> Result<Map, Errno> {
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: as above.
        let base =
            unsafe { mmap(null_mut(), length, ProtFlags::READ | ProtFlags::WRITE, flags, fd, offset)? };
        Map::own(base, length, false)
    }

    fn own(base: *mut c_void, length: usize, huge: bool) -> Result<Map, Errno> {
        let base = NonNull::new(base.cast()).ok_or(Errno::NOMEM)?;
        Ok(Map { base, length, huge })
    }

    /// Where it starts.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Its bytes.
    pub fn length(&self) -> usize {
        self.length
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: exactly what was mapped; whoever uses the memory holds this value.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::prefer_huge_pages;
    use std::fs;

    #[test]
    fn memory_that_prefers_huge_pages_is_told_to_the_kernel() {
        let memory: Vec<u8> = Vec::with_capacity(16 << 20);
        prefer_huge_pages(memory.as_ptr().addr(), memory.capacity());
        let maps = fs::read_to_string("/proc/self/smaps").unwrap();
        // Flag `hg` of the mapping that the middle stands in (proc(5)).
        let middle = memory.as_ptr().addr() + (8 << 20);
        let mut inside = false;
        let flags = maps.lines().find(|line| {
            if let Some((from, to)) = line.split_once(' ').and_then(|(range, _)| range.split_once('-')) {
                let ends = [from, to].map(|end| usize::from_str_radix(end, 16));
                if let [Ok(from), Ok(to)] = ends {
                    inside = (from..to).contains(&middle);
                }
            }
            inside && line.starts_with("VmFlags:")
        });
        let enabled = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").is_ok();
        assert_eq!(flags.unwrap().split_whitespace().any(|flag| flag == "hg"), enabled);
    }
}
