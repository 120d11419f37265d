//! One job at several agents: prepared everywhere, begun at one instant, followed to its end, put together into one report.
//!
//! ```text
//!   each part, by a connection and a thread of its own:
//!     reach, compare clocks --> Reached --> start, held --> Ready --> go at an instant --> Armed --> follow --> report
//!                (meters become ready before senders are started)        |
//!                                        whoever fails before that instant ends all: nothing was sent
//! ```
//!
//! What begins, begins by time and not by message: each agent is told the instant in its own clock. Meters are ended when all senders have done.

use crate::client::{Client, Patience};
use crate::files::FileLost;
use crate::lost::Lost;
use crate::merge::{self, Came};
use crate::moment::{Seen, Shown, summed, title};
use crate::offset::Offset;
use crate::plan::{Part, Plan, Role, Unplanned, at_agent, plan};
use crate::reach::Reach;
use crate::run::Told;
use agent::{Among, FaultKind, JobStart};
use report::{Code, Note, Report};
use serde_json::Value;
use snapshot::Title;
use spec::Job;
use spec::reach::{Reach as Reaches, each_text};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// From when all are ready to the start, at least.
const LEAD: Duration = Duration::from_secs(1);
/// And so many of the worst round trips.
const TRIPS: u32 = 20;
/// All must have said so long before the start that they will begin.
const MARGIN: Duration = Duration::from_millis(100);
/// After the last sender has done, meters wait so long for what is still on its way.
const SETTLES: Duration = Duration::from_millis(500);
/// And, while frames are missing, for so long (RFC 2544, 23).
const SETTLES_MOST: Duration = Duration::from_secs(2);
/// From one snapshot of a part to the next.
const EVERY: Duration = Duration::from_millis(200);
const LOOK: Duration = Duration::from_millis(50);

/// Why a job at agents came to no result.
#[derive(Debug, thiserror::Error)]
pub enum NotDone {
    /// Its interfaces are not where agents are.
    #[error(transparent)]
    Unplanned(#[from] Unplanned),
    /// An agent cannot be had, or refuses its part; nothing was sent.
    #[error("{agent}: {why}{}: {}", said(.remedy), if *.told { "all were told to begin, and to end again: who did not hear that has sent" } else { "nothing was sent" })]
    Agent {
        /// Which.
        agent: String,
        /// Why.
        why: String,
        /// What to do about it.
        remedy: Option<String>,
        /// The others had been told when to begin.
        told: bool,
    },
    /// A file of the job cannot be read here.
    #[error("{0}")]
    File(String),
    /// What is shared among agents has to be the same at all.
    #[error("`.share` of a scenario whose random values are drawn anew at each agent: give a `.seed`")]
    Seed,
    /// Ctrl-C, before anything was sent.
    #[error("it was ended before it began: nothing was sent")]
    Stopped,
    /// No agent that sends has told what it did.
    #[error("{agent}: {why}{}: what was sent and what arrived is not known", said(.remedy))]
    Lost {
        /// Which.
        agent: String,
        /// Why.
        why: String,
        /// What to do about it.
        remedy: Option<String>,
    },
    /// Trials whose ports are at several agents cannot be done.
    #[error("{0:#}")]
    Trials(anyhow::Error),
    /// A thread cannot be started.
    #[error("no thread for an agent: {0}")]
    Thread(std::io::Error),
}

fn said(remedy: &Option<String>) -> String {
    remedy.as_ref().map_or_else(String::new, |remedy| format!("; {remedy}"))
}

/// How far all parts have come.
#[derive(Debug, Default)]
struct Course {
    state: Mutex<State>,
    changed: Condvar,
    /// All senders have done: meters end.
    over: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    /// Parts whose clocks were compared, and how these stand.
    reached: BTreeMap<usize, Reached>,
    /// Meters and senders that are ready.
    ready: BTreeMap<usize, Offset>,
    armed: usize,
    /// In nanoseconds of this host's CLOCK_TAI.
    start: Option<u64>,
    /// Senders that are over.
    senders_over: usize,
    /// Before the start somebody failed: nobody begins.
    failed: bool,
}

/// What is known of an agent from its greeting.
#[derive(Debug, Clone)]
struct Reached {
    offset: Offset,
    boot_id: String,
    host: String,
}

impl Course {
    /// Nothing that panics happens under this lock.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// Waits until `enough` is so, somebody has failed, or it is to end; before the start each of these ends all.
    fn await_others(
        &self,
        stop: &AtomicBool,
        enough: impl Fn(&State) -> bool,
    ) -> Result<MutexGuard<'_, State>, Lost> {
        let mut state = self.lock();
        loop {
            if state.failed || stop.load(Relaxed) {
                state.failed = true;
                self.changed.notify_all();
                return Err(Lost::Stopped);
            }
            if enough(&state) {
                return Ok(state);
            }
            state = self.changed.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// All that the threads of parts share.
struct Joint<'a> {
    plan: &'a Plan,
    agents: &'a [Reach],
    session: &'a job::Session,
    answer: Duration,
    turn: Turn,
    kind: &'static str,
    /// Of this host.
    boot_id: String,
    course: Course,
    seen: Mutex<BTreeMap<usize, Seen>>,
}

/// Carries out `job` by these agents. What it writes is allowed by `session.consent`.
///
/// # Errors
/// It cannot be carried out by them, or came to no result.
pub fn carry_out(
    job: &Job,
    agents: &[Reach],
    session: &job::Session,
    asked: &Asked,
) -> Result<Report, NotDone> {
    let mut report = by_agents(job, agents, session, asked)?;
    // Who runs it again begins it at the same place.
    report.requested_at = asked.at.clone();
    Ok(report)
}

fn by_agents(job: &Job, agents: &[Reach], session: &job::Session, asked: &Asked) -> Result<Report, NotDone> {
    if let Some(test) = crate::mesh::of(job) {
        return crate::mesh::carry_out(test, agents, session, asked);
    }
    if let Some(chain) = crate::chain::of(job, agents, asked.at.as_deref())? {
        return crate::chain::carry_out(job, &chain, agents, session, asked);
    }
    if asked.at.is_none() && crate::trials::are_apart(job, agents)? {
        return crate::trials::carry_out(job, agents, session, asked);
    }
    one_run(job, agents, session, (asked, Turn::default()))
}

/// How a job is carried out by agents.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Each answer is waited for so long.
    pub answer: Duration,
    /// At which agent a job begins that has no interfaces to say it.
    pub at: Option<String>,
}

/// Which run it is of several, one after the other, of which each tells its frames from those of the others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn {
    pub number: u32,
    pub of: u32,
    /// They are trials of a device.
    pub trials: bool,
}

impl Default for Turn {
    fn default() -> Turn {
        Turn { number: 0, of: 1, trials: false }
    }
}

/// As [`carry_out`], of a job that is one run.
///
/// # Errors
/// As of [`carry_out`].
pub(crate) fn one_run(
    job: &Job,
    agents: &[Reach],
    session: &job::Session,
    (asked, turn): (&Asked, Turn),
) -> Result<Report, NotDone> {
    let mut job = job.clone();
    if let Job::Send(send) = &mut job
        && send.share
        && send.seed.is_none()
    {
        if send.plugin.is_some() || Path::new(&send.what).is_file() {
            return Err(NotDone::Seed);
        }
        send.seed = Some(job::draw_seed());
    }
    let plan = plan(&job, agents, asked.at.as_deref())?;
    session.stop_in_order();
    let joint = Joint {
        plan: &plan,
        agents,
        session,
        answer: asked.answer,
        turn,
        kind: job.kind(),
        boot_id: agent::boot_id(),
        course: Course::default(),
        seen: Mutex::default(),
    };
    let came = joint.run()?;
    merge::merge(&job, &plan, &came)
}

impl Joint<'_> {
    fn name(&self, part: &Part) -> String {
        self.agents.get(part.agent).map(|agent| agent.name.to_string()).unwrap_or_default()
    }

    fn run(&self) -> Result<Vec<Came>, NotDone> {
        let over = AtomicBool::new(false);
        let results = std::thread::scope(|scope| {
            let spawned: Vec<_> = (0..)
                .zip(&self.plan.parts)
                .map(|(number, part)| {
                    let thread = std::thread::Builder::new()
                        .name("agent".to_owned())
                        .stack_size(crate::check::STACK_BYTES);
                    thread.spawn_scoped(scope, move || self.part(number, part))
                })
                .collect();
            if spawned.iter().any(Result::is_err) {
                self.course.change(|state| state.failed = true);
            }
            let shown = std::thread::Builder::new()
                .name("agents".to_owned())
                .spawn_scoped(scope, || self.show(&over));
            let results: Vec<_> = spawned
                .into_iter()
                .map(|thread| match thread {
                    Ok(thread) => Ok(thread.join().unwrap_or_else(|_| Outcome::lost(defect()))),
                    Err(error) => Err(NotDone::Thread(error)),
                })
                .collect();
            over.store(true, Relaxed);
            drop(shown);
            results
        });
        let outcomes = results.into_iter().collect::<Result<Vec<Outcome>, NotDone>>()?;
        self.settled(outcomes)
    }

    /// What came of all parts, or the error of the one that ended all.
    fn settled(&self, outcomes: Vec<Outcome>) -> Result<Vec<Came>, NotDone> {
        // Who was refused has sent nothing, whenever the agent looked at it.
        let has_begun = |outcome: &Outcome| outcome.began && !outcome.is_refused();
        if !outcomes.iter().any(has_begun) {
            return Err(self.first_error(outcomes));
        }
        let sends = |part: &Part| !part.role.attends();
        let any = self
            .plan
            .parts
            .iter()
            .zip(&outcomes)
            .any(|(part, outcome)| sends(part) && outcome.result.is_ok());
        if !any {
            return Err(match self.first_error(outcomes) {
                NotDone::Agent { agent, why, remedy, .. } => NotDone::Lost { agent, why, remedy },
                other => other,
            });
        }
        let came = self.plan.parts.iter().zip(outcomes);
        Ok(came.map(|(part, outcome)| outcome.came(self.name(part))).collect())
    }

    fn first_error(&self, outcomes: Vec<Outcome>) -> NotDone {
        let told = self.course.lock().start.is_some();
        let named = self.plan.parts.iter().map(|part| self.name(part)).zip(outcomes);
        first_error(named, told)
    }

    /// Tells whoever looks on how all of it stands.
    fn show(&self, over: &AtomicBool) {
        let names = |of: fn(&Part) -> &Vec<String>| {
            let all: Vec<String> =
                self.plan.parts.iter().flat_map(|part| at_agent(of(part), &self.name(part))).collect();
            (!all.is_empty()).then(|| all.join(", "))
        };
        let mut shown = Shown::of(Title {
            tx: names(|part| &part.sends_on),
            rx: names(|part| &part.measures_on),
            ..title(self.kind)
        });
        while !over.load(Relaxed) {
            std::thread::sleep(LOOK);
            shown.show(&self.session.board, summed(&self.seen(), &self.plan.parts));
        }
    }

    /// Nothing that panics happens under this lock.
    fn seen(&self) -> MutexGuard<'_, BTreeMap<usize, Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn part(&self, number: usize, part: &Part) -> Outcome {
        let mut outcome = Outcome::lost(Failed::There(Lost::Stopped));
        // Others wait for this one.
        let done = catch_unwind(AssertUnwindSafe(|| self.part_of(number, part, &mut outcome)));
        let done = done.unwrap_or_else(|_| Err(defect()));
        self.seen().entry(number).or_default().is_over();
        if done.is_err() {
            // Before the start it ends all; after it the others go on, and tell what they saw.
            self.course.change(|state| state.failed |= !state.is_begun());
        }
        if let Some(tx) = done.as_ref().ok().and_then(|report| report.result.tx.as_ref()) {
            self.seen().entry(number).or_default().has_sent(tx.totals.frames);
        }
        if !part.role.attends() {
            self.course.change(|state| state.senders_over += 1);
            if self.course.lock().senders_over >= self.senders() {
                self.settle();
                self.course.over.store(true, Relaxed);
            }
        }
        outcome.result = done;
        outcome
    }

    /// Waits for what is still on its way: until all is there, as far as agents have told, and not for ever.
    fn settle(&self) {
        let began = Instant::now();
        let is_there = || {
            let seen = self.seen();
            let sum = |of: fn(&Seen) -> u64| seen.values().map(of).fold(0, u64::saturating_add);
            sum(Seen::received) >= sum(Seen::sent)
        };
        while began.elapsed() < SETTLES || began.elapsed() < SETTLES_MOST && !is_there() {
            std::thread::sleep(LOOK);
        }
    }

    fn part_of(&self, number: usize, part: &Part, outcome: &mut Outcome) -> Result<Report, Failed> {
        let Some(reach) = self.agents.get(part.agent) else { return Err(defect()) };
        let stop = &self.session.stop;
        // Until it begins, a signal ends all waiting; from then on the run is stopped in order.
        let patience = Patience { answer: self.answer, stop: Arc::clone(stop) };
        let (mut client, welcome) = Client::reach(reach, patience)?;
        let offset = client.compared()?;
        let host = welcome.host;
        outcome.host = Some(report::units::printable(&host.name));
        outcome.is_here = !self.boot_id.is_empty() && self.boot_id == host.boot_id && offset.may_be(0);
        outcome.offsets.push(offset);
        let own = Reached { offset, boot_id: host.boot_id, host: host.name };
        // Files may take long: nobody holds an interface meanwhile.
        let contents = client.put_all(&part.job)?;
        self.course.change(|state| {
            state.reached.insert(number, own);
        });
        let all = self.plan.parts.len();
        let reached = self.course.await_others(stop, |state| state.reached.len() == all)?.reached.clone();
        let ahead = self.ahead(number, part, &reached);
        outcome.same_host = ahead.same_host;
        outcome.stamps_ahead_ns = ahead.ns;
        if !part.role.attends() {
            // A veth takes live frames only where a meter stands at its other end.
            let meters = self.plan.parts.len() - self.senders();
            drop(self.course.await_others(stop, |state| state.ready.len() >= meters)?);
        }
        let started = client.start(&JobStart {
            job: part.job.clone(),
            contents,
            start_at: None,
            snapshots_every_ns: EVERY.as_nanos() as u64,
            agree: None,
            among: self.among(part, ahead.ns),
            closely: false,
        })?;
        let name = self.name(part);
        let mut tell = |told: Told| {
            if part.role == Role::Serves && matches!(&told, Told::Note(note) if note.code == Code::Begun) {
                // It listens.
                self.course.change(|state| {
                    state.ready.insert(number, offset);
                });
            }
            self.tell(number, &name, told);
        };
        if !matches!(part.role, Role::Whole | Role::Serves) {
            client.await_ready(&started.run, stop, &mut tell)?;
            let offset = client.compared()?;
            outcome.offsets.push(offset);
            // This host's own clock is known without any error.
            let ahead = if outcome.is_here { 0 } else { offset.offset_ns };
            self.begin(number, &mut client, &started.run, (offset, ahead))?;
        }
        outcome.began = true;
        client.is_stopped_in_order();
        let ends = if part.role.attends() { &self.course.over } else { stop };
        let report = client.wait(&started.run, ends, &mut tell)?;
        outcome.early = part.role.attends() && !self.course.over.load(Relaxed);
        outcome.offsets.extend(client.compared().ok());
        outcome.unfetched = self.fetch(&mut client, &started.run, part);
        read_report(report)
    }

    /// Waits until all are ready, and begins with them.
    fn begin(
        &self,
        number: usize,
        client: &mut Client,
        run: &str,
        (offset, ahead): (Offset, i64),
    ) -> Result<(), Lost> {
        let (course, stop) = (&self.course, &*self.session.stop);
        course.change(|state| {
            state.ready.insert(number, offset);
        });
        let all = self.plan.parts.len();
        let mut state = course.await_others(stop, |state| state.ready.len() == all)?;
        let worst = state.ready.values().map(|offset| offset.round_trip_ns).max().unwrap_or(0);
        let start = match state.start {
            Some(start) => start,
            None => {
                let lead = LEAD.max(Duration::from_nanos(worst).saturating_mul(TRIPS));
                let start = clocks::now(clocks::Clock::Tai).saturating_add(nanoseconds(lead));
                let names: Vec<String> = self.plan.parts.iter().map(|part| self.name(part)).collect();
                self.session.say(
                    Code::Begun,
                    format!("{} begin in {}", names.join(", "), report::units::time(nanoseconds(lead))),
                );
                *state.start.insert(start)
            }
        };
        drop(state);
        // Who has not answered by then ends all, while there is time for the others to hear of it.
        let margin = nanoseconds(MARGIN.max(Duration::from_nanos(worst).saturating_mul(2)));
        let left = || start.saturating_sub(clocks::now(clocks::Clock::Tai).saturating_add(margin));
        client.waits(self.answer.min(Duration::from_nanos(left())));
        let arms = client.go(run, start.saturating_add_signed(ahead));
        client.waits(self.answer);
        let late = || left() == 0;
        let armed = arms.and_then(|()| {
            course.change(|state| state.armed += 1);
            // Who is not armed in time ends all, while there is time.
            let mut state = course.await_others(stop, |state| state.armed == all || late())?;
            if state.armed < all {
                state.failed = true;
                return Err(Lost::Stopped);
            }
            Ok(())
        });
        if armed.is_err() {
            course.change(|state| state.failed = true);
            let _ = client.abort(run);
        }
        armed
    }

    fn senders(&self) -> usize {
        self.plan.parts.iter().filter(|part| !part.role.attends()).count()
    }

    fn among(&self, part: &Part, stamps_ahead_ns: i64) -> Option<Among> {
        let Role::Sends { number, measured_at } = part.role else {
            return (part.role == Role::Measures).then(|| Among { hold: true, ..Among::default() });
        };
        let senders = u32::try_from(self.senders()).unwrap_or(u32::MAX);
        Some(Among {
            hold: true,
            stamps_ahead_ns,
            measured: measured_at.is_some(),
            part: Some((
                number.saturating_add(self.turn.number.saturating_mul(senders)),
                senders.saturating_mul(self.turn.of),
            )),
            trial: self.turn.trials,
            beside: false,
        })
    }

    /// How far the clock is ahead of this sender's where its frames are measured.
    fn ahead(&self, number: usize, part: &Part, reached: &BTreeMap<usize, Reached>) -> Ahead {
        let meter = match part.role {
            Role::Sends { measured_at: Some(agent), .. } => (0..)
                .zip(&self.plan.parts)
                .find(|(_, other)| other.role == Role::Measures && other.agent == agent),
            _ => None,
        };
        let ends = meter.and_then(|(meter, _)| Some((reached.get(&number)?, reached.get(&meter)?)));
        let Some((own, meter)) = ends else { return Ahead::default() };
        Ahead::between(own, meter)
    }

    fn tell(&self, number: usize, name: &str, told: Told) {
        match told {
            Told::Note(note) => {
                let text = format!("{name}: {}", crate::lost::shown(&note.text));
                let remedy = note.remedy.map(|remedy| crate::lost::shown(&remedy));
                self.session.board.say(Note { text, remedy, ..note });
            }
            Told::Snapshot(_)
                if self.plan.parts.get(number).is_some_and(|part| part.role == Role::Serves) => {}
            Told::Snapshot(snapshot) => self.seen().entry(number).or_default().tell(&snapshot),
            Told::Ended(_) => {}
        }
    }

    /// Fetches the files that it wrote to where the job wants them here. Why one is not here, if one is not.
    fn fetch(&self, client: &mut Client, run: &str, part: &Part) -> Option<String> {
        let mut job = Value::Object(part.job.clone());
        let mut writes = false;
        each_text(&mut job, &mut |_, reach, _| writes |= reach == Reaches::Written);
        if !writes {
            return None;
        }
        let fetched = client.written(run).map_err(FileLost::from).and_then(|files| {
            files.iter().try_for_each(|file| {
                let allowed = self.session.consent.write.iter().any(|path| path == Path::new(&file.name));
                match allowed {
                    true => client.fetch(run, file, Path::new(&file.name)),
                    false => Err(Lost::Nonsense {
                        what: "it tells of files that the job does not write".to_owned(),
                    }
                    .into()),
                }
            })
        });
        fetched.err().map(|why| why.to_string())
    }
}

impl State {
    /// All parts were told the start, and have said that they keep it.
    fn is_begun(&self) -> bool {
        self.start.is_some() && self.armed > 0 && self.armed >= self.ready.len()
    }
}

/// How far a meter's clock is ahead of a sender's.
#[derive(Debug, Default, Clone, Copy)]
struct Ahead {
    ns: i64,
    same_host: bool,
}

impl Ahead {
    /// Two agents of one host have one clock, if nothing that was measured says otherwise.
    fn between(sender: &Reached, meter: &Reached) -> Ahead {
        let ns = meter.offset.offset_ns.saturating_sub(sender.offset.offset_ns);
        let error = meter.offset.error_ns.saturating_add(sender.offset.error_ns);
        let same = !sender.boot_id.is_empty() && sender.boot_id == meter.boot_id && sender.host == meter.host;
        match same && ns.unsigned_abs() <= error {
            true => Ahead { ns: 0, same_host: true },
            false => Ahead { ns, same_host: false },
        }
    }
}

/// Of several outcomes that of who failed, and not of those who were ended for it.
pub(crate) fn first_error(outcomes: impl Iterator<Item = (String, Outcome)>, told: bool) -> NotDone {
    let mut failed: Vec<(String, Failed)> =
        outcomes.filter_map(|(name, outcome)| Some((name, outcome.result.err()?))).collect();
    failed.sort_by_key(|(_, failed)| matches!(failed, Failed::There(Lost::Stopped)));
    match failed.into_iter().next() {
        Some((_, Failed::There(Lost::Stopped))) | None => NotDone::Stopped,
        Some((_, Failed::Here(said))) => NotDone::File(said),
        Some((agent, Failed::There(lost))) => {
            let remedy = lost.remedy();
            NotDone::Agent { agent, why: lost.to_string(), remedy, told }
        }
    }
}

/// What came of a part.
pub(crate) struct Outcome {
    pub host: Option<String>,
    /// Its clock is this host's, and that of who measures what it sends is its own.
    pub is_here: bool,
    pub same_host: bool,
    pub offsets: Vec<Offset>,
    pub stamps_ahead_ns: i64,
    pub unfetched: Option<String>,
    /// It measured, and ended before the senders had done.
    pub early: bool,
    /// It was told to begin: from then on frames may have left.
    pub began: bool,
    pub result: Result<Report, Failed>,
}

impl Outcome {
    /// By its agent's name.
    pub fn came(self, name: String) -> Came {
        Came {
            name,
            host: self.host,
            is_here: self.is_here,
            same_host: self.same_host,
            offsets: self.offsets,
            stamps_ahead_ns: self.stamps_ahead_ns,
            report: self.result.map_err(|failed| failed.to_string()),
            unfetched: self.unfetched,
            early: self.early,
        }
    }

    pub fn lost(failed: Failed) -> Outcome {
        Outcome {
            host: None,
            is_here: false,
            same_host: false,
            offsets: Vec::new(),
            stamps_ahead_ns: 0,
            unfetched: None,
            early: false,
            began: false,
            result: Err(failed),
        }
    }

    /// The agent says that it could not be done as it was asked for.
    fn is_refused(&self) -> bool {
        let kind = match &self.result {
            Err(Failed::There(Lost::Refused(fault))) => fault.data.kind,
            _ => return false,
        };
        matches!(kind, FaultKind::Usage | FaultKind::Refused | FaultKind::Permission | FaultKind::Late)
    }
}

/// Why a part has no report.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failed {
    #[error(transparent)]
    There(#[from] Lost),
    #[error("{0}")]
    Here(String),
}

impl From<FileLost> for Failed {
    fn from(lost: FileLost) -> Failed {
        match lost {
            FileLost::There(lost) => Failed::There(lost),
            here => Failed::Here(here.to_string()),
        }
    }
}

pub(crate) fn defect() -> Failed {
    Failed::Here("a thread of an agent panicked: this is a defect of netdyno".to_owned())
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// What an agent tells is read as a result file of somebody else is.
pub(crate) fn read_report(told: Value) -> Result<Report, Failed> {
    report::json::from_value(told).map_err(|error| {
        let said = crate::lost::shown(&error.to_string());
        Failed::There(Lost::Nonsense { what: format!("its report: {said}") })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reached(offset_ns: i64, error_ns: u64, boot_id: &str) -> Reached {
        let offset = Offset {
            offset_ns,
            error_ns,
            round_trip_ns: error_ns.saturating_mul(2),
            at_ns: 0,
            exchanges: 20,
        };
        Reached { offset, boot_id: boot_id.to_owned(), host: "h".to_owned() }
    }

    #[test]
    fn agents_of_one_host_have_one_clock_unless_what_was_measured_says_otherwise() {
        let between = |sender, meter| {
            let Ahead { ns, same_host } = Ahead::between(&sender, &meter);
            (ns, same_host)
        };
        assert_eq!(between(reached(4_000, 50_000, "x"), reached(-3_000, 60_000, "x")), (0, true));
        assert_eq!(between(reached(0, 50_000, "x"), reached(5_000_000, 60_000, "x")), (5_000_000, false));
        assert_eq!(between(reached(4_000, 50_000, "x"), reached(-3_000, 60_000, "y")), (-7_000, false));
        assert_eq!(between(reached(4_000, 50_000, ""), reached(-3_000, 60_000, "")), (-7_000, false));
        assert_eq!(
            between(reached(i64::MIN, u64::MAX, "x"), reached(i64::MAX, u64::MAX, "y")),
            (i64::MAX, false)
        );
    }
}
