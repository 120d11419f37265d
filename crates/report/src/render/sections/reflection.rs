//! What became of the frames that arrived at a reflector.

use super::{Line, Section};
use crate::data::model::Report;
use crate::data::sections::reflection::{Reflection, StampReflection};
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
            let what = if what.starts_with("sessions") { what.to_owned() } else { format!("frames {what}") };
            facts.add(&what, &units::count(count));
        }
    }
}

impl Reflection {
    /// What it did, with counts; those that are always of interest, and what else there was.
    fn facts(&self) -> Vec<(&'static str, u64)> {
        if let Some(stamp) = &self.stamp {
            return stamp.facts(self.reflected_frames);
        }
        shown([
            ("sent back", self.reflected_frames, true),
            ("of them echo replies", self.echo_replies, false),
            ("to groups, passed to the host", self.group_frames, false),
            ("of address resolution, passed to the host", self.resolution_frames, false),
            ("unsigned, passed to the host", self.unsigned_frames, false),
            ("malformed, dropped", self.malformed_frames, false),
        ])
    }
}

impl StampReflection {
    fn facts(&self, answered: u64) -> Vec<(&'static str, u64)> {
        shown([
            ("answered", answered, true),
            ("sessions", self.sessions, true),
            ("answered with the sender's number, for want of room", self.without_room_packets, false),
            ("above the rate, dropped", self.limited_packets, false),
            ("too short, passed to the host", self.too_short_packets, false),
            ("malformed, passed to the host", self.malformed_packets, false),
            ("fragments, passed to the host", self.fragments, false),
            ("answers of others, passed to the host", self.answers_of_others, false),
            ("from sources that are not allowed, passed to the host", self.not_allowed_packets, false),
            ("no test packets, passed to the host", self.other_frames, false),
        ])
    }
}

/// Those that are always of interest, and what else there was.
fn shown<const N: usize>(all: [(&'static str, u64, bool); N]) -> Vec<(&'static str, u64)> {
    let of_interest = all.into_iter().filter(|(_, count, always)| *always || *count > 0);
    of_interest.map(|(what, count, _)| (what, count)).collect()
}
