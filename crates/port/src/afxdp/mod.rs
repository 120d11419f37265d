//! Sending and receiving through AF_XDP sockets. [`receive()`] is the way in; the rest is about the way out: frames are made in memory shared with the kernel and handed over by descriptor.
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
//! UMEM, each with a region of its own.
//!
//! `ring` and `umem` hold the unsafe code; `socket` makes one socket; `sender` keeps account of frames;
//! [`bare`] is the floor that the sender is measured against.
//!
//! The kernel's side is `Documentation/networking/af_xdp.rst`, `net/xdp/xsk.c`.

pub mod bare;
mod device;
mod receive;
mod ring;
mod sender;
mod socket;
mod umem;

pub use receive::{AfxdpRx, ReceiveOptions, receive};
pub use sender::Afxdp;

use std::collections::BTreeSet;
use std::fmt;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use bpf::Link;
use bpf::pass::Passing;
use rustix::io::Errno;
use rustix::net::xdp::SocketAddrXdpFlags as Flags;

use crate::interface::{Interface, InterfaceError};
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
    /// The kernel copies each frame; every driver. With the reason.
    Copy(&'static str),
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
    /// A program of ours is attached to the interface meanwhile, because the driver sends only then.
    pub program: bool,
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
        if self.huge_pages {
            f.write_str(", huge pages")?;
        }
        if self.program { f.write_str(", with a program of ours attached meanwhile") } else { Ok(()) }
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
    #[error("this kernel has no AF_XDP sockets (CONFIG_XDP_SOCKETS): use `.engine` packet")]
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
        "{interface} has no transmit queue {queue}: it has {there}, numbered from 0; `ethtool -l {interface}` lists \
         them, `ethtool -L` changes their number"
    )]
    NoQueue {
        /// The interface.
        interface: String,
        /// Asked for.
        queue: u32,
        /// How many there are.
        there: u32,
    },
    /// There is no such queue.
    #[error(
        "{interface} has no receive queue {queue}: it has {there}, numbered from 0; `ethtool -l {interface}` lists \
         them, `ethtool -L` changes their number"
    )]
    NoReceiveQueue {
        /// The interface.
        interface: String,
        /// Asked for.
        queue: u32,
        /// How many there are.
        there: u32,
    },
    /// More senders than queues.
    #[error(
        "{cores} cores need {cores} transmit queues, one each, and {interface} has {queues}: give `.cores` {queues}, or \
         make more with `ethtool -L {interface} combined {cores}` (a veth: `tx {cores}`, in a lab `.lab.queues` {cores})"
    )]
    TooFewQueues {
        /// The interface.
        interface: String,
        /// Its queues.
        queues: u32,
        /// The cores asked for.
        cores: usize,
    },
    /// One queue, two senders.
    #[error("queue {queue} of {interface} is asked for twice: one socket serves one queue")]
    Twice {
        /// The interface.
        interface: String,
        /// Asked for.
        queue: u32,
    },
    /// Another AF_XDP socket has it.
    #[error(
        "queue {queue} of {interface} is in use by another AF_XDP socket: end the program that holds it \
         (`ss --xdp -p` lists it), or use `.engine` packet"
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
         since Linux 6.6): send shorter frames, or use `.engine` packet"
    )]
    NoSegments {
        /// The longest frame.
        longest: usize,
    },
    /// Somebody's program takes what arrives.
    #[error(
        "an XDP program is attached to {0} already and is left alone (`bpftool net` shows it): AF_XDP cannot receive beside it"
    )]
    Occupied(String),
    /// Not permitted.
    #[error("receiving by AF_XDP on {0} needs CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF: run with sudo")]
    ReceivePermission(String),
    /// The kernel lacks something.
    #[error("cannot receive by AF_XDP on {interface}: {why}")]
    TooOld {
        /// The interface.
        interface: String,
        /// What, and since when there is.
        why: String,
    },
    /// Packets may be longer than a chunk, and the kernel or the driver wants one for each.
    #[error(
        "packets of {interface} may have {mtu} bytes, and AF_XDP receives up to {most} here (more since Linux 6.6, if the \
         driver does): lower the MTU, or receive by a packet socket"
    )]
    NoJumbo {
        /// The interface.
        interface: String,
        /// Its MTU.
        mtu: u32,
        /// The largest packet, in bytes.
        most: usize,
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

/// The queue of each of several workers: that of its CPU's number, as the kernel counts for other sockets, if each then
/// has its own; of those that the interface has now. To be called in the interface's network namespace.
///
/// # Errors
/// That the interface's queues cannot be read, or are fewer than the workers.
pub fn queues_for(target: &Target, cpus: &[Option<usize>]) -> Result<Vec<u32>, AfxdpError> {
    let queues = Device::ask(target)?.queues;
    if cpus.len() > queues.max(1) as usize {
        return Err(AfxdpError::TooFewQueues { interface: target.name.clone(), queues, cores: cpus.len() });
    }
    Ok(deal(cpus, queues))
}

/// Transmit queues that an interface of the calling thread's network namespace has now.
pub fn queues_now(target: &Target) -> Option<u32> {
    Device::ask(target).ok().map(|device| device.queues)
}

fn deal(cpus: &[Option<usize>], queues: u32) -> Vec<u32> {
    let modulo = |cpu: &Option<usize>| cpu.and_then(|cpu| u32::try_from(cpu).ok()?.checked_rem(queues));
    let by_cpu: Option<Vec<u32>> = cpus.iter().map(modulo).collect();
    let distinct = |queues: &Vec<u32>| queues.iter().collect::<BTreeSet<_>>().len() == queues.len();
    by_cpu.filter(distinct).unwrap_or_else(|| (0..).take(cpus.len()).collect())
}

/// Senders for frames of up to `longest` bytes, one for each of `queues` and in that order. To be called in the
/// interface's network namespace; the senders work from everywhere.
///
/// # Errors
/// That the kernel or the driver does not do it: what it refused, and where.
pub fn open(
    target: &Target,
    longest: usize,
    queues: &[u32],
    options: &Options,
) -> Result<Vec<Afxdp>, AfxdpError> {
    open_until(target, longest, queues, options, &AtomicBool::new(false))
}

/// The same; drivers are not waited for any more when `stop` is set.
///
/// # Errors
/// As [`open`], and that it was stopped.
pub fn open_until(
    target: &Target,
    longest: usize,
    queues: &[u32],
    options: &Options,
    stop: &AtomicBool,
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
    let plan = Plan { target, longest, queues, options, device: &device, segments, stop };
    let why_copy = match (options.mode, plan.no_zero_copy()) {
        (Mode::Copy(why), _) => why.to_owned(),
        (Mode::ZeroCopy, Some(why)) => return Err(AfxdpError::NoZeroCopy { interface: interface(), why }),
        (Mode::ZeroCopy, None) => {
            return plan.zero_copy()?.map_err(|why| AfxdpError::NoZeroCopy { interface: interface(), why });
        }
        (Mode::Auto, Some(why)) => why,
        (Mode::Auto, None) => match plan.zero_copy()? {
            Ok(senders) => return Ok(senders),
            Err(why) => why,
        },
    };
    // Copy mode either works or is an error: it has no `Err(why)`.
    let copying = plan.open(false, Some(&why_copy), None)?;
    copying.map_err(|unwilling| AfxdpError::NoZeroCopy { interface: interface(), why: unwilling.why })
}

/// A driver that does not send without copying.
struct Unwilling {
    why: String,
    /// It may with an XDP program attached.
    wants_program: bool,
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
    stop: &'a AtomicBool,
}

impl Plan<'_> {
    /// Why zero-copy need not even be tried.
    fn no_zero_copy(&self) -> Option<String> {
        let Device { driver, zero_copy, segments, pairs, occupied, .. } = self.device;
        if *zero_copy == Some(false) {
            return Some(format!("{driver} has no zero-copy"));
        }
        if *occupied {
            return Some(
                "an XDP program is attached, and zero-copy would take from it what arrives on the queue"
                    .to_owned(),
            );
        }
        if let Some(queue) = self.queues.iter().find(|queue| *queue >= pairs) {
            return Some(format!("queue {queue} does not receive, which zero-copy needs"));
        }
        (self.segments > 1 && self.segments > *segments as usize).then(|| {
            format!(
                "frames of {} bytes need {} buffers, and {driver} takes {segments} with zero-copy",
                self.longest, self.segments
            )
        })
    }

    /// Opens all senders without copying, with a program on the interface where the driver wants one: Intel's set up
    /// their rings for it only then. The inner error says why the driver would not have it.
    fn zero_copy(&self) -> Result<Result<Vec<Afxdp>, String>, AfxdpError> {
        let bare = match self.open(true, None, None)? {
            Ok(senders) => {
                wait_for_carrier(&self.target.name, self.stop);
                return Ok(Ok(senders));
            }
            Err(unwilling) if !unwilling.wants_program => return Ok(Err(unwilling.why)),
            Err(unwilling) => unwilling.why,
        };
        let passing = match bpf::pass::attach(self.target.index) {
            Ok(Passing::Ours(link)) => Arc::new(link),
            Ok(Passing::Others) | Err(_) => return Ok(Err(bare)),
        };
        wait_for_carrier(&self.target.name, self.stop);
        let opened = self.open(true, None, Some(&passing))?;
        // Binding changes the rings once more.
        wait_for_carrier(&self.target.name, self.stop);
        Ok(opened.map_err(|unwilling| format!("{}, also with an XDP program attached", unwilling.why)))
    }

    /// Opens all senders in one mode. The inner error says why the driver would not have it without copying.
    fn open(
        &self,
        zero_copy: bool,
        why_copy: Option<&str>,
        passing: Option<&Arc<Link>>,
    ) -> Result<Result<Vec<Afxdp>, Unwilling>, AfxdpError> {
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
                    errno => {
                        let why = format!("{} refuses it: {errno}", self.device.driver);
                        return Ok(Err(Unwilling { why, wants_program: wants_program(errno) }));
                    }
                },
                Err(failed) => return Err(self.failed(failed, queue, bytes)),
            };
            let description = Description {
                queue,
                zero_copy: socket.zero_copy,
                why_copy: why_copy.map(str::to_owned),
                huge_pages: region.umem().huge,
                segments: self.segments,
                program: passing.is_some(),
            };
            let sender = Afxdp::new(socket, region, self.target, description, passing.cloned())
                .map_err(|source| InterfaceError::Netlink { name: interface(), source })?;
            if zero_copy && let Err(errno) = sender.probe(self.stop) {
                let why = format!("{} does not send from it: {errno}", self.device.driver);
                return Ok(Err(Unwilling { why, wants_program: wants_program(errno) }));
            }
            if zero_copy && !sender.describe().zero_copy {
                let why = format!("{} bound the socket, but copies", self.device.driver);
                return Ok(Err(Unwilling { why, wants_program: false }));
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
            let memory = first.map_or(Memory::Own(region.umem()), |first| Memory::Of(first.socket().as_fd()));
            match Socket::open(memory, size, self.target.index, queue, flags) {
                Err(Failed { what: BINDING, errno: Errno::BUSY })
                    if since.elapsed() < LEAVING && !self.stop.load(Relaxed) =>
                {
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

/// Is it what drivers answer that have no rings for XDP because no program is attached? They say it when the socket is
/// bound (igb, virtio_net), or when they are first told to send (i40e, ice, ixgbe, mlx5).
fn wants_program(errno: Errno) -> bool {
    matches!(errno, Errno::INVAL | Errno::NXIO)
}

/// A driver may take the link down to change its rings, and is given some time to get it back. Whoever sends looks again.
fn wait_for_carrier(name: &str, stop: &AtomicBool) {
    wait_until(|| !Interface::by_name(name).is_ok_and(|interface| !interface.carrier), stop);
}

/// Looks until it is so, for some time, or until `stop` is set. Returns how often it looked.
fn wait_until(so: impl Fn() -> bool, stop: &AtomicBool) -> u32 {
    const LINK: Duration = Duration::from_secs(5);
    let since = Instant::now();
    let mut looks = 0;
    while since.elapsed() < LINK && !stop.load(Relaxed) {
        // It goes down a moment after the call that makes it has returned.
        std::thread::sleep(Duration::from_millis(20));
        looks += 1;
        if so() {
            break;
        }
    }
    looks
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab::Lab;

    #[test]
    fn a_carrier_is_not_waited_for_when_all_is_to_stop() {
        let (stop, looks) = (AtomicBool::new(false), std::cell::Cell::new(0));
        let never = || {
            looks.set(looks.get() + 1);
            stop.store(looks.get() == 2, Relaxed);
            false
        };
        // Not the hundreds of five seconds.
        assert_eq!((wait_until(never, &stop), wait_until(never, &stop)), (2, 0));
        assert_eq!(wait_until(|| true, &AtomicBool::new(false)), 1);
    }

    #[test]
    fn each_worker_has_the_queue_of_its_cpu_or_else_any_of_its_own() {
        let cpus = |list: &[usize]| list.iter().map(|cpu| Some(*cpu)).collect::<Vec<_>>();
        assert_eq!(deal(&cpus(&[3]), 1), [0]);
        assert_eq!(deal(&cpus(&[3]), 2), [1]);
        assert_eq!(deal(&cpus(&[2, 3]), 2), [0, 1]);
        assert_eq!(deal(&cpus(&[1, 3]), 2), [0, 1], "both of queue 1");
        assert_eq!(deal(&[None, None], 2), [0, 1]);
    }

    /// A plain veth has room for a queue for each CPU, and one.
    #[test]
    fn a_queue_that_is_only_room_for_one_is_not_asked_for() {
        let lab = Lab::two_hosts(&lab::Options::default()).expect("a lab (as root)");
        let index = lab.sender.namespace.index_of("tx0").unwrap().unwrap();
        let target = Target { name: "tx0".to_owned(), index, mtu: 1500 };
        let of = |cpus: &[Option<usize>]| lab.sender.namespace.run_in(|| queues_for(&target, cpus)).unwrap();
        assert_eq!(of(&[Some(1)]).unwrap(), [0]);
        let refused = of(&[Some(0), Some(1)]).unwrap_err().to_string();
        assert!(refused.contains("`.cores` 1"), "{refused}");
    }
}
