//! How flows of datagrams are joined: a handshake, so that nothing is sent to an address that did not ask for it.

use super::channel::{Channel, ChannelError};
use crate::socket::{self, Options};
use endpoint::native::Key;
use endpoint::native::datagram::{Cookie, Joining, LENGTH};
use rustix::net::{RecvFlags, SendFlags};
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// A datagram that is not answered is sent again after so long.
const AGAIN: Duration = Duration::from_millis(200);

/// Bytes of this host's choice that nobody can guess.
pub(super) fn drawn<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let mut at = 0;
    while at < N {
        let count = rustix::rand::getrandom(
            bytes.get_mut(at..).unwrap_or_default(),
            rustix::rand::GetRandomFlags::empty(),
        )?;
        at += count;
    }
    Ok(bytes)
}

/// A flow's socket; who asked to join it, with the cookie that was sent there; whether that was proved.
type Unjoined = (UdpSocket, Option<(SocketAddr, Cookie)>, bool);

/// The server's sockets, before anybody joined.
pub(super) struct Waiting {
    sockets: Vec<Unjoined>,
    key: Key,
    from: IpAddr,
}

impl Waiting {
    /// One for each flow, at `own`. Only `from` may join.
    pub fn open(
        own: SocketAddr,
        from: IpAddr,
        flows: u32,
        key: Key,
        options: &Options,
    ) -> io::Result<Waiting> {
        let mut sockets = Vec::new();
        for _ in 0..flows {
            let socket = socket::udp(socket::at_port(own, 0), options)
                .map_err(|error| io::Error::new(error.io().kind(), error))?;
            socket.set_nonblocking(true)?;
            sockets.push((socket, None, false));
        }
        Ok(Waiting { sockets, key, from: from.to_canonical() })
    }

    pub fn ports(&self) -> Vec<u16> {
        self.sockets
            .iter()
            .filter_map(|(socket, ..)| socket.local_addr().ok())
            .map(|own| own.port())
            .collect()
    }

    /// Answers what is there. True: all have joined.
    pub fn work(&mut self) -> io::Result<bool> {
        for (flow, (socket, asked, joined)) in
            self.sockets.iter_mut().enumerate().filter(|(_, (_, _, joined))| !joined)
        {
            let mut room = [0; LENGTH + 1];
            while let Ok((length, peer)) = socket.recv_from(&mut room) {
                if peer.ip().to_canonical() != self.from {
                    continue;
                }
                match room.get(..length).and_then(Joining::read) {
                    Some(Joining::Join(key, of)) if key == self.key && of as usize == flow => {
                        let cookie = match asked {
                            Some((from, cookie)) if *from == peer => *cookie,
                            _ => drawn()?,
                        };
                        *asked = Some((peer, cookie));
                        // Lost, it is asked for again.
                        let _ = socket.send_to(&Joining::Cookie(key, cookie).bytes(), peer);
                    }
                    Some(Joining::Proof(key, cookie))
                        if key == self.key && *asked == Some((peer, cookie)) =>
                    {
                        socket.connect(peer)?;
                        *joined = true;
                        break;
                    }
                    _ => {}
                }
            }
        }
        Ok(self.sockets.iter().all(|(.., joined)| *joined))
    }

    /// The sockets, connected.
    pub fn sockets(self) -> io::Result<Vec<OwnedFd>> {
        let block = |(socket, ..): Unjoined| {
            socket.set_nonblocking(false)?;
            Ok(socket.into())
        };
        self.sockets.into_iter().map(block).collect()
    }
}

/// The client's sockets, which have proved; their proofs are to be sent until the server says `joined`.
pub(super) struct Proving {
    sockets: Vec<(UdpSocket, [u8; LENGTH])>,
    last: Instant,
}

impl Proving {
    /// Joins each flow at its port.
    pub fn open(
        to: SocketAddr,
        ports: &[u16],
        key: Key,
        options: &Options,
        patience: Duration,
    ) -> Result<Proving, ChannelError> {
        let by = Instant::now() + patience;
        let mut sockets = Vec::new();
        for (flow, port) in (0..).zip(ports) {
            let socket = socket::udp_towards(socket::at_port(to, *port), options)?;
            let cookie = loop {
                // What was sent before may be refused now: the answer decides.
                let _ = socket.send(&Joining::Join(key, flow).bytes());
                let mut room = [0; LENGTH + 1];
                let again = Instant::now() + AGAIN;
                let cookie = loop {
                    let left = again.saturating_duration_since(Instant::now());
                    if !socket::readable(&socket, left)? {
                        break None;
                    }
                    let Ok(length) = socket.recv(&mut room) else { break None };
                    if let Some(Joining::Cookie(of, cookie)) = room.get(..length).and_then(Joining::read)
                        && of == key
                    {
                        break Some(cookie);
                    }
                };
                match cookie {
                    Some(cookie) => break cookie,
                    None if Instant::now() < by => {}
                    None => {
                        let said = format!("no answer from UDP port {port}: is there a firewall between?");
                        return Err(io::Error::new(io::ErrorKind::TimedOut, said).into());
                    }
                }
            };
            let proof = Joining::Proof(key, cookie).bytes();
            let _ = socket.send(&proof);
            sockets.push((socket, proof));
        }
        Ok(Proving { sockets, last: Instant::now() })
    }

    /// Sends proofs again, if it is time.
    pub fn work(&mut self) {
        if self.last.elapsed() >= AGAIN {
            self.last = Instant::now();
            for (socket, proof) in &self.sockets {
                let _ = rustix::net::send(socket, proof, SendFlags::NOSIGNAL);
            }
        }
    }

    /// The sockets, with nothing in them that is none of the test's.
    pub fn sockets(self) -> Vec<OwnedFd> {
        let empty = |(socket, _): (UdpSocket, [u8; LENGTH])| {
            let mut room = [0; LENGTH];
            while rustix::net::recv(&socket, &mut room[..], RecvFlags::DONTWAIT).is_ok() {}
            socket.into()
        };
        self.sockets.into_iter().map(empty).collect()
    }
}

/// How far the joining of a test's flows is.
pub(super) enum Joined {
    /// All are there.
    All,
    /// Some came since it was last asked.
    More,
    /// None did.
    NoMore,
}

/// Waits until all have `joined`, while the control connection is there; what it says meanwhile is out of place. Without one more within
/// `patience` it is over.
pub(super) fn attend(
    channel: &mut Channel,
    patience: Duration,
    mut joined: impl FnMut() -> io::Result<Joined>,
) -> Result<(), ChannelError> {
    let mut by = Instant::now() + patience;
    loop {
        match joined()? {
            Joined::All => return Ok(()),
            Joined::More => by = Instant::now() + patience,
            Joined::NoMore if Instant::now() >= by => return Err(ChannelError::Silent(patience)),
            Joined::NoMore => {}
        }
        if channel.hear(Duration::from_millis(1))?.is_some() {
            return Err(ChannelError::Garbage("a message before the data connections were there".to_owned()));
        }
    }
}
