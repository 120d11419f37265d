//! The receiving end.

use super::{Header, MOST, Sequence};
use crate::phase::{self, Done, End, Progress, Until};
use crate::sys::{self, Batch};
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering::Relaxed;
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
}

impl Receiving {
    /// Of at most `size` bytes, one each call.
    pub fn new(size: usize) -> Receiving {
        Receiving { size, batch: 1, gro: false }
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
    let mut dropped_before = None;
    let mut rest = None;
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
        let (mut bytes, mut count, mut dropped) = (0, 0, None);
        for at in 0..got {
            let beside = batch.beside(at);
            dropped = beside.dropped.or(dropped);
            let whole = batch.bytes(at, beside.length);
            let segment = beside.segment.filter(|size| *size > 0).unwrap_or(whole.len().max(1));
            for datagram in whole.chunks(segment) {
                if H::LENGTH > 0 {
                    let Some((number, sent)) = header.read(datagram) else { continue };
                    sequence.arrived(number, sent, now - start);
                }
                bytes += datagram.len() as u64;
                count += 1;
            }
        }
        if count > 0 {
            done.bytes += bytes;
            done.count += count;
            done.first.get_or_insert(now);
            done.last = Some(now);
            progress.bytes.fetch_add(bytes, Relaxed);
            progress.count.fetch_add(count, Relaxed);
        }
        if let Some(dropped) = dropped {
            // The kernel counts in 32 bits from the socket's beginning.
            let more = dropped.wrapping_sub(dropped_before.unwrap_or(0));
            dropped_before = Some(dropped);
            progress.dropped.fetch_add(u64::from(more), Relaxed);
        }
        if H::LENGTH > 0 {
            let counts = sequence.counts();
            progress.lost.store(counts.lost, Relaxed);
            progress.reordered.store(counts.reordered, Relaxed);
            progress.duplicates.store(counts.duplicates, Relaxed);
            progress.jitter_ns.store(counts.jitter_ns, Relaxed);
        }
    };
    done.end(end)
}

fn begin(socket: &impl AsFd, receiving: &Receiving) -> io::Result<Batch> {
    phase::heedful(socket)?;
    sys::set_int(socket, libc::SOL_SOCKET, sys::SO_RXQ_OVFL, 1)?;
    if receiving.gro {
        sys::set_int(socket, libc::SOL_UDP, sys::UDP_GRO, 1)?;
    }
    // What GRO puts together is up to 64 KiB.
    let size = if receiving.gro { 65_536 } else { receiving.size.clamp(1, MOST) };
    let count = receiving.batch.clamp(1, MESSAGES).min(BUFFERS / size).max(1);
    Ok(Batch::new(count, size))
}
