//! `netdyno search sessions`: the highest rate of new connections that a device carries without failures; and
//! `netdyno search session-capacity`: how many it holds at once (`capacity`).
//!
//! ```text
//!   trial::Climb | trial::Confirmed -- Wanted --> trials::course::drive --> Through: connections --> one row of the result
//!        ^                                                  |
//!        '------------------- Outcome ----------------------'
//! ```
//!
//! The clients stay attached from the first trial to the last, since a driver may take its link down for a program, and tuples go on
//! from trial to trial, so that a device meets those of the last trial again as late as can be.

mod capacity;
mod lab;

use super::{IN_FLIGHT, MOST_SLOTS, Plan, USUAL_SLOTS, outcome, way};
use crate::carrier::{self, Ends};
use crate::device_nat::DeviceNat;
use crate::kinds::{Run, passive, shared};
use crate::panel::{Names, Panel};
use crate::place::Place;
use crate::run::counters::Leaving;
use crate::session::Session;
use crate::trials::course::{Course, Row, Tester, ahead_said, drive, go_on};
use crate::trials::{PacketThreads, nanos};
use anyhow::{Context as _, Result, bail};
use engine::Priority;
use report::{
    Code, EndpointStage, NatCounts, Report, SessionRateFound, SessionTrial, SessionVerdict,
    SessionsSearch as Found, SessionsSearchKind, units,
};
use sessions::{Clients, Counts, Load, Ran};
use snapshot::Title;
use spec::{MostSessions, Sessions, SessionsFind, SessionsSearch, Written};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use trial::{Climb, ClimbPlan, Confirmed, Left, Outcome, Remaining, Search, Stage, Wanted};
use xdp::way::Way;

/// Connections are opened for so long in a trial, unless said.
const LASTS: Duration = Duration::from_secs(5);
/// As fast as it goes no longer than this: a device keeps for a time what was closed.
const ESTIMATE: Duration = Duration::from_secs(1);
/// After so long a connection has failed. Whatever was sent again counts before.
const TIMEOUT: Duration = Duration::from_secs(2);
/// A trial that confirms is done so often before it stays undecided. Until then the search looks elsewhere by itself, and comes back.
const TRIES: u64 = 3;
/// Slots of a search by UDP whose greatest rate is not known, 256 MB; and trials that there are slots for, if it is.
const UNKNOWN_SLOTS: u64 = 1 << 23;
const MOST_TRIALS: u64 = 24;
/// A rate that is offered to this share was offered.
const OFFERED: f64 = 0.99;
/// It is looked so often whether a pause is to end.
const NAP: Duration = Duration::from_millis(50);

impl Run for SessionsSearch {
    fn run(&self, session: Session) -> Result<Report> {
        run(self, None, &session)
    }
}

/// The connections of a trial, with the defaults of searches.
fn tested(job: &SessionsSearch) -> Sessions {
    let mut args = job.sessions.clone();
    let written = |time: Duration| format!("{}ms", time.as_millis()).parse::<Written<Duration>>().ok();
    match &job.find {
        SessionsFind::Sessions(_) => args.duration = args.duration.or_else(|| written(LASTS)),
        // As many tuples are needed as are held at most.
        SessionsFind::SessionCapacity(find) => {
            args.connections = find.most().to_string().parse().ok();
            // A device would make anew what it had forgotten, if the client said something first; a lab's server can begin.
            args.from_server |= job.lab.is_some() && args.is_udp();
        }
    }
    args.timeout = args.timeout.or_else(|| written(TIMEOUT));
    args
}

/// Searches, or goes on with what an earlier result of the same search has.
///
/// # Errors
/// What was asked for that cannot be, or that the earlier result is of another search.
pub fn run(job: &SessionsSearch, earlier: Option<Report>, session: &Session) -> Result<Report> {
    passive::check(job)?;
    let args = tested(job);
    match &job.lab {
        Some(asked) => lab::within(asked, args, |place, args, nat| {
            search(job, args, earlier, (place, nat.as_ref()), session)
        }),
        None => {
            let place = Place::find(&args.on)?;
            place.guard(&session.consent.yes_disrupt)?;
            let nat = DeviceNat::around(&place)?;
            search(job, &args, earlier, (place, nat.as_ref()), session)
        }
    }
}

/// From this place, with these connections.
fn search(
    job: &SessionsSearch,
    args: &Sessions,
    earlier: Option<Report>,
    (place, nat): (Place, Option<&DeviceNat>),
    session: &Session,
) -> Result<Report> {
    shared::measurable(&place)?;
    let mut plan = Plan::of(args, &place)?;
    let lasts = args.duration.as_deref().copied();
    let budget = plan.once_each(&job.find, lasts.unwrap_or(LASTS))?;
    session.stop_in_order();
    let mut ends = Ends::none();
    ends.needed(&place, "search")?;
    let name = &place.interface.name;
    let clients = place.run_in(|| Clients::attach(name, plan.options.clone()))?;
    let clients = clients.with_context(|| format!("opening connections on {}", place.spec))?;
    let mut report = passive::report("search", &place, (None, lasts));
    let following = ends.wait(session, &mut report)?;
    let way = way(&place, &session.stop)?;
    let next_hop = plan.next_hop(args, &place)?;
    report.environment.engine = Some(outcome::choice(clients.is_native(), clients.reason(), &way));
    session.meet()?;
    let title = Title {
        tx: Some(place.spec.clone()),
        rx: Some(plan.options.server.to_string()),
        ..passive::title("search")
    };
    let one = std::slice::from_ref(&place);
    let panel = passive::panel(session, title, &report, one, Names::unknown(0))?;
    let kept = earlier.and_then(|report| report.result.sessions_search).map(|search| search.trials);
    let mut leaving = Leaving::begin(&place)?;
    let priority = match args.no_real_time {
        true => Priority::Ordinary,
        false => Priority::RealTime,
    };
    let load = Load { next_hop, in_flight: args.in_flight, priority, ..Load::default() };
    let kept: Vec<SessionTrial> = kept.unwrap_or_default();
    if budget.is_some() {
        // The device may know those of the earlier search still.
        clients.skip(kept.iter().map(|trial| trial.opened).sum());
    }
    let course = Course::new(kept);
    // What a veth interface sends this machine carries on, and most often to a device on it.
    let packet_threads = place.is_veth().then(PacketThreads::find);
    crate::trials::warn_if_silent(packet_threads.as_ref(), &mut report.warnings);
    let bench = Bench { clients: &clients, way: &way, load, session, packet_threads, nat };
    let lasts_or = lasts.unwrap_or(LASTS);
    let rate = args.connections_per_second();
    let (tried, used_up) = (false, None);
    let mut through =
        Through { bench, find: &job.find, rate, lasts: lasts_or, panel, course, tried, budget, used_up };
    let mut sought = Sought::of(&job.find, lasts_or, args.from_server)?;
    go_on(&mut sought, &mut through)?;
    session.say(Code::Begun, begun(&plan, &place, sought.left().trials, lasts));
    session.warn(&report.warnings);
    let complete = drive(&mut sought, &mut through)?;
    if complete {
        through.course.check_used()?;
    }
    session.board.end();
    following.end(None, &mut report);
    carrier::warn(&mut report);
    let Through { mut course, used_up, .. } = through;
    let counts = clients.counts();
    drop(clients);
    if !complete {
        course.judge_incomplete(&mut report, used_up);
    }
    let trials = std::mem::take(&mut course.rows);
    if let Some(nat) = nat {
        nat.compare(&mut report, trials.iter().map(|trial| (trial.finished, trial.nat.as_ref())));
    }
    let mut searched = Found {
        kind: SessionsSearchKind::from(job.find.name()),
        server: plan.options.server.to_string(),
        first_client: plan.options.first_address.to_string(),
        client_addresses: plan.options.addresses.into(),
        complete,
        trial_ns: lasts.map_or(0, nanos),
        settle_ns: nanos(job.find.settle()),
        elapsed_ns: nanos(course.elapsed()),
        trials,
        ..Found::default()
    };
    sought.judge(&mut report, &mut searched, &job.find);
    outcome::compare(&mut report, &place, &counts, &mut leaving);
    report.result.sessions_search = Some(searched);
    Ok(report)
}

/// One of the searches.
enum Sought {
    Rate(Box<Climb>),
    Capacity(Box<Confirmed>),
}

impl Sought {
    fn of(find: &SessionsFind, lasts: Duration, from_server: bool) -> Result<Sought> {
        Ok(match find {
            SessionsFind::Sessions(find) => Sought::Rate(Box::new(Climb::new(climb_plan(find, lasts)))),
            SessionsFind::SessionCapacity(find) => {
                Sought::Capacity(Box::new(Confirmed::new(capacity::plan(find, from_server))?))
            }
        })
    }

    /// What the trials come to.
    fn judge(&self, report: &mut Report, searched: &mut Found, find: &SessionsFind) {
        match (self, find) {
            (Sought::Rate(climb), SessionsFind::Sessions(find)) => {
                let rate = found(&searched.trials, climb, find);
                judge(report, &rate, searched.complete, climb.inconsistent());
                searched.rate = Some(rate);
            }
            (Sought::Capacity(search), SessionsFind::SessionCapacity(find)) => {
                let found = capacity::found(&searched.trials, search, find);
                capacity::judge(report, &found, searched.complete, search.inconsistent());
                searched.capacity = Some(found);
            }
            _ => {}
        }
    }

    fn search(&self) -> &dyn Search {
        match self {
            Sought::Rate(climb) => climb.as_ref(),
            Sought::Capacity(search) => search.as_ref(),
        }
    }
}

impl Search for Sought {
    fn next(&self) -> Option<Wanted> {
        self.search().next()
    }

    fn tell(&mut self, outcome: &Outcome) {
        match self {
            Sought::Rate(climb) => climb.tell(outcome),
            Sought::Capacity(search) => search.tell(outcome),
        }
    }

    fn left(&self) -> Left {
        self.search().left()
    }

    fn bounds(&self) -> Vec<(Option<f64>, Option<f64>)> {
        self.search().bounds()
    }
}

/// What is asked for.
fn climb_plan(find: &MostSessions, lasts: Duration) -> ClimbPlan {
    ClimbPlan {
        least: find.least().map(|rate| rate as f64),
        greatest: find.most().map(|rate| rate as f64),
        precision: find.precision(),
        confirm: find.confirm(),
        trial_ns: nanos(lasts),
    }
}

/// What is said as a search begins, with about so many trials before it.
fn begun(plan: &Plan, place: &Place, left: u64, lasts: Option<Duration>) -> String {
    format!(
        "sessions to {} from {} on {}: about {}{}; Ctrl-C ends and reports",
        plan.options.server,
        plan.from(),
        place.spec,
        units::counted(left, "trial"),
        lasts.map_or_else(String::new, |lasts| format!(" of {}", units::time(nanos(lasts)))),
    )
}

/// What all trials are done with.
struct Bench<'a> {
    clients: &'a Clients,
    way: &'a Way,
    load: Load,
    session: &'a Session,
    packet_threads: Option<PacketThreads>,
    nat: Option<&'a DeviceNat>,
}

impl Bench<'_> {
    /// Nanoseconds that the threads which carry on what is sent waited for a processor, since any moment.
    fn machine_waited_ns(&self) -> Option<u64> {
        self.packet_threads.as_ref().and_then(PacketThreads::waited_ns)
    }

    /// Trials at a rate go before ordinary tasks.
    fn load(&self, rate: Option<u64>) -> Load {
        match rate {
            Some(_) => Load { rate, ..self.load },
            None => Load { priority: Priority::Ordinary, ..self.load },
        }
    }

    /// Opens connections and carries them to their ends; what was counted meanwhile.
    fn open(&self, load: &Load, panel: &mut Panel) -> Result<(Counts, Ran, Option<NatCounts>)> {
        let nat = self.nat.map(|nat| anyhow::Ok((nat, nat.begin()?))).transpose()?;
        let before = self.clients.counts();
        let over = AtomicBool::new(false);
        let ran = std::thread::scope(|scope| {
            let sending = scope.spawn(|| {
                let ran = self.clients.run(self.way, load, &self.session.stop);
                over.store(true, Relaxed);
                ran
            });
            self.session.watch(panel, None, |_| super::look(self.clients, &over));
            sending.join()
        });
        let Ok(ran) = ran else { bail!("the thread that opens connections ended by a defect") };
        let ran = ran.context("opening connections")?;
        let nat = nat.and_then(|(nat, before)| nat.since(&before));
        Ok((self.clients.counts().since(&before), ran, nat))
    }

    /// Waits, unless somebody ends it.
    fn pause(&self, time: Duration) {
        let began = Instant::now();
        while !self.session.is_stopped() {
            let left = time.saturating_sub(began.elapsed());
            if left.is_zero() {
                break;
            }
            std::thread::sleep(left.min(NAP));
        }
    }
}

/// The device, and the trials so far.
struct Through<'a> {
    bench: Bench<'a>,
    find: &'a SessionsFind,
    /// New connections a second, where that is not what is varied.
    rate: Option<u64>,
    lasts: Duration,
    panel: Panel,
    course: Course<SessionTrial>,
    /// There was a trial, whose connections the device may still know.
    tried: bool,
    /// Of UDP: tuples of which each is used once.
    budget: Option<u64>,
    /// Why no further trial can be done.
    used_up: Option<String>,
}

impl Row for SessionTrial {
    fn number(&self) -> u32 {
        self.number
    }

    fn outcome(&self) -> Outcome {
        let judged = match self.verdict {
            // One lost that may be the tester's: nothing is known of the device.
            SessionVerdict::Undecided => Outcome { uneven: 1, ..Outcome::judged(false) },
            SessionVerdict::Failed => Outcome::judged(false),
            _ => Outcome::judged(true),
        };
        // How much of what was to be held was says how far it is from passing.
        let judged = match (self.intended_connections, self.answered_again) {
            (Some(asked), Some(answered)) if self.verdict != SessionVerdict::Undecided => {
                Outcome { intended: asked, sent: asked, received: answered.min(asked), ..judged }
            }
            _ => judged,
        };
        Outcome { result: Some(self.finished_per_second), ..judged }
    }

    fn learned(&mut self, number: u32, _: Vec<(Option<f64>, Option<f64>)>) {
        self.number = number;
    }
}

fn stage(wanted: &Wanted) -> EndpointStage {
    match wanted.stage {
        Stage::Estimate | Stage::WarmUp => EndpointStage::Estimate,
        Stage::Confirm => EndpointStage::Confirm,
        Stage::Search | Stage::Measure => EndpointStage::Search,
    }
}

/// The rate that is offered; none where it goes as fast as it can.
fn rate(wanted: &Wanted) -> Option<u64> {
    matches!(wanted.stage, Stage::Search | Stage::Confirm).then_some(wanted.load as u64)
}

impl Tester<Sought> for Through<'_> {
    type Row = SessionTrial;

    fn course(&mut self) -> &mut Course<SessionTrial> {
        &mut self.course
    }

    fn is_of(&self, row: &SessionTrial, wanted: &Wanted) -> bool {
        if matches!(self.find, SessionsFind::SessionCapacity(_)) {
            return row.stage == stage(wanted) && row.intended_connections == Some(wanted.load as u64);
        }
        let same_rate = row.intended_per_second == rate(wanted).map(|rate| rate as f64);
        row.stage == stage(wanted) && same_rate
    }

    fn is_stopped(&self) -> bool {
        self.bench.session.is_stopped()
    }

    fn attempt(&mut self, wanted: &Wanted, _: &Sought) -> Result<Option<(SessionTrial, Outcome)>> {
        let mut tries = 0;
        loop {
            let Some(mut row) = self.once(wanted)? else { return Ok(None) };
            row.undecided_before = tries;
            tries += 1;
            let again = wanted.stage == Stage::Confirm && tries < TRIES;
            if row.verdict != SessionVerdict::Undecided || !again {
                let outcome = row.outcome();
                return Ok(Some((row, outcome)));
            }
        }
    }

    fn over(&mut self, _: &Sought, left: Option<Remaining>) {
        if let Some(row) = self.course.rows.last() {
            self.bench.session.say(Code::Trial, said(row, left));
        }
    }
}

impl Through<'_> {
    /// One trial. None: it was ended by who looks on.
    fn once(&mut self, wanted: &Wanted) -> Result<Option<SessionTrial>> {
        if self.tried {
            self.bench.pause(self.find.settle());
        }
        if self.bench.session.is_stopped() {
            return Ok(None);
        }
        self.tried = true;
        let row = match self.find {
            SessionsFind::Sessions(find) => self.at_rate(wanted, find)?,
            SessionsFind::SessionCapacity(_) => self.held(wanted)?,
        };
        Ok(row.map(|row| SessionTrial { stage: stage(wanted), ..row }))
    }

    /// Connections at a rate, or as fast as it goes.
    fn at_rate(&mut self, wanted: &Wanted, find: &MostSessions) -> Result<Option<SessionTrial>> {
        let rate = rate(wanted);
        let due = rate.map_or(1, |rate| due(rate, self.lasts));
        let left = self.budget.map(|all| all.saturating_sub(self.bench.clients.passed()));
        if let (Some(all), Some(left)) = (self.budget, left.filter(|left| *left < due)) {
            self.used_up = Some(used_up(all, left, due));
            return Ok(None);
        }
        // An estimate leaves most of them to the trials.
        let least = left.map(|left| (left / 8).max(1));
        let load = match rate {
            Some(_) => Load { duration: Some(self.lasts), ..self.bench.load(rate) },
            None => Load {
                duration: Some(self.lasts.min(ESTIMATE)),
                in_flight: self.bench.load.in_flight.or(Some(IN_FLIGHT)),
                count: find.most().into_iter().chain(least).min(),
                ..self.bench.load(None)
            },
        };
        let waited_before = self.bench.machine_waited_ns();
        let (counts, ran, nat) = self.bench.open(&load, &mut self.panel)?;
        if ran.stopped || self.bench.session.is_stopped() {
            return Ok(None);
        }
        let mut row = SessionTrial { nat, ..row(&counts, &ran) };
        let waited = waited_before.zip(self.bench.machine_waited_ns());
        row.machine_waited_ns = waited.map(|(before, now)| now.saturating_sub(before).min(ran.opening_ns));
        row.intended_per_second = rate.map(|rate| rate as f64);
        row.verdict = match rate {
            Some(rate) => {
                let due = rate as f64 * self.lasts.as_secs_f64();
                verdict(&row, due, find.max_failed())
            }
            None if row.finished == 0 => bail!(
                "none of {} finished as fast as it goes: try `netdyno sessions` with the same options first",
                units::counted(row.opened, "connection")
            ),
            None => SessionVerdict::Done,
        };
        Ok(Some(row))
    }

    /// So many are held, and each is used again.
    fn held(&mut self, wanted: &Wanted) -> Result<Option<SessionTrial>> {
        let asked = wanted.load as u64;
        let load = Load {
            count: Some(asked),
            hold: Some(Duration::ZERO),
            use_again: true,
            in_flight: self.bench.load.in_flight.or(self.rate.is_none().then_some(IN_FLIGHT)),
            ..self.bench.load(self.rate)
        };
        let (counts, ran, nat) = self.bench.open(&load, &mut self.panel)?;
        if ran.stopped || self.bench.session.is_stopped() {
            return Ok(None);
        }
        if ran.without_cookie > 0 {
            bail!("{}", outcome::no_relays(&ran));
        }
        let mut row = SessionTrial { nat, ..row(&counts, &ran) };
        row.intended_connections = Some(asked);
        let answered = counts.used_again_answered.saturating_sub(counts.used_again_badly);
        (row.held, row.answered_again) = (Some(ran.held), Some(answered));
        row.verdict = capacity::verdict(&row, asked, counts.relays_refused);
        Ok(Some(row))
    }
}

/// Connections that are due at a rate.
fn due(rate: u64, lasts: Duration) -> u64 {
    u64::try_from((u128::from(rate) * lasts.as_nanos()).div_ceil(1_000_000_000)).unwrap_or(u64::MAX)
}

/// A trial would have to use tuples again.
fn used_up(all: u64, left: u64, due: u64) -> String {
    format!(
        "the next opens {}, and of {} there are {} that this search has not used: one that is used again is no new session to a device that still \
         knows it; give more addresses with `.clients`, or a shorter `.duration`",
        units::counted(due, "session"),
        units::counted(all, "tuple"),
        units::count(left)
    )
}

impl Plan {
    /// Of UDP a search of rates uses each tuple once: there are slots for as many trials as it may take, if there are tuples for them. How many
    /// that are.
    fn once_each(&mut self, find: &SessionsFind, lasts: Duration) -> Result<Option<u64>> {
        let SessionsFind::Sessions(find) = find else { return Ok(None) };
        if !self.options.udp {
            return Ok(None);
        }
        let most = find.most().map(|rate| due(rate, lasts));
        let wanted = most.map_or(UNKNOWN_SLOTS, |most| most.saturating_mul(MOST_TRIALS));
        let slots = self.tuples.min(wanted.clamp(USUAL_SLOTS, MOST_SLOTS));
        if let Some(most) = most.filter(|most| *most > slots) {
            bail!(
                "`.max`: a trial opens {}, and there are {}, of which each is a new session to a device once: give more addresses with `.clients`, \
                 a shorter `.duration`, or a smaller `.max`",
                units::counted(most, "session"),
                units::counted(slots, "tuple")
            );
        }
        self.options.slots = u32::try_from(slots).unwrap_or(u32::MAX);
        Ok(Some(slots))
    }
}

fn row(counts: &Counts, ran: &Ran) -> SessionTrial {
    // A server or a load balancer at its limit answers with errors, and closes in order. Who got one has failed here, once: those that
    // did not finish have failed already, whatever they were answered.
    let errors = counts.finished_badly;
    let finished = counts.finished.saturating_sub(errors);
    SessionTrial {
        opened_per_second: outcome::per_second(counts.opened, ran.opening_ns),
        finished_per_second: outcome::per_second(finished, ran.opening_ns),
        opened: counts.opened,
        finished,
        failed: counts.failed() + errors,
        retransmitted: counts.retransmitted(),
        retransmitted_syns: counts.retransmitted_syns,
        // What is behind an answer's end is the server's fault, and counted above.
        duplicates: counts.duplicates + counts.unexpected.saturating_sub(counts.overlong),
        late: ran.late,
        ..SessionTrial::default()
    }
}

/// Whether a rate was carried. A connection that failed is the device's, and so is a segment that had to be sent again; but what was
/// opened late left in a burst, which as many others had to share, and so did what this machine did not carry on in time; and what came
/// twice was not lost.
fn verdict(row: &SessionTrial, due: f64, most_failed: f64) -> SessionVerdict {
    let failed = (row.failed + row.retransmitted).min(row.opened);
    let allowed = (row.opened as f64 * most_failed) as u64;
    let rate = row.intended_per_second.unwrap_or(0.0);
    let held_up = (rate * row.machine_waited_ns.unwrap_or(0) as f64 / 1e9) as u64;
    let ours = row.late.saturating_add(held_up).saturating_mul(2).saturating_add(row.duplicates);
    let offered = row.opened as f64 >= due * OFFERED && row.opened_per_second >= rate * OFFERED;
    if failed > allowed.saturating_add(ours) {
        // It fails at this rate, or at the lower one that was offered.
        SessionVerdict::Failed
    } else if failed > allowed || !offered {
        SessionVerdict::Undecided
    } else {
        SessionVerdict::Passed
    }
}

/// What the trials come to.
fn found(trials: &[SessionTrial], climb: &Climb, asked: &MostSessions) -> SessionRateFound {
    let passed = |rate: f64| {
        let at = trials.iter().filter(|trial| trial.intended_per_second == Some(rate));
        at.filter(|trial| trial.verdict == SessionVerdict::Passed).count() as u32
    };
    let undecided = trials.iter().filter(|trial| trial.verdict == SessionVerdict::Undecided);
    SessionRateFound {
        max_failed_ratio: asked.max_failed(),
        closed_loop_per_second: climb.closed_loop(),
        per_second: climb.found(),
        failed_per_second: climb.failed(),
        passed_trials: climb.found().map_or(0, passed),
        undecided_trials: undecided.count() as u64,
        precision_ratio: asked.precision(),
    }
}

fn judge(report: &mut Report, found: &SessionRateFound, complete: bool, inconsistent: &[f64]) {
    for rate in inconsistent {
        let said = format!(
            "{} a second passed once and not when they were tried again: the device, the server or this machine does not do the same each \
             time",
            units::counted(*rate as u64, "connection")
        );
        report.warnings.add(Code::DeviceInconsistent, said);
    }
    if found.undecided_trials > 0 {
        let said = format!(
            "{} could not be decided: connections were opened late here, or not at the rate, or this machine carried frames on late, or segments \
             sent again had not been lost",
            units::counted(found.undecided_trials, "trial")
        );
        report.warnings.add(
            Code::RateNotReached,
            (said, "give the tester more of its processors, or a longer `.retransmit_after`"),
        );
    }
    if !complete {
        return;
    }
    match (found.per_second, found.failed_per_second) {
        (None, Some(rate)) if inconsistent.is_empty() => {
            let said = format!(
                "no rate passed, not even one below {} a second",
                units::counted(rate as u64, "connection")
            );
            report.result.verdict.fall_short(Code::GoalNotReached, said);
        }
        (None, _) => {
            let said = "no rate passed as often as was asked for";
            report.result.verdict.fall_short(Code::GoalNotReached, said);
        }
        (Some(_), None) if found.undecided_trials > 0 => {
            let said = "no rate was seen to fail: the limit that was found is the tester's own, and what can be done is more";
            report.warnings.add(Code::SearchRange, said);
        }
        (Some(_), None) => {
            let said =
                "the highest rate that was to be tried passed: what can be done is more, and not known";
            report.warnings.add(Code::SearchRange, (said, "raise `.max`"));
        }
        (Some(_), Some(_)) => {}
    }
}

/// A trial in words.
fn said(row: &SessionTrial, left: Option<Remaining>) -> String {
    let ahead = ahead_said(left);
    if let Some(asked) = row.intended_connections {
        return format!(
            "trial {}, {}: {} held, {} answered when they were used again, {}{ahead}",
            row.number,
            units::counted(asked, "connection"),
            units::count(row.held.unwrap_or(0)),
            units::count(row.answered_again.unwrap_or(0)),
            row.verdict,
        );
    }
    let what = row
        .intended_per_second
        .map_or("as fast as it goes".to_owned(), |rate| format!("{}/s", units::count(rate as u64)));
    let mut text = format!(
        "trial {}, {what}: {} finished, {} failed, {} sent again",
        row.number,
        units::counted(row.finished, "connection"),
        units::count(row.failed),
        units::counted(row.retransmitted, "segment"),
    );
    if row.intended_per_second.is_some() {
        text += &format!(", {}", row.verdict);
    }
    text + &ahead
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_passes_if_all_was_opened_in_time_and_nothing_was_lost() {
        let row = |opened: u64, failed: u64, again: u64, late: u64, twice: u64| SessionTrial {
            intended_per_second: Some(1000.0),
            opened_per_second: opened as f64 / 5.0,
            opened,
            failed,
            retransmitted: again,
            late,
            duplicates: twice,
            ..SessionTrial::default()
        };
        let of = |row: SessionTrial, most: f64| verdict(&row, 5000.0, most).to_string();
        assert_eq!(of(row(5000, 0, 0, 0, 0), 0.0), "passed");
        // Late, and carried all the same.
        assert_eq!(of(row(5000, 0, 0, 40, 0), 0.0), "passed");
        assert_eq!(of(row(5000, 1, 0, 0, 0), 0.0), "failed");
        assert_eq!(of(row(5000, 0, 1, 0, 0), 0.0), "failed");
        assert_eq!(of(row(5000, 5, 0, 0, 0), 0.001), "passed");
        assert_eq!(of(row(5000, 6, 0, 0, 0), 0.001), "failed");
        // What may be ours says nothing of the device, and what is more does.
        assert_eq!(of(row(5000, 0, 2, 1, 0), 0.0), "undecided");
        assert_eq!(of(row(5000, 0, 3, 1, 0), 0.0), "failed");
        assert_eq!(of(row(5000, 0, 1, 0, 1), 0.0), "undecided");
        // Frames of 2 ms may have come to the device together, with as many others.
        let held_up =
            |again| SessionTrial { machine_waited_ns: Some(2_000_000), ..row(5000, 0, again, 0, 0) };
        assert_eq!(of(held_up(4), 0.0), "undecided");
        assert_eq!(of(held_up(5), 0.0), "failed");
        assert_eq!(of(held_up(0), 0.0), "passed");
        // Less was offered than was meant.
        assert_eq!(of(row(4900, 0, 0, 0, 0), 0.0), "undecided");
        assert_eq!(of(row(4900, 9, 0, 0, 0), 0.0), "failed");
    }

    #[test]
    fn who_is_answered_with_an_error_has_failed() {
        let counts = Counts {
            opened: 5000,
            finished: 4990,
            reset: 10,
            status_2xx: 4900,
            status_4xx: 20,
            status_5xx: 60,
            not_http: 10,
            finished_badly: 90,
            ..Counts::default()
        };
        let row = SessionTrial { intended_per_second: Some(1000.0), ..row(&counts, &Ran::default()) };
        assert_eq!((row.opened, row.finished, row.failed), (5000, 4900, 100));
        assert_eq!(verdict(&row, 5000.0, 0.019).to_string(), "failed");
    }

    #[test]
    fn who_did_not_finish_has_failed_once_whatever_it_was_answered() {
        let counts = Counts {
            opened: 200,
            finished: 100,
            timed_out: 100,
            status_2xx: 100,
            misframed: 100,
            ..Counts::default()
        };
        let row = row(&counts, &Ran::default());
        assert_eq!((row.finished, row.failed), (100, 100));
        // Two faults of one answer are one connection's.
        let counts = Counts {
            opened: 9,
            finished: 9,
            status_4xx: 3,
            overlong: 3,
            finished_badly: 3,
            ..Counts::default()
        };
        let row = self::row(&counts, &Ran::default());
        assert_eq!((row.finished, row.failed), (6, 3));
    }

    #[test]
    fn what_cannot_be_decided_neither_passes_nor_fails() {
        let of = |verdict| SessionTrial { verdict, ..SessionTrial::default() }.outcome();
        let limits = trial::Limits::loss(0.0);
        let judged = |verdict| limits.judge(&of(verdict));
        assert_eq!(judged(SessionVerdict::Undecided), trial::Judged::Not);
        assert_eq!(judged(SessionVerdict::Failed), trial::Judged::Failed);
        assert_eq!(judged(SessionVerdict::Passed), trial::Judged::Passed);
    }
}
