//! What went in each direction through a bridge, or through a device with known faults.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::totals::Totals;
use super::{Line, Section, is_zero};
use crate::data::distribution::Distribution;
use crate::data::model::Report;
use crate::data::units;
use crate::render::html::grid::Facts;

/// One direction through a bridge: what arrived, what was sent on, and what became of the rest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Passage {
    /// The interface that frames arrived on.
    pub from: String,
    /// The one they were sent on by.
    pub to: String,
    /// What arrived on `from`.
    pub received: Totals,
    /// What `to` accepted of it.
    pub forwarded: Totals,
    /// The forwarded, each super-frame (GSO, GRO) counted once; left out where there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forwarded_buffers: Option<u64>,
    /// Of the forwarded: looked at from link to transport layer, and edited where that was asked for. Left out where
    /// nothing was to be edited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edited_frames: Option<u64>,
    /// Of the forwarded: with headers that no edit can be made in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unedited_frames: Option<u64>,
    /// Of the forwarded: with a checksum that the sender had left to hardware, and that was computed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub completed_checksums: u64,
    /// Not chosen by the rules.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub filtered_frames: u64,
    /// Left out by the edits.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out_frames: u64,
    /// Arrived after the last frame that was asked for.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub over_limit_frames: u64,
    /// Longer than the MTU they would have had to leave by.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub too_long_frames: u64,
    /// Not taken by the interface they should have left by.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub refused_frames: u64,
    /// Super-frames of the host's that could not be cut into frames.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub uncut_frames: u64,
    /// Arrived when there was no room for them; not among the received.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missed_frames: u64,
    /// What a device with faults did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impaired: Option<Impaired>,
}

/// What a device with known faults did to the frames of one direction, besides what it forwarded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Impaired {
    /// Lost, as was asked.
    pub lost_frames: u64,
    /// Lost in the times in which it was to lose everything.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub flapped_frames: u64,
    /// Copies, among the forwarded.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub copied_frames: u64,
    /// Put back behind others, or by a time.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reordered_frames: u64,
    /// With a bit that flipped.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub corrupted_frames: u64,
    /// Held in the times in which it was to hold everything.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub frozen_frames: u64,
    /// Copies that went back where they came from; not among the forwarded.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub returned_frames: u64,
    /// Lost because too many waited already.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub full_frames: u64,
    /// Still waiting when the device ended, and lost with it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub inside_frames: u64,
    /// How long after the time they were due frames left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness_ns: Option<Distribution>,
}

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
