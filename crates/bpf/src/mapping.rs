//! Memory shared with the kernel: BPF array maps, read while the kernel's program writes them.
#![allow(
    unsafe_code,
    reason = "shared memory is mapped and read by address; everything above this module is safe"
)]

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::c_void;
use std::marker::PhantomData;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{io, ptr};

/// Types that are nothing but `u64`s, so that any bytes are a valid value and each field can be read on its own.
///
/// # Safety
/// `repr(C)`, every field a `u64` or an array or struct of them; padding only at the end, in whole `u64`s.
pub unsafe trait Words: Sized {}

/// One that has counted nothing, made where it stays: large ones do not fit on the stack of a thread.
pub fn zeroed<T: Words>() -> Box<T> {
    // SAFETY: by the trait's promise any words are a valid T.
    unsafe { Box::<T>::new_zeroed().assume_init() }
}

// SAFETY: it is one.
unsafe impl Words for u64 {}

/// The entries of a BPF array map that was made with `BPF_F_MMAPABLE`.
#[derive(Debug)]
pub struct Mapping<T> {
    start: *mut c_void,
    entries: usize,
    of: PhantomData<T>,
}

// SAFETY: the mapping belongs to the process, not to a thread, and is only ever read, by atomic loads.
unsafe impl<T> Send for Mapping<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Mapping<T> {}

impl<T: Words> Mapping<T> {
    /// Maps all `entries` of the map behind `map`, whose values are `T`s.
    ///
    /// # Errors
    /// What `mmap` answers: EINVAL or EPERM of a map made without `BPF_F_MMAPABLE`, ENOMEM.
    pub fn new(map: BorrowedFd<'_>, entries: usize) -> io::Result<Self> {
        let bytes = entries * size_of::<T>();
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let start = unsafe { mmap(ptr::null_mut(), bytes, ProtFlags::READ, MapFlags::SHARED, map, 0)? };
        Ok(Mapping { start, entries, of: PhantomData })
    }

    /// Number of entries.
    #[allow(clippy::len_without_is_empty, reason = "no map is empty")]
    pub fn len(&self) -> usize {
        self.entries
    }

    /// One word of entry `index`.
    pub fn word(&self, index: usize, word: usize) -> Option<u64> {
        let words = size_of::<T>() / size_of::<u64>();
        if index >= self.entries || word >= words {
            return None;
        }
        // SAFETY: inside the mapping, as in `get`.
        Some(unsafe { (*self.start.cast::<AtomicU64>().add(index * words + word)).load(Ordering::Relaxed) })
    }

    /// Entry `index` as it is now. Each `u64` is read in one piece, the whole is not: a frame may be counted in one
    /// field and not yet in the next.
    pub fn get(&self, index: usize) -> Option<T> {
        let mut value = MaybeUninit::<T>::uninit();
        // SAFETY: `read` wrote every word, and by the trait's promise any words are a valid T.
        self.read(index, &mut value).then(|| unsafe { value.assume_init() })
    }

    /// The same, never on the stack.
    pub fn get_boxed(&self, index: usize) -> Option<Box<T>> {
        let mut value = Box::<T>::new_uninit();
        // SAFETY: as in `get`.
        self.read(index, &mut value).then(|| unsafe { value.assume_init() })
    }

    /// Writes every word of `value`, unless there is no entry `index`.
    fn read(&self, index: usize, value: &mut MaybeUninit<T>) -> bool {
        if index >= self.entries {
            return false;
        }
        let words = size_of::<T>() / size_of::<u64>();
        for word in 0..words {
            // SAFETY: the mapping is page-aligned and holds `entries` values of `words` u64s (checked by the loader),
            // and lives as long as self. The kernel writes it with plain 64-bit stores, which relaxed loads may meet;
            // loads are allowed on memory mapped read-only. `value` has room for `words` words and is written only.
            unsafe {
                let from = self.start.cast::<AtomicU64>().add(index * words + word);
                value.as_mut_ptr().cast::<u64>().add(word).write((*from).load(Ordering::Relaxed));
            }
        }
        true
    }
}

impl<T> Drop for Mapping<T> {
    fn drop(&mut self) {
        // SAFETY: exactly what `new` mapped; no reference into it outlives self.
        // A failure would leave the mapping in place, which harms nobody.
        let _ = unsafe { munmap(self.start, self.entries * size_of::<T>()) };
    }
}
