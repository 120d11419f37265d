//! The client's end: connects, prepares a test, runs it, says what both ends came to.

use super::channel::{self, Channel, ChannelError, Place};
use super::flows::{Doing, Flows, Manner, are_many, options, receive_method, send_method, workers};
use super::join::{Proving, drawn};
use super::opening;
use super::results::{Host, Results, Sample};
use super::{ARRIVES, FromServer};
use crate::crowd::calls::{Calling, Timed};
use crate::datagram::Window;
use crate::exchange::{Closing, Connecting, Exchange};
use crate::pace::Rate;
use crate::phase::{Stop, Until};
use crate::socket::{Options, SocketError, at_port};
use crate::{files, memory};
use endpoint::native::auth::{NONCE, Role, hex, is_proof, proof};
use endpoint::native::{
    End, From as Sender, KEY, Limits, MOST_TO_CLIENT, Plan, Preamble, Refused, ToClient, ToServer, VERSION,
    Work,
};
use histogram::Histogram;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// What goes wrong with a test.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The connection.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// The server says no.
    #[error("the server refused: {0}")]
    Refused(#[from] Refused),
    /// A socket.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// The server wants a token.
    #[error("the server wants a token: give the one that it was started with")]
    NoToken,
    /// It has not the token that we have.
    #[error("the server does not have the token: it may be another than you think")]
    NotProved,
    /// It said something that was not to be said then.
    #[error("the server said `{0}`, which was not to be said now")]
    OutOfPlace(String),
    /// A test that cannot be.
    #[error("{0}")]
    Test(String),
    /// This host.
    #[error("{0}")]
    Host(#[from] std::io::Error),
}

type Result<T> = std::result::Result<T, ClientError>;

/// A test, as the client's end has to know it.
#[derive(Debug, Clone)]
pub struct Test {
    /// What both ends know; the server's end in it.
    pub plan: Plan,
    /// The client's end.
    pub end: End,
    /// Requests and responses: in flight, rate of each flow, spinning, patience. Sizes are the plan's.
    pub exchange: Exchange,
    /// Each flow ends after so many bytes, instead of by time.
    pub bytes: Option<u64>,
    /// Each flow ends after so many datagrams or transactions.
    pub count: Option<u64>,
    /// So many threads for all flows at this end. None: a thread each, or of many one for each processor.
    pub threads: Option<u32>,
    /// Connections that are opened ([`Work::Open`]): one that is not open within this has failed.
    pub handshake: Duration,
    /// Own address, port, device and others that are this end's alone.
    pub own: Options,
}

/// How long each step before and after the data may take.
const STEP: Duration = Duration::from_secs(10);
/// How long the server may take until it has all data connections, and 5 ms more for each.
const JOINS: Duration = Duration::from_secs(30);
/// How long results may take: the last data has to arrive first.
const SETTLES: Duration = Duration::from_secs(20);
/// Once the user has ended the test: if the server's host has not even acknowledged by then what was said last, the way to it is gone.
const HURRIES: Duration = Duration::from_secs(2);
/// The same of a host that acknowledges, and a program that says nothing: the server waits for what is still on its way to it, and its
/// results need some time of their own.
const DRAINS: Duration = ARRIVES.saturating_add(Duration::from_secs(1));
/// So often it is looked whether the user has ended the test.
const LOOKS: Duration = Duration::from_millis(50);

/// A control connection to a server that let us in.
#[derive(Debug)]
pub struct Client {
    channel: Channel,
    place: Place,
    limits: Limits,
    host: Host,
    /// The user wants the end now.
    hurried: Arc<AtomicBool>,
}

impl Client {
    /// Connects to the server at `place`. `run` is the same for all connections of a job.
    ///
    /// # Errors
    /// Nobody is there, it is no netdyno server, or it refuses.
    pub fn connect(
        place: &Place,
        own: &Options,
        token: Option<&[u8]>,
        run: &str,
        (patience, hurried): (Duration, Arc<AtomicBool>),
    ) -> Result<Client> {
        let options = Options { bind: own.bind, device: own.device.clone(), ..Options::default() };
        let socket = channel::open(place, &options, Preamble::Control, patience)?;
        let mut channel = Channel::new(socket, MOST_TO_CLIENT);
        let ours = hex::encode(&drawn::<NONCE>()?);
        let program = concat!("netdyno ", env!("CARGO_PKG_VERSION")).to_owned();
        channel.say(&ToServer::Hello {
            version: VERSION,
            program,
            nonce: ours.clone(),
            run: run.to_owned(),
        })?;
        let ToClient::Challenge { nonce: theirs, token: wanted, .. } = hear(&mut channel, STEP, &hurried)?
        else {
            return Err(ClientError::OutOfPlace("something else than its challenge".to_owned()));
        };
        if wanted {
            let token = token.ok_or(ClientError::NoToken)?;
            channel.say(&ToServer::Prove { proof: proof(token, Role::Client, &theirs, &ours) })?;
        }
        let ToClient::Welcome { proof: given, limits, host } = hear(&mut channel, STEP, &hurried)? else {
            return Err(ClientError::OutOfPlace("something else than `welcome`".to_owned()));
        };
        if let Some(token) = token {
            let proved = given.is_some_and(|given| is_proof(&given, token, Role::Server, &theirs, &ours));
            if !proved {
                return Err(ClientError::NotProved);
            }
        }
        Ok(Client { channel, place: place.clone(), limits, host, hurried })
    }

    /// The server's host.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// What it permits.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Own and the server's address, over IP.
    pub fn ends(&self) -> Option<[SocketAddr; 2]> {
        self.channel.ends()
    }

    /// Has the server prepare the test, and makes all data connections.
    ///
    /// # Errors
    /// The server refuses, or a connection does not come about.
    pub fn prepare(self, test: &Test) -> Result<Prepared> {
        send_method(test.end.send_method.as_deref()).map_err(ClientError::Test)?;
        receive_method(test.end.receive_method.as_deref()).map_err(ClientError::Test)?;
        let test = &bounded(test, &self.limits)?;
        let plan = &test.plan;
        if matches!(self.place, Place::Unix(_)) && (plan.datagrams || is_each(plan.work)) {
            let said = "over a Unix socket there are streams and transactions over one connection (tcp-stream, tcp-maerts, \
                        tcp-bidir, tcp-rr) only";
            return Err(ClientError::Test(said.to_owned()));
        }
        files::raise(plan.connections()).map_err(|error| ClientError::Test(error.to_string()))?;
        let memory = memory::Reading::now();
        let mut channel = self.channel;
        channel.say(&ToServer::Test { plan: Box::new(plan.clone()) })?;
        let (key, ports) = match hear(&mut channel, STEP, &self.hurried)? {
            ToClient::Ready { key, ports } => (key, ports),
            _ => return Err(ClientError::OutOfPlace("something else than `ready`".to_owned())),
        };
        let key: [u8; KEY] = hex::decode(&key)
            .and_then(|bytes| bytes.try_into().ok())
            .ok_or_else(|| ClientError::OutOfPlace("a key of another length".to_owned()))?;
        let options = options(&test.own, &test.end);
        let mut sockets: Vec<OwnedFd> = Vec::new();
        match (plan.work, plan.datagrams, &self.place) {
            (Work::Each | Work::Open, ..) => {}
            (_, true, Place::Host(to)) => {
                if ports.len() != plan.flows as usize {
                    return Err(ClientError::OutOfPlace("another number of ports than flows".to_owned()));
                }
                let mut proving = Proving::open(*to, &ports, key, &options, STEP)?;
                let (began, mut hurried) = (Instant::now(), Hurried::default());
                loop {
                    proving.work();
                    let is_over = began.elapsed() >= STEP || hurried.is_over(&self.hurried);
                    match hear_maybe(&mut channel, Duration::from_millis(20))? {
                        Some(ToClient::Joined) => break,
                        Some(_) => {
                            return Err(ClientError::OutOfPlace("something else than `joined`".to_owned()));
                        }
                        None if is_over => return Err(ChannelError::Silent(began.elapsed()).into()),
                        None => {}
                    }
                }
                sockets = proving.sockets();
            }
            _ => {
                sockets = opening::open(&self.place, &options, key, plan.flows, STEP)?;
            }
        }
        if !plan.datagrams || is_each(plan.work) {
            // The server accepts one after the other; a busy host takes its time for thousands.
            let joins = JOINS + Duration::from_millis(5 * u64::from(plan.flows));
            match hear(&mut channel, joins, &self.hurried)? {
                ToClient::Joined => {}
                _ => return Err(ClientError::OutOfPlace("something else than `joined`".to_owned())),
            }
        }
        let client = Client { channel, ..self };
        Ok(Prepared { client, test: test.clone(), key, sockets, ports, options, memory })
    }

    /// Says that nothing more comes.
    pub fn bye(self) {
        let _ = self.channel.say(&ToServer::Bye);
    }
}

/// The server has a bound on what it is sent in datagrams: who says no rate sends at that one.
fn bounded(test: &Test, limits: &Limits) -> Result<Test> {
    let mut test = test.clone();
    let sends = test.plan.datagrams && test.plan.work == Work::Stream { from: Sender::Client };
    let flows = u64::from(test.plan.flows.max(1));
    if limits.bits_per_second > 0 && sends {
        let most = (limits.bits_per_second / flows).max(1);
        if let Some(asked) = test.end.bits_per_second.filter(|asked| *asked > most) {
            let said = format!(
                "{} bits a second were asked for, and the server permits {}",
                asked.saturating_mul(flows),
                limits.bits_per_second
            );
            return Err(ClientError::Test(said));
        }
        test.end.bits_per_second.get_or_insert(most);
    }
    Ok(test)
}

/// Over a connection each, to ports that the server draws.
fn is_each(work: Work) -> bool {
    matches!(work, Work::Each | Work::Open)
}

fn hear_maybe(channel: &mut Channel, patience: Duration) -> Result<Option<FromServer>> {
    let Some(message) = channel.hear(patience)? else { return Ok(None) };
    let said: FromServer =
        serde_json::from_slice(&message).map_err(|error| ChannelError::Garbage(error.to_string()))?;
    match said {
        ToClient::Refused(refused) => Err(refused.into()),
        said => Ok(Some(said)),
    }
}

/// Waits for an answer, and not for long any more once the user wants the end.
fn hear(channel: &mut Channel, patience: Duration, wants_end: &AtomicBool) -> Result<FromServer> {
    let (began, mut hurried) = (Instant::now(), Hurried::default());
    loop {
        let is_over = began.elapsed() >= patience || hurried.is_over(wants_end);
        if let Some(said) = hear_maybe(channel, LOOKS)? {
            return Ok(said);
        }
        if is_over {
            return Err(ChannelError::Silent(began.elapsed()).into());
        }
    }
}

/// Since when the user wants the end.
#[derive(Debug, Default)]
struct Hurried(Option<Instant>);

impl Hurried {
    /// Long enough to wait no longer.
    fn is_over(&mut self, wants_end: &AtomicBool) -> bool {
        wants_end.load(Relaxed) && self.0.get_or_insert_with(Instant::now).elapsed() >= HURRIES
    }
}

/// A test whose connections are all there.
#[derive(Debug)]
pub struct Prepared {
    client: Client,
    test: Test,
    key: [u8; KEY],
    sockets: Vec<OwnedFd>,
    ports: Vec<u16>,
    options: Options,
    memory: memory::Reading,
}

impl Prepared {
    /// Begins.
    ///
    /// # Errors
    /// The server does not, or a thread cannot be made.
    pub fn start(mut self) -> Result<Running> {
        let plan = &self.test.plan;
        let channel = &mut self.client.channel;
        let asked = Instant::now();
        channel.say(&ToServer::Start)?;
        match hear(channel, STEP, &self.client.hurried)? {
            ToClient::Started => {}
            _ => return Err(ClientError::OutOfPlace("something else than `started`".to_owned())),
        }
        let apart = asked.elapsed();
        let [request, response, size] =
            [plan.request, plan.response, plan.size].map(|size| usize::try_from(size).unwrap_or(usize::MAX));
        let lasts = Duration::from_nanos(plan.duration_ns);
        let receives = plan.work == Work::Stream { from: Sender::Server };
        let stop = Stop::new();
        let began = Instant::now();
        let mut until = Until {
            // Who receives reads to the end of what the server sends.
            deadline: began.checked_add(lasts).filter(|_| !receives),
            bytes: self.test.bytes,
            count: self.test.count,
            stop,
        };
        let exchange =
            Exchange { request, response, datagrams: plan.datagrams, ..self.test.exchange.clone() };
        if plan.work == Work::Each && are_many(self.test.threads.map(|n| n as usize), plan.flows as usize) {
            until.count = until.count.map(|count| self.share_of(count));
        }
        let manner = Manner {
            end: self.test.end.clone(),
            size,
            exchange,
            rate: self.test.end.bits_per_second,
            key: number(&self.key),
            began,
            until,
            threads: self.test.threads.map(|threads| threads as usize),
            window: measured(plan),
            memory: self.memory,
        };
        let doing: Vec<Doing> = match (plan.work, &self.client.place) {
            (Work::Open, Place::Host(to)) => self.calls(*to, &manner)?,
            (Work::Each, Place::Host(to)) if are_many(manner.threads, plan.flows as usize) => {
                self.calls(*to, &manner)?
            }
            (Work::Each, Place::Host(to)) => {
                let port = self.ports.first().ok_or_else(|| ClientError::OutOfPlace("no port".to_owned()))?;
                let connecting = Connecting {
                    to: at_port(*to, *port),
                    options: self.options.clone(),
                    request,
                    response,
                    closing: Closing::Answerer,
                    patience: STEP,
                    ports: None,
                    spin: self.test.exchange.spin,
                };
                (0..plan.flows).map(|_| Doing::AskEach(Box::new(connecting.clone()))).collect()
            }
            (work, _) => {
                let of = |socket| match (work, plan.datagrams) {
                    (Work::Stream { from: Sender::Client }, false) => Doing::Send(socket),
                    (Work::Stream { from: Sender::Client }, true) => Doing::SendDatagrams(socket),
                    (Work::Stream { from: Sender::Server }, false) => Doing::Receive(socket),
                    (Work::Stream { from: Sender::Server }, true) => Doing::ReceiveDatagrams(socket),
                    _ => Doing::Ask(socket),
                };
                std::mem::take(&mut self.sockets).into_iter().map(of).collect()
            }
        };
        let flows = Flows::start(doing, &manner, Duration::from_nanos(plan.warm_up_ns))?;
        let theirs = Sample::default();
        Ok(Running {
            client: self.client,
            test: self.test,
            flows,
            receives,
            lasts,
            apart,
            theirs,
            results: None,
            error: None,
        })
    }
}

impl Prepared {
    /// Threads that open connections.
    fn callers(&self) -> usize {
        let plan = &self.test.plan;
        let workers = workers(self.test.threads.map(|threads| threads as usize), plan.flows as usize);
        // Each holds one at least.
        let most = if plan.hold > 0 { usize::try_from(plan.hold).unwrap_or(usize::MAX) } else { usize::MAX };
        workers.min(most)
    }

    /// Of `count` transactions of each flow, those of each thread.
    fn share_of(&self, count: u64) -> u64 {
        count.saturating_mul(u64::from(self.test.plan.flows)).div_ceil(self.callers() as u64)
    }

    /// Connections that are opened by few threads.
    fn calls(&self, to: SocketAddr, manner: &Manner) -> Result<Vec<Doing>> {
        let plan = &self.test.plan;
        let opens = plan.work == Work::Open;
        let callers = self.callers();
        let all: Vec<SocketAddr> = self.ports.iter().map(|port| at_port(to, *port)).collect();
        if all.is_empty() {
            return Err(ClientError::OutOfPlace("no port".to_owned()));
        }
        let share = |of: usize, number: usize| of / callers + usize::from(number < of % callers);
        let hold = usize::try_from(plan.hold).unwrap_or(usize::MAX);
        let call = |number: usize| {
            // Threads take turns on one schedule, and begin with another port each.
            let rate = manner
                .exchange
                .rate
                .map(|rate| Rate { per_ns: rate.per_ns.saturating_mul(callers as u64), ..rate });
            let offset = manner.exchange.rate.map_or(Duration::ZERO, |rate| rate.due(number as u64));
            let mut to = all.clone();
            to.rotate_left(number % all.len());
            Doing::Call(Box::new(Calling {
                to,
                options: self.options.clone(),
                request: manner.exchange.request,
                response: manner.exchange.response,
                hold: share(hold, number),
                rate,
                offset,
                at_once: share(plan.flows as usize, number).max(1),
                patience: if opens { self.test.handshake } else { STEP },
                timed: if opens { Timed::Handshake } else { Timed::Whole },
                goes_on: opens,
            }))
        };
        Ok((0..callers).map(call).collect())
    }
}

/// Which datagrams of a stream count, by the time since their flow began.
pub(super) fn measured(plan: &Plan) -> Window {
    let [from, to] = [plan.warm_up_ns, plan.duration_ns].map(Duration::from_nanos);
    Window { from, to: Some(to) }
}

fn number(key: &[u8; KEY]) -> u64 {
    key.first_chunk::<8>().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

/// A test under way.
pub struct Running {
    client: Client,
    test: Test,
    flows: Flows,
    receives: bool,
    lasts: Duration,
    apart: Duration,
    theirs: Sample,
    results: Option<Box<Results>>,
    error: Option<ClientError>,
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").field("test", &self.test).finish_non_exhaustive()
    }
}

/// What a test came to.
#[derive(Debug)]
pub struct Outcome {
    /// At this end.
    pub ours: Results,
    /// At the server's. None: it could not be asked any more.
    pub theirs: Option<Box<Results>>,
    /// How long transactions took, in ns, without the warm-up.
    pub latency: Histogram,
    /// The server began at most so long before this end: it had been asked to, and had not answered yet.
    pub apart: Duration,
    /// What went wrong between the ends.
    pub error: Option<ClientError>,
    /// The connection, for another test; where nothing went wrong.
    pub client: Option<Client>,
}

impl Running {
    /// Hears what the server says, and begins to measure when it is time: to be called ten times a second or more often. True: it
    /// is over, and [`Running::finish`] is due.
    pub fn look(&mut self) -> bool {
        self.flows.tick();
        while self.error.is_none() {
            match hear_maybe(&mut self.client.channel, Duration::ZERO) {
                Ok(Some(ToClient::Progress(sample))) => self.theirs = sample,
                Ok(Some(ToClient::Results(results))) => self.results = Some(results),
                Ok(Some(_)) => self.error = Some(ClientError::OutOfPlace("something".to_owned())),
                Ok(None) => break,
                Err(error) => self.error = Some(error),
            }
        }
        self.error.is_some()
            || self.results.is_some()
            || self.flows.stop.is_set()
            || self.flows.are_over()
            || (self.receives && self.flows.elapsed() >= self.lasts)
    }

    /// When [`Running::look`] has something to do, at the latest.
    pub fn next_look(&self) -> Option<Duration> {
        let end = self.receives.then(|| self.lasts.saturating_sub(self.flows.elapsed()));
        self.flows.next_tick().into_iter().chain(end).min()
    }

    /// Ends it before its time: [`Running::look`] says from now on that it is over.
    pub fn stop(&self) {
        self.flows.stop.set();
    }

    /// What is measured has begun.
    pub fn is_measuring(&self) -> bool {
        self.flows.is_measuring()
    }

    /// How this end stands.
    pub fn ours(&self) -> Sample {
        self.flows.sample(true)
    }

    /// How the server's end stood when it last said.
    pub fn theirs(&self) -> Sample {
        self.theirs
    }

    /// How long transactions took so far.
    pub fn latency(&self) -> Histogram {
        self.flows.latency()
    }

    /// Ends what has not ended, and gathers what both ends came to. Once a user wants the end now, a server that cannot be reached any
    /// more, or says nothing, is not waited for.
    pub fn finish(self) -> Outcome {
        let Running { mut client, test, mut flows, receives, results, mut error, apart, .. } = self;
        let stop = flows.stop.clone();
        let mut theirs = results;
        if !receives || error.is_some() {
            // Senders and askers: by time, amount or because somebody said so they are at their end.
            let by = Instant::now() + STEP;
            while !flows.are_over() && Instant::now() < by && error.is_none() && !stop.is_set() {
                std::thread::sleep(Duration::from_millis(5));
            }
            stop.set();
            flows.close();
        }
        if error.is_none() && theirs.is_none() {
            error = client.channel.say(&ToServer::Stop).err().map(ClientError::from);
        }
        let by = Instant::now() + SETTLES;
        let (said, hurried) = (Instant::now(), Arc::clone(&client.hurried));
        while error.is_none() && theirs.is_none() {
            match hear_maybe(&mut client.channel, Duration::from_millis(50)) {
                Ok(Some(ToClient::Results(results))) => theirs = Some(results),
                Ok(Some(ToClient::Progress(_))) => {}
                Ok(None)
                    if hurried.load(Relaxed)
                        && (said.elapsed() >= DRAINS
                            || said.elapsed() >= HURRIES && client.channel.is_unacknowledged()) =>
                {
                    error = Some(ChannelError::Silent(said.elapsed()).into());
                }
                Ok(Some(_)) => {
                    error = Some(ClientError::OutOfPlace("something else than its results".to_owned()))
                }
                Ok(None) if Instant::now() >= by => error = Some(ChannelError::Silent(SETTLES).into()),
                Ok(None) => {}
                Err(bad) => error = Some(bad),
            }
        }
        if receives {
            flows.close();
            // What was sent arrives before the connection's end does; of datagrams nobody says that there are no more.
            let settles = if test.plan.datagrams { Duration::from_millis(200) } else { STEP };
            let by = Instant::now() + settles;
            while !flows.are_over() && Instant::now() < by && error.is_none() {
                std::thread::sleep(Duration::from_millis(5));
            }
            stop.set();
        }
        let (ours, latency) = flows.finish();
        let client = error.is_none().then_some(client);
        Outcome { ours, theirs, latency, apart, error, client }
    }
}
