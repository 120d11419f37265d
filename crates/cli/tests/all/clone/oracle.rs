//! A server and clients that know the truth: each request has a number of its own, and its body is a function of that number. The
//! server says which came, on which connection, in which order, and which were wrong.

use ::lab::Namespace;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect, recv, send, socket_with, sockopt,
};
use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What a server saw.
#[derive(Debug, Default)]
pub struct Seen {
    /// Of each connection that said anything: its client, and the numbers of its requests in the order they came.
    pub connections: Vec<(SocketAddr, Vec<u64>)>,
    /// Requests whose bytes are not what they must be.
    pub bad: u64,
    /// Bytes of requests, whole or not.
    pub bytes: u64,
}

impl Seen {
    /// How often each request came.
    pub fn counts(&self) -> HashMap<u64, u64> {
        let mut counts = HashMap::new();
        self.connections.iter().flat_map(|(_, ids)| ids).for_each(|id| *counts.entry(*id).or_default() += 1);
        counts
    }

    /// Connections whose requests are not those of one client, from the first, one by one.
    pub fn disordered(&self) -> usize {
        let in_order =
            |ids: &Vec<u64>| ids.windows(2).all(|pair| pair[1] == pair[0] + 1) && ids[0] & 0xff_ffff == 0;
        self.connections.iter().filter(|(_, ids)| !in_order(ids)).count()
    }
}

/// The body of a request.
pub fn body(id: u64, length: usize) -> Vec<u8> {
    let mut state = id.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..length).map(next).collect()
}

pub fn request(id: u64, length: usize) -> Vec<u8> {
    if length == 0 {
        return format!(
            "GET /{id:016x} HTTP/1.1\r\nHost: oracle\r\nUser-Agent: clients of the oracle's own\r\n\r\n"
        )
        .into_bytes();
    }
    let mut bytes =
        format!("POST /{id:016x} HTTP/1.1\r\nHost: oracle\r\nContent-Length: {length}\r\n\r\n").into_bytes();
    bytes.extend(body(id, length));
    bytes
}

/// A request at the front of some bytes: its number, its length, whether it is what it must be.
fn parse(bytes: &[u8]) -> Option<(u64, usize, bool)> {
    let head = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let text = String::from_utf8_lossy(&bytes[..head]);
    let length = text
        .split("Content-Length: ")
        .nth(1)
        .map_or(0, |rest| rest.split('\r').next().unwrap_or("").parse().unwrap_or(0));
    let whole = bytes.get(..head + length)?;
    let id = text.split(['/', ' ']).nth(2).and_then(|hex| u64::from_str_radix(hex, 16).ok()).unwrap_or(0);
    Some((id, whole.len(), whole == request(id, length)))
}

thread_local! {
    /// The threads of the servers that this test began.
    static SERVING: RefCell<Vec<rustix::thread::Pid>> = const { RefCell::new(Vec::new()) };
}

/// Does none of this test's servers have anything left to do?
pub fn servers_sleep() -> bool {
    let runs = |thread: &rustix::thread::Pid| {
        is_running(&format!("/proc/self/task/{}/stat", thread.as_raw_nonzero()))
    };
    !SERVING.with_borrow(|threads| threads.iter().any(runs))
}

/// Does a thread run, or wait for a processor? By its file of this name.
pub fn is_running(stat: &str) -> bool {
    // proc_pid_stat(5): the third field; the second is a name in parentheses.
    let runs = |stat: String| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('R'));
    std::fs::read_to_string(stat).is_ok_and(runs)
}

/// A server that runs until it is asked what it saw.
pub struct Server {
    stop: Arc<AtomicBool>,
    pub requests: Arc<AtomicU64>,
    /// While it is set, the second connection is not read: the first one is the canary's.
    pub holds: Arc<AtomicBool>,
    thread: JoinHandle<Seen>,
}

impl Server {
    /// Answers each request with so many bytes behind the head.
    pub fn start(namespace: &Namespace, at: &str, answer: usize) -> Server {
        let (stop, requests) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let namespace = namespace.try_clone().expect("a namespace");
        let holds = Arc::new(AtomicBool::new(false));
        let (own, counted, at, held) = (stop.clone(), requests.clone(), at.to_owned(), holds.clone());
        let (ready, listening) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            namespace.enter_current_thread().expect("a namespace");
            // What another test is just starting has this process's sockets until it is another program.
            let mut tries = 0;
            let listener = loop {
                match TcpListener::bind(&at) {
                    Err(error) if error.kind() == ErrorKind::AddrInUse && tries < 100 => tries += 1,
                    bound => break bound.expect("an address"),
                }
                std::thread::sleep(Duration::from_millis(20));
            };
            rustix::net::listen(&listener, 4096).expect("a backlog");
            ready.send(rustix::thread::gettid()).expect("somebody waits");
            serve(&listener, answer, &own, &counted, &held)
        });
        let serves = listening.recv().expect("a server");
        SERVING.with_borrow_mut(|threads| threads.push(serves));
        Server { stop, requests, holds, thread }
    }

    /// What it saw.
    pub fn seen(self) -> Seen {
        self.stop.store(true, Relaxed);
        self.thread.join().expect("a server")
    }
}

fn serve(
    listener: &TcpListener,
    answer: usize,
    stop: &AtomicBool,
    requests: &AtomicU64,
    holds: &AtomicBool,
) -> Seen {
    struct Caller {
        socket: TcpStream,
        from: SocketAddr,
        bytes: Vec<u8>,
        ids: Vec<u64>,
    }
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).expect("epoll");
    let watch = |socket: std::os::fd::BorrowedFd<'_>, data: u64| {
        epoll::add(&epoll, socket, epoll::EventData::new_u64(data), epoll::EventFlags::IN).expect("a socket");
    };
    use std::os::fd::AsFd;
    listener.set_nonblocking(true).expect("a listener");
    watch(listener.as_fd(), u64::MAX);
    let mut seen = Seen::default();
    let mut callers: Vec<Option<Caller>> = Vec::new();
    let reply =
        [format!("HTTP/1.1 200 OK\r\nContent-Length: {answer}\r\n\r\n").into_bytes(), vec![b'a'; answer]]
            .concat();
    let mut buffer = vec![0; 256 << 10];
    let mut events: Vec<epoll::Event> = Vec::with_capacity(256);
    loop {
        events.clear();
        let over = stop.load(Relaxed);
        let patience = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
        let _ = epoll::wait(&epoll, spare_capacity(&mut events), Some(&patience));
        // What has come is seen, however late this thread is.
        if over && (events.is_empty() || holds.load(Relaxed)) {
            break;
        }
        for event in &events {
            let data = event.data.u64();
            if data == u64::MAX {
                while let Ok((socket, from)) = listener.accept() {
                    socket.set_nonblocking(true).expect("a socket");
                    let _ = socket.set_nodelay(true);
                    // A whole answer has room, and many of the short ones: a clone that is late reads none while it says what it missed.
                    let room = if answer > 8000 { answer * 2 } else { 1 << 20 };
                    rustix::net::sockopt::set_socket_send_buffer_size(&socket, room).expect("a socket");
                    watch(socket.as_fd(), callers.len() as u64);
                    callers.push(Some(Caller { socket, from, bytes: Vec::new(), ids: Vec::new() }));
                }
                continue;
            }
            if data == 1 && holds.load(Relaxed) {
                std::thread::sleep(Duration::from_micros(100));
                continue;
            }
            let place = &mut callers[data as usize];
            let Some(caller) = place else { continue };
            let count = match caller.socket.read(&mut buffer) {
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                Err(_) => 0,
            };
            if count == 0 {
                seen.bad += u64::from(!caller.bytes.is_empty());
                let Caller { from, ids, .. } = place.take().expect("a caller");
                seen.connections.extend((!ids.is_empty()).then_some((from, ids)));
                continue;
            }
            seen.bytes += count as u64;
            caller.bytes.extend_from_slice(&buffer[..count]);
            let mut at = 0;
            while let Some((id, length, good)) = parse(&caller.bytes[at..]) {
                at += length;
                seen.bad += u64::from(!good);
                caller.ids.push(id);
                requests.fetch_add(1, Relaxed);
                // An answer of these tests fits the socket's buffer.
                let _ = caller.socket.write_all(&reply);
            }
            caller.bytes.drain(..at);
        }
    }
    // What another test is just starting has these sockets, too: they end now, and nobody is accepted any more.
    rustix::net::shutdown(listener, rustix::net::Shutdown::Both).expect("a listener");
    for Caller { socket, from, ids, bytes } in callers.into_iter().flatten() {
        // It may have ended by itself.
        let _ = socket.shutdown(std::net::Shutdown::Both);
        seen.bad += u64::from(!bytes.is_empty());
        seen.connections.extend((!ids.is_empty()).then_some((from, ids)));
    }
    seen
}

/// What clients do.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    pub connections: usize,
    pub requests: u64,
    /// All connections together.
    pub per_second: u64,
    /// Bytes of each request's body.
    pub body: usize,
    /// Each request has a connection of its own.
    pub short: bool,
}

/// Runs clients from a namespace: how long their requests took, each in nanoseconds. Short connections are made by two threads, each
/// with many handshakes under way.
pub fn run(namespace: &Namespace, to: &str, load: Load) -> Vec<u64> {
    let to: SocketAddr = to.parse().expect("an address");
    let threads = if load.short && load.connections > 1 { 2 } else { 1 };
    let part = |nth: u64, of: u64| of / threads + u64::from(nth < of % threads);
    let start = |nth: u64| {
        let namespace = namespace.try_clone().expect("a namespace");
        let load = Load {
            connections: part(nth, load.connections as u64) as usize,
            requests: part(nth, load.requests),
            per_second: part(nth, load.per_second).max(1),
            ..load
        };
        std::thread::spawn(move || {
            namespace.enter_current_thread().expect("a namespace");
            clients(to, load, (nth, threads))
        })
    };
    let running: Vec<JoinHandle<Vec<u64>>> = (0..threads).map(start).collect();
    running.into_iter().flat_map(|clients| clients.join().expect("clients")).collect()
}

/// One of the clients.
#[derive(Default)]
struct Client {
    socket: Option<OwnedFd>,
    /// Its handshake is not over: this is said then.
    waits: Vec<u8>,
    said: u64,
    sent: Option<Instant>,
    heard: Vec<u8>,
}

impl Client {
    /// Begins to connect.
    fn connect(&mut self, to: SocketAddr, epoll: &OwnedFd, number: usize, first: Vec<u8>) {
        let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(family, SocketType::STREAM, flags, None).expect("a socket");
        sockopt::set_tcp_nodelay(&socket, true).expect("a socket");
        match connect(&socket, &to) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(errno) => panic!("a connection: {errno}"),
        }
        use epoll::EventFlags as On;
        let data = epoll::EventData::new_u64(number as u64);
        epoll::add(epoll, &socket, data, On::IN | On::OUT | On::ET).expect("a socket");
        (self.socket, self.waits) = (Some(socket), first);
    }

    /// Says what waited for the handshake, from now on waiting for room.
    fn connected(&mut self) {
        let Some(socket) = self.socket.as_ref().filter(|_| !self.waits.is_empty()) else { return };
        sockopt::socket_error(socket).expect("a socket").expect("a connection");
        rustix::io::ioctl_fionbio(socket, false).expect("a socket");
        say(socket, &self.waits);
        self.waits.clear();
    }

    /// Reads what is there. Is the answer whole?
    fn hear(&mut self, buffer: &mut [u8]) -> bool {
        let Some(socket) = &self.socket else { return false };
        loop {
            match recv(socket, &mut *buffer, RecvFlags::DONTWAIT) {
                Ok((_, count)) => {
                    assert!(count > 0, "the server closed");
                    self.heard.extend_from_slice(&buffer[..count]);
                    if count == buffer.len() {
                        continue;
                    }
                }
                Err(Errno::AGAIN) => {}
                Err(errno) => panic!("an answer: {errno}"),
            }
            break;
        }
        let Some(head) = self.heard.windows(4).position(|four| four == b"\r\n\r\n") else { return false };
        let text = String::from_utf8_lossy(&self.heard[..head]).into_owned();
        let length: usize =
            text.split("Length: ").nth(1).expect("a length").trim().parse().expect("a length");
        self.heard.len() >= head + 4 + length
    }
}

fn say(socket: &OwnedFd, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let count = send(socket, bytes, SendFlags::NOSIGNAL).expect("a request is taken");
        bytes = &bytes[count..];
    }
}

/// The `nth` of so many threads.
fn clients(to: SocketAddr, load: Load, (nth, threads): (u64, u64)) -> Vec<u64> {
    let mut clients: Vec<Client> = (0..load.connections).map(|_| Client::default()).collect();
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).expect("epoll");
    let mut took = Vec::new();
    let mut buffer = vec![0; 256 << 10];
    let mut events: Vec<epoll::Event> = Vec::with_capacity(256);
    let (start, mut begun, mut at) = (Instant::now(), 0u64, 0usize);
    // A soak lasts as long as its load.
    let lasts = Duration::from_secs(load.requests.checked_div(load.per_second).unwrap_or(0));
    // One that is busy is passed over, and each says as many requests as the others, so that what they say is the same every time.
    let (each, more) = (load.requests / load.connections as u64, load.requests % load.connections as u64);
    let share = |at: usize| each + u64::from((at as u64) < more);
    while (took.len() as u64) < load.requests {
        assert!(start.elapsed() < lasts + Duration::from_secs(120), "the server does not answer");
        let due = (start.elapsed().as_nanos() as u64 * load.per_second / 1_000_000_000).min(load.requests);
        let mut looked = 0;
        while begun < due && looked < load.connections {
            looked += 1;
            at = (at + 1) % load.connections;
            let client = &mut clients[at];
            if client.sent.is_some() || (!load.short && client.said == share(at)) {
                continue;
            }
            let id = match load.short {
                true => (begun * threads + nth) << 24,
                false => (at as u64) << 24 | client.said,
            };
            let bytes = request(id, load.body);
            client.sent = Some(Instant::now());
            match &client.socket {
                Some(socket) => say(socket, &bytes),
                None => client.connect(to, &epoll, at, bytes),
            }
            client.said += 1;
            begun += 1;
            looked = 0;
        }
        events.clear();
        let nothing =
            Timespec { tv_sec: 0, tv_nsec: if begun < load.requests { 50_000 } else { 10_000_000 } };
        let _ = epoll::wait(&epoll, spare_capacity(&mut events), Some(&nothing));
        for event in &events {
            let client = &mut clients[event.data.u64() as usize];
            let flags = event.flags;
            if flags.intersects(epoll::EventFlags::OUT | epoll::EventFlags::ERR) {
                client.connected();
            }
            if !flags.contains(epoll::EventFlags::IN) || !client.hear(&mut buffer) {
                continue;
            }
            client.heard.clear();
            took.push(client.sent.take().expect("a request").elapsed().as_nanos() as u64);
            if load.short {
                client.socket = None;
            }
        }
    }
    took
}
