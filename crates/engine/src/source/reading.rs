//! What is taken of captures, how it is edited, and at which times: the same whether they are read before the run or
//! during it.

use super::SourceError;
use capture::Record;
use edit::rewrite::{self, Frame, Plan, Side, Verdict};
use std::ops::RangeInclusive;
use std::sync::Arc;
use wire::LinkType;

/// What to do with frames longer than the interface takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Oversize {
    /// Refuse the capture.
    #[default]
    Refuse,
    /// Leave them out, and count them.
    Skip,
}

/// The most that an interface takes.
#[derive(Debug, Clone, Default)]
pub struct Limit {
    /// The interface and its MTU; `None` when there is none (files).
    pub interface: Option<(String, u32)>,
    /// That of the second side, if it has its own.
    pub second: Option<(String, u32)>,
    /// What to do with longer frames.
    pub oversize: Oversize,
}

/// Ethernet header, and a VLAN tag that the kernel allows on top.
const HEADER: usize = 14;
const TAG: usize = 4;

impl Limit {
    /// Does `frame` fit the interface of its side? `Ok(false)`: leave it out.
    pub(super) fn admits(
        &self,
        side: u8,
        file: &str,
        number: u64,
        frame: &[u8],
    ) -> Result<bool, SourceError> {
        let second = self.second.as_ref().filter(|_| side == 1);
        let Some((interface, mtu)) = second.or(self.interface.as_ref()) else { return Ok(true) };
        let tagged = frame.len() >= HEADER && frame[12..14] == [0x81, 0x00];
        let header = if tagged { HEADER + TAG } else { HEADER };
        let limit = *mtu as usize + header;
        if frame.len() <= limit {
            return Ok(true);
        }
        match self.oversize {
            Oversize::Skip => Ok(false),
            Oversize::Refuse => Err(SourceError::TooLong {
                file: file.to_string(),
                number,
                length: frame.len(),
                limit,
                mtu: *mtu,
                need: frame.len() - header,
                interface: interface.clone(),
            }),
        }
    }
}

/// Some of a capture's packets, by their numbers from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// The numbers; in any order, and they may overlap.
    pub ranges: Vec<RangeInclusive<u64>>,
    /// These are left out, all others taken; else the other way round.
    pub excluded: bool,
}

impl Selection {
    /// Is packet `number` taken?
    pub fn takes(&self, number: u64) -> bool {
        self.ranges.iter().any(|range| range.contains(&number)) != self.excluded
    }
}

/// What stands between the last frame of a file, or of a pass, and the first of the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Seam {
    /// The mean gap of what came before, so that looping keeps the capture's average rate.
    #[default]
    MeanGap,
    /// Nothing: the next frame is due at once.
    Nothing,
}

impl Seam {
    /// Behind `count` frames over `span`.
    pub(super) fn gap(self, span: u64, count: u64) -> u64 {
        match self {
            Seam::MeanGap if count > 1 => span / (count - 1),
            _ => 0,
        }
    }
}

/// What was not as usual about the frames of captures.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Oddities {
    /// Frames longer than the interface takes, left out.
    pub oversized: u64,
    /// Frames without a byte, left out.
    pub empty: u64,
    /// Frames left out by an edit.
    pub left: u64,
    /// Frames sent unedited, because their headers could not be read.
    pub unedited: u64,
    /// Frames of another link type that could not be made Ethernet frames, left out.
    pub foreign: u64,
    /// Frames captured shorter than they were, sent as captured; on each side.
    pub truncated: [u64; 2],
    /// Frames whose time lay before that of the frame before; they follow it at once.
    pub backwards: u64,
    /// Cache files that know more packets than there are.
    pub surplus: Vec<String>,
    /// What a lenient reader found wrong.
    pub cut_short: Vec<String>,
}

impl Oddities {
    /// As many of each as in `times` passes.
    pub(super) fn repeat(&mut self, times: u64) {
        let Oddities {
            oversized,
            empty,
            left,
            unedited,
            foreign,
            truncated,
            backwards,
            surplus: _,
            cut_short: _,
        } = self;
        let [cut, cut_too] = truncated;
        for count in [oversized, empty, left, unedited, foreign, cut, cut_too, backwards] {
            *count = count.saturating_mul(times);
        }
    }
}

/// How captures are read.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// What the interface takes.
    pub limit: Limit,
    /// The packets taken of each file; `None`: all.
    pub packets: Option<Selection>,
    /// Of a capture that is read into memory, so many frames at most are taken of each file, and no more is read.
    pub first: Option<u64>,
    /// Between files, and between passes.
    pub seam: Seam,
    /// Longer pauses between two frames are cut to this, in the capture's time.
    pub longest_gap_ns: Option<u64>,
    /// Frames that were captured shorter than they were get zeros up to the length they had.
    pub whole_length: bool,
    /// Edits of each frame. Frames of other link types become Ethernet frames.
    pub edits: Option<Arc<Plan>>,
    /// Only this side's frames are taken.
    pub only_side: Option<u8>,
    /// Both sides leave by two interfaces. Otherwise which side sent a frame matters to edits only.
    pub two_ways: bool,
}

/// No packet is longer than a capture's largest snap length; what says so is damaged.
const LONGEST: usize = 1 << 18;

impl Reading {
    /// The side by which a frame leaves that `side` sent.
    pub(super) fn leaves_on(&self, side: u8) -> u8 {
        if self.two_ways { side } else { 0 }
    }

    /// Makes `frame` what is to be sent of `record`, which `side` sent, and counts in `odd` what is odd about it. False:
    /// it is not sent.
    pub(super) fn take(
        &self,
        file: &str,
        side: u8,
        record: &Record<'_>,
        frame: &mut Frame,
        odd: &mut Oddities,
    ) -> Result<bool, SourceError> {
        if self.packets.as_ref().is_some_and(|packets| !packets.takes(record.number))
            || self.only_side.is_some_and(|only| only != side)
        {
            return Ok(false);
        }
        let sender = if side == 0 { Side::Client } else { Side::Server };
        if record.data.is_empty() {
            odd.empty += 1;
            return Ok(false);
        }
        frame.data.clear();
        frame.data.extend_from_slice(record.data);
        frame.wire_len = record.wire_len;
        let ethernet = record.link == LinkType::ETHERNET;
        match &self.edits {
            None if ethernet => {}
            None => {
                let (file, number, link) = (file.to_owned(), record.number, record.link);
                return Err(SourceError::LinkType { file, number, link });
            }
            Some(plan) => {
                if !ethernet {
                    rewrite::check(record.link, Some(LinkType::ETHERNET), plan, file)?;
                }
                match rewrite::edit(frame, plan, record.link, LinkType::ETHERNET, sender) {
                    Verdict::Edited => {}
                    Verdict::Unsupported if ethernet => odd.unedited += 1,
                    Verdict::Unsupported => {
                        odd.foreign += 1;
                        return Ok(false);
                    }
                    Verdict::Left => {
                        odd.left += 1;
                        return Ok(false);
                    }
                }
            }
        }
        let whole = (frame.wire_len as usize).min(LONGEST);
        if self.whole_length && whole > frame.data.len() {
            frame.data.resize(whole, 0);
        }
        let fits = self.limit.admits(side, file, record.number, &frame.data)?;
        odd.oversized += u64::from(!fits);
        Ok(fits)
    }

    /// Those of a file whose first frame is to come.
    pub(super) fn offsets(&self) -> Offsets {
        Offsets { latest: None, offset: 0, longest_gap: self.longest_gap_ns.unwrap_or(u64::MAX) }
    }
}

/// Turns a file's time stamps into offsets from its first frame that never go back.
#[derive(Debug, Clone, Copy)]
pub(super) struct Offsets {
    latest: Option<u64>,
    /// That of the latest frame.
    pub offset: u64,
    longest_gap: u64,
}

impl Offsets {
    /// Moves to a frame captured at `time`. False if that lies before the frame before, which it then follows at once.
    pub fn advance(&mut self, time: u64) -> bool {
        let latest = self.latest.unwrap_or(time);
        let gap = time.saturating_sub(latest).min(self.longest_gap);
        self.offset = self.offset.saturating_add(gap);
        self.latest = Some(latest.max(time));
        time >= latest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_taken_or_left_out_by_number() {
        let of = |excluded| Selection { ranges: vec![1..=2, 9..=9, 72..=u64::MAX], excluded };
        let taken = |selection: Selection| (1..=75).filter(|&n| selection.takes(n)).collect::<Vec<_>>();
        assert_eq!(taken(of(false)), [1, 2, 9, 72, 73, 74, 75]);
        assert_eq!(taken(of(true)).len(), 75 - 7);
    }

    #[test]
    fn times_never_go_back_and_long_pauses_are_cut() {
        let offsets = |longest_gap_ns| {
            let mut offsets = Reading { longest_gap_ns, ..Reading::default() }.offsets();
            [1000, 1300, 1200, 1400, 9000].map(|time| (offsets.advance(time), offsets.offset))
        };
        assert_eq!(offsets(None), [(true, 0), (true, 300), (false, 300), (true, 400), (true, 8000)]);
        assert_eq!(offsets(Some(200)), [(true, 0), (true, 200), (false, 200), (true, 300), (true, 500)]);
    }
}
