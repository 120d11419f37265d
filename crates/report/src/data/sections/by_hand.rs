//! What was changed by hand while a run lasted.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A change made by hand: the run was paused, resumed, or its rate was changed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Adjustment {
    /// Time of the change, from the start of the run.
    pub at_ns: u64,
    /// What was done.
    pub change: Change,
    /// Rate from then on, as a share of the rate that was asked for; 1 is as asked.
    pub rate_ratio: f64,
}

/// What was changed by hand.
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
