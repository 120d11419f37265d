//! A program that hands what arrives on queues of an interface to the AF_XDP sockets of these queues, and the map that says
//! which sockets they are. What arrives on other queues passes to the host.
#![allow(unsafe_code, reason = "libbpf's call that makes a map takes options, which have no safe wrapper")]

use crate::{Insn, Program, Refused};
use libbpf_rs::libbpf_sys as sys;
use rustix::io::Errno;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// The verdict of XDP programs that lets a frame pass (linux/bpf.h).
const XDP_PASS: i32 = 2;

/// Sockets by the number of their queue (BPF_MAP_TYPE_XSKMAP, Linux 4.18). A socket leaves the map when it is closed.
#[derive(Debug)]
pub struct Sockets(OwnedFd);

impl Sockets {
    /// Room for sockets of queues 0 to `queues` - 1.
    ///
    /// # Errors
    /// What the kernel answers: EPERM without CAP_BPF, ENOMEM.
    pub fn new(queues: u32) -> Result<Sockets, Errno> {
        let options = sys::bpf_map_create_opts {
            sz: size_of::<sys::bpf_map_create_opts>() as sys::size_t,
            ..Default::default()
        };
        // SAFETY: the name is a C string, `options` states its size, and both outlive the call; the rest are numbers.
        let map = unsafe {
            let (kind, name) = (sys::BPF_MAP_TYPE_XSKMAP, c"netdyno_sockets");
            sys::bpf_map_create(kind, name.as_ptr(), 4, 4, queues.max(1), &raw const options)
        };
        if map < 0 {
            return Err(Errno::from_raw_os_error(-map));
        }
        // SAFETY: the kernel has just given us this descriptor; nobody else has it.
        Ok(Sockets(unsafe { OwnedFd::from_raw_fd(map) }))
    }

    /// From now on a socket gets what arrives on its queue, where the program is attached.
    ///
    /// # Errors
    /// What the kernel answers: E2BIG of a queue beyond the room, EOPNOTSUPP of a socket that is not bound.
    pub fn put(&self, queue: u32, socket: BorrowedFd<'_>) -> Result<(), Errno> {
        let descriptor = socket.as_raw_fd();
        // SAFETY: key and value are four bytes each, as the map was made, and outlive the call.
        let done = unsafe {
            sys::bpf_map_update_elem(
                self.0.as_raw_fd(),
                (&raw const queue).cast(),
                (&raw const descriptor).cast(),
                u64::from(sys::BPF_ANY),
            )
        };
        if done < 0 { Err(Errno::from_raw_os_error(-done)) } else { Ok(()) }
    }
}

/// The program. With `frags` it can be attached where frames span several buffers (Linux 5.18).
///
/// # Errors
/// That the kernel does not load it, with the verifier's words.
pub fn program(sockets: &Sockets, frags: bool) -> Result<Program, Refused> {
    const MAP: u8 = sys::BPF_PSEUDO_MAP_FD as u8;
    // struct xdp_md
    const QUEUE: i16 = 16;
    let insn = |code, registers, offset, immediate| Insn { code, registers, offset, immediate };
    let code = [
        // r2 = ctx->rx_queue_index
        insn(0x61, 0x12, QUEUE, 0),
        // r1 = the map: source 1 says that the number is a descriptor; it takes two places
        insn(0x18, MAP << 4 | 1, 0, sockets.0.as_raw_fd()),
        insn(0, 0, 0, 0),
        // r3: the verdict where there is no such socket (Linux 5.3)
        insn(0xb7, 3, 0, XDP_PASS),
        // return bpf_redirect_map(r1, r2, r3)
        insn(0x85, 0, 0, sys::BPF_FUNC_redirect_map as i32),
        insn(0x95, 0, 0, 0),
    ];
    Program::load(c"netdyno_receive", &code, frags)
}
