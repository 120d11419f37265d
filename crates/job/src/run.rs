//! A run from start to result: shares a job among workers, watches both ends, and makes the report.
//!
//! ```text
//!   a thread for each worker: Engine::run --> Control --.
//!                                                        >---- sampled 10 times a second: intervals, progress line
//!   kernel: meter ---------------------> Snapshot ------'      (watch.rs, offered.rs)
//!   afterwards: add up the workers, wait for stragglers, compare with the interface's own counters, judge (outcome.rs)
//! ```

mod background;
mod by_hand;
pub(crate) mod content;
pub(crate) mod counters;
mod departures;
mod losses;
mod meters;
mod moves;
mod offered;
pub(crate) mod outcome;
pub(crate) mod pace;
mod received;
mod stragglers;
mod surplus;
pub(crate) mod together;
mod trust;
mod watch;

pub(crate) use meters::blind;
pub(crate) use outcome::{count_flows, oddities, stream_notes};
pub(crate) use received::{WatchedClock, fill_measured, list_streams, stream};

use crate::carrier::{Ends, Following, Lasted};
use crate::claims::Beside;
use crate::engines;
use crate::environment;
use crate::panel::Panel;
use crate::place::Place;
use crate::session::Session;
use anyhow::{Context, Result, anyhow, bail};
use counters::Seen;
use engine::source::Source;
use engine::{Control, Counts, Ended, Engine, Job, Merged, Sent};
use meter::Meter;
use meters::Meters;
pub(crate) use meters::not_by_xdp;
use moves::Moves;
use outcome::Outcome;
use port::interface::{CounterReader, Counters};
use report::{Choice, NotTaken, Report, Requested, Witness};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use together::Stage;
use traffic::Program;
use trust::Suspicion;
use watch::Watch;
use wire::LinkType;
use wire::layers::Layers;

/// Everything a sending run needs.
pub struct Setup {
    pub command: &'static str,
    pub requested: Requested,
    /// Opens the engines. Called when the meter stands: a veth takes live frames only while its peer has an XDP program.
    pub open: Open,
    /// What is to be sent in all; of several workers each gets its share of the program.
    pub job: Job,
    /// What the session's runs before have seen of engines; all runs of one session share it.
    pub distrusted: engines::Distrusted,
    /// Frames of up to so many bytes.
    pub longest: usize,
    /// Frames there will be in all, when that is known.
    pub total: Option<u64>,
    /// Where frames leave. Its counters are compared, unless the engine sends nothing.
    pub tx: Option<Place>,
    pub rx: Option<(Place, meter::Options)>,
    /// Where frames of the second side leave and arrive.
    pub second: Second,
    /// Frames come back to where they are sent, which is then `rx`, too.
    pub round_trip: bool,
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
    pub warnings: Vec<String>,
    /// Why captures were not sent to their ends.
    pub damage: Vec<String>,
    /// Frames of each side captured shorter than they were, of how many in all.
    pub truncated: ([u64; 2], u64),
    /// Who ends it, who looks on, and the runs side by side with it: they wait for each other where one would disturb the others.
    pub session: Session,
    /// Told ten times a second how it stands, by whoever runs this as a part of something larger.
    pub onlooker: Option<Onlooker>,
}

impl Setup {
    /// A run of one worker that tells nobody how it stands, from nowhere to nowhere as yet.
    pub fn of(command: &'static str, open: Open, job: Job, longest: usize) -> Setup {
        Setup {
            command,
            requested: Requested::default(),
            open,
            total: job.count,
            job,
            distrusted: engines::Distrusted::default(),
            longest,
            tx: None,
            rx: None,
            second: Second::default(),
            round_trip: false,
            patient: false,
            endless: false,
            best_effort: false,
            discarded: false,
            interim: None,
            cpus: vec![None],
            priority: engine::Priority::default(),
            warnings: Vec::new(),
            damage: Vec::new(),
            truncated: ([0, 0], 1),
            session: Session::default(),
            onlooker: None,
        }
    }
}

/// See [`Setup::onlooker`].
#[derive(Clone)]
pub struct Onlooker {
    pub tell: Arc<dyn Fn(snapshot::Snapshot) + Send + Sync>,
    /// It wants to know more than totals.
    pub closely: bool,
}

/// The second interface of a run, if there is one.
#[derive(Debug, Default)]
pub struct Second {
    pub tx: Option<Place>,
    pub rx: Option<(Place, meter::Options)>,
}

/// What was sent so far is told in these intervals.
#[derive(Debug, Clone, Copy)]
pub struct Interim {
    pub every: Duration,
    pub tell: fn(&report::Totals),
}

/// A way to open engines.
pub type Open = Box<dyn Fn(&Wanted<'_>) -> Result<Opened>>;

/// What engines are opened for.
pub struct Wanted<'a> {
    /// Where frames are to leave; `None`: nowhere.
    pub place: Option<&'a Place>,
    /// Where those of the second side are to leave, if that is elsewhere.
    pub second: Option<&'a Place>,
    /// The whole program, and what each worker sends of it; none when a capture is streamed.
    pub program: Option<&'a Arc<Program>>,
    pub shares: &'a [Arc<Program>],
    /// The CPU of each worker; as many workers as there are.
    pub cpus: &'a [Option<usize>],
    /// Frames of up to so many bytes.
    pub longest: usize,
    /// Where a meter of ours drops by now whatever arrives, before anybody could change it; if anywhere.
    pub measured: Option<&'a Place>,
    /// How fast to catch up after a stall.
    pub catch_up: f64,
    /// What arrives where frames are sent counts, too: no engine may keep it away from the meter.
    pub receives: bool,
    /// Engines that were tried and whose frames nobody saw leave.
    pub distrusted: &'a [NotTaken],
    /// When it is set, no driver is waited for any more.
    pub stop: &'a AtomicBool,
    /// Who is to stamp frames as they leave.
    pub stamps: Option<spec::Stamps>,
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
    pub workers: Vec<Box<dyn Engine>>,
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

/// Looks at the meter while frames are sent, until the flag says that none is any more.
pub type Observe<'a> = &'a (dyn Fn(&Meter, &AtomicBool) + Sync);

/// Runs it.
pub fn run(setup: Setup) -> Result<Report> {
    run_observed(setup, None)
}

/// Runs it, while `observe` looks on in a thread of its own.
pub fn run_observed(mut setup: Setup, observe: Option<Observe<'_>>) -> Result<Report> {
    let mut own = shared_out(&setup.job, setup.cpus.len())?;
    let mut report = Report::new(setup.command);
    report.requested = std::mem::take(&mut setup.requested);
    report.environment = environment::collect();
    report.warnings = std::mem::take(&mut setup.warnings);
    for (job, cpu) in own.iter().zip(&setup.cpus) {
        if is_idle(job) {
            let core = cpu.map_or("one core".to_owned(), |cpu| format!("core {cpu}"));
            report.warnings.push(format!(
                "{core} has nothing to send: there are fewer frames, or fewer flows of a capture, than cores"
            ));
        }
    }
    report.result.round_trip = setup.round_trip;
    report.warnings.extend(outcome::too_long(&setup));
    let beside = Beside::begin(&setup.cpus, setup.priority);
    report.warnings.extend(beside.warnings());
    for place in setup.tx.iter().chain(&setup.second.tx) {
        let role = if setup.round_trip { "send and measure" } else { "send" };
        report.environment.interfaces.push(place.describe(role));
    }
    let ends = links(&setup)?;
    let mut blind_because = None;
    let meter = match &setup.rx {
        None => None,
        Some(rx) => {
            let mut options = with_room_for(&rx.1, &own);
            options.ignore_icmp_errors = setup.round_trip && !sends_icmp(&setup.job);
            let mut attach = |(place, _): &(Place, meter::Options)| -> Result<meter::Meter> {
                let (meter, warning) = meters::attach(place, &options, setup.longest)?;
                if !setup.round_trip {
                    report.environment.interfaces.push(place.describe("measure"));
                }
                let blind = meters::blind(&meter, place);
                report.warnings.extend(warning.into_iter().chain(blind.clone()));
                blind_because = blind_because.take().or(blind);
                Ok(meter)
            };
            let first = attach(rx)?;
            let second = setup.second.rx.as_ref().map(attach).transpose()?;
            report.environment.meter = Some(mode(&first));
            Some(Meters::new(first, second))
        }
    };
    let mut ends = Some(ends);
    // Of a part of something larger, that one tells.
    let mut panel = setup.onlooker.is_none().then(|| Panel::of(&setup.session.board));
    let mut shown = false;
    let moves = Moves::default();
    let signs = trust::signs(&setup.job);
    // What comes back to the sender does not say what left.
    let witness = meter.as_ref().filter(|_| !setup.round_trip);
    let arrived = |witness: &Meters| trust::arrived(witness, signs);
    let mut distrusted = setup.tx.as_ref().map(|place| setup.distrusted.at(place)).unwrap_or_default();
    let Attempt { mut watch, engine, counts, mut counters, mut counting, clock, following, sent, workers } = loop {
        let first = meter.as_ref().map(Meters::first);
        // Another engine may attach programs of its own, which may take links down again.
        let ends = ends.take().map_or_else(|| links(&setup), Ok)?;
        let opened = open(&setup, &own, first, &distrusted)?;
        let mut workers = opened.workers;
        let engine = workers.first().map_or("none", |worker| worker.name());
        let counts = workers.first().map_or(Counts::Accepted, |worker| worker.counts());
        let doubted = counts == Counts::HandedOver && opened.replaceable && setup.second.tx.is_none();
        report.environment.engine = Some(opened.choice);
        // All is attached that will be.
        setup.meet(Stage::Attached);
        let following = ends.wait(&setup.session, &mut report)?;
        setup.meet(Stage::Ready);
        let mut counters = Vec::new();
        for place in setup.tx.iter().chain(&setup.second.tx) {
            let mut reader = place.counters()?;
            let before = reader.read()?;
            counters.push((reader, before));
        }
        let counting = begin_counting(&setup)?;
        let clock = setup.rx.as_ref().map(|(_, options)| WatchedClock::start(options.clock));

        let jobs: &[Job] = if own.is_empty() { std::slice::from_ref(&setup.job) } else { &own };
        let mut watch = Watch::new(&setup, jobs, meter.as_ref());
        let reach = workers.iter().map(|worker| worker.reach()).min().unwrap_or(engine::Reach::Stop);
        let hands = watch.hands(reach, engine);
        let title = by_hand::title(&setup, engine, report.environment.meter.as_ref(), hands.clone());
        watch.hands = hands;
        watch.title = Arc::new(title.clone());
        if let Some(mut panel) = panel.take() {
            if !std::mem::replace(&mut shown, true) {
                let names = by_hand::names(&setup.job, jobs);
                panel.begin(title, &report.warnings, || begin_counting(&setup), names)?;
            }
            watch.panel = Some(panel);
        }
        let suspect = setup.tx.as_ref().filter(|_| doubted);
        let mut suspicion = suspect.map(|place| Suspicion::begin(place, witness, signs)).transpose()?;
        let jobs: &mut [Job] = if own.is_empty() { std::slice::from_mut(&mut setup.job) } else { &mut own };
        let over = AtomicBool::new(false);
        let sent = std::thread::scope(|scope| {
            if let (Some(observe), Some(meter)) = (observe, meter.as_ref()) {
                scope.spawn(|| observe(meter.first(), &over));
            }
            let _over = SetAtEnd(&over);
            let with = (&setup.cpus[..], setup.priority, &moves);
            send(&mut workers, jobs, with, &setup.session.stop, &mut watch, suspicion.as_mut())
        })?;
        let mut gone = suspicion.as_ref().filter(|_| sent.is_none()).map(|suspicion| *suspicion.seen());
        if let (Some(sent), Some((reader, before))) = (&sent, counters.first_mut())
            && !setup.session.stop.load(Relaxed)
            // Who ended badly says so itself.
            && sent.iter().all(|sent| matches!(sent.ended, Ended::Done | Ended::Stopped))
            && suspicion.as_ref().is_some_and(|suspicion| !suspicion.is_trusted())
        {
            // A short run may have ended before anybody could see its frames.
            let ours = sent.iter().map(|sent| sent.counters.frames).sum();
            let moved = counters::moved(reader, before, ours, setup.hurry());
            let seen = Seen {
                ours,
                interface: moved.map_or(0, |moved| moved.tx_packets),
                driver: suspicion.as_mut().and_then(|suspicion| suspicion.driver()),
                arrived: witness.map(arrived),
                counts,
            };
            gone = (moved.is_some() && seen.vanished()).then_some(seen);
        }
        match (suspect, gone, sent) {
            (Some(place), Some(seen), _) => {
                let not_taken = NotTaken { name: engine.to_owned(), reason: trust::reason(place, &seen) };
                setup.distrusted.add(place, &not_taken);
                distrusted.push(not_taken);
                watch.ask_again();
                panel = watch.panel.take();
            }
            (_, _, Some(sent)) => {
                break Attempt { watch, engine, counts, counters, counting, clock, following, sent, workers };
            }
            (_, _, None) => bail!("a run was broken off for no reason: this is a defect of netdyno"),
        }
    };
    let taken = sent.iter().map(|sent| sent.taken).sum();
    // One worker knows it by itself.
    let end = if own.is_empty() { None } else { offered::time_of(&setup.job, taken) };
    let end = end.map(|end| watch.course().time_of(end));
    let mut merged = Merged::of(sent, end).context("no worker was started")?;
    let alone = witness.filter(|_| counters.len() == 1);
    let mut moved = Vec::new();
    for (side, (reader, before)) in counters.iter_mut().enumerate() {
        let ours = outcome::sent_by(&merged.whole, side).frames;
        let counted = counters::moved(reader, before, ours, setup.hurry());
        let seen = Seen {
            ours,
            interface: counted.map_or(0, |counted| counted.tx_packets),
            driver: counting.get_mut(side).and_then(|(_, watch)| counters::xdp_sent(&watch.rises())),
            arrived: alone.map(arrived),
            counts,
        };
        moved.push((counted, seen));
    }
    let left = |(counted, seen): &(Option<Counters>, Seen)| match (counted, counts, seen.judge()) {
        (Some(_), Counts::HandedOver, (Witness::Interface | Witness::Driver, left)) => Some(left),
        _ => None,
    };
    if let Some(meter) = &meter {
        let jobs: &[Job] = if own.is_empty() { std::slice::from_ref(&setup.job) } else { &own };
        let expected = moved.iter().map(|moved| left(moved).unwrap_or(moved.1.ours).min(moved.1.ours)).sum();
        stragglers::wait(meter, &setup, jobs, expected);
    }
    // Now all that was on its way has arrived; who saw most of it is believed.
    if let (Some(meter), [(_, seen)]) = (alone, &mut moved[..]) {
        seen.arrived = Some(arrived(meter));
    }
    for moved in &moved {
        if let Some(left) = left(moved) {
            counters::believe(&mut merged.whole, left);
        }
    }
    // Before the meter is detached, which may take a link down.
    let all_arrived = meter.as_ref().is_some_and(|meter| arrived(meter) >= merged.whole.counters.frames);
    following.end(Some(Lasted::of(&merged.whole, all_arrived)), &mut report);
    let due = watch.finish(&merged.whole);
    report.intervals = watch.intervals();
    let marks = watch.marks();
    report.result.adjustments = std::mem::take(&mut watch.adjustments);
    drop(watch);
    setup.session.board.end();

    report.result.counters = counters::counted(counting);
    setup.meet(Stage::Measured);
    // The meter closes first: what arrives while the rest is worked out is not of this run.
    let measured = meter.map(Meters::finish);
    let jobs: &[Job] = if own.is_empty() { std::slice::from_ref(&setup.job) } else { &own };
    let done = Outcome { setup: &setup, jobs, engine, counts, merged };
    outcome::fill_tx(&mut report, &done, due);
    departures::tell(&mut report, &done);
    for (side, (place, moved)) in setup.tx.iter().chain(&setup.second.tx).zip(moved).enumerate() {
        let (moved, seen) = moved;
        counters::compare_counters(&mut report, place, outcome::sent_by(done.sent(), side), moved, &seen);
    }
    if let Some(measured) = measured {
        let places = [&setup.rx, &setup.second.rx].into_iter().flatten();
        for ((place, _), _) in places.zip(&measured.parts).filter(|(_, part)| !part.attached) {
            let said = format!("{} was removed, or its meter detached by force, during the run", place.spec);
            report.result.verdict.fall_short(said.clone());
            blind_because = Some(said);
        }
        let numbered = outcome::fill_rx(&mut report, &done, &measured);
        let lost = report.result.loss.map_or(0, |loss| loss.frames);
        let places = [&setup.rx, &setup.second.rx].into_iter().flatten();
        for ((place, _), part) in places.zip(&measured.parts).filter(|(_, part)| part.drops) {
            counters::leave_out_own(&mut report.result.counters, &place.spec, part.frames, lost);
        }
        if let Some(rx) = &mut report.result.rx {
            rx.blind_because = blind_because;
        }
        let lost = report.result.loss.map_or(0, |loss| loss.frames);
        losses::put(&mut report.intervals, &marks, lost, numbered);
        moves.tell(&mut report);
        surplus::tell(&mut report, &outcome::signed(&done, &measured.whole), &measured.whole);
        if let Some(clock) = clock {
            clock.tell(&mut report, &measured.whole);
        }
    }
    outcome::judge(&mut report, &done);
    drop(workers);
    beside.tell(&mut report);
    Ok(report)
}

/// The links of both ends, from now on.
fn links(setup: &Setup) -> Result<Ends> {
    let mut ends = Ends::none();
    let role = if setup.round_trip { "send and measure" } else { "send" };
    for place in setup.tx.iter().chain(&setup.second.tx) {
        ends.needed(place, role)?;
    }
    let rx = setup.rx.iter().chain(&setup.second.rx).filter(|_| !setup.round_trip);
    for (place, _) in rx {
        ends.needed(place, "measure")?;
    }
    Ok(ends)
}

/// A run's sending part, carried out by an engine that somebody saw sending, or that is the last.
struct Attempt<'a> {
    watch: Watch<'a>,
    engine: &'static str,
    counts: Counts,
    counters: Vec<(CounterReader, Counters)>,
    counting: Vec<(String, port::watch::Watch)>,
    clock: Option<WatchedClock>,
    following: Following,
    sent: Vec<Sent>,
    /// Kept to the end: closing them may detach programs, which takes some links down, with frames still on their way.
    workers: Vec<Box<dyn Engine>>,
}

/// What the hosts count at each end, from now on.
fn begin_counting(setup: &Setup) -> Result<Vec<(String, port::watch::Watch)>> {
    let tx = setup.tx.iter().chain(&setup.second.tx);
    let rx = setup.rx.iter().chain(&setup.second.rx).map(|(place, _)| place).filter(|_| !setup.round_trip);
    let ends = tx.chain(rx).enumerate();
    let begin = |(end, place): (usize, &Place)| {
        let name = &place.interface.name;
        Ok((place.spec.clone(), place.run_in(|| port::watch::Watch::begin(name, end == 0))?))
    };
    ends.map(begin).collect()
}

/// What each of several workers is to send; empty for one worker, which sends the whole.
fn shared_out(job: &Job, workers: usize) -> Result<Vec<Job>> {
    let program = match &job.source {
        _ if workers <= 1 => return Ok(Vec::new()),
        Source::Program(program) => program,
        Source::Stream(_) => bail!(
            "--cores: a capture that is read while it is sent has one reader, and so one core: add --preload to read it into memory first, or leave out --cores"
        ),
    };
    let of = u32::try_from(workers)?;
    let share = |worker: u32| -> Result<Job> {
        let count = match job.count {
            None => None,
            Some(count) => Some(program.share_count(worker, of, count).with_context(|| {
                format!(
                    "--count {count} cannot be shared out among {workers} cores, because streams with rates of their own take part in it: give a --duration instead, or one core"
                )
            })?),
        };
        Ok(Job {
            source: Source::Program(Arc::new(program.share(worker, of))),
            count,
            duration: job.duration,
            catch_up: job.catch_up,
            spin: job.spin,
        })
    };
    (0..of).map(share).collect()
}

/// A share without frames needs no thread.
fn is_idle(job: &Job) -> bool {
    let empty = matches!(&job.source, Source::Program(program) if program.lanes.is_empty());
    empty || job.count == Some(0)
}

/// Are there streams of ICMP? Signatures in captured frames stand in TCP and UDP only.
fn sends_icmp(job: &Job) -> bool {
    let Source::Program(program) = &job.source else { return false };
    program.streams.iter().filter(|stream| !stream.is_captured()).any(|stream| {
        let layers = Layers::parse(LinkType::ETHERNET, stream.templates.get(0));
        matches!(layers.ip_protocol, Some(1 | 58))
    })
}

/// Each worker's streams have numbers of their own, and the meter must tell all of them apart.
fn with_room_for(options: &meter::Options, jobs: &[Job]) -> meter::Options {
    let numbers = jobs.iter().filter_map(|job| match &job.source {
        Source::Program(program) => program.streams.iter().filter_map(|s| s.signature).max(),
        Source::Stream(_) => None,
    });
    let streams = numbers.max().map_or(0, |most| most.saturating_add(1));
    meter::Options { streams: options.streams.max(streams), ..options.clone() }
}

fn open(setup: &Setup, shares: &[Job], meter: Option<&Meter>, distrusted: &[NotTaken]) -> Result<Opened> {
    let program = |job: &Job| match &job.source {
        Source::Program(program) => Some(Arc::clone(program)),
        Source::Stream(_) => None,
    };
    let whole = program(&setup.job);
    let shares: Vec<Arc<Program>> = match shares {
        [] => whole.iter().cloned().collect(),
        shares => shares.iter().filter_map(program).collect(),
    };
    let opened = (setup.open)(&Wanted {
        place: setup.tx.as_ref(),
        second: setup.second.tx.as_ref(),
        program: whole.as_ref(),
        shares: &shares,
        cpus: &setup.cpus,
        longest: setup.longest,
        // What comes back was changed at the far end.
        measured: setup.rx.as_ref().filter(|_| keeps(meter) && !setup.round_trip).map(|(place, _)| place),
        catch_up: setup.job.catch_up,
        receives: {
            let here = |(at, _): &(Place, meter::Options)| {
                setup.tx.iter().chain(&setup.second.tx).any(|place| place.is_same_as(at))
            };
            setup.round_trip || setup.rx.iter().chain(&setup.second.rx).any(here)
        },
        distrusted,
        stop: &setup.session.stop,
        stamps: None,
    })?;
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
    meter.is_some_and(|meter| meter.mode() == meter::Mode::XdpNative)
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
    user: &AtomicBool,
    watch: &mut Watch<'_>,
    mut suspicion: Option<&mut Suspicion<'_>>,
) -> Result<Option<Vec<Sent>>> {
    // A worker that ends badly, or a run that is broken off, was not stopped by the user, which would end waiting for frames
    // under way and for the runs beside.
    let halt = Arc::new(AtomicBool::new(user.load(Relaxed)));
    let stop = &halt;
    let mut refuted = false;
    let alone = jobs.len() == 1;
    let idle: Vec<bool> = jobs.iter().map(|job| !alone && is_idle(job)).collect();
    let mut controls = Control::several(idle.iter().filter(|idle| !**idle).count(), stop);
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
        assert!(error.contains("--count 10") && error.contains("--duration"), "{error}");
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
