//! Maps whose one value user space shares.
#![allow(unsafe_code, reason = "map values are shared memory, read and written by address")]

use libbpf_rs::libbpf_sys as sys;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::{CStr, c_void};
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

/// A map with a single value of many bytes, mapped into this process.
#[derive(Debug)]
pub struct Memory {
    map: OwnedFd,
    start: *mut c_void,
    bytes: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread; shared access is by atomic words only, and plain writes
// need `&mut self`.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

/// Makes a map's value area a whole number of pages, as the mapping will be.
const PAGE: usize = 4096;

impl Memory {
    /// A map of `bytes` zero bytes.
    ///
    /// # Errors
    /// What the kernel answers: EPERM without CAP_BPF, ENOMEM.
    pub fn new(name: &CStr, bytes: usize) -> Result<Memory, Errno> {
        let bytes = bytes.max(1).next_multiple_of(PAGE);
        let size = u32::try_from(bytes).ok().filter(|&size| size <= i32::MAX as u32).ok_or(Errno::TOOBIG)?;
        let options = sys::bpf_map_create_opts {
            sz: size_of::<sys::bpf_map_create_opts>() as sys::size_t,
            map_flags: sys::BPF_F_MMAPABLE,
            ..Default::default()
        };
        // SAFETY: `name` is a C string, `options` states its size, and both outlive the call; the rest are numbers.
        let map = unsafe {
            sys::bpf_map_create(sys::BPF_MAP_TYPE_ARRAY, name.as_ptr(), 4, size, 1, &raw const options)
        };
        if map < 0 {
            return Err(Errno::from_raw_os_error(-map));
        }
        // SAFETY: the kernel has just given us this descriptor; nobody else has it.
        let map = unsafe { OwnedFd::from_raw_fd(map) };
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let start = unsafe { mmap(ptr::null_mut(), bytes, access, MapFlags::SHARED, map.as_fd(), 0)? };
        Ok(Memory { map, start, bytes })
    }

    /// The map's descriptor, for instructions that point into it.
    pub fn descriptor(&self) -> i32 {
        self.map.as_raw_fd()
    }

    /// Copies bytes in, before any program runs that reads them.
    pub fn write(&mut self, at: usize, bytes: &[u8]) {
        assert!(at.checked_add(bytes.len()).is_some_and(|end| end <= self.bytes), "beyond the map");
        // SAFETY: the range lies within the mapping, which lives as long as self; `bytes` is our own memory, so they
        // do not overlap. Nobody in this process holds a reference into the mapping.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.cast::<u8>().add(at), bytes.len()) }
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at.is_multiple_of(8) && at + 8 <= self.bytes, "beyond the map");
        // SAFETY: in range and aligned (the mapping starts at a page); the memory is only ever read and written as
        // whole words while programs run, by them with plain 64-bit moves, by us through atomics.
        unsafe { &*self.start.cast::<u8>().add(at).cast::<AtomicU64>() }
    }

    /// The 64-bit word at byte `at`.
    pub fn load(&self, at: usize) -> u64 {
        self.word(at).load(Ordering::Acquire)
    }

    /// Writes the 64-bit word at byte `at`.
    pub fn store(&self, at: usize, value: u64) {
        self.word(at).store(value, Ordering::Release);
    }
}

impl AsFd for Memory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.map.as_fd()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: exactly what `new` mapped; references handed out borrow self. A failure leaves a mapping that
        // harms nobody.
        let _ = unsafe { munmap(self.start, self.bytes) };
    }
}
