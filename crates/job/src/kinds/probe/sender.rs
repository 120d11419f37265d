//! Sends messages to collectors, in a thread of its own.

use super::link::Link;
use crate::transport::{Transport, transport};
use anyhow::{Context, Result, bail};
use flow::export::Message;
use report::Collector;
use std::io::ErrorKind;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Batches of messages that may wait: 30 records and 1,452 bytes a message, up to [`BATCH`] of them a batch.
const QUEUE: usize = 1024;
/// Messages of a batch.
const BATCH: usize = 64;
/// A collector gets so much at once, where a rate is kept.
const BURST: Duration = Duration::from_millis(10);
/// Connections are looked after so often while something waits for them,
const SOON: Duration = Duration::from_millis(5);
/// and else.
const LATER: Duration = Duration::from_millis(200);

/// A message that waits.
#[derive(Debug)]
pub struct Waiting {
    pub bytes: Vec<u8>,
    pub counts: Counts,
    /// A collector got it.
    pub taken: AtomicBool,
}

/// Messages that are handed over together.
#[derive(Debug, Default)]
struct Batch {
    messages: Vec<Waiting>,
    /// Who hands them over waits, so they may take their time.
    waits: bool,
}

/// Records, and the packets and bytes that they count.
pub type Counts = [u64; 3];

pub fn add(sum: &mut Counts, counts: &Counts) {
    sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
}

/// What was sent so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sent {
    pub records: u64,
    pub messages: u64,
    pub bytes: u64,
    /// What was in messages that no collector got.
    pub unsent: Counts,
}

/// What became of messages since it was last told.
#[derive(Debug, Default)]
pub struct Tally(Sent);

impl Tally {
    /// One that has this message has done with it. What became of it is known when all have.
    pub fn settle(&mut self, message: Arc<Waiting>) {
        let Some(message) = Arc::into_inner(message) else { return };
        if message.taken.load(Relaxed) {
            self.0.records += message.counts[0];
            self.0.messages += 1;
            self.0.bytes += message.bytes.len() as u64;
        } else {
            add(&mut self.0.unsent, &message.counts);
        }
    }

    fn tell(&mut self, told: &Mutex<Sent>) {
        let sum = std::mem::take(&mut self.0);
        let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
        told.records += sum.records;
        told.messages += sum.messages;
        told.bytes += sum.bytes;
        add(&mut told.unsent, &sum.unsent);
    }
}

/// Where messages go.
#[derive(Debug)]
enum Way {
    Datagrams(UdpSocket, Collector),
    Connection(Box<Link>),
}

impl Way {
    fn open(name: &str) -> Result<Way> {
        let (transport, place) = transport(name);
        let found = place.to_socket_addrs().with_context(|| {
            format!("{name} is no collector: give HOST:PORT, such as 192.0.2.1:2055, [2001:db8::1]:4739 or tcp://192.0.2.1:4739")
        })?;
        let Some(to) = found.into_iter().next() else { bail!("{name} has no address") };
        if transport == Transport::Tcp {
            return Ok(Way::Connection(Box::new(Link::new(to))));
        }
        let any: SocketAddr = if to.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0u16; 8], 0).into() };
        let socket = UdpSocket::bind(any)
            .and_then(|socket| socket.connect(to).map(|()| socket))
            .with_context(|| format!("there is no way to {to}"))?;
        Ok(Way::Datagrams(socket, Collector { to: to.to_string(), ..Collector::default() }))
    }

    fn take(&mut self, message: &Arc<Waiting>) {
        match self {
            Way::Datagrams(socket, collector) => {
                if send(socket, collector, &message.bytes) {
                    message.taken.store(true, Relaxed);
                }
            }
            Way::Connection(link) => link.take(message),
        }
    }
}

/// Collectors, before anything is sent.
#[derive(Debug)]
pub struct Sender {
    ways: Vec<Way>,
    balance: bool,
    /// Records a second.
    rate: Option<u32>,
}

impl Sender {
    /// Finds the collectors, from the calling thread's network namespace.
    pub fn open(export: &[String], balance: bool, rate: Option<u32>) -> Result<Sender> {
        let ways = export.iter().map(|name| Way::open(name)).collect::<Result<_>>()?;
        Ok(Sender { ways, balance, rate })
    }

    /// Begins to send, in a thread. Connections begin with `templates`.
    pub fn start(mut self, templates: &[u8]) -> std::io::Result<Queue> {
        let (into, out) = sync_channel(QUEUE);
        let sent = Arc::new(Mutex::new(Sent::default()));
        let told = Arc::clone(&sent);
        let nobody = self.ways.is_empty();
        self.links().for_each(|link| link.begin(templates));
        let work = move || self.work(&out, &told);
        let thread = std::thread::Builder::new().name("export".to_owned()).spawn(work)?;
        Ok(Queue { into, batch: Vec::with_capacity(BATCH), sent, nobody, thread })
    }

    fn links(&mut self) -> impl Iterator<Item = &mut Link> {
        self.ways.iter_mut().filter_map(|way| match way {
            Way::Connection(link) => Some(&mut **link),
            Way::Datagrams(..) => None,
        })
    }

    fn work(mut self, batches: &Receiver<Batch>, told: &Mutex<Sent>) -> Vec<Collector> {
        let mut pace = self.rate.map(Pace::new);
        let mut tally = Tally::default();
        let mut turn = 0;
        loop {
            let busy = self.links().map(|link| link.is_busy()).reduce(|one, other| one || other);
            let got = match busy {
                None => batches.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(busy) => batches.recv_timeout(if busy { SOON } else { LATER }),
            };
            let batch = match got {
                Ok(batch) => batch,
                Err(RecvTimeoutError::Timeout) => Batch::default(),
                Err(RecvTimeoutError::Disconnected) => break,
            };
            for message in batch.messages {
                if let Some(pace) = &mut pace {
                    pace.wait(message.counts[0] as u32);
                }
                while batch.waits && self.links().any(|link| link.is_worth_waiting()) {
                    self.links().for_each(|link| link.work(&mut tally));
                    std::thread::sleep(Duration::from_millis(1));
                }
                let all = self.ways.len();
                let to = match self.balance && all > 0 {
                    true => turn % all..turn % all + 1,
                    false => 0..all,
                };
                turn += 1;
                let message = Arc::new(message);
                self.ways.get_mut(to).unwrap_or_default().iter_mut().for_each(|way| way.take(&message));
                tally.settle(message);
            }
            self.links().for_each(|link| link.work(&mut tally));
            tally.tell(told);
        }
        self.end(tally, told)
    }

    /// Waits for what is still on its way, and closes all.
    fn end(mut self, mut tally: Tally, told: &Mutex<Sent>) -> Vec<Collector> {
        while !self.links().all(|link| link.is_done()) {
            self.links().for_each(|link| link.work(&mut tally));
            tally.tell(told);
            std::thread::sleep(Duration::from_millis(1));
        }
        // That nobody took the last datagram comes back a moment later.
        std::thread::sleep(Duration::from_millis(1));
        let ended = self.ways.into_iter().map(|way| match way {
            Way::Datagrams(socket, mut collector) => {
                if let Ok(Some(_)) = socket.take_error() {
                    refuse(&mut collector);
                }
                collector
            }
            Way::Connection(link) => link.end(&mut tally),
        });
        let collectors = ended.collect();
        tally.tell(told);
        collectors
    }
}

/// True: it is on its way. What a host says of an earlier message (nobody listens) is counted for that one.
fn send(socket: &UdpSocket, collector: &mut Collector, bytes: &[u8]) -> bool {
    for _ in 0..3 {
        match socket.send(bytes) {
            Ok(_) => {
                collector.messages += 1;
                return true;
            }
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => refuse(collector),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    collector.refused_messages += 1;
    false
}

/// One that was sent was not taken.
fn refuse(collector: &mut Collector) {
    collector.messages = collector.messages.saturating_sub(1);
    collector.refused_messages += 1;
}

/// Keeps records to a rate.
#[derive(Debug)]
struct Pace {
    each: Duration,
    due: Instant,
}

impl Pace {
    fn new(rate: u32) -> Pace {
        Pace { each: Duration::from_secs(1) / rate.max(1), due: Instant::now() }
    }

    fn wait(&mut self, records: u32) {
        let now = Instant::now();
        if self.due > now + BURST {
            std::thread::sleep(self.due - now);
        }
        self.due = self.due.max(now) + self.each * records;
    }
}

/// Messages on their way to the sender's thread.
#[derive(Debug)]
pub struct Queue {
    into: SyncSender<Batch>,
    batch: Vec<Waiting>,
    sent: Arc<Mutex<Sent>>,
    /// There is no collector.
    nobody: bool,
    thread: JoinHandle<Vec<Collector>>,
}

impl Queue {
    /// Takes a message along; it is handed over with others. `waits`: the queue is waited for.
    pub fn push(&mut self, message: Message<'_>, waits: bool, unsent: &mut Counts) {
        if self.nobody {
            return;
        }
        let [packets, octets] = message.counted;
        let counts = [message.records.into(), packets, octets];
        self.batch.push(Waiting { bytes: message.bytes.to_vec(), counts, taken: AtomicBool::new(false) });
        if self.batch.len() >= BATCH {
            self.hand_over(waits, unsent);
        }
    }

    /// Hands over what was taken along.
    pub fn hand_over(&mut self, waits: bool, unsent: &mut Counts) {
        if self.batch.is_empty() {
            return;
        }
        let messages = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
        let batch = Batch { messages, waits };
        if waits {
            // An error is the end of the thread, which only comes when this is dropped.
            let _ = self.into.send(batch);
            return;
        }
        if let Err(TrySendError::Full(batch) | TrySendError::Disconnected(batch)) = self.into.try_send(batch)
        {
            batch.messages.iter().for_each(|message| add(unsent, &message.counts));
        }
    }

    /// What was sent so far.
    pub fn sent(&self) -> Sent {
        *self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until all is sent.
    pub fn finish(self) -> (Sent, Vec<Collector>) {
        let Queue { into, sent, thread, .. } = self;
        drop(into);
        let collectors = thread.join().unwrap_or_default();
        let sent = *sent.lock().unwrap_or_else(PoisonError::into_inner);
        (sent, collectors)
    }
}
