//! The figures of a result that can be compared, each with what the result knows of its own unsteadiness.
//! Crate `trend` asks for the same of many results, without that.

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
    figure::of(report).into_iter().filter_map(comparable).collect()
}

fn comparable(measured: figure::Measured) -> Option<Figure> {
    let name = measured.name().to_owned();
    let (unit, value) = match measured.of {
        None => (measured.unit, measured.value),
        // How many there are says nothing where more frames were received.
        Some(0) => return None,
        Some(all) => (Unit::Ratio, measured.value / all as f64),
    };
    Some(Figure { name, unit, better: measured.figure.better?, value, within: measured.within })
}

/// A figure of one result, of those of which one direction is for the better.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgeable {
    /// Its key, as `--get` takes it.
    pub key: &'static str,
    /// The figure, with what it is of: `64 bytes: throughput with loss 0 %`.
    pub name: String,
    /// What its value is in.
    pub unit: Unit,
    /// Which direction is for the better.
    pub better: Better,
    /// Its value; of a count that grows with what was sent, the share of it.
    pub value: f64,
}

/// All of them, in the order of figures.csv.
pub fn judgeable(report: &Report) -> Vec<Judgeable> {
    let all = figure::of(report)
        .into_iter()
        .filter_map(|measured| Some((measured.figure.key, comparable(measured)?)));
    all.map(|(key, Figure { name, unit, better, value, .. })| Judgeable { key, name, unit, better, value })
        .collect()
}
