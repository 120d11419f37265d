//! A test's flows at one end: a thread each, watched together. The same for both ends.

use super::results::{FlowResult, Results, Sample, TcpNow};
use crate::cpu::{self, Reading};
use crate::datagram::{self, Numbered, Sequence};
use crate::exchange::{self, Answering, Closing, Connecting, Exchange};
use crate::pace::Rate;
use crate::phase::{Done, Latency, Progress, Stop, Until, Zerocopy};
use crate::socket::{Actual, Options};
use crate::stream::{self, Receive, Send};
use crate::tcp_info::TcpInfo;
use endpoint::native::End;
use histogram::Histogram;
use std::io;
use std::net::{IpAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What one end does over a flow.
#[derive(Debug)]
pub(super) enum Doing {
    Send(OwnedFd),
    Receive(OwnedFd),
    SendDatagrams(OwnedFd),
    ReceiveDatagrams(OwnedFd),
    Ask(OwnedFd),
    Answer(OwnedFd),
    AskEach(Box<Connecting>),
    /// Over connections to this, from there.
    AnswerEach(Arc<TcpListener>, Option<IpAddr>),
}

/// How.
#[derive(Debug, Clone)]
pub(super) struct Manner {
    pub end: End,
    pub size: usize,
    pub exchange: Exchange,
    /// Of each flow's bytes.
    pub rate: Option<u64>,
    /// Tells a test's datagrams from others.
    pub key: u64,
    pub until: Until,
}

/// What a socket of an end is to be like.
pub(super) fn options(end: &End) -> Options {
    Options {
        send_buffer: end.send_buffer,
        receive_buffer: end.receive_buffer,
        nodelay: end.nodelay,
        cork: end.cork,
        congestion: end.congestion.clone(),
        pacing_rate: end.pacing_rate,
        tos: end.tos,
        busy_poll: end.busy_poll,
        ..Options::default()
    }
}

/// The way of sending that `name` names.
pub(super) fn send_method(name: Option<&str>) -> Result<Send, String> {
    match name.unwrap_or("write") {
        "write" => Ok(Send::Write),
        "sendfile" => Ok(Send::Sendfile),
        "splice" => Ok(Send::Splice),
        "zerocopy" => Ok(Send::Zerocopy),
        other => Err(format!("there is no way of sending `{other}`: write, sendfile, splice, zerocopy")),
    }
}

/// The way of receiving that `name` names.
pub(super) fn receive_method(name: Option<&str>) -> Result<Receive, String> {
    match name.unwrap_or("read") {
        "read" => Ok(Receive::Read),
        "trunc" => Ok(Receive::Trunc),
        "splice" => Ok(Receive::Splice),
        other => Err(format!("there is no way of receiving `{other}`: read, trunc, splice")),
    }
}

/// Bytes that a receiving call asks for at least.
const RECEIVES: usize = 128 << 10;

struct Flow {
    progress: Arc<Progress>,
    latency: Arc<Latency>,
    /// To ask the kernel of its connection.
    socket: Option<Arc<OwnedFd>>,
    is_tcp: bool,
    thread: JoinHandle<Done>,
}

/// Flows that run.
pub(super) struct Flows {
    flows: Vec<Flow>,
    /// Ends them.
    pub stop: Stop,
    began: Instant,
    warm_up: Duration,
    base: Option<Base>,
    used: Option<Reading>,
}

/// When measuring began, and what was counted by then.
struct Base {
    at: Instant,
    counts: [u64; 6],
    /// Segments that were sent again by then.
    retransmits: u64,
    cpu: Reading,
    kernel: Option<counters::Snapshot>,
}

impl Flows {
    /// Begins, a thread for each flow.
    pub fn start(all: Vec<Doing>, manner: &Manner, warm_up: Duration) -> io::Result<Flows> {
        let mut flows = Vec::with_capacity(all.len());
        // Without a warm-up all is measured from before the first byte.
        let base = warm_up.is_zero().then(|| Base::now(Instant::now(), [0; 6], 0));
        let began = Instant::now();
        let stop = manner.until.stop.clone();
        for (number, doing) in all.into_iter().enumerate() {
            match begin(number, doing, manner) {
                Ok(flow) => flows.push(flow),
                Err(error) => {
                    stop.set();
                    return Err(error);
                }
            }
        }
        Ok(Flows { flows, stop, began, warm_up, base, used: None })
    }

    /// To be called often: measuring begins when the warm-up is over.
    pub fn tick(&mut self) {
        if self.base.is_none() && self.began.elapsed() >= self.warm_up {
            // Counts and time are of one moment: what is dearer to read comes after.
            let (at, counts) = (Instant::now(), self.counts());
            for flow in &self.flows {
                flow.latency.take();
            }
            self.base = Some(Base::now(at, counts, self.retransmits()));
        }
    }

    /// Its own work is over, though what others have to say may still come: what processors are used for is not of it any more.
    pub fn close(&mut self) {
        self.used.get_or_insert_with(Reading::now);
    }

    /// Segments that were sent again so far, over all connections.
    fn retransmits(&self) -> u64 {
        let sockets = self.flows.iter().filter(|flow| flow.is_tcp).flat_map(|flow| flow.socket.as_deref());
        let infos = sockets.filter_map(|socket| TcpInfo::of(socket).ok());
        infos.map(|info| u64::from(info.total_retrans.unwrap_or(0))).sum()
    }

    /// When [`Flows::tick`] has something to do.
    pub fn next_tick(&self) -> Option<Duration> {
        self.base.is_none().then(|| self.warm_up.saturating_sub(self.began.elapsed()))
    }

    /// What is measured has begun.
    pub fn is_measuring(&self) -> bool {
        self.base.is_some()
    }

    /// Since it began.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    fn counts(&self) -> [u64; 6] {
        let mut counts = [0_u64; 6];
        for Flow { progress: p, .. } in &self.flows {
            let all = [&p.bytes, &p.count, &p.lost, &p.reordered, &p.duplicates, &p.dropped];
            for (sum, count) in counts.iter_mut().zip(all) {
                *sum = sum.saturating_add(count.load(Relaxed));
            }
        }
        counts
    }

    /// All threads have ended.
    pub fn are_over(&self) -> bool {
        self.flows.iter().all(|flow| flow.thread.is_finished())
    }

    /// How they stand. With `tcp` the kernel is asked of each connection, of at most so many.
    pub fn sample(&self, tcp: bool) -> Sample {
        let [bytes, count, lost, ..] = self.counts();
        let asked = self.flows.iter().filter(|flow| tcp && flow.is_tcp).take(MOST_ASKED);
        let infos: Vec<TcpInfo> =
            asked.filter_map(|flow| TcpInfo::of(flow.socket.as_deref()?).ok()).collect();
        let elapsed_ns = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Sample { elapsed_ns, bytes, count, lost, tcp: TcpNow::of(&infos) }
    }

    /// How long transactions took so far.
    pub fn latency(&self) -> Histogram {
        let mut all = Histogram::new();
        for flow in &self.flows {
            flow.latency.add_to(&mut all);
        }
        all
    }

    /// Waits for all threads, and says what they came to. Those who do not end by themselves have to be stopped before.
    pub fn finish(mut self) -> (Results, Histogram) {
        // All that ended within the warm-up is measured as it is.
        self.warm_up = self.warm_up.min(self.began.elapsed());
        self.tick();
        let latency_of: Vec<Arc<Latency>> = self.flows.iter().map(|flow| Arc::clone(&flow.latency)).collect();
        let (began, base) = (self.began, self.base.take());
        let mut results = Results::default();
        let mut infos = Vec::new();
        let (mut last, mut first): (Option<Instant>, Option<Instant>) = (None, None);
        let mut jitter = (0, 0);
        let mut progresses = Vec::new();
        for flow in std::mem::take(&mut self.flows) {
            let done = flow.thread.join().unwrap_or_else(|_| {
                Done::new().end(crate::phase::End::Failed(io::Error::other(
                    "a thread panicked: this is a defect of netdyno",
                )))
            });
            last = last.into_iter().chain(done.last).max();
            first = first.into_iter().chain(done.first).min();
            let info =
                flow.socket.as_deref().filter(|_| flow.is_tcp).and_then(|socket| TcpInfo::of(socket).ok());
            infos.extend(info.clone());
            let error = done.end.error().map(ToString::to_string);
            results.failed_flows += u64::from(error.is_some());
            results.error = results.error.take().or_else(|| error.clone());
            results.unsent = results.unsent.saturating_add(done.unsent);
            results.moved_ns = results.moved_ns.max(u64::try_from(done.moved.as_nanos()).unwrap_or(u64::MAX));
            if let Some(zerocopy) = done.zerocopy {
                let sum = results.zerocopy.get_or_insert(Zerocopy::default());
                sum.completed += zerocopy.completed;
                sum.copied += zerocopy.copied;
                sum.outstanding += zerocopy.outstanding;
            }
            if done.count > 0 {
                jitter = (jitter.0 + flow.progress.jitter_ns.load(Relaxed), jitter.1 + 1);
            }
            if results.flows.len() < MOST_LISTED {
                let socket = flow.socket.as_deref().map(Actual::of).unwrap_or_default();
                results.flows.push(FlowResult {
                    bytes: done.bytes,
                    count: done.count,
                    error,
                    socket,
                    tcp: info,
                });
            }
            progresses.push(flow.progress);
        }
        let mut counts = [0_u64; 6];
        for p in &progresses {
            let all = [&p.bytes, &p.count, &p.lost, &p.reordered, &p.duplicates, &p.dropped];
            for (sum, count) in counts.iter_mut().zip(all) {
                *sum = sum.saturating_add(count.load(Relaxed));
            }
        }
        let base_at = base.as_ref().map_or(began, |base| base.at);
        // Without a warm-up it begins with the first byte: the way to the other end is not of this end's time.
        let from =
            if self.warm_up.is_zero() { first.map_or(base_at, |first| first.max(base_at)) } else { base_at };
        results.seconds = last.map_or(0.0, |last| last.saturating_duration_since(from).as_secs_f64());
        if let Some(base) = &base {
            for (count, before) in counts.iter_mut().zip(base.counts) {
                *count = count.saturating_sub(before);
            }
            results.cpu = Some(base.cpu.until(&self.used.take().unwrap_or_else(Reading::now)));
            let now = base.kernel.as_ref().and(counters::Snapshot::here().ok());
            let difference =
                base.kernel.as_ref().zip(now).map(|(before, now)| counters::difference(before, &now));
            results.counters = difference.and_then(Result::ok);
        }
        [
            results.bytes,
            results.count,
            results.lost,
            results.reordered,
            results.duplicates,
            results.dropped,
        ] = counts;
        results.jitter_ns = jitter.0 / jitter.1.max(1);
        results.tcp = TcpNow::of(&infos);
        let before = base.as_ref().map_or(0, |base| base.retransmits);
        results.retransmits = results.tcp.map(|tcp| tcp.retransmits.saturating_sub(before));
        let mut latency = Histogram::new();
        for one in latency_of {
            one.add_to(&mut latency);
        }
        (results, latency)
    }
}

impl Base {
    fn now(at: Instant, counts: [u64; 6], retransmits: u64) -> Base {
        let (cpu, kernel) = (Reading::now(), counters::Snapshot::here().ok());
        Base { at, counts, retransmits, cpu, kernel }
    }
}

impl Drop for Flows {
    /// Threads that nobody watches any more end.
    fn drop(&mut self) {
        self.stop.set();
    }
}

/// Connections that the kernel is asked of, at each sample.
const MOST_ASKED: usize = 256;
/// Flows that results list.
const MOST_LISTED: usize = 64;

fn begin(number: usize, doing: Doing, manner: &Manner) -> io::Result<Flow> {
    let (progress, latency) = (Arc::new(Progress::new()), Arc::new(Latency::new()));
    let (socket, doing) = split(doing);
    let is_tcp = socket.as_deref().is_some_and(|socket| TcpInfo::of(socket).is_ok());
    let thread = {
        let (progress, latency, socket) = (Arc::clone(&progress), Arc::clone(&latency), socket.clone());
        let manner = manner.clone();
        let core = match manner.end.cores.as_slice() {
            [] => None,
            cores => cores.get(number % cores.len()).copied(),
        };
        std::thread::Builder::new().name(format!("flow {number}")).stack_size(256 << 10).spawn(move || {
            if let Some(Err(error)) = core.map(cpu::pin) {
                let core = core.unwrap_or(0);
                let said = format!("pinning a thread to core {core}: {error}");
                return Done::new().end(crate::phase::End::Failed(io::Error::new(error.kind(), said)));
            }
            carry_out(doing, socket.as_deref(), &manner, &progress, &latency)
        })?
    };
    Ok(Flow { progress, latency, socket, is_tcp, thread })
}

enum Which {
    Send,
    Receive,
    SendDatagrams,
    ReceiveDatagrams,
    Ask,
    Answer,
    AskEach(Box<Connecting>),
    AnswerEach(Arc<TcpListener>, Option<IpAddr>),
}

fn split(doing: Doing) -> (Option<Arc<OwnedFd>>, Which) {
    let (socket, which) = match doing {
        Doing::Send(socket) => (socket, Which::Send),
        Doing::Receive(socket) => (socket, Which::Receive),
        Doing::SendDatagrams(socket) => (socket, Which::SendDatagrams),
        Doing::ReceiveDatagrams(socket) => (socket, Which::ReceiveDatagrams),
        Doing::Ask(socket) => (socket, Which::Ask),
        Doing::Answer(socket) => (socket, Which::Answer),
        Doing::AskEach(connecting) => return (None, Which::AskEach(connecting)),
        Doing::AnswerEach(listener, from) => return (None, Which::AnswerEach(listener, from)),
    };
    (Some(Arc::new(socket)), which)
}

fn carry_out(
    which: Which,
    socket: Option<&OwnedFd>,
    manner: &Manner,
    progress: &Progress,
    latency: &Latency,
) -> Done {
    let failed = |said: String| {
        Done::new().end(crate::phase::End::Failed(io::Error::new(io::ErrorKind::InvalidInput, said)))
    };
    let Manner { end, until, .. } = manner;
    let numbered = Numbered { key: manner.key };
    match (which, socket) {
        (Which::Send, Some(socket)) => {
            let method = match send_method(end.send_method.as_deref()) {
                Ok(method) => method,
                Err(said) => return failed(said),
            };
            let rate = manner.rate.map(|bits| Rate::of_bits(bits, manner.size));
            let sending =
                stream::Sending { rate, spin: end.spin, ..stream::Sending::new(method, manner.size) };
            let done = stream::send(socket, &sending, until, progress);
            // The other end then reads to the end.
            let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Write);
            done
        }
        (Which::Receive, Some(socket)) => {
            let method = match receive_method(end.receive_method.as_deref()) {
                Ok(method) => method,
                Err(said) => return failed(said),
            };
            let size = manner.size.max(RECEIVES);
            let rate = manner.rate.map(|bits| Rate::of_bits(bits, size));
            let seldom = !matches!(end.send_method.as_deref(), Some("sendfile" | "splice"));
            stream::receive(
                socket,
                &stream::Receiving { rate, seldom, ..stream::Receiving::new(method, size) },
                until,
                progress,
            )
        }
        (Which::SendDatagrams, Some(socket)) => {
            let rate = manner.rate.map(|bits| Rate::of_bits(bits, manner.size));
            let sending = datagram::Sending {
                batch: end.batch.map_or(if end.gso { 64 } else { 1 }, |batch| batch as usize),
                gso: end.gso,
                rate,
                spin: end.spin,
                ..datagram::Sending::new(manner.size)
            };
            datagram::send(socket, &sending, &numbered, until, progress)
        }
        (Which::ReceiveDatagrams, Some(socket)) => {
            let receiving = datagram::Receiving {
                batch: end.batch.map_or(32, |batch| batch as usize),
                gro: end.gro,
                ..datagram::Receiving::new(manner.size)
            };
            datagram::receive(socket, &receiving, &numbered, until, progress, &mut Sequence::new())
        }
        (Which::Ask, Some(socket)) => exchange::ask(socket, &manner.exchange, until, progress, latency),
        (Which::Answer, Some(socket)) => exchange::answer(socket, &manner.exchange, until, progress),
        (Which::AskEach(connecting), _) => exchange::ask_each(&connecting, until, progress, latency),
        (Which::AnswerEach(listener, from), _) => {
            let Exchange { request, response, spin, .. } = manner.exchange;
            let answering = Answering { request, response, closing: Closing::Answerer, spin };
            exchange::answer_each(&listener, answering, from, until, progress)
        }
        _ => failed("a flow without a socket".to_owned()),
    }
}
