//! `netdyno trial` and `netdyno search`.

use super::lab::OwnLab;
use super::plugin::ByPlugin;
use super::search_between::{SocketBuffer, Transactions};
use super::{Output, Through, explained_word, word};
use clap::{Args, Subcommand, ValueHint};
use spec::{Axis, ExportFormat, How, KeyOrder, Method, Ratio, Timestamps, UnderTest, Written};
use std::path::PathBuf;
use std::time::Duration;
use traffic::Rate;
use wire::Mac;

/// Which ports, which frames: what trials and searches share.
#[derive(Debug, Clone, Args)]
pub struct Bench {
    /// What to send: a packet expression (docs/expressions.md). Default: UDP to port 7 between addresses of 198.18.0.0/15,
    /// as RFC 2544 has it, with the Ethernet addresses of the ports (behind a router: see --gateway).
    #[arg(value_name = "WHAT")]
    pub what: Option<String>,
    #[command(flatten)]
    pub by_plugin: ByPlugin,
    /// Send on this interface (IFACE, or IFACE@NAMESPACE). For several pairs of ports give --on and --measure once for
    /// each.
    #[arg(long = "on", value_name = "IFACE", conflicts_with = "lab", value_delimiter = ',')]
    pub interface: Vec<String>,
    /// Measure on this interface what arrives.
    #[arg(long, value_name = "IFACE", conflicts_with = "lab", value_delimiter = ',')]
    pub measure: Vec<String>,
    /// Fully meshed traffic (RFC 2889): each --on sends to every other, in turns, and measures what is sent to it. The load is
    /// that of each port.
    #[arg(long, conflicts_with_all = ["measure", "both_ways", "lab_impair"])]
    pub mesh: bool,
    /// Send both ways at the same time: the load is that of each direction.
    #[arg(long)]
    pub both_ways: bool,
    /// What is sent on the way back. Default: as WHAT, with the addresses the other way round, if WHAT is left out too.
    #[arg(long, value_name = "WHAT", requires_all = ["both_ways", "what"])]
    pub back: Option<String>,
    /// The device is a router, with this Ethernet address at the sending port (of each pair).
    #[arg(long, value_name = "MAC", conflicts_with = "what")]
    pub gateway: Vec<Written<Mac>>,
    #[command(flatten)]
    pub lab: OwnLab,
    /// Ports of the device in the lab, 3 to 16, each with an interface of ours: in a mesh (default: 4), or two and two of
    /// them in pairs.
    #[arg(long, value_name = "N", requires = "lab", conflicts_with = "lab_impair")]
    pub ports: Option<u32>,
    /// Frame sizes to test one after the other, the FCS counted: 64, 64,512,1518, rfc2544 (the seven of RFC 2544), imix, or
    /// a mix (64:7,1518:1) or genome (aaafg) as in `send`.
    #[arg(long, value_name = "SIZES", default_value = "64")]
    pub size: String,
    /// Key of all random values of the frames.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Send nothing before a trial that would teach a switch where the addresses are.
    #[arg(long)]
    pub no_learning: bool,
    /// Send the trial's load for so long before it, unmeasured.
    #[arg(long, value_name = "TIME")]
    pub warm_up: Option<Written<Duration>>,
    /// Do a trial that failed with little loss again, this many times at most: in a lab, where the device shares this
    /// machine. One that the sender fell short of, or was held up in, four times as often, everywhere.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub retries: u32,
    /// Send like any other program. Default: before all ordinary tasks of this machine (SCHED_FIFO), because a sender that
    /// others hold up offers another load than was asked for.
    #[arg(long)]
    pub no_real_time: bool,
    #[command(flatten)]
    pub through: Through,
    /// How to measure: xdp (native), xdp-generic, packet (a packet socket), or the best that is possible.
    #[arg(long, value_name = "HOW", default_value = "auto", value_parser = word::<How>())]
    pub meter: How,
    /// Who times arrivals: hardware, software, or auto: the hardware where it stamps all frames now (docs/measuring.md).
    #[arg(long, value_name = "WHO", default_value = "auto", value_parser = word::<Timestamps>())]
    pub timestamps: Timestamps,
}

#[derive(Debug, Args)]
pub struct Trial {
    #[command(flatten)]
    pub bench: Bench,
    /// The load of each sending port: 100kpps, 1gbps, 40%.
    #[arg(long, value_name = "RATE")]
    pub rate: Written<Rate>,
    /// Send for this long.
    #[arg(long, alias = "trial-duration", value_name = "TIME", default_value = "10s")]
    pub duration: Written<Duration>,
    /// What it has to keep to pass: loss=0.1%, p99=50us (also p50, p90, p99.9, max, pdv, ipdv, jitter), reorder=0%; several
    /// with commas.
    #[arg(long, value_name = "LIMITS", default_value = "loss=0%")]
    pub goal: String,
    /// Show what latency is left when this is taken off: `device` (the lab's device of --lab-impair, idle; then the
    /// default), `cable` (a lab's bare cable on this machine), a time (12us), or an earlier result with a cable in the
    /// device's place.
    #[arg(long, value_name = "WHAT")]
    pub floor: Option<String>,
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
    Throughput(Throughput),
    /// Latency at the throughput or at given loads (RFC 2544, 26.2; RFC 8219, 7.2 and 7.3).
    Latency(Latency),
    /// Frame loss at loads from the greatest downwards (RFC 2544, 26.3).
    Loss(LossCurve),
    /// The longest burst at the highest rate that is forwarded whole, and the buffer behind it (RFC 9004).
    Burst(Burst),
    /// How long the device loses frames after an overload has ended (RFC 2544, 26.5).
    Recovery(Recovery),
    /// How long the device forwards nothing when it is reset (RFC 2544, 26.6).
    Reset(Reset),
    /// One load for a long time.
    Soak(Soak),
    /// The highest rate of new flows that a probe (NetFlow, IPFIX) records without loss (RFC 6645).
    Flows(Box<Flows>),
    /// The smallest socket buffer that carries what a path does between two hosts, beside the kernel's own tuning.
    SocketBuffer(Box<SocketBuffer>),
    /// The highest rate of transactions between two hosts whose latency stays below a bound.
    Transactions(Box<Transactions>),
}

/// A search that shares nothing with the others.
enum Own {
    Flows(Box<Flows>),
    Between(Box<(spec::EndpointSearch, Option<PathBuf>, Output)>),
}

/// What all searches share.
#[derive(Debug, Clone, Args)]
pub struct Common {
    #[command(flatten)]
    pub bench: Bench,
    /// Offer no more than this to each port. Default: what the link carries, or where it states no speed, what the sender
    /// can do.
    #[arg(long, value_name = "RATE")]
    pub max: Option<Written<Rate>>,
    /// Offer no less than this. Default: a thousandth of the greatest.
    #[arg(long, value_name = "RATE")]
    pub min: Option<Written<Rate>>,
    /// Length of a trial. Default: as the standards say; in a lab, a few seconds.
    #[arg(long, value_name = "TIME")]
    pub trial_duration: Option<Written<Duration>>,
    /// Go on with the search that this result (a folder of --report, its result.json, or what --json printed) is of, at its
    /// first trial that was not done. All else is as it was asked for then.
    #[arg(long = "continue", value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub resume: Option<PathBuf>,
    #[command(flatten)]
    pub output: Output,
}

#[derive(Debug, Args)]
pub struct Throughput {
    #[command(flatten)]
    pub common: Common,
    #[command(flatten)]
    pub finding: Finding,
    /// What is varied.
    #[arg(long, value_name = "AXIS", default_value = "rate", value_parser = explained_word::<Axis>())]
    pub axis: Axis,
    /// The rate, when something else is varied.
    #[arg(long, value_name = "RATE")]
    pub rate: Option<Written<Rate>>,
    /// The most that is tried of --axis flows.
    #[arg(long, value_name = "N", default_value = "60k")]
    pub max_flows: Written<u64>,
    /// The longest that is tried of --axis burst. Default: a tenth of what a trial sends.
    #[arg(long, value_name = "FRAMES")]
    pub max_burst: Option<Written<u64>>,
}

/// How a throughput is found.
#[derive(Debug, Clone, Args)]
pub struct Finding {
    /// How to search.
    #[arg(long, value_name = "METHOD", default_value = "mlrsearch", value_parser = explained_word::<Method>())]
    pub method: Method,
    /// What a load has to keep to pass: loss=0.1%, p99=50us (also p50, p90, p99.9, max; pdv and ipdv of RFC 8219, jitter),
    /// reorder=0%, several with commas; of MLRsearch also exceed=50% (the share of time that may be bad), sum=21s (time
    /// until a load is decided) and trial=1s. ndr and pdr are FD.io CSIT's: loss=0% and loss=0.5%, in 21 trials of 1 s of
    /// which half may be worse. Give it several times for several goals of MLRsearch.
    #[arg(long, value_name = "LIMITS", default_value = "loss=0%")]
    pub goal: Vec<String>,
    /// How near the highest load that passes and the lowest that fails must come, relative to the load. Default: 0.25%; where
    /// this machine is too busy to judge loads so near to each other, 1%, which the result says then.
    #[arg(long, value_name = "SHARE")]
    pub precision: Option<Written<Ratio>>,
    /// Length of bisection's trials until the rate is found, which is then tried at full length. Default: full length.
    #[arg(long, value_name = "TIME")]
    pub short: Option<Written<Duration>>,
}

#[derive(Debug, Args)]
pub struct Latency {
    #[command(flatten)]
    pub common: Common,
    #[command(flatten)]
    pub finding: Finding,
    /// Measure at this load; several times for several loads. Default: the throughput, which is searched first.
    #[arg(long, value_name = "RATE")]
    pub rate: Vec<Written<Rate>>,
    /// Show what latency is left when this is taken off: `device` (the lab's device of --lab-impair, idle; then the
    /// default), `cable` (a lab's bare cable on this machine), a time (12us), or an earlier result with a cable in the
    /// device's place.
    #[arg(long, value_name = "WHAT")]
    pub floor: Option<String>,
    /// Trials at each load. Default: 20, in a lab 3.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub repetitions: Option<u32>,
}

#[derive(Debug, Args)]
pub struct LossCurve {
    #[command(flatten)]
    pub common: Common,
    /// How much less each step is, of the greatest load.
    #[arg(long, value_name = "SHARE", default_value = "10%")]
    pub step: Written<Ratio>,
}

#[derive(Debug, Args)]
pub struct Burst {
    #[command(flatten)]
    pub common: Common,
    #[command(flatten)]
    pub finding: Finding,
    /// The device's throughput, for the buffer's time. Default: it is searched first.
    #[arg(long, value_name = "RATE")]
    pub throughput: Option<Written<Rate>>,
    /// Bursts of up to so many frames. Default: what is sent in 2 s at the highest rate.
    #[arg(long, value_name = "FRAMES")]
    pub max_burst: Option<Written<u64>>,
    /// Least step between lengths of bursts.
    #[arg(long, value_name = "FRAMES", default_value = "1")]
    pub step: Written<u64>,
    /// Independent searches. Default: 50, in a lab 3.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub repetitions: Option<u32>,
}

#[derive(Debug, Args)]
pub struct Recovery {
    #[command(flatten)]
    pub common: Common,
    #[command(flatten)]
    pub finding: Finding,
    /// The device's throughput, of which 110 % are an overload. Default: it is searched first.
    #[arg(long, value_name = "RATE")]
    pub throughput: Option<Written<Rate>>,
    /// Trials. Default: 20, in a lab 3.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub repetitions: Option<u32>,
}

#[derive(Debug, Args)]
pub struct Reset {
    #[command(flatten)]
    pub common: Common,
    #[command(flatten)]
    pub finding: Finding,
    /// The load during the reset. Default: the throughput, which is searched first.
    #[arg(long, value_name = "RATE")]
    pub rate: Option<Written<Rate>>,
    /// Run this (by sh -c) a second into each trial, to reset the device. In a lab it runs on the device, whose interfaces
    /// are dut0 and dut1. Default: you are asked to reset it.
    #[arg(long, value_name = "CMD")]
    pub command: Option<String>,
    /// Trials.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub repetitions: u32,
}

#[derive(Debug, Args)]
pub struct Soak {
    #[command(flatten)]
    pub common: Common,
    /// The load.
    #[arg(long, value_name = "RATE")]
    pub rate: Written<Rate>,
    /// What has to be kept throughout, as in `search throughput`.
    #[arg(long, value_name = "LIMITS", default_value = "loss=0%")]
    pub goal: String,
}

#[derive(Debug, Args)]
pub struct Flows {
    /// The port that flows are sent from, to what the probe meters (IFACE, or IFACE@NAMESPACE).
    #[arg(long = "on", value_name = "IFACE", conflicts_with = "lab", requires = "collect")]
    pub interface: Option<String>,
    /// Where the probe sends its records: they are received here, on this machine.
    #[arg(long, value_name = "ADDR:PORT", conflicts_with = "lab")]
    pub collect: Option<String>,
    /// Test a probe in a lab of its own: two hosts, the probe on one of them, gone when this ends.
    #[arg(long)]
    pub lab: bool,
    /// The probe in the lab, started anew for each trial: netdyno (its own), softflowd or pmacct. Default: netdyno.
    #[arg(long, value_name = "NAME", requires = "lab", value_parser = word::<UnderTest>())]
    pub probe: Option<UnderTest>,
    /// Another probe in the lab, run by sh -c in the foreground: {interface}, {collector}, {host}, {port}, {format} (5, 9, 10), {idle},
    /// {active} (in seconds) and {flows} are replaced.
    #[arg(long, value_name = "CMD", conflicts_with = "probe")]
    pub command: Option<String>,
    /// How a probe in the lab writes records: ipfix, 9, 5.
    #[arg(long, value_name = "FORMAT", default_value = "ipfix", requires = "lab", value_parser = word::<ExportFormat>())]
    pub format: ExportFormat,
    /// The probe's idle timeout; in the lab the probe is told so. Default: 1s in the lab, else 15s.
    #[arg(long, value_name = "TIME")]
    pub idle_timeout: Option<Written<Duration>>,
    /// The probe's active timeout; in the lab the probe is told so. Default: 1m in the lab, else 30m.
    #[arg(long, value_name = "TIME")]
    pub active_timeout: Option<Written<Duration>>,
    /// Flows that the probe's cache has room for; in the lab the probe is told so. Default: 4194304 in the lab, else not known.
    #[arg(long, value_name = "N")]
    pub cache: Option<Written<u64>>,
    /// Packets of each flow, one after the other. RFC 6645 has 1.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub packets_per_flow: u32,
    /// The order of the flows' keys: random (each once; the seed repeats it) or linear (one after the other).
    #[arg(long, value_name = "ORDER", default_value = "random", value_parser = word::<KeyOrder>())]
    pub order: KeyOrder,
    /// Try these rates of new flows (50kfps,100kfps), one trial each, instead of searching: the graph of flows recorded against
    /// flows offered.
    #[arg(long, alias = "rate", value_name = "RATES", value_delimiter = ',', conflicts_with_all = ["max", "min"])]
    pub rates: Vec<Written<Rate>>,
    /// Offer no more new flows per second than this (1mfps). Default: what the sender can do.
    #[arg(long, value_name = "RATE")]
    pub max: Option<Written<Rate>>,
    /// Offer no fewer than this. Default: a thousandth of the greatest.
    #[arg(long, value_name = "RATE")]
    pub min: Option<Written<Rate>>,
    /// How near the highest rate that passes and the lowest that fails must come, relative to the rate.
    #[arg(long, value_name = "SHARE", default_value = "2%")]
    pub precision: Written<Ratio>,
    /// Trials that must pass at the rate that was found.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    pub confirm: u32,
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
    pub through: Through,
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
    fn job(self) -> (spec::Search, Option<PathBuf>, Output) {
        let (spec::Through { engine, calibration, cores, tx_timestamps }, yes_disrupt) = self.through.parts();
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
        let flows = spec::Flows {
            probe: self.probe,
            command: self.command,
            collect: self.collect,
            format: self.format,
            idle_timeout: self.idle_timeout,
            active_timeout: self.active_timeout,
            cache: self.cache,
            packets_per_flow: Some(self.packets_per_flow),
            order: self.order,
            rates: self.rates,
            precision: Some(self.precision),
            confirm: Some(self.confirm),
        };
        let search = spec::Search {
            find: spec::Find::Flows(flows),
            bench,
            max: self.max,
            min: self.min,
            trial_duration: self.trial_duration,
            yes_disrupt,
        };
        (search, self.resume, self.output)
    }
}

impl Bench {
    /// As a job has it, and what it asks to be allowed.
    fn parts(self) -> (spec::Bench, Vec<String>) {
        let Bench {
            what,
            by_plugin,
            interface,
            measure,
            mesh,
            both_ways,
            back,
            gateway,
            lab,
            ports,
            size,
            seed,
            no_learning,
            warm_up,
            retries,
            no_real_time,
            through,
            meter,
            timestamps,
        } = self;
        let lab = lab.asked(ports);
        let (spec::Through { engine, calibration, cores, tx_timestamps }, yes_disrupt) = through.parts();
        let bench = spec::Bench {
            what,
            plugin: by_plugin.job(),
            links: super::job::links(interface, measure),
            pattern: super::job::pattern(mesh),
            both_ways,
            back,
            gateway,
            lab,
            size: Some(size),
            seed,
            no_learning,
            warm_up,
            retries: Some(retries),
            no_real_time,
            engine,
            calibration,
            cores,
            tx_timestamps,
            how: meter,
            timestamps,
        };
        (bench, yes_disrupt)
    }
}

impl From<Finding> for spec::Finding {
    fn from(Finding { method, goal, precision, short }: Finding) -> spec::Finding {
        spec::Finding { method, goals: goal, precision, short }
    }
}

impl Trial {
    /// The job, and where its result goes.
    pub fn job(self) -> (spec::Job, Output) {
        let Trial { bench, rate, duration, goal, floor, output } = self;
        let (bench, yes_disrupt) = bench.parts();
        let job = spec::Trial { bench, rate, duration: Some(duration), goal: Some(goal), floor, yes_disrupt };
        (job.into(), output)
    }
}

impl Kind {
    /// What is sent and where, of searches that need frames.
    pub fn bench(&mut self) -> Option<&mut Bench> {
        let common = match self {
            Kind::Throughput(Throughput { common, .. })
            | Kind::Latency(Latency { common, .. })
            | Kind::Loss(LossCurve { common, .. })
            | Kind::Burst(Burst { common, .. })
            | Kind::Recovery(Recovery { common, .. })
            | Kind::Reset(Reset { common, .. })
            | Kind::Soak(Soak { common, .. }) => common,
            Kind::Flows(_) | Kind::SocketBuffer(_) | Kind::Transactions(_) => return None,
        };
        Some(&mut common.bench)
    }

    /// What is searched for, and what all searches of a device share but the one for flows.
    fn parts(self) -> Result<(spec::Find, Common), Own> {
        use spec::Find;
        Ok(match self {
            Kind::Throughput(Throughput { common, finding, axis, rate, max_flows, max_burst }) => {
                let (finding, max_flows) = (finding.into(), Some(max_flows));
                (Find::Throughput(spec::Throughput { finding, axis, rate, max_flows, max_burst }), common)
            }
            Kind::Latency(Latency { common, finding, rate, floor, repetitions }) => {
                let finding = finding.into();
                (Find::Latency(spec::Latency { finding, rates: rate, floor, repetitions }), common)
            }
            Kind::Loss(LossCurve { common, step }) => {
                (Find::Loss(spec::LossCurve { step: Some(step) }), common)
            }
            Kind::Burst(Burst { common, finding, throughput, max_burst, step, repetitions }) => {
                let (finding, step) = (finding.into(), Some(step));
                (Find::Burst(spec::Burst { finding, throughput, max_burst, step, repetitions }), common)
            }
            Kind::Recovery(Recovery { common, finding, throughput, repetitions }) => {
                let finding = finding.into();
                (Find::Recovery(spec::Recovery { finding, throughput, repetitions }), common)
            }
            Kind::Reset(Reset { common, finding, rate, command, repetitions }) => {
                let (finding, repetitions) = (finding.into(), Some(repetitions));
                (Find::Reset(spec::Reset { finding, rate, command, repetitions }), common)
            }
            Kind::Soak(Soak { common, rate, goal }) => {
                (Find::Soak(spec::Soak { rate, goal: Some(goal) }), common)
            }
            Kind::Flows(flows) => return Err(Own::Flows(flows)),
            Kind::SocketBuffer(search) => return Err(Own::Between(Box::new(search.job()))),
            Kind::Transactions(search) => return Err(Own::Between(Box::new(search.job()))),
        })
    }

    /// The job, the result to go on from, and where the result goes.
    pub fn job(self) -> (spec::Job, Option<PathBuf>, Output) {
        let (find, common) = match self.parts() {
            Ok(parts) => parts,
            Err(Own::Flows(flows)) => {
                let (search, resume, output) = flows.job();
                return (search.into(), resume, output);
            }
            Err(Own::Between(between)) => {
                let (search, resume, output) = *between;
                return (search.into(), resume, output);
            }
        };
        let Common { bench, max, min, trial_duration, resume, output } = common;
        let (bench, yes_disrupt) = bench.parts();
        let search = spec::Search { find, bench, max, min, trial_duration, yes_disrupt };
        (search.into(), resume, output)
    }
}
