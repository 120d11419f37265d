//! One client's control connection at the server.

use super::bound::Bound;
use super::{BACKLOG, Counted, Shared, refuse};
use crate::crowd::acceptor::Acceptor;
use crate::exchange::Exchange;
use crate::lobby::Seat;
use crate::memory;
use crate::native::channel::{Channel, ChannelError};
use crate::native::client::measured;
use crate::native::flows::{Doing, Flows, Manner, are_many, options, workers};
use crate::native::join::{Joined, Waiting, attend as wait_for, drawn};
use crate::native::{ARRIVES, FromServer};
use crate::phase::{Stop, Until};
use crate::socket::{self, Options};
use endpoint::native::auth::{NONCE, hex};
use endpoint::native::{
    Does, From as Sender, KEY, Key, Plan, Reason, Refused, Session, ToClient, VERSION, Work,
};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError, mpsc};
use std::time::{Duration, Instant};

/// Messages and the test's end are looked for so often.
const LOOK: Duration = Duration::from_millis(20);
/// The next data connection comes within this of the one before: how long thousands take depends on what else their hosts do.
const JOINS: Duration = Duration::from_secs(15);
/// Datagrams that are on their way arrive within this of each other.
const QUIET: Duration = Duration::from_millis(100);
/// How often the client is told how it stands, at the most.
const OFTEN: Duration = Duration::from_millis(50);

/// Connections over one port: the client has some 28,000 ports of its own towards each (net.ipv4.ip_local_port_range).
const OVER_A_PORT: u64 = 20_000;
/// Ports for one test, at most.
const MOST_PORTS: u64 = 64;

/// A test that is prepared.
struct Test {
    plan: Plan,
    doing: Vec<Doing>,
    key: Key,
    memory: memory::Reading,
    /// Its connections and the bytes of its buffers, among all clients'.
    _reserved: [Counted; 2],
}

/// Who wants to be a client says so, and proves it, within this.
const GREETS: Duration = Duration::from_secs(5);

/// To its end. False: it was no client of ours.
pub(super) fn attend(channel: Channel, from: Option<IpAddr>, seat: Seat, shared: &Arc<Shared>) -> bool {
    let mut client = Client { channel, from, shared: Arc::clone(shared) };
    match client.attend(seat) {
        Ok(welcome) => welcome,
        Err(error) => {
            let reason = match &error {
                ChannelError::Silent(_) => Reason::Time,
                ChannelError::Broken(_) => Reason::Host,
                _ => Reason::Protocol,
            };
            // Who is gone does not hear it.
            refuse(&client.channel, Refused::new(reason, error.to_string()));
            !matches!(error, ChannelError::Frame(_) | ChannelError::Garbage(_))
        }
    }
}

struct Client {
    channel: Channel,
    from: Option<IpAddr>,
    shared: Arc<Shared>,
}

impl Client {
    fn say(&self, message: FromServer) -> Result<(), ChannelError> {
        self.channel.say(&message)
    }

    fn attend(&mut self, seat: Seat) -> Result<bool, ChannelError> {
        // A stranger's, until it is a client.
        let mut seat = Some(seat);
        let mut counted = None;
        let greets = Instant::now() + GREETS;
        let options = self.shared.options.clone();
        let mut session = Session::new(options.limits, options.token, hex::encode(&drawn::<NONCE>()?));
        let mut prepared: Option<Test> = None;
        let mut welcome = false;
        loop {
            let patience = match welcome {
                true => session.patience(),
                false => greets.saturating_duration_since(Instant::now()),
            };
            let Some(message) = self.hear(patience)? else { return Ok(welcome) };
            let mut does = session.hear(&message);
            if does == Does::Challenge {
                let program = self.shared.host.program.clone();
                let (nonce, token) = (session.nonce().to_owned(), session.wants_proof());
                self.say(ToClient::Challenge { version: VERSION, program, nonce, token })?;
                match session.challenged() {
                    Some(next) => does = next,
                    None => continue,
                }
            }
            match does {
                Does::Challenge => {}
                Does::Welcome(proof) => {
                    counted = match self.shared.client() {
                        Ok(client) => Some(client),
                        Err(refused) => {
                            self.say(ToClient::Refused(refused))?;
                            return Ok(welcome);
                        }
                    };
                    seat = None;
                    welcome = true;
                    let (limits, host) = (options.limits, self.shared.host.clone());
                    self.say(ToClient::Welcome { proof, limits, host })?;
                }
                Does::Prepare(plan) => match self.prepare(*plan) {
                    Ok(test) => {
                        session.prepared();
                        prepared = Some(test);
                        self.say(ToClient::Joined)?;
                    }
                    Err(Unprepared::Host(error)) => {
                        session.ended();
                        self.say(ToClient::Refused(Refused::new(Reason::Host, error.to_string())))?;
                    }
                    Err(Unprepared::Full(refused)) => {
                        session.ended();
                        self.say(ToClient::Refused(refused))?;
                    }
                    Err(Unprepared::Channel(error)) => return Err(error),
                },
                Does::Start => {
                    let Some(test) = prepared.take() else { return Ok(welcome) };
                    if !self.run(&mut session, test)? {
                        return Ok(welcome);
                    }
                }
                Does::Stop => {
                    // Before it began: there is nothing to tell.
                    prepared = None;
                    session.ended();
                    self.say(ToClient::Results(Box::default()))?;
                }
                Does::Close => {
                    drop((seat, counted));
                    return Ok(welcome);
                }
                Does::Refuse(refused) => {
                    let over = refused.reason != Reason::Limit;
                    self.say(ToClient::Refused(refused))?;
                    if over {
                        return Ok(welcome);
                    }
                }
            }
        }
    }

    /// The next message. None: the server ends, and said so; or the client closed.
    fn hear(&mut self, patience: Duration) -> Result<Option<Vec<u8>>, ChannelError> {
        let by = Instant::now() + patience;
        loop {
            if self.shared.stop.is_set() {
                self.say(ToClient::Refused(Refused::new(Reason::Ending, "the server ends")))?;
                return Ok(None);
            }
            match self.channel.hear(Duration::from_millis(200).min(patience)) {
                Ok(Some(message)) => return Ok(Some(message)),
                Ok(None) if Instant::now() >= by => return Err(ChannelError::Silent(patience)),
                Ok(None) => {}
                Err(ChannelError::Closed) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    /// Has all flows come.
    fn prepare(&mut self, plan: Plan) -> Result<Test, Unprepared> {
        let own = options(&Options::default(), &plan.end);
        let key: Key = drawn::<KEY>()?;
        let connections = self.shared.reserve(plan.connections()).map_err(Unprepared::Full)?;
        let buffers = self.shared.buffers(plan.memory()).map_err(Unprepared::Full)?;
        let memory = memory::Reading::now();
        let (work, datagrams) = (plan.work, plan.datagrams);
        let of = |socket: OwnedFd| match (work, datagrams) {
            (Work::Stream { from: Sender::Client }, false) => Doing::Receive(socket),
            (Work::Stream { from: Sender::Client }, true) => Doing::ReceiveDatagrams(socket),
            (Work::Stream { from: Sender::Server }, false) => Doing::Send(socket),
            (Work::Stream { from: Sender::Server }, true) => Doing::SendDatagrams(socket),
            _ => Doing::Answer(socket),
        };
        let doing = match (work, datagrams) {
            (Work::Each | Work::Open, _) => self.listen(&plan, &own)?,
            (_, true) => self.join(&plan, key, &own)?.into_iter().map(of).collect(),
            (_, false) => self.connected(&plan, key, &own)?.into_iter().map(of).collect(),
        };
        Ok(Test { plan, doing, key, memory, _reserved: [connections, buffers] })
    }

    /// Own address on this connection, and the client's.
    fn ends(&self) -> io::Result<[SocketAddr; 2]> {
        self.channel.ends().ok_or_else(|| {
            io::Error::other("over a Unix socket there is neither UDP nor a connection for each transaction")
        })
    }

    fn listen(&mut self, plan: &Plan, own: &Options) -> Result<Vec<Doing>, Unprepared> {
        let [here, there] = self.ends()?;
        let options = Options { defer_accept: plan.request > 0, ..own.clone() };
        let listen = || {
            socket::listen(socket::at_port(here, 0), &options, BACKLOG)
                .map_err(|error| io::Error::new(error.io().kind(), error))
        };
        if plan.work == Work::Each && !are_many(None, plan.flows as usize) {
            let listener = listen()?;
            let port = listener.local_addr()?.port();
            let listener = Arc::new(listener);
            self.say(ToClient::Ready { key: hex::encode(&[0; KEY]), ports: vec![port] })?;
            let each = || Doing::AnswerEach(Arc::clone(&listener), Some(there.ip()));
            return Ok((0..plan.flows).map(|_| each()).collect());
        }
        // Each thread has listeners of its own: no two of them accept from one queue.
        let connections = plan.connections();
        let workers = workers(None, usize::try_from(connections).unwrap_or(usize::MAX));
        let wanted = connections.div_ceil(OVER_A_PORT).clamp(workers as u64, MOST_PORTS.max(workers as u64));
        let mut listeners: Vec<Vec<TcpListener>> = (0..workers).map(|_| Vec::new()).collect();
        let mut ports = Vec::new();
        for turn in 0..usize::try_from(wanted).unwrap_or(workers) {
            let listener = listen()?;
            ports.push(listener.local_addr()?.port());
            if let Some(of) = listeners.get_mut(turn % workers) {
                of.push(listener);
            }
        }
        self.say(ToClient::Ready { key: hex::encode(&[0; KEY]), ports })?;
        let [request, response] =
            [plan.request, plan.response].map(|size| usize::try_from(size).unwrap_or(usize::MAX));
        let most = usize::try_from(connections).unwrap_or(usize::MAX).div_ceil(workers);
        let acceptor = |listeners| {
            let from = Some(there.ip());
            // The client's threads take turns among ports, and not always fair ones.
            Doing::Acceptor(Box::new(Acceptor {
                listeners,
                from,
                request,
                response,
                hold: plan.hold > 0,
                most: most.saturating_mul(2),
            }))
        };
        Ok(listeners.into_iter().map(acceptor).collect())
    }

    fn join(&mut self, plan: &Plan, key: Key, own: &Options) -> Result<Vec<OwnedFd>, Unprepared> {
        let [here, there] = self.ends()?;
        let mut waiting = Waiting::open(here, there.ip(), plan.flows, key, own)?;
        self.say(ToClient::Ready { key: hex::encode(&key), ports: waiting.ports() })?;
        wait_for(&mut self.channel, JOINS, || {
            waiting.work().map(|all| if all { Joined::All } else { Joined::NoMore })
        })?;
        Ok(waiting.sockets()?)
    }

    fn connected(&mut self, plan: &Plan, key: Key, own: &Options) -> Result<Vec<OwnedFd>, Unprepared> {
        let flows = plan.flows as usize;
        let (door, come) = mpsc::sync_channel(flows);
        let doors = &self.shared.doors;
        doors.lock().unwrap_or_else(PoisonError::into_inner).insert(key, (door, self.from));
        let all = self.say(ToClient::Ready { key: hex::encode(&key), ports: Vec::new() }).and_then(|()| {
            let mut all: Vec<Option<OwnedFd>> = (0..flows).map(|_| None).collect();
            let mut left = flows;
            wait_for(&mut self.channel, JOINS, || {
                let before = left;
                while let Ok((flow, socket)) = come.try_recv() {
                    // The second of a number is none of this test's.
                    if let Some(place) = all.get_mut(flow as usize).filter(|place| place.is_none()) {
                        *place = Some(socket);
                        left -= 1;
                    }
                }
                Ok(match left {
                    0 => Joined::All,
                    _ if left < before => Joined::More,
                    _ => Joined::NoMore,
                })
            })?;
            Ok(all.into_iter().flatten().collect::<Vec<OwnedFd>>())
        });
        self.shared.doors.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
        let (all, from) = (all?, self.from.unwrap_or(IpAddr::from([0, 0, 0, 0])));
        if self.from.is_some() {
            for socket in &all {
                own.apply(socket, from.to_canonical())
                    .map_err(|error| io::Error::new(error.io().kind(), error))?;
            }
        }
        Ok(all)
    }

    /// Runs it to its end. False: the connection is over.
    fn run(&mut self, session: &mut Session, test: Test) -> Result<bool, ChannelError> {
        let counted = Counted::new(&self.shared, |shared| &shared.tests, u64::MAX);
        let began = Meanwhile::begin(&self.shared, session.run());
        let done = self.measure(session, test, &began);
        self.shared.done.fetch_add(1, Relaxed);
        if !matches!(done, Ok(true)) {
            self.shared.broken.fetch_add(1, Relaxed);
        }
        drop(counted);
        done
    }

    fn measure(
        &mut self,
        session: &mut Session,
        test: Test,
        began: &Meanwhile,
    ) -> Result<bool, ChannelError> {
        let Test { plan, doing, key, memory, _reserved } = test;
        let stop = Stop::new();
        let lasts = session.patience();
        let limit = self.shared.options.limits.bits_per_second;
        let most = (limit > 0).then(|| (limit / u64::from(plan.flows.max(1))).max(1));
        let [request, response, size] =
            [plan.request, plan.response, plan.size].map(|size| usize::try_from(size).unwrap_or(usize::MAX));
        let manner = Manner {
            size,
            exchange: Exchange {
                datagrams: plan.datagrams,
                spin: plan.end.spin,
                ..Exchange::new(request, response)
            },
            rate: plan.end.bits_per_second.into_iter().chain(most).min(),
            key: key.first_chunk::<8>().map_or(0, |bytes| u64::from_be_bytes(*bytes)),
            began: Instant::now(),
            until: Until { deadline: Instant::now().checked_add(lasts), ..Until::stopped(&stop) },
            end: plan.end.clone(),
            threads: None,
            window: measured(&plan),
            memory,
        };
        let mut flows = match Flows::start(doing, &manner, Duration::from_nanos(plan.warm_up_ns)) {
            Ok(flows) => flows,
            Err(error) => {
                session.ended();
                self.say(ToClient::Refused(Refused::new(
                    Reason::Host,
                    format!("beginning threads: {error}"),
                )))?;
                return Ok(true);
            }
        };
        let heard = self.say(ToClient::Started).and_then(|()| self.watch(session, &mut flows, &plan, lasts));
        let goes_on = match &heard {
            Ok(Heard::Stop) => {
                flows.close();
                settle(&flows, &plan);
                true
            }
            _ => false,
        };
        stop.set();
        let (mut results, _) = flows.finish();
        results.shared = began.others();
        self.shared.bytes.fetch_add(results.bytes, Relaxed);
        session.ended();
        match heard? {
            Heard::Stop => self.say(ToClient::Results(Box::new(results)))?,
            Heard::Refused(refused) => self.say(ToClient::Refused(refused))?,
            Heard::Gone => {}
        }
        Ok(goes_on)
    }

    /// Until the client says that it is over.
    fn watch(
        &mut self,
        session: &mut Session,
        flows: &mut Flows,
        plan: &Plan,
        lasts: Duration,
    ) -> Result<Heard, ChannelError> {
        let by = Instant::now() + lasts;
        let interval = Duration::from_nanos(plan.interval_ns).max(OFTEN);
        let mut told = Instant::now();
        // TCP is read no faster than that; who sends datagrams has to keep to it by himself.
        let limit = self.shared.options.limits.bits_per_second;
        let receives = plan.datagrams && plan.work == Work::Stream { from: Sender::Client };
        let mut bound = (limit > 0 && receives).then(|| Bound::new(limit));
        loop {
            if let Some(bound) = &mut bound
                && !bound.holds(flows.sample(false).bytes, flows.elapsed())
            {
                let said =
                    format!("datagrams came faster than the {limit} bits a second that this server permits");
                return Ok(Heard::Refused(Refused::new(Reason::Limit, said)));
            }
            flows.tick();
            let next = [Some(LOOK), flows.next_tick()].into_iter().flatten().min().unwrap_or(LOOK);
            match self.channel.hear(next) {
                Ok(Some(message)) => match session.hear(&message) {
                    Does::Stop => return Ok(Heard::Stop),
                    Does::Close => return Ok(Heard::Gone),
                    Does::Refuse(refused) => return Ok(Heard::Refused(refused)),
                    _ => {}
                },
                Ok(None) => {}
                Err(ChannelError::Closed) => return Ok(Heard::Gone),
                Err(error) => return Err(error),
            }
            if self.shared.stop.is_set() {
                return Ok(Heard::Refused(Refused::new(Reason::Ending, "the server ends")));
            }
            if Instant::now() >= by {
                let said = format!("the test did not end within {:.0} s", lasts.as_secs_f64());
                return Ok(Heard::Refused(Refused::new(Reason::Time, said)));
            }
            if plan.interval_ns > 0 && told.elapsed() >= interval {
                told = Instant::now();
                let sends = plan.work == Work::Stream { from: Sender::Server };
                self.say(ToClient::Progress(flows.sample(sends)))?;
            }
        }
    }
}

/// What ended a test.
enum Heard {
    Stop,
    Gone,
    Refused(Refused),
}

/// The client says that it is over: what it sent may still be on its way.
fn settle(flows: &Flows, plan: &Plan) {
    if plan.work != (Work::Stream { from: Sender::Client }) {
        return;
    }
    let by = Instant::now() + ARRIVES;
    let (mut before, mut since) = (flows.sample(false).count, Instant::now());
    while !flows.are_over() && Instant::now() < by {
        std::thread::sleep(Duration::from_millis(5));
        let now = flows.sample(false).count;
        if now != before {
            (before, since) = (now, Instant::now());
        }
        // Datagrams have no end that is seen.
        if plan.datagrams && since.elapsed() >= QUIET {
            return;
        }
    }
}

/// What stands in the way of a test.
enum Unprepared {
    /// This host cannot.
    Host(io::Error),
    /// There is no room for it.
    Full(Refused),
    /// The client is gone, or says what it is not to.
    Channel(ChannelError),
}

impl From<io::Error> for Unprepared {
    fn from(error: io::Error) -> Unprepared {
        Unprepared::Host(error)
    }
}

impl From<ChannelError> for Unprepared {
    fn from(error: ChannelError) -> Unprepared {
        Unprepared::Channel(error)
    }
}

/// Whether other runs' tests are under way at the same time.
struct Meanwhile {
    shared: Arc<Shared>,
    run: String,
    others_before: bool,
    begun_before: u64,
}

impl Meanwhile {
    fn begin(shared: &Arc<Shared>, run: &str) -> Meanwhile {
        let mut runs = shared.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let others_before = runs.keys().any(|other| other != run || run.is_empty());
        let of_run = runs.entry(run.to_owned()).or_insert(0);
        *of_run += 1;
        if *of_run == 1 || run.is_empty() {
            shared.begun.fetch_add(1, Relaxed);
        }
        let begun_before = shared.begun.load(Relaxed);
        drop(runs);
        Meanwhile { shared: Arc::clone(shared), run: run.to_owned(), others_before, begun_before }
    }

    /// There were others, or have been since.
    fn others(&self) -> bool {
        self.others_before || self.shared.begun.load(Relaxed) != self.begun_before
    }
}

impl Drop for Meanwhile {
    fn drop(&mut self) {
        let mut runs = self.shared.runs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = runs.get_mut(&self.run) {
            *count -= 1;
            if *count == 0 {
                runs.remove(&self.run);
            }
        }
    }
}
