//! Runs a packet program in the kernel, as XDP live frames: the fastest way out of an ordinary driver.
//!
//! ```text
//!   Program --compile--> eBPF program ---.
//!                                         >-- BPF_PROG_TEST_RUN, call by call ----> pages of a pool --> driver
//!   start, stop, counters: shared words -'       (BPF_F_TEST_XDP_LIVE_FRAMES)            ^     |
//!                                                                                       '-----'  recycled
//! ```
//!
//! [`compile`] turns a program into bytecode and is held to byte equality with `traffic::Executor` by tests;
//! [`live`] runs it. The crate `bpf` loads and runs programs; [`sys`] is the one module here with unsafe code.

#![deny(missing_docs, clippy::missing_errors_doc)]

pub mod asm;
pub mod calls;
pub mod compile;
pub mod layout;
pub mod live;
pub mod spare;
pub mod sys;
pub mod way;

use rustix::io::Errno;

pub use live::Live;
pub use way::Way;

/// Why a program cannot be run as live frames. Each says why in one sentence; callers may take another engine.
#[derive(Debug, thiserror::Error)]
pub enum XdpError {
    /// A defect of a front end.
    #[error("{0}")]
    Program(String),
    /// Pages are what they are.
    #[error("live frames hold at most {limit} bytes, and the longest frame here has {longest}")]
    TooLong {
        /// The longest frame.
        longest: usize,
        /// The most there is room for.
        limit: usize,
    },
    /// The kernel makes no frame without a whole Ethernet header.
    #[error("live frames have at least 14 bytes, and the shortest frame here has {0}")]
    TooShort(u32),
    /// More than one run of the program can look through.
    #[error("{0} streams with a timing of their own are more than the 64 that live frames can interleave")]
    TooManyLanes(usize),
    /// The program in the kernel adds gaps up; it does not find times.
    #[error(
        "the times of a shape of load are found outside of the kernel: `.engine` afxdp and packet do that"
    )]
    Shaped,
    /// How a byte changes a CRC depends on how far it is from the frame's end.
    #[error(
        "the kernel computes no SCTP checksum over fields that vary in frames of several lengths: one length, or fields outside of SCTP alone"
    )]
    CrcOfLengths,
    /// The tables are too large.
    #[error(
        "{bytes} bytes of frames are more than the 536,870,912 an XDP program can reach; several cores hold a part each (`.cores`)"
    )]
    TooMuchData {
        /// How many there are.
        bytes: usize,
    },
    /// Jumps too long, or more than the verifier looks through; its log would say nothing more.
    #[error(
        "the program is too large for the kernel's verifier ({instructions} instructions): fewer streams, fields or sizes make it smaller"
    )]
    TooLarge {
        /// How long it is.
        instructions: usize,
    },
    /// A defect of ours, or a kernel that knows less.
    #[error("the kernel refused the XDP program: {error}{}", tail(.log))]
    Refused {
        /// What it said.
        error: Errno,
        /// The end of the verifier's log.
        log: String,
    },
    /// Memory for tables.
    #[error(
        "the kernel gave no memory for {bytes} bytes of tables ({error}); raise the limit with `ulimit -l unlimited`"
    )]
    Memory {
        /// How much was asked for.
        bytes: usize,
        /// What it said.
        error: Errno,
    },
    /// Not permitted.
    #[error("loading an XDP program needs CAP_BPF and CAP_NET_ADMIN: run with sudo")]
    Permission,
    /// The kernel has no live frames.
    #[error("this kernel has no XDP live frames: they came with Linux 5.18")]
    NoLiveFrames,
    /// The program would wait for the whole machine at each call.
    #[error(
        "the program could not be attached before its first run: a spare veth in a network namespace of our own was refused ({error}); load the module (`modprobe veth`), or use `.engine` afxdp"
    )]
    NoSpare {
        /// What it said.
        error: Errno,
    },
    /// A helper that this kernel does not have.
    #[error("{what} needs {helper}, which came with Linux {since}: this kernel is older; {mend}")]
    Helper {
        /// What needs it.
        what: &'static str,
        /// Its name.
        helper: &'static str,
        /// The release.
        since: &'static str,
        /// What to do instead.
        mend: &'static str,
    },
    /// The interface takes no frames of XDP programs.
    #[error("{interface} takes no XDP frames: {why}")]
    NoTransmit {
        /// The interface.
        interface: String,
        /// Why, and what to change.
        why: String,
    },
    /// More cores than it has queues.
    #[error(
        "{cores} cores would share the transmit queues of {interface}, which are {queues}: live frames of two cores in one queue get lost; give `.cores` {queues}, or {mend}"
    )]
    TooFewQueues {
        /// The interface.
        interface: String,
        /// Its queues.
        queues: u32,
        /// The cores asked for.
        cores: u32,
        /// How it gets more.
        mend: String,
    },
    /// A call that should not fail.
    #[error("{what}: {error}")]
    System {
        /// The call.
        what: &'static str,
        /// What the kernel said.
        error: Errno,
    },
}

/// The verifier's log, on lines of its own.
fn tail(log: &str) -> String {
    if log.is_empty() { String::new() } else { format!("\n{log}") }
}
