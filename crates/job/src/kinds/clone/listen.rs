//! Captures on other hosts: agents (`netdyno clone capture`) connect, show that they have the key, and say what they capture. A thread
//! reads each; sessions go to their workers.
//!
//! ```text
//!   agent ==TCP==> a thread: channel, records --by connection--> inlet (bounded) + bell --> worker: table
//!                     '-- account: frames, and sessions that were not forwarded --> standing
//! ```
//!
//! A worker that is slower stops its agents' threads from reading, and so the agents from sending: they give up whole sessions.

use super::ceiling::cpu_time;
use super::copies::now_real;
use super::worker::{Done, Shared, Standing, lane_of};
use anyhow::{Context, Result};
use clone::funnel::{Funnel, Sessions};
use clone::remote::channel::{Broken, Channel, Frames, Key, REFUSAL, accept};
use clone::remote::offset::Offset;
use clone::remote::record::{Account, Reader, Record, VERSION};
use report::{Code, Note, Sentence};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use snapshot::Board;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use transport::lobby::{Lobby, Seat};

/// Agents at once.
const MOST_AGENTS: usize = 64;
/// Connections that have not shown that they have the key, at once (see [`Lobby`]), and how long each has.
const MOST_STRANGERS: usize = 32;
const GREETS: Duration = Duration::from_secs(3);
/// An agent that says nothing for so long is gone: it says something five times a second.
const SILENCE: Duration = Duration::from_millis(1700);
const LOOKS: Duration = Duration::from_millis(100);
const HEARD: Duration = Duration::from_millis(500);
/// Batches that wait for a worker.
const MOST_WAITING: usize = 64;
/// A greeting's frame, at most.
const MOST_GREETING: usize = 256;
/// Refusals that are reported; the others are counted.
const MOST_TOLD: u64 = 8;

/// What an agent said, for a worker.
pub enum Batch {
    /// Records of one frame.
    Records { origin: u8, shift: u64, bytes: Vec<u8> },
    /// The agent is gone.
    Lost(u8),
    /// The agent said that it ends.
    Ended(u8),
}

/// Where a worker hears what agents say.
pub struct Inlet {
    receiver: Receiver<Batch>,
    /// Rung when there is something.
    pub bell: OwnedFd,
}

impl Inlet {
    pub fn take(&self) -> Option<Batch> {
        self.receiver.try_recv().ok()
    }

    /// Until it is rung again.
    pub fn quiet(&self) {
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
    }
}

/// Where an agent's thread puts it.
#[derive(Clone)]
struct Outlet {
    sender: SyncSender<Batch>,
    bell: Arc<OwnedFd>,
}

impl Outlet {
    /// Waits for room. Is the worker still there?
    fn put(&self, batch: Batch) -> bool {
        let there = self.sender.send(batch).is_ok();
        let _ = rustix::io::write(&*self.bell, &1u64.to_ne_bytes());
        there
    }
}

/// What agents must capture.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    pub server: Option<IpAddr>,
    pub port: u16,
    pub adopts: bool,
    pub targets: [Option<SocketAddr>; 2],
}

/// All that threads share.
struct All {
    key: Key,
    wanted: Wanted,
    outlets: Vec<Outlet>,
    board: Arc<Board>,
    over: Arc<AtomicBool>,
    shared: Shared,
    accounts: Mutex<Accounts>,
    /// Seats of those who have shown nothing, and of those whose greeting was made with the key: these leave for each other alone.
    lobby: Arc<Lobby>,
    halfway: Arc<Lobby>,
    /// Connections, and of these agents that were let in and others, which were not.
    came: AtomicU64,
    entered: AtomicU64,
    turned_away: AtomicU64,
    refused: AtomicU64,
    cpu_ns: AtomicU64,
}

struct Accounts {
    /// Of agents that are there.
    live: [Option<Account>; MOST_AGENTS],
    /// Of those that were.
    ended: Account,
}

impl All {
    fn say(&self, sentence: impl Into<Sentence>) {
        self.board.say(Note::info(Code::CaptureElsewhere, sentence));
    }

    fn accounts(&self, change: impl FnOnce(&mut Accounts) -> Option<u8>) -> Option<u8> {
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        let given = change(&mut accounts);
        let mut sum = accounts.ended;
        accounts.live.iter().flatten().for_each(|account| sum.add(account));
        let standing = Standing { funnel: funnel(&sum), dropped: sum.dropped, ..Standing::default() };
        *self.shared.standing.lock().unwrap_or_else(PoisonError::into_inner) = standing;
        given
    }

    /// A place for an agent.
    fn enter(&self) -> Option<u8> {
        self.accounts(|accounts| {
            let (number, place) =
                (0..).zip(&mut accounts.live).find(|(_, place): &(u8, _)| place.is_none())?;
            *place = Some(Account::default());
            Some(number)
        })
    }

    fn account(&self, origin: u8, account: Account) {
        self.accounts(|accounts| {
            if let Some(place) = accounts.live.get_mut(usize::from(origin)) {
                *place = Some(account);
            }
            None
        });
    }

    fn leave(&self, origin: u8) {
        self.accounts(|accounts| {
            let account = accounts.live.get_mut(usize::from(origin)).and_then(Option::take);
            accounts.ended.add(&account.unwrap_or_default());
            None
        });
    }

    /// An agent may not be one.
    fn refuse(&self, from: SocketAddr, why: &str) {
        let before = self.refused.fetch_add(1, Relaxed);
        if before < MOST_TOLD {
            let more = if before + 1 == MOST_TOLD { "; further ones are not reported" } else { "" };
            self.say(format!("a capture at {from} was refused: {why}{more}"));
        }
    }
}

/// What an agent did not forward, as the clone's own account has it.
fn funnel(account: &Account) -> Funnel {
    Funnel {
        frames: account.frames,
        sessions: Sessions { seen: account.not_forwarded(), ..account.left },
        ..Funnel::default()
    }
}

/// Listens.
pub struct Listening {
    all: Arc<All>,
    thread: JoinHandle<()>,
}

impl Listening {
    /// From now on agents may connect. As many inlets as there are workers.
    pub fn begin(
        at: &str,
        key: Key,
        wanted: Wanted,
        board: &Arc<Board>,
        lanes: usize,
    ) -> Result<(Listening, Vec<Inlet>)> {
        let listener = TcpListener::bind(at).with_context(|| {
            format!("`.listen` {at}: give ADDR:PORT of this host, such as 0.0.0.0:7117 or [::]:7117")
        })?;
        listener.set_nonblocking(true)?;
        let (mut inlets, mut outlets) = (Vec::new(), Vec::new());
        for _ in 0..lanes {
            let (sender, receiver) = sync_channel(MOST_WAITING);
            let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            outlets.push(Outlet { sender, bell: Arc::new(bell.try_clone()?) });
            inlets.push(Inlet { receiver, bell });
        }
        let shared = Shared::default();
        // It is never what others wait for.
        shared.done.store(true, Relaxed);
        let all = Arc::new(All {
            key,
            wanted,
            outlets,
            board: Arc::clone(board),
            over: Arc::clone(&shared.over),
            shared,
            accounts: Mutex::new(Accounts { live: [None; MOST_AGENTS], ended: Account::default() }),
            lobby: Lobby::new(MOST_STRANGERS),
            halfway: Lobby::new(MOST_STRANGERS),
            came: AtomicU64::new(0),
            entered: AtomicU64::new(0),
            turned_away: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            cpu_ns: AtomicU64::new(0),
        });
        let own = Arc::clone(&all);
        let thread =
            std::thread::Builder::new().name("listen".to_owned()).spawn(move || listen(&listener, &own))?;
        Ok((Listening { all, thread }, inlets))
    }

    /// How all agents stand.
    pub fn shared(&self) -> Shared {
        self.all.shared.clone()
    }

    /// It is over, and `shared` says so: what agents did not forward.
    pub fn end(self) -> Done {
        let _ = self.thread.join();
        let standing = *self.all.shared.standing.lock().unwrap_or_else(PoisonError::into_inner);
        let cpu_ns = self.all.cpu_ns.load(Relaxed);
        let [came, entered, turned_away] =
            [&self.all.came, &self.all.entered, &self.all.turned_away].map(|count| count.load(Relaxed));
        let wrong = (came != entered + turned_away).then(|| {
            format!(
                "{came} connections of captures came, {entered} were let in and {turned_away} turned away"
            )
        });
        Done {
            funnel: standing.funnel,
            not_forwarded: Some(standing.funnel.sessions.seen),
            dropped: standing.dropped,
            cpu_ns,
            turned_away,
            contradiction: wrong,
            ..Done::default()
        }
    }
}

/// Until it is over, and all agents' threads have ended.
fn listen(listener: &TcpListener, all: &Arc<All>) {
    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    while !all.over.load(Relaxed) {
        let patience = Timespec { tv_sec: 0, tv_nsec: LOOKS.subsec_nanos().into() };
        let _ = poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&patience));
        threads.retain(|thread| !thread.is_finished());
        let Ok((socket, from)) = listener.accept() else { continue };
        all.came.fetch_add(1, Relaxed);
        // Where there are too many who have shown nothing, one of them goes: of the address with the most.
        let Ok(seat) = all.lobby.enter(&socket, Some(from.ip())) else {
            all.turned_away.fetch_add(1, Relaxed);
            continue;
        };
        let own = Arc::clone(all);
        let thread = std::thread::Builder::new().name("agent".to_owned());
        let spawned = thread.spawn(move || {
            let agent = greet(&own, &socket, from, seat);
            match agent {
                Some(agent) => {
                    own.entered.fetch_add(1, Relaxed);
                    agent.run(&own);
                }
                None => {
                    own.turned_away.fetch_add(1, Relaxed);
                }
            }
            own.cpu_ns.fetch_add(cpu_time().as_nanos() as u64, Relaxed);
        });
        match spawned {
            Ok(thread) => threads.push(thread),
            Err(_) => {
                all.turned_away.fetch_add(1, Relaxed);
            }
        }
    }
    for thread in threads {
        let _ = thread.join();
    }
}

/// An agent that has the key.
struct Agent {
    socket: TcpStream,
    from: SocketAddr,
    channel: Channel,
    frames: Frames,
    offset: Offset,
    origin: u8,
    /// What it says stands here, decrypted.
    plain: Vec<u8>,
    /// For each worker.
    parts: Vec<Vec<u8>>,
    /// It said that it ends.
    ended: bool,
}

/// Why an agent is one no more.
enum End {
    Bye,
    Over,
    Gone(String),
}

/// The next frame, if it comes before `until`.
fn frame(socket: &mut &TcpStream, frames: &mut Frames, until: Instant) -> Option<Vec<u8>> {
    let mut buffer = [0; 4096];
    loop {
        if let Some(frame) = frames.next() {
            return Some(frame.to_vec());
        }
        if frames.announced().is_some_and(|length| length > MOST_GREETING) {
            return None;
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        socket.set_read_timeout(Some(left)).ok()?;
        let count = socket.read(&mut buffer).ok().filter(|count| *count > 0)?;
        frames.push(buffer.get(..count)?);
    }
}

/// Who connected: an agent, or nobody. It keeps its seat among strangers until it has the key.
fn greet(all: &All, socket: &TcpStream, from: SocketAddr, seat: Seat) -> Option<Agent> {
    let until = Instant::now() + GREETS;
    socket.set_nonblocking(false).ok()?;
    socket.set_write_timeout(Some(Duration::from_secs(1))).ok()?;
    let _ = socket.set_nodelay(true);
    let mut stream = socket;
    let mut frames = Frames::default();
    let greeting = frame(&mut stream, &mut frames, until)?;
    let (mut channel, answer) = match accept(&all.key, &greeting) {
        Ok(both) => both,
        Err(broken) => {
            let _ = stream.write_all(&REFUSAL);
            all.refuse(from, &broken.to_string());
            return None;
        }
    };
    // Its greeting was made with the key: strangers take no seat from it any more. But it may be one that was repeated.
    let halfway = all.halfway.enter(socket, Some(from.ip())).ok()?;
    drop(seat);
    stream.write_all(&answer).ok()?;
    // Who repeats somebody's greeting comes no further than this.
    let hello = frame(&mut stream, &mut frames, until)?;
    let mut plain = Vec::new();
    if let Err(broken) = channel.open(&hello, &mut plain) {
        all.refuse(from, &broken.to_string());
        return None;
    }
    drop(halfway);
    let mut reader = Reader(&plain);
    let (sent_ns, record) = (reader.long()?, reader.record().ok()??);
    let mut offset = Offset::default();
    offset.saw(sent_ns, now_real());
    let why = match record {
        Record::Hello { version, .. } if version != VERSION => {
            Some(format!("it speaks version {version}, this netdyno version {VERSION}"))
        }
        Record::Hello { server, port, .. } => unwanted(&all.wanted, server, port),
        _ => return None,
    };
    let place = match &why {
        None => all.enter(),
        Some(_) => None,
    };
    let why = why.or_else(|| place.is_none().then(|| format!("{MOST_AGENTS} captures are there already")));
    let answer = match &why {
        Some(why) => Record::Refused(why),
        None => Record::Welcome { adopts: all.wanted.adopts, targets: all.wanted.targets },
    };
    let told = tell(&mut stream, &mut channel, &answer);
    if let Some(why) = why {
        all.refuse(from, &why);
        return None;
    }
    let origin = place?;
    let socket = socket.try_clone();
    let (Ok(socket), true) = (socket, told) else {
        all.leave(origin);
        return None;
    };
    all.say(format!("a capture at {from} is connected"));
    let parts = vec![Vec::new(); all.outlets.len()];
    Some(Agent { socket, from, channel, frames, offset, origin, plain, parts, ended: false })
}

/// Why an agent's server is not the one that is copied.
fn unwanted(wanted: &Wanted, server: Option<IpAddr>, port: u16) -> Option<String> {
    let others = server.zip(wanted.server).is_some_and(|(theirs, ours)| theirs != ours);
    let name = |server: Option<IpAddr>, port: u16| match server {
        Some(server) => SocketAddr::new(server, port).to_string(),
        None => format!("port {port}"),
    };
    (others || port != wanted.port).then(|| {
        let (theirs, ours) = (name(server, port), name(wanted.server, wanted.port));
        format!("it captures {theirs}, the clone copies {ours}")
    })
}

/// Says one thing. Is the agent still there?
fn tell(stream: &mut &TcpStream, channel: &mut Channel, record: &Record<'_>) -> bool {
    let (mut plain, mut frame) = (Vec::new(), Vec::new());
    record.put(&mut plain);
    channel.seal(&plain, &mut frame).is_ok() && stream.write_all(&frame).is_ok()
}

impl Agent {
    /// Hears it to its end.
    fn run(mut self, all: &All) {
        let end = self.hear(all);
        let batch = |origin: u8| match end {
            End::Bye => Batch::Ended(origin),
            End::Over | End::Gone(_) => Batch::Lost(origin),
        };
        // At the clone's own end its workers end all sessions.
        if !matches!(end, End::Over) {
            all.outlets.iter().for_each(|outlet| {
                outlet.put(batch(self.origin));
            });
        }
        all.leave(self.origin);
        match end {
            End::Bye => all.say(format!("the capture at {} has ended", self.from)),
            End::Over => {
                tell(&mut &self.socket, &mut self.channel, &Record::End);
            }
            End::Gone(why) => all.say((
                format!("the capture at {} is gone ({why}): its sessions end here", self.from),
                "the clone waits for it, or another one",
            )),
        }
    }

    fn hear(&mut self, all: &All) -> End {
        let mut buffer = vec![0; 256 << 10];
        let (mut heard, mut told, mut silent) = (Instant::now(), Instant::now(), 0);
        if self.socket.set_read_timeout(Some(LOOKS)).is_err() {
            return End::Gone("its socket broke".to_owned());
        }
        loop {
            // What came with the greeting is there already. While a worker has no room, it is not the agent that is silent.
            let began = Instant::now();
            if let Err(end) = self.frames(all) {
                return end;
            }
            heard += began.elapsed();
            if self.ended {
                return End::Bye;
            }
            if all.over.load(Relaxed) {
                return End::Over;
            }
            if told.elapsed() >= HEARD {
                told = Instant::now();
                if !tell(&mut &self.socket, &mut self.channel, &Record::Heard) {
                    return End::Gone("its connection broke".to_owned());
                }
            }
            match (&self.socket).read(&mut buffer) {
                Ok(0) => return End::Gone("it closed its connection".to_owned()),
                Ok(count) => {
                    self.frames.push(buffer.get(..count).unwrap_or_default());
                    heard = Instant::now();
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    // Who was stopped itself reads first what came meanwhile.
                    silent = if heard.elapsed() >= SILENCE { silent + 1 } else { 0 };
                    if silent > 1 {
                        return End::Gone("it says nothing any more".to_owned());
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return End::Gone(error.to_string()),
            }
        }
    }

    /// All frames that are whole.
    fn frames(&mut self, all: &All) -> Result<(), End> {
        while let Some(frame) = self.frames.next() {
            let broken = |broken: Broken| End::Gone(broken.to_string());
            self.channel.open(frame, &mut self.plain).map_err(broken)?;
            let senseless = || End::Gone("it says what this version does not understand".to_owned());
            let mut reader = Reader(&self.plain);
            self.offset.saw(reader.long().ok_or_else(senseless)?, now_real());
            let lanes = all.outlets.len() as u64;
            loop {
                let before = reader.0;
                let Some(record) = reader.record().map_err(|_| senseless())? else { break };
                let flow = match record {
                    Record::Segment { segment, .. } => segment.flow,
                    Record::Shed(flow) => flow,
                    Record::Account(account) => {
                        all.account(self.origin, account);
                        continue;
                    }
                    Record::Bye => {
                        self.ended = true;
                        continue;
                    }
                    Record::Refused(why) => return Err(End::Gone(report::units::printable(why))),
                    _ => return Err(senseless()),
                };
                let bytes = before.get(..before.len() - reader.0.len()).unwrap_or_default();
                let lane = if lanes == 1 { 0 } else { lane_of(&flow, lanes) as usize };
                if let Some(part) = self.parts.get_mut(lane) {
                    part.extend_from_slice(bytes);
                }
            }
            let shift = self.offset.shift();
            for (part, outlet) in self.parts.iter_mut().zip(&all.outlets) {
                if part.is_empty() {
                    continue;
                }
                let bytes = std::mem::take(part);
                if !outlet.put(Batch::Records { origin: self.origin, shift, bytes }) {
                    return Err(End::Over);
                }
            }
            if self.ended {
                break;
            }
        }
        Ok(())
    }
}
