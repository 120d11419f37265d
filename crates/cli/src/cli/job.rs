//! From what was typed to a job: the one place that knows both.

use super::plugin::ByPlugin;
use super::{Measure, Output, Replay, Send};
use super::{clone::Clone, collect::Collect, declared::Declared, endpoint::Endpoint, search::Trial};
use clap::Subcommand;
use spec::Link;

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
    Collect(Box<Collect>),
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
            Typed::Send(args) => Some(&*args.asked.0.what).filter(|what| !what.is_empty()),
            Typed::Trial(args) => args.asked.0.bench.what.as_deref(),
            _ => None,
        }
    }

    /// What was typed for the way back.
    pub fn back(&self) -> Option<&str> {
        match self {
            Typed::Trial(args) => args.asked.0.bench.back.as_deref(),
            _ => None,
        }
    }

    /// The captures that were typed, of a kind that reads some.
    pub fn captures(&self) -> &[std::path::PathBuf] {
        match self {
            Typed::Replay(args) => &args.asked.0.captures,
            Typed::Live(args) => std::slice::from_ref(&args.asked.0.capture),
            Typed::Probe(args) => &args.asked.0.captures,
            _ => &[],
        }
    }

    /// The plugin that says what is sent.
    pub fn by_plugin(&mut self) -> Option<&mut ByPlugin> {
        match self {
            Typed::Send(args) => Some(&mut args.by_plugin),
            Typed::Trial(args) => Some(&mut args.ports.by_plugin),
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

/// Of two sides both, if there is anything of the second.
fn two_sides(first: Link, second: Link) -> Vec<Link> {
    let mut links = vec![first, second];
    while links.last().is_some_and(|link| link.on.is_none() && link.measure.is_none()) {
        links.pop();
    }
    links
}

impl Send {
    /// The job, and where its result goes.
    pub fn job(self) -> (spec::Job, Output) {
        let Send { asked, by_plugin, interface, measure, lab, output } = self;
        let job = spec::Send {
            plugin: by_plugin.job(),
            links: links(interface, measure),
            lab: lab.put(asked.0.lab),
            ..asked.0
        };
        (job.into(), output)
    }
}

impl Replay {
    /// The job, and where its result goes.
    pub fn job(self) -> (spec::Job, Output) {
        let Replay { asked, interface, measure, lab, on2, measure2, output } = self;
        let job = spec::Replay {
            links: two_sides(Link { on: interface, measure }, Link { on: on2, measure: measure2 }),
            lab: lab.put(asked.0.lab),
            ..asked.0
        };
        (job.into(), output)
    }
}
