//! Captures into memory: a program whose templates are the captured frames.

use super::reading::{Oddities, Reading};
use super::{Input, SourceError};
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
    /// The side that each leaves on; empty if all leave on the first.
    pub sides: Vec<u8>,
    /// From the start of a pass to the start of the next.
    pub period_ns: u64,
    /// What was odd about them.
    pub odd: Oddities,
}

/// Reads the frames of `inputs`, one file after the other; each begins where the one before ended. They may take `most`
/// bytes of memory: how large a compressed file's contents are is known only when they are there.
///
/// # Errors
/// A capture cannot be read or edited, its frames take more than `most`, or there are none.
pub fn preload(inputs: &mut [Input], reading: &Reading, most: u64) -> Result<Loaded, SourceError> {
    let no_room = |inputs: &[Input]| SourceError::NoRoom { files: Input::names(inputs), most };
    let mut full = false;
    let mut loaded = Loaded {
        templates: Templates::new(),
        offsets: Vec::new(),
        sides: Vec::new(),
        period_ns: 0,
        odd: Oddities::default(),
    };
    let mut frame = Frame::default();
    let mut base = 0;
    for input in inputs.iter_mut() {
        let files = [0, 1].map(|side| input.name(side).to_owned());
        let (mut offsets, mut count) = (reading.offsets(), 0u64);
        while let Some((record, side)) = input.next_record()? {
            let Some(side) = side else { continue };
            let file = &files[usize::from(side)];
            if !reading.take(file, side, &record, &mut frame, &mut loaded.odd)? {
                continue;
            }
            let side = reading.leaves_on(side);
            loaded.odd.backwards += u64::from(!offsets.advance(record.time_ns));
            count += 1;
            let cut = frame.data.len() < frame.wire_len as usize;
            loaded.odd.truncated[usize::from(side)] += u64::from(cut);
            loaded.take_side(side);
            loaded
                .templates
                .push(LinkType::ETHERNET, &frame.data)
                .map_err(|what| SourceError::NotTaken { file: file.clone(), what })?;
            loaded.offsets.push(offsets.offset.saturating_add(base));
            full = loaded.memory() > most;
            if full || reading.first.is_some_and(|first| count >= first) {
                break;
            }
        }
        if full {
            break;
        }
        input.note(&mut loaded.odd);
        let gap = reading.seam.gap(offsets.offset, count);
        base = offsets.offset.saturating_add(gap).saturating_add(base);
    }
    if full {
        return Err(no_room(inputs));
    }
    loaded.period_ns = base;
    if loaded.templates.is_empty() {
        return Err(SourceError::Empty(Input::names(inputs)));
    }
    Ok(loaded)
}

impl Loaded {
    /// Bytes that it takes: the frames, and what is known of each.
    pub fn memory(&self) -> u64 {
        let frames = self.templates.len() as u64;
        self.templates.held_bytes() + frames * (size_of::<u64>() as u64) + self.sides.len() as u64
    }

    /// Notes the side of the next frame.
    fn take_side(&mut self, side: u8) {
        if self.sides.is_empty() && side > 0 {
            self.sides = vec![0; self.templates.len()];
        }
        if side > 0 || !self.sides.is_empty() {
            self.sides.push(side);
        }
    }

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
    ///
    /// # Errors
    /// So many templates are too many.
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
        self.sides = self.sides.repeat(usize::try_from(times).unwrap_or(usize::MAX));
        Ok(())
    }

    /// Time from the first frame to the last.
    pub fn span_ns(&self) -> u64 {
        self.offsets.last().copied().unwrap_or(0)
    }

    /// The program that sends it: a stream, or one for each side. `sign`: frames with room for it carry a signature of
    /// this stream; those of the second side of the one behind it.
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
        let stream = |name: &str, side: u8, templates| Stream {
            templates,
            unique_addresses: unique,
            signature: sign.map(|sign| sign + u32::from(side)),
            port: side,
            ..Stream::of(name, &[])
        };
        let sides = &self.sides;
        if let Some(&only) = sides.first()
            && sides.iter().any(|&side| side != only)
        {
            let part = |side: u8| self.templates.subset(|i| sides[i] == side);
            let both = [0, 1].map(|side| stream(&format!("{name}, side {}", side + 1), side, part(side)));
            let order: Vec<u32> = sides.iter().map(|&side| side.into()).collect();
            return Program::interleaved(both.into(), order, schedule);
        }
        let side = sides.first().copied().unwrap_or(0);
        Program::interleaved(vec![stream(&name, side, self.templates)], [0], schedule)
    }
}
