//! `netdyno trial` and `netdyno search`.

use super::lab::Dut;
use super::{Meter, Output, Through, Timestamps};
use crate::trials::floor::Asked;
use ::lab::Loss;
use clap::{Args, Subcommand, ValueEnum, ValueHint};
use std::path::PathBuf;
use std::time::Duration;
use traffic::Rate;
use traffic::rate::{parse_count, parse_duration};

/// Which ports, which frames: what trials and searches share.
#[derive(Debug, Clone, Args)]
pub struct Bench {
    /// What to send: a packet expression (docs/expressions.md). Default: UDP to port 7 between addresses of 198.18.0.0/15,
    /// as RFC 2544 has it, with the Ethernet addresses of the ports (behind a router: see --gateway).
    #[arg(value_name = "WHAT")]
    pub what: Option<String>,
    /// Send on this interface (IFACE, or IFACE@NAMESPACE). For several pairs of ports give --on and --measure once for
    /// each.
    #[arg(long = "on", value_name = "IFACE", conflicts_with = "lab")]
    pub interface: Vec<String>,
    /// Measure on this interface what arrives.
    #[arg(long, value_name = "IFACE", conflicts_with = "lab")]
    pub measure: Vec<String>,
    /// Send both ways at the same time: the load is that of each direction.
    #[arg(long)]
    pub both_ways: bool,
    /// What is sent on the way back. Default: as WHAT, with the addresses the other way round, if WHAT is left out too.
    #[arg(long, value_name = "WHAT", requires_all = ["both_ways", "what"])]
    pub back: Option<String>,
    /// The device is a router, with this Ethernet address at the sending port (of each pair).
    #[arg(long, value_name = "MAC", conflicts_with = "what")]
    pub gateway: Vec<wire::Mac>,
    /// Test a device in a lab of its own: two hosts and Linux between them, gone when this ends (docs/lab.md).
    #[arg(long)]
    pub lab: bool,
    /// What stands in the lab: a bridge or a router. Default: a router if it has a limit or a loss, else one cable.
    #[arg(long, value_name = "KIND", requires = "lab")]
    pub lab_dut: Option<Dut>,
    /// The most that the device in the lab forwards (200mbps; 200mbps-l1 on the wire).
    #[arg(long, value_name = "RATE", requires = "lab")]
    pub lab_bottleneck: Option<Rate>,
    /// What waits before that bottleneck, in bytes. Default: 5 ms of its rate.
    #[arg(long, value_name = "BYTES", value_parser = parse_count, requires = "lab_bottleneck")]
    pub lab_queue: Option<u64>,
    /// Tokens that the bottleneck saves up, in bytes. Default: 5 ms of its rate.
    #[arg(long, value_name = "BYTES", value_parser = parse_count, requires = "lab_bottleneck")]
    pub lab_burst: Option<u64>,
    /// What the device in the lab loses, evenly: 1%, 1/1000.
    #[arg(long, value_name = "SHARE", requires = "lab")]
    pub lab_loss: Option<Loss>,
    /// Put a device with known faults into the lab: what `netdyno impair` does, its options written without dashes
    /// ('delay 500us loss 1%', docs/impair.md).
    #[arg(long, value_name = "FAULTS", requires = "lab", value_parser = super::impair::words, conflicts_with_all = ["lab_dut", "lab_bottleneck", "lab_loss"])]
    pub lab_impair: Option<super::impair::Faults>,
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
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub warm_up: Option<Duration>,
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
    #[arg(long, value_name = "HOW", default_value = "auto")]
    pub meter: Meter,
    /// Who times arrivals: hardware, software, or auto: the hardware where it stamps all frames now (docs/measuring.md).
    #[arg(long, value_name = "WHO", default_value = "auto")]
    pub timestamps: Timestamps,
}

#[derive(Debug, Args)]
pub struct Trial {
    #[command(flatten)]
    pub bench: Bench,
    /// The load of each sending port: 100kpps, 1gbps, 40%.
    #[arg(long, value_name = "RATE")]
    pub rate: Rate,
    /// Send for this long.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "10s")]
    pub duration: Duration,
    /// What it has to keep to pass: loss=0.1%, p99=50us (also p50, p90, p99.9, max, pdv, ipdv, jitter), reorder=0%; several
    /// with commas.
    #[arg(long, value_name = "LIMITS", default_value = "loss=0%")]
    pub goal: String,
    /// Show what latency is left when this is taken off: `device` (the lab's device of --lab-impair, idle; then the
    /// default), `cable` (a lab's bare cable on this machine), a time (12us), or an earlier result with a cable in the
    /// device's place.
    #[arg(long, value_name = "WHAT")]
    pub floor: Option<Asked>,
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
}

/// What all searches share.
#[derive(Debug, Clone, Args)]
pub struct Common {
    #[command(flatten)]
    pub bench: Bench,
    /// Offer no more than this to each port. Default: what the link carries, or where it states no speed, what the sender
    /// can do.
    #[arg(long, value_name = "RATE")]
    pub max: Option<Rate>,
    /// Offer no less than this. Default: a thousandth of the greatest.
    #[arg(long, value_name = "RATE")]
    pub min: Option<Rate>,
    /// Length of a trial. Default: as the standards say; in a lab, a few seconds.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub trial_duration: Option<Duration>,
    /// Go on with the search that this result (a folder of --report, its result.json, or what --json printed) is of, at its
    /// first trial that was not done. All else is as it was asked for then.
    #[arg(long = "continue", value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub resume: Option<PathBuf>,
    #[command(flatten)]
    pub output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Method {
    /// Several goals at once, in few and mostly short trials (draft-ietf-bmwg-mlrsearch).
    Mlrsearch,
    /// Halving, each trial of full length (RFC 2544).
    Bisect,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Axis {
    /// The rate, in frames per second.
    Rate,
    /// The number of flows, at --rate: the highest that passes.
    Flows,
    /// The frame size, at --rate: in bits the least that passes, in frames the greatest.
    Size,
    /// The length of bursts sent at the greatest rate, --rate on average: the longest that passes (RFC 2544, 21).
    Burst,
}

#[derive(Debug, Args)]
pub struct Throughput {
    #[command(flatten)]
    pub common: Common,
    #[command(flatten)]
    pub finding: Finding,
    /// What is varied.
    #[arg(long, value_name = "AXIS", default_value = "rate")]
    pub axis: Axis,
    /// The rate, when something else is varied.
    #[arg(long, value_name = "RATE")]
    pub rate: Option<Rate>,
    /// The most that is tried of --axis flows.
    #[arg(long, value_name = "N", value_parser = parse_count, default_value = "60k")]
    pub max_flows: u64,
    /// The longest that is tried of --axis burst. Default: a tenth of what a trial sends.
    #[arg(long, value_name = "FRAMES", value_parser = parse_count)]
    pub max_burst: Option<u64>,
}

/// How a throughput is found.
#[derive(Debug, Clone, Args)]
pub struct Finding {
    /// How to search.
    #[arg(long, value_name = "METHOD", default_value = "mlrsearch")]
    pub method: Method,
    /// What a load has to keep to pass: loss=0.1%, p99=50us (also p50, p90, p99.9, max; pdv and ipdv of RFC 8219, jitter),
    /// reorder=0%, several with commas; of MLRsearch also exceed=50% (the share of time that may be bad), sum=21s (time
    /// until a load is decided) and trial=1s. ndr and pdr are FD.io CSIT's: loss=0% and loss=0.5%, in 21 trials of 1 s of
    /// which half may be worse. Give it several times for several goals of MLRsearch.
    #[arg(long, value_name = "LIMITS", default_value = "loss=0%")]
    pub goal: Vec<String>,
    /// How near the highest load that passes and the lowest that fails must come, relative to the load.
    #[arg(long, value_name = "SHARE", default_value = "0.25%", value_parser = crate::cli::search::share)]
    pub precision: f64,
    /// Length of bisection's trials until the rate is found, which is then tried at full length. Default: full length.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub short: Option<Duration>,
}

#[derive(Debug, Args)]
pub struct Latency {
    #[command(flatten)]
    pub common: Common,
    #[command(flatten)]
    pub finding: Finding,
    /// Measure at this load; several times for several loads. Default: the throughput, which is searched first.
    #[arg(long, value_name = "RATE")]
    pub rate: Vec<Rate>,
    /// Show what latency is left when this is taken off: `device` (the lab's device of --lab-impair, idle; then the
    /// default), `cable` (a lab's bare cable on this machine), a time (12us), or an earlier result with a cable in the
    /// device's place.
    #[arg(long, value_name = "WHAT")]
    pub floor: Option<Asked>,
    /// Trials at each load. Default: 20, in a lab 3.
    #[arg(long, value_name = "N")]
    pub repetitions: Option<u32>,
}

#[derive(Debug, Args)]
pub struct LossCurve {
    #[command(flatten)]
    pub common: Common,
    /// How much less each step is, of the greatest load.
    #[arg(long, value_name = "SHARE", default_value = "10%", value_parser = crate::cli::search::share)]
    pub step: f64,
}

#[derive(Debug, Args)]
pub struct Burst {
    #[command(flatten)]
    pub common: Common,
    #[command(flatten)]
    pub finding: Finding,
    /// The device's throughput, for the buffer's time. Default: it is searched first.
    #[arg(long, value_name = "RATE")]
    pub throughput: Option<Rate>,
    /// Bursts of up to so many frames. Default: what is sent in 2 s at the highest rate.
    #[arg(long, value_name = "FRAMES", value_parser = parse_count)]
    pub max_burst: Option<u64>,
    /// Least step between lengths of bursts.
    #[arg(long, value_name = "FRAMES", value_parser = parse_count, default_value = "1")]
    pub step: u64,
    /// Independent searches. Default: 50, in a lab 3.
    #[arg(long, value_name = "N")]
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
    pub throughput: Option<Rate>,
    /// Trials. Default: 20, in a lab 3.
    #[arg(long, value_name = "N")]
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
    pub rate: Option<Rate>,
    /// Run this (by sh -c) a second into each trial, to reset the device. In a lab it runs on the device, whose interfaces
    /// are dut0 and dut1. Default: you are asked to reset it.
    #[arg(long, value_name = "CMD")]
    pub command: Option<String>,
    /// Trials.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub repetitions: u32,
}

#[derive(Debug, Args)]
pub struct Soak {
    #[command(flatten)]
    pub common: Common,
    /// The load.
    #[arg(long, value_name = "RATE")]
    pub rate: Rate,
    /// What has to be kept throughout, as in `search throughput`.
    #[arg(long, value_name = "LIMITS", default_value = "loss=0%")]
    pub goal: String,
}

impl Kind {
    /// What it shares with the others.
    pub fn common(&self) -> &Common {
        match self {
            Kind::Throughput(args) => &args.common,
            Kind::Latency(args) => &args.common,
            Kind::Loss(args) => &args.common,
            Kind::Burst(args) => &args.common,
            Kind::Recovery(args) => &args.common,
            Kind::Reset(args) => &args.common,
            Kind::Soak(args) => &args.common,
        }
    }

    /// The same, to be changed.
    pub fn common_mut(&mut self) -> &mut Common {
        match self {
            Kind::Throughput(args) => &mut args.common,
            Kind::Latency(args) => &mut args.common,
            Kind::Loss(args) => &mut args.common,
            Kind::Burst(args) => &mut args.common,
            Kind::Recovery(args) => &mut args.common,
            Kind::Reset(args) => &mut args.common,
            Kind::Soak(args) => &mut args.common,
        }
    }

    /// As it is written.
    pub fn name(&self) -> &'static str {
        match self {
            Kind::Throughput(_) => "throughput",
            Kind::Latency(_) => "latency",
            Kind::Loss(_) => "loss",
            Kind::Burst(_) => "burst",
            Kind::Recovery(_) => "recovery",
            Kind::Reset(_) => "reset",
            Kind::Soak(_) => "soak",
        }
    }
}

/// A share: `0.5%`, or `1/200`.
pub fn share(text: &str) -> Result<f64, String> {
    let bad = || format!("`{text}` is not a share: write 0.5%");
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|value| value.is_finite());
    let value = match (text.strip_suffix('%'), text.split_once('/')) {
        (Some(percent), _) => number(percent).map(|percent| percent / 100.0),
        (None, Some((part, of))) => number(part).zip(number(of)).map(|(part, of)| part / of),
        (None, None) => None,
    };
    value.filter(|value| (0.0..=1.0).contains(value)).ok_or_else(bad)
}
