//! One end of a session, without clocks or sockets: bytes and messages and the time go in, messages and bytes come out.
//!
//! What was sent is kept until the other end has it; nothing is kept that is out of order, because a server hands on what one sender sends in order:
//! gaps come of a connection that was lost, and then all that is missing is sent again. The window bounds what is kept at either end.
//!
//! ```text
//!   out:      acked ........... next ........... written        sent and kept | not sent yet
//!   in:       taken ........... received                        here, and not handed on
//! ```

use crate::message::{HEADER, Kind, Message};
use std::collections::VecDeque;
use std::time::Duration;

/// Bytes on their way, in each direction.
pub(crate) const WINDOW: usize = 1 << 20;
/// Bytes of a piece. Servers like messages far below what they take at most, and on a slow line something is heard sooner.
const PIECE: usize = 32 << 10;
/// Something is said so often.
const SAYS: Duration = Duration::from_secs(1);
/// If nothing more arrives there for so long, it is sent again. After a lost connection nobody waits for it.
const PATIENCE: Duration = Duration::from_secs(3);
/// What is missing is asked for so often until it comes,
const ASKS: Duration = Duration::from_millis(500);
/// and the same is sent again at most so often, however often it is asked for.
const ONCE: Duration = Duration::from_millis(100);

/// Why a message is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It is of another session.
    Stale,
    /// It says what cannot be.
    Nonsense,
}

/// What came, besides bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Came {
    /// Nothing more than that.
    Message,
    /// The other end has left, and says why.
    Bye(String),
}

/// One end of a session. Times are since some moment that stays the same.
#[derive(Debug)]
pub(crate) struct Link {
    epoch: u64,
    /// Written, and not known to be there: from `acked` on.
    out: VecDeque<u8>,
    acked: u64,
    next: u64,
    /// The furthest that was ever sent.
    top: u64,
    /// All that was written, in bytes.
    written: u64,
    /// The other end takes bytes up to here.
    limit: u64,
    /// Nothing more is written: the end is one byte behind all that was.
    out_ended: bool,
    received: u64,
    taken: u64,
    /// Received, and not taken.
    pieces: VecDeque<Vec<u8>>,
    in_ended: bool,
    /// The limit that the other end knows of.
    told: u64,
    /// The other end is to be told where this one stands,
    owes: bool,
    /// or to send again what is missing here.
    misses: bool,
    asked: Option<Duration>,
    /// Where to and when it went back last.
    went_back: Option<(u64, Duration)>,
    heard: Duration,
    said: Option<Duration>,
    progress: Duration,
}

/// Has so long passed since then?
fn is_past(then: Option<Duration>, now: Duration, long: Duration) -> bool {
    then.is_none_or(|then| now.saturating_sub(then) >= long)
}

impl Link {
    pub fn new(epoch: u64, now: Duration) -> Link {
        Link {
            epoch,
            out: VecDeque::new(),
            acked: 0,
            next: 0,
            top: 0,
            written: 0,
            limit: WINDOW as u64,
            out_ended: false,
            received: 0,
            taken: 0,
            pieces: VecDeque::new(),
            in_ended: false,
            told: WINDOW as u64,
            // So the other end hears of this one at once.
            owes: true,
            misses: false,
            asked: None,
            went_back: None,
            heard: now,
            said: None,
            progress: now,
        }
    }

    /// Is there room for more to be sent?
    pub fn has_room(&self) -> bool {
        !self.out_ended && self.out.len() < WINDOW
    }

    /// Bytes to be sent, which may be more than there is room for; none after the end.
    pub fn write(&mut self, bytes: &[u8]) {
        if !self.out_ended {
            self.out.extend(bytes);
            self.written += bytes.len() as u64;
        }
    }

    /// Nothing more is written.
    pub fn finish(&mut self) {
        self.out_ended = true;
    }

    /// Was the end written?
    pub fn has_finished(&self) -> bool {
        self.out_ended
    }

    /// All that was written is at the other end, and its end, too.
    pub fn is_through(&self) -> bool {
        self.out_ended && self.acked == self.written + 1
    }

    /// Bytes that came.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        let piece = self.pieces.pop_front()?;
        self.taken += piece.len() as u64;
        // Who waits for room is told of it.
        self.owes |= self.told.saturating_sub(self.taken) <= (WINDOW / 2) as u64;
        Some(piece)
    }

    /// Is there something to take?
    pub fn has_pieces(&self) -> bool {
        !self.pieces.is_empty()
    }

    /// All that the other end wrote was taken, and nothing more comes.
    pub fn is_at_end(&self) -> bool {
        self.in_ended && self.pieces.is_empty()
    }

    /// How long the other end has not been heard.
    pub fn silence(&self, now: Duration) -> Duration {
        now.saturating_sub(self.heard)
    }

    /// The connection was lost, and is there again: what was on its way may be missing, at either end.
    pub fn reconnected(&mut self, now: Duration) {
        self.go_back(now);
        self.misses = true;
        self.asked = None;
    }

    fn go_back(&mut self, now: Duration) {
        self.next = self.acked;
        self.progress = now;
        self.went_back = Some((self.acked, now));
    }

    /// The next message that is due, with a payload that leaves it at `most` bytes.
    pub fn next_message(&mut self, now: Duration, most: usize) -> Option<Vec<u8>> {
        if self.next > self.acked && now.saturating_sub(self.progress) >= PATIENCE {
            self.go_back(now);
        }
        let asks = self.misses && is_past(self.asked, now, ASKS);
        let piece = most.saturating_sub(HEADER).clamp(1, PIECE) as u64;
        let until = self.written.min(self.limit).min(self.next.saturating_add(piece));
        let (kind, offset, from, to) = if self.next < until {
            (Kind::Data, self.next, self.next, until)
        } else if self.out_ended && self.next == self.written {
            (Kind::End, self.next, self.next, self.next)
        } else if self.owes || asks || is_past(self.said, now, SAYS) {
            (Kind::Data, self.next, self.next, self.next)
        } else {
            return None;
        };
        if self.next == self.acked {
            self.progress = now;
        }
        self.next = to + u64::from(kind == Kind::End);
        self.top = self.top.max(self.next);
        self.said = Some(now);
        self.owes = false;
        self.told = self.taken + WINDOW as u64;
        if asks {
            self.asked = Some(now);
        }
        let payload = self.piece(from, to);
        let (epoch, received, limit) = (self.epoch, self.received, self.told);
        Some(Message { kind, again: asks, epoch, offset, received, limit, payload: &payload }.bytes())
    }

    /// What was written there, which is kept.
    fn piece(&self, from: u64, to: u64) -> Vec<u8> {
        let at = |offset: u64| usize::try_from(offset.saturating_sub(self.acked)).unwrap_or(usize::MAX);
        let kept = self.out.len();
        self.out.range(at(from).min(kept)..at(to).min(kept)).copied().collect()
    }

    /// A message came, from outside.
    ///
    /// # Errors
    /// It is of another session, or says what cannot be: nothing came of it.
    pub fn came(&mut self, now: Duration, bytes: &[u8]) -> Result<Came, Refused> {
        let message = Message::read(bytes).ok_or(Refused::Nonsense)?;
        if message.epoch != self.epoch {
            return Err(Refused::Stale);
        }
        if message.kind == Kind::Bye {
            return Ok(Came::Bye(crate::message::shown(&String::from_utf8_lossy(message.payload))));
        }
        if message.received > self.top {
            return Err(Refused::Nonsense);
        }
        self.incoming(&message)?;
        self.heard = now;
        if let Some(more) = message.received.checked_sub(self.acked).filter(|more| *more > 0) {
            // The end is none of the bytes that are kept.
            let bytes = usize::try_from(more).unwrap_or(usize::MAX).min(self.out.len());
            self.out.drain(..bytes);
            self.acked = message.received;
            self.next = self.next.max(self.acked);
            self.progress = now;
        }
        self.limit = self.limit.max(message.limit);
        let before = self.went_back.filter(|(to, _)| *to == self.acked).map(|(_, at)| at);
        if message.again && self.next > self.acked && is_past(before, now, ONCE) {
            self.go_back(now);
        }
        Ok(Came::Message)
    }

    /// Takes what follows what is here.
    fn incoming(&mut self, message: &Message<'_>) -> Result<(), Refused> {
        let end = message.offset.checked_add(message.payload.len() as u64).ok_or(Refused::Nonsense)?;
        // Without a payload, too: it tells where its sender stands.
        if message.offset > self.received {
            self.misses = true;
            return Ok(());
        }
        if message.payload.is_empty() && message.kind == Kind::Data {
            // Then nothing is missing.
            self.misses &= message.offset < self.received;
            return Ok(());
        }
        self.owes = true;
        if message.kind == Kind::End {
            if message.offset == self.received && !self.in_ended {
                self.in_ended = true;
                self.received += 1;
                self.misses = false;
            }
            return Ok(());
        }
        let known = usize::try_from(self.received - message.offset).unwrap_or(usize::MAX);
        let Some(new) = message.payload.get(known..).filter(|new| !new.is_empty()) else { return Ok(()) };
        if self.in_ended || end > self.taken + WINDOW as u64 {
            return Err(Refused::Nonsense);
        }
        self.received = end;
        // If more is missing, what comes next shows it.
        self.misses = false;
        self.asked = None;
        self.pieces.push_back(new.to_vec());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: Duration = Duration::from_millis(1);

    /// Two ends, and what is on its way between them.
    struct Pair {
        now: Duration,
        ends: [Link; 2],
        on_the_way: [VecDeque<(Duration, Vec<u8>)>; 2],
        got: [Vec<u8>; 2],
        most: usize,
    }

    impl Pair {
        fn new(most: usize) -> Pair {
            let ends = [Link::new(7, Duration::ZERO), Link::new(7, Duration::ZERO)];
            Pair { now: Duration::ZERO, ends, on_the_way: Default::default(), got: Default::default(), most }
        }

        /// A millisecond passes; what was sent 5 ms ago arrives. `takes`: whether each end takes what came.
        fn step(&mut self, takes: [bool; 2]) {
            self.now += MS;
            for from in [0, 1] {
                let to = 1 - from;
                while let Some(message) = self.ends[from].next_message(self.now, self.most) {
                    assert!(message.len() <= self.most.max(HEADER + 1));
                    self.on_the_way[to].push_back((self.now, message));
                }
                while self.on_the_way[to].front().is_some_and(|(sent, _)| self.now >= *sent + 5 * MS) {
                    let (_, message) = self.on_the_way[to].pop_front().expect("one");
                    assert_eq!(self.ends[to].came(self.now, &message), Ok(Came::Message));
                }
                if takes[to] {
                    while let Some(piece) = self.ends[to].take() {
                        self.got[to].extend(piece);
                    }
                }
                for end in &self.ends {
                    assert!(end.pieces.iter().map(Vec::len).sum::<usize>() <= WINDOW);
                }
            }
        }

        /// The server is restarted: what is on its way is lost, and later both are connected again.
        fn restart(&mut self, heard: [bool; 2]) {
            self.on_the_way.iter_mut().for_each(VecDeque::clear);
            for (end, heard) in self.ends.iter_mut().zip(heard) {
                if heard {
                    end.reconnected(self.now);
                }
            }
        }
    }

    fn pattern(length: usize, seed: u8) -> Vec<u8> {
        (0..length).map(|n| (n % 251) as u8 ^ seed).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

        /// Whatever is lost, and whoever hears of it: each byte arrives once and in order, and so does the end.
        #[test]
        fn a_session_loses_nothing_however_often_the_server_is_restarted(
            lengths in prop::array::uniform2(0usize..300_000),
            most in prop::sample::select(vec![40usize, 300, 8192, 1 << 20]),
            restarts in prop::collection::vec((1u32..400, any::<[bool; 2]>()), 0..6),
            slow in any::<[bool; 2]>(),
        ) {
            // Tiny messages with many bytes would take the test long.
            let lengths = if most < 300 { lengths.map(|length| length / 100) } else { lengths };
            let mut pair = Pair::new(most);
            let sent = [pattern(lengths[0], 0), pattern(lengths[1], 0x55)];
            let mut written = [0, 0];
            let mut at = 0;
            let mut restarts: Vec<(u32, [bool; 2])> =
                restarts.into_iter().map(|(after, heard)| { at += after; (at, heard) }).collect();
            for step in 0..60_000 {
                for n in [0, 1] {
                    while pair.ends[n].has_room() {
                        let to = (written[n] + 7_000).min(sent[n].len());
                        pair.ends[n].write(&sent[n][written[n]..to]);
                        written[n] = to;
                        if to == sent[n].len() {
                            pair.ends[n].finish();
                        }
                    }
                }
                if restarts.first().is_some_and(|(at, _)| *at == step) {
                    pair.restart(restarts.remove(0).1);
                }
                pair.step([0, 1].map(|n| !slow[n] || step % 50 == 0));
                if pair.ends.iter().all(|end| end.is_through() && end.is_at_end()) {
                    break;
                }
            }
            prop_assert!(pair.ends.iter().all(Link::is_through), "after {:?}", pair.now);
            prop_assert!(pair.got[1] == sent[0] && pair.got[0] == sent[1]);
        }

        /// What is hostile neither panics nor takes memory, and what is of another session is no sign of life.
        #[test]
        fn any_messages_are_taken(
            messages in prop::collection::vec(
                (0u8..4, any::<bool>(), prop::sample::select(vec![7u64, 8]),
                 prop::array::uniform3(prop_oneof![0u64..5000, any::<u64>(), (u64::MAX - 5000)..]), 0usize..5000),
                0..60),
            written in 0usize..200_000,
            finishes: bool,
        ) {
            let mut link = Link::new(7, Duration::ZERO);
            link.write(&pattern(written, 0));
            if finishes {
                link.finish();
            }
            let mut now = Duration::ZERO;
            for (kind, again, epoch, [offset, received, limit], length) in messages {
                now += 30 * MS;
                let kind = match kind { 0 => Kind::End, 1 => Kind::Bye, _ => Kind::Data };
                let payload = pattern(length, 1);
                let bytes = Message { kind, again, epoch, offset, received, limit, payload: &payload }.bytes();
                let before = link.heard;
                if link.came(now, &bytes) == Err(Refused::Stale) {
                    prop_assert!(epoch == 8 && link.heard == before);
                }
                let mut sent = 0;
                while link.next_message(now, 1 << 20).is_some() {
                    sent += 1;
                    prop_assert!(sent < 100);
                }
                prop_assert!(link.pieces.iter().map(Vec::len).sum::<usize>() <= WINDOW);
                if offset % 2 == 0 {
                    link.take();
                }
            }
        }
    }

    #[test]
    fn who_does_not_take_stops_the_other_end_and_who_takes_again_lets_it_go_on() {
        let mut pair = Pair::new(1 << 20);
        let sent = pattern(3 * WINDOW, 0);
        pair.ends[0].write(&sent);
        for _ in 0..200 {
            pair.step([true, false]);
        }
        assert_eq!(pair.ends[1].received, WINDOW as u64);
        // Meanwhile nothing is sent but that both are there.
        let moved = pair.ends[0].top;
        for _ in 0..9_000 {
            pair.step([true, false]);
        }
        assert_eq!((pair.ends[0].top, pair.ends[0].silence(pair.now) <= 1_100 * MS), (moved, true));
        for _ in 0..200 {
            pair.step([true, true]);
        }
        assert!(pair.got[1] == sent);
    }

    #[test]
    fn who_is_not_heard_is_missed_and_idle_ends_speak_once_a_second() {
        let mut pair = Pair::new(1 << 20);
        let mut messages = 0;
        for _ in 0..10_000 {
            pair.step([true, true]);
            messages += pair.on_the_way[0].iter().filter(|(sent, _)| *sent == pair.now).count();
        }
        assert!((9..=11).contains(&messages), "{messages}");
        assert!(pair.ends[0].silence(pair.now) < 1_100 * MS);
        pair.now += crate::LEASE;
        assert!(pair.ends[0].silence(pair.now) >= crate::LEASE);
    }

    #[test]
    fn what_is_lost_without_a_word_is_sent_again_when_a_while_has_passed() {
        let mut pair = Pair::new(1 << 20);
        pair.ends[0].write(b"a report");
        pair.step([true, true]);
        pair.restart([false, false]);
        let mut took = 0;
        while pair.got[1].is_empty() {
            pair.step([true, true]);
            took += 1;
        }
        assert!(took <= 3_100, "{took} ms");
        assert_eq!(pair.got[1], b"a report");
        // The last piece before a gap, too: what follows shows that it is missing.
        pair.ends[0].write(b" in two");
        pair.step([true, true]);
        pair.restart([false, false]);
        pair.ends[0].write(b" parts");
        took = 0;
        while pair.got[1].len() < 21 {
            pair.step([true, true]);
            took += 1;
        }
        assert!(took <= 300, "{took} ms");
        assert_eq!(pair.got[1], b"a report in two parts");
    }

    #[test]
    fn who_leaves_says_why() {
        let mut link = Link::new(7, Duration::ZERO);
        assert_eq!(link.came(MS, &Message::bye(7, "it\nis over")), Ok(Came::Bye("it\\nis over".to_owned())));
        assert_eq!(link.came(MS, &Message::bye(8, "it is over")), Err(Refused::Stale));
        assert_eq!(link.came(MS, b"nd"), Err(Refused::Nonsense));
    }
}
