//! What was asked for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::data::model::Report;
use crate::data::sections::{Line, Section};
use crate::data::units;
use crate::render::html::escape::Esc;
use crate::render::html::grid::Facts;

/// Who made the frames, where that was a plugin.
pub(crate) struct Made;

impl Section for Made {
    fn lines(&self, report: &Report) -> Vec<Line> {
        let Some(Source::Plugin { name, version, place, sha256 }) = &report.resolved.source else {
            return Vec::new();
        };
        let mut facts = vec![units::printable(&format!("{name} {version}")), units::printable(place)];
        facts.extend(sha256.as_ref().map(|sha256| format!("SHA-256 {}", units::printable(sha256))));
        vec![Line::facts("plugin", facts)]
    }
}

/// What was asked for in numbers: as it came out of the job, with its defaults, on the machine that ran it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Resolved {
    /// Where the frames came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// The engine as asked for (`auto`, `packet`, ...); `environment.engine` is the one that ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// How fast they were to leave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<RequestedRate>,
    /// Passes over the source; left out when endless.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loops: Option<u64>,
    /// Frames to send at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Time to send for at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ns: Option<u64>,
    /// Whether each pass was to carry addresses of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unique_ip: Option<bool>,
    /// The key of every random choice; the same seed gives the same frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// What the flow profiles of a scenario come to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flow_profiles: Vec<FlowProfile>,
    /// Interfaces named by the user, senders first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<String>,
}

/// Where the frames came from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Source {
    /// A packet expression.
    Expression {
        /// As it was written.
        expression: String,
    },
    /// A scenario file, and what it calls itself.
    Scenario {
        /// Where it was read.
        file: String,
        /// What it calls itself.
        name: String,
    },
    /// A plugin.
    Plugin {
        /// Its name.
        name: String,
        /// Its own version.
        version: String,
        /// Where it was found: a path, or `built in`.
        place: String,
        /// SHA-256 of its module; those built in have none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sha256: Option<String>,
    },
    /// Capture files, in the order they were replayed.
    Files {
        /// Their paths.
        files: Vec<String>,
    },
    /// A synthesised capture, described in words.
    Synthetic {
        /// What it looks like.
        description: String,
    },
}

/// What a flow profile of a scenario comes to, by arithmetic.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowProfile {
    /// Its name.
    pub name: String,
    /// New flows per second.
    pub flows_per_second: f64,
    /// Frames per second while as many flows begin as end.
    pub frames_per_second: f64,
    /// Flows under way at a time while as many begin as end; those of one packet last no time.
    pub concurrent_flows: f64,
    /// Flows in all; left out without end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flows: Option<u64>,
    /// Frames of those.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frames: Option<u64>,
    /// So many flows have different keys (addresses, ports, protocol); then keys come again.
    pub different_flows: u64,
    /// Flows by protocol, packets and duration.
    pub kinds: Vec<FlowKind>,
}

/// Flows of a profile that differ in nothing but their keys.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowKind {
    /// `tcp`, `udp` or `icmp`.
    pub protocol: String,
    /// Packets of each.
    pub packets: u32,
    /// From the first packet to the last.
    pub duration_ns: u64,
    /// Part of the profile's flows, 0 to 1.
    pub share: f64,
    /// How many; left out without end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flows: Option<u64>,
}

impl FlowProfile {
    /// In words, a fact each.
    pub fn facts(&self) -> Vec<String> {
        let concurrent = match self.concurrent_flows {
            flows if flows >= 10.0 => units::count(flows.round() as u64),
            flows => format!("{flows:.1}"),
        };
        let mut facts = vec![
            units::flow_rate(self.flows_per_second),
            units::frame_rate(self.frames_per_second),
            format!("{concurrent} concurrent"),
        ];
        facts.extend(self.flows.map(|flows| format!("{} in all", units::counted(flows, "flow"))));
        facts.extend(self.frames.map(|frames| units::counted(frames, "frame")));
        facts
    }
}

/// A rate as typed and as numbers; the numbers that follow from the request alone are filled in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestedRate {
    /// As the user wrote it (`1.6mpps`, `40%`), or `capture`, `capture x2`, `topspeed`.
    pub text: String,
    /// Frames per second, where those follow from the request alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frames_per_second: Option<f64>,
    /// Layer 2 without FCS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bits_per_second: Option<f64>,
    /// On the wire: plus FCS, preamble and inter-frame gap, 24 bytes a frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bits_per_second_l1: Option<f64>,
    /// New flows per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flows_per_second: Option<f64>,
}

pub(crate) fn card(report: &Report) -> String {
    let r = &report.resolved;
    let mut facts = Facts::default();
    match &r.source {
        Some(Source::Expression { expression }) => facts.add("expression", expression),
        Some(Source::Scenario { file, name }) => {
            facts.add("scenario", name);
            facts.add("file", file);
        }
        Some(Source::Plugin { name, version, place, sha256 }) => {
            facts.add("plugin", &format!("{name} {version} ({place})"));
            if let Some(sha256) = sha256 {
                facts.add("SHA-256 of the plugin", sha256);
            }
        }
        Some(Source::Files { files }) => files.iter().for_each(|file| facts.add("file", file)),
        Some(Source::Synthetic { description }) => facts.add("synthesised", description),
        None => {}
    }
    if let Some(rate) = &r.rate {
        let numbers = [
            rate.frames_per_second.map(units::frame_rate),
            rate.bits_per_second.map(|b| format!("{} on layer 2", units::bit_rate(b))),
            rate.bits_per_second_l1.map(|b| format!("{} on layer 1", units::bit_rate(b))),
            rate.flows_per_second.map(units::flow_rate),
        ];
        let numbers: Vec<_> = numbers.into_iter().flatten().collect();
        let all = if numbers.is_empty() {
            rate.text.clone()
        } else {
            format!("{} ({})", rate.text, numbers.join(", "))
        };
        facts.add("rate", &all);
    }
    for profile in &r.flow_profiles {
        facts.add(&format!("flows of {}", profile.name), &profile.facts().join(", "));
    }
    facts.maybe("engine", r.engine.clone());
    facts.count("loops", r.loops);
    facts.count("frames at most", r.count);
    facts.maybe("duration", r.duration_ns.map(units::time));
    facts.maybe(
        "unique addresses each loop",
        r.unique_ip.map(|yes| if yes { "yes" } else { "no" }.to_owned()),
    );
    facts.maybe("seed", r.seed.map(|seed| seed.to_string()));
    facts.maybe("interfaces", (!r.interfaces.is_empty()).then(|| r.interfaces.join(", ")));
    let command = match report.command_line.as_slice() {
        [] => String::new(),
        words => {
            let quoted: Vec<_> = words.iter().map(|w| units::shell_word(w)).collect();
            format!("<div class=\"card\"><pre>{}</pre></div>\n", Esc(&quoted.join(" ")))
        }
    };
    match (command, facts.card("")) {
        (command, facts) if command.is_empty() && facts.is_empty() => String::new(),
        (command, facts) => format!("<h2>What was asked</h2>\n{command}{facts}"),
    }
}
