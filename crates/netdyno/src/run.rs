//! A run from start to result: sends a job, watches both ends, and makes the report.
//!
//! ```text
//!   sending thread: Engine::run ----> Control ----.
//!                                                  >---- sampled 10 times a second: intervals, progress line
//!   kernel: meter ---------------> Snapshot ------'
//!   afterwards: wait for stragglers, compare with the interface's own counters, judge
//! ```

use crate::environment::{self, allowed_cpus};
use crate::output;
use crate::place::Place;
use anyhow::{Context, Result};
use engine::source::Source;
use engine::{Control, Ended, Engine, Job, LATE_NS, Sent};
use meter::{Meter, Snapshot};
use port::interface::{CounterReader, Counters};
use report::live::{Live, Pace, Progress};
use report::{
    Bucket, CatchUp, Choice, Core, Distribution, Exact, Flows, InterfaceCounters, Interval, Loss, Pacing,
    Report, Requested, Rx, Stream, Totals, Tx, units,
};
use std::io::Stderr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use traffic::schedule::Position;
use traffic::{Executor, Program, Schedule};
use wire::LinkType;
use wire::flow::{FlowKey, FlowOf, FlowSet};
use wire::layers::Layers;

/// Everything a sending run needs.
pub struct Setup {
    pub command: &'static str,
    pub requested: Requested,
    pub engine: Box<dyn Engine>,
    pub engine_choice: Choice,
    pub job: Job,
    /// Frames there will be in all, when that is known.
    pub total: Option<u64>,
    /// Where frames leave, to compare with its counters.
    pub tx: Option<Place>,
    pub rx: Option<(Place, meter::Options)>,
    /// Only a signal ends it.
    pub endless: bool,
    /// CPU of the sending thread.
    pub core: Option<usize>,
    pub warnings: Vec<String>,
    /// Frames captured shorter than they were, of how many.
    pub truncated: (u64, u64),
    pub output: crate::cli::Output,
    pub stop: Arc<AtomicBool>,
}

/// A flag that SIGINT and SIGTERM set; the same signal again ends the process at once.
pub fn stop_on_signals() -> Result<Arc<AtomicBool>> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

/// How often both ends are looked at.
const SAMPLE: Duration = Duration::from_millis(100);
/// More intervals than this are joined in pairs.
const MOST_INTERVALS: usize = 1200;
/// Stragglers are waited for until none came for so long.
const QUIET: Duration = Duration::from_millis(200);
const STRAGGLERS: Duration = Duration::from_secs(2);
/// Drivers that update their counters now and then do so at least this often.
const COUNTERS_SETTLE: Duration = Duration::from_millis(2500);
/// A run that is this much slower than asked fell short.
const RATE_TOLERANCE: f64 = 0.001;

/// Runs it.
pub fn run(mut setup: Setup) -> Result<Report> {
    if let Some(dir) = &setup.output.report {
        report::prepare_dir(dir)?;
    }
    let mut report = Report::new(setup.command);
    report.requested = std::mem::take(&mut setup.requested);
    report.environment = environment::collect();
    report.environment.engine = Some(setup.engine_choice.clone());
    report.warnings = std::mem::take(&mut setup.warnings);
    if let Some(place) = &setup.tx {
        report.environment.interfaces.push(place.describe("send"));
    }
    let meter = match &setup.rx {
        None => None,
        Some((place, options)) => {
            let name = &place.interface.name;
            let meter = place.run_in(|| Meter::attach(name, options))?;
            let meter = meter.with_context(|| format!("measuring on {}", place.spec))?;
            report.environment.interfaces.push(place.describe("measure"));
            report.environment.meter = Some(mode(&meter));
            Some(meter)
        }
    };
    let mut counters = match &setup.tx {
        Some(place) => {
            let mut reader = place.counters()?;
            let before = reader.read()?;
            Some((reader, before))
        }
        None => None,
    };

    let control = Control { stop: Arc::clone(&setup.stop), ..Control::default() };
    let core = setup.core.or_else(|| allowed_cpus().and_then(|cpus| cpus.last().copied()));
    let mut watch = Watch::new(&setup, meter.as_ref());
    let sent = std::thread::scope(|scope| {
        let (engine, job, control) = (&mut setup.engine, &mut setup.job, &control);
        let sender = scope.spawn(move || {
            if let Some(core) = core {
                pin(core);
            }
            engine.run(job, control)
        });
        while !sender.is_finished() {
            watch.sample(control);
            // In small steps, so that a short run is not held up by its own watching.
            let next = Instant::now() + SAMPLE;
            while !sender.is_finished() && Instant::now() < next {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        sender.join()
    });
    let sent =
        sent.map_err(|_| anyhow::anyhow!("the sending thread panicked: this is a defect of netdyno"))?;
    if let Some(meter) = &meter {
        meter.settle(Some(sent.counters.frames), QUIET, STRAGGLERS);
    }
    let offered = watch.finish(&sent);
    report.intervals = watch.intervals();
    drop(watch);

    // The meter closes first: what arrives while the rest is worked out is not of this run.
    let measured = meter.map(|meter| (meter.is_attached(), meter.finish()));
    fill_tx(&mut report, &setup, &sent, offered, core);
    if let (Some(place), Some((reader, before))) = (&setup.tx, &mut counters) {
        compare_counters(&mut report, place, &sent, reader, before)?;
    }
    if let (Some((place, _)), Some((attached, measured))) = (&setup.rx, measured) {
        if !attached {
            report.result.verdict.fall_short(format!(
                "{} was removed, or its meter detached by force, during the run",
                place.spec
            ));
        }
        fill_rx(&mut report, &setup, &sent, &measured);
    }
    judge(&mut report, &setup, &sent);
    Ok(report)
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

fn pin(core: usize) {
    let mut set = rustix::thread::CpuSet::new();
    if core < rustix::thread::CpuSet::MAX_CPU {
        set.set(core);
        // An impossible CPU was refused when the command line was read; else unpinned is slower, not wrong.
        let _ = rustix::thread::sched_setaffinity(None, &set);
    }
}

/// What was seen at one moment; all counts since the start.
#[derive(Debug, Clone, Copy, Default)]
struct Sample {
    at_ns: u64,
    tx_frames: u64,
    tx_bytes: u64,
    rx_frames: u64,
    rx_bytes: u64,
    late: u64,
    offered: Option<u64>,
    /// Frames that are surely lost: sent by the sample before, and still not here.
    lost: u64,
}

/// Samples both ends while a run goes on.
struct Watch<'a> {
    live: Option<Live<Stderr>>,
    meter: Option<&'a Meter>,
    offered: Offered,
    samples: Vec<Sample>,
    /// Every how many samples one is kept.
    stride: u32,
    skipped: u32,
    latest: Sample,
    last_shown: Option<(Instant, Sample)>,
    duration: Option<u64>,
    total: Option<u64>,
    warnings: usize,
    started: bool,
}

impl<'a> Watch<'a> {
    fn new(setup: &Setup, meter: Option<&'a Meter>) -> Watch<'a> {
        let offered = Offered::of(&setup.job);
        let limit = setup.job.duration.map(|d| d.as_nanos() as u64);
        let whole = setup.total.and_then(|total| offered.time_of(total));
        Watch {
            live: output::live(&setup.output),
            meter,
            duration: match (limit, whole) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            },
            total: setup.total,
            offered,
            samples: vec![Sample::default()],
            stride: 1,
            skipped: 0,
            latest: Sample::default(),
            last_shown: None,
            warnings: setup.warnings.len(),
            started: false,
        }
    }

    /// The last moment of the run up to `at_ns`: the frame due at the very end belongs to what comes after.
    fn within(&self, at_ns: u64) -> u64 {
        self.duration.map_or(at_ns, |duration| duration.min(at_ns)).saturating_sub(1)
    }

    fn look(&mut self, at_ns: u64, tx_frames: u64, tx_bytes: u64, late: u64) -> Sample {
        let seen: Option<Snapshot> = self.meter.map(Meter::snapshot);
        let (rx_frames, rx_bytes) = seen.map_or((0, 0), |s| (s.frames, s.bytes));
        let before = self.latest;
        Sample {
            at_ns,
            tx_frames,
            tx_bytes,
            rx_frames,
            rx_bytes,
            late,
            offered: self.offered.by(self.within(at_ns)).map(|due| due.min(self.total.unwrap_or(u64::MAX))),
            lost: before.lost.max(before.tx_frames.saturating_sub(rx_frames)),
        }
    }

    fn sample(&mut self, control: &Control) {
        let started = control.started.load(Relaxed);
        if started == 0 {
            return;
        }
        let at = engine::clock::now().saturating_sub(started);
        let (frames, bytes, late) =
            (control.frames.load(Relaxed), control.bytes.load(Relaxed), control.late.load(Relaxed));
        let sample = self.look(at, frames, bytes, late);
        self.started = true;
        self.latest = sample;
        self.skipped += 1;
        if self.skipped >= self.stride && sample.at_ns > self.samples.last().map_or(0, |s| s.at_ns) {
            self.skipped = 0;
            self.samples.push(sample);
            if self.samples.len() > MOST_INTERVALS {
                let mut keep = false;
                self.samples.retain(|_| {
                    keep = !keep;
                    keep
                });
                self.stride *= 2;
            }
        }
        self.show(sample);
    }

    fn show(&mut self, sample: Sample) {
        let Some(live) = &mut self.live else { return };
        let now = Instant::now();
        let (_, before) = match self.last_shown {
            Some((at, _)) if now - at < SAMPLE * 2 => return,
            Some(last) => last,
            None => (now, Sample::default()),
        };
        self.last_shown = Some((now, sample));
        let elapsed = sample.at_ns.saturating_sub(before.at_ns);
        let pace = |frames: u64, now: u64, bytes: u64| {
            let totals = Totals::over(now, bytes, elapsed);
            Pace {
                frames,
                frames_per_second: totals.frames_per_second,
                bits_per_second: totals.bits_per_second,
            }
        };
        let offered =
            sample.offered.zip(before.offered.or(Some(0))).map(|(now, before)| now - before.min(now));
        let remaining = match (self.duration, self.total) {
            (Some(duration), _) => Some(duration.saturating_sub(sample.at_ns)),
            (None, Some(total)) if sample.tx_frames > 0 => {
                let left = u128::from(total.saturating_sub(sample.tx_frames));
                Some((left * u128::from(sample.at_ns) / u128::from(sample.tx_frames)) as u64)
            }
            _ => None,
        };
        let progress = Progress {
            elapsed: Duration::from_nanos(sample.at_ns),
            remaining: remaining.map(Duration::from_nanos),
            sent: Some(pace(
                sample.tx_frames,
                sample.tx_frames - before.tx_frames,
                sample.tx_bytes - before.tx_bytes,
            )),
            offered_frames_per_second: offered.map(|n| Totals::over(n, 0, elapsed).frames_per_second),
            received: self.meter.map(|_| {
                pace(sample.rx_frames, sample.rx_frames - before.rx_frames, sample.rx_bytes - before.rx_bytes)
            }),
            loss: self.meter.map(|_| Loss::of(sample.lost, sample.tx_frames)),
            warnings: self.warnings,
        };
        let _ = live.update(&progress);
    }

    /// The last sample: what was sent and what arrived in the end.
    fn finish(&mut self, sent: &Sent) -> Option<u64> {
        let late = sent.punctuality.as_ref().map_or(0, |p| p.late);
        let at = sent.duration_ns.max(self.latest.at_ns.min(sent.duration_ns));
        let mut last = self.look(at, sent.counters.frames, sent.counters.bytes, late);
        last.offered = self.final_offer(sent);
        if self.meter.is_some() {
            last.lost = sent.counters.frames.saturating_sub(last.rx_frames);
        }
        // A sample taken while the run was ending lies at or behind its end.
        while self.samples.len() > 1 && self.samples.last().is_some_and(|s| s.at_ns >= at) {
            self.samples.pop();
        }
        self.samples.push(last);
        if let Some(live) = &mut self.live {
            let _ = live.clear();
        }
        last.offered
    }

    /// Frames that the schedule had due within the run; `None` at top speed.
    fn final_offer(&mut self, sent: &Sent) -> Option<u64> {
        if !self.offered.is_paced() {
            return None;
        }
        // A run that sent all there was to send was offered just that.
        if sent.exhausted {
            return Some(sent.taken);
        }
        self.offered.by(self.within(sent.duration_ns)).map(|due| due.max(sent.taken))
    }

    fn intervals(&self) -> Vec<Interval> {
        let metered = self.meter.is_some();
        let interval = |pair: &[Sample]| {
            let (a, b) = (pair[0], pair[1]);
            Interval {
                start_ns: a.at_ns,
                end_ns: b.at_ns,
                offered_frames: b.offered.map(|n| n.saturating_sub(a.offered.unwrap_or(0))),
                tx_frames: Some(b.tx_frames - a.tx_frames.min(b.tx_frames)),
                tx_bytes: Some(b.tx_bytes - a.tx_bytes.min(b.tx_bytes)),
                rx_frames: metered.then(|| b.rx_frames - a.rx_frames.min(b.rx_frames)),
                rx_bytes: metered.then(|| b.rx_bytes - a.rx_bytes.min(b.rx_bytes)),
                lost_frames: metered.then(|| b.lost.saturating_sub(a.lost)),
                late_frames: self.offered.is_paced().then(|| b.late.saturating_sub(a.late)),
                ..Interval::default()
            }
        };
        self.samples.windows(2).map(interval).filter(|i| i.end_ns > i.start_ns).collect()
    }
}

/// How many frames the schedule has had due.
enum Offered {
    /// Top speed, or only the sender knows.
    Unknown { paced: bool },
    /// By formula.
    Formula(Schedule),
    /// By walking the program: a rate in bits and frames of different lengths.
    Walk { program: Arc<Program>, n: u64, position: Position },
}

impl Offered {
    fn of(job: &Job) -> Offered {
        match &job.source {
            Source::Stream(stream) => match stream.schedule() {
                schedule @ Schedule::Frames { .. } => Offered::Formula(schedule.clone()),
                _ => Offered::Unknown { paced: stream.is_paced() },
            },
            Source::Program(program) => match program.only_schedule() {
                None => Offered::Unknown { paced: program.is_paced() },
                Some(Schedule::TopSpeed) => Offered::Unknown { paced: false },
                Some(Schedule::Bits { bits_per_second, overhead_bytes }) => match program.only_length() {
                    Some(length) => Offered::Formula(Schedule::Frames {
                        frames: *bits_per_second,
                        per_ns: u64::from(length + overhead_bytes) * 8 * 1_000_000_000,
                    }),
                    None => {
                        Offered::Walk { program: Arc::clone(program), n: 0, position: Position::default() }
                    }
                },
                Some(schedule) => Offered::Formula(schedule.clone()),
            },
        }
    }

    fn is_paced(&self) -> bool {
        !matches!(self, Offered::Unknown { paced: false })
    }

    /// Frames due within `ns` of the start. Times must not go back.
    fn by(&mut self, ns: u64) -> Option<u64> {
        match self {
            Offered::Unknown { .. } => None,
            Offered::Formula(schedule) => schedule.frames_due_by(ns),
            Offered::Walk { program, n, position } => {
                let schedule = program.only_schedule()?;
                let mut executor = Executor::new(program).ok()?;
                executor.seek(*n);
                while position.due <= ns {
                    position.advance(schedule, executor.next_length());
                    executor.skip();
                    *n += 1;
                }
                Some(*n)
            }
        }
    }

    /// When frame `n` is due.
    fn time_of(&self, n: u64) -> Option<u64> {
        match self {
            Offered::Formula(schedule) => {
                let mut cursor = schedule.cursor();
                cursor.seek(n, |_| 0);
                Some(cursor.due())
            }
            Offered::Walk { program, .. } => {
                let Some(Schedule::Bits { bits_per_second, overhead_bytes }) = program.only_schedule() else {
                    return None;
                };
                let bits = (bytes_before(program, n)? + u128::from(n) * u128::from(*overhead_bytes)) * 8;
                u64::try_from(bits * 1_000_000_000 / u128::from(*bits_per_second)).ok()
            }
            Offered::Unknown { .. } => None,
        }
    }
}

/// Frames whose lengths are added up one by one; more would be felt as a pause.
const WALK: u64 = 20_000_000;

/// Bytes of the first `n` frames; `None` if that would take too long to find out.
fn bytes_before(program: &Program, n: u64) -> Option<u128> {
    let mut executor = Executor::new(program).ok()?;
    let (mut whole, mut rest) = (0, n);
    if let [stream] = &program.streams[..]
        && stream.is_captured()
    {
        let pass = stream.templates.len() as u64;
        whole = u128::from(n / pass) * u128::from(stream.templates.total_bytes());
        rest = n % pass;
    }
    if rest > WALK {
        return None;
    }
    for _ in 0..rest {
        whole += u128::from(executor.next_length());
        executor.skip();
    }
    Some(whole)
}

fn distribution(histogram: &histogram::Histogram) -> Option<Distribution> {
    let buckets = histogram.buckets().map(|b| Bucket { from: b.from, to: b.to, count: b.count });
    let sum = (histogram.mean() * histogram.count() as f64) as u128;
    Distribution::from_histogram(
        buckets,
        Exact { min: Some(histogram.min()), max: Some(histogram.max()), sum: Some(sum) },
    )
}

fn fill_tx(report: &mut Report, setup: &Setup, sent: &Sent, offered: Option<u64>, core: Option<usize>) {
    let c = &sent.counters;
    let totals = Totals::over(c.frames, c.bytes, sent.duration_ns);
    let scheduled =
        sent.scheduled_ns.filter(|_| sent.exhausted).or(setup.job.duration.map(|d| d.as_nanos() as u64));
    report.result.tx = Some(Tx {
        offered_frames: offered,
        offered_frames_per_second: asked_rate(report, setup).or_else(|| {
            offered.map(|n| Totals::over(n, 0, scheduled.unwrap_or(sent.duration_ns)).frames_per_second)
        }),
        engine: setup.engine.name().to_owned(),
        failed: c.failed,
        retried_enobufs: c.retried_enobufs,
        retried_eagain: c.retried_eagain,
        truncated: truncated(setup, c.frames),
        interface_counters: Vec::new(),
        cores: core.map_or(Vec::new(), |core| {
            let cpu_ratio = (sent.duration_ns > 0).then(|| sent.cpu_ns as f64 / sent.duration_ns as f64);
            vec![Core { core: core as u32, frames: c.frames, bytes: c.bytes, cpu_ratio }]
        }),
        totals,
    });
    if let Some(kept) = &sent.punctuality {
        report.result.pacing = Some(Pacing {
            measured_at: Some("sender".to_owned()),
            lateness_ns: distribution(&kept.lateness),
            last_frame_late_ns: (kept.lateness.count() > 0).then_some(kept.last_late_ns as i64),
            late_frames: Some(kept.late),
            late_threshold_ns: Some(LATE_NS),
            catch_up: Some(CatchUp {
                stalls: kept.stalls,
                longest_stall_ns: kept.longest_stall_ns,
                frames: kept.catch_up_frames,
                rate_limit_ratio: setup.job.catch_up,
                abandoned_ns: 0,
            }),
            ..Pacing::default()
        });
    }
    report.result.flows = match &setup.job.source {
        Source::Program(program) => flows(program, c.frames, sent.duration_ns),
        Source::Stream(_) => None,
    };
    stream_notes(&setup.job, &mut report.warnings);
}

/// What a streamed capture showed while it was read.
pub fn stream_notes(job: &Job, warnings: &mut Vec<String>) {
    let Source::Stream(stream) = &job.source else { return };
    let seen = &stream.seen;
    let mut note = |count: u64, what: &str| {
        if count > 0 {
            warnings.push(format!("{} {what}", units::counted(count, "frame")));
        }
    };
    note(seen.oversized, "longer than the interface takes: left out");
    note(seen.empty, "without a byte: left out");
    note(seen.truncated, "captured shorter than they were (snap length): sent as captured");
    note(seen.backwards, "captured earlier than the one before: sent directly behind it");
    warnings.extend(seen.cut_short.iter().cloned());
}

/// Frames a second that the schedule asks for, where that is one number.
fn asked_rate(report: &Report, setup: &Setup) -> Option<f64> {
    let schedule = match &setup.job.source {
        Source::Program(program) => program.only_schedule(),
        Source::Stream(stream) => Some(stream.schedule()),
    };
    match schedule {
        Some(Schedule::Frames { frames, per_ns }) => Some(*frames as f64 * 1e9 / *per_ns as f64),
        _ => report.requested.rate.as_ref().and_then(|rate| rate.frames_per_second),
    }
}

fn truncated(setup: &Setup, frames: u64) -> u64 {
    match &setup.job.source {
        Source::Stream(stream) => stream.seen.truncated,
        Source::Program(_) => {
            let (cut, of) = setup.truncated;
            (u128::from(cut) * u128::from(frames)).checked_div(of.into()).unwrap_or(0) as u64
        }
    }
}

/// Frames of a program that are made to count its flows; beyond them it would take longer than the run.
const FLOW_SAMPLE: u64 = 4_000_000;

/// The flows among the first `sent` frames.
fn flows(program: &Program, sent: u64, duration_ns: u64) -> Option<Flows> {
    // A capture repeats after a pass, with flows of its own in each or with the same again.
    let captured = program.streams.len() == 1 && program.streams[0].is_captured();
    let pass = program.frames_per_pass().max(1);
    let (flows, flow_frames) = if captured && sent >= pass {
        let (passes, rest) = (sent / pass, sent % pass);
        let (in_pass, frames_in_pass) = count_flows(program, pass)?;
        let (in_rest, frames_in_rest) = count_flows(program, rest)?;
        let unique = program.streams[0].unique_addresses;
        let flows = if unique { passes * in_pass + in_rest } else { in_pass };
        (flows, passes * frames_in_pass + frames_in_rest)
    } else if captured || sent <= FLOW_SAMPLE {
        count_flows(program, sent)?
    } else {
        return None;
    };
    Some(Flows::over(flows, flow_frames, sent.saturating_sub(flow_frames), duration_ns))
}

/// Distinct flows among the first `n` frames, and how many of those frames belong to one.
pub fn count_flows(program: &Program, n: u64) -> Option<(u64, u64)> {
    let mut executor = Executor::new(program).ok()?;
    let mut slab = traffic::Slab::new(1, program.longest() as usize);
    let mut set = FlowSet::default();
    let mut frames = 0;
    for _ in 0..n {
        executor.render(&mut slab.buffers(), 1, || 0);
        let frame = slab.frame(0);
        if let FlowOf::Flow(key) = FlowKey::of(&Layers::parse(LinkType::ETHERNET, frame), frame) {
            set.insert(key);
            frames += 1;
        }
    }
    Some((set.len() as u64, frames))
}

fn compare_counters(
    report: &mut Report,
    place: &Place,
    sent: &Sent,
    reader: &mut CounterReader,
    before: &Counters,
) -> Result<()> {
    let ours = sent.counters.frames;
    let start = Instant::now();
    let moved = loop {
        let Ok(now) = reader.read() else {
            report.warnings.push(format!("the counters of {} can no longer be read", place.spec));
            return Ok(());
        };
        let moved = now.since(before);
        if moved.tx_packets >= ours || start.elapsed() > COUNTERS_SETTLE {
            break moved;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    let mut compared = InterfaceCounters::compare(&place.spec, ours, moved.tx_packets);
    compared.tx_bytes = Some(moved.tx_bytes);
    compared.tx_errors = Some(moved.tx_errors);
    compared.tx_dropped = Some(moved.tx_dropped);
    if compared.missing_frames > 0 {
        report.result.verdict.fall_short(format!(
            "unaccounted frames: the kernel accepted {} but {} counts only {} as transmitted ({} dropped, {} errors): {} are missing",
            units::counted(ours, "frame"),
            place.spec,
            units::count(moved.tx_packets),
            units::count(moved.tx_dropped),
            units::count(moved.tx_errors),
            units::count(compared.missing_frames),
        ));
    }
    if compared.foreign_frames > 0 {
        report.warnings.push(format!(
            "{} sent {} that are not of this run: other programs use it, or the kernel itself does (ARP, IPv6)",
            place.spec,
            units::counted(compared.foreign_frames, "frame"),
        ));
    }
    if let Some(tx) = &mut report.result.tx {
        tx.interface_counters.push(compared);
    }
    Ok(())
}

/// What arrived, without knowing what was sent.
pub fn received(totals: &Snapshot) -> Rx {
    // n frames span n - 1 gaps; the rate is over n of them.
    let span = u128::from(totals.duration_ns());
    let duration = match totals.frames {
        0 | 1 => span,
        n => span * u128::from(n) / u128::from(n - 1),
    };
    Rx {
        totals: Totals::over(totals.frames, totals.bytes, duration as u64),
        duplicated_frames: (totals.signed > 0).then_some(totals.duplicates),
        reordered_frames: (totals.signed > 0).then_some(totals.reordered),
        dropped_frames: (totals.meter_dropped > 0).then_some(totals.meter_dropped),
        ..Rx::default()
    }
}

/// What both kinds of run say of a measurement.
pub fn fill_measured(report: &mut Report, measured: &meter::Measurement) {
    let totals = &measured.totals;
    report.result.rx = Some(received(totals));
    report.result.latency_ns = distribution(&totals.latency);
    report.result.frame_sizes = meter::SIZE_CLASSES
        .iter()
        .zip(totals.sizes)
        .filter(|(_, count)| *count > 0)
        .map(|(&(from, to), count)| Bucket { from: from.into(), to: to.into(), count })
        .collect();
    if totals.negative_latencies > 0 {
        report.warnings.push(format!(
            "{} carry a time stamp of the future: the sender's clock is not this host's, and no latency can be given",
            units::counted(totals.negative_latencies, "frame")
        ));
    }
    if totals.unplaced > 0 {
        report.warnings.push(format!(
            "{} belong to streams beyond the number that is told apart: raise --streams",
            units::counted(totals.unplaced, "frame")
        ));
    }
    if totals.meter_dropped > 0 {
        report.warnings.push(format!(
            "the meter itself missed {}: the packet socket is too slow for this rate",
            units::counted(totals.meter_dropped, "frame")
        ));
    }
    if totals.late > 0 {
        report.warnings.push(format!(
            "{} came so late that duplicates among them cannot be told from reordered ones",
            units::counted(totals.late, "frame")
        ));
    }
}

fn fill_rx(report: &mut Report, setup: &Setup, sent: &Sent, measured: &meter::Measurement) {
    fill_measured(report, measured);
    let totals = &measured.totals;
    let arrived = totals.frames - totals.duplicates;
    let frames = sent.counters.frames;
    let signed = match &setup.job.source {
        // Refused frames would shift the numbering, so then nothing is known of a stream's number of frames.
        Source::Program(program) if sent.counters.failed == 0 => program.signed_among(sent.counters.frames),
        Source::Program(_) => Vec::new(),
        Source::Stream(stream) => {
            if totals.signed > 0 {
                vec![(0, stream.seen.signed)]
            } else {
                Vec::new()
            }
        }
    };
    let mut streams: Vec<Stream> = Vec::new();
    for stats in &measured.streams {
        let of = signed.iter().find(|(number, _)| *number == stats.stream).map(|&(_, n)| n);
        let latency_ns = (measured.streams.len() == 1).then(|| report.result.latency_ns.clone()).flatten();
        streams.push(Stream {
            stream: stats.stream,
            name: None,
            tx_frames: of,
            rx_frames: stats.frames,
            rx_bytes: stats.bytes,
            lost_frames: of.map_or(stats.lost, |n| stats.lost_of(n)),
            duplicated_frames: stats.duplicates,
            reordered_frames: stats.reordered,
            latency_ns,
        });
    }
    for &(number, sent) in &signed {
        if sent > 0 && streams.iter().all(|s| s.stream != number) {
            streams.push(Stream {
                stream: number,
                tx_frames: Some(sent),
                lost_frames: sent,
                ..Stream::default()
            });
        }
    }
    streams.sort_by_key(|s| s.stream);
    // When every frame is signed, ours are told from others; else all that arrives is taken for ours.
    let all_signed = frames > 0 && signed.iter().map(|(_, n)| n).sum::<u64>() == frames;
    let (lost, foreign, certain) = if all_signed {
        let ours: u64 = streams.iter().filter(|s| s.tx_frames.is_some()).map(|s| s.rx_frames).sum();
        (streams.iter().map(|s| s.lost_frames).sum(), totals.frames.saturating_sub(ours), true)
    } else {
        // What the streams prove lost is lost, even if as many frames of others came in their place.
        let proven = streams.iter().filter(|s| s.tx_frames.is_some()).map(|s| s.lost_frames).sum();
        (frames.saturating_sub(arrived).max(proven), arrived.saturating_sub(frames), false)
    };
    report.result.loss = Some(Loss::of(lost, frames));
    if foreign > 0 {
        if let Some(rx) = &mut report.result.rx {
            rx.foreign_frames = Some(foreign);
        }
        let but = if certain { "" } else { ": loss may be larger than it says" };
        let counted = units::counted(foreign, "frame");
        report.warnings.push(format!("{counted} arrived that this run did not send{but}"));
    }
    report.streams = streams;
    if let Source::Program(program) = &setup.job.source {
        for stream in &mut report.streams {
            stream.name =
                program.streams.iter().find(|s| s.signature == Some(stream.stream)).map(|s| s.name.clone());
        }
        if totals.frames == frames && lost == 0 && totals.duplicates == 0 && totals.reordered == 0 {
            gaps(report, program, &measured.arrivals);
        }
    }
}

/// How far the gaps between arrivals were from the schedule's: frame i of the arrivals is frame i of the program,
/// because nothing was lost.
fn gaps(report: &mut Report, program: &Program, arrivals: &[u64]) {
    let Some(schedule) = program.only_schedule().filter(|schedule| schedule.is_paced()) else { return };
    if arrivals.len() < 2 {
        return;
    }
    let Ok(mut executor) = Executor::new(program) else { return };
    let mut cursor = schedule.cursor();
    let mut before = cursor.due();
    let mut errors = Vec::with_capacity(arrivals.len() - 1);
    let (mut gapped, mut back_to_back) = (0u64, 0u64);
    for pair in arrivals.windows(2) {
        cursor.advance(executor.next_length());
        executor.skip();
        let (wanted, got) = (cursor.due().saturating_sub(before), pair[1].saturating_sub(pair[0]));
        before = cursor.due();
        errors.push(wanted.abs_diff(got));
        // Two frames handed over in one go arrive within a microsecond.
        if wanted >= 2_000 {
            gapped += 1;
            back_to_back += u64::from(got * 4 < wanted);
        }
    }
    if let Some(pacing) = &mut report.result.pacing {
        pacing.measured_at = Some("receiver".to_owned());
        pacing.gap_error_ns = Distribution::from_samples(&mut errors);
        pacing.back_to_back_ratio = (gapped > 0).then(|| back_to_back as f64 / gapped as f64);
    }
}

/// Did the run do what was asked?
fn judge(report: &mut Report, setup: &Setup, sent: &Sent) {
    let verdict = &mut report.result.verdict;
    let frames = sent.counters.frames;
    match &sent.ended {
        Ended::Done => {}
        Ended::Stopped if setup.endless => {}
        Ended::Stopped => verdict.fall_short(format!(
            "stopped by a signal after {}, before all was sent",
            units::time(sent.duration_ns)
        )),
        Ended::Fault(fault) if frames == 0 => verdict.fail(fault.to_string()),
        Ended::Fault(fault) => verdict.fall_short(fault.to_string()),
        Ended::SourceFault(fault) if frames == 0 => verdict.fail(fault.to_string()),
        Ended::SourceFault(fault) => verdict.fall_short(fault.to_string()),
    }
    if sent.counters.failed > 0 {
        verdict.fall_short(format!(
            "the interface refused {} (too long for its MTU, or malformed for its driver)",
            units::counted(sent.counters.failed, "frame")
        ));
    }
    if let Some(loss) = report.result.loss
        && loss.frames > 0
    {
        verdict.fall_short(format!(
            "{} that were sent did not arrive ({})",
            units::counted(loss.frames, "frame"),
            units::percent(loss.ratio)
        ));
    }
    let (Ended::Done, Some(scheduled), Some(_)) = (&sent.ended, sent.scheduled_ns, &sent.punctuality) else {
        return;
    };
    let (lasted, reached) = (sent.duration_ns as f64, scheduled as f64);
    if lasted > reached * (1.0 + RATE_TOLERANCE) && lasted - reached > 1e6 {
        verdict.fall_short(format!(
            "the rate was not reached: frames for {} took {} ({} of the rate asked for)",
            units::time(scheduled),
            units::time(sent.duration_ns),
            units::percent(reached / lasted)
        ));
    }
}
