//! Sends messages to collectors, in a thread of its own.

use anyhow::{Context, Result, bail};
use flow::export::Message;
use report::Collector;
use std::io::ErrorKind;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Batches of messages that may wait: 30 records and 1,452 bytes a message, up to [`BATCH`] of them a batch.
const QUEUE: usize = 1024;
/// Messages of a batch.
const BATCH: usize = 64;
/// A collector gets so much at once, where a rate is kept.
const BURST: Duration = Duration::from_millis(10);

/// A message that waits.
#[derive(Debug)]
struct Waiting {
    bytes: Vec<u8>,
    counts: Counts,
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

/// Collectors, before anything is sent.
#[derive(Debug)]
pub struct Sender {
    sockets: Vec<(UdpSocket, Collector)>,
    balance: bool,
    /// Records a second.
    rate: Option<u32>,
}

impl Sender {
    /// Finds the collectors, from the calling thread's network namespace.
    pub fn open(export: &[String], balance: bool, rate: Option<u32>) -> Result<Sender> {
        let mut sockets = Vec::new();
        for name in export {
            let found = name.to_socket_addrs().with_context(|| {
                format!(
                    "{name} is no collector: give HOST:PORT, such as 192.0.2.1:2055 or [2001:db8::1]:4739"
                )
            })?;
            let Some(to) = found.into_iter().next() else { bail!("{name} has no address") };
            let any: SocketAddr = if to.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0u16; 8], 0).into() };
            let socket = UdpSocket::bind(any)
                .and_then(|socket| socket.connect(to).map(|()| socket))
                .with_context(|| format!("there is no way to {to}"))?;
            sockets.push((socket, Collector { to: to.to_string(), ..Collector::default() }));
        }
        Ok(Sender { sockets, balance, rate })
    }

    /// Begins to send, in a thread.
    pub fn start(self) -> std::io::Result<Queue> {
        let (into, out) = sync_channel(QUEUE);
        let sent = Arc::new(Mutex::new(Sent::default()));
        let told = Arc::clone(&sent);
        let nobody = self.sockets.is_empty();
        let work = move || self.work(&out, &told);
        let thread = std::thread::Builder::new().name("export".to_owned()).spawn(work)?;
        Ok(Queue { into, batch: Vec::with_capacity(BATCH), sent, nobody, thread })
    }

    fn work(mut self, batches: &Receiver<Vec<Waiting>>, told: &Mutex<Sent>) -> Vec<Collector> {
        let mut pace = self.rate.map(Pace::new);
        let mut turn = 0;
        while let Ok(batch) = batches.recv() {
            let mut sum = Sent::default();
            for message in batch {
                if let Some(pace) = &mut pace {
                    pace.wait(message.counts[0] as u32);
                }
                let all = self.sockets.len();
                let to = match self.balance && all > 0 {
                    true => turn % all..turn % all + 1,
                    false => 0..all,
                };
                turn += 1;
                let mut taken = false;
                for (socket, collector) in self.sockets.get_mut(to).unwrap_or_default() {
                    taken |= send(socket, collector, &message.bytes);
                }
                match taken {
                    true => {
                        sum.records += message.counts[0];
                        sum.messages += 1;
                        sum.bytes += message.bytes.len() as u64;
                    }
                    false => add(&mut sum.unsent, &message.counts),
                }
            }
            let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
            told.records += sum.records;
            told.messages += sum.messages;
            told.bytes += sum.bytes;
            add(&mut told.unsent, &sum.unsent);
        }
        // That nobody took the last message comes back a moment later.
        std::thread::sleep(Duration::from_millis(1));
        for (socket, collector) in &mut self.sockets {
            if let Ok(Some(_)) = socket.take_error() {
                refuse(collector);
            }
        }
        self.sockets.into_iter().map(|(_, collector)| collector).collect()
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
    into: SyncSender<Vec<Waiting>>,
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
        self.batch.push(Waiting { bytes: message.bytes.to_vec(), counts });
        if self.batch.len() >= BATCH {
            self.hand_over(waits, unsent);
        }
    }

    /// Hands over what was taken along.
    pub fn hand_over(&mut self, waits: bool, unsent: &mut Counts) {
        if self.batch.is_empty() {
            return;
        }
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
        if waits {
            // An error is the end of the thread, which only comes when this is dropped.
            let _ = self.into.send(batch);
            return;
        }
        if let Err(TrySendError::Full(batch) | TrySendError::Disconnected(batch)) = self.into.try_send(batch)
        {
            batch.iter().for_each(|message| add(unsent, &message.counts));
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
