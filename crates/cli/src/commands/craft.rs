//! `netdyno craft`: frames of an expression or a scenario into a capture file, or shown.

use crate::cli::Craft;
use crate::output::{note, print};
use anyhow::{Result, bail};
use capture::{FileFormat, Writer};
use engine::record::FileTx;
use engine::{Control, Ended, Engine, Job, Userspace};
use job::kinds::shared;
use job::kinds::what::{self, Plugged, What};
use report::units;
use scenario::{Context, Scenario, Sign};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use traffic::expr::{Options, compile};
use traffic::{Executor, Program, Rate, Slab};
use wire::LinkType;

/// Most frames shown: more is for a capture and a viewer.
const MOST_SHOWN: u64 = 1000;

pub fn run(args: Craft) -> Result<u8> {
    if args.write.is_none() && !args.show {
        bail!("what with the frames? Write them with -w FILE, or look at them with --show");
    }
    if args.show && args.write.as_ref().is_some_and(|path| path.as_os_str() == "-") {
        bail!("standard output cannot take both the capture and --show: write the capture to a file");
    }
    let mut asked = Some(args.named.0.clone()).filter(|named| !named.name.is_empty());
    args.plugin.ask(asked.as_mut())?;
    let word = args.what.clone().unwrap_or_default();
    let Crafted { program, count, duration, seed, drawn } = match What::of_job(&word, asked.as_ref())? {
        What::Expression(text) => expression(&args, text)?,
        What::Scenario(scenario, _) => self::scenario(&args, &scenario, None)?,
        What::Plugin(plugged) if plugged.plugin.yields_frames() => return yielded(&args, &plugged),
        What::Plugin(plugged) => by_plugin(&args, &plugged)?,
    };
    let longest = program.longest() as usize;
    // A plugin may have used the seed itself, which its program does not show.
    let drawn = drawn && (asked.is_some() || program.uses_seed());
    let paced = program.is_paced();
    let program = Arc::new(program);
    if args.show {
        let mut executor = Executor::new(&program)?;
        let mut slab = Slab::new(1, longest);
        for n in 0..count.min(MOST_SHOWN) {
            if executor.render(&mut slab.buffers(), 1, || 0) == 0 {
                break;
            }
            print(&shown(n, slab.frame(0)))?;
        }
        if count > MOST_SHOWN {
            note(&format!("only the first {MOST_SHOWN} frames are shown"));
        }
    }
    let job = Job { count: Some(count), duration, ..Job::program(program) };
    write(&args, job, longest, paced, drawn.then_some(seed))
}

/// Writes the frames of `job`, if they are to be written; tells the seed that was drawn for them.
fn write(args: &Craft, mut job: Job, longest: usize, paced: bool, drawn: Option<u64>) -> Result<u8> {
    let Some(path) = &args.write else { return Ok(0) };
    let writer = Writer::create(path, FileFormat::of_name(path), LinkType::ETHERNET)?;
    let spacing = if paced { 0 } else { 1_000 };
    let tx = FileTx::new(writer, path.display().to_string(), longest, 0, spacing);
    let mut engine = Userspace::without_waiting("file", tx);
    let control = Control { stop: crate::client::Signals::at_once()?.stop, ..Control::default() };
    let sent = engine.run(&mut job, &control);
    match sent.ended {
        Ended::Done => engine.into_inner().finish()?,
        Ended::Stopped => bail!("stopped by a signal: {} was not written", path.display()),
        Ended::Fault(fault) => return Err(fault.into()),
        Ended::SourceFault(fault) => return Err(fault.into()),
    }
    if path.as_os_str() != "-" {
        let random = drawn.map_or_else(String::new, |seed| format!(", seed {seed}"));
        note(&format!(
            "wrote {} ({}) to {}{random}",
            units::counted(sent.counters.frames, "frame"),
            units::bytes(sent.counters.bytes),
            path.display()
        ));
    }
    Ok(0)
}

/// A frame layer by layer.
fn shown(n: u64, frame: &[u8]) -> String {
    let head = format!("Frame {n}, {} without FCS\n", units::counted(frame.len() as u64, "byte"));
    format!("{head}{}\n", wire::show::show(LinkType::ETHERNET, frame))
}

/// What is to be written.
struct Crafted {
    program: Program,
    count: u64,
    duration: Option<Duration>,
    seed: u64,
    /// Nobody stated the seed.
    drawn: bool,
}

fn expression(args: &Craft, text: &str) -> Result<Crafted> {
    let seed = args.shape.0.seed.unwrap_or_else(shared::draw_seed);
    let options = Options {
        size: args.shape.0.size.as_deref().cloned(),
        seed,
        signature: args.sign.then_some(0),
        name: String::new(),
    };
    let program = compile(text, &options)?;
    let schedule = match args.rate.unwrap_or(Rate::TopSpeed) {
        rate @ (Rate::Percent(_) | Rate::Flows(_)) => {
            bail!("--rate {rate}: a file has no link; give frames or bits per second")
        }
        rate => shared::schedule(rate, None, None)?,
    };
    let program = shared::shaped(program.with_schedule(schedule), args.load.as_ref(), seed)?;
    let count = args.count.unwrap_or(1);
    Ok(Crafted { program, count, duration: None, seed, drawn: args.shape.0.seed.is_none() })
}

/// What a plugin makes. Where neither it nor the command says how fast, without times.
fn by_plugin(args: &Craft, plugged: &Plugged) -> Result<Crafted> {
    let seed = args.shape.0.seed.unwrap_or_else(shared::draw_seed);
    let scenario = plugged.scenario(seed)?;
    let rate = scenario.wants_rate().then_some(Rate::TopSpeed);
    let mut own = args.clone();
    own.shape.0.seed = Some(seed);
    let drawn = args.shape.0.seed.is_none();
    let crafted = Crafted { drawn, ..self::scenario(&own, &scenario, rate)? };
    plugged.plugin.judge(&crafted.program)?;
    Ok(crafted)
}

/// Frames that a plugin yields one by one.
fn yielded(args: &Craft, plugged: &Plugged) -> Result<u8> {
    if let Some(shape) = &args.load {
        bail!("--shape {shape}: a plugin yields these frames one by one: leave it out");
    }
    if args.shape.0.size.is_some() {
        bail!("--size: this plugin's frames are as long as it makes them: leave it out");
    }
    let seed = args.shape.0.seed.unwrap_or_else(shared::draw_seed);
    let mut source = plugged.frames(seed, args.sign)?;
    let paced = args.rate.is_some();
    if let Some(rate) = args.rate {
        source.pace(shared::schedule(rate, None, None)?);
    }
    if args.sign {
        source.sign(0);
    }
    let facts = source.facts();
    let Some(count) = args.count.or(facts.frames) else {
        bail!("how many frames? This plugin's do not end: give --count");
    };
    let longest = facts.longest.unwrap_or_default();
    if args.show {
        let (mut n, mut text) = (0, String::new());
        plugin::each_frame(&mut plugged.row(seed)?, count.min(MOST_SHOWN), |frame| {
            text += &shown(n, frame);
            n += 1;
        })?;
        print(&text)?;
        if count > MOST_SHOWN {
            note(&format!("only the first {MOST_SHOWN} frames are shown"));
        }
    }
    let job = Job { count: Some(count), ..Job::of(source) };
    write(args, job, longest, paced, args.shape.0.seed.is_none().then_some(seed))
}

fn scenario(args: &Craft, scenario: &Scenario, otherwise: Option<Rate>) -> Result<Crafted> {
    if let Some(shape) = &args.load {
        bail!(
            "--shape {shape}: {} has streams with times of their own: give each `shape:` there, beside its `rate:`",
            scenario.name()
        );
    }
    let context = Context {
        sign: if args.sign { Sign::All } else { Sign::No },
        rate: args.rate.or(otherwise),
        size: args.shape.0.size.as_deref().cloned(),
        ..Context::default()
    };
    let made = what::scenario(scenario, args.shape.0.seed, context, None, &AtomicBool::new(false))?;
    let total = made.total();
    let compiled = made.compiled;
    for plan in &compiled.flows {
        let told = what::told(plan);
        note(&format!("flows of {}: {}", units::printable(&told.name), told.facts().join(", ")));
    }
    let count = args.count.or(compiled.count).or(total);
    let duration = compiled.duration.filter(|_| compiled.program.is_paced());
    let Some(count) = count.or(duration.map(|_| u64::MAX)) else {
        bail!("how many frames? This scenario does not end: give --count");
    };
    let drawn = args.shape.0.seed.is_none() && scenario.seed().is_none();
    Ok(Crafted { program: compiled.program, count, duration, seed: made.seed, drawn })
}
