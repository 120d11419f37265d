//! The server's side of a data phase.

use super::watch::{Quiet, every};
use super::{control, percent, processors, send_size, udp, width};
use crate::cpu::{self, Reading};
use crate::datagram::{self, Bare};
use crate::exchange::{self, Answering, Closing, Exchange};
use crate::phase::{Done, End, Progress, Stop, Until};
use crate::socket::{self, Actual, Options};
use crate::stream::{self, Receive, Receiving, Send, Sending};
use crate::tcp_info::TcpInfo;
use endpoint::netperf::omni::{Cpu, Response, Results, flag};
use endpoint::netperf::plan::{Length, Plan, Shape, Style, Transport};
use endpoint::netperf::server::RATE;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// A client that does not connect for data within this has gone, or is kept off by a firewall.
const COMES: Duration = Duration::from_secs(30);
/// How much longer than a test's length data may come.
const DRAINS: Duration = Duration::from_secs(60);
/// A phase that has not moved for so long has no peer any more.
const STALLED: Duration = Duration::from_secs(30);
/// The same while its time is not over: a peer that keeps its connection and does nothing for a day takes a place for a day.
const SILENT_PEER: Duration = Duration::from_secs(120);
/// A test that its client does not end (connections for each transaction; legacy requests) is over when, after its time, nothing has
/// come for so long. netserver waits for four seconds.
const SILENT: Duration = Duration::from_millis(200);
/// How often the phase is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// Where data comes in.
#[derive(Debug)]
enum Door {
    Tcp(TcpListener),
    Udp(UdpSocket),
}

/// A test whose socket is there.
#[derive(Debug)]
pub struct Prepared {
    door: Door,
    plan: Plan,
    initial: Actual,
    sizes: (u32, u32),
    /// Who may send data.
    from: Vec<IpAddr>,
}

/// Makes the socket that a plan needs. `own` and `peer` are the control connection's ends.
pub fn prepare(plan: Plan, own: IpAddr, peer: IpAddr) -> Result<(Prepared, Response), socket::SocketError> {
    let v6 = plan.v6.unwrap_or(own.is_ipv6());
    let any: IpAddr = if v6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    let at =
        SocketAddr::new(plan.address.filter(|address| address.is_ipv6() == v6).unwrap_or(any), plan.port);
    let tcp = plan.transport == Transport::Tcp;
    let options = Options {
        send_buffer: plan.send_buffer,
        receive_buffer: plan.recv_buffer,
        nodelay: plan.nodelay && tcp,
        congestion: plan.congestion.clone().filter(|_| tcp),
        tos: plan.tos,
        priority: plan.priority,
        dont_fragment: plan.dont_fragment,
        keepalive: plan.keepalive && tcp,
        fast_open: plan.fast_open && tcp,
        defer_accept: plan.defer_accept && tcp,
        ..Options::default()
    };
    let (door, initial, port) = if tcp {
        let listener = socket::listen(at, &options, 1024)?;
        let (actual, port) = (Actual::of(&listener), listener.local_addr());
        (Door::Tcp(listener), actual, port)
    } else {
        let udp = socket::udp(at, &options)?;
        let (actual, port) = (Actual::of(&udp), udp.local_addr());
        (Door::Udp(udp), actual, port)
    };
    let port = port.map_or(0, |at| at.port());
    let [sent, received] = [initial.send_buffer, initial.receive_buffer].map(|size| size.unwrap_or(16_384));
    let sends = matches!(plan.shape, Shape::Send);
    let receives = matches!(plan.shape, Shape::Receive);
    let answers = matches!(plan.shape, Shape::Answer | Shape::AnswerEach);
    let sizes = if answers {
        (plan.response_size, plan.request_size)
    } else {
        (send_size(plan.send_size, sent, !tcp), plan.receive_size.unwrap_or(received).max(1))
    };
    let asked = &plan.request;
    let response = Response {
        recv_buffer: received as i32,
        receive_size: if receives || answers { sizes.1 as i32 } else { asked.receive_size },
        recv_width: if receives {
            width(asked.recv_width, received, sizes.1)
        } else {
            i32::from(answers).max(asked.recv_width)
        },
        send_buffer: sent as i32,
        send_size: if sends || answers { sizes.0 as i32 } else { asked.send_size },
        send_width: if sends {
            width(asked.send_width, sent, sizes.0)
        } else {
            i32::from(answers).max(asked.send_width)
        },
        flags: if plan.measure_cpu { flag::MEASURE_CPU } else { 0 }
            | if plan.nodelay { flag::NODELAY } else { 0 },
        cpu_rate: if plan.measure_cpu { RATE } else { 0.0 },
        length: asked.length,
        data_port: port.into(),
        priority: asked.priority,
        tos: asked.tos,
    };
    let mut from = vec![peer];
    // Who only sends us bytes may have a second address; who is sent any is where its control connection comes from.
    from.extend(plan.peer.filter(|_| tcp || plan.shape == Shape::Receive));
    Ok((Prepared { door, plan, initial, sizes, from }, response))
}

/// What was found out while the phase ran.
#[derive(Default)]
struct Found {
    results: Results,
}

/// What the phase and who watches it share.
struct Shared<'a> {
    progress: &'a Progress,
    stop: &'a Stop,
    began: Instant,
    before: Option<&'a Reading>,
}

impl Prepared {
    /// Bytes that the test takes: of the program for a message each way, and of the kernel for the socket's buffers.
    pub fn memory(&self) -> u64 {
        let kernel = [self.initial.send_buffer, self.initial.receive_buffer].map(|size| size.unwrap_or(0));
        [self.sizes.0, self.sizes.1, kernel[0], kernel[1]].map(u64::from).iter().sum()
    }

    /// Runs the phase. It ends early when the client closes its control connection, or `stop` is set.
    pub fn run(self, control: &TcpStream, stop: &Stop) -> io::Result<Results> {
        let (progress, ends, over) = (Progress::new(), Stop::new(), Stop::new());
        let before = self.plan.measure_cpu.then(Reading::now);
        let shared =
            Shared { progress: &progress, stop: &ends, began: Instant::now(), before: before.as_ref() };
        // Where a test ends by silence, what processors did is read when that begins.
        let silent: Mutex<Option<(Duration, Option<Reading>)>> = Mutex::new(None);
        let outcome = std::thread::scope(|scope| {
            let mut watcher = Watcher::new(&self.plan, control, stop, &shared, &silent);
            every(scope, LOOK, &over, move || watcher.look());
            // A thread of its own: processors are its, not the server's.
            let phase = scope.spawn(|| self.phase(&shared));
            let outcome = phase.join();
            over.set();
            outcome.unwrap_or_else(|_| Err(io::Error::other("the data phase broke")))
        });
        let (done, mut found) = outcome?;
        let silent = silent.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (elapsed, after) = match (silent, &done.end) {
            (Some((elapsed, after)), End::Stopped | End::Time) => (elapsed, after),
            _ => (shared.began.elapsed(), self.plan.measure_cpu.then(Reading::now)),
        };
        let results = &mut found.results;
        results.elapsed = elapsed.as_secs_f32();
        results.cpu = match (&before, &after) {
            (Some(before), Some(after)) => percent(&before.until(after)).unwrap_or_default(),
            _ => Cpu { count: processors() as i32, ..Cpu::default() },
        };
        self.count(&done, results);
        match done.end {
            // Bytes that came are counted, whatever became of the connection.
            End::Failed(error) if done.bytes == 0 && done.count == 0 => Err(error),
            _ => Ok(found.results),
        }
    }

    fn count(&self, done: &Done, results: &mut Results) {
        let calls = u32::try_from(done.count).unwrap_or(u32::MAX);
        match self.plan.shape {
            Shape::Receive => (results.bytes_received, results.recv_calls) = (done.bytes, calls),
            Shape::Send => (results.bytes_sent, results.send_calls) = (done.bytes, calls),
            Shape::Answer | Shape::AnswerEach => {
                results.bytes_received = done.count * u64::from(self.plan.request_size);
                results.bytes_sent = done.count * u64::from(self.plan.response_size);
                (results.recv_calls, results.send_calls, results.transactions) = (calls, calls, calls);
            }
            Shape::AcceptEach => results.transactions = calls,
        }
    }

    fn until(&self, shared: &Shared<'_>) -> Until {
        let mut until = Until::stopped(shared.stop);
        match (self.plan.length, self.plan.shape) {
            (Length::Units(units), Shape::Receive | Shape::Send) => until.bytes = Some(units),
            (Length::Units(units), _) => until.count = Some(units),
            (Length::Time(time), Shape::Send) => until.deadline = Instant::now().checked_add(time),
            (Length::Time(_), _) => {}
        }
        until
    }

    fn phase(&self, shared: &Shared<'_>) -> io::Result<(Done, Found)> {
        if let Some(core) = self.plan.core {
            cpu::pin(core)?;
        }
        match (&self.door, self.plan.shape) {
            (Door::Tcp(listener), Shape::AnswerEach | Shape::AcceptEach) => self.each(listener, shared),
            (Door::Tcp(listener), _) => match self.accept(listener, shared)? {
                Some(data) => self.over_tcp(&data, shared),
                None => Err(io::ErrorKind::TimedOut.into()),
            },
            (Door::Udp(socket), _) => self.over_udp(socket, shared),
        }
    }

    fn accept(&self, listener: &TcpListener, shared: &Shared<'_>) -> io::Result<Option<TcpStream>> {
        let late = Instant::now() + COMES;
        while Instant::now() < late && !shared.stop.is_set() {
            if let Some((data, peer)) = socket::accept(listener, LOOK)?
                && self.from.contains(&peer.ip().to_canonical())
            {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }

    fn over_tcp(&self, data: &TcpStream, shared: &Shared<'_>) -> io::Result<(Done, Found)> {
        let until = self.until(shared);
        let (sent, received) = (self.sizes.0 as usize, self.sizes.1 as usize);
        let done = match self.plan.shape {
            Shape::Receive => {
                let method = if self.plan.request.avoid[0] > 0 { Receive::Splice } else { Receive::Read };
                stream::receive(data, &Receiving::new(method, received), &until, shared.progress)
            }
            Shape::Send => {
                let done = stream::send(data, &Sending::new(Send::Write, sent), &until, shared.progress);
                let _ = data.shutdown(Shutdown::Write);
                // Until the client has all: what was sent again is known then.
                let _ = socket::readable(data, Duration::from_millis(500));
                done
            }
            _ => exchange::answer(data, &Exchange::new(received, sent), &until, shared.progress),
        };
        let found = self.found(Some(data));
        Ok((done, found))
    }

    fn each(&self, listener: &TcpListener, shared: &Shared<'_>) -> io::Result<(Done, Found)> {
        let sizes = match self.plan.shape {
            Shape::AcceptEach => (0, 0),
            _ => (self.plan.request_size as usize, self.plan.response_size as usize),
        };
        let from = self.from.first().copied().filter(|_| self.from.len() == 1);
        let (request, response) = sizes;
        let answering = Answering { request, response, closing: Closing::Answerer, spin: false };
        let done = exchange::answer_each(listener, answering, from, &self.until(shared), shared.progress);
        Ok((done, self.found(None)))
    }

    fn over_udp(&self, socket: &UdpSocket, shared: &Shared<'_>) -> io::Result<(Done, Found)> {
        let mut until = self.until(shared);
        if self.plan.shape == Shape::Send {
            let peer = *self.from.first().ok_or(io::ErrorKind::InvalidInput)?;
            let peer = match (socket.local_addr()?.is_ipv6(), peer) {
                (true, IpAddr::V4(v4)) => v4.to_ipv6_mapped().into(),
                _ => peer,
            };
            socket.connect(SocketAddr::new(peer, self.plan.peer_port))?;
            let sending = datagram::Sending::new(self.sizes.0 as usize);
            let done = datagram::send(socket, &sending, &Bare, &until, shared.progress);
            udp::end(socket);
            return Ok((done, self.found(None)));
        }
        let comes = Until {
            deadline: Instant::now().checked_add(COMES.max(self.plan.length.at_most())),
            ..until.clone()
        };
        if udp::meet(socket, &self.from, &comes)?.is_none() {
            // All of them were lost, or nobody sent any: that is a result.
            let none = Done { end: End::Time, ..udp::receive(socket, 1, &comes, shared.progress) };
            return Ok((none, self.found(None)));
        }
        until.bytes = None;
        let done = match self.plan.shape {
            Shape::Receive => udp::receive(socket, self.sizes.1 as usize, &until, shared.progress),
            _ => udp::answer(socket, (self.sizes.1 as usize, self.sizes.0 as usize), &until, shared.progress),
        };
        Ok((done, self.found(None)))
    }

    /// What the kernel says of the connection at the end.
    fn found(&self, data: Option<&TcpStream>) -> Found {
        let ended = data.map(Actual::of);
        let ended = ended.as_ref().unwrap_or(&self.initial);
        // A buffer that was asked for stays as it was made.
        let size = |asked: Option<u32>, end: Option<u32>, begin: Option<u32>| {
            let size = if asked.is_some() { begin } else { end };
            size.map_or(-1, |size| size as i32)
        };
        let congestion = ended.congestion.clone().filter(|_| self.plan.name_congestion && data.is_some());
        let retransmits = data.and_then(|data| TcpInfo::of(data).ok()?.total_retrans);
        let results = Results {
            send_buffer: size(self.plan.send_buffer, ended.send_buffer, self.initial.send_buffer),
            recv_buffer: size(self.plan.recv_buffer, ended.receive_buffer, self.initial.receive_buffer),
            retransmits: retransmits.map_or(-1, |count| count as i32),
            congestion: congestion.unwrap_or_default(),
            ..Results::default()
        };
        Found { results }
    }
}

/// Ends a phase whose client has gone, or that is over.
struct Watcher<'a> {
    plan: Plan,
    control: &'a TcpStream,
    stop: &'a Stop,
    shared: &'a Shared<'a>,
    silent: &'a Mutex<Option<(Duration, Option<Reading>)>>,
    quiet: Quiet,
    patience: Duration,
}

impl<'a> Watcher<'a> {
    fn new(
        plan: &Plan,
        control: &'a TcpStream,
        stop: &'a Stop,
        shared: &'a Shared<'a>,
        silent: &'a Mutex<Option<(Duration, Option<Reading>)>>,
    ) -> Watcher<'a> {
        // Over a long path the next connection takes longer to come.
        let rtt = TcpInfo::of(control).ok().and_then(|info| info.rtt_us).unwrap_or(0);
        let patience = SILENT.max(Duration::from_micros(u64::from(rtt) * 3));
        Watcher { plan: plan.clone(), control, stop, shared, silent, quiet: Quiet::new(), patience }
    }

    fn look(&mut self) {
        let (elapsed, quiet) = (self.shared.began.elapsed(), self.quiet.lasts(self.shared.progress));
        let mut silent = self.silent.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let over = match (self.plan.length, self.plan.shape) {
            // Who reads nothing is sent nothing.
            (Length::Time(_), Shape::Send) => quiet >= SILENT_PEER,
            (Length::Time(time), _) if elapsed >= time => {
                let moved = self.shared.progress.count() > 0;
                // Closing the data connection says it; legacy clients close none before they have the results.
                let ends_itself = self.plan.transport == Transport::Tcp
                    && match self.plan.shape {
                        Shape::Receive => true,
                        Shape::Answer => self.plan.style == Style::Omni,
                        _ => false,
                    };
                // Nor is what takes long by itself taken for silence.
                let count = u32::try_from(self.shared.progress.count().max(1)).unwrap_or(u32::MAX);
                let each = elapsed.saturating_sub(quiet) / count;
                let patience = self.patience.max(2 * LOOK).max(each * 3);
                if quiet < LOOK {
                    *silent = None;
                } else if silent.is_none() {
                    let read = self.shared.before.map(|_| Reading::now());
                    *silent = Some((elapsed.saturating_sub(quiet), read));
                }
                elapsed >= time + DRAINS || moved && !ends_itself && quiet >= patience || quiet >= STALLED
            }
            (Length::Time(_), _) => quiet >= SILENT_PEER,
            (Length::Units(_), _) => quiet >= STALLED.max(COMES),
        };
        // A request that comes before the results is out of turn: its connection is closed afterwards.
        if over || self.stop.is_set() || control::is_disturbed(self.control) {
            self.shared.stop.set();
        }
    }
}
