//! `netdyno send`: frames of an expression or a scenario onto an interface.

use super::Run;
use super::lab;
use super::resolve::resolve;
use super::shared;
use super::shared::{Metering, Pace, Through};
use super::what::{self, Made, Plugged, What};
use crate::dropped::{Follow, Trace};
use crate::mesh::{self, Station};
use crate::place::Place;
use crate::run::{self, PerPort, Setup};
use crate::session::Session;
use anyhow::{Context as _, Result, bail};
use engine::{Awake, Job, Priority};
use report::{Code, Report, RequestedRate, Resolved, Warnings};
use scenario::{Context, Scenario, Sign};
use spec::{Engine, Pattern, Send, Word};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use traffic::expr::{Options, compile};
use traffic::fraction::gcd;
use traffic::rate::NoSchedule;
use traffic::{Program, Rate, Schedule, Shape};

impl Run for spec::Send {
    fn run(&self, session: Session) -> Result<Report> {
        run(self, session)
    }
}

fn run(args: &Send, session: Session) -> Result<Report> {
    let Some(asked) = &args.lab else { return sent(args, None, None, session) };
    let through = Through::of(args.through(), &session.consent);
    shared::check_lab(&through)?;
    let own = lab::TwoHosts::make(asked, through.queues())?;
    let board = Arc::clone(&session.board);
    let counters = own.counters();
    let tracing = own.tracing(traced(args, true), args.meter.clock);
    let mut report = sent(args, Some(own.places()?), tracing.follow(), session)?;
    tracing.finish(&mut report);
    own.finish(counters, &mut report, |said| board.say(report::Note::info(Code::Begun, said)))?;
    Ok(report)
}

/// Whether what the kernel drops is traced.
pub(super) fn traced(args: &Send, in_a_lab: bool) -> Trace {
    Trace::of(args.trace_drops, args.no_trace_drops, in_a_lab)
}

/// From and to these places, or those that are named; what is dropped may be traced already.
fn sent(args: &Send, places: Option<[Place; 2]>, follow: Option<Follow>, session: Session) -> Result<Report> {
    let pace = Pace::from(args);
    shared::check_pace(&pace)?;
    let through = Through::of(args.through(), &session.consent);
    let what = What::of_job(&args.what, args.plugin.as_ref())?;
    let mut in_lab = None;
    if let What::Plugin(plugged) = &what
        && plugged.plugin.yields_frames()
    {
        let seed = args.seed.unwrap_or_else(shared::draw_seed);
        let source = plugged.frames(seed, args.sign == spec::Sign::Always)?;
        return super::given::of_plugin(args, source, (plugged.source(), seed), session);
    }
    let asked = Request {
        job: args,
        pace: &pace,
        seed: seed(args, &what),
        measured: places.is_some()
            || args.pattern == Pattern::Mesh
            || session.among.measured
            || args.links.iter().any(|link| link.measure.is_some()),
    };
    let (mut tx, ends) = match places {
        Some([near, far]) => {
            in_lab = Some(far);
            (vec![near], Vec::new())
        }
        None => senders(args, &through)?,
    };
    let several = ends.len() > 1;
    let (workers, cpus) = match several {
        true => shared::cpus_of_ports(&through, &tx)?,
        false => {
            let cpus = shared::cpus_apart(&through, &tx, claims_as(&pace, &session), true)?;
            (cpus.len(), cpus)
        }
    };
    let (mut planned, mut arrive) = plan(&asked, what, &tx, &session.stop)?;
    part(args, &mut planned, &mut arrive, (session.among.part, several))?;
    let paced = planned.program.is_paced();
    let mut rx = match in_lab {
        Some(far) => {
            let metering = Metering { how: how_measured(args, workers), ..Metering::default() };
            vec![shared::metered(far, &metering, paced)?]
        }
        None => receivers(args, &ends, &through, (paced, workers))?,
    };
    expect(args, &mut planned, &mut rx, workers)?;
    if args.resolve {
        planned.program = resolved(&planned.program, &tx, &session)?;
    }
    for place in &tx {
        shared::check_mtu(&planned.program, place)?;
    }
    let Planned { program, resolved, total, endless, warnings } = planned;
    let resolved = Resolved {
        engine: Some(args.engine.name().to_owned()),
        interfaces: shared::interfaces(&tx, &rx, args.round_trip),
        ..resolved
    };
    let (count, duration) = (resolved.count, resolved.duration_ns.map(Duration::from_nanos));
    session.stop_in_order();
    if args.pattern == Pattern::Mesh {
        teach(&program, args, &session)?;
    }
    if args.engine == Engine::Null {
        tx.clear();
    }
    let longest = program.longest() as usize;
    let count = count.map(|count| count.saturating_mul(ends.len().max(1) as u64));
    let open = shared::open_by(&through, false, Some(&program))?;
    let priority = priority(&pace, paced, &session);
    let _awake = awake(priority, &cpus);
    let job = Job {
        count,
        duration,
        pacing: pace.pacing(&tx),
        stamps: shared::stamps(args.meter.clock, &session.among),
        ..Job::program(program)
    };
    run::run(Setup {
        resolved,
        total,
        endless,
        patient: true,
        per_port: several.then_some(PerPort { ports: tx.len(), workers, arrive }),
        trace: traced(args, false),
        follow,
        tx,
        rx,
        round_trip: args.round_trip,
        capture: args.meter.capture.clone(),
        cpus,
        priority,
        warnings,
        session,
        ..Setup::of("send", open, job, longest)
    })
}

/// Before whom it is sent. Of a trial what is held up once spoils it.
fn priority(pace: &Pace, paced: bool, session: &Session) -> Priority {
    match pace.priority(paced) {
        Priority::AsNeeded if session.among.trial => Priority::RealTime,
        other => other,
    }
}

/// As what cores are claimed, before it is known whether frames have times.
fn claims_as(pace: &Pace, session: &Session) -> Priority {
    match session.among.trial && !pace.no_real_time {
        true => Priority::RealTime,
        false => Priority::Ordinary,
    }
}

/// A core that is halted in each of a trial's rests is given back late.
fn awake(priority: Priority, cpus: &[Option<usize>]) -> Awake {
    match priority {
        Priority::RealTime => Awake::keep(&cpus.iter().copied().flatten().collect::<Vec<_>>()),
        Priority::Ordinary | Priority::AsNeeded => Awake::keep(&[]),
    }
}

/// Of what several jobs send together this one's part: its signed streams have numbers of their own, and where the jobs share the frames
/// it sends those that are its own.
fn part(
    args: &Send,
    planned: &mut Planned,
    arrive: &mut BTreeMap<u32, usize>,
    (part, several): (Option<(u32, u32)>, bool),
) -> Result<()> {
    let Some((number, of)) = part else {
        if args.share {
            bail!(
                "`.share`: the interfaces of one host each send the whole: share frames among agents, or among `.cores`"
            );
        }
        return Ok(());
    };
    let own = |signature: u32| signature.saturating_mul(of).saturating_add(number);
    *arrive = std::mem::take(arrive).into_iter().map(|(stream, port)| (own(stream), port)).collect();
    let program = &mut planned.program;
    if !args.share {
        program.streams.iter_mut().for_each(|stream| stream.signature = stream.signature.map(own));
        return Ok(());
    }
    if several {
        bail!("`.share`: give one interface of each agent, and no mesh");
    }
    let count = |whole: Option<u64>| {
        match whole {
        None => Ok(None),
        Some(whole) => program.share_count(number, of, whole).map(Some).with_context(|| {
            format!(
                "`.count` {whole} cannot be shared out among {of} agents, because streams with rates of their own take part in it: give a `.duration` instead"
            )
        }),
    }
    };
    (planned.resolved.count, planned.total) = (count(planned.resolved.count)?, count(planned.total)?);
    *program = program.share(number, of);
    Ok(())
}

/// What is sent, and at which port each signed stream arrives.
fn plan(
    asked: &Request<'_>,
    what: What<'_>,
    tx: &[Place],
    stop: &Arc<AtomicBool>,
) -> Result<(Planned, BTreeMap<u32, usize>)> {
    if asked.job.pattern == Pattern::Mesh {
        return mesh(asked, what, tx);
    }
    let made = match &what {
        What::Plugin(plugged) => Some(plugged.scenario(asked.seed)?),
        _ => None,
    };
    let plan = |place: Option<&Place>| match &what {
        What::Expression(text) => expression(asked, text, place),
        What::Scenario(found, file) => {
            let source = report::Source::Scenario { file: (*file).to_owned(), name: found.name().to_owned() };
            scenario(asked, found, source, (place, stop))
        }
        What::Plugin(plugged) => {
            let made = made.as_ref().context("a plugin makes a scenario")?;
            plugin(asked, plugged, made, (place, stop))
        }
    };
    let plans = if tx.is_empty() { vec![plan(None)?] } else { each(tx, plan)? };
    Ok(joined(plans, tx))
}

/// Tells the meters what they may expect of what is sent.
fn expect(
    args: &Send,
    planned: &mut Planned,
    rx: &mut [(Place, meter::Options)],
    workers: usize,
) -> Result<()> {
    for (_, options) in rx.iter_mut().filter(|_| args.sign == spec::Sign::Never) {
        // Of frames without a stamp there is no latency; looking at the clock for it may cost as much as a frame.
        options.latency = planned.program.streams.iter().any(|stream| stream.signature.is_some());
    }
    if args.meter.check_content {
        if rx.is_empty() {
            bail!("`.check_content`: nothing is measured: add `.measure` IFACE or `.round_trip`");
        }
        let (content, unchecked) = run::content::expected(&planned.program, workers)?;
        rx.iter_mut().for_each(|(_, options)| options.content = content.clone());
        planned.warnings.extend(unchecked.into_iter().map(|said| Code::ContentUnchecked.says(said)));
    }
    Ok(())
}

/// The program, its frames addressed to the next hops that were found at each port.
fn resolved(program: &Program, tx: &[Place], session: &Session) -> Result<Program> {
    let mut programs = Vec::new();
    for (port, place) in (0..=u8::MAX).zip(tx) {
        let mut program = program.at_port(port);
        for found in resolve(&mut program, place, &session.stop)? {
            session.say(Code::NextHopFound, found);
        }
        programs.push(program);
    }
    Ok(Program::of_ports(programs))
}

/// The key of all random values: the same at all ports.
fn seed(args: &Send, what: &What<'_>) -> u64 {
    let own = match what {
        What::Scenario(scenario, _) => scenario.seed(),
        What::Expression(_) | What::Plugin(_) => None,
    };
    args.seed.or(own).unwrap_or_else(shared::draw_seed)
}

/// Where frames leave, as it is named and as it is found.
fn senders<'a>(args: &'a Send, through: &Through) -> Result<(Vec<Place>, Vec<&'a str>)> {
    let named: Vec<&str> = args.links.iter().filter_map(|link| link.on.as_deref()).collect();
    if named.is_empty() {
        return Ok((shared::sending_place(None, through)?.into_iter().collect(), named));
    }
    if named.len() > 1 && args.engine == Engine::Null {
        bail!("`.engine` null sends nowhere, whatever is named: give one `.on`, or none");
    }
    if named.len() > MOST_PORTS {
        bail!("{} ports: {MOST_PORTS} are possible", named.len());
    }
    let mut places: Vec<Place> = Vec::new();
    for spec in &named {
        let Some(place) = shared::sending_place(Some(spec), through)? else { continue };
        if let Some(same) = places.iter().find(|other| other.is_same_as(&place)) {
            bail!("{} and {spec} are the same interface: give each port one `.on`", same.spec);
        }
        places.push(place);
    }
    Ok((places, named))
}

/// A stream's port is a number of eight bits.
const MOST_PORTS: usize = 256;

/// How frames are measured. Of a load with a shape it is told how they came after each other, unless several cores send parts of
/// its streams or nothing is signed.
fn how_measured(args: &Send, workers: usize) -> spec::Meter {
    let shaped = args.shape.is_some() && workers == 1 && args.sign != spec::Sign::Never;
    let inter_arrival = args.meter.inter_arrival || shaped;
    spec::Meter { inter_arrival, ..args.meter.clone() }
}

/// Where frames are measured: of each port.
fn receivers(
    args: &Send,
    named: &[&str],
    through: &Through,
    (paced, workers): (bool, usize),
) -> Result<Vec<(Place, meter::Options)>> {
    let mut rx = Vec::new();
    let mut measured: Vec<Option<&str>> = args.links.iter().map(|link| link.measure.as_deref()).collect();
    if args.pattern == Pattern::Mesh {
        measured = named.iter().map(|on| Some(*on)).collect();
    }
    if measured.is_empty() {
        measured.push(None);
    }
    for (number, measure) in measured.into_iter().enumerate() {
        let metering = Metering {
            measure: measure.map(str::to_owned),
            round_trip: args.round_trip,
            how: how_measured(args, workers),
        };
        let sending = named.get(number).copied();
        rx.extend(shared::measuring_place(&metering, through, paced, sending)?);
    }
    for (number, (place, _)) in rx.iter().enumerate() {
        if let Some((same, _)) = rx.iter().take(number).find(|(other, _)| other.is_same_as(place)) {
            bail!(
                "{} and {} are the same interface: each port is measured at one of its own",
                same.spec,
                place.spec
            );
        }
    }
    Ok(rx)
}

/// The plan of each port.
fn each(tx: &[Place], plan: impl Fn(Option<&Place>) -> Result<Planned>) -> Result<Vec<Planned>> {
    tx.iter().map(|place| plan(Some(place))).collect()
}

/// The plans of several ports as one, and at which port each signed stream arrives.
fn joined(mut plans: Vec<Planned>, tx: &[Place]) -> (Planned, BTreeMap<u32, usize>) {
    let mut arrive = BTreeMap::new();
    if plans.len() == 1
        && let Some(only) = plans.pop()
    {
        return (only, arrive);
    }
    let (mut programs, mut first) = (Vec::new(), 0);
    let mut whole: Option<Planned> = None;
    for (port, (plan, place)) in plans.into_iter().zip(tx).enumerate() {
        let mut program = plan.program.numbered_from(first);
        first = first.max(program.numbers());
        for stream in &mut program.streams {
            stream.name = format!("{} by {}", stream.name, place.spec);
            arrive.extend(stream.signature.map(|number| (number, port)));
        }
        programs.push(program);
        match &mut whole {
            None => whole = Some(Planned { program: Program::of_ports([]), ..plan }),
            Some(whole) => {
                whole.total = whole.total.zip(plan.total).map(|(a, b)| a.saturating_add(b));
                whole.endless |= plan.endless;
                let new = plan.warnings.into_iter().filter(|warning| !whole.warnings.contains(warning));
                let new: Vec<_> = new.collect();
                whole.warnings.extend(new);
            }
        }
    }
    let nothing = || Planned {
        program: Program::of_ports([]),
        resolved: Resolved::default(),
        total: None,
        endless: false,
        warnings: Warnings::default(),
    };
    let whole = whole.unwrap_or_else(nothing);
    (Planned { program: Program::of_ports(programs), ..whole }, arrive)
}

/// What each port sends to every other, of an expression.
fn mesh(args: &Request<'_>, what: What<'_>, tx: &[Place]) -> Result<(Planned, BTreeMap<u32, usize>)> {
    let What::Expression(text) = what else {
        bail!(
            "`.pattern: mesh`: what each port sends to every other is an expression; a scenario has streams of its own"
        )
    };
    let Some(rate) = args.pace.rate else { bail!(NO_RATE) };
    if let Rate::Flows(_) = rate {
        bail!("`.pattern: mesh`: give frames or bits per second; of flows each port has others");
    }
    let stations = tx.iter().enumerate().map(|(number, place)| Station::at(place, number, None));
    let stations: Vec<Station> = stations.collect::<Result<_>>()?;
    let schedule = |port: usize| shared::schedule(rate, tx.get(port), None);
    let signed = |text: &str, number: u32| {
        let options =
            Options { size: args.size(), seed: args.seed, signature: Some(number), name: String::new() };
        compile(text, &options).context("frames of a mesh end with a signature of 18 bytes")
    };
    let (program, arrive) = mesh::program(&stations, Some(text), 0, schedule, signed)?;
    let count = args.pace.count;
    let resolved = Resolved {
        source: Some(report::Source::Expression { expression: text.to_owned() }),
        rate: Some(shared::requested_rate(rate, &schedule(0)?)),
        count,
        duration_ns: args.pace.duration.map(|d| d.as_nanos() as u64),
        seed: program.uses_seed().then_some(args.seed),
        ..Resolved::default()
    };
    let endless = count.is_none() && args.pace.duration.is_none();
    let total = count.map(|count| count.saturating_mul(tx.len() as u64));
    Ok((Planned { program, resolved, total, endless, warnings: Warnings::default() }, arrive))
}

/// Frames from each port of a mesh, so that a switch knows where it is before the first frame counts (RFC 2544, 23 b).
fn teach(program: &Program, args: &Send, session: &Session) -> Result<()> {
    for (port, spec) in (0..=u8::MAX).zip(args.links.iter().filter_map(|link| link.on.as_deref())) {
        let mut own = program.at_port(port);
        own.streams.iter_mut().for_each(|stream| (stream.signature, stream.port) = (None, 0));
        own = own.with_schedule(Schedule::Frames { frames: 1, per_ns: 1_000_000 });
        let longest = own.longest() as usize;
        let job = Job { count: Some(LEARNING_FRAMES), ..Job::program(own) };
        let session = Session { stop: Arc::clone(&session.stop), ..Session::default() };
        run::run(Setup {
            tx: vec![Place::find(spec)?],
            best_effort: true,
            discarded: true,
            session,
            ..Setup::of("send", shared::open_engines(Engine::Packet), job, longest)
        })
        .with_context(|| format!("learning frames from {spec}"))?;
    }
    Ok(())
}

/// Of each port.
const LEARNING_FRAMES: u64 = 3;

/// Distinct flows among the first `frames` of what an expression sends, and how many of these belong to one; `None`: it is no expression, or these
/// are too many to look at.
pub fn flows_among(args: &Send, frames: u64) -> Option<(u64, u64)> {
    if args.plugin.is_some() || frames > MOST || std::path::Path::new(&args.what).is_file() {
        return None;
    }
    let size = args.size.as_deref().cloned();
    let options = Options { size, seed: args.seed?, signature: None, name: String::new() };
    let counted = run::count_flows(&compile(&args.what, &options).ok()?, frames)?;
    let sum = |sides: [u64; 2]| sides[0].saturating_add(sides[1]);
    Some((sum(counted.flows), sum(counted.frames)))
}

/// What was asked for.
#[derive(Clone, Copy)]
struct Request<'a> {
    job: &'a Send,
    pace: &'a Pace,
    seed: u64,
    measured: bool,
}

impl Request<'_> {
    /// All frames have to be signed.
    fn signs(&self) -> bool {
        self.job.sign == spec::Sign::Always || self.job.round_trip
    }

    /// Frames are signed where they have room, although nobody asked for it.
    fn signs_by_itself(&self) -> bool {
        self.measured && self.job.sign != spec::Sign::Never
    }

    fn shape(&self) -> Option<&Shape> {
        self.job.shape.as_deref()
    }

    fn size(&self) -> Option<traffic::expr::Size> {
        self.job.size.as_deref().cloned()
    }
}

const NO_RATE: &str = "how fast? Give `.rate` (1mpps, 500mbps, 10%, ...) or `.rate: top`";

/// What is to be sent, and what was asked for.
struct Planned {
    program: Program,
    resolved: Resolved,
    total: Option<u64>,
    endless: bool,
    warnings: Warnings,
}

fn expression(args: &Request<'_>, text: &str, place: Option<&Place>) -> Result<Planned> {
    let seed = args.seed;
    let mut warnings = Warnings::default();
    // What cannot be sent at any rate is told first.
    let program = program(args, text, seed, &mut warnings)?;
    let Some(rate) = args.pace.rate else { bail!(NO_RATE) };
    let flows = match rate {
        Rate::Flows(_) => Some(flows_per_pass(&program)?),
        _ => None,
    };
    let schedule = shared::schedule(rate, place, flows)?;
    let resolved = Resolved {
        source: Some(report::Source::Expression { expression: text.to_owned() }),
        rate: Some(shared::requested_shape(rate, &schedule, args.shape())),
        count: args.pace.count,
        duration_ns: args.pace.duration.map(|d| d.as_nanos() as u64),
        ..Resolved::default()
    };
    let endless = args.pace.count.is_none() && args.pace.duration.is_none();
    let program = shared::shaped(program.with_schedule(schedule), args.shape(), seed)?;
    if let (Some(shape), Some(place)) = (args.shape(), place) {
        shared::check_peak(&program, shape, place)?;
    }
    let resolved = Resolved { seed: program.uses_seed().then_some(seed), ..resolved };
    Ok(Planned { program, resolved, total: args.pace.count, endless, warnings })
}

/// What the command line says holds instead of what the file says of the whole run.
fn scenario(
    args: &Request<'_>,
    scenario: &Scenario,
    source: report::Source,
    (place, stop): (Option<&Place>, &AtomicBool),
) -> Result<Planned> {
    if let Some(shape) = args.shape() {
        bail!(
            "`.shape` {shape}: {} has streams with times of their own: give each `shape:` there, beside its `rate:`",
            scenario.name()
        );
    }
    let sign = match (args.signs(), args.signs_by_itself()) {
        (true, _) => Sign::All,
        (false, true) => Sign::WhereRoom,
        (false, false) => Sign::No,
    };
    let run = args.pace.duration.map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    let context =
        Context { sign, rate: args.pace.rate, size: args.size(), duration: run, ..Context::default() };
    let made = what::scenario(scenario, Some(args.seed), context, place, stop)?;
    let own_total = made.total();
    let Made { compiled, seed, warnings } = made;
    // Of a load that agents share each sends a part.
    if let Some(place) = place.filter(|_| !args.job.share) {
        shared::check_peaks(&compiled.program, scenario.name(), place)?;
    }
    let rate = match compiled.rate {
        Some(rate) => shared::requested_rate(rate, &shared::schedule(rate, place, None)?),
        None => RequestedRate { text: "as the scenario says".to_owned(), ..RequestedRate::default() },
    };
    let count = args.pace.count.or(compiled.count);
    let duration = args.pace.duration.or(compiled.duration);
    let resolved = Resolved {
        source: Some(source),
        rate: Some(rate),
        count,
        duration_ns: duration.map(|d| d.as_nanos() as u64),
        seed: compiled.program.uses_seed().then_some(seed),
        flow_profiles: compiled.flows.iter().map(what::told).collect(),
        ..Resolved::default()
    };
    let total = match (own_total, count) {
        (Some(own), Some(count)) => Some(own.min(count)),
        (own, count) => own.filter(|_| duration.is_none()).or(count),
    };
    let endless = compiled.endless && count.is_none() && duration.is_none();
    Ok(Planned { program: compiled.program, resolved, total, endless, warnings })
}

/// What a plugin made. Where neither it nor the job says how fast, as fast as it goes.
fn plugin(
    args: &Request<'_>,
    plugged: &Plugged,
    made: &Scenario,
    ends: (Option<&Place>, &AtomicBool),
) -> Result<Planned> {
    let rate = args.pace.rate.or(made.wants_rate().then_some(Rate::TopSpeed));
    let pace = Pace { rate, ..args.pace.clone() };
    let mut planned = scenario(&Request { pace: &pace, ..*args }, made, plugged.source(), ends)?;
    plugged.plugin.judge(&planned.program)?;
    // The plugin may have made use of it, whether the program does or not.
    planned.resolved.seed = Some(args.seed);
    Ok(planned)
}

/// Compiles the expression, signed if that was asked for or can be had.
fn program(args: &Request<'_>, text: &str, seed: u64, warnings: &mut Warnings) -> Result<Program> {
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
        let said = "these frames have no room for a signature: order and latency are not measured";
        warnings.add(Code::NotSigned, said);
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
        match (period / gcd(period, own.max(1))).checked_mul(own) {
            Some(next) if next <= MOST => period = next,
            _ => bail!(
                "a rate in flows per second needs flows that repeat within {MOST} frames; give frames per second"
            ),
        }
    }
    let flows = run::count_flows(program, period).map_or(0, |counted| counted.flows.iter().sum());
    Ok((flows, period))
}
