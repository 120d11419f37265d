//! The engines: which there are, how each is opened, and which `--engine auto` takes.

use crate::cli::Engine as EngineName;
use crate::commands::shared;
use crate::place::Place;
use crate::run::{Open, Opened, Wanted};
use anyhow::{Context as _, Result, bail};
use engine::null::NullTx;
use engine::{Engine, Userspace};
use port::afxdp;
use port::packet::{Sendmmsg, Target, TxRing};
use port::tx::{Tx, TxError};
use report::{Choice, NotTaken};
use std::collections::BTreeSet;
use std::sync::Arc;
use traffic::Schedule;
use traffic::program::Lane;

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
        open: |wanted| each(wanted, "packet", Sendmmsg::open),
    },
    Kind {
        engine: EngineName::PacketRing,
        what: "a ring shared with the kernel (PACKET_TX_RING)",
        because: "",
        auto: false,
        unwise: |_| None,
        open: |wanted| each(wanted, "packet-ring", TxRing::open),
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
    if wanted.second.is_some() {
        bail!(
            "programs in the kernel, one for each of two interfaces, know no common order of their frames; --engine afxdp and packet keep it"
        );
    }
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
    let workers = wanted.shares.iter().map(one).collect::<Result<_>>()?;
    Ok(Engines { workers, what: Some(format!("XDP live frames, {}", way.describe())) })
}

/// AF_XDP sockets: a queue of the interface for each worker.
fn open_afxdp(wanted: &Wanted<'_>) -> Result<Engines> {
    let place = wanted.place.context("where to? Name an interface with --on IFACE")?;
    let open = |place: &Place| {
        let target = place.target();
        let queues = queues(wanted.cpus, place.interface.tx_queues);
        place.run_in(|| afxdp::open(&target, wanted.longest, &queues, &afxdp::Options::default()))
    };
    let senders = open(place)??;
    let what = Some(afxdp::describe(&senders));
    let Some(second) = wanted.second else {
        let engine = |sender| Box::new(Userspace::new("afxdp", sender)) as Box<dyn Engine>;
        return Ok(Engines { workers: senders.into_iter().map(engine).collect(), what });
    };
    let pairs = senders.into_iter().zip(open(second)??);
    let engine = |(first, second)| Box::new(Userspace::pair("afxdp", first, second)) as Box<dyn Engine>;
    Ok(Engines { workers: pairs.map(engine).collect(), what })
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
    const SECONDS: u64 = 10;
    let program = wanted.program?;
    let due = |lane: &Lane| match &lane.schedule {
        // No more than if all frames were as short as the shortest.
        Schedule::Bits { bits_per_second, overhead_bytes } => {
            let streams = lane.order.iter().filter_map(|&s| program.streams.get(s as usize));
            let shortest = streams.map(|s| s.lengths.bounds(s.templates.shortest()).0).min()?;
            (bits_per_second * SECONDS).checked_div(u64::from(shortest + overhead_bytes) * 8)
        }
        schedule => schedule.frames_due_by(SECONDS * 1_000_000_000),
    };
    let due = program.lanes.iter().map(due).sum::<Option<u64>>()?;
    (due < WORTH_SPINNING * SECONDS).then(|| {
        format!(
            "it would keep a core busy only to wait: fewer than {WORTH_SPINNING} frames a second are asked for"
        )
    })
}

/// Opens a sender of its own for each worker, or one on each interface, in the interface's namespace.
fn each<T: Tx + Send + 'static>(
    wanted: &Wanted<'_>,
    name: &'static str,
    open: fn(&Target, usize) -> Result<T, TxError>,
) -> Result<Engines> {
    let place = wanted.place.context("where to? Name an interface with --on IFACE")?;
    let sender = |place: &Place| -> Result<T> {
        let target = place.target();
        Ok(place.run_in(|| open(&target, wanted.longest))??)
    };
    let one = |_: &_| -> Result<Box<dyn Engine>> {
        let first = sender(place)?;
        Ok(Box::new(match wanted.second {
            None => Userspace::new(name, first),
            Some(second) => Userspace::pair(name, first, sender(second)?),
        }))
    };
    wanted.cpus.iter().map(one).collect()
}

/// A way to open the engine asked for, or for `auto` the first that can be had.
pub fn open_engines(engine: EngineName) -> Open {
    Box::new(move |wanted| open_first(engine, &ENGINES, wanted))
}

fn open_first(engine: EngineName, kinds: &[Kind], wanted: &Wanted<'_>) -> Result<Opened> {
    if engine != EngineName::Auto {
        let kind = kinds.iter().find(|kind| kind.engine == engine).context("there is no such engine")?;
        let name = shared::engine_name(engine);
        let engines = (kind.open)(wanted).with_context(|| format!("--engine {name}"))?;
        let what = engines.what.as_deref().unwrap_or(kind.what);
        let choice = Choice { name, reason: format!("asked for: {what}"), ..Choice::default() };
        return Ok(Opened { workers: engines.workers, choice });
    }
    let mut not_taken = Vec::new();
    let mut last = None;
    for kind in kinds.iter().filter(|kind| kind.auto) {
        let name = shared::engine_name(kind.engine);
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

#[cfg(test)]
mod tests {
    use super::*;

    const NEVER: Kind = Kind {
        engine: EngineName::Xdp,
        what: "live frames",
        because: "fast",
        auto: true,
        unwise: |_| None,
        open: |_| bail!("the peer has no program: attach one"),
    };
    const UNWISE: Kind =
        Kind { engine: EngineName::Afxdp, unwise: |_| Some("it would only wait".to_owned()), ..NEVER };
    const LAST: Kind = Kind {
        engine: EngineName::Packet,
        what: "a socket",
        because: "works everywhere",
        open: |wanted| {
            let one = |_: &_| Box::new(Userspace::new("packet", NullTx::new(60))) as Box<dyn Engine>;
            Ok(wanted.cpus.iter().map(one).collect())
        },
        ..NEVER
    };

    fn opened(engine: EngineName, kinds: &[Kind]) -> Result<Opened> {
        let wanted = Wanted {
            place: None,
            second: None,
            program: None,
            shares: &[],
            cpus: &[Some(0), Some(1)],
            longest: 60,
            measured: None,
            catch_up: 2.0,
        };
        open_first(engine, kinds, &wanted)
    }

    #[test]
    fn what_is_slow_in_frames_or_in_bits_is_not_worth_spinning() {
        let bits = |bits_per_second| Schedule::Bits { bits_per_second, overhead_bytes: 0 };
        let frames = |frames| Schedule::Frames { frames, per_ns: 1_000_000_000 };
        for (schedule, slow) in [
            (frames(999), true),
            (frames(1000), false),
            (bits(479_000), true),
            (bits(480_000), false),
            (Schedule::TopSpeed, false),
        ] {
            let stream = traffic::Stream::of("s", &[0; 60]);
            let program = Arc::new(traffic::Program::single(stream).with_schedule(schedule.clone()));
            let wanted = Wanted {
                place: None,
                second: None,
                program: Some(&program),
                shares: &[],
                cpus: &[None],
                longest: 60,
                measured: None,
                catch_up: 2.0,
            };
            assert_eq!(too_slow_to_spin(&wanted).is_some(), slow, "{schedule:?}");
        }
    }

    #[test]
    fn auto_takes_the_first_that_can_be_had_and_says_why_not_those_before() {
        let opened = opened(EngineName::Auto, &[NEVER, UNWISE, LAST]).expect("the last");
        assert_eq!(opened.workers.len(), 2);
        assert_eq!(
            (opened.choice.name.as_str(), opened.choice.reason.as_str()),
            ("packet", "a socket: works everywhere")
        );
        let why: Vec<_> =
            opened.choice.not_taken.iter().map(|n| (n.name.as_str(), n.reason.as_str())).collect();
        assert_eq!(why, [("xdp", "the peer has no program: attach one"), ("afxdp", "it would only wait")]);
    }

    #[test]
    fn a_named_engine_is_taken_or_refused_with_the_reason() {
        let error = opened(EngineName::Xdp, &[NEVER, LAST]).map(|_| ()).expect_err("not possible");
        assert_eq!(crate::in_full(&error), "--engine xdp: the peer has no program: attach one");
        let opened = opened(EngineName::Packet, &[NEVER, LAST]).expect("possible");
        assert_eq!(opened.choice.reason, "asked for: a socket");
        assert_eq!(opened.choice.not_taken, []);
    }

    #[test]
    fn when_nothing_can_be_had_all_reasons_are_told() {
        let refused = |kinds: &[Kind]| {
            crate::in_full(&opened(EngineName::Auto, kinds).map(|_| ()).expect_err("nothing to take"))
        };
        assert_eq!(refused(&[NEVER]), "the peer has no program: attach one");
        let two = refused(&[UNWISE, NEVER]);
        assert!(
            two.contains("afxdp: it would only wait") && two.contains("xdp: the peer has no program"),
            "{two}"
        );
    }
}
