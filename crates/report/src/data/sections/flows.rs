//! Flows among the frames sent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::totals::Totals;
use super::{Line, Section};
use crate::data::figure::{Measured, figures};
use crate::data::model::Report;
use crate::data::units;
use crate::render::html::grid::Facts;

/// Flows among the frames sent: distinct directed 5-tuples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Flows {
    /// Different 5-tuples.
    pub flows: u64,
    /// New flows a second over the whole run.
    pub flows_per_second: f64,
    /// Frames that belong to a flow.
    pub flow_frames: u64,
    /// Frames that do not (ARP, other link-layer protocols).
    pub non_flow_frames: u64,
    /// Of `flows`, those that had been seen before but were silent for longer than a flow lives, where flows expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expired: Option<u64>,
}

impl Flows {
    /// Of so many flows and frames in a time; 0 flows per second in no time.
    pub fn over(flows: u64, flow_frames: u64, non_flow_frames: u64, duration_ns: u64) -> Self {
        let flows_per_second = Totals::over(flows, 0, duration_ns).frames_per_second;
        Self { flows, flows_per_second, flow_frames, non_flow_frames, expired: None }
    }
}

figures! {
    /// Distinct directed 5-tuples among the frames sent.
    FLOWS = "flows", "flows", Count;
    /// New flows a second, over the whole run.
    RATE = "flows_per_second", "new flows a second", FlowsPerSecond;
}

pub(super) struct OfFlows;

impl Section for OfFlows {
    fn figures(&self, report: &Report) -> Vec<Measured> {
        let all = report.result.flows.iter();
        all.flat_map(|f| [FLOWS.count(f.flows), RATE.is(f.flows_per_second)]).collect()
    }

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
