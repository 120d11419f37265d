//! One direction of a bridge in user space.

use crate::filter::Filter;
use crate::wholes::{self, Unfit};
use edit::rewrite::{Frame, Plan, Side, Verdict, edit};
use port::packet::{BATCH, Sendmmsg, Target};
use port::rx::{Frame as Arrived, Rx, RxError, Slots};
use port::tx::{Tx, TxError};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use wire::LinkType;

/// An idle direction looks so often whether it is to end.
const IDLE: Duration = Duration::from_millis(50);

/// Ethernet header, and a tag, which the kernel lets pass above the MTU.
const HEADER: usize = 14;
const TAG: usize = 4;

/// What became of the frames that arrived in one direction. Bytes are layer 2 without FCS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Relayed {
    /// All that arrived and were taken from the ring: the sum of `sent`, `filtered`, `left`, `too_long`, `over_limit`,
    /// `refused` and `unfit`.
    pub frames: u64,
    /// Bytes of those, layer 2 without FCS.
    pub bytes: u64,
    /// Accepted by the other interface.
    pub sent: u64,
    /// Bytes of those.
    pub sent_bytes: u64,
    /// Among the sent: headers that an edit could not be made in.
    pub unedited: u64,
    /// Not chosen.
    pub filtered: u64,
    /// Left out by the edits.
    pub left: u64,
    /// Longer than the other interface's MTU allows.
    pub too_long: u64,
    /// Came after the last frame that was asked for.
    pub over_limit: u64,
    /// The other interface would not have them.
    pub refused: u64,
    /// Super-frames that could not be had whole, or cannot be cut.
    pub unfit: u64,
    /// Found the ring full; not among `frames`.
    pub missed: u64,
    /// When the first and the last frame was taken, in nanoseconds since the start.
    pub first_ns: Option<u64>,
    /// See `first_ns`.
    pub last_ns: Option<u64>,
}

impl Relayed {
    /// From the first to the last arrival; 0 with fewer than two frames.
    pub fn duration_ns(&self) -> u64 {
        match (self.first_ns, self.last_ns) {
            (Some(first), Some(last)) => last.saturating_sub(first),
            _ => 0,
        }
    }
}

/// How many frames the directions of a bridge may send together, and their common numbering.
#[derive(Debug, Default)]
pub struct Budget {
    limit: Option<u64>,
    taken: AtomicU64,
    numbered: AtomicU64,
}

impl Budget {
    /// `None`: without end.
    pub fn new(limit: Option<u64>) -> Budget {
        Budget { limit, ..Budget::default() }
    }

    /// Takes one, if one is left.
    fn take(&self) -> bool {
        self.limit.is_none_or(|limit| self.taken.fetch_add(1, Relaxed) < limit)
    }

    /// The next frame's number, from 1.
    fn number(&self) -> u64 {
        self.numbered.fetch_add(1, Relaxed) + 1
    }
}

/// What one direction does.
#[derive(Debug, Clone)]
pub struct Job {
    /// Which frames are taken; `None`: all.
    pub filter: Option<Filter>,
    /// What is done to them; `None`: nothing.
    pub plan: Option<Plan>,
    /// Which side's frames these are.
    pub side: Side,
    /// Shared with the other direction.
    pub budget: Arc<Budget>,
    /// Ends it.
    pub stop: Arc<AtomicBool>,
}

/// Why a direction ended before it was told to.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    /// Nothing comes in.
    #[error(transparent)]
    Receive(#[from] RxError),
    /// Nothing goes out.
    #[error(transparent)]
    Send(#[from] TxError),
}

/// The sockets of one direction, and its counts.
#[derive(Debug)]
pub struct Relay {
    from: Slots,
    to: Sendmmsg,
    longest: usize,
    counts: Arc<Mutex<Relayed>>,
}

impl Relay {
    /// Opens both ends, in their network namespace. Frames are received from now on.
    ///
    /// # Errors
    /// That an end cannot be received from or sent to, and which.
    pub fn open(from: &Target, to: &Target) -> Result<Relay, RelayError> {
        let longest = to.mtu as usize + HEADER;
        Ok(Relay {
            from: Slots::open(from, BATCH)?,
            to: Sendmmsg::open(to, longest + TAG)?,
            longest,
            counts: Arc::default(),
        })
    }

    /// Where the counts can be read while it runs.
    pub fn counts(&self) -> Arc<Mutex<Relayed>> {
        self.counts.clone()
    }
}

/// Takes frames over until told to stop. The counts are complete when it returns.
///
/// # Errors
/// That an end cannot be received from or sent to any more.
pub fn relay(mut relay: Relay, job: &Job) -> Result<(), RelayError> {
    relay.to.bound(job.stop.clone(), None);
    let counts = relay.counts.clone();
    let mut state = State {
        start: Instant::now(),
        waiting: 0,
        here: Relayed::default(),
        longest: relay.longest,
        whole: Vec::new(),
        frame: Frame::default(),
    };
    let ended = state.run(&mut relay, job, &counts);
    state.publish(&mut relay, &counts);
    ended
}

struct State {
    start: Instant,
    /// Frames in the sender's buffers.
    waiting: usize,
    here: Relayed,
    longest: usize,
    whole: Vec<u8>,
    frame: Frame,
}

impl State {
    fn run(&mut self, relay: &mut Relay, job: &Job, counts: &Mutex<Relayed>) -> Result<(), RelayError> {
        let mut patience = Duration::ZERO;
        while !job.stop.load(Relaxed) {
            let arrived = relay.from.receive(patience)?;
            for frame in arrived {
                self.take(frame, &mut relay.to, job)?;
            }
            let idle = arrived.is_empty();
            self.flush(&mut relay.to)?;
            if !idle {
                let now = self.start.elapsed().as_nanos() as u64;
                self.here.first_ns.get_or_insert(now);
                self.here.last_ns = Some(now);
            }
            self.publish(relay, counts);
            // Only what was counted is waited behind.
            patience = if idle { IDLE } else { Duration::ZERO };
        }
        Ok(relay.to.drain()?)
    }

    /// Takes what arrived, which may be several frames.
    fn take(&mut self, arrived: &Arrived<'_>, to: &mut Sendmmsg, job: &Job) -> Result<(), RelayError> {
        let mut failed = None;
        let mut whole = std::mem::take(&mut self.whole);
        let before = self.here.frames;
        let made = wholes::frames(arrived, &mut whole, |frame| {
            if failed.is_none() {
                failed = self.one(frame, to, job).err();
            }
        });
        if let Err(Unfit::Cut | Unfit::Unknown) = made
            && self.here.frames == before
        {
            self.here.frames += 1;
            self.here.bytes += arrived.length as u64;
            self.here.unfit += 1;
        }
        self.whole = whole;
        failed.map_or(Ok(()), Err)
    }

    /// One frame, as it was on the wire.
    fn one(&mut self, bytes: &[u8], to: &mut Sendmmsg, job: &Job) -> Result<(), RelayError> {
        self.here.frames += 1;
        self.here.bytes += bytes.len() as u64;
        if let Some(filter) = &job.filter
            && !filter.takes(job.budget.number(), bytes)
        {
            self.here.filtered += 1;
            return Ok(());
        }
        let mut frame = std::mem::take(&mut self.frame);
        let mut unedited = false;
        let bytes = match &job.plan {
            None => bytes,
            Some(plan) => {
                frame.data.clear();
                frame.data.extend_from_slice(bytes);
                frame.wire_len = bytes.len() as u32;
                let link = LinkType::ETHERNET;
                match edit(&mut frame, plan, link, link, job.side) {
                    Verdict::Edited => {}
                    Verdict::Unsupported => unedited = true,
                    Verdict::Left => frame.data.clear(),
                }
                &frame.data
            }
        };
        let done = self.put(bytes, unedited, to, job);
        self.frame = frame;
        done
    }

    fn put(&mut self, bytes: &[u8], unedited: bool, to: &mut Sendmmsg, job: &Job) -> Result<(), RelayError> {
        let tag = if bytes.get(12..14) == Some(&[0x81, 0x00][..]) { TAG } else { 0 };
        if bytes.is_empty() {
            self.here.left += 1;
        } else if bytes.len() > self.longest + tag {
            self.here.too_long += 1;
        } else if !job.budget.take() {
            self.here.over_limit += 1;
        } else {
            let buffers = to.buffers();
            let at = self.waiting * buffers.stride;
            if let Some(buffer) = buffers.bytes.get_mut(at..at + bytes.len()) {
                buffer.copy_from_slice(bytes);
                buffers.lengths[self.waiting] = bytes.len() as u32;
            }
            self.waiting += 1;
            self.here.unedited += u64::from(unedited);
            if self.waiting == to.batch() {
                self.flush(to)?;
            }
        }
        Ok(())
    }

    fn flush(&mut self, to: &mut Sendmmsg) -> Result<(), RelayError> {
        let waiting = std::mem::take(&mut self.waiting);
        if waiting > 0 {
            to.send(waiting, &[])?;
        }
        Ok(())
    }

    fn publish(&mut self, relay: &mut Relay, counts: &Mutex<Relayed>) {
        let sent = relay.to.counters();
        self.here.sent = sent.frames;
        self.here.sent_bytes = sent.bytes;
        self.here.refused = sent.failed;
        self.here.missed = relay.from.counters().dropped;
        *counts.lock().unwrap_or_else(PoisonError::into_inner) = self.here;
    }
}
