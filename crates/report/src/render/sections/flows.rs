//! Flows among the frames sent, and the profiles that were asked for.

use super::{Line, Section};
use crate::data::model::Report;
use crate::data::units;
use crate::render::html::grid::Facts;

pub(super) struct OfFlows;

impl Section for OfFlows {
    fn lines(&self, report: &Report) -> Vec<Line> {
        let all = report.result.flows.iter().map(|f| {
            let outside = units::counted(f.non_flow_frames, "frame");
            let rate = units::flow_rate(f.flows_per_second);
            let facts = vec![units::counted(f.flows, "flow"), rate, format!("{outside} outside any flow")];
            Line::facts("flows", facts)
        });
        let profiles = report.resolved.flow_profiles.iter().map(|profile| {
            let mut facts = profile.facts();
            if let Some(first) = facts.first_mut() {
                *first = format!("{}: {first}", units::printable(&profile.name));
            }
            Line::facts("intended", facts)
        });
        profiles.chain(all).collect()
    }

    fn facts(&self, report: &Report, facts: &mut Facts) {
        let Some(f) = &report.result.flows else { return };
        let rate = units::flow_rate(f.flows_per_second);
        facts.add("flows", &format!("{} ({rate})", units::count(f.flows)));
        facts.add("frames in flows", &units::count(f.flow_frames));
        facts.add("frames outside flows", &units::count(f.non_flow_frames));
    }
}
