//! Who accepts connections: many at once, each answered once and closed, or held until the other end has had enough.

use super::{Flags, Poll};
use crate::phase::{self, Done, End, Progress, Until};
use crate::stream::content;
use rustix::net::{RecvFlags, SendFlags, SocketFlags};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// What one thread accepts, and what it does with it.
#[derive(Debug)]
pub struct Acceptor {
    /// Of this thread alone.
    pub listeners: Vec<TcpListener>,
    /// Only this address is served.
    pub from: Option<IpAddr>,
    /// Bytes of a request; 0: a connection is answered and closed as soon as it is there.
    pub request: usize,
    /// Bytes of a response.
    pub response: usize,
    /// Connections stay open until the other end says a byte, or closes.
    pub hold: bool,
    /// At most so many at once: others are closed.
    pub most: usize,
}

struct Connection {
    socket: OwnedFd,
    since: Instant,
    got: usize,
    sent: usize,
}

/// How long a connection that is not held may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// Connections that are accepted before others are looked at.
const ACCEPTED: usize = 256;

/// Serves until it is over.
pub fn serve(acceptor: &Acceptor, until: &Until, progress: &Progress) -> Done {
    let done = Done::new();
    let mut serves = match Poll::new() {
        Ok(poll) => Serves {
            acceptor,
            progress,
            poll,
            connections: Vec::new(),
            free: Vec::new(),
            said: content(acceptor.response),
            room: vec![0; acceptor.request.clamp(1, 1 << 20)],
            done,
        },
        Err(error) => return done.end(End::Failed(error)),
    };
    let end = serves.run(until);
    let mut done = serves.done;
    done.held = serves.connections.into_iter().flatten().map(|connection| connection.socket).collect();
    done.end(end)
}

struct Serves<'a> {
    acceptor: &'a Acceptor,
    progress: &'a Progress,
    poll: Poll,
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    said: Vec<u8>,
    room: Vec<u8>,
    done: Done,
}

impl Serves<'_> {
    fn run(&mut self, until: &Until) -> End {
        let listeners = self.acceptor.listeners.len() as u64;
        for (key, listener) in (0..).zip(&self.acceptor.listeners) {
            let added = listener.set_nonblocking(true).and_then(|()| self.poll.add(listener, key, Flags::IN));
            if let Err(error) = added {
                return End::Failed(error);
            }
        }
        let mut swept = Instant::now();
        loop {
            let now = Instant::now();
            if let Some(end) = until.over(now) {
                return end;
            }
            if !self.acceptor.hold && now.saturating_duration_since(swept) >= PATIENCE / 4 {
                swept = now;
                self.sweep(now);
            }
            let events = match self.poll.wait(super::longest(until, now)) {
                Ok(events) => events,
                Err(error) => return End::Failed(error),
            };
            for event in 0..events {
                let Some((key, _)) = self.poll.event(event) else { break };
                if key < listeners {
                    if let Err(error) = self.accept(key as usize) {
                        return End::Failed(error);
                    }
                } else if let Ok(at) = usize::try_from(key - listeners) {
                    self.attend(at);
                }
            }
        }
    }

    fn accept(&mut self, at: usize) -> io::Result<()> {
        let Some(listener) = self.acceptor.listeners.get(at) else { return Ok(()) };
        for _ in 0..ACCEPTED {
            let (socket, peer) =
                match rustix::net::acceptfrom_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                    Ok(accepted) => accepted,
                    Err(error) => match error.raw_os_error() {
                        libc::EBADF | libc::EINVAL | libc::ENOTSOCK => return Err(error.into()),
                        // Others have to go first.
                        libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM => {
                            std::thread::sleep(Duration::from_millis(10));
                            return Ok(());
                        }
                        // Nobody is there, or who was is gone (accept(2) lists what may be said of such).
                        _ => return Ok(()),
                    },
                };
            let peer = peer.and_then(|peer| SocketAddr::try_from(peer).ok());
            let welcome = self
                .acceptor
                .from
                .is_none_or(|from| peer.is_some_and(|peer| peer.ip().to_canonical() == from.to_canonical()));
            if welcome {
                self.welcome(socket);
            }
        }
        Ok(())
    }

    fn welcome(&mut self, socket: OwnedFd) {
        let Acceptor { request, response, hold, most, .. } = *self.acceptor;
        if !hold && request == 0 && response == 0 {
            drop(socket);
            self.count();
            return;
        }
        if self.connections.len() - self.free.len() >= most {
            return;
        }
        let at = self.free.pop().unwrap_or_else(|| {
            self.connections.push(None);
            self.connections.len() - 1
        });
        let key = (self.acceptor.listeners.len() + at) as u64;
        let added = self.poll.add(&socket, key, Flags::IN | Flags::RDHUP);
        match (added, self.connections.get_mut(at)) {
            (Ok(()), Some(place)) => {
                *place = Some(Connection { socket, since: Instant::now(), got: 0, sent: 0 });
                if hold {
                    self.count();
                } else {
                    // Its request mostly came with it (TCP_DEFER_ACCEPT).
                    self.attend(at);
                }
            }
            _ => self.free.push(at),
        }
    }

    fn count(&mut self) {
        let bytes = self.acceptor.request + self.acceptor.response;
        self.done.add(bytes, Instant::now());
        self.progress.add(bytes);
    }

    fn leaves(&mut self, at: usize) {
        if self.connections.get_mut(at).and_then(Option::take).is_some() {
            self.free.push(at);
        }
    }

    /// Something happened on a connection. One that breaks did not count; who made it knows.
    fn attend(&mut self, at: usize) {
        let Acceptor { request, response, hold, .. } = *self.acceptor;
        let Some(Some(connection)) = self.connections.get_mut(at) else { return };
        if hold {
            return self.leaves(at);
        }
        while connection.got < request {
            let most = (request - connection.got).min(self.room.len());
            match rustix::net::recv(
                &connection.socket,
                self.room.get_mut(..most).unwrap_or_default(),
                RecvFlags::empty(),
            ) {
                Ok((_, 0)) => return self.leaves(at),
                Ok((_, count)) => connection.got += count,
                Err(error) if phase::is_again(&error.into()) => return,
                Err(_) => return self.leaves(at),
            }
        }
        while connection.sent < response {
            let left = self.said.get(connection.sent..).unwrap_or_default();
            // Closed right after it, the response and the end of the connection leave in one segment.
            match rustix::net::send(&connection.socket, left, SendFlags::NOSIGNAL | SendFlags::MORE) {
                Ok(count) => connection.sent += count,
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => {
                    let key = (self.acceptor.listeners.len() + at) as u64;
                    if self.poll.set(&connection.socket, key, Flags::OUT).is_err() {
                        self.leaves(at);
                    }
                    return;
                }
                Err(_) => return self.leaves(at),
            }
        }
        self.leaves(at);
        self.count();
    }

    /// Who says nothing is closed.
    fn sweep(&mut self, now: Instant) {
        for at in 0..self.connections.len() {
            let late = |connection: &Connection| now.saturating_duration_since(connection.since) >= PATIENCE;
            if self.connections.get(at).and_then(Option::as_ref).is_some_and(late) {
                self.leaves(at);
            }
        }
    }
}
