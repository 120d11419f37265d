//! Sequence numbers: what of an exporter's messages did not arrive, came late or came twice, and when the exporter began anew.
//!
//! An exporter numbers what it sends: flows (v5), messages (v9, sFlow), data records (IPFIX). A message covers the numbers from its
//! own on, as many as it holds; behind the greatest number so far and the holes before it everything is decided:
//!
//! ```text
//!            first          hole            hole       next
//!   ---------[##############      ##########    #######)---------->
//!    before    seen: a        fills one: it is          ahead: what is
//!    the run   duplicate      late, not missing         passed over is a hole
//! ```
//!
//! A hole counts as missing until something fills it. Behind a message of IPFIX with records that nobody can count yet (their template
//! has not come) the hole belongs to that message, and counts as `uncounted` until they can be.
//!
//! That an exporter began anew is known by its uptime or its clock, by numbers that are far from what was expected, or by
//! several messages in a row that go on from each other where all was seen before. Messages of before that come later still belong to
//! where they are from.

use super::waiting::{MOST_WAITING, Set};

/// A distance in numbers of more is no loss: the exporter began anew.
const FAR: u64 = 1 << 24;
/// Holes that are remembered. What fills an older one is late, and stays missing.
const MOST_HOLES: usize = 64;
/// The same with those that belong to messages whose records wait for their template: there are no more than sets that may wait. One that
/// was forgotten would count as lost what is read when the template comes.
const MOST_OWNED: usize = MOST_WAITING / Set::LEAST;
/// So many messages in a row, each of which goes on from the one before, are no duplicates.
const ROW: u32 = 8;
/// The numbers of before a restart are known for so many messages more.
const STRAGGLERS: u32 = 64;
/// Uptime and time of export tell when an exporter began, to the millisecond or second.
const SAME_BEGIN_MS: u32 = 3_000;
/// An uptime that goes back by less is that of a message that was overtaken.
const UPTIME_BACK_MS: u32 = 1_000;
/// The same where no time of export is known beside it (sFlow sends within a second of sampling).
const UPTIME_ALONE_BACK_MS: u32 = 10_000;
/// Uptimes of 32 bits wrap after 49.7 days; within this of that they do.
const WRAPS_MS: u32 = 86_400_000;
/// Clocks that run apart are not believed to have done so for more than this.
const LONG_S: u32 = 30 * 86_400;
/// What was exported so much later than the latest message is no message that was overtaken, nor its duplicate.
const LATER_S: u32 = 2;
/// A clock that goes back by so much was not the same exporter's all the time.
const BACK_S: u32 = 60;
/// What was sent before a clock was set comes within so much of the last time by which it was not,
const OVERTAKEN_S: u32 = 10;
/// and among so many messages.
const AFTER_SETTING: u32 = 64;
/// By so much less time passed here than an exporter was up that came later than another's message: that one was on its way for so long.
const ON_ITS_WAY_MS: u32 = 3_000;
/// A way of counting that so many messages more than another's speak against is given up.
const DECIDED: u32 = 8;
/// So many messages that go on from each other as RFC 7011 has it, and none against it, decide for it,
const SURE: u32 = 64;
/// until so many speak against it.
const UNSURE: u32 = 4;

/// The rest of a message that will never be counted.
pub(super) const NEVER: u32 = u32::MAX;
/// A hole before the first message that came: nobody knows whether it was sent to us.
const BEFORE: u32 = u32::MAX - 1;
/// Messages are told apart by numbers up to this.
pub(super) const MOST_MESSAGE: u32 = u32::MAX - 2;

/// When a message says it was sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Seconds since 1970.
    pub(super) exported_s: Option<u32>,
    /// Milliseconds since the exporter began; they wrap.
    pub(super) uptime_ms: Option<u32>,
    /// When it came, by the collector's own clock, in milliseconds that wrap.
    pub(super) arrived_ms: Option<u32>,
}

impl Stamp {
    /// An uptime behind the other one's, or shortly before it, that is longer than what passed here since the other message came: no life of
    /// it began after that one, whatever clocks say. An uptime that is far back proves by itself that its exporter began anew.
    fn is_of_the_life_of(self, other: Stamp) -> bool {
        let uptimes = self.uptime_ms.zip(other.uptime_ms);
        let arrivals = self.arrived_ms.zip(other.arrived_ms);
        uptimes.zip(arrivals).is_some_and(|((up, up_before), (at, before))| {
            let passed = at.wrapping_sub(before).saturating_add(ON_ITS_WAY_MS);
            up_before.saturating_sub(up) <= UPTIME_ALONE_BACK_MS && up > passed
        })
    }

    /// Says the uptime that its exporter started after the other message was sent? Seconds are cut off, which is to its favour.
    pub(super) fn began_after(self, other: Stamp) -> bool {
        let (Some(at), Some(up)) = (self.exported_s, self.uptime_ms) else { return false };
        let (Some(other_at), Some(other_up)) = (other.exported_s, other.uptime_ms) else { return false };
        let until_ms = (u64::from(at) + 1) * 1000;
        up < other_up
            && !self.is_of_the_life_of(other)
            && until_ms >= u64::from(other_at) * 1000 + u64::from(up)
    }
}

/// By how much a message raises the number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Holds {
    /// All that count: records, those of options among them; or the message itself.
    pub(super) records: u32,
    /// Records of flows.
    pub(super) flows: u32,
    /// The message, if it has records that cannot be counted yet ([`NEVER`]: that never will be); else 0.
    pub(super) unread: u32,
    /// When it was sent.
    pub(super) stamp: Stamp,
    /// What tells its content from others'; 0: not known.
    pub(super) print: u32,
}

impl Holds {
    pub(super) fn of(count: u32) -> Holds {
        Holds { records: count, flows: count, ..Holds::default() }
    }

    /// With the exporter's uptime in milliseconds.
    pub(super) fn up(mut self, uptime_ms: u32) -> Holds {
        self.stamp.uptime_ms = Some(uptime_ms);
        self
    }

    /// With the time of export in seconds since 1970.
    pub(super) fn exported(mut self, exported_s: u32) -> Holds {
        self.stamp.exported_s = Some(exported_s);
        self
    }
}

/// What a message is, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The first of its domain.
    First,
    /// It goes on from the latest one, or passes some over.
    Next,
    /// It came behind later ones.
    Late,
    /// All of it was seen already.
    Duplicate,
    /// The exporter began anew.
    Anew,
}

/// What the numbers say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// Numbers that did not arrive.
    pub(super) missing: u64,
    /// Numbers that did not arrive, or arrived in sets that nobody can count.
    pub(super) uncounted: u64,
    /// Messages that came behind later ones.
    pub(super) late: u64,
    /// Messages that had come already,
    pub(super) duplicates: u64,
    /// and the flows in them.
    pub(super) duplicate_records: u64,
    /// How often the exporter began anew.
    pub(super) restarts: u64,
}

impl Tally {
    fn with(self, other: Tally, of: impl Fn(u64, u64) -> u64) -> Tally {
        Tally {
            missing: of(self.missing, other.missing),
            uncounted: of(self.uncounted, other.uncounted),
            late: of(self.late, other.late),
            duplicates: of(self.duplicates, other.duplicates),
            duplicate_records: of(self.duplicate_records, other.duplicate_records),
            restarts: of(self.restarts, other.restarts),
        }
    }

    fn plus(self, other: Tally) -> Tally {
        self.with(other, u64::saturating_add)
    }

    fn minus(self, other: Tally) -> Tally {
        self.with(other, u64::saturating_sub)
    }

    /// A hole is there.
    fn hole(&mut self, hole: Hole) {
        if let Some(sum) = self.of(hole) {
            *sum = sum.saturating_add(hole.to - hole.from);
        }
    }

    /// A hole is not there any more.
    fn no_hole(&mut self, hole: Hole) {
        if let Some(sum) = self.of(hole) {
            *sum = sum.saturating_sub(hole.to - hole.from);
        }
    }

    fn of(&mut self, hole: Hole) -> Option<&mut u64> {
        match hole.of {
            0 => Some(&mut self.missing),
            BEFORE => None,
            _ => Some(&mut self.uncounted),
        }
    }
}

/// Numbers that no message has brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Hole {
    from: u64,
    to: u64,
    /// 0: they are missing. [`BEFORE`]: they are of before the first message. Else some may be of this message.
    of: u32,
}

impl Hole {
    /// Some of it is perhaps counted later, when a template comes.
    fn waits(self) -> bool {
        self.has_owner() && self.of != NEVER
    }

    /// Some of it may be of a message that cannot be counted.
    fn has_owner(self) -> bool {
        !matches!(self.of, 0 | BEFORE)
    }
}

/// The numbers of a message.
#[derive(Debug, Clone, Copy)]
struct Span {
    at: u32,
    count: u32,
    unread: u32,
    stamp: Stamp,
    /// The number counts this message, too, so that what cannot be counted stands before `at`.
    inclusive: bool,
    /// Another message had this number: it is no duplicate of it.
    differs: bool,
}

/// Where a span stands among the numbers that are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Behind all, and so much further.
    Ahead(u64),
    Fills,
    Seen,
    /// Of before the first message.
    Before,
    /// So far back that holes are forgotten.
    Unplaced,
    Far,
}

/// What time says of a message beside an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Age {
    /// Its exporter began when this one did.
    Same,
    /// Its exporter began anew.
    Anew,
    /// Its clock went back, or it began anew.
    Back,
    /// It was exported after all that came.
    Later,
    Unknown,
}

/// Numbers from one beginning of an exporter on. They are counted on in 64 bits.
#[derive(Debug, Clone)]
struct Epoch {
    first: u64,
    next: u64,
    holes: Vec<Hole>,
    /// Before this, holes are forgotten.
    known_from: u64,
    /// The message that `next` stands behind, as far as it could be counted; 0: to its end.
    open: u32,
    /// When the first message was exported.
    began_s: Option<u32>,
    /// Of the latest message.
    stamp: Stamp,
    /// The last time of export before the clock was set, and for how many messages more it is kept.
    before_setting: Option<(u32, u32)>,
}

impl Epoch {
    fn begin(span: &Span) -> Epoch {
        // So much lies before it that nothing goes below zero.
        let first = (1 << 33) + u64::from(span.at);
        Epoch {
            first,
            next: first + u64::from(span.count),
            holes: Vec::new(),
            known_from: 0,
            open: if span.inclusive { 0 } else { span.unread },
            began_s: span.stamp.exported_s,
            stamp: span.stamp,
            before_setting: None,
        }
    }

    fn age(&self, stamp: Stamp) -> Age {
        let uptimes = stamp.uptime_ms.zip(self.stamp.uptime_ms);
        let times = stamp.exported_s.zip(self.stamp.exported_s);
        if let (Some((up, up_before)), Some((at, at_before))) = (uptimes, times) {
            let began = |at: u32, up: u32| i64::from(at) * 1000 - i64::from(up);
            let moved = began(at, up) - began(at_before, up_before);
            // Uptimes wrap, and clocks run apart by some hundred millionths; but who was up has a clock that was not set back for long.
            let apart = at.abs_diff(at_before).min(LONG_S);
            let since_wraps = (moved as u32).cast_signed().unsigned_abs();
            if since_wraps <= SAME_BEGIN_MS + apart && at.saturating_add(WRAPS_MS / 1000) >= at_before {
                return Age::Same;
            }
            // Who began anew did so after what came before was sent; else the clock was set.
            let is_after = moved > 0 && moved + i64::from(SAME_BEGIN_MS) >= i64::from(up_before);
            let back = up_before.saturating_sub(up);
            // (A clock that was never set is back at 1970 then. One that does not go on at all is no uptime.)
            let is_back = back > UPTIME_ALONE_BACK_MS || moved > 0 && back > UPTIME_BACK_MS;
            if (is_back || is_after && up != up_before) && !stamp.is_of_the_life_of(self.stamp) {
                return Age::Anew;
            }
            if up != up_before {
                return Age::Unknown;
            }
        } else if let Some((up, before)) = uptimes {
            let wraps = before > u32::MAX - WRAPS_MS && up < WRAPS_MS;
            let back = before.saturating_sub(up) > UPTIME_ALONE_BACK_MS && !wraps;
            return if back { Age::Anew } else { Age::Unknown };
        }
        // The clock was set, and what had been sent before comes after it.
        let was_set = self.before_setting.zip(stamp.exported_s);
        if was_set.is_some_and(|((before, _), at)| at.abs_diff(before) <= OVERTAKEN_S) {
            return Age::Unknown;
        }
        match times {
            Some((at, before)) if at >= before.saturating_add(LATER_S) => Age::Later,
            Some((at, before)) if at.saturating_add(BACK_S) < before => Age::Back,
            _ => Age::Unknown,
        }
    }

    /// A number counted on; `None`: it is far from what was expected.
    fn locate(&self, number: u32) -> Option<u64> {
        let step = i64::from(number.wrapping_sub(self.next as u32).cast_signed());
        if step.unsigned_abs() >= FAR {
            return None;
        }
        Some(self.next.saturating_add_signed(step))
    }

    fn place(&self, span: &Span) -> Place {
        let Some(from) = self.locate(span.at) else { return Place::Far };
        let to = from + u64::from(span.count);
        if from >= self.next {
            // The one that cannot be counted came twice, and no other in between.
            let again = from == self.next && span.count == 0 && span.unread != 0 && self.open != 0;
            return if again { Place::Seen } else { Place::Ahead(from - self.next) };
        }
        // Its beginning may be cut off by a way of counting that is not its exporter's.
        if to > self.next {
            return Place::Fills;
        }
        let hole = |from: u64, to: u64| self.holes.iter().find(|hole| hole.from < to && from < hole.to);
        match hole(from, to.max(from + 1)) {
            Some(_) if span.count > 0 => return Place::Fills,
            // It holds nothing that can be counted: where it begins, and what begins there already, says what it is.
            Some(hole) if span.unread != 0 && !span.inclusive => {
                return if hole.has_owner() && hole.from == from { Place::Seen } else { Place::Fills };
            }
            _ => {}
        }
        match () {
            () if from < self.known_from => Place::Unplaced,
            () if from < self.first => Place::Before,
            () => Place::Seen,
        }
    }

    /// The latest message is another one.
    fn goes_on(&mut self, stamp: Stamp) {
        let before = std::mem::replace(&mut self.stamp, stamp);
        let left = self.before_setting.and_then(|(at, left)| Some((at, left.checked_sub(1)?)));
        let times = stamp.exported_s.zip(before.exported_s);
        // What a clock overtook that is set on by less does not look like a restart.
        let was_set = times.filter(|(at, before)| at < before || *at > before.saturating_add(BACK_S));
        self.before_setting = was_set.map(|(_, before)| (before, AFTER_SETTING)).or(left);
    }

    /// Takes a message in: what it passes over is a hole, what it fills is none any more.
    fn take(&mut self, span: &Span, tally: &mut Tally) {
        let Some(from) = self.locate(span.at) else { return };
        let to = from + u64::from(span.count);
        if from >= self.next {
            self.goes_on(span.stamp);
            if from > self.next {
                let of = if span.inclusive { span.unread } else { self.open };
                self.insert(self.holes.len(), Hole { from: self.next, to: from, of }, tally);
            }
            // A message of templates alone stands where the one before ends, wherever that is.
            if from > self.next || span.count > 0 || span.unread != 0 {
                self.open = if span.inclusive { 0 } else { span.unread };
            }
            self.next = to;
            return;
        }
        if from < self.first && self.known_from <= self.first {
            if to < self.first {
                self.insert(0, Hole { from: to, to: self.first, of: BEFORE }, tally);
            }
            self.first = from;
            return;
        }
        self.fill(from, to, span, tally);
        if to > self.next {
            self.next = to;
            self.open = if span.inclusive { 0 } else { span.unread };
        }
    }

    /// Of holes that numbers fill in part, both ends stay.
    fn fill(&mut self, from: u64, to: u64, span: &Span, tally: &mut Tally) {
        // What cannot be counted at all cuts a hole in two.
        let last = to.max(from + 1);
        let mut at = 0;
        while let Some(hole) = self.holes.get(at).copied() {
            if hole.from >= last {
                break;
            }
            if hole.to <= from || span.count == 0 && hole.from > from {
                at += 1;
                continue;
            }
            let start = hole.from.max(from);
            let end = hole.to.min(to).max(start);
            tally.no_hole(hole);
            self.holes.remove(at);
            // What an owner has stands behind it, or before it where numbers are inclusive; the other end is missing.
            let (near, far) = match (span.unread, hole.has_owner()) {
                (0, true) => (0, hole.of),
                (0, false) => (hole.of, hole.of),
                (unread, _) => (unread, hole.of),
            };
            let [before, behind] = if span.inclusive { [near, far] } else { [far, near] };
            let left = Hole { from: hole.from, to: start, of: before };
            let right = Hole { from: end, to: hole.to, of: behind };
            for part in [left, right] {
                if part.from < part.to {
                    at = self.insert(at, part, tally);
                }
            }
        }
    }

    /// Puts a hole in its place; behind which place the next one stands.
    fn insert(&mut self, at: usize, hole: Hole, tally: &mut Tally) -> usize {
        tally.hole(hole);
        let at = at.min(self.holes.len());
        self.holes.insert(at, hole);
        let Some(oldest) = self.too_many() else { return at + 1 };
        let forgotten = self.holes.remove(oldest);
        self.known_from = self.known_from.max(forgotten.to);
        if oldest <= at { at } else { at + 1 }
    }

    /// The hole that is to be forgotten, where there are too many.
    fn too_many(&self) -> Option<usize> {
        // Asked for each hole: only where there are many it is looked at whose they are.
        if self.holes.len() <= MOST_HOLES {
            return None;
        }
        let mut others = (self.holes.iter().enumerate()).filter(|(_, hole)| !hole.waits()).map(|(at, _)| at);
        let oldest = others.next();
        if others.count() >= MOST_HOLES {
            return oldest;
        }
        (self.holes.len() > MOST_HOLES + MOST_OWNED).then_some(0)
    }

    /// So many more records of a message could be counted; with `all` there are no others to come. False: it is not of here.
    fn counted(&mut self, message: u32, records: u64, all: bool, inclusive: bool, tally: &mut Tally) -> bool {
        if self.open == message {
            self.next += records;
            if all {
                self.open = 0;
            }
            return true;
        }
        let Some(at) = self.holes.iter().position(|hole| hole.of == message) else { return false };
        let Some(hole) = self.holes.get_mut(at) else { return false };
        tally.no_hole(*hole);
        let records = records.min(hole.to - hole.from);
        if inclusive {
            hole.to -= records;
        } else {
            hole.from += records;
        }
        if all {
            hole.of = 0;
        }
        tally.hole(*hole);
        if hole.from == hole.to {
            self.holes.remove(at);
        }
        true
    }
}

/// Messages that go on from each other where all was seen before: perhaps those of an exporter that began anew.
#[derive(Debug, Clone)]
struct Row {
    epoch: Epoch,
    messages: u32,
    /// What is missing among them,
    tally: Tally,
    /// and what they were taken for.
    taken_for: Tally,
}

/// The numbers of a domain, counted in one way.
#[derive(Debug, Clone, Default)]
struct Numbers {
    now: Option<Epoch>,
    /// Of before the last restart, and for how many messages more it is kept.
    before: Option<Box<Epoch>>,
    stragglers: u32,
    /// The uptime of now when one of them came, or at the restart.
    heard_ms: Option<u32>,
    row: Option<Box<Row>>,
    tally: Tally,
    /// The latest message was one.
    duplicate: bool,
}

impl Numbers {
    fn arrive(&mut self, span: &Span) -> Verdict {
        let verdict = self.judge(span);
        self.duplicate = verdict == Verdict::Duplicate;
        match verdict {
            Verdict::First | Verdict::Late => {}
            Verdict::Duplicate => return verdict,
            Verdict::Next => {
                self.stragglers = self.stragglers.saturating_sub(1);
                if self.stragglers == 0 {
                    self.before = None;
                }
            }
            Verdict::Anew => self.tally.restarts += 1,
        }
        verdict
    }

    fn judge(&mut self, span: &Span) -> Verdict {
        let Some(now) = &mut self.now else {
            self.now = Some(Epoch::begin(span));
            return Verdict::First;
        };
        let (age, place) = (now.age(span.stamp), now.place(span));
        // Where uptimes are all there is, one life comes to the numbers and the uptime at which the other ended: by then nothing of that
        // one is still on its way.
        let since = now.stamp.uptime_ms.zip(self.heard_ms);
        let since = since.map(|(now, heard)| now.wrapping_sub(heard).cast_signed());
        let is_over = since.is_some_and(|since| since > UPTIME_ALONE_BACK_MS.cast_signed());
        if now.stamp.exported_s.is_none() && is_over {
            self.before = None;
        }
        if age != Age::Same && self.before.as_ref().is_some_and(|before| before.age(span.stamp) == Age::Same)
        {
            return self.straggler(span);
        }
        // What was exported since this epoch began is of it.
        let times = span.stamp.exported_s.zip(now.began_s);
        let until_s = self.before.as_ref().and_then(|before| before.stamp.exported_s);
        let is_of_before =
            span.stamp.exported_s.zip(until_s).is_none_or(|(at, until)| at <= until.saturating_add(LATER_S));
        // Where uptimes are all there is, the nearer one tells whose it is: a hole of before is not filled by what has its number now.
        let uptime = span.stamp.uptime_ms.filter(|_| times.is_none()).zip(now.stamp.uptime_ms);
        let until = self.before.as_ref().and_then(|before| before.stamp.uptime_ms);
        let is_nearer = uptime.zip(until).map(|((up, now), before)| up.abs_diff(before) < up.abs_diff(now));
        let is_older = times.is_some_and(|(at, began)| at < began) || is_nearer == Some(true);
        let fits_before = (times.is_none() || is_older)
            && is_of_before
            && is_nearer != Some(false)
            && self
                .before
                .as_ref()
                .is_some_and(|before| matches!(before.place(span), Place::Ahead(0) | Place::Fills));
        match (place, age) {
            // Whatever a clock does, what goes on from what was there is of the same exporter.
            (Place::Ahead(0), _) => {}
            (Place::Seen | Place::Fills, _) if fits_before && is_older => return self.straggler(span),
            (Place::Ahead(_) | Place::Before | Place::Unplaced | Place::Far, _) if fits_before => {
                return self.straggler(span);
            }
            (Place::Ahead(_), Age::Anew) | (Place::Far, _) => return self.anew(span),
            (Place::Ahead(_), _) => {}
            (_, Age::Anew | Age::Back | Age::Later) => return self.anew(span),
            (Place::Seen, _) if span.differs => return self.anew(span),
            (Place::Fills, _) => {
                now.take(span, &mut self.tally);
                self.tally.late += 1;
                self.row = None;
                return Verdict::Late;
            }
            (Place::Seen | Place::Before | Place::Unplaced, _) => return self.seen(span, place),
        }
        now.take(span, &mut self.tally);
        self.row = None;
        Verdict::Next
    }

    /// A message of before the last restart.
    fn straggler(&mut self, span: &Span) -> Verdict {
        let Some(before) = &mut self.before else { return Verdict::Late };
        self.stragglers = STRAGGLERS;
        self.heard_ms = self.now.as_ref().and_then(|now| now.stamp.uptime_ms);
        let verdict = match before.place(span) {
            Place::Seen if span.count > 0 || span.unread != 0 => Verdict::Duplicate,
            Place::Far => Verdict::Late,
            _ => {
                before.take(span, &mut self.tally);
                Verdict::Late
            }
        };
        match verdict {
            Verdict::Duplicate => self.tally.duplicates += 1,
            _ => self.tally.late += 1,
        }
        verdict
    }

    /// A message of which nothing is new: a duplicate, one that is very late, or one of a row.
    fn seen(&mut self, span: &Span, place: Place) -> Verdict {
        let Some(now) = &mut self.now else { return Verdict::Late };
        let is_duplicate = place == Place::Seen && (span.count > 0 || span.unread != 0);
        let mut taken_for = Tally::default();
        match is_duplicate {
            true => taken_for.duplicates = 1,
            false => taken_for.late = 1,
        }
        if place == Place::Before {
            now.take(span, &mut self.tally);
        }
        self.tally = self.tally.plus(taken_for);
        // Who began anew does not say earlier times than before.
        let earlier = |now: Option<u32>, before: Option<u32>| now.zip(before).is_some_and(|(a, b)| a < b);
        let is_old = earlier(span.stamp.exported_s, now.stamp.exported_s)
            || now.age(span.stamp) == Age::Same && earlier(span.stamp.uptime_ms, now.stamp.uptime_ms);
        if is_old {
            self.row = None;
        } else if self.go_on(span, taken_for) {
            return Verdict::Anew;
        }
        if is_duplicate { Verdict::Duplicate } else { Verdict::Late }
    }

    /// Takes a message as one of a row. True: there are enough of them, and they are what comes from now on.
    fn go_on(&mut self, span: &Span, taken_for: Tally) -> bool {
        let goes_on = |row: &Row| matches!(row.epoch.place(span), Place::Ahead(_));
        match self.row.as_mut().filter(|row| goes_on(row)) {
            Some(row) => {
                row.messages += u32::from(span.count > 0 || span.unread != 0);
                row.epoch.take(span, &mut row.tally);
                row.taken_for = row.taken_for.plus(taken_for);
            }
            None => {
                let (epoch, tally) = (Epoch::begin(span), Tally::default());
                self.row = Some(Box::new(Row { epoch, messages: 1, tally, taken_for }));
            }
        }
        let Some(row) = self.row.take_if(|row| row.messages >= ROW) else { return false };
        self.tally = self.tally.minus(row.taken_for).plus(row.tally);
        self.heard_ms = row.epoch.stamp.uptime_ms;
        self.before = self.now.replace(row.epoch).map(Box::new);
        self.stragglers = STRAGGLERS;
        true
    }

    fn anew(&mut self, span: &Span) -> Verdict {
        self.before = self.now.replace(Epoch::begin(span)).map(Box::new);
        self.stragglers = STRAGGLERS;
        self.heard_ms = span.stamp.uptime_ms;
        self.row = None;
        Verdict::Anew
    }

    fn counted(&mut self, message: u32, records: u64, all: bool, inclusive: bool) {
        let Numbers { now, before, row, tally, .. } = self;
        let of =
            |epoch: &mut Epoch, tally: &mut Tally| epoch.counted(message, records, all, inclusive, tally);
        if now.as_mut().is_some_and(|now| of(now, tally)) {
            return;
        }
        if !before.as_mut().is_some_and(|before| of(before, tally))
            && let Some(row) = row
        {
            of(&mut row.epoch, &mut row.tally);
        }
    }

    fn bytes(&self) -> usize {
        let of = |epoch: &Epoch| epoch.holes.capacity() * size_of::<Hole>();
        self.now.as_ref().map_or(0, of)
            + self.before.as_ref().map_or(0, |before| of(before) + size_of::<Epoch>())
            + self.row.as_ref().map_or(0, |row| of(&row.epoch) + size_of::<Row>())
    }

    /// Forgets what it can do without.
    fn shrink(&mut self) {
        (self.before, self.row) = (None, None);
        if let Some(now) = &mut self.now {
            now.known_from = now.holes.last().map_or(now.known_from, |hole| hole.to);
            now.holes = Vec::new();
        }
    }
}

/// How an exporter of IPFIX counts: the number of a message is what came before it, with records of options (RFC 7011, 3.1) or
/// without; or this message is in it, too (softflowd).
#[derive(Debug, Clone)]
struct Way {
    kind: u8,
    /// Messages that went on from the one before in this way,
    fits: u32,
    /// and those that cannot be counted so: the step was too small, which no loss explains.
    against: u32,
    numbers: Numbers,
}

impl Way {
    fn count(kind: u8, holds: &Holds) -> u32 {
        if kind & 1 == 0 { holds.records } else { holds.flows }
    }

    fn is_inclusive(&self) -> bool {
        self.kind & 2 != 0
    }

    fn span(kind: u8, number: u32, holds: &Holds, differs: bool) -> Span {
        let (count, inclusive) = (Way::count(kind, holds), kind & 2 != 0);
        let at = if inclusive { number.wrapping_sub(count) } else { number };
        Span { at, count, unread: holds.unread, stamp: holds.stamp, inclusive, differs: differs && count > 0 }
    }
}

/// The latest messages with flows, by number and content.
#[derive(Debug, Default)]
struct Recent {
    messages: [(u32, u32); RECENT],
    at: usize,
}

const RECENT: usize = 16;

impl Recent {
    /// Was this number another message's, and never one of this content? Remembers it.
    fn differs(&mut self, number: u32, holds: &Holds) -> bool {
        if holds.print == 0 || holds.flows == 0 {
            return false;
        }
        let mut prints = self.messages.iter().filter(|(of, print)| *of == number && *print != 0).peekable();
        let is_known = prints.peek().is_some();
        if is_known && prints.any(|(_, print)| *print == holds.print) {
            return false;
        }
        if let Some(place) = self.messages.get_mut(self.at) {
            *place = (number, holds.print);
        }
        self.at = (self.at + 1) % RECENT;
        is_known
    }
}

/// What is known of a domain's numbers.
#[derive(Debug, Default)]
pub(super) struct Sequence {
    /// Of IPFIX those that may be its exporter's, until one is; of the others one.
    ways: Vec<Way>,
    /// The greatest number so far, and what that message held.
    last: Option<(u32, Holds)>,
    /// The number of the first message since the exporter began.
    first: Option<u32>,
    recent: Recent,
    /// What it takes beside itself, as [`Sequence::bytes`] said last.
    pub(super) charged: usize,
}

impl Sequence {
    /// What it takes at first, beside itself.
    pub(super) const BYTES: usize = 4 * size_of::<Way>();

    /// A message arrives.
    pub(super) fn arrive(&mut self, number: u32, holds: &Holds, many_ways: bool) -> Verdict {
        if self.ways.is_empty() {
            let kinds = if many_ways { 0..4 } else { 0..1 };
            self.ways =
                kinds.map(|kind| Way { kind, fits: 0, against: 0, numbers: Numbers::default() }).collect();
        }
        if many_ways {
            self.compare(number, holds);
        }
        let differs = self.recent.differs(number, holds);
        let best = self.best();
        let mut verdict = Verdict::First;
        for (at, way) in self.ways.iter_mut().enumerate() {
            let of = way.numbers.arrive(&Way::span(way.kind, number, holds, differs));
            if at == best {
                verdict = of;
            }
        }
        match verdict {
            Verdict::First => (self.first, self.last) = (Some(number), Some((number, *holds))),
            Verdict::Anew => {
                (self.first, self.last) = (Some(number), Some((number, *holds)));
                self.begin_anew(best, number, holds, many_ways);
            }
            _ if self.last.is_none_or(|(last, _)| is_ahead(number.wrapping_sub(last))) => {
                self.last = Some((number, *holds));
            }
            _ => {}
        }
        verdict
    }

    /// Compares the step from the message before with what each way says of it.
    fn compare(&mut self, number: u32, holds: &Holds) {
        let Some((last, held)) = self.last else { return self.compare_first(number, holds) };
        let step = number.wrapping_sub(last);
        // What holds nothing and was overtaken has the number of the one that overtook it.
        let is_again =
            step == 0 && (holds.records == 0 || (held.records, held.flows) == (holds.records, holds.flows));
        if is_again || step != 0 && !is_ahead(step) || held.unread != 0 || holds.unread != 0 {
            return;
        }
        for way in &mut self.ways {
            let count = Way::count(way.kind, if way.is_inclusive() { holds } else { &held });
            way.fits = way.fits.saturating_add(u32::from(step == count));
            way.against = way.against.saturating_add(u32::from(step < count));
        }
        let alone = self.ways.len() == 1;
        match self.ways.first() {
            Some(way) if alone && way.against >= UNSURE => self.begin_anew(0, last, &held, true),
            Some(way) if !alone && way.kind == 0 && way.against == 0 && way.fits >= SURE => {
                let fits = way.fits;
                self.ways.retain(|way| way.kind == 0 || way.fits > fits);
            }
            _ => {
                let least = self.ways.iter().map(|way| way.against).min().unwrap_or(0);
                self.ways.retain(|way| way.against - least < DECIDED);
            }
        }
    }

    /// Looks at the first number of all: the first message of an exporter is at zero, or at its own count.
    fn compare_first(&mut self, number: u32, holds: &Holds) {
        if holds.records == 0 || holds.unread != 0 {
            return;
        }
        for way in self.ways.iter_mut().filter(|way| way.is_inclusive()) {
            way.against += u32::from(number == 0);
            way.fits += if number == Way::count(way.kind, holds) { 2 } else { 0 };
        }
    }

    /// Which of the ways is its exporter's, as far as is known: that of the RFC unless less speaks against another.
    fn best(&self) -> usize {
        let rank = |at: usize| {
            let way = self.ways.get(at);
            way.map_or((u32::MAX, u32::MAX), |way| {
                // One that fits another way is perhaps a loss that happens to be as long.
                (way.against, u32::MAX - way.fits.saturating_add(u32::from(way.kind == 0)))
            })
        };
        (0..self.ways.len()).min_by_key(|at| rank(*at)).unwrap_or(0)
    }

    /// Another program may count in another way.
    fn begin_anew(&mut self, best: usize, number: u32, holds: &Holds, many_ways: bool) {
        let Some(known) = self.ways.get(best).filter(|_| many_ways).cloned() else { return };
        let of = |kind: u8| {
            let now = Some(Epoch::begin(&Way::span(kind, number, holds, false)));
            let numbers = match kind == known.kind {
                true => known.numbers.clone(),
                false => Numbers { now, tally: known.numbers.tally, ..Numbers::default() },
            };
            Way { kind, fits: 0, against: 0, numbers }
        };
        self.ways = (0..4).map(of).collect();
    }

    /// Records of a message that had waited for their template were counted: so many of all, and of flows. With `all` there are no
    /// others to come.
    pub(super) fn counted(&mut self, message: u32, holds: &Holds, all: bool) {
        for way in &mut self.ways {
            let (count, inclusive) = (Way::count(way.kind, holds), way.is_inclusive());
            way.numbers.counted(message, count.into(), all, inclusive);
        }
    }

    /// The latest message held so many flows.
    pub(super) fn held(&mut self, flows: u64) {
        for way in self.ways.iter_mut().filter(|way| way.numbers.duplicate) {
            way.numbers.tally.duplicate_records += flows;
            if let Some(row) = &mut way.numbers.row {
                row.taken_for.duplicate_records += flows;
            }
        }
    }

    /// So many flows of a message that had come already were read later than it.
    pub(super) fn held_twice(&mut self, flows: u64) {
        self.ways.iter_mut().for_each(|way| way.numbers.tally.duplicate_records += flows);
    }

    /// What the numbers say.
    pub(super) fn tally(&self) -> Tally {
        self.ways.get(self.best()).map_or(Tally::default(), |way| way.numbers.tally)
    }

    /// The number of the first message since the exporter began, as far as it was seen to.
    pub(super) fn first(&self) -> Option<u32> {
        self.first
    }

    /// What it takes beside [`Sequence::BYTES`] and itself.
    pub(super) fn bytes(&self) -> usize {
        self.ways.iter().map(|way| way.numbers.bytes()).sum()
    }

    /// Forgets what it can do without: there is no room for it.
    pub(super) fn shrink(&mut self) {
        self.ways.iter_mut().for_each(|way| way.numbers.shrink());
    }
}

fn is_ahead(step: u32) -> bool {
    step != 0 && step < 1 << 31
}

#[cfg(test)]
mod tests;
