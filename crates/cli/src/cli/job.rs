//! From what was typed to a job: the one place that knows both.

use super::{Output, Replay, Send};
use super::{clone::Clone, declared::Declared, endpoint::Endpoint, search::Trial, sessions::Sessions};
use anyhow::Result;
use clap::Subcommand;

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
    Measure(Box<Declared<spec::Measure>>),
    /// Send what arrives on an interface back where it came from: the far end of `send --round-trip`.
    Reflect(Box<Declared<spec::Reflect>>),
    /// Meter an interface or captures by flows, and export their records: NetFlow v5, v9, IPFIX.
    Probe(Box<Declared<spec::Probe>>),
    /// Receive flow records (NetFlow v5, v9, IPFIX, sFlow v5), check what is missing, and write them.
    Collect(Box<Declared<spec::Collect>>),
    /// Copy live TCP sessions onto a test server: what clients say to one server is said to another one, too.
    Clone(Box<Clone>),
    /// Test between two hosts over their own TCP and UDP: streams, transactions, latency under load.
    Endpoint(Box<Endpoint>),
    /// Open TCP connections by the million through a device, without the host's TCP: rates, states, retransmissions, latency.
    Sessions(Box<Sessions>),
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

    /// Asks the plugin that says what is sent, if there is one, for its options.
    ///
    /// # Errors
    /// There is none such, or an option is wrong.
    pub fn ask_plugin(&mut self) -> Result<()> {
        match self {
            Typed::Send(args) => args.plugin.ask(args.asked.0.plugin.as_mut()),
            Typed::Trial(args) => args.plugin.ask(args.asked.0.bench.plugin.as_mut()),
            _ => Ok(()),
        }
    }

    /// The job, and where its result goes.
    pub fn job(self) -> (spec::Job, Output) {
        match self {
            Typed::Send(args) => (args.asked.0.into(), args.output),
            Typed::Replay(args) => (args.asked.0.into(), args.output),
            Typed::Live(args) => args.job(),
            Typed::Bridge(args) => args.job(),
            Typed::Impair(args) => args.job(),
            Typed::Measure(args) => args.job(),
            Typed::Reflect(args) => args.job(),
            Typed::Probe(args) => args.job(),
            Typed::Collect(args) => args.job(),
            Typed::Clone(args) => args.declared.job(),
            Typed::Endpoint(args) => args.job(),
            Typed::Sessions(args) => args.job(),
            Typed::Trial(args) => (args.asked.0.into(), args.output),
        }
    }
}
