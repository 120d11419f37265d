//! `netdyno trial` and `netdyno search`: their settings, and what is typed in a way of its own.

use super::Output;
use super::declared::{Asked, LeavesOut};
use super::plugin::Given;
use super::search_between::{SocketBuffer, Transactions};
use super::search_sessions::{Capacity, Sessions};
use clap::{Arg, Args, Subcommand, ValueHint};
use spec::setting::Settings;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(mut_arg("mesh", |mesh| mesh.conflicts_with("measure")))]
pub struct Trial {
    #[command(flatten)]
    pub asked: Asked<spec::Trial>,
    #[command(flatten)]
    pub plugin: Given,
    #[command(flatten)]
    pub output: Output,
}

#[derive(Debug, Args)]
pub struct Search {
    #[command(subcommand)]
    pub kind: Kind,
}

/// What is searched for.
#[derive(Debug, Subcommand)]
pub enum Kind {
    /// The highest rate that the device forwards without loss, or within other limits (RFC 2544, 26.1; MLRsearch).
    Throughput(Box<Searched<spec::Throughput>>),
    /// Latency at the throughput or at given loads (RFC 2544, 26.2; RFC 8219, 7.2 and 7.3).
    Latency(Box<Searched<spec::Latency>>),
    /// Frame loss at loads from the greatest downwards (RFC 2544, 26.3).
    Loss(Box<Searched<spec::LossCurve>>),
    /// The longest burst at the highest rate that is forwarded whole, and the buffer behind it (RFC 9004).
    Burst(Box<Searched<spec::Burst>>),
    /// How long the device loses frames after an overload has ended (RFC 2544, 26.5).
    Recovery(Box<Searched<spec::Recovery>>),
    /// How long the device forwards nothing when it is reset (RFC 2544, 26.6).
    Reset(Box<Searched<spec::Reset>>),
    /// One load for a long time.
    Soak(Box<Searched<spec::Soak>>),
    /// The highest rate of new flows that a probe (NetFlow, IPFIX) records without loss (RFC 6645).
    Flows(Box<Flows>),
    /// The smallest socket buffer that carries what a path does between two hosts, beside the kernel's own tuning.
    SocketBuffer(Box<SocketBuffer>),
    /// The highest rate of transactions between two hosts whose latency stays below a bound.
    Transactions(Box<Transactions>),
    /// The highest rate of new TCP connections that a device carries without failures (RFC 9693, session setup rate).
    Sessions(Box<Sessions>),
    /// The most TCP connections that a device holds at once, each of which is answered when it is used again (RFC 3511, 5.2).
    SessionCapacity(Box<Capacity>),
}

/// A search of this kind.
#[derive(Debug, Clone, Args)]
pub struct Searched<T: Settings> {
    #[command(flatten)]
    pub find: Asked<T>,
    #[command(flatten)]
    pub common: Common,
}

/// What all searches share.
#[derive(Debug, Clone, Args)]
#[command(mut_arg("mesh", |mesh| mesh.conflicts_with("measure")))]
pub struct Common {
    #[command(flatten)]
    pub asked: Asked<spec::Search>,
    #[command(flatten)]
    pub plugin: Given,
    #[command(flatten)]
    pub earlier: Earlier,
    #[command(flatten)]
    pub output: Output,
}

/// The result that a search goes on from.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Search")]
pub struct Earlier {
    /// Go on with the search that this result (a folder of --report, its result.json, or what --json printed) is of, at its
    /// first trial that was not done. All else is as it was asked for then.
    #[arg(long = "continue", value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub resume: Option<PathBuf>,
}

/// `search flows`: its settings, and those of all searches, some of which mean something else here.
#[derive(Debug, Args)]
#[command(mut_arg("on", |on| on.num_args(1).requires("collect").help("The port that flows are sent from, to what the probe meters (IFACE, or IFACE@NAMESPACE)")))]
#[command(mut_arg("lab", |lab| said(lab, "Test a probe in a lab of its own: two hosts, the probe on one of them, gone when this ends")))]
#[command(mut_arg("collect", |collect| collect.conflicts_with("lab")))]
#[command(mut_arg("probe", |probe| probe.requires("lab")))]
#[command(mut_arg("format", |format| format.requires("lab")))]
#[command(mut_arg("rates", |rates| rates.conflicts_with_all(["max", "min"])))]
#[command(mut_arg("max", |max| said(max, "Offer no more new flows per second than this (1mfps). Default: what the sender can do")))]
#[command(mut_arg("min", |min| said(min, "Offer no fewer than this. Default: a thousandth of the greatest")))]
#[command(mut_arg("seed", |seed| said(seed, "Key of the flows' order")))]
#[command(mut_arg("gateway", |gateway| said(gateway, "The Ethernet address that frames are sent to. Default: one that is nobody's, as at a mirror port")))]
#[command(mut_arg("trial-duration", |time| said(time, "Length of a trial. Default: 1m, and at least twice the idle timeout; in a lab 4s")))]
pub struct Flows {
    #[command(flatten)]
    pub find: Asked<spec::Flows>,
    #[command(flatten)]
    pub asked: Asked<spec::Search, OfFlows>,
    #[command(flatten)]
    pub earlier: Earlier,
    #[command(flatten)]
    pub output: Output,
}

/// An option with other words than those it is declared with.
pub fn said(arg: Arg, text: &'static str) -> Arg {
    arg.help(text).long_help(None::<&str>)
}

/// The frames are the search's own and go one way, to a probe that says itself what arrived.
#[derive(Debug, Clone)]
pub struct OfFlows;

impl LeavesOut for OfFlows {
    const OPTIONS: &'static [&'static str] = &[
        "what",
        "plugin",
        "measure",
        "mesh",
        "both-ways",
        "back",
        "lab-dut",
        "lab-bottleneck",
        "lab-queue",
        "lab-burst",
        "lab-loss",
        "lab-impair",
        "ports",
        "no-learning",
        "warm-up",
        "meter",
        "timestamps",
    ];
}

impl<T: Settings> Searched<T> {
    /// The job, the result to go on from, and where the result goes.
    fn job(self, find: impl FnOnce(T) -> spec::Find) -> (spec::Job, Option<PathBuf>, Output) {
        let Common { asked, earlier, output, .. } = self.common;
        let search = spec::Search { find: find(self.find.0), ..asked.0 };
        (search.into(), earlier.resume, output)
    }
}

impl Kind {
    /// What all searches of a device share but the one for flows.
    pub fn common(&mut self) -> Option<&mut Common> {
        Some(match self {
            Kind::Throughput(search) => &mut search.common,
            Kind::Latency(search) => &mut search.common,
            Kind::Loss(search) => &mut search.common,
            Kind::Burst(search) => &mut search.common,
            Kind::Recovery(search) => &mut search.common,
            Kind::Reset(search) => &mut search.common,
            Kind::Soak(search) => &mut search.common,
            Kind::Flows(_)
            | Kind::SocketBuffer(_)
            | Kind::Transactions(_)
            | Kind::Sessions(_)
            | Kind::SessionCapacity(_) => {
                return None;
            }
        })
    }

    /// The job, the result to go on from, and where the result goes.
    pub fn job(self) -> (spec::Job, Option<PathBuf>, Output) {
        use spec::Find;
        match self {
            Kind::Throughput(search) => search.job(Find::Throughput),
            Kind::Latency(search) => search.job(Find::Latency),
            Kind::Loss(search) => search.job(Find::Loss),
            Kind::Burst(search) => search.job(Find::Burst),
            Kind::Recovery(search) => search.job(Find::Recovery),
            Kind::Reset(search) => search.job(Find::Reset),
            Kind::Soak(search) => search.job(Find::Soak),
            Kind::Flows(search) => {
                let Flows { find, asked, earlier, output } = *search;
                let search = spec::Search { find: Find::Flows(find.0), ..asked.0 };
                (search.into(), earlier.resume, output)
            }
            Kind::SocketBuffer(search) => search.between.job(spec::EndpointFind::SocketBuffer),
            Kind::Transactions(search) => search.between.job(spec::EndpointFind::Transactions),
            Kind::Sessions(search) => search.job(),
            Kind::SessionCapacity(search) => search.job(),
        }
    }
}
