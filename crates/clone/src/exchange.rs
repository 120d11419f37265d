//! Requests, and their answers by both servers beside each other: what they begin with, what they hold, when their first and last bytes
//! came. Differences are counted by what they are, so that a million of one kind is one line of the result.

use crate::digest::{Digest, FirstDifference, Ignored};
use crate::framing::{Line, Part};
use histogram::Histogram;
use std::collections::HashMap;
use std::sync::Arc;

/// An answer, as far as it has come.
#[derive(Debug, Clone, Default)]
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
    /// It breaks the rules that say where it ends, or more came than was asked for.
    pub malformed: bool,
    /// Its last byte, where messages are not told apart.
    pub last: u8,
    /// What it holds.
    pub digest: Digest,
}

impl Answer {
    /// Takes bytes that came.
    pub fn came(&mut self, bytes: u64, line: Option<Line>, ended: bool, now_ns: u64) {
        self.touch(now_ns);
        self.last_ns = now_ns;
        self.size += bytes;
        if let Some(line) = line.filter(|_| self.line.is_empty()) {
            self.line = line;
        }
        self.ended |= ended;
    }

    /// Something came of it.
    pub fn touch(&mut self, now_ns: u64) {
        if self.first_ns == 0 {
            self.first_ns = now_ns;
        }
    }
}

/// A request and its answers.
#[derive(Debug, Clone, Default)]
pub struct Exchange {
    /// What the request begins with.
    pub ask: Line,
    /// When its last byte came to the server; 0: nobody asked (a greeting).
    pub asked_ns: u64,
    /// When it was said to the target; 0: not yet.
    pub sent_ns: u64,
    /// The answer has no body.
    pub bodyless: bool,
    /// The server's answer.
    pub online: Answer,
    /// The target's.
    pub target: Answer,
}

/// What is known of an exchange's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Both answers are whole.
    Whole,
    /// The connections are over: there is no more of either.
    Over,
    /// The copy was ended, or its session cut, at this time: there might have been more.
    Cut(u64),
}

/// In what two answers differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Difference {
    /// In what they begin with: the server's, the target's.
    Line(Line, Line),
    /// The target's breaks the rules that say where it ends, of answers that begin like this.
    Malformed(Line),
    /// In their bodies' sizes, of answers that begin alike: the server's, the target's.
    Size(Line, u64, u64),
    /// In their bodies alone, of answers that begin like this.
    Body(Line),
    /// The target's ended before all came that its head announces, of answers that are alike as far as it goes and begin like this.
    CutShort(Line),
    /// In a field of the head of this name, of answers that begin like this.
    Field(Line, Line),
}

impl Difference {
    /// What it is a difference in, whatever the target's answer is.
    fn group(&self) -> Difference {
        match self {
            Difference::Line(online, _) => Difference::Line(*online, Line::default()),
            Difference::Size(line, ..) => Difference::Size(*line, 0, 0),
            other => *other,
        }
    }
}

/// A kind of differences.
#[derive(Debug, Clone, Default)]
pub struct Kind {
    /// How often.
    pub count: u64,
    /// What a request of that kind began with.
    pub example: Line,
    /// Where the answers to it begin to differ, if that is known.
    pub first: Option<FirstDifference>,
}

/// Kinds of differences that are told apart.
const MOST_KINDS: usize = 512;
/// Answers whose first bytes are kept at once, by a thread: some 64 MiB.
const MOST_KEEPING: usize = 16_384;
/// A target had its time for an answer that the server gave, if it had so many times as long,
const TIMES: u64 = 10;
/// and this.
const LEAST_NS: u64 = 1_000_000_000;

/// All exchanges that are over.
#[derive(Debug, Clone, Default)]
pub struct Comparison {
    /// What is not compared, beside what differs by nature.
    pub ignored: Arc<Ignored>,
    /// Requests, and greetings of servers that speak first: what became of them adds up to this.
    pub requests: u64,
    /// Both answered.
    pub compared: u64,
    /// And alike: first line, body, fields.
    pub same: u64,
    /// They begin differently.
    pub lines_differ: u64,
    /// They begin alike, and where the target's ends is not known, because it breaks the rules of that.
    pub malformed: u64,
    /// They begin alike, and their bodies' sizes differ.
    pub sizes_differ: u64,
    /// Their bodies alone.
    pub bodies_differ: u64,
    /// Their bodies are alike, and the target ended before all came that its head announces.
    pub cut_short: u64,
    /// Their bodies are alike, and fields of their heads differ.
    pub fields_differ: u64,
    /// Among those compared: of the server's body not all was captured, and what was is compared.
    pub in_part: u64,
    /// The server did not answer, as far as the capture shows.
    pub online_unanswered: u64,
    /// The target did not answer, though the server did.
    pub target_unanswered: u64,
    /// An answer had not ended when copying did, or when its client went away.
    pub cut: u64,
    /// Requests that were never said to the target.
    pub unsaid: u64,
    /// Requests whose answers are not known, because messages could not be told apart any more.
    pub unfollowed: u64,
    /// Sessions whose requests or answers could not be followed to their end.
    pub unframed_sessions: u64,
    /// Sessions of which nothing is compared, because their messages cannot be told apart (HTTP/2).
    pub unread_sessions: u64,
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
    kinds: HashMap<Difference, Kind>,
    /// Differences beyond the kinds that are told apart.
    pub other_kinds: u64,
    /// Answers whose first bytes are kept.
    keeping: usize,
}

impl Comparison {
    /// Takes a part of an answer.
    pub fn take(&mut self, answer: &mut Answer, part: Part<'_>) {
        let keeps = answer.digest.keeps() || self.keeping < MOST_KEEPING;
        self.keeping += usize::from(answer.digest.take(part, &self.ignored, keeps));
    }

    /// What both answers have in common so far is forgotten.
    pub fn forget_common(&mut self, exchange: &mut Exchange) {
        let Exchange { online, target, .. } = exchange;
        self.keeping = self.keeping.saturating_sub(online.digest.forget_with(&mut target.digest));
    }

    /// An exchange is not followed any more.
    pub fn drop(&mut self, exchange: &Exchange) {
        let keeps = [&exchange.online, &exchange.target].map(|answer| usize::from(answer.digest.keeps()));
        self.keeping = self.keeping.saturating_sub(keeps.iter().sum());
    }

    /// Answers of the target that differ from the server's, or are missing.
    pub fn different(&self) -> u64 {
        self.lines_differ
            + self.malformed
            + self.sizes_differ
            + self.bodies_differ
            + self.cut_short
            + self.fields_differ
            + self.target_unanswered
    }

    /// An exchange is over. `framed`: each answer is known to have ended, or not.
    pub fn settle(&mut self, exchange: &Exchange, end: End, framed: bool) {
        self.drop(exchange);
        let Exchange { asked_ns, sent_ns, online, target, .. } = exchange;
        if *sent_ns == 0 {
            self.unsaid += 1;
            return;
        }
        if *asked_ns != 0 {
            self.delay.record(sent_ns.saturating_sub(*asked_ns));
        }
        match (online.first_ns, target.first_ns, end) {
            (0, _, End::Cut(_)) => self.cut += 1,
            (0, ..) => self.online_unanswered += 1,
            (_, 0, End::Cut(at_ns)) => {
                let took = online.last_ns.saturating_sub(*asked_ns);
                let had = at_ns.saturating_sub(*sent_ns);
                match had >= LEAST_NS.max(took.saturating_mul(TIMES)) {
                    true => self.target_unanswered += 1,
                    false => self.cut += 1,
                }
            }
            (_, 0, _) => self.target_unanswered += 1,
            // The server's was never whole: its client went away, or nothing more was captured.
            _ if framed && !online.ended => self.cut += 1,
            _ if framed && !target.ended && end != End::Over => self.cut += 1,
            _ => {
                let difference = differs(online, target, framed, &self.ignored);
                // One goes on where the other stands.
                let open = !framed && matches!(end, End::Cut(_));
                let least = online.size.min(target.size);
                if open
                    && let Some((Difference::Size(..), first)) = &difference
                    && !matches!(first, Some(FirstDifference::Body(Some((at, _)))) if *at < least)
                {
                    self.cut += 1;
                    return;
                }
                self.compare(exchange, difference);
            }
        }
    }

    fn compare(&mut self, exchange: &Exchange, difference: Option<(Difference, Option<FirstDifference>)>) {
        let Exchange { ask, asked_ns, sent_ns, online, target, .. } = exchange;
        self.compared += 1;
        self.in_part += u64::from(!online.digest.is_whole());
        if *asked_ns != 0 {
            self.online_first.record(online.first_ns.saturating_sub(*asked_ns));
            self.online_last.record(online.last_ns.saturating_sub(*asked_ns));
            self.target_first.record(target.first_ns.saturating_sub(*sent_ns));
            self.target_last.record(target.last_ns.saturating_sub(*sent_ns));
        }
        let Some((difference, first)) = difference else {
            self.same += 1;
            return;
        };
        match difference {
            Difference::Line(..) => self.lines_differ += 1,
            Difference::Malformed(_) => self.malformed += 1,
            Difference::Size(..) => self.sizes_differ += 1,
            Difference::Body(_) => self.bodies_differ += 1,
            Difference::CutShort(_) => self.cut_short += 1,
            Difference::Field(..) => self.fields_differ += 1,
        }
        self.count(difference, &Kind { count: 1, example: *ask, first });
    }

    /// An answer that was counted as alike is not: the target said more than that.
    pub(crate) fn overran(&mut self, example: Line, line: Line) {
        let Some(same) = self.same.checked_sub(1) else { return };
        self.same = same;
        self.malformed += 1;
        self.count(Difference::Malformed(line), &Kind { count: 1, example, first: None });
    }

    fn count(&mut self, difference: Difference, kind: &Kind) {
        if let Some(known) = self.kinds.get_mut(&difference) {
            known.count += kind.count;
        } else if self.kinds.len() < MOST_KINDS {
            self.kinds.insert(difference, kind.clone());
        } else {
            self.other_kinds += kind.count;
        }
    }

    /// What does not add up, a sentence. There must be none.
    pub fn contradiction(&self) -> Option<String> {
        let parts = self.compared
            + self.online_unanswered
            + self.target_unanswered
            + self.cut
            + self.unsaid
            + self.unfollowed;
        let kinds: u64 = self.kinds.values().map(|kind| kind.count).sum();
        let sums = [
            ("requests", self.requests, parts),
            ("answers compared", self.compared, self.same + self.different() - self.target_unanswered),
            ("differences", self.different() - self.target_unanswered, kinds + self.other_kinds),
        ];
        let (what, whole, parts) = sums.into_iter().find(|(_, whole, parts)| whole != parts)?;
        Some(format!("{what}: {whole}, and their parts are {parts}"))
    }

    /// Adds another's.
    pub fn add(&mut self, other: &Comparison) {
        self.requests += other.requests;
        self.compared += other.compared;
        self.same += other.same;
        self.lines_differ += other.lines_differ;
        self.malformed += other.malformed;
        self.sizes_differ += other.sizes_differ;
        self.bodies_differ += other.bodies_differ;
        self.cut_short += other.cut_short;
        self.fields_differ += other.fields_differ;
        self.in_part += other.in_part;
        self.online_unanswered += other.online_unanswered;
        self.target_unanswered += other.target_unanswered;
        self.cut += other.cut;
        self.unsaid += other.unsaid;
        self.unfollowed += other.unfollowed;
        self.unframed_sessions += other.unframed_sessions;
        self.unread_sessions += other.unread_sessions;
        self.other_kinds += other.other_kinds;
        self.online_first.merge(&other.online_first);
        self.online_last.merge(&other.online_last);
        self.target_first.merge(&other.target_first);
        self.target_last.merge(&other.target_last);
        self.delay.merge(&other.delay);
        for (difference, kind) in &other.kinds {
            self.count(*difference, kind);
        }
    }

    /// How often answers differ in this way, whatever the other answer was: of those that begin like this at the server, in their first
    /// lines, sizes, bodies, or the same field.
    pub fn alike(&self, difference: &Difference) -> u64 {
        let of = difference.group();
        self.kinds.iter().filter(|(kind, _)| kind.group() == of).map(|(_, kind)| kind.count).sum()
    }

    /// The differences, the most frequent first.
    pub fn ranked(&self) -> Vec<(Difference, &Kind)> {
        let mut all: Vec<_> = self.kinds.iter().map(|(difference, kind)| (*difference, kind)).collect();
        // Of equal numbers always in the same order.
        all.sort_by_cached_key(|(difference, kind)| (u64::MAX - kind.count, format!("{difference:?}")));
        all
    }
}

/// In what two answers differ, the gravest first, and where. `framed`: of each it is known whether it ended.
fn differs(
    online: &Answer,
    target: &Answer,
    framed: bool,
    ignored: &Ignored,
) -> Option<(Difference, Option<FirstDifference>)> {
    let (a, b) = (&online.digest, &target.digest);
    if online.line != target.line {
        return Some((Difference::Line(online.line, target.line), None));
    }
    let line = online.line;
    if target.malformed {
        return Some((Difference::Malformed(line), None));
    }
    if a.size() != b.size() {
        let first = (a.is_whole() && b.is_whole()).then(|| a.first_byte(b));
        return Some((Difference::Size(line, a.size(), b.size()), first));
    }
    if !a.has_body_of(b) {
        return Some((Difference::Body(line), Some(a.first_byte(b))));
    }
    // The lengths that heads announce are not compared, because an answer can be framed in several ways.
    if framed && online.ended && !target.ended {
        return Some((Difference::CutShort(line), None));
    }
    if !a.has_fields_of(b) {
        let first = a.first_field(b, ignored);
        let name = match &first {
            Some(FirstDifference::Field(name, _)) => Line::of(&name.to_ascii_lowercase()),
            _ => Line::default(),
        };
        return Some((Difference::Field(line, name), first));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(line: &str, body: &[u8]) -> Answer {
        let mut answer = Answer::default();
        answer.digest.take(Part::Body(body), &Ignored::default(), true);
        answer.came(body.len() as u64, Some(Line::of(line.as_bytes())), true, 30);
        answer
    }

    fn exchange(online: Answer, target: Answer) -> Exchange {
        let ask = Line::of(b"GET /x HTTP/1.1");
        Exchange { ask, asked_ns: 10, sent_ns: 20, online, target, ..Exchange::default() }
    }

    #[test]
    fn differences_are_counted_by_what_they_are_and_ranked() {
        let mut comparison = Comparison::default();
        let ok = |body: &str| answered("200", body.as_bytes());
        for (target, times) in
            [(ok("abcde"), 7), (answered("502", b"x"), 3), (ok("abcdef"), 4), (ok("abcdX"), 2)]
        {
            (0..times)
                .for_each(|_| comparison.settle(&exchange(ok("abcde"), target.clone()), End::Whole, true));
        }
        comparison.settle(&exchange(ok("abcde"), Answer::default()), End::Over, true);
        comparison.requests = 17;
        let mut sum = Comparison::default();
        sum.add(&comparison);
        sum.add(&comparison);
        assert_eq!(
            (sum.compared, sum.same, sum.lines_differ, sum.sizes_differ, sum.bodies_differ),
            (32, 14, 6, 8, 4)
        );
        assert_eq!((sum.target_unanswered, sum.contradiction()), (2, None));
        let ok = Line::of(b"200");
        let ranked: Vec<_> = sum.ranked().into_iter().map(|(kind, of)| (kind, of.count)).collect();
        let bad = Difference::Line(ok, Line::of(b"502"));
        assert_eq!(ranked, [(Difference::Size(ok, 5, 6), 8), (bad, 6), (Difference::Body(ok), 4)]);
        let wanted = FirstDifference::Body(Some((4, [b"abcde".to_vec(), b"abcdX".to_vec()])));
        assert_eq!(sum.ranked()[2].1.first, Some(wanted));
        // Whatever the other answer was.
        let alike = [
            Difference::Size(ok, 5, 99),
            Difference::Line(ok, Line::of(b"404")),
            Difference::Line(Line::of(b"404"), ok),
        ];
        assert_eq!(alike.map(|difference| sum.alike(&difference)), [8, 6, 0]);
        assert_eq!((sum.online_first.p50(), sum.target_first.p50()), (20, 10));
        sum.same -= 1;
        assert_eq!(sum.contradiction().as_deref(), Some("answers compared: 32, and their parts are 31"));
    }

    #[test]
    fn answers_that_had_not_ended_are_cut_and_those_that_had_their_time_are_missing() {
        let partly = |size: usize, ended: bool| Answer { ended, ..answered("200", &b"abcdefgh"[..size]) };
        // (server's, target's, how it ends, framed) -> (compared, same, cut, unanswered by the target)
        let none = Answer::default;
        for (online, target, end, framed, wanted) in [
            (partly(8, true), partly(5, false), End::Cut(99), true, (0, 0, 1, 0)),
            (partly(8, true), partly(5, false), End::Over, true, (1, 0, 0, 0)),
            (partly(8, true), partly(8, false), End::Over, true, (1, 0, 0, 0)),
            (partly(5, false), partly(8, true), End::Over, true, (0, 0, 1, 0)),
            (partly(8, true), none(), End::Cut(99), true, (0, 0, 1, 0)),
            (partly(8, true), none(), End::Cut(1_000_000_020), true, (0, 0, 0, 1)),
            (none(), none(), End::Cut(99), true, (0, 0, 1, 0)),
            (partly(8, false), partly(5, false), End::Cut(99), false, (0, 0, 1, 0)),
            (partly(8, false), partly(5, false), End::Over, false, (1, 0, 0, 0)),
            (partly(8, false), partly(8, false), End::Cut(99), false, (1, 1, 0, 0)),
            (answered("200", b"abcdefgh"), answered("200", b"abX"), End::Cut(99), false, (1, 0, 0, 0)),
        ] {
            let mut c = Comparison { requests: 1, ..Comparison::default() };
            c.settle(&exchange(online, target), end, framed);
            assert_eq!((c.compared, c.same, c.cut, c.target_unanswered), wanted, "{end:?} {framed}");
            assert_eq!(c.contradiction(), None);
        }
    }
}
