//! The reading side of perf rings (perf_event_open(2), `BPF_MAP_TYPE_PERF_EVENT_ARRAY`): one for each CPU, to which programs hand
//! copies of what they see.
//!
//! libbpf opens, maps and reads them. Its settings by default wake the reader for each record, which costs a program more than the
//! record; here nobody is woken, and whoever reads looks as often as it needs to.
#![allow(
    unsafe_code,
    reason = "libbpf-rs does not pass on how often to wake the reader; everything above this module is safe"
)]

use libbpf_rs::libbpf_sys as sys;
use std::ffi::c_void;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::slice;

/// Wakes nobody: so many records no ring holds.
const NEVER: u32 = 1 << 30;
/// Of a ring at least.
const LEAST_PAGES: usize = 8;

/// What was read.
#[derive(Debug, Default)]
struct Read {
    bytes: Vec<u8>,
    /// Of each record where it ends in `bytes`.
    ends: Vec<usize>,
}

/// The rings of all CPUs, of which this is the one reader.
#[derive(Debug)]
pub struct PerfRings {
    rings: NonNull<sys::perf_buffer>,
    /// Made of a box, and ours; libbpf hands it to `keep`.
    read: NonNull<Read>,
    /// When this file is closed, the kernel takes the rings out of the map.
    _map: OwnedFd,
}

// SAFETY: neither libbpf's rings nor what was read belongs to a thread; using them needs `&mut`.
unsafe impl Send for PerfRings {}

/// Keeps a record that libbpf found.
unsafe extern "C" fn keep(to: *mut c_void, _cpu: i32, data: *mut c_void, size: u32) {
    // SAFETY: `open` gave libbpf this pointer, which lives as long as the rings; only `read` calls libbpf, and by `&mut self`.
    let read = unsafe { &mut *to.cast::<Read>() };
    // SAFETY: libbpf lends so many bytes for the time of this call.
    read.bytes.extend_from_slice(unsafe { slice::from_raw_parts(data.cast::<u8>(), size as usize) });
    read.ends.push(read.bytes.len());
}

impl PerfRings {
    /// Opens a ring of `bytes` for each CPU that is online, or of less, if the kernel does not give so much, and puts them into `map`.
    ///
    /// # Errors
    /// What the kernel says to the smallest.
    pub fn open(map: BorrowedFd<'_>, bytes: usize) -> io::Result<PerfRings> {
        let options = sys::perf_buffer_opts {
            sz: size_of::<sys::perf_buffer_opts>() as sys::size_t,
            sample_period: NEVER,
            ..Default::default()
        };
        let kept = map.try_clone_to_owned()?;
        let read = NonNull::from(Box::leak(Box::<Read>::default()));
        let mut pages = (bytes / rustix::param::page_size()).max(LEAST_PAGES).next_power_of_two();
        loop {
            // SAFETY: the descriptor is open, the options are of the size that they say, and `read` outlives the rings.
            let rings = unsafe {
                sys::perf_buffer__new(
                    map.as_raw_fd(),
                    pages as sys::size_t,
                    Some(keep),
                    None,
                    read.as_ptr().cast(),
                    &options,
                )
            };
            // libbpf answers NULL, and says why in errno.
            let error = io::Error::last_os_error();
            if let Some(rings) = NonNull::new(rings) {
                return Ok(PerfRings { rings, read, _map: kept });
            }
            if pages <= LEAST_PAGES {
                // SAFETY: made of a box above, and nobody has it.
                drop(unsafe { Box::from_raw(read.as_ptr()) });
                return Err(error);
            }
            pages /= 2;
        }
    }

    /// Reads what is there by now, CPU by CPU, and makes room for more. Each record may have some bytes more than were written.
    ///
    /// # Errors
    /// That a ring cannot be read.
    pub fn read(&mut self, mut each: impl FnMut(&[u8])) -> io::Result<()> {
        // SAFETY: ours, and nobody else has it: libbpf uses it in the call below only.
        let read = unsafe { self.read.as_mut() };
        read.bytes.clear();
        read.ends.clear();
        // SAFETY: the rings are open.
        let failed = unsafe { sys::perf_buffer__consume(self.rings.as_ptr()) };
        // SAFETY: as above; the call is over.
        let read = unsafe { self.read.as_ref() };
        let mut begin = 0;
        for end in &read.ends {
            each(read.bytes.get(begin..*end).unwrap_or_default());
            begin = *end;
        }
        if failed < 0 { Err(io::Error::from_raw_os_error(-failed)) } else { Ok(()) }
    }
}

impl Drop for PerfRings {
    fn drop(&mut self) {
        // SAFETY: opened in `open`, and freed here alone.
        unsafe { sys::perf_buffer__free(self.rings.as_ptr()) };
        // SAFETY: made of a box in `open`; libbpf has forgotten it.
        drop(unsafe { Box::from_raw(self.read.as_ptr()) });
    }
}
