//! Captures sent while they are read: memory stays bounded however large they are.

use super::hooks::{Hooks, Loss, Passed};
use super::reading::{Offsets, Reading};
use super::{Facts, Frames, Input, Seen, SourceError};
use crate::Overdue;
use crate::clock;
use capture::Reader;
use edit::rewrite::Frame;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Instant;
use traffic::executor::{NOTHING, sign_captured, spread_addresses};
use traffic::schedule::{Position, Speed};
use traffic::shape::Onward;
use traffic::templates::{Addresses, changeable, low_words, room_for_signature};
use traffic::{Buffers, Schedule};
use wire::LinkType;
use wire::layers::{L3, Layers};
use wire::signature::Signature;

/// How a streamed capture is timed.
#[derive(Debug, Clone)]
pub enum Timing {
    /// As captured, faster or slower.
    Capture(Speed),
    /// By a schedule that does not need the capture's times.
    Schedule(Schedule),
    /// Not at all: each frame has the time it was captured at, for files.
    Stamps,
}

/// What is changed on the way, and how often it is read.
#[derive(Debug, Clone)]
pub struct Options {
    /// Passes; `None`: without end.
    pub loops: Option<u64>,
    /// Every so many passes get addresses of their own; `None`: all have the captured ones.
    pub unique_every: Option<NonZeroU64>,
    /// Frames without IP addresses are left out of passes with addresses of their own, as tcpreplay 4.5.5 does.
    pub only_unique: bool,
    /// Frames with room for it carry a signature of this stream.
    pub sign: Option<u32>,
    /// What is taken, and what stands between files.
    pub reading: Reading,
    /// When frames leave.
    pub timing: Timing,
    /// So many frames leave together, when the first of them is due.
    pub together: NonZeroU64,
    /// Waited between two passes, besides what the reading has there. At top speed that is from when the last frame of a
    /// pass was taken.
    pub pause_ns: u64,
    /// Count flows: it takes memory for those of a pass.
    pub count_flows: bool,
    /// A flow that was silent for more than so many seconds of the capture's time counts as another.
    pub flow_expiry_s: Option<u64>,
    /// Frames that get lost on purpose.
    pub loss: Option<Loss>,
}

/// Frames that are read on between two looks at the time.
const LOOK_EVERY: u64 = 256;

/// Reads captures in order, again and again.
#[derive(Debug)]
pub struct StreamSource {
    inputs: Vec<Input>,
    /// What they are called, those of each side.
    names: Vec<[String; 2]>,
    options: Options,
    schedule: Schedule,
    /// Frames go into buffers of this size.
    longest: usize,
    /// What was counted.
    pub seen: Seen,
    /// Who else has a say.
    pub hooks: Hooks,
    /// Frames that may leave before it is asked for more.
    allowed: u64,
    /// Frames and bytes handed out.
    taken: (u64, u64),
    /// Frames that came up, lost ones included.
    came: u64,
    /// When the next frame was captured.
    captured: u64,
    /// The next frame, its side, and when it is due.
    frame: Frame,
    side: u8,
    ready: Option<u64>,
    file: usize,
    pass: u64,
    /// Capture time at which the present file begins, unscaled, from the run's start.
    base: u128,
    /// Offsets in the present file.
    offsets: Offsets,
    /// Frames taken from the present file, and in the present pass.
    in_file: u64,
    in_pass: u64,
    /// All passes are done.
    ended: bool,
    /// What went wrong behind frames that could still be sent; reported when those have left.
    fault: Option<SourceError>,
    /// Where a schedule that does not need the capture's times is.
    position: Position,
    /// The times behind that, if they are those of a shape, which has to be asked for each.
    onward: Option<Onward>,
    /// When the first frame was taken: pauses at top speed are counted from when a pass ends.
    began: Option<u64>,
    /// The clock whose times signatures carry.
    stamps: clocks::Clock,
    /// When the frames that leave together do, and how many of them have been taken.
    together: (u64, u64),
}

impl StreamSource {
    /// Streams `inputs`, which stand at their beginnings. Frames go into buffers of `longest` bytes.
    pub fn new(inputs: Vec<Input>, options: Options, longest: usize) -> StreamSource {
        let schedule = match &options.timing {
            Timing::Capture(_) | Timing::Stamps => Schedule::TopSpeed,
            Timing::Schedule(schedule) => schedule.clone(),
        };
        let mut onward = match &schedule {
            Schedule::Shaped(shaped) => Some(Onward::new(Arc::clone(shaped))),
            _ => None,
        };
        let mut position = Position::default();
        position.due = onward.as_mut().and_then(Iterator::next).unwrap_or(0);
        let offsets = options.reading.offsets();
        let seen = Seen::expiring(options.flow_expiry_s);
        StreamSource {
            names: inputs.iter().map(|input| [0, 1].map(|side| input.name(side).to_owned())).collect(),
            inputs,
            options,
            schedule,
            longest,
            seen,
            hooks: Hooks::default(),
            allowed: 0,
            taken: (0, 0),
            came: 0,
            captured: 0,
            frame: Frame::default(),
            side: 0,
            ready: None,
            file: 0,
            pass: 0,
            base: 0,
            offsets,
            in_file: 0,
            in_pass: 0,
            ended: false,
            fault: None,
            position,
            onward,
            began: None,
            stamps: clocks::Clock::Monotonic,
            together: (0, 0),
        }
    }

    /// The schedule; top speed stands for the capture's own timing, which has no closed form.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// Is there a schedule, the capture's own included?
    pub fn is_paced(&self) -> bool {
        matches!(self.options.timing, Timing::Capture(_))
            || self.schedule.is_paced()
            || (self.options.pause_ns > 0 && !matches!(self.options.timing, Timing::Stamps))
    }

    /// Is frame n due where the schedule has its n-th, whatever the capture holds? Not where frames get lost on purpose or
    /// passes have pauses, whose time passes all the same; and what passes without end hold is more than any schedule has.
    pub fn is_formula(&self) -> bool {
        let o = &self.options;
        matches!((&o.timing, &self.schedule), (Timing::Schedule(_), Schedule::Frames { .. }))
            && o.loss.is_none()
            && o.pause_ns == 0
            && o.loops.is_none()
            && o.together == NonZeroU64::MIN
    }

    /// Has the schedule come to an end?
    fn is_over(&self) -> bool {
        matches!(self.options.timing, Timing::Schedule(_)) && self.schedule.ends_before(self.position.due)
    }

    /// Passes begun.
    pub fn passes(&self) -> u64 {
        self.pass + u64::from(self.in_pass > 0)
    }

    /// Makes the next frame ready, and says when it is due. `None` at the end.
    fn ready(&mut self) -> Result<Option<u64>, SourceError> {
        while self.ready.is_none() {
            if let Some(fault) = self.fault.take() {
                self.ended = true;
                return Err(fault);
            }
            if self.ended || self.is_over() {
                return Ok(None);
            }
            if self.file == self.inputs.len() {
                if !self.next_pass()? {
                    return Ok(None);
                }
                continue;
            }
            let input = &mut self.inputs[self.file];
            // Behind a fault there is nothing, another file least of all.
            let Some((record, side)) = input.next_record().inspect_err(|_| self.ended = true)? else {
                if self.pass == 0 {
                    input.note(&mut self.seen.odd);
                }
                let lasted = self.offsets.offset;
                let gap = self.options.reading.seam.gap(lasted, self.in_file);
                self.base += u128::from(lasted) + u128::from(gap);
                (self.offsets, self.in_file) = (self.options.reading.offsets(), 0);
                self.file += 1;
                continue;
            };
            let Some(side) = side else { continue };
            let time = record.time_ns;
            let (reading, odd) = (&self.options.reading, &mut self.seen.odd);
            let file = &self.names[self.file][usize::from(side)];
            if !reading.take(file, side, &record, &mut self.frame, odd)? {
                continue;
            }
            if self.frame.data.len() > self.longest {
                odd.oversized += 1;
                continue;
            }
            let round = self.options.unique_every.map_or(0, |every| self.pass / every);
            if self.options.only_unique && round > 0 && !has_addresses(&self.frame.data) {
                continue;
            }
            odd.backwards += u64::from(!self.offsets.advance(time));
            self.side = reading.leaves_on(side);
            self.in_file += 1;
            self.in_pass += 1;
            self.ready = Some(match self.options.timing {
                Timing::Capture(speed) => {
                    let offset = speed.scale(self.base + u128::from(self.offsets.offset));
                    offset.saturating_add(self.options.pause_ns.saturating_mul(self.pass))
                }
                Timing::Stamps => time,
                Timing::Schedule(_) => {
                    if self.together.1 == 0 {
                        self.together.0 = self.position.due;
                    }
                    self.together.0
                }
            });
            self.captured = time;
            self.came += 1;
            if self.options.loss.is_some_and(|loss| loss.hits(self.came)) {
                // Its time passes all the same.
                self.seen.lost += 1;
                self.pass_by(self.frame.data.len() as u32);
            }
        }
        Ok(self.ready)
    }

    /// The frame that is ready, of `length` bytes, is done with.
    fn pass_by(&mut self, length: u32) {
        match self.onward.as_mut().and_then(Iterator::next) {
            Some(due) => self.position.due = due,
            None => self.position.advance(&self.schedule, length),
        }
        self.together.1 = (self.together.1 + 1) % self.options.together;
        self.ready = None;
    }

    /// May frames leave? As many as that are asked for, once there is one.
    fn may_leave(&mut self) -> u64 {
        let Some(ask) = &mut self.hooks.ask else { return u64::MAX };
        while self.allowed == 0 {
            match ask(self.taken.0 + 1) {
                Some(more) => self.allowed = more,
                None => {
                    (self.ended, self.ready) = (true, None);
                    break;
                }
            }
        }
        self.allowed
    }

    /// Goes back to the first file. False when there is no further pass.
    fn next_pass(&mut self) -> Result<bool, SourceError> {
        let names = || Input::names(&self.inputs);
        if self.in_pass == 0 {
            return Err(SourceError::Empty(names()));
        }
        self.pass += 1;
        if self.options.loops.is_some_and(|loops| self.pass >= loops) {
            (self.ended, self.in_pass) = (true, 0);
            return Ok(false);
        }
        if matches!(self.options.timing, Timing::Capture(_)) && self.base == 0 {
            return Err(SourceError::NoDuration(names()));
        }
        for input in &mut self.inputs {
            input.rewind()?;
        }
        if let Some(passed) = &mut self.hooks.passed {
            let (frames, bytes) = self.taken;
            let elapsed_ns = self.began.map_or(0, |began| clock::now().saturating_sub(began));
            passed(Passed { passes: self.pass, frames, bytes, elapsed_ns });
        }
        if matches!(self.options.timing, Timing::Schedule(_)) && self.options.pause_ns > 0 {
            let ended = match (&self.schedule, self.began) {
                (Schedule::TopSpeed, Some(began)) => clock::now().saturating_sub(began),
                _ => self.position.due,
            };
            self.position.due = ended.saturating_add(self.options.pause_ns);
            self.together.1 = 0;
        }
        let every = self.options.unique_every.map_or(u64::MAX, NonZeroU64::get);
        if self.pass.is_multiple_of(every) {
            // What follows has addresses of its own.
            self.seen.other_flows();
        }
        (self.file, self.in_pass) = (0, 0);
        Ok(true)
    }

    /// Changes the frame that is ready as asked, into `buffer`.
    fn render(&mut self, buffer: &mut [u8]) -> u32 {
        let frame = &mut buffer[..self.frame.data.len()];
        frame.copy_from_slice(&self.frame.data);
        let side = usize::from(self.side);
        self.seen.frame(self.side, frame);
        let round = self.options.unique_every.map_or(0, |every| self.pass / every);
        if round > 0 || self.options.sign.is_some() || self.options.count_flows {
            let layers = Layers::parse(LinkType::ETHERNET, frame);
            if self.options.count_flows {
                self.seen.flow(self.side, &layers, frame, self.captured);
            }
            // What does as another tool, changes what that changes.
            if round > 0 && (self.options.only_unique || changeable(frame.get(layers.l3_offset..))) {
                let (addresses, at, size) = match layers.l3 {
                    L3::V4 => (Addresses::V4(layers.l3_offset + 12), layers.l3_offset + 12, 4),
                    L3::V6 => (Addresses::V6(layers.l3_offset + 8), layers.l3_offset + 8, 16),
                    _ => (Addresses::None, 0, 0),
                };
                if let Some((source, destination)) = low_words(frame, at, size) {
                    spread_addresses(frame, addresses, source < destination, round);
                }
            }
            if let Some(stream) = self.options.sign
                && room_for_signature(&layers, frame)
            {
                let stream = stream + u32::from(self.side);
                let sequence = self.seen.signed[side];
                sign_captured(frame, Signature { stream, sequence, time: clocks::now(self.stamps) });
                self.seen.signed[side] += 1;
            }
        }
        frame.len() as u32
    }
}

fn has_addresses(frame: &[u8]) -> bool {
    matches!(Layers::parse(LinkType::ETHERNET, frame).l3, L3::V4 | L3::V6)
}

impl Frames for StreamSource {
    fn until(&mut self, at_ns: u64) {
        let readers = self.inputs.iter().flat_map(Input::readers);
        readers.filter_map(Reader::patience).for_each(|pipe| pipe.until_ns(at_ns));
    }

    fn facts(&self) -> Facts {
        Facts {
            paced: self.is_paced(),
            is_formula: self.is_formula(),
            frames: None,
            longest: None,
            // One for each side.
            streams: vec![0, 1],
            all_signed: false,
            counts_flows: self.options.count_flows,
        }
    }

    fn schedule(&self) -> Option<&Schedule> {
        Some(&self.schedule)
    }

    fn next_due(&mut self) -> Result<Option<u64>, SourceError> {
        self.ready()
    }

    fn port(&mut self) -> u8 {
        // At the end, or at a fault that `fill` will tell, there is none.
        if self.ready.is_none()
            && let Err(fault) = self.ready()
        {
            self.fault = Some(fault);
        }
        self.side
    }

    fn fill(
        &mut self,
        buffers: &mut Buffers<'_>,
        max: usize,
        until: u64,
        due: &mut [u64],
    ) -> Result<usize, SourceError> {
        let mut most = max.min(due.len()).min(buffers.lengths.len());
        self.began.get_or_insert_with(clock::now);
        if self.hooks.ask.is_some() && self.ready()?.is_some() {
            most = most.min(usize::try_from(self.may_leave()).unwrap_or(usize::MAX));
        }
        let paced = self.is_paced();
        let mut count = 0;
        let mut only = None;
        self.seen.begin();
        while count < most {
            // What is ready before a fault still leaves.
            let at = match self.ready() {
                Ok(Some(at)) => at,
                Ok(None) => break,
                Err(fault) if count == 0 => return Err(fault),
                Err(fault) => {
                    self.fault = Some(fault);
                    break;
                }
            };
            if paced && at > until {
                break;
            }
            if *only.get_or_insert(self.side) != self.side {
                break;
            }
            let Some(buffer) = buffers.bytes.get_mut(count * buffers.stride..) else { break };
            if buffer.len() < self.frame.data.len() {
                break;
            }
            let length = self.render(buffer);
            if let Some(show) = &mut self.hooks.show {
                show(self.captured, &buffer[..length as usize]);
            }
            let cut = self.frame.data.len() < self.frame.wire_len as usize;
            self.seen.odd.truncated[usize::from(self.side)] += u64::from(cut);
            buffers.held[count] = NOTHING;
            buffers.lengths[count] = length;
            due[count] = at;
            self.pass_by(length);
            self.taken = (self.taken.0 + 1, self.taken.1 + u64::from(length));
            count += 1;
        }
        self.allowed = self.allowed.saturating_sub(count as u64);
        Ok(count)
    }

    fn end(&mut self) -> u64 {
        match self.options.timing {
            Timing::Capture(speed) => {
                let pauses = self.pass - u64::from(self.ended && self.pass > 0);
                // Of a file that was given up: as far as it was read.
                let reached = self.base + u128::from(self.offsets.offset);
                speed.scale(reached).saturating_add(self.options.pause_ns.saturating_mul(pauses))
            }
            Timing::Schedule(_) => self.position.due,
            Timing::Stamps => 0,
        }
    }

    fn stamp_by(&mut self, clock: clocks::Clock) {
        self.stamps = clock;
    }

    fn seen(&self) -> Option<&Seen> {
        Some(&self.seen)
    }

    fn give_back(&mut self, frames: usize) {
        self.seen.give_back(frames);
    }

    fn overdue(&mut self, until: u64, most: u64, deadline: Instant) -> Option<Overdue> {
        let never = matches!(
            (&self.options.timing, &self.schedule),
            (Timing::Stamps, _) | (Timing::Schedule(_), Schedule::TopSpeed)
        );
        // Anybody can work it out, or nothing is ever due.
        if never || self.is_formula() {
            return None;
        }
        // What is read on for this alone is in no figure, and nobody is asked or told.
        let (seen, hooks) = (std::mem::take(&mut self.seen), std::mem::take(&mut self.hooks));
        let (pass, in_pass) = (self.pass, self.in_pass);
        // Who writes into a pipe may keep one waiting, so of those only what is ready counts.
        let waits = self.inputs.iter().flat_map(Input::readers).any(|reader| reader.file_len().is_none());
        let mut overdue = Overdue::default();
        while overdue.frames < most {
            let looks = overdue.frames > 0 && overdue.frames.is_multiple_of(LOOK_EVERY);
            if overdue.frames > 0 && waits || looks && Instant::now() >= deadline {
                overdue.at_least = true;
                break;
            }
            if self.ready().ok().flatten().is_none_or(|due| due > until) {
                break;
            }
            self.pass_by(self.frame.data.len() as u32);
            overdue.frames += 1;
        }
        (self.seen, self.hooks, self.pass, self.in_pass) = (seen, hooks, pass, in_pass);
        Some(overdue)
    }
}

#[cfg(test)]
mod tests;
