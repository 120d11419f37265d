//! Flows among the frames sent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::totals::Totals;
use crate::data::figure::{Measured, figures};
use crate::data::model::Report;

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
    /// Flows among `flows` that had been seen before, and were silent for longer than a flow lives, where flows expire.
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

/// Its figures, as far as they are known.
pub(crate) fn figures(report: &Report) -> Vec<Measured> {
    let all = report.result.flows.iter();
    all.flat_map(|f| [FLOWS.count(f.flows), RATE.is(f.flows_per_second)]).collect()
}
