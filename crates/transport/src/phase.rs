//! What all data phases take and yield: until when, how far they are, what they came to.

use crate::crowd::calls::Opened;
use crate::sys;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use histogram::Histogram;

/// A phase that waits looks at its [`Stop`] so often.
pub const LOOK: Duration = Duration::from_millis(50);

/// Ends phases. Clones end together.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Not set yet.
    pub fn new() -> Stop {
        Stop::default()
    }

    /// From now on phases end.
    pub fn set(&self) {
        self.0.store(true, Relaxed);
    }

    /// Is it set?
    pub fn is_set(&self) -> bool {
        self.0.load(Relaxed)
    }
}

impl From<Arc<AtomicBool>> for Stop {
    fn from(flag: Arc<AtomicBool>) -> Stop {
        Stop(flag)
    }
}

/// How far a phase is. The phase writes, others read.
#[derive(Debug, Default)]
pub struct Progress {
    /// Bytes of payload, sent or received.
    pub bytes: AtomicU64,
    /// Calls of a stream, datagrams, or transactions.
    pub count: AtomicU64,
    /// Datagrams, or datagram transactions, that did not arrive.
    pub lost: AtomicU64,
    /// Datagrams that arrived after one that was sent later.
    pub reordered: AtomicU64,
    /// Datagrams that arrived again.
    pub duplicates: AtomicU64,
    /// Interarrival jitter (RFC 3550, 6.4.1) in ns.
    pub jitter_ns: AtomicU64,
    /// Datagrams that this socket had no room for (SO_RXQ_OVFL), or that the sending host refused (ENOBUFS).
    pub dropped: AtomicU64,
    /// Of these, what does not count: datagrams before or after the time that is measured, by what they say themselves.
    pub outside: Outside,
}

/// What of a stream of datagrams does not count.
#[derive(Debug, Default)]
pub struct Outside {
    /// Bytes of payload.
    pub bytes: AtomicU64,
    /// Datagrams.
    pub count: AtomicU64,
    /// Late ones.
    pub reordered: AtomicU64,
    /// That arrived again.
    pub duplicates: AtomicU64,
    /// Without room in the socket, up to the first that counts; or refused by the sending host.
    pub dropped: AtomicU64,
}

impl Progress {
    /// Nothing yet.
    pub fn new() -> Progress {
        Progress::default()
    }

    pub(crate) fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Relaxed);
        self.count.fetch_add(1, Relaxed);
    }

    /// Bytes so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Calls, datagrams or transactions so far.
    pub fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }
}

/// How long transactions took, in ns. Those who ask record, others look.
#[derive(Debug, Default)]
pub struct Latency(Mutex<Option<Histogram>>);

impl Latency {
    /// Nothing yet.
    pub fn new() -> Latency {
        Latency::default()
    }

    /// Counts one.
    pub fn record(&self, took: Duration) {
        let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        // Flows that time nothing take no memory for it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default().record(ns);
    }

    /// All so far.
    pub fn so_far(&self) -> Histogram {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or_default()
    }

    /// Adds all so far to `all`.
    pub fn add_to(&self, all: &mut Histogram) {
        if let Some(so_far) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            all.merge(so_far);
        }
    }

    /// All so far; it begins anew.
    pub fn take(&self) -> Histogram {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default()
    }
}

/// Until when a phase goes on: whichever is first.
#[derive(Debug, Clone)]
pub struct Until {
    /// Until then.
    pub deadline: Option<Instant>,
    /// Until so many bytes (streams, datagrams).
    pub bytes: Option<u64>,
    /// Until so many datagrams or transactions.
    pub count: Option<u64>,
    /// Until somebody says so.
    pub stop: Stop,
}

impl Until {
    /// Until somebody says so.
    pub fn stopped(stop: &Stop) -> Until {
        Until { deadline: None, bytes: None, count: None, stop: stop.clone() }
    }

    /// For so long from now on, or until somebody says so.
    pub fn lasting(duration: Duration, stop: &Stop) -> Until {
        Until { deadline: Instant::now().checked_add(duration), ..Until::stopped(stop) }
    }

    /// Its time is over so much later.
    pub(crate) fn later(&self, by: Duration) -> Until {
        Until { deadline: self.deadline.and_then(|deadline| deadline.checked_add(by)), ..self.clone() }
    }

    /// Is it over at `now`?
    pub(crate) fn over(&self, now: Instant) -> Option<End> {
        if self.stop.is_set() {
            return Some(End::Stopped);
        }
        self.deadline.is_some_and(|deadline| now >= deadline).then_some(End::Time)
    }

    /// How many of at most `most` bytes are still to go.
    pub(crate) fn room(&self, done: u64, most: usize) -> usize {
        match self.bytes {
            Some(bytes) => usize::try_from(bytes.saturating_sub(done)).map_or(most, |left| left.min(most)),
            None => most,
        }
    }

    pub(crate) fn counted(&self, count: u64) -> bool {
        self.count.is_some_and(|most| count >= most)
    }
}

/// Why a phase ended.
#[derive(Debug)]
pub enum End {
    /// Its time was over.
    Time,
    /// All bytes, datagrams or transactions are done.
    Amount,
    /// Somebody said so.
    Stopped,
    /// The peer closed the connection.
    Closed,
    /// The connection broke, or a call failed.
    Failed(io::Error),
}

impl End {
    /// The error, if that was why.
    pub fn error(&self) -> Option<&io::Error> {
        match self {
            End::Failed(error) => Some(error),
            _ => None,
        }
    }
}

/// What a phase came to. Counts are its own, whatever its [`Progress`] counted before.
#[derive(Debug)]
pub struct Done {
    /// Bytes of payload.
    pub bytes: u64,
    /// Calls of a stream, datagrams, transactions.
    pub count: u64,
    /// When it began.
    pub began: Instant,
    /// When the first bytes had been sent or had arrived. None without any.
    pub first: Option<Instant>,
    /// Of a receiver of a stream: bytes that were there by then. When they came nobody knows.
    pub by_first: u64,
    /// When the last bytes had been sent or had arrived.
    pub last: Option<Instant>,
    /// When it ended.
    pub ended: Instant,
    /// Why.
    pub end: End,
    /// Of zerocopy sends, those that the kernel copied after all, and all (completions, each of one call).
    pub zerocopy: Option<Zerocopy>,
    /// Due by the schedule, and not sent.
    pub unsent: u64,
    /// By how much the schedule was moved in all, because the sender was too late to catch up: so much of it was left out.
    pub moved: Duration,
    /// How far the sender was behind its schedule at most.
    pub late: Duration,
    /// Of connections that were to be opened.
    pub opened: Option<Opened>,
    /// Connections that are open still: as long as this is.
    pub held: Vec<OwnedFd>,
}

/// What became of sends with MSG_ZEROCOPY.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Zerocopy {
    /// Calls whose completion was read.
    pub completed: u64,
    /// Of these, the kernel copied the data after all.
    pub copied: u64,
    /// Calls without a completion when the phase ended.
    pub outstanding: u64,
}

impl Done {
    pub(crate) fn new() -> Done {
        let now = Instant::now();
        Done {
            bytes: 0,
            count: 0,
            began: now,
            first: None,
            by_first: 0,
            last: None,
            ended: now,
            end: End::Stopped,
            zerocopy: None,
            unsent: 0,
            moved: Duration::ZERO,
            late: Duration::ZERO,
            opened: None,
            held: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, bytes: usize, now: Instant) {
        self.bytes += bytes as u64;
        self.count += 1;
        self.first.get_or_insert(now);
        self.last = Some(now);
    }

    pub(crate) fn end(mut self, end: End) -> Done {
        self.ended = Instant::now();
        self.end = end;
        self
    }

    /// From its beginning until the last bytes.
    pub fn active(&self) -> Duration {
        self.last.map_or(Duration::ZERO, |last| last.saturating_duration_since(self.began))
    }
}

/// What waits on `socket` looks up every [`LOOK`].
pub(crate) fn look_up_often(socket: &impl AsFd) -> io::Result<()> {
    sys::set_timeout(socket, libc::SO_RCVTIMEO, LOOK)?;
    sys::set_timeout(socket, libc::SO_SNDTIMEO, LOOK)
}

/// What is received from `socket` is what is there: nothing is waited for.
pub(crate) fn hasty(socket: &impl AsFd) -> io::Result<()> {
    // Not by O_NONBLOCK, which whoever sends through the socket would have as well. Less than a tick is a tick.
    sys::set_timeout(socket, libc::SO_RCVTIMEO, Duration::from_millis(1))
}

/// A call that found nothing to do for now, or was interrupted.
pub(crate) fn is_again(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted | io::ErrorKind::TimedOut)
}
