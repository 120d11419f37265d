//! A control connection: messages with deadlines, over TCP or a Unix socket.

use crate::socket::{self, Options, SocketError};
use crate::sys;
use crate::tcp_info::TcpInfo;
use endpoint::native::{BadFrame, Decoder, PORT, Preamble, frame};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, SendFlags};
use serde::Serialize;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Where a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Over TCP and UDP.
    Host(SocketAddr),
    /// A Unix socket's path.
    Unix(PathBuf),
}

impl Place {
    /// `HOST`, `HOST:PORT`, `[V6]:PORT`, or `unix:PATH`. A name's first address is taken; of the family that was asked for, if one was.
    ///
    /// # Errors
    /// There is no such host.
    pub fn find(text: &str, v6: Option<bool>) -> io::Result<Place> {
        Place::find_at(text, PORT, v6)
    }

    /// The same of a server that listens at `port` unless said.
    ///
    /// # Errors
    /// There is no such host.
    pub fn find_at(text: &str, port: u16, v6: Option<bool>) -> io::Result<Place> {
        if let Some(path) = text.strip_prefix("unix:") {
            return Ok(Place::Unix(path.into()));
        }
        let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
        let all: Vec<SocketAddr> = if let Ok(address) = bare.parse::<IpAddr>() {
            vec![SocketAddr::new(address, port)]
        } else if text.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) {
            crate::socket::lookup(text)?
        } else {
            // A scope in brackets, `[fe80::1%eth0]`, is read by the resolver, which knows no brackets.
            (bare, port).to_socket_addrs()?.collect()
        };
        let fits = |place: &SocketAddr| v6.is_none_or(|v6| place.is_ipv6() == v6);
        let family = match v6 {
            Some(true) => " of IPv6",
            Some(false) => " of IPv4",
            None => "",
        };
        all.into_iter()
            .find(fits)
            .map(Place::Host)
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("{text} has no address{family}")))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Host(place) => write!(f, "{place}"),
            Place::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// What goes wrong on a control connection.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// No connection.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// It broke.
    #[error("the control connection broke: {0}")]
    Broken(#[from] io::Error),
    /// The other end closed it.
    #[error("the other end closed the control connection")]
    Closed,
    /// Nothing came in time.
    #[error("the other end said nothing for {:.1} s", .0.as_secs_f64())]
    Silent(Duration),
    /// No message.
    #[error(transparent)]
    Frame(#[from] BadFrame),
    /// A message that means nothing.
    #[error("the other end said what cannot be understood: {0}")]
    Garbage(String),
}

/// Opens a connection to `place` that begins with `preamble`.
pub(super) fn open(
    place: &Place,
    options: &Options,
    preamble: Preamble,
    patience: Duration,
) -> Result<OwnedFd, ChannelError> {
    let serve = |error: socket::SocketError| error.served_by("netdyno endpoint serve");
    let socket: OwnedFd = match place {
        Place::Host(to) => socket::connect(*to, options, patience).map_err(serve)?.into(),
        Place::Unix(path) => socket::unix_connect(path, options).map_err(serve)?.into(),
    };
    write(&socket, &preamble.bytes(), Instant::now() + patience)?;
    Ok(socket)
}

/// Writes all, by `deadline`.
pub(super) fn write(socket: &impl AsFd, bytes: &[u8], deadline: Instant) -> Result<(), ChannelError> {
    let mut left = bytes;
    while !left.is_empty() {
        match rustix::net::send(socket, left, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Ok(count) => left = left.get(count..).unwrap_or_default(),
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::AGAIN) => {
                if !wait(socket, PollFlags::OUT, deadline)? {
                    return Err(io::Error::new(io::ErrorKind::TimedOut, "the other end takes nothing").into());
                }
            }
            Err(error) => return Err(io::Error::from(error).into()),
        }
    }
    Ok(())
}

fn wait(socket: &impl AsFd, flags: PollFlags, deadline: Instant) -> io::Result<bool> {
    let left = deadline.saturating_duration_since(Instant::now());
    let timeout = Timespec::try_from(left).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    match poll(&mut [PollFd::new(socket, flags)], Some(&timeout)) {
        Ok(count) => Ok(count > 0),
        Err(rustix::io::Errno::INTR) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// Messages both ways.
#[derive(Debug)]
pub(super) struct Channel {
    socket: OwnedFd,
    decoder: Decoder,
}

/// A message is taken by then, or the other end is gone.
const TAKES: Duration = Duration::from_secs(10);

impl Channel {
    /// Over `socket`; messages that come are at most so long.
    pub fn new(socket: OwnedFd, most: usize) -> Channel {
        // A peer that is gone without a word is found out within half a minute, also while nothing is said. Not of Unix sockets.
        for (level, name, value) in [
            (libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1),
            (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, 10),
            (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, 5),
            (libc::IPPROTO_TCP, libc::TCP_KEEPCNT, 3),
            (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, 20_000),
            (libc::IPPROTO_TCP, libc::TCP_NODELAY, 1),
        ] {
            let _ = sys::set_int(&socket, level, name, value);
        }
        Channel { socket, decoder: Decoder::new(most) }
    }

    pub fn say(&self, message: &impl Serialize) -> Result<(), ChannelError> {
        write(&self.socket, &frame(message), Instant::now() + TAKES)
    }

    /// The next message, within `patience`. None: nothing came.
    pub fn hear(&mut self, patience: Duration) -> Result<Option<Vec<u8>>, ChannelError> {
        let deadline = Instant::now() + patience.min(Duration::from_secs(86_400));
        loop {
            if let Some(message) = self.decoder.message()? {
                return Ok(Some(message));
            }
            let mut room = [0; 16_384];
            match rustix::net::recv(&self.socket, &mut room[..], RecvFlags::DONTWAIT) {
                Ok((_, 0)) => return Err(ChannelError::Closed),
                Ok((_, count)) => self.decoder.push(room.get(..count).unwrap_or_default()),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => {
                    if Instant::now() >= deadline || !wait(&self.socket, PollFlags::IN, deadline)? {
                        return Ok(None);
                    }
                }
                Err(error) => return Err(io::Error::from(error).into()),
            }
        }
    }

    /// Has the other end's host yet to acknowledge something that was said? Never over a Unix socket, where nothing is under way.
    pub fn is_unacknowledged(&self) -> bool {
        let under_way = |tcp: TcpInfo| tcp.unacked > Some(0) || tcp.notsent_bytes > Some(0);
        TcpInfo::of(&self.socket).is_ok_and(under_way)
    }

    /// Own and other address, over IP.
    pub fn ends(&self) -> Option<[SocketAddr; 2]> {
        let own = rustix::net::getsockname(&self.socket).ok()?.try_into().ok()?;
        let peer = rustix::net::getpeername(&self.socket).ok()??.try_into().ok()?;
        Some([own, peer])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_with_and_without_a_port() {
        let found = |text: &str| Place::find(text, None).expect(text).to_string();
        assert_eq!(found("127.0.0.1"), "127.0.0.1:12866");
        assert_eq!(found("127.0.0.1:99"), "127.0.0.1:99");
        assert_eq!(found("::1"), "[::1]:12866");
        assert_eq!(found("[::1]:7"), "[::1]:7");
        assert_eq!(found("[::1]"), "[::1]:12866");
        assert_eq!(found("fe80::1%lo"), "[fe80::1%1]:12866");
        assert_eq!(found("[fe80::1%lo]"), "[fe80::1%1]:12866");
        assert_eq!(found("[fe80::1%lo]:7"), "[fe80::1%1]:7");
        assert_eq!(found("unix:/run/x"), "unix:/run/x");
        let said = Place::find("127.0.0.1", Some(true)).expect_err("none").to_string();
        assert_eq!(said, "127.0.0.1 has no address of IPv6");
    }
}
