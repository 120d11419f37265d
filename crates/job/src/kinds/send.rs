//! `netdyno send`: frames of an expression or a scenario onto an interface.

use super::resolve::resolve;
use super::shared;
use super::shared::{Metering, Pace, Through};
use super::what::{self, Made, What};
use crate::place::Place;
use crate::run::{self, Setup};
use crate::session::Session;
use anyhow::{Result, bail};
use engine::Job;
use report::{Code, Report, Requested, RequestedRate};
use spec::{Engine, Send, Word};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use traffic::expr::{Options, compile};
use traffic::rate::NoSchedule;
use traffic::scenario::{Context, Scenario, Sign};
use traffic::{Program, Rate};

pub fn run(args: &Send, session: Session) -> Result<Report> {
    let pace = Pace::from(args.pace());
    shared::check_pace(&pace)?;
    let link = args.links.first();
    let sending = link.and_then(|link| link.on.as_deref());
    let measure = link.and_then(|link| link.measure.as_deref());
    let through = Through::of(args.through(), &session.consent);
    let metering = Metering {
        measure: measure.map(str::to_owned),
        round_trip: args.round_trip,
        how: args.meter.clone(),
    };
    let what = What::of(&args.what)?;
    let place = shared::sending_place(sending, &through)?;
    let cpus = shared::cpus(&through, place.as_ref(), None)?;
    let asked = Asked { job: args, pace: &pace, measured: measure.is_some() };
    let Planned { mut program, requested, total, endless, mut warnings } = match what {
        What::Expression(text) => expression(&asked, text, place.as_ref())?,
        What::Scenario(scenario, file) => {
            self::scenario(&asked, &scenario, file, (place.as_ref(), &session.stop))?
        }
    };
    let mut rx = shared::measuring_place(&metering, &through, program.is_paced(), sending)?;
    if let Some((_, options)) = rx.as_mut().filter(|_| args.sign == spec::Sign::Never) {
        // Of frames without a stamp there is no latency; looking at the clock for it may cost as much as a frame.
        options.latency = program.streams.iter().any(|stream| stream.signature.is_some());
    }
    if args.meter.check_content {
        let Some((_, options)) = rx.as_mut() else {
            bail!("--check-content: nothing is measured: add --measure IFACE or --round-trip");
        };
        let (content, unchecked) = run::content::expected(&program, cpus.len())?;
        options.content = content;
        warnings.extend(unchecked);
    }
    if let Some(place) = place.as_ref().filter(|_| args.resolve) {
        for found in resolve(&mut program, place, &session.stop)? {
            session.say(Code::NextHopFound, found);
        }
    }
    if let Some(place) = &place {
        shared::check_mtu(&program, place)?;
    }
    let requested = Requested {
        engine: Some(args.engine.name().to_owned()),
        interfaces: shared::interfaces(place.as_ref(), rx.as_ref(), &run::Second::default(), &metering),
        ..requested
    };
    let (count, duration) = (requested.count, requested.duration_ns.map(Duration::from_nanos));
    session.heed();
    let longest = program.longest() as usize;
    let job = Job { count, duration, catch_up: pace.catch_up, spin: pace.spin, ..Job::program(program) };
    run::run(Setup {
        requested,
        total,
        endless,
        patient: true,
        tx: place.filter(|_| args.engine != Engine::Null),
        rx,
        round_trip: args.round_trip,
        cpus,
        warnings,
        session,
        ..Setup::of("send", shared::open_by(&through, false)?, job, longest)
    })
}

/// What was asked for.
struct Asked<'a> {
    job: &'a Send,
    pace: &'a Pace,
    measured: bool,
}

impl Asked<'_> {
    /// All frames have to be signed.
    fn signs(&self) -> bool {
        self.job.sign == spec::Sign::Always || self.job.round_trip
    }

    /// Frames are signed where they have room, although nobody asked for it.
    fn signs_by_itself(&self) -> bool {
        self.measured && self.job.sign != spec::Sign::Never
    }

    fn size(&self) -> Option<traffic::expr::Size> {
        self.job.size.as_deref().cloned()
    }
}

/// What is to be sent, and what was asked for.
struct Planned {
    program: Program,
    requested: Requested,
    total: Option<u64>,
    endless: bool,
    warnings: Vec<String>,
}

fn expression(args: &Asked<'_>, text: &str, place: Option<&Place>) -> Result<Planned> {
    let Some(rate) = args.pace.rate else {
        bail!("how fast? Give --rate (1mpps, 500mbps, 10%, ...) or --topspeed");
    };
    let seed = args.job.seed.unwrap_or_else(shared::draw_seed);
    let mut warnings = Vec::new();
    let program = program(args, text, seed, &mut warnings)?;
    let flows = match rate {
        Rate::Flows(_) => Some(flows_per_pass(&program)?),
        _ => None,
    };
    let schedule = shared::schedule(rate, place, flows)?;
    let requested = Requested {
        source: Some(report::Source::Expression { expression: text.to_owned() }),
        rate: Some(shared::requested_rate(rate, &schedule)),
        count: args.pace.count,
        duration_ns: args.pace.duration.map(|d| d.as_nanos() as u64),
        seed: program.uses_seed().then_some(seed),
        ..Requested::default()
    };
    let endless = args.pace.count.is_none() && args.pace.duration.is_none();
    let program = program.with_schedule(schedule);
    Ok(Planned { program, requested, total: args.pace.count, endless, warnings })
}

/// What the command line says holds instead of what the file says of the whole run.
fn scenario(
    args: &Asked<'_>,
    scenario: &Scenario,
    file: &str,
    (place, stop): (Option<&Place>, &AtomicBool),
) -> Result<Planned> {
    let sign = match (args.signs(), args.signs_by_itself()) {
        (true, _) => Sign::All,
        (false, true) => Sign::WhereRoom,
        (false, false) => Sign::No,
    };
    let context = Context { sign, rate: args.pace.rate, size: args.size(), ..Context::default() };
    let made = what::scenario(scenario, args.job.seed, context, place, stop)?;
    let own_total = made.total();
    let Made { compiled, seed, warnings } = made;
    let rate = match compiled.rate {
        Some(rate) => shared::requested_rate(rate, &shared::schedule(rate, place, None)?),
        None => RequestedRate { text: "as the scenario says".to_owned(), ..RequestedRate::default() },
    };
    let count = args.pace.count.or(compiled.count);
    let duration = args.pace.duration.or(compiled.duration);
    let requested = Requested {
        source: Some(report::Source::Scenario { file: file.to_owned(), name: scenario.name().to_owned() }),
        rate: Some(rate),
        count,
        duration_ns: duration.map(|d| d.as_nanos() as u64),
        seed: compiled.program.uses_seed().then_some(seed),
        ..Requested::default()
    };
    let total = match (own_total, count) {
        (Some(own), Some(count)) => Some(own.min(count)),
        (own, count) => own.filter(|_| duration.is_none()).or(count),
    };
    let endless = compiled.endless && count.is_none() && duration.is_none();
    Ok(Planned { program: compiled.program, requested, total, endless, warnings })
}

/// Compiles the expression, signed if that was asked for or can be had.
fn program(args: &Asked<'_>, text: &str, seed: u64, warnings: &mut Vec<String>) -> Result<Program> {
    let options = |signature| Options { size: args.size(), seed, signature, name: String::new() };
    let measured = args.signs_by_itself();
    if args.signs() {
        return Ok(compile(text, &options(Some(0)))?);
    }
    if measured && let Ok(program) = compile(text, &options(Some(0))) {
        return Ok(program);
    }
    let program = compile(text, &options(None))?;
    if measured {
        warnings
            .push("these frames have no room for a signature: order and latency are not measured".to_owned());
    }
    Ok(program)
}

/// Frames looked at to find how many flows an expression has.
const MOST: u64 = 1 << 22;

/// Flows, and frames until they come again.
fn flows_per_pass(program: &Program) -> Result<(u64, u64)> {
    let mut period = 1u64;
    for field in program.streams.iter().flat_map(|s| &s.fields) {
        let Some(own) = field.values.period().and_then(|p| p.checked_mul(field.every)) else {
            bail!("{}: some of its fields never repeat; give frames per second", NoSchedule::FlowsUnknown);
        };
        let (mut a, mut b) = (period, own.max(1));
        while b != 0 {
            (a, b) = (b, a % b);
        }
        match (period / a).checked_mul(own) {
            Some(next) if next <= MOST => period = next,
            _ => bail!(
                "a rate in flows per second needs flows that repeat within {MOST} frames; give frames per second"
            ),
        }
    }
    let flows = run::count_flows(program, period).map_or(0, |counted| counted.flows.iter().sum());
    Ok((flows, period))
}
