//! One direction of the device, in the calling thread: takes frames from one interface and sends them by another when
//! they are due.
//!
//! A frame's delay counts from the moment the kernel received it, not from when this thread was awake to look. The thread
//! sleeps until shortly before the next frame is due and spins the rest of the way. With a delay shorter than waking up may
//! take it also spins for a while after each arrival, because another one may follow. Memory is bounded ([`Job::buffer`]): what finds no room is lost and counted.

use crate::corrupt;
use crate::faults::{Fate, Faults, Passed, Why};
use crate::queue::Queue;
use bridge::wholes::{self, Unfit};
use clocks::{Ahead, Clock, ahead};
use histogram::Histogram;
use port::packet::{Sendmmsg, Target};
use port::rx::{Frame, Rx, RxError, Slots};
use port::tx::{Tx, TxError};
use rustix::thread::CpuSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// An idle direction looks so often whether it is to end.
const IDLE: Duration = Duration::from_millis(50);
/// Sleeping ends so long before a frame is due: timers wake a thread tens of microseconds late.
const AWAKE_NS: u64 = 100_000;
/// After a frame the next one is waited for so long without sleeping, where it is due before sleep would have ended.
const LINGER_NS: u64 = 2_000_000;
/// A delay of so much leaves time to wake up.
const UNHURRIED: Duration = Duration::from_micros(200);
/// Frames taken before it is looked again whether some are due.
const TAKEN: usize = 16;
/// Counts are shown this often.
const SHOWN_NS: u64 = 5_000_000;
/// What the ring can hold a frame for. A difference of clocks beyond it is a clock that was set.
const BELIEVED_NS: u64 = 1_000_000_000;
/// Ethernet header, and a tag, which the kernel lets pass above the MTU.
const HEADER: usize = 14;
const TAG: usize = 4;
/// Buffers kept for frames to come.
const SPARE: usize = 4096;

/// What became of the frames that arrived in one direction. Bytes are layer 2 without FCS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Did {
    /// All that arrived and were taken from the ring: the sum of `forwarded` without `copies`, `lost`, `flapped`, `full`,
    /// `too_long`, `unfit`, `refused` and `inside`.
    pub frames: u64,
    /// Bytes of those.
    pub bytes: u64,
    /// Accepted by the other interface, copies counted.
    pub forwarded: u64,
    /// Bytes of those.
    pub forwarded_bytes: u64,
    /// Lost as `Plan::loss` says.
    pub lost: u64,
    /// Lost by flapping.
    pub flapped: u64,
    /// Among the forwarded: copies.
    pub copies: u64,
    /// Chosen to be put back.
    pub reordered: u64,
    /// A bit flipped.
    pub corrupted: u64,
    /// Held by a freeze.
    pub frozen: u64,
    /// Sent back where they came from.
    pub returned: u64,
    /// Found no memory, copies counted.
    pub full: u64,
    /// Of those, copies.
    pub full_copies: u64,
    /// Longer than the other interface's MTU allows.
    pub too_long: u64,
    /// Super-frames that could not be had whole, or cannot be cut.
    pub unfit: u64,
    /// The other interface would not have them.
    pub refused: u64,
    /// Not gone yet; at the end: when the device was taken away.
    pub inside: u64,
    /// Found the ring full; not among `frames`.
    pub missed: u64,
    /// When the first and the last frame arrived, since the start.
    pub first_ns: Option<u64>,
    /// See `first_ns`.
    pub last_ns: Option<u64>,
}

impl Did {
    /// From the first to the last arrival; 0 with fewer than two frames.
    pub fn duration_ns(&self) -> u64 {
        match (self.first_ns, self.last_ns) {
            (Some(first), Some(last)) => last.saturating_sub(first),
            _ => 0,
        }
    }
}

/// What one direction is to do.
#[derive(Debug)]
pub struct Job {
    /// What happens to frames, decided one by one.
    pub faults: Faults,
    /// Bytes that may wait at a time.
    pub buffer: u64,
    /// When the device was started, by CLOCK_MONOTONIC: flapping and freezing count from then, in both directions.
    pub start_ns: u64,
    /// Where to run. A thread that moves would change queues, and let frames overtake each other that it sent in order.
    pub cpu: Option<usize>,
    /// Ends it; what waits is lost.
    pub stop: Arc<AtomicBool>,
}

/// Why a direction ended before it was told to.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// Nothing comes in.
    #[error(transparent)]
    Receive(#[from] RxError),
    /// Nothing goes out.
    #[error(transparent)]
    Send(#[from] TxError),
}

/// The sockets of one direction.
#[derive(Debug)]
pub struct Direction {
    from: Slots,
    to: Sendmmsg,
    back: Option<Sendmmsg>,
    longest: usize,
    counts: Arc<Mutex<Did>>,
}

impl Direction {
    /// Opens both ends, in their network namespace. Frames are received from now on. With `comes_back` some are sent back.
    ///
    /// # Errors
    /// That an end cannot be received from or sent to, and which.
    pub fn open(from: &Target, to: &Target, comes_back: bool) -> Result<Direction, DeviceError> {
        let longest = to.mtu as usize + HEADER;
        let back = comes_back.then(|| Sendmmsg::open(from, longest + TAG)).transpose()?;
        Ok(Direction {
            from: Slots::open(from, TAKEN)?,
            to: Sendmmsg::open(to, longest + TAG)?,
            back,
            longest,
            counts: Arc::default(),
        })
    }

    /// Where the counts can be read while it runs.
    pub fn counts(&self) -> Arc<Mutex<Did>> {
        self.counts.clone()
    }
}

/// A frame that waits.
#[derive(Debug)]
struct Waiting {
    bytes: Vec<u8>,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Itself,
    Copy,
    /// Goes back.
    Return,
}

/// CLOCK_REALTIME when CLOCK_MONOTONIC was `here`: not later than it was, so that no frame is taken for older than it is and
/// leaves before its time.
fn realtime(here: u64, ahead: Ahead) -> u64 {
    here.saturating_add_signed(ahead.ns).saturating_sub(ahead.width_ns)
}

/// Carries frames over until told to stop. Gives how late they left: after the time they were due.
///
/// # Errors
/// That an end cannot be received from or sent to any more.
pub fn carry(mut direction: Direction, job: Job) -> Result<Histogram, DeviceError> {
    let one = std::num::NonZeroU64::MIN;
    let _ = rustix::thread::set_current_timer_slack(Some(one));
    if let Some(cpu) = job.cpu.filter(|&cpu| cpu < CpuSet::MAX_CPU) {
        let mut only = CpuSet::new();
        only.set(cpu);
        // Anywhere is better than nowhere.
        let _ = rustix::thread::sched_setaffinity(None, &only);
    }
    direction.to.bound(job.stop.clone(), None);
    if let Some(back) = &mut direction.back {
        back.bound(job.stop.clone(), None);
    }
    let mut carrier = Carrier {
        faults: job.faults,
        buffer: job.buffer,
        start_ns: job.start_ns,
        queue: Queue::default(),
        waiting_bytes: 0,
        spare: Vec::new(),
        whole: Vec::new(),
        lateness: Histogram::new(),
        did: Did::default(),
        copies_handed: 0,
    };
    let ended = carrier.run(&mut direction, &job.stop);
    carrier.did.inside = carrier.queue.len() as u64;
    carrier.publish(&mut direction);
    ended.map(|()| carrier.lateness)
}

struct Carrier {
    faults: Faults,
    buffer: u64,
    start_ns: u64,
    queue: Queue<Waiting>,
    waiting_bytes: u64,
    spare: Vec<Vec<u8>>,
    whole: Vec<u8>,
    lateness: Histogram,
    did: Did,
    copies_handed: u64,
}

impl Carrier {
    fn now(&self) -> u64 {
        clocks::monotonic().saturating_sub(self.start_ns)
    }

    fn run(&mut self, direction: &mut Direction, stop: &AtomicBool) -> Result<(), DeviceError> {
        let (mut arrived, mut shown) = (0, 0);
        let linger = if self.faults.plan().delay < UNHURRIED { LINGER_NS } else { 0 };
        let mut patience = Duration::ZERO;
        while !stop.load(Relaxed) {
            let frames = direction.from.receive(patience)?;
            let taken = !frames.is_empty();
            self.take(frames, direction.longest);
            patience = Duration::ZERO;
            let now = self.now();
            if taken {
                arrived = now;
            }
            let sent = self.send_due(direction, now)?;
            if now > shown + SHOWN_NS {
                shown = now;
                self.publish(direction);
            }
            if taken || sent {
                continue;
            }
            let next = self.queue.next_due().unwrap_or(u64::MAX);
            if next.saturating_sub(now) <= AWAKE_NS || now - arrived < linger {
                std::hint::spin_loop();
                continue;
            }
            let left = Duration::from_nanos(next.saturating_sub(now) - AWAKE_NS);
            patience = left.min(IDLE);
        }
        Ok(direction.to.drain()?)
    }

    /// Takes what stands in the ring, up to a few.
    fn take(&mut self, frames: &[Frame<'_>], longest: usize) {
        if frames.is_empty() {
            return;
        }
        // Compared for each look: what one of them is set by meanwhile is not taken for a frame's age.
        let here = clocks::monotonic();
        let wall = realtime(here, ahead(Clock::Realtime, Clock::Monotonic));
        let mut whole = std::mem::take(&mut self.whole);
        for received in frames {
            let came = arrival(received.stamp.ns, (here, wall)).unwrap_or_else(clocks::monotonic);
            // They come in the order of their times, and however well clocks are compared, no frame passes another.
            let at = came.saturating_sub(self.start_ns).max(self.did.last_ns.unwrap_or(0));
            let before = self.did.frames;
            let made = wholes::frames(received, &mut whole, |frame| self.arrive(frame, at, longest));
            if let Err(Unfit::Cut | Unfit::Unknown) = made
                && self.did.frames == before
            {
                self.did.frames += 1;
                self.did.bytes += received.length as u64;
                self.did.unfit += 1;
            }
        }
        self.whole = whole;
    }

    fn arrive(&mut self, frame: &[u8], at: u64, longest: usize) {
        let did = &mut self.did;
        did.frames += 1;
        did.bytes += frame.len() as u64;
        did.first_ns.get_or_insert(at);
        did.last_ns = Some(at);
        match self.faults.decide(at) {
            Fate::Lost(Why::Loss) => did.lost += 1,
            Fate::Lost(Why::Flap) => did.flapped += 1,
            Fate::Passed(passed) => {
                let tag = if frame.get(12..14) == Some(&[0x81, 0x00][..]) { TAG } else { 0 };
                if frame.len() > longest + tag {
                    did.too_long += 1;
                } else {
                    self.admit(frame, &passed);
                }
            }
        }
    }

    /// Lets a frame and its copies wait, as far as there is room.
    fn admit(&mut self, frame: &[u8], passed: &Passed) {
        let Some(mut bytes) = self.copy_of(frame) else { return };
        self.did.frozen += u64::from(passed.frozen);
        self.did.reordered += u64::from(passed.reordered);
        if let Some(random) = passed.flip {
            let mend = self.faults.plan().mend;
            self.did.corrupted += u64::from(corrupt::flip(&mut bytes, random, mend));
        }
        let mut more = Vec::new();
        for (count, kind) in [(passed.copies, Kind::Copy), (passed.back, Kind::Return)] {
            for _ in 0..count {
                match self.copy_of(&bytes) {
                    Some(bytes) => more.push(Waiting { bytes, kind }),
                    None => self.did.full_copies += 1,
                }
            }
        }
        let itself = Waiting { bytes, kind: Kind::Itself };
        if passed.behind == 0 {
            self.queue.push(passed.due_ns, itself);
            more.into_iter().for_each(|copy| self.queue.push_copy(passed.due_ns, copy));
        } else {
            let held = std::iter::once(itself).chain(more);
            held.for_each(|frame| self.queue.hold(passed.due_ns, passed.behind, frame));
        }
    }

    /// A copy, if there is room for it.
    fn copy_of(&mut self, frame: &[u8]) -> Option<Vec<u8>> {
        if self.waiting_bytes + frame.len() as u64 > self.buffer {
            self.did.full += 1;
            return None;
        }
        self.waiting_bytes += frame.len() as u64;
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(frame);
        Some(bytes)
    }

    /// Sends what is due; true if anything was.
    fn send_due(&mut self, direction: &mut Direction, now: u64) -> Result<bool, DeviceError> {
        let mut waiting = 0;
        let mut dues = [0u64; port::packet::BATCH];
        let mut any = false;
        while waiting < dues.len() {
            let Some((due, frame)) = self.queue.pop(now) else { break };
            any = true;
            self.waiting_bytes = self.waiting_bytes.saturating_sub(frame.bytes.len() as u64);
            match (frame.kind, &mut direction.back) {
                (Kind::Return, Some(back)) => {
                    put(back, 0, &frame.bytes);
                    back.send(1, &[])?;
                }
                (Kind::Return, None) => {}
                (kind, _) => {
                    self.copies_handed += u64::from(kind == Kind::Copy);
                    put(&mut direction.to, waiting, &frame.bytes);
                    dues[waiting] = due;
                    waiting += 1;
                }
            }
            if self.spare.len() < SPARE {
                self.spare.push(frame.bytes);
            }
        }
        if waiting > 0 {
            let leaving = self.now();
            for due in &dues[..waiting] {
                self.lateness.record(leaving.saturating_sub(*due));
            }
            direction.to.send(waiting, &[])?;
        }
        Ok(any)
    }

    fn publish(&mut self, direction: &mut Direction) {
        let sent = direction.to.counters();
        let did = &mut self.did;
        (did.forwarded, did.forwarded_bytes, did.refused) = (sent.frames, sent.bytes, sent.failed);
        did.copies = self.copies_handed;
        did.returned = direction.back.as_ref().map_or(0, |back| back.counters().frames);
        did.inside = self.queue.len() as u64;
        did.missed = direction.from.counters().dropped;
        *direction.counts.lock().unwrap_or_else(PoisonError::into_inner) = *did;
    }
}

/// When a frame arrived, by CLOCK_MONOTONIC, which was `here` when CLOCK_REALTIME was `wall`. `None`: just now, as far as is
/// known, because it came after the clocks were read, or somebody set the clock back in between, or far ahead. (Less than a second
/// ahead cannot be known: such frames leave as much earlier.)
fn arrival(stamp: u64, (here, wall): (u64, u64)) -> Option<u64> {
    let age = wall.checked_sub(stamp).filter(|&age| age < BELIEVED_NS)?;
    Some(here.saturating_sub(age))
}

fn put(to: &mut Sendmmsg, at: usize, bytes: &[u8]) {
    let buffers = to.buffers();
    let start = at * buffers.stride;
    if let Some(buffer) = buffers.bytes.get_mut(start..start + bytes.len()) {
        buffer.copy_from_slice(bytes);
        buffers.lengths[at] = bytes.len() as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_makes_no_frame_old_or_unborn() {
        const HOUR: u64 = 3_600_000_000_000;
        let (here, wall) = (7 * HOUR, 1_800_000_000_000_000_000);
        assert_eq!(arrival(wall - 5_000, (here, wall)), Some(here - 5_000));
        for stepped in [wall + 5_000, wall - HOUR, wall + HOUR, 0] {
            assert_eq!(arrival(stepped, (here, wall)), None, "{stepped}");
        }
    }

    #[test]
    fn no_frame_is_taken_for_older_than_it_is_however_far_the_clocks_readings_are_apart() {
        // Truly 1,000 s ahead; the reader was held up for 3 ms between its readings.
        let (here, truly) = (5_000_000_000, 1_000_000_000_000);
        for off in [-1_500_000, 0, 1_500_000] {
            let wall = realtime(here, Ahead { ns: truly + off, width_ns: 1_500_001 });
            let stamp = here - 10_000_000 + truly as u64;
            let came = arrival(stamp, (here, wall)).expect("of the past");
            assert!((here - 10_000_000..here).contains(&came), "{off}: {came}");
        }
    }
}
