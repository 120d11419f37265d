//! Captures into memory: a program whose templates are the captured frames.

use super::SourceError;
use super::reading::{Oddities, Reading};
use capture::Reader;
use edit::rewrite::Frame;
use traffic::schedule::Speed;
use traffic::templates::NotTaken;
use traffic::{Program, Schedule, Stream, Templates};
use wire::LinkType;
use wire::flow::{FlowKey, FlowSet};
use wire::layers::Layers;

/// A capture in memory.
#[derive(Debug)]
pub struct Loaded {
    /// The frames.
    pub templates: Templates,
    /// When each was captured, from the first; never decreasing.
    pub offsets: Vec<u64>,
    /// From the start of a pass to the start of the next.
    pub period_ns: u64,
    /// What was odd about them.
    pub odd: Oddities,
}

/// Reads the frames of `readers`, one file after the other; each begins where the one before ended.
pub fn preload(readers: &mut [Reader], reading: &Reading) -> Result<Loaded, SourceError> {
    let mut loaded =
        Loaded { templates: Templates::new(), offsets: Vec::new(), period_ns: 0, odd: Oddities::default() };
    let mut frame = Frame::default();
    let mut base = 0;
    for reader in readers.iter_mut() {
        let file = reader.name().to_string();
        let (mut clock, mut count) = (reading.clock(), 0u64);
        while let Some(record) = reader.next_record()? {
            if !reading.take(&file, &record, &mut frame, &mut loaded.odd)? {
                continue;
            }
            loaded.odd.backwards += u64::from(!clock.advance(record.time_ns));
            count += 1;
            loaded.odd.truncated += u64::from(frame.data.len() < frame.wire_len as usize);
            loaded
                .templates
                .push(LinkType::ETHERNET, &frame.data)
                .map_err(|what| SourceError::NotTaken { file: file.clone(), what })?;
            loaded.offsets.push(clock.offset.saturating_add(base));
        }
        if let Some(why) = &reader.notes().cut_short {
            loaded.odd.cut_short.push(why.clone());
        }
        let gap = reading.seam.gap(clock.offset, count);
        base = clock.offset.saturating_add(gap).saturating_add(base);
    }
    loaded.period_ns = base;
    if loaded.templates.is_empty() {
        let names: Vec<&str> = readers.iter().map(Reader::name).collect();
        return Err(SourceError::Empty(names.join(", ")));
    }
    Ok(loaded)
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

    /// Holds `times` passes instead of one, so that addresses that change with each pass change every so many.
    pub fn repeat(&mut self, times: u64) -> Result<(), NotTaken> {
        let pass = self.templates.len();
        for turn in 1..times {
            for i in 0..pass {
                let frame = self.templates.get(i).to_vec();
                self.templates.push(LinkType::ETHERNET, &frame)?;
                self.offsets.push(self.offsets[i].saturating_add(self.period_ns.saturating_mul(turn)));
            }
        }
        self.period_ns = self.period_ns.saturating_mul(times);
        self.odd.repeat(times);
        Ok(())
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
