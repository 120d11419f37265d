//! What was changed by hand while a run lasted, in a line of the summary.

use super::{Line, Section};
use crate::data::model::Report;
use crate::data::sections::by_hand::{Adjustment, Change};
use crate::data::units;

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
