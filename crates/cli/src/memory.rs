//! The end of memory, said in a sentence.
//!
//! What can be foreseen is refused before (`engine::memory`). Where the system refuses memory all the same, the standard
//! library ends the process by an abort, with a core dump and without our exit status; so it is asked here.
#![allow(unsafe_code, reason = "an allocator has no safe form")]

use std::alloc::{GlobalAlloc, Layout, System};

/// The system's allocator. When it has nothing left, the process ends with a message and status 2.
#[derive(Debug)]
pub struct Saying;

// SAFETY: each call is the system allocator's with the same arguments, and what that returns is returned.
unsafe impl GlobalAlloc for Saying {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps what `GlobalAlloc::alloc` asks for.
        had(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        had(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        had(unsafe { System.realloc(at, layout, size) })
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
}

#[inline(always)]
fn had(at: *mut u8) -> *mut u8 {
    if at.is_null() { end() } else { at }
}

/// Nothing here may want memory.
#[cold]
fn end() -> ! {
    const WORDS: &[u8] =
        b"netdyno: out of memory: the system has no more for this process; hold less at a time, or raise its limit\n";
    let _ = rustix::io::write(rustix::stdio::stderr(), WORDS);
    signal_hook::low_level::exit(2)
}
