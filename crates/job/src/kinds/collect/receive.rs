//! Receivers: what those of datagrams and of connections have in common, and that of datagrams: a socket, and a session for each
//! exporter that the kernel has it serve.

use super::writer::Queue;
use anyhow::Result;
use flow::collect::{Counters, Room, Session};
use port::socket::Datagrams;
use std::collections::HashMap;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use store::Row;

/// What waits in a socket, if we may: some 40,000 messages.
const BUFFER: usize = 64 << 20;
/// Exporters of a receiver: each takes some kilobytes.
pub const MOST_EXPORTERS: usize = 16_384;
/// What the exporters of a receiver may make it keep, in bytes.
const ROOM: usize = 128 << 20;
/// Messages between two looks at the clock and at whether it is over.
pub const PIECE: usize = 256;
/// Messages that one call takes, if they are there.
const TOGETHER: usize = 32;
/// Rows that are handed to the writers together.
const ROWS: usize = 1024;
pub const PATIENCE: Duration = Duration::from_millis(50);

/// Binds a socket that shares its port with those of other receivers.
pub fn socket(at: SocketAddr) -> Result<UdpSocket> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};
    let family = if at.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket: OwnedFd = socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_reuseport(&socket, true)?;
    // Without CAP_NET_ADMIN it is what net.core.rmem_max allows.
    if sockopt::set_socket_recv_buffer_size_force(&socket, BUFFER).is_err() {
        sockopt::set_socket_recv_buffer_size(&socket, BUFFER)?;
    }
    // A kernel without it hands them out one by one.
    let _ = port::socket::join_datagrams(&socket);
    bind(&socket, &at)?;
    let socket = UdpSocket::from(socket);
    socket.set_read_timeout(Some(PATIENCE))?;
    Ok(socket)
}

/// What came of an exporter.
#[derive(Debug, Clone, Copy, Default)]
pub struct Came {
    pub counters: Counters,
    pub packets: u64,
    pub octets: u64,
}

impl Came {
    pub fn plus(&self, other: &Came) -> Came {
        Came {
            counters: self.counters.plus(&other.counters),
            packets: self.packets.saturating_add(other.packets),
            octets: self.octets.saturating_add(other.octets),
        }
    }
}

/// An exporter that sends.
#[derive(Debug)]
pub struct Exporter {
    pub session: Session,
    packets: u64,
    octets: u64,
}

impl Exporter {
    pub fn new(session: Session) -> Exporter {
        Exporter { session, packets: 0, octets: 0 }
    }

    /// What came so far.
    pub fn came(&self) -> Came {
        Came { counters: *self.session.counters(), packets: self.packets, octets: self.octets }
    }
}

/// How it stands.
#[derive(Debug, Clone, Copy, Default)]
pub struct Standing {
    pub messages: u64,
    pub bytes: u64,
    pub records: u64,
    pub exporters: u64,
    pub missing_records: u64,
    pub missing_messages: u64,
    /// Messages that the socket had no room for, or of exporters beyond those that are kept.
    pub dropped: u64,
    /// Records that writers had no room for.
    pub unwritten: u64,
    /// Connections that were made, and those that were closed here.
    pub connections: u64,
    pub closed: u64,
}

impl Standing {
    pub fn plus(self, other: &Standing) -> Standing {
        Standing {
            messages: self.messages + other.messages,
            bytes: self.bytes + other.bytes,
            records: self.records + other.records,
            exporters: self.exporters + other.exporters,
            missing_records: self.missing_records + other.missing_records,
            missing_messages: self.missing_messages + other.missing_messages,
            dropped: self.dropped + other.dropped,
            unwritten: self.unwritten + other.unwritten,
            connections: self.connections + other.connections,
            closed: self.closed + other.closed,
        }
    }
}

/// What it came to.
#[derive(Debug, Default)]
pub struct Done {
    pub exporters: Vec<(String, Came)>,
    pub standing: Standing,
    /// When the first and the last message came, in nanoseconds since 1970.
    pub first_ns: u64,
    pub last_ns: u64,
}

/// What a thread that receives has beside its sockets.
pub struct Desk {
    queues: Vec<Queue>,
    rows: Vec<Row>,
    pub room: Room,
    over: Arc<AtomicBool>,
    told: Arc<Mutex<Standing>>,
    pub done: Done,
    now_ns: u64,
}

impl Desk {
    /// Reads a message of an exporter.
    pub fn read(&mut self, exporter: &mut Exporter, message: &[u8], from: IpAddr) {
        let Desk { rows, queues, room, now_ns, .. } = self;
        let writes = !queues.is_empty();
        let Exporter { session, packets, octets } = exporter;
        session.message(message, room, &mut |record, others| {
            *packets = packets.saturating_add(record.packets);
            *octets = octets.saturating_add(record.octets);
            if writes {
                rows.push(Row::of(record, others, from, *now_ns));
            }
        });
        self.done.standing.messages += 1;
        self.done.standing.bytes += message.len() as u64;
        if self.rows.len() >= ROWS {
            self.hand_over();
        }
    }

    /// Whether fields without a column are wanted.
    pub fn writes(&self) -> bool {
        !self.queues.is_empty()
    }

    /// Something came now.
    pub fn came(&mut self) {
        self.now_ns = clocks::now(clocks::Clock::Realtime);
        if self.done.first_ns == 0 {
            self.done.first_ns = self.now_ns;
        }
        if !self.over.load(Relaxed) {
            self.done.last_ns = self.now_ns;
        }
    }

    /// Tells how it stands: of each exporter what came, and how many messages were lost here. True: it is over. What is in the
    /// sockets then is taken first, but not for ever.
    pub fn tell(&mut self, each: impl Iterator<Item = Counters>, dropped: u64, quiet: bool) -> bool {
        self.hand_over();
        let standing = &mut self.done.standing;
        (standing.records, standing.missing_records, standing.missing_messages) = (0, 0, 0);
        for counters in each {
            standing.records += counters.records;
            standing.missing_records += counters.missing_records;
            standing.missing_messages += counters.missing_messages;
        }
        standing.dropped = dropped;
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = *standing;
        let too_long = || clocks::now(clocks::Clock::Realtime) > self.done.last_ns + 1_000_000_000;
        self.over.load(Relaxed) && (quiet || too_long())
    }

    fn hand_over(&mut self) {
        if self.rows.is_empty() {
            return;
        }
        let batch = Arc::new(std::mem::replace(&mut self.rows, Vec::with_capacity(ROWS)));
        for queue in &self.queues {
            if !queue.give(&batch) {
                self.done.standing.unwritten += batch.len() as u64;
            }
        }
    }
}

/// Begins to receive, in a thread.
pub fn start(
    queues: Vec<Queue>,
    over: &Arc<AtomicBool>,
    work: impl FnOnce(Desk) -> Done + Send + 'static,
) -> std::io::Result<Running> {
    let standing = Arc::new(Mutex::new(Standing::default()));
    let (over, told) = (Arc::clone(over), Arc::clone(&standing));
    let (rows, room) = (Vec::new(), Room::of(ROOM));
    let desk = Desk { queues, rows, room, over, told, done: Done::default(), now_ns: 0 };
    let thread = std::thread::Builder::new().name("collect".to_owned()).spawn(move || work(desk))?;
    Ok(Running { standing, thread })
}

/// A receiver that runs.
pub struct Running {
    standing: Arc<Mutex<Standing>>,
    thread: JoinHandle<Done>,
}

impl Running {
    pub fn standing(&self) -> Standing {
        *self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn finish(self) -> Done {
        let standing = self.standing;
        self.thread.join().unwrap_or_else(|_| Done {
            standing: *standing.lock().unwrap_or_else(PoisonError::into_inner),
            ..Done::default()
        })
    }
}

/// Receives datagrams.
pub fn datagrams(socket: &UdpSocket, mut desk: Desk) -> Done {
    let mut exporters: HashMap<SocketAddr, Exporter> = HashMap::new();
    let mut refused = 0;
    let mut datagrams = Datagrams::new(TOGETHER);
    let mut left = 0;
    loop {
        let got = datagrams.receive(socket);
        let quiet =
            matches!(&got, Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut));
        left = left.min(PIECE).saturating_sub(datagrams.iter().count());
        if left == 0 || quiet {
            left = PIECE;
            desk.done.standing.exporters = exporters.len() as u64;
            let dropped = port::socket::receive_drops(socket).unwrap_or(0) + refused;
            let each = exporters.values().map(|exporter| *exporter.session.counters());
            if desk.tell(each, dropped, quiet) {
                break;
            }
        }
        if got.is_err() {
            continue;
        }
        desk.came();
        for (message, from) in datagrams.iter() {
            let Some(from) = from else { continue };
            if exporters.len() >= MOST_EXPORTERS && !exporters.contains_key(&from) {
                refused += 1;
                continue;
            }
            let writes = desk.writes();
            let exporter = exporters.entry(from).or_insert_with(|| Exporter::new(Session::new(writes)));
            desk.read(exporter, message, from.ip());
        }
    }
    let each = exporters.iter().map(|(from, exporter)| (from.to_string(), exporter.came()));
    Done { exporters: each.collect(), ..desk.done }
}
