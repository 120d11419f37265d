//! A receiver: a socket, and a session for each exporter that the kernel has it serve.

use super::writer::Queue;
use anyhow::Result;
use flow::collect::{Room, Session};
use std::collections::HashMap;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
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
const MOST_EXPORTERS: usize = 16_384;
/// What the exporters of a receiver may make it keep, in bytes.
const ROOM: usize = 128 << 20;
/// Messages between two looks at the clock and at whether it is over.
const PIECE: u32 = 256;
/// Rows that are handed to the writers together.
const ROWS: usize = 1024;
const PATIENCE: Duration = Duration::from_millis(50);

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
    bind(&socket, &at)?;
    let socket = UdpSocket::from(socket);
    socket.set_read_timeout(Some(PATIENCE))?;
    Ok(socket)
}

/// An exporter: an address and port.
#[derive(Debug)]
pub struct Exporter {
    pub session: Session,
    pub packets: u64,
    pub octets: u64,
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
        }
    }
}

/// What it came to.
#[derive(Debug)]
pub struct Done {
    pub exporters: HashMap<SocketAddr, Exporter>,
    pub standing: Standing,
    /// When the first and the last message came, in nanoseconds since 1970.
    pub first_ns: u64,
    pub last_ns: u64,
}

/// A receiver, before it runs.
pub struct Receiver {
    pub socket: UdpSocket,
    pub queues: Vec<Queue>,
    pub over: Arc<AtomicBool>,
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
            exporters: HashMap::new(),
            standing: *standing.lock().unwrap_or_else(PoisonError::into_inner),
            first_ns: 0,
            last_ns: 0,
        })
    }
}

impl Receiver {
    /// Begins, in a thread.
    pub fn start(self) -> std::io::Result<Running> {
        let standing = Arc::new(Mutex::new(Standing::default()));
        let told = Arc::clone(&standing);
        let thread =
            std::thread::Builder::new().name("collect".to_owned()).spawn(move || self.work(&told))?;
        Ok(Running { standing, thread })
    }

    fn work(self, told: &Mutex<Standing>) -> Done {
        let Receiver { socket, queues, over } = self;
        let mut done =
            Done { exporters: HashMap::new(), standing: Standing::default(), first_ns: 0, last_ns: 0 };
        let mut refused = 0;
        let mut room = Room::of(ROOM);
        let mut rows = Vec::new();
        let mut buffer = vec![0; 65_536];
        let mut now_ns = clocks::now(clocks::Clock::Realtime);
        let mut left = PIECE;
        loop {
            let got = socket.recv_from(&mut buffer);
            left -= 1;
            let quiet = matches!(&got, Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut));
            if left == 0 || quiet || now_ns == 0 {
                left = PIECE;
                hand_over(&queues, &mut rows, &mut done.standing.unwritten);
                done.tell(&socket, refused, told);
                // What is in the socket when it is over is taken first, but not for ever.
                if over.load(Relaxed)
                    && (quiet || clocks::now(clocks::Clock::Realtime) > done.last_ns + 1_000_000_000)
                {
                    break;
                }
            }
            let Ok((length, from)) = got else { continue };
            now_ns = clocks::now(clocks::Clock::Realtime);
            if done.first_ns == 0 {
                done.first_ns = now_ns;
            }
            if !over.load(Relaxed) {
                done.last_ns = now_ns;
            }
            if done.exporters.len() >= MOST_EXPORTERS && !done.exporters.contains_key(&from) {
                refused += 1;
                continue;
            }
            let writes = !queues.is_empty();
            let exporter = done.exporters.entry(from).or_insert_with(|| Exporter {
                session: Session::new(writes),
                packets: 0,
                octets: 0,
            });
            let Exporter { session, packets, octets } = exporter;
            session.message(buffer.get(..length).unwrap_or_default(), &mut room, &mut |record, others| {
                *packets = packets.saturating_add(record.packets);
                *octets = octets.saturating_add(record.octets);
                if writes {
                    rows.push(Row::of(record, others, from.ip(), now_ns));
                }
            });
            done.standing.messages += 1;
            done.standing.bytes += length as u64;
            if rows.len() >= ROWS {
                hand_over(&queues, &mut rows, &mut done.standing.unwritten);
            }
        }
        done
    }
}

impl Done {
    fn tell(&mut self, socket: &UdpSocket, refused: u64, told: &Mutex<Standing>) {
        let standing = &mut self.standing;
        standing.exporters = self.exporters.len() as u64;
        (standing.records, standing.missing_records, standing.missing_messages) = (0, 0, 0);
        for exporter in self.exporters.values() {
            let counters = exporter.session.counters();
            standing.records += counters.records;
            standing.missing_records += counters.missing_records;
            standing.missing_messages += counters.missing_messages;
        }
        standing.dropped = port::socket::receive_drops(socket).unwrap_or(0) + refused;
        *told.lock().unwrap_or_else(PoisonError::into_inner) = *standing;
    }
}

fn hand_over(queues: &[Queue], rows: &mut Vec<Row>, unwritten: &mut u64) {
    if rows.is_empty() {
        return;
    }
    let batch = Arc::new(std::mem::replace(rows, Vec::with_capacity(ROWS)));
    for queue in queues {
        if !queue.give(&batch) {
            *unwritten += batch.len() as u64;
        }
    }
}
