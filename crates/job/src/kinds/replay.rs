//! `netdyno replay`: captures onto an interface.

use super::Run;
pub use super::shared::TwoSides;
use super::shared::{Ends, Metering, Pace, Through};
use super::{edits, lab, shared};
use crate::dropped::{Follow, Trace};
use crate::learning::{self, Kept, Learning};
use crate::place::Place;
use crate::run::{self, Interim, Setup};
use crate::session::Session;
use crate::sides::Sides;
use ::edit::rewrite::Plan;
use anyhow::{Context, Result, bail};
use capture::{FileFormat, Reader, Writer};
use engine::record::FileTx;
use engine::source::preload::{Loaded, preload};
use engine::source::stream::{self, StreamSource, Timing};
use engine::source::{Hooks, Input, Limit, Loss, Reading, Seam, Selection, Source, SourceError};
use engine::{Ended, Engine, Job, Userspace};
use report::{Code, Report, RequestedRate, Resolved, Warnings, units};
pub use spec::Replay;
use spec::{Consent, Engine as EngineName, Oversize, Side, Sign, Word};
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use traffic::schedule::Speed;
use traffic::{Rate, Schedule, Shape};
use wire::LinkType;

/// Captures up to this size are read into memory in any case: it costs nothing, and flows can be counted.
const SMALL: u64 = 32 << 20;
/// ... unless their contents take more than this: a packed file does not tell.
const MOST_UNASKED: u64 = 4 * SMALL;
/// Buffers of a streamed replay: as long as any frame that an interface takes.
const STREAM_BUFFER: usize = traffic::templates::MAX_LENGTH;

/// A replay in full: what `netdyno replay` asks for, and what other command lines ask for besides.
#[derive(Debug)]
pub struct Settings {
    /// The captures, one after the other.
    pub files: Vec<PathBuf>,
    /// What the first of them is called, instead of its path.
    pub name: Option<String>,
    /// Where frames leave.
    pub interface: Option<String>,
    /// How two sides leave by two interfaces.
    pub two: TwoSides,
    /// Frames go into this file instead.
    pub write: Option<PathBuf>,
    /// At the capture's own times, so many times as fast.
    pub speed: Option<Speed>,
    /// How fast and how long.
    pub pace: Pace,
    /// How its rate varies, and the key of what is left to chance.
    pub shape: Option<(Shape, u64)>,
    /// Passes, 0 without end; `None`: once, or as often as a time or a number of frames takes.
    pub loops: Option<u64>,
    /// Captures are read into memory first, however large.
    pub preload: bool,
    /// Captures are read while they are sent, however small.
    pub stream: bool,
    /// Every so many passes get addresses of their own.
    pub unique_every: Option<NonZeroU64>,
    /// Frames with room for it get a signature.
    pub sign: bool,
    /// What becomes of frames that are too long for an interface.
    pub oversize: Oversize,
    /// A damaged capture is sent up to its damage.
    pub skip_corrupt: bool,
    /// By what and from where.
    pub through: Through,
    /// What measures.
    pub metering: Metering,
    /// What this host's kernel drops meanwhile is traced.
    pub trace: Trace,
    /// It is traced already, in a lab: what is dropped is looked at while the run lasts.
    pub follow: Option<Follow>,
    /// In a lab of its own.
    pub lab: Option<spec::Lab>,
    /// What is in between learns addresses, if that is known.
    pub between_learns: Option<bool>,
    /// The packets that are sent of each file.
    pub packets: Option<Selection>,
    /// Of a preloaded capture, so many frames at most.
    pub first: Option<u64>,
    /// How long it is from one pass to the next.
    pub seam: Seam,
    /// Longer waits between two frames are cut to this.
    pub longest_gap: Option<Duration>,
    /// Frames captured short get zeros up to the length they had.
    pub whole_length: bool,
    /// Waited between two passes.
    pub pause: Duration,
    /// So many frames leave together, when the first of them is due.
    pub together: NonZeroU64,
    /// Count the flows of a streamed capture, too.
    pub count_flows: bool,
    /// A rate that is not reached is reported, and is no failure.
    pub best_effort: bool,
    /// Into a file, frames keep the times they were captured at.
    pub stamps: bool,
    /// Tell now and then what was sent so far.
    pub interim: Option<Interim>,
    /// Edits of each frame.
    pub edits: Option<Arc<Plan>>,
    /// As tcpreplay 4.5.5 by mistake: frames without IP addresses are left out of passes with addresses of their own,
    /// and files say that their nanoseconds are microseconds.
    pub defects: bool,
    /// Frames that get lost on purpose.
    pub loss: Option<Loss>,
    /// A flow that was silent for longer counts as another.
    pub flow_expiry_s: Option<u64>,
    /// Who else has a say while it sends.
    pub hooks: Hooks,
}

impl Settings {
    /// Told to go on for a time or a number of frames, a capture is looped as often as that takes.
    fn is_open_ended(&self) -> bool {
        self.pace.duration.is_some() || self.pace.count.is_some()
    }

    /// How often it is sent; `None` without end.
    fn passes(&self) -> Option<u64> {
        match self.loops {
            Some(0) => None,
            Some(n) => Some(n),
            None if self.is_open_ended() => None,
            None => Some(1),
        }
    }

    /// What is asked for, but for the rate.
    fn resolved(&self, loops: Option<u64>, tx: &[Place], rx: &[(Place, meter::Options)]) -> Resolved {
        Resolved {
            source: Some(report::Source::Files {
                files: self.files.iter().map(|f| f.display().to_string()).collect(),
            }),
            engine: Some(self.through.engine.name().to_owned()),
            loops,
            count: self.pace.count,
            duration_ns: self.pace.duration.map(|d| d.as_nanos() as u64),
            unique_ip: Some(self.unique_every.is_some()),
            seed: self.shape.as_ref().map(|(_, seed)| *seed),
            interfaces: shared::interfaces(tx, rx, self.metering.round_trip),
            ..Resolved::default()
        }
    }

    /// Captures sent once, as captured, and nothing of them measured.
    pub fn of(files: Vec<PathBuf>) -> Settings {
        Settings {
            files,
            name: None,
            interface: None,
            two: TwoSides::default(),
            write: None,
            speed: None,
            pace: Pace::default(),
            shape: None,
            loops: None,
            preload: false,
            stream: false,
            unique_every: None,
            sign: false,
            oversize: Oversize::Refuse,
            skip_corrupt: false,
            through: Through::default(),
            metering: Metering::default(),
            trace: Trace::No,
            follow: None,
            lab: None,
            between_learns: None,
            packets: None,
            first: None,
            seam: Seam::MeanGap,
            longest_gap: None,
            whole_length: false,
            pause: Duration::ZERO,
            together: NonZeroU64::MIN,
            count_flows: false,
            best_effort: false,
            stamps: false,
            interim: None,
            edits: None,
            defects: false,
            loss: None,
            flow_expiry_s: None,
            hooks: Hooks::default(),
        }
    }

    /// What a job asks for.
    ///
    /// # Errors
    /// Which setting cannot be, or contradicts another.
    pub fn of_job(job: Replay, consent: &Consent) -> Result<Settings> {
        let (pace, through) = (Pace::from(&job), job.through());
        let mut links = job.links.into_iter();
        let (first, second) = (links.next().unwrap_or_default(), links.next().unwrap_or_default());
        let sides = job.sides.as_deref().map(str::parse::<Sides>).transpose().context("`.sides`")?;
        // Of whom nothing is known is a client, as with tcpprep.
        let assumed = sides.is_none() && second.on.is_some();
        let sides = if assumed { Some(ASSUMED.parse()?) } else { sides };
        let edits = match &job.edits {
            None => None,
            Some(edits) => {
                let plan = edits::plan(edits, sides.is_some())?;
                (edits.to_ethernet || plan != Plan::default()).then(|| Arc::new(plan))
            }
        };
        let seed = job.seed;
        let shape = job.shape.map(|shape| (shape.into_value(), seed.unwrap_or_else(shared::draw_seed)));
        let through = Through::of(through, consent);
        // As of `send`, it is told by itself how frames came after each other unless several cores send parts of a stream.
        let is_one = match &through.cores {
            None => true,
            Some(spec::Cores::Number(number)) => *number == 1,
            Some(spec::Cores::List(list)) => list.len() == 1,
        };
        let shaped = shape.is_some() && job.sign == Sign::Always && is_one;
        let loss = job.loss.map(|lost| loss(lost.share.0, lost.seed.unwrap_or(1))).transpose()?.flatten();
        Ok(Settings {
            interface: first.on,
            two: TwoSides {
                on2: second.on,
                sides,
                assumed,
                only_side: job.only_side,
                measure2: second.measure,
            },
            follow: None,
            trace: Trace::of(job.trace_drops, job.no_trace_drops, job.lab.is_some()),
            lab: job.lab,
            write: job.write,
            speed: job.speed.map(spec::Written::into_value),
            pace,
            shape,
            loops: job.loops,
            preload: job.preload == Some(true),
            stream: job.preload == Some(false),
            unique_every: job.unique_ip.then_some(NonZeroU64::MIN),
            sign: job.sign == Sign::Always,
            oversize: job.oversize,
            skip_corrupt: job.skip_corrupt,
            through,
            metering: Metering {
                measure: first.measure,
                round_trip: job.round_trip,
                how: spec::Meter { inter_arrival: job.meter.inter_arrival || shaped, ..job.meter },
            },
            edits,
            loss,
            ..Settings::of(job.captures)
        })
    }
}

/// How sides are told apart, of who has two and does not say.
const ASSUMED: &str = "auto";

/// Frames to lose of every hundred.
///
/// # Errors
/// That it is no share from 0 to 100 %.
pub fn loss(percent: Speed, seed: u64) -> Result<Option<Loss>> {
    if percent.numerator == 0 {
        return Ok(None);
    }
    match Loss::new(percent.numerator, percent.denominator.saturating_mul(100), seed) {
        Some(loss) => Ok(Some(loss)),
        None => bail!("`.loss`: of 100% or more nothing would be sent; give less"),
    }
}

impl Settings {
    /// The stream of the signatures, if frames are to be signed.
    fn signature(&self) -> Option<u32> {
        (self.sign || self.metering.round_trip).then_some(0)
    }

    fn rate(&self) -> Option<Rate> {
        self.pace.rate
    }

    /// The schedule of a rate. What is more than the link carries is refused, or then has to be the most it carries. Of
    /// two interfaces the rate is that of both together, which is more than one link's.
    fn schedule(&self, rate: Rate, place: Option<&Place>, flows: Option<(u64, u64)>) -> Result<Schedule> {
        if self.best_effort || self.two.on2.is_some() {
            return self.shaped(shared::any_schedule(rate, place, flows)?, None);
        }
        self.shaped(shared::schedule(rate, place, flows)?, place)
    }

    /// The schedule, varied if that is asked for; at its highest it may not be more than the link of `place` carries.
    fn shaped(&self, schedule: Schedule, place: Option<&Place>) -> Result<Schedule> {
        let Some((shape, seed)) = &self.shape else { return Ok(schedule) };
        let Schedule::Frames { frames, per_ns } = schedule else {
            bail!(
                "`.shape` {shape}: a shape varies frames per second, and frames of a capture have several sizes, or none to wait for at top speed: give `.rate` as 100kpps"
            );
        };
        let schedule = shape.schedule(frames, per_ns, *seed);
        if let (Schedule::Shaped(shaped), Some(place)) = (&schedule, place) {
            shared::check_highest(shaped, shape, place)?;
        }
        Ok(schedule)
    }

    /// The rate as the result tells it.
    fn requested(&self, rate: Rate, schedule: &Schedule) -> RequestedRate {
        shared::requested_shape(rate, schedule, self.shape.as_ref().map(|(shape, _)| shape))
    }

    fn speed(&self) -> Speed {
        self.speed.unwrap_or(Speed::ONE)
    }

    /// A time that passes while frames leave, as time of the capture.
    fn captured(&self, time: Duration) -> u64 {
        let Speed { numerator, denominator } = self.speed();
        Speed { numerator: denominator, denominator: numerator }.scale(time.as_nanos())
    }

    /// Do frames keep the times they were captured at? How long a run lasts follows from when they leave.
    fn keeps_stamps(&self) -> bool {
        self.stamps && self.write.is_some() && self.pace.duration.is_none()
    }

    /// What the interface of the frames' side takes.
    fn reading(&self, place: Option<&Place>, second: Option<&Place>) -> Reading {
        let takes = |p: &Place| (p.interface.name.clone(), p.interface.mtu);
        Reading {
            two_ways: self.two.on2.is_some(),
            only_side: self.two.only_side.map(|side| u8::from(side == Side::Second)),
            limit: Limit {
                interface: place.map(takes),
                second: second.map(takes),
                oversize: match self.oversize {
                    Oversize::Refuse => engine::source::Oversize::Refuse,
                    Oversize::Skip => engine::source::Oversize::Skip,
                },
            },
            packets: self.packets.clone(),
            first: self.first,
            seam: self.seam,
            longest_gap_ns: self.longest_gap.map(|gap| self.captured(gap)),
            whole_length: self.whole_length,
            edits: self.edits.clone(),
        }
    }

    /// Are the captures read before the first frame leaves?
    fn is_preloaded(&self, readers: &[Reader]) -> bool {
        let passes = self.unique_every.map_or(1, NonZeroU64::get);
        let unknown = self.rate() == Some(Rate::TopSpeed) || passes > 1;
        // What is decided frame by frame, or told to somebody, happens where captures are streamed.
        let watched = !self.hooks.is_empty() || self.loss.is_some() || self.flow_expiry_s.is_some();
        if self.stream
            || watched
            || (self.defects && self.unique_every.is_some())
            || self.keeps_stamps()
            || (unknown && !self.pause.is_zero())
        {
            // When a pass ends at top speed is not known before; passes held in memory together have no pause.
            return false;
        }
        let size = readers.iter().try_fold(0u64, |sum, reader| Some(sum + reader.file_len()?));
        self.preload || size.is_some_and(|size| size.saturating_mul(passes) <= SMALL)
    }
}

impl Run for spec::Replay {
    fn run(&self, session: Session) -> Result<Report> {
        run(self.clone(), session)
    }
}

fn run(job: Replay, session: Session) -> Result<Report> {
    let settings = Settings::of_job(job, &session.consent)?;
    find_and_replay("replay", settings, session)
}

/// Finds the interfaces that are named, and replays.
///
/// # Errors
/// That an interface cannot be had, or as [`replay`].
pub fn find_and_replay(command: &'static str, mut settings: Settings, session: Session) -> Result<Report> {
    shared::check_pace(&settings.pace)?;
    if let (true, Some(first), Some(second)) = (settings.two.assumed, &settings.interface, &settings.two.on2)
    {
        let said = format!(
            "sides: {ASSUMED}: what clients send leaves by {first}, what servers send by {second}; `.sides` says otherwise"
        );
        session.say(Code::PartOfCapture, said);
    }
    let sending = settings.interface.as_deref();
    let place = match (&settings.write, &settings.lab) {
        (Some(_), _) | (_, Some(_)) => None,
        _ => shared::sending_place(sending, &settings.through)?,
    };
    let paced = settings.rate() != Some(Rate::TopSpeed);
    if settings.metering.how.check_content {
        bail!(
            "`.check_content`: each frame of a capture has content of its own, which the meter does not know: only `send` can check content"
        );
    }
    if let Some(asked) = settings.lab.take() {
        shared::check_lab(&settings.through)?;
        let own = lab::TwoHosts::make(&asked, settings.through.queues())?;
        let [near, far] = own.places()?;
        settings.interface = Some(near.spec.clone());
        settings.between_learns = Some(own.learns);
        let rx = shared::metered(far, &settings.metering, paced)?;
        let board = std::sync::Arc::clone(&session.board);
        let counters = own.counters();
        let tracing = own.tracing(std::mem::take(&mut settings.trace), settings.metering.how.clock);
        settings.follow = tracing.follow();
        let mut report = replay(command, settings, (vec![near], vec![rx]), session)?;
        tracing.finish(&mut report);
        own.finish(counters, &mut report, |said| board.say(report::Note::info(Code::Begun, said)))?;
        return Ok(report);
    }
    let rx = shared::measuring_place(&settings.metering, &settings.through, paced, sending)?;
    let mut ends = (place.into_iter().collect(), rx.into_iter().collect());
    shared::second(&settings.two, &settings.through, &settings.metering, paced, &mut ends)?;
    replay(command, settings, ends, session)
}

/// What is known to be impossible before anything is read. `twice`: the files are read more than once.
fn sendable(settings: &Settings, place: Option<&Place>, twice: bool) -> Result<()> {
    if twice && settings.files.iter().any(|file| file.as_os_str() == "-") {
        bail!("standard input cannot be read a second time for a loop: add `.preload`, or give a file");
    }
    let two = &settings.two;
    let one_port = two.on2.is_none() && two.only_side.is_none() && place.is_some();
    if two.sides.is_some() && one_port && settings.edits.is_none() {
        bail!(
            "`.sides` tells frames of two interfaces apart: name the second one with `.links[1].on`, or send one side with `.only_side`"
        );
    }
    Ok(())
}

/// What is sent, and how much of it.
struct Sent {
    source: Source,
    rate: RequestedRate,
    total: Option<u64>,
    longest: usize,
}

/// Captures that were read into memory: frames that follow from their number.
fn from_memory(
    settings: &Settings,
    mut loaded: Loaded,
    loops: Option<u64>,
    place: Option<&Place>,
) -> Result<Sent> {
    let pass = loaded.templates.len() as u64;
    let whole = loops.map(|loops| loops.saturating_mul(pass));
    let total = match (whole, settings.pace.count) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    let path = || settings.files.first().map_or(String::new(), |f| f.display().to_string());
    let name = settings.name.clone().unwrap_or_else(path);
    if let Some(every) = settings.unique_every {
        let passes = loops.map_or(every.get(), |loops| every.get().min(loops));
        loaded.repeat(passes).map_err(|what| SourceError::NotTaken { file: name.clone(), what })?;
    }
    let (schedule, rate) = preloaded_schedule(settings, &loaded, loops, place)?;
    let longest = loaded.templates.longest() as usize;
    let unique = settings.unique_every.is_some();
    let program = loaded.into_program(name, schedule, unique, settings.signature());
    Ok(Sent { source: Source::from(program), rate, total, longest })
}

/// May a device between the ends learn addresses from what is sent? Of a cable's other end everything arrives.
fn learns(settings: &Settings, tx: &[Place], rx: &[(Place, meter::Options)]) -> bool {
    match (tx, rx.first()) {
        _ if settings.between_learns == Some(false) => false,
        ([place], Some((at, _))) => !settings.metering.round_trip && !place.is_joined_to(at),
        _ => false,
    }
}

/// The captures as they are sent: of which side each frame is, where that matters.
fn inputs(settings: &Settings, readers: Vec<Reader>) -> Result<Vec<Input>> {
    let Some(sides) = &settings.two.sides else { return Ok(readers.into_iter().map(Input::from).collect()) };
    let mut inputs = sides.inputs(readers)?;
    if matches!(sides, Sides::Cache(_)) {
        // The captures are read through once before, so that nothing is sent that does not fit.
        inputs.iter_mut().try_for_each(Input::check_sides)?;
    }
    Ok(inputs)
}

/// Says of settings that they do nothing.
fn idle_settings(settings: &Settings, loops: Option<u64>) -> Warnings {
    let mut warnings = Warnings::default();
    if settings.unique_every.is_some() && loops == Some(1) {
        warnings.add(
            Code::SettingWithoutEffect,
            ("`.unique_ip` changes addresses from the second pass on, and there is only one", "add `.loop`"),
        );
    }
    warnings
}

/// Opens the captures and sends them from `tx`: those of the second side from the second of two.
///
/// # Errors
/// That a capture cannot be read, or why nothing was sent.
pub fn replay(
    command: &'static str,
    mut settings: Settings,
    (tx, rx): Ends,
    session: Session,
) -> Result<Report> {
    let asked = settings.resolved(settings.passes(), &tx, &rx);
    let Ready { sent: Sent { source, rate, total, longest }, mut warnings, damage, truncated, kept } =
        ready(&mut settings, &tx, &rx, &session)?;
    let cpus = shared::cpus(&settings.through, &tx)?;
    if session.among.part.is_some_and(|(_, of)| of > 1) {
        bail!("captures are sent by one agent: the streams of several would have the same numbers");
    }
    session.stop_in_order();
    let priority = settings.pace.priority(source.facts().paced);
    let job = Job {
        source,
        count: total,
        duration: settings.pace.duration,
        pacing: settings.pace.pacing(&tx),
        stamps: shared::stamps(settings.metering.how.clock, &session.among),
    };
    if let Some(path) = &settings.write {
        let mut report = write(command, asked, rate, job, path, longest, &session.stop, warnings, &settings)?;
        for why in damage {
            report.result.verdict.fall_short(Code::CaptureDamaged, why);
        }
        return Ok(report);
    }
    if let (Some(kept), Some(place)) = (&kept, tx.first()) {
        let warning = Code::AddressesLearned.says(kept.warning(&place.spec));
        session.warn(std::slice::from_ref(&warning));
        warnings.push(warning);
    }
    let mut report = run::run(Setup {
        resolved: Resolved { rate: Some(rate), ..asked },
        total,
        endless: settings.passes().is_none() && !settings.is_open_ended(),
        best_effort: settings.best_effort,
        patient: true,
        interim: settings.interim,
        // The null engine sends nothing, so no counter moves.
        tx: if settings.through.engine == EngineName::Null { Vec::new() } else { tx },
        rx,
        trace: settings.trace,
        follow: settings.follow,
        round_trip: settings.metering.round_trip,
        capture: settings.metering.how.capture.clone(),
        cpus,
        priority,
        warnings,
        damage,
        truncated,
        session,
        ..Setup::of(
            command,
            shared::open_by(&settings.through, false, job.source.program().map(|program| &**program))?,
            job,
            longest,
        )
    })?;
    if let Some(kept) = kept {
        kept.tell(&mut report);
    }
    Ok(report)
}

/// The captures, opened and, where that is wanted, read: what is sent of them, and what was found in them.
struct Ready {
    sent: Sent,
    warnings: Warnings,
    /// Files that ended before their time.
    damage: Vec<String>,
    /// Truncated frames of each side, of so many that were looked at.
    truncated: ([u64; 2], u64),
    /// Addresses that a device between the ends learns otherwise than they are.
    kept: Option<Kept>,
}

fn ready(
    settings: &mut Settings,
    tx: &[Place],
    rx: &[(Place, meter::Options)],
    session: &Session,
) -> Result<Ready> {
    let mut readers = open(&settings.files, settings.skip_corrupt)?;
    let (place, second) = (tx.first(), tx.get(1));
    let loops = settings.passes();
    let again = settings.loops.is_some_and(|loops| loops != 1)
        || (settings.loops.is_none() && settings.pace.duration.is_some());
    let preloaded = settings.is_preloaded(&readers);
    sendable(settings, place, again && !preloaded)?;
    // Whoever ends the job does not wait for who writes into a pipe.
    readers.iter().filter_map(Reader::patience).for_each(|pipe| pipe.until(&session.stop));
    let learns = learns(settings, tx, rx);
    // What edits make of addresses is seen where the capture is read beforehand.
    let as_captured = settings.edits.is_none() && settings.two.only_side.is_none();
    let kept = match learns && !preloaded && as_captured {
        true => readers.first_mut().and_then(learning::look_through),
        false => None,
    };
    let mut inputs = inputs(settings, readers)?;
    let reading = settings.reading(place, second);
    let warnings = idle_settings(settings, loops);
    let loaded = match preloaded {
        true => load(&mut inputs, &reading, settings, session)?,
        false => None,
    };
    if let Some(loaded) = loaded {
        return ready_in_memory(settings, loaded, place, learns, warnings);
    }
    let (mut source, rate) = streamed(settings, inputs, reading, loops, place, second)?;
    source.hooks = std::mem::take(&mut settings.hooks);
    let longest = stream_buffer(place, second);
    let sent = Sent { source: Source::from(source), rate, total: settings.pace.count, longest };
    Ok(Ready { sent, warnings, damage: Vec::new(), truncated: ([0, 0], 1), kept })
}

fn ready_in_memory(
    settings: &Settings,
    mut loaded: Loaded,
    place: Option<&Place>,
    learns: bool,
    mut warnings: Warnings,
) -> Result<Ready> {
    run::oddities(&loaded.odd, &mut warnings);
    let damage = std::mem::take(&mut loaded.odd.cut_short);
    let truncated = (loaded.odd.truncated, loaded.templates.len() as u64);
    let kept = learns.then(|| {
        let mut learning = Learning::default();
        (0..loaded.templates.len()).for_each(|n| learning.frame(loaded.templates.get(n)));
        learning.kept()
    });
    let sent = from_memory(settings, loaded, settings.passes(), place)?;
    Ok(Ready { sent, warnings, damage, truncated, kept: kept.flatten() })
}

/// Opens captures; `lenient` ones end where they are damaged.
///
/// # Errors
/// Which capture cannot be read, and why.
pub fn open(files: &[PathBuf], lenient: bool) -> Result<Vec<Reader>> {
    let mut readers = Vec::with_capacity(files.len());
    for file in files {
        let reader = Reader::open(file)?;
        readers.push(if lenient { reader.lenient() } else { reader });
    }
    Ok(readers)
}

/// Reads captures into memory. `None` if they turned out to be large, and nobody asked for it: then they are read while
/// sending.
fn load(
    inputs: &mut [Input],
    reading: &Reading,
    settings: &Settings,
    session: &Session,
) -> Result<Option<Loaded>> {
    let start = Instant::now();
    let passes = settings.unique_every.map_or(1, NonZeroU64::get);
    let passes = settings.loops.filter(|loops| *loops > 0).map_or(passes, |loops| passes.min(loops));
    let available = engine::memory::available();
    let most = if settings.preload { available } else { available.min(MOST_UNASKED) };
    let loaded = match preload(inputs, reading, most / passes) {
        Err(SourceError::NoRoom { .. }) if !settings.preload => {
            inputs.iter_mut().try_for_each(Input::rewind)?;
            return Ok(None);
        }
        loaded => loaded?,
    };
    if start.elapsed().as_millis() > 200 {
        session.say(
            Code::CaptureRead,
            format!(
                "preloaded {} ({}) in {}",
                units::counted(loaded.templates.len() as u64, "frame"),
                units::bytes(loaded.templates.total_bytes()),
                units::time(start.elapsed().as_nanos() as u64)
            ),
        );
    }
    Ok(Some(loaded))
}

/// The schedule of a preloaded capture, and how the result tells it.
fn preloaded_schedule(
    settings: &Settings,
    loaded: &Loaded,
    loops: Option<u64>,
    place: Option<&Place>,
) -> Result<(Schedule, RequestedRate)> {
    if let Some(rate) = settings.rate() {
        let frames = loaded.templates.len() as u64;
        let flows = matches!(rate, Rate::Flows(_)).then(|| (loaded.flows(), frames));
        let schedule = settings.schedule(rate, place, flows)?;
        let asked = settings.requested(rate, &schedule);
        let schedule = grouped(schedule, settings.together);
        return Ok((paused(schedule, loaded, settings.pause), asked));
    }
    let speed = settings.speed();
    if loaded.span_ns() == 0 && loops != Some(1) && settings.pause.is_zero() {
        if settings.seam == Seam::Nothing {
            // Pass after pass without a pause between or within them.
            return Ok((Schedule::TopSpeed, capture_rate(speed)));
        }
        let names: Vec<String> = settings.files.iter().map(|f| f.display().to_string()).collect();
        return Err(SourceError::NoDuration(names.join(", ")).into());
    }
    let mut timing = loaded.timing(speed);
    if let Schedule::Times { period_ns, .. } = &mut timing {
        *period_ns = period_ns.saturating_add(settings.captured(settings.pause));
    }
    Ok((timing, capture_rate(speed)))
}

/// Frames of a schedule in groups that take no time; stated times for no more frames than this.
const MOST_STATED: u64 = 1 << 20;

/// Frames evenly in time leave `together` of them at a time instead, at the time of the first.
fn grouped(schedule: Schedule, together: NonZeroU64) -> Schedule {
    let Schedule::Frames { frames, per_ns } = schedule else { return schedule };
    let size = together.get();
    let begins = |group: u64| u128::from(group) * u128::from(size) * u128::from(per_ns) / u128::from(frames);
    let whole = (u128::from(size) * u128::from(per_ns)).is_multiple_of(frames.into());
    match u64::try_from(begins(1)) {
        _ if size == 1 => Schedule::Frames { frames, per_ns },
        Ok(period_ns) if whole && period_ns > 0 => Schedule::Bursts { frames: size, gap_ns: 0, period_ns },
        // A period of many groups is a whole number of nanoseconds, or nearly so: less than one in a million groups off.
        _ => {
            let groups = frames.min(MOST_STATED / size).max(1);
            let at = |group| u64::try_from(begins(group)).unwrap_or(u64::MAX);
            let offsets = (0..groups).flat_map(|group| std::iter::repeat_n(at(group), size as usize));
            Schedule::Times { offsets: offsets.collect(), period_ns: at(groups), speed: Speed::ONE }
        }
    }
}

/// `schedule` with a pause behind each pass of the capture.
fn paused(schedule: Schedule, loaded: &Loaded, pause: Duration) -> Schedule {
    if pause.is_zero() {
        return schedule;
    }
    let mut cursor = schedule.cursor();
    let lengths = (0..loaded.templates.len()).map(|i| loaded.templates.get(i).len() as u32);
    let offsets = lengths.map(|length| {
        let due = cursor.due();
        cursor.advance(length);
        due
    });
    let offsets = offsets.collect();
    let pause = u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX);
    Schedule::Times { offsets, period_ns: cursor.due().saturating_add(pause), speed: Speed::ONE }
}

fn capture_rate(speed: Speed) -> RequestedRate {
    let times = speed.numerator as f64 / speed.denominator as f64;
    let text = if times == 1.0 { "capture".to_owned() } else { format!("capture x{times}") };
    RequestedRate { text, ..RequestedRate::default() }
}

/// Buffers for what both interfaces take.
pub(crate) fn stream_buffer(place: Option<&Place>, second: Option<&Place>) -> usize {
    let takes = |place: &Place| place.interface.mtu as usize + 64;
    place.into_iter().chain(second).map(takes).max().unwrap_or(STREAM_BUFFER)
}

fn streamed(
    settings: &Settings,
    inputs: Vec<Input>,
    reading: Reading,
    loops: Option<u64>,
    place: Option<&Place>,
    second: Option<&Place>,
) -> Result<(StreamSource, RequestedRate)> {
    let (timing, asked) = match settings.rate() {
        _ if settings.keeps_stamps() => (Timing::Stamps, capture_rate(Speed::ONE)),
        Some(rate) => {
            let schedule = settings.schedule(rate, place, None)?;
            let asked = settings.requested(rate, &schedule);
            (Timing::Schedule(schedule), asked)
        }
        None => (Timing::Capture(settings.speed()), capture_rate(settings.speed())),
    };
    let longest = stream_buffer(place, second);
    let options = stream::Options {
        loops,
        unique_every: settings.unique_every,
        only_unique: settings.defects,
        sign: settings.signature(),
        reading,
        timing,
        together: settings.together,
        pause_ns: u64::try_from(settings.pause.as_nanos()).unwrap_or(u64::MAX),
        count_flows: settings.count_flows,
        flow_expiry_s: settings.flow_expiry_s,
        loss: settings.loss,
    };
    Ok((StreamSource::new(inputs, options, longest), asked))
}

/// `replay -w`: the frames and their times into a file.
#[expect(clippy::too_many_arguments, reason = "each is used once, by the one caller")]
fn write(
    command: &'static str,
    asked: Resolved,
    rate: RequestedRate,
    mut job: Job,
    path: &std::path::Path,
    longest: usize,
    stop: &Arc<std::sync::atomic::AtomicBool>,
    warnings: Warnings,
    settings: &Settings,
) -> Result<Report> {
    // At top speed all frames have the same time, so that no duration is ever over.
    let timed = settings.pace.duration.is_some() && rate.text != Rate::TopSpeed.to_string();
    let looped = settings.loops.unwrap_or(u64::from(settings.pace.duration.is_none()));
    if looped == 0 && job.count.is_none() && !timed {
        bail!(
            "a file cannot take frames without end: give `.count` or `.loop`, or `.duration` with a `.rate`"
        );
    }
    let mut writer = Writer::create(path, FileFormat::of_name(path), LinkType::ETHERNET)?;
    if settings.defects {
        writer.claim_microseconds();
    }
    let spacing = if rate.text == Rate::TopSpeed.to_string() { 1_000 } else { 0 };
    let tx = FileTx::new(writer, path.display().to_string(), longest, 0, spacing);
    let mut engine = Userspace::without_waiting("file", tx);
    let control = engine::Control { stop: Arc::clone(stop), ..engine::Control::default() };
    let sent = engine.run(&mut job, &control);
    let mut report = Report::new(command);
    report.resolved = Resolved { rate: Some(rate), ..asked };
    report.environment = crate::environment::collect();
    report.warnings = warnings;
    run::stream_notes(&job, &mut report);
    match sent.ended {
        // Nothing half-written: the file gets its name only when it is whole.
        Ended::Done => engine.into_inner().finish()?,
        Ended::Stopped => bail!("stopped: {} was not written", path.display()),
        Ended::Fault(fault) => return Err(fault.into()),
        Ended::SourceFault(fault) => return Err(fault.into()),
    }
    let c = sent.counters;
    report.result.tx = Some(report::Tx {
        totals: report::Totals::over(c.frames, c.bytes, sent.duration_ns),
        engine: "file".to_owned(),
        ..report::Tx::default()
    });
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_in_groups_hold_their_rate_over_five_billion_frames() {
        const FRAMES: u64 = 5_000_000_000;
        // (frames, in so many ns): dividing a second evenly, or not; slow, odd and fast.
        for (frames, per_ns) in [
            (1_000_000, 1_000_000_000),
            (1_488_095, 1_000_000_000),
            (3, 1_000_000_000),
            (150_000_007, 1_000_000_000),
        ] {
            for size in [1, 2, 7, 64, 1000] {
                let even = Schedule::Frames { frames, per_ns };
                let groups = grouped(even, NonZeroU64::new(size).unwrap());
                let mut cursor = groups.cursor();
                let n = FRAMES / size * size;
                cursor.seek(n, |_| 60);
                let exact = u128::from(n) * u128::from(per_ns) / u128::from(frames);
                let off = u128::from(cursor.due()).abs_diff(exact);
                assert!(off <= 10_000 && off * 1_000_000 <= exact, "{frames} in {size}: {off} ns off");
                // All of a group have its first frame's time.
                for _ in 1..size {
                    let due = cursor.due();
                    cursor.advance(60);
                    assert_eq!(cursor.due(), due);
                }
            }
        }
    }
}
