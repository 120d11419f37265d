//! The doctor's system calls: a two-instruction XDP program, loaded and run.
#![allow(unsafe_code, reason = "bpf(2) has no safe form without a loader library")]

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use rustix::io::Errno;

/// Commands and constants of `linux/bpf.h`.
const BPF_PROG_LOAD: libc::c_int = 5;
const BPF_PROG_TEST_RUN: libc::c_int = 10;
const BPF_OBJ_GET_INFO_BY_FD: libc::c_int = 15;
const BPF_PROG_TYPE_XDP: u32 = 6;
const BPF_F_TEST_XDP_LIVE_FRAMES: u32 = 2;
const XDP_DROP: u64 = 1;

/// Long enough for a mean, short enough (a millisecond) to often run undisturbed.
const FRAMES: u32 = 1 << 15;

/// The head of `union bpf_attr` for loading a program.
#[repr(C)]
struct ProgramLoad {
    kind: u32,
    instruction_count: u32,
    instructions: u64,
    license: u64,
}

/// The head of `union bpf_attr` for asking about an object.
#[repr(C)]
struct AskInfo {
    object: u32,
    info_size: u32,
    info: u64,
}

/// The head of `struct bpf_prog_info`.
#[repr(C)]
#[derive(Default)]
struct ProgramInfo {
    kind: u32,
    id: u32,
    tag: [u8; 8],
    machine_code_size: u32,
    instruction_size: u32,
}

/// The head of `union bpf_attr` for running one.
#[repr(C)]
#[derive(Default)]
struct TestRun {
    program: u32,
    verdict: u32,
    data_in_size: u32,
    data_out_size: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration_ns: u32,
    context_in_size: u32,
    context_out_size: u32,
    context_in: u64,
    context_out: u64,
    flags: u32,
    cpu: u32,
    batch_size: u32,
    padding: u32,
}

/// An XDP program that drops everything. Loaded, it does nothing until it is attached or run.
pub fn load_drop_program() -> Result<OwnedFd, Errno> {
    // r0 = XDP_DROP; exit. An instruction is opcode, registers, offset, immediate in 64 bits.
    let instructions: [u64; 2] = if cfg!(target_endian = "little") {
        [0xb7 | XDP_DROP << 32, 0x95]
    } else {
        [0xb7 << 56 | XDP_DROP, 0x95 << 56]
    };
    let mut load = ProgramLoad {
        kind: BPF_PROG_TYPE_XDP,
        instruction_count: instructions.len() as u32,
        instructions: instructions.as_ptr() as u64,
        license: c"GPL".as_ptr() as u64,
    };
    // SAFETY: the pointers inside `load` are to locals and constants that outlive the call.
    let fd = unsafe { bpf(BPF_PROG_LOAD, &mut load)? };
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Runs it over live frames, all of which it drops: nanoseconds for a frame.
pub fn run_live_frames(program: &OwnedFd) -> Result<u32, Errno> {
    let frame = [0_u8; 60];
    let mut run = TestRun {
        program: program.as_raw_fd() as u32,
        data_in_size: frame.len() as u32,
        data_in: frame.as_ptr() as u64,
        repeat: FRAMES,
        flags: BPF_F_TEST_XDP_LIVE_FRAMES,
        batch_size: 64,
        ..TestRun::default()
    };
    // SAFETY: `run` points to `frame`, which outlives the call and is read only.
    unsafe { bpf(BPF_PROG_TEST_RUN, &mut run)? };
    Ok(run.duration_ns)
}

/// Whether the kernel's compiler made machine code of it.
pub fn is_compiled(program: &OwnedFd) -> Result<bool, Errno> {
    let mut info = ProgramInfo::default();
    let mut ask = AskInfo {
        object: program.as_raw_fd() as u32,
        info_size: size_of::<ProgramInfo>() as u32,
        info: &raw mut info as u64,
    };
    // SAFETY: `ask` points to `info`, which outlives the call, and tells its size.
    unsafe { bpf(BPF_OBJ_GET_INFO_BY_FD, &mut ask)? };
    Ok(info.machine_code_size > 0)
}

/// # Safety
/// `attributes` must be the head of `union bpf_attr` for `command`, and the pointers in it valid for it.
unsafe fn bpf<T>(command: libc::c_int, attributes: &mut T) -> Result<libc::c_int, Errno> {
    // SAFETY: the size tells the kernel how much of the union there is; the rest counts as zero.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attributes as *mut T, size_of::<T>()) };
    if result < 0 {
        return Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO));
    }
    Ok(result as libc::c_int)
}
