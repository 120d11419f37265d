//! What was asked for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::html::escape::Esc;
use crate::html::grid::Facts;
use crate::model::Report;
use crate::units;

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
            let quoted: Vec<_> = words.iter().map(|w| shell_word(w)).collect();
            format!("<div class=\"card\"><pre>{}</pre></div>\n", Esc(&quoted.join(" ")))
        }
    };
    match (command, facts.card("")) {
        (command, facts) if command.is_empty() && facts.is_empty() => String::new(),
        (command, facts) => format!("<h2>What was asked</h2>\n{command}{facts}"),
    }
}

/// As one would type it: quoted where the shell would otherwise read it differently.
fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,%+@".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
