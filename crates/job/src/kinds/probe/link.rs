//! A collector that gets messages over TCP (RFC 7011, 10.4): its connection, what waits for it, and what became of that.
//!
//! Nothing here waits. Who sends calls [`Link::work`] now and then, which goes on with what can go on. What waits is bounded; what
//! finds no room is lost to this collector, and so is what was on its way when a connection broke.

use super::sender::{Tally, Waiting};
use flow::export::{Opening, Session, Status};
use flow::stream::Stream;
use report::Collector;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with, sockopt};
use std::collections::VecDeque;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Bytes that wait for a connection: some 1.4 million records.
const MOST_WAITING: usize = 64 << 20;
/// A connection that was refused or broke is tried again after so long.
const AGAIN: Duration = Duration::from_secs(1);
/// A connection that is not made by then is given up.
const CONNECTS: Duration = Duration::from_secs(10);
/// Who took nothing for so long is not waited for.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes that are written at once.
const PIECE: usize = 64 << 10;

/// A collector at the other end of a connection.
#[derive(Debug)]
pub struct Link {
    to: SocketAddr,
    stream: Stream,
    /// Numbers what goes to this collector.
    session: Session,
    state: State,
    /// What was not written yet.
    waiting: VecDeque<Numbered>,
    /// What was, with the byte of the connection that it ends at. Its collector's host has not said that it is there.
    on_its_way: VecDeque<(u64, Numbered)>,
    /// Bytes of both.
    held: usize,
    /// Bytes that go over the connection next, from `at` on.
    piece: Vec<u8>,
    at: usize,
    /// Bytes that went into the connection's socket.
    written: u64,
    /// When it last took something.
    took: Instant,
    pub collector: Collector,
}

/// A message, and its number among all that go to the collector.
#[derive(Debug, Clone)]
struct Numbered {
    number: u32,
    message: Arc<Waiting>,
}

#[derive(Debug)]
enum State {
    Down { again: Instant },
    Coming { socket: TcpStream, since: Instant },
    Up(TcpStream),
}

impl Link {
    /// Each connection begins with `opening`.
    pub fn new(to: SocketAddr, session: Session, opening: Opening) -> Link {
        let now = Instant::now();
        let collector = Collector { to: format!("tcp://{to}"), connections: Some(0), ..Collector::default() };
        Link {
            to,
            stream: Stream::new(opening),
            session,
            state: State::Down { again: now },
            waiting: VecDeque::new(),
            on_its_way: VecDeque::new(),
            held: 0,
            piece: Vec::new(),
            at: 0,
            written: 0,
            took: now,
            collector,
        }
    }

    /// It is waited for from now on.
    pub fn begin(&mut self) {
        self.took = Instant::now();
    }

    /// There is no room for a message, but there will be: it is worth waiting.
    pub fn is_worth_waiting(&self) -> bool {
        self.held >= MOST_WAITING && self.is_moving()
    }

    fn is_moving(&self) -> bool {
        self.took.elapsed() < PATIENCE
    }

    /// It has something to do in a moment.
    pub fn is_busy(&self) -> bool {
        self.held > 0 || !matches!(self.state, State::Up(_))
    }

    /// Takes a message along, if there is room for it. One that is lost is a gap in the numbers.
    pub fn take(&mut self, message: &Arc<Waiting>) {
        let number = self.session.number(message.numbers);
        self.hold(Numbered { number, message: Arc::clone(message) });
    }

    /// Takes along what the probe says of itself.
    pub fn status(&mut self, status: &Status, times: (u64, u64)) {
        let mut messages = Vec::new();
        self.session.status(status, times, &mut |message, numbers| {
            messages.push(Waiting::of_the_probe(message.to_vec(), numbers));
        });
        messages.into_iter().for_each(|message| self.take(&Arc::new(message)));
    }

    fn hold(&mut self, numbered: Numbered) {
        if self.held >= MOST_WAITING {
            self.lost(&numbered.message);
            return;
        }
        self.held += numbered.message.bytes.len();
        self.waiting.push_back(numbered);
    }

    /// Goes on: connects, writes, hears what arrived.
    pub fn work(&mut self, tally: &mut Tally) {
        match &mut self.state {
            State::Down { again } => {
                let now = Instant::now();
                if now >= *again {
                    self.state = match connect(self.to) {
                        Ok(socket) => State::Coming { socket, since: now },
                        Err(_) => State::Down { again: now + AGAIN },
                    };
                }
            }
            State::Coming { socket, since } => match arrived(socket) {
                None if since.elapsed() < CONNECTS => {}
                Some(true) => self.up(),
                None | Some(false) => self.state = State::Down { again: Instant::now() + AGAIN },
            },
            State::Up(_) => {}
        }
        if let State::Up(socket) = &mut self.state {
            let closed = is_closed(socket);
            let broken = closed || self.write().is_err();
            self.hear(tally);
            if broken {
                self.down(tally);
            }
        }
    }

    fn up(&mut self) {
        let before = std::mem::replace(&mut self.state, State::Down { again: Instant::now() });
        if let State::Coming { socket, .. } = before {
            self.piece = self.stream.begin(clocks::now(clocks::Clock::Realtime));
            (self.at, self.written) = (0, 0);
            self.took = Instant::now();
            if let Some(connections) = &mut self.collector.connections {
                *connections += 1;
            }
            self.state = State::Up(socket);
        }
    }

    /// Writes what the socket has room for.
    fn write(&mut self) -> std::io::Result<()> {
        let State::Up(socket) = &mut self.state else { return Ok(()) };
        loop {
            if self.at == self.piece.len() {
                self.piece.clear();
                self.at = 0;
                while self.piece.len() < PIECE {
                    let Some(one) = self.waiting.pop_front() else { break };
                    self.stream.add(&one.message.bytes, one.number, &mut self.piece);
                    self.on_its_way.push_back((self.written + self.piece.len() as u64, one));
                }
                if self.piece.is_empty() {
                    return Ok(());
                }
            }
            match socket.write(self.piece.get(self.at..).unwrap_or_default()) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.at += count;
                    self.written += count as u64;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Counts what is there.
    fn hear(&mut self, tally: &mut Tally) {
        let State::Up(socket) = &self.state else { return };
        // Where that cannot be asked, nothing is known to be there.
        let Ok(left) = port::socket::unacknowledged(socket) else { return };
        let there = self.written.saturating_sub(left);
        while self.on_its_way.front().is_some_and(|(end, _)| *end <= there) {
            let Some((_, Numbered { message, .. })) = self.on_its_way.pop_front() else { break };
            self.collector.messages += 1;
            self.session.went(message.bytes.len() as u64, message.counts[0]);
            self.took = Instant::now();
            self.held = self.held.saturating_sub(message.bytes.len());
            message.taken.store(true, Relaxed);
            tally.settle(message);
        }
    }

    /// The connection is no more. What was written whole may be there or not, and counts as lost: sent again it might be counted
    /// twice. The rest goes over the next one.
    fn down(&mut self, tally: &mut Tally) {
        let written = self.written;
        while let Some((end, one)) = self.on_its_way.pop_back() {
            if end > written {
                self.waiting.push_front(one);
            } else {
                self.lose(one.message, tally);
            }
        }
        self.state = State::Down { again: Instant::now() + AGAIN };
    }

    fn lose(&mut self, message: Arc<Waiting>, tally: &mut Tally) {
        self.held = self.held.saturating_sub(message.bytes.len());
        self.lost(&message);
        tally.settle(message);
    }

    /// What the probe says of itself is no loss: it says it again.
    fn lost(&mut self, message: &Waiting) {
        self.collector.lost_messages += u64::from(message.counts[0] > 0);
    }

    /// Nothing more comes: true when all is there, or will not be.
    pub fn is_done(&self) -> bool {
        self.held == 0 || !self.is_moving()
    }

    /// Closes the connection, and gives up what has not gone.
    pub fn end(mut self, tally: &mut Tally) -> Collector {
        self.down(tally);
        while let Some(one) = self.waiting.pop_front() {
            self.lose(one.message, tally);
        }
        self.collector
    }
}

/// Begins to connect.
fn connect(to: SocketAddr) -> std::io::Result<TcpStream> {
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    // An end that is gone without a word is found out.
    sockopt::set_socket_keepalive(&socket, true)?;
    match rustix::net::connect(&socket, &to) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(TcpStream::from(socket)),
        Err(error) => Err(error.into()),
    }
}

/// Whether a connection was established, once that is known.
fn arrived(socket: &TcpStream) -> Option<bool> {
    let mut asked = [PollFd::new(socket, PollFlags::OUT)];
    match poll(&mut asked, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
        Ok(0) | Err(_) => None,
        // Where nobody listens, a port of this host can connect to itself.
        Ok(_) => Some(
            matches!(socket.take_error(), Ok(None))
                && socket.local_addr().is_ok_and(|own| socket.peer_addr().is_ok_and(|other| other != own)),
        ),
    }
}

/// A collector has nothing to say: what can be read is the end.
fn is_closed(socket: &mut TcpStream) -> bool {
    let mut said = [0; 512];
    loop {
        match socket.read(&mut said) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return error.kind() != ErrorKind::WouldBlock,
        }
    }
}
