//! `netdyno replay`: captures onto an interface.

use super::shared;
use crate::cli::{OversizeChoice, Pace, Replay};
use crate::output::{conclude, note};
use crate::place::Place;
use crate::run::{self, Setup};
use anyhow::{Result, bail};
use capture::{FileFormat, Reader, Writer};
use engine::record::FileTx;
use engine::source::preload::{Limit, Loaded, Oversize, preload};
use engine::source::stream::{self, StreamSource, Timing};
use engine::source::{Source, SourceError};
use engine::{Ended, Engine, Job, Userspace};
use report::{Requested, RequestedRate, units};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use traffic::schedule::Speed;
use traffic::{Rate, Schedule};
use wire::LinkType;

/// Captures up to this size are read into memory in any case: it costs nothing, and flows can be counted.
const SMALL: u64 = 32 << 20;
/// Buffers of a streamed replay: as long as any frame that an interface takes.
const STREAM_BUFFER: usize = traffic::templates::MAX_LENGTH;

pub fn run(args: Replay) -> Result<u8> {
    shared::check_pace(&args.pace)?;
    let place = match &args.write {
        Some(_) => None,
        None => shared::sending_place(args.interface.as_deref(), &args.through)?,
    };
    let paced = rate(&args.pace) != Some(Rate::TopSpeed);
    let rx = shared::measuring_place(&args.metering, &args.through, paced, args.interface.as_deref())?;
    let with_classic = args.write.is_none();
    let output = args.output.clone();
    let to_stdout = args.write.as_ref().is_some_and(|path| path.as_os_str() == "-");
    let report = replay("replay", args, place, rx)?;
    if to_stdout {
        // The capture went there; the summary must not follow it.
        crate::output::note(&report::text::render(&report, report::text::Options::default()));
        return Ok(report.result.verdict.exit_status());
    }
    conclude(&report, &output, with_classic)
}

/// The stream of the signatures, if frames are to be signed.
fn signature(args: &Replay) -> Option<u32> {
    (args.sign || args.metering.round_trip).then_some(0)
}

fn rate(pace: &Pace) -> Option<Rate> {
    shared::rate_of(pace)
}

/// Opens the captures and sends them from `place`.
pub fn replay(
    command: &'static str,
    args: Replay,
    place: Option<Place>,
    rx: Option<(Place, meter::Options)>,
) -> Result<report::Report> {
    let readers = open(&args.files, args.skip_corrupt)?;
    let again =
        args.loops.is_some_and(|loops| loops != 1) || (args.loops.is_none() && args.pace.duration.is_some());
    let piped = args.files.iter().any(|file| file.as_os_str() == "-");
    if piped && again && !args.preload {
        bail!("standard input cannot be read a second time for a loop: add --preload, or give a file");
    }
    let small = readers
        .iter()
        .try_fold(0u64, |sum, reader| Some(sum + reader.file_len()?))
        .is_some_and(|n| n <= SMALL);
    let limit = Limit {
        interface: place.as_ref().map(|p| (p.interface.name.clone(), p.interface.mtu)),
        oversize: match args.oversize {
            OversizeChoice::Refuse => Oversize::Refuse,
            OversizeChoice::Skip => Oversize::Skip,
        },
    };
    // Told to go on for a time or a number of frames, a capture is looped as often as that takes.
    let open_ended = args.pace.duration.is_some() || args.pace.count.is_some();
    let loops = match args.loops {
        Some(0) => None,
        Some(n) => Some(n),
        None if open_ended => None,
        None => Some(1),
    };
    let mut warnings = Vec::new();
    if args.unique_ip && loops == Some(1) {
        warnings.push(
            "--unique-ip changes addresses from the second pass on, and there is only one: add --loop".into(),
        );
    }
    let asked = Requested {
        command_line: shared::command_line(),
        source: Some(report::Source::Files {
            files: args.files.iter().map(|f| f.display().to_string()).collect(),
        }),
        engine: Some(shared::engine_name(args.through.engine)),
        loops,
        count: args.pace.count,
        duration_ns: args.pace.duration.map(|d| d.as_nanos() as u64),
        unique_ip: Some(args.unique_ip),
        interfaces: shared::interfaces(place.as_ref(), rx.as_ref(), &args.metering),
        ..Requested::default()
    };
    let (source, requested_rate, total, truncated, longest) = if args.stream || !(args.preload || small) {
        let (source, rate) = streamed(&args, readers, limit, loops, place.as_ref())?;
        let longest = place.as_ref().map_or(STREAM_BUFFER, |p| p.interface.mtu as usize + 64);
        (source, rate, args.pace.count, (0, 1), longest)
    } else {
        let loaded = load(readers, &limit, args.output.quiet)?;
        report_oddities(&loaded, &mut warnings);
        let truncated = (loaded.truncated, loaded.templates.len() as u64);
        let pass = loaded.templates.len() as u64;
        let whole = loops.map(|loops| loops.saturating_mul(pass));
        let total = match (whole, args.pace.count) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let (schedule, rate) = preloaded_schedule(&args, &loaded, loops, place.as_ref())?;
        let longest = loaded.templates.longest() as usize;
        let name = args.files.first().map_or(String::new(), |f| f.display().to_string());
        let program = loaded.into_program(name, schedule, args.unique_ip, signature(&args));
        (Source::Program(Arc::new(program)), rate, total, truncated, longest)
    };
    let cpus = shared::cpus(&args.through, place.as_ref())?;
    let stop = run::stop_on_signals()?;
    let (job_total, count) = (total, total);
    let job = Job {
        source,
        count,
        duration: args.pace.duration,
        catch_up: args.pace.catch_up,
        spin: args.pace.spin,
    };
    if let Some(path) = &args.write {
        return write(command, asked, requested_rate, job, path, longest, stop, warnings, &args);
    }
    run::run(Setup {
        command,
        requested: Requested { rate: Some(requested_rate), ..asked },
        open: shared::open_engines(args.through.engine),
        longest,
        job,
        total: job_total,
        endless: loops.is_none() && !open_ended,
        // The null engine sends nothing, so no counter moves.
        tx: place.filter(|_| args.through.engine != crate::cli::Engine::Null),
        rx,
        round_trip: args.metering.round_trip,
        cpus,
        warnings,
        truncated,
        output: args.output,
        stop,
    })
}

pub fn open(files: &[PathBuf], lenient: bool) -> Result<Vec<Reader>> {
    let mut readers = Vec::with_capacity(files.len());
    for file in files {
        let reader = Reader::open(file)?;
        readers.push(if lenient { reader.lenient() } else { reader });
    }
    Ok(readers)
}

fn load(mut readers: Vec<Reader>, limit: &Limit, quiet: bool) -> Result<Loaded> {
    let start = Instant::now();
    let loaded = preload(&mut readers, limit)?;
    if !quiet && start.elapsed().as_millis() > 200 {
        note(&format!(
            "preloaded {} ({}) in {}",
            units::counted(loaded.templates.len() as u64, "frame"),
            units::bytes(loaded.templates.total_bytes()),
            units::time(start.elapsed().as_nanos() as u64)
        ));
    }
    Ok(loaded)
}

fn report_oddities(loaded: &Loaded, warnings: &mut Vec<String>) {
    let mut note = |count: u64, what: &str| {
        if count > 0 {
            warnings.push(format!("{} {what}", units::counted(count, "frame")));
        }
    };
    note(loaded.oversized, "longer than the interface takes: left out");
    note(loaded.empty, "without a byte: left out");
    note(loaded.truncated, "captured shorter than they were (snap length): sent as captured");
    note(loaded.backwards, "captured earlier than the one before: sent directly behind it");
    warnings.extend(loaded.cut_short.iter().cloned());
}

/// The schedule of a preloaded capture, and how the result tells it.
fn preloaded_schedule(
    args: &Replay,
    loaded: &Loaded,
    loops: Option<u64>,
    place: Option<&Place>,
) -> Result<(Schedule, RequestedRate)> {
    if let Some(rate) = rate(&args.pace) {
        let frames = loaded.templates.len() as u64;
        let flows = matches!(rate, Rate::Flows(_)).then(|| (loaded.flows(), frames));
        let schedule = shared::schedule(rate, place, flows)?;
        return Ok((schedule.clone(), shared::requested_rate(rate, &schedule)));
    }
    let speed = args.speed.unwrap_or(Speed::ONE);
    if loaded.span_ns() == 0 && loops != Some(1) {
        let names: Vec<String> = args.files.iter().map(|f| f.display().to_string()).collect();
        return Err(SourceError::NoDuration(names.join(", ")).into());
    }
    Ok((loaded.timing(speed), capture_rate(speed)))
}

fn capture_rate(speed: Speed) -> RequestedRate {
    let times = speed.numerator as f64 / speed.denominator as f64;
    let text = if times == 1.0 { "capture".to_owned() } else { format!("capture x{times}") };
    RequestedRate { text, ..RequestedRate::default() }
}

fn streamed(
    args: &Replay,
    readers: Vec<Reader>,
    limit: Limit,
    loops: Option<u64>,
    place: Option<&Place>,
) -> Result<(Source, RequestedRate)> {
    let (timing, asked) = match rate(&args.pace) {
        Some(rate) => {
            let schedule = shared::schedule(rate, place, None)?;
            let asked = shared::requested_rate(rate, &schedule);
            (Timing::Schedule(schedule), asked)
        }
        None => {
            let speed = args.speed.unwrap_or(Speed::ONE);
            (Timing::Capture(speed), capture_rate(speed))
        }
    };
    let longest = place.map_or(STREAM_BUFFER, |p| p.interface.mtu as usize + 64);
    let options = stream::Options { loops, unique: args.unique_ip, sign: signature(args), limit, timing };
    Ok((Source::Stream(Box::new(StreamSource::new(readers, options, longest))), asked))
}

/// `replay -w`: the frames and their times into a file.
#[expect(clippy::too_many_arguments, reason = "each is used once, by the one caller")]
fn write(
    command: &'static str,
    asked: Requested,
    rate: RequestedRate,
    mut job: Job,
    path: &std::path::Path,
    longest: usize,
    stop: Arc<std::sync::atomic::AtomicBool>,
    warnings: Vec<String>,
    args: &Replay,
) -> Result<report::Report> {
    // At top speed all frames have the same time, so that no duration is ever over.
    let timed = args.pace.duration.is_some() && rate.text != Rate::TopSpeed.to_string();
    let looped = args.loops.unwrap_or(u64::from(args.pace.duration.is_none()));
    if looped == 0 && job.count.is_none() && !timed {
        bail!("a file cannot take frames without end: give --count or --loop, or --duration with a --rate");
    }
    let to_stdout = path.as_os_str() == "-";
    if to_stdout && args.output.json {
        bail!("standard output cannot take both the capture and --json: write the capture to a file");
    }
    let writer = Writer::create(path, FileFormat::of_name(path), LinkType::ETHERNET)?;
    let spacing = if rate.text == Rate::TopSpeed.to_string() { 1_000 } else { 0 };
    let tx = FileTx::new(writer, path.display().to_string(), longest, 0, spacing);
    let mut engine = Userspace::without_waiting("file", tx);
    let control = engine::Control { stop, ..engine::Control::default() };
    let sent = engine.run(&mut job, &control);
    let mut report = report::Report::new(command);
    report.requested = Requested { rate: Some(rate), ..asked };
    report.environment = crate::environment::collect();
    report.warnings = warnings;
    run::stream_notes(&job, &mut report.warnings);
    match sent.ended {
        // Nothing half-written: the file gets its name only when it is whole.
        Ended::Done => engine.into_inner().finish()?,
        Ended::Stopped => bail!("stopped by a signal: {} was not written", path.display()),
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
