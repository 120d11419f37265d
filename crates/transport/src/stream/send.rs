//! The sending end of a stream.

use super::{MOST, Send, content, pipe};
use crate::pace::{Pacer, Rate};
use crate::phase::{self, Done, End, Progress, Until, Zerocopy};
use crate::sys;
use rustix::fs::MemfdFlags;
use rustix::net::SendFlags;
use rustix::pipe::SpliceFlags;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How a stream is sent.
#[derive(Debug, Clone)]
pub struct Sending {
    /// By which calls.
    pub method: Send,
    /// Bytes of a message: of one call.
    pub size: usize,
    /// Messages are sent on this schedule ([`Rate::of_bits`]). None: as fast as they go.
    pub rate: Option<Rate>,
    /// Who is later than this on the schedule does not catch up beyond it.
    pub bound: Duration,
    /// Waits awake for the last 100 us before a message is due.
    pub spin: bool,
    /// What a message holds, again and again. None: bytes that do not compress.
    pub data: Option<Arc<[u8]>>,
}

impl Sending {
    /// Messages of `size` bytes by `method`, as fast as they go.
    pub fn new(method: Send, size: usize) -> Sending {
        Sending { method, size, rate: None, bound: Duration::from_millis(10), spin: false, data: None }
    }
}

/// Completions of zerocopy sends are read after so many calls.
const CALLS: u64 = 32;
/// At the end they are waited for so long.
const SETTLES: Duration = Duration::from_millis(500);
/// linux/socket.h; rustix has no name for it.
const MSG_ZEROCOPY: SendFlags = SendFlags::from_bits_retain(libc::MSG_ZEROCOPY as u32);

/// Sends until it is over. The connection stays open: [`Done::bytes`] are with the kernel, not yet with the peer.
pub fn send(socket: &impl AsFd, sending: &Sending, until: &Until, progress: &Progress) -> Done {
    let done = Done::new();
    match begin(socket, sending) {
        Ok(way) => run(socket, way, sending, until, progress, done),
        Err(error) => done.end(End::Failed(error)),
    }
}

/// What a method needs.
pub(crate) enum Way {
    Write(Vec<u8>),
    Sendfile(OwnedFd),
    /// The message, or as much of it as a pipe holds, stays in `source`; references to its pages go through another pipe.
    Splice {
        source: OwnedFd,
        _filled: OwnedFd,
        from: OwnedFd,
        into: OwnedFd,
        held: usize,
    },
    Zerocopy {
        bytes: Vec<u8>,
        calls: u64,
        seen: Zerocopy,
    },
}

pub(crate) fn begin(socket: &impl AsFd, sending: &Sending) -> io::Result<Way> {
    phase::look_up_often(socket)?;
    let size = sending.size.clamp(1, MOST);
    let bytes = match sending.data.as_deref().filter(|data| !data.is_empty()) {
        Some(data) => data.iter().copied().cycle().take(size).collect(),
        None => content(size),
    };
    Ok(match sending.method {
        Send::Write => Way::Write(bytes),
        Send::Sendfile => Way::Sendfile(file(&bytes)?),
        Send::Splice => {
            let (source, filled, room) = pipe()?;
            let (from, into, _) = pipe()?;
            let (file, mut at, mut left) = (file(&bytes)?, 0_u64, size.min(room));
            while left > 0 {
                let count =
                    rustix::pipe::splice(&file, Some(&mut at), &filled, None, left, SpliceFlags::NONBLOCK)?;
                if count == 0 {
                    return Err(io::ErrorKind::WriteZero.into());
                }
                left -= count.min(left);
            }
            Way::Splice { source, _filled: filled, from, into, held: 0 }
        }
        Send::Zerocopy => {
            permit_zerocopy(socket)?;
            Way::Zerocopy { bytes, calls: 0, seen: Zerocopy::default() }
        }
    })
}

/// Sends with MSG_ZEROCOPY may follow.
pub(crate) fn permit_zerocopy(socket: &impl AsFd) -> io::Result<()> {
    sys::set_int(socket, libc::SOL_SOCKET, libc::SO_ZEROCOPY, 1)
}

/// A file in memory that holds `bytes`.
fn file(bytes: &[u8]) -> io::Result<OwnedFd> {
    let file = rustix::fs::memfd_create("netdyno", MemfdFlags::CLOEXEC)?;
    let mut left = bytes;
    while !left.is_empty() {
        let count = rustix::io::pwrite(&file, left, (bytes.len() - left.len()) as u64)?;
        if count == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        left = left.get(count..).unwrap_or_default();
    }
    Ok(file)
}

fn run(
    socket: &impl AsFd,
    mut way: Way,
    sending: &Sending,
    until: &Until,
    progress: &Progress,
    mut done: Done,
) -> Done {
    let size = sending.size.clamp(1, MOST);
    let mut pacer = sending.rate.map(|rate| Pacer::new(rate, done.began, sending.bound, sending.spin));
    // Bytes of the message that were sent: a call may take less than it is given.
    let mut at = 0;
    let end = loop {
        let now = Instant::now();
        if let Some(end) = until.over(now) {
            break end;
        }
        let most = until.room(done.bytes, size - at);
        if most == 0 || (at == 0 && until.counted(done.count)) {
            break End::Amount;
        }
        if let Some(pacer) = pacer.as_mut().filter(|_| at == 0)
            && pacer.ready(now, 1) == 0
        {
            let left = until.deadline.map_or(phase::LOOK, |deadline| deadline.saturating_duration_since(now));
            pacer.wait(left.min(phase::LOOK));
            continue;
        }
        match way.send(socket, at, most) {
            Ok(0) => break End::Failed(io::ErrorKind::WriteZero.into()),
            Ok(count) => {
                at += count;
                done.bytes += count as u64;
                progress.bytes.fetch_add(count as u64, std::sync::atomic::Ordering::Relaxed);
                if at == size || until.room(done.bytes, size) == 0 {
                    at = 0;
                    done.add(0, now);
                    progress.add(0);
                    if let Some(pacer) = &mut pacer {
                        pacer.sent(1);
                    }
                }
            }
            Err(error) if phase::is_again(&error) => {}
            Err(error) => break ended(error),
        }
    };
    if done.bytes > 0 {
        done.last = Some(Instant::now());
    }
    (done.moved, done.late) = pacer.map_or_else(Default::default, |pacer| (pacer.moved(), pacer.latest()));
    done = done.end(end);
    done.zerocopy = way.settle(socket);
    done
}

/// A peer that reads no more is no failure of this end.
pub(crate) fn ended(error: io::Error) -> End {
    match error.kind() {
        io::ErrorKind::BrokenPipe => End::Closed,
        _ => End::Failed(error),
    }
}

impl Way {
    /// Sends up to `most` bytes of the message from `at` on.
    pub(crate) fn send(&mut self, socket: &impl AsFd, at: usize, most: usize) -> io::Result<usize> {
        match self {
            Way::Write(bytes) => Ok(rustix::net::send(socket, part(bytes, at, most), SendFlags::NOSIGNAL)?),
            Way::Sendfile(file) => Ok(rustix::fs::sendfile(socket, file, Some(&mut (at as u64)), most)?),
            Way::Splice { source, from, into, held, .. } => {
                if *held == 0 {
                    // References to pages are copied, and no page is looked up again (measured: 49 Gbit/s out of a memfd each time).
                    *held = rustix::pipe::tee(&*source, &*into, most, SpliceFlags::empty())?;
                }
                let count =
                    rustix::pipe::splice(&*from, None, socket, None, (*held).min(most), SpliceFlags::MOVE)?;
                *held -= count.min(*held);
                Ok(count)
            }
            Way::Zerocopy { bytes, calls, seen } => {
                if calls.is_multiple_of(CALLS) {
                    gather(socket, seen)?;
                }
                match rustix::net::send(socket, part(bytes, at, most), SendFlags::NOSIGNAL | MSG_ZEROCOPY) {
                    Ok(count) => {
                        *calls += 1;
                        Ok(count)
                    }
                    // No memory for further completions (net.core.optmem_max): they are read first.
                    Err(rustix::io::Errno::NOBUFS) => {
                        if gather(socket, seen)? == 0 {
                            std::thread::sleep(Duration::from_micros(100));
                        }
                        Err(io::ErrorKind::WouldBlock.into())
                    }
                    Err(error) => Err(error.into()),
                }
            }
        }
    }

    /// Reads the completions that are there.
    pub(crate) fn gather(&mut self, socket: &impl AsFd) -> io::Result<()> {
        if let Way::Zerocopy { seen, .. } = self {
            gather(socket, seen)?;
        }
        Ok(())
    }

    /// Waits a moment for what is not completed.
    fn settle(self, socket: &impl AsFd) -> Option<Zerocopy> {
        self.settle_all(std::slice::from_ref(socket))
    }

    /// The same of several sockets that it sent over.
    pub(crate) fn settle_all(self, sockets: &[impl AsFd]) -> Option<Zerocopy> {
        let Way::Zerocopy { calls, mut seen, .. } = self else { return None };
        let began = Instant::now();
        while seen.completed < calls && began.elapsed() < SETTLES {
            let read: io::Result<u64> = sockets.iter().map(|socket| gather(socket, &mut seen)).sum();
            match read {
                Ok(0) => std::thread::sleep(Duration::from_millis(1)),
                Ok(_) => {}
                Err(_) => break,
            }
        }
        seen.outstanding = calls.saturating_sub(seen.completed);
        Some(seen)
    }
}

/// Reads all completions that are there; how many messages of them.
fn gather(socket: &impl AsFd, seen: &mut Zerocopy) -> io::Result<u64> {
    let mut messages = 0;
    while let Some(found) = sys::completions(socket)? {
        messages += 1;
        seen.completed += found.calls;
        seen.copied += found.copied;
    }
    Ok(messages)
}

fn part(bytes: &[u8], at: usize, most: usize) -> &[u8] {
    bytes.get(at..).map_or(&[], |rest| rest.get(..most).unwrap_or(rest))
}
