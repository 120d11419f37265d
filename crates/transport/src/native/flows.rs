//! A test's flows at one end, watched together: a thread each, or of many some threads for all (`crowd`). The same for both ends.

use super::results::{FlowResult, Results, Sample, TcpNow};
use crate::cpu::{self, Reading};
use crate::crowd::acceptor::Acceptor;
use crate::crowd::calls::Calling;
use crate::crowd::{self, FEW};
use crate::datagram::{self, Numbered, Sequence, Window};
use crate::exchange::{self, Answering, Closing, Connecting, Exchange};
use crate::memory;
use crate::pace::Rate;
use crate::phase::{Done, End as PhaseEnd, Latency, Progress, Stop, Until, Zerocopy};
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
    /// Many connections by one thread.
    Call(Box<Calling>),
    Acceptor(Box<Acceptor>),
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
    /// When the time of `until` began.
    pub began: Instant,
    pub until: Until,
    /// So many threads for all flows. None: a thread each, up to [`FEW`]; of more a thread for each processor.
    pub threads: Option<usize>,
    /// Of streams of datagrams, those that count.
    pub window: Window,
    /// What was in use before the connections were there.
    pub memory: memory::Reading,
}

/// Threads for flows of which no more than some have one each.
pub(super) fn workers(threads: Option<usize>, flows: usize) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    threads.unwrap_or_else(cores).clamp(1, flows.max(1)).min(MOST_THREADS)
}

/// They go by few threads.
pub(super) fn are_many(threads: Option<usize>, flows: usize) -> bool {
    threads.is_some() || flows > FEW
}

/// What a socket of an end is to be like: as the plan has it, and otherwise as `own` is.
pub(super) fn options(own: &Options, end: &End) -> Options {
    Options {
        send_buffer: end.send_buffer,
        receive_buffer: end.receive_buffer,
        nodelay: end.nodelay,
        cork: end.cork,
        congestion: end.congestion.clone(),
        pacing_rate: end.pacing_rate,
        tos: end.tos,
        busy_poll: end.busy_poll,
        ..own.clone()
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
/// Threads for many flows, at most.
const MOST_THREADS: usize = 1024;

/// A thread, with one flow or many.
struct Worker {
    progress: Arc<Progress>,
    latency: Arc<Latency>,
    /// To ask the kernel of its connections.
    sockets: Arc<[OwnedFd]>,
    is_tcp: bool,
    thread: JoinHandle<Vec<Done>>,
}

/// Flows that run.
pub(super) struct Flows {
    flows: Vec<Worker>,
    memory: memory::Reading,
    /// Ends them.
    pub stop: Stop,
    began: Instant,
    warm_up: Duration,
    base: Option<Base>,
    used: Option<Reading>,
    /// Which datagrams count they say themselves.
    windowed: bool,
    /// This end receives or answers: its time begins with the first byte.
    receives: bool,
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
    /// Begins.
    pub fn start(all: Vec<Doing>, manner: &Manner, warm_up: Duration) -> io::Result<Flows> {
        let windowed =
            all.iter().any(|doing| matches!(doing, Doing::SendDatagrams(_) | Doing::ReceiveDatagrams(_)));
        let begins = |doing: &Doing| {
            matches!(
                doing,
                Doing::Send(_) | Doing::SendDatagrams(_) | Doing::Ask(_) | Doing::AskEach(_) | Doing::Call(_)
            )
        };
        let receives = !all.iter().any(begins);
        let all = gathered(all, manner);
        let mut flows = Vec::with_capacity(all.len());
        // Without a warm-up all is measured from before the first byte.
        let base = warm_up.is_zero().then(|| Base::now(Instant::now(), [0; 6], 0));
        let began = Instant::now();
        let stop = manner.until.stop.clone();
        for (number, (doing, sockets)) in all.into_iter().enumerate() {
            match begin(number, doing, sockets, manner) {
                Ok(flow) => flows.push(flow),
                Err(error) => {
                    stop.set();
                    return Err(error);
                }
            }
        }
        Ok(Flows { flows, memory: manner.memory, stop, began, warm_up, base, used: None, windowed, receives })
    }

    /// To be called often: measuring begins when the warm-up is over.
    pub fn tick(&mut self) {
        if self.base.is_none() && self.began.elapsed() >= self.warm_up {
            // Counts and time are of one moment: what is dearer to read comes after.
            let (at, counts) = (Instant::now(), if self.windowed { [0; 6] } else { self.counts() });
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
        let sockets = self.flows.iter().filter(|flow| flow.is_tcp).flat_map(|flow| flow.sockets.iter());
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
        for Worker { progress: p, .. } in &self.flows {
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
        // Of many, the first ones of each thread.
        let each = MOST_ASKED / self.flows.len().max(1) + 1;
        let asked = self.flows.iter().filter(|flow| tcp && flow.is_tcp);
        let asked = asked.flat_map(|flow| flow.sockets.iter().take(each)).take(MOST_ASKED);
        let infos: Vec<TcpInfo> = asked.filter_map(|socket| TcpInfo::of(socket).ok()).collect();
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
        let [mut last, mut first, mut begun]: [Option<Instant>; 3] = [None; 3];
        let mut by_first = Vec::new();
        let mut jitter = (0, 0);
        let mut progresses = Vec::new();
        let mut ended = Vec::new();
        for flow in std::mem::take(&mut self.flows) {
            let panicked = || io::Error::other("a thread panicked: this is a defect of netdyno");
            let done = flow.thread.join().unwrap_or_else(|_| crowd::failed(flow.sockets.len(), &panicked()));
            ended.push((done, flow.sockets, flow.is_tcp));
            progresses.push(flow.progress);
        }
        // While all connections are still there.
        let open: usize = ended
            .iter()
            .map(|(done, sockets, _)| sockets.len() + done.iter().map(|done| done.held.len()).sum::<usize>())
            .sum();
        if open > 0 {
            results.memory = Some(self.memory.until(&memory::Reading::now(), open as u64));
        }
        for ((all, sockets, is_tcp), progress) in ended.into_iter().zip(&progresses) {
            if all.iter().any(|done| done.count > 0) {
                jitter = (jitter.0 + progress.jitter_ns.load(Relaxed), jitter.1 + 1);
            }
            for (at, done) in all.into_iter().enumerate() {
                last = last.into_iter().chain(done.last).max();
                first = first.into_iter().chain(done.first).min();
                begun = begun.into_iter().chain([done.began]).min();
                by_first.extend(done.first.map(|at| (at, done.by_first)));
                let socket = sockets.get(at);
                let info = socket.filter(|_| is_tcp).and_then(|socket| TcpInfo::of(socket).ok());
                infos.extend(info.clone());
                note(&mut results, done, socket, info);
            }
        }
        let mut counts = counted(&progresses);
        let base_at = base.as_ref().map_or(began, |base| base.at);
        // Without a warm-up, and of datagrams, which say by themselves whether they count, a receiver's time begins with the first byte that counts:
        // the way to the other end is not of it. Whoever begins does so with its first thread, as its schedule does.
        let from = match (self.warm_up.is_zero() || self.windowed, self.receives) {
            (true, true) => first.unwrap_or(base_at),
            (true, false) => begun.map_or(base_at, |begun| begun + self.warm_up),
            (false, _) => base_at,
        };
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
        if self.receives && self.warm_up.is_zero() {
            // A time from long before this end began is none that it knows: the other one may have begun earlier, or not.
            let most = last.map_or(0.0, |last| last.saturating_duration_since(began).as_secs_f64());
            let seconds = results.seconds * stretched(results.bytes, &by_first);
            results.amount_seconds = Some(if seconds > most * BEYOND { 0.0 } else { seconds });
        }
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

/// Adds what a flow came to.
fn note(results: &mut Results, done: Done, socket: Option<&OwnedFd>, tcp: Option<TcpInfo>) {
    let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let error = done.end.error().map(ToString::to_string);
    results.failed_flows += u64::from(error.is_some());
    results.error = results.error.take().or_else(|| error.clone());
    results.unsent = results.unsent.saturating_add(done.unsent);
    results.moved_ns = results.moved_ns.max(ns(done.moved));
    results.late_ns = results.late_ns.max(ns(done.late));
    if let Some(zerocopy) = done.zerocopy {
        let sum = results.zerocopy.get_or_insert(Zerocopy::default());
        sum.completed += zerocopy.completed;
        sum.copied += zerocopy.copied;
        sum.outstanding += zerocopy.outstanding;
    }
    if let Some(opened) = &done.opened {
        results.opened = Some(results.opened.take().unwrap_or_default().plus(opened));
    }
    if results.flows.len() < MOST_LISTED {
        let socket = socket.map(Actual::of).unwrap_or_default();
        results.flows.push(FlowResult { bytes: done.bytes, count: done.count, error, socket, tcp });
    }
}

/// What was there when the first bytes were read came before the time that is known, on a busy machine all of it: by how much longer than from
/// the first to the last the time of all bytes is, if what came before it came as what followed did. 0: most of it was there, and what followed
/// tells no time of it: a few bytes that waited for an acknowledgement would be a path of a hundredth of what it carries.
/// `by_first`: of each flow when its first bytes were read, and how many were there.
fn stretched(bytes: u64, by_first: &[(Instant, u64)]) -> f64 {
    let Some(first) = by_first.iter().map(|(at, _)| *at).min() else { return 1.0 };
    let at_once = by_first.iter().filter(|(at, _)| at.saturating_duration_since(first) <= AT_ONCE);
    let before: u64 = at_once.map(|(_, bytes)| *bytes).sum();
    if before == 0 {
        return 1.0;
    }
    let later = bytes.saturating_sub(before);
    if later < before { 0.0 } else { bytes as f64 / later as f64 }
}

/// What all flows counted within the time that counts: bytes, units, lost, reordered, duplicated and dropped ones.
fn counted(progresses: &[Arc<Progress>]) -> [u64; 6] {
    let mut counts = [0_u64; 6];
    for p in progresses {
        let all = [&p.bytes, &p.count, &p.lost, &p.reordered, &p.duplicates, &p.dropped];
        let out = &p.outside;
        let none = std::sync::atomic::AtomicU64::new(0);
        let outside = [&out.bytes, &out.count, &none, &out.reordered, &out.duplicates, &out.dropped];
        for ((sum, count), outside) in counts.iter_mut().zip(all).zip(outside) {
            *sum = sum.saturating_add(count.load(Relaxed).saturating_sub(outside.load(Relaxed)));
        }
    }
    counts
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
/// The time of an amount may be longer than this end has run by so much: by the rate at which all of it came, it is that of its first bytes.
const BEYOND: f64 = 1.05;
/// First bytes of several flows are read at once within this.
const AT_ONCE: Duration = Duration::from_millis(1);
/// Flows that results list.
const MOST_LISTED: usize = 64;

/// What a thread does, and over which sockets: each its own, or of many a share.
fn gathered(all: Vec<Doing>, manner: &Manner) -> Vec<(Which, Vec<OwnedFd>)> {
    let count = all.len();
    let all = all.into_iter().map(split);
    let few = !are_many(manner.threads, count);
    let each = |(socket, which): (Option<OwnedFd>, Which)| (which, socket.into_iter().collect());
    let mut shares: Vec<(Which, Vec<OwnedFd>)> = Vec::new();
    if few {
        return all.map(each).collect();
    }
    let workers = workers(manner.threads, count);
    let mut turn = 0;
    for (socket, which) in all {
        let many = match which {
            Which::Send => Which::SendAll,
            Which::Receive => Which::ReceiveAll,
            Which::Ask if !manner.exchange.datagrams => Which::AskAll,
            Which::Answer if !manner.exchange.datagrams => Which::AnswerAll,
            alone => {
                shares.push(each((socket, alone)));
                continue;
            }
        };
        if shares.len() < workers {
            shares.push((many, socket.into_iter().collect()));
        } else if let Some((_, share)) = shares.get_mut(turn % workers) {
            share.extend(socket);
        }
        turn += 1;
    }
    shares
}

fn begin(number: usize, doing: Which, sockets: Vec<OwnedFd>, manner: &Manner) -> io::Result<Worker> {
    let (progress, latency) = (Arc::new(Progress::new()), Arc::new(Latency::new()));
    let sockets: Arc<[OwnedFd]> = sockets.into();
    let is_tcp = sockets.first().is_some_and(|socket| TcpInfo::of(socket).is_ok());
    let thread = {
        let (progress, latency, sockets) =
            (Arc::clone(&progress), Arc::clone(&latency), Arc::clone(&sockets));
        let manner = manner.clone();
        let core = match manner.end.cores.as_slice() {
            [] => None,
            cores => cores.get(number % cores.len()).copied(),
        };
        std::thread::Builder::new().name(format!("flow {number}")).stack_size(256 << 10).spawn(move || {
            if let Some(Err(error)) = core.map(cpu::pin) {
                let core = core.unwrap_or(0);
                let said = format!("pinning a thread to core {core}: {error}");
                return crowd::failed(sockets.len(), &io::Error::new(error.kind(), said));
            }
            carry_out(doing, &sockets, &manner, &progress, &latency)
        })?
    };
    Ok(Worker { progress, latency, sockets, is_tcp, thread })
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
    Call(Box<Calling>),
    Acceptor(Box<Acceptor>),
    SendAll,
    ReceiveAll,
    AskAll,
    AnswerAll,
}

fn split(doing: Doing) -> (Option<OwnedFd>, Which) {
    let (socket, which) = match doing {
        Doing::Send(socket) => (socket, Which::Send),
        Doing::Receive(socket) => (socket, Which::Receive),
        Doing::SendDatagrams(socket) => (socket, Which::SendDatagrams),
        Doing::ReceiveDatagrams(socket) => (socket, Which::ReceiveDatagrams),
        Doing::Ask(socket) => (socket, Which::Ask),
        Doing::Answer(socket) => (socket, Which::Answer),
        Doing::AskEach(connecting) => return (None, Which::AskEach(connecting)),
        Doing::AnswerEach(listener, from) => return (None, Which::AnswerEach(listener, from)),
        Doing::Call(calling) => return (None, Which::Call(calling)),
        Doing::Acceptor(acceptor) => return (None, Which::Acceptor(acceptor)),
    };
    (Some(socket), which)
}

/// What it begins is due at times that are known beforehand.
fn has_a_schedule(which: &Which, manner: &Manner) -> bool {
    match which {
        Which::Ask | Which::AskAll => manner.exchange.rate.is_some(),
        Which::Call(calling) => calling.rate.is_some(),
        Which::SendDatagrams => manner.rate.is_some(),
        _ => false,
    }
}

fn carry_out(
    which: Which,
    sockets: &[OwnedFd],
    manner: &Manner,
    progress: &Progress,
    latency: &Latency,
) -> Vec<Done> {
    let Manner { end, until, .. } = manner;
    // A schedule is as long as was asked for, from its own beginning: a thread that began late would leave out what was due in
    // its last moments, and nobody would count it.
    let scheduled = until.later(manner.began.elapsed());
    let until = if has_a_schedule(&which, manner) { &scheduled } else { until };
    let numbered = Numbered { key: manner.key };
    let begins = matches!(which, Which::Send | Which::SendAll | Which::Ask | Which::AskAll);
    let done = match (which, sockets.first()) {
        (Which::Send, Some(socket)) => sending(manner).map(|sending| {
            let done = stream::send(socket, &sending, until, progress);
            // The other end then reads to the end.
            let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Write);
            vec![done]
        }),
        (Which::SendAll, _) => {
            sending(manner).map(|sending| crowd::stream::send(sockets, &sending, until, progress))
        }
        (Which::Receive, Some(socket)) => {
            receiving(manner).map(|receiving| vec![stream::receive(socket, &receiving, until, progress)])
        }
        (Which::ReceiveAll, _) => {
            receiving(manner).map(|receiving| crowd::stream::receive(sockets, &receiving, until, progress))
        }
        (Which::SendDatagrams, Some(socket)) => {
            let rate = manner.rate.map(|bits| Rate::of_bits(bits, manner.size));
            let sending = datagram::Sending {
                batch: end.batch.map_or(if end.gso { 64 } else { 1 }, |batch| batch as usize),
                gso: end.gso,
                rate,
                spin: end.spin,
                window: manner.window,
                ..datagram::Sending::new(manner.size)
            };
            Ok(vec![datagram::send(socket, &sending, &numbered, until, progress)])
        }
        (Which::ReceiveDatagrams, Some(socket)) => {
            let receiving = datagram::Receiving {
                batch: end.batch.map_or(32, |batch| batch as usize),
                gro: end.gro,
                window: manner.window,
                ..datagram::Receiving::new(manner.size)
            };
            let mut sequence = Sequence::new();
            Ok(vec![datagram::receive(socket, &receiving, &numbered, until, progress, &mut sequence)])
        }
        (Which::Ask, Some(socket)) => {
            Ok(vec![exchange::ask(socket, &manner.exchange, until, progress, latency)])
        }
        (Which::AskAll, _) => Ok(crowd::exchange::ask(sockets, &manner.exchange, until, progress, latency)),
        (Which::Answer, Some(socket)) => {
            Ok(vec![exchange::answer(socket, &manner.exchange, until, progress)])
        }
        (Which::AnswerAll, _) => Ok(crowd::exchange::answer(sockets, &manner.exchange, until, progress)),
        (Which::AskEach(connecting), _) => {
            Ok(vec![exchange::ask_each(&connecting, until, progress, latency)])
        }
        (Which::AnswerEach(listener, from), _) => {
            let Exchange { request, response, spin, .. } = manner.exchange;
            let answering = Answering { request, response, closing: Closing::Answerer, spin };
            Ok(vec![exchange::answer_each(&listener, answering, from, until, progress)])
        }
        (Which::Call(calling), _) => Ok(vec![crowd::calls::call(&calling, until, progress, latency)]),
        (Which::Acceptor(acceptor), _) => Ok(vec![crowd::acceptor::serve(&acceptor, until, progress)]),
        _ => Err("a flow without a socket".to_owned()),
    };
    let done = done.unwrap_or_else(|said| {
        crowd::failed(sockets.len(), &io::Error::new(io::ErrorKind::InvalidInput, said))
    });
    if begins { done.into_iter().map(left_early).collect() } else { done }
}

/// Who sends or asks ends by itself: a connection that the other end closed before ended too early, and what is counted is of less time
/// than was asked for.
fn left_early(done: Done) -> Done {
    if !matches!(done.end, PhaseEnd::Closed) {
        return done;
    }
    let said = "the other end closed the connection before the test was over";
    Done { end: PhaseEnd::Failed(io::Error::new(io::ErrorKind::ConnectionAborted, said)), ..done }
}

fn sending(manner: &Manner) -> Result<stream::Sending, String> {
    let method = send_method(manner.end.send_method.as_deref())?;
    let rate = manner.rate.map(|bits| Rate::of_bits(bits, manner.size));
    Ok(stream::Sending { rate, spin: manner.end.spin, ..stream::Sending::new(method, manner.size) })
}

fn receiving(manner: &Manner) -> Result<stream::Receiving, String> {
    let method = receive_method(manner.end.receive_method.as_deref())?;
    let size = manner.size.max(RECEIVES);
    let rate = manner.rate.map(|bits| Rate::of_bits(bits, size));
    let seldom = !matches!(manner.end.send_method.as_deref(), Some("sendfile" | "splice"));
    Ok(stream::Receiving { rate, seldom, ..stream::Receiving::new(method, size) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Shutdown;
    use std::os::unix::net::UnixStream;

    #[test]
    fn the_time_of_an_amount_is_not_that_of_its_last_bytes_alone() {
        let now = Instant::now();
        let at = |ms: u64| now + Duration::from_millis(ms);
        // Behind 5 Mbit/s 20 kB of 60 kB had come before the first were read, and the rest took 64 ms.
        assert!((0.064 * stretched(60_000, &[(now, 20_000)]) - 0.096).abs() < 1e-9);
        // The initial window came at once, and what was left of it a round trip later.
        assert_eq!(stretched(14_600, &[(now, 14_480)]), 0.0);
        assert_eq!(stretched(60_000, &[(now, 60_000)]), 0.0);
        // Flows that begin later came within the time; what a flow that receives nothing has is nothing.
        assert_eq!(stretched(60_000, &[(now, 10_000), (at(1), 20_000), (at(20), 30_000)]), 2.0);
        assert_eq!([stretched(0, &[]), stretched(9, &[(now, 0)])], [1.0; 2]);
    }

    #[test]
    fn a_connection_that_the_other_end_closed_before_the_end_is_a_failure() {
        for which in [Which::Ask, Which::AskAll, Which::Send, Which::SendAll] {
            let (near, far) = UnixStream::pair().expect("a pair");
            // Who asks can still do so, and gets the end for an answer; who sends finds nobody.
            let asks = matches!(which, Which::Ask | Which::AskAll);
            far.shutdown(if asks { Shutdown::Write } else { Shutdown::Both }).expect("shut");
            let manner = Manner {
                end: End::default(),
                size: 1000,
                exchange: Exchange::new(1, 1),
                rate: None,
                key: 0,
                began: Instant::now(),
                until: Until::lasting(Duration::from_secs(30), &Stop::new()),
                threads: None,
                window: Window::default(),
                memory: memory::Reading::default(),
            };
            let near = [OwnedFd::from(near)];
            let done = carry_out(which, &near, &manner, &Progress::new(), &Latency::new());
            let error = done.first().and_then(|done| done.end.error()).expect("a failure");
            assert!(error.to_string().contains("closed the connection before"), "{error}");
        }
    }
}
