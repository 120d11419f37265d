//! Asks for memory before it is used, so that several accesses are under way at once. A load does not do: a core holds what
//! comes behind it only for some hundred instructions, while this one is done with at once.
#![allow(unsafe_code, reason = "prefetching takes an address")]

/// Bytes of a cache line, of nearly all machines.
const LINE: usize = 64;

/// Asks for all lines of what is about to be read. Nothing on machines of which we do not know how.
#[inline(always)]
pub fn ask_for<T>(what: &T) {
    let from = std::ptr::from_ref(what).cast::<u8>();
    let mut at = 0;
    while at < size_of::<T>() {
        line(from.wrapping_add(at));
        at += LINE;
    }
    // The line of the last byte, if it is another one than that of LINE bytes before.
    if size_of::<T>() > 1 {
        line(from.wrapping_add(size_of::<T>() - 1));
    }
}

#[inline(always)]
fn line(at: *const u8) {
    // SAFETY: a hint: it reads nothing into the program, and faults at no address.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{at}]", at = in(reg) at, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = at;
}
