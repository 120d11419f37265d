//! Captures into memory: a program whose templates are the captured frames.

use super::SourceError;
use capture::Reader;
use traffic::schedule::Speed;
use traffic::{Program, Schedule, Stream, Templates};
use wire::LinkType;
use wire::flow::{FlowKey, FlowSet};
use wire::layers::Layers;

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
    /// What to do with longer frames.
    pub oversize: Oversize,
}

/// Ethernet header, and a VLAN tag that the kernel allows on top.
const HEADER: usize = 14;
const TAG: usize = 4;

impl Limit {
    /// Does `frame` fit? `Ok(false)`: leave it out.
    pub(super) fn admits(&self, file: &str, number: u64, frame: &[u8]) -> Result<bool, SourceError> {
        let Some((interface, mtu)) = &self.interface else { return Ok(true) };
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

/// A capture in memory.
#[derive(Debug)]
pub struct Loaded {
    /// The frames.
    pub templates: Templates,
    /// When each was captured, from the first; never decreasing.
    pub offsets: Vec<u64>,
    /// From the start of a pass to the start of the next.
    pub period_ns: u64,
    /// Frames longer than the interface takes, left out.
    pub oversized: u64,
    /// Frames without a byte, left out.
    pub empty: u64,
    /// Frames captured shorter than they were, sent as captured.
    pub truncated: u64,
    /// Frames whose time lay before that of the frame before; they follow it at once.
    pub backwards: u64,
    /// What a lenient reader found wrong.
    pub cut_short: Vec<String>,
}

/// Reads all frames of `readers`, one after the other. A file begins where the one before ended, a mean gap later.
pub fn preload(readers: &mut [Reader], limit: &Limit) -> Result<Loaded, SourceError> {
    let mut loaded = Loaded {
        templates: Templates::new(),
        offsets: Vec::new(),
        period_ns: 0,
        oversized: 0,
        empty: 0,
        truncated: 0,
        backwards: 0,
        cut_short: Vec::new(),
    };
    let mut base = 0;
    for reader in readers.iter_mut() {
        let file = reader.name().to_string();
        let (mut first, mut last, mut count) = (None, 0, 0u64);
        while let Some(record) = reader.next_record()? {
            if record.link != LinkType::ETHERNET {
                return Err(SourceError::LinkType { file, number: record.number, link: record.link });
            }
            if record.data.is_empty() {
                loaded.empty += 1;
                continue;
            }
            if !limit.admits(&file, record.number, record.data)? {
                loaded.oversized += 1;
                continue;
            }
            let start = *first.get_or_insert(record.time_ns);
            let offset = record.time_ns.saturating_sub(start);
            loaded.backwards += u64::from(offset < last);
            last = last.max(offset);
            count += 1;
            loaded.truncated += u64::from(record.data.len() < record.wire_len as usize);
            loaded
                .templates
                .push(record.link, record.data)
                .map_err(|what| SourceError::NotTaken { file: file.clone(), what })?;
            loaded.offsets.push(last.saturating_add(base));
        }
        if let Some(why) = &reader.notes().cut_short {
            loaded.cut_short.push(why.clone());
        }
        base = last.saturating_add(mean_gap(last, count)).saturating_add(base);
    }
    loaded.period_ns = base;
    if loaded.templates.is_empty() {
        let names: Vec<&str> = readers.iter().map(Reader::name).collect();
        return Err(SourceError::Empty(names.join(", ")));
    }
    Ok(loaded)
}

/// The mean time between `count` frames over `span`: what stands between the last frame of a pass and the first of
/// the next, so that looping keeps the capture's average rate.
pub(super) fn mean_gap(span: u64, count: u64) -> u64 {
    if count > 1 { span / (count - 1) } else { 0 }
}

impl Loaded {
    /// The capture's own timing, `speed` times as fast.
    pub fn timing(&self, speed: Speed) -> Schedule {
        Schedule::Times { offsets: self.offsets.as_slice().into(), period_ns: self.period_ns, speed }
    }

    /// Distinct flows. Not counted while loading: it takes longer than all the rest, and only a rate in flows per
    /// second needs the number before the run.
    pub fn flows(&self) -> u64 {
        let mut flows = FlowSet::default();
        for i in 0..self.templates.len() {
            let frame = self.templates.get(i);
            flows.extend(FlowKey::of(&Layers::parse(LinkType::ETHERNET, frame), frame).key());
        }
        flows.len() as u64
    }

    /// Time from the first frame to the last.
    pub fn span_ns(&self) -> u64 {
        self.offsets.last().copied().unwrap_or(0)
    }

    /// The program that sends it. `sign`: frames with room for it carry a signature of this stream.
    pub fn into_program(
        mut self,
        name: String,
        schedule: Schedule,
        unique: bool,
        sign: Option<u32>,
    ) -> Program {
        if sign.is_some() {
            self.templates.number_signable();
        }
        let stream = Stream {
            templates: self.templates,
            unique_addresses: unique,
            signature: sign,
            ..Stream::of(name, &[])
        };
        Program::interleaved(vec![stream], [0], schedule)
    }
}
