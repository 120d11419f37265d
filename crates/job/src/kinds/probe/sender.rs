//! Sends messages to collectors, in a thread of its own. Each has templates and sequence numbers of its own, because each is a
//! transport session (RFC 7011, 3.1): what another one got is no gap.

use super::datagrams::Datagrams;
use super::link::Link;
use crate::transport::{Transport, transport};
use anyhow::{Context, Result, bail};
use flow::export::{Message, Session, Settings, Status};
use report::Collector;
use std::net::{SocketAddr, UdpSocket};
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
    /// By how much it raises a session's sequence number.
    pub numbers: u32,
    pub counts: Counts,
    /// A collector got it.
    pub taken: AtomicBool,
}

impl Waiting {
    /// A message without records of flows.
    pub fn of_the_probe(bytes: Vec<u8>, numbers: u32) -> Waiting {
        Waiting { bytes, numbers, counts: [0; 3], taken: AtomicBool::new(false) }
    }
}

/// What is to be sent.
#[derive(Debug)]
enum Outgoing {
    Records(Waiting),
    /// What the probe says of itself: to each collector. It is of this time, and the exporter began at that one.
    Status(Box<Status>, (u64, u64)),
}

/// Messages that are handed over together.
#[derive(Debug, Default)]
struct Batch {
    messages: Vec<Outgoing>,
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
    /// The packets and bytes that these count.
    pub counted: [u64; 2],
    /// Messages of records, and their bytes.
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
        if message.counts[0] == 0 {
            // What the probe says of itself.
        } else if message.taken.load(Relaxed) {
            let [records, packets, octets] = message.counts;
            self.0.records += records;
            self.0.counted = [self.0.counted[0] + packets, self.0.counted[1] + octets];
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
        told.counted = [told.counted[0] + sum.counted[0], told.counted[1] + sum.counted[1]];
        told.messages += sum.messages;
        told.bytes += sum.bytes;
        add(&mut told.unsent, &sum.unsent);
    }
}

/// Where messages go.
#[derive(Debug)]
enum Way {
    Datagrams(Box<Datagrams>),
    Connection(Box<Link>),
}

impl Way {
    fn open(name: &str, settings: &Settings) -> Result<Way> {
        let (transport, place) = transport(name);
        let found = ::transport::socket::lookup(place).with_context(|| {
            format!("{name} is no collector: give HOST:PORT, such as 192.0.2.1:2055, [2001:db8::1]:4739 or tcp://192.0.2.1:4739")
        })?;
        let Some(to) = found.into_iter().next() else { bail!("{name} has no address") };
        let session = Session::new(settings.clone())?;
        if transport == Transport::Tcp {
            let opening = flow::export::opening(settings.clone())?;
            return Ok(Way::Connection(Box::new(Link::new(to, session, opening))));
        }
        let any: SocketAddr = if to.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0u16; 8], 0).into() };
        let socket = UdpSocket::bind(any)
            .and_then(|socket| socket.connect(to).map(|()| socket))
            .with_context(|| format!("there is no way to {to}"))?;
        Ok(Way::Datagrams(Box::new(Datagrams::new(socket, session, to.to_string()))))
    }

    fn take(&mut self, message: &Arc<Waiting>, tally: &mut Tally) {
        match self {
            Way::Datagrams(datagrams) => datagrams.take(message, tally),
            Way::Connection(link) => link.take(message),
        }
    }

    fn status(&mut self, status: &Status, times: (u64, u64), tally: &mut Tally) {
        match self {
            Way::Datagrams(datagrams) => datagrams.status(status, times, tally),
            Way::Connection(link) => link.status(status, times),
        }
    }

    /// Goes on with what waits, and hears what hosts say.
    fn work(&mut self, tally: &mut Tally) {
        match self {
            Way::Datagrams(datagrams) => datagrams.hear(tally),
            Way::Connection(link) => link.work(tally),
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
    pub fn open(export: &[String], settings: &Settings, balance: bool, rate: Option<u32>) -> Result<Sender> {
        let ways = export.iter().map(|name| Way::open(name, settings)).collect::<Result<_>>()?;
        Ok(Sender { ways, balance, rate })
    }

    /// Begins to send, in a thread.
    pub fn start(mut self) -> std::io::Result<Queue> {
        let (into, out) = sync_channel(QUEUE);
        let sent = Arc::new(Mutex::new(Sent::default()));
        let told = Arc::clone(&sent);
        let nobody = self.ways.is_empty();
        self.links().for_each(Link::begin);
        let work = move || self.work(&out, &told);
        let thread = std::thread::Builder::new().name("export".to_owned()).spawn(work)?;
        Ok(Queue { into, batch: Vec::with_capacity(BATCH), sent, nobody, thread })
    }

    fn links(&mut self) -> impl Iterator<Item = &mut Link> {
        self.ways.iter_mut().filter_map(|way| match way {
            Way::Connection(link) => Some(&mut **link),
            Way::Datagrams(_) => None,
        })
    }

    fn work(mut self, batches: &Receiver<Batch>, told: &Mutex<Sent>) -> Vec<Collector> {
        let mut pace = self.rate.map(Pace::new);
        let mut tally = Tally::default();
        let mut turn = 0;
        loop {
            let busy = self.links().any(|link| link.is_busy());
            let got = batches.recv_timeout(if busy { SOON } else { LATER });
            let batch = match got {
                Ok(batch) => batch,
                Err(RecvTimeoutError::Timeout) => Batch::default(),
                Err(RecvTimeoutError::Disconnected) => break,
            };
            for outgoing in batch.messages {
                let message = match outgoing {
                    Outgoing::Records(message) => message,
                    Outgoing::Status(status, times) => {
                        self.ways.iter_mut().for_each(|way| way.status(&status, times, &mut tally));
                        continue;
                    }
                };
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
                let ways = self.ways.get_mut(to).unwrap_or_default();
                ways.iter_mut().for_each(|way| way.take(&message, &mut tally));
                tally.settle(message);
            }
            self.ways.iter_mut().for_each(|way| way.work(&mut tally));
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
            Way::Datagrams(datagrams) => datagrams.end(&mut tally),
            Way::Connection(link) => link.end(&mut tally),
        });
        let collectors = ended.collect();
        tally.tell(told);
        collectors
    }
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
    batch: Vec<Outgoing>,
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
        let (bytes, numbers) = (message.bytes.to_vec(), message.numbers);
        self.batch.push(Outgoing::Records(Waiting { bytes, numbers, counts, taken: AtomicBool::new(false) }));
        if self.batch.len() >= BATCH {
            self.hand_over(waits, unsent);
        }
    }

    /// Takes along what the probe says of itself, at this time, for each collector; `began_ns`: the exporter's start.
    pub fn status(&mut self, status: Status, now_ns: u64, began_ns: u64) {
        if !self.nobody {
            self.batch.push(Outgoing::Status(Box::new(status), (now_ns, began_ns)));
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
            for outgoing in &batch.messages {
                // What the probe says of itself it says again.
                if let Outgoing::Records(message) = outgoing {
                    add(unsent, &message.counts);
                }
            }
        }
    }

    /// There is no collector.
    pub fn is_to_nobody(&self) -> bool {
        self.nobody
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
