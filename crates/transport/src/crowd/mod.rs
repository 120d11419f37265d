//! Many connections by few threads: each drives its share of non-blocking sockets by epoll, with one buffer for all of them and some
//! hundred bytes for each.
//!
//! A thread for each connection is the fastest for a few (no call but the one that moves the data), and takes two context switches
//! and a stack for each of thousands. So tests of at most [`FEW`] connections have a thread each (`stream`, `exchange`), and others
//! come here; `native::flows` chooses.
//!
//! | module | what it has |
//! |---|---|
//! | `stream` | bytes in one direction over each |
//! | `exchange` | requests and responses over each, in a closed or an open loop |
//! | `calls` | connections that are opened, used once or held, and closed: who opens |
//! | `acceptor` | who accepts them |

pub mod acceptor;
pub mod calls;
pub mod exchange;
pub mod stream;

use crate::phase::{self, Done, End, Until};
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

pub use rustix::event::epoll::EventFlags as Flags;

/// Up to so many connections of a test have a thread each.
pub const FEW: usize = endpoint::native::FEW as usize;

/// Readiness of many sockets.
pub(crate) struct Poll {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
}

/// Events that one call takes: few enough to look at the clock often, many enough for the call's cost to vanish.
const AT_ONCE: usize = 256;

impl Poll {
    pub fn new() -> io::Result<Poll> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Poll { epoll, events: Vec::with_capacity(AT_ONCE) })
    }

    pub fn add(&self, socket: &impl AsFd, key: u64, flags: Flags) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, socket, epoll::EventData::new_u64(key), flags)?)
    }

    pub fn set(&self, socket: &impl AsFd, key: u64, flags: Flags) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, socket, epoll::EventData::new_u64(key), flags)?)
    }

    pub fn remove(&self, socket: &impl AsFd) {
        // One that is not in it is as good as removed.
        let _ = epoll::delete(&self.epoll, socket);
    }

    /// Waits for events, no longer than that; what came is [`Poll::event`]'s.
    pub fn wait(&mut self, longest: Duration) -> io::Result<usize> {
        self.events.clear();
        let mut longest = longest;
        if !longest.is_zero() && longest < phase::LOOK {
            // epoll_wait(2) counts in milliseconds, and who waits for a schedule in microseconds.
            let timeout =
                Timespec::try_from(longest).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
            match poll(&mut [PollFd::new(&self.epoll, PollFlags::IN)], Some(&timeout)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(0),
                Ok(_) => longest = Duration::ZERO,
                Err(error) => return Err(error.into()),
            }
        }
        let timeout =
            Timespec::try_from(longest).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut self.events), Some(&timeout)) {
            Ok(count) => Ok(count),
            Err(rustix::io::Errno::INTR) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    /// Key and flags of an event of the last wait.
    pub fn event(&self, at: usize) -> Option<(u64, Flags)> {
        let event = self.events.get(at)?;
        let (data, flags) = (event.data, event.flags);
        Some((data.u64(), flags))
    }
}

/// Connections of one thread, as far as all kinds of work have them.
pub(crate) struct Crowd {
    pub poll: Poll,
    pub done: Vec<Done>,
    over: Vec<bool>,
    open: usize,
}

impl Crowd {
    /// Of these sockets, which do not wait from now on.
    pub fn new(sockets: &[OwnedFd], flags: Flags) -> io::Result<Crowd> {
        let poll = Poll::new()?;
        for (key, socket) in (0..).zip(sockets) {
            rustix::io::ioctl_fionbio(socket, true)?;
            poll.add(socket, key, flags)?;
        }
        let done = sockets.iter().map(|_| Done::new()).collect();
        Ok(Crowd { poll, done, over: vec![false; sockets.len()], open: sockets.len() })
    }

    /// Is this one over?
    pub fn is_over(&self, at: usize) -> bool {
        self.over.get(at).copied().unwrap_or(true)
    }

    /// All are.
    pub fn are_over(&self) -> bool {
        self.open == 0
    }

    /// One is over.
    pub fn end(&mut self, at: usize, socket: &impl AsFd, end: End) {
        if let (Some(done), Some(over @ false)) = (self.done.get_mut(at), self.over.get_mut(at)) {
            *over = true;
            self.open -= 1;
            self.poll.remove(socket);
            done.end = end;
            done.ended = Instant::now();
        }
    }

    /// Those that are not over end like this.
    pub fn end_all(&mut self, end: &End) {
        let now = Instant::now();
        for (done, over) in self.done.iter_mut().zip(&mut self.over).filter(|(_, over)| !**over) {
            *over = true;
            done.ended = now;
            done.end = match end {
                End::Time => End::Time,
                End::Amount => End::Amount,
                End::Closed => End::Closed,
                End::Stopped => End::Stopped,
                End::Failed(error) => End::Failed(again(error)),
            };
        }
        self.open = 0;
    }
}

/// The same error for another connection.
fn again(error: &io::Error) -> io::Error {
    error
        .raw_os_error()
        .map_or_else(|| io::Error::new(error.kind(), error.to_string()), io::Error::from_raw_os_error)
}

/// All of so many connections failed of this.
pub(crate) fn failed(count: usize, error: &io::Error) -> Vec<Done> {
    (0..count.max(1)).map(|_| Done::new().end(End::Failed(again(error)))).collect()
}

/// How long a thread may wait at `now`.
fn longest(until: &Until, now: Instant) -> Duration {
    let left = until.deadline.map_or(phase::LOOK, |deadline| deadline.saturating_duration_since(now));
    left.min(phase::LOOK)
}
