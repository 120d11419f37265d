//! The figures of a result that can be compared, each with what the result knows of its own unsteadiness.

use crate::data::figure::{self, Better, Unit, Within};
use crate::data::model::Report;

/// A figure of one result.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Figure {
    pub name: String,
    pub unit: Unit,
    pub better: Better,
    pub value: f64,
    pub within: Within,
}

/// All of them: those of which one direction is for the better.
pub(super) fn of(report: &Report) -> Vec<Figure> {
    let comparable = |measured: figure::Measured| {
        let name = measured.name().to_owned();
        let (unit, value) = match measured.of {
            None => (measured.unit, measured.value),
            // How many there are says nothing where more frames were received.
            Some(0) => return None,
            Some(all) => (Unit::Ratio, measured.value / all as f64),
        };
        Some(Figure { name, unit, better: measured.figure.better?, value, within: measured.within })
    };
    figure::of(report).into_iter().filter_map(comparable).collect()
}
