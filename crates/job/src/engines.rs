//! The engines: which there are, how each is opened, and which `--engine auto` takes.

use crate::calibration::Calibration;
use crate::place::Place;
use crate::run::{Open, Opened, Wanted};
use crate::through::Through;
use anyhow::{Context as _, Result, anyhow, bail};
use engine::null::NullTx;
use engine::{Counts, Engine, Userspace};
use port::afxdp::{self, Mode};
use port::departures::Stamper;
use port::packet::{Sendmmsg, TxRing};
use port::timestamps::transmit_stamps;
use port::tx::Tx;
use report::{Choice, NotTaken};
use spec::{Engine as EngineName, Stamps, Word};
use std::sync::Arc;
use traffic::program::Lane;
use traffic::{Program, Schedule};
use xdp::way::Early;

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
    /// Among those not taken, where the engine's name would say too little.
    label: Option<&'static str>,
    /// What it is, and why it is taken when nothing better can be.
    what: &'static str,
    because: &'static str,
    /// One of `--engine auto`'s choices, where frames are to leave.
    auto: fn(&Wanted<'_>) -> bool,
    /// Why `--engine auto` had better take another, although this one could be had.
    unwise: fn(&Wanted<'_>) -> Option<String>,
    /// One for each worker, or why not: with what mends it, where something does.
    open: fn(&Wanted<'_>) -> Result<Engines>,
}

/// Drivers whose zero-copy AF_XDP is known to send more than live frames do, or as much as the link carries
/// (docs/engines.md has the figures and where they are from). Elsewhere `netdyno doctor --calibrate` tells.
const FAST_ZERO_COPY: [&str; 6] = ["i40e", "ice", "ixgbe", "igc", "igb", "mlx5_core"];

/// Nobody said where frames are to leave.
const NOWHERE: &str = "where to? Name an interface with `.on` IFACE";

/// AF_XDP where the driver reads the frames itself, or nothing.
const ZERO_COPY: Kind = Kind {
    engine: EngineName::Afxdp,
    label: Some("afxdp zero-copy"),
    what: "AF_XDP sockets",
    because: "without copying, this is the fastest way known through this driver, which also reports each frame that it is done with",
    auto: |wanted| {
        let driver = wanted.places.first().and_then(|place| place.interface.driver.as_deref());
        driver.is_some_and(|driver| FAST_ZERO_COPY.contains(&driver))
    },
    unwise: |_| None,
    open: |wanted| open_afxdp(wanted, Mode::ZeroCopy),
};

const LIVE: Kind = Kind {
    engine: EngineName::Xdp,
    label: None,
    what: "XDP live frames, made by a program in the kernel",
    because: "the fastest way through this driver",
    auto: |_| true,
    unwise: too_slow_to_spin,
    open: open_live,
};

const AFXDP: Kind = Kind {
    engine: EngineName::Afxdp,
    label: None,
    what: "AF_XDP sockets",
    because: "faster than a packet socket",
    auto: |_| true,
    unwise: |_| None,
    open: |wanted| open_afxdp(wanted, Mode::Auto),
};

const PACKET: Kind = Kind {
    engine: EngineName::Packet,
    label: None,
    what: "a packet socket with sendmmsg, past the queueing discipline",
    because: "works on every interface",
    auto: |_| true,
    unwise: |_| None,
    open: |wanted| {
        each(wanted, "packet", |place, first| {
            let target = place.target();
            let mut sender = place.run_in(|| Sendmmsg::open(&target, wanted.longest))??;
            // A NIC has one register for stamps; workers side by side would take it from each other.
            if let Some(who) = wanted.stamps.filter(|_| first) {
                sender.stamp_departures(stamper(place, who)?)?;
            }
            Ok(sender)
        })
    },
};

/// All engines; the fastest first, which is the order that `--engine auto` tries them in. Of two kinds with one name the
/// name alone means the last.
const ENGINES: [Kind; 6] = [
    ZERO_COPY,
    LIVE,
    AFXDP,
    PACKET,
    Kind {
        engine: EngineName::PacketRing,
        label: None,
        what: "a ring shared with the kernel (PACKET_TX_RING)",
        because: "",
        auto: |_| false,
        unwise: |_| None,
        open: |wanted| {
            each(wanted, "packet-ring", |place, _| {
                let target = place.target();
                Ok(place.run_in(|| TxRing::open(&target, wanted.longest))??)
            })
        },
    },
    Kind {
        engine: EngineName::Null,
        label: None,
        what: "frames are made and sent nowhere",
        because: "",
        auto: |_| false,
        unwise: |_| None,
        open: |wanted| {
            let null =
                |_: &_| Box::new(Userspace::new("null", NullTx::new(wanted.longest))) as Box<dyn Engine>;
            Ok(wanted.cpus.iter().map(null).collect())
        },
    },
];

/// Times of a shape that a program in the kernel is handed: 32 MB of each worker's.
const MOST_TIMES: u64 = 1 << 22;

/// Live frames: the program of each worker compiled for the kernel.
fn open_live(wanted: &Wanted<'_>) -> Result<Engines> {
    let place = wanted.places.first().context(NOWHERE)?;
    if wanted.places.len() > 1 {
        bail!(
            "programs in the kernel, one for each of two interfaces, know no common order of their frames; `.engine` afxdp and packet keep it"
        );
    }
    if wanted.program.is_none() {
        bail!(
            "frames that are read while they are sent, as those of a capture that is streamed or of a plugin that yields them one by one, cannot be made in the kernel: `.preload` reads a capture into memory first"
        );
    }
    let (target, interface) = (place.target(), &place.interface);
    let cores = u32::try_from(wanted.cpus.len())?;
    let way = place.run_in(|| {
        // There may be room for more queues than there are.
        let queues = afxdp::queues_now(&target).unwrap_or(interface.tx_queues);
        let early = wanted.early.and_then(Early::take);
        xdp::way::find_until(&target, interface.kind.as_deref(), queues, cores, wanted.stop, early)
    })??;
    let way = Arc::new(way);
    let metered = wanted.measured.is_some_and(|meter| place.is_joined_to(meter));
    let pages = xdp::live::pages(place.is_virtual(), metered);
    let (count, duration) = wanted.most;
    let ns = duration.map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    let one = |program: &Arc<traffic::Program>| -> Result<Box<dyn Engine>> {
        let program = program.with_stated_times(count, ns, MOST_TIMES).with_context(|| {
            format!(
                "a program in the kernel is handed the times of a shape of load, at most {} of them: give a shorter `.duration` or a lower `.count`, or take `.engine` afxdp or packet, which find them on the way",
                report::units::count(MOST_TIMES)
            )
        })?;
        Ok(Box::new(xdp::Live::open(
            &way,
            &program,
            pages,
            wanted.pacing.among(wanted.cpus.len()),
            (wanted.clock, wanted.together),
        )?))
    };
    let workers = wanted.shares.iter().map(one).collect::<Result<_>>()?;
    Ok(Engines { workers, what: Some(format!("XDP live frames, {}", way.describe())) })
}

/// AF_XDP sockets: a queue of the interface for each worker.
fn open_afxdp(wanted: &Wanted<'_>, mode: Mode) -> Result<Engines> {
    const RECEIVES: &str =
        "what arrives on this interface is measured, too, and zero-copy would take it away";
    let mode = match (mode, wanted.receives) {
        (Mode::Auto, true) => Mode::Copy(RECEIVES),
        (Mode::ZeroCopy, true) => bail!(RECEIVES),
        (mode, _) => mode,
    };
    let options = afxdp::Options { mode, ..afxdp::Options::default() };
    let open = |place: &Place| {
        let target = place.target();
        place.run_in(|| {
            let queues = afxdp::queues_for(&target, wanted.cpus)?;
            afxdp::open_until(&target, wanted.longest, &queues, &options, wanted.stop)
        })
    };
    let mut what = None;
    // Of each worker one at each place.
    let mut senders: Vec<Vec<afxdp::Afxdp>> = wanted.cpus.iter().map(|_| Vec::new()).collect();
    for place in wanted.places {
        let opened = open(place)??;
        what.get_or_insert_with(|| afxdp::describe(&opened));
        senders.iter_mut().zip(opened).for_each(|(own, sender)| own.push(sender));
    }
    let engine = |own: Vec<afxdp::Afxdp>| -> Result<Box<dyn Engine>> {
        // What is known of all is what is known of the one that tells least.
        let completed = own.iter().all(|sender| sender.describe().zero_copy);
        let counts = if completed { Counts::Completed } else { Counts::Accepted };
        let engine = Userspace::over("afxdp", own).context(NOWHERE)?;
        Ok(Box::new(engine.counting(counts)))
    };
    Ok(Engines { workers: senders.into_iter().map(engine).collect::<Result<_>>()?, what })
}

/// Below this many frames a second every engine keeps up, so that a program in the kernel gains nothing; and where the machine
/// wakes threads so late that the sender cannot sleep in its gaps, it keeps a core busy (at 500 frames/s, woken 1 ms late, 0.9
/// of one, against 0.04 by a packet socket). A fixed number, not what this machine's wake-ups would allow just now: which engine
/// a run takes must not depend on how busy the machine is.
const WORTH_SPINNING: u64 = 1_000;

/// Is it likely that live frames are tried?
fn may_be_live(engine: EngineName, program: &Program) -> bool {
    engine == EngineName::Xdp || engine == EngineName::Auto && !is_slow(program)
}

fn is_slow(program: &Program) -> bool {
    const SECONDS: u64 = 10;
    due_at_most(program, SECONDS * 1_000_000_000).is_some_and(|due| due < WORTH_SPINNING * SECONDS)
}

fn too_slow_to_spin(wanted: &Wanted<'_>) -> Option<String> {
    is_slow(wanted.program?).then(|| {
        format!(
            "fewer than {WORTH_SPINNING} frames a second are asked for: any way keeps up, and this one keeps a core busy where the machine wakes threads late"
        )
    })
}

/// So many frames are due within `ns` of the start, or fewer: of bits, as many as if all frames were as short as the shortest. `None` where
/// that depends on each frame before.
pub(crate) fn due_at_most(program: &Program, ns: u64) -> Option<u64> {
    let due = |lane: &Lane| match &lane.schedule {
        Schedule::Bits { bits_per_second, overhead_bytes } => {
            let streams = lane.order.iter().filter_map(|&s| program.streams.get(s as usize));
            let shortest = streams.map(|s| s.lengths.bounds(s.templates.shortest()).0).min()?;
            let bits = u128::from(*bits_per_second) * u128::from(ns) / 1_000_000_000;
            u64::try_from(bits.checked_div(u128::from(shortest + overhead_bytes) * 8)?).ok()
        }
        schedule => schedule.frames_due_by(ns),
    };
    program.lanes.iter().map(due).try_fold(0u64, |sum, due| Some(sum.saturating_add(due?)))
}

/// Opens senders of its own for each worker, one on each interface, in the interface's namespace. `open` is told whether
/// it is the first worker's.
fn each<T: Tx + Send + 'static>(
    wanted: &Wanted<'_>,
    name: &'static str,
    open: impl Fn(&Place, bool) -> Result<T>,
) -> Result<Engines> {
    let one = |worker: usize| -> Result<Box<dyn Engine>> {
        let senders = wanted.places.iter().map(|place| open(place, worker == 0));
        Ok(Box::new(Userspace::over(name, senders.collect::<Result<_>>()?).context(NOWHERE)?))
    };
    (0..wanted.cpus.len()).map(one).collect()
}

/// Who stamps frames that leave by `place`, or why nobody does.
fn stamper(place: &Place, who: Stamps) -> Result<Stamper> {
    let name = &place.interface.name;
    let stamper = place.run_in(|| transmit_stamps(name, who == Stamps::Hardware))?;
    stamper.map_err(|why| {
        let who = if who == Stamps::Hardware { "hardware" } else { "driver" };
        let driver = place.interface.driver.as_deref().unwrap_or("no driver is known");
        anyhow!("`.tx_timestamps` {who} on {} ({driver}): {why}", place.spec)
    })
}

/// A way to open the engine asked for, or for `auto` the first that can be had.
pub fn open_engines(engine: EngineName) -> Open {
    Box::new(move |wanted| open_first(engine, &ENGINES.each_ref(), wanted))
}

/// The same as the user asked for it. `receives`: frames that arrive where these leave are measured by another run. `program`: what is sent,
/// where the run begins at once: what live frames need besides the interface is made meanwhile.
///
/// # Errors
/// That an engine cannot do it, and why; of `auto` that none can.
pub fn open_by(through: &Through, receives: bool, program: Option<&Program>) -> Result<Open> {
    let engine = through.engine;
    let calibration = match &through.calibration {
        None => None,
        Some(_) if engine != EngineName::Auto => {
            bail!(
                "`.calibration` says what `.engine` auto takes: leave out one of `.engine` {} and `.calibration`",
                engine.name()
            )
        }
        Some(path) => Some(Calibration::read(path)?),
    };
    let stamps = through.tx_timestamps;
    let engine = match engine {
        EngineName::Auto if stamps.is_some() && calibration.is_none() => EngineName::Packet,
        EngineName::Packet => engine,
        _ if stamps.is_some() => {
            bail!(
                "`.tx_timestamps`: only `.engine` packet learns when its frames left: leave out the other engine"
            )
        }
        _ => engine,
    };
    let early = program.is_some_and(|program| may_be_live(engine, program)).then(Early::begin);
    Ok(Box::new(move |wanted| {
        let wanted =
            Wanted { receives: wanted.receives || receives, stamps, early: early.as_ref(), ..*wanted };
        let Some(calibration) = &calibration else {
            return open_first(engine, &ENGINES.each_ref(), &wanted);
        };
        calibration.is_of(wanted.places.first())?;
        let measured = calibration.order().filter_map(|way| WAYS.iter().find(|(name, _)| *name == way));
        let measured: Vec<Kind> = measured
            .map(|(_, kind)| Kind { auto: |_| true, because: "the fastest here by the calibration", ..*kind })
            .collect();
        let kinds: Vec<&Kind> = measured.iter().chain(&ENGINES).collect();
        open_first(engine, &kinds, &wanted)
    }))
}

/// The ways that a calibration compares, by the names it calls them.
const WAYS: [(&str, Kind); 4] = [
    ("afxdp zero-copy", ZERO_COPY),
    ("xdp", LIVE),
    ("afxdp copy", Kind { open: |wanted| open_afxdp(wanted, Mode::Copy("as calibrated")), ..AFXDP }),
    ("packet", PACKET),
];

/// Each way by itself, for a calibration: its name, the engine's, and how it is opened.
pub fn ways() -> impl Iterator<Item = (&'static str, String, Open)> {
    WAYS.iter().map(|(name, kind)| {
        let engine = kind.engine.name().to_owned();
        let open: Open = Box::new(move |wanted| open_first(kind.engine, &[kind], wanted));
        (*name, engine, open)
    })
}

fn open_first(engine: EngineName, kinds: &[&Kind], wanted: &Wanted<'_>) -> Result<Opened> {
    if engine != EngineName::Auto {
        let kind = kinds.iter().rfind(|kind| kind.engine == engine).context("there is no such engine")?;
        let name = engine.name();
        let engines = (kind.open)(wanted).with_context(|| format!("`.engine` {name}"))?;
        let what = engines.what.as_deref().unwrap_or(kind.what);
        let choice =
            Choice { name: name.to_owned(), reason: format!("asked for: {what}"), ..Choice::default() };
        return Ok(Opened { workers: engines.workers, choice, replaceable: false });
    }
    let mut not_taken: Vec<NotTaken> = Vec::new();
    let mut last = None;
    let mut kinds = kinds.iter().filter(|kind| (kind.auto)(wanted));
    while let Some(kind) = kinds.next() {
        let name = kind.engine.name().to_owned();
        let label = kind.label.map_or_else(|| name.clone(), str::to_owned);
        if let Some(known) = wanted.distrusted.iter().find(|known| known.name == name) {
            not_taken.push(known.clone());
            continue;
        }
        if let Some(reason) = (kind.unwise)(wanted) {
            not_taken.push(NotTaken { name: label, reason });
            continue;
        }
        match (kind.open)(wanted) {
            Ok(engines) => {
                let what = engines.what.as_deref().unwrap_or(kind.what);
                let reason = format!("{what}: {}", kind.because);
                // A calibrated way comes again in the usual order.
                not_taken.dedup();
                let choice = Choice { name, reason, not_taken };
                let replaceable = kinds.any(|other| other.engine != kind.engine);
                return Ok(Opened { workers: engines.workers, choice, replaceable });
            }
            Err(error) => {
                let reason = match error.downcast_ref() {
                    // Its mend is for those who asked for nothing else.
                    Some(afxdp::AfxdpError::NoZeroCopy { why, .. }) => why.clone(),
                    _ => crate::in_full(&error),
                };
                not_taken.push(NotTaken { name: label, reason });
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
    // The last asks for the least: what it lacks is lacking.
    Err(last.context(format!("no engine can send these frames here ({})", reasons.join("; "))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    const NEVER: Kind = Kind {
        engine: EngineName::Xdp,
        label: None,
        what: "live frames",
        because: "fast",
        auto: |_| true,
        unwise: |_| None,
        open: |_| bail!("the peer has no program: attach one"),
    };
    const UNWISE: Kind =
        Kind { engine: EngineName::Afxdp, unwise: |_| Some("it would only wait".to_owned()), ..NEVER };
    const LAST: Kind = Kind {
        engine: EngineName::Packet,
        label: None,
        what: "a socket",
        because: "works everywhere",
        open: |wanted| {
            let one = |_: &_| Box::new(Userspace::new("packet", NullTx::new(60))) as Box<dyn Engine>;
            Ok(wanted.cpus.iter().map(one).collect())
        },
        ..NEVER
    };

    fn opened(engine: EngineName, kinds: &[&Kind]) -> Result<Opened> {
        let wanted = Wanted {
            places: &[],
            program: None,
            shares: &[],
            cpus: &[Some(0), Some(1)],
            longest: 60,
            most: (None, None),
            measured: None,
            pacing: engine::Pacing::default(),
            clock: engine::clock::Clock::Monotonic,
            together: false,
            receives: false,
            distrusted: &[],
            stop: &AtomicBool::new(false),
            stamps: None,
            early: None,
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
                places: &[],
                program: Some(&program),
                shares: &[],
                cpus: &[None],
                longest: 60,
                most: (None, None),
                measured: None,
                pacing: engine::Pacing::default(),
                clock: engine::clock::Clock::Monotonic,
                together: false,
                receives: false,
                distrusted: &[],
                stop: &AtomicBool::new(false),
                stamps: None,
                early: None,
            };
            assert_eq!(too_slow_to_spin(&wanted).is_some(), slow, "{schedule:?}");
        }
    }

    #[test]
    fn auto_takes_the_first_that_can_be_had_and_says_why_not_those_before() {
        let opened = opened(EngineName::Auto, &[&NEVER, &UNWISE, &LAST]).expect("the last");
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
    fn an_engine_that_sent_nothing_is_passed_over_and_the_last_is_kept() {
        let why = NotTaken { name: "packet".to_owned(), reason: "nobody saw a frame".to_owned() };
        const SECOND: Kind = Kind { engine: EngineName::Afxdp, ..LAST };
        let (cpus, stop) = ([Some(0)], AtomicBool::new(false));
        let wanted = |distrusted| Wanted {
            places: &[],
            program: None,
            shares: &[],
            cpus: &cpus,
            longest: 60,
            most: (None, None),
            measured: None,
            pacing: engine::Pacing::default(),
            clock: engine::clock::Clock::Monotonic,
            together: false,
            receives: false,
            distrusted,
            stop: &stop,
            stamps: None,
            early: None,
        };
        let kinds = [&LAST, &SECOND];
        let first = open_first(EngineName::Auto, &kinds, &wanted(&[])).expect("the first");
        assert!(first.replaceable && first.choice.name == "packet");
        let whys = [why.clone()];
        let next = open_first(EngineName::Auto, &kinds, &wanted(&whys)).expect("the second");
        assert_eq!((next.choice.name.as_str(), next.replaceable), ("afxdp", false));
        assert_eq!(next.choice.not_taken, [why]);
        assert!(!open_first(EngineName::Packet, &kinds, &wanted(&[])).expect("named").replaceable);
    }

    #[test]
    fn a_named_engine_is_taken_or_refused_with_the_reason() {
        let error = opened(EngineName::Xdp, &[&NEVER, &LAST]).map(|_| ()).expect_err("not possible");
        assert_eq!(crate::in_full(&error), "`.engine` xdp: the peer has no program: attach one");
        let opened = opened(EngineName::Packet, &[&NEVER, &LAST]).expect("possible");
        assert_eq!(opened.choice.reason, "asked for: a socket");
        assert_eq!(opened.choice.not_taken, []);
    }

    #[test]
    fn when_nothing_can_be_had_all_reasons_are_told() {
        let refused = |kinds: &[&Kind]| {
            crate::in_full(&opened(EngineName::Auto, kinds).map(|_| ()).expect_err("nothing to take"))
        };
        assert_eq!(refused(&[&NEVER]), "the peer has no program: attach one");
        let two = refused(&[&UNWISE, &NEVER]);
        assert!(
            two.contains("afxdp: it would only wait") && two.contains("xdp: the peer has no program"),
            "{two}"
        );
    }
}
