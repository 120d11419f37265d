//! A test's data connections, as the client opens them: one after the other if they are few, else many handshakes at once.

use super::channel::{self, ChannelError, Place};
use crate::crowd::{FEW, Flags, Poll};
use crate::socket::{self, Options};
use endpoint::native::{Key, Preamble};
use rustix::net::SendFlags;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Handshakes at once: far below what a server's accept queue holds (net.core.somaxconn, 4096).
const AT_ONCE: usize = 256;

/// `flows` connections to `place`, which say that they are of the test `key`.
pub(super) fn open(
    place: &Place,
    options: &Options,
    key: Key,
    flows: u32,
    patience: Duration,
) -> Result<Vec<OwnedFd>, ChannelError> {
    match place {
        Place::Host(to) if flows as usize > FEW => many(*to, options, key, flows, patience),
        _ => (0..flows)
            .map(|flow| channel::open(place, options, Preamble::Data { key, flow }, patience))
            .collect(),
    }
}

fn many(
    to: SocketAddr,
    options: &Options,
    key: Key,
    flows: u32,
    patience: Duration,
) -> Result<Vec<OwnedFd>, ChannelError> {
    let mut poll = Poll::new()?;
    let mut all: Vec<(OwnedFd, bool)> = Vec::with_capacity(flows as usize);
    // In the order of their beginning.
    let mut begun: VecDeque<(usize, Instant)> = VecDeque::new();
    let (mut under_way, mut open) = (0, 0);
    while open < flows as usize {
        while under_way < AT_ONCE && all.len() < flows as usize {
            let socket = socket::begin(to, options)?;
            poll.add(&socket, all.len() as u64, Flags::OUT)?;
            begun.push_back((all.len(), Instant::now()));
            all.push((socket, false));
            under_way += 1;
        }
        let now = Instant::now();
        while let Some((at, since)) = begun.front().copied() {
            if !all.get(at).is_some_and(|(_, open)| *open) {
                if now.saturating_duration_since(since) >= patience {
                    let error = io::Error::from_raw_os_error(libc::EINPROGRESS);
                    return Err(socket::not_connected(to.to_string(), error, patience).into());
                }
                break;
            }
            begun.pop_front();
        }
        for event in 0..poll.wait(Duration::from_millis(100))? {
            let Some((key_of, _)) = poll.event(event) else { break };
            let at = usize::try_from(key_of).unwrap_or(usize::MAX);
            let Some((socket, is_open)) = all.get_mut(at).filter(|(_, open)| !open) else { continue };
            if let Some(error) = socket::error_of(socket)? {
                return Err(socket::not_connected(to.to_string(), error, patience).into());
            }
            let flow = u32::try_from(at).unwrap_or(u32::MAX);
            let preamble = Preamble::Data { key, flow }.bytes();
            // Nothing was sent before: there is room for it.
            let sent =
                rustix::net::send(&*socket, &preamble, SendFlags::NOSIGNAL).map_err(io::Error::from)?;
            if sent < preamble.len() {
                return Err(io::Error::from(io::ErrorKind::WriteZero).into());
            }
            poll.remove(&*socket);
            *is_open = true;
            under_way -= 1;
            open += 1;
        }
    }
    // Threads of their own wait in their calls.
    let wait = |(socket, _): (OwnedFd, bool)| {
        rustix::io::ioctl_fionbio(&socket, false).map_err(io::Error::from)?;
        Ok(socket)
    };
    all.into_iter().map(wait).collect()
}
