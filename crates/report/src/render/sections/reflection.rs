//! What became of the frames that arrived at a reflector.

use super::{Line, Section};
use crate::data::model::Report;
use crate::data::sections::reflection::Reflection;
use crate::data::units;
use crate::render::html::grid::Facts;

pub(super) struct Reflected;

impl Section for Reflected {
    fn lines(&self, report: &Report) -> Vec<Line> {
        let all = report.result.reflection.iter().map(|r| {
            let facts = r.facts().into_iter().map(|(what, count)| format!("{} {what}", units::count(count)));
            Line::facts("reflector", facts.collect())
        });
        all.collect()
    }

    fn facts(&self, report: &Report, facts: &mut Facts) {
        for (what, count) in report.result.reflection.iter().flat_map(Reflection::facts) {
            facts.add(&format!("frames {what}"), &units::count(count));
        }
    }
}

impl Reflection {
    /// What it did, with counts; those that are always of interest, and what else there was.
    fn facts(&self) -> Vec<(&'static str, u64)> {
        let all = [
            ("sent back", self.reflected_frames, true),
            ("of them echo replies", self.echo_replies, false),
            ("to groups, passed to the host", self.group_frames, false),
            ("of address resolution, passed to the host", self.resolution_frames, false),
            ("unsigned, passed to the host", self.unsigned_frames, false),
            ("malformed, dropped", self.malformed_frames, false),
        ];
        all.into_iter()
            .filter(|(_, count, always)| *always || *count > 0)
            .map(|(what, n, _)| (what, n))
            .collect()
    }
}
