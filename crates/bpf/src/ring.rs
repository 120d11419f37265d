//! The reading side of a BPF ring buffer (Documentation/bpf/ringbuf.rst, Linux 5.8): records that programs wrote, in place.
//!
//! The kernel's memory is mapped as it lays it out: a page with the consumer's position, which is ours to write; a page with the
//! producer's; then the records, twice behind each other, so that none is broken at the end. Positions count bytes and never go back.
#![allow(
    unsafe_code,
    reason = "shared memory is mapped and read by address; everything above this module is safe"
)]

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::c_void;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::{io, slice};

/// In a record's length: it is being written,
const BUSY: u32 = 1 << 31;
/// or was given up.
const DISCARDED: u32 = 1 << 30;
/// Before a record: its length, and what is the kernel's own.
const HEADER: usize = 8;

/// A ring buffer, of which this is the one reader. Its descriptor can be polled for records.
#[derive(Debug)]
pub struct Ring {
    map: OwnedFd,
    consumer: NonNull<c_void>,
    producer: NonNull<c_void>,
    page: usize,
    /// Bytes of records: a power of two.
    size: usize,
    /// Behind the last record that was lent.
    next: u64,
    /// What the kernel was told.
    free: u64,
}

// SAFETY: the mappings belong to the process, not to a thread; writing needs `&mut`.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps the ring buffer behind `map`, which was made with `size` bytes.
    ///
    /// # Errors
    /// What `mmap` answers.
    pub fn open(map: OwnedFd, size: usize) -> io::Result<Ring> {
        let page = rustix::param::page_size();
        let map_at = |length: usize, access: ProtFlags, offset: usize| {
            // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
            let start =
                unsafe { mmap(ptr::null_mut(), length, access, MapFlags::SHARED, &map, offset as u64)? };
            NonNull::new(start).ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))
        };
        let consumer = map_at(page, ProtFlags::READ | ProtFlags::WRITE, 0)?;
        let producer = match map_at(page + 2 * size, ProtFlags::READ, page) {
            Ok(producer) => producer,
            Err(error) => {
                // SAFETY: exactly what was mapped above.
                let _ = unsafe { munmap(consumer.as_ptr(), page) };
                return Err(error);
            }
        };
        let mut ring = Ring { map, consumer, producer, page, size, next: 0, free: 0 };
        ring.next = ring.told().load(Ordering::Relaxed);
        ring.free = ring.next;
        Ok(ring)
    }

    /// Where the kernel is told how far records were read.
    fn told(&self) -> &AtomicU64 {
        // SAFETY: the page's first word, mapped as long as self lives; both sides access it whole (on 32-bit kernels it is a
        // shorter word, and programs of this project are for 64-bit ones).
        unsafe { AtomicU64::from_ptr(self.consumer.cast().as_ptr()) }
    }

    /// Behind the last record that was begun.
    fn end(&self) -> u64 {
        // SAFETY: as in `told`; the kernel alone writes it, and loads are allowed on memory mapped read-only.
        unsafe { AtomicU64::from_ptr(self.producer.cast().as_ptr()) }.load(Ordering::Acquire)
    }

    /// The next record that is whole. Its bytes stay as they are until [`Ring::give_back`].
    pub fn take(&mut self) -> Option<NonNull<[u8]>> {
        while self.next < self.end() {
            let at = self.next as usize & (self.size - 1);
            // SAFETY: below `size`, behind the producer's page; what begins there fits the second mapping of the records.
            let header = unsafe { self.producer.cast::<u8>().add(self.page + at) };
            // SAFETY: records stand at multiples of 8; the kernel writes the length's bits whole.
            let word = unsafe { AtomicU32::from_ptr(header.cast().as_ptr()) }.load(Ordering::Acquire);
            if word & BUSY != 0 {
                return None;
            }
            let length = (word & !DISCARDED) as usize;
            // A length that cannot be is nobody's: nothing behind it could be found.
            if length > self.size {
                return None;
            }
            self.next += (HEADER + length).next_multiple_of(8) as u64;
            if word & DISCARDED == 0 {
                // SAFETY: behind the header, and no further than the second mapping reaches.
                let bytes = unsafe { header.add(HEADER) };
                return Some(NonNull::slice_from_raw_parts(bytes, length));
            }
        }
        None
    }

    /// Gives what was lent back, so that programs may write there.
    pub fn give_back(&mut self) {
        if self.free != self.next {
            self.free = self.next;
            // Release: what was lent was read before.
            self.told().store(self.next, Ordering::Release);
        }
    }

    /// Is there a record that was not lent, whole or not? A program wakes nobody while records wait that were not given back, so who
    /// goes to sleep gives back first, and asks this after it.
    pub fn has_more(&self) -> bool {
        // The program must see our position before we look at its.
        fence(Ordering::SeqCst);
        self.next < self.end()
    }

    /// The record's bytes, for who has just taken it.
    ///
    /// # Safety
    /// The ring was not asked to give back since, and lives for `'a`.
    pub unsafe fn bytes<'a>(record: NonNull<[u8]>) -> &'a [u8] {
        // SAFETY: by this function's own promise the record is lent: the kernel does not write to it.
        unsafe { slice::from_raw_parts(record.as_ptr().cast::<u8>(), record.len()) }
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.map.as_fd()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: exactly what `open` mapped; no reference into it outlives self.
        let _ = unsafe { munmap(self.consumer.as_ptr(), self.page) };
        // SAFETY: as above.
        let _ = unsafe { munmap(self.producer.as_ptr(), self.page + 2 * self.size) };
    }
}
