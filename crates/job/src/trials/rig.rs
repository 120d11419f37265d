//! One trial on real ports: every way's run side by side, and the outcome of all together.

use super::far::{self, Far};
use super::looks::Looks;
pub use super::offer::Offer;
use super::outcome::{Around, add, outcome_of};
use super::ports::{Learning, Ports, Sends, Way};
use super::probed::Probed;
use super::schedule;
use super::show::Show;
use super::softirq::PacketThreads;
use super::watch::Watch;
use crate::claims;
use crate::device_counters::DeviceCounters;
use crate::dropped::{Trace, Tracing};
use crate::kinds::shared::{self, Through};
use crate::kinds::what::Plugged;
use crate::mesh;
use crate::place::Place;
use crate::run::PerPort;
use crate::run::together::Member;
use crate::run::{self, Setup};
use crate::session::Session;
use anyhow::{Context, Result, anyhow, bail};
use engine::{Awake, Job, Priority};
use report::causes::{self, Where};
use report::search::FlowTrial;
use report::{AgentPart, Cause, Code, Environment, LatencyClock, Note, Report, Said, Warnings};
use snapshot::Board;
use spec::{Bench, Engine as EngineName, How, Timestamps};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use traffic::Program;
use traffic::expr::{Options, Size, compile};
use trial::{Again, Broken, Outcome, Policy};

/// What came of it.
#[derive(Debug, Clone)]
pub struct Ran {
    pub outcome: Outcome,
    /// Of each port, as sent.
    pub frames_per_second: f64,
    /// Times it was done before.
    pub repeated: u32,
    /// Told to stop.
    pub stopped: bool,
    /// A port of ours had no link for a time, or is gone: nothing can be said of the device.
    pub port_lost: Option<String>,
    /// The report of the first way, for what it says of the machine and the engine.
    pub report: Report,
    /// What most likely lost frames: of the way that lost most.
    pub lost_by: Option<Cause>,
    /// What most likely kept a sender from its load: of the way that is furthest from it.
    pub short_by: Option<Cause>,
    /// What a probe's records came to.
    pub flows: Option<FlowTrial>,
}

impl Ran {
    /// Nothing, because it was stopped or a port was lost.
    fn ended(stopped: bool, port_lost: Option<String>) -> Ran {
        let (outcome, report) = (Outcome::default(), Report::new("trial"));
        Ran {
            outcome,
            frames_per_second: 0.0,
            repeated: 0,
            stopped,
            port_lost,
            report,
            lost_by: None,
            short_by: None,
            flows: None,
        }
    }
}

/// The ports, and how they are used.
#[derive(Debug)]
pub struct Rig {
    pub ports: Ports,
    pub(super) through: Through,
    distrusted: crate::distrusted::Distrusted,
    /// Where all that frames pass is on this machine: what moves them there.
    packet_threads: Option<PacketThreads>,
    meter: How,
    timestamps: Timestamps,
    seed: u64,
    again: Again,
    warm_up: Option<Duration>,
    learning: bool,
    learnt: Option<Instant>,
    /// Trials begun: each signs its frames as another stream, so that what arrives late is not taken for the next one's.
    begun: u32,
    /// Nothing arrived of the trial before, for as long as stragglers are waited for.
    dead: bool,
    /// Frames that arrived when their trial was over.
    late: u64,
    /// Frames that the lab's device lost without being told to.
    troubled: u64,
    told_trouble: bool,
    /// Of the sending threads.
    priority: Priority,
    stop: Arc<AtomicBool>,
    board: Arc<Board>,
    /// What is to be said once about the ports.
    pub warnings: Warnings,
    pub environment: Option<Environment>,
    /// Who carried out the first trial, where its ports are at agents.
    pub agents: Vec<AgentPart>,
    /// There, how delays were timed in the trial whose clocks were compared worst.
    pub latency_clock: Option<LatencyClock>,
    /// What shows the trials while they last.
    pub show: Option<Show>,
    /// What this host's kernel drops.
    tracing: Tracing,
    /// The probe under test, where it is one.
    probed: Option<Probed>,
    /// Its ports are at agents.
    far: Option<Far>,
}

/// Traces what this host's kernel drops, where that is wanted.
fn tracing(bench: &Bench, ports: &Ports) -> Tracing {
    let wanted = Trace::of(bench.trace_drops, bench.no_trace_drops, ports.lab.is_some());
    if let Some(lab) = &ports.lab {
        return Tracing::in_lab(wanted, clocks::Clock::Monotonic, lab);
    }
    // What they cannot be found for says so by itself.
    let sending: Vec<Place> = ports.ways.iter().flat_map(|way| way.senders().unwrap_or_default()).collect();
    let measured: Vec<Place> =
        ports.ways.iter().flat_map(|way| way.receivers().unwrap_or_default()).collect();
    let [sending, measured] = [&sending, &measured].map(|places| places.iter().collect::<Vec<_>>());
    Tracing::begin(wanted, clocks::Clock::Monotonic, &sending, &measured)
}

/// Names of ports, for a person.
fn joined<'a>(names: impl Iterator<Item = &'a String>) -> String {
    names.map(String::as_str).collect::<Vec<_>>().join("+")
}

const SIGNED: &str = "a trial's frames end with a signature of 18 bytes";
/// So many trials later frames are signed as the same stream again.
const TRIALS_APART: u32 = 8;
/// Switches forget addresses after minutes (IEEE 802.1D: 300 s).
const FORGOTTEN: Duration = Duration::from_secs(60);

impl Rig {
    pub fn new(bench: &Bench, session: &Session) -> Result<Rig> {
        let elsewhere = session.elsewhere.as_deref();
        if elsewhere.is_some() {
            far::check(bench)?;
        }
        Rig::with(bench, Ports::find(bench, &session.consent, elsewhere)?, session)
    }

    /// With a probe under test.
    pub fn with_probe(bench: &Bench, flows: &spec::Flows, session: &Session) -> Result<Rig> {
        let mut rig = Rig::with(bench, Ports::to_probe(bench, &session.consent)?, session)?;
        let cpus: Vec<usize> = rig.cpus(0)?.into_iter().flatten().collect();
        if cpus.len() > 1 {
            bail!("`.cores`: flows are sent by one core, so that it is known which of them were");
        }
        let probed = Probed::new(bench, flows, &rig.ports, &cpus)?;
        if let Some(way) = rig.ports.ways.first_mut() {
            way.sends = Sends::One(probed.expression());
        }
        rig.probed = Some(probed);
        Ok(rig)
    }

    fn with(bench: &Bench, mut ports: Ports, session: &Session) -> Result<Rig> {
        let seed = bench.seed.unwrap_or_else(shared::draw_seed);
        let far = session.elsewhere.as_ref().map(|runs| Far::of(bench, &ports, runs, session)).transpose()?;
        if let Some(asked) = &bench.plugin {
            ports.send_what_it_makes(Plugged::of(asked)?, seed)?;
        }
        if bench.engine == EngineName::Null {
            bail!("`.engine` null sends nothing: a trial needs frames that arrive");
        }
        let consent = &session.consent;
        let in_a_lab = ports.on_this_machine();
        let packet_threads = in_a_lab.then(PacketThreads::find);
        let mut warnings = Warnings::default();
        super::warn_if_silent(packet_threads.as_ref(), &mut warnings);
        let tracing = tracing(bench, &ports);
        if let Some(why) = tracing.refused() {
            warnings.add(Code::DropsNotTraced, why.to_owned());
        }
        Ok(Rig {
            ports,
            tracing,
            packet_threads,
            through: Through::of(bench.through(), consent),
            distrusted: crate::distrusted::Distrusted::default(),
            meter: bench.how,
            timestamps: bench.timestamps,
            seed,
            again: Again::new(Policy { retries: bench.retries(), in_a_lab }),
            warm_up: bench.warm_up.as_deref().copied(),
            learning: !bench.no_learning,
            learnt: None,
            begun: 0,
            dead: false,
            late: 0,
            troubled: 0,
            told_trouble: false,
            priority: match bench.no_real_time {
                true => Priority::Ordinary,
                false => Priority::RealTime,
            },
            stop: Arc::clone(&session.stop),
            board: Arc::clone(&session.board),
            warnings,
            environment: None,
            agents: Vec::new(),
            latency_clock: None,
            show: None,
            probed: None,
            far,
        })
    }

    /// Shows what `command` does.
    pub fn show(&mut self, command: &str) -> Result<()> {
        self.show = Some(Show::begin(command, &self.ports, &self.board)?);
        Ok(())
    }

    /// Says how it goes.
    pub fn say(&self, note: Note) {
        self.board.say(note);
    }

    /// Whose trials they are from now on: can that search look elsewhere where one cannot be judged?
    pub(super) fn of(&mut self, looks_elsewhere: bool) {
        self.again.of(looks_elsewhere);
    }

    /// Trials begun.
    #[cfg(feature = "netflow")]
    pub(super) fn begun(&self) -> u32 {
        self.begun
    }

    /// Was the whole search interrupted?
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// The speed that the slowest sending port states.
    pub fn bits_per_second(&self) -> Result<Option<u64>> {
        let mut least = None;
        for way in &self.ports.ways {
            least = way.speeds()?.into_iter().flatten().chain(least).min();
        }
        Ok(least)
    }

    /// Does it; again when it did not pass for a moment in which this machine did something else. `broken` says what it did
    /// not keep. A port that is lost once trials have been done is told in what came of it, and is no error: what was
    /// measured before is worth keeping.
    pub fn run(&mut self, offer: &Offer, broken: &dyn Fn(&Outcome) -> Option<Broken>) -> Result<Ran> {
        match self.attempt(offer, broken) {
            // Whatever it was that did not become ready, it is no longer waited for.
            Err(_) if self.is_stopped() => Ok(Ran::ended(true, None)),
            Err(error) if self.environment.is_some() => {
                let lacking = self.lacking_ports();
                if lacking.is_empty() {
                    return Err(error);
                }
                Ok(Ran::ended(false, Some(lacking.join("; "))))
            }
            other => other,
        }
    }

    /// The ports that are gone, down or without their carrier, each in words.
    fn lacking_ports(&self) -> Vec<String> {
        let mut lacking = Vec::new();
        for (name, place) in self.ports.ways.iter().flat_map(Way::each) {
            let what = match place {
                // It is looked for by its name.
                Err(_) => "is no longer there (removed or renamed)",
                Ok(place) if !place.interface.up => "is down",
                Ok(place) if !place.interface.carrier => "has no carrier",
                Ok(_) => continue,
            };
            let said = format!("{name} {what}");
            if !lacking.contains(&said) {
                lacking.push(said);
            }
        }
        lacking
    }

    fn attempt(&mut self, offer: &Offer, broken: &dyn Fn(&Outcome) -> Option<Broken>) -> Result<Ran> {
        self.teach(offer)?;
        if let Some(warm_up) = self.warm_up {
            let warming = Offer { duration: Some(warm_up), count: None, command: None, ..offer.clone() };
            self.once(&warming)?;
        }
        let mut repeated = 0;
        self.again.begin();
        // Of those that said nothing of the device the one that came nearest to it.
        let mut nearest: Option<Ran> = None;
        loop {
            let mut ran = self.once(offer)?;
            if ran.port_lost.is_some() {
                // A link that came back is worth another try.
                let for_good = ran.report.result.link_events.iter().any(|event| event.duration_ns.is_none());
                if !for_good && repeated < self.again.policy().retries && !ran.stopped {
                    repeated += 1;
                    continue;
                }
                ran.repeated = repeated;
                return Ok(ran);
            }
            let seconds = offer.duration.map(|duration| duration.as_secs_f64());
            let not_kept = broken(&ran.outcome);
            let wait = self.again.after(not_kept, &ran.outcome, seconds);
            if not_kept.is_some_and(Broken::is_the_testers) && !ran.stopped {
                let far = |ran: &Ran| ran.outcome.testers_ratio();
                match nearest.take() {
                    Some(before) if far(&before) <= far(&ran) => ran = before,
                    _ => {}
                }
                if wait.is_some() {
                    nearest = Some(ran.clone());
                }
            }
            match wait {
                Some(ns) if !ran.stopped => self.pause(Duration::from_nanos(ns)),
                _ => {
                    ran.repeated = repeated;
                    return Ok(ran);
                }
            }
            repeated += 1;
        }
    }

    /// Waits for this machine to become quieter; not any longer when all is interrupted.
    fn pause(&self, time: Duration) {
        let until = Instant::now() + time;
        while !self.is_stopped() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Frames from where ours will arrive, so that a switch knows where that is (RFC 2544, 23 b).
    fn teach(&mut self, offer: &Offer) -> Result<()> {
        let known = self.learnt.is_some_and(|at| at.elapsed() < FORGOTTEN);
        if known || !self.learning || self.is_stopped() {
            return Ok(());
        }
        for (from, name, frames) in self.ports.ways.iter().flat_map(Way::learning) {
            let program = match frames {
                Learning::These(what) => {
                    if let Some(far) = &self.far {
                        far.teach(name, what, offer, &self.stop)?;
                        continue;
                    }
                    self.program(what, &offer.size, None, None)?
                }
                Learning::Between(from, to) => {
                    let what = mesh::frames(None, from, to);
                    let mut program = self.program(&what, &offer.size, None, None)?;
                    mesh::address_frames(&mut program, from, to)?;
                    program
                }
            };
            let setup = Setup {
                tx: vec![from?],
                open: shared::open_engines(EngineName::Packet),
                ..self.setup(
                    program.with_schedule(schedule(1000.0)),
                    Some(3),
                    None,
                    (Arc::clone(&self.stop), None),
                )
            };
            run::run(setup).with_context(|| format!("learning frames from {name}"))?;
        }
        self.learnt = Some(Instant::now());
        Ok(())
    }

    pub(super) fn program(
        &self,
        what: &str,
        size: &Size,
        flows: Option<u64>,
        signature: Option<u32>,
    ) -> Result<Program> {
        let what = with_flows(what, flows);
        let options = Options { size: Some(size.clone()), seed: self.seed, signature, name: String::new() };
        Ok(compile(&what, &options)?)
    }

    pub(super) fn setup(
        &self,
        program: Program,
        count: Option<u64>,
        duration: Option<Duration>,
        (stop, together): (Arc<AtomicBool>, Option<Member>),
    ) -> Setup {
        let longest = program.longest() as usize;
        let pacing = engine::Pacing { catch_up: engine::CatchUp::Never, spin: false };
        let job = Job { count, duration, pacing, ..Job::program(program) };
        Setup {
            distrusted: self.distrusted.clone(),
            best_effort: true,
            discarded: true,
            patient: !self.dead,
            priority: self.priority,
            // What its runs say of themselves is told of the trial.
            session: Session { stop, together, ..Session::default() },
            ..Setup::of("trial", shared::open_engines(self.through.engine), job, longest)
        }
    }

    /// The CPUs of the workers of each port of a way, port by port. Ports that are not told which share out those there are.
    pub(super) fn cpus(&self, way: usize) -> Result<Vec<Option<usize>>> {
        let told = self.through.cores.is_some();
        let ways = &self.ports.ways;
        let width = |ways: &[Way]| ways.iter().map(Way::width).sum::<usize>();
        let Some(own) = ways.get(way) else { return Ok(Vec::new()) };
        if self.far.is_some() {
            return Ok(vec![None; own.width()]);
        }
        match crate::environment::allowed_cpus() {
            Some(allowed) if !told && width(ways) > 1 => {
                // As with one way, the work of the lab's device is left where it is.
                let held = |cpu: usize| self.ports.lab.is_none() && claims::held_by_another(cpu).is_some();
                let free = claims::free_first(&allowed, held).into_iter().cycle();
                Ok(free.skip(width(&ways[..way])).take(own.width()).map(Some).collect())
            }
            _ => {
                // The work of the lab's device is done on the other CPUs.
                let apart = self.ports.lab.is_none();
                let cpus = shared::cpus_apart(&self.through, &own.senders()?, self.priority, apart)?;
                let all = cpus.len() * own.width();
                Ok(cpus.into_iter().cycle().take(all).collect())
            }
        }
    }

    /// Workers of each port.
    fn workers(&self, way: usize) -> usize {
        let width = self.ports.ways.get(way).map_or(1, Way::width).max(1);
        self.cpus(way).map_or(1, |cpus| cpus.len() / width).max(1)
    }

    /// Sends all ways at once, each in a thread of its own; of each its report, and the frames that were due.
    fn all_ways(
        &self,
        offer: &Offer,
        stops: &[Arc<AtomicBool>],
        (watches, looks): (&[Watch], &[Looks]),
        onlookers: &[run::Onlooker],
    ) -> Vec<Result<(Report, Option<u64>)>> {
        let started = Instant::now();
        let members = Member::of(self.ports.ways.len());
        std::thread::scope(|scope| {
            let runs: Vec<_> = self
                .ports
                .ways
                .iter()
                .enumerate()
                .zip(members)
                .zip(watches.iter().zip(looks))
                .map(|(((number, way), member), watch)| {
                    let onlooker = onlookers.get(number).cloned();
                    let job = claims::job();
                    scope.spawn(move || {
                        claims::for_job(job);
                        let stop = Arc::clone(&stops[number]);
                        let done = self.one_way(number, way, offer, (stop, onlooker, member), watch);
                        if done.is_err() {
                            // Nothing comes of the others any more.
                            stops.iter().for_each(|stop| stop.store(true, Relaxed));
                        }
                        done
                    })
                })
                .collect();
            let mut command = offer.command.clone();
            while !runs.iter().all(|run| run.is_finished()) {
                if self.stop.load(Relaxed) {
                    stops.iter().for_each(|stop| stop.store(true, Relaxed));
                }
                if let Some((text, after)) = &command
                    && started.elapsed() >= *after
                {
                    self.reset(text);
                    command = None;
                }
                std::thread::sleep(Duration::from_millis(2));
            }
            let panicked = || anyhow!("a trial's thread panicked: this is a defect of netdyno");
            runs.into_iter().map(|run| run.join().unwrap_or_else(|_| Err(panicked()))).collect()
        })
    }

    /// Keeps what a trial warns of, once.
    fn keep_warnings(&mut self, warnings: &[Said], late: u64) {
        for warning in warnings {
            // Each trial says that of itself, and what is late is told above.
            let said = matches!(warning.code, Code::RateNotReached | Code::LinkLost)
                || late > 0 && warning.code == Code::ForeignFrames;
            if !said && !self.warnings.contains(warning) && self.warnings.len() < 8 {
                self.warnings.push(warning.clone());
            }
        }
    }

    /// Keeps how delays between agents were timed: as far as the clocks of any trial were off.
    fn keep_clock(&mut self, report: &Report) {
        let error = |clock: &Option<LatencyClock>| clock.as_ref().map(|clock| clock.comparison_error_ns);
        if self.far.is_some() && error(&report.result.latency_clock) > error(&self.latency_clock) {
            self.latency_clock.clone_from(&report.result.latency_clock);
        }
    }

    /// Keeps in which environment trials are done, with the interfaces of all ways.
    fn keep_environment(&mut self, first: &Report, others: impl Iterator<Item = Report>) {
        if self.environment.is_none() {
            let mut environment = first.environment.clone();
            environment.interfaces.extend(others.flat_map(|report| report.environment.interfaces));
            self.environment = Some(environment);
            // Their reports are of that trial alone.
            let who = |agent: &AgentPart| AgentPart { report: None, began_late_ns: None, ..agent.clone() };
            self.agents = first.result.agents.iter().map(who).collect();
        }
    }

    /// Does it once.
    fn once(&mut self, offer: &Offer) -> Result<Ran> {
        let stops: Vec<_> = self.ports.ways.iter().map(|_| Arc::new(AtomicBool::new(false))).collect();
        let watches: Vec<_> = self.ports.ways.iter().map(|_| Watch::default()).collect();
        let looks: Vec<_> = self.ports.ways.iter().map(|_| Looks::default()).collect();
        self.begun += 1;
        let rig = &*self;
        let onlookers = rig.show.as_ref().map(Show::onlookers).unwrap_or_default();
        // A core that is halted in each of the sender's rests is given back late.
        let _awake = Awake::keep(&self.cpus_of_all_ways());
        let waited_ns = || self.packet_threads.as_ref().and_then(PacketThreads::waited_ns);
        let mut device = rig.ports.lab.as_ref().map(|lab| DeviceCounters::begin(lab, rig.ports.did()));
        let waited_before = waited_ns();
        let dropped_before = rig.tracing.counted();
        let reports = rig.all_ways(offer, &stops, (&watches, &looks), &onlookers);
        let (mut reports, dues): (Vec<_>, Vec<_>) =
            reports.into_iter().collect::<Result<Vec<_>>>()?.into_iter().unzip();
        let machine_waited_ns = waited_ns().unwrap_or(0).saturating_sub(waited_before.unwrap_or(0));
        rig.add_what_the_device_counted(&mut device, &mut reports);
        // Of several ways it is not known which of them a drop without a signature is of.
        if let [report] = &mut reports[..]
            && report.result.loss.is_some_and(|loss| loss.frames > 0)
        {
            rig.tracing.put(report, dropped_before.as_ref());
        }
        let events: Vec<_> =
            reports.iter().flat_map(|report| report.result.link_events.iter().cloned()).collect();
        let mut outcome = Outcome::default();
        let in_a_lab = self.packet_threads.is_some();
        let lab_device = self.ports.lab.as_ref().is_some_and(|lab| lab.device.is_some());
        let place = self.place();
        let (mut lost_by, mut short_by) = (Worst::default(), Worst::default());
        let mut rate = 0.0f64;
        let (mut late, mut arrived) = (0, false);
        let ways = self.ports.ways.iter().enumerate().zip(dues);
        for ((report, ((number, way), due)), (watch, looks)) in
            reports.iter().zip(ways).zip(watches.iter().zip(&looks))
        {
            // What agents tell is numbered as the stream was asked for.
            let first = if self.far.is_some() { 0 } else { self.signature(number) };
            let looks = looks.take();
            let around = Around {
                receivers: &way.receiver_names().map(String::as_str).collect::<Vec<_>>(),
                ports: way.width() as u64,
                due,
                signatures: first..first + way.streams(),
                in_a_lab,
                machine_waited_ns,
                looks: &looks,
                lab_device,
            };
            let one = match outcome_of(report, offer, &around) {
                // Of what was sent without a link nothing follows.
                Err(_) if !events.is_empty() => Outcome::default(),
                one => one.with_context(|| {
                    format!("from {} to {}", joined(way.sender_names()), joined(way.receiver_names()))
                })?,
            };
            // Which frames of a run without a link are whose is not known.
            late += if events.is_empty() { self.late_in(report) } else { 0 };
            arrived |= report.result.rx.as_ref().is_some_and(|rx| rx.totals.frames > 0);
            rate += report.result.tx.as_ref().map_or(0.0, |tx| tx.totals.frames_per_second);
            if events.is_empty() {
                // What the lab's device refused never left.
                let lost = || causes::loss(report, place).or_else(|| causes::rate(report, place));
                lost_by.look(one.lost(), lost);
                short_by.look(one.intended.saturating_sub(one.sent), || causes::rate(report, place));
            }
            add(&mut outcome, &one);
            if offer.closely {
                add_losses_over_time(&mut outcome, offer, report, watch, way.width());
            }
        }
        let flows = self.probed.as_ref().and_then(Probed::take_found);
        if let Some(found) = &flows {
            outcome.missed += found.lost_here();
            self.warn_of_records(found);
        }
        let mut reports = reports.into_iter();
        let mut report = reports.next().context("there are no ports")?;
        self.keep_environment(&report, reports);
        self.keep_clock(&report);
        self.keep_warnings(&report.warnings, late);
        self.dead = !arrived;
        self.tell_late(late);
        self.look_at_the_device(offer.schedule.is_paced())?;
        if let Some(show) = &self.show {
            show.warn(&self.warnings);
        }
        let frames_per_second = rate / self.ports.ways.iter().map(Way::width).sum::<usize>().max(1) as f64;
        let stopped = self.is_stopped();
        // A device that is reset takes its links down, which is what is timed (RFC 6201).
        let port_lost = crate::carrier::told(&events).filter(|_| offer.command.is_none());
        report.result.link_events = events;
        let (lost_by, short_by) = (lost_by.cause, short_by.cause);
        Ok(Ran {
            outcome,
            frames_per_second,
            repeated: 0,
            stopped,
            port_lost,
            report,
            lost_by,
            short_by,
            flows,
        })
    }

    /// The cores that senders of trials have for themselves.
    fn cpus_of_all_ways(&self) -> Vec<usize> {
        match self.priority {
            Priority::Ordinary | Priority::AsNeeded => Vec::new(),
            Priority::RealTime => {
                let ways = 0..self.ports.ways.len();
                ways.filter_map(|way| self.cpus(way).ok()).flatten().flatten().collect()
            }
        }
    }

    /// Where trials are done, for what to type next.
    pub fn place(&self) -> Where {
        match (&self.ports.lab, &self.far) {
            (Some(_), _) => Where::InALab,
            (None, Some(_)) => Where::AtAgents,
            (None, None) => Where::Here,
        }
    }

    /// Each way's result gets what the lab's device counted where its frames went, and the names of its ports, which causes
    /// are told by.
    fn add_what_the_device_counted(&self, device: &mut Option<DeviceCounters>, reports: &mut [Report]) {
        for (report, way) in reports.iter_mut().zip(&self.ports.ways) {
            report.resolved.interfaces = way.names();
            let Some((lab, device)) = self.ports.lab.as_ref().zip(device.as_mut()) else { continue };
            let [senders, receivers] = [way.sender_names().collect(), way.receiver_names().collect()]
                .map(|names: Vec<&String>| names.into_iter().map(String::as_str).collect::<Vec<_>>());
            report.result.counters.extend(device.rises(lab, self.ports.did(), &senders, &receivers));
        }
    }

    /// The first number in the signatures of a way's frames in this trial: others than those of the trials before, and of the
    /// other ways, whose frames a device may send back.
    fn signature(&self, way: usize) -> u32 {
        let before: u32 = self.ports.ways.iter().take(way).map(Way::streams).sum();
        self.begun.wrapping_sub(1) % TRIALS_APART * self.streams() + before
    }

    /// Streams of a trial.
    fn streams(&self) -> u32 {
        self.ports.ways.iter().map(Way::streams).sum()
    }

    /// Frames of earlier trials that arrived in this one.
    fn late_in(&self, report: &Report) -> u64 {
        let ours = TRIALS_APART * self.streams() * self.workers(0) as u32;
        let late = report.streams.iter().filter(|s| s.tx_frames.is_none() && s.stream < ours);
        late.map(|stream| stream.rx_frames).fold(0, u64::saturating_add)
    }

    fn tell_late(&mut self, late: u64) {
        if late > 0 {
            self.late += late;
            self.warnings.retain(|warning| warning.code != Code::Stragglers);
            self.warnings.add(Code::Stragglers, format!(
                "{} arrived only when their trial was over: there they count as lost, and in no other trial as anything. The device holds frames for \
                 longer than stragglers are waited for (docs/method.md), or sends them again",
                report::units::counted(self.late, "frame")
            ));
        }
    }

    /// A lab's device of ours that could not do what it was told to is no device to measure.
    fn look_at_the_device(&mut self, paced: bool) -> Result<()> {
        let Some(device) = &mut self.ports.device else { return Ok(()) };
        if let Some(why) = device.ended() {
            bail!("the lab's device works no more: {why}");
        }
        let own: u64 = device.snapshot().iter().map(|did| did.missed + did.full).sum();
        let troubled = own + device.dropped().iter().sum::<u64>();
        let before = std::mem::replace(&mut self.troubled, troubled);
        // The sender is tried at top speed before a search, which no device need bear.
        if troubled > before && paced && !std::mem::replace(&mut self.told_trouble, true) {
            self.warnings.add(
                Code::LabDeviceOverloaded,
                (
                    "the lab's device itself lost frames beyond what it was told to, because they came faster than this \
                     machine can carry them, or too many waited",
                    "lower the load (`.max`, `.rate`)",
                ),
            );
        }
        Ok(())
    }

    /// Its report, and the frames that were due in all its time.
    fn one_way(
        &self,
        number: usize,
        way: &Way,
        offer: &Offer,
        (stop, onlooker, member): (Arc<AtomicBool>, Option<run::Onlooker>, Member),
        (watch, looks): (&Watch, &Looks),
    ) -> Result<(Report, Option<u64>)> {
        if let Some(probed) = &self.probed {
            return self.send_to_probe(probed, offer, &stop, onlooker);
        }
        if let Some(far) = &self.far {
            return self.one_far_way(far, way, offer, &stop);
        }
        let compile = |what: &str, signature| {
            self.program(what, &offer.size, offer.flows, Some(signature)).context(SIGNED)
        };
        let schedule = |_| Ok(offer.schedule.clone());
        let first = self.signature(number);
        let (program, arrive) = match &way.sends {
            Sends::One(what) => (compile(what, first)?.with_schedule(schedule(0)?), BTreeMap::new()),
            Sends::Scenario(made) => {
                let program = made.program(self.seed, &offer.size)?.numbered_from(first);
                (program.with_schedule(schedule(0)?), BTreeMap::new())
            }
            Sends::Mesh { stations, what } => {
                mesh::program(stations, what.as_deref(), first, schedule, compile)?
            }
        };
        // The frame that is due at the very end belongs to what comes after.
        let due = offer.duration.and_then(|time| program.frames_due_by(super::nanos(time).checked_sub(1)?));
        let tx = way.senders()?;
        let mut rx = Vec::new();
        for place in way.receivers()? {
            rx.push(shared::with_meter(place, (self.meter, self.timestamps), false)?);
        }
        for place in &tx {
            shared::check_mtu(&program, place)?;
        }
        // What the other way sends arrives here.
        let crossed = self.ports.ways.iter().flat_map(|other| other.receivers().unwrap_or_default());
        let crossed = crossed.into_iter().any(|at| tx.iter().any(|place| place.is_same_as(&at)));
        let workers = self.workers(number);
        let ports = way.width();
        let count = offer.count.map(|count| count.saturating_mul(ports as u64));
        let setup = Setup {
            per_port: (ports > 1).then_some(PerPort { ports, workers, arrive }),
            tx,
            rx,
            cpus: self.cpus(number)?,
            open: shared::open_by(&self.through, crossed, None)?,
            onlooker,
            ..self.setup(program, count, offer.duration, (stop, Some(member)))
        };
        let workers = workers as u32;
        let own = first * workers..(first + way.streams()) * workers;
        let observe = |meter: &meter::Meter, over: &AtomicBool| watch.observe(meter, own.clone(), over);
        let senders: Vec<usize> = setup.cpus.iter().copied().flatten().collect();
        // Of several ports' meters each sees a part of the numbers.
        let threads = self.packet_threads.as_ref().filter(|_| ports == 1);
        let look = |meter: &meter::Meter, over: &AtomicBool| {
            if let Some(threads) = threads {
                looks.observe(meter, own.clone(), threads, (self.priority, &senders), over);
            }
        };
        let observe: Option<run::Observe<'_>> = match (offer.closely, threads) {
            (true, _) => Some(&observe),
            (false, Some(_)) => Some(&look),
            (false, None) => None,
        };
        let report = run::run_observed(setup, observe)?;
        Ok((report, due))
    }

    /// The same, where its ports are at agents.
    fn one_far_way(
        &self,
        far: &Far,
        way: &Way,
        offer: &Offer,
        stop: &Arc<AtomicBool>,
    ) -> Result<(Report, Option<u64>)> {
        let Sends::One(what) = &way.sends else { bail!("`.plugin`: {}", far::ONE_PLACE) };
        let what = with_flows(what, offer.flows);
        let program = self.program(&what, &offer.size, None, Some(0)).context(SIGNED)?;
        let program = program.with_schedule(offer.schedule.clone());
        let due = offer.duration.and_then(|time| program.frames_due_by(super::nanos(time).checked_sub(1)?));
        let report = far.run(&what, offer, self.seed, stop)?;
        Far::check(&report, due)?;
        Ok((report, due))
    }

    /// Runs the user's command, on the lab's device if there is one. It must not hold up the trial: nobody waits for it.
    fn reset(&self, text: &str) {
        let device = self.ports.lab.as_ref().and_then(|lab| lab.device.as_ref());
        let command = match device {
            Some([port, _]) => port
                .namespace
                .command(port::outside::program("sh").get_program())
                .map_err(|error| error.to_string()),
            None => Ok(port::outside::program("sh")),
        };
        let child = command.and_then(|mut command| {
            let command = command.arg("-c").arg(text).stdin(std::process::Stdio::null());
            // Standard output is the result's.
            command.stdout(std::io::stderr());
            command.spawn().map_err(|error| error.to_string())
        });
        match child {
            // Reaped when it ends.
            Ok(mut child) => drop(std::thread::spawn(move || child.wait())),
            Err(error) => {
                self.board.say(Note::warning(Code::CommandFailed, format!("cannot run `{text}`: {error}")))
            }
        }
    }
}

/// What is sent, with so many flows.
fn with_flows(what: &str, flows: Option<u64>) -> String {
    match flows {
        Some(flows) => {
            what.replace("{flows}", &flows.to_string()).replace("{last}", &(1023 + flows).to_string())
        }
        None => what.to_owned(),
    }
}

/// The cause of the way that is worst off.
#[derive(Debug, Default)]
struct Worst {
    frames: u64,
    cause: Option<Cause>,
}

impl Worst {
    fn look(&mut self, frames: u64, cause: impl FnOnce() -> Option<Cause>) {
        if frames > self.frames {
            *self = Worst { frames, cause: cause() };
        }
    }
}

/// When frames were lost, and how long nothing came.
fn add_losses_over_time(outcome: &mut Outcome, offer: &Offer, report: &Report, watch: &Watch, width: usize) {
    let seen = watch.seen();
    let own = report.streams.iter().filter(|stream| stream.tx_frames.is_some());
    // Behind these no arrival shows that they are missing.
    let at_end: u64 = own.map(|stream| stream.lost_at_end_frames).sum();
    let whole = offer.duration.filter(|_| at_end > 0).map(super::nanos);
    outcome.lost_at_end = outcome.lost_at_end.max(at_end);
    outcome.last_loss_ns = outcome.last_loss_ns.max(seen.last_loss_ns).max(whole);
    outcome.outage_ns =
        outcome.outage_ns.max(Some(seen.outage_ns.max(offer.lasts(at_end / width.max(1) as u64))));
}
