//! Where connections come in: accepted, asked what they are, and handed on. One thread, whatever their number; who does not say
//! what it is within [`SAYS`] is closed.

use super::{Door, Shared, VISITORS, attend};
use crate::crowd::{Flags, Poll};
use crate::phase::LOOK;
use endpoint::native::Preamble;
use rustix::net::{RecvFlags, SocketFlags};
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// What a connection says it is, it says within this.
const SAYS: Duration = Duration::from_secs(5);
/// Connections that are accepted before others are looked at.
const AT_ONCE: usize = 256;

/// A connection that has not said what it is.
struct Visitor {
    socket: OwnedFd,
    from: Option<IpAddr>,
    said: Vec<u8>,
    since: Instant,
}

pub(super) struct Entrance<'a> {
    shared: &'a Arc<Shared>,
    listeners: Vec<BorrowedFd<'a>>,
    poll: Poll,
    /// By the order of their coming; the first keys are the listeners'.
    visitors: BTreeMap<u64, Visitor>,
    next: u64,
}

impl<'a> Entrance<'a> {
    pub fn open(
        tcp: &'a [TcpListener],
        unix: &'a [(UnixListener, PathBuf)],
        shared: &'a Arc<Shared>,
    ) -> io::Result<Entrance<'a>> {
        let poll = Poll::new()?;
        let tcp = tcp.iter().map(AsFd::as_fd);
        let listeners: Vec<_> = tcp.chain(unix.iter().map(|(listener, _)| listener.as_fd())).collect();
        for (key, listener) in (0..).zip(&listeners) {
            rustix::io::ioctl_fionbio(listener, true)?;
            poll.add(listener, key, Flags::IN)?;
        }
        let next = listeners.len() as u64;
        Ok(Entrance { shared, listeners, poll, visitors: BTreeMap::new(), next })
    }

    /// Until the server is to end.
    pub fn keep(mut self) -> io::Result<()> {
        while !self.shared.stop.is_set() {
            for event in 0..self.poll.wait(LOOK)? {
                let Some((key, _)) = self.poll.event(event) else { break };
                match self.listeners.get(usize::try_from(key).unwrap_or(usize::MAX)).copied() {
                    Some(listener) => self.accept(listener)?,
                    None => self.hear(key),
                }
            }
            let now = Instant::now();
            while let Some((key, visitor)) = self.visitors.first_key_value() {
                if now.saturating_duration_since(visitor.since) < SAYS {
                    break;
                }
                let key = *key;
                self.refuse(key);
            }
        }
        Ok(())
    }

    fn accept(&mut self, listener: BorrowedFd<'_>) -> io::Result<()> {
        for _ in 0..AT_ONCE {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let (socket, peer) = match rustix::net::acceptfrom_with(listener, flags) {
                Ok(accepted) => accepted,
                Err(error) => match error.raw_os_error() {
                    libc::EBADF | libc::EINVAL | libc::ENOTSOCK => return Err(error.into()),
                    // No more files or no memory: those who are here have to go first.
                    libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM => {
                        std::thread::sleep(LOOK);
                        return Ok(());
                    }
                    // Nobody is there, or who was is gone (accept(2) lists what may be said of such).
                    _ => return Ok(()),
                },
            };
            let from = peer.and_then(|peer| SocketAddr::try_from(peer).ok()).map(|peer| peer.ip());
            if self.visitors.len() >= VISITORS
                && let Some(oldest) = self.visitors.first_key_value().map(|(key, _)| *key)
            {
                // Who says nothing makes room for who may.
                self.refuse(oldest);
            }
            let key = self.next;
            let visitor = Visitor { socket, from, said: Vec::new(), since: Instant::now() };
            if self.poll.add(&visitor.socket, key, Flags::IN).is_ok() {
                self.next += 1;
                self.visitors.insert(key, visitor);
                // What it is mostly came with it.
                self.hear(key);
            }
        }
        Ok(())
    }

    fn refuse(&mut self, key: u64) {
        self.visitors.remove(&key);
        self.shared.refused.fetch_add(1, Relaxed);
    }

    /// Reads what a visitor says it is, and not a byte more.
    fn hear(&mut self, key: u64) {
        let Some(visitor) = self.visitors.get_mut(&key) else { return };
        let preamble = loop {
            let more = match Preamble::wants(&visitor.said) {
                Ok(0) => break Preamble::read(&visitor.said),
                Ok(more) => more,
                Err(_) => return self.refuse(key),
            };
            let mut room = [0; Preamble::MOST];
            match rustix::net::recv(
                &visitor.socket,
                room.get_mut(..more).unwrap_or_default(),
                RecvFlags::empty(),
            ) {
                Ok((_, 0)) => return self.refuse(key),
                Ok((_, count)) => visitor.said.extend_from_slice(room.get(..count).unwrap_or_default()),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return,
                Err(_) => return self.refuse(key),
            }
        };
        let (Ok(preamble), Some(visitor)) = (preamble, self.visitors.remove(&key)) else {
            return self.refuse(key);
        };
        self.poll.remove(&visitor.socket);
        // Those who wait for it do so in their calls.
        let blocks = rustix::io::ioctl_fionbio(&visitor.socket, false).is_ok();
        let taken = blocks
            && match preamble {
                Preamble::Control => self.admit(visitor),
                Preamble::Data { key, flow } => {
                    let doors = self.shared.doors.lock().unwrap_or_else(PoisonError::into_inner);
                    match doors.get(&key) {
                        // Of another address than the test's client: nobody should know the key there.
                        Some((door, client)) if *client == visitor.from => hand(door, flow, visitor.socket),
                        _ => false,
                    }
                }
            };
        if !taken {
            self.shared.refused.fetch_add(1, Relaxed);
        }
    }

    /// A client: it has a thread, which counts it as refused if it is none of ours.
    fn admit(&self, visitor: Visitor) -> bool {
        let shared = Arc::clone(self.shared);
        // Whoever leaves for it was a stranger still.
        let Ok(seat) = shared.strangers.enter(&visitor.socket, visitor.from) else { return false };
        let thread = std::thread::Builder::new().name("session".to_owned()).stack_size(512 << 10);
        let spawned = thread.spawn(move || {
            if !attend(visitor.socket, visitor.from, seat, &shared) {
                shared.refused.fetch_add(1, Relaxed);
            }
        });
        spawned.is_ok()
    }
}

fn hand(door: &Door, flow: u32, socket: OwnedFd) -> bool {
    door.try_send((flow, socket)).is_ok()
}
