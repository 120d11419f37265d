//! A receiver of connections: IPFIX over TCP (RFC 7011, 10.4), from many exporters, in one thread.
//!
//! A connection's templates are its own and end with it. What is kept of a connection is a message's part that has come, and its
//! templates; both are bounded, of all connections together. Who sends what is no message of IPFIX is closed: where the next
//! message begins cannot be known any more.

use super::exporters::OTHERS;
use super::receive::{Came, Done, Exporter, PATIENCE, PIECE, Receiver, Sharing};
use anyhow::{Context as _, Result};
use flow::collect::{MOST_EXPORTERS, Session};
use flow::stream::{Front, front};
use rustix::event::{Timespec, epoll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with, sockopt};
use std::collections::HashMap;
use std::io::{ErrorKind, Read as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// The longest message (RFC 7011, 3.1).
const LONGEST: usize = 65_535;
/// Bytes that are read at once.
const AT_ONCE: usize = 64 << 10;
/// Bytes of messages that have not come whole.
const MOST_PARTS: usize = 64 << 20;
/// Connections that wait for us to accept them.
const BACKLOG: i32 = 1024;
/// The number of the listening socket, among those of connections.
const LISTENER: u64 = 0;
/// After this no connection is accepted for a moment: there were no more descriptors.
const BREATH: Duration = Duration::from_millis(100);
/// An exporter that is gone without a word is found out after some minutes.
const IDLE: Duration = Duration::from_secs(60);
/// What waits for its template is looked at this often.
const AGE: Duration = Duration::from_secs(60);

/// A place that exporters connect to, and what waits for them.
#[derive(Debug)]
pub struct Place {
    listener: TcpListener,
    epoll: OwnedFd,
}

impl Place {
    /// Listens at a place that is shared with other receivers, as `sharing` says.
    pub fn open(at: SocketAddr, sharing: Sharing) -> Result<Place> {
        let place = Place {
            listener: socket(at, sharing)?,
            // Without it nothing would be received, and nobody would know.
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC).context("epoll")?,
        };
        hear(&place.epoll, &place.listener).context("epoll")?;
        Ok(place)
    }
}

/// Connections that are to be accepted are told of.
fn hear(epoll: &OwnedFd, listener: &TcpListener) -> rustix::io::Result<()> {
    epoll::add(epoll, listener, epoll::EventData::new_u64(LISTENER), epoll::EventFlags::IN)
}

fn socket(at: SocketAddr, sharing: Sharing) -> Result<TcpListener> {
    let family = if at.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket: OwnedFd = socket_with(family, SocketType::STREAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    if sharing.only_v6 {
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    sockopt::set_socket_reuseport(&socket, sharing.before)?;
    bind(&socket, &at)?;
    // Of two that are bound, because none listened yet, the second is refused here.
    sockopt::set_socket_reuseport(&socket, sharing.after)?;
    listen(&socket, BACKLOG)?;
    Ok(TcpListener::from(socket))
}

/// A connection.
struct Caller {
    socket: TcpStream,
    from: IpAddr,
    exporter: Exporter,
    /// The beginning of a message.
    part: Vec<u8>,
}

/// Why a connection ends.
enum End {
    /// Its exporter closed it, or is gone.
    Closed,
    /// It sent what is no message.
    Nonsense,
    /// There is no room for what it sends.
    NoRoom,
}

struct Connections {
    receiver: Receiver,
    listener: TcpListener,
    epoll: OwnedFd,
    callers: HashMap<u64, Caller>,
    next: u64,
    /// Of connections that ended, by their addresses.
    past: HashMap<IpAddr, Came>,
    /// Of those whose addresses had no room.
    others: Came,
    /// Bytes of all parts.
    parts: usize,
    /// No connection is accepted until then.
    deaf: Option<Instant>,
    /// When it was looked for what has waited too long.
    aged: Instant,
    buffer: Vec<u8>,
}

/// Receives from all who connect.
pub fn connections(Place { listener, epoll }: Place, receiver: Receiver) -> Done {
    let work = Connections {
        receiver,
        listener,
        epoll,
        callers: HashMap::new(),
        next: LISTENER + 1,
        past: HashMap::new(),
        others: Came::default(),
        parts: 0,
        deaf: None,
        aged: Instant::now(),
        buffer: vec![0; LONGEST + AT_ONCE],
    };
    work.run()
}

impl Connections {
    fn run(mut self) -> Done {
        let mut events: Vec<epoll::Event> = Vec::with_capacity(PIECE);
        let mut told = Instant::now();
        loop {
            events.clear();
            let patience = Timespec { tv_sec: 0, tv_nsec: i64::from(PATIENCE.subsec_nanos()) };
            // An interruption is as good as quiet.
            let _ = epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&patience));
            if !events.is_empty() {
                self.receiver.came();
            }
            for event in &events {
                match event.data.u64() {
                    LISTENER => self.accept(),
                    number => self.serve(number),
                }
            }
            if self.deaf.is_some_and(|until| Instant::now() > until) {
                self.deaf = hear(&self.epoll, &self.listener).err().map(|_| Instant::now() + BREATH);
            }
            // It looks at each connection.
            if events.is_empty() || told.elapsed() > PATIENCE {
                told = Instant::now();
                if self.tell(events.is_empty()) {
                    break;
                }
            }
        }
        let all: Vec<u64> = self.callers.keys().copied().collect();
        all.into_iter().for_each(|number| self.end(number, &End::Closed));
        let Connections { past, others, receiver, .. } = self;
        let past = past.into_iter().map(|(from, came)| (format!("tcp://{}", from.to_canonical()), came));
        let others = Some(others).filter(|others| others.counters.messages > 0);
        let exporters = past.chain(others.map(|others| (format!("tcp://{OTHERS}"), others))).collect();
        Done { exporters, ..receiver.done }
    }

    fn tell(&mut self, quiet: bool) -> bool {
        if self.aged.elapsed() >= AGE {
            self.aged = Instant::now();
            let now_ns = clocks::monotonic();
            for caller in self.callers.values_mut() {
                caller.exporter.session.at(now_ns);
                caller.exporter.session.age(&mut self.receiver.room);
            }
        }
        let live = self.callers.values().map(|caller| *caller.exporter.session.counters());
        let past = self.past.values().chain([&self.others]).map(|came| came.counters);
        let new = self.callers.values().filter(|caller| !self.past.contains_key(&caller.from)).count();
        self.receiver.done.standing.exporters = (self.past.len() + new) as u64;
        // What connections go on to send for a second at most counts, and so does its time.
        self.receiver.ends();
        self.receiver.tell(live.chain(past), 0, quiet)
    }

    fn accept(&mut self) {
        for _ in 0..PIECE {
            match self.listener.accept() {
                Ok((socket, from)) => self.accepted(socket, from.ip()),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock) => return,
                // One that was gone before it was accepted.
                Err(error)
                    if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::Interrupted) => {}
                Err(_) => {
                    let _ = epoll::delete(&self.epoll, &self.listener);
                    self.deaf = Some(Instant::now() + BREATH);
                    return;
                }
            }
        }
    }

    fn accepted(&mut self, socket: TcpStream, from: IpAddr) {
        self.receiver.done.standing.connections += 1;
        let number = self.next;
        let data = epoll::EventData::new_u64(number);
        let ready = self.callers.len() < MOST_EXPORTERS
            && socket.set_nonblocking(true).is_ok()
            && sockopt::set_socket_keepalive(&socket, true).is_ok()
            && sockopt::set_tcp_keepidle(&socket, IDLE).is_ok()
            && epoll::add(&self.epoll, &socket, data, epoll::EventFlags::IN).is_ok();
        if !ready {
            self.receiver.done.standing.closed += 1;
            return;
        }
        self.next += 1;
        let exporter = Exporter::new(Session::connection(self.receiver.writes()));
        self.callers.insert(number, Caller { socket, from, exporter, part: Vec::new() });
    }

    /// Reads what a connection has, once: others have their turn.
    fn serve(&mut self, number: u64) {
        let Some(caller) = self.callers.get_mut(&number) else { return };
        let before = caller.part.len();
        let Some((head, space)) = self.buffer.split_at_mut_checked(before) else { return };
        head.copy_from_slice(&caller.part);
        let count = match caller.socket.read(space) {
            Ok(0) => return self.end(number, &End::Closed),
            Ok(count) => count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return,
            Err(_) => return self.end(number, &End::Closed),
        };
        let mut rest = self.buffer.get(..before + count).unwrap_or_default();
        let nonsense = loop {
            match front(rest) {
                Front::Message(length) => {
                    let Some((message, behind)) = rest.split_at_checked(length) else { break false };
                    let malformed = caller.exporter.session.counters().malformed;
                    caller.exporter.session.at(self.receiver.age_ns);
                    self.receiver.read(&mut caller.exporter, message, caller.from);
                    rest = behind;
                    if caller.exporter.session.counters().malformed > malformed {
                        break true;
                    }
                }
                Front::Part => break false,
                Front::Nonsense => {
                    caller.exporter.session.malformed();
                    break true;
                }
            }
        };
        self.parts = self.parts + rest.len() - before;
        caller.part.clear();
        caller.part.extend(rest);
        // What a long message took is not kept for short ones.
        caller.part.shrink_to(rest.len().max(2048));
        if nonsense {
            self.end(number, &End::Nonsense);
        } else if self.parts > MOST_PARTS {
            self.end(number, &End::NoRoom);
        }
    }

    /// A connection ends, and with it what was known of its exporter.
    fn end(&mut self, number: u64, why: &End) {
        let Some(mut caller) = self.callers.remove(&number) else { return };
        self.parts -= caller.part.len();
        match why {
            // It ends within a message.
            End::Closed if !caller.part.is_empty() => caller.exporter.session.malformed(),
            End::Closed => {}
            End::Nonsense | End::NoRoom => self.receiver.done.standing.closed += 1,
        }
        let came = caller.exporter.came();
        caller.exporter.session.end(&mut self.receiver.room);
        let known = self.past.len() < MOST_EXPORTERS || self.past.contains_key(&caller.from);
        let sum = if known { self.past.entry(caller.from).or_default() } else { &mut self.others };
        *sum = sum.plus(&came);
    }
}
