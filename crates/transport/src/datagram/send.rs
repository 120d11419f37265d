//! The sending end.

use super::{Header, MOST, Window};
use crate::pace::{Pacer, Rate};
use crate::phase::{self, Done, End, Progress, Until};
use crate::stream::content;
use crate::sys::{self, Batch};
use rustix::net::SendFlags;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// How datagrams are sent.
#[derive(Debug, Clone)]
pub struct Sending {
    /// Bytes of a datagram's payload. A shorter one than the header is made as long.
    pub size: usize,
    /// Datagrams that are handed to the kernel at once (sendmmsg, or one call with GSO), at most.
    pub batch: usize,
    /// One buffer is cut into datagrams by the kernel or the device (UDP_SEGMENT).
    pub gso: bool,
    /// Datagrams are sent on this schedule ([`Rate::of_bits`], [`Rate::per_second`]). None: as fast as they go.
    pub rate: Option<Rate>,
    /// Who is later than this on the schedule does not catch up beyond it.
    pub bound: Duration,
    /// Waits awake for the last 100 us before one is due.
    pub spin: bool,
    /// The number of the first.
    pub first: u64,
    /// Those that count, by the time that is written into them; the others are [`Progress::outside`].
    pub window: Window,
}

impl Sending {
    /// Of `size` bytes, as fast as they go, one each call.
    pub fn new(size: usize) -> Sending {
        let bound = Duration::from_millis(10);
        let window = Window::default();
        Sending { size, batch: 1, gso: false, rate: None, bound, spin: false, first: 0, window }
    }
}

/// Datagrams that the kernel cuts out of one buffer, at most: UDP_MAX_SEGMENTS of the oldest kernels that can.
const SEGMENTS: usize = 64;
/// Datagrams in one sendmmsg, at most.
const MESSAGES: usize = 256;

enum Way {
    /// One buffer with `count` datagrams.
    Gso {
        bytes: Vec<u8>,
        most: usize,
    },
    Many(Batch, usize),
    One(Vec<u8>),
}

/// Sends over a connected socket until it is over.
pub fn send(
    socket: &impl AsFd,
    sending: &Sending,
    header: &impl Header,
    until: &Until,
    progress: &Progress,
) -> Done {
    let done = Done::new();
    let size = sending.size.clamp(length(header).max(1), MOST);
    match begin(socket, sending, size) {
        Ok(way) => run(socket, way, (sending, size), header, until, progress, done),
        Err(error) => done.end(End::Failed(error)),
    }
}

fn length<H: Header>(_: &H) -> usize {
    H::LENGTH
}

fn begin(socket: &impl AsFd, sending: &Sending, size: usize) -> io::Result<Way> {
    phase::look_up_often(socket)?;
    if sending.gso {
        let most = sending.batch.clamp(1, SEGMENTS).min(MOST / size).max(1);
        sys::set_int(socket, libc::SOL_UDP, sys::UDP_SEGMENT, i32::try_from(size).unwrap_or(i32::MAX))
            .map_err(|error| {
                io::Error::new(error.kind(), format!("UDP_SEGMENT {size}: {error}; send without GSO"))
            })?;
        return Ok(Way::Gso { bytes: content(size * most), most });
    }
    let most = sending.batch.clamp(1, MESSAGES);
    if most == 1 {
        return Ok(Way::One(content(size)));
    }
    let mut batch = Batch::new(most, size);
    for at in 0..most {
        batch.buffer(at).copy_from_slice(&content(size));
    }
    Ok(Way::Many(batch, most))
}

fn run(
    socket: &impl AsFd,
    mut way: Way,
    (sending, size): (&Sending, usize),
    header: &impl Header,
    until: &Until,
    progress: &Progress,
    mut done: Done,
) -> Done {
    let mut pacer = sending.rate.map(|rate| Pacer::new(rate, done.began, sending.bound, sending.spin));
    let mut number = sending.first;
    let start = done.began;
    let end = loop {
        let now = Instant::now();
        if let Some(end) = until.over(now) {
            break end;
        }
        let mut most = way.most() as u64;
        if let Some(count) = until.count {
            most = most.min(count.saturating_sub(done.count));
        }
        if let Some(bytes) = until.bytes {
            most = most.min(bytes.saturating_sub(done.bytes).div_ceil(size as u64));
        }
        if most == 0 {
            break End::Amount;
        }
        if let Some(pacer) = &mut pacer {
            most = pacer.ready(now, most);
            if most == 0 {
                let left =
                    until.deadline.map_or(phase::LOOK, |deadline| deadline.saturating_duration_since(now));
                pacer.wait(left.min(phase::LOOK));
                continue;
            }
        }
        match way.send(socket, most as usize, size, |bytes, at| header.write(bytes, number + at, now - start))
        {
            Ok(count) => {
                let bytes = count * size as u64;
                number += count;
                done.bytes += bytes;
                done.count += count;
                if sending.window.holds(now - start) {
                    done.first.get_or_insert(now);
                } else {
                    progress.outside.bytes.fetch_add(bytes, Relaxed);
                    progress.outside.count.fetch_add(count, Relaxed);
                }
                progress.bytes.fetch_add(bytes, Relaxed);
                progress.count.fetch_add(count, Relaxed);
                if let Some(pacer) = &mut pacer {
                    pacer.sent(count);
                }
            }
            Err(error) if phase::is_again(&error) => {}
            // The interface's queue is full: the datagrams are gone, and were not sent.
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                progress.dropped.fetch_add(most, Relaxed);
                if !sending.window.holds(now - start) {
                    progress.outside.dropped.fetch_add(most, Relaxed);
                }
                std::thread::yield_now();
            }
            Err(error) => break End::Failed(error),
        }
    };
    if done.count > 0 {
        // What was sent after its time is not of it.
        let over = sending.window.to.and_then(|to| start.checked_add(to));
        done.last = Some(over.map_or_else(Instant::now, |over| over.min(Instant::now())));
    }
    (done.moved, done.late) = pacer.map_or_else(Default::default, |pacer| (pacer.moved(), pacer.latest()));
    done.end(end)
}

impl Way {
    fn most(&self) -> usize {
        match self {
            Way::Gso { most, .. } | Way::Many(_, most) => *most,
            Way::One(_) => 1,
        }
    }

    /// Sends up to `count` datagrams, after `write` wrote their headers; how many left.
    fn send(
        &mut self,
        socket: &impl AsFd,
        count: usize,
        size: usize,
        mut write: impl FnMut(&mut [u8], u64),
    ) -> io::Result<u64> {
        match self {
            Way::One(bytes) => {
                write(bytes, 0);
                rustix::net::send(socket, bytes, SendFlags::NOSIGNAL)?;
                Ok(1)
            }
            Way::Gso { bytes, most } => {
                let count = count.min(*most);
                for (piece, at) in bytes.chunks_exact_mut(size).zip(0..count as u64) {
                    write(piece, at);
                }
                rustix::net::send(
                    socket,
                    bytes.get(..count * size).unwrap_or_default(),
                    SendFlags::NOSIGNAL,
                )?;
                Ok(count as u64)
            }
            Way::Many(batch, most) => {
                let count = count.min(*most);
                for at in 0..count {
                    write(batch.buffer(at), at as u64);
                }
                Ok(batch.send(socket, count, size)? as u64)
            }
        }
    }
}
