//! The receiving end.

use super::window::Transit;
use super::{Arrival, Header, MOST, Sequence, Window};
use crate::phase::{self, Done, End, Progress, Until};
use crate::sys::{self, Batch};
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// How datagrams are received.
#[derive(Debug, Clone)]
pub struct Receiving {
    /// Bytes of the longest that is expected. Of a longer one only so many count.
    pub size: usize,
    /// Datagrams that are taken from the kernel at once (recvmmsg), at most.
    pub batch: usize,
    /// The kernel may hand over several as one (UDP_GRO).
    pub gro: bool,
    /// Those that count, by the time that their sender wrote into them; the others are [`Progress::outside`].
    pub window: Window,
    /// When the time that counts is over at this end, once that is known: what was sent later is the sender's affair, and does not count,
    /// however soon it arrives. The sender's time is compared by the least transit.
    pub ends: Option<Arc<OnceLock<Instant>>>,
}

impl Receiving {
    /// Of at most `size` bytes, one each call.
    pub fn new(size: usize) -> Receiving {
        Receiving { size, batch: 1, gro: false, window: Window::default(), ends: None }
    }
}

/// Datagrams in one recvmmsg, at most.
const MESSAGES: usize = 256;
/// Bytes of buffers, at most.
const BUFFERS: usize = 4 << 20;
/// How long what has arrived may take when a phase is stopped, at most.
const REST: Duration = Duration::from_millis(100);

/// Receives over a socket until it is over. Datagrams that `header` does not know are others', and are not counted; with
/// [`super::Bare`] all count. `sequence` follows their numbers.
pub fn receive<H: Header>(
    socket: &impl AsFd,
    receiving: &Receiving,
    header: &H,
    until: &Until,
    progress: &Progress,
    sequence: &mut Sequence,
) -> Done {
    let mut done = Done::new();
    let mut batch = match begin(socket, receiving) {
        Ok(batch) => batch,
        Err(error) => return done.end(End::Failed(error)),
    };
    let start = done.began;
    let mut drops = Drops::default();
    let mut rest = None;
    let mut transit = Transit::default();
    let mut counts_yet = receiving.window.from.is_zero();
    let end = loop {
        let now = Instant::now();
        match (until.over(now), rest) {
            (None, _) => {}
            // What had arrived by then did arrive, however late this thread is.
            (Some(End::Stopped), None) if phase::hasty(socket).is_ok() => rest = Some(now + REST),
            (Some(End::Stopped), Some(until)) if now < until => {}
            (Some(end), _) => break end,
        }
        if until.counted(done.count) || until.bytes.is_some_and(|bytes| done.bytes >= bytes) {
            break End::Amount;
        }
        let got = match batch.receive(socket) {
            Ok(got) => got,
            Err(error) if phase::is_again(&error) => match rest {
                Some(_) => break End::Stopped,
                None => continue,
            },
            Err(error) => break End::Failed(error),
        };
        let now = Instant::now();
        let over = receiving.ends.as_ref().and_then(|ends| ends.get()).map(|ends| since(start, *ends));
        if over.is_some() {
            drops.end(socket, progress);
        }
        let (mut bytes, mut count, mut dropped) = (0, 0, None);
        let mut outside = Outside::default();
        for at in 0..got {
            let beside = batch.beside(at);
            dropped = beside.dropped.or(dropped);
            let whole = batch.bytes(at, beside.length);
            let segment = beside.segment.filter(|size| *size > 0).unwrap_or(whole.len().max(1));
            for datagram in whole.chunks(segment) {
                if H::LENGTH > 0 {
                    let Some((number, sent)) = header.read(datagram) else { continue };
                    if over.is_some_and(|over| transit.earliest(sent).is_some_and(|at| at > over)) {
                        continue;
                    }
                    if receiving.ends.is_some() {
                        transit.arrived(sent, now - start);
                    }
                    let arrival = sequence.arrived(number, sent, now - start);
                    if !receiving.window.holds(sent) {
                        outside.add(datagram.len(), arrival);
                    } else if !counts_yet {
                        counts_yet = true;
                        // Drops until then may be of what does not count: they are none of the window's.
                        outside.dropped_before = beside.dropped.or(drops.before);
                    }
                }
                bytes += datagram.len() as u64;
                count += 1;
            }
        }
        if count > 0 {
            done.bytes += bytes;
            done.count += count;
            if count > outside.count {
                done.first.get_or_insert(now);
                done.last = Some(now);
            }
            outside.tell(progress);
            progress.bytes.fetch_add(bytes, Relaxed);
            progress.count.fetch_add(count, Relaxed);
        }
        drops.told(dropped, progress);
        if H::LENGTH > 0 {
            let counts = sequence.counts();
            progress.lost.store(counts.lost, Relaxed);
            progress.reordered.store(counts.reordered, Relaxed);
            progress.duplicates.store(counts.duplicates, Relaxed);
            progress.jitter_ns.store(counts.jitter_ns, Relaxed);
        }
    };
    drops.end(socket, progress);
    done.end(end)
}

/// How long after `start`, in ns.
fn since(start: Instant, at: Instant) -> i128 {
    i128::try_from(at.saturating_duration_since(start).as_nanos()).unwrap_or(i128::MAX)
}

/// What the socket had no room for.
#[derive(Default)]
struct Drops {
    /// The kernel's count, in 32 bits from the socket's beginning, as it was told last.
    before: Option<u32>,
    /// What is dropped from now on does not count.
    over: bool,
}

impl Drops {
    /// A datagram says what was dropped before it came.
    fn told(&mut self, dropped: Option<u32>, progress: &Progress) {
        let Some(dropped) = dropped.filter(|_| !self.over) else { return };
        let more = dropped.wrapping_sub(self.before.unwrap_or(0));
        self.before = Some(dropped);
        progress.dropped.fetch_add(more.into(), Relaxed);
    }

    /// What counts is over. Nobody says what was dropped behind the last datagram that found room, which is all of it where the receiver was
    /// held up: so the socket is asked.
    fn end(&mut self, socket: &impl AsFd, progress: &Progress) {
        self.told(crate::socket::drops(socket), progress);
        self.over = true;
    }
}

/// What of a batch does not count.
#[derive(Default)]
struct Outside {
    bytes: u64,
    count: u64,
    reordered: u64,
    duplicates: u64,
    dropped_before: Option<u32>,
}

impl Outside {
    fn add(&mut self, bytes: usize, arrival: Arrival) {
        self.bytes += bytes as u64;
        self.count += 1;
        self.reordered += u64::from(arrival == Arrival::Late);
        self.duplicates += u64::from(arrival == Arrival::Again);
    }

    fn tell(&self, progress: &Progress) {
        let out = &progress.outside;
        out.bytes.fetch_add(self.bytes, Relaxed);
        out.count.fetch_add(self.count, Relaxed);
        out.reordered.fetch_add(self.reordered, Relaxed);
        out.duplicates.fetch_add(self.duplicates, Relaxed);
        if let Some(dropped) = self.dropped_before {
            out.dropped.store(dropped.into(), Relaxed);
        }
    }
}

fn begin(socket: &impl AsFd, receiving: &Receiving) -> io::Result<Batch> {
    phase::look_up_often(socket)?;
    sys::set_int(socket, libc::SOL_SOCKET, sys::SO_RXQ_OVFL, 1)?;
    if receiving.gro {
        sys::set_int(socket, libc::SOL_UDP, sys::UDP_GRO, 1)?;
    }
    // What GRO puts together is up to 64 KiB.
    let size = if receiving.gro { 65_536 } else { receiving.size.clamp(1, MOST) };
    let count = receiving.batch.clamp(1, MESSAGES).min(BUFFERS / size).max(1);
    Ok(Batch::new(count, size))
}
