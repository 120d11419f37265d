//! Frames that follow from their number, made by somebody else: what a plugin yields.
//!
//! ```text
//!   Numbered: load(first, step, count), loaded() --> Row: times, signatures, shares of cores --> sending loop
//! ```

use super::{Facts, Frames, Seen, SourceError};
use crate::Overdue;
use crate::clock::Clock;
use std::fmt;
use std::ops::Range;
use std::time::Instant;
use traffic::executor::{NOTHING, sign_captured};
use traffic::schedule::Position;
use traffic::templates::room_for_signature;
use traffic::{Buffers, Schedule};
use wire::LinkType;
use wire::layers::Layers;
use wire::signature::Signature;

/// Makes frames by their numbers, some at a time.
pub trait Numbered: fmt::Debug + Send {
    /// For messages.
    fn name(&self) -> &str;

    /// Length of the longest frame in bytes, without FCS.
    fn longest(&self) -> usize;

    /// How many frames there are; `None`: without end.
    fn total(&self) -> Option<u64>;

    /// Makes the frames `first`, `first + step`, ..., `count` of them, all of which there are. [`BATCH`](traffic::executor::BATCH)
    /// at most are asked for.
    ///
    /// # Errors
    /// They cannot be made: the source is of no use any more.
    fn load(&mut self, first: u64, step: u64, count: usize) -> Result<(), SourceError>;

    /// The frames made last: the bytes they stand in, and the place of each.
    fn loaded(&self) -> (&[u8], &[Range<usize>]);

    /// The same frames for another core.
    ///
    /// # Errors
    /// There cannot be another.
    fn again(&self) -> Result<Box<dyn Numbered>, SourceError>;
}

/// [`Numbered`] frames as a source: each with its time, shared out among cores frame by frame.
#[derive(Debug)]
pub struct Row {
    frames: Box<dyn Numbered>,
    schedule: Schedule,
    position: Position,
    sign: Option<u32>,
    /// A frame without room for its signature is a fault.
    sign_each: bool,
    stamps: Clock,
    seen: Seen,
    /// The number of the next frame, and from one to the next.
    next: u64,
    step: u64,
    /// Frames that are loaded, and how many of them were taken.
    loaded: usize,
    taken: usize,
    /// What went wrong behind frames that could still be sent; reported when those have left.
    fault: Option<SourceError>,
    ended: bool,
}

/// Frames loaded at once.
const LOAD: usize = traffic::executor::BATCH;

impl Row {
    /// All of `frames`, as fast as it goes.
    pub fn new(frames: Box<dyn Numbered>) -> Row {
        Row {
            frames,
            schedule: Schedule::TopSpeed,
            position: Position::default(),
            sign: None,
            sign_each: false,
            stamps: Clock::Monotonic,
            seen: Seen::default(),
            next: 0,
            step: 1,
            loaded: 0,
            taken: 0,
            fault: None,
            ended: false,
        }
    }

    /// The first frame that is to be signed and has no room for it is a fault; else such frames are sent as they are, and counted.
    #[must_use]
    pub fn signing_each(self) -> Row {
        Row { sign_each: true, ..self }
    }

    /// Frames that are still to come, those that are loaded among them.
    fn left(&self) -> u64 {
        match self.frames.total() {
            Some(total) => total.saturating_sub(self.next).div_ceil(self.step),
            None => u64::MAX,
        }
    }

    /// Sees to it that a frame is loaded. False at the end.
    fn ready(&mut self) -> Result<bool, SourceError> {
        if self.taken < self.loaded {
            return Ok(!self.ended);
        }
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        if self.ended || self.schedule.ends_before(self.position.due) {
            self.ended = true;
            return Ok(false);
        }
        let count = usize::try_from(self.left()).unwrap_or(LOAD).min(LOAD);
        if count == 0 {
            self.ended = true;
            return Ok(false);
        }
        if let Err(fault) = self.frames.load(self.next, self.step, count) {
            self.ended = true;
            return Err(fault);
        }
        (self.loaded, self.taken) = (count, 0);
        Ok(true)
    }

    /// The frame that is ready is done with.
    fn pass_by(&mut self, length: usize) {
        self.position.advance(&self.schedule, length as u32);
        self.next = self.next.saturating_add(self.step);
        self.taken += 1;
        self.ended |= self.schedule.ends_before(self.position.due);
    }
}

/// Signs a frame that has room for it.
fn sign(seen: &mut Seen, stream: u32, stamps: Clock, frame: &mut [u8]) {
    if has_room(frame) {
        let [sequence, _] = seen.signed;
        sign_captured(frame, Signature { stream, sequence, time: clocks::now(stamps) });
        seen.signed[0] += 1;
    } else {
        seen.unsigned += 1;
    }
}

fn has_room(frame: &[u8]) -> bool {
    room_for_signature(&Layers::parse(LinkType::ETHERNET, frame), frame)
}

impl Frames for Row {
    fn facts(&self) -> Facts {
        Facts {
            paced: self.schedule.is_paced(),
            // A worker that begins later than the first follows the formula shifted.
            is_formula: self.step == 1
                && matches!(self.schedule, Schedule::Frames { .. })
                && self.frames.total().is_none(),
            frames: self.frames.total(),
            longest: Some(self.frames.longest()),
            streams: self.sign.into_iter().collect(),
            all_signed: false,
            counts_flows: false,
        }
    }

    fn schedule(&self) -> Option<&Schedule> {
        Some(&self.schedule)
    }

    fn next_due(&mut self) -> Result<Option<u64>, SourceError> {
        Ok(self.ready()?.then_some(self.position.due))
    }

    fn fill(
        &mut self,
        buffers: &mut Buffers<'_>,
        max: usize,
        until: u64,
        due: &mut [u64],
    ) -> Result<usize, SourceError> {
        let most = max.min(due.len()).min(buffers.lengths.len()).min(buffers.held.len());
        let paced = self.schedule.is_paced();
        let mut count = 0;
        self.seen.begin();
        while count < most {
            match self.ready() {
                Ok(true) => {}
                Ok(false) => break,
                Err(fault) if count == 0 => return Err(fault),
                // What came before it still leaves.
                Err(fault) => {
                    self.fault = Some(fault);
                    break;
                }
            }
            let before = count;
            let Row { frames, schedule, position, seen, next, .. } = self;
            let (bytes, places) = frames.loaded();
            let mut fault = None;
            let own = places.get(self.taken..self.loaded).unwrap_or_default();
            for place in own.iter().take(most - count) {
                let at = position.due;
                if paced && (at > until || schedule.ends_before(at)) {
                    break;
                }
                let frame = bytes.get(place.clone()).unwrap_or_default();
                let buffer = buffers.bytes.get_mut(count * buffers.stride..).unwrap_or_default();
                let (length, room) = (frame.len(), buffers.stride.min(buffer.len()));
                let Some(into) = buffer.get_mut(..length).filter(|_| length > 0 && length <= room) else {
                    let source_name = frames.name().to_owned();
                    let number = next.saturating_add(1);
                    fault = Some(SourceError::Outsized { source_name, number, length, limit: room });
                    break;
                };
                if self.sign_each && self.sign.is_some() && !has_room(frame) {
                    let source_name = frames.name().to_owned();
                    fault =
                        Some(SourceError::Unsigned { source_name, number: next.saturating_add(1), length });
                    break;
                }
                into.copy_from_slice(frame);
                seen.frame(0, into);
                if let Some(stream) = self.sign {
                    sign(seen, stream, self.stamps, into);
                }
                buffers.held[count] = NOTHING;
                buffers.lengths[count] = length as u32;
                due[count] = at;
                position.advance(schedule, length as u32);
                *next = next.saturating_add(self.step);
                count += 1;
            }
            let made = count - before;
            self.taken += made;
            self.ended |= self.schedule.ends_before(self.position.due);
            if let Some(fault) = fault {
                (self.ended, self.loaded) = (true, self.taken);
                if count == 0 {
                    return Err(fault);
                }
                self.fault = Some(fault);
            }
            if made == 0 {
                break;
            }
        }
        Ok(count)
    }

    fn end(&mut self) -> u64 {
        self.position.due
    }

    fn pace(&mut self, schedule: Schedule) -> bool {
        if matches!(schedule, Schedule::Times { .. } | Schedule::Shaped(_)) {
            return false;
        }
        (self.schedule, self.position) = (schedule, Position::default());
        true
    }

    fn sign(&mut self, stream: u32) -> bool {
        self.sign = Some(stream);
        true
    }

    fn stamp_by(&mut self, clock: Clock) {
        self.stamps = clock;
    }

    fn seen(&self) -> Option<&Seen> {
        Some(&self.seen)
    }

    fn give_back(&mut self, frames: usize) {
        self.seen.give_back(frames);
    }

    fn overdue(&mut self, until: u64, most: u64, deadline: Instant) -> Option<Overdue> {
        if !self.schedule.is_paced() {
            return None;
        }
        let mut overdue = Overdue::default();
        while overdue.frames < most && self.ready().unwrap_or(false) && self.position.due <= until {
            if Instant::now() >= deadline {
                overdue.at_least = true;
                break;
            }
            let length = self.frames.loaded().1.get(self.taken).map_or(0, Range::len);
            self.pass_by(length);
            overdue.frames += 1;
        }
        Some(overdue)
    }

    fn share(&self, worker: u32, of: u32) -> Option<Result<Box<dyn Frames>, SourceError>> {
        let (own, all) = (u64::from(worker), u64::from(of.max(1)));
        let (schedule, due) = match &self.schedule {
            Schedule::TopSpeed => (Schedule::TopSpeed, 0),
            // Workers begin one after the other, so that together they keep the rate of the whole.
            Schedule::Frames { frames, per_ns } => {
                let due = (u128::from(own) * u128::from(*per_ns)).checked_div(u128::from(*frames))?;
                (
                    Schedule::Frames { frames: *frames, per_ns: per_ns.checked_mul(all)? },
                    u64::try_from(due).ok()?,
                )
            }
            // When a frame is due by bits depends on the lengths of all before it, and a worker knows those of its own only.
            Schedule::Bits { .. }
            | Schedule::Times { .. }
            | Schedule::Bursts { .. }
            | Schedule::Steps { .. }
            | Schedule::Shaped(_) => return None,
        };
        let frames = match self.frames.again() {
            Ok(frames) => frames,
            Err(fault) => return Some(Err(fault)),
        };
        let mut position = Position::default();
        position.due = due;
        let sign = self.sign.map(|stream| stream.saturating_mul(of).saturating_add(worker));
        let next = self.next.saturating_add(own);
        let row = Row {
            schedule,
            position,
            sign,
            sign_each: self.sign_each,
            stamps: self.stamps,
            next,
            step: self.step * all,
            ..Row::new(frames)
        };
        Some(Ok(Box::new(row)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::null::NullTx;
    use crate::source::Source;
    use crate::{Control, Ended, Job, worker};
    use traffic::Slab;

    /// Frame `n` begins with `n`.
    #[derive(Debug, Clone)]
    struct Made {
        total: Option<u64>,
        frames: Vec<u8>,
        places: Vec<Range<usize>>,
        /// From this number on there are none.
        broken: u64,
    }

    impl Made {
        fn new(total: Option<u64>) -> Box<Made> {
            Box::new(Made { total, frames: Vec::new(), places: Vec::new(), broken: u64::MAX })
        }
    }

    impl Numbered for Made {
        fn name(&self) -> &str {
            "made"
        }

        fn longest(&self) -> usize {
            66
        }

        fn total(&self) -> Option<u64> {
            self.total
        }

        fn load(&mut self, first: u64, step: u64, count: usize) -> Result<(), SourceError> {
            let frame = |n: u64| [&n.to_be_bytes()[..], &vec![0xee; 52 + (n % 7) as usize]].concat();
            if first + step * (count as u64 - 1) >= self.broken {
                return Err(SourceError::Other("out of frames".into()));
            }
            assert!(self.total.is_none_or(|total| first + step * (count as u64 - 1) < total));
            self.frames.clear();
            self.places.clear();
            for i in 0..count as u64 {
                let start = self.frames.len();
                self.frames.extend(frame(first + step * i));
                self.places.push(start..self.frames.len());
            }
            Ok(())
        }

        fn loaded(&self) -> (&[u8], &[Range<usize>]) {
            (&self.frames, &self.places)
        }

        fn again(&self) -> Result<Box<dyn Numbered>, SourceError> {
            Ok(Box::new(self.clone()))
        }
    }

    /// Numbers and times of all frames.
    fn all(frames: &mut dyn Frames) -> Vec<(u64, u64)> {
        let mut slab = Slab::new(64, 1500);
        let (mut due, mut all) = ([0; 64], Vec::new());
        while frames.next_due().expect("sound").is_some() {
            let count = frames.fill(&mut slab.buffers(), 50, u64::MAX, &mut due).expect("sound");
            let number = |i| u64::from_be_bytes(slab.frame(i)[..8].try_into().expect("eight bytes"));
            all.extend((0..count).map(|i| (number(i), due[i])));
        }
        all
    }

    #[test]
    fn cores_share_frames_out_without_one_missing_and_keep_the_rate_together() {
        for (schedule, per_frame) in
            [(Schedule::TopSpeed, 0), (Schedule::Frames { frames: 1, per_ns: 900 }, 900)]
        {
            let mut whole = Row::new(Made::new(Some(1_000)));
            assert!(whole.pace(schedule));
            let mut shared: Vec<(u64, u64)> = Vec::new();
            for worker in 0..3 {
                shared.extend(all(whole.share(worker, 3).expect("shares").expect("another").as_mut()));
            }
            shared.sort_unstable();
            let expected: Vec<_> = (0..1_000).map(|n| (n, n * per_frame)).collect();
            assert_eq!(shared, expected);
            assert_eq!(all(&mut whole), expected);
        }
        for schedule in [
            Schedule::Bursts { frames: 3, gap_ns: 10, period_ns: 1000 },
            // The lengths of a worker's own frames do not say when they are due.
            Schedule::Bits { bits_per_second: 1_000_000, overhead_bytes: 24 },
        ] {
            let mut whole = Row::new(Made::new(None));
            assert!(whole.pace(schedule));
            assert!(whole.share(0, 2).is_none());
        }
    }

    #[test]
    fn frames_without_room_for_a_signature_are_counted_or_a_fault() {
        let mut slab = Slab::new(8, 1500);
        let mut row = Row::new(Made::new(None));
        assert!(row.sign(0));
        let filled = row.fill(&mut slab.buffers(), 8, u64::MAX, &mut [0; 8]).expect("sound");
        row.give_back(3);
        let seen = row.seen().expect("it counts");
        assert_eq!((filled, seen.unsigned, seen.signed), (8, 5, [0, 0]));
        let mut each = Row::new(Made::new(None)).signing_each();
        assert!(each.sign(0));
        let fault = each.fill(&mut slab.buffers(), 8, u64::MAX, &mut [0; 8]).expect_err("no room");
        assert!(fault.to_string().starts_with("made: frame 1 of 60 bytes has no room"), "{fault}");
        let mut shared = each.share(1, 2).expect("shares").expect("another");
        let fault = shared.fill(&mut slab.buffers(), 8, u64::MAX, &mut [0; 8]).expect_err("no room");
        assert!(fault.to_string().starts_with("made: frame 2 of 61 bytes"), "{fault}");
    }

    #[test]
    fn what_came_before_a_fault_is_sent_and_the_fault_is_told() {
        let mut made = Made::new(None);
        made.broken = 130;
        let mut job = Job::of(Source::from(Row::new(made)));
        let sent = worker::run(&mut [&mut NullTx::new(1600)], &mut job, &Control::default(), true);
        assert_eq!(sent.counters.frames, 128);
        let Ended::SourceFault(fault) = sent.ended else { panic!("{:?}", sent.ended) };
        assert_eq!(fault.to_string(), "out of frames");
        // Buffers that are too small for what comes.
        let mut job = Job::of(Source::from(Row::new(Made::new(None))));
        let sent = worker::run(&mut [&mut NullTx::new(64)], &mut job, &Control::default(), true);
        assert!(sent.counters.frames < 128, "{}", sent.counters.frames);
        let Ended::SourceFault(fault) = sent.ended else { panic!("{:?}", sent.ended) };
        assert!(fault.to_string().starts_with("made: frame "), "{fault}");
    }
}
