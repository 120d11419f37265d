//! What several verbs do alike.

use crate::cli::{Engine as EngineName, Metering, Pace, Through};
use crate::cores::{self, Cores};
use crate::place::Place;
use crate::run::{Open, Opened, Wanted};
use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;
use engine::null::NullTx;
use engine::{Engine, Userspace};
use port::afxdp;
use port::packet::{Sendmmsg, Target, TxRing};
use port::tx::{Tx, TxError};
use report::{Choice, NotTaken, RequestedRate};
use std::collections::BTreeSet;
use std::sync::Arc;
use traffic::rate::Context;
use traffic::schedule::LAYER1_OVERHEAD;
use traffic::{Rate, Schedule};

/// Frames of a run that are timed one by one at the receiver.
const ARRIVALS: usize = 4_000_000;

/// Finds where to send, and refuses what would cut the user off.
pub fn sending_place(spec: Option<&str>, through: &Through) -> Result<Option<Place>> {
    let Some(spec) = spec else {
        if through.engine == EngineName::Null {
            return Ok(None);
        }
        bail!("where to? Name an interface with --on IFACE (`ip -br link` lists them), or use --engine null");
    };
    let place = Place::find(spec)?;
    place.guard(through.yes_disrupt.as_deref())?;
    if !place.interface.ethernet {
        bail!("{spec} is not an Ethernet interface: netdyno sends Ethernet frames");
    }
    if !place.interface.up {
        bail!("{spec} is down: bring it up with `ip link set {} up`", place.interface.name);
    }
    Ok(Some(place))
}

/// The CPUs to send on, one worker on each; `None` where the kernel may put it anywhere.
pub fn cpus(through: &Through, place: Option<&Place>) -> Result<Vec<Option<usize>>> {
    let queues = place.map_or(1, |place| place.interface.tx_queues);
    let (flag, cores) = match (&through.cores, through.core) {
        (Some(cores), _) => ("--cores", cores.clone()),
        (None, Some(cpu)) => ("--core", Cores::List(vec![cpu])),
        (None, None) => ("--cores", Cores::Number(1)),
    };
    let Some(allowed) = crate::environment::allowed_cpus() else {
        return Ok(match cores {
            Cores::List(list) => list.into_iter().map(Some).collect(),
            Cores::Number(n) => vec![None; n],
        });
    };
    let chosen = cores::choose(&cores, &allowed, queues).with_context(|| format!("{flag} {cores}"))?;
    Ok(chosen.into_iter().map(Some).collect())
}

/// Engines of one kind, one for each worker.
struct Engines {
    workers: Vec<Box<dyn Engine>>,
    /// What they are, where that shows only once they are open.
    what: Option<String>,
}

impl FromIterator<Box<dyn Engine>> for Engines {
    fn from_iter<I: IntoIterator<Item = Box<dyn Engine>>>(workers: I) -> Engines {
        Engines { workers: workers.into_iter().collect(), what: None }
    }
}

/// An engine that can be asked for.
struct Kind {
    engine: EngineName,
    /// What it is, and why it is taken when nothing better can be.
    what: &'static str,
    because: &'static str,
    /// One of `--engine auto`'s choices.
    auto: bool,
    /// Why `--engine auto` had better take another, although this one could be had.
    unwise: fn(&Wanted<'_>) -> Option<String>,
    /// One for each worker, or why not: with what mends it, where something does.
    open: fn(&Wanted<'_>) -> Result<Engines>,
}

/// All engines; the fastest first, which is the order that `--engine auto` tries them in.
const ENGINES: [Kind; 5] = [
    Kind {
        engine: EngineName::Xdp,
        what: "XDP live frames, made by a program in the kernel",
        because: "the fastest way through this driver",
        auto: true,
        unwise: too_slow_to_spin,
        open: open_live,
    },
    Kind {
        engine: EngineName::Afxdp,
        what: "AF_XDP sockets",
        because: "faster than a packet socket",
        auto: true,
        unwise: |_| None,
        open: open_afxdp,
    },
    Kind {
        engine: EngineName::Packet,
        what: "a packet socket with sendmmsg, past the queueing discipline",
        because: "works on every interface",
        auto: true,
        unwise: |_| None,
        open: |wanted| {
            each(wanted, |target, longest| Ok(Userspace::new("packet", Sendmmsg::open(target, longest)?)))
        },
    },
    Kind {
        engine: EngineName::PacketRing,
        what: "a ring shared with the kernel (PACKET_TX_RING)",
        because: "",
        auto: false,
        unwise: |_| None,
        open: |wanted| {
            each(wanted, |target, longest| Ok(Userspace::new("packet-ring", TxRing::open(target, longest)?)))
        },
    },
    Kind {
        engine: EngineName::Null,
        what: "frames are made and sent nowhere",
        because: "",
        auto: false,
        unwise: |_| None,
        open: |wanted| {
            let null =
                |_: &_| Box::new(Userspace::new("null", NullTx::new(wanted.longest))) as Box<dyn Engine>;
            Ok(wanted.cpus.iter().map(null).collect())
        },
    },
];

/// Live frames: the program of each worker compiled for the kernel.
fn open_live(wanted: &Wanted<'_>) -> Result<Engines> {
    let place = wanted.place.context("where to? Name an interface with --on IFACE")?;
    if wanted.program.is_none() {
        bail!(
            "a capture that is streamed cannot be sent by a program in the kernel: add --preload to read it into memory first"
        );
    }
    let (target, interface) = (place.target(), &place.interface);
    let cores = u32::try_from(wanted.cpus.len())?;
    let way =
        place.run_in(|| xdp::way::find(&target, interface.kind.as_deref(), interface.tx_queues, cores))??;
    let way = Arc::new(way);
    let metered = wanted.measured.is_some_and(|meter| place.is_joined_to(meter));
    let pages = xdp::live::pages(place.is_virtual(), metered);
    let one = |program: &Arc<traffic::Program>| -> Result<Box<dyn Engine>> {
        Ok(Box::new(xdp::Live::open(&way, program, pages, wanted.catch_up)?))
    };
    wanted.shares.iter().map(one).collect()
}

/// AF_XDP sockets: a queue of the interface for each worker.
fn open_afxdp(wanted: &Wanted<'_>) -> Result<Engines> {
    let place = wanted.place.context("where to? Name an interface with --on IFACE")?;
    let target = place.target();
    let queues = queues(wanted.cpus, place.interface.tx_queues);
    let senders =
        place.run_in(|| afxdp::open(&target, wanted.longest, &queues, &afxdp::Options::default()))??;
    let what = Some(afxdp::describe(&senders));
    let engine = |sender| Box::new(Userspace::new("afxdp", sender)) as Box<dyn Engine>;
    Ok(Engines { workers: senders.into_iter().map(engine).collect(), what })
}

/// The queue of each worker: that of its CPU, as the kernel counts for other sockets, if each then has its own.
fn queues(cpus: &[Option<usize>], queues: u32) -> Vec<u32> {
    let modulo = |cpu: &Option<usize>| cpu.and_then(|cpu| u32::try_from(cpu).ok()?.checked_rem(queues));
    let by_cpu: Option<Vec<u32>> = cpus.iter().map(modulo).collect();
    let distinct = |queues: &Vec<u32>| queues.iter().collect::<BTreeSet<_>>().len() == queues.len();
    by_cpu.filter(distinct).unwrap_or_else(|| (0..).take(cpus.len()).collect())
}

/// Below this many frames a second a program in the kernel would keep a whole core busy with waiting.
const WORTH_SPINNING: u64 = 1_000;

fn too_slow_to_spin(wanted: &Wanted<'_>) -> Option<String> {
    const TEN_SECONDS: u64 = 10_000_000_000;
    let lanes = wanted.program?.lanes.iter();
    let due = lanes.map(|lane| lane.schedule.frames_due_by(TEN_SECONDS)).sum::<Option<u64>>()?;
    (due < WORTH_SPINNING * 10).then(|| {
        format!(
            "it would keep a core busy only to wait: fewer than {WORTH_SPINNING} frames a second are asked for"
        )
    })
}

/// Opens a sender of its own for each worker, in the interface's namespace.
fn each<T: Tx + Send + 'static>(
    wanted: &Wanted<'_>,
    open: fn(&Target, usize) -> Result<Userspace<T>, TxError>,
) -> Result<Engines> {
    let place = wanted.place.context("where to? Name an interface with --on IFACE")?;
    let target = place.target();
    let one =
        |_: &_| -> Result<Box<dyn Engine>> { Ok(Box::new(place.run_in(|| open(&target, wanted.longest))??)) };
    wanted.cpus.iter().map(one).collect()
}

/// A way to open the engine asked for, or for `auto` the first that can be had.
pub fn open_engines(engine: EngineName) -> Open {
    Box::new(move |wanted| open_first(engine, &ENGINES, wanted))
}

fn open_first(engine: EngineName, kinds: &[Kind], wanted: &Wanted<'_>) -> Result<Opened> {
    if engine != EngineName::Auto {
        let kind = kinds.iter().find(|kind| kind.engine == engine).context("there is no such engine")?;
        let name = engine_name(engine);
        let engines = (kind.open)(wanted).with_context(|| format!("--engine {name}"))?;
        let what = engines.what.as_deref().unwrap_or(kind.what);
        let choice = Choice { name, reason: format!("asked for: {what}"), ..Choice::default() };
        return Ok(Opened { workers: engines.workers, choice });
    }
    let mut not_taken = Vec::new();
    let mut last = None;
    for kind in kinds.iter().filter(|kind| kind.auto) {
        let name = engine_name(kind.engine);
        if let Some(reason) = (kind.unwise)(wanted) {
            not_taken.push(NotTaken { name, reason });
            continue;
        }
        match (kind.open)(wanted) {
            Ok(engines) => {
                let what = engines.what.as_deref().unwrap_or(kind.what);
                let choice = Choice { name, reason: format!("{what}: {}", kind.because), not_taken };
                return Ok(Opened { workers: engines.workers, choice });
            }
            Err(error) => {
                not_taken.push(NotTaken { name, reason: crate::in_full(&error) });
                last = Some(error);
            }
        }
    }
    // Several reasons are told together; a single one as it is.
    let last = last.context("there is no engine to choose from")?;
    if not_taken.len() < 2 {
        return Err(last);
    }
    let reasons: Vec<String> = not_taken.iter().map(|n| format!("{}: {}", n.name, n.reason)).collect();
    bail!("no engine can send these frames here ({})", reasons.join("; "))
}

/// Finds where to measure: for a round trip where frames are sent, on `sending`.
pub fn measuring_place(
    metering: &Metering,
    through: &Through,
    paced: bool,
    sending: Option<&str>,
) -> Result<Option<(Place, meter::Options)>> {
    let (spec, option) = match (&metering.measure, sending) {
        (Some(spec), _) => (spec.as_str(), format!("--measure {spec}")),
        (None, Some(sending)) if metering.round_trip => (sending, "--round-trip".to_owned()),
        _ => return Ok(None),
    };
    if through.engine == EngineName::Null {
        bail!("--engine null sends nothing, so {option} has nothing to measure: leave one of them out");
    }
    let place = Place::find(spec)?;
    // What arrives is dropped: that would cut the user off as well as sending would.
    place.guard(through.yes_disrupt.as_deref())?;
    Ok(Some(with_meter(place, metering.meter, paced)?))
}

/// The interfaces that the user named, each once.
pub fn interfaces(
    place: Option<&Place>,
    rx: Option<&(Place, meter::Options)>,
    metering: &Metering,
) -> Vec<String> {
    let measured = rx.filter(|_| !metering.round_trip).map(|(place, _)| place);
    place.into_iter().chain(measured).map(|place| place.spec.clone()).collect()
}

/// An engine's name as it is written on the command line.
pub fn engine_name(engine: EngineName) -> String {
    engine.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Meter options for a port that only receives what this run sends.
pub fn with_meter(place: Place, how: crate::cli::Meter, paced: bool) -> Result<(Place, meter::Options)> {
    measurable(&place)?;
    let options = meter::Options {
        mode: meter_mode(how),
        arrivals: if paced { ARRIVALS } else { 0 },
        ..meter::Options::default()
    };
    Ok((place, options))
}

/// Refuses interfaces whose frames would be misread.
pub fn measurable(place: &Place) -> Result<()> {
    if !place.interface.ethernet {
        bail!("{} is not an Ethernet interface: netdyno measures Ethernet frames", place.spec);
    }
    if !place.interface.up {
        bail!("{} is down: bring it up with `ip link set {} up`", place.spec, place.interface.name);
    }
    Ok(())
}

pub fn meter_mode(how: crate::cli::Meter) -> meter::Mode {
    match how {
        crate::cli::Meter::Auto => meter::Mode::Auto,
        crate::cli::Meter::Xdp => meter::Mode::XdpNative,
        crate::cli::Meter::XdpGeneric => meter::Mode::XdpGeneric,
        crate::cli::Meter::Packet => meter::Mode::PacketSocket,
    }
}

/// The schedule of a rate on `place`.
pub fn schedule(rate: Rate, place: Option<&Place>, flows_per_pass: Option<(u64, u64)>) -> Result<Schedule> {
    let link_bits_per_second = place.and_then(Place::bits_per_second);
    let schedule = rate.schedule(Context { link_bits_per_second, flows_per_pass });
    let schedule = schedule.with_context(|| match place {
        Some(place) => format!("--rate {rate} on {}", place.spec),
        None => format!("--rate {rate}"),
    })?;
    if let (Some(place), Some(link)) = (place, link_bits_per_second)
        && !place.is_virtual()
    {
        let too_fast = match (&schedule, rate) {
            (_, Rate::Percent(_)) => false,
            (Schedule::Bits { bits_per_second, .. }, _) => *bits_per_second > link,
            // The smallest frame takes 84 bytes of the wire.
            (Schedule::Frames { frames, per_ns }, _) => {
                *frames as f64 * 1e9 / *per_ns as f64 * f64::from(60 + LAYER1_OVERHEAD) * 8.0 > link as f64
            }
            _ => false,
        };
        if too_fast {
            bail!(
                "--rate {rate} is more than {} can do: its link runs at {}; give at most 100%, or --topspeed",
                place.spec,
                report::units::bit_rate(link as f64)
            );
        }
    }
    Ok(schedule)
}

/// The rate as the result tells it.
pub fn requested_rate(rate: Rate, schedule: &Schedule) -> RequestedRate {
    let mut asked = RequestedRate { text: rate.to_string(), ..RequestedRate::default() };
    match schedule {
        Schedule::Frames { frames, per_ns } => {
            asked.frames_per_second = Some(*frames as f64 * 1e9 / *per_ns as f64);
        }
        Schedule::Bits { bits_per_second, overhead_bytes: 0 } => {
            asked.bits_per_second = Some(*bits_per_second as f64);
        }
        Schedule::Bits { bits_per_second, .. } => asked.bits_per_second_l1 = Some(*bits_per_second as f64),
        Schedule::TopSpeed | Schedule::Times { .. } | Schedule::Bursts { .. } | Schedule::Steps { .. } => {}
    }
    if let Rate::Flows(flows) = rate {
        asked.flows_per_second = Some(flows.as_f64());
    }
    asked
}

/// The rate that was asked for, if one was.
pub fn rate_of(pace: &Pace) -> Option<Rate> {
    if pace.topspeed { Some(Rate::TopSpeed) } else { pace.rate }
}

/// How the user called us.
pub fn command_line() -> Vec<String> {
    let mut words: Vec<String> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    if let Some(first) = words.first_mut() {
        *first = "netdyno".to_owned();
    }
    words
}

/// A key for random values, small enough for JSON readers that keep numbers as floats.
pub fn draw_seed() -> u64 {
    let mut bytes = [0; 8];
    match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()) {
        Ok(8) => u64::from_le_bytes(bytes) >> 11,
        _ => engine::clock::now() >> 11,
    }
}

/// Refuses limits that make no sense.
pub fn check_pace(pace: &Pace) -> Result<()> {
    if !(pace.catch_up.is_finite() && pace.catch_up >= 1.2) {
        bail!("--catch-up {}: give 1.2 or more (times the rate asked for)", pace.catch_up);
    }
    Ok(())
}
