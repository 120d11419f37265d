//! `netdyno trial` and `netdyno search`: their settings, and what is typed in a way of its own.

use super::Output;
use super::declared::Asked;
use super::lab::OwnLab;
use super::plugin::ByPlugin;
use super::search_between::{SocketBuffer, Transactions};
use clap::{Args, Subcommand, ValueHint};
use spec::Written;
use spec::setting::Settings;
use std::path::PathBuf;
use std::time::Duration;
use traffic::Rate;
use wire::Mac;

/// What trials and searches send, and between which ports.
#[derive(Debug, Clone, Args)]
#[command(mut_arg("mesh", |mesh| mesh.conflicts_with_all(["measure", "lab_impair"])))]
pub struct Ports {
    #[command(flatten)]
    pub by_plugin: ByPlugin,
    /// Send on this interface (IFACE, or IFACE@NAMESPACE). For several pairs of ports give --on and --measure once for
    /// each.
    #[arg(long = "on", value_name = "IFACE", conflicts_with = "lab", value_delimiter = ',')]
    pub interface: Vec<String>,
    /// Measure on this interface what arrives.
    #[arg(long, value_name = "IFACE", conflicts_with = "lab", value_delimiter = ',')]
    pub measure: Vec<String>,
    #[command(flatten)]
    pub lab: OwnLab,
    /// Ports of the device in the lab, 3 to 16, each with an interface of ours: in a mesh (default: 4), or two and two of
    /// them in pairs.
    #[arg(long, value_name = "N", requires = "lab", conflicts_with = "lab_impair")]
    pub ports: Option<u32>,
}

impl Ports {
    /// With the rest.
    fn put(self, bench: spec::Bench) -> spec::Bench {
        let Ports { by_plugin, interface, measure, lab, ports } = self;
        let links = super::job::links(interface, measure);
        let lab = lab.put(bench.lab).map(|lab| spec::Lab { ports, ..lab });
        spec::Bench { plugin: by_plugin.job(), links, lab, ..bench }
    }
}

#[derive(Debug, Args)]
pub struct Trial {
    #[command(flatten)]
    pub asked: Asked<spec::Trial>,
    #[command(flatten)]
    pub ports: Ports,
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
pub struct Common {
    #[command(flatten)]
    pub asked: Asked<spec::Search>,
    #[command(flatten)]
    pub ports: Ports,
    /// Go on with the search that this result (a folder of --report, its result.json, or what --json printed) is of, at its
    /// first trial that was not done. All else is as it was asked for then.
    #[arg(long = "continue", value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub resume: Option<PathBuf>,
    #[command(flatten)]
    pub output: Output,
}

/// `search flows`: its settings, and those of all searches that mean something else here.
#[derive(Debug, Args)]
#[command(mut_arg("collect", |collect| collect.conflicts_with("lab")))]
#[command(mut_arg("probe", |probe| probe.requires("lab")))]
#[command(mut_arg("format", |format| format.requires("lab")))]
#[command(mut_arg("rates", |rates| rates.conflicts_with_all(["max", "min"])))]
pub struct Flows {
    /// The port that flows are sent from, to what the probe meters (IFACE, or IFACE@NAMESPACE).
    #[arg(long = "on", value_name = "IFACE", conflicts_with = "lab", requires = "collect")]
    pub interface: Option<String>,
    /// Test a probe in a lab of its own: two hosts, the probe on one of them, gone when this ends.
    #[arg(long)]
    pub lab: bool,
    #[command(flatten)]
    pub asked: Asked<spec::Flows>,
    /// Offer no more new flows per second than this (1mfps). Default: what the sender can do.
    #[arg(long, value_name = "RATE")]
    pub max: Option<Written<Rate>>,
    /// Offer no fewer than this. Default: a thousandth of the greatest.
    #[arg(long, value_name = "RATE")]
    pub min: Option<Written<Rate>>,
    /// Frame sizes to test one after the other, the FCS counted.
    #[arg(long, value_name = "SIZES", default_value = "64")]
    pub size: String,
    /// Key of the flows' order.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// The Ethernet address that frames are sent to. Default: one that is nobody's, as at a mirror port.
    #[arg(long, value_name = "MAC")]
    pub gateway: Option<Written<Mac>>,
    /// Do a trial that failed with little loss again, this many times at most, in a lab; one that the sender fell short of four
    /// times as often.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub retries: u32,
    /// Send like any other program.
    #[arg(long)]
    pub no_real_time: bool,
    #[command(flatten)]
    pub through: Asked<spec::Through>,
    #[command(flatten)]
    pub disrupting: Asked<spec::Disrupting>,
    /// Length of a trial. Default: 1m, and at least twice the idle timeout; in a lab 4s.
    #[arg(long, value_name = "TIME")]
    pub trial_duration: Option<Written<Duration>>,
    /// Go on with the search that this result is of, at its first trial that was not done.
    #[arg(long = "continue", value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub resume: Option<PathBuf>,
    #[command(flatten)]
    pub output: Output,
}

impl Flows {
    /// The job, the result to go on from, and where the result goes.
    fn job(self) -> (spec::Job, Option<PathBuf>, Output) {
        let spec::Through { engine, calibration, cores, tx_timestamps } = self.through.0;
        let spec::Disrupting { yes_disrupt } = self.disrupting.0;
        let bench = spec::Bench {
            links: super::job::links(self.interface.into_iter().collect(), Vec::new()),
            lab: self.lab.then(spec::Lab::default),
            gateway: self.gateway.into_iter().collect(),
            size: Some(self.size),
            seed: self.seed,
            retries: Some(self.retries),
            no_real_time: self.no_real_time,
            engine,
            calibration,
            cores,
            tx_timestamps,
            ..spec::Bench::default()
        };
        let search = spec::Search {
            find: spec::Find::Flows(self.asked.0),
            bench,
            max: self.max,
            min: self.min,
            trial_duration: self.trial_duration,
            yes_disrupt,
        };
        (search.into(), self.resume, self.output)
    }
}

impl Trial {
    /// The job, and where its result goes.
    pub fn job(self) -> (spec::Job, Output) {
        let trial = self.asked.0;
        let bench = self.ports.put(trial.bench);
        (spec::Trial { bench, ..trial }.into(), self.output)
    }
}

impl<T: Settings> Searched<T> {
    /// The job, the result to go on from, and where the result goes.
    fn job(self, find: impl FnOnce(T) -> spec::Find) -> (spec::Job, Option<PathBuf>, Output) {
        let Common { asked, ports, resume, output } = self.common;
        let search = asked.0;
        let bench = ports.put(search.bench);
        let search = spec::Search { find: find(self.find.0), bench, ..search };
        (search.into(), resume, output)
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
            Kind::Flows(_) | Kind::SocketBuffer(_) | Kind::Transactions(_) => return None,
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
            Kind::Flows(search) => search.job(),
            Kind::SocketBuffer(search) => between(search.job()),
            Kind::Transactions(search) => between(search.job()),
        }
    }
}

/// Of a search between two hosts.
fn between(
    (search, resume, output): (spec::EndpointSearch, Option<PathBuf>, Output),
) -> (spec::Job, Option<PathBuf>, Output) {
    (search.into(), resume, output)
}
