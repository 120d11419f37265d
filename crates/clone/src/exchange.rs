//! Requests, and their answers by both servers beside each other: what they begin with, how long they are, when their first and
//! last bytes came. Differences are counted by what they are, so that a million of one kind is one line of the result.

use crate::framing::Line;
use histogram::Histogram;
use std::collections::HashMap;

/// An answer, as far as it has come.
#[derive(Debug, Clone, Copy, Default)]
pub struct Answer {
    /// When its first byte came; 0: not yet.
    pub first_ns: u64,
    /// When its last byte came.
    pub last_ns: u64,
    /// Bytes.
    pub size: u64,
    /// What it begins with.
    pub line: Line,
    /// All of it is there.
    pub ended: bool,
}

impl Answer {
    /// Takes bytes that came.
    pub fn came(&mut self, bytes: u64, line: Option<Line>, ended: bool, now_ns: u64) {
        if self.first_ns == 0 {
            self.first_ns = now_ns;
        }
        self.last_ns = now_ns;
        self.size += bytes;
        if let Some(line) = line.filter(|_| self.line.is_empty()) {
            self.line = line;
        }
        self.ended |= ended;
    }
}

/// A request and its answers.
#[derive(Debug, Clone, Copy, Default)]
pub struct Exchange {
    /// What the request begins with.
    pub ask: Line,
    /// When its last byte came to the server,
    pub asked_ns: u64,
    /// and when it was said to the target; 0: not yet.
    pub sent_ns: u64,
    /// The answer has no body.
    pub bodyless: bool,
    /// The server's answer.
    pub online: Answer,
    /// The target's.
    pub target: Answer,
}

/// In what two answers differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Difference {
    /// In what they begin with: the server's, the target's.
    Line(Line, Line),
    /// In their sizes alone, of answers that begin alike: the server's, the target's.
    Size(Line, u64, u64),
}

impl Difference {
    /// What it is a difference in: the server's first line, and whether it is the sizes.
    fn group(&self) -> (Line, bool) {
        match self {
            Difference::Line(online, _) => (*online, false),
            Difference::Size(line, ..) => (*line, true),
        }
    }
}

/// Kinds of differences that are told apart.
const MOST_KINDS: usize = 512;

/// All exchanges that are over.
#[derive(Debug, Clone, Default)]
pub struct Comparison {
    /// Both answered.
    pub compared: u64,
    /// And alike: beginning and size.
    pub same: u64,
    /// They begin differently.
    pub lines_differ: u64,
    /// They begin alike, and their sizes differ.
    pub sizes_differ: u64,
    /// The server did not answer, as far as the capture shows.
    pub online_unanswered: u64,
    /// The target did not answer, though the server did.
    pub target_unanswered: u64,
    /// Sessions whose requests or answers could not be followed to their end.
    pub unframed_sessions: u64,
    /// From the request's last byte to the answer's first, at the server,
    pub online_first: Histogram,
    /// and to its last.
    pub online_last: Histogram,
    /// The same of the target, from when the request was said.
    pub target_first: Histogram,
    /// To its last.
    pub target_last: Histogram,
    /// From when a request was captured until it was said to the target.
    pub delay: Histogram,
    kinds: HashMap<Difference, (u64, Line)>,
    /// Differences beyond the kinds that are told apart.
    pub other_kinds: u64,
}

impl Comparison {
    /// An exchange is over.
    pub fn settle(&mut self, exchange: &Exchange) {
        let Exchange { ask, asked_ns, sent_ns, online, target, .. } = exchange;
        match (online.first_ns, target.first_ns) {
            (0, _) => self.online_unanswered += 1,
            (_, 0) => self.target_unanswered += 1,
            _ => {
                self.compared += 1;
                self.online_first.record(online.first_ns.saturating_sub(*asked_ns));
                self.online_last.record(online.last_ns.saturating_sub(*asked_ns));
                self.target_first.record(target.first_ns.saturating_sub(*sent_ns));
                self.target_last.record(target.last_ns.saturating_sub(*sent_ns));
                let difference = if online.line != target.line {
                    self.lines_differ += 1;
                    Difference::Line(online.line, target.line)
                } else if online.size != target.size {
                    self.sizes_differ += 1;
                    Difference::Size(online.line, online.size, target.size)
                } else {
                    self.same += 1;
                    return;
                };
                self.count(difference, 1, *ask);
            }
        }
    }

    fn count(&mut self, difference: Difference, count: u64, example: Line) {
        if let Some((known, _)) = self.kinds.get_mut(&difference) {
            *known += count;
        } else if self.kinds.len() < MOST_KINDS {
            self.kinds.insert(difference, (count, example));
        } else {
            self.other_kinds += count;
        }
    }

    /// Adds another's.
    pub fn add(&mut self, other: &Comparison) {
        self.compared += other.compared;
        self.same += other.same;
        self.lines_differ += other.lines_differ;
        self.sizes_differ += other.sizes_differ;
        self.online_unanswered += other.online_unanswered;
        self.target_unanswered += other.target_unanswered;
        self.unframed_sessions += other.unframed_sessions;
        self.other_kinds += other.other_kinds;
        self.online_first.merge(&other.online_first);
        self.online_last.merge(&other.online_last);
        self.target_first.merge(&other.target_first);
        self.target_last.merge(&other.target_last);
        self.delay.merge(&other.delay);
        for (difference, (count, example)) in &other.kinds {
            self.count(*difference, *count, *example);
        }
    }

    /// How often answers differ in this way, whatever the other answer was: of those that begin like this at the server, in their first
    /// lines or in their sizes.
    pub fn alike(&self, difference: &Difference) -> u64 {
        self.kinds
            .iter()
            .filter(|(kind, _)| kind.group() == difference.group())
            .map(|(_, (count, _))| count)
            .sum()
    }

    /// The differences, the most frequent first: how often, and what a request of that kind began with.
    pub fn ranked(&self) -> Vec<(Difference, u64, Line)> {
        let mut all: Vec<_> =
            self.kinds.iter().map(|(kind, (count, example))| (*kind, *count, *example)).collect();
        // Of equal numbers always in the same order.
        all.sort_by_cached_key(|(kind, count, _)| (u64::MAX - count, format!("{kind:?}")));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(line: &str, size: u64) -> Answer {
        let mut answer = Answer::default();
        answer.came(size, Some(Line::of(line.as_bytes())), true, 30);
        answer
    }

    #[test]
    fn differences_are_counted_by_what_they_are_and_ranked() {
        let exchange = |online: Answer, target: Answer| Exchange {
            ask: Line::of(b"GET /x HTTP/1.1"),
            asked_ns: 10,
            sent_ns: 20,
            online,
            target,
            ..Exchange::default()
        };
        let mut comparison = Comparison::default();
        for (target, times) in [(answered("200", 5), 7), (answered("502", 9), 3), (answered("200", 6), 4)] {
            (0..times).for_each(|_| comparison.settle(&exchange(answered("200", 5), target)));
        }
        comparison.settle(&exchange(answered("200", 5), Answer::default()));
        let mut sum = Comparison::default();
        sum.add(&comparison);
        sum.add(&comparison);
        assert_eq!((sum.compared, sum.same, sum.lines_differ, sum.sizes_differ), (28, 14, 6, 8));
        assert_eq!(sum.target_unanswered, 2);
        let ok = Line::of(b"200");
        let ranked: Vec<_> = sum.ranked().into_iter().map(|(kind, count, _)| (kind, count)).collect();
        assert_eq!(ranked, [(Difference::Size(ok, 5, 6), 8), (Difference::Line(ok, Line::of(b"502")), 6)]);
        // Whatever the other answer was.
        let alike = [
            Difference::Size(ok, 5, 99),
            Difference::Line(ok, Line::of(b"404")),
            Difference::Line(Line::of(b"404"), ok),
        ];
        assert_eq!(alike.map(|difference| sum.alike(&difference)), [8, 6, 0]);
        assert_eq!((sum.online_first.p50(), sum.target_first.p50()), (20, 10));
    }
}
