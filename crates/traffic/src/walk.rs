//! Whose frame comes next, and when: the lanes of a program merged by due time, without making any frame.

use crate::lengths::Lengths;
use crate::program::{BadProgram, Lane, Program, Stream};
use crate::schedule::{Cursor, Position, Schedule};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// A frame's place in the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// When it is due, from the start of the run.
    pub due: u64,
    /// Its stream.
    pub stream: u32,
    /// Its number in the stream.
    pub index: u64,
}

/// Walks a program's frames in the order in which they leave.
#[derive(Debug, Clone)]
pub struct Walk<'p> {
    streams: &'p [Stream],
    lanes: Vec<LaneWalk<'p>>,
    /// Lanes that have frames left, by when; not used for a single lane.
    queue: BinaryHeap<Reverse<(u64, u32)>>,
    /// For each stream the number of its next frame.
    indices: Vec<u64>,
    /// The cursors stand where the lanes do. A single lane needs none to know the order, and finding the time of a
    /// frame takes long where it depends on the lengths of all before; so that waits until somebody asks. Until then
    /// the indices are not kept either.
    timed: bool,
}

#[derive(Debug, Clone)]
struct LaneWalk<'p> {
    lane: &'p Lane,
    cursor: Cursor<'p>,
    /// Place of the next frame in the order.
    position: usize,
    /// The next frame's number.
    n: u64,
    /// How many there are.
    limit: u64,
    /// What the schedule is told as each frame's length; `None`: it needs the frame's own.
    length: Option<u32>,
}

impl LaneWalk<'_> {
    fn due(&self) -> u64 {
        self.lane.start_ns.saturating_add(self.cursor.due())
    }

    fn has_left(&self) -> bool {
        self.n < self.limit
    }

    fn go_to(&mut self, n: u64) {
        self.n = n;
        self.position = (n % self.lane.order.len() as u64) as usize;
    }

    /// Moves past the next frame: its stream and number.
    #[inline]
    fn take(&mut self, streams: &[Stream], indices: &mut [u64]) -> (u32, u64) {
        let stream = self.lane.order[self.position];
        self.position += 1;
        if self.position == self.lane.order.len() {
            self.position = 0;
        }
        self.n += 1;
        let next = &mut indices[stream as usize];
        let index = *next;
        *next += 1;
        let length = self.length.unwrap_or_else(|| streams[stream as usize].length_of(index));
        self.cursor.advance(length);
        (stream, index)
    }
}

impl<'p> Walk<'p> {
    /// From frame 0.
    ///
    /// # Errors
    /// The program contradicts itself ([`Program::check`]).
    pub fn new(program: &'p Program) -> Result<Walk<'p>, BadProgram> {
        program.check()?;
        Ok(Walk::of(program))
    }

    /// From frame 0 of a program that is known to be sound.
    pub(crate) fn of(program: &'p Program) -> Walk<'p> {
        let lane = |lane: &'p Lane| LaneWalk {
            lane,
            cursor: lane.schedule.cursor(),
            position: 0,
            n: 0,
            limit: lane.limit(),
            length: match lane.schedule {
                Schedule::Bits { .. } => program.only_length_of(lane),
                _ => Some(0),
            },
        };
        let mut walk = Walk {
            streams: &program.streams,
            lanes: program.lanes.iter().map(lane).collect(),
            queue: BinaryHeap::new(),
            indices: vec![0; program.streams.len()],
            timed: true,
        };
        walk.enqueue();
        walk
    }

    fn enqueue(&mut self) {
        self.queue.clear();
        if self.lanes.len() > 1 {
            let left = self.lanes.iter().enumerate().filter(|(_, lane)| lane.has_left());
            self.queue.extend(left.map(|(number, lane)| Reverse((lane.due(), number as u32))));
        }
    }

    /// Goes to frame `n`, or behind the last one.
    pub fn seek(&mut self, n: u64) {
        match &mut self.lanes[..] {
            [] => {}
            [lane] => {
                lane.go_to(n.min(lane.limit));
                self.timed = false;
            }
            _ => match self.merged(n) {
                Some(counts) => {
                    for (lane, count) in self.lanes.iter_mut().zip(counts) {
                        lane.go_to(count);
                    }
                    self.keep_time();
                    self.enqueue();
                }
                None => {
                    for lane in &mut self.lanes {
                        lane.go_to(0);
                    }
                    self.indices.fill(0);
                    self.keep_time();
                    self.enqueue();
                    for _ in 0..n {
                        if self.take_due(u64::MAX).is_none() {
                            break;
                        }
                    }
                    return;
                }
            },
        }
        self.count();
    }

    /// Finds the indices from where the lanes are.
    fn count(&mut self) {
        self.indices.fill(0);
        for lane in &self.lanes {
            let cycles = lane.n / lane.lane.order.len() as u64;
            for (i, &stream) in lane.lane.order.iter().enumerate() {
                self.indices[stream as usize] += cycles + u64::from(i < lane.position);
            }
        }
    }

    /// How many of the first `n` frames are each lane's, where due times have a closed form.
    fn merged(&self, n: u64) -> Option<Vec<u64>> {
        let due_by = |ns: u64| -> Option<Vec<u64>> {
            self.lanes.iter().map(|lane| lane.lane.due_by(ns, lane.length)).collect()
        };
        let total = |counts: &[u64]| counts.iter().fold(0u64, |total, count| total.saturating_add(*count));
        // The first time by which so many are due; of those due at that very time, lower lanes come first.
        let (mut low, mut high) = (0u64, u64::MAX);
        while low < high {
            let middle = low + (high - low) / 2;
            if total(&due_by(middle)?) >= n {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        let mut counts = match low.checked_sub(1) {
            Some(before) => due_by(before)?,
            None => vec![0; self.lanes.len()],
        };
        let mut rest = n.saturating_sub(total(&counts));
        for (count, by_then) in counts.iter_mut().zip(due_by(low)?) {
            let more = rest.min(by_then - *count);
            *count += more;
            rest -= more;
        }
        Some(counts)
    }

    /// Puts the cursors where the lanes are.
    fn keep_time(&mut self) {
        self.count();
        let streams = self.streams;
        for lane in &mut self.lanes {
            let (order, fixed) = (&lane.lane.order, lane.length);
            let mut indices = vec![0u64; if fixed.is_some() { 0 } else { streams.len() }];
            lane.cursor.seek(lane.n, |k| {
                fixed.unwrap_or_else(|| {
                    let stream = order[(k % order.len() as u64) as usize] as usize;
                    indices[stream] += 1;
                    streams[stream].length_of(indices[stream] - 1)
                })
            });
        }
        self.timed = true;
    }

    /// When the next frame is due; `None` behind the last one.
    #[inline]
    pub fn next_due(&mut self) -> Option<u64> {
        if let [lane] = &self.lanes[..] {
            if !lane.has_left() {
                return None;
            }
            if self.timed {
                return Some(lane.due());
            }
            self.keep_time();
            return self.lanes.first().map(LaneWalk::due);
        }
        self.queue.peek().map(|&Reverse((due, _))| due)
    }

    /// When one more frame would be due behind the last one of all lanes.
    pub fn end(&mut self) -> u64 {
        if !self.timed {
            self.keep_time();
        }
        self.lanes.iter().map(LaneWalk::due).max().unwrap_or(0)
    }

    /// The next frame's stream.
    #[inline]
    pub(crate) fn peek(&self) -> Option<u32> {
        let lane = match &self.lanes[..] {
            [lane] if lane.has_left() => lane,
            [_] => return None,
            lanes => &lanes[self.queue.peek()?.0.1 as usize],
        };
        Some(lane.lane.order[lane.position])
    }

    /// Moves past as many frames as `streams` has room for, whenever they are due, and tells whose they are; returns
    /// how many there were.
    pub(crate) fn pass_all(&mut self, streams: &mut [u32]) -> usize {
        match &mut self.lanes[..] {
            [lane] if !self.timed => {
                let count = (lane.limit - lane.n).min(streams.len() as u64);
                lane.n += count;
                for stream in &mut streams[..count as usize] {
                    *stream = lane.lane.order[lane.position];
                    lane.position += 1;
                    if lane.position == lane.lane.order.len() {
                        lane.position = 0;
                    }
                }
                count as usize
            }
            _ => {
                let mut count = 0;
                while count < streams.len()
                    && let Some(turn) = self.take_due(u64::MAX)
                {
                    streams[count] = turn.stream;
                    count += 1;
                }
                count
            }
        }
    }

    /// Moves past the next frame, if it is due by `until`. Time must be kept: [`Walk::next_due`] was asked.
    #[inline]
    pub(crate) fn take_due(&mut self, until: u64) -> Option<Turn> {
        if let [lane] = &mut self.lanes[..] {
            let due = lane.due();
            if !lane.has_left() || due > until {
                return None;
            }
            let (stream, index) = lane.take(self.streams, &mut self.indices);
            return Some(Turn { due, stream, index });
        }
        let mut top = self.queue.peek_mut()?;
        let Reverse((due, number)) = *top;
        if due > until {
            return None;
        }
        let lane = &mut self.lanes[number as usize];
        let (stream, index) = lane.take(self.streams, &mut self.indices);
        if lane.has_left() {
            *top = Reverse((lane.due(), number));
        } else {
            std::collections::binary_heap::PeekMut::pop(top);
        }
        Some(Turn { due, stream, index })
    }

    /// Moves past at most `count` frames of a single lane with a single stream, and returns how many there were.
    /// `None` if there is more to it, or time is kept.
    #[inline]
    pub(crate) fn pass(&mut self, count: usize) -> Option<usize> {
        match &mut self.lanes[..] {
            [lane] if !self.timed && lane.lane.order.len() == 1 => {
                let count = (lane.limit - lane.n).min(count as u64);
                lane.n += count;
                Some(count as usize)
            }
            _ => None,
        }
    }

    /// For each stream, how many of the frames before the one gone to are its own.
    pub(crate) fn counts(&self) -> &[u64] {
        &self.indices
    }
}

impl Iterator for Walk<'_> {
    type Item = Turn;

    fn next(&mut self) -> Option<Turn> {
        self.next_due()?;
        self.take_due(u64::MAX)
    }
}

impl Lane {
    /// How many frames it has.
    pub(crate) fn limit(&self) -> u64 {
        let frames = self.frames.unwrap_or(u64::MAX);
        self.schedule.total_frames().map_or(frames, |total| total.min(frames))
    }

    /// How many of its frames are due by `ns` from the run's start, where that has a closed form; `length` is that of
    /// all its frames, where they have the same.
    pub(crate) fn due_by(&self, ns: u64, length: Option<u32>) -> Option<u64> {
        let most = self.frames.unwrap_or(u64::MAX);
        let Some(since) = ns.checked_sub(self.start_ns) else { return Some(0) };
        let due = match (&self.schedule, length) {
            (Schedule::Bits { bits_per_second, overhead_bytes }, Some(length)) => {
                let bits = (u64::from(length) + u64::from(*overhead_bytes)) * 8;
                Schedule::Frames { frames: *bits_per_second, per_ns: bits * 1_000_000_000 }
                    .frames_due_by(since)
            }
            (schedule, _) => schedule.frames_due_by(since),
        };
        due.map(|due| due.min(most))
    }
}

impl Stream {
    /// The number that the laws of frame `k` are given.
    #[inline]
    pub(crate) fn number(&self, k: u64) -> u64 {
        self.first.wrapping_add(self.step.wrapping_mul(k))
    }

    /// Length of its frame `k`.
    pub fn length_of(&self, k: u64) -> u32 {
        match &self.lengths {
            Lengths::Template => self.templates.length((k % (self.templates.len() as u64).max(1)) as usize),
            law => law.at(self.number(k), self.templates.longest()),
        }
    }
}

/// Counts the frames due while time goes on, also where that has no closed form.
#[derive(Debug, Clone)]
pub struct Tally {
    program: Arc<Program>,
    /// How far each lane was walked; `None` for those that have a closed form.
    walked: Vec<Option<(u64, Position)>>,
}

impl Tally {
    /// For a sound program. `None` at top speed, where nothing is ever due.
    pub fn new(program: Arc<Program>) -> Option<Tally> {
        if program.check().is_err() || program.lanes.iter().any(|lane| !lane.schedule.is_paced()) {
            return None;
        }
        let closed = |lane: &Lane| lane.due_by(u64::MAX, program.only_length_of(lane)).is_some();
        let walked = program.lanes.iter().map(|lane| (!closed(lane)).then(Default::default)).collect();
        Some(Tally { program, walked })
    }

    /// Frames due within `ns` of the start. Times must not go back.
    pub fn by(&mut self, ns: u64) -> u64 {
        let mut total = 0u64;
        for (lane, walked) in self.program.lanes.iter().zip(&mut self.walked) {
            let due = match walked {
                None => lane.due_by(ns, self.program.only_length_of(lane)).unwrap_or(0),
                Some(walked) => walk_until(&self.program, lane, walked, ns),
            };
            total = total.saturating_add(due);
        }
        total
    }
}

/// Walks a lane from where it is to the first frame not due by `ns`.
fn walk_until(program: &Program, lane: &Lane, (n, position): &mut (u64, Position), ns: u64) -> u64 {
    let (limit, period) = (lane.limit(), lane.order.len() as u64);
    let mut indices = vec![0u64; program.streams.len()];
    for (i, &stream) in lane.order.iter().enumerate() {
        indices[stream as usize] += *n / period + u64::from((i as u64) < *n % period);
    }
    while *n < limit && lane.start_ns.saturating_add(position.due) <= ns {
        let stream = lane.order[(*n % period) as usize] as usize;
        position.advance(&lane.schedule, program.streams[stream].length_of(indices[stream]));
        indices[stream] += 1;
        *n += 1;
    }
    *n
}
