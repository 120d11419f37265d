//! What was changed by hand while a run lasted.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Line, Section};
use crate::data::model::Report;
use crate::data::units;

/// Somebody paused the run, let it go on, or changed its rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Adjustment {
    /// After the start.
    pub at_ns: u64,
    /// What was done.
    pub change: Change,
    /// From then on, of the rate asked for; 1 is as asked.
    pub rate_ratio: f64,
}

/// What somebody did to a run by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It was paused.
    Paused,
    /// It was let go on.
    Resumed,
    /// Its rate was changed.
    Rate,
}

pub(super) struct ByHand;

impl Section for ByHand {
    fn lines(&self, report: &Report) -> Vec<Line> {
        vec![Line::facts("by hand", report.result.adjustments.iter().map(adjustment).collect())]
    }
}

fn adjustment(a: &Adjustment) -> String {
    let at = units::time(a.at_ns);
    match a.change {
        Change::Paused => format!("paused after {at}"),
        Change::Resumed => format!("went on after {at}"),
        Change::Rate => format!("{} of the rate asked from {at} on", units::percent(a.rate_ratio)),
    }
}
