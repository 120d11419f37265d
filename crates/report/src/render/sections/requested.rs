//! What was asked for: a card of the page, and the plugin in a line.

use super::{Line, Section};
use crate::data::model::Report;
use crate::data::sections::requested::{FlowProfile, Source};
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
