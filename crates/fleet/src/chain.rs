//! A job whose parts stand on one another, each at an agent: a clone with its capture and its return agent, a probe with its collectors.
//!
//! ```text
//!   clone:  return agent (at the target) <-- clone <-- capture (at the server)       probe:  collector <-- probe
//!           begun first, ended last                    begun last, ended first
//! ```
//!
//! Each is begun when the one before it stands, and ended when the one behind it is over. Whoever is lost ends the last one, and with it all
//! others, in order. What one says it has sent is compared with what the other one says it got.

use crate::client::{Client, NoInterface, Patience};
use crate::joint::{Asked, Failed, NotDone, Outcome, defect, first_error, read_report};
use crate::lost::Lost;
use crate::merge::{self, Came};
use crate::moment::{Seen, Shown, summed, title};
use crate::plan::{Part, Plan, Role, Unplanned, place, unknown};
use crate::reach::Reach;
use crate::run::Told;
use agent::{FaultKind, JobStart, May};
use report::{Code, Collection, Note, Report, units};
use rustix::rand::{GetRandomFlags, getrandom};
use serde_json::{Value, json};
use spec::{Adopt, CloneCapture, Cloning, Job, Probe};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Cursor;
use std::net::{IpAddr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Where a clone waits for its capture, unless a port is said.
const CLONE_PORT: u16 = 7117;
/// What the key of a clone and its capture is called in their jobs. It is drawn for one run, and nobody else has it.
const KEY: &str = "clone.key";
/// A part whose sender is over waits so long for what is still on its way.
const SETTLES: Duration = Duration::from_millis(500);
/// A collector that has not all records waits until nothing came for so long: a segment that was lost comes again later than this only if the way
/// was down for longer.
const SILENT: Duration = Duration::from_secs(2);
/// But no longer than this, because others may export to it, too.
const SETTLES_MOST: Duration = Duration::from_secs(20);
/// From one snapshot of a part to the next.
const EVERY: Duration = Duration::from_millis(200);
const LOOK: Duration = Duration::from_millis(50);

/// What a part is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    /// What the job is.
    Main,
    /// It captures for a clone.
    Capture,
    /// It sends answers back to a clone.
    Return,
    /// It collects a probe's records.
    Collector,
}

/// A part, with the agent that has it by its place among those that were named.
#[derive(Debug, Clone, PartialEq)]
struct Link {
    what: What,
    agent: usize,
    job: Value,
    /// Interfaces that it is of.
    on: Vec<String>,
}

/// Parts, in the order in which they are begun.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Chain {
    links: Vec<Link>,
    main: usize,
    /// Of a clone, what has to be found out.
    meets: Option<Meets>,
}

/// Where the parts of a clone meet.
#[derive(Debug, Clone, PartialEq)]
struct Meets {
    /// The address and port where the clone waits for its capture, if they are said.
    at: Option<String>,
    port: u16,
    /// The server whose clients are captured: the way to it is the way to the capture.
    server: Option<IpAddr>,
    target: Option<IpAddr>,
}

/// What was found out.
#[derive(Debug, Clone, Default)]
struct Found {
    /// Where the clone waits for its capture.
    at: Option<String>,
    /// Where its packets to the target come from.
    from: Option<IpAddr>,
    key: String,
    /// Addresses that a probe's messages come from; `None`: not all are known.
    exports: Option<BTreeSet<IpAddr>>,
}

/// The parts of a job that is such a one by these agents; `None`: it is another one.
///
/// # Errors
/// It cannot be carried out by them.
pub(crate) fn of(job: &Job, agents: &[Reach], at: Option<&str>) -> Result<Option<Chain>, Unplanned> {
    match job {
        Job::Cloning(clone) => of_clone(clone, agents, at),
        Job::Probe(probe) => of_probe(probe, agents, at),
        _ => Ok(None),
    }
}

fn named(setting: &str, name: &str, text: &str, agents: &[Reach]) -> Result<usize, Unplanned> {
    let found = agents.iter().position(|agent| agent.name.as_str() == name);
    found.ok_or_else(|| unknown(setting.to_owned(), text, name, agents))
}

/// It has no interfaces to say it.
fn not_at() -> Unplanned {
    Unplanned::Together { setting: ".at", why: "say at which agent the job begins, whose captures name none" }
}

fn of_clone(job: &Cloning, agents: &[Reach], at: Option<&str>) -> Result<Option<Chain>, Unplanned> {
    let together = |setting, why| Err(Unplanned::Together { setting, why });
    let source = job.on.as_deref().and_then(|on| place(on, agents));
    if job.on.is_some() && source.is_none() {
        return Ok(None);
    }
    let (to, target) = match job.to.rsplit_once('@') {
        Some((to, name)) => (to, Some((named("to", name, &job.to, agents)?, name))),
        None => (&*job.to, None),
    };
    let (address, engine) = match at {
        Some(at) => {
            if at.parse::<IpAddr>().is_ok() || at.parse::<SocketAddr>().is_ok() {
                return together(".at", "name the agent behind the address: 10.0.0.3@AGENT");
            }
            let (address, name) = at.rsplit_once('@').unwrap_or(("", at));
            (address, Some(named("at", name, at, agents)?))
        }
        None => ("", source.map(|(_, agent)| agent)),
    };
    let Some(engine) = engine else {
        return if target.is_some() { Err(not_at()) } else { Ok(None) };
    };
    let apart = source.filter(|(_, agent)| *agent != engine);
    if apart.is_none() && target.is_none() {
        return Ok(None);
    }
    if target.is_some() && !job.client_addresses {
        return together(
            ".to",
            "an agent at the target sends answers to copies back, which only those with `.client_addresses` need: leave out @AGENT, or give that",
        );
    }
    if apart.is_some() && job.capture == CloneCapture::RingBuffer {
        return together(".capture", "who only captures does so by a packet socket: leave it out");
    }
    let target_at: Option<SocketAddr> = to.parse().ok();
    if target.is_some() && target_at.is_none() {
        return together(".to", "write the target's address and port, such as 10.0.0.2:80@AGENT");
    }
    let mut main = Job::Cloning(job.clone().into()).to_value().unwrap_or_default();
    main["to"] = json!(to);
    if let Some((interface, _)) = source {
        main["on"] = json!(interface);
    }
    let mut links = Vec::new();
    if let (Some((agent, _)), Some(target)) = (target, target_at) {
        let mut back = json!({ "kind": "clone-return", "server": target.to_string() });
        for name in ["vni", "tunnel_port"] {
            if let Some(value) = main.get(name) {
                back[name] = value.clone();
            }
        }
        links.push(Link { what: What::Return, agent, job: back, on: Vec::new() });
    }
    let number = links.len();
    let on = source.filter(|_| apart.is_none()).map(|(interface, _)| interface.to_owned());
    links.push(Link { what: What::Main, agent: engine, job: Value::Null, on: on.into_iter().collect() });
    let mut meets = Meets { at: None, port: CLONE_PORT, server: None, target: None };
    meets.target = target_at.map(|to| to.ip()).filter(|_| target.is_some());
    if let Some((interface, agent)) = apart {
        let capture = captured(&mut main, interface);
        links.push(Link { what: What::Capture, agent, job: capture, on: vec![interface.to_owned()] });
        let server = job.server().and_then(|(address, _)| address);
        waits(&mut meets, server, (address, agents.get(engine)))?;
    } else if !address.is_empty() {
        return together(".at", "nothing connects to it: name the agent alone");
    }
    if let Some(link) = links.get_mut(number) {
        link.job = main;
    }
    Ok(Some(Chain { links, main: number, meets: Some(meets) }))
}

/// Where the clone waits for its capture: as it is said, as the inventory says, or where the way to the server leads.
fn waits(
    meets: &mut Meets,
    server: Option<IpAddr>,
    (said, engine): (&str, Option<&Reach>),
) -> Result<(), Unplanned> {
    // A port in the inventory is that of endpoint tests, and not of clones.
    let listed = || {
        let address = engine.and_then(|engine| engine.address.as_deref()).unwrap_or_default();
        address.parse::<SocketAddr>().map_or_else(|_| address.to_owned(), |at| at.ip().to_string())
    };
    let said = &*if said.is_empty() { listed() } else { said.to_owned() };
    meets.server = server;
    if said.is_empty() {
        if server.is_none() {
            let why = "the capture has to know where to connect to: write ADDRESS@AGENT (or the agent's `address` in an inventory), or the server's \
                       address as well (IFACE@AGENT:ADDR:PORT), to which the way is looked up";
            return Err(Unplanned::Together { setting: ".at", why });
        }
        return Ok(());
    }
    let at = match said.parse::<IpAddr>() {
        Ok(address) => Some(SocketAddr::new(address, CLONE_PORT)),
        Err(_) => said.parse::<SocketAddr>().ok(),
    };
    let one = |at: &SocketAddr| at.port() > 0 && !at.ip().is_unspecified() && !at.ip().is_multicast();
    let Some(at) = at.filter(one) else {
        let why = "write an address where the capture reaches the clone, such as 10.0.0.3@AGENT or 10.0.0.3:7117@AGENT";
        return Err(Unplanned::Together { setting: ".at", why });
    };
    meets.at = Some(at.to_string());
    Ok(())
}

/// The job of the capture, out of the clone's, which is left with what is its own.
fn captured(clone: &mut Value, interface: &str) -> Value {
    let mut capture = json!({ "kind": "clone-capture", "on": interface, "key": KEY });
    let sampled = clone.get("sample").is_some_and(|sample| !sample.is_null());
    let seed = clone.get("seed").cloned().filter(|seed| !seed.is_null());
    if sampled {
        capture["seed"] = seed.unwrap_or_else(|| json!(job::draw_seed()));
    }
    // Each end has its limits; what is not chosen is not forwarded, and whoever captures knows when it is over.
    for (name, of_both) in [
        ("server", true),
        ("max_sessions", true),
        ("max_cpu", true),
        ("max_memory", true),
        ("sample", false),
        ("duration", false),
    ] {
        let Some(members) = clone.as_object_mut() else { break };
        let value = if of_both { members.get(name).cloned() } else { members.remove(name) };
        if let Some(value) = value.filter(|value| !value.is_null()) {
            capture[name] = value;
        }
    }
    if let Some(members) = clone.as_object_mut() {
        members.remove("on");
        members.remove("capture");
    }
    clone["key"] = json!(KEY);
    capture
}

fn of_probe(job: &Probe, agents: &[Reach], at: Option<&str>) -> Result<Option<Chain>, Unplanned> {
    let mut main = Job::Probe(job.clone().into()).to_value().unwrap_or_default();
    let mut collectors: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for (number, to) in job.export.iter().enumerate() {
        let Some((address, name)) = to.rsplit_once('@') else { continue };
        collectors.entry(named("export", name, to, agents)?).or_default().push(address.to_owned());
        main["export"][number] = json!(address);
    }
    if collectors.is_empty() {
        return Ok(None);
    }
    let source = job.on.as_deref().and_then(|on| place(on, agents));
    let agent = match (source, at) {
        (Some(_), Some(_)) => {
            let why = "the job's interfaces say where it is: leave it out";
            return Err(Unplanned::Together { setting: ".at", why });
        }
        (Some((interface, agent)), None) => {
            main["on"] = json!(interface);
            agent
        }
        (None, Some(at)) if job.on.is_none() => named("at", at, at, agents)?,
        (None, None) if job.on.is_none() => return Err(not_at()),
        // What says how interfaces are written says it of this one.
        (None, _) => return Ok(None),
    };
    for disrupted in main.get_mut("yes_disrupt").and_then(Value::as_array_mut).into_iter().flatten() {
        let own = disrupted.as_str().and_then(|text| place(text, agents)).filter(|(_, of)| *of == agent);
        if let Some((interface, _)) = own {
            *disrupted = json!(interface);
        }
    }
    let collects = |(agent, listen): (usize, Vec<String>)| Link {
        what: What::Collector,
        agent,
        job: json!({ "kind": "collect", "listen": listen }),
        on: Vec::new(),
    };
    let mut links: Vec<Link> = collectors.into_iter().map(collects).collect();
    let on = source.map(|(interface, _)| interface.to_owned()).into_iter().collect();
    let number = links.len();
    links.push(Link { what: What::Main, agent, job: main, on });
    Ok(Some(Chain { links, main: number, meets: None }))
}

impl Chain {
    /// Has a part the key that is drawn for the run? A clone without a capture of the same job has its own.
    fn draws_key(&self, what: What) -> bool {
        let captures = self.links.iter().any(|link| link.what == What::Capture);
        captures && matches!(what, What::Main | What::Capture)
    }

    /// The parts, as those are that any job has.
    fn plan(&self) -> Plan {
        let part = |link: &Link| Part {
            agent: link.agent,
            role: if link.what == What::Main { Role::Whole } else { Role::Serves },
            job: link.job.as_object().cloned().unwrap_or_default(),
            sends_on: Vec::new(),
            measures_on: link.on.clone(),
            arrives_at: Vec::new(),
        };
        Plan { parts: self.links.iter().map(part).collect(), shared: false }
    }
}

#[derive(Debug, Default)]
struct State {
    /// Agents that were reached.
    reached: usize,
    found: Option<Found>,
    /// Parts that stand, from the first on.
    begun: usize,
    /// Parts that their agents grant, as far as these have said.
    granted: usize,
    /// Before all stood one of them could not be begun.
    failed: bool,
    /// Records that the probe sent, when it is over.
    sent: Option<u64>,
    /// Records that each collector has, and since when it is so many.
    collected: BTreeMap<usize, (u64, Instant)>,
}

struct Run<'a> {
    chain: &'a Chain,
    plan: Plan,
    agents: &'a [Reach],
    session: &'a job::Session,
    answer: Duration,
    boot_id: String,
    state: Mutex<State>,
    changed: Condvar,
    /// For each part: it is to end.
    ends: Vec<AtomicBool>,
    seen: Mutex<BTreeMap<usize, Seen>>,
}

/// Carries out a job in such parts.
///
/// # Errors
/// A part could not be begun; then all that stood have ended.
pub(crate) fn carry_out(
    job: &Job,
    chain: &Chain,
    agents: &[Reach],
    session: &job::Session,
    asked: &Asked,
) -> Result<Report, NotDone> {
    session.stop_in_order();
    let run = Run {
        chain,
        plan: chain.plan(),
        agents,
        session,
        answer: asked.answer,
        boot_id: agent::boot_id(),
        state: Mutex::default(),
        changed: Condvar::new(),
        ends: chain.links.iter().map(|_| AtomicBool::new(false)).collect(),
        seen: Mutex::default(),
    };
    let outcomes = run.all(job.kind())?;
    let named = (0..).map(|number| run.name(number)).zip(outcomes);
    if run.lock().begun < chain.links.len() {
        return Err(first_error(named, false));
    }
    let came: Vec<Came> = named.map(|(name, outcome)| outcome.came(name)).collect();
    let is_known = came.get(chain.main).is_some_and(|main| main.report.is_ok());
    let mut report = match is_known {
        true => merge::merge(job, &run.plan, &came)?,
        false => merge::remains(job, &run.plan, &came),
    };
    let exports = run.lock().found.as_ref().and_then(|found| found.exports.clone());
    put_together(&mut report, job, (chain, exports.as_ref()), &came);
    Ok(report)
}

impl Run<'_> {
    /// Nothing that panics happens under this lock.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn seen(&self) -> MutexGuard<'_, BTreeMap<usize, Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    fn name(&self, number: usize) -> String {
        let reach = self.chain.links.get(number).and_then(|link| self.agents.get(link.agent));
        reach.map(|reach| reach.name.to_string()).unwrap_or_default()
    }

    fn end(&self, number: usize) {
        if let Some(end) = self.ends.get(number) {
            end.store(true, Relaxed);
        }
    }

    /// Waits until `enough` is so.
    fn await_others(&self, enough: impl Fn(&State) -> bool) -> Result<MutexGuard<'_, State>, Lost> {
        let mut state = self.lock();
        loop {
            if state.failed || self.session.stop.load(Relaxed) {
                return Err(Lost::Stopped);
            }
            if enough(&state) {
                return Ok(state);
            }
            state = self.changed.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// What came of all parts, in their order.
    fn all(&self, kind: &'static str) -> Result<Vec<Outcome>, NotDone> {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let begin = |number: usize| {
                let thread = std::thread::Builder::new()
                    .name("agent".to_owned())
                    .stack_size(crate::check::STACK_BYTES);
                thread.spawn_scoped(scope, move || self.part(number))
            };
            let spawned: Vec<_> = (0..self.chain.links.len()).map(begin).collect();
            if spawned.iter().any(Result::is_err) {
                self.change(|state| state.failed = true);
            }
            let shown = std::thread::Builder::new()
                .name("agents".to_owned())
                .spawn_scoped(scope, || self.show(kind, &over));
            if shown.is_err() {
                // Nobody would hear of a signal.
                self.change(|state| state.failed = true);
                self.ends.iter().for_each(|end| end.store(true, Relaxed));
            }
            let outcomes = spawned.into_iter().map(|thread| match thread {
                Ok(thread) => Ok(thread.join().unwrap_or_else(|_| Outcome::lost(defect()))),
                Err(error) => Err(NotDone::Thread(error)),
            });
            let outcomes: Vec<_> = outcomes.collect();
            over.store(true, Relaxed);
            outcomes.into_iter().collect()
        })
    }

    /// Shows how the job itself stands, and hears who ends it.
    fn show(&self, kind: &str, over: &AtomicBool) {
        let mut shown = Shown::of(title(kind));
        while !over.load(Relaxed) {
            std::thread::sleep(LOOK);
            if self.session.stop.load(Relaxed) {
                self.end(self.ends.len().saturating_sub(1));
            }
            shown.show(&self.session.board, summed(&self.seen(), &self.plan.parts));
        }
    }

    fn part(&self, number: usize) -> Outcome {
        let mut outcome = Outcome::lost(Failed::There(Lost::Stopped));
        let done = catch_unwind(AssertUnwindSafe(|| self.part_of(number, &mut outcome)));
        let done = done.unwrap_or_else(|_| Err(defect()));
        let all = self.ends.len();
        let mut failed = false;
        self.change(|state| {
            state.failed |= state.begun < all;
            failed = state.failed;
        });
        if failed {
            self.ends.iter().for_each(|end| end.store(true, Relaxed));
        } else if number + 1 < all {
            // What stands on this one has nowhere to go: the last one ends, and from there all others.
            self.end(all - 1);
        }
        if number == self.chain.main {
            let metered = done.as_ref().ok().and_then(|report| report.result.metering.as_ref());
            let sent = metered.map(|metering| metering.sent_records);
            self.change(|state| state.sent = sent);
        }
        if number > 0 && outcome.began && done.is_ok() {
            self.settle(number - 1);
        }
        self.end(number.wrapping_sub(1));
        outcome.result = done;
        outcome
    }

    /// Waits for what is still on its way to a part whose sender is over.
    fn settle(&self, number: usize) {
        std::thread::sleep(SETTLES);
        let collects = self.chain.links.get(number).is_some_and(|link| link.what == What::Collector);
        let until = Instant::now() + SETTLES_MOST;
        let only = self.chain.links.len() == 2;
        while collects && Instant::now() < until {
            let state = self.lock();
            let Some((records, since)) = state.collected.get(&number).copied() else { return };
            // What several collectors have of a probe is no number that is known beforehand.
            if only && state.sent.is_some_and(|sent| records >= sent) || since.elapsed() >= SILENT {
                return;
            }
            drop(state);
            std::thread::sleep(LOOK);
        }
    }

    /// Looks whether the agent grants its part, before the first one is begun.
    fn foresee(&self, job: &Value, may: &May) -> Result<(), Failed> {
        let mut whole = job.clone();
        whole["schema"] = json!(spec::SCHEMA);
        // What is wrong with the job itself its agent says.
        let read = spec::File::of(whole).ok().and_then(|mut file| file.jobs.pop());
        if let Some(fault) = read.and_then(|job| may.foresees(&job).err()) {
            return Err(Lost::Refused(Box::new(fault)).into());
        }
        self.change(|state| state.granted += 1);
        Ok(())
    }

    fn part_of(&self, number: usize, outcome: &mut Outcome) -> Result<Report, Failed> {
        let Some(link) = self.chain.links.get(number) else { return Err(defect()) };
        let Some(reach) = self.agents.get(link.agent) else { return Err(defect()) };
        let Some(ends) = self.ends.get(number) else { return Err(defect()) };
        let stop = &self.session.stop;
        let patience = Patience { answer: self.answer, stop: Arc::clone(stop) };
        let (mut client, welcome) = Client::reach(reach, patience)?;
        let offset = client.compared()?;
        let (host, may) = (welcome.host, welcome.may);
        outcome.host = Some(units::printable(&host.name));
        outcome.is_here = !self.boot_id.is_empty() && self.boot_id == host.boot_id && offset.may_be(0);
        outcome.offsets.push(offset);
        let mut part = self.plan.parts.get(number).map(|part| part.job.clone()).unwrap_or_default();
        let draws = self.chain.draws_key(link.what);
        if draws {
            // A file of this name here is another one.
            part.remove("key");
        }
        let mut contents = client.put_all(&part)?;
        if number == self.chain.main {
            let found = self.find_out(&mut client)?;
            self.change(|state| state.found = Some(found));
        }
        self.change(|state| state.reached += 1);
        let all = self.ends.len();
        let found = self.await_others(|state| state.reached == all && state.found.is_some())?.found.clone();
        let found = found.unwrap_or_default();
        let mut job = Value::Object(part);
        self.fill(&mut job, link, (&found, reach), &mut client)?;
        if draws {
            job["key"] = json!(KEY);
            let content = client.put_as(Path::new(KEY), Cursor::new(&found.key))?;
            contents.insert(KEY.to_owned(), content);
        }
        self.foresee(&job, &may)?;
        drop(self.await_others(|state| state.granted == all && state.begun == number)?);
        let started = client.start(&JobStart {
            job: job.as_object().cloned().unwrap_or_default(),
            contents,
            start_at: None,
            snapshots_every_ns: EVERY.as_nanos() as u64,
            agree: None,
            among: None,
            closely: false,
        });
        let started = started.map_err(of_another)?;
        let name = self.name(number);
        let mut tell = |told: Told| self.tell(number, &name, told);
        client.await_begun(&started.run, stop, &mut tell)?;
        client.is_stopped_in_order();
        outcome.began = true;
        self.change(|state| state.begun = number + 1);
        let report = client.wait(&started.run, ends, &mut tell)?;
        outcome.offsets.extend(client.compared().ok());
        read_report(report)
    }

    /// Where the parts meet, as the agent of the job itself knows it.
    fn find_out(&self, client: &mut Client) -> Result<Found, Failed> {
        let Some(meets) = &self.chain.meets else {
            return Ok(Found { exports: self.exports(client)?, ..Found::default() });
        };
        let mut found = Found { at: meets.at.clone(), key: key()?, ..Found::default() };
        let captures = self.chain.links.iter().any(|link| link.what == What::Capture);
        if let (None, true, Some(server)) = (&found.at, captures, meets.server) {
            let own = client.address_towards(server).map_err(of_another)?;
            found.at = Some(SocketAddr::new(own, meets.port).to_string());
        }
        if let Some(target) = meets.target {
            found.from = Some(client.address_towards(target).map_err(of_another)?);
        }
        Ok(found)
    }

    /// Where a probe's messages come from. Of names, and where no way is known, nothing is.
    fn exports(&self, client: &mut Client) -> Result<Option<BTreeSet<IpAddr>>, Failed> {
        let main = self.chain.links.get(self.chain.main);
        let list = main.and_then(|link| link.job.get("export")?.as_array()).into_iter().flatten();
        let mut found = BTreeSet::new();
        for text in list.filter_map(Value::as_str) {
            let address = text.rsplit_once("://").map_or(text, |(_, address)| address);
            let Ok(to) = address.parse::<SocketAddr>() else { return Ok(None) };
            match client.address_towards(to.ip()) {
                Ok(own) => found.insert(own),
                Err(Lost::Refused(_)) => return Ok(None),
                Err(lost) => return Err(lost.into()),
            };
        }
        Ok(Some(found))
    }

    /// Puts what was found out into a part's job.
    fn fill(
        &self,
        job: &mut Value,
        link: &Link,
        (found, reach): (&Found, &Reach),
        client: &mut Client,
    ) -> Result<(), Failed> {
        match link.what {
            What::Main => {
                if let Some(at) = found.at.as_ref().filter(|_| self.chain.draws_key(link.what)) {
                    job["listen"] = json!(at);
                }
            }
            What::Capture => job["send_to"] = json!(found.at),
            What::Return => {
                let on = client.only_interface(reach, "its return agent").map_err(|no| match no {
                    NoInterface::Not(why) => Failed::Here(format!("{}: {why}", reach.name)),
                    NoInterface::Lost(lost) => lost.into(),
                })?;
                job["on"] = json!(on);
                job["engine"] = json!(found.from);
            }
            What::Collector => {}
        }
        Ok(())
    }

    fn tell(&self, number: usize, name: &str, told: Told) {
        match told {
            Told::Note(note) => {
                let text = format!("{name}: {}", crate::lost::shown(&note.text));
                let remedy = note.remedy.map(|remedy| crate::lost::shown(&remedy));
                self.session.board.say(Note { text, remedy, ..note });
            }
            Told::Snapshot(snapshot) if number == self.chain.main => {
                self.seen().entry(number).or_default().tell(&snapshot);
            }
            Told::Snapshot(snapshot) => {
                let Some(records) = snapshot.pointer("/collected/records").and_then(Value::as_u64) else {
                    return;
                };
                self.change(|state| {
                    let now = (records, Instant::now());
                    let known = state.collected.entry(number).or_insert(now);
                    if known.0 != records {
                        *known = now;
                    }
                });
            }
            Told::Ended(_) => {}
        }
    }
}

/// An agent that does not know a part's kind or a setting of it is of an older build, although it calls itself by the same version.
fn of_another(lost: Lost) -> Lost {
    match lost {
        Lost::Refused(mut fault)
            if fault.data.kind == FaultKind::Usage
                && ["unknown field", "there is no member", "is no kind of job"]
                    .iter()
                    .any(|said| fault.message.contains(said)) =>
        {
            fault.message = format!("its netdyno is older than this one: {}", fault.message);
            let remedy = "install this netdyno there, or have it copied there (`.agents_copy`)";
            fault.data.remedy = Some(remedy.to_owned());
            Lost::Refused(fault)
        }
        other => other,
    }
}

/// A key for one run.
fn key() -> Result<String, Failed> {
    let mut bytes = [0u8; 32];
    match getrandom(&mut bytes, GetRandomFlags::empty()) {
        Ok(count) if count == bytes.len() => Ok(wire::hex::encode(&bytes) + "\n"),
        _ => Err(Failed::Here("the system gives no random numbers: no key was made".to_owned())),
    }
}

/// What came of a part, if it has told.
fn told<'a>(chain: &Chain, came: &'a [Came], what: What) -> Vec<(&'a str, &'a Report)> {
    let all = chain.links.iter().zip(came).filter(|(link, _)| link.what == what);
    all.filter_map(|(_, came)| Some((&*came.name, came.report.as_ref().ok()?))).collect()
}

/// What the parts counted beside each other, and whether it adds up.
fn put_together(
    report: &mut Report,
    job: &Job,
    (chain, exports): (&Chain, Option<&BTreeSet<IpAddr>>),
    came: &[Came],
) {
    let name = came.get(chain.main).map(|came| &*came.name).unwrap_or_default();
    match job {
        Job::Cloning(clone) => {
            let capture = told(chain, came, What::Capture).first().copied();
            let back = told(chain, came, What::Return).first().copied();
            if let Some((_, capture)) = capture {
                report.result.forwarded = capture.result.forwarded.clone();
                report.resolved.duration_ns = capture.resolved.duration_ns;
            }
            report.result.returned = back.and_then(|(_, back)| back.result.returned);
            forwarded(report, clone, (capture.map_or("", |(of, _)| of), name));
            returned(report, (back.map_or("", |(of, _)| of), name));
        }
        Job::Probe(probe) => {
            exported(report, (probe, exports), (name, &told(chain, came, What::Collector)));
        }
        _ => {}
    }
}

/// What a capture forwarded, and what the clone had of it.
fn forwarded(report: &mut Report, clone: &Cloning, (there, here): (&str, &str)) {
    let Some((of, cloned)) = report.result.forwarded.as_mut().zip(report.result.cloned.as_ref()) else {
        return;
    };
    // What was not forwarded the clone knows by what it was told: of a connection that broke, less than the capture knows.
    let Some(left) = cloned.not_forwarded_sessions else { return };
    let verdict = &mut report.result.verdict;
    let s = &of.sessions;
    let arrived = cloned.sessions.seen.saturating_sub(left);
    of.arrived_sessions = Some(arrived);
    // Adopted sessions are none that began.
    if clone.adopt != Adopt::SynOnly {
        return;
    }
    let [sent, lost, came] = [s.forwarded, s.lost, arrived].map(units::count);
    let broke = of.connections != 1 || of.lost_bytes > 0 || s.lost > 0 || left != s.not_forwarded();
    if arrived < s.forwarded && broke {
        let made = units::counted(of.connections, "connection");
        let said = format!(
            "the connection from {there} to {here} broke ({made} came about): of {sent} sessions that were forwarded {came} arrived; \
             {lost} were given up with it"
        );
        verdict.fall_short(Code::SessionsNotCopied, said);
    } else if arrived != s.forwarded {
        let said = format!("{there} forwarded {sent} sessions, and {here} had {came} of them");
        verdict.fall_short(Code::CountersDisagree, said);
    }
}

/// Copies that connected, and those that the return agent let in.
fn returned(report: &mut Report, (there, here): (&str, &str)) {
    let Some((back, cloned)) = report.result.returned.as_ref().zip(report.result.cloned.as_ref()) else {
        return;
    };
    let connected = cloned.connections.connected;
    if back.connections < connected {
        let [let_in, connected] = [back.connections, connected].map(units::count);
        let said = format!("{here} made {connected} connections to the target, and {there} let in {let_in}");
        report.result.verdict.fall_short(Code::CountersDisagree, said);
    }
}

/// Records that a collector received of a probe whose messages come from these addresses, to so many places; `None`: it cannot tell them from
/// those of others.
fn received(of: &Collection, own: Option<&BTreeSet<IpAddr>>, places: usize) -> Option<u64> {
    let address = |from: &str| {
        let from = from.strip_prefix("tcp://").unwrap_or(from);
        let address = from.parse::<SocketAddr>().map(|at| at.ip()).or_else(|_| from.parse());
        let bare = |text: &str| text.trim_matches(['[', ']']).parse::<IpAddr>().ok();
        address.ok().or_else(|| bare(from)).or_else(|| bare(from.strip_suffix(":*")?))
    };
    let is_own = |from: &str| {
        own.is_none_or(|own| address(from).is_some_and(|from| own.contains(&from.to_canonical())))
    };
    let listed = of.by_exporter.iter().filter(|one| one.from != "(others)");
    let (ours, others): (Vec<_>, Vec<_>) = listed.partition(|one| is_own(&one.from));
    // Whoever lost its place among those listed may have been any of them. By the way through an address that is translated, none is ours.
    let hidden = of.exporters != (ours.len() + others.len()) as u64;
    if ours.len() > places || hidden || ours.is_empty() && !others.is_empty() {
        return None;
    }
    let new = |one: &report::Exported| one.records.saturating_sub(one.duplicate_records);
    Some(ours.iter().map(|one| new(&one.exported)).fold(0, u64::saturating_add))
}

/// Records that a probe sent, and those that collectors received.
fn exported(
    report: &mut Report,
    (probe, own): (&Probe, Option<&BTreeSet<IpAddr>>),
    (here, collectors): (&str, &[(&str, &Report)]),
) {
    if let [(_, only)] = collectors {
        report.result.collection = only.result.collection.clone();
    }
    let Some(metering) = &mut report.result.metering else { return };
    let verdict = &mut report.result.verdict;
    let agents = probe.export.iter().filter_map(|to| Some(to.rsplit_once('@')?.1));
    let agents: BTreeSet<&str> = agents.collect();
    // Of a collector that was lost, or that is none of these, nothing is known.
    if collectors.len() != agents.len() || !probe.export.iter().all(|to| to.contains('@')) {
        return;
    }
    // In turn, or all to each, by as many places as that one has.
    let places = |name: &str| {
        let of = probe.export.iter().filter(|to| to.rsplit_once('@').is_some_and(|(_, at)| at == name));
        of.count()
    };
    let mut counts: Vec<(&str, u64)> = Vec::new();
    for (name, of) in collectors {
        let Some(collection) = &of.result.collection else { return };
        let Some(count) = received(collection, own, places(name)) else {
            let exporters = units::counted(collection.exporters, "exporter");
            report.warnings.add(
                Code::CountersDisagree,
                format!(
                    "{name} heard {exporters}, and which of them is {here} it cannot tell: how many records of {here} arrived and \
                     how many are missing is not known"
                ),
            );
            return;
        };
        counts.push((name, count));
    }
    let sent = metering.sent_records;
    let due: Vec<(String, u64, u64)> = match probe.balance {
        true => {
            let names = counts.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" and ");
            vec![(names, sent, counts.iter().map(|(_, count)| *count).fold(0, u64::saturating_add))]
        }
        false => counts
            .iter()
            .map(|(name, count)| ((*name).to_owned(), sent.saturating_mul(places(name) as u64), *count))
            .collect(),
    };
    // Of several copies of each record the sum would be of no record: what lacks at which collector is said below.
    if probe.balance || probe.export.len() == 1 {
        metering.arrived_records = due.first().map(|(_, _, came)| *came);
        metering.missing_records = due.first().map(|(_, sent, came)| sent.saturating_sub(*came));
    }
    for (name, sent, came) in due {
        let [sent_said, came_said, missing] = [sent, came, sent.saturating_sub(came)].map(units::count);
        match came.cmp(&sent) {
            std::cmp::Ordering::Equal => {}
            std::cmp::Ordering::Less => {
                let said = format!(
                    "{here} sent {sent_said} records to {name}, which received {came_said}: {missing} are missing"
                );
                verdict.fall_short(Code::RecordsMissing, said);
            }
            std::cmp::Ordering::Greater => {
                let said = format!(
                    "{here} sent {sent_said} records to {name}, which received {came_said}: others export to it, too, or it is another count"
                );
                verdict.fall_short(Code::CountersDisagree, said);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agents() -> Vec<Reach> {
        let inventory = "schema: netdyno.inventory/1\nagents:\n  prod: {command: x}\n  copy: {command: x}\n  dut: {command: x}\n  \
                         far: {command: x, address: 10.0.3.1}\n";
        crate::reach::inventory(inventory, "lab.yaml").expect("an inventory")
    }

    fn planned(job: &str, at: Option<&str>) -> Result<Option<Chain>, String> {
        let job = spec::File::read(&format!("{{schema: netdyno.job/1, {job}}}"), "job")
            .expect("a job")
            .jobs
            .remove(0);
        of(&job, &agents(), at).map_err(|why| why.to_string())
    }

    /// Who does what, in the order in which it is begun; each part is a job, once it is known where the parts meet.
    fn told(job: &str, at: Option<&str>) -> Vec<String> {
        let chain = planned(job, at).expect("it can be planned").expect("parts");
        let names: Vec<String> = agents().iter().map(|agent| agent.name.to_string()).collect();
        let line = |link: &Link| {
            let mut job = link.job.clone();
            job["schema"] = json!(spec::SCHEMA);
            for (name, filled) in
                [("send_to", "h:1"), ("on", "eth0"), ("engine", "10.0.0.9"), ("listen", "10.0.0.9:1")]
            {
                let needed = match link.what {
                    What::Capture => name == "send_to",
                    What::Return => matches!(name, "on" | "engine"),
                    What::Main => name == "listen" && chain.draws_key(link.what),
                    What::Collector => false,
                };
                if needed {
                    job[name] = json!(filled);
                }
            }
            let job = spec::File::of(job).unwrap_or_else(|bad| panic!("{bad}")).jobs.remove(0);
            job.check().unwrap_or_else(|bad| panic!("{bad:?}"));
            format!("{} {} {}", names[link.agent], job.kind(), link.on.join(","))
        };
        chain.links.iter().map(line).collect()
    }

    const CLONE: &str = "kind: clone, on: s0@prod, server: '10.0.1.1:80'";

    #[test]
    fn what_others_stand_on_is_begun_first() {
        let copies = format!(
            "{CLONE}, to: '10.0.2.1:80@dut', client_addresses: true, sample: 10%, duration: 5s, max_sessions: 9"
        );
        assert_eq!(
            told(&copies, Some("copy")),
            ["dut clone-return ", "copy clone ", "prod clone-capture s0"]
        );
        let chain = planned(&copies, Some("copy")).expect("planned").expect("parts");
        let [back, main, capture] = &chain.links[..] else { panic!("three") };
        assert_eq!((&back.job["server"], &main.job["to"]), (&json!("10.0.2.1:80"), &json!("10.0.2.1:80")));
        assert!(
            main.job.get("sample").is_none()
                && main.job.get("duration").is_none()
                && main.job.get("on").is_none()
        );
        assert_eq!((&capture.job["sample"], &capture.job["duration"]), (&json!("10%"), &json!("5s")));
        assert_eq!((&capture.job["max_sessions"], &main.job["max_sessions"]), (&json!(9), &json!(9)));
        // The host of the server copies, too; or there is nobody at the target.
        assert_eq!(told(&copies, None), ["dut clone-return ", "prod clone s0"]);
        let plain = format!("{CLONE}, to: '10.0.2.1:80'");
        assert_eq!(told(&plain, Some("copy")), ["copy clone ", "prod clone-capture s0"]);
        assert_eq!(planned(&plain, None), Ok(None));
        let probe = "kind: probe, on: eth1@prod, export: ['10.0.2.1:2055@dut', '10.0.2.2:2055', 'tcp://10.0.3.1:4739@far']";
        assert_eq!(told(probe, None), ["dut collect ", "far collect ", "prod probe eth1"]);
        let of_file = "kind: probe, captures: [a.pcap], export: ['10.0.2.1:2055@dut']";
        assert_eq!(told(of_file, Some("prod")), ["dut collect ", "prod probe "]);
        assert_eq!(planned("kind: probe, on: eth1@prod, export: ['10.0.2.1:2055']", None), Ok(None));
    }

    #[test]
    fn where_a_clone_waits_is_said_or_in_the_inventory_or_looked_up() {
        let at = |job: &str, at: &str| {
            planned(job, Some(at)).map(|chain| chain.expect("parts").meets.expect("met").at)
        };
        let plain = format!("{CLONE}, to: '10.0.2.1:80'");
        assert_eq!(at(&plain, "copy"), Ok(None));
        assert_eq!(at(&plain, "far"), Ok(Some("10.0.3.1:7117".to_owned())));
        assert_eq!(at(&plain, "10.0.4.1@copy"), Ok(Some("10.0.4.1:7117".to_owned())));
        assert_eq!(at(&plain, "[2001:db8::1]:9@far"), Ok(Some("[2001:db8::1]:9".to_owned())));
        let no_server = "kind: clone, on: s0@prod, server: '80', to: '10.0.2.1:80'";
        assert!(at(no_server, "copy").is_err_and(|said| said.contains("ADDRESS@AGENT")));
        assert_eq!(at(no_server, "far"), Ok(Some("10.0.3.1:7117".to_owned())));
    }

    #[test]
    fn what_makes_no_parts_says_why() {
        for (job, at, says) in [
            (format!("{CLONE}, to: '10.0.2.1:80@dut'"), Some("copy"), "`.client_addresses`"),
            (
                format!("{CLONE}, to: '10.0.2.1:80@nobody', client_addresses: true"),
                Some("copy"),
                "no agent `nobody`",
            ),
            (format!("{CLONE}, to: '10.0.2.1:80'"), Some("nobody"), "no agent `nobody`"),
            (
                format!("{CLONE}, to: 'target:80@dut', client_addresses: true"),
                Some("copy"),
                "write the target's address",
            ),
            (format!("{CLONE}, to: '10.0.2.1:80', capture: ring-buffer"), Some("copy"), "`.capture`"),
            (format!("{CLONE}, to: '10.0.2.1:80'"), Some("10.0.0.3"), "name the agent behind the address"),
            (
                format!("{CLONE}, to: '10.0.2.1:80'"),
                Some("0.0.0.0@copy"),
                "write an address where the capture reaches",
            ),
            (
                format!("{CLONE}, to: '10.0.2.1:80'"),
                Some("host:1@copy"),
                "write an address where the capture reaches",
            ),
            (
                "kind: clone, captures: [a], server: '80', to: '10.0.2.1:80@dut', client_addresses: true"
                    .to_owned(),
                None,
                "`.at`",
            ),
            ("kind: probe, on: a@prod, export: ['10.0.2.1:1@dut']".to_owned(), Some("prod"), "leave it out"),
            ("kind: probe, on: a@prod, export: ['10.0.2.1:1@nobody']".to_owned(), None, "no agent `nobody`"),
            ("kind: probe, captures: [a], export: ['10.0.2.1:1@dut']".to_owned(), None, "`.at`"),
        ] {
            let said = planned(&job, at).expect_err(&job);
            assert!(said.contains(says), "{job}: {said}");
        }
    }

    #[test]
    fn records_of_both_ends_are_compared() {
        let told = |sent: u64, received: &[u64], balance: bool| {
            let probe = Probe {
                export: vec!["10.0.2.1:1@dut".to_owned(), "10.0.3.1:1@far".to_owned()][..received.len()]
                    .to_vec(),
                balance,
                ..Probe::default()
            };
            let mut report = Report::new("probe");
            report.result.metering = Some(report::Metering { sent_records: sent, ..Default::default() });
            let of = |records: &u64| {
                let mut of = Report::new("collect");
                let all = report::Exported { records: *records, ..Default::default() };
                let by_exporter = vec![report::Exporter { from: "10.0.9.1:5".to_owned(), exported: all }];
                of.result.collection =
                    Some(report::Collection { all, exporters: 1, by_exporter, ..Default::default() });
                of
            };
            let all: Vec<Report> = received.iter().map(of).collect();
            let named: Vec<(&str, &Report)> = ["dut", "far"].into_iter().zip(&all).collect();
            exported(&mut report, (&probe, None), ("prod", &named));
            let m = report.result.metering.as_ref().expect("it");
            let codes: Vec<Code> = report.result.verdict.reasons().iter().map(|said| said.code).collect();
            (m.arrived_records, m.missing_records, codes)
        };
        assert_eq!(told(9, &[9], false), (Some(9), Some(0), vec![]));
        assert_eq!(told(9, &[7], false), (Some(7), Some(2), vec![Code::RecordsMissing]));
        assert_eq!(told(9, &[10], false), (Some(10), Some(0), vec![Code::CountersDisagree]));
        assert_eq!(told(9, &[9, 8], false), (None, None, vec![Code::RecordsMissing]), "of two copies no sum");
        assert_eq!(told(9, &[5, 4], true), (Some(9), Some(0), vec![]));
    }

    #[test]
    fn records_of_other_exporters_are_none_of_the_probes() {
        let heard = |all: &[(&str, u64)]| report::Collection {
            exporters: all.len() as u64,
            by_exporter: all
                .iter()
                .map(|(from, records)| report::Exporter {
                    from: (*from).to_owned(),
                    exported: report::Exported { records: *records, ..Default::default() },
                })
                .collect(),
            ..Default::default()
        };
        let own = BTreeSet::from(["10.0.9.1".parse().expect("it"), "2001:db8::1".parse().expect("it")]);
        let of = |all: &[(&str, u64)]| received(&heard(all), Some(&own), 1);
        assert_eq!(of(&[("10.0.9.1:5", 7), ("10.0.9.2:5", 1000)]), Some(7));
        assert_eq!(of(&[("tcp://10.0.9.1", 7), ("10.0.9.2:*", 1000)]), Some(7));
        assert_eq!(of(&[("[2001:db8::1]:5", 7)]), Some(7));
        assert_eq!(of(&[]), Some(0));
        assert_eq!(of(&[("10.0.9.1:5", 7), ("10.0.9.1:6", 1000)]), None, "two of one host");
        assert_eq!(of(&[("10.0.9.2:5", 7)]), None, "its address may be translated");
        assert_eq!(received(&heard(&[("10.0.9.1:5", 7), ("10.0.9.2:5", 9)]), None, 1), None);
        assert_eq!(received(&heard(&[("10.0.9.1:5", 7)]), None, 1), Some(7));
    }

    #[test]
    fn sessions_of_both_ends_are_compared() {
        // Sessions that the clone was told of beside those that were forwarded, and all that it saw.
        let told = |(forwarded, lost, half_open): (u64, u64, u64),
                    connections: u64,
                    (left, seen): (u64, u64)| {
            let clone = Cloning::default();
            let mut report = Report::new("clone");
            let sessions = report::ForwardedSessions { forwarded, lost, half_open, ..Default::default() };
            report.result.forwarded = Some(report::Forwarded { sessions, connections, ..Default::default() });
            let mut cloned = report::Cloned { not_forwarded_sessions: Some(left), ..Default::default() };
            cloned.sessions.seen = seen;
            report.result.cloned = Some(cloned);
            super::forwarded(&mut report, &clone, ("prod", "copy"));
            let arrived = report.result.forwarded.as_ref().and_then(|of| of.arrived_sessions);
            (arrived, report.result.verdict.reasons().first().map(|said| said.code))
        };
        let (broke, wrong) = (Some(Code::SessionsNotCopied), Some(Code::CountersDisagree));
        assert_eq!(told((10, 0, 3), 1, (3, 13)), (Some(10), None));
        assert_eq!(told((10, 2, 3), 2, (3, 12)), (Some(9), broke), "one of those lost had begun");
        assert_eq!(
            told((10, 0, 30), 1, (3, 13)),
            (Some(10), None),
            "27 were never told of, and are none that arrived"
        );
        assert_eq!(told((10, 0, 30), 1, (3, 12)), (Some(9), broke), "what was under way when it broke");
        assert_eq!(told((10, 0, 3), 1, (3, 12)), (Some(9), wrong));
        assert_eq!(told((10, 2, 3), 2, (3, 14)), (Some(11), wrong));
    }
}
