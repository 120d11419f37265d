//! Latency beside its floor: what the way takes without the device, and what is left of the measured when that is taken off.

use crate::data::model::Report;
use crate::data::search::{Floor, FloorOf};
use crate::data::units;

/// Its columns.
pub const HEADER: [&str; 9] =
    ["frame size", "at", "min", "its floor", "less floor", "typical", "its floor", "less floor", "floor of"];

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

/// A row for each latency that has a floor: the frame size, and the other columns.
pub fn rows(report: &Report) -> Vec<(&str, [String; 8])> {
    let result = &report.result;
    let of_search = result.search.iter().flat_map(|search| &search.sizes).flat_map(|size| {
        size.latency.iter().filter_map(|at| {
            Some((size.frame_size.as_str(), Some(at.frames_per_second), at.min_ns, at.typical_ns, at.floor?))
        })
    });
    let of_trials = result.trials.iter().filter_map(|trial| {
        let (floor, latency) = (trial.floor?, trial.latency_ns?);
        let rate = trial.intended_frames_per_second;
        Some((trial.frame_size.as_str(), rate, latency.min, latency.p50, floor))
    });
    let row = |(size, rate, min, typical, floor): (_, Option<f64>, u64, u64, Floor)| {
        let [min_left, typical_left] = floor.taken_off(min, typical);
        let cells = [
            rate.map(units::frame_rate).unwrap_or_default(),
            units::time(min),
            units::time(floor.min_ns),
            units::time(min_left),
            units::time(typical),
            units::time(floor.typical_ns),
            units::time(typical_left),
            floor.of.text().to_owned(),
        ];
        (size, cells)
    };
    of_search.chain(of_trials).map(row).collect()
}
