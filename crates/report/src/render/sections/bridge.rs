//! A bridge and a device with known faults: what went in each direction.

use super::{Line, Section};
use crate::data::distribution::Distribution;
use crate::data::model::Report;
use crate::data::sections::bridge::Passage;
use crate::data::units;
use crate::render::html::grid::Facts;

pub(super) struct Bridge;

impl Section for Bridge {
    fn lines(&self, report: &Report) -> Vec<Line> {
        let label = |p: &Passage| if p.impaired.is_some() { "device" } else { "bridge" };
        report.result.passages.iter().map(|p| Line::facts(label(p), p.facts())).collect()
    }

    fn facts(&self, report: &Report, facts: &mut Facts) {
        for p in &report.result.passages {
            let way = format!("{} to {}", p.from, p.to);
            facts.add(&format!("{way}, frames received"), &units::count(p.received.frames));
            facts.add(&format!("{way}, frames forwarded"), &units::count(p.forwarded.frames));
            for (what, count) in p.counts() {
                facts.add(&format!("{way}, {what}"), &units::count(count));
            }
            if let Some(late) = p.lateness() {
                let [half, most] = [late.p50, late.p99].map(units::time);
                facts.add(&format!("{way}, after their time"), &format!("p50 {half}, p99 {most}"));
            }
        }
    }
}

impl Passage {
    fn lateness(&self) -> Option<&Distribution> {
        self.impaired.as_ref()?.lateness_ns.as_ref()
    }

    /// In words.
    pub fn facts(&self) -> Vec<String> {
        let way = format!("{} > {}", units::printable(&self.from), units::printable(&self.to));
        let received = units::counted(self.received.frames, "frame");
        let pieces = self.forwarded_buffers.map(|n| format!(" in {} pieces (super-frames)", units::count(n)));
        let pieces = pieces.unwrap_or_default();
        let mut facts =
            vec![format!("{way}: {received} in, {} out{pieces}", units::count(self.forwarded.frames))];
        facts.extend(self.counts().into_iter().map(|(what, n)| format!("{} {what}", units::count(n))));
        if let Some(late) = self.lateness() {
            let [half, most, max] = [late.p50, late.p99, late.max].map(units::time);
            facts.push(format!("left after their time by p50 {half}, p99 {most}, max {max}"));
        }
        facts
    }

    /// What became of its frames, with counts: what there was of it.
    fn counts(&self) -> Vec<(&'static str, u64)> {
        let all = [
            ("edited", self.edited_frames.unwrap_or(0), self.edited_frames.is_some()),
            ("without headers to edit", self.unedited_frames.unwrap_or(0), false),
            ("checksums completed", self.completed_checksums, false),
            ("not chosen", self.filtered_frames, false),
            ("left out by the edits", self.left_out_frames, false),
            ("after the last one asked for", self.over_limit_frames, false),
            ("too long", self.too_long_frames, false),
            ("refused", self.refused_frames, false),
            ("super-frames not cut", self.uncut_frames, false),
            ("missed for want of room", self.missed_frames, false),
        ];
        let faults = self.impaired.as_ref().map(|i| {
            [
                ("lost on purpose", i.lost_frames, false),
                ("lost while flapping", i.flapped_frames, false),
                ("copies", i.copied_frames, false),
                ("reordered", i.reordered_frames, false),
                ("corrupted", i.corrupted_frames, false),
                ("held while frozen", i.frozen_frames, false),
                ("sent back", i.returned_frames, false),
                ("lost for want of memory", i.full_frames, false),
                ("lost with the device's end", i.inside_frames, false),
            ]
        });
        let all = all.into_iter().chain(faults.into_iter().flatten());
        all.filter(|(_, count, always)| *always || *count > 0).map(|(what, n, _)| (what, n)).collect()
    }
}
