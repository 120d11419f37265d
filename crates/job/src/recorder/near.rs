//! Which frames are captured, where only those are wanted to which something happened: by the numbers of their streams, each with the
//! frames of its stream around it. A state machine: frames come in, decisions come out.

use meter::Copied;
use spec::Event;
use std::collections::{BTreeMap, HashMap, VecDeque};
use wire::signature::{MAX_SEQUENCE, sequence_near};

/// Where numbers begin, so that none is below 0 (as in the meter).
const ZERO: u64 = 1 << 40;
/// A number so far ahead is damaged (as in the meter).
const ASTRAY: u64 = 1 << 32;
/// Of each stream so many gaps are remembered.
const GAPS: usize = 4096;
/// All frames that are held take no more than this.
const MOST_HELD: usize = 64 << 20;

/// What is to be done with a frame.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is in no stream.
    Unknown,
    /// It is a neighbour, if something happens to one of the next frames.
    Held,
    /// It follows a frame to which something happened.
    Behind,
    /// This happened to it; of this stream.
    Event(u32, String),
}

/// A frame that is held.
#[derive(Debug)]
pub struct Held {
    pub interface: u32,
    time: u64,
    length: u32,
    tag: Option<(u16, u16)>,
    bytes: Vec<u8>,
}

impl Held {
    /// As it came.
    pub fn frame(&self) -> Copied<'_> {
        Copied { time: self.time, bytes: &self.bytes, length: self.length, tag: self.tag, signed: None }
    }
}

/// See the module.
#[derive(Debug)]
pub struct Near {
    only: Vec<Event>,
    around: usize,
    from_zero: bool,
    streams: HashMap<u32, Followed>,
    held: usize,
    events: u64,
}

#[derive(Debug, Default)]
struct Followed {
    /// Above the highest number; 0: there was none.
    next: u64,
    /// Numbers that were left out, from the first to behind the last.
    missing: BTreeMap<u64, u64>,
    /// Below it nobody remembers what was left out.
    forgotten: u64,
    held: VecDeque<Held>,
    behind: usize,
}

impl Near {
    /// `from_zero`: the first number of a stream is 0, and else any.
    pub fn new(only: &[Event], around: usize, from_zero: bool) -> Near {
        Near { only: only.to_vec(), around, from_zero, streams: HashMap::new(), held: 0, events: 0 }
    }

    /// How often something happened to a frame.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// What is to be done with the next frame.
    pub fn judge(&mut self, frame: &Copied<'_>) -> Verdict {
        let Some((number, written)) = frame.signed else { return Verdict::Unknown };
        let stream = self.streams.entry(number).or_default();
        let event = stream.follow(written, self.from_zero).filter(|(event, _)| self.only.contains(event));
        if let Some((_, said)) = event {
            self.events += 1;
            stream.behind = self.around;
            return Verdict::Event(number, format!("stream {number}: {said}"));
        }
        if stream.behind > 0 {
            stream.behind -= 1;
            return Verdict::Behind;
        }
        Verdict::Held
    }

    /// Holds a frame as a neighbour.
    pub fn hold(&mut self, interface: u32, frame: &Copied<'_>) {
        let Some(stream) = frame.signed.and_then(|(number, _)| self.streams.get_mut(&number)) else { return };
        let mut buffer = Vec::new();
        while stream.held.len() >= self.around.max(1) {
            let Some(old) = stream.held.pop_front() else { break };
            self.held -= old.bytes.len();
            buffer = old.bytes;
        }
        if self.around == 0 || self.held + frame.bytes.len() > MOST_HELD {
            return;
        }
        buffer.clear();
        buffer.extend_from_slice(frame.bytes);
        self.held += buffer.len();
        let Copied { time, length, tag, .. } = *frame;
        stream.held.push_back(Held { interface, time, length, tag, bytes: buffer });
    }

    /// The neighbours before a frame to which something happened.
    pub fn release(&mut self, stream: u32) -> VecDeque<Held> {
        let held = self.streams.get_mut(&stream).map(|of| std::mem::take(&mut of.held)).unwrap_or_default();
        self.held -= held.iter().map(|frame| frame.bytes.len()).sum::<usize>();
        held
    }
}

impl Followed {
    /// What happened to the frame with this number, in words.
    fn follow(&mut self, written: u64, from_zero: bool) -> Option<(Event, String)> {
        let first = self.next == 0;
        if first && from_zero {
            self.next = ZERO;
        }
        let number = if self.next == 0 { written + ZERO } else { sequence_near(written, self.next) };
        let shown = |number: u64| number & MAX_SEQUENCE;
        if self.next == 0 {
            self.next = number + 1;
            self.forgotten = number;
            return None;
        }
        if number >= self.next {
            let missing = number - self.next;
            if missing >= ASTRAY {
                return None;
            }
            let from = std::mem::replace(&mut self.next, number + 1);
            if missing == 0 {
                return None;
            }
            self.missing.insert(from, number);
            if self.missing.len() > GAPS
                && let Some((_, end)) = self.missing.pop_first()
            {
                self.forgotten = end;
            }
            let said = match missing {
                1 => format!("1 frame missing before this one (number {})", shown(from)),
                _ => format!(
                    "{missing} frames missing before this one (numbers {} to {})",
                    shown(from),
                    shown(number - 1)
                ),
            };
            return Some((Event::Lost, said));
        }
        if number < self.forgotten {
            let said = format!("number {} came too late to tell whether it came before", shown(number));
            return Some((Event::Late, said));
        }
        let gap = self.missing.range(..=number).next_back().map(|(from, end)| (*from, *end));
        let Some((from, end)) = gap.filter(|(_, end)| number < *end) else {
            return Some((Event::Duplicated, format!("number {} came before", shown(number))));
        };
        self.missing.remove(&from);
        for (from, end) in [(from, number), (number + 1, end)].into_iter().filter(|(from, end)| from < end) {
            self.missing.insert(from, end);
        }
        let said = format!("number {} came after number {}", shown(number), shown(self.next - 1));
        Some((Event::Reordered, said))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Event; 4] = [Event::Lost, Event::Late, Event::Duplicated, Event::Reordered];

    /// The numbers that are captured, in the order in which they are, with what is said of some.
    fn captured(
        near: &mut Near,
        numbers: impl IntoIterator<Item = (u32, u64)>,
    ) -> Vec<(u64, Option<String>)> {
        let mut written = Vec::new();
        for (stream, number) in numbers {
            let bytes = number.to_ne_bytes();
            let frame = Copied {
                time: number,
                bytes: &bytes,
                length: 60,
                tag: None,
                signed: Some((stream, number & MAX_SEQUENCE)),
            };
            match near.judge(&frame) {
                Verdict::Unknown => panic!("signed"),
                Verdict::Held => near.hold(0, &frame),
                Verdict::Behind => written.push((number, None)),
                Verdict::Event(stream, said) => {
                    written.extend(near.release(stream).iter().map(|held| (held.frame().time, None)));
                    written.push((number, Some(said)));
                }
            }
        }
        written
    }

    #[test]
    fn a_frame_to_which_something_happened_is_captured_with_its_neighbours_of_the_same_stream() {
        let mut near = Near::new(&ALL, 2, true);
        // Of stream 7 frames 5 to 7 are lost; stream 9 has nothing to tell.
        let seven = (0..5).chain(8..14).map(|number| (7, number));
        let nine = (100..120).map(|number| (9, number));
        let mut near_nine = Near::new(&ALL, 2, false);
        assert_eq!(captured(&mut near_nine, nine.clone()), []);
        let mixed: Vec<_> = seven.zip(nine).flat_map(|(a, b)| [a, (b.0, b.1 - 100)]).collect();
        let said = "stream 7: 3 frames missing before this one (numbers 5 to 7)".to_owned();
        let expected = [(3, None), (4, None), (8, Some(said)), (9, None), (10, None)];
        assert_eq!(captured(&mut near, mixed), expected);
        assert_eq!((near.events(), near.held), (1, 4 * 8));
    }

    #[test]
    fn each_event_is_told_by_its_name_and_others_than_those_asked_for_are_none() {
        let numbers = [0, 1, 4, 2, 2, 5, 1, 7].map(|number| (0, number));
        let said = |only: &[Event]| {
            let events = captured(&mut Near::new(only, 0, true), numbers);
            events.into_iter().map(|(number, said)| (number, said.unwrap_or_default())).collect::<Vec<_>>()
        };
        let lost = (4, "stream 0: 2 frames missing before this one (numbers 2 to 3)".to_owned());
        let again = (7, "stream 0: 1 frame missing before this one (number 6)".to_owned());
        let copies = [2, 1].map(|number| (number, format!("stream 0: number {number} came before")));
        let behind = (2, "stream 0: number 2 came after number 4".to_owned());
        assert_eq!(said(&[Event::Lost]), [lost, again]);
        assert_eq!(said(&[Event::Duplicated]), copies);
        assert_eq!(said(&[Event::Reordered]), [behind]);
        // Who joins in midstream knows nothing of what was before.
        let mut near = Near::new(&ALL, 0, false);
        let late = captured(&mut near, [(3, 50), (3, 49)]);
        let told = "stream 3: number 49 came too late to tell whether it came before".to_owned();
        assert_eq!(late, [(49, Some(told))]);
    }

    #[test]
    fn numbers_come_round() {
        let mut near = Near::new(&ALL, 0, false);
        let numbers = [MAX_SEQUENCE - 1, MAX_SEQUENCE, MAX_SEQUENCE + 1, MAX_SEQUENCE + 3];
        let events = captured(&mut near, numbers.map(|number| (0, number)));
        let told = "stream 0: 1 frame missing before this one (number 1)".to_owned();
        assert_eq!(events, [(MAX_SEQUENCE + 3, Some(told))]);
    }
}
