//! A test's data connections while it runs: a thread each, sampled by the thread that has the control connection.

use super::file;
use super::udp::{Narrow, Wide};
use crate::cpu;
use crate::datagram::{self, Sequence};
use crate::pace::Rate;
use crate::phase::{Done, End, Progress, Stop, Until};
use crate::stream;
use crate::tcp_info::TcpInfo;
use endpoint::iperf3::error::Error;
use endpoint::iperf3::params::{Params, Protocol};
use endpoint::iperf3::results::{self, Cpu, Results, stream_id};
use endpoint::iperf3::summary::{Datagrams, Extremes, Interval, Side, Slice, Stream, Tcp, Total};
use rustix::net::RecvFlags;
use std::io;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A data connection.
#[derive(Debug)]
pub enum Link {
    /// A stream.
    Tcp(TcpStream),
    /// Datagrams, to and from one peer.
    Udp(UdpSocket),
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Link::Tcp(socket) => socket.as_fd(),
            Link::Udp(socket) => socket.as_fd(),
        }
    }
}

impl Link {
    fn addresses(&self) -> io::Result<(SocketAddr, SocketAddr)> {
        Ok(match self {
            Link::Tcp(socket) => (socket.local_addr()?, socket.peer_addr()?),
            Link::Udp(socket) => (socket.local_addr()?, socket.peer_addr()?),
        })
    }
}

/// Datagrams that leave in one call when they are due together, or go without a schedule.
const TOGETHER: usize = 64;
/// Who was held up on its schedule catches up: the rate that was asked for is a mean.
const CATCH_UP: Duration = Duration::from_secs(2);
/// What a receiver takes at once of datagrams.
const BATCH: usize = 16;
/// Threads end within a twentieth of a second; a machine under load takes longer.
const ENDS: Duration = Duration::from_secs(10);
/// What had arrived when a test ended is taken within this.
const TAKES: Duration = Duration::from_millis(100);

/// Figures of a stream at one moment, since its start.
#[derive(Debug, Clone, Copy, Default)]
struct Mark {
    bytes: u64,
    udp: Datagrams,
    retransmits: u64,
}

#[derive(Debug)]
struct Live {
    link: Arc<Link>,
    stream: Stream,
    progress: Arc<Progress>,
    thread: Option<JoinHandle<()>>,
    /// Until which its last slice went.
    last: Mark,
    /// Where what counts begins.
    base: Mark,
    done: Option<Done>,
    /// Of a receiver whose own side ends the test: bytes that had arrived by then. What is sent until the sender hears of the end is not
    /// of the test's time.
    most: Arc<AtomicU64>,
    /// What was read after its own end: it is of no figure, but it was sent.
    discarded: Arc<Progress>,
    /// Its figures once the test is over: what comes later changes none of them.
    over: Option<Mark>,
    extremes: Extremes,
    rtt: (u64, u64),
    cpu: [Duration; 2],
}

/// How data is moved on this side, beside what the parameters say.
#[derive(Debug, Clone, Default)]
pub struct Ways {
    /// A file to send, or to write.
    pub file: Option<PathBuf>,
    /// Time, bytes or blocks end the test at this side: it is the client.
    pub ends_it: bool,
}

/// Which stream's thread is done, what it came to, and its CPU time.
type Ended = (usize, Done, [Duration; 2]);

/// All of a test's data connections.
#[derive(Debug)]
pub struct Data {
    params: Params,
    ways: Ways,
    all: Vec<Live>,
    stop: Stop,
    quit: Stop,
    ends: (Sender<Ended>, Receiver<Ended>),
    /// Where what counts began.
    began: Instant,
    /// The control thread's CPU time when the data began.
    cpu_before: [Duration; 2],
    started: Instant,
    last: Instant,
    ended: Option<Instant>,
    /// When the test's time was over, for receivers of datagrams on the side that ends it.
    window: Arc<OnceLock<Instant>>,
    /// Since when all that was sent has been acknowledged, where that was waited for; and when the other side was told of the end.
    gone: Option<Instant>,
    told: Option<Instant>,
    omitting: bool,
}

impl Data {
    /// Not yet running. `links` with whether this side sends, in the order in which the client opened them.
    pub fn new(params: Params, ways: Ways, links: Vec<(Link, bool)>) -> io::Result<Data> {
        let all = links.into_iter().map(|(link, sender)| {
            let (local, remote) = link.addresses()?;
            let stream = Stream { socket: link.as_fd().as_raw_fd(), sender, local, remote };
            Ok(Live {
                link: Arc::new(link),
                stream,
                progress: Arc::new(Progress::new()),
                thread: None,
                last: Mark::default(),
                base: Mark::default(),
                done: None,
                most: Arc::new(AtomicU64::new(u64::MAX)),
                discarded: Arc::new(Progress::new()),
                over: None,
                extremes: Extremes::default(),
                rtt: (0, 0),
                cpu: [Duration::ZERO; 2],
            })
        });
        let now = Instant::now();
        Ok(Data {
            all: all.collect::<io::Result<_>>()?,
            stop: Stop::new(),
            quit: Stop::new(),
            ends: channel(),
            began: now,
            cpu_before: cpu::thread(),
            started: now,
            last: now,
            ended: None,
            window: Arc::default(),
            gone: None,
            told: None,
            omitting: params.omit > 0,
            params,
            ways,
        })
    }

    /// The connections, for the output.
    pub fn streams(&self) -> Vec<Stream> {
        self.all.iter().map(|live| live.stream).collect()
    }

    /// What the kernel made of the first one's options.
    pub fn actual(&self) -> crate::socket::Actual {
        self.all.first().map(|live| crate::socket::Actual::of(&*live.link)).unwrap_or_default()
    }

    /// Starts all threads.
    pub fn run(&mut self) -> io::Result<()> {
        self.cpu_before = cpu::thread();
        // Retransmissions of the handshake are none of the data's.
        for live in &mut self.all {
            live.last = live.mark();
            live.base = live.last;
        }
        let now = Instant::now();
        (self.began, self.started, self.last) = (now, now, now);
        let sends = self.all.iter().filter(|live| live.stream.sender).count().max(1) as u64;
        let amount = self.amount();
        // A server's senders stop as the client's do. Of datagrams some are lost, and the client waits for the rest.
        let tcp = self.params.protocol == Protocol::Tcp;
        let share = amount.filter(|_| self.ways.ends_it || tcp);
        let mut sender = 0;
        // The side that times the test has its senders end by themselves: one that waits for its schedule would do so late.
        let lasts = Duration::from_secs(u64::from(self.params.omit) + u64::from(self.params.seconds));
        let timed = self.ways.ends_it && amount.is_none() && self.params.seconds > 0;
        let deadline = if timed { now.checked_add(lasts) } else { None };
        for (index, live) in self.all.iter_mut().enumerate() {
            // All of them together send the amount, and not a byte more.
            let bytes =
                share.filter(|_| live.stream.sender).map(|all| all / sends + u64::from(sender < all % sends));
            sender += u64::from(live.stream.sender);
            let worker = Worker {
                link: live.link.clone(),
                sender: live.stream.sender,
                params: self.params.clone(),
                file: self.ways.file.clone(),
                until: Until {
                    bytes,
                    deadline: deadline.filter(|_| live.stream.sender),
                    ..Until::stopped(&self.stop)
                },
                progress: live.progress.clone(),
                most: live.most.clone(),
                discarded: live.discarded.clone(),
                window: self.ways.ends_it.then(|| self.window.clone()),
                quit: self.quit.clone(),
            };
            let ends = self.ends.0.clone();
            let thread = std::thread::Builder::new().name(format!("iperf3 {index}")).spawn(move || {
                let done = worker.work();
                let _ = ends.send((index, done, cpu::thread()));
                worker.discard();
            })?;
            live.thread = Some(thread);
        }
        Ok(())
    }

    fn gather(&mut self) {
        while let Ok((index, done, cpu)) = self.ends.1.try_recv() {
            self.note(index, done, cpu);
        }
    }

    fn note(&mut self, index: usize, done: Done, cpu: [Duration; 2]) {
        if let Some(live) = self.all.get_mut(index) {
            live.done = Some(done);
            live.cpu = cpu;
        }
    }

    /// Bytes that end the test.
    fn amount(&self) -> Option<u64> {
        match (self.params.bytes, self.params.blocks) {
            (0, 0) => None,
            (0, blocks) => Some(blocks.saturating_mul(self.params.len.max(1))),
            (bytes, _) => Some(bytes),
        }
    }

    /// Whether the amount that ends the test is sent, or has arrived.
    pub fn finished(&mut self) -> bool {
        let Some(amount) = self.amount() else {
            // A file may end before the test's time.
            return self.ways.file.is_some() && self.all_sent();
        };
        self.all_sent() || self.received().is_some_and(|received| received >= amount)
    }

    /// Whether this side has sent all of an amount, or of a file, that ends the test.
    pub fn all_sent(&mut self) -> bool {
        self.gather();
        let mut senders = self.all.iter().filter(|live| live.stream.sender).peekable();
        senders.peek().is_some()
            && senders.all(|live| live.done.as_ref().is_some_and(|done| matches!(done.end, End::Amount)))
    }

    /// Why a stream ended before its time, if one did.
    pub fn failure(&mut self) -> Option<String> {
        self.gather();
        self.all.iter().find_map(|live| match (&live.done.as_ref()?.end, live.stream.sender) {
            (End::Failed(error), true) => Some(format!("unable to write to stream socket: {error}")),
            (End::Failed(error), false) => Some(format!("unable to read from stream socket: {error}")),
            (End::Closed, _) => Some("stream socket has closed unexpectedly".to_owned()),
            _ => None,
        })
    }

    /// What has arrived so far, of all streams: whoever waits for data looks whether it grows.
    pub fn received(&self) -> Option<u64> {
        let mut of = self.all.iter().filter(|live| !live.stream.sender).peekable();
        of.peek()?;
        Some(of.map(|live| live.progress.bytes()).sum())
    }

    /// What was moved so far in both directions.
    pub fn moved(&self) -> u64 {
        self.all.iter().map(|live| live.progress.bytes()).sum()
    }

    /// What was sent and has not arrived at the other host (TCP: bytes not sent, segments not acknowledged; UDP: bytes of packets that have
    /// not left this host), and the windows that the other host gives: when that reads, they grow.
    pub fn under_way(&self) -> (u64, u64) {
        let sent = self.all.iter().filter(|live| live.stream.sender);
        sent.fold((0, 0), |(way, windows), live| match &*live.link {
            Link::Tcp(socket) => {
                let info = TcpInfo::of(socket).unwrap_or_default();
                let more = info.notsent_bytes.unwrap_or(0).saturating_add(info.unacked.unwrap_or(0));
                (way + u64::from(more), windows + u64::from(info.snd_wnd.unwrap_or(0)))
            }
            Link::Udp(socket) => (way + crate::socket::queued(socket).unwrap_or(0), windows),
        })
    }

    /// The longest round trip of the connections.
    pub fn round_trip(&self) -> Duration {
        let infos = self.all.iter().filter_map(|live| match &*live.link {
            Link::Tcp(socket) => TcpInfo::of(socket).ok()?.rtt_us,
            Link::Udp(_) => None,
        });
        Duration::from_micros(infos.max().unwrap_or(0).into())
    }

    /// All that was sent has arrived at the other host since then: that is when sending ended.
    pub fn gone(&mut self, at: Instant) {
        self.gone = Some(at);
    }

    /// For how long the end was held back after all had arrived, so that the other side reads it: no time of the data's.
    pub fn held_back(&self) -> Duration {
        self.gone.zip(self.told).map_or(Duration::ZERO, |(gone, told)| told.saturating_duration_since(gone))
    }

    /// The other side is told of the end now.
    pub fn told(&mut self) {
        self.told = Some(Instant::now());
    }

    /// Senders of streams close: who reads to the end of what was sent finds it, as from iperf3's own server.
    pub fn close_senders(&self) {
        for live in self.all.iter().filter(|live| live.stream.sender) {
            if let Link::Tcp(socket) = &*live.link {
                let _ = socket.shutdown(std::net::Shutdown::Write);
            }
        }
    }

    /// The file that is sent or written, and its size now.
    pub fn file(&self) -> Option<(String, u64)> {
        let path = self.ways.file.as_ref()?;
        let size = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?.len();
        Some((path.display().to_string(), size))
    }

    /// Time since the data began.
    pub fn runs(&self) -> Duration {
        self.started.elapsed()
    }

    /// The slice from the last one until now.
    pub fn interval(&mut self) -> Interval {
        let now = self.ended.unwrap_or_else(Instant::now);
        let span = |at: Instant| at.saturating_duration_since(self.began).as_secs_f64();
        let (start, end) = (span(self.last), span(now));
        self.last = now.max(self.last);
        let streams = self.all.iter_mut().map(Live::slice).collect();
        Interval { start, end, omitted: self.omitting, streams }
    }

    /// Time and traffic since the last slice: whether one more is worth a line.
    pub fn rest(&self) -> (Duration, bool) {
        let now = self.ended.unwrap_or_else(Instant::now);
        let moved = self.all.iter().any(|live| live.progress.bytes() > live.last.bytes);
        (now.saturating_duration_since(self.last), moved)
    }

    /// From now on it counts.
    pub fn omitted(&mut self) {
        self.omitting = false;
        let now = Instant::now();
        (self.began, self.last) = (now, now);
        for live in &mut self.all {
            live.base = live.mark();
            live.last = live.base;
            live.extremes = Extremes::default();
            live.rtt = (0, 0);
        }
    }

    /// Whether what runs is left out of the results.
    pub fn omitting(&self) -> bool {
        self.omitting
    }

    /// Ends sending, and the time that counts. What has arrived by now may still be read.
    pub fn halt(&mut self) {
        if self.ended.is_some() {
            return;
        }
        self.gather();
        // What was done by its amount ended when that was reached, not when somebody looked.
        let reached = (self.all.iter().filter_map(|live| live.done.as_ref()))
            .filter(|done| matches!(done.end, End::Amount))
            .map(|done| done.ended)
            .max();
        // Who receives as well does so until now.
        let only_sends = self.all.iter().all(|live| live.stream.sender);
        let by_amount = self.all_sent() && only_sends;
        self.gone = self.gone.filter(|_| only_sends);
        // What had arrived at this moment is of the test. Asked before the time is taken: in between something may be read, not lost.
        if self.ways.ends_it {
            self.all.iter().filter(|live| !live.stream.sender).for_each(Live::bound);
        }
        let ended = self.gone.or(reached.filter(|_| by_amount)).unwrap_or_else(Instant::now);
        self.ended = Some(ended);
        let _ = self.window.set(ended);
        self.stop.set();
        self.wait(|live| live.stream.sender);
    }

    /// Ends sending and counting, and waits for the threads to have done so.
    pub fn finish(&mut self) {
        self.halt();
        self.wait(|_| true);
        for live in &mut self.all {
            live.over = Some(live.mark());
        }
    }

    /// Waits for the threads of these streams.
    fn wait(&mut self, which: impl Fn(&Live) -> bool) {
        let deadline = Instant::now() + ENDS;
        while self.all.iter().any(|live| which(live) && live.thread.is_some() && live.done.is_none()) {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.ends.1.recv_timeout(left) {
                Ok((index, done, cpu)) => self.note(index, done, cpu),
                Err(_) => break,
            }
        }
    }

    /// How long until something is due: the end of what is left out, the next report at `next` seconds, the end of the test.
    /// At most `most`.
    pub fn due(&self, next: f64, most: Duration) -> Duration {
        let left = |seconds: f64| Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(most);
        let mut due = most;
        if self.omitting {
            due = due.min(Duration::from_secs(self.params.omit.into()).saturating_sub(self.runs()));
        } else if self.params.seconds > 0 {
            due = due.min(left(f64::from(self.params.seconds) - self.seconds()));
        }
        if next > 0.0 {
            due = due.min(left(next - self.seconds()));
        }
        due
    }

    /// Seconds that count.
    pub fn seconds(&self) -> f64 {
        let now = self.ended.unwrap_or_else(Instant::now);
        now.saturating_duration_since(self.began).as_secs_f64()
    }

    /// CPU use of this test's threads, in percent of a core. Called by the thread that has the control connection.
    pub fn cpu(&self) -> Cpu {
        let now = self.ended.unwrap_or_else(Instant::now);
        let seconds = now.saturating_duration_since(self.started).as_secs_f64();
        let mut used = cpu::thread();
        for (used, before) in used.iter_mut().zip(self.cpu_before) {
            *used = used.saturating_sub(before);
        }
        for live in &self.all {
            for (used, more) in used.iter_mut().zip(live.cpu) {
                *used += more;
            }
        }
        let percent = |time: Duration| if seconds > 0.0 { 100.0 * time.as_secs_f64() / seconds } else { 0.0 };
        let [user, system] = used.map(percent);
        Cpu { total: user + system, user, system }
    }

    /// This side's results for the other.
    pub fn results(&mut self) -> Results {
        let seconds = self.seconds();
        let tcp = self.params.protocol == Protocol::Tcp;
        let streams = self.all.iter_mut().enumerate().map(|(index, live)| {
            let side = live.side(seconds, tcp);
            results::Stream {
                id: stream_id(index),
                bytes: side.bytes,
                retransmits: side.retransmits,
                jitter: side.udp.jitter,
                errors: side.udp.lost,
                packets: side.udp.packets,
                // What does not count is in no figure: then all releases show the same.
                omitted: Some((0, 0)),
                end: seconds,
            }
        });
        let streams = streams.collect();
        Results {
            cpu: self.cpu(),
            retransmits: tcp && self.all.iter().any(|live| live.stream.sender),
            congestion: self.actual().congestion.filter(|_| tcp),
            output: None,
            streams,
        }
    }

    /// Both sides of each stream, as far as they are known.
    pub fn totals(&mut self, theirs: Option<&Results>) -> Vec<Total> {
        let seconds = self.seconds();
        let tcp = self.params.protocol == Protocol::Tcp;
        let held_back = self.held_back().as_secs_f64();
        let totals = self.all.iter_mut().enumerate().map(|(index, live)| {
            let own = live.side(seconds, tcp);
            let other = theirs.and_then(|theirs| theirs.stream(stream_id(index))).map(|stream| {
                Side {
                    // The end was told when the other side had had time to read all: that wait is not of its receiving.
                    seconds: Some(stream.end - if live.stream.sender { held_back } else { 0.0 })
                        .filter(|seconds| *seconds > 0.0)
                        .unwrap_or(seconds),
                    bytes: stream.bytes,
                    retransmits: stream.retransmits.filter(|_| tcp && !live.stream.sender),
                    udp: counting(stream, &self.params),
                }
            });
            // A sender knows of no loss and no jitter.
            let plain = |side: Side| Side {
                udp: Datagrams { packets: side.udp.packets, ..Datagrams::default() },
                ..side
            };
            let (sent, received) =
                if live.stream.sender { (Some(plain(own)), other) } else { (other.map(plain), Some(own)) };
            Total {
                socket: live.stream.socket,
                sender: live.stream.sender,
                sent,
                received,
                tcp: tcp.then_some(live.extremes),
            }
        });
        totals.collect()
    }

    /// Whether what the other side says can be, by what this side counted and how long it ran. What is off by less is compared as a result.
    ///
    /// # Errors
    /// What cannot.
    pub fn check(&self, theirs: &Results) -> Result<(), Error> {
        let span = Span {
            counted: self.seconds(),
            passed: self.began.elapsed().as_secs_f64(),
            whole: self.started.elapsed().as_secs_f64(),
        };
        self.all.iter().enumerate().try_for_each(|(index, live)| {
            let Some(stream) = theirs.stream(stream_id(index)) else { return Ok(()) };
            let mut own = live.mark();
            if !live.stream.sender {
                // What came while the end was on its way to the sender arrived, too.
                own.bytes = own.bytes.max(live.progress.bytes()).saturating_add(live.discarded.bytes());
            }
            possible(stream, (&own, live.stream.sender), &self.params, &span).map_err(Error::Results)
        })
    }

    /// Datagrams that this host's sockets had no room for.
    pub fn drops(&self) -> u64 {
        let received = self.all.iter().filter(|live| !live.stream.sender);
        received.map(|live| live.progress.dropped.load(Relaxed)).sum()
    }
}

/// Nothing stays behind: threads are ended and waited for, sockets closed.
impl Drop for Data {
    fn drop(&mut self) {
        self.stop.set();
        self.quit.set();
        for live in &mut self.all {
            if let Link::Tcp(socket) = &*live.link {
                let _ = socket.shutdown(std::net::Shutdown::Both);
            }
        }
        for thread in self.all.iter_mut().filter_map(|live| live.thread.take()) {
            let _ = thread.join();
        }
    }
}

impl Live {
    /// What has arrived and was not read yet is the last that counts.
    fn bound(&self) {
        if let Link::Tcp(socket) = &*self.link
            && let Ok(waits) = rustix::io::ioctl_fionread(socket)
        {
            self.most.store(self.progress.bytes().saturating_add(waits), Relaxed);
        }
    }

    fn mark(&self) -> Mark {
        if let Some(over) = self.over {
            return over;
        }
        let progress = &self.progress;
        let count = progress.count();
        let udp = if self.stream.sender {
            Datagrams { packets: count, ..Datagrams::default() }
        } else {
            let lost = progress.lost.load(Relaxed);
            let twice = progress.duplicates.load(Relaxed);
            Datagrams {
                packets: count.saturating_sub(twice).saturating_add(lost),
                jitter: progress.jitter_ns.load(Relaxed) as f64 / 1e9,
                lost: i64::try_from(lost).unwrap_or(i64::MAX),
                out_of_order: progress.reordered.load(Relaxed),
            }
        };
        let retransmits = match &*self.link {
            Link::Tcp(socket) => {
                TcpInfo::of(socket).ok().and_then(|info| info.total_retrans).unwrap_or(0).into()
            }
            Link::Udp(_) => 0,
        };
        Mark { bytes: progress.bytes().min(self.most.load(Relaxed)), udp, retransmits }
    }

    fn slice(&mut self) -> Slice {
        let mark = self.mark();
        let udp = matches!(*self.link, Link::Udp(_)).then(|| between(&self.last.udp, &mark.udp));
        let tcp = match &*self.link {
            Link::Tcp(socket) => self.tcp(TcpInfo::of(socket).unwrap_or_default(), &mark),
            Link::Udp(_) => None,
        };
        let bytes = mark.bytes.saturating_sub(self.last.bytes);
        self.last = mark;
        Slice { socket: self.stream.socket, sender: self.stream.sender, bytes, tcp, udp }
    }

    fn tcp(&mut self, info: TcpInfo, mark: &Mark) -> Option<Tcp> {
        let number = |value: Option<u32>| u64::from(value.unwrap_or(0));
        let tcp = Tcp {
            retransmits: mark.retransmits.saturating_sub(self.last.retransmits),
            snd_cwnd: number(info.cwnd).saturating_mul(number(info.mss)),
            snd_wnd: number(info.snd_wnd),
            rtt: number(info.rtt_us),
            rttvar: number(info.rttvar_us),
            pmtu: number(info.pmtu),
            reorder: number(info.reord_seen),
        };
        let extremes = &mut self.extremes;
        self.rtt = (self.rtt.0 + tcp.rtt, self.rtt.1 + 1);
        extremes.reorder = tcp.reorder;
        extremes.max_snd_cwnd = extremes.max_snd_cwnd.max(tcp.snd_cwnd);
        extremes.max_snd_wnd = extremes.max_snd_wnd.max(tcp.snd_wnd);
        extremes.max_rtt = extremes.max_rtt.max(tcp.rtt);
        extremes.min_rtt = if self.rtt.1 == 1 { tcp.rtt } else { extremes.min_rtt.min(tcp.rtt) };
        extremes.mean_rtt = self.rtt.0 / self.rtt.1;
        self.stream.sender.then_some(tcp)
    }

    /// What counts of it.
    fn side(&self, seconds: f64, tcp: bool) -> Side {
        let mark = self.mark();
        Side {
            seconds,
            bytes: mark.bytes.saturating_sub(self.base.bytes),
            retransmits: (tcp && self.stream.sender)
                .then(|| mark.retransmits.saturating_sub(self.base.retransmits)),
            udp: between(&self.base.udp, &mark.udp),
        }
    }
}

/// Jitter is what it is now, all else what came since.
fn between(before: &Datagrams, now: &Datagrams) -> Datagrams {
    Datagrams {
        packets: now.packets.saturating_sub(before.packets),
        jitter: now.jitter,
        lost: now.lost.saturating_sub(before.lost),
        out_of_order: now.out_of_order.saturating_sub(before.out_of_order),
    }
}

/// One thread's work.
#[derive(Debug)]
struct Worker {
    link: Arc<Link>,
    sender: bool,
    params: Params,
    file: Option<PathBuf>,
    until: Until,
    progress: Arc<Progress>,
    most: Arc<AtomicU64>,
    discarded: Arc<Progress>,
    window: Option<Arc<OnceLock<Instant>>>,
    quit: Stop,
}

impl Worker {
    fn work(&self) -> Done {
        let block = usize::try_from(self.params.len).unwrap_or(usize::MAX).max(1);
        match (&*self.link, self.sender, &self.file) {
            (Link::Tcp(socket), true, Some(path)) => {
                file::send(socket, path, block, &self.until, &self.progress)
            }
            (Link::Tcp(socket), false, Some(path)) => {
                file::receive(socket, path, block, &self.until, &self.progress)
            }
            (Link::Tcp(socket), true, None) => self.send(socket, block),
            (Link::Tcp(socket), false, None) => self.receive(socket, block),
            (Link::Udp(socket), true, _) => self.send_datagrams(socket, block),
            (Link::Udp(socket), false, _) => self.receive_datagrams(socket, block),
        }
    }

    fn content(&self, len: usize) -> Option<Arc<[u8]>> {
        let mut bytes = vec![0; len];
        self.params.repeating.then(|| {
            endpoint::iperf3::datagram::repeating(&mut bytes);
            bytes.into()
        })
    }

    fn send(&self, socket: &TcpStream, block: usize) -> Done {
        let method = if self.params.zerocopy { stream::Send::Sendfile } else { stream::Send::Write };
        // Blocks of a burst leave as one.
        let size = block.saturating_mul(self.params.burst.max(1) as usize).min(stream::MOST);
        let sending = stream::Sending {
            rate: (self.params.rate > 0).then(|| Rate::of_bits(self.params.rate, size)),
            bound: CATCH_UP,
            data: self.content(block),
            ..stream::Sending::new(method, size)
        };
        stream::send(socket, &sending, &self.until, &self.progress)
    }

    fn receive(&self, socket: &TcpStream, block: usize) -> Done {
        let method = if self.params.skip_rx_copy { stream::Receive::Trunc } else { stream::Receive::Read };
        let receiving = stream::Receiving::new(method, block);
        let mut done = stream::receive(socket, &receiving, &self.until, &self.progress);
        if matches!(done.end, End::Stopped) {
            self.take_what_is_there(socket, &mut done);
        }
        done
    }

    /// What had arrived when the test ended did arrive, and what came later did not.
    fn take_what_is_there(&self, socket: &TcpStream, done: &mut Done) {
        let mut buffer = vec![0; 256 << 10];
        let until = Instant::now() + TAKES;
        while Instant::now() < until && self.progress.bytes() < self.most.load(Relaxed) {
            match rustix::net::recv(socket, &mut buffer[..], RecvFlags::DONTWAIT | RecvFlags::TRUNC) {
                Ok((_, count)) if count > 0 => {
                    done.bytes += count as u64;
                    self.progress.bytes.fetch_add(count as u64, Relaxed);
                }
                _ => break,
            }
        }
    }

    fn send_datagrams(&self, socket: &UdpSocket, size: usize) -> Done {
        let burst = self.params.burst.max(1) as usize;
        // One leaves when it is due. Without a schedule, or in bursts, several leave in one call.
        let batch = if self.params.rate == 0 || burst > 1 { burst.max(TOGETHER) } else { TOGETHER };
        let sending = datagram::Sending {
            batch,
            gso: self.params.gsro || self.params.rate == 0,
            rate: (self.params.rate > 0).then(|| Rate::of_bits(self.params.rate, size)),
            bound: CATCH_UP,
            ..datagram::Sending::new(size)
        };
        let send = |sending: &datagram::Sending| {
            if self.params.counters_64bit {
                datagram::send(socket, sending, &Wide, &self.until, &self.progress)
            } else {
                datagram::send(socket, sending, &Narrow::default(), &self.until, &self.progress)
            }
        };
        let done = send(&sending);
        // A path that cannot do it (no checksums in the device, datagrams larger than its MTU).
        match &done.end {
            End::Failed(_) if sending.gso && done.count == 0 && !self.params.gsro => {
                let _ = crate::sys::set_int(socket, libc::SOL_UDP, crate::sys::UDP_SEGMENT, 0);
                send(&datagram::Sending { gso: false, ..sending })
            }
            _ => done,
        }
    }

    fn receive_datagrams(&self, socket: &UdpSocket, size: usize) -> Done {
        let receiving = datagram::Receiving {
            batch: BATCH,
            gro: true,
            ends: self.window.clone(),
            ..datagram::Receiving::new(size.max(1 << 16))
        };
        let mut sequence = Sequence::new();
        let (until, progress) = (&self.until, &self.progress);
        if self.params.counters_64bit {
            datagram::receive(socket, &receiving, &Wide, until, progress, &mut sequence)
        } else {
            datagram::receive(socket, &receiving, &Narrow::default(), until, progress, &mut sequence)
        }
    }

    /// A peer that still sends must be read from until it is told to stop, or it never hears that.
    fn discard(&self) {
        if let (Link::Tcp(socket), false) = (&*self.link, self.sender) {
            let receiving = stream::Receiving::new(stream::Receive::Trunc, 1 << 20);
            stream::receive(socket, &receiving, &Until::stopped(&self.quit), &self.discarded);
        }
    }
}

/// Datagrams of the other side that count. Some (iperf3 3.12) do not tell what they left out, and have it among their datagrams and their
/// losses, but not among their bytes: all datagrams are equally long, so those that came are told by the bytes.
fn counting(stream: &results::Stream, params: &Params) -> Datagrams {
    let (packets, lost) = match stream.omitted {
        Some((lost, packets)) => (stream.packets.saturating_sub(packets), stream.errors.saturating_sub(lost)),
        None if params.omit > 0 && params.len > 0 => {
            let came = stream.bytes / params.len;
            (came.saturating_add(u64::try_from(stream.errors).unwrap_or(0)), stream.errors)
        }
        None => (stream.packets, stream.errors),
    };
    Datagrams { packets, jitter: stream.jitter, lost, out_of_order: 0 }
}

/// Seconds of this side: of what counted, since its beginning until now, and since the data began.
struct Span {
    counted: f64,
    passed: f64,
    whole: f64,
}

/// How much later, in seconds, an end may hear of the beginning or of the end,
const LATE: f64 = 2.0;
/// and how much shorter its time may be in any case.
const SHORT: f64 = 0.1;
/// More than any host sends in a second: bytes,
const MOST_BYTES: f64 = 1e13 / 8.0;
/// and packets.
const MOST_PACKETS: f64 = 1e9;
/// A socket's buffer is no larger: its size is a positive number of 32 bits.
const MOST_UNREAD: u64 = 1 << 31;
/// So many times the rate that was asked for.
const MOST_FASTER: f64 = 2.0;
/// More often than this no network delivers a datagram.
const MOST_TIMES: u64 = 10;

/// Whether a stream can be as the other side says. `own`: what this side sent or read in all, and whether it is the sender.
fn possible(
    stream: &results::Stream,
    (own, is_sender): (&Mark, bool),
    params: &Params,
    span: &Span,
) -> Result<(), String> {
    // Of a time that was not said ours is taken. Its time began and ended while ours ran, but for the ways of the messages.
    let short = SHORT.max(LATE.min(span.counted / 2.0));
    if stream.end > 0.0 && (stream.end + short < span.counted || stream.end > span.passed + LATE) {
        return Err(format!("a stream took {} seconds, and {:.3} here", stream.end, span.counted));
    }
    let udp = params.protocol == Protocol::Udp;
    let (bytes, packets) = (stream.bytes, stream.packets);
    if is_sender {
        // Without a warm-up both ends count the same, and are compared as a result.
        let times = if udp { MOST_TIMES } else { 1 };
        if (udp || params.omit > 0) && bytes > own.bytes.saturating_mul(times) {
            return Err(format!("a stream received {bytes} bytes of {}", own.bytes));
        }
        if udp && packets > own.udp.packets.saturating_mul(times) {
            return Err(format!("a stream received {packets} datagrams of {}", own.udp.packets));
        }
        return Ok(());
    }
    let seconds = span.whole + LATE;
    // What a sender wrote and this side did not read waits in both kernels, or is on its way.
    if !udp && bytes > own.bytes.saturating_add(MOST_UNREAD) {
        return Err(format!("a stream sent {bytes} bytes, and {} arrived", own.bytes));
    }
    let most = seconds * MOST_BYTES;
    if bytes as f64 > most || packets as f64 > seconds * MOST_PACKETS {
        return Err(format!("a stream sent {bytes} bytes, {packets} datagrams in {} seconds", span.whole));
    }
    // A sender keeps to the rate that it was asked for, but for what it catches up.
    let asked = MOST_FASTER * seconds * params.rate as f64 / 8.0
        + (u64::from(params.burst) + 1) as f64 * params.len as f64;
    if udp && params.rate > 0 && bytes as f64 > asked {
        return Err(format!("a stream sent {bytes} bytes, asked for {} bits a second", params.rate));
    }
    if udp && packets > 0 && bytes > packets.saturating_mul(params.len.max(1)) {
        return Err(format!("a stream sent {bytes} bytes in {packets} datagrams of {}", params.len));
    }
    // Each is of a byte at least.
    match stream.retransmits.filter(|again| *again as f64 > seconds * MOST_PACKETS) {
        Some(again) => Err(format!("a stream sent {again} segments again in {} seconds", span.whole)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_other_side_cannot_have_counted_is_none_of_a_result() {
        let stream = |bytes, packets, retransmits, end| results::Stream {
            id: 1,
            bytes,
            packets,
            retransmits,
            end,
            ..results::Stream::default()
        };
        let span = Span { counted: 2.0, passed: 2.3, whole: 3.3 };
        let of = |stream, sent: Option<(u64, u64)>, protocol, omit| {
            let params = Params { protocol, omit, len: 1000, rate: 1_000_000, ..Params::default() };
            // Who receives here has read four gigabytes.
            let (bytes, packets) = sent.unwrap_or((4 << 30, 0));
            let udp = Datagrams { packets, ..Datagrams::default() };
            let own = Mark { bytes, udp, ..Mark::default() };
            possible(&stream, (&own, sent.is_some()), &params, &span).is_ok()
        };
        let (tcp, udp) = (Protocol::Tcp, Protocol::Udp);
        // The server sent.
        assert!(of(stream(4 << 30, 0, Some(1000), 2.0), None, tcp, 0));
        assert!(!of(stream(u64::MAX, 0, Some(0), 2.0), None, tcp, 0));
        // What was not read waits in buffers, which are no larger than two gigabytes.
        assert!(of(stream(6 << 30, 0, Some(0), 2.0), None, tcp, 0));
        assert!(!of(stream((6 << 30) + 1, 0, Some(0), 2.0), None, tcp, 0));
        assert!(!of(stream(4 << 30, 0, Some(4_000_000_000_000_000_000), 2.0), None, tcp, 0));
        assert!(of(stream(30_000, 30, None, 2.0), None, udp, 0));
        // A megabit a second was asked for.
        assert!(of(stream(1_000_000, 1_000, None, 2.0), None, udp, 0));
        assert!(!of(stream(2_000_000, 2_000, None, 2.0), None, udp, 0));
        assert!(!of(stream(30_001, 30, None, 2.0), None, udp, 0));
        assert!(!of(stream(99_999_999_999, 30, None, 2.0), None, udp, 0));
        // It received; a network may double datagrams.
        assert!(!of(stream(99_999_999_999, 30, None, 2.0), Some((30_000, 30)), udp, 0));
        assert!(of(stream(60_000, 30, None, 2.0), Some((30_000, 30)), udp, 0));
        assert!(of(stream(500, 0, None, 2.0), Some((500, 0)), tcp, 1));
        assert!(!of(stream(501, 0, None, 2.0), Some((500, 0)), tcp, 1));
        // Times.
        for (end, is) in [(0.0, true), (0.001, false), (1.1, true), (4.2, true), (4.4, false), (5e5, false)] {
            assert_eq!(of(stream(500, 0, None, end), Some((500, 0)), tcp, 0), is, "{end}");
        }
    }

    #[test]
    fn what_is_left_out_is_not_among_the_datagrams_of_a_server_that_does_not_say_so() {
        // What iperf3 3.12 said of a test of 2 s behind 1 s that was left out: its own client showed 152.
        let said = |omitted, packets, errors| results::Stream {
            id: 1,
            bytes: 4_980_736,
            retransmits: None,
            jitter: 0.0,
            errors,
            packets,
            omitted,
            end: 2.0,
        };
        let params = |omit| Params { omit, len: 32_768, ..Params::default() };
        let counts = |omit, stream: results::Stream| {
            let counted = counting(&stream, &params(omit));
            (counted.packets, counted.lost)
        };
        assert_eq!(counts(1, said(None, 229, 0)), (152, 0));
        assert_eq!(counts(1, said(None, 232, 3)), (155, 3));
        assert_eq!(counts(1, said(Some((1, 77)), 232, 3)), (155, 2));
        assert_eq!(counts(0, said(None, 155, 3)), (155, 3));
        assert_eq!(counts(0, said(Some((0, 0)), 155, -3)), (155, -3));
    }
}
