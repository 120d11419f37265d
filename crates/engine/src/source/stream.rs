//! Captures sent while they are read: memory stays bounded however large they are.

use super::preload::{Limit, mean_gap};
use super::{Frames, SourceError};
use crate::clock;
use capture::Reader;
use traffic::executor::{NOTHING, sign_captured, spread_addresses};
use traffic::schedule::{Position, Speed};
use traffic::templates::{Addresses, low_words, room_for_signature};
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
}

/// What is changed on the way, and how often it is read.
#[derive(Debug, Clone)]
pub struct Options {
    /// Passes; `None`: without end.
    pub loops: Option<u64>,
    /// Each pass gets addresses of its own.
    pub unique: bool,
    /// Frames with room for it carry a signature of this stream.
    pub sign: Option<u32>,
    /// What the interface takes.
    pub limit: Limit,
    /// When frames leave.
    pub timing: Timing,
}

/// Counted while reading.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// Frames longer than the interface takes, left out.
    pub oversized: u64,
    /// Frames without a byte, left out.
    pub empty: u64,
    /// Frames captured shorter than they were, sent as captured.
    pub truncated: u64,
    /// Frames whose time lay before that of the frame before.
    pub backwards: u64,
    /// Signed frames.
    pub signed: u64,
    /// What a lenient reader found wrong.
    pub cut_short: Vec<String>,
}

/// Reads captures in order, again and again.
#[derive(Debug)]
pub struct StreamSource {
    readers: Vec<Reader>,
    options: Options,
    schedule: Schedule,
    /// Frames go into buffers of this size.
    longest: usize,
    /// What was counted.
    pub seen: Seen,
    /// The next frame as captured, and when it is due.
    frame: Vec<u8>,
    cut: bool,
    ready: Option<u64>,
    file: usize,
    pass: u64,
    /// Capture time at which the present file begins, unscaled, from the run's start.
    base: u128,
    /// Time of the present file's first frame.
    first: Option<u64>,
    /// Offset of the latest frame in the file.
    last: u64,
    /// Frames taken from the present file, and in the present pass.
    in_file: u64,
    in_pass: u64,
    /// All passes are done.
    ended: bool,
    /// What went wrong behind frames that could still be sent; told when those have left.
    fault: Option<SourceError>,
    /// Where a schedule that does not need the capture's times is.
    position: Position,
}

impl StreamSource {
    /// Streams `readers`, which stand at their beginnings. Frames go into buffers of `longest` bytes.
    pub fn new(readers: Vec<Reader>, options: Options, longest: usize) -> StreamSource {
        let schedule = match &options.timing {
            Timing::Capture(_) => Schedule::TopSpeed,
            Timing::Schedule(schedule) => schedule.clone(),
        };
        StreamSource {
            readers,
            options,
            schedule,
            longest,
            seen: Seen::default(),
            frame: Vec::with_capacity(2048),
            cut: false,
            ready: None,
            file: 0,
            pass: 0,
            base: 0,
            first: None,
            last: 0,
            in_file: 0,
            in_pass: 0,
            ended: false,
            fault: None,
            position: Position::default(),
        }
    }

    /// The schedule; top speed stands for the capture's own timing, which has no closed form.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// Is there a schedule, the capture's own included?
    pub fn is_paced(&self) -> bool {
        matches!(self.options.timing, Timing::Capture(_)) || self.schedule.is_paced()
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
            if self.file == self.readers.len() {
                if !self.next_pass()? {
                    return Ok(None);
                }
                continue;
            }
            let reader = &mut self.readers[self.file];
            let Some(record) = reader.next_record()? else {
                if let Some(why) = &reader.notes().cut_short
                    && self.pass == 0
                {
                    self.seen.cut_short.push(why.clone());
                }
                self.base += u128::from(self.last) + u128::from(mean_gap(self.last, self.in_file));
                (self.first, self.last, self.in_file) = (None, 0, 0);
                self.file += 1;
                continue;
            };
            let (time, number, link, cut) =
                (record.time_ns, record.number, record.link, record.data.len() < record.wire_len as usize);
            self.frame.clear();
            self.frame.extend_from_slice(record.data);
            if link != LinkType::ETHERNET {
                let file = self.readers[self.file].name().to_string();
                return Err(SourceError::LinkType { file, number, link });
            }
            if self.frame.is_empty() {
                self.seen.empty += 1;
                continue;
            }
            let admitted = self.options.limit.admits(self.readers[self.file].name(), number, &self.frame)?;
            if !admitted || self.frame.len() > self.longest {
                self.seen.oversized += 1;
                continue;
            }
            let start = *self.first.get_or_insert(time);
            let offset = time.saturating_sub(start);
            self.seen.backwards += u64::from(offset < self.last);
            self.last = self.last.max(offset);
            self.cut = cut;
            self.in_file += 1;
            self.in_pass += 1;
            self.ready = Some(match self.options.timing {
                Timing::Capture(speed) => speed.scale(self.base + u128::from(self.last)),
                Timing::Schedule(_) => self.position.due,
            });
        }
        Ok(self.ready)
    }

    /// Goes back to the first file. False when there is no further pass.
    fn next_pass(&mut self) -> Result<bool, SourceError> {
        let names = || self.readers.iter().map(Reader::name).collect::<Vec<_>>().join(", ");
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
        for reader in &mut self.readers {
            reader.rewind()?;
        }
        (self.file, self.in_pass) = (0, 0);
        Ok(true)
    }

    /// Changes the frame that is ready as asked, into `buffer`.
    fn render(&mut self, buffer: &mut [u8]) -> u32 {
        let frame = &mut buffer[..self.frame.len()];
        frame.copy_from_slice(&self.frame);
        if self.options.unique || self.options.sign.is_some() {
            let layers = Layers::parse(LinkType::ETHERNET, frame);
            if self.options.unique && self.pass > 0 {
                let (addresses, at, size) = match layers.l3 {
                    L3::V4 => (Addresses::V4(layers.l3_offset + 12), layers.l3_offset + 12, 4),
                    L3::V6 => (Addresses::V6(layers.l3_offset + 8), layers.l3_offset + 8, 16),
                    _ => (Addresses::None, 0, 0),
                };
                if let Some((source, destination)) = low_words(frame, at, size) {
                    spread_addresses(frame, addresses, source < destination, self.pass);
                }
            }
            if let Some(stream) = self.options.sign
                && room_for_signature(&layers, frame)
            {
                sign_captured(frame, Signature { stream, sequence: self.seen.signed, time: clock::now() });
                self.seen.signed += 1;
            }
        }
        frame.len() as u32
    }
}

impl Frames for StreamSource {
    fn next_due(&mut self) -> Result<Option<u64>, SourceError> {
        self.ready()
    }

    fn fill(
        &mut self,
        buffers: &mut Buffers<'_>,
        max: usize,
        until: u64,
        due: &mut [u64],
    ) -> Result<usize, SourceError> {
        let most = max.min(due.len()).min(buffers.lengths.len());
        let paced = self.is_paced();
        let mut count = 0;
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
            let Some(buffer) = buffers.bytes.get_mut(count * buffers.stride..) else { break };
            if buffer.len() < self.frame.len() {
                break;
            }
            let length = self.render(buffer);
            self.seen.truncated += u64::from(self.cut);
            buffers.held[count] = NOTHING;
            buffers.lengths[count] = length;
            due[count] = at;
            self.position.advance(&self.schedule, length);
            self.ready = None;
            count += 1;
        }
        Ok(count)
    }

    fn end(&mut self) -> u64 {
        match self.options.timing {
            Timing::Capture(speed) => speed.scale(self.base),
            Timing::Schedule(_) => self.position.due,
        }
    }

    fn is_paced(&self) -> bool {
        StreamSource::is_paced(self)
    }
}
