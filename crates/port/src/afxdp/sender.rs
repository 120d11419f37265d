//! The sender over one socket: which slots are free, which frames the kernel has taken, and what became of them.
//!
//! A frame goes through three states: *pending* while its descriptors stand in the TX ring and the kernel has not
//! read them, *taken* once it has, and its slot is *free* again when its addresses came back in the completion ring,
//! in whatever order. Taken is accepted, with one exception: in copy mode the kernel reports by EBUSY that the driver
//! dropped the frame it read last (a full receive ring behind a veth, no carrier). A packet socket keeps such a frame
//! for its next call, and so does this sender: it puts it back in front of those not yet read. That is possible
//! because in copy mode the kernel reads the ring in our calls only, and stops at such a frame.
//!
//! For the same reason nobody here polls the socket in copy mode: poll(2) sends, too, and keeps such errors to itself.
#![allow(unsafe_code, reason = "lending the bytes of slots that the kernel is done with")]

use std::collections::VecDeque;
use std::io;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bpf::Link;
use rustix::io::Errno;
use rustix::net::xdp::{XdpDesc, XdpDescOptions};

use super::Description;
use super::socket::Socket;
use super::umem::Region;
use crate::netlink::{self, Message, NetlinkError, REQUEST};
use crate::packet::{BATCH, Target};
use crate::tx::{Tx, TxBuffers, TxCounters, TxError};

/// No frame accepted for so long: the queue is stuck. As for a packet socket.
const STUCK: Duration = Duration::from_secs(2);

/// Frames accepted are given so long to leave. As for a packet socket.
const DRAIN: Duration = Duration::from_secs(1);

/// A wait spins for so long before it sleeps: about what a ring of descriptors lasts at 10 Gbit/s.
const SPIN: Duration = Duration::from_micros(200);

/// A driver that is being set up for zero-copy is given so long to get its link back.
const PROBE: Duration = Duration::from_secs(5);

/// A frame in the TX ring that the kernel has not read.
#[derive(Debug, Clone, Copy)]
struct Pending {
    slot: u32,
    descriptors: u32,
}

/// Sends the frames of one thread through one queue.
#[derive(Debug)]
pub struct Afxdp {
    socket: Socket,
    region: Region,
    description: Description,
    name: String,
    index: u32,
    /// Tells whether the interface is there, in its namespace.
    netlink: netlink::Socket,
    stop: Option<Arc<AtomicBool>>,
    deadline: Option<Instant>,
    /// Lengths sent, without a VLAN tag: from a whole Ethernet header to what the MTU allows.
    lengths_taken: RangeInclusive<u32>,
    /// For each slot: the executor's note, the frame's length, and how many of its addresses are to come back.
    held: Vec<u64>,
    lengths: Vec<u32>,
    awaited: Vec<u32>,
    /// The sum of `awaited`.
    outstanding: u32,
    /// The slots lent.
    lent: Range<usize>,
    /// In the order of the ring, from position `taken` on.
    pending: VecDeque<Pending>,
    taken: u32,
    /// Descriptors refused whose frames were written off.
    written_off: u64,
    counters: TxCounters,
    /// What the driver wants attached while it sends; goes after the socket, which is further up.
    _passing: Option<Arc<Link>>,
}

/// What a wait is for.
#[derive(Debug, Clone, Copy)]
enum Until {
    /// The kernel has read all descriptors.
    AllTaken,
    /// There is a slot to lend.
    SlotFree,
}

impl Afxdp {
    pub(super) fn new(
        socket: Socket,
        region: Region,
        target: &Target,
        description: Description,
        passing: Option<Arc<Link>>,
    ) -> Result<Afxdp, NetlinkError> {
        let slots = region.slots();
        let netlink = netlink::Socket::route()?;
        let taken = socket.tx.consumed();
        Ok(Afxdp {
            socket,
            region,
            description,
            name: target.name.clone(),
            index: target.index,
            netlink,
            stop: None,
            deadline: None,
            lengths_taken: 14..=target.mtu.saturating_add(14),
            held: vec![0; slots],
            lengths: vec![0; slots],
            awaited: vec![0; slots],
            outstanding: 0,
            lent: 0..BATCH.min(slots),
            pending: VecDeque::with_capacity(slots),
            taken,
            written_off: 0,
            counters: TxCounters::default(),
            _passing: passing,
        })
    }

    /// How it sends, and why so.
    pub fn describe(&self) -> &Description {
        &self.description
    }

    pub(super) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Wakes the driver with nothing to send, to see whether it would send. The link may be down for a moment after
    /// a driver was set up for zero-copy.
    pub(super) fn probe(&self, stop: &AtomicBool) -> Result<(), Errno> {
        let since = Instant::now();
        loop {
            match self.socket.kick() {
                Ok(()) | Err(Errno::AGAIN | Errno::BUSY | Errno::NOBUFS | Errno::INTR) => return Ok(()),
                Err(errno)
                    if errno != Errno::NETDOWN || since.elapsed() > PROBE || stop.load(Ordering::Relaxed) =>
                {
                    return Err(errno);
                }
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }

    /// Does the kernel send this frame? What is not sent does not get into the ring: a frame that the driver drops
    /// for its length would be tried again and again.
    fn is_sendable(&mut self, slot: usize) -> bool {
        let length = self.lengths[slot];
        if length as usize > self.region.stride() {
            return false;
        }
        if self.lengths_taken.contains(&length) {
            return true;
        }
        // As a packet socket has it: a VLAN tag on top of the MTU.
        // SAFETY: the slot is lent, so the kernel is done with it.
        let frame = unsafe { self.region.bytes(slot..slot + 1) };
        let tagged = frame.get(12..14) == Some(&[0x81, 0x00][..]);
        tagged && self.lengths_taken.contains(&length.saturating_sub(4))
    }

    /// Writes a frame's descriptors behind those that stand in the ring.
    fn describe_frame(&mut self, slot: usize) -> Pending {
        let mut descriptors = 0;
        for (addr, len, more) in self.region.pieces(slot, self.lengths[slot] as usize) {
            let options = if more { XdpDescOptions::XDP_PKT_CONTD } else { XdpDescOptions::empty() };
            // The ring has room for twice all slots, see `open`.
            let room = self.socket.tx.push(XdpDesc { addr, len, options });
            debug_assert!(room, "a TX ring for all slots");
            descriptors += 1;
        }
        Pending { slot: slot as u32, descriptors }
    }

    /// Puts a frame into the ring, to be published.
    fn enqueue(&mut self, slot: usize) {
        let frame = self.describe_frame(slot);
        self.await_back(frame);
        self.pending.push_back(frame);
    }

    fn await_back(&mut self, frame: Pending) {
        self.awaited[frame.slot as usize] += frame.descriptors;
        self.outstanding += frame.descriptors;
    }

    /// Takes from `pending` what the kernel has read. The last of it, for who must know.
    fn note_taken(&mut self) -> Option<Pending> {
        let consumed = self.socket.tx.consumed();
        let mut last = None;
        while let Some(&frame) = self.pending.front() {
            // The kernel may stand in the middle of a frame, and then go back to its start.
            let end = self.taken.wrapping_add(frame.descriptors);
            if (consumed.wrapping_sub(end) as i32) < 0 {
                break;
            }
            self.pending.pop_front();
            self.taken = end;
            self.count(frame);
            last = Some(frame);
        }
        last
    }

    fn count(&mut self, frame: Pending) {
        self.counters.frames += 1;
        self.counters.bytes += u64::from(self.lengths[frame.slot as usize]);
    }

    /// The driver dropped the frame that the kernel read last: puts it back in front of the others.
    fn put_back(&mut self) {
        let dropped = match self.note_taken() {
            Some(frame) => {
                self.counters.frames -= 1;
                self.counters.bytes -= u64::from(self.lengths[frame.slot as usize]);
                frame
            }
            // The kernel tells its position only when it has sent something in the call.
            None => match self.pending.pop_front() {
                Some(frame) => {
                    self.taken = self.taken.wrapping_add(frame.descriptors);
                    frame
                }
                None => return,
            },
        };
        self.await_back(dropped);
        self.pending.push_front(dropped);
        self.socket.tx.rewind(self.taken);
        for i in 0..self.pending.len() {
            self.describe_frame(self.pending[i].slot as usize);
        }
        self.socket.tx.publish();
    }

    /// Takes back the slots that the kernel is done with.
    fn collect(&mut self) {
        while let Some(address) = self.socket.done.pop() {
            let awaited = self.region.slot(address).and_then(|slot| self.awaited.get_mut(slot));
            if let Some(awaited) = awaited.filter(|awaited| **awaited > 0) {
                *awaited -= 1;
                self.outstanding -= 1;
            }
        }
        self.socket.done.release();
    }

    /// Descriptors that the kernel has read and not given back.
    fn on_their_way(&self) -> u32 {
        self.outstanding - self.socket.tx.next().wrapping_sub(self.taken)
    }

    /// The kernel consumes a descriptor that it finds invalid and gives nothing back. Once such are all that is
    /// missing, their frames have failed.
    fn write_off(&mut self) {
        let refused = self.socket.invalid().saturating_sub(self.written_off);
        if refused == 0 || refused != u64::from(self.on_their_way()) {
            return;
        }
        self.written_off += refused;
        for frame in &self.pending {
            // Those are still to be read.
            self.awaited[frame.slot as usize] -= frame.descriptors;
        }
        for slot in 0..self.awaited.len() {
            if std::mem::take(&mut self.awaited[slot]) > 0 {
                let length = u64::from(self.lengths[slot]);
                self.counters.frames -= 1;
                self.counters.bytes -= length;
                self.counters.failed += 1;
                self.counters.failed_bytes += length;
            }
        }
        self.outstanding = 0;
        for i in 0..self.pending.len() {
            self.await_back(self.pending[i]);
        }
    }

    /// Has the kernel look at the ring, if it must be told. True if it said that it cannot go on at the moment.
    fn kick(&mut self) -> Result<bool, TxError> {
        let needed = if self.socket.zero_copy {
            self.outstanding > 0 && self.socket.tx.needs_wakeup()
        } else {
            !self.pending.is_empty()
        };
        if !needed {
            return Ok(false);
        }
        match self.socket.kick() {
            Ok(()) | Err(Errno::INTR) => return Ok(false),
            // In copy mode also: as many as it takes in one call.
            Err(Errno::AGAIN) => return Ok(true),
            Err(Errno::BUSY) if !self.socket.zero_copy => {
                self.counters.retried_enobufs += 1;
                self.put_back();
            }
            Err(Errno::BUSY | Errno::NOBUFS) => self.counters.retried_enobufs += 1,
            Err(Errno::NETDOWN) if self.is_there() => return Err(TxError::Down(self.name.clone())),
            Err(Errno::NXIO) if self.is_there() => {
                return Err(TxError::Io {
                    what: "waking the driver for AF_XDP (was its XDP program taken away?)",
                    interface: self.name.clone(),
                    source: Errno::NXIO.into(),
                });
            }
            Err(Errno::NETDOWN | Errno::NXIO | Errno::NODEV) => return Err(TxError::Gone(self.name.clone())),
            Err(Errno::PERM) => return Err(TxError::Permission(self.name.clone())),
            Err(errno) => {
                let source = io::Error::from(errno);
                return Err(TxError::Io { what: "sending", interface: self.name.clone(), source });
            }
        }
        Ok(false)
    }

    /// Is the interface that the socket was bound to still there? One that is taken away goes down first; the kernel
    /// answers this question when it is through with that (SIOCGIFINDEX would be answered in between).
    fn is_there(&mut self) -> bool {
        self.netlink.request(Message::new(libc::RTM_GETLINK, REQUEST).link(self.index, 0, 0)).is_ok()
    }

    /// Kicks and waits.
    fn advance(&mut self, until: Until) -> Result<(), TxError> {
        let mut stalled = None;
        // Not the position in the ring: that moves when a frame is dropped and put back, too.
        let mut before = (self.counters.frames, self.outstanding);
        loop {
            let full = match self.kick() {
                Ok(full) => full,
                Err(fault) => {
                    // What it took before it failed counts.
                    self.note_taken();
                    self.collect();
                    return Err(fault);
                }
            };
            self.note_taken();
            self.collect();
            let done = match until {
                Until::AllTaken => self.pending.is_empty(),
                Until::SlotFree => {
                    self.choose();
                    !self.lent.is_empty()
                }
            };
            if done {
                return Ok(());
            }
            let now = (self.counters.frames, self.outstanding);
            if now != before {
                (before, stalled) = (now, None);
                continue;
            }
            self.counters.retried_eagain += u64::from(full);
            let waited = self.patience(&mut stalled)?;
            if waited < SPIN {
                std::hint::spin_loop();
            } else {
                self.write_off();
                std::thread::sleep(Duration::from_micros(50));
            }
        }
    }

    /// May a wait go on? For how long it has, if so.
    fn patience(&self, stalled: &mut Option<Instant>) -> Result<Duration, TxError> {
        let now = Instant::now();
        let stopped = self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed));
        if stopped || self.deadline.is_some_and(|deadline| now > deadline) {
            return Err(TxError::Stopped(self.name.clone()));
        }
        let waited = now - *stalled.get_or_insert(now);
        if waited > STUCK {
            return Err(TxError::Stuck(self.name.clone(), STUCK.as_millis() as u64));
        }
        Ok(waited)
    }

    /// Chooses the next slots to lend: those just used if they are free again, because they are in the cache and hold
    /// the right frames, else those behind them, else from the start.
    fn choose(&mut self) {
        let run = |from: usize| {
            let end = self.awaited.len().min(from + BATCH);
            let free = self.awaited[from..end].iter().take_while(|awaited| **awaited == 0).count();
            from..from + free
        };
        let at = self.lent.start;
        let mut best = run(at);
        for from in [self.lent.end % self.awaited.len(), 0] {
            if best.len() < BATCH {
                let other = run(from);
                best = if other.len() > best.len() { other } else { best };
            }
        }
        self.lent = best;
    }

    /// Bytes of frames that the kernel has taken and not given back.
    fn bytes_on_their_way(&self) -> u64 {
        let all = self.lengths.iter().zip(&self.awaited).filter(|(_, awaited)| **awaited > 0);
        let pending = self.pending.iter().map(|frame| u64::from(self.lengths[frame.slot as usize]));
        all.map(|(length, _)| u64::from(*length)).sum::<u64>().saturating_sub(pending.sum())
    }
}

impl Tx for Afxdp {
    fn bound(&mut self, stop: Arc<AtomicBool>, deadline: Option<Instant>) {
        (self.stop, self.deadline) = (Some(stop), deadline);
    }

    fn batch(&self) -> usize {
        BATCH
    }

    fn buffers(&mut self) -> TxBuffers<'_> {
        TxBuffers {
            stride: self.region.stride(),
            // SAFETY: `choose` lends slots of which nothing is awaited, so the kernel is done with them.
            bytes: unsafe { self.region.bytes(self.lent.clone()) },
            held: &mut self.held[self.lent.clone()],
            lengths: &mut self.lengths[self.lent.clone()],
        }
    }

    fn send(&mut self, count: usize, _due: &[u64]) -> Result<(), TxError> {
        for slot in self.lent.clone().take(count) {
            if self.is_sendable(slot) {
                self.enqueue(slot);
            } else {
                self.counters.failed += 1;
                self.counters.failed_bytes += u64::from(self.lengths[slot]);
            }
        }
        self.lent.end = self.lent.end.min(self.lent.start + count);
        self.socket.tx.publish();
        if self.socket.zero_copy {
            self.kick()?;
            self.note_taken();
        } else {
            let sent = self.advance(Until::AllTaken);
            if sent.is_err() {
                self.choose();
                return sent;
            }
        }
        self.collect();
        self.choose();
        if !self.lent.is_empty() {
            return Ok(());
        }
        match self.advance(Until::SlotFree) {
            // All frames given were handed over; who goes on nevertheless finds no buffers.
            Err(TxError::Stopped(_)) => Ok(()),
            other => other,
        }
    }

    fn drain(&mut self) -> Result<(), TxError> {
        let start = Instant::now();
        loop {
            // In copy mode what is still pending was not sent when the run ended, and is not to be sent now.
            let fault = if self.socket.zero_copy { self.kick().err() } else { None };
            self.note_taken();
            self.collect();
            let waiting = if self.socket.zero_copy { self.outstanding } else { self.on_their_way() };
            if waiting == 0 {
                return Ok(());
            }
            if let Some(fault) = fault {
                return Err(fault);
            }
            if start.elapsed() > SPIN {
                self.write_off();
                std::thread::sleep(Duration::from_micros(50));
            }
            if start.elapsed() > DRAIN {
                let (bytes, waited_ms) = (self.bytes_on_their_way(), DRAIN.as_millis() as u64);
                return Err(TxError::NotDrained { interface: self.name.clone(), bytes, waited_ms });
            }
        }
    }

    fn counters(&self) -> TxCounters {
        self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Options, open};
    use super::*;
    use lab::Lab;

    #[test]
    fn descriptors_that_the_kernel_refuses_become_failed_frames() {
        let lab = Lab::two_hosts(&lab::Options::default()).expect("a lab (as root)");
        let index = lab.sender.namespace.index_of("tx0").unwrap().unwrap();
        let target = Target { name: "tx0".to_owned(), index, mtu: 1500 };
        let open = || open(&target, 100, &[0], &Options { slots: 64, ..Options::default() });
        let mut tx = lab.sender.namespace.run_in(open).unwrap().unwrap().remove(0);
        for round in 1..=3 {
            tx.buffers().lengths[..20].fill(60);
            // Ten frames as `send` would write them, with three behind the end of the UMEM among them.
            let start = tx.socket.tx.next();
            for slot in 0..10 {
                tx.enqueue(tx.lent.start + slot);
            }
            for bad in [2, 3, 9] {
                let end = tx.socket.tx.next();
                tx.socket.tx.rewind(start.wrapping_add(bad));
                tx.socket.tx.push(XdpDesc { addr: 1 << 40, len: 60, options: XdpDescOptions::empty() });
                tx.socket.tx.rewind(end);
            }
            tx.lent.end = tx.lent.start + 10;
            tx.socket.tx.publish();
            tx.advance(Until::AllTaken).unwrap();
            tx.drain().unwrap();
            tx.choose();
            let counters = tx.counters();
            assert_eq!((counters.frames, counters.bytes), (7 * round, 420 * round));
            assert_eq!((counters.failed, counters.failed_bytes), (3 * round, 180 * round));
            assert_eq!(tx.lent.len(), 64, "all slots are free again");
        }
    }
}
