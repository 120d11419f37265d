//! Sending through AF_XDP sockets: frames are made in memory shared with the kernel and handed over by descriptor.
//!
//! ```text
//!   executor --> slots of the UMEM <---------------------- completion ring (addresses of slots that are free again)
//!                      |                                         ^
//!                 descriptors --> TX ring --> kernel: copy mode  |  an sk_buff for each, within our call
//!                                                  or zero-copy -'  the driver reads the slot, whenever it likes
//! ```
//!
//! A frame stays in its slot when it was sent, so the next one in it needs only what differs. In copy mode (any
//! driver) that saves over a packet socket what its system call does for each frame; with zero-copy (a few drivers of
//! hardware) the kernel touches no frame at all.
//!
//! One socket serves one queue, and one thread uses one socket: [`open`] gives a sender for each queue. All share one
//! UMEM, each with a region of its own. Nothing is received.
//!
//! `ring`, `map` and `umem` hold the unsafe code; `socket` makes one socket; `sender` keeps account of frames;
//! [`bare`] is the floor that the sender is measured against.
//!
//! The kernel's side is `Documentation/networking/af_xdp.rst`, `net/xdp/xsk.c`.

pub mod bare;
mod device;
mod map;
mod ring;
mod sender;
mod socket;
mod umem;

pub use sender::Afxdp;

use std::collections::BTreeSet;
use std::fmt;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::xdp::SocketAddrXdpFlags as Flags;

use crate::interface::InterfaceError;
use crate::packet::{BATCH, Target};
use device::Device;
use socket::{BINDING, Failed, Memory, OPENING, REGISTERING, Socket};
use umem::{CHUNK, Region, slot_size};

/// Buffers of a frame that the kernel puts together in copy mode: what an sk_buff holds without its linear part
/// (`MAX_SKB_FRAGS`), because some drivers (virtio-net) are given none.
const COPY_SEGMENTS: u32 = 17;

/// Memory of a queue's slots, at most.
const REGION: usize = 16 << 20;

/// A queue that another socket has just left is free a moment later: the kernel clears up behind it, in its own time.
const LEAVING: Duration = Duration::from_secs(3);

/// How frames get from the UMEM to the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Zero-copy where the driver has it, else copy.
    #[default]
    Auto,
    /// The kernel copies each frame; every driver.
    Copy,
    /// The driver reads the UMEM, or it is an error.
    ZeroCopy,
}

/// How to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Copy or not.
    pub mode: Mode,
    /// Frames that may be on their way on each queue: 64 or more; fewer if they are long.
    pub slots: usize,
    /// Frames in huge pages, if the machine has some set aside.
    pub huge_pages: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { mode: Mode::Auto, slots: 2048, huge_pages: true }
    }
}

/// How a sender sends, and why so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// The queue.
    pub queue: u32,
    /// Frames leave without being copied.
    pub zero_copy: bool,
    /// Why they do not.
    pub why_copy: Option<String>,
    /// Frames stand in huge pages.
    pub huge_pages: bool,
    /// Buffers that the longest frame takes.
    pub segments: usize,
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.why_copy, self.zero_copy) {
            (_, true) => f.write_str("AF_XDP, zero-copy")?,
            (Some(why), false) => write!(f, "AF_XDP, copy mode ({why})")?,
            (None, false) => f.write_str("AF_XDP, copy mode")?,
        }
        if self.segments > 1 {
            write!(f, ", up to {} buffers a frame", self.segments)?;
        }
        if self.huge_pages { f.write_str(", huge pages") } else { Ok(()) }
    }
}

/// How senders opened together send, for people: all in the same way, each through its queue.
pub fn describe(senders: &[Afxdp]) -> String {
    let Some(first) = senders.first() else { return "AF_XDP, no queue".to_owned() };
    let queues: Vec<String> = senders.iter().map(|sender| sender.describe().queue.to_string()).collect();
    let word = if queues.len() == 1 { "queue" } else { "queues" };
    format!("{}, {word} {}", first.describe(), queues.join(", "))
}

/// Why AF_XDP cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AfxdpError {
    /// It could not be looked at.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The kernel was built without.
    #[error("this kernel has no AF_XDP sockets (CONFIG_XDP_SOCKETS): use --engine packet")]
    NoSockets,
    /// Not permitted.
    #[error("AF_XDP sockets on {0} need CAP_NET_RAW: run with sudo")]
    Permission(String),
    /// The limit of locked memory.
    #[error(
        "{bytes} bytes for the frames on {interface} are more than this process may lock: raise the limit \
         (`ulimit -l {}`), or run with sudo", bytes.div_ceil(1024)
    )]
    Locked {
        /// The interface.
        interface: String,
        /// Wanted.
        bytes: usize,
    },
    /// There is not that much memory.
    #[error("no memory for {bytes} bytes of frames on {interface}: use fewer queues")]
    Memory {
        /// The interface.
        interface: String,
        /// Wanted.
        bytes: usize,
    },
    /// There is no such queue.
    #[error(
        "{interface} has no transmit queue {queue}: it has {there}, numbered from 0; use as many cores at most, or see \
         `ethtool -l {interface}` and add queues with `ethtool -L`"
    )]
    NoQueue {
        /// The interface.
        interface: String,
        /// Asked for.
        queue: u32,
        /// How many there are.
        there: u32,
    },
    /// One queue, two senders.
    #[error("queue {queue} of {interface} is asked for twice: one sender serves one queue")]
    Twice {
        /// The interface.
        interface: String,
        /// Asked for.
        queue: u32,
    },
    /// Another AF_XDP socket has it.
    #[error(
        "queue {queue} of {interface} is in use by another AF_XDP socket: end the program that holds it \
         (`ss --xdp -p` lists it), or use --engine packet"
    )]
    InUse {
        /// The interface.
        interface: String,
        /// Asked for.
        queue: u32,
    },
    /// Zero-copy or nothing, and it is nothing.
    #[error("no AF_XDP zero-copy on {interface}: {why}; let netdyno choose, which takes copy mode here")]
    NoZeroCopy {
        /// The interface.
        interface: String,
        /// What is in the way.
        why: String,
    },
    /// Longer than the buffers of a frame together.
    #[error(
        "frames of {longest} bytes need {segments} buffers on {interface}, and {most} are allowed: send shorter ones"
    )]
    TooLong {
        /// The interface.
        interface: String,
        /// The longest frame.
        longest: usize,
        /// Buffers it takes.
        segments: usize,
        /// Buffers allowed.
        most: u32,
    },
    /// The kernel takes frames of one buffer only.
    #[error(
        "frames of {longest} bytes need several buffers, and this kernel's AF_XDP takes one of {CHUNK} bytes (several \
         since Linux 6.6): send shorter frames, or use --engine packet"
    )]
    NoSegments {
        /// The longest frame.
        longest: usize,
    },
    /// It is no longer there.
    #[error("{0} disappeared")]
    Gone(String),
    /// Anything else.
    #[error("{what} on queue {queue} of {interface}: {source}")]
    Io {
        /// The call that failed.
        what: &'static str,
        /// The interface.
        interface: String,
        /// The queue.
        queue: u32,
        /// What the kernel said.
        source: Errno,
    },
}

/// Senders for frames of up to `longest` bytes, one for each of `queues` and in that order. To be called in the
/// interface's network namespace; the senders work from everywhere.
pub fn open(
    target: &Target,
    longest: usize,
    queues: &[u32],
    options: &Options,
) -> Result<Vec<Afxdp>, AfxdpError> {
    let interface = || target.name.clone();
    let device = Device::ask(target)?;
    let mut seen = BTreeSet::new();
    for &queue in queues {
        if queue >= device.queues {
            return Err(AfxdpError::NoQueue { interface: interface(), queue, there: device.queues });
        }
        if !seen.insert(queue) {
            return Err(AfxdpError::Twice { interface: interface(), queue });
        }
    }
    let segments = longest.div_ceil(CHUNK).max(1);
    if segments > COPY_SEGMENTS as usize {
        return Err(AfxdpError::TooLong { interface: interface(), longest, segments, most: COPY_SEGMENTS });
    }
    let plan = Plan { target, longest, queues, options, device: &device, segments };
    let why_copy = match (options.mode, plan.no_zero_copy()) {
        (Mode::Copy, _) => "asked for".to_owned(),
        (Mode::ZeroCopy, Some(why)) => return Err(AfxdpError::NoZeroCopy { interface: interface(), why }),
        (Mode::ZeroCopy, None) => {
            return plan
                .open(true, None)?
                .map_err(|why| AfxdpError::NoZeroCopy { interface: interface(), why });
        }
        (Mode::Auto, Some(why)) => why,
        (Mode::Auto, None) => match plan.open(true, None)? {
            Ok(senders) => return Ok(senders),
            Err(why) => why,
        },
    };
    // Copy mode either works or is an error: it has no `Err(why)`.
    plan.open(false, Some(&why_copy))?.map_err(|why| AfxdpError::NoZeroCopy { interface: interface(), why })
}

/// What is to be opened.
#[derive(Debug, Clone, Copy)]
struct Plan<'a> {
    target: &'a Target,
    longest: usize,
    queues: &'a [u32],
    options: &'a Options,
    device: &'a Device,
    /// Buffers of the longest frame.
    segments: usize,
}

impl Plan<'_> {
    /// Why zero-copy need not even be tried.
    fn no_zero_copy(&self) -> Option<String> {
        if self.device.zero_copy == Some(false) {
            return Some(format!("{} has no zero-copy", self.device.driver));
        }
        (self.segments > 1 && self.segments > self.device.segments as usize).then(|| {
            format!(
                "frames of {} bytes need {} buffers, and {} takes {} with zero-copy",
                self.longest, self.segments, self.device.driver, self.device.segments
            )
        })
    }

    /// Opens all senders in one mode. The inner error says why the driver would not have it without copying.
    fn open(
        &self,
        zero_copy: bool,
        why_copy: Option<&str>,
    ) -> Result<Result<Vec<Afxdp>, String>, AfxdpError> {
        let stride = slot_size(self.longest);
        let slots = self.options.slots.min(REGION / stride).next_multiple_of(BATCH).max(BATCH);
        let interface = || self.target.name.clone();
        let bytes = slots * stride * self.queues.len();
        let regions = Region::allot(self.queues.len(), slots, stride, self.options.huge_pages)
            .map_err(|_| AfxdpError::Memory { interface: interface(), bytes })?;
        // Twice what can be on its way: a ring that is never full needs no one to wait for it, and what lies behind
        // the kernel's position stays readable when it goes back to try a frame again.
        let size = (2 * slots * self.segments).next_power_of_two() as u32;
        let mut flags = Flags::XDP_USE_NEED_WAKEUP;
        flags |= if zero_copy { Flags::XDP_ZEROCOPY } else { Flags::XDP_COPY };
        // With zero-copy a driver must be able to receive a packet of the MTU, which it will not be asked to do.
        let long_mtu = zero_copy && self.target.mtu as usize > CHUNK - 1024 && self.device.segments > 1;
        if self.segments > 1 || long_mtu {
            flags |= Flags::XDP_USE_SG;
        }
        let mut senders: Vec<Afxdp> = Vec::new();
        for (&queue, region) in self.queues.iter().zip(regions) {
            let socket = self.bind(senders.first(), &region, size, queue, flags);
            let socket = match socket {
                Ok(socket) => socket,
                Err(Failed { what: BINDING, errno }) if zero_copy && senders.is_empty() => match errno {
                    Errno::BUSY => return Err(self.failed(Failed { what: BINDING, errno }, queue, bytes)),
                    errno => return Ok(Err(format!("{} refuses it: {errno}", self.device.driver))),
                },
                Err(failed) => return Err(self.failed(failed, queue, bytes)),
            };
            let description = Description {
                queue,
                zero_copy: socket.zero_copy,
                why_copy: why_copy.map(str::to_owned),
                huge_pages: region.umem().huge,
                segments: self.segments,
            };
            let sender = Afxdp::new(socket, region, self.target, description)
                .map_err(|source| InterfaceError::Netlink { name: interface(), source })?;
            if zero_copy && let Err(errno) = sender.probe() {
                // Intel's drivers bind without an XDP program, but send only with one.
                return Ok(Err(format!(
                    "{} does not send from it as it is ({errno}; some drivers need an XDP program attached)",
                    self.device.driver
                )));
            }
            senders.push(sender);
        }
        Ok(Ok(senders))
    }

    /// Opens one socket, with a little patience for whoever had the queue before.
    fn bind(
        &self,
        first: Option<&Afxdp>,
        region: &Region,
        size: u32,
        queue: u32,
        flags: Flags,
    ) -> Result<Socket, Failed> {
        let since = Instant::now();
        loop {
            let memory = first.map_or(Memory::Own(region.umem()), |first| Memory::Of(first.socket()));
            match Socket::open(memory, size, self.target.index, queue, flags) {
                Err(Failed { what: BINDING, errno: Errno::BUSY }) if since.elapsed() < LEAVING => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                other => return other,
            }
        }
    }

    /// What a failed call means.
    fn failed(&self, failed: Failed, queue: u32, bytes: usize) -> AfxdpError {
        let interface = self.target.name.clone();
        let Failed { what, errno } = failed;
        match (what, errno) {
            (OPENING, Errno::AFNOSUPPORT) => AfxdpError::NoSockets,
            (_, Errno::PERM | Errno::ACCESS) => AfxdpError::Permission(interface),
            // ENOBUFS is the limit's own number, ENOMEM that of the machine.
            (REGISTERING, Errno::NOBUFS) => AfxdpError::Locked { interface, bytes },
            (_, Errno::NOMEM) => AfxdpError::Memory { interface, bytes },
            (BINDING, Errno::BUSY) => AfxdpError::InUse { interface, queue },
            (BINDING, Errno::NODEV) => AfxdpError::Gone(interface),
            (BINDING, Errno::INVAL) if self.segments > 1 => AfxdpError::NoSegments { longest: self.longest },
            _ => AfxdpError::Io { what, interface, queue, source: errno },
        }
    }
}
