//! Jobs that try a device: one load, or a search.

use crate::check::{self, Contradiction};
use crate::consent::Consent;
use crate::cores::Cores;
use crate::flows::Flows;
use crate::kind::Kind;
use crate::listen::{How, Timestamps};
use crate::middle::Faults;
use crate::no;
use crate::plugin::Plugin;
use crate::transmit::{Engine, Link, Pattern, Stamps, Through};
use crate::words::words;
use crate::written::{Ratio, Written};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;
use traffic::Rate;
use wire::Mac;

words! {
    /// What stands in a lab.
    Dut {
        /// Linux as a bridge.
        Bridge = "bridge",
        /// Linux as an IPv4 router.
        Router = "router",
    }
}

/// A lab of the job's own: two hosts and a device between them, gone when it ends.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lab {
    /// What stands in it. Default: a router if it has a limit or a loss, else one cable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dut: Option<Dut>,
    /// The most that the device forwards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bottleneck: Option<Written<Rate>>,
    /// What waits before that, in bytes. Default: 5 ms of its rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Written<u64>>,
    /// Tokens that it saves up, in bytes. Default: 5 ms of its rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<Written<u64>>,
    /// What the device loses, evenly: 1%, 1/1000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<String>,
    /// A device with these faults instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub impair: Option<Faults>,
    /// A device with so many ports, 3 to 16, each with an interface of ours: port0, port1, ... Default: two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ports: Option<u32>,
}

/// Which ports, which frames: what trials and searches share.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bench {
    /// A packet expression. Default: UDP to port 7 between addresses of 198.18.0.0/15, as RFC 2544 has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
    /// Instead of that: a plugin says what the frames are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plugin: Option<Plugin>,
    /// The pairs of ports: where frames leave, and where they are measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Link>,
    /// Which of the ports send to which. In a mesh the load is that of each, and {src_ip} and {dst_ip} in `what` stand for the
    /// addresses of ports.
    #[serde(default, skip_serializing_if = "Pattern::is_pairs")]
    pub pattern: Pattern,
    /// Both ways at the same time: the load is that of each.
    #[serde(default, skip_serializing_if = "no")]
    pub both_ways: bool,
    /// What is sent on the way back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub back: Option<String>,
    /// The device is a router, with this Ethernet address at the sending port of each pair.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gateway: Vec<Written<Mac>>,
    /// In a lab of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lab: Option<Lab>,
    /// Frame sizes to test one after the other, the FCS counted: 64, 64,512,1518, rfc2544, imix, a mix or genome.
    /// Default: 64.
    #[serde(
        default,
        deserialize_with = "crate::written::text_or_number",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(extend("type" = ["string", "integer"]))]
    pub size: Option<String>,
    /// Key of all random values of the frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Send nothing before a trial that would teach a switch where the addresses are.
    #[serde(default, skip_serializing_if = "no")]
    pub no_learning: bool,
    /// Send the trial's load for so long before it, unmeasured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<Written<Duration>>,
    /// Do a trial that failed with little loss again, so often at most. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// Send like any other program, not before all ordinary tasks.
    #[serde(default, skip_serializing_if = "no")]
    pub no_real_time: bool,
    /// How frames leave.
    #[serde(default)]
    pub engine: Engine,
    /// What is fastest here, as `netdyno doctor` measured it and wrote into this file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration: Option<PathBuf>,
    /// How many cores send (4), or which CPUs (0-3,6). Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cores: Option<Written<Cores>>,
    /// Frames are stamped as they leave, up to a thousand a second, by whom.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx_timestamps: Option<Stamps>,
    /// How they are measured.
    #[serde(default)]
    pub how: How,
    /// Who times arrivals.
    #[serde(default)]
    pub timestamps: Timestamps,
}

impl Bench {
    /// Frame sizes to test one after the other.
    pub fn size(&self) -> &str {
        self.size.as_deref().unwrap_or("64")
    }

    /// How often a trial that failed with little loss is done again.
    pub fn retries(&self) -> u32 {
        self.retries.unwrap_or(1)
    }

    /// Through what.
    pub fn through(&self) -> Through {
        Through {
            engine: self.engine,
            calibration: self.calibration.clone(),
            cores: self.cores.clone(),
            tx_timestamps: self.tx_timestamps,
        }
    }
}

/// One load, and whether the device keeps to a goal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Trial {
    /// Ports and frames.
    #[serde(default)]
    pub bench: Bench,
    /// The load of each sending port.
    pub rate: Written<Rate>,
    /// For so long. Default: 10s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<Written<Duration>>,
    /// What has to be kept: loss=0.1%,p99=50us. Default: loss=0%.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// What is taken off latencies: device, cable, a time, or an earlier result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub floor: Option<String>,
    /// Interfaces that may be used although they carry the default route or a login.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub yes_disrupt: Vec<String>,
}

impl Trial {
    /// For how long.
    pub fn duration(&self) -> Duration {
        self.duration.as_deref().copied().unwrap_or(Duration::from_secs(10))
    }

    /// What has to be kept.
    pub fn goal(&self) -> &str {
        self.goal.as_deref().unwrap_or(NO_LOSS)
    }
}

/// The goal of who names none.
const NO_LOSS: &str = "loss=0%";

/// What the device can do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// What is searched for.
    pub find: Find,
    /// Ports and frames.
    #[serde(default)]
    pub bench: Bench,
    /// Offer no more than this to each port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<Written<Rate>>,
    /// Offer no less than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<Written<Rate>>,
    /// Length of a trial. Default: as the standards say; in a lab, a few seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trial_duration: Option<Written<Duration>>,
    /// Interfaces that may be used although they carry the default route or a login.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub yes_disrupt: Vec<String>,
}

/// What is searched for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Find {
    /// The highest rate that is forwarded within limits.
    Throughput(Throughput),
    /// Latency at the throughput or at given loads.
    Latency(Latency),
    /// Loss at loads from the greatest downwards.
    Loss(LossCurve),
    /// The longest burst that is forwarded whole.
    Burst(Burst),
    /// How long frames are lost after an overload.
    Recovery(Recovery),
    /// How long nothing is forwarded when the device is reset.
    Reset(Reset),
    /// One load for a long time.
    Soak(Soak),
    /// The highest rate of new flows that a probe records without loss.
    Flows(Flows),
}

words! {
    /// How to search.
    Method {
        /// Several goals at once, in few and mostly short trials (draft-ietf-bmwg-mlrsearch).
        Mlrsearch = "mlrsearch",
        /// Halving, each trial of full length (RFC 2544).
        Bisect = "bisect",
    }
}

words! {
    /// What is varied.
    Axis {
        /// The rate, in frames per second.
        Rate = "rate",
        /// The number of flows, at a rate.
        Flows = "flows",
        /// The frame size, at a rate.
        Size = "size",
        /// The length of bursts, at a rate on average.
        Burst = "burst",
    }
}

/// How a throughput is found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// How to search.
    #[serde(default)]
    pub method: Method,
    /// What a load has to keep to pass; several are several goals. Default: loss=0%.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub goals: Vec<String>,
    /// How near the highest load that passes and the lowest that fails must come. Default: 0.25%; where this machine is too busy
    /// to judge loads so near to each other, 1%.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precision: Option<Written<Ratio>>,
    /// Length of bisection's trials until the rate is found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short: Option<Written<Duration>>,
}

impl Finding {
    /// What a load has to keep to pass.
    pub fn goals(&self) -> Vec<&str> {
        if self.goals.is_empty() { vec![NO_LOSS] } else { self.goals.iter().map(String::as_str).collect() }
    }

    /// How near the bounds must come, relative to the load.
    pub fn precision(&self) -> f64 {
        self.precision.as_ref().map_or(0.0025, |precision| precision.0)
    }

    /// The same where loads so near to each other could not be judged.
    pub fn precision_at_least(&self) -> f64 {
        self.precision.as_ref().map_or(0.01, |precision| precision.0)
    }
}

impl Find {
    /// As it is written.
    pub fn name(&self) -> &'static str {
        match self {
            Find::Throughput(_) => "throughput",
            Find::Latency(_) => "latency",
            Find::Loss(_) => "loss",
            Find::Burst(_) => "burst",
            Find::Recovery(_) => "recovery",
            Find::Reset(_) => "reset",
            Find::Soak(_) => "soak",
            Find::Flows(_) => "flows",
        }
    }

    /// How often it is measured, where that is said.
    pub(crate) fn repetitions(&self) -> Option<u32> {
        match self {
            Find::Latency(latency) => latency.repetitions,
            Find::Burst(burst) => burst.repetitions,
            Find::Recovery(recovery) => recovery.repetitions,
            Find::Reset(reset) => reset.repetitions,
            Find::Throughput(_) | Find::Loss(_) | Find::Soak(_) | Find::Flows(_) => None,
        }
    }
}

/// The highest rate that is forwarded within limits.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Throughput {
    /// How it is found.
    #[serde(default)]
    pub finding: Finding,
    /// What is varied.
    #[serde(default)]
    pub axis: Axis,
    /// The rate, when something else is varied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Written<Rate>>,
    /// The most flows that are tried. Default: 60k.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_flows: Option<Written<u64>>,
    /// The longest burst that is tried. Default: a tenth of what a trial sends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_burst: Option<Written<u64>>,
}

/// Latency at the throughput or at given loads.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Latency {
    /// How the throughput is found, if no rates are given.
    #[serde(default)]
    pub finding: Finding,
    /// At these loads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<Written<Rate>>,
    /// What is taken off latencies: device, cable, a time, or an earlier result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub floor: Option<String>,
    /// Trials at each load. Default: 20, in a lab 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repetitions: Option<u32>,
}

/// Loss at loads from the greatest downwards.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LossCurve {
    /// How much less each step is, of the greatest load. Default: 10%.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<Written<Ratio>>,
}

/// The longest burst that is forwarded whole.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Burst {
    /// How the throughput is found, if it is not given.
    #[serde(default)]
    pub finding: Finding,
    /// The device's throughput, for the buffer's time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput: Option<Written<Rate>>,
    /// Bursts of up to so many frames. Default: what is sent in 2 s at the highest rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_burst: Option<Written<u64>>,
    /// Least step between lengths of bursts. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<Written<u64>>,
    /// Independent searches. Default: 50, in a lab 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repetitions: Option<u32>,
}

/// How long frames are lost after an overload.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Recovery {
    /// How the throughput is found, if it is not given.
    #[serde(default)]
    pub finding: Finding,
    /// The device's throughput, of which 110 % are an overload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput: Option<Written<Rate>>,
    /// Trials. Default: 20, in a lab 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repetitions: Option<u32>,
}

/// How long nothing is forwarded when the device is reset.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reset {
    /// How the throughput is found, if no rate is given.
    #[serde(default)]
    pub finding: Finding,
    /// The load during the reset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Written<Rate>>,
    /// What resets the device, run by a shell. It is never run because a file says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Trials. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repetitions: Option<u32>,
}

/// One load for a long time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Soak {
    /// The load.
    pub rate: Written<Rate>,
    /// What has to be kept throughout. Default: loss=0%.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
}

impl Throughput {
    /// The most flows that are tried.
    pub fn max_flows(&self) -> u64 {
        self.max_flows.as_deref().copied().unwrap_or(60_000)
    }
}

impl LossCurve {
    /// How much less each step is.
    pub fn step(&self) -> f64 {
        self.step.as_ref().map_or(0.1, |step| step.0)
    }
}

impl Burst {
    /// Least step between lengths of bursts.
    pub fn step(&self) -> u64 {
        self.step.as_deref().copied().unwrap_or(1)
    }
}

impl Soak {
    /// What has to be kept throughout.
    pub fn goal(&self) -> &str {
        self.goal.as_deref().unwrap_or(NO_LOSS)
    }
}

impl Kind for Trial {
    fn check(&self) -> Result<(), Contradiction> {
        check::bench(&self.bench)
    }

    fn yes_disrupt(&self) -> &[String] {
        &self.yes_disrupt
    }

    fn draw(&mut self, seed: u64) {
        self.bench.seed.get_or_insert(seed);
    }

    fn runs_alone(&self) -> bool {
        true
    }
}

impl Kind for Search {
    fn check(&self) -> Result<(), Contradiction> {
        match &self.find {
            Find::Flows(flows) => check::flows(flows, self),
            _ => {
                check::bench(&self.bench)?;
                check::find(&self.find)
            }
        }
    }

    fn yes_disrupt(&self) -> &[String] {
        &self.yes_disrupt
    }

    fn asks(&self) -> Consent {
        let command = match &self.find {
            Find::Reset(reset) => reset.command.clone(),
            Find::Flows(flows) => flows.command.clone(),
            _ => None,
        };
        Consent { command, ..Consent::default() }
    }

    fn draw(&mut self, seed: u64) {
        self.bench.seed.get_or_insert(seed);
    }

    fn runs_alone(&self) -> bool {
        true
    }
}
