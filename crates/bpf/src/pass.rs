//! A program that lets every frame pass, attached where a driver needs one to be there: many set up their rings for
//! transmitting XDP frames, or for sending from an AF_XDP socket's memory, only then.

use crate::{Hook, Insn, Link, Program, Refused};
use rustix::io::Errno;

/// The verdict of XDP programs that lets a frame pass (linux/bpf.h).
const XDP_PASS: i32 = 2;

/// What is attached now.
#[derive(Debug)]
pub enum Passing {
    /// Our program, as long as this is kept.
    Ours(Link),
    /// Somebody else's, which is never replaced.
    Others,
}

/// Why nothing was attached.
#[derive(Debug)]
pub enum NotPassing {
    /// The kernel took no program.
    Refused(Refused),
    /// The interface took none.
    Attach(Errno),
}

/// A program that returns `verdict` for every frame.
///
/// # Errors
/// That the kernel does not load it, with the verifier's words.
pub fn returning(verdict: i32) -> Result<Program, Refused> {
    let code = [
        // mov r0, verdict; exit
        Insn { code: 0xb7, registers: 0, offset: 0, immediate: verdict },
        Insn { code: 0x95, registers: 0, offset: 0, immediate: 0 },
    ];
    // With fragments, or an interface with a large MTU would not take it. Kernels before 5.18 know no such flag.
    Program::load(c"netdyno_pass", &code, true).or_else(|refused| match refused.error {
        Errno::INVAL => Program::load(c"netdyno_pass", &code, false),
        _ => Err(refused),
    })
}

/// Attaches a program to the driver of an interface of the calling thread's network namespace, unless there is one. The
/// driver may take the link down for a moment.
///
/// # Errors
/// That the program is not loaded, or that the driver does not take it.
pub fn attach(ifindex: u32) -> Result<Passing, NotPassing> {
    let pass = returning(XDP_PASS).map_err(NotPassing::Refused)?;
    match pass.attach(ifindex, Hook::XdpNative) {
        Ok(link) => Ok(Passing::Ours(link)),
        Err(Errno::BUSY | Errno::EXIST) => Ok(Passing::Others),
        Err(error) => Err(NotPassing::Attach(error)),
    }
}
