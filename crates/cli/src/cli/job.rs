//! From what was typed to a job: the one place that knows both.

use super::plugin::ByPlugin;
use super::{Measure, Metering, Output, Pace, Replay, Send, Shape, Through, TwoSides};
use super::{clone::Clone, collect::Collect, declared::Declared, endpoint::Endpoint, search::Trial};
use clap::Subcommand;
use spec::{Link, Sign};

/// The commands that are jobs as they stand.
#[derive(Debug, Subcommand)]
pub enum Typed {
    /// Send frames built from a packet expression, or the streams of a scenario file.
    Send(Box<Send>),
    /// Send captures: as captured, faster, at a rate, looped with new addresses.
    Replay(Box<Replay>),
    /// Play the client's side of captured TCP connections against a real server, and compare its answers.
    Live(Box<Declared<spec::Live>>),
    /// Bridge two interfaces: send what arrives on one out of the other, edited on the way if asked.
    Bridge(Box<Declared<spec::Bridge>>),
    /// Be a device with known faults between two interfaces: delay, loss, duplicates, reordering, flapping.
    Impair(Box<Declared<spec::Impair>>),
    /// Count what arrives on an interface: frames, sizes, and loss, order and latency of signed frames.
    Measure(Box<Measure>),
    /// Send what arrives on an interface back where it came from: the far end of `send --round-trip`.
    Reflect(Box<Declared<spec::Reflect>>),
    /// Meter an interface or captures by flows, and export their records: NetFlow v5, v9, IPFIX.
    Probe(Box<Declared<spec::Probe>>),
    /// Receive flow records (NetFlow v5, v9, IPFIX, sFlow v5), check what is missing, and write them.
    Collect(Collect),
    /// Copy live TCP sessions onto a test server: what clients say to one server is said to another one, too.
    Clone(Box<Clone>),
    /// Test between two hosts over their own TCP and UDP: streams, transactions, latency under load.
    Endpoint(Box<Endpoint>),
    /// Try a device with one load: send it, measure what comes back, say whether it passed.
    Trial(Box<Trial>),
}

impl Typed {
    /// The packet or scenario that was typed, of a kind that has one.
    pub fn what(&self) -> Option<&str> {
        match self {
            Typed::Send(args) => args.what.as_deref(),
            Typed::Trial(args) => args.bench.what.as_deref(),
            _ => None,
        }
    }

    /// What was typed for the way back.
    pub fn back(&self) -> Option<&str> {
        match self {
            Typed::Trial(args) => args.bench.back.as_deref(),
            _ => None,
        }
    }

    /// The captures that were typed, of a kind that reads some.
    pub fn captures(&self) -> &[std::path::PathBuf] {
        match self {
            Typed::Replay(args) => &args.files,
            Typed::Live(args) => std::slice::from_ref(&args.asked.0.capture),
            Typed::Probe(args) => &args.asked.0.captures,
            _ => &[],
        }
    }

    /// The plugin that says what is sent.
    pub fn by_plugin(&mut self) -> Option<&mut ByPlugin> {
        match self {
            Typed::Send(args) => Some(&mut args.by_plugin),
            Typed::Trial(args) => Some(&mut args.bench.by_plugin),
            _ => None,
        }
    }

    /// The job, and where its result goes.
    pub fn job(self) -> (spec::Job, Output) {
        match self {
            Typed::Send(args) => args.job(),
            Typed::Replay(args) => args.job(),
            Typed::Live(args) => args.job(),
            Typed::Bridge(args) => args.job(),
            Typed::Impair(args) => args.job(),
            Typed::Measure(args) => args.declared.job(),
            Typed::Reflect(args) => args.job(),
            Typed::Probe(args) => args.job(),
            Typed::Collect(args) => args.job(),
            Typed::Clone(args) => args.job(),
            Typed::Endpoint(args) => args.job(),
            Typed::Trial(args) => args.job(),
        }
    }
}

/// Of each pair of options one link; the rest where one was given more often.
pub fn links(on: Vec<String>, measure: Vec<String>) -> Vec<Link> {
    let pairs = on.len().max(measure.len());
    let (mut on, mut measure) = (on.into_iter(), measure.into_iter());
    (0..pairs).map(|_| Link { on: on.next(), measure: measure.next() }).collect()
}

/// Which ports send to which.
pub fn pattern(mesh: bool) -> spec::Pattern {
    if mesh { spec::Pattern::Mesh } else { spec::Pattern::Pairs }
}

/// Of two sides both, if there is anything of the second.
fn two_sides(first: Link, second: Link) -> Vec<Link> {
    let mut links = vec![first, second];
    while links.last().is_some_and(|link| link.on.is_none() && link.measure.is_none()) {
        links.pop();
    }
    links
}

impl Through {
    /// As a job has it, and what it asks to be allowed.
    pub fn parts(self) -> (spec::Through, Vec<String>) {
        let Through { engine, calibration, cores, core, tx_timestamps, yes_disrupt } = self;
        let core = core.map(spec::Cores::one);
        (spec::Through { engine, calibration, cores: core.or(cores), tx_timestamps }, yes_disrupt)
    }
}

impl Metering {
    /// As a job has it: whether frames come back, and how they are measured.
    fn parts(self) -> (bool, spec::Meter) {
        let Metering {
            round_trip,
            stream_histograms,
            clock,
            check_content,
            meter,
            timestamps,
            pass,
            capture,
        } = self;
        // Without a file there is none.
        let capture = Some(capture.0).filter(|capture| !capture.file.as_os_str().is_empty());
        let stream_histograms = Some(stream_histograms);
        (
            round_trip,
            spec::Meter { how: meter, timestamps, clock, stream_histograms, check_content, pass, capture },
        )
    }
}

impl Send {
    /// The job, and where its result goes.
    pub fn job(self) -> (spec::Job, Output) {
        let Send {
            what,
            by_plugin,
            interface,
            measure,
            lab,
            mesh,
            shape,
            pace,
            through,
            metering,
            sign,
            no_sign,
            resolve,
            output,
        } = self;
        let Shape { size, seed } = shape;
        let Pace { rate, topspeed, duration, count, catch_up, spin, no_real_time } = pace;
        let (round_trip, meter) = metering.parts();
        let (spec::Through { engine, calibration, cores, tx_timestamps }, yes_disrupt) = through.parts();
        let job = spec::Send {
            what: what.unwrap_or_default(),
            plugin: by_plugin.job(),
            links: links(interface, measure),
            pattern: pattern(mesh),
            lab: lab.asked(None),
            size,
            seed,
            sign: match (sign, no_sign) {
                (true, _) => Sign::Always,
                (_, true) => Sign::Never,
                _ => Sign::Auto,
            },
            rate: if topspeed { "top".parse().ok() } else { rate },
            duration,
            count,
            catch_up,
            spin,
            no_real_time,
            engine,
            calibration,
            cores,
            tx_timestamps,
            round_trip,
            meter,
            resolve,
            yes_disrupt,
        };
        (job.into(), output)
    }
}

impl Replay {
    /// The job, and where its result goes.
    pub fn job(self) -> (spec::Job, Output) {
        let Replay {
            files,
            interface,
            measure,
            lab,
            two,
            write,
            speed,
            pace,
            loops,
            preload,
            stream,
            unique_ip,
            sign,
            oversize,
            skip_corrupt,
            through,
            metering,
            output,
            loss,
            loss_seed,
            edits,
        } = self;
        let TwoSides { on2, sides, only_side, measure2 } = two;
        let Pace { rate, topspeed, duration, count, catch_up, spin, no_real_time } = pace;
        let (round_trip, meter) = metering.parts();
        let (spec::Through { engine, calibration, cores, tx_timestamps }, yes_disrupt) = through.parts();
        let edits = edits.0;
        let job = spec::Replay {
            captures: files,
            links: two_sides(Link { on: interface, measure }, Link { on: on2, measure: measure2 }),
            sides,
            lab: lab.asked(None),
            only_side,
            write,
            speed,
            rate: if topspeed { "top".parse().ok() } else { rate },
            duration,
            count,
            catch_up,
            spin,
            no_real_time,
            loops,
            preload: match (preload, stream) {
                (true, _) => Some(true),
                (_, true) => Some(false),
                _ => None,
            },
            unique_ip,
            sign: if sign { Sign::Always } else { Sign::Auto },
            oversize,
            skip_corrupt,
            loss: loss.map(|share| spec::Loss { share, seed: Some(loss_seed) }),
            engine,
            calibration,
            cores,
            tx_timestamps,
            round_trip,
            meter,
            edits: (edits != spec::Edits::default()).then_some(edits),
            yes_disrupt,
        };
        (job.into(), output)
    }
}
