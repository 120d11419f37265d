//! netperf: a control connection, and tests over it.

use super::control::{self, Read1};
use super::local::{self, Phase};
use super::{percent, send_size, watch, width};
use crate::cpu::Reading;
use crate::phase::{End, Latency, Progress, Stop};
use crate::socket::{self, Actual, Options, SocketError};
use endpoint::netperf::client::{Client, Fault, Step};
use endpoint::netperf::message::LENGTH;
use endpoint::netperf::omni::{self, Cpu, Request, Response, Results, direction, flag};
use endpoint::netperf::plan::Length;
use histogram::Histogram;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// netserver answers a request within this.
const ANSWERS: Duration = Duration::from_secs(60);
/// And says what it counted within this.
const COUNTS: Duration = Duration::from_secs(120);
/// After a signal it is not waited for as long.
const HURRIES: Duration = Duration::from_secs(8);

/// What this side does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It sends.
    Send,
    /// It receives.
    Receive,
    /// It asks.
    Transact,
    /// It asks, over a connection for each.
    TransactEach,
    /// It connects and closes.
    ConnectEach,
}

/// A test.
#[derive(Debug, Clone)]
pub struct Test {
    /// What this side does.
    pub kind: Kind,
    /// Over UDP.
    pub datagrams: bool,
    /// How long.
    pub length: Length,
    /// What is asked of the server; its direction, length, sizes and addresses are filled in here.
    pub request: Request,
    /// This side's sockets.
    pub options: Options,
    /// The server's address for data, if it is another than that of the control connection.
    pub data_to: Option<IpAddr>,
    /// Bytes of each send; 0: as many as SO_SNDBUF.
    pub send_size: u32,
    /// Bytes of each receive; 0: as many as SO_RCVBUF.
    pub recv_size: u32,
    /// Bytes of a request.
    pub request_size: u32,
    /// Bytes of a response.
    pub response_size: u32,
    /// Requests in flight beside the first.
    pub burst: u32,
    /// Own ports for connections, in turn.
    pub ports: Option<(u16, u16)>,
    /// sendfile(2).
    pub sendfile: bool,
    /// splice(2) to /dev/null on receive.
    pub avoid_copies: bool,
    /// What buffers are filled with.
    pub fill: Option<Arc<[u8]>>,
    /// The processor to run on.
    pub core: Option<u32>,
    /// From the server's answer to the first byte.
    pub wait: Duration,
    /// A datagram that is not answered by then is lost.
    pub loses_after: Option<Duration>,
    /// Routers are not crossed.
    pub dont_route: bool,
    /// CPU use of this side.
    pub measure_cpu: bool,
}

/// What one run of it came to.
#[derive(Debug)]
pub struct Outcome {
    /// s.
    pub elapsed: f64,
    /// Bytes this side sent and received, and calls for it.
    pub sent: (u64, u64),
    /// As above.
    pub received: (u64, u64),
    /// Transactions.
    pub transactions: u64,
    /// Sends that failed for want of room in a queue.
    pub failed_sends: u64,
    /// Datagrams without an answer.
    pub lost: u64,
    /// The socket at the beginning, and at the end.
    pub initial: Actual,
    /// As above.
    pub ended: Actual,
    /// The connection's MSS.
    pub mss: Option<u32>,
    /// Segments sent again.
    pub retransmits: Option<u32>,
    /// Bytes of each send and receive, as they were.
    pub sizes: (u32, u32),
    /// Buffers in turn, as netperf would have them.
    pub widths: [i32; 2],
    /// How long transactions took, in ns.
    pub latency: Histogram,
    /// CPU use of this side.
    pub cpu: Option<Cpu>,
    /// What the server answered.
    pub response: Response,
    /// What it counted.
    pub results: Results,
    /// A signal ended it before its time.
    pub stopped: bool,
}

/// How a run goes.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// Since the run began.
    pub at: Duration,
    /// Bytes both ways so far.
    pub bytes: u64,
    /// Transactions, or calls, so far.
    pub count: u64,
    /// It is the last one.
    pub last: bool,
}

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// No socket like that.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// No server there, or no netserver.
    #[error("{0}")]
    Server(#[from] Fault),
    /// It went away.
    #[error("the server closed the control connection {0}")]
    Closed(&'static str),
    /// It says nothing.
    #[error("the server said nothing for {0} s: is it a netserver?")]
    Silent(u64),
    /// Data did not flow.
    #[error("the data connection: {0}")]
    Data(io::Error),
    /// The control connection failed.
    #[error("the control connection: {0}")]
    Control(#[from] io::Error),
    /// A signal came.
    #[error("stopped before there was a result")]
    Stopped,
}

/// The peer has closed: with bytes of ours unread that is a reset.
fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe)
}

/// Whoever has closed may have said why before: that is read afterwards.
fn sent(sent: io::Result<()>) -> io::Result<()> {
    match sent {
        Err(error) if is_gone(&error) => Ok(()),
        other => other,
    }
}

/// A control connection.
#[derive(Debug)]
pub struct Session {
    control: TcpStream,
    server: SocketAddr,
    client: Client,
    /// Bytes that came with the last message.
    left: Vec<u8>,
}

impl Session {
    /// Connects to netserver.
    ///
    /// # Errors
    /// Nobody listens there.
    pub fn connect(to: SocketAddr, options: &Options, passphrase: Option<&str>) -> Result<Session, Failure> {
        let control = socket::connect(to, options, Duration::from_secs(20))?;
        control.set_nodelay(true)?;
        if let Some(text) = passphrase {
            sent(control::send(&control, &Client::passphrase(text), ANSWERS))?;
        }
        Ok(Session { control, server: to, client: Client::new(), left: Vec::new() })
    }

    fn step(&mut self, patience: Duration, stop: &Stop) -> Result<Step, Failure> {
        let mut bytes = [0; LENGTH];
        let late = Instant::now() + patience;
        loop {
            let mut rest = self.left.as_slice();
            let step = self.client.receive(&mut rest)?;
            self.left = rest.to_vec();
            match step {
                Some(Step::Again(message)) => {
                    sent(control::send(&self.control, &message, ANSWERS))?;
                    continue;
                }
                Some(step) => return Ok(step),
                None => {}
            }
            let left = late.saturating_duration_since(Instant::now());
            let read = match control::read(&self.control, &mut bytes, left, stop) {
                Err(error) if is_gone(&error) => Read1::Closed,
                other => other?,
            };
            match read {
                Read1::Bytes(count) => self.left.extend_from_slice(bytes.get(..count).unwrap_or_default()),
                Read1::Closed if self.client.held() > 0 => {
                    return Err(Failure::Closed("in the middle of a message"));
                }
                Read1::Closed => {
                    return Err(Failure::Closed(
                        "instead of answering: is it a netserver, and the passphrase (-Z) right?",
                    ));
                }
                Read1::Late => return Err(Failure::Silent(patience.as_secs())),
                Read1::Stopped => return Err(Failure::Stopped),
            }
        }
    }

    /// Runs a test once. `look` is called every `each` while it goes, and once at its end.
    ///
    /// # Errors
    /// The server refused it or went away, or no data flowed.
    pub fn run(
        &mut self,
        test: &Test,
        stop: &Stop,
        each: Option<Duration>,
        look: &(dyn Fn(Moment) + Sync),
    ) -> Result<Outcome, Failure> {
        let to = test.data_to.unwrap_or(self.server.ip());
        let initial = local::fresh(&test.options, to, test.datagrams)?;
        let udp =
            if test.datagrams { Some(local::udp_socket(test, to).map_err(Failure::Data)?) } else { None };
        let (mut test, widths) = sized(test, &initial);
        let port = udp.as_ref().and_then(|udp| udp.local_addr().ok()).map_or(0, |at| at.port());
        let port = if port == 0 { test.options.port.unwrap_or(0) } else { port };
        test.request = asked(&test, to, port, widths);
        let request = self.client.request(&test.request);
        sent(control::send(&self.control, &request, ANSWERS))?;
        let response = match self.step(ANSWERS, stop)? {
            Step::Data(response) => response,
            _ => return Err(Failure::Server(Fault::Unexpected { found: 99, expected: 98 })),
        };
        let Ok(port @ 1..) = u16::try_from(response.data_port) else {
            return Err(Failure::Data(io::Error::other(format!(
                "the server says that its port is {}",
                response.data_port
            ))));
        };
        let (legacy, server) = (self.client.is_legacy(), self.server);
        pause(test.wait, stop);
        let (progress, latency, ends) = (Progress::new(), Latency::new(), Stop::new());
        let before = test.measure_cpu.then(Reading::now);
        let began = Instant::now();
        let phase = std::thread::scope(|scope| {
            let (test, progress, latency) = (&test, &progress, &latency);
            if let Some(each) = each {
                watch::every(scope, each, &ends, move || look(moment(progress, began.elapsed(), false)));
            }
            // A thread of its own, which may be kept to a processor.
            // A link-local address needs its scope.
            let at =
                test.data_to.map_or(crate::socket::at_port(server, port), |to| SocketAddr::new(to, port));
            let to = local::Towards { at, legacy };
            let phase = scope.spawn(move || local::run(test, to, udp, stop, progress, latency)).join();
            ends.set();
            phase.unwrap_or_else(|_| Err(io::Error::other("the data phase broke")))
        });
        if let (Some(_), Ok(phase)) = (each, &phase) {
            look(moment(&progress, phase.done.ended.saturating_duration_since(began), true));
        }
        let elapsed = elapsed(&test, &phase, began);
        let cpu = before.and_then(|before| percent(&before.until(&Reading::now())));
        let phase = match phase {
            Ok(Phase { done: crate::phase::Done { end: End::Failed(error), .. }, .. }) | Err(error) => {
                // The server may know better what happened.
                return Err(match self.step(Duration::from_millis(500), &Stop::new()) {
                    Err(Failure::Server(fault)) => Failure::Server(fault),
                    _ => Failure::Data(error),
                });
            }
            Ok(phase) => phase,
        };
        let stopped = matches!(phase.done.end, End::Stopped);
        let patience = if stopped { HURRIES } else { COUNTS };
        let results = match self.step(patience, &Stop::new())? {
            Step::Done(results) => results,
            _ => return Err(Failure::Server(Fault::Unexpected { found: 98, expected: 99 })),
        };
        let count = phase.done.count;
        let (sent, received, transactions) = match test.kind {
            Kind::Send => ((phase.done.bytes, count), (0, 0), 0),
            Kind::Receive => ((0, 0), (phase.done.bytes, count), 0),
            Kind::ConnectEach => ((0, 0), (0, 0), count),
            _ => {
                let of = |size: u32| (count * u64::from(size), count);
                (of(test.request_size), of(test.response_size), count)
            }
        };
        Ok(Outcome {
            elapsed: elapsed.as_secs_f64(),
            sent,
            received,
            transactions,
            failed_sends: progress.dropped.load(Relaxed),
            lost: progress.lost.load(Relaxed),
            initial,
            ended: phase.ended,
            mss: phase.mss,
            retransmits: phase.retransmits,
            sizes: (test.send_size, test.recv_size),
            widths,
            latency: latency.so_far(),
            cpu,
            response,
            results,
            stopped,
        })
    }
}

fn moment(progress: &Progress, at: Duration, last: bool) -> Moment {
    Moment { at, bytes: progress.bytes(), count: progress.count(), last }
}

/// From the first packet until the last: for UDP the end's datagrams are not part of it.
fn elapsed(test: &Test, phase: &io::Result<Phase>, began: Instant) -> Duration {
    match phase {
        Ok(phase) if test.datagrams && test.kind == Kind::Receive => {
            let last = phase.done.last.map_or(began.elapsed(), |last| last.saturating_duration_since(began));
            // The last datagram may come long before the time is over: a rate is of the time.
            match (test.length, &phase.done.end) {
                (Length::Time(time), End::Time | End::Closed) => last.max(time.min(began.elapsed())),
                _ => last,
            }
        }
        Ok(phase) if test.datagrams => phase.done.ended.saturating_duration_since(began),
        _ => began.elapsed(),
    }
}

fn pause(wait: Duration, stop: &Stop) {
    let until = Instant::now() + wait;
    while Instant::now() < until && !stop.is_set() {
        std::thread::sleep(Duration::from_millis(20).min(until.saturating_duration_since(Instant::now())));
    }
}

/// With the sizes that a socket like `initial` comes to.
fn sized(test: &Test, initial: &Actual) -> (Test, [i32; 2]) {
    let [sent, received] = [initial.send_buffer, initial.receive_buffer].map(|size| size.unwrap_or(16_384));
    let given = |size: u32| (size > 0).then_some(size);
    let mut test = test.clone();
    test.send_size = send_size(given(test.send_size), sent, test.datagrams);
    test.recv_size = given(test.recv_size).unwrap_or(received).max(1);
    let asked = [test.request.send_width, test.request.recv_width];
    let widths = match test.kind {
        Kind::Send => [width(asked[0], sent, test.send_size), asked[1]],
        Kind::Receive => [asked[0], width(asked[1], received, test.recv_size)],
        Kind::ConnectEach => asked,
        Kind::Transact | Kind::TransactEach => asked.map(|width| width.max(1)),
    };
    (test, widths)
}

/// The request, with what is known now.
fn asked(test: &Test, to: IpAddr, own_port: u16, widths: [i32; 2]) -> Request {
    let request = &test.request;
    let transacts = matches!(test.kind, Kind::Transact | Kind::TransactEach);
    let size = |size: u32| if transacts { size as i32 } else { -1 };
    Request {
        send_width: widths[0],
        recv_width: widths[1],
        request_size: size(test.request_size),
        response_size: size(test.response_size),
        // Datagrams are received whole.
        receive_size: match test.kind {
            Kind::Send if test.datagrams && request.receive_size < 0 => test.send_size as i32,
            _ => request.receive_size,
        },
        flags: request.flags
            | if matches!(test.kind, Kind::TransactEach | Kind::ConnectEach) {
                flag::CONNECT_TEST
            } else {
                0
            },
        length: match test.length {
            Length::Time(time) => i32::try_from(time.as_secs()).unwrap_or(i32::MAX),
            Length::Units(units) => i32::try_from(units).map_or(i32::MIN + 1, |units| -units),
        },
        family: if to.is_ipv6() { omni::family::INET6 } else { omni::family::INET },
        socket: if test.datagrams { omni::socket::DGRAM } else { omni::socket::STREAM },
        protocol: if test.datagrams { omni::UDP } else { omni::TCP },
        direction: match test.kind {
            Kind::Send => direction::RECV,
            Kind::Receive => direction::XMIT,
            Kind::Transact | Kind::TransactEach => direction::XMIT | direction::RECV,
            Kind::ConnectEach => 0,
        },
        netperf_port: own_port.into(),
        netperf_ip: test.options.bind.map_or([0; 4], omni::address_words),
        netserver_ip: test.data_to.map_or([0; 4], omni::address_words),
        ..request.clone()
    }
}
