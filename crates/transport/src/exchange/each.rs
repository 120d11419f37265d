//! A connection for each transaction: connect, ask, answer, close; or connect and close.

use super::ask::whole;
use super::take;
use crate::phase::{self, Done, End, Latency, Progress, Until};
use crate::socket::{self, Options};
use crate::stream::content;
use crate::sys;
use rustix::net::SendFlags;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Who closes first. That end keeps the connection's port for a minute (TIME_WAIT), unless it is reset.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Closing {
    /// Who answered, after the answer: who asks never runs out of ports.
    #[default]
    Answerer,
    /// Who asked, after the answer: as clients mostly do. Ports run out at some 28,000 connections in a minute.
    Asker,
    /// Who asked resets the connection: nobody keeps anything.
    Reset,
}

/// A connection for each transaction.
#[derive(Debug, Clone)]
pub struct Connecting {
    /// To whom.
    pub to: SocketAddr,
    /// What each socket is like.
    pub options: Options,
    /// Bytes of a request; 0 and 0: connections are only made and closed.
    pub request: usize,
    /// Bytes of a response.
    pub response: usize,
    /// Who closes first.
    pub closing: Closing,
    /// A connection that does not come about by then is a failure.
    pub patience: Duration,
    /// Own ports, both included, used in turn. None: the kernel's choice.
    pub ports: Option<(u16, u16)>,
    /// Waits for responses without ever sleeping.
    pub spin: bool,
}

impl Connecting {
    fn sizes(&self) -> (usize, usize) {
        (self.request, self.response)
    }
}

/// Makes connections one after the other until it is over. Time runs from before the socket is made until it is closed.
pub fn ask_each(connecting: &Connecting, until: &Until, progress: &Progress, latency: &Latency) -> Done {
    let mut done = Done::new();
    let (request, response) = connecting.sizes();
    let asked = content(request);
    let mut room = vec![0; response + 1];
    let mut port = connecting.ports.map(|ports| ports.0);
    let range = connecting.ports.map_or(0, |(from, to)| u32::from(to.saturating_sub(from)) + 1);
    // Ports in turn that were not free.
    let mut taken = 0;
    let end = loop {
        let began = Instant::now();
        if let Some(end) = until.over(began) {
            break end;
        }
        if until.counted(done.count) {
            break End::Amount;
        }
        match one(connecting, port, &asked, &mut room, until) {
            Ok(true) => {
                let now = Instant::now();
                latency.record(now - began);
                done.add(request + response, now);
                progress.add(request + response);
                taken = 0;
            }
            Ok(false) => break until.over(Instant::now()).unwrap_or(End::Stopped),
            // Another program has it, or it rests after a connection (TIME_WAIT): the next one serves as well, as netperf has it.
            Err(error) if port.is_some() && is_taken(&error) => {
                taken += 1;
                if taken >= range {
                    break End::Failed(io::Error::new(
                        error.kind(),
                        format!("none of the {range} ports that were given is free: {error}"),
                    ));
                }
            }
            Err(error) => break End::Failed(error),
        }
        if let (Some(port), Some((from, to))) = (&mut port, connecting.ports) {
            *port = if *port >= to { from } else { *port + 1 };
        }
    };
    done.end(end)
}

fn is_taken(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::AddrInUse | io::ErrorKind::AddrNotAvailable)
}

fn one(
    connecting: &Connecting,
    port: Option<u16>,
    asked: &[u8],
    room: &mut [u8],
    until: &Until,
) -> io::Result<bool> {
    let options = Options { port: port.or(connecting.options.port), ..connecting.options.clone() };
    // The patience stays the limit of its sending: that is one call less for each connection.
    let socket = socket::dial(connecting.to, &options, connecting.patience)
        .map_err(|error| io::Error::new(error.io().kind(), error))?;
    if !connecting.spin {
        sys::set_timeout(&socket, libc::SO_RCVTIMEO, phase::LOOK)?;
    }
    if !asked.is_empty() && !whole(&socket, asked, SendFlags::empty(), until)? {
        return Ok(false);
    }
    let response = room.len().saturating_sub(1);
    let mut got = 0;
    let by_asker = connecting.closing != Closing::Answerer;
    let closes = Instant::now() + connecting.patience;
    while !(by_asker && got >= response) {
        match take(&socket, room.get_mut(got..).unwrap_or_default(), connecting.spin) {
            Ok(0) if got == response => break,
            Ok(0) => {
                let said = format!("the peer closed the connection after {got} of {response} bytes");
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, said));
            }
            Ok(count) => got += count,
            Err(error) if phase::is_again(&error) => {
                let now = Instant::now();
                if until.over(now).is_some() {
                    return Ok(false);
                }
                if now >= closes {
                    return Err(io::Error::new(io::ErrorKind::TimedOut, "no answer"));
                }
            }
            Err(error) => return Err(error),
        }
        if got > response {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the peer said more than it was to"));
        }
    }
    if connecting.closing == Closing::Reset {
        sys::set_reset_on_close(&socket)?;
    }
    Ok(true)
}

/// How connections are answered.
#[derive(Debug, Clone, Copy)]
pub struct Answering {
    /// Bytes of a request.
    pub request: usize,
    /// Bytes of a response.
    pub response: usize,
    /// Who closes first.
    pub closing: Closing,
    /// Waits for connections and requests without ever sleeping.
    pub spin: bool,
}

/// Accepts connections of `from` (None: of anybody), answers each, and closes it, until it is over.
pub fn answer_each(
    listener: &TcpListener,
    answering: Answering,
    from: Option<std::net::IpAddr>,
    until: &Until,
    progress: &Progress,
) -> Done {
    let mut done = Done::new();
    let Answering { request, response, .. } = answering;
    let said = content(response);
    let mut room = vec![0; request.max(1)];
    // What is accepted inherits the timeout, and does not inherit that the listener does not wait.
    let set = sys::set_timeout(listener, libc::SO_RCVTIMEO, phase::LOOK)
        .and_then(|()| listener.set_nonblocking(answering.spin));
    if let Err(error) = set {
        return done.end(End::Failed(error));
    }
    let end = loop {
        if let Some(end) = until.over(Instant::now()) {
            break end;
        }
        if until.counted(done.count) {
            break End::Amount;
        }
        let socket = match listener.accept() {
            Ok((socket, peer)) if from.is_none_or(|from| peer.ip().to_canonical() == from.to_canonical()) => {
                socket
            }
            Ok(_) => continue,
            Err(error) if phase::is_again(&error) || error.kind() == io::ErrorKind::ConnectionAborted => {
                continue;
            }
            Err(error) => break End::Failed(error),
        };
        // A connection that breaks is one that did not count; who made it knows.
        if serve(&socket, answering, &said, &mut room, until).unwrap_or(false) {
            done.add(request + response, Instant::now());
            progress.add(request + response);
        }
    };
    done.end(end)
}

/// How long a connection that was accepted may take: nobody else is served meanwhile.
const PATIENCE: Duration = Duration::from_secs(2);

fn serve(
    socket: &TcpStream,
    answering: Answering,
    said: &[u8],
    room: &mut [u8],
    until: &Until,
) -> io::Result<bool> {
    let Answering { request, closing, spin, .. } = answering;
    let by = Instant::now() + PATIENCE;
    let mut got = 0;
    while got < request {
        match take(socket, room.get_mut(got..request).unwrap_or_default(), spin) {
            Ok(0) => return Ok(false),
            Ok(count) => got += count,
            Err(error)
                if phase::is_again(&error) && Instant::now() < by && until.over(Instant::now()).is_none() => {
            }
            Err(error) => return Err(error),
        }
    }
    let until = Until { deadline: Some(by), ..Until::stopped(&until.stop) };
    // Closed right after it, the response and the end of the connection leave in one segment.
    let flags = if closing == Closing::Answerer { SendFlags::MORE } else { SendFlags::empty() };
    if !said.is_empty() && !whole(socket, said, flags, &until)? {
        return Ok(false);
    }
    if closing == Closing::Answerer {
        return Ok(true);
    }
    loop {
        match take(socket, room, spin) {
            Ok(0) => break,
            Ok(_) => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => break,
            Err(error) if phase::is_again(&error) && until.over(Instant::now()).is_none() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}
