//! A run from start to result: shares a job among workers, watches both ends, and makes the report.
//!
//! ```text
//!   a thread for each worker: Engine::run --> Control --.
//!                                                        >---- sampled 10 times a second: intervals, progress line
//!   kernel: meter ---------------------> Snapshot ------'      (watch.rs, intended.rs)
//!   an engine, or another if nobody sees its frames leave (attempt.rs)
//!   afterwards: add up the workers, wait for stragglers (settle.rs), compare with the interface's own counters, judge (outcome.rs)
//! ```

mod attempt;
mod background;
mod by_hand;
pub(crate) mod content;
pub(crate) mod counters;
mod fill;
mod intended;
pub(crate) mod judge;
mod losses;
mod meters;
mod moves;
mod ports;
mod settle;
mod stragglers;
pub(crate) mod together;
mod trust;
mod watch;

pub(crate) use fill::measured::{
    MOST_STREAMS, WatchedClock, fill_measured, judge_inter_arrival, list_streams, stream,
};
pub(crate) use fill::sent::count_flows;
pub(crate) use judge::sent::{oddities, stream_notes};
pub use judge::surplus::more_than_sent;
pub(crate) use meters::blind;
pub use ports::PerPort;

use crate::carrier::Ends;
use crate::claims::Beside;
use crate::device_xdp::Watching;
use crate::distrusted::Distrusted;
use crate::dropped::{Follow, Trace, Tracing};
use crate::engines;
use crate::environment;
use crate::place::Place;
use crate::recorder::Recorder;
use crate::session::{Late, Session};
use anyhow::{Context, Result, anyhow, bail};
use attempt::Run;
use engine::{Control, Ended, Engine, Job, Sent};
use fill::Outcome;
use meter::Meter;
use meters::Meters;
pub(crate) use meters::{not_by_xdp, on_loopback};
use moves::Moves;
use report::{Choice, Code, NotTaken, Report, Resolved, Warnings};
use settle::Settled;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};
use traffic::Program;
use trust::Suspicion;
use watch::Watch;
use wire::LinkType;
use wire::layers::Layers;
use wire::numbers::protocol;

/// Everything a sending run needs.
pub struct Setup {
    /// What the result is called.
    pub command: &'static str,
    /// What was asked for, in numbers.
    pub resolved: Resolved,
    /// Opens the engines. Called when the meter stands: a veth takes live frames only while its peer has an XDP program.
    pub open: Open,
    /// What is to be sent in all; of several workers each gets its share of the program.
    pub job: Job,
    /// What the session's runs before have seen of engines; all runs of one session share it.
    pub distrusted: Distrusted,
    /// Frames of up to so many bytes.
    pub longest: usize,
    /// Frames there will be in all, when that is known.
    pub total: Option<u64>,
    /// Where frames leave: a stream names its port by the place in this list. Their counters are compared. None: the engine
    /// sends nothing.
    pub tx: Vec<Place>,
    /// Where they arrive, in the same order.
    pub rx: Vec<(Place, meter::Options)>,
    /// Each port sends a program of its own, by workers of its own; without it each worker sends by all ports.
    pub per_port: Option<PerPort>,
    /// Frames come back to where they are sent, which is then in `rx`, too.
    pub round_trip: bool,
    /// What this host's kernel drops meanwhile is traced.
    pub trace: Trace,
    /// It is traced already, in a lab: what is dropped is looked at while the run lasts.
    pub follow: Option<Follow>,
    /// What arrives is captured, too.
    pub capture: Option<spec::Capture>,
    /// Where nothing has arrived yet, the first frame is waited for as long as stragglers are at most.
    pub patient: bool,
    /// Only a signal ends it.
    pub endless: bool,
    /// A rate that is not reached is a warning, and no shortfall.
    pub best_effort: bool,
    /// What was stopped is of no use: then nothing is waited for any more.
    pub discarded: bool,
    /// Tells what was sent so far, now and then.
    pub interim: Option<Interim>,
    /// One worker on each of these CPUs; `None`: wherever the kernel puts it.
    pub cpus: Vec<Option<usize>>,
    /// Of the workers.
    pub priority: engine::Priority,
    /// What is known before the run.
    pub warnings: Warnings,
    /// Why captures were not sent to their ends: each falls short as `capture-damaged`.
    pub damage: Vec<String>,
    /// Frames of each side captured shorter than they were, of how many in all.
    pub truncated: ([u64; 2], u64),
    /// Who ends it, who looks on, and the runs side by side with it: they wait for each other where one would disturb the others.
    pub session: Session,
    /// When sending began, by CLOCK_MONOTONIC, is stored here.
    pub began_ns: Option<Arc<AtomicU64>>,
    /// Told ten times a second how it stands, by whoever runs this as a part of something larger.
    pub onlooker: Option<Onlooker>,
}

impl Setup {
    /// Whether frames that leave together may carry one time: only this run's own meter knows of it, and tells.
    pub(crate) fn stamps_together(&self) -> bool {
        let facts = self.job.source.facts();
        let is_signed_at_top_speed = !facts.paced && !facts.streams.is_empty();
        is_signed_at_top_speed && !self.rx.is_empty() && !self.session.among.measured
    }

    /// A run of one worker that tells nobody how it stands, from nowhere to nowhere as yet.
    pub fn of(command: &'static str, open: Open, job: Job, longest: usize) -> Setup {
        Setup {
            command,
            resolved: Resolved::default(),
            open,
            total: job.count,
            job,
            distrusted: Distrusted::default(),
            longest,
            tx: Vec::new(),
            rx: Vec::new(),
            per_port: None,
            round_trip: false,
            trace: Trace::No,
            follow: None,
            capture: None,
            patient: false,
            endless: false,
            best_effort: false,
            discarded: false,
            interim: None,
            cpus: vec![None],
            priority: engine::Priority::default(),
            warnings: Warnings::default(),
            damage: Vec::new(),
            truncated: ([0, 0], 1),
            session: Session::default(),
            began_ns: None,
            onlooker: None,
        }
    }
}

impl Setup {
    /// Is it one of the ports that send?
    fn sends_there(&self, measured: &Place) -> bool {
        let named = || self.tx.iter().any(|place| place.spec == measured.spec);
        self.round_trip || self.per_port.is_some() && named()
    }

    /// What a port that sends is for.
    fn role(&self, port: &Place) -> &'static str {
        let named = || self.rx.iter().any(|(place, _)| place.spec == port.spec);
        let measures = self.round_trip || self.per_port.is_some() && named();
        if measures { "send and measure" } else { "send" }
    }

    /// How many workers have a part of the same stream, each under a number of its own.
    fn workers_of_a_stream(&self) -> usize {
        self.per_port.as_ref().map_or(self.cpus.len(), |per_port| per_port.workers)
    }
}

/// See [`Setup::onlooker`].
#[derive(Clone)]
pub struct Onlooker {
    /// Called with each snapshot of the run.
    pub tell: Arc<dyn Fn(snapshot::Snapshot) + Send + Sync>,
    /// It wants to know more than totals.
    pub closely: bool,
}

/// What was sent so far is reported in these intervals.
#[derive(Debug, Clone, Copy)]
pub struct Interim {
    /// From one time to the next.
    pub every: Duration,
    /// Called with what was sent so far.
    pub tell: fn(&report::Totals),
}

/// A way to open engines.
pub type Open = Box<dyn Fn(&Wanted<'_>) -> Result<Opened>>;

/// What engines are opened for.
pub struct Wanted<'a> {
    /// Where frames are to leave: each worker has a sender at all of them, by which it sends what streams say leaves there.
    /// None: nowhere.
    pub places: &'a [Place],
    /// The whole program, and what each worker sends of it; none when a capture is streamed.
    pub program: Option<&'a Arc<Program>>,
    /// What each worker sends.
    pub shares: &'a [Arc<Program>],
    /// The CPU of each worker; as many workers as there are.
    pub cpus: &'a [Option<usize>],
    /// Frames of up to so many bytes.
    pub longest: usize,
    /// So many frames at most, and for so long, where that is known.
    pub most: (Option<u64>, Option<Duration>),
    /// Where a meter of ours drops by now whatever arrives, before anybody could change it; if anywhere.
    pub measured: Option<&'a Place>,
    /// How frames are kept to their times.
    pub pacing: engine::Pacing,
    /// The clock whose times signatures carry.
    pub clock: engine::clock::Clock,
    /// A meter of this run reads them, which knows if frames that leave together carry one time.
    pub together: bool,
    /// What arrives where frames are sent counts, too: no engine may keep it away from the meter.
    pub receives: bool,
    /// Engines that were tried and whose frames nobody saw leave.
    pub distrusted: &'a [NotTaken],
    /// When it is set, no driver is waited for any more.
    pub stop: &'a AtomicBool,
    /// Who is to stamp frames as they leave.
    pub stamps: Option<spec::Stamps>,
    /// What live frames need besides the interface, under way since before the meter.
    pub early: Option<&'a xdp::way::Early>,
}

/// What holds engines and closures has no more to show than its name.
macro_rules! named {
    ($($name:literal $type:ty),*) => {
        $(impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct($name).finish_non_exhaustive()
            }
        })*
    };
}

named!("Onlooker" Onlooker, "Setup" Setup, "Wanted" Wanted<'_>, "Opened" Opened);

/// Engines ready to run, one for each CPU of [`Wanted`].
pub struct Opened {
    /// One for each worker.
    pub workers: Vec<Box<dyn Engine>>,
    /// Which engine it is, and why.
    pub choice: Choice,
    /// There is another engine to take, should nobody see this one's frames leave.
    pub replaceable: bool,
}

/// How often both ends are looked at.
const SAMPLE: Duration = Duration::from_millis(100);

/// Tells whoever looks on, also when sending panics.
struct SetAtEnd<'a>(&'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Looks at each meter, in a thread for each, while frames are sent, until the flag says that none is any more.
pub type Observe<'a> = &'a (dyn Fn(&Meter, &AtomicBool) + Sync);

/// Runs it.
///
/// # Errors
/// Why nothing was sent, or could be measured.
pub fn run(setup: Setup) -> Result<Report> {
    run_observed(setup, None)
}

/// Runs it, while `observe` looks on in a thread of its own.
///
/// # Errors
/// As [`run`].
pub fn run_observed(mut setup: Setup, observe: Option<Observe<'_>>) -> Result<Report> {
    let own = match &setup.per_port {
        Some(per_port) => per_port.jobs(&setup.job, shared_out)?,
        None => shared_out(&setup.job, setup.cpus.len())?,
    };
    let mut report = begun(&mut setup, &own);
    let mut beside = Beside::begin(&setup.cpus, setup.priority);
    report.warnings.extend(beside.warnings());
    let ends = links(&setup)?;
    let tracing = tracing(&setup);
    setup.follow = setup.follow.take().or_else(|| tracing.follow());
    let device = Watching::begin(&setup.tx.iter().collect::<Vec<_>>());
    let recorder = recorder(&setup)?;
    let (meters, blind_because) = attach(&setup, &own, recorder.as_ref(), &mut report)?;
    beside.ready();
    let mut run = Run::of(setup, own, report, meters.as_ref());
    let attempt = run.attempts(ends, observe)?;
    let settled = run.settle(attempt)?;
    let Run { setup, own, mut report, moves, .. } = run;
    // The meter closes first: what arrives while the rest is worked out is not of this run.
    let measured = meters.map(Meters::finish);
    let jobs: &[Job] = if own.is_empty() { std::slice::from_ref(&setup.job) } else { &own };
    let Settled { engine, counts, merged, due, moved, marks, clock, workers } = settled;
    let done = Outcome { setup: &setup, jobs, engine, counts, merged };
    fill::sent::fill_tx(&mut report, &done, due);
    report.result.parts_of_a_stream = u32::try_from(setup.workers_of_a_stream()).unwrap_or(0);
    judge::sent::sent(&mut report, &done);
    fill::departures::fill(&mut report, &done);
    judge::departures::judge(&mut report);
    let others = setup.beside_jobs();
    for (port, (place, (moved, seen))) in setup.tx.iter().zip(moved).enumerate() {
        counters::compare_counters(
            &mut report,
            place,
            fill::sent_by(done.sent(), port),
            moved,
            &seen,
            others,
        );
    }
    if let (Some(recorder), Some(measured)) = (&recorder, &measured) {
        let counted = measured.parts.iter().map(|part| (part.frames + part.strays, part.captured));
        recorder.finish(&counted.collect::<Vec<_>>(), &mut report);
    }
    if let Some(measured) = measured {
        let numbered = arrived(&mut report, &done, &measured, blind_because);
        let lost = report.result.loss.map_or(0, |loss| loss.frames);
        losses::put(&mut report.intervals, &marks, lost, numbered);
        moves.tell(&mut report);
        judge::surplus::judge(&mut report, &fill::received::signed(&done, &measured.whole), &measured.whole);
        if let Some(clock) = clock {
            clock.tell(&mut report, &measured.whole);
        }
        let asked = setup.rx.iter().any(|(_, options)| options.inter_arrival);
        fill::measured::withhold(&mut report, asked, setup.workers_of_a_stream() > 1);
    }
    judge::judge(&mut report, &done);
    tracing.finish(&mut report);
    device.finish(&mut report);
    drop(workers);
    beside.tell(&mut report);
    Ok(report)
}

/// What is known of a run before it: what was asked, where it runs, and what of that to know before the figures are trusted.
fn begun(setup: &mut Setup, own: &[Job]) -> Report {
    let mut report = Report::new(setup.command);
    report.resolved = std::mem::take(&mut setup.resolved);
    report.environment = environment::collect();
    report.warnings = std::mem::take(&mut setup.warnings);
    for (job, cpu) in own.iter().zip(&setup.cpus) {
        if is_idle(job) {
            let core = cpu.map_or("one core".to_owned(), |cpu| format!("core {cpu}"));
            report.warnings.add(Code::CoreIdle, format!(
                "{core} has nothing to send: there are fewer frames, or fewer flows of a capture, than cores"
            ));
        }
    }
    report.result.round_trip = setup.round_trip;
    report
        .warnings
        .extend(judge::too_long(setup).map(|long| Code::FramesTooLong.says((long.said, long.remedy))));
    for place in &setup.tx {
        report.environment.interfaces.push(place.describe(setup.role(place)));
    }
    report
}

/// Begins to trace what this host's kernel drops, if that is wanted.
fn tracing(setup: &Setup) -> Tracing {
    let meters: Vec<&Place> = setup.rx.iter().map(|(place, _)| place).collect();
    let senders: Vec<&Place> = setup.tx.iter().collect();
    Tracing::begin(setup.trace, setup.job.stamps, &senders, &meters)
}

/// Begins the capture of what arrives, if there is to be one.
fn recorder(setup: &Setup) -> Result<Option<Recorder>> {
    let Some(asked) = setup.capture.as_ref().filter(|_| !setup.rx.is_empty()) else { return Ok(None) };
    let names: Vec<String> = setup.rx.iter().map(|(place, _)| place.spec.clone()).collect();
    Recorder::begin(asked, (setup.command, &names), true).map(Some)
}

/// Attaches the meters. With why what one of them misses proves no loss.
fn attach(
    setup: &Setup,
    own: &[Job],
    recorder: Option<&Recorder>,
    report: &mut Report,
) -> Result<(Option<Meters>, Option<String>)> {
    let (mut attached, mut blind_because) = (Vec::new(), None);
    for (number, (place, _)) in (0..).zip(&setup.rx) {
        // What is asked of the first is asked of all.
        let Some((_, options)) = setup.rx.first() else { break };
        let mut options = with_room_for(options, own);
        options.arrivals = options.arrivals.min(times_to_keep(setup));
        options.capture =
            recorder.zip(setup.capture.as_ref()).map(|(recorder, asked)| recorder.of(asked, number));
        options.ignore_icmp_errors = setup.round_trip && !sends_icmp(&setup.job);
        let (meter, warning) = meters::attach(place, &options, setup.longest)?;
        if !setup.sends_there(place) {
            report.environment.interfaces.push(place.describe("measure"));
        }
        let blind = meters::blind(&meter, place);
        report.warnings.extend(warning.map(|said| Code::MeterFailed.says(said)));
        report.warnings.extend(blind.clone().map(|said| Code::MeterBlind.says(said)));
        blind_because = blind_because.take().or(blind);
        attached.push(meter);
    }
    report.environment.meter = attached.first().map(mode);
    Ok((Meters::of(attached, setup.per_port.clone()), blind_because))
}

/// Times of arrival that there must be room for: what is to be sent, and as much again for what a device doubles or others send. The kernel
/// empties all memory that it gives, and that of the most times there are (32 MB) may take it longer than all else before the first frame.
fn times_to_keep(setup: &Setup) -> usize {
    const BESIDE: u64 = 1000;
    let within = |duration: Duration| {
        let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        engines::due_at_most(setup.job.source.program()?, ns)
    };
    let all = [setup.total, setup.job.duration.and_then(within)].into_iter().flatten().min();
    let room = all.map(|all| all.saturating_mul(2).saturating_add(BESIDE));
    room.map_or(usize::MAX, |room| usize::try_from(room).unwrap_or(usize::MAX))
}

/// Says what arrived. Returns how many frames had numbers, if it is by those that the loss is known.
fn arrived(
    report: &mut Report,
    done: &Outcome<'_>,
    measured: &meters::Measured,
    mut blind_because: Option<String>,
) -> Option<u64> {
    let setup = done.setup;
    for ((place, _), _) in setup.rx.iter().zip(&measured.parts).filter(|(_, part)| !part.attached) {
        let said = format!("{} during the run", place.why_ended("its meter"));
        report.result.verdict.fall_short(Code::MeterFailed, said.clone());
        blind_because = Some(said);
    }
    let received = fill::received::fill_rx(report, done, measured);
    judge::received::received(report, done, &measured.whole, &received);
    let lost = report.result.loss.map_or(0, |loss| loss.frames);
    for ((place, _), part) in setup.rx.iter().zip(&measured.parts).filter(|(_, part)| part.drops) {
        counters::leave_out_own(&mut report.result.counters, &place.spec, part.frames + part.strays, lost);
    }
    if let Some(rx) = &mut report.result.rx {
        rx.blind_because = blind_because;
    }
    received.numbered
}

/// The links of both ends, from now on.
fn links(setup: &Setup) -> Result<Ends> {
    let mut ends = Ends::none();
    for place in &setup.tx {
        ends.needed(place, setup.role(place))?;
    }
    for (place, _) in setup.rx.iter().filter(|(place, _)| !setup.sends_there(place)) {
        ends.needed(place, "measure")?;
    }
    Ok(ends)
}

/// What the hosts count at each end, from now on.
fn begin_counting(setup: &Setup) -> Result<Vec<(String, port::watch::Watch)>> {
    let rx = setup.rx.iter().map(|(place, _)| place).filter(|place| !setup.sends_there(place));
    let ends = setup.tx.iter().chain(rx).enumerate();
    let begin = |(end, place): (usize, &Place)| {
        let name = &place.interface.name;
        Ok((place.spec.clone(), place.run_in(|| port::watch::Watch::begin(name, end == 0))?))
    };
    ends.map(begin).collect()
}

/// What each of several workers is to send; empty for one worker, which sends the whole.
fn shared_out(job: &Job, workers: usize) -> Result<Vec<Job>> {
    if workers <= 1 {
        return Ok(Vec::new());
    }
    let of = u32::try_from(workers)?;
    let Some(program) = job.source.program() else {
        let share = |worker: u32| -> Result<Job> {
            let Some(source) = job.source.share(worker, of)? else {
                bail!(
                    "`.cores`: frames that are read while they are sent have one reader, and so one core: leave out `.cores`, or have a capture read into memory first with `.preload`"
                )
            };
            let count = job.count.map(|count| count.saturating_sub(worker.into()).div_ceil(of.into()));
            Ok(among(job.share(source, count), workers))
        };
        return (0..of).map(share).collect();
    };
    let share = |worker: u32| -> Result<Job> {
        let count = match job.count {
            None => None,
            Some(count) => Some(program.share_count(worker, of, count).with_context(|| {
                format!(
                    "`.count` {count} cannot be shared out among {workers} cores, because streams with rates of their own take part in it: give a `.duration` instead, or one core"
                )
            })?),
        };
        Ok(among(job.share(program.share(worker, of), count), workers))
    };
    (0..of).map(share).collect()
}

/// The part of one of so many workers, who catch up together as one would.
fn among(job: Job, workers: usize) -> Job {
    Job { pacing: job.pacing.among(workers), ..job }
}

/// A share without frames needs no thread.
fn is_idle(job: &Job) -> bool {
    let empty = job.source.program().is_some_and(|program| program.lanes.is_empty());
    empty || job.count == Some(0)
}

/// Are there streams of ICMP? Signatures in captured frames stand in TCP and UDP only.
fn sends_icmp(job: &Job) -> bool {
    let Some(program) = job.source.program() else { return false };
    program.streams.iter().filter(|stream| !stream.is_captured()).any(|stream| {
        let layers = Layers::parse(LinkType::ETHERNET, stream.templates.get(0));
        matches!(layers.ip_protocol, Some(protocol::ICMP | protocol::ICMPV6))
    })
}

/// Each worker's streams have numbers of their own, and the meter must tell all of them apart.
fn with_room_for(options: &meter::Options, jobs: &[Job]) -> meter::Options {
    let numbers = jobs.iter().filter_map(|job| job.source.facts().streams.into_iter().max());
    let streams = numbers.max().map_or(0, |most| most.saturating_add(1));
    meter::Options { streams: options.streams.max(streams), ..options.clone() }
}

fn open(setup: &Setup, shares: &[Job], meter: Option<&Meter>, distrusted: &[NotTaken]) -> Result<Opened> {
    let program = |job: &Job| job.source.program().cloned();
    let whole = program(&setup.job);
    let shares: Vec<Arc<Program>> = match shares {
        [] => whole.iter().cloned().collect(),
        shares => shares.iter().filter_map(program).collect(),
    };
    let wanted = Wanted {
        places: &setup.tx,
        program: whole.as_ref(),
        shares: &shares,
        cpus: &setup.cpus,
        longest: setup.longest,
        most: (setup.job.count, setup.job.duration),
        // What comes back was changed at the far end.
        measured: setup.rx.first().filter(|_| keeps(meter) && !setup.round_trip).map(|(place, _)| place),
        pacing: setup.job.pacing,
        clock: setup.job.stamps,
        together: setup.stamps_together(),
        receives: {
            let here = |(at, _): &(Place, meter::Options)| setup.tx.iter().any(|place| place.is_same_as(at));
            setup.round_trip || setup.rx.iter().any(here)
        },
        distrusted,
        stop: &setup.session.stop,
        stamps: None,
        early: None,
    };
    let opened = match &setup.per_port {
        None => (setup.open)(&wanted)?,
        Some(per_port) => ports::open(setup, per_port.workers, &wanted)?,
    };
    if opened.workers.len() != setup.cpus.len() {
        bail!(
            "{} engines were opened for {} workers: this is a defect of netdyno",
            opened.workers.len(),
            setup.cpus.len()
        );
    }
    Ok(opened)
}

/// Does the meter drop frames before anything else sees them?
fn keeps(meter: Option<&Meter>) -> bool {
    meter.is_some_and(|meter| meter.mode() == meter::Mode::XdpNative && meter.drops())
}

/// Ends the others when one worker ends badly, so that the run ends in an orderly way; also when it panics.
struct EndsAll<'a> {
    stop: &'a AtomicBool,
    well: bool,
}

impl Drop for EndsAll<'_> {
    fn drop(&mut self) {
        if !self.well {
            self.stop.store(true, Relaxed);
        }
    }
}

/// A thread for each worker that has something to send; watches until all have ended. `None`: they were ended, because
/// nobody saw a frame of theirs leave.
fn send(
    engines: &mut [Box<dyn Engine>],
    jobs: &mut [Job],
    (cpus, priority, moves): (&[Option<usize>], engine::Priority, &Moves),
    (session, begins): (&Session, engine::Begins),
    watch: &mut Watch<'_>,
    mut suspicion: Option<&mut Suspicion<'_>>,
) -> Result<Option<Vec<Sent>>> {
    let user = &*session.stop;
    // A worker that ends badly, or a run that is broken off, was not stopped by the user, which would end waiting for frames
    // under way and for the runs beside.
    let halt = Arc::new(AtomicBool::new(user.load(Relaxed)));
    let stop = &halt;
    let mut refuted = false;
    let alone = jobs.len() == 1;
    let idle: Vec<bool> = jobs.iter().map(|job| !alone && is_idle(job)).collect();
    let busy_workers = idle.iter().filter(|idle| !**idle).count();
    if let (0, engine::Begins::Held(hold)) = (busy_workers, &begins) {
        // Who shares frames with others and has none is ready all the same.
        hold.wait(user);
    }
    let mut controls = Control::beginning(busy_workers, stop, begins);
    controls.iter_mut().for_each(|control| control.priority = priority);
    let parts = engines.iter_mut().zip(jobs.iter_mut()).zip(cpus).zip(&idle);
    let busy = parts.filter(|(_, idle)| !**idle).map(|(part, _)| part).zip(&controls);
    let sent = std::thread::scope(|scope| {
        let senders: Vec<_> = busy
            .map(|(((engine, job), cpu), control)| {
                scope.spawn(move || {
                    if let Some(cpu) = cpu {
                        pin(*cpu);
                    }
                    let mut ends_all = EndsAll { stop: &control.stop, well: false };
                    let sent = moves.during(cpu.is_some(), || engine.run(job, control));
                    ends_all.well = matches!(sent.ended, Ended::Done | Ended::Stopped);
                    sent
                })
            })
            .collect();
        let over = || senders.iter().all(|sender| sender.is_finished());
        while !over() {
            watch.obey(&controls);
            watch.sample(&controls);
            // In small steps, so that a short run is not held up by its own watching.
            let next = Instant::now() + SAMPLE;
            while !over() && Instant::now() < next && !watch.obey(&controls) {
                if let Some(suspicion) = &mut suspicion {
                    let handed = controls.iter().map(|control| control.frames.load(Relaxed)).sum();
                    refuted = refuted || suspicion.refuted(handed);
                }
                if refuted || user.load(Relaxed) {
                    stop.store(true, Relaxed);
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        watch.settle();
        let sent: std::thread::Result<Vec<Sent>> = senders.into_iter().map(|sender| sender.join()).collect();
        sent
    });
    let sent = sent.map_err(|_| anyhow!("a sending thread panicked: this is a defect of netdyno"))?;
    if let Some(by_ns) = controls.first().and_then(|control| control.gate.late_ns()) {
        return Err(Late { by_ns }.into());
    }
    let mut sent = sent.into_iter();
    let of = |idle: &bool| if *idle { Some(Sent::idle()) } else { sent.next() };
    if refuted && !user.load(Relaxed) {
        return Ok(None);
    }
    idle.iter().map(of).collect::<Option<_>>().context("a worker is missing").map(Some)
}

/// How the meter works, for the report.
pub fn mode(meter: &Meter) -> Choice {
    let name = match meter.mode() {
        meter::Mode::XdpNative | meter::Mode::Auto => "xdp",
        meter::Mode::XdpGeneric => "xdp-generic",
        meter::Mode::PacketSocket => "packet",
    };
    Choice { name: name.to_owned(), reason: meter.reason().to_owned(), ..Choice::default() }
}

fn pin(cpu: usize) {
    let mut set = rustix::thread::CpuSet::new();
    if cpu < rustix::thread::CpuSet::MAX_CPU {
        set.set(cpu);
        // An impossible CPU was refused when the command line was read; else unpinned is slower, not wrong.
        let _ = rustix::thread::sched_setaffinity(None, &set);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use traffic::program::Lane;
    use traffic::{Schedule, Stream};

    fn job(lanes: u32, count: Option<u64>) -> Job {
        let lane = |n| Lane::new([n], Schedule::Frames { frames: 1, per_ns: 1_000_000 });
        let streams = (0..lanes).map(|n| Stream::of(format!("{n}"), &[0; 60])).collect();
        let program = Program { streams, lanes: (0..lanes).map(lane).collect() };
        Job { count, ..Job::program(program) }
    }

    #[test]
    fn counts_are_shared_out_exactly_and_of_several_rates_not_at_all() {
        assert!(shared_out(&job(1, Some(10)), 1).expect("one worker sends the whole").is_empty());
        let counts = |jobs: Vec<Job>| jobs.iter().map(|job| job.count).collect::<Vec<_>>();
        let shares = shared_out(&job(1, Some(10)), 3).expect("one lane");
        assert_eq!(counts(shares), [Some(4), Some(3), Some(3)]);
        assert_eq!(counts(shared_out(&job(2, None), 2).expect("no count")), [None, None]);
        let error = shared_out(&job(2, Some(10)), 2).expect_err("several lanes").to_string();
        assert!(error.contains("`.count` 10") && error.contains("`.duration`"), "{error}");
    }

    #[test]
    fn there_is_room_for_the_times_of_what_is_sent_and_as_many_more_and_for_all_where_that_is_not_known() {
        let room = |lanes: u32, total: Option<u64>, duration: Option<Duration>| {
            let job = Job { duration, ..job(lanes, total) };
            let open: Open = Box::new(|_| bail!("nothing is opened"));
            times_to_keep(&Setup { total, ..Setup::of("send", open, job, 60) })
        };
        assert_eq!(room(1, Some(100), None), 1200);
        // A thousand a second, and the first at once.
        assert_eq!(room(1, None, Some(Duration::from_secs(2))), 2 * 2001 + 1000);
        assert_eq!(room(3, None, Some(Duration::from_secs(2))), 3 * 2 * 2001 + 1000);
        assert_eq!(room(1, Some(100), Some(Duration::from_secs(2))), 1200);
        assert_eq!(room(1, Some(u64::MAX), None), usize::MAX);
        assert_eq!(room(1, None, None), usize::MAX);
    }

    #[test]
    fn a_worker_that_fails_or_panics_ends_the_others() {
        for well in [true, false] {
            let stop = AtomicBool::new(false);
            drop(EndsAll { stop: &stop, well });
            assert_eq!(stop.load(Relaxed), !well);
        }
    }
}
