//! Frames of anybody's iterator: what a library's user, a plugin or a script yields one by one.

use super::{Facts, Frames, Seen, SourceError};
use crate::Overdue;
use crate::clock::Clock;
use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::time::Instant;
use traffic::executor::{NOTHING, sign_captured};
use traffic::schedule::Position;
use traffic::templates::room_for_signature;
use traffic::{Buffers, Schedule};
use wire::LinkType;
use wire::layers::Layers;
use wire::signature::Signature;

/// Frames that an iterator yields, each an Ethernet frame without FCS, with the nanosecond from the start of the run at which
/// it is due.
///
/// The sending thread calls the iterator while it has nothing else to do: one that waits for something holds up all frames
/// behind, and a run that is to end, too.
///
/// ```
/// use netdyno_engine::source::{Frames, Sequence};
///
/// // Ten frames, a millisecond apart.
/// let frames = (0..10u8).map(|n| (u64::from(n) * 1_000_000, vec![n; 60]));
/// let mut frames = Sequence::timed("ten frames", frames);
/// assert_eq!(frames.facts().frames, Some(10));
/// assert_eq!(frames.next_due().unwrap(), Some(0));
/// ```
pub struct Sequence<I> {
    name: String,
    frames: I,
    /// How many there are, if the iterator knows.
    total: Option<u64>,
    timing: Timing,
    sign: Option<u32>,
    stamps: Clock,
    seen: Seen,
    /// The next frame, and when it is due.
    ready: Option<u64>,
    frame: Vec<u8>,
    /// Frames taken from the iterator.
    taken: u64,
    ended: bool,
    /// What went wrong behind frames that could still be sent; reported when those have left.
    fault: Option<SourceError>,
}

#[derive(Debug)]
enum Timing {
    /// The frames' own times. The latest so far.
    Own(u64),
    /// A schedule, and where it is.
    Schedule(Schedule, Position),
}

impl<I> fmt::Debug for Sequence<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Sequence { name, total, timing, taken, .. } = self;
        f.debug_struct("Sequence")
            .field("name", name)
            .field("total", total)
            .field("timing", timing)
            .field("taken", taken)
            .finish_non_exhaustive()
    }
}

/// What an iterator that may fail yields: when a frame is due, in nanoseconds from the start, and its bytes.
type Item<B, E> = Result<(u64, B), E>;

impl Sequence<()> {
    /// Frames with times that do not decrease; one that does is due at once behind the one before. `name`: for messages.
    pub fn timed<B: AsRef<[u8]>, I: Iterator<Item = (u64, B)>>(
        name: impl Into<String>,
        frames: I,
    ) -> Sequence<impl Iterator<Item = Item<B, Infallible>>> {
        Sequence::fallible(name, frames.map(Ok))
    }

    /// Frames without times: they leave by the rate of the job, or as fast as it goes.
    pub fn untimed<B: AsRef<[u8]>, I: Iterator<Item = B>>(
        name: impl Into<String>,
        frames: I,
    ) -> Sequence<impl Iterator<Item = Item<B, Infallible>>> {
        let mut sequence = Sequence::fallible(name, frames.map(|frame| Ok((0, frame))));
        sequence.timing = Timing::Schedule(Schedule::TopSpeed, Position::default());
        sequence
    }

    /// As [`Sequence::timed`], of an iterator that may fail: what it yielded before is sent, and the run falls short of what
    /// was asked for.
    pub fn fallible<B, E, I>(name: impl Into<String>, frames: I) -> Sequence<I>
    where
        B: AsRef<[u8]>,
        I: Iterator<Item = Item<B, E>>,
    {
        let total = match frames.size_hint() {
            (least, Some(most)) if least == most => Some(most as u64),
            _ => None,
        };
        Sequence {
            name: name.into(),
            frames,
            total,
            timing: Timing::Own(0),
            sign: None,
            stamps: Clock::Monotonic,
            seen: Seen::default(),
            ready: None,
            frame: Vec::new(),
            taken: 0,
            ended: false,
            fault: None,
        }
    }
}

impl<B, E, I> Sequence<I>
where
    B: AsRef<[u8]>,
    E: Into<Box<dyn Error + Send + Sync>>,
    I: Iterator<Item = Item<B, E>>,
{
    fn is_paced(&self) -> bool {
        match &self.timing {
            Timing::Own(_) => true,
            Timing::Schedule(schedule, _) => schedule.is_paced(),
        }
    }

    /// Makes the next frame ready, and says when it is due. `None` at the end.
    fn ready(&mut self) -> Result<Option<u64>, SourceError> {
        if self.ready.is_some() {
            return Ok(self.ready);
        }
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        if self.ended {
            return Ok(None);
        }
        if let Timing::Schedule(schedule, position) = &self.timing
            && schedule.ends_before(position.due)
        {
            self.ended = true;
            return Ok(None);
        }
        match self.frames.next() {
            None => self.ended = true,
            Some(Err(error)) => {
                self.ended = true;
                return Err(SourceError::Other(error.into()));
            }
            Some(Ok((due, frame))) => {
                self.frame.clear();
                self.frame.extend_from_slice(frame.as_ref());
                self.taken += 1;
                self.ready = Some(match &mut self.timing {
                    Timing::Own(latest) => {
                        *latest = due.max(*latest);
                        *latest
                    }
                    Timing::Schedule(_, position) => position.due,
                });
            }
        }
        Ok(self.ready)
    }

    /// The frame that is ready is done with.
    fn pass_by(&mut self) {
        if let Timing::Schedule(schedule, position) = &mut self.timing {
            position.advance(schedule, self.frame.len() as u32);
        }
        self.ready = None;
    }

    /// Puts the frame that is ready into `buffer`, which has room for it.
    fn render(&mut self, buffer: &mut [u8]) {
        let frame = &mut buffer[..self.frame.len()];
        frame.copy_from_slice(&self.frame);
        self.seen.frame(0, frame);
        let layers = Layers::parse(LinkType::ETHERNET, frame);
        self.seen.flow(0, &layers, frame, 0);
        if let Some(stream) = self.sign
            && room_for_signature(&layers, frame)
        {
            let [sequence, _] = self.seen.signed;
            sign_captured(frame, Signature { stream, sequence, time: clocks::now(self.stamps) });
            self.seen.signed[0] += 1;
        }
    }
}

impl<B, E, I> Frames for Sequence<I>
where
    B: AsRef<[u8]>,
    E: Into<Box<dyn Error + Send + Sync>>,
    I: Iterator<Item = Item<B, E>> + Send,
{
    fn facts(&self) -> Facts {
        Facts {
            paced: self.is_paced(),
            frames: self.total,
            streams: self.sign.into_iter().collect(),
            counts_flows: true,
            ..Facts::default()
        }
    }

    fn schedule(&self) -> Option<&Schedule> {
        match &self.timing {
            Timing::Own(_) => None,
            Timing::Schedule(schedule, _) => Some(schedule),
        }
    }

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
        let most = max.min(due.len()).min(buffers.lengths.len()).min(buffers.held.len());
        let paced = self.is_paced();
        let mut count = 0;
        self.seen.begin();
        while count < most {
            let at = match self.ready() {
                Ok(Some(at)) => at,
                Ok(None) => break,
                Err(fault) if count == 0 => return Err(fault),
                // What came before it still leaves.
                Err(fault) => {
                    self.fault = Some(fault);
                    break;
                }
            };
            if paced && at > until {
                break;
            }
            let Some(buffer) = buffers.bytes.get_mut(count * buffers.stride..) else { break };
            let room = buffers.stride.min(buffer.len());
            if self.frame.is_empty() || self.frame.len() > room {
                let fault = SourceError::Outsized {
                    source_name: self.name.clone(),
                    number: self.taken,
                    length: self.frame.len(),
                    limit: room,
                };
                (self.ended, self.ready) = (true, None);
                if count == 0 {
                    return Err(fault);
                }
                self.fault = Some(fault);
                break;
            }
            self.render(buffer);
            buffers.held[count] = NOTHING;
            buffers.lengths[count] = self.frame.len() as u32;
            due[count] = at;
            self.pass_by();
            count += 1;
        }
        Ok(count)
    }

    fn end(&mut self) -> u64 {
        match &self.timing {
            Timing::Own(latest) => *latest,
            Timing::Schedule(_, position) => position.due,
        }
    }

    fn pace(&mut self, schedule: Schedule) -> bool {
        self.timing = Timing::Schedule(schedule, Position::default());
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
        if !self.is_paced() {
            return None;
        }
        let mut overdue = Overdue::default();
        while overdue.frames < most && self.ready().ok().flatten().is_some_and(|due| due <= until) {
            if Instant::now() >= deadline {
                overdue.at_least = true;
                break;
            }
            self.pass_by();
            overdue.frames += 1;
        }
        Some(overdue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::null::NullTx;
    use crate::source::Source;
    use crate::{Control, Ended, Job, worker};
    use traffic::Slab;

    /// Frame `n` of some.
    fn frame(n: u64) -> Vec<u8> {
        let mut frame = vec![0xee; 60 + (n % 7) as usize];
        frame[..8].copy_from_slice(&n.to_be_bytes());
        frame
    }

    #[test]
    fn frames_come_as_they_are_in_order_each_with_its_time() {
        let mut frames = Sequence::timed("some", (0..200u64).map(|n| (n / 3 * 1000, frame(n))));
        let mut slab = Slab::new(64, 1500);
        let (mut due, mut n, mut until) = ([0; 64], 0, 0);
        while let Some(next) = frames.next_due().expect("sound") {
            until = next.max(until + 7_000);
            let count = frames.fill(&mut slab.buffers(), 64, until, &mut due).expect("sound");
            assert!(count > 0);
            for (i, due) in due[..count].iter().enumerate() {
                assert_eq!((slab.frame(i), *due), (&frame(n)[..], n / 3 * 1000), "{n}");
                n += 1;
            }
            assert!(n == 200 || n / 3 * 1000 > until, "{n} is due by {until}");
        }
        assert_eq!((n, frames.end()), (200, 199 / 3 * 1000));
    }

    #[test]
    fn a_rate_takes_the_place_of_the_frames_own_times() {
        let mut source = Source::from(Sequence::untimed("some", (0..100u64).map(frame)));
        assert!(!source.is_paced());
        assert!(source.pace(Schedule::Frames { frames: 1000, per_ns: 1_000_000 }));
        assert!(source.is_paced());
        let mut job = Job::of(source);
        let sent = worker::run(&mut [&mut NullTx::new(1600)], &mut job, &Control::default(), false);
        assert!(matches!(sent.ended, Ended::Done) && sent.exhausted);
        assert_eq!((sent.counters.frames, sent.duration_ns), (100, 100_000));
    }

    #[test]
    fn what_came_before_a_fault_is_sent_and_the_fault_is_told() {
        let broken = (0..10u64).map(|n| if n < 7 { Ok((0, frame(n))) } else { Err("out of frames") });
        let mut job = Job::of(Sequence::fallible("broken", broken));
        let sent = worker::run(&mut [&mut NullTx::new(1600)], &mut job, &Control::default(), true);
        assert_eq!(sent.counters.frames, 7);
        let Ended::SourceFault(fault) = sent.ended else { panic!("{:?}", sent.ended) };
        assert_eq!(fault.to_string(), "out of frames");
        for wrong in [0, 1700] {
            let frames = [frame(0), frame(1), vec![0; wrong], frame(3)];
            let mut job = Job::of(Sequence::untimed("some", frames.into_iter()));
            let sent = worker::run(&mut [&mut NullTx::new(1600)], &mut job, &Control::default(), true);
            assert_eq!(sent.counters.frames, 2, "{wrong}");
            let Ended::SourceFault(fault) = sent.ended else { panic!("{:?}", sent.ended) };
            assert!(fault.to_string().contains(&format!("some: frame 3 has {wrong} bytes")), "{fault}");
        }
    }

    #[test]
    fn what_was_due_and_not_taken_is_counted() {
        let mut frames = Sequence::timed("some", (0..100u64).map(|n| (n * 10, frame(n))));
        let mut slab = Slab::new(64, 1500);
        assert_eq!(frames.fill(&mut slab.buffers(), 5, 1_000, &mut [0; 64]).expect("sound"), 5);
        let later = Instant::now() + std::time::Duration::from_secs(3600);
        let overdue = frames.overdue(200, u64::MAX, later);
        assert_eq!(overdue, Some(Overdue { frames: 16, at_least: false }));
    }
}
