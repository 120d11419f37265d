//! Sending through a packet socket (packet(7)): works on every interface, costs about 0.6 us a frame.
//!
//! Two ways: [`Sendmmsg`] hands batches of frames over with one system call, [`TxRing`] shares a ring with the
//! kernel. The first is the faster one on every kernel measured so far (docs/benchmarks), because the ring's frames
//! go out one by one all the same and the kernel builds each from page fragments; it is here to be measured.
//! Both bypass the queueing discipline (PACKET_QDISC_BYPASS): a generator wants back-pressure, not a queue.

#![allow(
    unsafe_code,
    reason = "socket calls with structures that rustix does not offer, and the mapped ring"
)]

use crate::departures::{Departures, Stamper};
use crate::socket::{self, set};
use crate::tx::{Tx, TxBuffers, TxCounters, TxError};
use std::io;
use std::ops::RangeInclusive;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Frames handed over with one call. More gains nothing (kernel.md of the measurements: 16 is within 3 %), fewer cost.
pub const BATCH: usize = 64;

/// No frame accepted for so long: the queue is stuck.
const STUCK: Duration = Duration::from_secs(2);

/// A socket with time stamps to read is looked at again after so long.
const UNREAD: Duration = Duration::from_micros(100);

/// Frames accepted are given so long to leave.
const DRAIN: Duration = Duration::from_secs(1);

/// An interface, as far as sending needs to know it.
#[derive(Debug, Clone)]
pub struct Target {
    /// Its name, for messages.
    pub name: String,
    /// Its index in the current network namespace.
    pub index: u32,
    /// Its MTU.
    pub mtu: u32,
}

/// A bound packet socket.
#[derive(Debug)]
struct Socket {
    fd: OwnedFd,
    name: String,
    index: u32,
    stop: Option<Arc<AtomicBool>>,
    deadline: Option<Instant>,
}

impl Socket {
    fn open(target: &Target) -> Result<Socket, TxError> {
        let fail = |what: &'static str| {
            move |source: io::Error| match source.raw_os_error() {
                Some(libc::EPERM | libc::EACCES) => TxError::Permission(target.name.clone()),
                _ => TxError::Io { what, interface: target.name.clone(), source },
            }
        };
        let fd = socket::open().map_err(fail("opening a packet socket"))?;
        // Bound once, so that the kernel need not look the device up for each frame, and to no protocol: nothing is
        // received on this socket, so the kernel does not even look.
        socket::bind(&fd, target.index, 0).map_err(fail("binding a packet socket"))?;
        set(&fd, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &1i32).map_err(fail("PACKET_QDISC_BYPASS"))?;
        // A few batches of jumbo frames; the FORCE form ignores net.core.wmem_max and needs CAP_NET_ADMIN, without
        // which the default is a little slower on hardware that completes late, nothing worse.
        let _ = set(&fd, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &(16i32 << 20));
        Ok(Socket { fd, name: target.name.clone(), index: target.index, stop: None, deadline: None })
    }

    /// Bytes accepted but not yet released by the driver.
    fn queued(&self) -> u64 {
        let mut bytes: libc::c_int = 0;
        // SAFETY: SIOCOUTQ (= TIOCOUTQ) writes one int, to a live one.
        let rc = unsafe { libc::ioctl(self.fd.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
        if rc == 0 { u64::try_from(bytes).unwrap_or(0) } else { 0 }
    }

    /// Waits until the driver has released all but `kept` bytes, which it keeps because it waits for a stamp itself.
    fn drain(&self, kept: u64) -> Result<(), TxError> {
        let start = Instant::now();
        loop {
            let bytes = self.queued();
            if bytes <= kept {
                return Ok(());
            }
            if start.elapsed() > DRAIN {
                let waited_ms = DRAIN.as_millis() as u64;
                return Err(TxError::NotDrained { interface: self.name.clone(), bytes, waited_ms });
            }
            std::thread::sleep(Duration::from_micros(50));
        }
    }

    /// Waits until the socket takes frames again, at most a little.
    fn wait_writable(&self) {
        let mut poll = libc::pollfd { fd: self.fd.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
        // SAFETY: one live pollfd.
        unsafe { libc::poll(&raw mut poll, 1, 10) };
        // A time stamp that nobody has read yet ends every poll at once, without room for a frame.
        if poll.revents & libc::POLLERR != 0 && poll.revents & libc::POLLOUT == 0 {
            std::thread::sleep(UNREAD);
        }
    }

    /// What an errno of sending means: `Ok(true)` try the frame again, `Ok(false)` pass it over.
    fn judge(
        &self,
        errno: i32,
        counters: &mut TxCounters,
        stalled: &mut Option<Instant>,
    ) -> Result<bool, TxError> {
        match errno {
            libc::EINTR => return Ok(true),
            libc::ENOBUFS => {
                counters.retried_enobufs += 1;
                std::hint::spin_loop();
            }
            libc::EAGAIN => {
                counters.retried_eagain += 1;
                self.wait_writable();
            }
            libc::EMSGSIZE | libc::EINVAL => return Ok(false),
            // A device that is being removed goes down first. By its number: its name may have been changed.
            libc::ENETDOWN if rustix::net::netdevice::index_to_name(&self.fd, self.index).is_err() => {
                return Err(TxError::Gone(self.name.clone()));
            }
            libc::ENETDOWN => return Err(TxError::Down(self.name.clone())),
            libc::ENXIO | libc::ENODEV => return Err(TxError::Gone(self.name.clone())),
            libc::EPERM => return Err(TxError::Permission(self.name.clone())),
            other => {
                return Err(TxError::Io {
                    what: "sending",
                    interface: self.name.clone(),
                    source: io::Error::from_raw_os_error(other),
                });
            }
        }
        self.patience(stalled)?;
        Ok(true)
    }

    /// May a wait for room go on?
    fn patience(&self, stalled: &mut Option<Instant>) -> Result<(), TxError> {
        let now = Instant::now();
        let stopped = self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed));
        if stopped || self.deadline.is_some_and(|deadline| now > deadline) {
            return Err(TxError::Stopped(self.name.clone()));
        }
        if now - *stalled.get_or_insert(now) > STUCK {
            return Err(TxError::Stuck(self.name.clone(), STUCK.as_millis() as u64));
        }
        Ok(())
    }
}

/// Memory in the kernel of a frame of so many bytes at most, as the socket counts it: the frame and what describes it, up to the
/// next power of two. Two of them take more.
fn most_memory(length: u32) -> u64 {
    u64::from(length) * 2 + 1280
}

/// Our own buffers, an odd number of cache lines apart (a power of two would put all into the same few cache sets).
#[derive(Debug)]
struct FrameBuffers {
    bytes: Vec<u8>,
    stride: usize,
    held: Vec<u64>,
    lengths: Vec<u32>,
}

impl FrameBuffers {
    fn new(count: usize, longest: usize) -> FrameBuffers {
        let stride = (longest.div_ceil(64) | 1) * 64;
        FrameBuffers { bytes: vec![0; stride * count], stride, held: vec![0; count], lengths: vec![0; count] }
    }

    fn lend(&mut self) -> TxBuffers<'_> {
        TxBuffers {
            bytes: &mut self.bytes,
            stride: self.stride,
            held: &mut self.held,
            lengths: &mut self.lengths,
        }
    }
}

/// Sends batches with sendmmsg(2).
#[derive(Debug)]
pub struct Sendmmsg {
    socket: Socket,
    own: FrameBuffers,
    vectors: Vec<libc::iovec>,
    messages: Vec<libc::mmsghdr>,
    counters: TxCounters,
    departures: Option<Departures>,
    /// The message of the batch that asks for a time stamp, as long as it was not passed over.
    asking: Option<usize>,
}

// SAFETY: the raw pointers in `vectors` and `messages` point into vectors of the same struct and to a control message that it
// owns, are rewritten before each use, and are used by no one but `send`, which has the struct to itself.
unsafe impl Send for Sendmmsg {}

impl Sendmmsg {
    /// A sender for frames of up to `longest` bytes.
    ///
    /// # Errors
    /// That there is no socket or no memory, or that frames are too long for the interface.
    pub fn open(target: &Target, longest: usize) -> Result<Sendmmsg, TxError> {
        // SAFETY: all-zero is a valid iovec and a valid mmsghdr (null pointers, zero lengths).
        let (vector, message) =
            unsafe { (std::mem::zeroed::<libc::iovec>(), std::mem::zeroed::<libc::mmsghdr>()) };
        Ok(Sendmmsg {
            socket: Socket::open(target)?,
            own: FrameBuffers::new(BATCH, longest),
            vectors: vec![vector; BATCH],
            messages: vec![message; BATCH],
            counters: TxCounters::default(),
            departures: None,
            asking: None,
        })
    }

    /// Has some of its frames stamped as they leave.
    ///
    /// # Errors
    /// That the kernel or the driver does not stamp them.
    pub fn stamp_departures(&mut self, by: Stamper) -> Result<(), TxError> {
        let departures = Departures::of(&self.socket.fd, by).map_err(|source| TxError::Io {
            what: "SO_TIMESTAMPING",
            interface: self.socket.name.clone(),
            source,
        })?;
        self.departures = Some(departures);
        Ok(())
    }
}

impl Tx for Sendmmsg {
    fn bound(&mut self, stop: Arc<AtomicBool>, deadline: Option<Instant>) {
        (self.socket.stop, self.socket.deadline) = (Some(stop), deadline);
    }

    fn batch(&self) -> usize {
        BATCH
    }

    fn buffers(&mut self) -> TxBuffers<'_> {
        self.own.lend()
    }

    fn send(&mut self, count: usize, _due: &[u64]) -> Result<(), TxError> {
        let count = count.min(BATCH);
        let buffers = self.own.bytes.chunks_exact_mut(self.own.stride);
        for (i, buffer) in buffers.take(count).enumerate() {
            let length = (self.own.lengths[i] as usize).min(buffer.len());
            self.vectors[i] = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: length };
            self.messages[i].msg_hdr.msg_iov = &raw mut self.vectors[i];
            self.messages[i].msg_hdr.msg_iovlen = 1;
        }
        let asking = self.departures.as_ref().and_then(Departures::asking).filter(|(nth, _)| *nth < count);
        self.asking = asking.map(|(nth, _)| nth);
        if let (Some(departures), Some((nth, _))) = (&mut self.departures, asking) {
            departures.ask_with(&mut self.messages[nth].msg_hdr);
        }
        let before = self.counters;
        let sent = self.send_messages(count);
        if let (Some(departures), Some((nth, handed))) = (&mut self.departures, asking) {
            let went = self.counters.frames - before.frames + self.counters.failed - before.failed;
            // It was reached, and not passed over.
            let asked = went > nth as u64 && self.asking.is_some();
            let handed = asked.then_some((handed, self.own.lengths[nth]));
            departures.asked(&mut self.messages[nth].msg_hdr, handed);
        }
        sent
    }

    fn drain(&mut self) -> Result<(), TxError> {
        let awaited = self.departures.as_ref().and_then(Departures::awaits);
        self.socket.drain(awaited.map_or(0, most_memory))
    }

    fn counters(&self) -> TxCounters {
        self.counters
    }

    fn departures(&mut self) -> Option<&mut Departures> {
        self.departures.as_mut()
    }
}

impl Sendmmsg {
    /// Sends the messages that `send` has set, in order.
    fn send_messages(&mut self, count: usize) -> Result<(), TxError> {
        let mut from = 0;
        let mut stalled = None;
        while from < count {
            // SAFETY: messages[from..count] point to iovecs that `send` set, which point into `own.bytes`; neither vector
            // is touched before the call returns. The same goes for the control message of one of them.
            let sent = unsafe {
                libc::sendmmsg(
                    self.socket.fd.as_raw_fd(),
                    self.messages[from..].as_mut_ptr(),
                    (count - from) as u32,
                    libc::MSG_DONTWAIT,
                )
            };
            if sent > 0 {
                let sent = sent as usize;
                self.counters.frames += sent as u64;
                self.counters.bytes +=
                    self.own.lengths[from..from + sent].iter().map(|&l| u64::from(l)).sum::<u64>();
                from += sent;
                stalled = None;
                continue;
            }
            let errno = io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
            if !self.socket.judge(errno, &mut self.counters, &mut stalled)? {
                self.counters.failed += 1;
                self.counters.failed_bytes += u64::from(self.own.lengths[from]);
                self.asking = self.asking.filter(|nth| *nth != from);
                from += 1;
            }
        }
        Ok(())
    }
}

/// Frames in the ring.
const RING_FRAMES: usize = 512;

/// Sends through a ring shared with the kernel (PACKET_TX_RING, TPACKET_V2).
#[derive(Debug)]
pub struct TxRing {
    socket: Socket,
    map: *mut u8,
    frame_size: usize,
    head: usize,
    /// Ring frames handed to the kernel whose completion has not been seen, oldest at `tail`.
    tail: usize,
    in_flight: usize,
    /// Frames are made here and copied into the ring (3 ns): the kernel sends the ring's own pages, a receiver on
    /// the same host may write into them, so they could not be patched anyway.
    own: FrameBuffers,
    lengths: Vec<u32>,
    /// Lengths that the kernel takes: from a whole Ethernet header to what the MTU allows.
    lengths_taken: RangeInclusive<u32>,
    counters: TxCounters,
}

// SAFETY: `map` is a mapping of this struct's own; nothing else points into it.
unsafe impl Send for TxRing {}

/// Where a frame's bytes start in its ring frame (TPACKET2_HDRLEN less the address, linux/if_packet.h).
const RING_DATA: usize = (size_of::<libc::tpacket2_hdr>() + 15) & !15;

impl TxRing {
    /// A sender for frames of up to `longest` bytes.
    ///
    /// # Errors
    /// That there is no socket or no memory, or that frames are too long for the interface.
    pub fn open(target: &Target, longest: usize) -> Result<TxRing, TxError> {
        let socket = Socket::open(target)?;
        let fail =
            |what: &'static str| move |source| TxError::Io { what, interface: target.name.clone(), source };
        let version = libc::tpacket_versions::TPACKET_V2 as i32;
        set(&socket.fd, libc::SOL_PACKET, libc::PACKET_VERSION, &version).map_err(fail("PACKET_VERSION"))?;
        let frame_size = (RING_DATA + longest).next_power_of_two().max(2048);
        let block_size = frame_size.max(65536);
        let request = libc::tpacket_req {
            tp_block_size: block_size as u32,
            tp_block_nr: (RING_FRAMES * frame_size / block_size) as u32,
            tp_frame_size: frame_size as u32,
            tp_frame_nr: RING_FRAMES as u32,
        };
        set(&socket.fd, libc::SOL_PACKET, libc::PACKET_TX_RING, &request).map_err(fail("PACKET_TX_RING"))?;
        // SAFETY: a new shared mapping of exactly the ring that was just set up.
        let map = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                RING_FRAMES * frame_size,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                socket.fd.as_raw_fd(),
                0,
            )
        };
        if map == libc::MAP_FAILED {
            return Err(fail("mapping the transmit ring")(io::Error::last_os_error()));
        }
        Ok(TxRing {
            socket,
            map: map.cast(),
            frame_size,
            head: 0,
            tail: 0,
            in_flight: 0,
            own: FrameBuffers::new(BATCH, longest),
            lengths: vec![0; RING_FRAMES],
            lengths_taken: 14..=target.mtu.saturating_add(14),
            counters: TxCounters::default(),
        })
    }

    /// The header of ring frame `i`.
    fn header(&self, i: usize) -> *mut libc::tpacket2_hdr {
        debug_assert!(i < RING_FRAMES);
        // SAFETY: `i` is below RING_FRAMES, so the result lies inside of the mapping.
        unsafe { self.map.add(i * self.frame_size).cast() }
    }

    /// The status word of ring frame `i`, which the kernel writes too.
    fn status(&self, i: usize) -> &AtomicU32 {
        // SAFETY: tp_status is the first, aligned u32 of a header inside of the mapping, which lives as long as
        // `self`; it is only ever accessed atomically on our side.
        unsafe { AtomicU32::from_ptr((&raw mut (*self.header(i)).tp_status).cast()) }
    }

    /// Takes note of what the kernel has completed.
    fn collect(&mut self) -> Result<(), TxError> {
        while self.in_flight > 0 {
            let status = self.status(self.tail).load(Ordering::Acquire);
            let length = u64::from(self.lengths[self.tail]);
            if status == libc::TP_STATUS_AVAILABLE {
                self.counters.frames += 1;
                self.counters.bytes += length;
            } else if status & libc::TP_STATUS_WRONG_FORMAT != 0 {
                // The kernel stops at such a frame and never steps over it. Lengths were checked before, so this is
                // the MTU changed during the run, or a driver with ideas of its own.
                return Err(TxError::Refused(self.socket.name.clone()));
            } else {
                return Ok(());
            }
            self.tail = (self.tail + 1) % RING_FRAMES;
            self.in_flight -= 1;
        }
        Ok(())
    }

    /// Bytes of frames that the kernel has not completed.
    fn bytes_in_flight(&self) -> u64 {
        (0..self.in_flight).map(|i| u64::from(self.lengths[(self.tail + i) % RING_FRAMES])).sum()
    }

    /// Tells the kernel to look at the ring.
    fn kick(&mut self, stalled: &mut Option<Instant>) -> Result<(), TxError> {
        // SAFETY: no data is passed; the kernel reads the ring.
        let rc = unsafe {
            libc::sendto(
                self.socket.fd.as_raw_fd(),
                std::ptr::null(),
                0,
                libc::MSG_DONTWAIT,
                std::ptr::null(),
                0,
            )
        };
        if rc >= 0 {
            return Ok(());
        }
        let errno = io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
        self.socket.judge(errno, &mut self.counters, stalled).map(|_| ())
    }
}

impl Tx for TxRing {
    fn bound(&mut self, stop: Arc<AtomicBool>, deadline: Option<Instant>) {
        (self.socket.stop, self.socket.deadline) = (Some(stop), deadline);
    }

    fn batch(&self) -> usize {
        BATCH
    }

    fn buffers(&mut self) -> TxBuffers<'_> {
        self.own.lend()
    }

    fn send(&mut self, count: usize, _due: &[u64]) -> Result<(), TxError> {
        let mut stalled = None;
        for i in 0..count.min(BATCH) {
            let length = self.own.lengths[i].min(self.frame_size as u32 - RING_DATA as u32);
            let frame = &self.own.bytes[i * self.own.stride..][..length as usize];
            // As the kernel allows: a VLAN tag on top of the MTU.
            let tag = if frame.get(12..14) == Some(&[0x81, 0x00][..]) { 4 } else { 0 };
            if !self.lengths_taken.contains(&length.saturating_sub(tag)) {
                self.counters.failed += 1;
                self.counters.failed_bytes += u64::from(length);
                continue;
            }
            self.collect()?;
            while self.in_flight == RING_FRAMES {
                self.kick(&mut stalled)?;
                self.collect()?;
                if self.in_flight < RING_FRAMES {
                    stalled = None;
                } else {
                    self.socket.patience(&mut stalled)?;
                    self.socket.wait_writable();
                }
            }
            let frame = &self.own.bytes[i * self.own.stride..][..length as usize];
            let header = self.header(self.head);
            // SAFETY: the frame is available (in_flight < RING_FRAMES), so the kernel does not touch it; header and
            // data lie inside of its frame_size bytes, because frame_size was chosen for the longest frame.
            unsafe {
                (*header).tp_len = length;
                std::ptr::copy_nonoverlapping(
                    frame.as_ptr(),
                    header.cast::<u8>().add(RING_DATA),
                    frame.len(),
                );
            }
            self.lengths[self.head] = length;
            self.status(self.head).store(libc::TP_STATUS_SEND_REQUEST, Ordering::Release);
            self.head = (self.head + 1) % RING_FRAMES;
            self.in_flight += 1;
        }
        self.kick(&mut stalled)
    }

    fn drain(&mut self) -> Result<(), TxError> {
        let start = Instant::now();
        let mut stalled = None;
        loop {
            self.collect()?;
            if self.in_flight == 0 {
                return self.socket.drain(0);
            }
            if start.elapsed() > DRAIN {
                let bytes = self.bytes_in_flight();
                let waited_ms = DRAIN.as_millis() as u64;
                return Err(TxError::NotDrained { interface: self.socket.name.clone(), bytes, waited_ms });
            }
            self.kick(&mut stalled)?;
        }
    }

    fn counters(&self) -> TxCounters {
        self.counters
    }
}

impl Drop for TxRing {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `open`, with its true length; nothing refers to it any more.
        unsafe { libc::munmap(self.map.cast(), RING_FRAMES * self.frame_size) };
    }
}
