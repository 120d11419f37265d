//! Latency beside its floor: what the way takes without the device, and what is left of the measured when that is taken off.

use crate::data::search::{Floor, FloorOf};

impl FloorOf {
    /// For a person.
    pub fn text(self) -> &'static str {
        match self {
            FloorOf::Device => "the device, idle",
            FloorOf::Cable => "a cable",
            FloorOf::Given => "as given",
            FloorOf::Result => "a result",
        }
    }
}

impl Floor {
    /// What is left of the shortest and of the typical delay.
    pub fn taken_off(&self, min_ns: u64, typical_ns: u64) -> [u64; 2] {
        [min_ns.saturating_sub(self.min_ns), typical_ns.saturating_sub(self.typical_ns)]
    }
}
