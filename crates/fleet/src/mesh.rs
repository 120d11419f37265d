//! A mesh of endpoint tests: each agent is a client of every other host, and each runs a server. One connection to each agent is held from the
//! beginning to the end, over which its server and its tests are started.
//!
//! ```text
//!   hosts --> a Station each: reach, start the server --> rounds (mesh::rounds), or all at once --> end the servers
//!                                                            |
//!                          report::MeshPair of each pair <---'  its figures, or why it has none
//! ```
//!
//! What fails is that pair's, or that host's: the others go on. Each server's own count of tests is compared with what clients say.

mod hosts;
mod pair;
mod rounds;

use crate::client::{Client, NoInterface, Patience};
use crate::files::FileLost;
use crate::joint::{Asked, NotDone};
use crate::lost::Lost;
use crate::moment::title;
use crate::plan::{SERVER_PORT, Unplanned, listened};
use crate::reach::Reach;
use agent::{AskClock, ClockTold, JobStart, OfRun};
use hosts::Host;
use report::{
    AgentClock, AgentPart, Code, Mesh, MeshFigure, MeshHost, MeshOutcome, MeshPair, MeshSchedule, MeshServed,
    Report, Said, units,
};
use rounds::{Pair, rounds};
use serde_json::{Map, Value, json};
use snapshot::Snapshot;
use spec::{Endpoint, EndpointTest, Job};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// From one snapshot to the next.
const SHOWS: Duration = Duration::from_millis(100);
/// A test lasts so long, unless said.
const LASTS: Duration = Duration::from_secs(10);
/// Where an interface's reflector of STAMP listens, unless said.
const STAMP_PORT: u16 = 862;

/// The test of a job that is a mesh.
pub(crate) fn of(job: &Job) -> Option<&Endpoint> {
    match job {
        Job::Endpoint(test) if test.mesh => Some(test),
        _ => None,
    }
}

/// Tests all pairs.
///
/// # Errors
/// The hosts make no mesh, or no test was begun.
pub(crate) fn carry_out(
    test: &Endpoint,
    agents: &[Reach],
    session: &job::Session,
    asked: &Asked,
) -> Result<Report, NotDone> {
    if asked.at.is_some() {
        let why = "each host of a mesh begins tests: leave it out";
        return Err(Unplanned::Together { setting: ".at", why }.into());
    }
    let port = if test.test == EndpointTest::Stamp { STAMP_PORT } else { SERVER_PORT };
    let hosts = hosts::hosts(&test.host, agents, port, test.all_at_once)?;
    let is_client = |host: usize| hosts.get(host).is_some_and(|host| host.agent.is_some());
    let rounds = match test.all_at_once {
        true => vec![rounds(hosts.len(), is_client).concat()],
        false => rounds(hosts.len(), is_client),
    };
    session.stop_in_order();
    let mut job = Job::Endpoint(test.clone().into()).to_value().unwrap_or_default();
    for own in ["mesh", "all_at_once"] {
        job.as_object_mut().map(|job| job.remove(own));
    }
    let run = Run {
        test,
        job,
        hosts: &hosts,
        rounds: &rounds,
        session,
        answer: asked.answer,
        boot_id: agent::boot_id(),
        began: Mutex::default(),
        last_begun: AtomicU64::new(0),
        ended: AtomicU64::new(0),
        warnings: Mutex::default(),
        round: AtomicU64::new(0),
        over: AtomicU64::new(0),
    };
    let stations: Vec<Mutex<Station<'_>>> = hosts
        .iter()
        .map(|host| Mutex::new(Station::new(host, host.agent.and_then(|agent| agents.get(agent)))))
        .collect();
    let pairs = run.carried_out(&stations)?;
    let stations =
        stations.into_iter().map(|station| station.into_inner().unwrap_or_else(PoisonError::into_inner));
    let mut report = run.report(pairs, stations.collect());
    report.requested = Job::Endpoint(test.clone().into()).to_value().ok();
    Ok(report)
}

/// What all of it shares.
struct Run<'a> {
    test: &'a Endpoint,
    /// The job of one pair, but for its host.
    job: Value,
    hosts: &'a [Host],
    rounds: &'a [Vec<Pair>],
    session: &'a job::Session,
    answer: Duration,
    /// Of this host.
    boot_id: String,
    /// When the first test began.
    began: Mutex<Option<Instant>>,
    /// When the last one surely had begun, since then: its agent had answered.
    last_begun: AtomicU64,
    /// When the last one was over.
    ended: AtomicU64,
    /// What clients warn of, each with its pair.
    warnings: Mutex<Vec<(Pair, Said)>>,
    /// The round that goes on, from 1, and tests that are over.
    round: AtomicU64,
    over: AtomicU64,
}

/// A host, with the connection to its agent.
struct Station<'a> {
    host: &'a Host,
    reach: Option<&'a Reach>,
    client: Option<Client>,
    /// Name of its machine, and how its clock stands to this host's.
    machine: Option<String>,
    clock: Option<AgentClock>,
    /// What its server's run told at its end.
    report: Option<Report>,
    /// Its server's run.
    server: Option<String>,
    /// Its agent is there, and started no server.
    serves_none: bool,
    /// Why it has no agent, or no server, any more.
    error: Option<String>,
    contents: BTreeMap<String, String>,
    served: Option<MeshServed>,
}

/// Why an agent has no server.
enum NoServer {
    /// It does not start one.
    Refused(String),
    /// It is gone.
    Lost(Lost),
}

impl From<Lost> for NoServer {
    fn from(lost: Lost) -> NoServer {
        match lost {
            Lost::Refused(_) => NoServer::Refused(said(&lost)),
            lost => NoServer::Lost(lost),
        }
    }
}

/// A test that was begun, or why not.
struct Begun {
    test: Result<String, String>,
    /// When it was asked for, unless it surely did not begin.
    at: Option<u64>,
}

impl Begun {
    fn not(why: String) -> Begun {
        Begun { test: Err(why), at: None }
    }
}

fn lock<'s, 'a>(station: &'s Mutex<Station<'a>>) -> MutexGuard<'s, Station<'a>> {
    station.lock().unwrap_or_else(PoisonError::into_inner)
}

fn said(lost: &Lost) -> String {
    match lost.remedy() {
        Some(remedy) => format!("{lost}; {remedy}"),
        None => lost.to_string(),
    }
}

/// An agent that answered before; how it is begun was no mistake.
fn gone_meanwhile(lost: &Lost) -> String {
    format!("its agent was lost: {lost}")
}

/// Does something for each of some things side by side, in their order.
fn side_by_side<T: Sync, R: Send>(of: &[T], does: impl Fn(&T) -> R + Sync) -> Result<Vec<R>, NotDone> {
    std::thread::scope(|scope| {
        let does = &does;
        let spawned: Vec<_> = of
            .iter()
            .map(|one| {
                let thread =
                    std::thread::Builder::new().name("mesh".to_owned()).stack_size(crate::check::STACK_BYTES);
                thread.spawn_scoped(scope, move || does(one))
            })
            .collect();
        let joined = spawned.into_iter().map(|thread| {
            let panicked =
                |_| NotDone::Thread(std::io::Error::other("it panicked: this is a defect of netdyno"));
            thread.map_err(NotDone::Thread)?.join().map_err(panicked)
        });
        joined.collect()
    })
}

impl<'a> Station<'a> {
    fn new(host: &'a Host, reach: Option<&'a Reach>) -> Station<'a> {
        Station {
            host,
            reach,
            client: None,
            machine: None,
            clock: None,
            report: None,
            server: None,
            serves_none: false,
            error: None,
            contents: BTreeMap::new(),
            served: None,
        }
    }

    /// Its agent is gone.
    fn is_lost(&mut self, why: String) {
        self.client = None;
        self.server = None;
        if std::mem::take(&mut self.serves_none) {
            // It had no server before, and now there is no client either.
            self.error = None;
        }
        self.error.get_or_insert(why);
    }

    /// Reaches the agent, and starts its server; what it cannot is its error.
    fn open(&mut self, run: &Run<'_>) {
        let Some(reach) = self.reach else { return };
        let patience = Patience { answer: run.answer, stop: Arc::clone(&run.session.stop) };
        match Client::reach(reach, patience) {
            Ok((mut client, welcome)) => {
                self.machine = Some(units::printable(&welcome.host.name));
                let is_here = !run.boot_id.is_empty() && run.boot_id == welcome.host.boot_id;
                match client.compared() {
                    Ok(offset) => self.clock = Some(offset.of_agent(is_here)),
                    // No figure of a mesh is by it.
                    Err(Lost::Clock(_)) => {}
                    Err(lost) => return self.is_lost(format!("its agent cannot be had: {}", said(&lost))),
                }
                self.client = Some(client);
            }
            Err(lost) => return self.is_lost(format!("its agent cannot be had: {}", said(&lost))),
        }
        match self.serve(run) {
            Ok(server) => self.server = Some(server),
            // It may be a client all the same.
            Err(NoServer::Refused(why)) => {
                self.error = Some(format!("its agent starts no server: {why}"));
                self.serves_none = true;
            }
            Err(NoServer::Lost(lost)) => self.is_lost(gone_meanwhile(&lost)),
        }
        if let Some(client) = &mut self.client {
            client.is_stopped_in_order();
        }
    }

    fn serve(&mut self, run: &Run<'_>) -> Result<String, NoServer> {
        let job = match run.test.test {
            EndpointTest::Stamp => self.reflector()?,
            _ => {
                let listen = listened(&self.host.address);
                let mut job =
                    json!({ "schema": spec::SCHEMA, "kind": "endpoint-server", "listen": [listen] });
                if let Some(token) = &run.test.token_file {
                    job["token_file"] = json!(token);
                }
                job
            }
        };
        let Some(client) = &mut self.client else { return Err(Lost::Stopped.into()) };
        if let Some(token) = &run.test.token_file {
            let content = client.put(token).map_err(|lost| match lost {
                FileLost::There(lost) => lost.into(),
                here => NoServer::Refused(here.to_string()),
            })?;
            self.contents.insert(token.display().to_string(), content);
        }
        let started = client.start(&start(job, &self.contents))?;
        client.await_begun(&started.run, &run.session.stop, &mut |_| {})?;
        Ok(started.run)
    }

    /// A reflector of STAMP stands on an interface: the one of the inventory, or the one that the agent grants.
    fn reflector(&mut self) -> Result<Value, NoServer> {
        let (Some(client), Some(reach)) = (&mut self.client, self.reach) else {
            return Err(Lost::Stopped.into());
        };
        let interface = client.only_interface(reach, "its reflector of STAMP").map_err(|no| match no {
            NoInterface::Not(why) => NoServer::Refused(why),
            NoInterface::Lost(lost) => lost.into(),
        })?;
        let port = match self.host.address.parse::<std::net::IpAddr>() {
            Ok(_) => None,
            Err(_) => self.host.address.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok()),
        };
        let port = port.unwrap_or(STAMP_PORT);
        Ok(json!({ "schema": spec::SCHEMA, "kind": "reflect", "on": interface, "stamp": { "port": port } }))
    }

    /// Begins a test with the server at `address`. An agent that is gone is that from now on.
    fn begin(&mut self, run: &Run<'_>, address: &str) -> Begun {
        let Some(client) = &mut self.client else { return Begun::not(self.gone()) };
        let mut job = run.job.clone();
        job["host"] = json!(address);
        let asked = run.since_start();
        let started = client.start(&start(job, &self.contents));
        let answered = run.since_start();
        run.ended.fetch_max(answered, Relaxed);
        match started {
            Ok(started) => {
                run.last_begun.fetch_max(answered, Relaxed);
                Begun { test: Ok(started.run), at: Some(asked) }
            }
            Err(lost) => {
                // Without an answer it may have begun, and its server may have counted it.
                let at = (!matches!(lost, Lost::Refused(_))).then_some(asked);
                Begun { test: Err(self.came_to(lost)), at }
            }
        }
    }

    /// Waits for a test's end.
    fn finish(&mut self, run: &Run<'_>, test: &str) -> Result<Report, String> {
        let Some(client) = &mut self.client else { return Err(self.gone()) };
        let report = client.wait(test, &run.session.stop, &mut |_| {});
        run.ended.fetch_max(run.since_start(), Relaxed);
        let report = report.and_then(|report| {
            client.call::<Value>("job.forget", &OfRun { run: test.to_owned() })?;
            Ok(report)
        });
        match report {
            Ok(report) => crate::joint::read_report(report).map_err(|failed| failed.to_string()),
            Err(lost) => Err(self.came_to(lost)),
        }
    }

    /// Why a test has no result; whoever does not answer any more is lost.
    fn came_to(&mut self, lost: Lost) -> String {
        if matches!(lost, Lost::Refused(_)) {
            return said(&lost);
        }
        self.is_lost(gone_meanwhile(&lost));
        self.gone()
    }

    /// As agents of any job have one: what its server's run told, or why that is not known.
    fn row(&self) -> AgentPart {
        let report = self.report.clone().map(|mut report| {
            report.result.agents.clear();
            report.requested = None;
            Box::new(report)
        });
        AgentPart {
            name: self.reach.map(|reach| reach.name.to_string()).unwrap_or_default(),
            host: self.machine.clone(),
            clock: self.clock,
            error: self.error.clone(),
            report,
            ..AgentPart::default()
        }
    }

    fn gone(&self) -> String {
        self.error.clone().unwrap_or_else(|| "it has no agent".to_owned())
    }

    /// Why no test can be done with its server, if none can.
    fn serves_not(&self) -> Option<String> {
        let serves = self.host.agent.is_none() || self.server.is_some();
        (!serves).then(|| self.gone())
    }

    /// Whether its agent is there still: who is not is lost.
    fn look(&mut self) {
        let asked = self.client.as_mut().map(|client| client.call::<ClockTold>("clock", &AskClock { t1: 0 }));
        if let Some(Err(lost)) = asked {
            self.is_lost(gone_meanwhile(&lost));
        }
    }

    /// Ends its server, and the connection.
    fn close(&mut self) {
        let over = AtomicBool::new(true);
        if let (Some(client), Some(server)) = (&mut self.client, self.server.take()) {
            match client.wait(&server, &over, &mut |_| {}).map(crate::joint::read_report) {
                Ok(Ok(report)) => {
                    self.served = pair::served(&report);
                    self.report = Some(report);
                }
                Ok(Err(failed)) => self.error = Some(failed.to_string()),
                Err(lost) => {
                    self.error = Some(format!("its server came to no end in order: {}", said(&lost)))
                }
            }
        }
        self.client = None;
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn start(job: Value, contents: &BTreeMap<String, String>) -> JobStart {
    let job = match job {
        Value::Object(job) => job,
        _ => Map::new(),
    };
    JobStart {
        job,
        contents: contents.clone(),
        start_at: None,
        snapshots_every_ns: 0,
        agree: None,
        among: None,
        closely: false,
    }
}

impl Run<'_> {
    /// All pairs, row by row.
    fn carried_out(&self, stations: &[Mutex<Station<'_>>]) -> Result<Vec<MeshPair>, NotDone> {
        side_by_side(stations, |station| lock(station).open(self))?;
        let over = AtomicBool::new(false);
        let tested = std::thread::scope(|scope| {
            // It is for who looks on alone.
            let shows = std::thread::Builder::new().name("mesh".to_owned());
            let shown = shows.spawn_scoped(scope, || self.show(&over));
            let tested = self.tested(stations);
            over.store(true, Relaxed);
            drop(shown);
            tested
        });
        // Whatever came of it, no server stays.
        side_by_side(stations, |station| lock(station).close())?;
        let mut pairs = tested?;
        if pairs.iter().all(|pair| pair.outcome == MeshOutcome::NotBegun) && self.session.stop.load(Relaxed) {
            return Err(NotDone::Stopped);
        }
        let place = |name: &str| self.hosts.iter().position(|host| host.name == name);
        pairs.sort_by_key(|pair| (place(&pair.from), place(&pair.to)));
        Ok(pairs)
    }

    /// Shows how far it is.
    fn show(&self, over: &AtomicBool) {
        let title = Arc::new(title("endpoint"));
        let begun = Instant::now();
        let all = self.rounds.iter().map(Vec::len).sum::<usize>() as u64;
        while !over.load(Relaxed) {
            let round = self.round.load(Relaxed);
            let endpoint = snapshot::Endpoint {
                tests: Some(self.over.load(Relaxed)),
                all_tests: Some(all),
                round: Some(round).filter(|round| *round > 0 && !self.test.all_at_once),
                rounds: Some(self.rounds.len() as u64),
                ..snapshot::Endpoint::default()
            };
            let at_ns = nanoseconds(begun.elapsed());
            let now = Snapshot {
                title: Arc::clone(&title),
                at_ns,
                endpoint: Some(endpoint),
                ..Snapshot::default()
            };
            self.session.board.publish(now);
            std::thread::sleep(SHOWS);
        }
    }

    fn tested(&self, stations: &[Mutex<Station<'_>>]) -> Result<Vec<MeshPair>, NotDone> {
        if !stations.iter().any(|station| lock(station).client.is_some()) {
            return Err(self.nobody(stations));
        }
        self.session.say(Code::Begun, self.announced());
        let mut pairs = Vec::new();
        for (round, of) in (1..).zip(self.rounds) {
            if self.session.stop.load(Relaxed) {
                pairs.extend(of.iter().map(|pair| self.pair(*pair, round)));
                continue;
            }
            self.round.store(round, Relaxed);
            if self.test.all_at_once {
                pairs.extend(self.all_at_once(stations, of)?);
                continue;
            }
            self.session.say(Code::Trial, self.told(round, of));
            let one = |pair: &Pair| {
                let row = self.one(stations, *pair, round);
                self.over.fetch_add(1, Relaxed);
                row
            };
            pairs.extend(side_by_side(of, one)?);
        }
        Ok(pairs)
    }

    /// Without any agent there is no mesh: the first one's reason.
    fn nobody(&self, stations: &[Mutex<Station<'_>>]) -> NotDone {
        if self.session.stop.load(Relaxed) {
            return NotDone::Stopped;
        }
        let first = stations.iter().map(lock).find(|station| station.reach.is_some());
        let (agent, why) =
            first.map_or_else(Default::default, |station| (station.host.name.clone(), station.gone()));
        NotDone::Agent { agent, why, remedy: None, told: false }
    }

    /// What is to come, and how long it takes.
    fn announced(&self) -> String {
        let tests = units::counted(self.rounds.iter().map(Vec::len).sum::<usize>() as u64, "test");
        let end = "Ctrl-C ends and reports";
        let lasts = self.lasts();
        let of = |lasts: Duration| units::time(nanoseconds(lasts));
        match (self.test.all_at_once, lasts) {
            (true, Some(lasts)) => {
                format!("{tests} all at once, {}, so that they load the network; {end}", of(lasts))
            }
            (true, None) => format!("{tests} all at once; {end}"),
            (false, lasts) => {
                let rounds = units::counted(self.rounds.len() as u64, "round");
                let each = lasts.map_or_else(String::new, |lasts| {
                    let all = lasts.saturating_mul(u32::try_from(self.rounds.len()).unwrap_or(u32::MAX));
                    format!(" of {}, {} at least", of(lasts), of(all))
                });
                format!("{tests} in {rounds}{each}; no host is in two tests at once; {end}")
            }
        }
    }

    /// How long a test measures; `None`: until an amount is done.
    fn measures(&self) -> Option<Duration> {
        if self.test.bytes.is_some() || self.test.transactions.is_some() {
            return None;
        }
        Some(self.test.duration.as_deref().copied().unwrap_or(LASTS))
    }

    /// How long it lasts with its warm-up.
    fn lasts(&self) -> Option<Duration> {
        Some(self.measures()?.saturating_add(self.test.warm_up.as_deref().copied().unwrap_or_default()))
    }

    fn told(&self, round: u64, of: &[Pair]) -> String {
        const NAMED: usize = 4;
        let pairs: Vec<String> = of.iter().take(NAMED).map(|pair| self.pair(*pair, round).name()).collect();
        let more = of.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("round {round} of {}: {}{more}", self.rounds.len(), pairs.join(", "))
    }

    /// A pair whose test has not begun.
    fn pair(&self, (from, to): Pair, round: u64) -> MeshPair {
        let name = |host: usize| self.hosts.get(host).map(|host| host.name.clone()).unwrap_or_default();
        MeshPair { from: name(from), to: name(to), round, ..MeshPair::default() }
    }

    fn address(&self, host: usize) -> &str {
        self.hosts.get(host).map_or("", |host| &*host.address)
    }

    /// Since the first test began.
    fn since_start(&self) -> u64 {
        let mut began = self.began.lock().unwrap_or_else(PoisonError::into_inner);
        let began = began.get_or_insert_with(Instant::now);
        u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// One pair of a round: no other has one of its hosts.
    fn one(&self, stations: &[Mutex<Station<'_>>], pair: Pair, round: u64) -> MeshPair {
        let mut row = self.pair(pair, round);
        let (Some(from), Some(to)) = (stations.get(pair.0), stations.get(pair.1)) else { return row };
        if let Some(why) = lock(to).serves_not() {
            let reason = format!("{}: {why}", row.to);
            return pair::failed(row, reason);
        }
        let mut client = lock(from);
        let begun = client.begin(self, self.address(pair.1));
        row.began_ns = begun.at;
        let came = begun.test.and_then(|test| client.finish(self, &test));
        drop(client);
        let row = self.filled(pair, row, came);
        self.seen_through(row, to)
    }

    /// A pair with what its client says; of what it warns is kept for the whole.
    fn filled(&self, pair: Pair, row: MeshPair, came: Result<Report, String>) -> MeshPair {
        if let Ok(report) = &came {
            let warned = report.warnings.iter().map(|said| (pair, said.clone()));
            self.warnings.lock().unwrap_or_else(PoisonError::into_inner).extend(warned);
        }
        pair::filled(row, came)
    }

    /// Where a test was not done as asked, its server's agent may be gone: then that is why.
    fn seen_through(&self, row: MeshPair, to: &Mutex<Station<'_>>) -> MeshPair {
        if row.outcome == MeshOutcome::Done {
            return row;
        }
        let mut server = lock(to);
        let was_there = server.client.is_some();
        server.look();
        match server.serves_not() {
            Some(why) if was_there => {
                let reason = format!("{}: {why}", row.to);
                pair::failed(row, reason)
            }
            _ => row,
        }
    }

    /// All pairs at the same time: each agent begins all of its tests, and then waits for them.
    fn all_at_once(&self, stations: &[Mutex<Station<'_>>], of: &[Pair]) -> Result<Vec<MeshPair>, NotDone> {
        let no_server: Vec<Option<String>> =
            stations.iter().map(|station| lock(station).serves_not()).collect();
        let clients: Vec<usize> =
            (0..stations.len()).filter(|host| of.iter().any(|(from, _)| from == host)).collect();
        let rows = side_by_side(&clients, |client| {
            let Some(station) = stations.get(*client) else { return Vec::new() };
            let mut station = lock(station);
            let own = of.iter().filter(|(from, _)| from == client);
            let begun: Vec<(Pair, Begun)> = own
                .map(|pair| match no_server.get(pair.1).and_then(Option::as_ref) {
                    Some(why) => (*pair, Begun::not(format!("{}: {why}", self.pair(*pair, 1).to))),
                    None => (*pair, station.begin(self, self.address(pair.1))),
                })
                .collect();
            let finished = begun.into_iter().map(|(pair, begun)| {
                let row = MeshPair { began_ns: begun.at, ..self.pair(pair, 1) };
                let came = begun.test.and_then(|test| station.finish(self, &test));
                self.over.fetch_add(1, Relaxed);
                (pair, self.filled(pair, row, came))
            });
            finished.collect()
        })?;
        let rows = rows.into_iter().flatten();
        Ok(rows
            .map(|((_, to), row)| stations.get(to).map_or(row.clone(), |to| self.seen_through(row, to)))
            .collect())
    }

    fn report(&self, pairs: Vec<MeshPair>, stations: Vec<Station<'_>>) -> Report {
        let mut report = Report::new("endpoint");
        report.result.agents = stations.iter().filter(|of| of.reach.is_some()).map(Station::row).collect();
        report.environment = job::environment::collect();
        report.resolved.duration_ns = self.lasts().map(nanoseconds);
        let serve_none: Vec<String> =
            stations.iter().filter(|of| of.serves_none).map(|of| of.host.name.clone()).collect();
        let host = |station: Station<'_>| MeshHost {
            name: station.host.name.clone(),
            address: station.host.address.clone(),
            agent: station.reach.is_some(),
            host: station.machine,
            error: station.error,
            served: station.served,
            ..MeshHost::default()
        };
        let began: Vec<u64> = pairs.iter().filter_map(|pair| pair.began_ns).collect();
        // From when the first was asked for to when the last one's agent had answered: no two began further apart.
        let apart = began.iter().min().map(|first| self.last_begun.load(Relaxed).saturating_sub(*first));
        let mut mesh = Mesh {
            test: self.test.test.to_string(),
            compared_by: match self.test.test {
                EndpointTest::TcpStream | EndpointTest::UdpStream => MeshFigure::Throughput,
                EndpointTest::Stamp => MeshFigure::RoundTrip,
                _ => MeshFigure::Latency,
            },
            schedule: if self.test.all_at_once { MeshSchedule::AllAtOnce } else { MeshSchedule::Rounds },
            rounds: self.rounds.len() as u64,
            at_once: self.rounds.iter().map(Vec::len).max().unwrap_or(0) as u64,
            hosts: stations.into_iter().map(host).collect(),
            began_within_ns: apart.filter(|_| self.test.all_at_once),
            test_duration_ns: self.measures().map(nanoseconds),
            elapsed_ns: if began.is_empty() { 0 } else { self.ended.load(Relaxed) },
            pairs,
            ..Mesh::default()
        };
        mesh.tests = mesh.pairs_of_hosts();
        mesh.conclude();
        let mut warnings = std::mem::take(&mut *self.warnings.lock().unwrap_or_else(PoisonError::into_inner));
        warnings.sort_by_key(|(pair, _)| *pair);
        let warnings: Vec<_> =
            warnings.into_iter().map(|(of, said)| (self.pair(of, 1).name(), said)).collect();
        pair::warn(&mut report, &mesh, &warnings);
        pair::judge(&mut report, &mesh, &serve_none, self.session.stop.load(Relaxed));
        report.result.mesh = Some(mesh);
        report
    }
}
