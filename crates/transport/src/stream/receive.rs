//! The receiving end of a stream.

use super::{MOST, Receive, pipe};
use crate::pace::{Pacer, Rate};
use crate::phase::{self, Done, End, Progress, Until};
use crate::sys;
use rustix::fs::{Mode, OFlags};
use rustix::net::RecvFlags;
use rustix::pipe::SpliceFlags;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

/// How a stream is received.
#[derive(Debug, Clone)]
pub struct Receiving {
    /// By which calls.
    pub method: Receive,
    /// Most bytes that one call is asked for.
    pub size: usize,
    /// Calls are made on this schedule: a slow reader. None: as fast as bytes come.
    pub rate: Option<Rate>,
    /// A fast sender's receiver may be woken for many bytes at a time. Measured, that serves a sender that copies, and not one that
    /// hands over pages: its receiver has to take its share of the kernel's work.
    pub seldom: bool,
}

impl Receiving {
    /// By `method`, up to `size` bytes a call.
    pub fn new(method: Receive, size: usize) -> Receiving {
        Receiving { method, size, rate: None, seldom: true }
    }
}

pub(crate) enum Way {
    Read(Vec<u8>),
    Trunc(Vec<u8>),
    Splice { from: OwnedFd, into: OwnedFd, null: OwnedFd, room: usize },
}

/// A fast sender's receiver is woken for so many bytes at a time (SO_RCVLOWAT): each wake-up costs both ends more than copying 64 KiB.
const WOKEN_FOR: usize = 512 << 10;
/// Fast is: so many bytes,
const FAST: u64 = 8 << 20;
/// within this. A slower one's bytes are taken as they come; and those of one that becomes slower within [`phase::LOOK`].
const WITHIN: Duration = Duration::from_millis(250);

/// TCP only: what waits for more than a Unix socket holds waits in vain.
fn wake_seldom(socket: &impl AsFd) {
    let protocol = sys::get_int(socket, libc::SOL_SOCKET, libc::SO_PROTOCOL);
    if protocol.is_ok_and(|protocol| protocol == libc::IPPROTO_TCP) {
        // The kernel takes at most half of the socket's buffer. Refused, bytes are taken as they come.
        let _ = sys::set_int(socket, libc::SOL_SOCKET, libc::SO_RCVLOWAT, WOKEN_FOR as i32);
    }
}

/// Bytes that have arrived and were not read yet.
pub(crate) fn waiting(socket: &impl AsFd) -> u64 {
    rustix::io::ioctl_fionread(socket).unwrap_or(0)
}

/// Receives until the peer closes (`End::Closed`, what a whole stream ends with), or until it is over.
pub fn receive(socket: &impl AsFd, receiving: &Receiving, until: &Until, progress: &Progress) -> Done {
    let done = Done::new();
    match begin(socket, receiving) {
        Ok(way) => run(socket, way, receiving, until, progress, done),
        Err(error) => done.end(End::Failed(error)),
    }
}

pub(crate) fn begin(socket: &impl AsFd, receiving: &Receiving) -> io::Result<Way> {
    phase::look_up_often(socket)?;
    let size = receiving.size.clamp(1, MOST);
    Ok(match receiving.method {
        Receive::Read => Way::Read(vec![0; size]),
        // The kernel writes nothing there, but wants to be given as many bytes: untouched, they take no memory.
        Receive::Trunc => Way::Trunc(vec![0; size]),
        Receive::Splice => {
            let (from, into, room) = pipe()?;
            let null = rustix::fs::open("/dev/null", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
            Way::Splice { from, into, null, room: room.min(size) }
        }
    })
}

fn run(
    socket: &impl AsFd,
    mut way: Way,
    receiving: &Receiving,
    until: &Until,
    progress: &Progress,
    mut done: Done,
) -> Done {
    let size = receiving.size.clamp(1, MOST);
    let mut pacer = receiving.rate.map(|rate| Pacer::new(rate, done.began, Duration::from_millis(10), false));
    // Who waits for an amount wants its last bytes at once.
    let mut may_sleep_long = receiving.seldom && pacer.is_none() && until.bytes.is_none();
    let mut came = false;
    let end = loop {
        let now = Instant::now();
        // The clock is read once a call: what the call before brought was there by now.
        if std::mem::take(&mut came) {
            done.last = Some(now);
        }
        if let Some(end) = until.over(now) {
            break end;
        }
        let most = until.room(done.bytes, size);
        if most == 0 || until.counted(done.count) {
            break End::Amount;
        }
        if let Some(pacer) = &mut pacer {
            if pacer.ready(now, 1) == 0 {
                pacer.wait(phase::LOOK);
                continue;
            }
            pacer.sent(1);
        }
        match way.receive(socket, most) {
            Ok(0) => break End::Closed,
            Ok(count) => {
                came = true;
                if done.first.is_none() {
                    done.first = Some(Instant::now());
                    done.by_first = (count as u64).saturating_add(waiting(socket));
                }
                done.bytes += count as u64;
                done.count += 1;
                if may_sleep_long && done.bytes >= FAST {
                    may_sleep_long = false;
                    if done.first.is_some_and(|first| first.elapsed() < WITHIN) {
                        wake_seldom(socket);
                    }
                }
                progress.add(count);
            }
            Err(error) if phase::is_again(&error) => continue,
            Err(error) => break End::Failed(error),
        }
    };
    done.end(end)
}

impl Way {
    pub(crate) fn receive(&mut self, socket: &impl AsFd, most: usize) -> io::Result<usize> {
        match self {
            Way::Read(bytes) => {
                let room = bytes.get_mut(..most).unwrap_or_default();
                Ok(rustix::net::recv(socket, room, RecvFlags::empty())?.1)
            }
            Way::Trunc(bytes) => {
                let room = bytes.get_mut(..most).unwrap_or_default();
                Ok(rustix::net::recv(socket, room, RecvFlags::TRUNC)?.1)
            }
            Way::Splice { from, into, null, room } => {
                let count =
                    rustix::pipe::splice(socket, None, &*into, None, most.min(*room), SpliceFlags::MOVE)?;
                let mut left = count;
                while left > 0 {
                    let gone = rustix::pipe::splice(&*from, None, &*null, None, left, SpliceFlags::MOVE)?;
                    if gone == 0 {
                        return Err(io::ErrorKind::WriteZero.into());
                    }
                    left -= gone.min(left);
                }
                Ok(count)
            }
        }
    }
}
