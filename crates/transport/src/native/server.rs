//! The server: accepts, admits, and has each client's tests done. Safe to be left running: everything has a limit and a deadline.

mod bound;
mod session;

use super::channel::{self, Channel};
use super::results::Host;
use crate::phase::{LOOK, Stop};
use crate::socket::{self, Options, SocketError};
use endpoint::native::{Key, Limits, MOST_TO_SERVER, Preamble, Reason, Refused, ToClient};
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, PoisonError};
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
    /// What each client may ask.
    pub limits: Limits,
    /// Clients at once: control connections.
    pub clients: u32,
    /// Connections at once, of all clients.
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
#[derive(Debug, Default)]
struct Shared {
    options: ServerOptions,
    host: Host,
    doors: Mutex<HashMap<Key, (Door, Option<IpAddr>)>>,
    /// Tests under way: how many, by the run that they are of.
    runs: Mutex<HashMap<String, u64>>,
    /// Tests of other runs than one that began, so far.
    begun: AtomicU64,
    connections: AtomicU64,
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

/// What a connection says it is, it says within this.
const SAYS: Duration = Duration::from_secs(5);
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
            options.listen.iter().map(|at| socket::listen(*at, &own, 1024)).collect::<Result<_, _>>()?;
        let mut unix = Vec::new();
        for path in &options.unix {
            unix.push((socket::unix_listen(path, &Options::default())?, path.clone()));
        }
        let shared = Shared { options, host: Host::here(), stop: stop.clone(), ..Shared::default() };
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
    for listener in tcp {
        listener.set_nonblocking(true)?;
    }
    for (listener, _) in unix {
        listener.set_nonblocking(true)?;
    }
    let served = accept_all(tcp, unix, shared);
    for (_, path) in unix {
        let _ = std::fs::remove_file(path);
    }
    shared.stop.set();
    let by = Instant::now() + ENDS;
    while shared.connections.load(Relaxed) > 0 && Instant::now() < by {
        std::thread::sleep(Duration::from_millis(10));
    }
    served
}

fn accept_all(tcp: &[TcpListener], unix: &[(UnixListener, PathBuf)], shared: &Arc<Shared>) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let timeout = Timespec::try_from(LOOK).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    while !shared.stop.is_set() {
        let tcp_fds = tcp.iter().map(|listener| PollFd::new(listener, PollFlags::IN));
        let mut fds: Vec<PollFd<'_>> =
            tcp_fds.chain(unix.iter().map(|(listener, _)| PollFd::new(listener, PollFlags::IN))).collect();
        match poll(&mut fds, Some(&timeout)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        for listener in tcp {
            while let Some((socket, peer)) = accepted(listener.accept())? {
                take(socket.into(), Some(peer.ip()), shared);
            }
        }
        for (listener, _) in unix {
            while let Some((socket, _)) = accepted(listener.accept())? {
                take(socket.into(), None, shared);
            }
        }
    }
    Ok(())
}

/// One that was accepted. None: there is no further one.
fn accepted<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(got) => Ok(Some(got)),
        Err(error) => match error.raw_os_error() {
            Some(libc::EBADF | libc::EINVAL | libc::ENOTSOCK) => Err(error),
            // No more files or no memory: those who are here have to go first.
            Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM) => {
                std::thread::sleep(LOOK);
                Ok(None)
            }
            // Nobody is there, or who was is gone (accept(2) lists what may be said of such).
            _ => Ok(None),
        },
    }
}

/// Counts one while it lives.
struct Counted(Arc<Shared>, fn(&Shared) -> &AtomicU64);

impl Counted {
    /// None: there are so many already.
    fn new(shared: &Arc<Shared>, of: fn(&Shared) -> &AtomicU64, most: u64) -> Option<Counted> {
        if of(shared).fetch_add(1, Relaxed) >= most {
            of(shared).fetch_sub(1, Relaxed);
            return None;
        }
        Some(Counted(Arc::clone(shared), of))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        (self.1)(&self.0).fetch_sub(1, Relaxed);
    }
}

fn take(socket: OwnedFd, from: Option<IpAddr>, shared: &Arc<Shared>) {
    let most = u64::from(shared.options.connections);
    let Some(counted) = Counted::new(shared, |shared| &shared.connections, most) else {
        // Who is closed at once knows that there was no room.
        shared.refused.fetch_add(1, Relaxed);
        return;
    };
    let with = Arc::clone(shared);
    let thread = std::thread::Builder::new().name("session".to_owned()).stack_size(512 << 10);
    let spawned = thread.spawn(move || {
        if !enter(socket, from, &with) {
            with.refused.fetch_add(1, Relaxed);
        }
        drop(counted);
    });
    if spawned.is_err() {
        shared.refused.fetch_add(1, Relaxed);
    }
}

/// What a connection is, and what becomes of it. False: it was none of ours.
fn enter(socket: OwnedFd, from: Option<IpAddr>, shared: &Arc<Shared>) -> bool {
    // On a MPTCP listener and on others a socket that was accepted may wait or not: calls say what they want.
    let _ = rustix::io::ioctl_fionbio(&socket, false);
    match channel::preamble(&socket, SAYS) {
        Ok(Preamble::Control) => {
            let channel = Channel::new(socket, MOST_TO_SERVER);
            let most = u64::from(shared.options.clients);
            let Some(_counted) = Counted::new(shared, |shared| &shared.clients, most) else {
                let said = format!("{most} clients are here already, and that is the most");
                refuse(&channel, Refused::new(Reason::Busy, said));
                return false;
            };
            session::attend(channel, from, shared)
        }
        Ok(Preamble::Data { key, flow }) => {
            let doors = shared.doors.lock().unwrap_or_else(PoisonError::into_inner);
            match doors.get(&key) {
                // Of another address than the test's client: nobody should know the key there.
                Some((door, client)) if *client == from => door.try_send((flow, socket)).is_ok(),
                _ => false,
            }
        }
        Err(_) => false,
    }
}

fn refuse(channel: &Channel, refused: Refused) {
    let _ = channel.say(&ToClient::<(), (), ()>::Refused(refused));
}
