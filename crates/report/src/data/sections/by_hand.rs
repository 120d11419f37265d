//! What was changed by hand while a run lasted.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
