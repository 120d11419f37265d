//! Sockets of both sides: options from the parameters, a client's data connections, a server's datagram sockets.

use super::data::Link;
use crate::socket::{self, Options, SocketError};
use crate::sys;
use endpoint::iperf3::datagram::{HELLO, REPLY};
use endpoint::iperf3::params::{Params, Protocol};
use endpoint::iperf3::{Cookie, Error};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;

/// A server answers a first datagram within so long, or it is sent again.
const AGAIN: Duration = Duration::from_secs(1);
/// So often.
const TRIES: u32 = 10;
/// Receive buffer of datagrams where none is asked for: what the system's default holds is lost in a few milliseconds that another
/// program runs, and looks like loss on the way.
const UDP_BUFFER: u32 = 4 << 20;

/// SO_KEEPALIVE of the control connection, in seconds and tries; None: as the kernel has it (net.ipv4.tcp_keepalive_*).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeepAlive {
    /// Without a word for so long, it is asked (TCP_KEEPIDLE).
    pub idle: Option<u32>,
    /// Again after so long (TCP_KEEPINTVL).
    pub interval: Option<u32>,
    /// So often (TCP_KEEPCNT).
    pub count: Option<u32>,
}

impl KeepAlive {
    /// Sets it.
    ///
    /// # Errors
    /// The kernel does not take one of them.
    pub fn set(&self, socket: &impl AsFd) -> io::Result<()> {
        sys::set_int(socket, libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1)?;
        let all = [
            (libc::TCP_KEEPIDLE, self.idle),
            (libc::TCP_KEEPINTVL, self.interval),
            (libc::TCP_KEEPCNT, self.count),
        ];
        for (name, value) in all {
            let Some(value) = value else { continue };
            sys::set_int(socket, libc::IPPROTO_TCP, name, i32::try_from(value).unwrap_or(i32::MAX))?;
        }
        Ok(())
    }
}

/// How this host's sockets are to be, beside what the parameters say.
#[derive(Debug, Clone, Default)]
pub struct Local {
    /// Own address.
    pub bind: Option<IpAddr>,
    /// Own port of the first data connection; the next ones follow.
    pub port: Option<u16>,
    /// Interface.
    pub device: Option<String>,
    /// A connection whose data is not acknowledged for so long ends (TCP_USER_TIMEOUT).
    pub send_timeout: Option<Duration>,
    /// The control connection is asked whether its peer is still there.
    pub keep_alive: Option<KeepAlive>,
    /// A connection is set up within so long.
    pub connect_timeout: Option<Duration>,
}

/// Kernel's default is two minutes.
const CONNECT: Duration = Duration::from_secs(130);

impl Local {
    /// For a connection.
    pub fn patience(&self) -> Duration {
        self.connect_timeout.unwrap_or(CONNECT)
    }

    /// Of the control connection.
    pub fn control(&self, mptcp: bool) -> Options {
        Options { bind: self.bind, device: self.device.clone(), mptcp, ..Options::default() }
    }
}

/// Options of a data connection. `congestion`: what this side was told.
pub fn options(params: &Params, sender: bool) -> Options {
    let tcp = params.protocol == Protocol::Tcp;
    let window = u32::try_from(params.window).ok().filter(|window| *window > 0);
    Options {
        send_buffer: window,
        receive_buffer: window.or_else(|| (!tcp && !sender).then_some(UDP_BUFFER)),
        nodelay: tcp && params.nodelay,
        congestion: params.congestion.clone().filter(|_| tcp),
        pacing_rate: (params.fq_rate > 0).then_some(params.fq_rate / 8),
        tos: (params.tos > 0).then_some(params.tos),
        mss: (tcp && params.mss > 0).then_some(params.mss),
        mptcp: tcp && params.mptcp,
        dont_fragment: params.dont_fragment,
        ..Options::default()
    }
}

/// Bytes that a server's side of a test takes: a block for each stream, or those of a burst, and the buffers of the kernel that are asked for.
pub fn memory(params: &Params) -> u64 {
    let tcp = params.protocol == Protocol::Tcp;
    let one = |client_sends: bool| {
        let own = match (tcp, client_sends) {
            (true, true) => params.len.max(256 << 10),
            (true, false) => params.len.saturating_mul(params.burst.max(1).into()),
            // By batches.
            (false, _) => 4 << 20,
        };
        // The kernel doubles what it is asked for.
        let asked = options(params, !client_sends);
        let kernel = [asked.send_buffer, asked.receive_buffer].map(|size| 2 * u64::from(size.unwrap_or(0)));
        own.saturating_add(kernel[0]).saturating_add(kernel[1])
    };
    params.client_sends().into_iter().map(one).fold(0, u64::saturating_add)
}

/// Sets on a connected socket what `Options` does not have.
pub fn finish(socket: &impl AsFd, params: &Params, local: &Local) -> Result<(), SocketError> {
    if let (Protocol::Tcp, Some(timeout)) = (params.protocol, local.send_timeout) {
        let ms = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
        sys::set_int(socket, libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, ms)
            .map_err(|error| SocketError::Call { what: "TCP_USER_TIMEOUT", error })?;
    }
    Ok(())
}

/// A client's data connections, in their order, and whether it sends on each.
pub fn streams(
    to: SocketAddr,
    params: &Params,
    cookie: &Cookie,
    local: &Local,
) -> Result<Vec<(Link, bool)>, String> {
    let mut all = Vec::new();
    for (index, sender) in params.client_sends().into_iter().enumerate() {
        let offset = u16::try_from(index).unwrap_or(0);
        let options = Options {
            bind: local.bind,
            port: local.port.map(|port| port.saturating_add(offset)),
            device: local.device.clone(),
            flow_label: (params.flow_label > 0).then_some(params.flow_label),
            ..options(params, sender)
        };
        let link = match params.protocol {
            Protocol::Tcp => {
                let mut stream = socket::connect(to, &options, local.patience())
                    .map_err(|error| format!("unable to connect stream: {error}"))?;
                finish(&stream, params, local).map_err(|error| error.to_string())?;
                stream
                    .write_all(cookie.bytes())
                    .map_err(|error| format!("unable to send cookie to server: {error}"))?;
                Link::Tcp(stream)
            }
            Protocol::Udp => {
                let socket = socket::udp_towards(to, &options)
                    .map_err(|error| format!("unable to connect stream: {error}"))?;
                greet(&socket).map_err(|error| format!("unable to connect stream: {error}"))?;
                Link::Udp(socket)
            }
        };
        all.push((link, sender));
    }
    Ok(all)
}

/// Sends the first datagram until the server answers.
fn greet(socket: &UdpSocket) -> io::Result<()> {
    let mut answer = [0; 64];
    for _ in 0..TRIES {
        // Where nobody listens between two streams (iperf3's server makes a new socket for each), the host says so.
        let refused = |error: &io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
        let heard = match socket.send(&HELLO) {
            Ok(_) if !socket::readable(socket, AGAIN)? => continue,
            // Whatever comes from the server is its answer: releases differ in what they say.
            Ok(_) => socket.recv(&mut answer),
            Err(error) => Err(error),
        };
        match heard {
            Ok(_) => return Ok(()),
            Err(error) if refused(&error) => std::thread::sleep(AGAIN / 10),
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::new(
        io::ErrorKind::TimedOut,
        "the server answers no datagram: is UDP to its port filtered on the way?",
    ))
}

/// A UDP socket that shares its address with others of this process.
fn shared(at: SocketAddr) -> io::Result<UdpSocket> {
    let family = if at.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let socket = socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    sys::set_int(&socket, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
    rustix::net::bind(&socket, &at)?;
    Ok(UdpSocket::from(socket))
}

/// Where a server waits for first datagrams.
pub fn greeted(at: SocketAddr) -> io::Result<UdpSocket> {
    let socket = shared(at)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// A first datagram that came to a stream's socket before that was connected: another client's.
pub type Stray = (SocketAddr, Vec<u8>);

/// A server's socket of one stream, connected to its client. The kernel prefers it to the one that waits for all, so that all later
/// datagrams of this client come here. It has the address that the client's control connection goes to, and no other address of this
/// host, which the client would not take for its server.
pub fn stream(
    local: SocketAddr,
    peer: SocketAddr,
    params: &Params,
    sender: bool,
) -> Result<(UdpSocket, Vec<Stray>), String> {
    let failed = |error: io::Error| format!("unable to create a new stream: {error}");
    let socket = shared(local).map_err(failed)?;
    socket.connect(peer).map_err(failed)?;
    options(params, sender).apply(&socket, peer.ip()).map_err(|error| error.to_string())?;
    // Between bind and connect others' datagrams may have come.
    let mut strays = Vec::new();
    let mut buffer = [0; 64];
    socket.set_nonblocking(true).map_err(failed)?;
    while let Ok((len, from)) = socket.recv_from(&mut buffer) {
        if from != peer {
            strays.push((from, buffer[..len].to_vec()));
        }
    }
    socket.set_nonblocking(false).map_err(failed)?;
    Ok((socket, strays))
}

/// The answer to a first datagram: as long as that, and no more.
pub fn answer(socket: &UdpSocket) -> io::Result<()> {
    socket.send(&REPLY).map(|_| ())
}

/// Connects the control connection to the first address that answers.
pub fn control(
    host: &str,
    port: u16,
    family: Option<bool>,
    local: &Local,
    mptcp: bool,
) -> Result<std::net::TcpStream, String> {
    use std::net::ToSocketAddrs;
    let found = (host, port)
        .to_socket_addrs()
        .map_err(|error| format!("unable to connect to server: {host} is not known: {error}"))?;
    let found = found.filter(|address| {
        family.is_none_or(|six| address.is_ipv6() == six)
            && local.bind.is_none_or(|bind| bind.is_ipv6() == address.is_ipv6())
    });
    let mut failure = format!("unable to connect to server: {host} has no address of that family");
    for address in found {
        match socket::connect(address, &local.control(mptcp), local.patience()) {
            Ok(stream) => return Ok(stream),
            Err(error) => {
                failure = format!(
                    "unable to connect to server - server may have stopped running or use a different port, firewall issue, etc.: \
                     {}",
                    error.io()
                );
            }
        }
    }
    Err(failure)
}

/// For messages: what the peer's error is where there is none better.
pub fn create_stream(words: String) -> Error {
    Error::Refused(endpoint::iperf3::Code::CreateStream, words)
}
