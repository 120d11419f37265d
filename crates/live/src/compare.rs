//! Holds what the server says against what it said in the capture, one answer at a time.
//!
//! Without patterns nothing is kept but what is shown of the first difference. With patterns (parts that may differ, such
//! as a date), the answer is kept, up to the length of the captured one and a little, and compared without them.

use regex::bytes::Regex;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// Bytes shown before a difference, and from it on.
const BEFORE: usize = 16;
const AFTER: usize = 32;
/// Kept beyond the captured length, for patterns and for what belongs to the next answer.
const BEYOND: usize = 1 << 20;
/// Parts that may differ make an answer shorter by no more than this before it is waited for the end of it.
const SLACK: u64 = 4096;
/// Longer answers are not searched for patterns while the connection waits: a megabyte takes up to ten milliseconds, and
/// nothing is acknowledged meanwhile. Whether they are over is told by a pause, and how they compare by [`Later`].
const AT_ONCE: usize = 256 * 1024;

/// The first place where an answer is another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// In the captured answer.
    pub offset: u64,
    /// Where what is shown begins.
    pub shown_from: u64,
    /// Some bytes of the captured answer.
    pub captured: Vec<u8>,
    /// The same of the answer now.
    pub live: Vec<u8>,
}

/// An answer that is coming in.
#[derive(Debug)]
pub struct Answer {
    /// Of the captured stream.
    captured: Range<u64>,
    received: u64,
    difference: Option<Difference>,
    /// What came last, for the context of a difference; with patterns, all.
    kept: Arc<Vec<u8>>,
    /// What came beyond the captured length.
    excess: Vec<u8>,
    not_compared: u64,
    /// How much had come when it was last searched for patterns: it need not be again.
    searched: Option<u64>,
}

/// A long answer that is to be compared without what patterns match, by somebody who has the time.
#[derive(Debug)]
pub struct Later {
    answer: Answer,
}

impl Later {
    /// The first difference, and how many bytes could not be compared.
    pub fn compare(mut self, captured: Captured<'_>) -> (Option<Difference>, u64) {
        self.answer.compare_without(captured);
        (self.answer.difference, self.answer.not_compared)
    }
}

/// What the capture has.
#[derive(Debug, Clone, Copy)]
pub struct Captured<'a> {
    /// All that the server said.
    pub bytes: &'a [u8],
    /// Places of which the capture has no bytes.
    pub unknown: &'a [Range<u64>],
    /// Parts that may differ.
    pub ignore: &'a [Regex],
}

impl Captured<'_> {
    fn get(&self, range: Range<u64>) -> &[u8] {
        let end = (range.end as usize).min(self.bytes.len());
        self.bytes.get((range.start as usize).min(end)..end).unwrap_or_default()
    }

    /// The part of `range` that is not known from `range.start` on, if it begins there; else where the next one begins.
    fn known_until(&self, at: u64) -> (bool, u64) {
        let next = self.unknown.partition_point(|range| range.end <= at);
        match self.unknown.get(next) {
            Some(range) if range.start <= at => (false, range.end),
            Some(range) => (true, range.start),
            None => (true, u64::MAX),
        }
    }
}

impl Answer {
    /// An answer that is to be these of the captured bytes.
    pub fn to(captured: Range<u64>) -> Answer {
        Answer {
            captured,
            received: 0,
            difference: None,
            kept: Arc::default(),
            excess: Vec::new(),
            not_compared: 0,
            searched: None,
        }
    }

    /// What is left to compare after [`finish`](Self::finish).
    pub fn later(&self, captured: Captured<'_>) -> Option<Later> {
        self.is_long(captured).then(|| Later {
            answer: Answer {
                received: self.received,
                kept: Arc::clone(&self.kept),
                ..Answer::to(self.captured.clone())
            },
        })
    }

    fn is_long(&self, captured: Captured<'_>) -> bool {
        !captured.ignore.is_empty() && self.kept.len() > AT_ONCE
    }

    /// Bytes that the captured answer has.
    pub fn expected(&self) -> u64 {
        self.captured.end - self.captured.start
    }

    /// Bytes that came.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// The first place that is not the same.
    pub fn difference(&self) -> Option<&Difference> {
        self.difference.as_ref()
    }

    /// Bytes that the capture does not have.
    pub fn not_compared(&self) -> u64 {
        self.not_compared
    }

    /// More of the answer.
    pub fn add(&mut self, bytes: &[u8], captured: Captured<'_>) {
        let within = (self.expected().saturating_sub(self.received)).min(bytes.len() as u64) as usize;
        let (mine, beyond) = bytes.split_at(within);
        if captured.ignore.is_empty() {
            self.compare(mine, captured);
        } else {
            let room = (self.expected() as usize + BEYOND).saturating_sub(self.kept.len());
            let kept = Arc::make_mut(&mut self.kept);
            kept.extend_from_slice(bytes.get(..bytes.len().min(room)).unwrap_or_default());
        }
        self.received += bytes.len() as u64;
        let room = BEYOND.saturating_sub(self.excess.len());
        self.excess.extend_from_slice(beyond.get(..beyond.len().min(room)).unwrap_or_default());
    }

    fn compare(&mut self, mut live: &[u8], captured: Captured<'_>) {
        let mut at = self.captured.start + self.received;
        while !live.is_empty() {
            let (known, until) = captured.known_until(at);
            let length = live.len().min((until - at).min(usize::MAX as u64) as usize);
            let (part, rest) = live.split_at(length);
            if !known {
                self.not_compared += length as u64;
            }
            self.look(part, at, known, captured);
            (live, at) = (rest, at + length as u64);
        }
    }

    fn look(&mut self, live: &[u8], at: u64, known: bool, captured: Captured<'_>) {
        let theirs = captured.get(at..at + live.len() as u64);
        if let Some(difference) = &mut self.difference {
            let room = (BEFORE + AFTER).saturating_sub(difference.live.len());
            difference.live.extend_from_slice(live.get(..live.len().min(room)).unwrap_or_default());
            return;
        }
        let differs = known && live != theirs;
        if differs && let Some(nth) = live.iter().zip(theirs).position(|(a, b)| a != b) {
            let offset = at - self.captured.start + nth as u64;
            let before = live.get(..nth).unwrap_or_default();
            let mut context = Arc::unwrap_or_clone(std::mem::take(&mut self.kept));
            context.extend_from_slice(before.get(before.len().saturating_sub(BEFORE)..).unwrap_or_default());
            context.drain(..context.len().saturating_sub(BEFORE));
            let shown_from = offset - context.len() as u64;
            context.extend_from_slice(live.get(nth..live.len().min(nth + AFTER)).unwrap_or_default());
            self.set(offset, shown_from, context, captured);
            return;
        }
        let last = live.get(live.len().saturating_sub(BEFORE)..).unwrap_or_default();
        let kept = Arc::make_mut(&mut self.kept);
        kept.extend_from_slice(last);
        kept.drain(..kept.len().saturating_sub(BEFORE));
    }

    fn set(&mut self, offset: u64, shown_from: u64, live: Vec<u8>, captured: Captured<'_>) {
        let from = self.captured.start + shown_from;
        let to = (from + (offset - shown_from) + AFTER as u64).min(self.captured.end);
        let captured = captured.get(from..to).to_vec();
        self.difference = Some(Difference { offset, shown_from, captured, live });
    }

    /// Is all that came known to be the same as captured, parts that may differ left out? Ask once as much came as was
    /// captured.
    pub fn same_so_far(&mut self, captured: Captured<'_>) -> bool {
        if self.is_long(captured) {
            return false;
        }
        if !captured.ignore.is_empty() && self.searched != Some(self.received) {
            self.compare_without(captured);
            self.searched = Some(self.received);
        }
        self.difference.is_none()
    }

    /// Parts that may differ are shorter than they were, and all else is there.
    pub fn shorter_but_whole(&mut self, captured: Captured<'_>) -> bool {
        !captured.ignore.is_empty() && self.received + SLACK >= self.expected() && self.same_so_far(captured)
    }

    /// Leaves out on both sides what may differ, and compares the rest.
    fn compare_without(&mut self, captured: Captured<'_>) {
        if self.captured.start < self.captured.end
            && captured
                .unknown
                .iter()
                .any(|range| range.start < self.captured.end && range.end > self.captured.start)
        {
            // What is not known cannot be searched for patterns: byte by byte, then.
            let kept = std::mem::take(&mut self.kept);
            let received = std::mem::take(&mut self.received);
            (self.difference, self.not_compared) = (None, 0);
            let mine = kept.len().min(self.expected() as usize);
            self.compare(kept.get(..mine).unwrap_or_default(), captured);
            (self.kept, self.received) = (kept, received);
            return;
        }
        self.difference = None;
        let theirs = captured.get(self.captured.clone());
        let (live_rest, live_map) = without(&self.kept, captured.ignore);
        let (rest, map) = without(theirs, captured.ignore);
        let nth = live_rest.iter().zip(rest.iter()).position(|(a, b)| a != b);
        let shorter = live_rest.len().min(rest.len());
        let nth = nth.or((live_rest.len() != rest.len()).then_some(shorter));
        let Some(nth) = nth else { return };
        let (offset, live_at) = (original(&map, nth), original(&live_map, nth));
        let shown_from = offset.saturating_sub(BEFORE);
        let live_from = live_at.saturating_sub(offset - shown_from);
        let live_to = (live_at + AFTER).min(self.kept.len());
        let live = self.kept.get(live_from..live_to).unwrap_or_default().to_vec();
        self.set(offset as u64, shown_from as u64, live, captured);
    }

    /// The answer is over. What came too much and is how the captured stream goes on belongs to the next answer, and is
    /// handed back.
    pub fn finish(&mut self, captured: Captured<'_>) -> Vec<u8> {
        let carried = self.goes_on_as_captured(captured).then(|| std::mem::take(&mut self.excess));
        if let Some(carried) = &carried {
            self.received -= carried.len() as u64;
            let expected = self.expected() as usize;
            Arc::make_mut(&mut self.kept).truncate(expected);
        }
        if !captured.ignore.is_empty() {
            if !self.is_long(captured) {
                self.compare_without(captured);
            }
            return carried.unwrap_or_default();
        }
        if self.difference.is_none() && self.received != self.expected() {
            let offset = self.received.min(self.expected());
            let from_end = (offset as usize).min(BEFORE) as u64;
            let shown_from = offset - from_end;
            let kept = self.kept.len();
            let mut live =
                self.kept.get(kept.saturating_sub(from_end as usize)..).unwrap_or_default().to_vec();
            live.extend_from_slice(self.excess.get(..self.excess.len().min(AFTER)).unwrap_or_default());
            self.set(offset, shown_from, live, captured);
        }
        carried.unwrap_or_default()
    }

    /// Does what came too much go on as the captured stream does?
    pub fn goes_on_as_captured(&self, captured: Captured<'_>) -> bool {
        let extra = self.received.saturating_sub(self.expected());
        extra > 0 && self.excess == captured.get(self.captured.end..self.captured.end + extra)
    }
}

/// `bytes` without what any pattern matches; and for each part that is left, where it begins in the rest and in `bytes`.
fn without<'a>(bytes: &'a [u8], patterns: &[Regex]) -> (Cow<'a, [u8]>, Vec<(usize, usize)>) {
    let mut matches: Vec<Range<usize>> =
        patterns.iter().flat_map(|pattern| pattern.find_iter(bytes).map(|found| found.range())).collect();
    if matches.is_empty() {
        return (Cow::Borrowed(bytes), vec![(0, 0)]);
    }
    matches.sort_by_key(|range| range.start);
    let (mut rest, mut map, mut at) = (Vec::with_capacity(bytes.len()), Vec::new(), 0);
    for range in matches.into_iter().chain(std::iter::once(bytes.len()..bytes.len())) {
        if range.start >= at {
            map.push((rest.len(), at));
            rest.extend_from_slice(bytes.get(at..range.start).unwrap_or_default());
        }
        at = at.max(range.end);
    }
    (Cow::Owned(rest), map)
}

fn original(map: &[(usize, usize)], at: usize) -> usize {
    let part = map.partition_point(|(rest, _)| *rest <= at).saturating_sub(1);
    map.get(part).map_or(at, |(rest, bytes)| bytes + (at - rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Regex {
        regex::bytes::RegexBuilder::new(text).unicode(false).multi_line(true).build().unwrap()
    }

    fn compared(captured: &[u8], live: &[u8], chunk: usize, ignore: &[Regex]) -> Answer {
        let captured_as = Captured { bytes: captured, unknown: &[], ignore };
        let mut answer = Answer::to(0..captured.len() as u64);
        for part in live.chunks(chunk) {
            answer.add(part, captured_as);
        }
        answer.finish(captured_as);
        if let Some(later) = answer.later(captured_as) {
            (answer.difference, answer.not_compared) = later.compare(captured_as);
        }
        answer
    }

    #[test]
    fn long_answers_are_searched_later_and_with_the_same_result() {
        let ignore = [pattern("^Date: .*$")];
        let page = |date: &str, length: usize| {
            let mut page = format!("200\r\nDate: {date}\r\n\r\n").into_bytes();
            page.extend((0..length).map(|at| b"0123456789abcdef\n"[at % 17]));
            page
        };
        let as_captured = page("Sunday", AT_ONCE);
        let captured = Captured { bytes: &as_captured, unknown: &[], ignore: &ignore };
        let mut answer = Answer::to(0..as_captured.len() as u64);
        answer.add(&page("Monday", AT_ONCE), captured);
        assert!(!answer.same_so_far(captured), "it is not known");
        answer.finish(captured);
        assert_eq!(answer.later(captured).map(|later| later.compare(captured)), Some((None, 0)));
        for (date, at, same) in [("Saturnday", AT_ONCE, true), ("Monday", AT_ONCE - 5, false)] {
            let mut live = page(date, AT_ONCE);
            let end = live.len() - (AT_ONCE - at);
            if !same {
                live[end] ^= 1;
            }
            let found = compared(&as_captured, &live, 1448, &ignore);
            let expected = (!same).then_some(as_captured.len() as u64 - 5);
            assert_eq!(found.difference().map(|difference| difference.offset), expected);
        }
        // What fits is compared on the spot.
        let short = page("Sunday", 10);
        let captured = Captured { bytes: &short, unknown: &[], ignore: &ignore };
        let mut answer = Answer::to(0..short.len() as u64);
        answer.add(&page("Monday", 10), captured);
        assert!(answer.same_so_far(captured) && answer.later(captured).is_none());
    }

    #[test]
    fn the_first_difference_is_found_wherever_segments_end() {
        let captured: Vec<u8> = (0..=255).cycle().take(1000).collect();
        for at in [0, 1, 15, 16, 17, 499, 998, 999] {
            let mut live = captured.clone();
            live[at] ^= 0x80;
            for chunk in [1, 7, 100, 5000] {
                let answer = compared(&captured, &live, chunk, &[]);
                let difference = answer.difference().unwrap();
                assert_eq!(difference.offset, at as u64);
                let from = at.saturating_sub(16);
                assert_eq!(difference.shown_from, from as u64);
                assert_eq!(difference.captured, &captured[from..(at + 32).min(1000)]);
                assert!(live[from..].starts_with(&difference.live[..at - from + 1]), "{at} {chunk}");
            }
            assert!(compared(&captured, &captured, 7, &[]).difference().is_none());
        }
    }

    #[test]
    fn more_and_less_are_differences_at_the_end() {
        let short = compared(b"0123456789", b"01234", 3, &[]);
        assert_eq!((short.received(), short.difference().map(|d| d.offset)), (5, Some(5)));
        let long = compared(b"01234", b"0123456789", 3, &[]);
        let difference = long.difference().unwrap();
        assert_eq!((long.received(), difference.offset, &difference.live[..]), (10, 5, &b"0123456789"[..]));
    }

    #[test]
    fn what_goes_on_as_captured_belongs_to_the_next_answer() {
        let captured = Captured { bytes: b"firstsecond", unknown: &[], ignore: &[] };
        let mut answer = Answer::to(0..5);
        answer.add(b"firstsec", captured);
        assert!(answer.goes_on_as_captured(captured));
        assert_eq!(answer.finish(captured), b"sec");
        assert_eq!((answer.received(), answer.difference()), (5, None));
    }

    #[test]
    fn parts_that_may_differ_are_left_out_on_both_sides() {
        let ignore = [pattern("^Date: .*$")];
        let captured = b"200\r\nDate: Sunday\r\nLength: 3\r\n\r\nabc";
        let live = b"200\r\nDate: Saturnday\r\nLength: 3\r\n\r\nabc";
        assert!(compared(captured, captured, 9, &ignore).difference().is_none());
        let same_length = b"200\r\nDate: Monday\r\nLength: 3\r\n\r\nabc";
        assert!(compared(captured, same_length, 9, &ignore).difference().is_none());
        let changed = b"200\r\nDate: Monday\r\nLength: 3\r\n\r\nabX";
        let answer = compared(captured, changed, 9, &ignore);
        assert_eq!(answer.difference().map(|d| d.offset), Some(captured.len() as u64 - 1));
        // A longer date: what is compared is all there is.
        let mut answer = Answer::to(0..captured.len() as u64);
        let as_captured = Captured { bytes: captured, unknown: &[], ignore: &ignore };
        answer.add(live, as_captured);
        answer.finish(as_captured);
        assert_eq!((answer.received(), answer.difference()), (live.len() as u64, None));
    }

    #[test]
    fn what_was_not_captured_is_not_compared() {
        let unknown = std::slice::from_ref(&(2..4));
        let captured = Captured { bytes: b"ab\0\0ef", unknown, ignore: &[] };
        let mut answer = Answer::to(0..6);
        answer.add(b"abcdeX", captured);
        answer.finish(captured);
        assert_eq!((answer.not_compared(), answer.difference().map(|d| d.offset)), (2, Some(5)));
    }
}
