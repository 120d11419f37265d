//! Jobs that try a device: one load, or a search.

use crate::check::{self, Contradiction};
use crate::consent::Consent;
use crate::endpoint::EndpointRate;
use crate::flows::Flows;
use crate::kind::Kind;
use crate::listen::{How, Timestamps};
use crate::middle::Faults;
use crate::parts::{disrupting, floor, lab, priority, through, tracing};
use crate::plugin::Plugin;
use crate::setting::{Member, Settings as _};
use crate::transmit::{Link, Pattern};
use crate::words::words;
use crate::written::{Ratio, Written};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::settings;
use std::time::Duration;
use traffic::Rate;
use traffic::faults::Share;
use wire::Mac;

words! {
    /// What stands in a lab.
    Dut {
        /// Linux as a bridge.
        Bridge = "bridge",
        /// Linux as an IPv4 router.
        Router = "router",
        /// Such a router that translates the addresses and ports of the sender's connections.
        Nat = "nat",
    }
}

/// A lab of the job's own: two hosts and a device between them, gone when it ends.
#[settings(heading = "Lab", perhaps)]
pub struct Lab {
    /// What stands in the lab: a bridge, a router or a nat. Default: one cable; with a limit or a loss, for trials and searches a router,
    /// for send and replay a bridge that learns nothing, so that both directions of a capture pass; with a limit of connections a nat.
    #[setting(option = "lab-dut", value = "KIND", needs("lab"), brief = "What stands in the lab")]
    pub dut: Option<Dut>,
    /// The most that the device in the lab forwards (200mbps; 200mbps-l1 on the wire).
    #[setting(
        option = "lab-bottleneck",
        value = "RATE",
        needs("lab"),
        brief = "The most that the device in the lab forwards: 200mbps"
    )]
    pub bottleneck: Option<Written<Rate>>,
    /// What waits before that bottleneck, in bytes. Default: 5 ms of its rate.
    #[setting(option = "lab-queue", value = "BYTES", needs("lab.bottleneck"), rare)]
    pub queue: Option<Written<u64>>,
    /// Tokens that the bottleneck saves up, in bytes. Default: 5 ms of its rate.
    #[setting(option = "lab-burst", value = "BYTES", needs("lab.bottleneck"), rare)]
    pub burst: Option<Written<u64>>,
    /// What the device in the lab loses, evenly: 1%, 1/1000.
    #[setting(option = "lab-loss", value = "SHARE", needs("lab"), reads = "Share")]
    pub loss: Option<String>,
    /// The most connections that the nat in the lab holds at once: 1 to 65535. What would begin one more is dropped; a connection that was
    /// closed no longer counts.
    #[setting(
        option = "lab-connections",
        value = "N",
        needs("lab"),
        brief = "The most connections that the nat in the lab holds at once"
    )]
    pub connections: Option<Written<u64>>,
    /// The most new connections a second that it takes: 2kcps, up to 1000kcps. What would begin more is dropped; a token bucket saves up
    /// those of 20 ms.
    #[setting(
        option = "lab-new-connections",
        value = "RATE",
        needs("lab"),
        brief = "The most new connections a second that the nat in the lab takes: 2kcps"
    )]
    pub new_connections: Option<Written<EndpointRate>>,
    /// A device with these faults instead.
    #[setting(
        unnamed,
        excludes("lab.dut", "lab.bottleneck", "lab.loss", "lab.connections", "lab.new_connections"),
        shorthand(
            option = "lab-impair",
            value = "FAULTS",
            means = "{}",
            text = "Put a device with known faults into the lab: what `netdyno impair` does, its options written without dashes ('delay 500us loss 1%', docs/impair.md).",
            brief = "Put a device with known faults into the lab: 'delay 500us loss 1%'",
            needs("lab")
        )
    )]
    pub impair: Option<Faults>,
    /// A device with this many ports, 3 to 16, each with an interface of ours: port0, port1, ...; all in a mesh, or two and two of them
    /// in pairs. Default: 4 in a mesh, else two.
    #[setting(
        value = "N",
        needs("lab"),
        excludes("lab.impair"),
        brief = "Ports of the device in the lab, 3 to 16, each with an interface of ours"
    )]
    pub ports: Option<u32>,
}

/// No more entries than ports has one address of a NAT, and no more than this the kernel's table by default.
const MOST_CONNECTIONS: u64 = 65_535;
/// So many a second no Linux takes.
const MOST_NEW: u64 = 1_000_000;

impl Lab {
    /// There is a limit of connections, which a nat has.
    pub fn limits_connections(&self) -> bool {
        self.connections.is_some() || self.new_connections.is_some()
    }

    /// The most connections at once; `None` also where the number is out of range.
    pub fn most_connections(&self) -> Option<u32> {
        let most = self.connections.as_deref().copied().filter(|most| (1..=MOST_CONNECTIONS).contains(most));
        most.and_then(|most| u32::try_from(most).ok())
    }

    /// The most new connections a second; `None` also where that is no such rate.
    pub fn most_new_connections(&self) -> Option<u32> {
        match self.new_connections.as_deref() {
            Some(EndpointRate::Connections(rate)) if (1..=MOST_NEW).contains(rate) => {
                u32::try_from(*rate).ok()
            }
            _ => None,
        }
    }
}

/// Which ports, which frames: what trials and searches share.
#[settings]
pub struct Bench {
    /// What to send: a packet expression (docs/expressions.md). Default: UDP to port 7 between addresses of 198.18.0.0/15,
    /// as RFC 2544 has it, with the Ethernet addresses of the ports (behind a router: see `.gateway`).
    #[setting(
        typed_by_place,
        value = "WHAT",
        brief = "A packet, such as 'ipv4/udp(dport=53)'. Default: UDP between 198.18.0.0/15 (RFC 2544)"
    )]
    pub what: Option<String>,
    /// Instead of that: a plugin says what the frames are.
    #[setting(within)]
    pub plugin: Option<Plugin>,
    /// The pairs of ports: where frames leave, and where they are measured.
    #[setting(
        unnamed,
        comma,
        excludes("lab"),
        shorthand(
            option = "on",
            value = "IFACE",
            means = "on={}",
            heading = "Traffic",
            text = "Send on this interface (IFACE, or IFACE@NAMESPACE). For several pairs of ports give `.on` and `.measure` once for each."
        ),
        shorthand(
            option = "measure",
            value = "IFACE",
            means = "measure={}",
            heading = "Measure",
            text = "Measure on this interface what arrives."
        )
    )]
    pub links: Vec<Link>,
    /// Which of the ports send to which. In a mesh the load is that of each, and {src_ip} and {dst_ip} in `what` stand for the
    /// addresses of ports.
    #[setting(
        unnamed,
        default = "pairs",
        heading = "Traffic",
        excludes("both_ways", "lab.impair"),
        shorthand(
            option = "mesh",
            means = "mesh",
            text = "Fully meshed traffic (RFC 2889): each `.on` sends to every other, in turns, and measures what is sent to it. The load is that of each port."
        )
    )]
    #[serde(default, skip_serializing_if = "Pattern::is_pairs")]
    pub pattern: Pattern,
    /// Send both ways at the same time: the load is that of each direction.
    #[setting(heading = "Traffic")]
    pub both_ways: bool,
    /// What is sent on the way back. Default: as `.what`, with the addresses the other way round, if `.what` is left out too.
    #[setting(value = "WHAT", heading = "Traffic", needs("both_ways", "what"))]
    pub back: Option<String>,
    /// The device is a router, with this Ethernet address at the sending port (of each pair).
    #[setting(value = "MAC", heading = "Traffic", excludes("what"))]
    pub gateway: Vec<Written<Mac>>,
    #[part]
    lab: lab!(),
    /// Frame sizes to test one after the other, the FCS counted: 64, 64,512,1518, rfc2544 (the seven of RFC 2544), imix, or
    /// a mix (64:7,1518:1) or genome (aaafg) as in `send`.
    #[setting(
        value = "SIZES",
        default = "64",
        heading = "Traffic",
        brief = "Frame sizes with FCS, one after the other: 64,512,1518, rfc2544, imix"
    )]
    #[serde(deserialize_with = "crate::written::text_or_number")]
    #[schemars(extend("type" = ["string", "integer"]))]
    pub size: Option<String>,
    /// Key of all random values of the frames.
    #[setting(value = "N", heading = "Traffic")]
    pub seed: Option<u64>,
    /// Send nothing before a trial that would teach a switch where the addresses are.
    #[setting(expert)]
    pub no_learning: bool,
    /// Send the trial's load for this long before it, unmeasured.
    #[setting(value = "TIME", heading = "Measure")]
    pub warm_up: Option<Written<Duration>>,
    /// Do a trial that failed with little loss again, this many times at most: in a lab, where the device shares this
    /// machine. One that the sender fell short of, or was held up in, four times as often, everywhere.
    #[setting(value = "N", default = "1", heading = "Measure")]
    pub retries: Option<u32>,
    #[part]
    priority: priority!(),
    #[part]
    through: through!(),
    #[part]
    tracing: tracing!(),
    /// How to measure: xdp (native), xdp-generic, packet (a packet socket), or the best that is possible.
    #[setting(option = "meter", value = "HOW", default = "auto", expert)]
    #[serde(default)]
    pub how: How,
    /// Who times arrivals: hardware, software, or auto: the hardware where it stamps all frames now (docs/measuring.md).
    #[setting(value = "WHO", default = "auto", expert)]
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
}

/// One load, and whether the device keeps to a goal.
#[settings]
pub struct Trial {
    /// Ports and frames.
    #[setting(within)]
    #[serde(default)]
    pub bench: Bench,
    /// The load of each sending port: 100kpps, 1gbps, 40%.
    #[setting(value = "RATE", heading = "Rate")]
    pub rate: Written<Rate>,
    /// Send for this long.
    #[setting(alias = "trial-duration", value = "TIME", default = "10s", heading = "Rate")]
    pub duration: Option<Written<Duration>>,
    /// What it has to keep to pass: loss=0.1%, p99=50us (also p50, p90, p99.9, max, pdv, ipdv, jitter), reorder=0%; several
    /// with commas.
    #[setting(
        value = "LIMITS",
        default = "loss=0%",
        heading = "Measure",
        brief = "What it has to keep to pass: loss=0.1%, p99=50us, reorder=0%; several with commas"
    )]
    pub goal: Option<String>,
    #[part]
    floor: floor!(),
    #[part]
    disrupting: disrupting!(),
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
#[settings(heading = "Search")]
pub struct Search {
    /// What is searched for.
    #[setting(apart)]
    pub find: Find,
    /// Ports and frames.
    #[setting(within)]
    #[serde(default)]
    pub bench: Bench,
    /// Offer no more than this to each port. Default: what the link carries, or where it states no speed, what the sender
    /// can do.
    #[setting(value = "RATE")]
    pub max: Option<Written<Rate>>,
    /// Offer no less than this. Default: a thousandth of the greatest.
    #[setting(value = "RATE")]
    pub min: Option<Written<Rate>>,
    /// Length of a trial. Default: as the standards say; in a lab, a few seconds.
    #[setting(value = "TIME")]
    pub trial_duration: Option<Written<Duration>>,
    #[part]
    disrupting: disrupting!(),
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
        /// Several goals at once, in few and mostly short trials (RFC 9971).
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
#[settings(heading = "Search")]
pub struct Finding {
    /// How to search.
    #[setting(value = "METHOD", default = "mlrsearch", explained)]
    #[serde(default)]
    pub method: Method,
    /// What a load has to keep to pass: loss=0.1%, p99=50us (also p50, p90, p99.9, max; pdv and ipdv of RFC 8219, jitter),
    /// reorder=0%, several with commas; of MLRsearch also exceed=50% (the share of time that may be bad), sum=21s (time
    /// until a load is decided) and trial=1s. ndr and pdr are FD.io CSIT's: loss=0% and loss=0.5%, in 21 trials of 1 s of
    /// which half may be worse. Give it several times for several goals of MLRsearch.
    #[setting(
        option = "goal",
        value = "LIMITS",
        default = "loss=0%",
        brief = "What it has to keep to pass: loss=0.1%, p99=50us, reorder=0%; several with commas"
    )]
    pub goals: Vec<String>,
    /// How near the highest load that passes and the lowest that fails must come, relative to the load. Default: 0.25%; where
    /// this machine is too busy to judge loads so near to each other, 1%, which the result says then.
    #[setting(value = "SHARE")]
    pub precision: Option<Written<Ratio>>,
    /// Length of bisection's trials until the rate is found, which is then tried at full length. Default: full length.
    #[setting(value = "TIME")]
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

impl Default for Find {
    fn default() -> Find {
        Find::Throughput(Throughput::default())
    }
}

impl Find {
    /// Of each search its name and its settings.
    pub const SETTINGS: &'static [(&'static str, &'static [Member])] = &[
        ("throughput", Throughput::MEMBERS),
        ("latency", Latency::MEMBERS),
        ("loss", LossCurve::MEMBERS),
        ("burst", Burst::MEMBERS),
        ("recovery", Recovery::MEMBERS),
        ("reset", Reset::MEMBERS),
        ("soak", Soak::MEMBERS),
        ("flows", Flows::MEMBERS),
    ];

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
#[settings(heading = "Search")]
pub struct Throughput {
    /// How it is found.
    #[setting(within)]
    #[serde(default)]
    pub finding: Finding,
    /// What is varied.
    #[setting(value = "AXIS", default = "rate", explained)]
    #[serde(default)]
    pub axis: Axis,
    /// The rate, when something else is varied.
    #[setting(value = "RATE", heading = "Rate")]
    pub rate: Option<Written<Rate>>,
    /// The most that is tried of `.axis` flows.
    #[setting(value = "N", default = "60k")]
    pub max_flows: Option<Written<u64>>,
    /// The longest that is tried of `.axis` burst. Default: a tenth of what a trial sends.
    #[setting(value = "FRAMES")]
    pub max_burst: Option<Written<u64>>,
}

/// Latency at the throughput or at given loads.
#[settings(heading = "Search")]
pub struct Latency {
    /// How the throughput is found, if no rates are given.
    #[setting(within)]
    #[serde(default)]
    pub finding: Finding,
    /// Measure at this load; several times for several loads. Default: the throughput, which is searched first.
    #[setting(option = "rate", value = "RATE", heading = "Rate")]
    pub rates: Vec<Written<Rate>>,
    #[part]
    floor: floor!(),
    /// Trials at each load. Default: 20, in a lab 3.
    #[setting(value = "N", least = 1)]
    pub repetitions: Option<u32>,
}

/// Loss at loads from the greatest downwards.
#[settings(heading = "Search")]
pub struct LossCurve {
    /// How much less each step is, of the greatest load.
    #[setting(value = "SHARE", default = "10%")]
    pub step: Option<Written<Ratio>>,
}

/// The longest burst that is forwarded whole.
#[settings(heading = "Search")]
pub struct Burst {
    /// How the throughput is found, if it is not given.
    #[setting(within)]
    #[serde(default)]
    pub finding: Finding,
    /// The device's throughput, for the buffer's time. Default: it is searched first.
    #[setting(value = "RATE")]
    pub throughput: Option<Written<Rate>>,
    /// Bursts of up to this many frames. Default: what is sent in 2 s at the highest rate.
    #[setting(value = "FRAMES")]
    pub max_burst: Option<Written<u64>>,
    /// Least step between lengths of bursts.
    #[setting(value = "FRAMES", default = "1")]
    pub step: Option<Written<u64>>,
    /// Independent searches. Default: 50, in a lab 3.
    #[setting(value = "N", least = 1)]
    pub repetitions: Option<u32>,
}

/// How long frames are lost after an overload.
#[settings(heading = "Search")]
pub struct Recovery {
    /// How the throughput is found, if it is not given.
    #[setting(within)]
    #[serde(default)]
    pub finding: Finding,
    /// The device's throughput, of which 110 % are an overload. Default: it is searched first.
    #[setting(value = "RATE")]
    pub throughput: Option<Written<Rate>>,
    /// Trials. Default: 20, in a lab 3.
    #[setting(value = "N", least = 1)]
    pub repetitions: Option<u32>,
}

/// How long nothing is forwarded when the device is reset.
#[settings(heading = "Search")]
pub struct Reset {
    /// How the throughput is found, if no rate is given.
    #[setting(within)]
    #[serde(default)]
    pub finding: Finding,
    /// The load during the reset. Default: the throughput, which is searched first.
    #[setting(value = "RATE", heading = "Rate")]
    pub rate: Option<Written<Rate>>,
    /// Run this (by sh -c) a second into each trial, to reset the device. In a lab it runs on the device, whose interfaces
    /// are dut0 and dut1. Default: you are asked to reset it.
    #[setting(value = "CMD", heading = "Traffic", consent)]
    pub command: Option<String>,
    /// Trials.
    #[setting(value = "N", default = "1", least = 1)]
    pub repetitions: Option<u32>,
}

/// One load for a long time.
#[settings(heading = "Search")]
pub struct Soak {
    /// The load.
    #[setting(value = "RATE", heading = "Rate")]
    pub rate: Written<Rate>,
    /// What has to be kept throughout, as in `search throughput`.
    #[setting(
        value = "LIMITS",
        default = "loss=0%",
        brief = "What it has to keep to pass: loss=0.1%, p99=50us, reorder=0%; several with commas"
    )]
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
    fn settings() -> &'static [Member] {
        Trial::MEMBERS
    }

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
    fn settings() -> &'static [Member] {
        Search::MEMBERS
    }

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

#[cfg(all(test, not(feature = "without-schemas")))]
mod tests {
    use super::*;
    use crate::{File, Job};

    #[test]
    fn the_settings_of_each_search_are_listed() {
        for (name, members) in Find::SETTINGS {
            let text = match *name {
                "soak" => "{soak: {rate: 5pps}}",
                name => name,
            };
            let text = format!("{{schema: netdyno.job/1, kind: search, find: {text}, bench: {{lab: {{}}}}}}");
            let Job::Search(search) = File::read(&text, "job").expect(name).jobs.remove(0) else {
                panic!("{name}: another kind");
            };
            assert_eq!(search.find.name(), *name);
            assert!(!members.is_empty(), "{name}");
        }
        let schema = serde_json::to_value(crate::file::schema()).expect("JSON");
        let all = schema["$defs"]["Find"]["oneOf"].as_array().map(Vec::len);
        assert_eq!(all, Some(Find::SETTINGS.len()));
    }
}
