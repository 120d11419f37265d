//! Programs: loaded from bytecode or kept from a loader, attached to interfaces, and run on a frame without one.
#![allow(unsafe_code, reason = "libbpf's calls that take options, and test runs, have no safe wrapper")]

use libbpf_rs::libbpf_sys as sys;
use libbpf_rs::query::ProgInfoIter;
use libbpf_rs::{AsRawLibbpf, OpenObject, Xdp, XdpFlags};
use rustix::io::Errno;
use std::ffi::CStr;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::{fs, io};

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

/// A program in the kernel. It goes when this was dropped and nothing it is attached to is left.
#[derive(Debug)]
pub struct Program(OwnedFd);

/// Holds a program attached to an interface until it is dropped or the process dies, however it dies.
#[derive(Debug)]
pub struct Link(OwnedFd);

/// Where in the kernel a program takes frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    /// In the driver, before the kernel makes a packet of what arrived.
    XdpNative,
    /// In the kernel's receive path, with every driver, and slower.
    XdpGeneric,
    /// Before all other programs at the ingress of traffic control (tcx, Linux 6.6).
    TcIngress,
    /// Before all other programs at the egress of traffic control (tcx, Linux 6.6).
    TcEgress,
}

/// Why the kernel did not take a program.
#[derive(Debug)]
pub struct Refused {
    /// What it said.
    pub error: Errno,
    /// The end of the verifier's log.
    pub log: String,
}

/// How to run a program, on the calling thread and its core.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// The frame it is run on, behind `told` bytes that stand before it (the frame's metadata).
    pub frame: &'a [u8],
    /// Length of the metadata before the frame, in bytes.
    pub told: u32,
    /// How often.
    pub repeat: u32,
    /// On frames that are sent as the program says, so many at a time; else on one that is not. A signal ends the call
    /// with EINTR, between two batches.
    pub live: Option<u32>,
    /// The frames seem to come from that interface, so that XDP_TX sends them there.
    pub ingress: Option<u32>,
    /// Give back the frame as the program left it.
    pub give_back: bool,
}

/// What a run came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// What the program returned: an `XDP_` action.
    pub verdict: u32,
    /// Nanoseconds for each of the runs.
    pub cost_ns: u32,
    /// The frame as the program left it, if that was asked for.
    pub frame: Vec<u8>,
}

impl<'a> Run<'a> {
    /// Once over a copy of `frame`.
    pub fn on(frame: &'a [u8]) -> Run<'a> {
        Run { frame, told: 0, repeat: 1, live: None, ingress: None, give_back: false }
    }
}

/// What a call of libbpf returns: a descriptor, or an error below 0.
fn descriptor(result: i32) -> Result<OwnedFd, Errno> {
    if result < 0 {
        return Err(Errno::from_raw_os_error(-result));
    }
    // SAFETY: the kernel has just given us this descriptor; nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(result) })
}

/// The verifier's log is kept up to so many bytes.
const LOG: usize = 1 << 20;

impl Program {
    /// One that a loader has loaded.
    ///
    /// # Errors
    /// That its file descriptor cannot be duplicated.
    pub fn keep(program: BorrowedFd<'_>) -> io::Result<Program> {
        program.try_clone_to_owned().map(Program)
    }

    /// The same program by another descriptor.
    ///
    /// # Errors
    /// That there are no descriptors left.
    pub fn share(&self) -> io::Result<Program> {
        self.0.try_clone().map(Program)
    }

    /// The one of this number.
    ///
    /// # Errors
    /// That there is none, or that this process may not look (CAP_SYS_ADMIN).
    pub fn by_id(id: u32) -> Result<Program, Errno> {
        // SAFETY: a number is all that is given.
        descriptor(unsafe { sys::bpf_prog_get_fd_by_id(id) }).map(Program)
    }

    /// Its number, and what the kernel counted of its runs ([`Statistics`]): by the descriptor's own file.
    pub fn told(&self) -> Option<(u32, Runs)> {
        let text = fs::read_to_string(format!("/proc/self/fdinfo/{}", self.0.as_raw_fd())).ok()?;
        told(&text)
    }

    /// Loads an XDP program. `frags`: it can be attached where frames span several buffers.
    ///
    /// # Errors
    /// That the kernel does not load it, with the verifier's words.
    pub fn load(name: &CStr, code: &[Insn], frags: bool) -> Result<Program, Refused> {
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
            descriptor(unsafe {
                sys::bpf_prog_load(
                    sys::BPF_PROG_TYPE_XDP,
                    name.as_ptr(),
                    c"MIT".as_ptr(),
                    code.as_ptr().cast(),
                    code.len() as sys::size_t,
                    &raw mut options,
                )
            })
        };
        let mut log = Vec::new();
        let loaded = load(None).or_else(|error| match error {
            Errno::ACCESS | Errno::INVAL | Errno::TOOBIG => {
                log = vec![0; LOG];
                load(Some(&mut log))
            }
            other => Err(other),
        });
        loaded.map(Program).map_err(|error| Refused { error, log: last_lines(&log) })
    }

    /// Attaches it to an interface of the calling thread's network namespace, for as long as the returned link is kept:
    /// when the process dies, however it dies, the kernel detaches. An XDP program that is there already is never
    /// replaced (EBUSY).
    ///
    /// # Errors
    /// What the kernel answers: EBUSY where there is a program, EOPNOTSUPP where the driver has no such hook, EPERM
    /// without CAP_NET_ADMIN, and what the driver itself says.
    pub fn attach(&self, ifindex: u32, hook: Hook) -> Result<Link, Errno> {
        let (kind, flags) = match hook {
            Hook::XdpNative => (sys::BPF_XDP, sys::XDP_FLAGS_DRV_MODE),
            Hook::XdpGeneric => (sys::BPF_XDP, sys::XDP_FLAGS_SKB_MODE),
            Hook::TcIngress => (sys::BPF_TCX_INGRESS, sys::BPF_F_BEFORE),
            Hook::TcEgress => (sys::BPF_TCX_EGRESS, sys::BPF_F_BEFORE),
        };
        let options = sys::bpf_link_create_opts {
            sz: size_of::<sys::bpf_link_create_opts>() as sys::size_t,
            flags,
            ..Default::default()
        };
        // SAFETY: `options` is initialised, states its size, and outlives the call; the rest are plain numbers.
        let link =
            unsafe { sys::bpf_link_create(self.0.as_raw_fd(), ifindex as i32, kind, &raw const options) };
        descriptor(link).map(Link)
    }

    /// The XDP program that is attached to the interface already: number and name.
    pub fn occupant(&self, ifindex: u32) -> Option<(u32, String)> {
        let id =
            Xdp::new(self.0.as_fd()).query_id(ifindex as i32, XdpFlags::NONE).ok().filter(|id| *id > 0)?;
        let info = ProgInfoIter::default().find(|info| info.id == id);
        Some((id, info.map_or_else(String::new, |info| info.name.to_string_lossy().into_owned())))
    }

    /// Runs it by BPF_PROG_TEST_RUN.
    ///
    /// # Errors
    /// What the kernel answers: EINVAL of a frame or context it does not take, EINTR, ENOMEM.
    pub fn run(&self, run: Run<'_>) -> Result<Ran, Errno> {
        let Run { frame, told, repeat, live, ingress, give_back } = run;
        let context = sys::xdp_md {
            data: told,
            data_end: frame.len() as u32,
            ingress_ifindex: ingress.unwrap_or(0),
            ..Default::default()
        };
        let mut out = vec![0; if give_back { frame.len() + 4096 } else { 0 }];
        let mut options = sys::bpf_test_run_opts {
            sz: size_of::<sys::bpf_test_run_opts>() as sys::size_t,
            data_in: frame.as_ptr().cast(),
            data_size_in: frame.len() as u32,
            repeat: repeat as i32,
            batch_size: live.unwrap_or(0),
            flags: if live.is_some() { sys::BPF_F_TEST_XDP_LIVE_FRAMES } else { 0 },
            ..Default::default()
        };
        if give_back {
            options.data_out = out.as_mut_ptr().cast();
            options.data_size_out = out.len() as u32;
        }
        if ingress.is_some() || told > 0 {
            options.ctx_in = (&raw const context).cast();
            options.ctx_size_in = size_of::<sys::xdp_md>() as u32;
        }
        // SAFETY: `options` states its size; its pointers are to `frame` and `context`, which are only read, and to `out`,
        // each with its length; all outlive the call.
        let result = unsafe { sys::bpf_prog_test_run_opts(self.0.as_raw_fd(), &raw mut options) };
        if result < 0 {
            return Err(Errno::from_raw_os_error(-result));
        }
        out.truncate(options.data_size_out as usize);
        Ok(Ran { verdict: options.retval, cost_ns: options.duration, frame: out })
    }
}

impl AsFd for Program {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Link {
    /// False once the interface was removed, or somebody detached the program by force.
    pub fn is_attached(&self) -> bool {
        // The kernel says where a link leads in its descriptor's own file; nowhere is interface 0.
        let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", self.0.as_raw_fd()));
        info.is_ok_and(|info| !info.lines().any(|line| line.split_whitespace().eq(["ifindex:", "0"])))
    }
}

impl Drop for Link {
    /// Not by closing the descriptor alone: a process that another thread starts has it too until it runs its program, and the
    /// interface would be taken until then. With the process the kernel closes it in any case.
    fn drop(&mut self) {
        // SAFETY: a number is all that is given. An interface that went (ENOLINK) leaves nothing to detach from.
        let _ = unsafe { sys::bpf_link_detach(self.0.as_raw_fd()) };
    }
}

/// While it lives, the kernel counts how often each program runs, and for how long.
#[derive(Debug)]
pub struct Statistics(#[allow(dead_code, reason = "held until it goes")] OwnedFd);

impl Statistics {
    /// Begins to count.
    ///
    /// # Errors
    /// EPERM without CAP_SYS_ADMIN; EINVAL before Linux 5.8.
    pub fn start() -> Result<Statistics, Errno> {
        // SAFETY: a number is all that is given.
        descriptor(unsafe { sys::bpf_enable_stats(sys::BPF_STATS_RUN_TIME) }).map(Statistics)
    }
}

/// How often a program ran while [`Statistics`] were kept, and for how long in all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Runs {
    /// How often.
    pub count: u64,
    /// For how long.
    pub ns: u64,
}

/// Keeps the maps of an object from being pinned in the file system, and from being taken from there: nothing is left behind, and
/// nothing is shared with who has pinned maps of those names.
pub fn without_pins(object: &mut OpenObject) {
    for map in object.maps_mut() {
        // SAFETY: the map belongs to `object`, which is borrowed; without a path it is not pinned.
        let _ = unsafe { sys::bpf_map__set_pin_path(map.as_libbpf_object().as_ptr(), std::ptr::null()) };
    }
}

/// Names of the programs that see what arrives on an interface of this network namespace before its host does: XDP's,
/// then those at the ingress of traffic control (tcx).
pub fn at_ingress(ifindex: u32) -> Vec<String> {
    let mut found = Vec::new();
    for mode in [sys::XDP_FLAGS_DRV_MODE, sys::XDP_FLAGS_SKB_MODE] {
        let mut id = 0;
        // SAFETY: `id` is written, and outlives the call; the rest are plain numbers.
        if unsafe { sys::bpf_xdp_query_id(ifindex as i32, mode as i32, &raw mut id) } == 0 && id > 0 {
            found.push(id);
        }
    }
    found.extend(tcx(ifindex, sys::BPF_TCX_INGRESS));
    named(&found)
}

/// Names of the programs that see what leaves an interface of this network namespace before filters of traffic control do (tcx).
pub fn at_egress(ifindex: u32) -> Vec<String> {
    named(&tcx(ifindex, sys::BPF_TCX_EGRESS))
}

/// Numbers of the programs at one of an interface's two hooks; none before Linux 6.6.
fn tcx(ifindex: u32, hook: sys::bpf_attach_type) -> Vec<u32> {
    const MOST: usize = 64;
    let mut ids = [0u32; MOST];
    let mut options = sys::bpf_prog_query_opts {
        sz: size_of::<sys::bpf_prog_query_opts>() as sys::size_t,
        prog_ids: ids.as_mut_ptr(),
        __bindgen_anon_1: sys::bpf_prog_query_opts__bindgen_ty_1 { count: MOST as u32 },
        ..Default::default()
    };
    // SAFETY: `options` states its size and points to `ids` and how many there are; both outlive the call.
    if unsafe { sys::bpf_prog_query_opts(ifindex as i32, hook, &raw mut options) } != 0 {
        return Vec::new();
    }
    // SAFETY: both members of the union are the same number.
    let count = unsafe { options.__bindgen_anon_1.count };
    ids.into_iter().take(count as usize).collect()
}

fn named(ids: &[u32]) -> Vec<String> {
    let name = |id: &u32| ProgInfoIter::default().find(|info| info.id == *id);
    ids.iter().filter_map(name).map(|info| info.name.to_string_lossy().into_owned()).collect()
}

/// Number and runs of a program, by its descriptor's file.
fn told(text: &str) -> Option<(u32, Runs)> {
    let of = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    let id = u32::try_from(of("prog_id:")?).ok()?;
    Some((id, Runs { count: of("run_cnt:").unwrap_or(0), ns: of("run_time_ns:").unwrap_or(0) }))
}

/// The lines of a verifier's log that say why.
fn last_lines(log: &[u8]) -> String {
    let end = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
    let text = String::from_utf8_lossy(&log[..end]);
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("processed ")).collect();
    lines[lines.len().saturating_sub(12)..].join("\n")
}
