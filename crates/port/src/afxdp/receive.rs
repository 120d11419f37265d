//! Receiving through AF_XDP sockets: a program at the interface hands what arrives on a queue to the socket of that queue,
//! before the host's stack sees it.
//!
//! ```text
//!   fill ring (addresses of free chunks) --> driver or kernel --> RX ring (descriptors) --> frames, lent where they stand
//!        ^                                                                                        |
//!        '------------------------------ when the next batch is asked for ------------------------'
//! ```
//!
//! In copy mode the kernel copies each frame into the UMEM, with every driver; with zero-copy the NIC writes it there. All
//! sockets opened together share one UMEM, each with a region of its own, and one program, on a link that goes with them.
//! What arrives on other queues passes to the host.
//!
//! A frame is its bytes and nothing else: AF_XDP tells no VLAN tag that the NIC took out, no checksum left to hardware, no time
//! of arrival ([`Rx::facts`]). One of more than a chunk's room comes in several (since Linux 6.6), and is put together here.
#![allow(unsafe_code, reason = "frames in memory that the kernel writes")]

use super::device::Device;
use super::socket::{BINDING, Failed, Memory, OPENING, REGISTERING, Receiving};
use super::umem::{CHUNK, Region};
use super::{AfxdpError, Description, LEAVING, Mode, wait_for_carrier};
use crate::map::Map;
use crate::packet::{BATCH, Target};
use crate::rx::{Frame, Rx, RxCounters, RxError, RxFacts, Stamp, StampedBy, inlet};
use crate::socket::{polled, promiscuous};
use bpf::redirect::{self, Sockets};
use bpf::{Hook, Link};
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::xdp::{SocketAddrXdpFlags as Flags, XdpDescOptions};
use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// What the kernel keeps free before a frame in its chunk (`XDP_PACKET_HEADROOM`).
const HEADROOM: usize = 256;

/// Memory for frames that are put together from several chunks, in one batch.
const JOINED: usize = 1 << 20;

/// The longest frame that is put together.
const LONGEST: usize = 17 * CHUNK;

/// How to receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiveOptions {
    /// Copy or not.
    pub mode: Mode,
    /// Chunks of each queue: one for a frame of up to 3,840 bytes, several for a longer one. Rounded up to a power of two.
    pub chunks: usize,
    /// Chunks in huge pages, if the machine has some set aside.
    pub huge_pages: bool,
    /// The most frames of a batch.
    pub batch: usize,
    /// Take frames for any address.
    pub promiscuous: bool,
}

impl Default for ReceiveOptions {
    fn default() -> ReceiveOptions {
        ReceiveOptions { mode: Mode::Auto, chunks: 4096, huge_pages: true, batch: BATCH, promiscuous: true }
    }
}

/// What the sockets of one interface share; gone with the last of them.
#[derive(Debug)]
struct Shared {
    _link: Link,
    sockets: Sockets,
    _promiscuous: Option<OwnedFd>,
}

/// A receiver of one queue.
#[derive(Debug)]
pub struct AfxdpRx {
    // Before the memory that they stand in. They are 'static only in here: `frames` lends them for as long as self.
    frames: Vec<Frame<'static>>,
    socket: Receiving,
    region: Region,
    /// Addresses of the chunks that are lent.
    lent: Vec<u64>,
    /// Address and length of what has come of a frame whose end has not.
    pieces: Vec<(u64, usize)>,
    joined: Map,
    joined_bytes: usize,
    batch: usize,
    name: String,
    index: u32,
    /// The interface is, and that was told.
    down: bool,
    counters: RxCounters,
    description: Description,
    _shared: Arc<Shared>,
}

/// Receivers for `queues` of an interface, one each and in that order. To be called in the interface's network namespace;
/// they work from everywhere. Needs Linux 5.9 (5.10 for more than one queue, 6.6 for packets of more than some 3,800 bytes).
///
/// # Errors
/// That the kernel or the driver does not do it: what it refused, and where.
pub fn receive(
    target: &Target,
    queues: &[u32],
    options: &ReceiveOptions,
) -> Result<Vec<AfxdpRx>, AfxdpError> {
    let interface = || target.name.clone();
    let device = Device::ask(target)?;
    let mut seen = BTreeSet::new();
    for &queue in queues {
        if queue >= device.receiving {
            return Err(AfxdpError::NoReceiveQueue {
                interface: interface(),
                queue,
                there: device.receiving,
            });
        }
        if !seen.insert(queue) {
            return Err(AfxdpError::Twice { interface: interface(), queue });
        }
    }
    if device.occupied {
        return Err(AfxdpError::Occupied(interface()));
    }
    let most = queues.iter().max().map_or(0, |queue| queue + 1);
    let opening = Opening { target, queues, options, device: &device };
    let sockets = Sockets::new(most).map_err(|errno| opening.in_program("making a map of sockets", errno))?;
    let (link, hook, native) = opening.attach(&sockets)?;
    let promiscuous = if options.promiscuous {
        let failed = |source: std::io::Error| {
            opening.in_program("promiscuous mode", Errno::from_io_error(&source).unwrap_or(Errno::IO))
        };
        Some(promiscuous(target.index).map_err(failed)?)
    } else {
        None
    };
    let shared = Arc::new(Shared { _link: link, sockets, _promiscuous: promiscuous });
    let why_copy = match (options.mode, opening.no_zero_copy(hook, native)) {
        (Mode::Copy(why), _) => why.to_owned(),
        (Mode::ZeroCopy, Some(why)) => return Err(AfxdpError::NoZeroCopy { interface: interface(), why }),
        (Mode::Auto, Some(why)) => why,
        (mode, None) => {
            let never = AtomicBool::new(false);
            // A driver may take the link down to change its rings: when the program comes, and when a socket does.
            wait_for_carrier(&target.name, &never);
            match opening.open(true, None, &shared)? {
                Ok(receivers) => {
                    wait_for_carrier(&target.name, &never);
                    return Ok(receivers);
                }
                Err(why) if mode == Mode::ZeroCopy => {
                    return Err(AfxdpError::NoZeroCopy { interface: interface(), why });
                }
                Err(why) => why,
            }
        }
    };
    let copying = opening.open(false, Some(&why_copy), &shared)?;
    copying.map_err(|why| AfxdpError::NoZeroCopy { interface: interface(), why })
}

/// What is to be opened.
#[derive(Debug, Clone, Copy)]
struct Opening<'a> {
    target: &'a Target,
    queues: &'a [u32],
    options: &'a ReceiveOptions,
    device: &'a Device,
}

impl Opening<'_> {
    /// Attaches the program, to the driver if it takes one. The last says why it does not.
    fn attach(&self, sockets: &Sockets) -> Result<(Link, Hook, Option<Errno>), AfxdpError> {
        const LOADING: &str = "loading the program that hands frames over";
        // For frames in several buffers where the kernel knows of them.
        let program = redirect::program(sockets, true)
            .or_else(|refused| match refused.error {
                Errno::INVAL => redirect::program(sockets, false),
                _ => Err(refused),
            })
            .map_err(|refused| self.in_program(LOADING, refused.error))?;
        let mut native = None;
        for hook in [Hook::XdpNative, Hook::XdpGeneric] {
            match program.attach(self.target.index, hook) {
                Ok(link) => return Ok((link, hook, native)),
                Err(Errno::BUSY | Errno::EXIST) => {
                    return Err(AfxdpError::Occupied(self.target.name.clone()));
                }
                Err(errno) if hook == Hook::XdpGeneric => {
                    return Err(self.in_program("attaching an XDP program", errno));
                }
                Err(errno) => native = Some(errno),
            }
        }
        Err(self.in_program("attaching an XDP program", Errno::OPNOTSUPP))
    }

    /// What a failure before there is a socket means.
    fn in_program(&self, what: &'static str, errno: Errno) -> AfxdpError {
        let interface = self.target.name.clone();
        match errno {
            Errno::PERM | Errno::ACCESS => AfxdpError::ReceivePermission(interface),
            Errno::NODEV | Errno::NXIO => AfxdpError::Gone(interface),
            Errno::INVAL if bpf::kernel::is_before(bpf::kernel::OLDEST) => AfxdpError::TooOld {
                interface,
                why: bpf::kernel::needs("a program that goes with its process", bpf::kernel::OLDEST),
            },
            source => {
                AfxdpError::Io { what, interface, queue: self.queues.first().copied().unwrap_or(0), source }
            }
        }
    }

    /// Why zero-copy need not even be tried.
    fn no_zero_copy(&self, hook: Hook, native: Option<Errno>) -> Option<String> {
        let Device { driver, zero_copy, pairs, .. } = self.device;
        if hook != Hook::XdpNative {
            let why = native.map_or_else(String::new, |errno| format!(" ({errno})"));
            return Some(format!("{driver} takes no XDP program{why}"));
        }
        if *zero_copy == Some(false) {
            return Some(format!("{driver} has no zero-copy"));
        }
        let queue = self.queues.iter().find(|queue| *queue >= pairs)?;
        Some(format!("queue {queue} does not send, which zero-copy needs"))
    }

    /// Opens all receivers in one mode. The inner error says why the driver would not have it without copying.
    fn open(
        &self,
        zero_copy: bool,
        why_copy: Option<&str>,
        shared: &Arc<Shared>,
    ) -> Result<Result<Vec<AfxdpRx>, String>, AfxdpError> {
        let interface = || self.target.name.clone();
        let longest = self.target.mtu as usize + 18;
        let segments = longest.div_ceil(CHUNK - HEADROOM);
        let batch = self.options.batch.max(1);
        let chunks = self.options.chunks.clamp(2 * batch, 1 << 20).next_power_of_two();
        let bytes = chunks * CHUNK * self.queues.len();
        let no_memory = |_| AfxdpError::Memory { interface: interface(), bytes };
        let regions =
            Region::allot(self.queues.len(), chunks, CHUNK, self.options.huge_pages).map_err(no_memory)?;
        let mut flags = Flags::XDP_USE_NEED_WAKEUP;
        flags |= if zero_copy { Flags::XDP_ZEROCOPY } else { Flags::XDP_COPY };
        if segments > 1 {
            flags |= Flags::XDP_USE_SG;
        }
        let mut receivers: Vec<AfxdpRx> = Vec::new();
        for (&queue, region) in self.queues.iter().zip(regions) {
            let socket = match self.bind(receivers.first(), &region, chunks as u32, queue, flags) {
                Ok(socket) => socket,
                Err(Failed { what: BINDING, errno })
                    if zero_copy && receivers.is_empty() && errno != Errno::BUSY =>
                {
                    return Ok(Err(format!("{} refuses it: {errno}", self.device.driver)));
                }
                Err(failed) => return Err(self.failed(failed, queue, bytes, segments)),
            };
            let description = Description {
                queue,
                zero_copy: socket.zero_copy,
                why_copy: why_copy.map(str::to_owned),
                huge_pages: region.umem().huge,
                segments,
                program: true,
            };
            let mut receiver = AfxdpRx {
                frames: Vec::with_capacity(batch),
                lent: (0..chunks).filter_map(|slot| Some(region.pieces(slot, 1).next()?.0)).collect(),
                pieces: Vec::new(),
                joined: Map::anonymous(if segments > 1 { JOINED } else { CHUNK }, false)
                    .map_err(no_memory)?,
                joined_bytes: 0,
                batch,
                socket,
                region,
                name: interface(),
                index: self.target.index,
                down: false,
                counters: RxCounters::default(),
                description,
                _shared: Arc::clone(shared),
            };
            receiver.give_back();
            // Nothing is wrong with an interface that was bound to a moment ago; if it is, `advance` says so.
            let _ = receiver.socket.wake();
            shared
                .sockets
                .put(queue, receiver.socket.as_fd())
                .map_err(|errno| self.in_program("entering a socket in the map", errno))?;
            receivers.push(receiver);
        }
        Ok(Ok(receivers))
    }

    /// Opens one socket, with a little patience for whoever had the queue before.
    fn bind(
        &self,
        first: Option<&AfxdpRx>,
        region: &Region,
        size: u32,
        queue: u32,
        flags: Flags,
    ) -> Result<Receiving, Failed> {
        let since = Instant::now();
        loop {
            let memory = first.map_or(Memory::Own(region.umem()), |first| Memory::Of(first.socket.as_fd()));
            match Receiving::open(memory, size, self.target.index, queue, flags) {
                Err(Failed { what: BINDING, errno: Errno::BUSY }) if since.elapsed() < LEAVING => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                other => return other,
            }
        }
    }

    /// What a failed call means.
    fn failed(&self, failed: Failed, queue: u32, bytes: usize, segments: usize) -> AfxdpError {
        let interface = self.target.name.clone();
        let Failed { what, errno } = failed;
        match (what, errno) {
            (OPENING, Errno::AFNOSUPPORT) => AfxdpError::NoSockets,
            (_, Errno::PERM | Errno::ACCESS) => AfxdpError::ReceivePermission(interface),
            (REGISTERING, Errno::NOBUFS) => AfxdpError::Locked { interface, bytes },
            (_, Errno::NOMEM) => AfxdpError::Memory { interface, bytes },
            (BINDING, Errno::BUSY) => AfxdpError::InUse { interface, queue },
            (BINDING, Errno::NODEV) => AfxdpError::Gone(interface),
            (BINDING, Errno::INVAL) if segments > 1 => {
                AfxdpError::NoJumbo { interface, mtu: self.target.mtu, most: CHUNK - HEADROOM - 18 }
            }
            _ => AfxdpError::Io { what, interface, queue, source: errno },
        }
    }
}

impl AfxdpRx {
    /// How it receives, and why so.
    pub fn describe(&self) -> &Description {
        &self.description
    }

    fn take(&mut self) {
        let mut stamp = None;
        // Where no frame has several pieces, nothing is put together.
        let most = self.joined.length().saturating_sub(LONGEST);
        while self.frames.len() < self.batch && self.joined_bytes <= most {
            let Some(piece) = self.socket.rx.pop() else { break };
            self.pieces.push((piece.addr, piece.len as usize));
            if piece.options.contains(XdpDescOptions::XDP_PKT_CONTD) {
                continue;
            }
            let stamp = *stamp.get_or_insert_with(|| Stamp {
                ns: clocks::now(clocks::Clock::Realtime),
                by: StampedBy::Process,
            });
            let bytes = self.whole();
            self.frames.push(Frame::bare(bytes, stamp));
            self.lent.extend(self.pieces.drain(..).map(|(address, _)| address));
        }
        self.socket.rx.release();
        self.counters.frames += self.frames.len() as u64;
    }

    /// The frame of which all pieces are there: where it stands, or put together if there are several.
    fn whole(&mut self) -> &'static [u8] {
        // SAFETY: of a descriptor that was popped: the kernel does not write there until the address is in the fill ring
        // again, which is after `give_back` has emptied `frames`; and `frames` lends them no longer than that.
        let lend = |address, length| unsafe { self.region.lend(address, length) }.unwrap_or_default();
        if let [(address, length)] = self.pieces[..] {
            return lend(address, length);
        }
        let start = self.joined_bytes;
        for &(address, length) in &self.pieces {
            let piece: &[u8] = lend(address, length);
            let room = self.joined.length().saturating_sub(self.joined_bytes).min(piece.len());
            // SAFETY: as many bytes as there is room for behind those that are in use; nobody holds them, because
            // `frames` was emptied before `joined_bytes` went back to 0; the UMEM is other memory.
            unsafe {
                let to = self.joined.base().add(self.joined_bytes);
                std::ptr::copy_nonoverlapping(piece.as_ptr(), to.as_ptr(), room);
            }
            self.joined_bytes += room;
        }
        // SAFETY: written above, and not again before `frames` was emptied.
        unsafe {
            let bytes = self.joined.base().add(start).as_ptr();
            std::slice::from_raw_parts(bytes, self.joined_bytes - start)
        }
    }
}

impl AsFd for AfxdpRx {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Rx for AfxdpRx {
    fn batch(&self) -> usize {
        self.batch
    }

    fn give_back(&mut self) {
        self.frames.clear();
        self.joined_bytes = 0;
        if self.lent.is_empty() {
            return;
        }
        for address in self.lent.drain(..) {
            // There is room: the ring has an entry for each chunk.
            self.socket.fill.push(address);
        }
        self.socket.fill.publish();
    }

    /// As the trait says; but a driver that waits for buffers is woken, without patience, too.
    fn advance(&mut self, patience: Duration) -> Result<usize, RxError> {
        self.give_back();
        if self.socket.zero_copy && self.socket.fill.needs_wakeup() {
            let _ = self.socket.wake();
        }
        self.take();
        if !self.frames.is_empty() || patience.is_zero() {
            return Ok(self.frames.len());
        }
        let io = |errno: Errno| RxError::Io {
            what: "receiving",
            interface: self.name.clone(),
            source: errno.into(),
        };
        polled(&self.socket, PollFlags::IN, patience).map_err(io)?;
        self.take();
        if self.frames.is_empty() {
            // poll(2) does not tell.
            match self.socket.wake() {
                Ok(()) => self.down = false,
                Err(_) if self.down => {}
                Err(errno) => {
                    self.down = true;
                    return Err(match errno {
                        Errno::NXIO => RxError::Gone(self.name.clone()),
                        _ => inlet::lost(self.socket.as_fd(), self.index, &self.name),
                    });
                }
            }
        }
        Ok(self.frames.len())
    }

    fn frames(&self) -> &[Frame<'_>] {
        &self.frames
    }

    fn counters(&mut self) -> RxCounters {
        self.counters.dropped = self.socket.dropped();
        self.counters
    }

    fn facts(&self) -> RxFacts {
        RxFacts { tags: false, checksums: false, offloads: false, kinds: false, stamps: false, shared: false }
    }
}
