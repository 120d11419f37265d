//! The server: accepts, admits, and has each client's tests done. Safe to be left running: everything has a limit and a deadline.

mod bound;
mod entrance;
mod session;

use super::channel::Channel;
use super::results::Host;
use crate::files;
use crate::lobby::{Lobby, Seat};
use crate::phase::Stop;
use crate::socket::{self, Options, SocketError};
use endpoint::native::{Key, Limits, MOST_TO_SERVER, Reason, Refused, ToClient};
use entrance::Entrance;
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What a server is to be like.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Addresses that it listens on.
    pub listen: Vec<SocketAddr>,
    /// Unix sockets that it listens on.
    pub unix: Vec<PathBuf>,
    /// Whoever wants to test has to have it.
    pub token: Option<Vec<u8>>,
    /// What each client may ask; of memory all of them together.
    pub limits: Limits,
    /// Clients at once: control connections that said hello, and proved that they have the token if there is one.
    pub clients: u32,
    /// Connections at once, of all clients' tests.
    pub connections: u32,
    /// Listens with Multipath TCP too.
    pub mptcp: bool,
}

impl Default for ServerOptions {
    fn default() -> ServerOptions {
        ServerOptions {
            listen: Vec::new(),
            unix: Vec::new(),
            token: None,
            limits: Limits::default(),
            clients: 64,
            connections: 20_000,
            mptcp: false,
        }
    }
}

/// How a server stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Standing {
    /// Clients now.
    pub clients: u64,
    /// Tests now.
    pub tests: u64,
    /// Tests that are over.
    pub done: u64,
    /// Of these, tests that broke off.
    pub broken: u64,
    /// Connections that were refused or meant nothing.
    pub refused: u64,
    /// Bytes of payload of tests that are over, both ways.
    pub bytes: u64,
}

/// Where a test's data connections are handed to.
type Door = SyncSender<(u32, OwnedFd)>;

/// What all of a server's threads have in common.
#[derive(Debug)]
struct Shared {
    options: ServerOptions,
    host: Host,
    /// Connections for which the process may open files.
    files: u64,
    doors: Mutex<HashMap<Key, (Door, Option<IpAddr>)>>,
    /// Tests under way: how many, by the run that they are of.
    runs: Mutex<HashMap<String, u64>>,
    /// Tests of other runs than one that began, so far.
    begun: AtomicU64,
    connections: AtomicU64,
    /// Bytes of all tests' buffers.
    memory: AtomicU64,
    /// Control connections that are no clients yet.
    strangers: Arc<Lobby>,
    clients: AtomicU64,
    tests: AtomicU64,
    done: AtomicU64,
    broken: AtomicU64,
    refused: AtomicU64,
    bytes: AtomicU64,
    stop: Stop,
}

/// A server that listens and does not yet serve.
#[derive(Debug)]
pub struct Server {
    tcp: Vec<TcpListener>,
    unix: Vec<(UnixListener, PathBuf)>,
    shared: Arc<Shared>,
}

/// Connections that wait to be accepted, as far as the kernel permits (net.core.somaxconn).
const BACKLOG: u32 = 65_535;
/// Connections that have not said what they are, at most.
const VISITORS: usize = 4096;
/// Control connections that are not clients yet, at most. Each has a thread for the seconds that it may take.
const STRANGERS: usize = 512;
/// Sessions that have not ended so long after the server was to end are left behind.
const ENDS: Duration = Duration::from_secs(5);

impl Server {
    /// Listens.
    ///
    /// # Errors
    /// An address is not to be had.
    pub fn bind(options: ServerOptions, stop: &Stop) -> Result<Server, SocketError> {
        let own = Options { mptcp: options.mptcp, v6_only: false, ..Options::default() };
        let tcp =
            options.listen.iter().map(|at| socket::listen(*at, &own, BACKLOG)).collect::<Result<_, _>>()?;
        let mut unix = Vec::new();
        for path in &options.unix {
            unix.push((socket::unix_listen(path, &Options::default())?, path.clone()));
        }
        // A stranger's seat is a file, too.
        let others = VISITORS as u64 + 2 * STRANGERS as u64 + u64::from(options.clients);
        let files = files::fit(u64::from(options.connections) + others).saturating_sub(others);
        let shared = Shared {
            options,
            host: Host::here(),
            files,
            doors: Mutex::default(),
            runs: Mutex::default(),
            begun: AtomicU64::default(),
            connections: AtomicU64::default(),
            memory: AtomicU64::default(),
            strangers: Lobby::new(STRANGERS),
            clients: AtomicU64::default(),
            tests: AtomicU64::default(),
            done: AtomicU64::default(),
            broken: AtomicU64::default(),
            refused: AtomicU64::default(),
            bytes: AtomicU64::default(),
            stop: stop.clone(),
        };
        Ok(Server { tcp, unix, shared: Arc::new(shared) })
    }

    /// Where it listens.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.tcp.iter().filter_map(|listener| listener.local_addr().ok()).collect()
    }

    /// Unix sockets that it listens on.
    pub fn paths(&self) -> impl Iterator<Item = &std::path::Path> {
        self.unix.iter().map(|(_, path)| path.as_path())
    }

    /// Connections that it has at once, of all clients: as many as its options say, unless the process may not open so many files.
    pub fn room(&self) -> u64 {
        self.shared.room()
    }

    /// How it stands; may be asked while it serves.
    pub fn standing(&self) -> impl Fn() -> Standing + std::marker::Send + 'static {
        let shared = Arc::clone(&self.shared);
        move || {
            let now = |count: &AtomicU64| count.load(Relaxed);
            Standing {
                clients: now(&shared.clients),
                tests: now(&shared.tests),
                done: now(&shared.done),
                broken: now(&shared.broken),
                refused: now(&shared.refused),
                bytes: now(&shared.bytes),
            }
        }
    }
}

/// Serves until its stop is set.
///
/// # Errors
/// Accepting is not possible any more.
pub fn serve(server: &Server) -> io::Result<()> {
    let Server { tcp, unix, shared } = server;
    let served = Entrance::open(tcp, unix, shared).and_then(Entrance::keep);
    for (_, path) in unix {
        let _ = std::fs::remove_file(path);
    }
    shared.stop.set();
    let by = Instant::now() + ENDS;
    while shared.clients.load(Relaxed) > 0 && Instant::now() < by {
        std::thread::sleep(Duration::from_millis(10));
    }
    served
}

impl Shared {
    /// Connections at once, of all clients.
    fn room(&self) -> u64 {
        u64::from(self.options.connections).min(self.files)
    }

    /// Room for a test's connections, as long as what comes back lives.
    fn reserve(self: &Arc<Shared>, connections: u64) -> Result<Counted, Refused> {
        let (room, open) = (self.room(), self.connections.load(Relaxed));
        Counted::several(self, |shared| &shared.connections, connections, room).ok_or_else(|| {
            let why = if self.files < u64::from(self.options.connections) {
                " (its host permits no more files: RLIMIT_NOFILE)"
            } else {
                ""
            };
            let said = format!(
                "{connections} connections were asked for, and of the {room} that the server has at once{why} {open} are taken"
            );
            Refused::new(if connections > room { Reason::Limit } else { Reason::Busy }, said)
        })
    }
}

impl Shared {
    /// Room for a test's buffers, as long as what comes back lives.
    fn buffers(self: &Arc<Shared>, bytes: u64) -> Result<Counted, Refused> {
        let (most, taken) = (self.options.limits.memory, self.memory.load(Relaxed));
        Counted::several(self, |shared| &shared.memory, bytes, most).ok_or_else(|| {
            let said = format!(
                "{bytes} bytes of buffers were asked for, and of the {most} that the server has for all tests {taken} are taken"
            );
            Refused::new(if bytes > most { Reason::Limit } else { Reason::Busy }, said)
        })
    }

    /// One more client, as long as what comes back lives.
    fn client(self: &Arc<Shared>) -> Result<Counted, Refused> {
        let most = u64::from(self.options.clients);
        Counted::new(self, |shared| &shared.clients, most).ok_or_else(|| {
            Refused::new(Reason::Busy, format!("{most} clients are here already, and that is the most"))
        })
    }
}

/// Counts some while it lives.
struct Counted(Arc<Shared>, fn(&Shared) -> &AtomicU64, u64);

impl Counted {
    /// One. None: there are so many already.
    fn new(shared: &Arc<Shared>, of: fn(&Shared) -> &AtomicU64, most: u64) -> Option<Counted> {
        Counted::several(shared, of, 1, most)
    }

    fn several(
        shared: &Arc<Shared>,
        of: fn(&Shared) -> &AtomicU64,
        count: u64,
        most: u64,
    ) -> Option<Counted> {
        let more = |now: u64| now.checked_add(count).filter(|sum| *sum <= most);
        of(shared).try_update(Relaxed, Relaxed, more).ok()?;
        Some(Counted(Arc::clone(shared), of, count))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        (self.1)(&self.0).fetch_sub(self.2, Relaxed);
    }
}

/// A client, to its end. False: it was none of ours. `seat`: it has that until it is welcome.
fn attend(socket: OwnedFd, from: Option<IpAddr>, seat: Seat, shared: &Arc<Shared>) -> bool {
    session::attend(Channel::new(socket, MOST_TO_SERVER), from, seat, shared)
}

fn refuse(channel: &Channel, refused: Refused) {
    let _ = channel.say(&ToClient::<(), (), ()>::Refused(refused));
}
