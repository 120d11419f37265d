//! The only module that talks to bpf(2): maps whose one value user space shares, programs, and test runs.
#![allow(
    unsafe_code,
    reason = "bpf(2) has no safe wrapper for test runs in batches, and map values are shared memory"
)]

use libbpf_rs::libbpf_sys as sys;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::{CStr, c_void};
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::thread::JoinHandleExt;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

/// One instruction: opcode 8, destination 4, source 4, offset 16, immediate 32 bits
/// (Documentation/bpf/standardization/instruction-set.rst).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Insn {
    /// What to do.
    pub code: u8,
    /// Destination in the low, source in the high half.
    pub registers: u8,
    /// Jump distance or memory offset.
    pub offset: i16,
    /// Immediate value.
    pub immediate: i32,
}

const _: () = assert!(size_of::<Insn>() == size_of::<sys::bpf_insn>());

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

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: exactly what `new` mapped; references handed out borrow self. A failure leaves a mapping that
        // harms nobody.
        let _ = unsafe { munmap(self.start, self.bytes) };
    }
}

/// A loaded XDP program.
#[derive(Debug)]
pub struct Loaded {
    program: OwnedFd,
}

/// Why the kernel did not take a program.
#[derive(Debug)]
pub struct Refused {
    /// What it said.
    pub error: Errno,
    /// The end of the verifier's log.
    pub log: String,
}

/// The verifier's log is kept up to so many bytes.
const LOG: usize = 1 << 20;

impl Loaded {
    /// Loads an XDP program. `frags`: it can be attached where frames span several buffers.
    pub fn new(name: &CStr, code: &[Insn], frags: bool) -> Result<Loaded, Refused> {
        // First without a log: writing one costs more than the verification. It is asked for when there is a refusal.
        let load = |log: Option<&mut Vec<u8>>| {
            let flags = sys::BPF_F_ANY_ALIGNMENT | if frags { sys::BPF_F_XDP_HAS_FRAGS } else { 0 };
            let mut options = sys::bpf_prog_load_opts {
                sz: size_of::<sys::bpf_prog_load_opts>() as sys::size_t,
                expected_attach_type: sys::BPF_XDP,
                prog_flags: flags,
                ..Default::default()
            };
            if let Some(log) = log {
                options.log_level = 1;
                options.log_size = log.len() as u32;
                options.log_buf = log.as_mut_ptr().cast();
            }
            // SAFETY: `code` is `code.len()` instructions of the kernel's layout (asserted above); the strings end in
            // NUL; `options` states its size, and its log buffer is as long as it says. All outlive the call.
            unsafe {
                sys::bpf_prog_load(
                    sys::BPF_PROG_TYPE_XDP,
                    name.as_ptr(),
                    c"MIT".as_ptr(),
                    code.as_ptr().cast(),
                    code.len() as sys::size_t,
                    &raw mut options,
                )
            }
        };
        let mut result = load(None);
        let mut log = Vec::new();
        if result < 0
            && matches!(Errno::from_raw_os_error(-result), Errno::ACCESS | Errno::INVAL | Errno::TOOBIG)
        {
            log = vec![0; LOG];
            result = load(Some(&mut log));
        }
        if result < 0 {
            return Err(Refused { error: Errno::from_raw_os_error(-result), log: last_lines(&log) });
        }
        // SAFETY: the kernel has just given us this descriptor; nobody else has it.
        Ok(Loaded { program: unsafe { OwnedFd::from_raw_fd(result) } })
    }

    /// Attaches it natively to an interface of the current network namespace, for as long as the returned descriptor
    /// is open. Another program there is never replaced (EBUSY).
    pub fn attach(&self, ifindex: u32) -> Result<OwnedFd, Errno> {
        let options = sys::bpf_link_create_opts {
            sz: size_of::<sys::bpf_link_create_opts>() as sys::size_t,
            flags: sys::XDP_FLAGS_DRV_MODE,
            ..Default::default()
        };
        // SAFETY: `options` is initialised, states its size, and outlives the call; the rest are plain numbers.
        let link = unsafe {
            sys::bpf_link_create(self.program.as_raw_fd(), ifindex as i32, sys::BPF_XDP, &raw const options)
        };
        if link < 0 {
            return Err(Errno::from_raw_os_error(-link));
        }
        // SAFETY: the kernel has just given us this descriptor; nobody else has it.
        Ok(unsafe { OwnedFd::from_raw_fd(link) })
    }

    /// Runs it once over a copy of `frame`, without sending anything: its verdict, and the frame it left.
    pub fn try_once(&self, frame: &[u8]) -> Result<(u32, Vec<u8>), Errno> {
        let mut out = vec![0; frame.len() + 4096];
        let mut options = sys::bpf_test_run_opts {
            sz: size_of::<sys::bpf_test_run_opts>() as sys::size_t,
            data_in: frame.as_ptr().cast(),
            data_size_in: frame.len() as u32,
            data_out: out.as_mut_ptr().cast(),
            data_size_out: out.len() as u32,
            repeat: 1,
            ..Default::default()
        };
        // SAFETY: `options` states its size; its pointers are to `frame`, only read, and `out`, with their lengths.
        let result = unsafe { sys::bpf_prog_test_run_opts(self.program.as_raw_fd(), &raw mut options) };
        if result < 0 {
            return Err(Errno::from_raw_os_error(-result));
        }
        out.truncate(options.data_size_out as usize);
        Ok((options.retval, out))
    }

    /// Runs it `repeat` times over one copy of `frame`, without sending anything: nanoseconds for each run.
    pub fn cost(&self, frame: &[u8], repeat: u32) -> Result<u32, Errno> {
        let mut options = sys::bpf_test_run_opts {
            sz: size_of::<sys::bpf_test_run_opts>() as sys::size_t,
            data_in: frame.as_ptr().cast(),
            data_size_in: frame.len() as u32,
            repeat: repeat as i32,
            ..Default::default()
        };
        // SAFETY: `options` states its size and points to `frame`, with its length, which is only read.
        let result = unsafe { sys::bpf_prog_test_run_opts(self.program.as_raw_fd(), &raw mut options) };
        if result < 0 { Err(Errno::from_raw_os_error(-result)) } else { Ok(options.duration) }
    }

    /// Runs it on `repeat` live frames that begin as copies of `frame`, `batch` at a time, on the calling thread and
    /// its core. With `ingress` the frames seem to come from that interface, so that XDP_TX sends them there. A
    /// signal ends the call with EINTR, between two batches.
    pub fn run_live(&self, frame: &[u8], ingress: Option<u32>, repeat: u32, batch: u32) -> Result<(), Errno> {
        let context = sys::xdp_md {
            data_end: frame.len() as u32,
            ingress_ifindex: ingress.unwrap_or(0),
            ..Default::default()
        };
        let mut options = sys::bpf_test_run_opts {
            sz: size_of::<sys::bpf_test_run_opts>() as sys::size_t,
            data_in: frame.as_ptr().cast(),
            data_size_in: frame.len() as u32,
            repeat: repeat as i32,
            batch_size: batch,
            flags: sys::BPF_F_TEST_XDP_LIVE_FRAMES,
            ..Default::default()
        };
        if ingress.is_some() {
            options.ctx_in = (&raw const context).cast();
            options.ctx_size_in = size_of::<sys::xdp_md>() as u32;
        }
        // SAFETY: `options` states its size; its pointers are to `frame` and `context`, which outlive the call and are
        // only read, with their lengths.
        let result = unsafe { sys::bpf_prog_test_run_opts(self.program.as_raw_fd(), &raw mut options) };
        if result < 0 { Err(Errno::from_raw_os_error(-result)) } else { Ok(()) }
    }
}

/// The lines of a verifier's log that say why.
fn last_lines(log: &[u8]) -> String {
    let end = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
    let text = String::from_utf8_lossy(&log[..end]);
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("processed ")).collect();
    lines[lines.len().saturating_sub(12)..].join("\n")
}

/// Makes SIGURG, which nothing else uses, end system calls of a thread that it is sent to, and do nothing besides.
pub fn prepare_interrupts() -> io::Result<()> {
    use std::sync::{Arc, OnceLock, atomic::AtomicBool};
    static ONCE: OnceLock<Result<signal_hook::SigId, i32>> = OnceLock::new();
    let register = || {
        signal_hook::flag::register(libc::SIGURG, Arc::new(AtomicBool::new(false)))
            .map_err(|error| error.raw_os_error().unwrap_or(libc::EINVAL))
    };
    ONCE.get_or_init(register).map(|_| ()).map_err(io::Error::from_raw_os_error)
}

/// Ends the system call that a thread is in, after [`prepare_interrupts`].
pub fn interrupt<T>(thread: &JoinHandle<T>) {
    // SAFETY: a handle that was not joined yet keeps the thread's identifier valid, and the signal has a handler.
    unsafe {
        libc::pthread_kill(thread.as_pthread_t(), libc::SIGURG);
    }
}

/// Puts the calling thread below its own real-time priority, if it has one: it never sleeps, and whoever is to end it
/// must get a core.
pub fn yield_priority() {
    let mut param = libc::sched_param { sched_priority: 0 };
    // SAFETY: no pointers but the one to `param`, which is initialised and outlives both calls; 0 is this thread.
    unsafe {
        let policy = libc::sched_getscheduler(0);
        let real_time = [libc::SCHED_FIFO, libc::SCHED_RR].contains(&(policy & !libc::SCHED_RESET_ON_FORK));
        if !real_time || libc::sched_getparam(0, &raw mut param) != 0 {
            return;
        }
        param.sched_priority -= 1;
        let below = if param.sched_priority > 0 { policy } else { libc::SCHED_OTHER };
        // Lowering oneself is always permitted.
        libc::sched_setscheduler(0, below, &raw const param);
    }
}
