//! UDP as netperf has it: three empty datagrams end a test; responses have no numbers.

use crate::phase::{self, Done, End, Latency, Progress, Until};
use crate::stream::content;
use crate::sys::Batch;
use rustix::net::{RecvFlags, SendFlags};
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Between two datagrams of the end, so that one full queue does not lose all.
const APART: Duration = Duration::from_millis(2);
/// Datagrams taken at once, and bytes of their buffers at most.
const MESSAGES: usize = 64;
const BUFFERS: usize = 2 << 20;

/// Says that the test is over.
pub fn end(socket: &UdpSocket) {
    for _ in 0..3 {
        let _ = socket.send(&[]);
        std::thread::sleep(APART);
    }
}

/// Waits for the first datagram of `from`, without taking it, and connects to who sent it: from then on nobody else is heard, and
/// nobody else can be sent anything.
pub fn meet(socket: &UdpSocket, from: &[IpAddr], until: &Until) -> io::Result<Option<SocketAddr>> {
    phase::look_up_often(socket)?;
    loop {
        let mut byte = [0; 1];
        match socket.peek_from(&mut byte) {
            Ok((_, peer)) if from.contains(&peer.ip().to_canonical()) => {
                socket.connect(peer)?;
                return Ok(Some(peer));
            }
            Ok(_) => {
                let _ = socket.recv(&mut byte);
            }
            Err(error) if phase::is_again(&error) => {}
            Err(error) => return Err(error),
        }
        if until.over(Instant::now()).is_some() {
            return Ok(None);
        }
    }
}

/// Receives until an empty datagram comes. `size`: of the longest that is expected.
pub fn receive(socket: &UdpSocket, size: usize, until: &Until, progress: &Progress) -> Done {
    let mut done = Done::new();
    if let Err(error) = phase::look_up_often(socket) {
        return done.end(End::Failed(error));
    }
    let size = size.clamp(1, crate::datagram::MOST);
    let mut batch = Batch::new((BUFFERS / size).clamp(1, MESSAGES), size);
    let end = 'all: loop {
        if let Some(end) = until.over(Instant::now()) {
            break end;
        }
        let got = match batch.receive(socket) {
            Ok(got) => got,
            Err(error) if phase::is_again(&error) => continue,
            // The peer has closed its socket: what was sent at last met nobody.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => continue,
            Err(error) => break End::Failed(error),
        };
        let now = Instant::now();
        for at in 0..got {
            match batch.beside(at).length {
                0 => break 'all End::Closed,
                length => {
                    done.add(length, now);
                    progress.add(length);
                }
            }
        }
    };
    done.end(end)
}

/// Answers each datagram over a connected socket until an empty one comes.
pub fn answer(socket: &UdpSocket, sizes: (usize, usize), until: &Until, progress: &Progress) -> Done {
    let mut done = Done::new();
    if let Err(error) = phase::look_up_often(socket) {
        return done.end(End::Failed(error));
    }
    let (request, response) = sizes;
    let said = content(response);
    let mut room = vec![0; request.max(1)];
    let end = loop {
        match rustix::net::recv(socket, &mut room, RecvFlags::empty()) {
            Ok((_, 0)) => break End::Closed,
            Ok((_, got)) => {
                match rustix::net::send(socket, &said, SendFlags::NOSIGNAL) {
                    Ok(_) => {
                        done.bytes += got as u64;
                        done.count += 1;
                        progress.add(got + response);
                    }
                    // It is lost, and who asked finds out.
                    Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR | rustix::io::Errno::NOBUFS) => {}
                    Err(rustix::io::Errno::CONNREFUSED) => {}
                    Err(error) => break End::Failed(error.into()),
                }
                if until.counted(done.count) {
                    break End::Amount;
                }
                if !until.stop.is_set() {
                    continue;
                }
            }
            Err(rustix::io::Errno::CONNREFUSED) => {}
            Err(error) if phase::is_again(&error.into()) => {}
            Err(error) => break End::Failed(error.into()),
        }
        if let Some(end) = until.over(Instant::now()) {
            break end;
        }
    };
    done.end(end)
}

/// How a client asks over UDP.
#[derive(Debug, Clone, Copy)]
pub struct Asking {
    /// Bytes of a request and of a response.
    pub sizes: (usize, usize),
    /// Requests not answered, at most.
    pub in_flight: usize,
    /// After so long without any response, what was in flight is lost and asked anew. None: it waits until the test is over.
    pub patience: Option<Duration>,
}

/// Asks over a connected socket until it is over. Responses have no numbers: each is taken for that of the oldest request.
pub fn ask(
    socket: &UdpSocket,
    asking: &Asking,
    until: &Until,
    progress: &Progress,
    latency: &Latency,
) -> Done {
    let mut done = Done::new();
    if let Err(error) = phase::look_up_often(socket) {
        return done.end(End::Failed(error));
    }
    let (request, response) = asking.sizes;
    let asked = content(request);
    let mut room = vec![0; response.max(1)];
    let mut since: VecDeque<Instant> = VecDeque::with_capacity(asking.in_flight);
    let mut heard = Instant::now();
    let end = loop {
        while since.len() < asking.in_flight
            && until.count.is_none_or(|count| done.count + (since.len() as u64) < count)
        {
            let now = Instant::now();
            match rustix::net::send(socket, &asked, SendFlags::NOSIGNAL) {
                Ok(_) => since.push_back(now),
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR | rustix::io::Errno::NOBUFS) => {
                    if let Some(end) = until.over(now) {
                        return done.end(end);
                    }
                }
                Err(error) => return done.end(End::Failed(error.into())),
            }
        }
        if since.is_empty() {
            break End::Amount;
        }
        match rustix::net::recv(socket, &mut room, RecvFlags::empty()) {
            Ok((_, got)) => {
                let now = Instant::now();
                heard = now;
                if let Some(asked_at) = since.pop_front() {
                    latency.record(now - asked_at);
                }
                done.bytes += got as u64;
                done.count += 1;
                progress.add(request + got);
                if let Some(end) = until.over(now) {
                    break end;
                }
            }
            Err(error) if phase::is_again(&error.into()) => {
                let now = Instant::now();
                if let Some(end) = until.over(now) {
                    break end;
                }
                if asking.patience.is_some_and(|patience| now.saturating_duration_since(heard) >= patience) {
                    progress.lost.fetch_add(since.len() as u64, Relaxed);
                    since.clear();
                    heard = now;
                }
            }
            Err(error) => break End::Failed(error.into()),
        }
    };
    done.end(end)
}
