//! An agent's connection to its clone: made, shown to have the key, used, and made again when it breaks. Nothing here waits: each step
//! does what can be done at once.
//!
//! ```text
//!   down --time--> connecting --> greeting --> asking (HELLO) --WELCOME--> up
//!    ^----- refused, broken, silent for 10 s, END: after 0.5 s, then twice as long each time, 10 s at most -----'
//! ```

use super::copies::{begin, now_real};
use clone::remote::channel::{Asking, Channel, Frames, Key};
use clone::remote::forward::Forwarder;
use clone::remote::record::{Reader, Record, VERSION};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown, sockopt};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// A connection, and the clone's welcome, have so long.
const PATIENCE: Duration = Duration::from_secs(5);
/// A clone says twice a second that it is there.
const SILENCE: Duration = Duration::from_secs(10);
const SOONEST: Duration = Duration::from_millis(500);
const LATEST: Duration = Duration::from_secs(10);
/// A clone says no more than some words.
const MOST_HEARD: usize = 2048;

enum State {
    Down {
        until: Instant,
    },
    Connecting {
        socket: OwnedFd,
        since: Instant,
    },
    Greeting {
        socket: OwnedFd,
        since: Instant,
        asking: Box<Asking>,
    },
    /// Until the clone's welcome `up` is false.
    Talking {
        socket: OwnedFd,
        channel: Box<Channel>,
        heard: Instant,
        up: bool,
    },
}

/// What became of a step.
pub enum Happened {
    /// The clone takes what is forwarded.
    Up,
    /// There was no connection, and there is none.
    Failed(String),
    /// There is none any more.
    Gone(String),
}

/// The connection.
pub struct Link {
    to: SocketAddr,
    key: Key,
    server: (Option<IpAddr>, u16),
    state: State,
    backoff: Duration,
    frames: Frames,
    /// Encrypted, and not taken by the socket yet, from `at` on.
    out: Vec<u8>,
    at: usize,
    sent: u64,
    connections: u64,
    closing: bool,
    refuses: Refuses,
}

/// Why a clone's target may not be one.
pub type Refuses = Box<dyn Fn(SocketAddr) -> Option<String>>;

impl Link {
    /// `refuses` is asked about the targets of each clone that it is connected to.
    pub fn new(to: SocketAddr, key: Key, server: (Option<IpAddr>, u16), refuses: Refuses) -> Link {
        Link {
            refuses,
            to,
            key,
            server,
            state: State::Down { until: Instant::now() },
            backoff: SOONEST,
            frames: Frames::default(),
            out: Vec::new(),
            at: 0,
            sent: 0,
            connections: 0,
            closing: false,
        }
    }

    pub fn to(&self) -> SocketAddr {
        self.to
    }

    /// Bytes that sockets took.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    pub fn connections(&self) -> u64 {
        self.connections
    }

    pub fn is_up(&self) -> bool {
        matches!(self.state, State::Talking { up: true, .. })
    }

    /// Has the socket taken all there was?
    pub fn is_idle(&self) -> bool {
        self.at == self.out.len()
    }

    /// Says that nothing more comes: the clone closes its side then.
    pub fn close(&mut self) {
        if let (State::Talking { socket, .. }, false) = (&self.state, self.closing) {
            self.closing = true;
            let _ = shutdown(socket, Shutdown::Write);
        }
    }

    /// What is waited for, and whether for room in it.
    pub fn socket(&self) -> Option<(&OwnedFd, bool)> {
        match &self.state {
            State::Down { .. } => None,
            State::Connecting { socket, .. } => Some((socket, true)),
            State::Greeting { socket, .. } | State::Talking { socket, .. } => Some((socket, !self.is_idle())),
        }
    }

    /// Does what can be done.
    pub fn step(&mut self, forwarder: &mut Forwarder) -> Option<Happened> {
        let was_up = self.is_up();
        match self.go(forwarder) {
            Ok(false) => None,
            Ok(true) => {
                self.backoff = SOONEST;
                self.connections += 1;
                Some(Happened::Up)
            }
            Err(why) => {
                forwarder.unlink();
                self.state = State::Down { until: Instant::now() + self.backoff };
                self.backoff = (self.backoff * 2).min(LATEST);
                self.frames = Frames::default();
                self.out.clear();
                self.at = 0;
                Some(if was_up { Happened::Gone(why) } else { Happened::Failed(why) })
            }
        }
    }

    /// Has the clone just welcomed it? An error ends the connection.
    fn go(&mut self, forwarder: &mut Forwarder) -> Result<bool, String> {
        if let State::Down { until } = self.state
            && Instant::now() >= until
        {
            let socket = begin(self.to, None).map_err(|errno| errno.to_string())?;
            self.state = State::Connecting { socket, since: Instant::now() };
        }
        if let State::Connecting { socket, since } = &self.state {
            let since = *since;
            match sockopt::socket_error(socket) {
                Ok(Ok(())) => {}
                Ok(Err(errno)) | Err(errno) => {
                    return Err(format!("it cannot be connected to: {errno}"));
                }
            }
            // Without a peer it is not connected yet.
            if rustix::net::getpeername(socket).ok().flatten().is_none() {
                return late(since, "it does not answer").map(|()| false);
            }
            let (asking, greeting) = Asking::begin(&self.key).map_err(|broken| broken.to_string())?;
            (self.out, self.at) = (greeting, 0);
            let down = State::Down { until: since };
            if let State::Connecting { socket, since } = std::mem::replace(&mut self.state, down) {
                self.state = State::Greeting { socket, since, asking: Box::new(asking) };
            }
        }
        self.hear(forwarder).and_then(|welcomed| {
            self.speak(forwarder)?;
            Ok(welcomed)
        })
    }

    /// What the clone says.
    fn hear(&mut self, forwarder: &mut Forwarder) -> Result<bool, String> {
        let (socket, since) = match &self.state {
            State::Down { .. } | State::Connecting { .. } => return Ok(false),
            State::Greeting { socket, since, .. } => (socket, *since),
            State::Talking { socket, heard, .. } => (socket, *heard),
        };
        let mut buffer = [0; MOST_HEARD];
        let greeting = matches!(self.state, State::Greeting { .. });
        let count = match recv(socket, &mut buffer[..], RecvFlags::DONTWAIT) {
            Ok((_, 0)) if greeting => {
                return Err(
                    "it closed the connection without an answer: is it a clone that listens (`.listen`)?"
                        .to_owned(),
                );
            }
            Ok((_, 0)) => return Err("it closed the connection".to_owned()),
            Ok((_, count)) => count,
            Err(Errno::AGAIN | Errno::INTR) => {
                let most = if self.is_up() { SILENCE } else { PATIENCE };
                if since.elapsed() > most {
                    return Err("it says nothing".to_owned());
                }
                return Ok(false);
            }
            Err(errno) => return Err(errno.to_string()),
        };
        self.frames.push(buffer.get(..count).unwrap_or_default());
        let mut welcomed = false;
        while let Some(frame) = self.frames.next().map(<[u8]>::to_vec) {
            welcomed |= self.frame(&frame, forwarder)?;
        }
        if self.frames.announced().is_some_and(|length| length > MOST_HEARD) {
            return Err("what it says is no clone's".to_owned());
        }
        Ok(welcomed)
    }

    fn frame(&mut self, frame: &[u8], forwarder: &mut Forwarder) -> Result<bool, String> {
        let down = State::Down { until: Instant::now() };
        if matches!(self.state, State::Greeting { .. }) {
            let State::Greeting { socket, asking, .. } = std::mem::replace(&mut self.state, down) else {
                return Ok(false);
            };
            let channel = asking.answered(frame).map_err(|_| {
                "it has another key, or speaks another version; both ends need the same file (`.key`)"
                    .to_owned()
            })?;
            let (server, port) = self.server;
            let heard = Instant::now();
            self.state = State::Talking { socket, channel: Box::new(channel), heard, up: false };
            let mut plain = now_real().to_be_bytes().to_vec();
            Record::Hello { version: VERSION, server, port }.put(&mut plain);
            return self.seal(&plain).map(|()| false);
        }
        let State::Talking { channel, heard, up, .. } = &mut self.state else { return Ok(false) };
        *heard = Instant::now();
        let mut plain = Vec::new();
        channel.open(frame, &mut plain).map_err(|broken| broken.to_string())?;
        let mut reader = Reader(&plain);
        let mut welcomed = false;
        while let Some(record) = reader.record().map_err(|_| "what it says is not understood")? {
            match record {
                Record::Welcome { adopts, targets } => {
                    if let Some(why) = targets.into_iter().flatten().find_map(&self.refuses) {
                        return Err(self.refuse(why));
                    }
                    (*up, welcomed) = (true, true);
                    forwarder.link(adopts);
                }
                Record::Heard => {}
                Record::Refused(why) => {
                    return Err(format!("it refuses this capture: {}", report::units::printable(why)));
                }
                Record::End => return Err("it has ended".to_owned()),
                _ => return Err("what it says is not understood".to_owned()),
            }
        }
        Ok(welcomed)
    }

    /// Tells the clone why nothing is forwarded to it.
    fn refuse(&mut self, why: String) -> String {
        let mut plain = now_real().to_be_bytes().to_vec();
        Record::Refused(&why).put(&mut plain);
        if self.seal(&plain).is_ok()
            && let State::Talking { socket, .. } = &self.state
        {
            let rest = self.out.get(self.at..).unwrap_or_default();
            // A clone that does not hear it sees that the connection is closed.
            let _ = send(socket, rest, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
        }
        why
    }

    fn seal(&mut self, plain: &[u8]) -> Result<(), String> {
        let State::Talking { channel, .. } = &mut self.state else { return Ok(()) };
        channel.seal(plain, &mut self.out).map_err(|broken| broken.to_string())
    }

    /// Says what there is room for.
    fn speak(&mut self, forwarder: &mut Forwarder) -> Result<(), String> {
        loop {
            if self.is_idle() {
                self.out.clear();
                self.at = 0;
                let Some(piece) = self.is_up().then(|| forwarder.take()).flatten() else { return Ok(()) };
                let mut plain = now_real().to_be_bytes().to_vec();
                plain.extend_from_slice(&piece);
                self.seal(&plain)?;
            }
            let (State::Greeting { socket, .. } | State::Talking { socket, .. }) = &self.state else {
                return Ok(());
            };
            let rest = self.out.get(self.at..).unwrap_or_default();
            match send(socket, rest, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(count) => {
                    self.at += count;
                    self.sent += count as u64;
                }
                Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
                Err(errno) => return Err(errno.to_string()),
            }
        }
    }
}

fn late(since: Instant, why: &str) -> Result<(), String> {
    if since.elapsed() > PATIENCE { Err(why.to_owned()) } else { Ok(()) }
}
