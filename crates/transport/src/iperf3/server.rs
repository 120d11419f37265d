//! A server: accepts, reads cookies, and gives each client a session of its own.
//!
//! ```text
//!   TCP: a cookie of a session that opens streams --> that session;   any other cookie --> a new session, if there is room
//!   UDP: a datagram from the address of a client whose session opens streams --> a socket of its own, which answers
//! ```
//!
//! No first datagram is answered without such a session, and the answer is no longer than it: nobody is sent anything who did not
//! ask for it over TCP.

use super::Show;
use super::control::Control;
use super::data::Link;
use super::open::{self, Stray};
use super::session::{self, Session};
use crate::lobby::{Budget, Lobby, leaves};
use crate::socket::{self, Options};
use endpoint::iperf3::cookie::LEN;
use endpoint::iperf3::params::{Params, Protocol};
use endpoint::iperf3::{Cookie, server};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::HashMap;
use std::collections::VecDeque;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Signals and ended sessions are looked for so often.
const LOOK: Duration = Duration::from_millis(50);
/// A cookie comes within so long.
const COOKIE: Duration = Duration::from_secs(10);
/// Connections whose cookie has not come, at most: of the address that has the most of them the oldest leaves for the next one.
const PENDING: usize = 256;
/// The same of clients whose test has not begun.
const STRANGERS: usize = 256;

/// What a server allows.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Tests at once; the next client is told that the server is busy.
    pub sessions: u64,
    /// Bytes that all tests' buffers take together, the kernel's among them where they are asked for.
    pub memory: u64,
    /// Bits a second of one test, and over how many seconds they are averaged. 0: any.
    pub rate: (u64, u64),
    /// Seconds of a test. 0: any.
    pub seconds: u32,
    /// Data must come within so long.
    pub receive_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        let receive_timeout = Duration::from_secs(120);
        Limits { sessions: 64, memory: 1 << 30, rate: (0, 5), seconds: 0, receive_timeout }
    }
}

/// A stream, with a number by which a test's are in order.
pub(super) type Numbered = (u64, Link);

/// Says who a token is from, or why nobody may test with it.
pub type Check = dyn Fn(Option<&str>) -> Result<(), String> + Send + Sync;
/// Makes what shows a test.
pub type News = dyn Fn() -> Box<dyn Show> + Send + Sync;

/// How a server is to be.
pub struct Server {
    /// Own address; none: all.
    pub bind: Option<IpAddr>,
    /// IPv6 alone, or IPv4 alone.
    pub family: Option<bool>,
    /// Port for TCP and UDP.
    pub port: u16,
    /// Interface.
    pub device: Option<String>,
    /// Its listener takes Multipath TCP.
    pub mptcp: bool,
    /// One test, then it ends.
    pub one_off: bool,
    /// Without a client for so long, a server of one test ends.
    pub idle_timeout: Option<Duration>,
    /// What it allows.
    pub limits: Limits,
    /// Seconds of an interval; 0: one.
    pub interval: f64,
    /// The core of its tests.
    pub core: Option<u32>,
    /// A file to send or to write.
    pub file: Option<PathBuf>,
    /// A connection whose data is not acknowledged for so long ends.
    pub send_timeout: Option<Duration>,
    /// Control connections are asked whether their peers are still there.
    pub keep_alive: Option<super::open::KeepAlive>,
    /// For the output: what uname(2) says.
    pub system: String,
    /// Who may test.
    pub check: Option<Box<Check>>,
    /// Ends it.
    pub stop: Arc<AtomicBool>,
    /// What it has served so far.
    pub tally: Arc<Tally>,
}

/// What a server has served so far, for whoever looks on.
#[derive(Debug, Default)]
pub struct Tally {
    /// Tests that are over.
    pub tests: AtomicU64,
    /// Those of them that did not come to their end.
    pub broken: AtomicU64,
    /// Connections that were refused, or meant nothing.
    pub refused: AtomicU64,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("port", &self.port)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// A session as the accepting thread knows it.
#[derive(Debug)]
struct Entry {
    peer: IpAddr,
    local: SocketAddr,
    opens: Option<Opens>,
}

/// A session waits for its streams.
#[derive(Debug)]
struct Opens {
    params: Params,
    /// Of all that the client opens, this many came.
    got: usize,
    to: Sender<Numbered>,
}

/// What the accepting thread and its sessions share.
pub(super) struct Shared {
    pub(super) server: Server,
    sessions: Mutex<HashMap<Cookie, Entry>>,
    /// Clients whose test has not begun.
    pub(super) strangers: Arc<Lobby>,
    /// Tests at once.
    pub(super) tests: Budget,
    pub(super) memory: Budget,
    pub(super) stop: AtomicBool,
    /// Tests that came to an end, good or bad.
    ended: AtomicU64,
    failed: AtomicBool,
}

impl Shared {
    fn sessions(&self) -> MutexGuard<'_, HashMap<Cookie, Entry>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session lets its client open streams. Datagrams have no cookie: of the sessions of one address that wait for some, one is
    /// served at a time; the others get `false`.
    pub(super) fn opens(&self, cookie: &Cookie, params: &Params, to: &Sender<Numbered>) -> bool {
        let mut sessions = self.sessions();
        let Some(peer) = sessions.get(cookie).map(|entry| entry.peer) else { return false };
        let taken = sessions.values().any(|other| {
            other.peer == peer
                && other.opens.as_ref().is_some_and(|opens| opens.params.protocol == Protocol::Udp)
        });
        if taken && params.protocol == Protocol::Udp {
            return false;
        }
        if let Some(entry) = sessions.get_mut(cookie) {
            entry.opens = Some(Opens { params: params.clone(), got: 0, to: to.clone() });
        }
        true
    }

    /// A session is over. What never came to a test does not end a server of one test.
    fn over(&self, done: session::Done) {
        let tally = &self.server.tally;
        if done == session::Done::NoTest {
            tally.refused.fetch_add(1, Relaxed);
            return;
        }
        let failed = done == session::Done::Failed;
        tally.broken.fetch_add(u64::from(failed), Relaxed);
        tally.tests.fetch_add(1, Relaxed);
        self.failed.store(failed, Relaxed);
        self.ended.fetch_add(1, Relaxed);
    }

    /// It has them all, or no longer waits.
    pub(super) fn opened(&self, cookie: &Cookie) {
        if let Some(entry) = self.sessions().get_mut(cookie) {
            entry.opens = None;
        }
    }
}

/// A connection whose cookie has not come yet.
struct Pending {
    stream: TcpStream,
    peer: SocketAddr,
    bytes: Vec<u8>,
    since: Instant,
    number: u64,
}

impl Server {
    /// Serves until it is stopped, or after one test. `listening` is called before each wait for a first client, with the test's
    /// number; `bound` once, when its ports are there and before the first client is accepted. True: the last test came to its end.
    ///
    /// # Errors
    /// The port is not to be had.
    pub fn serve(
        self,
        news: &News,
        bound: &dyn Fn(),
        listening: &(dyn Fn(u64) + Sync),
    ) -> Result<bool, String> {
        let failed =
            |error: &dyn std::fmt::Display| format!("unable to start listener for connections: {error}");
        let at = self.address();
        let options = Options {
            device: self.device.clone(),
            mptcp: self.mptcp,
            v6_only: self.family == Some(true),
            ..Options::default()
        };
        let listener = match socket::listen(at, &options, 128) {
            Ok(listener) => listener,
            // A host without IPv6.
            Err(_) if at.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED) && self.family.is_none() => {
                let at = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), self.port);
                socket::listen(at, &options, 128).map_err(|error| failed(&error))?
            }
            Err(error) => return Err(failed(&error)),
        };
        listener.set_nonblocking(true).map_err(|error| failed(&error))?;
        let at = listener.local_addr().map_err(|error| failed(&error))?;
        let greeted = open::greeted(at).map_err(|error| failed(&error))?;
        bound();
        let shared = Shared {
            strangers: Lobby::new(STRANGERS),
            tests: Budget::new(if self.one_off { 1 } else { self.limits.sessions }),
            memory: Budget::new(self.limits.memory),
            server: self,
            sessions: Mutex::default(),
            stop: AtomicBool::new(false),
            ended: AtomicU64::new(0),
            failed: AtomicBool::new(false),
        };
        std::thread::scope(|scope| {
            let accepting = Accepting {
                shared: &shared,
                news,
                listening,
                listener,
                greeted,
                pending: VecDeque::new(),
                accepted: 0,
            };
            accepting.run(scope);
            shared.stop.store(true, Relaxed);
        });
        Ok(!shared.failed.load(Relaxed))
    }

    fn address(&self) -> SocketAddr {
        let any = match self.family {
            Some(false) => Ipv4Addr::UNSPECIFIED.into(),
            // IPv4 too, unless IPv6 alone is asked for.
            _ => Ipv6Addr::UNSPECIFIED.into(),
        };
        SocketAddr::new(self.bind.unwrap_or(any), self.port)
    }
}

struct Accepting<'a> {
    shared: &'a Shared,
    news: &'a News,
    listening: &'a (dyn Fn(u64) + Sync),
    listener: TcpListener,
    greeted: UdpSocket,
    pending: VecDeque<Pending>,
    accepted: u64,
}

impl<'a> Accepting<'a> {
    /// One more that was refused, or meant nothing.
    fn refuses(&self) {
        self.shared.server.tally.refused.fetch_add(1, Relaxed);
    }

    fn run<'scope>(mut self, scope: &'scope std::thread::Scope<'scope, 'a>)
    where
        'a: 'scope,
    {
        let server = &self.shared.server;
        let mut said = 0;
        let mut idle = Instant::now();
        loop {
            let ended = self.shared.ended.load(Relaxed);
            if server.stop.load(Relaxed) || (server.one_off && ended > 0) {
                return;
            }
            let serving = !self.shared.sessions().is_empty();
            if serving {
                idle = Instant::now();
            } else if said <= ended && !server.one_off || said == 0 {
                said = ended + 1;
                (self.listening)(said);
            }
            if server.one_off && server.idle_timeout.is_some_and(|timeout| idle.elapsed() > timeout) {
                return;
            }
            self.wait();
            self.accept();
            self.greet();
            self.read(scope);
        }
    }

    /// Until something comes, or for a moment.
    fn wait(&self) {
        let mut all =
            vec![PollFd::new(&self.listener, PollFlags::IN), PollFd::new(&self.greeted, PollFlags::IN)];
        all.extend(self.pending.iter().map(|pending| PollFd::new(&pending.stream, PollFlags::IN)));
        let timeout = Timespec::try_from(LOOK).ok();
        let _ = poll(&mut all, timeout.as_ref());
    }

    fn accept(&mut self) {
        for _ in 0..PENDING {
            match self.listener.accept() {
                Ok((stream, peer)) => {
                    if stream.set_nonblocking(true).is_err() {
                        continue;
                    }
                    if self.pending.len() >= PENDING {
                        let all = self.pending.iter().enumerate();
                        let leaves = leaves(all.map(|(at, one)| (at, Some(one.peer.ip()))), Some(peer.ip()));
                        if leaves.and_then(|at| self.pending.remove(at)).is_some() {
                            self.refuses();
                        }
                    }
                    self.accepted += 1;
                    self.pending.push_back(Pending {
                        stream,
                        peer,
                        bytes: Vec::with_capacity(LEN),
                        since: Instant::now(),
                        number: self.accepted,
                    });
                }
                Err(error) => {
                    // Out of descriptors: what is there must end first.
                    if !crate::phase::is_again(&error) && error.kind() != io::ErrorKind::ConnectionAborted {
                        std::thread::sleep(Duration::from_millis(10));
                    }
                    return;
                }
            }
        }
    }

    /// First datagrams.
    fn greet(&mut self) {
        let mut strays: Vec<Stray> = Vec::new();
        let mut buffer = [0; 64];
        for _ in 0..PENDING {
            let from = match strays.pop() {
                Some((from, _)) => from,
                None => match self.greeted.recv_from(&mut buffer) {
                    Ok((_, from)) => from,
                    Err(_) => return,
                },
            };
            let mut sessions = self.shared.sessions();
            let waits = sessions.values_mut().find(|entry| {
                entry.peer == from.ip().to_canonical()
                    && entry.opens.as_ref().is_some_and(|opens| {
                        opens.params.protocol == Protocol::Udp
                            && opens.got < opens.params.client_sends().len()
                    })
            });
            // Nobody asked for it.
            let Some(entry) = waits else { continue };
            let Some(opens) = &mut entry.opens else { continue };
            let sender = !opens.params.client_sends().get(opens.got).copied().unwrap_or(true);
            let from = SocketAddr::new(from.ip().to_canonical(), from.port());
            // IPv6's scope belongs to the address.
            let peer = if from.is_ipv6() { self.scoped(from, entry.local) } else { from };
            let Ok((socket, others)) = open::stream(entry.local, peer, &opens.params, sender) else {
                continue;
            };
            strays.extend(others);
            if open::answer(&socket).is_ok() {
                opens.got += 1;
                let _ = opens.to.send((opens.got as u64, Link::Udp(socket)));
            }
        }
    }

    fn scoped(&self, from: SocketAddr, local: SocketAddr) -> SocketAddr {
        match (from, local) {
            (SocketAddr::V6(mut from), SocketAddr::V6(local)) => {
                from.set_scope_id(local.scope_id());
                from.into()
            }
            _ => from,
        }
    }

    /// Cookies.
    fn read<'scope>(&mut self, scope: &'scope std::thread::Scope<'scope, 'a>)
    where
        'a: 'scope,
    {
        for mut pending in std::mem::take(&mut self.pending) {
            let mut buffer = [0; LEN];
            let room = LEN - pending.bytes.len();
            match pending.stream.read(&mut buffer[..room]) {
                Ok(count) if count > 0 => pending.bytes.extend_from_slice(&buffer[..count]),
                Err(error) if crate::phase::is_again(&error) => {}
                // It closed, or broke.
                _ => {
                    self.refuses();
                    continue;
                }
            }
            match <[u8; LEN]>::try_from(&*pending.bytes).map(Cookie::read) {
                Ok(Some(cookie)) => self.known(scope, pending, cookie),
                Err(_) if pending.since.elapsed() < COOKIE => self.pending.push_back(pending),
                // Garbage, or nothing.
                Ok(None) | Err(_) => self.refuses(),
            }
        }
    }

    /// A connection with its cookie: a stream, or a new client.
    fn known<'scope>(
        &mut self,
        scope: &'scope std::thread::Scope<'scope, 'a>,
        pending: Pending,
        cookie: Cookie,
    ) where
        'a: 'scope,
    {
        let Pending { stream, peer, number, .. } = pending;
        // Options that the kernel does not take were refused when the server began.
        if let Some(keep_alive) = &self.shared.server.keep_alive {
            let _ = keep_alive.set(&stream);
        }
        let Ok(mut control) = Control::new(stream) else { return };
        let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
        let mut sessions = self.shared.sessions();
        if let Some(entry) = sessions.get_mut(&cookie) {
            match &mut entry.opens {
                Some(opens)
                    if opens.params.protocol == Protocol::Tcp
                        && opens.got < opens.params.client_sends().len() =>
                {
                    opens.got += 1;
                    if let Ok(stream) = control.socket().try_clone() {
                        // No longer a control connection.
                        let _ = stream.set_write_timeout(None);
                        let _ = stream.set_nodelay(opens.params.nodelay);
                        let _ = opens.to.send((number, Link::Tcp(stream)));
                    }
                }
                _ => {
                    self.refuses();
                    control.say(&server::Session::busy());
                }
            }
            return;
        }
        // When as many run as may, one more is told so where it would begin. Who says nothing is no reason to refuse others: it leaves for them.
        let seat = self.shared.strangers.enter(control.socket(), Some(peer.ip()));
        let (Ok(local), Ok(seat)) = (control.socket().local_addr(), seat) else {
            self.refuses();
            control.say(&server::Session::busy());
            return;
        };
        let local = socket::canonical(local);
        sessions.insert(cookie, Entry { peer: peer.ip(), local, opens: None });
        drop(sessions);
        let shared = self.shared;
        let show = (self.news)();
        let session = Session::new(shared, control, cookie, peer, show, seat);
        let spawned =
            std::thread::Builder::new().name("iperf3 session".into()).spawn_scoped(scope, move || {
                let done = session::run(session);
                shared.sessions().remove(&cookie);
                shared.over(done);
            });
        if spawned.is_err() {
            self.refuses();
            self.shared.sessions().remove(&cookie);
        }
    }
}
