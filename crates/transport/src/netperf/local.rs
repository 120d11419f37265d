//! The client's side of a data phase.

use super::client::{Kind, Test};
use super::udp;
use crate::datagram::{self, Bare};
use crate::exchange::{self, Closing, Connecting, Exchange};
use crate::phase::{self, Done, End, Latency, Progress, Stop, Until};
use crate::socket::{self, Actual, Options};
use crate::stream::{self, Receive, Receiving, Send, Sending};
use crate::sys;
use crate::tcp_info::TcpInfo;
use endpoint::netperf::plan::Length;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

/// A connection for data comes about within this.
const CONNECTS: Duration = Duration::from_secs(60);
/// What was sent arrives within this after the end.
const DRAINS: Duration = Duration::from_secs(120);
/// netserver says how it went within this after a test's time. (It waits for four seconds at the end of some.)
const PAD: Duration = Duration::from_secs(4);

/// What the phase came to on this side.
#[derive(Debug)]
pub struct Phase {
    /// Counts.
    pub done: Done,
    /// The socket at the end.
    pub ended: Actual,
    /// The connection's MSS.
    pub mss: Option<u32>,
    /// Segments sent again.
    pub retransmits: Option<u32>,
}

/// What a socket with these options is like before it is connected.
pub fn fresh(options: &Options, to: IpAddr, datagrams: bool) -> Result<Actual, socket::SocketError> {
    let family = if to.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let of = if datagrams { SocketType::DGRAM } else { SocketType::STREAM };
    let socket = socket_with(family, of, SocketFlags::CLOEXEC, None)
        .map_err(|error| socket::SocketError::Call { what: "socket", error: error.into() })?;
    let options = if datagrams { datagram_options(options) } else { options.clone() };
    options.apply(&socket, to)?;
    Ok(Actual::of(&socket))
}

/// What applies to UDP of them.
fn datagram_options(options: &Options) -> Options {
    Options {
        nodelay: false,
        cork: false,
        congestion: None,
        mss: None,
        keepalive: false,
        fast_open: false,
        ..options.clone()
    }
}

/// A UDP socket, bound: its port is sent to the server.
pub fn udp_socket(test: &Test, to: IpAddr) -> io::Result<UdpSocket> {
    let any: IpAddr = if to.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    let at = SocketAddr::new(test.options.bind.unwrap_or(any), test.options.port.unwrap_or(0));
    let socket = socket::udp(at, &datagram_options(&test.options)).map_err(io::Error::other)?;
    if test.dont_route {
        sys::set_int(&socket, libc::SOL_SOCKET, libc::SO_DONTROUTE, 1)?;
    }
    Ok(socket)
}

fn until(test: &Test, stop: &Stop) -> Until {
    let mut until = Until::stopped(stop);
    match (test.length, test.kind) {
        // The server counts the time; this is for one that does not end.
        (Length::Time(time), Kind::Receive) => until.deadline = Instant::now().checked_add(time + DRAINS),
        (Length::Time(time), _) => until.deadline = Instant::now().checked_add(time),
        (Length::Units(units), Kind::Send | Kind::Receive) => until.bytes = Some(units),
        (Length::Units(units), _) => until.count = Some(units),
    }
    until
}

/// Where data goes.
#[derive(Debug, Clone, Copy)]
pub struct Towards {
    /// The server's socket.
    pub at: SocketAddr,
    /// A netserver without the omni test: it takes an empty datagram among requests for a failure, and ends by its clock.
    pub legacy: bool,
}

/// Runs the phase.
pub fn run(
    test: &Test,
    to: Towards,
    udp: Option<UdpSocket>,
    stop: &Stop,
    progress: &Progress,
    latency: &Latency,
) -> io::Result<Phase> {
    if let Some(core) = test.core {
        crate::cpu::pin(core)?;
    }
    match (udp, test.kind) {
        (Some(socket), _) => over_udp(test, &socket, to, stop, progress, latency),
        (None, Kind::TransactEach | Kind::ConnectEach) => each(test, to.at, stop, progress, latency),
        (None, _) => over_tcp(test, to.at, stop, progress, latency),
    }
}

fn connected(error: socket::SocketError) -> io::Error {
    io::Error::new(error.io().kind(), error)
}

fn over_tcp(
    test: &Test,
    to: SocketAddr,
    stop: &Stop,
    progress: &Progress,
    latency: &Latency,
) -> io::Result<Phase> {
    let socket = socket::connect(to, &test.options, CONNECTS).map_err(connected)?;
    let until = until(test, stop);
    let done = match test.kind {
        Kind::Send => {
            let method = if test.sendfile { Send::Sendfile } else { Send::Write };
            let sending =
                Sending { data: test.fill.clone(), ..Sending::new(method, test.send_size as usize) };
            stream::send(&socket, &sending, &until, progress)
        }
        Kind::Receive => {
            let method = if test.avoid_copies { Receive::Splice } else { Receive::Read };
            stream::receive(&socket, &Receiving::new(method, test.recv_size as usize), &until, progress)
        }
        _ => {
            let exchange = Exchange {
                in_flight: test.burst + 1,
                ..Exchange::new(test.request_size as usize, test.response_size as usize)
            };
            exchange::ask(&socket, &exchange, &until, progress, latency)
        }
    };
    let ended = Actual::of(&socket);
    let done = match (test.kind, done) {
        (Kind::Receive, done) => done,
        (_, done) => {
            let _ = socket.shutdown(Shutdown::Write);
            drain(&socket, stop);
            done
        }
    };
    let retransmits = TcpInfo::of(&socket).ok().and_then(|info| info.total_retrans);
    Ok(Phase { done, mss: ended.mss, ended, retransmits })
}

/// Until the server closes, which it does when it has all; after a signal not as long.
fn drain(mut socket: &TcpStream, stop: &Stop) {
    let _ = phase::look_up_often(socket);
    let began = Instant::now();
    let mut room = vec![0; 65_536];
    loop {
        let patience = if stop.is_set() { PAD } else { DRAINS };
        match socket.read(&mut room) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if phase::is_again(&error) => {}
            Err(_) => return,
        }
        if began.elapsed() >= patience {
            return;
        }
    }
}

fn each(
    test: &Test,
    to: SocketAddr,
    stop: &Stop,
    progress: &Progress,
    latency: &Latency,
) -> io::Result<Phase> {
    let transacts = test.kind == Kind::TransactEach;
    let connecting = Connecting {
        to,
        options: test.options.clone(),
        request: if transacts { test.request_size as usize } else { 0 },
        response: if transacts { test.response_size as usize } else { 0 },
        closing: Closing::Answerer,
        patience: CONNECTS,
        ports: test.ports,
        spin: false,
    };
    let done = exchange::ask_each(&connecting, &until(test, stop), progress, latency);
    let ended = fresh(&test.options, to.ip(), false).map_err(io::Error::other)?;
    Ok(Phase { done, ended, mss: None, retransmits: None })
}

fn over_udp(
    test: &Test,
    socket: &UdpSocket,
    to: Towards,
    stop: &Stop,
    progress: &Progress,
    latency: &Latency,
) -> io::Result<Phase> {
    socket.connect(to.at).map_err(|error| {
        if test.dont_route && error.kind() == io::ErrorKind::NetworkUnreachable {
            let said = "the server is behind a router, which UDP_STREAM does not cross by itself: give -R 1 (after --)";
            io::Error::new(error.kind(), said)
        } else {
            error
        }
    })?;
    let mut until = until(test, stop);
    let done = match test.kind {
        Kind::Send => {
            let done = datagram::send(
                socket,
                &datagram::Sending::new(test.send_size as usize),
                &Bare,
                &until,
                progress,
            );
            udp::end(socket);
            done
        }
        Kind::Receive => {
            if let Length::Time(time) = test.length {
                until.deadline = Instant::now().checked_add(time + PAD);
            }
            udp::receive(socket, test.recv_size as usize, &until, progress)
        }
        _ => {
            let asking = udp::Asking {
                sizes: (test.request_size as usize, test.response_size as usize),
                in_flight: test.burst as usize + 1,
                patience: test.loses_after,
            };
            let done = udp::ask(socket, &asking, &until, progress, latency);
            if !to.legacy {
                udp::end(socket);
            }
            done
        }
    };
    // A queue that was full is counted; all else is an error.
    let done = match done.end {
        End::Failed(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            return Err(io::Error::new(error.kind(), "the server closed its socket for data"));
        }
        _ => done,
    };
    Ok(Phase { done, ended: Actual::of(socket), mss: None, retransmits: None })
}
